"""BCOO arrays as hypothesis draws them, and what they mean, said with numpy alone."""

import itertools

import numpy as np
from hypothesis import strategies as st

DTYPES = (np.float32, np.int32, np.complex64, np.float16, np.uint8)


def meaning(data, indices, shape):
    """The dense array of a BCOO array's buffers: one element after another."""
    data, indices = np.asarray(data), np.asarray(indices)
    nb, (nse, ns) = indices.ndim - 2, indices.shape[-2:]
    out = np.zeros(shape, data.dtype)
    for batch in itertools.product(*map(range, shape[:nb])):
        d = data[tuple(b if data.shape[i] > 1 else 0 for i, b in enumerate(batch))]
        x = indices[tuple(b if indices.shape[i] > 1 else 0 for i, b in enumerate(batch))]
        for e in range(nse):
            if all(0 <= x[e, j] < shape[nb + j] for j in range(ns)):
                out[(*batch, *x[e])] += d[e]
    return out


@st.composite
def buffers(draw, shape=None, n_batch=None, n_dense=None, dtype=None, max_dims=4, max_side=3, max_nse=4, unique=False, shared=True):
    """(data, indices, shape) with equal indices, indices outside, and batch dimensions that are shared."""
    if shape is None:
        shape = tuple(draw(st.lists(st.integers(0, max_side), min_size=1, max_size=max_dims)))
    n_batch = draw(st.integers(0, len(shape))) if n_batch is None else n_batch
    n_dense = draw(st.integers(0, len(shape) - n_batch)) if n_dense is None else n_dense
    ns = len(shape) - n_batch - n_dense
    dtype = np.dtype(draw(st.sampled_from(DTYPES)) if dtype is None else dtype)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nse = draw(st.integers(0, max_nse))
    sparse = shape[n_batch : n_batch + ns]
    lead = [tuple(1 if shared and draw(st.booleans()) else d for d in shape[:n_batch]) for _ in range(2)]
    data = rng.integers(0, 5, (*lead[0], nse, *shape[n_batch + ns :]))
    data = data + 1j * rng.integers(0, 5, data.shape) if dtype.kind == "c" else data
    if unique:
        places = np.array([*itertools.product(*map(range, sparse))], np.int32).reshape(-1, ns)
        indices = np.empty((*lead[1], nse, ns), np.int32)
        for at in np.ndindex(*lead[1]):
            chosen = rng.permutation(len(places))[:nse]
            indices[at] = np.concatenate([places[chosen], np.broadcast_to(np.array(sparse, np.int32), (nse - len(chosen), ns))])
    else:
        indices = np.stack([rng.integers(0, d + 2, (*lead[1], nse)) for d in sparse], axis=-1) if ns else np.zeros((*lead[1], nse, 0))
    return data.astype(dtype), indices.astype(np.int32), shape


def check(out, expected, **options):
    """A BCOO array (or an array) means what numpy says, and its promises hold."""
    expected = np.asarray(expected)
    assert tuple(out.shape) == expected.shape
    if hasattr(out, "indices"):
        holds(out)
        np.testing.assert_allclose(meaning(out.data, out.indices, out.shape), expected, **options)
        np.testing.assert_allclose(out.todense(), expected, **options)
    else:
        np.testing.assert_allclose(out, expected, **options)


def holds(mat):
    """The buffers fit the shape, and the indices keep their promises."""
    nb, ns = mat.n_batch, mat.n_sparse
    assert mat.n_batch + mat.n_sparse + mat.n_dense == mat.ndim
    assert tuple(mat.data.shape[nb:]) == (mat.nse, *mat.shape[nb + ns :])
    for x in (mat.data, mat.indices):
        assert all(a in (1, b) for a, b in zip(x.shape[:nb], mat.shape, strict=False))
    indices = np.asarray(mat.indices)
    for at in np.ndindex(*indices.shape[:nb]):
        rows = indices[at]
        inner = [tuple(r) for r in rows if all(0 <= i < d for i, d in zip(r, mat.shape[nb : nb + ns], strict=True))]
        if mat.indices_sorted:
            assert inner == sorted(inner)
        if mat.unique_indices and ns:
            assert len(set(inner)) == len(inner)
