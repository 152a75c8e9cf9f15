"""The stages between a function and its execution: `jit(f).trace(x)`, `.lower(x)`, `.compile()`.

    lowered = jit(f).lower(x); print(lowered.as_text()); lowered.compile()(x)

Invariant: each stage holds the one before it and can be printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from ._core import Compiled, Executable, Lowered, PjitFunction as Wrapped, Traced

if TYPE_CHECKING:
    import numpy as np

    from ._core import ShapedArray


__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Executable", "Lowered", "Traced", "Wrapped"]

CompilerOptions = dict[str, str | bool]


class ArgInfo:
    """An argument of a traced function: its type, and whether it is donated."""

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval: ShapedArray, donated: bool) -> None:
        self._aval, self.donated = _aval, donated

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._aval.dtype

    def __eq__(self, other):
        return isinstance(other, ArgInfo) and (self._aval, self.donated) == (other._aval, other.donated)

    def __hash__(self):
        return hash((self._aval, self.donated))

    def __repr__(self):
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


def _mismatches(treedef, given):
    """Says how the arguments of a compiled function differ in structure from those that it was
    compiled for.
    """
    expected = treedef.unflatten([_LEAF] * treedef.num_leaves)
    found = []
    for place, seen, now in zip(("args", "kwargs"), expected, given, strict=True):
        found += _differences(place, seen, now)
    return (
        "Function compiled with input pytree does not match the input pytree it was called with. "
        f"There are {len(found)} mismatches, including:\n" + "\n".join(f"    * at {line}" for line in found)
    )


_LEAF = object()


def _differences(place, seen, now):
    one, other = (_core.flatten_one_level(x) for x in (seen, now))
    if one is None and other is None:
        return
    if one is None or other is None or type(seen) is not type(now):
        words = ["pytree leaf" if level is None else f"{type(x)}" for x, level in ((seen, one), (now, other))]
        yield f"{place}, seen {words[0]} but now given {words[1]}, so their Python types differ"
    elif isinstance(seen, (tuple, list)) and len(seen) != len(now):
        name = type(seen).__name__
        yield f"{place}, seen {name} of length {len(seen)} but now given {name} of length {len(now)}, so the lengths do not match"
    elif len(one[0]) != len(other[0]):
        keys = f", with the symmetric difference of key sets: {set(seen) ^ set(now)}" if isinstance(seen, dict) else ""
        words = [f"{type(x)} with {len(level[0])} child{'ren' if len(level[0]) > 1 else ''}" for x, level in ((seen, one), (now, other))]
        yield f"{place}, seen {words[0]} but now given {words[1]}, so the numbers of children do not match{keys}"
    elif one[1] != other[1]:
        was, is_ = (tuple(data) if isinstance(data, list) else data for data in (one[1], other[1]))
        yield f"{place}, seen {type(seen)} with pytree metadata {was} but now given {type(now)} with pytree metadata {is_}, so the pytree node metadata does not match"
    else:
        keys = [f"['{k}']" if isinstance(k, str) else f"[{k}]" for k in sorted(seen)] if isinstance(seen, dict) else [f"[{i}]" for i in range(len(one[0]))]
        for key, a, b in zip(keys, one[0], other[0], strict=True):
            yield from _differences(place + key, a, b)
