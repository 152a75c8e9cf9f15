"""Primitives that Python defines, and calls from programs back into Python."""

import importlib
import itertools

import numpy as np
import pytest

names = (f"test_primitive_{i}" for i in itertools.count())


@pytest.fixture
def parts(jax):
    load = lambda m: importlib.import_module(f"{jax.__name__}.{m}")
    return load("extend.core").Primitive, load("interpreters.ad"), load("interpreters.batching")


@pytest.fixture
def mul_sub(jax, parts):
    """x * y - k"""
    p = parts[0](next(names))
    p.def_impl(lambda x, y, *, k: x * y - k)
    p.def_abstract_eval(lambda x, y, *, k: jax.core.ShapedArray(x.shape, x.dtype))
    return p


def test_eager_and_staged(jax, jnp, mul_sub):
    f = lambda x, y: mul_sub.bind(x, y, k=3)
    assert float(f(jnp.float32(2.0), jnp.float32(4.0))) == 5.0
    j = jax.make_jaxpr(f)(2.0, 4.0)
    assert str(j.eqns[0].primitive) == mul_sub.name and j.eqns[0].params == {"k": 3} and f"{mul_sub.name}[k=3]" in str(j)


@pytest.mark.ours
def test_jit_needs_no_rule_of_its_own(jax, parts, mul_sub):
    assert float(jax.jit(lambda x, y: mul_sub.bind(x, y, k=3))(2.0, 4.0)) == 5.0
    p = parts[0](next(names))
    p.def_impl(lambda x: np.sin(x))  # numpy wants concrete arrays: called when the program runs
    p.def_abstract_eval(lambda x: x)
    assert np.allclose(jax.jit(lambda x: p.bind(x) + 1)(0.5), np.sin(0.5) + 1)


def test_rules(jax, jnp, parts, mul_sub):
    _, ad, batching = parts
    f = lambda x, y: mul_sub.bind(x, y, k=3)
    with pytest.raises(NotImplementedError, match=f"Differentiation rule for '{mul_sub.name}' not implemented"):
        jax.grad(f)(2.0, 4.0)
    with pytest.raises(NotImplementedError, match=f"Batching rule for '{mul_sub.name}' not implemented"):
        jax.vmap(f)(jnp.ones(2), jnp.ones(2))

    def jvp(primals, tangents, *, k):
        (x, y), (dx, dy) = primals, tangents
        terms = [t for t in (None if type(dx) is ad.Zero else dx * y, None if type(dy) is ad.Zero else x * dy) if t is not None]
        return mul_sub.bind(x, y, k=k), sum(terms[1:], terms[0])

    ad.primitive_jvps[mul_sub] = jvp
    batching.primitive_batchers[mul_sub] = lambda args, dims, *, k: (mul_sub.bind(*args, k=k), dims[0])
    assert float(jax.grad(f)(2.0, 4.0)) == 4.0 and [float(g) for g in jax.grad(f, (0, 1))(2.0, 4.0)] == [4.0, 2.0]
    assert jax.vmap(f)(jnp.arange(3.0), jnp.ones(3)).tolist() == [-3.0, -2.0, -1.0]
    assert jax.vmap(jax.grad(f))(jnp.arange(3.0), jnp.arange(3.0)).tolist() == [0.0, 1.0, 2.0]


def test_linear_primitives_transpose(jax, parts):
    Primitive, ad, _ = parts
    p = Primitive(next(names))
    p.def_impl(lambda x: x * 2)
    p.def_abstract_eval(lambda x: x)
    ad.deflinear2(p, lambda ct, x: [p.bind(ct)])
    assert float(jax.grad(lambda x: p.bind(x) * 3)(1.0)) == 6.0


def test_several_results(jax, parts):
    p = parts[0](next(names))
    p.multiple_results = True
    p.def_impl(lambda x: [x, x + 1])
    p.def_abstract_eval(lambda x: [x, x])
    assert [float(v) for v in p.bind(np.float32(1.0))] == [1.0, 2.0]
    assert len(jax.make_jaxpr(lambda x: p.bind(x))(1.0).jaxpr.outvars) == 2


# ---------------------------------------------------------------- callbacks


def test_pure_callback(jax, jnp):
    shape = jax.ShapeDtypeStruct((3,), np.float32)
    f = lambda x: jax.pure_callback(lambda v: np.sin(v), shape, x)
    x = jnp.arange(3.0)
    assert np.allclose(f(x), np.sin(x)) and np.allclose(jax.jit(f)(x), np.sin(x))


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_callbacks_are_mapped(jax, jnp, method):
    one = jax.ShapeDtypeStruct((), np.float32)
    f = lambda x, y: jax.pure_callback(lambda a, b: np.asarray(a * b, np.float32), one, x, y, vmap_method=method)
    assert jax.vmap(f, (0, None))(jnp.arange(3.0), 2.0).tolist() == [0, 2, 4]


def test_callbacks_compute_with_the_library(jax, jnp):
    f = lambda x: jax.pure_callback(lambda v: np.asarray(jnp.asarray(v) * 2), jax.ShapeDtypeStruct((3,), np.float32), x)
    assert jax.jit(f)(jnp.arange(3.0)).tolist() == [0, 2, 4]


def test_what_a_callback_raises_comes_out(jax):
    def fail(v):
        raise ValueError("from the callback")

    f = jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), np.float32), x))
    with pytest.raises(jax.errors.JaxRuntimeError, match="from the callback"):
        jax.block_until_ready(f(1.0))
