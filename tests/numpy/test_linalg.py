"""Linear algebra: what factors multiply to, on drawn shapes and dtypes; derivatives; what has no result; scipy's names."""

import itertools
from fractions import Fraction

import ferrax as jax
import ferrax.numpy as jnp
import ferrax.scipy.linalg as sl
import ferrax.scipy.sparse.linalg as ssl
import numpy as np
import pytest
from ferrax import lax
from ferrax.lax import linalg as ll
from ferrax.test_util import check_grads
from hypothesis import given, settings, strategies as st

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(autouse=True)
def wide(x64):
    """Both widths are there."""


def drawn(shape, dtype=np.float64, seed=0):
    r = np.random.default_rng(seed)
    x = r.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * r.standard_normal(shape)
    return x.astype(dtype)


def definite(n, dtype=np.float64, seed=0, lead=()):
    a = drawn((*lead, n, n), dtype, seed)
    return (a @ np.swapaxes(a, -1, -2).conj() + n * np.eye(n)).astype(dtype)


def adjoint(a):
    return np.swapaxes(np.asarray(a), -1, -2).conj()


def near(got, want, tol=1.0):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    eps = max(np.finfo(x.dtype).eps if x.dtype.kind in "fc" else 0 for x in (got, want))
    np.testing.assert_allclose(got, want, rtol=0, atol=tol * 200 * eps * (1 + np.abs(want).max(initial=0)))


def orthonormal(q):
    near(adjoint(q) @ np.asarray(q), np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), (*q.shape[:-2], q.shape[-1], q.shape[-1])))


leads = st.sampled_from([(), (1,), (3,), (2, 2), (0,)])
sizes = st.integers(0, 6) | st.sampled_from([17, 40])
kinds = st.sampled_from(DTYPES)
seeds = st.integers(0, 1000)


@st.composite
def matrices(draw, square=False):
    m = draw(sizes)
    n = m if square else draw(sizes)
    lead, dtype, seed = draw(leads), draw(kinds), draw(seeds)
    a = drawn((*lead, m, n), dtype, seed)
    if draw(st.booleans()) and min(m, n) > 1:
        # of lower rank
        k = draw(st.integers(1, min(m, n) - 1))
        a = (drawn((*lead, m, k), dtype, seed) @ drawn((*lead, k, n), dtype, seed + 1)).astype(dtype)
    return a


@settings(max_examples=60)
@given(matrices(), st.booleans())
def test_qr_multiplies_back(a, full):
    q, r = ll.qr(a, full_matrices=full)
    near(np.asarray(q) @ np.asarray(r), a)
    orthonormal(q)
    assert not np.tril(np.asarray(r), -1).any()
    assert np.all(np.diagonal(np.asarray(r), axis1=-2, axis2=-1).imag == 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3), (2, 5, 3), (3, 1), (1, 3), (0, 3), (3, 0)])
def test_packed_reflections_are_a_qr(dtype, shape):
    a = drawn(shape, dtype)
    h, taus = jnp.linalg.qr(a, mode="raw")
    k = min(shape[-2:])
    assert h.shape == (*shape[:-2], shape[-1], shape[-2]) and taus.shape == (*shape[:-2], k) and h.dtype == taus.dtype == dtype
    packed = np.swapaxes(np.asarray(h), -1, -2)
    eye = np.broadcast_to(np.eye(shape[-2], dtype=dtype), (*shape[:-2], shape[-2], shape[-2]))
    q = np.asarray(ll.ormqr(packed[..., :, :k], taus, eye))
    near(q @ np.triu(packed), a)
    near(adjoint(q) @ q, eye)
    if k:
        near(np.triu(packed)[..., :k, :], np.linalg.qr(a)[1])


def test_packed_reflections_of_zero_or_large_columns():
    a = np.array([[2.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    h, taus = jnp.linalg.qr(a, mode="raw")
    np.testing.assert_array_equal(h.T, a)
    np.testing.assert_array_equal(taus, [0, 0])
    for scale in (1e-160, 1e160):
        h, _ = jnp.linalg.qr(drawn((4, 3)) * scale, mode="raw")
        near(np.triu(h.T)[:3] / scale, np.linalg.qr(drawn((4, 3)))[1])


@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (3, 5), (2, 4, 2), (5, 1)])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_derivatives_of_packed_reflections(dtype, shape):
    check_grads(lambda a: jnp.linalg.qr(a, mode="raw"), (drawn(shape, dtype),), order=2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections_of_one_column_are_those_of_several(dtype):
    a, taus, c = drawn((9, 4), dtype), drawn((4,), dtype, 1), drawn((9, 3), dtype, 2)
    for back in (False, True):
        every = np.asarray(ll.ormqr(a, taus, c, transpose=back))
        for k in range(3):
            np.testing.assert_array_equal(ll.ormqr(a, taus, c[:, k : k + 1], transpose=back), every[:, k : k + 1])


def test_packed_reflections_are_one_primitive():
    text = str(jax.make_jaxpr(lambda a: jnp.linalg.qr(a, mode="raw"))(drawn((4, 3))))
    assert "geqrf" in text and "while" not in text and "scan" not in text


@settings(max_examples=40)
@given(matrices())
def test_pivoted_qr_takes_the_longest_column_first(a):
    q, r, order = ll.qr(a, pivoting=True, full_matrices=False)
    near(np.asarray(q) @ np.asarray(r), np.take_along_axis(a, np.asarray(order)[..., None, :], -1))
    d = np.abs(np.diagonal(np.asarray(r), axis1=-2, axis2=-1))
    assert np.all(d[..., 1:] <= d[..., :-1] * 1.001 + 1e-3 * d.max(initial=0))
    assert order.dtype == np.int32


@settings(max_examples=60)
@given(matrices())
def test_lu_multiplies_back(a):
    lu, pivots, order = (np.asarray(x) for x in ll.lu(a))
    m, n = a.shape[-2:]
    k = min(m, n)
    low = np.tril(lu, -1)[..., :, :k] + np.eye(m, k, dtype=a.dtype)
    near(low @ np.triu(lu)[..., :k, :], np.take_along_axis(a, order[..., None], -2))
    assert np.all(np.abs(np.tril(lu, -1)[..., :, :k]) <= 1.5)
    np.testing.assert_array_equal(ll.lu_pivots_to_permutation(pivots, m), order)
    assert pivots.dtype == order.dtype == np.int32


@settings(max_examples=60)
@given(matrices(), st.booleans())
def test_svd_multiplies_back(a, full):
    u, s, vh = (np.asarray(x) for x in ll.svd(a, full_matrices=full))
    k = s.shape[-1]
    near((u[..., :, :k] * s[..., None, :]) @ vh[..., :k, :], a)
    orthonormal(u)
    orthonormal(adjoint(vh))
    assert np.all(s[..., 1:] <= s[..., :-1])
    assert np.all(s >= 0)
    near(ll.svd(a, compute_uv=False), s)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(40, 17), (17, 40), (150, 60), (60, 150)])
def test_svd_of_long_matrices_of_any_rank(shape, full, dtype):
    for seed in range(13):
        k = 1 + seed * (min(shape) - 1) // 12
        a = (drawn((shape[0], k), dtype, seed) @ drawn((k, shape[1]), dtype, seed + 1)).astype(dtype)
        u, s, vh = (np.asarray(x) for x in ll.svd(a, full_matrices=full))
        n = s.shape[-1]
        # in roundings of the largest singular value: some dozens, not hundreds
        left = np.abs((u[:, :n] * s) @ vh[:n] - a).max()
        assert left <= 50 * np.finfo(dtype).eps * s[0]
        orthonormal(u)
        orthonormal(adjoint(vh))


@settings(max_examples=60)
@given(matrices(square=True), st.booleans())
def test_eigh_multiplies_back(a, lower):
    h = a + adjoint(a)
    v, w = ll.eigh(h, lower=lower, symmetrize_input=False)
    near((np.asarray(v) * np.asarray(w)[..., None, :]) @ adjoint(v), h)
    orthonormal(v)
    assert np.all(np.diff(np.asarray(w)) >= 0)
    assert w.dtype == np.finfo(a.dtype).dtype


@settings(max_examples=60)
@given(matrices(square=True))
def test_eig_multiplies_back(a):
    w, vl, vr = (np.asarray(x) for x in ll.eig(a))
    near(a @ vr, vr * w[..., None, :], 30)
    near(adjoint(vl) @ a, w[..., :, None] * adjoint(vl), 30)
    near(np.linalg.norm(vr, axis=-2), np.ones(w.shape))
    near(np.sum(w, -1), np.trace(a, axis1=-2, axis2=-1), 30)
    if a.dtype.kind == "f":
        # conjugate pairs are exact
        np.testing.assert_array_equal(np.sort_complex(w), np.sort_complex(w.conj()))


@settings(max_examples=60)
@given(matrices(square=True))
def test_schur_multiplies_back(a):
    t, z = (np.asarray(x) for x in ll.schur(a))
    near(z @ t @ adjoint(z), a, 10)
    orthonormal(z)
    assert not np.tril(t, -1 if a.dtype.kind == "c" else -2).any()
    if a.dtype.kind == "f":
        below = np.diagonal(t, -1, -2, -1)
        assert not np.any((below[..., 1:] != 0) & (below[..., :-1] != 0))


@settings(max_examples=40)
@given(matrices(square=True))
def test_hessenberg_multiplies_back(a):
    h, q = sl.hessenberg(a, calc_q=True)
    near(np.asarray(q) @ np.asarray(h) @ adjoint(q), a, 10)
    orthonormal(q)
    assert not np.tril(np.asarray(h), -2).any()


@settings(max_examples=40)
@given(matrices(square=True), st.booleans())
def test_tridiagonal_has_the_eigenvalues(a, lower):
    h = a + adjoint(a)
    _, d, e, _ = (np.asarray(x) for x in ll.tridiagonal(h, lower=lower))
    t = d[..., None] * np.eye(h.shape[-1]) if h.shape[-1] else np.zeros(h.shape, d.dtype)
    for k in range(e.shape[-1]):
        t[..., k + 1, k] = t[..., k, k + 1] = e[..., k]
    near(np.linalg.eigvalsh(t).astype(d.dtype), np.linalg.eigvalsh(h).astype(d.dtype), 5)


@settings(max_examples=40)
@given(sizes, leads, kinds, seeds)
def test_cholesky_multiplies_back(n, lead, dtype, seed):
    a = definite(n, dtype, seed, lead)
    low = np.asarray(ll.cholesky(a))
    near(low @ adjoint(low), a)
    assert not np.triu(low, 1).any()
    near(ll.cholesky(np.tril(a), symmetrize_input=False), low)
    near(jnp.linalg.cholesky(a, upper=True), adjoint(low))


def test_elements_above_a_cholesky_factor_have_no_derivative():
    a = definite(70)
    upper = np.triu(drawn((70, 70)), 1)
    grad = jax.vjp(ll.cholesky, a)[1](upper)[0]
    assert not np.asarray(grad).any()
    assert not np.triu(jax.jvp(ll.cholesky, (a,), (a + upper,))[1], 1).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cholesky_update(dtype):
    r, w = adjoint(np.linalg.cholesky(definite(5, dtype))), drawn(5, dtype)
    s = np.asarray(ll.cholesky_update(r, w))
    near(s.T @ s, r.T @ r + np.outer(w, w))
    assert np.all(np.diag(s) > 0)
    assert not np.tril(s, -1).any()
    near(ll.cholesky_update(-r, w), s)


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(0, 4), kinds, seeds, *[st.booleans()] * 5)
def test_triangular_solve(n, k, dtype, seed, left, lower, transpose, conjugate, unit):
    a = drawn((2, n, n), dtype, seed) + 3 * np.eye(n, dtype=dtype)
    b = drawn((2, n, k) if left else (2, k, n), dtype, seed + 1)
    x = np.asarray(ll.triangular_solve(a, b, left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate, unit_diagonal=unit))
    t = np.tril(a) if lower else np.triu(a)
    if unit:
        t = t - np.eye(n) * t + np.eye(n)
    t = np.swapaxes(t, -1, -2) if transpose else t
    t = t.conj() if conjugate else t
    near(t @ x if left else x @ t, b, 1e3)
    assert x.dtype == dtype


@settings(max_examples=40)
@given(st.integers(1, 8), kinds, seeds, st.booleans())
def test_tridiagonal_solve(n, dtype, seed, singular_first):
    dl, d, du, b = drawn((n,), dtype, seed), drawn((n,), dtype, seed + 1), drawn((n,), dtype, seed + 2), drawn((n, 3), dtype, seed + 3)
    if singular_first and n > 1:
        d[0] = 0
    t = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
    x = np.asarray(ll.tridiagonal_solve(dl, d, du, b))
    if np.linalg.cond(t) < 1e3:
        near(t @ x, b, 1e3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_products_of_reflections(dtype, left, transpose):
    packed, taus = ll.hessenberg(drawn((5, 5), dtype))
    a = packed[1:, :-1]
    q = np.asarray(ll.householder_product(a, taus))
    orthonormal(q)
    c = drawn((4, 3) if left else (3, 4), dtype, 1)
    op = adjoint(q) if transpose else q
    near(ll.ormqr(a, taus, c, left=left, transpose=transpose), op @ c if left else c @ op)


def test_symmetric_product():
    a, c = drawn((2, 3, 2)), drawn((2, 3, 3), seed=1)
    near(ll.symmetric_product(a, c, alpha=2.0, beta=0.5), 2 * a @ np.swapaxes(a, -1, -2) + 0.5 * c)
    assert np.isfinite(np.asarray(ll.symmetric_product(a, np.full((2, 3, 3), np.nan)))).all()


# ---- what has no result


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_non_finite_elements_give_nan(bad, n):
    a = np.eye(n)
    a[0, -1] = bad
    for f in (ll.svd, ll.eig, ll.schur, lambda x: ll.eigh(x), lambda x: ll.svd(x, compute_uv=False)):
        for y in jax.tree.leaves(f(a)):
            assert np.isnan(np.asarray(y)).all()
    for f in (ll.qr, ll.lu, ll.cholesky, ll.hessenberg, ll.tridiagonal):
        f(a)
    low = np.asarray(ll.cholesky(a + a.T))
    assert np.isnan(low).any()
    assert not np.triu(low, 1).any()


def test_a_batch_keeps_its_good_matrices():
    a = np.stack([np.eye(3), np.full((3, 3), np.nan), 2 * np.eye(3), -np.eye(3)])
    low = np.asarray(ll.cholesky(a))
    np.testing.assert_array_equal(low[[0, 2]], np.stack([np.eye(3), np.sqrt(2) * np.eye(3)]))
    assert np.isnan(low[3][np.tril_indices(3)]).all()
    w = np.asarray(jnp.linalg.eigvalsh(a))
    assert np.isnan(w[1]).all()
    np.testing.assert_array_equal(w[3], [-1, -1, -1])


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_large_and_small_elements_are_no_trouble(scale):
    a = drawn((4, 4))
    s = np.linalg.svd(a, compute_uv=False)
    np.testing.assert_allclose(np.asarray(jnp.linalg.svdvals(a * scale)) / scale, s, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(jnp.linalg.eigvalsh((a + a.T) * scale)) / scale, np.linalg.eigvalsh(a + a.T), rtol=1e-12)
    w = np.sort_complex(np.asarray(jnp.linalg.eigvals(a * scale)) / scale)
    np.testing.assert_allclose(w, np.sort_complex(np.linalg.eigvals(a)), rtol=1e-10)
    q, r = jnp.linalg.qr(a * scale)
    np.testing.assert_allclose(np.asarray(q) @ (np.asarray(r) / scale), a, rtol=1e-12, atol=1e-12)


@pytest.mark.ours
def test_missing_memory_is_an_error(child):
    code = """
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    for f in (jax.lax.linalg.svd, lambda x: jax.lax.linalg.qr(x.T)):
        try:
            jax.block_until_ready(f(jnp.ones((1, 20000))))
        except MemoryError:
            print("refused")
    """
    assert child(code).split() == ["refused"] * 2


@pytest.mark.parametrize("name", ["cholesky", "eigh", "svd", "qr", "lu", "eig", "schur", "hessenberg", "tridiagonal"])
def test_unsupported_arguments(name):
    f = getattr(ll, name)
    with pytest.raises(NotImplementedError, match="Unsupported dtype float16"):
        f(jnp.eye(2, dtype=jnp.float16))
    with pytest.raises(TypeError, match="must have rank at least 2"):
        f(jnp.ones(3))
    if name not in ("cholesky", "eigh"):
        with pytest.raises(TypeError, match=f"{name} does not accept dtype int32"):
            f(jnp.eye(2, dtype=jnp.int32))
    if name not in ("svd", "qr", "lu"):
        with pytest.raises(ValueError, match="square|shape"):
            f(jnp.ones((2, 3)))


@pytest.mark.ours
def test_options_that_choose_an_algorithm_warn_once(child):
    code = """
    import warnings
    import ferrax.scipy.linalg as sl
    ll = jax.lax.linalg
    a = jnp.eye(3)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(2):
            ll.svd(a, algorithm=ll.SvdAlgorithm.QR)
            ll.eigh(a, implementation=ll.EighImplementation.JACOBI)
            ll.qr(a, use_magma=True)
            ll.schur(a, select_callable=len)
            ll.symmetric_product(a, a, symmetrize_output=True)
            ll.qdwh(a, eps=1e-3)
            sl.polar(a, max_iterations=3)
            sl.solve_sylvester(a, a, a, tol=1e-3)
            sl.expm_frechet(a, a, method="blockEnlarge")
            ll.svd(a, algorithm=ll.SvdAlgorithm.DEFAULT)
    print(len(warned))
    """
    assert child(code).split() == ["9"]


# ---- transformations


def functions():
    a = definite(3)
    rect = drawn((4, 3), seed=3)
    b = drawn((3, 2), seed=4)
    return {
        "cholesky": (jnp.linalg.cholesky, (a,)),
        "solve": (jnp.linalg.solve, (a, b)),
        "inv": (jnp.linalg.inv, (a,)),
        "det": (jnp.linalg.det, (a,)),
        "det of four": (jnp.linalg.det, (definite(4),)),
        "slogdet": (lambda x: jnp.linalg.slogdet(x)[1], (a,)),
        "slogdet by qr": (lambda x: jnp.linalg.slogdet(x, method="qr")[1], (a,)),
        "qr": (lambda x: tuple(jnp.linalg.qr(x)), (rect,)),
        "wide qr": (lambda x: tuple(jnp.linalg.qr(x)), (rect.T,)),
        "svd": (lambda x: tuple(jnp.linalg.svd(x, full_matrices=False)), (rect,)),
        "wide svd": (lambda x: tuple(jnp.linalg.svd(x, full_matrices=False)), (rect.T,)),
        "svdvals": (jnp.linalg.svdvals, (rect,)),
        "eigh": (lambda x: tuple(jnp.linalg.eigh(x)), (a,)),
        "eigvals": (lambda x: jnp.linalg.eigvals(x).real, (drawn((3, 3), seed=5) + np.diag([0, 3, 6.0]),)),
        "pinv": (jnp.linalg.pinv, (rect,)),
        "wide pinv": (jnp.linalg.pinv, (rect.T,)),
        "lstsq": (lambda x, y: jnp.linalg.lstsq(x, y)[0], (rect, drawn((4, 2), seed=6))),
        "cond": (jnp.linalg.cond, (a,)),
        "spectral norm": (lambda x: jnp.linalg.norm(x, 2), (rect,)),
        "nuclear norm": (lambda x: jnp.linalg.norm(x, "nuc"), (rect,)),
        "matrix_power": (lambda x: jnp.linalg.matrix_power(x, -3), (a,)),
        "cho_solve": (lambda x, y: sl.cho_solve(sl.cho_factor(x), y), (a, b)),
        "lu_solve": (lambda x, y: sl.lu_solve(sl.lu_factor(x), y, trans=1), (a, b)),
        "expm": (sl.expm, (a,)),
        "sqrtm": (lambda x: sl.sqrtm(x).real, (a,)),
        "solve_sylvester": (sl.solve_sylvester, (a, definite(2), drawn((3, 2)))),
        "polar": (sl.polar, (rect,)),
        "cg": (lambda x, y: ssl.cg(x @ x.T, y, tol=1e-14)[0], (a, drawn(3))),
        "gmres": (lambda x, y: ssl.gmres(x, y, tol=1e-14)[0], (a, drawn(3))),
        "bicgstab": (lambda x, y: ssl.bicgstab(x, y, tol=1e-14)[0], (a, drawn(3))),
    }


@pytest.mark.parametrize("name", functions())
def test_derivatives_are_those_of_differences(name):
    f, args = functions()[name]
    order = 1 if name in ("expm", "sqrtm", "solve_sylvester", "cg", "gmres", "bicgstab", "polar") else 2
    check_grads(f, tuple(jnp.asarray(x) for x in args), order=order, modes=("fwd", "rev"), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", functions())
def test_batches_are_loops_and_jit_changes_nothing(name):
    f, args = functions()[name]
    many = tuple(np.stack([x, 1.5 * x, x + 0.01 * np.arange(x.size).reshape(x.shape)]) for x in args)
    each = [f(*(x[k] for x in many)) for k in range(3)]
    for got, *want in zip(jax.tree.leaves(jax.vmap(f)(*many)), *[jax.tree.leaves(y) for y in each], strict=True):
        np.testing.assert_allclose(np.asarray(got), np.stack(want), rtol=1e-9, atol=1e-9)
    for got, want in zip(jax.tree.leaves(jax.jit(f)(*args)), jax.tree.leaves(f(*args)), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-12, atol=1e-12)


DECOMPOSITIONS = ["cholesky", "svd", "eigh", "qr", "lu", "eig"]


@pytest.fixture(scope="module")
def digests(child):
    """By number of threads, a digest of the results of each decomposition."""
    code = f"""
    import hashlib
    jax.config.update("jax_enable_x64", True)
    x = np.random.default_rng(0).standard_normal((300, 20, 20))
    x = x @ x.swapaxes(1, 2)
    for name in {DECOMPOSITIONS}:
        f = getattr(jax.lax.linalg, name)
        ys = jax.tree.leaves(f(x)) + jax.tree.leaves(f(x.reshape(-1, 20)[:150, :].T @ x.reshape(-1, 20)[:150, :]))
        print(name, hashlib.sha256(b"".join(np.asarray(y).tobytes() for y in ys)).hexdigest())
    """
    return [dict(line.split() for line in child(code, NUM_THREADS=str(n)).splitlines()) for n in (1, 2)]


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_threads_change_no_bit(name, digests):
    assert digests[0][name] == digests[1][name]


def test_a_single_cotangent_is_enough():
    a = jnp.asarray(drawn((4, 3)))
    for k, f in [(0, ll.svd), (1, ll.svd), (2, ll.svd), (0, ll.qr), (1, ll.qr)]:
        g = jax.grad(lambda x, f=f, k=k: jnp.sum(jnp.sin(f(x, full_matrices=False)[k])))(a)
        assert np.isfinite(np.asarray(g)).all()


# ---- where eigenvalues and singular values coincide


def test_spectral_projections_are_differentiable_where_eigenvalues_coincide():
    q = np.linalg.qr(drawn((4, 4)))[0]
    a = jnp.asarray(q @ np.diag([1.0, 1.0, 3.0, 3.0]) @ q.T)

    def projection(x):
        v = jnp.linalg.eigh(x)[1][:, :2]
        return v @ v.T

    check_grads(projection, (a,), order=1, atol=1e-5, rtol=1e-5)
    for f in (lambda x: jnp.sum(jnp.linalg.eigvalsh(x) ** 2), lambda x: jnp.sum(jnp.linalg.svdvals(x))):
        check_grads(f, (a,), order=1, atol=1e-5, rtol=1e-5)


def test_polar_factors_are_differentiable_where_singular_values_coincide():
    a = jnp.asarray(2 * np.linalg.qr(drawn((3, 3)))[0])
    check_grads(sl.polar, (a,), order=1, atol=1e-5, rtol=1e-5)
    check_grads(jnp.linalg.pinv, (a,), order=1, atol=1e-5, rtol=1e-5)
    b = jnp.asarray(drawn(3))
    check_grads(lambda x: jnp.linalg.lstsq(x, b)[0], (a,), order=1, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_determinants_of_singular_matrices_have_derivatives(n):
    a = drawn((n, n - 1)) @ drawn((n - 1, n), seed=1)
    a[-1] = a[:-1].sum(0)
    a = np.round(a * 4)
    a[-1] = a[0]
    g = np.asarray(jax.grad(jnp.linalg.det)(jnp.asarray(a)))
    cofactors = np.array([[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)] for i in range(n)])
    np.testing.assert_allclose(g, cofactors, rtol=1e-8, atol=1e-8)


def second_minors(a):
    """The second derivatives of a determinant: minors without two rows and two columns."""
    n = len(a)
    out = np.zeros((n, n, n, n), a.dtype)
    for i, j, k, l in itertools.product(range(n), repeat=4):
        if i != k and j != l:
            rows, columns = [x for x in range(n) if x not in (i, k)], [x for x in range(n) if x not in (j, l)]
            sign = (-1) ** (i + j + k + l) * (1 if (k > i) == (l > j) else -1)
            out[i, j, k, l] = sign * np.linalg.det(a[np.ix_(rows, columns)])
    return out


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
@pytest.mark.parametrize(("n", "rank"), [(n, rank) for n in range(1, 7) for rank in range(max(n - 3, 0), n + 1)])
def test_determinants_of_singular_matrices_have_second_derivatives(n, rank, kind):
    rng = np.random.default_rng(10 * n + rank)
    part = lambda *shape: rng.integers(-4, 5, shape) + (1j * rng.integers(-4, 5, shape) if kind is np.complex128 else 0)
    a = (part(2, n, rank) @ part(2, rank, n)).astype(kind)
    second = jax.hessian(jnp.linalg.det, holomorphic=kind is np.complex128)
    want = np.stack([second_minors(x) for x in a])
    size = max(1.0, np.abs(want).max())
    for got in (np.stack([second(jnp.asarray(x)) for x in a]), jax.jit(jax.vmap(second))(a)):
        np.testing.assert_allclose(got, want, atol=1e-8 * size)
    # of a batch that has both kinds
    mixed = jnp.asarray(np.stack([a[0], np.eye(n)]).astype(kind))
    for x, got in zip(mixed, jax.vmap(second)(mixed), strict=True):
        np.testing.assert_allclose(got, second_minors(np.asarray(x)), atol=1e-8 * size)


@pytest.mark.parametrize("diagonal", [[0.0, 5, 0, 2], [1e-16, 3, 2, 1], [0.0, 0, 0, 2, 3], [1e-9, 1e-9, 1, 1], [1e-200, 1e-200, 2, 1]])
def test_determinants_of_nearly_singular_matrices_have_second_derivatives(diagonal):
    a = np.diag(diagonal)
    want = second_minors(a)
    np.testing.assert_allclose(jax.hessian(jnp.linalg.det)(jnp.asarray(a)), want, rtol=1e-7, atol=1e-9)
    q = np.linalg.qr(drawn((len(a), len(a))))[0]
    turned = jax.hessian(lambda x: jnp.linalg.det(q @ x @ q.T))(jnp.asarray(a))
    np.testing.assert_allclose(turned, want, rtol=1e-6, atol=1e-7)


def test_large_singular_determinants_have_second_and_third_derivatives():
    n = 11
    rng = np.random.default_rng(0)
    a, v = (rng.integers(-2, 3, (n, n)).astype(float) for _ in range(2))
    a[3] = a[0] + a[1]

    def exact(t):
        """By fractions: the determinant of a + t v."""
        rows = [[Fraction(int(x)) + t * int(y) for x, y in zip(p, q, strict=True)] for p, q in zip(a, v, strict=True)]
        out = Fraction(1)
        for k in range(n):
            pivot = next((r for r in range(k, n) if rows[r][k]), None)
            if pivot is None:
                return Fraction(0)
            if pivot != k:
                rows[k], rows[pivot], out = rows[pivot], rows[k], -out
            out *= rows[k][k]
            for r in range(k + 1, n):
                q = rows[r][k] / rows[k][k]
                rows[r] = [x - q * y for x, y in zip(rows[r], rows[k], strict=True)]
        return out

    # differences of a polynomial, so fine that their errors are below those of doubles
    h = Fraction(1, 2**60)
    f = [exact(k * h) for k in range(-2, 3)]
    second = (f[1] - 2 * f[2] + f[3]) / h**2
    third = (f[4] - 2 * f[3] + 2 * f[1] - f[0]) / (2 * h**3)
    det = lambda t: jnp.linalg.det(jnp.asarray(a) + t * v)
    np.testing.assert_allclose(jax.grad(jax.grad(det))(0.0), float(second), rtol=1e-8)
    np.testing.assert_allclose(jax.jit(jax.grad(jax.grad(jax.grad(det))))(0.0), float(third), rtol=1e-7)


def test_roots_polyfit_and_draws():
    np.testing.assert_allclose(np.sort_complex(jnp.roots(jnp.array([1.0, -6, 11, -6]))), [1, 2, 3], rtol=1e-10)
    x = np.arange(6.0)
    np.testing.assert_allclose(jnp.polyfit(x, 2 * x**2 - x + 1, 2), [2, -1, 1], atol=1e-10)
    np.testing.assert_allclose(jnp.poly(jnp.array([[2.0, 1], [0, 3]])).real, [1, -5, 6], atol=1e-10)
    for method in ("cholesky", "eigh", "svd"):
        y = jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(3), jnp.asarray(definite(3)), (50,), method=method)
        assert np.isfinite(np.asarray(y)).all()


# ---- numpy.linalg


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(0, 3), st.sampled_from([(), (1,), (3,), (2, 1)]), kinds, seeds)
def test_solve_broadcasts(n, k, lead, dtype, seed):
    a, b = drawn((*lead, n, n), dtype, seed) + 3 * np.eye(n, dtype=dtype), drawn((3, n, k), dtype, seed + 1)
    near(jnp.linalg.solve(a, b), np.linalg.solve(a, b), 1e3)
    near(jnp.linalg.solve(a[(0,) * len(lead)], b), np.linalg.solve(a[(0,) * len(lead)], b), 1e3)
    near(jnp.linalg.solve(a, b[0, :, :1][:, 0]) if k else jnp.zeros(0), np.linalg.solve(a, b[0, :, 0]) if k else np.zeros(0), 1e3)


@pytest.mark.parametrize("p", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_and_condition_numbers(p):
    x = drawn((2, 4, 4))
    np.testing.assert_allclose(jnp.linalg.cond(x, p), np.linalg.cond(x, p), rtol=1e-8)
    np.testing.assert_allclose(jnp.linalg.norm(x, p, axis=(-2, -1), keepdims=True), np.linalg.norm(x, p, axis=(-2, -1), keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(jnp.linalg.norm(x, p, axis=(2, 0)), np.linalg.norm(x, p, axis=(2, 0)), rtol=1e-12)


def test_least_squares_as_numpy_has_them():
    for a, b in [(drawn((5, 3)), drawn(5, seed=1)), (drawn((3, 5)), drawn((3, 2), seed=1)), (np.ones((4, 2)), drawn((4, 1)))]:
        x, _, rank, s = jnp.linalg.lstsq(a, b, numpy_resid=True)
        want = np.linalg.lstsq(a, b, rcond=None)
        np.testing.assert_allclose(x, want[0], atol=1e-10)
        np.testing.assert_allclose(s, want[3], atol=1e-10)
        assert rank == want[2]
    assert jnp.linalg.matrix_rank(np.ones((4, 2))) == 1
    assert jnp.linalg.matrix_rank(np.zeros((2, 3, 3))).tolist() == [0, 0]
    assert jnp.linalg.matrix_rank(np.diag([1.0, 1e-3]), tol=1e-2) == 1


def test_determinants():
    for n in range(6):
        a = drawn((2, n, n))
        np.testing.assert_allclose(jnp.linalg.det(a), np.linalg.det(a), rtol=1e-10)
        for method in (None, "lu", "qr"):
            sign, size = jnp.linalg.slogdet(a, method=method)
            want = np.linalg.slogdet(a)
            np.testing.assert_allclose(sign, want[0])
            np.testing.assert_allclose(size, want[1], rtol=1e-10, atol=1e-12)
    sign, size = jnp.linalg.slogdet(np.zeros((2, 2)))
    assert (float(sign), float(size)) == (0.0, -np.inf)
    z = drawn((3, 3), np.complex128)
    sign, size = jnp.linalg.slogdet(z)
    np.testing.assert_allclose(np.asarray(sign) * np.exp(np.asarray(size)), np.linalg.det(z))


def test_tensor_equations():
    a = drawn((2, 3, 6))
    np.testing.assert_allclose(jnp.linalg.tensorinv(a), np.linalg.tensorinv(a), rtol=1e-8)
    b = drawn((2, 3), seed=1)
    np.testing.assert_allclose(jnp.linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b), rtol=1e-8)


def test_hermitian_svd():
    a = drawn((2, 5, 5))
    a = a + adjoint(a)
    u, s, vh = (np.asarray(x) for x in jnp.linalg.svd(a, hermitian=True))
    near((u * s[..., None, :]) @ vh, a)
    near(s, np.linalg.svd(a, compute_uv=False))
    near(jnp.linalg.svd(a, hermitian=True, compute_uv=False), s)
    np.testing.assert_allclose(jnp.linalg.pinv(a, hermitian=True), np.linalg.pinv(a), atol=1e-10)


def test_integers_are_promoted():
    a = jnp.array([[2, 1], [1, 3]])
    assert jnp.linalg.inv(a).dtype == jnp.linalg.svd(a)[1].dtype == jnp.linalg.cholesky(a).dtype == np.float64
    assert jnp.linalg.eigvals(a).dtype == np.complex128


# ---- scipy.linalg


def test_exponentials():
    near(sl.expm(np.zeros((2, 3, 3))), np.broadcast_to(np.eye(3), (2, 3, 3)))
    a = drawn((4, 4))
    w, v = np.linalg.eig(a)
    for scale in (1e-8, 0.1, 1.0, 10.0):
        want = ((v * np.exp(scale * w)) @ np.linalg.inv(v)).real
        np.testing.assert_allclose(sl.expm(scale * a), want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
    assert np.isnan(np.asarray(sl.expm(a * 1e9))).all()
    t = np.triu(a)
    np.testing.assert_allclose(sl.expm(t, upper_triangular=True), sl.expm(t), rtol=1e-10)
    y, dy = sl.expm_frechet(a, t)
    h = 1e-6
    np.testing.assert_allclose(dy, (np.asarray(sl.expm(a + h * t)) - np.asarray(sl.expm(a - h * t))) / (2 * h), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(y, sl.expm(a))


@pytest.mark.ours
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 2e-5), ("complex128", 1e-12)])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8, 1e12])
def test_exponentials_of_badly_scaled_triangular_matrices(dtype, tolerance, scale):
    """As many squarings as the powers of a matrix ask for, not its norm: with those of the norm nothing is left of the diagonal."""
    for a, d in ((1.0, -1.0), (0.3, 0.2), (2.0, 2.0), (-3.0, 1.5), (0.0, 0.0)):
        slope = np.exp(a) if a == d else (np.exp(a) - np.exp(d)) / (a - d)
        m = np.array([[a, scale], [0, d]], dtype)
        want = np.array([[np.exp(a), scale * slope], [0, np.exp(d)]])
        for x, y in ((m, want), (m.T, want.T), (np.stack([m, m * 0]), np.stack([want, np.eye(2)]))):
            np.testing.assert_allclose(sl.expm(x, max_squarings=200), y, rtol=tolerance * max(1, np.log10(scale)), atol=tolerance)
        np.testing.assert_allclose(sl.expm(m, max_squarings=200, upper_triangular=True), want, rtol=tolerance * max(1, np.log10(scale)))
    # a similar matrix, scaled by powers of two: its exponential is scaled exactly
    b, powers = np.triu(drawn((5, 5))), 2.0 ** (np.arange(5) * 8)
    want = np.asarray(sl.expm(b)) * powers / powers[:, None]
    np.testing.assert_allclose(sl.expm(b * powers / powers[:, None], max_squarings=200), want, rtol=1e-9)


@pytest.mark.ours
def test_exponentials_of_large_symmetric_matrices():
    q = np.linalg.qr(drawn((8, 8)))[0]
    w = np.linspace(0, 40, 8)
    for scale in (1e2, 1e4, 1.3e4):
        h = (q * w) @ q.T
        want = (q * np.exp(-scale * w)) @ q.T
        np.testing.assert_allclose(sl.expm(-scale * (h + h.T) / 2), want, atol=1e-9)
    g = jax.grad(lambda s: sl.expm(-s * h).sum())(1e-2)
    np.testing.assert_allclose(g, -(h @ np.asarray(sl.expm(-1e-2 * h))).sum(), rtol=1e-9)


@pytest.mark.ours
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
@pytest.mark.parametrize("rcond", [None, -1, 1e-3, 0.5])
def test_least_squares_in_double_precision(dtype, rcond):
    """The rank is that of the given numbers, as numpy decides it, and the solution as accurate."""
    x = np.arange(1, 10001, dtype=np.float32)
    line = np.stack([np.ones_like(x), x], 1).astype(dtype)
    cases = [(line, (2020 + 2020 * x).astype(dtype))]
    for m, n in ((5, 3), (3, 5), (4, 4), (1, 3), (3, 1)):
        a = drawn((m, n), dtype)
        cases += [(a, drawn((m,), dtype)), (a, drawn((m, 2), dtype))]
        if rcond != -1:  # for which rounding decides
            cases.append((np.concatenate([a, 2 * a]).T, drawn((n,), dtype)))
    for a, b in cases:
        out, want = jnp.linalg.lstsq(a, b, rcond=rcond, numpy_resid=True), np.linalg.lstsq(a, b, rcond=rcond)
        for y, z in zip(out, want, strict=True):
            assert y.dtype == z.dtype or y.dtype == np.int32
            np.testing.assert_allclose(
                y, z, rtol=2e-4 if np.dtype(dtype).itemsize in (4, 8) and dtype != "float64" else 1e-6, atol=1e-6 * (1 + abs(z).max(initial=0))
            )


@pytest.mark.ours
def test_derivatives_of_least_squares_in_single_precision():
    a, b = jnp.asarray(drawn((5, 3), "float32")), jnp.asarray(drawn((5,), "float32"))
    wide = [x.astype("float64") for x in (a, b)]
    for f in (lambda a, b: jnp.linalg.lstsq(a, b)[0].sum(), lambda a, b: jnp.linalg.lstsq(a, b)[1].sum()):
        for g, w in zip(jax.grad(f, (0, 1))(a, b), jax.grad(f, (0, 1))(*wide), strict=True):
            assert g.dtype == np.float32
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
    f = lambda a, b: jnp.linalg.lstsq(a, b)[0].sum()
    with jax.enable_x64(False):
        h = jax.jit(jax.hessian(f))(a, b)
        lanes = jax.vmap(jax.grad(f), (0, None))(jnp.stack([a, a + 1]), b)
    assert h.dtype == lanes.dtype == np.float32
    np.testing.assert_allclose(h, jax.hessian(f)(*wide), rtol=1e-3, atol=1e-3)


@pytest.mark.ours
def test_polynomials_fitted_in_double_precision():
    for x in (np.arange(1, 10001, dtype=np.float32), np.linspace(0, 1, 500, dtype=np.float32)):
        for degree in (1, 2):
            y = np.polyval(np.arange(2.0, 3.0 + degree) * 1000, x.astype(float))
            with jax.enable_x64(False):
                c = jnp.polyfit(x, y.astype(np.float32), degree)
            assert c.dtype == np.float32
            np.testing.assert_allclose(np.polyval(np.asarray(c, float), x.astype(float)), y, rtol=1e-6, atol=1e-6 * y.max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_square_roots(dtype):
    for a in (drawn((5, 5), dtype), definite(4, dtype), -definite(3, dtype), np.zeros((2, 2), dtype), np.eye(3, dtype=dtype)):
        x = np.asarray(sl.sqrtm(a))
        near(x @ x, a.astype(x.dtype), 20)
        assert x.dtype.kind == "c"


def test_square_roots_of_singular_matrices():
    for a in ([[0, 0], [0, 4]], [[4, 1, 0], [0, 0, 0], [0, 0, 0]], [[4, 0, 2], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [0, 0, 9]]):
        x = np.asarray(sl.sqrtm(np.array(a, np.float32)))
        np.testing.assert_allclose(x @ x, a, atol=1e-5)
    assert np.isnan(np.asarray(sl.sqrtm(np.array([[0, 1], [0, 0]], np.float32)))).any(), "this one has no root"


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "bool"])
def test_powers_of_integers_are_integers(dtype):
    a = np.array([[1, 1], [1, 0]], dtype)
    for n in range(6):
        y = jnp.linalg.matrix_power(a, n)
        assert y.dtype == dtype
        np.testing.assert_array_equal(y, np.linalg.matrix_power(a, n))
    assert jnp.linalg.matrix_power(np.array([[2, 1], [1, 1]], np.int32), -2).dtype == np.float32


def test_functions_of_matrices():
    a = drawn((4, 4))
    np.testing.assert_allclose(sl.funm(a, jnp.exp).real, sl.expm(a), rtol=1e-8)
    y, error = sl.funm(a, lambda x: x * x, disp=False)
    np.testing.assert_allclose(y.real, a @ a, atol=1e-10)
    assert error < 1e-8


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(1, 6), kinds, seeds)
def test_sylvester(m, n, dtype, seed):
    a, b, c = definite(m, dtype, seed), definite(n, dtype, seed + 1), drawn((m, n), dtype, seed + 2)
    x = np.asarray(sl.solve_sylvester(a, b, c))
    near(a @ x + x @ b, c, 10)
    assert np.isnan(np.asarray(sl.solve_sylvester(a, -a, drawn((m, m), dtype)))).all()


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(1, 6), kinds, seeds, st.sampled_from(["left", "right"]))
def test_polar(m, n, dtype, seed, side):
    a = drawn((m, n), dtype, seed)
    u, p = (np.asarray(x) for x in sl.polar(a, side))
    near(u @ p if side == "right" else p @ u, a, 5)
    near(p, adjoint(p))


def test_names_of_scipy():
    a, b = definite(4), drawn((4, 2))
    for lower in (False, True):
        near(sl.cho_solve(sl.cho_factor(a, lower=lower), b), np.linalg.solve(a, b), 10)
    for trans, op in enumerate([a, a.T, a.T]):
        near(sl.lu_solve(sl.lu_factor(a), b[:, 0], trans=trans), np.linalg.solve(op, b[:, 0]), 10)
        near(sl.solve_triangular(a, b, trans=trans), np.linalg.solve(np.triu(op) if trans == 0 else np.triu(a).T, b), 10)
    for kind in ("gen", "sym", "her", "pos"):
        near(sl.solve(a, b, assume_a=kind), np.linalg.solve(a, b), 10)
    p, low, up = (np.asarray(x) for x in sl.lu(drawn((2, 3, 4))))
    near(p @ low @ up, drawn((2, 3, 4)))
    t, z = sl.schur(drawn((4, 4)))
    tc, zc = (np.asarray(x) for x in sl.rsf2csf(t, z))
    near(zc @ tc @ adjoint(zc), drawn((4, 4)).astype(complex), 10)
    assert not np.tril(tc, -1).any()
    near(sl.qr_multiply(a, b, mode="left")[0], np.linalg.qr(a)[0] @ b)
    w, v = sl.eigh_tridiagonal(jnp.array([1.0, 2, 3]), jnp.array([0.5, 0.25]))
    near(w, np.linalg.eigvalsh(np.diag([1.0, 2, 3]) + np.diag([0.5, 0.25], 1) + np.diag([0.5, 0.25], -1)))
    orthonormal(v)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_vectors_of_tridiagonal_matrices(n, dtype):
    """The given elements are those above the diagonal: those below are their conjugates."""
    d, e = drawn((n,), dtype).real.astype(dtype), drawn((max(n - 1, 0),), dtype, seed=1)
    whole = np.diag(d) + np.diag(e, 1) + np.diag(e.conj(), -1)
    w, v = (np.asarray(x) for x in sl.eigh_tridiagonal(d, e))
    near(whole @ v, v * w, 10)
    near(w, np.linalg.eigvalsh(whole), 10)
    near(sl.eigh_tridiagonal(d, e, eigvals_only=True), w)
    if n > 2:
        some, vs = (np.asarray(x) for x in sl.eigh_tridiagonal(d, e, select="i", select_range=(1, 2)))
        near(some, w[1:3], 10)
        near(whole @ vs, vs * some, 10)


@pytest.mark.parametrize("batches", [((), ()), ((3,), ()), ((), (3,)), ((2, 3), (3,)), ((2, 3), (2, 1))], ids=str)
@pytest.mark.parametrize("jit", [False, True])
def test_complex_schur_forms_of_batches(batches, jit):
    t, z = (np.stack([np.asarray(x) for x in sl.schur(drawn((4, 4)))][i : i + 1] * int(np.prod(b, dtype=int))).reshape(*b, 4, 4) for i, b in enumerate(batches))
    tc, zc = (np.asarray(x) for x in (jax.jit(sl.rsf2csf) if jit else sl.rsf2csf)(t, z))
    assert tc.shape == zc.shape == (*np.broadcast_shapes(*batches), 4, 4)
    assert not np.tril(tc, -1).any()
    near(zc @ tc @ adjoint(zc), np.broadcast_to(drawn((4, 4)), tc.shape).astype(complex), 10)


@pytest.mark.parametrize("t, z, words", [((4, 5), (4, 4), "'T' must be square"), ((4, 4), (4, 5), "'Z' must be square"), ((5, 5), (4, 4), "shapes must match")])
def test_complex_schur_forms_refuse(t, z, words):
    with pytest.raises(ValueError, match=words):
        sl.rsf2csf(np.ones(t), np.ones(z))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_tridiagonal_reads_the_real_part_of_the_diagonal(dtype, n, lower):
    a = drawn((2, n, n), dtype)
    h = a + adjoint(a)
    odd = np.tril(h) if lower else np.triu(h)
    odd[..., np.arange(n), np.arange(n)] += 3j
    for want, got in zip(ll.tridiagonal(h, lower=lower), ll.tridiagonal(odd, lower=lower), strict=True):
        third = np.tril(want) if lower else np.triu(want)
        near(np.tril(got) if lower else np.triu(got), third) if want.ndim == 3 else near(got, want)


def test_structured_matrices_of_few_elements():
    for f, s, words in (
        ([], [], "at least 2"),
        ([1.0], [], "at least 2"),
        ([1.0, 2.0], [0.5, 0.5], "Incorrect lengths"),
        ([1.0, 2.0, 3.0], [0.5], "Incorrect lengths"),
    ):
        with pytest.raises(ValueError, match=words):
            sl.leslie(np.array(f), np.array(s))
    with pytest.raises(ValueError, match="nonzero length"):
        sl.fiedler_companion(np.zeros(0))
    with pytest.raises(ValueError, match="nonzero length"):
        sl.fiedler_companion(np.zeros((2, 0)))
    assert sl.fiedler_companion(np.ones(1)).shape == (0, 0) and sl.leslie(np.ones((3, 2)), np.ones((3, 1))).shape == (3, 2, 2)


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_eigenvalues_of_two_matrices(kind, dtype):
    a, b = definite(4, dtype), definite(4, dtype, seed=1)
    w, v = (np.asarray(x) for x in sl.eigh(a, b, type=kind))
    left, right = {1: (a @ v, b @ v * w), 2: (a @ b @ v, v * w), 3: (b @ a @ v, v * w)}[kind]
    near(left, right, 10)


@pytest.mark.parametrize("k", range(-3, 4))
def test_diagonals_on_either_side(k):
    np.testing.assert_array_equal(jnp.diag(np.array([0.5, 0.25]), k), np.diag([0.5, 0.25], k))
    np.testing.assert_array_equal(jnp.diagflat(np.array([[0.5], [0.25]]), k), np.diagflat([0.5, 0.25], k))


def test_structured_matrices():
    c = np.array([1.0, 2, 3])
    np.testing.assert_array_equal(sl.toeplitz(c, np.array([9.0, 5])), [[1, 5], [2, 1], [3, 2]])
    np.testing.assert_array_equal(sl.hankel(c, np.array([9.0, 5])), [[1, 2], [2, 3], [3, 5]])
    np.testing.assert_array_equal(sl.circulant(c), [[1, 3, 2], [2, 1, 3], [3, 2, 1]])
    np.testing.assert_array_equal(sl.companion(c), [[-2, -3], [1, 0]])
    np.testing.assert_array_equal(sl.block_diag(np.ones((2, 1)), np.ones(2), 3.0), [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 3]])
    np.testing.assert_array_equal(sl.block_diag(), np.zeros((1, 0)))
    for mode in ("full", "same", "valid"):
        v = drawn(4)
        np.testing.assert_allclose(sl.convolution_matrix(c, 4, mode) @ v, np.convolve(c, v, mode))
    np.testing.assert_allclose(sl.dft(5) @ drawn(5), np.fft.fft(drawn(5)), atol=1e-12)
    np.testing.assert_allclose(sl.invhilbert(6) @ sl.hilbert(6), np.eye(6), atol=1e-7)
    for kind in ("symmetric", "lower", "upper"):
        np.testing.assert_allclose(sl.invpascal(5, kind) @ sl.pascal(5, kind), np.eye(5), atol=1e-9)
    h = np.asarray(sl.hadamard(8))
    np.testing.assert_array_equal(h @ h.T, 8 * np.eye(8))
    near(np.asarray(sl.helmert(5, full=True)) @ np.asarray(sl.helmert(5, full=True)).T, np.eye(5))
    np.testing.assert_array_equal(sl.leslie(c, np.array([0.5, 0.25])), [[1, 2, 3], [0.5, 0, 0], [0, 0.25, 0]])
    np.testing.assert_array_equal(sl.fiedler(c), np.abs(c[:, None] - c[None, :]))
    for n in range(2, 8):
        p = np.arange(1.0, n + 1)
        want = np.sort_complex(np.roots(p))
        np.testing.assert_allclose(np.sort_complex(np.linalg.eigvals(sl.fiedler_companion(p))), want, atol=1e-8)


# ---- large systems


@pytest.mark.parametrize("solver", [ssl.cg, ssl.bicgstab, ssl.gmres])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_iterative_solvers(solver, dtype):
    a, b = definite(12, dtype), drawn(12, dtype)
    want = np.linalg.solve(a, b)
    np.testing.assert_allclose(solver(a, b, tol=1e-12)[0], want, rtol=1e-8)
    np.testing.assert_allclose(solver(lambda x: a @ x, b, x0=want, tol=1e-12, M=lambda x: x / 12)[0], want, rtol=1e-8)
    x = solver(lambda t: {"u": a[:6, :6] @ t["u"], "v": (2 * t["v"][0],)}, {"u": b[:6], "v": (b[6:],)}, tol=1e-12)[0]
    np.testing.assert_allclose(x["u"], np.linalg.solve(a[:6, :6], b[:6]), rtol=1e-8)
    np.testing.assert_allclose(x["v"][0], b[6:] / 2, rtol=1e-8)
    assert np.all(np.asarray(solver(a, np.zeros(12, dtype))[0]) == 0)


def test_custom_linear_solve_runs():
    a, b = jnp.asarray(definite(3)), jnp.asarray(drawn(3))
    x = lax.custom_linear_solve(lambda x: a @ x, b, lambda _, b: jnp.linalg.solve(a, b), symmetric=True)
    near(x, np.linalg.solve(a, b))
    root = lax.custom_root(lambda x: x**3 - 2.0, 1.0, lambda f, x: lax.fori_loop(0, 40, lambda _, x: x - f(x) / (3 * x**2), x), lambda g, y: y / g(1.0))
    near(root, 2 ** (1 / 3))


# ---- beside JAX


@pytest.mark.parametrize("name", ["cholesky", "inv", "det", "svdvals", "eigvalsh", "pinv", "slogdet", "matrix_rank", "cond", "qr"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_types_and_values_are_those_of_jax(name, dtype, oracle):
    oracle.config.update("jax_enable_x64", True)
    a = definite(5, dtype, lead=(2,))
    ours, theirs = getattr(jnp.linalg, name)(a), getattr(oracle.numpy.linalg, name)(a)
    for x, y in zip(jax.tree.leaves(ours), oracle.tree.leaves(theirs), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(
            np.asarray(x), np.asarray(y), rtol=1e-4 if np.finfo(dtype).bits == 32 else 1e-10, atol=1e-4 if np.finfo(dtype).bits == 32 else 1e-10
        )


@pytest.mark.parametrize("n", [40, 150])
@pytest.mark.parametrize("dtype", DTYPES)
def test_large_matrices(n, dtype):
    """Blocks, in the precision of the elements: conventions as for small ones, alone, compiled, and in a batch."""
    a, h = drawn((n, n + 5), dtype), definite(n, dtype)
    w = drawn((n, 7), dtype, 3)

    def alike(f, *x):
        y = f(*x)
        for got, again in zip(y, jax.jit(f)(*x), strict=True):
            np.testing.assert_array_equal(got, again)
        for got, lanes in zip(y, jax.vmap(f)(*(jnp.stack([x, x]) for x in x)), strict=True):
            np.testing.assert_array_equal(lanes[1], got)
        return y

    (c,) = alike(lambda h: (jnp.linalg.cholesky(h),), h)
    near(c @ adjoint(c), h, n)
    assert (np.asarray(c) == np.tril(c)).all()
    near(c, np.linalg.cholesky(h), n)
    lu, _, order = alike(ll.lu, a)
    near((np.tril(lu[:, :n], -1) + np.eye(n, dtype=dtype)) @ np.triu(lu), a[np.asarray(order)], n)
    (x,) = alike(lambda h, w: (jnp.linalg.solve(h, w),), h, w)
    near(h @ np.asarray(x), w, n)
    for m in (a, a.T):
        q, r = alike(jnp.linalg.qr, m)
        near(np.asarray(q) @ np.asarray(r), m, n)
        orthonormal(q)
        want = np.linalg.qr(m)
        near(q, want[0], n)
        near(r, want[1], n)
        u, s, v = alike(lambda m: tuple(jnp.linalg.svd(m, full_matrices=False)), m)
        near((np.asarray(u) * np.asarray(s)) @ np.asarray(v), m, n)
        near(s, np.linalg.svd(m, compute_uv=False), n)
    values, vectors = alike(lambda h: tuple(jnp.linalg.eigh(h)), h)
    near((np.asarray(vectors) * np.asarray(values)) @ adjoint(vectors), h, n)
    near(values, np.linalg.eigvalsh(h), n)
    assert np.isnan(jnp.linalg.cholesky(-h)).any() and np.isnan(jnp.linalg.eigh(h * np.nan)[0]).all()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_of_scipy_reads_one_triangle(dtype, lower):
    a = np.array([[4.0, 1.0], [3.0, 5.0]], dtype)
    if dtype == "complex64":
        a[0, 1] += 1j
    # numpy reads the lower one
    from_lower = lambda a: np.linalg.cholesky(a) if lower else np.linalg.cholesky(a.T.conj()).T.conj()
    want = from_lower(a)
    for f in (jax.scipy.linalg.cholesky, jax.jit(jax.scipy.linalg.cholesky, static_argnames="lower")):
        np.testing.assert_allclose(np.asarray(f(a, lower=lower)), want, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(jax.scipy.linalg.cho_factor(a, lower=lower)[0]), want, rtol=1e-6)
    huge = np.array([[3e38, 1e38], [1e38, 2e38]], "float32")  # no sum of it fits
    np.testing.assert_allclose(np.asarray(jax.scipy.linalg.cholesky(huge, lower=lower)), from_lower(huge.astype(float)), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_half_precision_is_computed_in_single(dtype):
    a, b = (jnp.asarray(x, dtype) for x in ([[2.0, 0.0], [1.0, 3.0]], [[1.0, 0.5], [2.0, 7.0]]))
    wide = [x.astype("float32") for x in (a, b)]
    la = jax.lax.linalg
    for f in (
        lambda a, b: la.triangular_solve(a, b, left_side=True, lower=True),
        lambda a, b: la.triangular_solve(a, b[0], left_side=True, lower=True),
        lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
        lambda a, b: la.symmetric_product(a, b, alpha=0.5, beta=2.0),
        lambda a, b: jnp.linalg.slogdet(a)[1],
        lambda a, b: jnp.linalg.slogdet(b)[0],
        jax.grad(lambda a, b: la.triangular_solve(a, b, lower=True).sum().astype("float32")),
    )[: None if "float16" in dtype else 4]:
        for g in (f, jax.jit(f)):
            got = g(a, b)
            assert got.dtype == dtype
            np.testing.assert_array_equal(np.asarray(got.astype("float32")), np.asarray(f(*wide).astype(dtype).astype("float32")))


@pytest.mark.parametrize("shape, side", [((2, 3, 3), "right"), ((2, 4, 2), "right"), ((3, 2, 4), "left"), ((2, 2, 3, 3), "left"), ((0, 3, 3), "right")])
def test_polar_of_batches(shape, side):
    a = np.random.default_rng(0).standard_normal(shape).astype("float32")
    u, p = jax.scipy.linalg.polar(a, side=side)
    np.testing.assert_allclose(np.asarray(u @ p if side == "right" else p @ u), a, atol=1e-5)
    each = [jax.scipy.linalg.polar(x, side=side) for x in a.reshape(-1, *shape[-2:])]
    for k, (v, q) in enumerate(each):
        np.testing.assert_allclose(np.asarray(u).reshape(-1, *v.shape)[k], v, atol=1e-6)
        np.testing.assert_allclose(np.asarray(p).reshape(-1, *q.shape)[k], q, atol=1e-5)
    with pytest.raises(ValueError, match="must be a 2-D array"):
        jax.scipy.linalg.polar(a.ravel())


def test_the_rank_of_no_equations_is_a_plain_integer():
    assert not jnp.linalg.lstsq(jnp.zeros((0, 3)), jnp.zeros((0, 3)))[2].weak_type


@pytest.mark.parametrize("mode", ["left", "right"])
@pytest.mark.parametrize("kwargs", [{}, {"pivoting": True}, {"conjugate": True}], ids=str)
def test_qr_multiply_of_batches(jnp, mode, kwargs):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 4, 3)) + 1j * rng.normal(size=(2, 4, 3))
    n = 3 if mode == "left" else 4
    for c in (rng.normal(size=(2, n, n)), rng.normal(size=(5, 1, n, n)), rng.normal(size=(n, n)), rng.normal(size=n)):
        out, r, *order = sl.qr_multiply(a, c, mode=mode, **kwargs)
        whole = np.broadcast_shapes(a.shape[:-2], c.shape[:-2])
        assert r.shape == (*whole, 3, 3)
        for i in np.ndindex(whole):
            one = c if c.ndim <= 2 else np.broadcast_to(c, (*whole, n, n))[i]
            got = out.reshape(*whole, -1)[i] if c.ndim == 1 else out[i]
            want = sl.qr_multiply(a[i[-1]], one, mode=mode, **kwargs)
            for x, y in zip((got, r[i], *(o[i] for o in order)), want, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
