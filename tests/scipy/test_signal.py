"""Convolutions, spectra and trends: values by definition in numpy, laws, derivatives, batches, and what is refused."""

import itertools
import warnings

import ferrax as jax
import ferrax.numpy as jnp
import ferrax.scipy.signal as signal
import numpy as np
import pytest
from ferrax.test_util import check_grads


def drawn(*shape, seed=0, dtype=np.float32):
    r = np.random.default_rng(seed)
    x = r.standard_normal(shape) + 1j * r.standard_normal(shape)
    return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)


def near(got, want, tol=5e-6):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    np.testing.assert_allclose(got, want, rtol=0, atol=tol * max(1.0, np.abs(want).max(initial=0.0)))


def convolved(a, b, mode):
    """By definition."""
    full = np.zeros([n + m - 1 for n, m in zip(a.shape, b.shape, strict=True)], np.result_type(a, b))
    for i in np.ndindex(*b.shape):
        full[tuple([slice(k, k + n) for k, n in zip(i, a.shape, strict=True)])] += a * b[i]
    if mode == "full":
        return full
    sizes = a.shape if mode == "same" else [abs(n - m) + 1 for n, m in zip(a.shape, b.shape, strict=True)]
    starts = [(n - k) // 2 for n, k in zip(full.shape, sizes, strict=True)]
    return full[tuple([slice(s, s + k) for s, k in zip(starts, sizes, strict=True)])]


SHAPES = [((7,), (3,)), ((3,), (7,)), ((5,), (5,)), ((1,), (4,)), ((6, 5), (3, 2)), ((2, 3), (4, 5)), ((4, 3, 5), (2, 2, 3)), ((2, 3, 2, 3), (1, 2, 2, 2))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_convolutions(shapes, mode, dtype):
    a, b = drawn(*shapes[0], seed=1, dtype=dtype), drawn(*shapes[1], seed=2, dtype=dtype)
    want = convolved(a, b, mode)
    for method in ("auto", "direct", "fft"):
        near(signal.convolve(a, b, mode, method), want)
        near(signal.correlate(a, np.flip(b).conj(), mode, method), want)
    near(signal.fftconvolve(a, b, mode), want)
    if a.ndim == 2:
        near(signal.convolve2d(a, b, mode), want)
        if mode == "same":  # the middle of a correlation lies behind that of a convolution where the kernel's size is even
            want = convolved(a, b, "full")[tuple(slice(k // 2, k // 2 + n) for n, k in zip(a.shape, b.shape, strict=True))]
        near(signal.correlate2d(a, np.flip(b).conj(), mode), want)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_along_some_axes(mode):
    a, b = drawn(5, 3), drawn(3, 3, seed=1)
    want = np.stack([convolved(a[:, k], b[:, k], mode) for k in range(3)], 1)
    for axes in (0, (0,), [-2], (0, 0)):
        near(signal.fftconvolve(a, b, mode, axes=axes), want)
    near(signal.fftconvolve(a, a, axes=()), a * a)


def test_dtypes_of_convolutions():
    i, h = jnp.arange(4), jnp.arange(3, dtype=np.float16)
    assert signal.convolve(i, i).dtype == np.float32
    assert signal.convolve(i.astype(np.int8), h).dtype == np.float16
    assert signal.convolve(i > 1, i > 1).dtype == np.float32
    assert signal.convolve(h, h, method="fft").dtype == np.float16
    assert signal.convolve(drawn(3), drawn(3, dtype=np.complex64), mode="same").dtype == np.complex64
    assert signal.fftconvolve(jnp.float32(3), jnp.float32(2)) == 6


@pytest.mark.parametrize("f", [signal.convolve, signal.correlate, signal.fftconvolve])
def test_derivatives_and_batches_of_convolutions(f):
    with jax.enable_x64(True):
        a, b = drawn(2, 6, dtype=np.float64), drawn(2, 4, seed=1, dtype=np.float64)
        for mode in ("full", "same", "valid"):
            g = lambda a, b, mode=mode: f(a, b, mode)
            check_grads(g, (a[0], b[0]), order=2, modes=("fwd", "rev"))
            near(jax.vmap(g)(a, b), np.stack([g(*p) for p in zip(a, b, strict=True)]), 1e-12)
            near(jax.jit(jax.vmap(g, (None, 0)))(a[0], b), np.stack([g(a[0], w) for w in b]), 1e-12)


# ---- spectra ----


def segments(x, n, step):
    return np.stack([x[..., k : k + n] for k in range(0, x.shape[-1] - n + 1, step)], -2)


def hann(n):
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)


@pytest.mark.parametrize("n", [40, 41])
@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("scaling", ["density", "spectrum"])
def test_cross_densities(n, onesided, scaling):
    x, y = drawn(2, 200), drawn(2, 200, seed=1)
    w = hann(n)
    fx, fy = [np.fft.fft((s - s.mean(-1, keepdims=True)) * w) for s in (segments(x, n, n - 7), segments(y, n, n - 7))]
    want = (fx.conj() * fy).mean(-2) / (2.5 * (w**2).sum() if scaling == "density" else w.sum() ** 2)
    freqs = np.fft.fftfreq(n, 1 / 2.5)
    if onesided:
        want = want[..., : n // 2 + 1] * 2
        want[..., 0] /= 2
        if n % 2 == 0:
            want[..., -1] /= 2
        freqs = np.fft.rfftfreq(n, 1 / 2.5)
    f, p = signal.csd(x, y, 2.5, nperseg=n, noverlap=7, return_onesided=onesided, scaling=scaling)
    near(f, freqs)
    near(p, want)
    f, p = signal.csd(x.T, y.T, 2.5, nperseg=n, noverlap=7, return_onesided=onesided, scaling=scaling, axis=0)
    near(p, want.T)
    _, p = signal.welch(x, 2.5, nperseg=n, noverlap=7, return_onesided=onesided, scaling=scaling)
    assert p.dtype == np.float32
    near(p, signal.csd(x, x, 2.5, nperseg=n, noverlap=7, return_onesided=onesided, scaling=scaling)[1].real)


def test_options_of_spectra():
    x, y = drawn(300), drawn(200, seed=3)
    assert signal.welch(x)[1].shape == (151,)  # all of it
    near(signal.csd(x, y, nperseg=30)[1], signal.csd(x, np.pad(y, (0, 100)), nperseg=30)[1])
    near(signal.welch(x, nperseg=40, nfft=64)[0], np.fft.rfftfreq(64))
    near(signal.welch(x, nperseg=40, window=np.ones(40))[1], signal.welch(x, nperseg=40, window="boxcar")[1])
    near(signal.welch(x, window=jnp.ones(40))[1], signal.welch(x, nperseg=40, window="boxcar")[1])
    near(signal.welch(x, nperseg=40, detrend=lambda s: s)[1], signal.welch(x, nperseg=40, detrend=False)[1])
    n, s = 40, segments(x, 40, 20)
    powers = abs(np.fft.rfft((s - s.mean(-1, keepdims=True)) * hann(n))) ** 2 / (hann(n) ** 2).sum()
    powers[:, 1:-1] *= 2
    k = len(s)
    bias = sum((-1) ** (j + 1) / j for j in range(1, k + (k % 2)))
    near(signal.welch(x, nperseg=n, average="median")[1], np.median(powers, 0) / bias)
    with pytest.warns(UserWarning, match="nperseg=256 is greater than input_length=6, using nperseg=6"):
        assert signal.stft(x[:6])[2].shape == (4, 3)
    with pytest.warns(UserWarning, match="Input data is complex, switching to return_onesided=False"):
        assert signal.welch(x + 1j, nperseg=30)[1].shape == (30,)
    assert signal.welch(jnp.zeros(0))[1].shape == (0,)
    assert signal.stft(jnp.zeros((2, 0)))[2].shape == (2, 0)
    assert signal.welch(jnp.ones(90, jnp.bfloat16), nperseg=30)[1].dtype == np.float32


@pytest.mark.parametrize("boundary", ["even", "odd", "constant", "zeros", None])
@pytest.mark.parametrize("n", [20, 21])
def test_short_time_transforms(boundary, n):
    x = drawn(2, 107)
    modes = {"even": ("reflect", {}), "odd": ("reflect", {"reflect_type": "odd"}), "constant": ("edge", {}), "zeros": ("constant", {})}
    wide = x
    if boundary:
        mode, kw = modes[boundary]
        wide = np.pad(x, [(0, 0), (n // 2, n // 2)], mode=mode, **kw)
    step = n - n // 4
    wide = np.pad(wide, [(0, 0), (0, -(wide.shape[1] - n) % step)])
    want = np.fft.rfft(segments(wide, n, step) * hann(n)) / hann(n).sum()
    f, t, z = signal.stft(x, 10.0, nperseg=n, noverlap=n // 4, boundary=boundary)
    near(f, np.fft.rfftfreq(n, 0.1))
    near(t, (np.arange(want.shape[1]) * step + (0 if boundary else n / 2)) / 10)
    near(z, np.swapaxes(want, 1, 2))
    near(signal.stft(x.T, 10.0, nperseg=n, noverlap=n // 4, boundary=boundary, axis=0)[2], np.swapaxes(z, 0, 1))
    if boundary:
        # hann windows by quarters add up to no zero
        t, y = signal.istft(z, 10.0, nperseg=n, noverlap=n // 4)
        near(y[:, :107], x)
        near(t, np.arange(y.shape[0]) / 10)  # counted along the first axis, as in SciPy
        near(signal.istft(z[0], 10.0, nperseg=n, noverlap=n // 4)[0], np.arange(y.shape[1]) / 10)


def test_inverses_of_short_time_transforms():
    x = drawn(3, 96)
    _, _, z = signal.stft(x, nperseg=16)
    near(signal.istft(z, nperseg=16)[1], x)
    turned = np.moveaxis(np.asarray(z), (1, 2), (2, 0))
    near(np.moveaxis(np.asarray(signal.istft(turned, nperseg=16, time_axis=0, freq_axis=2)[1]), 0, 1), x)
    _, _, z = signal.stft(x.astype(np.complex64), nperseg=16, return_onesided=False)
    near(signal.istft(z, nperseg=16, input_onesided=False)[1], x)
    # parts where no window reaches are left as they are
    near(signal.istft(np.ones((5, 3)), window="boxcar", nperseg=8)[1], [4, 0, 0, 0, 4, 0, 0, 0])


def test_derivatives_of_spectra():
    with jax.enable_x64(True):
        x = drawn(30, dtype=np.float64)
        check_grads(lambda x: signal.stft(x, nperseg=8)[2], (x,), order=2, modes=("fwd", "rev"))
        check_grads(lambda x: signal.welch(x, nperseg=8)[1], (x,), order=2, modes=("fwd", "rev"))
        check_grads(lambda x: signal.istft(signal.stft(x, nperseg=8)[2] ** 2, nperseg=8)[1], (x,), order=1, modes=("fwd", "rev"))
        batch = drawn(3, 30, dtype=np.float64)
        near(jax.jit(jax.vmap(lambda x: signal.welch(x, nperseg=8)[1]))(batch), signal.welch(batch, nperseg=8)[1], 1e-12)
        f = jax.jit(lambda x, fs: signal.stft(x, fs=fs, nperseg=8))
        near(f(x, 2.0)[0], np.fft.rfftfreq(8, 0.5), 1e-12)


# ---- trends ----


@pytest.mark.parametrize("bp", [0, 4, [3, 7], [1, 9]], ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_trends(bp, axis):
    x = drawn(10, 10)
    rows = np.moveaxis(x, axis, -1).astype(float).copy()
    breaks = [0, *np.atleast_1d(bp), 10]
    for lo, hi in itertools.pairwise(sorted(set(breaks))):
        for r in rows:
            t = np.arange(hi - lo)
            r[lo:hi] -= np.polyval(np.polyfit(t, r[lo:hi], 1), t) if hi - lo > 1 else r[lo]
    near(signal.detrend(x, axis, bp=bp), np.moveaxis(rows, -1, axis))
    near(signal.detrend(x, axis, "constant"), x - x.mean(axis, keepdims=True))
    assert signal.detrend(jnp.arange(6)).dtype == np.float32


WINDOWS = {
    "boxcar": [1, 1, 1, 1, 1],
    "triang": [0.3333333333333333, 0.6666666666666666, 1, 0.6666666666666666, 0.3333333333333333],
    "bartlett": [0, 0.4, 0.8, 0.8, 0.4],
    "hann": [0, 0.3454915028125263, 0.9045084971874737, 0.9045084971874737, 0.3454915028125263],
    "cosine": [0.25881904510252074, 0.7071067811865475, 0.9659258262890682, 0.9659258262890683, 0.7071067811865476],
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name):
    """The spectrum of an impulse is the window where the impulse stands."""
    want = WINDOWS[name] if name != "triang" else [1 / 6, 0.5, 5 / 6, 5 / 6, 0.5]
    got = [signal.stft(np.eye(5)[k], window=name, nperseg=5, noverlap=0, boundary=None)[2][0, 0].real * sum(want) for k in range(5)]
    near(got, want)


REFUSED = [
    (lambda x: signal.convolve(x, x, mode="bad"), ValueError, "mode must be one of ['full', 'same', 'valid']"),
    (lambda x: signal.convolve(x, x, method="bad"), ValueError, "Got method='bad'; expected 'auto', 'fft', or 'direct'."),
    (lambda x: signal.convolve(x, x[None]), ValueError, "in1 and in2 must have the same number of dimensions"),
    (lambda x: signal.convolve(x[:0], x), ValueError, "zero-size arrays not supported in convolutions, got shapes (0,) and (6,)."),
    (lambda x: signal.convolve(x.reshape(2, 3), x.reshape(3, 2), mode="valid"), ValueError, "One input must be smaller than the other in every dimension."),
    (lambda x: signal.convolve2d(x, x), ValueError, "convolve2d() only supports 2-dimensional inputs."),
    (lambda x: signal.convolve2d(x[None], x[None], boundary="wrap"), NotImplementedError, "convolve2d() only supports boundary='fill', fillvalue=0"),
    (lambda x: signal.fftconvolve(x, x[None]), ValueError, "in1 and in2 should have the same dimensionality"),
    (lambda x: signal.fftconvolve(x, x, axes=3), ValueError, "axis 3 is out of bounds for array of dimension 1"),
    (lambda x: signal.fftconvolve(x.reshape(2, 3), x.reshape(3, 2), axes=1), ValueError, "mapped axes must have same shape;"),
    (lambda x: signal.detrend(x, type="x"), ValueError, "Trend type must be 'linear' or 'constant'."),
    (lambda x: signal.detrend(x, bp=[9]), ValueError, "Breakpoints must be non-negative and less than length of data along given axis."),
    (lambda x: signal.detrend(x, overwrite_data=True), NotImplementedError, "overwrite_data argument not implemented."),
    (lambda x: signal.stft(x, nperseg=4, noverlap=4), ValueError, "noverlap must be less than nperseg."),
    (lambda x: signal.stft(x, nperseg=4, window="nosuch"), ValueError, "Invalid window name 'nosuch' in parameter window='nosuch'!"),
    (lambda x: signal.stft(x, nperseg=4, nfft=2), ValueError, "nfft must be greater than or equal to nperseg."),
    (
        lambda x: signal.stft(x, nperseg=4, boundary="bad"),
        ValueError,
        "Unknown boundary option 'bad', must be one of: ['even', 'odd', 'constant', 'zeros', None]",
    ),
    (lambda x: signal.stft(x, nperseg=0), ValueError, "nperseg must be a positive integer"),
    (lambda x: signal.csd(x, x, nperseg=3, window=jnp.ones(4)), ValueError, "value specified for nperseg is different from length of window"),
    (lambda x: signal.csd(x, x[None], nperseg=3), ValueError, "two-arguments must have the same rank (1 vs 2)."),
    (lambda x: signal.welch(x, nperseg=3, scaling="x"), ValueError, "Unknown scaling: x"),
    (lambda x: signal.welch(x, nperseg=3, average="x"), ValueError, 'average must be "median" or "mean", got x'),
    (lambda x: signal.istft(x), ValueError, "Input stft must be at least 2d!"),
    (lambda x: signal.istft(x[None], time_axis=1, freq_axis=1), ValueError, "Must specify differing time and frequency axes!"),
    (lambda x: signal.istft(x.reshape(3, 2), window=jnp.ones(7)), ValueError, "window must have length of 4"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refusals(k):
    f, error, words = REFUSED[k]
    with pytest.raises(error) as e:
        f(jnp.arange(6.0))
    assert words in str(e.value)


@pytest.mark.oracle
@pytest.mark.parametrize("window", ["hann", "nuttall", "flattop", "parzen", "bohman", "barthann", "tukey", ("kaiser", 4.0), ("gaussian", 3.0), ("exponential", None, 2.0),
                                    ("general_hamming", 0.6), "blackman", "blackmanharris", "cosine", "triang", "bartlett", "hamming"], ids=str)  # fmt: skip
@pytest.mark.parametrize("n", [30, 31])
def test_windows_beside_jax(oracle, window, n):
    import jax.scipy.signal as theirs

    x = drawn(100)
    near(signal.stft(x, window=window, nperseg=n)[2], theirs.stft(x, window=window, nperseg=n)[2])


@pytest.mark.oracle
def test_beside_jax(oracle):
    import jax.scipy.signal as theirs

    x, y = drawn(2, 100), drawn(2, 90, seed=1)
    for kw in [{}, {"nperseg": 30}, {"nperseg": 30, "average": "median"}, {"nperseg": 30, "detrend": "linear", "fs": 3.0}, {"nperseg": 30, "nfft": 37}]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for ours, want in zip(signal.csd(x, y, **kw), theirs.csd(x, y, **kw), strict=True):
                near(ours, want)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_integers_are_summed_as_such_where_a_dtype_is_named(jnp, name, mode, dtype):
    a, v = np.arange(100, 107).astype(dtype), np.array([1, 5, 7], dtype)
    for kind in (np.int32, np.uint32, np.int8, np.float32):
        if np.dtype(kind).itemsize < a.itemsize or (kind is np.uint32 and dtype != "uint8"):
            continue  # refused, as in JAX
        got = getattr(jnp, name)(a, v, mode, preferred_element_type=kind)
        assert got.dtype == kind
        np.testing.assert_array_equal(got, getattr(np, name)(a.astype(kind), v.astype(kind), mode))
    assert getattr(jnp, name)(a, v, mode).dtype == np.float32


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize(
    ("given", "preferred", "says"),
    [
        ("int32", "int8", "narrower"), ("int32", "bfloat16", "narrower"), ("int32", "float16", "narrower"), ("int16", "int8", "narrower"),
        ("int32", "complex64", "incompatible"), ("int8", "complex64", "incompatible"), ("int32", "uint32", "signedness"), ("int8", "bool", "incompatible"),
        ("float32", "int32", "incompatible"), ("float32", "float16", "narrower"), ("float32", "complex64", "incompatible"), ("complex64", "float32", "incompatible"),
    ],
)  # fmt: skip
def test_convolutions_refuse_to_sum_as_less(jax, jnp, lax, name, given, preferred, says):
    """Integers that are summed as what has no room for them would wrap, silently."""
    a, v = jnp.ones(4, given), jnp.ones(2, given)
    with pytest.raises(TypeError, match=says):
        getattr(jnp, name)(a, v, preferred_element_type=preferred)
    with pytest.raises(TypeError, match=says):
        lax.conv_general_dilated(a[None, None], v[None, None], (1,), "VALID", preferred_element_type=preferred)
