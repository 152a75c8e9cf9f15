"""Where a program meets the host: printing, callbacks, several devices."""

import contextlib
import io

import numpy as np


def test_debug_print_runs_at_every_call(jax):
    @jax.jit
    def f(x):
        jax.debug.print("x = {}", x)
        jax.debug.print("shape {} dtype {}", x.shape, x.dtype)
        print("tracing")
        return x**2

    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        for v in (1.0, 2.0):
            jax.block_until_ready(f(v))
        jax.effects_barrier()
    out = buffer.getvalue()
    assert out.count("tracing") == 1 and "x = 1.0" in out and "x = 2.0" in out, out


def test_a_pure_callback_computes_in_numpy(jax, close):
    shape = jax.ShapeDtypeStruct((3,), np.float32)
    f = jax.jit(lambda x: jax.pure_callback(lambda v: np.sin(v).astype(np.float32), shape, x))
    close(f(np.arange(3, dtype=np.float32)), np.sin([0.0, 1.0, 2.0]))


def test_pmap_over_four_devices(child):
    child(
        """
        assert jax.local_device_count() == 4 and len(set(jax.devices())) == 4
        x = jnp.arange(4.0)
        y = jax.pmap(lambda x: x ** 2)(x)
        assert np.asarray(y).tolist() == [0, 1, 4, 9]
        assert len({s.device for s in y.addressable_shards}) == 4
        z = jax.pmap(lambda x: jax.lax.psum(x, "d") - x, axis_name="d")(x)
        assert np.asarray(z).tolist() == [6, 5, 4, 3]
        ring = [(i, (i + 1) % 4) for i in range(4)]
        w = jax.pmap(lambda x: jax.lax.ppermute(x, "d", ring), axis_name="d")(x)
        assert np.asarray(w).tolist() == [3, 0, 1, 2]
        g = jax.pmap(jax.grad(lambda p, x: (p * x) ** 2), in_axes=(None, 0))(2.0, x)
        assert np.asarray(g).tolist() == [0, 4, 16, 36]
        """,
        NUM_CPU_DEVICES="4",
    )


def test_pmap_trains_on_four_devices(child):
    child(
        """
        from functools import partial
        @partial(jax.pmap, axis_name="d", in_axes=(None, 0, 0))
        def step(p, x, y):
            g = jax.grad(lambda p: jnp.mean((x @ p - y) ** 2))(p)
            return p - 0.1 * jax.lax.pmean(g, "d")
        x = np.random.default_rng(0).standard_normal((4, 8, 3)).astype(np.float32)
        y = x @ np.array([1., -2., .5], np.float32)
        p = jnp.zeros(3)
        for _ in range(200):
            p = step(p, x, y)[0]
        np.testing.assert_allclose(np.asarray(p), [1, -2, .5], atol=1e-3)
        """,
        NUM_CPU_DEVICES="4",
    )


def test_pmap_refuses_more_lanes_than_devices(child):
    out = child(
        """
        try:
            jax.pmap(lambda x: x)(jnp.arange(5.0))
        except ValueError as error:
            print("refused:", error)
        """,
        NUM_CPU_DEVICES="4",
    )
    assert out.startswith("refused:")
