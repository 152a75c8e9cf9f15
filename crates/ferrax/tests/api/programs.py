"""Random programs that both APIs run: lines of operations, and a hash of every value that Python gives. `programs.rs` runs them in Rust.

PYTHONPATH=python python crates/ferrax/tests/api/programs.py [PROGRAMS] [SEED] > crates/ferrax/tests/api/programs.txt

A program begins with its inputs, `in KIND SHAPE SEED`, drawn by `random`. A line is `OP OPERANDS; PARAMETERS = DTYPE SHAPE HASH`.
"""

import random as python_random
import sys

import ferrax as fx
import ferrax.numpy as jnp
import numpy as np
from ferrax import lax, nn, random

MOST = 200  # elements of a value


def unary(f):
    return f, lambda r, x: []


UNARY = (
    "sin cos tan tanh sinh cosh exp exp2 expm1 log log2 log1p arcsin arctan arcsinh arctanh sqrt cbrt abs negative sign square isnan isfinite isinf "
    "floor ceil rint trunc log10 deg2rad reciprocal signbit sinc".split()
)
SPECIAL = "erf erfc erf_inv lgamma digamma rsqrt bessel_i0e bessel_i1e".split()
INTEGERS = "bitwise_and bitwise_or bitwise_xor gcd lcm".split()
BINARY = "add subtract multiply divide maximum minimum arctan2 power hypot less greater_equal equal floor_divide mod fmax copysign heaviside".split()
REDUCTIONS = "sum prod max min mean var std all any nansum nanmin nanmax nanmean ptp count_nonzero".split()
ACTIVATIONS = "relu sigmoid softplus silu gelu selu celu mish soft_sign log_sigmoid sparse_plus".split()


def axis(r, x):
    return [r.randrange(x.ndim)]


def index(r, x):
    """start, stop, step for each axis."""
    entries = []
    for n in x.shape:
        step = r.choice([1, 1, 2, -1])
        a, b = sorted([r.randint(0, n), r.randint(0, n)])
        entries += [b - 1, a - 1, -1] if step < 0 and a and b else [a, b, max(step, 1)]
    return entries


def sliced(x, *e):
    return x[tuple(slice(a, b, s) for a, b, s in zip(e[::3], e[1::3], e[2::3], strict=True))]


def permutation(r, x):
    return r.sample(range(x.ndim), x.ndim)


def contracts(x, y):
    return x.ndim > 0 and y.ndim > 0 and x.shape[-1] == y.shape[max(y.ndim - 2, 0)]


def broadcasts(x, *others):
    try:
        np.broadcast_shapes(x.shape, *[y.shape for y in others])
        return True
    except ValueError:
        return False


def padding(r, x):
    return [r.randint(0, 2) for _ in range(2 * x.ndim)]


def padded(x, *w):
    return jnp.pad(x, list(zip(w[::2], w[1::2], strict=True)))


def start(r, x):
    return [r.randint(-2, 3) for _ in x.shape]


def windowed(x, *at):
    return lax.dynamic_slice(x, at, [max(1, n - 1) for n in x.shape])


def replaced(x, *at):
    return lax.dynamic_update_slice(x, jnp.ones([max(1, n - 1) for n in x.shape], x.dtype), at)


@fx.custom_jvp
def bent(x):
    return jnp.sin(x)


bent.defjvp(lambda x, dx: (bent(x[0]), 3 * dx[0]))


@fx.custom_vjp
def halved(x):
    return x * x


halved.defvjp(lambda x: (x * x, x), lambda x, ct: (ct * x / 2,))


def vectors(x):
    return x.ndim == 1 and 0 < x.size < 7 and x.dtype == np.float32


def square(x):
    return x.ndim == 2 and x.shape[0] == x.shape[1] and x.shape[0] > 0 and x.dtype == np.float32


is_float = lambda x: x.dtype.kind == "f"
is_int = lambda *xs: all(x.dtype == np.int32 for x in xs)
single = lambda x: x.dtype == np.float32
ranked = lambda x: x.ndim > 0
filled = lambda x: x.ndim > 0 and x.size > 0
alike = lambda x, y: x.ndim > 0 and x.shape == y.shape
vector = lambda x: x.ndim == 1 and x.size > 0 and is_float(x)
both = lambda *fs: lambda *xs: all(f(*xs) for f in fs)
floats = lambda *xs: all(is_float(x) for x in xs)
none = lambda r, *x: []

# name: (function of operands and parameters, which operands, how many, parameters)
OPS = {
    **{f: (getattr(jnp, f), is_float, 1, none) for f in UNARY},
    **{f: (getattr(jnp, f), both(broadcasts, floats), 2, none) for f in BINARY},
    **{f"{f}_any": (getattr(jnp, f), broadcasts, 2, none) for f in "add multiply subtract maximum less".split()},
    **{f: (getattr(lax, f), single, 1, none) for f in SPECIAL},
    **{f: (getattr(jnp, f), both(broadcasts, is_int), 2, none) for f in INTEGERS},
    **{f"{f}_axis": ((lambda f: lambda x, a: f(x, axis=a))(getattr(jnp, f)), filled, 1, axis) for f in REDUCTIONS},
    **{f"{f}_keep": ((lambda f: lambda x, a: f(x, axis=a, keepdims=True))(getattr(jnp, f)), filled, 1, axis) for f in REDUCTIONS},
    **{f: (getattr(nn, f), is_float, 1, none) for f in ACTIVATIONS},
    "scale": (lambda x, n: x * (n / 4), is_float, 1, lambda r, x: [r.randint(-8, 8)]),
    "shift": (lambda x, n: x + n, lambda x: x.dtype.kind in "fi", 1, lambda r, x: [r.randint(-8, 8)]),
    "reshape": (lambda x, *s: x.reshape(s), lambda x: True, 1, lambda r, x: r.choice([[-1], [x.size, 1], [1, x.size, 1]])),
    "transpose": (lambda x, *p: jnp.transpose(x, p), ranked, 1, permutation),
    "expand_dims": (jnp.expand_dims, lambda x: True, 1, lambda r, x: [r.randint(-x.ndim - 1, x.ndim)]),
    "slice": (sliced, ranked, 1, index),
    "take": (lambda x, i, a: jnp.take(x, jnp.abs(i) % x.shape[a], axis=a), lambda x, i: filled(x) and i.dtype == np.int32 and i.ndim < 3, 2, lambda r, x, i: axis(r, x)),
    "scatter": (lambda x, a, n: x.at[a].add(n), both(filled, lambda x: x.dtype != bool), 1, lambda r, x: [r.randrange(x.shape[0]), r.randint(1, 3)]),
    "concatenate": (lambda x, y, a: jnp.concatenate([x, y], axis=a), alike, 2, lambda r, x, y: axis(r, x)),
    "stack": (lambda x, y: jnp.stack([x, y]), lambda x, y: x.shape == y.shape, 2, none),
    "where": (lambda c, x, y: jnp.where(c > 0, x, y), broadcasts, 3, none),
    "sort": (lambda x, a: jnp.sort(x, axis=a), ranked, 1, axis),
    "argsort": (lambda x, a: jnp.argsort(x, axis=a), ranked, 1, axis),
    "argmax": (lambda x, a: jnp.argmax(x, axis=a), filled, 1, axis),
    "flip": (lambda x, a: jnp.flip(x, axis=a), ranked, 1, axis),
    "roll": (lambda x, a, n: jnp.roll(x, n, axis=a), ranked, 1, lambda r, x: [*axis(r, x), r.randint(-3, 3)]),
    "repeat": (lambda x, a: jnp.repeat(x, 2, axis=a), ranked, 1, axis),
    "tile": (lambda x: jnp.tile(x, (2, 1)), lambda x: True, 1, none),
    "diff": (lambda x, a: jnp.diff(x, axis=a), lambda x: filled(x) and x.dtype != bool, 1, axis),
    "matmul": (jnp.matmul, both(contracts, floats), 2, none),
    "outer": (jnp.outer, floats, 2, none),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.75), is_float, 1, none),
    "to_f16": (lambda x: x.astype(jnp.float16), is_float, 1, none),
    "to_f32": (lambda x: x.astype(jnp.float32), lambda x: True, 1, none),
    "to_i32": (lambda x: jnp.clip(x, -99, 99).astype(jnp.int32), lambda x: x.dtype == np.float32, 1, none),
    "to_bool": (lambda x: x.astype(bool), lambda x: True, 1, none),
    "tril": (jnp.tril, lambda x: x.ndim >= 2, 1, none),
    "diagonal": (lambda x: jnp.diagonal(x, axis1=-2, axis2=-1), lambda x: x.ndim >= 2, 1, none),
    "cumsum": (lambda x, a: jnp.cumsum(x, axis=a), both(ranked, lambda x: x.dtype in (np.float32, np.int32)), 1, axis),
    "cummax": (lambda x, a: lax.cummax(x, axis=a), both(ranked, lambda x: x.dtype in (np.float32, np.int32)), 1, axis),
    "softmax": (lambda x, a: nn.softmax(x, axis=a), both(filled, is_float), 1, axis),
    "logsumexp": (lambda x, a: nn.logsumexp(x, axis=a), both(filled, is_float), 1, axis),
    "quantile": (lambda x, a: jnp.quantile(x, 0.3, axis=a), lambda x: filled(x) and x.dtype == np.float32, 1, axis),
    "one_hot": (lambda x: nn.one_hot(x, 3), lambda x: x.dtype == np.int32, 1, none),
    "top_k": (lambda x: lax.top_k(x, 1)[0], lambda x: filled(x) and is_float(x), 1, none),
    "cond": (lambda x, y: lax.cond(jnp.sum(x) > 0, jnp.sin, lambda v: v * 2, y), lambda x, y: is_float(x) and is_float(y), 2, none),
    "fori": (lambda x, n: lax.fori_loop(0, n, lambda i, v: jnp.cos(v) * 0.5 + i, x), lambda x: x.dtype == np.float32, 1, lambda r, x: [r.randint(0, 3)]),
    "while": (lambda x: lax.while_loop(lambda v: jnp.sum(v * v) > 0.5, lambda v: v / 2, x), lambda x: single(x) and bool(np.isfinite(x).all()), 1, none),
    "scan": (lambda x: lax.scan(lambda c, v: (jnp.tanh(c / 2 + jnp.sum(v)), c * v), jnp.float32(0.5), x)[1], lambda x: filled(x) and x.dtype == np.float32, 1, none),
    "vmap": (lambda x: fx.vmap(lambda v: jnp.sum(jnp.tanh(v)) * v)(x), lambda x: ranked(x) and is_float(x), 1, none),
    "grad": (fx.grad(lambda v: jnp.sum(jnp.sin(v) * v)), is_float, 1, none),
    "grad_softplus": (fx.grad(lambda v: jnp.sum(nn.softplus(v) * jnp.arctan(v))), is_float, 1, none),
    "jvp": (lambda x, t: fx.jvp(lambda v: jnp.tanh(v) * jnp.sqrt(1 + v * v), (x,), (t,))[1], lambda x, t: x.shape == t.shape and x.dtype == t.dtype and is_float(x), 2, none),
    "jit": (fx.jit(lambda v: jnp.sin(v) / (1 + v * v)), is_float, 1, none),
    "argmin": (lambda x, a: jnp.argmin(x, axis=a), filled, 1, axis),
    "cumprod": (lambda x, a: jnp.cumprod(x, axis=a), both(ranked, single), 1, axis),
    "swapaxes": (jnp.swapaxes, ranked, 1, lambda r, x: [r.randrange(x.ndim), r.randrange(-x.ndim, x.ndim)]),
    "moveaxis": (jnp.moveaxis, ranked, 1, lambda r, x: [r.randrange(x.ndim), r.randrange(-x.ndim, x.ndim)]),
    "pad": (padded, both(ranked, lambda x: x.dtype != bool), 1, padding),
    "triu": (lambda x: jnp.triu(x, 1), lambda x: x.ndim >= 2, 1, none),
    "rot90": (jnp.rot90, lambda x: x.ndim >= 2, 1, lambda r, x: [r.randint(-1, 2)]),
    "dynamic_slice": (windowed, filled, 1, start),
    "dynamic_update": (replaced, both(filled, lambda x: x.dtype != bool), 1, start),
    "scatter_set": (lambda x, i: x.at[jnp.abs(i) % x.shape[0]].set(2), lambda x, i: filled(x) and x.dtype != bool and is_int(i) and i.ndim == 1, 2, none),
    "scatter_mul": (lambda x, i: x.at[i].mul(2), lambda x, i: filled(x) and x.dtype != bool and is_int(i) and i.ndim == 1, 2, none),
    "get_or": (lambda x, i: x.at[i].get(mode="fill", fill_value=-1), lambda x, i: filled(x) and x.dtype != bool and is_int(i) and i.ndim == 1, 2, none),
    "searchsorted": (lambda x, y: jnp.searchsorted(jnp.sort(x), y), lambda x, y: vectors(x) and single(y), 2, none),
    "einsum": (lambda x, y: jnp.einsum("ij,kj->ki", x, y), lambda x, y: floats(x, y) and x.ndim == y.ndim == 2 and x.shape[1] == y.shape[1], 2, none),
    "convolve": (lambda x, y: jnp.convolve(x, y), lambda x, y: vectors(x) and vectors(y), 2, none),
    "interp": (lambda x, y: jnp.interp(x, jnp.arange(y.size, dtype=y.dtype), y), lambda x, y: single(x) and vectors(y), 2, none),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), both(filled, single), 1, none),
    "rfft": (lambda x: jnp.real(jnp.fft.rfft(x)), both(filled, single), 1, none),
    "det": (jnp.linalg.det, square, 1, none),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(x.shape[0])), square, 1, none),
    "solve": (lambda x: jnp.linalg.solve(x @ x.T + jnp.eye(x.shape[0]), x), square, 1, none),
    "eigvalsh": (lambda x: jnp.linalg.eigvalsh(x + x.T), square, 1, none),
    "draw": (lambda x, n: random.normal(random.fold_in(random.key(7), n), x.shape), lambda x: True, 1, lambda r, x: [r.randint(0, 99)]),
    "shuffle": (lambda x, n: random.permutation(random.key(n), x), ranked, 1, lambda r, x: [r.randint(0, 99)]),
    "gamma": (lambda x, n: random.gamma(random.key(n), jnp.abs(x) + 0.5), single, 1, lambda r, x: [r.randint(0, 99)]),
    "layer_norm": (lambda x: nn.standardize(x, axis=-1, epsilon=1e-5), both(filled, single), 1, none),
    "switch": (lambda x, n: lax.switch(n, [jnp.sin, lambda v: v * 2, jnp.tanh], x), single, 1, lambda r, x: [r.randint(-1, 3)]),
    "associative_scan": (lambda x, a: lax.associative_scan(jnp.add, x, axis=a), both(filled, single), 1, axis),
    "scan_reverse": (lambda x: lax.scan(lambda c, v: (c * 0.5 + jnp.sum(v), c), jnp.float32(1), x, reverse=True)[1], both(filled, single), 1, none),
    "hessian": (fx.hessian(lambda v: jnp.sum(jnp.sin(v) * v[::-1])), vectors, 1, none),
    "jacfwd": (fx.jacfwd(lambda v: jnp.tanh(v) * v[0]), vectors, 1, none),
    "jacrev": (fx.jacrev(lambda v: jnp.tanh(v) * v[0]), vectors, 1, none),
    "vmap_last": (lambda x: fx.vmap(lambda v: v * jnp.sum(v), in_axes=-1, out_axes=0)(x), both(filled, single), 1, none),
    "vmap_named": (lambda x: fx.vmap(lambda v: v / (1 + lax.psum(v * v, "i")), axis_name="i")(x), both(filled, single), 1, none),
    "nested": (lambda x: fx.jit(fx.vmap(fx.grad(lambda v: jnp.sum(jnp.cos(v) * v))))(x), both(ranked, single), 1, none),
    "custom_jvp": (fx.grad(lambda v: jnp.sum(bent(v) * v)), single, 1, none),
    "custom_vjp": (fx.jit(fx.grad(lambda v: jnp.sum(halved(v) + v))), single, 1, none),
    "grad_scan": (fx.grad(lambda v: lax.scan(lambda c, u: (jnp.tanh(c + jnp.sum(u)), None), jnp.float32(0.1), v)[0]), both(filled, single), 1, none),
    "grad_fori": (fx.grad(lambda v: jnp.sum(lax.fori_loop(0, 3, lambda i, s: jnp.sin(s) + i, v))), single, 1, none),
    "checkpoint": (fx.grad(fx.checkpoint(lambda v: jnp.sum(jnp.sin(jnp.cos(v))))), is_float, 1, none),
}  # fmt: skip


def value(kind, shape, seed):
    """An input: the same in Rust, by the same keys."""
    key = random.key(seed)
    if kind == "float32":
        return random.normal(key, shape)
    if kind == "int32":
        return random.randint(key, shape, -4, 6)
    return random.bernoulli(key, 0.5, shape)


def numbers(xs):
    return ",".join(map(str, xs))


def hashed(x):
    """Of all bytes; a nan is a nan."""
    x = np.asarray(x)
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), np.array(np.nan, x.dtype), x)
    h = 0xCBF29CE484222325
    for b in x.tobytes():
        h = ((h ^ b) * 0x100000001B3) % 2**64
    return f"{x.dtype.name} {numbers(x.shape)}; {h:016x}"


def program(r, lines):
    """Draws inputs and lines; prints them."""
    values = []
    for i in range(r.randint(1, 3)):
        kind = "float32" if i == 0 else r.choice(["float32", "int32", "int32", "bool"])
        shape, seed = [r.randint(1, 4) for _ in range(r.randint(0, 3))], r.randrange(2**16)
        if len(shape) == 2 and i == 0:
            shape[1] = shape[0]  # what decompositions take
        values.append(value(kind, tuple(shape), seed))
        print(f"in {kind} {numbers(shape)}; {seed}")
    for _ in range(lines):
        name = r.choice(list(OPS))
        f, fits, n, draw = OPS[name]
        tries = ([r.randrange(len(values)) for _ in range(n)] for _ in range(20))
        chosen = next((c for c in tries if fits(*(values[i] for i in c))), None)
        if chosen is None:
            continue
        xs = [values[i] for i in chosen]
        parameters = draw(r, *xs)
        try:
            y = f(*xs, *parameters)
        except TypeError:  # a dtype that the function does not take
            continue
        if y.size > MOST:
            continue
        values.append(y)
        print(f"{name} {numbers(chosen)}; {numbers(parameters)} = {hashed(y)}")
    print()


if __name__ == "__main__":
    count, seed = (int(a) for a in [*sys.argv[1:], *["160", "0"][len(sys.argv) - 1 :]])
    for k in range(count):
        program(python_random.Random(seed * 1_000_003 + k), 25)
