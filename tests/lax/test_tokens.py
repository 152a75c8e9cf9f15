"""`psend` and `precv`: what `ppermute` gives, in every kind of map, over every dtype, under every transformation, and between processes."""

import textwrap

import pytest
from processes import lines

pytestmark = pytest.mark.ours  # JAX has them on GPUs only


@pytest.fixture
def on_devices(forked_child, jax):
    """Runs code with eight CPU devices."""
    return lambda code: forked_child(SETUP.format(library=jax.__name__) + textwrap.dedent(code), NUM_CPU_DEVICES="8")


SETUP = """
from {library} import lax
from {library}.sharding import PartitionSpec as P, Mesh
devices = np.array(jax.devices())
mesh, line = Mesh(devices.reshape(4, 2), ("x", "y")), Mesh(devices, ("x",))
def smap(f, ins, outs, mesh=line, **k): return jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **k)
SHIFT, CYCLE, ONE = [(i, i + 1) for i in range(7)], [(i, (i + 3) % 8) for i in range(8)], [(7, 0)]
def message(x, axis, perm):
    like = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype), x)
    return lax.precv(lax.psend(x, axis, perm), like, axis, perm)
X = np.arange(64, dtype=np.float32).reshape(8, 8)
def same(a, b):
    a, b = (jax.random.key_data(v) if jnp.issubdtype(v.dtype, jax.dtypes.prng_key) else v for v in (a, b))
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
def refused(error, words, f):
    try: f()
    except error as e: assert words in str(e), e
    else: raise AssertionError(words)
"""


def test_every_dtype_and_every_map(on_devices):
    on_devices(
        """
        values = [jnp.asarray(X).astype(t) for t in ("float32", "bfloat16", "float16", "int8", "uint32", "bool", "complex64")]
        values += [jax.random.split(jax.random.key(0), (8, 3)), jnp.zeros((8, 0)), jnp.arange(8)]
        for x in values:
            for perm in (SHIFT, CYCLE, ONE, []):
                f, want = (lambda v: message(v, "x", perm)), (lambda v: lax.ppermute(v, "x", perm))
                for options in ({}, {"check_vma": False}):
                    for run in (lambda g: smap(g, P("x"), P("x"), **options), lambda g: jax.jit(smap(g, P("x"), P("x"), **options))):
                        same(run(f)(x), run(want)(x))
                same(jax.vmap(f, axis_name="x")(x), jax.vmap(want, axis_name="x")(x))
                same(jax.pmap(f, axis_name="x")(x), jax.pmap(want, axis_name="x")(x))
        """
    )


def test_trees_and_names(on_devices):
    """A token for each leaf; a name and a sequence of it are the same."""
    on_devices(
        """
        def two(a, b):
            s, t = lax.psend((a, b), ("x",), SHIFT)
            return lax.precv(t, b, "x", SHIFT), lax.precv(s, a, ["x"], SHIFT)
        b, a = smap(two, (P("x"), P("x")), P("x"))(X, X.astype(np.int32) * 2)
        moved = np.roll(X, 1, 0) * (np.arange(8) > 0)[:, None]
        same(a, moved), same(b, moved.astype(np.int32) * 2)
        tree = {"a": X, "b": [X * 2, jnp.arange(8)]}
        out = smap(lambda t: message(t, "x", CYCLE), P("x"), P("x"))(tree)
        jax.tree.map(same, out, jax.tree.map(lambda v: np.roll(v, 3, 0), tree))
        same(smap(lambda v: message(v, ("x", "y"), CYCLE), P(("x", "y")), P(("x", "y")), mesh)(X), np.roll(X, 3, 0))
        half = smap(lambda v: message(v, "y", [(0, 1)]), P("y"), P("y"), mesh, axis_names={"y"})
        same(jax.jit(half)(X), np.concatenate([0 * X[:4], X[:4]]))
        """
    )


def test_transformations(on_devices):
    on_devices(
        """
        body, plain = (lambda v: message(jnp.sin(v), "x", SHIFT)), (lambda v: lax.ppermute(jnp.sin(v), "x", SHIFT))
        f, g = (smap(h, P("x"), P("x")) for h in (body, plain))
        weights = jnp.cos(X)
        for run in (jax.grad, lambda h: jax.jit(jax.grad(h)), lambda h: jax.grad(jax.remat(h)), lambda h: jax.jacfwd(h), lambda h: jax.hessian(h)):
            same(run(lambda x: (f(x) * weights).sum())(X), run(lambda x: (g(x) * weights).sum())(X))
        many = jnp.stack([X, X + 1])
        same(jax.vmap(f)(many), jax.vmap(g)(many))
        inner = lambda h: smap(lambda v: jax.vmap(h, 1, 1)(v), P("x"), P("x"))
        same(inner(body)(X), inner(plain)(X))
        # tokens cross loops and branches, and barriers order what follows
        def pipeline(send):
            def step(c, _):
                received, token = send(c)
                return lax.cond(lax.axis_index("x") == 0, lambda: c, lambda: received + token), received
            return smap(lambda v: lax.scan(step, v, None, length=5)[0], P("x"), P("x"), check_vma=False)
        def by_message(c):
            token = lax.psend(c, "x", SHIFT)
            (c, token) = lax.optimization_barrier((c, token))
            return lax.precv(token, c, "x", SHIFT), 1
        same(jax.jit(pipeline(by_message))(X), jax.jit(pipeline(lambda c: (lax.ppermute(c, "x", SHIFT), 1)))(X))
        def late(v):
            token = lax.fori_loop(0, 3, lambda i, t: t, lax.psend(v, "x", CYCLE))
            return lax.precv(token, v, "x", CYCLE)
        same(jax.jit(smap(late, P("x"), P("x")))(X), np.roll(X, 3, 0))
        """
    )


def test_unsupported_arguments(on_devices):
    on_devices(
        """
        run = lambda f: smap(f, P("x"), P("x"))(X)
        refused(ValueError, "nothing was sent with this token", lambda: run(lambda v: lax.precv(lax.create_token(), v, "x", SHIFT)))
        refused(ValueError, "of a token that was sent along", lambda: run(lambda v: lax.precv(lax.psend(v, "x", SHIFT), v, "x", CYCLE)))
        refused(ValueError, "was to be received with a token of", lambda: run(lambda v: lax.precv(lax.psend(v, "x", SHIFT), v[0], "x", SHIFT)))
        refused(TypeError, "precv takes a token", lambda: run(lambda v: lax.precv(v, v, "x", SHIFT)))
        refused(NameError, "unbound axis name: z", lambda: run(lambda v: message(v, "z", SHIFT)))
        refused(ValueError, "", lambda: run(lambda v: message(v, "x", [(0, 1), (0, 2)])))
        """
    )


def test_between_processes():
    out = lines(
        """
        from ferrax.sharding import NamedSharding, PartitionSpec as P
        n = jax.device_count()
        mesh = jax.make_mesh((n,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        perm = [(k, k + 1) for k in range(n - 1)]
        def body(v):
            token = jax.lax.psend(v * 2, "x", perm)
            return jax.lax.precv(token, v, "x", perm)
        f = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
        for t in (np.float32, jnp.bfloat16, np.complex64, np.int8):
            a = jax.device_put(np.arange(3 * n).reshape(n, 3).astype(t), NamedSharding(mesh, P("x")))
            for s in f(a).addressable_shards:
                k = s.index[0].start
                assert np.asarray(s.data).tolist() == (np.asarray([[3 * k - 3 + j for j in range(3)]]) * 2 * (k > 0)).astype(t).tolist(), (k, s.data)
        print("received", i)
        """,
        processes=3,
        devices=2,
    )
    assert out == ["received 0", "received 1", "received 2"]
