"""Elements that native code widens, narrows, separates or interleaves where it reads and writes them: narrow dtypes, and pairs."""

import ml_dtypes
import numpy as np
import pytest

NARROW = ["int8", "uint8", "int16", "uint16", "bfloat16", "float16", "bool"]
LANES = ["int32", "uint32", "int64", "uint64", "float32", "float64"]
PAIRS = ["complex64", "complex128", *LANES]
SIZES = [1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1000, 4099]
RUNS = 40  # enough work for native code


def numbers(dtype, shape, seed=0):
    r = np.random.default_rng(seed)
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if dtype == bool:
        return r.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return r.integers(0 if dtype.kind == "u" else -90, 120, shape).astype(dtype)
    x = r.integers(-40, 40, shape) / 4.0
    return (x + 1j * r.integers(-40, 40, shape) / 4.0 if dtype.kind == "c" else x).astype(dtype)


def check(jax, f, *args):
    """Native code, on the same operands many times, is what NumPy gives, where every step is exact."""
    g = jax.jit(lambda *a: f(jax.numpy, *a))
    operands = [jax.numpy.asarray(a) for a in args]
    for _ in range(RUNS):
        out = g(*operands)
    for got, want in zip(jax.tree_util.tree_leaves(out), jax.tree_util.tree_leaves(f(np, *args)), strict=True):
        np.testing.assert_array_equal(np.asarray(got).astype(np.asarray(want).dtype), want)


def convert(x, dtype):
    return x.astype(getattr(ml_dtypes, dtype, dtype))


@pytest.fixture(autouse=True)
def wide(jax):
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_elements_are_widened_and_narrowed(jax, dtype, n):
    x, y = numbers(dtype, n), numbers(dtype, n, 1)
    check(jax, lambda np, x, y: (np.where(x > y, x, y), x == y, np.minimum(x, y)), x, y)
    if dtype != "bool":
        check(jax, lambda np, x, y: x + y, x, y)
        check(jax, lambda np, x, y: x * x - y, x, y)


@pytest.mark.parametrize("to", [*NARROW[:4], "int32", "float32", "bool"])
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_elements_become_others(jax, dtype, to):
    for n in (17, 64, 1001):
        x = numbers(dtype, n)
        if np.dtype(to).kind == "u" or to == "int8":
            x = np.abs(x.astype(np.float32)).clip(0, 100).astype(x.dtype)
        check(jax, lambda np, x: convert(x, to), x)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "bfloat16"])
def test_windows_of_narrow_elements(jax, dtype):
    for shape in ((9, 70), (40, 33), (130, 17), (64, 5)):
        x = numbers(dtype, shape)
        check(jax, lambda np, x: x[1:-1, 1:-1] + x[:-2, 2:] - x[2:, :-2], x)
        check(jax, lambda np, x: np.roll(x, 3, 1) - x, x)
        check(jax, lambda np, x: (x.T + x.T)[::-1], x)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_sums_and_products_of_narrow_integers(jax, dtype):
    for shape in ((5, 700), (33, 64), (300, 17)):
        x = numbers(dtype, shape)
        check(jax, lambda np, x: (x.sum(0, dtype=dtype), x.sum(1, dtype=dtype), x.max(1), x.min(0)), x)
        check(jax, lambda np, x: (x @ x[0], x[:, 0] @ x), x)
        check(jax, lambda np, x: x[0] @ x[-1], x)


@pytest.mark.parametrize("name", ["add", "multiply", "max", "min", "subtract"])
@pytest.mark.parametrize("dtype", NARROW[:6])
def test_scatters_into_narrow_elements(jax, jnp, dtype, name):
    combine = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum, "subtract": np.subtract}[name]
    for n, size in ((1, 7), (100, 7), (3000, 900), (5000, 3)):
        x, at = numbers(dtype, n), np.random.default_rng(2).integers(0, size, n)
        x = x if name != "multiply" else np.sign(x.astype(np.float32)).astype(x.dtype)
        x = x if np.dtype(x.dtype).kind in "iu" else (x.astype(np.float32) * (np.arange(n) < 20)).astype(x.dtype)  # exact sums
        want = np.ones(size, x.dtype)
        for k in range(n):
            want[at[k]] = combine(want[at[k]], x[k])
        got = getattr(jnp.ones(size, x.dtype).at[at], name)(x)
        np.testing.assert_array_equal(np.asarray(got).astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", PAIRS)
def test_pairs_are_separated_and_interleaved(jax, dtype, n):
    x, y = numbers(dtype, (n, 2)), numbers(dtype, (n, 2), 1)
    check(jax, lambda np, x, y: np.stack([x[:, 0] + y[:, 1], x[:, 1] - y[:, 0]], -1), x, y)
    flat = x.ravel()
    check(jax, lambda np, x: (x[::2] + 1, x[1::2] + 1, x[::2] - x[1::2]), flat)
    check(jax, lambda np, x: (x[:-1][::2] + 1, x[1:][::2] + 1), flat)
    if dtype.startswith("complex"):
        check(jax, lambda np, x, y: (x + y, x * y[:, ::-1], x.real - x.imag, x.conj()), x, y)
        check(jax, lambda np, x: (x.sum(0), x.real.sum(1)), x)


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "int64"])
def test_pairs_in_rows(jax, dtype):
    for shape in ((3, 50, 2), (70, 5, 2), (17, 64, 2), (4, 129, 2)):
        x = numbers(dtype, shape)
        check(jax, lambda np, x: np.stack([x[..., 1], x[..., 0] * 2], -1), x)
        check(jax, lambda np, x: x[:, 1:, 0] + x[:, :-1, 1], x)
        check(jax, lambda np, x: x[:, ::2, 0] + x[0, ::2, 1], x)
        check(jax, lambda np, x: np.concatenate([x[:, ::-1], x + x], 1), x)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_loops_over_complex_numbers_in_place(jax, dtype):
    for n in (3, 64, 1000, 5000):
        x = numbers(dtype, n)
        got = jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda i, x: x.conj() + 1j, x))(x)
        want = x
        for _ in range(9):
            want = want.conj() + np.asarray(1j, dtype)
        np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_bits_of_integers_of_any_width(jax, dtype):
    bits = np.dtype(dtype).itemsize * 8
    x = np.concatenate([np.arange(2**16), 2 ** np.arange(32), 2 ** np.arange(32) - 1, -np.arange(70)]).astype(dtype)
    unsigned = x.astype(f"uint{bits}").astype(np.int64)
    ones = sum((unsigned >> k) & 1 for k in range(bits))
    zeros = bits - sum((unsigned >> k) > 0 for k in range(bits))
    check(jax, lambda np, x: jax.lax.population_count(x) if np is jax.numpy else ones.astype(dtype), x)
    check(jax, lambda np, x: jax.lax.clz(x) if np is jax.numpy else zeros.astype(dtype), x)
    by = np.random.default_rng(1).integers(0, bits, x.size).astype(dtype)
    check(jax, lambda np, x, y: (x << y, x >> y, x << 3, x >> (bits - 1), (x >> 1) ^ x), x, by)
    shift = {"left": jax.lax.shift_left, "logical": jax.lax.shift_right_logical, "arithmetic": jax.lax.shift_right_arithmetic}
    signed = x.astype(f"int{bits}").astype(np.int64)
    wanted = {"left": (unsigned << by), "logical": unsigned >> by, "arithmetic": signed >> by}
    for name, f in shift.items():
        check(jax, lambda np, x, y, f=f, name=name: f(x, y) if np is jax.numpy else wanted[name].astype(dtype), x, by)
        for far in (bits, bits + 1, 100):  # as far as the width, or farther
            nothing = (signed >> 63 if name == "arithmetic" else 0 * signed).astype(dtype)
            check(jax, lambda np, x, f=f, far=far, nothing=nothing: f(x, x.dtype.type(far)) if np is jax.numpy else nothing, x)


def bits_of(x):
    return np.asarray(x).view({2: np.uint16, 4: np.uint32}[np.asarray(x).itemsize])


@pytest.mark.parametrize("n", [2**16, 2**16 - 5])
def test_every_half_keeps_its_bits(jax, jnp, n):
    """Numbers, infinities, subnormal numbers and nans with their payloads, read and written by native code."""
    x = np.arange(n, dtype=np.uint16).view(np.float16)
    p = np.arange(n) % 3 == 0
    moved = jax.jit(lambda p, x: (-x, jnp.abs(x), jnp.where(p, x, -x), jnp.where(p, x, 1), x.astype(jnp.float32)))
    for _ in range(RUNS):
        got = moved(p, x)
    bits = bits_of(x)
    wanted = [bits ^ 0x8000, bits & 0x7FFF, np.where(p, bits, bits ^ 0x8000), np.where(p, bits, 0x3C00)]
    for y, want in zip(got, wanted, strict=False):
        np.testing.assert_array_equal(bits_of(y), want)
    np.testing.assert_array_equal(np.asarray(got[4]), x.astype(np.float32))


def test_numbers_are_rounded_to_halves_once(jax, jnp):
    r = np.random.default_rng(0)
    exponents = r.integers(127 - 30, 127 + 18, 200000).astype(np.uint32) << 23
    x = (exponents | r.integers(0, 2**23, 200000).astype(np.uint32) | (r.integers(0, 2, 200000) << 31).astype(np.uint32)).view(np.float32)
    ties = (np.arange(2**15 - 1024, dtype=np.uint16).view(np.float16).astype(np.float32).view(np.uint32) + (1 << 12)).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.996, 65520, 2**-24, 2**-25, 1e-30, 1e30], np.float32)
    nans = np.array([0x7F800001, 0xFF801000, 0x7FA00000, 0xFFC00001], np.uint32).view(np.float32)
    x = np.concatenate([x, ties, -ties, np.tile(special, 5), nans])
    f = jax.jit(lambda x: (x.astype(jnp.float16), (x * 0.5).astype(jnp.float16), x.astype(jnp.float16) + jnp.float16(1)))
    for _ in range(RUNS):
        got = f(x)
    with np.errstate(all="ignore"):
        half = x.astype(np.float16)
        wanted = [half, (x * np.float32(0.5)).astype(np.float16), half + np.float16(1)]
    for y, want in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(y), want)
        same = ~np.isnan(want)
        np.testing.assert_array_equal(bits_of(y)[same], bits_of(want)[same])


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", [*NARROW[:6], *LANES])
def test_running_combinations_of_rows_and_columns(jax, dtype, name):
    f = {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate}[name]
    for shape, axis in [((1000,), 0), ((5, 70), 1), ((70, 3), 0), ((70, 9), 0), ((2, 60, 33), 1), ((3, 50, 32), 1), ((9, 1, 4), 0)]:
        x = numbers(dtype, shape)
        wide = x.dtype.kind not in "iu"
        if wide:  # small numbers, whose sums and products are exact in all dtypes
            x = (
                (np.sign(x.astype(np.float32)) * (np.arange(shape[-1]) % 16 < 3)).astype(x.dtype)
                if name == "cumsum"
                else np.sign(x.astype(np.float32)).astype(x.dtype)
            )
        for reverse in (False, True):
            got = getattr(jax.lax, name)(jax.numpy.asarray(x), axis=axis, reverse=reverse)
            y = x.astype(np.float64) if wide else x
            y = np.flip(f(np.flip(y, axis), axis=axis), axis) if reverse else f(y, axis=axis)
            np.testing.assert_array_equal(np.asarray(got).astype(np.float64), y.astype(x.dtype).astype(np.float64))


@pytest.mark.parametrize("to", ["int32", "int16", "uint32", None])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_products_of_matrices_of_narrow_integers(jax, dtype, to):
    for m, k, n in ((16, 64, 64), (33, 65, 47), (3, 1, 200), (2, 300, 31), (130, 129, 70), (70, 514, 128)):
        a, b = (np.iinfo(dtype).min + np.random.default_rng(m + s).integers(0, 2**16, (m * k, k * n)[s]) for s in (0, 1))
        a, b = a.astype(dtype).reshape(m, k), b.astype(dtype).reshape(k, n)
        a[0, :], b[:, 0] = np.iinfo(dtype).min, np.iinfo(dtype).min
        want = (a.astype(np.int64) @ b.astype(np.int64)).astype(to or dtype)
        for x, y, axes in ((a, b, (1, 0)), (a, b.T.copy(), (1, 1)), (a.T.copy(), b, (0, 0))):
            numbers = (((axes[0],), (axes[1],)), ((), ()))
            got = jax.lax.dot_general(jax.numpy.asarray(x), jax.numpy.asarray(y), numbers, preferred_element_type=to)
            np.testing.assert_array_equal(np.asarray(got), want)
        many = jax.jit(lambda a, b: jax.lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))), preferred_element_type=to))
        got = many(np.stack([a, a[::-1], a]), np.stack([b, b, b]))
        np.testing.assert_array_equal(np.asarray(got), np.stack([want, want[::-1], want]))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_move_as_pairs(jax, dtype):
    for shape in ((1, 5), (40, 17), (3, 128), (65, 2)):
        x, y = numbers(dtype, shape), numbers(dtype, shape, 1)
        check(jax, lambda np, x, y: np.concatenate([x, y, x[:, :1]], 1), x, y)
        check(jax, lambda np, x, y: (np.concatenate([x, y]), np.stack([x, y], 1), np.stack([x, y], -1)), x, y)
        check(jax, lambda np, x, y: (np.roll(x, 1, 1), np.pad(x, 2), np.pad(x[1:], ((0, 1), (3, 0)), mode="edge")) if shape[0] > 1 else x, x, y)
        check(jax, lambda np, x, y: (x.reshape(-1), x.ravel()[1:].reshape(-1, 1), x[:, ::-1], x.T, x[None].repeat(3, 0)), x, y)
        check(jax, lambda np, x, y: np.concatenate([x, y], 1)[:, 1:-1] * 2 + np.roll(y, 2, 1)[:, :1], x, y)
        check(jax, lambda np, x, y: (np.concatenate([x, y], 1).real, np.concatenate([x * 2, y], 1), np.concatenate([x, x]).conj()), x, y)


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "int8", "int16"])
def test_gathers_of_pairs_and_rows_of_few(jax, dtype):
    r = np.random.default_rng(3)
    for shape in ((40, 17), (300, 2), (5, 4)):
        x = numbers(dtype, shape)
        i, j = r.integers(0, shape[0], 77), r.integers(0, shape[1], (shape[0], 9))
        check(jax, lambda np, x, i: (x[i], x[i, 0], x[i][:, :1] + x[i][:, -1:]), x, i)
        check(jax, lambda np, x, j: (np.take_along_axis(x, j, 1), x[:, j[0]], x[j[:, 0] % 2, j[:, 0]]), x, j)
    x, far = numbers(dtype, (30, 2)), np.array([3, 40, -1, 29, -31])
    for mode in ("clip", "fill", "wrap"):
        got = np.asarray(jax.numpy.take(jax.numpy.asarray(x), far, axis=0, mode=mode, fill_value=7))
        at = {"clip": np.clip(far, 0, 29), "wrap": far % 30, "fill": np.where(far < 0, far + 30, far) % 30}[mode]
        want = x[at]
        if mode == "fill":
            want[(far >= 30) | (far < -30)] = 7
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("dtype", NARROW)
def test_every_narrow_number_becomes_the_nearest_float(jax, jnp, dtype, to):
    source = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.arange(2) != 0 if dtype == "bool" else np.arange(1 << 8 * source.itemsize, dtype=f"uint{8 * source.itemsize}").view(source)
    x = np.resize(x, max(x.size, 4096))
    with np.errstate(over="ignore", invalid="ignore"):
        want = convert(x, to)
        f = jax.jit(lambda x: (x.astype(to), -x.astype(to)))
        for _ in range(RUNS):
            got = f(x)
        np.testing.assert_array_equal(np.asarray(got[0]).astype(np.float64), want.astype(np.float64))
        np.testing.assert_array_equal(np.asarray(got[1]).astype(np.float64), -want.astype(np.float64))
