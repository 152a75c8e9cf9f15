"""Conversion of arguments of `ferrax.numpy`'s functions, and the inner jitted functions that JAX's
programs contain.

Invariant: lists and tuples are not arrays: they raise TypeError with the function's name and the
argument's position.

    >>> jnp.sum([1, 2])
    Traceback (most recent call last):
        ...
    TypeError: sum requires ndarray or scalar arguments, got <class 'list'> at position 0.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ... import _core
from ..._base.config import numpy_dtype_promotion
from ..._base.dtypes import canonicalize_dtype, is_inexact, is_key, requested
from ..._base.flags import FLAGS
from ..._base.shapes import common_shape
from ..._core import bind, elementwise
from ...errors import ConcretizationTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")

Array = _core.Array
_DTYPES, _RANKS = FLAGS["jax_numpy_dtype_promotion"], FLAGS["jax_numpy_rank_promotion"]
_ARRAY_LIKE = (Array, np.ndarray, np.generic, bool, int, float, complex)


def is_arraylike(x) -> bool:
    """Whether x is an array or a number."""
    return isinstance(x, _ARRAY_LIKE) or hasattr(x, "__jax_array__")


def check_arraylike(name, *args):
    """Raises TypeError unless every argument is an array or a number."""
    for i, x in enumerate(args):
        if not isinstance(x, _ARRAY_LIKE) and not hasattr(x, "__jax_array__"):
            raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(x)} at position {i}.")


def converted(x):
    """The result of `__jax_array__` of x, for the functions that use it; x itself if it has
    none.
    """
    return x if isinstance(x, _ARRAY_LIKE) or not hasattr(x, "__jax_array__") else x.__jax_array__()


def shape_of(x) -> tuple:
    """The shape of an array, a number, or what `__jax_array__` of an object gives."""
    return np.shape(converted(x))


def ndim_of(x) -> int:
    """The rank of an object with a shape."""
    return len(shape_of(x))


def as_array(name, x) -> Array:
    """`x` as an Array. Raises TypeError if it is not one."""
    if isinstance(x, Array):
        return x
    check_arraylike(name, x)
    return _core.asarray(converted(x))


def pointwise(name, primitive, *xs) -> Array:
    """A primitive applied with promotion and broadcasting, with errors that name the public
    function.
    """
    try:
        return elementwise(primitive, *xs)
    except TypeError:
        check_arraylike(name, *xs)
        raise
    except OverflowError:
        return exactly(functools.partial(elementwise, primitive), *xs)


def beside_unsigned(xs):
    """The arguments with Python integers as scalars of uint64, where that alone represents one of
    them and all arrays beside it are of that dtype; else None.
    """
    xs = [converted(x) for x in xs]
    large = [type(x) is int and 1 << 63 <= x < 1 << 64 for x in xs]
    dtypes = {x.dtype for x in xs if hasattr(x, "dtype")} - {np.dtype(bool)}
    if not any(large) or dtypes != {np.dtype(np.uint64)}:
        return None
    return [np.uint64(x) if over else x for x, over in zip(xs, large, strict=True)]


def exactly(f, *xs):
    """f(*xs), where Python integers among the arguments may be such as only uint64 represents."""
    try:
        return f(*xs)
    except OverflowError:
        exact = beside_unsigned(xs)
        if exact is None:
            raise
    return f(*exact)


def beside(array, values):
    """An array and the values that are written into it, as arrays."""
    return exactly(lambda *xs: [_core.asarray(x) for x in xs], array, values)


def check_promotion(*xs, ranks=False):
    """Raises, or warns, if a setting forbids the promotion of the arguments of the public function
    that calls this.

    For a function whose body promotes through other functions: those calls are the library's, to
    which the settings do not apply (`whose.rs`).
    ranks: whether ranks are promoted too.
    """
    if _DTYPES.changed and _DTYPES.get() == "strict":
        _core.result_type(*xs)
    if ranks and _RANKS.changed:
        _core.promote_shapes(*(x for x in xs if not isinstance(x, int)))


def promote(name, *xs):
    """The arguments as arrays of one dtype."""
    check_arraylike(name, *xs)
    return promote_dtypes(name, *xs)


def promote_dtypes(name, *xs):
    """Arrays and numbers as arrays of one dtype.

    Raises TypeError for a random key combined with a number.
    """
    try:
        return _core.promote_dtypes(*xs)
    except OverflowError:
        return exactly(_core.promote_dtypes, *xs)
    except ValueError:
        dtypes = [_core.asarray(x).dtype for x in xs]
        if any(is_key(d) for d in dtypes):
            raise TypeError(f"{name} does not accept dtypes {', '.join(d.name for d in dtypes)}.") from None
        raise


def promote_inexact(name, *xs):
    """The arguments as arrays of one float or complex dtype."""
    check_arraylike(name, *xs)
    try:
        return _core.promote_dtypes_inexact(*xs)
    except OverflowError:
        return _core.promote_dtypes_inexact(*as_floats(xs))


def as_floats(xs):
    """Python integers as floats, for those that no integer dtype can represent."""
    return [float(x) if type(x) is int else x for x in xs]


def operands_of(name, xs, preferred=None):
    """(operands, dtype, weak) of a product: its dtype, the requested one if any, and whether it is
    weak.

    The operands keep their own dtypes.
    """
    xs = [_core.asarray(x) for x in xs]
    if preferred is not None:
        return xs, requested(name, preferred), False
    dtype, weak = _core.result_type(*xs, return_weak_type_flag=True)
    # A Python number beside a narrow array: the product must not be narrower than an operand.
    return [convert(x, dtype, weak=True) if x.weak_type and x.dtype.itemsize > dtype.itemsize else x for x in xs], dtype, weak


def _promoting_freely(f):
    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        with numpy_dtype_promotion("standard"):
            return f(*args, **kwargs)

    return wrapped


def jitted(name: str, static: Any = (), fun: Any = None, mixes: bool = False) -> Callable[[_F], _F]:
    """Decorator: the function as an inner `jit` equation of that name, as JAX's programs show it.

    static: names of the parameters that are not arrays. mixes: its own arithmetic mixes dtypes,
    which strict promotion does not forbid.
    """

    def decorate(f):
        if mixes:
            f = _promoting_freely(f)
        f.__name__ = f.__qualname__ = name
        return _core.jit(f, static_argnames=tuple(static))

    return decorate if fun is None else decorate(fun)


def unsupported(name, **arguments):
    """Raises NotImplementedError for arguments that numpy has and arrays that cannot change do not:
    out, order, ...
    """
    for argument, value in arguments.items():
        if value is not None:
            raise NotImplementedError(f"The '{argument}' argument to {name} is not supported.")


def concrete_or_error(x, context):
    """`x` as a numpy array; that of a value which is followed by derivatives alone is known.

    Raises ConcretizationTypeError for another traced value.
    """
    if isinstance(x, _core.Tracer):
        value = bind("stop_gradient", x) if is_inexact(x.dtype) else x
        if isinstance(value, _core.Tracer):
            raise ConcretizationTypeError(x, context)
        x = value
    return np.asarray(x)


def convert(x, dtype, weak=False) -> Array:
    """`x` as an array of `dtype`, weakly typed or not; without an equation if nothing changes."""
    dtype = canonicalize_dtype(dtype)
    if not isinstance(x, Array):
        return _core.asarray(x, dtype)
    if x.dtype == dtype and x.weak_type == weak:
        return x
    return bind("convert_element_type", x, new_dtype=dtype, weak_type=weak)


def scalar_like(value, x):
    """A scalar that meets x without changing its dtype, nor its being weakly typed."""
    if x.weak_type:
        # Weakly typed arrays have the default dtype of Python numbers.
        kind = x.dtype.kind
        return complex(value) if kind == "c" else float(value) if kind == "f" else int(value)
    return x.dtype.type(value)


def filled_like(value, x):
    """A scalar in place of an array like x filled with it.

    Such an array is strongly typed; weak numbers are only combined with weak scalars.
    """
    return constant(value, x.dtype) if x.ndim else scalar_like(value, x)


def constant(value, dtype):
    """A scalar of the dtype; a literal in equations."""
    return np.dtype(dtype).type(value)


def broadcast_constant(value, shape):
    """The scalar spread over `shape`."""
    return bind("broadcast_in_dim", value, shape=tuple(shape), broadcast_dimensions=()) if shape else _core.asarray(value)


def broadcast_together(*xs):
    """The arrays broadcast to their common shape."""
    shape = common_shape(*[x.shape for x in xs])
    return tuple([x if tuple(x.shape) == shape else _core.broadcast_to(x, shape) for x in xs])
