"""The interface of the persistent compilation cache.

Compilation takes milliseconds, so nothing is stored between runs: the folder is only remembered.
"""

from __future__ import annotations

from ..._base.config import config

__all__ = ["get_cache_dir", "is_initialized", "reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | None) -> None:
    """Sets the option `jax_compilation_cache_dir`. Nothing is written to the folder.

    Args:
        path: str, a folder.

    Returns:
        None.
    """
    config.update("jax_compilation_cache_dir", path)


def get_cache_dir() -> str | None:
    """The setting `jax_compilation_cache_dir`.

    Returns:
        str or None.
    """
    return config.jax_compilation_cache_dir


def is_initialized() -> bool:
    """Whether compiled programs are stored between runs; always False.

    Returns:
        False.
    """
    return False


def reset_cache() -> None:
    """Accepted without effect: nothing is stored between runs.

    Returns:
        None.
    """
