"""Exported programs of symbolic sizes: what Python's arithmetic makes of a size, called at sizes of each kind."""

import importlib

import numpy as np
import pytest


@pytest.fixture
def export(jax):
    return importlib.import_module(f"{jax.__name__}.export")


def exported(jax, export, f, text="n", constraints=()):
    shapes = [jax.ShapeDtypeStruct(s, np.float32) for s in export_shapes(export, text, constraints)]
    return export.export(jax.jit(f))(*shapes)


def export_shapes(export, text, constraints):
    scope = export.SymbolicScope(constraints)
    return [export.symbolic_shape(t, scope=scope) for t in text.split(";")]


# Functions of an array and its size, with floats of Python in between.
FLOATS = {
    "a float over it": lambda x, n: x * (2.0 / n),
    "one over it": lambda x, n: x.sum() * (1.0 / n),
    "half of it": lambda x, n: x * (0.5 * n),
    "it by half": lambda x, n: x * (n * 0.5),
    "a float without it": lambda x, n: x + (0.5 - n),
    "it without a float": lambda x, n: x + (n - 0.5),
    "quotients": lambda x, n: x * (n / 2) + n / 4.0,
    "a tenth": lambda x, n: x + 0.1 * n,
    "of what is left": lambda x, n: x * (0.5 * (n - 1)),
    "over a product": lambda x, n: x * (3.0 / (2 * n)),
    "over a sum": lambda x, n: x * (1.0 / (n + 1)),
    "a large number": lambda x, n: x + 1e6 * n,
    "a small number": lambda x, n: x + 1e-6 * n,
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_of_a_size(jax, jnp, export, name):
    f = lambda x: FLOATS[name](x, x.shape[0])
    e = exported(jax, export, f)
    again = export.deserialize(e.serialize()) if jax.__name__ == "ferrax" else e
    for n in (1, 2, 3, 7, 100, 4096):
        x = jnp.arange(n, dtype=np.float32) + 1
        np.testing.assert_allclose(e.call(x), f(x), rtol=3e-7, err_msg=str(n))
        np.testing.assert_array_equal(again.call(x), e.call(x))


def test_floats_of_two_sizes(jax, jnp, export):
    f = lambda x, y: x.sum() * (1.0 / (x.shape[0] * y.shape[0])) + 0.5 * y.shape[0]
    e = exported(jax, export, f, "n;m")
    for n, m in [(1, 1), (3, 5), (40, 7)]:
        x, y = jnp.ones(n), jnp.ones(m)
        np.testing.assert_allclose(e.call(x, y), f(x, y), rtol=1e-6)


EXTREMES = {
    "min": lambda core, n, m: core.min_dim(n, 4),
    "max": lambda core, n, m: core.max_dim(n, 4),
    "large min": lambda core, n, m: core.min_dim(n, 3000),
    "large max": lambda core, n, m: core.max_dim(n, 3000),
    "of two": lambda core, n, m: core.min_dim(n, m),
    "in a sum": lambda core, n, m: core.max_dim(n, m + 2) + 1,
    "of a half": lambda core, n, m: core.min_dim(n // 2, 5),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_sizes_on_both_sides_of_an_extreme(jax, jnp, export, name):
    core = importlib.import_module(f"{jax.__name__}.core")
    size = lambda x, y: EXTREMES[name](core, x.shape[0], y.shape[0])
    e = exported(jax, export, lambda x, y: jnp.zeros(size(x, y)) + x[0], "n;m")
    for n, m in [(1, 1), (2, 9), (3, 2), (4, 4), (5, 3), (9, 2), (30, 40), (4000, 2)]:
        x, y = jnp.ones(n), jnp.ones(m)
        assert e.call(x, y).shape == (size(x, y),), (n, m)


def test_constraints_decide_comparisons(export):
    (n,) = export.symbolic_shape("n", constraints=["n >= 4", "n <= 64"])
    assert n >= 2 and n > 3 and n // 2 >= 2 and n % 4 < 4 and n * 2 <= 128 and n // 8 <= 8 and not n < 4
    assert (str(max(n, 3)), str(n + 1 > 4)) == ("n", "True")
    (k,) = export.symbolic_shape("k", constraints=["2*k >= 9"])
    assert k >= 5 and k // 5 >= 1


REFUSED = {
    "lambda n, m: n ** 0.5": ("ValueError", "Symbolic dimension cannot be raised to non-integer powers: 'n' ** '0.5'"),
    "lambda n, m: n ** -1": ("ValueError", "Symbolic dimension cannot be raised to negative powers: 'n' ** '-1'"),
    "lambda n, m: n >= m": ("ValueError", "Invalid mixing of symbolic scopes when comparing 'n' >= 'm'."),
    "lambda n, m: n < m": ("ValueError", "Invalid mixing of symbolic scopes when comparing 'n' < 'm'."),
    "lambda n, m: n << 1": ("TypeError", "unsupported operand type(s) for <<: '_DimExpr' and 'int'"),
    "lambda n, m: range(n)": ("TypeError", "'_DimExpr' object cannot be interpreted as an integer"),
    "lambda n, m: abs(n)": ("TypeError", "bad operand type for abs(): '_DimExpr'"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_invalid_operations_on_sizes(export, text):
    (n,), (m,) = export.symbolic_shape("n"), export.symbolic_shape("m")
    with pytest.raises(Exception) as e:
        eval(text)(n, m)
    assert (type(e.value).__name__, str(e.value).splitlines()[0]) == REFUSED[text]


RESHAPES = {
    "n": [("(-1, 2)", "(n,) and (-1, 2). The remainder mod(n, - 2) should be 0."), ("(2, -1)", "(n,) and (2, -1). The remainder mod(n, - 2) should be 0.")],
    "n, m": [("(x.shape[0] * 2, -1)", "(n, m) and (2*n, -1). The remainder mod(m*n, - 2*n) should be 0.")],
}


@pytest.mark.parametrize("shape", RESHAPES)
def test_reshapes_that_need_not_divide(jax, export, shape):
    for new, text in RESHAPES[shape]:
        with pytest.raises(Exception, match="Cannot divide evenly") as e:
            exported(jax, export, lambda x, new=new: x.reshape(eval(new)), shape)
        assert type(e.value).__name__ == "InconclusiveDimensionOperation"
        assert str(e.value).splitlines()[0] == f"Cannot divide evenly the sizes of shapes {text}"
    e = exported(jax, export, lambda x: x.reshape(-1, 2), "2*n")
    assert e.call(np.ones(6, np.float32)).shape == (3, 2)


# Sizes that a function takes from around it, of the scope of its arguments.
AROUND = {
    "zeros": lambda jnp, x, n: jnp.zeros(n) + x,
    "shapes": lambda jnp, x, n: jnp.broadcast_to(x.sum(), (n, n + 1)),
    "arange": lambda jnp, x, n: jnp.arange(n) + x,
    "arange of a float": lambda jnp, x, n: jnp.arange(0, n, dtype=jnp.float32) * x,
    "reshape": lambda jnp, x, n: x.reshape(1, n),
    "slice": lambda jnp, x, n: x[: n - 1],
    "number": lambda jnp, x, n: x * n + n * x,
    "float": lambda jnp, x, n: x * (n * 0.5) + 0.5 * x / n,
    "difference": lambda jnp, x, n: x - n + (n - x),
    "quotient": lambda jnp, x, n: x * (n / 2),
    "equality": lambda jnp, x, n: x if x.shape[0] == n else -x,
    "equality of shapes": lambda jnp, x, n: x if x.shape == (n,) else -x,
    "inequality": lambda jnp, x, n: -x if x.shape[0] != n else x,
    "order": lambda jnp, x, n: x if x.shape[0] + 1 > n and n <= x.shape[0] else -x,
    "sum of both": lambda jnp, x, n: jnp.ones(x.shape[0] + n) * (n - x.shape[0] + 1),
    "a loop": lambda jnp, x, n: x + sum(jnp.ones((n, k)).sum() for k in range(3)),
}


@pytest.mark.parametrize("name", AROUND)
def test_sizes_from_around_a_function(jax, jnp, export, name):
    scope = export.SymbolicScope()
    (n,) = export.symbolic_shape("n", scope=scope)
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("n", scope=scope), np.float32)
    e = export.export(jax.jit(lambda x: AROUND[name](jnp, x, n)))(spec)
    assert str(e.out_avals[0].shape) == str(jax.eval_shape(lambda x: AROUND[name](jnp, x, n), spec).shape)
    for k in (1, 2, 5, 64):
        x = jnp.arange(k, dtype=np.float32) + 1
        want = AROUND[name](jnp, x, k)
        got = e.call(x)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_sizes_that_no_argument_has(jax, jnp, export):
    scope = export.SymbolicScope()
    n, k = export.symbolic_shape("n, k", scope=scope)
    with pytest.raises(Exception, match="Encountered dimension variable 'k' that is not appearing in the shapes of the function arguments.") as e:
        export.export(jax.jit(lambda x: x + jnp.zeros(k).sum()))(jax.ShapeDtypeStruct((n,), np.float32))
    assert type(e.value).__name__ == "UnexpectedDimVar"
    for compute in (lambda: n * 2.0, lambda: n / 2, lambda: 1.0 - n, lambda: jnp.ones(2) * n, lambda: n // 2.0):
        with pytest.raises(NotImplementedError, match="Evaluation rule for 'dim_as_value' is not implemented."):
            compute()
