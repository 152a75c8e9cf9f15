"""Decompositions of matrices of any norm: residuals and orthogonality are roundings of the matrix, from the least norms to the greatest.

Each law is taken over full, rank-deficient and graded matrices, sizes on both sides of where methods change, and all four dtypes.
"""

import ferrax.numpy as jnp
import ferrax.scipy.linalg as sl
import numpy as np
import pytest

NORMS = {4: [1e-37, 1e-30, 1e-8, 1e-6, 1.0, 1e30], 8: [1e-300, 1e-200, 1e-8, 1.0, 1e200, 1e300]}
KINDS = ["full", "low rank", "graded"]


@pytest.fixture(autouse=True)
def wide(x64):
    """Both widths are there."""


def adjoint(a):
    return np.swapaxes(np.conj(a), -1, -2)


def whole(*xs):
    """In double precision, where a residual of single precision has no rounding of its own."""
    xs = [np.asarray(x) for x in xs]
    xs = [x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in xs]
    return xs[0] if len(xs) == 1 else xs


def matrix(kind, m, n, dtype, seed=0):
    """A matrix of norm 1."""
    r = np.random.default_rng(seed)
    of = lambda *shape: r.standard_normal(shape) + (1j * r.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)
    a = of(m, n)
    if kind == "low rank":
        k = max(1, min(m, n) // 3)
        a = of(m, k) @ of(k, n)
    if kind == "graded":
        steps = 10.0 ** (-8 * np.arange(max(m, n)) / max(m, n))
        a = a * steps[:m, None] * steps[None, :n]
    return a / np.linalg.norm(a, 2)


def cases(dtype, sizes):
    """Matrices, and the norms they have."""
    for norm in NORMS[np.finfo(dtype).dtype.itemsize]:
        for n in sizes:
            for kind in KINDS:
                yield f"{kind}, {n} rows, norm {norm}", (matrix(kind, n, n, dtype) * norm).astype(dtype), norm


def small(what, error, n, dtype, times=5):
    limit = times * max(n, 10) * np.finfo(dtype).eps
    assert np.max(error, initial=0) <= limit, (what, np.max(error), limit)


def orthogonal(what, q, dtype):
    small(what, np.abs(adjoint(q) @ q - np.eye(q.shape[1])), q.shape[0], dtype)


DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128], ids=lambda t: t.__name__)


@DTYPES
def test_eigenvalues_of_hermitian_matrices(dtype):
    for what, a, norm in cases(dtype, [2, 16, 33, 80]):
        a = (a / 2 + adjoint(a) / 2).astype(dtype)
        n, want = len(a), whole(a) / norm
        w, v = whole(*jnp.linalg.eigh(a))
        small(what, np.abs(want @ v - v * (w / norm)), n, dtype)
        orthogonal(what, v, dtype)
        small(what, np.abs(whole(jnp.linalg.eigvalsh(a)) / norm - np.linalg.eigvalsh(want)), n, dtype)


@DTYPES
@pytest.mark.parametrize("sides", [(1, 1), (3, 1), (1, 3)], ids=["square", "tall", "wide"])
def test_singular_values(dtype, sides):
    for norm in NORMS[np.finfo(dtype).dtype.itemsize]:
        for n in [2, 40] if sides == (1, 1) else [16]:
            for kind in KINDS:
                what, (p, q) = (kind, n, norm), (s * n for s in sides)
                a = (matrix(kind, p, q, dtype) * norm).astype(dtype)
                want = whole(a) / norm
                u, s, vh = whole(*jnp.linalg.svd(a, full_matrices=False))
                small(what, np.abs((u * (s / norm)) @ vh - want), max(p, q), dtype)
                orthogonal(what, u, dtype)
                orthogonal(what, adjoint(vh), dtype)
                values = np.linalg.svd(want, compute_uv=False)
                small(what, np.abs(whole(jnp.linalg.svdvals(a)) / norm - values), max(p, q), dtype)
                small(what, abs(float(jnp.linalg.norm(a, 2)) / norm - values[0]), max(p, q), dtype)


@DTYPES
def test_eigenvalues_of_general_matrices(dtype):
    for what, a, norm in cases(dtype, [2, 8, 30]):
        n, want = len(a), whole(a) / norm
        w, v = whole(*jnp.linalg.eig(a))
        small(what, np.abs(want @ v - v * (w / norm)), n, dtype, times=50)
        t, z = whole(*sl.schur(a))
        small(what, np.abs(z @ (t / norm) @ adjoint(z) - want), n, dtype, times=10)
        orthogonal(what, z, dtype)
        h, q = whole(*sl.hessenberg(a, calc_q=True))
        small(what, np.abs(q @ (h / norm) @ adjoint(q) - want), n, dtype)


@DTYPES
def test_factors(dtype):
    for what, a, norm in cases(dtype, [2, 16, 70]):
        n, want = len(a), whole(a) / norm
        q, r = whole(*jnp.linalg.qr(a))
        small(what, np.abs(q @ (r / norm) - want), n, dtype)
        orthogonal(what, q, dtype)
        q, r, order = sl.qr(a, pivoting=True)
        q, r = whole(q, r)
        small(what, np.abs(q @ (r / norm) - want[:, np.asarray(order)]), n, dtype)
        p, low, up = whole(*sl.lu(a))
        small(what, np.abs(p @ low @ (up / norm) - want), n, dtype, times=20)


@DTYPES
def test_definite_matrices(dtype):
    for norm in NORMS[np.finfo(dtype).dtype.itemsize]:
        if norm in (1e-37, 1e-300):
            continue  # whose inverse is infinite, or nearly
        for n in [2, 33, 100]:
            what, half = (n, norm), matrix("full", n, n, dtype)
            a = ((half @ adjoint(half) + np.eye(n)) * norm).astype(dtype)
            want, root = whole(a) / norm, np.sqrt(norm)
            low = whole(jnp.linalg.cholesky(a)) / root
            small(what, np.abs(low @ adjoint(low) - want), n, dtype)
            b = (norm * np.ones((n, 2))).astype(dtype)
            for x in (jnp.linalg.solve(a, b), sl.cho_solve(sl.cho_factor(a), b), jnp.linalg.lstsq(a, b)[0]):
                small(what, np.abs(want @ whole(x) - 1), n, dtype, times=50)
            for x in (jnp.linalg.inv(a), jnp.linalg.pinv(a)):
                small(what, np.abs(want @ (whole(x) * norm) - np.eye(n)), n, dtype, times=50)
            x = whole(sl.sqrtm(a)) / root
            small(what, np.abs(x @ x - want), n, dtype, times=50)
            u, p = whole(*sl.polar(a))
            small(what, np.abs(u @ (p / norm) - want), n, dtype, times=50)
            log = np.linalg.slogdet(want)[1]
            log += n * np.log(norm)
            small(what, abs(float(jnp.linalg.slogdet(a)[1]) - log) / max(1, abs(log)), n, dtype, times=50)
            small(what, abs(float(jnp.linalg.cond(a)) - np.linalg.cond(want)), n, dtype, times=50)
            assert int(jnp.linalg.matrix_rank(a)) == n


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
def test_tridiagonal_matrices(dtype):
    for what, a, norm in cases(dtype, [2, 33, 100]):
        d, e = np.diag(a).copy(), np.diag(a, 1).copy()
        t = (np.diag(whole(d)) + np.diag(whole(e), 1) + np.diag(whole(e), -1)) / norm
        got = whole(sl.eigh_tridiagonal(d, e, eigvals_only=True)) / norm
        small(what, np.abs(got - np.linalg.eigvalsh(t)), len(d), dtype)


@pytest.mark.parametrize("n", [40, 90])
@pytest.mark.parametrize("power", [-100, -40, -3, 5, 60])
def test_powers_of_two_change_no_bits(n, power):
    a = matrix("full", n, n, np.float32).astype(np.float32)
    scale = np.float32(2.0**power)
    s = (a + a.T) / 2
    (w, v), (w2, v2) = jnp.linalg.eigh(s), jnp.linalg.eigh(s * scale)
    np.testing.assert_array_equal(v, v2)
    np.testing.assert_array_equal(np.asarray(w) * scale, w2)
    for x, y, by in zip(jnp.linalg.svd(a), jnp.linalg.svd(a * scale), (1, scale, 1), strict=True):
        np.testing.assert_array_equal(np.asarray(x) * by, y)
