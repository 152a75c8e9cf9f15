"""Collectives over one named axis while another, unnamed, batch goes along: each equals what its definition says for every batch entry.

Every operand is `x[b, i, ..]`: b the other batch, i the lanes of the axis. `want(x[b])` is the definition over all lanes of one entry.
"""

import numpy as np
import pytest

LANES, OTHER = 3, 2


def exchange(x):
    """all_to_all of [lanes, split, rest]: lane j gets (x[0, j], x[1, j], ..)."""
    return np.swapaxes(x, 0, 1)


COLLECTIVES = {
    "psum": (lambda l, x: l.psum(x, "i"), (4,), lambda x: np.broadcast_to(x.sum(0), x.shape)),
    "pmax": (lambda l, x: l.pmax(x, "i"), (4,), lambda x: np.broadcast_to(x.max(0), x.shape)),
    "pmin": (lambda l, x: l.pmin(x, "i"), (4,), lambda x: np.broadcast_to(x.min(0), x.shape)),
    "pmean": (lambda l, x: l.pmean(x, "i"), (4,), lambda x: np.broadcast_to(x.mean(0), x.shape)),
    "all_gather": (lambda l, x: l.all_gather(x, "i"), (4,), lambda x: np.broadcast_to(x, (LANES,) + x.shape)),
    "all_gather on axis 1": (lambda l, x: l.all_gather(x, "i", axis=1), (4,), lambda x: np.broadcast_to(x.T, (LANES,) + x.T.shape)),
    "all_gather tiled": (lambda l, x: l.all_gather(x, "i", tiled=True), (4,), lambda x: np.broadcast_to(x.ravel(), (LANES, x.size))),
    "psum_scatter": (lambda l, x: l.psum_scatter(x, "i"), (LANES, 2), lambda x: x.sum(0)),
    "psum_scatter tiled": (lambda l, x: l.psum_scatter(x, "i", tiled=True), (LANES * 2,), lambda x: x.sum(0).reshape(LANES, 2)),
    "all_to_all": (lambda l, x: l.all_to_all(x, "i", 0, 0), (LANES, 2), exchange),
    "all_to_all tiled": (lambda l, x: l.all_to_all(x, "i", 0, 0, tiled=True), (LANES * 2,), lambda x: exchange(x.reshape(LANES, LANES, 2)).reshape(LANES, -1)),
    "ppermute": (lambda l, x: l.ppermute(x, "i", [(0, 2), (1, 0)]), (4,), lambda x: np.stack([x[1], 0 * x[0], x[0]])),
}


def operand(shape):
    return np.random.default_rng(0).integers(-9, 9, (OTHER, LANES, *shape)).astype(np.float32)


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("other_axis", [0, 1, 2])
@pytest.mark.parametrize("inner", ["named", "other"])
def test_another_batch_goes_along(jax, jnp, name, other_axis, inner):
    f, shape, want = COLLECTIVES[name]
    x = operand(shape)
    call = lambda v: f(jax.lax, v)
    if inner == "named":
        # vmap over the other batch, on any of its axes, of the vmap that has the name
        moved = np.moveaxis(x, 0, min(other_axis, x.ndim - 1))
        got = jax.vmap(jax.vmap(call, axis_name="i"), in_axes=min(other_axis, x.ndim - 1))(jnp.asarray(moved))
    else:
        # the vmap that has the name, of a vmap over the other batch
        at = min(other_axis, x.ndim - 2)
        lanes_first = np.moveaxis(np.swapaxes(x, 0, 1), 1, 1 + at)
        got = np.swapaxes(np.asarray(jax.vmap(jax.vmap(call, in_axes=at), axis_name="i")(jnp.asarray(lanes_first))), 0, 1)
    np.testing.assert_array_equal(np.asarray(got), np.stack([want(e) for e in x]))


@pytest.mark.parametrize("name", [n for n in COLLECTIVES if n not in ("pmax", "pmin")])
def test_reverse_is_the_adjoint(jax, jnp, name):
    """<f x, y> = <x, f' y>, over all lanes."""
    f, shape, _ = COLLECTIVES[name]
    x = jnp.asarray(operand(shape)[0])
    every = jax.vmap(lambda v: f(jax.lax, v), axis_name="i")
    out, back = jax.vjp(every, x)
    y = jnp.asarray(np.random.default_rng(1).integers(-9, 9, out.shape).astype(np.float32))
    np.testing.assert_allclose(float((out * y).sum()), float((x * back(y)[0]).sum()), rtol=1e-5)
