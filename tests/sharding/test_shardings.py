"""Meshes, specifications and `shard_map`: what they mean is that of a mesh of devices. Arrays in parts are in sharding/test_parts.py."""

import copy
import importlib
import json
import pickle

import numpy as np
import pytest
from golden import shard_map as programs

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


def test_invalid_arguments_of_shard_map(jax, sh, P):
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


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("grid", list(programs.MESHES))
def test_programs_are_those_of_several_devices(jax, sh, grid, checked):
    """Values and derivatives, inside and outside, are what JAX gives with as many devices."""
    golden, head = json.loads(programs.PATH.read_text()), f"{grid}, {'checked' if checked else 'unchecked'}, "
    ran = 0
    for name, run in programs.cases(jax, sh.AbstractMesh(*programs.MESHES[grid]), checked).items():
        if (want := golden.get(head + name)) is None:
            continue
        for got, w in zip(run(), want, strict=True):
            assert list(got.shape) == w["shape"], name
            np.testing.assert_allclose(np.asarray(got).ravel(), w["values"], rtol=2e-4, atol=2e-4, err_msg=name)
        ran += 1
    assert ran == sum(k.startswith(head) for k in golden)


@pytest.mark.parametrize("grid", ["x1", "x4", "x2y4"])
def test_derivatives_inside_are_those_of_the_whole(jax, jnp, lax, sh, P, grid):
    """Of a loss that is the sum of the parts' losses, whichever part asks: the parameters are one variable, however many parts read them."""
    shape, axes = programs.MESHES[grid]
    mesh, data = sh.AbstractMesh(shape, axes), P(axes)
    model = lambda w, x: jnp.tanh(x @ w).sum()
    for step in (jax.grad(lambda w, x: lax.psum(model(w, x), axes)), lambda w, x: jax.grad(model)(w, x)):
        inside = jax.shard_map(step, mesh=mesh, in_specs=(P(), data), out_specs=P())
        for run in (inside, jax.jit(inside)):
            np.testing.assert_allclose(run(programs.W, programs.X), jax.grad(model)(programs.W, programs.X), rtol=1e-5)
    outside = jax.grad(lambda w: jax.shard_map(lambda w, x: lax.psum(model(w, x), axes), mesh=mesh, in_specs=(P(), data), out_specs=P())(w, programs.X))
    np.testing.assert_allclose(outside(programs.W), jax.grad(model)(programs.W, programs.X), rtol=1e-5)
    lanes = jax.vmap(inside, (0, None))(np.stack([programs.W, 2 * programs.W]), programs.X)
    np.testing.assert_allclose(lanes, jax.vmap(jax.grad(model), (0, None))(np.stack([programs.W, 2 * programs.W]), programs.X), rtol=1e-5)


def _network(jnp):
    return lambda w, x: jnp.tanh(jnp.tanh(x @ w["in"]) @ w["out"])


def _parameters():
    of = lambda *shape: np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)
    return {"in": of(4, 8), "out": of(8, 2)}, of(16, 4), of(16, 2)


def test_training_steps(jax, jnp, lax, sh, P):
    """Data, tensor and fully sharded parallelism take the step of one device, and keep its parameters equal over ten of them."""
    mesh = sh.AbstractMesh((2, 4), ("data", "model"))
    net, (w, x, y) = _network(jnp), _parameters()
    update = lambda w, g: jax.tree.map(lambda p, g: p - 0.1 * g, w, g)
    one = jax.jit(lambda w, x, y: update(w, jax.grad(lambda w: ((net(w, x) - y) ** 2).mean())(w)))

    def by_data(w, x, y):
        loss = lambda w: lax.pmean(((net(w, x) - y) ** 2).mean(), ("data", "model"))
        return update(w, jax.grad(loss)(w))

    def by_tensor(w, x, y):
        def loss(w):
            hidden = jnp.tanh(x @ w["in"])
            return lax.pmean(((jnp.tanh(lax.psum(hidden @ w["out"], "model")) - y) ** 2).mean(), "data")

        return update(w, jax.grad(loss)(w))

    def fully(w, x, y):
        def loss(w):
            whole = jax.tree.map(lambda p: lax.all_gather(p, ("data", "model"), tiled=True), w)
            return ((net({**whole, "in": whole["in"].T}, x) - y) ** 2).mean()

        return update(w, jax.tree.map(lambda g: g / 8, jax.grad(loss)(w)))

    rows = P(("data", "model"))
    shapes = {k: v.shape for k, v in w.items()}
    split = {"in": P(None, "model"), "out": P("model")}
    steps = {
        "data": jax.shard_map(by_data, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P()),
        "tensor": jax.shard_map(by_tensor, mesh=mesh, in_specs=(split, P("data"), P("data")), out_specs=split),
    }
    # rows of the matrix whose first axis has eight
    sharded = {"in": w["in"].T.copy(), "out": w["out"]}
    want = w
    for _ in range(10):
        want = one(want, x, y)
    for name, step in steps.items():
        got = w
        for _ in range(10):
            got = jax.jit(step)(got, x, y)
        for k in w:
            assert got[k].shape == shapes[k]
            np.testing.assert_allclose(got[k], want[k], rtol=1e-4, atol=1e-6, err_msg=name)
    step, got = jax.shard_map(fully, mesh=mesh, in_specs=(rows, rows, rows), out_specs=rows), sharded
    for _ in range(10):
        got = jax.jit(step)(got, x, y)
    np.testing.assert_allclose(np.asarray(got["in"]).T, want["in"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got["out"], want["out"], rtol=1e-4, atol=1e-6)


def test_types_record_the_varying_axes(jax, jnp, lax, sh, P):
    mesh, seen = sh.AbstractMesh((2, 3), ("a", "b")), {}

    def body(x, w):
        values = {
            "whole": w,
            "cut": x,
            "together": x + w,
            "summed": lax.psum(x, "a"),
            "summed twice": lax.psum(x, ("a", "b")),
            "largest": lax.pmax(x, "b"),
            "gathered": lax.all_gather(x, "a"),
            "gathered once": lax.all_gather(x, "a", to="invarying"),
            "place": lax.axis_index("b"),
            "cast": lax.pcast(w, "b", to="varying"),
            "like": jnp.zeros_like(x),
            "new": jnp.zeros(3),
            "jitted": jax.jit(lambda x: jnp.sin(x) * 2)(w + x),
            "scanned": lax.scan(lambda c, r: (c + r, r), x[0], x)[0],
        }
        seen.update({k: jax.typeof(v).vma for k, v in values.items()})
        assert str(jax.typeof(x)) == "float32[2,2]{V:(a,b)}" and str(jax.typeof(w)) == "float32[2]"
        return x

    f = jax.shard_map(body, mesh=mesh, in_specs=(P("a", "b"), P()), out_specs=P("a", "b"))
    both, want = {"a", "b"}, {}
    want |= {k: both for k in ("cut", "together", "gathered", "like", "jitted", "scanned")} | {"place": {"b"}, "cast": {"b"}}
    want |= {"whole": set(), "new": set(), "summed": {"b"}, "gathered once": {"b"}, "largest": {"a"}, "summed twice": set()}
    for run in (f, jax.jit(f)):
        run(X, np.ones(2, np.float32))
        assert {k: set(v) for k, v in seen.items()} == want
    assert jax.typeof(jnp.ones(2)).vma == frozenset()


def test_operations_that_types_refuse(jax, jnp, lax, sh, P):
    smap = lambda f, outs=None: jax.shard_map(f, mesh=sh.AbstractMesh((2,), ("a",)), in_specs=P("a"), out_specs=P("a") if outs is None else outs)(X)
    zero = jnp.zeros(6)
    for loop in (
        lambda x: lax.scan(lambda c, r: (c + r, None), zero, x)[0],
        lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: c + x[0] + 1, zero),
        lambda x: lax.fori_loop(0, 3, lambda _, c: c + x[0], zero),
    ):
        with pytest.raises(
            TypeError, match=r"so the manual axis types do not match.\n\nThis might be fixed by applying `jax.lax.pcast\(..., \('a',\), to='var"
        ):
            smap(loop)
    with pytest.raises(TypeError, match="cond branches must have equal output types but they differ"):
        smap(lambda x: lax.cond(True, lambda: x[0], lambda: zero))
    rule = jax.custom_vjp(lambda w, x: w * x)
    rule.defvjp(lambda w, x: (w * x, (w, x)), lambda r, ct: (ct * r[1], ct * r[0]))
    with pytest.raises(
        ValueError, match=r"Custom VJP bwd rule must .* of type float32\[2,6\]\{V:a\} corresponding to an input of type float32\[2,6\], so the manual"
    ):
        smap(lambda x: jax.grad(lambda w: rule(w, x).sum())(jnp.ones((2, 6))))
    with pytest.raises(ValueError, match=r"unexpected JAX type .* got float32\[2,6\], but expected float32\[2,6\]\{V:a\}"):
        smap(lambda x: jax.vjp(jnp.sin, x)[1](jnp.ones((2, 6)))[0])
    with pytest.raises(ValueError, match="Unsupported pcast from=varying, to='varying'"):
        smap(lambda x: lax.pcast(x, "a", to="varying"))
    with pytest.raises(NotImplementedError, match="axis_index_groups"):
        smap(lambda x: lax.psum(x, "a", axis_index_groups=[[0], [1]]), P())
    with pytest.raises(ValueError, match=r"out_specs\[1\] is P\(\) which implies that the corresponding output value is replicated across mesh axis 'a'"):
        smap(lambda x: (x, x.sum()), (P("a"), P()))


def test_static_arguments(jax, sh, P):
    """Arguments whose specification is None are passed unchanged."""
    f = lambda x, how: x * {"two": 2, "three": 3}[how]
    g = jax.shard_map(f, mesh=sh.AbstractMesh((2,), ("a",)), in_specs=(P("a"), None), out_specs=P("a"))
    np.testing.assert_array_equal(g(X, "three"), 3 * X)


def test_positions_that_branch_apart(jax, jnp, lax, sh, P):
    """A parameter that positions read in different branches has the sum of their cotangents."""
    f = lambda w, x: lax.cond(x[0, 0] > 5, lambda w: (w * w).sum(), lambda w: (3 * w).sum(), w)
    step = jax.shard_map(jax.grad(f), mesh=sh.AbstractMesh((2,), ("a",)), in_specs=(P(), P("a")), out_specs=P())
    for run in (step, jax.jit(step)):
        np.testing.assert_allclose(run(programs.W, X), 2 * programs.W + 3, rtol=1e-6)


def test_library_functions_on_parts(jax, jnp, lax, sh, P):
    """Functions with loops, solvers, callbacks and draws of their own take what varies, as they take it part by part."""
    scipy = importlib.import_module(f"{jax.__name__}.scipy")
    importlib.import_module(f"{jax.__name__}.scipy.sparse.linalg")
    fs = {
        "interp": lambda v: jnp.interp(v, jnp.arange(3.0), jnp.arange(3.0) ** 2),
        "searchsorted": lambda v: jnp.searchsorted(jnp.arange(8.0), v),
        "polyval": lambda v: jnp.polyval(jnp.array([1.0, 2.0]), v),
        "betainc": lambda v: scipy.special.betainc(1.0, 2.0, v / 10),
        "cg": lambda v: scipy.sparse.linalg.cg(lambda u: 2 * u + v * u, v)[0],
        "solve": lambda v: jax.grad(lambda b: jnp.linalg.solve(jnp.diag(v + 1) + 1, b).sum())(v),
        "root": lambda v: lax.custom_root(
            lambda u: u * u - v - 1,
            v + 1,
            lambda f, u: lax.fori_loop(0, 9, lambda _, u: u - (u * u - v - 1) / (2 * u), u),
            lambda g, y: y / g(jnp.ones_like(y)),
        ),
        "eigenvalues": lambda v: jnp.linalg.eigvalsh(jnp.outer(v, v)),
        "quantile": lambda v: jnp.quantile(v, jnp.array([0.2, 0.4])),
        "draws": lambda v: jax.random.gamma(jax.random.key(0), v + 1),
        "categorical": lambda v: jax.random.categorical(jax.random.key(1), v, shape=(2,)),
        "callback": lambda v: jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct((2,), np.float32), v),
        "associative scan": lambda v: lax.associative_scan(jnp.multiply, v),
        "switch": lambda v: lax.switch((v[0] > 2).astype(int), [jnp.sin, jnp.cos], v),
    }
    x, mesh = np.arange(6, dtype=np.float32), sh.AbstractMesh((3,), ("a",))
    for name, f in fs.items():
        parts = jax.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"))
        want = np.concatenate([f(jnp.asarray(x[i : i + 2])) for i in (0, 2, 4)])
        for run in (parts, jax.jit(parts)):
            np.testing.assert_allclose(run(x), want, rtol=1e-4, atol=1e-5, err_msg=name)
    system = lambda b, v: jnp.linalg.solve(jnp.diag(v + 1) + 1, b).sum()
    inside = jax.shard_map(jax.grad(system), mesh=mesh, in_specs=(P(), P("a")), out_specs=P())(np.ones(2, np.float32), x)
    np.testing.assert_allclose(inside, sum(jax.grad(system)(jnp.ones(2), jnp.asarray(x[i : i + 2])) for i in (0, 2, 4)), rtol=1e-5)


def test_arguments_that_do_not_fit(jax, jnp, sh, P):
    """JAX's words name the specification, the argument and its parameter."""

    def foo(v, *rest):
        return v

    smap = lambda mesh, ins, outs, f=foo: jax.shard_map(f, mesh=sh.AbstractMesh(*mesh), in_specs=ins, out_specs=outs)
    with pytest.raises(
        ValueError, match=r"in_specs is P\('x', None\) which has length 2, but the passed args\[0\], where args\[0\] is bound to foo's parameter 'v', has shape"
    ):
        smap(((4,), ("x",)), P("x", None), P("x"))(np.ones(8, np.float32))
    with pytest.raises(
        ValueError,
        match=r"args\[1\] of shape float32\[8,6\], where args\[1\] is the index 0 component of foo's varargs parameter 'rest', corr.* axes \('x', 'y'\)",
    ):
        smap(((2, 4), ("x", "y")), (P("x"), P(None, ("x", "y"))), P("x"))(np.ones(8, np.float32), np.ones((8, 6), np.float32))
    with pytest.raises(
        ValueError, match=r"out_specs is P\('x',\) which has length 1, but bar\(\*args\) has shape float32\[\]\{V:x\}, which has rank 0 \(and 0 < 1\)"
    ):

        def bar(v):
            return v.sum()

        smap(((4,), ("x",)), P("x"), P("x"), bar)(np.ones(8, np.float32))
    with pytest.raises(TypeError, match="shard_map in_specs argument must be a pytree of `jax.sharding.PartitionSpec` instances, but it was `None`"):
        jax.shard_map(foo, mesh=sh.AbstractMesh((4,), ("x",)), out_specs=P("x"))(np.ones(8, np.float32))


def test_targets_of_casts(jax, jnp):
    for target in ("reduced", "unreduced", "varying"):  # the lanes of a vmap have no types
        assert jax.vmap(lambda x, to=target: jax.lax.pcast(x, "i", to=to), axis_name="i")(jnp.ones(2)).tolist() == [1, 1]
    for cast in (jax.lax.all_gather, jax.lax.pcast):
        with pytest.raises(ValueError, match="Allowed `to` values"):
            cast(jnp.ones(2), "i", to="elsewhere")
