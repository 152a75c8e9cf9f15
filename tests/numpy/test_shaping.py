"""Functions that move elements without changing them: equal to numpy's, bit for bit, eager and under jit."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from strategies import arrays, same, shapes, with_axis

MOVES = {
    "flip": lambda m, x, axis: m.flip(x, axis),
    "roll": lambda m, x, axis: m.roll(x, 2, axis),
    "expand_dims": lambda m, x, axis: m.expand_dims(x, axis),
    "concatenate": lambda m, x, axis: m.concatenate([x, x[..., :], x], axis),
    "stack": lambda m, x, axis: m.stack([x, x], axis),
    "repeat": lambda m, x, axis: m.repeat(x, 3, axis),
    "moveaxis": lambda m, x, axis: m.moveaxis(x, axis, 0),
    "swapaxes": lambda m, x, axis: m.swapaxes(x, axis, -1),
    "take": lambda m, x, axis: m.take(x, np.array([0, 0]), axis),
    "delete": lambda m, x, axis: m.delete(x, 0, axis),
    "append": lambda m, x, axis: m.append(x, x, axis),
    "split": lambda m, x, axis: m.concatenate(m.array_split(x, 2, axis)[::-1], axis),
    "diff": lambda m, x, axis: m.diff(x, axis=axis),
    "tile": lambda m, x, axis: m.tile(x, (2, 1, 3)),
    "ravel": lambda m, x, axis: m.ravel(x),
    "transpose": lambda m, x, axis: m.transpose(x),
    "atleast_3d": lambda m, x, axis: m.atleast_3d(x),
    "tril": lambda m, x, axis: m.tril(m.atleast_2d(x)),
    "triu": lambda m, x, axis: m.triu(m.atleast_2d(x), 1),
    "rot90": lambda m, x, axis: m.rot90(m.atleast_2d(x)),
    "hstack": lambda m, x, axis: m.hstack([x, x]),
    "vstack": lambda m, x, axis: m.vstack([x, x]),
}


@pytest.mark.parametrize("name", MOVES)
@given(data=st.data())
def test_move(jax, jnp, name, data):
    x, axis = data.draw(with_axis(arrays(np.float32, shapes(min_dims=1, min_side=1))))
    want = MOVES[name](np, x, axis)
    same(MOVES[name](jnp, jnp.asarray(x), axis), want)
    same(jax.jit(lambda x: MOVES[name](jnp, x, axis))(x), want)


@given(data=st.data())
def test_reshape_and_back(jax, jnp, data):
    x = data.draw(arrays(np.int32, min_side=1))
    sizes = [d for d in range(1, x.size + 1) if x.size % d == 0]
    first = data.draw(st.sampled_from(sizes))
    for shape in ((first, -1), (-1, first), (first, x.size // first, 1), -1):
        same(jnp.reshape(x, shape), x.reshape(shape))
        same(jnp.asarray(x).reshape(shape).reshape(x.shape), x)
    same(jnp.asarray(x).T.reshape(-1), x.T.reshape(-1))


@given(data=st.data())
def test_any_permutation(jnp, data):
    x = data.draw(arrays(np.float32))
    axes = tuple(data.draw(st.permutations(range(x.ndim))))
    same(jnp.transpose(x, axes), np.transpose(x, axes))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@given(data=st.data())
def test_pad(jnp, mode, data):
    x = data.draw(arrays(np.float32, shapes(min_dims=1, max_dims=2, min_side=2)))
    widths = [tuple(data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))) for _ in range(x.ndim)]
    same(jnp.pad(x, widths, mode), np.pad(x, widths, mode))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "minimum", "mean", "median", "empty"])
@given(data=st.data())
def test_empty_arrays_are_padded_along_other_axes(jnp, mode, data):
    shape = data.draw(st.permutations([0, *data.draw(shapes(min_dims=0, max_dims=2))]))
    widths = [data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3))) for _ in shape]
    x = np.zeros(shape, np.float32)
    if mode not in ("constant", "empty") and any(n == 0 and any(pair) for n, pair in zip(shape, widths, strict=True)):
        with pytest.raises(ValueError, match="to empty axis|stat_length of 0"):
            jnp.pad(x, widths, mode)
    else:
        assert jnp.pad(x, widths, mode).shape == tuple(n + sum(pair) for n, pair in zip(shape, widths, strict=True))


@given(low=st.integers(-2, 3), high=st.integers(-2, 3), inner=st.integers(0, 2), n=st.integers(0, 5))
def test_lax_pad_also_crops(lax, low, high, inner, n):
    x = np.arange(1, n + 1, dtype=np.float32)
    spread = np.full(max(n + (n - 1) * inner, 0), -1, np.float32)
    spread[:: inner + 1] = x
    assume(len(spread) + low + high >= 0)
    full = np.concatenate([np.full(max(low, 0), -1, np.float32), spread, np.full(max(high, 0), -1, np.float32)])
    want = full[max(-low, 0) : len(full) - max(-high, 0)]
    same(lax.pad(x, np.float32(-1), [(low, high, inner)]), want)


def _padded(x, value, low, high, inner):
    """The definition, in Python's integers."""
    size = low + len(x) + (len(x) - 1) * inner + high
    out = [value] * size
    for i, v in enumerate(x):
        if 0 <= low + i * (1 + inner) < size:
            out[low + i * (1 + inner)] = v
    return np.array(out, np.float32)


@pytest.mark.ours
@pytest.mark.parametrize(
    "config",
    [
        (0, -3 * 2**61, 2**61),
        (-(2**61) - 1, -(2**62), 2**61),
        (-(2**61) - 1, -(2**62) + 2, 2**61),
        (-(2**62), 2**62, 0),
        (2**62, -(2**62), 0),
        (2**62, -(2**62) + 1, 0),
        (-2, 5, 1),
        (3, -4, 2),
    ],
)
def test_negative_padding_removes_interior_padding(jax, jnp, lax, config):
    x = np.array([1, 2, 3, 4], np.float32)
    want = _padded(x, 9.0, *config)
    same(lax.pad(jnp.asarray(x), np.float32(9), [config]), want)
    rows = lax.pad(jnp.stack([x, x + 10]), np.float32(9), [(0, 0, 0), config])
    same(rows, np.stack([want, _padded(x + 10, 9.0, *config)]))
    weights = np.arange(1, len(want) + 1, dtype=np.float32)
    slopes = jax.grad(lambda x: (lax.pad(x, np.float32(9), [config]) * weights).sum())(jnp.asarray(x))
    same(slopes, np.array([(_padded(np.eye(4, dtype=np.float32)[i], 0.0, *config) * weights).sum() for i in range(4)], np.float32))


@pytest.mark.ours
def test_sizes_whose_product_is_zero_may_be_any(jnp, lax):
    x = jnp.zeros((2**40, 0, 2**40))
    assert (x + 1).shape == jnp.transpose(x).shape == (2**40, 0, 2**40)
    assert lax.slice(jnp.arange(5.0), (1,), (5,), (2**62,)).tolist() == [1.0]


@pytest.mark.parametrize("args", [(5,), (2, 9), (2, 9, 3), (9, 2, -2), (0.0, 1.0, 0.25), (3, 3), (5, 2)])
def test_arange(jnp, args):
    got, want = np.asarray(jnp.arange(*args)), np.arange(*args)
    assert got.shape == want.shape and got.dtype.kind == want.dtype.kind and got.dtype.itemsize == 4
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_creation(jnp):
    f = np.float32
    same(jnp.zeros((2, 0, 3)), np.zeros((2, 0, 3), f))
    same(jnp.full((2, 2), 7, "int8"), np.full((2, 2), 7, np.int8))
    same(jnp.eye(3, 4, k=1), np.eye(3, 4, k=1, dtype=f))
    same(jnp.identity(2), np.identity(2, f))
    same(jnp.tri(3, 4, -1), np.tri(3, 4, -1, f))
    same(jnp.diag(jnp.array([1.0, 2.0]), 1), np.diag(np.array([1, 2], f), 1))
    same(jnp.zeros_like(jnp.ones(3, "int16")), np.zeros(3, np.int16))
    for got, want in zip(jnp.meshgrid(np.arange(2), np.arange(3), indexing="ij"), np.meshgrid(np.arange(2), np.arange(3), indexing="ij"), strict=True):
        same(got, want.astype(np.int32))
    np.testing.assert_allclose(jnp.linspace(0, 1, 7), np.linspace(0, 1, 7), rtol=1e-6)
    assert float(jnp.linspace(0, 1, 11)[-1]) == 1.0


@given(data=st.data())
def test_sorting(jax, jnp, data):
    x, axis = data.draw(with_axis(arrays(np.float32, shapes(min_dims=1, min_side=1, max_side=9))))
    same(jnp.sort(x, axis), np.sort(x, axis))
    same(jnp.argsort(x, axis), np.argsort(x, axis, kind="stable").astype(np.int32))
    same(jnp.sort(x, axis, descending=True), -np.sort(-x, axis))
    same(jax.jit(lambda x: jnp.sort(x, axis))(x), np.sort(x, axis))


def test_sorting_puts_nan_last_and_minus_zero_first(jnp):
    x = np.array([np.nan, 1, -np.inf, 0.0, -0.0, np.inf], np.float32)
    got = np.asarray(jnp.sort(x))
    assert np.array_equal(got[:2], [-np.inf, 0]) and np.isnan(got[-1])
    top, where = __import__("importlib").import_module(jnp.__name__.split(".")[0] + ".lax").top_k(np.array([3.0, 1, 3, 2], np.float32), 3)
    assert np.asarray(top).tolist() == [3, 3, 2] and np.asarray(where).tolist() == [0, 2, 3]


@given(data=st.data())
def test_searching(jnp, data):
    a = np.sort(data.draw(arrays(np.float32, (8,))))
    v = data.draw(arrays(np.float32, (5,)))
    for side in ("left", "right"):
        same(jnp.searchsorted(a, v, side=side), np.searchsorted(a, v, side=side).astype(np.int32))
    values = np.array([1, 3, 1, 2], np.int32)
    same(jnp.unique(values), np.unique(values))
    same(jnp.nonzero(values > 1)[0], np.nonzero(values > 1)[0].astype(np.int32))
    same(jnp.nonzero(values > 1, size=3, fill_value=-1)[0], np.array([1, 3, -1], np.int32))


def test_products_of_empty_arrays_with_huge_axes(jax, jnp):
    """Products of the axes are beyond 64 bits; elements there are none, and so no terms."""
    long = 3037000500
    got = jnp.matmul(jnp.zeros((0, 2, long)), jnp.zeros((0, long, long)))
    assert got.shape == (0, 2, long)


AXES = {"NumPy number": np.int64(1), "NumPy scalar array": np.array(1), "list": [1], "NumPy array": np.array([1]), "range": range(1, 2)}


@pytest.mark.parametrize("kind", [*AXES, "array"])
@pytest.mark.parametrize("name", ["flip", "ptp", "expand_dims"])
def test_an_axis_may_be_any_static_number_or_list(jnp, name, kind):
    axis = jnp.asarray(1) if kind == "array" else AXES[kind]
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(getattr(jnp, name)(x, axis), getattr(np, name)(x, 1))


@pytest.mark.parametrize("position", [0, 1, 2])
def test_arange_refuses_lists(jnp, position):
    bounds = [1, 5, 2][: position + 1]
    bounds[position] = [3]
    with pytest.raises(TypeError, match=f"^arange requires ndarray, scalar, or None arguments, got <class 'list'> at position {position}.$"):
        jnp.arange(*bounds)
