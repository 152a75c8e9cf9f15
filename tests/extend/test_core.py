"""Primitives defined in Python under every transform, programs as objects, and callbacks."""

import functools
import importlib
import inspect

import numpy as np
import pytest


@pytest.fixture(scope="module")
def extend(jax):
    importlib.import_module(jax.__name__ + ".core")
    importlib.import_module(jax.__name__ + ".interpreters.ad")
    importlib.import_module(jax.__name__ + ".interpreters.batching")
    return importlib.import_module(jax.__name__ + ".extend.core")


def test_a_primitive_from_nothing_to_every_rule(jax, jnp, extend):
    if jax.__name__ == "jax":
        pytest.skip("JAX needs a lowering rule, which is written in its compiler's language")
    ad, batching = jax.interpreters.ad, jax.interpreters.batching
    triple = extend.Primitive("triple_for_test")
    call = lambda x: triple.bind(x)
    with pytest.raises(NotImplementedError, match="Evaluation rule for 'triple_for_test' not implemented"):
        call(1.0)
    triple.def_impl(lambda x: np.asarray(x) * 3)
    assert float(call(2.0)) == 6
    with pytest.raises(NotImplementedError, match="Abstract evaluation for 'triple_for_test' not implemented"):
        jax.make_jaxpr(call)(1.0)
    triple.def_abstract_eval(lambda x: extend.ShapedArray(x.shape, x.dtype))
    assert "triple_for_test a" in str(jax.make_jaxpr(call)(1.0)) and float(jax.jit(call)(2.0)) == 6
    for transform, words in ((lambda: jax.jvp(call, (1.0,), (1.0,)), "Differentiation rule"), (lambda: jax.vmap(call)(jnp.ones(3)), "Batching rule")):
        with pytest.raises(NotImplementedError, match=words + " for 'triple_for_test' not implemented"):
            transform()
    ad.deflinear(triple, lambda ct: [triple.bind(ct)])
    batching.defvectorized(triple)
    assert float(jax.grad(call)(2.0)) == 3
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(lambda x: call(x) * x)))(jnp.arange(3.0)), [0, 6, 12])


def test_multiple_results_and_parameters(jax, jnp, extend):
    if jax.__name__ == "jax":
        pytest.skip("JAX needs a lowering rule")
    both = extend.Primitive("both_for_test")
    both.multiple_results = True
    both.def_impl(lambda x, *, n: [np.asarray(x) + n, np.asarray(x) * n])
    both.def_abstract_eval(lambda x, *, n: [extend.ShapedArray(x.shape, x.dtype)] * 2)
    for f in (lambda x: both.bind(x, n=3), jax.jit(lambda x: both.bind(x, n=3))):
        added, multiplied = f(jnp.ones(2))
        assert np.asarray(added).tolist() == [4, 4] and np.asarray(multiplied).tolist() == [3, 3]
    eqn = jax.make_jaxpr(lambda x: both.bind(x, n=3))(jnp.ones(2)).jaxpr.eqns[0]
    assert eqn.primitive.name == "both_for_test" and eqn.params["n"] == 3 and len(eqn.outvars) == 2


def test_programs_evaluate_equation_by_equation(jax, jnp, extend):
    closed = jax.make_jaxpr(lambda x, y: (jnp.sin(x) * y, x))(1.0, 2.0)
    values = dict(zip(closed.jaxpr.invars, (1.0, 2.0), strict=True))
    read = lambda v: v.val if isinstance(v, extend.Literal) else values[v]
    for eqn in closed.jaxpr.eqns:
        out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        values.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    want = [np.sin(1.0) * 2, 1.0]
    np.testing.assert_allclose([float(read(v)) for v in closed.jaxpr.outvars], want, rtol=1e-6)
    np.testing.assert_allclose([float(v) for v in jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 1.0, 2.0)], want, rtol=1e-6)
    np.testing.assert_allclose([float(v) for v in extend.jaxpr_as_fun(closed)(1.0, 2.0)], want, rtol=1e-6)
    with pytest.raises(ValueError):
        jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 1.0)
    inner = list(extend.subjaxprs(jax.make_jaxpr(jax.jit(jnp.sin))(1.0).jaxpr))
    assert [e.primitive.name for e in inner[0].eqns] == ["sin"]
    extend.check_jaxpr(closed.jaxpr)


def test_checkpoint_names(jax, jnp):
    names = importlib.import_module(jax.__name__ + ".ad_checkpoint")
    policy = jax.checkpoint_policies.save_only_these_names("a")
    f = jax.checkpoint(lambda x: names.checkpoint_name(jnp.sin(x), "a") ** 2, policy=policy)
    assert float(jax.grad(f)(0.5)) == pytest.approx(2 * np.sin(0.5) * np.cos(0.5), rel=1e-6)
    assert float(jax.jit(jax.grad(f))(0.5)) == pytest.approx(2 * np.sin(0.5) * np.cos(0.5), rel=1e-6)


def test_pure_callback(jax, jnp):
    struct = jax.ShapeDtypeStruct((), np.float32)
    call = lambda x, method="sequential": jax.pure_callback(lambda v: np.sin(v).astype(np.float32), struct, x, vmap_method=method)
    assert float(jax.jit(call)(0.5)) == pytest.approx(np.sin(0.5), rel=1e-6)
    for method in ("sequential", "expand_dims", "broadcast_all"):
        np.testing.assert_allclose(jax.vmap(functools.partial(call, method=method))(jnp.arange(3.0)), np.sin(np.arange(3.0)), rtol=1e-6)
    with pytest.raises(ValueError, match="vmap_method must be on of the allowed methods"):
        call(1.0, "nonsense")


def test_pullbacks_and_linear_maps_leave_jit(jax, jnp):
    pull = jax.jit(lambda x: jax.vjp(jnp.sin, x)[1])(0.5)
    assert float(pull(2.0)[0]) == pytest.approx(2 * np.cos(0.5), rel=1e-6)
    push = jax.jit(lambda x: jax.linearize(jnp.sin, x)[1])(0.5)
    assert float(push(2.0)) == pytest.approx(2 * np.cos(0.5), rel=1e-6)


def test_compile_time_evaluation(jax, jnp):
    @jax.jit
    def f(x):
        with jax.ensure_compile_time_eval():
            return x if jnp.ones(3).sum() > 2 else -x

    assert float(f(1.0)) == 1


def test_programs_are_made_of_others_equations(jax, jnp, extend):
    f = lambda x: (jnp.sin(x), x.sum(0) * 2)
    closed = jax.make_jaxpr(f)(jnp.arange(3.0))
    run = lambda jaxpr: [np.asarray(v).tolist() for v in jax.core.eval_jaxpr(jaxpr, closed.consts, jnp.arange(3.0))]
    jaxpr = closed.jaxpr
    assert run(jaxpr.replace()) == run(jaxpr)
    one = jaxpr.replace(outvars=jaxpr.outvars[1:], eqns=jaxpr.eqns[1:])
    assert run(one) == [6.0] and len(one.eqns) == len(jaxpr.eqns) - 1
    sorted_twice = jax.make_jaxpr(lambda x: jnp.cumsum(x))(jnp.arange(3.0)).jaxpr
    e = sorted_twice.eqns[-1]
    while e.primitive.name == "jit":
        sorted_twice = e.params["jaxpr"].jaxpr
        e = sorted_twice.eqns[-1]
    back = sorted_twice.replace(eqns=[e.replace(params={**e.params, "reverse": True})])
    assert [v.tolist() for v in jax.core.eval_jaxpr(back, [], jnp.arange(3.0))] == [[3.0, 3.0, 2.0]]
    extend.check_jaxpr(one)


@pytest.mark.ours
def test_programs_that_read_undefined_variables_are_refused(jax, jnp):
    jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0).jaxpr
    with pytest.raises(ValueError, match="does not define"):
        jaxpr.replace(eqns=jaxpr.eqns[1:])
    with pytest.raises(TypeError, match="a Var or a Literal"):
        jaxpr.replace(outvars=[1.0])


def test_names_that_moved_from_core_are_read_with_a_warning(jax):
    for name in ("Effect", "get_opaque_trace_state", "no_effects", "valid_jaxtype"):
        with pytest.warns(DeprecationWarning, match=name):
            assert getattr(jax.core, name) is getattr(jax.extend.core, name)


def test_numbers_and_names_of_arguments(jax):
    from_signature = importlib.import_module(f"{jax.__name__}.api_util").infer_argnums_and_argnames if jax.__name__ == "ferrax" else None
    if from_signature is None:
        pytest.skip("internal there")

    def f(a, b, *c, d=1):
        pass

    sig = inspect.signature(f)
    cases = {
        (None, None): ((), ()),
        (0, None): ((0,), ("a",)),
        ((0, 1), None): ((0, 1), ("a", "b")),
        (-1, None): ((-1,), ()),
        (None, "b"): ((1,), ("b",)),
        (None, ("d", "a")): ((0,), ("d", "a")),
    }
    for (nums, names), expected in cases.items():
        assert from_signature(sig, nums, names) == expected


def test_axes_of_leaves(jax):
    flatten_axes = importlib.import_module(f"{jax.__name__}.api_util").flatten_axes
    tree = jax.tree_util.tree_structure(((1, 2), {"a": 3}))
    for axes, expected in ((0, [0, 0, 0]), (None, [None] * 3), ((0, None), [0, 0, None]), (((0, 1), 2), [0, 1, 2])):
        assert flatten_axes("axes", tree, axes) == expected
    with pytest.raises(ValueError, match="tree prefix"):
        flatten_axes("axes", tree, (0, 1, 2))


def test_clients(jax):
    backend = importlib.import_module(f"{jax.__name__}.extend.backend")
    assert backend.get_backend().platform == jax.default_backend()
    assert backend.get_backend("cpu").platform == "cpu"
    assert backend.get_default_device() in jax.devices()


def test_sizes_that_are_numbers(jax):
    n = jax.export.symbolic_shape("n")[0]
    core = importlib.import_module(f"{jax.__name__}.core")
    assert core.is_constant_dim(3) and core.is_constant_shape((2, 3)) and core.is_constant_shape(())
    assert not core.is_constant_dim(n) and not core.is_constant_shape((2, n))
