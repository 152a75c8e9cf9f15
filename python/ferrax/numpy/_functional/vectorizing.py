"""Lifting functions over axes: vectorize, apply_along_axis, apply_over_axes.

Invariant: everything is built from `vmap`; no Python code loops over elements.

    >>> jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones((3, 4)), jnp.ones(4))
    Array([4., 4., 4.], dtype=float32)
"""

from __future__ import annotations

import functools
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.shapes import canonicalize_axis, common_shape
from ..._base.tracebacks import api_boundary
from ..._core import bind
from ..._tracing.picklable import restorable
from ..._transforms.vmap import vmap
from ...tree_util import tree_map
from .._manipulation.shaping import expand_dims
from .._support.arguments import as_array, check_arraylike

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core import Array
    from ...typing import ArrayLike


_NAME = r"\w+"
_AXES = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_SIGNATURE = re.compile(rf"^{_AXES}(?:,{_AXES})*->(?:{_AXES}(?:,{_AXES})*)?$")


def _parse_signature(signature):
    signature = re.sub(r"\s+", "", signature)
    if not _SIGNATURE.match(signature):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    left, right = signature.split("->")
    read = lambda side: [tuple(re.findall(_NAME, part)) for part in re.findall(_AXES, side)]
    return read(left), read(right)


def vectorize(pyfunc: Any, *, excluded: Any = frozenset(), signature: Any = None) -> Callable[..., Any]:
    """A function over broadcast leading axes of its arguments.

    Args:
        pyfunc: function of arrays.
        excluded: set of positions and names of arguments that are passed unchanged.
        signature: core axes, as in "(m,n),(n)->(m)"; None: scalars.

    Returns:
        Function of arrays that broadcast.

    Raises:
        TypeError: if `excluded` contains anything but ints and strings.
        ValueError: for negative positions and, when called, where shapes contradict the signature.

    >>> jnp.vectorize(lambda x, y: x @ y, signature="(n),(n)->()")(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(f"jax.numpy.vectorize can only exclude integer or string arguments, but excluded={set(excluded)!r}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={set(excluded)!r} contains negative numbers")
    parsed = None if signature is None else _parse_signature(signature)

    @restorable(vectorize, pyfunc, excluded=excluded, signature=signature)
    @functools.wraps(pyfunc)
    def wrapped(*args, **kwargs):
        error = f"on vectorized function with excluded={excluded!r} and signature={signature!r}"
        by_name = {k: v for k, v in kwargs.items() if k in excluded}
        mapped_kwargs = {k: v for k, v in kwargs.items() if k not in excluded}
        fixed = {i: a for i, a in enumerate(args) if i in excluded}
        mapped = [a for i, a in enumerate(args) if i not in excluded]
        names = list(mapped_kwargs)
        mapped += [mapped_kwargs[k] for k in names]

        def fun(*arrays):
            arrays = list(arrays)
            kw = dict(zip(names, arrays[len(arrays) - len(names) :], strict=True)) if names else {}
            positional = iter(arrays[: len(arrays) - len(names)] if names else arrays)
            full = [fixed[i] if i in fixed else next(positional) for i in range(len(args))]
            return pyfunc(*full, **kw, **by_name)

        check_arraylike("vectorize", *mapped)
        arrays = [_core.asarray(a) for a in mapped]
        if parsed is not None:
            ins, outs = parsed
            if len(ins) != len(arrays):
                raise TypeError(f"wrong number of positional arguments: expected {len(ins)}, got {len(arrays)}")
        else:
            ins, outs = [()] * len(arrays), None
        sizes, lead_shapes = {}, []
        for a, core in zip(arrays, ins, strict=True):
            if a.ndim < len(core):
                raise ValueError(f"input with shape {tuple(a.shape)} does not have enough dimensions for all core dimensions {core} {error}")
            for name, n in zip(core, a.shape[a.ndim - len(core) :], strict=True):
                _check_size(sizes, name, n, error)
            lead_shapes.append(tuple(a.shape[: a.ndim - len(core)]))
        if len({len(s) for s in lead_shapes if s}) > 1:
            _promoting_ranks([tuple(a.shape) for a in arrays], signature)
        lead = common_shape(*lead_shapes) if lead_shapes else ()
        checked = fun if outs is None else _checked(fun, outs, sizes, error)
        # Axes of size 1 are squeezed away and left unmapped rather than repeated.
        kept = []
        for a, shape in zip(arrays, lead_shapes, strict=True):
            ones = tuple([d for d, n in enumerate(shape) if n == 1])
            kept.append(bind("squeeze", a, dimensions=ones) if ones else a)
        lifted = checked
        expand = []
        for d in range(1, len(lead) + 1):
            in_axes = [0 if len(s) >= d and s[-d] != 1 else None for s in lead_shapes]
            if all(axis is None for axis in in_axes):
                expand.append(len(lead) - d)
            else:
                lifted = vmap(lifted, in_axes=tuple(in_axes), out_axes=0)
        out = lifted(*kept)
        if not expand:
            return out

        return tree_map(lambda x: expand_dims(x, tuple(expand)), out)

    return wrapped


def _promoting_ranks(shapes, signature):
    """Warns or raises ValueError, as jax_numpy_rank_promotion says."""
    mode = _core.config_get("jax_numpy_rank_promotion") if _core.called_by_user() else "allow"
    message = (
        f"operands with shapes {shapes} require rank promotion for jnp.vectorize function with signature {signature}. Set the "
        "jax_numpy_rank_promotion config option to 'allow' to disable this message; for more information, see "
        "https://docs.jax.dev/en/latest/rank_promotion_warning.html."
    )
    if mode == "raise":
        raise ValueError(message)
    if mode == "warn":
        warnings.warn(message, stacklevel=3)


def _check_size(sizes, name, n, error):
    # Digits are names like any other: in the signatures of JAX and of `numpy.vectorize`, `(3)` does not require size 3.
    if sizes.setdefault(name, n) != n:
        raise ValueError(f"inconsistent size for core dimension {name!r}: {n} vs {sizes[name]} {error}")


def _checked(fun, outs, sizes, error):
    def wrapped(*args):
        out = fun(*args)
        if len(outs) > 1 and not isinstance(out, tuple):
            raise TypeError(f"output must be a tuple when multiple outputs are expected, got: {out}\n{error}")
        results = out if isinstance(out, tuple) else (out,)
        if len(results) != len(outs):
            raise TypeError(f"wrong number of output arguments: expected {len(outs)}, got {len(results)} {error}")
        known = dict(sizes)
        for x, core in zip(results, outs, strict=True):
            if np.ndim(x) != len(core):
                raise ValueError(f"output shape {np.shape(x)} does not match core dimensions {core} {error}")
            for name, n in zip(core, np.shape(x), strict=True):
                _check_size(known, name, n, error)
        return out

    return wrapped


@api_boundary
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """A function of every vector of arr along an axis.

    Args:
        func1d: function of a vector.
        axis: int.
        arr: array of rank 1 or more.
        *args, **kwargs: passed to func1d.

    Returns:
        Array with the axes of func1d's result in place of `axis`.

    >>> jnp.apply_along_axis(jnp.sum, 1, jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    arr = as_array("apply_along_axis", arr)
    axis = canonicalize_axis(axis, arr.ndim)
    fun = lambda v: func1d(v, *args, **kwargs)
    for d in range(1, arr.ndim - axis):
        fun = vmap(fun, in_axes=d, out_axes=-1)
    for _ in range(axis):
        fun = vmap(fun, in_axes=0, out_axes=0)
    return fun(arr)


@api_boundary
def apply_over_axes(func: Callable[[ArrayLike, int], Array], a: ArrayLike, axes: Sequence[int]) -> Array:
    """func(a, axis) over several axes in turn, each kept with size 1.

    Args:
        func: function of an array and an axis, such as jnp.sum.
        a: array.
        axes: int or sequence of ints.

    Returns:
        Array of a's rank.

    Raises:
        ValueError: where func changes the rank by more than that axis.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])
    Array([[6.]], dtype=float32)
    """
    a = as_array("apply_over_axes", a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        b = func(a, axis=axis)
        if b.ndim == a.ndim:
            a = b
        elif b.ndim == a.ndim - 1:
            a = expand_dims(b, axis)
        else:
            raise ValueError("function is not returning an array of the correct shape")
    return a
