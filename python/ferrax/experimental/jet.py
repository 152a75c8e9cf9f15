"""Taylor-mode differentiation: how a function carries power series.

    jet(jnp.sin, (0.5,), ((1.0, 0.0, 0.0),))          # (sin 0.5, [cos 0.5, -sin 0.5, -cos 0.5])

A curve x(t) = x0 + x1 t + x2 t^2 + .. goes in and f(x(t)) comes out, as coefficients; the n-th
derivative costs of the order of n^2 operations, where nested `jvp` costs 2^n. The program of the
function is walked equation by equation.

Invariant: a rule, `jet_rules[primitive](primals, series, **params) -> (primals_out, series_out)`,
takes and gives Taylor coefficients (not scaled by factorials); a series is a list of arrays, None
in it is a zero, and `zero_series` is a series of zeros. Primitives without a rule are
differentiated by nested `jvp` along t: exact, including loops, branches and functions with custom
rules, at the price of that equation alone.

Recurrences: Griewank, Walther: Evaluating Derivatives, 2nd edition, chapter 13, table 13.1 and
13.2.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, lax
from .._base.tracebacks import api_boundary
from .._core import bind, primitive
from .._trees.flat import FlatFun, is_inexact, unit, zeros
from ..extend.core import Literal
from ..tree_util import tree_flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core import Array
    from ..extend.core import Primitive
    from ..typing import ArrayLike

__all__ = [
    "ZeroSeries",
    "ZeroTerm",
    "def_comp",
    "def_deriv",
    "deflinear",
    "defzero",
    "deriv_prop",
    "fact",
    "jet",
    "jet_rules",
    "linear_prop",
    "zero_prop",
    "zero_series",
    "zero_term",
]

jet_rules: dict[Any, Any] = {}


class ZeroTerm:
    """A coefficient that is zero and was never made."""

    def __repr__(self):
        return "zero_term"


class ZeroSeries:
    """A series of such coefficients: that of a constant."""

    def __repr__(self):
        return "zero_series"


zero_term, zero_series = ZeroTerm(), ZeroSeries()


def fact(n: ArrayLike) -> Array:
    """The factorial, exact as long as the dtype can represent it.

    Args:
        n: int or integer array, at most 170.

    Returns:
        Float array of the shape of `n`.
    """
    table = np.array([float(math.factorial(k)) for k in range(171)])
    return lax.exp(lax.lgamma(lax.convert_element_type(n, float) + 1.0)) if isinstance(n, _core.Tracer) else _core.asarray(table[np.asarray(n)])


@api_boundary
def jet(fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True, **_: Any) -> tuple[Any, Any]:
    """A function's value, and the series of its result along a curve.

    Args:
        fun: a function of arrays or scalars; its result is a pytree of them.
        primals: a tuple of arguments, floating-point or complex: where the curve is at t = 0.
        series: for each argument the list of its derivatives along the curve, first to n-th; all of
          one length n.
        factorial_scaled: series hold derivatives; False: Taylor coefficients, derivatives divided
          by k!.

    Returns:
        (out, out_series): the latter has the structure of the former, with a list of n arrays for
        each leaf.

    Raises:
        ValueError: a primal is not an array, or lists of several lengths are given.
        TypeError: a primal is of integers, or a term has another shape than its primal.

    >>> jet(jnp.exp, (0.0,), ((1.0, 0.0),))
    (Array(1., dtype=float32, weak_type=True), [Array(1., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True)])
    """
    values = []
    for i, x in enumerate(primals):
        if tree_flatten(x)[1].num_nodes != 1:
            raise ValueError(f"primal value at position {i} is not an array")
        values.append(_core.asarray(x))
        if not is_inexact(values[-1].dtype):
            raise TypeError(f"jet requires floating-point or complex primals, but the one at position {i} has dtype {values[-1].dtype}")
    orders = {len(terms) for terms in series}
    if len(orders) > 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    order = orders.pop() if orders else 0
    if len(series) != len(values):
        raise ValueError(f"jet got {len(values)} primals and {len(series)} series")
    scales = [1.0 / math.factorial(k + 1) if factorial_scaled else 1.0 for k in range(order)]
    coefficients = [[_term(t, x, i, s) for t, s in zip(terms, scales, strict=True)] for i, (x, terms) in enumerate(zip(values, series, strict=True))]
    flat = FlatFun(fun, tree_flatten((tuple(primals), {}))[1])
    program, consts = _core.make_program(flat, [x.aval for x in values], user_fun=fun, what="jet")
    outs, out_series = _walk(program.jaxpr, consts, values, coefficients, order)
    found = []
    for y, terms in zip(outs, out_series, strict=True):
        terms = [zeros(_core.get_aval(y)) if t is None else t for t in _listed(terms, order)]
        found.append([lax.mul(t, _number(math.factorial(k + 1), t)) for k, t in enumerate(terms)] if factorial_scaled and is_inexact(y.dtype) else terms)
    return flat.out_tree.unflatten(outs), flat.out_tree.unflatten(found)


def _term(t, x, i, scale):
    t = _core.asarray(t)
    if tuple(t.shape) != tuple(x.shape):
        raise TypeError(f"jet: a term of argument {i} has shape {tuple(t.shape)}, its primal {tuple(x.shape)}")
    t = bind("convert_element_type", t, new_dtype=x.dtype, weak_type=x.weak_type, sharding=None)
    return t if scale == 1.0 else lax.mul(t, _number(scale, t))


def _number(v, like):
    """`v` as a scalar of an array's type, a literal where a program is recorded."""
    return unit(like.aval, v)


# ---------------------------------------------------------------- programs


def _walk(jaxpr, consts, primals, series, order):
    """(outputs, their series) of a program."""
    env = dict(zip(jaxpr.constvars, [(_core.asarray(c), zero_series) for c in consts], strict=True))
    env.update(zip(jaxpr.invars, zip(primals, series, strict=True), strict=True))

    def read(v):
        return (_core.asarray(v.val, v.aval.dtype, weak_type=v.aval.weak_type), zero_series) if isinstance(v, Literal) else env[v]

    for eqn in jaxpr.eqns:
        values, terms = zip(*map(read, eqn.invars), strict=True) if eqn.invars else ((), ())
        outs, out_terms = _equation(eqn, values, terms, order)
        env.update(zip(eqn.outvars, zip(outs, out_terms, strict=True), strict=True))
    found = [read(v) for v in jaxpr.outvars]
    return [y for y, _ in found], [s for _, s in found]


_INLINED = {"jit": "jaxpr", "remat2": "jaxpr", "custom_vjp_call": "call_jaxpr"}


def _equation(eqn, primals, series, order):
    """(outputs, series) of one equation, both as lists."""
    p, params = eqn.primitive, dict(eqn.params)
    if order == 0 or all(s is zero_series for s in series):
        outs = p.bind(*primals, **params)
        outs = list(outs) if p.multiple_results else [outs]
        return outs, [zero_series] * len(outs)
    if p.name in _INLINED:
        body = params[_INLINED[p.name]]
        return _walk(getattr(body, "jaxpr", body), getattr(body, "consts", []), primals, series, order)
    rule = jet_rules.get(p, functools.partial(_by_jvp, p))
    if not any(is_inexact(v.aval.dtype) for v in eqn.outvars):
        rule = functools.partial(zero_prop, p)
    outs, terms = rule(primals, [_listed(s, order) if s is not zero_series else s for s in series], **params)
    return (list(outs), list(terms)) if p.multiple_results else ([outs], [terms])


def _by_jvp(prim, primals, series, **params):
    """Any equation: d^k/dt^k of it along the curve, by nested jvp in t."""
    order = next(len(s) for s in series if s is not zero_series)
    multiple = prim.multiple_results

    def along(t):
        xs = []
        for x, terms in zip(primals, series, strict=True):
            if terms is not zero_series and is_inexact(x.dtype):
                s = lax.convert_element_type(t, x.dtype)
                # Horner's scheme; t is 0, and only the derivatives matter
                total = functools.reduce(lambda a, c: _plus(a if a is None else lax.mul(a, lax.full_like(x, s)), c), reversed(terms), None)
                x = x if total is None else lax.add(x, lax.mul(total, lax.full_like(x, s)))
            xs.append(x)
        out = prim.bind(*xs, **params)
        return list(out) if multiple else [out]

    def tower(k):
        if k == 0:
            return along
        below = tower(k - 1)

        def level(t):
            outs, tangents = _core.jvp(below, [t], [np.float32(1)])
            n = len(outs) // k
            return [*outs, *[zeros(_core.get_aval(y)) if d is None else d for y, d in zip(outs[-n:], tangents[-n:], strict=True)]]

        return level

    found = tower(order)(_core.asarray(np.float32(0)))
    n = len(found) // (order + 1)
    terms = [
        [lax.div(found[k * n + i], _number(math.factorial(k), found[i])) for k in range(1, order + 1)] if is_inexact(found[i].dtype) else zero_series
        for i in range(n)
    ]
    return (found[:n], terms) if multiple else (found[0], terms[0])


# ---------------------------------------------------------------- arithmetic of series; a coefficient that is None is zero


def _listed(series, order):
    return [None] * order if series is zero_series else [None if t is None or t is zero_term else t for t in series]


def _orders(series):
    return next(len(s) for s in series if s is not zero_series)


def _plus(a, b):
    return b if a is None else a if b is None else lax.add(a, b)


def _minus(a, b):
    return a if b is None else lax.neg(b) if a is None else lax.sub(a, b)


def _times(a, b):
    return None if a is None or b is None else lax.mul(a, b)


def _scaled(a, v):
    return None if a is None else lax.mul(a, _number(v, a))


def _over(a, b):
    return None if a is None else lax.div(a, b)


def _convolved(u, v, ks, weight=None, product=_times):
    """The sum over (i, j) in `ks` of weight(i) u_i v_j."""
    total = None
    for i, j in ks:
        if u[i] is not None and v[j] is not None:
            term = product(u[i], v[j])
            total = _plus(total, term if weight is None else _scaled(term, weight(i)))
    return total


def _integrated(v0, u, slope, order):
    """v with v' = slope u' where `slope(v, k)` gives the slope's coefficients up to k: k v_k = sum
    of j u_j slope_(k-j).
    """
    v = [v0]
    for k in range(1, order + 1):
        w = slope(v, k - 1)
        v.append(_scaled(_convolved(u, w, [(j, k - j) for j in range(1, k + 1)], float), 1.0 / k))
    return v


# ---------------------------------------------------------------- how rules are made


def linear_prop(prim: Primitive, primals_in: Any, series_in: Any, **params: Any) -> tuple[Any, Any]:
    """The Taylor series of a primitive that is linear in its inexact operands together: each
    coefficient by itself.

    Args:
        prim: Primitive.
        primals_in: tuple of arrays, the point.
        series_in: tuple of lists of Taylor coefficients, `zero_series` for an operand without any.
        **params: parameters of the primitive.

    Returns:
        Pair: the results, and their lists of Taylor coefficients.
    """
    order, multiple = _orders(series_in), prim.multiple_results
    outs = prim.bind(*primals_in, **params)
    columns = []
    for k in range(order):
        terms = [None if s is zero_series else s[k] for s in series_in]
        if all(t is None for t in terms):
            columns.append([None] * (len(outs) if multiple else 1))
            continue
        args = [(zeros(x.aval) if t is None else t) if is_inexact(x.dtype) else x for x, t in zip(primals_in, terms, strict=True)]
        found = prim.bind(*args, **params)
        columns.append(list(found) if multiple else [found])
    rows = [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in (outs if multiple else [outs])]
    return outs, rows if multiple else rows[0]


def zero_prop(prim: Primitive, primals_in: Any, series_in: Any, **params: Any) -> tuple[Any, Any]:
    """The Taylor series of a primitive whose derivatives are zero.

    Args:
        prim: Primitive.
        primals_in: tuple of arrays, the point.
        series_in: tuple of Taylor series; ignored.
        **params: parameters of the primitive.

    Returns:
        Pair: the results, and a `zero_series` for each.
    """
    outs = prim.bind(*primals_in, **params)
    return outs, [zero_series] * len(outs) if prim.multiple_results else zero_series


def deriv_prop(prim: Primitive, deriv: Callable[[Array], Array], primals_in: Any, series_in: Any) -> tuple[Array, list[Array]]:
    """The Taylor series of a scalar function v of u by its derivative: v' = deriv(u) u', with the
    series of deriv(u) by `jet` of `deriv`.

    Args:
        prim: Primitive of one operand.
        deriv: its derivative, a function of an array.
        primals_in: tuple of one array, the point.
        series_in: tuple of one list of Taylor coefficients, None for zeros.

    Returns:
        Pair: the value, and the list of Taylor coefficients of the result.
    """
    (x,), (terms,) = primals_in, series_in
    order = len(terms)
    made = [zeros(x.aval) if t is None else t for t in terms]
    slope0, slopes = jet(deriv, (x,), (made[:-1],), factorial_scaled=False)
    slope = [slope0, *slopes]
    v = _integrated(prim.bind(x), [x, *terms], lambda v, k: slope[: k + 1], order)
    return v[0], v[1:]


def deflinear(prim: Primitive) -> None:
    """Gives a primitive the Taylor rule of functions that are linear in all their inexact operands
    together.

    Args:
        prim: Primitive.

    Returns:
        None.
    """
    jet_rules[prim] = functools.partial(linear_prop, prim)


def defzero(prim: Primitive) -> None:
    """Gives a primitive the Taylor rule of functions whose derivatives are zero.

    Args:
        prim: Primitive.

    Returns:
        None.
    """
    jet_rules[prim] = functools.partial(zero_prop, prim)


def def_deriv(prim: Primitive, deriv: Callable[[Array], Array]) -> None:
    """Gives a primitive of one scalar operand the Taylor rule that follows from its derivative.

    Args:
        prim: Primitive.
        deriv: its derivative, a function of an array.

    Returns:
        None.
    """
    jet_rules[prim] = lambda primals, series, **_: deriv_prop(prim, deriv, primals, series)


def def_comp(prim: Primitive, comp: Callable[..., Any], **kwargs: Any) -> None:
    """Gives a primitive the Taylor rule of a composition of other primitives that equals it.

    Args:
        prim: Primitive.
        comp: function of arrays and of the primitive's parameters.
        **kwargs: further arguments of `comp`.

    Returns:
        None.
    """

    def rule(primals, series, **params):
        order = _orders(series)
        program, consts = _core.make_program(lambda *xs: [comp(*xs, **kwargs, **params)], [x.aval for x in primals])
        outs, terms = _walk(program.jaxpr, consts, primals, series, order)
        return outs[0], terms[0]

    jet_rules[prim] = rule


def _def_integral(name, slope):
    """v' = slope u', where the slope's series follows from that of v: `slope(v, k)`, coefficients 0
    to k.
    """
    p = primitive(name)

    def rule(primals, series, **params):
        v = _integrated(p.bind(*primals, **params), [primals[0], *series[0]], slope, len(series[0]))
        return v[0], v[1:]

    jet_rules[p] = rule


def _squared(v, k):
    return [_convolved(v, v, [(i, m - i) for i in range(m + 1)]) for m in range(k + 1)]


def _one_plus(terms, sign):
    """The series 1 + sign s."""
    first = lax.add(_scaled(terms[0], sign), _number(1.0, terms[0]))
    return [first, *[_scaled(t, sign) for t in terms[1:]]]


def _def_pair(a, b, sign):
    """sin and cos, sinh and cosh: s' = c u', c' = sign s u'."""
    pa, pb = primitive(a), primitive(b)

    def both(primals, series):
        (x,), (terms,) = primals, series
        u, s, c = [x, *terms], [pa.bind(x)], [pb.bind(x)]
        for k in range(1, len(u)):
            ks = [(j, k - j) for j in range(1, k + 1)]
            following = _scaled(_convolved(u, c, ks, float), 1.0 / k), _scaled(_convolved(u, s, ks, float), sign / k)
            s.append(following[0])
            c.append(following[1])
        return s, c

    jet_rules[pa] = lambda primals, series, **_: (lambda s: (s[0], s[1:]))(both(primals, series)[0])
    jet_rules[pb] = lambda primals, series, **_: (lambda c: (c[0], c[1:]))(both(primals, series)[1])


def _def_bilinear(name):
    p = primitive(name)

    def rule(primals, series, **params):
        order = _orders(series)
        u, v = ([x, *_listed(s, order)] for x, s in zip(primals, series, strict=True))
        product = functools.partial(p.bind, **params)
        return product(*primals), [_convolved(u, v, [(i, k - i) for i in range(k + 1)], product=product) for k in range(1, order + 1)]

    jet_rules[p] = rule


def _divide(primals, series):
    """w = u / v: v_0 w_k = u_k - the sum of w_j v_(k-j), j < k."""
    order = _orders(series)
    u, v = ([x, *_listed(s, order)] for x, s in zip(primals, series, strict=True))
    w = [lax.div(*primals)]
    for k in range(1, order + 1):
        w.append(_over(_minus(u[k], _convolved(w, v, [(j, k - j) for j in range(k)])), v[0]))
    return w[0], w[1:]


def _root(primals, series, **params):
    """v v = u: 2 v_0 v_k = u_k - the sum of v_j v_(k-j), 0 < j < k."""
    (x,), (terms,) = primals, series
    v = [bind("sqrt", x, **params)]
    for k in range(1, len(terms) + 1):
        v.append(_over(_minus(terms[k - 1], _convolved(v, v, [(j, k - j) for j in range(1, k)])), _scaled(v[0], 2.0)))
    return v[0], v[1:]


def _integer_power(primals, series, *, y):
    """By products, so that a base of 0 is not a pole."""
    order = len(series[0])
    value = bind("integer_pow", primals[0], y=y)
    if y == 0:
        return value, zero_series
    u, out, n = [primals[0], *series[0]], None, abs(y)
    while n:
        if n % 2:
            out = u if out is None else [_convolved(out, u, [(i, k - i) for i in range(k + 1)]) for k in range(order + 1)]
        n //= 2
        u = _squared(u, order) if n else u
    if y < 0:
        return value, _divide((_one(value), out[0]), (zero_series, out[1:]))[1]
    return value, out[1:]


def _absolute(primals, series):
    (x,), (terms,) = primals, series
    if x.dtype.kind == "c":
        return _by_jvp(primitive("abs"), primals, series)
    sign = lax.sign(x)
    return lax.abs(x), [_times(sign, t) for t in terms]


def _select(primals, series, **params):
    return linear_prop(primitive("select_n"), primals, [zero_series, *series[1:]], **params)


_LINEAR = """neg add add_any sub reshape transpose broadcast_in_dim squeeze rev slice concatenate pad reduce_sum cumsum real imag conj complex
    convert_element_type copy reduce_window_sum stack unstack split tile device_put psum all_gather reduce_scatter all_to_all ppermute dynamic_slice
    dynamic_update_slice gather scatter scatter-add scatter-sub optimization_barrier"""
_ZERO = "sign floor ceil round stop_gradient nextafter"

for _name in _LINEAR.split():
    deflinear(primitive(_name))
for _name in _ZERO.split():
    defzero(primitive(_name))
for _name in ("mul", "dot_general", "conv_general_dilated"):
    _def_bilinear(_name)
_def_pair("sin", "cos", -1.0)
_def_pair("sinh", "cosh", 1.0)
_def_integral("exp", lambda v, k: v)
_def_integral("expm1", lambda v, k: _one_plus(v, 1.0))
_def_integral("exp2", lambda v, k: [_scaled(t, math.log(2.0)) for t in v])
_def_integral("tan", lambda v, k: _one_plus(_squared(v, k), 1.0))
_def_integral("tanh", lambda v, k: _one_plus(_squared(v, k), -1.0))
_def_integral("logistic", lambda v, k: [_minus(a, b) for a, b in zip(v, _squared(v, k), strict=True)])
jet_rules[primitive("div")] = _divide
jet_rules[primitive("sqrt")] = _root
jet_rules[primitive("integer_pow")] = _integer_power
jet_rules[primitive("abs")] = _absolute
jet_rules[primitive("select_n")] = _select
_one = functools.partial(lax.full_like, fill_value=1)
def_comp(primitive("square"), lambda x: lax.mul(x, x))
def_comp(primitive("rsqrt"), lambda x, **params: _one(x) / bind("sqrt", x, **params))
for _name, _slope in {
    "log": lambda x: _one(x) / x,
    "log1p": lambda x: _one(x) / (_one(x) + x),
    "atan": lambda x: _one(x) / (_one(x) + x * x),
    "asin": lambda x: lax.rsqrt(_one(x) - x * x),
    "acos": lambda x: -lax.rsqrt(_one(x) - x * x),
    "asinh": lambda x: lax.rsqrt(_one(x) + x * x),
    "acosh": lambda x: lax.rsqrt((x - _one(x)) * (x + _one(x))),
    "atanh": lambda x: _one(x) / ((_one(x) - x) * (_one(x) + x)),
    "erf": lambda x: lax.full_like(x, 2 / math.sqrt(math.pi)) * lax.exp(-x * x),
    "erfc": lambda x: lax.full_like(x, -2 / math.sqrt(math.pi)) * lax.exp(-x * x),
    "lgamma": lax.digamma,
}.items():
    def_deriv(primitive(_name), _slope)
