"""Activation functions, elementwise.

Invariant: derivatives at kinks are JAX's: relu has slope 0 at 0, relu6 slope 0 at 0 and 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _core, lax, numpy as jnp
from .._base.dtypes import is_inexact
from .._tracing.jit import jit
from ..custom_derivatives import custom_jvp
from ..numpy._support.arguments import as_array, check_promotion

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")

_DOC = """{formula}.

    Args:
      x: an array of numbers.{extra}

    Returns:
      Array of the same shape; {kind}.

    >>> nn.{name}(jnp.array({points}))
    {prints}
    """


def _doc(
    formula: str, prints: str, extra: str = "", kind: str = "of x's dtype if that is floating point, else of the default float's", points: str = "[-1.0, 2.0]"
) -> Callable[[_F], _F]:
    """Decorator that adds the common docstring of activations. prints: the output of the example at
    `points`.
    """

    def decorate(f):
        text = {"formula": formula.removesuffix("."), "extra": extra and f"\n      {extra}.", "kind": kind, "points": points, "prints": prints}
        f.__doc__ = _DOC.format(name=f.__name__, **text)
        return f

    return decorate


def _inexact(name, x):
    return _core.promote_dtypes_inexact(as_array(name, x))[0]


def _check_parameter(x, value):
    """Applies strict promotion to a parameter and x; not to an integer x, which the function
    converts first.
    """
    if is_inexact(x.dtype):
        check_promotion(x, value)


@custom_jvp
@jit
@_doc("max(x, 0); the derivative at 0 is 0.", "Array([0., 2.], dtype=float32)", kind="of x's dtype")
def relu(x: ArrayLike) -> Array:
    return jnp.maximum(x, 0)


relu.defjvps(lambda g, ans, x: lax.select(x > 0, g, lax.full_like(g, 0)))


@custom_jvp
@jit
@_doc("min(max(x, 0), 6); the derivative at 0 and at 6 is 0.", "Array([0., 2.], dtype=float32)", kind="of x's dtype")
def relu6(x: ArrayLike) -> Array:
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda g, ans, x: lax.select((x > 0) & (x < 6), g, lax.full_like(g, 0)))


@jit
@_doc("1 / (1 + exp(-x))", "Array([0.2689414, 0.8807971], dtype=float32)")
def sigmoid(x: ArrayLike) -> Array:
    return lax.logistic(x)


def _sigmoid(x):
    return lax.logistic(x)


@jit
@_doc("log(1 + exp(x)), without overflow", "Array([0.3132617, 2.126928 ], dtype=float32)")
def softplus(x: ArrayLike) -> Array:
    return jnp.logaddexp(x, 0)


@jit
@_doc("x / (|x| + 1)", "Array([-0.5      ,  0.6666667], dtype=float32)")
def soft_sign(x: ArrayLike) -> Array:
    x = as_array("soft_sign", x)
    return _soft_sign.fun(x) if jnp.iscomplexobj(x) else _soft_sign(x)


@custom_jvp
def _soft_sign(x):
    return x / (jnp.abs(x) + 1)


@_soft_sign.defjvp
def _soft_sign_jvp(primals, tangents):
    """1 / (|x| + 1)^2: of the quotient's two terms the digits would cancel."""
    (x,), (dx,) = primals, tangents
    size = jnp.abs(x) + 1
    return _soft_sign(x), dx / size / size


@jit
@_doc("x * sigmoid(x)", "Array([-0.2689414,  1.7615942], dtype=float32)")
def silu(x: ArrayLike) -> Array:
    x = _inexact("silu", x)
    return x * _sigmoid(x)


swish = silu


@jit
@_doc("x * tanh(softplus(x))", "Array([-0.30340147,  1.943959  ], dtype=float32)")
def mish(x: ArrayLike) -> Array:
    x = as_array("mish", x)
    return x * jnp.tanh(softplus(x))


@jit
@_doc("log(sigmoid(x)), without underflow", "Array([-1.3132617, -0.126928 ], dtype=float32)")
def log_sigmoid(x: ArrayLike) -> Array:
    return -softplus(-as_array("log_sigmoid", x))


@jit
@_doc("x where x > 0, else alpha * (exp(x) - 1)", "Array([-0.63212055,  2.        ], dtype=float32)", extra="alpha: a scalar or array")
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    x = as_array("elu", x)
    _check_parameter(x, alpha)
    # Where the exponential is not taken it runs at 0, so that its derivative cannot overflow.
    safe = jnp.where(x > 0, 0.0, x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(safe))


@jit
@_doc(
    "x where x >= 0, else negative_slope * x",
    "Array([-0.01,  2.  ], dtype=float32)",
    extra="negative_slope: a scalar or array",
    kind="of the type to which both promote",
)
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    x = as_array("leaky_relu", x)
    _check_parameter(x, negative_slope)
    return jnp.where(x >= 0, x, negative_slope * x)


@jit
@_doc("-1 where x < -1, 1 where x > 1, else x", "Array([-1.,  1.], dtype=float32)", kind="of x's dtype")
def hard_tanh(x: ArrayLike) -> Array:
    x = as_array("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@jit
@_doc("max(x, 0) + alpha * min(0, exp(x / alpha) - 1)", "Array([-0.63212055,  2.        ], dtype=float32)", extra="alpha: a scalar or array")
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    x = as_array("celu", x)
    _check_parameter(x, alpha)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@jit
@_doc("1.0507 * elu(x, 1.6733): self-normalising (Klambauer et al., 2017)", "Array([-1.1113307,  2.101402 ], dtype=float32)")
def selu(x: ArrayLike) -> Array:
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


# From here on the argument of tanh is above 373, so that its slope underflows in double precision.
_GELU_FAR = 22


@jit(static_argnames=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """`x` times the standard normal distribution function (Hendrycks and Gimpel, 2016).

    Args:
        x: an array.
        approximate: use the approximation by tanh.

    Returns:
        an array of the same shape.

    >>> nn.gelu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    x = _inexact("gelu", x)
    if approximate:
        number = x.dtype.type
        # Beyond, tanh is 1 in all dtypes, and a cube that leaves the dtype's range would have no derivative.
        near = x if jnp.iscomplexobj(x) else lax.clamp(number(-_GELU_FAR), x, number(_GELU_FAR))
        inner = number(np.sqrt(2 / np.pi)) * (near + number(0.044715) * (near**3))
        return x * (number(0.5) * (number(1) + jnp.tanh(inner)))
    half = x.dtype.type(np.sqrt(0.5))
    return 0.5 * x * lax.erfc(-x * half)


@jit(static_argnames=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of x along an axis, times the sigmoid of the second (Dauphin et al., 2017).

    Args:
        x: a float or complex array, of even size along `axis`.
        axis: the axis.

    Returns:
        Array of half of x's size along the axis, of x's dtype.

    Raises:
        AssertionError: the size is odd.
        TypeError: x is of integers or booleans.

    >>> nn.glu(jnp.array([2.0, 0.0]))
    Array([1.], dtype=float32)
    """
    x = as_array("glu", x)
    size = x.shape[axis]
    assert size % 2 == 0, "axis size must be divisible by 2"
    first, second = jnp.split(x, 2, axis)
    return first * _sigmoid(second)


@jit
@_doc("(x + sqrt(x**2 + b)) / 2", "Array([0.618034 , 2.4142137], dtype=float32)", extra="b: a scalar or array, 4 by default")
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    x = _inexact("squareplus", x)
    _check_parameter(x, b)
    x, b = _core.promote_dtypes_inexact(x, b)
    if jnp.iscomplexobj(x):
        return (x + jnp.sqrt(x * x + b)) / 2
    return _squareplus(x, b)


@custom_jvp
def _squareplus(x, b):
    # The sum of x and the root cancels below 0.
    half = jnp.abs(x) / 2 + _squareplus_root(x, b) / 2
    return jnp.where(x < 0, b / 4 / half, half)


def _squareplus_root(x, b):
    return jnp.hypot(x, jnp.sqrt(b))


@_squareplus.defjvp
def _squareplus_jvp(primals, tangents):
    (x, b), (dx, db) = primals, tangents
    return _squareplus(x, b), _squareplus_slope(x, b) * dx + db / 4 / _squareplus_root(x, b)


@custom_jvp
def _squareplus_slope(x, b):
    """squareplus(x, b) / root, root = sqrt(x^2 + b)."""
    return _squareplus(x, b) / _squareplus_root(x, b)


@_squareplus_slope.defjvp
def _squareplus_slope_jvp(primals, tangents):
    (x, b), (dx, db) = primals, tangents
    root = _squareplus_root(x, b)
    return _squareplus_slope(x, b), (b / root * dx - x / root * db / 2) / root / root / 2


@jit
@_doc("relu6(x + 3) / 6", "Array([0.33333334, 0.8333333 ], dtype=float32)")
def hard_sigmoid(x: ArrayLike) -> Array:
    return relu6(as_array("hard_sigmoid", x) + 3.0) / 6.0


@jit
@_doc("x * hard_sigmoid(x)", "Array([-0.33333334,  1.6666666 ], dtype=float32)")
def hard_silu(x: ArrayLike) -> Array:
    x = as_array("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@jit
@_doc("0 below -1, x above 1, (x + 1)**2 / 4 between", "Array([0., 2.], dtype=float32)")
def sparse_plus(x: ArrayLike) -> Array:
    x = as_array("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@jit
@_doc("0 below -1, 1 above 1, (x + 1) / 2 between", "Array([0., 1.], dtype=float32)")
def sparse_sigmoid(x: ArrayLike) -> Array:
    return 0.5 * jnp.clip(as_array("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


@jit
@_doc("x itself", "Array([-1.,  2.], dtype=float32)", kind="of x's dtype")
def identity(x: ArrayLike) -> Array:
    return as_array("identity", x)


@custom_jvp
@jit
@_doc("log(1 - exp(-x)), accurate for small and for large x >= 0", "Array([-0.93275213, -0.14541346], dtype=float32)", points="[0.5, 2.0]")
def log1mexp(x: ArrayLike) -> Array:
    x = as_array("log1mexp", x)
    return jnp.where(x < jnp.log(2.0), jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


log1mexp.defjvps(lambda g, ans, x: g / jnp.expm1(x))


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent, elementwise: `numpy.tanh`.

    Args:
        x: array of numbers.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.

    >>> nn.tanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return jnp.tanh(x)
