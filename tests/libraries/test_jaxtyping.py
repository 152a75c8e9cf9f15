"""jaxtyping with beartype, einops, jraph."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest
from beartype import beartype
from einops import einsum, pack, rearrange, reduce, repeat
from jaxtyping import Array, Float, Int, Key, PyTree, jaxtyped
from outcomes import assert_agrees, cases, outcomes, stored

rng = np.random.RandomState(0)
K = jax.random.key(0)
RK = jax.random.PRNGKey(0)
x = jnp.asarray(rng.randn(4, 6), jnp.float32)
img = jnp.asarray(rng.randn(2, 8, 8, 3), jnp.float32)
seq = jnp.asarray(rng.randn(5, 2, 4), jnp.float32)


def programs(t):
    @jaxtyped(typechecker=beartype)
    def jt(a: Float[Array, "b d"], b: Float[Array, "d"]) -> Float[Array, "b"]:
        return a @ b

    t("jt ok", lambda: jt(x, x[0]))
    t("jt bad", lambda: type(jt(x, x[0, :3])))
    t("jt dtype", lambda: isinstance(jnp.arange(3), Int[Array, "3"]))
    t("jt key", lambda: isinstance(K, Key[Array, ""]))
    t("jt jit", lambda: jax.jit(jt)(x, x[0]))
    t("jt pytree", lambda: isinstance({"a": x}, PyTree[Float[Array, "..."]]))
    t("jt no", lambda: isinstance(x, Int[Array, "..."]))
    t("jt vmap", lambda: jax.vmap(jt, in_axes=(0, None))(x[None], x[0]))
    t("jt grad", lambda: jax.grad(lambda a: jt(a, x[0]).sum())(x))
    t("ei r", lambda: rearrange(img, "b (h p) w c -> b h (p w) c", p=2))
    t("ei red", lambda: reduce(img, "b h w c -> b c", "mean"))
    t("ei rep", lambda: repeat(x, "a b -> a b c", c=2))
    t("ei ein", lambda: einsum(x, x, "a b, c b -> a c"))
    t("ei jit", lambda: jax.jit(lambda v: rearrange(v, "a b -> (a b)"))(x))
    t("ei pack", lambda: pack([x, x[0]], "* d")[0])
    g = jraph.GraphsTuple(
        nodes=x,
        edges=x[:3, :2],
        senders=jnp.array([0, 1, 2]),
        receivers=jnp.array([1, 2, 3]),
        n_node=jnp.array([4]),
        n_edge=jnp.array([3]),
        globals=jnp.ones((1, 1)),
    )
    t(
        "jr gn",
        lambda: jraph.GraphNetwork(lambda e, s, r, gl: e * 2, lambda n, s, r, gl: n + r.sum(-1, keepdims=True), lambda n, e, gl: gl + n.sum())(g)._asdict(),
    )
    t("jr gcn", lambda: jraph.GraphConvolution(lambda n: n * 2)(g).nodes)
    t("jr batch", lambda: jraph.batch([g, g]).senders)
    t("jr pad", lambda: jraph.pad_with_graphs(g, 6, 5).nodes[4:])
    t("jr seg", lambda: jraph.segment_softmax(x[:, 0], jnp.array([0, 0, 1, 1]), 2))
    t("jr gat", lambda: jraph.GAT(lambda n: n, lambda s, r, e: jax.nn.leaky_relu(s.sum(-1, keepdims=True) + r.sum(-1, keepdims=True)))(g).nodes)


OUTCOMES = outcomes(programs)


@pytest.mark.parametrize("name", cases(__file__, OUTCOMES))
def test_jaxtyping(name):
    assert_agrees(OUTCOMES.get(name), stored(__file__).get(name))
