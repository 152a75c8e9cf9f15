"""Names from the modules in which JAX calls, dispatches and reports: `dispatch`, `xla_bridge`, `traceback_util`, `lax.utils` and others.

Invariant: each is a few lines over Ferrax's own functions; functions that need another compiler are absent.
"""

import functools
import inspect
import logging
import operator
import sys
import warnings

import numpy as np

from .. import _core, numpy
from .._base.config import config
from .._base.tracebacks import filter_traceback
from .._runtime.callback import debug_callback
from .._runtime.devices import client_of, default_backend
from .._tracing.trace import effects_barrier
from .._transforms.grad import jvp
from .._transforms.linear import vjp
from ..core import Primitive
from ..interpreters.xla import apply_primitive
from ..lax._tokens import Token
from ..tree_util import tree_flatten
from ._distributions import FOLLOWS_JAXLIB
from ._internals import api_boundary, exclude_paths, include_frame, register_exclusion

__all__ = [
    "Token",
    "api_boundary",
    "apply_primitive",
    "backends_are_initialized",
    "canonicalize_platform",
    "check_callable",
    "debug_callback",
    "ensure_index",
    "ensure_index_tuple",
    "exclude_paths",
    "expand_platform_alias",
    "filter_traceback",
    "fun_signature",
    "fun_sourceinfo",
    "include_frame",
    "infer_argnums_and_argnames",
    "is_hashable",
    "is_known_platform",
    "known_platforms",
    "primitive_callable",
    "register_exclusion",
    "resolve_kwargs",
    "shaped_abstractify",
    "standard_primitive",
    "wait_for_tokens",
    "warn",
]

logger = logging.getLogger("jax")
wait_for_tokens = effects_barrier
JAXPR_TRACE_EVENT = "/jax/core/compile/jaxpr_trace_duration"
BACKEND_COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"
version_str, jaxlib_extension_version, ifrt_version = FOLLOWS_JAXLIB, 446, 61
version = tuple(map(int, FOLLOWS_JAXLIB.split(".")))
DEFAULT_CPU_PLATFORM = "cpu"


# ---------------------------------------------------------------- functions and their arguments


def check_callable(fun):
    """Raises an error for an object that cannot be transformed.

    Raises:
      TypeError: it is not callable, is an unbound static method, or is a generator function.
    """
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun}")
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")


def fun_signature(fun):
    """A function's signature, or None."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def fun_sourceinfo(fun):
    """`name at file:line`, or None."""
    while hasattr(fun, "func"):
        fun = fun.func
    fun = inspect.unwrap(fun)
    try:
        return f"{fun.__name__} at {fun.__code__.co_filename}:{fun.__code__.co_firstlineno}"
    except AttributeError:
        return None


def is_hashable(arg):
    """Whether something can be a key."""
    try:
        hash(arg)
    except TypeError:
        return False
    return True


def infer_argnums_and_argnames(sig, argnums, argnames):
    """Numbers and names of the same arguments, each found from the other where only one is given."""
    if argnums is None and argnames is None:
        return (), ()
    numbers = None if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = None if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if numbers is not None and names is not None:
        return numbers, names
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = list(sig.parameters.values()) if sig is not None else []
    if numbers is None:
        return tuple(i for i, p in enumerate(parameters) if p.kind in positional and p.name in names), names
    rows = [(i % len(parameters), parameters[i]) for i in numbers if -len(parameters) <= i < len(parameters)]
    return numbers, tuple(p.name for _, p in rows if p.kind in named)


def resolve_kwargs(fun, args, kwargs):
    """All arguments as positional ones."""
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"The following keyword arguments could not be resolved to positions: {', '.join(bound.kwargs)}")
    return bound.args


def shaped_abstractify(x):
    """The type of a value, or of an object with a shape and a dtype."""
    try:
        return _core.get_aval(x)
    except TypeError:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise
        return _core.ShapedArray(tuple(x.shape), x.dtype, weak_type=getattr(x, "weak_type", False))


# ---------------------------------------------------------------- primitives


def standard_primitive(shape_rule, dtype_rule, name, weak_type_rule=None, sharding_rule=None, vma_rule=None, **_rules):
    """A primitive whose result has the shape and the dtype that two rules say."""
    prim = Primitive(name)

    def abstract_eval(*avals, **params):
        weak = weak_type_rule(*avals, **params) if weak_type_rule is not None else all(a.weak_type for a in avals)
        return _core.ShapedArray(tuple(shape_rule(*avals, **params)), dtype_rule(*avals, **params), weak_type=weak)

    prim.def_abstract_eval(abstract_eval)
    return prim


def initial_style_jaxprs(fun, in_tree, in_avals):
    """The program of a function of trees, its captured values, and the tree of its results."""
    trees = []

    def flat(*leaves):
        out, tree = tree_flatten(fun(*in_tree.unflatten(leaves)))
        trees[:] = [tree]
        return out

    program, consts = _core.make_program(flat, list(in_avals), user_fun=fun)
    return program.jaxpr, list(consts), trees[0]


# ---------------------------------------------------------------- platforms


def known_platforms():
    """The platforms there are."""
    return {"cpu", "gpu"}


def is_known_platform(platform):
    """Whether a platform has a known name."""
    return platform in ("cpu", "gpu", "cuda", "rocm", "tpu", "METAL")


def canonicalize_platform(platform):
    """A platform's own name."""
    return platform


def expand_platform_alias(platform):
    """The platforms for a name."""
    return ["cuda", "rocm"] if platform == "gpu" else [platform]


def backends_are_initialized():
    """Whether a device has been opened."""
    return _core.has_cpus()


def get_device_backend(device=None):
    """The client of a device, by default of the default one."""
    return client_of(default_backend()) if device is None else device.client


# ---------------------------------------------------------------- reports


def warn(deprecation_id, message, stacklevel):
    """Warns of something old."""
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)


_deprecated = {}


def register(deprecation_id):
    """Names something old."""
    _deprecated.setdefault(deprecation_id, False)


def accelerate(deprecation_id):
    """Says that something old is an error from now on."""
    _deprecated[deprecation_id] = True


def is_accelerated(deprecation_id):
    """Whether something old is an error."""
    return _deprecated.get(deprecation_id, False)


def explicit_x64():
    """The setting for 64-bit types."""
    return config.jax_enable_x64


python_version = sys.version_info


# ---------------------------------------------------------------- how jacobians are put together


def check_nothing(*_):
    """Does nothing: values that cannot be differentiated raise errors in the transformations."""


def ensure_index(x):
    """Numbers as a number or a tuple."""
    try:
        return operator.index(x)
    except TypeError:
        return tuple(map(operator.index, x))


def std_basis(pytree):
    """The basis of a tree's leaves, stacked: one-hot vectors in the tree's structure."""
    leaves = tree_flatten(pytree)[0]
    n = sum(int(np.size(x)) for x in leaves)
    dtype = numpy.result_type(*leaves)
    return _unravel_axis(pytree, numpy.eye(n, dtype=dtype), -1, leaves)


def _unravel_axis(pytree, arr, axis, leaves=None):
    leaves, tree = tree_flatten(pytree)
    axis = axis % arr.ndim
    shapes = [(*arr.shape[:axis], *np.shape(x), *arr.shape[axis + 1 :]) for x in leaves]
    ends = np.cumsum([int(np.size(x)) for x in leaves])[:-1]
    return tree.unflatten([p.reshape(s) for p, s in zip(numpy.split(arr, ends, axis), shapes, strict=True)])


def jacfwd_unravel(input_pytree, output_pytree_leaf, arr):
    """The last axis of a jacobian in the structure of the inputs."""
    return _unravel_axis(input_pytree, arr, -1)


def jacrev_unravel(output_pytree, input_pytree_leaf, arr):
    """The first axis of a jacobian in the structure of the results."""
    return _unravel_axis(output_pytree, arr, 0)


def jvp_wrapped(fun, primals, tangents, has_aux=False):
    """`jvp` of a `WrappedFun`."""
    return jvp(fun.call_wrapped, primals, tangents, has_aux=has_aux)


def vjp_wrapped(fun, *primals, has_aux=False):
    """`vjp` of a `WrappedFun`."""
    return vjp(fun.call_wrapped, *primals, has_aux=has_aux)


# ---------------------------------------------------------------- runs over several machines: there is one


class ClusterEnv:
    """How the processes of a run find each other; a run has one."""

    _cluster_types = ()

    @classmethod
    def is_env_present(cls):
        """Whether this process was started so."""
        return False


class SlurmCluster(ClusterEnv):
    """A run that Slurm started."""


def ensure_index_tuple(x):
    """An integer, or integers, as a tuple."""
    x = ensure_index(x)
    return x if isinstance(x, tuple) else (x,)


@functools.lru_cache(maxsize=256)
def primitive_callable(prim, **params):
    """A primitive with parameters as a compiled function of its operands; `primitive_callable.cache_clear` forgets all of them."""
    return _core.jit(lambda *args: prim.bind(*args, **params))
