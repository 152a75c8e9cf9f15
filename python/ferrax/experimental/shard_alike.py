"""Gives two arrays the same sharding."""

from __future__ import annotations

from typing import Any

from .. import _core

__all__ = ["shard_alike"]


def shard_alike(x: Any, y: Any) -> Any:
    """Declares that two arrays are divided over devices alike. It makes no difference here.

    Args:
        x, y: arrays of one shape.

    Returns:
        (x, y).

    Raises:
        ValueError: their shapes differ.
    """
    a, b = _core.get_aval(x), _core.get_aval(y)
    if len(a.shape) != len(b.shape) or tuple(a.shape) != tuple(b.shape):
        raise ValueError(f"The leaves shapes of `x` and `y` should match. Got `x` leaf shape: {tuple(a.shape)} and `y` leaf shape: {tuple(b.shape)}.")
    return x, y
