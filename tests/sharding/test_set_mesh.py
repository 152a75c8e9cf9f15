"""Values under `set_mesh` lie on its devices; lanes of `vmap` that are cut stay so; constraints over other views of the same devices."""

import textwrap

import pytest

pytestmark = pytest.mark.ours

PROGRAM = """
import numpy as np
import ferrax as jax, ferrax.numpy as jnp
from ferrax import lax
from ferrax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("x", "y"))
auto = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
base = np.arange(32.0, dtype=np.float32).reshape(8, 4)
def raises(error, words, f, *args):
    try:
        f(*args)
    except error as e:
        assert words in str(e), e
    else:
        raise AssertionError(f"{words}: not raised")
"""


@pytest.fixture
def on_mesh(forked_child):
    """Runs code with eight CPU devices."""
    return lambda code: forked_child(PROGRAM + textwrap.dedent(code), NUM_CPU_DEVICES="8", timeout=600)


def test_results_without_a_sharding_are_on_the_mesh(on_mesh):
    on_mesh("""
        before = jnp.ones(4)
        made = {
            "ones": lambda: jnp.ones((4, 2)), "full": lambda: jnp.full((3,), 7), "arange": lambda: jnp.arange(8), "eye": lambda: jnp.eye(3),
            "linspace": lambda: jnp.linspace(0, 1, 5), "list": lambda: jnp.array([1, 2]), "numpy": lambda: jnp.asarray(np.ones(2)), "number": lambda: jnp.asarray(3),
            "random": lambda: jax.random.normal(jax.random.key(1), (2,)), "operation": lambda: before + 1, "numpy operation": lambda: jnp.add(np.ones(3), 1),
            "jit": lambda: jax.jit(lambda: jnp.ones(3))(), "jit of one": lambda: jax.jit(lambda x: x * 2)(before), "item": lambda: before[0],
            "grad": lambda: jax.grad(lambda x: (x ** 2).sum())(before),
        }
        for m in (mesh, auto):
            with jax.set_mesh(m):
                for name, f in made.items():
                    y = f()
                    assert isinstance(y.sharding, NamedSharding) and y.sharding.mesh == m and y.sharding.is_fully_replicated, (name, y.sharding)
                    assert len(y.addressable_shards) == 8, name
                assert len(before.sharding.device_set) == 1 and len(jax.device_put(np.ones(3)).sharding.device_set) == 1
                assert jnp.ones(3, device=jax.devices()[1]).devices() == {jax.devices()[1]}
        for name, f in made.items():
            y = f()
            assert len(y.sharding.device_set) == 1, (name, y.sharding)
        with jax.set_mesh(mesh):
            with jax.set_mesh(auto):
                assert jnp.ones(2).sharding.mesh == auto
            assert jnp.ones(2).sharding.mesh == mesh
            for x, like in [(jax.device_put(base, P("x", "y")), P("x", "y")), (jax.device_put(base, P(None, "x")), P(None, "x"))]:
                for f in (jnp.zeros_like, jnp.ones_like, lambda x: jnp.full_like(x, 2)):
                    assert f(x).sharding.spec == like and jax.jit(f)(x).sharding.spec == like, (f(x).sharding, jax.jit(f)(x).sharding)
        """)


def test_arguments_that_are_elsewhere_are_refused(on_mesh):
    on_mesh("""
        there = jax.device_put(np.ones(4), jax.devices()[1])
        line = jax.make_mesh((2,), ("x",))
        parts = jax.device_put(np.ones(4), NamedSharding(line, P("x")))
        with jax.set_mesh(mesh):
            for x in (there, parts):
                for f in (lambda x: x + 1, jax.jit(lambda x: x + 1)):
                    raises(ValueError, "Received incompatible devices for jitted computation", f, x)
                    raises(ValueError, "context mesh with device ids [0, 1, 2, 3, 4, 5, 6, 7]", f, x)
        assert (there + 1).devices() == {jax.devices()[1]}
        """)


def test_lanes_that_are_cut_stay_cut(on_mesh):
    on_mesh("""
        with jax.set_mesh(mesh):
            x = jax.device_put(base, P("x", "y"))
            y = jax.device_put(base.T, P("y", "x"))
            functions = {
                "mul": lambda r: r * 2, "closed": lambda r: r * jnp.arange(4.0), "sum": lambda r: r.sum(), "unmapped": lambda r: jnp.ones(3),
                "jit": jax.jit(lambda r: jnp.sin(r)), "scan": lambda r: lax.scan(lambda c, _: (c * 2, None), r, None, length=2)[0],
                "cond": lambda r: lax.cond(True, lambda r: r + 1, lambda r: r - 1, r), "remat": jax.checkpoint(lambda r: jnp.cos(r)),
                "reshard": lambda r: jax.reshard(r, P(None)), "dot": lambda r: jnp.dot(r, jnp.ones((4, 3)), out_sharding=P(None)),
                "grad": jax.grad(lambda r: (jnp.sin(r) ** 2).sum()),
            }
            for name, f in functions.items():
                for how in (lambda f: f, jax.jit):
                    got = how(jax.vmap(f))(x)
                    assert got.sharding.spec.axes_of(0) == ("x",), (name, got.sharding)
                    np.testing.assert_allclose(got, np.stack([f(jnp.asarray(r)) for r in base]), rtol=1e-5, atol=1e-6)
                    other = how(jax.vmap(f, in_axes=1))(y)
                    assert other.sharding.spec.axes_of(0) == ("x",), (name, other.sharding)
            raises(ValueError, "Unmapped values passed to vmap cannot be sharded", jax.vmap(lambda a, b: a + b.sum(), in_axes=(0, None)), x, x)
        """)


def test_the_user_names_the_axis_of_lanes(on_mesh):
    on_mesh("""
        def f(r):
            return lax.with_sharding_constraint(r * 2, NamedSharding(auto, P("y")))
        for how in (lambda f: f, jax.jit):
            assert how(jax.vmap(f, spmd_axis_name="x"))(base).sharding.spec == P("x", "y")
            assert how(jax.vmap(f, spmd_axis_name="x", in_axes=1))(base.T).sharding.spec == P("x", "y")
        g = jax.vmap(jax.vmap(lambda r: lax.with_sharding_constraint(r, NamedSharding(auto, P())), spmd_axis_name="x"), spmd_axis_name="y")
        assert jax.jit(g)(np.ones((8, 4, 3))).sharding.spec == P("y", "x")
        raises(ValueError, "vmap spmd_axis_name ('y',) cannot appear in with_sharding_constraint spec, but got spec P('y',)", jax.vmap(f, spmd_axis_name="y"), base)
        h = jax.shard_map(lambda r: r * 2, mesh=auto, in_specs=P("y"), out_specs=P("y"))
        assert jax.jit(jax.vmap(h, spmd_axis_name="x"))(base).sharding.spec == P("x", "y")
        np.testing.assert_array_equal(jax.vmap(h, spmd_axis_name="x")(base), base * 2)
        raises(ValueError, "vmap spmd_axis_name cannot appear in shard_map in_specs", jax.vmap(h, spmd_axis_name="y"), base)
        with jax.set_mesh(mesh):
            raises(ValueError, "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed",
                   jax.vmap(lambda r: r, spmd_axis_name="y"), jax.device_put(base, P("x")))
        """)


def test_derivatives_of_parts_whose_lanes_are_cut(on_mesh):
    """`vmap(grad(shard_map))`, of lanes that `spmd_axis_name` or explicit types cut: what the backward pass keeps is of a device's lanes, whether types are checked or not."""
    on_mesh("""
        for check, over, names in [(c, m, n) for c in (False, True) for m, n in ((auto, {"spmd_axis_name": "x"}), (mesh, {}))]:
            x = jax.device_put(base, NamedSharding(over, P("x", "y")))
            rows = [jax.device_put(r, NamedSharding(over, P("y"))) for r in base]
            def total(r):
                s = jnp.sum(r * r)
                return jnp.sin(lax.psum(s, "y") if check else s)
            f = jax.shard_map(total, mesh=over, in_specs=P("y"), out_specs=P(), check_vma=check)
            twice = lambda f: lambda r: jax.grad(lambda r: jax.grad(f)(r).sum())(r)
            ways = {
                "grad": jax.grad(f), "jit": jax.jit(jax.grad(f)), "value_and_grad": jax.value_and_grad(f), "vjp": lambda r: jax.vjp(f, r)[1](jnp.float32(2)),
                "twice": twice(f), "linearize": lambda r: jax.linearize(f, r)[1](r), "checkpoint": jax.grad(jax.checkpoint(f)), "hessian": jax.hessian(f),
                "scan": lambda r: lax.scan(lambda c, _: (c - 0.1 * jax.grad(f)(c), f(c)), r, None, length=3),
                "cond": lambda r: lax.cond(jnp.sum(r) > 40, jax.grad(f), lambda r: r * 2, r),
            }
            for name, g in ways.items():
                want = jax.tree.map(lambda *each: np.stack(each), *[g(r) for r in rows])
                for h in (jax.vmap(g, **names), jax.jit(jax.vmap(g, **names)), jax.vmap(jax.jit(g), **names)):
                    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5, err_msg=name), h(x), want)
                # the same function is traced anew where nothing cuts its lanes
                jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5, err_msg=name), jax.vmap(g)(x), want)
        """)


def test_constraints_over_other_names_of_the_same_devices(on_mesh):
    on_mesh("""
        line = jax.make_mesh((8,), ("z",), axis_types=(AxisType.Auto,))
        flat = Mesh(auto.devices, ("a", "b"))
        x = jax.device_put(base, NamedSharding(auto, P("x")))
        f = jax.jit(lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(flat, P(("a", "b")))))
        np.testing.assert_array_equal(f(x), base * 2)
        assert {s.data.shape for s in f(x).addressable_shards} == {(1, 4)}
        g = jax.jit(lambda x: lax.with_sharding_constraint(lax.with_sharding_constraint(x * 2, NamedSharding(line, P("z"))) + 1, NamedSharding(auto, P("x"))))
        raises(ValueError, "", lambda: jax.jit(lambda x: lax.with_sharding_constraint(x, NamedSharding(auto, P("w"))))(x))
        """)


def test_types_within_a_partly_manual_shard_map(on_mesh):
    on_mesh("""
        seen = []
        def body(x):
            seen.append(str(x.aval))
            inner = jax.shard_map(lambda z: z * lax.axis_index("y"), in_specs=P(None, "y"), out_specs=P(None, "y"))
            return jnp.sin(x) + inner(x)
        with jax.set_mesh(mesh):
            x = jax.device_put(base, P("x", "y"))
            f = jax.jit(jax.shard_map(body, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))
            y = f(x)
            assert seen[0] == "float32[2,4@y]{V:x}", seen
            assert y.sharding.spec == P("x", "y"), y.sharding
            np.testing.assert_allclose(y, np.sin(base) + base * np.array([0, 0, 1, 1]), rtol=1e-6)
        """)


def test_equal_specifications_and_meshes_are_one_object(on_mesh):
    on_mesh("""
        import copy, pickle
        assert P("x", ("y",)) is P(("x",), "y") and P(unreduced={"x"}) is P(unreduced={"x"}) and P("x") is not P("y")
        assert Mesh(jax.devices(), "x") is Mesh(jax.devices(), ("x",)) and Mesh(jax.devices(), "x") is not Mesh(jax.devices()[::-1], "x")
        assert pickle.loads(pickle.dumps(P("x", None))) is P("x", None) and copy.deepcopy(P("x")) is P("x")
        raises(ValueError, "A tuple inside PartitionSpec cannot contain a nested tuple", P, ("x", ("y",)))
        raises(ValueError, "Got invalid memory kind", lambda: NamedSharding(mesh, P(), memory_kind="tape"))
        s = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
        assert s.memory_kind == "pinned_host" and s != NamedSharding(mesh, P("x")) and pickle.loads(pickle.dumps(s)) == s
        assert s.with_memory_kind("device") == NamedSharding(mesh, P("x"))
        np.testing.assert_array_equal(jax.device_put(base, s), base)
        """)


def test_donated_state_in_host_memory_is_reused(on_mesh):
    """A device has one kind of memory: a step over state of kind `pinned_host`, on one device and cut over eight, writes in its place."""
    on_mesh("""
        x = jnp.ones(3)
        assert x.sharding.with_memory_kind("pinned_host") == jax.sharding.SingleDeviceSharding(x.device, memory_kind="pinned_host") != x.sharding
        assert x.sharding.has_addressable_devices and NamedSharding(mesh, P()).has_addressable_devices
        raises(ValueError, "Got invalid memory kind", x.sharding.with_memory_kind, "tape")
        def step(state):
            on_device = jax.device_put(state, target)
            return jax.device_put(on_device * 2 + 1, kept)
        def step_of_two(state, rest):
            on_device = jax.device_put(state, target)
            return jax.device_put(on_device + rest, kept), rest * 2
        single = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        for target in (single, NamedSharding(auto, P("x", "y")), NamedSharding(auto, P(None, "x"))):
            kept = target.with_memory_kind("pinned_host")
            where = lambda x: [x.unsafe_buffer_pointer()] if target is single else [s.data.unsafe_buffer_pointer() for s in x.addressable_shards]
            # computed: memory that a constant or NumPy holds too is not written to
            state, rest = (jax.jit(lambda x: x + 1, out_shardings=s)(jnp.ones((1024, 1024))) for s in (kept, target))
            for options in ({}, {"in_shardings": kept}):
                f = jax.jit(step, donate_argnums=0, out_shardings=kept, **options)
                for _ in range(3):
                    old, before = state, where(state)
                    state = f(state)
                    assert old.is_deleted() and where(state) == before
            f = jax.jit(step_of_two, donate_argnums=(0, 1), out_shardings=(kept, target))
            before = where(state), where(rest)
            olds, (state, rest) = (state, rest), f(state, rest)
            assert all(x.is_deleted() for x in olds) and sorted(before) == sorted((where(state), where(rest)))
            np.testing.assert_array_equal(state, 2 * 64 + 63 + 2)
            np.testing.assert_array_equal(rest, 4)
        """)


def test_donated_memory_is_reused_however_devices_are_named(on_mesh):
    """Runs that are enqueued and runs of the calling thread write in place of what is donated, each time."""
    on_mesh("""
        d = jax.devices()
        first, second = (jax.sharding.SingleDeviceSharding(x) for x in d[:2])
        one, cut = NamedSharding(Mesh(d[:1], ("x",)), P("x")), NamedSharding(auto, P("x", "y"))
        body = lambda x: x * 2 + 1
        cases = {
            "no device": (None, lambda n: jax.jit(body, donate_argnums=0)),
            "device": (first, lambda n: jax.jit(body, donate_argnums=0, device=d[0])),
            "where the argument is": (second, lambda n: jax.jit(body, donate_argnums=0)),
            "results": (second, lambda n: jax.jit(body, donate_argnames="x", out_shardings=second)),
            "arguments": (first, lambda n: jax.jit(body, donate_argnums=0, in_shardings=first)),
            "both": (second, lambda n: jax.jit(body, donate_argnums=0, in_shardings=second, out_shardings=second)),
            "compiled": (first, lambda n: jax.jit(body, donate_argnums=0, out_shardings=first).lower(jax.ShapeDtypeStruct((n, n), "float32")).compile()),
            "mesh of one": (one, lambda n: jax.jit(body, donate_argnums=0, out_shardings=one)),
            "mesh": (cut, lambda n: jax.jit(body, donate_argnums=0, out_shardings=cut)),
            "shard_map": (cut, lambda n: jax.jit(jax.shard_map(body, mesh=auto, in_specs=P("x", "y"), out_specs=P("x", "y")), donate_argnums=0)),
            "pmap": ("pmap", lambda n: jax.pmap(body, donate_argnums=0)),
        }
        where = lambda x: [s.data.unsafe_buffer_pointer() for s in x.addressable_shards]
        for name, (placed, make) in cases.items():
            for n in (8, 512):
                f = make(n)
                if placed == "pmap":
                    x = jax.pmap(lambda x: x + 1)(jnp.ones((8, n, n)))
                else:
                    x = jax.jit(lambda x: x + 1, out_shardings=placed)(jnp.ones((n, n)))
                for turn in range(20):
                    old, before = x, where(x)
                    x = f(x)
                    assert old.is_deleted() and where(x) == before, (name, n, turn)
        # an argument that lies elsewhere is copied
        x = jax.device_put(jnp.ones(3), d[1])
        assert jax.jit(body, donate_argnums=0, device=d[0])(x).devices() == {d[0]}
        """)
