"""What kernels are written with: conditions, loops, scratch, and small functions of sizes.

    @pl.when(pl.program_id(1) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

Invariant: each is a composition of the language's own; what asks for a core of its own, or for another compiler, says so.
"""

import contextlib
import functools

import numpy as np

from ... import _core, lax
from ..._api import jit
from ...debug import print as _print
from ...numpy import broadcast_to, dot, zeros_like
from ...tree_util import tree_leaves, tree_map
from .. import checkify
from ._call import scratch
from ._references import KernelRef
from ._specs import CostEstimate, MemoryRef

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


def when(condition, /):
    """A decorator that calls the function where the condition holds. condition: a truth, which may be traced."""

    def call(f):
        if isinstance(condition, (bool, np.bool_)):
            if condition:
                f()
        else:
            lax.cond(condition, lambda: f() and None, lambda: None)

    return call


def loop(lower, upper, *, init_carry=None, step=1, unroll=None):
    """A decorator that calls the function with each number of a range, and what it returned before.

    Args:
      lower, upper, step: the range.
      init_carry: what is handed on; None: nothing, and the function takes the number alone.
      unroll: as of `fori_loop`.
    """

    def call(body):
        at = lambda i: lower + i * step
        run = (lambda i, _: body(at(i))) if init_carry is None else (lambda i, carry: body(at(i), carry))
        return lax.fori_loop(0, cdiv(upper - lower, step), run, init_carry, unroll=unroll)

    return call


def run_scoped(f, *types, collective_axes=(), **kw_types):
    """`f` of references to scratch of these types, which are there while it runs. Returns what it returns.

    collective_axes: there are no axes of cores.
    """
    made = lambda kinds: tree_map(scratch, kinds)
    return f(*made(list(types)), **made(kw_types))


def with_scoped(*types, collective_axes=(), **kw_types):
    """A decorator: the function gets its arguments, then references to scratch of these types."""

    def decorator(f):
        return lambda *args: run_scoped(functools.partial(f, *args), *types, collective_axes=collective_axes, **kw_types)

    return decorator


def run_state(f):
    """`f` of references as a function of the values that they begin with, which returns those that they end with."""

    def run(init):
        refs = tree_map(KernelRef, init)
        f(refs)
        return tree_map(lambda r: r[...], refs, is_leaf=lambda x: isinstance(x, KernelRef))

    return run


def select_ref(idx, *refs):
    """The reference of that number, which must be known when the kernel is traced."""
    if len(refs) <= 1:
        raise ValueError("At least two refs are required for pl.select_ref.")
    return refs[int(idx)]


def empty_like(x):
    """Arrays of the shapes and dtypes of a tree's leaves."""
    return tree_map(lambda leaf: lax.empty(tuple(leaf.shape), leaf.dtype), x)


def empty_ref_like(x):
    """A reference to an array of this shape and dtype."""
    if not hasattr(x, "shape"):
        raise ValueError(f"empty_ref_like does not support {type(x)}")
    return KernelRef(zeros_like(x) if not isinstance(x, MemoryRef) else lax.empty(x.shape, x.dtype))


# ---------------------------------------------------------------- semaphores: counters, as calls run one after another


def semaphore_read(sem_or_view):
    """What a semaphore counts."""
    return lax.convert_element_type(sem_or_view[...], np.int32)


def semaphore_signal(sem_or_view, inc=1, *, device_id=None, device_id_type=None, core_index=None):
    """Adds to a semaphore. Those of other devices and cores are not there.

    Raises:
      NotImplementedError: it is another device's.
    """
    if device_id is not None or device_id_type is not None or core_index is not None:
        raise NotImplementedError("semaphore_signal: a kernel runs on one core of one device")
    sem_or_view.addupdate(lax.convert_element_type(inc, sem_or_view.dtype))


def semaphore_wait(sem_or_view, value=1, *, decrement=True):
    """Takes from a semaphore what it waits for; nothing else runs, so there is no waiting."""
    if decrement:
        sem_or_view.addupdate(lax.neg(lax.convert_element_type(value, sem_or_view.dtype)))


# ---------------------------------------------------------------- sizes and numbers


def cdiv(a, b):
    """`a / b`, rounded up.

    >>> cdiv(7, 2)
    4
    """
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return lax.div(a + (b - 1), b)


def align_to(x, a):
    """The least multiple of `a` that is not below `x`."""
    return cdiv(x, a) * a


def next_power_of_2(x):
    """The least power of two that is not below `x`."""
    return 1 if x == 0 else 2 ** (x - 1).bit_length()


def strides_from_shape(shape):
    """How many elements lie between neighbours along each axis."""
    strides = [1] * len(shape)
    for k in reversed(range(len(shape) - 1)):
        strides[k] = strides[k + 1] * shape[k + 1]
    return tuple(strides)


def multiple_of(x, values):
    """`x`, which is said to be a multiple; a compiler need not be told."""
    del values
    return x


def reciprocal(x, *, approx=False):
    """`1 / x`. approx: whether it may be rough; it is not."""
    return lax.div(_core.asarray(1, x.dtype), x) if isinstance(x, _core.Array) else 1 / x


def delay(nanos):
    """Waits on hardware; here it does nothing."""
    del nanos


def debug_print(fmt, *args):
    """Prints when the kernel runs: `fmt` with the arguments in its braces, or behind it."""
    _print(fmt if "{" in fmt else fmt + " {}" * len(args), *args)


# ---------------------------------------------------------------- settings


class _Switch:
    """A setting: `with switch(True): ...`, and `switch.value`."""

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


def debug_checks_enabled():
    """Whether `debug_check` checks."""
    return enable_debug_checks.value


def debug_check(condition, message):
    """`checkify.check`, where `enable_debug_checks` is on."""
    if enable_debug_checks.value:
        checkify.check(condition, message)


@contextlib.contextmanager
def pallas_export_experimental(dynamic_shapes):
    """Exports of kernels with symbolic sizes: kernels are programs, and exported as these are."""
    del dynamic_shapes
    yield


def estimate_cost(fun, *args, **kwargs):
    """What a function costs on arguments, as a `CostEstimate`: its operations as they are counted before it is compiled, and the bytes of what it takes and gives.

    >>> estimate_cost(lambda x: x @ x, jnp.ones((4, 4)))
    CostEstimate(flops=128, transcendentals=0, bytes_accessed=128, remote_bytes_transferred=0)
    """
    lowered = jit(fun).lower(*args, **kwargs)
    cost = lowered.cost_analysis()
    leaves = [*tree_leaves((args, kwargs)), *tree_leaves(lowered.out_info)]
    size = sum(int(np.prod(x.shape, dtype=np.int64)) * np.dtype(x.dtype).itemsize for x in leaves if hasattr(x, "dtype"))
    return CostEstimate(int(cost.get("flops", 0)), int(cost.get("transcendentals", 0)), size)


# ---------------------------------------------------------------- what there is not


def core_map(mesh, **options):
    """Refused: kernels over the cores of an accelerator, each with its own program counter.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError("core_map: there are no cores to map over here; `pallas_call` with a grid runs anywhere")


def kernel(body=None, out_type=(), *, mesh, **options):
    """Refused: kernels over a mesh of cores.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(f"pallas.kernel: there is no mesh of cores here ({mesh!r}); `pallas_call` with a grid runs anywhere")


def get_global(what):
    """Refused: memory that several kernels share.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError("get_global: kernels share no memory here; hand the array on")


def lower_as_mlir(f, *args, **kwargs):
    """Refused: kernels are lowered to no text of another compiler.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError("lower_as_mlir: kernels are programs of the language here: jit(f).lower(..).as_text()")
