"""jaxtyping with beartype: annotations of functions, classes and trees, checked also under transformations."""

import dataclasses
import typing

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import (
    Array,
    ArrayLike,
    Bool,
    Complex,
    Float,
    Float32,
    Inexact,
    Int,
    Key,
    Num,
    PRNGKeyArray,
    PyTree,
    PyTreeDef,
    Real,
    Scalar,
    ScalarLike,
    Shaped,
    UInt8,
    jaxtyped,
)
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)
RK = jax.random.PRNGKey(0)
x = jnp.asarray(rng.randn(4, 6), jnp.float32)
checked = jaxtyped(typechecker=beartype)


def programs(t):
    @jaxtyped(typechecker=beartype)
    def jt(a: Float[Array, "b d"], b: Float[Array, "d"]) -> Float[Array, "b"]:
        return a @ b

    t("jt ok", lambda: jt(x, x[0]))
    t("jt bad", lambda: type(jt(x, x[0, :3])), raises="TypeCheckError", why="the shapes do not fit")
    t("jt dtype", lambda: isinstance(jnp.arange(3), Int[Array, "3"]))
    t("jt key", lambda: isinstance(K, Key[Array, ""]))
    t("jt jit", lambda: jax.jit(jt)(x, x[0]))
    t("jt pytree", lambda: isinstance({"a": x}, PyTree[Float[Array, "..."]]))
    t("jt no", lambda: isinstance(x, Int[Array, "..."]))
    t("jt vmap", lambda: jax.vmap(jt, in_axes=(0, None))(x[None], x[0]))
    t("jt grad", lambda: jax.grad(lambda a: jt(a, x[0]).sum())(x))
    for n, (hint, value) in {
        "bool": (Bool[Array, "a"], x[0] > 0),
        "complex": (Complex[Array, "a b"], x * 1j),
        "inexact": (Inexact[Array, "..."], x),
        "number": (Num[Array, ""], jnp.array(3)),
        "real": (Real[Array, "4 _"], x),
        "shaped": (Shaped[Array, "*batch 6"], x),
        "byte": (UInt8[Array, "3"], jnp.arange(3, dtype=jnp.uint8)),
        "float32": (Float32[Array, "4 3+3"], x),
        "half": (Float32[Array, "4 6"], x.astype(jnp.bfloat16)),
        "of numpy": (Float[np.ndarray, "4 6"], x),
        "array like": (Float[ArrayLike, ""], 2.0),
        "broadcast": (Float[Array, "#4 6"], x[:1]),
        "scalar": (Scalar, jnp.float32(1)),
        "scalar like": (ScalarLike, 3),
        "key": (PRNGKeyArray, K),
        "old key": (PRNGKeyArray, RK),
        "definition": (PyTreeDef, jax.tree.structure({"a": x})),
        "struct": (Float[jax.ShapeDtypeStruct, "4 6"], jax.ShapeDtypeStruct((4, 6), jnp.float32)),
        "tree": (PyTree[Float[Array, "?a b"], "T"], {"p": x, "q": (x,)}),
        "tree of ints": (PyTree[int], {"p": x}),
        "tree prefix": (PyTree[Float[Array, "4 ..."], "T ..."], [x, x[:, 0]]),
    }.items():
        wrong = dict(raises="AnnotationError", why="a prefix of a structure needs a binding of it") if n == "tree prefix" else {}
        t(f"instance {n}", lambda: isinstance(value, hint), **wrong)

    @checked
    def outer(a: Float[Array, "n"], b: Float[Array, "m"]) -> Float[Array, "n m"]:
        return a[:, None] * b

    @checked
    def trees(p: PyTree[Float[Array, "?n"], "T"], q: PyTree[Float[Array, "?n"], "T"]) -> PyTree[Float[Array, "?n"], "T"]:
        return jax.tree.map(jnp.add, p, q)

    @checked
    def variadic(a: Float[Array, "*b n"], w: Float[Array, "n m"]) -> Float[Array, "*b m"]:
        return a @ w

    @checked
    def computed(a: Float[Array, "n"]) -> Float[Array, "2*n+1"]:
        return jnp.concatenate([a, a, a[:1]])

    @checked
    def wrong(a: Float[Array, "n"]) -> Float[Array, "n n"]:
        return a

    @checked
    def optional(a: Float[Array, "n"] | None, n: int = 3) -> Int[Array, "{n}"]:
        return jnp.arange(n)

    @jaxtyped(typechecker=beartype)
    @dataclasses.dataclass
    class Layer:
        w: Float[Array, "i o"]
        b: Float[Array, "o"]

    class Module(eqx.Module):
        w: Float[Array, "i o"]
        size: int = eqx.field(static=True)

        @checked
        def __call__(self, v: Float[Array, "i"]) -> Float[Array, "{self.size}"]:
            return v @ self.w

    t("outer", lambda: outer(x[0], x[:, 0]))
    t("outer of matrix", lambda: outer(x, x[0]), raises="TypeCheckError", why="the first argument is a matrix")
    t("outer jacobian", lambda: jax.jacrev(outer)(x[0], x[:, 0]))
    t("trees", lambda: trees({"a": x[0], "b": x[:, 0]}, {"a": x[1], "b": x[:, 1]}))
    t("trees of others", lambda: trees({"a": x[0]}, {"b": x[1]}), raises="TypeCheckError", why="the structures differ")
    t("trees of sizes", lambda: trees({"a": x[0]}, {"a": x[:, 0]}), raises="TypeCheckError", why="the sizes differ")
    t("trees jit", lambda: jax.jit(trees)((x[0],), (x[1],)))
    t("variadic", lambda: (variadic(x, x.T), variadic(x[None], x.T), variadic(x[0], x.T)))
    t("variadic vmap", lambda: jax.vmap(variadic, (0, None))(x, x.T))
    t("variadic fails", lambda: variadic(x, x), raises="TypeCheckError", why="the axes differ")
    t("computed", lambda: computed(x[0]))
    t("computed scan", lambda: jax.lax.scan(lambda c, r: (c, computed(r)), 0.0, x)[1])
    t("wrong", lambda: wrong(x[0]), raises="TypeCheckError", why="the result has another shape")
    t("wrong traced", lambda: jax.jit(wrong)(x[0]), raises="TypeCheckError", why="the result has another shape")
    t("wrong shape asked", lambda: jax.eval_shape(wrong, x[0]), raises="TypeCheckError", why="the result has another shape")
    t("optional", lambda: optional(None, 5))
    t("optional fails", lambda: optional(x, 5), raises="TypeCheckError", why="5 is not an array")
    t("dataclass", lambda: Layer(x, x[0]).b)
    t("dataclass fails", lambda: Layer(x, x[:, 0]), raises="TypeCheckError", why="the fields have other sizes")
    t("module", lambda: eqx.filter_jit(Module(x, 6))(x[:, 0]))
    t("module fails", lambda: Module(x, 5)(x[:, 0]), raises="TypeCheckError", why="the argument has another size")
    t("module grad", lambda: eqx.filter_grad(lambda m, v: m(v).sum())(Module(x, 6), x[:, 0]).w)

    def in_context():
        with jaxtyped("context"):
            return [isinstance(x, Float[Array, "a b"]), isinstance(x.T, Float[Array, "a b"]), isinstance(x[0], Float[Array, "b"])]

    t("context", in_context)
    t("names", lambda: [Float[Array, "a b"].dim_str, typing.get_type_hints(outer)["a"].dim_str])
    t("not traced", lambda: jax.jit(lambda v: isinstance(v, Float[Array, "4 6"]) + v)(x))
    t("of nothing", lambda: Float[Array], raises=ValueError, why="a shape is missing")
    t("of bad text", lambda: Float[Array, "a -"].dim_str)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_jaxtyping(name):
    PROGRAMS.check(name)
