"""The docstring that samplers of one kind have in common.

Invariant: the decorator changes the docstring alone.

    @described("the Cauchy distribution")
    def cauchy(key, shape=(), dtype=None): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")


def described(distribution: str, parameters: bool = False, at: str = "") -> Callable[[_F], _F]:
    """Decorator: the docstring that draws of this kind share. at: parameters for the example."""
    shape = ", to which the parameters broadcast; by default their common shape" if parameters else ""
    error = ", or the parameters do not broadcast to the shape" if parameters else ""

    def decorate(f):
        code = f.__code__
        own = [name for name in code.co_varnames[1 : code.co_argcount] if name not in ("shape", "dtype")]
        lines = f"      {', '.join(own)}: scalars or arrays of floats that broadcast.\n" if own else ""
        last = (
            "      out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or `PartitionSpec`; None: derived from the operands.\n"
            if code.co_kwonlyargcount
            else ""
        )
        f.__doc__ = f"""Draws from {distribution}.

    Args:
      key: a key.
{lines}      shape: the result's shape{shape}.
      dtype: a float dtype; by default the default one.
{last}
    Returns:
      Array of `shape` and `dtype`.

    Raises:
      ValueError: the dtype is not floating point{error}.

    >>> random.{f.__name__}(random.key(0), {at and at + ", "}shape=(2, 3)).shape
    (2, 3)
    """
        return f

    return decorate
