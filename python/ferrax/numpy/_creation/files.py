"""Files and text: save, load, array_repr.

Invariant: numpy does the work; bfloat16 and its like survive the round trip.

    >>> jnp.save("x.npy", jnp.arange(3)); jnp.load("x.npy")
    Array([0, 1, 2], dtype=int32)
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.dtypes import is_key

if TYPE_CHECKING:
    from os import PathLike

    from ..._core import Array


# The .npy format has no names for these: such arrays are written as void of their size, and read back by it.
_VOID = {np.dtype("V2"): "bfloat16"}


# Keys are stored as records of their words; the field's name says of which implementation.
_KEY = "prng key "


def _storable(x):
    """An array as NumPy stores it."""
    if not is_key(getattr(x, "dtype", None)):
        return np.asarray(x)
    words = np.asarray(_core.bind("random_unwrap", x))
    return words.reshape(-1).view(np.dtype([(_KEY + x.dtype.name.removeprefix("key<").removesuffix(">"), words.dtype, words.shape[x.ndim :])])).reshape(x.shape)


def _restored(out):
    """The stored keys if the file contains keys; else the array unchanged."""
    if out.dtype.names is None or len(out.dtype.names) != 1 or not out.dtype.names[0].startswith(_KEY):
        return out
    (name,) = out.dtype.names
    return _core.bind("random_wrap", _core.asarray(out[name]), impl=name.removeprefix(_KEY))


class _Archive(np.lib.npyio.NpzFile):
    """The arrays of an .npz file, by name."""

    def __getitem__(self, key):
        return _restored(super().__getitem__(key))


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Writes one array to a .npy file.

    Args:
        file: path or open file.
        arr: array.
        allow_pickle: whether objects may be pickled, as for numpy.save.

    Returns:
        None.

    >>> jnp.save("x.npy", jnp.array([1, 2]))
    >>> jnp.load("x.npy")
    Array([1, 2], dtype=int32)
    """
    np.save(file, _storable(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Writes several arrays to an uncompressed .npz file.

    Args:
        file: path or open file.
        *args, **kwds: arrays; those without a keyword are called arr_0, arr_1, ...
        allow_pickle: whether objects may be pickled, as for numpy.savez.

    Returns:
        None.

    >>> jnp.savez("x.npz", a=jnp.array([1, 2]))
    >>> jnp.load("x.npz")["a"].shape
    (2,)
    """
    np.savez(file, *[_storable(a) for a in args], allow_pickle=allow_pickle, **{k: _storable(v) for k, v in kwds.items()})


def load(file: IO[bytes] | str | PathLike[Any], *args: Any, **kwargs: Any) -> Array:
    """Reads an array from a .npy file, or a mapping of them from an .npz file.

    Args:
        file: path or open file.
        *args, **kwargs: passed to numpy.load.

    Returns:
        Array, or a mapping from names to arrays.

    >>> jnp.save("x.npy", jnp.array([1, 2]))
    >>> jnp.load("x.npy")
    Array([1, 2], dtype=int32)
    """
    out = np.load(file, *args, **kwargs)
    if isinstance(out, np.lib.npyio.NpzFile):
        out.__class__ = _Archive  # NumPy's object, which reads the file; only its results differ
    if isinstance(out, np.ndarray):
        out = _restored(out)
        if isinstance(out, _core.Array):
            return out
        if out.dtype in _VOID:
            import ml_dtypes

            out = out.view(getattr(ml_dtypes, _VOID[out.dtype]))
        return _core.asarray(out)
    return out


def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """numpy.array_repr of the array.

    Args:
        arr: array.
        max_line_width, precision, suppress_small: as for numpy; None: its print options.

    Returns:
        str.

    >>> jnp.array_repr(jnp.array([1.0, 2.5]))
    'array([1. , 2.5], dtype=float32)'
    """
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """numpy.array_str of the array.

    Args:
        a: array.
        max_line_width, precision, suppress_small: as for numpy; None: its print options.

    Returns:
        str.

    >>> jnp.array_str(jnp.arange(2))
    '[0 1]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)
