"""Primitives as objects: lax.add_p, lax.scan_p, ...

Invariant: one object for each name, equal to the `primitive` of an equation of that name.

    >>> jax.make_jaxpr(lax.sin)(1.0).eqns[0].primitive == lax.sin_p
    True
"""

from __future__ import annotations

from .. import _core

_MULTIPLE = frozenset((
    "all_gather_multi", "approx_top_k", "cond", "custom_jvp_call", "custom_linear_solve", "custom_vjp_call", "jit", "optimization_barrier", "pmap",
    "pmax", "pmin", "psum", "reduce", "reduce_window", "remat2", "rng_bit_generator", "scan", "sort", "split", "top_k", "unstack", "while",
))  # fmt: skip
_SPELLED = {
    "scatter_add": "scatter-add",
    "scatter_mul": "scatter-mul",
    "scatter_min": "scatter-min",
    "scatter_max": "scatter-max",
    "scatter_sub": "scatter-sub",
}
_made: dict = {}


class Primitive:
    """What an equation does, by name; `bind` applies it. Equal to any other object for the primitive of that name."""

    __slots__ = ("__weakref__", "multiple_results", "name")
    call_primitive = map_primitive = False

    def __init__(self, name):
        self.name, self.multiple_results = name, name in _MULTIPLE

    def bind(self, *args, **params):
        """Applies the operation: computes it, or records it where a function is being traced."""
        out = _core.bind(self.name, *args, **params)
        return list(out) if isinstance(out, tuple) else out

    def __eq__(self, other):
        return isinstance(getattr(other, "name", None), str) and other.name == self.name and hasattr(other, "bind")

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return self.name


def primitive(attribute):
    """The primitive that `lax.<attribute>` names, or None where there is none."""
    name = attribute.removesuffix("_p")
    name = _SPELLED.get(name, name)
    if name not in _made:
        try:
            _core.bind(name)
        except Exception as e:
            if "no primitive is called" in str(e):
                return None
        _made[name] = Primitive(name)
    return _made[name]
