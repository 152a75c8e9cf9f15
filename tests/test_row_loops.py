"""Loops that do all iterations of some rows before the next rows: the bits are those of one iteration after the other."""

import ferrax as fx
import ferrax.numpy as jnp
import numpy as np
import pytest

BODIES = {
    "one": (1, True, lambda s: s * 0.9 + 1),
    "two": (2, True, lambda s: (s[0] * 0.5 + s[1], s[1] - s[0] * 0.1)),
    "function": (1, True, lambda s: jnp.sin(s) + s * 0.1),
    "condition": (1, True, lambda s: jnp.where(s > 0, s - 1, s * s)),
    "sum of a row": (1, True, lambda s: s - 0.01 * s.sum(-1, keepdims=True)),
    "trading places": (2, False, lambda s: (s[1], s[0] + 1)),
    "three in a ring": (3, None, lambda s: (s[1] * 2, s[2] + s[0], s[0] - s[2])),
    "one kept": (2, None, lambda s: (s[0] + s[1], s[1])),
    "transposed": (1, False, lambda s: s.T * 0.5 + s),
    "neighbours": (1, False, lambda s: jnp.roll(s, 1, 0) * 0.5 + s),
    "sum of a column": (1, False, lambda s: s - 0.01 * s.sum(0)),
    "sum of all": (2, False, lambda s: (s[0] * s[1].mean(), s[1] * 0.99)),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("n", [100, 256])
def test_rows_that_stay_apart_go_by_themselves(name: str, n: int) -> None:
    count, by_rows, body = BODIES[name]
    rng = np.random.default_rng(7)
    parts = [jnp.asarray(rng.standard_normal((n, n)).astype("f4")) for _ in range(count)]
    start = tuple(parts) if count > 1 else parts[0]
    once = fx.jit(body)
    for times in (0, 1, 2, 5):
        loop = fx.jit(lambda s, times=times: fx.lax.fori_loop(0, times, lambda _, s: body(s), s))
        want = start
        for _ in range(times):
            want = once(want)
        for got, expected in zip(fx.tree.leaves(loop(start)), fx.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(np.asarray(got).view("u4"), np.asarray(expected).view("u4"))
    if by_rows is not None:
        assert ("all times for each chunk" in loop.lower(start).compile().as_text()) == by_rows
