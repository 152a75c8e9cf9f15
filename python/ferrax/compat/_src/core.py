"""`jax._src.core`, `.effects` and related modules: the names of the tracing machinery that
libraries use.

Invariant: the state of tracing is read from the extension; sizes are numbers, so functions that
test for symbolic ones return False.
"""

import contextlib
import dataclasses
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _core, lax
from ..._base.flags import refused
from ..._base.shapes import canonicalize_shape
from ..._core import Literal, Tracer
from ..._references.functions import new_ref, ref_addupdate, ref_get, ref_set, ref_swap
from ..._references.refs import RefType as AbstractRef
from ..._runtime.mesh import get_abstract_mesh
from ...core import is_constant_dim
from ...extend.core import Effect, check_jaxpr, primitives
from ...extend.core._former import concretization_function_error, is_concrete
from .hijax.types import _EffectTypes, control_flow_allowed_effects
from .util import canonicalize_axis, safe_map, safe_zip

__all__ = [
    "AbstractRef",
    "DimSize",
    "Effect",
    "EffectTypeSet",
    "GenericEffect",
    "NamedAxisEffect",
    "Shape",
    "canonicalize_axis",
    "canonicalize_dim",
    "canonicalize_shape",
    "check_eqn",
    "check_jaxpr",
    "clean_up_dead_vars",
    "concrete_dim_or_error",
    "concretization_function_error",
    "control_flow_allowed_effects",
    "custom_derivatives_allowed_effects",
    "definitely_equal",
    "definitely_equal_shape",
    "dimension_as_value",
    "ensure_no_leaks",
    "extend_axis_env_nd",
    "full_lower",
    "get_axis_env",
    "get_referent",
    "identity",
    "is_concrete",
    "is_constant_dim",
    "is_dim",
    "is_empty_shape",
    "is_literalable",
    "is_symbolic_dim",
    "jaxpr_const_args",
    "last_used",
    "lowerable_effects",
    "new_ref",
    "ordered_effects",
    "physical_aval",
    "physical_shape",
    "positional_effects",
    "pvary",
    "ref_addupdate",
    "ref_get",
    "ref_set",
    "ref_swap",
    "remat_allowed_effects",
    "safe_map",
    "safe_zip",
    "same_referent",
    "to_concrete_value",
    "trace_state_clean",
    "typecheck",
    "typecompat",
    "typematch",
    "unsafe_am_i_under_a_jit",
    "unsafe_am_i_under_a_vmap",
    "unsafe_get_axis_names",
    "unsafe_get_current_trace",
    "unsafe_get_trace_stack",
]

DimSize, Shape = int | Any, Sequence[int | Any]
pvary_p = primitives.pvary_p
EffectTypeSet = _EffectTypes
ordered_effects, shardable_ordered_effects, lowerable_effects = _EffectTypes(), _EffectTypes(), _EffectTypes()
custom_derivatives_allowed_effects, remat_allowed_effects, partial_eval_kept_effects = _EffectTypes(), _EffectTypes(), _EffectTypes()


class GenericEffect(Effect):
    """An effect of a name."""

    def __init__(self, id):
        self.id = id


class NamedAxisEffect(Effect):
    """The reading of a named axis."""

    def __init__(self, name):
        self.name = name


def identity(x):
    """`x`."""
    return x


def pvary(x, axis_name):
    """`x`, whose type says that it varies over named axes."""
    return lax.pcast(x, axis_name, to="varying")


# ---------------------------------------------------------------- values and types


def full_lower(val):
    """`val`: a value that is traced stays so."""
    return val


get_referent = full_lower


def same_referent(x, y):
    """Whether two values are one."""
    return x is y


def to_concrete_value(x):
    """The value where it is known, else None."""
    return None if isinstance(x, Tracer) else x


def physical_aval(aval):
    """The type in memory: that of the words of keys, else the type itself."""
    rules = getattr(aval.dtype, "_rules", None)
    return rules.physical_element_aval(aval.dtype) if rules is not None and hasattr(rules, "physical_element_aval") else aval


def physical_shape(logical_shape, dtype):
    """The shape in memory."""
    return tuple(physical_aval(_core.ShapedArray(tuple(logical_shape), dtype)).shape)


def typecheck(aval, x):
    """Whether a value has a type."""
    return typecompat(aval, _core.get_aval(x))


def typecompat(aval_ref, aval):
    """Whether two types are equal except for weak types."""
    return tuple(aval_ref.shape) == tuple(aval.shape) and aval_ref.dtype == aval.dtype


typematch = typecompat


def is_literalable(x):
    """Whether a value can be used in a program without conversion."""
    return type(x) in (bool, int, float, complex) or (isinstance(x, (np.generic, np.ndarray)) and np.ndim(x) == 0)


# ---------------------------------------------------------------- sizes


def is_symbolic_dim(v):
    """Whether a size is an expression."""
    return not is_constant_dim(v) and hasattr(v, "extremum")


def is_dim(v):
    """Whether something is a size."""
    return is_constant_dim(v) or is_symbolic_dim(v)


def definitely_equal(d1, d2):
    """Whether two sizes are equal."""
    return d1 is d2 or d1 == d2


def definitely_equal_shape(s1, s2):
    """Whether two shapes are equal."""
    return len(s1) == len(s2) and all(map(definitely_equal, s1, s2))


def is_empty_shape(s):
    """Whether an array of a shape has no elements."""
    return any(d == 0 for d in s)


def canonicalize_dim(d, context=""):
    """A size as a number.

    Raises:
        TypeError: it is not a size.
    """
    return canonicalize_shape((d,), context)[0]


def concrete_dim_or_error(val, context=""):
    """A size that is known."""
    return operator.index(val)


def dimension_as_value(d):
    """A size as an array."""
    return d if isinstance(d, (int, _core.Array)) else d.dimension_as_value() if hasattr(d, "dimension_as_value") else operator.index(d)


def divide_shape_sizes(s1, s2):
    """The quotient of the numbers of elements of two shapes."""
    return math.prod(s1) // math.prod(s2) if math.prod(s2) else 1


# ---------------------------------------------------------------- programs


def check_eqn(prim, in_avals, params):
    """The types of a primitive's results."""
    out = prim.abstract_eval(*in_avals, **params)
    return (list(out) if prim.multiple_results else [out]), set()


def positional_effects(closed_jaxpr):
    """The effects of a program."""
    return closed_jaxpr.effects


def jaxpr_const_args(jaxpr):
    """(value, type) of constants that are not inputs: none."""
    return []


def last_used(jaxpr):
    """For each variable the equation that reads it last; None for an output."""
    last = {v: None for v in jaxpr.outvars if not isinstance(v, Literal)}
    for eqn in reversed(jaxpr.eqns):
        for v in eqn.invars:
            if not isinstance(v, Literal):
                last.setdefault(v, eqn)
    return last


def clean_up_dead_vars(eqn, env, last_used):
    """Drops values that no later equation reads."""
    for v in {v for v in eqn.invars if not isinstance(v, Literal)}:
        if last_used[v] is eqn:
            del env[v]


# ---------------------------------------------------------------- the current trace


class _AxisEnv:
    """The named axes in scope."""

    def __init__(self, axes):
        self.axis_sizes = {name: size for name, size, *_ in axes}

    def axis_exists(self, name):
        """Whether an axis of that name exists."""
        return name in self.axis_sizes

    def axis_size(self, name):
        """Its size."""
        return self.axis_sizes[name]

    def axis_names(self):
        """Their names."""
        return list(self.axis_sizes)


def get_axis_env():
    """The named axes in scope."""
    return _AxisEnv(_core.trace_context()[1])


def extend_axis_env_nd(axes, *more):
    """Refused: axes are named by `vmap` and `shard_map`.

    Raises:
        NotImplementedError: always.
    """
    refused("extend_axis_env_nd", "axes", axes, "vmap(axis_name=..) names an axis")


def unsafe_am_i_under_a_jit():
    """Whether a program is being made."""
    return _core.staging() is not None


def unsafe_am_i_under_a_vmap():
    """Whether the caller runs under a `vmap`."""
    return any(t.what == "vmap" for t in _core.traces())


def unsafe_get_axis_names():
    """The names of the axes in scope."""
    return get_axis_env().axis_names()


def unsafe_get_trace_stack():
    """The transformations at work, the outermost first."""
    return list(reversed(_core.traces()))


def unsafe_get_current_trace():
    """The innermost transformation at work."""
    return unsafe_get_trace_stack()[-1]


@contextlib.contextmanager
def ensure_no_leaks(trace):
    """Does nothing: `jax_check_tracer_leaks` checks every trace for leaks."""
    yield


def trace_state_clean():
    """Whether no transformation is at work."""
    return all(t.what == "eval" for t in _core.traces())


@dataclasses.dataclass(frozen=True)
class JaxprEqnContext:
    """The context in which an equation was made."""

    compute_type: Any = None
    threefry_partitionable: bool = True
    xla_metadata: Any = None
    cur_abstract_mesh: Any = dataclasses.field(default_factory=get_abstract_mesh)
