"""Checks of derivatives against numerical differences.

    check_grads(jnp.sin, (0.5,), order=2)           # forward and reverse mode, first and second derivatives

Invariant: an error is an AssertionError whose message has both numbers. Tolerances are for one
element: an array's are as many times as large as it has elements.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core
from ._base.tracebacks import api_boundary
from ._transforms.grad import jvp
from ._transforms.linear import linearize, vjp
from ._trees.flat import is_inexact
from .dtypes import finfo
from .tree_util import tree_flatten, tree_leaves, tree_map

__all__ = ["check_grads", "check_jvp", "check_vjp"]

EPS = 1e-4
_TOLERANCE = {2: 5e-2, 4: 2e-3, 8: 1e-5}


def _real(x):
    return np.asarray(x).astype(np.complex128 if np.asarray(x).dtype.kind == "c" else np.float64)


def _real_size(dtype):
    """Bytes of the real part."""
    dtype = np.dtype(dtype)
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


def _tolerance(given, *dtypes):
    """The tolerance for values of these dtypes: the number given, or the loosest of the dtypes'
    own, which a dict may set.
    """
    if given is not None and not isinstance(given, dict):
        return given
    given = {np.dtype(k): v for k, v in (given or {}).items()}
    inexact = [np.dtype(d) for d in dtypes if is_inexact(d)]
    return max([given.get(d, _TOLERANCE[_real_size(d)]) for d in inexact], default=_TOLERANCE[4])


def _of_arguments(given, args):
    # Half precision makes a function's results loose wherever it enters, so that the arguments say how close results must be.
    dtypes = [_core.get_aval(x).dtype for x in tree_leaves(args)]
    return _tolerance(given, *dtypes)


def _assert_close(got, want, atol, rtol, message):
    got_leaves, got_tree = tree_flatten(got)
    want_leaves, want_tree = tree_flatten(want)
    assert got_tree == want_tree, f"{message}: structures differ: {got_tree} and {want_tree}"
    for g, w in zip(got_leaves, want_leaves, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape, f"{message}: shapes differ: {g.shape} and {w.shape}"
        absolute, relative = _tolerance(atol, g.dtype, w.dtype), _tolerance(rtol, g.dtype, w.dtype)
        if is_inexact(g.dtype) and is_inexact(w.dtype):
            g, w = _real(g), _real(w)
        np.testing.assert_allclose(g, w, atol=absolute * g.size, rtol=relative * w.size, err_msg=message)


def _random_like(rng, x):
    aval = _core.get_aval(x)
    draw = rng.standard_normal(tuple(aval.shape))
    if aval.dtype.kind == "c":
        draw = draw + 1j * rng.standard_normal(tuple(aval.shape))
    return np.asarray(draw).astype(aval.dtype)


def _shifted(tree, direction, step):
    return tree_map(lambda x, d: (_real(x) + step * _real(d)).astype(_core.get_aval(x).dtype), tree, direction)


def _numerical_jvp(f, primals, tangents, eps):
    """The central difference along `tangents`."""
    plus, minus = f(*_shifted(primals, tangents, eps)), f(*_shifted(primals, tangents, -eps))
    return tree_map(lambda p, m: (_real(p) - _real(m)) / (2 * eps), plus, minus)


def _inner(a, b):
    return sum(np.real(np.vdot(np.conj(_real(x)), _real(y))) for x, y in zip(tree_leaves(a), tree_leaves(b), strict=True))


@api_boundary
def check_jvp(
    f: Callable[..., Any], f_jvp: Callable[..., Any], args: Sequence[Any], atol: Any = None, rtol: Any = None, eps: float = EPS, err_msg: str = ""
) -> None:
    """Checks a forward derivative against a central difference in a random direction.

    Args:
        f: the function.
        f_jvp: `f_jvp(primals, tangents) -> (out, out_tangent)`.
        args: tuple of floating-point arrays or pytrees of them, the point at which to check.
        atol: absolute tolerance, a float or a dict by dtype; by default by dtype.
        rtol: relative tolerance, likewise.
        eps: float, the step of the difference.
        err_msg: str, put before the message.

    Returns:
        None.

    Raises:
        AssertionError: the value or the tangent differs.
    """
    atol, rtol = _of_arguments(atol, args), _of_arguments(rtol, args)
    rng = np.random.RandomState(0)
    tangents = tree_map(lambda x: _random_like(rng, x), args)
    out, out_tangent = f_jvp(args, tangents)
    head = f"{err_msg} in check_jvp: " if err_msg else ""
    _assert_close(out, f(*args), atol, rtol, f"{head}JVP primal")
    _assert_close(out_tangent, _numerical_jvp(f, args, tangents, eps), atol, rtol, f"{head}JVP tangent")


@api_boundary
def check_vjp(
    f: Callable[..., Any], f_vjp: Callable[..., Any], args: Sequence[Any], atol: Any = None, rtol: Any = None, eps: float = EPS, err_msg: str = ""
) -> None:
    """Checks a reverse derivative in a random direction v: <ct, J v> by a central difference must
    equal <J' ct, v>.

    Args:
        f: the function.
        f_vjp: `f_vjp(*args) -> (out, pullback)`.
        args: tuple of floating-point arrays or pytrees of them, the point at which to check.
        atol: absolute tolerance, a float or a dict by dtype; by default by dtype.
        rtol: relative tolerance, likewise.
        eps: float, the step of the difference.
        err_msg: str, put before the message.

    Returns:
        None.

    Raises:
        AssertionError: the value or the product differs.
    """
    atol, rtol = _of_arguments(atol, args), _of_arguments(rtol, args)
    rng = np.random.RandomState(0)
    tangents = tree_map(lambda x: _random_like(rng, x), args)
    out, pullback = f_vjp(*args)
    head = f"{err_msg} in check_vjp: " if err_msg else ""
    _assert_close(out, f(*args), atol, rtol, f"{head}VJP primal")
    expected = _numerical_jvp(f, args, tangents, eps)
    ct = tree_map(lambda x: _random_like(rng, x), out)
    got = pullback(ct)
    _assert_close(np.asarray(_inner(tangents, got)), np.asarray(_inner(expected, ct)), atol, rtol, f"{head}VJP cotangent projection")


_MODES = ("fwd", "rev", "lin")


def _modes_of(modes):
    """The modes as a set, from a sequence of them or from a string that names them.

    Raises:
        ValueError: there is another word, or no mode at all: nothing would be checked.
    """
    found = set(re.findall(r"fwd|rev|lin|[^\s,+|]+", modes)) if isinstance(modes, str) else set(modes)
    if unknown := found - set(_MODES):
        raise ValueError(f"check_grads: unknown modes {sorted(map(str, unknown))}; expected 'fwd', 'rev' and 'lin'")
    return found


def _jvp_from_lin(f, primals, tangents):
    out, linear = linearize(f, *primals)
    return out, linear(*tangents)


@api_boundary
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
) -> None:
    """Checks derivatives of a function up to an order, in forward and reverse mode and their
    mixtures, against central differences.

    Args:
        f: function of floating-point arrays or pytrees of them.
        args: tuple of arguments, the point at which to check.
        order: int, the highest order.
        modes: sequence of "fwd", "rev" and "lin" (forward mode by `linearize`), or a string that
          names them, as "rev" or "fwd, lin".
        atol: absolute tolerance, a float or a dict by dtype; by default by dtype.
        rtol: relative tolerance, likewise.
        eps: float, the step of the difference; by default by dtype.

    Returns:
        None.

    Raises:
        AssertionError: a derivative differs from the numerical one.
        ValueError: a mode is unknown.
    """
    modes = _modes_of(modes)
    if eps is None:
        sizes = [_core.get_aval(x).dtype for x in tree_leaves(args)]
        eps = max([EPS] + [float(finfo(d).eps) ** 0.25 for d in sizes if is_inexact(d) and _real_size(d) < 4])
    check_j = functools.partial(check_jvp, atol=atol, rtol=rtol, eps=eps)
    check_v = functools.partial(check_vjp, atol=atol, rtol=rtol, eps=eps)

    def run(f, args, order, message):
        if "fwd" in modes:
            note = f"{message}JVP of " if message else ""
            check_j(f, functools.partial(jvp, f), args, err_msg=note)
            if order > 1:
                run(lambda *args: jvp(f, args, args)[1], args, order - 1, f"JVP of {message}")
        if "rev" in modes:
            note = f"{message}VJP of " if message else ""
            check_v(f, functools.partial(vjp, f), args, err_msg=note)
            if order > 1:

                def f_vjp(*args):
                    out, pullback = vjp(f, *args)
                    return pullback(out)

                run(f_vjp, args, order - 1, f"VJP of {message}")
        if "lin" in modes:
            note = f"{message}LIN of " if message else ""
            by_linearize = functools.partial(_jvp_from_lin, f)
            check_j(f, by_linearize, args, err_msg=note)
            if order > 1:
                run(lambda *args: by_linearize(args, args)[1], args, order - 1, f"LIN of {message}")

    run(f, tuple(args), order, "")
