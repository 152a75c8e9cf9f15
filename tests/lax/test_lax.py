"""Control flow and the primitives that are compositions of others."""

import numpy as np
import pytest

r = np.random.default_rng(3)


def test_loops_agree_with_python(jax, jnp, lax):
    xs = r.standard_normal((5, 3)).astype(np.float32)
    step = lambda c, x: (c * 0.5 + x.sum(), {"before": c, "row": x})
    for reverse in (False, True):
        carry, rows = np.float32(1.0), []
        for x in xs[::-1] if reverse else xs:
            rows.append(carry)
            carry = carry * np.float32(0.5) + x.sum()
        got, ys = jax.jit(lambda xs: lax.scan(step, 1.0, xs, reverse=reverse))(xs)
        np.testing.assert_allclose(got, carry, rtol=1e-5)
        np.testing.assert_allclose(ys["before"], rows[::-1] if reverse else rows, rtol=1e-5)
        assert np.array_equal(ys["row"], xs)
    assert int(lax.fori_loop(2, 6, lambda i, x: x + i, 0)) == 14
    assert int(jax.jit(lambda n: lax.fori_loop(0, n, lambda i, x: x + i, 0))(5)) == 10
    n, v = lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1]), (0, jnp.ones(3)))
    assert int(n) == 4 and v.shape == (3,)


def test_loops_pass_through_unchanged_values(jax, jnp, lax):
    text = str(jax.make_jaxpr(lambda c, v, xs: lax.scan(lambda c, x: ((c[0] + x, c[1]), x), (c, v), xs))(1.0, np.ones(3), np.ones(4)))
    assert "num_carry=1" in text and "num_consts=1" in text


def test_map_in_batches(jnp, lax):
    xs = jnp.arange(7.0)
    for batch_size in (1, 3, 7):
        assert np.array_equal(lax.map(lambda x: x * 2, xs, batch_size=batch_size), np.arange(7) * 2)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_a_running_product(jnp, lax, n, reverse):
    x = r.uniform(0.5, 1.5, (n, 2)).astype(np.float32)
    want = np.cumprod(x[::-1], axis=0)[::-1] if reverse else np.cumprod(x, axis=0)
    np.testing.assert_allclose(lax.associative_scan(jnp.multiply, jnp.asarray(x), reverse=reverse), want, rtol=1e-5)


REFUSED = [
    (
        "lax.scan(lambda c, x: ((c, c), x), 0, xs)",
        TypeError,
        "scan body function carry input and carry output must have the same pytree structure, but they differ:",
    ),
    ("lax.scan(lambda c, x: (c + xs, x), 0.0, xs)", TypeError, "scan body function carry input and carry output must have equal types, but they differ:"),
    ("lax.scan(lambda c, x: c, 0, xs)", TypeError, "scan body output must be a pair, got"),
    ("lax.scan(lambda c, x: (c, x), 0, (xs, xs[:2]))", ValueError, "scan got values with different leading axis sizes: 3, 2."),
    ("lax.scan(lambda c, x: (c, x), 0, xs, length=4)", ValueError, "scan got `length` argument of 4 which disagrees with leading axis sizes [3]."),
    ("lax.while_loop(lambda c: c, lambda c: c, 1)", TypeError, "cond_fun must return a boolean scalar, but got output type(s)"),
    ("lax.while_loop(lambda c: (c, c), lambda c: c, 1)", TypeError, "cond_fun must return a boolean scalar, but got pytree PyTreeDef((*, *))."),
    ("lax.cond(True, lambda x: x, lambda x: (x, x), 1)", TypeError, "cond branch outputs must have the same pytree structure, but they differ:"),
    ("lax.cond(True, lambda x: x, lambda x: x * 1.5, 1)", TypeError, "cond branches must have equal output types but they differ."),
    ("lax.cond(xs > 0, lambda x: x, lambda x: x, 1)", TypeError, "Pred must be a scalar, got"),
    ("lax.switch(1.5, [lambda x: x, lambda x: x], 1)", TypeError, "Index type must be an integer, got 1.5 as float32"),
    ("lax.switch(0, [], 1)", ValueError, "Empty branch sequence"),
    ("lax.fori_loop(0, 3.0, lambda i, x: x, 1)", TypeError, "lower and upper arguments to fori_loop must have equal types, got int32 and float32"),
]


@pytest.mark.parametrize("expression, error, words", REFUSED)
def test_errors_say_what_is_wrong(jnp, lax, expression, error, words):
    with pytest.raises(error) as e:
        eval(expression, {"lax": lax, "xs": jnp.arange(3.0)})
    assert str(e.value).split("\n")[0].startswith(words)


def convolve(x, w, strides, pads, dilation):
    """Convolution by its definition, batch and features first."""
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    size = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], strides, dilation, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *size), np.float64)
    for i in np.ndindex(*size):
        for k in np.ndindex(*w.shape[2:]):
            at = tuple(a * s + b * d for a, s, b, d in zip(i, strides, k, dilation, strict=True))
            out[(..., *i)] += x[(..., *at)] @ w[(..., *k)].T
    return out


@pytest.mark.parametrize("strides, pads, dilation", [((1, 1), ((0, 0), (0, 0)), (1, 1)), ((2, 1), ((1, 2), (0, 1)), (1, 2))])
def test_convolution_by_its_definition(jax, lax, strides, pads, dilation):
    x, w = r.standard_normal((2, 3, 6, 7)).astype(np.float32), r.standard_normal((4, 3, 3, 2)).astype(np.float32)
    f = lambda x, w: lax.conv_general_dilated(x, w, strides, pads, rhs_dilation=dilation)
    want = convolve(x, w, strides, pads, dilation)
    np.testing.assert_allclose(f(x, w), want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(jax.vmap(f, in_axes=(0, None))(x[:, None], w)[:, 0], want, rtol=1e-4, atol=1e-4)
    g = lax.conv_general_dilated(x, w[:, :1].repeat(3, 0)[:6], strides, pads, rhs_dilation=dilation, feature_group_count=3)
    for c in range(3):
        part = convolve(x[:, c : c + 1], w[:, :1].repeat(3, 0)[2 * c : 2 * c + 2], strides, pads, dilation)
        np.testing.assert_allclose(g[:, 2 * c : 2 * c + 2], part, rtol=1e-4, atol=1e-4)
    jax.test_util.check_grads(f, (x, w), order=1, atol=5e-2, rtol=5e-2)


def test_pooling(jax, jnp, lax):
    x = r.standard_normal((4, 6)).astype(np.float32)
    blocks = x.reshape(2, 2, 3, 2)
    np.testing.assert_allclose(lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID"), blocks.max((1, 3)))
    np.testing.assert_allclose(lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2), "SAME"), blocks.sum((1, 3)), rtol=1e-5)
    got = jax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID").sum())(x)
    assert np.array_equal(np.asarray(got).reshape(2, 2, 3, 2) == 1, blocks == blocks.max((1, 3), keepdims=True))


def test_the_largest_elements(jax, jnp, lax):
    x = r.permutation(20).reshape(4, 5).astype(np.float32)
    values, index = jax.jit(lambda x: lax.top_k(x, 3))(x)
    assert np.array_equal(values, -np.sort(-x, axis=1)[:, :3]) and np.array_equal(index, np.argsort(-x, axis=1)[:, :3])
    assert np.asarray(lax.top_k(jnp.array([1.0, 2.0, 2.0, 2.0]), 2)[1]).tolist() == [1, 2]
    assert np.array_equal(jax.vmap(lambda x: lax.top_k(x, 3)[0])(x), values)


def test_reduction_by_any_computation(jax, jnp, lax):
    x = r.standard_normal((3, 7)).astype(np.float32)
    got = lax.reduce(jnp.asarray(x), np.float32(-np.inf), lambda a, b: jnp.maximum(a, b), (1,))
    assert np.array_equal(got, x.max(1))
    low, high = lax.reduce(
        (jnp.asarray(x), jnp.asarray(x)), (np.float32(np.inf), np.float32(-np.inf)), lambda a, b: (jnp.minimum(a[0], b[0]), jnp.maximum(a[1], b[1])), (0,)
    )
    assert np.array_equal(low, x.min(0)) and np.array_equal(high, x.max(0))


def test_segments(jax, jnp):
    data, ids = r.standard_normal((6, 2)).astype(np.float32), np.array([0, 2, 0, 5, 2, 1])
    want = np.zeros((4, 2), np.float32)
    np.add.at(want, ids[ids < 4], data[ids < 4])
    np.testing.assert_allclose(jax.ops.segment_sum(jnp.asarray(data), jnp.asarray(ids), 4), want, rtol=1e-5)
    assert np.asarray(jax.ops.segment_max(jnp.asarray(data), jnp.asarray(ids), 4))[3].tolist() == [-np.inf, -np.inf]


def test_primitives_by_name(jax, lax):
    eqn = jax.make_jaxpr(lax.sin)(1.0).eqns[0]
    assert eqn.primitive == lax.sin_p and str(lax.scatter_add_p) == "scatter-add"
    assert not hasattr(lax, "no_such_p")


def test_ragged_dot_keeps_groups_apart(jax, jnp):
    lhs = np.array([[np.inf, 2.0], [3.0, 4.0], [np.nan, 1.0]], np.float32)
    rhs = np.array([[[1.0], [1.0]], [[2.0], [1.0]]], np.float32)
    out = jax.lax.ragged_dot(jnp.asarray(lhs), jnp.asarray(rhs), jnp.array([1, 2]))
    np.testing.assert_array_equal(out, [[np.inf], [10.0], [np.nan]])


GROUPED = {
    "rows": ((3, 2), (2, 2, 2), [1, 2], (((1,), (1,)), ((), ())), 0, [0]),
    "rows left over": ((4, 2), (2, 2, 2), [1, 2], (((1,), (1,)), ((), ())), 0, [0]),
    "groups last": ((3, 2), (2, 2, 2), [2, 1], (((1,), (0,)), ((), ())), 0, [2]),
    "sizes for each outer row": ((2, 3, 2), (2, 2, 2), [[1, 2], [2, 1]], (((2,), (1,)), ((), ())), 1, [0]),
    "sizes for each batch": ((3, 2, 2), (2, 2, 2, 2), [[1, 2], [0, 3]], (((2,), (2,)), ((1,), (0,))), 0, [1]),
    "contracted": ((2, 4), (4, 3), [1, 3], (((1,), (0,)), ((), ())), 1, []),
    "contracted, left over": ((4, 2), (4, 3), [1, 2], (((0,), (0,)), ((), ())), 0, []),
    "contracted in batches": ((2, 2, 3), (2, 3, 3), [[1, 2], [2, 0]], (((2,), (1,)), ((0,), (0,))), 2, []),
    "one of two contracted": ((2, 3, 2), (2, 3, 2), [[1, 2], [2, 1]], (((0, 1), (0, 1)), ((), ())), 1, []),
    "batch": ((3, 2, 2), (3, 2, 2), [1, 1], (((2,), (1,)), ((0,), (0,))), 0, []),
}


def grouped_product(x, w, sizes, numbers, axis, groups):
    """ragged_dot_general by its definition: a masked product for each group."""
    (lc, rc), (lb, rb) = numbers
    letters = "abcdefgh"
    left = list(letters[: x.ndim])
    right = list("tuvwxyz"[: w.ndim])
    for i, j in (*zip(lc, rc, strict=True), *zip(lb, rb, strict=True)):
        right[j] = left[i]
    free = [c for i, c in enumerate(left) if i not in (*lc, *lb)] + [c for j, c in enumerate(right) if j not in (*rc, *rb, *groups)]
    out = [left[i] for i in lb] + free
    if axis in lb:
        return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, w)
    parts = []
    for g in range(np.shape(sizes)[-1]):
        masked = np.zeros_like(x)
        for index in np.ndindex(*x.shape):
            outer = lb if axis in lb else (*lb, *[d for d in (lc if axis in lc else [d for d in range(x.ndim) if d not in (*lc, *lb)]) if d < axis])
            own = np.asarray(sizes)[tuple(index[d] for d in outer)] if np.ndim(sizes) > 1 else np.asarray(sizes)
            if own[:g].sum() <= index[axis] < own[: g + 1].sum():
                masked[index] = x[index]
        ours = np.take(w, g, groups[0]) if groups else w
        names = [c for j, c in enumerate(right) if j not in groups]
        parts.append(np.einsum(f"{''.join(left)},{''.join(names)}->{''.join(out)}", masked, ours))
    return np.sum(parts, 0) if groups else np.stack(parts)


@pytest.mark.parametrize("name", GROUPED)
def test_products_of_rows_in_groups(jax, jnp, lax, name):
    left, right, sizes, numbers, axis, groups = GROUPED[name]
    x, w = r.integers(-4, 5, left).astype(np.float32), r.integers(-4, 5, right).astype(np.float32)
    f = lambda x, w: lax.ragged_dot_general(x, w, jnp.array(sizes), lax.RaggedDotDimensionNumbers(numbers, [axis], groups))
    want = grouped_product(x, w, sizes, numbers, axis, groups)
    assert np.array_equal(f(x, w), want) and np.array_equal(jax.jit(f)(x, w), want)
    dx, dw = jax.grad(lambda x, w: (f(x, w) * want).sum(), (0, 1))(x, w)
    assert np.isclose((dx * x).sum(), (want**2).sum()) and np.isclose((dw * w).sum(), (want**2).sum())


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_upper_half_of_a_product(jax, jnp, lax, x64, dtype):
    info = np.iinfo(dtype)
    half = 2 ** (info.bits // 2)
    values = [
        v for v in (info.min, info.min + 1, -half - 1, -half, -3, -1, 0, 1, 2, half - 1, half, half + 3, info.max // 3, info.max) if info.min <= v <= info.max
    ]
    x, y = (v.ravel() for v in np.meshgrid(np.array(values, dtype), np.array(values, dtype)))
    want = [int(a) * int(b) >> info.bits for a, b in zip(x, y, strict=True)]
    assert np.asarray(lax.mulhi(jnp.asarray(x), jnp.asarray(y))).tolist() == want
    assert np.asarray(jax.jit(lax.mulhi)(x, y)).tolist() == want
    assert jax.make_jaxpr(lax.mulhi)(x, y).eqns[0].primitive.name == "mulhi"
    assert lax.mulhi(3, 4).weak_type and jax.jit(lax.mulhi)(3, 4).weak_type and not lax.mulhi(3, jnp.ones(2, int)).weak_type


@pytest.mark.parametrize("x, y, words", [
    ([1.0], [1.0], "mulhi does not accept dtype float32 at position 0. Accepted dtypes at position 0 are subtypes of integer."),
    ([1], np.array([1], np.int8), "lax.mulhi requires arguments to have the same dtypes, got int32, int8."),
    ([1, 2, 3], [1, 2], "mulhi got incompatible shapes for broadcasting: (3,), (2,)."),
])  # fmt: skip
def test_upper_half_of_a_product_refused(jax, jnp, lax, x, y, words):
    for f in (lax.mulhi, jax.jit(lax.mulhi)):
        with pytest.raises(TypeError) as e:
            f(jnp.asarray(x), jnp.asarray(y))
        assert str(e.value).startswith(words)


@pytest.mark.ours
@pytest.mark.parametrize("name", GROUPED)
def test_values_outside_of_a_group_have_no_effect(jax, jnp, lax, name):
    """A NaN anywhere in an operand changes the results that by definition depend on it, and no others. JAX masks one side."""
    left, right, sizes, numbers, axis, groups = GROUPED[name]
    x, w = r.integers(1, 5, left).astype(np.float32), r.integers(1, 5, right).astype(np.float32)
    f = lambda x, w: lax.ragged_dot_general(x, w, jnp.array(sizes), lax.RaggedDotDimensionNumbers(numbers, [axis], groups))
    y, back = jax.vjp(f, x, w)
    ones = np.ones_like(y)
    for k, operand in enumerate((x, w)):
        for index in list(np.ndindex(*operand.shape))[:: max(1, operand.size // 7)]:
            # what changes where the element does is what depends on it
            other = operand.copy()
            other[index] += 1
            enters = np.asarray(f(*((other, w) if k == 0 else (x, other)))) != np.asarray(y)
            for value in (np.inf, np.nan):
                other[index] = value
                args = (other, w) if k == 0 else (x, other)
                got = np.asarray(f(*args))
                assert np.array_equal(~np.isfinite(got), enters)
                # its own derivative reads the other operand only
                assert np.array_equal(jax.vjp(f, *args)[1](ones)[k], back(ones)[k])


@pytest.mark.parametrize("left, right, sizes, numbers, ragged, groups, words", [
    ((3, 2), (2, 2, 2), [1, 1], (((1,), (1,)), ((), ())), [0, 1], [0], "ragged_dot_general expects exactly one lhs ragged dimension."),
    ((3, 2), (2, 2), [1, 1], (((1,), (0,)), ((), ())), [0], [], "ragged_dot_general requires exactly one rhs group dimension when lhs ragged dimension is noncontracting."),
    ((3, 2), (3, 2), [1, 1], (((0,), (0,)), ((), ())), [0], [0], "ragged_dot_general requires zero group dimensions in the rhs when lhs ragged dimension is contracting or batch."),
    ((3, 2), (2, 2, 2), [1, 1, 1], (((1,), (1,)), ((), ())), [0], [0], "expected rhs group dimension size to be 3, got 2."),
    ((3, 2), (2, 2, 2), [[1, 1]], (((1,), (1,)), ((), ())), [0], [0], "expected group_sizes to have shape (2,), got (1, 2)."),
    ((3, 2), (2, 2, 2), [1.0, 1.0], (((1,), (1,)), ((), ())), [0], [0], "ragged_dot_general requires that group_sizes.dtype is subtype of np.integer."),
])  # fmt: skip
def test_products_of_rows_in_groups_refused(jnp, lax, left, right, sizes, numbers, ragged, groups, words):
    with pytest.raises(TypeError) as e:
        lax.ragged_dot_general(jnp.ones(left), jnp.ones(right), jnp.array(sizes), lax.RaggedDotDimensionNumbers(numbers, ragged, groups))
    assert str(e.value).startswith(words)


def test_top_k_follows_the_total_order(lax):
    values, index = lax.top_k(np.float32([-0.0, 0.0, 1, 0.0, -0.0]), 5)
    assert np.asarray(index).tolist() == [2, 1, 3, 0, 4]
    assert np.signbit(values).tolist() == [False, False, False, True, True]
    _, index = lax.top_k(np.float32([1, np.nan, -np.inf, -np.nan, np.inf, np.nan]), 6)
    assert np.asarray(index).tolist() == [1, 5, 4, 0, 2, 3]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, np.int8])
@pytest.mark.parametrize("shape, axis, k", [((3, 5000), 1, 7), ((700, 3), 0, 300), ((2, 40, 3), 1, 40), ((1, 3000), 1, 1), ((4, 0), 1, 0)])
def test_top_k_is_the_beginning_of_a_stable_sort(jax, lax, dtype, shape, axis, k):
    r = np.random.default_rng(0)
    # values that repeat, in rows that rise
    x = (r.integers(0, 50, shape) + np.linspace(0, 60, shape[axis]).astype(int).reshape([-1 if a == axis else 1 for a in range(len(shape))])).astype(dtype)
    order = np.argsort(-x.astype(np.int64), axis=axis, kind="stable").take(range(k), axis)
    operand = np.moveaxis(x, axis, -1)
    values, index = (np.moveaxis(np.asarray(y), -1, axis) for y in jax.jit(lambda x: lax.top_k(x, k))(operand))
    assert (index == order).all() and (values == np.take_along_axis(x, order, axis)).all() and values.dtype == dtype
    along = lax.top_k(x, k, axis=axis)
    assert (np.asarray(along[1]) == order).all()


def test_powers_of_integers_read_six_bits_of_the_exponent(jnp):
    x = np.array([-1, 0, 1, 3], np.int32)
    assert np.asarray(jnp.power(x, np.full(4, 65, np.int32))).tolist() == [-1, 0, 1, 3]
    assert np.asarray(jnp.power(x, x * 0 + 31)).tolist() == (x.astype(object) ** 31 % 2**32).astype(np.uint32).astype(np.int32).tolist()


def test_compositions_take_128_bit_complex_numbers(jnp, lax, x64):
    x = np.arange(4.0).reshape(2, 2) * (1 + 2j)
    want = np.array([[x.sum(), x[0, 1] + x[1, 1]], [x[1].sum(), x[1, 1]]])
    np.testing.assert_allclose(lax.reduce_window(jnp.asarray(x), 0j, lax.add, (2, 2), (1, 1), "SAME"), want)
    np.testing.assert_allclose(lax.conv(jnp.asarray(x)[None, None], jnp.asarray(x)[None, None], (1, 1), "VALID")[0, 0, 0, 0], (x * x).sum())
    rows = lax.ragged_dot(jnp.asarray(x), jnp.stack([x, 2 * x]), jnp.array([1, 1]))
    np.testing.assert_allclose(rows, np.stack([x[0] @ x, x[1] @ (2 * x)]))


def test_products_of_unlike_dtypes(jax, jnp, lax, close):
    x, z = np.float32([[1, 2], [3, 4]]), np.complex64([[1 + 2j, 0], [3j, 1 - 1j]])
    close(lax.dot(x, z), x @ z)
    assert lax.dot(x, z).dtype == np.complex64 and lax.dot(np.int8(x), np.uint8(x)).dtype == np.int8
    product = lax.dot(x, x, preferred_element_type=np.complex64)
    assert product.dtype == np.complex64
    close(product, x @ x)
    product = lax.dot(z, z, preferred_element_type=np.float32)
    assert product.dtype == np.float32
    close(product, (z @ z).real)
    with pytest.raises(TypeError, match="`preferred_element_type` must not be narrower than the original type, got preferred_element_type of int8"):
        lax.dot(np.int32(x), np.int32(x), preferred_element_type=np.int8)
    # A real operand takes the real part of the whole product.
    _, pull = jax.vjp(lambda x: lax.dot(x, z), x)
    close(pull(jnp.asarray(z))[0], (z @ z.T).real)


@pytest.mark.parametrize("staged", [False, True])
def test_compositions_refuse_the_same_operands_on_the_spot_and_in_programs(jax, jnp, lax, staged):
    call = jax.jit if staged else lambda f: f
    with pytest.raises(ValueError, match="top_k is not compatible with complex inputs"):
        call(lambda x: lax.top_k(x, 1))(np.complex64([1j, 2]))
    with pytest.raises(TypeError, match="operand to reduce_window_sum must have a number dtype, got bool"):
        call(lambda x: lax.reduce_window(x, False, lax.add, (2,), (1,), "VALID"))(np.array([True, False]))
    with pytest.raises(TypeError, match="mulhi does not accept dtype float32 at position 0"):
        call(lax.mulhi)(jnp.ones(2), jnp.ones(2))


@pytest.mark.parametrize("spec", ["bqhd,bkhd->bhqk", "bkhd,bqhd->bhqk", "bhqk,bkhd->bqhd", "bqgd,bkgd->bgqk", "mk,kn->nm", "bmk,bkn->nbm"])
def test_products_are_made_in_the_order_that_is_wanted(jax, jnp, spec):
    sizes = {"b": 1, "q": 40, "k": 36, "h": 3, "d": 33, "g": 1, "m": 35, "n": 48}
    names = spec.split("->")[0].split(",")
    shapes = [[sizes[n] for n in axes] for axes in names]
    x, y = (jnp.sin(jnp.arange(np.prod(s), dtype=jnp.float32)).reshape(s) for s in shapes)
    contract = lambda x, y: jnp.einsum(spec, x, y)
    compiled = jax.jit(contract).lower(x, y).compile()
    np.testing.assert_array_equal(compiled(x, y), contract(x, y))
    want = np.einsum(spec, np.asarray(x, np.float64), np.asarray(y, np.float64))
    np.testing.assert_allclose(compiled(x, y), want, rtol=1e-4, atol=1e-4)
    if spec in ("bqgd,bkgd->bgqk", "mk,kn->nm"):
        assert "kernel" not in compiled.as_text()


def test_a_sum_of_one_element_is_that_element(jax, jnp):
    """As XLA has it: nothing is added, so that a zero keeps its sign, and no kernel is begun."""
    x = jnp.array([[-0.0], [1.0], [-jnp.inf]])
    for f in (jnp.sum, jnp.max, jnp.min, jnp.prod):
        for g in (lambda x, f=f: f(x, axis=1), jax.jit(lambda x, f=f: f(x, axis=1)), jax.vmap(f)):
            assert np.asarray(g(x)).tobytes() == np.asarray(x)[:, 0].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
@pytest.mark.parametrize("preset", [None, "highest", "bfloat16", "BF16_BF16_F32_X6", "F32_F32_F32", "F64_F64_F64"])
def test_products_are_at_least_as_precise_as_their_algorithm(jax, dtype, preset):
    """Each sum of 1000 products beside that of absolute values: rounded once from double precision, or with the roundings of single precision."""
    rng = np.random.default_rng(7)
    x, y = (rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in ((5, 1000), (1000, 4)))
    x, y = (a.astype(dtype) if dtype == "complex64" else a.real.astype(dtype) for a in (x, y))
    wide = np.result_type(dtype, np.float64)
    size = np.abs(x).astype(float) @ np.abs(y).astype(float)
    out = np.result_type(dtype, np.float32)
    bound = 2.0**-24 if preset == "F64_F64_F64" else 2.0**-21

    def product(x, y):
        return jax.lax.dot(x, y, precision=preset, preferred_element_type=out)

    got = np.asarray(jax.jit(product)(x, y))
    assert got.dtype == out
    assert np.all(np.abs(got - x.astype(wide) @ y.astype(wide)) <= bound * size)
    if preset is not None:
        with jax.default_matmul_precision(preset):
            np.testing.assert_array_equal(jax.jit(lambda x, y: jax.lax.dot(x, y, preferred_element_type=out))(x, y), got)
