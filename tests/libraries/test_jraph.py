"""jraph: graph networks, segments, batches, padding, under transformations."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax
import pytest
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)
x = jnp.asarray(rng.randn(4, 6), jnp.float32)
g = jraph.GraphsTuple(
    nodes=x,
    edges=x[:3, :2],
    senders=jnp.array([0, 1, 2]),
    receivers=jnp.array([1, 2, 3]),
    n_node=jnp.array([4]),
    n_edge=jnp.array([3]),
    globals=jnp.ones((1, 1)),
)
pair = jraph.batch([g, g._replace(nodes=g.nodes + 1)])
padded = jraph.pad_with_graphs(pair, 12, 10, 4)
edges_of = lambda e, s, r, gl: e * 2 + s[:, :2] - r[:, :2]
nodes_of = lambda n, s, r, gl: n + r.sum(-1, keepdims=True) + gl
globals_of = lambda n, e, gl: gl + n.sum(-1, keepdims=True) + e.sum(-1, keepdims=True)


def segments(t):
    t("jr seg", lambda: jraph.segment_softmax(x[:, 0], jnp.array([0, 0, 1, 1]), 2))
    data, ids = x, jnp.array([0, 2, 0, 2])
    for n in ("sum", "mean", "max", "min", "variance", "normalize", "softmax"):
        f = getattr(jraph, f"segment_{n}")
        t(f"segment {n}", lambda: f(data, ids, 4))
        t(f"segment {n} grad", lambda: jax.grad(lambda d: (jnp.where(jnp.isfinite(v := f(d, ids, 3)), v, 0) * jnp.arange(6.0)).sum())(data))
    t("segment sorted", lambda: jraph.segment_sum(data, jnp.array([0, 0, 1, 2]), 3, indices_are_sorted=True))
    t("segment or constant", lambda: (jraph.segment_max_or_constant(data, ids, 4, constant=-7.0), jraph.segment_min_or_constant(data, ids, 4)))
    t("partition softmax", lambda: jraph.partition_softmax(x[:, 0], jnp.array([1, 3]), 4))
    t("segments vmap", lambda: jax.vmap(lambda d: jraph.segment_sum(d, ids, 3), 1, 1)(data))
    t("segments jit", lambda: jax.jit(lambda d, i: jraph.segment_mean(d, i, num_segments=3))(data, ids))


def networks(t):
    t(
        "jr gn",
        lambda: jraph.GraphNetwork(lambda e, s, r, gl: e * 2, lambda n, s, r, gl: n + r.sum(-1, keepdims=True), lambda n, e, gl: gl + n.sum())(g)._asdict(),
    )
    t("jr gcn", lambda: jraph.GraphConvolution(lambda n: n * 2)(g).nodes)
    t("jr gat", lambda: jraph.GAT(lambda n: n, lambda s, r, e: jax.nn.leaky_relu(s.sum(-1, keepdims=True) + r.sum(-1, keepdims=True)))(g).nodes)
    for n, network in dict(
        full=jraph.GraphNetwork(edges_of, nodes_of, globals_of),
        attention=jraph.GraphNetwork(
            edges_of, nodes_of, attention_logit_fn=lambda e, s, r, gl: e.sum(-1, keepdims=True), attention_reduce_fn=lambda e, w: e * w
        ),
        means=jraph.GraphNetwork(
            edges_of, nodes_of, globals_of, aggregate_edges_for_nodes_fn=jraph.segment_mean, aggregate_nodes_for_globals_fn=jraph.segment_max
        ),
        interaction=jraph.InteractionNetwork(lambda e, s, r: e + s[:, :2] * r[:, :2], lambda n, r: n * r.sum(-1, keepdims=True)),
        relation=jraph.RelationNetwork(lambda s, r: s * r, lambda e: e.sum(-1, keepdims=True)),
        sets=jraph.DeepSets(lambda n, gl: n * gl, lambda n: n.sum(-1, keepdims=True)),
        features=jraph.GraphMapFeatures(lambda e: e * 2, lambda n: n - 1, lambda gl: gl + 3),
        loops=jraph.GraphConvolution(lambda n: n * 2, add_self_edges=True),
        plain=jraph.GraphConvolution(lambda n: n * 2, symmetric_normalization=False),
        gat=jraph.GraphNetGAT(edges_of, nodes_of, lambda e, s, r, gl: e.sum(-1, keepdims=True), lambda e, w: e * w, globals_of),
    ).items():
        t(f"network {n}", lambda: network(pair)._asdict())
        t(f"network {n} jit", lambda: jax.jit(network)(padded)._asdict())
    t("network grad", lambda: jax.grad(lambda v: jraph.GraphNetwork(edges_of, nodes_of, globals_of)(pair._replace(nodes=v)).globals.sum())(pair.nodes))

    def trained():
        network = lambda w, graph: jraph.GraphConvolution(lambda n: n @ w)(graph).nodes
        mask = jraph.get_node_padding_mask(padded)[:, None]
        loss = lambda w: ((network(w, padded) - 1) ** 2 * mask).mean()
        optimizer, w = optax.adam(0.1), jnp.ones((6, 2)) * 0.1
        state = optimizer.init(w)
        step = jax.jit(lambda w, s: (lambda u, s: (optax.apply_updates(w, u), s))(*optimizer.update(jax.grad(loss)(w), s)))
        for _ in range(5):
            w, state = step(w, state)
        return w, loss(w)

    t("trained", trained)


def batches(t):
    t("jr batch", lambda: jraph.batch([g, g]).senders)
    t("jr pad", lambda: jraph.pad_with_graphs(g, 6, 5).nodes[4:])
    t("unbatch", lambda: [one._asdict() for one in jraph.unbatch(pair)])
    t("unpad", lambda: jraph.unpad_with_graphs(padded)._asdict())
    t("masks", lambda: [getattr(jraph, f"get_{n}_padding_mask")(padded) for n in ("node", "edge", "graph")])
    t("masks jit", lambda: jax.jit(jraph.get_node_padding_mask)(padded))
    t("padding", lambda: [getattr(jraph, f"get_number_of_padding_with_graphs_{n}")(padded) for n in ("nodes", "edges", "graphs")])
    t("dynamic", lambda: [b.n_node for b in jraph.dynamically_batch(iter([g] * 5), 10, 8, 3)])
    t("of numpy", lambda: jraph.unbatch_np(jraph.batch_np([jax.tree.map(np.asarray, g)] * 2))[1].nodes)
    t("too small", lambda: jraph.pad_with_graphs(g, 3, 5), raises=RuntimeError, why="the graph has more nodes")
    t("too many", lambda: list(jraph.dynamically_batch(iter([g]), 3, 8, 3)), raises=RuntimeError, why="the graph has more nodes than a batch")
    t("keys", lambda: [jax.tree_util.keystr(k) for k, _ in jax.tree_util.tree_leaves_with_path(g)])


def programs(t):
    segments(t)
    networks(t)
    batches(t)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_jraph(name):
    PROGRAMS.check(name)
