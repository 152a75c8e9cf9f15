"""One operation, or a few that are one kernel or routine."""

import numpy as np

from workloads.registry import RANDOM, below, normal, pairs, plain

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

for n in (1 << 10, 1 << 14, 1 << 20):
    x = normal(n)
    plain("chains", f"exp(-x*x) * sin(x), {n}", lambda lib, x: lib.np.exp(-x * x) * lib.np.sin(x), x)
plain("chains", "where(x > 0, x, 0.1 * x), 262144", lambda lib, x: lib.np.where(x > 0, x, 0.1 * x), normal(1 << 18))
plain("chains", "clip, round, abs, sign, 262144", lambda lib, x: lib.np.sign(x) * lib.np.abs(lib.np.round(lib.np.clip(x, -1, 1) * 10)), normal(1 << 18))
plain("chains", "i32 // 7 % 5, 262144", lambda lib, x: x // 7 % 5, below(100000, 1 << 18))
plain("chains", "x ** 2.5, 262144", lambda lib, x: x**2.5, np.abs(normal(1 << 18)))
plain(
    "chains",
    "bf16 x * y + z, 262144",
    lambda lib, x, y, z: (x.astype("bfloat16") * y.astype("bfloat16") + z.astype("bfloat16")).astype("float32"),
    normal(1 << 18),
    normal(1 << 18),
    normal(1 << 18),
)
plain("chains", "f32 to i32 to f32, 262144", lambda lib, x: (x * 100).astype("int32").astype("float32"), normal(1 << 18))
plain("chains", "u8 image to f32, 1024 x 1024", lambda lib, x: x.astype("float32") / 255, below(255, 1024, 1024).astype(np.uint8))
plain("chains", "x > 0 and y < 1, 262144", lambda lib, x, y: (x > 0) & (y < 1), normal(1 << 18), normal(1 << 18))
plain("chains", "16M outputs of 64 MB, x + y", lambda lib, x, y: x + y, normal(1 << 24), normal(1 << 24))
plain("chains", "outer sum, 2048 x 2048", lambda lib, x, y: x[:, None] + y, normal(2048), normal(2048))
plain("chains", "arctan2, 65536", lambda lib, x, y: lib.np.arctan2(x, y), normal(1 << 16), normal(1 << 16))

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

plain("fft", "1024 of 1024", lambda lib, x: lib.np.fft.fft(x), pairs(1024, 1024))
plain("fft", "1024 of 1024 along axis 0", lambda lib, x: lib.np.fft.fft(x, axis=0), pairs(1024, 1024))
plain("fft", "real, 1024 of 1024 along axis 0", lambda lib, x: lib.np.fft.rfft(x, axis=0), normal(1024, 1024))
plain("fft", "1024 x 1024", lambda lib, x: lib.np.fft.fft2(x), pairs(1024, 1024))
plain("fft", "2^20", lambda lib, x: lib.np.fft.fft(x), pairs(1 << 20))
plain("fft", "100003, a prime", lambda lib, x: lib.np.fft.fft(x), pairs(100003))

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

plain(
    "indexing",
    "embedding gradient, sorted rows of 64",
    lambda lib, e, i: lib.root.grad(lambda e: (e[i] ** 2).sum())(e),
    normal(5000, 64),
    np.sort(below(5000, 20000)),
)
plain(
    "indexing", "embedding gradient, one row of 64", lambda lib, e, i: lib.root.grad(lambda e: (e[i] ** 2).sum())(e), normal(5000, 64), 0 * below(5000, 20000)
)
plain("indexing", "dynamic_slice, 100 of 512 x 512", lambda lib, x, i: lib.lax.dynamic_slice(x, (i[0], i[1]), (100, 100)), normal(512, 512), below(400, 2))
plain("indexing", "x[mask] by where size, 65536", lambda lib, x: lib.np.where(x > 0, size=65536, fill_value=0)[0], normal(65536))
plain("indexing", "one_hot of 8192 to 256", lambda lib, i: lib.nn.one_hot(i, 256), below(256, 8192))
plain("indexing", "columns a[:, j], 1000 x 1000", lambda lib, a, j: a[:, j], normal(1000, 1000), below(1000, 1000))
plain("indexing", "histogram of 262144 in 100", lambda lib, x: lib.np.histogram(x, bins=100, range=(-3, 3))[0], normal(1 << 18))
plain("indexing", "2-D histogram, 100000", lambda lib, i, j: lib.np.zeros((64, 64)).at[i, j].add(1.0), below(64, 100000), below(64, 100000))

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

cube = normal(64, 128, 128)
plain("reductions", "sum axes (0, 2), 64 x 128 x 128", lambda lib, x: x.sum((0, 2)), cube)
plain("reductions", "sum axis 1, 64 x 128 x 128", lambda lib, x: x.sum(1), cube)
plain("reductions", "mean and var of all, 512 x 4096", lambda lib, x: (x.mean(), x.var()), normal(512, 4096))
plain("reductions", "argmax axis 1, 512 x 4096", lambda lib, x: x.argmax(1), normal(512, 4096))
plain("reductions", "argmax axis 0, 512 x 4096", lambda lib, x: x.argmax(0), normal(512, 4096))
plain("reductions", "any(isnan), 512 x 4096", lambda lib, x: lib.np.isnan(x).any(), normal(512, 4096))
plain("reductions", "prod axis 1, 4096 x 64", lambda lib, x: x.prod(1), normal(4096, 64))
plain("reductions", "norm of rows, 4096 x 64", lambda lib, x: lib.np.linalg.norm(x, axis=1), normal(4096, 64))
plain("reductions", "sum of i32 over all, 1M", lambda lib, x: x.sum(), below(9, 1 << 20))
plain("reductions", "count where, 1M", lambda lib, x: (x > 0.5).sum(), normal(1 << 20))
plain("reductions", "batch norm statistics, 32 x 28 x 28 x 64", lambda lib, x: (x.mean((0, 1, 2)), x.var((0, 1, 2))), normal(32, 28, 28, 64))
plain("reductions", "softmax of 64, 8192 rows", lambda lib, x: lib.nn.softmax(x), normal(8192, 64))
plain(
    "reductions",
    "softmax gradient, 2048 x 512",
    lambda lib, x, y: lib.root.grad(lambda x: (lib.nn.softmax(x) * y).sum())(x),
    normal(2048, 512),
    normal(2048, 512),
)
plain(
    "reductions",
    "layer norm gradient, 2048 x 512",
    lambda lib, x, g: lib.root.grad(lambda x: (((x - x.mean(-1, keepdims=True)) * lib.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g) ** 3).sum())(x),
    normal(2048, 512),
    normal(512),
)
plain(
    "reductions",
    "cross-entropy gradient, 256 x 32000",
    lambda lib, x, y: lib.root.grad(lambda x: -lib.np.take_along_axis(lib.nn.log_softmax(x), y[:, None], 1).mean())(x),
    normal(256, 32000),
    below(32000, 256),
)
plain("reductions", "trace of products, sum(a * b), 1M", lambda lib, a, b: (a * b).sum(), normal(1 << 20), normal(1 << 20))

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

for n in (64, 256, 1024, 2048):
    plain("matmul", f"{n} x {n} f32", lambda lib, a, b: a @ b, normal(n, n), normal(n, n), flops=2 * n**3)
plain("matmul", "4096 x 64 by 64 x 64", lambda lib, a, b: a @ b, normal(4096, 64), normal(64, 64), flops=2 * 4096 * 64 * 64)
plain("matmul", "64 x 4096 by 4096 x 64", lambda lib, a, b: a @ b, normal(64, 4096), normal(4096, 64), flops=2 * 4096 * 64 * 64)
plain("matmul", "1024 x 16 by 16 x 1024", lambda lib, a, b: a @ b, normal(1024, 16), normal(16, 1024), flops=2 * 1024 * 1024 * 16)
plain("matmul", "a.T @ b, 512", lambda lib, a, b: a.T @ b, normal(512, 512), normal(512, 512), flops=2 * 512**3)
plain("matmul", "a @ b.T, 512", lambda lib, a, b: a @ b.T, normal(512, 512), normal(512, 512), flops=2 * 512**3)
plain("matmul", "batch of 64, 64 x 64", lambda lib, a, b: a @ b, normal(64, 64, 64), normal(64, 64, 64), flops=2 * 64**4)
plain("matmul", "batch of 256, 16 x 16", lambda lib, a, b: a @ b, normal(256, 16, 16), normal(256, 16, 16), flops=2 * 256 * 16**3)
plain("matmul", "batch of 10000, 3 x 3", lambda lib, a, b: a @ b, normal(10000, 3, 3), normal(10000, 3, 3))
plain("matmul", "batch of 10000, 4 x 4 by vectors", lambda lib, a, b: lib.np.einsum("nij,nj->ni", a, b), normal(10000, 4, 4), normal(10000, 4))
plain("matmul", "points by one 4 x 4, 100000", lambda lib, a, b: a @ b, normal(100000, 4), normal(4, 4))
plain("matmul", "dot of 1M", lambda lib, a, b: a @ b, normal(1 << 20), normal(1 << 20))
plain("matmul", "512 x 512 i32", lambda lib, a, b: a @ b, below(9, 512, 512), below(9, 512, 512))
plain("matmul", "512 x 512 bf16", lambda lib, a, b: a.astype("bfloat16") @ b.astype("bfloat16"), normal(512, 512), normal(512, 512), tolerance=5e-2)
plain("matmul", "512 x 512 c64", lambda lib, a, b: a @ b, pairs(512, 512), pairs(512, 512))
plain(
    "matmul", "einsum bhqd,bhkd->bhqk, 4 x 8 x 128 x 64", lambda lib, q, k: lib.np.einsum("bqhd,bkhd->bhqk", q, k), normal(4, 128, 8, 64), normal(4, 128, 8, 64)
)
plain(
    "matmul", "bilinear form x A y, 1000 x 64", lambda lib, x, a, y: lib.np.einsum("ni,ij,nj->n", x, a, y), normal(1000, 64), normal(64, 64), normal(1000, 64)
)


def general(dims, **kw):
    return lambda lib, x, w: lib.lax.conv_general_dilated(x, w, dimension_numbers=dims, **kw)


n2 = ("NHWC", "HWIO", "NHWC")
plain("conv", "1-D of 9, 16 x 1024 x 32", general(("NWC", "WIO", "NWC"), window_strides=(1,), padding="SAME"), normal(16, 1024, 32), normal(9, 32, 32))
plain(
    "conv",
    "3-D of 3^3, 2 x 16^3 x 16",
    general(("NDHWC", "DHWIO", "NDHWC"), window_strides=(1, 1, 1), padding="SAME"),
    normal(2, 16, 16, 16, 16),
    normal(3, 3, 3, 16, 16),
)
plain("conv", "1 x 1, 8 x 32 x 32 x 64", general(n2, window_strides=(1, 1), padding="SAME"), normal(8, 32, 32, 64), normal(1, 1, 64, 64))
plain("conv", "3 x 3 by steps of 2, 8 x 64 x 64 x 32", general(n2, window_strides=(2, 2), padding="SAME"), normal(8, 64, 64, 32), normal(3, 3, 32, 64))
plain("conv", "dilated by 2, 8 x 32 x 32 x 32", general(n2, window_strides=(1, 1), padding="SAME", rhs_dilation=(2, 2)), images, weights)
plain("conv", "4 groups, 8 x 32 x 32 x 32", general(n2, window_strides=(1, 1), padding="SAME", feature_group_count=4), images, normal(3, 3, 8, 32))
plain("conv", "depthwise, 8 x 32 x 32 x 32", general(n2, window_strides=(1, 1), padding="SAME", feature_group_count=32), images, normal(3, 3, 1, 32))
plain(
    "conv",
    "depthwise gradient",
    lambda lib, x, w: lib.root.grad(lambda x, w: (general(n2, window_strides=(1, 1), padding="SAME", feature_group_count=32)(lib, x, w) ** 2).sum(), (0, 1))(
        x, w
    ),
    images,
    normal(3, 3, 1, 32),
)
plain("conv", "transposed by 2, 8 x 16 x 16 x 32", lambda lib, x, w: lib.lax.conv_transpose(x, w, (2, 2), "SAME"), normal(8, 16, 16, 32), weights)
plain(
    "conv",
    "channels first, 8 x 32 x 32 x 32",
    general(("NCHW", "OIHW", "NCHW"), window_strides=(1, 1), padding="SAME"),
    normal(8, 32, 32, 32),
    normal(32, 32, 3, 3),
)
plain(
    "conv",
    "channels first, both gradients",
    lambda lib, x, w: lib.root.grad(lambda x, w: (general(("NCHW", "OIHW", "NCHW"), window_strides=(1, 1), padding="SAME")(lib, x, w) ** 2).sum(), (0, 1))(
        x, w
    ),
    normal(8, 32, 32, 32),
    normal(32, 32, 3, 3),
)
plain("conv", "first layer, 32 x 28 x 28 x 1 to 16", conv, normal(32, 28, 28, 1), normal(3, 3, 1, 16))
plain("conv", "stencil by convolution, 512 x 512", lambda lib, x, w: lib.root.scipy.signal.convolve2d(x, w, mode="same"), normal(512, 512), normal(3, 3))
plain("conv", "1-D signal by 31, 65536", lambda lib, x, w: lib.np.convolve(x, w, mode="same"), normal(65536), normal(31))

# ---- attention ----

plain("attention", "8 heads, 4 x 128 x 64", lambda lib, q, k, v: lib.nn.dot_product_attention(q, k, v), *(normal(4, 128, 8, 64) for _ in range(3)))
plain(
    "attention",
    "causal, 1 x 512, 8 heads of 64",
    lambda lib, q, k, v: lib.nn.dot_product_attention(q, k, v, is_causal=True),
    *(normal(1, 512, 8, 64) for _ in range(3)),
)
plain(
    "attention",
    "gradient, 4 x 128, 8 heads of 64",
    lambda lib, q, k, v: lib.root.grad(lambda q, k, v: (lib.nn.dot_product_attention(q, k, v) ** 2).sum(), (0, 1, 2))(q, k, v),
    *(normal(4, 128, 8, 64) for _ in range(3)),
)
plain(
    "attention",
    "decode one token, cache of 1024, 8 heads of 64",
    lambda lib, q, k, v, nk, nv: (lambda k, v: (lib.np.einsum("hs,shd->hd", lib.nn.softmax(lib.np.einsum("hd,shd->hs", q, k)), v), k, v))(
        lib.lax.dynamic_update_slice(k, nk, (77, 0, 0)), lib.lax.dynamic_update_slice(v, nv, (77, 0, 0))
    ),
    normal(8, 64),
    normal(1024, 8, 64),
    normal(1024, 8, 64),
    normal(1, 8, 64),
    normal(1, 8, 64),
)

# ---- pooling ----


def pool(lib, x):
    return lib.lax.reduce_window(x, -np.inf, lib.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def mean_pool(lib, x):
    return lib.lax.reduce_window(x, 0.0, lib.lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")


plain("pooling", "max 2 x 2, 16 x 64 x 64 x 32", pool, normal(16, 64, 64, 32))
plain("pooling", "gradient of max 2 x 2, 16 x 64 x 64 x 32", lambda lib, x: lib.root.grad(lambda x: (pool(lib, x) ** 2).sum())(x), normal(16, 64, 64, 32))
plain("pooling", "sum 3 x 3, 8 x 64 x 64 x 32", mean_pool, normal(8, 64, 64, 32))
plain("pooling", "gradient of sum 3 x 3, 8 x 64 x 64 x 32", lambda lib, x: lib.root.grad(lambda x: (mean_pool(lib, x) ** 2).sum())(x), normal(8, 64, 64, 32))

# ---- sorting ----

line = normal(1 << 18)
plain("sorting", "sort, 262144", lambda lib, x: lib.np.sort(x), line)
plain("sorting", "argsort, 262144", lambda lib, x: lib.np.argsort(x), line)
plain("sorting", "sort of i32, 262144", lambda lib, x: lib.np.sort(x), below(1 << 30, 1 << 18))
plain("sorting", "argsort of rows, 1000 x 1000", lambda lib, x: lib.np.argsort(x, 1), normal(1000, 1000))
plain("sorting", "lexsort of 2, 65536", lambda lib, x, y: lib.np.lexsort((x, y)), below(100, 65536), below(100, 65536))
plain("sorting", "top_k 100, 262144", lambda lib, x: lib.lax.top_k(x, 100), line)
plain("sorting", "unique, 65536 of 1000", lambda lib, x: lib.np.unique(x, size=1000), below(1000, 65536))
plain("sorting", "searchsorted, 65536 in 10000", lambda lib, x, v: lib.np.searchsorted(x, v), np.sort(normal(10000)), normal(65536))
plain("sorting", "median of rows, 512 x 1000", lambda lib, x: lib.np.median(x, 1), normal(512, 1000))
plain("sorting", "quantile, 262144", lambda lib, x: lib.np.quantile(x, 0.9), line)
plain("sorting", "interp, 65536 in 1000", lambda lib, x, a, b: lib.np.interp(x, a, b), normal(65536), np.sort(normal(1000)), normal(1000))

# ---- cumulative operations ----

plain("cumulative", "cumsum, 1M", lambda lib, x: x.cumsum(), normal(1 << 20))
plain("cumulative", "cumsum axis 0, 4096 x 512", lambda lib, x: x.cumsum(0), normal(4096, 512))
plain("cumulative", "cumprod, 512 x 1024", lambda lib, x: x.cumprod(1), 1 + 0.01 * normal(512, 1024))
plain("cumulative", "cummax, 512 x 4096", lambda lib, x: lib.lax.cummax(x, axis=1), normal(512, 4096))
plain("cumulative", "associative_scan of products of 2 x 2, 4096", lambda lib, m: lib.lax.associative_scan(lib.np.matmul, m), 0.5 * normal(4096, 2, 2))
plain(
    "cumulative",
    "associative_scan of linear recurrence, 65536",
    lambda lib, a, b: lib.lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b)),
    0.9 * RANDOM.random(65536, np.float32),
    normal(65536),
)
plain("cumulative", "cumsum gradient, 512 x 1024", lambda lib, x: lib.root.grad(lambda x: (x.cumsum(1) ** 2).sum())(x), normal(512, 1024))

# ---- random numbers ----


def drawn(text, f, **kw):
    plain("random", text, lambda lib: f(lib, lib.random.key(0)), **kw)


drawn("bits, 1M", lambda lib, k: lib.random.bits(k, (1 << 20,)))
drawn("uniform, 1M", lambda lib, k: lib.random.uniform(k, (1 << 20,)))
drawn("normal, 1M", lambda lib, k: lib.random.normal(k, (1 << 20,)))
drawn("bernoulli, 1M", lambda lib, k: lib.random.bernoulli(k, 0.3, (1 << 20,)))
drawn("randint, 1M", lambda lib, k: lib.random.randint(k, (1 << 20,), 0, 100))
drawn("gamma, 16384", lambda lib, k: lib.random.gamma(k, 2.0, (16384,)))
drawn("permutation, 262144", lambda lib, k: lib.random.permutation(k, 1 << 18))
drawn("categorical, 1024 of 1000", lambda lib, k: lib.random.categorical(k, lib.np.zeros((1024, 1000))))
drawn("choice of 10000 by weights, 1000", lambda lib, k: lib.random.choice(k, 10000, (1000,), p=lib.np.ones(10000) / 10000))
drawn("poisson, 65536", lambda lib, k: lib.random.poisson(k, 3.0, (65536,)))
drawn("dropout, 1M", lambda lib, k: lib.np.where(lib.random.bernoulli(k, 0.9, (1 << 20,)), lib.np.ones(1 << 20) / 0.9, 0))
drawn("split into 10000", lambda lib, k: lib.random.key_data(lib.random.split(k, 10000)))
