"""The extension, as the Python package sees it. Everything in the package is written on these names."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

Leaves = Sequence[Any]

class ShapedArray:
    """A type of arrays. `str()` is "float32[2,3]"."""
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    def __init__(self, shape: Sequence[int], dtype: Any, weak_type: bool = ...) -> None: ...
    def str_short(self, short_dtypes: bool = ...) -> str: ...
    def update(self, **kwargs: Any) -> ShapedArray: ...

class Array:
    aval: ShapedArray
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool

class ArrayImpl(Array):
    """A concrete array."""

class Tracer(Array): ...

class KeyTy:
    """The dtype of typed PRNG keys."""
    name: str
    itemsize: int
    kind: str
    type: Any

def install_methods(methods: dict[str, Callable], properties: dict[str, Callable]) -> None:
    """Puts functions of an array on the class as methods and properties."""

class Device:
    id: int
    platform: str
    device_kind: str
    process_index: int

# ---- operations: no promotion or broadcasting but what lax's primitive itself does
def bind(name: str, /, *operands: Any, **params: Any) -> Array | tuple[Array, ...]: ...
def elementwise(name: str, /, *operands: Any) -> Array: ...
def promote_dtypes(*xs: Any) -> tuple[Array, ...]: ...
def promote_dtypes_inexact(*xs: Any) -> tuple[Array, ...]: ...
def promote_shapes(*xs: Any) -> tuple[Array, ...]: ...
def result_type(*xs: Any) -> np.dtype: ...
def broadcast_to(x: Any, shape: Sequence[int]) -> Array: ...
def asarray(x: Any, dtype: Any = ..., copy: bool | None = ..., weak_type: bool | None = ...) -> Array: ...
def get_aval(x: Any) -> ShapedArray:
    """TypeError "Argument 'a' of type <class 'str'> is not a valid JAX type" for anything that is no array type."""

# ---- pytrees
class PyTreeDef:
    num_leaves: int
    num_nodes: int
    def unflatten(self, leaves: Iterable[Any]) -> Any: ...
    def flatten_up_to(self, tree: Any) -> list[Any]: ...
    def compose(self, inner: PyTreeDef) -> PyTreeDef: ...
    def children(self) -> list[PyTreeDef]: ...
    def node_data(self) -> tuple[type, Any] | None: ...

class DictKey:
    key: Any
    def __init__(self, key: Any) -> None: ...
class GetAttrKey:
    name: str
    def __init__(self, name: str) -> None: ...
class SequenceKey:
    idx: int
    def __init__(self, idx: int) -> None: ...
class FlattenedIndexKey:
    key: int
    def __init__(self, key: int) -> None: ...

def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = ...) -> tuple[list[Any], PyTreeDef]: ...
def tree_flatten_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = ...) -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]: ...
def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = ...) -> list[Any]: ...
def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = ...) -> PyTreeDef: ...
def tree_map(f: Callable, tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = ...) -> Any: ...
def flatten_one_level(tree: Any) -> tuple[list[Any], Any] | None: ...
def flatten_one_level_with_keys(tree: Any) -> tuple[tuple[tuple[Any, Any], ...], Any] | None: ...
def treedef_is_leaf(treedef: PyTreeDef) -> bool: ...
def is_tree_node(cls: type) -> bool: ...
def register_dataclass(cls: type, data_fields: Sequence[str], meta_fields: Sequence[str]) -> None: ...
def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any: ...
def treedef_tuple(treedefs: list[PyTreeDef]) -> PyTreeDef: ...
def register_pytree_node(cls: type, flatten: Callable, unflatten: Callable, flatten_with_keys: Callable | None = ...) -> None: ...

# ---- transforms of flat functions; None in a list of tangents or cotangents is a symbolic zero, going in and coming out
class Var:
    aval: ShapedArray
    count: int

class Literal:
    val: Any
    aval: ShapedArray

class PrimitiveName:
    """What an equation does; equal to any primitive of that name."""
    name: str
    multiple_results: bool
    def bind(self, *operands: Any, **params: Any) -> Any: ...
    def get_bind_params(self, params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]: ...

class JaxprEqn:
    primitive: PrimitiveName
    params: dict[str, Any]
    invars: list[Var | Literal]
    outvars: list[Var]
    effects: set[str]
    def replace(self, *, params: dict[str, Any]) -> JaxprEqn: ...

class Jaxpr:
    eqns: list[JaxprEqn]
    constvars: list[Var]
    invars: list[Var]
    outvars: list[Var | Literal]
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]
    effects: set[str]

class ClosedJaxpr:
    """A closed program; prints in JAX's notation. `Program` is another name of it."""
    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> None: ...
    jaxpr: Any
    consts: list[Any]
    eqns: list[Any]
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]

Program = ClosedJaxpr

class Linear:
    """A linear map with its residuals. A pytree: `residuals` are its leaves, `replace` puts others in their place."""
    residuals: list[Any]
    def apply(self, tangents: Leaves) -> list[Any]: ...
    def transpose(self, cotangents: Leaves) -> list[Any]: ...
    def replace(self, residuals: Leaves) -> Linear: ...

Flat = Callable[..., Leaves]

def axis_size(name: Any) -> int:
    """The size of the named axis in scope. NameError where there is none."""
def make_program(fun: Flat, avals: Sequence[ShapedArray], axis_env: Sequence[tuple[Any, int]] = ..., user_fun: Any = ...,
                 arg_paths: Sequence[str] | Callable[[], Sequence[str]] | None = ..., what: str = ...) -> tuple[Program, list[Any]]:
    """`user_fun`, `arg_paths` and `what` ("jit", "scan", ...) word the errors of tracing and nothing else."""
def eval_program(program: Program, consts: Leaves, *args: Any) -> list[Any]: ...
def jvp(fun: Flat, primals: Leaves, tangents: Leaves) -> tuple[list[Any], list[Any]]: ...
def linearize(fun: Flat, primals: Leaves) -> tuple[list[Any], Linear]: ...
def linear_transpose(fun: Flat, avals: Sequence[ShapedArray]) -> tuple[list[ShapedArray], Linear]: ...
def vmap(fun: Flat, operands: Leaves, in_dims: Sequence[int | None], axis_size: int, axis_name: Any,
         out_dims: Callable[[], Sequence[int | None]]) -> list[Any]:
    """`out_dims` is asked after `fun` has run."""
def pmap(fun: Flat, operands: Leaves, in_dims: Sequence[int | None], out_dims: Callable[[], Sequence[int | None]], axis_size: int,
         axis_name: Any, devices: Sequence[Device] | None, donated: Sequence[bool], name: str, key: Any) -> list[Any]:
    """`key` is hashable and equal for equal traces of equal functions: what a cache may go by."""
def checkpoint(program: Program, operands: Leaves, prevent_cse: bool = ..., policy: Callable[..., Any] | None = ...) -> list[Any]:
    """The program's captured values come before the operands."""
def trace_context() -> tuple[int, tuple[tuple[str, int], ...]]:
    """The configuration and the named axes in scope: what a trace depends on besides its function and arguments."""
def custom_jvp_call(name: str, fun: Flat, rule: Callable[[Leaves, Leaves], tuple[Leaves, Leaves]], operands: Leaves,
                    symbolic_zeros: bool = ...) -> list[Any]:
    """The rule's tangents are instantiated unless `symbolic_zeros`, where a zero is None."""
def custom_vjp_call(name: str, fun: Flat, fwd: Callable[..., tuple[Leaves, Leaves]], bwd: Callable[[Leaves, Leaves], Leaves], operands: Leaves,
                    symbolic_zeros: bool = ...) -> list[Any]: ...
def callback(fun: Callable[..., Leaves], operands: Leaves, out_avals: Sequence[ShapedArray], kind: str, ordered: bool,
             vmap_method: str | None) -> list[Any]:
    """`kind` is "pure", "io" or "debug"; `fun` takes and returns numpy arrays."""
def eval_context() -> AbstractContextManager[None]:
    """Operations inside run at once, whatever trace is current."""

class JitFunction:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def lower(self, *args: Any, **kwargs: Any) -> Any: ...
    def trace(self, *args: Any, **kwargs: Any) -> Any: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def clear_cache(self) -> None: ...

def jit(fun: Callable, *, static_argnums: tuple[int, ...] = ..., static_argnames: tuple[str, ...] = ..., donate_argnums: tuple[int, ...] = ...,
        donate_argnames: tuple[str, ...] = ..., keep_unused: bool = ..., inline: bool = ..., device: Any = ..., backend: str | None = ...) -> JitFunction: ...

class Traced:
    jaxpr: ClosedJaxpr
    out_info: Any
    args_info: Any
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    fun_name: str
    def lower(self) -> Lowered: ...

class Lowered:
    out_info: Any
    args_info: Any
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    fun_name: str
    def as_text(self, dialect: str | None = ..., *, debug_info: bool = ...) -> str: ...
    def compile(self, compiler_options: Any = ...) -> Compiled: ...
    def cost_analysis(self) -> dict[str, float]: ...

class Compiled:
    out_info: Any
    args_info: Any
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    fun_name: str
    device: Device
    def as_text(self) -> str: ...
    def cost_analysis(self) -> dict[str, float]: ...
    def memory_analysis(self) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

# ---- primitives defined in Python, looked up by `bind` under their names
def register_primitive(name: str, multiple_results: bool, abstract_eval: Callable, impl: Callable, rules: Callable[[str], Callable | None]) -> None:
    """`rules(kind)` returns the registered rule for "jvp", "transpose" or "batching", or None."""

# ---- configuration
config: Any
def config_get(name: str) -> Any: ...
def config_set(name: str, value: Any) -> None: ...
def config_set_local(name: str, value: Any) -> Any:
    """For this thread; None goes back to the process's value. Returns what was set for the thread before, or None."""

# ---- devices and arrays
def devices(backend: str | None = ...) -> list[Device]: ...
def default_backend() -> str: ...
def process_index() -> int: ...
def process_count() -> int: ...
def device_put(x: Any, device: Any) -> Array: ...
def clear_caches() -> None: ...
def effects_barrier() -> None: ...
