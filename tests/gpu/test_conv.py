"""Convolutions on a GPU and on cores: layouts, strides, dilations, groups, padding, derivatives, dtypes, sizes beside the bounds between tiles and kernels."""

import numpy as np
import pytest
from conftest import ON_JAX

pytestmark = pytest.mark.skipif(ON_JAX, reason="JAX from PyPI has no such device")

# name: (x, w, layout, other arguments)
CASES = {
    "images": ((2, 9, 11, 8), (3, 3, 8, 16), ("NHWC", "HWIO", "NHWC"), {}),
    "channels first": ((2, 8, 9, 11), (16, 8, 3, 3), ("NCHW", "OIHW", "NCHW"), {}),
    "mixed layouts": ((9, 2, 8, 11), (3, 16, 8, 3), ("HNCW", "HOIW", "CWNH"), {}),
    "stride": ((2, 20, 17, 4), (3, 2, 4, 12), ("NHWC", "HWIO", "NHWC"), {"window_strides": (2, 3)}),
    "dilated window": ((1, 20, 17, 4), (3, 2, 4, 12), ("NHWC", "HWIO", "NHWC"), {"rhs_dilation": (2, 3)}),
    "transposed": ((1, 7, 6, 5), (4, 3, 5, 9), ("NHWC", "HWIO", "NHWC"), {"lhs_dilation": (2, 3), "padding": ((3, 2), (2, 1))}),
    "no padding": ((3, 12, 12, 3), (5, 5, 3, 8), ("NHWC", "HWIO", "NHWC"), {"padding": "VALID"}),
    "negative padding": ((2, 12, 12, 3), (3, 3, 3, 8), ("NHWC", "HWIO", "NHWC"), {"padding": ((-1, 2), (3, -2))}),
    "groups": ((2, 9, 9, 24), (3, 3, 8, 30), ("NHWC", "HWIO", "NHWC"), {"feature_group_count": 3}),
    "depthwise": ((2, 9, 9, 12), (3, 3, 1, 24), ("NHWC", "HWIO", "NHWC"), {"feature_group_count": 12}),
    "groups of the batch": ((6, 9, 9, 8), (3, 3, 8, 30), ("NHWC", "HWIO", "NHWC"), {"batch_group_count": 3}),
    "pointwise": ((1, 8, 8, 40), (1, 1, 40, 70), ("NHWC", "HWIO", "NHWC"), {}),
    "signal": ((2, 200, 8), (9, 8, 8), ("NWC", "WIO", "NWC"), {}),
    "volume": ((1, 5, 6, 7, 4), (2, 3, 2, 4, 8), ("NDHWC", "DHWIO", "NDHWC"), {}),
    "long sums": ((1, 4, 4, 300), (3, 3, 300, 16), ("NHWC", "HWIO", "NHWC"), {}),
    "few columns": ((2, 9, 11, 8), (3, 3, 8, 7), ("NHWC", "HWIO", "NHWC"), {}),
    "few rows": ((1, 3, 5, 8), (3, 3, 8, 16), ("NHWC", "HWIO", "NHWC"), {}),
    "few terms": ((2, 9, 11, 1), (1, 7, 1, 16), ("NHWC", "HWIO", "NHWC"), {}),
    "whole tiles": ((1, 8, 8, 16), (3, 3, 16, 64), ("NHWC", "HWIO", "NHWC"), {}),
    "one more than tiles": ((1, 5, 13, 15), (1, 1, 15, 65), ("NHWC", "HWIO", "NHWC"), {}),
}


def small_integers(shape, seed):
    """Sums of their products are exact in float32, in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def compare(jax, gpu, f, *xs):
    there = jax.jit(f)(*jax.device_put(xs, gpu))
    here = jax.jit(f)(*jax.device_put(xs, jax.devices("cpu")[0]))
    for a, b in zip(jax.tree_util.tree_leaves(there), jax.tree_util.tree_leaves(here), strict=True):
        assert a.devices() == {gpu} and a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def convolution(jax, case):
    layout, more = CASES[case][2:]
    window = len(layout[0]) - 2
    arguments = {"window_strides": (1,) * window, "padding": "SAME", "dimension_numbers": layout, **more}
    return lambda x, w: jax.lax.conv_general_dilated(x, w, **arguments)


@pytest.mark.parametrize("case", CASES)
def test_values_and_derivatives(jax, gpu, case):
    f = convolution(jax, case)
    x, w = (small_integers(shape, seed) for seed, shape in enumerate(CASES[case][:2]))
    ct = small_integers(jax.eval_shape(f, x, w).shape, 2)

    def both(x, w, ct):
        out, pullback = jax.vjp(f, x, w)
        return out, pullback(ct)

    compare(jax, gpu, both, x, w, ct)


@pytest.mark.parametrize("dtype", ["uint32", "int8", "bfloat16", "float16"])
@pytest.mark.parametrize("case", ["channels first", "groups"])
def test_dtypes(jax, gpu, case, dtype):
    x, w = (jax.numpy.asarray(small_integers(shape, seed), dtype) for seed, shape in enumerate(CASES[case][:2]))
    compare(jax, gpu, convolution(jax, case), x, w)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (3, 1)])
@pytest.mark.parametrize("case", ["images", "mixed layouts", "groups"])
def test_batches(jax, gpu, case, axes):
    shapes = (list(s) for s in CASES[case][:2])
    xs = []
    for seed, (shape, axis) in enumerate(zip(shapes, axes, strict=True)):
        if axis is not None:
            shape.insert(axis, 3)
        xs.append(small_integers(shape, seed))
    compare(jax, gpu, jax.vmap(convolution(jax, case), axes), *xs)
