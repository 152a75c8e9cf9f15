"""Flax nnx: layers, transformations of modules, state, variables as arrays."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn, nnx
from outcomes import Programs

rng = np.random.RandomState(0)
x = jnp.asarray(rng.randn(4, 6), jnp.float32)
img = jnp.asarray(rng.randn(2, 8, 8, 3), jnp.float32)
seq = jnp.asarray(rng.randn(2, 5, 4), jnp.float32)
ids = jnp.array([[1, 2, 0], [3, 1, 2]])


def programs(t):
    R = lambda: nnx.Rngs(0)
    mods = dict(
        lin=lambda: nnx.Linear(6, 3, rngs=R()),
        lingen=lambda: nnx.LinearGeneral(6, (2, 3), rngs=R()),
        ln=lambda: nnx.LayerNorm(6, rngs=R()),
        rms=lambda: nnx.RMSNorm(6, rngs=R()),
        gn=lambda: nnx.GroupNorm(6, num_groups=3, rngs=R()),
        bn=lambda: nnx.BatchNorm(6, rngs=R()),
        do=lambda: nnx.Dropout(0.5, rngs=R()),
        lora=lambda: nnx.LoRA(6, 2, 3, rngs=R()),
        einsum=lambda: nnx.Einsum("bi,ij->bj", (6, 3), rngs=R()),
        seqm=lambda: nnx.Sequential(nnx.Linear(6, 4, rngs=R()), nnx.relu, nnx.Linear(4, 2, rngs=R())),
        ident=lambda: nnx.identity,
    )
    for n, mk in mods.items():
        t(n, lambda: mk()(x))
        if n != "ident":
            if n == "do":  # it has no parameters
                t(n + " grad", lambda: jax.grad(lambda x: (mk()(x) ** 2).sum())(x))
            else:
                t(n + " grad", lambda: nnx.grad(lambda m: (m(x) ** 2).sum())(mk()))
                t(n + " state", lambda: nnx.to_pure_dict(nnx.state(mk(), nnx.Param)))
            t(n + " jit", lambda: nnx.jit(lambda m, x: m(x))(mk(), x))
    t("conv", lambda: nnx.Conv(3, 4, (3, 3), rngs=R())(img))
    t("convt", lambda: nnx.ConvTranspose(3, 4, (3, 3), rngs=R())(img))
    t("embed", lambda: nnx.Embed(5, 3, rngs=R())(ids))
    t("mha", lambda: nnx.MultiHeadAttention(2, 4, 8, decode=False, rngs=R())(seq))
    t("inorm", lambda: nnx.InstanceNorm(3, rngs=R())(img))
    t("sn", lambda: nnx.SpectralNorm(nnx.Linear(6, 3, rngs=R()), rngs=R())(x))
    t("wn", lambda: nnx.WeightNorm(nnx.Linear(6, 3, rngs=R()), rngs=R())(x))
    for c in ("LSTMCell", "GRUCell", "SimpleCell", "OptimizedLSTMCell"):
        t(c, lambda: nnx.RNN(getattr(nnx, c)(4, 3, rngs=R()))(seq))
    t("bidir", lambda: nnx.Bidirectional(nnx.RNN(nnx.LSTMCell(4, 3, rngs=R())), nnx.RNN(nnx.GRUCell(4, 3, rngs=R())))(seq))

    def dec():
        m = nnx.MultiHeadAttention(2, 4, 8, decode=True, rngs=R())
        m.init_cache((2, 5, 4))
        return m(seq[:, :1])

    t("decode", dec)

    class Block(nnx.Module):
        def __init__(self, d, rngs):
            self.l = nnx.Linear(d, d, rngs=rngs)
            self.bn = nnx.BatchNorm(d, rngs=rngs)
            self.do = nnx.Dropout(0.1, rngs=rngs)
            self.c = nnx.Variable(jnp.array(0))

        def __call__(self, x):
            self.c[...] += 1
            return nnx.relu(self.do(self.bn(self.l(x))))

    class Stack(nnx.Module):
        def __init__(self, rngs):
            @nnx.split_rngs(splits=3)
            @nnx.vmap(in_axes=(0,), out_axes=0)
            def mk(r):
                return nnx.Linear(6, 6, rngs=r)

            self.ls = mk(rngs)

        def __call__(self, x):
            @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
            def f(x, l):
                return nnx.tanh(l(x))

            return f(x, self.ls)

    t("stack", lambda: Stack(R())(x))
    t("stackg", lambda: nnx.grad(lambda m: m(x).sum())(Stack(R())))
    t("block", lambda: (lambda b: (b(x), b.c, b.bn.mean))(Block(6, R())))

    def train():
        m = nnx.Sequential(Block(6, R()), nnx.Linear(6, 1, rngs=R()))
        o = nnx.Optimizer(m, optax.adam(1e-2), wrt=nnx.Param)
        met = nnx.MultiMetric(loss=nnx.metrics.Average("loss"))

        @nnx.jit
        def step(m, o, met):
            l, g = nnx.value_and_grad(lambda m: (m(x) ** 2).mean())(m)
            o.update(m, g)
            met.update(loss=l)
            return l

        ls = [step(m, o, met) for _ in range(3)]
        return ls, met.compute(), m.layers[0].c if hasattr(m.layers[0], "c") else 0

    t("train", train)
    t("split", lambda: (lambda g, p, r: nnx.merge(g, p, r)(x))(*nnx.split(Block(6, R()), nnx.Param, ...)))
    t("update", lambda: (lambda m: nnx.update(m, jax.tree.map(lambda v: v * 0, nnx.state(m, nnx.Param))) or m(x))(nnx.Linear(6, 3, rngs=R())))
    t("clone", lambda: nnx.clone(nnx.Linear(6, 3, rngs=R()))(x))
    t("iter", lambda: str([p for p, _ in nnx.iter_graph(nnx.Linear(6, 3, rngs=R()))]))
    t("display", lambda: re.sub(r"\x1b\[[0-9;]*m| at 0x\w+", "", str(nnx.Linear(6, 3, rngs=R()))).split())
    t("tab", lambda: re.findall(r"[\w.,\[\]]+", nnx.tabulate(nnx.Linear(6, 3, rngs=R()), x)))
    t("remat", lambda: nnx.grad(lambda m: nnx.remat(lambda m, x: m(x))(m, x).sum())(nnx.Linear(6, 3, rngs=R())))
    t("cond", lambda: nnx.cond(True, lambda m, x: m(x), lambda m, x: m(x) * 0, nnx.Linear(6, 3, rngs=R()), x))
    t("switch", lambda: nnx.switch(1, [lambda m, x: m(x), lambda m, x: m(x) * 2], nnx.Linear(6, 3, rngs=R()), x))
    t("while", lambda: nnx.while_loop(lambda c: c[1] < 3, lambda c: (c[0], c[1] + 1, c[0](c[2])), (nnx.Linear(6, 6, rngs=R()), 0, x))[2])
    t("fori", lambda: nnx.fori_loop(0, 3, lambda i, c: (c[0], c[0](c[1])), (nnx.Linear(6, 6, rngs=R()), x))[1])
    t("evalshape", lambda: str(nnx.eval_shape(lambda: nnx.Linear(6, 3, rngs=R())).kernel))
    t("jitinit", lambda: nnx.jit(lambda: nnx.Linear(6, 3, rngs=R()))()(x))

    def weighted():
        @nnx.custom_vjp
        def f(m):
            return (m.kernel[...] ** 2).sum()

        f.defvjp(lambda m: (f(m), m), lambda m, g: (jax.tree.map(lambda v: 3 * g[1] * v, nnx.state(m)),))
        return nnx.grad(f)(nnx.Linear(6, 3, rngs=R()))

    t("custom vjp", weighted)
    t("vmapm", lambda: nnx.vmap(lambda m, x: m(x), in_axes=(None, 0))(nnx.Linear(6, 3, rngs=R()), x))
    t(
        "pop",
        lambda: (lambda m: (m(x), nnx.pop(m, nnx.Intermediate)))(
            type("S", (nnx.Module,), {"__init__": lambda s: None, "__call__": lambda s, x: s.sow(nnx.Intermediate, "h", x) or x})()
        ),
    )
    t("filters", lambda: len(jax.tree.leaves(nnx.state(Block(6, R()), nnx.Any(nnx.Param, nnx.BatchStat)))))
    t("rngs", lambda: (nnx.Rngs(0, params=1).params(), nnx.Rngs(params=3).fork().params()))
    t("tonnx", lambda: nnx.bridge.ToNNX(nn.Dense(3), rngs=R()).lazy_init(x)(x))
    t("tolinen", lambda: nnx.bridge.to_linen(nnx.Linear, 6, 3).init_with_output(jax.random.key(0), x)[0])
    t("vjp", lambda: (lambda y, pull: (y, pull(jnp.ones_like(y))))(*nnx.vjp(lambda m, x: m(x), nnx.Linear(6, 3, rngs=R()), x, graph_updates=False)))
    t("pmap", lambda: nnx.pmap(lambda m, x: m(x), in_axes=(None, 0))(nnx.Linear(6, 3, rngs=R()), x[None]))
    t("ckpt", lambda: jax.tree.map(jnp.shape, nnx.to_pure_dict(nnx.state(nnx.Linear(6, 3, rngs=R())))))
    t("shape err", lambda: nnx.Linear(6, 3, rngs=R())(x[:, :3]), raises=TypeError, why="the layer has six inputs")
    t("tracelevel", lambda: jax.jit(lambda x: (lambda m: m)(x))(1.0))

    def lvl():
        m = nnx.Linear(6, 3, rngs=R())

        @jax.jit
        def f(x):
            m.kernel.value = m.kernel.value + 1
            return x

        return f(x)

    t("lvl", lvl, raises="TraceContextError", why="the module belongs to an outer trace")
    t("hijax", lambda: nnx.jit(lambda v: v[...] + 1)(nnx.Variable(jnp.ones(2))))
    t("merge err", lambda: nnx.merge(nnx.split(Block(6, R()))[0], {}), raises=ValueError, why="the state is empty")
    t("metric", lambda: (lambda a: (a.update(logits=jnp.eye(3), labels=jnp.arange(3)), a.compute())[1])(nnx.metrics.Accuracy()))
    t("welford", lambda: (lambda a: (a.update(values=x), a.compute().mean)[1])(nnx.metrics.Welford()))
    p = nnx.Param(jnp.arange(4.0).reshape(2, 2) + 1)
    fs = dict(
        sin=lambda: jnp.sin(p),
        add=lambda: jnp.add(p, 1),
        sum=lambda: jnp.sum(p),
        mean=lambda: jnp.mean(p),
        relu=lambda: jax.nn.relu(p),
        softmax=lambda: jax.nn.softmax(p),
        matmul=lambda: jnp.matmul(p, p),
        dot=lambda: jnp.dot(p, p),
        einsum=lambda: jnp.einsum("ij,jk->ik", p, p),
        where=lambda: jnp.where(p[...] > 1, p, 0),
        clip=lambda: jnp.clip(p, 0, 2),
        stopg=lambda: jax.lax.stop_gradient(p),
        max=lambda: jnp.max(p),
        norm=lambda: jnp.linalg.norm(p),
        inv=lambda: jnp.linalg.inv(p),
        cumsum=lambda: jnp.cumsum(p),
        sort=lambda: jnp.sort(p),
        maximum=lambda: jnp.maximum(p, 2),
        op=lambda: p + p,
        op2=lambda: jnp.ones((2, 2)) * p,
        idx=lambda: p[0],
        T=lambda: p.T,
        take=lambda: jnp.take(p, 0, axis=0),
        gelu=lambda: jax.nn.gelu(p),
        tile=lambda: jnp.tile(p, 2),
        zl=lambda: jnp.zeros_like(p),
        pow=lambda: p**2,
        power=lambda: jnp.power(p, 2),
        mod=lambda: jnp.mod(p, 2),
        conv=lambda: jax.lax.conv_general_dilated(jnp.ones((1, 1, 4, 4)), p[None, None], (1, 1), "SAME"),
        allclose=lambda: jnp.allclose(p, p),
        isnan=lambda: jnp.isnan(p),
        outer=lambda: jnp.outer(p, p),
        tensordot=lambda: jnp.tensordot(p, p, 1),
        vdot=lambda: jnp.vdot(p, p),
        std=lambda: jnp.std(p),
        logsumexp=lambda: jax.nn.logsumexp(p),
        bincount=lambda: 0,
        roll=lambda: jnp.roll(p, 1),
        flip=lambda: jnp.flip(p),
        pad=lambda: jnp.pad(p, 1),
        tril=lambda: jnp.tril(p),
        trace=lambda: jnp.trace(p),
        det=lambda: jnp.linalg.det(p),
        argsort=lambda: jnp.argsort(p),
        prod=lambda: jnp.prod(p),
        any=lambda: jnp.any(p),
        abs=lambda: jnp.abs(p),
        round=lambda: jnp.round(p),
        exp=lambda: jnp.exp(p),
        interp=lambda: jnp.interp(1.0, p[0], p[1]),
        scan=lambda: jax.lax.scan(lambda c, x: (c, x), 0.0, p)[1],
        rnd=lambda: jax.random.normal(jax.random.key(0), (2,)) * p[0],
    )
    for n, f in fs.items():
        t("param " + n, f)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_flax_nnx(name):
    PROGRAMS.check(name)
