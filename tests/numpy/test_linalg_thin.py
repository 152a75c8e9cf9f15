"""Derivatives at matrices with one long side: nothing on the way is larger than the matrices, and they are those of differences."""

import ferrax as jax
import ferrax.numpy as jnp
import ferrax.scipy.linalg as sl
import numpy as np
import pytest
from ferrax import lax

LONG, SHORT = 300, 3
total = lambda *xs: sum(jnp.sum(jnp.sin(jnp.real(x)) + jnp.cos(jnp.imag(x))) for x in xs)
FUNCTIONS = {
    "pinv": lambda a: total(jnp.linalg.pinv(a)),
    "lstsq": lambda a: total(jnp.linalg.lstsq(a, jnp.ones((a.shape[0], 2), a.dtype))[0]),
    "svd": lambda a: total(jnp.linalg.svd(a, full_matrices=False)[1]),
    "svdvals": lambda a: total(jnp.linalg.svdvals(a)),
    "nuclear norm": lambda a: jnp.linalg.norm(a, "nuc"),
    "norm": lambda a: jnp.linalg.norm(a, 2),
    "cond": lambda a: jnp.linalg.cond(a),
    "qr": lambda a: total(*jnp.linalg.qr(a)),
    "lu": lambda a: total(lax.linalg.lu(a)[0]),
    "polar": lambda a: total(sl.polar(a, side="right" if a.shape[0] > a.shape[1] else "left")[0]),
}


@pytest.fixture(autouse=True)
def wide(x64):
    """Both widths are there."""


def largest(jaxpr):
    """The most elements that a value in a program has."""
    most = 0
    for eqn in jaxpr.eqns:
        most = max([most, *(int(np.prod(v.aval.shape)) for v in eqn.outvars)])
        for p in eqn.params.values():
            for inner in p if isinstance(p, (tuple, list)) else [p]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    most = max(most, largest(inner))
    return most


def matrix(m, n, dtype, seed=0):
    r = np.random.default_rng(seed)
    return (r.standard_normal((m, n)) + (1j * r.standard_normal((m, n)) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)


@pytest.mark.parametrize("shape", [(LONG, SHORT), (SHORT, LONG)], ids=["tall", "wide"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_memory(name, shape):
    f, a = FUNCTIONS[name], matrix(*shape, np.float64)
    for of in (jax.grad(f), lambda a: jax.jvp(f, (a,), (a,)), lambda a: jax.jvp(jax.grad(f), (a,), (a,))):
        assert largest(jax.make_jaxpr(of)(a).jaxpr) <= 4 * LONG * SHORT


@pytest.mark.parametrize("dtype", [np.float64, np.complex128], ids=lambda t: t.__name__)
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (5, 5)], ids=["tall", "wide", "square"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, shape, dtype):
    if np.dtype(dtype).kind == "c" and name == "qr":
        return  # whose phases are not told
    f, a, d = FUNCTIONS[name], matrix(*shape, dtype), matrix(*shape, dtype, seed=1)
    h = 1e-6
    want = float(f(a + h * d) - f(a - h * d)) / (2 * h)
    np.testing.assert_allclose(jax.jvp(f, (a,), (d,))[1], want, rtol=1e-5)
    np.testing.assert_allclose(np.real(np.sum(np.asarray(jax.grad(f)(a)) * d)), want, rtol=1e-5)


def test_the_derivative_of_a_pseudo_inverse_of_many_columns():
    a = matrix(2, 100_000, np.float32)
    got = jax.grad(lambda a: jnp.sum(jnp.linalg.pinv(a) ** 2))(a)
    # The sum of 1 / s^2, whose derivative by a is -2 u s^-3 v'.
    u, s, vh = np.linalg.svd(a.astype(np.float64), full_matrices=False)
    np.testing.assert_allclose(got, -2 * (u / s**3) @ vh, rtol=1e-3, atol=1e-3 / s[1] ** 3)


# ---------------------------------------------------------------- values that are close


@pytest.mark.parametrize("dtype, gaps", [(np.float32, [3e-2, 1e-3, 1e-5, 1e-6]), (np.float64, [1e-3, 1e-8, 1e-12, 1e-14])], ids=["float32", "float64"])
def test_eigenvectors_of_close_values(dtype, gaps):
    # Of diag(1, 1 + gap, 3), turned by nothing: v_1 moves by d[0, 1] / gap along the first axis.
    d = np.array([[0.3, 0.5, -0.2], [0.5, 0.1, 0.4], [-0.2, 0.4, 0.7]], dtype)
    for gap in gaps:
        a = np.diag([1, 1 + gap, 3]).astype(dtype)
        gap = float(a[1, 1] - a[0, 0])
        for mode in ("forward", "reverse"):
            of = lambda a: jnp.linalg.eigh(a)[1]
            if mode == "forward":
                got = np.asarray(jax.jvp(of, (a,), (d,))[1])
            else:
                got = np.tensordot(np.asarray(jax.jacrev(of)(a)), d, 2)
            v = np.asarray(of(a))
            np.testing.assert_allclose(got[0, 1] * np.sign(v[1, 1]), 0.5 / gap, rtol=1e-5)
            np.testing.assert_allclose(got[1, 0] * np.sign(v[0, 0]), -0.5 / gap, rtol=1e-5)


@pytest.mark.parametrize("n", [8, 40, 150])
def test_functions_of_spaces_of_equal_values_stay_finite(n):
    r = np.random.default_rng(n)
    q = np.linalg.qr(r.standard_normal((n, n)))[0]
    half = n // 2
    for dtype in (np.float32, np.float64):
        a = ((q * np.where(np.arange(n) < half, 1.0, 2.0)) @ q.T).astype(dtype)
        a, d = (a + a.T) / 2, r.standard_normal((n, n)).astype(dtype)
        d = (d + d.T) / 2

        def projector(a):
            v = jnp.linalg.eigh(a)[1][:, :half]
            return v @ v.T

        p = (q[:, :half] @ q[:, :half].T).astype(np.float64)
        other = np.eye(n) - p
        want = -(p @ d @ other + other @ d @ p)
        got = np.asarray(jax.jvp(projector, (a,), (d,))[1], np.float64)
        np.testing.assert_allclose(got, want, atol=np.abs(want).max() * 2e3 * np.finfo(dtype).eps * np.sqrt(n))


@pytest.mark.parametrize("gap", [1e-4, 1e-6])
def test_singular_vectors_and_general_eigenvectors_of_close_values(gap):
    d = np.array([[0.3, 0.5, -0.2], [0.1, 0.1, 0.4], [-0.6, 0.4, 0.7]], np.float32)
    a = np.diag([3, 1 + gap, 1]).astype(np.float32)
    narrow = [jax.jvp(f, (a,), (d,))[1] for f in (lambda a: jnp.linalg.svd(a)[0], lambda a: jnp.linalg.eig(a)[1])]
    whole = [jax.jvp(f, (a.astype(np.float64),), (d.astype(np.float64),))[1] for f in (lambda a: jnp.linalg.svd(a)[0], lambda a: jnp.linalg.eig(a)[1])]
    for x, y in zip(narrow, whole, strict=True):
        np.testing.assert_allclose(np.abs(x), np.abs(y), rtol=1e-4, atol=1e-5)
