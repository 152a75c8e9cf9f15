"""Names that JAX's experimental modules import and that libraries take from there:
`from jax.experimental.ode import api_util`.

Invariant: `_imports.txt` lists them, one line for each module: its names, and where each is
defined. A name that Ferrax's module defines itself has priority.
"""

import functools
import pathlib

__all__ = ["import_of"]


@functools.cache
def _table():
    rows = (line.partition(": ") for line in (pathlib.Path(__file__).parent / "_imports.txt").read_text().splitlines())
    return {module: dict(entry.split("=") for entry in names.split()) for module, _, names in rows}


def import_of(module, name):
    """The dotted path where a name that JAX's `module` imports is defined; None if it imports no
    such name.
    """
    return _table().get(module, {}).get(name)
