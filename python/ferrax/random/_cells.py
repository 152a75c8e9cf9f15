"""Uniform draws for functions that are infinite or steep at 0 or 1.

Invariant: the numbers are those of `uniform` except for the first and the last cell of its grid,
where they are finer: one point would be the whole cell.

    Cells(key, shape, dtype).log() is finite, and -log(1 - u) never 0
"""

import numpy as np

from .. import lax, numpy as jnp
from ._uniform import _random_bits, between, unit_and_rest


def scalar(x, dtype):
    """A scalar of a dtype."""
    return np.asarray(x, dtype)[()]


class Cells:
    """Uniform draws u: `unit` in [0, 1) on the grid of multiples of `eps`, `rest` in (0, 1) from
    their further bits, `first` and `last` where in those cells.
    """

    def __init__(self, key, shape, dtype):
        self.unit, self.rest = unit_and_rest(key, shape, dtype)
        self.eps = scalar(jnp.finfo(dtype).eps, dtype)
        self.first, self.last = lax.eq(self.unit, scalar(0, dtype)), lax.eq(self.unit, scalar(1 - self.eps, dtype))
        self.dtype = dtype

    def above_0(self, u):
        """u, or in the first cell the finer number."""
        return lax.select(self.first, lax.mul(self.rest, self.eps), u)

    def below_1(self):
        """1 less the finer number, for draws in the last cell."""
        return lax.mul(self.eps, lax.sub(scalar(1, self.dtype), self.rest))

    def log(self, u=None):
        """The logarithm of the draws, or of u, to which they were moved."""
        d = self.below_1()
        near_1 = lax.neg(lax.add(d, lax.mul(scalar(0.5, self.dtype), lax.mul(d, d))))
        return lax.select(self.last, near_1, lax.log(self.above_0(self.unit if u is None else u)))

    def log_left(self):
        """log(1 - u)."""
        # In the last cell 1 - u = epsilon (1 - rest).
        y = lax.log1p(lax.neg(lax.select(self.last, self.rest, self.above_0(self.unit))))
        return lax.select(self.last, lax.add(y, scalar(np.log(float(self.eps)), self.dtype)), y)

    def left(self):
        """1 - u."""
        return lax.select(self.last, self.below_1(), lax.sub(scalar(1, self.dtype), self.unit))

    def open_unit(self):
        """Uniform in [tiny, 1)."""
        tiny, one = (scalar(x, self.dtype) for x in (jnp.finfo(self.dtype).tiny, 1))
        return between(self.unit, tiny, one)


def gumbel_of_64_bits(key, shape):
    """Draws from the nearer end of the interval, where 64 bits have as many digits as float32
    holds: -log(-log(x)) of x or of 1 - x.
    """
    high, low = _random_bits(key, 32, (2, *shape))
    near_0 = lax.lt(high, np.uint32(1 << 31))
    carry = lax.eq(low, np.uint32(0)).astype(np.uint32)
    from_1 = lax.add(lax.bitwise_not(high), carry), lax.add(lax.bitwise_not(low), np.uint32(1))
    x = _fraction(lax.select(near_0, high, from_1[0]), lax.select(near_0, low, from_1[1]))
    minus_log = lax.neg(lax.select(near_0, lax.log1p(lax.neg(x)), lax.log(x)))
    return lax.neg(lax.log(minus_log))


def _fraction(high, low):
    """The float32 number in [0, 1) of 64 bits after the point, rounded down."""
    u = lambda n: np.uint32(n)
    empty = lax.eq(high, lax.full_like(high, 0))
    n_high, n_low = lax.clz(high), lax.clz(low)
    joined = lax.bitwise_or(lax.shift_left(high, n_high), lax.shift_right_logical(low, lax.sub(u(32), n_high)))
    digits = lax.select(empty, lax.shift_left(low, n_low), joined)
    n_zeros = lax.select(empty, lax.add(u(32), n_low), n_high)
    mantissa = lax.bitwise_and(lax.shift_right_logical(digits, u(8)), u((1 << 23) - 1))
    exponent = lax.shift_left(lax.sub(u(126), n_zeros), u(23))
    return lax.bitcast_convert_type(lax.bitwise_or(exponent, mantissa), np.float32)
