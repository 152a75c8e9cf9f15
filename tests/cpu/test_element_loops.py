"""Loops that read and write single elements: one native function, whatever they nest. Against the same programs in NumPy, element by element."""

import ferrax as fx
import ferrax.numpy as fnp
import numpy as np
import pytest
from ferrax import lax

RANDOM = np.random.default_rng(7)
DTYPES = ["float32", "float64", "int32", "int64", "uint32", "int8", "uint8", "int16", "uint16", "bool"]


def loop(a, b, body, state):
    return lax.fori_loop(a, b, body, state)


def drawn(dtype, *shape):
    if dtype == "bool":
        return RANDOM.random(shape) < 0.5
    if np.dtype(dtype).kind == "f":
        return RANDOM.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return RANDOM.integers(max(info.min, -1000), min(info.max, 1000), shape).astype(dtype)


def is_nest(f, *args):
    text = fx.jit(f).lower(*args).compile().as_text()
    return "nest of" in text and "\n  loop" not in text


def agree(f, g, *args):
    """`f` under jit against `g` on copies in NumPy, bit for bit; and `f` without jit."""
    with np.errstate(all="ignore"):
        want = g(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
    want = want if isinstance(want, tuple) else (want,)
    jitted = fx.jit(f)
    for got in (jitted(*args), jitted(*args)):
        got = got if isinstance(got, tuple) else (got,)
        for x, y in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.asarray(x), y)


@pytest.fixture(autouse=True)
def _wide():
    with fx.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_elements_are_copied_between_arrays(dtype, index):
    def f(a, b):
        return loop(np.dtype(index).type(0), np.dtype(index).type(7), lambda i, b: b.at[6 - i].set(a[i, 2]), b)

    def g(a, b):
        for i in range(7):
            b[6 - i] = a[i, 2]
        return b

    agree(f, g, drawn(dtype, 7, 4), drawn(dtype, 7))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "maximum", "minimum", "divide", "mod", "floor_divide"])
def test_arithmetic(dtype, operation):
    kind = np.dtype(dtype).kind
    if operation == "divide" and kind != "f":
        pytest.skip("it gives floats")

    def body(xp, a, i):
        return getattr(xp, operation)(a[i - 1], a[i])

    def f(a):
        return loop(1, 40, lambda i, a: a.at[i].set(body(fnp, a, i)), a)

    def g(a):
        for i in range(1, 40):
            a[i] = np.asarray(getattr(fnp, operation)(fnp.asarray(a[i - 1]), fnp.asarray(a[i])))
        return a

    agree(f, g, drawn(dtype, 40))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint8", "int16"])
@pytest.mark.parametrize("operation", ["left_shift", "right_shift", "bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(dtype, operation):
    def f(a, by):
        return loop(1, 30, lambda i, a: a.at[i].set(getattr(fnp, operation)(a[i - 1], by[i]) ^ a[i]), a)

    def g(a, by):
        for i in range(1, 30):
            a[i] = np.asarray(getattr(fnp, operation)(fnp.asarray(a[i - 1]), fnp.asarray(by[i]))) ^ a[i]
        return a

    agree(f, g, drawn(dtype, 30), RANDOM.integers(0, 70, 30).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", ["negative", "abs", "floor", "ceil", "rint", "trunc", "sqrt", "isfinite", "exp", "sin", "tanh", "sign", "reciprocal"])
def test_functions(dtype, function):
    def body(xp, x):
        y = getattr(xp, function)(x)
        return xp.where(y, x, -x) if function == "isfinite" else y * 0.5

    values = np.array([0.0, -0.0, 1.5, -2.5, np.nan, np.inf, -np.inf, 1e-30, 3.7], dtype)

    def f(a, b):
        return loop(0, 9, lambda i, b: b.at[i].set(body(fnp, a[i])), b)

    def g(a, b):
        for i in range(9):
            b[i] = np.asarray(body(fnp, fnp.asarray(a[i])))
        return b

    agree(f, g, values, np.zeros(9, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_comparisons_and_extremes_of_special_numbers(dtype):
    special = np.array([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, -1.0], dtype)

    def body(x, y):
        return (
            fnp.maximum(x, y),
            fnp.minimum(x, y),
            fnp.where(x < y, x, y),
            fnp.where(x >= y, y, 3.0),
            fnp.where((x == y) | (x != x), x, y),
            (x <= y).astype(fnp.int32) + 2 * (x > y).astype(fnp.int32),
        )

    def f(a, outs):
        def cell(i, j, outs):
            return tuple(o.at[i, j].set(v.astype(o.dtype)) for o, v in zip(outs, body(a[i], a[j]), strict=True))

        return loop(0, 7, lambda i, outs: loop(0, 7, lambda j, outs: cell(i, j, outs), outs), outs)

    outs = tuple(np.zeros((7, 7), dtype) for _ in range(5)) + (np.zeros((7, 7), np.int32),)
    got = fx.jit(f)(special, outs)
    want = body(fnp.asarray(special)[:, None], fnp.asarray(special)[None])
    for x, y in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        np.testing.assert_array_equal(np.signbit(np.asarray(x)), np.signbit(np.asarray(y)))


@pytest.mark.parametrize("start", range(-12, 12, 3))
@pytest.mark.parametrize("mode", [None, "drop", "clip", "fill", "promise_in_bounds"])
def test_indices_outside(start, mode):
    if mode == "promise_in_bounds" and not 0 <= start < 8 - 2:
        pytest.skip("a promise that is broken")

    def f(a, b):
        def body(i, b):
            x = a.at[start + i].get(mode=None if mode == "drop" else mode)
            return b.at[start + i].set(x + 1, mode="drop" if mode == "fill" else mode)

        return loop(0, 2, body, b)

    a, b = drawn("float32", 8), drawn("float32", 8)
    eager = fnp.asarray(b)
    for i in range(2):
        x = fnp.asarray(a).at[start + i].get(mode=None if mode == "drop" else mode)
        eager = eager.at[start + i].set(x + 1, mode="drop" if mode == "fill" else mode)
    np.testing.assert_array_equal(np.asarray(fx.jit(f)(a, b)), np.asarray(eager))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_gauss_seidel(dtype):
    def cell(a, i, j):
        return a[i - 1, j] + a[i, j - 1] + a[i + 1, j] + a[i, j + 1] - 2 * a[i, j]

    def f(a):
        return loop(1, 8, lambda i, a: loop(1, 10, lambda j, a: a.at[i, j].set(cell(a, i, j)), a), a)

    def g(a):
        for i in range(1, 8):
            for j in range(1, 10):
                a[i, j] = cell(a, i, j)
        return a

    a = drawn(dtype, 9, 11)
    assert is_nest(f, a)
    agree(f, g, a)


def test_bounds_of_inner_loops_depend_on_outer_counters():
    def f(a, s):
        def row(i, state):
            return loop(0, i, lambda j, state: (state[0].at[i, j].set(state[1] * 0.5 + a[j, i]), state[1] + state[0][j, i]), state)

        return loop(0, 9, row, (a, s))

    def g(a, s):
        first = a.copy()
        for i in range(9):
            for j in range(i):
                old = a[j, i]
                a[i, j] = s * 0.5 + first[j, i]
                s = s + old
        return a, np.asarray(s)

    agree(f, g, drawn("float64", 9, 9), np.float64(0.25))


def test_while_loops_inside():
    def f(starts, values):
        def row(i, out):
            def more(s):
                return (s[0] < starts[i + 1]) & (s[1] < 40)

            s = lax.while_loop(more, lambda s: (s[0] + 1, s[1] + values[s[0]]), (starts[i], fnp.float64(0)))
            return out.at[i].set(s[1])

        return loop(0, 6, row, fnp.zeros(6))

    def g(starts, values):
        out = np.zeros(6)
        for i in range(6):
            k, s = starts[i], 0.0
            while k < starts[i + 1] and s < 40:
                s += values[k]
                k += 1
            out[i] = s
        return out

    agree(f, g, np.array([0, 3, 3, 8, 20, 21, 30], np.int32), 10 * RANDOM.random(30))


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_over_rows_with_loops_inside(reverse):
    def f(rows):
        def step(s, row):
            s, row = loop(1, 5, lambda j, t: (t[0] + t[1][j - 1] * 2, t[1].at[j].add(t[0])), (s, row))
            return s, (row[1], s)

        return lax.scan(step, fnp.float32(0), rows, reverse=reverse)

    def g(rows):
        order = range(len(rows))[:: -1 if reverse else 1]
        s, first, second = np.float32(0), np.zeros(len(rows), np.float32), np.zeros(len(rows), np.float32)
        for k in order:
            row = rows[k].copy()
            for j in range(1, 5):
                old = s
                s = s + row[j - 1] * np.float32(2)
                row[j] += old
            first[k], second[k] = row[1], s
        return s, first, second

    rows = drawn("float32", 6, 5)
    got = fx.jit(f)(rows)
    for x, y in zip((got[0], *got[1]), g(rows), strict=True):
        np.testing.assert_array_equal(np.asarray(x), y)


def test_histograms_and_swaps():
    def f(bins, weights, x):
        h = loop(0, 50, lambda i, h: h.at[bins[i]].add(weights[i]), fnp.zeros(8))

        def swap(j, x):
            a, b = x[j], x[j + 1]
            return x.at[j].set(fnp.minimum(a, b)).at[j + 1].set(fnp.maximum(a, b))

        return h, loop(0, 20, lambda k, x: loop(0, 19 - k, swap, x), x)

    def g(bins, weights, x):
        h = np.zeros(8)
        for b, w in zip(bins, weights, strict=True):
            h[b] += w
        return h, np.sort(x)

    agree(f, g, RANDOM.integers(0, 8, 50), RANDOM.random(50), drawn("float64", 20))


def test_checksums_of_bytes():
    def f(data):
        def byte(i, crc):
            crc = crc ^ data[i].astype(fnp.uint32)
            return loop(0, 8, lambda _, c: fnp.where(c & 1, (c >> 1) ^ 0x8408, c >> 1), crc)

        return loop(0, 64, byte, fnp.uint32(0xFFFF))

    def g(data):
        crc = 0xFFFF
        for x in data:
            crc ^= int(x)
            for _ in range(8):
                crc = (crc >> 1) ^ 0x8408 if crc & 1 else crc >> 1
        return np.uint32(crc)

    agree(f, g, RANDOM.integers(0, 256, 64).astype(np.uint8))


def test_windows_at_moving_places():
    def f(x, w):
        def place(k, out):
            i, j = k // 4, k % 4
            window = lax.dynamic_slice(x, (i, j), (2, 2))
            return lax.dynamic_update_slice(out, fnp.stack([window[0, 0] * w[0] + window[1, 1], window[0, 1] * w[1] - window[1, 0]])[None, None], (i, j, 0))

        return loop(0, 16, place, fnp.zeros((4, 4, 2)))

    def g(x, w):
        out = np.zeros((4, 4, 2))
        for i in range(4):
            for j in range(4):
                out[i, j] = x[i, j] * w[0] + x[i + 1, j + 1], x[i, j + 1] * w[1] - x[i + 1, j]
        return out

    agree(f, g, drawn("float64", 5, 5), drawn("float64", 2))


def test_many_values_at_once():
    # more than there are registers, across calls and inner loops
    def f(a):
        def body(i, s):
            v, a = s
            v = [fnp.sin(x) * 0.5 + y for x, y in zip(v, v[1:] + v[:1], strict=True)]
            a = loop(0, 3, lambda j, a: a.at[j].add(v[3] * v[17]), a)
            return v, a.at[i % 5].add(sum(v))

        return loop(0, 10, body, ([fnp.float64(k) for k in range(24)], a))[1]

    a = drawn("float64", 5)
    with fx.disable_jit():
        want = f(fnp.asarray(a))
    np.testing.assert_array_equal(np.asarray(fx.jit(f)(a)), np.asarray(want))


def test_gradients_and_batches_go_through():
    def f(x):
        return loop(1, 6, lambda i, y: y.at[i].set(y[i - 1] * fnp.sin(x[i])), x).sum()

    x = drawn("float64", 6)
    step = 1e-6
    slopes = [(f(fnp.asarray(x + d)) - f(fnp.asarray(x - d))) / (2 * step) for d in np.eye(6) * step]
    np.testing.assert_allclose(fx.jit(fx.grad(f))(x), slopes, rtol=1e-6, atol=1e-8)
    many = drawn("float64", 3, 6)
    np.testing.assert_allclose(fx.jit(fx.vmap(f))(many), [f(fnp.asarray(m)) for m in many], rtol=1e-14)


def test_a_nest_can_be_interrupted_between_iterations_of_any_loop():
    # ends at once: no iteration runs
    assert fx.jit(lambda n, a: loop(0, n, lambda i, a: a.at[0].add(a[1]), a))(-5, fnp.ones(2)).tolist() == [1.0, 1.0]
