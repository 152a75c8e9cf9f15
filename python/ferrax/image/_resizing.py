"""Kernels, matrices of weights, and their products with an image.

Invariant: only axes whose size, scale or translation changes are computed.

    >>> resize(jnp.array([1.0, 3.0]), (3,), ResizeMethod.NEAREST)
    Array([1., 3., 3.], dtype=float32)
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import lax, numpy as jnp
from .._base.dtypes import is_complex, to_inexact, to_real
from .._base.shapes import canonicalize_axis
from ..numpy._support.arguments import as_array, jitted

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike


class ResizeMethod(enum.Enum):
    """The interpolation method: `from_string` also accepts "bilinear", "trilinear", "triangle",
    "bicubic", "tricubic" and "bicubic-pytorch".
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of that name. Raises ValueError for an unknown name."""
        if s not in _NAMES:
            raise ValueError(f'Unknown resize method "{s}"')
        return _NAMES[s]


_NAMES = {
    **{m.name.lower().replace("_", "-"): m for m in ResizeMethod},
    **dict.fromkeys(("bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    **dict.fromkeys(("bicubic", "tricubic"), ResizeMethod.CUBIC),
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
}


def _triangle(x):
    return jnp.maximum(0, 1 - x)


def _lanczos(radius):
    # sinc(x) sinc(x / r)
    return lambda x: jnp.where(x < radius, jnp.sinc(x) * jnp.sinc(x / radius), 0)


def _keys(a):
    """R. Keys, "Cubic convolution interpolation for digital image processing", IEEE Trans.

    ASSP 29, 1981, of parameter a.
    """

    def kernel(x):
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x >= 2, 0, jnp.where(x >= 1, far, near))

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
    ResizeMethod.CUBIC: _keys(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _keys(-0.5),
}


def _normalized(w):
    """Columns that add up to one; zero where the sum is too small to divide by."""
    total = w.sum(0, keepdims=True)
    enough = abs(total) > 1000 * np.finfo(np.float32).eps
    return jnp.where(enough, w / jnp.where(enough, total, 1), 0)


def _weights(n, m, scale, translation, method, antialias):
    """[n, m]: the weight of each of n elements in each of m."""
    dtype = scale.dtype
    place = (jnp.arange(m, dtype=dtype) + 0.5 - translation) / scale - 0.5
    if method == ResizeMethod.AREA:
        # the length that element and output share
        lo, hi = place + 0.5 - 0.5 / scale, place + 0.5 + 0.5 / scale
        left = jnp.arange(n, dtype=dtype)[:, None]
        shared = jnp.maximum(jnp.minimum(hi, left + 1) - jnp.maximum(lo, left), 0)
        return _normalized(shared)
    wide = jnp.maximum(1 / scale, 1) if antialias else 1
    if method == ResizeMethod.CUBIC_PYTORCH and not antialias:
        # samples outside, within reach of the kernel, are the outermost element
        at = jnp.arange(-2, n + 2, dtype=dtype)[:, None]
        w = _normalized(_keys(-0.75)(abs(place - at)))
        first, last = w[:3].sum(0, keepdims=True), w[-3:].sum(0, keepdims=True)
        return jnp.concatenate([first, w[3:-3], last]) if n > 1 else w.sum(0, keepdims=True)
    at = jnp.arange(n, dtype=dtype)[:, None]
    w = _normalized(_KERNELS[method](abs(place - at) / wide))
    return jnp.where((place >= -0.5) & (place <= n - 0.5), w, 0)


def _multiplied(x, axes, scale, translation, shape, method, antialias, precision):
    """`x` with a matrix of weights applied to each of the axes."""
    dtype = to_inexact(x.dtype)
    x = x.astype(dtype)
    real = to_real(dtype)
    wide = np.dtype(np.float32) if real.itemsize < 4 else real
    for k, axis in enumerate(axes):
        w = _weights(x.shape[axis], shape[axis], scale[k].astype(wide), translation[k].astype(wide), method, antialias)
        y = lax.dot_general(x, w.astype(dtype), (((axis,), (0,)), ((), ())), precision=precision)
        x = jnp.moveaxis(y, -1, axis)
    return x


@jitted("_resize", static=("shape", "method", "antialias", "precision"))
def _resized(x, shape, method, antialias, precision):
    axes = [k for k, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m]
    if method == ResizeMethod.NEAREST:
        for k in axes:
            n, m = x.shape[k], shape[k]
            # in whole numbers: floor((i + 1/2) n / m)
            x = x[(slice(None),) * k + (np.array([(2 * i + 1) * n // (2 * m) for i in range(m)], np.int32),)]
        return x
    dtype = to_real(to_inexact(x.dtype))
    wide = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
    scale = [jnp.asarray(shape[k] / x.shape[k], wide) for k in axes]
    zero = [jnp.zeros((), wide) for _ in axes]
    return _multiplied(x, axes, scale, zero, shape, method, antialias, precision)


@jitted("_scale_and_translate", static=("shape", "axes", "method", "antialias", "precision"))
def _scaled(x, scale, translation, shape, axes, method, antialias, precision):
    return _multiplied(x, axes, scale, translation, shape, method, antialias, precision)


def _checked(x, shape, method):
    shape = tuple([operator.index(n) for n in shape])
    if len(shape) != x.ndim:
        raise ValueError(f"shape must have length equal to the number of dimensions of x;  {shape} vs {tuple(x.shape)}")
    if any(n < 0 for n in shape):
        raise ValueError(f"shape must have no negative sizes, got {shape}")
    return shape, method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def resize(image: ArrayLike, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True, precision: Any = lax.Precision.HIGHEST) -> Array:
    """The image at another size.

    Args:
        image: an array of any rank; integers become floats, unless the method is "nearest".
        shape: the size along each axis.
        method: a ResizeMethod or its name: "nearest", "linear", "cubic" (Keys, a = -1/2),
            "cubic-pytorch" (the same, and without antialias a = -3/4 with edges repeated, as
            PyTorch has it), "lanczos3", "lanczos5" or "area".
        antialias: whether an image that shrinks is smoothed.
        precision: of the products.

    Returns:
        An array of that shape.

    Raises:
        ValueError: the shape has another rank, an axis of size 0 would be resized, or the method
          does not exist.

    >>> import ferrax.image
    >>> ferrax.image.resize(jnp.array([0.0, 1.0]), (4,), "linear")
    Array([0.  , 0.25, 0.75, 1.  ], dtype=float32)
    """
    x = as_array("resize", image)
    shape, method = _checked(x, shape, method)
    if any(n == 0 < m for n, m in zip(x.shape, shape, strict=True)):
        raise ValueError(f"an image of shape {tuple(x.shape)} has no elements to make one of shape {shape} of")
    if math.prod(shape) == 0:
        return jnp.zeros(shape, x.dtype if method == ResizeMethod.NEAREST else to_inexact(x.dtype))
    return _resized(x, shape=shape, method=method, antialias=bool(antialias), precision=precision)


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """The image scaled and translated: position u of the input is at `u scale + translation` of the
    output.

    Differentiable in all of these.

    Args:
        image: an array of any rank.
        shape: the size of the result along each axis; those outside of spatial_dims stay.
        spatial_dims: the axes that are scaled and moved.
        scale, translation: float[len(spatial_dims)].
        method, antialias, precision: as in `resize`; the method "nearest" is refused.

    Returns:
        An array of that shape, 0 where the image does not reach.

    Raises:
        ValueError: for shapes that do not fit, an unknown method, and "nearest".

    >>> import ferrax.image
    >>> ferrax.image.scale_and_translate(jnp.array([1.0, 2.0, 3.0]), (3,), (0,), jnp.ones(1), jnp.ones(1), "linear")
    Array([0., 1., 2.], dtype=float32)
    """
    x = as_array("scale_and_translate", image)
    shape, method = _checked(x, shape, method)
    if method == ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for scale_and_translate.")
    axes = tuple([canonicalize_axis(k, x.ndim) for k in spatial_dims])
    scale, translation = as_array("scale_and_translate", scale), as_array("scale_and_translate", translation)
    for name, v in (("scale", scale), ("translation", translation)):
        if tuple(v.shape) != (len(axes),):
            raise ValueError(f"{name} must hold one number for each of spatial_dims {axes}, got shape {tuple(v.shape)}")
        if is_complex(v.dtype):
            raise ValueError(f"{name} must be real, got {v.dtype}")
    if any(n != m for k, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if k not in axes):
        raise ValueError(f"shape {shape} and image of shape {tuple(x.shape)} must agree outside of spatial_dims {axes}")
    if math.prod(shape) == 0 or x.size == 0:
        return jnp.zeros(shape, to_inexact(x.dtype))
    real = to_real(to_inexact(x.dtype))
    wide = np.dtype(np.float32) if real.itemsize < 4 else real
    scale, translation = scale.astype(wide), translation.astype(wide)
    return _scaled(x, scale, translation, shape=shape, axes=axes, method=method, antialias=bool(antialias), precision=precision)
