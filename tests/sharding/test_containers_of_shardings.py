"""Shardings in containers that answer for what they hold, as the variables of Flax do: `variable.spec` is the spec of the sharding in it."""

import numpy as np
import pytest


class Variable:
    """A container of one value, whose attributes it has."""

    mesh = None

    def __init__(self, value):
        self.value = value

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "value"), name)


@pytest.fixture(scope="module")
def variables(jax):
    jax.tree_util.register_pytree_node(Variable, lambda v: ([v.value], None), lambda _, xs: Variable(xs[0]))


def places(jax):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    return {
        "a sharding over a mesh": jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x")),
        "a sharding of one device": jax.sharding.SingleDeviceSharding(jax.devices()[0]),
    }


USES = {
    "device_put": lambda jax, x, s: jax.device_put(x, s),
    "with_sharding_constraint": lambda jax, x, s: jax.lax.with_sharding_constraint(x, s),
    "with_sharding_constraint under jit": lambda jax, x, s: jax.jit(lambda x: jax.lax.with_sharding_constraint(x, s))(x),
    "in_shardings": lambda jax, x, s: jax.jit(lambda x: x, in_shardings=(s,))(x),
    "out_shardings": lambda jax, x, s: jax.jit(lambda x: x, out_shardings=s)(x),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("place", ["a sharding over a mesh", "a sharding of one device"])
@pytest.mark.usefixtures("variables")
def test_containers_are_not_taken_for_the_shardings_in_them(jax, jnp, use, place):
    sharding = places(jax)[place]
    tree = {"w": Variable(jnp.arange(4.0)), "b": [Variable(jnp.ones((2, 2)))]}
    shardings = {"w": Variable(sharding), "b": [Variable(sharding)]}
    out = USES[use](jax, tree, shardings)
    assert isinstance(out["w"], Variable)
    assert out["w"].value.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert out["b"][0].value.sharding.is_equivalent_to(sharding, 2)


@pytest.mark.usefixtures("variables")
def test_a_container_is_not_a_sharding(jax, jnp):
    for sharding in places(jax).values():
        with pytest.raises((TypeError, ValueError)):
            jax.ShapeDtypeStruct((4,), jnp.float32, sharding=Variable(sharding))
