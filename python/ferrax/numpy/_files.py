"""Files and text: save, load, array_repr.

Invariant: numpy does the work; bfloat16 and its like survive the round trip.

    >>> jnp.save("x.npy", jnp.arange(3)); jnp.load("x.npy")
    Array([0, 1, 2], dtype=int32)
"""

from __future__ import annotations

import numpy as np

from .. import _core

# The .npy format has no names for these: such arrays are written as void of their size, and read back by it.
_VOID = {np.dtype("V2"): "bfloat16"}


def save(file, arr, allow_pickle=True):
    """Writes one array to a .npy file.

    >>> jnp.save("x.npy", jnp.array([1, 2]))
    >>> jnp.load("x.npy")
    Array([1, 2], dtype=int32)
    """
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file, *args, allow_pickle=True, **kwds):
    """Writes several arrays to an uncompressed .npz file.

    >>> jnp.savez("x.npz", a=jnp.array([1, 2]))
    >>> jnp.load("x.npz")["a"].shape
    (2,)
    """
    np.savez(file, *[np.asarray(a) for a in args], allow_pickle=allow_pickle, **{k: np.asarray(v) for k, v in kwds.items()})


def load(file, *args, **kwargs):
    """Reads an array from a .npy file, or a mapping of them from an .npz file.

    >>> jnp.save("x.npy", jnp.array([1, 2]))
    >>> jnp.load("x.npy")
    Array([1, 2], dtype=int32)
    """
    out = np.load(file, *args, **kwargs)
    if isinstance(out, np.ndarray):
        if out.dtype in _VOID:
            import ml_dtypes

            out = out.view(getattr(ml_dtypes, _VOID[out.dtype]))
        return _core.asarray(out)
    return out


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    """numpy.array_repr of the array.

    >>> jnp.array_repr(jnp.array([1.0, 2.5]))
    'array([1. , 2.5], dtype=float32)'
    """
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    """numpy.array_str of the array.

    >>> jnp.array_str(jnp.arange(2))
    '[0 1]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)
