"""Names that libraries take from modules of JAX's: public modules that are seldom used, and internals."""

import importlib
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

F32 = np.float32


def module(jax, name):
    return importlib.import_module(f"{jax.__name__}.{name}")


# ---------------------------------------------------------------- modules that work


def test_compute_on(jax, jnp):
    m = module(jax, "experimental.compute_on")

    @jax.jit
    def f(x):
        with m.compute_on("device_host"):
            y = x * 2
        return m.compute_on("device_host")(lambda y: y + 1)(y)

    assert float(f(3.0)) == 7
    with pytest.raises(ValueError, match="Invalid compute type moon"), m.compute_on("moon"):
        pass
    with pytest.raises(TypeError, match="must be a string"), m.compute_on(3):
        pass


def test_words_for_a_compiler(jax, jnp):
    metadata, groups = module(jax, "experimental.xla_metadata"), module(jax, "experimental.scheduling_groups")

    @metadata.set_xla_metadata(a=1)
    def f(x):
        with metadata.set_xla_metadata(b="2"):
            return metadata.set_xla_metadata(x * 2, c=True)

    assert float(jax.jit(f)(3.0)) == 6
    assert jax.grad(lambda x: groups.scheduling_group(name="g")(f)(x))(1.0) == 2


def test_shard_alike(jax, jnp):
    f = module(jax, "experimental.shard_alike").shard_alike
    x, y = jax.jit(f)(jnp.ones(3), jnp.zeros(3))
    assert [x.tolist(), y.tolist()] == [[1, 1, 1], [0, 0, 0]]
    with pytest.raises(ValueError, match="leaves shapes of `x` and `y` should match"):
        f(jnp.ones(3), jnp.ones(2))


def test_topologies(jax):
    m = module(jax, "experimental.topologies")
    topology = m.get_attached_topology("cpu")
    assert topology.devices == jax.devices("cpu")
    assert m.make_mesh(topology, (1,), ("x",)).axis_names == ("x",)


def _program(x, tree):
    return {"y": x * 2 + tree["a"], "n": tree["n"].sum()}


def test_compiled_programs_as_bytes(jax, jnp):
    m = module(jax, "experimental.serialize_executable")
    args = jnp.arange(3.0), {"a": jnp.float32(1), "n": jnp.arange(4)}
    compiled = jax.jit(_program).lower(*args).compile()
    blob, in_tree, out_tree = m.serialize(compiled)
    assert isinstance(blob, bytes)
    assert in_tree == compiled.in_tree
    loaded = m.deserialize_and_load(blob, in_tree, out_tree)
    for f in (compiled, loaded):
        got = f(*args)
        assert got["y"].tolist() == [1, 3, 5]
        assert int(got["n"]) == 6
    with pytest.raises(TypeError):
        loaded(jnp.ones(5), args[1])


@pytest.mark.ours
def test_only_compiled_programs_are_serialized(jax, jnp):
    m = module(jax, "experimental.serialize_executable")
    with pytest.raises(ValueError, match="Compilation does not support serialization"):
        m.serialize(lambda x: x)
    weak = jax.jit(lambda x: x * 2).lower(3.0).compile()
    got = m.deserialize_and_load(*m.serialize(weak))(3.0)
    assert got.weak_type
    assert float(got) == 6
    assert pickle.loads(m.serialize(weak)[0])


def test_custom_partitioning(jax, jnp):
    m = module(jax, "experimental.custom_partitioning")

    def f(x, n):
        return x * n

    g = m.custom_partitioning(f, static_argnums=(1,))
    g.def_partition(partition=lambda *a: None, infer_sharding_from_operands=lambda *a: None, sharding_rule="i -> i")
    assert jax.jit(g, static_argnums=1)(jnp.ones(2), 3).tolist() == [3, 3]
    assert m.CompoundFactor("a", "b")[1] == "b"
    with pytest.raises(ValueError, match="at least two factors"):
        m.CompoundFactor("a")


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both_ways", [False, True])
def test_lstm(jax, jnp, layers, both_ways):
    rnn = module(jax, "experimental.rnn")
    batch, time, width, hidden = 3, 5, 2, 4
    count = rnn.get_num_params_in_lstm(width, hidden, layers, both_ways)
    weights = rnn.init_lstm_weight(jax.random.key(0), width, hidden, layers, both_ways)
    assert weights.shape == (count,)
    assert float(abs(weights).max()) <= 0.5
    lengths = jnp.array([5, 2, 4], np.int32)
    x = jax.random.normal(jax.random.key(1), (batch, time, width))
    h, c = jax.random.normal(jax.random.key(2), (2, layers * (1 + both_ways), batch, hidden))
    parts = rnn.unpack_lstm_weights(weights, width, hidden, layers, both_ways)
    y, hn, cn = rnn.lstm_ref(x, h, c, *parts, lengths, width, hidden, layers, 0.0, both_ways)
    assert y.shape == (batch, time, hidden * (1 + both_ways))
    assert (np.asarray(y)[1, 2:] == 0).all()
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    at = lambda n: np.asarray(n, np.float64)

    def walk(xs, k):  # one direction of one layer, of one sequence
        w, u, b, d = (at(p[k]) for p in parts)
        s, m, out = at(h[k, row]), at(c[k, row]), []
        for v in xs:
            i, f, g, o = np.split(w @ v + b + u @ s + d, 4)
            m = sigmoid(f) * m + sigmoid(i) * np.tanh(g)
            s = sigmoid(o) * np.tanh(m)
            out.append(s)
        return np.array(out), s, m

    for row in range(batch):
        xs = at(x[row, : int(lengths[row])])
        for layer in range(layers):
            outs = []
            for way in range(1 + both_ways):
                k = layer * (1 + both_ways) + way
                out, s, m = walk(xs[::-1] if way else xs, k)
                np.testing.assert_allclose(hn[k, row], s, rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(cn[k, row], m, rtol=1e-4, atol=1e-5)
                outs.append(out[::-1] if way else out)
            xs = np.concatenate(outs, 1)
        np.testing.assert_allclose(y[row, : int(lengths[row])], xs, rtol=1e-4, atol=1e-5)
    swapped = rnn.swap_lstm_gates(rnn.swap_lstm_gates(weights, width, hidden, layers, both_ways), width, hidden, layers, both_ways)
    assert swapped.tolist() == weights.tolist()


@pytest.mark.ours
def test_lstm_on_any_device_and_its_gradient(jax, jnp):
    rnn = module(jax, "experimental.rnn")
    weights = rnn.init_lstm_weight(jax.random.key(0), 2, 3, 1, True)
    x, zeros, lengths = jnp.ones((2, 4, 2)), jnp.zeros((2, 2, 3)), jnp.array([4, 3], np.int32)
    f = lambda w: rnn.lstm(x, zeros, zeros, w, lengths, 2, 3, 1, 0.0, True)[0].sum()
    g = jax.grad(f)(weights)
    step = 1e-2 * jax.random.normal(jax.random.key(3), weights.shape)
    assert abs((f(weights + step) - f(weights - step)) / 2 - g @ step) < 1e-4
    with pytest.raises(NotImplementedError, match="Dropout"):
        rnn.lstm(x, zeros, zeros, weights, lengths, 2, 3, 1, 0.5, True)


def test_generators_as_objects(jax, jnp):
    m = module(jax, "extend.random")
    keys = m.random_seed(jnp.arange(3), impl=m.threefry_prng_impl)
    assert jax.random.key_data(keys).tolist() == [jax.random.key_data(jax.random.key(k)).tolist() for k in range(3)]
    assert str(m.threefry_prng_impl) == "fry"
    got = m.threefry_2x32(jnp.array([1, 2], np.uint32), jnp.arange(5, dtype=np.uint32))
    assert got.tolist() == [2052595727, 3504730591, 2527474599, 1880214352, 1914734168]


def test_kinds_of_memory(jax, jnp):
    assert [s.name for s in jax.memory.Space] == ["Device", "Host", "Any"]
    assert jax.device_put(jnp.ones(2), jax.memory.Space.Device).tolist() == [1, 1]
    assert jax.device_put({"a": 1.0}, {"a": jax.memory.Space.Device})["a"] == 1


def test_hybrid_meshes(jax):
    m = module(jax, "experimental.mesh_utils")
    if jax.__name__ != "jax":  # where devices tell no slice
        assert m.create_hybrid_device_mesh((1, 1), (1, 1), jax.devices("cpu")).shape == (1, 1)
    with pytest.raises(ValueError, match="Number of slices|slice_index"):
        m.create_hybrid_device_mesh((1,), (2,), jax.devices("cpu"))


def test_clients_by_name(jax):
    m = module(jax, "extend.backend")
    assert m.backends()["cpu"] is m.get_backend("cpu")


@pytest.mark.filterwarnings("ignore:jax.scipy.special.lpmn")
@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("normalized", [False, True])
def test_associated_legendre_functions(jax, jnp, n, normalized):
    special = pytest.importorskip("scipy.special")
    x = np.linspace(-0.9, 0.95, 7, dtype=F32)
    got = np.asarray(jax.scipy.special.lpmn_values(n, n, jnp.array(x), normalized))
    assert got.shape == (n + 1, n + 1, 7)
    for m in range(n + 1):
        for k in range(n + 1):
            want = special.lpmv(m, k, x.astype(float)) if k >= m else np.zeros(7)
            if normalized:
                want = want * np.sqrt((2 * k + 1) / (4 * np.pi) * special.factorial(abs(k - m)) / special.factorial(k + m))
            np.testing.assert_allclose(got[m, k], want, rtol=2e-4, atol=2e-4)
    if not normalized:
        values, slopes = jax.scipy.special.lpmn(n, n, jnp.array(x))
        np.testing.assert_allclose(values, got, rtol=1e-6)
        h = 1e-5
        for m in range(n + 1):
            for k in range(m, n + 1):
                want = (special.lpmv(m, k, x.astype(float) + h) - special.lpmv(m, k, x.astype(float) - h)) / (2 * h)
                np.testing.assert_allclose(slopes[m, k], want, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("left", [None, -7.0, "extrapolate"])
@pytest.mark.parametrize("right", [None, 9.0, "extrapolate"])
def test_one_side_of_an_interpolation(jax, jnp, left, right):
    if jax.__name__ == "jax" and isinstance(left, float) != isinstance(right, float):
        pytest.skip("JAX takes one side's value for the other's")
    xp, fp, x = jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 1.0, 4.0]), jnp.array([-1.0, 0.5, 3.0])
    ends = {None: (0.0, 4.0), "extrapolate": (-1.0, 7.0)}
    want = [ends[left][0] if left in ends else left, 0.5, ends[right][1] if right in ends else right]
    assert jnp.interp(x, xp, fp, left=left, right=right).tolist() == want
    for side in ("left", "right"):
        with pytest.raises(ValueError, match=f"the only valid string value of `{side}` is 'extrapolate', but got: 'no'"):
            jnp.interp(x, xp, fp, **{side: "no"})


# ---------------------------------------------------------------- under `import jax`


@pytest.fixture(scope="module")
def served():
    """Runs lines in a process where `import jax` is served by Ferrax; gives what they printed."""

    def run(*lines):
        code = "\n".join(["import ferrax.compat; ferrax.compat.install()", "import jax, jax.numpy as jnp, numpy as np", *lines])
        variables = {"PYTHONPATH": str(pathlib.Path(__file__).parents[2] / "python")}
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


@pytest.mark.ours
def test_every_listed_name_exists(served):
    output = served(
        "import importlib",
        "from ferrax.compat._standins import MIRRORS, _ROWS",
        "from ferrax.compat._foreign import FOREIGN",
        "for m, n, *_ in _ROWS: getattr(importlib.import_module(m), n)",
        "for m in (*MIRRORS, *FOREIGN): assert set(dir(importlib.import_module(m))) <= {*vars(importlib.import_module(m)), *dir(importlib.import_module(m))}",
        "for m, names in FOREIGN.items():",
        "    for n in names - {'*'}: getattr(importlib.import_module(m), n)",
        "print('all')",
    )
    assert output == ["all"]


@pytest.mark.ours
def test_names_of_other_compilers(served):
    output = served(
        "import jaxlib.mlir.ir as ir",
        "from jax.interpreters.mlir import LoweringRuleContext",
        "from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask",
        "def f(ctx: LoweringRuleContext, x: ir.Value | None) -> list[ir.Type]: ...",
        "class Mine(splash_attention_mask.Mask): pass",
        "for call in (lambda: ir.F32Type.get(), lambda: Mine(), lambda: LoweringRuleContext()):",
        "    try: call()",
        "    except NotImplementedError as e: print(str(e).split(':')[0])",
        "print(hasattr(ir, '_private'), hasattr(splash_attention_mask, 'no_such'))",
    )
    assert output == [
        "jaxlib.mlir.ir.F32Type.get",
        "jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask.Mask",
        "jax.interpreters.mlir.LoweringRuleContext",
        "False False",
    ]


@pytest.mark.ours
def test_conversion_to_tensorflow_exists_where_tensorflow_does(served, tmp_path):
    look = [
        "try:",
        "    from jax.experimental import jax2tf",
        "    jax2tf.convert(jnp.sin)",
        "except (ImportError, NotImplementedError) as e: print(type(e).__name__, str(e).split(':')[0])",
    ]
    assert served(*look)[0].startswith("ImportError")
    (tmp_path / "tensorflow.py").write_text("")
    code = "\n".join(
        [f"import sys; sys.path.insert(0, {str(tmp_path)!r})", "import ferrax.compat; ferrax.compat.install()", "import jax, jax.numpy as jnp", *look]
    )
    variables = {"PYTHONPATH": str(pathlib.Path(__file__).parents[2] / "python")}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert done.stdout.split()[:2] == ["NotImplementedError", "jax.experimental.jax2tf.convert"], done.stderr


@pytest.mark.ours
def test_dispatchers_see_jax(served):
    output = served(
        "x = jnp.ones(2)",
        "print(type(x).__module__, type(x).__name__, jax.Array.__module__)",
        "jax.jit(lambda x: print(type(x).__module__.split('.')[0], type(x).__mro__[1].__module__) or x)(x)",
        "import pickle; print(pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps(type(x))) is type(x), isinstance(x, jax.Array))",
    )
    assert output == ["jaxlib._jax ArrayImpl jax", "jax jax", "[1. 1.] True True"]


INTERNALS = {
    "flags": ("from jax._src import config; print(config.enable_x64.value, config.numpy_rank_promotion.value, config.config is jax.config)", "False allow True"),
    "lists": ("from jax._src.util import safe_zip, unzip2, split_list, partition_list; print(safe_zip([1], [2]), unzip2([(1, 2)]), split_list([1, 2, 3], [1]), partition_list([0, 1], 'ab'))", "[(1, 2)] ((1,), (2,)) [[1], [2, 3]] (['a'], ['b'])"),
    "promotion": ("from jax._src.numpy.util import promote_args_inexact, promote_dtypes; print([x.dtype.name for x in promote_args_inexact('f', 1, jnp.ones(2, 'int32'))], promote_dtypes(1, jnp.float32(2))[0].dtype)", "['float32', 'float32'] float32"),
    "shapes": ("from jax._src import core; print(core.canonicalize_shape((1, np.int64(2))), core.is_empty_shape((0, 1)), core.get_axis_env().axis_names())", "(1, 2) True []"),
    "tracers": ("from jax.interpreters.partial_eval import DynamicJaxprTracer as D; from jax._src.interpreters.batching import BatchTracer as B; jax.jit(lambda x: print(isinstance(x, D), isinstance(x, B)) or x)(1.0)", "True False"),
    "aliases": ("import jax._src.api as a; print(a.lu.wrap_init is jax.extend.linear_util.wrap_init, a.vmap is jax.vmap, a.tree_map is jax.tree.map, a.partial.__name__)", "True True True partial"),
    "meshes": ("from jax.interpreters import pxla; print(pxla.thread_resources.env.physical_mesh.empty)\nwith jax.make_mesh((1,), ('x',)): print(pxla.thread_resources.env.physical_mesh.axis_names)", "True\n('x',)"),
    "gufuncs": ("from jax._src.numpy.vectorize import _parse_gufunc_signature as p, _parse_input_dimensions as d; print(p('(a,b),(b)->(a)'), d((jnp.ones((4, 2, 3)), jnp.ones(3)), p('(a,b),(b)->(a)')[0]))", "([('a', 'b'), ('b',)], [('a',)]) ((4,), {'a': 2, 'b': 3})"),
    "jacobians": ("from jax._src.api import _std_basis, _jacfwd_unravel; t = {'a': jnp.ones(2), 'b': jnp.float32(1)}; print(_std_basis(t)['a'].tolist(), _jacfwd_unravel(t, None, jnp.eye(3))['b'].shape)", "[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]] (3,)"),
    "primitives": ("from jax._src.lax.utils import standard_primitive; p = standard_primitive(lambda x: x.shape, lambda x: np.dtype('int32'), 'mine'); print(jax.eval_shape(p.bind, jnp.ones(2)))", "ShapeDtypeStruct(shape=(2,), dtype=int32)"),
    "linear maps": ("from jax.interpreters import ad; from jax.extend.linear_util import wrap_init; y, f, aux = ad.linearize(wrap_init(lambda x: ([x * x], [x + 1, 's']), debug_info=None), 3.0, has_aux=True); print(float(y[0]), float(f(1.0)[0]), float(aux[0]), aux[1]); y, f = ad.linearize(wrap_init(lambda x: [x * x], debug_info=None), 3.0); print(float(y[0]), float(f(2.0)[0]))", "9.0 6.0 4.0 s\n9.0 12.0"),
    "forward mode with an auxiliary result": ("from jax.interpreters import ad; from jax.extend.linear_util import wrap_init; f, aux = ad.jvp(wrap_init(lambda x: ([x * x], {'next': x + 1, 'name': 's'}), debug_info=None), has_aux=True); (y,), (t,) = f.call_wrapped((3.0,), (1.0,)); print(float(y), float(t), float(aux()['next']), aux()['name'])", "9.0 6.0 4.0 s"),
    "forward mode": ("from jax.interpreters import ad; from jax.extend.linear_util import wrap_init; print(*[float(x) for pair in ad.jvp(wrap_init(lambda x: [x * x], debug_info=None)).call_wrapped((3.0,), (1.0,)) for x in pair])", "9.0 6.0"),
    "bind with a trace": ("print(jax.lax.add_p.bind_with_trace(jax._src.core.unsafe_get_current_trace(), (1.0, 2.0), {}))", "3.0"),
}  # fmt: skip


@pytest.mark.ours
@pytest.mark.parametrize("name", INTERNALS)
def test_internals(served, name):
    line, says = INTERNALS[name]
    assert served(line) == says.split("\n")
