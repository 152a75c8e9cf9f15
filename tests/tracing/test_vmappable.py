"""Types of the user's that `vmap` maps over, dataclasses with an `__init__` of their own, files of keys, and forward mode within rules of reverse mode."""

import dataclasses
import importlib
import io

import numpy as np
import pytest


@dataclasses.dataclass
class Named:
    names: list
    data: object


@dataclasses.dataclass(frozen=True)
class Name:
    name: str
    axis: int


class Ragged:
    """Rows of several lengths, as one array."""

    def __init__(self, lengths, flat):
        self.lengths, self.flat = lengths, flat


@dataclasses.dataclass(frozen=True)
class Rows:
    pass


@pytest.fixture
def registered(jax):
    batching = importlib.import_module(f"{jax.__name__}.interpreters.batching")
    to_elt = lambda cont, _, x, spec: Named([n for n in x.names if n != spec.name], cont(x.data, spec.axis))
    from_elt = lambda cont, size, x, spec: Named([*x.names[: spec.axis], spec.name, *x.names[spec.axis :]], cont(size, x.data, spec.axis))
    batching.register_vmappable(Named, Name, int, to_elt, from_elt, None)
    # an element is the sum of a row, by the lane's index
    starts = lambda x: np.cumsum([0, *x.lengths])
    to_elt = lambda cont, index, x, spec: cont(np.asarray([x.flat[a:b].sum() for a, b in zip(starts(x)[:-1], starts(x)[1:], strict=True)]), 0) + 100 * index()
    batching.register_vmappable(Ragged, Rows, int, to_elt, lambda *_: None, None)
    return batching


def squares(x):
    assert x.names == ["j"]
    return Named(x.names, x.data**2)


@pytest.mark.parametrize("out_axis", [0, 1])
@pytest.mark.parametrize("in_axis", [0, 1])
@pytest.mark.parametrize("how", ["plain", "jit", "grad", "vmap"])
def test_named_arrays(jax, jnp, registered, in_axis, out_axis, how):
    data = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    names = ["i", "j"] if in_axis == 0 else ["j", "i"]
    f = lambda d: jax.vmap(squares, in_axes=Name("i", in_axis), out_axes=Name("i", out_axis), axis_size=2 if in_axis == 0 else 3)(Named(names, d))
    expected = data**2 if in_axis == out_axis else (data**2).T
    if how == "plain":
        out = f(jnp.asarray(data))
        assert out.names == (["i", "j"] if out_axis == 0 else ["j", "i"]) and np.array_equal(out.data, expected)
    elif how == "jit":
        assert np.array_equal(jax.jit(lambda d: f(d).data)(data), expected)
    elif how == "grad":
        assert np.array_equal(jax.grad(lambda d: f(d).data.sum())(data), 2 * data)
    else:
        assert np.array_equal(jax.vmap(lambda d: f(d).data)(np.stack([data, data + 1]))[0], expected)


def test_beside_arrays_and_with_indices(jax, jnp, registered):
    x = Named(["i", "j"], jnp.arange(6.0).reshape(2, 3))
    assert jax.vmap(lambda x, y: x.data.sum() + y, in_axes=(Name("i", 0), 0))(x, jnp.ones(2)).tolist() == [4, 13]
    ragged = Ragged([1, 3], jnp.arange(4.0))
    assert jax.vmap(lambda x: x, in_axes=Rows(), axis_size=2)(ragged).tolist() == [0, 106]
    assert registered.is_vmappable(x) if hasattr(registered, "is_vmappable") else True
    with pytest.raises(TypeError, match="vmap in_axes must be an int, None"):
        jax.vmap(lambda x: x, in_axes="i")


# ---------------------------------------------------------------- dataclasses


@dataclasses.dataclass
class OwnInit:
    w: object
    b: object
    n: int = 3

    def __init__(self, w):
        self.w, self.b, self.n = w, w * 2, 5


@dataclasses.dataclass(frozen=True)
class Varargs:
    w: object
    b: object

    def __init__(self, *values):
        object.__setattr__(self, "w", values[0])
        object.__setattr__(self, "b", values[1])


class Plain:
    def __init__(self, w):
        self.w, self.b = w, w * 2


@pytest.mark.ours  # JAX calls `__init__` with the fields
def test_dataclasses_with_an_init_of_their_own(jax, jnp):
    jax.tree_util.register_dataclass(OwnInit, data_fields=["w", "b"], meta_fields=["n"])
    jax.tree_util.register_dataclass(Varargs, data_fields=["w", "b"], meta_fields=[])
    jax.tree_util.register_dataclass(Plain, data_fields=["w", "b"], meta_fields=[])
    for x in (OwnInit(jnp.ones(2)), Varargs(jnp.ones(2), jnp.full(2, 2.0)), Plain(jnp.ones(2))):
        y = jax.jit(lambda x: jax.tree.map(lambda v: v + 1, x))(x)
        assert type(y) is type(x) and y.w.tolist() == [2, 2] and y.b.tolist() == [3, 3] and getattr(y, "n", 5) == 5
        assert jax.tree.structure(y) == jax.tree.structure(x)


# ---------------------------------------------------------------- files of keys


@pytest.mark.ours  # JAX stores no keys
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 2)])
def test_keys_are_stored(jax, jnp, impl, shape):
    keys = jnp.broadcast_to(jax.random.key(1, impl=impl), shape)
    same = lambda k: k.dtype == keys.dtype and k.shape == shape and np.array_equal(jax.random.key_data(k), jax.random.key_data(keys))
    file = io.BytesIO()
    jnp.save(file, keys)
    file.seek(0)
    assert same(jnp.load(file))
    file = io.BytesIO()
    jnp.savez(file, keys, x=jnp.ones(2))
    file.seek(0)
    with jnp.load(file) as stored:
        assert sorted(stored) == ["arr_0", "x"] and same(stored["arr_0"]) and stored["x"].tolist() == [1, 1]


# ---------------------------------------------------------------- forward over reverse


def power(jax, symbolic):
    @jax.custom_vjp
    def f(x, n):
        return x**n

    value = lambda x: x.value if symbolic else x
    f.defvjp(
        lambda x, n: (f(value(x), value(n)), (value(x), value(n))),
        lambda res, ct: (ct * res[1] * res[0] ** (res[1] - 1), None),
        symbolic_zeros=symbolic,
    )
    return f


SECOND = {
    "hessian": lambda jax, f: jax.hessian(f),
    "forward over reverse": lambda jax, f: jax.jacfwd(jax.grad(f)),
    "reverse over reverse": lambda jax, f: jax.grad(jax.grad(f)),
    "jit": lambda jax, f: jax.jit(jax.hessian(f)),
    "jvp of grad": lambda jax, f: lambda x: jax.jvp(jax.grad(f), (x,), (1.0,))[1],
    "vmap": lambda jax, f: lambda x: jax.vmap(jax.hessian(f))(x[None])[0],
}


@pytest.mark.ours  # JAX has no forward mode there
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("around", ["plain", "jit", "scan", "checkpoint"])
@pytest.mark.parametrize("second", SECOND)
def test_second_derivatives_of_a_rule_that_calls_its_function(jax, jnp, second, around, symbolic):
    f = power(jax, symbolic)
    g = {
        "plain": lambda x: f(x, 3),
        "jit": jax.jit(lambda x: f(x, 3)),
        "scan": lambda x: jax.lax.scan(lambda c, _: (f(c, 3), None), x, None, length=1)[0],
        "checkpoint": jax.checkpoint(lambda x: f(x, 3)),
    }[around]
    assert SECOND[second](jax, g)(jnp.float32(2.0)) == 12


@pytest.mark.ours
def test_the_rule_is_what_is_differentiated(jax):
    f = jax.custom_vjp(lambda x: x**3)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 5 * x,))  # a rule of its own mind
    assert jax.hessian(f)(2.0) == 5 and jax.grad(jax.grad(f))(2.0) == 5
    value = lambda x: jax.vjp(f, x)[0]
    assert jax.jvp(value, (2.0,), (1.0,)) == (8, 10)
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
        jax.jvp(f, (2.0,), (1.0,))


def test_batches_of_size_zero_beside_registered_types(jax, jnp, registered):
    assert jax.vmap(lambda a, b: a @ b)(jnp.zeros((0, 3)), jnp.zeros((0, 3))).shape == (0,)
    assert jax.vmap(lambda a: a * 2, in_axes=1)(jnp.zeros((3, 0))).shape == (0, 3)
