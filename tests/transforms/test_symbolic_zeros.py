"""Zero tangents and cotangents that are never made: what rules see of them, and how many equations derivatives have."""

import collections
import importlib

import numpy as np
import pytest


@pytest.fixture(scope="module")
def rules(jax, jnp):
    """f(x, y) = sin(x) * y, v(x, y) = (sin(x) * y, cos(y)), and what their rules were given, in order."""
    SymbolicZero = importlib.import_module(jax.__name__ + ".custom_derivatives").SymbolicZero
    is_zero = lambda t: type(t) is SymbolicZero
    seen = []

    @jax.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    def f_jvp(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        seen.append(("jvp", is_zero(dx), is_zero(dy)))
        assert all(np.shape(t) == np.shape(p) for p, t in zip(primals, tangents, strict=True))
        terms = [] if is_zero(dx) else [dx * jnp.cos(x) * y]
        terms += [] if is_zero(dy) else [dy * jnp.sin(x)]
        return jnp.sin(x) * y, sum(terms[1:], terms[0])

    f.defjvp(f_jvp, symbolic_zeros=True)

    @jax.custom_vjp
    def v(x, y):
        return jnp.sin(x) * y, jnp.cos(y)

    def v_fwd(x, y):
        seen.append(("fwd", x.perturbed, y.perturbed))
        return v(x.value, y.value), (x.value, y.value)

    def v_bwd(res, cts):
        (x, y), (a, b) = res, cts
        seen.append(("bwd", is_zero(a), is_zero(b)))
        along_a = (None, None) if is_zero(a) else (a * jnp.cos(x) * y, a * jnp.sin(x))
        along_b = None if is_zero(b) else -b * jnp.sin(y)
        return along_a[0], along_b if along_a[1] is None else along_a[1] if along_b is None else along_a[1] + along_b

    v.defvjp(v_fwd, v_bwd, symbolic_zeros=True)
    return f, v, seen


def recorded(seen, run):
    seen.clear()
    out = run()
    return out, list(seen)


def test_a_forward_rule_sees_which_tangents_are_zero(jax, jnp, lax, rules, close):
    f, _, seen = rules
    for wrap in (lambda f: f, jax.jit, lambda f: jax.jit(lambda x, y: jax.jit(f)(x, y))):
        got, calls = recorded(seen, lambda: jax.grad(wrap(f))(1.0, 2.0))
        close(got, 2 * np.cos(1.0))
        assert set(calls) <= {("jvp", False, True)}  # a compiled function may remember
        got, calls = recorded(seen, lambda: jax.grad(wrap(f), argnums=1)(1.0, 2.0))
        close(got, np.sin(1.0))
        assert set(calls) <= {("jvp", True, False)}
    got, calls = recorded(seen, lambda: jax.jvp(f, (1.0, 2.0), (1.0, 1.0)))
    assert calls == [("jvp", False, False)]
    xs = jnp.array([1.0, 2.0])
    got, calls = recorded(seen, lambda: jax.vmap(jax.grad(f), (0, None))(xs, 2.0))
    close(got, 2 * np.cos([1.0, 2.0]))
    assert calls == [("jvp", False, True)]
    got, calls = recorded(seen, lambda: jax.grad(lambda x, y: jax.vmap(f, (0, None))(x, y).sum())(xs, 2.0))
    close(got, 2 * np.cos([1.0, 2.0]))
    assert calls == [("jvp", False, True)]


def test_a_carry_that_becomes_perturbed_is_not_a_zero(jax, jnp, lax, rules, close):
    f, _, seen = rules
    looped = lambda x, y: lax.scan(lambda c, _: (f(c, y), None), x, None, length=2)[0]
    got, calls = recorded(seen, lambda: jax.grad(looped)(1.0, 2.0))
    assert calls == [("jvp", False, True)]
    got, calls = recorded(seen, lambda: jax.grad(looped, argnums=1)(1.0, 2.0))
    assert calls == [("jvp", True, False), ("jvp", False, False)]
    s = np.sin(1.0) * 2
    close(got, np.sin(s) + 2 * np.cos(s) * np.sin(1.0))


def test_a_reverse_rule_sees_what_is_perturbed_and_which_cotangents_are_zero(jax, jnp, lax, rules, close):
    _, v, seen = rules
    first, second = (lambda x, y: v(x, y)[0]), (lambda x, y: v(x, y)[1])
    for wrap in (lambda f: f, jax.jit, jax.checkpoint):
        got, calls = recorded(seen, lambda: jax.grad(wrap(first))(1.0, 2.0))
        close(got, 2 * np.cos(1.0))
        assert set(calls) == {("fwd", True, False), ("bwd", False, True)}
        got, calls = recorded(seen, lambda: jax.grad(wrap(first), argnums=(0, 1))(1.0, 2.0))
        close(got, (2 * np.cos(1.0), np.sin(1.0)))
        assert set(calls) == {("fwd", True, True), ("bwd", False, True)}
        got, calls = recorded(seen, lambda: jax.grad(wrap(second), argnums=1)(1.0, 2.0))
        close(got, -np.sin(2.0))
        assert set(calls) == {("fwd", False, True), ("bwd", True, False)}
    xs = jnp.array([1.0, 2.0])
    got, calls = recorded(seen, lambda: jax.grad(lambda x, y: jax.vmap(v, (0, None))(x, y)[0].sum(), argnums=1)(xs, 2.0))
    close(got, np.sin([1.0, 2.0]).sum())
    assert calls == [("fwd", False, True), ("bwd", False, True)]
    got, calls = recorded(seen, lambda: jax.vmap(jax.grad(first))(xs, xs))
    close(got, np.cos([1.0, 2.0]) * [1, 2])
    assert calls == [("fwd", True, False), ("bwd", False, True)]
    got, calls = recorded(seen, lambda: jax.grad(lambda x, y: lax.scan(lambda c, _: (v(c, y)[0], None), x, None, length=2)[0])(1.0, 2.0))
    assert ("fwd", True, False) in calls and ("bwd", False, True) in calls


def counted(jaxpr, into=None):
    into = collections.Counter() if into is None else into
    for e in jaxpr.eqns:
        into[e.primitive.name] += 1
        for p in e.params.values():
            for q in p if isinstance(p, (tuple, list)) else [p]:
                if hasattr(q, "eqns"):
                    counted(getattr(q, "jaxpr", q), into)
    return into


def programs(jax, jnp, lax):
    """name -> (function, arguments, equations of its derivative that are not calls, as JAX counts them)."""
    two = lambda x, y: (jnp.sin(x), jnp.cos(y))
    x = jnp.ones(3)

    def scanned(x, y):
        return lax.scan(lambda c, _: ((c[0] + 1, jnp.sin(c[1]), c[2] * y), c[1]), (0, x, y), None, length=3)

    def counting(x):
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2.0, s[2] * 3.0), (0, x, 1.0))

    return {
        "unused output": (jax.grad(lambda x: two(x, x)[0].sum()), (x,), dict(cos=2, mul=1)),
        "unused output of a call": (jax.grad(lambda x: jax.jit(two)(x, x)[0].sum()), (x,), dict(mul=1)),
        "one tangent of a call": (lambda x, y, t: jax.jvp(lambda x: jax.jit(two)(x, y), (x,), (t,)), (x, x, x), dict(sin=1, cos=2, mul=1)),
        "one carry of a scan": (jax.grad(lambda x, y: scanned(x, y)[0][1]), (1.0, 1.0), dict(cos=1, sin=1, mul=2)),
        "stopped gradient": (jax.value_and_grad(lambda x: (lax.stop_gradient(jnp.sin(x)) * x).sum()), (x,), dict(sin=1, mul=2)),
        "one carry of a while": (lambda x, t: jax.jvp(lambda x: counting(x), (x,), (t,)), (1.0, 1.0), dict(mul=3)),
    }


NAMES = ["unused output", "unused output of a call", "one tangent of a call", "one carry of a scan", "stopped gradient", "one carry of a while"]


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_have_no_equations_for_zeros(jax, jnp, lax, name):
    f, args, want = programs(jax, jnp, lax)[name]
    got = counted(jax.make_jaxpr(f)(*args).jaxpr)
    assert {k: got[k] for k in want} == want, got
