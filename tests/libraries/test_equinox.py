"""Equinox: layers, filtered transformations, serialization, errors inside of programs, loops."""

import io

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)
x = jnp.asarray(rng.randn(4), jnp.float32)
img = jnp.asarray(rng.randn(3, 8, 8), jnp.float32)
seq = jnp.asarray(rng.randn(5, 4), jnp.float32)


def programs(t):
    nn = eqx.nn
    for n, m, a in [
        ("lin", nn.Linear(4, 3, key=K), x),
        ("mlp", nn.MLP(4, 2, 8, 2, key=K), x),
        ("conv", nn.Conv2d(3, 4, 3, key=K), img),
        ("conv1", nn.Conv1d(5, 2, 3, key=K), seq),
        ("convt", nn.ConvTranspose2d(3, 4, 3, stride=2, key=K), img),
        ("ln", nn.LayerNorm(4), x),
        ("rms", nn.RMSNorm(4), x),
        ("gn", nn.GroupNorm(3, 3), img),
        ("ident", nn.Identity(), x),
        ("prelu", nn.PReLU(), x),
        ("avg", nn.AvgPool2d(2, 2), img),
        ("max", nn.MaxPool2d(3, 2, padding=1), img),
        ("adapt", nn.AdaptiveAvgPool2d(3), img),
        ("lam", nn.Lambda(jnp.sin), x),
        ("emb", nn.Embedding(5, 3, key=K), jnp.array(2)),
        ("seqn", nn.Sequential([nn.Linear(4, 3, key=K), nn.Lambda(jax.nn.relu)]), x),
        ("wn", nn.WeightNorm(nn.Linear(4, 3, key=K)), x),
    ]:
        t(n, lambda: m(a))
        if jax.tree.leaves(eqx.filter(m, eqx.is_inexact_array)):
            t(n + " grad", lambda: eqx.filter_grad(lambda m: jnp.sin(m(a)).sum())(m))
        else:
            t(n + " grad", lambda: jax.grad(lambda a: jnp.sin(m(a)).sum())(a))
        t(n + " jit", lambda: eqx.filter_jit(m)(a))
    t("gru", lambda: nn.GRUCell(4, 3, key=K)(x, jnp.zeros(3)))
    t("lstm", lambda: nn.LSTMCell(4, 3, key=K)(x, (jnp.zeros(3), jnp.zeros(3))))
    t("attn", lambda: nn.MultiheadAttention(2, 4, key=K)(seq, seq, seq))
    t("attnm", lambda: nn.MultiheadAttention(2, 4, dropout_p=0.5, key=K)(seq, seq, seq, mask=jnp.tril(jnp.ones((5, 5), bool)), key=K))
    t("rope", lambda: nn.RotaryPositionalEmbedding(4)(seq))
    t("drop", lambda: nn.Dropout(0.5)(x, key=K))
    t("dropi", lambda: nn.Dropout(0.5)(x, inference=True))
    t("dropinf", lambda: eqx.nn.inference_mode(nn.Dropout(0.5))(x))
    bn, st = nn.make_with_state(nn.BatchNorm)(4, "b", mode="batch")
    t("bn", lambda: jax.vmap(bn, axis_name="b", in_axes=(0, None), out_axes=(0, None))(seq, st)[0])
    bne, ste = nn.make_with_state(nn.BatchNorm)(4, "b", mode="ema")
    t("bnema", lambda: jax.vmap(bne, axis_name="b", in_axes=(0, None), out_axes=(0, None))(seq, ste)[0])
    sn, sst = nn.make_with_state(nn.SpectralNorm)(nn.Linear(4, 3, key=K), "weight", key=K)
    t("sn", lambda: sn(x, sst)[0])
    m = nn.MLP(4, 2, 8, 2, key=K)
    t("count", lambda: sum(p.size for p in jax.tree.leaves(eqx.filter(m, eqx.is_array))))
    t("repr", lambda: repr(nn.Linear(4, 3, key=K)))
    t("str", lambda: eqx.tree_pformat(nn.GRUCell(4, 3, key=K)))
    t("part", lambda: eqx.combine(*eqx.partition(m, eqx.is_inexact_array))(x))
    t("tree_at", lambda: eqx.tree_at(lambda m: m.layers[0].bias, m, replace_fn=lambda b: b + 1)(x))
    t("eq", lambda: (eqx.tree_equal(m, m), eqx.tree_equal(x, x + 1)))
    t("vg", lambda: eqx.filter_value_and_grad(lambda m: m(x).sum())(m)[0])
    t("jvp", lambda: eqx.filter_jvp(lambda m, x: m(x), (m, x), (jax.tree.map(lambda l: l if eqx.is_inexact_array(l) else None, m), x))[1])
    t("vjp", lambda: eqx.filter_vjp(lambda m: m(x), m)[1](jnp.ones(2)))
    t("jacrev", lambda: eqx.filter_jacrev(lambda x: m(x))(x))
    t("jacfwd", lambda: eqx.filter_jacfwd(lambda x: m(x))(x))
    t("hess", lambda: eqx.filter_hessian(lambda x: m(x).sum())(x))
    t("ens", lambda: eqx.filter_vmap(lambda k: nn.Linear(4, 3, key=k))(jax.random.split(K, 3)))
    ens = eqx.filter_vmap(lambda k: nn.Linear(4, 3, key=k))(jax.random.split(K, 3))
    t("ensap", lambda: eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(ens, x))
    t("jaxpr", lambda: [str(e.primitive) for e in eqx.filter_make_jaxpr(lambda m, x: m(x))(nn.Linear(4, 3, key=K), x)[0].eqns])
    t("es", lambda: eqx.filter_eval_shape(m, x))
    t("lower", lambda: eqx.filter_jit(lambda m, x: m(x)).lower(m, x).compile()(m, x))
    t("ckpt", lambda: eqx.filter_grad(lambda m: eqx.filter_checkpoint(lambda m: m(x).sum())(m))(m).layers[0].bias)
    t(
        "pure",
        lambda: eqx.filter_jit(lambda x: eqx.filter_pure_callback(lambda x: np.asarray(x) * 2, x, result_shape_dtypes=jax.ShapeDtypeStruct((4,), jnp.float32)))(
            x
        ),
    )
    t("cc", lambda: eqx.filter_closure_convert(lambda x: m(x), x)(x))

    def ser():
        b = io.BytesIO()
        eqx.tree_serialise_leaves(b, m)
        b.seek(0)
        return eqx.tree_deserialise_leaves(b, nn.MLP(4, 2, 8, 2, key=jax.random.key(5)))(x)

    t("ser", ser)

    def serf():
        b = io.BytesIO()
        eqx.tree_serialise_leaves(b, m)
        b.seek(0)
        return eqx.tree_deserialise_leaves(b, nn.MLP(4, 2, 9, 2, key=jax.random.key(5)))(x)

    t("serf", serf, raises=RuntimeError, why="the stored module has another structure")

    class M(eqx.Module):
        w: jax.Array
        n: int = eqx.field(static=True)
        f: callable = jax.nn.relu

        def __init__(self, k):
            self.w = jax.random.normal(k, (3,))
            self.n = 3

        def __check_init__(self):
            if self.n != 3:
                raise ValueError

        @jax.jit
        def __call__(self, x):
            return self.f(self.w * x * self.n)

        @property
        def q(self):
            return self.w.sum()

    mm = M(K)
    t("mod", lambda: mm(2.0))
    t("q", lambda: mm.q)
    t("frozen", lambda: setattr(mm, "n", 4), raises="FrozenInstanceError", why="modules are immutable")

    class Named(eqx.Module):
        n: eqx.AbstractVar[int]

    t("abstract", lambda: Named(), raises=TypeError, why="a field is abstract")

    @eqx.filter_custom_vjp
    def cv(v, y):
        return v * y

    @cv.def_fwd
    def _(p, v, y):
        return v * y, v

    @cv.def_bwd
    def _(r, g, p, v, y):
        return g * 100

    t("cvjp", lambda: eqx.filter_grad(lambda v: cv(v, 2.0))(jnp.array(3.0)))

    @eqx.filter_custom_jvp
    def cj(v):
        return v * 2

    @cj.def_jvp
    def _(p, tn):
        return cj(*p), 7 * tn[0]

    t("cjvp", lambda: jax.grad(cj)(3.0))
    t("err_if", lambda: eqx.filter_jit(lambda x: eqx.error_if(x, x.sum() > 0, "bad"))(jnp.ones(2)), raises="EquinoxRuntimeError", why="the condition holds")
    t("err_ok", lambda: eqx.filter_jit(lambda x: eqx.error_if(x, x.sum() < 0, "bad"))(jnp.ones(2)))
    t("err_eager", lambda: eqx.error_if(jnp.ones(2), True, "bad"), raises="EquinoxTracetimeError", why="the condition is a Python bool")
    t(
        "branched",
        lambda: eqx.filter_jit(lambda x, i: eqx.branched_error_if(x, x.sum() > 0, i, ["a", "b"]))(jnp.ones(2), jnp.array(1)),
        raises="EquinoxRuntimeError",
        why="the condition holds",
    )

    class E(eqx.Enumeration):
        a = "first"
        b = "second"

    t("enum", lambda: (E.where(jnp.array(True), E.a, E.b) == E.a, E[E.b], repr(E.a).rpartition(".")[2]))
    t("maybe", lambda: eqxi.while_loop(lambda c: c < 5, lambda c: c + 1, jnp.array(0.0), kind="lax"))
    t("wck", lambda: jax.grad(lambda x: eqxi.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x), (0, x), kind="checkpointed", max_steps=8)[1])(1.5))
    t("wbd", lambda: jax.grad(lambda x: eqxi.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x), (0, x), kind="bounded", max_steps=16)[1])(1.5))
    t("scan", lambda: jax.grad(lambda x: eqxi.scan(lambda c, a: (c * a * x, c), x, jnp.arange(1.0, 5), kind="checkpointed", checkpoints=2)[0])(1.1))
    t(
        "wjit",
        lambda: jax.jit(jax.vmap(lambda n: eqxi.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0), (0, 1.0), kind="lax")[1]))(jnp.arange(4)),
    )
    t("noinline", lambda: jax.jit(lambda x: eqxi.noinline(lambda y: jnp.sin(y))(x))(x))
    t("noinlineg", lambda: jax.grad(lambda x: eqxi.noinline(lambda y: jnp.sin(y))(x).sum())(x))
    t("noinlinev", lambda: jax.vmap(eqxi.noinline(jnp.sin))(x))
    t("unvmap", lambda: jax.vmap(lambda a: eqxi.unvmap_any(a > 1))(x))
    t("nondiff", lambda: jax.grad(lambda x: eqxi.nondifferentiable(x))(1.0), raises=RuntimeError, why="the value is declared not differentiable")
    t("nondb", lambda: jax.jit(eqxi.nondifferentiable_backward)(1.0))
    t("finalise", lambda: str(eqxi.finalise_fn(lambda x: eqxi.nondifferentiable_backward(x))(1.0)))
    t("track", lambda: eqx.debug.assert_max_traces(eqx.filter_jit(lambda x: x + 1), max_traces=1)(x))
    t("bnan", lambda: eqx.debug.backward_nan(x))
    t("printtraces", lambda: eqx.debug.get_num_traces(eqx.debug.assert_max_traces(lambda x: x, max_traces=3)))
    t("shared", lambda: nn.Shared((nn.Linear(4, 4, key=K), nn.Linear(4, 4, key=K)), lambda p: p[1].weight, lambda p: p[0].weight)()[1](x))
    t("state", lambda: repr(st)[:80])
    t("occurring twice", lambda: eqx.tree_check([m, m]), raises=ValueError, why="a layer occurs twice")
    t("donate", lambda: eqx.filter_jit(lambda x: x + 1, donate="all")(jnp.ones(2)))
    t("shard", lambda: eqx.filter_shard(x, jax.sharding.SingleDeviceSharding(jax.devices()[0])))
    t("pmap", lambda: eqx.filter_pmap(lambda x: x + 1)(jnp.ones((1, 2))))
    t("badarg", lambda: m(jnp.ones(3)), raises=TypeError, why="the layer has other inputs")
    t("cond", lambda: eqx.filter_jit(lambda p, m: jax.lax.cond(p, lambda: m(x), lambda: m(x) * 0))(True, m))
    t(
        "inline",
        lambda: eqx.filter_jit(eqx.filter_grad(lambda m, x: jax.lax.scan(lambda c, _: (m(c).repeat(2), None), x, None, 3)[0].sum()))(m, x).layers[0].bias,
    )


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_equinox(name):
    PROGRAMS.check(name)
