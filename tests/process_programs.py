"""Random programs on random meshes with random specs, for the processes of a run: each makes the same ones from a seed, and compares its own parts with one device's.

    check(jax, seed)      # what differs, as a list of texts

Invariant: everything here is a function of the seed and the number of devices, so that all processes call the same programs in the same order.
"""

import numpy as np

SHAPES = [(8,), (4, 8), (8, 4), (8, 8), (2, 4, 8), (4, 4, 4), (12, 4), (16,), ()]


def unary(names):
    return lambda jax, r, x: (getattr(jax.numpy, names[r.integers(len(names))]), [x])


def binary(names):
    def make(jax, r, x, *others):
        fits = [y for y in others if np.shape(y) in (np.shape(x), ())] or [x]
        return getattr(jax.numpy, names[r.integers(len(names))]), [x, fits[r.integers(len(fits))]]

    return make


def along(names, keep=False):
    def make(jax, r, x, *_):
        axis = int(r.integers(x.ndim)) if x.ndim and (keep or r.random() < 0.7) else None
        name, n = names[r.integers(len(names))], jax.numpy
        return (lambda v: getattr(n, name)(v, axis=axis) if v.ndim else v), [x]

    return make


def product(jax, r, x, *others):
    fits = [y for y in others if np.ndim(y) > 1 and x.ndim and y.shape[-2] == x.shape[-1] and (y.ndim == 2 or x.ndim == 2)]
    return (lambda a, b: a @ b / b.shape[-2], [x, fits[r.integers(len(fits))]]) if fits else (lambda a: a + 1, [x])


def moved(jax, r, x, *_):
    n, ax = jax.numpy, int(r.integers(max(x.ndim, 1)))
    if x.ndim == 0:
        return n.negative, [x]
    size, k = x.shape[ax], int(r.integers(1, x.shape[ax] + 1))
    forms = [
        lambda v: n.transpose(v, list(r_axes)),
        lambda v: v.reshape(-1),
        lambda v: v.reshape(2, -1),
        lambda v: n.flip(v, ax),
        lambda v: n.roll(v, k, ax),
        lambda v: n.concatenate([v, v * 2], ax),
        lambda v: n.take(v, n.arange(size - 1, -1, -1) % k, ax),
        lambda v: jax.lax.slice_in_dim(v, 0, k, axis=ax),
        lambda v: n.pad(v, [(1, 1) if d == ax else (0, 0) for d in range(v.ndim)]),
        lambda v: n.repeat(v, 2, ax),
        lambda v: n.stack([v, v + 1], ax),
        lambda v: v.at[0].set(k),
        lambda v: v.at[n.array([0, 1, 0])].add(k),
        lambda v: jax.lax.dynamic_slice_in_dim(v, k - 1, 1, ax),
        lambda v: n.broadcast_to(v, (2, *v.shape)),
    ]
    r_axes = [int(a) for a in r.permutation(x.ndim)]
    return forms[r.integers(len(forms))], [x]


def controlled(jax, r, x, *_):
    lax, n = jax.lax, jax.numpy
    forms = [
        lambda v: lax.fori_loop(0, 3, lambda i, c: n.maximum(c, -c) + i, v),
        lambda v: lax.cond(v.max() > 1, lambda c: c + 1, lambda c: c - 1, v),
        lambda v: lax.while_loop(lambda c: c.max() < 4, lambda c: c + 3, v),
        lambda v: jax.vmap(lambda row: row - row.max())(v) if v.ndim else v,
        lambda v: lax.scan(lambda c, a: (n.maximum(c, a), c), v[0], v)[1] if v.ndim else v,
        lambda v: n.sort(v, 0) if v.ndim else v,
        lambda v: n.where(v > 1, v, -v),
    ]
    return forms[r.integers(len(forms))], [x]


# Of integers, whose sums are the same in any order; and of floats, whose results have no sum: equal bit for bit. The last of floats, whose sums are split: nearly.
INTEGERS = [
    binary(["add", "subtract", "multiply", "maximum", "minimum"]),
    along(["sum", "max", "min", "prod"]),
    along(["cumsum"], True),
    moved,
    moved,
    controlled,
]
FLOATS = [unary(["abs", "negative", "floor", "square"]), binary(["add", "subtract", "multiply", "maximum"]), along(["max", "min"]), moved, moved, controlled]
SUMS = [*FLOATS, unary(["sin", "tanh", "exp2"]), along(["sum", "mean", "std"]), along(["cumsum"], True), product, product]
FAMILIES = {"integers": (INTEGERS, True), "floats": (FLOATS, True), "sums": (SUMS, False)}


def program(jax, r, family):
    """A function of some arrays, which gives all its values, and the arrays."""
    makers, _ = FAMILIES[family]
    dtype = np.int32 if family == "integers" else np.float32
    inputs = [(r.integers(-9, 10, SHAPES[k]) / (1 if dtype == np.int32 else 4)).astype(dtype) for k in r.integers(len(SHAPES), size=3)]
    values, steps = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs], []
    while len(steps) < 6:
        place = [int(k) for k in r.permutation(len(values))]
        try:
            f, operands = makers[r.integers(len(makers))](jax, r, *(values[k] for k in place))
            at = [next(k for k in place if values[k] is x) for x in operands]
            made = jax.eval_shape(f, *operands)
        except (TypeError, ValueError, IndexError):
            continue
        if 0 < made.size <= 512 and made.dtype == dtype:
            steps.append((f, at))
            values.append(made)

    def run(*xs):
        values = list(xs)
        for f, at in steps:
            values.append(f(*(values[k] for k in at)))
        return values[len(xs) :]

    return run, inputs


def mesh_of(jax, r):
    """All devices, in some order, on one to three axes."""
    n, sizes = len(jax.devices()), []
    for k in (2, 2):
        if n % k == 0 and n > 1 and r.random() < 0.6:
            sizes.append(k)
            n //= k
    sizes = [sizes[i] for i in r.permutation(len(sizes))] + [n]
    devices = jax.devices()
    order = r.permutation(len(devices)) if r.random() < 0.4 else np.arange(len(devices))
    kinds = (jax.sharding.AxisType.Auto,) * len(sizes)
    return jax.sharding.Mesh(np.array(devices)[order].reshape(sizes), tuple("xyz"[: len(sizes)]), axis_types=kinds)


def spec_of(jax, r, mesh, shape):
    """A spec that divides a shape."""
    axes, entries = [mesh.axis_names[k] for k in r.permutation(len(mesh.axis_names))], []
    for n in shape:
        taken = []
        while axes and r.random() < 0.5 and n % (int(np.prod([mesh.shape[a] for a in taken])) * mesh.shape[axes[-1]]) == 0:
            taken.append(axes.pop())
        entries.append(tuple(taken) if len(taken) > 1 else taken[0] if taken else None)
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*entries))


def differences(name, got, want, exact):
    """What is wrong with the parts of an array that this process has."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return [f"{name}: {got.dtype}{got.shape} for {want.dtype}{want.shape}"]
    for shard in got.addressable_shards:
        x, y = np.asarray(shard.data), want[shard.index]
        scale = float(np.max(np.abs(want), initial=1))
        if x.tobytes() != y.tobytes() if exact else not np.allclose(x, y, rtol=1e-4, atol=1e-5 * scale, equal_nan=True):
            return [f"{name} {shard.index} of {got.sharding.spec}: {x.ravel()[:6]} for {y.ravel()[:6]}"]
    return []


def check(jax, seed):
    """What a program gives on a mesh and not on one device, eager, jitted, with wanted shardings, and differentiated."""
    r = np.random.default_rng(seed)
    family = list(FAMILIES)[r.integers(len(FAMILIES))]
    exact = FAMILIES[family][1]
    f, inputs = program(jax, r, family)
    mesh = mesh_of(jax, r)
    placed = [jax.device_put(x, spec_of(jax, r, mesh, x.shape)) for x in inputs]
    mode = ["eager", "jit", "wanted", "grad"][r.integers(4)]
    want = [np.asarray(y) for y in jax.jit(f)(*inputs)]
    if mode == "eager":
        got = f(*placed)
    elif mode == "jit":
        got = jax.jit(f)(*placed)
    elif mode == "wanted" or family == "integers":
        got = jax.jit(f, out_shardings=[spec_of(jax, r, mesh, y.shape) for y in want])(*placed)
    else:
        slopes = jax.jit(jax.grad(lambda *xs: sum((y * y).sum() for y in f(*xs)), range(len(inputs))))
        got, want, exact = slopes(*placed), [np.asarray(y) for y in slopes(*inputs)], False
    out = [text for k, (x, y) in enumerate(zip(got, want, strict=True)) for text in differences(f"result {k}", x, y, exact)]
    return [f"seed {seed}, {family}, {mode}, {mesh.shape}: {text}" for text in out]
