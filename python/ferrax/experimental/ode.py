"""Initial value problems: `odeint`, the explicit Runge-Kutta pair of Dormand and Prince, of order
5(4), with steps of adaptive size.

    odeint(lambda y, t, k: -k * y, 1.0, jnp.linspace(0.0, 1.0, 5), 2.0)        # exp(-2 t)

Invariant: the solution's derivatives are solutions too, not derivatives of steps: forward mode
integrates the sensitivities together with the state, reverse mode the adjoint state backwards from
each requested time. So memory does not grow with the number of steps.

Source: Hairer, Norsett, Wanner: Solving Ordinary Differential Equations I, 2nd edition: II.4 (step
sizes, the first step), II.5 (the method); the middle of a step
for dense output after Shampine: Some practical Runge-Kutta formulas, Math. Comp. 46 (1986).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import _core, lax, numpy as jnp
from .._base.tracebacks import api_boundary
from .._core import Array, promote_dtypes_inexact
from .._transforms.grad import jvp
from .._transforms.linear import vjp
from .._trees.flat import is_inexact
from ..custom_derivatives import _closed, custom_jvp, linear_call
from ..flatten_util import ravel_pytree
from ..tree_util import tree_flatten, tree_leaves, tree_map

if TYPE_CHECKING:
    from ..typing import ArrayLike

__all__ = [
    "abs2",
    "fit_4th_order_polynomial",
    "initial_step_size",
    "interp_fit_dopri",
    "mean_error_ratio",
    "odeint",
    "optimal_step_size",
    "ravel_first_arg",
    "runge_kutta_step",
]

# Table 5.2: nodes, stages, the solution of order 5, and its difference from a solution of order 4: that of Shampine (1986), two thirds of
# the table's own, which JAX takes too, so that steps are as long as its steps.
_C = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_A = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
_B = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
_ERROR = _B - np.array([1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60])
_MIDDLE = np.array(
    [
        6025192743 / 30085553152 / 2,
        0,
        51252292925 / 65400821598 / 2,
        -2691868925 / 45128329728 / 2,
        187940372067 / 1594534317056 / 2,
        -1776094331 / 19743644256 / 2,
        11237099 / 235043384 / 2,
    ]
)


def abs2(x: Any) -> Array:
    """The square of the absolute value.

    Args:
        x: array of any dtype.

    Returns:
        Array of the shape of `x`, real.
    """
    x = jnp.asarray(x)
    return x.real**2 + x.imag**2 if x.dtype.kind == "c" else x**2


def ravel_first_arg(f: Callable[..., Any], unravel: Any, debug_info: Any = None) -> Callable[..., Array]:
    """A function of a pytree as a function of a vector that returns a vector.

    Args:
        f: function whose first argument and result are pytrees of arrays.
        unravel: function from a vector to the first argument, as `ravel_pytree` returns it.
        debug_info: accepted without effect.

    Returns:
        A function of a vector and of the further arguments of `f`.
    """
    return lambda y_flat, *args: ravel_pytree(f(unravel(y_flat), *args))[0]


def fit_4th_order_polynomial(y0: Any, y1: Any, y_mid: Any, dy0: Any, dy1: Any, dt: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The polynomial of degree 4 in s, from 0 to 1 over a step, through three points with given
    slopes at its ends.

    Args:
        y0, y1: arrays (n,), the values at both ends.
        y_mid: array (n,), the value in the middle.
        dy0, dy1: arrays (n,), the slopes at both ends.
        dt: scalar, the length of the step.

    Returns:
        Five arrays (n,), the coefficients, that of the highest power first.
    """
    a = -2.0 * dt * dy0 + 2.0 * dt * dy1 - 8.0 * y0 - 8.0 * y1 + 16.0 * y_mid
    b = 5.0 * dt * dy0 - 3.0 * dt * dy1 + 18.0 * y0 + 14.0 * y1 - 32.0 * y_mid
    c = -4.0 * dt * dy0 + dt * dy1 - 11.0 * y0 - 5.0 * y1 + 16.0 * y_mid
    return a, b, c, dt * dy0, y0


def _weighed(weights, k):
    """The sum of the stages, each times its weight."""
    return jnp.tensordot(jnp.asarray(weights, dtype=k.dtype), k, 1)


def interp_fit_dopri(y0: Any, y1: Any, k: Any, dt: Any) -> Array:
    """The interpolating polynomial of a step of the Dormand-Prince method.

    Args:
        y0, y1: arrays (n,), the values at both ends.
        k: array (7, n), the stages.
        dt: scalar, the length of the step.

    Returns:
        Array (5, n) of coefficients, that of the highest power first.
    """
    y0, y1, k = jnp.asarray(y0), jnp.asarray(y1), jnp.asarray(k)
    dt = jnp.asarray(dt).astype(y0.dtype)
    return jnp.stack(fit_4th_order_polynomial(y0, y1, y0 + dt * _weighed(_MIDDLE, k), k[0], k[-1], dt))


def runge_kutta_step(func: Any, y0: Any, f0: Any, t0: Any, dt: Any) -> tuple[Array, Array, Array, Array]:
    """One step of the Dormand-Prince method.

    Args:
        func: `func(y, t)`, the slope (n,).
        y0: array (n,), the solution at the start of the step.
        f0: array (n,), the slope there.
        t0: scalar, the start.
        dt: scalar, the length of the step.

    Returns:
        (y1, f1, an estimate of the error of y1, the stages (7, n)): y1 and f1 are the solution and
        the slope at the end of the step.
    """
    y0, f0, t0 = jnp.asarray(y0), jnp.asarray(f0), jnp.asarray(t0)
    dt = jnp.asarray(dt)
    step = dt.astype(f0.dtype)
    k = [f0]
    for node, row in zip(_C, _A, strict=True):
        y = y0 + step * _weighed(row[: len(k)], jnp.stack(k))
        k.append(func(y, t0 + dt * node.item()))
    k = jnp.stack(k)
    return step * _weighed(_B, k) + y0, k[-1], step * _weighed(_ERROR, k), k


def mean_error_ratio(error_estimate: Any, rtol: Any, atol: Any, y0: Any, y1: Any) -> Array:
    """The root mean square of the error, relative to the tolerance atol + rtol max(abs(y0),
    abs(y1)).

    A step is accepted up to 1.

    Args:
        error_estimate: array (n,).
        rtol, atol: floats, the tolerances.
        y0, y1: arrays (n,), the values at both ends of the step.

    Returns:
        Scalar array.
    """
    tolerance = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / tolerance)))


def optimal_step_size(last_step: Any, mean_error_ratio: Any, safety: float = 0.9, ifactor: float = 10.0, dfactor: float = 0.2, order: float = 5.0) -> Array:
    """The next step, chosen so that its error is just within the tolerance.

    Args:
        last_step: scalar, the length of the last step.
        mean_error_ratio: scalar, its error in units of the tolerance.
        safety: float, a factor on the step.
        ifactor: float, the greatest factor by which the step grows.
        dfactor: float, the least factor by which it shrinks; a step that was accepted does not
          shrink the next.
        order: float, the order of the method.

    Returns:
        Scalar array.
    """
    ratio = jnp.asarray(mean_error_ratio)
    least = jnp.where(ratio < 1, 1.0, dfactor)
    factor = jnp.minimum(ifactor, jnp.maximum(ratio ** (-1.0 / order) * safety, least))
    return jnp.where(ratio == 0, last_step * ifactor, last_step * factor)


def initial_step_size(fun: Any, t0: Any, y0: Any, order: Any, rtol: Any, atol: Any, f0: Any) -> Array:
    """A first step, from the sizes of the solution, its slope and its second derivative (Hairer,
    Norsett and Wanner, II.4).

    Args:
        fun: `fun(y, t)`, the slope (n,).
        t0: scalar, the start.
        y0: array (n,), the solution there.
        order: int, the order of the method.
        rtol, atol: floats, the tolerances.
        f0: array (n,), the slope there.

    Returns:
        Scalar array.
    """
    scale = atol + jnp.abs(y0) * rtol
    d0, d1 = (jnp.linalg.norm(x / scale.astype(x.dtype)) for x in (y0, f0))
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    y1 = y0 + h0.astype(y0.dtype) * f0
    f1 = fun(y1, t0 + h0)
    d2 = jnp.linalg.norm((f1 - f0) / scale.astype(f0.dtype)) / h0
    h1 = jnp.where((d1 <= 1e-15) & (d2 <= 1e-15), jnp.maximum(1e-6, h0 * 1e-3), (0.01 / jnp.maximum(d1, d2)) ** (1.0 / (order + 1.0)))
    # Where the slope is not a number a little later, the first guess has to do; the step will be shortened.
    return jnp.where(jnp.isnan(h1), h0, jnp.minimum(100.0 * h0, h1))


@overload
def odeint(
    func: Any, y0: ArrayLike, t: Any, *args: Any, rtol: float = 1.4e-08, atol: float = 1.4e-08, mxstep: float = np.inf, hmax: float = np.inf
) -> Array: ...


@overload
def odeint(func: Any, y0: Any, t: Any, *args: Any, rtol: float = 1.4e-08, atol: float = 1.4e-08, mxstep: float = np.inf, hmax: float = np.inf) -> Any: ...


@api_boundary
def odeint(
    func: Callable[..., Any], y0: Any, t: ArrayLike, *args: Any, rtol: float = 1.4e-08, atol: float = 1.4e-08, mxstep: float = np.inf, hmax: float = np.inf
) -> Any:
    """The solution of y' = func(y, t, *args), y(t[0]) = y0, at the times t.

    Args:
        func: `func(y, t, *args)` returns dy/dt: a pytree like y, or one with the same number of
          elements, whose leaves are used in order.
        y0: a pytree of arrays, floating-point or complex.
        t: an array (n,) of times, all growing or all falling.
        *args: more arguments of `func`, pytrees of arrays, which it may be differentiated by; so
          may what `func` closes over.
        rtol, atol: the tolerances, relative and absolute, of the error of each step.
        mxstep: the most steps between two times. Where they do not suffice the solution is NaN from
          there on.
        hmax: the longest step.

    Returns:
        a pytree like y0, each leaf with a new first axis of size n.

    Raises:
        TypeError: t is not an array of floats, an argument contains something else than arrays, or
          `func` does not return as many elements as y0 has.

    >>> odeint(lambda y, t: -y, 1.0, jnp.linspace(0.0, 1.0, 3), rtol=1e-6, atol=1e-6).round(3)
    Array([1.   , 0.607, 0.368], dtype=float32)
    """
    for x in tree_leaves(args):
        try:
            _core.get_aval(x)
        except TypeError:
            raise TypeError(f"The contents of odeint *args must be arrays or scalars, but got {x}.") from None
    t = jnp.asarray(t)
    if t.dtype.kind != "f" and not (is_inexact(t.dtype) and t.dtype.kind != "c"):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    if t.ndim != 1:
        raise TypeError(f"t must be an array of one axis, but got shape {tuple(t.shape)}.")
    y0 = tree_map(lambda x: promote_dtypes_inexact(jnp.asarray(x))[0], y0)
    flat, unravel = ravel_pytree(y0)
    leaves, tree = tree_flatten(args)
    leaves = [jnp.asarray(x) for x in leaves]
    avals = [flat.aval, t.aval.update(shape=()), *[x.aval for x in leaves]]
    converted, consts = _closed(lambda y, t, *leaves: _slope(func, y, t, tree.unflatten(leaves), unravel, y0), avals)
    out = _solution(lambda y, t, consts, leaves: converted(consts, y, t, *leaves), (rtol, atol, mxstep, hmax), flat, t, (consts, leaves))
    shapes = [(x.shape, x.dtype) for x in tree_leaves(y0)]
    pieces, start = [], 0
    for shape, dtype in shapes:
        size = int(np.prod(shape, dtype=int))
        piece = out[:, start : start + size].reshape(t.shape[0], *shape)
        pieces.append((piece.real if dtype.kind != "c" and piece.dtype.kind == "c" else piece).astype(dtype))
        start += size
    return tree_flatten(y0)[1].unflatten(pieces)


def _slope(func, y, t, args, unravel, y0):
    """`func` as a function of vectors."""
    state = unravel(y)
    out = func(state, t, *args)
    slopes = tree_leaves(out)
    if sum(int(np.prod(jnp.shape(x), dtype=int)) for x in slopes) != y.shape[0]:
        describe = lambda tree: tree_map(lambda x: _core.get_aval(x).str_short(), tree)
        raise TypeError(f"odeint: func must return as many numbers as y0 has, but y0 is {describe(y0)} and func returned {describe(out)}")
    if tree_flatten(out)[1] == tree_flatten(y0)[1] and all(jnp.shape(a) == jnp.shape(b) for a, b in zip(slopes, tree_leaves(y0), strict=True)):
        out = tree_map(lambda x, y: jnp.asarray(x).astype(y.dtype), out, y0)
    # a list of numbers for a vector, a tuple for a list: the numbers count, in the order of the leaves
    return _raveled(out, y.dtype)


# ---------------------------------------------------------------- the solution and its derivatives


def _solution(f, options, y0, t, args):
    """y at the times t (n, m) of y' = f(y, t, *args), differentiable in y0, t and args."""

    @custom_jvp
    def solve(y0, t, args):
        return _integrate(lambda y, t: f(y, t, *args), options, y0, t)

    @solve.defjvp
    def rule(primals, tangents):
        y0, t, args = primals
        ys = solve(y0, t, args)
        exact = tree_map(lambda x: is_inexact(x.dtype), args)
        moving = lambda tree: [x for x, e in zip(tree_leaves(tree), tree_leaves(exact), strict=True) if e]
        linear = (tangents[0], tangents[1], moving(tangents[2]))
        parts = tree_flatten(args)

        def merged(own):
            given = iter(own)
            return parts[1].unflatten([next(given) if e else x for x, e in zip(parts[0], tree_leaves(exact), strict=True)])

        g = lambda y, t, own: f(y, t, *merged(own))
        residuals = (ys, t, moving(args))
        forward = lambda res, dx: _sensitivity(g, options, res, dx)
        backward = lambda res, ct: _adjoint(g, options, res, ct)
        return ys, linear_call(forward, backward, residuals, linear)

    return solve(y0, t, args)


def _sensitivity(f, options, residuals, tangents):
    """The tangent of the solution: z' = df/dy z + df/dargs dargs, integrated together with y, plus
    the slope times the tangents of the times.
    """
    ys, t, args = residuals
    dy0, dt, dargs = tangents
    m = ys.shape[1]

    def both(state, t):
        y, z = state[:m], state[m:]
        v, dv = jvp(lambda y, args: f(y, t, args), (y, args), (z, dargs))
        return jnp.concatenate([v, dv])

    slopes = _slopes(f, ys, t, args)
    # What moves the first time moves the whole solution the other way.
    start = dy0 - slopes[0] * dt[0].astype(ys.dtype)
    out = _integrate(both, options, jnp.concatenate([ys[0], start]), t)
    return out[:, m:] + slopes * dt.astype(ys.dtype)[:, None]


def _slopes(f, ys, t, args):
    return lax.map(lambda yt: f(yt[0], yt[1], args), (ys, t))


def _adjoint(f, options, residuals, ct):
    """The cotangents of y0, t and args: the adjoint state, integrated together with the solution
    from each time back to the previous one.
    """
    ys, t, args = residuals
    m = ys.shape[1]
    flat_args, unravel = ravel_pytree(args)
    slopes = _slopes(f, ys, t, args)
    # The cotangent of a time is that of the solution there along its slope: a plain product, as transposes do not conjugate.
    ct_t = jnp.sum(ct * slopes, axis=1)

    def backwards(state, s):
        y, bar = state[:m], state[m : 2 * m]
        v, pull = vjp(lambda y, args: f(y, -s, args), y, args)
        dy, dargs = pull(bar.astype(v.dtype))
        return jnp.concatenate([-v, dy, _raveled(dargs, state.dtype)])

    common = jnp.result_type(ys.dtype, flat_args.dtype) if flat_args.size else ys.dtype

    def step(carry, x):
        bar, dargs = carry
        y, ct_y, later, earlier = x
        start = jnp.concatenate([y.astype(common), (bar + ct_y).astype(common), jnp.zeros(flat_args.size, common)])
        end = _integrate(lambda y, s: backwards(y, s), options, start, jnp.stack([-later, -earlier]))[1]
        return (end[m : 2 * m].astype(bar.dtype), dargs + end[2 * m :]), None

    steps = (ys[1:], ct[1:], t[1:], t[:-1])
    (bar, dargs), _ = lax.scan(step, (jnp.zeros_like(ys[0]), jnp.zeros(flat_args.size, common)), steps, reverse=True)
    ct_t = ct_t.at[0].add(-jnp.sum((bar + ct[0]) * slopes[0]))
    ct_t = (ct_t.real if ct_t.dtype.kind == "c" else ct_t).astype(t.dtype)
    dargs = dargs.real if dargs.dtype.kind == "c" and flat_args.dtype.kind != "c" else dargs
    return bar + ct[0], ct_t, unravel(dargs.astype(flat_args.dtype))


def _raveled(tree, dtype):
    return jnp.concatenate([jnp.ravel(x).astype(dtype) for x in tree_leaves(tree)]) if tree_leaves(tree) else jnp.zeros(0, dtype)


def _integrate(f, options, y0, t):
    """y at the times t (n, m): steps of adaptive size, each time read off the polynomial of the
    step that passes it.
    """
    rtol, atol, mxstep, hmax = options
    if t.shape[0] < 2:
        return jnp.broadcast_to(y0, (t.shape[0], *y0.shape))
    # Falling times are growing ones of the mirrored problem.
    sign = jnp.where(t[-1] < t[0], -1.0, 1.0).astype(t.dtype)
    forward = lambda y, s: f(y, sign * s) * sign.astype(y0.dtype)
    s = t * sign

    def unfinished(state):
        i, _, _, at, dt, _, _, target, _ = state
        return (at < target) & (i < mxstep) & (dt > 0)

    def advance(state):
        i, y, slope, at, dt, last, interp, target, landing = state
        end = jnp.where(landing, target, at + dt)
        y1, slope1, error, k = runge_kutta_step(lambda y, s: forward(y, jnp.where(landing, jnp.minimum(s, target), s)), y, slope, at, dt)
        ratio = mean_error_ratio(error, rtol, atol, y, y1)
        polynomial = interp_fit_dopri(y, y1, k, dt)
        following, lands = _following(dt, ratio, at, end, target, landing)
        accepted = ratio <= 1.0
        pick = lambda a, b: jnp.where(accepted, a, b)
        following = jnp.clip(following, 0.0, hmax)
        return i + 1, pick(y1, y), pick(slope1, slope), pick(end, at), following, pick(at, last), pick(polynomial, interp), target, lands

    def to(carry, target):
        y, slope, at, dt, last, interp = carry
        start = (jnp.int32(0), y, slope, at, dt, last, interp, target, jnp.asarray(False))
        _, y, slope, at, dt, last, interp, _, _ = lax.while_loop(unfinished, advance, start)
        place = ((target - last) / jnp.where(at == last, 1, at - last)).astype(y.dtype)  # no step yet: at the first time
        value = jnp.where(at < target, jnp.nan, _polynomial(interp, place))
        return (jnp.where(at < target, jnp.nan, y), slope, at, dt, last, interp), value

    slope = forward(y0, s[0])
    dt = jnp.clip(initial_step_size(forward, s[0], y0, 4, rtol, atol, slope), 0.0, hmax).astype(t.dtype)
    interp = jnp.stack([jnp.zeros_like(y0)] * 4 + [y0])
    _, ys = lax.scan(to, (y0, slope, s[0], dt, s[0], interp), s[1:])
    return jnp.concatenate([y0[None], ys])


def _following(dt, ratio, at, end, target, landing):
    """The next step, and whether it ends at the target.

    A step whose error is not a number is rejected, and a shorter one follows. Beyond the target
    func may have no value, so that the next step ends there if this one went beyond. It is 0, which
    ends the loop, where shorter steps do not move the time.
    """
    unknown = jnp.isnan(ratio)
    lands = unknown & (end > target) & ~landing
    following = optimal_step_size(dt, jnp.where(unknown, np.inf, ratio))
    following = jnp.where(unknown & (at + following <= at), 0, following)
    return jnp.where(lands, target - at, following).astype(dt.dtype), lands


def _polynomial(coefficients, x):
    out = coefficients[0]
    for c in coefficients[1:]:
        out = out * x + c
    return out
