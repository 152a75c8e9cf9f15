"""The extension, as the Python package sees it. Everything in the package is written on these names."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

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
    sharding: Any
    def update(self, **changes: Any) -> ShapedArray: ...
    def strip_weak_type(self) -> ShapedArray: ...
    def to_tangent_aval(self) -> ShapedArray: ...
    def at_least_vspace(self) -> ShapedArray: ...

class Array:
    """What the extension knows of an array. `install_methods` puts the rest on the class."""
    aval: ShapedArray
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    itemsize: int
    nbytes: int
    at: Any
    device: Any
    sharding: Any
    committed: bool
    addressable_shards: list[Any]
    global_shards: list[Any]
    is_fully_addressable: bool
    is_fully_replicated: bool
    def item(self, *args: int) -> Any: ...
    def tolist(self) -> Any: ...
    def tobytes(self, order: str = ...) -> bytes: ...
    def block_until_ready(self) -> Array: ...
    def is_ready(self) -> bool: ...
    def delete(self) -> None: ...
    def is_deleted(self) -> bool: ...
    def devices(self) -> set[Device]: ...
    def platform(self) -> str: ...
    def addressable_data(self, index: int) -> Array: ...
    def copy_to_host_async(self) -> None: ...
    def on_device_size_in_bytes(self) -> int: ...
    def unsafe_buffer_pointer(self) -> int: ...

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
    description: str
    client: Any
    process_index: int
    host_id: int
    local_hardware_id: int
    def addressable_memories(self) -> list[Any]: ...
    def default_memory(self) -> Any: ...
    def memory(self, kind: str) -> Any: ...
    def memory_stats(self) -> None: ...

# ---- operations: no promotion or broadcasting but what lax's primitive itself does
def bind(name: str, /, *operands: Any, **params: Any) -> Array | tuple[Array, ...]: ...
def elementwise(name: str, /, *operands: Any) -> Array: ...
def promote_dtypes(*xs: Any) -> tuple[Array, ...]: ...
def promote_dtypes_inexact(*xs: Any) -> tuple[Array, ...]: ...
def promote_shapes(*xs: Any) -> tuple[Array, ...]: ...
def result_type(*xs: Any, return_weak_type_flag: bool = ...) -> np.dtype | tuple[np.dtype, bool]: ...
def broadcast_to(x: Any, shape: Sequence[int]) -> Array: ...
def asarray(x: Any, dtype: Any = ..., copy: bool | None = ..., weak_type: bool | None = ...) -> Array: ...
def get_aval(x: Any) -> ShapedArray:
    """TypeError "Argument 'a' of type <class 'str'> is not a valid JAX type" for anything that is no array type."""

# ---- programs in files
class ProgramFamily:
    """Closed programs of one function at several sizes, as one. ValueError where they differ in more than sizes."""
    sizes: list[list[int]]
    used: list[bool]
    def __init__(self, names: Sequence[str], traced: Sequence[ClosedJaxpr]) -> None: ...

class ExportedProgram:
    """An exported program of flat arguments and results."""
    fun_name: str
    platforms: list[str]
    disabled_checks: list[str]
    notes: bytes
    calling_convention: int
    variables: list[str]
    constraints: list[str]
    inputs: list[tuple[str, bool, tuple[int | str, ...], np.dtype, bool]]
    outputs: list[tuple[str, bool, tuple[int | str, ...], np.dtype, bool]]
    code: bytes
    has_vjp: bool
    def __init__(
        self,
        fun_name: str,
        *,
        platforms: Sequence[tuple[str, int]],
        families: Sequence[tuple[ProgramFamily, Sequence[str]]],
        disabled_checks: Sequence[str],
        notes: bytes,
        calling_convention: int,
        variables: Sequence[tuple[str, int]],
        constraints: Sequence[tuple[str, str, bool]],
        get_vjp: Callable[[], ExportedProgram] | None,
    ) -> None: ...
    @staticmethod
    def load(blob: bytes) -> ExportedProgram: ...
    def serialize(self, vjp_order: int, notes: bytes) -> bytes: ...
    def call(self, leaves: Sequence[Any]) -> list[Any]: ...
    def vjp(self) -> ExportedProgram | None: ...
    def text(self) -> str: ...

def symbolic_sizes(table: dict[int, Any] | None) -> dict[int, Any] | None:
    """From now on the shapes of tracers and types have the table's objects in the place of its keys, on this thread; returns the table before."""

# ---- pytrees
class PyTreeDef:
    num_leaves: int
    num_nodes: int
    def unflatten(self, leaves: Iterable[Any]) -> Any: ...
    def flatten_up_to(self, tree: Any) -> list[Any]: ...
    def compose(self, inner: PyTreeDef) -> PyTreeDef: ...
    def children(self) -> list[PyTreeDef]: ...
    def node_data(self) -> tuple[type, Any] | None: ...
    def walk(self, f_node: Callable[[Any], Any], f_leaf: Callable[[Any], Any] | None, leaves: Iterable[Any]) -> Any: ...
    def from_iterable_tree(self, tree: Any) -> Any: ...
    @staticmethod
    def from_node_data_and_children(node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]) -> PyTreeDef: ...
    @staticmethod
    def deserialize_using_proto(registry: Any, data: bytes) -> PyTreeDef: ...

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

class Primitive:
    """What an equation does; one object for each primitive."""
    name: str
    multiple_results: bool
    is_builtin: bool
    call_primitive: ClassVar[bool]
    map_primitive: ClassVar[bool]
    impl: Callable
    def __init__(self, name: str) -> None: ...
    def bind(self, *operands: Any, **params: Any) -> Any: ...
    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> Any: ...
    def def_impl(self, impl: Callable) -> Callable: ...
    def def_abstract_eval(self, abstract_eval: Callable) -> Callable: ...
    def get_bind_params(self, params: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]: ...

def primitive(name: str) -> Primitive | None: ...
def primitives() -> list[tuple[str, bool, list[tuple[str, str]]]]: ...

class JaxprEqn:
    primitive: Primitive
    params: Mapping[str, Any]
    invars: list[Var | Literal]
    outvars: list[Var]
    effects: set[str]
    ctx: None
    source_info: Any
    def replace(self, **changes: Any) -> JaxprEqn: ...

class Jaxpr:
    eqns: list[JaxprEqn]
    constvars: list[Var]
    invars: list[Var]
    outvars: list[Var | Literal]
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]
    effects: set[str]
    debug_info: None
    def pretty_print(
        self,
        *,
        source_info: bool = ...,
        name_stack: bool = ...,
        print_shapes: bool = ...,
        custom_pp_eqn_rules: bool = ...,
        print_effects: bool = ...,
        use_color: bool = ...,
    ) -> str: ...
    def replace(
        self,
        *,
        constvars: Sequence[Var] | None = ...,
        invars: Sequence[Var] | None = ...,
        outvars: Sequence[Var | Literal] | None = ...,
        eqns: Sequence[JaxprEqn] | None = ...,
        effects: Any = ...,
        debug_info: Any = ...,
    ) -> Jaxpr: ...

class ClosedJaxpr:
    """A closed program; prints in JAX's notation. `Program` is another name of it."""
    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> None: ...
    jaxpr: Jaxpr
    consts: list[Any]
    literals: list[Any]
    eqns: list[JaxprEqn]
    constvars: list[Var]
    invars: list[Var]
    outvars: list[Var | Literal]
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]
    effects: set[str]
    def pretty_print(
        self,
        *,
        source_info: bool = ...,
        name_stack: bool = ...,
        print_shapes: bool = ...,
        custom_pp_eqn_rules: bool = ...,
        print_effects: bool = ...,
        use_color: bool = ...,
    ) -> str: ...
    def replace(self, *, jaxpr: Jaxpr | None = ..., consts: Sequence[Any] | None = ...) -> ClosedJaxpr: ...

Program = ClosedJaxpr

class Linear:
    """A linear map with its residuals. A pytree: `residuals` are its leaves, `replace` puts others in their place."""
    residuals: list[Any]
    program: ClosedJaxpr
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]
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
def linear_transpose(fun: Flat, in_avals: Sequence[ShapedArray]) -> tuple[list[ShapedArray], Linear]: ...
def vmap(fun: Flat, operands: Leaves, in_dims: Sequence[int | None], axis_size: int, axis_name: Any,
         out_dims: Callable[[], Sequence[int | None]]) -> list[Any]:
    """`out_dims` is asked after `fun` has run."""
def pmap(fun: Flat, operands: Leaves, in_dims: Sequence[int | None], out_dims: Callable[[], Sequence[int | None]], axis_size: int,
         axis_name: Any, devices: Sequence[Device] | None = ..., donated: Sequence[bool] = ..., name: str = ...) -> list[Any]: ...
def checkpoint(program: Program, operands: Leaves, prevent_cse: bool = ..., policy: Callable[..., Any] | None = ...) -> list[Any]:
    """The program's captured values come before the operands."""
def identities(values: Leaves) -> list[int | None]:
    """Equal integers for one and the same value; None for what is no array."""
def trace_context() -> tuple[int, tuple[tuple[str, int], ...]]:
    """The configuration and the named axes in scope: what a trace depends on besides its function and arguments."""
def custom_jvp_call(name: str, fun: Flat, rule: Callable[[Leaves, Leaves], tuple[Leaves, Leaves]], operands: Leaves,
                    symbolic_zeros: bool = ...) -> list[Any]:
    """The rule's tangents are instantiated unless `symbolic_zeros`, where a zero is None."""
def custom_vjp_call(name: str, fun: Flat, fwd: Callable[..., tuple[Leaves, Leaves]], bwd: Callable[[Leaves, Leaves], Leaves], operands: Leaves,
                    symbolic_zeros: bool = ...) -> list[Any]: ...
def callback(fun: Callable[..., Leaves], operands: Leaves, out_avals: Sequence[ShapedArray], kind: str, ordered: bool,
             vmap_method: str | None) -> list[Any]:
    """`kind` is "pure", "io", "debug" or "print"; `fun` takes and returns numpy arrays."""
def abstract_values(on: bool) -> bool:
    """Whether a `ShapeDtypeStruct` stands for an array of its type on this thread, of which only types are asked. Returns what was before."""
def eval_context() -> AbstractContextManager[None]:
    """Operations inside run at once, whatever trace is current."""

class TraceTag:
    """One trace; equal for one and the same, and then `main` is one object. `what` is "jit", "vmap", "grad", .."""
    what: str
    main: str

def staging() -> TraceTag | None:
    """The program under construction that operations end in now; None where they end in results."""
def traces() -> list[TraceTag]:
    """The traces that operations pass through now, the innermost first."""
def trace_of(x: Any) -> TraceTag | None:
    """The trace that a traced value belongs to; None for any other value."""
def at_root() -> bool:
    """Whether nothing is traced on this thread."""

class HostCallable:
    """What an equation calls, its parameter `callback`; `callback_func` is the function."""
    callback_func: Callable

class JitFunction:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def lower(self, *args: Any, **kwargs: Any) -> Any: ...
    def trace(self, *args: Any, **kwargs: Any) -> Any: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def clear_cache(self) -> None: ...

def jit(fun: Callable, static_argnums: tuple[int, ...] = ..., static_argnames: tuple[str, ...] = ..., donate_argnums: tuple[int, ...] = ...,
        donate_argnames: tuple[str, ...] = ..., keep_unused: bool = ..., inline: bool = ..., device: Any = ..., backend: str | None = ...,
        compiler_options: dict[str, Any] | None = ...) -> JitFunction: ...

class Traced:
    in_avals: Any
    out_avals: Any
    jaxpr: ClosedJaxpr
    out_info: Any
    args_info: Any
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    fun_name: str
    donate_argnums: tuple[int, ...]
    def lower(self, *, lowering_platforms: tuple[str, ...] | None = ...) -> Lowered: ...

class Lowered:
    in_avals: Any
    out_avals: Any
    out_info: Any
    args_info: Any
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    fun_name: str
    def as_text(self, dialect: str | None = ..., *, debug_info: bool = ...) -> str: ...
    donate_argnums: tuple[int, ...]
    def compiler_ir(self, dialect: str | None = ...) -> Any: ...
    def compile(self, compiler_options: Any = ..., *, device_assignment: Any = ...) -> Compiled: ...
    def cost_analysis(self) -> dict[str, float]: ...

class Executable:
    def as_text(self) -> str: ...
    def local_devices(self) -> list[Device]: ...
    def cost_analysis(self) -> dict[str, float]: ...

class Compiled:
    in_avals: Any
    out_avals: Any
    out_info: Any
    donate_argnums: tuple[int, ...]
    input_shardings: Any
    output_shardings: Any
    def runtime_executable(self) -> Executable: ...
    def call(self, *args: Any, **kwargs: Any) -> Any: ...
    args_info: Any
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    fun_name: str
    device: Device
    def as_text(self) -> str: ...
    def cost_analysis(self) -> dict[str, float]: ...
    def memory_analysis(self) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

# ---- configuration
def config_define(name: str, default: Any, traced: bool) -> None: ...
def config_get(name: str) -> Any: ...
def checks_values() -> bool: ...
def config_set(name: str, value: Any) -> None: ...
def config_push(name: str, value: Any) -> None:
    """For this thread, until the matching `config_pop`."""

def config_pop(name: str) -> None: ...

# ---- devices and arrays
def devices(backend: str | None = ...) -> list[Device]: ...
def default_backend() -> str: ...
def process_index() -> int: ...
def process_count() -> int: ...
def device_put(x: Any, device: Any = ..., src: Any = ...) -> Array: ...
def exclude_source(path: str) -> None: ...
def scope_enter(name: str) -> int: ...
def scope_leave(outer: int) -> None: ...
def clear_caches() -> None: ...
def effects_barrier() -> None: ...
