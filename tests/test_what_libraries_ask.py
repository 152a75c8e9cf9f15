"""Names and behaviours that libraries ask of the public modules, each as a library uses it."""

import importlib

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


def test_what_is_known_is_computed(jax, jnp, split):
    k = jnp.arange(3.0)
    jaxpr, outs, consts = split(lambda x, y: (x * (y + 1), k.sum(), y * 2, jnp.ones(2) * 3))
    assert [pv.is_known() for pv in outs] == [False, True, True, True]
    aval, value = outs[0]
    assert value is None and aval.shape == ()
    assert [np.asarray(pv.get_known()).tolist() for pv in outs[1:]] == [3.0, 4.0, [3.0, 3.0]]
    assert [float(x) for x in jax.core.eval_jaxpr(jaxpr, consts, jnp.float32(5.0))] == [15.0]


def test_known_results_may_be_asked_of_the_program(jax, jnp, split):
    jaxpr, outs, consts = split(lambda x, y: (x * y, y * 2, 7.0), instantiate=True)
    assert [pv.is_known() for pv in outs] == [False, False, False]
    assert [float(x) for x in jax.core.eval_jaxpr(jaxpr, consts, jnp.float32(5.0))] == [10.0, 4.0, 7.0]
    _, outs, _ = split(lambda x, y: (x * y, y * 2, 7.0), instantiate=[True, False, True])
    assert [pv.is_known() for pv in outs] == [False, True, False]


def test_what_is_known_may_be_traced_outside(jax, jnp, split):
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


def test_equations_are_told_apart(jax, jnp, module):
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
