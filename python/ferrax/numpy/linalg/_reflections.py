"""The reflections of a QR factorization, packed as `lax.linalg.ormqr` and `householder_product` take them.

Invariant: R's diagonal has the signs that `lax.linalg.qr` gives it: each is opposite to that of the element it replaces.
"""

from ...lax import dynamic_index_in_dim, fori_loop
from .._arguments import jitted
from .._arithmetic import absolute
from .._choosing import where
from .._complex import conj
from .._creation import arange, zeros
from .._exponential import sqrt, square
from .._floating_point import copysign
from .._shaping import swapaxes


@jitted("qr")
def packed_qr(a):
    """(h, taus) of a, shape (..., m, n): the transposed matrix of R and, below its diagonal, of the reflections' vectors; shape (..., min(m, n))."""
    m, n = a.shape[-2:]
    if not m or not n:
        return swapaxes(a, -1, -2), zeros((*a.shape[:-2], 0), a.dtype)
    rows, columns = arange(m), arange(n)

    def reflect(j, state):
        a, taus = state
        x = dynamic_index_in_dim(a, j, axis=-1, keepdims=False)
        alpha = dynamic_index_in_dim(x, j, axis=-1, keepdims=False)
        # Lengths are those of x / scale, whose squares are numbers.
        scale = where(rows >= j, absolute(x), 0).max(-1, initial=0)
        safe = where(scale == 0, 1, scale)
        length = scale * sqrt(where(rows >= j, square(absolute(x / safe[..., None])), 0).sum(-1))
        still = (where(rows > j, absolute(x), 0).max(-1, initial=0) == 0) & (alpha.imag == 0)
        beta = where(still, alpha.real, -copysign(length, alpha.real))
        tau = where(still, 0, (beta - alpha) / where(still, 1, beta))
        v = where(rows > j, x / where(still, 1, alpha - beta)[..., None], where(rows == j, 1, 0))
        along = conj(tau)[..., None] * (conj(v)[..., None, :] @ a)[..., 0, :]
        moved = where(columns > j, a - v[..., :, None] * along[..., None, :], a)
        column = where(rows > j, v, where(rows == j, beta[..., None], x))
        a = where(columns == j, column[..., None], moved).astype(a.dtype)
        return a, where(arange(taus.shape[-1]) == j, tau[..., None], taus).astype(a.dtype)

    h, taus = fori_loop(0, min(m, n), reflect, (a, zeros((*a.shape[:-2], min(m, n)), a.dtype)))
    return swapaxes(h, -1, -2), taus
