"""Windows of a scatter that overlap: updates apply position by position, each window in row-major order, whatever the layout of the updates."""

import numpy as np
import pytest
from conftest import ON_JAX

COMBINE = {"set": lambda old, new: new, "add": np.add, "mul": np.multiply, "min": np.minimum}


def by_steps(operand, indices, updates, window_dims, combine):
    """The updates one by one; windows out of bounds are dropped."""
    out = operand.copy()
    others = [a for a in range(updates.ndim) if a not in window_dims]
    sizes = [updates.shape[a] for a in window_dims]
    for position in np.ndindex(*(updates.shape[a] for a in others)):
        start = indices[position]
        if any(s < 0 or s + size > n for s, size, n in zip(start, sizes, operand.shape, strict=True)):
            continue
        for within in np.ndindex(*sizes):
            u = np.empty(updates.ndim, int)
            u[others], u[list(window_dims)] = position, within
            at = tuple(start + np.array(within))
            out[at] = combine(out[at], updates[tuple(u)])
    return out


def generated(seed):
    """A scatter: operand, indices, updates and their axes that run over a window."""
    rng = np.random.default_rng(seed)
    rank, most = rng.integers(1, 3), (6, 12, 40)[seed % 3]
    shape = rng.integers(3, most, rank)
    sizes = [int(rng.integers(1, n + 1)) for n in shape]
    positions = rng.integers(1, (3, 6, 12)[seed % 3], rng.integers(1, 3))
    window_dims = tuple(sorted(rng.choice(rank + len(positions), rank, replace=False).tolist()))
    window, outer = iter(sizes), iter(positions)
    updates = [next(window) if a in window_dims else next(outer) for a in range(rank + len(positions))]
    indices = np.stack([rng.integers(-1, n - size + 2, positions) for n, size in zip(shape, sizes, strict=True)], -1)
    # near 1, so that no product is subnormal
    return rng.uniform(0.5, 1.5, shape).astype(np.float32), indices.astype(np.int32), rng.uniform(0.5, 1.5, updates).astype(np.float32), window_dims


def scatter(lax, kind, window_dims, rank):
    numbers = lax.ScatterDimensionNumbers(update_window_dims=window_dims, inserted_window_dims=(), scatter_dims_to_operand_dims=tuple(range(rank)))
    f = lax.scatter if kind == "set" else getattr(lax, f"scatter_{kind}")
    return lambda operand, indices, updates: f(operand, indices, updates, numbers, mode="drop")


@pytest.mark.parametrize("kind", COMBINE)
@pytest.mark.parametrize("seed", range(60))
def test_updates_apply_position_by_position(jax, lax, seed, kind):
    *arrays, window_dims = generated(seed)
    want = by_steps(*arrays, window_dims, COMBINE[kind])
    f = scatter(lax, kind, window_dims, arrays[0].ndim)

    def in_a_loop(operand, indices, updates):
        return lax.fori_loop(0, 1, lambda k, x: f(x, indices + 0 * k, updates), operand)

    for program in (f, jax.jit(f), jax.jit(in_a_loop)):
        np.testing.assert_array_equal(np.asarray(program(*arrays)), want)
    members = jax.vmap(f, (0, None, 0))(np.stack([arrays[0]] * 2), arrays[1], np.stack([arrays[2]] * 2))
    np.testing.assert_array_equal(np.asarray(members), np.stack([want] * 2))


@pytest.mark.skipif(ON_JAX, reason="JAX from PyPI has no such device")
@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_the_last_position_wins_on_a_gpu(jax, lax, gpu, seed):
    *arrays, window_dims = generated(seed)
    got = jax.jit(scatter(lax, "set", window_dims, arrays[0].ndim))(*jax.device_put(arrays, gpu))
    np.testing.assert_array_equal(np.asarray(got), by_steps(*arrays, window_dims, COMBINE["set"]))
