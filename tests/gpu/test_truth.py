"""What a driver's algebra would get wrong: `x * 0`, `x / x`, `x - x` hold for finite numbers alone. A program staged for the GPU gives what it gives on
cores, and what it gives there op by op."""

import numpy as np
import pytest
from conftest import ON_JAX

pytestmark = pytest.mark.skipif(ON_JAX, reason="JAX from PyPI has no such device")

inf, nan = float("inf"), float("nan")
CONSTANTS = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 2.0, 1e38, 1e-38]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 3.0, -2.5, inf, -inf, nan, 1e38, -1e38, 2e-38, 0.5, 16777217.0], np.float32)


@pytest.fixture(scope="module")
def keeps_subnormals(jax, gpu):
    """Drivers may take numbers below 2^-126 for zero, in operands and results; NVIDIA's do."""
    x = jax.device_put(np.float32(2.0**-126), gpu)
    return float(jax.jit(lambda x: x * 0.5)(x)) != 0


@pytest.fixture(scope="module")
def special(keeps_subnormals):
    """Numbers of which no step of the programs here gives a subnormal one, where the device has none."""
    large = np.abs(SPECIAL) > 1e30
    tiny = (SPECIAL != 0) & (np.abs(SPECIAL) < 1e-30)
    return (
        SPECIAL if keeps_subnormals else np.select([large & np.isfinite(SPECIAL), tiny], [np.copysign(2.0**60, SPECIAL), 2.0**-30], SPECIAL).astype(np.float32)
    )


def binary(jnp):
    return {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
        "max": jnp.maximum,
        "min": jnp.minimum,
        "rem": jnp.fmod,
        "less": lambda x, y: (x < y).astype(jnp.float32),
        "equal": lambda x, y: (x == y).astype(jnp.float32),
    }


def repeated(jax, jnp):
    """Programs that show an operation one value twice, or one it could work out."""
    return {
        "x-x": lambda x: x - x,
        "x/x": lambda x: x / x,
        "x+-x": lambda x: x + -x,
        "x/-x": lambda x: x / -x,
        "x*-x": lambda x: x * -x,
        "|x|-x": lambda x: jnp.abs(x) - x,
        "x*x-x*x": lambda x: x * x - x * x,
        "x*y-y*x": lambda x: x * x[::-1] - x[::-1] * x,
        "rev-rev": lambda x: x[::-1] - x[::-1],
        "(x+1)-(x+1)": lambda x: (x + 1) - (1 + x),
        "(x+y)-y": lambda x: (x + x[::-1]) - x[::-1],
        "(x-y)+y": lambda x: (x - x[::-1]) + x[::-1],
        "(x/y)*y": lambda x: (x / x[::-1]) * x[::-1],
        "(x*y)/y": lambda x: (x * x[::-1]) / x[::-1],
        "sqrt*sqrt": lambda x: jnp.sqrt(x) * jnp.sqrt(x),
        "sqrt(x*x)": lambda x: jnp.sqrt(x * x),
        "1/sqrt": lambda x: 1 / jnp.sqrt(x),
        "1/(1/x)": lambda x: 1 / (1 / x),
        "x*(sum*0)": lambda x: x.sum() * 0 + x,
        "0*max+x": lambda x: 0.0 * x.max() + x,
        "x*(x>0)": lambda x: x * (x > 0),
        "x*int0": lambda x: x * jnp.zeros((), jnp.int32),
        "x*arange": lambda x: x[:1] * jnp.arange(1.0),
        "x/arange": lambda x: x / jnp.arange(x.size),
        "x*eye": lambda x: x * jnp.eye(x.size, dtype=jnp.float32)[0],
        "where-where": lambda x: jnp.where(x > 0, x, 1.0) - jnp.where(x > 0, x, 1.0),
        "max-x": lambda x: jnp.maximum(x, x) - x,
        "bits": lambda x: x * jax.lax.bitcast_convert_type(jnp.uint32(0), jnp.float32),
        "a*b+a*-b": lambda x: x * x[::-1] + x * -x[::-1],
        "x-floor": lambda x: x - jnp.floor(x),
        "floor/floor": lambda x: jnp.floor(x) / jnp.floor(x),
        "exp-exp": lambda x: jnp.exp(x) - jnp.exp(x),
        "bf16": lambda x: (x.astype(jnp.bfloat16) - x.astype(jnp.bfloat16)).astype(jnp.float32),
        "x**0": lambda x: x**0.0 * x,
        "pow(x,x)": lambda x: jnp.power(x, x),
        "atan2(x,x)": lambda x: jnp.arctan2(x, x),
        "cumsum*0": lambda x: jnp.cumsum(x) * 0.0,
        "dot*0": lambda x: jnp.dot(x, x) * 0.0 + x,
        "prod/prod": lambda x: x.prod() / x.prod() + x,
    }


def compare(jax, gpu, f, x, near=0.0):
    there = jax.jit(f)(*(jax.device_put(v, gpu) for v in x))
    here = jax.jit(f)(*(jax.device_put(v, jax.devices("cpu")[0]) for v in x))
    assert there.devices() == {gpu}
    there, here = np.asarray(there), np.asarray(here)
    np.testing.assert_allclose(there, here, rtol=near, atol=0)
    zeros = (here == 0) & (there == 0)
    np.testing.assert_array_equal(np.signbit(there[zeros]), np.signbit(here[zeros]))


@pytest.mark.parametrize("constant", CONSTANTS, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "min", "rem", "less", "equal"])
def test_operations_with_constants_keep_special_values(jax, jnp, gpu, special, keeps_subnormals, name, constant):
    op = binary(jnp)[name]
    if not keeps_subnormals and np.isfinite(constant) and constant:
        constant = float(np.clip(abs(constant), 2.0**-40, 2.0**60) * np.sign(constant))
    compare(jax, gpu, lambda x: jnp.stack([op(x, constant), op(constant, x)]), [special])


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "min", "rem", "less", "equal"])
def test_constants_that_are_arrays(jax, jnp, gpu, special, keeps_subnormals, name):
    op = binary(jnp)[name]
    c = np.array(CONSTANTS if keeps_subnormals else CONSTANTS[:-2], np.float32)[:, None]
    compare(jax, gpu, lambda x: jnp.stack([op(x, jnp.asarray(c)), op(jnp.asarray(c), x)]), [special])


@pytest.mark.parametrize("part", range(8))
def test_operations_on_equal_operands_keep_special_values(jax, jnp, gpu, special, part):
    for name, f in list(repeated(jax, jnp).items())[part::8]:
        try:
            compare(jax, gpu, f, [special], near=2e-6 if "pow" in name or "exp" in name or "atan2" in name else 0.0)
        except AssertionError as e:
            raise AssertionError(f"{name}: {e}") from None


def test_eager_and_staged_agree_on_bits(jax, jnp, gpu, special):
    x = jax.device_put(special, gpu)
    for name, f in repeated(jax, jnp).items():
        eager, staged = np.asarray(f(x)), np.asarray(jax.jit(f)(x))
        np.testing.assert_array_equal(eager, staged, err_msg=name)


def test_debug_nans_finds_nan_on_a_gpu(jax, jnp, gpu):
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.jit(lambda x: 0.0 / x)(jax.device_put(np.float32(0), gpu)).block_until_ready()
