"""Choosing between several arrays: select, piecewise, choose.

Invariant: everything ends in select_n; branches are all computed.

    >>> jnp.select([jnp.array([True, False])], [1], 2)
    Array([1, 2], dtype=int32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.dtypes import is_bool, is_integer
from ..._base.shapes import common_shape
from ..._base.tracebacks import api_boundary
from ..._core import bind
from .._creation.arrays import array
from .._creation.filled import full_like
from .._manipulation.joining import concatenate, stack
from .._math.arithmetic import remainder
from .._reductions.cumulative import cumsum
from .._reductions.plain import argmax
from .._support.arguments import (
    Array,
    as_array,
    broadcast_constant,
    broadcast_together,
    check_arraylike,
    check_promotion,
    concrete_or_error,
    constant,
    convert,
    exactly,
    shape_of,
    unsupported,
)
from .selecting import clip
from .taking import take_along_axis

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...typing import ArrayLike


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """The first choice whose condition holds, else `default`.

    Args:
        condlist: sequence of arrays of bool.
        choicelist: sequence of as many arrays, which broadcast with them.
        default: scalar or array: the value where no condition holds.

    Returns:
        Array of the broadcast shape and the promoted dtype.

    Raises:
        ValueError: if the lists differ in length or are empty.

    >>> jnp.select([jnp.array([True, False])], [jnp.array([1, 2])], 7)
    Array([1, 7], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if len(condlist) == 0:
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist, default)
    check_promotion(np.bool_(False), *condlist)
    *choices, default = exactly(_core.promote_dtypes, *choicelist, default)
    shape = common_shape(*[shape_of(v) for v in (*condlist, *choices, default)])
    parts = [_core.broadcast_to(v, shape) for v in (*condlist, *choices, default)]
    conditions, choices = parts[: len(condlist)], parts[len(condlist) : -1]
    # Index 0 is the default; a row of falses in front makes argmax fall back to it.
    nothing = broadcast_constant(np.bool_(False), shape)
    which = argmax(stack([nothing, *conditions]), axis=0)
    return bind("select_n", which, parts[-1], *choices)


@api_boundary
def piecewise(x: ArrayLike, condlist: Array | Sequence[ArrayLike], funclist: list[ArrayLike | Callable[..., Array]], *args: Any, **kw: Any) -> Array:
    """A piecewise function: funclist[i](x, *args, **kw) where condlist[i] holds.

    Every function is applied to all of x.

    Args:
        x: array of numbers.
        condlist: sequence of arrays of bool, or an array of bool; where several hold, the last is
          used.
        funclist: sequence of functions or numbers, one for each condition and, optionally, one for
          elements where none holds (default 0).
        *args, **kw: passed to every function.

    Returns:
        Array of x's shape and dtype.

    Raises:
        ValueError: unless there are as many functions as conditions, or one more.

    >>> jnp.piecewise(jnp.array([-1.0, 2.0]), [jnp.array([True, False])], [0.0, lambda x: x * x])
    Array([0., 4.], dtype=float32)
    """
    x = as_array("piecewise", x)
    n_conditions, n_functions = len(condlist), len(funclist)
    if n_functions == n_conditions + 1:
        funclist = list(funclist[-1:]) + list(funclist[:-1])
    elif n_functions == n_conditions:
        funclist = [0, *funclist]
    else:
        raise ValueError(f"with {n_conditions} condition(s), either {n_conditions} or {n_conditions + 1} functions are expected; got {n_functions}")
    conditions = condlist if isinstance(condlist, Array) else array([_core.asarray(c) for c in condlist])
    conditions = conditions if is_bool(conditions.dtype) else bind("ne", conditions, constant(0, conditions.dtype))
    nothing = broadcast_constant(np.bool_(False), (1, *conditions.shape[1:]))
    # The position of the last true condition is where the running count first reaches its maximum.
    which = argmax(cumsum(concatenate([nothing, conditions]), axis=0), axis=0)
    values = []
    for f in funclist:
        value = f(x, *args, **kw) if callable(f) else full_like(x, f)
        values.append(_core.broadcast_to(_core.asarray(value, x.dtype) if not isinstance(value, Array) else value, x.shape))
    values = [convert(v, x.dtype) for v in values]
    which = _core.broadcast_to(which, x.shape)
    if len(values) == 2:
        which = bind("eq", which, constant(1, which.dtype))
    return bind("select_n", which, *values)


def choose(a: ArrayLike, choices: Array | np.ndarray | Sequence[ArrayLike], out: None = None, mode: str = "raise") -> Array:
    """choices[a[i]][i] for every i.

    Args:
        a: array of integers.
        choices: sequence of arrays that broadcast with a.
        out: not supported; must be None.
        mode: "raise" (a must be concrete and within bounds), "clip" or "wrap".

    Returns:
        Array of the broadcast shape and the promoted dtype of the choices.

    Raises:
        ValueError: for an a that is not an integer, or out of bounds with "raise".
        NotImplementedError: if `out` is given.

    >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([3, 4])])
    Array([3, 2], dtype=int32)
    """
    unsupported("jnp.choose", out=out)
    n = len(choices)
    a = as_array("choose", a)
    if not is_integer(a.dtype):
        raise ValueError("`a` array must be integer typed")
    if mode == "raise":
        a = concrete_or_error(a, "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use mode='wrap' or mode='clip' instead.")
        if np.any((a < 0) | (a >= n)):
            raise ValueError("invalid entry in choice array")
        a = _core.asarray(a)
    elif mode == "wrap":
        a = remainder(a, n)
    elif mode == "clip":
        a = clip(a, 0, n - 1)
    else:
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    a, *choices = broadcast_together(a, *[convert(c, c.dtype) for c in _core.promote_dtypes(*choices)])
    return take_along_axis(stack(choices), a[None], axis=0)[0]
