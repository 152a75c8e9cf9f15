"""The folder of compiled programs. Programs are compiled in milliseconds here, and none is kept between runs: the folder is remembered, and nothing is written there."""

from ..._config import config

__all__ = ["get_cache_dir", "is_initialized", "reset_cache", "set_cache_dir"]


def set_cache_dir(path):
    """Sets `jax_compilation_cache_dir`."""
    config.update("jax_compilation_cache_dir", path)


def get_cache_dir():
    """`jax_compilation_cache_dir`."""
    return config.jax_compilation_cache_dir


def is_initialized():
    """Whether programs are kept: they are not."""
    return False


def reset_cache():
    """Forgets what is kept: nothing is."""
