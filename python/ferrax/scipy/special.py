"""Special functions, elementwise, and the reductions logsumexp and softmax.

Invariant: every function takes arrays and scalars of any numeric dtype, promotes to floating point, and broadcasts.
"""

import fractions
import functools
import math

import numpy as np

from .. import lax
from .. import numpy as jnp
from .._api import jit
from ..custom_derivatives import custom_jvp
from ._incomplete_gamma import incomplete_gamma

__all__ = [
    "bernoulli", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "digamma", "entr", "erf", "erfc", "erfinv", "expit",
    "factorial", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr", "log_softmax",
    "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "poch", "polygamma", "rel_entr", "softmax", "xlog1py", "xlogy", "zeta",
]


def _floats(*xs):
    """The arguments as arrays of one floating-point dtype, of one shape."""
    dtype = jnp.result_type(*xs)
    if not jnp.issubdtype(dtype, np.inexact):
        dtype = jnp.result_type(dtype, float)
    xs = [jnp.asarray(x, dtype) for x in xs]
    return xs[0] if len(xs) == 1 else jnp.broadcast_arrays(*xs)


# ---------------------------------------------------------------- reductions


@functools.partial(jit, static_argnames=("axis", "keepdims", "return_sign"))
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    """log(sum(b * exp(a))), without overflow.

    Args:
      a: an array.
      axis: an axis or a tuple of them; None for all.
      b: weights, of any sign; broadcasts with a.
      keepdims: keep reduced axes with size 1.
      return_sign: also return the sign of the sum (its phase, if complex); otherwise a negative sum gives NaN.
      where: which elements to include.

    Returns:
      the logarithm, or a pair (logarithm of the magnitude, sign). -inf where nothing but -inf is summed; the derivative there is 0.
    """
    if b is None:
        a = _floats(a)
    else:
        a, b = _floats(a, b)
        # A weight of 0 must win over an infinite exponent.
        a = jnp.where(b != 0, a, -jnp.inf)
    top = jnp.max(a.real if jnp.iscomplexobj(a) else a, axis=axis, keepdims=True, where=where, initial=-jnp.inf)
    top = lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0))
    e = jnp.exp(a - top)
    total = jnp.sum(e if b is None else b * e, axis=axis, keepdims=True, where=where)
    sign = _phase(total)
    if return_sign:
        total = jnp.abs(total)
    empty = total == 0
    # The logarithm never sees 0: its infinite slope would turn the zero cotangents of -inf terms into NaN.
    out = jnp.where(empty, -jnp.inf, jnp.log(jnp.where(empty, 1, total)) + top)
    if not keepdims:
        axes = tuple(range(a.ndim)) if axis is None else axis
        out, sign = jnp.squeeze(out, axes), jnp.squeeze(sign, axes)
    return (out, sign) if return_sign else out


def _phase(x):
    if not jnp.iscomplexobj(x):
        return jnp.sign(x)
    size = jnp.abs(x)
    return jnp.where(size == 0, 0, x / jnp.where(size == 0, 1, size))


def softmax(x, axis=None):
    """exp(x) / sum(exp(x)), along an axis; over all elements by default."""
    from ..nn import softmax as nn_softmax
    return nn_softmax(x, axis=axis)


def log_softmax(x, axis=None):
    """The logarithm of softmax, along an axis; over all elements by default."""
    from ..nn import log_softmax as nn_log_softmax
    return nn_log_softmax(x, axis=axis)


# ---------------------------------------------------------------- gamma and its family


def gammaln(x):
    """log |gamma(x)|."""
    return lax.lgamma(_floats(x))


def loggamma(x):
    """The principal branch of log(gamma(x)), for real x: NaN where gamma is negative."""
    x = _floats(x)
    return jnp.where((x < 0) & (gammasgn(x) < 0), jnp.nan, lax.lgamma(x))


def gammasgn(x):
    """The sign of gamma(x): NaN at negative integers, the sign of zero at zero."""
    x = _floats(x)
    floor = jnp.floor(x)
    at_pole = (x < 0) & (x == floor)
    sign = jnp.where((x < 0) & (floor % 2 != 0), -1, 1).astype(x.dtype)
    return jnp.where(at_pole, jnp.nan, jnp.where(x == 0, jnp.where(jnp.signbit(x), -1, 1).astype(x.dtype), sign))


def gamma(x):
    """The gamma function."""
    x = _floats(x)
    return gammasgn(x) * jnp.exp(lax.lgamma(x))


def factorial(n, exact=False):
    """n! = gamma(n + 1); 0 for negative n.

    Raises:
      NotImplementedError: `exact` is asked for; arrays hold no big integers.
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    n = _floats(n)
    return jnp.where(n < 0, 0, jnp.exp(lax.lgamma(n + 1)))


def comb(N, k, *, repetition=False):
    """The binomial coefficient; 0 unless 0 <= k <= N."""
    n, k = _floats(N, k)
    if repetition:
        return jnp.where((n == 0) & (k == 0), 1, comb(n + k - 1, k))
    value = jnp.exp(lax.lgamma(n + 1) - lax.lgamma(k + 1) - lax.lgamma(n - k + 1))
    return jnp.where((k < 0) | (n < 0) | (k > n), 0, value)


def poch(z, m):
    """The rising factorial, gamma(z + m) / gamma(z)."""
    z, m = _floats(z, m)
    return jnp.where(m == 0, 1, gammasgn(z + m) * gammasgn(z) * jnp.exp(lax.lgamma(z + m) - lax.lgamma(z)))


def betaln(a, b):
    """log |beta(a, b)|."""
    a, b = _floats(a, b)
    return lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b)


def beta(a, b):
    """The beta function."""
    a, b = _floats(a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * jnp.exp(betaln(a, b))


def betainc(a, b, x):
    """The regularised incomplete beta function."""
    return lax.betainc(*_floats(a, b, x))


def digamma(x):
    """The logarithmic derivative of gamma."""
    return lax.digamma(_floats(x))


def polygamma(n, x):
    """The n-th derivative of digamma."""
    return lax.polygamma(*_floats(n, x))


def zeta(x, q=None):
    """The Hurwitz zeta function: the sum of (k + q) ** -x over k >= 0; Riemann's, with q = 1, by default."""
    return lax.zeta(*_floats(x, 1.0 if q is None else q))


def gammainc(a, x):
    """The regularised lower incomplete gamma function."""
    return incomplete_gamma(*_floats(a, x), False)


def gammaincc(a, x):
    """The regularised upper incomplete gamma function."""
    return incomplete_gamma(*_floats(a, x), True)


def multigammaln(a, d):
    """The logarithm of the multivariate gamma function of dimension d."""
    a = _floats(a)
    steps = jnp.arange(d, dtype=a.dtype) / 2
    return jnp.sum(lax.lgamma(a[..., None] - steps), axis=-1) + d * (d - 1) / 4 * float(np.log(np.pi))


# ---------------------------------------------------------------- errors and normal probabilities


def erf(x):
    """The error function."""
    return lax.erf(_floats(x))


def erfc(x):
    """1 - erf(x), accurate for large x."""
    return lax.erfc(_floats(x))


def erfinv(x):
    """The inverse of the error function."""
    return lax.erf_inv(_floats(x))


def ndtr(x):
    """The distribution function of the standard normal."""
    x = _floats(x)
    return 0.5 * lax.erfc(-x * x.dtype.type(np.sqrt(0.5)))


def ndtri(p):
    """The inverse of `ndtr`: -inf at 0, inf at 1."""
    p = _floats(p)
    root2 = p.dtype.type(np.sqrt(2))
    # Below one half by symmetry, so that small probabilities keep their precision.
    upper = p > 0.5
    q = jnp.where(upper, 1 - p, p)
    small = _ndtri_tail(jnp.where(q < 1e-3, q, 1e-3))
    x = jnp.where(q < 1e-3, small, root2 * lax.erf_inv(2 * jnp.where(q < 1e-3, 0.25, q) - 1))
    x = jnp.where(upper, -x, x)
    return jnp.where(p == 0, -jnp.inf, jnp.where(p == 1, jnp.inf, jnp.where((p < 0) | (p > 1), jnp.nan, x)))


def _ndtri_tail(q):
    """For small q: a start from the asymptotic expansion, made exact by Newton's method on log_ndtr."""
    t = jnp.sqrt(-2 * jnp.log(jnp.where(q > 0, q, 1e-3)))
    x = -(t - (jnp.log(t) + 0.5 * float(np.log(2 * np.pi))) / t)
    log_q = jnp.log(jnp.where(q > 0, q, 1e-3))
    for _ in range(4):
        log_p = log_ndtr(x)
        x = x - (log_p - log_q) * jnp.exp(log_p + 0.5 * x * x + 0.5 * float(np.log(2 * np.pi)))
    return x


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def log_ndtr(x, series_order=3):
    """log(ndtr(x)), accurate in both tails.

    Args:
      x: an array.
      series_order: terms of the asymptotic series used in the lower tail.
    """
    x = _floats(x)
    upper, lower = (8., -20.) if x.dtype.itemsize == 8 else (5., -10.)
    high = -ndtr(-jnp.maximum(x, upper))
    middle = jnp.log(ndtr(jnp.clip(x, lower, upper)))
    t = jnp.minimum(x, lower)
    series, term = jnp.ones_like(t), jnp.ones_like(t)
    for n in range(1, series_order + 1):
        term = -term * (2 * n - 1) / (t * t)
        series = series + term
    low = -0.5 * t * t - jnp.log(-t) - 0.5 * float(np.log(2 * np.pi)) + jnp.log(series)
    return jnp.where(x > upper, high, jnp.where(x > lower, middle, low))


@log_ndtr.defjvp
def _log_ndtr_jvp(series_order, primals, tangents):
    (x,), (dx,) = primals, tangents
    out = log_ndtr(x, series_order)
    return out, dx * jnp.exp(-0.5 * x * x - 0.5 * float(np.log(2 * np.pi)) - out)


# ---------------------------------------------------------------- logistic, entropies, powers


def expit(x):
    """1 / (1 + exp(-x))."""
    return lax.logistic(_floats(x))


def logit(x):
    """log(x / (1 - x)), the inverse of `expit`."""
    x = _floats(x)
    return jnp.log(x) - jnp.log1p(-x)


@custom_jvp
def xlogy(x, y):
    """x * log(y), 0 where x is 0."""
    x, y = _floats(x, y)
    return jnp.where(x == 0, 0, x * jnp.log(jnp.where(x == 0, 1, y)))


@xlogy.defjvp
def _xlogy_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return xlogy(x, y), dx * jnp.log(y) + jnp.where(x == 0, 0, jnp.divide(x, y)) * dy


@custom_jvp
def xlog1py(x, y):
    """x * log1p(y), 0 where x is 0."""
    x, y = _floats(x, y)
    return jnp.where(x == 0, 0, x * jnp.log1p(jnp.where(x == 0, 0, y)))


@xlog1py.defjvp
def _xlog1py_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return xlog1py(x, y), dx * jnp.log1p(y) + jnp.where(x == 0, 0, jnp.divide(x, 1 + y)) * dy


def entr(x):
    """-x * log(x), 0 at 0, -inf below."""
    x = _floats(x)
    return jnp.where(x < 0, -jnp.inf, -xlogy(x, jnp.where(x < 0, 1, x)))


def rel_entr(p, q):
    """p * log(p / q); 0 where p = 0 <= q, inf outside the domain."""
    p, q = _floats(p, q)
    both, zero = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    safe_p, safe_q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    return jnp.where(zero, 0, jnp.where(both, safe_p * jnp.log(safe_p / safe_q), jnp.inf))


def kl_div(p, q):
    """rel_entr(p, q) - p + q."""
    p, q = _floats(p, q)
    return rel_entr(p, q) - p + q


def boxcox(x, lmbda):
    """(x ** lmbda - 1) / lmbda, log(x) at lmbda = 0."""
    x, lmbda = _floats(x, lmbda)
    zero = lmbda == 0
    return jnp.where(zero, jnp.log(x), jnp.expm1(lmbda * jnp.log(x)) / jnp.where(zero, 1, lmbda))


def boxcox1p(x, lmbda):
    """boxcox(1 + x, lmbda), accurate for small x."""
    x, lmbda = _floats(x, lmbda)
    zero = lmbda == 0
    return jnp.where(zero, jnp.log1p(x), jnp.expm1(lmbda * jnp.log1p(x)) / jnp.where(zero, 1, lmbda))


# ---------------------------------------------------------------- Bessel functions, numbers


def i0e(x):
    """exp(-|x|) times the modified Bessel function of order 0."""
    return lax.bessel_i0e(_floats(x))


def i0(x):
    """The modified Bessel function of order 0."""
    x = _floats(x)
    return jnp.exp(jnp.abs(x)) * lax.bessel_i0e(x)


def i1e(x):
    """exp(-|x|) times the modified Bessel function of order 1."""
    return lax.bessel_i1e(_floats(x))


def i1(x):
    """The modified Bessel function of order 1."""
    x = _floats(x)
    return jnp.exp(jnp.abs(x)) * lax.bessel_i1e(x)


def bernoulli(n):
    """The Bernoulli numbers B_0 to B_n (n an int), B_1 being -1/2; computed exactly, then rounded. Raises ValueError for a negative n."""
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    numbers = [fractions.Fraction(1)]
    for m in range(1, n + 1):
        numbers.append(-sum(math.comb(m + 1, k) * b for k, b in enumerate(numbers)) / (m + 1))
    return jnp.asarray([float(b) for b in numbers])
