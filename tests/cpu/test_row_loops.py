"""Loops that do all iterations of some rows before the next rows: the bits are those of one iteration after the other."""

import ferrax as fx
import ferrax.numpy as jnp
import numpy as np
import pytest
from ferrax import lax

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
def test_independent_rows_run_by_themselves(name: str, n: int) -> None:
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


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (3,), (40, 7), (0,)])
def test_pairs_go_through_loops_and_branches_in_parts(dtype, shape):
    with fx.enable_x64(True):
        r = np.random.default_rng(len(shape))
        a, b = [jnp.asarray((r.normal(size=shape) + 1j * r.normal(size=shape)).astype(dtype)) for _ in range(2)]
        xs = jnp.asarray((r.normal(size=(5, *shape)) + 1j * r.normal(size=(5, *shape))).astype(dtype))

        def step(carry, x):
            p, q, n, real = carry
            # exchanged, of one part twice, passed on, and beside numbers that are not pairs
            p, q = lax.cond(n % 2 == 0, lambda p, q: (q, p), lambda p, q: (jnp.conj(p) + x, lax.complex(q.real, q.real)), p, q)
            return (p, q, n + 1, real + p.imag), (p + x, real)

        def eager():
            carry, ys = (a, b, 0, a.real), []
            for x in xs:
                carry, y = step((carry[0], carry[1], jnp.int32(carry[2]), carry[3]), x)
                ys.append(y)
            return carry, [jnp.stack(y) for y in zip(*ys, strict=True)]

        start = (a, b, jnp.int32(0), a.real)
        for got, want in zip(fx.tree.leaves(fx.jit(lambda c, xs: lax.scan(step, c, xs))(start, xs)), fx.tree.leaves(eager()), strict=True):
            assert np.asarray(got).tobytes() == np.asarray(want).astype(got.dtype).tobytes()
        passed = fx.jit(lambda z, n: lax.fori_loop(0, n, lambda i, c: (c[0], c[1] + c[0]), (z, z)))(a, 3)
        assert np.asarray(passed[0]).tobytes() == np.asarray(a).tobytes()
        assert np.asarray(passed[1]).tobytes() == np.asarray(a + a + a + a).tobytes()


def test_keys_go_through_loops_in_parts():
    def draw(key):
        return lax.fori_loop(0, 4, lambda i, c: (fx.random.fold_in(c[0], i), c[1] + fx.random.uniform(c[0])), (key, 0.0))

    keys = fx.random.split(fx.random.key(3), 6)
    got, want = fx.jit(fx.vmap(draw))(keys), [draw(k) for k in keys]
    assert (fx.random.key_data(got[0]) == jnp.stack([fx.random.key_data(k) for k, _ in want])).all()
    assert (got[1] == jnp.stack([x for _, x in want])).all()
