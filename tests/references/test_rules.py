"""Mutable references in rules of the user's, in backward passes, ahead-of-time stages and `checkpoint`; parts of references. As JAX has them."""

import functools

import numpy as np
import pytest


def stashing(jax, write=lambda ref, ct: ref.__setitem__(..., ref[...] + ct)):
    """The identity of its second argument, whose backward pass writes to its first."""

    @jax.custom_vjp
    def stash(ref, x):
        return x

    def bwd(ref, ct):
        write(ref, ct)
        return None, ct

    stash.defvjp(lambda ref, x: (x, ref), bwd)
    return stash


def around(jax):
    """Functions of a cotangent-writing identity `f`, under what programs are made of; and what they are without it."""
    lax, sin = jax.lax, jax.numpy.sin
    return {
        "plain": lambda f, x: f(sin(f(x))),
        "jit": lambda f, x: jax.jit(lambda x: f(sin(x)))(x),
        "jit in jit": lambda f, x: jax.jit(lambda x: sin(jax.jit(lambda x: f(sin(x)))(f(x))))(x),
        "scan": lambda f, x: lax.scan(lambda c, _: (f(sin(c)), None), x, None, length=3)[0],
        "fori": lambda f, x: lax.fori_loop(0, 3, lambda i, c: f(sin(c)), x),
        "scan in jit": lambda f, x: jax.jit(lambda x: lax.scan(lambda c, y: (f(sin(c)) * y, None), x, jax.numpy.arange(1.0, 4.0))[0])(x),
        "checkpoint": lambda f, x: jax.checkpoint(lambda x: f(sin(x)))(x),
        "scan of checkpoint": lambda f, x: lax.scan(jax.checkpoint(lambda c, _: (f(sin(c)), None)), x, None, length=2)[0],
        "cond": lambda f, x: lax.cond(x > 0, lambda x: f(sin(x)), lambda x: x, x),
        "unused": lambda f, x: (f(x), sin(x))[1],
    }


AROUND = ["plain", "jit", "jit in jit", "scan", "fori", "scan in jit", "checkpoint", "scan of checkpoint", "unused"]


def expected_writes(jax, name, x):
    """The sum of the cotangents that arrive at `f`, by a probe added there: the derivative by the probe."""
    return jax.grad(lambda e: around(jax)[name](lambda y: y + e, x))(0.0) if name != "unused" else 0.0


@pytest.mark.parametrize("outer", ["grad", "jit of grad", "value_and_grad", "vjp", "jit of all"])
@pytest.mark.parametrize("name", AROUND)
def test_backward_passes_write_to_references(jax, jnp, name, outer):
    ref, x = jax.new_ref(jnp.float32(0.5)), jnp.float32(0.7)
    stash = functools.partial(stashing(jax), ref)
    f = functools.partial(around(jax)[name], stash)
    if outer == "grad":
        g = jax.grad(f)(x)
    elif outer == "jit of grad":
        g = jax.jit(jax.grad(f))(x)
    elif outer == "value_and_grad":
        g = jax.value_and_grad(lambda x: (f(x), x), has_aux=True)(x)[1]
    elif outer == "vjp":
        (g,) = jax.vjp(f, x)[1](jnp.float32(1.0))
    else:

        @jax.jit
        def all_of(r, x):
            s = stashing(jax)
            return jax.grad(lambda x: around(jax)[name](functools.partial(s, r), x))(x)

        g = all_of(ref, x)
    plain = jax.grad(lambda x: around(jax)[name](lambda y: y, x))(x)
    np.testing.assert_allclose(g, plain, rtol=1e-6)
    np.testing.assert_allclose(ref[...], 0.5 + expected_writes(jax, name, x), rtol=1e-5)


@pytest.mark.ours  # JAX fails within
def test_backward_passes_write_within_branches(jax, jnp):
    ref = jax.new_ref(0.0)
    f = functools.partial(around(jax)["cond"], functools.partial(stashing(jax), ref))
    np.testing.assert_allclose(jax.grad(f)(2.0), np.cos(2.0), rtol=1e-6)
    assert ref[...] == 1
    assert jax.grad(f)(-2.0) == 1 and ref[...] == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "int8", "uint8", "uint32", "int16", "bool"])
def test_backward_passes_hold_every_dtype(jax, jnp, dtype):
    info = {"bool": (True, False)}.get(dtype) or (np.iinfo(dtype).max - 1, np.iinfo(dtype).min) if "int" in dtype or dtype == "bool" else (1.5, -2.0)
    for start in info:
        ref = jax.new_ref(jnp.full((2,), start, dtype))

        def write(r, ct):
            r[0] = jnp.logical_not(r[0]) if dtype == "bool" else (r[0] + 1).astype(dtype)

        f = jax.jit(functools.partial(stashing(jax, write), ref))
        jax.grad(f)(1.0)
        first = (not start) if dtype == "bool" else np.asarray(start, jnp.dtype(dtype)) + np.asarray(1, jnp.dtype(dtype))
        assert np.array_equal(np.asarray(ref[...]), np.asarray([first, start], jnp.dtype(dtype))), start


def test_calls_of_one_reference_write_in_reverse_order(jax, jnp):
    ref = jax.new_ref(0.0)
    stash = stashing(jax, lambda r, ct: r.__setitem__(..., ct))

    @jax.jit
    def f(r, x):
        return jnp.sin(stash(r, jnp.sin(stash(r, x))))

    jax.grad(f, 1)(ref, 1.0)
    np.testing.assert_allclose(ref[...], np.cos(np.sin(1.0)) * np.cos(1.0), rtol=1e-6)
    other = jax.new_ref(0.0)
    jax.grad(f, 1)(other, 2.0)  # another reference in the same compiled function
    np.testing.assert_allclose([other[...], ref[...]], [np.cos(np.sin(2.0)) * np.cos(2.0), np.cos(np.sin(1.0)) * np.cos(1.0)], rtol=1e-6)


def test_a_pullback_writes_each_time(jax):
    ref = jax.new_ref(0.0)
    stash = stashing(jax)
    out, pull = jax.vjp(lambda x: stash(ref, x) * 3, 2.0)
    seen = [float(ref[...])]
    for _ in range(2):
        pull(1.0)
        seen.append(float(ref[...]))
    assert (float(out), seen) == (6, [0, 3, 6])


@pytest.mark.ours  # JAX has no custom_jvp of a reference under jit
def test_functions_with_rules_write_to_references(jax, jnp):
    @jax.custom_vjp
    def f(ref, x):
        ref[...] += x
        return (x**2).sum()

    f.defvjp(lambda ref, x: (f(ref, x), (ref, x)), lambda res, ct: (None, ct * res[1] * res[0][...]))
    ref, x = jax.new_ref(jnp.zeros(3)), jnp.ones(3)
    assert f(ref, x) == 3 and ref[...].tolist() == [1, 1, 1]
    assert jax.grad(f, 1)(ref, x).tolist() == [2, 2, 2] and ref[...].tolist() == [2, 2, 2]
    assert jax.jit(jax.grad(f, 1))(ref, x).tolist() == [3, 3, 3] and ref[...].tolist() == [3, 3, 3]

    @jax.custom_jvp
    def g(ref, x):
        ref[...] += 1
        return x

    g.defjvp(lambda primals, tangents: (primals[1], 5 * tangents[1]))
    count = jax.new_ref(0.0)
    assert g(count, 3.0) == 3 and count[...] == 1
    assert jax.jit(g)(count, 3.0) == 3 and count[...] == 2
    assert jax.grad(lambda x: g(count, x))(1.0) == 5 and count[...] == 2

    @jax.custom_batching.custom_vmap
    def h(ref, x):
        ref[...] += 1
        return x

    h.def_vmap(lambda n, batched, ref, x: (x * n, True))
    assert h(count, 3.0) == 3 and count[...] == 3


def test_references_made_from_perturbed_values(jax):
    @jax.custom_vjp
    def read(ref):
        return ref[...] * 2

    read.defvjp(lambda ref: (read(ref), None), lambda _, ct: (7 * ct,))
    for f in (read, jax.jit(read)):
        assert f(jax.new_ref(3.0)) == 6
        assert jax.grad(lambda x, f=f: f(jax.new_ref(x)))(3.0) == 7


def test_forbidden_uses_of_references_in_rules(jax):
    f = jax.custom_vjp(lambda a_ref, b_ref: None)
    f.defvjp(lambda *_: (None, None), lambda *_: (None, None))
    ref = jax.new_ref(0.0)
    for call in (f, jax.jit(f)):
        with pytest.raises(ValueError, match="a_ref and b_ref"):
            call(ref, ref)
    g = jax.custom_vjp(lambda ref: ref)
    g.defvjp(lambda ref: (ref, None), lambda *_: (None,))
    for call in (g, jax.jit(g)):
        with pytest.raises(ValueError, match="returned a mutable array"):
            call(ref)
    h = jax.custom_vjp(lambda x, ref: x)
    h.defvjp(lambda x, ref: (x, jax.new_ref(0.0)), lambda ref, ct: (ct, None))
    with pytest.raises(ValueError, match="custom_vjp fwd function"):
        jax.vjp(lambda x: h(x, ref), 1.0)


# ---------------------------------------------------------------- kinds, checkpoint


@pytest.mark.parametrize("jitted", [False, True])
def test_references_that_derivatives_do_not_see(jax, jitted):
    @jax.checkpoint
    def f(y, ref):
        out = y * y
        ref[...] += out
        return out

    f = jax.jit(f) if jitted else f
    ref = jax.new_ref(1.0, kind="no_grad_no_remat")
    assert jax.grad(f)(2.0, ref) == 4 and ref[...] == 5


@pytest.mark.ours  # JAX writes, or raises, by where the value comes from
def test_other_references_refuse_what_is_differentiated(jax):
    f = jax.checkpoint(lambda y, ref: ref.__setitem__(..., y * y) or y)
    with pytest.raises(Exception, match="differentiated value on a non-differentiated array reference"):
        jax.grad(f)(2.0, jax.new_ref(1.0))


# ---------------------------------------------------------------- stages


def test_ahead_of_time_stages(jax, jnp):
    @jax.jit
    def f(ref, x):
        ref[0] += x
        return ref[...].sum()

    ref = jax.new_ref(jnp.zeros(3))
    compiled = f.lower(ref, 1.0).compile()
    assert (compiled(ref, 1.0), compiled(ref, 2.0), ref[...].tolist()) == (1, 3, [3, 0, 0])
    other = jax.new_ref(jnp.ones(3))
    assert compiled(other, 1.0) == 4 and ref[0] == 3
    assert f.trace(ref, 1.0).lower().compile()(ref, 1.0) == 4
    assert f.eval_shape(ref, 1.0).shape == () and ref[0] == 4
    g = jax.jit(lambda x: ref.__setitem__(1, x))
    compiled = g.lower(1.0).compile()
    compiled(5.0)
    compiled(6.0)
    assert ref[...].tolist() == [4, 6, 0]
    struct = jax.ShapeDtypeStruct((3,), jnp.float32, is_ref=True)
    assert struct.is_ref and f.lower(struct, 1.0).compile()(ref, 1.0) == 11


def test_programs_and_types_of_functions_of_references(jax, jnp):
    ref = jax.new_ref(jnp.arange(3.0))
    assert jax.make_jaxpr(lambda r, x: r[0] + x)(ref, 1.0).jaxpr.outvars[0].aval.shape == ()
    assert jax.eval_shape(lambda r: r[1:], ref).shape == (2,)
    jax.make_jaxpr(lambda r: r.__setitem__(0, 5.0))(ref)
    assert ref[0] == 0


# ---------------------------------------------------------------- parts

PARTS = [
    (slice(1, 4), ..., 3.0), (slice(1, 5), slice(0, 2), [3.0, 4.0]), (slice(1, 5), 2, 3.0), (slice(None, None, 2), slice(1, 3), [7.0, 8.0]), ([0, 3], 1, 2.0),
]  # fmt: skip


@pytest.mark.ours  # JAX has parts in programs alone, and of slices
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(("first", "second", "value"), PARTS)
def test_parts_of_references(jax, jnp, first, second, value, jitted):
    ref, copy = jax.new_ref(jnp.arange(6.0)), np.arange(6.0, dtype=np.float32)
    picked = np.arange(6)[first][second]

    def run(v):
        part = ref.at[first].at[second] if second is not ... else ref.at[first]
        part[...] = jnp.broadcast_to(v, part.shape)
        got = part[...]
        part.addupdate(jnp.ones(part.shape))
        return got

    got = (jax.jit(run) if jitted else run)(jnp.asarray(value))
    copy[picked] = value
    assert np.array_equal(got, copy[picked])
    copy[picked] += 1
    assert np.array_equal(ref[...], copy)


def test_values_of_parts_of_references(jax, jnp):
    @jax.jit
    def f(x):
        ref = jax.new_ref(jnp.ones(5))
        ref.at[1:4][...] += x
        return (ref[...] ** 2).sum()

    assert jax.grad(f)(jnp.array([1.0, 2.0, 3.0])).tolist() == [4, 6, 8]


def test_loops_do_not_carry_references(jax, jnp):
    ref = jax.new_ref(jnp.zeros(3))
    for run in (
        lambda: jax.lax.scan(lambda c, x: (c, None), ref, None, length=2),
        lambda: jax.lax.fori_loop(0, 2, lambda i, c: c, ref),
        lambda: jax.lax.while_loop(lambda c: True, lambda c: c, ref),
        lambda: jax.lax.cond(True, lambda: jax.new_ref(0.0), lambda: jax.new_ref(1.0)),
        lambda: jax.jit(lambda r: r)(ref),
        lambda: jax.jit(jax.new_ref)(1.0),
    ):
        with pytest.raises(ValueError, match="traced for .* returned a mutable array reference"):
            run()
    with pytest.raises(ValueError, match=r"appeared at both c\[0\] and c\[1\]"):
        jax.lax.scan(lambda c, x: (c, None), (ref, ref), None, length=2)
