"""`jax._src.numpy.util`: how functions of arrays read their arguments.

Invariant: errors have the same text as those of `ferrax.numpy`'s own functions.
"""

import numpy as np

from .... import _core, numpy
from ...._base.dtypes import is_inexact, is_key, to_complex, to_inexact
from ....numpy._support.arguments import check_arraylike

__all__ = [
    "check_arraylike",
    "check_arraylike_or_none",
    "check_for_prngkeys",
    "check_no_float0s",
    "ensure_arraylike",
    "ensure_arraylike_tuple",
    "promote_args",
    "promote_args_complex",
    "promote_args_inexact",
    "promote_args_numeric",
    "promote_dtypes",
    "promote_dtypes_complex",
    "promote_dtypes_inexact",
    "promote_dtypes_numeric",
    "promote_shapes",
]


def check_arraylike_or_none(fun_name, *args):
    """Raises an error for a value that is neither an array nor None."""
    check_arraylike(fun_name, *(a for a in args if a is not None))


def check_no_float0s(fun_name, *args):
    """Refuses tangents of integers.

    Raises:
        TypeError: an argument is one.
    """
    if any(getattr(a, "dtype", None) == np.dtype([("float0", "V")]) for a in args):
        raise TypeError(
            f"Called {fun_name} with a float0 array. float0s do not support any operations by design, because they are not compatible with non-trivial vector spaces."
        )


def check_for_prngkeys(fun_name, *args):
    """Refuses keys.

    Raises:
        TypeError: an argument is a key.
    """
    found = [a for a in args if is_key(getattr(a, "dtype", None))]
    if found:
        raise TypeError(f"{fun_name} does not accept dtype {found[0].dtype}.")


def ensure_arraylike(fun_name, *args):
    """The arguments as arrays: one, or a tuple."""
    check_arraylike(fun_name, *args)
    arrays = tuple(_core.asarray(a) for a in args)
    return arrays[0] if len(arrays) == 1 else arrays


def ensure_arraylike_tuple(fun_name, tup):
    """The items as arrays."""
    check_arraylike(fun_name, *tup)
    return tuple(_core.asarray(a) for a in tup)


def promote_shapes(fun_name, *args):
    """Arrays of one rank: with axes of size 1 before their own."""
    rank = max((np.ndim(a) for a in args), default=0)
    return [a if np.ndim(a) in (0, rank) else numpy.reshape(a, (1,) * (rank - np.ndim(a)) + np.shape(a)) for a in args]


def _as(dtype, weak, args):
    return [_core.bind("convert_element_type", _core.asarray(a), new_dtype=np.dtype(dtype), weak_type=weak, sharding=None) for a in args]


def _promoted(args, change=lambda dtype: dtype):
    dtype = change(_core.result_type(*args))
    weak = all(_core.get_aval(a).weak_type for a in args)
    return _as(dtype, weak and change(dtype) == dtype and dtype == _core.result_type(*args), args)


def promote_dtypes(*args):
    """Arrays of one dtype."""
    return list(args) if not args else _promoted(args)


def promote_dtypes_inexact(*args):
    """Arrays of one floating dtype."""
    return _promoted(args, lambda d: d if is_inexact(d) else to_inexact(d))


def promote_dtypes_numeric(*args):
    """Arrays of one dtype other than bool."""
    return _promoted(args, lambda d: np.dtype(np.int32) if d == np.bool_ else d)


def promote_dtypes_complex(*args):
    """Arrays of one complex dtype."""
    return _promoted(args, to_complex)


def promote_args(fun_name, *args):
    """Arrays of one dtype and rank."""
    check_arraylike(fun_name, *args)
    return promote_shapes(fun_name, *promote_dtypes(*args))


def promote_args_inexact(fun_name, *args):
    """Arrays of one floating dtype and one rank."""
    check_arraylike(fun_name, *args)
    return promote_shapes(fun_name, *promote_dtypes_inexact(*args))


def promote_args_numeric(fun_name, *args):
    """Arrays of one dtype other than bool, and of one rank."""
    check_arraylike(fun_name, *args)
    return promote_shapes(fun_name, *promote_dtypes_numeric(*args))


def promote_args_complex(fun_name, *args):
    """Arrays of one complex dtype and one rank."""
    check_arraylike(fun_name, *args)
    return promote_shapes(fun_name, *promote_dtypes_complex(*args))
