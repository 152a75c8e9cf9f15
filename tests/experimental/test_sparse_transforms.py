"""Sparse arrays under `jit`, `vmap`, loops and derivatives; `sparsify`; the other formats; and all of it beside JAX where it is installed."""

import importlib

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from sparse_arrays import buffers, check, meaning

FEW = settings(max_examples=40)


@pytest.fixture(scope="module")
def sparse(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.sparse")


X = np.array([[0, 1.0, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0]], np.float32)


# ---------------------------------------------------------------- pytrees


def test_pytrees(jax, sparse):
    m = sparse.BCOO.fromdense(X)
    leaves, tree = jax.tree.flatten(m)
    assert len(leaves) == 2 and hash(tree) == hash(jax.tree.structure(m)) and tree != jax.tree.structure(m.T)
    np.testing.assert_array_equal(jax.tree.unflatten(tree, leaves).todense(), X)
    assert repr(jax.tree.unflatten(tree, [1, None])) == "BCOO(<invalid>)"
    np.testing.assert_array_equal(jax.tree.map(lambda x: x * 1, m).todense(), X)
    assert jax.eval_shape(lambda m: m * 2, m).shape == (3, 4)
    seen = []
    jax.jit(lambda m: seen.append(repr(m)) or m)(m)
    assert seen[0].endswith("[BCOO(float32[3, 4], nse=4)]")
    for kind, buffers_ in [(sparse.BCOO, (1, 2)), (sparse.BCSR, (1, 2, 3)), (sparse.COO, (1, 2, 3)), (sparse.CSR, (1, 2, 3))]:
        with pytest.raises(ValueError, match=f"{kind.__name__}.tree_unflatten: invalid aux_data"):
            kind.tree_unflatten({}, buffers_)
        out = jax.jit(lambda m: m)(kind.fromdense(X))
        np.testing.assert_array_equal(out.todense(), X)
        assert jax.device_put(kind.fromdense(X)).block_until_ready().nse == 4


# ---------------------------------------------------------------- vmap, jit, loops


@FEW
@given(buffers(max_dims=4, shared=False, n_dense=0, dtype=np.float32), st.data())
def test_vmap_over_batches(jax, jnp, sparse, parts, data):
    nb = parts[1].ndim - 2
    assume(nb > 0 and 0 not in parts[2][:nb])
    axis = data.draw(st.integers(0, nb - 1))
    m, x = sparse.BCOO(parts[:2], shape=parts[2]), meaning(*parts)
    shapes = []
    out = jax.vmap(lambda m: shapes.append(m.shape) or m.todense(), in_axes=axis, out_axes=axis)(m)
    np.testing.assert_array_equal(out, x)
    doubled = jax.vmap(lambda m: m * 2, in_axes=axis)(m)
    check(doubled, np.moveaxis(x, axis, 0) * 2)
    check(jax.vmap(lambda m: m.sum_duplicates(nse=m.nse + 1), in_axes=axis, out_axes=nb - 1)(m), np.moveaxis(x, axis, nb - 1))


def test_vmap_of_products(jax, jnp, sparse):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (2, 3, 4)).astype(np.float32)
    m, v = sparse.BCOO.fromdense(x, n_batch=1), rng.integers(0, 3, (2, 4)).astype(np.float32)
    np.testing.assert_array_equal(jax.vmap(lambda m, v: m @ v)(m, v), np.einsum("bij,bj->bi", x, v))
    np.testing.assert_array_equal(jax.vmap(lambda v: sparse.BCOO.fromdense(x[0]) @ v)(v), v @ x[0].T)
    np.testing.assert_array_equal(jax.vmap(lambda m: (m @ m.T).todense())(m), x @ x.swapaxes(1, 2))
    rows = sparse.BCSR.fromdense(x, n_batch=1)
    np.testing.assert_array_equal(jax.vmap(lambda m, v: m @ v)(rows, v), np.einsum("bij,bj->bi", x, v))
    assert jax.vmap(lambda m: m)(rows).shape == (2, 3, 4)
    assert [m.shape for m in [jax.lax.map(lambda m: m, m)]] == [(2, 3, 4)]
    total, slices = jax.lax.scan(lambda c, m: (c + m.todense().sum(), m * 2), jnp.float32(0), m)
    assert total == x.sum()
    check(slices, 2 * x)


def test_operators_under_jit(jax, sparse):
    m = sparse.BCOO.fromdense(X)
    out = jax.jit(lambda m, v: (m @ v, m.T, m[1:, ::2], (m * 2).sum(0)))(m, X[0])
    for got, expected in zip(out, (X @ X[0], X.T, X[1:, ::2], (X * 2).sum(0)), strict=True):
        check(got, expected)
    loop = jax.lax.fori_loop(0, 3, lambda i, m: m * 2, m)
    check(loop, X * 8)


# ---------------------------------------------------------------- derivatives


FUNCTIONS = {
    "todense": lambda sparse, jnp, m, y: jnp.sin(m.todense()).sum(),
    "vector": lambda sparse, jnp, m, y: jnp.sin(m @ y[0]).sum(),
    "matrix": lambda sparse, jnp, m, y: ((m @ y.T) ** 2).sum(),
    "from the left": lambda sparse, jnp, m, y: (jnp.cos(y[:, 0]) @ m).sum(),
    "two": lambda sparse, jnp, m, y: ((m @ m.T).todense() ** 2).sum(),
    "elementwise": lambda sparse, jnp, m, y: (m * y).sum() + (m * m).sum() + (2 * m).sum(),
    "nonlinear": lambda sparse, jnp, m, y: sparse.sparsify(lambda m: jnp.sin(m) ** 2)(m).sum(),
    "sums": lambda sparse, jnp, m, y: (m.sum(0).todense() ** 2).sum() + (m.sum(1).todense() ** 3).sum(),
    "slices": lambda sparse, jnp, m, y: (m[1:, ::2].todense() ** 2).sum() + m[0, 1].todense() + m[:, np.array([1, 3])].sum(),
    "shapes": lambda sparse, jnp, m, y: (m.T.reshape(2, 6).todense() ** 2).sum() + sparse.bcoo_concatenate([m, m], dimension=0).sum(),
    "duplicates": lambda sparse, jnp, m, y: (m.sum_duplicates(nse=4, remove_zeros=False).data ** 2).sum() + (m.sort_indices().todense() * y).sum(),
    "layouts": lambda sparse, jnp, m, y: (m.update_layout(n_batch=1, on_inefficient=None).data ** 2).sum() + (m.update_layout(n_dense=1, on_inefficient=None).data ** 2).sum(),
    "sum with dense": lambda sparse, jnp, m, y: ((m + y) ** 2).sum() + ((m - m.T.T * 3).todense() ** 2).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_gradients_are_those_of_dense_arrays(jax, jnp, sparse, name):
    m, y = sparse.BCOO.fromdense(X), np.arange(12, dtype=np.float32).reshape(3, 4) / 7
    f = lambda m, y: FUNCTIONS[name](sparse, jnp, m, y)
    rebuilt = lambda x, y: f(sparse.BCOO((x[tuple(m.indices.T)], m.indices), shape=m.shape, indices_sorted=True, unique_indices=True), y)
    value, (gm, gy) = sparse.value_and_grad(f, argnums=(0, 1))(m, y)
    dense_value, (dm, dy) = jax.value_and_grad(rebuilt, argnums=(0, 1))(jnp.asarray(X), y)
    np.testing.assert_allclose(value, dense_value, rtol=1e-6)
    assert (gm.shape, gm.nse, gm.indices.tolist()) == (m.shape, m.nse, m.indices.tolist())
    np.testing.assert_allclose(gm.todense(), dm, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gy, dy, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.jit(sparse.grad(f))(m, y).data, gm.data, rtol=1e-5, atol=1e-6)
    # forward mode, by finite differences, and forward over reverse
    t = np.array([1.0, -2.0, 0.5, 1.5], np.float32)
    along = lambda d: f(sparse.BCOO((d, m.indices), shape=m.shape, indices_sorted=True, unique_indices=True), y)
    tangent = jax.jvp(along, (m.data,), (t,))[1]
    np.testing.assert_allclose(tangent, (gm.data * t).sum(), rtol=1e-4, atol=1e-4)
    assert jax.hessian(along)(m.data).shape == (4, 4)


def test_gradient_against_finite_differences(jax, jnp, sparse, x64):
    rng = np.random.default_rng(0)
    data, indices = rng.normal(size=5), np.array([[0, 1], [2, 3], [0, 1], [3, 9], [1, 0]])
    v = rng.normal(size=4)
    f = lambda d, v: jnp.sin(sparse.BCOO((d, indices), shape=(3, 4)) @ v).sum()
    gd, gv = jax.grad(f, (0, 1))(data, v)
    for g, i in ((gd, 0), (gv, 1)):
        for k in range(g.shape[0]):
            step = np.zeros(g.shape[0])
            step[k] = 1e-6
            args = [data, v], [data, v]
            args[0][i], args[1][i] = args[0][i] + step, args[1][i] - step
            np.testing.assert_allclose(g[k], (f(*args[0]) - f(*args[1])) / 2e-6, rtol=1e-6, atol=1e-8)
    assert gd[3] == 0


def test_what_differentiation_returns(jax, jnp, sparse):
    m, y = sparse.BCOO.fromdense(X), jnp.arange(1.0, 5)
    g = sparse.grad(lambda m: (m @ y).sum())(m)
    assert isinstance(g, sparse.BCOO) and g.data.tolist() == [2, 4, 1, 3]
    assert sparse.grad(lambda d: d["a"][0].sum() * 2)({"a": (m,), "b": y})["a"][0].data.tolist() == [2] * 4
    g, aux = sparse.grad(lambda m: (m.sum(), "aux"), has_aux=True)(m)
    assert g.data.tolist() == [1] * 4 and aux == "aux"
    (value, aux), g = sparse.value_and_grad(lambda m: (m.sum(), 3), has_aux=True)(m)
    assert (value, aux, g.nse) == (10, 3, 4)
    for kind in (sparse.COO, sparse.CSR, sparse.CSC, sparse.BCSR):
        g = sparse.grad(lambda m: (m @ y).sum())(kind.fromdense(X))
        assert isinstance(g, kind)
        np.testing.assert_array_equal(g.todense(), (X != 0) * np.asarray(y))
    for jac in (sparse.jacfwd, sparse.jacrev, sparse.jacobian):
        j, jy = jac(lambda m, y: m @ y, argnums=(0, 1))(m, y)
        assert (j.shape, j.n_batch) == ((3, 3, 4), 1)
        np.testing.assert_array_equal(j.todense(), np.einsum("ik,kl->ikl", np.eye(3), (X != 0) * np.asarray(y)))
        np.testing.assert_array_equal(jy, X)
        assert jac(lambda m: {"a": m @ np.ones((4, 2), np.float32)})(m)["a"].shape == (3, 2, 3, 4)
        out, aux = jac(lambda m: (m @ y, 1), has_aux=True)(m)
        assert out.nse == 4 and aux == 1
        with pytest.raises(NotImplementedError, match="sparse result"):
            jac(lambda m: m * 2)(m)
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        sparse.grad(lambda m: m.sum())(sparse.BCOO.fromdense(X.astype(int)))
    with pytest.raises(TypeError, match="scalar-output"):
        sparse.grad(lambda m: m @ y)(m)
    with pytest.raises((TypeError, ValueError), match="positional arguments"):
        sparse.grad(lambda m: m.sum(), argnums=2)(m)


# ---------------------------------------------------------------- sparsify


TO_SPARSE = ["abs", "sin", "sinh", "tan", "tanh", "arcsin", "arcsinh", "arctan", "sqrt", "square", "sign", "expm1", "log1p", "negative", "conj", "real", "round", "floor", "ceil", "cbrt"]  # fmt: skip


@pytest.mark.parametrize("name", TO_SPARSE)
def test_functions_that_keep_zeros(jnp, sparse, name):
    f = getattr(jnp, name)
    # equal indices: the function is of the sum
    m = sparse.BCOO((np.array([0.25, 0.5, 0.25, 0.125], np.float32), np.array([[1, 1], [0, 2], [1, 1], [9, 9]])), shape=(2, 3))
    out = sparse.sparsify(f)(m)
    assert isinstance(out, sparse.BCOO)
    check(out, f(m.todense()), rtol=1e-6)


@pytest.mark.parametrize("name", ["cos", "exp", "log", "cosh", "arccos", "isfinite"])
def test_functions_that_do_not(jnp, sparse, name):
    with pytest.raises(NotImplementedError, match="is not implemented because it would result in dense output"):
        sparse.sparsify(getattr(jnp, name))(sparse.eye(3))


COMPOSITIONS = {
    "mean": lambda jnp, lax, m, n, y: (m.mean(), m.mean(0)),
    "dots": lambda jnp, lax, m, n, y: (jnp.dot(m, y), jnp.vdot(m, n), jnp.tensordot(m, n), jnp.inner(m, n), jnp.einsum("ij,kj->ik", m, n)),
    "outer": lambda jnp, lax, m, n, y: (jnp.outer(m, n), jnp.kron(m, n), jnp.outer(m, y)),
    "stack": lambda jnp, lax, m, n, y: (jnp.stack([m, n]), jnp.stack([m, n], 2), jnp.vstack([m, n]), jnp.hstack([m, n]), jnp.concatenate([m, n], 1)),
    "shape": lambda jnp, lax, m, n, y: (jnp.ravel(m), m.T.reshape(6, 2), jnp.expand_dims(m, (0, 3)), jnp.squeeze(m[:1]), jnp.swapaxes(m, 0, 1), jnp.moveaxis(m, 0, 1)),
    "repeat": lambda jnp, lax, m, n, y: (jnp.tile(m, (2, 3)), jnp.repeat(m, 2, 1), jnp.broadcast_to(m, (2, 3, 4)), jnp.roll(m, 1, 1), jnp.flip(m)),
    "split": lambda jnp, lax, m, n, y: (*jnp.split(m, 2, 1), *jnp.array_split(m, 2)),
    "index": lambda jnp, lax, m, n, y: (m[1], m[:, ::-2], m[..., None], jnp.take(m, np.array([1, 0]), axis=1), lax.dynamic_slice(m, (1, 1), (2, 2)), jnp.diag(m)),
    "sums": lambda jnp, lax, m, n, y: (m + n, m - n, m + m, m - y[None] * jnp.ones((3, 1)), m.sum(), jnp.add(m, m.sum(1, keepdims=True))),
    "scaled": lambda jnp, lax, m, n, y: (m * y, m / (y + 1), m * n, 2 * m, m * 2 - n, m ** 3, m ** 1.5, jnp.maximum(n, 0), jnp.clip(m, -1, 1), lax.rem(m, 2.0)),
    "norm": lambda jnp, lax, m, n, y: (jnp.linalg.norm(m), jnp.sqrt((m * m).sum())),
    "where": lambda jnp, lax, m, n, y: (jnp.where(y > 1, m, n), lax.select_n(y[None] * jnp.ones((3, 1)) > 1, m, n)),
    "padded": lambda jnp, lax, m, n, y: (lax.pad(m, jnp.float32(0), ((1, 0, 1), (-1, 2, 0))),),
    "convolve": lambda jnp, lax, m, n, y: (jnp.convolve(m[0], n[1]), jnp.convolve(m[0], y, "same")),
    "kinds": lambda jnp, lax, m, n, y: (m.astype(int), m.astype(bool), lax.convert_element_type(m, jnp.complex64), jnp.real(m * 1j), lax.stop_gradient(m), jnp.copy(m)),
    "while": lambda jnp, lax, m, n, y: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2, c[2] + c[1].sum()), (0, m, 0.0)),
    "fori": lambda jnp, lax, m, n, y: lax.fori_loop(0, 2, lambda i, v: v + (m @ y).sum(), y),
    "cond": lambda jnp, lax, m, n, y: (lax.cond(m.sum() > 0, lambda m: m, lambda m: m + n, m), lax.cond(m.sum() < 0, lambda m: m * 2, lambda m: m * y, m)),
    "scan": lambda jnp, lax, m, n, y: lax.scan(lambda c, x: (c * 2, (x.sum(), x * 3, c.sum())), n, m),
    "scan over dense": lambda jnp, lax, m, n, y: lax.scan(lambda c, x: (c + m @ y * x, m * x), y[:3], y),
}  # fmt: skip


@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize("name", sorted(COMPOSITIONS))
def test_compositions(jax, jnp, sparse, name, layout):
    n = np.array([[1, 0, 0, -2], [0, 0, 5, 0], [0, 7, 4, 0]], np.float32)
    y = jnp.arange(4.0)
    f = lambda m, n, y: COMPOSITIONS[name](jnp, jax.lax, m, n, y)
    m = [sparse.BCOO.fromdense(x, n_batch=layout[0], n_dense=layout[1]) for x in (X, n)]
    expected = jax.tree.leaves(f(jnp.asarray(X), jnp.asarray(n), y))
    try:
        out = sparse.sparsify(f)(*m, y)
    except NotImplementedError as e:
        assert layout != (0, 0) and ("cannot permute" in str(e) or "dense dimensions" in str(e))
        return
    leaves = jax.tree.leaves(out, is_leaf=lambda x: isinstance(x, sparse.JAXSparse))
    assert any(isinstance(x, sparse.BCOO) for x in leaves) or name in ("dots", "norm", "fori")
    for got, want in zip(leaves, expected, strict=True):
        assert got.dtype == want.dtype
        check(got, want, rtol=1e-5)


def test_sparsify_walks_calls(jax, jnp, sparse):
    m, y = sparse.BCOO.fromdense(X), jnp.arange(4.0)
    twice = jax.custom_jvp(lambda x: x * 2)
    twice.defjvp(lambda p, t: (twice(*p), t[0] * 2))
    thrice = jax.custom_vjp(lambda x: x * 3)
    thrice.defvjp(lambda x: (thrice(x), None), lambda r, t: (t * 3,))
    for f, expected in [(jax.jit(lambda m: m * 2), 2 * X), (jax.checkpoint(lambda m: m * 2), 2 * X), (twice, 2 * X), (thrice, 3 * X)]:
        check(sparse.sparsify(f)(m), expected)
    check(sparse.sparsify(jax.vmap(lambda x, y: x @ y, (0, None)))(m, y), X @ np.asarray(y))
    check(sparse.sparsify(jax.grad(lambda y, m: (m @ y).sum()))(y, m), X.sum(0))
    check(jax.jit(sparse.sparsify(lambda m: {"a": m * 2, "b": (m, 1)}))(m)["a"], 2 * X)
    check(sparse.sparsify(lambda m, k: m * k["k"], use_tracer=True)(m, {"k": 2.0}), 2 * X)
    check(sparse.sparsify(lambda x: m @ x)(y), X @ np.asarray(y))
    assert sparse.sparsify(jnp.dot).__name__ == "dot"
    for kind in (sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC):
        check(sparse.sparsify(lambda m, y: (m.T * 2).T @ y)(kind.fromdense(X), y), 2 * X @ np.asarray(y))


def test_todense_within_sparsify(jax, jnp, sparse):
    m = sparse.BCOO.fromdense(X)
    f = sparse.sparsify(lambda m: jnp.cos(sparse.todense(m)))
    np.testing.assert_allclose(f(m), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(f)(m), np.cos(X), rtol=1e-6)
    # to all others it is the identity
    assert jax.grad(lambda x: sparse.todense(x * 3))(2.0) == 3
    assert jax.vmap(sparse.todense)(jnp.ones(3)).tolist() == [1, 1, 1]
    assert sparse.todense(3) == 3 and sparse.todense(m.T).shape == (4, 3)


def test_operations_that_sparsify_refuses(jax, jnp, sparse):
    m = sparse.BCOO.fromdense(X)
    with pytest.raises(TypeError, match="must return a sparse carry as it takes it"):
        sparse.sparsify(lambda m: jax.lax.fori_loop(0, 3, lambda i, c: jnp.concatenate([c, c])[:3] + m, m))(m)
    for f in (jnp.cumsum, jnp.sort, jnp.max, lambda m: m.at[0].set(1.0), lambda m: jnp.maximum(m, 1.0), lambda m: jnp.pad(m, 1, constant_values=1.0)):
        with pytest.raises(NotImplementedError, match="sparse rule for"):
            sparse.sparsify(f)(m)


def test_logistic_regression(jax, jnp, sparse):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(40, 5)) * (rng.random((40, 5)) < 0.5)).astype(np.float32)
    y = (x.sum(1) + rng.normal(size=40) > 0).astype(np.float32)

    def loss(params, x, y):
        z = x @ params[1:] + params[0]
        return jnp.mean(jnp.logaddexp(0, z) - y * z)

    def fit(x, y):
        step = lambda i, p: p - 0.5 * jax.grad(loss)(p, x, y)
        return jax.lax.fori_loop(0, 50, step, jnp.zeros(x.shape[1] + 1))

    np.testing.assert_allclose(sparse.sparsify(fit)(sparse.BCOO.fromdense(x), y), fit(jnp.asarray(x), y), rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- other formats


@FEW
@given(st.data())
def test_bcsr_agrees_with_bcoo(sparse, data):
    n_batch, n_dense = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 1))
    shape = tuple(data.draw(st.lists(st.integers(0, 3), min_size=n_batch + n_dense + 2, max_size=n_batch + n_dense + 2)))
    parts = data.draw(buffers(shape, n_batch, n_dense, np.float32))
    m, x = sparse.BCOO(parts[:2], shape=shape), meaning(*parts)
    c = sparse.BCSR.from_bcoo(m)
    np.testing.assert_array_equal(c.todense(), x)
    np.testing.assert_array_equal(c.to_bcoo().todense(), x)
    np.testing.assert_array_equal(c.sum_duplicates().todense(), x)
    np.testing.assert_array_equal(sparse.bcsr_sum_duplicates(c, nse=c.nse + 1).todense(), x)
    out = sparse.bcsr_extract(c.indices, c.indptr, x)
    assert out.shape == (*x.shape[: m.n_batch], c.nse, *x.shape[m.n_batch + 2 :])
    np.testing.assert_array_equal(sparse.bcsr_broadcast_in_dim(c, shape=(2, *c.shape), broadcast_dimensions=range(1, c.ndim + 1)).todense(), np.stack([x, x]))
    axis = data.draw(st.integers(0, m.n_batch + 1))
    np.testing.assert_array_equal(sparse.bcsr_concatenate([c, c], dimension=axis).todense(), np.concatenate([x, x], axis))
    axis = data.draw(st.integers(0, m.ndim - 1))
    y = np.arange(x.shape[axis] * 2, dtype=np.float32).reshape(-1, 2)
    got = sparse.bcsr_dot_general(c, y, dimension_numbers=(([axis], [0]), ([], [])))
    np.testing.assert_array_equal(got, np.tensordot(x, y, (axis, 0)))


def test_bcsr(jax, jnp, sparse):
    c = sparse.BCSR.fromdense(X)
    assert (c.data.tolist(), c.indices.tolist(), c.indptr.tolist()) == ([1, 2, 3, 4], [1, 3, 0, 2], [0, 2, 3, 4])
    more = sparse.BCSR.fromdense(X, nse=7)
    assert (more.indices.tolist(), more.indptr.tolist()) == ([1, 3, 0, 2, 4, 4, 4], [0, 2, 3, 4])
    assert sparse.BCSR.fromdense(X, nse=2).indptr.tolist() == [0, 2, 2, 2]
    assert repr(sparse.BCSR.fromdense(X[None, :, :, None], n_batch=1, n_dense=1)) == "BCSR(float32[1, 3, 4, 1], nse=4, n_batch=1, n_dense=1)"
    for got, expected in [(c @ X.T, X @ X.T), (X.T @ c, X.T @ X), (c[0], X[0]), (c[1:, 2], X[1:, 2])]:
        check(got, expected)
    np.testing.assert_array_equal(sparse.bcsr_extract(c.indices, c.indptr, np.arange(12.0).reshape(3, 4)), [1, 3, 4, 10])
    with pytest.raises(NotImplementedError, match="Transpose is not implemented"):
        c.T  # noqa: B018
    with pytest.raises(NotImplementedError, match="BCSR lhs and ndarray rhs"):
        sparse.bcsr_dot_general(c, c, dimension_numbers=(([1], [1]), ([], [])))
    for f, match in [
        (lambda: sparse.BCSR.fromdense(X[0]), "must have 2 sparse dimensions"),
        (lambda: sparse.BCSR((np.ones(3), np.ones(3, int), np.array([0, 1, 2])), shape=(4, 4)), "indptr shape must match the matrix shape plus 1"),
        (lambda: sparse.empty((3,), sparse_format="bcsr"), "must have 2 sparse dimensions"),
        (lambda: sparse.bcsr_concatenate([c, X], dimension=0), "sequence of BCSR arrays"),
    ]:
        with pytest.raises(ValueError, match=match):
            f()


@pytest.mark.parametrize("kind", ["COO", "CSR", "CSC"])
def test_matrices(jax, jnp, sparse, kind):
    cls = getattr(sparse, kind)
    m = cls.fromdense(X)
    assert repr(m) == f"{kind}(float32[3, 4], nse=4)" and (m.size, m.ndim, len(m)) == (12, 2, 3)
    for mat in (m, cls.fromdense(X, nse=6), jax.jit(lambda x: cls.fromdense(x, nse=5))(X)):
        np.testing.assert_array_equal(mat.todense(), X)
        np.testing.assert_array_equal(mat.T.todense(), X.T)
        np.testing.assert_array_equal(mat @ X[0], X @ X[0])
        np.testing.assert_array_equal(mat @ X.T, X @ X.T)
        np.testing.assert_array_equal(mat.T @ X, X.T @ X)
        np.testing.assert_array_equal(mat @ X[0].astype(int), X @ X[0])
    assert type(m.T).__name__ == {"COO": "COO", "CSR": "CSC", "CSC": "CSR"}[kind]
    for f, match in [
        (lambda: m @ m, "matmul between two sparse objects"),
        (lambda: m @ np.ones((4, 1, 1)), r"matmul with object of shape \(4, 1, 1\)"),
        (lambda: m + m, "__add__"),
        (lambda: m[0], "__getitem__"),
        (lambda: X.T @ m, "__rmatmul__"),
        (lambda: m.transpose((1, 0)), "axes argument"),
    ]:
        with pytest.raises(NotImplementedError, match=match):
            f()
    with pytest.raises(TypeError, match="contracting dimensions"):
        m @ np.ones(3)
    with pytest.raises(ValueError, match="must have ndim=2"):
        sparse.empty((3,), sparse_format=kind.lower())
    with pytest.raises(ValueError, match="expected a matrix"):
        cls.fromdense(X[0])


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_functions_of_matrices(sparse, kind):
    fromdense, todense, matvec, matmat = (getattr(sparse, f"{kind}_{n}") for n in ("fromdense", "todense", "matvec", "matmat"))
    m = fromdense(X)
    np.testing.assert_array_equal(todense(m), X)
    np.testing.assert_array_equal(matvec(m, X[0]), X @ X[0])
    np.testing.assert_array_equal(matvec(m, X[:, 0], True), X.T @ X[:, 0])
    np.testing.assert_array_equal(matmat(m, X.T), X @ X.T)
    np.testing.assert_array_equal(matmat(m, X, transpose=True), X.T @ X)
    with pytest.raises(TypeError):
        matvec(sparse.eye(3), X[0])
    with pytest.raises(ValueError, match="1 dimensions"):
        matvec(m, X)


# ---------------------------------------------------------------- beside JAX


BESIDE = [
    "M.sum_duplicates(nse=5)", "M.sort_indices()", "D.sum_duplicates()", "M.T", "M @ y", "M @ y[:, None]", "x3 @ M", "M[1:, ::2]", "M[0, 1]", "M[:, idx]", "M[idx]",
    "M.sum(0)", "M.reshape(2, 6)", "M + D", "M - D", "M * 2", "M * X", "M / 2", "abs(D)", "D ** 2", "B @ y", "B[0]", "B.sum(0)", "B.sum((0, 2))", "B[idx[:1]]",
    "sparse.bcoo_broadcast_in_dim(M, shape=(2, 3, 4), broadcast_dimensions=(1, 2))", "sparse.bcoo_concatenate([M, D], dimension=1)", "M.astype(complex)",
    "sparse.bcoo_slice(B, start_indices=(0, 1, 1), limit_indices=(2, 3, 4), strides=(1, 1, 2))", "sparse.bcoo_dynamic_slice(M, (2, -1), (2, 2))",
    "sparse.bcoo_extract(D, X)", "sparse.bcoo_extract(D, X, assume_unique=True)", "B.update_layout(n_batch=0)", "M.update_layout(n_dense=1, on_inefficient=None)",
    "sparse.eye(3, 4, 1, n_batch=1)", "sparse.BCSR.fromdense(X, nse=6)", "sparse.CSC.fromdense(X)", "sparse.random_bcoo(key, (3, 4, 2), n_batch=1, dtype='float32')",
    "sparse.grad(lambda M: (M @ y).sum())(D)", "sparse.jacrev(lambda M: M @ y)(M)", "sparse.jacfwd(lambda M: M @ y)(D)", "jax.vmap(lambda b: b @ y)(B)",
    "sparse.sparsify(jnp.log1p)(D)", "sparse.sparsify(lambda M: jnp.vstack([M, M]))(M)", "sparse.sparsify(lambda M: jnp.einsum('ij,kj->ik', M, M))(M).todense()",
    "sparse.bcoo_rev(B, (0, 1))", "sparse.bcoo_squeeze(M[None], dimensions=(0,))", "sparse.BCOO.fromdense(X, n_batch=1)", "jax.tree.leaves(M)", "(M @ M.T).todense()",
    "sparse.bcoo_dot_general_sampled(X, X.T, M.indices % 3, dimension_numbers=(([1], [0]), ([], [])))", "sparse.sparsify(jnp.convolve)(V, V).todense()",
]  # fmt: skip


@pytest.mark.parametrize("line", BESIDE)
def test_beside_jax(jax, oracle, line):
    """The same buffers: elements outside may hold other data."""
    out = []
    for lib in (jax, oracle):
        sparse, jnp = importlib.import_module(f"{lib.__name__}.experimental.sparse"), importlib.import_module(f"{lib.__name__}.numpy")
        names = dict(jax=lib, jnp=jnp, sparse=sparse, X=jnp.asarray(X), y=jnp.arange(4.0), x3=jnp.ones((2, 3)), idx=jnp.array([0, 2]), key=lib.random.key(1))
        names["M"] = sparse.BCOO.fromdense(jnp.asarray(X))
        names["D"] = sparse.BCOO((jnp.arange(1.0, 7), jnp.array([[2, 1], [0, 0], [2, 1], [3, 4], [0, 0], [1, 3]])), shape=(3, 4))
        names["B"] = sparse.BCOO.fromdense(jnp.stack([jnp.asarray(X), jnp.asarray(X) * 2]), n_batch=1)
        names["V"] = sparse.BCOO.fromdense(jnp.array([0.0, 1, 0, 3]))
        found = eval(line, names)
        parts = lib.tree.leaves(found)
        if isinstance(found, sparse.BCOO):
            indices = np.asarray(found.indices)
            sizes = found.shape[found.n_batch : found.n_batch + found.n_sparse]
            inside = np.all(indices < np.array(sizes, int).reshape(-1), axis=-1)
            data = np.asarray(found.data)
            parts = [
                np.where(inside.reshape(inside.shape + (1,) * found.n_dense), data, 0),
                np.where(inside[..., None], indices, np.array(sizes, int).reshape(-1)),
            ]
        out.append((getattr(found, "shape", None), repr(found) if hasattr(found, "nse") else "", parts))
    assert out[0][:2] == out[1][:2]
    for got, want in zip(out[0][2], out[1][2], strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, np.asarray(want), rtol=1e-6)


# ---------------------------------------------------------------- BCSR


ROWS_STAY = {
    "neg": lambda jnp, x: -x,
    "real": lambda jnp, x: jnp.real(x),
    "sin": lambda jnp, x: jnp.sin(x),
    "sqrt": lambda jnp, x: jnp.sqrt(jnp.abs(x)),
    "power": lambda jnp, x: x**2,
    "astype": lambda jnp, x: x.astype(jnp.int32),
    "expand_dims": lambda jnp, x: x[None],
    "concatenate": lambda jnp, x: jnp.concatenate([x, x], axis=x.ndim - 2),
    "stack": lambda jnp, x: jnp.stack([x, x]),
}


@pytest.mark.parametrize("n_batch", [0, 1, 2])
@pytest.mark.parametrize("name", sorted(ROWS_STAY))
def test_rows_stay_rows(jax, jnp, sparse, name, n_batch):
    x = np.random.default_rng(n_batch).integers(-2, 3, size=(*(2, 3)[:n_batch], 4, 5)).astype(np.float32)
    m = sparse.BCSR.fromdense(x, n_batch=n_batch)
    f = lambda x: ROWS_STAY[name](jnp, x)
    out = sparse.sparsify(f)(m)
    assert type(out) is sparse.BCSR
    np.testing.assert_array_equal(out.todense(), f(jnp.asarray(x)))
    # as an operand of two formats, and where there is no BCSR result
    both = sparse.sparsify(lambda a, b: a + b)(m, m.to_bcoo())
    assert type(both) is sparse.BCOO
    np.testing.assert_array_equal(both.todense(), 2 * x)
    np.testing.assert_array_equal(sparse.sparsify(lambda x: x.sum(-1))(m).todense(), x.sum(-1))


@pytest.mark.parametrize("format", ["bcoo", "bcsr", "coo", "csr"])
def test_modules_of_formats_have_their_functions(jax, sparse, format):
    module = importlib.import_module(f"{jax.__name__}.experimental.sparse.{format}")
    names = [n for n in dir(sparse) if n.startswith(f"{format}_")]
    assert len(names) >= 4
    for name in names:
        assert getattr(module, name) is getattr(sparse, name), name
    with pytest.raises(AttributeError):
        module.absent_p  # noqa: B018
