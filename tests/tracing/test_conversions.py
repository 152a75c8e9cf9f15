"""Traced values as numbers: which conversions a transformation refuses, and by which error. None may lose a derivative.

A derivative knows its primal, so decisions and integers can be had there (`if`, `int`); a float of it would be a constant.
"""

import math
import operator
import pickle

import numpy as np
import pytest

CONVERSIONS = {
    # name: (the conversion, its error where there is no number, its error under grad and jvp; None where it gives the number)
    "bool": (bool, "TracerBoolConversionError", None),
    "comparison": (lambda x: bool(x == 3.0), "TracerBoolConversionError", None),
    "int": (int, "ConcretizationTypeError", None),
    "item": (lambda x: x.item(), "ConcretizationTypeError", None),
    "float": (float, "ConcretizationTypeError", "ConcretizationTypeError"),
    "complex": (complex, "ConcretizationTypeError", "ConcretizationTypeError"),
    "math.sin": (math.sin, "ConcretizationTypeError", "ConcretizationTypeError"),
    "floor": (math.floor, "ConcretizationTypeError", "ConcretizationTypeError"),
    "asarray": (np.asarray, "TracerArrayConversionError", "TracerArrayConversionError"),
    "asarray of a list": (lambda x: np.asarray([x, x]), "TracerArrayConversionError", "TracerArrayConversionError"),
    "np.exp": (np.exp, "TracerArrayConversionError", "TracerArrayConversionError"),
    "np.float32": (np.float32, "TracerArrayConversionError", "TracerArrayConversionError"),
    "tolist": (lambda x: x.tolist(), "ConcretizationTypeError", "ConcretizationTypeError"),
    "tobytes": (lambda x: x.tobytes(), "ConcretizationTypeError", "ConcretizationTypeError"),
    "dlpack": (np.from_dlpack, "ConcretizationTypeError", "ConcretizationTypeError"),
    "pickle": (pickle.dumps, "ConcretizationTypeError", "ConcretizationTypeError"),
    "is_deleted": (lambda x: x.is_deleted(), "ConcretizationTypeError", "ConcretizationTypeError"),
    "is_fully_addressable": (lambda x: x.is_fully_addressable, "ConcretizationTypeError", "ConcretizationTypeError"),
    "devices": (lambda x: x.devices(), "ConcretizationTypeError", "ConcretizationTypeError"),
    "index": (operator.index, "TypeError", "TypeError"),
}
# how the function runs, and whether its argument has a number there
RUNS = {
    "grad": (lambda j, f: j.grad(f)(3.0), True),
    "value_and_grad": (lambda j, f: j.value_and_grad(f)(3.0), True),
    "jvp": (lambda j, f: j.jvp(f, (3.0,), (1.0,)), True),
    "linearize": (lambda j, f: j.linearize(f, 3.0), True),
    "vjp": (lambda j, f: j.vjp(f, 3.0), True),
    "grad of grad": (lambda j, f: j.grad(j.grad(f))(3.0), True),
    "vmap": (lambda j, f: j.vmap(f)(j.numpy.array([3.0, 3.0])), False),
    "jit": (lambda j, f: j.jit(f)(3.0), False),
    "checkpoint": (lambda j, f: j.checkpoint(f)(3.0), False),
    "grad of jit": (lambda j, f: j.grad(j.jit(f))(3.0), False),
    "grad of checkpoint": (lambda j, f: j.grad(j.checkpoint(f))(3.0), False),
    "vmap of grad": (lambda j, f: j.vmap(j.grad(f))(j.numpy.array([3.0, 3.0])), False),
    "jit of grad": (lambda j, f: j.jit(j.grad(f))(3.0), False),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversion_of_a_traced_value(jax, name, run):
    convert, abstract, differentiated = CONVERSIONS[name]
    runs, has_number = RUNS[run]
    error = differentiated if has_number else abstract
    seen = []

    def f(x):
        try:
            seen.append(type(convert(x)).__name__)
        except Exception as e:
            seen.append(type(e).__name__)
        return x * 1.0

    runs(jax, f)
    numbers = {"bool": "bool", "comparison": "bool", "int": "int", "item": "float"}
    assert set(seen) == {error or numbers[name]}


def test_a_derivative_is_never_lost_in_a_float(jax):
    for f in (lambda x: x * float(x), lambda x: x * np.exp(x), lambda x: float(np.asarray(x)) * x, lambda x: x * math.sin(x)):
        with pytest.raises(TypeError):
            jax.grad(f)(3.0)
        with pytest.raises(TypeError):
            jax.jvp(f, (3.0,), (1.0,))


def test_decisions_work_under_derivatives(jax):
    f = lambda x: x * x if x > 0 and bool(x) and x != 2.0 else -x
    assert float(jax.grad(f)(3.0)) == 6 and float(jax.grad(f)(-3.0)) == -1 and float(jax.grad(jax.grad(f))(3.0)) == 2
    assert float(jax.grad(lambda x: x * int(x))(3.5)) == 3


def test_arguments_that_are_not_differentiated_are_numbers(jax):
    """stop_gradient, integers and values from outside have no derivative to lose."""
    other = jax.numpy.float32(2.0)
    f = lambda x: x * float(jax.lax.stop_gradient(x)) * float(other) * np.exp(float(np.asarray(other)))
    assert float(jax.grad(f)(3.0)) == pytest.approx(6 * np.exp(2), rel=1e-6)
    assert float(jax.grad(lambda x, n: x * float(n))(3.0, 4)) == 4


def test_messages_name_the_conversion(jax):
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"(?s)traced array with shape float32\[\].*The problem arose with the `float` function"):
        jax.grad(lambda x: x * float(x))(3.0)
    with pytest.raises(jax.errors.TracerArrayConversionError, match=r"__array__\(\) was called on traced array with shape float32\[2\]"):
        jax.grad(lambda x: np.exp(x).sum())(np.ones(2, np.float32))
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"The tobytes\(\) method was called on traced array with shape float32\[\]"):
        jax.grad(lambda x: x.tobytes())(3.0)
    with pytest.raises(jax.errors.TracerBoolConversionError, match=r"Attempted boolean conversion of traced array with shape float32\[\]\."):
        jax.jit(lambda x: 1 if x else 2)(3.0)


def test_ranks_and_dtypes_are_refused_first(jax):
    """An array that is not a scalar is refused with that reason, traced or not."""
    x = np.ones(2, np.float32)
    for run in (lambda f: jax.grad(lambda x: f(x).sum())(x), lambda f: jax.jit(f)(x), lambda f: jax.vmap(f)(np.ones((2, 2)))):
        for convert in (float, int, complex, operator.index):
            with pytest.raises(TypeError, match="scalar") as e:
                run(lambda x, convert=convert: (convert(x), x)[1])
            assert not isinstance(e.value, jax.errors.JAXTypeError)
        with pytest.raises(ValueError, match="truth value of an array with more than one element"):
            run(lambda x: x if x else -x)


def test_device_get_leaves_keys(jax, jnp):
    keys = jax.random.split(jax.random.key(0), 2)
    got = jax.device_get({"keys": keys, "x": jnp.ones(2)})
    assert isinstance(got["x"], np.ndarray)
    assert got["keys"].dtype == keys.dtype
    np.testing.assert_array_equal(jax.random.key_data(got["keys"]), jax.random.key_data(keys))


def test_device_get_leaves_tracers(jax, jnp):
    for run in (jax.jit, jax.vmap):
        np.testing.assert_array_equal(run(lambda x: jax.device_get(x) * 2)(jnp.ones(2)), [2, 2])
    assert float(jax.grad(lambda x: jax.device_get({"a": x})["a"] ** 2)(3.0)) == 6
