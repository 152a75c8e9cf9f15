"""Calls of jitted functions and eager operations on arrays in parts: values of the whole, shardings as JAX gives them, and its errors."""

import textwrap

import pytest
from parts_prelude import PRELUDE

pytestmark = pytest.mark.ours


@pytest.fixture
def on_devices(forked_child, jax):
    """Runs code with eight CPU devices."""
    return lambda code: forked_child(PRELUDE.format(library=jax.__name__) + SETUP + textwrap.dedent(code), NUM_CPU_DEVICES="8")


SETUP = """
mesh = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
S = lambda *spec, mesh=mesh: NamedSharding(mesh, P(*spec))
X = np.arange(64, dtype=np.float32).reshape(8, 8) % 7 - 3
Y = np.arange(64, dtype=np.float32).reshape(8, 8) % 5 - 1
put = jax.device_put
lies = lambda a, *spec: a.sharding == S(*spec) or a.sharding.is_equivalent_to(S(*spec), a.ndim)
"""


def test_results_have_the_sharding_of_their_operands(on_devices):
    on_devices(
        """
        x, z = put(X, S("x", "y")), put(X, S("x"))
        for y, spec in [(x + 1, ("x", "y")), (x.T, ("y", "x")), (x.sum(0), ("y",)), (x.sum(), ()), (x[0], ("y",)), (jnp.exp(z), ("x",)), (z.T, (None, "x")),
                        (z + x, ("x", "y")), (x + z, ("x", "y")), (put(X, S()) + 1, ()), (x @ x, ("x", "y"))]:
            assert y.sharding.spec == P(*spec) and y.committed and y.sharding.mesh == mesh, (y.sharding, spec)
        assert np.array_equal(x @ x, X @ X) and np.array_equal(z + x, X + X)
        f = jax.jit(lambda x: (x * 2, x.sum(1)))
        a, b = f(x)
        assert a.sharding == S("x", "y") and b.sharding == S("x") and np.array_equal(b, X.sum(1)) and f._cache_size() == 1
        assert f(z)[0].sharding == S("x") and f(X)[0].sharding == SingleDeviceSharding(devices[0])
        assert (x + jnp.asarray(Y)).sharding == S("x", "y") and (x + Y).sharding == S("x", "y") and (2 * x).sharding == S("x", "y")
        explicit = jax.make_mesh((4, 2), ("x", "y"))
        e = put(X, S("x", mesh=explicit))
        assert (e + 1).sharding == S("x", None, mesh=explicit) and (x + 1).sharding.mesh == mesh and (e + 1).sharding.mesh == explicit
        one = Mesh(np.array(devices[:1]), ("x",))
        o = put(X, S("x", mesh=one))
        assert (o + 1).sharding == S("x", mesh=one) and jax.jit(lambda x: x.sum())(o).sharding == S(mesh=one)
        """
    )


def test_values_are_those_of_the_whole(on_devices):
    on_devices(
        """
        programs = [
            lambda x, y: x @ y, lambda x, y: jnp.sort(x, 0), lambda x, y: jnp.cumsum(x, 1), lambda x, y: jnp.concatenate([x, y]), lambda x, y: x.reshape(2, 4, 8),
            lambda x, y: x[1:, ::2], lambda x, y: x.at[0].set(1.0), lambda x, y: jnp.where(x > y, x, y).max(1), lambda x, y: x.argmax(0), lambda x, y: jnp.roll(x, 1, 0),
            lambda x, y: jax.lax.scan(lambda c, a: (c + a, c * a), x[0], y), lambda x, y: jax.lax.fori_loop(0, 3, lambda i, a: a * 2 + y, x),
            lambda x, y: jax.grad(lambda x: (jnp.tanh(x @ y) ** 2).sum())(x), lambda x, y: jax.vmap(lambda a, b: a @ b)(x, y), lambda x, y: jnp.linalg.qr(x)[1],
            lambda x, y: jax.random.normal(jax.random.key(0), (8, 8)) * x, lambda x, y: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, y), lambda x, y: jnp.fft.fft(x).real,
        ]
        specs = [(), ("x",), (None, "y"), ("x", "y"), ("y", "x"), (("x", "y"),), (None, ("y", "x"))]
        for f in programs:
            want = jax.tree.leaves(f(jnp.asarray(X), jnp.asarray(Y)))
            for i, spec in enumerate(specs):
                x, y = put(X, S(*spec)), put(Y, S(*specs[i * 3 % len(specs)]))
                for g in (f, jax.jit(f)):
                    for a, b in zip(jax.tree.leaves(g(x, y)), want, strict=True):
                        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-4)
        """
    )


def test_shardings_of_jit(on_devices):
    on_devices(
        """
        f = jax.jit(lambda x, y: x @ y, in_shardings=(S("x"), None), out_shardings=S(None, "y"))
        r = f(X, Y)
        assert r.sharding == S(None, "y") and np.array_equal(r, X @ Y) and r.committed
        assert f(put(X, S("x")), Y).sharding == S(None, "y")
        refused(ValueError, "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: NamedSharding(", lambda: f(put(X, S("x", "y")), Y))
        g = jax.jit(lambda x: {"a": x, "b": (x.sum(), x.T)}, out_shardings={"a": S("x"), "b": S()})
        out = g(X)
        assert out["a"].sharding == S("x") and out["b"][0].sharding == S() and out["b"][1].sharding == S()
        refused(IndivisibleError, "is partitioned 4 times", lambda: jax.jit(lambda x: x, in_shardings=S("x"))(np.ones(7)))
        refused(IndivisibleError, "is partitioned 4 times", lambda: jax.jit(lambda x: x, out_shardings=S("x"))(np.ones(7)))
        refused(ValueError, "the wrong length", lambda: jax.jit(lambda x: x, in_shardings=(S(), S()))(X))
        refused(RuntimeError, "requires a non-empty mesh in context", lambda: jax.jit(lambda x: x, in_shardings=P("x"))(X))
        h = jax.jit(lambda x: x * 2, in_shardings=P("x"), out_shardings=P(None, "y"))
        other = Mesh(np.array(devices[:4]).reshape(2, 2), ("x", "y"))
        for m in (mesh, other, mesh):
            with jax.set_mesh(m):
                r = h(X)
                assert r.sharding == S(None, "y", mesh=m) and np.array_equal(r, X * 2)
        # within another function, and under transformations
        assert np.array_equal(jax.jit(lambda x: f(x, x) + 1)(X), X @ X + 1) and np.array_equal(jax.grad(lambda x: f(x, Y).sum())(X), np.ones((8, 8)) @ Y.T)
        donated = put(X, S("x"))
        assert jax.jit(lambda x: x + 1, donate_argnums=0)(donated).sharding == S("x") and donated.is_deleted()
        """
    )


def test_constraints(on_devices):
    on_devices(
        """
        wsc = jax.lax.with_sharding_constraint
        assert wsc(X, S("x")).sharding == S("x")
        r = jax.jit(lambda x: wsc(x * 2, S(None, "y")))(X)
        assert r.sharding.is_equivalent_to(S(None, "y"), 2) and np.array_equal(r, X * 2)
        r = jax.jit(lambda x: wsc(x * 2, S(None, "y")) + 1)(put(X, S("x")))
        assert np.array_equal(r, X * 2 + 1)
        with jax.set_mesh(mesh):
            assert np.array_equal(jax.jit(lambda x: wsc(x, P("y")).sum())(X), X.sum())
        assert np.array_equal(jax.grad(lambda x: (wsc(x * x, S("y")) ** 2).sum())(jnp.asarray(X)), 4 * X**3)
        assert np.array_equal(jax.vmap(lambda x: wsc(x + 1, S("x")))(X), X + 1) and np.array_equal(jax.jit(lambda x: wsc(x, S("x")))(np.ones(7)), np.ones(7))
        refused(RuntimeError, "with_sharding_constraint requires a non-empty mesh in context", lambda: jax.jit(lambda x: wsc(x, P("x")))(X))
        """
    )


def test_devices_that_do_not_agree(on_devices):
    on_devices(
        """
        x = put(X, S("x", "y"))
        few = Mesh(np.array(devices[:4]), ("a",))
        for other in (put(X, devices[0]), put(X, S("a", mesh=few))):
            for f in (lambda x, y: x + y, jax.jit(lambda x, y: x + y)):
                refused(ValueError, "Received incompatible devices for jitted computation. Got", lambda f=f: f(x, other))
        refused(ValueError, "Received incompatible devices for jitted computation", lambda: jax.jit(lambda x: x, out_shardings=S("a", mesh=few))(x))
        # the same devices, another mesh
        y = put(Y, S("a", mesh=Mesh(np.array(devices), ("a",))))
        assert np.array_equal(x + y, X + Y)
        """
    )


def test_stages(on_devices):
    on_devices(
        """
        x = put(X, S("x", "y"))
        c = jax.jit(lambda x: x.sum(0)).lower(x).compile()
        assert c.input_shardings == ((S("x", "y"),), {}) and c.output_shardings == S("y") and c(x).sharding == S("y") and np.array_equal(c(x), X.sum(0))
        refused(ValueError, "Computation was compiled for input shardings that disagree", lambda: c(put(X, S("x"))))
        s = jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=S("x"))
        lowered = jax.jit(lambda x: x.sum(0)).lower(s)
        assert "psum" in lowered.as_text() and lowered.compile().input_shardings == ((S("x"),), {}) and np.array_equal(lowered.compile()(put(X, S("x"))), X.sum(0))
        assert jax.eval_shape(lambda x: x @ x.T, x).shape == (8, 8) and jax.ShapeDtypeStruct.like(x).sharding == S("x", "y")
        """
    )


def test_host_code_and_pending_values(on_devices):
    on_devices(
        """
        seen = []
        f = jax.jit(lambda x: (jax.debug.callback(lambda a: seen.append(np.asarray(a)), x.sum()), x * 2)[1])
        r = f(put(X, S("x")))
        jax.effects_barrier()
        assert len(seen) == 1 and seen[0] == X.sum() and np.array_equal(r, X * 2)
        big = put(np.ones((1024, 1024), np.float32), S("x", "y"))
        g = jax.jit(lambda x: (x @ x) / 1024)
        for _ in range(4):
            big = g(big)  # each waits for the one before on all devices
        assert np.array_equal(big, np.ones((1024, 1024)))
        """
    )
