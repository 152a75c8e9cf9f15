"""What `cost_analysis` counts: the operations of a program as it was written, by hand, and those of its plan."""

import numpy as np
import pytest


def counted(jax, f, *args):
    costs = jax.jit(f).lower(*args).cost_analysis()
    return costs["flops"], costs["transcendentals"]


def conv(lax, padding, **more):
    return lambda x, k: lax.conv_general_dilated(x, k, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), **more)


IMAGE = ((2, 6, 6, 3), (3, 3, 3, 5))
# each: the function, the shapes of its arguments, operations, transcendental ones; JAX counts the same
COUNTED = {
    "sum of two": (lambda jnp, lax: lambda x, y: x + y, [(8,), (8,)], 8, 0),
    "chain": (lambda jnp, lax: lambda x: -x * 2 - 1, [(8,)], 24, 0),
    "exp": (lambda jnp, lax: jnp.exp, [(8,)], 0, 8),
    "tanh and product": (lambda jnp, lax: lambda x: jnp.tanh(x) * x, [(8,)], 8, 8),
    "sum over all": (lambda jnp, lax: jnp.sum, [(4, 8)], 31, 0),
    "sum over rows": (lambda jnp, lax: lambda x: x.sum(0), [(4, 8)], 24, 0),
    "sum of squares": (lambda jnp, lax: lambda x: (x * x).sum(), [(4, 8)], 63, 0),
    "product of matrices": (lambda jnp, lax: lambda x, y: x @ y, [(4, 8), (8, 3)], 2 * 4 * 8 * 3, 0),
    "dense layer": (lambda jnp, lax: lambda x, w, b: jnp.maximum(x @ w + b, 0), [(4, 8), (8, 3), (3,)], 2 * 4 * 8 * 3 + 24, 0),
    "convolution without padding": (lambda jnp, lax: conv(lax, "VALID"), IMAGE, 2 * 2 * 16 * 27 * 5, 0),
    # 16 of the 6 x 3 taps of each axis lie inside
    "padded convolution": (lambda jnp, lax: conv(lax, "SAME"), IMAGE, 2 * 2 * 16 * 16 * 3 * 5, 0),
    "dilated convolution": (lambda jnp, lax: conv(lax, "SAME", rhs_dilation=(2, 2)), IMAGE, 2 * 2 * 14 * 14 * 3 * 5, 0),
    "written twice": (lambda jnp, lax: lambda x: jnp.sin(x) + jnp.sin(x), [(8,)], 8, 16),
    "moves": (lambda jnp, lax: lambda x: x.reshape(4, 2).T[::-1], [(8,)], 0, 0),
    "for nothing": (lambda jnp, lax: lambda x: (x * 2, x)[1], [(8,)], 0, 0),
    "branches": (lambda jnp, lax: lambda x: lax.cond(x[0] > 0, lambda v: v * v + v, lambda v: v, x), [(8,)], 18, 0),
}


@pytest.mark.parametrize("name", COUNTED)
def test_operations_are_those_that_were_written(jax, jnp, name):
    make, shapes, arithmetic, transcendental = COUNTED[name]
    assert counted(jax, make(jnp, jax.lax), *(jnp.ones(s) for s in shapes)) == (arithmetic, transcendental)


def test_loops_count_each_iteration(jax, jnp):
    def f(x):
        return jax.lax.fori_loop(0, 7, lambda i, v: jnp.sin(v) * 2, x)

    assert counted(jax, f, jnp.ones(8)) == (56, 56)


def test_a_derivative_costs_as_much_as_its_products(jax, jnp):
    w, x = jnp.ones((8, 3)), jnp.ones((4, 8))
    flops, _ = counted(jax, jax.grad(lambda w: (x @ w).sum()), w)
    assert 2 * 4 * 8 * 3 <= flops <= 2 * 4 * 8 * 3 + 3 * (4 * 3)


def test_choices_count(jax, jnp):
    assert counted(jax, jnp.where, jnp.ones(8, bool), jnp.ones(8), jnp.zeros(8)) == (8, 0)
    assert counted(jax, jax.grad(lambda x: jax.nn.relu(x).sum()), jnp.ones(8)) == (16, 0)


def test_the_whole_is_the_sum_of_its_parts(jax, jnp):
    def block(x, w):
        return jnp.tanh((x @ w) / 3.0) * jnp.exp(w).sum()

    x, w = jnp.ones((4, 4)), jnp.ones((4, 4))
    one = counted(jax, block, x, w)
    assert counted(jax, lambda x, w: block(block(block(x, w), w), w), x, w) == tuple(3 * n for n in one)


def test_a_compiled_function_counts_its_operations(jax, jnp):
    lowered = jax.jit(lambda x: jnp.sin(x) + jnp.sin(x)).lower(jnp.ones(8))
    assert lowered.compile().cost_analysis()["transcendentals"] == 8
    assert lowered.cost_analysis()["bytes accessed"] == 2 * 8 * np.dtype(np.float32).itemsize
