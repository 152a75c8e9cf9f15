"""Examples of every primitive, for the laws: a function of arrays, its arguments, and which of them it is differentiable in.

Parameters stand off their defaults somewhere, ranks go from 0 to 3, sizes 0 and 1 occur.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Example:
    name: str  # the primitive's, as programs print it; a note may follow after a space
    f: Callable
    args: tuple
    wrt: tuple = ()  # the arguments in which it is differentiable
    exact: bool = True  # jit and eager, and vmap and a loop, agree bit for bit
    note: Any = field(default=None, repr=False)

    @property
    def primitive(self):
        return self.name.split()[0]


def floats(*shape, seed=0, low=-2.0, high=2.0):
    """Distinct numbers that keep clear of each other, of integers and of zero, where kinks and comparisons are."""
    n = int(np.prod(shape))
    grid = low + (high - low) * (np.arange(n) + 0.37) / max(n, 1)
    return np.random.default_rng(seed).permutation(grid).reshape(shape)


def ints(*shape, seed=0, low=-50, high=50):
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


UNARY = {
    "sin": (-2, 2), "cos": (-2, 2), "tan": (-1, 1), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atan": (-2, 2), "sinh": (-2, 2), "cosh": (-2, 2),
    "tanh": (-2, 2), "asinh": (-2, 2), "acosh": (1.1, 3), "atanh": (-0.9, 0.9), "exp": (-2, 2), "exp2": (-2, 2), "expm1": (-2, 2), "log": (0.2, 3),
    "log1p": (-0.5, 3), "sqrt": (0.2, 3), "rsqrt": (0.2, 3), "cbrt": (0.2, 3), "logistic": (-3, 3), "erf": (-2, 2), "erfc": (-2, 2),
    "erf_inv": (-0.9, 0.9), "lgamma": (0.5, 4), "digamma": (0.5, 4), "neg": (-2, 2), "abs": (-2, 2), "square": (-2, 2),
    "sign": (-2, 2), "floor": (-2, 2), "ceil": (-2, 2),
}  # fmt: skip

BINARY = {
    "add": (-2, 2),
    "sub": (-2, 2),
    "mul": (-2, 2),
    "div": (0.5, 2),
    "max": (-2, 2),
    "min": (-2, 2),
    "atan2": (0.3, 2),
    "pow": (0.4, 2),
    "rem": (0.7, 1.1),
}
INTEGER_BINARY = ("add", "sub", "mul", "max", "min", "and", "or", "xor")
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


def pointwise(lax):
    by_name = {"and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor}
    for name, (low, high) in UNARY.items():
        f = getattr(lax, name)
        wrt = () if name == "digamma" else (0,)  # its slope is polygamma, which no backend computes yet
        yield Example(name, f, (floats(2, 3, low=low, high=high),), wrt)
        yield Example(f"{name} scalar", f, (floats(low=low, high=high),), wrt)
    yield Example("neg empty", lax.neg, (floats(0, 2),), (0,))
    yield Example("round", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), (floats(5),), (0,))
    yield Example("integer_pow", lambda x: lax.integer_pow(x, 3), (floats(2, 3),), (0,))
    yield Example("integer_pow negative", lambda x: lax.integer_pow(x, -2), (floats(4, low=0.5),), (0,))
    yield Example("is_finite", lax.is_finite, (np.array([1, np.inf, np.nan]),))
    yield Example("not", lax.bitwise_not, (ints(3),))
    yield Example("not bool", lax.bitwise_not, (np.array([True, False]),))
    yield Example("neg int", lax.neg, (ints(3),))
    yield Example("abs int", lax.abs, (ints(3),))
    yield Example("sign int", lax.sign, (ints(3),))
    yield Example("population_count", lax.population_count, (ints(3),))
    yield Example("clz", lax.clz, (ints(3),))
    for name, (low, high) in BINARY.items():
        f = getattr(lax, name)
        yield Example(name, f, (floats(2, 3, low=low, high=high), floats(2, 3, seed=1, low=low, high=high)), (0, 1))
        yield Example(f"{name} scalar", f, (floats(low=low, high=high, seed=3), floats(seed=1, low=low, high=high * 0.7)), (0, 1))
    for name in INTEGER_BINARY:
        yield Example(f"{name} int", by_name.get(name) or getattr(lax, name), (ints(2, 3), ints(2, 3, seed=1)))
    yield Example("div int", lax.div, (ints(7), ints(7, seed=1, low=1)))
    yield Example("rem int", lax.rem, (ints(7), ints(7, seed=1, low=1)))
    yield Example("pow int", lambda x: lax.pow(x, np.int32(3)), (floats(3),), (0,))
    for name, low in (("shift_left", -50), ("shift_right_logical", -50), ("shift_right_arithmetic", -50)):
        yield Example(name, getattr(lax, name), (ints(5, low=low), ints(5, seed=1, low=0, high=31)))
    for name in COMPARE:
        yield Example(name, getattr(lax, name), (ints(6, low=0, high=3), ints(6, seed=1, low=0, high=3)))
        yield Example(f"{name} float", getattr(lax, name), (floats(4), floats(4)))
    yield Example("nextafter", lax.nextafter, (floats(4), floats(4, seed=1)))
    yield Example("select_n", lambda c, x, y: lax.select(c, x, y), (np.array([True, False, True]), floats(3), floats(3, seed=1)), (1, 2))
    yield Example("select_n scalar", lambda c, x, y: lax.select(c, x, y), (np.array(False), floats(3), floats(3, seed=1)), (1, 2))
    yield Example(
        "select_n three", lambda i, *x: lax.select_n(i, *x), (np.array([2, 0, 1], np.int32), floats(3), floats(3, seed=1), floats(3, seed=2)), (1, 2, 3)
    )
    yield Example("clamp", lax.clamp, (floats(3, low=-1, high=-0.5), floats(3), floats(3, low=0.5, high=1)), (0, 1, 2))
    yield Example("clamp scalar", lambda x: lax.clamp(-0.7, x, 0.7), (floats(5),), (0,))
    yield Example("convert_element_type", lambda x: lax.convert_element_type(x, np.float32), (ints(3),))
    yield Example("convert_element_type down", lambda x: lax.convert_element_type(x, np.int8), (floats(3),))
    yield Example("bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, np.float32), (ints(3),))
    yield Example("reduce_precision", lambda x: lax.reduce_precision(x, 8, 7), (floats(3),))
    yield Example("stop_gradient", lax.stop_gradient, (floats(3),))


def structural(lax):
    yield Example("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1,)), (floats(3),), (0,))
    yield Example("broadcast_in_dim one", lambda x: lax.broadcast_in_dim(x, (2, 3), (0, 1)), (floats(2, 1),), (0,))
    yield Example("broadcast_in_dim scalar", lambda x: lax.broadcast_in_dim(x, (2, 3), ()), (floats(),), (0,))
    yield Example("reshape", lambda x: lax.reshape(x, (3, 4)), (floats(2, 6),), (0,))
    yield Example("reshape scalar", lambda x: lax.reshape(x, ()), (floats(1, 1),), (0,))
    yield Example("squeeze", lambda x: lax.squeeze(x, (1,)), (floats(2, 1, 3),), (0,))
    yield Example("broadcast_in_dim expand", lambda x: lax.expand_dims(x, (0, 2)), (floats(3),), (0,))
    yield Example("transpose", lambda x: lax.transpose(x, (2, 0, 1)), (floats(2, 3, 4),), (0,))
    yield Example("rev", lambda x: lax.rev(x, (0, 2)), (floats(2, 3, 4),), (0,))
    yield Example("slice", lambda x: lax.slice(x, (1, 0), (4, 3)), (floats(5, 4),), (0,))
    yield Example("slice strides", lambda x: lax.slice(x, (1, 0), (5, 4), (2, 3)), (floats(5, 4),), (0,))
    yield Example("slice empty", lambda x: lax.slice(x, (2,), (2,)), (floats(5),), (0,))
    yield Example("pad", lambda x, v: lax.pad(x, v, ((1, 2, 0), (0, 1, 2))), (floats(2, 3), floats()), (0, 1))
    yield Example("pad crop", lambda x, v: lax.pad(x, v, ((-1, 2, 1), (2, -1, 0))), (floats(3, 3), floats()), (0, 1))
    yield Example("concatenate", lambda x, y: lax.concatenate([x, y, x], 1), (floats(2, 3), floats(2, 1, seed=1)), (0, 1))
    yield Example("concatenate empty", lambda x, y: lax.concatenate([x, y], 0), (floats(0), floats(2)), (0, 1))
    yield Example("split", lambda x: lax.split(x, (1, 2), 1)[1], (floats(2, 3),), (0,))
    yield Example("iota", lambda: lax.broadcasted_iota(np.int32, (3, 4), 1), ())
    yield Example("dynamic_slice", lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)), (floats(4, 5), np.int32(1), np.int32(9)), (0,))
    yield Example(
        "dynamic_update_slice", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, np.int32(1))), (floats(4, 5), floats(2, 3, seed=1), np.int32(2)), (0, 1)
    )
    yield Example("sort", lambda x: lax.sort(x, 0), (floats(4, 3),), (0,))
    yield Example("sort keys", lambda k, x: lax.sort((k, x), 1, num_keys=1)[1], (ints(2, 4, low=0, high=3), floats(2, 4)), (1,))
    yield Example("top_k", lambda x: lax.top_k(x, 2)[0], (floats(3, 4),), (0,))


def reductions(lax, jnp):
    for name, f in (("reduce_sum", jnp.sum), ("reduce_max", jnp.max), ("reduce_min", jnp.min), ("reduce_prod", jnp.prod)):
        yield Example(name, lambda x, f=f: f(x, axis=(0, 2)), (floats(2, 3, 4),), (0,), exact=False)
        yield Example(f"{name} all", lambda x, f=f: f(x), (floats(2, 3),), (0,), exact=False)
        yield Example(f"{name} int", lambda x, f=f: f(x, axis=0), (ints(4, 3, low=-4, high=4),))
    yield Example("reduce_sum empty", lambda x: jnp.sum(x, axis=0), (floats(0, 3),), (0,))
    yield Example("reduce_and", lambda x: jnp.all(x, axis=1), (ints(2, 3, low=0, high=2) > 0,))
    yield Example("reduce_or", lambda x: jnp.any(x, axis=0), (ints(2, 3, low=0, high=2) > 0,))
    yield Example("argmax", lambda x: lax.argmax(x, 1, np.int32), (floats(3, 4),))
    yield Example("argmin", lambda x: lax.argmin(x, 0, np.int32), (floats(3, 4),))
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        f = getattr(lax, name)
        yield Example(name, lambda x, f=f: f(x, 1), (floats(2, 5, low=0.3),), (0,), exact=False)
        yield Example(f"{name} reverse", lambda x, f=f: f(x, 0, reverse=True), (floats(4, 2, low=0.3),), (0,), exact=False)
    dims = lambda *d: lambda x, y: lax.dot_general(x, y, d)
    yield Example("dot_general", dims(((1,), (0,)), ((), ())), (floats(2, 3), floats(3, 4, seed=1)), (0, 1), exact=False)
    yield Example("dot_general inner", dims(((0,), (0,)), ((), ())), (floats(5), floats(5, seed=1)), (0, 1), exact=False)
    yield Example("dot_general outer", dims(((), ()), ((), ())), (floats(2), floats(3, seed=1)), (0, 1), exact=False)
    yield Example("dot_general batch", dims(((1,), (2,)), ((2,), (0,))), (floats(3, 4, 2), floats(2, 5, 4, seed=1)), (0, 1), exact=False)
    yield Example("dot_general many", dims(((0, 2), (1, 0)), ((), ())), (floats(2, 3, 4), floats(4, 2, 5, seed=1)), (0, 1), exact=False)
    yield Example("dot_general empty", dims(((1,), (0,)), ((), ())), (floats(2, 0), floats(0, 3)), (0, 1))


def gathering(lax, jnp):
    at = np.array([2, 0, 2], np.int32)
    yield Example("gather rows", lambda x, i: x.at[i].get(mode="clip"), (floats(4, 3), at), (0,))
    yield Example("gather points", lambda x, i, j: x[i, j], (floats(4, 3), at, np.array([1, 1, 0], np.int32)), (0,))
    yield Example("gather columns", lambda x, i: x[:, i], (floats(4, 3), at), (0,))
    yield Example("dynamic_slice row", lambda x, i: x[i], (floats(4, 3), np.int32(-1)), (0,))
    yield Example("gather fill", lambda x, i: x.at[i].get(mode="fill", fill_value=7.0), (floats(4), np.array([1, 9, -2], np.int32)), (0,))
    once = np.array([2, 0], np.int32)
    for name in ("set", "add", "multiply", "min", "max"):
        update = lambda x, i, u, name=name: getattr(x.at[i], name)(u, unique_indices=True)
        yield Example(f"scatter {name}", update, (floats(4, 3), once, floats(2, 3, seed=1)), (0, 2))
        yield Example(f"scatter {name} columns", lambda x, i, u, name=name: getattr(x.at[:, i], name)(u, unique_indices=True),
                      (floats(2, 4), once, floats(2, 2, seed=1)), (0, 2))  # fmt: skip
    yield Example("scatter add twice", lambda x, i, u: x.at[i].add(u), (floats(4), at, floats(3, seed=1)), (0, 2))
    yield Example("scatter out of bounds", lambda x, i, u: x.at[i].add(u), (floats(4), np.array([1, 9], np.int32), floats(2, seed=1)), (0, 2))


def control(jax, lax, jnp):
    yield Example("jit", lambda x: jax.jit(lambda y: jnp.sin(y) * x)(x), (floats(3),), (0,))
    yield Example("cond", lambda p, x: lax.cond(p, jnp.sin, lambda x: x * x, x), (np.array(True), floats(3)), (1,))
    yield Example("cond switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * x], x), (np.int32(1), floats(3)), (1,))
    yield Example("while", lambda n, x: lax.fori_loop(0, n, lambda i, v: v * 1.5 + jnp.sin(v), x), (np.int32(3), floats(3)), ())
    yield Example("scan", lambda c, xs: lax.scan(lambda c, x: (c * x + 1.0, jnp.sin(c)), c, xs), (floats(2), floats(4, 2, seed=1)), (0, 1))
    yield Example("scan reverse", lambda c, xs: lax.scan(lambda c, x: (c + x, c * x), c, xs, reverse=True)[1], (floats(), floats(4, seed=1)), (0, 1))
    yield Example("scan empty", lambda c, xs: lax.scan(lambda c, x: (c * x, c), c, xs), (floats(), floats(0)), (0, 1))
    yield Example("remat2", lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.exp(x)))(x), (floats(3),), (0,))

    @jax.custom_jvp
    def twice(x):
        return x * 2.0

    twice.defjvp(lambda p, t: (twice(*p), t[0] * 2.0))
    yield Example("custom_jvp_call", twice, (floats(3),), (0,))

    @jax.custom_vjp
    def cube(x):
        return x * x * x

    cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (3.0 * x * x * ct,))
    yield Example("custom_vjp_call", cube, (floats(3),), (), note="reverse only")


def examples(jax):
    """All examples by name."""
    lax, jnp = jax.lax, jax.numpy
    out = {}
    for family in (pointwise(lax), structural(lax), reductions(lax, jnp), gathering(lax, jnp), control(jax, lax, jnp)):
        for e in family:
            assert e.name not in out, e.name
            out[e.name] = e
    return out
