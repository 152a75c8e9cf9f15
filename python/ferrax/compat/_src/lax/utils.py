"""`jax._src.lax.utils`: primitives by rules for shape and dtype.

Invariant: such a primitive has no lowering until the user gives one.
"""

from .... import _core
from ....core import Primitive

__all__ = ["standard_primitive"]


def standard_primitive(shape_rule, dtype_rule, name, weak_type_rule=None, sharding_rule=None, vma_rule=None, **_rules):
    """A primitive whose result has the shape and the dtype that two rules say."""
    prim = Primitive(name)

    def abstract_eval(*avals, **params):
        weak = weak_type_rule(*avals, **params) if weak_type_rule is not None else all(a.weak_type for a in avals)
        return _core.ShapedArray(tuple(shape_rule(*avals, **params)), dtype_rule(*avals, **params), weak_type=weak)

    prim.def_abstract_eval(abstract_eval)
    return prim
