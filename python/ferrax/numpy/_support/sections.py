"""What functions of one kind have in common in their docstrings: decorators."""

from __future__ import annotations

from ..._base.docstrings import sections

as_float = sections("""
    Args:
        x: array of numbers.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.
    """)

bits = sections("""
    Args:
        x, y: arrays that broadcast, integer or bool.

    Returns:
        Array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for floating and complex dtypes.
    """)

comparison = sections("""
    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of bool of the broadcast shape.
    """)

cumulative = sections("""
    Args:
        a: array of numbers or bool.
        axis: int, or None for the flattened array.
        dtype: dtype to accumulate in and to return; None: a's, int32 (int64) for bool.
        out: not supported; must be None.

    Returns:
        Array of a's shape, flattened if axis is None.

    Raises:
        NotImplementedError: if `out` is given.
    """)

cumulative_along = sections("""
    Args:
        x: array of numbers, of rank 1 or more.
        axis: int; None: the only axis of a vector.
        dtype: dtype to accumulate in and to return; None: x's, narrow integers and bool widened to
          the default integer.
        include_initial: bool; put the identity in front.

    Returns:
        Array of x's shape, one longer along `axis` with include_initial.

    Raises:
        ValueError: for scalars, and if axis is None above rank 1.
    """)

division = sections("""
    Args:
        x1, x2: arrays that broadcast, bool, integer or real.

    Returns:
        Array of the broadcast shape and the promoted dtype; bool becomes int32.

    Raises:
        TypeError: for complex dtypes.
    """)

extreme = sections("""
    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.

    Returns:
        Array of a's dtype and of its shape without the reduced axes.

    Raises:
        ValueError: for no elements, or for `where`, unless `initial` is given; for an axis out of
          bounds or named twice.
        NotImplementedError: if `out` is given.
    """)

extreme_alias = sections("""
    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.

    Returns:
        Array of a's dtype and of its shape without the reduced axes.

    Raises:
        ValueError: for no elements, or for `where`, unless `initial` is given; for an axis out of
          bounds or named twice.
    """)

filled = sections("""
    Args:
        shape: int or sequence of ints.
        dtype: dtype of the result; None: the default float.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.

    Raises:
        TypeError: for sizes that are not integers or are negative.
    """)

filled_like = sections("""
    Args:
        a: array.
        dtype: dtype of the result; None: a's.
        shape: int or sequence of ints; None: a's.
        device: where the result lives: a device or a sharding; None: the default device.
        out_sharding: the sharding of the result along explicit axes of a mesh: a `NamedSharding` or
          `PartitionSpec`; None: derived from the operands.

    Returns:
        Array of `shape` and `dtype`.
    """)

infinity = sections("""
    Args:
        x: array, bool, integer or real.
        out: not supported; must be None.

    Returns:
        Array of bool of x's shape.

    Raises:
        ValueError: for complex x.
        NotImplementedError: if `out` is given.
    """)

medians = sections("""
    Args:
        a: array of integers or real numbers.
        axis: int, tuple of ints or None (all).
        out: not supported; must be None.
        overwrite_input: must be False: arrays are not written to.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Array of a's shape without the reduced axes, of the dtype made float.

    Raises:
        ValueError: for complex a, or overwrite_input.
    """)

nan_extreme = sections("""
    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.

    Returns:
        Array of a's dtype and of its shape without the reduced axes.

    Raises:
        ValueError: for no elements, or for `where`, unless `initial` is given.
        NotImplementedError: if `out` is given.
    """)

nan_spread = sections("""
    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        dtype: dtype to accumulate in and to return; None: a's real part's, made float.
        out: not supported; must be None.
        ddof: number subtracted from the count.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.
        mean: the mean, with reduced axes kept, if known; None: computed.

    Returns:
        Array of a's shape without the reduced axes, real unless `dtype` is complex; nan if at most
        ddof elements are not nan.

    Raises:
        ValueError: for a real dtype and complex a.
    """)

nan_total = sections("""
    Args:
        a: array of numbers or bool.
        axis: int, tuple of ints or None (all).
        dtype: dtype to accumulate in and to return; None: a's, bool and narrow integers widened.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar the result starts from; None: the operation's identity.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.

    Returns:
        Array of a's shape without the reduced axes.

    Raises:
        ValueError: if `where` is not bool, or an axis is out of bounds or named twice.
        NotImplementedError: if `out` is given.
    """)

of_radians = sections("""
    Args:
        x: angles in radians, an array of numbers.

    Returns:
        Array of x's shape; bool and integers become the default float, other dtypes stay.
    """)

partition = sections("""
    Args:
        a: array of real numbers or bool.
        kth: int, a position along `axis`.
        axis: int.

    Returns:
        Array of a's shape.

    Raises:
        ValueError: for a position or axis out of bounds.
        NotImplementedError: for complex a.
    """)

position = sections("""
    Args:
        a: array of real numbers or bool.
        axis: int, or None for the flattened array.
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        Array of the default integer, of a's shape without `axis`.

    Raises:
        ValueError: for no elements, and an axis out of bounds.
        TypeError: for complex a.
        NotImplementedError: if `out` is given.
    """)

predicate = sections("""
    Args:
        x: array of numbers.

    Returns:
        Array of bool of x's shape.
    """)

promoted = sections("""
    Args:
        x, y: arrays of numbers that broadcast.

    Returns:
        Array of the broadcast shape and the promoted dtype.
    """)

quantiles = sections("""
    Args:
        a: array of integers or real numbers.
        q: scalar or vector in [0, 1].
        axis: int, tuple of ints or None (all).
        out: not supported; must be None.
        overwrite_input: must be False: arrays are not written to.
        method: between two elements, "linear", "lower", "higher", "midpoint" or "nearest"; with
          weights, "inverted_cdf".
        keepdims: keep the reduced axes, with size 1.
        weights: array of a's shape, or a vector along `axis`; None: all 1.

    Returns:
        Array of q's shape and a's shape without the reduced axes, of the dtype made float.

    Raises:
        ValueError: for complex a, another method, or overwrite_input.
    """)

rounding = sections("""
    Args:
        x: array, bool, integer or real.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for complex x.
    """)

split = sections("""
    Args:
        ary: array.
        indices_or_sections: int, the number of equal parts; or a sequence of ints: where to cut.

    Returns:
        List of arrays.

    Raises:
        ValueError: if the parts would be unequal, or the axis is missing.
    """)

stack = sections("""
    Args:
        tup: sequence of arrays, or an array, which is split along its first axis.
        dtype: dtype of the result; None: the promoted one.

    Returns:
        Array of rank 2 or more.

    Raises:
        TypeError: if ranks or other sizes differ.
    """)

to_radians = sections("""
    Args:
        x: array of numbers.

    Returns:
        Angles in radians, an array of x's shape; bool and integers become the default float.
    """)

triangle = sections("""
    Args:
        n: int, the number of rows.
        k: int, which diagonal, above (positive) or below.
        m: int, the number of columns; None: n.

    Returns:
        (rows, columns): two vectors of the default integer.

    Raises:
        ValueError: for negative sizes.
    """)

truth = sections("""
    Args:
        a: array of numbers or bool.
        axis: int, name of a mapped axis, a tuple of these, or None (all).
        out: not supported; must be None.
        keepdims: keep the reduced axes, with size 1.
        where: array of bool that broadcasts with a: true for the elements to include; None: all.

    Returns:
        Array of bool, of a's shape without the reduced axes.

    Raises:
        ValueError: for an axis out of bounds or named twice.
        NotImplementedError: if `out` is given.
    """)

unchanged = sections("""
    Args:
        x: array of numbers.

    Returns:
        Array of x's shape and dtype.
    """)

unique = sections("""
    Args:
        x: array of numbers or bool.
        size: int, the size of the result, static and needed under jit; None: as many as there are.
        fill_value: value that pads up to `size`; None: the smallest element.

    Returns:
        Named tuple of arrays.
    """)

window = sections("""
    Args:
        M: int, the number of points.

    Returns:
        Vector of the default float, empty for M < 1.
    """)
