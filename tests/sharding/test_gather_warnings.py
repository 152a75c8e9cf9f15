"""`jax_warn_of_gathers`: a program says where it gathers a whole array on every device, and nothing where none is, or where it was asked for."""

import pytest

pytestmark = pytest.mark.ours


def test_whole_arrays_on_every_device_are_reported_where_the_setting_says_so(forked_child):
    forked_child(
        """
        import warnings
        from ferrax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
        rows, whole = NamedSharding(mesh, P(("a", "b"))), NamedSharding(mesh, P())
        x = jax.device_put(jnp.arange(64.0 * 16).reshape(64, 16), rows)

        def reports(f, on=True):
            jax.config.update("jax_warn_of_gathers", on)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                f(x)
            return [str(w.message) for w in seen]

        def gathering(f):
            return {
                "here": jax.jit(f),
                "in a loop": jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda i, y: f(y) * 2, x)),
                "in a call": jax.jit(lambda x: jax.jit(f)(x + 1)),
                "differentiated": jax.jit(jax.grad(lambda x: (f(x * 2) ** 2).sum())),
            }

        for name, f in gathering(lambda x: jnp.fft.fft(x.reshape(-1)).real.reshape(x.shape)).items():
            [report] = [r for r in reports(f) if "<string>" in r][:1]
            assert "complex64[1024] whole on every device" in report, (name, report)
            assert not reports(jax.jit(lambda x: f(x)), on=False), name

        local = dict(pointwise=lambda x: x + 1, rolled=lambda x: jnp.roll(x, 1, 0), sorted=lambda x: jnp.sort(x, 0), summed=lambda x: x.sum(0), row=lambda x: x[7])
        asked = dict(result=jax.jit(lambda x: x + 1, out_shardings=whole), constraint=lambda x: jax.lax.with_sharding_constraint(x, whole) + 1)
        asked["body"] = jax.shard_map(lambda x: x + 1, mesh=mesh, in_specs=P(), out_specs=P())
        for name, f in (local | asked).items():
            assert not reports(jax.jit(f)), name
        """,
        NUM_CPU_DEVICES="8",
    )
