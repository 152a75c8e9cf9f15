"""Windows of arrays that are updated in place by what a kernel computes: at once, in loops, along every axis, whatever the kernel reads of the array itself."""

import ferrax as jax
import ferrax.lax as lax
import ferrax.numpy as jnp
import numpy as np
import pytest

SHAPES = [(40,), (9, 14), (5, 1, 12), (3, 4, 5, 6), (70_000,), (260, 270)]


def window(r, shape):
    """Slices of at least one element along each axis, some of them whole."""
    at = []
    for n in shape:
        size = n if r.random() < 0.3 else int(r.integers(1, n + 1))
        start = int(r.integers(0, n - size + 1))
        at.append(slice(start, start + size))
    return tuple(at)


def moved(r, shape, at):
    """A window of the same sizes somewhere else."""
    starts = [int(r.integers(0, n - (s.stop - s.start) + 1)) for n, s in zip(shape, at, strict=True)]
    return tuple(slice(b, b + s.stop - s.start) for b, s in zip(starts, at, strict=True))


def step(xp, put, kind, at, other, turned, a, b):
    """The array `b` with a window written, by what is read of itself, of another window of itself, or of `a` alone."""
    if kind == "elsewhere":
        value = a[other] * 2 + 1
    elif kind == "itself":
        value = b[at] * 2 + a[other]
    elif kind == "neighbours":
        value = b[other] - b[at]
    elif kind == "reversed":
        value = a[other][turned] + 3
    elif kind == "row":
        value = xp.broadcast_to(a[other][..., :1], a[other].shape) + b[at]
    else:
        value = xp.sum(a[other][..., None] * xp.arange(1, 4).astype(a.dtype), -1)
    return put(b, at, value.astype(b.dtype))


def put_of_numpy(b, at, value):
    b = b.copy()
    b[at] = value
    return b


KINDS = ["elsewhere", "itself", "neighbours", "reversed", "row", "sums"]


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "bool", "complex64", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_window_gets_the_kernel_s_results(shape, kind, dtype):
    if dtype == "bool" and kind == "neighbours":
        dtype = "uint8"
    r = np.random.default_rng([SHAPES.index(shape), KINDS.index(kind), len(dtype)])
    for _ in range(3 if np.prod(shape) < 10_000 else 1):
        at = window(r, shape)
        other, turned = moved(r, shape, at), tuple(slice(None, None, -1) for _ in shape)
        a, b = (r.integers(0, 4, shape).astype(jnp.dtype(dtype)) for _ in range(2))

        def once(a, b):
            return step(jnp, lambda b, at, v: b.at[at].set(v), kind, at, other, turned, a, b)

        want = step(np, put_of_numpy, kind, at, other, turned, a, b)
        # an array that the program made is updated in place, and one that stays is not
        made = jax.jit(lambda a, b: once(a, b + jnp.zeros((), b.dtype)))
        np.testing.assert_array_equal(np.asarray(made(a, b)).astype(want.dtype), want)
        kept = jax.jit(lambda a, b: (once(a, b), b))
        got, same = kept(a, b)
        np.testing.assert_array_equal(np.asarray(got).astype(want.dtype), want)
        np.testing.assert_array_equal(np.asarray(same), b)
        want = b
        for _ in range(3):
            want = step(np, put_of_numpy, kind, at, other, turned, a, want)
        looped = jax.jit(lambda a, b: lax.fori_loop(0, 3, lambda i, b: once(a, b), b))
        np.testing.assert_array_equal(np.asarray(looped(a, b)).astype(want.dtype), want)


def test_arrays_that_update_each_other():
    n = 300
    a = np.random.default_rng(0).integers(0, 5, (n, n)).astype(np.float32)

    def mean(a):
        return a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - a[2:, 1:-1] - a[:-2, 1:-1]

    def step(i, s):
        a, b = s
        b = b.at[1:-1, 1:-1].set(mean(a))
        return a.at[1:-1, 1:-1].set(mean(b) / 4), b

    f = jax.jit(lambda a: lax.fori_loop(0, 4, step, (a, a)))
    assert "into=window" in f.lower(a).compile().as_text()
    x, y = a.copy(), a.copy()
    for _ in range(4):
        y[1:-1, 1:-1] = mean(x)
        x[1:-1, 1:-1] = mean(y) / 4
    for got, want in zip(f(a), (x, y), strict=True):
        np.testing.assert_array_equal(got, want)
