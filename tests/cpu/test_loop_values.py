"""Loops give what their steps give one by one: integers that wrap and are converted, carries that are passed on, updates that read what they write."""

import ferrax as jax
import ferrax.lax as lax
import ferrax.numpy as jnp
import numpy as np
import pytest

# around the widths of vectors, with one element and none
SIZES = [0, 1, 3, 7, 8, 9, 15, 16, 17, 33]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def steps(xp, dtype, n, k):
    """Integers of this dtype that may wrap: by vectors of ascending numbers, by a counter, by both, and back from a narrower dtype."""
    a = xp.arange(n).astype(dtype)
    two = np.dtype(dtype).type(2)
    return {
        "less": lambda i: a - k,
        "more": lambda i: a + k,
        "from": lambda i: k - a,
        "scaled": lambda i: a * two - k,
        "counted": lambda i: a - k + xp.asarray(i).astype(dtype),
        "narrowed": lambda i: (xp.arange(n) - 2**31 + xp.asarray(i).astype("int64")).astype(dtype),
        "widened": lambda i: (xp.arange(n).astype("int32") - xp.asarray(k).astype("int32")).astype(dtype),
    }


@pytest.mark.parametrize("wide", ["int64", "uint64", "int32", "float64", "float32"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_that_wrap(dtype, wide):
    k = np.dtype(dtype).type(3)
    for n in SIZES:
        for name, f in steps(jnp, dtype, n, jnp.asarray(k)).items():

            def body(i, c, f=f):
                x = f(i)
                return c + x.astype(wide) + (x > 1).astype(wide)

            got = jax.jit(lambda body=body, n=n: lax.fori_loop(0, 3, body, jnp.zeros(n, wide)))()
            want = np.zeros(n, wide)
            with np.errstate(all="ignore"):
                g = steps(np, dtype, n, k)[name]
                for i in range(3):
                    x = g(i)
                    want = (want + x.astype(wide) + (x > 1).astype(wide)).astype(wide)
            np.testing.assert_array_equal(got, want, err_msg=f"{name} of {n}")


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
@pytest.mark.parametrize("n", [5, 16, 33])
def test_indices_that_wrap(dtype, n):
    x = np.arange(100.0)

    def body(i, c):
        at = (jnp.arange(n, dtype=dtype) - k).astype("int64") % 100
        return c.at[at % n].add(x_[at])

    k, x_ = jnp.asarray(7).astype(dtype), jnp.asarray(x)
    got = jax.jit(lambda: lax.fori_loop(0, 2, body, jnp.zeros(n)))()
    want = np.zeros(n)
    at = (np.arange(n).astype(dtype) - np.asarray(7).astype(dtype)).astype("int64") % 100
    for _ in range(2):
        np.add.at(want, at % n, x[at])
    np.testing.assert_array_equal(got, want)


BODIES = {
    "sum": lambda c, a: (c + a, None),
    "copy": lambda c, a: (c, c),
    "sums": lambda c, a: (c + a, c + a),
    "before": lambda c, a: (c * a + 1, c),
    "elements": lambda c, a: (c, a),
    "shift": lambda c, a: (jnp.roll(c, 1, -1) if c.ndim else c, c * a),
    "last": lambda c, a: (a, c),
    "greatest": lambda c, a: (jnp.maximum(c, a), jnp.sin(c)),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (8,), (17,), (48,), (0,)])
@pytest.mark.parametrize("body", BODIES)
def test_scans_and_their_gradients(body, shape, reverse):
    r = np.random.default_rng(len(body))
    init = jnp.asarray(r.standard_normal(shape))
    for length in [0, 1, 2, 7, 9]:
        xs = jnp.asarray(r.standard_normal((length, *shape)))

        def run(init, xs):
            c, ys = lax.scan(BODIES[body], init, xs, reverse=reverse)
            return c, ys

        def loss(init, xs):
            c, ys = run(init, xs)
            return jnp.cos(c).sum() + (0.0 if ys is None else (ys * 1.5).sum())

        grad = jax.grad(loss, (0, 1))
        with jax.disable_jit(length > 0):  # without iterations the results' types are not known there
            want = run(init, xs), grad(init, xs)
        got = jax.jit(run)(init, xs), jax.jit(grad)(init, xs)
        batched = jax.jit(jax.vmap(run))(jnp.stack([init] * 3), jnp.stack([xs] * 3))
        near = lambda g, w: np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12, err_msg=f"{length}")
        jax.tree.map(near, got, want)
        jax.tree.map(lambda g, w: near(g[1], w), batched, want[0])


UPDATES = ["set", "add", "multiply", "max", "min", "subtract"]


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("update", UPDATES)
def test_updates_of_what_they_read(update):
    """The array that is updated is an operand of its own update, as it is, as a view, and within a loop."""
    r = np.random.default_rng(3)
    change = lambda ref, x: getattr(ref, update)(x)
    order = np.asarray(r.permutation(12))

    def within(i, a):
        return change(a.at[:, i % a.shape[1]], a[:, 0])

    programs = {
        "whole": (lambda x, i: change(jnp.sin(x)[None].at[i], jnp.sin(x)), (12,)),
        "same": (lambda x, i: (lambda a: change(a[None].at[i], a))(jnp.sin(x)), (12,)),
        "permuted": (lambda x, i: change(x.at[order.reshape(3, 4)], x.reshape(3, 4)), (12,)),
        "sliced": (lambda x, i: change(x.at[4:8], x[:4]), (12,)),
        "overlapping": (lambda x, i: change(x.at[1:], x[:-1]), (12,)),
        "turned": (lambda x, i: change(x.at[::-1], x), (12,)),
        "row": (lambda x, i: change(x.at[i], x[:, 0]), (6, 6)),
        "column": (lambda x, i: lax.fori_loop(0, 3, within, x), (17, 1)),
        "columns": (lambda x, i: lax.fori_loop(0, 3, within, x), (17, 3)),
        "square": (lambda x, i: lax.fori_loop(0, 3, within, x), (40, 40)),
        "scanned": (lambda x, i: lax.scan(lambda a, j: (change(a.at[j], a[0]), a[j]), x, jnp.arange(3)), (5, 70)),
        "window": (lambda x, i: lax.dynamic_update_slice(x, x[:3] * 2, (i,)), (12,)),
        "large": (lambda x, i: change(x.at[i], x[0]), (5, 70000)),
    }
    for name, (f, shape) in programs.items():
        x = jnp.asarray(r.standard_normal(shape))
        i = jnp.asarray(0)
        with jax.disable_jit():
            want = f(x, i)
        for jitted in (jax.jit(f), jax.jit(f, donate_argnums=0)):
            got = jitted(jnp.array(x), i)
            jax.tree.map(lambda g, w, name=name: np.testing.assert_array_equal(g, w, err_msg=name), got, want)


def test_scans_of_length_zero():
    for dtype in ["float32", "float64", "int32", "int8"]:
        for shape in [(0,), (0, 3), (0, 0)]:
            x = jnp.from_dlpack(np.zeros(shape, dtype))
            init = jnp.ones(shape[1:], dtype)
            c, ys = jax.jit(lambda x, init: lax.scan(lambda c, e: (c + e, c), init, x))(x, init)
            np.testing.assert_array_equal(c, init)
            assert ys.shape == shape


def test_a_loop_that_passes_its_carries_on_is_its_inits():
    n = 10**12
    f = jax.jit(lambda x: lax.fori_loop(0, n, lambda i, a: a * 1, x))
    np.testing.assert_array_equal(f(jnp.arange(3.0)), np.arange(3.0))
    nested = jax.jit(lambda x: lax.fori_loop(0, n, lambda i, a: lax.fori_loop(0, n, lambda j, b: b, a), x))
    np.testing.assert_array_equal(nested(jnp.arange(3.0) + 1j), np.arange(3.0) + 1j)
    pair = jax.jit(lambda x: lax.scan(lambda c, _: ((c[0], c[1]), None), (x, x + 1), length=n)[0])
    np.testing.assert_array_equal(pair(jnp.ones(2))[1], np.full(2, 2.0))
    slopes = jax.jit(jax.grad(lambda x: lax.scan(lambda c, _: (c, None), x, length=10)[0].sum()))
    np.testing.assert_array_equal(slopes(jnp.ones(3)), np.ones(3))


# Arrays of more than 2^31 bytes take gigabytes.
@pytest.mark.nightly
@pytest.mark.parametrize("first", [16381, 16380, 8191])
@pytest.mark.parametrize("column", [0, 16383])
def test_elements_beyond_32_bits(first, column):
    """Columns of rows whose displacement in bytes is around 2^31, or twice that for their last rows."""

    def run(A):
        return lax.fori_loop(0, 10, lambda i, A: A.at[first : first + 16, column].set(A[:16, 0] + i), A)

    A = jax.jit(run, donate_argnums=0)(jnp.zeros((16400, 16384)))
    np.testing.assert_array_equal(A[first : first + 16, column], np.full(16, 9.0))
    assert float(jnp.sum(A)) == 9.0 * 16


@pytest.mark.nightly
@pytest.mark.parametrize("rows", [8, 16])
def test_rows_that_are_farther_apart_than_32_bits(rows):
    """The elements of a vector are a row apart each: from the first to the last are more than 2^31 bytes."""
    n = 2**31 // 4 // (rows - 1) + 1000
    x = jax.jit(lambda: jnp.arange(rows, dtype="float32")[:, None] + jnp.zeros((1, n), "float32"))()
    turned = jax.jit(lambda x: x.T * 2)(x)
    for at in [slice(0, 3), slice(n - 3, n)]:
        np.testing.assert_array_equal(turned[at], np.broadcast_to(2 * np.arange(rows), (3, rows)))
