"""The programs with which JAX's documents explain `pmap` and named axes, written with `shard_map`: values of NumPy, and those of `pmap` where it can say the same."""

import pytest

PRELUDE = """
import functools
from jax import lax, random
from jax.sharding import AxisType, PartitionSpec as P
devices = jax.devices()
mesh = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,), devices=devices[:8])
over = functools.partial(jax.shard_map, mesh=mesh)
close = lambda x, y, tol=1e-5: np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)
x = np.arange(32, dtype=np.float32).reshape(8, 4) / 8
"""

PROGRAMS = {
    "normalized across devices": """
        normalize = lambda x: x / lax.psum(x.sum(), "i")
        got = jax.jit(over(normalize, in_specs=P("i"), out_specs=P("i")))(x)
        close(got, x / x.sum())
        close(got, jax.pmap(lambda x: x / lax.psum(x.sum(), "i"), axis_name="i")(x))
    """,
    "convolution with halos": """
        def convolve(part, w):
            n = 8
            right = lax.ppermute(part[:1], "i", [(k, (k - 1) % n) for k in range(n)])
            left = lax.ppermute(part[-1:], "i", [(k, (k + 1) % n) for k in range(n)])
            return jnp.convolve(jnp.concatenate([left, part, right]), w, mode="valid")
        v, w = np.arange(64, dtype=np.float32), np.array([2.0, 3.0, 4.0], np.float32)
        got = over(convolve, in_specs=(P("i"), P()), out_specs=P("i"))(v, w)
        close(got, np.convolve(np.concatenate([v[-1:], v, v[:1]]), w, mode="valid"))
    """,
    "rule 30 over boards": """
        def step(board):
            n = 8
            left = lax.ppermute(board[-1:], "i", [(k, (k + 1) % n) for k in range(n)])
            right = lax.ppermute(board[:1], "i", [(k, (k - 1) % n) for k in range(n)])
            padded = jnp.concatenate([left, board, right])
            return padded[:-2] ^ (padded[1:-1] | padded[2:])
        board = (np.arange(64) == 32).astype(np.int32)
        run = jax.jit(over(lambda b: lax.fori_loop(0, 20, lambda _, b: step(b), b), in_specs=P("i"), out_specs=P("i")))
        want = board
        for _ in range(20):
            want = np.roll(want, 1) ^ (want | np.roll(want, -1))
        assert np.array_equal(run(board), want)
    """,
    "a regression whose gradients are averaged": """
        xs, key = np.linspace(-1, 1, 64, dtype=np.float32).reshape(64, 1), random.key(0)
        ys = 2 * xs + 1
        loss = lambda p, x, y: jnp.mean((x * p[0] + p[1] - y) ** 2)
        def update(p, x, y):
            value, grads = jax.value_and_grad(lambda p: lax.pmean(loss(p, x, y), "i"))(p)
            return jax.tree.map(lambda p, g: p - 0.5 * g, p, grads), value
        step = jax.jit(over(update, in_specs=(P(), P("i"), P("i")), out_specs=(P(), P())))
        p = (jnp.float32(0), jnp.float32(0))
        for _ in range(60):
            p, value = step(p, xs, ys)
        close(p[0], 2, 1e-3), close(p[1], 1, 1e-3)
    """,
    "matrix products by gathers and by rings": """
        a, b = np.cos(np.arange(64, dtype=np.float32)).reshape(8, 8), np.sin(np.arange(128, dtype=np.float32)).reshape(8, 16)
        gathers = over(lambda a, b: lax.all_gather(a, "i", tiled=True) @ b, in_specs=(P("i"), P(None, "i")), out_specs=P(None, "i"))
        close(gathers(a, b), a @ b)
        scatters = over(lambda a, b: lax.psum_scatter(a @ b, "i", scatter_dimension=0, tiled=True), in_specs=(P(None, "i"), P("i")), out_specs=P("i"))
        close(scatters(a, b), a @ b)
        def ring(a, b):
            n, me, rows = 8, lax.axis_index("i"), a.shape[0]
            def turn(k, carry):
                out, block = carry
                out = lax.dynamic_update_slice(out, block @ b, ((me - k) % n * rows, 0))
                return out, lax.ppermute(block, "i", [(j, (j + 1) % n) for j in range(n)])
            zeros = lax.pcast(jnp.zeros((n * rows, b.shape[1]), a.dtype), "i", to="varying")
            return lax.fori_loop(0, n, turn, (zeros, a))[0]
        close(over(ring, in_specs=(P("i"), P(None, "i")), out_specs=P(None, "i"))(a, b), a @ b)
    """,
    "batch norm and softmax over an axis with a name": """
        norm = lambda v: (v - lax.pmean(v.mean(0), "i")) / jnp.sqrt(lax.pmean((v * v).mean(0), "i") - lax.pmean(v.mean(0), "i") ** 2 + 1e-5)
        close(over(norm, in_specs=P("i"), out_specs=P("i"))(x), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5))
        def softmax(v):
            e = jnp.exp(v - lax.pmax(v.max(0), "i"))
            return e / lax.psum(e.sum(0), "i")
        e = np.exp(x - x.max(0))
        close(over(softmax, in_specs=P("i"), out_specs=P("i"))(x), e / e.sum(0))
    """,
    "keys of each device": """
        def draw(key):
            return random.normal(random.fold_in(key, lax.axis_index("i")), (1, 3))
        got = over(draw, in_specs=P(), out_specs=P("i"))(random.key(1))
        want = jnp.stack([random.normal(random.fold_in(random.key(1), k), (3,)) for k in range(8)])
        close(got, want)
    """,
    "two axes, as two pmaps in each other": """
        grid = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2, devices=devices[:8])
        f = lambda v: (lax.psum(v, "a"), lax.psum(v, "b"), lax.psum(v, ("a", "b")), v - lax.pmean(v, "b"))
        v = np.arange(8, dtype=np.float32).reshape(2, 4)
        one, other, both, rest = jax.shard_map(f, mesh=grid, in_specs=P("a", "b"), out_specs=(P(None, "b"), P("a"), P(), P("a", "b")))(v)
        close(one, v.sum(0, keepdims=True)), close(other, v.sum(1, keepdims=True)), close(both, v.sum().reshape(1, 1)), close(rest, v - v.mean(1, keepdims=True))
    """,
    "the gradient of a loss over devices": """
        w = np.linspace(-1, 1, 4, dtype=np.float32)
        loss = over(lambda w, v: lax.pmean(jnp.mean(jnp.tanh(v @ w) ** 2), "i"), in_specs=(P(), P("i")), out_specs=P())
        close(jax.grad(loss)(w, x), jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w))
        close(jax.jit(jax.grad(loss, 1))(w, x), jax.grad(lambda v: jnp.mean(jnp.tanh(v @ w) ** 2))(x))
    """,
    "batches transposed among devices": """
        v = np.arange(8 * 8 * 2, dtype=np.float32).reshape(8, 8, 2)
        swap = over(lambda v: lax.all_to_all(v, "i", split_axis=1, concat_axis=0, tiled=True), in_specs=P("i"), out_specs=P(None, "i"))
        close(swap(v), v)
        back = over(lambda v: lax.all_to_all(v, "i", split_axis=0, concat_axis=1, tiled=True), in_specs=P(None, "i"), out_specs=P("i"))
        close(back(swap(v)), v)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(forked_child, jax, name):
    import textwrap

    prelude = PRELUDE.replace("from jax", f"from {jax.__name__}")
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"} if jax.__name__ == "jax" else {}
    first = f"import os; os.environ.update({flags!r})" if flags else ""
    forked_child(prelude + textwrap.dedent(PROGRAMS[name]), first=first, NUM_CPU_DEVICES="8")
