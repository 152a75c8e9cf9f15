"""Updates at masks that are traced, and the strict mode in which an index out of bounds raises."""

import numpy as np
import pytest

pytestmark = pytest.mark.ours

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
RNG = np.random.default_rng(0)
# An index with a mask m in it, the mask's shape, and shapes of values that fit whatever it names.
CASES = {
    "all": (lambda m: m, (2, 3, 4), [(), (1,)]),
    "rows": (lambda m: m, (2,), [(), (4,), (3, 4), (1, 3, 4), (3, 1)]),
    "two": (lambda m: m, (2, 3), [(), (4,), (1, 4)]),
    "after a slice": (lambda m: (slice(None), m), (3,), [(), (4,), (1, 4), (2, 1, 4)]),
    "after part": (lambda m: (slice(1, 2), m), (3, 4), [(), (1, 1)]),
    "after steps": (lambda m: (slice(None, None, -1), m, slice(None, None, 2)), (3,), [(), (2,), (2, 1, 2)]),
    "after an int": (lambda m: (1, m), (3,), [(), (4,), (1, 4)]),
    "apart from an int": (lambda m: (1, slice(None), m), (4,), [(), (3,), (1, 3)]),
    "before an int": (lambda m: (m, -1), (2,), [(), (4,)]),
    "at the end": (lambda m: (..., m), (4,), [(), (1,), (2, 3, 1)]),
    "before the end": (lambda m: (..., m, slice(1, 3)), (3,), [(), (2,), (2, 1, 2)]),
    "a new axis": (lambda m: (None, m), (2,), [(), (3, 4), (1, 1, 3, 4)]),
}
OPERATIONS = ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"]


@pytest.mark.parametrize("case", CASES)
def test_a_traced_mask_agrees_with_its_value(jax, jnp, case):
    index, shape, values = CASES[case]
    masks = [RNG.random(shape) < 0.5, np.zeros(shape, bool), np.ones(shape, bool)]
    for mask in masks:
        for i, v in enumerate(values):
            value = (RNG.random(v) + 0.5).astype(np.float32)
            op = OPERATIONS[i % len(OPERATIONS)]
            want = getattr(jnp.asarray(X).at[index(mask)], op)(value)
            got = jax.jit(lambda x, m, v: getattr(x.at[index(m)], op)(v))(X, mask, value)
            np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("op", OPERATIONS)
def test_operations(jax, jnp, op):
    mask = X % 3 == 0
    np.testing.assert_allclose(jax.jit(lambda x, m: getattr(x.at[m], op)(2.0))(X, mask), getattr(jnp.asarray(X).at[mask], op)(2.0), rtol=1e-6)


def test_apply_and_transforms(jax, jnp):
    mask = X > 7
    np.testing.assert_allclose(jax.jit(lambda x, m: x.at[m].apply(jnp.sqrt))(X, mask), np.where(mask, np.sqrt(X), X), rtol=1e-6)
    batched = jax.vmap(lambda x, m, v: x.at[m].set(v))(X, mask, np.float32([1, 2]))
    np.testing.assert_array_equal(batched, np.where(mask, np.float32([1, 2])[:, None, None], X))
    grads = jax.grad(lambda x, v: (jax.jit(lambda x, m, v: x.at[m].multiply(v))(x, mask, v) ** 2).sum(), (0, 1))(X, 3.0)
    want = jax.grad(lambda x, v: (jnp.where(mask, x * v, x) ** 2).sum(), (0, 1))(X, 3.0)
    for a, b in zip(grads, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    moving = jax.jit(lambda x, i, m: x.at[i, m].set(0.0))(X, 1, mask[1])
    np.testing.assert_array_equal(moving, np.stack([X[0], np.where(mask[1], 0, X[1])]))
    assert jax.jit(lambda x, m: x.at[m].set(2))(np.arange(3), np.array([True, False, True])).tolist() == [2, 1, 2]


def test_unsupported_uses_of_a_traced_mask(jax, jnp):
    with pytest.raises(ValueError, match="takes a value of size 1 along the mask's axis"):
        jax.jit(lambda x, m: x.at[m].set(jnp.ones(5)))(np.ones(5), np.ones(5, bool))
    with pytest.raises(IndexError, match="boolean index did not match shape of indexed array in index 0"):
        jax.jit(lambda x, m: x.at[m].set(0))(np.ones(5), np.ones(4, bool))
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError):
        jax.jit(lambda x, m: x[m])(np.ones(5), np.ones(5, bool))
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError):
        jax.jit(lambda x, m: x.at[m, jnp.arange(2)].set(0))(np.ones((5, 2)), np.ones(5, bool))


# ---------------------------------------------------------------- strict bounds


@pytest.fixture
def strict(jax):
    with jax.strict_bounds(True):
        yield


READS = {
    "a number": lambda x, i: x[i],
    "behind a slice": lambda x, i: x[:, i],
    "twice": lambda x, i: x[1, i],
    "set": lambda x, i: x.at[i].set(0),
    "add": lambda x, i: x.at[:, i].add(1),
    "take": lambda x, i: x.take(i, axis=1),
    "wrapped": lambda x, i: x.at[i].get(wrap_negative_indices=False),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("wrap", [lambda jax, f: f, lambda jax, f: jax.jit(f), lambda jax, f: jax.vmap(f, (None, 0))])
def test_strict_bounds(jax, jnp, strict, read, wrap):
    x, f = jnp.arange(9).reshape(3, 3), READS[read]
    mapped = wrap(jax, f) is not f and not isinstance(wrap(jax, f), type(jax.jit(f)))
    for inside in (0, 2) if read == "wrapped" else (0, 2, -3):
        i = jnp.array([inside, 1]) if mapped else inside
        with jax.strict_bounds(False):
            want = wrap(jax, f)(x, i)
        assert wrap(jax, f)(x, i).tolist() == want.tolist()
        assert wrap(jax, f)(x, jnp.array([[inside]] * 2 if mapped else [inside])).shape
    for outside in (3, -4, 100):
        for i in (jnp.array([0, outside]),) if mapped else (outside, jnp.array([0, outside])):
            with pytest.raises(IndexError, match=f"index {outside} is out of bounds for axis . with size 3"):
                jax.block_until_ready(wrap(jax, f)(x, i))


def test_strict_bounds_leave_modes_alone(jax, jnp, strict):
    x = jnp.arange(3.0)
    assert float(jax.jit(lambda x, i: x.at[i].get(mode="clip"))(x, 7)) == 2.0
    assert jax.jit(lambda x, i: x.at[i].set(1, mode="drop"))(x, 7).tolist() == [0.0, 1.0, 2.0]


def test_strict_bounds_are_a_switch(jax, jnp):
    f = jax.jit(lambda x, i: x[i])
    x = jnp.arange(3)
    assert int(f(x, 9)) == 2
    with jax.strict_bounds(True):
        with pytest.raises(IndexError):
            jax.block_until_ready(f(x, 9))
        assert int(f(x, 2)) == 2
        grad = jax.grad(lambda x, i: (x[i] ** 2).sum())(jnp.arange(3.0), jnp.array([0, 2]))
        assert grad.tolist() == [0.0, 0.0, 4.0]
    assert int(f(x, 9)) == 2


OUTSIDE = [  # shape, index, where
    ((2,), -4, "-4 out of bounds for axis 0 with size 2"), ((2,), 2, "2 out of bounds for axis 0 with size 2"),
    ((2, 3), np.s_[:, 3], "3 out of bounds for axis 1 with size 3"), ((2, 3), np.s_[..., -4], "-4 out of bounds for axis 1 with size 3"),
    ((2, 3), np.s_[None, :, None, 7], "7 out of bounds for axis 1 with size 3"), ((2, 3), np.s_[np.array([0, 9]), 3], "3 out of bounds for axis 1"),
    ((2, 3), np.s_[None, np.array([0, 1]), None, 3], "3 out of bounds for axis 1"), ((4, 2, 3), np.s_[5, :, [0]], "5 out of bounds for axis 0"),
    ((2, 3), np.s_[:9, np.int8(3)], "3 out of bounds for axis 1"), ((2, 3), np.s_[0, -9], "-9 out of bounds for axis 1"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "index", "where"), OUTSIDE, ids=str)
def test_static_indices(jax, jnp, shape, index, where):
    """`jax_check_static_indices`: integers are checked where they read and no mode defines out of bounds; writes are dropped."""
    x = jnp.ones(shape)
    reads = [
        lambda x: x[index],
        lambda x: x.at[index].get(),
        lambda x: x.at[index].get(mode="promise_in_bounds"),
        lambda x: jax.vmap(lambda x: x[index])(x[None]),
    ]
    before = [f(x) for f in reads]
    jax.config.update("jax_check_static_indices", True)
    try:
        assert jax.config.jax_check_static_indices is True
        for f in reads:
            for f in (f, jax.jit(f)):  # noqa: B020
                with pytest.raises(IndexError, match="index " + where):
                    f(x)
        assert x.at[index].get(mode="fill", fill_value=7).size >= 0
        assert x.at[index].get(mode="clip").size >= 0
        np.testing.assert_array_equal(x.at[index].set(5.0, mode="drop")[0:1, ...], x.at[index].set(5.0)[0:1, ...])
        assert (x.at[0:9].get() == x).all() and x[(-1,) * len(shape)] == 1
    finally:
        jax.config.update("jax_check_static_indices", False)
    for f, y in zip(reads, before, strict=True):
        np.testing.assert_array_equal(f(x), y)
