"""Derivatives through a selection with moves of elements, or sums over them, between it and a pole.

The law: an element that only masked results read has no derivative, wherever its values stand in between, and whichever case of the selection
leaves them out. What was not there before a move (the border of a pad) takes no case.
"""

import numpy as np
import pytest

f32 = np.float32

IDX = np.array([4, 1, 1, 3, 0])
MOVES = {
    "roll": lambda j, n, y: n.roll(y, 2),
    "roll of two axes": lambda j, n, y: n.roll(y.reshape(3, 2), (1, 1), (0, 1)),
    "pad": lambda j, n, y: n.pad(y, (1, 2)),
    "pad with holes": lambda j, n, y: j.lax.pad(y, n.zeros((), y.dtype), [(1, -2, 2)]),
    "cutting pad": lambda j, n, y: j.lax.pad(y, n.zeros((), y.dtype), [(-1, 3, 0)]),
    "concatenate": lambda j, n, y: n.concatenate([y[3:], n.ones(2, y.dtype), y]),
    "stack": lambda j, n, y: n.stack([y[::2], y[1::2]]),
    "slice": lambda j, n, y: y[1:5],
    "strided slice": lambda j, n, y: y[::-2],
    "dynamic_slice": lambda j, n, y: j.lax.dynamic_slice(y, (n.int32(2),), (3,)),
    "dynamic_update_slice": lambda j, n, y: j.lax.dynamic_update_slice(n.ones(8, y.dtype), y[1:4], (n.int32(3),)),
    "dynamic_update_slice over it": lambda j, n, y: j.lax.dynamic_update_slice(y, n.ones(2, y.dtype), (n.int32(3),)),
    "gather": lambda j, n, y: y[IDX],
    "gather that fills": lambda j, n, y: n.take(y, np.array([5, 17, 0]), mode="fill", fill_value=0.0),
    "gather of rows": lambda j, n, y: y.reshape(3, 2)[np.array([2, 0, 2])],
    "set": lambda j, n, y: n.ones(9, y.dtype).at[np.array([7, 2, 0, 4, 5, 8])].set(y),
    "set of a part": lambda j, n, y: y.at[np.array([1, 3])].set(5.0),
    "set of one": lambda j, n, y: y.at[4].set(5.0),
    "add": lambda j, n, y: n.ones(4, y.dtype).at[np.array([3, 0, 3, 1, 9, 1])].add(y, mode="drop"),
    "rev": lambda j, n, y: y[::-1],
    "transpose": lambda j, n, y: y.reshape(3, 2).T,
    "broadcast": lambda j, n, y: n.broadcast_to(y, (2, 6)),
    "repeat": lambda j, n, y: n.repeat(y, 3),
    "repeat unevenly": lambda j, n, y: n.repeat(y, np.array([0, 2, 1, 3, 0, 1]), total_repeat_length=7),
    "tile": lambda j, n, y: n.tile(y, 2),
    "split": lambda j, n, y: n.split(y, [2, 3])[2],
    "elements, one by one": lambda j, n, y: n.stack([y[3], y[0], y[0], y[5]]),
    "elements at indices": lambda j, n, y: n.stack([j.lax.dynamic_index_in_dim(y, n.int32(i), keepdims=False) for i in (4, 1)]),
    "rows, one by one": lambda j, n, y: n.stack([y.reshape(3, 2)[2], y.reshape(3, 2)[0]]),
    "unstack": lambda j, n, y: n.unstack(y.reshape(3, 2))[1],
    "insert": lambda j, n, y: n.insert(y, 2, 1.0),
    "delete": lambda j, n, y: n.delete(y, np.array([1, 4])),
    "diff": lambda j, n, y: n.diff(y),
    "second diff": lambda j, n, y: n.diff(y, n=2),
    "cumsum": lambda j, n, y: n.cumsum(y),
    "cumsum in reverse": lambda j, n, y: j.lax.cumsum(y, reverse=True),
    "cumsum of columns": lambda j, n, y: n.cumsum(y.reshape(3, 2), 0),
    "associative_scan": lambda j, n, y: j.lax.associative_scan(n.add, y),
    "sum of rows": lambda j, n, y: y.reshape(3, 2).sum(1),
    "fft": lambda j, n, y: n.fft.rfft(y.reshape(3, 2)).real,
    "two moves": lambda j, n, y: n.diff(n.roll(n.pad(y, 1), 3)),
    "loop": lambda j, n, y: j.lax.fori_loop(0, 2, lambda i, c: n.roll(c, 1), y),
    "scan": lambda j, n, y: j.lax.scan(lambda c, e: (c + e, c), n.zeros((), y.dtype), y)[1],
}
PLACES = {
    "first of where": lambda j, n, m, y: n.where(m, 0.0, y),
    "second of where": lambda j, n, m, y: n.where(~m, y, 0.0),
    "scalar constants": lambda j, n, m, y: n.where(m, n.float32(7.0), y),
    "first of three": lambda j, n, m, y: j.lax.select_n(n.where(m, 2, 0), y, n.zeros_like(y), n.ones_like(y)),
    "second of three": lambda j, n, m, y: j.lax.select_n(n.where(m, 2, 1), n.ones_like(y), y, n.ones_like(y)),
    "last of three": lambda j, n, m, y: j.lax.select_n(n.where(m, 0, 2), n.ones_like(y), n.zeros_like(y), y),
    "where=": lambda j, n, m, y: n.sum(y, where=~m),
}
POLES = {"log": (lambda n, v: n.log(v), lambda v: 1 / v), "sqrt": (lambda n, v: n.sqrt(v), lambda v: 0.5 / np.sqrt(v))}


@pytest.mark.parametrize("pole", POLES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("move", MOVES)
def test_a_mask_is_moved_with_the_values(jax, jnp, move, place, pole):
    if jax.__name__ == "jax":
        pytest.skip("JAX gives NaN")
    moved, chosen, (function, slope) = MOVES[move], PLACES[place], POLES[pole]
    r = np.random.default_rng(len(move) * 100 + len(place))
    weights = np.asarray(jax.jacfwd(lambda y: moved(jax, jnp, y))(jnp.ones(6, f32)))
    for share in (0.0, 0.3, 0.7):
        live = r.random(weights.shape[:-1]) < share
        total = (weights * live[..., None]).reshape(-1, 6).sum(0)
        # a pole wherever nothing reads it
        read = ((weights != 0) & live[..., None]).reshape(-1, 6).any(0)
        v = np.where(read, r.uniform(0.5, 2.0, 6), 0.0).astype(f32)

        def program(v, live):
            return chosen(jax, jnp, ~live, moved(jax, jnp, function(jnp, v))).sum()

        want = np.where(read, total * slope(np.where(read, v, 1.0)), 0.0)
        for grad in (jax.grad(program), jax.jit(jax.grad(program))):
            np.testing.assert_allclose(grad(v, jnp.asarray(live)), want, rtol=1e-5, atol=1e-6)
        lanes = jax.vmap(jax.grad(program))(np.stack([v, v]), jnp.stack([live, live]))
        np.testing.assert_allclose(lanes, [want, want], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("move", [m for m in MOVES if m not in ("fft", "sum of rows")])
def test_a_moved_masked_tangent_is_not_multiplied_by_a_pole(jax, jnp, move):
    if jax.__name__ == "jax":
        pytest.skip("JAX gives NaN")
    moved = MOVES[move]
    m = np.array([True, False, False, True, False, True])

    def program(x):
        y = moved(jax, jnp, jnp.where(m, x, 0.0))
        return jnp.where(y > 0.5, jnp.log(jnp.abs(y)), y * y)

    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], f32)
    forward = np.stack([np.asarray(jax.jvp(program, (x,), (e,))[1]) for e in np.eye(6, dtype=f32)], -1)
    np.testing.assert_allclose(forward, jax.jacrev(program)(x), rtol=1e-5)
    assert np.isfinite(forward).all()


STEPS = {
    "where of roll": lambda j, n, y, k: n.where(y > k, n.roll(y, k + 1), y * 2),
    "where of two rolls": lambda j, n, y, k: n.where(y > k, n.roll(y, k + 1), n.roll(y, -k)),
    "maximum of roll": lambda j, n, y, k: n.maximum(y, n.roll(y, 2 ** (k % 4))),
    "sum of two": lambda j, n, y, k: n.where(y > k, n.roll(y, 1), 0) + n.where(y < -k, n.roll(y, 2), 0),
    "sum of rolled masks": lambda j, n, y, k: (lambda z: z + n.roll(z, 1))(n.where(y > k, y, 0)),
    "product": lambda j, n, y, k: n.where(y > k, y, 1.0) * n.roll(n.where(y < k, y, 1.0), 1),
    "cummax": lambda j, n, y, k: j.lax.cummax(y, 0),
    "cummin, both ways": lambda j, n, y, k: j.lax.cummin(y, 0, reverse=k % 2 == 1),
    "cumprod": lambda j, n, y, k: j.lax.cumprod(n.where(y > k, y, 1.0), 0),
    "cumlogsumexp": lambda j, n, y, k: j.lax.cumlogsumexp(n.where(y > k, y, -n.inf), 0),
    "scan of maximum": lambda j, n, y, k: j.lax.associative_scan(n.maximum, y),
    "cummax of scan": lambda j, n, y, k: j.lax.cummax(j.lax.associative_scan(n.minimum, y), 0),
    "joined parts": lambda j, n, y, k: n.concatenate([n.where(y > k, y, 0)[4:], n.where(y < k, y, 1)[:4]]),
    "pad of slice": lambda j, n, y, k: n.pad(n.maximum(y, n.flip(y))[1:], (0, 1)),
    "relu of difference": lambda j, n, y, k: j.nn.relu(y - n.roll(y, 1)),
    "sort": lambda j, n, y, k: n.sort(n.maximum(y, k)),
    "gather": lambda j, n, y, k: n.maximum(y, y[np.array([3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2])]),
    "scatter": lambda j, n, y, k: y.at[k].max(y[k + 1]),
    "set": lambda j, n, y, k: n.where(y > 0, y, 1.0).at[k].set(y[k + 2]),
    "three cases": lambda j, n, y, k: j.lax.select_n((n.arange(16) + k) % 3, y, n.roll(y, 1), y * 2),
    "transpose": lambda j, n, y, k: n.maximum(y.reshape(4, 4).T, 1.0).reshape(-1) + n.minimum(y, 2),
    "switch": lambda j, n, y, k: j.lax.cond(y[k] > 0, lambda y: n.where(y > k, y, 1.0), lambda y: n.roll(n.where(y < k, y, 2.0), 1), y),
}


@pytest.mark.ours
@pytest.mark.parametrize("name", STEPS)
def test_programs_grow_with_the_number_of_selections(jax, jnp, name):
    def lines(steps, transform):
        def f(x):
            for k in range(steps):
                x = STEPS[name](jax, jnp, x, k)
            return (x * jnp.cos(jnp.arange(16.0))).sum()

        return str(jax.make_jaxpr(transform(f))(jnp.arange(16.0) - 8)).count("\n")

    for transform in (jax.grad, lambda f: lambda x: jax.jvp(f, (x,), (x,))):
        few, more, many = (lines(steps, transform) for steps in (4, 6, 8))
        # each further step adds about as much as one before: twice as much would be 4 of the last
        assert many - more < 2 * (more - few) + 40, (few, more, many)
