"""Special functions that are compositions of other primitives: incomplete gamma and beta, Hurwitz's zeta.

Invariant: operands have one float dtype, weak or not, and equal ranks but for scalars; half precision is computed in single.

    >>> jax.make_jaxpr(lax.igamma)(1.0, 2.0)
    { lambda ; a:f32[] b:f32[]. let c:f32[] = igamma a b in (c,) }
"""

from __future__ import annotations

import numpy as np

from .._core import bind, broadcast_to
from .._dtypes import is_floating
from ._composed import aval, composition


def _type(name, halves=False):
    def type_of(*xs):
        for i, x in enumerate(xs):
            if not is_floating(x.dtype):
                raise TypeError(f"{name} does not accept dtype {x.dtype.name} at position {i}. Accepted dtypes at position {i} are subtypes of floating.")
        if len({"half" if halves and x.dtype.itemsize < 4 else x.dtype for x in xs}) > 1:
            raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got {', '.join(x.dtype.name for x in xs)}.")
        ranks = {len(x.shape) for x in xs if x.shape}
        if len(ranks) > 1:
            raise TypeError(f"{name}: arrays must have the same number of dimensions, got {ranks}")
        try:
            shape = np.broadcast_shapes(*[tuple(x.shape) for x in xs])
        except ValueError:
            raise TypeError(f"{name} got incompatible shapes for broadcasting: {', '.join(str(tuple(x.shape)) for x in xs)}.") from None
        return aval(shape, xs[0], weak=all(x.weak_type for x in xs))

    return type_of


def _special(name, halves=False):
    """Decorator: a primitive from a function of arrays of one shape, and of a dtype of at least single precision.

    halves: one operand may be float16 and another bfloat16; the result is of the first one's dtype.
    """
    type_of = _type(name, halves)

    def decorate(function):
        def run(*xs):
            out = type_of(*xs)
            wide = np.dtype(np.float32) if out.dtype.itemsize < 4 else out.dtype
            convert = lambda v, to, weak=False: bind("convert_element_type", v, new_dtype=to, weak_type=weak)
            return convert(function(*[broadcast_to(convert(x, wide), out.shape) for x in xs]), out.dtype, out.weak_type)

        composition(name, type_of)(run)
        return function

    return decorate


@_special("igamma")
def igamma(a, x):
    from ..scipy._incomplete_gamma import incomplete_gamma

    return incomplete_gamma(a, x, False)


@_special("igammac")
def igammac(a, x):
    from ..scipy._incomplete_gamma import incomplete_gamma

    return incomplete_gamma(a, x, True)


@_special("igamma_grad_a")
def igamma_grad_a(a, x):
    from ..scipy._incomplete_gamma import shape_slopes

    return shape_slopes(a, x)[0]


@_special("random_gamma_grad", halves=True)
def random_gamma_grad(a, x):
    from ..scipy._incomplete_gamma import shape_slopes

    return shape_slopes(a, x)[1]


@_special("regularized_incomplete_beta")
def regularized_incomplete_beta(a, b, x):
    from ..scipy._incomplete_beta import incomplete_beta

    return incomplete_beta(a, b, x)


@_special("zeta")
def zeta(x, q):
    from ..scipy._zeta import zeta

    return zeta(x, q)
