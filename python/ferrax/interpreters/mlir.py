"""Lowerings of primitives defined in Python.

    register_lowering(p, lower_fun(lambda x: x * 2, multiple_results=False))

Invariant: a lowering made by `lower_fun` is a function of arrays: a program that is compiled has
its equations in the primitive's place. Of one of any other kind, which would write another
compiler's text, the meaning is the primitive's `impl`, which is called back when the program runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core import Primitive, get_aval, provide_hook
from .._runtime.callback import pure_callback

__all__ = ["lower_fun", "register_lowering"]

lowerings = {}
provide_hook("lowerings", lowerings)
_of_platform = set()


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """A function of arrays as the lowering of a primitive.

    Args:
        fun: `fun(*arrays, **params)`.
        multiple_results: bool; whether `fun` returns a sequence, as the primitive must too.

    Returns:
        The lowering, for `register_lowering`.
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


def register_lowering(prim: Primitive, rule: Any, platform: str | None = None) -> None:
    """Registers the lowering of a primitive.

    If `lower_fun` did not make the rule, the primitive becomes a callback to its `impl`.

    Args:
        prim: a primitive that Python defines.
        rule: its lowering, a function of arrays that serves every device.
        platform: None, or the one platform that the rule is for. Such a rule goes before one
          without a platform; one for a platform that is not here ("tpu", "cuda" ..) is accepted and
          not used.

    Returns:
        the rule.

    Raises:
        TypeError: `rule` was made by `lower_fun`, and does not return as many results as the
          primitive.
        ValueError: `prim` is not a primitive that Python defines.
    """
    if prim.is_builtin:
        raise ValueError(f"{prim} is a primitive of the language: its lowering cannot be replaced.")
    ours = hasattr(rule, "lowers")
    if ours and rule.lowers != prim.multiple_results:
        raise TypeError(f"{prim} has multiple_results={prim.multiple_results}, its lowering multiple_results={rule.lowers}")
    _keep(prim, rule if ours else _called_back(prim), platform)
    return rule


def _keep(prim, lowering, platform):
    """Makes a lowering the primitive's, unless its platform is not here or another is for a
    platform and this one is not.
    """
    if platform is None:
        if prim not in _of_platform:
            lowerings[prim] = lowering
    elif platform in ("cpu", "gpu"):
        _of_platform.add(prim)
        lowerings[prim] = lowering
