"""Random numbers from a generator with state: `rng = stateful_rng(0); rng.normal(size=3)`, which
draws other numbers at each call.

The state is a counter in a `Ref`, folded into a key. Generators are pytrees: `jit` and `vmap` take
them as arguments, and none may be returned.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, numpy as jnp, random as _random
from .._references.functions import new_ref
from ..dtypes import issubdtype, prng_key
from ..tree_util import register_dataclass

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike, DTypeLike

__all__ = ["StatefulPRNG", "stateful_rng"]


def _size(size, *args):
    """The shape of a draw: the requested one, or the broadcast shape of the parameters."""
    if size is None:
        return np.broadcast_shapes(*map(np.shape, args))
    return (operator.index(size),) if isinstance(size, (int, np.number)) else tuple(map(operator.index, size))


@register_dataclass
@dataclasses.dataclass(frozen=True, slots=True)
class StatefulPRNG:
    """A generator of random numbers with state, made by `stateful_rng`.

    >>> rng = stateful_rng(42)
    >>> float(rng.uniform()) != float(rng.uniform())
    True
    """

    _base_key: _core.Array
    _counter: object

    def __post_init__(self):
        # objects that are neither arrays nor numbers are placeholders while a call is traced
        if hasattr(self._base_key, "dtype") and not issubdtype(self._base_key.dtype, prng_key):
            raise ValueError(f"Expected base_key to be a typed PRNG key; got {self._base_key}")
        if isinstance(self._counter, (int, np.generic, np.ndarray, _core.Array)):
            raise ValueError(f"Expected counter to be a scalar integer ref; got {self._counter}")

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key; the state moves on.

        Args:
            shape: int or tuple of ints: how many keys.

        Returns:
            Array of keys of that shape.

        Raises:
            ValueError: the generator was split.
        """
        if self._base_key.shape:
            raise ValueError("cannot operate on split stateful generator")
        key = _random.fold_in(self._base_key, self._counter[...])
        self._counter.addupdate(1)
        shape = _size(shape)
        return _random.split(key, shape) if shape else key

    def random(self, size: int | Sequence[int] | None = None, dtype: DTypeLike = float) -> Array:
        """Floats in [0, 1).

        Args:
            size: int, tuple of ints, or None for a scalar.
            dtype: dtype of the result.

        Returns:
            Array of that shape.
        """
        return _random.uniform(self.key(), shape=_size(size), dtype=dtype)

    def uniform(self, low: ArrayLike = 0, high: ArrayLike = 1, size: int | Sequence[int] | None = None, *, dtype: DTypeLike = float) -> Array:
        """Floats in [low, high).

        Args:
            low: array, lower bounds.
            high: array, upper bounds.
            size: int, tuple of ints, or None for the shape that the bounds broadcast to.
            dtype: dtype of the result.

        Returns:
            Array of that shape.
        """
        return _random.uniform(self.key(), _size(size, low, high), minval=low, maxval=high, dtype=dtype)

    def normal(self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: int | Sequence[int] | None = None, *, dtype: DTypeLike = float) -> Array:
        """Normally distributed numbers.

        Args:
            loc: array, means.
            scale: array, standard deviations.
            size: int, tuple of ints, or None for the shape that the parameters broadcast to.
            dtype: dtype of the result.

        Returns:
            Array of that shape.
        """
        drawn = _random.normal(self.key(), _size(size, loc, scale), dtype)
        return (jnp.asarray(loc) + jnp.asarray(scale) * drawn).astype(dtype)

    def integers(self, low: ArrayLike, high: ArrayLike | None = None, size: int | Sequence[int] | None = None, *, dtype: DTypeLike = int) -> Array:
        """Integers in [low, high), or in [0, low) if `high` is None.

        Args:
            low: array, lower bounds.
            high: array, upper bounds, or None.
            size: int, tuple of ints, or None for the shape that the bounds broadcast to.
            dtype: dtype of the result.

        Returns:
            Array of that shape.
        """
        if high is None:
            low, high = 0, low
        return _random.randint(self.key(), _size(size, low, high), minval=low, maxval=high, dtype=dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Independent generators as one, to be an argument of a function under `vmap`.

        Args:
            num: int or tuple of ints: how many.

        Returns:
            `StatefulPRNG` whose arrays have these leading axes.
        """
        return StatefulPRNG(self.key(num), new_ref(jnp.zeros(num, dtype=int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Independent generators.

        Args:
            n_children: int, how many.

        Returns:
            List of `StatefulPRNG`.
        """
        return [self.__class__(key, new_ref(0)) for key in self.key(n_children)]


def stateful_rng(seed: int | ArrayLike | None = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator of random numbers with state.

    Args:
        seed: integer; None: taken from the operating system, outside of traces only.
        impl: str, which generator of bits; None: the default one.

    Returns:
        `StatefulPRNG`.

    Raises:
        TypeError: no seed, within a trace.

    >>> stateful_rng(42).integers(0, 10, 3).shape
    (3,)
    """
    if seed is None:
        if any(t.what != "eval" for t in _core.traces()):
            raise TypeError("When used within transformed code, jax.experimental.random.stateful_rng() requires an explicit seed to be set.")
        seed = np.int64(np.random.SeedSequence().entropy & np.iinfo(np.int64).max)
    return StatefulPRNG(_random.key(seed, impl=impl), new_ref(0))
