"""Kernels over the same rows run chunk by chunk on the CPU: the bits are those of the operations one by one, whatever else stands between them."""

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, strategies as st

TABLE = np.arange(20 * 30, dtype=np.float32).reshape(20, 30) / 600
place = lambda x, n: jnp.minimum((abs(x) * 10).astype(np.int32), n - 1)
# By rows, and across them: the latter end a group, or must not be in one.
BY_ROWS = {
    "exp": lambda x, y: jnp.exp(-abs(x)),
    "scale": lambda x, y: x * 0.5 + 1,
    "add": lambda x, y: x + y,
    "minus max": lambda x, y: x - x.max(-1, keepdims=True),
    "over sum": lambda x, y: x / (1 + abs(x).sum(-1, keepdims=True)),
    "var": lambda x, y: x * x.var(-1, keepdims=True),
    "logsumexp": lambda x, y: x - jax.scipy.special.logsumexp(y, axis=-1, keepdims=True),
    "argmax": lambda x, y: x + jnp.argmax(y, -1, keepdims=True),
    "reverse columns": lambda x, y: x[..., ::-1],
    "column": lambda x, y: x + y[..., :1],
    "weights": lambda x, y: x * jnp.arange(x.shape[-1], dtype=x.dtype),
    "one of a table": lambda x, y: x + jnp.asarray(TABLE[0])[place(y, 30)],
    "one of rows and columns": lambda x, y: y - jnp.asarray(TABLE)[place(x, 20), place(y, 30)],
}
ACROSS = {
    "sum of columns": lambda x, y: x - x.sum(0, keepdims=True),
    "reverse rows": lambda x, y: x[::-1],
    "roll rows": lambda x, y: jnp.roll(x, 1, 0) + y,
    "first row": lambda x, y: x + y[:1],
    "mean of all": lambda x, y: x - y.mean(),
    "transpose": lambda x, y: jnp.swapaxes(x, 0, 1).reshape(x.shape) + y,
    "cumsum": lambda x, y: x + 0.001 * jnp.cumsum(y, 0),
    "one of each row": lambda x, y: jnp.take_along_axis(x, place(y, x.shape[-1]), -1),
    "rows by number": lambda x, y: x + y[place(x[:, 0].reshape(len(x), -1)[:, 0], len(x))],
}
STEPS = BY_ROWS | ACROSS


def program(names):
    """Takes two arrays and gives all that the steps make, or the last alone where the rest is not kept."""

    def run(x, y, keep):
        made = [x, y]
        for k, name in enumerate(names):
            made.append(STEPS[name](made[-1], made[-1 - (k % 2)]))
        return made[2:] if keep else made[-1:]

    return run


def same_bits(shape, names, keep, dtype=np.float32):
    rng = np.random.default_rng(len(names))
    x, y = (jnp.asarray(rng.standard_normal(shape).astype(dtype)) for _ in range(2))
    f = program(names)
    staged = jax.jit(f, static_argnums=2)
    for got, want in zip(staged(x, y, keep), f(x, y, keep), strict=True):
        np.testing.assert_array_equal(np.asarray(got).view(np.uint8), np.asarray(want).view(np.uint8), err_msg=str(names))
    return staged.lower(x, y, keep).compile().as_text()


@given(
    st.sampled_from([(257, 600), (1000, 131), (64, 9, 257), (150, 2100), (40_000, 4)]),
    st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=7),
    st.booleans(),
)
@example((512, 300), ["minus max", "exp", "over sum"], False)
@example((257, 600), ["one of a table", "weights"], False)  # pieces begin within rows
@example((512, 300), ["minus max", "sum of columns", "exp", "reverse rows", "over sum"], True)
def test_staged_programs_have_the_bits_of_their_operations(shape, names, keep):
    same_bits(shape, names, keep)


@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=7), st.booleans())
@example(["logsumexp", "var", "over sum", "mean of all"], False)
@example(["var", "logsumexp", "var", "logsumexp", "var"], False)
def test_programs_too_small_for_a_group_keep_their_order(names, keep):
    """Beside something large, so that groups are looked for; numbers that all rows read come between."""
    rng = np.random.default_rng(len(names))
    x, y = (jnp.asarray(rng.standard_normal((24, 30)).astype(np.float32)) for _ in range(2))
    large = jnp.ones(200_000, np.float32)
    f = lambda x, y, large: (program(names)(x, y, keep), large + 1)
    for got, want in zip(jax.jit(f)(x, y, large)[0], f(x, y, large)[0], strict=True):
        np.testing.assert_array_equal(np.asarray(got).view(np.uint8), np.asarray(want).view(np.uint8), err_msg=str(names))


@pytest.mark.parametrize("name", sorted(BY_ROWS))
def test_kernels_over_the_same_rows_are_fused(name):
    text = same_bits((512, 300), ["minus max", name, "over sum"], False)
    assert text.count("row-fused group of") == 1, text


def test_rows_larger_than_the_cache_are_not_fused():
    assert "row-fused group of" not in same_bits((2, 200_000), ["minus max", "exp", "over sum"], False)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, np.complex64])
def test_dtypes(dtype):
    same_bits((600, 310), ["add", "scale", "column", "reverse columns", "add"], False, dtype)


def test_a_softmax_never_writes_its_exponentials_to_the_arena():
    x = jnp.ones((512, 1024), np.float32)
    text = jax.jit(jax.nn.softmax).lower(x).compile().as_text()
    assert "row-fused group of" in text and " 0 bytes inside" not in text


def test_donated_arguments_may_hold_the_outputs_of_a_group():
    f = lambda x: jax.nn.softmax(x * 2) + x
    x = np.random.default_rng(0).standard_normal((512, 700)).astype(np.float32)
    want = np.asarray(jax.jit(f)(x))
    given_up = jnp.asarray(x)
    got = jax.jit(f, donate_argnums=0)(given_up)
    assert given_up.is_deleted()
    np.testing.assert_array_equal(np.asarray(got), want)


def test_groups_in_loops_and_gradients():
    x = jnp.asarray(np.random.default_rng(1).standard_normal((300, 500)).astype(np.float32))
    f = lambda x: jax.lax.fori_loop(0, 3, lambda i, s: jax.nn.softmax(s + i) * s, x)
    s = x
    for i in range(3):
        s = jax.nn.softmax(s + i) * s
    np.testing.assert_array_equal(np.asarray(jax.jit(f)(x)), np.asarray(s))
    g = jax.grad(lambda x: (jax.nn.log_softmax(x)[:, 0] ** 2).sum())
    np.testing.assert_array_equal(np.asarray(jax.jit(g)(x)), np.asarray(g(x)))
