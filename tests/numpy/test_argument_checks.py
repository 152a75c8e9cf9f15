"""Odd arguments: what JAX 0.10.2 gives for them, or refuses.

Each line of a table is an expression and, behind `==`, a numpy expression of the same value and dtype, or, behind `!`, the error's class
and what its text holds. Eager calls; what else holds of a function is in its family's file.
"""

import builtins
import functools
import importlib

import numpy as np
import pytest

f32, i32, u32 = np.float32, np.int32, np.uint32


@pytest.fixture
def names(jax, jnp, lax):
    return dict(jax=jax, jnp=jnp, lax=lax, np=np, f32=f32, i32=i32, u32=u32, k=jax.random.key(0), partial=functools.partial, dot=_dot(jax))


# Everything that makes or converts elements, with a dtype to make them of.
OF_A_DTYPE = """
jnp.zeros(2, {0})
jnp.ones(2, {0})
jnp.full(2, 1, {0})
jnp.empty(2, {0})
jnp.zeros_like(f32(1), {0})
jnp.ones_like(f32(1), {0})
jnp.full_like(f32(1), 1, {0})
jnp.array(1, {0})
jnp.asarray([1], {0})
jnp.ones(2).astype({0})
jnp.astype(jnp.ones(2), {0})
jnp.arange(3, dtype={0})
jnp.linspace(0, 1, 3, dtype={0})
jnp.logspace(0, 1, 3, dtype={0})
jnp.geomspace(1, 2, 3, dtype={0})
jnp.eye(2, dtype={0})
jnp.identity(2, dtype={0})
jnp.tri(2, dtype={0})
jnp.indices((2,), dtype={0})
jnp.sum(jnp.ones(2), dtype={0})
jnp.prod(jnp.ones(2), dtype={0})
jnp.mean(jnp.ones(2), dtype={0})
jnp.var(jnp.ones(2), dtype={0})
jnp.cumsum(jnp.ones(2), dtype={0})
jnp.nansum(jnp.ones(2), dtype={0})
jnp.trace(jnp.ones((2, 2)), dtype={0})
lax.full((2,), 1, {0})
lax.full_like(f32(1), 1, {0})
lax.iota({0}, 3)
lax.convert_element_type(1.0, {0})
jax.nn.one_hot(1, 2, dtype={0})
jax.random.normal(k, (2,), {0})
jax.random.uniform(k, (2,), {0})
jax.random.randint(k, (2,), 0, 2, {0})
jax.random.bits(k, (2,), {0})
jax.nn.initializers.normal()(k, (2,), {0})
jax.nn.initializers.zeros(k, (2,), {0})
"""


@pytest.mark.parametrize("dtype", ["object", "np.dtype('O')", "'U3'", "'S2'", "'datetime64[s]'", "'timedelta64[s]'"])
@pytest.mark.parametrize("call", OF_A_DTYPE.split("\n")[1:-1])
def test_dtypes_of_values_other_than_numbers(names, call, dtype):
    with pytest.raises(TypeError, match="JAX only supports number, bool, and string dtypes, got dtype"):
        eval(call.format(dtype), names)


def _dot(jax):
    def dot(**kwargs):
        q = np.ones((2, 4, 2, 8), f32)
        return jax.nn.dot_product_attention(q, q, q, **kwargs).shape

    return dot


def table(text):
    rows = [line.strip() for line in text.strip().splitlines() if line.strip() and not line.strip().startswith("#")]
    return [pytest.param(*map(str.strip, row.rsplit(" ! " if " ! " in row else " == ", 1)), id=row[:70]) for row in rows]


INTEGERS = """
jnp.uint32(3340417016) == u32(3340417016)
jnp.array(2**31, dtype=jnp.uint32) == u32(2**31)
jnp.array([2**31, 1], dtype=jnp.uint32) == np.array([2**31, 1], u32)
jnp.array([2**31, jnp.uint32(2)]) == np.array([2**31, 2], u32)
jnp.asarray(2**100, 'float32') == f32(2.0**100)
jnp.array([2**100], dtype=jnp.float32) == f32([2.0**100])
jnp.complex64(2**100) == np.complex64(2.0**100)
jnp.bool_(2**100) == np.bool_(True)
lax.convert_element_type(2**100, jnp.float32) == f32(2.0**100)
lax.convert_element_type(2**32, 'int32') == i32(0)
lax.convert_element_type(2**31, 'int32') == i32(-(2**31))
lax.convert_element_type(-1, 'uint32') == u32(2**32 - 1)
lax.full((2,), 2**100, 'float32') == f32([2.0**100] * 2)
lax.full_like(f32([1]), 2**100) == f32([2.0**100])
jnp.full(2, 300, jnp.uint8) == np.uint8([44, 44])
jnp.full((1,), 2**31, 'int32') == i32([-(2**31)])
jnp.full_like(np.ones(1, np.uint8), -1) == np.uint8([255])
jnp.zeros(1, jnp.uint32).at[0].set(2**32 - 1) == u32([2**32 - 1])
jnp.zeros(1, jnp.uint32).at[jnp.array([0])].max(2**32 - 1) == u32([2**32 - 1])
jnp.zeros(1, jnp.uint8).at[0].set(300) == np.uint8([44])
jnp.result_type(2**40) == np.dtype(i32)
jnp.result_type(2**40, jnp.uint32) == np.dtype(u32)
jnp.array(300, dtype=jnp.uint8) ! OverflowError: Python integer 300 out of bounds for uint8
jnp.uint32(-1) ! OverflowError: Python integer -1 out of bounds for uint32
jnp.int8(200) ! OverflowError: Python integer 200 out of bounds for int8
jnp.int32(2**31) ! OverflowError: Python integer 2147483648 out of bounds for int32
jnp.float32(2**2000) ! OverflowError: int too large to convert to float
jnp.array(2**31) ! OverflowError: too large to convert to int32
lax.full((2,), 2**100, 'int32') ! OverflowError: Python int too large to convert to C long
lax.convert_element_type(2**70, 'int8') ! OverflowError: Python int too large to convert to C long
jnp.zeros(1, jnp.int32).at[0].set(2**40) ! OverflowError: 1099511627776
jnp.eye(3, k=2**40) == np.zeros((3, 3), f32)
jnp.eye(3, k=-(2**40)) == np.zeros((3, 3), f32)
jnp.diagonal(np.ones((3, 3), f32), 2**40) == np.zeros(0, f32)
jnp.diag(np.ones((3, 3), f32), -(2**40)) == np.zeros(0, f32)
jax.jit(lambda k: jnp.eye(3, k=k))(1) == np.eye(3, k=1, dtype=f32)
jax.jit(lambda k: jnp.tri(3, k=k))(-1) == np.tri(3, k=-1, dtype=f32)
jnp.eye(3, k=1.0) ! ValueError: k must be a scalar integer; got 1.0
"""

INDICES = """
jnp.arange(3)[jnp.zeros((0,), bool)] == np.zeros(0, i32)
jnp.ones((3, 4))[jnp.zeros((0, 4), bool)] == np.zeros(0, f32)
jnp.ones((3, 4))[jnp.zeros((3, 0), bool)] == np.zeros(0, f32)
jnp.ones((3, 4))[:, np.zeros((0,), bool)] == np.zeros((3, 0), f32)
jnp.ones((3, 4)).at[jnp.zeros((0,), bool)].set(2) == np.ones((3, 4), f32)
jnp.ones((3, 4))[jnp.zeros((0, 5), bool)] ! IndexError: boolean index did not match shape
jax.jit(lambda i: jnp.arange(12).reshape(3, 4)[[0, i], 1])(1) == i32([1, 5])
jax.jit(lambda i: jnp.arange(12).reshape(3, 4)[[[0, i], [1, 1]], 1])(1) == i32([[1, 5], [5, 5]])
jnp.arange(12).reshape(3, 4)[0, [0, 1.5]] ! TypeError: Indexer must have integer or boolean type, got indexer with type float32
jnp.ones((0, 3))[0] ! IndexError: index is out of bounds for axis 0 with size 0
jnp.ones((0, 3))[-1] ! IndexError: index is out of bounds for axis 0 with size 0
jnp.ones((2, 0))[1, jnp.int32(0)] ! IndexError: index is out of bounds for axis 1 with size 0
jax.jit(lambda i: jnp.ones((0, 3))[i])(0) ! IndexError: index is out of bounds for axis 0 with size 0
jnp.ones((0, 3)).at[0].set(1.0) ! IndexError: index is out of bounds for axis 0 with size 0
jnp.take(jnp.ones((0, 3)), 0) ! IndexError: Cannot do a non-empty jnp.take() from an empty axis.
jnp.arange(3).at[jnp.array([-1])].get(wrap_negative_indices=False) == i32([0])
jnp.arange(3).at[jnp.array([-1])].get(wrap_negative_indices=False, mode='fill') == i32([-(2**31)])
jnp.arange(3).at[-1].get(wrap_negative_indices=False, mode='fill', fill_value=7) == i32(7)
jnp.arange(3).at[-1].get(wrap_negative_indices=False) == i32(0)
jnp.arange(3).at[-3:-1].get(wrap_negative_indices=False) == i32([0, 1])
jax.jit(lambda i: jnp.arange(1.0, 4).at[i].get(wrap_negative_indices=False))(-1) == f32(1)
jax.jit(lambda i: jnp.arange(1.0, 4).at[i].get(wrap_negative_indices=False, mode='fill'))(-1) == f32(np.nan)
jnp.arange(3).at[jnp.array([-1])].set(9, wrap_negative_indices=False) == i32([0, 1, 2])
jnp.arange(3).at[-1].set(9, wrap_negative_indices=False) == i32([0, 1, 2])
jnp.arange(3).at[-1].set(9, wrap_negative_indices=False, mode='clip') == i32([9, 1, 2])
jnp.arange(3).at[jnp.array([-1])].multiply(4, wrap_negative_indices=False) == i32([0, 1, 2])
jnp.arange(1.0, 4).at[jnp.array([-1])].divide(4, wrap_negative_indices=False) == f32([1, 2, 3])
jnp.arange(1.0, 4).at[jnp.array([-1])].apply(jnp.negative, wrap_negative_indices=False) == f32([1, 2, 3])
jnp.take_along_axis(jnp.array([10, 20, 30]), jnp.array([-1, -2]), 0, mode='clip', wrap_negative_indices=False) == i32([10, 10])
jnp.take_along_axis(jnp.array([10, 20, 30]), jnp.array([-1, 5]), 0, wrap_negative_indices=False) == i32([-(2**31)] * 2)
jnp.take_along_axis(jnp.array([10, 20, 30]), jnp.array([-1, -2]), 0, mode='promise_in_bounds') == i32([10, 10])
jnp.take_along_axis(jnp.array([10.0, 20, 30]), jnp.array([-1, -2, 5, -7]), 0, mode='one_hot') == f32([30, 20, 0, 0])
jnp.take_along_axis(jnp.array([1, 2]), jnp.array([-1, 1]), 0, mode='one_hot', wrap_negative_indices=False) == i32([0, 2])
jnp.take_along_axis(jnp.arange(200.0), jnp.array([1, -2], 'int8'), 0) == f32([1, 198])
jnp.take_along_axis(jnp.ones((4, 0, 3)), jnp.ones((4, 0, 3), int), 1) == np.zeros((4, 0, 3), f32)
jnp.take_along_axis(jnp.ones((0, 3)), jnp.zeros((1, 3), int), 0) == np.zeros((1, 3), f32)
jnp.take_along_axis(jnp.ones((2, 0)), jnp.zeros((1, 0), int), 0) == np.zeros((1, 0), f32)
jnp.take_along_axis(jnp.ones((4, 0, 3)), jnp.ones((4, 2, 1), int), 1, mode='clip') == np.zeros((4, 2, 3), f32)
jnp.ravel_multi_index((jnp.array([0, 7]),) * 2, (2, 3), mode='ignore') == i32([0, 28])
jnp.ones(3, 'complex64').at[jnp.array([0, 0, 1])].multiply(2j) == np.complex64([-4, 2j, 1])
jnp.ones((2, 2), 'complex64').at[jnp.array([0, 0, 7])].multiply(jnp.array([2j, 3])) == np.complex64([[-4, 9], [1, 1]])
jnp.ones((3, 2), 'complex64').at[1:].multiply(2j) == np.complex64([[1, 1], [2j, 2j], [2j, 2j]])
jax.vmap(lambda x, i, u: x.at[i].multiply(u))(np.ones((2, 3), 'complex64'), np.array([[0, 0], [1, 2]]), np.full((2, 2), 2j, 'complex64')) == np.complex64([[-4, 1, 1], [1, 2j, 2j]])
jax.vmap(lambda x, i: x.at[i].multiply(2j))(np.ones((200, 1), 'complex64'), np.zeros((200, 2), 'int8')).sum() == np.complex64(-800)
jnp.ones((3, 2), 'complex64').at[jnp.array([0, 7]), 1].multiply(2j, mode='clip') == np.complex64([[1, 2j], [1, 1], [1, 2j]])
1 in jnp.array(1) ! ValueError: search array must be one-dimensional, got arr.shape=()
jnp.arange(2) in jnp.arange(2) ! ValueError: query value must be a scalar, got query.shape=(2,)
'abc' in jnp.arange(2) ! TypeError: Array.__contains__: unsupported operand type <class 'str'>
None in jnp.arange(2) ! TypeError: Array.__contains__: unsupported operand type <class 'NoneType'>
[1] in jnp.arange(2) ! TypeError: Array.__contains__ requires ndarray or scalar arguments, got <class 'list'> at position 0
(2 in jnp.arange(3), 3 in jnp.arange(3)) == (True, False)
"""

REDUCTIONS = """
jnp.average(jnp.arange(24.0).reshape(2, 3, 4), (2, 0), jnp.arange(8.0).reshape(4, 2)) == f32([9.071429, 13.071429, 17.071428])
jnp.sum(jnp.ones((2, 3)), axis=-1, initial=jnp.ones(())) == f32([4, 4])
jnp.sum(jnp.ones((2, 3)), axis=-1, initial=jnp.ones((2,))) ! ValueError: initial value must be a scalar. Got array of shape (2,)
jnp.max(jnp.zeros((2, 10)), axis=0, initial=jnp.ones(10)) ! ValueError: initial value must be a scalar. Got array of shape (10,)
jnp.nanmax(jnp.zeros((2, 10)), axis=0, initial=jnp.ones(10)) ! ValueError: initial value must be a scalar. Got array of shape (10,)
jnp.cov(jnp.arange(5), dtype=int) ! ValueError: cov: dtype must be a subclass of float or complex; got dtype=<class 'int'>
jnp.cov(jnp.arange(5), dtype=bool) ! ValueError: cov: dtype must be a subclass of float or complex; got dtype=<class 'bool'>
jnp.corrcoef(jnp.arange(5), dtype=int) ! ValueError: corrcoef: dtype must be a subclass of float or complex; got dtype=<class 'int'>
jnp.cumsum(jnp.array([0, 1, 0, 2]), dtype=bool) == np.array([False, True, True, True])
jnp.cumprod(jnp.array([1, 0, 2]), dtype=bool) == np.array([True, False, False])
jnp.cumulative_sum(jnp.array([0, 1, 2]), dtype=bool, include_initial=True) == np.array([False, False, True, True])
jnp.cumulative_prod(jnp.array([1, 0, 2]), dtype=bool) == np.array([True, False, False])
jnp.nancumsum(jnp.array([0, 1, 2]), dtype=bool) == np.array([False, True, True])
jnp.add.accumulate(jnp.array([0, 1, 2]), dtype=bool) == np.array([False, True, True])

jnp.logaddexp.reduce(np.zeros(2, f32), where=jnp.ones(2, int), initial=0) ! ValueError: where argument must have dtype=bool; got dtype=int32
jnp.add.reduce(np.zeros(2, f32), where=jnp.ones(2, int)) ! ValueError: where argument must have dtype=bool; got dtype=int32
jnp.bitwise_or.reduce(jnp.array([1, 2, 4]), where=jnp.array([True, False, True])) == i32(5)
jnp.trapezoid(jnp.ones((2, 3, 10)), jnp.ones((3, 10)), axis=-2) == np.zeros((2, 10), f32)
jnp.trapezoid(jnp.ones((2, 3)), jnp.arange(6.0).reshape(2, 3) ** 2, axis=0) == f32([9, 15, 21])
jnp.histogram2d(jnp.arange(4.0), jnp.arange(4.0), bins=[np.arange(3.0), np.arange(4.0)])[0] == i32([[1, 0, 0], [0, 1, 1]])
jnp.histogram2d(jnp.arange(4.0), jnp.arange(4.0), bins=[2, jnp.arange(4.0)])[0] == i32([[1, 1, 0], [0, 0, 2]])
jnp.histogramdd(jnp.arange(4.0).reshape(2, 2), bins=[np.arange(3.0), np.arange(4.0)])[0] == i32([[0, 1, 0], [0, 0, 1]])
round(jnp.float32(1.7)) == i32(2)
round(jnp.array([0.5, 1.5, -2.5])) == i32([0, 2, -2])
round(jnp.array(3)) == i32(3)
round(jnp.float32(1.75), 1) == f32(1.8)
jax.jit(round)(2.6) == i32(3)
"""

ELSEWHERE = """
jax.ops.segment_sum(jnp.arange(8.0), jnp.array([0, 1, -1, 2, 0, -2, 1, 0]), 3, bucket_size=2) == f32([11, 7, 3])
jax.ops.segment_prod(jnp.arange(8.0), jnp.array([0, 1, -1, 2, 0, -2, 1, 0]), 3, bucket_size=2) == f32([0, 6, 3])
jax.ops.segment_max(jnp.arange(8), jnp.array([0, 1, -1, 2, 0, -2, 1, 0]), 3, bucket_size=3) == i32([7, 6, 3])
jax.ops.segment_min(jnp.arange(8), jnp.array([0, 1, -1, 2, 0, -2, 1, 0]), 3, bucket_size=3) == i32([0, 1, 3])
jax.scipy.special.betainc(0.5, jnp.inf, 0.0) == f32(0)
jax.scipy.special.betainc(f32([0, 1, np.inf]), f32([np.inf, 1, 0]), 0.0) == f32([0, 0, 0])
jax.scipy.special.gammasgn(f32([np.nan, -0.0, -1.5, -2.5])) == f32([np.nan, -1, 1, -1])
jax.random.orthogonal(k, 0) == np.zeros((0, 0), f32)
jax.random.orthogonal(k, 3, m=0) == np.zeros((3, 0), f32)
jax.nn.initializers.orthogonal()(k, (0, 5)) == np.zeros((0, 5), f32)
jax.nn.initializers.orthogonal()(k, (5, 0)) == np.zeros((5, 0), f32)
jax.nn.initializers.variance_scaling(1.0, 'fan_in', 'normal', in_axis=0, out_axis=0)(k, (3,)) == f32([1.6226422, 2.0252647, -0.43359444])
jax.nn.initializers.he_uniform(in_axis=0, out_axis=())(k, (3,)).shape == (3,)
jax.nn.initializers.variance_scaling(1.0, 'fan_in', 'normal')(k, (3,)) ! ValueError: Must be at least 2D or specify in_axis explicitly
dot(bias=jnp.ones((2, 4, 4))) == (2, 4, 2, 8)
dot(bias=jnp.ones((4, 4))) == (2, 4, 2, 8)
dot(mask=jnp.ones((4,), bool)) == (2, 4, 2, 8)
dot(mask=jnp.ones((), bool)) == (2, 4, 2, 8)
lax.add(1, 'a') ! TypeError: Error interpreting argument to add as a JAX value. The problematic value is of type <class 'str'> and was passed to add at position 1.
lax.sin(object()) ! TypeError: passed to sin at position 0.
jnp.add(np.zeros(3, jax.dtypes.float0), 1) ! TypeError: Called add with a float0 array. float0s do not support any operations by design
jnp.ones(3) + np.zeros(3, jax.dtypes.float0) ! TypeError: Called add with a float0 array.
jnp.sin(np.zeros(3, jax.dtypes.float0)) ! TypeError: Called sin with a float0 array.
jnp.expand_dims(jnp.ones(2), (0, 0)) ! ValueError: repeated axis in lax.expand_dims: (0, 0)
jnp.rot90(jnp.ones(2)) ! ValueError: rot90 requires its first argument to have ndim at least two, but got first argument of shape (2,), which has ndim 1
jnp.trace(jnp.ones((2, 2)), 0, 1, 1) ! ValueError: axis1 and axis2 can not be same. axis1=1 and axis2=1
jnp.zeros(2, jnp.ones(2)) ! ValueError: instead of dtype=arr use dtype=arr.dtype
jax.jit(lambda n: jnp.sum(jnp.ones(2), axis=n))(0) ! ConcretizationTypeError: Abstract tracer value encountered
jax.jit(lambda n: jnp.expand_dims(jnp.ones(2), n))(0) ! ConcretizationTypeError: Abstract tracer value encountered
jnp.matmul(jnp.arange(6.0).reshape(1, 2, 3), jnp.ones((1, 3, 2))) == f32([[[3, 3], [12, 12]]])
jnp.matmul(jnp.arange(12.0).reshape(2, 1, 2, 3), jnp.ones((1, 1, 3))[..., None]) == np.arange(12, dtype=f32).reshape(2, 1, 2, 3) @ np.ones((1, 1, 3, 1), f32)
jnp.matmul(jnp.arange(12.0).reshape(2, 1, 2, 3), jnp.ones((5, 1, 1, 3, 1))).shape == (5, 2, 1, 2, 1)
jnp.einsum('ij,jk->ik', jnp.ones((2, 3), 'float16'), jnp.ones((3, 2))) == np.full((2, 2), 3, f32)
jnp.einsum('ij,->ij', jnp.ones((1, 2), 'float16'), 2.0) == np.full((1, 2), 2, np.float16)
jnp.einsum('i,i->', jnp.ones(2, bool), jnp.ones(2)) == f32(2)
jnp.einsum('ij,ik,il->jkl', *[np.ones((2, 2), f32)] * 3, optimize=[(0, 1, 2)]) ! NotImplementedError: does not support simultaneous contraction of 3 or more operands
jnp.einsum('ij,jk->ik', *[np.ones((2, 2), f32)] * 2, optimize=3) ! TypeError: 'int' object is not iterable
jnp.einsum('ij,ik,il->jkl', *[np.ones((2, 2), f32)] * 3, optimize='foo') ! KeyError: Path optimizer 'foo' not found
jnp.einsum_path('ij,jk,kl->il', *[np.ones((2, 2), f32)] * 3)[0] == [(0, 1), (0, 1)]
jnp.einsum_path('ij,jk,kl->il', *[np.ones((2, 2), f32)] * 3, optimize=False)[0] == [(0, 1), (0, 1)]
jnp.einsum_path(np.ones((2, 2), f32), [0, 1], np.ones((2, 2), f32), [1, 2])[1].eq == 'ab,bc->ac'
jax.random.choice(k, 5, 2) ! TypeError: shape argument of jax.random.choice must be a sequence, got 2
jax.random.choice(k, jnp.ones((2, 2)), (2,), axis=2) ! ValueError: axis 2 is out of bounds for array of dimension 2
jax.random.permutation(k, 10, axis=3) ! ValueError: axis 3 is out of bounds for array of dimension 1
(jnp.float32(0).dtype in (jnp.float32, jnp.bfloat16), jnp.float32 == np.dtype('float32'), jnp.float32 == np.float32) == (True, True, True)
(jnp.bfloat16 == jnp.ones(2, jnp.bfloat16).dtype, jnp.float32 != np.dtype('float32'), jnp.float32 == 'int32') == (True, False, False)
(jnp.iscomplexobj(k), jnp.isrealobj(k), jnp.issubdtype(k.dtype, jnp.floating)) == (False, True, False)
jax.jit(lambda x: jnp.iscomplexobj([x]))(1j) == np.bool_(True)
(jnp.iscomplexobj([1, 2j]), jnp.iscomplexobj([]), jnp.iscomplexobj('a')) == (True, False, False)
(lax.dtype(float), lax.dtype(jnp.float32), lax.dtype('int32'), lax.dtype(1)) == (np.dtype(f32), np.dtype(f32), np.dtype(i32), np.dtype(i32))
lax.dtype([1]) ! TypeError: Cannot determine dtype of [1]
jnp.zeros(2, 3) ! TypeError: Did you accidentally write `jax.numpy.zeros(2, 3)` when you meant `jax.numpy.zeros((2, 3))`
jnp.ones(2, 3) ! TypeError: when you meant `jax.numpy.ones((2, 3))`
jnp.zeros((2, 3), 3) ! TypeError: Cannot interpret '3' as a data type
jax.jit(lambda n: jax.nn.one_hot(jnp.arange(3), n))(2) ! ConcretizationTypeError: jax.nn.one_hot argument `num_classes`
setattr(jnp.add, 'nin', 3) ! AttributeError: no setter
setattr(jnp.add, 'identity', 3) ! AttributeError: no setter
"""


SHAPES = """
# random keys are not numbers
k + 1 ! TypeError: add does not accept dtypes key<fry>, int32.
1 + k ! TypeError: add does not accept dtypes int32, key<fry>.
k * 2.0 ! TypeError: multiply does not accept dtypes key<fry>, float32.
k // 1 ! TypeError: floor_divide does not accept dtypes key<fry>, int32.
k % 2 ! TypeError: remainder does not accept dtypes key<fry>, int32.
k << 1 ! TypeError: left_shift does not accept dtypes key<fry>, int32.
k == 1 ! TypeError: equal does not accept dtypes key<fry>, int32.
k < 1 ! TypeError: less does not accept dtypes key<fry>, int32.
jnp.maximum(1, k) ! TypeError: maximum does not accept dtypes int32, key<fry>.
jax.jit(lambda x: x + 1)(k) ! TypeError: add does not accept dtypes key<fry>, int32.
k + k ! TypeError: add does not accept dtype key<fry> at position 0. Accepted dtypes at position 0 are subtypes of integer, floating, complexfloating.
k < k ! TypeError: lt does not accept dtype key<fry> at position 0.
jnp.maximum(k, k) ! TypeError: max does not accept dtype key<fry> at position 0.
-k ! TypeError: neg does not accept dtype key<fry>. Accepted dtypes are subtypes of integer, floating, complexfloating.
lax.sin(k) ! TypeError: sin does not accept dtype key<fry>. Accepted dtypes are subtypes of floating, complexfloating.
jnp.sin(k) ! TypeError: Cannot interpret 'key<fry>' as a data type
k / k ! TypeError: Cannot interpret 'key<fry>' as a data type
lax.convert_element_type(k, 'int32') ! ValueError: Cannot convert_element_type from key<fry> to int32
jnp.array(k, dtype=i32) ! ValueError: Cannot convert_element_type from key<fry> to int32
jnp.any(jax.random.split(k)) ! ValueError: Cannot convert_element_type from key<fry> to bool
jnp.pad(jax.random.split(k), 1) ! ValueError: Cannot convert_element_type from int32 to key<fry>
(k == k, k != k) == (np.True_, np.False_)
# shapes that do not go together
jnp.where(np.ones(3, bool), f32([1, 1]), 1) ! ValueError: Incompatible shapes for broadcasting: shapes=[(3,), (2,), ()]
jnp.sum(f32([1, 1]), where=np.ones(3, bool)) ! ValueError: Incompatible shapes for broadcasting: shapes=[(3,), (2,), ()]
jnp.max(f32([1, 1]), where=np.ones(3, bool), initial=0) ! ValueError: Incompatible shapes for broadcasting: shapes=[(3,), (2,), ()]
jnp.select([np.ones(3, bool)], [f32([1, 1])]) ! ValueError: Incompatible shapes for broadcasting: shapes=[(3,)
jax.nn.softmax(f32([1, 1]), where=np.ones(3, bool)) ! ValueError: Incompatible shapes for broadcasting: shapes=[(3,), (2,), ()]
jax.random.randint(k, (2,), np.ones(3, i32), 5) ! ValueError: Incompatible shapes for broadcasting: shapes=[(2,), (3,), ()]
jnp.matmul(np.ones((2, 2, 2), f32), np.ones((3, 2, 2), f32)) ! ValueError: Incompatible types for matmul arguments: float32[2,2,2] and float32[3,2,2]
jnp.arange(f32([1, 1])) ! ValueError: jax.numpy.arange: arguments must be scalars; got stop=[1. 1.]
jnp.arange(0, f32([1, 1])) ! ValueError: jax.numpy.arange: arguments must be scalars; got stop=[1. 1.]
jnp.average(np.ones((2, 2)), axis=0, weights=f32([1, 1, 1])) ! ValueError: Shape of weights must be consistent with shape of a along specified axis.
jnp.gradient(f32([1, 2, 3]), 1, 2, axis=0) ! TypeError: Invalid number of spacing arguments 2 for axis=0
jnp.take_along_axis(np.ones((3, 3)), np.ones((2, 2), i32), None) ! ValueError: take_along_axis indices must be 1D if axis=None, got shape (2, 2)
jnp.polyint(f32([1]), -1) ! ValueError: Order of integral must be positive (see polyder)
jnp.block(((f32([1]),),)) ! ValueError: jax.numpy.block does not allow tuples, got (
jnp.isneginf(1j) ! ValueError: isposinf/isneginf are not well defined for complex types
dot(mask=np.ones((2, 2, 4, 4), f32)) ! ValueError: mask dtype should be bool, but got float32
dot(query_seq_lengths=f32([1, 1])) ! ValueError: query_seq_lengths dtype should be int32, but got float32
lax.dot_general(jnp.ones((3, 2)), jnp.ones((3, 2)), (((5,), (0,)), ((), ()))) ! TypeError: requires lhs dimension numbers to be nonnegative and less than the number of axes of the lhs value, got lhs_batch of () and lhs_contracting of (5,) for lhs of rank 2
lax.dot_general(jnp.ones((3, 2)), jnp.ones((3, 2)), (((1,), (1,)), ((), (2,)))) ! TypeError: requires rhs dimension numbers to be nonnegative and less than the number of axes of the rhs value, got rhs_batch of (2,) and rhs_contracting of (1,) for rhs of rank 2
lax.dot_general(jnp.ones((3, 2)), jnp.ones((3, 2)), (((-1,), (0,)), ((), ()))) ! TypeError: requires lhs dimension numbers to be nonnegative and less than the number of axes of the lhs value, got lhs_batch of () and lhs_contracting of (-1,)
lax.dot_general(jnp.ones((3, 2)), jnp.ones((3, 2)), (((1,), (1,)), ((0,), ()))) ! TypeError: dot_general requires equal numbers of lhs_batch and rhs_batch dimensions, got lhs_batch (0,) and rhs_batch ().
lax.dot_general(jnp.ones((3, 2)), jnp.ones((3, 2)), (((), ()), ((0, 0), (0, 1)))) ! TypeError: dot_general requires lhs batch dimensions to be distinct, got lhs_batch (0, 0).
lax.dot_general(jnp.ones((3, 2)), jnp.ones((3, 2)), (((0, 1), (1, 1)), ((), ()))) ! TypeError: dot_general requires rhs contracting dimensions to be distinct, got rhs_contracting (1, 1).
lax.dot_general(jnp.ones((3, 2)), jnp.ones((3, 2)), (((0,), (0,)), ((0,), (1,)))) ! TypeError: dot_general requires lhs batch dimensions to be disjoint from contracting dimensions, got lhs_batch (0,) and lhs_contracting (0,).
lax.dot_general(jnp.ones((3, 2)), jnp.ones((3, 2)), (((0, 1), (1,)), ((), ()))) ! TypeError: dot_general requires contracting dimensions to have the same shape, got (3, 2) and (2,).
lax.dot_general(jnp.ones((3, 2)), jnp.ones((3, 2)), (((), ()), ((0,), (1,)))) ! TypeError: lhs batch dimensions and rhs batch dimensions to have the same shape, got (3,) and (2,).
lax.pad(f32([1, 1]), f32(0), [(-2, -2, 0)]) ! ValueError: not at least 0, got result shape (-2,), for padding_config ((-2, -2, 0),) and operand shape (2,)
lax.pad(np.ones((2, 3), f32), f32(0), [(0, 1, 0), (-4, -4, 1)]) ! ValueError: got result shape (3, -3), for padding_config ((0, 1, 0), (-4, -4, 1)) and operand shape (2, 3)
lax.select_n(np.ones(2, i32), f32([1, 1]), f32([1, 1]), f32([1, 1, 1])) ! TypeError: select cases must have the same shapes, got [(2,), (2,), (3,)].
lax.sort((f32([1]), f32([1]), f32([1, 2]))) ! TypeError: Arguments to sort must have equal shapes, got: (1,) (1,) (2,)
lax.slice(f32([1, 2]), (0,), (1,), (1, 1)) ! TypeError: slice strides must have length equal to the number of dimensions of the operand, got strides (1, 1) for operand shape (2,).
lax.slice(f32([1, 2]), (0,), (1,), (0,)) ! TypeError: slice strides must be positive, got (0,)
lax.dynamic_slice(f32([1, 2]), (0.0,), (1,)) ! TypeError: index arguments to dynamic_slice must be integers of the same type, got: float32
lax.dynamic_slice(f32([1, 2]), (0,), (-1,)) ! TypeError: slice slice_sizes must be greater than or equal to zero, got slice_sizes of (-1,).
lax.dynamic_update_slice(f32([1, 2]), f32([1]), (0.0,)) ! TypeError: index arguments to dynamic_update_slice must be integers of the same type, got float32
lax.pow(f32([1]), np.ones(1, bool)) ! TypeError: Accepted dtypes at position 1 are subtypes of integer, floating, complexfloating.
lax.reduce_precision(f32([1]), 0, 2) ! ValueError: reduce_precision: exponent_bits must be positive; got 0
lax.reduce_precision(f32([1]), -1, 2) ! ValueError: reduce_precision: exponent_bits must be positive; got -1
lax.reduce_precision(f32([1]), 2, -1) ! ValueError: reduce_precision: mantissa_bits must be non-negative; got -1
lax.reduce_precision(f32([1]), 2.5, 2) ! TypeError: 'float' object cannot be interpreted as an integer
lax.scatter_add(f32([1, 1, 1]), np.zeros((1, 1), i32), np.ones((1, 4), f32), lax.ScatterDimensionNumbers((1,), (), (0,))) ! TypeError: dimensions of operand. For dimension 1, updates bound is 4, operand bound is 3.
"""


NUMBERS = """
# axes given twice
jnp.flip(np.ones((2, 2)), (0, 0)) ! TypeError: rev dimensions must be unique, got (0, 0).
jnp.flip(np.ones((2, 2)), (0, -2)) ! TypeError: rev dimensions must be unique, got (0, 0).
jnp.diagonal(np.ones((2, 2)), 0, 1, 1) ! TypeError: transpose permutation isn't a permutation of operand dimensions, got permutation (1, 1, 0) for operand shape (2, 2).
jnp.moveaxis(np.ones((2, 2, 2)), (0, 0), (1, 2)) ! TypeError: transpose permutation isn't a permutation of operand dimensions, got permutation (1, 0, 0, 2) for operand shape (2, 2, 2).
jnp.squeeze(np.ones((1, 1)), (0, 0)) ! ValueError: dimensions are not unique: (0, 0)
jnp.max(np.ones((2, 2)), axis=(0, -2)) ! ValueError: duplicate value in 'axis': (0, -2)
jnp.percentile(np.ones((2, 2)), 5, axis=(0, 0)) ! ValueError: repeated axis
jnp.median(np.ones((2, 2)), axis=(1, -1)) ! ValueError: repeated axis
jnp.nanquantile(np.ones((2, 2)), .5, axis=[0, 0]) ! ValueError: repeated axis
jnp.median(np.arange(8.).reshape(2, 2, 2), axis=[0, -1]) == f32([2.5, 4.5])
# axes in other containers
(jnp.squeeze(np.ones((1, 2, 1)), np.array([0, 2])).shape, jnp.squeeze(np.ones((1, 2, 1)), range(1)).shape) == ((2,), (2, 1))
(jnp.moveaxis(np.ones((1, 2, 3)), np.array([0, 1]), range(1, 3)).shape, jnp.moveaxis(np.ones((1, 2, 3)), range(2), [1, -1]).shape) == ((3, 1, 2), (3, 1, 2))
jnp.flip(np.arange(4.).reshape(2, 2), np.array([0, 1])) == f32([[3, 2], [1, 0]])
jnp.flip(np.arange(4.).reshape(2, 2), range(2)) == f32([[3, 2], [1, 0]])
jnp.expand_dims(np.ones(2), range(2)).shape == (1, 1, 2)
# keys
jax.random.key_data(jnp.zeros_like(k)) == u32([0, 0])
jax.random.key_data(jnp.full_like(jax.random.split(k, 3), 2)) == u32([[2, 2]] * 3)
jax.random.key_data(jax.jit(jnp.ones_like)(k)) == u32([1, 1])
# shapes that do not meet
jnp.stack([np.ones(2), np.ones(3)]) ! ValueError: All input arrays must have the same shape. Got (2,), (3,).
lax.broadcast_shapes((-1,), (2,)) ! TypeError: Only non-negative indices are allowed when broadcasting static shapes, but got shape (-1,).
# dimension numbers that count from the end
lax.gather(np.ones((2, 5)), np.zeros((3, 1), int), lax.GatherDimensionNumbers((1,), (-1,), (0,)), (1, 5)) ! TypeError: Invalid collapsed_slice_dims set in gather op; valid range is [0, 2); got: -1.
lax.gather(np.ones((2, 5)), np.zeros((3, 1), int), lax.GatherDimensionNumbers((-1,), (0,), (0,)), (1, 5)) ! TypeError: Offset dimension 0 in gather op is out of bounds; got -1, but should have been in [0, 2)
lax.gather(np.ones((2, 5)), np.zeros((3, 1), int), lax.GatherDimensionNumbers((1,), (0,), (-1,)), (1, 5)) ! TypeError: Invalid start_index_map; domain is [0, 2), got: 0->-1.
lax.gather(np.ones((2, 5)), np.zeros((3, 1), int), lax.GatherDimensionNumbers((1,), (0,), (0,)), (-1, 5)) ! TypeError: Slice size at index 0 in gather op is out of range, must be within [0, 2 + 1), got -1.
lax.scatter_add(np.ones((2, 5)), np.zeros((3, 1), int), np.ones((3, 5)), lax.ScatterDimensionNumbers((-1,), (0,), (0,))) ! TypeError: Invalid update_window_dims set in scatter op; valid range is [0, 2); got: -1.
lax.scatter_add(np.ones((2, 5)), np.zeros((3, 1), int), np.ones((3, 5)), lax.ScatterDimensionNumbers((1,), (-1,), (0,))) ! TypeError: Invalid inserted_window_dims set in scatter op; valid range is [0, 2); got: -1.
lax.scatter_add(np.ones((2, 5)), np.zeros((3, 1), int), np.ones((3, 5)), lax.ScatterDimensionNumbers((1,), (0,), (-1,))) ! TypeError: Invalid scatter_dims_to_operand_dims mapping; domain is [0, 2), got: 0->-1.
lax.scatter_mul(np.ones((2, 5), 'complex64'), np.zeros((3, 1), int), np.ones((3, 5), 'complex64'), lax.ScatterDimensionNumbers((1,), (0,), (-1,))) ! TypeError: Invalid scatter_dims_to_operand_dims mapping
# other words
jnp.vectorize(lambda x: [x, x], signature='()->(),()')(f32(1)) ! TypeError: output must be a tuple when multiple outputs are expected, got: [
jnp.vectorize(lambda x: (x, x, x), signature='()->(),()')(f32(1)) ! TypeError: wrong number of output arguments: expected 2, got 3
jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct((), f32), 1., vmap_method='abc') ! ValueError: vmap_method must be on of the allowed methods ['sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', 'legacy_vectorized', None], but got: abc
jax.tree_util.tree_transpose(jax.tree_util.tree_structure([1, 2]), jax.tree_util.tree_structure((1, 2)), [(1, 2), (3,)]) ! TypeError: Mismatch
"""


def check(names, expression, expected):
    got, want = eval(expression, names), eval(expected, names)
    if isinstance(want, (np.ndarray, np.generic)):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6)
    else:
        assert got == want


@pytest.mark.parametrize("expression, expected", table(NUMBERS))
def test_axes_and_dimension_numbers(names, expression, expected):
    run(names, expression, expected)


@pytest.mark.parametrize("expression, expected", table(SHAPES))
def test_shapes_that_primitives_refuse(names, expression, expected):
    run(names, expression, expected)


@pytest.mark.parametrize("expression, expected", table(INTEGERS))
def test_python_integers_have_the_requested_dtype(names, expression, expected):
    run(names, expression, expected)


@pytest.mark.parametrize("expression, expected", table(INDICES))
def test_indices(names, expression, expected):
    run(names, expression, expected)


@pytest.mark.parametrize("expression, expected", table(REDUCTIONS))
def test_reductions(names, expression, expected):
    run(names, expression, expected)


@pytest.mark.parametrize("expression, expected", table(ELSEWHERE))
def test_odd_arguments_of_other_modules(names, expression, expected):
    run(names, expression, expected)


def run(names, expression, expected):
    kind, _, text = expected.partition(": ")
    if not kind.endswith("Error"):
        check(names, expression, expected)
        return
    error = getattr(names["jax"].errors, kind, None) or getattr(builtins, kind)
    with pytest.raises(error) as raised:
        eval(expression, names)
    assert text in str(raised.value)


@pytest.mark.parametrize("name", "sum prod max min mean var std any all nansum nanprod nanmean nanvar nanstd nanmax nanmin".split())
def test_masks_of_reductions_are_boolean(jnp, name):
    initial = {"initial": 0} if name in ("max", "min", "nanmax", "nanmin") else {}
    f = getattr(jnp, name)
    with pytest.raises(ValueError, match=rf"jnp\.{name}: where must be None or a boolean array; got where\.dtype=dtype\('int32'\)"):
        f(jnp.zeros(3), where=jnp.ones(3, int), **initial)
    f(jnp.zeros(3), where=jnp.ones(3, bool), **initial)


@pytest.mark.ours
@pytest.mark.parametrize(
    "read",
    [
        lambda jnp, x, i: x[i],
        lambda jnp, x, i: x.at[i].get(),
        lambda jnp, x, i: jnp.take(x, i),
        lambda jnp, x, i: jnp.take(x, i, mode="wrap"),
        lambda jnp, x, i: jnp.take_along_axis(x, i, 0),
    ],
)
def test_narrow_indices_into_long_axes_count_from_the_end(jax, jnp, read):
    x, i = jnp.arange(300), jnp.array([1, -2], "int8")
    np.testing.assert_array_equal(read(jnp, x, i), [1, 298])
    np.testing.assert_array_equal(jax.jit(lambda i: read(jnp, x, i))(i), [1, 298])


@pytest.mark.ours
def test_writing_at_narrow_indices(jnp):
    x, i = jnp.arange(300), jnp.array([1, -2], "int8")
    want = np.arange(300)
    want[[1, 298]] = -1
    for y in (x.at[i].set(-1), jnp.put(x, i, -1, mode="wrap", inplace=False), jnp.put_along_axis(x, i, -1, 0, inplace=False)):
        np.testing.assert_array_equal(y, want)


def test_a_sort_of_an_empty_array_has_derivatives(jax, jnp, lax):
    z = jnp.ones((0,))
    (out,) = jax.vjp(lambda x: jax.vjp(lax.sort, x)[1](x)[0], z)[1](z)
    assert out.shape == (0,)


@pytest.mark.parametrize(
    "signature, f", [("(3)->(3)", lambda a: a), ("(3)->(2)", lambda a: a), ("(1)->()", lambda a: a.sum()), ("(n,7)->(7)", lambda a: a.sum(0))]
)
def test_digits_in_a_signature_are_names(jnp, signature, f):
    """They ask for no size, and are the same size wherever they stand."""
    x = jnp.arange(24.0).reshape(2, 3, 4)
    assert jnp.array_equal(jnp.vectorize(f, signature=signature)(x), np.vectorize(f, signature=signature)(np.asarray(x)))
    with pytest.raises(ValueError, match="inconsistent size for core dimension '3': 4 vs 3"):
        jnp.vectorize(jnp.dot, signature="(3),(3)->()")(jnp.ones(3), jnp.ones(4))


def test_vectorize_obeys_rank_promotion(jax, jnp):
    a, b = jnp.ones(3), jnp.ones((2, 3))
    with jax.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match="require rank promotion for jnp.vectorize function with signature None"):
            jnp.vectorize(jnp.add)(a, b)
        with pytest.raises(ValueError, match=r"with signature \(n\),\(n\)->\(n\)"):
            jnp.vectorize(jnp.add, signature="(n),(n)->(n)")(b, b[None])
        assert jnp.vectorize(jnp.add)(b, b).shape == jnp.vectorize(jnp.add)(b, 1.0).shape == (2, 3)
    assert jnp.vectorize(jnp.add)(a, b).shape == (2, 3)


def test_check_grads_takes_tolerances_by_dtype(jax, jnp):
    check = jax.test_util.check_grads
    check(jnp.sin, (1.0,), 1, atol={np.float32: 1e-2}, rtol={np.float32: 1e-2})
    check(jnp.sin, (1.0,), 1, atol={np.dtype("float64"): 1e-12}, rtol={np.dtype("float64"): 1e-12})
    with pytest.raises(AssertionError):
        check(jnp.sin, (1.0,), 1, atol={np.float32: 1e-12}, rtol={np.float32: 1e-12})


@pytest.mark.ours
def test_infinitely_many_trials(jax, jnp):
    p = jnp.array([-1, 0, jnp.nan, 1, 0.5, 2])
    np.testing.assert_array_equal(jax.random.binomial(jax.random.key(0), jnp.inf, p), [np.nan, 0, np.nan, np.inf, np.inf, np.nan])


def test_multinomial_asks_for_an_axis_of_outcomes(jax, jnp):
    with pytest.raises(ValueError):
        jax.random.multinomial(jax.random.key(0), 10, 0.5)


WARNINGS = """
jnp.zeros(3, 'float64') ! UserWarning: Explicitly requested dtype float64 requested in zeros is not available, and will be truncated to dtype float32
jnp.empty(2, jnp.uint64) ! UserWarning: dtype uint64 requested in empty is not available, and will be truncated to dtype uint32
jnp.float64(1) ! UserWarning: dtype float64 requested in asarray
jnp.array([1.0], jnp.float64) ! UserWarning: dtype float64 requested in array
jnp.asarray([1.0], dtype='complex128') ! UserWarning: dtype complex128 requested in asarray is not available, and will be truncated to dtype complex64
jnp.ones(2).astype('float64') ! UserWarning: dtype float64 requested in astype
jnp.arange(3, dtype='int64') ! UserWarning: dtype int64 requested in arange
jnp.full(2, 1.0, 'float64') ! UserWarning: dtype float64 requested in full
jnp.zeros_like(f32([1]), 'float64') ! UserWarning: dtype float64 requested in zeros_like
jnp.linspace(0, 1, 2, dtype='float64') ! UserWarning: dtype float64 requested in linspace
jnp.eye(2, dtype='float64') ! UserWarning: dtype float64 requested in eye
jnp.identity(2, dtype='int64') ! UserWarning: dtype int64 requested in identity
jnp.tri(2, dtype='float64') ! UserWarning: dtype float64 requested in tri
jnp.indices((2,), dtype='int64') ! UserWarning: dtype int64 requested in indices
jnp.sum(f32([1]), dtype='float64') ! UserWarning: dtype float64 requested in sum
jnp.mean(f32([1]), dtype='float64') ! UserWarning: dtype float64 requested in mean
jnp.var(f32([1]), dtype='float64') ! UserWarning: dtype float64 requested in var
jnp.cumsum(f32([1]), dtype='float64') ! UserWarning: dtype float64 requested in cumsum
jnp.dot(f32([1]), f32([1]), preferred_element_type='float64') ! UserWarning: dtype float64 requested in dot
jnp.einsum('i,i', f32([1]), f32([1]), preferred_element_type='float64') ! UserWarning: dtype float64 requested in einsum
lax.convert_element_type(1, 'int64') ! UserWarning: dtype int64 requested in convert_element_type
lax.full((2,), 1, 'int64') ! UserWarning: dtype int64 requested in full
lax.iota('int64', 2) ! UserWarning: dtype int64 requested in broadcasted_iota
jax.random.uniform(k, (), 'float64') ! UserWarning: Explicitly requested dtype float64 is not available
jax.random.randint(k, (), 0, 2, 'int64') ! UserWarning: Explicitly requested dtype int64 is not available
jnp.ndim([1, 2]) ! DeprecationWarning: ndim requires ndarray or scalar arguments, got <class 'list'> at position 0
jnp.shape([1, 2]) ! DeprecationWarning: shape requires ndarray or scalar arguments, got <class 'list'> at position 0
jnp.size([1, 2]) ! DeprecationWarning: size requires ndarray or scalar arguments, got <class 'list'> at position 0
jnp.array([1], None, True) ! DeprecationWarning: Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated
"""


@pytest.mark.parametrize("expression, expected", table(WARNINGS))
def test_warnings(names, expression, expected):
    kind, _, text = expected.partition(": ")
    with pytest.warns(getattr(builtins, kind)) as caught:
        eval(expression, names)
    assert any(text in str(w.message) for w in caught)


def test_classes_of_numbers_ask_for_no_width(jnp):
    # The suite turns warnings into errors.
    assert jnp.zeros(2, float).dtype == np.float32 and jnp.arange(2, dtype=int).dtype == np.int32 and jnp.sum(jnp.ones(2), dtype=complex).dtype == np.complex64


def test_positional_arguments_of_array_are_obeyed(jnp):
    with pytest.warns(DeprecationWarning, match="positionally is deprecated"):
        assert jnp.array([1], int, True, "K", 2).shape == (1, 1)


@pytest.mark.ours
def test_einsum_imports_its_paths_at_first_use(forked_child):
    code = """
        import sys
        jnp.einsum("ij,jk->ik", np.ones((2, 2)), np.ones((2, 2)))
        before = "opt_einsum" in sys.modules
        jnp.einsum("ij,jk,kl->il", *[np.ones((2, 2))] * 3)
        print(before, "opt_einsum" in sys.modules)
    """
    assert forked_child(code).split() == ["False", "True"]


def test_new_arrays_stay_with_what_they_are_like(forked_child):
    code = """
        from importlib import import_module
        lax, d = import_module(jax.__name__ + ".lax"), jax.devices()
        x = jax.device_put(jnp.ones(3), d[1])
        like = [jnp.zeros_like(x), jnp.ones_like(x), jnp.empty_like(x), jnp.full_like(x, 2), jnp.full_like(x, 2, shape=(2,)), jnp.full_like(x, 2, dtype=int)]
        like += [lax.full_like(x, 2), lax.full_like(x, 2, shape=(2,)), jnp.nonzero(x)[0], jnp.flatnonzero(x), jnp.argwhere(x), jnp.where(x > 0)[0]]
        like += [x[x > 3], x[x > 0], x[:0]]
        assert all(y.device == d[1] and y.committed for y in like), [y.device for y in like]
        placed = [jnp.zeros_like(x, device=d[2]), jnp.full_like(x, 2, device=d[2]), jnp.arange(3, device=d[2]), jnp.linspace(0, 1, 3, device=d[2])]
        placed += [jnp.full((3,), jnp.arange(3), device=d[2]), jnp.eye(2, device=d[2]), jnp.asarray([1], device=d[2])]
        assert all(y.device == d[2] and y.committed for y in placed), [y.device for y in placed]
        assert not jnp.zeros_like(jnp.ones(3)).committed
        print("done")
    """
    assert forked_child(code, NUM_CPU_DEVICES="4").strip() == "done"


@pytest.mark.parametrize(
    "call",
    ["nanmedian(b)", "nanquantile(h, 0.5)", "nanpercentile(b, 30)", "median(b)", "std(u, dtype='float16')", "var(u, dtype='float16')"]
    + ["linspace(0, 1, 4, dtype='float16')", "bitwise_or.reduce(u, where=m)", "histogram(u)[0]", "average(h)", "cov(b)", "gradient(b)", "sinc(b)"],
)
def test_strict_promotion_is_for_the_operands_alone(jax, jnp, call):
    arrays = dict(b=jnp.ones(4, jnp.bfloat16), h=jnp.ones(4, "float16"), u=jnp.arange(4, dtype="uint16"), m=jnp.array([True, False, True, True]))
    standard = eval(f"jnp.{call}", {"jnp": jnp, **arrays})
    with jax.numpy_dtype_promotion("strict"):
        strict = eval(f"jnp.{call}", {"jnp": jnp, **arrays})
    assert strict.dtype == standard.dtype
    np.testing.assert_array_equal(strict, standard)


def test_one_hot_of_floats_warns(jax, jnp):
    with pytest.warns(DeprecationWarning, match="input should be integer-typed; got dtype=float32"):
        np.testing.assert_array_equal(jax.nn.one_hot(jnp.array([1.0]), 3), [[0, 1, 0]])


def test_sm3_of_a_scalar(jax, jnp):
    sm3 = importlib.import_module(f"{jax.__name__}.example_libraries.optimizers").sm3
    init, update, params = sm3(0.1)
    x = params(update(0, jnp.ones(()), init(jnp.zeros(()))))
    assert x.shape == ()
    np.testing.assert_allclose(x, -0.01, rtol=1e-6)


def test_tree_transpose_of_nodes_that_hold_trees(jax):
    @jax.tree_util.register_pytree_node_class
    class Flat:
        def __init__(self, tree, leaves=None, treedef=None):
            self.leaves, self.treedef = jax.tree_util.tree_flatten(tree) if leaves is None else (leaves, treedef)

        def tree_flatten(self):
            # The tree in the metadata grows with what the leaves hold.
            leaves, whole = jax.tree_util.tree_flatten(jax.tree_util.tree_unflatten(self.treedef, self.leaves))
            return leaves, whole

        @classmethod
        def tree_unflatten(cls, treedef, leaves):
            if not any(isinstance(x, (list, tuple)) for x in leaves):
                return cls(None, list(leaves), treedef)
            return cls(jax.tree_util.tree_unflatten(treedef, leaves))

    outer = jax.tree_util.tree_structure(Flat({"a": 1, "b": 2}))
    inner = jax.tree_util.tree_structure([1, 2])
    out = jax.tree_util.tree_transpose(outer, inner, Flat({"a": [3, 4], "b": [5, 6]}))
    assert [x.leaves for x in out] == [[3, 5], [4, 6]]


PROTOS = [
    (1, "0a021001"),
    (None, "0a021003"),
    ((), "0a021004"),
    ((1,), "0a0210010a0408011004"),
    ({}, "0a021005"),
    ({"b": 1, "a": 2}, "0a0210010a0210010a0a080210051a040a020001120161120162"),
    (
        {"b": 1, "a": {"b": 2, "c": (1, None)}},
        "0a0210010a0210010a0210030a04080210040a0a080210051a040a0200010a0210010a0a080210051a040a020200120162120163120161",
    ),
]


@pytest.mark.parametrize("tree, data", PROTOS)
def test_structures_as_protocol_buffers(jax, tree, data):
    structure, registry = jax.tree_util.tree_structure(tree), jax.tree_util.default_registry
    assert structure.serialize_using_proto().hex() == data
    assert type(structure).deserialize_using_proto(registry, bytes.fromhex(data)) == structure


def test_structures_that_protocol_buffers_cannot_hold(jax):
    structure = jax.tree_util.tree_structure
    with pytest.raises(ValueError, match="User-defined nodes are not supported when serializing pytrees"):
        structure(jax.tree_util.Partial(print, 1)).serialize_using_proto()
    with pytest.raises(ValueError, match="Only string keys are supported"):
        structure({1: 2}).serialize_using_proto()
    for data in (b"\n\x02\x10\x07", b"\n\x04\x08\x02\x10\x02"):
        with pytest.raises(ValueError):
            structure(0).deserialize_using_proto(jax.tree_util.default_registry, data)


def test_tree_transpose_of_nodes_that_keep_the_structure_below_them(jax):
    @jax.tree_util.register_pytree_node_class
    class Flat:
        def __init__(self, leaves, treedef):
            self.leaves, self.treedef = list(leaves), treedef

        def tree_flatten(self):
            return self.leaves, self.treedef

        @classmethod
        def tree_unflatten(cls, treedef, leaves):
            return cls(leaves, treedef)

    structure = jax.tree_util.tree_structure
    flat = lambda tree: Flat(*jax.tree_util.tree_flatten(tree))
    out = jax.tree_util.tree_transpose(structure(flat({"a": 1, "b": 2})), structure([1, 2]), flat({"a": [3, 4], "b": [5, 6]}))
    assert [(x.leaves, x.treedef) for x in out] == [([3, 5], structure({"a": 1, "b": 2})), ([4, 6], structure({"a": 1, "b": 2}))]


@pytest.mark.parametrize("modes", ["rev", "fwd", "lin", "fwd,rev", "fwd, lin", ("lin",), ["rev"], {"fwd", "lin"}, ("fwd", "rev", "lin")])
def test_check_grads_takes_modes_as_a_string_or_a_sequence(jax, jnp, modes):
    check = jax.test_util.check_grads
    check(jnp.sin, (jnp.float32(0.5),), order=2, modes=modes)
    wrong = lambda x: jax.lax.stop_gradient(x) * 2
    with pytest.raises(AssertionError):
        check(wrong, (jnp.full(2, 0.5),), order=1, modes=modes)
    if jax.__name__ == "ferrax":  # JAX checks nothing, without a word
        for unknown in ("forward", ("fwd", "reverse")):
            with pytest.raises(ValueError, match="unknown modes"):
                check(jnp.sin, (0.5,), order=1, modes=unknown)


def test_check_grads_allows_for_the_size_of_an_array(jax, jnp):
    def accepts(n, off):
        f = jax.custom_jvp(lambda x: x)
        f.defjvp(lambda p, t: (p[0], t[0] + off))
        try:
            jax.test_util.check_grads(f, (jnp.zeros(n),), 1, modes=("fwd",), atol=1e-2, rtol=0.0)
        except AssertionError:
            return False
        return True

    assert [[accepts(n, off) for off in (5e-3, 2e-2, 9e-2, 0.2)] for n in (1, 3, 10)] == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, False],
    ]


FLOAT0 = """
jnp.zeros(3, float0)
jnp.zeros((2, 3), float0)
jnp.ones(2, float0)
jnp.empty(2, float0)
jnp.full(2, 0, float0)
jnp.zeros_like(np.zeros(2, float0))
jnp.zeros_like(np.ones(3), dtype=float0)
jnp.ones_like(np.ones(3), dtype=float0)
jnp.full_like(np.ones(3), 1, dtype=float0)
jnp.empty_like(np.zeros((2, 0), float0))
jnp.array(b"", float0)
jnp.array(np.zeros((2, 3), float0))
jnp.array(np.zeros(3, float0), ndmin=2)
jnp.asarray(np.zeros((2, 3), float0))
jax.device_put(np.zeros(2, float0))
jax.device_put(np.zeros(2, float0), jax.devices()[0])
jax.jit(lambda: jnp.zeros(2, float0))()
jax.jit(lambda x: jnp.zeros_like(x, dtype=float0))(np.ones(3))
"""


@pytest.mark.parametrize("expression", FLOAT0.split("\n")[1:-1])
def test_arrays_of_float0_are_numpys(jax, jnp, expression):
    float0 = jax.dtypes.float0
    out = eval(expression, dict(jax=jax, jnp=jnp, np=np, float0=float0))
    assert isinstance(out, np.ndarray) and out.dtype == float0
    shapes = {"(2, 3)": (2, 3), "(2, 0)": (2, 0), "ndmin": (1, 3), 'b""': (), "3": (3,)}
    assert out.shape == next((s for words, s in shapes.items() if words in expression), (2,))


def test_numbers_do_not_become_float0(jax, jnp):
    float0 = jax.dtypes.float0
    for x in (1.5, [False, True]):
        with pytest.raises(TypeError, match="a bytes-like object is required"):
            jnp.array(x, float0)
    assert jax.eval_shape(lambda: jnp.zeros(2, float0)).dtype == float0


def test_float0_cotangents_of_integer_outputs(jax, jnp):
    @jax.custom_gradient
    def f(x):
        return (x * 2, jnp.arange(3)), lambda cts: 5 * cts[0]

    for wrap in (lambda g: g, jax.jit, lambda g: lambda x: jax.vmap(g)(x[None])[0]):
        assert wrap(jax.grad(lambda x: jnp.sum(f(x)[0])))(jnp.ones(3)).tolist() == [5, 5, 5]
