"""Reads and writes by index along a dimension that devices hold in parts: the bits of one device, and no device receives more than what is read."""

import pytest

pytestmark = pytest.mark.ours

PROGRAM = """
import hypothesis
from hypothesis import strategies as st
from ferrax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

lax, devices = jax.lax, jax.devices()
MESHES = [((8,), ("a",)), ((2, 4), ("a", "b")), ((4, 2), ("b", "a"))]
SPECS = [P("a"), P(None, "a"), P(("a", "b")), P("b", "a"), P("a", "b")]
DTYPES = ["float32", "bfloat16", "float16", "int8", "uint32", "bool", "complex64", "float8_e4m3fn", "int4"]

def drawn(rng, dtype, shape):
    x = rng.integers(-8, 8, shape)
    if jnp.issubdtype(dtype, jnp.inexact):  # signs of zeros and nans are bits too
        x = np.where(x == 0, -0.0, np.where(x == 1, np.nan, x))
    return jnp.array(x).astype(dtype)

def cases(dtype, n, i, j, k, at):
    # functions of x (of shape [n, 16]) and u (rows), and the rows that a device may get where it does not hold them; None: no more than all
    yield "row", lambda x, u: x[i], 1
    yield "row, computed", lambda x, u: x[jnp.asarray(at)[0]], 1
    yield "slice", lambda x, u: x[i : i + k], k
    yield "strided", lambda x, u: x[i :: n // 2, ::3], 2
    yield "dynamic_slice", lambda x, u: lax.dynamic_slice(x, (at[0], j), (k, 4)), k
    yield "take clip", lambda x, u: jnp.take(x, at, axis=0, mode="clip"), 4
    yield "take fill", lambda x, u: jnp.take(x, at, axis=0, mode="fill"), 4
    yield "points", lambda x, u: x.at[at, at % 7].get(mode="fill", fill_value=3), 4
    yield "columns", lambda x, u: x[:, at % 16], None
    yield "set row", lambda x, u: x.at[i].set(u[0]), 0
    yield "set rows", lambda x, u: x.at[at].set(u), 0
    yield "set rows, clip", lambda x, u: x.at[at].set(u, mode="clip"), 0
    yield "set points", lambda x, u: x.at[at, at % 5].set(u[:, 0]), 0
    yield "update", lambda x, u: lax.dynamic_update_slice(x, u[:k], (at[0], 0)), 0
    yield "vmap of rows", lambda x, u: jax.vmap(lambda a: x[a])(at), 4
    yield "vmap over columns", lambda x, u: jax.vmap(lambda c: c[i], in_axes=1)(x), 1
    if x_is_summed:
        yield "add rows", lambda x, u: x.at[at].add(u), 0
    if dtype == "float32":
        yield "slope of rows", lambda x, u: jax.grad(lambda x: (x[at] * jnp.nan_to_num(u)).sum())(x), None
        yield "slope of a slice", lambda x, u: jax.grad(lambda x: (x[i : i + k] * 3).sum())(x), None
        yield "slope of a row", lambda x, u: jax.grad(lambda x: jnp.nan_to_num(x[at[0]]).sum())(x), None
        yield "slope of rows that are set", lambda x, u: jax.grad(lambda x: x.at[at].set(u).sum())(x), None

@hypothesis.settings(max_examples=EXAMPLES, derandomize=EXAMPLES < 60, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(st.data())
def law(data):
    global x_is_summed
    sizes, names = data.draw(st.sampled_from(MESHES))
    mesh = Mesh(np.array(devices).reshape(sizes), names, axis_types=(AxisType.Auto,) * len(names))
    named = lambda s: {a for d in s for a in (d if isinstance(d, tuple) else (d,)) if a}
    spec = data.draw(st.sampled_from([s for s in SPECS if named(s) <= set(names)]))
    dtype = data.draw(st.sampled_from(DTYPES))
    n = data.draw(st.sampled_from([16, 64]))
    x_is_summed = dtype in ("float32", "uint32", "complex64")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    i, k = data.draw(st.integers(0, n - 5)), data.draw(st.integers(1, 4))
    at = jnp.array(rng.integers(-n - 2, n + 3, 4), data.draw(st.sampled_from(["int32", "int16", "int8"])))
    x, u = drawn(rng, dtype, (n, 16)), drawn(rng, dtype, (4, 16))
    for name, f, rows in cases(dtype, n, i, data.draw(st.integers(0, 12)), k, at):
        want = jax.jit(f)(x, u)
        cut = jax.device_put(x, NamedSharding(mesh, spec))
        for run in (jax.jit(f), f):
            got = run(cut, u)
            assert got.dtype == want.dtype and np.asarray(got).tobytes() == np.asarray(want).tobytes(), (name, dtype, spec, sizes, at)
        moves = spec == P("a") and dtype in ("float32", "bfloat16", "float16", "int8", "uint32") and rows is not None and n == 64
        if moves:
            got = jax.jit(f).lower(cut, u).compile().cost_analysis()["bytes communicated"]
            assert got <= 2 * rows * 16 * x.dtype.itemsize * 7, (name, dtype, got)

law()
"""


@pytest.mark.parametrize("examples", [20, pytest.param(200, marks=pytest.mark.nightly)])
def test_indexed_reads_and_writes_have_the_bits_of_one_device(forked_child, examples):
    forked_child(PROGRAM.replace("EXAMPLES", str(examples)), NUM_CPU_DEVICES="8", timeout=600)
