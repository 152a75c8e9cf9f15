"""Types of results: the lattice as JAX 0.10.2 has it, and its laws."""

import itertools

import numpy as np
import pytest
from golden import promotion


def test_every_pair(jax):
    want = dict(line.split(" -> ") for line in promotion.FILE.read_text().splitlines())
    got = promotion.table(jax)
    assert {k: (got[k], v) for k, v in want.items() if got[k] != v} == {}


@pytest.mark.parametrize("a, b", list(itertools.combinations(promotion.DTYPES, 2)))
def test_the_lattice_commutes_and_joins(jnp, x64, a, b):
    join = jnp.promote_types(a, b)
    assert join == jnp.promote_types(b, a)
    assert jnp.promote_types(join, a) == join and jnp.promote_types(join, b) == join


def test_scalars_of_python_do_not_widen(jnp):
    for dtype in ("int8", "uint16", "float16", "bfloat16", "float32"):
        assert (jnp.ones(2, dtype) + 1).dtype == dtype
    assert (jnp.ones(2, "int8") + 1.0).dtype == "float32"
    assert (jnp.ones(2, "int8") + np.int16(1)).dtype == "int16"


def test_weak_types_survive_operations_with_scalars_only(jax, jnp):
    assert jnp.asarray(1.0).weak_type and (jnp.asarray(1.0) + 2).weak_type and jnp.sin(1.0).weak_type
    assert not jnp.float32(1.0).weak_type and not (jnp.float32(1.0) + 2).weak_type
    assert jax.jit(lambda x: x + 1)(1.0).weak_type


SLOPES = (
    "exp exp2 log log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh atanh logistic sqrt rsqrt cbrt square erf erfc erf_inv lgamma digamma"
    " neg sign bessel_i0e bessel_i1e"
).split()


@pytest.mark.parametrize("name", SLOPES)
def test_a_slope_is_weak_where_the_value_is(jax, jnp, lax, name):
    f = getattr(lax, name)
    assert jax.grad(f)(0.2).weak_type == f(0.2).weak_type
    assert not jax.grad(f)(jnp.float32(0.2)).weak_type
    assert jnp.ones((), jnp.bfloat16) * jax.grad(f)(0.2) == (jax.grad(f)(0.2) * jnp.ones((), jnp.bfloat16))
    assert (jax.grad(f)(0.2) * jnp.ones((), jnp.bfloat16)).dtype == jnp.bfloat16


@pytest.mark.parametrize("name", ["max", "min", "div", "atan2"])
def test_slopes_of_two_operands_are_weak_where_both_are(jax, jnp, lax, name):
    f = getattr(lax, name)
    for argument in (0, 1):
        slope = jax.grad(f, argument)
        assert slope(0.2, 0.3).weak_type
        assert not slope(jnp.float32(0.2), jnp.float32(0.3)).weak_type


@pytest.mark.parametrize("n", [2, 3, -1, -2])
def test_a_slope_of_a_whole_power_is_weak_where_the_power_is(jax, n):
    assert jax.grad(lambda x: x**n)(0.5).weak_type


NUMBERS = (int, float, complex)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("x64", [False, True])
def test_a_number_that_decides_the_dtype_gives_that_of_numpy(jax, jnp, number, x64):
    """Of 64 bits, whatever the setting: `promote_types` is of dtypes, not of arrays."""
    below = [t for t in NUMBERS if NUMBERS.index(t) <= NUMBERS.index(number)]
    integers = ["int4", "int8", "uint8", "int32", "uint32", "int64", "uint64"] if number is not int else []
    with jax.enable_x64(x64):
        for other in (bool, "bool", *below, *integers):
            assert jnp.promote_types(number, other) == jnp.promote_types(other, number) == np.dtype(number), other


@pytest.mark.parametrize("wide", ["int64", "uint64", "float64", "complex128"])
@pytest.mark.parametrize("number", (bool, *NUMBERS))
def test_a_dtype_of_64_bits_keeps_them_beside_a_number(jnp, wide, number):
    join = jnp.promote_types(number, np.dtype(wide))
    assert join.itemsize >= 8 and join == jnp.promote_types(np.dtype(wide), number)
    assert join.kind == max(join.kind, {bool: "b", int: "i", float: "f", complex: "c"}[number], key="biufc".index)
