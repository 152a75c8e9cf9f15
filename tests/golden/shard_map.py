"""Programs inside `shard_map`: their values and derivatives, inside and outside, over several meshes, with and without the check of what varies.

`python tests/golden/shard_map.py` records what JAX 0.10.2 gives with 8 devices of the host.
"""

import json
import os
import pathlib

import numpy as np

PATH = pathlib.Path(__file__).with_suffix(".json")
MESHES = {"x1": ((1,), ("x",)), "x2": ((2,), ("x",)), "x4": ((4,), ("x",)), "x8": ((8,), ("x",)), "x2y4": ((2, 4), ("x", "y")), "x4y2": ((4, 2), ("x", "y"))}
X = np.sin(np.arange(48, dtype=np.float32)).reshape(16, 3)
W = np.array([0.5, -0.3, 0.8], np.float32)


def losses(jax, axes, size):
    """Scalar functions of (parameters, part of the data): name -> (function, whether the result varies over the axes)."""
    jnp, lax = jax.numpy, jax.lax
    last, n = axes[-1], size[axes[-1]]
    ring = [(i, (i + 1) % n) for i in range(n)]
    square = jax.custom_vjp(lambda v: v * v)
    square.defvjp(lambda v: (v * v, v), lambda v, ct: (2 * v * ct,))
    sine = jax.custom_jvp(jnp.sin)
    sine.defjvp(lambda p, t: (jnp.sin(p[0]), jnp.cos(p[0]) * t[0]))

    def model(w, x):
        return jnp.tanh(x @ w).sum()

    def looped(w, x):
        step = lambda c, row: (c + jnp.sin(c * row @ w), row.sum() * c)
        last, ys = lax.scan(step, lax.pcast(jnp.float32(0.1), axes, to="varying"), x)
        return last + ys.sum()

    def counted(w, x):
        start = (lax.pcast(jnp.float32(0.3), axes, to="varying"), 0)
        return lax.while_loop(lambda c: c[1] < 3, lambda c: (jnp.sin(c[0] + model(w, x)), c[1] + 1), start)[0]

    def replicated_loop(w, x):
        return lax.fori_loop(0, 3, lambda _, w: w - 0.1 * lax.pmean(x.sum(0) * w, axes), w).sum()

    local = {
        "model": model,
        "index": lambda w, x: model(w, x) * (1 + lax.axis_index(last)),
        "ring": lambda w, x: (lax.ppermute(x @ w, last, ring) * (x @ w)).sum(),
        "gather": lambda w, x: (lax.all_gather(x @ w, last) ** 2).sum() * (1 + lax.axis_index(last)),
        "tiled": lambda w, x: (jnp.sin(lax.all_gather(x * w, last, tiled=True)) * x.sum()).sum(),
        "scatter": lambda w, x: (lax.psum_scatter(jnp.sin(jnp.outer(jnp.arange(1.0, n + 1), x.sum(0) * w)), last) ** 3).sum(),
        "exchange": lambda w, x: jnp.sin(lax.all_to_all(jnp.outer(jnp.arange(1.0, n + 1), w * x[0]), last, 0, 0) * x[-1]).sum(),
        "scan": looped,
        "while": counted,
        "branch": lambda w, x: lax.cond(lax.psum(model(w, x), axes) > 0, lambda w: (x @ w).sum(), lambda w: (x @ (w * w)).sum(), w),
        "checkpoint": jax.checkpoint(lambda w, x: jnp.sin(model(w, x)) * model(w, x)),
        "jitted": jax.jit(lambda w, x: jnp.sin(model(w, x)) + (w * w).sum()),
        "own rule": lambda w, x: square(sine(x @ w)).sum(),
        "select": lambda w, x: jnp.where(x > 0, w, 2 * w).sum(),
        "indices": lambda w, x: (w[jnp.argsort(x[0])] * jnp.arange(3.0)).sum() + jnp.zeros(3).at[jnp.argmax(x[0])].add(w[0] ** 2).sum(),
        "mapped": lambda w, x: jax.vmap(lambda row: jnp.sin(row @ w))(x).sum(),
        "named": lambda w, x: (jax.vmap(lambda row: lax.psum(row * w, "i") * row, axis_name="i")(x)).sum(),
        "numpy": lambda w, x: jnp.linalg.norm(jnp.concatenate([x * w, jnp.ones_like(x)])) + jax.nn.logsumexp(x @ w) + jnp.cumsum(x @ w)[-1],
        "gradient of a gradient": lambda w, x: jax.grad(lambda w: model(w, x) ** 2)(w).sum() * x.sum(),
    }
    common = {
        "psum": lambda w, x: lax.psum(model(w, x), axes),
        "pmean": lambda w, x: lax.pmean(model(w, x), axes) ** 2,
        "twice": lambda w, x: lax.psum(model(w, x) * lax.psum(model(w, x), axes), axes),
        "pmax": lambda w, x: lax.pmax(model(w, x), axes) * 3,
        "no data": lambda w, x: jnp.sin(w).sum(),
        "softmax": lambda w, x: lax.psum((x @ w / lax.psum(jnp.exp(x @ w).sum(), axes)).sum(), axes),
        "loop": replicated_loop,
        "sum of a constant": lambda w, x: lax.psum(jnp.ones(3), axes) @ w,
        "sum of the same": lambda w, x: lax.psum(w.sum() ** 2, axes),
    }
    return {k: (f, True) for k, f in local.items()} | {k: (f, False) for k, f in common.items()}


def cases(jax, mesh, checked):
    """name -> function without arguments that gives a list of arrays."""
    P, jnp = jax.sharding.PartitionSpec, jax.numpy
    axes = tuple(mesh.axis_names)
    data = P(axes if len(axes) > 1 else axes[0])
    arguments = (P(), data)

    def over(f, outs):
        run = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=arguments, out_specs=outs, check_vma=checked))
        return lambda: run(W, X)

    def of(name, loss, varies):
        many = varies or not checked
        shown = data if many else P()
        own = lambda v: v[None] if many else v
        # of what is replicated the derivative is one value, unless the check is off: then each part has its own
        of_w = P() if checked else data
        yield "value", over(lambda w, x: (own(loss(w, x)),), shown)
        yield "gradient inside", over(jax.grad(loss, (0, 1)), (of_w, data))
        yield "tangent inside", over(lambda w, x: (own(jax.jvp(loss, (w, x), (jnp.cos(w), jnp.cos(x)))[1]),), shown)
        if checked:
            value = jax.shard_map(lambda w, x: own(loss(w, x)), mesh=mesh, in_specs=arguments, out_specs=shown)
            outside = jax.jit(jax.grad(lambda w, x: jnp.sum(jnp.sin(value(w, x))), (0, 1)))
            yield "gradient outside", lambda: outside(W, X)
        if checked and name in ("psum", "pmean", "softmax", "model"):
            yield "hessian", over(lambda w, x: (jax.hessian(loss)(w, x),), shown)
            yield "jacobians", over(lambda w, x: (jax.jacfwd(loss)(w, x), jax.jacrev(loss)(w, x)), (shown, P()))

    found = {}
    for name, (loss, varies) in losses(jax, axes, dict(mesh.shape)).items():
        found |= {f"{name}: {what}": run for what, run in of(name, loss, varies)}
    return found


def everything(jax, mesh_of):
    for m, (shape, names) in MESHES.items():
        for checked in (True, False):
            for name, run in cases(jax, mesh_of(shape, names), checked).items():
                yield f"{m}, {'checked' if checked else 'unchecked'}, {name}", run


def record():
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax

    auto = jax.sharding.AxisType.Auto
    mesh_of = lambda shape, names: jax.make_mesh(shape, names, axis_types=(auto,) * len(names), devices=jax.devices()[: int(np.prod(shape))])
    found, seen = {}, {}
    for name, run in everything(jax, mesh_of):
        try:
            arrays = [np.asarray(a) for a in run()]
            found[name] = [{"shape": a.shape, "values": [float(f"{v:.6g}") for v in a.ravel()]} for a in arrays]
        except Exception as e:
            key = name.split(", ", 1)[1]
            if key not in seen:
                print("not recorded:", name, type(e).__name__, str(e)[:300])
            seen[key] = 1
    PATH.write_text(json.dumps(found, separators=(",", ":")) + "\n")
    print(len(found), "recorded,", len(seen), "refused")


if __name__ == "__main__":
    record()
