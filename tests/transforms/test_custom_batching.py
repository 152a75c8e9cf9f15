"""Batching rules of the user's: `custom_vmap` and `sequential_vmap`. A rule that means what the function means changes nothing but how it is mapped."""

import importlib

import numpy as np
import pytest


@pytest.fixture
def cb(jax):
    return importlib.import_module(f"{jax.__name__}.custom_batching")


@pytest.fixture
def pair(jax, jnp, cb):
    """(a function with a faithful rule, the plain function, a list of the rule's arguments)."""
    seen = []

    def plain(x, y):
        return {"a": jnp.sin(x) * y["w"], "b": y["w"].sum() + x}

    f = cb.custom_vmap(plain)

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        seen.append((axis_size, in_batched))
        bx, bw = in_batched[0], in_batched[1]["w"]
        w = y["w"]
        x = x if bx else jnp.broadcast_to(x, (axis_size,))
        w = w if bw else jnp.broadcast_to(w, (axis_size, *w.shape))
        return {"a": jnp.sin(x)[:, None] * w, "b": w.sum(1) + x}, {"a": True, "b": True}

    return f, plain, seen


def compare(jax, a, b):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6), a, b)


X, W = np.linspace(0.1, 1.0, 4).astype(np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("axes", [(0, {"w": 0}), (0, {"w": None}), (None, {"w": 0}), (0, {"w": 1})])
def test_a_faithful_rule_changes_no_value(jax, pair, axes):
    f, plain, seen = pair
    x = X if axes[0] == 0 else X[0]
    w = {0: W, None: W[0], 1: W.T}[axes[1]["w"]]
    compare(jax, jax.vmap(f, axes)(x, {"w": w}), jax.vmap(plain, axes)(x, {"w": w}))
    assert seen == [(4, [axes[0] is not None, {"w": axes[1]["w"] is not None}])]


@pytest.mark.parametrize("outer", [lambda jax, g: g, lambda jax, g: jax.jit(g)])
def test_nested_and_jitted(jax, pair, outer):
    f, plain, seen = pair
    x, w = np.stack([X, X + 1]), np.stack([W, W - 1])
    g = lambda f: outer(jax, jax.vmap(jax.vmap(lambda x, w: f(x, {"w": w}))))(x, w)
    compare(jax, g(f), g(plain))
    assert seen
    inside = lambda f: jax.vmap(outer(jax, lambda x, w: f(x, {"w": w})))(X, W)
    compare(jax, inside(f), inside(plain))


def test_derivatives_in_mapped_operands(jax, pair):
    f, plain, _ = pair
    total = lambda f: lambda x, w: sum(v.sum() for v in jax.tree.leaves(jax.vmap(lambda x, w: f(x, {"w": w}))(x, w)))
    compare(jax, jax.grad(total(f), (0, 1))(X, W), jax.grad(total(plain), (0, 1))(X, W))


@pytest.mark.ours
def test_derivatives_and_their_batches(jax, pair):
    f, plain, seen = pair
    one = lambda f: lambda x, w: f(x, {"w": w})["a"].sum() ** 2 + f(x, {"w": w})["b"]
    for transform in (
        lambda f: jax.grad(one(f), (0, 1))(X[0], W[0]),
        lambda f: jax.vmap(jax.grad(one(f), (0, 1)))(X, W),
        lambda f: jax.vmap(jax.grad(one(f), (0, 1)), (0, None))(X, W[0]),
        lambda f: jax.jit(jax.vmap(jax.grad(one(f), (0, 1))))(X, W),
        lambda f: jax.hessian(one(f))(X[0], W[0]),
        lambda f: jax.vmap(jax.hessian(one(f)))(X, W),
        lambda f: jax.vmap(lambda x, w, d: jax.jvp(lambda x: f(x, {"w": w}), (x,), (d,)))(X, W, X),
    ):
        compare(jax, transform(f), transform(plain))
    assert seen


def test_the_rule_rules(jax, jnp, cb):
    f = cb.custom_vmap(lambda x: x)

    @f.def_vmap
    def rule(axis_size, in_batched, x):
        return x * 2 + axis_size, in_batched[0]

    assert jax.vmap(f)(jnp.arange(3.0)).tolist() == [3.0, 5.0, 7.0]
    assert float(f(1.0)) == 1.0
    f.def_vmap(lambda n, b, x: (x.sum(), False))
    assert jax.vmap(f)(jnp.arange(3.0)).tolist() == [3.0, 3.0, 3.0]


def test_in_loops_and_branches(jax, jnp, lax, cb):
    f = cb.custom_vmap(lambda x: x * 2)
    f.def_vmap(lambda n, b, x: (x * 3, b[0]))
    xs = jnp.arange(3.0)
    assert jax.vmap(lambda x: lax.fori_loop(0, 2, lambda _, c: f(c), x))(xs).tolist() == [0.0, 9.0, 18.0]
    assert jax.vmap(lambda x: lax.cond(x > 1, f, lambda x: x, x))(xs).tolist() == [0.0, 1.0, 6.0]


def test_keywords_and_closures(jax, jnp, cb):
    f = cb.custom_vmap(lambda x, y=2.0: x * y)
    f.def_vmap(lambda n, b, x, y: (x * y, True))
    assert float(f(3.0)) == 6.0 and float(f(3.0, y=4.0)) == 12.0
    assert jax.vmap(f)(jnp.ones(2)).tolist() == [2.0, 2.0]

    def through(c):
        g = cb.custom_vmap(lambda x: x * c)
        g.def_vmap(lambda n, b, x: (x * c, b[0]))
        return jax.vmap(g)(jnp.arange(3.0)).sum() + g(1.0)

    if jax.__name__ != "jax":
        assert float(jax.grad(through)(3.0)) == 4.0


def test_errors(jax, jnp, cb):
    xs = jnp.arange(3.0)
    f = cb.custom_vmap(lambda x: x)
    with pytest.raises(AttributeError, match="No batching rule defined for custom_vmap function <lambda> using def_vmap"):
        jax.vmap(f)(xs)
    f.def_vmap(lambda n, b, x: (x, [True]))
    with pytest.raises(ValueError, match="structure of output value and output batching specification returned by custom vmap rule"):
        jax.vmap(f)(xs)
    f.def_vmap(lambda n, b, x: ((x, x), (True, True)))
    with pytest.raises(ValueError, match="structure of output returned by custom vmap rule .* does not match that of original"):
        jax.vmap(f)(xs)


@pytest.mark.ours
def test_errors_of_our_own(jax, jnp, cb):
    xs = jnp.arange(3.0)
    f = cb.custom_vmap(lambda x: x)
    f.def_vmap(lambda n, b, x: (jnp.ones(5), True))
    with pytest.raises(ValueError, match="its first axis should be of size 3"):
        jax.vmap(f)(xs)

    def closing(c):
        g = cb.custom_vmap(lambda x: x * c)
        g.def_vmap(lambda n, b, x: (x, b[0]))
        return g(1.0)

    with pytest.raises(ValueError, match="closes over an array that is mapped"):
        jax.vmap(closing)(xs)


def test_sequential_vmap(jax, jnp, lax, cb):
    f = cb.sequential_vmap(lambda x, y: (lax.cond(x > 1, lambda: x * y, lambda: y), y))
    xs = jnp.arange(3.0)
    compare(jax, jax.vmap(f, (0, None))(xs, 2.0), ([2.0, 2.0, 4.0], [2.0, 2.0, 2.0]))
    text = str(jax.make_jaxpr(jax.vmap(f))(xs, xs))
    assert "scan" in text and "cond" in text and "select_n" not in text
    compare(jax, jax.vmap(jax.vmap(f))(xs[None], xs[None]), ([[0.0, 1.0, 4.0]], [[0.0, 1.0, 2.0]]))
    if jax.__name__ != "jax":
        assert jax.grad(lambda a: jax.vmap(f)(a, a)[0].sum())(xs).tolist() == [1.0, 1.0, 4.0]
        assert jax.vmap(jax.grad(lambda a: f(a, a)[0]))(xs).tolist() == [1.0, 1.0, 4.0]


def test_a_rule_within_a_rule_is_kept(jax, jnp, cb):
    @jax.custom_vjp
    @cb.custom_vmap
    def f(x):
        return jnp.sin(x)

    @f.def_vmap
    def mapped(axis_size, in_batched, xs):
        return jnp.cos(xs), True

    f.defvjp(lambda x: (f(x), x), lambda x, g: (5.0 * g,))
    assert jax.vmap(f)(jnp.zeros(3)).tolist() == [1.0, 1.0, 1.0]
    assert jax.grad(f)(0.0) == 5.0
    value, slope = jax.vmap(jax.value_and_grad(f))(jnp.zeros(2))
    assert value.tolist() == [1.0, 1.0] and slope.tolist() == [5.0, 5.0]
