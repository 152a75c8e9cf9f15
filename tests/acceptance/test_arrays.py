"""Arrays and the numpy interface: updates, bounds, promotion, printing, devices."""

import numpy as np
import pytest


def test_assignment_is_refused_and_the_remedy_named(jnp):
    x = jnp.arange(10)
    with pytest.raises(TypeError, match=r"(?s)immutable.*\.at\["):
        x[0] = 10


@pytest.mark.parametrize(
    "update, want",
    [
        (lambda y: y.at[0].add(5), [6, 2, 3]),
        (lambda y: y.at[0].mul(2), [2, 2, 3]),
        (lambda y: y.at[0].max(5), [5, 2, 3]),
        (lambda y: y.at[1].min(0), [1, 0, 3]),
        (lambda y: y.at[np.array([0, 2])].set(10), [10, 2, 10]),
        (lambda y: y.at[10].set(99), [1, 2, 3]),
    ],
)
def test_updates_make_a_new_array(jnp, update, want):
    y = jnp.array([1, 2, 3])
    assert np.asarray(update(y)).tolist() == want
    assert np.asarray(y).tolist() == [1, 2, 3]


def test_updates_of_slices(jnp):
    x = jnp.zeros((3, 4)).at[1, :].set(1.0).at[::2, 3:].add(7)
    assert np.asarray(x).tolist() == [[0, 0, 0, 7], [1, 1, 1, 1], [0, 0, 0, 7]]


def test_indices_out_of_bounds_clamp_or_fill(jnp):
    x = jnp.arange(10)
    assert int(x[11]) == 9 and int(x[-1]) == 9
    assert int(x.at[11].get(mode="fill", fill_value=-1)) == -1


def test_lists_are_not_arrays(jnp):
    with pytest.raises(TypeError):
        jnp.sum([1, 2, 3])
    assert int(jnp.sum(jnp.array([1, 2, 3]))) == 6


def test_types_are_narrow_by_default(jax, jnp, x64, close):
    assert jnp.array([1.0]).dtype == np.float64 and jnp.arange(3).dtype == np.int64
    close(jax.jit(lambda x: x + 1e-12)(1.0) - 1.0, 1e-12, 1e-15)
    jax.config.update("jax_enable_x64", False)
    assert jnp.array([1.0]).dtype == np.float32 and jnp.arange(3).dtype == np.int32


def test_promotion_by_example(jnp):
    assert (jnp.ones(3, jnp.bfloat16) + 1.0).dtype == jnp.bfloat16
    assert (jnp.ones(3, jnp.int8) + 1).dtype == np.int8
    assert (jnp.ones(3, jnp.int32) + 1.5).dtype == np.float32
    assert (jnp.ones(2, jnp.uint8) + jnp.ones(2, jnp.int8)).dtype == np.int16
    assert (jnp.ones(2, jnp.float16) + jnp.ones(2, jnp.bfloat16)).dtype == np.float32


def test_an_environment_variable_widens_types(child):
    code = "print(jnp.array([1.0]).dtype, jnp.arange(3).dtype)"
    assert child(code, ENABLE_X64="1").split() == ["float64", "int64"]
    assert child(code).split() == ["float32", "int32"]


def test_indexing_by_example(jnp, close):
    x = jnp.arange(12.0).reshape(3, 4)
    shapes = [x[1:, ::2].shape, x[..., None].shape, x[jnp.array([0, 2])].shape, x[x > 5].shape]
    assert shapes == [(2, 2), (3, 4, 1), (2, 4), (6,)]
    close(x[::-1, -1], [11, 7, 3])


def test_functions_by_example(jax, jnp, close):
    assert jnp.append(jnp.array([]), 3).shape == (1,)
    close(jnp.linalg.norm(jnp.array([3.0, 4.0])), 5.0)
    close(jax.jit(lambda x, m: jnp.where(m, x, 0))(jnp.arange(3.0), np.array([True, False, True])), [0, 0, 2])
    close(jnp.einsum("ij,kj->ik", jnp.ones((2, 3)), jnp.ones((4, 3))), np.full((2, 4), 3.0))


def test_printing(jnp):
    assert repr(jnp.array([1.0, 2.0])) == "Array([1., 2.], dtype=float32)"
    assert str(jnp.arange(6)) == "[0 1 2 3 4 5]"
    assert repr(jnp.array(4.0)) == "Array(4., dtype=float32, weak_type=True)"


def test_devices_and_transfers(jax, jnp):
    assert len(jax.devices()) >= 1 and jax.default_backend() in ("cpu", "gpu")
    host = jax.device_get(jnp.arange(6))
    assert type(host) is np.ndarray
    x = jax.device_put(host, jax.devices()[0])
    assert isinstance(x, jax.Array) and x.devices() == {jax.devices()[0]}
    assert isinstance(host + x, jax.Array) and np.asarray(host + x).tolist() == [0, 2, 4, 6, 8, 10]
    assert x.block_until_ready() is x
    assert isinstance(jax.block_until_ready({"a": x})["a"], jax.Array)
