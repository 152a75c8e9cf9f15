"""`shard_map` over several devices: values, derivatives and shardings, whatever the body does and whatever is around it; each device does its part alone."""

import textwrap

import pytest

pytestmark = pytest.mark.ours


@pytest.fixture
def on_devices(forked_child, jax):
    """Runs code with eight CPU devices."""
    return lambda code: forked_child(SETUP.format(library=jax.__name__) + textwrap.dedent(code), NUM_CPU_DEVICES="8")


SETUP = """
import json, pathlib, random, sys
sys.path.insert(0, "tests")
from jax.sharding import PartitionSpec as P, NamedSharding, Mesh, AbstractMesh, AxisType
from {library} import lax
def refused(error, words, f):
    try: f()
    except error as e: assert words in str(e), e
    else: raise AssertionError(words)
devices = np.array(jax.devices())
def mesh_of(shape, names): return Mesh(devices[: int(np.prod(shape))].reshape(shape), names)
mesh, line = mesh_of((4, 2), ("x", "y")), mesh_of((8,), ("x",))
def smap(f, ins, outs, mesh=line, **k): return jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **k)
X = np.sin(np.arange(64, dtype=np.float32)).reshape(8, 8)
near = lambda a, b: np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)
text = lambda f, *x: jax.jit(f).lower(*x).compile().as_text()
""".replace("from jax.sharding", "from {library}.sharding")


@pytest.mark.parametrize("grid", ["x2", "x8", "x2y4", "x4y2"])
def test_recorded_programs(on_devices, grid):
    """Values and derivatives, inside and outside, are what JAX gives with as many devices."""
    on_devices(
        f"""
        from golden import shard_map as programs
        golden = json.loads(programs.PATH.read_text())
        for checked in (True, False):
            ran, head = 0, f"{grid}, {{'checked' if checked else 'unchecked'}}, "
            for name, run in programs.cases(jax, mesh_of(*programs.MESHES["{grid}"]), checked).items():
                if (want := golden.get(head + name)) is None: continue
                for got, w in zip(run(), want, strict=True):
                    assert list(got.shape) == w["shape"] and len(got.sharding.device_set) > 1, name
                    np.testing.assert_allclose(np.asarray(got).ravel(), w["values"], rtol=2e-4, atol=2e-4, err_msg=name)
                ran += 1
            assert ran == sum(k.startswith(head) for k in golden)
        """
    )


def test_results_have_the_sharding_of_specifications(on_devices):
    on_devices(
        """
        f = smap(lambda a, b: lax.psum(a @ b, "y"), (P("x", "y"), P("y", None)), P("x", None), mesh)
        a, b = jax.device_put(X, NamedSharding(mesh, P("x", "y"))), jax.device_put(X, devices[3])
        for run in (f, jax.jit(f)):
            for x in (X, a):
                y = run(x, X)
                assert y.sharding.is_equivalent_to(NamedSharding(mesh, P("x", None)), 2) and y.committed
                assert run is not f or y.sharding == NamedSharding(mesh, P("x", None))
                near(y, X @ X)
        near(f(a, b), X @ X)  # what lies on one device is moved
        da, db = jax.jit(jax.grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1)))(a, X)
        assert da.sharding.spec == P("x", "y") and db.sharding.is_equivalent_to(NamedSharding(mesh, P("y")), 2)
        near(da, 2 * (X @ X) @ X.T)
        explicit = jax.make_mesh((4, 2), ("x", "y"))
        assert smap(lambda x: x, P("x"), P("x"), explicit)(jax.device_put(X, NamedSharding(explicit, P("x")))).sharding == NamedSharding(explicit, P("x"))
        for given in (X, jnp.asarray(X), jax.device_put(X, NamedSharding(explicit, P("y")))):  # types say how arrays lie
            refused(ValueError, "does not match the specs of the input", lambda: smap(lambda x: x, P("x"), P("x"), explicit)(given))
        other = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
        assert smap(lambda x: 2 * x, P("x"), P("x"))(other).sharding == NamedSharding(line, P("x"))
        refused(NotImplementedError, "several meshes", lambda: jax.jit(lambda x: smap(lambda x: x, P("x"), P("x"))(smap(lambda x: x, P("x"), P("x"), mesh)(x)))(X))
        """
    )


def test_a_device_does_its_part(on_devices):
    """The program of a device holds no whole array, and no other collective than the body's own."""
    on_devices(
        """
        a = jax.device_put(X, NamedSharding(line, P("x")))
        big = jax.ShapeDtypeStruct((800, 400), np.float32, sharding=NamedSharding(line, P("x")))
        def program(f, x=big):
            return "\\n".join(l for l in text(f, x).splitlines() if not l.startswith("#"))
        for f, many, what in [
            (smap(lambda x: jnp.sin(x) * 2, P("x"), P("x")), 0, ""),
            (smap(lambda x: lax.psum(x, "x"), P("x"), P()), 1, "all-reduce"),
            (smap(lambda x: lax.ppermute(x, "x", [(i, (i + 1) % 8) for i in range(8)]), P("x"), P("x")), 1, "collective-permute"),
            (smap(lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P("x"), P(None, "x")), 1, "all-to-all"),
            (smap(lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True), P("x"), P(None, "x")), 1, "reduce-scatter sum"),
        ]:
            told = program(f)
            assert told.count(" over [") == many and what in told, told
        whole, shard = 800 * 400 * 4, 100 * 400 * 4
        memory = jax.jit(smap(lambda x: jnp.sort(jnp.sin(x), 1), P("x"), P("x"))).lower(big).compile().memory_analysis()
        assert memory is None or memory.argument_size_in_bytes <= whole // 4, memory
        """
    )


def test_every_collective(on_devices):
    on_devices(
        """
        near(smap(lambda x: lax.pmean(x, "x"), P("x"), P())(X), X.mean(0, keepdims=True))
        near(smap(lambda x: lax.pmax(x, "x"), P("x"), P())(X), X.max(0, keepdims=True))
        near(smap(lambda x: lax.pmin(x, "x"), P("x"), P())(X), X.min(0, keepdims=True))
        near(smap(lambda x: lax.ppermute(x, "x", [(i, (i + 1) % 8) for i in range(8)]), P("x"), P("x"))(X), np.roll(X, 1, 0))
        near(smap(lambda x: lax.pshuffle(x, "x", [(i + 1) % 8 for i in range(8)]), P("x"), P("x"))(X), np.roll(X, -1, 0))
        near(smap(lambda x: lax.pbroadcast(x, "x", 3), P("x"), P("x"))(X), np.repeat(X[3:4], 8, 0))
        near(smap(lambda x: lax.pcast(x, "x", to="varying"), P(), P("x"))(X), np.concatenate([X] * 8))
        near(smap(lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P("x"), P(None, "x"))(X), X)
        near(smap(lambda x: lax.all_gather(x, ("x", "y"), tiled=True), P(("x", "y")), P(), mesh, check_vma=False)(X), X)
        near(smap(lambda x: lax.psum_scatter(x, "x", tiled=True), P(), P("x"), check_vma=False)(X), 8 * X)
        near(smap(lambda x: x * 0 + lax.axis_index(("x", "y")), P(("x", "y")), P(("x", "y")), mesh)(X), np.repeat(np.arange(8.0), 8).reshape(8, 8))
        groups = dict(axis_index_groups=[[0, 3, 5, 6], [1, 2, 4, 7]])
        near(smap(lambda x: lax.psum(x, "x", **groups), P("x"), P("x"), check_vma=False)(X)[1], X[[1, 2, 4, 7]].sum(0))
        two = mesh_of((2,), ("x",))
        sizes = [np.array(v, np.int32) for v in ([0, 1, 0, 1], [1, 2, 1, 2], [0, 0, 1, 2], [1, 1, 2, 2])]
        ragged = lambda *a: lax.ragged_all_to_all(*a, axis_name="x")
        args = (np.arange(8, dtype=np.float32), np.zeros(8, np.float32), *sizes)
        near(smap(ragged, (P("x"),) * 6, P("x"), two)(*args), smap(ragged, (P("x"),) * 6, P("x"), AbstractMesh((2,), ("x",)))(*args))
        """
    )


def test_loops_branches_and_maps_around_and_inside(on_devices):
    """Loops, branches, maps and derivatives on both sides; each device goes its own way."""
    on_devices(
        """
        step = smap(lambda x: jnp.sin(x) * (1 + lax.psum(x.sum(), "x")), P("x"), P("x"))
        alone = smap(lambda x: jnp.sin(x) * (1 + lax.psum(x.sum(), "x")), P("x"), P("x"), AbstractMesh((8,), ("x",)))
        around = {
            "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), c.sum()), x, None, length=3),
            "while": lambda f: lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (f(c[0]), c[1] + 1), (x, 0))[0],
            "cond": lambda f: lambda x: lax.cond(x[0, 0] < 9, f, jnp.cos, x),
            "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])),
            "vmap behind": lambda f: lambda x: jax.vmap(f, 1, 1)(jnp.stack([x, 2 * x], 1)),
            "grad": lambda f: jax.grad(lambda x: f(x).sum() ** 2),
            "grad of scan": lambda f: jax.grad(lambda x: lax.scan(lambda c, _: (f(c), c.sum()), x, None, length=3)[1].sum()),
            "checkpoint": lambda f: jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(f(x)))(x).sum()),
            "hessian": lambda f: jax.hessian(lambda x: f(x[None].repeat(8, 0)).sum()),
            "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
            "jvp of vmap": lambda f: lambda x: jax.jvp(jax.vmap(f), (jnp.stack([x, x]),), (jnp.stack([x, 2 * x]),))[1],
            "closure": lambda f: lambda x: jax.grad(lambda w: jax.shard_map(lambda x: x * w, mesh=line, in_specs=P("x"), out_specs=P("x"))(x).sum())(2.0),
            "remat in a scan": lambda f: jax.grad(lambda x: lax.scan(jax.checkpoint(lambda c, _: (f(c), c.sum())), x, None, length=2)[0].sum()),
        }
        for name, make in around.items():
            x = X[0] if name == "hessian" else X
            want = jax.tree.leaves(make(alone)(x))
            for run in (make(step), jax.jit(make(step))):
                for a, b in zip(jax.tree.leaves(run(x)), want, strict=True):
                    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-3, atol=1e-4, err_msg=name)
        inside = smap(lambda x: lax.while_loop(lambda c: c[0, 0] < 100, lambda c: c * 2 + 1, x), P("x"), P("x"))
        near(inside(np.abs(X)), smap(lambda x: lax.while_loop(lambda c: c[0, 0] < 100, lambda c: c * 2 + 1, x), P("x"), P("x"), AbstractMesh((8,), ("x",)))(np.abs(X)))
        # Python code looks at what all devices share, where nothing is traced
        def looks(x):
            return x if lax.psum(1, "x") == 8 and lax.pmax(lax.axis_index("x"), "x") == 7 else -x
        near(smap(looks, P("x"), P("x"))(X), X)
        refused(jax.errors.ConcretizationTypeError, "boolean", lambda: jax.jit(smap(looks, P("x"), P("x")))(X))
        """
    )


def test_some_axes_and_meshes_in_meshes(on_devices):
    on_devices(
        """
        some = smap(lambda x: lax.psum(x, "x"), P("x"), P(), mesh, axis_names={"x"})
        for run in (some, jax.jit(some)):
            near(run(X), X.reshape(4, 2, 8).sum(0))
        a = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
        # along the other axes the body is partitioned: nothing is gathered
        rows = jax.jit(smap(lambda x: jnp.sin(x) * 2, P("x"), P("x"), mesh, axis_names={"x"}))
        assert rows(a).sharding.spec == P("x", "y") and " over [" not in rows.lower(a).compile().as_text()
        near(rows(a), np.sin(X) * 2)
        product = jax.jit(smap(lambda x, w: x @ w, (P("x"), P()), P("x"), mesh, axis_names={"x"}))
        near(product(a, jax.device_put(X, NamedSharding(mesh, P("y")))), X @ X)
        def outer(x):
            assert jax.sharding.get_abstract_mesh().manual_axes == ("x",)
            return jax.shard_map(lambda x: lax.psum(x * lax.axis_index("y"), "y") + lax.axis_index("x"), in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})(x)
        nested = smap(outer, P("x"), P("x"), mesh, axis_names={"x"})
        want = X[:, 4:] + np.repeat(np.arange(4.0), 2)[:, None]
        for run in (nested, jax.jit(nested)):
            near(run(X), want)
        near(jax.grad(lambda x: (nested(x) ** 2).sum())(X)[:, 4:], 2 * want)
        refused(ValueError, "should match the mesh passed to shard_map", lambda: smap(lambda x: smap(lambda x: x, P(), P(), mesh)(x), P("x"), P("x"), mesh)(X))
        with jax.set_mesh(mesh):
            near(jax.shard_map(lambda x: x * 2, in_specs=P("x"), out_specs=P("x"))(X), 2 * X)
            near(jax.smap(lambda x: lax.psum(x, "y"), in_axes=1, out_axes=None, axis_name="y")(X), X[:, :4] + X[:, 4:])
        """
    )


def test_host_code_keys_and_checks(on_devices):
    on_devices(
        """
        from ferrax.experimental import checkify
        seen = []
        twice = smap(lambda x: jax.pure_callback(lambda a: (seen.append(a.shape), np.asarray(a) * 2)[1], jax.ShapeDtypeStruct(x.shape, x.dtype), x), P("x"), P("x"))
        near(twice(X), 2 * X)
        assert seen == [(1, 8)] * 8
        for axes, many in [({"x", "y"}, 4), ({"x"}, 4)]:  # one call for each part
            seen.clear()
            def told(x):
                jax.debug.callback(lambda a: seen.append(round(float(a), 3)), x.sum())
                return x
            jax.jit(smap(told, P("x"), P("x"), mesh, axis_names=axes))(X).block_until_ready()
            jax.effects_barrier()
            assert set(seen) == {round(float(s), 3) for s in X.reshape(4, -1).sum(1)}, seen
        keys = jax.random.split(jax.random.key(0), 8)
        near(smap(lambda k: jax.random.normal(k[0], (1, 4)), P("x"), P("x"))(keys), np.stack([jax.random.normal(k, (4,)) for k in keys]))
        folded = smap(lambda k: jax.random.normal(jax.random.fold_in(k, lax.axis_index("x")), (1, 4)), P(), P("x"))(jax.random.key(1))
        near(folded[5], jax.random.normal(jax.random.fold_in(jax.random.key(1), 5), (4,)))
        def positive(x):
            checkify.check(jnp.all(x >= 0), "{a} is not", a=x.min())
            return jnp.sqrt(x)
        for f, errors, words in [(positive, checkify.user_checks, "-0.9589"), (jnp.log, checkify.float_checks, "nan generated by primitive: log")]:
            for run in (smap(f, P("x"), P("x")), jax.jit(smap(f, P("x"), P("x")))):
                err, _ = checkify.checkify(run, errors=errors)(X)
                assert words in err.get(), err.get()
                assert checkify.checkify(run, errors=errors)(np.abs(X) + 1)[0].get() is None
        """
    )


def test_random_bodies_are_those_of_one_device(on_devices):
    """Random bodies, meshes and specifications: values and gradients are those of lanes on one device."""
    on_devices(
        """
        GRIDS = [((2,), "a"), ((3,), "a"), ((4,), "a"), ((2, 2), "ab"), ((2, 3), "ab"), ((3, 2), "ab"), ((8,), "a"), ((2, 4), "ab"), ((2, 2, 2), "abc")]
        rng, ran = random.Random(3), 0
        data = np.sin(np.arange(24 * 24, dtype=np.float32)).reshape(24, 24)
        for _ in range(60):
            shape, names = rng.choice(GRIDS)
            names = tuple(names)
            def spec():
                left = list(names)
                rng.shuffle(left)
                dims = []
                for _ in range(2):
                    k = rng.randint(0, min(len(left), 2))
                    dims.append(tuple(left.pop() for _ in range(k)) or None)
                return P(*dims)
            ins, checked = (spec(), spec()), rng.random() < 0.7
            ops = [(rng.randrange(9), rng.choice(names), rng.randrange(2)) for _ in range(rng.randint(1, 5))]
            size = dict(zip(names, shape, strict=True))
            def body(x, y):
                for op, name, d in ops:
                    n = size[name]
                    x = [
                        lambda: lax.psum(x, name) / n, lambda: lax.all_gather(x, name, axis=d).mean(d), lambda: x * (1 + lax.axis_index(name)) / n,
                        lambda: lax.ppermute(x, name, [(i, (i + 1) % n) for i in range(n)]), lambda: jnp.sin(x) + y.sum() / 99,
                        lambda: lax.all_to_all(x, name, d, 1 - d, tiled=True) if x.shape[d] % n == 0 else x,
                        lambda: lax.psum_scatter(x, name, scatter_dimension=d, tiled=True) / n if x.shape[d] % n == 0 else x,
                        lambda: lax.fori_loop(0, 2, lambda i, c: jnp.cos(c), x), lambda: jnp.sort(x, d) * lax.pmax(jnp.max(jnp.abs(y)), names),
                    ][op]()
                x = lax.pcast(x, tuple(n for n in names if n not in x.aval.vma), to="varying")
                return lax.psum(x.sum() / 99, names) if checked else lax.psum(x.sum() / 99, names)[None, None]
            out = P() if checked else P(names)
            fs = [jax.shard_map(body, mesh=m, in_specs=ins, out_specs=out, check_vma=checked) for m in (mesh_of(shape, names), AbstractMesh(shape, names))]
            wants = fs[1](data, data)
            for run in (fs[0], jax.jit(fs[0])):
                np.testing.assert_allclose(np.asarray(run(data, data)), np.asarray(wants), rtol=1e-3, atol=1e-4, err_msg=str((shape, ins, ops, checked)))
            if checked:
                a, b = [jax.jit(jax.grad(lambda x, y: f(x, y).sum(), (0, 1)))(data, data) for f in fs]
                for u, v in zip(a, b, strict=True):
                    np.testing.assert_allclose(np.asarray(u), np.asarray(v), rtol=1e-3, atol=1e-4, err_msg=str((shape, ins, ops)))
            ran += 1
        assert ran == 60
        """
    )


def test_an_invalid_specification_is_named_with_its_path(on_devices):
    """JAX's words."""
    on_devices(
        """
        head = "shard_map {0}_specs argument must be a pytree of `jax.sharding.PartitionSpec` instances, but"
        cases = [
            ("x", P(), TypeError, head.format("in") + ":\\n\\n  in_specs is x of type str, \\n\\nCheck the in_specs values passed to shard_map."),
            (({"a": "x"},), P(), TypeError, ":\\n\\n  in_specs[0]['a'] is x of type str, \\n\\nCheck"),
            ((P("x"), 3), P(), TypeError, ":\\n\\n  in_specs[1] is 3 of type int, \\n\\nCheck"),
            (P("x"), "x", TypeError, head.format("out") + ":\\n\\n  out_specs is x of type str, \\n\\nCheck"),
            (P("q"), P("z"), ValueError, "but:\\n\\n  in_specs refers to 'q'\\n\\nCheck the in_specs"),
            (P("x"), (P("q"), P("r", ("x", "s"))), ValueError, "  out_specs[0] refers to 'q'\\n\\n  out_specs[1] refers to 'r'\\n\\n  out_specs[1] refers to 's'\\n\\nCheck"),
        ]
        for ins, outs, kind, words in cases:
            refused(kind, words, lambda: smap(lambda v: v, ins, outs)(X))
        """
    )


def test_references_among_the_arguments(on_devices):
    """The parts of their values are written, and what is put together of those is their value afterwards."""
    on_devices("""
    def add(r, x, times=1.0):
        r[...] += x * times + lax.axis_index("x")
        r[0] = 2.0 * r[0]
    explicit = Mesh(devices, ("x",), axis_types=(AxisType.Explicit,))
    def want(value, x, spec):
        parts = np.split(value, 8, spec.index("x")) if "x" in spec else [value] * 8
        xs = np.split(x, 8, spec.index("x")) if "x" in spec else [x] * 8
        for i, (p, q) in enumerate(zip(parts, xs)):
            p = p + q + i
            p[0] *= 2
            parts[i] = p
        return np.concatenate(parts, spec.index("x")) if "x" in spec else parts[0]
    for around in (lambda f: f, jax.jit, lambda f: jax.jit(lambda *a: f(*a))):
        for spec in (P("x"), P(None, "x"), P()):
            for specs in ((spec, spec), None):
                if specs is None and not len(spec): continue
                on = line if specs else explicit
                r, x = jax.new_ref(jax.device_put(X, NamedSharding(on, spec))), jax.device_put(X + 1, NamedSharding(on, spec))
                more = {} if specs is None else dict(in_specs=specs)
                f = around(jax.shard_map(add, mesh=on, out_specs=None, check_vma=bool(len(spec)), **more))
                f(r, x)
                near(r[...], want(X, X + 1, spec))
                f(r, x)
                near(r[...], want(want(X, X + 1, spec), X + 1, spec))
                assert r[...].sharding.is_equivalent_to(NamedSharding(on, spec), 2)
    # in containers, beside results, and its derivative
    def update(tree, x):
        tree["r"][...] = x * 3
        return lax.psum(x.sum(), "x")
    r = jax.new_ref(jnp.zeros((8, 8)))
    total = smap(update, ({"r": P("x")}, P("x")), P())({"r": r}, X)
    near(total, X.sum()); near(r[...], 3 * X)
    def loss(x):
        r = jax.new_ref(jnp.zeros_like(x))
        smap(update, ({"r": P("x")}, P("x")), P())({"r": r}, x)
        return (r[...] ** 2).sum()
    near(jax.grad(loss)(X), 18 * X); near(jax.jit(jax.grad(loss))(X), 18 * X)
    refused(ValueError, "only one reference", lambda: smap(lambda a, b: None, P("x"), None)(r, r))
    """)


def test_constraints_along_axes_that_are_mapped_are_refused(on_devices):
    on_devices("""
    grid = mesh_of((4, 2), ("x", "y"))
    def f(spec, names):
        inside = lambda a: lax.with_sharding_constraint(a * 2, NamedSharding(grid, spec))
        return jax.jit(jax.shard_map(inside, mesh=grid, in_specs=P("x"), out_specs=P("x"), axis_names=names))
    for spec in (P("x"), P("x", "y"), P("y", "x"), P(("y", "x"))):
        for names in ({"x"}, {"x", "y"}):
            refused(ValueError, "manual axes", lambda: f(spec, names)(X))
    near(f(P(None, "y"), {"x"})(X), X * 2)
    """)


def test_an_abstract_mesh_cuts_as_a_mesh_does(on_devices):
    on_devices("""
    grid = mesh_of((4, 2), ("x", "y"))
    a = jax.device_put(X, NamedSharding(grid, P("x", "y")))
    for ins, outs in ((P("x"), P("x")), (P("x", "y"), P("x", "y")), (P(None, "y"), P(None, "y")), (P("x"), P(("x", "y")))):
        def f(x, m):
            part = (lambda p: p.reshape(2, -1)[:1].sum(0, keepdims=True) * 1) if outs == P(("x", "y")) else lambda p: p
            return jax.shard_map(part, mesh=m, in_specs=ins, out_specs=outs, check_vma=False)(x)
        for run in (f, jax.jit(f, static_argnums=1)):
            over, of = run(a, grid), run(a, grid.abstract_mesh)
            near(over, of)
            assert over.sharding == of.sharding == NamedSharding(grid, outs), (ins, outs, over.sharding, of.sharding)
    # of more members than there are devices, on one
    many = AbstractMesh((32,), ("i",))
    near(jax.jit(jax.shard_map(lambda p: p + lax.psum(p, "i"), mesh=many, in_specs=P("i"), out_specs=P("i")))(jnp.ones(32)), np.full(32, 33.0))
    """)
