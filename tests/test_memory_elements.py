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
    if dtype not in ("bool", "float16"):
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
