"""Sums over devices are taken late: terms that are added are added on each device first. What is computed is what one device computes."""

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
def put(x, *spec, mesh=mesh): return jax.device_put(jnp.asarray(x), NamedSharding(mesh, P(*spec)))
def text(f, *x): return "\\n".join(l for l in jax.jit(f).lower(*x).compile().as_text().split("\\n") if not l.startswith("#"))
def count(f, *x): return text(f, *x).count("all-reduce") + text(f, *x).count("reduce-scatter")
A, B, C, D = (r.integers(-3, 4, (8, 8)).astype(np.float32) for _ in range(4))
cols, rows = [put(v, None, "x") for v in (A, B)], [put(v, "x", None) for v in (C, D)]
def agree(f, *x, exact=True):
    got, want = jax.jit(f)(*x), jax.jit(f)(*(np.asarray(v) for v in x))
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        (np.testing.assert_array_equal if exact else lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5))(np.asarray(g), np.asarray(w))
"""


def test_terms_that_are_added_are_summed_once(on_devices):
    on_devices(
        """
        a, b, c, d = *cols, *rows
        forms = {
            "added": lambda a, b, c, d: a @ c + b @ d,
            "subtracted": lambda a, b, c, d: a @ c - b @ d,
            "transposed": lambda a, b, c, d: (a @ c).T + (b @ d).T,
            "negated": lambda a, b, c, d: -(a @ c) + b @ d,
            "scaled": lambda a, b, c, d: 2 * (a @ c) + (b @ d) * 3,
            "scaled by an array": lambda a, b, c, d: (a @ c) * A + b @ d,
            "reshaped": lambda a, b, c, d: (a @ c).reshape(-1) + (b @ d).reshape(-1),
            "sliced": lambda a, b, c, d: (a @ c)[2:4] + (b @ d)[:2],
            "four": lambda a, b, c, d: (a @ c + b @ d) + (a @ d + b @ c),
            "sums": lambda a, b, c, d: c.sum(0) + d.sum(0),
            "joined": lambda a, b, c, d: jnp.concatenate([a @ c, b @ d]),
        }
        for name, f in forms.items():
            agree(f, a, b, c, d)
            assert count(f, a, b, c, d) == 1, (name, text(f, a, b, c, d))
        """
    )


def test_what_cannot_wait_does_not(on_devices):
    on_devices(
        """
        a, b, c, d = *cols, *rows
        forms = {
            "a function that is not linear": (lambda a, b, c, d: jnp.tanh(a @ c) + b @ d, 2),
            "a term that is read twice": (lambda a, b, c, d: ((y := a @ c) + b @ d, jnp.sin(y)), 2),
            "a result": (lambda a, b, c, d: ((y := a @ c) + b @ d, y), 2),
            "a product of terms": (lambda a, b, c, d: (a @ c) * (b @ d) + a @ d, 3),
            "an operand that is whole": (lambda a, b, c, d: a @ c + A, 1),
            "a maximum": (lambda a, b, c, d: jnp.maximum(a @ c, b @ d), 2),
            "a constraint": (lambda a, b, c, d: lax.with_sharding_constraint(a @ c, NamedSharding(mesh, P())) + b @ d, 2),
            "another dtype": (lambda a, b, c, d: (a @ c).astype("bfloat16") + (b @ d).astype("bfloat16"), 2),
        }
        for name, (f, n) in forms.items():
            agree(f, a, b, c, d, exact=False)
            assert count(f, a, b, c, d) <= n, (name, text(f, a, b, c, d))
        """
    )


def test_gradients_of_a_shared_weight(on_devices):
    """However often the weight is used, its gradient is summed over devices once; so over meshes of two axes, and where the result is in parts."""
    on_devices(
        """
        w = r.normal(size=(8, 8)).astype(np.float32) / 3
        def loss(w, x, n=4):
            for _ in range(n): x = jnp.tanh(x @ w)
            return (x**2).mean()
        for n in (1, 2, 5):
            f = lambda w, x: w - 0.1 * jax.grad(loss)(w, x, n)
            x = put(A, "x")
            agree(f, put(w), x, exact=False)
            assert count(f, put(w), x) == 1, text(f, put(w), x)
            parts = lambda w, x: lax.with_sharding_constraint(jax.grad(loss)(w, x, n), NamedSharding(mesh, P("x", None)))
            agree(parts, put(w), x, exact=False)
            assert count(parts, put(w), x) <= 1, text(parts, put(w), x)
            both = put(A, "x", None, mesh=grid), put(w, None, "y", mesh=grid)
            agree(lambda x, w: f(w, x), *both, exact=False)
        tied = lambda p, x: (jnp.tanh(x @ p["e"] + p["b"]) @ p["e"].T + p["b"].sum()).var()
        g = lambda e, b, x: jax.grad(tied)({"e": e, "b": b}, x)
        agree(g, put(w), put(w[0]), put(A, "x"), exact=False)
        """
    )


def test_loops_and_branches(on_devices):
    on_devices(
        """
        a, b, c, d = *cols, *rows
        def f(a, b, c, d):
            def step(s, k):
                return s + (a @ c + k * (b @ d)), s.sum()
            s, sums = lax.scan(step, jnp.zeros((8, 8)), jnp.arange(3.0))
            return lax.cond(s.sum() > 0, lambda: a @ c + b @ d, lambda: a @ d - b @ c), s, sums
        agree(f, a, b, c, d)
        g = jax.grad(lambda w, x: lax.scan(lambda h, _: (jnp.tanh(h @ w + h @ w.T), None), x, None, length=3)[0].sum())
        agree(g, put(A / 9), put(B / 3, "x"), exact=False)
        """
    )
