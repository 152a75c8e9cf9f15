"""What a call costs once it is compiled and its data is there: Ferrax beside JAX, in one process.

    cargo xtask bench steady                      every row, a few seconds each at most
    cargo xtask bench steady moves complex        rows whose group or text contains one of these
    python benches/steady.py --rounds 15 roll     where the environment has both libraries

Both get the same inputs and take turns within each round, each after a pause and a call that does not count; a figure is the median over
rounds, results are compared. A row is also given
as a fraction of the machine's own limit, measured in the same run: the bytes it must move at the speed of a copy of that working set, or
the floating-point operations it must do at the rate of the best large product, whichever takes longer. benches/README.md says more.
"""

import argparse
import gc
import importlib
import os
import statistics
import sys
import threading
import time

import numpy as np

ROWS = []
RANDOM = np.random.default_rng(0)


PAUSE = 0.005  # seconds before each turn: threads of the other library go on looking for work for some time, and take a core


class Library:
    """One library under measurement: its root, its numpy, and the modules that rows ask for."""

    def __init__(self, name):
        self.name = name
        self.root = importlib.import_module(name)
        self.np = importlib.import_module(name + ".numpy")
        self.lax = importlib.import_module(name + ".lax")
        self.nn = importlib.import_module(name + ".nn")
        self.ops = importlib.import_module(name + ".ops")
        self.random = importlib.import_module(name + ".random")
        self.special = importlib.import_module(name + ".scipy.special")


def row(group, text, *args, bytes=None, flops=0, dtype="float32", tolerance=1e-3):
    """Registers `make(lib)`, which gives a function of `args` (NumPy arrays). `bytes` defaults to those of arguments and results."""

    def register(make):
        ROWS.append(dict(group=group, text=text, args=args, bytes=bytes, flops=flops, dtype=dtype, tolerance=tolerance, make=make))
        return make

    return register


def plain(group, text, f, *args, **facts):
    """A row whose function is `f(lib, *args)`."""
    row(group, text, *args, **facts)(lambda lib: lambda *a: f(lib, *a))


def normal(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def pairs(*shape):
    return (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)


def below(n, *shape):
    return RANDOM.integers(0, n, shape).astype(np.int32)


# ---- chains of pointwise operations ----


def polynomial(lib, x):
    y = x
    for c in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
        y = y * x + c
    return y


def gelu_like(lib, x):
    return 0.5 * x * (1 + lib.np.tanh(0.79788 * (x + 0.044715 * x * x * x)))


for n in (1 << 10, 1 << 14, 1 << 18, 1 << 21):
    x = normal(n)
    plain("caches", f"x * 2 + 1, {n}", lambda lib, x: x * 2 + 1, x)
    plain("caches", f"polynomial of 7 steps, {n}", polynomial, x, flops=14 * n)
    plain("caches", f"sum, {n}", lambda lib, x: x.sum(), x, bytes=4 * n)
plain("caches", "x * 2 + 1, 16M", lambda lib, x: x * 2 + 1, normal(1 << 24))
plain("chains", "gelu (tanh), 262144", gelu_like, normal(1 << 18))
plain("chains", "x + x.T, 1000 x 1000", lambda lib, x: x + x.T, normal(1000, 1000))
plain("chains", "(x + x*x + 3) * (x*x + x*x.T), 3000 x 3000", lambda lib, x: (x + x * x + 3) * (x * x + x * x.T), normal(3000, 3000))

# ---- moves ----

square = normal(512, 512)
plain("moves", "copy (x + 0 of i32)", lambda lib, x: x + 1, below(9, 512, 512))
plain("moves", "roll axis 0, 512 x 512", lambda lib, x: lib.np.roll(x, 1, 0), square)
plain("moves", "roll axis 1, 512 x 512", lambda lib, x: lib.np.roll(x, 1, 1), square)
plain("moves", "pad 1, 512 x 512", lambda lib, x: lib.np.pad(x, 1), square)
plain("moves", "pad reflect, 512 x 512", lambda lib, x: lib.np.pad(x, 2, mode="reflect"), square)
plain("moves", "concatenate axis 0, 512 x 512", lambda lib, x: lib.np.concatenate([x, x]), square)
plain("moves", "concatenate axis 1, 512 x 512", lambda lib, x: lib.np.concatenate([x, x], 1), square)
plain("moves", "concatenate of 8, 64 x 512", lambda lib, *x: lib.np.concatenate(x), *(normal(64, 512) for _ in range(8)))
plain("moves", "concatenate a, exp a, 512 x 512", lambda lib, x: lib.np.concatenate([x, lib.np.exp(x)], 1), square)
plain("moves", "stack 0 of 2, 512 x 512", lambda lib, x: lib.np.stack([x, x * 2]), square)
plain("moves", "stack -1 of 2, 700 x 700", lambda lib, x: lib.np.stack([x, x * 2], -1), normal(700, 700))
plain("moves", "stack -1 of 3, 512 x 512", lambda lib, x: lib.np.stack([x, x * 2, x + 1], -1), square)
plain("moves", "flip, 512 x 512", lambda lib, x: x[:, ::-1] + 0, square)
plain("moves", "transpose, 512 x 512", lambda lib, x: x.T + 0, square)
plain("moves", "transpose (0, 2, 1), 64 x 64 x 64", lambda lib, x: x.transpose(0, 2, 1) * 1.5, normal(64, 64, 64))
plain("moves", "x[::2, ::2], 1024 x 1024", lambda lib, x: x[::2, ::2] * 1.5, normal(1024, 1024))
plain("moves", "x[1:] + x[:-1], 512 x 512", lambda lib, x: x[1:] + x[:-1], square)
plain("moves", "x[:, 1:] + x[:, :-1], 512 x 512", lambda lib, x: x[:, 1:] + x[:, :-1], square)
plain("moves", "tile 2 x 2, 256 x 256", lambda lib, x: lib.np.tile(x, (2, 2)), normal(256, 256))
plain("moves", "repeat 2, 256 x 512", lambda lib, x: lib.np.repeat(x, 2, 1), normal(256, 512))
plain("moves", "x.at[1:-1, 1:-1].set, 512 x 512", lambda lib, x, y: x.at[1:-1, 1:-1].set(y), square, normal(510, 510))


def five_rolled(lib, x):
    r = lib.np.roll
    return (r(x, 1, 0) + r(x, -1, 0) + r(x, 1, 1) + r(x, -1, 1) - 4 * x) * 0.1 + x


def five_sliced(lib, x):
    inner = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    return x + 0.1 * lib.np.pad(inner, 1)


def nine_rolled(lib, x):
    r = lib.np.roll
    return sum(r(r(x, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1)) / 9


def seven_rolled(lib, x):
    r = lib.np.roll
    return sum(r(x, s, k) for k in range(3) for s in (1, -1)) - 6 * x


def life(lib, x):
    r = lib.np.roll
    n = sum(r(r(x, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((n == 3) | ((x == 1) & (n == 2))).astype(x.dtype)


plain("stencils", "five points by roll, 512 x 512", five_rolled, square)
plain("stencils", "five points by slices and pad, 512 x 512", five_sliced, square)
plain("stencils", "nine points by roll, 512 x 512", nine_rolled, square)
plain("stencils", "seven points by roll, 64^3", seven_rolled, normal(64, 64, 64))
plain("stencils", "game of life, 512 x 512 i32", life, below(2, 512, 512))
plain("stencils", "gradient of five points by slices, 512 x 512", lambda lib, x: lib.root.grad(lambda x: (five_sliced(lib, x) ** 2).sum())(x), square)

# ---- complex numbers ----

z = pairs(512, 512)
plain("complex", "c * c, 512 x 512", lambda lib, z: z * z, z)
plain("complex", "c * c + c, 512 x 512", lambda lib, z: z * z + z, z)
plain("complex", "abs, 512 x 512", lambda lib, z: lib.np.abs(z), z)
plain("complex", "exp, 512 x 512", lambda lib, z: lib.np.exp(z), z)
plain("complex", "a * b summed, 512 x 512", lambda lib, z: (z * z).sum(), z)
plain("complex", "real + imag, 512 x 512", lambda lib, z: z.real + z.imag, z)


def mandelbrot(lib, c):
    def step(_, state):
        z, n = state
        z = z * z + c
        return z, n + (lib.np.abs(z) < 2)

    return lib.lax.fori_loop(0, 20, step, (c, lib.np.zeros(c.shape, "int32")))[1]


plain("complex", "mandelbrot, 20 steps, 256 x 256", mandelbrot, pairs(256, 256))

# ---- Fourier transforms ----


def fourier(text, f, x, n, real=False):
    """A row of transforms of length n: 5 n log2 n operations each, half of that where they are real."""
    rows = max(x.size // n, 1)
    plain("fourier", text, f, x, flops=int(rows * n * np.log2(n) * (2.5 if real else 5)))


fourier("fft, 64 of 1024", lambda lib, x: lib.np.fft.fft(x), pairs(64, 1024), 1024)
fourier("ifft, 64 of 1024", lambda lib, x: lib.np.fft.ifft(x), pairs(64, 1024), 1024)
fourier("rfft, 64 of 1024", lambda lib, x: lib.np.fft.rfft(x), normal(64, 1024), 1024, real=True)
fourier("irfft, 64 of 1024", lambda lib, x: lib.np.fft.irfft(x), pairs(64, 513), 1024, real=True)
fourier("fft along axis 0, 1024 x 64", lambda lib, x: lib.np.fft.fft(x, axis=0), pairs(1024, 64), 1024)
fourier("fft, 1024", lambda lib, x: lib.np.fft.fft(x), pairs(1024), 1024)
fourier("fft, 2^20", lambda lib, x: lib.np.fft.fft(x), pairs(1 << 20), 1 << 20)
fourier("rfft, 2^20", lambda lib, x: lib.np.fft.rfft(x), normal(1 << 20), 1 << 20, real=True)
fourier("fft, 1000", lambda lib, x: lib.np.fft.fft(x), pairs(1000), 1000)
fourier("fft, 64 of 1009, a prime", lambda lib, x: lib.np.fft.fft(x), pairs(64, 1009), 1009)
fourier("fft, 10007, a prime", lambda lib, x: lib.np.fft.fft(x), pairs(10007), 10007)
fourier("fft2, 512 x 512", lambda lib, x: lib.np.fft.fft2(x), pairs(512, 512), 512 * 512)
fourier("fftn, 64^3", lambda lib, x: lib.np.fft.fftn(x), pairs(64, 64, 64), 64**3)
fourier("low-pass of a signal, 2^18", lambda lib, x: lib.np.fft.irfft(lib.np.fft.rfft(x) * 0.5), normal(1 << 18), 1 << 18, real=True)
plain("fourier", "gradient of |fft|^2, 64 of 1024", lambda lib, x: lib.root.grad(lambda x: (lib.np.abs(lib.np.fft.fft(x)) ** 2).sum())(x), pairs(64, 1024))

# ---- indexing ----

image, i, j, flat = normal(700, 700), below(700, 490000), below(700, 490000), below(490000, 490000)
plain("indexing", "a[i, j], 490000", lambda lib, a, i, j: a[i, j], image, i, j)
plain("indexing", "a.ravel()[i], 490000", lambda lib, a, i: a.ravel()[i], image, flat)
plain("indexing", "take clip, 490000", lambda lib, a, i: lib.np.take(a.ravel(), i, mode="clip"), image, flat)
plain("indexing", "rows of 64, 20000", lambda lib, a, i: a[i], normal(5000, 64), below(5000, 20000))
plain("indexing", "rows of 4, 100000", lambda lib, a, i: a[i], normal(5000, 4), below(5000, 100000))
plain("indexing", "take_along_axis, 512 x 512", lambda lib, a, i: lib.np.take_along_axis(a, i, 1), square, below(512, 512, 512))
plain("indexing", "bincount, 490000 into 700", lambda lib, i: lib.np.bincount(i, length=700), i)
plain("indexing", "scatter-add of scalars, 490000 into 490000", lambda lib, a, i: lib.np.zeros(490000).at[i].add(a.ravel()), image, flat)
plain("indexing", "scatter-add, one index", lambda lib, a, i: lib.np.zeros(10).at[i].add(a.ravel()), image, 0 * flat)
plain("indexing", "segment_sum, 490000 into 1000", lambda lib, a, i: lib.ops.segment_sum(a.ravel(), i, 1000), image, i)
plain("indexing", "segment_sum of rows of 32, 20000", lambda lib, a, i: lib.ops.segment_sum(a, i, 1000), normal(20000, 32), below(1000, 20000))
plain("indexing", "segment_max, 490000 into 1000", lambda lib, a, i: lib.ops.segment_max(a.ravel(), i, 1000), image, i)
plain("indexing", "a.at[i].set, 490000", lambda lib, a, i: a.ravel().at[i].set(1.0), image, flat)


def bilinear(lib, a, y, x):
    jnp = lib.np
    i, j = jnp.floor(y).astype("int32"), jnp.floor(x).astype("int32")
    u, v = y - i, x - j
    return (1 - u) * ((1 - v) * a[i, j] + v * a[i, j + 1]) + u * ((1 - v) * a[i + 1, j] + v * a[i + 1, j + 1])


plain("indexing", "bilinear sampling, 512 x 512", bilinear, square, 510 * RANDOM.random((512, 512), np.float32), 510 * RANDOM.random((512, 512), np.float32))
plain("indexing", "embedding gradient, 20000 rows of 64", lambda lib, e, i: lib.root.grad(lambda e: (e[i] ** 2).sum())(e), normal(5000, 64), below(5000, 20000))

# ---- loops ----


def loop(n, body):
    return lambda lib, *x: lib.lax.fori_loop(0, n, lambda _, s: body(lib, *s), x)


plain("loops", "100 x s*.9+1, 512 x 512", loop(100, lambda lib, s: (s * 0.9 + 1,)), square, flops=100 * 2 * 512 * 512)
plain("loops", "20 x roll, 512 x 512", loop(20, lambda lib, s: (lib.np.roll(s, 1, 0),)), square, bytes=40 << 20)
plain("loops", "20 x five points by roll, 512 x 512", loop(20, lambda lib, s: (five_rolled(lib, s),)), square)
plain("loops", "1000 x scalar a*b+c", loop(1000, lambda lib, a, b: (a * 0.999 + b, b * 0.5 + a * 0.1)), np.float32(1), np.float32(2))
plain("loops", "1000 x cross of 3-vectors", loop(1000, lambda lib, a, b: (a + 0.01 * lib.np.cross(a, b), b)), normal(3), normal(3))
plain("loops", "1000 x 3 x 3 product", loop(1000, lambda lib, m, v: (m, (m @ v) * 0.5 + 1)), normal(3, 3), normal(3))


def lorenz(lib, s):
    def f(s):
        x, y, z = s
        return lib.np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    def step(_, s):
        a = f(s)
        b = f(s + 0.005 * a)
        c = f(s + 0.005 * b)
        d = f(s + 0.01 * c)
        return s + 0.01 / 6 * (a + 2 * b + 2 * c + d)

    return lib.lax.fori_loop(0, 200, step, s)


plain("loops", "200 x RK4 of Lorenz", lorenz, np.ones(3, np.float32), tolerance=1e-1)


def newton(lib, x):
    return lib.root.vmap(lambda a: lib.lax.while_loop(lambda s: abs(s * s - a) > 1e-4 * a, lambda s: 0.5 * (s + a / s), a))(x)


plain("loops", "vmapped while (Newton), 4096", newton, RANDOM.random(4096, np.float32) + 1)


def rnn(lib, w, u, xs):
    def step(h, x):
        h = lib.np.tanh(h @ w + x @ u)
        return h, h

    return lib.lax.scan(step, lib.np.zeros((xs.shape[1], w.shape[0])), xs)[1]


for h in (16, 64, 256):
    args = 0.1 * normal(h, h), 0.1 * normal(h, h), normal(50, 8, h)
    plain("loops", f"RNN, hidden {h}, 50 steps", rnn, *args, flops=2 * 2 * 50 * 8 * h * h)
    plain("loops", f"RNN gradient, hidden {h}", lambda lib, w, u, x: lib.root.grad(lambda w: (rnn(lib, w, u, x) ** 2).sum())(w), *args)

# ---- scalar functions ----

positive = RANDOM.random(1 << 16, np.float32) * 0.98 + 0.01
for name in "sqrt exp log log1p expm1 sin cos tanh arctan".split():
    plain("functions", f"{name}, 65536", lambda lib, x, name=name: getattr(lib.np, name)(x), positive)
for name in "erf erfc erfinv expit gammaln".split():
    plain("functions", f"{name}, 65536", lambda lib, x, name=name: getattr(lib.special, name)(x), positive)

# ---- reductions ----

wide = normal(512, 4096)
plain("reductions", "softmax, 512 x 4096", lambda lib, x: lib.nn.softmax(x), wide)
plain("reductions", "log_softmax, 512 x 4096", lambda lib, x: lib.nn.log_softmax(x), wide)
plain("reductions", "logsumexp, 512 x 4096", lambda lib, x: lib.special.logsumexp(x, axis=-1), wide)
plain("reductions", "log_softmax gradient, 512 x 4096", lambda lib, x: lib.root.grad(lambda x: lib.nn.log_softmax(x)[:, 0].sum())(x), wide)
plain("reductions", "sum axis 0, 512 x 4096", lambda lib, x: x.sum(0), wide)
plain("reductions", "sum axis 1, 512 x 4096", lambda lib, x: x.sum(1), wide)
plain("reductions", "max all, 512 x 4096", lambda lib, x: x.max(), wide)
plain("reductions", "var axis 1, 512 x 4096", lambda lib, x: x.var(1), wide)


def layer_norm(lib, x, g):
    m = x.mean(-1, keepdims=True)
    return (x - m) * lib.lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5) * g


plain("reductions", "layer norm, 2048 x 512", layer_norm, normal(2048, 512), normal(512))
plain("reductions", "all-pairs distances, 1000 x 3", lambda lib, x: ((x[:, None] - x[None]) ** 2).sum(-1), normal(1000, 3))
plain("reductions", "cumsum, 512 x 4096", lambda lib, x: x.cumsum(1), wide)
plain("reductions", "top_k 8, 512 x 4096", lambda lib, x: lib.lax.top_k(x, 8)[0], wide)
plain("reductions", "sort, 512 x 512", lambda lib, x: lib.np.sort(x, 1), square)

# ---- products and convolutions ----

for n in (32, 128, 512, 768):
    plain("matmul", f"{n} x {n} f32", lambda lib, a, b: a @ b, normal(n, n), normal(n, n), flops=2 * n**3)
plain("matmul", "matvec 2048", lambda lib, a, b: a @ b, normal(2048, 2048), normal(2048), flops=2 * 2048**2)
plain("matmul", "vector by matrix 2048", lambda lib, a, b: b @ a, normal(2048, 2048), normal(2048), flops=2 * 2048**2)
plain("matmul", "batch of 4096, 8 x 8", lambda lib, a, b: a @ b, normal(4096, 8, 8), normal(4096, 8, 8), flops=2 * 4096 * 512)
plain("matmul", "relu(a @ b + c), 512", lambda lib, a, b, c: lib.nn.relu(a @ b + c), square, normal(512, 512), normal(512), flops=2 * 512**3)


def conv(lib, x, w):
    return lib.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


images, weights = normal(8, 32, 32, 32), 0.1 * normal(3, 3, 32, 32)
plain("conv", "3 x 3, 8 x 32 x 32 x 32", conv, images, weights, flops=2 * 8 * 32 * 32 * 9 * 32 * 32)
plain(
    "conv", "weight gradient", lambda lib, x, w: lib.root.grad(lambda w: (conv(lib, x, w) ** 2).sum())(w), images, weights, flops=4 * 8 * 32 * 32 * 9 * 32 * 32
)
plain(
    "conv", "image gradient", lambda lib, x, w: lib.root.grad(lambda x: (conv(lib, x, w) ** 2).sum())(x), images, weights, flops=4 * 8 * 32 * 32 * 9 * 32 * 32
)


def strided(lib, x, w):
    return lib.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


wide_images, wide_weights = normal(4, 112, 112, 3), 0.1 * normal(7, 7, 3, 64)
for text, of in (("weight", 1), ("image", 0)):
    plain(
        "conv",
        f"{text} gradient, 7 x 7 by steps of 2",
        lambda lib, x, w, of=of: lib.root.grad(lambda x, w: (strided(lib, x, w) ** 2).sum(), of)(x, w),
        wide_images,
        wide_weights,
        flops=4 * 4 * 56 * 56 * 49 * 3 * 64,
    )

# ---- Fourier transforms ----

plain("fft", "1024 of 1024", lambda lib, x: lib.np.fft.fft(x), pairs(1024, 1024))
plain("fft", "1024 of 1024 along axis 0", lambda lib, x: lib.np.fft.fft(x, axis=0), pairs(1024, 1024))
plain("fft", "real, 1024 of 1024 along axis 0", lambda lib, x: lib.np.fft.rfft(x, axis=0), normal(1024, 1024))
plain("fft", "1024 x 1024", lambda lib, x: lib.np.fft.fft2(x), pairs(1024, 1024))
plain("fft", "2^20", lambda lib, x: lib.np.fft.fft(x), pairs(1 << 20))
plain("fft", "100003, a prime", lambda lib, x: lib.np.fft.fft(x), pairs(100003))

# ---- simulations and training steps ----


def wave(lib, u, v):
    def step(_, s):
        u, v = s
        v = v + 0.1 * (lib.np.roll(u, 1, 0) + lib.np.roll(u, -1, 0) + lib.np.roll(u, 1, 1) + lib.np.roll(u, -1, 1) - 4 * u)
        return u + 0.1 * v, v

    return lib.lax.fori_loop(0, 20, step, (u, v))


def sinkhorn(lib, k):
    def step(_, s):
        u, v = s
        u = 1 / (k @ v)
        return u, 1 / (k.T @ u)

    return lib.lax.fori_loop(0, 20, step, (lib.np.ones(k.shape[0]), lib.np.ones(k.shape[1])))


def edit(lib, a, b):
    def line(previous, x):
        def cell(left, t):
            y, up, diagonal = t
            best = lib.np.minimum(lib.np.minimum(left, up) + 1, diagonal + (x != y))
            return best, best

        last, new = lib.lax.scan(cell, previous[0] + 1, (b, previous[1:], previous[:-1]))
        return lib.np.concatenate([previous[:1] + 1, new]), last

    return lib.lax.scan(line, lib.np.arange(b.shape[0] + 1), a)[0]


plain("simulations", "wave equation, 20 steps, 512 x 512", wave, square, 0 * square)
plain(
    "simulations",
    "n-body forces, 512",
    lambda lib, x: ((x[:, None] - x) / (((x[:, None] - x) ** 2).sum(-1, keepdims=True) + 0.1) ** 1.5).sum(1),
    normal(512, 3),
)
plain("simulations", "optimal transport, 20 steps, 300 x 300", sinkhorn, np.exp(-RANDOM.random((300, 300), np.float32)))
plain("simulations", "edit distance, 60 x 60", edit, below(4, 60), below(4, 60))
plain(
    "simulations",
    "page rank step, 100000 edges",
    lambda lib, r, s, t: lib.ops.segment_sum(r[s], t, 5000) * 0.85 + 0.15,
    normal(5000),
    below(5000, 100000),
    below(5000, 100000),
)


@row("training", "MLP step, batch 128, 256 wide", normal(128, 256), *(0.05 * normal(256, 256) for _ in range(3)))
def mlp(lib):
    def loss(w, x):
        for m in w[:-1]:
            x = lib.nn.relu(x @ m)
        return ((x @ w[-1]) ** 2).mean()

    def step(x, *w):
        return [m - 0.01 * g for m, g in zip(w, lib.root.grad(loss)(list(w), x), strict=True)]

    return step


@row("training", "Adam over 50 tensors of 4096", *(normal(4096) for _ in range(150)))
def adam(lib):
    def step(*t):
        out = []
        for p, m, v in zip(t[:50], t[50:100], t[100:], strict=True):
            m = 0.9 * m + 0.1 * p
            v = 0.99 * v + 0.01 * p * p
            out += [p - 0.01 * m / (lib.np.sqrt(abs(v)) + 1e-8), m, v]
        return out

    return step


# ---- measuring ----


def ready(out):
    if isinstance(out, (list, tuple)):
        for o in out:
            ready(o)
    elif hasattr(out, "block_until_ready"):
        out.block_until_ready()
    return out


def leaves(out):
    return [x for o in out for x in leaves(o)] if isinstance(out, (list, tuple)) else [np.asarray(out)]


def differ(a, b, tolerance):
    """Where two results differ, in words; empty where they agree."""
    for x, y in zip(a, b, strict=True):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{x.dtype}{x.shape} is not {y.dtype}{y.shape}"
        scale = np.max(np.abs(y), initial=0, where=np.isfinite(y)) if y.size else 0
        if not np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return f"values differ by {np.nanmax(np.abs(x.astype(complex) - y)):.3g}"
    return ""


def measure(spec, libraries, rounds, clock):
    """{library: (seconds a call, seconds of the first)}, and the results."""
    fns, first, results = {}, {}, {}
    for lib in libraries:
        args = [ready(lib.np.asarray(a)) for a in spec["args"]]
        f = lib.root.jit(spec["make"](lib))
        start = time.perf_counter()
        results[lib.name] = ready(f(*args))
        first[lib.name] = time.perf_counter() - start
        fns[lib.name] = lambda f=f, args=args: ready(f(*args))
    start = time.perf_counter()
    for f in fns.values():
        f()
    once = (time.perf_counter() - start) / len(fns)
    calls = max(1, min(1000, int(0.03 / max(once, 1e-6))))
    times = {name: [] for name in fns}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, f in fns.items():
                time.sleep(PAUSE)
                f()
                start = clock()
                for _ in range(calls):
                    f()
                times[name].append((clock() - start) / calls)
    finally:
        gc.enable()
    return {name: (statistics.median(t), first[name]) for name, t in times.items()}, results


class Limits:
    """What this machine can do at best: bytes copied a second by working set, and floating-point operations a second by dtype."""

    def __init__(self):
        self.copies, self.rates = {}, {}

    def copy(self, working_set):
        """Bytes read and written a second by a copy of that many bytes in all, by one thread or by all, whichever is faster."""
        size = 1 << max(12, int(working_set - 1).bit_length())
        if size not in self.copies:
            self.copies[size] = max(self.timed(size, 1), self.timed(size, os.cpu_count() or 1) if size >= 1 << 20 else 0)
        return self.copies[size]

    @staticmethod
    def timed(size, threads):
        n = size // 2 // threads
        ends = [(np.ones(n, np.uint8), np.zeros(n, np.uint8)) for _ in range(threads)]
        repeats = max(1, (8 << 20) // size)

        def work(a, b):
            for _ in range(repeats):
                np.copyto(b, a)

        best = float("inf")
        for _ in range(7):
            workers = [threading.Thread(target=work, args=e) for e in ends[1:]]
            start = time.perf_counter()
            for w in workers:
                w.start()
            work(*ends[0])
            for w in workers:
                w.join()
            best = min(best, time.perf_counter() - start)
        return 2 * n * threads * repeats / best

    def rate(self, dtype):
        if dtype not in self.rates:
            a = np.ones((1024, 1024), dtype)
            best = float("inf")
            for _ in range(5):
                start = time.perf_counter()
                a @ a
                best = min(best, time.perf_counter() - start)
            self.rates[dtype] = 2 * 1024**3 / best
        return self.rates[dtype]

    def seconds(self, spec, results):
        moved = spec["bytes"] or sum(np.asarray(a).nbytes for a in spec["args"]) + sum(r.nbytes for r in results)
        return max(moved / self.copy(moved), spec["flops"] / self.rate(spec["dtype"]) if spec["flops"] else 0)


def time_text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"


def mean(ratios):
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


def table(groups, note):
    """What is kept of each group (ratio, ratio of first calls, text), as a table for documents."""
    lines = [["group", "rows", "JAX's time over ours", "slowest row", "first call"], ["---"] * 5]
    for group, rows in [*groups.items(), ("all", [row for kept in groups.values() for row in kept])]:
        slowest, _, text = min(rows)
        ratios = [f"{mean([row[k] for row in rows]):.2f}" for k in (0, 1)]
        lines.append([group, str(len(rows)), ratios[0], f"{text.replace('|', chr(92) + '|')}: {slowest:.2f}", ratios[1]])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + f"\n\n{note}\n"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("words", nargs="*", help="only rows whose group or text contains one of these")
    options.add_argument("--only", default="ferrax,jax", help="libraries, separated by commas")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--cpu", action="store_true", help="processor time of all threads in place of the clock's: for busy machines")
    options.add_argument("--markdown", metavar="FILE", help="write the groups as a table for a document, too")
    options = options.parse_args()
    libraries = [Library(name) for name in options.only.split(",")]
    clock = time.process_time if options.cpu else time.perf_counter
    versions = f"{', '.join(f'{lib.name} {lib.root.__version__}' for lib in libraries)}; numpy {np.__version__}; {os.cpu_count()} cores"
    print(versions)
    print(f"\n{'':58s} {'ferrax':>9s} {'jax':>9s} {'jax/ours':>9s} {'of limit':>8s} {'first':>8s} {'jax':>8s}")
    limits, ratios = Limits(), {}
    for spec in ROWS:
        name = f"{spec['group']}: {spec['text']}"
        if options.words and not any(w in name for w in options.words):
            continue
        try:
            figures, results = measure(spec, libraries, options.rounds, clock)
        except Exception as error:  # a row that cannot run must not hide the others
            print(f"{name:58s} {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
            continue
        out = {k: leaves(r) for k, r in results.items()}
        ours, theirs = figures.get("ferrax"), figures.get("jax")
        cells = [time_text(f[0]) if f else "-" for f in (ours, theirs)]
        ratio = theirs[0] / ours[0] if ours and theirs else None
        if ratio:
            ratios.setdefault(spec["group"], []).append((ratio, theirs[1] / ours[1], spec["text"]))
        share = limits.seconds(spec, next(iter(out.values()))) / ours[0] if ours else None
        firsts = [time_text(f[1]) if f else "-" for f in (ours, theirs)]
        wrong = differ(out["ferrax"], out["jax"], spec["tolerance"]) if ours and theirs else ""
        print(
            f"{name:58s} {cells[0]:>9s} {cells[1]:>9s} {f'{ratio:.2f}' if ratio else '-':>9s} {f'{share:.0%}' if share else '-':>8s} "
            f"{firsts[0]:>8s} {firsts[1]:>8s}{'  RESULTS: ' + wrong if wrong else ''}",
            flush=True,
        )
    for group, rows in ratios.items():
        print(f"{group + ', geometric mean of ' + str(len(rows)):58s} {'':9s} {'':9s} {mean([row[0] for row in rows]):9.2f}")
    if ratios:
        every = [row for rows in ratios.values() for row in rows]
        print(f"{'all, geometric mean of ' + str(len(every)):58s} {'':9s} {'':9s} {mean([row[0] for row in every]):9.2f}")
        print(f"{'first calls':58s} {'':9s} {'':9s} {mean([row[1] for row in every]):9.2f}")
    print("\ncopy, GB/s by working set: " + ", ".join(f"{k >> 10} kB {v / 1e9:.0f}" for k, v in sorted(limits.copies.items())))
    if limits.rates:
        print("products, Gflop/s: " + ", ".join(f"{k} {v / 1e9:.0f}" for k, v in limits.rates.items()))
    if options.markdown and ratios:
        with open(options.markdown, "w") as file:
            file.write(table(ratios, f"{versions}."))
    return 0


if __name__ == "__main__":
    sys.exit(main())
