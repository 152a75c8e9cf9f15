"""The rows that have a counterpart in PyTorch, as its users would write them; by "group: text", as functions of tensors.

Loops over small arrays are left out: PyTorch dispatches each of their operations from Python, which is not what a row wants to know.
"""

import torch
from torch.nn import functional as F

PEERS = {}


def peer(name, f):
    PEERS[name] = f


def gradient(f, *of):
    """The derivative of a scalar function in some of its arguments."""

    def g(*args):
        args = [a.detach().requires_grad_(k in (of or (0,))) for k, a in enumerate(args)]
        out = torch.autograd.grad(f(*args), [a for a in args if a.requires_grad])
        return list(out) if len(of) > 1 else out[0]

    return g


# ---- chains ----


def polynomial(x):
    y = x
    for c in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
        y = y * x + c
    return y


for n in (1 << 10, 1 << 14, 1 << 18, 1 << 21):
    peer(f"caches: x * 2 + 1, {n}", lambda x: x * 2 + 1)
    peer(f"caches: polynomial of 7 steps, {n}", polynomial)
    peer(f"caches: sum, {n}", lambda x: x.sum())
peer("caches: x * 2 + 1, 16M", lambda x: x * 2 + 1)
peer("chains: gelu (tanh), 262144", lambda x: F.gelu(x, approximate="tanh"))
peer("chains: x + x.T, 1000 x 1000", lambda x: x + x.T)
peer("chains: (x + x*x + 3) * (x*x + x*x.T), 3000 x 3000", lambda x: (x + x * x + 3) * (x * x + x * x.T))
for n in (1 << 10, 1 << 14, 1 << 20):
    peer(f"chains: exp(-x*x) * sin(x), {n}", lambda x: torch.exp(-x * x) * torch.sin(x))
peer("chains: where(x > 0, x, 0.1 * x), 262144", lambda x: F.leaky_relu(x, 0.1))
peer("chains: clip, round, abs, sign, 262144", lambda x: torch.sign(x) * torch.abs(torch.round(torch.clip(x, -1, 1) * 10)))
peer("chains: i32 // 7 % 5, 262144", lambda x: x // 7 % 5)
peer("chains: x ** 2.5, 262144", lambda x: x**2.5)
peer("chains: bf16 x * y + z, 262144", lambda x, y, z: (x.bfloat16() * y.bfloat16() + z.bfloat16()).float())
peer("chains: f32 to i32 to f32, 262144", lambda x: (x * 100).int().float())
peer("chains: u8 image to f32, 1024 x 1024", lambda x: x.float() / 255)
peer("chains: x > 0 and y < 1, 262144", lambda x, y: (x > 0) & (y < 1))
peer("chains: 16M outputs of 64 MB, x + y", lambda x, y: x + y)
peer("chains: outer sum, 2048 x 2048", lambda x, y: x[:, None] + y)
peer("chains: arctan2, 65536", torch.arctan2)

# ---- moves ----

peer("moves: copy (x + 0 of i32)", lambda x: x + 1)
peer("moves: roll axis 0, 512 x 512", lambda x: torch.roll(x, 1, 0))
peer("moves: roll axis 1, 512 x 512", lambda x: torch.roll(x, 1, 1))
peer("moves: pad 1, 512 x 512", lambda x: F.pad(x, (1, 1, 1, 1)))
peer("moves: pad reflect, 512 x 512", lambda x: F.pad(x[None], (2, 2, 2, 2), mode="reflect")[0])
peer("moves: concatenate axis 0, 512 x 512", lambda x: torch.cat([x, x]))
peer("moves: concatenate axis 1, 512 x 512", lambda x: torch.cat([x, x], 1))
peer("moves: concatenate of 8, 64 x 512", lambda *x: torch.cat(x))
peer("moves: concatenate a, exp a, 512 x 512", lambda x: torch.cat([x, torch.exp(x)], 1))
peer("moves: stack 0 of 2, 512 x 512", lambda x: torch.stack([x, x * 2]))
peer("moves: stack -1 of 2, 700 x 700", lambda x: torch.stack([x, x * 2], -1))
peer("moves: stack -1 of 3, 512 x 512", lambda x: torch.stack([x, x * 2, x + 1], -1))
peer("moves: flip, 512 x 512", lambda x: torch.flip(x, (1,)))
peer("moves: transpose, 512 x 512", lambda x: x.T.contiguous())
peer("moves: transpose (0, 2, 1), 64 x 64 x 64", lambda x: (x.transpose(1, 2) * 1.5).contiguous())
peer("moves: x[::2, ::2], 1024 x 1024", lambda x: x[::2, ::2] * 1.5)
peer("moves: x[1:] + x[:-1], 512 x 512", lambda x: x[1:] + x[:-1])
peer("moves: x[:, 1:] + x[:, :-1], 512 x 512", lambda x: x[:, 1:] + x[:, :-1])
peer("moves: tile 2 x 2, 256 x 256", lambda x: x.tile((2, 2)))
peer("moves: repeat 2, 256 x 512", lambda x: x.repeat_interleave(2, 1))


def written(x, y):
    x = x.clone()
    x[1:-1, 1:-1] = y
    return x


peer("moves: x.at[1:-1, 1:-1].set, 512 x 512", written)

# ---- stencils ----


def five_rolled(x):
    r = torch.roll
    return (r(x, 1, 0) + r(x, -1, 0) + r(x, 1, 1) + r(x, -1, 1) - 4 * x) * 0.1 + x


def five_sliced(x):
    inner = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    return x + 0.1 * F.pad(inner, (1, 1, 1, 1))


def nine_rolled(x):
    return sum(torch.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) / 9


def seven_rolled(x):
    return sum(torch.roll(x, s, k) for k in range(3) for s in (1, -1)) - 6 * x


def life(x):
    n = sum(torch.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((n == 3) | ((x == 1) & (n == 2))).to(x.dtype)


peer("stencils: five points by roll, 512 x 512", five_rolled)
peer("stencils: five points by slices and pad, 512 x 512", five_sliced)
peer("stencils: nine points by roll, 512 x 512", nine_rolled)
peer("stencils: seven points by roll, 64^3", seven_rolled)
peer("stencils: game of life, 512 x 512 i32", life)
peer("stencils: gradient of five points by slices, 512 x 512", gradient(lambda x: (five_sliced(x) ** 2).sum()))

# ---- complex numbers and Fourier transforms ----

peer("complex: c * c, 512 x 512", lambda z: z * z)
peer("complex: c * c + c, 512 x 512", lambda z: z * z + z)
peer("complex: abs, 512 x 512", torch.abs)
peer("complex: exp, 512 x 512", torch.exp)
peer("complex: a * b summed, 512 x 512", lambda z: (z * z).sum())
peer("complex: real + imag, 512 x 512", lambda z: z.real + z.imag)


def mandelbrot(c):
    z, n = c, torch.zeros(c.shape, dtype=torch.int32)
    for _ in range(20):
        z = z * z + c
        n = n + (torch.abs(z) < 2)
    return n


peer("complex: mandelbrot, 20 steps, 256 x 256", mandelbrot)
for text in ("fft, 64 of 1024", "fft, 1024", "fft, 2^20", "fft, 1000", "fft, 64 of 1009, a prime", "fft, 10007, a prime"):
    peer(f"fourier: {text}", torch.fft.fft)
peer("fourier: ifft, 64 of 1024", torch.fft.ifft)
peer("fourier: rfft, 64 of 1024", torch.fft.rfft)
peer("fourier: irfft, 64 of 1024", torch.fft.irfft)
peer("fourier: fft along axis 0, 1024 x 64", lambda x: torch.fft.fft(x, dim=0))
peer("fourier: rfft, 2^20", torch.fft.rfft)
peer("fourier: fft2, 512 x 512", torch.fft.fft2)
peer("fourier: fftn, 64^3", torch.fft.fftn)
peer("fourier: low-pass of a signal, 2^18", lambda x: torch.fft.irfft(torch.fft.rfft(x) * 0.5))
for text in ("1024 of 1024", "2^20", "100003, a prime"):
    peer(f"fft: {text}", torch.fft.fft)
peer("fft: 1024 of 1024 along axis 0", lambda x: torch.fft.fft(x, dim=0))
peer("fft: real, 1024 of 1024 along axis 0", lambda x: torch.fft.rfft(x, dim=0))
peer("fft: 1024 x 1024", torch.fft.fft2)

# ---- indexing ----


def added(n):
    return lambda a, i: torch.zeros(n).index_add(0, i, a.ravel())


def bilinear(a, y, x):
    i, j = torch.floor(y).int(), torch.floor(x).int()
    u, v = y - i, x - j
    return (1 - u) * ((1 - v) * a[i, j] + v * a[i, j + 1]) + u * ((1 - v) * a[i + 1, j] + v * a[i + 1, j + 1])


embedding = gradient(lambda e, i: (F.embedding(i, e) ** 2).sum())
peer("indexing: a[i, j], 490000", lambda a, i, j: a[i, j])
peer("indexing: a.ravel()[i], 490000", lambda a, i: a.ravel()[i])
peer("indexing: take clip, 490000", lambda a, i: torch.index_select(a.ravel(), 0, i.clip(0, a.numel() - 1)))
peer("indexing: rows of 64, 20000", lambda a, i: torch.index_select(a, 0, i))
peer("indexing: rows of 4, 100000", lambda a, i: torch.index_select(a, 0, i))
peer("indexing: take_along_axis, 512 x 512", lambda a, i: torch.take_along_dim(a, i.long(), 1))
peer("indexing: bincount, 490000 into 700", lambda i: torch.bincount(i, minlength=700).int())
peer("indexing: scatter-add of scalars, 490000 into 490000", added(490000))
peer("indexing: scatter-add, one index", added(10))
peer("indexing: segment_sum, 490000 into 1000", added(1000))
peer("indexing: segment_sum of rows of 32, 20000", lambda a, i: torch.zeros(1000, 32).index_add(0, i, a))
peer("indexing: a.at[i].set, 490000", lambda a, i: a.ravel().index_fill(0, i.long(), 1.0))
peer("indexing: bilinear sampling, 512 x 512", bilinear)
peer("indexing: embedding gradient, 20000 rows of 64", embedding)
peer("indexing: embedding gradient, sorted rows of 64", embedding)
peer("indexing: embedding gradient, one row of 64", embedding)
peer("indexing: dynamic_slice, 100 of 512 x 512", lambda x, i: x[int(i[0]) : int(i[0]) + 100, int(i[1]) : int(i[1]) + 100].clone())
peer("indexing: one_hot of 8192 to 256", lambda i: F.one_hot(i.long(), 256).float())
peer("indexing: columns a[:, j], 1000 x 1000", lambda a, j: torch.index_select(a, 1, j))

# ---- scalar functions ----

for name in "sqrt exp log log1p expm1 sin cos tanh arctan".split():
    peer(f"functions: {name}, 65536", getattr(torch, name))
for name in "erf erfc erfinv expit gammaln".split():
    peer(f"functions: {name}, 65536", getattr(torch.special, name))

# ---- reductions ----


def cross_entropy(x, y):
    return F.cross_entropy(x, y.long())


peer("reductions: softmax, 512 x 4096", lambda x: F.softmax(x, -1))
peer("reductions: softmax of 64, 8192 rows", lambda x: F.softmax(x, -1))
peer("reductions: log_softmax, 512 x 4096", lambda x: F.log_softmax(x, -1))
peer("reductions: logsumexp, 512 x 4096", lambda x: torch.logsumexp(x, -1))
peer("reductions: log_softmax gradient, 512 x 4096", gradient(lambda x: F.log_softmax(x, -1)[:, 0].sum()))
peer("reductions: sum axis 0, 512 x 4096", lambda x: x.sum(0))
peer("reductions: sum axis 1, 512 x 4096", lambda x: x.sum(1))
peer("reductions: max all, 512 x 4096", lambda x: x.max())
peer("reductions: var axis 1, 512 x 4096", lambda x: x.var(1, correction=0))
peer("reductions: layer norm, 2048 x 512", lambda x, g: F.layer_norm(x, (512,), g))
peer("reductions: all-pairs distances, 1000 x 3", lambda x: ((x[:, None] - x[None]) ** 2).sum(-1))
peer("reductions: cumsum, 512 x 4096", lambda x: x.cumsum(1))
peer("reductions: top_k 8, 512 x 4096", lambda x: torch.topk(x, 8)[0])
peer("reductions: sort, 512 x 512", lambda x: torch.sort(x, 1)[0])
peer("reductions: sum axes (0, 2), 64 x 128 x 128", lambda x: x.sum((0, 2)))
peer("reductions: sum axis 1, 64 x 128 x 128", lambda x: x.sum(1))
peer("reductions: mean and var of all, 512 x 4096", lambda x: [x.mean(), x.var(correction=0)])
peer("reductions: argmax axis 1, 512 x 4096", lambda x: x.argmax(1).int())
peer("reductions: argmax axis 0, 512 x 4096", lambda x: x.argmax(0).int())
peer("reductions: any(isnan), 512 x 4096", lambda x: torch.isnan(x).any())
peer("reductions: prod axis 1, 4096 x 64", lambda x: x.prod(1))
peer("reductions: norm of rows, 4096 x 64", lambda x: torch.linalg.vector_norm(x, dim=1))
peer("reductions: sum of i32 over all, 1M", lambda x: x.sum().int())
peer("reductions: count where, 1M", lambda x: (x > 0.5).sum().int())
peer("reductions: batch norm statistics, 32 x 28 x 28 x 64", lambda x: [x.mean((0, 1, 2)), x.var((0, 1, 2), correction=0)])
peer("reductions: softmax gradient, 2048 x 512", gradient(lambda x, y: (F.softmax(x, -1) * y).sum()))
peer("reductions: layer norm gradient, 2048 x 512", gradient(lambda x, g: (F.layer_norm(x, (512,), g) ** 3).sum()))
peer("reductions: cross-entropy gradient, 256 x 32000", gradient(cross_entropy))
peer("reductions: trace of products, sum(a * b), 1M", lambda a, b: torch.dot(a, b))

# ---- products and convolutions ----

for n in (32, 64, 128, 256, 512, 768, 1024, 2048):
    peer(f"matmul: {n} x {n} f32", torch.matmul)
for text in (
    "matvec 2048",
    "batch of 4096, 8 x 8",
    "4096 x 64 by 64 x 64",
    "64 x 4096 by 4096 x 64",
    "1024 x 16 by 16 x 1024",
    "batch of 64, 64 x 64",
    "batch of 256, 16 x 16",
    "batch of 10000, 3 x 3",
    "points by one 4 x 4, 100000",
    "dot of 1M",
    "512 x 512 i32",
    "512 x 512 c64",
):
    peer(f"matmul: {text}", torch.matmul)
peer("matmul: vector by matrix 2048", lambda a, b: b @ a)
peer("matmul: relu(a @ b + c), 512", lambda a, b, c: F.relu(torch.addmm(c, a, b)))
peer("matmul: a.T @ b, 512", lambda a, b: a.T @ b)
peer("matmul: a @ b.T, 512", lambda a, b: a @ b.T)
peer("matmul: batch of 10000, 4 x 4 by vectors", lambda a, b: torch.einsum("nij,nj->ni", a, b))
peer("matmul: 512 x 512 bf16", lambda a, b: a.bfloat16() @ b.bfloat16())
peer("matmul: einsum bhqd,bhkd->bhqk, 4 x 8 x 128 x 64", lambda q, k: torch.einsum("bqhd,bkhd->bhqk", q, k))
peer("matmul: bilinear form x A y, 1000 x 64", lambda x, a, y: torch.einsum("ni,ij,nj->n", x, a, y))


def last(x, w, convolve=F.conv2d, **options):
    """A convolution of images whose channels come last, by the layout that PyTorch has for them."""
    y = convolve(x.movedim(-1, 1), w.movedim((-1, -2), (0, 1)), **options)
    return y.movedim(1, -1)


def squared(f):
    return lambda x, w: (f(x, w) ** 2).sum()


def same(x, w):
    return last(x, w, padding=1)


def strided(x, w):
    return last(F.pad(x, (0, 0, 2, 3, 2, 3)), w, stride=2)


def depthwise(x, w):
    return last(x, w, padding=1, groups=32)


def first(x, w):
    return F.conv2d(x, w, padding=1)


peer("conv: 3 x 3, 8 x 32 x 32 x 32", same)
peer("conv: weight gradient", gradient(squared(same), 1))
peer("conv: image gradient", gradient(squared(same), 0))
peer("conv: weight gradient, 7 x 7 by steps of 2", gradient(squared(strided), 1))
peer("conv: image gradient, 7 x 7 by steps of 2", gradient(squared(strided), 0))
peer("conv: 1-D of 9, 16 x 1024 x 32", lambda x, w: last(x, w, F.conv1d, padding=4))
peer("conv: 3-D of 3^3, 2 x 16^3 x 16", lambda x, w: last(x, w, F.conv3d, padding=1))
peer("conv: 1 x 1, 8 x 32 x 32 x 64", last)
peer("conv: 3 x 3 by steps of 2, 8 x 64 x 64 x 32", lambda x, w: last(F.pad(x, (0, 0, 0, 1, 0, 1)), w, stride=2))
peer("conv: dilated by 2, 8 x 32 x 32 x 32", lambda x, w: last(x, w, padding=2, dilation=2))
peer("conv: 4 groups, 8 x 32 x 32 x 32", lambda x, w: last(x, w, padding=1, groups=4))
peer("conv: depthwise, 8 x 32 x 32 x 32", depthwise)
peer("conv: depthwise gradient", gradient(squared(depthwise), 0, 1))
peer("conv: channels first, 8 x 32 x 32 x 32", first)
peer("conv: channels first, both gradients", gradient(squared(first), 0, 1))
peer("conv: first layer, 32 x 28 x 28 x 1 to 16", same)

# ---- attention, pooling ----


def attention(q, k, v, **options):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2)


def pool(x):
    return F.max_pool2d(x.movedim(-1, 1), 2).movedim(1, -1)


def sum_pool(x):
    return F.avg_pool2d(x.movedim(-1, 1), 3, 1, 1, divisor_override=1).movedim(1, -1)


peer("attention: 8 heads, 4 x 128 x 64", attention)
peer("attention: causal, 1 x 512, 8 heads of 64", lambda q, k, v: attention(q, k, v, is_causal=True))
peer("attention: gradient, 4 x 128, 8 heads of 64", gradient(lambda q, k, v: (attention(q, k, v) ** 2).sum(), 0, 1, 2))
peer("pooling: max 2 x 2, 16 x 64 x 64 x 32", pool)
peer("pooling: gradient of max 2 x 2, 16 x 64 x 64 x 32", gradient(lambda x: (pool(x) ** 2).sum()))
peer("pooling: sum 3 x 3, 8 x 64 x 64 x 32", sum_pool)
peer("pooling: gradient of sum 3 x 3, 8 x 64 x 64 x 32", gradient(lambda x: (sum_pool(x) ** 2).sum()))

# ---- sorting, cumulative operations ----

peer("sorting: sort, 262144", lambda x: torch.sort(x)[0])
peer("sorting: argsort, 262144", lambda x: torch.argsort(x).int())
peer("sorting: sort of i32, 262144", lambda x: torch.sort(x)[0])
peer("sorting: argsort of rows, 1000 x 1000", lambda x: torch.argsort(x, 1).int())
peer("sorting: top_k 100, 262144", lambda x: list(torch.topk(x, 100)))
peer("sorting: searchsorted, 65536 in 10000", lambda x, v: torch.searchsorted(x, v, out_int32=True))
peer("sorting: quantile, 262144", lambda x: torch.quantile(x, 0.9))
peer("cumulative: cumsum, 1M", lambda x: x.cumsum(0))
peer("cumulative: cumsum axis 0, 4096 x 512", lambda x: x.cumsum(0))
peer("cumulative: cumprod, 512 x 1024", lambda x: x.cumprod(1))
peer("cumulative: cummax, 512 x 4096", lambda x: x.cummax(1)[0])
peer("cumulative: cumsum gradient, 512 x 1024", gradient(lambda x: (x.cumsum(1) ** 2).sum()))

# ---- training steps, simulations, algorithms ----


def scaled(x):
    return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, keepdim=True, correction=0) + 1e-5)


def block(x, *p):
    q, k, v = ((x @ w).reshape(*x.shape[:2], 8, 32) for w in p[:3])
    x = x + attention(q, k, v, scale=1 / 5.6).reshape(x.shape) @ p[3]
    return scaled(x + F.gelu(scaled(x) @ p[4], approximate="tanh") @ p[5])


def resnet(x, w1, w2, g1, g2):
    norm = lambda x, g: F.batch_norm(x.movedim(-1, 1), None, None, g, training=True).movedim(1, -1)
    h = F.relu(norm(same(x, w1), g1))
    return F.relu(x + norm(same(h, w2), g2))


def steps(rate, loss):
    """One step of gradient descent in all arguments after the first `fixed`."""

    def step(fixed, p):
        p = [w.detach().requires_grad_() for w in p]
        grads = torch.autograd.grad(loss(fixed, p), p)
        return [(w - rate * g).detach() for w, g in zip(p, grads, strict=True)]

    return step


def mlp_loss(x, w):
    x = x[0]
    for m in w[:-1]:
        x = F.relu(x @ m)
    return ((x @ w[-1]) ** 2).mean()


def cnn_loss(t, p):
    h = pool(F.relu(same(t[0], p[0])))
    h = pool(F.relu(same(h, p[1])))
    return cross_entropy(h.reshape(len(h), -1) @ p[2], t[1])


def digits_loss(t, p):
    return cross_entropy(F.relu(t[0] @ p[0] + p[1]) @ p[2] + p[3], t[1])


def adam(*t):
    p, m, v = t[:50], t[50:100], t[100:]
    m = torch._foreach_add(torch._foreach_mul(m, 0.9), p, alpha=0.1)
    v = torch._foreach_addcmul(torch._foreach_mul(v, 0.99), p, p, 0.01)
    below = torch._foreach_add(torch._foreach_sqrt(torch._foreach_abs(v)), 1e-8)
    p = torch._foreach_addcdiv(p, m, below, -0.01)
    return [x for triple in zip(p, m, v, strict=True) for x in triple]


def momentum(*t):
    p, m = t[:100], t[100:]
    m = torch._foreach_add(torch._foreach_mul(m, 0.9), p)
    return [x for pair in zip(torch._foreach_add(p, m, alpha=-0.1), m, strict=True) for x in pair]


def gcn(x, s, t, a, b):
    agg = lambda h: torch.zeros(1000, h.shape[1]).index_add(0, t, torch.index_select(h, 0, s))
    return (agg(F.relu(agg(x @ a)) @ b) ** 2).mean()


def vae(x, a, b, c):
    return ((torch.sigmoid(torch.tanh(x @ a) @ b @ c) - x) ** 2).sum()


peer("training: MLP step, batch 128, 256 wide", lambda x, *w: steps(0.01, mlp_loss)((x,), w))
peer("training: Adam over 50 tensors of 4096", adam)
peer("training: SGD with momentum, 100 tensors of 1000", momentum)
peer("training: transformer block, 8 x 64 x 256", block)
peer("training: transformer block gradient, 8 x 64 x 256", gradient(lambda x, *p: (block(x, *p) ** 2).mean(), 1, 2, 3, 4, 5, 6))
peer("training: ResNet block, 8 x 32 x 32 x 32", resnet)
peer("training: ResNet block gradient", gradient(lambda x, *p: (resnet(x, *p) ** 2).mean(), 1, 2, 3, 4))
peer("training: digits CNN step, 64 x 28 x 28", lambda x, y, *p: steps(0.1, cnn_loss)((x, y), p))
peer("training: digits MLP step, 128 of 784", lambda x, y, *p: steps(0.1, digits_loss)((x, y), p))
peer("training: GCN step, 1000 nodes, 10000 edges", gradient(gcn, 3, 4))
peer("training: logistic regression gradient, 10000 x 50", gradient(lambda x, y, w: F.softplus(-y * (x @ w)).mean(), 2))
peer("training: VAE-like step, 64 x 784", gradient(vae, 1, 2, 3))


def wave(u, v):
    for _ in range(20):
        v = v + 0.1 * (torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1) + torch.roll(u, -1, 1) - 4 * u)
        u = u + 0.1 * v
    return [u, v]


def forces(x):
    d = x[:, None] - x
    return (d / ((d**2).sum(-1, keepdim=True) + 0.1) ** 1.5).sum(1)


def sinkhorn(k):
    u, v = torch.ones(k.shape[0]), torch.ones(k.shape[1])
    for _ in range(20):
        u = 1 / (k @ v)
        v = 1 / (k.T @ u)
    return [u, v]


def repeated(n, f):
    def g(x):
        for _ in range(n):
            x = f(x)
        return x

    return g


def floyd(d):
    for k in range(len(d)):
        d = torch.minimum(d, d[:, k][:, None] + d[k][None])
    return d


def sinkhorn_log(c):
    f, g = torch.zeros(200), torch.zeros(200)
    for _ in range(10):
        f = -torch.logsumexp(g[None] - c, 1)
        g = -torch.logsumexp(f[:, None] - c, 0)
    return [f, g]


def advect(u, x, y):
    i0, j0 = torch.floor(x).int(), torch.floor(y).int()
    a, b = x - i0, y - j0
    g = lambda i, k: u[i % 256, k % 256]
    return (1 - a) * ((1 - b) * g(i0, j0) + b * g(i0, j0 + 1)) + a * ((1 - b) * g(i0 + 1, j0) + b * g(i0 + 1, j0 + 1))


def black(s, k, t):
    n = lambda x: 0.5 * (1 + torch.erf(x / 1.41421356))
    d = (torch.log(s / k) + 0.02 * t) / (0.2 * torch.sqrt(t))
    return s * n(d) - k * torch.exp(-0.01 * t) * n(d - 0.2 * torch.sqrt(t))


def gaussian(x, y):
    k = torch.exp(-0.5 * ((x[:, None] - x[None]) ** 2)) + 0.1 * torch.eye(200)
    return torch.cholesky_solve(y[:, None], torch.linalg.cholesky(k))[:, 0]


peer("loops: 100 x s*.9+1, 512 x 512", lambda x: [repeated(100, lambda s: s * 0.9 + 1)(x)])
peer("loops: 20 x roll, 512 x 512", lambda x: [repeated(20, lambda s: torch.roll(s, 1, 0))(x)])
peer("loops: 20 x five points by roll, 512 x 512", lambda x: [repeated(20, five_rolled)(x)])
peer("simulations: wave equation, 20 steps, 512 x 512", wave)
peer("simulations: n-body forces, 512", forces)
peer("simulations: optimal transport, 20 steps, 300 x 300", sinkhorn)
peer("simulations: page rank step, 100000 edges", lambda r, s, t: torch.zeros(5000).index_add(0, t, torch.index_select(r, 0, s)) * 0.85 + 0.15)
peer("algorithms: Floyd-Warshall, 128", floyd)
peer("algorithms: optimal transport in logs, 200 x 200, 10 rounds", sinkhorn_log)
peer("algorithms: diffusion, 64^3, 10 steps", repeated(10, lambda x: sum(torch.roll(x, s, k) for k in range(3) for s in (1, -1)) / 6))
peer("algorithms: advection by sampling, 256 x 256", advect)
peer("algorithms: gradient of advection", gradient(lambda u, x, y: (advect(u, x, y) ** 2).sum()))
peer("algorithms: Gaussian process kernel and solve, 200", gaussian)
peer("algorithms: Black-Scholes, 262144", black)
peer("algorithms: Black-Scholes greeks, 65536", gradient(lambda *x: black(*x).sum(), 0, 1, 2))
