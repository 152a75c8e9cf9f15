"""What programs of libraries give, and what they gave on JAX itself, where `values/` was recorded.

    def programs(t): t("sum", lambda: jnp.arange(3.0).sum())
    OUTCOMES = outcomes(programs)                                    # {"sum": [3.0]}
    assert_agrees(OUTCOMES["sum"], stored(__file__)["sum"])

On JAX (`FERRAX_TEST_LIB=jax`) `stored` is what was just seen, and is written down.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

VALUES = pathlib.Path(__file__).parent / "values"
ON_JAX = os.environ.get("FERRAX_TEST_LIB") == "jax"
MOST = 12
# What docs/libraries.md says does not work.
KNOWN = {("pennylane", f"differentiate {method}") for method in ("parameter-shift", "adjoint", "finite-diff", "hadamard")}
_seen = {}


def _plain(x):
    """A leaf as numbers, of an array the first few, or a short text; None for anything else."""
    if isinstance(x, (bool, int, float)) or (hasattr(x, "dtype") and hasattr(x, "shape")):
        if hasattr(x, "dtype") and (jnp.issubdtype(x.dtype, jax.dtypes.prng_key) or (np.dtype(x.dtype).kind not in "biufc" and "float" not in str(x.dtype))):
            return str(x.dtype)
        if isinstance(x, jax.ShapeDtypeStruct):
            return f"{x.dtype}{list(x.shape)}"
        flat = np.asarray(x).astype(np.complex128).ravel()
        numbers = [*flat.real, *flat.imag] if np.iscomplexobj(x) else flat.real
        return [f"{list(np.shape(x))}", *[float(f"{v:.6g}") for v in numbers[:MOST]]]
    return x if isinstance(x, str) and len(x) < 40 and "0x" not in x and "/" not in x else None


def _outcome(f):
    try:
        return json.loads(json.dumps([_plain(x) for x in jax.tree.leaves(f())]))
    except Exception as e:
        return {"error": type(e).__name__}


def outcomes(programs):
    """What each program gives, by its name: the numbers of its leaves, or the class of its error."""
    out = {}

    def t(name, f):
        while name in out:
            name += "'"
        out[name] = _outcome(f)

    programs(t)
    _seen[programs.__globals__["__file__"]] = out
    return out


def elsewhere(file, **variables):
    """What the programs of a file give in a process of its own, with these environment variables: it prints them, as JSON."""
    done = subprocess.run([sys.executable, file], env=os.environ | variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    _seen[file] = json.loads(done.stdout.splitlines()[-1])
    return _seen[file]


@functools.cache
def stored(file):
    """What the programs of a file gave on JAX."""
    place = VALUES / f"{pathlib.Path(file).stem.removeprefix('test_')}.json"
    if ON_JAX:
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in _seen[file].items()]
        place.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return json.loads(place.read_text())


def cases(file, seen):
    """The programs of a file and those that are stored for it, as parameters of a test."""
    library = pathlib.Path(file).stem.removeprefix("test_")
    known = lambda name: [pytest.mark.xfail(reason="docs/libraries.md", strict=True)] if (library, name) in KNOWN and not ON_JAX else []
    return [pytest.param(name, marks=known(name)) for name in sorted({*seen, *stored(file)})]


def assert_agrees(got, want, tolerance=2e-3):
    """The same numbers, up to what six steps of an optimizer make of one rounding; the same text; the same class of error."""
    assert got is not None and want is not None, (got, want)
    if isinstance(want, dict) or isinstance(got, dict):
        assert got == want
        return
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        if isinstance(w, list):
            assert g[0] == w[0], "shapes"
            np.testing.assert_allclose(g[1:], w[1:], rtol=tolerance, atol=tolerance)
        else:
            assert g == w
