"""The common parts of distributions: promotion, location and scale, values outside the support, and
documentation.

Invariant: a distribution's module contains only its mathematics, for a standard variable inside the
support. This module adds:

    outside the support     densities are 0 (their logarithms -inf), distribution functions 0 or 1; derivatives are 0, never NaN
    a parameter outside its domain, or a NaN among the arguments            the result is NaN
    dtypes                  the arguments' common float dtype, half precision computed in single; integers and booleans become floats

A module reads:

    _family = Continuous(low=0, valid=lambda a: a > 0, a="the shape, positive")

    @_family
    def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        return xlogy(a - 1, x) - x - gammaln(a)

    pdf = _family.density(logpdf, "Array([0.36787945], dtype=float32)")

A signature is that of the public function. The body computes with the standard variable, so it does
not read `loc` and `scale`: the decorator applies them.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ... import _core, numpy as jnp
from ..._tracing.jit import jit
from ...numpy._support.arguments import promote_inexact
from .._domains import nan_outside
from .._halves import in_single

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")

inf = np.inf
# A function's values below and above the support.
_OUTSIDE = {
    "logpdf": (-inf, -inf), "pdf": (0, 0), "logpmf": (-inf, -inf), "pmf": (0, 0), "cdf": (0, 1), "logcdf": (-inf, 0), "sf": (1, 0), "logsf": (0, -inf),
}  # fmt: skip
_WHAT = {
    "logpdf": "The logarithm of the density", "pdf": "The density", "logpmf": "The logarithm of the probability", "pmf": "The probability",
    "cdf": "The distribution function, P(X <= x)", "logcdf": "The logarithm of the distribution function", "sf": "The survival function, P(X > x)",
    "logsf": "The logarithm of the survival function", "ppf": "The quantile function, the inverse of cdf", "isf": "The inverse of the survival function",
}  # fmt: skip
_ARGUMENTS = {
    "x": "points: an array or a number",
    "k": "points: an array or a number; points that are not integers have probability 0",
    "q": "probabilities; the result is NaN outside [0, 1]",
    "p": "probabilities; the result is NaN outside [0, 1]",
    "loc": "the location, which is subtracted from the points",
    "scale": "the scale, positive",
}
_TEMPLATE = """{what}: {formula}.

Args:
{arguments}

Returns:
  an array of the arguments' common shape and float dtype; NaN where a parameter is outside its domain or an argument is NaN.

Raises:
  TypeError: an argument is a list, complex, or not numeric.
  ValueError: the shapes do not broadcast.

{example}
"""


def reals(name, *xs):
    """The arguments as arrays of one float dtype.

    Raises:
        TypeError: one is complex, or not an array or number.
    """
    xs = promote_inexact(name, *xs)
    if xs[0].dtype.kind == "c":
        raise TypeError(f"{name} does not support complex-valued inputs.")
    return xs


class _Family:
    """Makes the public functions of a distribution from its mathematics.

    low, high: the support of the standard variable: numbers, or functions of the shape parameters.
    valid: a function of the shape parameters; the result is true where they are in their domain.
    shapes: descriptions of the shape parameters, for the documentation.
    """

    lowest = -inf

    def __init__(self, low=None, high=inf, valid=None, **shapes):
        self.low, self.high = self.lowest if low is None else low, high
        self.valid, self.shapes = valid, shapes

    def __call__(self, f: _F) -> _F:
        compute = self.quantile if f.__name__ in ("ppf", "isf") else self.masked
        return self.published(f, f.__name__, f.__doc__, functools.partial(compute, f))

    def density(self, logarithm: _F, prints: str, end: Callable[..., Any] | None = None) -> _F:
        """exp of a log density: the function `pdf` or `pmf`.

        Its example is derived from the logarithm's; prints: the output of the example.

        end: the density at the ends of the support as a product of powers, where it is 0 or
        infinite and the slope of exp(-inf) would be 0 * inf.
        """
        name = logarithm.__name__.removeprefix("log")
        call = next(line for line in logarithm.__doc__.splitlines() if line.startswith(f">>> {logarithm.__name__}("))
        doc = f"exp({logarithm.__name__})\n{call.replace('log', '', 1)}\n{prints}"
        if end is None:
            return self.published(logarithm, name, doc, lambda _, bound: jnp.exp(logarithm(**bound.arguments)))
        return self.published(logarithm, name, doc, functools.partial(self.closed, logarithm, end))

    def closed(self, logarithm, end, name, bound):
        """The density on the closed support; at its ends it has the derivatives from the inside."""
        x, *shapes, loc, scale = self.split(name, bound)
        z = x if loc is None else x - loc
        z = z if scale is None else z / scale
        low, high = self.ends(shapes)
        at_end = ((z == low) | (z == high)) & jnp.isfinite(z) & self.known(z, shapes, scale)
        there = end(jnp.where(at_end, z, low), *shapes)
        there = there if scale is None else there / scale
        y = jnp.exp(logarithm(**{**bound.arguments, "x": jnp.where(at_end, np.nan, x)}))
        return jnp.where(at_end, there, y)

    def published(self, f, name, doc, compute):
        """The public function `name`: compute(full name, bound arguments), jitted and documented,
        with f's signature.
        """
        signature = inspect.signature(f)
        full = f"{f.__module__.rsplit('.', 1)[-1]}.{name}"

        def function(*args, **kwargs):
            return compute(full, signature.bind(*args, **kwargs))

        function.__name__ = function.__qualname__ = name
        function.__module__, function.__signature__ = f.__module__, signature
        described = "\n".join(f"  {p}: {self.shapes.get(p) or _ARGUMENTS[p]}." for p in signature.parameters)
        formula, _, example = doc.partition("\n")
        function.__doc__ = _TEMPLATE.format(what=_WHAT[name], formula=formula.rstrip("."), arguments=described, example=inspect.cleandoc(example))
        return jit(in_single(function))

    def known(self, x, shapes, scale=None):
        """Whether x is not NaN, and the parameters are in their domain."""
        conditions = [x == x]
        if self.valid is not None:
            conditions.append(self.valid(*shapes))
        if scale is not None:
            conditions.append(scale > 0)
        return functools.reduce(jnp.logical_and, conditions)

    def split(self, name, bound):
        """Points, shape parameters, location and scale (None where they are not given), of one
        float dtype.
        """
        # Defaults are promoted too: with them booleans are weak, as in JAX.
        missing = {p.name: p.default for p in bound.signature.parameters.values() if p.name not in bound.arguments}
        arguments = {**bound.arguments, **missing}
        xs = dict(zip(arguments, _core.promote_shapes(*reals(name, *arguments.values())), strict=True))
        loc, scale = xs.pop("loc", None), xs.pop("scale", None)
        return *xs.values(), None if "loc" in missing else loc, None if "scale" in missing else scale

    def ends(self, shapes):
        """The ends of the support, numbers or arrays."""
        return [end(*shapes) if callable(end) else end for end in (self.low, self.high)]

    def outside(self, x, shapes):
        """Where x is below the support, and where above.

        An end that is infinite is not a point of it.
        """
        low, high = self.ends(shapes)
        under = x <= low if isinstance(low, float) and low == -inf else x < low
        over = x >= high if isinstance(high, float) and high == inf else x > high
        return under, over


class Continuous(_Family):
    """Distributions with a density, of the standard variable (x - loc) / scale."""

    def masked(self, f, name, bound):
        """A function of the standard variable as a function of any point, shapes, location and
        scale.

        Args:
            f: `f(z, *shapes)`, finite inside the support.
            name: str, the function's name in errors.
            bound: the bound arguments (x, *shapes, loc, scale).

        Returns:
            Float array of the common shape: nan for invalid parameters, and the limits of `f`
            outside the support.
        """
        x, *shapes, loc, scale = self.split(name, bound)
        z = x if loc is None else x - loc
        z = z if scale is None else z / scale
        low, high = self.ends(shapes)
        below, above = _OUTSIDE[f.__name__]
        under, over = self.outside(z, shapes)
        # Outside, the function is taken at the point of the support that is nearest to 1/2: there it is finite, and so are its slopes.
        inner = min(max(0.5, low), high) if isinstance(low, (int, float)) else jnp.clip(0.5, low, high)
        y = f(jnp.where(under | over, inner, z), *shapes)
        if scale is not None and f.__name__ == "logpdf":
            y = y - jnp.log(scale)
        y = jnp.where(under, below, jnp.where(over, above, y))
        return nan_outside(self.known(z, shapes, scale), y, z, *shapes)

    def quantile(self, f, name, bound):
        """A quantile function of the standard variable as one for any shapes, location and scale.

        Args:
            f: `f(q, *shapes)`, for q from 0 to 1.
            name: str, the function's name in errors.
            bound: the bound arguments (q, *shapes, loc, scale).

        Returns:
            Float array of the common shape: nan for invalid parameters and for q outside [0, 1].
        """
        q, *shapes, loc, scale = self.split(name, bound)
        inside = (q >= 0) & (q <= 1)
        y = f(jnp.where(inside, q, 0.5), *shapes)
        y = y if scale is None else y * scale
        y = y if loc is None else y + loc
        return nan_outside(inside & self.known(q, shapes, scale), y, *[v for v in (q, *shapes, loc, scale) if v is not None])


class Discrete(_Family):
    """Distributions on integers k - loc, from `low` to `high`."""

    lowest = 0

    def masked(self, f, name, bound):
        """A function of the variable at location 0 as a function of any number, shapes and
        location.

        Args:
            f: `f(k, *shapes)`, finite inside the support.
            name: str, the function's name in errors.
            bound: the bound arguments (k, *shapes, loc).

        Returns:
            Float array of the common shape: nan for invalid parameters, and the limits of `f`
            outside the support.
        """
        k, *shapes, loc, _ = self.split(name, bound)
        k = k if loc is None else k - loc
        below, above = _OUTSIDE[f.__name__]
        whole = jnp.floor(k)
        under, over = self.outside(whole, shapes)
        y = f(jnp.where(under | over, self.low, whole), *shapes)
        if f.__name__ == "logpmf":
            over = over | (k != whole)
        y = jnp.where(under, below, jnp.where(over, above, y))
        return nan_outside(self.known(k, shapes), y, k, *shapes)

    def quantile(self, f, name, bound):
        """A quantile function as a function of any shapes; it has no location, as in JAX.

        Args:
            f: `f(q, *shapes)`, for q from 0 to 1.
            name: str, the function's name in errors.
            bound: the bound arguments (q, *shapes, loc).

        Returns:
            Float array of the common shape: nan for invalid parameters and for q outside [0, 1].
        """
        q, *shapes, _, _ = self.split(name, bound)
        inside = (q >= 0) & (q <= 1)
        return nan_outside(inside & self.known(q, shapes), f(q, *shapes), q, *shapes)
