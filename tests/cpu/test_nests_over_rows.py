"""Loops whose steps go over rows, columns and windows of arrays: one native function with vectors. Bit for bit what the steps give one by one."""

import ferrax as fx
import ferrax.numpy as fnp
import numpy as np
import pytest
from ferrax import lax

RANDOM = np.random.default_rng(11)
SIZES = [9, 15, 16, 17, 31, 40, 67]
FLOATS = ["float32", "float64"]
NUMBERS = [*FLOATS, "int32", "int64", "uint32"]


def drawn(dtype, *shape):
    if dtype == "bool":
        return RANDOM.random(shape) < 0.5
    if np.dtype(dtype).kind == "f":
        return RANDOM.standard_normal(shape).astype(dtype)
    return RANDOM.integers(0 if np.dtype(dtype).kind == "u" else -50, 50, shape).astype(dtype)


def text(f, *args):
    return fx.jit(f).lower(*args).compile().as_text()


def in_vectors(f, *args):
    shown = text(f, *args)
    return "of vectors" in shown and "\ndo" not in shown


def agree(f, *args):
    """`f` under jit, twice, against its steps one by one."""
    with fx.disable_jit():
        want = fx.tree_util.tree_leaves(f(*args))
    jitted = fx.jit(f)
    for _ in range(2):
        for x, y in zip(fx.tree_util.tree_leaves(jitted(*args)), want, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(np.atleast_1d(x).view(np.uint8), np.atleast_1d(y).view(np.uint8))


@pytest.fixture(autouse=True)
def _wide():
    with fx.enable_x64(True):
        yield


def loop(n, body, state):
    return lax.fori_loop(0, n, body, state)


STEPS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": fnp.maximum,
    "min": fnp.minimum,
    "where": lambda a, b: fnp.where(a < b, a, b + 1),
    "equal": lambda a, b: fnp.where(a == b, a, b),
    "not": lambda a, b: fnp.where(~(a >= b) | (a != b), a, b),
}
FLOAT_STEPS = {
    "div": lambda a, b: a / b,
    "abs": lambda a, b: abs(a) - b,
    "neg": lambda a, b: -a * b,
    "sqrt": lambda a, b: fnp.sqrt(abs(a)) + b,
    "rsqrt": lambda a, b: lax.rsqrt(abs(a) + 1) + b,
    "floor": lambda a, b: fnp.floor(a * 3) + fnp.ceil(b * 3) + fnp.trunc(a) + fnp.round(b * 7),
    "finite": lambda a, b: fnp.where(fnp.isfinite(a / b), a, b),
    "tanh": lambda a, b: fnp.tanh(a + b),
    "exp": lambda a, b: fnp.exp(-a) * b,
    "mask": lambda a, b: (a > b) * a + (a > 0).astype(a.dtype),
}


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", [*STEPS, *FLOAT_STEPS])
def test_functions_of_rows(dtype, name):
    f = {**STEPS, **FLOAT_STEPS}[name]
    if name in FLOAT_STEPS and dtype not in FLOATS:
        pytest.skip("of floats")
    for n in SIZES:
        a = drawn(dtype, 5, n)
        a[:, 1], a[1, 2] = 0, a[0, 2]
        if dtype in FLOATS:
            a[2, 3], a[3, 4], a[4, 5] = np.nan, np.inf, -0.0

        def body(i, a, f=f):
            return a.at[i + 1].set(f(a[i], a[i + 1]).astype(a.dtype))

        agree(lambda a, body=body: loop(4, body, a), a)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("n", SIZES)
def test_rows_and_columns_change_places(dtype, n):
    def body(i, s):
        a, b = s
        b = b.at[:, i].set(a[i])
        b = b.at[i].set(b[i, ::-1])
        return a.at[::-1, i].add(b[i]), b

    agree(lambda a, b: loop(n, body, (a, b)), drawn(dtype, n, n), drawn(dtype, n, n))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("n", [9, 16, 23, 64, 100])
def test_reductions_of_rows(dtype, n):
    def body(i, s):
        a, t = s
        t = t.at[i].set(((a[i] * a[i + 1]).sum() + a[i].max()).astype(t.dtype))
        return a.at[i + 1].add(a[i] - t[i]), t

    a = drawn(dtype, 9, n)
    agree(lambda a, t: loop(8, body, (a, t)), a, drawn(dtype, 8))
    if dtype in FLOATS:
        a[3, 5], a[5, 0] = np.nan, np.inf
        agree(lambda a, t: loop(8, body, (a, t)), a, drawn(dtype, 8))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [10, 24, 33, 70])
def test_matrices_by_vectors(dtype, n):
    def body(i, x):
        return fnp.tanh(a @ x + fnp.asarray(i, x.dtype))

    a = drawn(dtype, n, n)
    agree(lambda x: loop(5, body, x), drawn(dtype, n))
    agree(lambda xs: lax.scan(lambda h, x: (fnp.tanh(a @ h + x), h), xs[0], xs), drawn(dtype, 6, n))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("rows", [2, 3, 4, 5, 6, 9, 11])
def test_reductions_of_groups_of_rows(dtype, rows):
    """Groups of rows are reduced together, those that are left over one by one: sums, extremes, two reductions in a row, and what depends on the row."""
    for n in (5, 16, 37):
        a = drawn(dtype, rows, n)

        def body(i, s, n=n):
            a, t = s
            scaled = a * a[:, :1] + fnp.arange(rows, dtype=dtype)[:, None]
            spread = (a - a.max(1, keepdims=True)).min(1)
            t = (t + scaled.sum(1) - spread + (a @ fnp.arange(n, dtype=dtype)).astype(dtype)).astype(dtype)
            return fnp.roll(a, 1, 1) - t[:, None], t

        agree(lambda a, t, body=body: loop(3, body, (a, t)), a, drawn(dtype, rows))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 8, 9])
def test_few_elements_among_rows(dtype, n):
    """Arrays of so few elements that registers might hold them, which loops over larger ones read at their counters: carries, constants, elements of
    stacked arrays, results of other kernels and of branches."""
    steps = 4
    a, few, stacked = drawn(dtype, n, 40), drawn(dtype, n), drawn(dtype, steps, n)

    def pairs(i, s):
        a, t = s
        d = t[None] - t[:, None]
        t = (t + (d * t).sum(1)).astype(dtype)
        return a * t[:, None] + fnp.arange(n, dtype=dtype)[:, None], fnp.roll(t, 1)

    def scanned(s, x):
        a, t = s
        t = lax.cond(t[0] > x[0], lambda: t - x, lambda: t[::-1])
        return (a + (t * x)[:, None], t), a.max(1)

    def while_few(s):
        return lax.while_loop(lambda s: (s[2] < 5) & (s[1][0] == s[1][0]), lambda s: (s[0] - s[1][:, None], s[1] + s[0][:, 0], s[2] + 1), (*s, 0))

    agree(lambda a, t: loop(steps, pairs, (a, t)), a, few)
    agree(lambda a, t, x: lax.scan(scanned, (a, t), x), a, few, stacked)
    agree(lambda a, t: while_few((a, t)), a, few)
    agree(lambda t, c: loop(steps, lambda i, t: (t[None] * c[:, None] + t).sum(0).astype(dtype), t), few, drawn(dtype, n))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "k"), [(9, 3), (9, 5), (12, 3), (17, 3), (17, 20), (33, 9)])
def test_temporaries_in_the_memory_of_dead_ones(dtype, n, k):
    """A temporary array may take a part of the memory of one that is dead: a loop that reads the one in reverse is not joined with one that sets the other."""
    a, b, c = np.arange(n, dtype=dtype) % 5 - 2, drawn(dtype, n, k), drawn(dtype, k)

    def body(i, s):
        a, b = s
        a = fnp.maximum(b, (a[None] * a[:, None]).sum(1)[:, None]).max(1) - a[::-1]
        a = (a[:, None] * c + 1).max(1) - a[::-1]
        return a, (((a[:, None] * c) % 7).at[n // 2].set(c) * -1) % 7

    agree(lambda a, b: loop(1, body, (a, b)), a, b)
    agree(lambda a, b: loop(2, body, (a, b)), a, b)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("k", "n"), [(9, 70), (16, 34), (33, 33), (40, 13), (70, 9), (130, 64), (64, 65), (200, 5)])
def test_vectors_by_matrices(dtype, k, n):
    a, b, h = drawn(dtype, k, n), drawn(dtype, 3, k, n), drawn(dtype, 3, k)
    a[1, 2], a[2, 3], a[:, 1] = np.nan, np.inf, -0.0
    x = drawn(dtype, k)
    x[:3] = 0, -0.0, 1e-30

    def both(_, s):
        x, y = s
        y = x @ a + y * 0.5
        return a @ y * 0.1, y

    def batched(_, s):
        h, y = s
        y = fnp.einsum("bk,bkn->bn", h, b)
        return fnp.einsum("bkn,bn->bk", b, y) * 0.1, y

    agree(lambda x, y: loop(3, both, (x, y)), x, drawn(dtype, n))
    agree(lambda h, y: loop(3, batched, (h, y)), h, drawn(dtype, 3, n))
    agree(lambda x, y: loop(3, lambda i, s: (s[0] * 0.5, a[::-1].T[:, ::-1] @ s[0][::-1]), (x, y)), x, drawn(dtype, n))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(("k", "n"), [(17, 9), (32, 16), (50, 21), (100, 4), (100, 70), (1024, 8)])
def test_reductions_of_columns(dtype, k, n):
    def body(i, s):
        a, t = s
        t = ((a * a[i]).sum(0) + t).astype(dtype)
        a = a.at[i].set((t - a.max(0) + a[:, ::-1].min(0)).astype(dtype))
        weights = fnp.where(fnp.arange(k)[:, None] > i, a, a * 2)
        return a, t + (weights.sum(0) + (fnp.arange(k)[:, None] + fnp.arange(n)).sum(0)).astype(dtype)

    a = drawn(dtype, k, n)
    agree(lambda a, t: loop(3, body, (a, t)), a, drawn(dtype, n))
    if dtype in FLOATS:
        a[3, 2], a[5, 0], a[:, 1] = np.nan, np.inf, -0.0
        a = fnp.asarray(a)

        def reduced(i, _):
            row = a[i]
            return (a * row).sum(0), (a + row).max(0), (a[:, ::-1] - row).min(0), (row - a).prod(0)

        agree(lambda t: loop(3, reduced, (t, t, t, t)), drawn(dtype, n))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [10, 17, 34])
def test_stencils_in_place(dtype, n):
    def body(_, s):
        a, b = s
        b = b.at[1:-1, 1:-1].set((a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]) * 0.2)
        a = a.at[1:, :].add(-0.5 * (b[1:, :] - b[:-1, :]))
        a = a.at[:, -1].set(a[:, -2]).at[0, :].set(a[1, :])
        return a.at[:, 0].set(a[:, 1]), b

    agree(lambda a, b: loop(5, body, (a, b)), drawn(dtype, n, n), drawn(dtype, n, n))
    agree(lambda a: loop(5, lambda _, a: fnp.roll(a, 1) - 2 * a + fnp.roll(a, -1, 1), a), drawn(dtype, n, n))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [9, 20, 41])
def test_factorizations(dtype, n):
    at = fnp.arange(n)
    a = drawn(dtype, n, n)
    a = fnp.asarray((a @ a.T + n * np.eye(n)).astype(dtype))

    def eliminated(k, a):
        factor = fnp.where(at > k, a[:, k] / a[k, k], 0)
        a = a - fnp.outer(factor, fnp.where(at >= k, a[k], 0))
        return a.at[:, k].set(fnp.where(at > k, factor, a[:, k]))

    def column(j, low):
        row = fnp.where(at < j, low[j], 0)
        c = a[:, j] - low @ row
        return low.at[:, j].set(fnp.where(at >= j, c / fnp.sqrt(c[j]), 0))

    def solved(k, x):
        return x.at[k].set((x[k] - fnp.where(at < k, a[k] * x, 0).sum()) / a[k, k])

    def element(i, a):
        def left(j, a):
            return a.at[i, j].set((a[i, j] - fnp.dot(fnp.where(at < j, a[i], 0), a[:, j])) / a[j, j])

        return lax.fori_loop(0, i, left, a)

    agree(lambda a: loop(n, eliminated, a), a)
    agree(lambda low: loop(n, column, low), fnp.zeros_like(a))
    agree(lambda x: loop(n, solved, x), drawn(dtype, n))
    agree(lambda a: loop(n, element, a), a)


@pytest.mark.parametrize("mode", ["clip", "drop", "fill"])
@pytest.mark.parametrize("n", [9, 20])
def test_windows_at_moving_places(mode, n):
    a, b = drawn("float64", 30, n), drawn("float64", 30, n)
    places = RANDOM.integers(-5, 40, 12)

    def body(i, s):
        a, b = s
        j = fnp.asarray(places)[i]
        scattering = "clip" if mode == "clip" else "drop"
        return a.at[j].add(b[i], mode=scattering), b.at[i].set(a.at[j].get(mode="clip" if mode == "clip" else "fill"))

    agree(lambda a, b: loop(12, body, (a, b)), a, b)
    agree(lambda a: loop(12, lambda i, a: lax.dynamic_update_slice(a, lax.dynamic_slice(a, (i, 1), (3, n - 2)) * 2, (i + 2, 0)), a), a)


def test_loops_take_vectors():
    a = drawn("float64", 40, 40)
    assert in_vectors(lambda a: loop(39, lambda i, a: a.at[i + 1].add(a[i] * 0.5), a), a)
    assert in_vectors(lambda a: loop(5, lambda _, a: a.at[1:-1].set((a[:-2] + a[2:]) * 0.5), a), a)
    assert in_vectors(lambda a: loop(40, lambda i, x: x.at[i].set((a[i] * x).sum()), a[0]), a)
    assert in_vectors(lambda a: loop(5, lambda i, x: (a @ x) * 0.5, a[0]), a)
    assert in_vectors(lambda a: loop(5, lambda i, x: (x @ a) * 0.5, a[0]), a)
    assert in_vectors(lambda a: loop(5, lambda i, x: (a * x).sum(0) * 0.5, a[0]), a)


# ---- numbers of all widths, reductions of all kinds, computed positions ----

ALL_NUMBERS = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("name", ["mul", "max", "min", "less", "greater", "shift_left", "shift_right_logical", "shift_right_arithmetic", "extremes"])
def test_whole_numbers_of_both_widths(dtype, name):
    info = np.iinfo(dtype)
    f = {
        "mul": lambda a, b: a * b + a,
        "max": fnp.maximum,
        "min": fnp.minimum,
        "less": lambda a, b: fnp.where(a < b, a + 1, b - 1),
        "greater": lambda a, b: fnp.where((a > b) | (a == 3), b, a),
        "shift_left": lambda a, b: lax.shift_left(a, b & 7),
        "shift_right_logical": lambda a, b: lax.shift_right_logical(a, b & 31),
        "shift_right_arithmetic": lambda a, b: lax.shift_right_arithmetic(a, b & 31),
        "extremes": lambda a, b: fnp.where(a <= b, a * a, b) ^ (a >= b).astype(a.dtype),
    }[name]
    for n in SIZES:
        a, b = (RANDOM.integers(info.min, info.max, n, dtype, endpoint=True) for _ in range(2))
        a[: min(4, n)] = [info.min, info.max, 0, 3][: min(4, n)]
        agree(lambda a, b: loop(3, lambda i, s: f(s, b), a), a, b)


@pytest.mark.parametrize("stored, computed", [("float32", "float64"), ("int32", "int64"), ("uint32", "int64"), ("int32", "float64"), ("uint32", "uint64")])
def test_numbers_that_are_stored_with_half_the_width(stored, computed):
    for n in SIZES:
        a, b = drawn(stored, n), drawn(computed, n)

        def body(i, s):
            x, y = s
            y = y + x[::1].astype(computed) * 2
            return y.astype(stored) if (stored, computed) != ("int32", "float64") else x + 1, y

        agree(lambda a, b: loop(3, body, (a, b)), a, b)
        agree(lambda a, b: loop(3, lambda i, s: (s[0], s[1] + s[0].astype(computed).sum()), (a, b)), a, b)
        if (stored, computed) != ("int32", "float64"):
            assert in_vectors(lambda a, b: loop(3, body, (a, b)), a, b)


@pytest.mark.parametrize("stored", ["int8", "int16", "uint8", "uint16", "bool"])
def test_sums_of_small_numbers_in_wide_ones(stored):
    for n in SIZES:
        x = drawn(stored, n)

        def body(i, s):
            x, total = s
            wide = x.astype("int32").astype("int64")
            return fnp.roll(x, 1), total + wide.sum() + wide.max() + x.astype("int32").astype("float64").sum().astype("int64")

        agree(lambda x, t: loop(3, body, (x, t)), x, np.int64(0))
        agree(lambda x, y: loop(3, lambda i, s: (fnp.flip(s[0]), s[1] + s[0].astype("int32").astype("int64")), (x, y)), x, drawn("int64", n))


REDUCTIONS = {
    "sum": lambda x, axis: fnp.sum(x, axis),
    "prod": lambda x, axis: fnp.prod(x, axis),
    "max": lambda x, axis: fnp.max(x, axis),
    "min": lambda x, axis: fnp.min(x, axis),
    "any": lambda x, axis: fnp.any(x, axis),
    "all": lambda x, axis: fnp.all(x, axis),
    "argmax": lambda x, axis: fnp.argmax(x, axis),
    "argmin": lambda x, axis: fnp.argmin(x, axis),
}


@pytest.mark.parametrize("dtype", ALL_NUMBERS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_all_kinds(dtype, name):
    for shape in [(9, 3), (9, 5), (12, 12), (3, 17), (20, 40), (2, 1)]:
        x = drawn(dtype, *shape)
        if np.dtype(dtype).kind == "f":
            x.ravel()[RANDOM.integers(0, x.size, 3)] = [np.nan, np.inf, -np.inf] if shape[1] > 5 else [0.0, -0.0, 1.0]
        for axis in (0, 1, None):

            def body(i, s):
                x, total = s
                r = REDUCTIONS[name](x, axis)
                return fnp.roll(x, 1, 0), total + r.astype(total.dtype)

            start = np.zeros_like(np.asarray(REDUCTIONS["sum"](x, axis)), "float64")
            agree(lambda x, t: loop(3, body, (x, t)), x, start)


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool"])
def test_reads_at_computed_positions(dtype, mode):
    for n, m in [(9, 12), (40, 100), (17, 1030)]:
        x = drawn(dtype, n)
        low, high = (0, n) if mode == "promise_in_bounds" else (-n - 3, n + 3)
        at = RANDOM.integers(low, high, m)

        def body(i, s):
            x, y = s
            y = x.at[(at + i) % n if mode == "promise_in_bounds" else at + i].get(mode=mode)
            return fnp.roll(x, 1), y

        agree(lambda x, y: loop(3, body, (x, y)), x, drawn(dtype, m))
        rows = drawn(dtype, n, 3)
        take = lambda i, s: (fnp.flip(s[0], 0), s[0].at[at % n if mode == "promise_in_bounds" else at].get(mode=mode))
        agree(lambda x, y: loop(3, take, (x, y)), rows, drawn(dtype, m, 3))


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("name", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
def test_updates_at_computed_positions(dtype, name, mode):
    if dtype == "bool" and name in ("add", "multiply"):
        pytest.skip("sums of truth values are refused")
    for n, m in [(9, 12), (40, 100), (17, 1030)]:
        x, y, at = drawn(dtype, n), drawn(dtype, m), RANDOM.integers(-n - 2, n + 2, m)
        update = lambda i, s: getattr(s.at[at + i], name)(y, mode=mode)
        agree(lambda x: loop(3, update, x), x)
        rows, parts = drawn(dtype, n, 3), drawn(dtype, m, 3)
        agree(lambda x: loop(3, lambda i, s: getattr(s.at[at], name)(parts, mode=mode), x), rows)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_rolls_of_few_elements(dtype):
    for n in [3, 5, 9, 40]:
        x = drawn(dtype, n)
        f = lambda x: (fnp.roll(x, -1) - fnp.roll(x, 2)) * fnp.roll(x, 1) - x
        agree(lambda x: loop(3, lambda i, x: f(f(x)), x), x)


def test_shared_work_of_iterations_precedes_them():
    a, x = RANDOM.random((12, 12)) + 0.1, drawn("float64", 12)
    step = lambda a: lambda i, s: fnp.max(s[:, None] + fnp.log(a), 0) + fnp.exp(fnp.sum(a, 1)) * s
    f = lambda a, x: loop(4, step(a), x)
    agree(f, a, x)
    before, _, _ = text(f, a, x).rpartition("\narena ")[2].partition("\nnest of")
    assert "log.f64" in before and "exp.f64" in before, before
    agree(lambda a, x: loop(0, step(a), x), a, x)
    agree(lambda a, x: lax.while_loop(lambda s: (s < fnp.exp(a[0])).any(), lambda s: s + fnp.log1p(a[1]), x), a, x)
    agree(lambda a, x: loop(3, lambda i, s: loop(2, lambda j, s: s * 0.5 + fnp.sin(a[0]) * fnp.cos(s[1]), s) + fnp.log(a[1]), x), a, x)
