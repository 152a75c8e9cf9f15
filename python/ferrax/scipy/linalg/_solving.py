"""Solutions of linear systems, inverses and determinants, under scipy's names.

Invariant: `overwrite_*` and `check_finite` are accepted and have no effect: arrays do not change,
and a nan gives a nan.

    >>> solve(jnp.eye(2), jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import numpy as jnp
from ...lax import linalg as _lax
from ...numpy._support.arguments import jitted
from ...numpy.linalg._solving import adjoint, lu_solve as _lu_solve

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike
from ._decompositions import _as_columns, _floating


def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """x of ``a @ x == b``, given a's factor.

    Args:
        c_and_lower: what `cho_factor` gives.
        b: vectors (..., n), or matrices (..., n, k).
        overwrite_b: without effect: arrays are not written to.
        check_finite: without effect: nothing is checked.

    Returns:
        Array like b.

    Raises:
        ValueError: shapes do not fit.

    >>> cho_solve((jnp.array([[2.0]]), True), jnp.array([8.0]))
    Array([2.], dtype=float32)
    """
    c, lower = c_and_lower
    return _cho_solve(*_floating(jnp.asarray(c), jnp.asarray(b)), lower=bool(lower))


@jitted("cho_solve", static=("lower",))
def _cho_solve(c, b, lower):
    c, b, back = _as_columns(c, b, "cho_solve")
    b = _lax.triangular_solve(c, b, left_side=True, lower=lower, transpose_a=not lower, conjugate_a=not lower)
    return back(_lax.triangular_solve(c, b, left_side=True, lower=lower, transpose_a=lower, conjugate_a=lower))


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices (..., n, n).

    Args:
        a: shape (..., n, n).
        overwrite_a: without effect: arrays are not written to.
        check_finite: without effect: nothing is checked.

    Returns:
        Array of shape (...), of a's dtype made float.

    >>> det(jnp.array([[1.0, 2.0], [3.0, 5.0]]))
    Array(-1., dtype=float32)
    """
    return jnp.linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices (..., n, n).

    Args:
        a: shape (..., n, n).
        overwrite_a: without effect: arrays are not written to.
        check_finite: without effect: nothing is checked.

    Returns:
        Array of shape (..., n, n), of a's dtype made float.

    >>> inv(jnp.array([[2.0]]))
    Array([[0.5]], dtype=float32)
    """
    return jnp.linalg.inv(a)


@jitted("lu_solve", static=("trans",))
def _lu_solve_vector(lu, pivots, b, trans):
    order = _lax.lu_pivots_to_permutation(pivots, lu.shape[-1])
    lu, b, back = _as_columns(lu, b, "lu_solve")
    return back(_lu_solve(lu, jnp.broadcast_to(order, lu.shape[:-1]), b, trans))


def lu_solve(lu_and_piv: tuple[Array, ArrayLike], b: ArrayLike, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """x of ``op(a) @ x == b``, given a's factors.

    Args:
        lu_and_piv: what `lu_factor` gives.
        b: vectors (..., n), or matrices (..., n, k).
        trans: 0 (a), 1 (its transpose) or 2 (its adjoint).
        overwrite_b: without effect: arrays are not written to.
        check_finite: without effect: nothing is checked.

    Returns:
        Array like b.

    Raises:
        ValueError: shapes do not fit, or trans is another number.

    >>> lu_solve(jax.scipy.linalg.lu_factor(jnp.array([[2.0]])), jnp.array([4.0]))
    Array([2.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    lu, pivots = lu_and_piv
    lu, b = _floating(lu, b)
    return _lu_solve_vector(lu, jnp.asarray(pivots), b, trans=int(trans))


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """x of ``a @ x == b``.

    Args:
        a: shape (..., n, n).
        b: a vector (n,), or matrices (..., n, k).
        lower: the triangle that is read where a is positive definite.
        overwrite_a: without effect: arrays are not written to.
        overwrite_b: without effect: arrays are not written to.
        debug: without effect.
        check_finite: without effect: nothing is checked.
        assume_a: "gen", "sym", "her" or "pos" (positive definite: by its triangular factor).

    Returns:
        Array like b.

    Raises:
        ValueError: shapes do not fit, or assume_a is another word.

    >>> solve(jnp.array([[2.0]]), jnp.array([4.0]))
    Array([2.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {assume_a!r}")
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)
    a, b = _floating(a, b)
    factor = _lax.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return cho_solve((factor, True), b)


@jitted("solve_triangular", static=("lower", "transpose", "conjugate", "unit_diagonal"))
def _solve_triangular(a, b, lower, transpose, conjugate, unit_diagonal):
    a, b, back = _as_columns(a, b, "solve_triangular")
    out = _lax.triangular_solve(a, b, left_side=True, lower=lower, transpose_a=transpose, conjugate_a=conjugate, unit_diagonal=unit_diagonal)
    return back(out)


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """x of ``op(a) @ x == b`` for triangular a.

    Args:
        a: shape (..., n, n); only one triangle is read.
        b: vectors (..., n), or matrices (..., n, k).
        trans: 0 or "N" (a), 1 or "T" (its transpose), 2 or "C" (its adjoint).
        lower: which triangle.
        unit_diagonal: the diagonal is 1, and not read.
        overwrite_b: without effect: arrays are not written to.
        debug: without effect.
        check_finite: without effect: nothing is checked.

    Returns:
        Array like b.

    Raises:
        ValueError: shapes do not fit, or trans is something else.

    >>> solve_triangular(jnp.array([[2.0, 1.0], [0.0, 1.0]]), jnp.array([3.0, 1.0]))
    Array([1., 1.], dtype=float32)
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"Invalid 'trans' value {trans}")
    kind = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    a, b = _floating(a, b)
    return _solve_triangular(a, b, lower=bool(lower), transpose=kind > 0, conjugate=kind == 2, unit_diagonal=bool(unit_diagonal))
