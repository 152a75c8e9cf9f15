"""Rows of a dimension that devices hold in parts, moved: the bits of one device, and each device receives what its part has of others."""

import pytest

pytestmark = pytest.mark.ours

PROGRAM = """
import hypothesis
from hypothesis import strategies as st
from ferrax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

lax, devices = jax.lax, jax.devices()
MESHES = [((8,), ("a",)), ((2, 4), ("a", "b")), ((4, 2), ("b", "a"))]
SPECS = [P("a"), P(None, "a"), P(("a", "b")), P("b", "a"), P("a", "b"), P(("b", "a"))]
DTYPES = ["float32", "bfloat16", "int8", "uint32", "bool", "complex64", "float8_e4m3fn", "int4"]

def drawn(rng, dtype, shape):
    x = rng.integers(-8, 8, shape)
    if jnp.issubdtype(dtype, jnp.inexact):  # signs of zeros and nans are bits too
        x = np.where(x == 0, -0.0, np.where(x == 1, np.nan, x))
    return jnp.array(x).astype(dtype)

def cases(dtype, n, i, k, s):
    # functions of x (of shape [n, 16]) and y (alike), and as how many parts of the result a device receives at most; 0: any
    one = jnp.ones((), dtype)
    yield "flip", lambda x, y: jnp.flip(x, 0), 1
    yield "flips", lambda x, y: jnp.flip(x), 1
    yield "roll", lambda x, y: jnp.roll(x, s, 0), 1
    yield "roll, traced", lambda x, y: jax.jit(lambda x, s: jnp.roll(x, s, 0))(x, s), 7
    yield "rolls", lambda x, y: jnp.roll(x, (s, k), (0, 1)), 1
    yield "roll by two", lambda x, y: jnp.roll(jnp.roll(x, s, 0), -k, 0), 0
    yield "stencil", lambda x, y: jnp.where(jnp.roll(x, 1, 0) == jnp.roll(x, -1, 0), x, y), 0
    yield "half", lambda x, y: x[: n // 2], 1
    yield "other half", lambda x, y: x[n // 2 :, ::2], 1
    yield "middle", lambda x, y: x[i : i + n // 2], 1
    yield "evens", lambda x, y: x[::2], 1
    yield "odds, backwards", lambda x, y: x[::-2], 1
    yield "less", lambda x, y: x[i:-1, 1:], 0
    yield "pad", lambda x, y: lax.pad(x, one, [(i, n - i, 0), (0, 0, 0)]), 1
    yield "pads", lambda x, y: lax.pad(x, one, [(8, 8, 0), (1, 15, 0)]), 0
    yield "shift", lambda x, y: lax.pad(x, one, [(s, -s, 0), (-k, k, 0)]), 0
    yield "apart", lambda x, y: lax.pad(x, one, [(1, 0, 1), (0, 0, 0)]), 0
    yield "concatenate", lambda x, y: jnp.concatenate([x, y]), 1
    yield "with rows of others", lambda x, y: jnp.concatenate([x[:i], y[i:]]), 1
    yield "with ends", lambda x, y: jnp.concatenate([y[-1:], x, y[:7]]), 0
    yield "backwards twice", lambda x, y: jnp.concatenate([x[i:], x[:i]])[::-1], 0
    yield "vmap", lambda x, y: jax.vmap(lambda c: jnp.roll(c, s), 1, 1)(x), 1
    # the fraction of a part that `rows` are
    beside = lambda rows: rows / (n // 8)
    # rows whose number is no multiple of the devices', and so many that each device has some
    few = lambda rows: beside(rows) if n > 16 else 0
    padded = lambda x, lo, hi: lax.pad(x, one, [(lo, hi, 0), (0, 0, 0)])
    other = lambda x, y: jnp.where(x == y, x, y)
    yield "differences", lambda x, y: padded(other(x[1:], x[:-1]), 0, 1), few(3)
    yield "differences at the ends", lambda x, y: jnp.concatenate([x[:1], other(x[1:], y[:-1])]), few(3)
    yield "inner rows", lambda x, y: padded(other(other(x[2:], x[1:-1]), x[:-2]), 1, 1), few(5)
    yield "inner rows, written back", lambda x, y: x.at[1:-1].set(other(x[2:], y[:-2])), few(5)
    yield "columns, written back", lambda x, y: x.at[:, k:].set(y[:, : 16 - k]), beside(0.01)
    yield "rows at numbers", lambda x, y: lax.dynamic_update_slice(y, x[: n - i], (i, 0)), 0
    yield "inner rows, of both dimensions", lambda x, y: lax.pad(other(x[2:, 1:], x[:-2, :-1]), one, [(1, 1, 0), (0, 1, 0)]), 0
    yield "differences of differences", lambda x, y: padded(other(other(x[1:], x[:-1])[1:], other(y[1:], y[:-1])[:-1]), 1, 1), 0
    yield "differences as they are", lambda x, y: other(x[1:], x[:-1]), 0
    yield "rows of differences", lambda x, y: other(x[1:], y[1:])[i // 2], 0
    yield "differences turned", lambda x, y: other(x[1:], y[:-1]).T[:, ::-1], 0
    yield "differences, reshaped", lambda x, y: other(x[1:], y[:-1]).reshape(-1, 2, 8), 0
    yield "vmap of differences", lambda x, y: jax.vmap(lambda c, d: jnp.append(other(c[1:], d[:-1]), c[:1]), 1, 1)(x, y), 0
    yield "differences in a loop", lambda x, y: lax.fori_loop(0, 3, lambda i, z: padded(other(z[1:], z[:-1]), 0, 1), x), 0
    if dtype not in ("bool", "complex64"):
        finite = lambda x: jnp.where(x == x, x, 2)
        yield "greatest difference", lambda x, y: jnp.max(other(x[1:], x[:-1]), 0), 0
        yield "sorted rows", lambda x, y: jnp.sort(finite(other(x[1:], x[:-1])), 0), 0
    if dtype in ("float32", "int8", "uint32"):
        f = lambda x: jnp.where(x == x, x, 2)
        yield "sum of differences", lambda x, y: (f(x[1:]) - f(x[:-1])).sum(0), 0
        yield "product of differences", lambda x, y: f(x[1:]).T @ f(y[:-1]), 0
        yield "running sum of differences", lambda x, y: jnp.cumsum(f(x[1:]) - f(x[:-1]), 0), 0
    yield "slice of slice", lambda x, y: jnp.concatenate([x[1:][:i], y[i:]]), 1
    f = lambda x: jnp.where(x == x, x, 2)
    if dtype == "float32":
        kernel = jnp.arange(16 * 16.0 * 3).reshape(16, 16, 3)
        conv = lambda x, step=1, pad="SAME", **more: lax.conv_general_dilated(f(x).T[None], kernel, (step,), pad, **more)
        yield "convolution", lambda x, y: conv(x), beside(2)
        yield "convolution by steps", lambda x, y: conv(x, 2), beside(2)
        yield "dilated", lambda x, y: conv(x, pad=[(2, 2)], rhs_dilation=(2,)), beside(4)
        yield "with more around", lambda x, y: conv(x, pad=[(i, k)]), 0
        yield "slope of convolution", lambda x, y: jax.grad(lambda x: (conv(x) * 3).sum())(x), 0
        yield "slope of the kernel", lambda x, y: jax.grad(lambda w: (lax.conv(f(x).T[None], w, (1,), "SAME")).sum())(kernel), 0
        plane = jnp.arange(9.0).reshape(1, 1, 3, 3)
        yield "transposed", lambda x, y: conv(x, pad=[(1, 2)], lhs_dilation=(2,)), beside(2)
        yield "of one row", lambda x, y: lax.conv(f(x).T[None], kernel[..., :1], (1,), "SAME"), beside(0.01)
        yield "slope by steps", lambda x, y: jax.grad(lambda x: (conv(x, 2) * 3).sum())(x), 0
        yield "slope of the kernel by steps", lambda x, y: jax.grad(lambda w: (lax.conv(f(x).T[None], w, (2,), "SAME")).sum())(kernel), 0
        yield "in a plane", lambda x, y: lax.conv(f(x)[None, None], plane, (1, 1), "SAME"), beside(2)
        yield "vmap of convolution", lambda x, y: jax.vmap(conv)(jnp.stack([x, y])), beside(2)
    if dtype in ("float32", "bfloat16", "int8", "uint32"):
        lowest = jnp.iinfo(dtype).min if jnp.issubdtype(dtype, jnp.integer) else -jnp.inf
        pool = lambda x, size, step, pad="SAME": lax.reduce_window(x, jnp.asarray(lowest, dtype), lax.max, size, step, pad)
        sums = lambda x, size, step: lax.reduce_window(f(x), jnp.zeros((), dtype), lax.add, size, step, "SAME")
        yield "greatest of three", lambda x, y: pool(x, (3, 1), (1, 1)), beside(2)
        yield "greatest in tiles", lambda x, y: pool(x, (2, 2), (2, 2), "VALID"), beside(0.01)
        yield "greatest around", lambda x, y: pool(x, (5, 3), (2, 1)), 0
        yield "sum of three", lambda x, y: sums(x, (3, 1), (1, 1)), beside(2)
        yield "sum of many", lambda x, y: sums(x, (i, k), (1, 2)), 0
        yield "running maximum", lambda x, y: lax.cummax(x, 0), beside(7)
        yield "running minimum, reverse", lambda x, y: lax.cummin(x, 0, reverse=True), beside(7)
        yield "running sum", lambda x, y: jnp.cumsum(f(x), 0, dtype=dtype), 0
        yield "running sum, reverse", lambda x, y: lax.cumsum(f(x), 0, reverse=True), 0
        yield "running product", lambda x, y: lax.cumprod(jnp.sign(f(x)), 0), 0
        yield "running maximum of columns", lambda x, y: jax.vmap(lax.cummax, 1, 1)(x), beside(7)
    if dtype == "float32":
        yield "slope of running sum", lambda x, y: jax.grad(lambda x: (jnp.cumsum(f(x), 0) * 3).sum())(x), 0
        yield "slope of sums in tiles", lambda x, y: jax.grad(lambda x: (sums(x, (2, 1), (2, 1)) * 3).sum())(x), beside(2)
        yield "slope of greatest in tiles", lambda x, y: jax.grad(lambda x: (pool(f(x), (2, 2), (2, 2), "VALID") * 3).sum())(x), beside(0.01)
        yield "slope of greatest of three", lambda x, y: jax.grad(lambda x: (pool(f(x), (3, 1), (1, 1)) * 3).sum())(x), 4
        yield "slope of sums of three", lambda x, y: jax.grad(lambda x: (sums(x, (3, 1), (1, 1)) * 3).sum())(x), 0
        w = jnp.arange(n * 16.0).reshape(n, 16)
        yield "slope of roll", lambda x, y: jax.grad(lambda x: (jnp.roll(x, s, 0) * w).sum())(x), 0
        yield "slope of differences", lambda x, y: jax.grad(lambda x: ((x[1:] - x[:-1]) * w[1:]).sum())(x), 0
        yield "slope of flip", lambda x, y: jax.grad(lambda x: (x[::-1] * w).sum())(x), 0
        yield "slope of evens", lambda x, y: jax.grad(lambda x: (x[::2] * w[: n // 2]).sum())(x), 0

@hypothesis.settings(max_examples=EXAMPLES, derandomize=EXAMPLES < 60, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(st.data())
def law(data):
    sizes, names = data.draw(st.sampled_from(MESHES))
    mesh = Mesh(np.array(devices).reshape(sizes), names, axis_types=(AxisType.Auto,) * len(names))
    named = lambda s: {a for d in s for a in (d if isinstance(d, tuple) else (d,)) if a}
    spec = data.draw(st.sampled_from([s for s in SPECS if named(s) <= set(names)]))
    dtype = data.draw(st.sampled_from(DTYPES))
    n = data.draw(st.sampled_from([16, 64]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    i, k = data.draw(st.integers(1, n // 2)), data.draw(st.integers(1, 15))
    x, y = drawn(rng, dtype, (n, 16)), drawn(rng, dtype, (n, 16))
    for name, f, parts in cases(dtype, n, i, k, data.draw(st.integers(-n, n))):
        want = jax.jit(f)(x, y)
        put = lambda v: jax.device_put(v, NamedSharding(mesh, spec))
        xs, ys = put(x), put(y)
        for run in (jax.jit(f), f):
            got = run(xs, ys)
            assert got.dtype == want.dtype and np.asarray(got).tobytes() == np.asarray(want).tobytes(), (name, dtype, spec, sizes, n, i, k)
        if parts and spec == P("a") and sizes == (8,):
            compiled = jax.jit(f).lower(xs, ys).compile()
            got, part = compiled.cost_analysis()["bytes communicated"], want.size * want.dtype.itemsize / 8
            assert got <= parts * part and "a" in compiled.output_shardings.spec, (name, dtype, got, part, n, i, k)

law()
"""


@pytest.mark.parametrize("examples", [20, pytest.param(200, marks=pytest.mark.nightly)])
def test_rows_that_move_have_the_bits_of_one_device(forked_child, examples):
    forked_child(PROGRAM.replace("EXAMPLES", str(examples)), NUM_CPU_DEVICES="8", timeout=600)
