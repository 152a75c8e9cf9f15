"""Convolution: one primitive, its shapes, its axis orders and its wrappers.

Invariant: axis orders are turned into `ConvDimensionNumbers` and paddings into (low, high) pairs
before the primitive is bound.

    >>> lax.conv(jnp.ones((1, 1, 5)), jnp.ones((1, 1, 3)), (1,), "VALID").shape
    (1, 1, 3)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.dtypes import dtype_of, is_complex, is_floating, is_integer, is_unsigned, requested
from .._core import bind
from .._sharding.parts import sharded
from ._creation import broadcasted_iota, convert_element_type
from ._linear_algebra import dot_general
from ._parameters import ConvDimensionNumbers, Precision, canonicalize_precision
from ._shaping import broadcast, reshape, rev
from ._windows import _dilate, check_dilations, check_lengths, check_positive, padtype_to_pads

if TYPE_CHECKING:
    from .._core import Array
    from ..sharding import NamedSharding, PartitionSpec
    from ..typing import ArrayLike, DTypeLike


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The permutations of axes to (N, C, spatial), (O, I, spatial), (N, C, spatial).

    Args:
        dimension_numbers: triple of axis strings such as ("NHWC", "HWIO", "NHWC").

    Returns:
        Triple of tuples of ints.

    Raises:
        TypeError: if the letters do not match.

    >>> lax.conv_general_permutations(("NHC", "HIO", "NHC"))
    ((0, 2, 1), (2, 1, 0), (0, 2, 1))
    """
    lhs, rhs, out = dimension_numbers
    for i, (a, b) in enumerate((("N", "C"), ("O", "I"), ("N", "C"))):
        if dimension_numbers[i].count(a) != 1 or dimension_numbers[i].count(b) != 1:
            raise TypeError(f"convolution dimension_numbers[{i}] must contain the characters '{a}' and '{b}' exactly once, got {dimension_numbers[i]}.")
        if len(dimension_numbers[i]) != len(set(dimension_numbers[i])):
            raise TypeError(f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {dimension_numbers[i]}.")
    spatial = [d for d in rhs if d not in "OI"]
    if not (set(lhs) - set("NC") == set(spatial) == set(out) - set("NC")):
        raise TypeError(f"convolution dimension_numbers elements must each have the same set of spatial characters, got {dimension_numbers}.")
    first = lambda spec, heads: tuple([spec.index(h) for h in heads] + [spec.index(d) for d in spatial])
    return first(lhs, "NC"), first(rhs, "OI"), first(out, "NC")


def conv_dimension_numbers(lhs_shape: Any, rhs_shape: Any, dimension_numbers: Any) -> ConvDimensionNumbers:
    """Axis orders of a convolution.

    Args:
        lhs_shape, rhs_shape: shapes of the operands.
        dimension_numbers: None (batch and feature first), a triple of axis strings, or
          `ConvDimensionNumbers`.

    Returns:
        `ConvDimensionNumbers`.

    Raises:
        TypeError: for anything else, and for ranks that differ.

    >>> lax.conv_dimension_numbers((1, 5, 2), (3, 2, 4), ("NHC", "HIO", "NHC")).lhs_spec
    (0, 2, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {len(lhs_shape)} and {len(rhs_shape)}.")
    if dimension_numbers is None:
        order = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(order, order, order)
    if isinstance(dimension_numbers, (list, tuple)):
        if len(dimension_numbers) != 3:
            raise TypeError(f"convolution dimension_numbers list/tuple must be length 3, got {len(dimension_numbers)}.")
        if not all(isinstance(d, str) for d in dimension_numbers):
            raise TypeError(f"convolution dimension_numbers elements must be strings, got {tuple(map(type, dimension_numbers))}.")
        for i, spec in enumerate(dimension_numbers):
            if len(spec) != len(lhs_shape):
                raise TypeError(
                    f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and rhs, "
                    f"got {len(spec)} for lhs and rhs shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
                )
        return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))
    raise TypeError(f"convolution dimension_numbers must be tuple/list or None, got {type(dimension_numbers)}.")


def _check_spatial(name, window, **lists):
    """Raises ValueError for a list that does not have one entry for each spatial axis of the
    kernel.
    """
    check_lengths(ValueError, name + " window and {what} must have the same number of dimensions, but got {n} and {k}", window, **lists)


def conv_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: str | Sequence[tuple[int, int]], batch_group_count: int = 1
) -> tuple[int, ...]:
    """Shape of a convolution in (N, C, spatial) order.

    Args:
        lhs_shape, rhs_shape: shapes of the operands.
        strides: sequence of ints, one for each spatial axis.
        pads: (low, high) pairs, or a padding's name.
        batch_group_count: int, groups of batch entries.

    Returns:
        Tuple of ints.

    >>> lax.conv_shape_tuple((1, 2, 5), (4, 2, 3), (1,), [(0, 0)])
    (1, 4, 3)
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    spatial = [max(0, (n + lo + hi - w) // s + 1) for n, w, s, (lo, hi) in zip(lhs_shape[2:], rhs_shape[2:], strides, pads, strict=True)]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """Shape of a convolution whose axis orders are the strings `dimension_numbers`.

    Args:
        lhs_shape, rhs_shape: shapes of the operands.
        window_strides: sequence of ints, one for each spatial axis.
        padding: (low, high) pairs, or a padding's name.
        dimension_numbers: triple of axis strings.

    Returns:
        Tuple of ints.

    >>> lax.conv_general_shape_tuple((1, 5, 2), (3, 2, 4), (1,), "VALID", ("NHC", "HIO", "NHC"))
    (1, 3, 4)
    """
    lhs_perm, rhs_perm, out_perm = conv_general_permutations(dimension_numbers)
    out = conv_shape_tuple([lhs_shape[i] for i in lhs_perm], [rhs_shape[i] for i in rhs_perm], window_strides, padding)
    return tuple([out[i] for i in np.argsort(out_perm)])


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """Shape of a transposed convolution whose axis orders are the strings `dimension_numbers`.

    Args:
        lhs_shape, rhs_shape: shapes of the operands.
        window_strides: sequence of ints, one for each spatial axis.
        padding: (low, high) pairs, or a padding's name.
        dimension_numbers: triple of axis strings.

    Returns:
        Tuple of ints.

    >>> lax.conv_transpose_shape_tuple((1, 5, 2), (3, 2, 4), (2,), "SAME", ("NHC", "HIO", "NHC"))
    (1, 10, 4)
    """
    lhs_perm, rhs_perm, out_perm = conv_general_permutations(dimension_numbers)
    lhs, rhs = [lhs_shape[i] for i in lhs_perm], [rhs_shape[i] for i in rhs_perm]
    if isinstance(padding, str):
        padding = [_conv_transpose_padding(k, s, padding) for k, s in zip(rhs[2:], window_strides, strict=True)]
    dilated = [_dilate(n, s) for n, s in zip(lhs[2:], window_strides, strict=True)]
    out = (lhs[0], rhs[0], *[max(0, n + lo + hi - k + 1) for n, k, (lo, hi) in zip(dilated, rhs[2:], padding, strict=True)])
    return tuple([out[i] for i in np.argsort(out_perm)])


def conv_general_dilated(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Convolution of `lhs` with the kernel `rhs` (not flipped), with strides, padding and dilation.

    Args:
        lhs: array of batch, features and spatial axes: (N, C, spatial) by default.
        rhs: array of the kernels, of lhs's rank: (O, I, spatial) by default.
        window_strides: sequence of ints, one for each spatial axis.
        padding: "VALID", "SAME", "SAME_LOWER" or (low, high) pairs.
        lhs_dilation: spacing of the input's elements (a transposed convolution); None: 1.
        rhs_dilation: spacing of the kernel's elements; None: 1.
        dimension_numbers: `ConvDimensionNumbers` or a triple of axis strings; None: batch and
          feature first.
        feature_group_count: int, independent groups of features.
        batch_group_count: int, independent groups of batch entries.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype of the result.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of the same axis order, of the operands' or the preferred dtype.

    Raises:
        TypeError: if shapes or dtypes do not fit.
        ValueError: if groups or padding do not fit.

    >>> lax.conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (2,), "VALID")
    Array([[[2., 2.]]], dtype=float32)
    """
    if out_sharding is not None:
        return sharded(conv_general_dilated, locals())
    if preferred_element_type is not None:
        preferred_element_type = requested("conv_general_dilated", preferred_element_type)
        check_preferred(dtype_of(lhs), preferred_element_type)
    numbers = conv_dimension_numbers(np.shape(lhs), np.shape(rhs), dimension_numbers)
    n = len(numbers.lhs_spec) - 2
    lhs_dilation = (1,) * n if lhs_dilation is None else (lhs_dilation,) * n if isinstance(lhs_dilation, int) else tuple(lhs_dilation)
    rhs_dilation = (1,) * n if rhs_dilation is None else (rhs_dilation,) * n if isinstance(rhs_dilation, int) else tuple(rhs_dilation)
    strides = tuple([operator.index(s) for s in window_strides])
    feature_group_count, batch_group_count = operator.index(feature_group_count), operator.index(batch_group_count)
    for what, count in (("feature", feature_group_count), ("batch", batch_group_count)):
        if count <= 0:
            raise ValueError(f"conv_general_dilated {what}_group_count must be a positive integer, got {count}.")
    if isinstance(padding, str) and any(d != 1 for d in lhs_dilation):
        raise ValueError(
            "String padding is not implemented for transposed convolution using this op. "
            "Please either exactly specify the required padding or use conv_transpose."
        )
    check_positive(ValueError, "conv_general_dilated", window_strides=strides)
    check_dilations(lhs_dilation, rhs_dilation)
    _check_spatial("conv_general_dilated", np.shape(rhs)[2:], window_strides=strides, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation)
    if isinstance(padding, str):
        rhs_sizes = [_dilate(np.shape(rhs)[i], d) for i, d in zip(numbers.rhs_spec[2:], rhs_dilation, strict=True)]
        lhs_sizes = [_dilate(np.shape(lhs)[i], d) for i, d in zip(numbers.lhs_spec[2:], lhs_dilation, strict=True)]
        padding = padtype_to_pads(lhs_sizes, rhs_sizes, strides, padding)
    else:
        try:
            padding = tuple([(operator.index(lo), operator.index(hi)) for lo, hi in padding])
        except (ValueError, TypeError) as e:
            raise ValueError(f"padding argument to conv_general_dilated should be a string or a sequence of (low, high) pairs, got {padding}") from e
    return bind(
        "conv_general_dilated",
        lhs,
        rhs,
        window_strides=strides,
        padding=tuple(padding),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision=canonicalize_precision(precision),
        preferred_element_type=preferred_element_type,
    )


def check_preferred(dtype, preferred):
    """Raises TypeError where products of a dtype cannot be summed in the requested dtype: of
    another kind, unsigned, or narrower.
    """
    if preferred is None:
        return
    preferred = np.dtype(preferred)
    if not (is_integer(dtype) and is_floating(preferred)):
        if any(kind(dtype) and not kind(preferred) for kind in (is_integer, is_floating, is_complex)):
            raise TypeError(
                "Input type is incompatible with `preferred_element_type`. The compatible combinations of (input_type, preferred_element_type) are "
                "(integral, integral), (integral, floating), (floating, floating), (complex, complex."
            )
        if is_integer(dtype) and not is_unsigned(dtype) and is_unsigned(preferred):
            raise TypeError("`preferred_element_type` must have the same signedness as the original type.")
    if preferred.itemsize < np.dtype(dtype).itemsize:
        raise TypeError("`preferred_element_type` must not be narrower than the original type.")


def conv(lhs: Array, rhs: Array, window_strides: Sequence[int], padding: str, precision: Any = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """Convolution of lhs (N, C, spatial) with rhs (O, I, spatial).

    Args:
        lhs: array of shape (N, C, spatial).
        rhs: array of shape (O, I, spatial).
        window_strides: sequence of ints, one for each spatial axis.
        padding: "VALID", "SAME" or "SAME_LOWER".
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.

    Returns:
        Array of shape (N, O, spatial).

    >>> lax.conv(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), "VALID")
    Array([[[2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type)


def conv_with_general_padding(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv` with dilations.

    Args:
        lhs: array of shape (N, C, spatial).
        rhs: array of shape (O, I, spatial).
        window_strides: sequence of ints, one for each spatial axis.
        padding: "VALID", "SAME", "SAME_LOWER" or (low, high) pairs.
        lhs_dilation, rhs_dilation: spacing of the input's and the kernel's elements; None: 1.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.

    Returns:
        Array of shape (N, O, spatial).

    >>> lax.conv_with_general_padding(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,), [(1, 0)], None, None)
    Array([[[1., 2., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _conv_transpose_padding(k, s, padding):
    if padding == "SAME":
        total = k + s - 2
        low = k - 1 if s > k - 1 else -(-total // 2)
    elif padding == "VALID":
        total = k + s - 2 + max(k - s, 0)
        low = k - 1
    else:
        raise ValueError("Padding mode must be `SAME` or `VALID`.")
    return low, total - low


def conv_transpose(
    lhs: Array,
    rhs: Array,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Transposed convolution: the input is spaced out by `strides` and convolved.

    Args:
        lhs: array of batch, features and spatial axes.
        rhs: array of the kernels, of lhs's rank.
        strides: sequence of ints, one for each spatial axis.
        padding: "SAME", "VALID" or (low, high) pairs.
        rhs_dilation: spacing of the kernel's elements; None: 1.
        dimension_numbers: axis orders; None: features last, kernels (spatial, I, O).
        transpose_kernel: flip the kernel's spatial axes and swap its features, which gives the
          gradient of a convolution.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.
        use_consistent_padding: pairs give the padding of the convolution that this one transposes.

    Returns:
        Array of the same axis order.

    Raises:
        TypeError: for different ranks.
        ValueError: where ranks above 3 spatial axes have no dimension numbers.

    >>> lax.conv_transpose(jnp.ones((1, 2, 1)), jnp.ones((2, 1, 1)), (2,), "VALID", dimension_numbers=("NHC", "HIO", "NHC")).ravel()
    Array([1., 1., 1., 1.], dtype=float32)
    """
    shape, ndim = np.shape(lhs), np.ndim(lhs)
    if len(shape) != np.ndim(rhs):
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {ndim} and {np.ndim(rhs)}.")
    if dimension_numbers is None:
        if ndim not in (2, 3, 4, 5):
            raise ValueError("No 4+ dimensional dimension_number defaults.")
        dimension_numbers = {
            2: ("NC", "IO", "NC"), 3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"), 5: ("NHWDC", "HWDIO", "NHWDC"),
        }[ndim]  # fmt: skip
    numbers = conv_dimension_numbers(shape, np.shape(rhs), dimension_numbers)
    sizes = [np.shape(rhs)[i] for i in numbers.rhs_spec[2:]]
    dilation = (1,) * len(sizes) if rhs_dilation is None else tuple(rhs_dilation)
    _check_spatial("conv_transpose", sizes, strides=strides, rhs_dilation=dilation)
    effective = [_dilate(k, d) for k, d in zip(sizes, dilation, strict=True)]
    if isinstance(padding, str):
        pads = [_conv_transpose_padding(k, s, padding) for k, s in zip(effective, strides, strict=True)]
    elif use_consistent_padding:
        pads = [(k - 1 - lo, k - 1 - hi) for k, (lo, hi) in zip(effective, padding, strict=True)]
    else:
        pads = padding
    if transpose_kernel:
        spec = list(numbers.rhs_spec)
        rhs = rev(rhs, numbers.rhs_spec[2:])
        spec[0], spec[1] = spec[1], spec[0]
        numbers = ConvDimensionNumbers(numbers.lhs_spec, tuple(spec), numbers.out_spec)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * len(sizes),
        pads,
        lhs_dilation=strides,
        rhs_dilation=dilation,
        dimension_numbers=numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Precision | None = None,
    preferred_element_type: np.dtype | None = None,
) -> Array:
    """The windows of a convolution with kernels of `filter_shape`, as features: C *
    prod(filter_shape) of them, C varying slowest.

    Args:
        lhs: array of batch, features and spatial axes.
        filter_shape: sequence of ints: the windows' sizes.
        window_strides: sequence of ints, one for each spatial axis.
        padding: "VALID", "SAME", "SAME_LOWER" or (low, high) pairs.
        lhs_dilation, rhs_dilation: spacing of the input's and the window's elements; None: 1.
        dimension_numbers: axis orders; None: batch and feature first.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).
        preferred_element_type: dtype to accumulate in and to return; None: the promoted dtype.

    Returns:
        Array of C * prod(filter_shape) features.

    >>> lax.conv_general_dilated_patches(jnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    filter_shape = tuple(filter_shape)
    numbers = conv_dimension_numbers(np.shape(lhs), (1, 1, *filter_shape), dimension_numbers)
    channels = np.shape(lhs)[numbers.lhs_spec[1]]
    size = int(np.prod(filter_shape))
    unit = bind("eq", broadcasted_iota(np.int32, (size, size), 0), broadcasted_iota(np.int32, (size, size), 1))
    kernel = broadcast(convert_element_type(unit, dtype_of(lhs)), (channels,))
    kernel = reshape(kernel, (channels * size, 1, *filter_shape))
    # The kernel above is (O, I, spatial); its axes are transposed to rhs_spec.
    order = np.argsort(numbers.rhs_spec)
    if tuple(order) != tuple(range(len(order))):
        kernel = bind("transpose", kernel, permutation=tuple(int(i) for i in order))
    return conv_general_dilated(
        lhs,
        kernel,
        window_strides,
        padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=channels,
        precision=None if precision is None else (precision, Precision.DEFAULT),
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """Convolution with a separate kernel at every output position (locally connected).

    Args:
        lhs: array of batch, features and spatial axes.
        rhs: array of shape (O, C * prod(filter_shape), out spatial).
        window_strides: sequence of ints, one for each spatial axis.
        padding: "VALID", "SAME", "SAME_LOWER" or (low, high) pairs.
        filter_shape: sequence of ints: the windows' sizes.
        lhs_dilation, rhs_dilation: spacing of the input's and the window's elements; None: 1.
        dimension_numbers: axis orders; None: batch and feature first.
        precision: how exactly to multiply: a `Precision`, its name, a pair for the two operands, or
          None (the configured default).

    Returns:
        Array of the same axis order.

    >>> lax.conv_general_dilated_local(jnp.ones((1, 1, 3)), jnp.arange(4.0).reshape(1, 2, 2), (1,), "VALID", (2,))
    Array([[[2., 4.]]], dtype=float32)
    """
    given = canonicalize_precision(precision)
    if not (given is None or isinstance(given, tuple)):
        raise ValueError(f"Unsupported precision for conv_general_dilated_local: {precision}")
    lhs_precision = given and given[0]
    patches = conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, lhs_precision)
    numbers = conv_dimension_numbers(np.shape(lhs), (1, 1, *filter_shape), dimension_numbers)
    lhs_c, rhs_c = (numbers.out_spec[1],), (numbers.rhs_spec[1],)
    lhs_b, rhs_b = numbers.out_spec[2:], numbers.rhs_spec[2:]
    out = dot_general(patches, rhs, ((lhs_c, rhs_c), (lhs_b, rhs_b)), precision)
    # The product has (spatial..., N, O); they are transposed to out_spec.
    n = len(lhs_b)
    source = (n, n + 1, *range(n))
    permutation = [0] * (n + 2)
    for axis, src in zip(numbers.out_spec, source, strict=True):
        permutation[axis] = src
    return bind("transpose", out, permutation=tuple(permutation))
