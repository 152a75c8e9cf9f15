"""Laws of the collectives: on lanes and on devices, alone and within each other, in values and derivatives, they are what numpy says.

A case is drawn as plain data: a collective with its parameters, an axis of `n` positions, its groups, and a way to run it. The model works
on the stacked array `x[position, ..]`. To be run as a program with several devices, as `lax/test_collectives.py` does.
"""

import hypothesis
import numpy as np
from hypothesis import strategies as st

ORDINARY = ("psum", "pmean", "pmax", "pmin")
SLICING = ("all_gather", "psum_scatter", "all_to_all", "pswapaxes")
MOVING = ("ppermute", "pshuffle", "pbroadcast")


# ---- what numpy says ----


def model(case, x):
    """The collective on all positions at once."""
    out = [None] * case["n"]
    for group in case["groups"] or [range(case["n"])]:
        members = list(group)
        for place, result in enumerate(within(case, x[members])):
            out[members[place]] = result
    return np.stack(out)


def within(case, x):
    """The results of the members of one group, in order."""
    n, name = len(x), case["name"]
    if name in ORDINARY:
        total = {"psum": np.sum, "pmean": np.mean, "pmax": np.max, "pmin": np.min}[name](x, axis=0)
        return [total] * n
    if name == "all_gather":
        return [(np.concatenate if case["tiled"] else np.stack)(list(x), axis=case["axis"])] * n
    if name == "psum_scatter":
        pieces = np.split(x.sum(0), n, axis=case["axis"])
        return pieces if case["tiled"] else [p.squeeze(case["axis"]) for p in pieces]
    if name in ("all_to_all", "pswapaxes"):
        split, concat, tiled = case["axis"], case.get("concat", case["axis"]), case["tiled"]
        pieces = [np.split(v, n, axis=split) for v in x]
        received = [[pieces[i][j] for i in range(n)] for j in range(n)]
        if tiled:
            return [np.concatenate(r, axis=concat) for r in received]
        return [np.stack([p.squeeze(split) for p in r], axis=concat) for r in received]
    if name == "ppermute":
        source = {d: s for s, d in case["perm"]}
        return [x[source[d]] if d in source else np.zeros_like(x[0]) for d in range(n)]
    if name == "pshuffle":
        return [x[s] for s in case["perm"]]
    return [x[case["source"]]] * n


def tangent(case, x, t):
    """The derivative along t: the collective itself if it is linear; an extremum's is the mean over those that reach it."""
    if case["name"] not in ("pmax", "pmin"):
        return model(case, t)
    best = model(case, x)
    reach = (x == best).astype(x.dtype)
    means = dict(case, name="psum")
    return model(means, reach * t) / model(means, reach)


# ---- what is drawn ----


@st.composite
def partitions(draw, n, even):
    order = draw(st.permutations(range(n)))
    if even:
        size = draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0]))
        return [order[i : i + size] for i in range(0, n, size)]
    cuts = sorted(draw(st.sets(st.integers(1, n - 1), max_size=n - 1))) if n > 1 else []
    return [order[a:b] for a, b in zip([0, *cuts], [*cuts, n], strict=True)]


WAYS = ("vmap", "vmap on axis 1", "pmap", "vmap in pmap", "pmap of vmap", "vmap of pmap", "pmap in jit", "jit in vmap", "scan in pmap", "scan in vmap")


@st.composite
def cases(draw, most):
    name = draw(st.sampled_from(ORDINARY + SLICING + MOVING))
    n = draw(st.integers(1, most))
    case = {"name": name, "n": n, "groups": None, "way": draw(st.sampled_from(WAYS)), "tiled": False}
    if name not in MOVING and draw(st.booleans()):
        case["groups"] = draw(partitions(n, name in SLICING))
    meet = len(case["groups"][0]) if case["groups"] and name in SLICING else n
    shape = draw(st.lists(st.integers(1, 3), min_size=name in SLICING, max_size=3))
    rank = len(shape)
    if name in SLICING:
        case["tiled"] = name != "pswapaxes" and draw(st.booleans())
        case["axis"] = draw(st.integers(0, rank - 1 + (name == "all_gather" and not case["tiled"])))
        if name == "all_to_all":
            case["concat"] = draw(st.integers(0, rank - 1))
        if name != "all_gather":
            shape[case["axis"]] = meet * (draw(st.integers(1, 2)) if case["tiled"] else 1)
    if name == "ppermute":
        k = draw(st.integers(0, n))
        case["perm"] = list(zip(draw(st.permutations(range(n)))[:k], draw(st.permutations(range(n)))[:k], strict=True))
    if name == "pshuffle":
        case["perm"] = draw(st.permutations(range(n)))
    if name == "pbroadcast":
        case["source"] = draw(st.integers(0, n - 1))
    case["shape"] = tuple(shape)
    case["seed"] = draw(st.integers(0, 2**16))
    return case


# ---- what is run ----


def emit(lax, case, v):
    """The collective, on one position."""
    name = case["name"]
    f = getattr(lax, name)
    groups = {"axis_index_groups": case["groups"]} if case["groups"] else {}
    if name in ORDINARY:
        return f(v, "i", **groups)
    if name == "all_gather":
        return f(v, "i", axis=case["axis"], tiled=case["tiled"], **groups)
    if name == "psum_scatter":
        return f(v, "i", scatter_dimension=case["axis"], tiled=case["tiled"], **groups)
    if name == "all_to_all":
        return f(v, "i", case["axis"], case["concat"], tiled=case["tiled"], **groups)
    if name == "pswapaxes":
        return f(v, "i", case["axis"], **groups)
    return f(v, "i", case["source"] if name == "pbroadcast" else case["perm"])


def over_all(jax, case):
    """The collective as a function of the stacked array, run in the case's way; the other batch, where there is one, has two equal entries."""
    jnp, lax, way = jax.numpy, jax.lax, case["way"]
    one = lambda v: emit(lax, case, v)
    lanes = lambda f, **k: jax.vmap(f, axis_name="i", **k)
    devices = lambda f: jax.pmap(f, axis_name="i")
    looped = lambda v: lax.scan(lambda c, _: (c, one(c)), v, None, length=2)[1][1]
    twice = lambda x, at: jnp.stack([x, x], at)
    if way == "vmap":
        return lanes(one)
    if way == "vmap on axis 1":
        return lambda x: lanes(one, in_axes=min(1, x.ndim - 1))(jnp.moveaxis(x, 0, min(1, x.ndim - 1)))
    if way == "pmap":
        return devices(one)
    if way == "vmap in pmap":
        return lambda x: jax.pmap(lanes(one), axis_name="other")(twice(x, 0))[1]
    if way == "pmap of vmap":
        return lambda x: devices(jax.vmap(one))(twice(x, 1))[:, 1]
    if way == "vmap of pmap":
        return lambda x: jax.vmap(devices(one), axis_name="other")(twice(x, 0))[1]
    if way == "pmap in jit":
        return jax.jit(devices(one))
    if way == "jit in vmap":
        return lanes(jax.jit(one))
    return devices(looped) if way == "scan in pmap" else lanes(looped)


def check(jax, case):
    """Value, forward and reverse derivative, each against the model."""
    jnp, rng = jax.numpy, np.random.default_rng(case["seed"])
    whole = lambda shape: rng.integers(-4, 5, shape).astype(np.float32)
    x, t = whole((case["n"], *case["shape"])), whole((case["n"], *case["shape"]))
    f = over_all(jax, case)
    want, moved = model(case, x), tangent(case, x, t)
    close = lambda got, want: np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5, err_msg=str(case))
    got = f(jnp.asarray(x))
    assert got.shape == want.shape, case
    close(got, want)
    got, pushed = jax.jvp(f, (jnp.asarray(x),), (jnp.asarray(t),))
    close(got, want)
    close(pushed, moved)
    ct = whole(want.shape)
    _, back = jax.vjp(f, jnp.asarray(x))
    pulled = np.asarray(back(jnp.asarray(ct))[0])
    # the transpose, entry by entry: <ct, f'(x) e> for each e
    basis = np.eye(x.size, dtype=np.float32).reshape(x.size, *x.shape)
    close(pulled.ravel(), [np.vdot(ct, tangent(case, x, e)) for e in basis])


def main(library):
    """Draws and checks, on as many positions as there are devices; the first failure is printed with its case."""

    @hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(cases(len(library.devices())))
    def laws(case):
        check(library, case)

    laws()
