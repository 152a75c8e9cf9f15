"""`debug_nans` and `debug_infs` inside loops, branches and derivatives: the operation, the user's line, and the time round."""

import pathlib
import re

import pytest

pytestmark = pytest.mark.ours
XS = [3.0, 2.0, 1.0, 0.0, -1.0]


def report(f, *args):
    """What is said of a program: the operation, the line's text, and the times round from the innermost loop outwards."""
    with pytest.raises(FloatingPointError) as e:
        f(*args)
    text = str(e.value)
    what, name = re.match(r"invalid value \((\w+)\) encountered in (\S+)", text).groups()
    line = int(re.search(r"traced at .*?:(\d+):", text)[1])
    source = pathlib.Path(__file__).read_text().splitlines()[line - 1]
    return what, name, source.split("#")[-1].strip(), re.findall(r"It happened in iteration (\d+) of (\w+)\.", text)


def step(jnp, c):
    return jnp.sqrt(c - 1.0)  # step


def log(jnp, x):
    return jnp.log(x)  # log


def programs(jax, jnp):
    lax = jax.lax
    xs = jnp.array(XS)
    scan = lambda n, x: lax.scan(lambda c, _: (step(jnp, c), None), x, None, length=n)[0]
    inner = lambda c, _: lax.scan(lambda c, b: (log(jnp, c), b), c, None, length=2)
    loop = lambda x: lax.while_loop(lambda s: s[0] < 6, lambda s: (s[0] + 1, step(jnp, s[1])), (0, x))
    return {
        "scan": (lambda xs: lax.scan(lambda c, x: (c + log(jnp, x), x), 0.0, xs), xs, ("log", "log", [("4", "scan")])),
        "scan backwards": (lambda xs: lax.scan(lambda c, x: (c, log(jnp, x)), 0.0, xs, reverse=True), xs, ("log", "log", [("0", "scan")])),
        "while": (loop, 9.0, ("sqrt", "step", [("3", "while")])),
        "fori with a traced bound": (lambda n: lax.fori_loop(0, n, lambda i, s: step(jnp, s), 9.0), 6, ("sqrt", "step", [("3", "while")])),
        "the predicate": (lambda x: lax.while_loop(lambda s: log(jnp, s) > -2, lambda s: s - 1, x), 2.5, None),
        "nested": (lambda x: lax.scan(inner, x, None, length=3), 900.0, ("log", "log", [("0", "scan"), ("2", "scan")])),
        "map": (lambda xs: lax.map(lambda x: log(jnp, x), xs), xs, ("log", "log", [("4", "scan")])),
        "a branch": (lambda x: lax.cond(x > 0, lambda x: log(jnp, -x), lambda x: x, x), 2.0, ("log", "log", [])),
        "a branch in a loop": (
            lambda xs: lax.scan(lambda c, x: (c, lax.cond(x > 0, lambda x: x, lambda x: log(jnp, x), x)), 0.0, xs),
            xs,
            ("log", "log", [("4", "scan")]),
        ),
        "a derivative": (jax.grad(lambda x: step(jnp, x) * x), 0.5, ("sqrt", "step", [])),
        "a derivative of a loop": (jax.grad(lambda x: scan(5, x)), 9.0, ("sqrt", "step", [("3", "scan")])),
        "lanes": (jax.vmap(lambda x: scan(4, x)), jnp.array([900.0, 9.0]), ("sqrt", "step", [("3", "scan")])),
        "checkpoint": (jax.checkpoint(lambda x: log(jnp, x)), -1.0, ("log", "log", [])),
        "custom derivative": (lambda x: jax.nn.relu(log(jnp, x)), -1.0, ("log", "log", [])),
    }


NAMES = ["scan", "scan backwards", "while", "fori with a traced bound", "nested", "map", "a branch", "a branch in a loop", "a derivative",
         "a derivative of a loop", "lanes", "checkpoint", "custom derivative"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_operation_that_makes_a_nan_under_jit_is_named(jax, jnp, name):
    f, x, want = programs(jax, jnp)[name]
    with jax.debug_nans(True):
        assert report(jax.jit(f), x) == ("nan", *want)


@pytest.mark.parametrize("name", ["scan", "while", "map", "nested", "a branch in a loop", "a derivative", "a derivative of a loop"])
def test_the_operation_that_makes_a_nan_outside_of_jit_is_named(jax, jnp, name):
    f, x, want = programs(jax, jnp)[name]
    with jax.debug_nans(True):
        assert report(f, x) == ("nan", *want)


def test_derivatives_of_jitted_loops(jax, jnp):
    g = jax.value_and_grad(jax.jit(lambda x: jax.lax.scan(lambda c, _: (step(jnp, c), None), x, None, length=5)[0]))
    with jax.debug_nans(True):
        assert report(g, 9.0) == ("nan", "sqrt", "step", [("3", "scan")])


def test_infinities(jax, jnp):
    loop = lambda x: jax.lax.while_loop(lambda s: s[0] < 50, lambda s: (s[0] + 1, s[1] * 1e3), (0, x))  # grows
    with jax.debug_infs(True):
        assert report(jax.jit(loop), 1.0) == ("inf", "mul", "grows", [("12", "while")])


def test_unread_nans_are_not_reported(jax, jnp):
    with jax.debug_nans(True):
        # a predicate that is nan is false, and the loop ends with numbers
        f, x, _ = programs(jax, jnp)["the predicate"]
        assert jax.jit(f)(x) == -0.5
        assert jax.jit(lambda x: jax.lax.scan(lambda c, x: (c, jnp.where(x > 0, jnp.log(x), 0.0)), 0.0, x))(jnp.array(XS))[1].shape == (5,)
