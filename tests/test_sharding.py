"""Meshes, specifications and `shard_map`: what they mean is that of a mesh of devices; arrays lie on one."""

import copy
import importlib
import pickle

import numpy as np
import pytest

pytestmark = pytest.mark.ours


@pytest.fixture(scope="module")
def sh(jax):
    return importlib.import_module(f"{jax.__name__}.sharding")


@pytest.fixture(scope="module")
def P(sh):
    return sh.PartitionSpec


@pytest.fixture
def mesh(jax, sh):
    return sh.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("x", "y"))


def test_specifications(P):
    assert repr(P("x", ("x", "y"), None)) == "P('x', ('x', 'y'), None)" and repr(P("x")) == "P('x',)" and repr(P()) == "P()"
    assert P("x") == P("x") and P("x") != P("x", None) and hash(P("x")) == hash(P("x")) and {P("x"): 1}[P("x")] == 1
    assert list(P("x", None)) == ["x", None] and len(P("x")) == 1 and P(None, "x")[1] == "x" and P("x") + P("y") == P("x", "y")
    assert P(unreduced={"x"}).unreduced == {"x"} and P("x").update(partitions=("y",)) == P("y") and P("a", "b").index("b") == 1
    assert pickle.loads(pickle.dumps(P("x", ("y", "z")))) == P("x", ("y", "z"))


def test_meshes(jax, sh, mesh):
    assert mesh.shape == {"x": 1, "y": 1} and mesh.size == 1 and mesh.axis_names == ("x", "y") and not mesh.empty and mesh.devices.shape == (1, 1)
    assert mesh == sh.Mesh(mesh.devices, ("x", "y")) and hash(mesh) == hash(sh.Mesh(mesh.devices, ("x", "y"))) and mesh != sh.Mesh(mesh.devices, ("x", "z"))
    assert str(mesh) == "Mesh('x': 1, 'y': 1, axis_types=(Auto, Auto))" and mesh.device_ids.tolist() == [[0]]
    made = jax.make_mesh((1,), ("x",))
    assert repr(made) == "Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Explicit,))" and made.are_all_axes_explicit
    abstract = sh.AbstractMesh((2, 4), ("a", "b"))
    assert abstract.size == 8 and repr(abstract) == "AbstractMesh('a': 2, 'b': 4, axis_types=(Auto, Auto))" and abstract.axis_sizes == (2, 4)
    assert abstract.update_axis_types({"a": sh.AxisType.Manual}).manual_axes == ("a",)
    with pytest.raises(ValueError, match=r"Number of devices \d+ must be >= the product of mesh_shape \(1000,\)"):
        jax.make_mesh((1000,), ("x",))
    with pytest.raises(ValueError, match=r"got devices.ndim == 1 and len\(axis_names\) == 2"):
        sh.Mesh(jax.devices()[:1], ("x", "y"))


def test_copies_and_other_processes(jax, sh, P, mesh):
    s = sh.NamedSharding(mesh, P("x"))
    for x in (mesh, s, sh.AbstractMesh((2,), ("a",)), sh.NamedSharding(sh.AbstractMesh((2,), ("a",)), P("a"))):
        assert pickle.loads(pickle.dumps(x)) == copy.deepcopy(x) == x


def test_the_mesh_in_use(jax, sh):
    mesh = jax.make_mesh((1, 1), ("x", "y"))
    assert sh.get_abstract_mesh().empty
    with jax.set_mesh(mesh):
        assert sh.get_mesh() == mesh and sh.get_abstract_mesh() == mesh.abstract_mesh
        with sh.use_abstract_mesh(sh.AbstractMesh((1,), ("z",))):
            assert sh.get_abstract_mesh().axis_names == ("z",)
        assert sh.get_mesh() == mesh
    assert sh.get_abstract_mesh().empty and sh.get_mesh().empty


def test_named_shardings(jax, jnp, sh, P, mesh):
    s = sh.NamedSharding(mesh, P("x", None))
    assert repr(s) == "NamedSharding(mesh=Mesh('x': 1, 'y': 1, axis_types=(Auto, Auto)), spec=P('x', None), memory_kind=device)"
    assert s == sh.NamedSharding(mesh, P("x", None)) and s != sh.NamedSharding(mesh, P("x")) and hash(s) == hash(sh.NamedSharding(mesh, P("x", None)))
    assert s.is_equivalent_to(sh.NamedSharding(mesh, P("x")), 2) and s.is_fully_replicated and s.device_set == set(jax.devices()[:1])
    x = jax.device_put(np.ones((4, 4), np.float32), s)
    assert x.sharding.is_equivalent_to(s, 2) and x.sharding.device_set == s.device_set and x.committed
    big = sh.NamedSharding(sh.AbstractMesh((2, 4), ("a", "b")), P("a", ("b",)))
    assert big.shard_shape((4, 8)) == (2, 2) and not big.is_fully_replicated and big.num_devices == 8
    with pytest.raises(ValueError, match="has duplicate entries for `x`"):
        sh.NamedSharding(mesh, P("x", "x"))
    with pytest.raises(ValueError, match="Resource axis: z of .* is not found in mesh"):
        sh.NamedSharding(mesh, P("z"))
    with pytest.raises(ValueError):
        big.shard_shape((3, 8))


def test_one_device_is_obeyed(jax, jnp, lax, sh, P, mesh):
    s, x = sh.NamedSharding(mesh, P("x")), jnp.arange(4.0)
    y = jax.jit(lambda x: lax.with_sharding_constraint(x * 2, s), in_shardings=s, out_shardings=s)(x)
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0] and y.sharding.is_equivalent_to(s, 1)
    with mesh:
        assert jax.jit(lambda x: lax.with_sharding_constraint(x * 2, P("x")))(x).tolist() == y.tolist()
    with pytest.raises(RuntimeError, match="requires a non-empty mesh in context if you are passing `PartitionSpec`s to in_shardings"):
        jax.jit(lambda x: x, in_shardings=P("x"))(x)
    with pytest.raises(RuntimeError, match="with_sharding_constraint requires a non-empty mesh in context"):
        jax.jit(lambda x: lax.with_sharding_constraint(x, P("x")))(x)
    with pytest.raises(ValueError, match="Using PartitionSpec when you are not under a mesh context is not allowed"):
        sh.reshard(x, P("x"))
    assert jax.make_array_from_callback((4,), s, lambda i: np.arange(4.0)[i]).tolist() == x.tolist()
    assert jax.make_array_from_single_device_arrays((4,), s, [jax.device_put(x, jax.devices()[0])]).tolist() == x.tolist()
    assert jax.make_array_from_process_local_data(s, np.arange(4.0)).tolist() == x.tolist()


def test_parts_over_several_devices_are_refused(child):
    child(
        """
        from ferrax.sharding import *
        s = NamedSharding(jax.make_mesh((2,), ("x",)), P("x"))
        assert s.devices_indices_map((4,)) == {jax.devices()[0]: (slice(0, 2),), jax.devices()[1]: (slice(2, 4),)}
        def refused(f):
            try: f()
            except NotImplementedError as e: assert "2" in str(e), e
            else: raise AssertionError
        x = jnp.arange(4.0)
        refused(lambda: reshard(x, s))
        refused(lambda: jax.device_put(x, s))
        refused(lambda: jax.jit(lambda x: x, in_shardings=s))
        refused(lambda: jax.jit(lambda x: jax.lax.with_sharding_constraint(x, s))(x))
        refused(lambda: make_array_from_callback((4,), s, lambda i: x[i]))
        y = jax.shard_map(lambda x: x - jax.lax.pmean(x, "x"), mesh=s.mesh, in_specs=P("x"), out_specs=P("x"))(x)
        assert y.tolist() == [-1.0, -1.0, 1.0, 1.0]
        """,
        NUM_CPU_DEVICES="2",
    )


# ---------------------------------------------------------------- shard_map


GRID = ((2, 3), ("a", "b"))
X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize("spec", [(), ("a",), (None, "b"), ("a", "b"), (("a",), None), (None, ("b", "a")), (None, ("a", "b")), (("a",), ("b",))])
def test_cutting_and_joining_is_the_identity(jax, sh, P, spec):
    shapes = []
    f = jax.shard_map(lambda x: (shapes.append(x.shape), x)[1], mesh=sh.AbstractMesh(*GRID), in_specs=P(*spec), out_specs=P(*spec))
    np.testing.assert_array_equal(f(X), X)
    assert set(shapes) == {sh.NamedSharding(sh.AbstractMesh(*GRID), P(*spec)).shard_shape(X.shape)}


def test_collectives_and_places(jax, jnp, lax, sh, P):
    mesh = sh.AbstractMesh(*GRID)
    smap = lambda f, ins, outs, **k: jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **k)
    np.testing.assert_array_equal(smap(lambda x: lax.psum(x, "a"), P("a"), P())(X), X[:2] + X[2:])
    np.testing.assert_array_equal(smap(lambda x: lax.psum(x.sum(), ("a", "b")), P("a", "b"), P())(X), X.sum())
    place = smap(lambda x: x * 0 + lax.axis_index("a") * 10 + lax.axis_index("b"), P("a", "b"), P("a", "b"))(X)
    np.testing.assert_array_equal(place, np.repeat(np.repeat([[0, 1, 2], [10, 11, 12]], 2, 0), 2, 1))
    matmul = smap(lambda x, w: lax.psum(x @ w, "b"), (P("a", "b"), P("b", None)), P("a"))
    w = np.ones((6, 5), np.float32)
    np.testing.assert_allclose(matmul(X, w), X @ w)
    np.testing.assert_allclose(jax.jit(matmul)(X, w), X @ w)
    np.testing.assert_allclose(jax.grad(lambda x: (matmul(x, w) ** 2).sum())(X), jax.grad(lambda x: ((x @ w) ** 2).sum())(jnp.asarray(X)))
    np.testing.assert_allclose(jax.vmap(matmul, (0, None))(np.stack([X, X + 1]), w), np.stack([X @ w, (X + 1) @ w]))
    np.testing.assert_array_equal(smap(lambda x: lax.all_gather(x, "a", tiled=True), P("a"), P(), check_vma=False)(X), X)
    np.testing.assert_array_equal(smap(lambda t: {"s": t["x"] * 2}, P("a"), {"s": P("a")})({"x": X})["s"], X * 2)
    only = smap(lambda x: x.sum(0), P("a"), P("a"), axis_names={"a"})(X)
    np.testing.assert_array_equal(only, np.concatenate([X[:2].sum(0), X[2:].sum(0)]))


def test_what_shard_map_refuses(jax, sh, P):
    smap = lambda f, ins, outs, **k: jax.shard_map(f, mesh=sh.AbstractMesh(*GRID), in_specs=ins, out_specs=outs, **k)
    with pytest.raises(ValueError, match="out_specs which require replication which can't be statically inferred"):
        smap(lambda x: x, P("a"), P())(X)
    np.testing.assert_array_equal(smap(lambda x: x, P("a"), P(), check_vma=False)(X), X[:2])
    with pytest.raises(ValueError, match="not evenly divisible by the corresponding mesh axis sizes"):
        smap(lambda x: x, P("b"), P("b"))(X)
    with pytest.raises(ValueError, match="in_specs argument must refer to an axis marked as manual"):
        smap(lambda x: x, P("z"), P())(X)
    with pytest.raises(ValueError, match="The context mesh cannot be empty"):
        jax.shard_map(lambda x: x, in_specs=P("a"), out_specs=P("a"))(X)
    with pytest.raises(NameError):
        smap(lambda x: jax.lax.psum(x, "z"), P(), P())(X)


def test_shard_map_on_one_device(jax, jnp, lax, P, mesh):
    f = lambda x: x + lax.psum(x, "x") + lax.axis_index("y")
    x = jnp.ones((4, 4))
    assert jax.shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x).tolist() == (2 * x).tolist()
    with jax.set_mesh(mesh):
        assert jax.shard_map(f, in_specs=P("x", "y"), out_specs=P("x", "y"))(x).tolist() == (2 * x).tolist()
        assert jax.smap(lambda x: lax.psum(x, "x"), in_axes=0, out_axes=None, axis_name="x")(x).tolist() == x.tolist()
