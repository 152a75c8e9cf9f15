"""Rules given by the user: values, nesting, static arguments, zeros, and what is said when a rule is wrong."""

import functools

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
