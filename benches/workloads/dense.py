"""Dense numerical kernels from many fields, in float64 and float32, at three sizes each, written from their mathematics."""

import functools

import numpy as np

from workloads.registry import ROWS, plain

RANDOM = np.random.default_rng(0)  # these rows' own

WIDTHS = (("f64", np.float64), ("f32", np.float32))


class Drawn:
    """Arguments that are drawn when they are asked for, the same each time: all rows together hold more than is wanted in memory."""

    def __init__(self, arguments, size, dtype):
        self.arguments, self.size, self.dtype = arguments, size, dtype

    def __iter__(self):
        RANDOM.bit_generator.state = np.random.default_rng(len(self.size) + sum(self.size)).bit_generator.state
        given = self.arguments(lambda *shape: RANDOM.standard_normal(shape).astype(self.dtype), *self.size)
        return iter(given if isinstance(given, tuple) else (given,))


def family(group, text, f, sizes, arguments, flops=None, widths=WIDTHS, tolerance=None):
    """Rows of `f(lib, *arguments(draw, *size))` for each width and size; `draw(*shape)` gives standard normal numbers of that width."""
    for width, dtype in widths:
        for size in sizes:
            size = size if isinstance(size, tuple) else (size,)
            facts = {"dtype": np.dtype(dtype).name, "x64": dtype == np.float64, "tolerance": tolerance or (1e-9 if dtype == np.float64 else 2e-3)}
            if flops:
                facts["flops"] = flops(*size)
            plain(f"{group} {width}", f"{text}, {' x '.join(map(str, size))}", f, **facts)
            ROWS[-1]["args"] = Drawn(arguments, size, dtype)


# ---- a matrix by a vector, and its transpose ----


def atax(lib, a, x):
    return a.T @ (a @ x)


def bicg(lib, a, p, r):
    return r @ a, a @ p


def mvt(lib, a, x1, x2, y1, y2):
    return x1 + a @ y1, x2 + y2 @ a


def gesummv(lib, a, b, x):
    return 1.5 * (a @ x) + 1.2 * (b @ x)


def gemver(lib, a, u1, v1, u2, v2, y, z):
    a = a + lib.np.outer(u1, v1) + lib.np.outer(u2, v2)
    x = 1.2 * (y @ a) + z
    return a, x, 1.5 * (a @ x)


MATRICES = ((120, 140), (800, 1000), (2200, 2000))
family("vector products", "atax", atax, MATRICES, lambda draw, m, n: (draw(m, n), draw(n)))
family("vector products", "bicg", bicg, MATRICES, lambda draw, m, n: (draw(m, n), draw(n), draw(m)))
SQUARES = (130, 900, 2000)
family("vector products", "mvt", mvt, SQUARES, lambda draw, n: (draw(n, n), *(draw(n) for _ in range(4))))
family("vector products", "gesummv", gesummv, SQUARES, lambda draw, n: (draw(n, n), draw(n, n), draw(n)))
family("vector products", "gemver", gemver, SQUARES, lambda draw, n: (draw(n, n), *(draw(n) for _ in range(6))))
family("vector products", "A @ x", lambda lib, a, x: a @ x, ((64, 64), (300, 500), (3000, 1000)), lambda draw, m, n: (draw(m, n), draw(n)))
family("vector products", "x @ A", lambda lib, a, x: x @ a, ((64, 64), (300, 500), (3000, 1000)), lambda draw, m, n: (draw(m, n), draw(m)))


# ---- products of matrices ----


def twice(lib, a, b, c, d):
    return 1.5 * (a @ b @ c) + 1.2 * d


def thrice(lib, a, b, c, d):
    return (a @ b) @ (c @ d)


def covariance(lib, x):
    x = x - x.mean(0)
    return x.T @ x / (x.shape[0] - 1)


def correlation(lib, x):
    spread = x.std(0)
    x = (x - x.mean(0)) / (lib.np.sqrt(x.shape[0] * 1.0) * lib.np.where(spread <= 0.1, 1, spread))
    return x.T @ x


def one_triangle(lib, c, a):
    """The lower triangle of a symmetric update, row by row."""
    columns = lib.np.arange(c.shape[0])

    def step(i, c):
        row = 1.2 * c[i] + 1.5 * (a @ a[i])
        return c.at[i].set(lib.np.where(columns <= i, row, c[i]))

    return lib.lax.fori_loop(0, c.shape[0], step, c)


def two_sided_triangle(lib, c, a, b):
    columns = lib.np.arange(c.shape[0])

    def step(i, c):
        row = 1.2 * c[i] + 1.5 * (a @ b[i]) + 1.5 * (b @ a[i])
        return c.at[i].set(lib.np.where(columns <= i, row, c[i]))

    return lib.lax.fori_loop(0, c.shape[0], step, c)


def triangular(lib, b, a):
    rows = lib.np.arange(a.shape[0])

    def step(i, b):
        column = lib.np.where(rows > i, a[:, i], 0)
        return b.at[i].set(1.5 * (b[i] + column @ b))

    return lib.lax.fori_loop(0, b.shape[0], step, b)


def symmetric(lib, c, a, b):
    rows = lib.np.arange(a.shape[0])

    def step(i, c):
        left = lib.np.where(rows < i, a[i], 0)
        c = c + 1.5 * left[:, None] * b[i]
        return c.at[i].set(1.2 * c[i] + 1.5 * b[i] * a[i, i] + 1.5 * (left @ b))

    return lib.lax.fori_loop(0, a.shape[0], step, c)


def four(draw, n):
    return draw(n, n), draw(n, n), draw(n, n), draw(n, n)


SIDES = (48, 200, 600)
family("matrix products", "gemm", lambda lib, a, b, c: 1.5 * (a @ b) + 1.2 * c, SIDES, lambda draw, n: four(draw, n)[:3], lambda n: 2 * n**3)
family("matrix products", "2mm", twice, SIDES, four, lambda n: 4 * n**3)
family("matrix products", "3mm", thrice, SIDES, four, lambda n: 6 * n**3)
family("matrix products", "A.T @ B", lambda lib, a, b: a.T @ b, (32, 96, 768), lambda draw, n: four(draw, n)[:2], lambda n: 2 * n**3)
family("matrix products", "A @ B.T", lambda lib, a, b: a @ b.T, (32, 96, 768), lambda draw, n: four(draw, n)[:2], lambda n: 2 * n**3)
SLABS = ((12, 16, 24), (40, 30, 64), (60, 80, 128))
family("matrix products", "doitgen", lambda lib, a, c: a @ c, SLABS, lambda draw, r, q, p: (draw(r, q, p), draw(p, p)), lambda r, q, p: 2 * r * q * p * p)
TABLES = ((100, 80), (300, 240), (1200, 500))
family("matrix products", "covariance", covariance, TABLES, lambda draw, m, n: (draw(m, n),), lambda m, n: 2 * m * n * n)
family("matrix products", "correlation", correlation, TABLES, lambda draw, m, n: (draw(m, n),), lambda m, n: 2 * m * n * n)
PANELS = ((30, 24), (100, 80), (240, 200))
family("updates by rows", "syrk", one_triangle, PANELS, lambda draw, m, n: (draw(m, m), draw(m, n)))
family("updates by rows", "syr2k", two_sided_triangle, PANELS, lambda draw, m, n: (draw(m, m), draw(m, n), draw(m, n)))
family("updates by rows", "trmm", triangular, PANELS, lambda draw, m, n: (draw(m, n), draw(m, m) / m))
family("updates by rows", "symm", symmetric, PANELS, lambda draw, m, n: (draw(m, n), draw(m, m), draw(m, n)), tolerance=1e-2)


# ---- physics with complex numbers ----


def contour_integral(lib, h, y, z):
    total = 0
    for k in range(z.shape[0]):
        t = sum(z[k] ** n * h[n] for n in range(h.shape[0]))
        total = total + lib.np.linalg.solve(t, y)
    return total


def self_energies(lib, g, d, dh):
    """Sums over neighbours and directions of products of small blocks."""
    left = lib.np.einsum("eaij,abxjk->eabxik", g, dh)
    right = lib.np.einsum("abxyf,abyij->abxfij", d, dh)
    return lib.np.einsum("eabxik,abxfkj->efaij", left, right)


def stockham(lib, x):
    """A Fourier transform of 2**k numbers, step by step."""
    n = x.shape[0]
    y, blocks = x.reshape(n, 1), 1
    while blocks < n:
        half = y.shape[0] // 2
        turns = lib.np.exp(-1j * np.pi * lib.np.arange(blocks) / blocks).astype(x.dtype)
        even, odd = y[:half], y[half:] * turns
        y, blocks = lib.np.concatenate([even + odd, even - odd], 1), 2 * blocks
    return y.reshape(n)


def paired(draw, *shape):
    return draw(*shape) + 1j * draw(*shape)


def contour_arguments(draw, n, m):
    identity = np.eye(n, dtype=draw(1).dtype)
    return np.stack([paired(draw, n, n) / n + (4 * identity if k == 0 else 0) for k in range(3)]), paired(draw, n, m), paired(draw, 8)


def energy_arguments(draw, e, a, b):
    return paired(draw, e, a, 6, 6), paired(draw, a, b, 3, 3, 2), paired(draw, a, b, 3, 6, 6)


family("complex kernels", "contour integral", contour_integral, ((16, 8), (50, 30), (120, 100)), contour_arguments, tolerance=1e-3)
family("complex kernels", "self-energies", self_energies, ((4, 6, 2), (8, 12, 4), (16, 24, 4)), energy_arguments)
family("complex kernels", "stockham fft", stockham, (1 << 8, 1 << 12, 1 << 17), paired)
family("complex kernels", "c * c + c", lambda lib, c: c * c + c, (1 << 12, 1 << 16, 1 << 20), paired)


# ---- layers of networks ----


def softmax(lib, x):
    x = lib.np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def mlp(lib, x, w1, b1, w2, b2, w3, b3):
    x = lib.nn.relu(x @ w1 + b1)
    x = lib.nn.relu(x @ w2 + b2)
    return softmax(lib, x @ w3 + b3)


def conv(lib, x, w):
    return lib.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pooled(lib, x):
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))


def lenet(lib, x, k1, b1, k2, b2, w1, c1, w2, c2, w3, c3):
    x = pooled(lib, lib.nn.relu(conv(lib, x, k1) + b1))
    x = pooled(lib, lib.nn.relu(conv(lib, x, k2) + b2))
    x = lib.nn.relu(x.reshape(x.shape[0], -1) @ w1 + c1)
    x = lib.nn.relu(x @ w2 + c2)
    return x @ w3 + c3


def normalized(lib, x):
    mean = x.mean(0, keepdims=True)
    return (x - mean) / lib.np.sqrt(x.std(0, keepdims=True) + 1e-5)


def resnet_block(lib, x, k1, k2, k3):
    y = lib.nn.relu(normalized(lib, conv(lib, x, k1)))
    y = lib.np.pad(y, ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = lib.nn.relu(normalized(lib, conv(lib, y, k2)))
    y = normalized(lib, conv(lib, y, k3))
    return lib.nn.relu(y + x)


def windows_by_hand(lib, x, w, b):
    """A convolution as sums over the places of its window."""
    h, v = x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1
    y = b
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            y = y + lib.np.einsum("nhwc,co->nhwo", x[:, i : i + h, j : j + v], w[i, j])
    return y


def one_token(lib, q, k, v):
    scores = lib.np.einsum("bhd,bthd->bht", q, k) / np.sqrt(q.shape[-1]).astype(q.dtype)
    return lib.np.einsum("bht,bthd->bhd", softmax(lib, scores), v)


def class_loss(lib, x, w, labels):
    def loss(x, w):
        scores = x @ w
        return (lib.special.logsumexp(scores, -1) - scores[lib.np.arange(x.shape[0]), labels]).mean()

    return lib.root.value_and_grad(loss, (0, 1))(x, w)


def lenet_arguments(draw, n):
    side = 16 * 4 * 4
    return (
        draw(n, 28, 28, 1), draw(5, 5, 1, 6), draw(6), draw(5, 5, 6, 16), draw(16), draw(side, 120), draw(120), draw(120, 84), draw(84),
        draw(84, 10), draw(10),
    )  # fmt: skip


def mlp_arguments(draw, n, s):
    return draw(n, 3 * s), draw(3 * s, 2 * s), draw(2 * s), draw(2 * s, s), draw(s), draw(s, 10), draw(10)


def block_arguments(draw, n, side, c):
    return draw(n, side, side, 4 * c), draw(1, 1, 4 * c, c), draw(3, 3, c, c), draw(1, 1, c, 4 * c)


def token_arguments(draw, b, t, h):
    return draw(b, h, 64), draw(b, t, h, 64), draw(b, t, h, 64)


def class_arguments(draw, n, d, classes):
    return draw(n, d), draw(d, classes) / 8, RANDOM.integers(0, classes, n).astype(np.int32)


def gelu(lib, x):
    return lib.nn.gelu(x, approximate=False)


family("layers", "softmax", softmax, ((64, 10), (8, 8, 64, 64), (16, 8, 256, 256)), lambda draw, *s: draw(*s))
family("layers", "mlp", mlp, ((8, 64), (8, 700), (64, 300)), mlp_arguments)
family("layers", "lenet", lenet, (1, 8, 64), lenet_arguments)
family("layers", "resnet block", resnet_block, ((2, 8, 8), (8, 14, 16), (8, 28, 32)), block_arguments)
family(
    "layers",
    "conv2d and bias",
    lambda lib, x, w, b: conv(lib, x, w) + b,
    ((4, 16, 3, 8), (8, 32, 3, 16), (8, 64, 16, 16)),
    lambda draw, n, s, c, o: (draw(n, s, s, c), draw(5, 5, c, o), draw(o)),
)
family(
    "layers",
    "windows by hand",
    windows_by_hand,
    ((4, 16, 3, 8), (8, 32, 3, 16), (8, 64, 16, 16)),
    lambda draw, n, s, c, o: (draw(n, s, s, c), draw(3, 3, c, o), draw(o)),
)
family("layers", "attention of one token", one_token, ((1, 128, 4), (4, 512, 8), (8, 1024, 8)), token_arguments)
family("layers", "cross entropy over classes, gradient", class_loss, ((16, 32, 500), (64, 64, 4000), (64, 64, 32000)), class_arguments)
family("layers", "gelu, exact", gelu, (1 << 12, 1 << 16, 1 << 21), lambda draw, n: (draw(n),))


# ---- statistics, finance, geometry ----


def azimuthal(lib, data, radius, bins):
    """Means over rings."""

    def ring(k):
        inside = (radius >= k * 0.05) & (radius < (k + 1) * 0.05)
        return lib.np.where(inside, data, 0).sum() / lib.np.maximum(inside.sum(), 1)

    return lib.root.vmap(ring)(bins)


def by_histogram(lib, data, radius):
    edges = lib.np.linspace(0, 1, 101).astype(data.dtype)
    return lib.np.histogram(radius, edges, weights=data)[0] / lib.np.maximum(lib.np.histogram(radius, edges)[0], 1)


def go_fast(lib, a):
    return a + lib.np.tanh(lib.np.diagonal(a)).sum()


def arc_distance(lib, theta_1, phi_1, theta_2, phi_2):
    t = lib.np.sin((theta_2 - theta_1) / 2) ** 2 + lib.np.cos(theta_1) * lib.np.cos(theta_2) * lib.np.sin((phi_2 - phi_1) / 2) ** 2
    return 2 * lib.np.arctan2(lib.np.sqrt(t), lib.np.sqrt(1 - t))


def k_means(lib, x, centres):
    distances = ((x[:, None, :] - centres[None]) ** 2).sum(-1)
    nearest = distances.argmin(1)
    sums = lib.ops.segment_sum(x, nearest, centres.shape[0])
    counts = lib.ops.segment_sum(lib.np.ones(x.shape[0], x.dtype), nearest, centres.shape[0])
    return sums / lib.np.maximum(counts, 1)[:, None]


def bilinear(lib, image, x, y):
    i, j = lib.np.floor(x).astype("int32"), lib.np.floor(y).astype("int32")
    u, v = x - i, y - j
    top = image[i, j] * (1 - v) + image[i, j + 1] * v
    return top * (1 - u) + (image[i + 1, j] * (1 - v) + image[i + 1, j + 1] * v) * u


def black_scholes(lib, spot, strike, time):
    sigma, rate = 0.3, 0.02
    spread = sigma * lib.np.sqrt(time)
    d1 = (lib.np.log(spot / strike) + (rate + sigma * sigma / 2) * time) / spread
    d2, discounted = d1 - spread, strike * lib.np.exp(-rate * time)

    def below(x):
        return 0.5 * (1 + lib.special.erf(x / np.sqrt(2).item()))

    call = spot * below(d1) - discounted * below(d2)
    return call, call - spot + discounted


def three_way(lib, x, y):
    return lib.np.where(x > 0.5, x * y, lib.np.where(x < -0.5, x - y, y))


def hessian(lib, x, a):
    return lib.root.hessian(lambda x: (lib.np.sin(a @ x) ** 2).sum() + (x**4).sum())(x)


def likelihood(lib, x, y, scale):
    def negative(scale):
        apart = ((x[:, None] - x[None]) ** 2).sum(-1)
        k = lib.np.exp(-apart / (2 * scale * scale)) + 0.1 * lib.np.eye(x.shape[0], dtype=x.dtype)
        factor = lib.np.linalg.cholesky(k)
        z = lib.module("scipy.linalg").solve_triangular(factor, y, lower=True)
        return 0.5 * (z @ z) + lib.np.log(lib.np.diagonal(factor)).sum()

    return lib.root.value_and_grad(negative)(scale)


def ring_arguments(draw, n, bins):
    return draw(n), np.abs(draw(n)), np.arange(bins, dtype=np.int32)


def image_arguments(draw, side, n):
    return draw(side, side), *((np.abs(draw(n)) * 1e6 % (side - 2)).astype(draw(1).dtype) for _ in range(2))


def option_arguments(draw, n):
    return tuple(np.abs(draw(n)) + 0.5 for _ in range(3))


def segment_arguments(draw, n, d, segments):
    return draw(n, d), np.sort(RANDOM.integers(0, segments, n)).astype(np.int32), np.zeros((segments, d), draw(1).dtype)


def scale_arguments(draw, n):
    return draw(n, 3), draw(n), np.asarray(1.3, draw(1).dtype)


LINES = (1 << 12, 1 << 16, 1 << 20)
family("statistics", "means over rings", azimuthal, ((1 << 10, 20), (1 << 14, 40), (1 << 17, 100)), ring_arguments)
family("statistics", "weighted histogram", by_histogram, LINES, lambda draw, n: (draw(n), np.abs(draw(n)) % 1))
family("statistics", "go_fast", go_fast, (60, 500, 2000), lambda draw, n: (draw(n, n),))
family("statistics", "arc distance", arc_distance, LINES, lambda draw, n: tuple(draw(n) for _ in range(4)))
family("statistics", "clipped sum", lambda lib, a, b, c: lib.np.clip(a, -1, 1) * 4 + b * 3 + c, LINES, lambda draw, n: (draw(n), draw(n), draw(n)))
family("statistics", "k-means step", k_means, ((500, 2, 4), (4000, 8, 16), (20000, 16, 32)), lambda draw, n, d, k: (draw(n, d), draw(k, d)))
family("statistics", "bilinear sampling", bilinear, ((64, 1 << 10), (256, 1 << 16), (1024, 1 << 18)), image_arguments)
family(
    "statistics",
    "segment_sum of short rows",
    lambda lib, x, s, zero: lib.ops.segment_sum(x, s, zero.shape[0]),
    ((1000, 4, 50), (20000, 8, 1000), (100000, 3, 5000)),
    segment_arguments,
)
family("statistics", "scatter of rows", lambda lib, x, s, zero: zero.at[s].add(x), ((500, 64, 100), (4000, 128, 1000), (20000, 64, 500)), segment_arguments)
family("statistics", "Black-Scholes", black_scholes, LINES, option_arguments)
family("statistics", "three-way where", three_way, ((64, 64), (512, 512), (2000, 1000)), lambda draw, *s: (draw(*s), draw(*s)))
family("statistics", "Hessian", hessian, (8, 20, 100), lambda draw, n: (draw(n), draw(n, n)))
family("statistics", "likelihood of a Gaussian process, gradient", likelihood, (40, 150, 300), scale_arguments, tolerance=1e-2)
family("statistics", "svd", lambda lib, x: lib.np.linalg.svd(x, compute_uv=False), ((20, 10), (200, 100), (400, 300)), lambda draw, m, n: (draw(m, n),))


# ---- oceans and atmospheres ----

DENSITY = (
    (9.998395e02, 6.7739e-02, -9.0823e-03, 1.0016e-04, -1.1204e-06, 6.5363e-09),
    (8.2463e-01, -4.0894e-03, 7.6408e-05, -8.2457e-07, 5.3875e-09),
    (-5.7243e-03, 1.0221e-04, -1.6542e-06),
)
BULK = (
    (1.965221e04, 1.484206e02, -2.327106, 1.360478e-02, -5.155291e-05),
    (5.46747e01, -6.03476e-01, 1.0998e-02, -6.1671e-05),
    (7.9441e-02, 1.6484e-02, -5.3009e-04),
)


def powers(coefficients, t):
    return functools.reduce(lambda y, c: y * t + c, reversed(coefficients))


def equation_of_state(lib, salt, temperature, pressure):
    """Density by a polynomial at the surface and a secant bulk modulus beneath, and its slopes by differences of the two."""
    root = lib.np.sqrt(salt)
    surface = powers(DENSITY[0], temperature) + salt * (powers(DENSITY[1], temperature) + root * powers(DENSITY[2], temperature) + 4.8314e-04 * salt)
    bulk = powers(BULK[0], temperature) + salt * (powers(BULK[1], temperature) + root * powers(BULK[2], temperature))
    first = (
        3.2398
        + temperature * (1.4371e-03 + temperature * (1.1609e-04 - 5.7790e-07 * temperature))
        + salt * (2.2838e-03 - 1.0981e-05 * temperature + 1.9107e-04 * root)
    )
    second = 8.5093e-05 - 6.1229e-06 * temperature + 5.2787e-08 * temperature**2 + salt * (-9.9348e-07 + 2.0816e-08 * temperature)
    whole = bulk + pressure * (first + pressure * second)
    return surface / (1 - pressure / whole)


def isoneutral(lib, temperature, salt, depth, mask):
    """Slopes of surfaces of equal density between the cells, tapered where they are steep, and the mixing along them."""
    np_ = lib.np
    east = (temperature[1:] - temperature[:-1]) * mask[1:] * mask[:-1]
    east_salt = (salt[1:] - salt[:-1]) * mask[1:] * mask[:-1]
    down = (temperature[:, :, 1:] - temperature[:, :, :-1]) / (depth[1:] - depth[:-1]) * mask[:, :, 1:]
    down_salt = (salt[:, :, 1:] - salt[:, :, :-1]) / (depth[1:] - depth[:-1]) * mask[:, :, 1:]
    alpha, beta = -0.2 - 0.01 * temperature, 0.8 - 0.002 * salt
    total, weights = 0, 0
    for shift in (0, 1):
        a, b = alpha[shift : shift - 1 or None], beta[shift : shift - 1 or None]
        across = a * east + b * east_salt
        for level in (0, 1):
            x = slice(shift, shift - 1 or None)
            steep = a[:, :, level : level - 1 or None] * down[x] + b[:, :, level : level - 1 or None] * down_salt[x]
            slope = -across[:, :, level : level - 1 or None] / np_.minimum(-1e-3, steep - 0.5)
            taper = 0.5 * (1 + np_.tanh((0.4 - np_.abs(slope)) / 0.1))
            total = total + taper * slope * down[x] * 1000
            weights = weights + taper * slope * slope
    flux = total + weights * (east[:, :, 1:] + east[:, :, :-1])
    return flux[1:] - flux[:-1], weights


def kinetic_energy(lib, tke, u, buoyancy, mixing):
    """Production and dissipation of turbulent energy, length scales limited in both directions, and fluxes with a superbee limiter."""
    np_ = lib.np
    root = np_.sqrt(np_.maximum(0, tke))
    length = np_.sqrt(2.0) * root / np_.sqrt(np_.maximum(1e-12, buoyancy))
    length = np_.minimum(length, np_.roll(length, 1, -1) + 0.4)
    length = np_.maximum(np_.minimum(length, np_.roll(length, -1, -1) + 0.4), 1e-3)
    viscosity = np_.minimum(10, 0.1 * length * root)
    richardson = np_.maximum(0, buoyancy / np_.maximum(1e-8, u * u))
    prandtl = np_.maximum(1, np_.minimum(10, 6.6 * richardson))
    forcing = viscosity * u * u - viscosity / prandtl * buoyancy + mixing - 0.7 * root * tke / length
    down, here, up = tke[..., :-3], tke[..., 1:-2], tke[..., 2:-1]
    far, flow = tke[..., 3:], u[..., 1:-2]
    step = up - here
    ratio = np_.where(flow > 0, here - down, far - up) / np_.where(np_.abs(step) < 1e-12, 1e-12, step)
    limit = np_.maximum(0, np_.maximum(np_.minimum(1, 2 * ratio), np_.minimum(2, ratio)))
    flux = flow * (up + here) / 2 - np_.abs(flow) * ((1 - limit) + np_.abs(flow * 0.1) * limit) * step / 2
    return tke + 0.01 * forcing, viscosity, flux


def limited_diffusion(lib, field, weight):
    """A Laplacian of a Laplacian whose fluxes stop where they would go uphill."""
    np_ = lib.np
    laplacian = 4 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    along = laplacian[1:, 1:-1] - laplacian[:-1, 1:-1]
    along = np_.where(along * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, along)
    across = laplacian[1:-1, 1:] - laplacian[1:-1, :-1]
    across = np_.where(across * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, across)
    return field[2:-2, 2:-2] - weight * (along[1:] - along[:-1] + across[:, 1:] - across[:, :-1])


def water(draw, *shape):
    return np.abs(draw(*shape)) + 33, draw(*shape) + 12, np.abs(draw(*shape)) * 100


def layered(draw, *shape):
    return draw(*shape) + 12, draw(*shape) + 33, np.arange(shape[-1]).astype(draw(1).dtype) * 10, (draw(*shape) > -1).astype(draw(1).dtype)


def energies(draw, *shape):
    return np.abs(draw(*shape)), draw(*shape), np.abs(draw(*shape)), draw(*shape)


CELLS = ((16, 16, 16), (26, 24, 26), (64, 32, 32))
family("oceans", "equation of state", equation_of_state, CELLS, water)
family("oceans", "isoneutral mixing", isoneutral, CELLS, layered)
family("oceans", "turbulent kinetic energy", kinetic_energy, CELLS, energies)
family(
    "oceans", "limited diffusion", limited_diffusion, ((68, 68), (260, 260, 8), (132, 132, 60)), lambda draw, h, w, *z: (draw(h, w, *z), draw(h - 4, w - 4, *z))
)
