"""Types and shardings of results before they are computed, and the places of arrays that are made with `device=`."""

import textwrap

import numpy as np
import pytest

WIDE = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}

# An abstract value in, a type out: without 64-bit types they are of 32 bits.
USES = {
    "eval_shape": lambda jax, s: jax.eval_shape(lambda x: x.T, s),
    "eval_shape of a result": lambda jax, s: jax.eval_shape(lambda: s),
    "eval_shape of vjp": lambda jax, s: jax.eval_shape(lambda x: jax.vjp(lambda x: x * 2, x)[0], s),
    "eval_shape of vmap": lambda jax, s: jax.eval_shape(jax.vmap(lambda x: x + 1), s),
    "jit.eval_shape": lambda jax, s: jax.jit(lambda x: x.T).eval_shape(s),
    "lower": lambda jax, s: jax.jit(lambda x: x.T).lower(s).out_info,
    "a compiled call": lambda jax, s: jax.jit(lambda x: x.T).lower(s).compile()(np.ones(s.shape, s.dtype)),
    "trace": lambda jax, s: jax.jit(lambda x: x.T).trace(s).jaxpr.out_avals[0],
    "make_jaxpr": lambda jax, s: jax.make_jaxpr(lambda x: x.T)(s).in_avals[0],
    "typeof": lambda jax, s: jax.typeof(s),
    "export": lambda jax, s: __import__("importlib").import_module(f"{jax.__name__}.export").export(jax.jit(lambda x: x.T))(s).in_avals[0],
    "linear_transpose": lambda jax, s: jax.linear_transpose(lambda x: x * 2, s)(np.ones(s.shape, WIDE.get(s.dtype.name, s.dtype)))[0],
    "zeros_like": lambda jax, s: jax.numpy.zeros_like(s),
    "full_like": lambda jax, s: jax.lax.full_like(s, 1),
    "scan": lambda jax, s: jax.eval_shape(lambda x: jax.lax.scan(lambda c, a: (c, a), 0, x)[1], s),
}


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("use", USES)
def test_descriptions_of_64_bits_mean_32(jax, use, dtype):
    s = jax.ShapeDtypeStruct((4, 2), np.dtype(dtype))
    assert s.dtype == dtype  # the description itself is what was written
    assert USES[use](jax, s).dtype == WIDE[dtype]


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("use", USES)
def test_descriptions_of_64_bits_with_64_bits(jax, use, dtype, x64):
    s = jax.ShapeDtypeStruct((4, 2), np.dtype(dtype))
    given = np.ones(s.shape, s.dtype)
    got = USES[use](jax, s) if use != "linear_transpose" else jax.linear_transpose(lambda x: x * 2, s)(given)[0]
    assert got.dtype == dtype


def test_gradients_of_described_arguments(jax):
    for dtype, own in (("float64", "float32"), ("complex128", "complex64")):
        s = jax.ShapeDtypeStruct((3,), np.dtype(dtype))
        assert jax.eval_shape(jax.grad(lambda x: (x * x).sum().real), s).dtype == own


SETUP = """
from NAME import lax
from NAME.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding, PartitionSpec as P
from NAME.experimental.shard_alike import shard_alike
auto = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
explicit = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
places = {
    "mesh": NamedSharding(auto, P("x", "y")), "one axis": NamedSharding(auto, P(None, "y")), "replicated": NamedSharding(auto, P()),
    "explicit": NamedSharding(explicit, P("x", "y")), "device": SingleDeviceSharding(jax.devices()[3]),
}
X = np.arange(16, dtype=np.float32).reshape(4, 4)
"""


@pytest.fixture
def on_devices(forked_child, jax):
    first = "import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'" if jax.__name__ == "jax" else ""
    return lambda code: forked_child(SETUP.replace("NAME", jax.__name__) + textwrap.dedent(code), first=first, NUM_CPU_DEVICES="8")


def test_shardings_of_results_are_reported(on_devices):
    on_devices("""
    for name, place in places.items():
        f = jax.jit(lambda x: x * 2, out_shardings=place)
        for described in (jax.eval_shape(f, X), f.eval_shape(X), f.lower(X).out_info, f.trace(X).out_info, f.lower(X).compile().out_info):
            assert described.sharding == place and described.shape == X.shape, (name, described)
        assert f(X).sharding == place
        assert jax.eval_shape(jax.jit(jax.grad(lambda x: x.sum()), out_shardings=place), X).sharding == place
        if name != "device":
            parts = jax.eval_shape(jax.jit(lambda x: {"a": x, "b": (x.T, 1)}, out_shardings={"a": place, "b": None}), X)
            assert parts["a"].sharding == place and parts["b"][0].sharding is None and parts["b"][1].sharding is None
        # what is not asked for is not known before the program is compiled
        assert name == "device" or jax.eval_shape(jax.jit(lambda x: x * 2, in_shardings=place), X).sharding is None
        inner = jax.eval_shape(lambda x: jax.jit(lambda x: x, out_shardings=place)(x), X).sharding
        assert inner is None or name == "explicit"
    with jax.set_mesh(auto):
        assert jax.eval_shape(jax.jit(lambda x: x, out_shardings=P("x")), X).sharding == NamedSharding(auto, P("x"))
    a = jax.device_put(X, places["explicit"])
    assert jax.jit(lambda x: x * 2).lower(a).out_info.sharding == places["explicit"]
    assert jax.jit(lambda x: x * 2).lower(jax.device_put(X, places["mesh"])).compile().out_info.sharding == places["mesh"]
    """)


@pytest.mark.ours  # JAX takes `device=` of zeros, ones, full and their kind to mean nothing in `jit`
def test_array_functions_place_traced_arrays_on_their_device(on_devices):
    on_devices("""
    makers = {
        "array": lambda x, d: jnp.array(x, device=d), "array of one type": lambda x, d: jnp.array(x, copy=False, device=d),
        "array of a list": lambda x, d: jnp.array([[x[0, 0]] * 4] * 4, device=d), "array of numpy's": lambda x, d: jnp.array(X, device=d),
        "asarray": lambda x, d: jnp.asarray(x, device=d), "asarray to integers": lambda x, d: jnp.asarray(x, dtype="int32", device=d),
        "astype": lambda x, d: jnp.astype(x, jnp.int32, device=d), "astype of one type": lambda x, d: jnp.astype(x, x.dtype, device=d),
        "x.astype": lambda x, d: x.astype("int32", device=d), "linspace": lambda x, d: jnp.linspace(x[0], x[1], 4, device=d),
        "eye": lambda x, d: jnp.eye(4, device=d), "zeros": lambda x, d: jnp.zeros((4, 4), device=d), "ones": lambda x, d: jnp.ones((4, 4), device=d),
        "full": lambda x, d: jnp.full((4, 4), x[0, 0], device=d), "full of rows": lambda x, d: jnp.full((4, 4), x[0], device=d),
        "empty": lambda x, d: jnp.empty((4, 4), device=d), "zeros_like": lambda x, d: jnp.zeros_like(x, device=d),
        "ones_like": lambda x, d: jnp.ones_like(x, device=d), "full_like": lambda x, d: jnp.full_like(x, 3, device=d),
        "empty_like": lambda x, d: jnp.empty_like(x, device=d), "lax.full": lambda x, d: lax.full((4, 4), x[0, 0], sharding=d),
    }
    for name, make in makers.items():
        for where, place in places.items():
            for f in (make, jax.jit(make, static_argnums=1)):
                a = f(jnp.asarray(X), place)
                if where == "device" and f is not make and name in ("zeros", "ones", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "eye", "lax.full", "array of numpy's"):
                    continue  # a constant of a program is where the program runs
                assert a.sharding.is_equivalent_to(place, 2), (name, where, a.sharding)
            if where != "device":
                batched = jax.vmap(lambda x: make(x, place))(X[None])
                assert set(batched.sharding.device_set) == set(place.device_set), (name, where)
    line = NamedSharding(auto, P("x"))
    for make in (lambda n: jnp.arange(4, device=line), lambda n: jnp.arange(4.0, device=line), lambda n: jnp.arange(4, dtype="complex64", device=line),
                 lambda n: jnp.fft.fftfreq(4, device=line), lambda n: jnp.fft.rfftfreq(6, device=line), lambda n: jnp.linspace(0, n, 4, device=line)):
        assert make(1.0).sharding.is_equivalent_to(line, 1) and jax.jit(make)(1.0).sharding.is_equivalent_to(line, 1)
    for f in (lambda x: jnp.array(x, device=places["mesh"]), lambda x: x.to_device(places["mesh"])):
        assert jax.jit(f)(X).sharding == places["mesh"] and jax.grad(lambda x: f(x).sum())(jnp.asarray(X)).tolist() == np.ones((4, 4)).tolist()
    """)


def test_a_sharding_of_one_device_within_a_program_places_the_program(on_devices):
    on_devices("""
    place = places["device"]
    puts = {
        "constraint": lambda x: lax.with_sharding_constraint(x, place), "of a tree": lambda x: lax.with_sharding_constraint({"a": x}, place)["a"],
        "device_put": lambda x: jax.device_put(x, place), "device_put of a tree": lambda x: jax.device_put((x, x), (None, place))[1],
        "to_device": lambda x: x.to_device(place),
    }
    programs = lambda put: {
        "itself": put, "of a value": lambda x: put(x * 2), "before others": lambda x: put(x) + 1, "of one of two": lambda x: put(x[0])[1] + x,
        "in a loop": lambda x: lax.fori_loop(0, 2, lambda i, x: put(x + i), x), "in a branch": lambda x: lax.cond(x.sum() > 0, put, jnp.negative, x),
        "of a batch": jax.vmap(put), "differentiated": jax.grad(lambda x: (put(x) ** 2).sum()), "recomputed": jax.checkpoint(put),
    }
    for name, put in puts.items():
        for (what, f), same in zip(programs(put).items(), programs(lambda x: x).values()):
            for x in (jnp.asarray(X), X, jax.device_put(X, place)):
                got = jax.jit(f)(x)
                assert got.sharding == place and got.committed, (name, what, got.sharding)
                assert (np.asarray(got) == np.asarray(same(jnp.asarray(X)))).all(), (name, what)
            jax.make_jaxpr(f)(X), jax.eval_shape(f, X)
        for x in (jnp.asarray(X), jax.device_put(X, place)):
            assert put(x).sharding == place and jax.vmap(put)(x).sharding == place
    for wrong in (3, "x", jax.devices()[3], object()):
        for f in (lambda x: lax.with_sharding_constraint(x, wrong), jax.jit(lambda x: lax.with_sharding_constraint(x, wrong))):
            try: f(jnp.asarray(X))
            except TypeError as e: assert "shardings leaf specifications are expected to be PartitionSpec instances or None" in str(e)
            else: raise AssertionError(wrong)
    """)


def test_cotangents_of_device_put_go_back_to_where_the_value_was(on_devices):
    on_devices("""
    line = Mesh(np.array(jax.devices()[:4]), ("x",), axis_types=(AxisType.Auto,))
    one, other = SingleDeviceSharding(jax.devices()[2]), SingleDeviceSharding(jax.devices()[5])
    spots = [one, other, NamedSharding(line, P("x")), NamedSharding(line, P(None, "x")), NamedSharding(line, P())]
    loss = lambda to, src: lambda x: (jax.device_put(x, to, src=src) ** 2).sum()
    for own in spots:
        x = jax.device_put(X, own)
        for to in [*spots, jax.devices()[6]]:
            for src in [None, *spots]:
                if src is not None and src.device_set != own.device_set:
                    continue  # of a committed value the gradient elsewhere cannot be added to it
                f = loss(to, src)
                places = {
                    "grad": jax.grad(f)(x), "vjp": jax.vjp(f, x)[1](jnp.float32(1))[0], "value and grad": jax.value_and_grad(f)(x)[1],
                    "of a tree": jax.grad(lambda t: f(t["a"]))({"a": x})["a"], "linear": jax.linear_transpose(jax.linearize(f, x)[1], x)(jnp.float32(1))[0],
                }
                for how, g in places.items():
                    if how != "linear":
                        assert g.sharding.is_equivalent_to(src or own, 2), (how, own, to, src, g.sharding)
                    assert np.asarray(g).tolist() == (2 * X).tolist()
                step = x - 0.5 * places["grad"]
                assert step.sharding.device_set == own.device_set and not np.asarray(step).any()
    for src in spots:
        assert jax.grad(loss(spots[2], src))(jnp.asarray(X)).sharding.is_equivalent_to(src, 2)
        assert jax.grad(loss(jax.devices()[6], src))(jnp.asarray(X)).sharding.is_equivalent_to(src, 2)
    """)


def test_arrays_are_divided_equally(on_devices):
    on_devices("""
    place = NamedSharding(auto, P("x", "y"))
    x = jax.device_put(X, place)
    other = lambda dtype="float32": jnp.arange(16, dtype=dtype).reshape(4, 4)
    programs = {
        "the second": lambda x: shard_alike(x, other())[1], "the first": lambda x: shard_alike(other(), x)[0], "integers": lambda x: shard_alike(x, other("int32"))[1],
        "itself": lambda x: shard_alike(x, other())[0], "in a loop": lambda x: lax.scan(lambda c, _: (shard_alike(x, c)[1] * 2, None), other(), length=3)[0],
        "in a branch": lambda x: lax.cond(x.sum() > 0, lambda: shard_alike(x, other())[1], lambda: jnp.zeros((4, 4))),
        "of a batch": jax.vmap(lambda x: shard_alike(x, jnp.arange(4.0))[1]),
    }
    for name, f in programs.items():
        assert jax.jit(f)(x).sharding == place, name
    for y in (other(), np.asarray(other()), other("int8")):
        a, b = shard_alike(x, y)
        assert isinstance(b, jax.Array) and b.sharding == place == a.sharding and a.tolist() == X.tolist() and b.tolist() == y.tolist() and b.dtype == y.dtype
    y, t = jax.jvp(lambda x: shard_alike(x, x * 2)[1], (x,), (x,))
    assert y.tolist() == t.tolist() == (2 * X).tolist()
    assert jax.grad(lambda x: (shard_alike(x, other())[1] * x).sum())(x).tolist() == X.tolist()
    nan = jnp.full((4, 4), jnp.nan)
    assert shard_alike(nan, x)[1].tolist() == X.tolist()
    assert all(isinstance(a, jax.Array) for a in shard_alike(1.0, 2.0))
    """)


@pytest.mark.ours  # on CPUs JAX frees nothing
def test_donated_arrays_that_are_copied_are_freed(on_devices):
    on_devices("""
    places |= {"another device": jax.devices()[1], "the other axis": NamedSharding(auto, P("y")), "another mesh": NamedSharding(Mesh(jax.devices()[:2], "x"), P("x")),
               "another order": NamedSharding(Mesh(np.array(jax.devices()[:4])[::-1].reshape(2, 2), ("x", "y")), P("x", "y"))}
    for name, source in places.items():
        for to, place in places.items():
            for donate in (True, False):
                a = jax.device_put(X, source)
                b = jax.device_put(a, place, donate=donate)
                assert a.is_deleted() == (donate and name != to), (name, to, donate)
                assert b.tolist() == X.tolist()
    a, b = (jax.device_put(X, places["device"]) for _ in range(2))
    c = jax.device_put({"a": a, "b": b}, places["mesh"], donate={"a": True, "b": False})
    assert (a.is_deleted(), b.is_deleted()) == (True, False) and c["a"].tolist() == c["b"].tolist()
    a = jax.device_put(X, places["device"])
    b, c = jax.device_put((a, a), places["mesh"], donate=True)
    assert a.is_deleted() and b.tolist() == c.tolist()
    """)


@pytest.mark.ours  # JAX refuses `apply`, and masks in `jit`
def test_updates_along_uncut_dimensions_need_no_sharding(on_devices):
    on_devices("""
    import importlib
    checkify = importlib.import_module(f"{jax.__name__}.experimental.checkify")
    x0, line, v0 = np.arange(40, dtype=np.float32).reshape(4, 10), NamedSharding(explicit, P("x", None)), np.arange(4, dtype=np.float32)
    updates = {
        "a column": lambda x, v: x.at[:, 3].set(5.0), "a column by a vector": lambda x, v: x.at[:, 3].set(v), "added": lambda x, v: x.at[:, 3].add(v),
        "columns": lambda x, v: x.at[:, jnp.array([1, 2])].set(5.0), "a slice": lambda x, v: x.at[:, 2:4].mul(2.0), "all": lambda x, v: x.at[:].set(1.0),
        "min": lambda x, v: x.at[:, 0].min(2.0), "a traced column": lambda x, v: x.at[:, jnp.int32(3)].set(5.0), "steps": lambda x, v: x.at[:, ::2].set(2.0),
        "backwards": lambda x, v: x.at[:, ::-1].set(v[:, None]), "a new axis": lambda x, v: x.at[:, None, 2].set(2.0), "apply": lambda x, v: x.at[:, 0].apply(jnp.cos),
    }
    with jax.set_mesh(explicit):
        x, v = jax.device_put(x0, line), jax.device_put(v0, NamedSharding(explicit, P("x")))
        for name, f in updates.items():
            checked = checkify.checkify(f, errors=checkify.all_checks)
            for way in (f, jax.jit(f), lambda x, v: checked(x, v)[1], lambda x, v: jax.jit(checked)(x, v)[1]):
                y = way(x, v)
                assert jax.typeof(y).sharding.spec == P("x", None), (name, jax.typeof(y))
            slope = jax.grad(lambda x: (f(x, v) ** 2).sum())(x)
            assert jax.typeof(slope).sharding.spec == P("x", None), name
        with_jax = {name: np.asarray(f(x, v)) for name, f in updates.items()}
        try: x.at[1].set(5.0)
        except Exception as e: assert type(e).__name__ == "ShardingTypeError"
        else: raise AssertionError("a row of a dimension that is cut")
    for name, f in updates.items():
        np.testing.assert_array_equal(with_jax[name], np.asarray(f(jnp.asarray(x0), jnp.asarray(v0))), err_msg=name)
    """)


def test_types_along_explicit_axes_are_kept(on_devices):
    on_devices("""
    mixed = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    spec = lambda a: jax.typeof(a).sharding.spec
    with jax.set_mesh(explicit):
        x = jax.device_put(X, NamedSharding(explicit, P("x", "y")))
        for y in (jnp.arange(4.0), 1.0, jnp.int32(2), X):
            for way in (lax.broadcast_like, jax.jit(lax.broadcast_like)):
                got = way(y, x)
                assert spec(got) == P("x", "y") and got.tolist() == np.broadcast_to(np.asarray(y), (4, 4)).tolist()
        key = jnp.zeros(4, "uint32")
        new, bits = lax.rng_bit_generator(key, (4, 4), out_sharding=P("x", None))
        assert spec(bits) == P("x", None) and bits.tolist() == lax.rng_bit_generator(key, (4, 4))[1].tolist() and new.shape == (4,)
    with jax.set_mesh(mixed):
        x = jax.device_put(X, NamedSharding(mixed, P("x", None)))
        for place in (P(None, "y"), NamedSharding(mixed, P(None, "y"))):
            y = jax.jit(lambda x: lax.with_sharding_constraint(x, place))(x)
            assert spec(y) == P("x", None) and y.sharding.spec == P("x", "y") and y.tolist() == X.tolist()
        try: jax.jit(lambda x: lax.with_sharding_constraint(x, P("x", "y")))(x)
        except ValueError as e: assert "can only refer to Auto axes of the mesh" in str(e)
        else: raise AssertionError
    line = Mesh(np.array(jax.devices()[:2]).reshape(1, 2), ("a", "x"), axis_types=(AxisType.Explicit,) * 2)
    a = jax.device_put(X, NamedSharding(line, P("a", "x")))
    for flag in (True, False):
        jax.config.update("jax_remove_size_one_mesh_axis_from_type", flag)
        assert spec(jax.device_put(X, NamedSharding(line, P("a", "x")))) == (P(None, "x") if flag else P("a", "x"))
    """)


def test_local_data_go_to_one_device(jax):
    data = {"a": np.arange(10).reshape(2, 5), "b": np.arange(3.0, dtype=np.float32)}
    for place in (jax.devices()[0], {"a": jax.devices()[0], "b": jax.devices()[0]}):
        for shapes in (None, {"a": (2, 5), "b": (3,)}):
            made = jax.make_array_from_process_local_data(place, data, shapes)
            assert made["a"].tolist() == data["a"].tolist() and made["b"].tolist() == data["b"].tolist()
    for shapes in ((2, 8), {"a": (2, 6), "b": (3,)}):
        with pytest.raises(ValueError):
            jax.make_array_from_process_local_data(jax.devices()[0], data, shapes)


def test_structs_like_traced_arrays(on_devices):
    on_devices("""
    seen = []
    for place in (places["explicit"], places["mesh"]):
        jax.jit(lambda a: seen.append(jax.ShapeDtypeStruct.like(a)) or a)(jax.device_put(X, place))
    assert seen[0].sharding.spec == P("x", "y") and seen[1].sharding is None, seen
    x = jax.device_put(X, places["mesh"])
    try: jax.make_array_from_single_device_arrays((4, 4), NamedSharding(Mesh(jax.devices()[:2], "x"), P("x")), [x, x])
    except ValueError as e: assert "the input arrays must have one shard each" in str(e)
    else: raise AssertionError
    """)


def test_shard_map_passes_arguments_without_specifications(on_devices):
    on_devices("""
    double = lambda x: x * 2
    assert jax.shard_map(double, mesh=auto, in_specs=None, out_specs=P())(X).tolist() == (2 * X).tolist()
    assert jax.shard_map(double, mesh=auto, in_specs=None, out_specs=P("x"))(X).shape == (8, 4)
    assert jax.jit(jax.shard_map(double, mesh=auto, in_specs=None, out_specs=P()))(X).tolist() == (2 * X).tolist()
    assert jax.shard_map(lambda x, word: x if word == "a" else None, mesh=auto, in_specs=(P("x"), None), out_specs=P("x"))(X, "a").tolist() == X.tolist()
    assert jax.shard_map(lambda word: jnp.ones(2) if word == "a" else None, mesh=auto, in_specs=None, out_specs=P("x"))("a").shape == (4,)
    """)
