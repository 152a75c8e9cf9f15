"""Writes distributions.json beside this file: draws of JAX 0.10.2 under both counter layouts, with and without 64-bit types.

usage: python tests/golden/distributions.py        (needs jax==0.10.2)
"""
import json
import pathlib

import jax
import numpy as np

SEED = 7
# function, arguments, keyword arguments. Arrays are lists under "array".
EXACT = [
    ("split", [], {}), ("split", [5], {}), ("split", [[2, 3]], {}), ("fold_in", [3], {}), ("fold_in", [4294967295], {}),
    ("bits", [[5]], {}), ("bits", [[5], "uint8"], {}), ("bits", [[5], "uint16"], {}), ("bits", [[5], "uint64"], {}), ("bits", [[2, 3], "uint32"], {}),
    ("uniform", [[5]], {}), ("uniform", [[5], "float16"], {}), ("uniform", [[5], "bfloat16"], {}), ("uniform", [[5], "float64"], {}),
    ("uniform", [[5]], {"minval": -3, "maxval": 5}),
    ("randint", [[6], 0, 10], {}), ("randint", [[6], -5, 100, "int8"], {}), ("randint", [[6], 0, 256, "uint8"], {}),
    ("randint", [[6], 0, 60000, "uint16"], {}), ("randint", [[6], 0, 7, "uint32"], {}), ("randint", [[6], -9, 9, "int64"], {}),
    ("randint", [[3], {"array": [0, 10, 20]}, {"array": [5, 15, 25]}], {}), ("randint", [[3], 5, 2], {}),
    ("bernoulli", [0.3, [12]], {}), ("bernoulli", [0.3, [12]], {"mode": "high"}), ("bernoulli", [{"array": [0.1, 0.9]}, [4, 2]], {}),
    ("permutation", [9], {}), ("permutation", [{"array": [[0, 1], [2, 3], [4, 5]]}], {}), ("permutation", [{"array": [[0, 1], [2, 3], [4, 5]]}, 1, True], {}),
    ("choice", [5, [4]], {}), ("choice", [5, [4]], {"replace": False}), ("choice", [{"array": [[0, 1], [2, 3], [4, 5]]}, [2]], {}),
    ("rademacher", [[8]], {}),
]
# XLA contracts the product and sum of a shifted uniform draw; a span that is a power of two hides it.
ROUNDED = [
    ("uniform", [[5]], {"minval": -3, "maxval": 4}), ("uniform", [[2, 3]], {"minval": {"array": [0.0, 1.0, 2.0]}, "maxval": 5.0}),
    ("normal", [[5]], {}), ("normal", [[5], "float64"], {}), ("normal", [[3], "complex64"], {}), ("exponential", [[5]], {}), ("gumbel", [[5]], {}),
    ("gumbel", [[5]], {"mode": "high"}), ("laplace", [[5]], {}), ("logistic", [[5]], {}), ("cauchy", [[5]], {}), ("maxwell", [[4]], {}),
    ("truncated_normal", [-1.0, 2.0, [5]], {}), ("pareto", [2.0, [4]], {}), ("weibull_min", [1.0, 2.0, [4]], {}), ("rayleigh", [2.0, [4]], {}),
    ("triangular", [0.0, 0.5, 1.0, [4]], {}), ("lognormal", [1.0, [4]], {}), ("double_sided_maxwell", [1.0, 2.0, [4]], {}), ("wald", [1.0, [4]], {}),
    ("geometric", [0.3, [6]], {}), ("categorical", [{"array": [[0.1, 0.2, 0.3], [3.0, 2.0, 1.0]]}], {"shape": [4, 2]}),
    ("choice", [5, [4]], {"p": {"array": [0.1, 0.2, 0.3, 0.2, 0.2]}}),
    ("choice", [5, [3]], {"replace": False, "p": {"array": [0.1, 0.2, 0.3, 0.2, 0.2]}}),
    ("gamma", [{"array": [0.3, 1.0, 2.5, 30.0]}], {}), ("loggamma", [{"array": [0.01, 1.0, 2.5]}], {}), ("beta", [2.0, 0.5, [4]], {}),
    ("dirichlet", [{"array": [0.5, 1.0, 2.0]}, [2]], {}), ("t", [3.0, [4]], {}), ("chisquare", [3.0, [4]], {}), ("f", [2.0, 3.0, [4]], {}),
    ("generalized_normal", [3.0, [4]], {}), ("ball", [3, 2, [2]], {}), ("poisson", [{"array": [0.0, 3.0, 50.0, 10000.0]}], {}),
]


def value(x):
    if isinstance(x, dict):
        return jax.numpy.array(x["array"])
    return tuple(x) if isinstance(x, list) else x


def main():
    cases = []
    for partitionable in (True, False):
        for x64 in (False, True):
            jax.config.update("jax_threefry_partitionable", partitionable)
            jax.config.update("jax_enable_x64", x64)
            for exact, table in ((True, EXACT), (False, ROUNDED)):
                for name, args, kwargs in table:
                    if not x64 and any(a in ("float64", "uint64", "int64") for a in args if isinstance(a, str)):
                        continue
                    out = np.asarray(getattr(jax.random, name)(jax.random.PRNGKey(SEED), *map(value, args), **{k: value(v) for k, v in kwargs.items()}))
                    dtype = out.dtype.name
                    if out.dtype.kind == "c":
                        out = np.stack([out.real, out.imag], -1)
                    out = out.astype(np.float64) if dtype in ("float16", "bfloat16", "float32") else out
                    cases.append(dict(name=name, args=args, kwargs=kwargs, partitionable=partitionable, x64=x64, exact=exact, dtype=dtype, value=out.tolist()))
    text = ",\n".join(json.dumps(c) for c in cases)
    (pathlib.Path(__file__).parent / "distributions.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
