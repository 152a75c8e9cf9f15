"""Primitives that are defined by a function of arrays, from which all their rules are derived.

    matvec_p = composed("matvec", lambda m, v, *, transpose: product(m, v, transpose))

Invariant: the function reads its operands and parameters alone, and returns an array, or a sequence
of them if the primitive has multiple results.
"""

import functools

from .. import _core
from .._base.dtypes import float0, is_inexact
from .._core import Primitive, ShapedArray
from .._tracing.trace import eval_shape
from .._transforms.grad import jvp
from .._transforms.linear import linear_transpose
from .._transforms.vmap import vmap
from .ad import Zero, instantiate_zeros, is_undefined_primal, primitive_jvps, primitive_transposes
from .batching import primitive_batchers

__all__ = ["composed"]


def _type(x):
    return ShapedArray(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))


def _tangent(x, dx):
    return Zero(_core.get_aval(x)) if dx.dtype == float0 else dx


def composed(name, fun, multiple_results=False):
    """The primitive called `name` that does `fun(*arrays, **params)`.

    Args:
        name: the name of the primitive in programs.
        fun: the function; it can be traced.
        multiple_results: whether it returns a sequence.
    """
    prim = Primitive(name)
    prim.multiple_results = multiple_results
    prim.__doc__ = fun.__doc__

    def all_of(out):
        return list(out) if multiple_results else [out]

    def as_returned(outs):
        return outs if multiple_results else outs[0]

    def implemented(*arrays, **params):
        return as_returned(all_of(fun(*arrays, **params)))

    def types(*avals, **params):
        return as_returned([_type(x) for x in all_of(eval_shape(functools.partial(fun, **params), *avals))])

    def with_tangents(primals, tangents, **params):
        moving = [i for i, t in enumerate(tangents) if type(t) is not Zero]

        def of_moving(*some):
            whole = dict(zip(moving, some, strict=True))
            return all_of(fun(*(whole.get(i, x) for i, x in enumerate(primals)), **params))

        outs, touts = jvp(of_moving, [primals[i] for i in moving], [tangents[i] for i in moving])
        return as_returned(outs), as_returned([_tangent(x, dx) for x, dx in zip(outs, touts, strict=True)])

    def of_cotangents(cts, *inputs, **params):
        linear = [i for i, x in enumerate(inputs) if is_undefined_primal(x)]

        cts = {i: instantiate_zeros(ct) for i, ct in enumerate(all_of(cts)) if is_inexact(ct.aval.dtype if type(ct) is Zero else ct.dtype)}

        def of_linear(*some):
            whole = dict(zip(linear, some, strict=True))
            outs = all_of(fun(*(whole.get(i, x) for i, x in enumerate(inputs)), **params))
            return [outs[i] for i in cts]

        back = linear_transpose(of_linear, *(inputs[i].aval for i in linear))
        found = dict(zip(linear, back(list(cts.values())), strict=True))
        return [found.get(i) for i in range(len(inputs))]

    def of_lanes(args, dims, **params):
        outs = vmap(lambda *xs: all_of(fun(*xs, **params)), in_axes=tuple(dims))(*args)
        return as_returned(outs), as_returned([0] * len(outs))

    prim.def_impl(implemented)
    prim.def_abstract_eval(types)
    primitive_jvps[prim] = with_tangents
    primitive_transposes[prim] = of_cotangents
    primitive_batchers[prim] = of_lanes
    return prim
