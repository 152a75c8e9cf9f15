"""What JAX's experimental modules import, which libraries take from there: `from jax.experimental.ode import api_util`.

Invariant: which there are is read from `_imports.txt`, a line a module: its names, and where each is defined. A name that a module of Ferrax's has itself goes first.
"""

import functools
import pathlib

__all__ = ["import_of"]


@functools.cache
def _table():
    rows = (line.partition(": ") for line in (pathlib.Path(__file__).parent / "_imports.txt").read_text().splitlines())
    return {module: dict(entry.split("=") for entry in names.split()) for module, _, names in rows}


def import_of(module, name):
    """Where what JAX's `module` imports as `name` is defined, as a dotted path; None where it imports no such name."""
    return _table().get(module, {}).get(name)
