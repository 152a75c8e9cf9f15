"""Programs of libraries, and what they gave on JAX, where `values/` was recorded.

    def programs(t):
        t("sum", lambda: jnp.arange(3.0).sum())
        t("negative", lambda: jnp.zeros(-1), raises=ValueError, why="a size is not negative")

    PROGRAMS = Programs(programs)

    @pytest.mark.parametrize("name", PROGRAMS.cases())
    def test_jax(name):
        PROGRAMS.check(name)

A program runs when its test runs. `programs` is called again for each of them, so a program sees nothing that another one has changed. An error is
expected only of a program that says which and why. Any other program returns a tree of arrays, numbers and texts, and all leaves are compared:
numbers with a tolerance that follows from their dtype, integers and texts exactly. On JAX (`FERRAX_TEST_LIB=jax`) a test writes down what its
program gave, and fails if there is nothing to compare.
"""

import copy
import functools
import hashlib
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys

import numpy as np
import pytest

try:
    import jax
except ImportError:  # the tests of this file need no library, so they run without the name
    import ferrax as jax

VALUES = pathlib.Path(__file__).parent / "values"
ON_JAX = os.environ.get("FERRAX_TEST_LIB") == "jax"
# What docs/libraries.md says does not work.
KNOWN = {("pennylane", f"differentiate {method}") for method in ("parameter-shift", "adjoint", "finite-diff", "hadamard")}
# An array of more numbers is recorded by some of them and by sums of all, each with other signs.
MOST = 64
EXAMPLES, SUMS = 16, 8


class NothingToCompareError(Exception):
    """A program returned no leaves, or one that is neither a number nor a text."""


class _FoundError(BaseException):
    """The program has run: the rest of the definitions is skipped."""


def leaf(x):
    """A leaf of a result as it is recorded: a list of its type and its numbers or its text."""
    if isinstance(x, (str, bool, int)):
        if isinstance(x, str) and re.search("0x[0-9a-f]{6}", x):
            raise NothingToCompareError(f"the text holds an address: {x}")
        return [type(x).__name__, x]
    if isinstance(x, jax.ShapeDtypeStruct):
        return ["type", f"{x.dtype}{list(x.shape)}"]
    if hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return [f"{x.dtype}{list(x.shape)}", *np.asarray(jax.random.key_data(x)).ravel().tolist()]
    if not isinstance(x, (float, complex)) and not (hasattr(x, "dtype") and hasattr(x, "shape") and hasattr(x, "__array__")):
        raise NothingToCompareError(f"a result of type {type(x).__module__}.{type(x).__qualname__} cannot be compared")
    array = np.asarray(x)
    kind = type(x).__name__ if isinstance(x, (float, complex)) and not hasattr(x, "dtype") else f"{array.dtype}{list(array.shape)}"
    if array.dtype.kind in "biu" or "int" in str(array.dtype):
        return [kind, *_whole(array.astype(object).ravel())]
    if array.dtype.kind not in "fc" and "float" not in str(array.dtype):
        raise NothingToCompareError(f"an array of dtype {array.dtype} cannot be compared")
    digits = 17 if array.dtype in (np.float64, np.complex128) else 9
    return [kind, *(float(f"{v:.{digits}g}") for v in _numbers(array))]


def _whole(numbers):
    """Integers, all of them or a digest and some."""
    if len(numbers) <= MOST:
        return [bool(v) if isinstance(v, (bool, np.bool_)) else int(v) for v in numbers]
    some = [int(v) for v in numbers[:: max(1, len(numbers) // EXAMPLES)][:EXAMPLES]]
    return [hashlib.sha256(" ".join(str(int(v)) for v in numbers).encode()).hexdigest()[:16], *some]


def _numbers(array):
    """Floating point numbers, all of them or some and sums of all; of complex ones the parts."""
    flat = array.astype(np.complex128).ravel() if np.iscomplexobj(array) else array.astype(np.float64).ravel()
    flat = np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat
    if len(flat) <= MOST:
        return flat
    finite = np.where(np.isfinite(flat), flat, 0.0)
    kinds = np.where(np.isnan(flat), 1.0, np.where(flat == np.inf, 2.0, np.where(flat == -np.inf, 3.0, 0.0)))
    signs = [np.random.RandomState(i).randint(0, 2, len(flat)) * 2 - 1 for i in range(SUMS)]
    sums = [(finite * s).sum() / math.sqrt(len(flat)) for s in signs]
    return [*flat[:: len(flat) // EXAMPLES][:EXAMPLES], *sums, math.sqrt((finite**2).mean()), (kinds * signs[0]).sum()]


def leaves(result):
    """The leaves of a result as they are recorded."""
    out = [leaf(x) for x in jax.tree.leaves(result)]
    if not out:
        raise NothingToCompareError("the program returns nothing")
    return json.loads(json.dumps(out))


def tolerance_of(kind):
    """How far numbers of a dtype may differ, relative to the largest of their leaf, and how far whatever their size is."""
    name = {"float": "float32", "complex": "float32", "complex64": "float32", "complex128": "float64"}.get(kind.split("[")[0], kind.split("[")[0])
    eps = float(jax.numpy.finfo(name).eps)
    return eps ** (2 / 3), 16 * eps


def assert_agrees(got, want, within=None):
    """The same leaves: types, texts and integers are equal, other numbers close. `within` takes the place of the relative tolerance of the dtype."""
    assert len(got) == len(want), f"{len(got)} leaves instead of {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert g[0] == w[0], f"leaf {i}: {g[0]} instead of {w[0]}"
        if not w[0].startswith(("float", "bfloat", "complex")):
            assert g == w, f"leaf {i}: {g} instead of {w}"
            continue
        relative, absolute = tolerance_of(w[0])
        largest = max((abs(v) for v in w[1:] if math.isfinite(v)), default=0.0)
        np.testing.assert_allclose(g[1:], w[1:], rtol=0, atol=(relative if within is None else within) * largest + absolute, err_msg=f"leaf {i} of {w[0]}")


class Programs:
    """The programs of a file of tests. With environment variables they run in a process of their own: `python FILE`, all of them when the first is needed."""

    def __init__(self, define, **environment):
        self.define, self.environment = define, environment
        self.file = pathlib.Path(define.__globals__["__file__"])
        self.subject = self.file.stem.removeprefix("test_")
        # Generators of the module, which each program finds as they are now.
        self.generators = {k: copy.deepcopy(v) for k, v in define.__globals__.items() if isinstance(v, (np.random.RandomState, np.random.Generator))}

    def _each(self, visit):
        """Calls `visit(name, f, raises, within)` for each program, in the order of the file."""
        seen = set()
        self.define.__globals__.update({k: copy.deepcopy(v) for k, v in self.generators.items()})
        np.random.seed(0)
        random.seed(0)

        def t(name, f, raises=None, why=None, within=None):
            if name in seen:
                raise ValueError(f"two programs of {self.subject} are named {name!r}")
            if (raises is None) != (why is None):
                raise ValueError(f"{self.subject}, {name!r}: raises= says which error is expected, why= the reason")
            seen.add(name)
            visit(name, f, raises, within)

        self.define(t)

    @functools.cached_property
    def names(self):
        """The names of the programs."""
        found = []
        self._each(lambda name, *_: found.append(name))
        return found

    def run(self, name):
        """What a program gives: its leaves, or `{"raises": class}` where that error is expected; and its tolerance."""
        out = []

        def visit(this, f, raises, within):
            if this == name:
                out.append((self._outcome(name, f, raises), within))
                raise _FoundError

        try:
            self._each(visit)
        except _FoundError:
            return out[0]
        raise KeyError(f"{self.subject} has no program {name!r}")

    def _outcome(self, name, f, raises):
        try:
            result = f()
        except Exception as e:
            if raises is None or type(e).__name__ != getattr(raises, "__name__", raises):
                raise
            return {"raises": type(e).__name__}
        if raises is not None:
            pytest.fail(f"{name} gives a result; an error {raises} is expected")
        return leaves(result)

    @functools.cached_property
    def _elsewhere(self):
        done = subprocess.run([sys.executable, str(self.file)], env=os.environ | self.environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def print_all(self):
        """Prints what all programs give, as JSON: what `python FILE` does for the process that reads it."""
        out = {}
        for name in self.names:
            try:
                out[name] = self.run(name)
            except (Exception, pytest.fail.Exception) as e:
                out[name] = [{"failed": f"{type(e).__name__}: {e}"}, None]
        print(json.dumps(out))

    @property
    def record(self):
        return VALUES / f"{self.subject}.json"

    @functools.cached_property
    def stored(self):
        """What the programs gave on JAX."""
        return json.loads(self.record.read_text()) if self.record.exists() else {}

    def cases(self):
        """The programs, as parameters of a test. On JAX those of the file, elsewhere those that are recorded."""
        if ON_JAX:
            return self.names
        known = lambda name: [pytest.mark.xfail(reason="docs/libraries.md", strict=True)] if (self.subject, name) in KNOWN else []
        return [pytest.param(name, marks=known(name)) for name in [*self.stored, "recorded"]]

    def check(self, name):
        """Runs a program and compares it with what is recorded; on JAX, records it. "recorded": each program of the file is recorded, and no other."""
        if name == "recorded" and not ON_JAX:
            assert sorted(self.names) == sorted(self.stored), "record the programs on JAX"
            return
        got, within = self._elsewhere[name] if self.environment else self.run(name)
        if "failed" in got:
            pytest.fail(got["failed"])
        if ON_JAX:
            self.stored[name] = got
            self._write()
            return
        want = self.stored[name]
        if isinstance(got, dict) or isinstance(want, dict):
            assert got == want
        else:
            assert_agrees(got, want, within)

    def _write(self):
        order = self.names if not self.environment else self._elsewhere
        lines = [f"{json.dumps(name)}: {json.dumps(self.stored[name])}" for name in order if name in self.stored]
        self.record.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def counted(library):
    """How many recorded programs of a library compute, and how many end in an error, as they should."""
    seen = json.loads((VALUES / f"{library}.json").read_text()).values()
    errors = sum(isinstance(outcome, dict) for outcome in seen)
    return len(seen) - errors, errors
