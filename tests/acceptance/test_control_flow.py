"""cond, switch, while, fori and scan; and Python's own branches, where a value is known."""

import numpy as np
import pytest


def test_cond_with_and_without_operands(jax, lax):
    f = jax.jit(lambda x: lax.cond(x > 0, lambda x: x**2, lambda x: x**3, x))
    assert float(f(3.0)) == 9.0 and float(f(-2.0)) == -8.0
    closed = jax.jit(lambda x: lax.cond(x > 0, lambda: x**2, lambda: x**3))
    assert float(closed(-2.0)) == -8.0


def test_loops_count(jax, lax):
    assert int(jax.jit(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v + 1, x))(3)) == 10
    assert int(jax.jit(lambda x, n: lax.fori_loop(0, n, lambda i, v: v + i, x))(0, 5)) == 10


def test_switch(lax):
    branches = [lambda x: x, lambda x: x + 1, lambda x: x * 10]
    assert [int(lax.switch(i, branches, 7)) for i in (-1, 0, 1, 2, 3)] == [7, 7, 8, 70, 70]


def test_gradients_of_branches_and_loops(jax, jnp, lax, close):
    close(jax.grad(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(2.0), np.cos(2.0))
    close(jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, v: v * x, 1.0))(2.0), 12.0)


def test_scan_gives_carry_and_history(jnp, lax):
    carry, ys = lax.scan(lambda c, x: (c + x, c + x), 0, jnp.array([1, 2, 3, 4, 5]))
    assert int(carry) == 15 and np.asarray(ys).tolist() == [1, 3, 6, 10, 15]


def test_a_recurrent_network(jax, jnp, lax, close):
    params = jnp.full((5, 5), 0.1), jnp.full((5, 3), 0.2)

    def cell(params, h, x):
        h = jnp.tanh(params[0] @ h + params[1] @ x)
        return h, h

    def states(params, xs):
        return lax.scan(lambda h, x: cell(params, h, x), jnp.zeros(5), xs)[1]

    out = states(params, jnp.ones((10, 3)))
    assert out.shape == (10, 5)
    close(out[-1], np.full(5, 0.751142), 1e-4)
    total = lambda params, n: states(params, jnp.ones((n, 3))).sum()
    assert [g.shape for g in jax.grad(total)(params, 10)] == [(5, 5), (5, 3)]
    jax.test_util.check_grads(lambda p: total(p, 4), (params,), order=2, atol=2e-2, rtol=2e-2)


def test_a_python_branch_on_a_traced_value_is_refused(jax):
    def f(x):
        return x**2 if x > 0 else x**3

    with pytest.raises(jax.errors.TracerBoolConversionError, match="jit"):
        jax.jit(f)(1.0)


def test_a_python_branch_works_under_grad(jax, close):
    def f(x):
        return x**2 if x > 0 else x**3

    close(jax.grad(f)(2.0), 4.0)
    close(jax.grad(f)(-2.0), 12.0)


def test_each_way_to_need_a_value_has_its_error(jax):
    errors = jax.errors
    with pytest.raises(errors.NonConcreteBooleanIndexError):
        jax.jit(lambda x, m: x[m])(np.ones(3), np.array([True, False, True]))
    with pytest.raises(errors.TracerArrayConversionError):
        jax.jit(lambda x: np.sin(x))(1.0)
    with pytest.raises(errors.TracerIntegerConversionError):
        jax.jit(lambda i: [1, 2, 3][i])(1)
    with pytest.raises(errors.ConcretizationTypeError):
        jax.jit(lambda x: float(x))(1.0)


def test_only_what_a_transform_owns_is_abstract(jax, jnp, close):
    def f(x):
        return jnp.sum(x**3) if x[0] > 0 else jnp.sum(x**2)

    close(jax.hessian(f)(jnp.array([1.0, 2.0])), np.diag([6.0, 12.0]))
    close(jax.hessian(f)(jnp.array([-1.0, 2.0])), np.diag([2.0, 2.0]))
    close(jax.jacfwd(f)(jnp.array([1.0, 2.0])), [3.0, 12.0])
    close(jax.vmap(lambda x, n: x if n > 0 else -x, in_axes=(0, None))(jnp.arange(3.0), 1), [0, 1, 2])
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.vmap(lambda x: x if x > 0 else -x)(jnp.arange(3.0))


def test_a_leaked_tracer_is_refused(jax):
    kept = []
    jax.jit(lambda x: (kept.append(x), x)[1])(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        kept[0] + 1
