"""What can be pickled, copied and weakly referred to: all that JAX's can, and jitted functions besides."""

import copy
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
def test_functions_and_what_they_hold_are_freed(jax, jnp, make):
    f, held = closure(jnp)
    g = make(jax, f)
    g(1.0)
    function = weakref.ref(f)
    del f, g
    gc.collect()
    assert function() is None and held() is None
