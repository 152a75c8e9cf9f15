"""Complex numbers: their parts, argument and conjugate.

Invariant: real arguments are complex numbers whose imaginary part is zero, and stay real wherever
the result is.

    >>> jnp.angle(1j)
    Array(1.5707964, dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._base.dtypes import is_complex, is_inexact
from ..._core import bind
from .._support import sections
from .._support.arguments import as_array, broadcast_constant, convert, filled_like, jitted, scalar_like
from .trigonometric import degrees

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import ArrayLike


def real(val: ArrayLike, /) -> Array:
    """Real part.

    Args:
        val: array of numbers.

    Returns:
        Array of val's shape, of the dtype of its real part.

    >>> jnp.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    val = as_array("real", val)
    return bind("real", val) if is_complex(val.dtype) else val


def imag(val: ArrayLike, /) -> Array:
    """Imaginary part; zeros for real values.

    Args:
        val: array of numbers.

    Returns:
        Array of val's shape, of the dtype of its real part.

    >>> jnp.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    val = as_array("imag", val)
    return bind("imag", val) if is_complex(val.dtype) else broadcast_constant(scalar_like(0, val), val.shape)


@sections.unchanged
def conjugate(x: ArrayLike, /) -> Array:
    """Complex conjugate; real x is itself.

    >>> jnp.conjugate(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = as_array("conjugate", x)
    return bind("conj", x, input_dtype=x.dtype) if is_complex(x.dtype) else x


conj = conjugate


@jitted("angle", static=("deg",))
def _angle(z, deg=False):
    re, im = real(z), imag(z)
    if not is_complex(z.dtype):
        # As in NumPy a scalar is of the default precision.
        re, im = (convert(v, v.dtype if is_inexact(v.dtype) and v.ndim else float) for v in (re, im))
    out = bind("atan2", im, re)
    return degrees(out) if deg else out


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The argument of complex z, in (-pi, pi] radians.

    Args:
        z: array of numbers.
        deg: bool; degrees in place of radians.

    Returns:
        Array of z's shape, of its real part's dtype made float.

    >>> jnp.angle(jnp.array([1j]), deg=True)
    Array([90.], dtype=float32)
    """
    return _angle(as_array("angle", z), deg=True) if deg else _angle(as_array("angle", z))


@jitted("iscomplex")
def _iscomplex(x):
    im = imag(x)
    return bind("ne", im, filled_like(0, im))


@sections.predicate
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero.

    >>> jnp.iscomplex(jnp.array([1j, 1]))
    Array([ True, False], dtype=bool)
    """
    return _iscomplex(as_array("iscomplex", x))


@jitted("isreal")
def _isreal(x):
    im = imag(x)
    return bind("eq", im, filled_like(0, im))


@sections.predicate
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero.

    >>> jnp.isreal(jnp.array([1j, 1]))
    Array([False,  True], dtype=bool)
    """
    return _isreal(as_array("isreal", x))
