"""Transformations and what they give; control flow; rules of derivatives; trees; configuration; shardings."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_type

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import Array, lax
from ferrax.sharding import NamedSharding, PartitionSpec as P
from ferrax.tree_util import Partial, register_dataclass, register_pytree_node_class


def f(x: Array, y: float = 2.0) -> Array:
    return jnp.sum(x**y)


x = jnp.ones(3)
assert_type(jax.jit(f)(x), Array)
assert_type(jax.vmap(f, in_axes=(0, None))(x, 3.0), Array)
assert_type(jax.value_and_grad(f)(x)[0], Array)
assert_type(jax.checkpoint(f)(x, 1.0), Array)
assert_type(jax.make_jaxpr(f)(x).eqns[0].primitive.name, str)
out, tangent = jax.jvp(f, (x,), (x,))
assert_type(tangent, Array)
out, pullback = jax.vjp(f, x)
(ct,) = pullback(out)
out, linear = jax.linearize(f, x)
assert_type(linear(x), Array)


def with_aux(x: Array) -> tuple[Array, dict[str, float]]:
    return f(x), {"loss": 1.0}


(g,), aux = jax.grad(with_aux, argnums=(0,), has_aux=True)(x)
assert_type(aux, dict[str, float])
print(jax.grad(f, argnums=0)(x), jax.jacfwd(f)(x), jax.hessian(f)(x), jax.eval_shape(f, x))


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @partial(jax.jit, static_argnums=0)
    def apply(self, x: Array) -> Array:
        return x * self.scale

    @jax.jit
    def doubled(self, x: Array) -> Array:
        return 2 * x


jax.tree_util.register_static(Model)
print(Model(2.0).apply(x))
assert_type(Model(2.0).doubled(x), Array)


@jax.custom_jvp
def log1pexp(x: Array) -> Array:
    return jnp.log1p(jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return log1pexp(x), t * jax.nn.sigmoid(x)


@jax.custom_vjp
def clip(x: Array, bound: float) -> Array:
    return x


clip.defvjp(lambda x, bound: (x, bound), lambda bound, ct: (jnp.clip(ct, -bound, bound), None))
assert_type(log1pexp(x), Array)
assert_type(clip(x, 1.0), Array)


@register_pytree_node_class
class Pair:
    def __init__(self, a: Array, b: Array) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> tuple[tuple[Array, Array], None]:
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[Array, Array]) -> "Pair":
        return cls(*children)


@partial(register_dataclass, data_fields=["x"], meta_fields=["name"])
@dataclass
class Named:
    x: Array
    name: str


assert_type(Pair(x, x).a, Array)
total, history = lax.scan(lambda c, x: (c + x, c), jnp.array(0.0), x)
assert_type(total, Array)
print(lax.fori_loop(0, 3, lambda i, c: c + i, x))
assert_type(lax.while_loop(lambda c: c.sum() < 10, lambda c: c * 2, x), Array)
assert_type(lax.stop_gradient(x), Array)
print(lax.cond(x[0] > 0, lambda x: x + 1, lambda x: x - 1, x), lax.switch(1, [jnp.sin, jnp.cos], x), lax.select(x > 0, x, -x), lax.top_k(x, 2), lax.psum(1, ()))
print(jax.tree.leaves({"a": x}), jax.tree.structure([x]).num_leaves, jax.tree.map(jnp.sin, Pair(x, x)), Partial(f, x)())
jax.config.update("jax_enable_x64", False)
with jax.enable_x64(True), jax.debug_nans(False), jax.disable_jit():
    print(jax.config.jax_enable_x64)
jax.debug.print("x = {x}", x=x)


def twice(x: Array) -> Array:
    return 2 * x


def over_all(x: Array) -> dict[str, Array]:
    return lax.psum({"a": x}, "i")


assert_type(lax.cond(x[0] > 0, twice, lambda x: x, x), Array)
assert_type(lax.cond(x[0] > 0, lambda: 1.0, lambda: x[0] * 2), float)
assert_type(lax.switch(1, [twice, jnp.cos], x), Array)
assert_type(lax.map(twice, x), Array)
assert_type(lax.associative_scan(lambda a, b: {"a": a["a"] + b["a"]}, {"a": x}), dict[str, Array])
assert_type(lax.reduce(x, 0.0, lax.add, (0,)), Array)
assert_type(lax.sort(x), Array)
assert_type(lax.sort((x, x)), tuple[Array, ...])
print(jax.vmap(over_all, axis_name="i")(x))
assert_type(lax.linalg.qr(jnp.eye(2)), tuple[Array, Array])
assert_type(jax.tree_util.tree_reduce(jnp.maximum, [1.0, x]), Array)
total = jax.tree_util.tree_reduce(lambda a, b: a + b, [x, x], 0)
linked: bool = x.size > 1
print(total, jax.vjp(with_aux, x, has_aux=linked)[0])
mesh = jax.make_mesh((1,), ("data",))
print(jax.device_put(x, NamedSharding(mesh, P("data"))).sharding, jax.devices()[0].platform, jax.local_device_count())
assert_type(jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((3,), jnp.float32), x), Array)
assert_type(mesh.axis_names, tuple[Any, ...])
print(mesh.devices.size, P("data").partitions)


@jax.shard_map(mesh=mesh, in_specs=P(None), out_specs=P(None))
def local(x: Array) -> Array:
    return x - x.mean()


assert_type(local(x), Array)


def compose(*fs: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: x if not fs else compose(*fs[:-1])(fs[-1](x))


print(jax.jit(compose(jnp.sin, jnp.cos))(x))
