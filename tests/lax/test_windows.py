"""Convolutions, pooling and folds: values and gradients against loops of numpy, JAX's choices among ties, its words for what does not fit."""

import itertools

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
import pytest
from ferrax import lax
from ferrax.test_util import check_grads

inf = np.inf


def seeded(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def convolved(x, w, strides, padding, ld, rd, fg, bg):
    """By definition: batch and features first."""
    n, c, *space = x.shape
    o, ci, *window = w.shape
    rank = len(space)
    wide = np.zeros((n, c, *[(m - 1) * d + 1 + max(lo, 0) + max(hi, 0) for m, d, (lo, hi) in zip(space, ld, padding, strict=True)]), x.dtype)
    wide[(..., *[slice(max(lo, 0), max(lo, 0) + (m - 1) * d + 1, d) for m, d, (lo, _) in zip(space, ld, padding, strict=True)])] = x
    wide = wide[(..., *[slice(max(-lo, 0), m - max(-hi, 0)) for m, (lo, hi) in zip(wide.shape[2:], padding, strict=True)])]
    out = [(m - (k - 1) * d - 1) // s + 1 for m, k, d, s in zip(wide.shape[2:], window, rd, strides, strict=True)]
    y = np.zeros((n // bg, o, *out), x.dtype)
    for f, p in itertools.product(range(o), np.ndindex(*out)):
        group = f // (o // (fg * bg))
        images = wide[group * (n // bg) : (group + 1) * (n // bg)] if bg > 1 else wide
        channels = images[:, group * ci : (group + 1) * ci] if fg > 1 else images
        at = [slice(i * s, i * s + (k - 1) * d + 1, d) for i, s, k, d in zip(p, strides, window, rd, strict=True)]
        y[(slice(None), f, *p)] = (channels[(..., *at)] * w[f]).sum(tuple(range(1, 2 + rank)))
    return y


CONVOLUTIONS = [
    ((2, 3, 8), (4, 3, 3), (1,), ((0, 0),), (1,), (1,), 1, 1),
    ((2, 4, 7, 6), (6, 2, 3, 2), (2, 1), ((1, 2), (0, 1)), (1, 1), (1, 1), 2, 1),
    ((4, 3, 5), (6, 3, 3), (1,), ((1, 1),), (2,), (2,), 1, 2),
    ((2, 4, 5, 5), (4, 1, 2, 2), (1, 1), ((-1, 2), (3, -1)), (1, 2), (2, 1), 4, 1),
    ((1, 1, 300), (1, 1, 40), (1,), ((39, 39),), (1,), (1,), 1, 1),
    ((4, 16, 12, 12), (24, 16, 3, 3), (1, 2), ((1, 1), (0, 1)), (1, 1), (1, 1), 1, 1),
    ((2, 36, 9, 9), (36, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 36, 1),
    ((1, 3, 40, 40), (8, 3, 7, 7), (2, 2), ((3, 3), (3, 3)), (1, 1), (1, 1), 1, 1),
    # holes: steps that go over them, kernels shorter than they are, cut off, of no common measure, and those that fall in step
    ((2, 3, 9, 8), (4, 3, 3, 4), (1, 1), ((1, 2), (0, 3)), (2, 3), (1, 2), 1, 1),
    ((2, 4, 6, 5), (4, 2, 2, 3), (1, 1), ((-2, 1), (3, -2)), (3, 5), (2, 1), 2, 1),
    ((1, 2, 7, 6), (3, 2, 3, 3), (1, 2), ((2, 2), (2, 2)), (2, 2), (2, 1), 1, 1),
    ((1, 2, 5), (3, 2, 4), (1,), ((2, 2),), (40,), (3,), 1, 1),
    ((2, 5, 20, 30), (6, 5, 4, 3), (2, 3), ((1, 1), (1, 2)), (1, 1), (1, 1), 1, 1),
]


def test_no_zeros_are_multiplied_where_an_array_has_holes():
    """A step over holes meets those elements of the kernel that fall on none: an infinite one that never does has no part in it."""
    w = np.ones((1, 1, 3, 3), np.float32)
    w[0, 0, 0, 1] = inf
    y = np.asarray(lax.conv_general_dilated(np.ones((1, 1, 2, 2), np.float32), w, (1, 1), [(0, 0), (0, 0)], (2, 2)))
    assert y.shape == (1, 1, 1, 1) and y[0, 0, 0, 0] == 4


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("layout", [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("CHNW", "IHWO", "HNCW")], ids="-".join)
def test_convolutions_in_every_layout(case, layout):
    x, w, *rest = case
    rank = len(x) - 2
    layout = tuple("".join(c for c in s if c not in "HW"[rank:]) for s in layout)
    x, w = seeded(*x, seed=1), seeded(*w, seed=2)
    want = convolved(x.astype(np.float64), w.astype(np.float64), *rest)
    numbers = lax.conv_dimension_numbers(x.shape, w.shape, layout)
    strides, padding, ld, rd, fg, bg = rest

    def f(x, w):
        return lax.conv_general_dilated(x, w, strides, padding, ld, rd, layout, fg, bg)

    turned = x.transpose(np.argsort(numbers.lhs_spec)), w.transpose(np.argsort(numbers.rhs_spec))
    got = f(*turned)
    assert (np.asarray(got) == np.asarray(jax.jit(f)(*turned))).all()
    got = np.asarray(got).transpose(numbers.out_spec)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    # <dy, ct> = <dx, x'> + <dw, w'>, since it is linear in both
    y, back = jax.vjp(f, *turned)
    ct = jnp.asarray(seeded(*y.shape, seed=3))
    for v, g in zip(turned, back(ct), strict=True):
        assert g.shape == v.shape
        np.testing.assert_allclose((np.float64(g) * v).sum(), (np.float64(y) * ct).sum(), rtol=2e-4, atol=1e-3)


def test_derivatives_of_convolutions_of_any_order():
    for dims, strides, dilation in [(("NCHW", "OIHW", "NCHW"), (2, 1), (1, 1)), (("NHWC", "HWIO", "NHWC"), (1, 1), (1, 2))]:
        x, w = (seeded(1, 2, 4, 4), seeded(2, 2, 2, 2, seed=1)) if dims[0] == "NCHW" else (seeded(1, 4, 4, 2), seeded(2, 2, 2, 2, seed=1))
        check_grads(
            lambda x, w: lax.conv_general_dilated(x, w, strides, "SAME", rhs_dilation=dilation, dimension_numbers=dims), (x, w), 3, rtol=5e-2, atol=5e-2
        )


def test_lanes_of_gradients_are_the_gradients_of_lanes():
    x, w = jnp.asarray(seeded(3, 1, 2, 4, 4)), jnp.asarray(seeded(3, 2, 2, 2, 2, seed=1))

    def loss(x, w):
        y = lax.conv_general_dilated(x, w, (1, 2), "SAME")
        return (lax.reduce_window(y, -inf, lax.max, (1, 1, 2, 1), (1, 1, 1, 1), "SAME") ** 2).sum()

    for axes in [(0, 0), (0, None), (None, 0)]:
        pick = lambda v, a, i: v[i] if a == 0 else v[0]
        args = [v if a == 0 else v[0] for v, a in zip((x, w), axes, strict=True)]
        got = jax.jit(jax.vmap(jax.grad(loss, (0, 1)), axes))(*args)
        for i in range(3):
            each = jax.grad(loss, (0, 1))(*[pick(v, a, i) for v, a in zip((x, w), axes, strict=True)])
            for g, e in zip(got, each, strict=True):
                np.testing.assert_allclose(g[i], e, rtol=1e-4, atol=1e-5)
        total = jax.grad(lambda *a: jax.vmap(loss, axes)(*a).sum(), (0, 1))(*args)
        for g, t, a in zip(got, total, axes, strict=True):
            np.testing.assert_allclose(g if a == 0 else g.sum(0), t, rtol=1e-4, atol=1e-4)


def pool(f, init, window, strides, padding):
    return lambda x: lax.reduce_window(x, init, f, window, strides, padding)


def test_gradients_of_pools_go_to_the_first_of_equals():
    g = jax.grad(lambda x: pool(lax.max, -inf, (2, 2), (2, 2), "VALID")(x).sum())
    assert g(jnp.zeros((2, 2))).tolist() == [[1, 0], [0, 0]]
    over = pool(lax.max, -inf, (3, 3), (1, 1), "SAME")
    assert jax.grad(lambda x: over(x).sum())(jnp.zeros((3, 3))).tolist() == [[4, 2, 0], [2, 1, 0], [0, 0, 0]]
    least = pool(lax.min, inf, (3, 3), (2, 2), "SAME")
    assert jax.grad(lambda x: least(x).sum())(jnp.zeros((4, 4))).tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    # an element is preferred to padding, even if it is not greater
    assert jax.grad(lambda x: over(x).sum())(jnp.full((3, 3), -inf)).tolist() == [[4, 2, 0], [2, 1, 0], [0, 0, 0]]
    # windows too long to look at one by one
    long = pool(lax.max, -inf, (40,), (1,), ((0, 39),))
    assert jax.grad(lambda x: long(x).sum())(jnp.zeros(50)).tolist() == [1] * 50
    apart = pool(lax.max, -inf, (40,), (40,), "VALID")
    assert np.flatnonzero(jax.grad(lambda x: apart(x).sum())(jnp.zeros(80))).tolist() == [0, 40]
    x, t = jnp.array([1.0, 3.0, 2.0]), jnp.array([1.0, 30.0, 2.0])
    holes = lambda x: lax.reduce_window(x, -inf, lax.max, (2,), (1,), [(0, 0)], window_dilation=(2,))
    assert jax.jvp(holes, (x,), (t,))[1].tolist() == [2]
    assert jax.grad(lambda x: holes(x).sum())(x).tolist() == [0, 0, 1]
    spread = lambda x: lax.reduce_window(x, -inf, lax.max, (2,), (1,), [(0, 0)], base_dilation=(2,))
    assert jax.grad(lambda x: spread(x).sum())(x).tolist() == [1, 2, 1]


@pytest.mark.parametrize("window", [(2, 3), (1, 40), (7, 35)], ids=str)
def test_pools_against_views(window):
    x = seeded(9, 90)
    for strides in [(1, 1), (2, 3), window]:
        for f, g, init in [(lax.max, np.max, -inf), (lax.min, np.min, inf), (lax.add, np.sum, 0.0)]:
            want = g(np.lib.stride_tricks.sliding_window_view(x, window)[:: strides[0], :: strides[1]], (2, 3))
            np.testing.assert_allclose(pool(f, init, window, strides, "VALID")(x), want, rtol=1e-5, atol=1e-5)
        y, back = jax.vjp(pool(lax.max, -inf, window, strides, "VALID"), x)
        dx = np.asarray(back(jnp.ones_like(y))[0])
        assert dx.sum() == y.size
        np.testing.assert_allclose((dx * x).sum(), np.asarray(y).sum(), rtol=1e-4)
        y, back = jax.vjp(pool(lax.add, 0.0, window, strides, "VALID"), x)
        np.testing.assert_allclose((np.asarray(back(y)[0]) * x).sum(), (np.asarray(y) ** 2).sum(), rtol=1e-4)


def test_windows_are_folded_by_any_computation():
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    product = lambda a, b: a * b * 1.0
    assert lax.reduce_window(x, 1.0, product, (2, 2), (1, 1), "SAME").tolist() == [[40, 180, 18], [20, 30, 6]]
    first = lambda a, b: (jnp.maximum(a[0], b[0]), jnp.where(a[0] >= b[0], a[1], b[1]))
    values, places = lax.reduce_window((x, np.arange(6).reshape(2, 3).astype("int32")), (-inf, np.int32(-1)), first, (1, 2), (1, 1), "VALID")
    assert values.tolist() == [[2, 3], [5, 6]] and places.tolist() == [[1, 2], [4, 5]]
    values, places = lax.reduce([x, np.arange(6, dtype="int32").reshape(2, 3)], [-inf, np.int32(-1)], lambda a, b: list(first(a, b)), (1,))
    assert values.tolist() == [3, 6] and places.tolist() == [2, 5]
    assert lax.reduce_window(np.arange(4, dtype="f"), 0.0, lambda a, b: a + b * jnp.arange(3.0)[2], (2,), (1,), "SAME").tolist() == [2, 6, 10, 6]
    fold = lambda x, i: lax.reduce(x, i, product, (0, 1))
    np.testing.assert_allclose(jax.grad(fold)(x, 1.0), 720 / x)
    assert jax.vmap(fold, (None, 0))(x, np.array([1.0, 2.0], "f")).tolist() == [720, 1440]
    assert jax.vmap(fold, (1, 0))(np.stack([x, x], 1), np.array([1.0, 2.0], "f")).tolist() == [720, 1440]
    slide = lambda x, i: lax.reduce_window(x, i, product, (2, 2), (1, 1), "VALID")
    check_grads(lambda x: slide(x, 1.0), (x,), 2, rtol=5e-2, atol=5e-2)
    assert jax.vmap(slide, (None, 0))(x, np.array([1.0, 2.0], "f")).tolist() == [[[40, 180]], [[80, 360]]]


REFUSED = [
    (lambda w: w((1,), (0,)), TypeError, r"reduce_window window_strides must have every element be strictly positive, got \(0,\)\."),
    (lambda w: w((1,), (-1,)), TypeError, r"reduce_window window_strides must have every element be strictly positive, got \(-1,\)\."),
    (lambda w: w((0,), (1,)), TypeError, r"reduce_window window_dimensions must have every element be strictly positive, got \(0,\)\."),
    (lambda w: w((1, 1), (1,)), TypeError, r"reduce_window got the wrong number of window_dimensions for operand: got operand shape \(1,\) with window_dimensions \(1, 1\)\."),
    (lambda w: w((1,), (1,), padding="SAME", window_dilation=(1, 1)), TypeError, r"reduce_window got inconsistent window_dilation and window_dimensions: got window_dilation \(1, 1\) and window_dimensions \(1,\)\."),
    (lambda w: w((1, 1), (1, 1), padding="SAME"), TypeError, r"got operand shape \(1,\) with window_dimensions \(1, 1\)\."),
    (lambda w: w((1,), (1, 1)), TypeError, r"reduce_window got inconsistent window_strides and window_dimensions: got window_strides \(1, 1\) and window_dimensions \(1,\)\."),
    (lambda w: w((1,), (1,), base_dilation=(0,)), TypeError, r"All dilations must be positive, got \(0,\)\."),
    (lambda w: w((1,), (1,), window_dilation=(0,)), TypeError, r"All dilations must be positive, got \(0,\)\."),
    (lambda w: w((1,), (1,), base_dilation=(1, 1)), TypeError, r"inconsistent base_dilation and window_dimensions: got base_dilation \(1, 1\) and window_dimensions \(1,\)\."),
    (lambda w: w((1,), (1,), init=np.zeros((1,), "f")), TypeError, r"reduce_window expected init_values to be scalars but init_values have shapes \[\(1,\)\]\."),
    (lambda w: w((1,), (1,), f=lambda a, b: a + b, init=np.int32(0)), TypeError, r"inconsistent dtypes for operands and init_values: got operand dtypes \[dtype\('float32'\)\] and init_value dtypes \[dtype\('int32'\)\]\."),
    (lambda w: w((1,), (1,), f=lambda a, b: (a, b)), ValueError, r"reduce_window output must have the same tree structure as the operands PyTreeDef\(\*\) vs\. PyTreeDef\(\(\*, \*\)\)"),
    (lambda w: w((1,), (1,), f=lambda a, b: (a + b)[None]), TypeError, "reduce_window computation must take two scalars"),
    (lambda w: lax.reduce((np.ones(1, "f"),), 0.0, lax.add, (0,)), ValueError, r"Operands must have the same tree structure as init_values: PyTreeDef\(\(\*,\)\) vs\. PyTreeDef\(\*\)"),
    (lambda w: lax.reduce(np.ones(1, "f"), np.ones(1, "f"), lax.add, (0,)), ValueError, r"reduce found non-scalar initial value: \[\(1,\)\]"),
    (lambda w: lax.reduce(np.ones(1, "f"), np.int32(0), lambda a, b: a + b, (0,)), TypeError, r"reduce operand dtypes should match corresponding initial value dtypes, got operands=\[ShapedArray\(float32\[1\]\)\] and initial_values=\[ShapedArray\(int32\[\]\)\]"),
    (lambda w: lax.reduce(np.ones(1, "f"), 0.0, lax.add, (-1,)), ValueError, r"reduction axes \(-1,\) contains out-of-bounds indices for float32\[1\]\."),
    (lambda w: lax.reduce(np.ones((1, 1), "f"), 0.0, lambda a, b: a + b, (0, 0)), ValueError, "distinct"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_mismatched_arguments_of_a_window_are_refused(case):
    call, kind, words = case

    def window(size, strides, f=lax.add, init=0.0, **rest):
        return lax.reduce_window(np.ones((1,), "f"), init, f, size, strides, **{"padding": "VALID", **rest})

    with pytest.raises(kind, match=words):
        call(window)


X, W = np.ones((1, 2, 5, 5), "f"), np.ones((3, 2, 2, 2), "f")
CONV = "conv_general_dilated "
UNFIT = [
    ((X, W[0], (1, 1), "VALID"), {}, TypeError, "convolution requires lhs and rhs ndim to be equal, got 4 and 3."),
    ((X, W.astype("float16"), (1, 1), "VALID"), {}, TypeError, "lax.conv_general_dilated requires arguments to have the same dtypes, got float32, float16."),
    ((X, W, (1,), "VALID"), {}, ValueError, CONV + "window and window_strides must have the same number of dimensions, but got 2 and 1"),
    ((X, W, (1, 1, 1), "SAME"), {}, ValueError, CONV + "window and window_strides must have the same number of dimensions, but got 2 and 3"),
    ((X, W, (1, 1), "SAME"), dict(lhs_dilation=(1,)), ValueError, CONV + "window and lhs_dilation must have the same number of dimensions, but got 2 and 1"),
    ((X, W, (0, 1), "SAME"), {}, ValueError, CONV + "window_strides must have every element be strictly positive, got (0, 1)."),
    ((X, W, (1, 1), [(0, 0)]), {}, TypeError, "Wrong number of explicit pads for convolution: expected 2, got 1."),
    ((X, W, (1, 1), "VALID"), dict(lhs_dilation=(0, 1)), ValueError, "String padding is not implemented for transposed convolution using this op. "
     "Please either exactly specify the required padding or use conv_transpose."),
    ((X, W, (1, 1), "VALID"), dict(rhs_dilation=(0, 1)), TypeError, "All dilations must be positive, got (0, 1)."),
    ((X, W, (1, 1), "VALID"), dict(feature_group_count=0), ValueError, CONV + "feature_group_count must be a positive integer, got 0."),
    ((X, W, (1, 1), "VALID"), dict(batch_group_count=0), ValueError, CONV + "batch_group_count must be a positive integer, got 0."),
    ((X, W, (1, 1), "VALID"), dict(feature_group_count=3), ValueError, CONV + "feature_group_count must divide lhs feature dimension size, but 3 does not divide 2."),
    ((X, W[:, :1], (1, 1), "VALID"), dict(feature_group_count=2), ValueError,
     CONV + "rhs output feature dimension size must be a multiple of feature_group_count, but 3 is not a multiple of 2."),
    ((X, W, (1, 1), "VALID"), dict(batch_group_count=2), ValueError, CONV + "batch_group_count must divide lhs batch dimension size, but 2 does not divide 1."),
    ((X.repeat(2, 0), W, (1, 1), "VALID"), dict(batch_group_count=2), ValueError,
     CONV + "rhs output feature dimension size must be a multiple of batch_group_count, but 3 is not a multiple of 2."),
    ((X.repeat(2, 0).repeat(2, 1), W[[0, 0, 0, 0]], (1, 1), "VALID"), dict(batch_group_count=2, feature_group_count=2), ValueError,
     "At most one of batch_group_count and feature_group_count may be > 1, got batch_group_count=2 and feature_group_count=2"),
    ((X, W, (1, 1), "VALID"), dict(preferred_element_type="float16"), TypeError, "`preferred_element_type` must not be narrower than the original type."),
    ((X, W, (1, 1), "VALID"), dict(preferred_element_type="int32"), TypeError, "Input type is incompatible with `preferred_element_type`."),
    ((X.astype("int8"), W.astype("int8"), (1, 1), "VALID"), dict(preferred_element_type="uint32"), TypeError,
     "`preferred_element_type` must have the same signedness as the original type."),
    ((X, W, (1, 1), [(-4, -4), (0, -1)]), {}, ValueError, "Negative padding is larger than the size of the corresponding dimension: got padding=((-4, -4), (0, -1))"),
]  # fmt: skip


@pytest.mark.parametrize("case", UNFIT, ids=range(len(UNFIT)))
def test_mismatched_arguments_of_a_convolution_are_refused(case):
    args, options, kind, words = case
    with pytest.raises(kind) as e:
        lax.conv_general_dilated(*args, **options)
    assert words in str(e.value)


def equations(f, *args):
    return len(jax.make_jaxpr(f)(*args).eqns)


def steps(f, *args):
    return jax.jit(f).lower(*args).compile().as_text().count("\n")


def test_programs_of_long_windows_are_no_longer_than_those_of_short_ones():
    x = np.ones(9000, "f")
    full = lambda n: lambda x: jnp.convolve(x, jnp.ones(n))
    mean = lambda n: lambda x: lax.reduce_window(x, 0.0, lax.add, (1, n, n, 1), (1, 1, 1, 1), "VALID")
    best = lambda n: jax.grad(lambda x: lax.reduce_window(x, -inf, lax.max, (1, n, n, 1), (1, 1, 1, 1), "VALID").sum())
    image = np.ones((1, 60, 60, 1), "f")
    for make, v, small, large in [(full, x, 8, 4096), (mean, image, 7, 56), (best, image, 7, 56)]:
        assert equations(make(small), v) == equations(make(large), v) < 20
        assert steps(make(large), v) < 4 * steps(make(small), v) + 400
    np.testing.assert_allclose(full(4096)(x)[4095:9000], 4096)
    np.testing.assert_allclose(mean(56)(image), np.full((1, 5, 5, 1), 3136.0))


def test_derivatives_are_the_primitives_that_jax_has():
    x, w = np.ones((1, 1, 6, 6), "f"), np.ones((2, 1, 3, 3), "f")
    names = lambda f, *a: [e.primitive.name for e in jax.make_jaxpr(f)(*a).eqns]
    conv = lambda x, w: lax.conv_general_dilated(x, w, (2, 1), [(1, 1), (0, 2)], lhs_dilation=(1, 2))
    jaxpr = jax.make_jaxpr(jax.grad(lambda x, w: conv(x, w).sum(), (0, 1)))(x, w)
    found = {e.primitive.name: e.params for e in jaxpr.eqns if e.primitive.name == "conv_general_dilated"}
    assert set(found["conv_general_dilated"]) == {
        "batch_group_count", "dimension_numbers", "feature_group_count", "lhs_dilation", "out_sharding", "padding", "precision",
        "preferred_element_type", "rhs_dilation", "window_strides",
    }  # fmt: skip
    back = [e.params for e in jaxpr.eqns if e.primitive.name == "conv_general_dilated"][1:]
    ways = {(p["lhs_dilation"], p["rhs_dilation"], p["window_strides"], p["padding"]) for p in back}
    assert ways == {((1, 2), (2, 1), (1, 1), ((1, 0), (0, 2))), ((2, 1), (1, 1), (1, 2), ((1, 2), (2, 0)))}
    most = pool(lax.max, -inf, (2, 2), (1, 2), "SAME")
    assert names(jax.grad(lambda x: most(x).sum()), x[0, 0])[-1] == "select_and_scatter_add"
    assert names(lambda x, t: jax.jvp(most, (x,), (t,)), x[0, 0], x[0, 0]) == ["reduce_window_max", "select_and_gather_add"]
    total = pool(lax.add, 0.0, (2, 2), (1, 2), "SAME")
    assert names(jax.grad(lambda x: total(x).sum()), x[0, 0])[-2:] == ["pad", "reduce_window_sum"]
    assert names(lambda x: lax.reduce_window(x, 0.0, lambda a, b: a + b * 1.0, (2, 2), (1, 1), "SAME"), x[0, 0]) == ["reduce_window"]
    assert names(lambda x: lax.reduce(x, 0.0, lambda a, b: a + b * 1.0, (0,)), x[0, 0]) == ["reduce"]


def test_defaults_of_reduce_window(jnp, lax):
    assert lax.reduce_window(jnp.arange(4.0), 1.0, lax.mul, (2,)).tolist() == [0.0, 2.0, 6.0]
    assert lax.reduce_window(jnp.ones((2, 3)), 0.0, lax.add, window_dimensions=(2, 2)).tolist() == [[4.0, 4.0]]


@pytest.mark.parametrize("computation", ["add", "max", "mul"])
@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID"])
def test_named_padding_is_that_of_the_operand_without_its_holes(jnp, lax, padding, computation):
    start = {"add": 0.0, "max": -np.inf, "mul": 1.0}[computation]
    for size in range(1, 8):
        for window, stride, base, dilation in [(2, 2, 2, 1), (3, 1, 2, 2), (3, 2, 3, 1), (2, 3, 1, 2), (4, 2, 2, 1)]:
            x, words = jnp.arange(1.0, size + 1), dict(base_dilation=(base,), window_dilation=(dilation,))
            pads = lax.padtype_to_pads((size,), (dilation * (window - 1) + 1,), (stride,), padding)
            got = lax.reduce_window(x, start, getattr(lax, computation), (window,), (stride,), padding, **words)
            np.testing.assert_array_equal(got, lax.reduce_window(x, start, getattr(lax, computation), (window,), (stride,), pads, **words))


NUMBERS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64 complex64 complex128".split()
COMPATIBLE, SIGNEDNESS, NARROWER = "Input type is incompatible", "must have the same signedness", "must not be narrower"


def refused_preference(jnp, given, preferred):
    """Why products of a dtype are not summed as another, by the rule of JAX 0.10.2; None where they are."""
    is_a = lambda d, kind: jnp.issubdtype(jnp.dtype(d), kind)
    if not (is_a(given, jnp.integer) and is_a(preferred, jnp.floating)):
        if any(is_a(given, kind) and not is_a(preferred, kind) for kind in (jnp.integer, jnp.floating, jnp.complexfloating)):
            return COMPATIBLE
        if is_a(given, jnp.signedinteger) and not is_a(preferred, jnp.signedinteger):
            return SIGNEDNESS
    return NARROWER if jnp.dtype(preferred).itemsize < jnp.dtype(given).itemsize else None


@pytest.mark.parametrize("given", NUMBERS)
def test_what_convolutions_are_summed_as(jax, jnp, lax, given):
    """Every dtype as every other: refused for one reason, or the sums of products of numbers converted first; booleans are counted."""
    with jax.enable_x64(True):
        x, w = jnp.array([[[1, 0, 3, 250, 5]]]).astype(given), jnp.array([[[1, 2, 1]]]).astype(given)
        for preferred in NUMBERS:
            conv = lambda x, w, preferred=preferred: lax.conv_general_dilated(x, w, (1,), "VALID", preferred_element_type=preferred)
            if why := refused_preference(jnp, given, preferred):
                with pytest.raises(TypeError, match=why):
                    conv(x, w)
                continue
            first = np.bool_ if preferred == "bool" else jnp.dtype(preferred)
            a, b = np.asarray(x)[0, 0].astype(first), np.asarray(w)[0, 0].astype(first)
            wide = np.complex128 if "complex" in preferred else np.float64 if "float" in preferred else first
            want = np.correlate(a.astype(wide), b.astype(wide), "valid").astype(first)
            for f in (conv, jax.jit(conv)):
                got = f(x, w)
                assert got.dtype == preferred
                # a result of 16 bits is rounded once: nearest
                np.testing.assert_allclose(
                    np.asarray(got)[0, 0].astype(wide), want.astype(wide), rtol=2**-8 if preferred == "bfloat16" else 2**-10 if preferred == "float16" else 0
                )
            assert jax.vmap(conv)(x[None], w[None]).tolist() == got[None].tolist()


@pytest.mark.parametrize("given", NUMBERS)
def test_products_are_not_summed_as_booleans(jax, jnp, lax, given):
    """A boolean has one bit: narrower than every integer and complex number. Floats may be summed as anything."""
    with jax.enable_x64(True):
        x = jnp.ones(3, given)
        if given == "bool" or jnp.issubdtype(x.dtype, jnp.floating):
            assert lax.dot(x, x, preferred_element_type=bool).tolist() is True
        else:
            with pytest.raises(TypeError, match="must not be narrower than the original type, got preferred_element_type of bool"):
                lax.dot(x, x, preferred_element_type=bool)
