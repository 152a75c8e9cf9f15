"""The number of threads of the CPU backend: a setting of the process, on which no result depends.

with set_num_threads(1): ...
"""

from __future__ import annotations

import operator
from typing import Self, SupportsIndex

from .. import _core

_MOST_THREADS = 1024


def num_threads() -> int:
    """How many threads a large operation on the CPU is spread over.

    Without `set_num_threads`, FERRAX_NUM_THREADS or one for each core.

    Returns:
        int.

    >>> jax.num_threads() >= 1
    True
    """
    return _core.num_threads()


class set_num_threads:
    """Sets how many threads a large operation on the CPU is spread over, for the whole process; as
    a context manager, until the block ends.

    Results do not depend on it. Running programs use the new number from their next operation on.
    Blocks of
    several Python threads share the one number: each puts back the one that it found.

    Args:
        n: from 1 to 1024, or None for the default: FERRAX_NUM_THREADS, else one for each core.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: there are fewer or more.

    >>> with jax.set_num_threads(1): jax.num_threads()
    1
    """

    __slots__ = ("_before",)

    def __init__(self, n: SupportsIndex | None = None) -> None:
        if n is not None:
            if isinstance(n, bool):
                raise TypeError(f"set_num_threads requires an integer or None, got {n!r}")
            try:
                n = operator.index(n)
            except TypeError:
                raise TypeError(f"set_num_threads requires an integer or None, got {n!r}") from None
            if not 1 <= n <= _MOST_THREADS:
                raise ValueError(f"set_num_threads requires 1 to {_MOST_THREADS} threads, got {n}")
        self._before = _core.num_threads()
        _core.set_num_threads(n or 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        _core.set_num_threads(self._before)
