"""`jax._src.lib`: versions of jaxlib.

Invariant: they are those of the release that is followed.
"""

from .._distributions import FOLLOWS_JAXLIB

__all__ = ["ifrt_programs", "ifrt_version", "jaxlib_extension_version", "version", "version_str"]


version_str, jaxlib_extension_version, ifrt_version = FOLLOWS_JAXLIB, 446, 61
version = tuple(map(int, FOLLOWS_JAXLIB.split(".")))
ifrt_programs = None  # there are no programs of another runtime
