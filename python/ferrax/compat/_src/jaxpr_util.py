"""`jax._src.jaxpr_util`: equations of a program and of those within it, counted and collected.

Invariant: inner programs come after the equations of the outer program.
"""

import collections

from ...extend import source_info_util
from ...extend.core import DropVar, subjaxprs

__all__ = [
    "all_eqns",
    "collect_eqns",
    "count_eqns",
    "histogram",
    "primitives",
    "primitives_by_shape",
    "primitives_by_source",
    "source_locations",
]


def all_eqns(jaxpr, revisit_inner_jaxprs=True):
    """(program, equation) of each equation, those of programs within included; of a program that
    occurs twice once unless `revisit_inner_jaxprs`.
    """
    yield from _walk(jaxpr, None if revisit_inner_jaxprs else set())


def _walk(jaxpr, seen):
    for eqn in jaxpr.eqns:
        yield jaxpr, eqn
    for inner in subjaxprs(jaxpr):
        if seen is None:
            yield from _walk(inner, seen)
        elif inner not in seen:
            seen.add(inner)
            yield from _walk(inner, seen)


def collect_eqns(jaxpr, key):
    """{key of an equation: the equations that have it}."""
    found = collections.defaultdict(list)
    for _, eqn in all_eqns(jaxpr):
        found[key(eqn)].append(eqn)
    return dict(found)


def count_eqns(jaxpr, revisit_inner_jaxprs=True):
    """How many equations there are, those of programs within included."""
    return sum(1 for _ in all_eqns(jaxpr, revisit_inner_jaxprs))


def histogram(jaxpr, key, key_fmt=lambda k: k):
    """{key of an equation, written by `key_fmt`: how many equations have it}."""
    return {key_fmt(k): len(eqns) for k, eqns in collect_eqns(jaxpr, key).items()}


def primitives(jaxpr):
    """How often each primitive occurs, by its name."""
    return histogram(jaxpr, lambda eqn: eqn.primitive.name)


def primitives_by_source(jaxpr):
    """How often each primitive occurs on each line of the user's code."""
    return histogram(jaxpr, lambda eqn: (eqn.primitive.name, source_info_util.summarize(eqn.source_info)), " @ ".join)


def primitives_by_shape(jaxpr):
    """How often each primitive occurs with each types of results."""
    shape = lambda var: "*" if isinstance(var, DropVar) else var.aval.str_short()
    return histogram(jaxpr, lambda eqn: (eqn.primitive.name, " ".join(map(shape, eqn.outvars))), " :: ".join)


def source_locations(jaxpr):
    """The number of equations for each line of the user's code."""
    return histogram(jaxpr, lambda eqn: source_info_util.summarize(eqn.source_info))
