"""Primitives that Python defines, and calls from programs back into Python."""

import copy
import importlib
import itertools

import numpy as np
import pytest

names = (f"test_primitive_{i}" for i in itertools.count())


@pytest.fixture
def parts(jax):
    load = lambda m: importlib.import_module(f"{jax.__name__}.{m}")
    return load("extend.core").Primitive, load("interpreters.ad"), load("interpreters.batching")


@pytest.fixture
def mul_sub(jax, parts):
    """x * y - k"""
    p = parts[0](next(names))
    p.def_impl(lambda x, y, *, k: x * y - k)
    p.def_abstract_eval(lambda x, y, *, k: jax.core.ShapedArray(x.shape, x.dtype))
    return p


def test_eager_and_staged(jax, jnp, mul_sub):
    f = lambda x, y: mul_sub.bind(x, y, k=3)
    assert float(f(jnp.float32(2.0), jnp.float32(4.0))) == 5.0
    j = jax.make_jaxpr(f)(2.0, 4.0)
    assert str(j.eqns[0].primitive) == mul_sub.name and j.eqns[0].params == {"k": 3} and f"{mul_sub.name}[k=3]" in str(j)


@pytest.mark.ours
def test_jit_needs_no_rule_of_its_own(jax, parts, mul_sub):
    assert float(jax.jit(lambda x, y: mul_sub.bind(x, y, k=3))(2.0, 4.0)) == 5.0
    p = parts[0](next(names))
    p.def_impl(lambda x: np.sin(x))  # numpy wants concrete arrays: called when the program runs
    p.def_abstract_eval(lambda x: x)
    assert np.allclose(jax.jit(lambda x: p.bind(x) + 1)(0.5), np.sin(0.5) + 1)


def test_rules(jax, jnp, parts, mul_sub):
    _, ad, batching = parts
    f = lambda x, y: mul_sub.bind(x, y, k=3)
    with pytest.raises(NotImplementedError, match=f"Differentiation rule for '{mul_sub.name}' not implemented"):
        jax.grad(f)(2.0, 4.0)
    with pytest.raises(NotImplementedError, match=f"Batching rule for '{mul_sub.name}' not implemented"):
        jax.vmap(f)(jnp.ones(2), jnp.ones(2))

    def jvp(primals, tangents, *, k):
        (x, y), (dx, dy) = primals, tangents
        terms = [t for t in (None if type(dx) is ad.Zero else dx * y, None if type(dy) is ad.Zero else x * dy) if t is not None]
        return mul_sub.bind(x, y, k=k), sum(terms[1:], terms[0])

    ad.primitive_jvps[mul_sub] = jvp
    batching.primitive_batchers[mul_sub] = lambda args, dims, *, k: (mul_sub.bind(*args, k=k), dims[0])
    assert float(jax.grad(f)(2.0, 4.0)) == 4.0 and [float(g) for g in jax.grad(f, (0, 1))(2.0, 4.0)] == [4.0, 2.0]
    assert jax.vmap(f)(jnp.arange(3.0), jnp.ones(3)).tolist() == [-3.0, -2.0, -1.0]
    assert jax.vmap(jax.grad(f))(jnp.arange(3.0), jnp.arange(3.0)).tolist() == [0.0, 1.0, 2.0]


def test_linear_primitives_transpose(jax, parts):
    Primitive, ad, _ = parts
    p = Primitive(next(names))
    p.def_impl(lambda x: x * 2)
    p.def_abstract_eval(lambda x: x)
    ad.deflinear2(p, lambda ct, x: [p.bind(ct)])
    assert float(jax.grad(lambda x: p.bind(x) * 3)(1.0)) == 6.0


def test_several_results(jax, parts):
    p = parts[0](next(names))
    p.multiple_results = True
    p.def_impl(lambda x: [x, x + 1])
    p.def_abstract_eval(lambda x: [x, x])
    assert [float(v) for v in p.bind(np.float32(1.0))] == [1.0, 2.0]
    assert len(jax.make_jaxpr(lambda x: p.bind(x))(1.0).jaxpr.outvars) == 2


# ---------------------------------------------------------------- callbacks


def test_pure_callback(jax, jnp):
    shape = jax.ShapeDtypeStruct((3,), np.float32)
    f = lambda x: jax.pure_callback(lambda v: np.sin(v), shape, x)
    x = jnp.arange(3.0)
    assert np.allclose(f(x), np.sin(x)) and np.allclose(jax.jit(f)(x), np.sin(x))


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_callbacks_are_mapped(jax, jnp, method):
    one = jax.ShapeDtypeStruct((), np.float32)
    f = lambda x, y: jax.pure_callback(lambda a, b: np.asarray(a * b, np.float32), one, x, y, vmap_method=method)
    assert jax.vmap(f, (0, None))(jnp.arange(3.0), 2.0).tolist() == [0, 2, 4]


def test_callbacks_compute_with_the_library(jax, jnp):
    f = lambda x: jax.pure_callback(lambda v: np.asarray(jnp.asarray(v) * 2), jax.ShapeDtypeStruct((3,), np.float32), x)
    assert jax.jit(f)(jnp.arange(3.0)).tolist() == [0, 2, 4]


def test_errors_of_callbacks_are_raised(jax):
    def fail(v):
        raise ValueError("from the callback")

    f = jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), np.float32), x))
    with pytest.raises(jax.errors.JaxRuntimeError, match="from the callback"):
        jax.block_until_ready(f(1.0))


# ---------------------------------------------------------------- primitives as objects


def test_one_object_for_each_primitive(jax, jnp, parts):
    lax = jax.lax
    eqn = jax.make_jaxpr(jnp.sin)(0.0).eqns[0]
    assert eqn.primitive is lax.sin_p and {lax.sin_p: 1}[eqn.primitive] == 1
    for p in (lax.sin_p, lax.sort_p, lax.scatter_add_p, lax.scan_p):
        assert isinstance(p, parts[0])
    assert lax.sort_p.multiple_results and not lax.sin_p.multiple_results and lax.top_k_p.multiple_results
    assert lax.scan_p.multiple_results and lax.optimization_barrier_p.multiple_results and not lax.stack_p.multiple_results
    mine = parts[0]("sin")  # a name does not identify a primitive
    assert mine is not lax.sin_p and mine != lax.sin_p


def test_python_primitives_are_equations_of_programs(jax, mul_sub):
    eqn = jax.make_jaxpr(lambda x, y: mul_sub.bind(x, y, k=3))(2.0, 4.0).eqns[0]
    assert eqn.primitive is mul_sub


def test_primitives_of_one_name_are_two(jax, parts):
    name = next(names)
    one, other = parts[0](name), parts[0](name)
    for p, k in ((one, 1), (other, 2)):
        p.def_impl(lambda x, k=k: x + k)
        p.def_abstract_eval(lambda x: x)
    f = lambda x: one.bind(x) + 10 * other.bind(x)
    assert float(f(np.float32(1))) == 32
    assert [e.primitive for e in jax.make_jaxpr(f)(np.float32(1)).eqns][:2] == [one, other]


def test_implementations_as_functions(jax, jnp, parts):
    lax = jax.lax
    assert float(lax.sin_p.impl(jnp.float32(1.0))) == pytest.approx(np.sin(1.0))
    assert [v.tolist() for v in lax.top_k_p.impl(jnp.arange(3.0), k=2, axis=0)] == [[2, 1], [2, 1]]
    f = lambda x: x
    p = parts[0](next(names))
    with pytest.raises(NotImplementedError, match=f"Evaluation rule for '{p.name}' not implemented"):
        p.impl(1.0)
    p.def_impl(f)
    assert p.impl is f


def test_results_of_an_implementation_come_as_they_are(parts):
    p = parts[0](next(names))
    p.def_impl(lambda x, *, n: (type(x), n))
    assert p.bind(2, n="three") == (int, "three")


@pytest.mark.ours
def test_primitives_of_the_language_keep_their_rules(jax):
    with pytest.raises(ValueError, match="sin is a primitive of the language"):
        jax.lax.sin_p.def_abstract_eval(lambda x: x)


def test_a_registered_lowering_is_staged(jax, jnp, parts):
    mlir = importlib.import_module(f"{jax.__name__}.interpreters.mlir")
    p = parts[0](next(names))
    p.def_impl(lambda x, *, by: np.asarray(x) + 100)  # wants concrete values, and says something else
    p.def_abstract_eval(lambda x, *, by: jax.core.ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, by: jnp.sin(x) * by, multiple_results=False))
    f = lambda x: p.bind(x, by=3.0)
    assert float(jax.jit(f)(jnp.float32(1.0))) == pytest.approx(3 * np.sin(1.0))
    assert float(f(jnp.float32(1.0))) == 101


@pytest.mark.ours
@pytest.mark.parametrize("many", [False, True])
def test_a_lowering_to_another_compiler_s_text_is_a_callback(jax, jnp, parts, many):
    mlir = importlib.import_module(f"{jax.__name__}.interpreters.mlir")
    p = parts[0](next(names))
    p.multiple_results = many
    wrapped = (lambda x: [x]) if many else (lambda x: x)
    p.def_impl(lambda x, *, by: wrapped(np.asarray(x) * by))  # wants concrete values
    p.def_abstract_eval(lambda x, *, by: wrapped(jax.core.ShapedArray(x.shape, x.dtype)))
    rule = lambda ctx, x, *, by: 1 / 0
    assert mlir.register_lowering(p, rule) is rule
    got = jax.jit(lambda x: p.bind(x + 1, by=3))(jnp.arange(3.0))
    assert np.asarray(got[0] if many else got).tolist() == [3.0, 6.0, 9.0]


@pytest.mark.ours
def test_invalid_lowerings_are_refused(jax, parts):
    mlir = importlib.import_module(f"{jax.__name__}.interpreters.mlir")
    p = parts[0](next(names))
    with pytest.raises(TypeError, match="multiple_results=False, its lowering multiple_results=True"):
        mlir.register_lowering(p, mlir.lower_fun(lambda x: [x]))
    with pytest.raises(ValueError, match="primitive of the language"):
        mlir.register_lowering(jax.lax.sin_p, mlir.lower_fun(lambda x: x, False))


@pytest.mark.parametrize("platforms", [(None,), ("cpu",), (None, "cpu"), ("cpu", None), ("cpu", "tpu"), (None, "cpu", "cuda"), ("tpu", "cpu", None)])
def test_a_lowering_for_a_platform_precedes_a_general_one(jax, jnp, parts, platforms):
    mlir = importlib.import_module(f"{jax.__name__}.interpreters.mlir")
    p = parts[0](next(names))
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    factors = {None: 2.0, "cpu": 3.0, "tpu": 5.0, "cuda": 7.0}
    for platform in platforms:
        mlir.register_lowering(p, mlir.lower_fun(lambda x, k=factors[platform]: x * k, False), platform=platform)
    expected = 3.0 if "cpu" in platforms else 2.0
    assert float(jax.jit(p.bind)(jnp.float32(1.0))) == expected


@pytest.mark.ours
def test_parameters_of_an_equation_are_read_only(jax, jnp):
    eqn = jax.make_jaxpr(lambda x: x.sum(0))(jnp.ones(3)).eqns[0]
    with pytest.raises(TypeError):
        eqn.params["axes"] = (1,)
    assert dict(eqn.params)["axes"] == (0,) and eqn.replace(params={"axes": (1,)}).params["axes"] == (1,)


def test_tracer_is_a_base_class(jax):
    class Mine(jax.core.Tracer):
        pass

    assert issubclass(Mine, jax.core.Tracer) and not isinstance(1.0, Mine)


@pytest.mark.ours
def test_facts_are_those_of_the_programs(jax, jnp):
    """What the table says of a primitive is what its equations show."""
    facts = {name: (many, [k for k, _ in params]) for name, many, params in importlib.import_module(f"{jax.__name__}._core").primitives()}
    lax = jax.lax

    def f(x, k):
        y = lax.sort((x, x), num_keys=2)[0] + lax.top_k(x, 3)[0].sum()
        y = lax.cumsum(y) + lax.reduce_window(y, 0.0, lax.add, (3,), (1,), "SAME")
        y = lax.scan(lambda c, v: (c + v, lax.tile(lax.stack([v, c]), (2,))), 0.0, y)[1].sum(1)
        y = lax.cond(y[0] > 0, lambda y: y * 2, lambda y: lax.rev(y, (0,)), y)
        return y.at[1].add(2.0).reshape(1, -1) @ jnp.ones((3, 2)), jax.random.bits(k), lax.igamma(y, y), lax.rng_bit_generator(jnp.zeros(4, "uint32"), (2,))

    seen = set()

    def check(jaxpr):
        for e in jaxpr.eqns:
            if e.primitive.is_builtin:
                many, names = facts[e.primitive.name]
                assert list(e.params) == names and e.primitive.multiple_results == many, e.primitive
                assert many or len(e.outvars) == 1
                seen.add(e.primitive.name)
            for p in e.params.values():
                for q in p if isinstance(p, tuple) else (p,):
                    if hasattr(q, "jaxpr"):
                        check(q.jaxpr)

    check(jax.make_jaxpr(f)(jnp.arange(3.0), jax.random.key(0)).jaxpr)
    assert len(seen) > 20


def test_a_batching_rule_is_called_only_for_batched_operands(jax, jnp, parts, mul_sub):
    _, _, batching = parts
    asked = []

    def rule(args, dims, *, k):
        asked.append(tuple(dims))
        return mul_sub.bind(*args, k=k), dims[0]

    batching.primitive_batchers[mul_sub] = rule
    fixed = jnp.arange(3.0)
    assert jax.vmap(lambda x: x + mul_sub.bind(fixed, fixed, k=1))(jnp.ones((2, 3))).tolist() == [[0.0, 1.0, 4.0]] * 2
    assert asked == []


def test_an_implementation_that_wants_numbers_is_called_when_the_program_runs(jax, jnp, parts):
    for number in (float, lambda x: jnp.asarray(x).item(), lambda x: np.asarray(x).sum()):
        p = parts[0]("wants_numbers")
        p.def_impl(lambda x, number=number: np.float32(number(x) * 2))
        p.def_abstract_eval(lambda x: x)
        assert [float(f(2.0)) for f in (p.bind, jax.jit(p.bind), jax.jit(lambda x: jax.lax.cond(x > 0, p.bind, lambda x: x, x)))] == [4, 4, 4]


# ---------------------------------------------------------------- classes of primitives, names that are set, equations that are made


def _scaled(core, ad, batching, mlir):
    class Scaled(core.Primitive):
        multiple_results = True

        def __init__(self, n):
            super().__init__(f"scaled{n}")
            self.n = n
            self.def_impl(self.compute)
            self.def_abstract_eval(lambda *avals, **_: tuple(avals))
            mlir.register_lowering(self, mlir.lower_fun(self.compute, multiple_results=True))
            ad.primitive_jvps[self] = lambda xs, ts, **k: (self.bind(*xs, **k), [t * n for t in ts])
            batching.primitive_batchers[self] = lambda xs, dims, **k: (self.bind(*xs, **k), dims)

        def compute(self, *xs, **_):
            return tuple(x * self.n for x in xs)

    return Scaled(3)


@pytest.fixture(scope="module")
def core_parts(jax):
    module = lambda name: importlib.import_module(f"{jax.__name__}.{name}")
    return module("extend.core"), module("interpreters.ad"), module("interpreters.batching"), module("interpreters.mlir")


def test_a_class_of_primitives(jax, jnp, core_parts):
    p = _scaled(*core_parts)
    assert [str(p), p.name, p.multiple_results] == ["scaled3", "scaled3", True]
    for f in (p.bind, jax.jit(p.bind), jax.vmap(p.bind)):
        assert [y.tolist() for y in f(jnp.arange(2.0), jnp.ones(2))] == [[0, 3], [3, 3]]
    assert jax.grad(lambda x: p.bind(x, 2 * x)[1].sum())(jnp.ones(2)).tolist() == [6, 6]
    assert "= scaled3[y=2] a" in str(jax.make_jaxpr(lambda x: p.bind(x, y=2))(1.0))


def test_a_name_that_is_set(jax, core_parts):
    p = core_parts[0].Primitive("first")
    p.def_abstract_eval(lambda x: x)
    f = lambda x: p.bind(x)
    assert "= first a" in str(jax.make_jaxpr(f)(1.0))
    p.name = "second"
    assert "= second a" in str(jax.make_jaxpr(f)(1.0))


def test_a_copy_of_a_primitive(jax, jnp, core_parts):
    core = core_parts[0]
    for original in (core.primitives.sin_p, core.primitives.mul_p):
        made = copy.deepcopy(original)
        made.name = "mine"
        assert [str(made), made is original, made.multiple_results] == ["mine", False, False]
        assert original.name != "mine"
    q = core.Primitive("mine")
    q.def_impl(lambda x: x + 1)
    q.def_abstract_eval(lambda x: x)
    made = copy.copy(q)
    made.name = "other"
    assert [float(made.bind(1.0)), q.name, made.name] == [2.0, "mine", "other"]


@pytest.mark.ours
def test_a_copy_of_a_primitive_of_the_language_works(jax, jnp, core_parts):
    made = copy.copy(core_parts[0].primitives.sin_p)
    made.name = "mine"
    assert float(made.bind(1.0)) == float(jax.jit(made.bind)(1.0)) == float(jnp.sin(1.0))
    with pytest.raises(ValueError, match="its name cannot be replaced"):
        core_parts[0].primitives.sin_p.name = "mine"


def test_an_implementation_of_the_language_is_replaced(jax, jnp, core_parts):
    """It is called where the operation is evaluated by itself, in checkpoints and linear maps too; what is compiled does not ask."""
    lax = jax.lax
    calls = []

    def counted(run, *names):
        originals = [getattr(lax, f"{n}_p").impl for n in names]
        try:
            for n, impl in zip(names, originals, strict=True):
                getattr(lax, f"{n}_p").def_impl(lambda *xs, n=n, impl=impl, **params: calls.append(n) or impl(*xs, **params))
            out = run()
        finally:
            for n, impl in zip(names, originals, strict=True):
                getattr(lax, f"{n}_p").def_impl(impl)
        found = calls[:]
        calls.clear()
        return out, found

    g = jax.checkpoint(lambda x: lax.sin(lax.sin(x)))
    y, linear = jax.linearize(g, 2.0)
    out, found = counted(lambda: linear(3.0), "sin", "cos")
    np.testing.assert_allclose(out, np.cos(np.sin(2.0)) * np.cos(2.0) * 3.0, rtol=1e-6)
    assert sorted(found) == ["cos", "cos", "sin"]
    out, found = counted(lambda: g(2.0), "sin")
    assert found == ["sin"] * 2 and out == y
    out, found = counted(lambda: lax.sin(2.0), "sin")
    assert found == ["sin"] and out == lax.sin(2.0)
    out, found = counted(lambda: lax.reduce_sum(jnp.ones((2, 3)), (0,)), "reduce_sum")
    assert found == ["reduce_sum"] and out.tolist() == [2, 2, 2]
    out, found = counted(lambda: lax.split(jnp.arange(4), (1, 3)), "split")
    assert found == ["split"] and [x.tolist() for x in out] == [[0], [1, 2, 3]]
    out, found = counted(lambda: jax.jit(lax.sin)(2.0), "sin")
    assert found == [] and out == lax.sin(2.0)
    assert counted(lambda: jax.grad(jax.jit(lambda x: g(x) * x))(2.0), "sin", "cos")[1] == []
    lax.sin(2.0)
    assert calls == []


def test_dce_reaches_into_bodies(jax, jnp):
    pe = importlib.import_module(f"{jax.__name__}.interpreters.partial_eval")
    lax = jax.lax

    def cut(f, args, used):
        jaxpr = jax.make_jaxpr(f)(*args).jaxpr
        made, kept = pe.dce_jaxpr(jaxpr, used)
        full = jax.core.eval_jaxpr(jaxpr, [], *args)
        out = jax.core.eval_jaxpr(made, [], *[x for x, k in zip(args, kept, strict=True) if k])
        for a, b in zip(out, [y for y, u in zip(full, used, strict=True) if u], strict=True):
            np.testing.assert_array_equal(a, b)
        return kept

    branches = [lambda a, b: (jnp.sin(a), jnp.sin(b)), lambda a, b: (jnp.sin(a), jnp.sin(a))]
    f = lambda x, y: lax.cond(x > 0, *branches, x, y)
    assert cut(f, (1.0, 2.0), [True, False]) == [True, False] and cut(f, (1.0, 2.0), [False, True]) == [True, True]

    def chain(*xs):
        step = lambda c, _: ((c[0], c[1] + c[0], c[2] + c[1], c[3] + c[2]), None)
        return lax.scan(step, xs, None, length=3)[0]

    xs = (1.0, 2.0, 3.0, 4.0)
    for n in range(1, 5):
        used = [i == n - 1 for i in range(4)]
        assert cut(chain, xs, used) == [i < n for i in range(4)]
    loop = lambda n, x, y: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0, c[2] + c[1]), (0, x, y))
    assert cut(loop, (3, 1.0, 2.0), [False, True, False]) == [True, True, False]
    assert cut(jax.jit(lambda x, y: (jnp.sin(x), jnp.cos(y))), (1.0, 2.0), [False, True]) == [False, True]
    assert cut(jax.checkpoint(lambda x, y: (jnp.sin(x), jnp.cos(y))), (1.0, 2.0), [True, False]) == [True, False]


def test_equations_that_are_made(jax, jnp, core_parts):
    core = core_parts[0]
    jaxpr = jax.make_jaxpr(lambda x, y: jnp.sin(x) * y + 1)(1.0, 2.0).jaxpr
    sin, mul, *rest = jaxpr.eqns
    new = core.gensym()(sin.outvars[0].aval)
    twice = core.new_jaxpr_eqn([sin.outvars[0], sin.outvars[0]], [new], mul.primitive, dict(mul.params), core.no_effects)
    moved = mul.replace(invars=[new, mul.invars[1]])
    for made in (
        jaxpr.replace(eqns=[sin, twice, moved, *rest]),
        core.Jaxpr([], jaxpr.invars, jaxpr.outvars, [sin, twice, moved, *rest], debug_info=jaxpr.debug_info),
    ):
        assert np.allclose(jax.core.eval_jaxpr(made, [], 1.0, 2.0)[0], np.sin(1.0) ** 2 * 2 + 1)
    cos = jaxpr.replace(eqns=[sin.replace(primitive=core.primitives.cos_p, params=dict(sin.params)), mul, *rest])
    assert np.allclose(jax.core.eval_jaxpr(cos, [], 1.0, 2.0)[0], np.cos(1.0) * 2 + 1)
    assert core.gensym()(new.aval) != core.gensym()(new.aval)


@pytest.mark.ours
def test_an_equation_of_the_wrong_type_is_refused(jax, jnp, core_parts):
    core = core_parts[0]
    jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x))(1.0).jaxpr
    wrong = core.Var(core.ShapedArray((3,), np.float32))
    with pytest.raises((ValueError, TypeError)):
        jaxpr.replace(eqns=[jaxpr.eqns[0].replace(outvars=[wrong])], outvars=[wrong])
    with pytest.raises(ValueError, match="a variable that it does not define"):
        jaxpr.replace(eqns=[jaxpr.eqns[0].replace(invars=[wrong])])


def test_a_class_of_equations(jax, core_parts):
    class Mine(core_parts[0].JaxprEqn):
        pass

    eqn = jax.make_jaxpr(jax.lax.neg)(1.0).eqns[0]
    made = Mine(eqn.invars, eqn.outvars, eqn.primitive, eqn.params, eqn.effects, eqn.source_info, eqn.ctx)
    assert isinstance(made, core_parts[0].JaxprEqn)
    assert [str(made.primitive), made.invars, made.outvars] == ["neg", eqn.invars, eqn.outvars]
