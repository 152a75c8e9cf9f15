"""Special functions, elementwise, and the reductions logsumexp and softmax.

Invariant: every function takes arrays and numbers of any real dtype (of a complex one where its documentation says so), promotes to floating
point, and broadcasts. Lists and other types raise TypeError, complex operands TypeError or ValueError.
"""

import fractions
import functools
import math

import numpy as np

from .. import lax, numpy as jnp
from .._api import jit
from ..custom_derivatives import SymbolicZero, custom_jvp
from ..numpy._arguments import Array, as_floats, broadcast_together, pointwise, promote_inexact
from . import _softmax
from ._bessel import bessel_jn, sph_harm_y
from ._complex_gamma import log_gamma as complex_log_gamma
from ._error_functions import dawsn, erfcx, log_ndtr, owens_t, wofz
from ._halves import in_single
from ._hypergeometric import hyp1f1, hyp2f1
from ._integrals import exp1, expi, expn, fresnel, sici, spence
from ._legendre import lpmn, lpmn_values

__all__ = [
    "bernoulli",
    "bessel_jn",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "expn",
    "factorial",
    "fresnel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "hyp1f1",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "lpmn",
    "lpmn_values",
    "multigammaln",
    "ndtr",
    "ndtri",
    "owens_t",
    "poch",
    "polygamma",
    "rel_entr",
    "sici",
    "softmax",
    "spence",
    "sph_harm_y",
    "wofz",
    "xlog1py",
    "xlogy",
    "zeta",
]


def _of_floats(name, primitive, x):
    """A primitive of floats alone, of any real number."""
    try:
        return pointwise(name, primitive, x)
    except OverflowError:
        return pointwise(name, primitive, *as_floats([x]))


def _floats(name, *xs):
    """The arguments as arrays of one float or complex dtype, of one shape."""
    xs = promote_inexact(name, *xs)
    return xs[0] if len(xs) == 1 else broadcast_together(*xs)


def _reals(name, *xs):
    """The arguments as arrays of one float dtype. Raises ValueError for complex ones."""
    xs = promote_inexact(name, *xs)
    if xs[0].dtype.kind == "c":
        raise ValueError(f"{name} does not support complex-valued inputs.")
    return xs[0] if len(xs) == 1 else xs


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

    >>> logsumexp(jnp.array([0.0, 0.0]))
    Array(0.6931472, dtype=float32)
    """
    if where is not None:
        # An infinite exponent that is left out must not reach the derivative.
        a = jnp.where(where, a, 0)
    if b is None:
        a = _floats("logsumexp", a)
    else:
        a, b = _floats("logsumexp", a, b)
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


def softmax(x, /, *, axis=None):
    """exp(x) / sum(exp(x)), along an axis; over all elements by default.

    Args:
        x: array of numbers.
        axis: int, tuple of ints or None (all).

    Returns:
        Array of x's shape, of its dtype made float.

    Raises:
        TypeError: x is of bool, or no array or number.

    >>> softmax(jnp.array([[0.0, 0.0], [0.0, 0.0]]))
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)
    """
    return _softmax.softmax(x, axis=axis)


def log_softmax(x, /, *, axis=None):
    """The logarithm of softmax, along an axis; over all elements by default.

    Args:
        x: array of numbers.
        axis: int, tuple of ints or None (all).

    Returns:
        Array of x's shape, of its dtype made float.

    Raises:
        TypeError: x is of bool, or no array or number.

    >>> log_softmax(jnp.array([0.0, 0.0]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return _softmax.log_softmax(x, axis=axis)


# ---------------------------------------------------------------- gamma and its family


def gammaln(x):
    """log |gamma(x)|.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.

    >>> gammaln(jnp.array([1.0, 5.0]))
    Array([0.       , 3.1780539], dtype=float32)
    """
    return _of_floats("gammaln", "lgamma", x)


def loggamma(x):
    """log(gamma(x)): for real x NaN below 0; for complex x the branch that is continuous off the negative reals.

    Args:
        x: array or number, real or complex.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is no array or number.

    >>> loggamma(jnp.array([1.0, 5.0]))
    Array([0.       , 3.1780539], dtype=float32)
    """
    x = _floats("loggamma", x)
    if x.dtype.kind == "c":
        return complex_log_gamma(x)
    return jnp.where(x < 0, jnp.nan, lax.lgamma(x))


def gammasgn(x):
    """The sign of gamma(x): NaN at negative integers, the sign of zero at zero.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.
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
def gamma(x):
    """The gamma function of real or complex x: NaN at its poles, but the infinities at 0 and -0.

    Args:
        x: array or number, real or complex.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is no array or number.

    >>> gamma(jnp.array([5.0, 0.5]))
    Array([24.       ,  1.7724538], dtype=float32)
    """
    x = _floats("gamma", x)
    if x.dtype.kind == "c":
        return jnp.exp(complex_log_gamma(x))
    return gammasgn(x) * jnp.exp(lax.lgamma(x))


@in_single
def factorial(n, exact=False):
    """n! = gamma(n + 1); 0 for negative n.

    Args:
        n: array or number, real.
        exact: must be False.

    Returns:
        Array of n's shape, float.

    Raises:
        NotImplementedError: `exact` is asked for; arrays hold no big integers.

    >>> factorial(jnp.array([0, 3, 5]))
    Array([  1.     ,   6.     , 120.00001], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    n = _floats("factorial", n)
    return jnp.where(n < 0, 0, jnp.exp(lax.lgamma(n + 1)))


@in_single
def comb(N, k, *, repetition=False):
    """The binomial coefficient; 0 unless 0 <= k <= N.

    Args:
        N, k: arrays or numbers that broadcast, real.
        repetition: bool: count choices that may repeat.

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
def poch(z, m):
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
    large = (z > 10) & (m > 0)
    p, q = jnp.where(large, z, 10), jnp.where(large, m, 1)
    return jnp.where(m == 0, 1, jnp.where(large, jnp.exp(lax.lgamma(q) - betaln(p, q)), plain))


def _stirling_error(x):
    """lgamma(x) less (x - 1/2) log(x) - x + log(2 pi) / 2, for x >= 10 (DLMF 5.11.1)."""
    inverse = 1 / x
    square = inverse * inverse
    series = 1 / 156
    for c in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = series * square + c
    return series * inverse


@in_single
def betaln(a, b):
    """log |beta(a, b)|, without cancellation where an argument is large (Didonato and Morris 1992, Algorithm 708).

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
def beta(a, b):
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


def betainc(a, b, x):
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


def digamma(x):
    """The logarithmic derivative of gamma.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.

    >>> digamma(jnp.array([1.0, 2.0]))
    Array([-0.5772156 ,  0.42278433], dtype=float32)
    """
    return _of_floats("digamma", "digamma", x)


def polygamma(n, x):
    """The n-th derivative of digamma.

    Args:
        n: array or number of integers.
        x: array or number that broadcasts with n, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        ValueError: n is of no integer dtype, or x is complex.

    >>> polygamma(1, jnp.array([1.0, 2.0]))
    Array([1.644934, 0.644934], dtype=float32)
    """
    kind = n.dtype if isinstance(n, Array) else jnp.result_type(n)
    if not jnp.issubdtype(kind, np.integer):
        raise ValueError(f"Argument `n` to polygamma must be of integer type. Got dtype {kind}.")
    return lax.polygamma(*broadcast_together(*_reals("polygamma", n, x)))


@in_single
def zeta(x, q=None):
    """The Hurwitz zeta function: the sum of (k + q) ** -x over k >= 0; Riemann's, with q = 1, by default.

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
    return lax.zeta(*_floats("zeta", x, 1.0 if q is None else q))


def gammainc(a, x):
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


def gammaincc(a, x):
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


def multigammaln(a, d):
    """The logarithm of the multivariate gamma function of dimension d.

    Args:
        a: array or number, real.
        d: int: the dimension.

    Returns:
        Float array of a's shape.

    >>> multigammaln(jnp.array([3.0]), 2)
    Array([1.550195], dtype=float32)
    """
    a, _ = promote_inexact("multigammaln", a, d)
    steps = jnp.arange(d, dtype=a.dtype) / 2
    return jnp.sum(lax.lgamma(a[..., None] - steps), axis=-1) + d * (d - 1) / 4 * float(np.log(np.pi))


# ---------------------------------------------------------------- errors and normal probabilities


def erf(x):
    """The error function.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.

    >>> erf(jnp.array([0.0, 0.5]))
    Array([0.       , 0.5204999], dtype=float32)
    """
    return _of_floats("erf", "erf", x)


def erfc(x):
    """1 - erf(x), accurate for large x.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.

    >>> erfc(jnp.array([0.0, 0.5]))
    Array([1.        , 0.47950011], dtype=float32)
    """
    return _of_floats("erfc", "erfc", x)


def erfinv(x):
    """The inverse of the error function.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.

    >>> erfinv(jnp.array([0.0, 0.5]))
    Array([0.        , 0.47693628], dtype=float32)
    """
    return _of_floats("erfinv", "erf_inv", x)


@in_single
def ndtr(x):
    """The distribution function of the standard normal.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.

    >>> ndtr(jnp.array([0.0, 1.0]))
    Array([0.5      , 0.8413447], dtype=float32)
    """
    x = _floats("ndtr", x)
    return 0.5 * lax.erfc(-x * x.dtype.type(np.sqrt(0.5)))


@in_single
def ndtri(p):
    """The inverse of `ndtr`: -inf at 0, inf at 1.

    Args:
        p: probabilities, an array or number.

    Returns:
        Array of p's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: p is complex, or no array or number.

    >>> ndtri(jnp.array([0.5, 0.8413447]))
    Array([0.       , 0.9999999], dtype=float32)
    """
    return _ndtri(_floats("ndtri", p))


@custom_jvp
@jit
def _ndtri(p):
    root2 = p.dtype.type(np.sqrt(2))
    # Below one half by symmetry, so that small probabilities keep their precision.
    upper = p > 0.5
    q = jnp.where(upper, 1 - p, p)
    small = _ndtri_tail(jnp.where(q < 1e-3, q, 1e-3))
    x = jnp.where(q < 1e-3, small, root2 * lax.erf_inv(2 * jnp.where(q < 1e-3, 0.25, q) - 1))
    x = jnp.where(upper, -x, x)
    return jnp.where(p == 0, -jnp.inf, jnp.where(p == 1, jnp.inf, jnp.where((p < 0) | (p > 1), jnp.nan * p, x)))


@_ndtri.defjvp
def _ndtri_jvp(primals, tangents):
    # One over the density, infinite at both ends.
    (p,), (dp,) = primals, tangents
    x = _ndtri(p)
    return x, dp * (float(np.sqrt(2 * np.pi)) * jnp.exp(0.5 * x * x))


def _ndtri_tail(q):
    """For small q: a start from the asymptotic expansion, made exact by Newton's method on log_ndtr."""
    t = jnp.sqrt(-2 * jnp.log(jnp.where(q > 0, q, 1e-3)))
    x = -(t - (jnp.log(t) + 0.5 * float(np.log(2 * np.pi))) / t)
    log_q = jnp.log(jnp.where(q > 0, q, 1e-3))
    for _ in range(4):
        log_p = log_ndtr(x)
        x = x - (log_p - log_q) * jnp.exp(log_p + 0.5 * x * x + 0.5 * float(np.log(2 * np.pi)))
    return x


# ---------------------------------------------------------------- logistic, entropies, powers


def expit(x):
    """1 / (1 + exp(-x)).

    Args:
        x: array or number, real or complex.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is no array or number.

    >>> expit(jnp.array([0.0, 2.0]))
    Array([0.5      , 0.8807971], dtype=float32)
    """
    return _of_floats("expit", "logistic", x)


def logit(x):
    """log(x / (1 - x)), the inverse of `expit`.

    Args:
        x: array or number, real or complex.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is no array or number.

    >>> logit(jnp.array([0.5, 0.9]))
    Array([0.       , 2.1972244], dtype=float32)
    """
    x = _floats("logit", x)
    return jnp.log(x) - jnp.log1p(-x)


@custom_jvp
def xlogy(x, y):
    """x * log(y), 0 where x is 0 and y is not NaN.

    Args:
        x, y: arrays or numbers that broadcast, real or complex.

    Returns:
        Array of the broadcast shape, float or complex.

    >>> xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 1.5]))
    Array([0.       , 0.8109302], dtype=float32)
    """
    x, y = _floats("xlogy", x, y)
    nothing = (x == 0) & (y == y)
    return jnp.where(nothing, 0, x * jnp.log(jnp.where(nothing, 1, y)))


def _sum_of_tangents(terms, like):
    """The sum of slope() * tangent over those tangents that are not zero by structure, beside which an infinite slope is nothing."""
    parts = [slope() * t for slope, t in terms if not isinstance(t, SymbolicZero)]
    return functools.reduce(jnp.add, parts) if parts else jnp.zeros_like(like)


@functools.partial(xlogy.defjvp, symbolic_zeros=True)
def _xlogy_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    out = xlogy(x, y)
    return out, _sum_of_tangents([(lambda: jnp.log(y), dx), (lambda: _ratio(x, y), dy)], out)


def _ratio(x, y):
    """x / y, and 0 at 0 / 0, which no mask of other points hides from further derivatives."""
    nothing = (x == 0) & (y == 0)
    return jnp.where(nothing, 0, x / jnp.where(nothing, 1, y))


@custom_jvp
def xlog1py(x, y):
    """x * log1p(y), 0 where x is 0 and y is not NaN.

    Args:
        x, y: arrays or numbers that broadcast, real or complex.

    Returns:
        Array of the broadcast shape, float or complex.

    >>> xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 0.5]))
    Array([0.       , 0.8109302], dtype=float32)
    """
    x, y = _floats("xlog1py", x, y)
    nothing = (x == 0) & (y == y)
    return jnp.where(nothing, 0, x * jnp.log1p(jnp.where(nothing, 0, y)))


@functools.partial(xlog1py.defjvp, symbolic_zeros=True)
def _xlog1py_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    out = xlog1py(x, y)
    return out, _sum_of_tangents([(lambda: jnp.log1p(y), dx), (lambda: _ratio(x, 1 + y), dy)], out)


def entr(x):
    """-x * log(x), 0 at 0, -inf below.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.
        ValueError: x is complex.

    >>> entr(jnp.array([0.5, 1.0, -1.0]))
    Array([ 0.3465736, -0.       ,       -inf], dtype=float32)
    """
    x = _reals("entr", x)
    return jnp.where(x < 0, -jnp.inf, -xlogy(x, jnp.where(x < 0, 1, x)))


def rel_entr(p, q):
    """p * log(p / q); 0 where p = 0 <= q, inf outside the domain.

    Args:
        p, q: arrays or numbers that broadcast, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        ValueError: an argument is complex.

    >>> rel_entr(jnp.array([0.5, 0.0]), jnp.array([0.25, 1.0]))
    Array([0.3465736, 0.       ], dtype=float32)
    """
    p, q = _reals("rel_entr", p, q)
    both, zero = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    safe_p, safe_q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    # A number beside a number, as in JAX: only then is the result weakly typed.
    nothing = p.dtype.type(0) if p.ndim else 0.0
    return jnp.where(both, safe_p * jnp.log(safe_p / safe_q), jnp.where(zero, nothing, jnp.inf))


def kl_div(p, q):
    """rel_entr(p, q) - p + q.

    Args:
        p, q: arrays or numbers that broadcast, real.

    Returns:
        Float array of the broadcast shape.

    Raises:
        ValueError: an argument is complex.

    >>> kl_div(jnp.array([0.5, 0.0]), jnp.array([0.25, 1.0]))
    Array([0.09657359, 1.        ], dtype=float32)
    """
    p, q = _reals("kl_div", p, q)
    return rel_entr(p, q) - p + q


@in_single
def boxcox(x, lmbda):
    """(x ** lmbda - 1) / lmbda, log(x) at lmbda = 0.

    Args:
        x, lmbda: arrays or numbers that broadcast.

    Returns:
        Array of the broadcast shape, float or complex.

    >>> boxcox(jnp.array([1.0, 4.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    return _boxcox(*_floats("boxcox", x, lmbda))


def _scaled_power(log, lmbda):
    """(exp(lmbda log) - 1) / lmbda."""
    zero = lmbda == 0
    return jnp.where(zero, log, jnp.expm1(lmbda * log) / jnp.where(zero, 1, lmbda))


def _scaled_power_slope(value, base, log, lmbda):
    """The derivative of that by lmbda: (base^lmbda log - value) / lmbda; near lmbda = 0, where it cancels, by its series."""
    t = lmbda * jnp.where((lmbda == 0) & jnp.isinf(log), 0, log)
    near = abs(t) < 0.02
    t = jnp.where(near, t, 0)
    series = log * log * (1 / 2 + t * (1 / 3 + t * (1 / 8 + t * (1 / 30 + t * (1 / 144 + t / 840)))))
    return jnp.where(near, series, (xlogy(base**lmbda, base) - value) / jnp.where(near, 1, lmbda))


@custom_jvp
@jit
def _boxcox(x, lmbda):
    return _scaled_power(jnp.log(x), lmbda)


@_boxcox.defjvp
def _boxcox_jvp(primals, tangents):
    (x, lmbda), (dx, dlmbda) = primals, tangents
    y = _boxcox(x, lmbda)
    return y, dx * x ** (lmbda - 1) + dlmbda * _scaled_power_slope(y, x, jnp.log(x), lmbda)


@in_single
def boxcox1p(x, lmbda):
    """boxcox(1 + x, lmbda), accurate for small x.

    Args:
        x, lmbda: arrays or numbers that broadcast.

    Returns:
        Array of the broadcast shape, float or complex.

    >>> boxcox1p(jnp.array([0.0, 3.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    return _boxcox1p(*_floats("boxcox1p", x, lmbda))


@custom_jvp
@jit
def _boxcox1p(x, lmbda):
    return _scaled_power(jnp.log1p(x), lmbda)


@_boxcox1p.defjvp
def _boxcox1p_jvp(primals, tangents):
    (x, lmbda), (dx, dlmbda) = primals, tangents
    y = _boxcox1p(x, lmbda)
    return y, dx * (1 + x) ** (lmbda - 1) + dlmbda * _scaled_power_slope(y, 1 + x, jnp.log1p(x), lmbda)


# ---------------------------------------------------------------- Bessel functions, numbers


@in_single
def i0e(x):
    """exp(-|x|) times the modified Bessel function of order 0.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.

    >>> i0e(jnp.array([0.0, 1.0]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return _of_floats("i0e", "bessel_i0e", x)


def _unscaled(x, scaled):
    """exp(|x|) times `scaled`, in two steps, for the product may be finite where the exponential is not."""
    x = jnp.abs(x)
    return jnp.exp(lax.min(x, lax.full_like(x, 10))) * scaled * jnp.exp(lax.max(x - 10, lax.full_like(x, 0)))


@in_single
def i0(x):
    """The modified Bessel function of order 0.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.

    >>> i0(jnp.array([0.0, 1.0]))
    Array([1.       , 1.2660658], dtype=float32)
    """
    return _i0(_floats("i0", x))


@custom_jvp
def _i0(x):
    return _unscaled(x, lax.bessel_i0e(x))


@_i0.defjvp
def _i0_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _i0(x), _i1(x) * dx


@in_single
def i1e(x):
    """exp(-|x|) times the modified Bessel function of order 1.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.

    >>> i1e(jnp.array([0.0, 1.0]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return _of_floats("i1e", "bessel_i1e", x)


@in_single
def i1(x):
    """The modified Bessel function of order 1.

    Args:
        x: array or number, bool, integer or real.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    Raises:
        TypeError: x is complex, or no array or number.

    >>> i1(jnp.array([0.0, 1.0]))
    Array([0.       , 0.5651591], dtype=float32)
    """
    return _i1(_floats("i1", x))


@custom_jvp
def _i1(x):
    return _unscaled(x, lax.bessel_i1e(x))


@_i1.defjvp
def _i1_jvp(primals, tangents):
    """I1'(x) = I0(x) - I1(x) / x; the quotient by its series in x near 0, which has all derivatives there (Abramowitz and Stegun 9.6.10)."""
    (x,), (dx,) = primals, tangents
    far = jnp.abs(x) > 1
    quarter = jnp.square(jnp.where(far, 0, x)) / 4
    near = jnp.polyval(jnp.array([0.5 / (math.factorial(k) * math.factorial(k + 1)) for k in reversed(range(12))], x.dtype), quarter)
    return _i1(x), (_i0(x) - jnp.where(far, _i1(x) / jnp.where(far, x, 1), near)) * dx


def bernoulli(n):
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
