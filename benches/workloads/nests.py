"""Loops written out by hand: time steps over slices, factorizations, nested sequential loops, scans of scalars.

Each is written from its mathematics, as users write it, at three sizes in float32 and in float64 (with 64-bit indices).
"""

import numpy as np

from workloads.registry import RANDOM, dtyped


def nest(group, text, sizes, data, tolerance=1e-3):
    """Registers `f(lib, *args)` at each size in both precisions; `data(size, floats)` gives the arguments, `floats(*shape)` random numbers."""

    def register(f):
        for size in sizes:
            for dtype in ("float32", "float64"):
                args = data(size, lambda *shape, dtype=dtype: RANDOM.random(shape).astype(dtype))
                dtyped(group, f"{text}, {size}", f, *args, dtype=dtype, tolerance=tolerance if dtype == "float32" else 1e-8)
        return f

    return register


def steps(lib, n, body, state):
    return lib.lax.fori_loop(0, n, lambda _, s: body(s), state)


# ---- time steps over slices ----

STENCILS = "stencil loops"


@nest(STENCILS, "heat on a line, 100 steps", (120, 2000, 40000), lambda n, x: (x(n),))
def heat_line(lib, a):
    def step(s):
        a, b = s
        b = b.at[1:-1].set((a[:-2] + a[1:-1] + a[2:]) / 3)
        return a.at[1:-1].set((b[:-2] + b[1:-1] + b[2:]) / 3), b

    return steps(lib, 100, step, (a, a))[0]


@nest(STENCILS, "heat on a plane, 20 steps", (30, 150, 600), lambda n, x: (x(n, n),))
def heat_plane(lib, a):
    def mean(a):
        return 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])

    def step(s):
        a, b = s
        b = b.at[1:-1, 1:-1].set(mean(a))
        return a.at[1:-1, 1:-1].set(mean(b)), b

    return steps(lib, 20, step, (a, a))[0]


@nest(STENCILS, "heat in space, 10 steps", (12, 40, 100), lambda n, x: (x(n, n, n),))
def heat_space(lib, a):
    i = slice(1, -1)

    def grown(a):
        c = a[i, i, i]
        x = 0.125 * (a[2:, i, i] - 2 * c + a[:-2, i, i])
        y = 0.125 * (a[i, 2:, i] - 2 * c + a[i, :-2, i])
        z = 0.125 * (a[i, i, 2:] - 2 * c + a[i, i, :-2])
        return x + y + z + c

    def step(s):
        a, b = s
        b = b.at[i, i, i].set(grown(a))
        return a.at[i, i, i].set(grown(b)), b

    return steps(lib, 10, step, (a, a))[0]


@nest(STENCILS, "electromagnetic field on a staggered grid, 30 steps", (24, 100, 500), lambda n, x: (x(n, n), x(n, n), x(n, n), x(30)))
def staggered(lib, ex, ey, hz, source):
    def step(t, s):
        ex, ey, hz = s
        ey = ey.at[0, :].set(source[t])
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return ex, ey, hz

    return lib.lax.fori_loop(0, 30, step, (ex, ey, hz))


def pressure(lib, p, b, sweeps, dx, dy):
    def sweep(p):
        inner = (p[1:-1, 2:] + p[1:-1, :-2]) * dy**2 + (p[2:, 1:-1] + p[:-2, 1:-1]) * dx**2
        p = p.at[1:-1, 1:-1].set(inner / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1])
        p = p.at[:, -1].set(p[:, -2])
        p = p.at[0, :].set(p[1, :])
        p = p.at[:, 0].set(p[:, 1])
        return p.at[-1, :].set(0)

    return steps(lib, sweeps, sweep, p)


@nest(STENCILS, "flow in a cavity, 5 x 20 steps", (21, 61, 201), lambda n, x: (0 * x(n, n), 0 * x(n, n), 0 * x(n, n)), tolerance=1e-2)
def cavity(lib, u, v, p):
    n = u.shape[0]
    dx, dt, rho, nu = 2 / (n - 1), 0.1 / n, 1.0, 0.1
    i = slice(1, -1)

    def moved(w, u, v, p, along):
        c = w[i, i]
        flow = u[i, i] * dt / dx * (c - w[i, :-2]) + v[i, i] * dt / dx * (c - w[:-2, i])
        force = dt / (2 * rho * dx) * (p[i, 2:] - p[i, :-2] if along else p[2:, i] - p[:-2, i])
        spread = nu * dt / dx**2 * (w[i, 2:] - 2 * c + w[i, :-2] + w[2:, i] - 2 * c + w[:-2, i])
        return w.at[i, i].set(c - flow - force + spread)

    def step(s):
        u, v, p = s
        ux, vy = (u[i, 2:] - u[i, :-2]) / (2 * dx), (v[2:, i] - v[:-2, i]) / (2 * dx)
        uy, vx = (u[2:, i] - u[:-2, i]) / (2 * dx), (v[i, 2:] - v[i, :-2]) / (2 * dx)
        b = lib.np.zeros_like(p).at[i, i].set(rho * ((ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2))
        p = pressure(lib, p, b, 20, dx, dx)
        u, v = moved(u, u, v, p, True), moved(v, u, v, p, False)
        u = u.at[0, :].set(0).at[:, 0].set(0).at[:, -1].set(0).at[-1, :].set(1)
        v = v.at[0, :].set(0).at[-1, :].set(0).at[:, 0].set(0).at[:, -1].set(0)
        return u, v, p

    return steps(lib, 5, step, (u, v, p))


@nest(STENCILS, "horizontal diffusion with limiters, 16 levels", (24, 64, 192), lambda n, x: (x(n + 4, n + 4, 16), x(n, n, 16)))
def horizontal_diffusion(lib, field, coefficient):
    n = coefficient.shape[0]
    a = field[1:-1, 1:-1]
    lap = 4 * a - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    fx = lap[1:, 1:-1] - lap[:-1, 1:-1]
    fx = lib.np.where(fx * (field[2 : n + 3, 2 : n + 2] - field[1 : n + 2, 2 : n + 2]) > 0, 0, fx)
    fy = lap[1:-1, 1:] - lap[1:-1, :-1]
    fy = lib.np.where(fy * (field[2 : n + 2, 2 : n + 3] - field[2 : n + 2, 1 : n + 2]) > 0, 0, fy)
    return field[2 : n + 2, 2 : n + 2] - coefficient * (fx[1:] - fx[:-1] + fy[:, 1:] - fy[:, :-1])


@nest(STENCILS, "vertical advection, columns of 40", (12, 48, 128), lambda n, x: (x(40, n, n), x(40, n, n), x(40, n, n) + 3))
def vertical_advection(lib, u, w, tendency):
    """A tridiagonal system along each column, eliminated downwards and solved upwards by loops over levels."""
    levels = u.shape[0]

    def down(k, s):
        c, d = s
        a = -0.25 * w[k]
        b = 2.0 + 0.25 * w[k]
        m = 1.0 / (b - c[k - 1] * a)
        return c.at[k].set(0.25 * w[k] * m), d.at[k].set((u[k] + tendency[k] - d[k - 1] * a) * m)

    c = lib.np.zeros_like(u).at[0].set(0.1 * w[0])
    d = lib.np.zeros_like(u).at[0].set(u[0])
    c, d = lib.lax.fori_loop(1, levels, down, (c, d))

    def up(i, x):
        k = levels - 2 - i
        return x.at[k].set(d[k] - c[k] * x[k + 1])

    return lib.lax.fori_loop(0, levels - 1, up, lib.np.zeros_like(u).at[-1].set(d[-1]))


@nest(STENCILS, "alternating directions, 4 steps", (20, 60, 200), lambda n, x: (x(n, n),))
def alternating(lib, u):
    """Implicit in one direction, then the other: sweeps over columns that carry the factors of tridiagonal systems."""
    n = u.shape[0]
    a, b, d, e = -0.3, 1.6, -0.25, 1.5

    def sweep(u, a, b, e):
        def forward(j, s):
            p, q = s
            m = 1.0 / (a * p[1:-1, j - 1] + b)
            r = -a * u[j, :-2] + (1 + 2 * a) * u[j, 1:-1] - a * u[j, 2:] - e * q[1:-1, j - 1] * a
            return p.at[1:-1, j].set(-a * m), q.at[1:-1, j].set(r * m)

        p = lib.np.zeros_like(u)
        q = lib.np.zeros_like(u).at[1:-1, 0].set(1.0)
        p, q = lib.lax.fori_loop(1, n - 1, forward, (p, q))

        def backward(k, v):
            j = n - 2 - k
            return v.at[1:-1, j].set(p[1:-1, j] * v[1:-1, j + 1] + q[1:-1, j])

        return lib.lax.fori_loop(0, n - 2, backward, lib.np.ones_like(u))

    return steps(lib, 4, lambda u: sweep(sweep(u, a, b, 1.0), d, e, 1.0), u)


# ---- factorizations and solves, by loops over rows and columns ----

FACTORS = "factorizations by loops"


def definite(n, x):
    a = x(n, n)
    return ((a @ a.T + n * np.eye(n)).astype(a.dtype),)


@nest(FACTORS, "LU by rows", (20, 80, 200), definite)
def lu(lib, a):
    n = a.shape[0]

    def row(i, a):
        def left(j, a):
            below = lib.np.where(lib.np.arange(n) < j, 1.0, 0.0).astype(a.dtype)
            return a.at[i, j].set((a[i, j] - lib.np.dot(a[i] * below, a[:, j])) / a[j, j])

        def right(j, a):
            below = lib.np.where(lib.np.arange(n) < i, 1.0, 0.0).astype(a.dtype)
            return a.at[i, j].add(-lib.np.dot(a[i] * below, a[:, j]))

        return lib.lax.fori_loop(i, n, right, lib.lax.fori_loop(0, i, left, a))

    return lib.lax.fori_loop(0, n, row, a)


@nest(FACTORS, "LU by outer products", (20, 80, 250), definite)
def elimination(lib, a):
    i = lib.np.arange(a.shape[0])

    def step(k, a):
        factor = lib.np.where(i > k, a[:, k] / a[k, k], 0)
        a = a - lib.np.outer(factor, lib.np.where(i >= k, a[k], 0))
        return a.at[:, k].set(lib.np.where(i > k, factor, a[:, k]))

    return lib.lax.fori_loop(0, a.shape[0], step, a)


@nest(FACTORS, "Cholesky by columns", (20, 80, 250), definite)
def cholesky(lib, a):
    i = lib.np.arange(a.shape[0])

    def column(j, low):
        row = lib.np.where(i < j, low[j], 0)
        c = a[:, j] - low @ row
        return low.at[:, j].set(lib.np.where(i >= j, c / lib.np.sqrt(c[j]), 0))

    return lib.lax.fori_loop(0, a.shape[0], column, lib.np.zeros_like(a))


@nest(FACTORS, "Gram-Schmidt", (16, 60, 160), lambda n, x: ((x(n + 8, n) + np.eye(n + 8, n)).astype(x().dtype),), tolerance=1e-2)
def gram_schmidt(lib, a):
    n = a.shape[1]
    cols = lib.np.arange(n)

    def column(k, s):
        a, q, r = s
        norm = lib.np.sqrt((a[:, k] ** 2).sum())
        r = r.at[k, k].set(norm)
        q = q.at[:, k].set(a[:, k] / norm)
        rest = lib.np.where(cols > k, q[:, k] @ a, 0)
        r = r.at[k].add(rest)
        return a - lib.np.outer(q[:, k], rest), q, r

    return lib.lax.fori_loop(0, n, column, (a, lib.np.zeros_like(a), lib.np.zeros((n, n), a.dtype)))[1:]


@nest(FACTORS, "Levinson-Durbin recursion", (60, 250, 1000), lambda n, x: ((0.3 * x(n) / n).astype(x().dtype),))
def durbin(lib, r):
    n = r.shape[0]
    i = lib.np.arange(n)

    def step(k, s):
        y, alpha, beta = s
        beta = beta * (1 - alpha * alpha)
        turned = lib.np.roll(r[::-1], k)
        alpha = -(r[k] + lib.np.where(i < k, turned * y, 0).sum()) / beta
        y = y + lib.np.where(i < k, alpha * lib.np.roll(y[::-1], k), 0)
        return y.at[k].set(alpha), alpha, beta

    one = lib.np.ones((), r.dtype)
    return lib.lax.fori_loop(1, n, step, (lib.np.zeros_like(r).at[0].set(-r[0]), -r[0], one))[0]


@nest(FACTORS, "triangular solve", (50, 400, 1000), lambda n, x: ((np.tril(x(n, n)) + n * np.eye(n)).astype(x().dtype), x(n)))
def triangular(lib, low, b):
    i = lib.np.arange(b.shape[0])

    def row(k, x):
        return x.at[k].set((b[k] - lib.np.where(i < k, low[k] * x, 0).sum()) / low[k, k])

    return lib.lax.fori_loop(0, b.shape[0], row, lib.np.zeros_like(b))


@nest(FACTORS, "tridiagonal solve by scans", (100, 1000, 20000), lambda n, x: (x(n), x(n) + 3, x(n), x(n)))
def tridiagonal(lib, a, b, c, d):
    def down(s, row):
        a, b, c, d = row
        m = b - a * s[0]
        s = c / m, (d - a * s[1]) / m
        return s, s

    zero = lib.np.zeros((), a.dtype)
    _, (c, d) = lib.lax.scan(down, (zero, zero), (a, b, c, d))

    def up(x, row):
        x = row[1] - row[0] * x
        return x, x

    return lib.lax.scan(up, zero, (c, d), reverse=True)[1]


@nest(FACTORS, "shortest paths", (20, 80, 250), lambda n, x: (10 * x(n, n),))
def shortest_paths(lib, a):
    return lib.lax.fori_loop(0, a.shape[0], lambda k, a: lib.np.minimum(a, a[:, k, None] + a[k]), a)


@nest(FACTORS, "folding of a sequence", (12, 30, 60), lambda n, x: ((4 * x(n)).astype(np.int32), 0 * x(1)))
def folding(lib, sequence, zero):
    """Dynamic programming over pairs (i, j), the longest over all places where it splits."""
    n = sequence.shape[0]
    at = lib.np.arange(n)

    def row(r, t):
        i = n - 1 - r

        def cell(j, t):
            best = lib.np.maximum(t[i, j - 1], t[lib.np.minimum(i + 1, n - 1), j])
            pairs = (sequence[i] + sequence[j] == 3).astype(t.dtype)
            best = lib.np.maximum(best, t[lib.np.minimum(i + 1, n - 1), j - 1] + lib.np.where(i < j - 1, pairs, 0))
            split = t[i] + lib.np.roll(t[:, j], -1)
            return t.at[i, j].set(lib.np.maximum(best, lib.np.where((at > i) & (at < j), split, 0).max()))

        return lib.lax.fori_loop(i + 1, n, cell, t)

    return lib.lax.fori_loop(0, n, row, lib.np.zeros((n, n), zero.dtype))


# ---- nested sequential loops over elements ----

SEQUENTIAL = "loops over elements"


@nest(SEQUENTIAL, "Gauss-Seidel of nine points, 2 sweeps", (20, 60, 150), lambda n, x: (x(n, n),))
def gauss_seidel(lib, a):
    n = a.shape[0]

    def cell(i, j, a):
        s = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j]
        return a.at[i, j].set((s + a[i, j + 1] + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]) / 9)

    def row(i, a):
        return lib.lax.fori_loop(1, n - 1, lambda j, a: cell(i, j, a), a)

    return steps(lib, 2, lambda a: lib.lax.fori_loop(1, n - 1, row, a), a)


@nest(SEQUENTIAL, "running filter of rows, element by element", (20, 60, 150), lambda n, x: (x(n, n),))
def row_filter(lib, a):
    n = a.shape[0]

    def row(i, a):
        return lib.lax.fori_loop(1, n, lambda j, a: a.at[i, j].set(a[i, j] * 0.5 + a[i, j - 1] * 0.5), a)

    return lib.lax.fori_loop(0, n, row, a)


@nest(SEQUENTIAL, "recursive filter, both ways", (100, 2000, 20000), lambda n, x: (x(n),))
def recursive(lib, x):
    def ahead(s, x):
        y = 0.2 * x + 0.1 * s[0] + 0.6 * s[1] - 0.1 * s[2]
        return (x, y, s[1]), y

    def back(s, x):
        y = 0.15 * s[0] + 0.05 * s[1] + 0.6 * s[2] - 0.1 * s[3]
        return (x, s[0], y, s[2]), y

    z = lib.np.zeros((), x.dtype)
    return lib.lax.scan(ahead, (z, z, z), x)[1] + lib.lax.scan(back, (z, z, z, z), x, reverse=True)[1]


@nest(SEQUENTIAL, "recursive filter of an image", (20, 100, 400), lambda n, x: (x(n, n),))
def image_filter(lib, x):
    def ahead(s, x):
        y = 0.2 * x + 0.1 * s[0] + 0.6 * s[1] - 0.1 * s[2]
        return (x, y, s[1]), y

    z = lib.np.zeros_like(x[0])
    return lib.lax.scan(ahead, (z, z, z), x.T)[1].T


@nest(SEQUENTIAL, "edit distance", (20, 60, 200), lambda n, x: ((4 * x(n)).astype(np.int32), (4 * x(n)).astype(np.int32), 0 * x(1)))
def edit_distance(lib, a, b, zero):
    n = a.shape[0]

    def cell(i, j, t):
        change = t[i - 1, j - 1] + lib.np.where(a[i - 1] == b[j - 1], 0, 1).astype(t.dtype)
        return t.at[i, j].set(lib.np.minimum(lib.np.minimum(t[i - 1, j], t[i, j - 1]) + 1, change))

    t = lib.np.zeros((n + 1, n + 1), zero.dtype)
    t = t.at[:, 0].set(lib.np.arange(n + 1, dtype=zero.dtype)).at[0].set(lib.np.arange(n + 1, dtype=zero.dtype))
    return lib.lax.fori_loop(1, n + 1, lambda i, t: lib.lax.fori_loop(1, n + 1, lambda j, t: cell(i, j, t), t), t)[n, n]


@nest(SEQUENTIAL, "checksum of 16 bits", (100, 2000, 50000), lambda n, x: ((256 * x(n)).astype(np.uint8), x(1)))
def checksum(lib, data, scale):
    def byte(i, crc):
        crc = crc ^ data[i].astype(lib.np.uint32)

        def bit(_, c):
            return lib.np.where(c & 1, (c >> 1) ^ 0x8408, c >> 1)

        return lib.lax.fori_loop(0, 8, bit, crc)

    crc = lib.lax.fori_loop(0, data.shape[0], byte, lib.np.uint32(0xFFFF))
    return crc * scale.astype(lib.np.uint32)


@nest(SEQUENTIAL, "linear congruences in a scan", (100, 2000, 50000), lambda n, x: ((1000 * x(n)).astype(np.uint32), x(1)))
def congruences(lib, data, scale):
    def step(s, x):
        s = s * 1664525 + x
        s = s ^ (s >> 13)
        return s, s >> 8

    return lib.lax.scan(step, lib.np.uint32(1), data)[1]


@nest(SEQUENTIAL, "prefix sums by a loop", (100, 2000, 20000), lambda n, x: (x(n),))
def prefix(lib, x):
    return lib.lax.fori_loop(1, x.shape[0], lambda i, y: y.at[i].add(y[i - 1] * 0.5), x)


@nest(SEQUENTIAL, "histogram by a loop", (100, 2000, 20000), lambda n, x: ((16 * x(n)).astype(np.int32), x(n)))
def histogram(lib, bins, x):
    return lib.lax.fori_loop(0, x.shape[0], lambda i, h: h.at[bins[i]].add(x[i]), lib.np.zeros(16, x.dtype))


@nest(SEQUENTIAL, "insertion into place, one pass", (30, 100, 300), lambda n, x: (x(n),))
def bubble(lib, x):
    n = x.shape[0]

    def swap(j, x):
        a, b = x[j], x[j + 1]
        return x.at[j].set(lib.np.minimum(a, b)).at[j + 1].set(lib.np.maximum(a, b))

    return steps(lib, 5, lambda x: lib.lax.fori_loop(0, n - 1, swap, x), x)


# ---- windows at moving places, rows of sparse matrices ----

WINDOWS = "windows in loops"


@nest(WINDOWS, "convolution by windows, 3 x 3", (10, 24, 60), lambda n, x: (x(n, n, 4), x(3, 3, 4, 8)))
def windows(lib, image, weights):
    n = image.shape[0] - 2

    def place(k, out):
        i, j = k // n, k % n
        window = lib.lax.dynamic_slice(image, (i, j, 0), (3, 3, image.shape[2]))
        return lib.lax.dynamic_update_slice(out, (window[..., None] * weights).sum((0, 1, 2))[None, None], (i, j, 0))

    return lib.lax.fori_loop(0, n * n, place, lib.np.zeros((n, n, weights.shape[3]), image.dtype))


@nest(WINDOWS, "moving mean of windows of 16", (100, 1000, 10000), lambda n, x: (x(n),))
def moving_mean(lib, x):
    n = x.shape[0] - 15
    return lib.lax.fori_loop(0, n, lambda i, y: y.at[i].set(lib.lax.dynamic_slice(x, (i,), (16,)).mean()), lib.np.zeros(n, x.dtype))


@nest(WINDOWS, "azimuthal means by masks, 50 rings", (1000, 10000, 100000), lambda n, x: (x(n), x(n)))
def azimuthal(lib, data, radius):
    edge = radius.max() / 50

    def ring(i, out):
        low = i * edge
        mask = (radius >= low) & (radius < low + edge)
        return out.at[i].set(lib.np.where(mask, data, 0).sum() / lib.np.maximum(mask.sum(), 1))

    return lib.lax.fori_loop(0, 50, ring, lib.np.zeros(50, data.dtype))


def sparse(n, x):
    width = 8
    return x(n * width), (n * x(n * width)).astype(np.int32), np.arange(0, n * width + 1, width).astype(np.int32), x(n)


@nest(WINDOWS, "sparse product by rows of 8", (50, 500, 5000), sparse)
def sparse_rows(lib, values, columns, starts, x):
    n = x.shape[0]

    def row(i, y):
        v = lib.lax.dynamic_slice(values, (starts[i],), (8,))
        c = lib.lax.dynamic_slice(columns, (starts[i],), (8,))
        return y.at[i].set((v * x[c]).sum())

    return lib.lax.fori_loop(0, n, row, lib.np.zeros_like(x))


@nest(WINDOWS, "sparse product by elements of rows", (50, 500, 5000), sparse)
def sparse_elements(lib, values, columns, starts, x):
    n = x.shape[0]

    def row(i, y):
        total = lib.lax.fori_loop(starts[i], starts[i + 1], lambda k, s: s + values[k] * x[columns[k]], lib.np.zeros((), x.dtype))
        return y.at[i].set(total)

    return lib.lax.fori_loop(0, n, row, lib.np.zeros_like(x))


# ---- systems of few numbers, and arrays over many steps ----

SYSTEMS = "systems over time"


@nest(SYSTEMS, "escape times of c in z*z + c, 30 steps", (20, 100, 400), lambda n, x: (3 * x(n, n) - 2, 2 * x(n, n) - 1))
def escape(lib, re, im):
    def step(s):
        x, y, count = s
        inside = x * x + y * y < 4
        nx, ny = x * x - y * y + re, 2 * x * y + im
        return lib.np.where(inside, nx, x), lib.np.where(inside, ny, y), count + inside

    return steps(lib, 30, step, (lib.np.zeros_like(re), lib.np.zeros_like(re), lib.np.zeros(re.shape, "int32")))[2]


@nest(SYSTEMS, "gravitation, 20 steps", (8, 40, 150), lambda n, x: (x(n), x(n, 3), x(n, 3)), tolerance=1e-2)
def gravitation(lib, mass, position, velocity):
    def force(p):
        d = p[None] - p[:, None]
        inverse = ((d * d).sum(-1) + 0.01) ** -1.5
        return (d * (inverse * mass)[..., None]).sum(1)

    def step(s):
        p, v, a = s
        v = v + 0.005 * a
        p = p + 0.01 * v
        a = force(p)
        return p, v + 0.005 * a, a

    return steps(lib, 20, step, (position, velocity, force(position)))[:2]


def recurrent_data(n, x):
    return (x(n, n) - 0.5) / n**0.5, (x(n, n) - 0.5) / n**0.5, x(500, n)


@nest(SYSTEMS, "recurrent cell, 500 steps", (16, 64, 128), recurrent_data)
def recurrent(lib, w, u, xs):
    def step(h, x):
        h = lib.np.tanh(w @ h + u @ x)
        return h, h

    return lib.lax.scan(step, lib.np.zeros(w.shape[0], w.dtype), xs)[1]


@nest(SYSTEMS, "recurrent cell gradient, 500 steps", (16, 64, 128), recurrent_data)
def recurrent_gradient(lib, w, u, xs):
    return lib.root.grad(lambda w: (recurrent(lib, w, u, xs) ** 2).sum())(w)


@nest(SYSTEMS, "waves on a ring by roll, 100 steps", (128, 2048, 32768), lambda n, x: (x(n), x(n)))
def waves(lib, u, v):
    def step(s):
        u, v = s
        v = v + 0.1 * (lib.np.roll(u, 1) - 2 * u + lib.np.roll(u, -1))
        return u + 0.1 * v, v

    return steps(lib, 100, step, (u, v))


@nest(SYSTEMS, "shallow water with slopes limited, 20 steps", (32, 128, 512), lambda n, x: (x(n, n) + 1, x(n, n)))
def limited(lib, h, u):
    def slope(q, axis):
        a, b = lib.np.roll(q, -1, axis) - q, q - lib.np.roll(q, 1, axis)
        return lib.np.where(a * b > 0, lib.np.where(lib.np.abs(a) < lib.np.abs(b), a, b), 0)

    def step(s):
        h, u = s
        for axis in (0, 1):
            flux = u * (h + 0.5 * slope(h, axis))
            h = h - 0.05 * (flux - lib.np.roll(flux, 1, axis))
            u = u - 0.05 * (lib.np.roll(h, -1, axis) - h)
        return h, u

    return steps(lib, 20, step, (h, u))
