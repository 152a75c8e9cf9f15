"""Reductions and cumulative functions against numpy in float64, over every choice of axes; eager and jit give the same bits."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import INTS, arrays, same, same_bits, shapes, with_axes, with_axis

FLOAT = ["sum", "prod", "mean", "var", "std", "max", "min", "ptp"]


def wide(x):
    return x.astype(np.float64)


@pytest.mark.parametrize("name", FLOAT)
@given(data=st.data())
def test_float(jax, jnp, name, data):
    elements = st.floats(-3, 3, width=32, allow_subnormal=False) if name == "prod" else None
    x, axes = data.draw(with_axes(arrays(np.float32, shapes(min_side=1), elements)))
    keep = data.draw(st.booleans())
    f = lambda x: getattr(jnp, name)(x, axis=axes, keepdims=keep)
    got = f(jnp.asarray(x))
    want = getattr(np, name)(wide(x), axis=axes, keepdims=keep)
    assert got.shape == want.shape and got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5 * max(1.0, float(np.max(np.abs(x))) ** 2))
    same_bits(jax.jit(f)(x), got)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@given(data=st.data())
def test_integer(jnp, name, data):
    dtype = data.draw(st.sampled_from(INTS))
    x, axes = data.draw(with_axes(arrays(dtype, shapes(min_side=1))))
    got = np.asarray(getattr(jnp, name)(x, axis=axes))
    with np.errstate(all="ignore"):
        same(got, getattr(np, name)(x, axis=axes).astype(got.dtype))


@given(data=st.data())
def test_means_in_an_integer_dtype_are_truncated(jnp, data):
    dtype, into = (data.draw(st.sampled_from(INTS)) for _ in range(2))
    x, axes = data.draw(with_axes(arrays(dtype, shapes(min_side=1, max_side=3), st.integers(0, 3))))
    got = jnp.mean(x, axis=axes, dtype=into)
    n = x.size // max(1, got.size)
    assert got.dtype == into
    same(got, (x.sum(axis=axes, dtype=into) // np.array(n, into)).astype(into))


@pytest.mark.parametrize("name", ["var", "nanvar"])
@given(data=st.data())
def test_variances_in_an_integer_dtype_are_computed_in_it(jnp, name, data):
    dtype, into = data.draw(st.sampled_from([*INTS, "bool", "float32"])), np.dtype(data.draw(st.sampled_from(INTS)))
    x, axes = data.draw(with_axes(arrays(dtype, shapes(min_side=1, max_side=3), st.integers(0, 1 if dtype == "bool" else 9))))
    ddof = data.draw(st.integers(0, 2))
    a = x.astype(into)
    n = x.size // max(1, np.sum(a, axis=axes).size)
    middle = (a.sum(axis=axes, dtype=into, keepdims=True) / n).astype(into)
    squares = np.square(a - middle)
    got = getattr(jnp, name)(x, axis=axes, dtype=into.name, ddof=ddof)
    if name == "var":
        total, left = squares.sum(axis=axes, dtype=into), int(np.array(n - ddof).astype(into))
        want = np.trunc(total.astype(float) / left) if left > 0 else np.full(total.shape, np.nan)
    else:  # the sum and the quotient are not in the dtype that the result has
        want = (squares.sum(axis=axes).astype(np.float32) / np.float32(max(n - ddof, 1))).astype(into)
    assert got.dtype == (np.float32 if name == "var" else into)
    if name == "var" or n > ddof:
        same(got, want.astype(got.dtype))


@pytest.mark.parametrize("name", ["var", "nanvar"])
def test_variances_in_bool_are_refused(jnp, name):
    with pytest.raises(TypeError):
        getattr(jnp, name)(np.arange(4), dtype=bool)


UFUNCS = "add subtract multiply maximum minimum bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor logaddexp logaddexp2".split()


@pytest.mark.ours
@pytest.mark.parametrize("name", UFUNCS)
@given(data=st.data())
def test_ufuncs_are_folded_from_the_start_over_what_is_included(jnp, name, data):
    """An element that is left out changes nothing, whatever the function and `initial` are."""
    dtype = "float32" if name.startswith("logaddexp") else data.draw(st.sampled_from(["int32", "uint8", "int8"]))
    numbers = st.integers(0, 9).map(float) if dtype == "float32" else st.integers(0, 9)
    x, axis = data.draw(with_axes(arrays(dtype, shapes(min_dims=1, max_side=3), numbers)))
    if name == "subtract" and not isinstance(axis, int):
        axis = 0  # NumPy has no order for several
    where = data.draw(arrays(bool, st.sampled_from([x.shape, x.shape[-1:], ()]))) if data.draw(st.booleans()) else None
    fun = getattr(np, name)
    needed = fun.identity is None and (where is not None or x.size == 0)
    initial = data.draw(st.integers(0, 3) if needed else st.none() | st.integers(0, 3))
    words = {"axis": axis, "keepdims": data.draw(st.booleans())}
    words |= ({} if where is None else {"where": where}) | ({} if initial is None else {"initial": initial})
    got, want = getattr(jnp, name).reduce(x, **words), np.asarray(fun.reduce(x, **words))
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want.astype(got.dtype), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("identity", [None, 0, 7])
@pytest.mark.parametrize("initial", [None, 5])
@pytest.mark.parametrize("where", [None, [True, False, True], [False, False, False]])
def test_users_functions_are_folded_from_their_identity(jnp, identity, initial, where):
    digits = jnp.frompyfunc(lambda a, b: a * 10 + b, 2, 1, identity=identity)
    x = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    start = identity if initial is None else initial
    if start is None and where is not None:
        return
    words = {} if where is None else {"where": np.array(where)}
    rows = [[v for k, v in enumerate(row) if where is None or where[k]] for row in x.tolist()]
    want = [int("".join(map(str, ([] if start is None else [start]) + row))) for row in rows]
    got = digits.reduce(x, axis=1, initial=initial, **words)
    assert got.dtype == np.int32 and got.tolist() == want


@pytest.mark.ours
@pytest.mark.parametrize("name", ["maximum", "minimum", "add", "multiply", "bitwise_or"])
def test_ufuncs_are_folded_in_the_dtype_that_is_given(jnp, name):
    x = np.array([[1, 2, 250], [4, 3, 5]], "uint8")
    for dtype in ("int32", "uint8", "int16"):
        got = getattr(jnp, name).reduce(x, axis=1, dtype=dtype)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, getattr(np, name).reduce(x, axis=1, dtype=dtype))


@pytest.mark.parametrize("name", ["any", "all", "argmax", "argmin", "count_nonzero"])
@given(data=st.data())
def test_places_and_truth(jnp, name, data):
    x, axis = data.draw(with_axis(arrays(np.int8, shapes(min_dims=1, min_side=1))))
    want = getattr(np, name)(x, axis=axis)
    same(getattr(jnp, name)(x, axis=axis), want if want.dtype == bool else np.asarray(want, np.int32))


def test_empty(jnp):
    assert float(jnp.sum(jnp.zeros(0))) == 0 and float(jnp.prod(jnp.zeros(0))) == 1 and not bool(jnp.any(jnp.zeros(0)))
    assert jnp.sum(jnp.zeros((3, 0)), axis=1).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="zero-size array"):
        jnp.max(jnp.zeros(0))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_nan_spreads(jnp, name):
    assert np.isnan(float(getattr(jnp, name)(jnp.array([1.0, jnp.nan, 2.0]))))


@given(data=st.data())
def test_where_and_initial(jnp, data):
    x = data.draw(arrays(np.float32, (3, 4)))
    mask = data.draw(arrays(bool, (3, 4)))
    np.testing.assert_allclose(jnp.sum(x, axis=0, where=mask), np.sum(wide(x), axis=0, where=mask), rtol=1e-5, atol=1e-4)
    same(jnp.max(x, axis=1, where=mask, initial=-1e9), np.max(x, axis=1, where=mask, initial=np.float32(-1e9)))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@given(data=st.data())
def test_cumulative(jax, jnp, name, data):
    x, axis = data.draw(with_axis(arrays(np.float32, shapes(min_dims=1, min_side=1, max_side=7), elements=st.floats(-2, 2, width=32, allow_subnormal=False))))
    f = lambda x: getattr(jnp, name)(x, axis=axis)
    np.testing.assert_allclose(f(x), getattr(np, name)(wide(x), axis=axis), rtol=1e-4, atol=1e-5)
    same_bits(jax.jit(f)(x), f(x))


@given(data=st.data())
def test_running_extremes(lax, data):
    x, axis = data.draw(with_axis(arrays(np.float32, shapes(min_dims=1, min_side=1, max_side=7))))
    axis %= x.ndim
    same(lax.cummax(x, axis), np.maximum.accumulate(x, axis))
    same(lax.cummin(x, axis, reverse=True), np.flip(np.minimum.accumulate(np.flip(x, axis), axis), axis))


@pytest.mark.parametrize("n", [1, 7, 8, 63, 64, 65, 1000, 4097, 100_003])
def test_long_sums_are_accurate_and_the_same_bits_under_jit(jax, jnp, n):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    exact = wide(x).sum()
    assert abs(float(jnp.sum(x)) - exact) <= 4e-7 * np.abs(x).sum()
    same_bits(jax.jit(jnp.sum)(x), jnp.sum(x))


@pytest.mark.parametrize("q", [0.0, 0.25, 0.5, 1.0])
def test_order_statistics(jnp, q):
    x = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    np.testing.assert_allclose(jnp.quantile(x, q, axis=1), np.quantile(x, q, axis=1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jnp.median(x), np.median(x), rtol=1e-6)


@given(data=st.data())
def test_products_of_matrices(jax, jnp, data):
    m, k, n, b = (data.draw(st.integers(0, 5)) for _ in range(4))
    x, y = data.draw(arrays(np.float32, (b, m, k))), data.draw(arrays(np.float32, (k, n)))
    want = wide(x) @ wide(y)
    got = jnp.matmul(x, y)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-2)
    same_bits(jax.jit(jnp.matmul)(x, y), got)


@pytest.mark.parametrize(
    "spec, shapes",
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ij,ij->", [(2, 3)] * 2),
        ("i,j->ij", [(2,), (3,)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("...i,i", [(2, 3, 4), (4,)]),
        ("ijk,jl,kl->i", [(2, 3, 4), (3, 5), (4, 5)]),
    ],
)
def test_einsum(jnp, spec, shapes):
    rng = np.random.default_rng(0)
    operands = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    np.testing.assert_allclose(jnp.einsum(spec, *operands), np.einsum(spec, *operands), rtol=1e-5, atol=1e-5)


def test_integer_products(jnp):
    x, y = np.arange(6, dtype=np.int32).reshape(2, 3), np.arange(12, dtype=np.int32).reshape(3, 4)
    same(jnp.asarray(x) @ y, x @ y)
    same(jnp.dot(x, y), np.dot(x, y))
    same(jnp.tensordot(x, y, 1), np.tensordot(x, y, 1))
    same(jnp.outer(x[0], y[0]), np.outer(x[0], y[0]))
    same(jnp.vdot(x[0], x[1]), np.vdot(x[0], x[1]))
    same(jnp.inner(x, x), np.inner(x, x))


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "var", "std", "ptp", "count_nonzero", "nansum", "nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize("axis", ["i", ("i",), ("i", 0), (0, "i")])
def test_mapped_axes_are_reduced_by_name(jax, jnp, name, axis):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    f = lambda a: getattr(jnp, name)(a, axis=axis)
    want = getattr(np, name)(x, axis=0 if axis in ("i", ("i",)) else None)
    for g in (f, jax.jit(f)):
        got = jax.vmap(g, axis_name="i")(x)
        np.testing.assert_allclose(got, np.broadcast_to(want, got.shape), rtol=1e-6)
    if name != "count_nonzero":
        slope = jax.vmap(lambda a: jax.jvp(f, (a,), (jnp.ones_like(a),))[1], axis_name="i")(x)
        assert np.isfinite(slope).all()


def test_mapped_axes_with_where_initial_and_keepdims(jax, jnp):
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    run = lambda f: np.asarray(jax.vmap(f, axis_name="i")(x)).tolist()
    assert run(lambda a: jnp.sum(a, axis=("i", 0), where=a > 1)) == [5, 5]
    assert run(lambda a: jnp.max(a, axis=("i", 0), where=a > 1, initial=0.0)) == [3, 3]
    assert run(lambda a: jnp.mean(a, axis=("i", 0), where=a > 1)) == [2.5, 2.5]
    assert run(lambda a: jnp.sum(a, axis=("i", 0), initial=3.0, keepdims=True)) == [[9], [9]]
    assert jax.vmap(lambda a: jnp.sum(a, axis="i"), axis_name="i")(np.ones((2, 2), np.int8)).dtype == np.int32


@pytest.mark.parametrize("name, axis, error, words", [
    ("prod", ("i", 0), NotImplementedError, "Named reductions not implemented for jnp.prod()"),
    ("all", "i", NotImplementedError, "Named reductions not implemented for jnp.all()"),
    ("nanmax", "i", NotImplementedError, "Named reductions not implemented for jnp.all()"),
    ("sum", ("q",), NameError, "Found an unbound axis name: q. To fix this, please call psum under `jax.shard_map`."),
    ("var", "q", NameError, "unbound axis name: q"),
    ("mean", ("i", "i"), ValueError, "duplicate value in 'axis': ('i', 'i')"),
])  # fmt: skip
def test_mapped_axes_refused(jax, jnp, name, axis, error, words):
    with pytest.raises(error) as e:
        jax.vmap(lambda a: getattr(jnp, name)(a, axis=axis), axis_name="i")(np.ones((2, 2), np.float32))
    assert str(e.value).startswith(words)


@pytest.mark.parametrize("reverse", [False, True])
def test_running_logsumexp_of_complex_numbers(jax, lax, reverse):
    z = np.array([[1 + 2j, 0.3 - 0.1j, -1 + 0.5j], [3j, 3j, 100 - 3j], [-np.inf, -np.inf, 5j]], np.complex64)
    got = lax.cumlogsumexp(z, axis=1, reverse=reverse)
    flip = (lambda a: a[:, ::-1]) if reverse else (lambda a: a)
    with np.errstate(divide="ignore"):
        want = flip(np.log(np.cumsum(flip(np.exp(z.astype(complex) - [[0], [100], [0]])), axis=1))) + [[0], [100], [0]]
    np.testing.assert_allclose(np.where(np.isinf(got), 0, got), np.where(np.isinf(want), 0, want), rtol=1e-5, atol=1e-6)
    assert np.array_equal(np.isneginf(np.real(got)), np.isneginf(want.real))
    same_bits(jax.vmap(lambda r: lax.cumlogsumexp(r, reverse=reverse))(z), got)


def test_slope_of_a_running_logsumexp_of_complex_numbers(jax, lax):
    z = np.array([1 + 2j, 0.3 - 0.1j, -1 + 0.5j], np.complex64)
    slope = jax.grad(lambda z: lax.cumlogsumexp(z).sum().real)(z)
    np.testing.assert_allclose(slope, [2.8547423 + 1.2059953j, 0.0519761 - 1.0973904j, 0.09328157 - 0.10860537j], rtol=1e-5)


SHORT = {
    "sum": lambda jnp, x, axis: x.sum(axis),
    "prod": lambda jnp, x, axis: x.prod(axis),
    "max": lambda jnp, x, axis: x.max(axis),
    "min": lambda jnp, x, axis: x.min(axis),
    "any": lambda jnp, x, axis: (x > 0).any(axis),
    "argmax": lambda jnp, x, axis: x.argmax(axis),
    "var": lambda jnp, x, axis: x.var(axis),
    "logsumexp": lambda jnp, x, axis: jnp.logaddexp.reduce(x, axis),
    "norm": lambda jnp, x, axis: jnp.linalg.norm(x, axis=axis),
}


@pytest.mark.parametrize("name", sorted(SHORT))
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_short_reductions_do_not_depend_on_their_number(jax, jnp, name, dtype):
    """Many are taken element by element, few are folded: signed zeros, infinities and nans among them."""
    rng = np.random.default_rng(len(name))
    f = jax.jit(lambda x, axis: SHORT[name](jnp, x, axis), static_argnums=1)
    for n in (1, 2, 3, 5, 8, 11, 16, 17):
        x = (10 * rng.standard_normal((600, n))).astype(dtype)
        if dtype != np.int32:
            x[::7] = rng.choice(np.array([-0.0, 0.0, np.inf, -np.inf, np.nan], dtype), (86, n))
        for values, axis, first in ((x, -1, np.s_[:200]), (x.T.copy(), 0, np.s_[:, :200])):
            many, few = np.asarray(f(jnp.asarray(values), axis))[:200], np.asarray(f(jnp.asarray(values[first]), axis))
            np.testing.assert_array_equal(many.view(np.uint8), few.view(np.uint8), err_msg=f"{n}, axis {axis}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_halves_can_be_forbidden(jax, jnp, dtype):
    """`lax.reduce_sum` alone: NumPy's functions sum in 32 bits, and one element is not a sum."""
    x = jnp.ones((2, 3), dtype)
    f = jax.jit(lambda x: jax.lax.reduce_sum(x, (0,)))
    assert f(x).tolist() == [2, 2, 2]
    with jax.allow_f16_reductions(False):
        for call in (f, lambda x: jax.lax.reduce_sum(x, (0, 1))):
            with pytest.raises(ValueError, match=r"reduce_sum on operand b?f16\[2,3\] is not allowed when jax_allow_f16_reductions=False"):
                call(x)
        assert jax.lax.reduce_sum(x[:1], (0,)).tolist() == [1, 1, 1] and jnp.sum(x) == 6 and jax.lax.reduce_max(x, (0, 1)) == 1
        assert jax.lax.reduce_sum(x.astype("float32"), (0, 1)) == 6
    assert f(x).tolist() == [2, 2, 2]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int32", "float16", "float32", "bool"])
@pytest.mark.parametrize(
    "name, identity",
    [("add", 0), ("mul", 1), ("bitwise_or", 0), ("bitwise_xor", 0), ("bitwise_and", -1), ("max", -np.inf), ("min", np.inf)],
)
def test_the_initial_value_of_a_named_reduction_may_be_of_another_dtype(jax, lax, jnp, name, identity, dtype):
    x = jnp.asarray(np.arange(6).reshape(2, 3) % 4, dtype)
    named = {"add": "sum", "mul": "prod", "bitwise_or": "or", "bitwise_xor": "xor", "bitwise_and": "and"}.get(name, name)
    if name.startswith("bitwise") and dtype.startswith("float"):
        with pytest.raises(TypeError):
            lax.reduce(x, identity, getattr(lax, name), (0,))
        return
    if name in ("add", "mul") and dtype == "bool":
        return  # JAX has no sum or product of booleans
    got = lax.reduce(x, identity, getattr(lax, name), (0,))
    want = getattr(lax, f"reduce_{named}")(x, (0,))
    assert got.dtype == want.dtype and (got == want).all()
    again = jax.make_jaxpr(lambda x: lax.reduce(x, identity, getattr(lax, name), (0,)))(x)
    assert [str(e.primitive) for e in again.eqns][-1] == f"reduce_{named}"
