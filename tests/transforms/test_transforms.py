"""Laws of the transforms on generated programs: jit is eager bit for bit, vmap is a loop, jvp is a difference, vjp is its transpose."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import ON_JAX, same_bits, x64

N = 3  # the length of the vectors that generated programs work on


def steps(jax):
    """Smooth steps from a vector x and a vector y of length N to a vector of length N."""
    jnp, lax = jax.numpy, jax.lax
    square = np.random.default_rng(0).standard_normal((N, N)) * 0.3

    def scanned(x, y):
        return lax.scan(lambda c, v: (jnp.tanh(c + v), c * v), x[0], y)[1]

    def counted(x, y):
        return lax.fori_loop(0, 3, lambda i, v: jnp.sin(v) + 0.5 * y, x)

    def branched(x, y):
        return lax.cond(jnp.sum(x) > jnp.sum(y), lambda x, y: x * y, lambda x, y: jnp.cos(x) - y, x, y)

    return {
        "add": lambda x, y: x + y,
        "mul": lambda x, y: x * y,
        "sub": lambda x, y: x - 2.0 * y,
        "div": lambda x, y: x / (1.0 + y * y),
        "sin": lambda x, y: jnp.sin(x),
        "tanh": lambda x, y: jnp.tanh(x + y),
        "exp": lambda x, y: jnp.exp(-x * x),
        "log": lambda x, y: jnp.log(2.0 + x * x),
        "power": lambda x, y: x**3,
        "where": lambda x, y: jnp.where(x > y, x * 1.5, y),
        "sum": lambda x, y: x - jnp.sum(x),
        "cumsum": lambda x, y: jnp.cumsum(x * y),
        "matmul": lambda x, y: jnp.asarray(square, x.dtype) @ x + y,
        "outer": lambda x, y: jnp.sum(jnp.outer(x, y) * 0.1, axis=0),
        "flip": lambda x, y: x[::-1],
        "gather": lambda x, y: x[np.array([2, 0, 0])],
        "scatter": lambda x, y: jnp.asarray(x).at[np.array([0, 2, 0])].add(y),
        "slice": lambda x, y: jnp.concatenate([x[1:], y[:1]]),
        "pad": lambda x, y: jnp.pad(x, (1, 0))[:N] + y,
        "sort": lambda x, y: jnp.sort(x + y),
        "max": lambda x, y: x * jnp.max(y),
        "softmax": lambda x, y: jax.nn.softmax(x) * y,
        "call": lambda x, y: jax.jit(lambda u, v: jnp.sin(u) * v)(x, y),
        "checkpoint": lambda x, y: jax.checkpoint(lambda u: jnp.sin(jnp.sin(u)))(x) + y,
        "scan": scanned,
        "fori": counted,
        "cond": branched,
    }


@st.composite
def programs(draw, max_steps=4):
    """A list of (step, operand, operand): each appends a vector to the list of those there are; two are given."""
    names = sorted(STEP_NAMES)
    out = []
    for n in range(draw(st.integers(1, max_steps))):
        out.append((draw(st.sampled_from(names)), draw(st.integers(0, n + 1)), draw(st.integers(0, n + 1))))
    return out


STEP_NAMES = [
    "add", "mul", "sub", "div", "sin", "tanh", "exp", "log", "power", "where", "sum", "cumsum", "matmul", "outer", "flip", "gather", "scatter",
    "slice", "pad", "sort", "max", "softmax", "call", "checkpoint", "scan", "fori", "cond",
]  # fmt: skip


def build(jax, program):
    table = steps(jax)

    def f(x, y):
        values = [x, y]
        for name, i, j in program:
            values.append(table[name](values[i], values[j]))
        return values[-1]

    return f


def vectors(seed, *lead, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.5, 1.5, (*lead, N)).astype(dtype), rng.uniform(-1.5, 1.5, (*lead, N)).astype(dtype)


few = settings(max_examples=25 if ON_JAX else 100, deadline=None)
case = dict(program=programs(), seed=st.integers(0, 2**20))


def test_steps_are_all_drawn(jax):
    assert sorted(steps(jax)) == sorted(STEP_NAMES)


@few
@given(**case)
def test_jit_is_eager(jax, program, seed):
    f, (x, y) = build(jax, program), vectors(seed)
    same_bits(jax.jit(f)(x, y), f(jax.numpy.asarray(x), jax.numpy.asarray(y)))


@few
@given(**case, axis=st.integers(0, 1), out=st.integers(0, 1), lanes=st.integers(1, 4))
def test_vmap_is_a_loop(jax, program, seed, axis, out, lanes):
    f, (x, y) = build(jax, program), vectors(seed, lanes)
    want = np.stack([np.asarray(f(jax.numpy.asarray(a), jax.numpy.asarray(b))) for a, b in zip(x, y, strict=True)], out)
    got = jax.vmap(f, in_axes=(axis, 0), out_axes=out)(np.moveaxis(x, 0, axis), y)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    one = jax.vmap(f, in_axes=(0, None), out_axes=out)(x, y[0])
    np.testing.assert_allclose(one, np.stack([np.asarray(f(jax.numpy.asarray(a), jax.numpy.asarray(y[0]))) for a in x], out), rtol=2e-5, atol=2e-5)


@few
@given(**case)
def test_jvp_is_a_difference(jax, program, seed):
    with x64(jax):
        f, (x, y), (dx, dy) = build(jax, program), vectors(seed, dtype=np.float64), vectors(seed + 1, dtype=np.float64)
        _, tangent = jax.jvp(f, (x, y), (dx, dy))
        h = 1e-6
        at = lambda s: np.asarray(f(jax.numpy.asarray(x + s * dx), jax.numpy.asarray(y + s * dy)))
        forward, backward = (at(h) - at(0)) / h, (at(0) - at(-h)) / h
        smooth = np.abs(forward - backward) < 1e-3 * (1 + np.abs(forward))  # no kink nearby
        np.testing.assert_allclose(np.asarray(tangent)[smooth], ((at(h) - at(-h)) / (2 * h))[smooth], rtol=1e-4, atol=1e-4)


@few
@given(**case)
def test_vjp_is_the_transpose_of_jvp(jax, program, seed):
    with x64(jax):
        f, (x, y), (dx, dy) = build(jax, program), vectors(seed, dtype=np.float64), vectors(seed + 1, dtype=np.float64)
        ct = vectors(seed + 2, dtype=np.float64)[0]
        _, tangent = jax.jvp(f, (x, y), (dx, dy))
        for g in (f, jax.jit(f)):
            _, pull = jax.vjp(g, x, y)
            cx, cy = pull(jax.numpy.asarray(ct))
            np.testing.assert_allclose(np.vdot(ct, tangent), np.vdot(cx, dx) + np.vdot(cy, dy), rtol=1e-9, atol=1e-9)
        _, push = jax.linearize(f, x, y)
        np.testing.assert_allclose(push(dx, dy), tangent, rtol=1e-12, atol=1e-12)


@few
@given(program=programs(3), seed=st.integers(0, 2**20))
def test_second_derivatives_agree_however_they_are_taken(jax, program, seed):
    with x64(jax):
        f, (x, y) = build(jax, program), vectors(seed, dtype=np.float64)
        scalar = lambda x: jax.numpy.sum(f(x, y) ** 2)
        forward_over_reverse = jax.jacfwd(jax.grad(scalar))(x)
        reverse_over_reverse = jax.jacrev(jax.grad(scalar))(x)
        forward_over_forward = jax.jacfwd(jax.jacfwd(scalar))(x)
        scale = 1 + float(np.max(np.abs(forward_over_reverse)))
        np.testing.assert_allclose(forward_over_reverse, reverse_over_reverse, atol=1e-8 * scale)
        np.testing.assert_allclose(forward_over_reverse, forward_over_forward, atol=1e-8 * scale)


@few
@given(program=programs(3), seed=st.integers(0, 2**20))
def test_orders_of_transforms_agree(jax, program, seed):
    jit, vmap, grad = jax.jit, jax.vmap, jax.grad
    f, (x, y) = build(jax, program), vectors(seed, 2)
    loss = lambda x, y: jax.numpy.sum(f(x, y))
    want = np.stack([np.asarray(grad(loss)(jax.numpy.asarray(a), jax.numpy.asarray(b))) for a, b in zip(x, y, strict=True)])
    for g in (vmap(grad(loss)), jit(vmap(grad(loss))), vmap(jit(grad(loss))), vmap(grad(jit(loss))), grad(lambda x, y: vmap(loss)(x, y).sum())):
        np.testing.assert_allclose(g(x, y), want, rtol=1e-4, atol=1e-4)


@pytest.mark.ours
def test_rules_emit_as_many_equations_at_every_batch_size(jax):
    for name in STEP_NAMES:
        f = build(jax, [(name, 0, 1)])
        sizes = set()
        for lanes in (2, 5):
            x, y = vectors(0, lanes)
            sizes.add(len(jax.make_jaxpr(jax.vmap(f))(x, y).jaxpr.eqns))
        assert len(sizes) == 1, name


def test_vmap_sums_what_has_no_axis(jax, jnp):
    x = jnp.arange(6.0).reshape(2, 3)
    mapped = lambda f, **k: jax.vmap(f, sum_match=True, **k)
    np.testing.assert_array_equal(mapped(lambda v: v, out_axes=None)(x), x.sum(0))
    np.testing.assert_array_equal(mapped(lambda v: v, in_axes=1, out_axes=None)(x), x.sum(1))
    np.testing.assert_array_equal(mapped(lambda v: v, out_axes=None, axis_name="i")(x), x.sum(0))
    total, rows, one, most = mapped(lambda v: (v, v, 3.0, {"a": v > 1}), out_axes=(None, 0, None, {"a": None}))(x)
    np.testing.assert_array_equal(total, x.sum(0))
    np.testing.assert_array_equal(rows, x)
    assert one == 3.0 and most["a"].dtype == "int32" and most["a"].tolist() == [1, 1, 2]
    f = mapped(lambda v: v * v, out_axes=None)
    np.testing.assert_array_equal(jax.jit(f)(x), (x * x).sum(0))
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(x), 2 * x)
    np.testing.assert_array_equal(mapped(mapped(lambda v: v, out_axes=None), out_axes=None)(x), 15.0)
    with pytest.raises(ValueError, match="None"):
        jax.vmap(lambda v: v, out_axes=None)(x)


def test_numbers_beside_a_jacobian_stay_numbers(jax, jnp):
    x, aux = jnp.arange(3.0), {"n": 5, "on": True, "z": 2j, "x": 1.5}
    for transform in (jax.jacfwd, jax.jacrev, jax.hessian):
        out = transform(lambda x, aux=aux: ((x * x).sum(), (aux, x + 1)), has_aux=True)(x)[1]
        assert {k: (type(v), v) for k, v in out[0].items()} == {k: (type(v), v) for k, v in aux.items()}
        np.testing.assert_array_equal(out[1], x + 1)


def test_composites_of_numbers_are_of_arrays(jax, jnp, lax):
    double = lax.composite(lambda x, *, by=2: x * by, "my.double")
    for x, dtype in [(2.0, "float32"), (2, "int32"), (np.int8(2), "int8"), (np.float32(2), "float32")]:
        for f in (double, jax.jit(double)):
            out = f(x)
            assert isinstance(out, jax.Array) and (out, out.dtype) == (4, dtype), x
            assert out.weak_type == isinstance(x, (int, float))
    assert double(np.arange(3.0), by=3).tolist() == [0, 3, 6]
    tree = lax.composite(lambda d: {"sum": d["x"] + d["y"], "none": d["none"]}, "my.sum")
    assert tree({"x": 1.0, "y": 2, "none": None}) == {"sum": 3.0, "none": None}
    for f in (lambda x: "a", lambda x: (x, object())):
        with pytest.raises(TypeError):
            lax.composite(f, "my.other")(1.0)
