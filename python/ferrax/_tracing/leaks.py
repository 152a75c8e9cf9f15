"""The holders of a tracer that outlived its trace: the lines that a leak's error adds.

Invariant: looking for holders changes nothing and never fails; an object without a name is shown as
its type and number.

    <BatchTracer 140> is referred to by <function 150> (f) closed-over variable x
    <function 150> is referred to by <list 160>[0]
"""

from __future__ import annotations

import gc
import types

from .. import _core

_DEPTH = 10  # of a chain


def holders(tracer) -> str | None:
    """Lines, each an object and what refers to it, from the tracer on; the tracer's name in them is
    `<tracer>`.
    """
    number = _core.tracer_number(tracer)
    objects = gc.get_objects()
    # Objects that are made from here on are not the user's.
    before = {id(x) for x in objects if not isinstance(x, types.FrameType | types.GeneratorType)}
    found = None
    for holder in objects:
        if id(holder) in before:
            found = next((x for x in gc.get_referents(holder) if isinstance(x, _core.Tracer) and x is not tracer and _core.tracer_number(x) == number), None)
            if found is not None:
                break
    del objects
    return None if found is None else "".join(_chain(holder, found, "<tracer>", before))


def _chain(holder, held, name, before):
    lines = []
    for _ in range(_DEPTH):
        if isinstance(holder, types.CellType) and (f := _function_of(holder)) is not None:
            variable = f.__code__.co_freevars[f.__closure__.index(holder)]
            what, holder = f"{_name(f)} ({f.__name__}) closed-over variable {variable}", f
        elif isinstance(holder, dict) and (owner := _owner_of(holder)) is not None:
            what, holder = f"{_name(owner)}.{_key(holder, held)}", owner
        elif isinstance(holder, dict):
            what = f"{_name(holder)}[{_key(holder, held)!r}]"
        elif isinstance(holder, (list, tuple)):
            what = f"{_name(holder)}[{next((i for i, x in enumerate(holder) if x is held), '..')}]"
        else:
            attribute = next((k for k, v in getattr(holder, "__dict__", {}).items() if v is held), None)
            what = _name(holder) + (f".{attribute}" if attribute else "")
        lines.append(f"{name} is referred to by {what}\n")
        if isinstance(holder, (types.ModuleType, type)):
            break
        before.discard(id(holder))
        held, name = holder, _name(holder)
        # Asking an object for its attributes makes the dict of them.
        holder = next((x for x in gc.get_referrers(held) if id(x) in before or (type(x) is dict and id(_owner_of(x)) in before)), None)
        if holder is None:
            break
        before.discard(id(holder))
    return lines


def _function_of(cell):
    return next((f for t in gc.get_referrers(cell) if isinstance(t, tuple) for f in gc.get_referrers(t) if getattr(f, "__closure__", None) is t), None)


def _owner_of(attributes):
    """The object or module whose attributes these are."""
    return next((x for x in gc.get_referrers(attributes) if getattr(x, "__dict__", None) is attributes), None)


def _key(d, held):
    return next((k for k, v in d.items() if v is held), "..")


def _name(x):
    if isinstance(x, types.ModuleType):
        return f"<module {x.__name__}>"
    return f"<{type(x).__name__} {id(x)}>"
