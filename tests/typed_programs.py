"""Programs over arrays whose types say how they are cut, for tests/sharding/test_explicit_axes.py.

A case is a line of text: operands (shape and specification), and an expression in them. `python tests/typed_programs.py jax` prints cases with
what JAX says of them: the type of the result, or the class and the first words of the error (8 host devices; mesh x: 4, y: 2).

    8,4@x. * 8,4@.y | add | a + b => ShardingTypeError: add got incompatible shardings
"""

import importlib
import random
import re
import sys

AXES = {"x": 4, "y": 2}

# expressions by the ranks of their operands; {d}: a dimension of the first one
TEMPLATES = {
    (2,): [
        "jnp.sin(a)", "a * 2", "a > 0", "a.T", "a[None]", "jnp.sum(a)", "jnp.sum(a, {d})", "jnp.max(a, {d})", "jnp.mean(a, {d}, keepdims=True)",
        "jnp.argmax(a, {d})", "jnp.cumsum(a, {d})", "jnp.sort(a, {d})", "jnp.flip(a, {d})", "a.astype(int)", "lax.slice_in_dim(a, 0, 4, axis={d})",
        "lax.slice_in_dim(a, 1, 3, axis={d})", "lax.dynamic_slice_in_dim(a, 1, 2, axis={d})", "jnp.concatenate([a, a], {d})", "jnp.stack([a, a], {d})",
        "lax.pad(a, 0.0, [(1, 1, 0), (0, 0, 0)])", "lax.pad(a, 0.0, [(0, 0, 0), (2, 2, 0)])", "jnp.expand_dims(a, {d})", "jnp.broadcast_to(a, (3, *a.shape))",
        "a.reshape(-1)", "a.reshape(2, -1, a.shape[1])", "a.reshape(4, -1, a.shape[1])", "a.reshape(a.shape[0], 2, -1)", "lax.top_k(a, 2)[0]",
        "jnp.where(a > 0, a, 0)", "jnp.clip(a, 0, 3)", "lax.split(a, [a.shape[0] // 2] * 2, 0)[0]", "jax.nn.softmax(a, {d})", "jax.nn.relu(a)",
        "jnp.linalg.norm(a, axis={d})", "a[jnp.array([0, 1])]", "a[:, jnp.array([0, 1])]", "jnp.exp(a) / jnp.exp(a).sum({d}, keepdims=True)",
        "lax.cumlogsumexp(a, axis={d})", "lax.rev(a, ({d},))", "jax.vmap(jnp.sin)(a)", "jax.vmap(lambda r: r * 2, 1, 1)(a)", "jax.grad(lambda v: jnp.sin(v).sum())(a)",
        "jax.jit(lambda v: v + 1)(a)", "jax.checkpoint(lambda v: jnp.sin(v) * 2)(a)", "jnp.var(a, {d})", "lax.reduce_window(a, 0.0, lax.add, (1, 1), (1, 1), 'VALID')",
        "jnp.einsum('ij->ji', a)", "jnp.einsum('ij->i', a)", "jnp.transpose(a[..., None], (2, 1, 0))", "jnp.tile(a, (1, 1))", "jax.random.key_data(jax.random.key(0))",
        "jax.reshard(a, P('y', None))", "jax.reshard(a, P(None, 'x'))", "jax.reshard(a, P())", "jnp.zeros_like(a)", "jnp.squeeze(a[:, None], 1)",
    ],
    (2, 2): [
        "a + b", "jnp.maximum(a, b)", "jnp.where(a > b, a, b)", "a @ b.T", "a.T @ b", "a.T @ b + 1", "jnp.einsum('ij,kj->ik', a, b)", "jnp.einsum('ij,ij->i', a, b)",
        "jnp.concatenate([a, b], {d})", "jnp.stack([a, b])", "lax.select(a > 0, a, b)", "lax.clamp(a, b, a)", "lax.dynamic_update_slice(a, b, (0, 0))",
        "jnp.dot(a.T, b, out_sharding=P())", "jnp.dot(a.T, b, out_sharding=P('y', None))", "jnp.einsum('ij,kj->ik', a, b, out_sharding=P('x', None))",
        "jnp.matmul(a.T, b, out_sharding=P(None, 'x'))", "jnp.outer(a[:, 0], b[:, 0])", "jnp.arctan2(a, b)", "jax.grad(lambda u, v: (u * v).sum())(a, b)",
        "jax.grad(lambda u: jnp.dot(u.T, b, out_sharding=P()).sum())(a)", "jax.vmap(jnp.dot)(a, b)", "jax.vmap(lambda u, v: u + v)(a, b)", "jax.jit(lambda u, v: u - v)(a, b)",
        "jax.lax.cond(True, lambda u, v: u, lambda u, v: v, a, b)", "a - b.sum(0, keepdims=True)", "a * b.mean(1, keepdims=True)",
    ],
    (3,): [
        "a.sum({d})", "jnp.swapaxes(a, 0, {d})", "a.reshape(-1, a.shape[2])", "a.reshape(a.shape[0], -1)", "a.reshape(-1)", "jnp.moveaxis(a, 0, 2)", "jnp.linalg.cholesky(a)",
        "jnp.linalg.qr(a)[1]", "jnp.max(a, (0, {d}))", "jax.vmap(lambda m: m.T)(a)", "jax.vmap(lambda m: m @ m.T)(a)", "jnp.einsum('bij,bkj->bik', a, a)",
        "lax.scan(lambda c, r: (c + r, r), jnp.zeros_like(a[0]), a)[0]", "jnp.tril(a)",
    ],
}  # fmt: skip


def _specs(rank, rng):
    axes = [None] * rank
    for name in rng.sample(sorted(AXES), rng.randint(0, 2)):
        axes[rng.randrange(rank)] = name
    return tuple(axes)


def cases(seed, n):
    """Texts of random cases, each once."""
    rng, seen = random.Random(seed), []
    while len(seen) < n:
        ranks = rng.choice(list(TEMPLATES))
        shape = tuple(rng.choice([4, 8] if ranks != (3,) else [4]) for _ in range(ranks[0]))
        body = rng.choice(TEMPLATES[ranks]).replace("{d}", str(rng.randrange(ranks[0])))
        operands = [",".join(map(str, shape)) + "@" + ".".join(s or "" for s in _specs(len(shape), rng)) for _ in ranks]
        text = f"{' '.join(operands)} | {body}"
        if text not in seen:
            seen.append(text)
    return seen


def environment(library):
    """What expressions name."""
    jax = importlib.import_module(library)
    return {"jax": jax, "jnp": importlib.import_module(f"{library}.numpy"), "lax": importlib.import_module(f"{library}.lax"), "P": jax.sharding.PartitionSpec}


def operands(text, env, mesh):
    """The arrays of a case; whole ones on one device where there is no mesh."""
    made = []
    for k, part in enumerate(text.split(" | ")[0].split()):
        shape, _, spec = part.partition("@")
        shape = tuple(map(int, shape.split(",")))
        n = 1
        for s in shape:
            n *= s
        x = env["jnp"].arange(n, dtype="float32").reshape(shape) % 7 - 3 + k
        if len(shape) == 3:
            x = x + 20 * env["jnp"].eye(shape[1], shape[2])
            x = x + env["jnp"].swapaxes(x, 1, 2)
        made.append(x if mesh is None else env["jax"].device_put(x, env["jax"].sharding.NamedSharding(mesh, env["P"](*[s or None for s in spec.split(".")]))))
    return made


def outcome(text, env, mesh):
    """The result of a case, or what was raised."""
    try:
        with env["jax"].set_mesh(mesh):
            return eval(text.split(" | ")[1], {**env, **dict(zip("ab", operands(text, env, mesh), strict=False))})
    except Exception as e:
        return e


def described(result, env):
    """The type of a result, or the class and the words of an error, without what meshes print."""
    if isinstance(result, Exception):
        words = re.sub(r"AbstractMesh\(.*?\), (?=spec)|AbstractMesh\([^)]*\)[^)]*\)", "mesh, ", str(result).split("\n")[0])
        return f"{type(result).__name__}: {re.sub(r', memory_kind=[a-z]*', '', words)[:150]}"
    return str(env["jax"].typeof(result))


def main(library):
    """Prints the table."""
    env = environment(library)
    mesh = env["jax"].make_mesh(tuple(AXES.values()), tuple(AXES))
    for text in cases(int(sys.argv[2]), int(sys.argv[3])):
        print(f"{text} => {described(outcome(text, env, mesh), env)}")


if __name__ == "__main__":
    main(sys.argv[1])
