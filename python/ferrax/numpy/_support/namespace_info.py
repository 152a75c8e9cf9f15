"""Information for libraries that use the array API standard:
`ferrax.numpy.__array_namespace_info__()`.

Invariant: dtypes follow the configuration at the time of the call: 64-bit ones are included with
`jax_enable_x64`.
"""

import numpy as np

from ... import _core
from ..._base.dtypes import canonicalize_dtype

__all__ = ["ArrayNamespaceInfo"]

_SIGNED, _UNSIGNED, _REAL, _COMPLEX = ("int8 int16 int32 int64", "uint8 uint16 uint32 uint64", "float32 float64", "complex64 complex128")
_KINDS = {
    "bool": "bool",
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": f"{_SIGNED} {_UNSIGNED}",
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": f"{_SIGNED} {_UNSIGNED} {_REAL} {_COMPLEX}",
}


class ArrayNamespaceInfo:
    """Capabilities, devices and dtypes, as defined by the array API standard 2024.12."""

    def capabilities(self):
        """Capabilities of the library.

        Shapes that depend on data do not work under `jit`, so they are not listed.
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self):
        """The device of new arrays; None: the configuration's."""
        return None

    def devices(self):
        """All devices, and None for the default one."""
        return [None, *_core.devices()]

    def default_dtypes(self, *, device=None):
        """The default dtypes of each kind. device: has no effect."""
        default = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}
        return {kind: canonicalize_dtype(np.dtype(name)) for kind, name in default.items()}

    def dtypes(self, *, device=None, kind=None):
        """The standard's dtypes that arrays can have, by name.

        Args:
            device: ignored.
            kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
              "complex floating", "numeric", a tuple of these, or None for all.

        Raises:
            ValueError: the kind does not exist.
        """
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else tuple(kind)
        for k in kinds:
            if k not in _KINDS:
                raise ValueError(f"dtypes: kind {k!r} is unknown; the known ones are {', '.join(_KINDS)}")
        names = dict.fromkeys(name for k in kinds for name in _KINDS[k].split())
        found = {name: np.dtype(name) for name in names}
        return {name: dtype for name, dtype in found.items() if canonicalize_dtype(dtype) == dtype}
