"""Writes threefry.txt: what JAX 0.10.2 answers for keys, splits, folds and bits.

    python crates/ferrax-prng/tests/golden/threefry.py

One case to a line: `kind layout-or-mode arguments = words in hexadecimal`. JAX is run, never read.
"""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

assert jax.__version__ == "0.10.2", jax.__version__
lines = []


def emit(head, words):
    words = np.asarray(words).reshape(-1)
    lines.append(f"{head} = " + " ".join(f"{int(w):x}" for w in words))


SEEDS = [0, 1, 2, 42, 1701, 2**31 - 1, -1, -2, -(2**31)]
WIDE = [2**31, 2**32 - 1, 2**32, 2**32 + 1, 0x123456789ABCDEF, 2**63 - 1, -(2**63), -(2**32), -(2**31) - 1]
for mode in (32, 64):
    with jax.enable_x64(mode == 64):
        for seed in SEEDS + WIDE:
            try:
                key = jax.random.PRNGKey(seed)
            except OverflowError as error:
                print("refused", mode, seed, error)
                continue
            emit(f"seed {mode} {seed}", key)

KEYS = [(0, 0), (0, 42), (0xFFFFFFFF, 0xFFFFFFFF), (0x13198A2E, 0x03707344)]
DATA = [0, 1, 2, 7, 2**31 - 1, 2**31, 2**32 - 1]
with jax.enable_x64(True):
    for partitionable in (True, False):
        layout = "partitionable" if partitionable else "original"
        jax.config.update("jax_threefry_partitionable", partitionable)
        for k in KEYS:
            key = jnp.array(k, jnp.uint32)
            words = f"{k[0]:x} {k[1]:x}"
            for n in (0, 1, 2, 3, 5, 8):
                emit(f"split {layout} {words} {n}", jax.random.split(key, n))
            for data in DATA:
                emit(f"fold_in {layout} {words} {data}", jax.random.fold_in(key, data))
            for width in (8, 16, 32, 64):
                for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33):
                    emit(f"bits {layout} {words} {width} {n}", jax.random.bits(key, (n,), f"uint{width}"))
            # a shape of rank above one is its row-major flattening
            emit(f"bits {layout} {words} 32 24", jax.random.bits(key, (2, 3, 4), "uint32"))
            emit(f"bits {layout} {words} 16 15", jax.random.bits(key, (3, 5), "uint16"))

pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
