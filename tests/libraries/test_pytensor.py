"""PyTensor's JAX linker: elementwise functions, indexing, linear algebra, scans, shared variables."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from outcomes import Programs

rng = np.random.RandomState(0)
M = rng.randn(3, 3)
S = M @ M.T + 3 * np.eye(3)
V = rng.randn(3)


def compiled(build, *values):
    args = [pt.as_tensor(v).type() for v in values]
    out = build(*args)
    return pytensor.function(args, out, mode="JAX")(*values)


def programs(t):
    for name, build, values in [
        ("elementwise", lambda x, y: pt.exp(x) * y + pt.sigmoid(x), (V, V)),
        ("reduce", lambda x: [x.sum(0), x.max(1), pt.argmax(x, axis=1), x.mean(), x.prod(axis=0)], (M,)),
        ("dot", lambda a, b: a @ b, (M, V)),
        ("grad", lambda x: pytensor.grad((x**3).sum(), x), (V,)),
        ("special", lambda x: [pt.erf(x), pt.gammaln(x**2 + 1), pt.psi(x**2 + 1), pt.log1p(x**2), pt.erfcinv(pt.sigmoid(x))], (V,)),
        ("index", lambda x: [x[0], x[:, 1], x[::-1], x[[0, 2]]], (M,)),
        ("set", lambda x, v: pt.set_subtensor(x[0], v), (M, V)),
        ("inc", lambda x, v: pt.inc_subtensor(x[:, 1], v), (M, V)),
        ("cholesky", lambda x: pt.linalg.cholesky(x), (S,)),
        ("solve", lambda a, b: pt.linalg.solve(a, b), (S, V)),
        ("triangular", lambda a, b: pt.linalg.solve_triangular(a, b, lower=True), (np.tril(S), V)),
        ("det", lambda a: [pt.linalg.det(a), pt.linalg.slogdet(a)[1]], (S,)),
        ("eigh", lambda a: pt.linalg.eigh(a)[0], (S,)),
        ("inverse", lambda a: pt.linalg.inv(a), (S,)),
        ("svd", lambda a: pt.linalg.svd(a, compute_uv=False), (M,)),
        ("switch", lambda x: pt.switch(x > 0, x, -2 * x), (V,)),
        ("softmax", lambda x: [pt.special.softmax(x, axis=-1), pt.special.log_softmax(x, axis=-1)], (M,)),
        ("join", lambda x, y: [pt.concatenate([x, y]), pt.stack([x, y])], (V, V)),
        ("shapes", lambda x: [x.T, x.reshape((9,)), x.dimshuffle(0, "x", 1), pt.diag(x)], (M,)),
        ("sort", lambda x: [pt.sort(x), pt.argsort(x), pt.cumsum(x)], (V,)),
        ("arange", lambda x: pt.arange(4) + x[0], (V,)),
        ("clip", lambda x: [pt.clip(x, -0.5, 0.5), pt.sign(x), pt.round(x)], (V,)),
        ("logsumexp", lambda x: pt.logsumexp(x, axis=0), (M,)),
        ("cosine", lambda x: pt.cos(x), (V,)),
        ("einsum", lambda a, b: pt.einsum("ij,jk->ik", a, b), (M, M)),
        ("batched", lambda a: pt.linalg.cholesky(a), (np.stack([S, 2 * S]),)),
        ("convolve", lambda a, b: pt.signal.convolve1d(a, b, mode="full"), (V, V)),
    ]:
        t(name, lambda build=build, values=values: compiled(build, *values))

    def scan():
        x0, n = pt.dvector("x0"), 4
        out = pytensor.scan(lambda x, a: pt.tanh(x + a), outputs_info=[x0], non_sequences=[0.1], n_steps=n, return_updates=False)
        return pytensor.function([x0], [out, pytensor.grad(out[-1].sum(), x0)], mode="JAX")(V)

    t("scan", scan)

    def shared():
        w = pytensor.shared(V.copy(), name="w")
        f = pytensor.function([], (w**2).sum(), updates={w: w - 0.1 * pytensor.grad((w**2).sum(), w)}, mode="JAX")
        return [f(), f(), w.get_value()]

    t("shared", shared)

    def random():
        r = pt.random.utils.RandomStream(seed=0) if hasattr(pt.random.utils, "RandomStream") else None
        f = pytensor.function([], [r.normal(size=(3,)).shape, (r.uniform(size=(200,)) < 0.5).mean() > 0.3], mode="JAX")
        return f()

    t("random", random)
    t("assert", lambda: compiled(lambda x: pt.specify_shape(x, (3,)) + 1, V))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_pytensor(name):
    PROGRAMS.check(name)
