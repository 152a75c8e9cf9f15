"""Names of other compilers and of unsupported hardware: they can be imported, and raise an error
that says so when they are used.

Invariant: `_foreign.txt` lists them, with a line for each module: its names, or `*` for all.
"""

import importlib.util
import pathlib

from .._base.refused import refused

__all__ = ["FOREIGN", "foreign"]

_WHY = (
    ("jax.experimental.pallas.ops", "it is a kernel for hardware that is not here; use jax.nn.dot_product_attention or jnp"),
    ("jax.experimental.pallas", "it is an instruction of hardware that is not here; pallas_call runs anywhere"),
    ("jax.experimental.mosaic", "it is an instruction of hardware that is not here; pallas_call runs anywhere"),
    ("jax.experimental.roofline", "programs are not compared with what hardware could do; lower(..).cost_analysis() counts"),
    ("jax.experimental.source_mapper", "programs have no form in another compiler's language; make_jaxpr(f)(..).pretty_print(source_info=True) names lines"),
    ("jax.experimental.jax2tf", "programs are not converted to TensorFlow; jax.export writes them as bytes, and jax.pure_callback calls TensorFlow"),
    ("jax.experimental.transfer", "a run has one process"),
    ("jax.experimental.buffer_callback", "callbacks get arrays: jax.pure_callback, or jax.ffi for functions in C"),
    ("", "it belongs to another compiler, which is not here; a primitive is lowered to a function of arrays by mlir.lower_fun"),
)


# Modules that JAX has only where another library is installed: libraries check whether their import fails.
_BESIDE = {"jax.experimental.jax2tf": "tensorflow"}


def _read():
    rows = (line.partition(":") for line in (pathlib.Path(__file__).parent / "_foreign.txt").read_text().splitlines())
    return {module: frozenset(names.split()) for module, _, names in rows if module not in _BESIDE or importlib.util.find_spec(_BESIDE[module])}


FOREIGN = _read()


def foreign(module, name):
    """The name in that module, or None where it has no such name."""
    names = FOREIGN.get(module, ())
    if name.startswith("_") or (name not in names and "*" not in names):
        return None
    return refused(f"{module}.{name}", next(why for prefix, why in _WHY if module.startswith(prefix)))
