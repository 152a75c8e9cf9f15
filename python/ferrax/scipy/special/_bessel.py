"""Bessel functions of the first kind, and spherical harmonics, by their recurrences.

Invariant: each recurrence runs in the direction in which it is stable (DLMF 3.6): orders downwards
where they exceed the argument, degrees upwards.

    >>> bessel_jn(0.0, v=2)
    Array([1., 0., 0.], dtype=float32)
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ..._core import Tracer
from ..._tracing.jit import jit
from ...custom_derivatives import custom_jvp
from ...errors import ConcretizationTypeError
from ...numpy._support.arguments import as_array, broadcast_together, check_promotion, convert, promote_inexact
from .._halves import in_single

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

# ---------------------------------------------------------------- Bessel functions


def _hankel(order, x):
    """J of order 0 or 1 for large x (DLMF 10.17.3)."""
    p, q, term = 1.0, 0.0, 1.0
    for k in range(1, 20):
        term = term * ((4 * order * order - (2 * k - 1) ** 2) / (8 * k)) / x
        if k % 2:
            q = q + (term if k % 4 == 1 else -term)
        else:
            p = p + (term if k % 4 == 0 else -term)
    # cos and sin of x - pi/4, or of x - 3 pi/4, which for large x keeps the precision of sin(x) and cos(x).
    sin, cos = jnp.sin(x), jnp.cos(x)
    c, s = (cos + sin, sin - cos) if order == 0 else (sin - cos, -(sin + cos))
    return (p * c - q * s) / jnp.sqrt(np.pi * x)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
@jit(static_argnums=1)
def _bessel_jn(z, v):
    size = abs(z)
    bound = max(25, 2 * v)
    far = size > bound
    # From the asymptotic series upwards where the argument exceeds the orders.
    x = jnp.where(far & jnp.isfinite(size), size, bound)
    above = [_hankel(0, x), _hankel(1, x)]
    for k in range(1, v):
        above.append(2 * k / x * above[k] - above[k - 1])
    # Elsewhere from a high order downwards (Miller), then scaled by J_0 + 2 (J_2 + J_4 + ..) = 1.
    x = jnp.where(far, 1, size)
    start = 2 * ((bound + int(6 * bound**0.5) + 24) // 2)
    double = 2 / jnp.where(x == 0, 1, x)
    huge = float(np.sqrt(float(jnp.finfo(z.dtype).max))) / 1e3

    def down(i, state):
        k = start - i
        here, after, total, kept = state
        before = jnp.asarray(k, x.dtype) * double * here - after
        total = jnp.where(k % 2 == 0, total + 2 * here, total)
        kept = jnp.where((jnp.arange(v + 1) == k).reshape(-1, *[1] * x.ndim), here, kept)
        down = jnp.where(abs(before) > huge, 1 / huge, 1)
        return before * down, here * down, total * down, kept * down

    state = jnp.full_like(x, 1 / huge), jnp.zeros_like(x), jnp.zeros_like(x), jnp.zeros((v + 1, *x.shape), x.dtype)
    here, _, total, kept = lax.fori_loop(0, start, down, state)
    kept = jnp.concatenate([here[None], kept[1:]]) / (total + here)
    kept = jnp.where(x == 0, jnp.zeros_like(kept).at[0].set(1), kept)
    out = jnp.where(far, jnp.where(jnp.isinf(size), 0, jnp.stack(above[: v + 1])), kept)
    odd = (jnp.arange(v + 1) % 2 == 1).reshape(-1, *[1] * x.ndim)
    return jnp.where(jnp.isnan(z), np.nan, jnp.where(odd & (z < 0), -out, out))


@_bessel_jn.defjvp
def _bessel_jn_jvp(v, primals, tangents):
    (z,), (dz,) = primals, tangents
    # DLMF 10.6.1: J_k' = (J_(k-1) - J_(k+1)) / 2, J_(-1) being -J_1.
    j = _bessel_jn(z, v + 1)
    before = jnp.concatenate([-j[1:2], j[:v]])
    return j[: v + 1], (before - j[1:]) / 2 * dz


@in_single
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of orders 0 to v (DLMF 10.2.2).

    Args:
        z: an array or a number, real.
        v: the greatest order, an int >= 0.
        n_iter: accepted as in JAX, where the recurrence starts from this order; here the order
          follows from `v`, and the result is accurate for any value.

    Returns:
        a float array (v + 1, ...), its other axes those of z.

    Raises:
        TypeError: z is not an array or number, or v is not an int.
        ValueError: z is complex, or v is negative.

    >>> jax.scipy.special.bessel_jn(1.0, v=1)
    Array([0.7651977, 0.4400506], dtype=float32)
    """
    (z,) = promote_inexact("bessel_jn", z)
    if z.dtype.kind == "c":
        raise ValueError("bessel_jn does not support complex-valued inputs.")
    v = operator.index(v)
    if v < 0:
        raise ValueError(f"bessel_jn: the order v must not be negative, got {v}")
    operator.index(n_iter)
    return _bessel_jn(convert(z, z.dtype), v)


# ---------------------------------------------------------------- spherical harmonics


@jit(static_argnums=4)
def _harmonic(n, m, theta, phi, n_max):
    order = abs(m).astype(theta.dtype)
    cos, sin = jnp.cos(theta), jnp.sin(theta)

    # The normalised function of degree and order |m|: (-1)^m sqrt((2m + 1)!! / (4 pi (2m)!!)) sin^m.
    def diagonal(k, p):
        k = jnp.asarray(k, theta.dtype)
        return jnp.where(k <= order, -p * sin * jnp.sqrt((2 * k + 1) / (2 * k)), p)

    start = lax.fori_loop(1, n_max + 1, diagonal, jnp.full_like(cos, float(np.sqrt(1 / (4 * np.pi)))))

    # Degrees upwards (DLMF 14.10.3, normalised).
    def up(k, state):
        k = jnp.asarray(k, theta.dtype)
        here, before = state
        run = (k > order) & (k <= n)
        width = jnp.where(run, (k - order) * (k + order), 1)
        a = jnp.sqrt((4 * k * k - 1) / width)
        b = jnp.sqrt(jnp.where(run, (k - 1 - order) * (k - 1 + order), 0) * (2 * k + 1) / (width * jnp.where(k > 1, 2 * k - 3, 1)))
        value = jnp.where(run, a * cos * here - b * before, here)
        return value, jnp.where(run, here, before)

    value, _ = lax.fori_loop(1, n_max + 1, up, (start, jnp.zeros_like(start)))
    value = jnp.where((m < 0) & (m % 2 != 0), -value, value)
    # Harmonics of an order beyond the degree are zero; those of a degree beyond n_max were not computed.
    value = jnp.where((n >= 0) & (n <= n_max), jnp.where(abs(m) > n, 0, value), np.nan)
    angle = m.astype(theta.dtype) * phi
    return lax.complex(value * jnp.cos(angle), value * jnp.sin(angle))


def sph_harm_y(n: Array, m: Array, theta: Array, phi: Array, diff_n: int | None = None, n_max: int | None = None) -> Array:
    """The spherical harmonics of degree n and order m, with the Condon-Shortley phase (DLMF
    14.30.1).

    Args:
        n: degrees, integers >= 0.
        m: orders, integers; |m| <= n, else the result is 0.
        theta: polar angles.
        phi: azimuths. All four broadcast.
        diff_n: must be None.
        n_max: the greatest degree, an int; needed where n is traced. By default the greatest of n.

    Returns:
        a complex array of the common shape; NaN where n is beyond n_max, or negative.

    Raises:
        NotImplementedError: diff_n is given.
        ConcretizationTypeError: n is traced and n_max is not given.
        TypeError: n or m is not an integer.

    >>> sph_harm_y(jnp.array([1]), jnp.array([0]), jnp.array([0.0]), jnp.array([0.0]))
    Array([0.48860252+0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError("The 'diff_n' argument to jax.scipy.special.sph_harm_y is not supported.")
    n, m = as_array("sph_harm_y", n), as_array("sph_harm_y", m)
    for x in (n, m):
        if x.dtype.kind not in "iu":
            raise TypeError(f"sph_harm_y: degrees and orders must be of integer type, got {x.dtype}.")
    check_promotion(m, phi)
    theta, phi = promote_inexact("sph_harm_y", theta, phi)
    if theta.dtype.kind == "c":
        raise ValueError("sph_harm_y does not support complex-valued inputs.")
    if n_max is None:
        if isinstance(n, Tracer):
            raise ConcretizationTypeError(
                n, "The `n_max` argument of `jnp.scipy.special.sph_harm` must be statically specified to use `sph_harm` within JAX transformations."
            )
        n_max = max(int(np.max(np.asarray(n), initial=0)), 0)
    if theta.dtype.itemsize < 4:
        theta, phi = theta.astype("float32"), phi.astype("float32")
    signed = [x if x.dtype.kind == "i" else x.astype("int32") for x in (n, m)]
    return _harmonic(*broadcast_together(*signed, theta, phi), operator.index(n_max))
