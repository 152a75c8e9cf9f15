"""Gamma, error, Bessel and zeta functions, element by element: one primitive each.

Invariant: no promotion, and broadcasting as in `_arithmetic`.

    >>> lax.erf(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import bind
from . import _sections as sections

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


@sections.of_floats
def bessel_i0e(x: ArrayLike) -> Array:
    """exp(-|x|) I0(x), the scaled modified Bessel function of order 0.

    >>> lax.bessel_i0e(jnp.array([0.0, 1.0]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return bind("bessel_i0e", x)


@sections.of_floats
def bessel_i1e(x: ArrayLike) -> Array:
    """exp(-|x|) I1(x), the scaled modified Bessel function of order 1.

    >>> lax.bessel_i1e(jnp.array([0.0, 1.0]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return bind("bessel_i1e", x)


@sections.of_floats
def digamma(x: ArrayLike) -> Array:
    """d/dx log Gamma(x).

    >>> lax.digamma(jnp.array([1.0, 2.0]))
    Array([-0.5772156 ,  0.42278433], dtype=float32)
    """
    return bind("digamma", x)


@sections.of_floats
def erf(x: ArrayLike) -> Array:
    """The error function, 2/sqrt(pi) * integral of exp(-t**2) from 0 to x.

    >>> lax.erf(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("erf", x)


def erf_inv(x: ArrayLike) -> Array:
    """The inverse of `erf`.

    Args:
        x: array of floats in [-1, 1]; nan outside.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.

    >>> lax.erf_inv(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bind("erf_inv", x)


@sections.of_floats
def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), without cancellation.

    >>> lax.erfc(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return bind("erfc", x)


@sections.of_floats
def lgamma(x: ArrayLike) -> Array:
    """log |Gamma(x)|.

    >>> lax.lgamma(jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return bind("lgamma", x)


@sections.incomplete_gamma
def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularised lower incomplete gamma function P(a, x).

    >>> lax.igamma(jnp.array([2.0, 2.0]), jnp.array([0.0, 2.0]))
    Array([0.       , 0.5939942], dtype=float32)
    """
    return bind("igamma", a, x)


@sections.incomplete_gamma
def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """d/da P(a, x).

    >>> lax.igamma_grad_a(jnp.array([2.0]), jnp.array([1.5]))
    Array([-0.3134887], dtype=float32)
    """
    return bind("igamma_grad_a", a, x)


@sections.incomplete_gamma
def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularised upper incomplete gamma function Q(a, x).

    >>> lax.igammac(jnp.array([2.0, 2.0]), jnp.array([0.0, 2.0]))
    Array([1.       , 0.4060058], dtype=float32)
    """
    return bind("igammac", a, x)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of digamma at x.

    Args:
        m, x: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.polygamma(jnp.array([1.0]), jnp.array([1.0]))
    Array([1.644934], dtype=float32)
    """
    return bind("polygamma", m, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz zeta function, sum over k >= 0 of (q + k) ** -x.

    Args:
        x, q: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.zeta(jnp.array([2.0]), jnp.array([1.0]))
    Array([1.644934], dtype=float32)
    """
    return bind("zeta", x, q)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Regularised incomplete beta function I_x(a, b), differentiable in all three.

    Args:
        a, b, x: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.

    >>> lax.betainc(jnp.array([2.0]), jnp.array([3.0]), jnp.array([0.5]))
    Array([0.6875], dtype=float32)
    """
    return bind("regularized_incomplete_beta", a, b, x)


def random_gamma_grad(*args: ArrayLike) -> Array:
    """Derivative of a sample x of Gamma(a) with respect to a.

    Args:
        *args: a and x, float arrays of one dtype and shape.

    Returns:
        Array of their shape and dtype.

    >>> lax.random_gamma_grad(jnp.array([2.0]), jnp.array([1.5]))
    Array([0.9366392], dtype=float32)
    """
    return bind("random_gamma_grad", *args)
