"""Flax linen: layers, lifted transformations, training, serialization, checkpoints."""

import os
import tempfile

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax import jax_utils, serialization, struct, traverse_util
from flax.core import freeze
from flax.linen import logical_axis_rules  # noqa: F401
from flax.training import checkpoints, common_utils, dynamic_scale, early_stopping, train_state
from outcomes import Programs

rng = np.random.RandomState(0)
x = jnp.asarray(rng.randn(4, 6), jnp.float32)
img = jnp.asarray(rng.randn(2, 8, 8, 3), jnp.float32)
seq = jnp.asarray(rng.randn(2, 5, 4), jnp.float32)
ids = jnp.array([[1, 2, 0], [3, 1, 2]])
K = jax.random.key(0)


def run(m, *a, **k):
    y, v = m.init_with_output(K, *a, **k)
    return y, v


def programs(t):
    mods = dict(
        dense=(nn.Dense(3), x),
        densegen=(nn.DenseGeneral((2, 3), axis=-1), x),
        conv=(nn.Conv(4, (3, 3)), img),
        convs=(nn.Conv(4, (3, 3), strides=2, padding="VALID"), img),
        convg=(nn.Conv(6, (3, 3), feature_group_count=3), img),
        convt=(nn.ConvTranspose(4, (3, 3), strides=(2, 2)), img),
        convl=(nn.ConvLocal(4, (3, 3)), img),
        embed=(nn.Embed(5, 3), ids),
        ln=(nn.LayerNorm(), x),
        rms=(nn.RMSNorm(), x),
        gn=(nn.GroupNorm(num_groups=3), x),
        inn=(nn.InstanceNorm(), img),
        wn=(nn.WeightNorm(nn.Dense(3)), x),
        bn=(nn.BatchNorm(use_running_average=False), x),
        sn=(
            nn.SpectralNorm(nn.Dense(3)),
            x,
        ),
        mha=(nn.MultiHeadDotProductAttention(2), seq),
        sa=(nn.SelfAttention(2), seq),
        lstm=(nn.RNN(nn.LSTMCell(3)), seq),
        gru=(nn.RNN(nn.GRUCell(3)), seq),
        opt=(nn.RNN(nn.OptimizedLSTMCell(3)), seq),
        simple=(nn.RNN(nn.SimpleCell(3)), seq),
        mgu=(nn.RNN(nn.MGUCell(3)), seq),
        clstm=(nn.RNN(nn.ConvLSTMCell(2, (3, 3))), img[None].repeat(3, 1)),
        bidir=(nn.Bidirectional(nn.RNN(nn.LSTMCell(3)), nn.RNN(nn.GRUCell(3))), seq),
        prelu=(nn.PReLU(), x),
        seqn=(nn.Sequential([nn.Dense(4), nn.relu, nn.Dense(2)]), x),
        einsum=(nn.Einsum((6, 2), "bi,ij->bj"), x),
    )
    for n, (m, *a) in mods.items():
        kw = dict(update_stats=True) if n == "sn" else {}
        t(n, lambda: run(m, *a, **kw))
    t("drop", lambda: nn.Dropout(0.5, deterministic=False).apply({}, x, rngs={"dropout": K}))
    for p in ("avg_pool(img,(2,2),(2,2))", "max_pool(img,(3,3),(2,2),'SAME')", "pooling.min_pool(img,(2,2))", "pool(img,0.,jax.lax.add,(2,2),(1,1),'VALID')"):
        t(p, lambda: eval("nn." + p))
    for a in "relu gelu silu elu selu softplus tanh leaky_relu celu glu hard_tanh hard_sigmoid log_sigmoid soft_sign standardize swish relu6".split():
        t(a, lambda: getattr(nn, a)(x))
    t("softmax", lambda: nn.softmax(x))
    t("mask", lambda: nn.make_causal_mask(ids))
    t("attn", lambda: nn.dot_product_attention(seq[:, :, None], seq[:, :, None], seq[:, :, None]))
    t("mask2", lambda: nn.combine_masks(nn.make_attention_mask(ids > 0, ids > 0), nn.make_causal_mask(ids)))

    class MLP(nn.Module):
        n: int = 3

        def setup(self):
            self.a = [nn.Dense(4, name=f"d{i}") for i in range(2)]
            self.b = nn.Dense(self.n)
            self.c = self.variable("state", "count", lambda: jnp.zeros((), jnp.int32))

        def __call__(self, x):
            for l in self.a:
                x = nn.relu(l(x))
            self.sow("intermediates", "h", x)
            if not self.is_initializing():
                self.c.value += 1
            return self.b(x)

        def enc(self, x):
            return self.a[0](x)

    m = MLP()
    v = m.init(K, x)
    t("mlp", lambda: m.apply(v, x, mutable=["state", "intermediates"]))
    t("method", lambda: m.apply(v, x, method=m.enc))
    t("bind", lambda: m.bind(v).enc(x))
    t("capture", lambda: m.apply(v, x, capture_intermediates=True, mutable=True)[1]["intermediates"])
    t("unbind", lambda: m.bind(v).unbind()[1]["params"]["b"])

    class P(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Dense(3)(x)
            x = self.perturb("h", x)
            return x.sum()

    vp = P().init(K, x)
    t("perturb", lambda: jax.grad(lambda p: P().apply({"params": vp["params"], "perturbations": p}, x))(vp["perturbations"]))

    # lifted
    class ScanMLP(nn.Module):
        @nn.compact
        def __call__(self, x):
            class Body(nn.Module):
                @nn.compact
                def __call__(self, c, _):
                    return nn.tanh(nn.Dense(6)(c)), c.sum()

            return nn.scan(Body, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)()(x, None)

    t("scan", lambda: run(ScanMLP(), x))

    class ScanB(nn.Module):
        @nn.compact
        def __call__(self, xs):
            cell = nn.scan(nn.LSTMCell, variable_broadcast="params", split_rngs={"params": False}, in_axes=1, out_axes=1)(4)
            c = cell.initialize_carry(K, xs[:, 0].shape)
            return cell(c, xs)

    t("scanb", lambda: run(ScanB(), seq))

    class VM(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.vmap(nn.Dense, in_axes=0, out_axes=0, variable_axes={"params": 0}, split_rngs={"params": True})(3)(x)

    t("vmap", lambda: run(VM(), x[:, None]))

    class RM(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.remat(nn.Dense)(3)(x)

    t("remat", lambda: jax.grad(lambda p: RM().apply(p, x).sum())(RM().init(K, x)))

    class JT(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.jit(nn.Dense)(3)(x)

    t("jit", lambda: run(JT(), x))

    class WL(nn.Module):
        @nn.compact
        def __call__(self, x):
            d = nn.Dense(6, name="d")
            if self.is_initializing():
                return d(x)
            c = nn.while_loop(lambda m, c: c[0] < 3, lambda m, c: (c[0] + 1, d(c[1])), self, (0, x))
            return c[1]

    t("while", lambda: WL().apply(WL().init(K, x), x))

    class CD(nn.Module):
        @nn.compact
        def __call__(self, x, p):
            a = nn.Dense(3, name="a")
            b = nn.Dense(3, name="b")
            if self.is_initializing():
                a(x)
                b(x)
            return nn.cond(p, lambda m, x: a(x), lambda m, x: b(x), self, x)

    vc = CD().init(K, x, True)
    t("cond", lambda: (CD().apply(vc, x, True), jax.jit(CD().apply)(vc, x, False)))

    class SW(nn.Module):
        @nn.compact
        def __call__(self, x, i):
            ls = [nn.Dense(3, name=f"l{k}") for k in range(3)]
            if self.is_initializing():
                [l(x) for l in ls]
            return nn.switch(i, [lambda m, x, l=l: l(x) for l in ls], self, x)

    vs = SW().init(K, x, 0)
    t("switch", lambda: SW().apply(vs, x, 2))

    class VJ(nn.Module):
        @nn.compact
        def __call__(self, x):
            y, bwd = nn.vjp(lambda m, x: m(x), nn.Dense(3), x)
            return bwd(jnp.ones_like(y))

    t("vjp", lambda: run(VJ(), x))

    class CV(nn.Module):
        @nn.compact
        def __call__(self, x):
            def f(m, x):
                return m(x)

            def fwd(m, x):
                return nn.vjp(f, m, x)

            def bwd(vjp_fn, g):
                p, i = vjp_fn(g)
                return jax.tree.map(jnp.sign, p), i

            return nn.custom_vjp(f, forward_fn=fwd, backward_fn=bwd)(nn.Dense(3), x).sum()

    t("custom_vjp", lambda: jax.grad(lambda p: CV().apply(p, x))(CV().init(K, x)))
    t("shape", lambda: jax.eval_shape(m.init, K, x))
    t("lazy", lambda: m.lazy_init(K, jax.ShapeDtypeStruct((4, 6), jnp.float32)))
    t("part", lambda: str(nn.get_partition_spec(nn.Dense(3, kernel_init=nn.with_partitioning(nn.initializers.lecun_normal(), ("a", "b"))).init(K, x))))
    # serialization, struct, traverse
    b = serialization.to_bytes(v)
    t("bytes", lambda: (len(b), serialization.from_bytes(v, b)))
    t("sd", lambda: serialization.to_state_dict(v))
    t("msgpack", lambda: serialization.msgpack_restore(serialization.msgpack_serialize({"a": np.arange(3), "b": jnp.ones(2, jnp.bfloat16)})))
    t("flat", lambda: sorted(traverse_util.flatten_dict(v["params"], sep="/")))
    t("frozen", lambda: freeze(v).pop("params")[0])
    t("modelparam", lambda: traverse_util.ModelParamTraversal(lambda p, _: "kernel" in p).update(lambda z: z * 0, v["params"]))

    @struct.dataclass
    class S:
        a: jax.Array
        b: int = struct.field(pytree_node=False, default=3)

    t("struct", lambda: (jax.tree.leaves(S(x)), S(x).replace(b=4).b, jax.jit(lambda s: s.a.sum() * s.b)(S(x))))
    t("es", lambda: str(early_stopping.EarlyStopping(min_delta=0.1, patience=2).update(1.0).update(2.0)))
    ds = dynamic_scale.DynamicScale()
    t("ds", lambda: ds.value_and_grad(lambda w: (x @ w).sum())(jnp.ones(6))[1:])
    t("repl", lambda: jax_utils.unreplicate(jax_utils.replicate({"a": x})))
    t("shard", lambda: common_utils.shard({"a": x})["a"].shape)
    t("onehot", lambda: common_utils.onehot(ids, 5))
    t("prefetch", lambda: [b.shape for b in jax_utils.prefetch_to_device(iter([np.ones((1, 2))] * 3), 2)])
    t("err1", lambda: m.apply({}, x), raises="ScopeCollectionNotFound", why="there are no parameters")
    t("err2", lambda: m.apply(v, x[:, :3]), raises="ScopeParamShapeError", why="the input has three features")
    t("err3", lambda: m.apply(v, x, mutable=False), raises="ModifyScopeVariableError", why="the collection is not mutable")
    t("err4", lambda: nn.Dropout(0.5, deterministic=False).apply({}, x), raises="InvalidRngError", why="dropout needs a key")
    t("err5", lambda: nn.Dense(3)(x), raises="CallCompactUnboundModuleError", why="the module is not bound")
    t("err6", lambda: v["params"]["zz"], raises=KeyError, why="there is no such parameter")
    for i in "lecun_normal() glorot_uniform() he_normal() orthogonal() zeros_init() constant(2.) normal() truncated_normal() variance_scaling(1.,'fan_in','normal') delta_orthogonal() xavier_normal() kaiming_uniform()".split():
        t(i, lambda: eval("nn.initializers." + i)(K, (3, 3, 4, 4) if "delta" in i else (4, 5), jnp.float32))
    t("fp8", lambda: run(nn.Dense(16, dot_general_cls=nn.Fp8DirectDotGeneralOp), jnp.asarray(rng.randn(16, 16), jnp.float32)))
    t("logical", lambda: str(nn.logical_to_mesh_axes(("a", "b"), [("a", "x"), ("b", None)])))
    t("bf16", lambda: run(nn.Dense(3, dtype=jnp.bfloat16), x)[0].astype(jnp.float32))
    t(
        "nan",
        lambda: nn.BatchNorm(use_running_average=True).apply(
            {"params": {"scale": jnp.ones(6), "bias": jnp.zeros(6)}, "batch_stats": {"mean": jnp.ones(6), "var": jnp.ones(6)}}, x
        ),
    )
    d = tempfile.mkdtemp()
    tsx = train_state.TrainState.create(apply_fn=None, params={"w": x}, tx=optax.adam(1e-2))
    t("ckpt", lambda: (checkpoints.save_checkpoint(d, tsx, 1, overwrite=True) and 1, checkpoints.restore_checkpoint(d, tsx).params))

    def ob():
        c = ocp.StandardCheckpointer()
        p = os.path.join(tempfile.mkdtemp(), "a")
        c.save(p, {"a": x, "b": jnp.arange(3), "c": 3})
        c.wait_until_finished()
        return c.restore(p), c.restore(p, jax.tree.map(ocp.utils.to_shape_dtype_struct, {"a": x, "b": jnp.arange(3), "c": 3}))

    t("orbax", ob)

    def om():
        with ocp.CheckpointManager(tempfile.mkdtemp(), options=ocp.CheckpointManagerOptions(max_to_keep=2)) as mgr:
            for s in range(4):
                mgr.save(s, args=ocp.args.StandardSave({"w": x * s}))
            mgr.wait_until_finished()
            return mgr.all_steps(), mgr.latest_step(), mgr.restore(3, args=ocp.args.StandardRestore({"w": x}))

    t("orbaxm", om)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_flax_linen(name):
    PROGRAMS.check(name)
