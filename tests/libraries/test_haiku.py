"""Haiku and jmp: layers, lifted transformations, state."""

import re

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import numpy as np
import pytest
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)
RK = jax.random.PRNGKey(0)
x = jnp.asarray(rng.randn(4, 6), jnp.float32)
img = jnp.asarray(rng.randn(2, 8, 8, 3), jnp.float32)
seq = jnp.asarray(rng.randn(5, 2, 4), jnp.float32)


def programs(t):
    def run(f, *a, st=False):
        tr = hk.transform_with_state(f)
        p, s = tr.init(RK, *a)
        o, s2 = tr.apply(p, s, RK, *a)
        return o, p, s2

    for n, f, a in [
        ("linear", lambda x: hk.Linear(3)(x), x),
        ("mlp", lambda x: hk.nets.MLP([4, 3])(x), x),
        ("conv", lambda x: hk.Conv2D(4, 3)(x), img),
        ("convt", lambda x: hk.Conv2DTranspose(4, 3)(x), img),
        ("bn", lambda x: hk.BatchNorm(True, True, 0.9)(x, True), x),
        ("ln", lambda x: hk.LayerNorm(-1, True, True)(x), x),
        ("gn", lambda x: hk.GroupNorm(3)(img), img),
        ("lstm", lambda s: hk.dynamic_unroll(hk.LSTM(3), s, hk.LSTM(3).initial_state(2))[0], seq),
        ("gru", lambda s: hk.dynamic_unroll(hk.GRU(3), s, hk.GRU(3).initial_state(2))[0], seq),
        ("rnn", lambda s: hk.static_unroll(hk.VanillaRNN(3), s, jnp.zeros((2, 3)))[0], seq),
        ("mha", lambda s: hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling())(s, s, s), seq),
        ("embed", lambda x: hk.Embed(5, 3)(jnp.array([1, 2])), x),
        ("drop", lambda x: hk.dropout(hk.next_rng_key(), 0.5, x), x),
        ("seq", lambda x: hk.Sequential([hk.Linear(3), jax.nn.relu])(x), x),
        ("pool", lambda x: hk.MaxPool((2, 2, 1), (2, 2, 1), "SAME")(x), img),
        ("avg", lambda x: hk.AvgPool((2, 2, 1), (2, 2, 1), "VALID")(x), img),
        ("resnet", lambda x: hk.nets.ResNet18(5)(x, True), jnp.ones((1, 32, 32, 3))),
        ("state", lambda x: (hk.get_state("c", [], init=jnp.zeros), hk.set_state("c", jnp.ones([])))[0], x),
        ("param", lambda x: hk.get_parameter("w", [3], init=hk.initializers.TruncatedNormal()), x),
        ("ema", lambda x: hk.ExponentialMovingAverage(0.9)(x), x),
        ("sn", lambda x: hk.SpectralNorm()(jnp.eye(3)), x),
        ("scan", lambda x: (lambda layer: hk.scan(lambda c, a: (layer(c), a), x, jnp.arange(3))[0])(hk.Linear(6)), x),
        ("cond", lambda x: hk.cond(True, lambda x: hk.Linear(2)(x), lambda x: hk.Linear(2)(x), x), x),
        ("vmap", lambda x: hk.vmap(lambda a: hk.Linear(2)(a), split_rng=False)(x), x),
        ("remat", lambda x: hk.remat(hk.Linear(2))(x), x),
        ("layer_stack", lambda x: hk.experimental.layer_stack(3)(lambda h: hk.Linear(6)(h))(x), x),
        ("grad", lambda x: hk.grad(lambda a: hk.Linear(1)(a).sum())(x), x),
        ("while", lambda x: x if hk.running_init() else hk.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1], x),
        ("fori", lambda x: hk.fori_loop(0, 2, lambda i, c: c * 2, x), x),
        ("bias", lambda x: hk.Bias()(x), x),
        ("flat", lambda x: hk.Flatten()(img), x),
        ("orth", lambda x: hk.get_parameter("w", [3, 3], init=hk.initializers.Orthogonal()), x),
        ("crelu", lambda x: hk.nets.VectorQuantizer(6, 4, 0.25)(x, True)["loss"], x),
        ("convlstm", lambda s: hk.Conv2DLSTM((4, 4), 2, 3)(jnp.ones((1, 4, 4, 1)), hk.Conv2DLSTM((4, 4), 2, 3).initial_state(1))[0], x),
    ]:
        t("hk " + n, lambda: run(f, a) if n != "resnet" else run(f, a)[0])
    fw = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([8, 1])(x)))
    p = fw.init(RK, x)
    t("hk jitted grad", lambda: jax.jit(jax.grad(lambda p: (fw.apply(p, x) ** 2).mean()))(p))
    t("hk multi", lambda: hk.multi_transform(lambda: (lambda m: (m, (m, lambda x: m(x) * 2)))(hk.Linear(2))).init(RK, x))
    t("hk summ", lambda: re.findall(r"[\w./]+", hk.experimental.tabulate(lambda x: hk.Linear(2)(x))(x)))
    t(
        "hk flops",
        lambda: (lambda info: (info.name, info.total_param_size, sorted(info.param_info)))(
            hk.experimental.jaxpr_info.make_model_info(hk.transform(lambda x: hk.Linear(2)(x)).init)(RK, x)
        ),
    )
    t("hk part", lambda: hk.data_structures.partition(lambda m, n, v: n == "w", p))
    t("hk err", lambda: hk.Linear(2)(x), raises=ValueError, why="modules are made inside of transform")
    t("hk lift", lambda: hk.transform(lambda x: hk.lift(fw.init, name="l")(hk.next_rng_key(), x)).init(RK, x))

    def created(x):
        with hk.custom_creator(lambda next_creator, shape, dtype, init, context: next_creator(shape, dtype, init) * 0.5):
            return hk.Linear(2)(x)

    t(
        "hk creator",
        lambda: hk.transform(created).init(RK, x),
    )
    t("hk sdef", lambda: hk.testing.transform_and_run(lambda: hk.Linear(2)(x))())
    t("jmp", lambda: jmp.get_policy("p=f32,c=f16,o=f32").cast_to_compute({"a": x})["a"])
    t("jmpls", lambda: jmp.DynamicLossScale(jnp.float32(2**15)).adjust(jnp.array(False)).loss_scale)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_haiku(name):
    PROGRAMS.check(name)
