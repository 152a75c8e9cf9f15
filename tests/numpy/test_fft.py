"""Fourier transforms: values beside numpy's, laws, derivatives, batches, and what is refused."""

import ferrax as jax
import ferrax.numpy as jnp
import ferrax.scipy.fft as scipy_fft
import numpy as np
import pytest
from ferrax import lax
from ferrax.test_util import check_grads
from hypothesis import given, strategies as st

LENGTHS = [1, 2, 3, 4, 5, 8, 12, 17, 30, 49, 64, 97, 100, 128, 243, 360, 511, 1009, 1024, 2048, 5040]
NORMS = [None, "backward", "ortho", "forward"]
COMPLEX, REAL = ["fft", "ifft", "irfft", "hfft"], ["rfft", "ihfft"]


def drawn(*shape, seed=0, dtype=np.complex64):
    r = np.random.default_rng(seed)
    x = r.standard_normal(shape) + 1j * r.standard_normal(shape)
    return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)


def near(got, want, dtype=np.float32):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    eps = 2e-6 if np.dtype(dtype).itemsize == 4 else 2e-14
    np.testing.assert_allclose(got, want, rtol=0, atol=eps * max(1.0, np.abs(want).max(initial=0.0)))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name", COMPLEX + REAL)
def test_every_length_is_numpys(n, name):
    x = drawn(3, n, seed=n, dtype=np.float32 if name in REAL else np.complex64)
    wide = x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)
    if n == 1 and name in ("irfft", "hfft"):
        got, want = getattr(jnp.fft, name)(x, n=1), getattr(np.fft, name)(wide, n=1)
    else:
        got, want = getattr(jnp.fft, name)(x), getattr(np.fft, name)(wide)
    assert got.dtype == (np.float32 if name in ("irfft", "hfft") else np.complex64)
    near(got, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1 << 16, 2 * 257 * 131, 90_000, 3 << 17, 65_537])
def test_long_lengths_are_numpys(n, dtype):
    """Rows that are taken as matrices, some of them only by their halves, and one that cannot be."""
    with jax.enable_x64(True):
        x, z = drawn(2, n, seed=n, dtype=dtype), drawn(2, n, seed=1, dtype=np.result_type(dtype, np.complex64))
        for name in COMPLEX + REAL:
            real_input = name in ("rfft", "ihfft")
            got = getattr(jnp.fft, name)(x if real_input else z)
            near(got, getattr(np.fft, name)((x if real_input else z).astype(np.complex128 if not real_input else np.float64)), dtype)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("axes", [None, (0,), (1, 2), (2, 0), (-1, 1, 0), (3, 1, 2, 0), ()], ids=str)
def test_any_axes_and_norms(name, norm, axes):
    x = drawn(3, 4, 2, 5, dtype=np.float32 if name == "rfftn" else np.complex64)
    if axes == () and name in ("rfftn", "irfftn"):
        return  # numpy has none
    near(getattr(jnp.fft, name)(x, axes=axes, norm=norm), getattr(np.fft, name)(x, axes=axes if axes is None else list(axes), norm=norm))


@pytest.mark.parametrize("name", COMPLEX + REAL)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [1, 3, 5, 8])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lengths_pad_and_cut(name, norm, n, axis):
    x = drawn(4, 5, dtype=np.float32 if name in REAL else np.complex64)
    near(getattr(jnp.fft, name)(x, n, axis, norm), getattr(np.fft, name)(x, n, axis, norm))


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
@pytest.mark.parametrize("s", [None, (3, 6), (6, 3)], ids=str)
def test_planes(name, s):
    x = drawn(2, 4, 5, dtype=np.float32 if name == "rfft2" else np.complex64)
    near(getattr(jnp.fft, name)(x, s), getattr(np.fft, name)(x, s))
    near(getattr(jnp.fft, name)(x, s, axes=(2, 0)), getattr(np.fft, name)(x, s, axes=(2, 0)))
    near(jnp.fft.fftn(x, s=(2,)), np.fft.fftn(x, s=(2,), axes=(-1,)))


@pytest.mark.parametrize("shape, axis", [((30, 1), 0), ((1, 30), 0), ((24, 37), 0), ((3, 20, 17), 1), ((2, 3, 9, 5), 2), ((5, 4, 3, 40), 1)])
@pytest.mark.parametrize("name", COMPLEX + REAL)
def test_an_axis_among_others(shape, axis, name):
    x = drawn(*shape, seed=4, dtype=np.float32 if name in REAL else np.complex64)
    if shape[axis] == 1 and name in ("irfft", "hfft"):
        return
    f = getattr(jnp.fft, name)
    got = f(x, axis=axis)
    near(got, getattr(np.fft, name)(x, axis=axis))
    np.testing.assert_array_equal(jax.jit(lambda x: f(x * 1, axis=axis))(x), got)
    # the same rows, transposed by hand
    moved = jnp.moveaxis(f(jnp.moveaxis(x, axis, -1)), -1, axis)
    near(moved, got)
    lanes = jax.vmap(lambda x: f(x, axis=axis), -1, -1)(jnp.stack([x, x + 1], -1))
    near(lanes[..., 0], got)
    inverse = jax.jit(lambda x: jnp.fft.ifft(jnp.fft.fft(x, axis=axis), axis=axis))(x)
    near(inverse, x.astype(np.complex64))


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (0, 2), (2, 0)], ids=str)
def test_two_axes_of_three(axes):
    x = drawn(6, 20, 9)
    near(jnp.fft.fftn(x, axes=axes), np.fft.fftn(x, axes=axes))
    near(jnp.fft.rfftn(x.real, axes=axes), np.fft.rfftn(x.real, axes=axes))
    near(jnp.fft.irfftn(x, axes=axes), np.fft.irfftn(x, axes=axes))


@given(st.integers(1, 300), st.integers(0, 2**32 - 1), st.sampled_from([np.complex64, np.complex128]))
def test_laws(n, seed, dtype):
    with jax.enable_x64(True):
        x, y = jnp.asarray(drawn(n, seed=seed, dtype=dtype)), jnp.asarray(drawn(n, seed=seed + 1, dtype=dtype))
        fx, fy = jnp.fft.fft(x), jnp.fft.fft(y)
        assert fx.dtype == dtype
        near(jnp.fft.ifft(fx), x, fx.real.dtype)
        near((abs(fx) ** 2).sum() / n, (abs(x) ** 2).sum(), fx.real.dtype)
        near(jnp.fft.fft(2 * x - 3j * y), 2 * fx - 3j * fy, fx.real.dtype)
        turned = np.exp(-2j * np.pi * (np.arange(n) * 5 % n) / n).astype(dtype)
        near(jnp.fft.fft(jnp.roll(x, 5)), fx * turned, fx.real.dtype)
        near(jnp.fft.fft(x.conj()), jnp.roll(fx[::-1], 1).conj(), fx.real.dtype)
        near(jnp.fft.rfft(x.real), jnp.fft.fft(x.real)[: n // 2 + 1], fx.real.dtype)
        near(jnp.fft.irfft(jnp.fft.rfft(x.real), n), x.real, fx.real.dtype)
        near(jnp.fft.hfft(jnp.fft.ihfft(x.real), n), x.real, fx.real.dtype)


def test_a_real_inverse_ignores_imaginary_parts():
    """Imaginary parts that no real signal has do not count, forwards and backwards."""
    for n in (6, 7):
        z = drawn(4, seed=n)
        w = z.copy()
        w[0] += 5j
        if n == 6:
            w[3] -= 2j
        np.testing.assert_array_equal(jnp.fft.irfft(z, n), jnp.fft.irfft(w, n))
        g = jax.grad(lambda z, n=n: (jnp.fft.irfft(z, n) * jnp.arange(n)).sum())(jnp.asarray(z))
        assert g[0].imag == 0 and (n == 7 or g[3].imag == 0)


@pytest.mark.parametrize("name", COMPLEX + REAL)
@pytest.mark.parametrize("n", [1, 4, 5])
def test_derivatives(name, n):
    with jax.enable_x64(True):
        x = drawn(3, n, dtype=np.float64 if name in REAL else np.complex128)
        f = lambda x: getattr(jnp.fft, name)(x, n=n)
        check_grads(f, (x,), order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_derivatives_along_axes(name):
    with jax.enable_x64(True):
        x = drawn(2, 3, 4, dtype=np.float64 if name == "rfftn" else np.complex128)
        for axes in [None, (0, 1), (2, 0)]:
            check_grads(lambda x, axes=axes: getattr(jnp.fft, name)(x, axes=axes), (x,), order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_vmap_is_a_loop(name, axis):
    x = jnp.asarray(drawn(3, 6, 4, dtype=np.float32 if name == "rfft" else np.complex64))
    for inner in (0, 1):
        f = lambda v, inner=inner: getattr(jnp.fft, name)(v, axis=inner)
        loop = jnp.stack([f(jnp.take(x, k, axis=axis)) for k in range(x.shape[axis])])
        got = jax.vmap(f, in_axes=axis)(x)
        near(got, loop)
        near(jax.jit(jax.vmap(f, in_axes=axis))(x), loop)
        g = lambda v, f=f: jnp.sum(abs(f(v)) ** 2)
        near(jax.vmap(jax.grad(g), in_axes=axis)(x), jnp.stack([jax.grad(g)(jnp.take(x, k, axis=axis)) for k in range(x.shape[axis])]))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int32, np.uint16, jnp.bfloat16, np.float16])
def test_narrow_dtypes_become_complex64(dtype):
    x = jnp.asarray(np.array([1, 0, 1, 1])).astype(dtype)
    assert jnp.fft.fft(x).dtype == np.complex64
    near(jnp.fft.fft(x), np.fft.fft([1, 0, 1, 1]))


def test_types_and_programs():
    x = jnp.zeros((2, 3, 4), np.complex64)
    assert "fft[fft_lengths=(3, 4) fft_type=0]" in str(jax.make_jaxpr(lambda x: lax.fft(x, "FFT", (3, 4)))(x))
    assert lax.fft(x, lax.FftType.IRFFT, (3, 6)).dtype == np.float32
    assert lax.fft(x.real, "rfft", (4,)).shape == (2, 3, 3)
    assert lax.fft(x, "FFT", ()).shape == x.shape
    assert lax.fft(jnp.zeros((2, 0), np.complex64), "FFT", (0,)).shape == (2, 0)
    assert lax.fft(jnp.zeros((0, 4)), "RFFT", (4,)).shape == (0, 3)
    assert jnp.fft.irfft(jnp.zeros(1)).shape == (0,)
    assert jnp.fft.fft(jnp.zeros(0)).shape == (0,)


REFUSED = [
    (lambda: lax.fft(jnp.zeros(4), "RFFT", (5,)), ValueError, "RFFT input shape (4,) minor dimensions must be equal to fft_lengths (5,)"),
    (lambda: lax.fft(jnp.zeros(4), "FFT", (5,)), ValueError, "FFT input shape (4,) minor dimensions must be equal to fft_lengths (5,)"),
    (lambda: lax.fft(jnp.zeros(4), "FFT", (2, 2)), ValueError, "must have at least as many input dimensions as fft_lengths (2, 2)."),
    (lambda: lax.fft(jnp.zeros((2, 2, 2, 2)), "FFT", (2, 2, 2, 2)), ValueError, "rank must be between 1 and 3, but got 4."),
    (lambda: lax.fft(jnp.zeros(4), "BAD", (4,)), ValueError, "Unknown FFT type 'BAD'"),
    (lambda: lax.fft(jnp.zeros(4), 3, (4,)), TypeError, "Unknown FFT type value '3'"),
    (lambda: lax.fft(jnp.zeros(4, np.complex64), "RFFT", (4,)), ValueError, "only real valued inputs supported for rfft"),
    (lambda: lax.fft(jnp.zeros(4), "RFFT", 4), TypeError, "has no len()"),
    (lambda: lax.fft(jnp.zeros(4, np.float16), "RFFT", (4,)), ValueError, "RFFT input must be float32 or float64, got float16"),
    (lambda: lax.fft(jnp.zeros(4), "IRFFT", (4,)), ValueError, "Got: 4 but fft_length is 4."),
    (lambda: lax.fft(jnp.zeros(4), "RFFT", (-4,)), ValueError, "minor dimensions must be equal to fft_lengths (-4,)"),
    (lambda: jnp.fft.fft([1, 2]), TypeError, "fft requires ndarray or scalar arguments, got <class 'list'> at position 0."),
    (lambda: jnp.fft.fft(jnp.zeros(())), ValueError, "axis -1 is out of bounds for array of dimension 0"),
    (lambda: jnp.fft.fft(jnp.zeros(4), 0), ValueError, "Shape should be positive."),
    (lambda: jnp.fft.fft(jnp.zeros(4), norm="x"), ValueError, 'Invalid norm value x; should be "backward","ortho" or "forward".'),
    (lambda: jnp.fft.hfft(jnp.zeros(4), norm="x"), ValueError, 'Invalid norm value x; should be "backward","ortho" or "forward".'),
    (lambda: jnp.fft.fft(jnp.zeros(4), axis=(0,)), ValueError, "does not support multiple axes. Please use jax.numpy.fft.fftn. Got axis = (0,)."),
    (lambda: jnp.fft.fft(jnp.zeros(4), 2.0), TypeError, "cannot be interpreted as an integer"),
    (lambda: jnp.fft.fftn(jnp.zeros((4, 4)), axes=(0, 0)), ValueError, "does not support repeated axes. Got axes (0, 0)."),
    (lambda: jnp.fft.fftn(jnp.zeros((4, 4)), s=(2,), axes=(0, 1)), ValueError, "Shape and axes have different lengths."),
    (lambda: jnp.fft.fft2(jnp.zeros((4, 4)), axes=(0,)), ValueError, "only supports 2 axes. Got axes = (0,)."),
    (lambda: jnp.fft.rfft(jnp.zeros(4, np.complex64)), ValueError, "only real valued inputs supported for rfft"),
    (lambda: jnp.fft.fftfreq([4]), ValueError, "only takes an int. Got n = [4]."),
    (lambda: jnp.fft.fftfreq(4, d=[1]), ValueError, "only takes a single value. Got d = [1]."),
    (lambda: jnp.fft.fftshift([1]), TypeError, "fftshift requires ndarray or scalar arguments"),
    (lambda: scipy_fft.dct(jnp.zeros(4), type=3), NotImplementedError, "Only DCT type 2 is implemented."),
    (lambda: scipy_fft.idct(jnp.zeros(4), norm="forward"), ValueError, "jax.scipy.fft.idct: norm='forward' is not implemented"),
    (lambda: scipy_fft.dctn(jnp.zeros((4, 4)), axes=(0, 0)), ValueError, "duplicate value in 'axis': (0, 0)"),
    (lambda: scipy_fft.dct(jnp.zeros(4), n=0), ValueError, "Invalid number of data points (0) specified"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refusals(k):
    f, error, words = REFUSED[k]
    with pytest.raises(error) as e:
        f()
    assert words in str(e.value)


@pytest.mark.parametrize("n", [0, 1, 4, 5])
@pytest.mark.parametrize("d", [1.0, 0.25, 3])
def test_frequencies(n, d):
    want = np.fft.fftfreq(n, d) if n else np.zeros(0)
    near(jnp.fft.fftfreq(n, d), want)
    if n:
        near(jnp.fft.rfftfreq(n, d), np.fft.rfftfreq(n, d))
    near(jax.jit(lambda d: jnp.fft.fftfreq(n, d))(float(d)), want)
    assert jnp.fft.fftfreq(4, dtype=np.float16).dtype == np.float16


@pytest.mark.parametrize("axes", [None, 0, 1, (0, 1), (-1,), ()], ids=str)
def test_shifts(axes):
    x = np.arange(20).reshape(4, 5)
    np.testing.assert_array_equal(jnp.fft.fftshift(x, axes), np.fft.fftshift(x, axes))
    np.testing.assert_array_equal(jnp.fft.ifftshift(x, axes), np.fft.ifftshift(x, axes))


# ---- cosine transforms ----


def cosines(x, norm):
    """By definition, along the last axis."""
    n = x.shape[-1]
    k, j = np.arange(n)[:, None], np.arange(n)
    m = 2 * np.cos(np.pi * k * (2 * j + 1) / (2 * n))
    if norm == "ortho":
        m = m * np.sqrt(np.where(k == 0, 1 / (4 * n), 1 / (2 * n)))
    return x @ m.T


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 17, 100])
@pytest.mark.parametrize("norm", [None, "backward", "ortho"])
def test_cosine_transforms(n, norm):
    x = drawn(3, n, dtype=np.float32)
    y = scipy_fft.dct(x, norm=norm)
    assert y.dtype == np.float32
    near(y, cosines(x.astype(float), norm))
    near(scipy_fft.idct(y, norm=norm), x)
    near(scipy_fft.dct(x.T, axis=0, norm=norm), cosines(x.astype(float), norm).T)
    z = drawn(n)
    near(scipy_fft.dct(z, norm=norm), cosines(z.real, norm) + 1j * cosines(z.imag, norm))


def test_cosine_transforms_along_axes():
    x = drawn(3, 4, 5, dtype=np.float32)
    along = lambda x, axis: np.moveaxis(cosines(np.moveaxis(x, axis, -1), "ortho"), -1, axis)
    near(scipy_fft.dctn(x, norm="ortho"), along(along(along(x, 0), 1), 2))
    near(scipy_fft.dctn(x, axes=(2, 0), norm="ortho"), along(along(x, 0), 2))
    near(scipy_fft.idctn(scipy_fft.dctn(x)), x)
    near(scipy_fft.dctn(x, s=(2, 7)), scipy_fft.dctn(np.pad(x[:, :2], [(0, 0), (0, 0), (0, 2)]), axes=(1, 2)))
    for f in (scipy_fft.dctn, scipy_fft.idctn):
        near(f(x, axes=1), f(x, axes=(1,)))
        near(f(x, s=6), f(x, s=(6,), axes=(2,)))
    near(scipy_fft.dct(x, n=7, axis=1), scipy_fft.dct(np.pad(x, [(0, 0), (0, 3), (0, 0)]), axis=1))
    assert scipy_fft.dct(jnp.arange(4)).dtype == np.float32
    assert scipy_fft.dct(jnp.zeros(4, jnp.bfloat16)).dtype == np.float32
    assert scipy_fft.dct(jnp.zeros((3, 0))).shape == (3, 0)


def test_cosine_derivatives():
    with jax.enable_x64(True):
        x = drawn(2, 5, dtype=np.float64)
        for f in (scipy_fft.dct, scipy_fft.idct, scipy_fft.dctn, scipy_fft.idctn):
            check_grads(f, (x,), order=2, modes=("fwd", "rev"))
            near(jax.vmap(f)(x[:, None]), jnp.stack([f(v[None]) for v in x]), np.float64)


@pytest.mark.oracle
def test_beside_jax(oracle):
    import jax.scipy.fft as theirs

    for name, kw in [("dct", {}), ("idct", {"norm": "ortho"}), ("dctn", {"axes": (0, 1)}), ("idctn", {"s": (3, 6)})]:
        x = drawn(3, 4, 5, dtype=np.float32)
        near(getattr(scipy_fft, name)(x, **kw), getattr(theirs, name)(x, **kw))
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        x = drawn(3, 6, dtype=np.float32)
        ours, want = jax.grad(lambda x: abs(getattr(jnp.fft, name)(x)).sum())(x), oracle.grad(lambda x: abs(getattr(oracle.numpy.fft, name)(x)).sum())(x)
        near(ours, want)
        x = drawn(3, 6)
        if name not in ("rfft", "ihfft"):
            near(jax.grad(lambda x: abs(getattr(jnp.fft, name)(x)).sum())(x), oracle.grad(lambda x: abs(getattr(oracle.numpy.fft, name)(x)).sum())(x))
