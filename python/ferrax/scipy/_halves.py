"""Half precision, which the functions made of several steps compute in single.

Invariant: a result in half precision is the single-precision one, rounded once. Step by step
exp(25) is infinite in float16 and erfc(5) zero, though their product is neither.

    >>> jax.scipy.special.erfcx(np.float16(5))
    Array(0.1107, dtype=float16)
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import lax
from .._base.dtypes import is_floating
from ..numpy import result_type
from ..numpy._support.arguments import converted

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")


def in_single(f: _F) -> _F:
    """Decorator: f takes arrays of half precision as float32, unless others widen them, and its
    results are converted back.
    """

    @functools.wraps(f)
    def computed(*args, **kwargs):
        args, kwargs = [converted(x) for x in args], {name: converted(x) for name, x in kwargs.items()}
        arrays = [x for x in (*args, *kwargs.values()) if hasattr(x, "dtype")]
        # A Python number is an array under `jit`, and is weak there too.
        if not any(_is_half(x.dtype) for x in arrays) or not _is_half(half := result_type(*arrays)):
            return f(*args, **kwargs)
        wide = lambda x: lax.convert_element_type(x, np.float32) if hasattr(x, "dtype") and x.dtype == half else x
        out = f(*map(wide, args), **{name: wide(x) for name, x in kwargs.items()})
        back = lambda y: lax.convert_element_type(y, half) if y.dtype == np.float32 else y
        return tuple(map(back, out)) if isinstance(out, tuple) else back(out)

    return computed


def _is_half(dtype):
    return dtype.itemsize == 2 and is_floating(dtype)
