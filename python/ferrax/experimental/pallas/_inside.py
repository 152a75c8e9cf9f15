"""Functions for use inside kernels: conditions, loops, scratch, and small functions of sizes.

    @pl.when(pl.program_id(1) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

Invariant: each is a composition of other primitives; functions that need separate cores, or another
compiler, raise NotImplementedError.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

import numpy as np

from ... import _core, lax
from ..._base.tracebacks import api_boundary
from ..._tracing.jit import jit
from ...debug import print as _print
from ...numpy import broadcast_to, dot, zeros_like
from ...tree_util import tree_leaves, tree_map
from .. import checkify
from ._call import scratch
from ._references import KernelRef
from ._specs import CostEstimate, MemoryRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..._core import Array
    from ...typing import ArrayLike

_T = TypeVar("_T")

__all__ = [
    "align_to",
    "broadcast_to",
    "cdiv",
    "core_map",
    "debug_check",
    "debug_checks_enabled",
    "debug_print",
    "delay",
    "dot",
    "empty_like",
    "empty_ref_like",
    "enable_debug_checks",
    "enable_poison_buffers",
    "estimate_cost",
    "get_global",
    "kernel",
    "loop",
    "lower_as_mlir",
    "multiple_of",
    "next_power_of_2",
    "pallas_export_experimental",
    "reciprocal",
    "run_scoped",
    "run_state",
    "select_ref",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "strides_from_shape",
    "when",
    "with_scoped",
]


def when(condition: ArrayLike, /) -> Callable[[Callable[[], Any]], None]:
    """A decorator that calls a function without arguments at once if a condition holds.

    Args:
        condition: bool, or boolean scalar array.

    Returns:
        A function of the function.
    """

    def call(f):
        if isinstance(condition, (bool, np.bool_)):
            if condition:
                f()
        else:
            lax.cond(condition, lambda: f() and None, lambda: None)

    return call


def loop(lower: int | Array, upper: int | Array, *, init_carry: Any = None, step: int = 1, unroll: Any = None) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that calls a function with each number of a range, and with its last result.

    Args:
        lower, upper: ints or integer scalar arrays, the first number and the end of the range,
          which is excluded.
        init_carry: pytree of arrays, the first carry; None: the function takes the number alone.
        step: int, the difference between numbers.
        unroll: int or bool, as in `lax.fori_loop`.

    Returns:
        A function of `body(number)` or `body(number, carry)` that runs the loop and returns the
        last carry.
    """

    def call(body):
        at = lambda i: lower + i * step
        run = (lambda i, _: body(at(i))) if init_carry is None else (lambda i, carry: body(at(i), carry))
        return lax.fori_loop(0, cdiv(upper - lower, step), run, init_carry, unroll=unroll)

    return call


@api_boundary
def run_scoped(f: Callable[..., _T], *types: Any, collective_axes: Any = (), **kw_types: Any) -> _T:
    """Calls a function with references to scratch memory, which exists while the function runs.

    Args:
        f: function of references.
        *types, **kw_types: types of scratch memory, or pytrees of them, one for each argument.
        collective_axes: accepted without effect.

    Returns:
        What `f` returns.
    """
    made = lambda kinds: tree_map(scratch, kinds)
    return f(*made(list(types)), **made(kw_types))


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable[[Callable[..., _T]], Callable[..., _T]]:
    """A decorator that gives a function references to scratch memory behind its other arguments.

    Args:
        *types, **kw_types: types of scratch memory, or pytrees of them, one for each further
          argument.
        collective_axes: accepted without effect.

    Returns:
        A function of the function.
    """

    def decorator(f):
        return lambda *args: run_scoped(functools.partial(f, *args), *types, collective_axes=collective_axes, **kw_types)

    return decorator


@api_boundary
def run_state(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of references as a function of values.

    Args:
        f: function of a pytree of references.

    Returns:
        A function of the pytree of first values, that returns the pytree of last values.
    """

    def run(init):
        refs = tree_map(KernelRef, init)
        f(refs)
        return tree_map(lambda r: r[...], refs, is_leaf=lambda x: isinstance(x, KernelRef))

    return run


def select_ref(idx: int, *refs: _T) -> _T:
    """One of several references, selected by an index.

    Args:
        idx: int, known when the kernel is traced.
        *refs: two references or more.

    Returns:
        Reference.

    Raises:
        ValueError: there are fewer than two references.
    """
    if len(refs) <= 1:
        raise ValueError("At least two refs are required for pl.select_ref.")
    return refs[int(idx)]


def empty_like(x: Any) -> Any:
    """Arrays whose elements have no particular values.

    Args:
        x: pytree of arrays or of anything with a shape and a dtype.

    Returns:
        Pytree of arrays of these shapes and dtypes.
    """
    return tree_map(lambda leaf: lax.empty(tuple(leaf.shape), leaf.dtype), x)


def empty_ref_like(x: Any) -> KernelRef:
    """A reference to an array whose elements have no particular values.

    Args:
        x: array, or anything with a shape and a dtype.

    Returns:
        Reference to an array of this shape and dtype.

    Raises:
        ValueError: `x` has no shape.
    """
    if not hasattr(x, "shape"):
        raise ValueError(f"empty_ref_like does not support {type(x)}")
    return KernelRef(zeros_like(x) if not isinstance(x, MemoryRef) else lax.empty(x.shape, x.dtype))


# ---------------------------------------------------------------- semaphores: counters, as calls run one after another


def semaphore_read(sem_or_view: Any) -> Array:
    """The count of a semaphore.

    Args:
        sem_or_view: semaphore.

    Returns:
        int32 scalar array.
    """
    return lax.convert_element_type(sem_or_view[...], np.int32)


def semaphore_signal(sem_or_view: Any, inc: int = 1, *, device_id: Any = None, device_id_type: Any = None, core_index: Any = None) -> None:
    """Adds to the count of a semaphore.

    Args:
        sem_or_view: semaphore.
        inc: int, or integer scalar array.
        device_id, device_id_type, core_index: must be None.

    Returns:
        None.

    Raises:
        NotImplementedError: the semaphore is another device's or core's.
    """
    if device_id is not None or device_id_type is not None or core_index is not None:
        raise NotImplementedError("semaphore_signal: a kernel runs on one core of one device")
    sem_or_view.addupdate(lax.convert_element_type(inc, sem_or_view.dtype))


def semaphore_wait(sem_or_view: Any, value: int = 1, *, decrement: bool = True) -> None:
    """Subtracts from the count of a semaphore.

    It does not wait, because the iterations of a kernel run in sequence.

    Args:
        sem_or_view: semaphore.
        value: int, or integer scalar array.
        decrement: bool; False: the count stays.

    Returns:
        None.
    """
    if decrement:
        sem_or_view.addupdate(lax.neg(lax.convert_element_type(value, sem_or_view.dtype)))


# ---------------------------------------------------------------- sizes and numbers


@overload
def cdiv(a: int, b: int) -> int: ...


@overload
def cdiv(a: Array, b: int | Array) -> Array: ...


@overload
def cdiv(a: int, b: Array) -> Array: ...


def cdiv(a: int | Array, b: int | Array) -> int | Array:
    """The quotient of two positive integers, rounded up.

    Args:
        a: int, or integer scalar array.
        b: int, or integer scalar array.

    Returns:
        int, or a scalar array where an argument is one.

    >>> cdiv(7, 2)
    4
    """
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return lax.div(a + (b - 1), b)


@overload
def align_to(x: int, a: int) -> int: ...


@overload
def align_to(x: Array, a: int | Array) -> Array: ...


@overload
def align_to(x: int, a: Array) -> Array: ...


def align_to(x: int | Array, a: int | Array) -> int | Array:
    """The least multiple of a number that is at least another number.

    Args:
        x: int, or integer scalar array.
        a: int, the divisor.

    Returns:
        int, or a scalar array where `x` is one.
    """
    return cdiv(x, a) * a


def next_power_of_2(x: int) -> int:
    """The least power of two that is at least a number.

    Args:
        x: int, not negative.

    Returns:
        int; 1 for 0.
    """
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The distance between neighbours along each axis of an array in row-major order.

    Args:
        shape: sequence of ints.

    Returns:
        Tuple of ints, in elements.
    """
    strides = [1] * len(shape)
    for k in reversed(range(len(shape) - 1)):
        strides[k] = strides[k + 1] * shape[k + 1]
    return tuple(strides)


def multiple_of(x: _T, values: Any) -> _T:
    """Declares that a number is a multiple of others. It has no effect.

    Args:
        x: integer scalar.
        values: int or sequence of ints.

    Returns:
        `x`.
    """
    del values
    return x


@overload
def reciprocal(x: float, *, approx: bool = False) -> float: ...


@overload
def reciprocal(x: Array, *, approx: bool = False) -> Array: ...


def reciprocal(x: float | Array, *, approx: bool = False) -> float | Array:
    """The reciprocal, 1 / x.

    Args:
        x: array or number.
        approx: bool; whether the result may be inexact. It is exact to rounding in any case.

    Returns:
        Array of the shape and dtype of `x`.
    """
    return lax.div(_core.asarray(1, x.dtype), x) if isinstance(x, _core.Array) else 1 / x


def delay(nanos: Any) -> None:
    """Accepted without effect: waits on hardware.

    Args:
        nanos: int, nanoseconds.

    Returns:
        None.
    """
    del nanos


def debug_print(fmt: str, *args: Any) -> None:
    """Prints values each time the kernel runs.

    Args:
        fmt: a format string in the manner of `str.format`; values are printed behind it where it
          has no braces.
        *args: arrays.

    Returns:
        None.
    """
    _print(fmt if "{" in fmt else fmt + " {}" * len(args), *args)


# ---------------------------------------------------------------- settings


class _Switch:
    """A setting that is on inside a `with` block: `with switch(True): ..`.

    Its value is `switch.value`.

    Args:
        on: bool.

    Returns:
        The context manager.
    """

    def __init__(self, name):
        self.name, self.value = name, False

    def __repr__(self):
        return self.name

    @contextlib.contextmanager
    def __call__(self, on):
        before, self.value = self.value, on
        try:
            yield
        finally:
            self.value = before


enable_debug_checks = _Switch("enable_debug_checks")
enable_poison_buffers = _Switch("enable_poison_buffers")


def debug_checks_enabled() -> bool:
    """Whether `enable_debug_checks` is on.

    Returns:
        bool.
    """
    return enable_debug_checks.value


def debug_check(condition: ArrayLike, message: str) -> None:
    """A `checkify.check` that is active only while `enable_debug_checks` is on.

    Args:
        condition: boolean scalar.
        message: str.

    Returns:
        None.
    """
    if enable_debug_checks.value:
        checkify.check(condition, message)


@contextlib.contextmanager
def pallas_export_experimental(dynamic_shapes: Any) -> Iterator[None]:
    """Context manager without effect: kernels are exported as other programs are, at symbolic sizes
    too.

    Args:
        dynamic_shapes: bool.

    Yields:
        None.
    """
    del dynamic_shapes
    yield


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """The cost of a function: its operations as counted before it is compiled, and the bytes of its
    arguments and results.

    Args:
        fun: function of pytrees of arrays.
        *args, **kwargs: its arguments.

    Returns:
        CostEstimate.

    >>> estimate_cost(lambda x: x @ x, jnp.ones((4, 4)))
    CostEstimate(flops=128, transcendentals=0, bytes_accessed=128, remote_bytes_transferred=0)
    """
    lowered = jit(fun).lower(*args, **kwargs)
    cost = lowered.cost_analysis()
    leaves = [*tree_leaves((args, kwargs)), *tree_leaves(lowered.out_info)]
    size = sum(int(np.prod(x.shape, dtype=np.int64)) * np.dtype(x.dtype).itemsize for x in leaves if hasattr(x, "dtype"))
    return CostEstimate(int(cost.get("flops", 0)), int(cost.get("transcendentals", 0)), size)


# ---------------------------------------------------------------- missing functions


def core_map(mesh: Any, **options: Any) -> NoReturn:
    """Refused: kernels over the cores of an accelerator, each with its own program counter.

    Args:
        mesh: mesh of cores.
        **options: options of the kernel.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("core_map: there are no cores to map over here; `pallas_call` with a grid runs anywhere")


def kernel(body: Any = None, out_type: Any = (), *, mesh: Any, **options: Any) -> NoReturn:
    """Refused: kernels over a mesh of cores.

    Args:
        body: function of references.
        out_type: types of the results.
        mesh: mesh of cores.
        **options: options of the kernel.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(f"pallas.kernel: there is no mesh of cores here ({mesh!r}); `pallas_call` with a grid runs anywhere")


def get_global(what: Any) -> NoReturn:
    """Refused: memory that several kernels share.

    Args:
        what: its type.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("get_global: kernels share no memory here; hand the array on")


def lower_as_mlir(f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: kernels are not lowered to the text of another compiler.

    Args:
        f: function.
        *args, **kwargs: its arguments.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("lower_as_mlir: kernels are programs of the language here: jit(f).lower(..).as_text()")
