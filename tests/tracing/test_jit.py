"""`jit`: what a signature is, what runs when, the stages, and what is refused."""

import functools
import gc
import inspect
import textwrap
import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

Point = namedtuple("Point", "x y")


def counted(jax, f, **options):
    traces = []

    @functools.partial(jax.jit, **options)
    @functools.wraps(f)
    def g(*args, **kwargs):
        traces.append((args, kwargs))
        return f(*args, **kwargs)

    return g, traces


def test_one_trace_a_signature(jax, jnp):
    f, traces = counted(jax, lambda x: x + 1)
    for x, n in (
        (1.0, 1),
        (2.0, 1),
        (jnp.asarray(3.0), 1),
        (1, 2),
        (True, 3),
        (jnp.ones(3), 4),
        (np.ones(3, np.float32), 4),
        (np.ones(3), 4),
        (jnp.ones(4), 5),
        (jnp.float32(1), 6),
    ):
        f(x)
        assert len(traces) == n, x


def test_structure_is_part_of_the_signature(jax):
    f, traces = counted(jax, lambda t: t)
    trees = [(1.0, 2.0), [1.0, 2.0], {"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 2.0}, Point(1.0, 2.0), OrderedDict(a=1.0, b=2.0), (1.0, (2.0,)), (1.0, None)]
    for i, t in enumerate(trees):
        for _ in range(2):
            out = f(t)
            assert type(out) is type(t) and len(traces) == i + 1
    assert f({"b": 2.0, "a": 1.0}) == {"a": 1.0, "b": 2.0} and len(traces) == len(trees)


def test_keywords_and_positions(jax):
    f, traces = counted(jax, lambda x, y=2.0, **k: x - y + sum(k.values()))
    assert (float(f(5.0, 1.0)), float(f(5.0, y=1.0)), float(f(5.0)), float(f(5.0, b=1.0, a=2.0)), float(f(5.0, a=2.0, b=1.0))) == (4, 4, 3, 6, 6)
    assert len(traces) == 4


def test_static_arguments(jax):
    f, traces = counted(jax, lambda x, n: x * n, static_argnums=1)
    assert int(f(2, 3)) == 6 and int(f(4, 3)) == 12 and int(f(2, 5)) == 10 and len(traces) == 2
    g, traces = counted(jax, lambda x, *, mode: x * 2 if mode == "double" else x, static_argnames="mode")
    assert int(g(4, mode="double")) == 8 and int(g(4, mode="same")) == 4 and int(g(5, mode="same")) == 5 and len(traces) == 2
    h, traces = counted(jax, lambda x, n: x, static_argnums=-1)
    h(1, "a"), h(1, "b"), h(1, "a")
    assert len(traces) == 2


def test_unhashable_static_arguments(jax):
    with pytest.raises(ValueError, match="Non-hashable static arguments are not supported"):
        jax.jit(lambda x, n: x, static_argnums=1)(1, [1])


def test_configuration_is_part_of_the_signature(jax):
    f, traces = counted(jax, lambda x: x + 1)
    assert f(1.0).dtype == np.float32
    with jax.enable_x64(True):
        assert f(1.0).dtype == np.float64
    assert f(1.0).dtype == np.float32 and len(traces) == 2


def test_stages_and_calls_share_traces(jax, jnp):
    f, traces = counted(jax, lambda x: x + 1)
    f.lower(jnp.ones(3))
    assert len(traces) == 1
    f(jnp.ones(3)), f.trace(jax.ShapeDtypeStruct((3,), np.float32)), f.eval_shape(np.ones(3, np.float32)), f.lower(jnp.zeros(3))
    assert len(traces) == 1
    f.lower(jnp.ones(4)), f(jnp.ones(4))
    assert len(traces) == 2
    f.clear_cache()
    f.lower(jnp.ones(4))
    assert len(traces) == 3


def test_lowering_inside_of_a_trace_shares_traces(jax, jnp):
    f, traces = counted(jax, lambda x: x + 1)

    @jax.jit
    def outer(x):
        f.lower(x)
        return f(x)

    assert outer(jnp.ones(3))[0] == 2 and len(traces) == 1
    y = jnp.ones(3)
    g, seen = counted(jax, lambda x: x + y)
    jax.jit(lambda z: [jax.jit(lambda x: x + z).lower(z), g(z)][1])(y)
    assert len(seen) == 1


def test_the_cache_is_bounded_and_can_be_cleared(jax, jnp):
    f, traces = counted(jax, lambda x, n: x + n, static_argnums=1)
    for n in range(20):
        f(1.0, n)
    assert f._cache_size() == 20
    f.clear_cache()
    assert f._cache_size() == 0
    f(1.0, 1)
    assert len(traces) == 21


def test_the_client_lists_compiled_programs(jax, jnp):
    client, x = jax.devices()[0].client, jnp.ones(3)
    f = jax.jit(lambda x, n: x + n, static_argnums=1)
    jax.block_until_ready([f(x, 1), f(x, 2), f(x, 2)])
    gc.collect()
    gc.disable()  # programs of other tests are freed with their functions
    try:
        held = len(client.live_executables())
        f.clear_cache()
        assert len(client.live_executables()) == held - 2
    finally:
        gc.enable()


def test_functions_and_their_traces_are_freed(jax):
    def f(x):
        return x + 1

    g = jax.jit(f)
    g(1.0)
    seen = weakref.ref(f)
    del f, g
    jax.clear_caches()
    gc.collect()
    assert seen() is None


def test_wraps_its_function(jax):
    def f(x, n=2):
        """Says what it does."""
        return x

    g = jax.jit(f)
    assert (g.__name__, g.__doc__, g.__wrapped__) == ("f", f.__doc__, f) and inspect.signature(g) == inspect.signature(f) and "f" in repr(g)


def test_methods(jax):
    class Scale:
        def __init__(self, by):
            self.by = by

        @functools.partial(jax.jit, static_argnums=0)
        def __call__(self, x):
            return x * self.by

        @staticmethod
        @jax.jit
        def twice(x):
            return x * 2

    assert int(Scale(3)(4)) == 12 and int(Scale(5)(4)) == 20 and int(Scale.twice(4)) == 8


def test_methods_on_pytrees(jax):
    @jax.tree_util.register_pytree_node_class
    class Counter:
        def __init__(self, n):
            self.n = n

        def tree_flatten(self):
            return (self.n,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

        @jax.jit
        def next(self):
            return Counter(self.n + 1)

    assert int(Counter(1).next().next().n) == 3


def test_outputs_keep_their_structure(jax):
    out = jax.jit(lambda x: {"a": (x, None), "b": [2.5, Point(x, 1)]})(1)
    assert out["a"][1] is None and float(out["b"][0]) == 2.5 and isinstance(out["b"][1], Point) and isinstance(out["b"][0], jax.Array)


def test_nested_calls_are_equations(jax):
    inner = jax.jit(lambda x: x * 2)

    def f(x):
        return inner(x) + inner(x)

    j = jax.make_jaxpr(f)(1.0)
    assert [str(e.primitive) for e in j.eqns] == ["jit", "jit", "add"] and j.eqns[0].params["name"] == "<lambda>"
    assert [str(e.primitive) for e in j.eqns[0].params["jaxpr"].eqns] == ["mul"]
    inline = jax.make_jaxpr(lambda x: jax.jit(lambda x: x * 2, inline=True)(x))(1.0)
    assert [str(e.primitive) for e in inline.eqns] == ["mul"]


def test_under_transforms(jax, jnp):
    f = jax.jit(lambda x, y: jnp.sin(x) * y)
    x = jnp.arange(3.0)
    assert np.allclose(jax.grad(f)(0.5, 2.0), 2 * np.cos(0.5)) and np.allclose(jax.vmap(f, (0, None))(x, 2.0), np.sin(x) * 2)
    assert np.allclose(jax.jit(jax.vmap(jax.grad(f)))(x, x), np.cos(x) * x)


def test_captured_values(jax, jnp):
    w = jnp.arange(3.0)
    assert jax.jit(lambda x: x * w)(2.0).tolist() == [0, 2, 4]
    assert float(jax.grad(lambda x: jax.jit(lambda y: x * y)(3.0))(2.0)) == 3.0  # a captured tracer


def test_disable_jit_runs_the_function_itself(jax):
    seen = []
    f = jax.jit(lambda x: (seen.append(float(x)), x + 1)[1])
    with jax.disable_jit():
        assert float(f(1.0)) == 2.0 and float(f(2.0)) == 3.0
    assert seen == [1.0, 2.0]


def test_donation(jax, jnp):
    a = jnp.ones(8)
    b = jax.jit(lambda x: x + 1, donate_argnums=0)(a)
    assert a.is_deleted() and b.tolist() == [2.0] * 8
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[8\]."):
        a + 1


def test_an_array_is_not_donated_while_it_is_another_argument(jax, jnp):
    x = jnp.ones(3)
    for numbers, words in [(0, "previously donated in the"), ((0, 1), "twice in"), (1, "also used by the")]:
        with pytest.raises(jax.errors.JaxRuntimeError, match=f"INVALID_ARGUMENT: Attempt to .* buffer .*{words} "):
            jax.jit(lambda x, y: (x + y, x * y), donate_argnums=numbers)(x, x)
    assert jax.jit(lambda x, y: x + 1, donate_argnums=0)(x, x).tolist() == [2, 2, 2]  # y is not used


def test_arguments_that_fit_no_result_are_not_donated(jax, jnp):
    x = jnp.ones(3)
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[3\]"):
        jax.jit(lambda x: x.sum(), donate_argnums=0)(x)
    assert not x.is_deleted()
    jax.jit(lambda x: 1.0, donate_argnums=0)(x)
    assert not x.is_deleted()


@pytest.mark.parametrize("flag", ["nan", "inf"])
def test_bad_numbers_are_found_beneath_every_transform(jax, jnp, flag):
    bad = {"nan": lambda x: jnp.log(x - 2), "inf": lambda x: 1 / (x - 1)}[flag]
    slope = {"nan": lambda x: jnp.sqrt(x - x), "inf": lambda x: jnp.sqrt(x - 1)}[flag]
    calls = {
        "vmap": lambda: jax.vmap(bad)(jnp.array([1.0, 3.0])),
        "grad": lambda: jax.grad(bad)(1.0),
        "value_and_grad": lambda: jax.value_and_grad(slope)(1.0),
        "jvp": lambda: jax.jvp(bad, (1.0,), (1.0,)),
        "linearize": lambda: jax.linearize(bad, 1.0)[1](1.0),
        "vjp": lambda: jax.vjp(slope, 1.0)[1](1.0),
        "checkpoint": lambda: jax.grad(jax.checkpoint(slope))(1.0),
        "vmap of grad": lambda: jax.vmap(jax.grad(slope))(jnp.ones(2)),
        "jacfwd": lambda: jax.jacfwd(bad)(1.0),
    }
    with getattr(jax, f"debug_{flag}s")(True):
        for call in calls.values():
            with pytest.raises(FloatingPointError, match=rf"invalid value \({flag}\) encountered in"):
                call()
        assert float(jax.grad(jnp.log)(2.0)) == 0.5 and jax.vmap(lambda k: k + 1)(jnp.arange(2)).tolist() == [1, 2]
    for call in calls.values():
        call()


def test_debug_nans_with_donation(jax, jnp):
    with jax.debug_nans(True):
        f = jax.jit(lambda x: 0.0 / x, donate_argnums=0)
        with pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in div"):
            f(jnp.array(0.0))
        x = jnp.array(1.0)
        assert f(x) == 0 and not x.is_deleted()  # nothing is donated while results are looked at


# ---------------------------------------------------------------- one cache


def test_functions_that_are_jitted_twice_share_their_traces(jax):
    traces = []

    def f(x):
        traces.append(x)
        return x + 1

    jax.jit(f)(2), jax.jit(f)(3)
    assert len(traces) == 1
    jax.jit(f, static_argnums=0)(2)
    assert len(traces) == 2
    g, h = jax.jit(f), jax.jit(f)
    g(2.0), h(3.0)
    assert len(traces) == 3
    jax.clear_caches()
    jax.jit(f)(2)
    assert len(traces) == 4


def test_many_static_arguments(jax):
    f, traces = counted(jax, lambda n, x: x + n, static_argnums=0)
    for _ in range(2):
        assert [int(f(n, 1)) for n in range(200)] == list(range(1, 201))
    assert len(traces) == 200


class Odd:
    def __init__(self, hash_error=None, eq_error=None):
        self.hash_error, self.eq_error = hash_error, eq_error

    def __hash__(self):
        if self.hash_error:
            raise self.hash_error
        return 1

    def __eq__(self, other):
        if self.eq_error:
            raise self.eq_error
        return self is other


def test_static_arguments_that_cannot_be_compared(jax):
    f = jax.jit(lambda a, x: x, static_argnums=0)
    f(Odd(eq_error=NotImplementedError("odd")), 1.0)
    with pytest.raises(ValueError, match="static arguments should be comparable using __eq__"):
        f(Odd(eq_error=NotImplementedError("odd")), 1.0)
    with pytest.raises(ValueError, match="Non-hashable static arguments are not supported"):
        jax.jit(lambda a, x: x, static_argnums=0)(Odd(TypeError("odd")), 1.0)
    with pytest.raises(KeyError, match="odd"):
        jax.jit(lambda a, x: x, static_argnums=0)(Odd(KeyError("odd")), 1.0)


# ---------------------------------------------------------------- where it runs


PLACES = """
d = jax.devices()
S = jax.sharding.SingleDeviceSharding
x = jnp.ones(3)
f = lambda x: x + 1
where = lambda a: (a.device.id, a.committed)
"""


def test_shardings_say_where(child):
    code = """
    on2 = jax.device_put(x, d[2])
    assert where(jax.jit(f, in_shardings=S(d[1]))(x)) == (1, True)
    assert where(jax.jit(f, in_shardings=S(d[1]))(on2)) == (1, True)
    assert where(jax.jit(f, out_shardings=S(d[1]))(x)) == (1, True)
    assert where(jax.jit(f, device=d[3])(on2)) == (3, True)
    a, b = jax.jit(lambda a, b: (a, b), in_shardings=(S(d[1]), None), out_shardings=(None, S(d[1])))(x, x)
    assert where(a) == where(b) == (1, True)
    assert where(jax.jit(lambda n, a: a + n, in_shardings=(S(d[1]),), static_argnums=0)(1, x)) == (1, True)
    assert where(jax.jit(lambda t: t["a"], in_shardings=({"a": S(d[1])},))({"a": x})) == (1, True)
    assert where(jax.vmap(jax.jit(f, in_shardings=S(d[1])))(x)) == (1, True)
    assert where(jax.jit(lambda x: jax.jit(f, out_shardings=S(d[1]))(x) * 2)(x)) == (1, True)
    assert jax.eval_shape(jax.jit(f, out_shardings=S(d[1])), x).sharding == S(d[1])
    c = jax.jit(f, in_shardings=S(d[1])).lower(x).compile()
    assert c.input_shardings == ((S(d[1]),), {}) and c.output_shardings == S(d[1]) and where(c(x)) == (1, True)
    print("done")
    """
    assert child(PLACES + textwrap.dedent(code), NUM_CPU_DEVICES="4").strip() == "done"


def test_captured_arrays_are_brought_to_the_arguments(child):
    """As constants of a program, wherever they lie; arguments that do not lie together are refused."""
    code = """
    a = jnp.arange(3.0)
    b, c = jax.device_put(a, d[2]), jax.device_put(a, d[3])
    x = jax.device_put(a, d[1])
    for f, arg, of, value in [
        (lambda u: u + b, x, 1, a + a),
        (lambda u: u + b + c, a, 0, 3 * a),
        (lambda u: u + b + c, x, 1, 3 * a),
        (lambda u: jax.jit(lambda v: v * b)(u) + c, x, 1, a * a + a),
        (jax.vmap(lambda u: u * b[2]), x, 1, 2 * a),
        (jax.grad(lambda u: (u * u * b).sum()), x, 1, 2 * a * a),
        (lambda u: jax.lax.scan(lambda s, _: (s + b, c), u, None, length=2)[0], x, 1, 3 * a),
        (lambda u: jax.lax.cond(u[0] < 1, lambda v: v + b, lambda v: v + c, u), x, 1, a + a),
    ]:
        y = jax.jit(f)(arg)
        assert y.devices() == {d[of]} and (y == jax.device_put(value, d[of])).all(), (y, y.devices(), value)
    assert (jax.jit(lambda: b + c)() == a + a).all()
    whole, apart = (jax.sharding.NamedSharding(jax.sharding.Mesh(m, "x"), jax.P()) for m in (d[:2], d[2:]))
    captured = jax.device_put(a, apart)
    for arg in (a, jax.device_put(a, whole)):
        for g in (b, captured):
            f = lambda u: u + g
            constrained = lambda u: jax.lax.with_sharding_constraint(u + g, whole)
            programs = [jax.jit(f, in_shardings=whole), jax.jit(f, out_shardings=whole), jax.jit(constrained), jax.jit(jax.jit(f, in_shardings=whole))]
            for p in programs:
                for y in (p(arg), p.lower(arg).compile()(arg)):
                    assert y.devices() == set(d[:2]) and (np.asarray(y) == np.asarray(a + a)).all(), y
    try:
        jax.jit(lambda u, v: u + v)(x, b)
    except ValueError as e:
        assert "incompatible devices" in str(e)
    else:
        raise AssertionError
    print("done")
    """
    assert child(PLACES + textwrap.dedent(code), NUM_CPU_DEVICES="4").strip() == "done"


SHARDINGS = [
    ("in_shardings=S(d[0]), out_shardings=S(d[1])", "(x)", ValueError, "Received incompatible devices for jitted computation"),
    ("in_shardings=3", "(x)", TypeError, "in_shardings leaf specifications are expected to be PartitionSpec instances or None, but got 3"),
    ("in_shardings=(S(d[1]), S(d[1]))", "(x)", ValueError, "got a tuple or list of length 2 for an args tuple of length 1"),
    ("in_shardings={'a': S(d[1])}", "({'a': x})", ValueError, "might need to be wrapped in a singleton tuple"),
    ("in_shardings=(S(d[1]),)", "(x=x)", ValueError, "pjit does not support kwargs when in_shardings is specified"),
    ("out_shardings=(S(d[1]), S(d[1]))", "(x)", ValueError, "pjit out_shardings"),
    ("in_shardings=S(d[1]), device=d[0]", "(x)", ValueError, "If backend or device is specified on jit, then in_shardings should not be specified"),
]


def test_wrong_shardings(child):
    calls = "".join(
        f"""
try:
    jax.jit(lambda x: x, {options}){call}
except {error.__name__} as e:
    assert {words!r} in str(e), e
else:
    raise AssertionError({options!r})
"""
        for options, call, error, words in SHARDINGS
    )
    warned = "import warnings\nwarnings.simplefilter('ignore')\n"
    assert child(warned + PLACES + calls + "print('done')", NUM_CPU_DEVICES="2").strip() == "done"


def test_cotangents_go_back_to_where_their_values_are(child):
    code = """
    on1 = jax.device_put(x, d[1])
    assert jax.grad(lambda x: jax.device_put(x, d[2]).sum())(on1).device == d[1]
    assert [a.device for a in jax.jvp(lambda x: jax.device_put(x, d[2]), (on1,), (on1,))] == [d[2], d[2]]
    assert jax.vmap(lambda x: jax.device_put(x, d[2]))(on1).device == d[2]
    assert jax.jit(lambda x: jax.device_put(x, d[2]))(on1).device == d[1]
    print("device_put" in str(jax.make_jaxpr(lambda x: jax.device_put(x, d[1]))(x)))
    """
    assert child(PLACES + textwrap.dedent(code), NUM_CPU_DEVICES="3").strip() == "True"


@pytest.mark.ours
def test_compiler_options(jax):
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: No such compile option: 'invalid_key'"):
        jax.jit(lambda x: x).lower(1.0).compile(compiler_options={"invalid_key": 1})
    with pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option"):
        jax.jit(lambda x: x, compiler_options={"invalid_key": 1})(1.0)
    with pytest.warns(UserWarning, match="xla_a_flag is accepted and has no effect"):
        assert jax.jit(lambda x: x, compiler_options={"xla_a_flag": True})(1.0) == 1


@pytest.mark.filterwarnings("ignore:the compiler option:UserWarning")
@pytest.mark.parametrize("value,fits", [(True, True), ("False", True), (1, False), ("true", False), ("x", False)])
@pytest.mark.parametrize("name", ["xla_embed_ir_in_executable", "xla_cpu_enable_fast_math", "xla_dump_hlo_as_text", "xla_allow_excess_precision"])
def test_a_compiler_option_that_is_true_or_false(jax, name, value, fits):
    lowered = jax.jit(lambda x: x).lower(1.0)
    if fits:
        assert lowered.compile(compiler_options={name: value})(1.0) == 1
    else:
        with pytest.raises(jax.errors.JaxRuntimeError, match=f"While setting option {name}, '{value}' is not a valid bool value"):
            lowered.compile(compiler_options={name: value})


# ---------------------------------------------------------------- stages


def test_stages(jax, jnp):
    f = jax.jit(lambda x, *, k: {"y": jnp.sin(x) * k})
    x = np.ones((3, 5), np.float32)
    traced = f.trace(x, k=2.0)
    lowered = f.lower(x, k=2.0)
    compiled = lowered.compile()
    assert {"sin", "mul"} <= {str(e.primitive) for e in traced.jaxpr.eqns}
    assert "sin" in lowered.as_text() and "3" in lowered.as_text() and lowered.out_info["y"].shape == (3, 5)
    assert (
        np.allclose(compiled(x, k=2.0)["y"], np.sin(x) * 2)
        and compiled.as_text()
        and compiled.cost_analysis() is not None
        and compiled.memory_analysis() is not None
    )
    with pytest.raises(TypeError, match="Argument types differ from the types for which this computation was compiled"):
        compiled(np.ones((4, 5), np.float32), k=2.0)
    assert f.eval_shape(jax.ShapeDtypeStruct((2, 2), np.float32), k=1.0)["y"].shape == (2, 2)


def test_stages_tell_of_their_arguments(jax, jnp):
    f = jax.jit(lambda x, d: x + d["a"], donate_argnums=0)
    lowered = f.lower(1.0, {"a": np.float32(2)})
    traced, compiled = f.trace(1.0, {"a": np.float32(2)}), lowered.compile()
    for stage in (traced, lowered, compiled):
        (x, d), kwargs = stage.args_info
        assert (x.shape, x.dtype, x.donated, d["a"].donated, kwargs) == ((), np.float32, True, False, {})
        assert stage.donate_argnums == (0,) and stage.in_tree.num_leaves == 2
    assert repr(x) == "ArgInfo(_aval=ShapedArray(float32[], weak_type=True), donated=True)"
    assert traced.fun_name == "<lambda>" and compiled.runtime_executable() is not None


@pytest.mark.ours
def test_programs_of_stages_can_be_counted(jax, jnp):
    lowered = jax.jit(lambda x: x.astype("bfloat16").astype("float32") @ x).lower(jnp.ones((2, 2)))
    assert lowered.as_text().count("convert_element_type") == 2 and lowered.as_text("jaxpr") == lowered.as_text()
    assert [str(e.primitive) for e in lowered.compiler_ir().eqns].count("dot_general") == 1
    assert lowered.as_text("plan") == lowered.compiler_ir("plan") == lowered.compile().runtime_executable().as_text()
    for ask in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(ValueError, match="unknown dialect: foo"):
            ask("foo")
    costs = lowered.cost_analysis()
    assert costs["flops"] > 0 and costs["bytes accessed"] == costs["bytes accessed0{}"] + costs["bytes accessedout{}"] == 32
    traced = jax.jit(lambda x: x).trace(1.0)
    assert traced.lower(lowering_platforms=("cpu", "cuda")).compile()(2.0) == 2
    assert traced.lower(lowering_platforms=("tpu",)).compile()(2.0) == 2  # one program for all
    with pytest.raises(ValueError, match="there is no platform 'no such'; there are 'cpu', "):
        traced.lower(lowering_platforms=("no such",))


COMPILED = [
    (lambda jnp: ((jnp.ones(2), {"a": jnp.ones(4)}), {}), r"Argument 'x' compiled with float32\[3\] and called with float32\[2\]\nArgument 'y\['a'\]'"),
    (lambda jnp: ((jnp.ones(3),), {}), r"at args, seen tuple of length 2 but now given tuple of length 1, so the lengths do not match"),
    (lambda jnp: ((jnp.ones(3), (1, 2)), {}), r"at args\[1\], seen <class 'dict'> but now given <class 'tuple'>, so their Python types differ"),
    (lambda jnp: (((1, 2), {"a": 1}), {}), r"at args\[0\], seen pytree leaf but now given <class 'tuple'>, so their Python types differ"),
    (lambda jnp: ((jnp.ones(3), {}), {}), r"numbers of children do not match, with the symmetric difference of key sets: \{'a'\}"),
]


@pytest.mark.parametrize("arguments, words", COMPILED)
def test_a_compiled_function_names_the_argument_that_differs(jax, jnp, arguments, words):
    compiled = jax.jit(lambda x, y: x + y["a"]).lower(jnp.ones(3), {"a": jnp.ones(3)}).compile()
    args, kwargs = arguments(jnp)
    with pytest.raises(TypeError, match=words):
        compiled(*args, **kwargs)


def test_a_compiled_function_is_not_transformed(jax, jnp):
    compiled = jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct((), np.float32)).compile()
    for transform in (jax.jit, jax.vmap):
        with pytest.raises(TypeError, match=r"Detected argument of Tracer type <class '.*Tracer'>"):
            transform(compiled)(np.ones(2, np.float32) if transform is jax.vmap else np.float32(1))


def test_structs_like_arrays(jax, jnp):
    like = jax.ShapeDtypeStruct.like
    x = jnp.ones((2, 3), "int8")
    assert like(x) == jax.ShapeDtypeStruct((2, 3), "int8") and like(1.0).weak_type and like(like(x)) == like(x)
    placed = jax.device_put(x, jax.devices()[0])
    assert like(placed).sharding == placed.sharding and like(x).sharding is None
    with pytest.raises(ValueError, match="sharding should be an instance of"):
        jax.ShapeDtypeStruct((), "int8", sharding=3)


# ---------------------------------------------------------------- errors


def generator():
    yield 1


def positional(a, /, *rest):
    return a


ARGUMENT = "argument was not marked as static using the static_argnums or static_argnames"


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda jax: jax.jit(lambda x: x)("a"), TypeError, r"is of type <class 'str'> and was passed to the function at path x\."),
        (lambda jax: jax.jit(lambda d: d)({"a": object()}), TypeError, r"is of type <class 'object'> and was passed to the function at path d\['a'\]\."),
        (lambda jax: jax.jit(lambda x: x)("a"), TypeError, ARGUMENT),
        (lambda jax: jax.jit(lambda x: "s")(1), TypeError, "returned a value of type <class 'str'>, which is not a valid JAX type"),
        (lambda jax: jax.jit(lambda x: x)(1, 2), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda jax: jax.jit(lambda x, y: x)(1), TypeError, "missing 1 required positional argument: 'y'"),
        (lambda jax: jax.jit(3), TypeError, "Expected a callable value, got 3"),
        (lambda jax: jax.jit(generator), TypeError, "Expected a function, got a generator function"),
        (lambda jax: jax.vmap(generator), TypeError, "Expected a function, got a generator function"),
        (lambda jax: jax.grad(generator), TypeError, "Expected a function, got a generator function"),
        (lambda jax: jax.jit(staticmethod(abs)), TypeError, "staticmethod arguments are not supported"),
        (lambda jax: jax.jit(positional, static_argnames="a"), ValueError, r"invalid argnames \{'a'\} in static_argnames. These are positional-only"),
        (lambda jax: jax.jit(positional, static_argnames="rest"), ValueError, "These are positional-only"),
        (lambda jax: jax.jit(positional, donate_argnames="a"), ValueError, "in donate_argnames. These are positional-only"),
        (lambda jax: jax.jit(dict.fromkeys, static_argnames="x"), ValueError, "Function does not take these args"),
        (lambda jax: jax.jit(lambda x: x)(10**12), OverflowError, "whose argument path is x. Got <class 'int'> with value 1000000000000"),
        (lambda jax: jax.jit(lambda x: {}["missing"])(1), KeyError, "missing"),
    ],
)
def test_errors(jax, call, error, words):
    with pytest.raises(error, match=words):
        call(jax)


def test_branching_names_function_and_argument(jax):
    def loss(params, x):
        return x if params["w"][1] > 0 else -x

    with pytest.raises(jax.errors.TracerBoolConversionError) as e:
        jax.jit(loss)({"w": [1.0, 2.0]}, 3.0)
    first, second = str(e.value).split("\n")[:2]
    assert first == "Attempted boolean conversion of traced array with shape bool[]."
    assert second.startswith("The error occurred while tracing the function loss at ") and "for jit" in second and "params['w'][1]" in second


def test_leaks_are_named(jax):
    kept = []
    jax.jit(lambda x: (kept.append(x), x)[1])(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="Encountered an unexpected tracer"):
        kept[0] + 1


def test_traces_and_compilations_are_logged(jax, caplog):
    with caplog.at_level("DEBUG"):
        jax.jit(lambda x: x * 7)(1.0)
    assert "Finished tracing" in caplog.text and "Compiling jit(" in caplog.text
    caplog.clear()
    with jax.log_compiles(True):
        jax.jit(lambda x: x * 8)(1.0)
    assert {r.levelname for r in caplog.records if "jit" in r.message} == {"WARNING"} and "Compiling jit(" in caplog.text


def test_a_function_without_a_repr_can_be_shown(jax):
    class Shy:
        def __repr__(self):
            raise RuntimeError

        def __call__(self, x):
            return x

    assert repr(jax.jit(Shy())) == "<PjitFunction>"


@pytest.mark.ours
def test_misses_are_explained(jax, jnp, caplog):
    def explanation(call):
        caplog.clear()
        call()
        return "\n".join(r.getMessage() for r in caplog.records if "CACHE MISS" in r.getMessage())

    f, g = jax.jit(lambda p, x=0: p), jax.jit(lambda n, x: x, static_argnums=0)
    with jax.explain_cache_misses(True):
        first = explanation(lambda: f({"w": jnp.ones(3)}))
        assert "TRACING CACHE MISS at " in first and "never seen function:\n    <lambda> defined at " in first and __file__ in first
        assert explanation(lambda: f({"w": jnp.ones(3)})) == ""
        types = explanation(lambda: f({"w": jnp.ones(4)}))
        assert types.endswith(
            "all previously seen cache keys differ. For the closest previous key:\n  different input types:\n  * at p['w'], now f32[4] and before f32[3]"
        )
        assert explanation(lambda: f({"w": 1.0})).endswith("* at p['w'], now f32[]{weak_type=True} and before f32[4]")
        assert explanation(lambda: f({"w": (1.0,)})).endswith(
            "different input pytree:\n  * at p['w'], now <class 'tuple'> and before pytree leaf, so their Python types differ"
        )
        assert explanation(lambda: f({"v": 1.0})).endswith(
            "* at p, now <class 'dict'> with pytree metadata ('v',) and before <class 'dict'> with pytree metadata ('w',), so the pytree node metadata does not match"
        )
        assert explanation(lambda: f(1.0, 2.0)).endswith("* now 2 positional arguments and before 1, so the numbers do not match")
        assert explanation(lambda: f(1.0, x=2.0)).endswith("* now 1 positional argument and before 2, so the numbers do not match")
        explanation(lambda: g(1, 2.0))
        assert explanation(lambda: g(2, 2.0)).endswith("* at n, now static 2 and before 1, so the static arguments do not match")


@pytest.mark.ours
@pytest.mark.parametrize("what", ["grad", "value_and_grad"])
def test_a_deep_network_needs_no_more_memory_than_in_jax(jax, jnp, what):
    """Twenty layers of 1000 x 1000 on 2000 rows. JAX 0.10.2 takes 168,000,000 bytes beside 80,000,160 of results, or 80,000,172."""

    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return (x**2).sum()

    weights = [jax.ShapeDtypeStruct((1000, 1000), jnp.float32)] * 20
    x = jax.ShapeDtypeStruct((2000, 1000), jnp.float32)
    m = jax.jit(getattr(jax, what)(loss)).lower(weights, x).compile().memory_analysis()
    assert m.temp_size_in_bytes + m.output_size_in_bytes <= 248_000_160


@pytest.mark.filterwarnings("ignore:the compiler option")
def test_compiler_options_are_those_of_a_whole_program(jax, jnp):
    inner = jax.jit(lambda x: x * 2, compiler_options={"xla_embed_ir_in_executable": True})
    x = jnp.ones(3)
    uses = {
        "jit": lambda: jax.jit(lambda x: inner(x))(x),
        "lower": lambda: jax.jit(lambda x: inner(x)).lower(x),
        "scan": lambda: jax.lax.scan(lambda c, a: (c + inner(a), None), 0.0, x),
        "map": lambda: jax.lax.map(inner, x),
        "make_jaxpr": lambda: jax.make_jaxpr(inner)(x),
        "jit of grad": lambda: jax.jit(jax.grad(lambda x: inner(x).sum()))(x),
    }
    for use in uses.values():
        with pytest.raises(ValueError, match="`compiler_options` can only be passed to top-level `jax.jit`"):
            use()
    assert jax.eval_shape(inner, x).shape == (3,) and inner.lower(x).out_info.shape == (3,)
    empty = jax.jit(lambda x: x * 2, compiler_options={})
    assert jax.jit(empty)(x).tolist() == inner(x).tolist() == jax.vmap(inner)(x).tolist() == [2, 2, 2]
