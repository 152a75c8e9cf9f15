"""What becomes of loops: steps that do the same each time are done before, few numbers are scalars, choices between them selections; the bits stay."""

import ferrax as jax
import ferrax.numpy as jnp
import numpy as np
import pytest
from ferrax import lax
from hypothesis import given, settings, strategies as st


def plan(f, *args):
    """The steps of the compiled program, a line each, and its results after enough runs for native code."""
    compiled = jax.jit(f).lower(*args).compile()
    for _ in range(200):
        out = compiled(*args)
    return [line for line in compiled.as_text().splitlines() if not line.startswith("#")], jax.tree.leaves(out)


def alike(got, want):
    for g, w in zip(got, jax.tree.leaves(want), strict=True):
        assert g.dtype == w.dtype
        assert np.asarray(g).tobytes() == np.asarray(w).tobytes(), (g, w)


M = jnp.asarray(np.random.default_rng(0).standard_normal((24, 40)).astype(np.float32))
V = jnp.asarray(np.random.default_rng(1).standard_normal(40).astype(np.float32))


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_invariant_computations_are_hoisted_out_of_the_loop(trips):
    f = lambda m, v: lax.fori_loop(0, trips, lambda _, v: v + jnp.tanh(m).T @ (jnp.tanh(m) @ v), v)
    text, got = plan(f, M, V)
    loops = [k for k, line in enumerate(text) if line.startswith(("loop", "nest"))]
    assert bool(loops) == (trips > 0), text
    if loops:
        loop = loops[0]
        assert any("[40, 24]" in line or "[24, 40]" in line or "[960]" in line for line in text[:loop]), text
        assert not any("[960]" in line for line in text[loop:]), text
    want, t = V, jnp.tanh(M)
    for _ in range(trips):
        want = want + t.T @ (t @ want)
    alike(got, want)


def test_an_invariant_condition_of_a_while_loop_is_hoisted():
    f = lambda m, v: lax.while_loop(lambda v: jnp.abs(v).max() < jnp.exp(m).sum(), lambda v: v * 1.5, v)
    text, got = plan(f, M, V)
    loop = next(k for k, line in enumerate(text) if line.startswith(("loop", "nest")))
    assert sum("strategy=reduce" in line for line in text[:loop]) == 1, text
    want = V
    while np.abs(want).max() < jnp.exp(M).sum():
        want = want * 1.5
    alike(got, want)


def test_a_fill_stays_in_the_loop_that_updates_it():
    f = lambda x: lax.fori_loop(0, 5, lambda i, s: s + jnp.zeros(40).at[i].add(1.0), x)
    alike(plan(f, V)[1], V.at[:5].add(1.0))


def test_a_carry_that_is_set_to_the_same_each_time_is_set_each_time():
    f = lambda m, v: lax.fori_loop(0, 3, lambda _, s: (jnp.sin(m[0]) * 2, s[0] + s[1]), (v, v))
    same = jnp.sin(M[0]) * 2
    alike(plan(f, M, V)[1], (same, same + (same + (V + V))))


def test_functions_of_constants_are_constants():
    """Floor division asks the sign of its divisor, remainders whether it is zero: of numbers that a program wrote down."""
    text, got = plan(lambda x: lax.fori_loop(0, 3, lambda _, x: jnp.where(x % 2 == 0, x // 2, 3 * x + 1), x), jnp.arange(100))
    assert not any("scalar" in line for line in text), text
    want = np.arange(100)
    for _ in range(3):
        want = np.where(want % 2 == 0, want // 2, 3 * want + 1)
    np.testing.assert_array_equal(got[0], want)


def is_one_loop(line):
    """Whether a line of a plan is a loop that runs as one function: a nest, or scalar code on machines without native code."""
    return "nest of" in line or "scalar loop" in line


def test_choices_between_few_numbers_are_selections():
    f = lambda x: lax.fori_loop(0, 1000, lambda i, x: lax.cond(x > 1, lambda x: x * 0.5, lambda x: x * 3 + 0.1, x), x)
    text, got = plan(f, jnp.float32(0.3))
    assert [line for line in text if is_one_loop(line) or "branch" in line] == [next(filter(is_one_loop, text))], text
    x = np.float32(0.3)
    for _ in range(1000):
        x = x * np.float32(0.5) if x > 1 else x * np.float32(3) + np.float32(0.1)
    alike(got, jnp.float32(x))


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_an_index_beyond_the_branches_takes_the_nearest(index):
    branches = [lambda x: x + 1, lambda x: x * 2, lambda x: -x]
    f = lambda i, x: lax.fori_loop(0, 4, lambda _, x: lax.switch(i, branches, x), x)
    want = jnp.float32(3)
    for _ in range(4):
        want = branches[min(max(index, 0), 2)](want)
    alike(plan(f, jnp.int32(index), jnp.float32(3))[1], want)


def test_an_untaken_branch_has_no_effect():
    """Both are computed: one divides by zero, takes the logarithm of a negative number, indexes what is not there."""
    table = jnp.arange(8.0)

    def step(i, s):
        x, n = s
        risky = lambda x, n: (jnp.log(x - 2) / (n - 3), n // (n - 3), table[n * 100])
        safe = lambda x, n: (x * 0.5, n + 1, jnp.float32(1))
        y, m, t = lax.cond(i == 100, risky, safe, x, n)
        return y + t, m

    alike(
        plan(lambda x, n: lax.fori_loop(0, 20, step, (x, n)), jnp.float32(1), jnp.int32(3))[1],
        lax.scan(lambda s, i: (step(i, s), None), (jnp.float32(1), jnp.int32(3)), jnp.arange(20))[0],
    )


def test_sines_and_powers_are_called_from_native_code():
    f = lambda x, n: lax.while_loop(lambda s: s[1] < n, lambda s: (jnp.sin(s[0]) + jnp.abs(s[0]) ** jnp.float32(0.3), s[1] + 1), (x, 0))
    text, got = plan(f, jnp.float32(0.3), jnp.int32(500))
    assert any(map(is_one_loop, text)), text
    x = jnp.float32(0.3)
    for _ in range(500):
        x = jnp.sin(x) + jnp.abs(x) ** jnp.float32(0.3)
    alike(got, (x, jnp.int32(500)))


KINDS = ["f32", "i32", "bool"]


@st.composite
def steps(draw):
    """A body over five carries, as text: what each becomes of two others."""
    ops = {
        "f32": [
            "{a} + {b}",
            "{a} * 0.5 - {b}",
            "jnp.sin({a})",
            "jnp.where({p}, {a}, {b})",
            "lax.cond({p}, lambda: {a} * 2, lambda: {b} / 3)",
            "{i}.astype('float32')",
        ],
        "i32": ["{i} + 1", "{i} // 7", "{i} % 5 - {j}", "jnp.where({p}, {i}, {j})", "{i} // ({j} | 1)", "{i} ^ {j}"],
    }
    names = {"f32": ["x", "y", "z"], "i32": ["m", "n"]}
    pick = lambda kind: draw(st.sampled_from(names[kind]))
    p = lambda: draw(st.sampled_from([f"{pick('f32')} > 0.3", f"{pick('i32')} % 2 == 0", f"({pick('i32')} > 3) & ({pick('f32')} < 1)"]))
    one = lambda kind: draw(st.sampled_from(ops[kind])).format(a=pick("f32"), b=pick("f32"), i=pick("i32"), j=pick("i32"), p=p())
    return ", ".join([one("f32"), one("f32"), one("f32"), one("i32"), one("i32")])


@settings(max_examples=25, deadline=None)
@given(steps(), st.sampled_from([(), (2,), (7,)]))
def test_generated_loops_are_their_steps(text, shape):
    body = eval(f"lambda x, y, z, m, n: ({text})", {"jnp": jnp, "lax": lax})
    if "cond" in text and shape:
        body = jax.vmap(body) if shape else body
    start = tuple(jnp.full(shape, v, d) for v, d in [(0.7, "float32"), (-1.3, "float32"), (0.2, "float32"), (12, "int32"), (5, "int32")])
    staged = jax.jit(lambda *s: lax.fori_loop(0, 60, lambda _, s: body(*s), s))
    for _ in range(40):
        got = staged(*start)
    step, want = jax.jit(body), start
    for _ in range(60):
        want = step(*want)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w), err_msg=text)


def test_native_blocks_keep_inputs_results_and_state():
    def body(s):
        n, x, y, b, _, _, v = s
        for k in range(12):
            x, y = x * 0.75 + y * 0.125 + k, jnp.where(x > y, y - 0.5, x * 0.25)
        return n + 1, x, y, x > y, b, jnp.int32(7), v + (M * x).sum(1)[:3]

    start = (jnp.int32(0), jnp.float32(1), jnp.float32(-2), jnp.array(True), jnp.array(False), jnp.int32(0), V[:3])
    text, got = plan(lambda s: lax.while_loop(lambda s: s[0] < 9, body, s), start)
    assert any("native" in line for line in text), text
    with jax.disable_jit():
        want = start
        for _ in range(9):
            want = body(want)
    alike(got, want)


def test_a_single_window_is_taken_and_put_where_it_belongs():
    def f(x, i, v):
        row = x.at[i].get(mode="fill", fill_value=-1.0)
        one = x.at[i, i].get(mode="fill", fill_value=-2.0)
        return row, one, x.at[i].set(v, mode="drop"), x.at[i, 1].add(v[0], mode="drop"), x.at[i].mul(v, mode="clip"), lax.dynamic_slice(x, (i, i), (2, 2))

    x, v = np.arange(20, dtype=np.float32).reshape(5, 4), np.arange(1, 5, dtype=np.float32)
    for i in (0, 3, 4, 5, -1, -6):
        row, one, put, added, scaled, window = (np.asarray(o) for o in jax.jit(f)(x, np.int32(i), v))
        at = i + 5 if i < 0 else i
        col = i + 4 if i < 0 else i
        inside = 0 <= at < 5
        assert (row == (x[at] if inside else -1)).all()
        assert one == (x[at, col] if inside and 0 <= col < 4 else -2)
        want = x.copy()
        if inside:
            want[at] = v
        assert (put == want).all()
        want = x.copy()
        if inside:
            want[at, 1] += v[0]
        assert (added == want).all()
        want = x.copy()
        want[min(max(at, 0), 4)] *= v
        assert (scaled == want).all()
        begin = [min(max(i + n if i < 0 else i, 0), n - 2) for n in (5, 4)]
        assert (window == x[begin[0] : begin[0] + 2, begin[1] : begin[1] + 2]).all()


def test_short_rows_of_few_elements_have_no_conditions():
    f = lambda a, b: jnp.concatenate([jnp.stack([a, b], -1), jnp.zeros((2, 2), a.dtype)])
    text, got = plan(f, V[:30], V[10:])
    assert not any("indices" in line for line in text), text
    alike(got, np.concatenate([np.stack([V[:30], V[10:]], -1), np.zeros((2, 2), np.float32)]))


def test_loops_with_integers_of_a_byte_become_code():
    def body(i, s):
        x, n = s
        for k in range(12):
            x = x * 0.75 + (n.astype(jnp.uint8).astype(jnp.int32) & (k + 1)).astype(jnp.float32)
        return x, n * 3 + i

    text, got = plan(lambda x, n: lax.fori_loop(0, 300, body, (x, n)), jnp.float32(1), jnp.int32(5))
    assert any("native" in line for line in text), text
    x, n = np.float32(1), 5
    for i in range(300):
        for k in range(12):
            x = np.float32(x * np.float32(0.75)) + np.float32(n & 255 & k + 1)
        n = (n * 3 + i) & 0xFFFFFFFF
    assert got[0] == x
    assert np.uint32(got[1]) == n


def test_moves_within_moves_are_planned():
    nest = lambda a, b, c: jnp.concatenate([a, jnp.concatenate([b, c])]).reshape(2, 3) * 2
    assert jax.jit(nest)(jnp.ones(3), jnp.ones(2), jnp.zeros(1)).tolist() == [[2, 2, 2], [2, 2, 0]]
    padded = jax.jit(lambda a: jnp.pad(jnp.pad(a, (1, 2)), (2, 1)).reshape(2, -1) * 2)(jnp.ones(4))
    assert padded.tolist() == [[0, 0, 0, 2, 2], [2, 2, 0, 0, 0]]
    for shape in ((2, 3), (6,), (5, 2)):
        slope = jax.jit(jax.grad(jnp.nanprod))(jnp.arange(1.0, 1 + np.prod(shape)).reshape(shape))
        want = np.prod(np.arange(1.0, 1 + np.prod(shape))) / np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
        np.testing.assert_allclose(slope, want, rtol=1e-5)
