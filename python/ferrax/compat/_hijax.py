"""`jax.experimental.hijax`, types and primitives of values that consist of arrays: the classes that libraries derive from.

Invariant: programs contain arrays, keys and references only. A class can be subclassed and registered. A value of its type raises an error where a
program would have to contain it, and a primitive raises one when it is bound.
"""

import dataclasses
from typing import Any, NamedTuple

from ..core import AbstractValue, ShapedArray
from ..interpreters.ad import UndefinedPrimal, Zero, instantiate_zeros, is_undefined_primal

__all__ = [
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiType",
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
    """The base class of types of immutable values that consist of arrays."""


class MutableHiType:
    """The base class of types of mutable values that consist of arrays."""


class HiPrimitive:
    """The base class of primitives on such values."""

    def __init__(self, name):
        self.name = name

    def bind(self, *args, **params):
        """Raises: programs contain arrays only.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(f"{self.name} takes values made of arrays (hijax), and programs here hold arrays only: pass the arrays")

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
_types = {}


def register_hitype(val_cls, typeof_fn):
    """Registers how the type of a value of a class is made."""
    _types[val_cls] = typeof_fn


def cur_qdd(x):
    """Raises: facts about a mutable value are not supported.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError("cur_qdd: values made of arrays (hijax) are no values of programs here")


def primal_tangent_dtype(primal_dtype, tangent_dtype, name=None):
    """Refused: a dtype whose tangents have another.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        f"primal_tangent_dtype({primal_dtype}, {tangent_dtype}): the dtypes of arrays are a closed list; custom_vjp gives another dtype to a gradient"
    )
