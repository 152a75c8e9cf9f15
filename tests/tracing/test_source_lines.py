"""Equations carry the user's line, and errors of tracing name it: file, line, column and function."""

import importlib
import re

import numpy as np
import pytest

HERE = re.escape(__file__)


def inner(jnp, x):
    return jnp.sin(x) * 2.0  # the line that tests look for


LINE = inner.__code__.co_firstlineno + 1
AT = rf"{HERE}:{LINE}:11 \(inner\)"


def comments(text):
    """What stands behind the # of each line that has one."""
    return [line.split("# ", 1)[1] for line in text.splitlines() if "# " in line]


def test_a_program_prints_its_lines(jax, jnp):
    def outer(x):
        return jnp.cos(inner(jnp, x))

    program = jax.make_jaxpr(outer)(1.0)
    text = program.pretty_print(source_info=True)
    first, second, third = comments(text)
    assert re.fullmatch(AT, first) and re.fullmatch(AT, second)
    assert re.fullmatch(rf"{HERE}:{outer.__code__.co_firstlineno + 1}:15 \(.*outer\)", third)
    assert len({line.index("# ") for line in text.splitlines() if "# " in line}) == 1
    assert "#" not in str(program) and program.jaxpr.pretty_print(source_info=True) == text


def test_the_lines_of_derivatives_are_those_of_the_function(jax, jnp):
    for transform in (
        jax.grad,
        lambda f: jax.jit(jax.grad(f)),
        lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, x])),
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        lambda f: jax.hessian(jax.jit(f)),
    ):
        text = jax.make_jaxpr(transform(lambda x: inner(jnp, x)))(1.0).pretty_print(source_info=True)
        derived = [line for line in text.splitlines() if re.search(r"= (cos|mul|neg) ", line)]
        assert derived and all(re.search(AT, line) for line in derived), text


def test_a_rule_has_the_source_line_of_the_operation_it_derives(jax, jnp):
    def f(x):
        return jnp.sum(jax.nn.softplus(jax.nn.relu(x)))

    jax.clear_caches()  # a jitted function that an earlier test called, relu here, keeps the lines of that call
    for g in (f, jax.jit(f)):
        text = jax.make_jaxpr(jax.grad(g))(np.ones(3, "float32")).pretty_print(source_info=True)
        places = [c for c in comments(text) if c.strip()]
        inside = [c for c in places if re.match(f"{HERE}:{f.__code__.co_firstlineno + 1}:", c)]
        assert len(inside) >= 5 and len(places) - len(inside) <= 3, text  # the call, its derivative, the mask that is applied to it


def test_the_lines_of_bodies(jax, jnp, lax):
    def looped(x):
        return lax.scan(lambda c, _: (lax.cond(c > 0, lambda c: inner(jnp, c), lambda c: -c, c), c), x, None, length=3)

    for f in (looped, jax.grad(lambda x: looped(x)[0]), jax.checkpoint(looped)):
        text = jax.make_jaxpr(f)(1.0).pretty_print(source_info=True)
        assert all(re.search(AT, line) for line in text.splitlines() if re.search(r"= (sin|cos) ", line)), text


def test_the_library_passes_over_its_own_frames(jax, jnp):
    def norm(x):
        return jnp.linalg.norm(jnp.mean(x, axis=0))

    jax.clear_caches()
    text = jax.make_jaxpr(norm)(np.ones((2, 3), "float32")).pretty_print(source_info=True)
    places = [c for c in comments(text) if c.strip()]
    assert len(places) > 2 and all(re.match(f"{HERE}:{norm.__code__.co_firstlineno + 1}:", c) for c in places)


@pytest.mark.ours
def test_an_equation_tells_its_place(jax, jnp):
    info = jax.make_jaxpr(lambda x: inner(jnp, x))(1.0).eqns[0].source_info
    assert (info.file_name, info.start_line, info.start_column, info.function_name) == (__file__, LINE, 11, "inner")
    assert re.fullmatch(AT, str(info))


def test_a_leaked_value_names_its_line_and_function(jax, jnp):
    leaked = []

    def leaks(x):
        leaked.append(inner(jnp, x))
        return x

    jax.jit(leaks)(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError, match=rf"was created on line {AT}") as e:
        leaked[0] + 1
    assert f"The function being traced when the value leaked was leaks at {__file__}:{leaks.__code__.co_firstlineno} traced for jit" in str(e.value)


def test_a_missing_number_names_the_arguments_it_depends_on(jax, jnp, lax):
    def check(f, *args, names, what):
        with pytest.raises(jax.errors.TracerBoolConversionError) as e:
            f(*args)
        text = str(e.value)
        assert f"The error occurred while tracing the function <lambda> at {__file__}:" in text and f" for {what}." in text, text
        assert f"depends on the value{'s' if ' and ' in names else ''} of the argument{'s' if ' and ' in names else ''} {names}." in text, text

    check(jax.jit(lambda x, y: bool(inner(jnp, x))), 1.0, 2.0, names="x", what="jit")
    check(jax.jit(lambda x, y: bool(x + y)), 1.0, 2.0, names="x and y", what="jit")
    check(jax.jit(lambda p, q: bool(p["w"] * 2)), {"w": 1.0, "b": 1.0}, 2.0, names="p['w']", what="jit")
    check(lambda: lax.cond(True, lambda x: bool(x), lambda x: False, 1.0), names="x", what="cond")
    check(lambda: lax.while_loop(lambda s: bool(s["n"]), lambda s: s, {"n": 0}), names="s['n']", what="while_cond")
    check(lambda: lax.scan(lambda c, x: (c, bool(x + 1)), 1.0, jnp.arange(3)), names="x", what="scan")
    check(lambda: jax.checkpoint(lambda x: bool(x))(1.0), names="x", what="checkpoint / remat")


@pytest.mark.ours
def test_a_missing_number_names_the_line_that_made_it(jax, jnp):
    with pytest.raises(jax.errors.TracerBoolConversionError, match=f"The value was computed at {AT}"):
        jax.jit(lambda x: bool(inner(jnp, x)))(1.0)


@pytest.mark.ours
def test_a_bad_number_in_a_compiled_function_names_its_line(jax, jnp):
    def bad(x):
        return jnp.log(inner(jnp, x) - 100)

    jax.config.update("jax_debug_nans", True)
    try:
        for f in (jax.jit(bad), jax.jit(lambda x: jax.jit(bad)(x))):
            with pytest.raises(FloatingPointError, match=rf"invalid value \(nan\) encountered in log\nThe operation was traced at {HERE}:\d+:15 \(.*bad\)"):
                f(1.0)
    finally:
        jax.config.update("jax_debug_nans", False)


@pytest.mark.ours
def test_a_rule_that_refuses_names_the_line_of_its_operation(jax, jnp, lax):
    io_callback = importlib.import_module(jax.__name__ + ".experimental").io_callback

    def run(x):
        return lax.while_loop(lambda x: x < 3, lambda x: shown(x), x)

    def shown(x):
        io_callback(lambda x: None, None, x)
        return x + 1

    with pytest.raises(
        NotImplementedError,
        match=rf"Unordered IO effects not supported in while_loop with batched predicate\nThe operation was traced at {HERE}:\d+:15 \(.*run\)",
    ):
        jax.vmap(jax.jit(run))(jnp.arange(2.0))


# ---------------------------------------------------------------- names


def named(jax, jnp):
    def f(x):
        with jax.named_scope("outer"):
            y = jnp.sin(x)
            with jax.named_scope("inner"):
                y = y * 2.0
        return jax.named_call(lambda x: x + 1.0, name="shift")(y)

    return f


def names(program):
    return [(str(e.primitive), str(e.source_info.name_stack)) for e in program.eqns]


def test_equations_carry_the_names_of_their_scopes(jax, jnp):
    program = jax.make_jaxpr(named(jax, jnp))(1.0)
    assert names(program) == [("sin", "outer"), ("mul", "outer/inner"), ("add", "shift")]
    text = program.jaxpr.pretty_print(name_stack=True)
    assert re.findall(r"# \[(.*)\]", text) == ["outer", "outer/inner", "shift"]
    assert "outer" not in str(program) and "outer" not in program.jaxpr.pretty_print(source_info=True)


@pytest.mark.parametrize("jitted", [False, True])
def test_recomputation_of_a_checkpoint_has_a_name(jax, jnp, jitted):
    inner = named(jax, jnp)
    f = jax.checkpoint(jax.jit(inner) if jitted else inner)
    _, pull = jax.vjp(lambda x: jnp.cos(f(x)), 1.0)
    text = jax.make_jaxpr(pull)(1.0).jaxpr.pretty_print(name_stack=True)
    again = re.findall(r"# \[(rematted_computation.*)\]", text)
    assert again == (["rematted_computation"] if jitted else ["rematted_computation/outer"]), text
    assert "rematted" not in jax.make_jaxpr(f)(1.0).jaxpr.pretty_print(name_stack=True)


@pytest.mark.ours
def test_both_lines_and_names(jax, jnp):
    def f(x):
        with jax.named_scope("here"):
            return inner(jnp, x)

    notes = comments(jax.make_jaxpr(f)(1.0).pretty_print(source_info=True, name_stack=True))
    assert all(re.fullmatch(AT + r" \[here\]", note) for note in notes) and len(notes) == 2
    assert "[here]" in jax.jit(f).lower(1.0).as_text(debug_info=True) and "[here]" not in jax.jit(f).lower(1.0).as_text()


def outer_and_inner(jax, jnp):
    @jax.named_scope("outer")
    def f(x):
        with jax.named_scope("inner"):
            y = jnp.sin(x)
        return y * 2.0

    return f


def pulled_back_elsewhere(jax, f):
    def late(x):
        with jax.named_scope("here"):
            _, pull = jax.vjp(f, x)
        with jax.named_scope("there"), jax.named_scope("later"):
            return pull(jax.numpy.ones_like(x))

    return late


# what is made of f, and the names of its `sin`, of its `cos`, and of the last product
TRANSFORMED = {
    "jvp": (lambda jax, f: lambda x: jax.jvp(f, (x,), (x,)), "jvp(outer)/inner", "jvp(outer)/inner", "jvp(outer)"),
    "grad": (lambda jax, f: jax.grad(f), "jvp(outer)/inner", "jvp(outer)/inner", "transpose(jvp(outer))/inner"),
    "value_and_grad": (lambda jax, f: jax.value_and_grad(f), "jvp(outer)/inner", "jvp(outer)/inner", "transpose(jvp(outer))/inner"),
    "linearize": (lambda jax, f: lambda x: jax.linearize(f, x)[1](x), "jvp(outer)/inner", "jvp(outer)/inner", "jvp(outer)"),
    "vmap of grad": (
        lambda jax, f: lambda x: jax.vmap(jax.grad(f))(x[None]),
        "vmap(jvp(outer))/inner",
        "vmap(jvp(outer))/inner",
        "vmap(transpose(jvp(outer)))/inner",
    ),
    "grad of vmap": (
        lambda jax, f: jax.grad(lambda x: jax.vmap(f)(x[None])[0]),
        "jvp(vmap(outer))/inner",
        "jvp(vmap(outer))/inner",
        "transpose(jvp(vmap(outer)))/inner",
    ),
    "in a scope": (
        lambda jax, f: lambda x: jax.named_scope("top")(jax.grad(f))(x),
        "top/jvp(outer)/inner",
        "top/jvp(outer)/inner",
        "top/transpose(jvp(outer))/inner",
    ),
    "elsewhere": (pulled_back_elsewhere, "here/jvp(outer)/inner", "here/jvp(outer)/inner", "there/later/transpose(jvp(outer))/inner"),
    "jacrev": (lambda jax, f: jax.jacrev(f), "jvp(outer)/inner", "jvp(outer)/inner", "vmap(transpose(jvp(outer)))/inner"),
    "inlined": (
        lambda jax, f: jax.grad(jax.named_scope("top")(lambda x: jax.jit(f, inline=True)(x))),
        "jvp(top)/outer/inner",
        "jvp(top)/outer/inner",
        "transpose(jvp(top))/outer/inner",
    ),
    "recomputed": (
        lambda jax, f: jax.grad(jax.named_scope("top")(jax.checkpoint(f))),
        "jvp(top)/outer/inner",
        None,
        None,
    ),
    "without a name": (lambda jax, f: jax.grad(jax.numpy.sin), "jvp()", "jvp()", "transpose(jvp())"),
}


@pytest.mark.parametrize("what", TRANSFORMED)
def test_transforms_stand_around_the_names(jax, jnp, what):
    transform, sin, cos, last = TRANSFORMED[what]
    found = names(jax.make_jaxpr(transform(jax, outer_and_inner(jax, jnp)))(1.0))
    assert {n for p, n in found if p == "sin"} == {sin}
    assert {n for p, n in found if p == "cos"} <= {cos}
    assert last is None or [n for p, n in found if p == "mul"][-1] == last


def test_second_derivatives_name_each_transform(jax, jnp):
    found = names(jax.make_jaxpr(jax.grad(jax.grad(outer_and_inner(jax, jnp))))(1.0))
    assert ("mul", "transpose(jvp(transpose(jvp(outer))))/inner") in found
    assert ("mul", "transpose(jvp(jvp(outer)))/inner") in found
    assert ("sin", "jvp(jvp(outer))/inner") in found


def test_functions_inside_have_no_transform_in_their_names(jax, jnp):
    program = jax.make_jaxpr(jax.grad(jax.jit(outer_and_inner(jax, jnp))))(1.0)
    calls = [e for e in program.eqns if str(e.primitive) in ("jit", "pjit")]
    assert [str(e.source_info.name_stack) for e in calls] == ["jvp()", "transpose(jvp())"]
    assert {n for e in calls for _, n in names(e.params["jaxpr"])} == {"outer", "outer/inner"}


def test_a_program_that_is_called_is_in_the_scopes_of_its_call(jax, jnp):
    as_fun = importlib.import_module(jax.__name__ + ".extend.core").jaxpr_as_fun
    program = jax.make_jaxpr(outer_and_inner(jax, jnp))(1.0)
    call = jax.named_scope("call")(lambda x: as_fun(program)(x))
    assert names(jax.make_jaxpr(call)(1.0)) == [("sin", "call/outer/inner"), ("mul", "call/outer")]


def test_scopes_end_where_a_transformed_function_raises(jax, jnp):
    def fail(x):
        raise KeyError

    def f(x):
        for transform in (jax.grad, jax.vmap, lambda f: lambda x: jax.jvp(f, (x,), (x,))):
            with pytest.raises(KeyError):
                transform(fail)(x)
        return jnp.sin(x[0])

    assert names(jax.make_jaxpr(f)(np.ones(2, np.float32)))[-1] == ("sin", "")


def test_a_function_that_is_traced_by_itself_has_names_of_its_own(jax, jnp, lax):
    f = jax.jit(named(jax, jnp))

    def g(x):
        with jax.named_scope("caller"):
            return lax.scan(lambda c, _: (jax.named_call(jnp.sin, name="body")(c), None), f(x), None, length=2)[0]

    program = jax.make_jaxpr(g)(1.0)
    assert names(program)[-1] == ("scan", "caller")
    inner = next(e for e in program.eqns if str(e.primitive) in ("jit", "pjit")).params["jaxpr"]
    assert [n for _, n in names(inner)] == ["outer", "outer/inner", "shift"]
    assert [n for _, n in names(program.eqns[-1].params["jaxpr"])] == ["body"]


def test_scopes_end_with_their_blocks(jax):
    @jax.named_scope("decorated")
    def f(x, fail):
        if fail:
            raise KeyError
        return x * 2

    def g(x):
        with pytest.raises(KeyError):
            f(x, True)
        return f(x + 1, False) - 3

    assert [n for _, n in names(jax.make_jaxpr(g)(1.0))] == ["", "decorated", ""]
    with pytest.raises(TypeError, match="named_scope name argument must be a string"):
        jax.named_scope(3)
