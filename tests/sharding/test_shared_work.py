"""Sorts, running combinations and choices along a dimension that devices hold in parts: the bits of one device, and little is moved."""

import pytest

pytestmark = pytest.mark.ours

PROGRAM = """
import hypothesis
from hypothesis import strategies as st
from ferrax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

lax, devices = jax.lax, jax.devices()
MESHES = [((8,), ("a",)), ((2, 4), ("a", "b")), ((4, 2), ("b", "a")), ((2, 2), ("a", "b"))]
DTYPES = ["float32", "bfloat16", "int8", "uint32", "bool", "int32", "float16"]

def drawn(rng, dtype, shape, order):
    n, size = shape[0], np.prod(shape[1:], dtype=int)
    few = rng.integers(-8, 8, (n, size))
    rows = {
        "few": few,
        "many": rng.integers(-(2**30), 2**30, (n, size)),
        "equal": few[:1] + 0 * few,
        "in order": np.sort(few, 0),
        "backwards": np.sort(few, 0)[::-1],
        "periodic": few[np.arange(n) % 7],
        "one from the end": np.roll(np.sort(few, 0), 1, 0),
    }
    x = rows[order].astype(np.float64)
    if jnp.issubdtype(dtype, jnp.floating):  # signs of zeros and nans are bits too
        x = np.where(x == 0, -0.0, np.where(x == 1, np.nan, x))
    else:
        x = x % 100
    return jnp.array(x.reshape(shape)).astype(dtype)

def cases(dtype, n, k):
    # functions of x and y of shape [n, ..], and how many parts of x a device receives at most; 0: any
    position = lambda x: jnp.broadcast_to(jnp.arange(n, dtype=jnp.int32).reshape((n,) + (1,) * (x.ndim - 1)), x.shape)
    yield "sort", lambda x, y: jnp.sort(x, 0), 7
    yield "argsort", lambda x, y: jnp.argsort(x, 0), 0
    yield "by two keys", lambda x, y: lax.sort((x, y, position(x)), dimension=0, num_keys=2), 0
    yield "with others", lambda x, y: lax.sort((x, y, position(x)), dimension=0, num_keys=1), 0
    yield "backwards", lambda x, y: jnp.sort(x, 0, descending=True), 0
    yield "greatest", lambda x, y: jnp.argmax(x, 0), 1
    yield "least", lambda x, y: jnp.argmin(x, 0), 1
    yield "greatest of all", lambda x, y: jnp.argmax(x), 0
    yield "running maximum", lambda x, y: lax.cummax(jnp.where(x, 1, 0) if dtype == "bool" else x, 0), 0
    if dtype != "bool":
        yield "top", lambda x, y: lax.top_k(x, k, axis=0), 1
        yield "approximately", lambda x, y: lax.approx_max_k(x.astype("float32"), k, reduction_dimension=0), 1
        yield "least, approximately", lambda x, y: lax.approx_min_k(x.astype("float32"), k, reduction_dimension=0), 1
    if dtype == "float32":
        w = jnp.arange(n * 1.0)
        weighed = lambda y: (y * w[: y.shape[0]].reshape((-1,) + (1,) * (y.ndim - 1))).sum()
        yield "slope of sort", lambda x, y: jax.grad(lambda x: weighed(jnp.sort(x, 0)))(jnp.nan_to_num(x)), 0
        yield "slope of top", lambda x, y: jax.grad(lambda x: weighed(lax.top_k(x, k, axis=0)[0]))(jnp.nan_to_num(x)), 0
        yield "median", lambda x, y: jnp.median(x, 0), 0

def near(dtype, finite):
    yield "logarithms of sums", lambda x: lax.cumlogsumexp(finite(x), 0)
    yield "from the end", lambda x: lax.cumlogsumexp(finite(x), 0, reverse=True)
    if dtype == "float32":
        yield "slope", lambda x: jax.grad(lambda x: (lax.cumlogsumexp(finite(x), 0) * jnp.cos(finite(x))).sum())(x)
        yield "tangent", lambda x: jax.jvp(lambda x: lax.cumlogsumexp(x, 0), (finite(x),), (finite(x),))[1]

@hypothesis.settings(max_examples=EXAMPLES, derandomize=EXAMPLES < 25, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(st.data())
def law(data):
    sizes, names = data.draw(st.sampled_from(MESHES))
    mesh = Mesh(np.array(devices[: np.prod(sizes)]).reshape(sizes), names, axis_types=(AxisType.Auto,) * len(names))
    spec = data.draw(st.sampled_from([P(s) for s in [names, names[:1], names[::-1]]]))
    dtype, order = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(["few", "many", "equal", "in order", "backwards", "periodic", "one from the end"]))
    shape = data.draw(st.sampled_from([(16384,), (8192, 3), (64, 16), (16, 8, 4), (32,)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    k = data.draw(st.integers(1, 5))
    x, y = drawn(rng, dtype, shape, order), drawn(rng, dtype, shape, data.draw(st.sampled_from(["few", "many"])))
    put = lambda v: jax.device_put(v, NamedSharding(mesh, spec))
    xs, ys = put(x), put(y)
    told = (dtype, order, spec, sizes, shape, k)
    for name, f, parts in cases(dtype, shape[0], k):
        want = jax.jit(f)(x, y)
        for run in (jax.jit(f), f):
            for got, one in zip(jax.tree.leaves(run(xs, ys)), jax.tree.leaves(want), strict=True):
                assert got.dtype == one.dtype and np.asarray(got).tobytes() == np.asarray(one).tobytes(), (name, *told)
        if parts and sizes == (8,) and shape[0] >= 8192:
            got = jax.jit(f).lower(xs, ys).compile().cost_analysis()["bytes communicated"]
            assert got <= parts * x.size * max(x.dtype.itemsize, 4) / 8, (name, got, *told)
    if jnp.issubdtype(dtype, jnp.floating) and shape[0] <= 64:
        finite = lambda x: jnp.where(jnp.abs(x) <= 8, x, 0)
        for name, f in near(dtype, finite):
            want, got = np.asarray(jax.jit(f)(x), np.float64), np.asarray(jax.jit(f)(xs), np.float64)
            np.testing.assert_allclose(got, want, rtol=3e-5 if dtype == "float32" else 2e-2, atol=1e-5, err_msg=str((name, *told)))

def meshes_agree():
    x = jnp.array(np.random.default_rng(0).normal(size=(64, 4)), "float32")
    bits = set()
    for sizes, names in MESHES[:3]:
        mesh = Mesh(np.array(devices).reshape(sizes), names, axis_types=(AxisType.Auto,) * len(names))
        y = jax.jit(lambda x: lax.cumlogsumexp(x, 0))(jax.device_put(x, NamedSharding(mesh, P(names))))
        bits.add(np.asarray(y).tobytes())
    assert len(bits) == 1

def long_vectors_move_little():
    mesh = Mesh(np.array(devices), ("a",), axis_types=(AxisType.Auto,))
    x = jax.ShapeDtypeStruct((2**22,), "float32", sharding=NamedSharding(mesh, P("a")))
    costs = jax.jit(jnp.sort).lower(x).compile().cost_analysis()
    assert costs["bytes communicated"] <= 1.3 * 4 * 2**22 / 8, costs

law()
meshes_agree()
long_vectors_move_little()
"""


@pytest.mark.parametrize("examples", [12, pytest.param(100, marks=pytest.mark.nightly)])
def test_what_devices_share_has_the_bits_of_one_device(forked_child, examples):
    forked_child(PROGRAM.replace("EXAMPLES", str(examples)), NUM_CPU_DEVICES="8", timeout=600)
