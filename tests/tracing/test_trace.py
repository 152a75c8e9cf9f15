"""What is traced, how often, from which arguments: functions of all kinds, abstract arguments, values that pass by, values known early."""

import types
import unittest.mock

import numpy as np
import pytest

# ---------------------------------------------------------------- functions


class Anything:
    """Has every attribute one asks for, and those have too."""

    def __init__(self, depth=0):
        self.depth = depth

    def __getattr__(self, name):
        if name.startswith("__") and name != "__wrapped__":
            raise AttributeError(name)
        return Anything(self.depth + 1)

    def __call__(self, x):
        return x * 2.0


@pytest.mark.parametrize(
    "make", [Anything, lambda: unittest.mock.Mock(side_effect=lambda x: x * 2.0), lambda: unittest.mock.MagicMock(side_effect=lambda x: x * 2.0)]
)
def test_objects_that_make_up_their_attributes(jax, make):
    f = make()
    assert float(jax.jit(f)(2.0)) == 4 and float(jax.grad(f)(2.0)) == 2
    assert jax.vmap(f)(np.ones(2, np.float32)).tolist() == [2, 2] and jax.eval_shape(f, 1.0).shape == ()
    assert float(jax.checkpoint(f)(2.0)) == 4 and float(jax.vjp(f, 2.0)[0]) == 4 and "mul" in str(jax.make_jaxpr(f)(1.0))
    assert float(jax.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2)[0]) == 4 and float(jax.lax.fori_loop(0, 2, lambda i, x: f(x), 1.0)) == 4


def generator(x):
    yield x


@pytest.mark.parametrize(
    "transform",
    ["jit", "vmap", "grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "jvp", "vjp", "linearize", "eval_shape"],
)
def test_functions_that_cannot_be_traced(jax, transform):
    arguments = {"jvp": ((1.0,), (1.0,)), "vjp": (1.0,), "linearize": (1.0,), "eval_shape": (1.0,)}.get(transform, ())
    with pytest.raises(TypeError, match="Expected a function, got a generator function: <function generator"):
        getattr(jax, transform)(generator, *arguments)
    with pytest.raises(TypeError, match="staticmethod arguments are not supported, got <staticmethod"):
        getattr(jax, transform)(staticmethod(lambda x: x), *arguments)
    with pytest.raises(TypeError, match="Expected a callable value, got 3"):
        getattr(jax, transform)(3, *arguments)


def test_argument_names_that_cannot_be_given_by_name(jax):
    def positional(a, /):
        return a

    for names in ("static_argnames", "donate_argnames"):
        with pytest.raises(ValueError, match=rf"invalid argnames \{{'a'\}} in {names}. These are positional-only"):
            jax.jit(positional, **{names: ("a",)})
        with pytest.raises(ValueError, match=rf"invalid argnames \{{'args'\}} in {names}. These are positional-only"):
            jax.jit(lambda *args: args, **{names: ("args",)})
    assert float(jax.jit(lambda **kw: kw["x"] if kw["foo"] else 0.0, static_argnames=("foo",))(x=1.0, foo=True)) == 1


# ---------------------------------------------------------------- abstract arguments and results


def test_anything_with_a_shape_and_a_dtype_is_an_abstract_argument(jax):
    like = types.SimpleNamespace(shape=(3,), dtype=np.dtype("float32"))
    for out in (jax.eval_shape(lambda x: x + 1, like), jax.jit(lambda x: x + 1).eval_shape(like), jax.jit(lambda x: x + 1).lower(like).out_info):
        assert out == jax.ShapeDtypeStruct((3,), np.float32)
    assert str(jax.make_jaxpr(lambda x: x + 1)(like)) == "{ lambda ; a:f32[3]. let b:f32[3] = add a 1.0:f32[] in (b,) }"
    (ct,) = jax.linear_transpose(lambda x: x * 2, like)(np.ones(3, np.float32))
    assert ct.tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="as an abstract array"):
        jax.eval_shape(lambda x: x, types.SimpleNamespace(shape=(3,)))


def test_abstract_results_stay_as_they_are(jax):
    s = jax.ShapeDtypeStruct((2,), np.float32)
    assert jax.eval_shape(lambda: s) == s
    out = jax.eval_shape(lambda x: {"a": (x, s), "b": [s, x + 1]}, np.ones(3, np.float32))
    assert out == {"a": (jax.ShapeDtypeStruct((3,), np.float32), s), "b": [s, jax.ShapeDtypeStruct((3,), np.float32)]}
    assert jax.eval_shape(lambda: jax.eval_shape(lambda x: x, s)) == s
    with pytest.raises(
        TypeError, match="function <lambda> at .*tracing/test_trace.py:.* returned a value of type <class 'str'>, which is not a valid JAX type"
    ):
        jax.eval_shape(lambda: "a")


def test_abstract_values_are_operands_where_only_types_matter(jax, jnp):
    s = jax.ShapeDtypeStruct((3,), np.float32)
    f = jax.jit(lambda x: x.sum() * 2)
    for call in (lambda: f(s), lambda: jnp.sin(s).sum(), lambda: jax.vmap(lambda x: x + 1)(s)[0], lambda: jax.grad(f)(s)[1]):
        assert jax.eval_shape(call) == jax.ShapeDtypeStruct((), np.float32)
    # the trace that is kept is that of an array, and nowhere else does a type stand for a value
    assert float(f(np.ones(3, np.float32))) == 6
    inner = jax.jit(lambda: jnp.sin(s))
    for call in (lambda: f(s), lambda: jax.jit(lambda: f(s))(), inner, lambda: jax.eval_shape(inner), lambda: jnp.sin(s)):
        with pytest.raises(TypeError):
            call()


def test_gradients_of_integers_are_float0_under_every_transform(jax):
    g = jax.grad(lambda x: jax.numpy.sum(x + 0.0), allow_int=True)
    float0 = jax.dtypes.float0
    for f, x in (
        (g, 1),
        (jax.jit(g), 1),
        (jax.jit(jax.jit(g)), 1),
        (jax.jit(g), np.arange(2)),
        (jax.vmap(g), np.arange(2)),
        (jax.jit(jax.vmap(g)), np.arange(2)),
        (jax.vmap(jax.jit(g)), np.arange(2)),
    ):
        out = f(x)
        assert isinstance(out, np.ndarray) and out.dtype == float0 and out.shape == np.shape(x)
    both = jax.jit(jax.grad(lambda p: jax.numpy.sum(p["x"] * p["n"]), allow_int=True))({"x": 2.0, "n": 3})
    assert float(both["x"]) == 3 and both["n"].dtype == float0


# ---------------------------------------------------------------- values that pass by


def test_vmap_passes_on_unmapped_values(jax, jnp):
    x, seen = jnp.arange(3.0), []
    np.testing.assert_allclose(jax.vmap(lambda x, g: g(x), (0, None))(x, jnp.sin), np.sin(np.arange(3.0)), rtol=1e-6)
    assert jax.vmap(lambda x, n: x + jnp.zeros(n), (0, None))(x, 2).tolist() == [[0, 0], [1, 1], [2, 2]]
    out = jax.vmap(lambda x, p: (seen.append([type(v) for v in p]), x * p[0])[1], (0, None))(x, (2, "name", np.arange(2), None, object()))
    assert out.tolist() == [0, 2, 4] and seen[0][:3] == [int, str, np.ndarray]
    assert jax.vmap(lambda x, n: x, (None, None), axis_size=2)(x, "a").shape == (2, 3)
    np.testing.assert_allclose(
        jax.vmap(jax.vmap(lambda a, b, f: f(a, b), (0, None, None)), (None, 0, None))(x, x, jnp.multiply), np.outer(np.arange(3), np.arange(3))
    )
    assert jax.grad(lambda y: jax.vmap(lambda x, y, p: x * y**p, (0, None, None))(x, y, 2).sum())(2.0) == 12
    with pytest.raises(TypeError, match="Output from batched function 'a' with type <class 'str'> is not a valid JAX type"):
        jax.vmap(lambda x, n: (x, n), (0, None))(x, "a")
    with pytest.raises(TypeError):
        jax.vmap(lambda x, n: x, (0, 0))(x, "a")


# ---------------------------------------------------------------- how often


ONCE = {
    "cond": lambda j, f: j.lax.cond(True, f, f, 1.0),
    "switch": lambda j, f: j.lax.switch(1, [f, f, f], 1.0),
    "fori_loop": lambda j, f: j.lax.fori_loop(0, 3, f, 1.0),
    "fori_loop to a traced bound": lambda j, f: j.jit(lambda n: j.lax.fori_loop(0, n, f, 1.0))(3),
    "checkpoint": lambda j, f: j.checkpoint(f)(2.0),
    "checkpoint with a keyword": lambda j, f: j.checkpoint(f)(2.0, k=1.0),
    "checkpoint in jit": lambda j, f: j.jit(lambda x: j.checkpoint(f)(x))(2.0),
    "grad of checkpoint": lambda j, f: j.grad(j.checkpoint(f))(2.0),
    "body of while_loop": lambda j, f: j.vmap(lambda x: j.lax.while_loop(lambda x: x < 3, f, x))(np.full(2, 5.0, np.float32)),
}


@pytest.mark.parametrize("name", ONCE)
def test_the_same_function_is_traced_once(jax, name):
    n = 0

    def f(*args, **kwargs):
        nonlocal n
        n += 1
        return args[-1]

    for _ in range(3):
        ONCE[name](jax, f)
    assert n == 1


def test_scan_traces_its_step_once(jax, lax):
    n = 0

    def step(c, x):
        nonlocal n
        n += 1
        return c + x, c

    for i in range(3):
        assert float(lax.scan(step, 1.0, np.full(2, i, np.float32))[0]) == 1 + 2 * i
    assert n == 1
    assert float(lax.scan(step, np.float32(1.0), np.ones(3, np.float32))[0]) == 4 and n == 2


def test_while_loop_traces_its_functions_once(jax, lax):
    n = 0

    def below(x):
        nonlocal n
        n += 1
        return x < 3

    def step(x):
        nonlocal n
        n += 1
        return x + 1

    assert [int(lax.while_loop(below, step, i)) for i in range(3)] == [3, 3, 3] and n == 2
    lax.while_loop(below, step, 0.5)
    assert n == 4


WEIGHT = 1.0


def weighted(c, _):
    return c * WEIGHT, None


def weighted_by_another(c, _):
    return weighted(c, _)


@pytest.mark.ours  # JAX goes by the function alone, and gives the first weight's result each time
def test_a_function_whose_surroundings_changed_is_traced_again(jax, lax, jnp):
    global WEIGHT
    for f in (weighted, weighted_by_another):
        out = []
        for w in (2.0, jnp.float32(3.0), 5):
            WEIGHT = w
            out.append(float(lax.scan(f, 1.0, None, length=2)[0]))
        assert out == [4, 9, 25]
    w, table, holder = 1.0, [1.0], types.SimpleNamespace(w=1.0)
    functions = (lambda x: x * w, lambda x: x * table[0], lambda x: x * holder.w)
    for v in (2.0, 3.0):
        w = table[0] = holder.w = v
        for f in functions:
            assert float(jax.remat(f)(1.0)) == v == float(lax.cond(True, f, f, 1.0)) == float(lax.fori_loop(0, 1, lambda i, x, f=f: f(x), 1.0))


def test_a_kept_program_follows_the_configuration_and_dies_with_its_function(jax, lax):
    import gc
    import weakref

    def step(i, x):
        return x + jax.numpy.asarray(np.float64(1.0))

    assert lax.fori_loop(0, 2, step, np.float32(0)).dtype == np.float32
    with jax.enable_x64(True):
        assert lax.fori_loop(0, 2, step, np.float64(0)).dtype == np.float64

    def remembered():
        def recursive(x):
            return x * 2.0 if recursive else x

        assert float(jax.remat(recursive)(1.0)) == 2
        return weakref.ref(recursive)

    gone = remembered()
    gc.collect()
    assert gone() is None


def test_a_kept_program_holds_no_tracers(jax, lax, jnp):
    """A function that reads a traced value from outside is traced for each transformation that follows it."""
    for w in (2.0, 3.0):
        assert float(jax.jit(lambda w: lax.fori_loop(0, 2, lambda i, x: x * w, 1.0))(w)) == w**2
        assert float(jax.grad(lambda w: lax.scan(lambda c, _: (c * w, None), 1.0, None, length=2)[0])(w)) == 2 * w

    def outer(w):
        def f(x):
            return x * w

        return jax.remat(f)(1.0) + lax.cond(True, f, f, 1.0)

    assert float(jax.jit(outer)(2.0)) == 4 and float(jax.grad(outer)(2.0)) == 2 and jax.vmap(outer)(jnp.arange(2.0)).tolist() == [0, 2]


# ---------------------------------------------------------------- values known early


def test_ensure_compile_time_eval_folds_known_values_only(jax, jnp, lax):
    def f(x):
        with jax.ensure_compile_time_eval():
            n = int(jnp.ones(3).sum())
            y = jnp.sin(x) * n
        return y

    assert str(jax.make_jaxpr(f)(1.0)) == "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 3.0:f32[] in (c,) }"
    want = 3 * np.sin(1.0)
    np.testing.assert_allclose([f(1.0), jax.jit(f)(1.0), *jax.vmap(f)(jnp.ones(2)), jax.checkpoint(f)(1.0)], want, rtol=1e-6)
    np.testing.assert_allclose([jax.grad(f)(1.0), jax.jit(jax.grad(f))(1.0)], 3 * np.cos(1.0), rtol=1e-6)


@pytest.mark.ours  # JAX stages custom rules of known values there
def test_ensure_compile_time_eval_around_every_kind_of_function(jax, jnp, lax):
    def f(x):
        with jax.ensure_compile_time_eval():
            z = jax.jit(lambda y: y * 2)(3.0)
            known = float(z) + float(jax.grad(jnp.sin)(0.0)) + float(jax.vmap(jnp.cos)(jnp.zeros(2)).sum()) + float(jax.nn.relu(2.0))
            known += float(lax.scan(lambda c, _: (c * z, None), 1.0, None, length=2)[0]) + float(lax.cond(z > 0, jnp.exp, jnp.sin, 0.0))
            y = jax.jit(lambda y: y * 2)(x)
            y = lax.cond(x > 0, lambda a: a, lambda a: -a, y)
            y = lax.scan(lambda c, _: (c * z, None), y, None, length=2)[0]
            y = y + jax.grad(jnp.sin)(x) + jax.nn.relu(x)
        return y + known

    want = 72.0 + np.cos(1.0) + 1 + (6 + 1 + 2 + 2 + 36 + 1)
    slope = 72.0 - np.sin(1.0) + 1
    np.testing.assert_allclose([f(1.0), jax.jit(f)(1.0), *jax.vmap(f)(jnp.ones(2))], want, rtol=1e-6)
    np.testing.assert_allclose([jax.grad(f)(1.0), jax.jit(jax.grad(f))(1.0)], slope, rtol=1e-6)


# ---------------------------------------------------------------- what transforms say and return


def test_outputs_that_may_not_be_mapped(jax, jnp):
    for f, out_axes, path in (
        (lambda x: x, None, ""),
        (lambda x: (x, x), (0, None), r"\[1\]"),
        (lambda x: {"a": x, "b": [x]}, {"a": 0, "b": [None]}, r"\['b'\]\[0\]"),
    ):
        with pytest.raises(ValueError, match=f"at vmap out_axes{path}, got axis spec None but output was batched on axis 0"):
            jax.vmap(f, out_axes=out_axes)(jnp.ones(2))
    with pytest.raises(ValueError, match="vmap has mapped output .axis_name=i. but out_axes is None"):
        jax.vmap(lambda x: x, out_axes=None, axis_name="i")(jnp.ones(2))
    with pytest.raises(TypeError, match=r"vmap in_axes must be an int, None, or \(nested\) container with those types as leaves, but got \(1.5,\)."):
        jax.vmap(lambda x: x, in_axes=(1.5,))(jnp.ones(2))


def test_names_and_docstrings_of_transformed_functions(jax):
    def loss(x):
        """The loss."""
        return x

    for f in (
        jax.grad(loss),
        jax.value_and_grad(loss),
        jax.jacfwd(loss),
        jax.jacrev(loss),
        jax.hessian(loss),
        jax.vmap(loss),
        jax.jit(loss),
        jax.checkpoint(loss),
    ):
        assert f.__name__ == "loss"
    assert jax.vmap(loss).__doc__ == (
        "Vectorized version of loss. Takes similar arguments as loss but with additional array axes over which loss is mapped.\n\nOriginal documentation:\n\nThe loss."
    )
    assert jax.grad(loss, (0, 1)).__doc__ == (
        "Gradient of loss with respect to positional argument(s) (0, 1). Takes the same arguments as loss but returns the gradient, which has the"
        " same shape as the arguments at positions (0, 1)."
    )


def test_a_component_of_the_output_that_is_no_array_is_named(jax):
    with pytest.raises(
        TypeError, match=r"traced for jit returned a value of type <class 'object'> at output component \['b'\]\[0\], which is not a valid JAX type"
    ):
        jax.jit(lambda x: {"a": x, "b": (object(),)})(1.0)


LEAKS = {
    "jit": (lambda j, f: j.jit(f)(1.0), "traced for jit"),
    "checkpoint": (lambda j, f: j.checkpoint(f)(1.0), "traced for checkpoint / remat"),
    "cond": (lambda j, f: j.lax.cond(True, f, f, 1.0), "traced for cond"),
    "while": (lambda j, f: j.lax.while_loop(lambda c: c < 0, f, 1.0), "traced for while_body"),
    "vmap": (lambda j, f: j.vmap(f)(np.ones(2)), ""),
    "grad": (lambda j, f: j.grad(f)(1.0), ""),
}


@pytest.mark.parametrize("name", LEAKS)
def test_tracers_that_escape_say_where_from(jax, name):
    run, words = LEAKS[name]
    kept = []

    def leaking(x):
        kept.append(x * 2)
        return x

    run(jax, leaking)
    with pytest.raises(jax.errors.UnexpectedTracerError) as e:
        kept[0] + 1
    assert "disallow saving intermediate values to global state" in str(e.value) and words in str(e.value)
    assert not words or f"The function being traced when the value leaked was leaking at {__file__}" in str(e.value)


def test_the_pullback_shows_its_residuals(jax, jnp):
    pull = jax.vjp(lambda x, p: jnp.sin(x) * p["a"], 1.0, {"a": 2.0})[1]
    assert type(pull.args_res[0]).__name__ == "NotNeeded"
    np.testing.assert_allclose(sorted(map(float, jax.tree.leaves(pull))), sorted([np.cos(1.0), np.sin(1.0)]), rtol=1e-6)
    assert pull.in_tree == jax.tree.structure((1.0, {"a": 2.0})) and pull.out_tree == jax.tree.structure(0)
    assert sum(e.primitive.name == "mul" for e in pull.jaxpr.eqns) >= 2 and len(pull.jaxpr.constvars) == 2
    want = [2 * np.cos(1.0), np.sin(1.0)]
    for f, scale in (
        (pull, 1),
        (jax.tree.map(lambda r: 2 * r, pull), 2),
        (jax.jit(lambda: jax.vjp(lambda x, p: jnp.sin(x) * p["a"], 1.0, {"a": 2.0})[1])(), 1),
    ):
        x, p = f(1.0)
        np.testing.assert_allclose([float(x), float(p["a"])], np.multiply(scale, want), rtol=1e-6)


def test_arguments_that_a_pullback_keeps_may_be_exchanged(jax, jnp):
    w, x = jnp.full((2, 2), 2.0), jnp.full((2, 2), 3.0)
    _, pull = jax.vjp(lambda w, x: x @ w, w, x)
    assert pull.opaque_residuals == [] and [r.tolist() for r in pull.args_res] == [w.tolist(), x.tolist()]
    pull.args_res[0] = w * 10
    dw, dx = pull(jnp.ones((2, 2)))
    assert dw.tolist() == [[6, 6], [6, 6]] and dx.tolist() == [[40, 40], [40, 40]]


def test_cotangents_of_another_structure(jax):
    pull = jax.vjp(lambda x: {"a": x, "b": (x,)}, 1.0)[1]
    with pytest.raises(
        ValueError,
        match=r"(?s)unexpected tree structure.*\* out was a <class 'dict'> with 2 children in the original output, but a <class 'dict'> with 1 child here",
    ):
        pull({"a": 1.0})
    with pytest.raises(
        ValueError, match=r"\* out\['b'\] was a <class 'tuple'> in the original output, but a <class 'list'> here, so their Python types differ."
    ):
        pull({"a": 1.0, "b": [1.0]})


# ---------------------------------------------------------------- scalars that a program closes over


@pytest.mark.parametrize("made", ["outside", "in the function around", "traced there"])
def test_programs_of_one_closure_have_one_number_of_constants(jax, jnp, lax, made):
    """Whether what is closed over is known or traced."""
    counts = []

    def program(s, x):
        body = lambda y: lax.cond(y > 0, lambda y: lax.fori_loop(0, 3, lambda i, y: y * s, y) + s, lambda y: y, y)
        closed = jax.make_jaxpr(body)(x)
        counts.append(len(closed.consts))
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]

    outer = jnp.asarray(2.0)
    f = {
        "outside": lambda x: program(outer, x),
        "in the function around": lambda x: program(jnp.asarray(2.0), x),
        "traced there": lambda x: program(jnp.asarray(2.0) * x / x, x),
    }[made]
    assert jax.jit(f)(3.0) == 26
    assert counts == [1]


def test_scalars_that_a_program_writes_down_itself_are_no_constants_of_its(jax, jnp):
    closed = jax.make_jaxpr(lambda x: jax.jit(lambda x: x * jnp.float32(3))(x) + jnp.asarray(2.0))(1.0)
    assert closed.consts == []
    outer, number = jnp.float32(4), np.float32(5)
    closed = jax.make_jaxpr(lambda x: x * outer + number)(1.0)
    assert [float(c) for c in closed.consts] == [4.0]


def test_a_program_made_to_be_looked_at_leaves_those_that_run_alone(jax, jnp, lax):
    outer = jnp.float32(4)
    step = lambda i, y: y * outer
    f = lambda x: lax.fori_loop(0, 2, step, x)
    assert len(jax.make_jaxpr(f)(1.0).consts) == 1
    assert f(1.0) == 16 and jax.jit(f)(1.0) == 16
    assert len(jax.make_jaxpr(f)(1.0).consts) == 1
