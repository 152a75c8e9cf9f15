"""Sums, products and other folds over dimensions that are cut among devices: of every dtype what one device computes, and of narrow floats rounded once."""

import textwrap

import pytest

pytestmark = pytest.mark.ours


@pytest.fixture
def on_devices(forked_child, jax):
    """Runs code with four CPU devices."""
    return lambda code: forked_child(SETUP.format(library=jax.__name__) + textwrap.dedent(code), NUM_CPU_DEVICES="4")


SETUP = """
from {library} import lax
from {library}.sharding import PartitionSpec as P, NamedSharding, AxisType
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
grid = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
r = np.random.default_rng(0)
def put(x, *spec, mesh=mesh): return jax.device_put(x, NamedSharding(mesh, P(*spec)))
def compare(name, f, *args, specs):
    want = jax.jit(f)(*args)
    for on in (mesh, grid):
        for how in (jax.jit(f), f):
            xs = [put(x, *(None if s is None else s if on is mesh else ("x", "y") for s in spec), mesh=on) for x, spec in zip(args, specs, strict=True)]
            for g, w in zip(jax.tree.leaves(how(*xs)), jax.tree.leaves(want), strict=True):
                assert g.dtype == w.dtype and g.shape == w.shape, (name, g.dtype, w.dtype)
                g, w = np.asarray(g), np.asarray(w)
                assert g.tobytes() == w.tobytes(), (name, args[0].dtype, on.shape, g.ravel()[:8], w.ravel()[:8])
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float32"])
def test_terms_of_narrow_floats_are_not_rounded(on_devices, dtype):
    """Integers whose sums single precision has exactly: the order cannot matter, and rounding the terms of each device would."""
    on_devices(
        f"""
        d = jnp.dtype("{dtype}")
        most = {{"bfloat16": 100, "float16": 30, "float32": 100}}.get(d.name, 3)
        draw = lambda *shape: jnp.asarray(r.integers(-most, most + 1, shape), d)
        a, b, c, e, v, w = draw(8, 16), draw(16, 8), draw(16, 8), draw(3, 8, 16), draw(16), draw(16)
        ordinary = {{
            "matmul": (lambda a, b: a @ b, (a, b), [(None, "x"), ("x",)]),
            "vector": (lambda v, w: v @ w, (v, w), [("x",), ("x",)]),
            "one cut": (lambda a, b: a @ b, (a, b), [(None, "x"), ()]),
            "rows": (lambda b, c: b.T @ c, (b, c), [("x",), ("x",)]),
            "einsum": (lambda e, b: jnp.einsum("bij,jk->bik", e, b), (e, b), [(None, None, "x"), ("x",)]),
            "all": (lambda e, b: jnp.einsum("bij,jk->", e, b), (e, b), [(None, None, "x"), ("x",)]),
            "vdot": (jnp.vdot, (a, a), [(None, "x"), (None, "x")]),
            "tensordot": (lambda a, b: jnp.tensordot(a, b, 1), (a, b), [(None, "x"), ("x",)]),
            "asked for": (lambda a, b: lax.dot(a, b, preferred_element_type=d), (a, b), [(None, "x"), ("x",)]),
            "added": (lambda a, b, c: a @ b + a @ c, (a, b, c), [(None, "x"), ("x",), ("x",)]),
            "gradient": (jax.grad(lambda w, x: (x @ w).astype("float32").sum()), (a.T, draw(16, 16)), [(), ("x",)]),
            "convolution": (lambda x, k: lax.conv(x, k, (1,), "SAME"), (draw(2, 16, 6), draw(3, 16, 3)), [(None, "x"), (None, "x")]),
            "slope of a convolution": (
                jax.grad(lambda k, x: lax.conv(x, k, (1,), "SAME").astype("float32").sum()), (draw(3, 4, 3), draw(16, 4, 6)), [(), ("x",)]
            ),
            "sum": (lambda b: b.sum(0), (b,), [("x",)]),
            "sum of its dtype": (lambda b: jnp.sum(b, dtype=d), (b,), [("x",)]),
            "reduced": (lambda b: lax.reduce_sum_p.bind(b, axes=(0,), out_sharding=None), (b,), [("x",)]),
            "mean": (lambda b: b.mean(0), (b,), [("x",)]),
            "scatter": (lambda v: jnp.zeros(3, d).at[jnp.arange(16) % 3].add(v), (v,), [("x",)]),
            "product": (lambda v: lax.reduce_prod_p.bind(v, axes=(0,)), (jnp.asarray([1, 2, 1, 3] + [1] * 12, d),), [("x",)]),
        }}
        for name, (f, args, specs) in ordinary.items():
            if name == "scatter" and d.itemsize < 4:
                continue  # one device rounds after each update
            compare(name, f, *args, specs=specs)
        """
    )


def test_terms_of_each_device_may_leave_the_range(on_devices):
    on_devices(
        """
        big = jnp.asarray([60000.0, 60000.0, -60000.0, -60000.0] + [60000.0, 60000.0, -60000.0, -59000.0] * 3, "float16")
        one = jnp.ones(16, "float16")
        compare("dot", lambda a, b: a @ b, big[jnp.array([0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15])], one, specs=[("x",), ("x",)])
        compare("reduced", lambda a: lax.reduce_sum_p.bind(a, axes=(0,), out_sharding=None), big, specs=[("x",)])
        assert float(jax.jit(lambda a, b: a @ b)(put(big, "x"), put(one, "x"))) == 2976
        """
    )


@pytest.mark.parametrize("dtype", ["bool", "int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_folds_of_narrow_integers_and_booleans(on_devices, dtype):
    on_devices(
        f"""
        d = jnp.dtype("{dtype}")
        x = lambda *shape: jnp.asarray(r.integers(0, 4, shape), "int32").astype(d)
        a, b, v, w = x(8, 16), x(16, 8), x(16), x(16)
        few = jnp.zeros(16, d).at[5].set(jnp.ones((), d))
        forms = {{
            "vector": (lambda v, w: v @ w, (v, w), [("x",), ("x",)]),
            "alone": (lambda v: v @ v, (few,), [("x",)]),
            "matmul": (lambda a, b: a @ b, (a, b), [(None, "x"), ("x",)]),
            "einsum": (lambda a, b: jnp.einsum("ij,jk->i", a, b), (a, b), [(None, "x"), ("x",)]),
            "dot_general": (lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ()))), (a, b), [(None, "x"), ("x",)]),
            "wide": (lambda a, b: lax.dot(a, b, preferred_element_type="int32"), (a, b), [(None, "x"), ("x",)]),
            "any": (lambda b: b.any(0), (b,), [("x",)]),
            "all": (lambda b: b.all(0), (b,), [("x",)]),
            "sum": (lambda b: b.sum(0), (b,), [("x",)]),
            "count": (jnp.count_nonzero, (b,), [("x",)]),
            "prod": (lambda b: b.prod(0), (b,), [("x",)]),
            "max": (lambda b: b.max(0), (b,), [("x",)]),
            "min": (lambda b: b.min(0), (b,), [("x",)]),
            "argmax": (lambda b: b.argmax(0), (b,), [("x",)]),
            "argmin": (lambda b: b.argmin(0), (b,), [("x",)]),
            "and": (lambda b: lax.reduce_and_p.bind(b, axes=(0,)), (b,), [("x",)]),
            "or": (lambda b: lax.reduce_or_p.bind(b, axes=(0,)), (b,), [("x",)]),
            "xor": (lambda b: lax.reduce_xor_p.bind(b, axes=(0,)), (b,), [("x",)]),
            "mean": (lambda b: b.mean(0), (b,), [("x",)]),
            "cumsum": (lambda b: b.cumsum(0), (b,), [("x",)]),
            "cumprod": (lambda b: b.cumprod(0), (b,), [("x",)]),
            "sort": (lambda b: jnp.sort(b, 0), (b,), [("x",)]),
            "scatter": (lambda v: jnp.zeros(3, d).at[jnp.arange(16) % 3].add(v), (v,), [("x",)]),
            "scatter of few": (lambda v: jnp.zeros(3, d).at[jnp.arange(16) % 3].add(v), (few,), [("x",)]),
            "onto": (lambda v: jnp.ones(3, d).at[jnp.arange(16) % 3].add(v), (few,), [("x",)]),
            "scatter max": (lambda v: jnp.zeros(3, d).at[jnp.arange(16) % 3].max(v), (v,), [("x",)]),
            "scatter min": (lambda v: jnp.ones(3, d).at[jnp.arange(16) % 3].min(v), (v,), [("x",)]),
            "where": (lambda b: jnp.where(b.astype(bool), 2, 3).sum(0), (b,), [("x",)]),
            "convolution": (lambda x, k: lax.conv(x, k, (1,), "SAME"), (x(2, 16, 6), x(3, 16, 3)), [(None, "x"), (None, "x")]),
        }}
        for name, (f, args, specs) in forms.items():
            try:
                jax.jit(f)(*args)
            except (TypeError, ValueError):
                continue  # not on one device either
            compare(name, f, *args, specs=specs)
        """
    )


def test_each_dimension_of_a_constraint_is_open_or_not(on_devices):
    on_devices(
        """
        U = P.UNCONSTRAINED
        x = put(np.arange(64.0).reshape(8, 8), "x", "y", mesh=grid)
        y = put(np.arange(64.0).reshape(8, 8), None, ("x", "y"), mesh=grid)
        def spec(x, *s, f=lambda x: x * 2):
            c = lambda x: lax.with_sharding_constraint(f(x), NamedSharding(grid, P(*s)))
            got, eager = jax.jit(c)(x), c(x)
            np.testing.assert_array_equal(np.asarray(got), np.asarray(f(np.asarray(x))))
            return tuple(got.sharding.spec)
        assert spec(x, U, None) == ("x",) and spec(x, None, U) == (None, "y") and spec(x, U, U) == ("x", "y")
        assert spec(x, U, "y") == ("x", "y") and spec(x, "x", U) == ("x", "y") and spec(x, None, None) == ()
        assert spec(x, U) in (("x",), ("x", "y")) and spec(y, U, None) == () and spec(y, None, U) == (None, ("x", "y"))
        assert spec(y, U, "x") == (None, "x") and spec(x, U, None, f=lambda x: x.T) == ("y",)
        # what follows does not cut it further, and results may be asked for otherwise
        f = jax.jit(lambda x: (lax.with_sharding_constraint(x, NamedSharding(grid, P(U, None))) + x).sum(1))
        np.testing.assert_array_equal(np.asarray(f(x)), 2 * np.asarray(x).sum(1))
        g = jax.jit(lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(grid, P(U, None))), out_shardings=NamedSharding(grid, P(None, "y")))
        assert tuple(g(x).sharding.spec) == (None, "y")
        # the lanes of a batch are open
        h = jax.jit(jax.vmap(lambda v: lax.with_sharding_constraint(v * 2, NamedSharding(grid, P(None)))))
        assert tuple(h(x).sharding.spec) == ("x",)
        """
    )
