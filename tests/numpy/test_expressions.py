"""ferrax.numpy against numpy: one expression, run on both; and eager equals jit, bit for bit."""

import numpy as np
import pytest

r = np.random.default_rng(7)
VALUES = dict(
    x=r.standard_normal((3, 4)).astype(np.float32), y=r.standard_normal((3, 4)).astype(np.float32), v=np.array([1.5, -2.0, 0.25, 3.0], np.float32),
    w=np.array([0.5, 4.0, -1.0, 2.0], np.float32), i=r.integers(-5, 6, (3, 4)).astype(np.int32), j=np.array([2, 0, 3, 1], np.int32),
    b=r.random((3, 4)) > 0.5, c=(r.standard_normal(4) + 1j * r.standard_normal(4)).astype(np.complex64), m=r.standard_normal((4, 5)).astype(np.float32),
    t=r.standard_normal((2, 3, 4)).astype(np.float32), n=np.array([[1, np.nan, 3], [np.nan, 5, 1]], np.float32), s=np.array([1, 2, 4, 8], np.float32),
    e=np.zeros((0, 4), np.float32), p=np.array([0.5, 1.0, 2.0, 3.0], np.float32),
)  # fmt: skip

# Expressions whose shapes do not depend on values: these run under jit too.
STATIC = """
np.abs(c) | np.angle(c) | np.arccosh(p + 1) | np.ceil(x) | np.sign(x) | np.sinc(x) | np.round(x, 1) | np.trunc(x) | np.reciprocal(v)
np.signbit(x) | np.copysign(x, y) | np.frexp(x) | np.ldexp(v, j) | np.modf(x) | np.nan_to_num(n) | np.isinf(x) | np.isfinite(n)
np.floor_divide(x, y) | np.floor_divide(i, 3) | np.remainder(i, 4) | np.remainder(x, y) | np.fmod(x, y) | np.divmod(i, 3)
np.power(p, v) | np.power(i, 3) | np.float_power(p, 2) | np.hypot(x, y) | np.heaviside(x, y) | np.logaddexp(x, y) | np.logaddexp2(x, y)
np.fmax(n, 2) | np.fmin(n, 2) | np.gcd(i, 6) | np.lcm(i, 4) | np.left_shift(j, 2) | np.right_shift(i, 1) | np.logical_xor(b, i)
np.where(b, x, 0) | np.select([x > 1, x > 0], [x, y], 5) | np.clip(x, -0.5, 0.5) | np.choose(j % 2, [v, w], mode='clip')
np.eye(3, 4, 1) | np.tri(3) | np.tril(t) | np.triu(x, 1) | np.diag(v, 1) | np.diag(x) | np.diagflat(v) | np.vander(v, 3) | np.diagonal(t, 0, 1, 2)
np.linspace(0, 1, 5) | np.linspace(v, w, 3, axis=1) | np.logspace(0, 2, 4) | np.geomspace(1, 8, 4) | np.meshgrid(v, w) | np.indices((2, 3))
np.reshape(x, (4, 3), order='F') | np.ravel(x, order='F') | np.moveaxis(t, 0, -1) | np.rollaxis(t, 2) | np.swapaxes(t, 0, 2) | np.rot90(x, 3)
np.stack([x, y], axis=1) | np.concatenate([x, y], axis=None) | np.block([[x, y], [y, x]]) | np.hstack([v, w]) | np.column_stack([v, w])
np.split(x, 2, axis=1) | np.array_split(v, 3) | np.tile(x, (2, 2)) | np.repeat(x, 2, axis=1) | np.roll(x, (1, 2), axis=(0, 1)) | np.flip(x)
np.pad(x, 1) | np.pad(x, ((1, 2), (3, 1)), mode='reflect') | np.pad(v, 6, mode='symmetric') | np.pad(v, 5, mode='wrap') | np.pad(v, 2, mode='edge')
np.pad(v, 2, mode='linear_ramp') | np.pad(v, 2, mode='maximum') | np.insert(v, 1, 9.0) | np.delete(x, 1, axis=0) | np.append(v, w)
np.sum(x, axis=0) | np.sum(x, where=b) | np.sum(e, axis=0) | np.prod(x, axis=1) | np.max(x, axis=(0, 1)) | np.min(x, axis=1, keepdims=True)
np.mean(i) | np.mean(x, where=b) | np.var(x, axis=1, ddof=1) | np.std(x) | np.ptp(x, axis=0) | np.average(x, axis=1, weights=p)
np.nansum(n) | np.nanmean(n, axis=0) | np.nanmax(n, axis=1) | np.nanvar(n) | np.nanstd(n, axis=1) | np.nanargmax(n, axis=1) | np.nancumsum(n)
np.any(b, axis=0) | np.all(b) | np.count_nonzero(x, axis=1) | np.cumsum(x, axis=1) | np.cumprod(x) | np.argmax(x, axis=1) | np.argmin(x)
np.median(x, axis=1) | np.quantile(x, [0.1, 0.5], axis=0) | np.percentile(v, 30) | np.nanmedian(n, axis=1) | np.nanquantile(n, 0.3)
np.sort(x, axis=0) | np.argsort(x) | np.lexsort((v, w)) | np.searchsorted(s, w) | np.searchsorted(s, w, side='right') | np.digitize(v, s)
np.take(x, j, axis=1) | np.take_along_axis(x, j[None], axis=1) | np.isin(i, j) | np.unravel_index(j, (2, 2)) | np.bincount(j, minlength=6)
np.dot(x, m) | np.matmul(t, m) | np.matmul(x, m) | np.vdot(c, c) | np.inner(x, y) | np.outer(v, w) | np.kron(x, m) | np.trace(x)
np.tensordot(t, m, 1) | np.cross(t[..., :3], t[..., 1:]) | np.convolve(v, w) | np.convolve(v, w, 'same') | np.correlate(v, w, 'full')
np.einsum('ij,jk->ik', x, m) | np.einsum('bij,kj->bki', t, x) | np.einsum('ij->', x) | np.einsum('ij,ij,ij->j', x, x, y) | np.einsum('ii->i', x[:, :3])
np.einsum('...ij,jk->...k', t, m) | np.linalg.norm(x) | np.linalg.norm(x, axis=1) | np.linalg.norm(x, 1) | np.linalg.norm(v, 3) | np.linalg.matrix_power(x[:, :3], 5)
np.diff(x, n=2) | np.ediff1d(v) | np.gradient(x) | np.gradient(v, s) | np.trapezoid(x) | np.trapezoid(v, s) | np.interp(w, s, v) | np.unwrap(v * 3)
np.cov(x) | np.corrcoef(x) | np.histogram(v, bins=4, range=(-3, 3))[1] | np.polyval(v, w) | np.polyadd(v, p) | np.polymul(v, p) | np.polyder(v, 2) | np.polyint(v, 2)
np.bartlett(6) | np.blackman(6) | np.hamming(6) | np.hanning(6) | np.packbits(b) | np.isclose(x, y) | np.allclose(x, x) | np.array_equal(x, y)
np.bitwise_count(b) | np.gcd(i, b) | np.lcm(b, i) | np.ldexp(v, b) | np.take(v, b) | np.bincount(np.ravel(b), minlength=3) | np.einsum('ij->i', b)
np.einsum('ii->i', b[:, :3]) | np.histogram_bin_edges(x, 3) | np.polyadd(i[0], j[:2]) | np.logaddexp2(p, 2) | np.angle(i) | np.dot(i, 2) | np.inner(i, 2)
np.unravel_index(np.array([5, 100, 77], np.int8), (20, 20)) | np.percentile(i, 30) | np.quantile(x, 1) | np.unwrap(i * 3, period=7)
np.add.reduce(i.astype(np.int8)) | np.logical_xor.reduce(i) | np.logical_or.accumulate(i) | np.logaddexp.reduce(i) | np.sum(i, dtype=bool)
np.searchsorted(np.sort(c), c) | np.digitize(c.real, s) | np.gradient(i, 2.0) | np.ravel_multi_index((j, j[::-1]), (4, 4), mode='clip')
np.add.reduce(x) | np.multiply.outer(v, w) | np.maximum.accumulate(x, axis=1) | np.subtract.reduce(x) | np.polyder(x[:3, :2])
"""
# Expressions whose shapes depend on values: eager only.
DYNAMIC = """
np.nonzero(b) | np.argwhere(x > 0) | np.flatnonzero(b) | np.extract(b, x) | np.compress([True, False, True], x, axis=0) | np.trim_zeros(np.array([0, 1, 0]))
np.unique(i) | np.unique(i, return_index=True, return_inverse=True, return_counts=True) | np.unique(i % 2, axis=0) | np.union1d(i, j)
np.intersect1d(i, j) | np.setdiff1d(i, j) | np.setxor1d(i, j) | np.repeat(v, np.array([1, 0, 2, 1])) | np.delete(v, np.array([0, 2])) | x[b] | x[x > 0]
"""


def cases(text):
    return [part.strip() for line in text.strip().splitlines() for part in line.split("|")]


def leaves(out):
    return list(out) if isinstance(out, (tuple, list)) else [out]


def agree(got, want):
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert a.dtype.kind == b.dtype.kind or {a.dtype.kind, b.dtype.kind} <= set("iu")
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def names_in(expression):
    code = compile(expression, "<case>", "eval")
    return code, [k for k in VALUES if k in code.co_names]


@pytest.mark.parametrize("expression", cases(STATIC))
def test_agrees_with_numpy_and_with_jit(jax, jnp, expression):
    code, names = names_in(expression)
    with np.errstate(all="ignore"):
        want = eval(code, {"np": np, **VALUES})
    arrays = [jnp.asarray(VALUES[k]) for k in names]
    run = lambda *xs: eval(code, {"np": _Lifted(jnp), **dict(zip(names, xs, strict=True))})
    eager = run(*arrays)
    agree(eager, want)
    for a, b in zip(leaves(eager), leaves(jax.jit(run)(*arrays) if names else jax.jit(run)()), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


class _Lifted:
    """The library, with the lists that numpy takes for arrays made arrays, and static lengths given where jit needs them."""

    def __init__(self, jnp):
        self._jnp = jnp

    def __getattr__(self, name):
        jnp = self._jnp
        special = {
            "quantile": lambda a, q, **k: jnp.quantile(a, jnp.asarray(q), **k),
            "bincount": lambda a, minlength: jnp.bincount(a, length=minlength),
            "array": jnp.asarray,
            "compress": lambda c, a, axis: jnp.compress(jnp.asarray(c), a, axis=axis),
        }
        return special.get(name) or getattr(jnp, name)


@pytest.mark.parametrize("expression", cases(DYNAMIC))
def test_agrees_with_numpy_where_shapes_depend_on_values(jnp, expression):
    code, names = names_in(expression)
    want = eval(code, {"np": np, **VALUES})
    agree(eval(code, {"np": _Lifted(jnp), **{k: jnp.asarray(VALUES[k]) for k in names}}), want)


@pytest.mark.parametrize("size", [0, 2, 9])
def test_a_static_size_pads_or_cuts(jax, jnp, size):
    i = VALUES["i"]
    values = np.unique(i)
    want = np.concatenate([values, np.full(max(0, size - len(values)), -99)])[:size]
    got = jax.jit(lambda i: jnp.unique(i, size=size, fill_value=-99))(i)
    assert np.asarray(got).tolist() == want.tolist()
    flat = np.flatnonzero(i > 0)
    want = np.concatenate([flat, np.full(max(0, size - len(flat)), -1)])[:size]
    assert np.asarray(jax.jit(lambda i: jnp.flatnonzero(i > 0, size=size, fill_value=-1))(i)).tolist() == want.tolist()


@pytest.mark.parametrize("axis, equal_nan", [(None, True), (None, False), (0, True), (1, True)])
@pytest.mark.parametrize("size", range(8))
def test_all_results_of_unique_are_padded_or_cut_alike(jax, jnp, size, axis, equal_nan):
    nan = np.nan if axis is None else 5.0  # along an axis numpy takes nan as different from nan
    x = np.array([[3, nan, 1, 3], [1, 2, 2, 1], [3, nan, 1, 3]], np.float32)
    also = dict(axis=axis, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan)
    values, index, inverse, counts = np.unique(x, **also)
    along = axis or 0
    runs = values.shape[along]
    padding = lambda v, fill, k=0: np.pad(v, [(0, max(0, size - runs)) if d == k else (0, 0) for d in range(v.ndim)], constant_values=fill).take(range(size), k)
    want = [padding(values, -9, along), padding(index, index[0]), inverse, padding(counts, 0)]
    for wrap in (jax.jit, lambda f: f):
        agree(list(wrap(lambda x: jnp.unique(x, size=size, fill_value=-9, **also))(x)), want)
    if axis is None and not equal_nan:
        for f, places in ((jnp.unique_all, (0, 1, 2, 3)), (jnp.unique_counts, (0, 3))):
            agree(list(f(jnp.asarray(x), size=size, fill_value=-9)), [want[k] for k in places])


WIDE = """
np.diagflat(i) | np.diagflat(v, -2) | np.take(i.astype('uint64'), j) | np.take_along_axis(i.astype('uint64'), j[None], axis=1) | np.median(i) | np.angle(i)
np.bincount(j, minlength=5) | np.unwrap(i) | np.sinc(i)
np.piecewise(x, [x < 0, x > 1], [lambda x: x * 2, 5]) | np.piecewise(x, [x < 1], [1, 2.5]) | np.convolve(c.astype(complex), c) | np.add.reduce(j)
np.intersect1d(i, j, return_indices=True) | np.nonzero(b) | np.searchsorted(s, w) | np.logaddexp2(c, 2 * c) | np.quantile(i, np.array([0.25, 1.0]))
"""


@pytest.mark.parametrize("expression", cases(WIDE))
def test_agrees_with_numpy_in_64_bits(jnp, x64, expression):
    code, names = names_in(expression)
    if "logaddexp2" in expression:
        want = np.log2(np.exp2(VALUES["c"]) + np.exp2(2 * VALUES["c"]))
    else:
        want = eval(code, {"np": np, **VALUES})
    flat = lambda out: [y for x in leaves(out) for y in leaves(x)]
    agree(flat(eval(code, {"np": _Lifted(jnp), **{k: jnp.asarray(VALUES[k]) for k in names}})), flat(want))


@pytest.mark.parametrize("fun", ["quantile", "nanquantile"])
def test_quantiles_have_the_type_of_the_values_and_positions_that_of_q(jnp, x64, fun):
    a = np.arange(100, dtype=np.float32)
    q = np.nextafter(0.5, 1)
    assert getattr(jnp, fun)(jnp.asarray(a), jnp.asarray([q])).dtype == np.float32
    assert getattr(jnp, fun)(jnp.asarray(a, "bfloat16"), 0.5).dtype == jnp.bfloat16
    # In bfloat16 the position 0.26 * 99 would be 25.75.
    np.testing.assert_allclose(float(getattr(jnp, fun)(jnp.asarray(a, "bfloat16"), 0.26)), 0.26 * 99, atol=0.07)


@pytest.mark.parametrize(
    "values, dtype",
    [([np.float16(1), 2.5], "float16"), ([[np.int8(1)], [2]], "int8"), ([np.int8(1), 2.5], "float64"), ([np.float32(1), np.arange(2)[1], 1j], "complex64"),
     ([True, 2], "int64"), ([1.5, 2], "float64"), ([np.zeros(2, "float16"), [1, 2]], "float16"), ([range(2), range(2)], "int64")],
)  # fmt: skip
def test_numbers_in_lists_are_weak_beside_scalars_of_a_dtype(jnp, x64, values, dtype):
    assert jnp.array(values).dtype == dtype
    assert not jnp.array(values).weak_type


@pytest.mark.parametrize("fun", ["intersect1d", "setxor1d"])
def test_an_empty_set_is_padded_with_zeros(jnp, fun):
    a, b = jnp.array([3, 4]), jnp.array([5, 6] if fun == "intersect1d" else [4, 3])
    assert getattr(jnp, fun)(a, b, size=2).tolist() == [0, 0]
    assert getattr(jnp, fun)(a, b, size=2, fill_value=9).tolist() == [9, 9]


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_weights_of_the_whole_shape_weigh_each_element(jnp, axis):
    x, weights = VALUES["x"], np.abs(VALUES["i"]) + 1
    got = jnp.quantile(jnp.asarray(x), 0.4, axis=axis, method="inverted_cdf", weights=jnp.asarray(weights))
    np.testing.assert_allclose(got, np.quantile(x, 0.4, axis=axis, method="inverted_cdf", weights=weights))


ANSWERED = [
    ("jnp.dot(jnp.int8(2), 3)", 6, "int8"),
    ("jnp.einsum('i,->i', jnp.array([2], 'uint16'), 3)", [6], "uint16"),
    ("jnp.quantile(jnp.arange(4.0), jnp.array([0, 1]))", [0, 3], "float32"),
    ("jnp.partition(jnp.array([True, False, True]), 1)", [False, True, True], "bool"),
    ("jnp.interp(jnp.bfloat16(0.5), jnp.arange(2, dtype='bfloat16'), jnp.arange(2, dtype='bfloat16'))", 0.5, "bfloat16"),
    ("jnp.take(jnp.arange(3), jnp.array([True]), mode='clip')", [1], "int32"),
]


@pytest.mark.parametrize("expression, want, dtype", ANSWERED)
def test_answers_that_jax_refuses(jnp, expression, want, dtype):
    got = eval(expression, {"jnp": jnp})
    assert got.dtype == dtype and got.tolist() == want


def test_ufuncs_update_booleans_as_they_compute_them(jnp):
    x = jnp.array([True, False])
    assert jnp.add.at(x, 1, True, inplace=False).tolist() == [True, True]
    assert jnp.multiply.at(x, 0, False, inplace=False).tolist() == [False, False]


REFUSED = [
    ("jnp.repeat(jnp.arange(3), jnp.array([1, 2]), total_repeat_length=4)", ValueError, "input type=int32[2] and requested type=int32[3]"),
    ("jnp.arange(2, dtype=bool)", TypeError, "iota does not accept dtype bool."),
    ("jnp.array(1j, dtype='float32')", TypeError, "not 'complex'"),
    ("jnp.full_like(x, 1j)", TypeError, "not 'complex'"),
    ("jnp.array([1, 1j], dtype='int32')", TypeError, "not 'complex'"),
    ("jnp.ravel_multi_index((jnp.int8(1), jnp.int8(3)), (40, 40))", ValueError, "not large enough to hold flattened index for dims=(40, 40)"),
    ("jnp.ravel_multi_index((x, x), (4, 4))", ValueError, "is not an integer type."),
    ("jnp.cov(x, aweights=jnp.ones(3))", RuntimeError, "incompatible numbers of samples and aweights"),
    ("jnp.quantile(x, 1j)", TypeError, "floor does not accept dtype complex64."),
    ("(x > 0).at[0].add(x > 0)", TypeError, "add does not accept dtype bool at position 0."),
    ("jnp.subtract.reduce(x > 0)", TypeError, "sub does not accept dtype bool at position 0."),
    ("jnp.fabs(1j)", TypeError, "ufunc 'fabs' does not support complex dtypes"),
    ("jnp.i0(x + 0j)", ValueError, "Unsupported input type to jax.numpy.i0: complex64"),
    ("jnp.signbit(x + 0j)", ValueError, "jax.numpy.signbit is not well defined for complex64"),
    ("jnp.spacing(1j)", ValueError, "jnp.spacing is not defined for complex inputs."),
    ("jnp.round(x > 0)", ValueError, "data type <class 'numpy.bool'> not inexact"),
    ("jnp.argsort(1)", ValueError, "axis -1 is out of bounds for array of dimension 0"),
    ("jnp.std(x + 0j, dtype='float32')", ValueError, "jax.numpy.var does not yet support real dtype parameters"),
    ("jnp.choose(x, [x, x])", ValueError, "`a` array must be integer typed"),
    ("jnp.polymul(x, 1)", TypeError, "len() of unsized object"),
    ("jnp.polyadd(x > 0, x > 1)", TypeError, "add does not accept dtype bool"),
    ("jnp.unwrap(1.0)", IndexError, "tuple index out of range"),
    ("jnp.gcd(x > 0, True)", ValueError, "Arguments to jax.numpy.gcd must be integers."),
    ("jnp.take(x, x)", ValueError, "indices must have an integer type"),
    ("jax.jit(lambda m: x[0, 0][m])(x > 0)", IndexError, "Too many indices: array is 0-dimensional, but 2 were indexed"),
    ("jnp.sum([1, 2])", TypeError, "sum requires ndarray or scalar arguments, got <class 'list'> at position 0."),
    ("jnp.add([1], x)", TypeError, "add requires ndarray or scalar arguments, got <class 'list'> at position 0."),
    ("jnp.reshape(x, (5,))", TypeError, "cannot reshape array of shape (3, 4) (size 12) into shape (5,) (size 5)"),
    ("jnp.sum(x, axis=5)", ValueError, "axis 5 is out of bounds for array of dimension 2"),
    ("jnp.max(jnp.zeros(0))", ValueError, "zero-size array to reduction operation max which has no identity"),
    ("jnp.concatenate([])", ValueError, "Need at least one array to concatenate."),
    ("jnp.einsum('ij,jk', x, x)", ValueError, "Size of label 'j' for operand 1 (4) does not match previous terms (3)."),
    ("jnp.array([1, [2]])", ValueError, "inhomogeneous shape"),
    ("jnp.array('a')", TypeError, "Value 'a' with dtype <U1 is not a valid JAX array type."),
    ("jnp.array(2**40)", OverflowError, "Python int 1099511627776 too large to convert to int32"),
    ("jnp.take(x, 0, mode='raise')", NotImplementedError, "The 'raise' mode to jnp.take is not supported."),
    ("jnp.place(x, x > 0, x)", ValueError, "jax.numpy.place cannot modify arrays in-place"),
    ("x[0, 0, 0]", IndexError, "Too many indices: array is 2-dimensional, but 3 were indexed"),
    ("jax.jit(lambda x: jnp.nonzero(x))(x)", TypeError, "Abstract tracer value encountered where concrete value is expected"),
    ("jax.jit(lambda n: jnp.arange(n))(3)", TypeError, "Abstract tracer value encountered where concrete value is expected"),
]


@pytest.mark.parametrize("expression, error, words", REFUSED)
def test_errors_say_what_is_wrong(jax, jnp, expression, error, words):
    with pytest.raises(error) as e:
        eval(expression, {"jax": jax, "jnp": jnp, "x": jnp.asarray(VALUES["x"])})
    assert words in str(e.value).split("\n")[0]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "mean", "median", "empty"])
@pytest.mark.parametrize("weak", [True, False])
def test_padding_keeps_a_weak_type(jnp, mode, weak):
    x = (1.5 if weak else jnp.float32(1.5)) * jnp.arange(1, 4)
    assert jnp.pad(x, 2, mode=mode).weak_type == weak


def test_padding_values_do_not_strengthen_an_array(jnp):
    for values in (0, 1.5, (1, 2), ((1.5, 2),)):
        assert jnp.pad(1.5 * jnp.arange(3), 1, constant_values=values).weak_type


POLYNOMIALS = ([0, 1, -3], [0, 0, 1, -3, 2, 0], [0, 0, 0], [1, 0, -1], [0, 0, 2], [0, 2, 0, 0], [2, -3, 1], [0, 1e-3, 0, 1e-3], [0, 5])


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64"])
@pytest.mark.parametrize("p", POLYNOMIALS)
def test_roots_that_leading_zeros_lack_are_nan(jax, jnp, p, dtype):
    p = jnp.array(p).astype(dtype)
    known = np.asarray(jnp.roots(p))
    n = p.shape[0] - 1
    for f in (lambda p: jnp.roots(p, strip_zeros=False), jax.jit(lambda p: jnp.roots(p, strip_zeros=False))):
        for r in (f(p), jax.vmap(f)(jnp.stack([p, p[::-1]]))[0]):
            r = np.asarray(r)
            assert r.shape == (n,) and r.dtype == known.dtype == np.complex64
            assert np.isnan(r[len(known) :]).all()
            np.testing.assert_allclose(np.sort_complex(r[: len(known)].round(4)), np.sort_complex(known.round(4)), atol=2e-4)


def test_roots_of_zeros_have_the_dtype_of_the_others(jax, jnp):
    with jax.enable_x64(True):
        for p in ([0.0, 0.0], [0.0, 2.0, 0.0], [3.0], [1.0, 2.0]):
            assert jnp.roots(jnp.array(p)).dtype == jnp.roots(jnp.array(p), strip_zeros=False).dtype == np.complex128


@pytest.mark.parametrize("vector", [True, False])
def test_residuals_as_numpy_has_them(jnp, vector):
    for a in (np.ones((3, 2)), np.eye(3, 2), np.eye(2), np.eye(2, 3), np.zeros((4, 2)), np.arange(6.0).reshape(3, 2)):
        b = np.arange(1.0, a.shape[0] + 1)
        b = b if vector else np.stack([b, -b, b], 1)
        expected = np.linalg.lstsq(a, b, rcond=None)[1]
        got = jnp.linalg.lstsq(jnp.asarray(a, "float32"), jnp.asarray(b, "float32"), numpy_resid=True)[1]
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


LISTS = {
    "a row that is longer": (lambda a, b: [a, b], "shapes that differ in dimensions other than the one being concatenated"),
    "a tuple": (lambda a, b: (a, b), "for shapes (1, 2), (1, 3)"),
    "nested": (lambda a, b: [[a, a], [a, b]], "for shapes (1, 2), (1, 3)"),
    "a list of numbers": (lambda a, b: [a, [1.0, 2.0, 3.0]], "for shapes (1, 2), (1, 3)"),
    "an array of numpy": (lambda a, b: [np.ones(2, "float32"), b], "for shapes (1, 2), (1, 3)"),
    "a number": (lambda a, b: [a, 1.0], "different numbers of dimensions: got (1, 2), (1,)"),
    "a number first": (lambda a, b: [1.0, a], "different numbers of dimensions: got (1,), (1, 2)"),
    "a matrix": (lambda a, b: [a, b[None]], "different numbers of dimensions: got (1, 2), (1, 1, 3)"),
}


@pytest.mark.parametrize("make", ["array", "asarray"])
@pytest.mark.parametrize("which", LISTS)
def test_lists_of_arrays_of_unlike_shapes(jax, jnp, which, make):
    items, words = LISTS[which]
    a, b = jnp.ones(2), jnp.ones(3)
    for f in (lambda a, b: getattr(jnp, make)(items(a, b)), jax.jit(lambda a, b: getattr(jnp, make)(items(a, b)))):
        with pytest.raises(TypeError) as e:
            f(a, b)
        assert str(e.value).startswith("Cannot concatenate arrays with ") and words in str(e.value)
