"""Choosing between arrays: where, select, piecewise, choose.

Invariant: everything ends in select_n; branches are all computed.

    >>> jnp.select([jnp.array([True, False])], [1], 2)
    Array([1, 2], dtype=int32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import _core
from .._base.dtypes import is_bool, is_integer
from .._base.shapes import common_shape
from .._base.tracebacks import api_boundary
from .._core import bind
from . import _selecting
from ._arguments import (
    Array,
    as_array,
    broadcast_constant,
    broadcast_together,
    check_arraylike,
    check_promotion,
    concrete_or_error,
    constant,
    convert,
    shape_of,
    unsupported,
)
from ._arithmetic import remainder
from ._creation import array
from ._cumulative import cumsum
from ._filling import full_like
from ._joining import concatenate, stack
from ._reductions import argmax
from ._searching import nonzero
from ._selecting import clip
from ._taking import take_along_axis

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..typing import ArrayLike


@overload
def where(
    condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> tuple[Array, ...]: ...


@overload
def where(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> Array: ...


def where(
    condition: ArrayLike, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> Any:
    """x where `condition` holds, else y.

    With only `condition`, the indices where it holds. Both x and y are computed; elements
    that are not chosen do not contribute to derivatives, even if they are nan or infinite.

    Args:
        condition: array of bool; other dtypes are compared with 0.
        x, y: arrays that broadcast with it, both or neither.
        size: int: how many indices are returned, static and needed under jit; None: all.
        fill_value: index that pads up to `size`, or a tuple with one for each axis; None: 0.

    Returns:
        Array of the broadcast shape and of the dtype that x and y promote to; without x and y, a tuple of integer vectors, one for each axis.

    Raises:
        ValueError: for `size` or `fill_value` with x and y.
        TypeError: if only one of x and y is given.

    >>> jnp.where(jnp.array([True, False]), 1, 2)
    Array([1, 2], dtype=int32, weak_type=True)
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        check_arraylike("where", condition, x, y)
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    return _selecting.where(condition, x, y)


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
    *choices, default = _core.promote_dtypes(*choicelist, default)
    shape = common_shape(*[shape_of(v) for v in (*condlist, *choices, default)])
    parts = [_core.broadcast_to(v, shape) for v in (*condlist, *choices, default)]
    conditions, choices = parts[: len(condlist)], parts[len(condlist) : -1]
    # Index 0 is the default; a row of falses in front makes argmax fall back to it.
    nothing = broadcast_constant(np.bool_(False), shape)
    which = argmax(stack([nothing, *conditions]), axis=0)
    return bind("select_n", which, parts[-1], *choices)


@api_boundary
def piecewise(x: ArrayLike, condlist: Array | Sequence[ArrayLike], funclist: list[ArrayLike | Callable[..., Array]], *args: Any, **kw: Any) -> Array:
    """A piecewise function: funclist[i](x, *args, **kw) where condlist[i] holds. Every function is applied to all of x.

    Args:
        x: array of numbers.
        condlist: sequence of arrays of bool, or an array of bool; where several hold, the last is used.
        funclist: sequence of functions or numbers, one for each condition and, optionally, one for elements where none holds (default 0).
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
