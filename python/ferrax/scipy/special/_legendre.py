"""Associated Legendre functions of the first kind, of all orders and degrees up to one.

Invariant: by recurrence over degrees, all orders at a time; the sign is that of Condon and
Shortley.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _core, lax, numpy as jnp

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike

__all__ = ["lpmn", "lpmn_values"]


def _checked(m, n, z):
    z = _core.asarray(z)
    if z.dtype not in (np.float32, np.float64):
        raise TypeError(f"z.dtype={z.dtype} is not supported, see docstring for supported types.")
    if z.ndim != 1:
        raise ValueError("z must be a 1D array.")
    if m != n:
        raise NotImplementedError("Computations for m!=n are not yet supported.")
    return int(n), z


def _values(top, x, normalized):
    m, n = np.arange(top + 1.0)[:, None], np.arange(top + 1.0)[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        if normalized:
            first = np.sqrt((4 * n * n - 1) / (n * n - m * m))
            second = np.sqrt((2 * n + 1) * ((n - 1) ** 2 - m * m) / ((2 * n - 3) * (n * n - m * m)))
            steps, start = -np.sqrt(1 + 0.5 / np.arange(1.0, top + 1)), 0.5 / np.sqrt(np.pi)
        else:
            first, second = (2 * n - 1) / (n - m), (n + m - 1) / (n - m)
            steps, start = 1 - 2 * np.arange(1.0, top + 1), 1.0
    first, second = np.where(n > m, first, 0), np.where(n > m + 1, second, 0)
    # the diagonal, multiplied up together with the powers of sqrt(1 - x^2), so that neither overflows alone
    factor = jnp.concatenate([jnp.full((1, x.size), start, x.dtype), jnp.array(steps, x.dtype)[:, None] * jnp.sqrt(1 - x * x)[None]])
    diagonal = jnp.cumprod(factor, axis=0)

    def step(carry, row):
        last, before = carry
        a, b, at, value = row
        new = a[:, None] * x[None] * last - b[:, None] * before
        new = new + jnp.where(jnp.arange(top + 1)[:, None] == at, value[None], 0)
        return (new, last), new

    zero = jnp.zeros((top + 1, x.size), x.dtype)
    rows = (jnp.array(first.T, x.dtype), jnp.array(second.T, x.dtype), jnp.arange(top + 1), diagonal)
    _, columns = lax.scan(step, (zero, zero), rows)
    return jnp.swapaxes(columns, 0, 1)


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """The associated Legendre functions of the first kind.

    Args:
        m, n: the largest order, and the largest degree: one number.
        z: where; a vector of float32 or float64.
        is_normalized: whether they are those of spherical harmonics of norm 1.

    Returns:
        an array of (order, degree, place).

    Raises:
        TypeError: `z` is of another dtype.
        ValueError: `z` is not a vector.
        NotImplementedError: `m` is not `n`.

    >>> lpmn_values(1, 1, jnp.array([0.5]), False)[0, :, 0]
    Array([1. , 0.5], dtype=float32)
    """
    top, z = _checked(m, n, z)
    return _values(top, z, is_normalized)


def _derivatives(p, x):
    top = p.shape[0] - 1
    m, n = np.arange(top + 1.0)[:, None], np.arange(top + 1.0)[None, :]
    shifted = jnp.pad(p, ((1, 2), (1, 0), (0, 0)))[:, : top + 1]  # of one degree less, orders from -1
    over = lambda k: shifted[k + 1 : k + top + 2]

    def divided(order, above, below):
        """P of that order, divided by sqrt(1 - x^2)."""
        with np.errstate(divide="ignore"):
            factor = np.where(order == 0, 0, -0.5 / np.where(order == 0, 1, order))
        return jnp.array(factor, p.dtype)[..., None] * (above + jnp.array((n + order - 1) * (n + order), p.dtype)[..., None] * below)

    later = jnp.pad(shifted, ((0, 2), (0, 0), (0, 0)))
    next_one = divided(m + 1, later[3 : top + 4], over(0))
    one_before = divided(m - 1, over(0), jnp.concatenate([jnp.zeros_like(shifted[:1]), shifted])[: top + 1])
    out = jnp.array(0.5 * (n + m) * (n - m + 1), p.dtype)[..., None] * one_before - 0.5 * next_one
    out = jnp.where((n >= m)[..., None], out, 0)
    if top >= 0:
        out = out.at[0].set(-divided(np.ones_like(n), jnp.pad(shifted, ((0, 1), (0, 0), (0, 0)))[3], over(0)[0])[0] if top else jnp.zeros_like(out[0]))
    if top >= 1:
        k = np.arange(top + 1.0)
        first = jnp.array((k + 1) * k, p.dtype)[:, None] * p[0] - (p[2] if top > 1 else 0)
        out = out.at[1].set((0.5 / jnp.sqrt(1 - x * x))[None] * first).at[1, 0].set(0)
    return out


def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """The associated Legendre functions of the first kind, and their derivatives.

    Args:
        m, n: ints, equal: the largest order, and the largest degree.
        z: float32 or float64 array (k,).

    Returns:
        Pair of arrays (m + 1, n + 1, k) of z's dtype: values and derivatives by order, degree and
        element of z.

    Raises:
        TypeError, ValueError, NotImplementedError: as for `lpmn_values`.

    >>> p, slopes = lpmn(1, 1, jnp.array([0.5]))
    >>> p[0, :, 0], slopes[0, :, 0]
    (Array([1. , 0.5], dtype=float32), Array([0., 1.], dtype=float32))
    """
    top, z = _checked(m, n, z)
    p = _values(top, z, False)
    return p, _derivatives(p, z)
