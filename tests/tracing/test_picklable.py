"""What can be pickled, copied and weakly referred to: all that JAX's can, and jitted functions besides."""

import copy
import functools
import gc
import operator
import pickle
import weakref

import numpy as np
import pytest


def module_level(x):
    return x * 2


def module_level_rule(primals, tangents):
    return module_level(*primals), 3 * tangents[0]


def again(x):
    return pickle.loads(pickle.dumps(x))


# ---------------------------------------------------------------- by value

VALUES = {
    "array": lambda jax, jnp: jnp.arange(6.0).reshape(2, 3),
    "bfloat16": lambda jax, jnp: jnp.ones(3, "bfloat16"),
    "empty": lambda jax, jnp: jnp.zeros((0, 3), "int8"),
    "complex": lambda jax, jnp: jnp.array([1j, 2]),
}
ONE_LINE = {
    "key": lambda jax, jnp: jax.random.key(3),
    "keys": lambda jax, jnp: jax.random.split(jax.random.key(3)),
    "struct": lambda jax, jnp: jax.ShapeDtypeStruct((2,), "float32", weak_type=True),
    "aval": lambda jax, jnp: jax.typeof(jnp.ones((2, 3))),
    "weak aval": lambda jax, jnp: jax.typeof(1.0),
    "device": lambda jax, jnp: jax.devices()[-1],
    "sharding": lambda jax, jnp: jax.sharding.SingleDeviceSharding(jax.devices()[0]),
    "named sharding": lambda jax, jnp: jax.sharding.NamedSharding(jax.make_mesh((1,), ("i",)), jax.sharding.PartitionSpec("i")),
    "key's dtype": lambda jax, jnp: jax.random.key(0).dtype,
    "treedef": lambda jax, jnp: jax.tree.structure({"a": 1, "b": (1, None, [2])}),
    "partial": lambda jax, jnp: jax.tree_util.Partial(operator.add, 1.0),
    "path": lambda jax, jnp: jax.tree_util.tree_flatten_with_path({"a": [1]})[0],
    "dimension numbers": lambda jax, jnp: jax.lax.GatherDimensionNumbers((0,), (0,), (0,)),
    "precision": lambda jax, jnp: jax.lax.Precision.HIGHEST,
    "scalar type": lambda jax, jnp: jnp.bfloat16,
    "policy": lambda jax, jnp: jax.checkpoint_policies.everything_saveable,
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("how", [again, copy.copy, copy.deepcopy])
def test_arrays(jax, jnp, name, how):
    x = VALUES[name](jax, jnp)
    y = how(x)
    assert type(y) is type(x) and y is not x and y.dtype == x.dtype and y.shape == x.shape and np.array_equal(y, x)
    x.delete()
    assert not y.is_deleted() and np.asarray(y).shape == y.shape


@pytest.mark.parametrize("name", ONE_LINE)
@pytest.mark.parametrize("how", [again, copy.copy, copy.deepcopy])
def test_values(jax, jnp, name, how):
    x = ONE_LINE[name](jax, jnp)
    assert repr(how(x)) == repr(x)


def test_weak_types_are_kept(jax, jnp):
    x = jnp.asarray(1.0) * 1
    assert x.weak_type and again(x).weak_type and copy.deepcopy(x).weak_type


def test_copies_stay_where_they_are(jax, jnp):
    x = jax.device_put(jnp.ones(3), jax.devices()[-1])
    y = copy.deepcopy(x)
    assert (y.device, y.committed) == (x.device, True)
    assert not again(x).committed


def test_traced_values_are_copied_and_not_pickled(jax):
    assert jax.jit(lambda x: copy.copy(x) + copy.deepcopy(x))(1.0) == 2
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(pickle.dumps)(1.0)


def test_custom_rules(jax):
    f = jax.custom_jvp(module_level)
    f.defjvp(module_level_rule)
    assert again(f)(2.0) == 4 and jax.grad(again(f))(2.0) == 3
    assert again(jax.tree_util.Partial(module_level, 1.0))() == 2


# ---------------------------------------------------------------- jitted functions


@pytest.mark.ours
@pytest.mark.parametrize("how", [again, copy.copy, copy.deepcopy])
def test_jitted_functions(jax, jnp, how):
    f = how(jax.jit(module_level))
    assert f(2.0) == 4 and f.__name__ == "module_level"
    g = how(jax.jit(operator.mul, static_argnums=1, donate_argnums=0))
    x = jnp.ones(2)
    assert g(x, 3).tolist() == [3, 3] and x.is_deleted()


@pytest.mark.ours
def test_a_jitted_function_with_a_name_of_its_own_is_found_by_it(jax):
    import sys
    import types

    module = types.ModuleType("a_module_of_steps")
    sys.modules[module.__name__] = module
    try:
        exec("import ferrax\n@ferrax.jit\ndef step(x): return x + 1", module.__dict__)
        assert again(module.step) is module.step and copy.deepcopy({"f": module.step})["f"] is module.step
    finally:
        del sys.modules[module.__name__]


# ---------------------------------------------------------------- transformed functions


def scalar_of(x):
    return (x**3).sum()


def vector_of(x):
    return x**3


def aux_of(x):
    return scalar_of(x), x


class Model:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return (self.w * x**3).sum()

    def loss(self, x):
        return self(x)


def decorated_rule(primals, tangents):
    return primals[0], 5 * tangents[0]


def fwd(x):
    return x * 2, None


def bwd(_, ct):
    return (7 * ct,)


def times(t, _out, _x):
    return 11 * t


def pulled(x):
    return x * 2, vector_of


def mapped_rule(axis_size, in_batched, x):
    return x + axis_size, in_batched[0]


def with_vjp(jax):
    f = jax.custom_vjp(module_level)
    f.defvjp(fwd, bwd)
    return f


def with_jvps(jax):
    f = jax.custom_jvp(module_level)
    f.defjvps(times)
    return f


def with_vmap(jax):
    f = jax.custom_batching.custom_vmap(module_level)
    f.def_vmap(mapped_rule)
    return f


def checkified(jax):
    from ferrax.experimental import checkify

    return checkify.checkify(vector_of, checkify.nan_checks)


TRANSFORMED = {
    "grad": lambda jax: jax.grad(scalar_of),
    "grad with aux": lambda jax: jax.grad(aux_of, has_aux=True),
    "value_and_grad": lambda jax: jax.value_and_grad(scalar_of),
    "grad of an object": lambda jax: jax.grad(Model(2.0)),
    "grad of a method": lambda jax: jax.grad(Model(2.0).loss),
    "grad of a partial": lambda jax: jax.grad(functools.partial(scalar_of)),
    "vmap": lambda jax: jax.vmap(vector_of, in_axes=(0,), out_axes=-1),
    "vmap of grad": lambda jax: jax.vmap(jax.grad(scalar_of)),
    "jit of grad": lambda jax: jax.jit(jax.grad(scalar_of)),
    "grad of jit": lambda jax: jax.grad(jax.jit(scalar_of)),
    "jit with shardings": lambda jax: jax.jit(vector_of, in_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[0])),
    "jacfwd": lambda jax: jax.jacfwd(vector_of),
    "jacrev": lambda jax: jax.jacrev(vector_of),
    "hessian": lambda jax: jax.hessian(scalar_of),
    "checkpoint": lambda jax: jax.checkpoint(vector_of),
    "checkpoint with a policy": lambda jax: jax.grad(jax.checkpoint(scalar_of, policy=jax.checkpoint_policies.save_only_these_names("a"))),
    "pmap": lambda jax: jax.pmap(vector_of),
    "shard_map": lambda jax: jax.shard_map(
        vector_of, mesh=jax.sharding.AbstractMesh((1,), ("i",)), in_specs=jax.sharding.PartitionSpec("i"), out_specs=jax.sharding.PartitionSpec("i")
    ),
    "make_jaxpr": lambda jax: jax.make_jaxpr(vector_of),
    "named_call": lambda jax: jax.named_call(vector_of, name="a"),
    "vectorize": lambda jax: jax.numpy.vectorize(scalar_of, signature="(n)->()"),
    "ufunc": lambda jax: jax.numpy.frompyfunc(vector_of, 1, 1),
    "jnp.add": lambda jax: jax.numpy.add.reduce,
    "nn.relu": lambda jax: jax.nn.relu,
    "grad of custom_vjp": lambda jax: jax.vmap(jax.grad(with_vjp(jax))),
    "grad of custom_jvps": lambda jax: jax.vmap(jax.grad(with_jvps(jax))),
    "grad of custom_gradient": lambda jax: jax.vmap(jax.grad(jax.custom_gradient(pulled))),
    "custom_vmap": lambda jax: jax.vmap(with_vmap(jax)),
    "sequential_vmap": lambda jax: jax.vmap(jax.custom_batching.sequential_vmap(vector_of)),
    "vjp": lambda jax: jax.vjp(vector_of, jax.numpy.arange(1.0, 4.0))[1],
    "linearize": lambda jax: jax.linearize(vector_of, jax.numpy.arange(1.0, 4.0))[1],
    "linear_transpose": lambda jax: jax.linear_transpose(module_level, jax.numpy.arange(1.0, 4.0)),
    "checkify": checkified,
}


USES = {"pmap": lambda f, x: f(x[None]), "make_jaxpr": lambda f, x: str(f(x)), "checkify": lambda f, x: f(x)[1]}


def called(jax, name, f, x):
    out = USES[name](f, x) if name in USES else f(x)
    return jax.tree.map(lambda y: y if isinstance(y, str) else np.asarray(y).tolist(), out)


@pytest.mark.ours  # JAX pickles none of them
@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_transformed_functions(jax, jnp, name, protocol):
    f, x = TRANSFORMED[name](jax), jnp.arange(1.0, 4.0)
    restored = pickle.loads(pickle.dumps(f, protocol))
    expected = called(jax, name, f, x)
    assert called(jax, name, restored, x) == expected and called(jax, name, copy.deepcopy(f), x) == expected
    for attribute in ("__name__", "__doc__", "__module__"):
        assert getattr(restored, attribute, None) == getattr(f, attribute, None)


@pytest.mark.ours
def test_decorated_functions_are_found_by_their_names(jax):
    import sys
    import types

    module = types.ModuleType("a_module_of_decorated_functions")
    sys.modules[module.__name__] = module
    lines = "grad vmap jacfwd checkpoint custom_jvp custom_vjp custom_gradient make_jaxpr".split()
    try:
        exec("import ferrax\n" + "".join(f"@ferrax.{t}\ndef {t}(x): return x\n" for t in lines), module.__dict__)
        exec("class C:\n  @ferrax.grad\n  def g(x): return x", module.__dict__)
        for t in lines:
            if t != "make_jaxpr":  # whose name is "make_jaxpr(make_jaxpr)"
                assert again(getattr(module, t)) is getattr(module, t), t
        assert again(module.C.g) is module.C.g and again(jax.grad(module.vmap))
    finally:
        del sys.modules[module.__name__]


def test_transformed_functions_are_functions(jax):
    """What programs do with functions: methods, signatures, attributes, weak references, copies."""
    import inspect

    f = jax.grad(scalar_of)
    f.note = 1
    assert f.note == 1 and f.__wrapped__ is scalar_of and f.__name__ == "scalar_of" and f.__code__.co_name and callable(f)
    assert (
        str(inspect.signature(f)) == "(x)"
        and not hasattr(f, "__self__")
        and not hasattr(f, "__jax_array__")
        and repr(f).startswith("<function scalar_of at 0x")
    )
    assert copy.copy(f) is f and copy.deepcopy(f) is f and weakref.ref(f)() is f and f != jax.grad(scalar_of) and len({f, f}) == 1

    class Layer:
        @jax.vmap
        def twice(self, x):
            return x * 2

        step = jax.grad(lambda self, x: self.w * x**2, argnums=1)
        w = 3.0

    assert Layer().step(2.0) == 12 and Layer.step(Layer(), 2.0) == 12

    @functools.wraps(f)
    def again_wrapped(x):
        return f(x)

    assert again_wrapped.__name__ == "scalar_of" and again_wrapped.note == 1


@pytest.mark.ours
def test_bodies_that_are_transformed_functions_are_traced_once(jax):
    count = 0

    def f(i, x):
        nonlocal count
        count += 1
        return x**2

    body = jax.grad(f, argnums=1)
    for _ in range(3):
        jax.lax.fori_loop(0, 2, body, 1.0)
    assert count == 1


@pytest.mark.ours
def test_programs_with_python_rules_cannot_be_serialized(jax):
    with pytest.raises(NotImplementedError):
        pickle.dumps(jax.vjp(with_vjp(jax), 1.0)[1])


@pytest.mark.ours
def test_the_configuration_is_one(jax):
    assert copy.deepcopy(jax.config) is jax.config and again(jax.config) is jax.config


# ---------------------------------------------------------------- weak references

WEAK = {
    "array": lambda jax, jnp: jnp.ones(2),
    "key": lambda jax, jnp: jax.random.key(0),
    "aval": lambda jax, jnp: jax.typeof(1.0),
    "jitted": lambda jax, jnp: jax.jit(lambda x: x),
    "traced": lambda jax, jnp: jax.jit(lambda x: x).trace(1.0),
    "lowered": lambda jax, jnp: jax.jit(lambda x: x).lower(1.0),
    "compiled": lambda jax, jnp: jax.jit(lambda x: x).lower(1.0).compile(),
    "program": lambda jax, jnp: jax.make_jaxpr(lambda x: x)(1.0),
    "primitive": lambda jax, jnp: jax.lax.sin_p,
}


@pytest.mark.parametrize("name", WEAK)
def test_weak_references(jax, jnp, name):
    assert weakref.ref(x := WEAK[name](jax, jnp))() is x


# ---------------------------------------------------------------- what is collected


class Node:
    pass


def cycle_through_the_function(jax):
    node = Node()
    node.step = jax.jit(lambda x: (node, x)[1])
    node.step(1.0)
    return node


def cycle_through_a_method(jax):
    class Model(Node):
        def __init__(self):
            self.step = jax.jit(self.forward)

        def forward(self, x):
            return x * 2

    model = Model()
    model.step(1.0)
    return model


def cycle_through_a_static_argument(jax):
    node = Node()
    node.step = jax.jit(lambda n, x: x, static_argnums=0)
    node.step(node, 1.0)
    return node


def cycle_through_the_attributes(jax):
    node = Node()
    node.step = jax.jit(lambda x: x)
    node.step.node = node
    return node


def cycle_through_a_custom_rule(jax):
    node = Node()

    @jax.custom_jvp
    def f(x):
        return x * 2

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), (node, tangents[0])[1]

    node.f = f
    jax.grad(f)(1.0)
    return node


def cycle_through_a_traced_custom_rule(jax):
    node = Node()

    @jax.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (f(x), None), lambda res, ct: ((node, ct)[1],))
    node.step = jax.jit(lambda x: f(x) + 1)
    node.step(1.0)
    return node


CYCLES = [
    cycle_through_the_function, cycle_through_a_method, cycle_through_a_static_argument, cycle_through_the_attributes, cycle_through_a_custom_rule,
    cycle_through_a_traced_custom_rule,
]  # fmt: skip


@pytest.mark.ours  # JAX keeps the last two
@pytest.mark.parametrize("make", CYCLES, ids=lambda f: f.__name__)
def test_cycles_are_collected(jax, make):
    seen = weakref.ref(make(jax))
    gc.collect()
    assert seen() is None


def closure(jnp):
    held = jnp.ones(3)
    return lambda x: (x * held).sum(), weakref.ref(held)


@pytest.mark.parametrize("make", [lambda jax, f: jax.jit(f), lambda jax, f: jax.grad(jax.jit(f)), lambda jax, f: jax.jit(jax.grad(f))])
def test_functions_and_their_captures_are_freed(jax, jnp, make):
    f, held = closure(jnp)
    g = make(jax, f)
    g(1.0)
    function = weakref.ref(f)
    del f, g
    gc.collect()
    assert function() is None and held() is None
