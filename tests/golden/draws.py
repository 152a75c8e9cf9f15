"""What JAX 0.10.2 draws, under both counter layouts. `python tests/golden/draws.py` on JAX rewrites draws.json."""
import json
import pathlib

import numpy as np

FILE = pathlib.Path(__file__).with_name("draws.json")

EXACT = {
    "PRNGKey": lambda r, k: k,
    "split": lambda r, k: r.split(k),
    "split 5": lambda r, k: r.split(k, 5),
    "split 2x3": lambda r, k: r.split(k, (2, 3)),
    "fold_in": lambda r, k: r.fold_in(k, 123456789),
    "bits": lambda r, k: r.bits(k, (7,)),
    "bits 8": lambda r, k: r.bits(k, (9,), "uint8"),
    "bits 16": lambda r, k: r.bits(k, (3, 3), "uint16"),
    "bits 64": lambda r, k: r.bits(k, (5,), "uint64"),
    "uniform": lambda r, k: r.uniform(k, (5,)),
    "uniform odd": lambda r, k: r.uniform(k, (3, 3)),
    "uniform scalar": lambda r, k: r.uniform(k),
    "uniform range": lambda r, k: r.uniform(k, (4,), minval=-3.0, maxval=5.0),
    "uniform f16": lambda r, k: r.uniform(k, (4,), "float16"),
    "uniform f64": lambda r, k: r.uniform(k, (4,), "float64"),
    "randint": lambda r, k: r.randint(k, (6,), 0, 10),
    "randint wide": lambda r, k: r.randint(k, (6,), -(2**31), 2**31 - 1),
    "randint 8": lambda r, k: r.randint(k, (6,), -100, 101, "int8"),
    "randint u8": lambda r, k: r.randint(k, (6,), 0, 255, "uint8"),
    "randint 64": lambda r, k: r.randint(k, (4,), 0, 2**40, "int64"),
    "bernoulli": lambda r, k: r.bernoulli(k, 0.3, (20,)),
    "permutation": lambda r, k: r.permutation(k, 10),
    "permutation rows": lambda r, k: r.permutation(k, np.arange(12).reshape(4, 3)),
    "choice": lambda r, k: r.choice(k, 10, (5,)),
    "choice without replacement": lambda r, k: r.choice(k, 10, (5,), replace=False),
    # Counts, which the last bit of a logarithm seldom moves: inversion, rejection, both in one draw, and the two sides of 1/2.
    "binomial few": lambda r, k: r.binomial(k, 10, 0.3, (20,)),
    "binomial many": lambda r, k: r.binomial(k, 1000, 0.7, (20,)),
    "binomial mixed": lambda r, k: r.binomial(k, np.array([1, 5, 20, 100, 1e5], np.float32), np.array([0.5, 0.1, 0.9, 0.0, 0.25], np.float32)),
    "binomial half": lambda r, k: r.binomial(k, 200, 0.25, (20,), "float16"),
    "binomial f64": lambda r, k: r.binomial(k, 10**6, 0.001, (20,)),
    "multinomial": lambda r, k: r.multinomial(k, 100, np.array([0.125, 0.25, 0.25, 0.375], np.float32)),
    "multinomial batch": lambda r, k: r.multinomial(k, np.array([10.0, 1000.0], np.float32), np.array([0.25, 0.25, 0.5], np.float32), shape=(3, 2, 3)),
    "multinomial f64": lambda r, k: r.multinomial(k, 100, np.array([0.1, 0.2, 0.3, 0.4])),
}

CLOSE = {
    "normal": lambda r, k: r.normal(k, (5,)),
    "normal f64": lambda r, k: r.normal(k, (5,), "float64"),
    "truncated_normal": lambda r, k: r.truncated_normal(k, -1.0, 2.0, (5,)),
    "exponential": lambda r, k: r.exponential(k, (5,)),
    "gumbel": lambda r, k: r.gumbel(k, (5,)),
    "laplace": lambda r, k: r.laplace(k, (5,)),
    "logistic": lambda r, k: r.logistic(k, (5,)),
    "categorical": lambda r, k: r.categorical(k, np.log(np.array([0.2, 0.5, 0.3], np.float32)), shape=(12,)),
    "choice with weights": lambda r, k: r.choice(k, 4, (8,), p=np.array([0.1, 0.2, 0.3, 0.4], np.float32)),
}

SEEDS = (0, 42, 2**31 + 7)
LAYOUTS = ("partitionable", "original")
NEEDS_X64 = (" 64", " f64")


def draw(jax, f, seed, layout, wide):
    """One draw as an array, with the flags as they were afterwards."""
    jax.config.update("jax_threefry_partitionable", layout == "partitionable")
    jax.config.update("jax_enable_x64", wide)
    try:
        return np.asarray(f(jax.random, jax.random.PRNGKey(np.uint32(seed))))
    finally:
        jax.config.update("jax_enable_x64", False)
        jax.config.update("jax_threefry_partitionable", True)


def cases():
    for name, f in (EXACT | CLOSE).items():
        for seed in SEEDS:
            for layout in LAYOUTS:
                yield name, f, seed, layout, name.endswith(NEEDS_X64)


def read():
    return json.loads(FILE.read_text())


if __name__ == "__main__":
    import jax

    out = {}
    for name, f, seed, layout, wide in cases():
        x = draw(jax, f, seed, layout, wide)
        values = x.astype(np.float64) if x.dtype.kind == "f" else x
        out[f"{name} | {seed} | {layout}"] = [str(x.dtype), values.tolist()]
    FILE.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "\n}\n")
