"""Programs whose text is compared with what JAX 0.10.2 prints. `python tests/golden/programs.py` on JAX rewrites programs.txt."""
import pathlib
import re

import numpy as np

TEXT = pathlib.Path(__file__).with_name("programs.txt")

# Parameters at these values say nothing: JAX prints them, we do not, or the other way round.
DEFAULTS = (
    "dimensions=None", "out_sharding=None", "sharding=None", "preferred_element_type=float32", "precision=None", "accuracy=None", "keep_unused=False", "inline=False",
    "donated_invars=", "in_shardings=", "out_shardings=", "in_layouts=", "out_layouts=", "resource_env=", "ctx_mesh=", "compiler_options_kvs=",
    "is_high_level=", "layout=None", "unique_indices=", "indices_are_sorted=", "mode=", "fill_value=", "_split_transpose=False", "unroll=1", "algorithm=",
)  # fmt: skip


def programs(jax):
    jnp, lax = jax.numpy, jax.lax
    v, m = np.ones(3, np.float32), np.ones((3, 4), np.float32)
    return {
        "polynomial": (lambda x: 3 * x**2 + 2 * x + 1, (1.0,)),
        "broadcast": (lambda x, y: x + y, (m, np.ones(4, np.float32))),
        "reductions": (lambda x: (x.sum(), x.max(0), jnp.mean(x, 1)), (m,)),
        "matmul": (lambda x, y: x @ y, (m, np.ones((4, 2), np.float32))),
        "convert": (lambda x: x.astype(jnp.int32) + 1, (v,)),
        "compare": (lambda x: (x > 0) & (x < 1), (v,)),
        "reshape": (lambda x: x.T.reshape(2, 6), (m,)),
        "concatenate": (lambda x: lax.concatenate([x, x], 0), (v,)),
        "grad of sin": (jax.grad(jnp.sin), (1.0,)),
        "grad of a product": (jax.grad(lambda x, y: x * y, argnums=(0, 1)), (1.0, 2.0)),
        "grad of a sum of squares": (jax.grad(lambda x: jnp.sum(x**2)), (v,)),
        "jvp of tan": (lambda x, t: jax.jvp(jnp.tan, (x,), (t,)), (1.0, 1.0)),
        "vmap of a product": (jax.vmap(lambda x, y: x * y, in_axes=(0, None)), (m, np.ones(4, np.float32))),
        "cond": (lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), (1.0,)),
        "scan": (lambda c, xs: lax.scan(lambda c, x: (c + x, c * x), c, xs), (np.float32(0), v)),
        "while": (lambda x: lax.while_loop(lambda c: c < 10, lambda c: c + 1, x), (np.int32(0),)),
        "call": (lambda x: jax.jit(jnp.sin)(x) + 1, (1.0,)),
        "constant": (lambda x: x + v, (v,)),
        "integer": (lambda i: lax.div(i, np.int32(2)), (np.int32(3),)),
        "iota": (lambda: lax.iota(np.int32, 5), ()),
        "pad": (lambda x: lax.pad(x, np.float32(0), [(1, 2, 0)]), (v,)),
        "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i,), (2,)), (v, np.int32(1))),
        "cumsum": (lambda x: lax.cumsum(x), (v,)),
        "sort": (lambda x: lax.sort(x), (v,)),
    }


def normal(text):
    """Without line breaks and without parameters at their default."""
    text = re.sub(r"\s+", " ", str(text)).strip()
    text = re.sub(r"np\.int64\((\d+)\)", r"\1", text)

    def keep(match):
        parts = [p for p in re.split(r" (?=\w+=)", match.group(1)) if not p.startswith(DEFAULTS)]
        return f"[{' '.join(parts).strip()}]" if any(p.strip() for p in parts) else ""

    before = None
    while before != text:  # innermost brackets first; those of shapes hold no '='
        before = text
        text = re.sub(r"\[ ?((?:[^\[\]{}=]|\[[\d,]*\])*=(?:[^\[\]{}]|\[[\d,]*\])*?)\]", keep, text)
    return re.sub(r"\s+", " ", text)


def render(jax):
    return {name: normal(jax.make_jaxpr(f)(*args)) for name, (f, args) in programs(jax).items()}


def read():
    lines = TEXT.read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line)


if __name__ == "__main__":
    import jax

    TEXT.write_text("".join(f"{name}: {text}\n" for name, text in render(jax).items()))
