"""Derivatives through selections: a branch that is not taken has no effect.

The law: where the branch that is not taken is infinite or nan, the derivative is that of the program in which it is a constant there.
Programs are drawn at random; each is differentiated forwards and backwards, in every order of transforms.
"""

import random

import numpy as np
import pytest

f32 = np.float32

FUNCTIONS = {
    "log": lambda n, v: n.log(v),
    "sqrt": lambda n, v: n.sqrt(v),
    "reciprocal": lambda n, v: 1 / v,
    "negative power": lambda n, v: v**-3,
    "sixth power of the reciprocal": lambda n, v: (1 / v) ** 6 / 1e3,
    "broken power": lambda n, v: v**1.5,
    "log1p": lambda n, v: n.log1p(-v),
    "exp of a reciprocal": lambda n, v: n.exp(-1 / v),
    "sinh": lambda n, v: n.sinh(v * v),
    "arcsin": lambda n, v: n.arcsin(v),
    "arctanh": lambda n, v: n.arctanh(v / 2),
    "square": lambda n, v: v * v,
    "product with itself": lambda n, v: v * n.log(v),
    "quotient": lambda n, v: n.sin(v) / v,
    "scaled": lambda n, v: -1.5 * v + 0.25,
    "tan": lambda n, v: n.tan(v),
    "cbrt": lambda n, v: n.cbrt(v),
    "expm1": lambda n, v: n.expm1(v),
    "hypot": lambda n, v: n.hypot(v, v),
    "norm of a row": lambda n, v: n.sqrt((v[..., None] * n.array([1.0, 2.0, 0.5], v.dtype)).sum(-1)),
    "mean of a row": lambda n, v: n.log(v[..., None] * n.array([1.0, 2.0, 0.5], v.dtype)).mean(-1),
    "transposed": lambda n, v: n.log(n.broadcast_to(v, (2, *v.shape)).T).sum(-1),
    "reshaped": lambda n, v: n.sqrt(v.reshape(*v.shape, 1)).reshape(v.shape),
    "converted": lambda n, v: n.log(v).astype(n.complex64).real,
    "stacked": lambda n, v: n.stack([n.sqrt(v), n.sin(v)]).sum(0),
}
SELECTIONS = {
    "where": lambda j, n, m, a, b: n.where(m, a, b),
    "where, the other way": lambda j, n, m, a, b: n.where(~m, b, a),
    "select": lambda j, n, m, a, b: j.lax.select(m, a, b),
    "select of three": lambda j, n, m, a, b: j.lax.select_n(m.astype(n.int32) * 2, b, b, a),
    "n.select": lambda j, n, m, a, b: n.select([m], [a], b),
    "twice": lambda j, n, m, a, b: n.where(m, n.where(m, a, 7.0), b),
    "in a product": lambda j, n, m, a, b: n.where(m, a, 0.0) + n.where(m, 0.0, b),
    "scaled behind": lambda j, n, m, a, b: 3.0 * n.where(m, a, b) / 2.0,
}
BAD = [0.0, -1.0, np.inf, -np.inf, np.nan, 1e30]
N = 5


class Draw:
    """One program: `masked` as users write it, `safe` with the branch that is not taken made constant before it can be infinite."""

    def __init__(self, seed):
        r = random.Random(seed)
        self.live = np.array([True, *(r.random() < 0.5 for _ in range(N - 2)), False])
        self.names = [r.choice(list(FUNCTIONS)) for _ in range(r.choice([1, 1, 2, 3]))]
        self.selection = r.choice(list(SELECTIONS))
        bad = [r.choice(BAD) for _ in range(N)]
        self.x = np.where(self.live, [r.uniform(0.2, 0.8) for _ in range(N)], bad).astype(f32)
        self.weights = np.array([r.uniform(0.5, 1.5) for _ in range(N)], f32)

    def branch(self, n, v):
        for name in self.names:
            v = FUNCTIONS[name](n, v)
        return v

    def one(self, j, n, x, m, safe):
        v = n.where(m, x, f32(0.5)) if safe else x
        taken = self.branch(n, v)
        return SELECTIONS[self.selection](j, n, m, taken, n.full_like(taken, 0.25))


def whole(d, j, n, safe):
    m, w = n.asarray(d.live), n.asarray(d.weights)
    return lambda x: (d.one(j, n, x, m, safe) * w).sum()


def lane_by_lane(d, j, n, safe):
    m, w = n.asarray(d.live), n.asarray(d.weights)
    return lambda x: (j.vmap(lambda x, m: d.one(j, n, x, m, safe))(x, m) * w).sum()


def branches(d, j, n, safe):
    """vmap of cond: every lane runs both."""
    m, w = n.asarray(d.live), n.asarray(d.weights)

    def lane(x, m):
        v = n.where(m, x, f32(0.5)) if safe else x
        return j.lax.cond(m, lambda v: d.branch(n, v), lambda v: 0.25 + 0 * n.where(m, v, 0.0), v)

    return lambda x: (j.vmap(lane)(x, m) * w).sum()


def scanned(d, j, n, safe):
    m, w = n.asarray(d.live), n.asarray(d.weights)

    def step(c, xmw):
        x, m, w = xmw
        return c + w * d.one(j, n, x, m, safe), None

    return lambda x: j.lax.scan(step, f32(0.0), (x, m, w))[0]


def scanned_behind(d, j, n, safe):
    """The selection stands behind the loop that makes what is infinite."""
    m, w = n.asarray(d.live), n.asarray(d.weights)

    def f(x):
        v = n.where(m, x, f32(0.5)) if safe else x
        ys = j.lax.scan(lambda c, v: (c, d.branch(n, v)), f32(0.0), v)[1]
        return (SELECTIONS[d.selection](j, n, m, ys, n.full_like(ys, 0.25)) * w).sum()

    return f


def carried(d, j, n, safe):
    """Lanes that are masked in each step, with more steps before them."""
    m, w = n.asarray(d.live), n.asarray(d.weights)

    def f(x):
        v = n.where(m, x, f32(0.5)) if safe else x
        c = j.lax.fori_loop(0, 2, lambda i, c: n.where(m, d.branch(n, v) * 0.1 + c * 0.5, f32(0.25)), v)
        return (c * w).sum()

    return f


def checkpointed(d, j, n, safe):
    f = whole(d, j, n, safe)
    return lambda x: j.checkpoint(f)(x)


def in_jit(d, j, n, safe):
    m, w = n.asarray(d.live), n.asarray(d.weights)
    branch = j.jit(lambda v: d.branch(n, v))

    def f(x):
        v = n.where(m, x, f32(0.5)) if safe else x
        y = branch(v)
        return (SELECTIONS[d.selection](j, n, m, y, n.full_like(y, 0.25)) * w).sum()

    return f


def behind_cond(d, j, n, safe):
    """A branch that all lanes take, behind a selection."""
    m, w = n.asarray(d.live), n.asarray(d.weights)

    def f(x):
        v = n.where(m, x, f32(0.5)) if safe else x
        y = j.lax.cond(w[0] > 0, lambda v: d.branch(n, v), lambda v: v, v)
        return (SELECTIONS[d.selection](j, n, m, y, n.full_like(y, 0.25)) * w).sum()

    return f


def reduced(d, j, n, safe):
    m = n.asarray(d.live)

    def f(x):
        v = n.where(m, x, f32(0.5)) if safe else x
        y = d.branch(n, v)
        return n.sum(y, where=m) + n.mean(n.sin(y), where=m) + n.prod(n.tanh(y), where=m)

    return f


PLACES = {
    "whole arrays": whole,
    "vmap": lane_by_lane,
    "vmap of cond": branches,
    "scan": scanned,
    "behind a scan": scanned_behind,
    "carry of a loop": carried,
    "checkpoint": checkpointed,
    "jit within": in_jit,
    "behind cond": behind_cond,
    "reductions with where=": reduced,
}
MODES = {
    "grad": lambda j, f: j.grad(f),
    "jit of grad": lambda j, f: j.jit(j.grad(f)),
    "grad of jit": lambda j, f: j.grad(j.jit(f)),
    "jacfwd": lambda j, f: j.jacfwd(f),
    "jit of jacfwd": lambda j, f: j.jit(j.jacfwd(f)),
    "jacrev": lambda j, f: j.jacrev(f),
    "linearize": lambda j, f: lambda x: j.linearize(f, x)[1](np.ones(N, f32)),
    "vmap of grad": lambda j, f: lambda x: j.vmap(j.grad(f))(x[None])[0],
    "hessian": lambda j, f: j.hessian(f),
    "reverse over reverse": lambda j, f: j.jacrev(j.grad(f)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", PLACES)
def test_a_branch_that_is_not_taken_is_not_seen(jax, jnp, place, mode):
    if jax.__name__ == "jax":
        pytest.skip("JAX gives NaN")
    if (place, mode) == ("carry of a loop", "reverse over reverse"):
        pytest.skip("what a loop adds up for its parameters does not remember masks that differ by step")
    seen = 0
    for seed in range(8):
        d = Draw(f"{place} {seed}")
        x = jnp.asarray(d.x)
        want = np.asarray(MODES[mode](jax, PLACES[place](d, jax, jnp, True))(x))
        got = np.asarray(MODES[mode](jax, PLACES[place](d, jax, jnp, False))(x))
        known = np.isfinite(want)  # at live elements a program may have no derivative either
        seen += known.any()
        np.testing.assert_allclose(got[known], want[known], rtol=2e-4, atol=1e-5, err_msg=f"{d.names} {d.selection} {d.x}")
    assert seen >= 4


@pytest.mark.parametrize("mode", ["jacfwd", "jit of jacfwd", "linearize", "grad", "jit of grad", "grad of jit"])
@pytest.mark.parametrize("function", ["sqrt", "log", "reciprocal", "broken power", "cbrt", "quotient"])
def test_a_masked_tangent_is_not_multiplied_by_a_pole(jax, jnp, function, mode):
    """The selection stands before the pole: what it puts there does not depend on x."""
    if jax.__name__ == "jax":
        pytest.skip("JAX gives NaN")
    x, m = jnp.array([0.5, 0.3, 2.0, 0.7, 1.0]), jnp.array([True, False, True, False, True])
    f = lambda x: jnp.where(m, FUNCTIONS[function](jnp, jnp.where(m, x, 0.0)), 0.0).sum()
    got = np.asarray(MODES[mode](jax, f)(x))
    want = np.asarray(MODES[mode](jax, lambda x: jnp.where(m, FUNCTIONS[function](jnp, x), 0.0).sum())(x))
    np.testing.assert_allclose(got, want, rtol=1e-6)
    outer = lambda x: FUNCTIONS[function](jnp, jnp.where(m, x, 0.0))
    rows = np.asarray(jax.jacfwd(outer)(x))
    np.testing.assert_allclose(rows, np.asarray(jax.jacrev(outer)(x)), rtol=1e-6)
    assert not rows[~np.asarray(m)].any()


NAMED = {
    "entropy of a mask": lambda j, n: (j.grad(lambda p: n.where(p > 0, p * n.log(p), 0.0).sum())(n.array([0.0, 0.5])), [0, 1 - np.log(2)]),
    "Lennard-Jones at no distance": (lambda j, n: (j.grad(lambda r: n.where(r > 0, (1 / r) ** 12 - (1 / r) ** 6, 0.0).sum())(n.array([0.0, 1.0])), [0, -6])),
    "pairs of points, each with itself": lambda j, n: (
        j.grad(lambda x: n.where(~n.eye(2, dtype=bool), n.linalg.norm(x[:, None] - x[None], axis=-1), 0.0).sum())(n.array([[0.0, 0.0], [3.0, 4.0]])),
        [[-1.2, -1.6], [1.2, 1.6]],
    ),
    "mixture with a weight of zero": lambda j, n: (
        j.grad(lambda w: n.where(w > 0, w * n.log(w) + n.log(w), 0.0).sum())(n.array([0.0, 1.0])),
        [0, 2],
    ),
    "nansum": lambda j, n: (j.grad(lambda x: n.nansum(n.log(x)))(n.array([-1.0, 2.0])), [0, 0.5]),
    "nanmean": lambda j, n: (j.grad(lambda x: n.nanmean(n.sqrt(x)))(n.array([-1.0, 4.0])), [0, 0.25]),
    "mean of some": lambda j, n: (j.grad(lambda x: n.mean(n.log(x), where=x > 0))(n.array([0.0, 0.5])), [0, 2]),
    "prod of some": lambda j, n: (j.grad(lambda x: n.prod(n.log(x), where=x > 0))(n.array([0.0, 0.5])), [0, 2]),
    "max of some": lambda j, n: (j.grad(lambda x: n.max(n.sqrt(x), where=x > 0, initial=0.0))(n.array([0.0, 0.25])), [0, 1]),
    "max": lambda j, n: (j.grad(lambda x: n.max(n.sqrt(x)))(n.array([0.0, 0.25])), [0, 1]),
    "maximum": lambda j, n: (j.grad(lambda x: n.maximum(n.sqrt(x), 0.1).sum())(n.array([0.0, 0.25])), [0, 1]),
    "clip": lambda j, n: (j.grad(lambda x: n.clip(n.sqrt(x), 0.1, 1.0).sum())(n.array([0.0, 0.25])), [0, 1]),
    "relu": lambda j, n: (j.grad(lambda x: j.nn.relu(n.sqrt(x) - 0.1).sum())(n.array([0.0, 0.25])), [0, 1]),
    "segments of dropped ids": lambda j, n: (
        j.grad(lambda x: j.ops.segment_sum(n.sqrt(x), n.array([-1, 0]), 1).sum())(n.array([0.0, 0.25])),
        [0, 1],
    ),
    "additions out of bounds": lambda j, n: (
        j.grad(lambda x: n.zeros(2).at[n.array([7, 0])].add(n.sqrt(x), mode="drop").sum())(n.array([0.0, 0.25])),
        [0, 1],
    ),
    "rows of losses": lambda j, n: (
        j.grad(lambda w: n.where(n.array([False, True]), (n.array([[n.inf, 1.0], [1.0, 2.0]]) @ w).sum(1), 0.0).sum())(n.ones((2, 2))),
        [[1, 1], [2, 2]],
    ),
    "masked rows of a product": lambda j, n: (
        j.grad(lambda w: n.where(n.array([[False], [True]]), n.array([[n.inf, 1.0], [1.0, 2.0]]) @ w, 0.0).sum())(n.ones((2, 2))),
        [[1, 1], [2, 2]],
    ),
    "what is behind masked rows": lambda j, n: (
        j.grad(lambda x: n.where(n.array([[False], [True]]), n.log(x) @ n.ones((2, 3)), 0.0).sum())(n.array([[0.0, 1.0], [1.0, 2.0]])),
        [[0, 0], [3, 1.5]],
    ),
    "columns of a mask": lambda j, n: (
        j.grad(lambda x: n.where(n.array([[False, False], [True, False]]), n.sqrt(x)[:, None] * n.ones((2, 2)), 0.0).sum())(n.array([0.0, 0.25])),
        [0, 1],
    ),
    "rows read by masked elements alone": lambda j, n: (
        j.grad(lambda x: n.where(n.array([False, True]), n.sqrt(x)[n.array([0, 1])], 0.0).sum())(n.array([0.0, 0.25])),
        [0, 1],
    ),
    "parts joined": lambda j, n: (
        j.grad(lambda x: n.where(n.array([False, True, True, True]), n.concatenate([n.sqrt(x), x]), 0.0).sum())(n.array([0.0, 0.25])),
        [1, 2],
    ),
    "softplus beyond its range": lambda j, n: (j.grad(lambda x: n.where(x < 50, n.log1p(n.exp(x)), x).sum())(n.array([1e4, 0.0])), [1, 0.5]),
    "sine of infinity": lambda j, n: (j.grad(lambda x: n.where(x < 9, n.sin(x), 0.0).sum())(n.array([n.inf, 0.0])), [0, 1]),
    "switch of lanes": lambda j, n: (
        j.grad(lambda x: j.vmap(lambda i, x: j.lax.switch(i, [n.log, lambda x: x, n.sqrt], x))(n.array([1, 0]), x).sum())(n.array([0.0, 0.5])),
        [1, 2],
    ),
    "piecewise": lambda j, n: (j.grad(lambda x: n.piecewise(x, [x > 0], [n.log, lambda x: 0 * x]).sum())(n.array([0.0, 0.5])), [0, 2]),
    "lanes that are done": lambda j, n: (
        j.grad(lambda x: j.vmap(lambda x, k: j.lax.fori_loop(0, k, lambda i, c: n.sqrt(c), x))(x, n.array([0, 2])).sum())(n.array([0.0, 1.0])),
        [1, 0.25],
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_gradients_reported_by_users(jax, jnp, name):
    if jax.__name__ == "jax":
        pytest.skip("JAX gives NaN")
    got, want = NAMED[name](jax, jnp)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "f",
    [lambda n, x: n.exp(n.log(x)), lambda n, x: n.sqrt(x) ** 2, lambda n, x: 1 / (1 / x), lambda n, x: n.sqrt(0 * x), lambda n, x: n.cbrt(x) ** 3],
    ids=["exp of log", "square of sqrt", "twice reciprocal", "sqrt of zero", "cube of cbrt"],
)
def test_an_unmasked_pole_is_not_hidden(jax, jnp, f):
    for transform in (jax.grad, jax.jacfwd, lambda f: jax.jit(jax.grad(f))):
        assert not np.isfinite(transform(lambda x: f(jnp, x))(0.0))


def test_programs_without_selections_have_no_masks(jax, jnp):
    """Derivatives say `mul` and `div`, and nothing is selected."""

    def loss(w, x):
        h = jnp.tanh(x @ w)
        h = (h - h.mean(-1, keepdims=True)) / jnp.sqrt((h * h).mean(-1, keepdims=True) + 1e-5)
        return -jax.nn.log_softmax(jnp.log(h * h + 1) / 2)[:, 0].mean()

    text = str(jax.make_jaxpr(jax.grad(loss))(jnp.ones((3, 4)), jnp.ones((2, 3))))
    assert "mul_zero" not in text and "div_zero" not in text
    masked = str(jax.make_jaxpr(jax.grad(lambda x: jnp.log(x).sum()))(jnp.ones(3)))
    assert "select_n" not in masked and "div" in masked


SECOND = {
    "reverse over reverse": lambda jax, f: jax.jacrev(jax.grad(f)),
    "forward over reverse": lambda jax, f: jax.jacfwd(jax.grad(f)),
    "jit": lambda jax, f: jax.jit(jax.jacrev(jax.grad(f))),
    "of a checkpoint": lambda jax, f: jax.jacrev(jax.grad(jax.checkpoint(f))),
    "under vmap": lambda jax, f: lambda x: jax.vmap(jax.jacrev(jax.grad(f)))(x[None])[0],
    "third": lambda jax, f: jax.grad(lambda x: jax.grad(lambda x: jax.grad(f)(x).sum())(x).sum()),
}


@pytest.mark.ours
@pytest.mark.parametrize("order", SECOND)
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("name", ["log", "sqrt", "reciprocal", "product with itself", "negative power"])
def test_second_derivatives_ignore_lanes_whose_loop_does_not_run(jax, jnp, lax, name, length, order):
    x, m = jnp.array([0.0, 0.7, 0.0, 2.0]), jnp.array([False, True, False, True])
    pole = FUNCTIONS[name]

    def loss(f):
        def lane(v, runs):
            loop = lambda v: lax.scan(lambda c, _: (jnp.abs(f(c)) + 0.2, None), v, None, length=length)[0]
            return lax.cond(runs, loop, lambda v: v * 0.0, v)

        return lambda x: jax.vmap(lane)(x, m).sum()

    differentiated = SECOND[order](jax, loss(lambda c: pole(jnp, c)))(x)
    constant = SECOND[order](jax, loss(lambda c: pole(jnp, jnp.where(c == 0, 1.0, c))))(x)
    np.testing.assert_allclose(differentiated, constant, rtol=2e-3, atol=1e-6)
