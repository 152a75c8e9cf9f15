"""The laws that every primitive obeys, over its examples.

Shapes are as inferred; jit is eager, bit for bit; jvp is a finite difference; the transpose satisfies <A x, y> = <x, A' y>; vmap on every
axis is a loop, with as many equations at two lanes as at five.
"""

import itertools

import conftest
import numpy as np
import pytest
from strategies import ON_JAX, same_bits, x64

from examples import examples

TABLE = examples(conftest.load(conftest.LIBRARY))
EVERY = pytest.mark.parametrize("e", TABLE.values(), ids=TABLE.keys())
SMOOTH = pytest.mark.parametrize("e", [e for e in TABLE.values() if e.wrt], ids=[e.name for e in TABLE.values() if e.wrt])


def narrow(args):
    """Arguments as the default types have them."""
    return tuple(a.astype(np.float32) if a.dtype == np.float64 else a for a in map(np.asarray, args))


def leaves(jax, tree):
    return [np.asarray(x) for x in jax.tree_util.tree_leaves(tree)]


def arrays(jax, args):
    return tuple(jax.numpy.asarray(a) for a in args)


@EVERY
def test_shapes_are_as_inferred(jax, e):
    args = arrays(jax, narrow(e.args))
    described = jax.tree_util.tree_leaves(jax.eval_shape(e.f, *args))
    got = jax.tree_util.tree_leaves(e.f(*args))
    assert [(t.shape, t.dtype) for t in described] == [(g.shape, g.dtype) for g in got]


@EVERY
def test_jit_is_eager(jax, e):
    args = arrays(jax, narrow(e.args))
    for got, want in zip(leaves(jax, jax.jit(e.f)(*args)), leaves(jax, e.f(*args)), strict=True):
        same_bits(got, want)


def as_one(jax, e):
    """The example as a function of its differentiable arguments alone, and those."""
    args = arrays(jax, e.args)

    def f(*xs):
        full = list(args)
        for k, x in zip(e.wrt, xs, strict=True):
            full[k] = x
        return jax.tree_util.tree_leaves(e.f(*full))

    return f, tuple(args[k] for k in e.wrt)


def directions(xs, seed):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(x.shape) for x in xs)


@SMOOTH
def test_jvp_is_a_difference(jax, e):
    with x64(jax):
        f, xs = as_one(jax, e)
        ts = directions(xs, 1)
        out, tangents = jax.jvp(f, xs, arrays(jax, ts))
        h = 1e-5
        at = lambda s: leaves(jax, f(*(jax.numpy.asarray(np.asarray(x) + s * h * t) for x, t in zip(xs, ts, strict=True))))
        for t, o, want in zip(tangents, out, [(a - b) / (2 * h) for a, b in zip(at(1), at(-1), strict=True)], strict=True):
            if np.asarray(o).dtype.kind == "f":
                np.testing.assert_allclose(t, want, rtol=1e-6, atol=1e-6)


@SMOOTH
def test_transpose_is_the_adjoint(jax, e):
    with x64(jax):
        f, xs = as_one(jax, e)
        floating = lambda *xs: [o for o in f(*xs) if np.dtype(o.dtype).kind == "f"]
        ts = directions(xs, 2)
        out, pull = jax.vjp(floating, *xs)
        cts = directions([np.asarray(o) for o in out], 3)
        _, tangents = jax.jvp(floating, xs, arrays(jax, ts))
        back = pull([jax.numpy.asarray(c) for c in cts])
        dot = lambda a, b: sum(float(np.vdot(np.asarray(x), y)) for x, y in zip(a, b, strict=True))
        np.testing.assert_allclose(dot(tangents, cts), dot(back, ts), rtol=1e-9, atol=1e-9)
        under_jit = jax.jit(lambda *xs: jax.vjp(floating, *xs)[1]([jax.numpy.asarray(c) for c in cts]))(*xs)
        for a, b in zip(leaves(jax, under_jit), leaves(jax, back), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def lanes_of(args, mapped, n):
    """n variations of the arguments: floats move a little, integers and truth values are rolled along their own axes."""
    out = []
    for lane in range(n):
        row = []
        for a, m in zip(args, mapped, strict=True):
            if m and a.dtype.kind == "f":
                a = a + np.asarray(0.01 * lane, a.dtype)
            elif m and a.ndim:
                a = np.roll(a, lane, -1)
            row.append(a)
        out.append(row)
    return out


@EVERY
def test_vmap_is_a_loop_on_every_axis(jax, e):
    args = narrow(e.args)
    if not args:
        return
    choices = [c for c in itertools.product([True, False], repeat=len(args)) if any(c)][:4]
    for mapped in choices:
        lanes = lanes_of(args, mapped, 3)
        want = [leaves(jax, e.f(*arrays(jax, row))) for row in lanes]
        ranks = [a.ndim for a, m in zip(args, mapped, strict=True) if m]
        for axis in range(max(ranks) + 1):
            axes = [min(axis, a.ndim) if m else None for a, m in zip(args, mapped, strict=True)]
            stacked = [np.stack([row[k] for row in lanes], ax) if ax is not None else args[k] for k, ax in enumerate(axes)]
            for out_axis in (0, -1):
                got = leaves(jax, jax.vmap(e.f, in_axes=tuple(axes), out_axes=out_axis)(*arrays(jax, stacked)))
                for n, g in enumerate(got):
                    np.testing.assert_allclose(g, np.stack([w[n] for w in want], out_axis), rtol=2e-5, atol=2e-5)


@SMOOTH
def test_transforms_commute_with_vmap(jax, e):
    """vmap(grad) and grad(vmap) of the sum of squares."""
    f, xs = as_one(jax, e)
    xs = tuple(jax.numpy.asarray(np.asarray(x, np.float32)) for x in xs)
    jnp = jax.numpy
    loss = lambda *xs: sum(jnp.sum(o * o) for o in f(*xs) if np.dtype(o.dtype).kind == "f")
    numbers = tuple(range(len(xs)))
    want = jax.grad(loss, argnums=numbers)(*xs)
    stacked = tuple(jnp.stack([x, x]) for x in xs)
    one = jax.vmap(jax.grad(loss, argnums=numbers))(*stacked)
    other = jax.grad(lambda *xs: jnp.sum(jax.vmap(loss)(*xs)), argnums=numbers)(*stacked)
    for w, a, b in zip(want, one, other, strict=True):
        np.testing.assert_allclose(np.asarray(a)[1], w, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(np.asarray(b)[1], w, rtol=1e-4, atol=1e-4)


@pytest.mark.ours
@EVERY
def test_rules_emit_as_many_equations_at_every_batch_size(jax, e):
    args = narrow(e.args)
    if not args:
        return

    def count(n):
        stacked = [np.stack([a] * n) for a in args]
        return str(jax.make_jaxpr(jax.vmap(e.f))(*arrays(jax, stacked))).count(" = ")

    assert count(2) == count(5)


@EVERY
def test_an_example_uses_its_primitive(jax, e):
    if ON_JAX and e.primitive in ("scatter", "stop_gradient"):
        return
    text = str(jax.make_jaxpr(e.f)(*arrays(jax, narrow(e.args))))
    assert e.primitive in ("stop_gradient",) or f" {e.primitive}" in text, text
