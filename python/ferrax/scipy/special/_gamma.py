"""The gamma function and its family: factorials, beta and incomplete functions, polygamma, zeta,
Bernoulli numbers.

Invariant: bool and integers become the default float; logarithms are used where the function itself
would overflow.

    >>> gamma(5.0)
    Array(24., dtype=float32)
"""

from __future__ import annotations

import fractions
import math
from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ...numpy._support.arguments import Array, broadcast_together, promote_inexact
from .._domains import nan_outside
from .._halves import in_single
from ._arguments import _floats, _of_floats, _reals
from ._complex_gamma import log_gamma as complex_log_gamma

if TYPE_CHECKING:
    from ...typing import ArrayLike

# ---------------------------------------------------------------- gamma and its family


def gammaln(x: ArrayLike) -> Array:
    """log |gamma(x)|.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> gammaln(jnp.array([1.0, 5.0]))
    Array([0.       , 3.1780539], dtype=float32)
    """
    return _of_floats("gammaln", "lgamma", x)


def loggamma(x: ArrayLike) -> Array:
    """log(gamma(x)): for real x NaN below 0; for complex x the branch that is continuous off the
    negative reals.

    Args:
        x: array or number, real or complex.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is not an array or number.

    >>> loggamma(jnp.array([1.0, 5.0]))
    Array([0.       , 3.1780539], dtype=float32)
    """
    x = _floats("loggamma", x)
    if x.dtype.kind == "c":
        return complex_log_gamma(x)
    return jnp.where(x < 0, jnp.nan, lax.lgamma(x))


def gammasgn(x: ArrayLike) -> Array:
    """The sign of gamma(x): NaN at negative integers, the sign of zero at zero.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is not an array or number.
        ValueError: x is complex.

    >>> gammasgn(jnp.array([1.5, -0.5, -1.5]))
    Array([ 1., -1.,  1.], dtype=float32)
    """
    x = _reals("gammasgn", x)
    floor = jnp.floor(x)
    at_pole = (x < 0) & (x == floor)
    sign = jnp.where((x < 0) & (floor % 2 != 0), -1, 1).astype(x.dtype)
    return jnp.where(at_pole | jnp.isnan(x), jnp.nan, jnp.where(x == 0, jnp.where(jnp.signbit(x), -1, 1).astype(x.dtype), sign))


@in_single
def gamma(x: ArrayLike) -> Array:
    """The gamma function of real or complex x: NaN at its poles, but the infinities at 0 and -0.

    Args:
        x: array or number, real or complex.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is not an array or number.

    >>> gamma(jnp.array([5.0, 0.5]))
    Array([24.       ,  1.7724538], dtype=float32)
    """
    x = _floats("gamma", x)
    if x.dtype.kind == "c":
        return jnp.exp(complex_log_gamma(x))
    return gammasgn(x) * jnp.exp(lax.lgamma(x))


@in_single
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n! = gamma(n + 1); 0 for negative n.

    Args:
        n: array or number, real.
        exact: must be False.

    Returns:
        Array of n's shape, float.

    Raises:
        NotImplementedError: `exact` is requested; arrays cannot contain big integers.

    >>> factorial(jnp.array([0, 3, 5]))
    Array([  1.     ,   6.     , 120.00001], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    n = _floats("factorial", n)
    return jnp.where(n < 0, 0, jnp.exp(lax.lgamma(n + 1)))


@in_single
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The binomial coefficient; 0 unless 0 <= k <= N.

    Args:
        N, k: arrays or numbers that broadcast, real.
        repetition: bool; count choices that may repeat.

    Returns:
        Float array of the broadcast shape.

    Raises:
        TypeError: an argument is complex.

    >>> comb(5, jnp.array([0, 2, 6]))
    Array([ 1.      , 10.000001,  0.      ], dtype=float32)
    """
    n, k = _floats("comb", N, k)
    if repetition:
        return jnp.where((n == 0) & (k == 0), 1, comb(n + k - 1, k))
    inside = (k >= 0) & (n >= 0) & (k <= n)
    # 1 / ((n + 1) B(k + 1, n - k + 1)): no difference of large logarithms.
    value = jnp.exp(-betaln(jnp.where(inside, k, 0) + 1, jnp.where(inside, n - k, 0) + 1)) / (jnp.where(inside, n, 0) + 1)
    return jnp.where(jnp.isnan(n + k), np.nan, jnp.where(inside, value, 0))


@in_single
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """The rising factorial, gamma(z + m) / gamma(z).

    Args:
        z, m: arrays or numbers that broadcast, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        ValueError: an argument is complex.

    >>> poch(3.0, jnp.array([0.0, 2.0]))
    Array([ 1., 12.], dtype=float32)
    """
    z, m = _reals("jnp.poch", z, m)
    plain = gammasgn(z + m) * gammasgn(z) * jnp.exp(lax.lgamma(z + m) - lax.lgamma(z))
    # gamma(m) / B(z, m): no difference of large logarithms.
    large, down = (z > 10) & (m > 0), (m < 0) & (z + m > 10)
    p, q = jnp.where(large, z, jnp.where(down, z + m, 10)), jnp.where(large | down, abs(m), 1)
    log = lax.lgamma(q) - betaln(p, q)
    return jnp.where(m == 0, 1, jnp.where(large | down, jnp.exp(jnp.where(down, -log, log)), plain))


def _stirling_error(x):
    """lgamma(x) less (x - 1/2) log(x) - x + log(2 pi) / 2, for x >= 10 (DLMF 5.11.1)."""
    inverse = 1 / x
    square = inverse * inverse
    series = 1 / 156
    for c in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = series * square + c
    return series * inverse


@in_single
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """log |beta(a, b)|, without cancellation where an argument is large (Didonato and Morris 1992,
    Algorithm 708).

    Args:
        a, b: arrays or numbers that broadcast, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        TypeError: an argument is complex.

    >>> betaln(jnp.array([1.0, 2.0]), 3.0)
    Array([-1.0986123, -2.4849067], dtype=float32)
    """
    a, b = _floats("betaln", a, b)
    plain = lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b)
    if a.dtype.kind == "c":
        return plain
    large = (jnp.maximum(a, b) >= 10) & (jnp.minimum(a, b) > 0) & jnp.isfinite(a + b)
    p, q = jnp.where(large, jnp.minimum(a, b), 10), jnp.where(large, jnp.maximum(a, b), 10)
    ratio = jnp.log1p(p / q)
    # lgamma(q) - lgamma(p + q), and lgamma(p) likewise where it has its expansion too.
    one = lax.lgamma(p) - (q - 0.5) * ratio - p * (jnp.log(p + q) - 1) + _stirling_error(q) - _stirling_error(p + q)
    r = jnp.maximum(p, 10)
    errors = _stirling_error(r) + _stirling_error(q) - _stirling_error(r + q)
    both = 0.5 * (float(np.log(2 * np.pi)) - jnp.log(r)) - r * jnp.log1p(q / r) - (q - 0.5) * ratio + errors
    return jnp.where(large, jnp.where(p < 10, one, both), plain)


@in_single
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function.

    Args:
        a, b: arrays or numbers that broadcast, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        ValueError: an argument is complex.

    >>> beta(jnp.array([1.0, 2.0]), 3.0)
    Array([0.33333334, 0.08333334], dtype=float32)
    """
    a, b = _reals("beta", a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * jnp.exp(betaln(a, b))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function.

    Args:
        a, b, x: arrays or numbers that broadcast, real; x in [0, 1].

    Returns:
        Float array of the broadcast shape.

    Raises:
        ValueError: an argument is complex.

    >>> betainc(2.0, 3.0, jnp.array([0.0, 0.5, 1.0]))
    Array([0.    , 0.6875, 1.    ], dtype=float32)
    """
    return lax.betainc(*broadcast_together(*_reals("betainc", a, b, x)))


def digamma(x: ArrayLike) -> Array:
    """The logarithmic derivative of gamma.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or not an array or number.

    >>> digamma(jnp.array([1.0, 2.0]))
    Array([-0.5772156 ,  0.42278433], dtype=float32)
    """
    return _of_floats("digamma", "digamma", x)


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of digamma.

    Args:
        n: array or number of integers.
        x: array or number that broadcasts with n, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        ValueError: n does not have an integer dtype, or x is complex.

    >>> polygamma(1, jnp.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    kind = n.dtype if isinstance(n, Array) else jnp.result_type(n)
    if not jnp.issubdtype(kind, np.integer):
        raise ValueError(f"Argument `n` to polygamma must be of integer type. Got dtype {kind}.")
    return lax.polygamma(*broadcast_together(*_reals("polygamma", n, x)))


@in_single
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function: the sum of (k + q) ** -x over k >= 0; Riemann's, with q = 1, by
    default.

    Args:
        x: array or number, real.
        q: array or number that broadcasts with x, real; None: 1.

    Returns:
        Float array of the broadcast shape.

    Raises:
        TypeError: an argument is complex.

    >>> zeta(2.0, jnp.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    x, q = _floats("zeta", x, 1.0 if q is None else q)
    y = lax.zeta(x, q)
    return nan_outside(~jnp.isnan(y), y, x, q)


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised lower incomplete gamma function.

    Args:
        a, x: arrays or numbers that broadcast, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        TypeError: an argument is complex.

    >>> gammainc(2.0, jnp.array([0.0, 2.0]))
    Array([0.       , 0.5939942], dtype=float32)
    """
    return lax.igamma(*_floats("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised upper incomplete gamma function.

    Args:
        a, x: arrays or numbers that broadcast, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        TypeError: an argument is complex.

    >>> gammaincc(2.0, jnp.array([0.0, 2.0]))
    Array([1.       , 0.4060058], dtype=float32)
    """
    return lax.igammac(*_floats("gammaincc", a, x))


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """The logarithm of the multivariate gamma function of dimension d.

    Args:
        a: array or number, real.
        d: int, the dimension.

    Returns:
        Float array of a's shape.

    >>> multigammaln(jnp.array([3.0]), 2)
    Array([1.550195], dtype=float32)
    """
    a, _ = promote_inexact("multigammaln", a, d)
    d = int(d)
    steps = jnp.arange(d, dtype=a.dtype) / 2
    return jnp.sum(lax.lgamma(a[..., None] - steps), axis=-1) + d * (d - 1) / 4 * float(np.log(np.pi))


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B_0 to B_n (n an int), B_1 being -1/2; computed exactly, then rounded.

    Args:
        n: int, not negative.

    Returns:
        Vector of n + 1 floats.

    Raises:
        ValueError: for a negative n.

    >>> bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],
          dtype=float32)
    """
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    numbers = [fractions.Fraction(1)]
    for m in range(1, n + 1):
        numbers.append(-sum(math.comb(m + 1, k) * b for k, b in enumerate(numbers)) / (m + 1))
    return jnp.asarray([float(b) for b in numbers])
