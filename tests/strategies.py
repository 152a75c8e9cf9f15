"""What hypothesis draws for these tests: shapes, arrays with the edges of their type, axes, indices."""

import contextlib
import os

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

# JAX flushes subnormal numbers to zero and less accurate in places: expectations are checked on it with more room.
ON_JAX = os.environ.get("FERRAX_TEST_LIB") == "jax"
SMALLEST = 2.0**-126 if ON_JAX else 2.0**-149
SLACK = 64 if ON_JAX else 1

FLOATS = (np.float32, np.float16)
INTS = (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32)


def shapes(min_dims=0, max_dims=3, min_side=0, max_side=4):
    return hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side)


def floats(dtype=np.float32, low=None, high=None, specials=True):
    """Finite numbers in [low, high], and zeros, infinities and NaN where there are no bounds."""
    width = np.dtype(dtype).itemsize * 8
    if low is not None or high is not None:
        as_dtype = lambda v: None if v is None else float(np.dtype(dtype).type(v))
        return st.floats(as_dtype(low), as_dtype(high), width=width, allow_nan=False, allow_infinity=low is None or high is None, allow_subnormal=False)
    if not specials:
        return st.floats(-100, 100, width=width, allow_subnormal=False)
    return st.floats(width=width, allow_subnormal=False) | st.sampled_from([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, -1.0])


def arrays(dtype=np.float32, shape=None, elements=None, min_side=0):
    dtype = np.dtype(dtype)
    if elements is None and dtype.kind == "f":
        elements = floats(dtype, specials=False)
    return hnp.arrays(dtype, shapes(min_side=min_side) if shape is None else shape, elements=elements)


@st.composite
def with_axis(draw, array):
    """An array of rank 1 or more and one of its axes, counted from either end."""
    x = draw(array.filter(lambda x: x.ndim > 0))
    return x, draw(st.integers(-x.ndim, x.ndim - 1))


@st.composite
def with_axes(draw, array):
    """An array and None, an axis, or a tuple of distinct axes."""
    x = draw(array)
    if x.ndim == 0 or draw(st.booleans()):
        return x, None
    axes = tuple(draw(st.lists(st.integers(0, x.ndim - 1), min_size=1, max_size=x.ndim, unique=True)))
    return x, axes[0] if len(axes) == 1 and draw(st.booleans()) else axes


@st.composite
def broadcastable(draw, dtypes, n=2):
    """n arrays whose shapes broadcast together."""
    together = draw(hnp.mutually_broadcastable_shapes(num_shapes=n, max_dims=3, max_side=4))
    return [draw(arrays(draw(st.sampled_from(dtypes)), shape)) for shape in together.input_shapes]


@st.composite
def indexed(draw, dtype=np.float32, advanced=True):
    """An array and an index into it that numpy accepts: integers, slices, ellipsis, None, masks, integer arrays."""
    x = draw(arrays(dtype, shapes(min_dims=1, min_side=1, max_side=5)))
    if not advanced or draw(st.booleans()):
        return x, draw(hnp.basic_indices(x.shape, allow_newaxis=True))
    if draw(st.booleans()):
        return x, draw(hnp.integer_array_indices(x.shape, result_shape=shapes(max_dims=2, min_side=1, max_side=3)))
    parts = []
    for size in x.shape[: draw(st.integers(1, x.ndim))]:
        parts.append(
            draw(
                st.one_of(
                    st.integers(-size, size - 1),
                    st.slices(size),
                    hnp.arrays(np.int32, (3,), elements=st.integers(-size, size - 1)),
                )
            )
        )
    return x, tuple(parts)


@contextlib.contextmanager
def x64(jax):
    """64-bit types, within a test that hypothesis repeats (a fixture would be set up only once)."""
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", False)


def same(got, want):
    """Equal in shape, dtype and value, NaN equal to NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, f"{got.dtype}{got.shape} is not {want.dtype}{want.shape}"
    np.testing.assert_array_equal(got, want)


def same_bits(got, want):
    """Equal in shape, dtype and every bit but the payload of a NaN. (JAX itself does not promise that of jit and eager.)"""
    if ON_JAX:
        return np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    same(got, want)
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind in "fc":
        real = ~np.isnan(got)
        assert got[real].tobytes() == want[real].tobytes(), "a zero has changed its sign"
