"""What the operations of `lax` refuse, and in which words; and what they accept in unusual orders."""

import importlib
import re

import numpy as np
import pytest

GATHER, SCATTER = "GatherDimensionNumbers", "ScatterDimensionNumbers"
# (offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims), slice sizes, the sentence
GATHERS = [
    (((5, 4, 6), (), (0, 1)), (10, 8, 6), "offset_dims in gather op must be sorted; got (5, 4, 6)"),
    (((4, 4, 6), (), (0, 1)), (10, 8, 6), "offset_dims in gather op must not repeat; got: (4, 4, 6)."),
    (((0, 1, 7), (), (0, 1)), (10, 8, 6), "Offset dimension 2 in gather op is out of bounds; got 7, but should have been in [0, 6)"),
    (((3, 4, 5, 6), (), (0, 1)), (10, 8, 6), "All components of the offset index in a gather op must either be a offset dimension or"),
    (((3, 4), (1, 1), (0, 1)), (10, 8, 6), "collapsed_slice_dims in gather op must not repeat; got: (1, 1)."),
    (((3,), (2, 1), (0, 1)), (10, 8, 6), "collapsed_slice_dims in gather op must be sorted; got (2, 1)"),
    (((3, 4), (5,), (0, 1)), (10, 8, 6), "Invalid collapsed_slice_dims set in gather op; valid range is [0, 3); got: 5."),
    (((3, 4), (1,), (0, 1)), (10, 8, 6), "Gather op can only collapse slice dims with bound 1, but bound is 8 for index 1 at position 0."),
    (((3, 4, 5), (), (0,)), (10, 8, 6), "Gather op has 1 elements in start_index_map and the bound of dimension index_vector_dim=3 of indices is 2."),
    (((3, 4, 5), (), (0, 0)), (10, 8, 6), "start_index_map in gather op must not repeat; got: (0, 0)."),
    (((3, 4, 5), (), (0, 7)), (10, 8, 6), "Invalid start_index_map; domain is [0, 3), got: 1->7."),
    (((3, 4, 5), (), (0, 1)), (10, 8), "Gather op must have one slice size for every input dimension; got: len(slice_sizes)=2, input_shape.rank=3"),
    (((3, 4, 5), (), (0, 1)), (10, 8, 7), "Slice size at index 2 in gather op is out of range, must be within [0, 6 + 1), got 7."),
    (((3, 4), (), (0, 1), (0,), (0,)), (1, 8, 6), "start_index_map and operand_batching_dims in gather op must be disjoint; got: (0, 1) and (0,)."),
    (((3, 4), (0,), (1, 2), (0,), (0,)), (1, 8, 6), "collapsed_slice_dims and operand_batching_dims in gather op must be disjoint; got: (0,) and (0,)."),
    (((3, 4), (), (1, 2), (0,), (3,)), (1, 8, 6), "Gather op cannot have the index vector dimension as a batching dimension; got (3,)."),
    (((3, 4), (), (1, 2), (9,), (0,)), (1, 8, 6), "Invalid operand_batching_dims set in gather op; valid range is [0, 3); got: 9."),
    (((3, 4), (), (1, 2), (0,), (7,)), (1, 8, 6), "Invalid start_indices_batching_dims set in gather op; valid range is [0, 4); got: 7."),
    (((3, 4), (), (1, 2), (0,), (0,)), (1, 8, 6), "to have the same shape, got (10,) and (5,)."),
]
# the numbers, the shape of the updates, the sentence
SCATTERS = [
    (((4, 3, 5), (), (0, 1)), (5, 4, 3, 10, 8, 6), "update_window_dims in scatter op must be sorted; got (4, 3, 5)"),
    (((3, 3, 5), (), (0, 1)), (5, 4, 3, 10, 8, 6), "update_window_dims in scatter op must not repeat; got: (3, 3, 5)."),
    (((3, 4, 9), (), (0, 1)), (5, 4, 3, 10, 8, 6), "Invalid update_window_dims set in scatter op; valid range is [0, 6); got: 9."),
    (((4, 5), (1, 0), (0, 1)), (5, 4, 3, 10, 8, 6), "Updates tensor must be of rank 5; got 6."),
    (((3, 4, 5), (9,), (0, 1)), (5, 4, 3, 10, 8, 6), "Invalid inserted_window_dims set in scatter op; valid range is [0, 3); got: 9."),
    (((3, 4, 5), (0,), (0, 1)), (5, 4, 3, 10, 8, 6), "Scatter op has window of size 4; doesn't match operand of rank 3."),
    (((3, 4, 5), (), (0,)), (5, 4, 3, 10, 8, 6), "Scatter op has 1 elements in scatter_dims_to_operand_dims and the bound of dimension index_vector_dim=3"),
    (((3, 4, 5), (), (0, 0)), (5, 4, 3, 10, 8, 6), "scatter_dims_to_operand_dims in scatter op must not repeat; got: (0, 0)."),
    (((3, 4, 5), (), (0, 9)), (5, 4, 3, 10, 8, 6), "Invalid scatter_dims_to_operand_dims mapping; domain is [0, 3), got: 1->9."),
    (((3, 4, 5), (), (0, 1)), (5, 4, 3, 11, 8, 6), "For dimension 3, updates bound is 11, operand bound is 10."),
    (((3, 4, 5), (), (0, 1)), (5, 4, 2, 10, 8, 6), "For scatter dimension 2, updates bound is 2, indices bound is 3."),
    (((3, 4), (), (1, 2), (0,), ()), (5, 4, 3, 8, 6), "requires equal numbers of operand_batching_dims and scatter_indices_batching_dims, got (0,) and ()."),
    (((3, 4), (), (1, 2), (0,), (0,)), (5, 4, 3, 8, 6), "to have the same shape, got (10,) and (5,)."),
    (((3, 4), (0,), (1, 2), (0,), (0,)), (5, 4, 3, 8, 6), "inserted_window_dims and operand_batching_dims in scatter op must be disjoint; got: (0,) and (0,)."),
    (((3, 4), (), (0, 2), (0,), (0,)), (5, 4, 3, 8, 6), "scatter_dims_to_operand_dims and operand_batching_dims in scatter op must be disjoint"),
    (((3,), (), (2, 0), (1, 0), (0, 1)), (5, 4, 3, 6), "operand_batching_dims in scatter op must be sorted; got (1, 0)"),
    (((3, 4), (), (1, 2), (0,), (3,)), (5, 4, 3, 8, 6), "Scatter op cannot have the index vector dimension as a batching dimension; got (3,)."),
]


@pytest.mark.ours
@pytest.mark.parametrize("numbers, sizes, words", GATHERS)
def test_gather_refuses_numbers_that_do_not_fit(jax, jnp, lax, numbers, sizes, words):
    x, i = jnp.ones((10, 8, 6)), jnp.zeros((5, 4, 3, 2), int)
    with pytest.raises(TypeError, match=re.escape(words)):
        lax.gather(x, i, getattr(lax, GATHER)(*numbers), sizes)


@pytest.mark.ours
@pytest.mark.parametrize("numbers, shape, words", SCATTERS)
def test_scatter_refuses_numbers_that_do_not_fit(jax, jnp, lax, numbers, shape, words):
    x, i = jnp.ones((10, 8, 6)), jnp.zeros((5, 4, 3, 2), int)
    for f in (lax.scatter, lax.scatter_add, lax.scatter_mul):
        with pytest.raises(TypeError, match=re.escape(words)):
            f(x, i, jnp.ones(shape), getattr(lax, SCATTER)(*numbers))


def test_complex_numbers_are_multiplied_in_place(jax, jnp, lax):
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    x, i, u = jnp.ones(3, "complex64") * (1 + 2j), jnp.array([[0], [0], [5]]), jnp.array([2j, 1 - 1j, 3])
    np.testing.assert_array_equal(lax.scatter_mul(x, i, u, numbers), [-2 + 6j, 1 + 2j, 1 + 2j])
    np.testing.assert_array_equal(jnp.ones(3, "complex64").at[jnp.array([0])].multiply(2j), [2j, 1, 1])
    lanes = jax.vmap(lambda x, i: x.at[i].multiply(2j))(jnp.ones((2, 3), "complex64"), jnp.array([0, 2]))
    np.testing.assert_array_equal(lanes, [[2j, 1, 1], [1, 1, 2j]])
    slope = jax.grad(lambda x: jnp.real(x.at[jnp.array([0, 1])].multiply(2j).sum()))(jnp.ones(3, "complex64"))
    np.testing.assert_array_equal(slope, [2j, 2j, 1])


def test_broadcasting_to_axes_in_any_order(jax, jnp, lax):
    x = jnp.arange(6.0).reshape(3, 2)
    f = lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1, 0))
    want = np.broadcast_to(np.asarray(x).T[:, :, None], (2, 3, 4))
    np.testing.assert_array_equal(f(x), want)
    np.testing.assert_array_equal(jax.jit(f)(x), want)
    np.testing.assert_array_equal(jax.vmap(f, 1, 1)(jnp.stack([x, 2 * x], 1)), np.stack([want, 2 * want], 1))
    w = jnp.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(jax.grad(lambda x: (f(x) * w).sum())(x), np.asarray(w).sum(2).T)


def refusals(jax, jnp, lax):
    x, y = jnp.ones((1, 2, 1)), jnp.arange(6)
    big = lambda f, n, dtype: jax.eval_shape(f, jax.ShapeDtypeStruct((n,), dtype))
    return [
        (ValueError, "dimensions are not unique: (0, 0)", lambda: lax.squeeze(jnp.ones((1, 1)), (0, 0))),
        (TypeError, "rev dimensions must be unique, got (0, 0).", lambda: lax.rev(jnp.ones((1, 1)), (0, 0))),
        (TypeError, "rev dimensions must have every element be nonnegative, got (-1,).", lambda: lax.rev(x, (-1,))),
        (ValueError, "duplicate value in 'axes' of reduction: (0, 0)", lambda: lax.reduce_sum(x, (0, 0))),
        (ValueError, "reduction axes (-1,) contains out-of-bounds indices for float32[1,2,1].", lambda: lax.reduce_max(x, (-1,))),
        (ValueError, "Invalid axis -1 for operand shape (1, 2, 1)", lambda: lax.argmin(x, -1, jnp.int32)),
        (ValueError, "Invalid axis 5 for operand shape (1, 2, 1)", lambda: lax.argmax(x, 5, jnp.int32)),
        (ValueError, "argmin and argmax require non-empty reduced dimension. operand.shape=(0, 2) axis=0", lambda: lax.argmin(jnp.zeros((0, 2)), 0, jnp.int32)),
        (TypeError, "iota shape must have every element be nonnegative, got (-3,).", lambda: lax.iota(jnp.int32, -3)),
        (ValueError, "iota dimension must be between 0 and len(shape), got dimension=-1 for shape=(2, 3)", lambda: lax.broadcasted_iota(jnp.int32, (2, 3), -1)),
        (ValueError, "iota dimension must be between 0 and len(shape), got dimension=2 for shape=(2, 3)", lambda: lax.broadcasted_iota(jnp.int32, (2, 3), 2)),
        (TypeError, "iota does not accept dtype bool. Accepted dtypes are subtypes of", lambda: lax.iota(jnp.bool_, 3)),
        (TypeError, "reshape new_sizes must all be positive, got (-1,).", lambda: lax.reshape(x, (-1,))),
        (TypeError, "reshape dimensions must be a permutation of operand dimensions, got dimensions (0, 0, 1)", lambda: lax.reshape(x, (2,), (0, 0, 1))),
        (TypeError, "must not contain duplicates, got broadcast_dimensions (1, 1)", lambda: lax.broadcast_in_dim(jnp.ones((3, 1)), (2, 3, 4), (1, 1))),
        (
            TypeError,
            "broadcast_dimensions must have every element be nonnegative, got (1, -1).",
            lambda: lax.broadcast_in_dim(jnp.ones((3, 1)), (2, 3), (1, -1)),
        ),
        (TypeError, "broadcast_in_dim shape must have every element be nonnegative, got (2, -4, 4).", lambda: lax.broadcast_in_dim(1.0, (2, -4, 4), ())),
        (TypeError, "must have equal or higher rank to the operand shape; got operand ndim 2", lambda: lax.broadcast_in_dim(jnp.ones((3, 1)), (2,), (1, 2))),
        (ValueError, "padding_value must be a scalar; got np.shape(padding_value)=(2,)", lambda: lax.pad(x, jnp.ones(2), [(1, 1, 1)] * 3)),
        (ValueError, "Sizes passed to split must be nonnegative, got [-1]", lambda: lax.split(y, [-1])),
        (ValueError, "Sum of sizes 7 must be equal to dimension 0 of the operand shape [6]", lambda: lax.split(y, [3, 4])),
        (TypeError, "slice strides must have every element be nonnegative, got (-1,).", lambda: lax.slice(y, [2], [3], [-1])),
        (TypeError, "concatenate dimension out of bounds: dimension -1 for shapes (6,), (6,).", lambda: lax.concatenate([y, y], -1)),
        (
            TypeError,
            "transpose permutation isn't a permutation of operand dimensions, got permutation (0, -1)",
            lambda: lax.transpose(jnp.ones((2, 2)), (0, -1)),
        ),
        (TypeError, "reps length must be equal to the ndim of x, got len(reps)=2 and x.ndim=1.", lambda: lax.tile(y, (1, 2))),
        (ValueError, "k must be smaller than the size of reduction_dim 3, got 5", lambda: lax.approx_max_k(jnp.arange(3.0), 5)),
        (ValueError, "k must be positive, got 0", lambda: lax.approx_max_k(jnp.arange(3.0), 0)),
        (ValueError, "Got operand.shape=(2147483649,)", lambda: big(lambda x: lax.top_k(x, 100), 2**31 + 1, jnp.bfloat16)),
        (OverflowError, "Python integer 2147483648 out of bounds for int32", lambda: big(lambda x: jnp.searchsorted(x, 1.0), 2**31, np.float32)),
    ]


def test_errors_have_the_texts_of_jax(jax, jnp, lax):
    for kind, words, f in refusals(jax, jnp, lax):
        with pytest.raises(kind, match=re.escape(words)):
            f()


@pytest.mark.provokes_faults
@pytest.mark.ours
def test_no_message_shows_how_parameters_are_stored(jax, jnp, lax):
    """Whatever stands in the place of a parameter, the sentence is about what was given."""
    wrong = [-1, (-1,), "words", 1.5, None, ((1, 2), 3), object(), lambda: 0, jnp.float32, [None], {"a": 1}]
    x = jnp.ones((2, 3))
    seen = 0
    for name, _many, params in _core_of(jax).primitives():
        for key, _takes in params:
            for value in wrong:
                given = {k: 1 for k, _ in params} | {key: value}
                for operands in ((), (x,), (x, x), (x, x, x)):
                    try:
                        _core_of(jax).bind(name, *operands, **given)
                    except Exception as e:
                        seen += 1
                        assert not re.search(
                            r"\b(Some|Tuple|Int|Str|List|Enum|Float|Bool|Dims)\(|wrong type|panicked|internal error|index out of bounds", str(e)
                        ), (name, given, str(e))
    assert seen > 1000


def _core_of(jax):
    return importlib.import_module(jax.__name__ + "._core")
