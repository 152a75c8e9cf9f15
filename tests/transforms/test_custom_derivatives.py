"""Rules given by the user: values, nesting, static arguments, zeros, and what is said when a rule is wrong."""

import functools
import importlib

import numpy as np
import pytest


@pytest.fixture
def square(jax):
    @jax.custom_jvp
    def square(x):
        return x**2

    square.defjvp(lambda p, t: (square(p[0]), 20.0 * p[0] * t[0]))  # ten times too much, so that it shows
    return square


def test_custom_jvp_in_every_order(jax, jnp, square):
    assert float(square(3.0)) == 9 and float(jax.jvp(square, (3.0,), (1.0,))[1]) == 60
    for g in (jax.grad(square), jax.jit(jax.grad(square)), jax.grad(jax.jit(square)), jax.jacfwd(square), jax.jacrev(square)):
        assert float(g(3.0)) == 60
    assert float(jax.grad(jax.grad(square))(3.0)) == 20
    np.testing.assert_allclose(jax.vmap(jax.grad(square))(jnp.arange(3.0)), [0, 20, 40])
    np.testing.assert_allclose(jax.grad(lambda x: jax.vmap(square)(x).sum())(jnp.arange(3.0)), [0, 20, 40])
    np.testing.assert_allclose(jax.jit(lambda x: jax.lax.scan(lambda c, _: (square(c), c), x, None, length=2)[0])(2.0), 16)
    np.testing.assert_allclose(jax.grad(lambda x: jax.lax.scan(lambda c, _: (square(c), c), x, None, length=2)[0])(2.0), 20 * 4 * 40)


def test_custom_jvp_takes_pytrees_keywords_and_defaults(jax, jnp):
    @jax.custom_jvp
    def f(p, scale=2.0):
        return {"y": p["a"] * scale}

    @f.defjvp
    def f_jvp(primals, tangents):
        (p, scale), (dp, dscale) = primals, tangents
        return f(p, scale), {"y": 3.0 * dp["a"] + 0.0 * dscale}

    assert float(f({"a": 1.5})["y"]) == 3 and float(f({"a": 1.5}, scale=4.0)["y"]) == 6
    assert float(jax.grad(lambda p: f(p)["y"])({"a": 1.5})["a"]) == 3


def test_defjvps(jax):
    @jax.custom_jvp
    def f(x, y, z):
        return x * y + z

    f.defjvps(lambda t, ans, x, y, z: 10 * t * y, None, lambda t, ans, x, y, z: 5 * t)
    assert [float(g) for g in jax.grad(f, (0, 1, 2))(2.0, 3.0, 4.0)] == [30, 0, 5]


def test_nondiff_argnums(jax, jnp):
    @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
    def apply(f, x):
        return f(x)

    apply.defjvp(lambda f, p, t: (f(p[0]), 7 * t[0]))
    assert float(jax.grad(lambda x: apply(jnp.sin, x))(1.0)) == 7

    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def power(x, n):
        return x**n

    power.defvjp(lambda x, n: (power(x, n), x), lambda n, x, g: (100.0 * n * g,))
    assert float(jax.grad(power)(2.0, 3)) == 300 and float(jax.jit(jax.grad(power), static_argnums=1)(2.0, 3)) == 300
    with pytest.raises(jax.errors.UnexpectedTracerError, match="nondiff_argnums"):
        jax.grad(lambda n: power(2.0, n))(3.0)


def _with_a_static_factor(jax, kind):
    """f(n, x) = n x**2 with the rule 3 n x, n not differentiated."""
    custom = functools.partial(getattr(jax, f"custom_{kind}"), nondiff_argnums=(0,))
    f = custom(lambda n, x: x**2 * n["factor"])
    if kind == "jvp":
        f.defjvp(lambda n, p, t: (f(n, p[0]), 3 * n["factor"] * p[0] * t[0]))
    else:
        f.defvjp(lambda n, x: (f(n, x), x), lambda n, x, g: (3 * n["factor"] * x * g,))
    return lambda n, x: f({"factor": n, "name": "a leaf that is no array"}, x)


_TRACED_STATICS = {
    "jit": (lambda jax, f: jax.jit(f)(2.0, 3.0), 18),
    "jit(grad)": (lambda jax, f: jax.jit(jax.grad(f, 1))(2.0, 3.0), 18),
    "grad(jit)": (lambda jax, f: jax.grad(jax.jit(f), 1)(2.0, 3.0), 18),
    "grad(jit) of an integer": (lambda jax, f: jax.grad(jax.jit(f), 1)(2, 3.0), 18),
    "linearize or vjp of jit": (lambda jax, f: jax.vjp(lambda x: jax.jit(f)(2.0, x), 3.0)[1](1.0)[0], 18),
    "vmap": (lambda jax, f: jax.vmap(f)(np.arange(2.0), np.ones(2)), [0, 1]),
    "vmap(grad)": (lambda jax, f: jax.vmap(jax.grad(f, 1))(np.arange(2.0), np.ones(2)), [0, 3]),
    "grad(vmap)": (lambda jax, f: jax.grad(lambda n, x: jax.vmap(f)(n, x).sum(), 1)(np.arange(2.0), np.ones(2)), [0, 3]),
    "scan": (lambda jax, f: jax.lax.scan(lambda c, n: (f(n, c), None), 2.0, np.arange(1.0, 3.0))[0], 32),
    "grad in scan": (lambda jax, f: jax.lax.scan(lambda c, n: (c, jax.grad(f, 1)(n, c)), 2.0, np.arange(1.0, 3.0))[1], [6, 12]),
    "grad(scan)": (lambda jax, f: jax.grad(lambda x: jax.lax.scan(lambda c, n: (f(n, c), None), x, np.arange(1.0, 3.0))[0])(2.0), 6 * 24),
    "map": (lambda jax, f: jax.lax.map(lambda n: f(n, 3.0), np.arange(2.0)), [0, 9]),
    "grad(map)": (lambda jax, f: jax.grad(lambda x: jax.lax.map(lambda n: f(n, x), np.arange(2.0)).sum())(3.0), 9),
    "grad(fori_loop)": (lambda jax, f: jax.grad(lambda x: jax.lax.fori_loop(1, 3, lambda i, c: f(i, c), x))(2.0), 6 * 24),
    "grad(cond)": (lambda jax, f: jax.grad(lambda x: jax.lax.cond(x > 0, f, lambda n, x: x, 2.0, x))(3.0), 18),
    "grad(checkpoint)": (lambda jax, f: jax.grad(jax.checkpoint(f), 1)(2.0, 3.0), 18),
    "grad(grad(jit))": (lambda jax, f: jax.grad(jax.grad(jax.jit(f), 1), 1)(2.0, 3.0), 6),
    "jit in grad": (lambda jax, f: jax.grad(lambda x: jax.jit(lambda n: f(n, x))(2.0))(3.0), 18),
}


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize("name", _TRACED_STATICS)
def test_static_arguments_may_be_traced(jax, kind, name):
    if jax.__name__ == "jax":
        pytest.skip("refuses some, and lets tracers escape from others")
    call, want = _TRACED_STATICS[name]
    np.testing.assert_allclose(call(jax, _with_a_static_factor(jax, kind)), want)


def test_custom_vjp_in_every_order(jax, jnp):
    @jax.custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, g: (10 * res[1] * g, 20 * res[0] * g))
    for g in (jax.grad(f, (0, 1)), jax.jit(jax.grad(f, (0, 1))), jax.grad(jax.jit(f), (0, 1))):
        assert [float(x) for x in g(2.0, 3.0)] == [30, 40]
    assert float(jax.grad(jax.grad(f), 1)(2.0, 3.0)) == 10
    np.testing.assert_allclose(jax.vmap(jax.grad(f), (0, None))(jnp.arange(3.0), 3.0), [30, 30, 30])
    np.testing.assert_allclose(jax.grad(lambda y: jax.vmap(f, (0, None))(jnp.arange(3.0), y).sum())(3.0), 60)
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
        jax.jvp(f, (1.0, 2.0), (1.0, 1.0))


def test_none_is_a_zero_cotangent(jax, jnp):
    @jax.custom_vjp
    def clip(x, limits, n):
        return x

    clip.defvjp(lambda x, limits, n: (x, limits), lambda limits, g: (jnp.clip(g, limits["lo"], limits["hi"]), None, None))
    out = jax.grad(lambda x, limits: 10 * clip(x, limits, 3), (0, 1))(3.0, {"lo": -1.0, "hi": 1.0})
    assert float(out[0]) == 1 and [float(v) for v in out[1].values()] == [0, 0]


def test_methods(jax):
    if jax.__name__ == "jax":
        pytest.skip("JAX binds no methods")

    class Model:
        @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
        def call(self, x):
            return x * 2

        @call.defjvp
        def call_jvp(self, p, t):
            return p[0] * 2, t[0] * 9

    assert float(Model().call(2.0)) == 4 and float(jax.grad(Model().call)(2.0)) == 9


def test_custom_gradient(jax, jnp):
    f = jax.custom_gradient(lambda x, y: (x * y, lambda g: (g * 10 * y, g * 20 * x)))
    assert [float(x) for x in jax.grad(f, (0, 1))(2.0, 3.0)] == [30, 40]
    assert float(jax.jit(jax.grad(jax.custom_gradient(lambda x: (jnp.exp(x), lambda g: g * 2 * jnp.exp(x)))))(1.0)) == pytest.approx(2 * np.e)
    tree = jax.custom_gradient(lambda p: ({"y": p["a"] ** 2}, lambda g: ({"a": 3 * g["y"]},)))
    assert float(jax.grad(lambda p: tree(p)["y"])({"a": 5.0})["a"]) == 3


def test_closure_convert_at_shapes_of_all_ranks(jax, jnp):
    for shape in ((), (0,), (3,)):
        x = jnp.zeros(shape)
        converted, consts = jax.closure_convert(lambda x: x + 1, x)
        assert converted(x, *consts).shape == shape
        assert x.aval and not hasattr(x.aval, "__len__")


def test_closure_convert(jax, jnp):
    def outer(z):
        converted, consts = jax.closure_convert(lambda x: x * jnp.sin(z), 1.0)
        assert len(consts) == 1
        return converted(2.0, *consts)

    assert float(jax.grad(outer)(0.5)) == pytest.approx(2 * np.cos(0.5))


def test_symbolic_zeros(jax):
    """A rule that asks for them must also take zeros that were made."""

    @jax.custom_jvp
    def f(x, y):
        return x * y

    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        dy = dy.instantiate() if type(dy) is jax.custom_derivatives.SymbolicZero else dy
        return f(x, y), dx * y + x * dy

    f.defjvp(rule, symbolic_zeros=True)
    assert [float(g) for g in jax.grad(f, (0, 1))(2.0, 3.0)] == [3, 2] and float(jax.grad(f)(2.0, 3.0)) == 3


WRONG_JVP = [
    (lambda p, t: (p[0],), "must produce a pair (list or tuple of length two) representing primal and tangent outputs"),
    (lambda p, t: (p[0], np.ones(3, np.float32)), "Expected float32[] (tangent type of float32[]) but got float32[3]."),
    (lambda p, t: (p[0], np.int32(1)), "Expected float32[] (tangent type of float32[]) but got int32[]."),
    (lambda p, t: (p[0], (t[0],)), "equal container (pytree) structures, but got PyTreeDef(*) and PyTreeDef((*,)) respectively."),
]


@pytest.mark.parametrize("rule, words", WRONG_JVP, ids=range(len(WRONG_JVP)))
def test_wrong_jvp_rules(jax, rule, words):
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(rule)
    with pytest.raises(TypeError) as e:
        jax.jvp(f, (1.0,), (1.0,))
    assert words in str(e.value)


WRONG_VJP = [
    (lambda x: x, lambda r, g: (g,), TypeError, "must produce a pair (list or tuple of length two) where the first element represents the primal output"),
    (lambda x: (x, x), lambda r, g: g, TypeError, "but got bwd output structure PyTreeDef(*) for primal input structure PyTreeDef((*,))."),
    (lambda x: (x, x), lambda r, g: (g, g), TypeError, "but got bwd output structure PyTreeDef((*, *)) for primal input structure PyTreeDef((*,))."),
    (lambda x: (x, x), lambda r, g: ((g,),), TypeError, "but got bwd output structure PyTreeDef(((*,),)) for primal input structure PyTreeDef((*,))."),
    (
        lambda x: (x, x),
        lambda r, g: (np.ones(3, np.float32),),
        ValueError,
        "at output[0] the bwd rule produced an output of type float32[3] corresponding to an input of type float32[], so the shapes do not match",
    ),
]


@pytest.mark.parametrize("fwd, bwd, error, words", WRONG_VJP, ids=range(len(WRONG_VJP)))
def test_wrong_vjp_rules(jax, fwd, bwd, error, words):
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(fwd, bwd)
    with pytest.raises(error) as e:
        jax.grad(f)(1.0)
    assert words in str(e.value)


def test_missing_rules(jax):
    with pytest.raises(AttributeError, match="No JVP defined for custom_jvp function .* using defjvp."):
        jax.custom_jvp(lambda x: x)(1.0)
    with pytest.raises(AttributeError, match="No VJP defined for custom_vjp function .* using defvjp."):
        jax.custom_vjp(lambda x: x)(1.0)


# ---------------------------------------------------------------- what functions and rules close over


def closing_over(jax, kind, x, in_rule):
    """y -> x * y with derivative 1 (or x, if the rule reads it too)."""
    slope = x if in_rule else 1.0
    if kind == "jvp":
        f = jax.custom_jvp(lambda y: x * y)
        f.defjvp(lambda p, t: (f(*p), t[0] * slope))
    else:
        f = jax.custom_vjp(lambda y: x * y)
        f.defvjp(lambda y: (f(y), None), lambda _, g: (g * slope,))
    return f


@pytest.mark.parametrize("in_rule", [False, True])
@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_functions_and_rules_that_close_over_traced_values(jax, jnp, kind, in_rule):
    of = lambda x: closing_over(jax, kind, x, in_rule)
    a, one = jnp.arange(3.0), np.ones(3)
    slope = np.arange(3.0) if in_rule else one
    check = np.testing.assert_allclose
    check(jax.vmap(lambda x: of(x)(3.0))(a), 3 * np.arange(3.0))
    check(jax.vmap(lambda x: jax.jit(of(x))(3.0))(a), 3 * np.arange(3.0))
    check(jax.vmap(lambda x: jax.grad(of(x))(3.0))(a), slope)
    check(jax.vmap(lambda x, y: jax.grad(of(x))(y))(a, a), slope)
    check(jax.jit(jax.vmap(lambda x: jax.grad(of(x))(3.0)))(a), slope)
    check(jax.vmap(lambda x: jax.vmap(lambda y: of(x)(y))(a))(a), np.outer(a, a))
    check(jax.vmap(lambda x: jax.vmap(lambda y: of(x)(3.0) + y)(a))(a), 3 * np.arange(3.0)[:, None] + np.arange(3.0))
    check(jax.vmap(lambda x: jax.lax.scan(lambda c, z: (of(x)(c), z), 1.0, a)[0])(a), np.arange(3.0) ** 3)
    check(jax.jit(lambda x: of(x)(3.0))(2.0), 6)
    check(jax.jit(lambda x: jax.grad(of(x))(3.0))(2.0), 2 if in_rule else 1)
    check(jax.jit(lambda x: jax.grad(jax.jit(of(x)))(3.0))(2.0), 2 if in_rule else 1)
    # one operand for all lanes: its cotangents are summed over them
    check(jax.grad(lambda y: jax.vmap(lambda x: of(x)(y))(a).sum())(3.0), slope.sum())
    check(jax.grad(lambda y: jax.vmap(lambda x: x * of(2.0)(y))(a).sum())(3.0), 6 if in_rule else 3)
    check(jax.grad(jax.jit(lambda y: jax.vmap(lambda x: x * of(2.0)(y))(a).sum()))(3.0), 6 if in_rule else 3)


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_derivatives_in_captured_values_are_refused(jax, kind):
    of = lambda x: closing_over(jax, kind, x, False)
    for f in (lambda x: of(x)(3.0), lambda x: of(x)(x), lambda x: jax.jit(of(x))(x)):
        with pytest.raises(jax.errors.UnexpectedTracerError):
            jax.grad(f)(2.0)
        with pytest.raises(jax.errors.UnexpectedTracerError):
            jax.jvp(f, (2.0,), (1.0,))


def test_static_arguments_that_hold_traced_values(jax, jnp):
    @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
    def scaled(k, x):
        return x * jax.random.uniform(k)

    scaled.defjvp(lambda k, p, t: (scaled(k, *p), 2 * t[0] * jax.random.uniform(k)))
    keys = jax.random.split(jax.random.key(0), 3)
    draws = np.array([jax.random.uniform(k) for k in keys])
    np.testing.assert_allclose(jax.vmap(lambda k: scaled(k, 3.0))(keys), 3 * draws, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(lambda k: jax.grad(scaled, 1)(k, 3.0))(keys), 2 * draws, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda k: jax.grad(scaled, 1)(k, 3.0))(keys[0]), 2 * draws[0], rtol=1e-6)


def test_an_output_without_a_batch_dimension_is_not_batched(jax, jnp):
    """An output that is the same for all lanes may leave the vmap as one, and its pullback runs once."""
    f = jax.custom_jvp(lambda x: jax.lax.psum(x, "i"))
    f.defjvp(lambda p, t: (f(*p), jax.lax.psum(t[0], "i")))
    over = lambda f: jax.vmap(lambda _, x: f(x), axis_name="i", in_axes=(0, None), out_axes=None)
    a = jnp.arange(4.0)
    assert float(over(f)(a, 2.0)) == 8 == float(jax.jit(over(f))(a, 2.0))
    assert float(jax.grad(lambda x: over(f)(a, x))(2.0)) == 4
    assert jax.grad(jax.vmap(f, axis_name="i", out_axes=None))(a).tolist() == [1] * 4
    calls = []
    g = jax.custom_vjp(lambda x: x * 2.0)
    g.defvjp(lambda x: (x * 2.0, x), lambda x, ct: (calls.append((x.shape, ct.shape)), ct * 2.0)[1:])
    same = jax.vmap(lambda _, x: g(x), in_axes=(0, None), out_axes=None)
    assert float(jax.grad(lambda x: same(a, x))(3.0)) == 2 and calls == [((), ())]
    program = jax.make_jaxpr(lambda x: jax.vmap(lambda y: y + g(x))(a))(1.0)
    assert "broadcast_in_dim" not in str(program)


@pytest.mark.ours  # JAX counts it once
def test_a_constant_pullback_counts_for_each_lane(jax, jnp):
    f = jax.custom_vjp(lambda x, y: x * 2.0)
    f.defvjp(lambda x, y: (x * 2.0, None), lambda _, ct: (ct, jnp.float32(5.0)))
    each = lambda y: sum(f(x, y) for x in (0.0, 1.0, 2.0))
    for g in (lambda y: jax.vmap(lambda x: f(x, y))(jnp.arange(3.0)).sum(), jax.jit(lambda y: jax.vmap(lambda x: f(x, y))(jnp.arange(3.0)).sum())):
        assert float(jax.grad(g)(1.0)) == 15 == float(jax.grad(each)(1.0))


# ---------------------------------------------------------------- structures, zeros, numbers


def test_python_numbers_among_residuals_come_back_as_they_went(jax, jnp):
    seen = []

    @jax.custom_vjp
    def f(x):
        return x

    def bwd(res, g):
        seen.append(res)
        flag, _, scale, *_ = res
        return (g * scale if flag else g,)

    f.defvjp(lambda x: (x, (True, 2, 3.0, None, 1j, np.float32(4))), bwd)
    runs = (
        lambda: jax.grad(f)(1.0),
        lambda: jax.jit(jax.grad(f))(1.0),
        lambda: jax.vmap(jax.grad(f))(jnp.ones(2))[0],
        lambda: jax.grad(lambda x: jax.vmap(f)(x).sum())(jnp.ones(2))[0],
        lambda: jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0])(1.0),
        lambda: jax.grad(jax.checkpoint(f))(1.0),
    )
    for run in runs:
        assert float(run()) == 3
    for res in seen:
        assert res[:5] == (True, 2, 3.0, None, 1j) and res[0] is True and float(res[5]) == 4


def test_symbolic_zeros_are_leaves(jax, jnp):
    zero_class = importlib.import_module(jax.__name__ + ".custom_derivatives").SymbolicZero
    seen = []

    @jax.custom_jvp
    def f(p):
        return p["x"] * p["y"]

    def rule(primals, tangents):
        is_zero = jax.tree.map(lambda p, t: type(t) is zero_class, primals, tangents)
        seen.append(is_zero)
        (p,), (t,) = primals, tangents
        return f(p), t["x"] * p["y"]

    f.defjvp(rule, symbolic_zeros=True)
    assert float(jax.grad(lambda x: f({"x": x, "y": 2.0}))(1.0)) == 2
    assert seen == [({"x": False, "y": True},)]
    zero = zero_class(jax.typeof(jnp.ones(2)))
    assert jax.tree.leaves({"a": zero}) == [zero]


def test_a_cotangent_may_be_a_prefix_of_the_tree(jax):
    def grads(bwd):
        f = jax.custom_vjp(lambda p, y: p["a"] * y)
        f.defvjp(lambda p, y: (f(p, y), None), bwd)
        p, y = jax.grad(f, (0, 1))({"a": 1.0, "b": 2.0}, 3.0)
        return float(p["a"]), float(p["b"]), float(y)

    assert grads(lambda _, g: (g, 2 * g)) == (1, 1, 2)
    assert grads(lambda _, g: (None, g)) == (0, 0, 1) and grads(lambda _, g: [{"a": g, "b": None}, None]) == (1, 0, 0)
    for wrong in (lambda _, g: (g,), lambda _, g: g, lambda _, g: ({"a": g, "c": g}, g), lambda _, g: ({"a": (g,), "b": g}, g)):
        with pytest.raises(TypeError, match="Custom VJP bwd rule must produce an output with the same container"):
            grads(wrong)


def test_rules_with_symbolic_zeros_of_other_containers(jax, jnp):
    class Box:
        def __init__(self, value):
            self.value = value

    jax.tree_util.register_pytree_node(Box, lambda b: ((b.value,), None), lambda _, xs: Box(*xs))
    values = importlib.import_module(jax.__name__ + ".custom_derivatives").custom_vjp_primal_tree_values
    f = jax.custom_vjp(lambda box, y: box.value * y)
    seen = []

    def fwd(box, y):
        seen.append((box.value.perturbed, y.perturbed))
        box, y = map(values, (box, y))
        return f(box, y), (box, y)

    f.defvjp(fwd, lambda res, g: (res[1] * g, res[0].value * g), symbolic_zeros=True)
    assert float(jax.grad(f)(Box(jnp.array(72.0)), jnp.array(73.0)).value) == 73
    assert float(jax.grad(f, 1)(Box(jnp.array(72.0)), jnp.array(73.0))) == 72
    assert seen == [(True, False), (False, True)]


def test_custom_gradient_with_integer_outputs(jax, jnp):
    f = jax.custom_gradient(lambda x: ((x**2, x.astype(int)), lambda g: (g[0] * x,)))
    loss = lambda x: jnp.sum(f(x)[0])
    for g in (jax.grad(loss), jax.jit(jax.grad(loss)), lambda x: jax.vmap(jax.grad(loss))(x[None])[0]):
        assert g(jnp.full(3, 2.0)).tolist() == [2, 2, 2]


def test_cotangents_of_integer_outputs_are_zeros_whatever_they_are(jax, jnp):
    pull = jax.vjp(lambda x: (x * 2, 1, x > 1), 2.0)[1]
    float0 = np.zeros((), jax.dtypes.float0)
    for n in (1, 0, 3.5, True, np.int8(3), jnp.float32(1), float0):
        assert [float(ct) for ct in pull((1.0, n, n))] == [2]
    with pytest.raises(
        ValueError, match=r"got int32\[3\], but expected float0\[\] because the corresponding output of the differentiated function had JAX type int32\[\]"
    ):
        pull((1.0, np.zeros(3, np.int32), True))
    with pytest.raises(ValueError, match=r"got int32\[\], but expected float32\[\]"):
        pull((1, 1, True))


def test_linear_transpose_is_a_pytree(jax, jnp):
    back = jax.linear_transpose(lambda y: y * jnp.arange(3.0), 1.0)
    assert [x.tolist() for x in jax.tree.leaves(back)] == [[0, 1, 2]]
    assert float(jax.jit(lambda back, ct: back(ct)[0])(back, jnp.ones(3))) == 3
    assert float(jax.jit(lambda f, x: jax.linear_transpose(f, x), static_argnums=0)(lambda y: y * 2, 1.0)(3.0)[0]) == 6
    assert float(jax.tree.map(lambda x: 2 * x, back)(jnp.ones(3))[0]) == 6
    with pytest.raises(TypeError, match="linear_transpose only supports"):
        jax.linear_transpose(lambda y: y.astype(float), np.int32(1))


# ---------------------------------------------------------------- what is said of wrong rules


def test_arguments_that_have_no_position(jax):
    for kind in (jax.custom_jvp, jax.custom_vjp):
        f = kind(lambda x, *, k=1: x * k)
        if kind is jax.custom_jvp:
            f.defjvp(lambda p, t: (p[0], t[0]))
        else:
            f.defvjp(lambda x: (x, None), lambda _, g: (g,))
        assert float(f(x=2.0)) == 2
        message = f"The input arguments to the {kind.__name__}-decorated function <lambda> could not be resolved to positional-only arguments. Binding failed"
        for call, why in (
            (lambda f=f: f(1.0, k=3.0), "The following keyword arguments could not be resolved to positions: k"),
            (lambda f=f: f(1.0, z=3), "got an unexpected keyword argument 'z'"),
            (lambda f=f: f(1.0, 2.0), "too many positional arguments"),
        ):
            with pytest.raises(TypeError) as e:
                call()
            assert str(e.value).startswith(message) and why in str(e.value)


@pytest.mark.parametrize(
    "rule, eager, staged",
    [
        (
            lambda p, t: ((p[0],), (t[0],)),
            None,
            "container/pytree structure:\n    (float32[],)\nwhile the custom_jvp-decorated function <lambda> had output container/pytree structure:\n    float32[].",
        ),
        (
            lambda p, t: (np.ones(3, np.float32),) * 2,
            None,
            "shapes/dtypes of:\n    float32[3]\nwhile the custom_jvp-decorated function <lambda> had output shapes/dtypes of:\n    float32[]",
        ),
        (lambda p, t: (np.int32(3), t[0]), "Expected float0[] (tangent type of int32[]) but got float32[].", "shapes/dtypes of:\n    int32[]\nwhile"),
        (lambda p, t: (p[0], np.ones(3, np.float32)), "Expected float32[] (tangent type of float32[]) but got float32[3].", None),
        (lambda p, t: (p[0], 0), "Expected float32[] (tangent type of float32[]) but got int32[].", None),
        (lambda p, t: (p[0], np.zeros((), [("float0", "V")])), "Expected float32[] (tangent type of float32[]) but got float0[].", None),
    ],
)
def test_jvp_rules_that_do_not_fit_their_function(jax, rule, eager, staged):
    """The function itself has only run where it is staged: there its outputs are compared too."""
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(rule)
    if eager is None:
        jax.jvp(f, (1.0,), (1.0,))
    else:
        with pytest.raises(TypeError) as e:
            jax.jvp(f, (1.0,), (1.0,))
        assert eager in str(e.value)
    with pytest.raises(TypeError) as e:
        jax.jvp(jax.jit(f), (1.0,), (1.0,))
    assert (staged or eager) in str(e.value)


def _ruled(jax, kind, fun):
    """`fun` with a rule by which each derivative is 10 times the tangent or cotangent of the first argument."""
    if kind == "custom_jvp":
        g = jax.custom_jvp(fun)
        g.defjvp(lambda primals, tangents: (fun(*primals), 10.0 * tangents[0]))
    elif kind == "custom_vjp":
        g = jax.custom_vjp(fun)
        g.defvjp(lambda *args: (fun(*args), len(args)), lambda n, ct: (10.0 * ct, *[None] * (n - 1)))
    else:
        g = importlib.import_module(f"{jax.__name__}.custom_batching").custom_vmap(fun)
        g.def_vmap(lambda size, batched, *args: (fun(*args), True))
    return g


_SIGNATURES = {
    "defaults": lambda x, a=2.0, b=3.0: x * a + b,
    "positional only": lambda x, a=2.0, /, b=3.0: x * a + b,
    "keyword only": lambda x, a=2.0, *, b=3.0: x * a + b,
    "required keyword": lambda x, *, b: x + b,
    "more": lambda x, a=2.0, *b: x * a + sum(b),
    "any keyword": lambda x, a=2.0, **b: x * a + sum(b.values()),
}


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp", "custom_vmap"])
@pytest.mark.parametrize("signature", _SIGNATURES)
def test_calls_are_bound_as_python_binds_them(jax, jnp, kind, signature):
    """Every way to give a, b or neither: the value is the plain function's, or a TypeError where it is one or a keyword has no position."""
    fun = _SIGNATURES[signature]
    g = _ruled(jax, kind, fun)
    for args in ((3.0,), (3.0, 5.0), (3.0, 5.0, 7.0), (3.0, 5.0, 7.0, 9.0), ()):
        for kwargs in ({}, {"a": 5.0}, {"b": 7.0}, {"a": 5.0, "b": 7.0}, {"x": 3.0}, {"x": 3.0, "b": 7.0}, {"c": 1.0}):
            try:
                expected = fun(*args, **kwargs)
            except TypeError:
                expected = None
            if signature in ("keyword only", "required keyword", "any keyword") and ("b" in kwargs or "c" in kwargs):
                expected = None  # no position
            if expected is None:
                with pytest.raises(TypeError, match="could not be resolved to positional-only arguments"):
                    g(*args, **kwargs)
                continue
            assert float(g(*args, **kwargs)) == expected
            if args:
                mapped = jax.vmap(lambda x, rest=args[1:], kwargs=kwargs: g(x, *rest, **kwargs))(jnp.full(2, args[0]))
                assert mapped.tolist() == [expected] * 2
                if kind != "custom_vmap":
                    assert float(jax.grad(g)(*args, **kwargs)) == 10.0


@pytest.mark.parametrize("given", [{"nondiff_argnums": (1, 3)}, {"nondiff_argnames": ("n", "mode")}, {"nondiff_argnums": (1,), "nondiff_argnames": "mode"}])
def test_static_arguments_behind_defaults_that_are_left_out(jax, given):
    def f(x, n=2, a=1.0, mode="plain"):
        return x**n * a + (100.0 if mode == "more" else 0.0)

    g = jax.custom_jvp(f, **given)
    g.defjvp(lambda n, mode, primals, tangents: (f(primals[0], n, primals[1], mode), 10.0 * n * tangents[0]))
    h = jax.custom_vjp(f, **given)
    h.defvjp(lambda x, n, a, mode: (f(x, n, a, mode), None), lambda n, mode, _, ct: (10.0 * n * ct, None))
    for kwargs in ({}, {"a": 2.0}, {"mode": "more"}, {"n": 3}, {"n": 3, "mode": "more"}, {"a": 2.0, "mode": "more"}):
        for ruled in (g, h):
            assert float(ruled(3.0, **kwargs)) == f(3.0, **kwargs)
            assert float(jax.grad(ruled)(3.0, **kwargs)) == 10.0 * kwargs.get("n", 2)


@pytest.mark.parametrize(("rule", "method"), [("custom_jvp", "defjvp"), ("custom_vjp", "defvjp")])
def test_rules_of_both_kinds_nest(jax, rule, method):
    custom_vmap = importlib.import_module(f"{jax.__name__}.custom_batching").custom_vmap
    for outer, inner in ((getattr(jax, rule), custom_vmap), (custom_vmap, getattr(jax, rule))):
        f = outer(inner(lambda x: x + 1.0))
        assert callable(getattr(f, method)) and callable(f.def_vmap)


@pytest.mark.ours
@pytest.mark.parametrize("value", [2, 2.5, True, 1j])
def test_python_numbers_that_pass_through_stay_numbers(jax, value):
    """Called eagerly, a function with a rule returns a number that it was given; one that it computes is an array."""
    mapped = jax.custom_batching.custom_vmap(lambda x: x)
    mapped.def_vmap(lambda n, batched, x: (x, batched[0]))
    forward, reverse = jax.custom_jvp(lambda x: x), jax.custom_vjp(lambda x: x)
    forward.defjvp(lambda p, t: (p[0], t[0]))
    reverse.defvjp(lambda x: (x, None), lambda _, g: (g,))
    for f in (mapped, forward, reverse, jax.custom_gradient(lambda x: (x, lambda g: g))):
        assert type(f(value)) is type(value) and f(value) == value
        assert isinstance(jax.jit(f)(value), jax.Array) and isinstance(f(jax.numpy.asarray(value)), jax.Array)
    assert isinstance(forward(np.float32(2)), jax.Array)
