"""The folder of compiled programs. Programs are compiled in milliseconds here, and none is kept between runs: the folder is remembered, and nothing is written there."""

from __future__ import annotations

from ..._config import config

__all__ = ["get_cache_dir", "is_initialized", "reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | None) -> None:
    """Sets the setting `jax_compilation_cache_dir`. Nothing is written there.

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
    """Whether compiled programs are kept between runs, which they are not.

    Returns:
        False.
    """
    return False


def reset_cache() -> None:
    """Accepted without effect: nothing is kept between runs.

    Returns:
        None.
    """
