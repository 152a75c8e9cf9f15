"""`jax.experimental.hijax`, types and primitives of values that consist of arrays: the classes that
libraries derive from.

Invariant: programs contain arrays, keys and references only: a value is its arrays there, or
references to them (`_hivalues`).
"""

import dataclasses
from typing import Any, NamedTuple

from ....core import AbstractValue, ShapedArray
from ....interpreters.ad import UndefinedPrimal, Zero, instantiate_zeros, is_undefined_primal
from . import values as _hivalues
from .values import MappingSpec

__all__ = [
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiPspec",
    "HiType",
    "MappingSpec",
    "MutableHiType",
    "ShapedArray",
    "UndefinedPrimal",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]


class HiType:
    """The base class of types of immutable values that consist of arrays.

    A subclass defines `lo_ty`, the types of the arrays, `lower_val` and `raise_val`, a value as
    arrays and back, and equality; `to_tangent_aval` for derivatives, `dec_rank` and `inc_rank` for
    `vmap`, and what else its transformations need.
    """

    is_high = True
    has_qdd = False

    def to_ct_aval(self):
        """The type of cotangents: that of tangents."""
        return self.to_tangent_aval()

    def __getattr__(self, name):
        if name in _TO_DEFINE:
            raise NotImplementedError(f"type {type(self).__name__} must define `{name}`")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


_TO_DEFINE = frozenset("lo_ty lower_val raise_val to_tangent_aval vspace_zero vspace_add dec_rank inc_rank leading_axis_spec shard unshard nospec".split())


class HiPspec:
    """The base class of what says how a value is cut over a mesh."""


class MutableHiType:
    """The base class of types of mutable values that consist of arrays."""

    is_high = True
    has_qdd = True


class HiPrimitive:
    """The base class of primitives on such values: `to_lojax` defines a primitive by operations on
    their arrays; `abstract_eval` and other rules are not used.

    So derivatives and batches are those of the operations on the arrays.
    """

    multiple_results = False

    def __init__(self, name):
        self.name = name

    def is_high(self, *avals, **params):
        """Whether it takes or gives such values."""
        return True

    def is_effectful(self, params):
        """Whether it has effects."""
        return False

    def bind(self, *args, **params):
        """The results on values, or on arrays.

        Raises:
            NotImplementedError: the primitive defines neither `to_lojax` nor `impl`.
        """
        does = getattr(self, "to_lojax", None) or getattr(self, "impl", None)
        if does is None:
            raise NotImplementedError(f"primitive {self.name} must define `to_lojax`")
        if _hivalues.is_moving():
            return does(*args, **params)
        changing = [x for x in args if _hivalues.is_mutable(x)]
        for x in changing:
            _hivalues.load(x)
        out = does(*args, **params)
        for x in changing:
            _hivalues.store(x)
        for x in out if isinstance(out, (list, tuple)) else [out]:
            if _hivalues.is_mutable(x):
                _hivalues.store(x)
        return out

    def __repr__(self):
        return self.name


class aval_method(NamedTuple):
    """A method that a type lends to its traced values."""

    fun: Any


class aval_property(NamedTuple):
    """A property that a type lends to its traced values."""

    fget: Any


@dataclasses.dataclass(frozen=True)
class AvalQDD:
    """A type together with facts about a value."""

    aval: Any
    qdd: Any

    has_qdd = True


@dataclasses.dataclass(frozen=True)
class AvalMutableQDD:
    """A type with a field for facts about a value."""

    aval: Any
    mutable_qdd: Any


class _EffectTypes:
    """Types of effects."""

    def __init__(self):
        self._types = set()

    def add_type(self, effect_type):
        """Adds a class of effects."""
        self._types.add(effect_type)

    def contains(self, effect):
        """Whether an effect has one of the types."""
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = _EffectTypes()


def register_hitype(val_cls, typeof_fn):
    """Registers how the type of a value of a class is made.

    Values pass through transformations as arrays, mutable ones as references.
    """
    _hivalues.register(val_cls, typeof_fn)


def cur_qdd(x):
    """The known type of the present contents of a mutable value."""
    return x.cur_qdd()


def primal_tangent_dtype(primal_dtype, tangent_dtype, name=None):
    """Refused: a dtype whose tangents have another.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f"primal_tangent_dtype({primal_dtype}, {tangent_dtype}): the dtypes of arrays are a closed list; custom_vjp gives another dtype to a gradient"
    )
