"""A network trained by hand: parameters in dictionaries and tuples, `jit`, `value_and_grad`, `scan`, keys."""

from functools import partial
from typing import Any, NamedTuple, assert_type

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
from ferrax import Array, lax, random
from ferrax.typing import ArrayLike

Params = dict[str, Array]


class State(NamedTuple):
    params: Params
    momentum: Params
    step: Array


def init(key: Array, sizes: list[int]) -> list[Params]:
    keys = random.split(key, len(sizes))
    glorot = jax.nn.initializers.glorot_normal()
    return [{"w": glorot(k, (m, n)), "b": jnp.zeros(n)} for k, m, n in zip(keys, sizes, sizes[1:], strict=False)]


def predict(layers: list[Params], x: Array) -> Array:
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def loss(layers: list[Params], x: Array, y: Array) -> Array:
    log_probabilities = jax.nn.log_softmax(predict(layers, x), axis=-1)
    return -jnp.mean(jnp.sum(log_probabilities * jax.nn.one_hot(y, 10), axis=-1))


@jax.jit
def update(layers: list[Params], x: Array, y: Array, rate: float) -> tuple[list[Params], Array]:
    value, grads = jax.value_and_grad(loss)(layers, x, y)
    assert_type(value, Array)
    return jax.tree.map(lambda p, g: p - rate * g, layers, grads), value


@partial(jax.jit, static_argnames=("steps",))
def many(layers: list[Params], x: Array, y: Array, steps: int = 3) -> tuple[list[Params], Array]:
    def body(carry: list[Params], _: Any) -> tuple[list[Params], Array]:
        return update(carry, x, y, 0.1)

    return lax.scan(body, layers, length=steps)


layers = init(random.key(0), [4, 8, 10])
x, y = jnp.ones((5, 4)), jnp.arange(5)
layers, value = update(layers, x, y, 0.1)
assert_type(value, Array)
layers, values = many(layers, x, y, steps=3)
print(float(value), values.shape[0] + 1, np.asarray(values).sum())


def norm(x: ArrayLike) -> Array:
    return jnp.sqrt(jnp.sum(jnp.square(x)))


print(norm(1.0), norm(np.ones(3)), norm(x), norm(np.float32(2)))
state = State(layers[0], jax.tree.map(jnp.zeros_like, layers[0]), jnp.array(0))
leaves, treedef = jax.tree.flatten(state)
again = jax.tree.unflatten(treedef, leaves)
assert_type(update.lower(layers, x, y, 0.1).compile().as_text(), str)
hessian = jax.hessian(lambda x: (x**3).sum())(x[0])
key, other = random.split(random.key(1))
print(random.normal(other, (3,)), random.choice(key, 5), random.uniform(key, minval=-1.0), random.permutation(key, 4))
