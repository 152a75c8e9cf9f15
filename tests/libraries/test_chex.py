"""Chex: assertions, also inside of programs, dataclasses, variants."""

import io
import unittest

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)
RK = jax.random.PRNGKey(0)
x = jnp.asarray(rng.randn(4, 6), jnp.float32)
img = jnp.asarray(rng.randn(2, 8, 8, 3), jnp.float32)
seq = jnp.asarray(rng.randn(5, 2, 4), jnp.float32)


def verdicts(*assertions):
    """Whether each assertion holds."""
    out = []
    for assertion in assertions:
        try:
            out.append(assertion() is None)
        except AssertionError:
            out.append(False)
    return out


def programs(t):
    t("cx eqs", lambda: chex.assert_shape(x, (4, 5)), raises=AssertionError, why="the shape is (4, 6)")
    t("cx ok", lambda: verdicts(lambda: chex.assert_trees_all_close({"a": x}, {"a": x + 1e-8}), lambda: chex.assert_trees_all_close({"a": x}, {"a": x + 1e-2})))
    t("cx no", lambda: chex.assert_trees_all_close({"a": x}, {"a": x + 1}), raises=AssertionError, why="the trees differ")
    t("cx rank", lambda: chex.assert_rank(x, 3), raises=AssertionError, why="the rank is 2")
    t("cx type", lambda: chex.assert_type(x, int), raises=AssertionError, why="the dtype is float32")
    t("cx fin", lambda: chex.assert_tree_all_finite({"a": x / 0}), raises=AssertionError, why="elements are infinite")
    t("cx struct", lambda: chex.assert_trees_all_equal_structs({"a": 1}, {"b": 1}), raises=AssertionError, why="the keys differ")
    t("cx eqshape", lambda: chex.assert_equal_shape([x, x[0]]), raises=AssertionError, why="the shapes differ")

    @chex.dataclass
    class D:
        a: chex.Array
        b: int = 3

    t("cx dc", lambda: jax.tree.map(lambda v: v * 2, D(a=x)))
    t("cx dc2", lambda: D(a=x).replace(b=4).to_tuple())
    t("cx map", lambda: jax.jit(lambda d: d.a.sum() + d.b)(D(a=x)))

    @jax.jit
    @chex.assert_max_traces(1)
    def f1(x):
        return x + 1

    t("cx tr", lambda: (f1(x), f1(x[0])), raises=AssertionError, why="a second shape is traced")
    t(
        "cx chexify",
        lambda: chex.chexify(jax.jit(lambda x: (chex.assert_tree_all_finite(x), x)[1]), async_check=False)(x / 0),
        raises=AssertionError,
        why="elements are infinite",
    )
    t(
        "cx valueassert",
        lambda: chex.chexify(jax.jit(lambda x: (chex.assert_scalar_positive(x), x)[1]), async_check=False)(1),
        raises=AssertionError,
        why="a traced value is not a number of Python",
    )
    t("cx fakejit", lambda: (lambda c: (c.__enter__(), jax.jit(lambda x: x + 1)(x), c.__exit__(None, None, None))[1])(chex.fake_jit()))
    t(
        "cx pmap",
        lambda: (lambda c: (c.__enter__(), jax.pmap(lambda x: x + jax.lax.psum(1, "i"), axis_name="i")(x), c.__exit__(None, None, None))[1])(chex.fake_pmap()),
    )
    t("cx dim", lambda: chex.Dimensions(B=4, D=6)["BD"])
    t(
        "cx num",
        lambda: verdicts(
            lambda: chex.assert_numerical_grads(lambda x: jnp.sin(x).sum(), (x,), order=1, atol=0.05),
            lambda: chex.assert_numerical_grads(lambda x: (x * jax.lax.stop_gradient(x)).sum(), (x,), order=1, atol=0.05),
        ),
    )
    t("cx dev", lambda: verdicts(lambda: chex.assert_devices_available(1, "cpu"), lambda: chex.assert_devices_available(3, "cpu")))
    t("cx restrict", lambda: (lambda c: (c.__enter__(), 1, c.__exit__(None, None, None))[1])(chex.restrict_backends(allowed=["cpu"])))
    t("cx warn", lambda: chex.assert_axis_dimension(x, 0, 5), raises=AssertionError, why="the axis has four elements")
    t("cx treeshape", lambda: verdicts(lambda: chex.assert_tree_shape_prefix({"a": x}, (4,)), lambda: chex.assert_tree_shape_prefix({"a": x}, (5,))))
    t("cx one", lambda: verdicts(lambda: chex.assert_exactly_one_is_none(None, 1), lambda: chex.assert_exactly_one_is_none(None, None)))
    t("cx is", lambda: verdicts(lambda: chex.assert_is_broadcastable((4, 1), (4, 6)), lambda: chex.assert_is_broadcastable((3, 1), (4, 6))))

    class V(chex.TestCase):
        @chex.all_variants
        def test(self):
            f = self.variant(lambda x: x + 1)
            chex.assert_trees_all_close(f(x), x + 1)

    t("cx variants", lambda: str(unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(V))))


def values(t):
    """Assertions on values, shapes and trees; each as it passes and as it fails."""
    tree = {"a": x, "b": (jnp.arange(4), jnp.ones((4, 2), jnp.bfloat16))}
    t(
        "shape wild",
        lambda: verdicts(
            lambda: chex.assert_shape(x, (None, 6)),
            lambda: chex.assert_shape(x, (..., 6)),
            lambda: chex.assert_shape([x, x], (4, {5, 6})),
            lambda: chex.assert_shape(x, (None, 5)),
        ),
    )
    t("shape of several", lambda: chex.assert_shape([x, x[0]], [(4, 6), (7,)]), raises=AssertionError, why="the second shape is (6,)")
    t("rank of several", lambda: verdicts(lambda: chex.assert_rank([x, x[0]], [2, {0, 1}]), lambda: chex.assert_rank([x, x[0]], [2, {0, 2}])))
    t(
        "type of several",
        lambda: verdicts(lambda: chex.assert_type([x, jnp.arange(2)], [jnp.float32, int]), lambda: chex.assert_type([x, jnp.arange(2)], [int, int])),
    )
    t("scalar", lambda: verdicts(lambda: chex.assert_scalar(1), lambda: chex.assert_scalar(x)))
    t("scalar in", lambda: verdicts(lambda: chex.assert_scalar_in(0.3, 0, 1), lambda: chex.assert_scalar_in(1.5, 0, 1)))
    t(
        "scalar signs",
        lambda: verdicts(lambda: chex.assert_scalar_non_negative(0), lambda: chex.assert_scalar_negative(-1), lambda: chex.assert_scalar_positive(-1)),
    )
    t("size", lambda: verdicts(lambda: chex.assert_size(x, 24), lambda: chex.assert_size(x, 25)))
    t("divisible", lambda: verdicts(lambda: chex.assert_is_divisible(6, 3), lambda: chex.assert_is_divisible(7, 3)))
    t("equal", lambda: verdicts(lambda: chex.assert_equal(3, 3), lambda: chex.assert_equal(3, 4)))
    t("equal shapes", lambda: verdicts(lambda: chex.assert_equal_shape([x, x + 1]), lambda: chex.assert_equal_shape([x, x.T], dims=0)))
    t("equal prefix", lambda: verdicts(lambda: chex.assert_equal_shape_prefix([x, x[:, 0]], 1), lambda: chex.assert_equal_shape_prefix([x, x.T], 1)))
    t("equal suffix", lambda: verdicts(lambda: chex.assert_equal_shape_suffix([x, x[0]], 1), lambda: chex.assert_equal_shape_suffix([x, x.T], 1)))
    t("equal size", lambda: verdicts(lambda: chex.assert_equal_size([x, x.T]), lambda: chex.assert_equal_size([x, x[0]])))
    t("equal rank", lambda: verdicts(lambda: chex.assert_equal_rank([x, x.T]), lambda: chex.assert_equal_rank([x, x[0]])))
    t("dimension", lambda: verdicts(lambda: chex.assert_axis_dimension_gt(x, 0, 3), lambda: chex.assert_axis_dimension_lteq(x, 1, 5)))
    t("none", lambda: chex.assert_not_both_none(None, None), raises=AssertionError, why="both are None")
    t("tree no none", lambda: verdicts(lambda: chex.assert_tree_no_nones(tree), lambda: chex.assert_tree_no_nones({"a": None})))
    t("tree arrays", lambda: verdicts(lambda: chex.assert_tree_has_only_ndarrays(tree), lambda: chex.assert_tree_has_only_ndarrays({"a": 1})))
    t("tree shape", lambda: verdicts(lambda: chex.assert_tree_shape({"a": x}, (4, 6)), lambda: chex.assert_tree_shape_suffix({"a": x}, (5,))))
    t(
        "tree on device",
        lambda: verdicts(lambda: chex.assert_tree_is_on_device(tree, platform="cpu"), lambda: chex.assert_tree_is_on_device(tree, platform="tpu")),
    )
    t(
        "tree on host",
        lambda: verdicts(lambda: chex.assert_tree_is_on_host({"a": np.ones(2)}), lambda: chex.assert_tree_is_on_host(tree, allow_cpu_device=False)),
    )
    t("tree sharded", lambda: chex.assert_tree_is_sharded(tree, devices=jax.devices()), raises=AssertionError, why="the arrays are not sharded")
    t(
        "trees equal",
        lambda: verdicts(lambda: chex.assert_trees_all_equal(tree, tree), lambda: chex.assert_trees_all_equal(tree, jax.tree.map(lambda v: v + 1, tree))),
    )
    t("trees equal strict", lambda: chex.assert_trees_all_equal({"a": np.float32(1)}, {"a": 1.0}, strict=True), raises=AssertionError, why="the dtypes differ")
    t(
        "trees close",
        lambda: verdicts(
            lambda: chex.assert_trees_all_close(tree, jax.tree.map(lambda v: v * (1 + 1e-6), tree), rtol=1e-5),
            lambda: chex.assert_trees_all_close(tree, jax.tree.map(lambda v: v * (1 + 1e-3), tree), rtol=1e-5),
        ),
    )
    t(
        "trees ulp",
        lambda: verdicts(
            lambda: chex.assert_trees_all_close_ulp({"a": x}, {"a": x}), lambda: chex.assert_trees_all_close_ulp({"a": x}, {"a": x * 1.001}, maxulp=3)
        ),
    )
    t(
        "trees dtypes",
        lambda: verdicts(
            lambda: chex.assert_trees_all_equal_dtypes(tree, tree), lambda: chex.assert_trees_all_equal_dtypes({"a": x}, {"a": x.astype(jnp.float16)})
        ),
    )
    t(
        "trees shapes",
        lambda: verdicts(lambda: chex.assert_trees_all_equal_shapes(tree, tree), lambda: chex.assert_trees_all_equal_shapes_and_dtypes({"a": x}, {"a": x.T})),
    )
    t("trees sizes", lambda: chex.assert_trees_all_equal_sizes({"a": x}, {"a": x[0]}), raises=AssertionError, why="the sizes differ")
    t(
        "trees comparator",
        lambda: chex.assert_trees_all_equal_comparator(lambda a, b: a.ndim == b.ndim, lambda a, b: f"{a} {b}", tree, {"a": x[0], "b": tree["b"]}),
        raises=AssertionError,
        why="the ranks differ",
    )


def programs_of(t):
    """Assertions inside of programs, dataclasses under transformations, dimensions, counts of traces, backends."""
    t("jit shape", lambda: jax.jit(lambda v: (chex.assert_shape(v, (4, 7)), v)[1])(x), raises=AssertionError, why="the shape is (4, 6)")
    t("vmap rank", lambda: jax.vmap(lambda v: (chex.assert_rank(v, 1), v.sum())[1])(x))
    t("grad equal", lambda: jax.grad(lambda v: (chex.assert_equal_shape([v, x]), (v * x).sum())[1])(x))
    t(
        "traced value",
        lambda: jax.jit(lambda v: (chex.assert_tree_all_finite(v), v)[1])(x),
        raises=RuntimeError,
        why="an assertion on values under jit needs chexify",
    )

    @chex.chexify
    @jax.jit
    def checked(v):
        chex.assert_trees_all_close(v, jnp.abs(v))
        return jnp.sqrt(v)

    t("chexify close", lambda: (checked(jnp.abs(x)), checked.wait_checks())[0])
    t("chexify fails", lambda: (checked(x), checked.wait_checks()), raises=AssertionError, why="elements are negative")
    t(
        "chexify vmap",
        lambda: chex.chexify(jax.jit(jax.vmap(lambda v: (chex.assert_scalar_in(v, -9.0, 9.0), v * 2)[1])), async_check=False)(x[:, 0]),
        raises=AssertionError,
        why="a traced value is not a number of Python",
    )
    t(
        "chexify scan",
        lambda: chex.chexify(jax.jit(lambda v: jax.lax.scan(lambda c, r: ((chex.assert_tree_all_finite(r), c + r)[1], c), jnp.zeros(6), v)), async_check=False)(
            x
        ),
    )
    t(
        "jittable",
        lambda: chex.chexify(
            jax.jit(chex.with_jittable_assertions(lambda v: (chex.assert_trees_all_equal(v, v + 1), v)[1], async_check=False)), async_check=False
        )(x),
        raises=RuntimeError,
        why="jittable assertions of their own stand inside of chexify",
    )

    @chex.dataclass(frozen=True)
    class Layer:
        w: chex.ArrayDevice
        b: chex.ArrayDevice
        name: str = "layer"

    @chex.dataclass(mappable_dataclass=True)
    class Old:
        w: chex.Array

    layer = Layer(w=x, b=x[0])
    t("dataclass grad", lambda: jax.grad(lambda p: (p.w @ jnp.ones(6) + p.b.sum()).sum())(layer.replace(name=1.0)))
    # The name is a Python number still in JAX's result, an array in Ferrax's: docs/differences-from-jax.md.
    scan = lambda: jax.lax.scan(lambda p, _: (p.replace(w=p.w * 0.5), p.w.sum()), Layer(w=x, b=x[0], name=0.0), None, length=3)
    t("dataclass scan", lambda: jax.tree.map(jnp.asarray, scan()))
    t("dataclass frozen", lambda: setattr(layer, "w", 1), raises="FrozenInstanceError", why="the class is frozen")
    t("dataclass positional", lambda: Layer(x, x), raises=ValueError, why="fields are given by name")
    t("dataclass keys", lambda: [jax.tree_util.keystr(k) for k, _ in jax.tree_util.tree_leaves_with_path(layer)])
    t("dataclass mapping", lambda: (dict(**Old(w=x)), list(Old(w=x).keys()), Old(w=x)["w"]))
    t("dataclass from tuple", lambda: Layer.from_tuple((x, x[0], "n")).b)
    t(
        "dimensions",
        lambda: (lambda d: (chex.assert_shape(x, d["BD"]), d["BDB"], d.__setitem__("TC", (2, 3)), d["TC"]))(chex.Dimensions(B=4, D=6)),
    )
    t("dimensions flat", lambda: chex.Dimensions(B=4, D=6)["(BD)"])
    t("dimensions absent", lambda: chex.Dimensions(B=4)["C"], raises=KeyError, why="C has no size")
    t("traces cleared", lambda: (chex.clear_trace_counter(), jax.jit(chex.assert_max_traces(n=2)(lambda v: v + 1))(x))[1])

    def restricted():
        with chex.restrict_backends(forbidden=["cpu"]):
            return jax.jit(lambda v: v * 7)(x)

    def faked():
        with chex.fake_pmap_and_jit():
            return jax.pmap(jax.jit(lambda v: v - jax.lax.pmean(v, "i")), axis_name="i")(x)

    t("restricted", lambda: restricted(), raises="RestrictedBackendError", why="the backend is forbidden")
    t("no asserts", lambda: [(switch(), verdicts(lambda: chex.assert_rank(x, 7)))[1] for switch in (chex.disable_asserts, chex.enable_asserts)])
    t("fake pmap and jit", lambda: faked())

    for kind in ("with_jit", "without_jit", "with_device", "without_device", "with_pmap"):

        class Variant(chex.TestCase):
            @chex.variants(**{kind: True})
            def test(self):
                chex.assert_trees_all_close(self.variant(lambda v: v * 2)(x), x * 2)

        t(f"variant {kind}", lambda: str(unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(Variant))))


def all_of(t):
    programs(t)
    values(t)
    programs_of(t)


PROGRAMS = Programs(all_of)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_chex(name):
    PROGRAMS.check(name)
