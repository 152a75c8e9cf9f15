"""Shardings of what is only described: `ShapeDtypeStruct`, `eval_shape`, arrays made like them; settings of what types say of meshes; refusals."""

import textwrap

import pytest

pytestmark = pytest.mark.ours


@pytest.fixture
def on_devices(forked_child, jax):
    """Runs code with eight CPU devices."""
    return lambda code: forked_child(SETUP.format(library=jax.__name__) + textwrap.dedent(code), NUM_CPU_DEVICES="8")


SETUP = """
from {library} import lax
from {library}.sharding import AbstractMesh, AxisType, NamedSharding, SingleDeviceSharding
P = jax.P
explicit = jax.make_mesh((2, 2), ("x", "y"))
auto = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
X = np.arange(32, dtype=np.float32).reshape(8, 4)
def refused(error, words, f):
    try: f()
    except error as e: assert words in str(e), e
    else: raise AssertionError(words)
"""


def test_eval_shape_gives_shardings_of_types(on_devices):
    on_devices("""
    for inside in (False, True):
        a = jax.device_put(X, NamedSharding(explicit, P("x", "y")))
        for f in (lambda a: a * 2, jax.jit(lambda a: a * 2)):
            described = jax.eval_shape(f, a)
            assert described.sharding == NamedSharding(explicit.abstract_mesh, P("x", "y")), described
            assert jax.eval_shape(f, described) == described
        assert jax.eval_shape(lambda a: a.T, a).sharding.spec == P("y", "x")
        assert jax.eval_shape(lambda a: a * 2, jax.device_put(X, NamedSharding(auto, P("x")))).sharding is None
        assert jax.eval_shape(lambda a: a * 2, X).sharding is None
    with jax.set_mesh(explicit):
        assert jax.eval_shape(lambda: jnp.ones(3)).sharding.spec == P(None)
        jax.jit(lambda a: a * 2).lower(jax.eval_shape(lambda a: a, a)).compile()
    def varying(a):
        described = jax.eval_shape(lambda a: a.sum(), a)
        assert described.manual_axis_type.varying == {"x"} and jax.typeof(described).mat.varying == {"x"}
        return a + lax.full_like(described, 1)
    assert (jax.shard_map(varying, mesh=auto, in_specs=P("x"), out_specs=P("x"))(X) == X + 1).all()
    """)


def test_arrays_like_a_description_have_its_sharding(on_devices):
    on_devices("""
    for mesh in (explicit, auto):
        place = NamedSharding(mesh, P("x", "y"))
        described = jax.ShapeDtypeStruct((8, 4), np.float32, sharding=place)
        for make in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda t: jnp.full_like(t, 3), lambda t: lax.full_like(t, 3)):
            assert make(described).sharding == place and jax.jit(lambda: make(described))().sharding == place
            with jax.set_mesh(mesh):
                assert make(described).sharding == place
        assert isinstance(jnp.zeros_like(described, shape=(3,)).sharding, SingleDeviceSharding)
        assert jnp.zeros_like(described, device=jax.devices()[3]).sharding.device_set == {jax.devices()[3]}
    abstract = jax.ShapeDtypeStruct((8, 4), np.float32, sharding=NamedSharding(explicit.abstract_mesh, P("x")))
    with jax.set_mesh(explicit):
        assert jnp.zeros_like(abstract).sharding == NamedSharding(explicit, P("x", None)) == jax.jit(lambda: jnp.zeros_like(abstract))().sharding
    assert lax.full_like(jax.ShapeDtypeStruct((2,), np.int32, weak_type=True), 1).weak_type
    """)


def test_specifications_are_resolved_when_they_are_used(on_devices):
    on_devices("""
    described = jax.ShapeDtypeStruct((2, 2), np.float32, sharding=P("x"))
    refused(TypeError, "the context mesh cannot be empty", lambda: described.sharding)
    for mesh in (explicit, auto):
        with jax.set_mesh(mesh):
            assert described.sharding == NamedSharding(mesh, P("x"))
    with jax.set_mesh(jax.make_mesh((2,), ("z",))):
        refused(ValueError, "is not found in mesh", lambda: described.sharding)
    refused(ValueError, "only valid for values of rank at least 3, but was applied to a value of rank 2", lambda: jax.ShapeDtypeStruct((2, 2), np.float32, sharding=P(None, "x", None)))
    refused(ValueError, "does not evenly divide the dimension size", lambda: jax.core.ShapedArray((5, 2), np.int32, sharding=NamedSharding(explicit.abstract_mesh, P("x"))))
    """)


def test_refusals(on_devices):
    on_devices("""
    free = NamedSharding(auto, P(P.UNCONSTRAINED, "x"))
    refused(ValueError, "Unconstrained dims are not allowed", lambda: jax.jit(lambda x: x, in_shardings=free))
    refused(ValueError, "Unconstrained dims are not allowed", lambda: jax.jit(lambda x: x, out_shardings=(free, None)))
    refused(ValueError, "should be a sequence of ints", lambda: jax.make_mesh(((4,), 2), ("x", "y")))
    assert jax.make_mesh((np.int32(1), np.int64(2)), ("x", "y")).axis_sizes == (1, 2)
    refused(TypeError, "Unexpected None", lambda: NamedSharding(auto, None))
    constrain = lax.with_sharding_constraint
    without_devices = NamedSharding(auto.abstract_mesh, P("y"))
    a = jax.device_put(X, NamedSharding(auto, P("x", "y")))
    assert constrain(a, without_devices).sharding == NamedSharding(auto, P("y"))
    refused(ValueError, "requires the input passed should be a `jax.Array`", lambda: constrain(X, without_devices))
    refused(TypeError, "must be a `NamedSharding`", lambda: constrain(jnp.asarray(X), without_devices))
    refused(ValueError, "does not match the mesh shape of the target sharding", lambda: constrain(a, NamedSharding(AbstractMesh((4,), ("y",)), P("y"))))
    turned = jax.sharding.Mesh(auto.devices[::-1], ("x", "y"))
    refused(ValueError, "Received incompatible devices", lambda: constrain(a, NamedSharding(turned, P("x"))))
    """)


def test_rows_of_an_array_in_parts(on_devices):
    """Iteration gives rows on one device, whatever types say of the whole."""
    on_devices("""
    a = jax.device_put(X, NamedSharding(explicit, P("x", "y")))
    rows = list(a)
    assert len(rows) == 8 and all(isinstance(r.sharding, SingleDeviceSharding) for r in rows)
    np.testing.assert_array_equal(np.stack(rows), X)
    first, *_ = a
    assert first.tolist() == X[0].tolist()
    """)


def test_settings_of_types(on_devices):
    on_devices("""
    mesh = jax.make_mesh((2, 1), ("x", "y"))
    a = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
    spec = lambda: jax.jit(lambda a: a * 2).trace(a).jaxpr.out_avals[0].sharding.spec
    assert spec() == P("x", "y")
    with jax.remove_size_one_mesh_axis_from_type(True):
        assert spec() == P("x", None)
        seen = []
        def body(a):
            seen.append(a.aval.mat.varying)
            return lax.psum(lax.pcast(a, "y", to="varying"), "x")
        with jax.set_mesh(mesh):
            y = jax.jit(jax.shard_map(body, in_specs=P("x", "y"), out_specs=P()))(a)
        np.testing.assert_array_equal(y, X[:4] + X[4:])
        assert seen == [{"x"}]
    assert spec() == P("x", "y")
    product = jax.shard_map(lambda a, b: a * b, mesh=auto, in_specs=(P("x"), P()), out_specs=P("x"))
    with jax.auto_pcast(False):
        refused(ValueError, "requires varying manual axes to match", lambda: product(X, X[:4]))
        refused(ValueError, "requires varying manual axes to match", lambda: jax.jit(product)(X, X[:4]))
        by_hand = jax.shard_map(lambda a, b: a * lax.pcast(b, "x", to="varying"), mesh=auto, in_specs=(P("x"), P()), out_specs=P("x"))
        assert by_hand(X, X[:4]).shape == (8, 4)
    assert product(X, X[:4]).shape == (8, 4)
    """)


def test_results_of_a_function_mapped_over_some_axes(on_devices):
    """They lie along the axes of their specifications, and along the explicit ones that the function was not mapped over."""
    on_devices("""
    a = jax.device_put(X, NamedSharding(explicit, P("x", "y")))
    for axis, outs, whole in [("x", P("x"), P("x", "y")), ("y", P(None, "y"), P("x", "y"))]:
        f = jax.shard_map(lambda v: 2 * v, mesh=explicit, out_specs=outs, axis_names={axis})
        assert f(a).sharding == jax.jit(f)(a).sharding == NamedSharding(explicit, whole)
        np.testing.assert_array_equal(f(a), 2 * X)
    mixed = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    f = jax.shard_map(lambda v: 2 * v, mesh=mixed, in_specs=P("y"), out_specs=P("y"), axis_names={"y"})
    assert f(X).sharding == NamedSharding(mixed, P("y"))
    """)


def test_groups_of_positions_of_several_axes(on_devices):
    on_devices("""
    parts = X.reshape(4, 2, 4)
    for groups in (((0, 1), (2, 3)), ((2, 0), (1, 3)), ((3, 1, 0, 2),)):
        of = {i: g for g in groups for i in g}
        run = lambda f: np.asarray(jax.jit(jax.shard_map(f, mesh=auto, in_specs=P(("x", "y")), out_specs=P(("x", "y"))))(X))
        got = run(lambda v: lax.all_gather(v, ("x", "y"), axis_index_groups=groups, tiled=True))
        np.testing.assert_array_equal(got, np.concatenate([parts[i] for at in range(4) for i in of[at]]))
        n = len(groups[0])
        got = run(lambda v: lax.psum_scatter(v, ("x", "y"), axis_index_groups=groups, scatter_dimension=1, tiled=True))
        want = [parts[list(of[at])].sum(0)[:, 4 // n * of[at].index(at):][:, : 4 // n] for at in range(4)]
        np.testing.assert_array_equal(got, np.concatenate(want))
    """)


def test_entries_beyond_the_rank_that_cut_nothing_are_left_out(on_devices):
    """Of every function that takes `out_sharding`: a specification made for one more dimension; what cuts there is refused."""
    on_devices("""
    mesh = jax.make_mesh((2,), ("x",))
    P = jax.P
    calls = dict(
        zeros=lambda s: jnp.zeros(4, out_sharding=s), full=lambda s: jnp.full(4, 1.5, out_sharding=s), arange=lambda s: jnp.arange(4, out_sharding=s),
        device=lambda s: jnp.ones(4, device=NamedSharding(mesh, s)), lax_full=lambda s: jax.lax.full((4,), 1.0, sharding=NamedSharding(mesh, s)),
        get=lambda s: x.at[jnp.array([0, 1]), 0].get(out_sharding=s), dot=lambda s: jnp.dot(x, jnp.ones(2), out_sharding=s), reshard=lambda s: jax.reshard(jnp.ones(4), s),
        einsum=lambda s: jnp.einsum("ij,j->i", x, jnp.ones(2), out_sharding=s), reshape=lambda s: x.reshape(8, out_sharding=s),
        iota=lambda s: jax.lax.broadcasted_iota("int32", (4,), 0, out_sharding=s), uniform=lambda s: jax.random.uniform(jax.random.key(0), (4,), out_sharding=s),
    )
    with jax.set_mesh(mesh):
        x = jax.device_put(jnp.ones((4, 2)), P("x", None))
        for name, f in calls.items():
            for run in (f, lambda s: jax.jit(lambda: f(s))()):
                for more in ((None,), (None, None)):
                    assert jax.typeof(run(P("x", *more))) == jax.typeof(run(P("x"))) and run(P("x", *more)).sharding.spec == P("x"), name
                try: run(P(None, "x"))
                except ValueError as e: assert "rank" in str(e), (name, e)
                else: raise AssertionError(name)
        assert jax.typeof(x.at[0, 0].get(out_sharding=P(None))).shape == ()
        at = jax.device_put(jnp.arange(4) % 2, P("x"))
        one = lambda r, k: r.at[k].set(r.at[k].get(out_sharding=jax.typeof(r).sharding) * 2, out_sharding=jax.typeof(r).sharding)
        y = jax.jit(jax.vmap(one))(x, at)
        assert str(jax.typeof(y)) == "float32[4@x,2]" and (np.asarray(y) == np.where(np.arange(2) == np.asarray(at)[:, None], 2, 1)).all()
    """)


def test_constraints_may_name_axes_of_size_one_that_types_leave_out(on_devices):
    on_devices("""
    for shape in ((2, 1), (1, 2), (1, 1), (2, 2)):
        mesh = jax.make_mesh(shape, ("x", "y"))
        for spec in (P("x", "y"), P(("x", "y"), None), P("y"), P("x"), P(None, ("y", "x"))):
            for leaves_out in (False, True):
                with jax.set_mesh(mesh), jax.remove_size_one_mesh_axis_from_type(leaves_out):
                    a = jax.device_put(np.arange(32).reshape(8, 4), spec)
                    same = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, spec))
                    assert (same(a) == a * 2).all()
                    wrong = next(s for s in (P("y", None), P("x", None), P(None, "x"), P(None, "y")) if not NamedSharding(mesh, s).is_equivalent_to(a.sharding, 2)) if shape != (1, 1) else None
                    if wrong:
                        try: jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, wrong))(a)
                        except AssertionError as e: assert "acts as an assert" in str(e)
                        else: raise AssertionError((shape, spec, wrong))
    """)


def test_mapped_functions_with_axes_of_another_type_keep_the_lanes_type(on_devices):
    on_devices("""
    grid = jax.make_mesh((2, 2), ("x", "y"))
    with jax.set_mesh(grid):
        for lanes in (P("x", None, None), P("y", None, None), P(("x", "y"), None, None), P()):
            a = jax.device_put(jnp.ones((4, 4, 4)), lanes)
            free = [n for n in ("x", "y") if n not in lanes.axes_of(0)]
            for cut in (P(), *[P(n) for n in free], *[P(None, n) for n in free]):
                f = jax.vmap(lambda r: jax.sharding.auto_axes(lambda r: r * 2, out_sharding=cut)(r))
                g = jax.vmap(lambda r: jax.sharding.auto_axes(lambda r: (r @ r).T, out_sharding=cut)(r))
                for h in (f, g):
                    assert jax.typeof(h(a)) == jax.typeof(jax.jit(h)(a)), (lanes, cut, jax.typeof(h(a)), jax.typeof(jax.jit(h)(a)))
                    assert jax.typeof(jax.jit(h)(a)).sharding.spec.axes_of(0) == lanes.axes_of(0)
    """)


def test_unconstrained_dimensions_keep_their_sharding_outside_of_jit_too(on_devices):
    on_devices("""
    free = P.UNCONSTRAINED
    wanted = [P(free, None), P(None, free), P(free, free), P(free, "y"), P("x", free), P(free, "x"), P(free), P(("x", "y"), free)]
    for lies in (P("x", "y"), P("x"), P(None, "y"), P(("x", "y")), P("y", "x"), P()):
        a = jax.device_put(X, NamedSharding(auto, lies))
        for spec in wanted:
            y = lax.with_sharding_constraint(a, NamedSharding(auto, spec))
            named = {n for d in range(2) for n in spec.axes_of(d)}
            kept = lambda d: tuple(n for n in lies.axes_of(d) if n not in named) if d < len(spec) and spec.partitions[d] is free else spec.axes_of(d)
            assert [y.sharding.spec.axes_of(d) for d in range(2)] == [kept(0), kept(1)], (lies, spec, y.sharding.spec)
            assert free not in y.sharding.spec.partitions and (y == X).all()
            with jax.set_mesh(auto):
                assert lax.with_sharding_constraint(a, spec).sharding == y.sharding
    b = lax.with_sharding_constraint(X, NamedSharding(auto, P(free, "x")))
    assert b.sharding == NamedSharding(auto, P(None, "x")) and (b == X).all()
    """)
