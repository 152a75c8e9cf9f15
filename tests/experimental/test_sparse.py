"""BCOO arrays: what they mean after each function, against numpy; equal indices, indices outside, shared batches and all layouts."""

import copy
import importlib
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from sparse_arrays import DTYPES, buffers, check, holds, meaning

FEW = settings(max_examples=40)


@pytest.fixture(scope="module")
def sparse(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.sparse")


@pytest.fixture(scope="module")
def mat(sparse):
    def make(parts, **promises):
        data, indices, shape = parts
        return sparse.BCOO((data, indices), shape=shape, **promises)

    return make


# ---------------------------------------------------------------- construction


@given(buffers())
def test_todense(mat, parts):
    check(mat(parts), meaning(*parts))


def test_todense_of_booleans_and_negative_indices(jnp, sparse):
    m = sparse.BCOO((jnp.array([True, True]), jnp.array([[1], [1]])), shape=(2,))
    assert m.todense().tolist() == [False, True] and m.todense().dtype == bool
    m = sparse.BCOO((jnp.array([1, 2]), jnp.array([[-1], [-5]])), shape=(3,))
    assert m.todense().tolist() == [0, 0, 1]


@st.composite
def dense_arrays(draw):
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    x = rng.integers(-2, 3, shape) * rng.integers(0, 2, shape)
    n_batch = draw(st.integers(0, len(shape)))
    return x.astype(draw(st.sampled_from((np.float32, np.int32, np.complex64, bool)))), n_batch, draw(st.integers(0, len(shape) - n_batch))


@given(dense_arrays())
def test_fromdense(sparse, drawn):
    x, n_batch, n_dense = drawn
    m = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    holds(m)
    assert (m.n_batch, m.n_dense, m.dtype, m.indices_sorted, m.unique_indices) == (n_batch, n_dense, x.dtype, True, True)
    np.testing.assert_array_equal(m.todense(), x)
    mask = (x != 0).any(axis=tuple(range(x.ndim - n_dense, x.ndim)))
    assert m.nse == mask.sum(axis=tuple(range(n_batch, x.ndim - n_dense))).max(initial=0)
    more = sparse.bcoo_fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=m.nse + 2)
    holds(more)
    np.testing.assert_array_equal(more.todense(), x)


def test_fromdense_keeps_the_first(sparse):
    m = sparse.BCOO.fromdense(np.array([0, 1, 2, 0, 3]), nse=2)
    assert (m.data.tolist(), m.indices.tolist()) == ([1, 2], [[1], [2]])
    m = sparse.BCOO.fromdense(np.array([0, 1.0]), nse=3, index_dtype=np.int8)
    assert (m.data.tolist(), m.indices.tolist(), m.indices.dtype) == ([1, 0, 0], [[1], [2], [2]], np.int8)


def test_fromdense_under_transforms(jax, jnp, sparse):
    x = jnp.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    f = lambda x: sparse.BCOO.fromdense(x, nse=3)
    np.testing.assert_array_equal(jax.jit(f)(x).todense(), x)
    m = jax.vmap(lambda x: sparse.BCOO.fromdense(x, nse=2))(x)
    assert (m.shape, m.n_batch) == ((2, 3), 1)
    np.testing.assert_array_equal(m.todense(), x)
    g = jax.grad(lambda x: (f(x).data ** 2).sum())(x)
    np.testing.assert_array_equal(g, 2 * x)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="concrete\\s+value to the nse"):
        jax.jit(sparse.BCOO.fromdense)(x)


@given(buffers(max_side=3), st.booleans())
def test_extract(sparse, mat, parts, unique):
    m = mat(parts)
    assume(m.data.shape[: m.n_batch] == m.shape[: m.n_batch])
    x = np.arange(1.0, math.prod(m.shape) + 1, dtype=np.float32).reshape(m.shape)
    out = sparse.bcoo_extract(m, x, assume_unique=unique)
    specified = meaning(np.ones(m.data.shape, np.int32), parts[1], m.shape)
    check(out, x * (specified if unique else specified > 0))


class ScipyLike:
    """What a matrix of scipy.sparse offers."""

    ndim, shape = 2, (2, 3)
    data, row, col = np.array([1.0, 2.0, 3.0]), np.array([0, 1, 1]), np.array([2, 0, 2])
    indices, indptr = np.array([2, 0, 2]), np.array([0, 1, 3])

    def tocoo(self):
        return self

    tocsr = tocoo


def test_from_scipy(sparse):
    for kind in (sparse.BCOO, sparse.BCSR):
        m = kind.from_scipy_sparse(ScipyLike())
        assert (m.dtype, m.indices.dtype, m.nse) == (np.float32, np.int32, 3)
        assert m.todense().tolist() == [[0, 0, 1], [2, 0, 3]]
        assert kind.from_scipy_sparse(ScipyLike(), index_dtype="int16").indices.dtype == np.int16
        with pytest.raises(NotImplementedError, match="nonzero n_dense/n_batch"):
            kind.from_scipy_sparse(ScipyLike(), n_batch=1)


@pytest.mark.parametrize("format", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_eye_and_empty(sparse, format):
    for n, m, k in [(3, None, 0), (3, 4, 1), (4, 3, -2), (3, 3, 5), (2, 5, 4), (0, 0, 0), (5, 2, -1)]:
        out = sparse.eye(n, m, k, sparse_format=format)
        np.testing.assert_array_equal(out.todense(), np.eye(n, m, k, dtype=np.float32))
        assert out.nse == np.eye(n, m, k).sum()
    out = sparse.empty((2, 3), dtype=int, index_dtype="int8", sparse_format=format)
    assert (out.nse, out.dtype, out.todense().tolist()) == (0, np.int32, [[0] * 3] * 2)
    assert repr(out) == f"{format.upper()}(int32[2, 3], nse=0)"


@pytest.mark.parametrize("n_batch,n_dense", [(1, 0), (0, 1), (2, 0), (0, 2), (1, 1)])
def test_eye_in_all_layouts(sparse, n_batch, n_dense):
    for n, m, k in [(3, 3, 0), (3, 4, 1), (4, 3, -2), (3, 3, 5)]:
        out = sparse.eye(n, m, k, n_batch=n_batch, n_dense=n_dense)
        assert (out.n_batch, out.n_dense) == (n_batch, n_dense)
        check(out, np.eye(n, m, k))


def test_random_bcoo_is_jaxs(jax, sparse):
    key = jax.random.key(0)
    m = sparse.random_bcoo(key, (3, 4), dtype=np.float32)
    np.testing.assert_allclose(m.data, [0.8423141, 0.18237865, 0.2271781], rtol=1e-6)
    assert m.indices.tolist() == [[0, 0], [0, 3], [2, 1]]
    m = sparse.random_bcoo(key, (4, 10), n_batch=1, nse=3, dtype=np.float32)
    assert m.indices[..., 0].tolist() == [[0, 3, 9], [7, 4, 3], [8, 2, 9], [2, 5, 4]]
    m = sparse.random_bcoo(key, (4, 10), n_batch=1, nse=3, unique_indices=False, dtype=np.float32)
    assert m.indices[..., 0].tolist() == [[2, 2, 6], [9, 4, 3], [7, 8, 1], [4, 5, 3]]
    m = sparse.random_bcoo(key, (5, 6, 2), n_dense=1, nse=0.5, sorted_indices=True, generator=jax.random.normal, dtype=np.float32)
    assert (m.nse, m.data.shape, m.indices_sorted) == (15, (15, 2), True)
    holds(m)


# ---------------------------------------------------------------- order


@given(buffers())
def test_sort_and_sum_duplicates(sparse, mat, parts):
    m, expected = mat(parts), meaning(*parts)
    out = m.sort_indices()
    assert out.indices_sorted and out.nse == m.nse
    check(out, expected)
    out = sparse.bcoo_sum_duplicates(m)
    assert out.indices_sorted and out.unique_indices
    check(out, expected)
    check(m.sum_duplicates(), expected)
    check(m.sum_duplicates(nse=m.nse + 1, remove_zeros=False), expected)


def test_sum_duplicates_counts(jax, sparse):
    m = sparse.BCOO((np.array([1.0, -1.0, 2.0, 0.0]), np.array([[1, 1], [1, 1], [0, 3], [2, 2]])), shape=(3, 4))
    out = m.sum_duplicates()
    assert (out.data.tolist(), out.indices.tolist()) == ([2, 0], [[0, 3], [1, 1]])
    out = m.sum_duplicates(remove_zeros=False)
    assert (out.data.tolist(), out.indices.tolist()) == ([2, 0, 0], [[0, 3], [1, 1], [2, 2]])
    out = m.sum_duplicates(nse=1)
    assert (out.data.tolist(), out.indices.tolist()) == ([2], [[0, 3]])
    assert m.sum_duplicates(nse=5).indices.tolist() == [[0, 3], [1, 1], [3, 4], [3, 4], [3, 4]]
    with pytest.raises(ValueError, match="nse must be specified when using the function within jit"):
        jax.jit(sparse.bcoo_sum_duplicates)(m)
    np.testing.assert_array_equal(jax.jit(lambda m: sparse.bcoo_sum_duplicates(m, nse=3))(m).todense(), m.todense())


# ---------------------------------------------------------------- shapes


@given(buffers(), st.randoms())
def test_transpose(sparse, mat, parts, random):
    m = mat(parts)
    kinds = [list(range(m.n_batch)), list(range(m.n_batch, m.ndim - m.n_dense)), list(range(m.ndim - m.n_dense, m.ndim))]
    for kind in kinds:
        random.shuffle(kind)
    permutation = [*kinds[0], *kinds[1], *kinds[2]]
    check(sparse.bcoo_transpose(m, permutation=permutation), meaning(*parts).transpose(permutation))


@FEW
@given(buffers(max_dims=3), st.data())
def test_broadcast_in_dim(sparse, mat, parts, data):
    m = mat(parts)
    n = m.ndim + data.draw(st.integers(0, 2))
    dims = sorted(data.draw(st.permutations(range(n)))[: m.ndim])
    shape = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    source = meaning(*parts)
    for i, d in enumerate(dims):
        shape[d] = m.shape[i] if m.shape[i] != 1 else shape[d]
    expected = np.broadcast_to(source.reshape([m.shape[dims.index(k)] if k in dims else 1 for k in range(n)]), shape)
    check(sparse.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=dims), expected)


@FEW
@given(buffers(), st.data())
def test_concatenate(sparse, mat, parts, data):
    m = mat(parts)
    assume(m.ndim > m.n_dense)
    axis = data.draw(st.integers(0, m.ndim - m.n_dense - 1))
    shape = list(m.shape)
    shape[axis] = data.draw(st.integers(0, 2))
    other = data.draw(buffers(tuple(shape), m.n_batch, m.n_dense, m.dtype))
    out = sparse.bcoo_concatenate([m, mat(other), m], dimension=axis)
    check(out, np.concatenate([meaning(*parts), meaning(*other), meaning(*parts)], axis))


@given(buffers(), st.data())
def test_reduce_sum(sparse, mat, parts, data):
    m = mat(parts)
    axes = data.draw(st.sets(st.integers(0, m.ndim - 1)))
    check(sparse.bcoo_reduce_sum(m, axes=axes), meaning(*parts).sum(tuple(axes), dtype=m.dtype))


@given(buffers(max_side=4), st.randoms(use_true_random=False))
def test_reshape(sparse, mat, parts, random):
    m = mat(parts)

    def again(sizes):
        """Other sizes with the same product."""
        factors = [p for d in sizes for p in ([2, 2] if d == 4 else [d])] + [1] * random.randint(0, 1)
        random.shuffle(factors)
        out = []
        for f in factors:
            if out and random.random() < 0.4:
                out[-1] *= f
            else:
                out.append(f)
        return out

    k = m.ndim - m.n_dense
    new = [*(again(m.shape[: m.n_batch]) if m.n_batch else []), *again(m.shape[m.n_batch : k]), *(again(m.shape[k:]) if m.n_dense else [])]
    assume(0 not in m.shape)
    try:
        out = sparse.bcoo_reshape(m, new_sizes=new)
    except ValueError as e:
        assert "cannot mix" in str(e)  # a dimension of size 1 may belong to either kind, and the fewest are taken
        assume(False)
    check(out, meaning(*parts).reshape(new))


def test_reshape_of_huge_shapes(sparse):
    n = 10**6
    m = sparse.BCOO((np.array([1.0, 2.0]), np.array([[3, n - 1], [n, n]])), shape=(n, n))
    out = sparse.bcoo_reshape(m, new_sizes=(n, 1000, 1000))
    assert out.indices.tolist() == [[3, 999, 999], [n, 1000, 1000]]
    back = sparse.bcoo_reshape(out, new_sizes=(n, n))
    assert back.indices.tolist() == [[3, n - 1], [n, n]]
    with pytest.raises(ValueError, match="do not fit into int32"):
        sparse.bcoo_reshape(m, new_sizes=(n * n,))


@given(buffers(), st.data())
def test_squeeze_and_rev(sparse, mat, parts, data):
    m = mat(parts)
    ones = [i for i, d in enumerate(m.shape) if d == 1]
    axes = tuple(data.draw(st.sets(st.sampled_from(ones)))) if ones else ()
    check(sparse.bcoo_squeeze(m, dimensions=axes), meaning(*parts).squeeze(axes))
    axes = tuple(data.draw(st.sets(st.integers(0, m.ndim - 1))))
    check(sparse.bcoo_rev(m, axes), np.flip(meaning(*parts), axes))


@given(buffers(), st.data())
def test_slice_and_dynamic_slice(jnp, sparse, mat, parts, data):
    m, x = mat(parts), meaning(*parts)
    start = [data.draw(st.integers(0, d)) for d in m.shape]
    limit = [data.draw(st.integers(a, d)) for a, d in zip(start, m.shape, strict=True)]
    steps = [data.draw(st.integers(1, 3)) for _ in m.shape]
    out = sparse.bcoo_slice(m, start_indices=start, limit_indices=limit, strides=steps)
    check(out, x[tuple(slice(*s) for s in zip(start, limit, steps, strict=True))])
    sizes = [data.draw(st.integers(0, d)) for d in m.shape]
    start = [data.draw(st.integers(-4, 5)) for _ in m.shape]
    # negative ones count from the end; all are moved until the slice is inside
    at = [min(max(s + d if s < 0 else s, 0), d - n) for s, d, n in zip(start, m.shape, sizes, strict=True)]
    out = sparse.bcoo_dynamic_slice(m, [jnp.int32(s) for s in start], sizes)
    check(out, x[tuple(slice(a, a + n) for a, n in zip(at, sizes, strict=True))])
    cut = tuple(sizes[m.n_batch : m.ndim - m.n_dense]) != m.shape[m.n_batch : m.ndim - m.n_dense]
    assert not cut or out.nse <= math.prod(sizes[m.n_batch : m.ndim - m.n_dense])


@given(buffers(), st.data())
def test_update_layout(sparse, mat, parts, data):
    m = mat(parts)
    n_batch = data.draw(st.integers(0, m.ndim))
    n_dense = data.draw(st.integers(0, m.ndim - n_batch))
    out = m.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=None)
    assert (out.n_batch, out.n_dense) == (n_batch, n_dense)
    check(out, meaning(*parts))


def test_update_layout_reports_inefficient_layouts(sparse):
    m = sparse.eye(3)
    with pytest.raises(sparse.SparseEfficiencyError, match="increasing n_batch from 0 to 1 results in inefficient storage"):
        m.update_layout(n_batch=1)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="increasing n_dense from 0 to 1"):
        m.update_layout(n_dense=1, on_inefficient="warn")
    assert sparse.empty((1, 3)).update_layout(n_batch=1).n_batch == 1


INDICES = [
    1, -1, slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(3, 0, -2), (1, 2), (slice(None), 1), None, (slice(None), None), (Ellipsis, 0),
    np.array([0, 2]), (np.array([0, 2]), np.array([1, 1])), (slice(None), np.array([0, 2])), np.array([[0, 1], [2, 2]]), slice(1, 1),
    np.array([True, False, True]), (slice(0, 2), np.array([3, -1])),
]  # fmt: skip


@pytest.mark.parametrize("n_batch,n_dense", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)])
def test_indexing(sparse, n_batch, n_dense):
    rng = np.random.default_rng(0)
    x = rng.integers(1, 9, (3, 4, 2)) * (rng.random((3, 4, 2)) < 0.5).astype(np.float32)
    m = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    for idx in INDICES:
        check(m[idx], x[idx])
    assert len(m) == 3 and [y.todense().tolist() for y in m] == x.tolist()


@FEW
@given(buffers(max_dims=3), st.data())
def test_gather_is_lax_gather(jax, jnp, sparse, mat, parts, data):
    m, x = mat(parts), meaning(*parts)
    assume(m.dtype != np.uint8)
    axes = data.draw(st.lists(st.integers(0, m.ndim - 1), unique=True, min_size=1))
    sizes = tuple(data.draw(st.integers(min(1, d), d)) for d in m.shape)
    collapsed = tuple(sorted(a for a in axes if sizes[a] == 1 and data.draw(st.booleans())))
    lead = tuple(data.draw(st.lists(st.integers(1, 2), max_size=2)))
    starts = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=math.prod(lead) * len(axes), max_size=math.prod(lead) * len(axes))), np.int32)
    rank = len(lead) + m.ndim - len(collapsed)
    offset = tuple(sorted(data.draw(st.permutations(range(rank)))[: m.ndim - len(collapsed)]))
    numbers = jax.lax.GatherDimensionNumbers(offset, collapsed, tuple(axes))
    mode = data.draw(st.sampled_from(["clip", "fill"]))
    args = (starts.reshape(*lead, len(axes)), numbers, sizes)
    assume(all(d > 0 for d in m.shape))
    expected = jax.lax.gather(jnp.asarray(x), *args, mode=mode, fill_value=0)
    try:
        out = sparse.bcoo_gather(m, *args, mode=mode)
    except NotImplementedError as e:
        assert "dense axes" in str(e)
        return
    check(out, expected)


# ---------------------------------------------------------------- products


@st.composite
def products(draw, both=False):
    """Two operands and the dimension numbers of a product."""
    left = draw(buffers(max_dims=3, max_nse=3, dtype=np.float32, unique=False))
    n = len(left[2])
    dims = draw(st.permutations(range(n)))
    n_contract = draw(st.integers(0, n))
    lb, lc = dims[n_contract : n_contract + draw(st.integers(0, n - n_contract))], dims[:n_contract]
    lb = sorted(lb) if both else lb
    rest = draw(st.lists(st.integers(0, 2), max_size=2 if n > 1 else 1))
    names = [("b", i) for i in lb] + [("c", i) for i in lc] + [("f", d) for d in rest]
    names = draw(st.permutations(names))
    shape = tuple(left[2][v] if k != "f" else v for k, v in names)
    rc, rb = [names.index(("c", i)) for i in lc], [names.index(("b", i)) for i in lb]
    return left, shape, ((lc, rc), (lb, rb))


def dense_product(x, y, numbers):
    (lc, rc), (lb, rb) = numbers
    letters = iter("abcdefghijklmnop")
    left, right = [None] * x.ndim, [None] * y.ndim
    for i, j in [*zip(lb, rb, strict=True), *zip(lc, rc, strict=True)]:
        left[i] = right[j] = next(letters)
    left, right = [c or next(letters) for c in left], [c or next(letters) for c in right]
    out = [left[i] for i in lb] + [left[i] for i in range(x.ndim) if i not in (*lb, *lc)] + [right[j] for j in range(y.ndim) if j not in (*rb, *rc)]
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y)


@settings(max_examples=150)
@given(products(), st.booleans())
def test_dot_general_with_dense(sparse, mat, drawn, swap):
    parts, shape, numbers = drawn
    y = np.arange(math.prod(shape), dtype=np.float32).reshape(shape) % 7 - 2
    m, x = mat(parts), meaning(*parts)
    if swap:
        (lc, rc), (lb, rb) = numbers
        numbers = ((rc, lc), (rb, lb))
        check(sparse.bcoo_dot_general(y, m, dimension_numbers=numbers), dense_product(y, x, numbers))
    else:
        check(sparse.bcoo_dot_general(m, y, dimension_numbers=numbers), dense_product(x, y, numbers))


@settings(max_examples=100)
@given(products(both=True), st.data())
def test_dot_general_of_two(sparse, mat, drawn, data):
    parts, shape, numbers = drawn
    other = data.draw(buffers(shape, dtype=np.float32, max_nse=3))
    out = sparse.bcoo_dot_general(mat(parts), mat(other), dimension_numbers=numbers)
    check(out, dense_product(meaning(*parts), meaning(*other), numbers))


@FEW
@given(products(), st.data())
def test_sampled_products(sparse, drawn, data):
    parts, shape, numbers = drawn
    x, y = meaning(*parts), np.arange(math.prod(shape), dtype=np.float32).reshape(shape) % 7 - 2
    expected = dense_product(x, y, numbers)
    _, indices, _ = data.draw(buffers(expected.shape, dtype=np.float32, shared=True))
    nb = indices.ndim - 2
    assume(expected.ndim >= nb)
    out = np.asarray(sparse.bcoo_dot_general_sampled(x, y, indices, dimension_numbers=numbers))
    assert out.shape == (*expected.shape[:nb], indices.shape[-2], *expected.shape[nb + indices.shape[-1] :])
    full = np.broadcast_to(indices, (*expected.shape[:nb], *indices.shape[nb:]))
    for at in np.ndindex(*full.shape[:-1]):
        row = full[at]
        inside = all(i < d for i, d in zip(row, expected.shape[nb:], strict=False))
        np.testing.assert_allclose(out[at], expected[(*at[:-1], *row)] if inside else 0)


def test_products_do_not_read_out_of_bounds(jnp, sparse):
    m = sparse.BCOO((jnp.array([2.0, 5.0]), jnp.array([[0, 1], [7, 9]])), shape=(2, 3))
    assert (m @ jnp.array([jnp.nan, 1.0, jnp.inf])).tolist() == [2, 0]
    m = sparse.BCOO((jnp.array([2.0, jnp.nan]), jnp.array([[0, 1], [1, 9]])), shape=(2, 3))
    assert (m @ jnp.ones(3)).tolist() == [2, 0]
    assert (jnp.ones(2) @ m).tolist() == [0, 2, 0]


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_products_promote(jnp, sparse, left, right):
    x, y = np.array([[0, 2], [1, 0]], left), np.array([3, 1], right)
    out = sparse.BCOO.fromdense(x) @ y
    assert out.dtype == (jnp.asarray(x) @ jnp.asarray(y)).dtype
    np.testing.assert_array_equal(out, x @ y)
    both = sparse.BCOO.fromdense(x) @ sparse.BCOO.fromdense(y)
    assert both.dtype == out.dtype
    np.testing.assert_array_equal(both.todense(), x @ y)


def test_large_products_stay_sparse(jax, jnp, sparse):
    n = 10**6
    rng = np.random.default_rng(0)
    rows, cols, data = rng.integers(0, n, 50), rng.integers(0, n, 50), rng.integers(1, 5, 50).astype(np.float32)
    m = sparse.BCOO((data, np.stack([rows, cols], -1).astype(np.int32)), shape=(n, n))
    v = rng.integers(0, 9, n).astype(np.float32)
    expected = np.zeros(n, np.float32)
    np.add.at(expected, rows, data * v[cols])
    np.testing.assert_array_equal(m @ v, expected)
    np.testing.assert_array_equal(jax.jit(lambda m, v: m @ v)(m, v), expected)
    np.testing.assert_array_equal(jax.grad(lambda d: (sparse.BCOO((d, m.indices), shape=m.shape) @ v)[rows].sum())(m.data).shape, (50,))
    squared = (m @ m.T).sum_duplicates()
    assert squared.shape == (n, n) and squared.nse >= len(set(rows.tolist()))
    assert (m * m).sum() == (data**2).sum() and (m + m.T).sum() == 2 * data.sum()
    assert m[int(rows[0])].sum() == expected_row(rows, data, rows[0])
    assert m.sum(0).shape == (n,) and m.sum_duplicates().nse == len({*zip(rows.tolist(), cols.tolist(), strict=True)})


def expected_row(rows, data, row):
    return data[rows == row].sum()


@given(buffers(), st.data())
def test_multiply_dense(jnp, sparse, mat, parts, data):
    m, x = mat(parts), meaning(*parts)
    assume(m.dtype not in (np.uint8, np.float16))
    rank = data.draw(st.integers(0, m.ndim))
    shape = tuple(data.draw(st.sampled_from([1, d])) for d in m.shape[m.ndim - rank :])
    v = (np.arange(math.prod(shape)) % 5 - 1).reshape(shape).astype(m.dtype)
    out = sparse.bcoo_multiply_dense(m, v)
    lead = np.broadcast_shapes(out.shape[: m.n_batch], parts[1].shape[: m.n_batch])
    np.testing.assert_allclose(meaning(np.broadcast_to(out, (*lead, *out.shape[m.n_batch :])), parts[1], m.shape), x * v)
    check(m * v, x * v)


@settings(max_examples=100)
@given(buffers(max_dims=3), st.data())
def test_multiply_sparse(sparse, mat, parts, data):
    shape = tuple(data.draw(st.sampled_from([1, d])) for d in parts[2])
    n_batch = parts[1].ndim - 2
    n_dense = parts[0].ndim - 1 - n_batch
    other = data.draw(buffers(shape, n_batch=data.draw(st.integers(0, len(shape) - n_dense)), n_dense=n_dense, dtype=parts[0].dtype))
    out = sparse.bcoo_multiply_sparse(mat(parts), mat(other))
    check(out, meaning(*parts) * meaning(*other))
    check(sparse.bcoo_multiply_sparse(mat(other), mat(parts)), meaning(*parts) * meaning(*other))


def test_multiply_sparse_of_column_and_row(sparse):
    a, b = np.array([[1.0], [0], [2]]), np.array([[0, 3.0, 0, 4, 5]])
    out = sparse.BCOO.fromdense(a) * sparse.BCOO.fromdense(b)
    assert out.nse == 6
    check(out, a * b)


CONVOLUTIONS = [
    dict(window_strides=(1,), padding="SAME"),
    dict(window_strides=(2,), padding=[(1, 3)]),
    dict(window_strides=(1,), padding=[(2, 2)], lhs_dilation=(2,)),
    dict(window_strides=(1,), padding="VALID", rhs_dilation=(2,)),
    dict(window_strides=(3,), padding=[(-1, 2)], lhs_dilation=(2,), rhs_dilation=(2,)),
]


@pytest.mark.parametrize("options", CONVOLUTIONS)
@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}])
def test_convolutions(jax, jnp, sparse, options, groups):
    rng = np.random.default_rng(1)
    features = 2 if groups.get("feature_group_count") else 4
    x = (rng.integers(-3, 4, (2, 4, 7)) * (rng.random((2, 4, 7)) < 0.5)).astype(np.float32)
    k = (rng.integers(-3, 4, (4, features, 3)) * (rng.random((4, features, 3)) < 0.6)).astype(np.float32)
    out = sparse.bcoo_conv_general_dilated(sparse.BCOO.fromdense(x, n_batch=1), sparse.BCOO.fromdense(k), **options, **groups)
    check(out, jax.lax.conv_general_dilated(jnp.asarray(x), jnp.asarray(k), **options, **groups), atol=1e-5)


def test_convolutions_of_images(jax, jnp, sparse):
    rng = np.random.default_rng(1)
    x, k = (rng.integers(0, 3, s) * rng.integers(0, 2, s) for s in [(1, 5, 6, 2), (2, 3, 2, 3)])
    x, k = x.astype(np.float32), k.astype(np.float32)
    options = dict(window_strides=(1, 2), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    out = sparse.bcoo_conv_general_dilated(sparse.BCOO.fromdense(x), k, **options)
    check(out, jax.lax.conv_general_dilated(jnp.asarray(x), jnp.asarray(k), **options))


# ---------------------------------------------------------------- operators


def test_operators(jnp, sparse):
    x, y = np.array([[0, 1.0, -2], [3, 0, 0]]), np.array([[0, 5.0, 0], [1, 0, 2]])
    m, n = sparse.BCOO.fromdense(x), sparse.BCOO.fromdense(y)
    for got, expected in [
        (m + n, x + y), (m - n, x - y), (m * n, x * y), (m * 2, x * 2), (2 * m, x * 2), (m / 2, x / 2), (m * y, x * y), (y * m, x * y), (m / (y + 1), x / (y + 1)),
        (m + y, x + y), (y + m, x + y), (m - y, x - y), (y - m, y - x), (-m, -x), (+m, x), (abs(m), abs(x)), (m**2, x**2), (m**2.0, x**2), (m @ n.T, x @ y.T),
        (m @ y.T, x @ y.T), (y.T @ m, y.T @ x), (m @ y[0], x @ y[0]), (y[:, 0] @ m, y[:, 0] @ x), (m.astype(np.int32), x.astype(np.int32)), (m.reshape(3, 2),
        x.reshape(3, 2)), (m.reshape(-1), x.reshape(-1)), (m.T, x.T), (m.transpose((0, 1)), x), (m.transpose((-1, 0)), x.T), (m.sum(), x.sum()), (m.sum(0), x.sum(0)),
        (m.sum(axis=1, keepdims=True), x.sum(axis=1, keepdims=True)), (m * 2j, x * 2j), (m * np.float64(3), x * 3), (m + np.ones((4, 1, 1)) * y, x + y * np.ones((4, 1, 1))),
    ]:  # fmt: skip
        check(got, expected)
    assert (m + m).nse == 2 * m.nse
    assert isinstance(m.sum(), type(jnp.ones(())))
    assert (m * 2).indices_sorted and (m * 2).unique_indices


def test_operands_that_operators_refuse(jnp, sparse):
    m = sparse.eye(3)
    for f, match in [
        (lambda: m + 1, "not implemented when the output shape is larger than Y.shape"),
        (lambda: 1 / m, "Division by a sparse array is not implemented"),
        (lambda: m / m, "Division by a sparse array is not implemented"),
        (lambda: m == m, "sparse rule for eq is not implemented because it would result in dense output"),
        (lambda: m**-1, "integer_pow with non-positive exponent -1"),
        (lambda: m**0, "integer_pow with non-positive exponent 0"),
        (lambda: 2**m, "sparse rule for pow is not implemented"),
        (lambda: sparse.bcoo_concatenate([m.update_layout(n_dense=1, on_inefficient=None)] * 2, dimension=1), "Concatenation along dense dimensions"),
        (lambda: sparse.BCOO.fromdense(jnp.eye(3), n_batch=1).T, "cannot permute batch axes with non-batch axes"),
    ]:
        with pytest.raises(NotImplementedError, match=match):
            f()
    for f, match in [
        (lambda: m % 2, "unsupported operand"),
        (lambda: m + "a", "unsupported operand"),
        (lambda: hash(m), "unhashable type: 'BCOO'"),
        (lambda: m @ jnp.ones(4), r"dot_general requires contracting dimensions to have the same shape, got \(3,\) and \(4,\)"),
        (lambda: m * sparse.eye(4), "incompatible shapes"),
        (lambda: jnp.sin(m), "sin"),
        (lambda: sparse.bcoo_transpose(m, permutation=(0, 0)), "isn't a permutation of operand dimensions"),
        (lambda: sparse.BCOO((np.ones(2), np.ones((2, 1))), shape=(3,)), "integer dtype"),
        (lambda: sparse.BCOO((np.ones(2), np.ones((2, 1), int)), shape=(3.5,)), "Shapes must be 1D sequences"),
        (lambda: sparse.bcoo_fromdense(np.ones(2), index_dtype=float), "must be an integer dtype"),
        (lambda: sparse.bcoo_multiply_dense(m, np.ones((3, 3), int)), "requires arguments to have the same dtypes"),
    ]:
        with pytest.raises(TypeError, match=match):
            f()
    for f, match in [
        (lambda: sparse.BCOO((np.ones(3), np.ones((4, 2), int)), shape=(4, 4)), r"Invalid data.shape=\(3,\) for nse=4, n_batch=0, n_dense=0"),
        (lambda: sparse.BCOO((np.ones((2, 3)), np.ones((3, 3, 2), int)), shape=(4, 4, 4)), "indices batch dimensions not compatible"),
        (lambda: sparse.BCOO((np.ones(3), np.ones((3, 2), int)), shape=(4,)), "fewer dimensions"),
        (lambda: sparse.BCOO((np.ones(3), np.ones((3, 2), int)), shape=(4, -1)), "must not be negative"),
        (lambda: sparse.bcoo_reshape(m, new_sizes=(2, 4)), "cannot mix sparse and dense dimensions"),
        (lambda: sparse.bcoo_slice(m, start_indices=(0, 2), limit_indices=(3, 1)), "invalid indices"),
        (lambda: sparse.bcoo_squeeze(m, dimensions=(0,)), "which has size not equal to one"),
        (lambda: sparse.bcoo_reduce_sum(m, axes=(2,)), "axis 2 is out of bounds for array of dimension 2"),
        (lambda: sparse.bcoo_broadcast_in_dim(m, shape=(3, 2), broadcast_dimensions=(0, 1)), "cannot broadcast"),
        (lambda: sparse.eye(3, sparse_format="foo"), "sparse_format='foo' not recognized"),
        (lambda: sparse.empty((3,), n_batch=2), "Invalid inputs"),
        (lambda: sparse.bcoo_fromdense(np.ones((2, 2)), nse=-1), "nse must not be negative"),
        (lambda: sparse.bcoo_fromdense(np.ones((2, 300)), index_dtype="int8"), "do not fit into index_dtype int8"),
        (lambda: sparse.bcoo_extract(m, np.ones((4, 4))), r"\(3, 3\)"),
    ]:
        with pytest.raises(ValueError, match=match):
            f()


def test_booleans(jnp, sparse):
    x, y = np.array([[True, False], [True, True]]), np.array([[True, True], [False, False]])
    m, n = sparse.BCOO.fromdense(x), sparse.BCOO.fromdense(y)
    for got, expected in [(m * n, x & y), (m + n, x | y), (m * y, x & y), (m + y, x | y), (m @ n, x @ y), (m @ y, x @ y)]:
        assert got.dtype == bool
        check(got, expected)
    assert m.sum() == 3 and m.sum().dtype == jnp.sum(jnp.asarray(x)).dtype
    check(m.sum(0), x.sum(0))
    with pytest.raises(TypeError, match="sub does not accept dtype bool"):
        m - n


def test_odd_layouts(jax, sparse):
    with pytest.raises(ValueError, match="in_axes for batched BCOO operations must correspond to a batch dimension"):
        jax.vmap(lambda m: m.sum())(sparse.eye(3))
    with pytest.raises(ValueError, match="do not fit into index_dtype int32"):
        sparse.empty((2**40, 3))
    m = pickle.loads(pickle.dumps(sparse.eye(3, 4, 1)))
    np.testing.assert_array_equal(copy.deepcopy(m).todense(), np.eye(3, 4, 1))
    huge = sparse.BCOO((np.ones(1), np.array([[5, 7]])), shape=(2**40, 2**35))
    assert huge.T.shape == (2**35, 2**40) and sparse.bcoo_reduce_sum(huge, axes=(0, 1)).todense() == 1
    assert huge.sum_duplicates().nse == 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.int32])
def test_dtypes_of_indices(jnp, sparse, dtype):
    n = 100 if dtype == np.int8 else 200
    x = np.zeros((3, n), np.float32)
    x[0, n - 1], x[2, 5], x[1, 90] = 1, 2, 3
    m = sparse.BCOO.fromdense(x, index_dtype=dtype, nse=5)
    assert m.indices.dtype == dtype
    v = np.arange(n, dtype=np.float32)
    for got, expected in [
        (m, x), (m @ v, x @ v), (m.T, x.T), (m.sum_duplicates(), x), (m.sort_indices(), x), (m[1:, 80:], x[1:, 80:]), (m[:, ::-3], x[:, ::-3]), (m[2], x[2]), (m * m, x * x),
        (m + m, x + x), (m.sum(0), x.sum(0)), (m * v, x * v), (m @ m.T, x @ x.T), (m[:, np.array([5, n - 1])], x[:, [5, n - 1]]), (sparse.BCSR.from_bcoo(m) @ v, x @ v),
        (m.update_layout(n_batch=1, on_inefficient=None), x), (m.update_layout(n_dense=1, on_inefficient=None), x), (sparse.bcoo_rev(m, (0, 1)), x[::-1, ::-1]),
        (sparse.bcoo_extract(m, x + 1), (x + 1) * (x != 0)), (sparse.bcoo_concatenate([m, m], dimension=0), np.concatenate([x, x])), (m[None], x[None]),
    ]:  # fmt: skip
        check(got, expected)


def test_indices_that_cannot_reach_the_end(sparse):
    x = np.zeros(300, np.float32)
    x[[3, 120]] = 1, 2
    m = sparse.BCOO((np.array([1.0, 2.0], np.float32), np.array([[3], [120]], np.int8)), shape=(300,))
    check(m, x)
    assert m @ np.arange(300, dtype=np.float32) == 243
    with pytest.raises(ValueError, match="do not fit into int8"):
        m.sum_duplicates()


@pytest.mark.parametrize("kind", ["BCOO", "BCSR", "COO", "CSR", "CSC"])
@pytest.mark.parametrize("rule", ["jvp", "vjp"])
def test_rules_get_tangents_and_cotangents_that_are_matrices(jax, jnp, kind, rule):
    """A rule of a function of a sparse matrix computes with its tangent, one of a function that returns one with its cotangent."""
    if jax.__name__ == "jax":
        pytest.skip("gives rules matrices whose indices are float0")
    from ferrax.experimental import sparse

    dense = jnp.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    b = jnp.array([1.0, -2.0, 3.0])
    matrix = getattr(sparse, kind).fromdense(dense)
    leaves, tree = jax.tree.flatten(matrix)
    data = leaves[0]
    of = lambda data: jax.tree.unflatten(tree, [data, *leaves[1:]])
    if rule == "jvp":
        product = jax.custom_jvp(lambda A, b: A @ b)
        product.defjvp(lambda p, t: (product(*p), t[0] @ p[1] + p[0] @ t[1]))
        f = lambda data, b: product(of(data), b)
    else:
        doubled = jax.custom_vjp(lambda A: of(2 * A.data))
        doubled.defvjp(lambda A: (doubled(A), None), lambda _, ct: (of((2 * (ct @ jnp.eye(3))).ravel()[jnp.array([0, 1, 4, 5])]),))
        f = lambda data, b: doubled(of(data)) @ b
    plain = lambda data, b: (1 if rule == "jvp" else 2) * (of(data) @ b)
    argnums = (0, 1) if kind != "CSC" or rule == "jvp" else 1  # the rule above is of matrices by rows
    loss = lambda g: lambda data, b: (g(data, b) ** 2).sum()
    for transform in (lambda g: g, jax.jit):
        got = transform(jax.grad(loss(f), argnums))(data, b)
        want = jax.grad(loss(plain), argnums)(data, b)
        for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-6)
