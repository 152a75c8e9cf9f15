"""Writes weights.safetensors, which the Rust test reads and writes again: a tree's leaves under the names that `keystr` gives them.

PYTHONPATH=python python crates/ferrax/tests/api/weights.py     (wants the package `safetensors`)
"""

from pathlib import Path

import ferrax as fx
import ferrax.numpy as jnp
import numpy as np
from ferrax import random
from ferrax.tree_util import keystr, tree_leaves_with_path
from safetensors.numpy import load_file, save_file

PATH = Path(__file__).with_name("weights.safetensors")


def tree():
    """A model as dicts, lists and tuples: in Rust, structs, vectors and tuples."""
    w = random.normal(random.key(5), (3, 2))
    return {
        "layers": [{"w": w, "b": jnp.zeros(2)}, {"w": w.T.astype(jnp.float16), "b": jnp.arange(3, dtype=jnp.int8)}],
        "moments": (jnp.float32(0.5), {'odd "key".1': jnp.array([True, False]), "step": jnp.int32(7)}),
        "spectrum": jnp.fft.fft(w[:, 0]),
    }


if __name__ == "__main__":
    named = {keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in tree_leaves_with_path(tree())}
    save_file(named, PATH)
    for name, x in load_file(PATH).items():
        print(name, x.dtype, x.shape, fx.numpy.array_equal(x, named[name]))
