"""References that inner functions only read: traced once a call, with today's value, whatever was kept before."""

import numpy as np
import pytest


def counted(f):
    calls = []

    def g(*args):
        calls.append(1)
        return f(*args)

    return g, calls


def wrappers(jax):
    lax, jnp = jax.lax, jax.numpy
    return {
        "jit": jax.jit,
        "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
        "fori_loop": lambda f: lambda x: lax.fori_loop(0, 1, lambda i, c: f(c), x),
        "cond": lambda f: lambda x: lax.cond(jnp.asarray(True), f, lambda x: x, x),
        "jit of jit": lambda f: jax.jit(lambda x: jax.jit(f)(x)),
        "jit of scan": lambda f: jax.jit(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]),
    }


KINDS = ["jit", "scan", "fori_loop", "cond", "jit of jit", "jit of scan"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_call_reads_the_value_of_then(jax, kind):
    ref = jax.new_ref(1.0)
    f = wrappers(jax)[kind](lambda x: x + ref[...])
    for value in (1.0, 5.0, 7.0, 7.0, 2.0):
        ref[...] = value
        assert f(10.0) == 10 + value


@pytest.mark.parametrize("outer", [lambda jax, f: f, lambda jax, f: jax.jit(f)], ids=["eager", "jitted"])
@pytest.mark.parametrize("kind", KINDS)
def test_values_between_writes_of_the_function_around(jax, kind, outer):
    def program(x):
        ref = jax.new_ref(x)
        f = wrappers(jax)[kind](lambda y: y * ref[...])
        a = f(2.0)
        ref[...] += 1
        b = f(2.0)
        return a, b, ref[...]

    g = outer(jax, program)
    for x in (3.0, 4.0):
        assert [float(v) for v in g(x)] == [2 * x, 2 * x + 2, x + 1]
    a, b = jax.jacrev(lambda x: g(x)[:2])(3.0)
    assert (a, b) == (2, 2)
    assert jax.vmap(lambda x: g(x)[1])(jax.numpy.arange(3.0)).tolist() == [2, 4, 6]


@pytest.mark.parametrize("kind", ["jit", "scan", "fori_loop"])
def test_a_function_that_reads_is_traced_once_a_call(jax, kind):
    ref = jax.new_ref(2.0)
    values = [ref, 3.0]
    f, calls = counted(lambda x: x * values[0][...])
    assert wrappers(jax)[kind](f)(1.0) == 2
    assert len(calls) == 1


def test_a_jitted_function_that_reads_is_compiled_once(jax):
    ref = jax.new_ref(2.0)
    f, calls = counted(lambda x: x * ref[...])
    g = jax.jit(f)
    for i in range(20):
        ref[...] = float(i)
        assert g(1.0) == i
    assert len(calls) <= 3


def test_a_jitted_function_around_is_kept(jax):
    def program(x):
        ref = jax.new_ref(x)
        return jax.jit(lambda y: y + ref[...])(1.0)

    f, calls = counted(program)
    g = jax.jit(f)
    assert [float(g(x)) for x in (1.0, 2.0, 3.0)] == [2, 3, 4] and len(calls) == 1


def test_reading_before_writing(jax):
    ref = jax.new_ref(1.0)

    @jax.jit
    def f(x):
        before = ref[...]
        ref[...] = before + x
        return before

    assert [float(f(2.0)) for _ in range(3)] == [1, 3, 5] and ref[...] == 7


def test_stages_take_the_value_at_each_call(jax):
    ref = jax.new_ref(1.0)
    compiled = jax.jit(lambda x: x + ref[...]).lower(1.0).compile()
    assert compiled(1.0) == 2
    ref[...] = 5.0
    assert compiled(1.0) == 6


def test_readers_in_a_loop_see_each_iteration(jax):
    def body(i, total):
        ref[...] += 1.0
        return total + jax.jit(lambda: ref[...] * 2)()

    ref = jax.new_ref(0.0)
    assert jax.lax.fori_loop(0, 3, body, 0.0) == 12
    np.testing.assert_allclose(ref[...], 3)
