"""Trees of containers: standard ones, registered ones, and the spellings of older programs."""

import importlib
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

Point = namedtuple("Point", "x y")


def test_flatten_and_unflatten(jax):
    tu = jax.tree_util
    tree = {"b": [1, (2, None)], "a": Point(3, OrderedDict(z=4))}
    leaves, treedef = tu.tree_flatten(tree)
    assert leaves == [3, 4, 1, 2] and tu.tree_unflatten(treedef, leaves) == tree
    assert tu.tree_map(lambda v: v * 2, tree)["a"].x == 6
    assert tu.tree_reduce(lambda a, v: a + v, tree, 0) == 10
    assert str(tu.tree_structure({"a": 1})) == "PyTreeDef({'a': *})"


def test_a_registered_class_passes_through_jit(jax):
    @jax.tree_util.register_pytree_node_class
    class Tagged:
        def __init__(self, value, tag):
            self.value, self.tag = value, tag

        def tree_flatten(self):
            return (self.value,), self.tag

        @classmethod
        def tree_unflatten(cls, tag, children):
            return cls(children[0], tag)

    out = jax.jit(lambda t: Tagged(t.value + 1, t.tag))(Tagged(1.0, "tag"))
    assert float(out.value) == 2.0 and out.tag == "tag"


def test_trees_of_different_shape_are_refused(jax):
    with pytest.raises(ValueError):
        jax.tree_util.tree_map(lambda a, b: a, {"x": 1}, {"y": 1})


@pytest.mark.ours
def test_older_names(jax, jnp):
    assert jax.tree_map(lambda v: v + 1, {"a": 1}) == {"a": 2}
    assert jax.tree_reduce(lambda a, v: a + v, [1, 2], initializer=0) == 3
    leaves, treedef = jax.tree_flatten((1, 2))
    assert jax.tree_unflatten(treedef, leaves) == (1, 2)
    ops, x = jax.ops, jnp.zeros((3, 3))
    assert float(ops.index_update(x, ops.index[1, :], 1.0).sum()) == 3
    assert float(ops.index_add(x, ops.index[::2, 2:], 7).sum()) == 14
    stax = importlib.import_module(jax.__name__ + ".experimental.stax")
    optimizers = importlib.import_module(jax.__name__ + ".experimental.optimizers")
    init, _ = stax.serial(stax.Dense(3), stax.Relu, stax.LogSoftmax)
    assert init(jax.random.PRNGKey(0), (-1, 2))[0] == (-1, 3)
    assert float(optimizers.l2_norm([jnp.ones(3), {"a": jnp.ones(6)}])) == 3.0
    assert np.asarray(jnp.array([1, 2, 3]).at[[0, 2]].set(10)).tolist() == [10, 2, 10]
