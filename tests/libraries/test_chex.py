"""Chex: assertions, also inside of programs, dataclasses, variants."""

import unittest

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from outcomes import assert_agrees, cases, outcomes, stored

rng = np.random.RandomState(0)
K = jax.random.key(0)
RK = jax.random.PRNGKey(0)
x = jnp.asarray(rng.randn(4, 6), jnp.float32)
img = jnp.asarray(rng.randn(2, 8, 8, 3), jnp.float32)
seq = jnp.asarray(rng.randn(5, 2, 4), jnp.float32)


def programs(t):
    t("cx eqs", lambda: chex.assert_shape(x, (4, 5)))
    t("cx ok", lambda: chex.assert_trees_all_close({"a": x}, {"a": x + 1e-8}))
    t("cx no", lambda: chex.assert_trees_all_close({"a": x}, {"a": x + 1}))
    t("cx rank", lambda: chex.assert_rank(x, 3))
    t("cx type", lambda: chex.assert_type(x, int))
    t("cx fin", lambda: chex.assert_tree_all_finite({"a": x / 0}))
    t("cx struct", lambda: chex.assert_trees_all_equal_structs({"a": 1}, {"b": 1}))
    t("cx eqshape", lambda: chex.assert_equal_shape([x, x[0]]))

    @chex.dataclass
    class D:
        a: chex.Array
        b: int = 3

    t("cx dc", lambda: jax.tree.map(lambda v: v * 2, D(a=x)))
    t("cx dc2", lambda: D(a=x).replace(b=4).to_tuple())
    t("cx map", lambda: jax.jit(lambda d: d.a.sum() + d.b)(D(a=x)))

    @jax.jit
    @chex.assert_max_traces(1)
    def f1(x):
        return x + 1

    t("cx tr", lambda: (f1(x), f1(x[0])))
    t("cx chexify", lambda: chex.chexify(jax.jit(lambda x: (chex.assert_tree_all_finite(x), x)[1]), async_check=False)(x / 0))
    t("cx valueassert", lambda: chex.chexify(jax.jit(lambda x: (chex.assert_scalar_positive(x), x)[1]), async_check=False)(1))
    t("cx fakejit", lambda: (lambda c: (c.__enter__(), jax.jit(lambda x: x + 1)(x), c.__exit__(None, None, None))[1])(chex.fake_jit()))
    t(
        "cx pmap",
        lambda: (lambda c: (c.__enter__(), jax.pmap(lambda x: x + jax.lax.psum(1, "i"), axis_name="i")(x), c.__exit__(None, None, None))[1])(chex.fake_pmap()),
    )
    t("cx dim", lambda: chex.Dimensions(B=4, D=6)["BD"])
    t("cx num", lambda: chex.assert_numerical_grads(lambda x: jnp.sin(x).sum(), (x,), order=1, atol=0.05))
    t("cx dev", lambda: chex.assert_devices_available(1, "cpu"))
    t("cx restrict", lambda: (lambda c: (c.__enter__(), 1, c.__exit__(None, None, None))[1])(chex.restrict_backends(allowed=["cpu"])))
    t("cx warn", lambda: chex.assert_axis_dimension(x, 0, 5))
    t("cx treeshape", lambda: chex.assert_tree_shape_prefix({"a": x}, (4,)))
    t("cx one", lambda: chex.assert_exactly_one_is_none(None, 1))
    t("cx is", lambda: chex.assert_is_broadcastable((4, 1), (4, 6)))

    class V(chex.TestCase):
        @chex.all_variants
        def test(self):
            f = self.variant(lambda x: x + 1)
            chex.assert_trees_all_close(f(x), x + 1)

    t("cx variants", lambda: str(unittest.TextTestRunner(stream=open("/dev/null", "w")).run(unittest.defaultTestLoader.loadTestsFromTestCase(V))))


OUTCOMES = outcomes(programs)


@pytest.mark.parametrize("name", cases(__file__, OUTCOMES))
def test_chex(name):
    assert_agrees(OUTCOMES.get(name), stored(__file__).get(name))
