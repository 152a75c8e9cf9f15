"""Lowerings of primitives defined in Python.

    register_lowering(p, lower_fun(lambda x: x * 2, multiple_results=False))

Invariant: a lowering is a function of arrays, made by `lower_fun`: a program that is compiled has its equations in the primitive's place.
"""

import functools

__all__ = ["lower_fun", "register_lowering"]

lowerings = {}


def lower_fun(fun, multiple_results=True):
    """A function of arrays, `fun(*arrays, **params)`, as a lowering.

    multiple_results: whether `fun` returns a sequence; it must be what the primitive returns.
    """

    @functools.wraps(fun)
    def lowering(*arrays, **params):
        return fun(*arrays, **params)

    lowering.lowers = multiple_results
    return lowering


def register_lowering(prim, rule, platform=None):
    """Gives a primitive its lowering, made by `lower_fun`; it is used on every device.

    Raises:
      TypeError: `rule` was not made by `lower_fun`, or does not return as many results as the primitive.
      ValueError: `prim` is no primitive that Python defines, or the lowering is for one platform.
    """
    if platform is not None:
        raise ValueError(f"A lowering is a function of arrays and serves every device; it cannot be for {platform!r} alone.")
    if not hasattr(rule, "lowers"):
        raise TypeError("A lowering must be made by lower_fun from a function of arrays; there is no other kind here.")
    if rule.lowers != prim.multiple_results:
        raise TypeError(f"{prim} has multiple_results={prim.multiple_results}, its lowering multiple_results={rule.lowers}")
    if prim.is_builtin:
        raise ValueError(f"{prim} is a primitive of the language: its lowering cannot be replaced.")
    lowerings[prim] = rule
    return rule
