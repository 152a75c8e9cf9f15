"""Lowerings of primitives defined in Python.

    register_lowering(p, lower_fun(lambda x: x * 2, multiple_results=False))

Invariant: a lowering made by `lower_fun` is a function of arrays: a program that is compiled has its equations in the primitive's place. Of one of any
other kind, which would write another compiler's text, the meaning is the primitive's `impl`, which is called back when the program runs.
"""

import functools

from .._callback import pure_callback
from .._core import get_aval, provide_hook

__all__ = ["lower_fun", "register_lowering"]

lowerings = {}
provide_hook("lowerings", lowerings)


def lower_fun(fun, multiple_results=True):
    """A function of arrays, `fun(*arrays, **params)`, as a lowering.

    multiple_results: whether `fun` returns a sequence; it must be what the primitive returns.
    """

    @functools.wraps(fun)
    def lowering(*arrays, **params):
        return fun(*arrays, **params)

    lowering.lowers = multiple_results
    return lowering


def _called_back(prim):
    """The function of arrays that runs a primitive's `impl` outside of the program."""

    def outside(*arrays, **params):
        types = prim.abstract_eval(*map(get_aval, arrays), **params)
        return pure_callback(lambda *xs: prim.impl(*xs, **params), types, *arrays, vmap_method="sequential")

    return lower_fun(outside, prim.multiple_results)


def register_lowering(prim, rule, platform=None):
    """Gives a primitive its lowering; it is used on every device. A rule that `lower_fun` did not make stands for a callback to the primitive's `impl`.

    Raises:
      TypeError: `rule` was made by `lower_fun`, and does not return as many results as the primitive.
      ValueError: `prim` is no primitive that Python defines, or the lowering is for one platform.
    """
    if platform is not None:
        raise ValueError(f"A lowering is a function of arrays and serves every device; it cannot be for {platform!r} alone.")
    if prim.is_builtin:
        raise ValueError(f"{prim} is a primitive of the language: its lowering cannot be replaced.")
    if not hasattr(rule, "lowers"):
        lowerings[prim] = _called_back(prim)
        return rule
    if rule.lowers != prim.multiple_results:
        raise TypeError(f"{prim} has multiple_results={prim.multiple_results}, its lowering multiple_results={rule.lowers}")
    lowerings[prim] = rule
    return rule
