"""Arrays as Python objects: how they print, convert, compute with scalars and other libraries, and refuse."""

import collections
import copy
import inspect
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

PRINTED = {
    "vector": (lambda jnp: jnp.array([1.0, 2.0]), "Array([1., 2.], dtype=float32)"),
    "weak": (lambda jnp: jnp.asarray(2.0), "Array(2., dtype=float32, weak_type=True)"),
    "scalar": (lambda jnp: jnp.float32(2.0), "Array(2., dtype=float32)"),
    "boolean": (lambda jnp: jnp.ones((2, 2), bool), "Array([[ True,  True],\n       [ True,  True]], dtype=bool)"),
    "bfloat16": (lambda jnp: jnp.ones(3, jnp.bfloat16), "Array([1, 1, 1], dtype=bfloat16)"),
    "complex": (lambda jnp: jnp.array([1 + 2j]), "Array([1.+2.j], dtype=complex64)"),
    "empty": (lambda jnp: jnp.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float32)"),
    "long": (lambda jnp: jnp.arange(2000), "Array([   0,    1,    2, ..., 1997, 1998, 1999], dtype=int32)"),
    "wrapped": (
        lambda jnp: jnp.array([0, 1 / 6, 1 / 3, 0.5, 2 / 3, 0.75, 1]),
        "Array([0.        , 0.16666667, 0.33333334, 0.5       , 0.6666667 ,\n       0.75      , 1.        ], dtype=float32)",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_repr(jnp, name):
    make, text = PRINTED[name]
    assert repr(make(jnp)) == text


_FORMATTED = "bool int4 uint4 int8 uint16 int32 uint32 float8_e4m3fn float8_e5m2 bfloat16 float16 float32 complex64"


@pytest.mark.parametrize("name", _FORMATTED.split())
@pytest.mark.parametrize("value", [0.8414709568023682, -0.3, 1e20, float("nan"), float("inf"), 1.0])
def test_scalars_are_formatted_as_numpy_s(jax, jnp, name, value, capsys):
    """With and without a specification: a float of any width as Python's number, not by its short text."""
    dtype = jnp.dtype(name)
    if dtype.kind in "biu" or name in ("int4", "uint4"):
        value = 1
    with np.errstate(over="ignore"):
        narrow = np.array(value).astype(dtype)
    if not np.isfinite(narrow.astype(complex if dtype.kind == "c" else float)) and np.isfinite(value):
        pytest.skip("beyond the dtype")
    x = jnp.asarray(np.array(value).astype(dtype))
    scalar = np.asarray(x)[()]
    for spec in ("", ".3f", "10", ">12", "e", ".2g", "d", "x", "s", "%"):
        try:
            want = format(scalar, spec)
        except Exception as e:
            with pytest.raises(type(e)):
                format(x, spec)
        else:
            assert format(x, spec) == want, spec
    assert f"{x}" == f"{x}" == format(scalar) and str(x) == str(scalar) and f"{x!s:>8}" == f"{scalar!s:>8}"
    assert f"{[x]}" == f"[{x!r}]"
    print(x)
    jax.debug.print("{} {x}", x, x=x)
    jax.jit(lambda x: jax.debug.print("{} {x}", x, x=x))(x)
    jax.effects_barrier()
    assert capsys.readouterr().out.splitlines() == [str(scalar), f"{scalar} {scalar}", f"{scalar} {scalar}"]
    assert format(jnp.full(2, x)) == str(np.asarray(jnp.full(2, x)))


def test_tracers_are_formatted_by_their_text(jax, jnp):
    seen = []
    for transform in (jax.jit, jax.grad, lambda f: lambda x: jax.vmap(f)(x[None])):
        transform(lambda x: (seen.append((format(x), str(x))), x)[1])(jnp.float32(1))
    assert all(a == b and "Tracer" in a for a, b in seen)


def test_parts_of_tracers(jax, jnp):
    """The values of a mapped tracer and their axis, the value and tangent of one under differentiation, by JAX's names."""
    xs = jnp.arange(6.0).reshape(2, 3)
    seen = []
    jax.vmap(lambda x: (seen.append((x.val, x.batch_dim)), x)[1], in_axes=1)(xs)
    np.testing.assert_array_equal(seen[0][0], xs)
    assert seen[0][1] == 1
    jax.jvp(lambda x: (seen.append((x.primal, x.tangent)), x)[1], (xs,), (2 * xs,))
    np.testing.assert_array_equal(seen[1], [xs, 2 * xs])
    jax.vmap(jax.vmap(lambda x: (seen.append((x.val.val, x.val.batch_dim, x.batch_dim)), x)[1]))(xs)
    np.testing.assert_array_equal(seen[2][0], xs)
    jax.vmap(lambda x: jax.jvp(lambda y: (seen.append(y.primal.val), y)[1], (x,), (x,)))(xs)
    np.testing.assert_array_equal(seen[3], xs)
    for name in ("val", "batch_dim", "primal", "tangent"):
        assert not hasattr(xs, name)


def test_str_and_format(jnp):
    assert str(jnp.arange(6)) == "[0 1 2 3 4 5]" and f"{jnp.float32(3.14159):.2f}" == "3.14" and f"{jnp.arange(2)}" == "[0 1]"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(jnp.arange(2), "d")


def test_tracers_print_their_type(jax, jnp):
    seen = []
    x = jnp.ones(3)
    jax.make_jaxpr(lambda x: seen.append(repr(x)))(1.0)
    jax.vmap(lambda x: (seen.append(repr(x)), x)[1])(x)
    jax.jvp(lambda x: (seen.append(repr(x)), x)[1], (x,), (x,))
    jax.grad(lambda x: (seen.append(repr(x)), x.sum())[1])(x)
    assert seen == [
        "JitTracer(~float32[])",
        "VmapTracer(aval=float32[], batched=float32[3])",
        "JVPTracer(primal=[1. 1. 1.], tangent=[1. 1. 1.])",
        "GradTracer(primal=[1. 1. 1.], typeof(tangent)=f32[3])",
    ]


# ---------------------------------------------------------------- conversions


def test_python_numbers(jnp):
    x = jnp.float32(2.5)
    assert (float(x), int(x), bool(x), complex(x)) == (2.5, 2, True, 2.5 + 0j)
    assert operator.index(jnp.int32(7)) == 7 and [10, 20][jnp.int32(1)] == 20 and len(jnp.ones((3, 2))) == 3
    assert jnp.float32(1.5).item() == 1.5 and jnp.arange(3).tolist() == [0, 1, 2] and [int(v) for v in jnp.arange(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda jnp: bool(jnp.ones(2)), ValueError, "The truth value of an array with more than one element is ambiguous"),
        (lambda jnp: bool(jnp.ones(0)), ValueError, "The truth value of an empty array is ambiguous"),
        (lambda jnp: float(jnp.ones((2, 2))), TypeError, "Only scalar arrays can be converted to Python scalars; got arr.ndim=2"),
        (lambda jnp: operator.index(jnp.float32(3)), TypeError, "Only integer scalar arrays can be converted to a scalar index."),
        (lambda jnp: len(jnp.float32(1)), TypeError, r"len\(\) of unsized object"),
        (lambda jnp: iter(jnp.float32(1)), TypeError, "iteration over a 0-d array"),
        (lambda jnp: hash(jnp.ones(2)), TypeError, "unhashable type"),
        (lambda jnp: jnp.ones(3).nonsense, AttributeError, "has no attribute 'nonsense'"),
        (lambda jnp: operator.setitem(jnp.ones(3), 0, 1), TypeError, r"JAX arrays are immutable and do not support in-place item assignment"),
        (lambda jnp: jnp.ones(3).item(), ValueError, "can only convert an array of size 1 to a Python scalar"),
        (lambda jnp: jnp.ones((3, 4))[0, 1, 2], IndexError, "Too many indices: array is 2-dimensional, but 3 were indexed"),
        (lambda jnp: jnp.ones(3)[::0], ValueError, "slice step cannot be zero"),
        (lambda jnp: jnp.ones((3, 4)) + jnp.ones(5), ValueError, r"Incompatible shapes for broadcasting: shapes=\[\(3, 4\), \(5,\)\]"),
        (lambda jnp: jnp.ones(3) + [1, 2, 3], TypeError, r"unsupported operand type\(s\) for \+: 'ArrayImpl' and 'list'"),
        (lambda jnp: jnp.ones(3) + None, TypeError, r"unsupported operand type\(s\) for \+"),
        (lambda jnp: jnp.asarray(2**31), OverflowError, "Python int 2147483648 too large to convert to int32"),
        (lambda jnp: jnp.arange(3) + 10**12, OverflowError, "An overflow was encountered while parsing an argument"),
    ],
)
def test_refusals(jnp, call, error, words):
    with pytest.raises(error, match=words):
        call(jnp)


def test_numpy_views_are_read_only_and_copies_are_not(jnp):
    x = jnp.arange(3)
    assert not np.asarray(x).flags.writeable and np.array(x).flags.writeable
    assert np.asarray(x, np.float64).dtype == np.float64


def test_arrays_from_numpy_are_copied(jnp):
    a = np.arange(4, dtype=np.float32)
    x = jnp.asarray(a)
    a[0] = 100
    assert float(x[0]) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(12.0, dtype=np.float32).reshape(3, 4).T,
        lambda: np.arange(12)[::-2],
        lambda: np.ones(3, ">i4").byteswap().view("<i4"),
        lambda: np.frombuffer(b"\0" + np.arange(3, dtype=np.float32).tobytes(), np.float32, offset=1),
        lambda: np.zeros((0, 2), np.int8),
        lambda: np.array(3.0),
    ],
)
def test_any_layout_comes_in(jnp, make):
    a = make()
    x = jnp.asarray(a)
    assert x.shape == a.shape and np.array_equal(np.asarray(x), a)


@pytest.mark.parametrize("dtype", "bool int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 complex64".split())
def test_every_dtype_survives_a_round_trip(jnp, dtype):
    x = jnp.asarray([0, 1, 1, 0]).astype(dtype)
    assert x.dtype.name == dtype and np.asarray(x).dtype == x.dtype
    back = jnp.asarray(np.asarray(x))
    assert back.dtype == x.dtype and np.array_equal(np.asarray(back), np.asarray(x))
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype == x.dtype and np.array_equal(np.asarray(again), np.asarray(x))


def test_dlpack(jax, jnp):
    assert np.from_dlpack(jnp.arange(3)).tolist() == [0, 1, 2]
    assert jnp.from_dlpack(np.arange(3.0, dtype=np.float32)).tolist() == [0, 1, 2] if hasattr(jnp, "from_dlpack") else True


def test_copies(jnp):
    x = jnp.arange(3)
    assert copy.copy(x).tolist() == copy.deepcopy(x).tolist() == x.copy().tolist() == [0, 1, 2]


# ---------------------------------------------------------------- operators

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
    divmod,
]


@pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
@given(a=st.lists(st.integers(-9, 9), min_size=3, max_size=3), b=st.sampled_from([-3, -2, -1, 1, 2, 3]), kind=st.sampled_from(["int32", "float32"]))
def test_operators_are_numpys_with_scalars_on_either_side(jnp, op, a, b, kind):
    x = np.array(a, kind)
    for got, want in ((op(jnp.asarray(x), b), op(x, b)), (op(jnp.asarray(x), jnp.asarray(x) * 0 + b), op(x, np.full(3, b, kind)))):
        for g, w in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True):
            np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6)
    if 0 not in a:
        got, want = op(b, jnp.asarray(x)), op(b, x)
        for g, w in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True):
            np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift], ids=lambda f: f.__name__)
def test_bit_operators(jnp, op):
    x, y = np.array([12, 7, 1], np.int32), np.array([3, 2, 1], np.int32)
    assert (
        np.array_equal(op(jnp.asarray(x), jnp.asarray(y)), op(x, y))
        and np.array_equal(op(jnp.asarray(x), 2), op(x, 2))
        and np.array_equal(op(9, jnp.asarray(y)), op(9, y))
    )
    assert (~jnp.asarray(x)).tolist() == (~x).tolist() and (jnp.array([True, False]) & True).tolist() == [True, False]


def test_numpy_on_the_left_gives_an_array(jax, jnp):
    for got in (np.ones(3, np.float32) + jnp.ones(3), np.float32(1) + jnp.ones(3), np.ones((2, 3), np.float32) @ jnp.ones(3)):
        assert isinstance(got, jax.Array)


@pytest.mark.parametrize("power", [0, 1, 2, 3, -1, -2, 0.5, 2.0])
def test_powers(jnp, power):
    x = np.array([1.0, 2.0, 3.0], np.float32)
    np.testing.assert_allclose(np.asarray(jnp.asarray(x) ** power), x**power, rtol=1e-6)


def test_weak_types_give_way(jnp):
    kinds = [
        (jnp.ones(2, jnp.bfloat16) + 1.0).dtype,
        (jnp.ones(2, jnp.int8) + 1).dtype,
        (jnp.ones(2, jnp.int32) + 1.5).dtype,
        (jnp.ones(2, jnp.uint8) + jnp.ones(2, jnp.int8)).dtype,
    ]
    assert [k.name for k in kinds] == ["bfloat16", "int8", "float32", "int16"]
    assert (jnp.asarray(1) + 1.5).weak_type and not (jnp.ones(2, jnp.int32) + jnp.ones(2)).weak_type


def test_promotion_table_is_jaxs(jnp, oracle):
    names = "bool int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 complex64".split()
    scalars = [True, 1, 1.0, 1j]
    for a in names:
        for b in [*names, *scalars]:
            mine = jnp.ones(1, a) + (jnp.ones(1, b) if isinstance(b, str) else b)
            theirs = oracle.numpy.ones(1, a) + (oracle.numpy.ones(1, b) if isinstance(b, str) else b)
            assert (mine.dtype, mine.weak_type) == (theirs.dtype, theirs.weak_type), (a, b)


def test_strict_promotion(jax, jnp):
    with jax.numpy_dtype_promotion("strict"):
        assert (jnp.ones(2) + 1).dtype == np.float32
        with pytest.raises(ValueError, match="have no available implicit dtype promotion path when jax_numpy_dtype_promotion=strict"):
            jnp.ones(2) + jnp.arange(2)


def test_rank_promotion(jax, jnp):
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="could not be broadcast together for add on shapes"):
        jnp.ones((3, 3)) + jnp.ones(3)
    with jax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="automatic rank promotion for add"):
        jnp.ones((3, 3)) + jnp.ones(3)


def test_deleted_arrays_say_so(jnp):
    x = jnp.ones(3) + 1
    x.delete()
    assert x.is_deleted() and x.shape == (3,)
    for use in (lambda: x + 1, lambda: np.asarray(x), lambda: x[0], lambda: repr(x)):
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]."):
            use()


def test_placement(jax, jnp):
    x = jnp.ones(3)
    assert (
        x.devices() == {jax.devices()[0]}
        and x.device == jax.devices()[0]
        and not x.committed
        and x.is_ready()
        and x.nbytes == x.on_device_size_in_bytes() == 12
    )
    assert jax.device_put(x, jax.devices()[0]).committed and x.block_until_ready() is x
    (shard,) = x.addressable_shards
    assert shard.device == jax.devices()[0] and shard.data.tolist() == [1, 1, 1]


def test_nan_checks_name_the_operation(jax, jnp):
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in"):
            jnp.zeros(2) / 0.0
        with pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in"):
            jax.jit(lambda x: jnp.sin(x) * 2)(jnp.inf)
    assert bool(jnp.isnan(jnp.zeros(()) / 0.0))


@pytest.mark.parametrize("to", "int8 int16 float32 complex64".split())
@pytest.mark.parametrize("dtype", "int8 float32 complex64".split())
def test_bits_viewed_as_another_dtype(jnp, dtype, to):
    x = np.arange(16).reshape(2, 8).astype(dtype) * (1 + 2j if dtype == "complex64" else 1)
    x = x.astype(dtype)
    got = jnp.asarray(x).view(to)
    np.testing.assert_array_equal(np.asarray(got).view(np.uint8), x.view(to).view(np.uint8))


@pytest.mark.parametrize(
    "shape, dtype, to", [((3,), "float32", "complex64"), ((4,), "int8", "complex64"), ((), "float32", "complex64"), ((), "complex64", "int16")]
)
def test_bits_that_do_not_divide(jnp, shape, dtype, to):
    with pytest.raises(ValueError, match="view|divisor"):
        jnp.zeros(shape, dtype).view(to)


# ---------------------------------------------------------------- protocols


def test_arrays_are_sequences(jax, jnp):
    x = jnp.arange(6.0).reshape(2, 3)
    assert np.concatenate(x).tolist() == [0, 1, 2, 3, 4, 5] and [int(a) for a in reversed(jnp.arange(3))] == [2, 1, 0]
    assert np.lexsort(jnp.array([[3, 1, 2]])).tolist() == [1, 2, 0] and np.choose([0, 1], jnp.array([[1, 2], [3, 4]])).tolist() == [1, 4]
    assert jax.jit(lambda x: jnp.stack(list(reversed(x))))(x).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert len(x) == 2 and x[-1].tolist() == [3, 4, 5]
    with pytest.raises(TypeError, match=r"len\(\) of unsized object"):
        reversed(jnp.float32(1)).__next__()


@pytest.mark.parametrize("dtype", "bool int8 uint8 int16 uint16 int32 uint32 float16 float32 complex64".split())
def test_the_buffer_protocol(jnp, dtype):
    want = np.arange(6).reshape(2, 3).astype(dtype)
    view = memoryview(jnp.asarray(want))
    assert (view.shape, view.strides, view.itemsize, view.nbytes, view.readonly) == (want.shape, want.strides, want.itemsize, want.nbytes, True)
    assert np.array_equal(np.asarray(view), want) and np.asarray(view).dtype == want.dtype
    assert bytes(jnp.asarray(want)) == want.tobytes()


@pytest.mark.ours
def test_views_of_the_buffer_protocol_can_be_read(jnp):
    assert memoryview(jnp.arange(3, dtype="uint8")).tolist() == [0, 1, 2]
    assert memoryview(jnp.float32(1.5)).tolist() == 1.5 and memoryview(jnp.zeros((0, 3))).nbytes == 0


def test_a_view_outlives_its_array(jax, jnp):
    x = jnp.arange(1000.0)
    view = memoryview(x)
    y = jax.jit(lambda x: x * 0, donate_argnums=0)(x)
    del x
    assert np.asarray(view)[999] == 999 and y[999] == 0


def test_what_has_no_buffer(jax, jnp):
    with pytest.raises(BufferError):
        memoryview(jnp.ones(2, "bfloat16"))
    with pytest.raises(TypeError, match="a bytes-like object is required"):
        jax.jit(memoryview)(1.0)
    assert np.asarray(jnp.ones(2, "bfloat16")).dtype == jnp.bfloat16


class Pair(collections.namedtuple("Pair", "x")):
    def __rmul__(self, other):
        return "rmul"

    def __radd__(self, other):
        return "radd"


def test_operators_return_not_implemented_for_unknown_operands(jnp):
    x = jnp.ones(2)
    assert (x * Pair(1), x + Pair(1)) == ("rmul", "radd") and (x == Pair(1)) is False
    for wrong in (lambda: x * [1, 2], lambda: (1, 2) + x, lambda: x - Pair(1), lambda: x == [1, 2]):
        with pytest.raises(TypeError, match="unsupported operand type"):
            wrong()


MASKED = np.ma.array([1.0, 2.0], mask=[True, False])


@pytest.mark.parametrize(
    "call",
    [
        lambda jax, jnp: jnp.sin(MASKED),
        lambda jax, jnp: jax.jit(lambda x: x)(MASKED),
        lambda jax, jnp: jnp.asarray(MASKED),
        lambda jax, jnp: jax.device_put(MASKED),
        lambda jax, jnp: jnp.ones(2) + MASKED,
        lambda jax, jnp: jax.vmap(lambda x: x)(MASKED),
        lambda jax, jnp: jax.typeof(MASKED),
        lambda jax, jnp: jax.eval_shape(lambda x: x, MASKED),
    ],
)
def test_masked_arrays_are_refused(jax, jnp, call):
    with pytest.raises(ValueError, match=r"numpy masked arrays are not supported as direct inputs to JAX functions. Use arr.filled\(\)"):
        call(jax, jnp)


def test_other_arrays_of_numpys_are_taken(jnp):
    assert jnp.sin(np.array([0.0]).view(np.recarray)).tolist() == [0]


class Convertible:
    def __jax_array__(self):
        return CONVERTED[0]


CONVERTED = []


def test_only_conversions_warn(jax, jnp):
    CONVERTED[:] = [jnp.ones(2)]
    assert jnp.asarray(Convertible()).tolist() == [1, 1] and (jnp.ones(2) + Convertible()).tolist() == [2, 2]
    assert jnp.zeros_like(Convertible()).tolist() == [0, 0] and (Convertible.__jax_array__(None) * 2).tolist() == [2, 2]
    CONVERTED[:] = [jnp.ones((1, 2))]
    converts = [
        lambda a: jnp.ones((2, 1)) @ a,
        lambda a: jnp.reshape(a, (2, 1)),
        lambda a: jnp.stack([a, a])[0],
        lambda a: jnp.concatenate([a, a]),
        lambda a: jnp.einsum("ij,ik->jk", a, a),
        jnp.transpose,
        lambda a: jnp.moveaxis(a, 0, 1),
        lambda a: jnp.broadcast_to(a, (2, 2)),
        lambda a: jax.lax.convert_element_type(a, jnp.int32),
        jnp.squeeze,
        lambda a: jnp.expand_dims(a, 0),
        jnp.argmin,
    ]
    for call in converts:
        np.testing.assert_array_equal(call(Convertible()), call(jnp.ones((1, 2))))
    for call in (jax.jit(lambda x: x), jax.vmap(lambda x: x), jax.device_put, jax.typeof, lambda x: jax.jit(lambda: x)()):
        with pytest.raises(ValueError, match=r"Triggering __jax_array__\(\) during abstractification is no longer supported"):
            call(Convertible())


def test_nodes_of_trees_that_convert_are_operands(jax, jnp):
    class Node(Convertible):
        shape, dtype, ndim = (1, 2), np.float32, 2

    jax.tree_util.register_pytree_node(Node, lambda n: ((), None), lambda *_: Node())
    CONVERTED[:] = [jnp.full((1, 2), 2.0)]
    ones = jnp.ones((2, 1))
    for call in (
        jnp.sin,
        lambda a: jnp.add(a, 1),
        lambda a: jnp.matmul(ones, a),
        lambda a: jnp.dot(ones, a),
        jnp.linalg.norm,
        jax.nn.relu,
        lambda a: jnp.clip(a, 0, 1),
    ):
        np.testing.assert_allclose(call(Node()), call(CONVERTED[0]))


def test_arrays_are_not_hashable(jax, jnp):
    assert not isinstance(jnp.ones(2), collections.abc.Hashable)
    with pytest.raises(TypeError, match="unhashable type"):
        jax.jit(hash)(1.0)


def test_copies_to_the_host_begin(jax, jnp):
    class Other:
        begun = 0

        def copy_to_host_async(self):
            self.begun += 1

    other, x = Other(), jnp.ones(2)
    tree = [x, other, 1.0, "s"]
    assert jax.copy_to_host_async(tree) is tree and other.begun == 1
    assert jax.jit(lambda x: jax.copy_to_host_async(x) + 1)(1.0) == 2
    x.delete()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        x.copy_to_host_async()


def test_putting_with_options(jax, jnp):
    x = jnp.arange(3)
    here = jax.device_put(x, jax.devices()[0])
    assert jax.device_put(x) is x and jax.device_put(x, may_alias=True) is x and jax.device_put(here, here.sharding) is here
    for copied in (jax.device_put(x, may_alias=False), jax.device_put(here, here.sharding, may_alias=False)):
        assert copied is not x and copied is not here and copied.tolist() == [0, 1, 2]
        copied.delete()
    assert x.tolist() == here.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="may_alias and donate cannot be True at the same time"):
        jax.device_put(jnp.ones(3), jax.devices()[0], donate=True, may_alias=True)


@pytest.mark.parametrize("place", [lambda d: [d], lambda d: [d, {"b": d}], lambda d: (d, (d, d))])
def test_places_that_fit_no_value(jax, jnp, place):
    d, x = jax.devices()[0], jnp.ones(3)
    with pytest.raises(
        ValueError, match=r"device_put device specification must be a tree prefix of the corresponding value; \n  Mismatch details \(1 found\):\n"
    ):
        jax.device_put((x, {"a": x}), place(d))


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "complex64", "bool"])
def test_an_array_is_no_dtype(jax, jnp, dtype):
    x = jnp.zeros(2, dtype)
    with pytest.warns(DeprecationWarning, match="Implicit conversion of an array to a dtype is deprecated"):
        assert np.dtype(x) == x.dtype


METHODS = """
    addressable_data index
    all axis out keepdims
    any axis out keepdims
    argmax axis out keepdims
    argmin axis out keepdims
    argpartition kth axis
    argsort axis
    astype dtype copy device
    choose choices out mode
    clip min max
    compress condition axis
    cumprod axis dtype out
    cumsum axis dtype out
    diagonal offset axis1 axis2
    dot b
    flatten order
    max axis out keepdims initial where
    mean axis dtype out keepdims
    min axis out keepdims initial where
    prod axis dtype out keepdims initial where promote_integers
    ptp axis out keepdims
    ravel order
    repeat repeats axis
    round decimals out
    searchsorted v side sorter
    sort axis
    squeeze axis
    std axis dtype out ddof keepdims
    sum axis dtype out keepdims initial where promote_integers
    swapaxes axis1 axis2
    take indices axis out mode unique_indices indices_are_sorted fill_value
    to_device device
    tobytes order
    trace offset axis1 axis2 dtype out
    var axis dtype out ddof keepdims
    view dtype type
"""  # the parameters of JAX's methods that may be given by place or by name


@pytest.mark.parametrize("line", METHODS.strip().splitlines())
def test_methods_take_their_arguments_by_place_or_name(jnp, line):
    name, *parameters = line.split()
    of = inspect.signature(getattr(jnp.ones((2, 2)), name)).parameters
    assert [of[p].kind for p in parameters] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * len(parameters) and list(of)[: len(parameters)] == parameters


def test_astype_as_a_method(jnp):
    x = jnp.arange(3)
    assert x.astype(dtype="float32", copy=False).dtype == np.float32
    assert x.astype(np.int32) is x and x.astype(np.int32, True) is not x


@pytest.mark.parametrize("n", [3, 300, 1000])
@pytest.mark.parametrize("jit", [True, False])
def test_rows_of_short_and_long_arrays(jax, jnp, n, jit):
    """Those of long ones are made as they are asked for."""

    def f(x):
        rows, all_of_them = iter(x), [*x]
        assert len(all_of_them) == n and [*zip(x, range(2), strict=False)][1][0].shape == (2,)
        return jnp.stack([next(rows), next(rows), all_of_them[-1], max(enumerate(x))[1]])

    x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2)
    np.testing.assert_array_equal((jax.jit(f) if jit else f)(jnp.asarray(x)), x[[0, 1, -1, -1]])


def test_the_first_elements_of_a_huge_array_do_not_wait_for_the_rest(jax, jnp):
    rows = iter(jnp.arange(1 << 28, dtype=jnp.int8))
    assert [int(next(rows)) for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("name", ["array", "bytearray", "memoryview", "matrix", "floats", "bools", "strided", "halves", "complexes"])
@pytest.mark.parametrize("copy", [False, None, True])
def test_buffers_are_arrays(jnp, name, copy):
    import array

    buffer = {
        "array": array.array("i", [1, 2]), "bytearray": bytearray(b"ab"), "memoryview": memoryview(array.array("f", [1, 2])),
        "matrix": memoryview(np.arange(6, dtype=np.int32).reshape(2, 3)), "floats": array.array("f", [0.5]), "bools": memoryview(np.array([True, False])),
        "strided": np.arange(6, dtype=np.int32)[::2], "halves": memoryview(np.arange(3, dtype=np.float16)), "complexes": memoryview(np.ones(2, np.complex64)),
    }[name]  # fmt: skip
    want = np.asarray(buffer)
    got = jnp.asarray(buffer, copy=copy)
    assert got.dtype == want.dtype and got.tolist() == want.tolist()
    if want.dtype.kind != "c":
        assert jnp.asarray(buffer, copy=copy, dtype="float32").tolist() == want.astype(np.float32).tolist()
    assert jnp.asarray([1, 2], copy=copy).tolist() == [1, 2] and jnp.asarray(3, copy=copy) == 3


MOST = 2**64 - 1


@pytest.mark.ours
def test_integers_beyond_doubles(jax, jnp, x64):
    """Lists of them are exact, where numpy joins unlike integers as floats; or refused."""
    u64 = np.uint64
    for values, dtype, want in (
        ([1, MOST - 1, MOST], "uint64", [1, MOST - 1, MOST]), ((1, MOST), "uint64", [1, MOST]), ([True, MOST - 1], "uint64", [1, MOST - 1]),
        ([[1, 2], [3, MOST]], "uint64", [[1, 2], [3, MOST]]), ([u64(MOST), 1], "uint64", [MOST, 1]), ([u64(MOST), 1], None, [MOST, 1]),
        ([u64(2**53 + 1), np.int64(5)], "uint64", [2**53 + 1, 5]), ([2**53 + 1, u64(5)], "int64", [2**53 + 1, 5]), ([2**53 + 1, 2.5], "int64", [2**53 + 1, 2]),
        ([np.array([MOST - 1, 3], u64), [MOST, 4]], "uint64", [[MOST - 1, 3], [MOST, 4]]), ([np.array([MOST - 1, 3], u64), [MOST, 4]], None, [[MOST - 1, 3], [MOST, 4]]),
        ([-(2**63), 2**63 - 1], "int64", [-(2**63), 2**63 - 1]), ([range(2), [1, MOST]], "uint64", [[0, 1], [1, MOST]]), ([1.5, MOST], "uint64", [1, MOST]),
    ):  # fmt: skip
        for f in (jnp.array, jnp.asarray, jax.jit(lambda values=values, dtype=dtype: jnp.array(values, dtype))):
            out = f() if f not in (jnp.array, jnp.asarray) else f(values, dtype)
            assert out.dtype == (dtype or "uint64") and out.tolist() == want, (values, dtype)
    assert jnp.uint64([MOST, MOST - 1]).tolist() == [MOST, MOST - 1]
    assert int(jnp.array([1, MOST - 1, MOST], "uint64").argmax()) == 2 and int(jnp.array([MOST, MOST - 1], "uint64").argmin()) == 1
    np.testing.assert_array_equal(jnp.array([1, MOST], "float32"), np.float32([1, 2.0**64]))
    for values, dtype in (
        ([1, MOST - 1, MOST], None), ([-1, MOST], None), ([-1, MOST], "uint64"), ([1, 2**64], "uint64"), ([1, 2**63], "int64"), ([np.int32(5), MOST], None),
        ([np.uint8(5), MOST], None), ([[MOST, 1], [2, True]], None), ([1, 2**32], "uint32"), ([2**53 + 1, MOST], "int32"),
    ):  # fmt: skip
        with pytest.raises(OverflowError):
            jnp.array(values, dtype)


@pytest.mark.ours
def test_values_that_only_uint64_represents(jax, jnp, x64):
    u, places = jnp.array([1, MOST - 1, MOST], "uint64"), jnp.array([0, 7])
    for out, want in (
        (jnp.full(2, MOST - 1, "uint64"), [MOST - 1] * 2), (jnp.full_like(u, MOST), [MOST] * 3), (u.at[0].set(MOST - 1), [MOST - 1, MOST - 1, MOST]),
        (u.at[places].get(mode="fill", fill_value=MOST - 1), [1, MOST - 1]), (jnp.take(u, places, mode="fill", fill_value=MOST - 1), [1, MOST - 1]),
        (jnp.take_along_axis(u, places, 0, mode="fill", fill_value=MOST - 1), [1, MOST - 1]), (u.at[jnp.array([0, 2])].set(jnp.array([MOST, 5], "uint64")), [MOST, MOST - 1, 5]),
        (jnp.equal(u, MOST), [False, False, True]), (jnp.maximum(u, MOST - 1), [MOST - 1, MOST - 1, MOST]), (jnp.bitwise_xor(u, MOST), [MOST - 1, 1, 0]),
        (jnp.less(MOST - 1, u), [False, False, True]), (jnp.where(u == 1, MOST - 1, u), [MOST - 1, MOST - 1, MOST]),
        (jnp.where(u == 1, u, MOST), [1, MOST, MOST]), (jnp.clip(u, 2, MOST - 1), [2, MOST - 1, MOST - 1]), (u.clip(max=MOST - 1), [1, MOST - 1, MOST - 1]),
        (jnp.searchsorted(u, MOST)[None], [2]), (jnp.searchsorted(u, MOST - 1, side="right")[None], [2]), (jnp.searchsorted(u, MOST, method="sort")[None], [2]),
        (jnp.unique(u, size=4, fill_value=MOST - 1), [1, MOST - 1, MOST, MOST - 1]), (jnp.floor_divide(u, MOST - 1), [0, 1, 1]), (jnp.remainder(u, MOST), [1, MOST - 1, 0]),
        (jnp.remainder(MOST, u), [0, 1, 0]), (jnp.fmod(u, MOST), [1, MOST - 1, 0]), (jnp.divmod(u, MOST)[1], [1, MOST - 1, 0]), (jnp.fmax(u, MOST - 1), [MOST - 1, MOST - 1, MOST]),
        (jnp.fmin(MOST - 1, u), [1, MOST - 1, MOST - 1]), (jnp.select([u > 1], [u], MOST), [MOST, MOST - 1, MOST]), (jnp.pad(u, (1, 0), constant_values=MOST), [MOST, 1, MOST - 1, MOST]),
        (jnp.insert(u, 0, MOST), [MOST, 1, MOST - 1, MOST]), (jnp.put(u, 0, MOST, inplace=False), [MOST, MOST - 1, MOST]),
        (jnp.fill_diagonal(jnp.zeros((2, 2), "uint64"), MOST, inplace=False)[1], [0, MOST]),
        (jax.jit(lambda u: jnp.fmax(u, MOST - 1) % MOST)(u), [MOST - 1, MOST - 1, 0]), (jax.vmap(lambda x: jnp.pad(x[None], 1, constant_values=MOST)[::2])(u)[2], [MOST, MOST]),
    ):  # fmt: skip
        assert out.tolist() == want
    for f in (lambda: jnp.equal(jnp.arange(2), MOST), lambda: jnp.maximum(u, 2**64), lambda: jnp.add(jnp.arange(2), 2**63), lambda: jnp.where(True, 2**63, 1)):
        with pytest.raises(OverflowError):
            f()


@pytest.mark.ours
def test_operators_of_uint64_beside_large_integers(jax, jnp, x64):
    u = jnp.array([1, MOST - 1, MOST], "uint64")
    for out, want in (
        (u == MOST, [False, False, True]), (u != MOST - 1, [True, False, True]), (u < MOST, [True, True, False]), (u >= MOST - 1, [False, True, True]),
        (MOST > u, [True, True, False]), (u ^ MOST, [MOST - 1, 1, 0]), (u & (MOST - 1), [0, MOST - 1, MOST - 1]), (MOST - u, [MOST - 1, 1, 0]), (u + MOST, [0, MOST - 2, MOST - 1]),
        (u // (MOST - 1), [0, 1, 1]), (u % MOST, [1, MOST - 1, 0]), (MOST % u, [0, 1, 0]), (MOST // u, [MOST, 1, 1]), (divmod(u, MOST)[0], [0, 0, 1]),
        (jax.jit(lambda u: jnp.where(u == MOST, u, MOST - 1))(u), [MOST - 1, MOST - 1, MOST]), (jax.vmap(lambda x: x == MOST)(u), [False, False, True]),
    ):  # fmt: skip
        assert out.dtype in ("bool", "uint64") and out.tolist() == want
    for f in (lambda: u == 2**64, lambda: jnp.arange(2) == MOST, lambda: jnp.arange(2, dtype="uint32") + MOST):
        with pytest.raises(OverflowError):
            f()
