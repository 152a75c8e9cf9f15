"""Names and behaviours that libraries ask of the public modules, each as a library uses it."""

import doctest
import importlib
import inspect
import types

import numpy as np
import pytest


@pytest.fixture(scope="module")
def module(jax):
    return lambda name: importlib.import_module(f"{jax.__name__}.{name}")


def test_the_type_of_a_reference(jax, jnp):
    ref = jax.new_ref(jnp.ones(2))
    assert str(jax.typeof(ref)) == "Ref{float32[2]}"
    assert jax.typeof(ref) == jax.typeof(jax.new_ref(jnp.zeros(2))) and jax.typeof(ref).shape == (2,)
    assert not isinstance(ref, jax.Array)


def test_transformations_are_decorators(jax, module):
    lu = module("extend.linear_util")
    debug_info = module("api_util").debug_info("test", lambda x: x, (1,), {})

    @lu.transformation
    def doubled(x):
        out = yield (2 * x,), {}
        yield out + 1

    @lu.transformation2
    def negated(inner, x):
        return -inner(x)

    assert negated(doubled(lu.wrap_init(lambda x: x * x, debug_info=debug_info))).call_wrapped(3) == -37

    @lu.transformation_with_aux
    def beside(x):
        out = yield (x,), {}
        yield out, x + 1

    @lu.transformation_with_aux2
    def below(inner, store, x):
        store.store(5)
        return inner(x)

    f, first = beside(lu.wrap_init(lambda x: x * x, debug_info=debug_info))
    g, second = below(f)
    assert (g.call_wrapped(3), first(), second()) == (9, 4, 5)


@pytest.fixture
def split(jax, jnp, module):
    """What `trace_to_jaxpr_nounits` makes of a function of two numbers, of which the second is known."""
    pe, lu, api_util = (module(n) for n in ("interpreters.partial_eval", "extend.linear_util", "api_util"))

    def run(f, **options):
        debug_info = api_util.debug_info("test", f, (1.0, 2.0), {})
        flat, _ = api_util.flatten_fun_nokwargs(lu.wrap_init(f, debug_info=debug_info), jax.tree.structure((1.0, 2.0)))
        inputs = [pe.PartialVal.unknown(jax.core.ShapedArray((), jnp.float32)), pe.PartialVal.known(jnp.float32(2.0))]
        return pe.trace_to_jaxpr_nounits(flat, inputs, **options)

    return run


def test_known_values_are_computed(jax, jnp, split):
    k = jnp.arange(3.0)
    jaxpr, outs, consts = split(lambda x, y: (x * (y + 1), k.sum(), y * 2, jnp.ones(2) * 3))
    assert [pv.is_known() for pv in outs] == [False, True, True, True]
    aval, value = outs[0]
    assert value is None and aval.shape == ()
    assert [np.asarray(pv.get_known()).tolist() for pv in outs[1:]] == [3.0, 4.0, [3.0, 3.0]]
    assert [float(x) for x in jax.core.eval_jaxpr(jaxpr, consts, jnp.float32(5.0))] == [15.0]


def test_known_results_may_be_requested_from_the_program(jax, jnp, split):
    jaxpr, outs, consts = split(lambda x, y: (x * y, y * 2, 7.0), instantiate=True)
    assert [pv.is_known() for pv in outs] == [False, False, False]
    assert [float(x) for x in jax.core.eval_jaxpr(jaxpr, consts, jnp.float32(5.0))] == [10.0, 4.0, 7.0]
    _, outs, _ = split(lambda x, y: (x * y, y * 2, 7.0), instantiate=[True, False, True])
    assert [pv.is_known() for pv in outs] == [False, True, False]


def test_known_values_may_be_traced_outside(jax, jnp, split):
    def outer(z):
        _, outs, _ = split(lambda x, y: (x * y, z * y))
        assert outs[1].is_known()
        return outs[1].get_known()

    assert float(jax.jit(outer)(4.0)) == 8.0


def test_primitives_by_name(jax, jnp, module):
    primitives = module("extend.core.primitives")
    core = module("extend.core")
    assert core.primitives is primitives
    eqns = jax.make_jaxpr(lambda x: (jax.jit(jnp.sin)(x), jnp.linalg.cholesky(x), jax.random.bits(jax.random.key(0))))(jnp.ones((2, 2))).eqns
    found = {e.primitive for e in eqns}
    assert primitives.jit_p in found
    assert primitives.sin_p is not primitives.cos_p
    assert primitives.call_p not in found and primitives.closed_call_p not in found
    assert not hasattr(primitives, "no_such_p")


def test_classes_of_variables(jax, jnp, module):
    core, eqn = module("core"), jax.make_jaxpr(lambda x: x + 1.0)(1.0).eqns[0]
    assert all(isinstance(v, core.Atom) for v in (*eqn.invars, *eqn.outvars))
    assert not any(isinstance(v, module("extend.core").DropVar) for v in eqn.outvars)


@pytest.mark.ours
def test_traces_written_in_python_are_refused(jax, module):
    core, extend = module("core"), module("extend.core")

    class Trace(core.Trace):
        pass

    with pytest.raises(NotImplementedError, match="walk the equations"), extend.set_current_trace(Trace()):
        pass
    with pytest.raises(NotImplementedError, match="walk the equations"), extend.take_current_trace():
        pass


def test_kinds_of_checks(module):
    checkify = module("experimental.checkify")
    assert checkify.user_checks <= checkify.all_checks
    assert checkify.ErrorCategory is not None


def test_tables_of_types(jax, module):
    assert module("interpreters.xla").canonicalize_dtype_handlers[np.ndarray](np.ones(2)).shape == (2,)


@pytest.mark.ours
def test_layouts(jnp, module):
    layout = module("experimental.layout")
    x = jnp.ones((2, 3))
    made = layout.Format(layout.Layout((0, 1)), x.sharding)
    assert made.layout.major_to_minor == (0, 1) and made.sharding == x.sharding
    assert layout.with_layout_constraint(x, layout.Layout((0, 1))) is x
    with pytest.raises(ValueError, match="row-major order"):
        layout.Layout((1, 0))


def test_lines_of_a_library_are_passed_over(jax, jnp, module, tmp_path):
    place = tmp_path / "library.py"
    place.write_text("def twice(x): return x * 2.0\n")
    space = {}
    exec(compile(place.read_text(), str(place), "exec"), space)

    def user(x):
        return space["twice"](x)

    before = jax.make_jaxpr(user)(1.0).pretty_print(source_info=True)
    assert "library.py:1" in before
    module("extend.source_info_util").register_exclusion(str(place))
    after = jax.make_jaxpr(lambda x: user(x))(1.0).pretty_print(source_info=True)
    assert "library.py" not in after and f":{user.__code__.co_firstlineno + 1}" in after


def test_the_trace_of_a_value(jax, jnp, module):
    core, ad = module("extend.core"), module("interpreters.ad")
    seen = []

    def f(x, y):
        top = core.find_top_trace([x, 1.0])
        seen.append([isinstance(x, ad.JVPTracer), isinstance(y, ad.JVPTracer), x._trace.main is top.main, (x * y)._trace.main is top.main])
        return x * y

    jax.jvp(lambda x: f(x, 2.0), (1.0,), (1.0,))
    assert seen.pop() == [True, False, True, True]
    outer = []

    def g(x):
        outer.append(x)
        return jax.jvp(lambda y: y * (x._trace.main is y._trace.main), (3.0,), (1.0,))[0] + x

    assert float(jax.jvp(g, (1.0,), (1.0,))[0]) == 1.0
    assert not isinstance(jnp.ones(2), ad.JVPTracer) and not isinstance(1.0, ad.JVPTracer)
    assert core.find_top_trace([1.0]) is not None


def test_batching_rules_that_take_the_axis(jax, jnp, module):
    core, batching = module("extend.core"), module("interpreters.batching")
    fancy, older = core.Primitive("fancy_for_test"), core.Primitive("older_for_test")
    seen = []

    def fancy_rule(axis, args, dims, *, by):
        seen.append((axis.size, axis.name, dims, by))
        return args[0] * by, dims[0]

    def older_rule(size, name, main, args, dims):
        seen.append((size, name, main, dims))
        return args[0] + size, dims[0]

    for p in (fancy, older):
        p.def_abstract_eval(lambda x, y, **_: x)
    batching.fancy_primitive_batchers[fancy] = fancy_rule
    batching.axis_primitive_batchers[older] = older_rule
    assert jax.vmap(lambda x: fancy.bind(x, 1.0, by=3), axis_name="i")(jnp.arange(2.0)).tolist() == [0, 3]
    assert jax.vmap(lambda x: older.bind(x, 1.0), axis_name="i")(jnp.arange(2.0)).tolist() == [2, 3]
    assert seen == [(2, "i", (0, None), 3), (2, "i", None, (0, None))]


def test_zeros_of_trees(jax, jnp, module):
    zero_from_primal = module("custom_derivatives").zero_from_primal
    tree = (1.0, jnp.ones(2), {"a": 3}, None)
    made = zero_from_primal(tree)
    assert float(made[0]) == 0 and made[1].tolist() == [0, 0] and made[3] is None and np.asarray(made[2]["a"]).dtype == jax.dtypes.float0
    marked = zero_from_primal(tree, symbolic_zeros=True)
    assert [x.dtype for x in (marked[0], marked[1], marked[2]["a"])] == [jnp.float32, jnp.float32, jax.dtypes.float0] and marked[3] is None


def test_transposes_are_given_zeros_with_types(jax, jnp, module):
    core, ad = module("extend.core"), module("interpreters.ad")
    both = core.Primitive("both_for_test")
    both.multiple_results = True
    both.def_impl(lambda x: [x, 2 * x])
    both.def_abstract_eval(lambda x: [x, x])
    seen = []

    def transposed(cts, x):
        seen.append([(type(ct) is ad.Zero, ct.aval.shape) if type(ct) is ad.Zero else None for ct in cts])
        return [sum((k + 1) * ct for k, ct in enumerate(cts) if type(ct) is not ad.Zero)]

    ad.deflinear2(both, transposed)
    assert jax.grad(lambda x: both.bind(x)[1].sum())(jnp.ones(3)).tolist() == [2, 2, 2]
    assert seen == [[(True, (3,)), None]]


@pytest.mark.ours
def test_implementations_may_close_over_arrays(jax, jnp, module):
    core, mlir = module("extend.core"), module("interpreters.mlir")
    table = jnp.arange(3.0) + 1
    for give in (lambda p, f: p.def_impl(f), lambda p, f: mlir.register_lowering(p, mlir.lower_fun(f, multiple_results=False))):
        p = core.Primitive("closing_for_test")
        p.def_abstract_eval(lambda x: x)
        give(p, lambda x: x * table)
        assert jax.jit(lambda x: p.bind(x + 1))(jnp.ones(3)).tolist() == [2, 4, 6]


def test_functions_with_rules_that_a_class_keeps_are_no_methods(jax, jnp):
    def double(x):
        return x * 2

    f, g = jax.custom_jvp(double), jax.custom_vjp(lambda x: x * 3)
    f.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
    g.defvjp(lambda x: (x * 3, None), lambda r, ct: (ct * 3,))

    class Layer:
        activation = f
        scale = g
        relu = jax.nn.relu

    assert float(Layer().activation(1.0)) == 2 and float(Layer().scale(1.0)) == 3 and Layer.activation is f
    assert float(Layer().relu(-1.0)) == 0


def test_the_client_of_a_device(jax):
    first = jax.devices()[0]
    client = first.client
    assert client is jax.devices()[0].client and client.platform == "cpu" and client.process_index() == 0
    assert client.devices() == jax.devices() and client.device_count() == len(jax.devices())
    assert isinstance(client.runtime_type, str) and isinstance(client.platform_version, str) and not hasattr(client, "pathways")


def test_the_memory_of_a_device(jax, jnp):
    device = jax.devices()[0]
    memory = device.default_memory()
    assert memory.kind == "device" == jnp.ones(2).sharding.memory_kind and memory == device.memory("device")
    assert memory in device.addressable_memories() and memory.addressable_by_devices() == [device] and memory.platform == "cpu"
    with pytest.raises(jax.errors.JaxRuntimeError, match="Got memory kind: none_such"):
        device.memory("none_such")


def test_arrays_are_put_by_format(jax, jnp, module):
    layout = module("experimental.layout")
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for place in (layout.Format(layout.Layout((0, 1)), sharding), layout.Format(None, sharding)):
        x = jax.device_put(np.ones((2, 3)), place)
        assert x.shape == (2, 3) and x.sharding == sharding and x.committed
    assert sharding._device_assignment == sharding._addressable_device_assignment == (jax.devices()[0],)


def test_a_jitted_function_has_its_signature(jax):
    f = jax.jit(lambda x, *, y=2: x)
    assert str(f.__signature__) == "(x, *, y=2)"
    assert inspect.signature(f, follow_wrapped=False) == inspect.signature(f)
    assert type(f).__name__ == "PjitFunction"


def test_the_sharding_of_a_type(jax, jnp):
    mesh = jax.sharding.AbstractMesh((), ())
    for x in (jnp.ones((3, 2)), np.ones((4, 1))):
        s = jax.typeof(x).sharding
        assert s == jax.sharding.NamedSharding(mesh, jax.P(None, None)) and s.is_fully_replicated
    seen = []
    jax.jit(lambda x: seen.append(jax.typeof(x).sharding.spec))(1.0)
    assert seen == [jax.P()]
    # a type asks for no device
    assert jax.jit(lambda x: x + 1).lower(jax.typeof(jnp.ones(2))).compile()(jnp.ones(2)).tolist() == [2.0, 2.0]
    # nor of results
    s = jax.typeof(jnp.ones(2)).sharding
    made = jax.random.normal(jax.random.key(0), (2,), out_sharding=s), jnp.zeros(2, device=s), jax.lax.full((2,), 1.0, sharding=s)
    assert not any(x.committed for x in made)
    assert jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((2,), np.float32, sharding=s)).compile()(jnp.ones(2)).tolist() == [2.0, 2.0]


def test_errors_of_branches_have_no_other_behind_them(jax):
    seen = [1]

    def branch(x):
        raise ValueError(f"of the branch, {seen}")

    with pytest.raises(ValueError, match="of the branch") as e:
        jax.lax.cond(True, branch, lambda x: x, 1.0)
    assert e.value.__context__ is None


def test_keys_are_converted_to_keys_of_their_kind_only(jax, jnp):
    keys = jax.random.split(jax.random.key(0), 2)
    assert jnp.astype(keys, keys.dtype) is keys or (jax.random.key_data(jnp.astype(keys, keys.dtype)) == jax.random.key_data(keys)).all()
    for x, dtype in ((keys, jnp.float32), (jnp.ones(2), keys.dtype), (keys, jax.random.key(0, impl="rbg").dtype)):
        with pytest.raises(ValueError, match="Cannot convert_element_type from"):
            jnp.astype(x, dtype)


def test_numpy_s_dtype_knows_the_names_of_small_floats(child):
    # nothing before has imported ml_dtypes
    assert child("print(jnp.dtype('bfloat16'), jnp.dtype('int4'), jnp.dtype is np.dtype)").split() == ["bfloat16", "int4", "True"]
    assert child("from numpy import dtype as numpys\nexec(f'from {jnp.__name__} import *')\nprint(dtype is numpys, fft.fft is jnp.fft.fft)").split() == [
        "True",
        "True",
    ]


def test_segments_of_one_row_for_all_ids(jax, jnp):
    ids = jnp.array([0, 1, 1])
    for data, segments, want in (
        (2.0, ids, [2, 4]),
        (jnp.ones(1), ids, [1, 2]),
        (jnp.ones(3), ids[None], [1, 2]),
        (jnp.array([[3.0, 1.0]]), ids, [[3, 1], [6, 2]]),
    ):
        assert jax.ops.segment_sum(data, segments, 2).tolist() == want
        assert jax.jit(lambda d, s: jax.ops.segment_sum(d, s, 2))(data, segments).tolist() == want
        assert jax.ops.segment_max(data, segments, 2).shape == jax.ops.segment_prod(data, segments, 2).shape == np.shape(want)
    for data, segments in ((jnp.ones(3), ids[:2]), (jnp.ones((2, 3)), ids[None])):
        with pytest.raises(ValueError, match="Incompatible"):
            jax.ops.segment_sum(data, segments, 2)


@pytest.mark.ours
def test_examples_of_control_flow_name_jax_alone(jax, jnp):
    # Haiku's functions have these docstrings, and its doctests run them
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for name in ("cond", "switch", "while_loop", "scan", "fori_loop", "map"):
        for test in doctest.DocTestFinder().find(getattr(jax.lax, name), name, globs={"jax": jax, "jnp": jnp}):
            assert test.examples
            assert runner.run(test).failed == 0


def test_a_function_that_is_several_branches_is_traced_once(jax, jnp):
    def counted(run):
        def f(x):
            seen.append(x)
            return x * closed

        def loss(t):
            nonlocal closed
            closed = t
            return run(f)

        seen, closed = [], None
        assert jax.grad(loss)(3.0) == 2
        return len(seen)

    assert counted(lambda f: jax.lax.cond(True, f, f, 2.0)) == 1
    assert counted(lambda f: jax.lax.switch(2, [f, lambda x: x * 1.0, f, f], 2.0)) == 1

    # a reference in reach of the branches
    total, seen = jax.new_ref(jnp.zeros(())), []

    def add(x):
        seen.append(x)
        total[...] += x

    jax.jit(lambda x: jax.lax.cond(x > 0, add, add, x))(2.0)
    assert total[...] == 2


@pytest.mark.ours
def test_flags_of_absl_are_taken_where_a_command_line_names_them(jax, jnp):
    flag = lambda value, present: types.SimpleNamespace(value=value, present=present)
    absl = types.SimpleNamespace(FLAGS={"jax_enable_x64": flag(True, 1), "jax_debug_nans": flag(True, 0), "other": flag(3, 1)})
    try:
        jax.config.complete_absl_config(absl)
        assert jnp.ones(1).dtype == np.float64 and not jax.config.jax_debug_nans
    finally:
        jax.config.update("jax_enable_x64", False)


def test_arrays_of_keys_are_made_as_others_are(jax, jnp):
    for impl, words in (("threefry2x32", 2), ("rbg", 4), ("unsafe_rbg", 4)):
        key = jax.random.key(0, impl=impl)
        made = {
            0: (
                jnp.zeros((3,), key.dtype),
                jnp.empty(3, key.dtype),
                jnp.full((3,), 0, key.dtype),
                jax.lax.full((3,), 0, key.dtype),
                jnp.zeros_like(key, shape=(3,)),
            ),
            1: (jnp.ones(3, key.dtype), jax.jit(lambda: jnp.ones(3, key.dtype))(), jnp.ones_like(key, shape=3), jax.lax.full_like(jnp.stack([key] * 3), 1)),
            3: (jnp.full((3,), 3, key.dtype), jnp.full_like(jnp.stack([key] * 3), 3)),
        }
        for word, arrays in made.items():
            for x in arrays:
                assert (x.dtype, x.shape) == (key.dtype, (3,)) and (jax.random.key_data(x) == word).all() and jax.random.key_data(x).shape == (3, words)
        for x in (
            jnp.full((3,), key),
            jnp.array([key, key, key]),
            jnp.broadcast_to(jnp.asarray(key, key.dtype), 3),
            jnp.array(jnp.stack([key] * 3), dtype=key.dtype),
        ):
            assert x.dtype == key.dtype and (x == key).all()
    keys = jax.random.split(jax.random.key(0))
    assert jnp.isclose(keys, keys[0]).tolist() == [True, False]
    assert jnp.allclose(keys, keys) and not jnp.allclose(keys, keys[1])


def test_a_rule_is_called_although_its_cotangent_is_none(jax, jnp):
    # Flax hands statistics of fp8 on as gradients of what the loss does not depend on
    @jax.custom_vjp
    def counted(x):
        return x * 1.0

    counted.defvjp(lambda x: (x * 1.0, None), lambda _, g: (g * 0 + 5.0,))

    def last(rule, symbolic_zeros=False):
        f = jax.custom_vjp(lambda y, z: y + z)
        fwd = (lambda y, z: (y.value + z.value, None)) if symbolic_zeros else (lambda y, z: (y + z, None))
        f.defvjp(fwd, rule, symbolic_zeros=symbolic_zeros)
        return f

    none = last(lambda _, g: (None, g))
    symbolic = last(lambda _, g: (jax.custom_derivatives.SymbolicZero(jax.typeof(g)), g), symbolic_zeros=True)
    for f in (none, symbolic):
        for loss in (lambda x: f(counted(x), x), lambda x: f(jnp.sin(counted(x)), x)):
            assert jax.grad(loss)(2.0) == jax.jit(jax.grad(loss))(2.0) == jax.grad(jax.checkpoint(loss))(2.0) == 6
    assert jax.grad(lambda x: (counted(x), x)[1])(2.0) == jax.grad(lambda x: jax.lax.stop_gradient(counted(x)) + x)(2.0) == 1


def test_a_constraint_by_a_mesh_without_devices_leaves_an_array_where_it_is(jax, jnp):
    # Flax's variables ask for it where a mesh is in use
    devices = np.array(jax.devices()[:1]).reshape(1, 1)
    with jax.set_mesh(jax.sharding.Mesh(devices, ("a", "b"))):
        x = jax.device_put(jnp.ones((2, 2)), jax.NamedSharding(jax.sharding.Mesh(devices, ("a", "b")), jax.P()))
        place = jax.NamedSharding(jax.sharding.get_abstract_mesh(), jax.P("a", "b"))
        for f in (lambda x: jax.lax.with_sharding_constraint(x, place), jax.jit(lambda x: jax.lax.with_sharding_constraint(x, place))):
            assert f(x).tolist() == x.tolist() and f(x).devices() == x.devices()
