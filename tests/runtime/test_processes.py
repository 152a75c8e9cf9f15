"""Runs of several processes: who each is, what they gather, and what they say when they differ. Programs run under `mpirun` where mpi4py and an MPI are installed."""

import pathlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from processes import lines, mpirun

pytestmark = pytest.mark.ours  # JAX's processes find each other by a coordinator

# one device for each process is what a user has who sets nothing
EACH = pytest.mark.parametrize("devices", [1, 2])
FOUR = pytest.mark.parametrize(("processes", "devices"), [(2, 2), (4, 1)])


@EACH
def test_devices_are_those_of_all_processes(devices):
    assert lines(
        """
        mine = [d.id for d in jax.local_devices()]
        print(i, jax.process_count(), jax.device_count(), jax.local_device_count(), mine, [d.process_index for d in jax.devices()],
              [d.local_hardware_id for d in jax.devices()], jnp.ones(2).devices() == {jax.local_devices()[0]}, jax.process_indices(),
              jax.devices()[0].client.process_index())
        """,
        processes=3,
        devices=devices,
    ) == [
        f"{i} 3 {3 * devices} {devices} {[devices * i + d for d in range(devices)]} {[p for p in range(3) for _ in range(devices)]} {[*range(devices)] * 3} True [0, 1, 2] {i}"
        for i in range(3)
    ]


def test_values_are_gathered_and_sent_and_compared():
    assert (
        lines(
            """
        x = {"a": jnp.arange(3) + i, "b": np.float32(i), "c": jnp.bfloat16(i)}
        all = m.process_allgather(x)
        assert all["a"].tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]] and all["b"].tolist() == [0, 1, 2] and all["c"].dtype == jnp.bfloat16
        assert m.process_allgather(x["a"], tiled=True).tolist() == [0, 1, 2, 1, 2, 3, 2, 3, 4]
        assert m.broadcast_one_to_all(x)["a"].tolist() == [0, 1, 2] and m.broadcast_one_to_all(i, is_source=i == 2) == 2
        big = m.process_allgather(np.full(300_000, i))  # in pieces
        assert big.shape == (3, 300_000) and big.sum() == 900_000
        m.sync_global_devices("here"), m.assert_equal(all)
        for wrong in (lambda: m.assert_equal(i, "differ"), lambda: m.sync_global_devices(f"at {i}")):
            try:
                wrong()
            except AssertionError as e:
                print(str(e)[:6])
        try:
            m.broadcast_one_to_all(i, is_source=True)
        except ValueError as e:
            print("source")
        """,
            processes=3,
        )
        == ["differ"] * 3 + ["source"] * 3 + ["sync_g"] * 3
    )


@pytest.mark.parametrize("source", [0, 3])
def test_a_broadcast_reaches_each_process_once(source):
    out = lines(
        f"""
        from ferrax._runtime import processes
        engine = processes.engine()
        counts = lambda: (sum(engine.transport.sent()), sum(engine.transport.taken()))
        before = counts()
        assert m.broadcast_one_to_all(np.full(1 << 17, i), is_source=i == {source}).tolist() == [{source}] * (1 << 17)
        queries = engine.size - 1  # who the source is
        print(i, *(now - then - queries for now, then in zip(counts(), before, strict=True)))
        """,
        processes=5,
    )
    sent, taken = zip(*(map(int, line.split()[1:]) for line in out), strict=True)
    assert taken == tuple(int(i != source) for i in range(5)) and sum(sent) == 4 and max(sent) <= 3


def test_processes_that_run_different_programs_name_both():
    out = lines(
        """
        try:
            m.sync_global_devices("a") if i == 0 else m.process_allgather(3)
        except RuntimeError as e:
            print(str(e).replace(chr(10), " "))
        """
    )
    assert len(out) == 2
    for line in out:
        assert (
            "every process must run the same programs in the same order" in line and "sync_global_devices" in line and "process_allgather of 1 leaves" in line
        )


def test_an_exception_in_one_process_ends_all():
    done = mpirun(
        """
        if i == 1:
            raise ValueError("this one is broken")
        m.sync_global_devices("never")
        """
    )
    assert done.returncode != 0 and "ValueError: this one is broken" in done.stderr and "process 1 of 2 ends by an exception" in done.stderr


def test_the_settings_of_the_launcher_are_checked():
    done = mpirun("pass\n", processes=1)
    assert done.returncode == 0
    out = lines(
        """
        import ferrax._runtime.processes
        for options in (dict(num_processes=3), dict(process_id=7)):
            jax.distributed._state["initialized"] = False
            try:
                jax.distributed.initialize(**options)
            except (ValueError, RuntimeError) as e:
                print(type(e).__name__, e)
        """
    )
    assert len(out) == 4 and all("but MPI has" in line or "should only be called once" in line or "must be called before" in line for line in out)


def test_launchers_are_known_by_their_variables():
    from ferrax._runtime.processes import LAUNCHERS, environment

    assert environment({}) is None and environment({"OMPI_COMM_WORLD_RANK": "1"}) is None
    for rank, size in LAUNCHERS:
        assert environment({rank: "1", size: "4"}) == (1, 4)


def test_differences_are_shown():
    from ferrax._runtime.watch import first_difference

    assert "line 2" in first_difference("a\nb\nc", "a\nx\nc") and "here:  b" in first_difference("a\nb", "a\nx")
    assert "from line 2 on" in first_difference("a\nb", "a") and "not known" in first_difference("a", None)


@given(st.sampled_from(["float32", "bfloat16", "int8", "bool", "complex64", "float64", "uint32", "float8_e4m3fn"]), st.lists(st.integers(0, 3), max_size=3))
@settings(max_examples=40, deadline=None)
def test_arrays_survive_messages(dtype, shape):
    import ml_dtypes  # noqa: F401
    from ferrax._runtime.processes import pack, unpack

    x = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    y = unpack(pack(x))
    assert y.dtype == x.dtype and y.shape == x.shape and y.tobytes() == x.tobytes()


@FOUR
def test_arrays_span_processes(processes, devices):
    assert (
        lines(
            """
        from ferrax.sharding import NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
        want = np.arange(32.0, dtype=np.float32).reshape(4, 8)
        a = jax.device_put(want, NamedSharding(mesh, P("x", "y")))
        assert not a.is_fully_addressable and not a.is_fully_replicated and len(a.addressable_shards) == jax.local_device_count() and len(a.global_shards) == 4
        assert a.devices() == set(jax.devices()) and mesh.is_multi_process and mesh.local_mesh.devices.size == jax.local_device_count()
        for s in a.addressable_shards:
            assert np.array_equal(np.asarray(s.data), want[s.index])
        try:
            np.asarray(a)
        except RuntimeError as e:
            print(str(e)[:32])
        # computed where the parts are: sums, products and transposes cross processes
        f = jax.jit(lambda a: (a.sum(), (a @ a.T).sum(0), jnp.sin(a).T))
        total, rows, turned = f(a)
        assert float(total) == want.sum() and np.allclose(m.process_allgather(rows), (want @ want.T).sum(0))
        assert np.allclose(m.process_allgather(turned), np.sin(want).T)
        assert np.allclose(m.process_allgather(a * 2 + 1), want * 2 + 1)
        b = jax.device_put(a, NamedSharding(mesh, P(None, ("x", "y"))))
        for s in b.addressable_shards:
            assert np.array_equal(np.asarray(s.data), want[s.index])
        c = jax.make_array_from_callback((4, 8), a.sharding, lambda index: want[index])
        assert np.array_equal(m.process_allgather(c), want)
        first = jax.local_devices()[0].id // 2 * 2  # of the rows of this process
        d = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), want[first : first + 2])
        assert d.shape == (4, 8) and np.array_equal(m.process_allgather(d), want)
        g = jax.jit(jax.grad(lambda w, x: jnp.mean((x @ w) ** 2)))
        w = jax.device_put(jnp.ones(8), NamedSharding(mesh, P("y")))
        assert np.allclose(m.process_allgather(g(w, a)), np.asarray(jax.grad(lambda w, x: jnp.mean((x @ w) ** 2))(jnp.ones(8), want)), rtol=1e-5)
        print("done")
        """,
            processes=processes,
            devices=devices,
        )
        == ["Fetching value for `jax.Array` t"] * processes + ["done"] * processes
    )


@EACH
def test_a_program_that_differs_raises(devices):
    out = lines(
        """
        from ferrax.sharding import NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        a = jax.device_put(np.arange(4.0), NamedSharding(mesh, P("x")))
        try:
            jax.jit(lambda a: (a * (i + 2.0)).sum())(a).block_until_ready()
        except Exception as e:
            print("every process must run the same programs in the same order" in str(e))
        """,
        devices=devices,
    )
    assert out == ["True", "True"]


@FOUR
def test_shard_map_over_processes(processes, devices):
    """Each device of each process does its part; collectives go between processes."""
    assert lines(
        """
        from ferrax import lax
        P, mesh = jax.sharding.PartitionSpec, jax.sharding.Mesh(np.array(jax.devices()), ("x",))
        X = np.arange(32, dtype=np.float32).reshape(4, 8)
        f = jax.shard_map(lambda x: lax.psum(jnp.sin(x), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
        g = jax.shard_map(lambda x: lax.ppermute(x, "x", [(k, (k + 1) % 4) for k in range(4)]), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        for f, g in [(f, g), (jax.jit(f), jax.jit(g))]:
            assert np.allclose(f(X), np.sin(X).sum(0))
            for s in g(X).addressable_shards:
                assert np.array_equal(np.asarray(s.data)[0], X[(s.index[0].start - 1) % 4])
        d = jax.jit(jax.grad(lambda x: (f(x) ** 2).sum()))(X)
        print(i, [s.index[0].start for s in d.addressable_shards])
        """,
        processes=processes,
        devices=devices,
    ) == [f"{i} {[devices * i + d for d in range(devices)]}" for i in range(processes)]


@pytest.mark.parametrize(("processes", "devices"), [(2, 1), (2, 2), (4, 1), (4, 2)])
def test_random_programs_give_what_one_device_gives(processes, devices):
    """On random meshes with random specs, eager, jitted and differentiated: bit for bit where no float sum is split (process_programs.py)."""
    out = lines(
        """
        import sys
        sys.path.insert(0, TESTS)
        from process_programs import check
        for seed in range(60):
            for problem in check(jax, seed):
                print(problem)
        print("done")
        """.replace("TESTS", repr(str(pathlib.Path(__file__).parents[1]))),
        processes=processes,
        devices=devices,
        timeout=400,
    )
    assert out == ["done"] * processes


@EACH
def test_parts_of_processes_become_one_array_and_back(devices):
    out = lines(
        """
        from ferrax.sharding import NamedSharding, PartitionSpec as P, AxisType
        n, k = jax.device_count(), jax.local_device_count()
        mesh = jax.make_mesh((n,), ("x",), axis_types=(AxisType.Auto,))
        mine = {"rows": np.arange(6.0 * k).reshape(2 * k, 3) + 100 * i, "columns": np.full((2, k), i), "same": np.ones(3)}
        specs = {"rows": P("x"), "columns": P(None, "x"), "same": P()}
        whole = m.host_local_array_to_global_array(mine, mesh, specs)
        assert [whole[a].shape for a in ("rows", "columns", "same")] == [(2 * n, 3), (2, n), (3,)]
        assert all(whole[a].sharding == NamedSharding(mesh, specs[a]) for a in whole)
        assert float(whole["rows"].sum()) == sum((np.arange(6.0 * k) + 100 * j).sum() for j in range(jax.process_count()))
        back = m.global_array_to_host_local_array(whole, mesh, specs)
        assert all(back[a].is_fully_addressable and np.array_equal(back[a], mine[a]) for a in mine)
        assert m.host_local_array_to_global_array(whole["rows"], mesh, P("x")) is whole["rows"]
        print("same")
        """,
        processes=3,
        devices=devices,
    )
    assert out == ["same"] * 3


@EACH
def test_pmap_over_processes(devices):
    """Each process has the slices of its devices; collectives are over all."""
    out = lines(
        """
        k, lax = jax.local_device_count(), jax.lax
        f = jax.pmap(lambda v: (lax.psum(v, "i"), lax.axis_index("i"), v), axis_name="i", donate_argnums=0)
        total, at, own = f(np.arange(1.0 * k, dtype=np.float32) + 10 * i)
        assert total.tolist() == [sum(10 * j + d for j in range(3) for d in range(k))] * k and at.tolist() == [k * i + d for d in range(k)]
        assert own.is_fully_addressable and own.tolist() == [10 * i + d for d in range(k)]
        columns = jax.pmap(lambda v, w: v * w["a"], axis_name="i", in_axes=(1, None), out_axes=1)(np.ones((2, k)), {"a": 3.0 + i * 0})
        assert columns.shape == (2, k) and np.asarray(columns).max() == 3
        step = jax.pmap(lambda p, x: p - 0.1 * lax.pmean(jax.grad(lambda p: ((p * x) ** 2).mean())(p), "i"), axis_name="i", in_axes=(None, 0), out_axes=None)
        p = np.float32(1)
        for _ in range(3):
            p = step(p, np.full((k, 4), 1.0 + i, np.float32))
        assert len(set(np.asarray(m.process_allgather(np.asarray(p))).tolist())) == 1
        for bad in (k + 1, k - 1):
            try:
                f(np.ones(bad))
            except ValueError as e:
                print("refused", "devices" in str(e))
        """,
        processes=3,
        devices=devices,
    )
    assert out == ["refused True"] * 6
