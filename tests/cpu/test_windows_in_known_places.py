"""Windows whose places constants decide, against NumPy: in arrays that are one constant, in arguments, and in loops, for every way of updating."""

import itertools

import numpy as np
import pytest

NUMPY = {
    "set": lambda x, i, u: x.__setitem__(i, u),
    "add": lambda x, i, u: x.__setitem__(i, x[i] + u),
    "subtract": lambda x, i, u: x.__setitem__(i, x[i] - u),
    "multiply": lambda x, i, u: x.__setitem__(i, x[i] * u),
    "min": lambda x, i, u: x.__setitem__(i, np.minimum(x[i], u)),
    "max": lambda x, i, u: x.__setitem__(i, np.maximum(x[i], u)),
}
WINDOWS = {
    "middle": np.s_[1:-1, 2:5, 1:],
    "row": np.s_[2],
    "plane": np.s_[:, :, -1],
    "element": np.s_[1, 2, 3],
    "all": np.s_[:],
    "single along each": np.s_[1:2, 3:4, 2:3],
    "ends": np.s_[-1, 1:, :2],
    "last short": np.s_[:, 1:3, 0:1],
}
SHAPE = (4, 6, 7)


def data(rng, dtype, shape):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    x = rng.integers(-4, 5, shape)
    return (x + 1j * rng.integers(-4, 5, shape)).astype(dtype) if dtype == "complex64" else x.astype(dtype)


def expected(op, x, window, u):
    x = x.copy()
    NUMPY[op](x, window, u)
    return x


CASES = [
    (op, name, dtype)
    for op, name, dtype in itertools.product(NUMPY, WINDOWS, ("float32", "int32", "int8", "complex64", "bool"))
    if op in ("set", "max", "min") or dtype != "bool"
    if dtype != "complex64" or op in ("set", "add", "subtract")
]


@pytest.mark.parametrize("op, name, dtype", CASES)
def test_windows_are_numpys(jax, op, name, dtype):
    jnp, window, rng = jax.numpy, WINDOWS[name], np.random.default_rng(len(op) + len(name))
    x = data(rng, dtype, SHAPE)
    u = data(rng, dtype, x[window].shape)

    def update(x, u):
        return getattr(x.at[window], op)(u)

    def in_constant(u):
        return update(jnp.zeros(SHAPE, dtype), u)

    def in_full(u):
        return update(jnp.full(SHAPE, 2, dtype), u)

    def read_around(u):
        """Kernels that read the window's edges take it into themselves."""
        y = update(jnp.zeros(SHAPE, dtype), u)
        return jnp.roll(y, 1, 0) if dtype == "bool" else y[1:] + y[:-1]

    def in_loop(x, u):
        return jax.lax.fori_loop(0, 3, lambda i, x: update(x, u), x)

    zeros, full = np.zeros(SHAPE, dtype), np.full(SHAPE, 2, dtype)
    np.testing.assert_array_equal(jax.jit(update)(x, u), expected(op, x, window, u))
    np.testing.assert_array_equal(jax.jit(in_constant)(u), expected(op, zeros, window, u))
    np.testing.assert_array_equal(jax.jit(in_full)(u), expected(op, full, window, u))
    y = expected(op, zeros, window, u)
    np.testing.assert_array_equal(jax.jit(read_around)(u), np.roll(y, 1, 0) if dtype == "bool" else y[1:] + y[:-1])
    z = x
    for _ in range(3):
        z = expected(op, z, window, u)
    np.testing.assert_array_equal(jax.jit(in_loop)(x, u), z)


@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds", "fill"])
@pytest.mark.parametrize("start", [-9, -2, 0, 2, 3, 9])
def test_windows_that_reach_outside(jax, mode, start):
    """They are dropped, or moved inside, as a start that is not known is."""
    lax, jnp = jax.lax, jax.numpy
    inside = 0 <= start <= 2
    if mode == "promise_in_bounds" and not inside:
        return
    dims = lax.ScatterDimensionNumbers(update_window_dims=(0,), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,))

    def f(x, start, u):
        return lax.scatter(x, start[None], u, dims, mode=mode)

    x, u = np.arange(6.0, dtype=np.float32), np.float32([10, 20, 30, 40])
    dynamic = jax.jit(f)(x, np.int32(start), u)
    np.testing.assert_array_equal(jax.jit(lambda x, u: f(x, jnp.int32(start), u))(x, u), dynamic)
    constant = jax.jit(lambda u: f(jnp.zeros(6), jnp.int32(start), u))(u)
    np.testing.assert_array_equal(constant, jax.jit(f)(np.zeros(6, np.float32), np.int32(start), u))


@pytest.mark.parametrize("starts", [(0, 0), (1, 2), (-3, 1), (9, 9), (3, -1)])
def test_slices_at_known_places(jax, starts):
    """As at starts that are arguments."""
    lax = jax.lax
    x, u = np.arange(30.0, dtype=np.float32).reshape(5, 6), np.full((2, 3), -1, np.float32)

    def cut(x, *starts):
        return lax.dynamic_slice(x, starts, (2, 3))

    def put(x, u, *starts):
        return lax.dynamic_update_slice(x, u, starts)

    np.testing.assert_array_equal(jax.jit(lambda x: cut(x, *starts))(x), jax.jit(cut)(x, *starts))
    np.testing.assert_array_equal(jax.jit(lambda x, u: put(x, u, *starts))(x, u), jax.jit(put)(x, u, *starts))


def test_a_negative_zero_is_added_to_zero(jax):
    jnp = jax.numpy
    y = jax.jit(lambda u: jnp.zeros(8).at[2:6].add(u))(np.full(4, -0.0, np.float32))
    assert not np.signbit(np.asarray(y)).any()


def test_chains_of_updates(jax):
    """Several windows one after the other, which meet and cover each other."""
    jnp, rng = jax.numpy, np.random.default_rng(3)
    a, b = rng.random((5, 7), dtype=np.float32), rng.random((7, 9), dtype=np.float32)

    def f(lib, a, b):
        out = lib.zeros((7, 9), np.float32)
        for window, u in ((np.s_[1:6, 1:8], a), (np.s_[:, -1], b[:, 0]), (np.s_[0], b[2]), (np.s_[2:4, 3:], b[2:4, 3:])):
            if lib is np:
                out[window] = u
            else:
                out = out.at[window].set(u)
        return out

    np.testing.assert_array_equal(jax.jit(lambda a, b: f(jnp, a, b))(a, b), f(np, a, b))


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_pads_of_many_axes_are_numpys(jax, axes):
    """A grid is cut along one axis after the other."""
    jnp = jax.numpy
    x = np.arange(5**axes, dtype=np.float32).reshape((5,) * axes) + 1
    for lo, hi in itertools.product((0, 1, 2), repeat=2):
        widths = [(lo, hi)] * axes
        np.testing.assert_array_equal(jax.jit(lambda x: jnp.pad(x * 2, widths))(x), np.pad(x * 2, widths))
        grown = jax.jit(lambda x: jnp.pad(x, widths, constant_values=3) + jnp.pad(x, [(hi, lo)] * axes))(x)
        np.testing.assert_array_equal(grown, np.pad(x, widths, constant_values=3) + np.pad(x, [(hi, lo)] * axes))


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int8", "int32", "complex64", "bool"])
@pytest.mark.parametrize("n", [*range(1, 20), 31, 32, 33, 34])
def test_short_rows(jax, n, dtype):
    """Rows of a few elements, at each length: side by side, apart, repeated, and as columns of longer ones."""
    jnp = jax.numpy
    with jax.enable_x64(dtype == "float64"):
        x = jnp.asarray(np.random.default_rng(n).integers(-9, 9, (9, 11, 3 * n + 2)), dtype)
        host = np.asarray(x).astype(np.complex64 if dtype == "complex64" else np.float64)
        ways = {
            "windows": lambda x: x[1:8, 2:9, 1 : n + 1],
            "of three": lambda x: x[1:8, 2:9, 1 : 3 * n + 1 : 3],
            "backwards": lambda x: x[1:8, 2:9, n::-1],
            "columns": lambda x: x[:, :, 1:2] + 0 * x[:, :, 1 : n + 1] if dtype != "bool" else x[:, :, 1:2] | x[:, :, 1 : n + 1],
            "turned": lambda x: x[:, 1:9, : n + 1].transpose(1, 0, 2),
        }
        for name, f in ways.items():
            got = np.asarray(jax.jit(lambda x: jnp.where(f(x) == f(x), f(x), 0))(x)).astype(host.dtype)
            reference = f(host != 0).astype(host.dtype) if dtype == "bool" and name == "columns" else f(host)
            np.testing.assert_array_equal(got, reference, err_msg=name)


@pytest.mark.parametrize("kind", ["sum", "max", "prod", "two sums"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("n", [1024, 1025, 2047, 2048, 3000, 8191, 8192, 8193])
def test_long_reductions_in_loops_have_the_bits_of_others(jax, n, dtype, kind):
    """A loop's reduction of several blocks is taken in the order of one outside of loops."""
    jnp = jax.numpy
    with jax.enable_x64(dtype == "float64"):
        x = jnp.asarray(np.random.default_rng(n).normal(1, 0.01, n) * (3 if dtype == "int32" else 1), dtype)

        def reduced(x, least):
            of = jnp.where(x > least, x, 1)
            return {"sum": of.sum, "max": of.max, "prod": of.prod, "two sums": lambda: of.sum() - (of * of).sum()}[kind]()

        def loop(x):
            return jax.lax.fori_loop(0, 5, lambda i, y: y.at[i].set(reduced(x, x[i])), jnp.zeros(5, x.dtype))

        expected = [np.asarray(jax.jit(reduced)(x, x[i])) for i in range(5)]
        np.testing.assert_array_equal(np.asarray(jax.jit(loop)(x)), np.stack(expected))
