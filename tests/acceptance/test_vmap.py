"""vmap: axes, nesting, collectives over a named axis, control flow under it."""

import numpy as np
import pytest


def test_sizes_that_differ_are_named(jax, jnp):
    with pytest.raises(ValueError, match="vmap got inconsistent sizes for array axes to be mapped") as error:
        jax.vmap(lambda a, b: a * b)(jnp.ones((2, 3)), jnp.ones((4, 3)))
    assert "2" in str(error.value) and "4" in str(error.value)


@pytest.mark.parametrize("out_axes, shape", [(0, (4, 100, 3)), (1, (100, 4, 3)), (2, (100, 3, 4)), (-1, (100, 3, 4))])
def test_out_axes_of_a_product(jax, jnp, close, out_axes, shape):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, 5, 3), np.float32), rng.standard_normal((100, 5), np.float32)
    out = jax.vmap(lambda x, w: jnp.dot(w, x), in_axes=(0, None), out_axes=out_axes)(x, w)
    assert out.shape == shape
    close(np.moveaxis(np.asarray(out), out_axes, 0), np.stack([w @ xi for xi in x]), 1e-4)


def test_an_outer_product_from_two_maps(jax, jnp):
    outer = jax.vmap(jax.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))
    assert np.asarray(outer(jnp.array([1, 2, 3]), jnp.array([10, 20]))).tolist() == [[10, 20], [20, 40], [30, 60]]


def test_a_reduction_per_row(jax, jnp):
    assert np.asarray(jax.vmap(lambda x: jnp.sum(x**2))(jnp.array([[1, 2], [3, 4], [5, 6]]))).tolist() == [5, 25, 61]


def test_gradients_per_example(jax, jnp, close):
    g = jax.vmap(jax.grad(lambda w, x: jnp.sum(w * x) ** 2), in_axes=(None, 0))
    close(g(jnp.ones(3), jnp.arange(6.0).reshape(2, 3)), [[0, 6, 12], [72, 96, 120]])


def test_in_axes_follow_the_tree(jax, jnp):
    f = jax.vmap(lambda d: d["a"] + d["b"], in_axes=({"a": 0, "b": None},))
    assert f({"a": jnp.ones(4), "b": 1.0}).shape == (4,)


def test_a_sum_over_the_mapped_axis(jax, jnp, lax, close):
    close(jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])), [0.25, 0.75])


def test_lanes_take_their_own_branch(jax, jnp, lax, close):
    close(jax.vmap(lambda x: lax.cond(x > 0, lambda x: x * 2, lambda x: -x, x))(jnp.array([-1.0, 2.0])), [1.0, 4.0])


def test_lanes_stop_at_their_own_time(jax, jnp, lax):
    def below(n):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + s[0]), (0, 0))[1]

    assert np.asarray(jax.vmap(below)(jnp.arange(5))).tolist() == [0, 0, 1, 3, 6]


def test_named_axes_nest(jax, jnp, lax, close):
    x = jnp.arange(6.0).reshape(2, 3)
    both = lambda f: jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")
    close(both(lambda x: lax.psum(x, ("i", "j")))(x), np.full((2, 3), 15.0))
    close(both(lambda x: x - lax.pmean(x, "j"))(x), [[-1, 0, 1], [-1, 0, 1]])
    assert np.asarray(jax.vmap(lambda x: lax.axis_index("i") + 0 * x, axis_name="i")(jnp.zeros(3, int))).tolist() == [0, 1, 2]
