"""Loops, algorithms, training steps: many operations."""

import numpy as np

from workloads.kernels import conv, five_rolled, images, pool, square, weights
from workloads.registry import RANDOM, below, normal, plain, row

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


def lstm(lib, w, u, b, xs):
    n = w.shape[0]

    def step(s, x):
        h, c = s
        i, f, g, o = lib.np.split(h @ w + x @ u + b, 4, -1)
        c = lib.nn.sigmoid(f) * c + lib.nn.sigmoid(i) * lib.np.tanh(g)
        h = lib.nn.sigmoid(o) * lib.np.tanh(c)
        return (h, c), h

    z = lib.np.zeros((xs.shape[1], n))
    return lib.lax.scan(step, (z, z), xs)[1]


def gru(lib, w, u, wn, un, xs):
    def step(h, x):
        r, z = lib.np.split(lib.nn.sigmoid(h @ w + x @ u), 2, -1)
        n = lib.np.tanh(x @ un + r * (h @ wn))
        h = (1 - z) * n + z * h
        return h, h

    return lib.lax.scan(step, lib.np.zeros((xs.shape[1], w.shape[0])), xs)[1]


for h in (16, 64, 256):
    a = 0.1 * normal(h, 4 * h), 0.1 * normal(h, 4 * h), normal(4 * h), normal(50, 8, h)
    plain("loops", f"LSTM, hidden {h}, 50 steps", lstm, *a)
    plain(
        "loops", f"LSTM gradient, hidden {h}", lambda lib, w, u, b, x: lib.root.grad(lambda w, u, b: (lstm(lib, w, u, b, x) ** 2).sum(), (0, 1, 2))(w, u, b), *a
    )
    a = 0.1 * normal(h, 2 * h), 0.1 * normal(h, 2 * h), 0.1 * normal(h, h), 0.1 * normal(h, h), normal(50, 8, h)
    plain("loops", f"GRU, hidden {h}, 50 steps", gru, *a)
plain(
    "loops",
    "scan of 60 scalars, 100 steps",
    lambda lib, *s: lib.lax.fori_loop(0, 100, lambda _, s: tuple(a * 0.9 + b for a, b in zip(s, s[1:] + s[:1], strict=True)), s),
    *(np.float32(k) for k in range(60)),
)


def pendulum(lib, y0, t):
    return lib.module("experimental.ode").odeint(lambda y, t: lib.np.array([y[1], -lib.np.sin(y[0])]), y0, t)


plain("loops", "odeint of a pendulum, 20 times", pendulum, np.array([1.0, 0.0], np.float32), np.linspace(0, 10, 20, dtype=np.float32))
plain(
    "loops",
    "odeint gradient",
    lambda lib, y, t: lib.root.grad(lambda y: pendulum(lib, y, t)[-1].sum())(y),
    np.array([1.0, 0.0], np.float32),
    np.linspace(0, 10, 20, dtype=np.float32),
    tolerance=1e-2,
)


def hmc(lib, q):
    g = lib.root.grad(lambda q: (q**4 / 4 - q**2 / 2).sum())

    def leap(_, s):
        q, p = s
        p = p - 0.05 * g(q)
        q = q + 0.1 * p
        return q, p - 0.05 * g(q)

    def draw(s, k):
        q, key = s
        key, a, b = lib.random.split(key, 3)
        p = lib.random.normal(a, q.shape)
        n, r = lib.lax.fori_loop(0, 10, leap, (q, p))
        e = lambda q, p: (q**4 / 4 - q**2 / 2).sum() + (p**2).sum() / 2
        q = lib.np.where(lib.np.log(lib.random.uniform(b)) < e(q, p) - e(n, r), n, q)
        return (q, key), q

    return lib.lax.scan(draw, (q, lib.random.key(0)), None, length=50)[1]


plain("loops", "HMC, 10 dimensions, 50 draws of 10 leaps", hmc, normal(10), tolerance=1e-1)


def kalman(lib, a, c, ys):
    q, r = 0.1 * lib.np.eye(4), 0.1 * lib.np.eye(2)

    def step(s, y):
        m, p = s
        m, p = a @ m, a @ p @ a.T + q
        k = lib.np.linalg.solve(c @ p @ c.T + r, c @ p).T
        m = m + k @ (y - c @ m)
        return (m, p - k @ c @ p), m

    return lib.lax.scan(step, (lib.np.zeros(4), lib.np.eye(4)), ys)[1]


plain(
    "loops", "Kalman filter, 4 states, 100 steps", kalman, 0.9 * np.eye(4, dtype=np.float32) + 0.05 * normal(4, 4), normal(2, 4), normal(100, 2), tolerance=1e-2
)
plain(
    "loops",
    "power iteration, 256 x 256, 50 steps",
    lambda lib, a, v: lib.lax.fori_loop(0, 50, lambda _, v: (lambda w: w / lib.np.linalg.norm(w))(a @ v), v),
    np.abs(normal(256, 256)),
    np.ones(256, np.float32),
)
plain(
    "loops",
    "gradient descent of least squares, 100 steps",
    lambda lib, a, b, x: lib.lax.fori_loop(0, 100, lambda _, x: x - 1e-3 * a.T @ (a @ x - b), x),
    normal(100, 20),
    normal(100),
    normal(20),
)


def collatz(lib, n):
    return lib.root.vmap(
        lambda n: lib.lax.while_loop(lambda s: s[0] != 1, lambda s: (lib.np.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))[1]
    )(n)


plain("loops", "Collatz under vmap, 4096", collatz, 1 + below(1000, 4096))
plain(
    "loops",
    "cond in a loop of 1000 scalars",
    lambda lib, x: lib.lax.fori_loop(0, 1000, lambda i, x: lib.lax.cond(x > 1, lambda x: x * 0.5, lambda x: x * 3 + 0.1, x), x),
    np.float32(1),
)
plain(
    "loops",
    "cg of 200 x 200, 50 steps",
    lambda lib, a, b: lib.root.scipy.sparse.linalg.cg(lambda x: a @ x, b, maxiter=50)[0],
    (lambda m: m @ m.T + 200 * np.eye(200, dtype=np.float32))(normal(200, 200)),
    normal(200),
)

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


def net(lib, w, x):
    for m in w[:-1]:
        x = lib.np.tanh(x @ m)
    return x @ w[-1]


W = [0.2 * normal(16, 32), 0.2 * normal(32, 32), 0.2 * normal(32, 1)]
plain(
    "derivatives",
    "per-example gradients, 256 of a small net",
    lambda lib, a, b, c, x: lib.root.vmap(lib.root.grad(lambda w, x: net(lib, w, x)[0]), (None, 0))([a, b, c], x),
    *W,
    normal(256, 16),
)
plain("derivatives", "hessian of a net in 16 numbers", lambda lib, a, b, c, x: lib.root.hessian(lambda x: net(lib, [a, b, c], x)[0])(x), *W, normal(16))
plain(
    "derivatives",
    "hessians of a net, 64 points",
    lambda lib, a, b, c, x: lib.root.vmap(lib.root.hessian(lambda x: net(lib, [a, b, c], x)[0]))(x),
    *W,
    normal(64, 16),
)
plain("derivatives", "jacobian of 64 by 64", lambda lib, w, x: lib.root.jacrev(lambda x: lib.np.tanh(w @ x))(x), normal(64, 64), normal(64))
plain(
    "derivatives",
    "Hessian-vector product of an MLP",
    lambda lib, a, b, x, v, w: lib.root.jvp(lib.root.grad(lambda p: (net(lib, p, x) ** 2).mean()), ([a, b],), ([v, w],))[1],
    0.1 * normal(128, 128),
    0.1 * normal(128, 128),
    normal(64, 128),
    normal(128, 128),
    normal(128, 128),
)


def block(lib, p, x):
    q, k, v = (lib.np.reshape(x @ w, (*x.shape[:2], 8, 32)) for w in p[:3])
    a = lib.nn.softmax(lib.np.einsum("bqhd,bkhd->bhqk", q, k) / 5.6)
    x = x + lib.np.reshape(lib.np.einsum("bhqk,bkhd->bqhd", a, v), x.shape) @ p[3]
    n = lambda x: (x - x.mean(-1, keepdims=True)) * lib.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    return n(x + lib.nn.gelu(n(x) @ p[4]) @ p[5])


P = [0.05 * normal(256, 256) for _ in range(4)] + [0.05 * normal(256, 1024), 0.05 * normal(1024, 256)]
plain("training", "transformer block, 8 x 64 x 256", lambda lib, x, *p: block(lib, p, x), normal(8, 64, 256), *P)
plain(
    "training",
    "transformer block gradient, 8 x 64 x 256",
    lambda lib, x, *p: lib.root.grad(lambda p: (block(lib, p, x) ** 2).mean())(p),
    normal(8, 64, 256),
    *P,
)


def resnet(lib, x, w1, w2, g1, g2):
    bn = lambda x, g: (x - x.mean((0, 1, 2))) * lib.lax.rsqrt(x.var((0, 1, 2)) + 1e-5) * g
    h = lib.nn.relu(bn(conv(lib, x, w1), g1))
    return lib.nn.relu(x + bn(conv(lib, h, w2), g2))


R = images, weights, 0.1 * normal(3, 3, 32, 32), np.ones(32, np.float32), np.ones(32, np.float32)
plain("training", "ResNet block, 8 x 32 x 32 x 32", resnet, *R)
plain("training", "ResNet block gradient", lambda lib, x, *p: lib.root.grad(lambda p: (resnet(lib, x, *p) ** 2).mean())(p), *R)


def cnn(lib, x, y, *p):
    def loss(p):
        h = pool(lib, lib.nn.relu(conv(lib, x, p[0])))
        h = pool(lib, lib.nn.relu(conv(lib, h, p[1])))
        return -lib.np.take_along_axis(lib.nn.log_softmax(h.reshape(len(x), -1) @ p[2]), y[:, None], 1).mean()

    return [w - 0.1 * g for w, g in zip(p, lib.root.grad(loss)(list(p)), strict=True)]


plain(
    "training",
    "digits CNN step, 64 x 28 x 28",
    cnn,
    normal(64, 28, 28, 1),
    below(10, 64),
    0.1 * normal(3, 3, 1, 16),
    0.1 * normal(3, 3, 16, 32),
    0.1 * normal(7 * 7 * 32, 10),
)


def gcn(lib, x, s, t, a, b):
    def loss(w):
        agg = lambda h: lib.ops.segment_sum(h[s], t, 1000)
        return (agg(lib.nn.relu(agg(x @ w[0])) @ w[1]) ** 2).mean()

    return lib.root.grad(loss)([a, b])


plain("training", "GCN step, 1000 nodes, 10000 edges", gcn, normal(1000, 32), below(1000, 10000), below(1000, 10000), normal(32, 32), normal(32, 8))
plain(
    "training",
    "digits MLP step, 128 of 784",
    lambda lib, x, y, *p: [
        w - 0.1 * g
        for w, g in zip(
            p,
            lib.root.grad(lambda p: -lib.np.take_along_axis(lib.nn.log_softmax(lib.nn.relu(x @ p[0] + p[1]) @ p[2] + p[3]), y[:, None], 1).mean())(list(p)),
            strict=True,
        )
    ],
    normal(128, 784),
    below(10, 128),
    0.05 * normal(784, 128),
    normal(128),
    normal(128, 10),
    normal(10),
)
plain(
    "training",
    "logistic regression gradient, 10000 x 50",
    lambda lib, x, y, w: lib.root.grad(lambda w: lib.np.logaddexp(0.0, -y * (x @ w)).mean())(w),
    normal(10000, 50),
    normal(10000),
    normal(50),
)
plain(
    "training",
    "SGD with momentum, 100 tensors of 1000",
    lambda lib, *t: [x for p, m in zip(t[:100], t[100:], strict=True) for x in (p - 0.1 * (0.9 * m + p), 0.9 * m + p)],
    *(normal(1000) for _ in range(200)),
)
plain(
    "training",
    "VAE-like step, 64 x 784",
    lambda lib, x, a, b, c: lib.root.grad(lambda p: ((lib.nn.sigmoid(lib.np.tanh(x @ p[0]) @ p[1] @ p[2]) - x) ** 2).sum())([a, b, c]),
    RANDOM.random((64, 784), np.float32),
    0.05 * normal(784, 128),
    0.05 * normal(128, 32),
    0.05 * normal(32, 784),
)

# ---- algorithms ----


def rule110(lib, x):
    def step(x, _):
        l, r = lib.np.roll(x, 1), lib.np.roll(x, -1)
        x = (110 >> (4 * l + 2 * x + r)) & 1
        return x, x

    return lib.lax.scan(step, x, None, length=100)[1]


plain("algorithms", "rule 110, 1000 cells, 100 steps", rule110, below(2, 1000))


def bellman(lib, s, t, w):
    def step(_, d):
        return lib.np.minimum(d, lib.ops.segment_min(d[s] + w, t, 2000))

    return lib.lax.fori_loop(0, 20, step, lib.np.full(2000, 1e9).at[0].set(0))


plain("algorithms", "shortest paths, 20000 edges, 20 rounds", bellman, below(2000, 20000), below(2000, 20000), RANDOM.random(20000, np.float32))


def viterbi(lib, a, ys):
    def step(d, y):
        m = d[:, None] + a
        return m.max(0) + y, m.argmax(0)

    return lib.lax.scan(step, ys[0], ys[1:])


plain("algorithms", "Viterbi, 32 states, 200 steps", viterbi, normal(32, 32), normal(200, 32))


def forward(lib, a, ys):
    def step(d, y):
        return lib.special.logsumexp(d[:, None] + a, 0) + y, None

    return lib.lax.scan(step, ys[0], ys[1:])[0]


plain("algorithms", "HMM forward, 32 states, 200 steps", forward, normal(32, 32), normal(200, 32))
plain("algorithms", "HMM forward gradient", lambda lib, a, y: lib.root.grad(lambda a: forward(lib, a, y).sum())(a), normal(32, 32), normal(200, 32))


def floyd(lib, d):
    return lib.lax.fori_loop(0, d.shape[0], lambda k, d: lib.np.minimum(d, d[:, k][:, None] + d[k][None]), d)


plain("algorithms", "Floyd-Warshall, 128", floyd, RANDOM.random((128, 128), np.float32))


def kmeans(lib, x, c):
    def step(_, c):
        i = ((x[:, None] - c) ** 2).sum(-1).argmin(1)
        return lib.ops.segment_sum(x, i, 16) / lib.np.maximum(lib.ops.segment_sum(lib.np.ones(len(x)), i, 16), 1)[:, None]

    return lib.lax.fori_loop(0, 10, step, c)


plain("algorithms", "k-means, 10000 x 2, 16 centres, 10 rounds", kmeans, normal(10000, 2), normal(16, 2), tolerance=1e-2)


def sinkhorn_log(lib, c):
    def step(_, s):
        f, g = s
        f = -lib.special.logsumexp(g[None] - c, 1)
        return f, -lib.special.logsumexp(f[:, None] - c, 0)

    return lib.lax.fori_loop(0, 10, step, (lib.np.zeros(200), lib.np.zeros(200)))


plain("algorithms", "optimal transport in logs, 200 x 200, 10 rounds", sinkhorn_log, RANDOM.random((200, 200), np.float32))


def jacobi3(lib, x):
    r = lib.np.roll
    return lib.lax.fori_loop(0, 10, lambda _, x: sum(r(x, s, k) for k in range(3) for s in (1, -1)) / 6, x)


plain("algorithms", "diffusion, 64^3, 10 steps", jacobi3, normal(64, 64, 64))


def advect(lib, u, x, y):
    j = lib.np
    i0, j0 = j.floor(x).astype("int32"), j.floor(y).astype("int32")
    a, b = x - i0, y - j0
    g = lambda i, k: u[i % 256, k % 256]
    return (1 - a) * ((1 - b) * g(i0, j0) + b * g(i0, j0 + 1)) + a * ((1 - b) * g(i0 + 1, j0) + b * g(i0 + 1, j0 + 1))


plain(
    "algorithms",
    "advection by sampling, 256 x 256",
    advect,
    normal(256, 256),
    256 * RANDOM.random((256, 256), np.float32),
    256 * RANDOM.random((256, 256), np.float32),
)
plain(
    "algorithms",
    "gradient of advection",
    lambda lib, u, x, y: lib.root.grad(lambda u: (advect(lib, u, x, y) ** 2).sum())(u),
    normal(256, 256),
    256 * RANDOM.random((256, 256), np.float32),
    256 * RANDOM.random((256, 256), np.float32),
)


def pulled(lib, s):
    x, v = s
    d = x[None] - x[:, None]
    v = v + 0.01 * (d / ((d**2).sum(-1, keepdims=True) + 0.01) ** 1.5).sum(1)
    return x + 0.01 * v, v


plain(
    "algorithms",
    "n-body, 128 bodies, 10 steps",
    lambda lib, x, v: lib.lax.fori_loop(0, 10, lambda _, s: pulled(lib, s), (x, v)),
    normal(128, 3),
    0.1 * normal(128, 3),
)
plain(
    "algorithms",
    "n-body gradient, 128, 10 steps",
    lambda lib, x, v: lib.root.grad(lambda v: (lib.lax.scan(lambda s, _: (pulled(lib, s), None), (x, v), None, length=10)[0][0] ** 2).sum())(v),
    normal(128, 3),
    0.1 * normal(128, 3),
    tolerance=1e-2,
)


def ising(lib, s):
    def step(s, k):
        n = sum(lib.np.roll(s, d, a) for d in (1, -1) for a in (0, 1))
        u = lib.random.uniform(k, s.shape)
        return lib.np.where(u < lib.np.exp(-0.8 * s * n), -s, s), None

    return lib.lax.scan(step, s, lib.random.split(lib.random.key(0), 20))[0]


plain("algorithms", "Ising, 128 x 128, 20 sweeps", ising, 2.0 * below(2, 128, 128).astype(np.float32) - 1)


def lattice(lib, f):
    w = lib.np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    e = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    ev = lib.np.array(e, dtype="float32")

    def step(_, f):
        rho = f.sum(0)
        u = lib.np.einsum("kxy,kd->dxy", f, ev) / rho
        eu = lib.np.einsum("kd,dxy->kxy", ev, u)
        feq = w[:, None, None] * rho * (1 + 3 * eu + 4.5 * eu**2 - 1.5 * (u**2).sum(0))
        f = f - 0.6 * (f - feq)
        return lib.np.stack([lib.np.roll(f[k], e[k], (0, 1)) for k in range(9)])

    return lib.lax.fori_loop(0, 5, step, f)


plain("algorithms", "lattice Boltzmann D2Q9, 128 x 128, 5 steps", lattice, 1 + 0.1 * RANDOM.random((9, 128, 128), np.float32))
plain(
    "algorithms",
    "Gaussian process kernel and solve, 200",
    lambda lib, x, y: lib.root.scipy.linalg.cho_solve(
        lib.root.scipy.linalg.cho_factor(lib.np.exp(-0.5 * ((x[:, None] - x[None]) ** 2)) + 0.1 * lib.np.eye(200)), y
    ),
    normal(200),
    normal(200),
    tolerance=1e-2,
)
plain("algorithms", "Monte Carlo pi, 1M", lambda lib: (lib.random.uniform(lib.random.key(1), (1 << 20, 2)) ** 2).sum(-1).__lt__(1).mean() * 4)


def black(lib, s, k, t):
    n = lambda x: 0.5 * (1 + lib.special.erf(x / 1.41421356))
    d = (lib.np.log(s / k) + 0.02 * t) / (0.2 * lib.np.sqrt(t))
    return s * n(d) - k * lib.np.exp(-0.01 * t) * n(d - 0.2 * lib.np.sqrt(t))


plain("algorithms", "Black-Scholes, 262144", black, *(1 + RANDOM.random(1 << 18, np.float32) for _ in range(3)))
plain(
    "algorithms",
    "Black-Scholes greeks, 65536",
    lambda lib, s, k, t: lib.root.vmap(lib.root.grad(lambda s, k, t: black(lib, s, k, t), (0, 1, 2)))(s, k, t),
    *(1 + RANDOM.random(1 << 16, np.float32) for _ in range(3)),
)

# ---- compiling ----

plain("compiling", "1000 parameters by one step", lambda lib, *t: [x * 0.9 - 0.1 for x in t], *(np.float32(k) for k in range(1000)))


def unrolled(lib, x):
    for _ in range(1000):
        x = lib.np.sin(x) * 0.9
    return x


plain("compiling", "1000 steps, unrolled, of 100", unrolled, normal(100))
plain("dispatch", "x + y, 16", lambda lib, x, y: x + y, normal(16), normal(16))
plain("dispatch", "tree of 50 leaves of 16", lambda lib, *t: [x + 1 for x in t], *(normal(16) for _ in range(50)))
plain("dispatch", "5 small products, 8 x 8", lambda lib, a, b: a @ b @ a @ b @ a @ b, 0.3 * normal(8, 8), 0.3 * normal(8, 8))
