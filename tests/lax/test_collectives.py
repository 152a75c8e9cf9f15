"""Collectives over one named axis while another, unnamed, batch goes along: each equals what its definition says for every batch entry.

Every operand is `x[b, i, ..]`: b the other batch, i the lanes of the axis. `want(x[b])` is the definition over all lanes of one entry.
"""

import pathlib

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
def test_another_batch_axis(jax, jnp, name, other_axis, inner):
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


# ---- laws, on lanes and on devices ----

HERE = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parents[1])!r})\n"


def test_each_equals_numpy(forked_child):
    """Values and derivatives of every collective, with and without groups, on lanes, on devices, and within each other."""
    forked_child(HERE + "import conftest, collective_laws; collective_laws.main(conftest.load(jax.__name__))", NUM_CPU_DEVICES="4", timeout=600)


# ---- trees and constants ----


@pytest.mark.parametrize("wrap", ["vmap", "pmap", "jit of vmap"])
def test_trees_of_several_leaves(forked_child, wrap):
    forked_child(
        f"""
        run = {{"vmap": jax.vmap, "pmap": jax.pmap, "jit of vmap": lambda f, **k: jax.jit(jax.vmap(f, **k))}}[{wrap!r}]
        on = lambda f: jax.tree.map(lambda v: np.asarray(v).tolist(), run(f, axis_name="i")(jnp.arange(4.0)))
        lax = jax.lax
        assert on(lambda x: lax.psum((x, {{"a": 2 * x, "b": None}}), "i")) == ([6.0] * 4, {{"a": [12.0] * 4, "b": None}})
        assert on(lambda x: lax.pmean([x, x.astype(int)], "i")) == [[1.5] * 4, [1.5] * 4]
        assert on(lambda x: lax.pmax([x, x.astype(int)], "i")) == [[3.0] * 4, [3] * 4]
        assert on(lambda x: lax.pmin((x + 1, x > 0), "i")) == ([1.0] * 4, [False] * 4)
        assert on(lambda x: (lax.psum([], "i"), x))[0] == []
        assert on(lambda x: lax.psum((1, x, True), "i")) == ([4] * 4, [6.0] * 4, [4] * 4)
        # data parallel training: gradients of a tree
        grads = jax.grad(lambda p, x: (p["w"] * x + p["b"]) ** 2)
        step = lambda x: lax.pmean(grads({{"w": jnp.float32(1.0), "b": jnp.float32(0.0)}}, x), "i")
        assert on(step) == {{"w": [7.0] * 4, "b": [3.0] * 4}}
        """,
        NUM_CPU_DEVICES="4",
    )


def test_numbers_are_multiplied_by_the_size(jax, lax):
    seen = []

    def f(x):
        seen.extend([lax.psum(1, "i"), lax.psum(2.5, "i"), lax.psum(1j, "i"), lax.psum(3, "i", axis_index_groups=[[0, 2], [1, 3]])])
        return x

    jax.vmap(f, axis_name="i")(np.arange(4.0))
    assert seen == [4, 10.0, 4j, 6] and [type(v) for v in seen] == [int, float, complex, int]


def test_axes_that_are_numbers_are_the_operands_own(jax, jnp, lax):
    x = jnp.arange(6.0).reshape(2, 3)
    assert jax.vmap(lambda v: lax.psum(v, ("i", 0)), axis_name="i")(x).tolist() == [15.0, 15.0]
    assert jax.vmap(lambda v: lax.pmax(v, (0,)), axis_name="i")(x).tolist() == [2.0, 5.0]
    assert lax.psum(x, (0, 1)).tolist() == 15.0


# ---- groups ----


def test_uneven_groups(jax, jnp, lax, forked_child):
    """Where they may be uneven, the number that a constant is multiplied with, and a mean divided by, is that of each group."""
    code = """
        lax, G = jax.lax, [[0, 1, 2], [3, 4, 5, 6, 7]]
        for run in (jax.vmap, jax.pmap):
            on = lambda f: run(f, axis_name="i")(jnp.arange(8.0)).tolist()
            assert on(lambda x: lax.psum(x, "i", axis_index_groups=G)) == [3.0] * 3 + [25.0] * 5
            assert on(lambda x: lax.pmax(x, "i", axis_index_groups=G)) == [2.0] * 3 + [7.0] * 5
            assert on(lambda x: lax.pmean(x, "i", axis_index_groups=G)) == [1.0] * 3 + [5.0] * 5
            assert on(lambda x: lax.psum(2.0, "i", axis_index_groups=G) + 0 * x) == [6.0] * 3 + [10.0] * 5
            assert on(lambda x: lax.psum(1, "i", axis_index_groups=G)) == [3] * 3 + [5] * 5
            for f in (lax.all_gather, lax.psum_scatter, lambda x, i, **k: lax.all_to_all(x, i, 0, 0, **k)):
                try:
                    on(lambda x: f(x * jnp.ones(8), "i", axis_index_groups=G))
                    raise SystemExit("not refused")
                except ValueError as e:
                    assert "axis_index_groups of one size, but they have sizes [3, 5]" in str(e), e
        """
    forked_child(code, NUM_CPU_DEVICES="8")


WRONG_GROUPS = {
    "overlap": [[0, 0], [1, 2]],
    "outside": [[0, 9]],
    "somebody left out": [[0, 1]],
    "empty": [],
    "an empty group": [[0, 1, 2, 3], []],
}


@pytest.mark.parametrize("groups", WRONG_GROUPS.values(), ids=WRONG_GROUPS)
@pytest.mark.parametrize("name", ["psum", "pmax", "pmean", "all_gather", "psum_scatter"])
def test_groups_are_partitions(jax, jnp, lax, name, groups):
    f = lambda x: getattr(lax, name)(x, "i", axis_index_groups=groups)
    with pytest.raises(ValueError, match="axis_index_groups must cover all indices exactly once"):
        jax.vmap(f, axis_name="i")(jnp.ones((4, 4)))


def test_groups_of_devices(forked_child):
    """What JAX 0.10.2 gives on eight devices."""
    forked_child(
        """
        lax, x, w = jax.lax, jnp.arange(8.0), jnp.arange(64.0).reshape(8, 8)
        on = lambda f, x: jax.pmap(f, axis_name="i")(x).tolist()
        pairs, combs = [[0, 1], [2, 3], [4, 5], [6, 7]], [[0, 2, 4, 6], [1, 3, 5, 7]]
        assert on(lambda x: lax.psum(x, "i", axis_index_groups=pairs), x) == [1, 1, 5, 5, 9, 9, 13, 13]
        assert on(lambda x: lax.psum(2.0, "i", axis_index_groups=pairs), x) == [4.0] * 8
        assert on(lambda x: lax.all_gather(x, "i", axis_index_groups=combs), x) == combs * 4
        assert on(lambda x: lax.psum_scatter(x, "i", axis_index_groups=combs, tiled=True), w)[:2] == [[96.0, 100.0], [128.0, 132.0]]
        assert on(lambda x: lax.all_to_all(x[:2], "i", 0, 0, axis_index_groups=pairs), w)[:4] == [[0, 8], [1, 9], [16, 24], [17, 25]]
        g = jax.grad(lambda v: jax.pmap(lambda x: (lax.all_gather(x * x, "i", axis_index_groups=combs) * jnp.arange(4.0)).sum(), axis_name="i")(v) @ jnp.arange(1, 9.0))
        assert g(x).tolist() == [0.0, 0.0, 64.0, 120.0, 256.0, 400.0, 576.0, 840.0]
        """,
        NUM_CPU_DEVICES="8",
    )


# ---- several axes, shapes that do not fit ----


def test_several_axes(jax, jnp, lax):
    """Positions along several names are in row-major order."""
    x = jnp.arange(2 * 3 * 6.0).reshape(2, 3, 6)
    on = lambda f: np.asarray(jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")(x))
    flat = np.asarray(x).reshape(6, 6)
    every = lambda v: np.broadcast_to(v, (6, *v.shape)).reshape(2, 3, *v.shape)
    ij = ("i", "j")
    np.testing.assert_array_equal(on(lambda v: lax.all_to_all(v, ij, 0, 0)), flat.T.reshape(2, 3, 6))
    np.testing.assert_array_equal(on(lambda v: lax.all_to_all(v, ij, 0, 0, tiled=True)), flat.T.reshape(2, 3, 6))
    np.testing.assert_array_equal(on(lambda v: lax.all_to_all(v.reshape(1, 6), ij, 1, 0)), flat.T.reshape(2, 3, 6, 1))
    swapped = np.asarray(x).transpose(1, 0, 2).reshape(6, 6).T.reshape(3, 2, 6).transpose(1, 0, 2)
    np.testing.assert_array_equal(on(lambda v: lax.all_to_all(v, ("j", "i"), 0, 0)), swapped)
    np.testing.assert_array_equal(on(lambda v: lax.all_gather(v, ij)), every(flat))
    np.testing.assert_array_equal(on(lambda v: lax.all_gather(v, ij, axis=1)), every(flat.T))
    np.testing.assert_array_equal(on(lambda v: lax.all_gather(v, ij, tiled=True)), every(flat.ravel()))
    np.testing.assert_array_equal(on(lambda v: lax.psum_scatter(v, ij)), flat.sum(0).reshape(2, 3))
    np.testing.assert_array_equal(on(lambda v: lax.psum_scatter(v, ij, tiled=True)), flat.sum(0).reshape(2, 3, 1))
    np.testing.assert_array_equal(on(lambda v: lax.pbroadcast(v, ij, 4)), every(flat[4]))
    sent = np.stack([flat[5], flat[0], 0 * flat[0], 0 * flat[0], flat[2], 0 * flat[0]]).reshape(2, 3, 6)
    np.testing.assert_array_equal(on(lambda v: lax.ppermute(v, ij, [(0, 1), (5, 0), (2, 4)])), sent)
    np.testing.assert_array_equal(on(lambda v: v * 0 + lax.axis_index(ij) + 10 * lax.axis_size(ij)), 60 + np.arange(6).reshape(2, 3, 1) + 0 * x)
    with pytest.raises(ValueError, match="duplicate"):
        on(lambda v: lax.psum(v, ("i", "i")))
    with pytest.raises(ValueError, match="axis_index_groups only supported for collectives over a single axis"):
        on(lambda v: lax.psum(v, ij, axis_index_groups=[[0, 1], [2, 3], [4, 5]]))


MISFITS = {
    "all_to_all": (
        lambda l, x: l.all_to_all(x[:3], "i", 0, 0),
        "all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are 4 and 3 respectively.",
    ),
    "all_to_all tiled": (
        lambda l, x: l.all_to_all(x[:3], "i", 0, 0, tiled=True),
        "The size of all_to_all split_axis (3) has to be divisible by the size of the named axis i (4)",
    ),
    "psum_scatter": (lambda l, x: l.psum_scatter(x[:3], "i"), "reduce_scatter operand scatter dimension size 3 must match shard count 4"),
    "psum_scatter tiled": (
        lambda l, x: l.psum_scatter(x[:3], "i", tiled=True),
        "tiled reduce_scatter operand scatter dimension size 3 must be divisible by shard_count 4",
    ),
    "all_gather": (lambda l, x: l.all_gather(x, "i", axis=3), "axis 3 is out of bounds for array of dimension 2"),
    "ppermute twice": (lambda l, x: l.ppermute(x, "i", [(0, 1), (1, 1)]), "ppermute sources and destinations must be unique, got ((0, 1), (1, 1))."),
    "ppermute outside": (
        lambda l, x: l.ppermute(x, "i", [(0, 4)]),
        "ppermute sources and destinations must be positions of an axis of size 4, got ((0, 4),).",
    ),
    "pshuffle": (lambda l, x: l.pshuffle(x, "i", [0, 0, 1, 2]), "`perm` does not represent a permutation: [0, 0, 1, 2]"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_mismatched_arguments_are_refused(jax, jnp, lax, name):
    f, message = MISFITS[name]
    with pytest.raises(ValueError) as e:
        jax.vmap(lambda x: f(lax, x), axis_name="i")(jnp.ones((4, 4)))
    assert str(e.value).split("\n")[0] == message


# ---- user's rules ----


def test_a_rule_names_the_axis_of_its_function(forked_child):
    """Its bwd runs when the vmap or pmap is over; the axis is in scope all the same."""
    forked_child(
        """
        lax = jax.lax
        gather = jax.custom_vjp(lambda x: x)
        gather.defvjp(lambda x: (x, None), lambda _, ct: (lax.psum(ct, "i"),))
        total = jax.custom_vjp(lambda x: lax.psum(x, "i"))
        total.defvjp(lambda x: (lax.psum(x, "i"), None), lambda _, ct: (lax.psum(ct, "i") * lax.axis_size("i") / 3,))
        doubled = jax.custom_jvp(lambda x: lax.pmax(x, "i"))
        doubled.defjvp(lambda p, t: (doubled(*p), lax.psum(t[0], "i")))
        over = {
            "vmap": lambda f: jax.vmap(f, axis_name="i"),
            "pmap": lambda f: jax.pmap(f, axis_name="i"),
            "jit of vmap": lambda f: jax.jit(jax.vmap(f, axis_name="i")),
            "vmap of jit": lambda f: jax.vmap(jax.jit(f), axis_name="i"),
            "jit of pmap": lambda f: jax.jit(jax.pmap(f, axis_name="i")),
            "pmap of jit": lambda f: jax.pmap(jax.jit(f), axis_name="i"),
            "scan": lambda f: jax.vmap(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0], axis_name="i"),
        }
        for name, run in over.items():
            # a psum is the same on all lanes of a vmap, and its bwd is handed the one cotangent of it; on devices each has its own
            for f in (gather, doubled) + (total,) * ("pmap" in name):
                grad = jax.grad(lambda x: run(f)(x).sum())
                assert grad(jnp.ones(3)).tolist() == [3.0] * 3, (name, f)
                assert jax.jit(grad)(jnp.ones(3)).tolist() == [3.0] * 3, (name, f)
        """,
        NUM_CPU_DEVICES="3",
    )


def test_a_rule_whose_result_has_no_batch_dimension(jax, jnp, lax):
    """out_axes=None takes the result of a custom function whose collective leaves no lanes."""
    f = jax.custom_jvp(lambda x: lax.psum(x, "i"))
    f.defjvp(lambda p, t: (f(*p), 2 * lax.psum(t[0], "i")))
    x = jnp.arange(4.0)
    one = jax.vmap(f, axis_name="i", out_axes=None)
    assert one(x) == 6.0 and jax.jit(one)(x) == 6.0
    assert jax.grad(one)(x).tolist() == [2.0] * 4 and jax.grad(jax.jit(one))(x).tolist() == [2.0] * 4
    assert jax.jvp(one, (x,), (x,))[1] == 12.0
    shared = jax.vmap(lambda _, x: f(x), axis_name="i", in_axes=(0, None), out_axes=None)
    assert shared(x, 2.0) == 8.0 and jax.grad(shared, argnums=1)(x, 2.0) == 8.0
    g = jax.custom_vjp(lambda x: lax.psum(x, "i"))
    g.defvjp(lambda x: (lax.psum(x, "i"), None), lambda _, ct: (3 * lax.psum(ct, "i"),))
    shared = jax.vmap(lambda _, x: g(x), axis_name="i", in_axes=(0, None), out_axes=None)
    assert shared(x, 2.0) == 8.0 and jax.grad(shared, argnums=1)(x, 2.0) == 12.0
    # some results have lanes and others none
    h = jax.custom_jvp(lambda x, y: (x * y, 3 * y))
    h.defjvp(lambda p, t: (h(*p), (p[0] * t[1] + p[1] * t[0], 3 * t[1])))
    a, b = jax.vmap(h, in_axes=(0, None), out_axes=(0, None))(x, 2.0)
    assert a.tolist() == [0.0, 2.0, 4.0, 6.0] and b == 6.0
