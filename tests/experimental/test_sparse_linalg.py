"""`spsolve` and `lobpcg_standard`: residuals, known spectra, derivatives of a solution."""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st


@pytest.fixture(scope="module")
def linalg(jax):
    importlib.import_module(f"{jax.__name__}.experimental.sparse")
    return importlib.import_module(f"{jax.__name__}.experimental.sparse.linalg")


def compressed(a):
    """(data, indices, indptr) of a dense matrix."""
    rows, cols = np.nonzero(a)
    return a[rows, cols], cols.astype(np.int32), np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(a)))]).astype(np.int32)


@settings(max_examples=40)
@given(st.integers(1, 12), st.floats(0, 1), st.sampled_from([np.float32, np.complex64]), st.integers(0, 3), st.integers(0, 999))
def test_spsolve_solves(linalg, n, density, dtype, reorder, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n)) * (rng.random((n, n)) < density)
    a = a[rng.permutation(n)] + 3 * np.eye(n)[rng.permutation(n)]
    b = rng.normal(size=n)
    if dtype == np.complex64:
        a, b = a * (1 + 0.5j), b - 1j
    if np.linalg.cond(a) > 1e4:
        return
    x = linalg.spsolve(*compressed(a.astype(dtype)), b.astype(dtype), reorder=reorder)
    assert x.dtype == dtype
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-3, atol=1e-3)


def test_spsolve_of_a_large_grid(jax, linalg):
    # the Laplacian of a grid of 40 x 40, whose unknowns are in a random order
    k = 40
    at = np.random.default_rng(0).permutation(k * k).reshape(k, k)
    rows = np.concatenate([at.ravel(), at[1:].ravel(), at[:-1].ravel(), at[:, 1:].ravel(), at[:, :-1].ravel()])
    cols = np.concatenate([at.ravel(), at[:-1].ravel(), at[1:].ravel(), at[:, :-1].ravel(), at[:, 1:].ravel()])
    data = np.where(rows == cols, 4.0, -1.0)
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows))])
    x = np.random.default_rng(1).normal(size=k * k)
    b = np.zeros(k * k)
    np.add.at(b, rows, data * x[cols])
    got = jax.jit(linalg.spsolve)(data[order].astype(np.float32), cols[order], indptr, b.astype(np.float32))
    np.testing.assert_allclose(got, x, atol=1e-3)


def test_spsolve_is_differentiated_as_a_solution(jax, jnp, linalg, x64):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 4)) + 4 * np.eye(4)
    a[0, 2] = a[3, 1] = 0
    data, indices, indptr = compressed(a)
    b = rng.normal(size=4)
    rows = np.repeat(np.arange(4), np.diff(indptr))
    dense = lambda d, b: jnp.linalg.solve(jnp.zeros((4, 4)).at[rows, indices].set(d), b)
    ours = lambda d, b: linalg.spsolve(d, indices, indptr, b)
    for f, g in zip(*((jax.jacrev(f, (0, 1))(data, b), jax.jacfwd(f, (0, 1))(data, b)) for f in (ours, dense)), strict=True):
        for got, want in zip(f, g, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    datas = np.stack([data, data * 2])
    np.testing.assert_allclose(jax.vmap(ours, (0, None))(datas, b), jax.vmap(dense, (0, None))(datas, b))
    np.testing.assert_allclose(jax.vmap(ours, (None, 0))(data, np.stack([b, -b])), jax.vmap(dense, (None, 0))(data, np.stack([b, -b])))


def test_spsolve_at_the_edges(jnp, linalg):
    solve = lambda a, b: linalg.spsolve(*compressed(np.array(a)), jnp.array(b))
    assert np.isnan(solve([[2.0, 0], [1.0, 0]], [1.0, 2.0])).all()
    assert solve([[0.0, 2.0], [1.0, 0]], [4.0, 3.0]).tolist() == [3, 2]
    assert linalg.spsolve(jnp.zeros(0), jnp.zeros(0, int), jnp.zeros(1, int), jnp.zeros(0)).shape == (0,)
    assert solve([[2, 0], [0, 4]], [2, 8]).tolist() == [1, 2]
    # equal indices are summed
    assert linalg.spsolve(jnp.array([1.0, 1.0]), jnp.array([0, 0]), jnp.array([0, 2]), jnp.array([4.0])).tolist() == [2]
    with pytest.raises(ValueError, match=r"Arrays must be one-dimensional. Got data.shape=\(2,\)"):
        linalg.spsolve(jnp.ones(2), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.ones((2, 1)))
    with pytest.raises(ValueError, match=r"Invalid CSR buffer sizes: data.shape=\(2,\)"):
        linalg.spsolve(jnp.ones(2), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.ones(3))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("k", [1, 3])
def test_lobpcg_finds_the_largest(jax, jnp, linalg, dtype, k):
    rng = np.random.default_rng(k)
    n = 40
    q = np.linalg.qr(rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if dtype == np.complex64 else 0))[0]
    w = np.concatenate([np.linspace(-30, 5, n - k), 20 + 10 * np.arange(k)])
    a = (q * w @ q.conj().T).astype(dtype)
    x = rng.normal(size=(n, k)).astype(dtype)
    for operator in (jnp.asarray(a), lambda v: jnp.asarray(a) @ v):
        theta, u, i = linalg.lobpcg_standard(operator, x)
        np.testing.assert_allclose(theta, w[::-1][:k], rtol=1e-5)
        np.testing.assert_allclose(u.conj().T @ u, np.eye(k), atol=1e-5)
        np.testing.assert_allclose(a @ u, u * theta, atol=2e-3)
        assert 0 < i < 100
    assert linalg.lobpcg_standard(jnp.asarray(a), x, m=2)[2] == 2
    np.testing.assert_allclose(jax.jit(linalg.lobpcg_standard)(a, x)[0], theta, rtol=1e-5)


def test_lobpcg_of_a_sparse_matrix_with_equal_eigenvalues(jax, jnp, linalg):
    sparse = importlib.import_module(f"{jax.__name__}.experimental.sparse")
    x = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
    diagonal = np.where(np.arange(100) < 2, 7.0, -np.arange(100.0)).astype(np.float32)
    m = sparse.BCOO((diagonal, np.stack([np.arange(100)] * 2, -1)), shape=(100, 100))
    theta, _, _ = linalg.lobpcg_standard(m, x)
    np.testing.assert_allclose(theta, [7, 7], rtol=1e-5)
    # what converges at once, and what depends on itself
    theta, _, i = linalg.lobpcg_standard(jnp.eye(20) * 3, jnp.ones((20, 1)))
    assert i == 1
    np.testing.assert_allclose(theta, [3], rtol=1e-6)
    theta, _, i = linalg.lobpcg_standard(jnp.eye(100), np.random.default_rng(1).normal(size=(100, 10)).astype(np.float32))
    assert i < 20 and (np.diff(np.asarray(theta)) <= 0).all()


@pytest.mark.parametrize("top", [[1000.0] * 5, [1000.0] * 9, [1000.0] * 10, list(range(10, 20))])
def test_lobpcg_stays_where_it_has_converged(jnp, linalg, top):
    n, k, m = 100, 10, 60
    diagonal = np.ones(n, np.float32)
    diagonal[: len(top)] = top
    eigenvalues = np.sort(diagonal)[::-1][:k]
    x = np.random.default_rng(2).normal(size=(n, k)).astype(np.float32)
    theta, _, i, info = linalg._lobpcg_standard_matrix(jnp.diag(diagonal), x, m, tol=0, debug=True)
    assert i == m and not info["X zeros"].any() and info["basis rank"].max() <= 3 * k and info["lambda history"].shape == (m, k)
    np.testing.assert_allclose(info["lambda history"][-10:], np.broadcast_to(eigenvalues, (10, k)), rtol=1e-3)
    np.testing.assert_allclose(info["lambda history"][-1], theta)
    for name in ("X orth", "P orth", "P.X"):
        assert info[name].max() < 1e-4, name
    of_function = linalg._lobpcg_standard_callable(lambda v: jnp.asarray(diagonal)[:, None] * v, x, m, tol=0, debug=True)
    assert len(of_function) == 4 and set(of_function[3]) == set(info)


def test_invalid_arguments_of_lobpcg(jnp, linalg):
    x = jnp.ones((40, 2))
    for args, match in [
        ((jnp.eye(40), x[:, :0]), "must have search dim > 0, got 0"),
        ((jnp.eye(5), x[:5]), r"expected search dim \* 5 < matrix dim \(got 10, 5\)"),
        ((jnp.eye(39), x), r"A must be \(40, 40\) matrix A"),
        ((jnp.eye(40), x[:, 0]), "X must be a matrix"),
        ((lambda v: v[:3], x), r"A must be \(40, 40\) matrix A, got output \(3, 2\)"),
        ((lambda v: v.astype(jnp.float16), x), r"A, X must have same dtypes \(were float16, float32\)"),
    ]:
        with pytest.raises(ValueError, match=match):
            linalg.lobpcg_standard(*args)
