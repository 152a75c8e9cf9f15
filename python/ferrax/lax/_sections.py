"""What functions of one kind have in common in their docstrings: decorators."""

from __future__ import annotations

from .._base.docstrings import sections

accurate = sections("""
    Args:
        x: array, float or complex.
        accuracy: None, a `Tolerance` or an `AccuracyMode`; every setting gives the one
          implementation, which is within 2 ulp.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.
    """)

analytic = sections("""
    Args:
        x: array, float or complex.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.
    """)

approximate = sections("""
    Args:
        operand: array of floats.
        k: int, at most the size of the axis.
        reduction_dimension: int.
        recall_target: float: decides how many candidates there are.
        reduction_input_size_override: int, the number of elements that the recall is of, where the
          operand is a part of them; negative: the size of the axis.
        aggregate_to_topk: bool; k results; otherwise the candidates for them, in order: as many as
          the partial reduction of a TPU leaves.

    Returns:
        (values, indices): two arrays of size k along the axis, or of as many as there are
        candidates, of operand's dtype and int32.

    Raises:
        ValueError: for other dtypes.
    """)

arithmetic = sections("""
    Args:
        x, y: arrays of one dtype, not bool, and of one rank, where sizes of 1 broadcast; or
          scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for bool.
    """)

bits = sections("""
    Args:
        x, y: arrays of one shape and dtype, integer or bool; or scalars.

    Returns:
        Array of their shape and dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.
    """)

collective = sections("""
    Args:
        x: pytree of arrays.
        axis_name: name of a mapped axis, or a tuple of names.
        axis_index_groups: lists of positions, all of one size, to work within; None: all together.

    Returns:
        Pytree like x, the same at every position.

    Raises:
        NameError: the name is not bound.
    """)

cumulative = sections("""
    Args:
        operand: array of numbers.
        axis: int, not negative.
        reverse: bool; from the end.

    Returns:
        Array of operand's shape and dtype.

    Raises:
        ValueError: for an axis out of bounds.
    """)

incomplete_gamma = sections("""
    Args:
        a, x: float arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of the broadcast shape and of their dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.
    """)

integers = sections("""
    Args:
        x, y: arrays of integers of one shape and dtype; or scalars.

    Returns:
        Array of their shape and dtype.

    Raises:
        TypeError: if dtypes or shapes differ, and for other dtypes.
    """)

logical_reduction = sections("""
    Args:
        operand: array, integer or bool.
        axes: sequence of ints, not negative.

    Returns:
        Array of operand's dtype without these axes.

    Raises:
        TypeError: for other dtypes.
        ValueError: for axes out of bounds or named twice.
    """)

of_floats = sections("""
    Args:
        x: array of floats.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for other dtypes.
    """)

order = sections("""
    Args:
        x, y: arrays of one dtype and of one rank, where sizes of 1 broadcast; or scalars.

    Returns:
        Array of bool of the broadcast shape.

    Raises:
        TypeError: if dtypes or shapes differ.
        TypeError: for complex operands.
    """)

position = sections("""
    Args:
        operand: array of real numbers or bool.
        axis: int, not negative.
        index_dtype: integer dtype of the result.

    Returns:
        Array of `index_dtype` without the axis.

    Raises:
        ValueError: for an axis out of bounds or of size 0.
        TypeError: for complex operands, or a dtype that is not an integer.
    """)

scatter = sections("""
    Args:
        operand: array.
        scatter_indices: array of integers whose last axis is the index vectors.
        updates: array of the windows, of operand's dtype.
        dimension_numbers: `ScatterDimensionNumbers`.
        indices_are_sorted: bool; a promise that the index vectors are in order.
        unique_indices: bool; a promise that no two windows collide.
        mode: `GatherScatterMode` or its name; None: "drop".

    Returns:
        Array of operand's shape and dtype.
    """)

signed = sections("""
    Args:
        x: array of numbers, not bool.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError: for bool.
    """)
