"""What the transforms say about bad input: JAX's classes, JAX's words."""

import re

import numpy as np
import pytest

f32 = np.float32
ONES = np.ones(3, f32)


def pullback(jax):
    return jax.vjp(lambda x: x * 2, jax.numpy.asarray(ONES))[1]


def linear(jax):
    return jax.linearize(lambda x: x * 2, jax.numpy.asarray(ONES))[1]


CASES = {
    "grad of no function": (lambda j: j.grad(3), TypeError, "Expected a callable value, got 3"),
    "grad of an integer": (
        lambda j: j.grad(lambda x: x)(3),
        TypeError,
        "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got int32.",
    ),
    "grad of a bool": (lambda j: j.grad(lambda x: x)(True), TypeError, "but got bool."),
    "grad of a key": (lambda j: j.grad(lambda x: x)(j.random.key(0)), TypeError, "but got key<fry>."),
    "grad of a string": (lambda j: j.grad(lambda x: x)("a"), TypeError, "Argument 'a' of type <class 'str'> is not a valid JAX type"),
    "too few arguments": (
        lambda j: j.grad(lambda x: x, argnums=2)(3.0),
        TypeError,
        "differentiating with respect to argnums=2 requires at least 3 positional arguments to be passed by the caller, but got only 1 positional arguments.",
    ),
    "a vector output": (lambda j: j.grad(lambda x: x)(ONES), TypeError, "Gradient only defined for scalar-output functions. Output had shape: (3,)."),
    "a tuple output": (lambda j: j.grad(lambda x: (x, x))(1.0), TypeError, "Gradient only defined for scalar-output functions. Output was ("),
    "no output": (lambda j: j.grad(lambda x: None)(1.0), TypeError, "Gradient only defined for scalar-output functions. Output was None."),
    "an integer output": (
        lambda j: j.grad(lambda x: 1)(1.0),
        TypeError,
        "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got int32.",
    ),
    "a complex output": (lambda j: j.grad(lambda x: x * 1j)(1.0), TypeError, "but got complex64. For holomorphic differentiation, pass holomorphic=True."),
    "holomorphic of a real": (
        lambda j: j.grad(lambda x: x, holomorphic=True)(1.0),
        TypeError,
        "grad with holomorphic=True requires inputs with complex dtype, but got float32.",
    ),
    "aux is missing": (lambda j: j.grad(lambda x: x, has_aux=True)(1.0), TypeError, "expected function with aux output to return a two-element tuple"),
    "primals are no tuple": (
        lambda j: j.jvp(lambda x: x, 1.0, 1.0),
        TypeError,
        "primal and tangent arguments to jax.jvp must be tuples or lists; found float and float.",
    ),
    "tangents of another structure": (
        lambda j: j.jvp(lambda x: x, (1.0,), (1.0, 2.0)),
        TypeError,
        "primals have tree structure PyTreeDef((*,)) whereas tangents have tree structure PyTreeDef((*, *)).",
    ),
    "tangents of another dtype": (
        lambda j: j.jvp(lambda x: x, (1.0,), (1,)),
        TypeError,
        "Got primal dtype float32 and so expected tangent dtype float32, but got tangent dtype int32 instead.",
    ),
    "tangents of another shape": (lambda j: j.jvp(lambda x: x, (ONES,), (np.ones(2, f32),)), ValueError, "Got primal shape (3,) and tangent shape as (2,)"),
    "tangents of an integer": (
        lambda j: j.jvp(lambda x: x, (1,), (1,)),
        TypeError,
        "expected tangent dtype [('float0', 'V')], but got tangent dtype int32 instead.",
    ),
    "cotangent of another shape": (
        lambda j: pullback(j)(1.0),
        ValueError,
        "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got float32[], but expected float32[3]",
    ),
    "cotangent of another structure": (lambda j: pullback(j)((ONES,)), ValueError, "unexpected tree structure."),
    "two cotangents": (lambda j: pullback(j)(ONES, ONES), TypeError, "must be called with a single argument"),
    "linear map: another shape": (
        lambda j: linear(j)(1.0),
        ValueError,
        "linearized function called on tangent values inconsistent with the original primal values:\nGot tangent aval",
    ),
    "linear map: another structure": (lambda j: linear(j)((1.0,)), TypeError, "expected PyTreeDef((*,)), got PyTreeDef(((*,),))"),
    "linear_transpose: another structure": (
        lambda j: j.linear_transpose(lambda x: x * 3, 1.0)((1.0,)),
        TypeError,
        "cotangent tree does not match function output, expected PyTreeDef(*) but got PyTreeDef((*,))",
    ),
    "jacfwd of an integer": (
        lambda j: j.jacfwd(lambda x: x)(1),
        TypeError,
        "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got int32.",
    ),
    "jacrev of an integer": (lambda j: j.jacrev(lambda x: x)(1), TypeError, "jacrev requires real- or complex-valued inputs"),
    "vmap of no function": (lambda j: j.vmap(3), TypeError, "Expected a callable value, got 3"),
    "sizes differ": (
        lambda j: j.vmap(lambda a, b: a)(np.ones((2, 3)), np.ones((4, 3))),
        ValueError,
        "vmap got inconsistent sizes for array axes to be mapped:\n  * one axis had size 2: axis 0 of argument a of type float32[2,3];\n  * one axis had size 4: axis 0 of argument b of type float32[4,3]",
    ),
    "most sizes agree": (
        lambda j: j.vmap(lambda a, b, c: a)(np.ones(2), np.ones(4), np.ones(4)),
        ValueError,
        "  * most axes (2 of them) had size 4, e.g. axis 0 of argument b of type float32[4];\n  * one axis had size 2: axis 0 of argument a of type float32[2]",
    ),
    "sizes differ inside a tree": (
        lambda j: j.vmap(lambda a: a)({"a": np.ones(2), "b": np.ones(3)}),
        ValueError,
        "axis 0 of argument a['b'] of type float32[3]",
    ),
    "axis_size differs": (
        lambda j: j.vmap(lambda a: a, axis_size=3)(np.ones(2)),
        ValueError,
        "  * the `axis_size` argument was 3;\n  * one axis had size 2: axis 0 of argument a of type float32[2]",
    ),
    "in_axes is a string": (
        lambda j: j.vmap(lambda a: a, in_axes="a"),
        TypeError,
        "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to the function, but got a.",
    ),
    "in_axes is too short": (lambda j: j.vmap(lambda a, b: a, in_axes=(0,))(ONES, ONES), ValueError, "but got len(in_axes)=1, len(args)=2"),
    "in_axes is no prefix": (
        lambda j: j.vmap(lambda a: a, in_axes=({"a": 0},))({"b": ONES}),
        ValueError,
        "vmap in_axes specification must be a tree prefix of the corresponding value",
    ),
    "nothing is mapped": (
        lambda j: j.vmap(lambda a: a, in_axes=None)(ONES),
        ValueError,
        "vmap must have at least one non-None value in in_axes or axis_size must be specified",
    ),
    "no arguments": (
        lambda j: j.vmap(lambda: 1)(),
        ValueError,
        "vmap wrapped function must be passed at least one argument containing an array or axis_size must be specified",
    ),
    "axis out of range": (
        lambda j: j.vmap(lambda a: a, in_axes=2)(np.ones(2)),
        ValueError,
        "vmap was requested to map its argument along axis 2, which implies that its rank should be at least 3, but is only 1 (its shape is (2,))",
    ),
    "out_axes is no prefix": (
        lambda j: j.vmap(lambda a: (a, a), out_axes=(0, 0, 0))(np.ones(2)),
        ValueError,
        "vmap out_axes specification must be a tree prefix of the corresponding value",
    ),
    "out_axes is a string": (
        lambda j: j.vmap(lambda a: a, out_axes="q")(ONES),
        TypeError,
        "vmap out_axes must be an int, None, or (nested) container with those types as leaves, but got q.",
    ),
    "make_jaxpr of no function": (lambda j: j.make_jaxpr(3), TypeError, "the first argument must be callable"),
    "make_jaxpr of a string": (
        lambda j: j.make_jaxpr(lambda x: x)("a"),
        TypeError,
        "as an abstract array. The problematic value is of type <class 'str'> and was passed to the function at path x.",
    ),
    "eval_shape of a string": (lambda j: j.eval_shape(lambda x: x, "a"), TypeError, "as an abstract array. The problematic value is of type <class 'str'>"),
    "a struct without dtype": (lambda j: j.ShapeDtypeStruct((2,), None), ValueError, "ShapeDtypeStruct: dtype must be specified."),
    "jit of no function": (lambda j: j.jit(3), TypeError, "Expected a callable value, got 3"),
    "unhashable static argument": (lambda j: j.jit(lambda x, y: x, static_argnums=1)(1.0, [1]), ValueError, "Non-hashable static arguments are not supported."),
    "static number out of range": (
        lambda j: j.jit(lambda x: x, static_argnums=3),
        ValueError,
        "Jitted function has static_argnums=(3,), but only accepts 1 positional arguments.",
    ),
    "unknown static name": (
        lambda j: j.jit(lambda x: x, static_argnames="q"),
        ValueError,
        "Jitted function has invalid argnames {'q'} in static_argnames. Function does not take these args.",
    ),
    "static and donated": (
        lambda j: j.jit(lambda x: x, static_argnums=0, donate_argnums=0),
        ValueError,
        "static_argnames and donate_argnames cannot intersect.",
    ),
    "unknown device": (lambda j: j.device_put(1, "cpu"), ValueError, "`jax.device_put` only accepts `None`"),
    "device_put of a string": (lambda j: j.device_put("a"), TypeError, "Argument 'a' of type <class 'str'> is not a valid JAX type"),
    "unknown flag": (lambda j: j.config.update("foo", 1), AttributeError, "Unrecognized config option: foo"),
    "unknown flag value": (
        lambda j: j.config.update("jax_numpy_rank_promotion", "bad"),
        ValueError,
        "new enum value must be in ['allow', 'warn', 'raise'], got bad of type <class 'str'>.",
    ),
    "pmap of scalars": (lambda j: j.pmap(lambda x: x)(), ValueError, "pmap requires at least one argument with a mapped axis."),
}


@pytest.mark.parametrize("name", CASES)
def test_message(jax, name):
    call, error, words = CASES[name]
    with pytest.raises(error) as e:
        call(jax)
    assert words in str(e.value)


CONVERSIONS = {
    "bool": (lambda j, x: bool(x), "TracerBoolConversionError", "Attempted boolean conversion of traced array with shape"),
    "float": (lambda j, x: float(x), "ConcretizationTypeError", "Abstract tracer value encountered where concrete value is expected"),
    "int": (lambda j, x: int(x), "ConcretizationTypeError", "Abstract tracer value encountered where concrete value is expected"),
    "index": (lambda j, x: [1, 2][x.astype(int)], "TracerIntegerConversionError", "The __index__() method was called on traced array with shape int32[]"),
    "numpy": (
        lambda j, x: np.sin(x),
        "TracerArrayConversionError",
        "The numpy.ndarray conversion method __array__() was called on traced array with shape float32[]",
    ),
    "arange": (lambda j, x: j.numpy.arange(x), "ConcretizationTypeError", "Abstract tracer value encountered where concrete value is expected"),
    "mask": (lambda j, x: j.numpy.ones(3)[j.numpy.ones(3) > x], "NonConcreteBooleanIndexError", "Array boolean indices must be concrete; got bool[3]"),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_traced_values_are_not_concrete(jax, name):
    call, error, words = CONVERSIONS[name]
    with pytest.raises(getattr(jax.errors, error)) as e:
        jax.jit(lambda x: call(jax, x))(1.0)
    assert str(e.value).startswith(words)
    assert re.search(r"while tracing the function <lambda> at .*tracing/test_api_errors.py:\d+ for jit|boolean indices|jnp.arange", str(e.value))


def test_classes(jax):
    e = jax.errors
    assert issubclass(e.TracerBoolConversionError, e.ConcretizationTypeError) and issubclass(e.ConcretizationTypeError, TypeError)
    assert issubclass(e.NonConcreteBooleanIndexError, IndexError) and issubclass(e.JaxRuntimeError, RuntimeError)
    assert issubclass(e.UnexpectedTracerError, TypeError) and issubclass(e.KeyReuseError, TypeError)


POSITIONS = "Positional argument indices, e.g. for `static_argnums`, must have value greater than or equal to -len(args) and less than len(args)"


@pytest.mark.parametrize("transform", ["grad", "value_and_grad", "jacfwd", "jacrev", "hessian"])
def test_numbers_of_arguments_to_differentiate(jax, transform):
    def derivative(argnums):
        return getattr(jax, transform)(lambda a, b, c: a * b**2 * c**3, argnums)(1.0, 2.0, 3.0)

    def refused(argnums):
        with pytest.raises((TypeError, ValueError)) as e:
            derivative(argnums)
        return e.type, str(e.value)

    for argnums, bad in ((-4, -4), ((-4, 0), -4), ((0, -5), -5)):
        assert refused(argnums) == (ValueError, f"{POSITIONS}, but got value {bad} for len(args) == 3.")
    for argnums in (3, (0, 3), (3, -4)):
        kind, text = refused(argnums)
        if transform in ("grad", "value_and_grad"):
            assert kind is TypeError and "requires at least 4 positional arguments to be passed by the caller, but got only 3" in text
        else:
            assert (kind, text) == (ValueError, f"{POSITIONS}, but got value 3 for len(args) == 3.")
    for argnums in ((0, 0), (0, -3), (-1, 1, 2)):
        kind, text = refused(argnums)
        assert kind is TypeError and "twice" in text
    assert jax.tree.leaves(derivative((-1, 0))) and derivative([0, 2]) is not None


def test_array_equiv_without_common_dtype(jax):
    """Under strict promotion, arrays of dtypes without a common one are not equivalent, as in JAX."""
    with jax.numpy_dtype_promotion("strict"):
        assert not jax.numpy.array_equiv(jax.numpy.zeros((2, 0), bool), jax.numpy.zeros((), "float16"))
