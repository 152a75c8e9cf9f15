"""A step along a line that meets the strong Wolfe conditions.

Invariant: `low` is the best point so far that meets the condition of sufficient decrease, and a
point that meets both lies between `low` and `high` once both are known. One evaluation of the
function and its gradient in each turn of one loop. J. Nocedal and S. Wright, Numerical
Optimization, 2nd ed., algorithms 3.5 and 3.6.

    f(x + a p) <= f(x) + c1 a g.p      |g(x + a p).p| <= c2 |g.p|
"""

from __future__ import annotations

import typing

from ... import lax, numpy as jnp

DECREASE, CURVATURE = 1e-4, 0.9
_BRACKET, _ZOOM, _DONE = 0, 1, 2


class Point(typing.NamedTuple):
    """A step: its length, the function there, its slope along the line, its gradient."""

    a: typing.Any
    f: typing.Any
    slope: typing.Any
    g: typing.Any


class State(typing.NamedTuple):
    """The search: number of evaluations, phase, next step, the two ends."""

    count: typing.Any
    phase: typing.Any
    a: typing.Any
    low: Point
    high: Point


def _choose(p, yes, no):
    return Point(*[jnp.where(p, y, n) for y, n in zip(yes, no, strict=True)])


def _between(low, high):
    """The minimum of the parabola through low's value and slope and high's value, kept away from
    both ends; the midpoint if it has no minimum.
    """
    h = high.a - low.a
    bend = high.f - low.f - low.slope * h
    t = jnp.where(bend > 0, -low.slope * h / jnp.where(bend > 0, 2 * bend, 1), 0.5)
    t = jnp.where(jnp.isfinite(t), jnp.clip(t, 0.1, 0.9), 0.5)
    return low.a + t * h


def search(value_and_grad, x, p, f, g, first, most):
    """The step from x along p, a direction of descent.

    f, g: the function and its gradient at x. first: the step that is tried first. most: how many
    are tried.
    Returns (the point, how many evaluations, whether it is lower than x).
    """
    slope = jnp.dot(g, p)
    start = Point(jnp.zeros_like(f), f, slope, g)

    def at(a):
        f, g = value_and_grad(x + a * p)
        return Point(a, f, jnp.dot(g, p), g)

    def step(s):
        new = at(s.a)
        bad = ~jnp.isfinite(new.f) | (new.f > f + DECREASE * new.a * slope) | (new.f >= s.low.f) & ((s.phase == _ZOOM) | (s.count > 0))
        good = ~bad & (abs(new.slope) <= -CURVATURE * slope)
        zoom = s.phase == _ZOOM
        # past the minimum: the end on the far side is the point we came from
        turned = ~bad & jnp.where(zoom, new.slope * (s.high.a - s.low.a) >= 0, new.slope >= 0)
        high = _choose(bad, new, _choose(turned, s.low, s.high))
        low = _choose(bad, s.low, new)
        phase = jnp.where(good, _DONE, jnp.where(zoom | bad | turned, _ZOOM, _BRACKET))
        a = jnp.where(phase == _BRACKET, 2 * new.a, _between(low, high))
        return State(s.count + 1, phase, a, low, high)

    more = lambda s: (s.phase != _DONE) & (s.count < most)
    state = State(jnp.zeros((), int), jnp.zeros((), int), jnp.asarray(first, f.dtype), start, start)
    s = lax.while_loop(more, step, state)
    return s.low, s.count, s.low.f < f
