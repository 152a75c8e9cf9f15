"""Wrong programs get JAX's exception with JAX's words in its first line: programs and tests out there match on them."""

import importlib

import numpy as np
import pytest

CASES = []


def case(name, kind, words):
    """Registers a wrong program: the error's class (a builtin's name or one in `jax.errors`) and words of its message."""

    def register(f):
        CASES.append(pytest.param(f, kind, words, id=name))
        return f

    return register


def wrong(name, kind, words, f):
    case(name, kind, words)(f)


f32, i32 = np.float32, np.int32

# ---------------------------------------------------------------- shapes and dtypes
wrong("reshape", "TypeError", "cannot reshape array of shape (6,) (size 6) into shape (4, 2) (size 8)", lambda jax, jnp, lax: jnp.arange(6).reshape(4, 2))
wrong(
    "reshape unknown",
    "TypeError",
    "cannot reshape array of shape (6,) (size 6) into shape (4, -1) because the product of specified axis sizes (4) does not evenly divide 6",
    lambda jax, jnp, lax: jnp.arange(6).reshape(4, -1),
)
wrong(
    "matmul",
    "TypeError",
    "dot_general requires contracting dimensions to have the same shape, got (4,) and (5,).",
    lambda jax, jnp, lax: jnp.ones((3, 4)) @ jnp.ones((5, 4)),
)
wrong(
    "matmul under jit",
    "TypeError",
    "dot_general requires contracting dimensions to have the same shape, got (4,) and (5,).",
    lambda jax, jnp, lax: jax.jit(lambda a, b: a @ b)(jnp.ones((3, 4)), jnp.ones((5, 4))),
)
wrong("lax.add shapes", "TypeError", "add got incompatible shapes for broadcasting: (3,), (4,).", lambda jax, jnp, lax: lax.add(jnp.ones(3), jnp.ones(4)))
wrong(
    "lax.add dtypes",
    "TypeError",
    "lax.add requires arguments to have the same dtypes, got float32, int32. (Tip: jnp.add is a similar function that does automatic type promotion on inputs).",
    lambda jax, jnp, lax: lax.add(jnp.ones(3), jnp.ones(3, int)),
)


MIXED = {  # by the function of numpy that converts them, where there is one
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "max": "maximum",
    "min": "minimum",
    "eq": "equal",
    "ne": "not_equal",
    "atan2": "arctan2",
    "nextafter": "nextafter",
    "rem": None,
    "lt": None,
    "le": None,
    "gt": None,
    "ge": None,
}


@pytest.mark.parametrize("name", MIXED)
def test_errors_of_mixed_dtypes_name_functions_that_exist(jnp, lax, name):
    with pytest.raises(TypeError) as e:
        getattr(lax, name)(jnp.ones(3), jnp.ones(3, jnp.float16))
    message, numpy = str(e.value).split("\n")[0], MIXED[name]
    tip = f" (Tip: jnp.{numpy} is a similar function that does automatic type promotion on inputs)." if numpy else ""
    assert message == f"lax.{name} requires arguments to have the same dtypes, got float32, float16.{tip}"
    assert numpy is None or getattr(jnp, numpy)(jnp.ones(3), jnp.ones(3, jnp.float16)).dtype in (jnp.float32, jnp.bool_)


def test_refusals_of_mixed_dtypes_without_a_function_of_numpy(jnp, lax):
    a, b = jnp.ones(3), jnp.ones(3, jnp.float16)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    for call, words in [
        (lambda: lax.clamp(b, a, b), "lax.clamp requires arguments to have the same dtypes, got float16, float32, float16."),
        (lambda: lax.dynamic_update_slice(a, b, (0,)), "lax.dynamic_update_slice requires arguments to have the same dtypes, got float32, float16."),
        (lambda: lax.scatter_add(a, jnp.array([[0]]), b[:1], numbers), "lax.scatter requires arguments to have the same dtypes, got float32, float16."),
        (
            lambda: lax.pow(a, b),
            "the first argument to pow must have an inexact dtype (float or complex), and the second argument must have an inexact or integer",
        ),
        (lambda: lax.select_n(a > 0, a, a, a), "select with boolean `which` cannot have > 2 cases."),
        (lambda: lax.select_n(jnp.zeros(3, int), a, b, a), "lax.select requires arguments to have the same dtypes, got float32, float16, float32."),
    ]:
        with pytest.raises(TypeError) as e:
            call()
        assert str(e.value).startswith(words)


@case(
    "strict promotion",
    "ValueError",
    "have no available implicit dtype promotion path when jax_numpy_dtype_promotion=strict. "
    "Try explicitly casting inputs to the desired output type, or set jax_numpy_dtype_promotion=standard.",
)
def strict_promotion(jax, jnp, lax):
    with jax.numpy_dtype_promotion("strict"):
        jnp.ones(3, jnp.float32) + jnp.ones(3, jnp.int32)


wrong(
    "concatenate",
    "TypeError",
    "Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: "
    "concatenating along dimension 0 for shapes (2, 3), (2, 4).",
    lambda jax, jnp, lax: jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))]),
)
wrong("concatenate nothing", "ValueError", "Need at least one array to concatenate.", lambda jax, jnp, lax: jnp.concatenate([]))
wrong("stack", "ValueError", "All input arrays must have the same shape", lambda jax, jnp, lax: jnp.stack([jnp.ones(2), jnp.ones(3)]))
wrong("einsum", "ValueError", "Size of label 'j' for operand 1 (3) does not match previous terms (4).",
      lambda jax, jnp, lax: jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((4, 5))))  # fmt: skip
wrong("axis", "ValueError", "axis 1 is out of bounds for array of dimension 1", lambda jax, jnp, lax: jnp.sum(jnp.ones(3), axis=1))
wrong("fractional size", "TypeError", "Shapes must be 1D sequences of concrete values of integer type, got (1.5,).", lambda jax, jnp, lax: jnp.zeros(1.5))
wrong("broadcast_to", "ValueError", "Incompatible", lambda jax, jnp, lax: jnp.broadcast_to(jnp.ones(3), (2, 4)))
wrong("transpose", "TypeError", "transpose permutation isn't a permutation of operand dimensions, got permutation (0, 0) for operand shape (2, 3).",
      lambda jax, jnp, lax: lax.transpose(jnp.ones((2, 3)), (0, 0)))  # fmt: skip
wrong("expand_dims", "ValueError", "axis 5 is out of bounds for array of dimension 2", lambda jax, jnp, lax: jnp.expand_dims(jnp.ones(3), 5))
wrong("squeeze", "ValueError", "cannot select an axis to squeeze out which has size not equal to one, got shape=(3,) and dimensions=(0,)",
      lambda jax, jnp, lax: jnp.squeeze(jnp.ones(3), 0))  # fmt: skip
wrong(
    "dynamic_slice",
    "TypeError",
    "slice slice_sizes must be less than or equal to operand shape",
    lambda jax, jnp, lax: lax.dynamic_slice(jnp.ones(3), (0,), (4,)),
)

# ---------------------------------------------------------------- what an array is
wrong("too many indices", "IndexError", "Too many indices: array is 1-dimensional, but 2 were indexed", lambda jax, jnp, lax: jnp.ones(3)[0, 0])
wrong("float index", "TypeError", "Indexer must have integer or boolean type, got indexer with type float", lambda jax, jnp, lax: jnp.ones(3)[1.5])
wrong("mask shape", "IndexError", "boolean index did not match shape of indexed array in index 0: got (2,), expected",
      lambda jax, jnp, lax: jnp.ones(3)[jnp.array([True, False])])  # fmt: skip
wrong("assignment", "TypeError", "arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use x = x.at[idx].set(y)",
      lambda jax, jnp, lax: jnp.ones(3).__setitem__(0, 1))  # fmt: skip
wrong(
    "truth of many",
    "ValueError",
    "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
    lambda jax, jnp, lax: bool(jnp.ones(3)),
)
wrong("len of a scalar", "TypeError", "len() of unsized object", lambda jax, jnp, lax: len(jnp.float32(1)))
wrong("iteration over a scalar", "TypeError", "iteration over a 0-d array", lambda jax, jnp, lax: iter(jnp.float32(1)))
wrong("hash", "TypeError", "unhashable type", lambda jax, jnp, lax: hash(jnp.ones(3)))
wrong("list operand", "TypeError", "sum requires ndarray or scalar arguments, got <class 'list'> at position 0.", lambda jax, jnp, lax: jnp.sum([1, 2]))
wrong("object", "TypeError", "is not a valid JAX array type. Only arrays of numeric types are supported by JAX.", lambda jax, jnp, lax: jnp.asarray(object()))
for _what, _made in (("text", lambda: np.array("hello")), ("objects", lambda: np.array([1, 2], dtype=object)), ("dates", lambda: np.array("2020", "M8[Y]"))):
    _refused = "Error interpreting argument to {} as a JAX value. The problematic value is of type <class 'numpy.ndarray'> and was passed to {} at position {}."
    for _name, _at, _call in (
        ("sin", 0, lambda x, jax, lax: lax.sin(x)),
        ("add", 1, lambda x, jax, lax: lax.add(jax.numpy.ones(()), x)),
        ("reshape", 0, lambda x, jax, lax: lax.reshape(x, (1, x.size))),
    ):
        wrong(f"{_name} of an array of {_what}", "TypeError", _refused.format(_name, _name, _at), lambda jax, jnp, lax, f=_call, x=_made: f(x(), jax, lax))
    for _name in ("grad", "value_and_grad", "jacfwd", "jacrev", "hessian"):
        wrong(f"{_name} of an array of {_what}", "TypeError", "of type <class 'numpy.ndarray'> is not a valid JAX type",
              lambda jax, jnp, lax, f=_name, x=_made: getattr(jax, f)(lambda x: x)(x()))  # fmt: skip
    for _name in ("vjp", "linearize"):
        wrong(f"{_name} of an array of {_what}", "TypeError", "is not a valid JAX array type. Only arrays of numeric types are supported by JAX.",
              lambda jax, jnp, lax, f=_name, x=_made: getattr(jax, f)(lambda x: x, x()))  # fmt: skip
    for _name in ("jit", "make_jaxpr"):
        wrong(f"{_name} of an array of {_what}", "TypeError", "as an abstract array. The problematic value is of type <class 'numpy.ndarray'> and was passed to the",
              lambda jax, jnp, lax, f=_name, x=_made: getattr(jax, f)(lambda x: x)(x()))  # fmt: skip
for _name, _call in (
    ("jit", lambda jax, f: jax.jit(f)(1.0)),
    ("make_jaxpr", lambda jax, f: jax.make_jaxpr(f)(1.0)),
    ("eval_shape", lambda jax, f: jax.eval_shape(f, 1.0)),
):
    wrong(f"function as a part of what {_name} makes", "TypeError", " at output component ['a'][1], which is not a valid JAX type",
          lambda jax, jnp, lax, f=_call: f(jax, lambda x: {"a": (x, len)}))  # fmt: skip
wrong("function as an index of switch", "TypeError", "Index type must be an integer, got <", lambda jax, jnp, lax: lax.switch(len, [abs, abs], 1.0))
wrong("tangents in a list", "TypeError", "primal and tangent arguments to jax.jvp must have the same tree structure",
      lambda jax, jnp, lax: jax.jvp(lambda x: x, (1.0,), [1.0]))  # fmt: skip
wrong("ragged list", "ValueError", "setting an array element with a sequence.", lambda jax, jnp, lax: jnp.array([[1, 2], [3]]))
wrong("not a key", "TypeError", "JAX encountered invalid PRNG key data: expected key_data.shape to end with (2,); got shape=(3,)",
      lambda jax, jnp, lax: jax.random.normal(jnp.ones(3)))  # fmt: skip


@case("donated", "RuntimeError", "Array has been deleted with shape=float32[3].")
def donated(jax, jnp, lax):
    a = jnp.ones(3)
    jax.jit(lambda x: x + 1, donate_argnums=0)(a)
    np.asarray(a)


# ---------------------------------------------------------------- jit
wrong("unhashable static argument", "ValueError", "Non-hashable static arguments are not supported.",
      lambda jax, jnp, lax: jax.jit(lambda x, n: x, static_argnums=1)(1.0, [1, 2]))  # fmt: skip
wrong("unhashable static name", "ValueError", "Non-hashable static arguments are not supported.",
      lambda jax, jnp, lax: jax.jit(lambda x, n: x, static_argnames="n")(1.0, n=[1, 2]))  # fmt: skip
wrong("static argument that is none", "ValueError", "Jitted function has static_argnums=(3,), but only accepts 1 positional arguments.",
      lambda jax, jnp, lax: jax.jit(lambda x: x, static_argnums=3)(1.0))  # fmt: skip
wrong("string argument", "TypeError", "The problematic value is of type <class 'str'> and was passed to the function at path x.",
      lambda jax, jnp, lax: jax.jit(lambda x: x)("a"))  # fmt: skip
wrong("string result", "TypeError", "returned a value of type <class 'str'>, which is not a valid JAX type", lambda jax, jnp, lax: jax.jit(lambda x: "a")(1.0))
wrong("branch", "TracerBoolConversionError", "Attempted boolean conversion of traced array with shape bool[].",
      lambda jax, jnp, lax: jax.jit(lambda x: 1 if x > 0 else 2)(1.0))  # fmt: skip
wrong("branch names the argument", "TracerBoolConversionError", "depends on the value of the argument x",
      lambda jax, jnp, lax: jax.jit(lambda x: 1 if x > 0 else 2)(1.0))  # fmt: skip
wrong("float()", "ConcretizationTypeError", "Abstract tracer value encountered where concrete value is expected: traced array with shape float32[]",
      lambda jax, jnp, lax: jax.jit(lambda x: float(x))(1.0))  # fmt: skip
wrong("range()", "TracerIntegerConversionError", "The __index__() method was called on traced array with shape int32[]",
      lambda jax, jnp, lax: jax.jit(lambda x: range(x))(1))  # fmt: skip
wrong("np.asarray()", "TracerArrayConversionError", "The numpy.ndarray conversion method __array__() was called on traced array with shape int32[]",
      lambda jax, jnp, lax: jax.jit(lambda x: np.asarray(x))(1))  # fmt: skip


@case(
    "leak",
    "UnexpectedTracerError",
    "Encountered an unexpected tracer. A function transformed by JAX had a side effect, allowing for a reference to an intermediate "
    "value with type float32[] wrapped in a DynamicJaxprTracer to escape the scope of the transformation.\n",
)
def leak(jax, jnp, lax):
    kept = []
    jax.jit(lambda x: (kept.append(x), x)[1])(1.0)
    kept[0] + 1


@case("a leaked tracer returned", "UnexpectedTracerError", "Encountered an unexpected tracer. A function transformed by JAX had a side effect")
def leak_returned(jax, jnp, lax):
    kept = []
    jax.jit(lambda x: (kept.append(x), x)[1])(1.0)
    jax.jit(lambda: kept[0])()


# ---------------------------------------------------------------- control flow
SCAN_TYPES = "scan body function carry input and carry output must have equal types, but they differ:"
wrong("scan: dtype of the carry", "TypeError", SCAN_TYPES, lambda jax, jnp, lax: lax.scan(lambda c, x: (c * 1.5, None), i32(1), None, length=3))
wrong("scan: shape of the carry", "TypeError", SCAN_TYPES, lambda jax, jnp, lax: lax.scan(lambda c, x: (jnp.stack([c, c]), None), f32(1), None, length=3))
wrong("scan: names the carry", "TypeError", "The input carry c has type int32[] but the corresponding output carry component has type float32[], so the dtypes do not match.",
      lambda jax, jnp, lax: lax.scan(lambda c, x: (c * 1.5, None), i32(1), None, length=3))  # fmt: skip
wrong("scan: tree of the carry", "TypeError", "scan body function carry input and carry output must have the same pytree structure, but they differ:",
      lambda jax, jnp, lax: lax.scan(lambda c, x: ((c, c), None), 1.0, None, length=3))  # fmt: skip
wrong("scan: no pair", "TypeError", "scan body output must be a pair, got", lambda jax, jnp, lax: lax.scan(lambda c, x: c, 1.0, None, length=3))
wrong("while: predicate", "TypeError", "cond_fun must return a boolean scalar, but got output type(s)",
      lambda jax, jnp, lax: lax.while_loop(lambda c: c, lambda c: c + 1, 1.0))  # fmt: skip
wrong("while: tree", "TypeError", "while_loop body function carry input and carry output must have the same pytree structure, but they differ:",
      lambda jax, jnp, lax: lax.while_loop(lambda c: c < 3, lambda c: (c, c), 1.0))  # fmt: skip
wrong("cond: trees", "TypeError", "cond branch outputs must have the same pytree structure, but they differ:",
      lambda jax, jnp, lax: lax.cond(True, lambda x: x, lambda x: (x, x), 1.0))  # fmt: skip
wrong("cond: types", "TypeError", "cond branches must have equal output types but they differ.",
      lambda jax, jnp, lax: lax.cond(True, lambda x: x, lambda x: jnp.float32(1.0), i32(1)))  # fmt: skip

# ---------------------------------------------------------------- differentiation, mapping
wrong("grad of an integer", "TypeError", "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got int32.",
      lambda jax, jnp, lax: jax.grad(lambda x: x * 2)(1))  # fmt: skip
wrong("grad of a vector", "TypeError", "Gradient only defined for scalar-output functions. Output had shape: (3,).",
      lambda jax, jnp, lax: jax.grad(lambda x: x * 2)(jnp.ones(3)))  # fmt: skip
wrong("grad of a string", "TypeError", "Argument 'a' of type <class 'str'> is not a valid JAX type", lambda jax, jnp, lax: jax.grad(lambda x: 1.0)("a"))
wrong("argnums", "TypeError", "differentiating with respect to argnums=3 requires at least 4 positional arguments to be passed by the caller, but got only 1",
      lambda jax, jnp, lax: jax.grad(lambda x: x, argnums=3)(1.0))  # fmt: skip
wrong("cotangent", "ValueError", "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got float32[3], but expected float32[]",
      lambda jax, jnp, lax: jax.vjp(lambda x: x, 1.0)[1](jnp.ones(3)))  # fmt: skip
wrong("tangent", "ValueError", "jvp called with different primal and tangent shapes", lambda jax, jnp, lax: jax.jvp(lambda x: x, (1.0,), (jnp.ones(3),)))
wrong("custom_vjp without rules", "AttributeError", "No VJP defined for custom_vjp function <lambda> using defvjp.",
      lambda jax, jnp, lax: jax.grad(jax.custom_vjp(lambda x: x))(1.0))  # fmt: skip
wrong(
    "vmap over nothing", "ValueError", "vmap must have at least one non-None value in in_axes", lambda jax, jnp, lax: jax.vmap(lambda x: x, in_axes=None)(1.0)
)
wrong("vmap over a scalar", "ValueError",
      "vmap was requested to map its argument along axis 0, which implies that its rank should be at least 1, but is only 0 (its shape is ())",
      lambda jax, jnp, lax: jax.vmap(lambda x: x)(1.0))  # fmt: skip
wrong("unbound axis", "NameError", "unbound axis name: nope", lambda jax, jnp, lax: lax.psum(1.0, "nope"))

# ---------------------------------------------------------------- trees, devices, configuration
wrong("tree_map: keys", "ValueError", "", lambda jax, jnp, lax: jax.tree_util.tree_map(lambda a, b: a, {"x": 1}, {"y": 1}))
wrong("tree_map: lengths", "ValueError", "", lambda jax, jnp, lax: jax.tree_util.tree_map(lambda a, b: a, (1, 2), (1, 2, 3)))
wrong("tree_unflatten", "ValueError", "Too few leaves for PyTreeDef; expected 2, got 1",
      lambda jax, jnp, lax: jax.tree_util.tree_unflatten(jax.tree_util.tree_structure((1, 2)), [1]))  # fmt: skip
wrong("backend", "RuntimeError", "Unknown backend nope. Available backends are ['cpu'", lambda jax, jnp, lax: jax.devices("nope"))
wrong("option", "AttributeError", "Unrecognized config option: nope", lambda jax, jnp, lax: jax.config.update("nope", 1))

# ---------------------------------------------------------------- what immutable arrays and traced programs leave out
OUT = "The 'out' argument to {} is not supported."
wrong("out of around", "NotImplementedError", OUT.format("jnp.round"), lambda jax, jnp, lax: jnp.around(1.5, out=jnp.ones(())))
wrong("out of isposinf", "NotImplementedError", OUT.format("isneginf/isposinf"), lambda jax, jnp, lax: jnp.isposinf(1.5, out=jnp.ones(())))
wrong("at in place", "NotImplementedError", "Because JAX arrays are immutable, jnp.ufunc.at() cannot operate inplace like\n",
      lambda jax, jnp, lax: jnp.add.at(jnp.ones(3), 0, 1.0))  # fmt: skip
wrong("isin by an unknown method", "ValueError", "method='foo' is not implemented; options are 'compare_all', 'binary_search', 'sort', and 'auto'",
      lambda jax, jnp, lax: jnp.isin(jnp.ones(3), 1.0, method="foo"))  # fmt: skip
wrong("no platform", "NotImplementedError", "translation rule for primitive 'platform_index' not found for platform cpu: platform_dependent has no function for it, and no default;",
      lambda jax, jnp, lax: lax.platform_dependent(1.0, cuda=lambda a: a))  # fmt: skip
wrong("take by an unknown mode", "ValueError", "Invalid mode 'drop' for np.take", lambda jax, jnp, lax: jnp.take(jnp.ones(3), jnp.array([1]), mode="drop"))
wrong("place of a list", "TypeError", "place requires ndarray or scalar arguments, got <class 'list'> at position 2.",
      lambda jax, jnp, lax: jnp.place(jnp.ones(3), jnp.array([True, False, True]), [1.0]))  # fmt: skip
wrong("fori_loop's carry", "TypeError", "The input carry component loop_carry[1]['b'] has type float32[3] but the corresponding output carry component has type float32[]",
      lambda jax, jnp, lax: lax.fori_loop(0, 3, lambda i, s: {"a": s["a"], "b": s["b"].sum()}, {"a": jnp.ones(3), "b": jnp.ones(3)}))  # fmt: skip
wrong("the carry of a fori_loop of unknown bounds", "TypeError", "The input carry component loop_carry[2] has type float32[3]",
      lambda jax, jnp, lax: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s.sum(), jnp.ones(3)))(3))  # fmt: skip


@pytest.mark.parametrize("program, kind, words", CASES)
def test_error(jax, jnp, lax, program, kind, words):
    import builtins

    expected = getattr(builtins, kind, None) or getattr(jax.errors, kind)
    with pytest.raises(expected) as error:
        program(jax, jnp, lax)
    assert words in str(error.value)


SIZES = """
jnp.zeros((2, n))
jnp.ones(n)
jnp.full((n,), 1.0)
jnp.broadcast_to(1.0, (n,))
jnp.arange(n)
jnp.arange(0, n, 2)
jnp.eye(n)
jnp.linspace(0, 1, n)
jnp.ones(3).reshape(n)
jnp.repeat(jnp.ones(3), n)
jnp.sum(jnp.ones(3), axis=n)
jnp.split(jnp.ones(4), n)
jnp.nonzero(jnp.ones(3) * n)
jnp.unique(jnp.ones(3) * n)
jax.nn.one_hot(jnp.arange(2), n)
jax.random.normal(jax.random.key(0), (n,))
lax.iota(np.int32, n)
lax.scan(lambda c, x: (c, x), 0.0, None, length=n)
lax.scan(lambda c, x: (c, x), 0.0, jnp.arange(3.0), unroll=n)
lax.dynamic_slice(jnp.ones(3), (0,), (n,))
lax.gather(jnp.ones(3), jnp.zeros((1, 1), int), lax.GatherDimensionNumbers((0,), (), (0,)), (n,))
""".split("\n")[1:-1]


@pytest.mark.parametrize("expression", SIZES)
def test_traced_sizes_name_the_function_and_the_argument(jax, jnp, lax, expression):
    f = eval(f"lambda n: {expression}", dict(jax=jax, jnp=jnp, lax=lax, np=np))
    with pytest.raises(TypeError) as e:
        jax.jit(f)(3)
    assert "for jit. This concrete value was not available in Python because it depends on the value of the argument n." in str(e.value)
    assert "The error occurred while tracing the function <lambda> at <string>:1" in str(e.value)


def test_an_abstract_rule_returns_the_number_of_results_of_its_primitive(jax):
    Primitive = importlib.import_module(f"{jax.__name__}.extend.core").Primitive
    for many, rule in ((False, lambda x: [x, x]), (True, lambda x: x)):
        p = Primitive("unruly")
        p.multiple_results = many
        p.def_abstract_eval(rule)
        with pytest.raises(ValueError, match="unruly.abstract_eval\\(\\) method should return a tuple or a list iff unruly.multiple_results."):
            jax.make_jaxpr(p.bind)(1.0)


def test_callbacks_say_that_they_have_no_transpose_and_how_they_map(jax, jnp):
    io_callback = importlib.import_module(f"{jax.__name__}.experimental").io_callback
    like = jax.ShapeDtypeStruct((), np.float32)
    for f, words in (
        (lambda x: io_callback(lambda a: a, like, x), "IO callbacks do not support transpose."),
        (lambda x: jax.pure_callback(lambda a: a, like, x), "Pure callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks"),
    ):
        with pytest.raises(ValueError, match=words):
            jax.linear_transpose(f, 1.0)(1.0)
    with pytest.raises(NotImplementedError, match="'broadcast_all', or 'legacy_vectorized'. Got vmap_method=None."):
        jax.vmap(lambda x: jax.pure_callback(lambda a: a, like, x))(jnp.ones(3))


def test_no_function_takes_a_float0(jax, lax):
    a, b = np.zeros(2, jax.dtypes.float0), np.zeros(2, np.float32)
    one = "neg abs sign sin exp log sqrt rsqrt floor tanh logistic is_finite square cbrt conj real imag population_count clz".split()
    two = "add sub mul div rem max min pow atan2 nextafter shift_left eq ne lt le gt ge".split()
    calls = [(n, " array", lambda f: f(a)) for n in one] + [(n, " at position 0", lambda f: f(a, a)) for n in two]
    calls += [("add", " at position 1", lambda f: f(b, a)), ("max", " at position 1", lambda f: f(b, a))]
    for name, at, call in calls:
        for f in (getattr(lax, name), jax.jit(getattr(lax, name))):
            with pytest.raises(TypeError) as e:
                call(f)
            assert str(e.value).startswith(
                f"Called {name} with a float0{at}. float0s do not support any operations by design, because they are not compatible with non-trivial vector spaces. "
                "No implicit dtype conversion is done. You can use np.zeros_like(arr, dtype=np.float) to cast a float0 array to a regular zeros array. \nIf you didn't"
            ), (name, str(e.value))


def test_attribute_errors_of_tracers_name_the_attribute(jax):
    for name, words in (
        ("sharding", "The 'sharding' attribute is not available on traced array with shape float32[]. To query sharding"),
        ("device", None),
        ("nonsense", None),
    ):
        with pytest.raises(AttributeError) as e:
            jax.jit(lambda x, name=name: getattr(x, name))(1.0)
        assert name in str(e.value) and (words or "") in str(e.value)


class Model:
    def forward(self, x):
        self.cache = x * 2
        return x


@pytest.mark.ours
def test_a_leak_error_names_function_line_and_transform(jax):
    model = Model()
    jax.jit(model.forward)(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError) as e:
        model.cache + 1
    line = Model.forward.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}" in str(e.value) and "(Model.forward)" in str(e.value) and "belongs to jit" in str(e.value)


@pytest.mark.ours
def test_a_wrong_leaf_is_named_by_its_path(jax):
    with pytest.raises(TypeError, match=r"at path p\['params'\]\['w'\]\[2\]"):
        jax.jit(lambda p: p)({"params": {"w": [1.0, 2.0, object()]}})
