"""`jit`: what a signature is, what runs when, the stages, and what is refused."""

import functools
import gc
import inspect
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


def test_the_cache_is_bounded_and_can_be_cleared(jax, jnp):
    f, traces = counted(jax, lambda x, n: x + n, static_argnums=1)
    for n in range(20):
        f(1.0, n)
    assert f._cache_size() == 20
    f.clear_cache()
    assert f._cache_size() == 0
    f(1.0, 1)
    assert len(traces) == 21


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


# ---------------------------------------------------------------- errors

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


@pytest.mark.ours
def test_misses_are_explained(jax, jnp, caplog):
    f = jax.jit(lambda p: p["w"] + 1)
    f({"w": jnp.ones(3)})
    with jax.explain_cache_misses(True):
        f({"w": jnp.ones(4)})
    assert "p['w']" in caplog.text and "f32[4]" in caplog.text and "f32[3]" in caplog.text
