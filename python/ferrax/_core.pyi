"""The extension, as the Python package sees it. Everything in the package is written on these names."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, Generic, Never, NoReturn, ParamSpec, Self, TypeVar, final, overload

import numpy as np

from ._runtime.devices import Memory
from .numpy._indexing.at import IndexUpdateHelper
from .experimental.layout import Format
from .sharding import NamedSharding, PartitionSpec, Shard, Sharding
from .typing import ArrayLike, DTypeLike

_P = ParamSpec("_P")
_R = TypeVar("_R")

Leaves = Sequence[Any]

class ShapedArray:
    """A type of arrays. `str()` is "float32[2,3]"."""
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    vma: frozenset[str]
    manual_axis_type: Any
    mat: Any
    def __new__(cls, shape: Sequence[int], dtype: Any, weak_type: bool = ..., *, sharding: Any = ..., manual_axis_type: Any = ...) -> Self: ...
    def str_short(self, short_dtypes: bool = ...) -> str: ...
    sharding: Any
    def update(self, **changes: Any) -> ShapedArray: ...
    def _element(self) -> ShapedArray: ...
    def strip_weak_type(self) -> ShapedArray: ...
    def to_tangent_aval(self) -> ShapedArray: ...
    def at_least_vspace(self) -> ShapedArray: ...

class Array:
    """An array, or a tracer in its place. Arrays do not change: `x.at[i].set(y)` is a new one."""
    __array_priority__: ClassVar[int]
    @property
    def __numpy_dtype__(self) -> np.dtype[Any]: ...
    @property
    def aval(self) -> ShapedArray: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields to another's, as a Python number's does."""
    @property
    def ndim(self) -> int:
        """The number of axes."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
    @property
    def at(self) -> IndexUpdateHelper:
        """`x.at[index].set(y)` and related methods: a new array with some elements changed."""
    @property
    def device(self) -> Device | Sharding:
        """The device that holds the array, or its sharding if there are several."""
    @property
    def sharding(self) -> Sharding:
        """How the array lies on devices."""
    @property
    def committed(self) -> bool:
        """Whether the array was put on its device by name."""
    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts of the array, one a device."""
    @property
    def global_shards(self) -> list[Shard]: ...
    @property
    def is_fully_addressable(self) -> bool: ...
    @property
    def is_fully_replicated(self) -> bool: ...
    @property
    def T(self) -> Array:
        """The array with its axes reversed."""
    @property
    def mT(self) -> Array:
        """The array with its last two axes exchanged."""
    @property
    def real(self) -> Array:
        """The real part."""
    @property
    def imag(self) -> Array:
        """The imaginary part."""
    @property
    def flat(self) -> Array:
        """All elements as one axis."""
    def _repr_html_(self) -> str | None: ...
    @property
    def format(self) -> Format:
        """The order of the axes in memory, and the sharding."""
    @property
    def device_buffer(self) -> Never:
        """Withdrawn: AttributeError."""
    @property
    def device_buffers(self) -> Never:
        """Withdrawn: AttributeError."""
    @property
    def _trace(self) -> TraceTag | None: ...
    def item(self, *args: int) -> Any:
        """One element as a Python number."""
    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
    def tobytes(self, order: str = ...) -> bytes:
        """The elements' bytes."""
    def block_until_ready(self) -> Self:
        """Waits until the elements are computed; raises what went wrong. Returns the array."""
    def is_ready(self) -> bool:
        """Whether the elements are computed."""
    def delete(self) -> None:
        """Gives the memory back; every later use of the array is an error."""
    def is_deleted(self) -> bool:
        """Whether the memory was given back."""
    def devices(self) -> set[Device]:
        """The devices that hold the array."""
    def platform(self) -> str: ...
    def addressable_data(self, index: int) -> Array: ...
    def copy_to_host_async(self) -> None: ...
    def on_device_size_in_bytes(self) -> int: ...
    def unsafe_buffer_pointer(self) -> int: ...
    def all(self, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """Whether all elements along `axis` are nonzero."""
    def any(self, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """Whether any element along `axis` is nonzero."""
    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """The index of the first maximum along `axis` (in the flattened array if None), nan counting as largest."""
    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """The index of the first minimum along `axis` (in the flattened array if None), nan counting as smallest."""
    def argpartition(self, kth: int, axis: int = -1) -> Array:
        """The indices that partition a (see `partition`) along `axis`."""
    def argsort(self, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True, descending: bool = False, dtype: Any = None) -> Array:
        """The indices that sort a along `axis` (flattened if None). dtype: of the indices. Raises ValueError for an axis out of bounds, a scalar's too."""
    def astype(self, dtype: DTypeLike | None, copy: bool = False, device: Device | Sharding | None = None) -> Array:
        """x converted to `dtype` (None: the default float). Complex to real drops the imaginary part."""
    def byteswap(self) -> Array:
        """The elements with their bytes in reverse order."""
    def choose(self, choices: Array | np.ndarray | Sequence[ArrayLike], out: None = None, mode: str = 'raise') -> Array:
        """choices[a[i]][i] for every i. a: integer array; choices: arrays that broadcast with it."""
    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """arr limited to [min, max]; where min > max, max. Raises ValueError for complex values."""
    def clone(self) -> Array:
        """A copy on the same device."""
    def compress(self, condition: ArrayLike, axis: int | None = None, *, out: None = None, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
        """The slices along `axis` where `condition` is true."""
    def conj(self) -> Array:
        """Complex conjugate; real x is itself."""
    def conjugate(self) -> Array:
        """Complex conjugate; real x is itself."""
    def copy(self, order: str | None = None) -> Array:
        """A copy of a."""
    def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Running product along `axis` (flattened if None)."""
    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Running sum along `axis` (flattened if None)."""
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """The elements a[..., i, i + offset] of the two axes, along a last axis. Raises ValueError below rank 2."""
    def dot(self, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
        """Product of scalars, vectors and matrices; for more axes, the last of a against the second last of b."""
    def flatten(self, order: str = 'C', *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
        """All elements as one axis."""
    def max(self, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """Maximum over `axis`; nan if any element is nan. Raises ValueError for no elements unless `initial` is given."""
    def mean(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """Arithmetic mean over `axis`; integers become float, half precision is summed in float32."""
    def min(self, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """Minimum over `axis`; nan if any element is nan. Raises ValueError for no elements unless `initial` is given."""
    def nonzero(self, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> tuple[Array, ...]:
        """The indices of nonzero elements, one vector for each axis."""
    def prod(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
        """Product over `axis`. initial: multiplied into the result; where: true for the elements to include."""
    def ptp(self, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False) -> Array:
        """Maximum minus minimum over `axis`."""
    def ravel(self, order: str = 'C', *, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
        """a flattened to one axis."""
    def repeat(self, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
        """Each element (or slice along `axis`) repeated `repeats` times, a number or one for each."""
    def reshape(self, *args: Any, order: str = 'C', out_sharding: NamedSharding | PartitionSpec | None = None) -> Array:
        """The same elements in another shape: `x.reshape(2, 3)` or `x.reshape((2, 3))`; one size may be -1."""
    def round(self, decimals: int = 0, out: None = None) -> Array:
        """a rounded to `decimals` decimals, ties to even. Raises ValueError for bool, NotImplementedError for integers and negative decimals."""
    def searchsorted(self, v: ArrayLike, side: str = 'left', sorter: ArrayLike | None = None, *, method: str = 'scan') -> Array:
        """Where the elements of v would be inserted into the sorted vector a, before ("left") or behind ("right") equal ones."""
    def sort(self, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True, descending: bool = False) -> Array:
        """a sorted along `axis` (flattened if None)."""
    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array:
        """a without its axes of size 1, or without `axis`. Raises ValueError where the size is not 1."""
    def std(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0, keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: int | float | None = None) -> Array:
        """Standard deviation over `axis`: the square root of `var`."""
    def sum(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
        """Sum over `axis`. initial: added to the result; where: true for the elements to include."""
    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """a with two axes exchanged."""
    def take(self, indices: ArrayLike, axis: int | None = None, out: None = None, mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: ArrayLike | None = None) -> Array:
        """The elements of a at `indices` along `axis` (of the flattened array if None); negative indices count from the end, booleans are 0 and 1."""
    def to_device(self, device: Any, *, stream: Any = None) -> Array:
        """The array on another device."""
    def trace(self, offset: ArrayLike = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Sum of the diagonal of two axes. Raises ValueError below rank 2."""
    def transpose(self, *args: Any) -> Array:
        """The array with its axes permuted: `x.transpose(1, 0)` or `x.transpose((1, 0))`; reversed if none are given."""
    def var(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0, keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: int | float | None = None) -> Array:
        """Variance over `axis`: mean squared distance from the mean, over n - ddof. `correction` is another name for ddof; mean: if known."""
    def view(self, dtype: DTypeLike | None = None, type: Any = None) -> Array:
        """The same bits as another dtype; the last axis grows or shrinks with the element's size."""
    def __add__(self, other: ArrayLike, /) -> Array: ...
    def __radd__(self, other: ArrayLike, /) -> Array: ...
    def __sub__(self, other: ArrayLike, /) -> Array: ...
    def __rsub__(self, other: ArrayLike, /) -> Array: ...
    def __mul__(self, other: ArrayLike, /) -> Array: ...
    def __rmul__(self, other: ArrayLike, /) -> Array: ...
    def __truediv__(self, other: ArrayLike, /) -> Array: ...
    def __rtruediv__(self, other: ArrayLike, /) -> Array: ...
    def __floordiv__(self, other: ArrayLike, /) -> Array: ...
    def __rfloordiv__(self, other: ArrayLike, /) -> Array: ...
    def __mod__(self, other: ArrayLike, /) -> Array: ...
    def __rmod__(self, other: ArrayLike, /) -> Array: ...
    def __matmul__(self, other: ArrayLike, /) -> Array: ...
    def __rmatmul__(self, other: ArrayLike, /) -> Array: ...
    def __and__(self, other: ArrayLike, /) -> Array: ...
    def __rand__(self, other: ArrayLike, /) -> Array: ...
    def __or__(self, other: ArrayLike, /) -> Array: ...
    def __ror__(self, other: ArrayLike, /) -> Array: ...
    def __xor__(self, other: ArrayLike, /) -> Array: ...
    def __rxor__(self, other: ArrayLike, /) -> Array: ...
    def __lshift__(self, other: ArrayLike, /) -> Array: ...
    def __rlshift__(self, other: ArrayLike, /) -> Array: ...
    def __rshift__(self, other: ArrayLike, /) -> Array: ...
    def __rrshift__(self, other: ArrayLike, /) -> Array: ...
    def __pow__(self, other: ArrayLike, mod: None = None, /) -> Array: ...
    def __rpow__(self, other: ArrayLike, mod: None = None, /) -> Array: ...
    def __divmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
    def __rdivmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
    def __lt__(self, other: ArrayLike, /) -> Array: ...
    def __le__(self, other: ArrayLike, /) -> Array: ...
    def __gt__(self, other: ArrayLike, /) -> Array: ...
    def __ge__(self, other: ArrayLike, /) -> Array: ...
    def __eq__(self, other: ArrayLike, /) -> Array: ...  # type: ignore[override]  # elementwise
    def __ne__(self, other: ArrayLike, /) -> Array: ...  # type: ignore[override]  # elementwise
    def __hash__(self) -> NoReturn: ...  # arrays are no keys of dictionaries
    def __neg__(self) -> Array: ...
    def __pos__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def __round__(self, ndigits: int | None = None) -> Array: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __getitem__(self, index: Any, /) -> Array: ...
    def __contains__(self, x: ArrayLike) -> bool: ...
    def __copy__(self) -> Array: ...
    def __deepcopy__(self, memo: Any, /) -> Array: ...
    def __array__(self, dtype: Any = ..., copy: bool | None = ...) -> np.ndarray: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType: ...
    def __dlpack__(self, *, stream: Any = ..., max_version: tuple[int, int] | None = ..., dl_device: tuple[int, int] | None = ..., copy: bool | None = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

@final
class ArrayImpl(Array):
    """A concrete array."""

class Tracer(Array): ...

@final
class KeyTy:
    """The dtype of typed PRNG keys."""
    name: str
    itemsize: int
    kind: str
    implementation: str
    type: Any

def install_methods(methods: dict[str, Callable[..., Any]], properties: dict[str, Callable[..., Any]]) -> None:
    """Puts functions of an array on the class as methods and properties."""

@final
class Device:
    id: int
    platform: str
    device_kind: str
    description: str
    client: Any
    process_index: int
    host_id: int
    local_hardware_id: int
    def addressable_memories(self) -> list[Memory]: ...
    def default_memory(self) -> Memory: ...
    def memory(self, kind: str) -> Memory: ...
    def memory_stats(self) -> dict[str, int] | None: ...
    def counters(self) -> dict[str, int]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: Any) -> Any: ...

@final
class DeviceMesh:
    """Devices in a grid with named axes, row major, as layouts of arrays refer to them."""
    def __new__(cls, axes: Sequence[tuple[str, int]], devices: Sequence[Device], label: str, typed: tuple[Sequence[bool], str] | None) -> Self: ...
    @staticmethod
    def numbered(axes: Sequence[tuple[str, int]], devices: Sequence[int], label: str) -> DeviceMesh:
        """The mesh of an equation, which names devices by the executor's numbers."""

# ---- operations: no promotion or broadcasting but what lax's primitive itself does
def bind(name: str, /, *operands: Any, **params: Any) -> Array | tuple[Array, ...]: ...
def elementwise(name: str, /, *operands: Any) -> Array: ...
def promote_dtypes(*xs: Any) -> tuple[Array, ...]: ...
def promote_dtypes_inexact(*xs: Any) -> tuple[Array, ...]: ...
def promote_shapes(*xs: Any) -> tuple[Array, ...]: ...
def result_type(*xs: Any, return_weak_type_flag: bool = ...) -> np.dtype | tuple[np.dtype, bool]: ...
def broadcast_to(x: Any, shape: Sequence[int]) -> Array: ...
def asarray(x: Any, dtype: Any = ..., copy: bool | None = ..., weak_type: bool | None = ...) -> Array: ...
def dlpack_as_bits(capsule: Any) -> str | None: ...
def get_aval(x: Any) -> ShapedArray:
    """TypeError "Argument 'a' of type <class 'str'> is not a valid JAX type" for anything that is no array type."""

# ---- programs in files
@final
class ProgramFamily:
    """Closed programs of one function at several sizes, as one. ValueError where they differ in more than sizes."""
    sizes: list[list[int]]
    used: list[bool]
    def __new__(cls, names: Sequence[str], traced: Sequence[ClosedJaxpr]) -> Self: ...

@final
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
    def __new__(
        cls,
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
    ) -> Self: ...
    @staticmethod
    def load(blob: bytes) -> ExportedProgram: ...
    def serialize(self, vjp_order: int, notes: bytes) -> bytes: ...
    def call(self, leaves: Sequence[Any]) -> list[Any]: ...
    def vjp(self) -> ExportedProgram | None: ...
    def text(self) -> str: ...

def symbolic_sizes(table: dict[int, Any] | None) -> dict[int, Any] | None:
    """From now on the shapes of tracers and types have the table's objects in the place of its keys, on this thread; returns the table before."""

# ---- pytrees
@final
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
    def serialize_using_proto(self) -> bytes: ...

@final
class DictKey:
    key: Any
    def __new__(cls, key: Any) -> Self: ...
@final
class GetAttrKey:
    name: str
    def __new__(cls, name: str) -> Self: ...
@final
class SequenceKey:
    idx: int
    def __new__(cls, idx: int) -> Self: ...
@final
class FlattenedIndexKey:
    key: int
    def __new__(cls, key: int) -> Self: ...

def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = ...) -> tuple[list[Any], PyTreeDef]: ...
def tree_flatten_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = ...) -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]: ...
def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = ...) -> list[Any]: ...
def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = ...) -> PyTreeDef: ...
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = ...) -> Any: ...
def flatten_one_level(tree: Any) -> tuple[list[Any], Any] | None: ...
def flatten_one_level_with_keys(tree: Any) -> tuple[tuple[tuple[Any, Any], ...], Any] | None: ...
def treedef_is_leaf(treedef: PyTreeDef) -> bool: ...
def is_tree_node(cls: type) -> bool: ...
def register_dataclass(cls: type, data_fields: Sequence[str], meta_fields: Sequence[str]) -> None: ...
def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any: ...
def treedef_tuple(treedefs: list[PyTreeDef]) -> PyTreeDef: ...
def register_pytree_node(cls: type, flatten: Callable[..., Any], unflatten: Callable[..., Any], flatten_with_keys: Callable[..., Any] | None = ...) -> None: ...

# ---- transforms of flat functions; None in a list of tangents or cotangents is a symbolic zero, going in and coming out
class Var:
    aval: ShapedArray
    count: int
    def __new__(cls, aval: ShapedArray) -> Self: ...

@final
class Literal:
    val: Any
    aval: ShapedArray
    def __new__(cls, val: Any, aval: ShapedArray | None = ...) -> Self: ...

class Primitive:
    """What an equation does; one object for each primitive."""
    name: str
    multiple_results: bool
    is_builtin: bool
    call_primitive: ClassVar[bool]
    map_primitive: ClassVar[bool]
    impl: Callable[..., Any]
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def __init__(self, name: str) -> None: ...
    def __copy__(self) -> Primitive: ...
    def __deepcopy__(self, memo: Any, /) -> Primitive: ...
    def bind(self, *operands: Any, **params: Any) -> Any: ...
    def bind_with_trace(self, trace: Any, operands: Any, params: dict[str, Any]) -> Any: ...
    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> Any: ...
    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]: ...
    def def_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]: ...
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
    def __new__(
        cls,
        invars: Sequence[Var | Literal],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: Mapping[str, Any],
        effects: Any = ...,
        source_info: Any = ...,
        ctx: Any = ...,
    ) -> Self: ...
    def replace(
        self,
        *,
        invars: Sequence[Var | Literal] | None = ...,
        outvars: Sequence[Var] | None = ...,
        primitive: Primitive | None = ...,
        params: Mapping[str, Any] | None = ...,
        effects: Any = ...,
        source_info: Any = ...,
        ctx: Any = ...,
    ) -> JaxprEqn: ...

@final
class Jaxpr:
    eqns: list[JaxprEqn]
    constvars: list[Var]
    invars: list[Var]
    outvars: list[Var | Literal]
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]
    effects: set[str]
    debug_info: None
    def __new__(
        cls,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Var | Literal],
        eqns: Sequence[JaxprEqn],
        effects: Any = ...,
        debug_info: Any = ...,
        is_high: bool = ...,
    ) -> Self: ...
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

@final
class ClosedJaxpr:
    """A closed program; prints in JAX's notation. `Program` is another name of it."""
    def __new__(cls, jaxpr: Jaxpr, consts: Sequence[Any]) -> Self: ...
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

@final
class Linear:
    """A linear map with its residuals. A pytree: `residuals` are its leaves, `replace` puts others in their place."""
    residuals: list[Any]
    program: ClosedJaxpr
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]
    def apply(self, tangents: Leaves) -> list[Any]: ...
    def transpose(self, cotangents: Leaves, wanted: Sequence[bool] | None = ...) -> list[Any]: ...
    def replace(self, residuals: Leaves) -> Linear: ...

Flat = Callable[..., Leaves]

def axis_size(name: Any) -> int:
    """The size of the named axis in scope. NameError where there is none."""
def is_manual(name: Any) -> bool:
    """Whether types track variation over the named axis in scope, as in a checked shard_map."""
def varying(x: Any, names: Iterable[Any]) -> Any:
    """x as a value that varies over these axes too, where they are manual."""
def make_program(fun: Flat, avals: Sequence[ShapedArray], axis_env: Sequence[tuple[Any, int]] | None = ..., user_fun: Any = ...,
                 arg_paths: Sequence[str] | Callable[[], Sequence[str]] | None = ..., what: str = ..., capture_scalars: bool = ...) -> tuple[Program, list[Any]]:
    """`user_fun`, `arg_paths` and `what` ("jit", "scan", ...) word the errors of tracing and nothing else. `capture_scalars`: scalars written down
    before are captured values, not literals."""
def eval_program(program: Program, consts: Leaves, *args: Any) -> list[Any]: ...
def jvp(fun: Flat, primals: Leaves, tangents: Leaves) -> tuple[list[Any], list[Any]]: ...
def linearize(fun: Flat, primals: Leaves) -> tuple[list[Any], Linear]: ...
def linear_transpose(fun: Flat, in_avals: Sequence[ShapedArray]) -> tuple[list[ShapedArray], Linear]: ...
def vmap(fun: Flat, operands: Leaves, in_dims: Sequence[int | None], axis_size: int, axis_name: Any,
         out_dims: Callable[[], Sequence[int | None]], manual: bool = ..., spmd: Sequence[str] = ...) -> list[Any]:
    """`out_dims` is called after `fun` has run. `manual`: batch elements are the parts of a shard_map, and types track variation over the axis."""
def shard_map(fun: Flat, operands: Leaves, in_specs: Sequence[tuple[Any, Any, Any]], out_specs: Callable[[], Sequence[tuple[Any, Any, Any]]],
              mesh: DeviceMesh, manual: Sequence[int], check_vma: bool, within: Any = ..., unordered: str | None = ...) -> list[Any]:
    """Specs name the axes of the mesh by number: for each dimension, those of sums and those that are reduced. `out_specs` is called after `fun` was traced.
    `unordered`: the name of a function whose ordered effects are refused."""
def checkpoint(program: Program, operands: Leaves, prevent_cse: bool = ..., policy: Callable[..., Any] | None = ...) -> list[Any]:
    """The program's captured values come before the operands."""
def held_objects(program: Program) -> list[Any]:
    """The Python objects that rules, policies and callbacks of a program refer to."""
def identities(values: Leaves) -> list[int | None]:
    """Equal integers for one and the same value; None for what is no array."""
def trace_context() -> tuple[int, tuple[tuple[str, int, bool], ...]]:
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
    """Whether a `ShapeDtypeStruct` is accepted as an array of zeros of its type on this thread. Returns the previous setting."""
def eval_context() -> AbstractContextManager[None]:
    """Operations inside run at once, whatever trace is current."""

@final
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
def note_read(home: TraceTag | None) -> None:
    """Says that a reference of the program `home` was read as a constant."""
def reading_forbidden() -> bool:
    """Whether a program under construction is to have references as inputs."""
def read_mark() -> int:
    """How many such reads there were."""
def reads_outside(mark: int) -> bool:
    """Whether a reference was read since that belongs to none of the programs that were begun since."""
def at_root() -> bool:
    """Whether nothing is traced on this thread."""

@final
class HostCallable:
    """What an equation calls, its parameter `callback`; `callback_func` is the function."""
    callback_func: Callable[..., Any]
    __name__: str

@final
class PjitFunction(Generic[_P, _R]):
    """A function that is traced once for each type of its arguments and compiled."""
    __wrapped__: Callable[_P, _R]
    __name__: str
    __qualname__: str
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __get__(self, instance: None, owner: Any = ..., /) -> PjitFunction[_P, _R]: ...
    @overload
    def __get__(self, instance: object, owner: Any = ..., /) -> PjitFunction[..., _R]: ...
    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...
    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def clear_cache(self) -> None: ...

def jit(fun: Callable[..., Any], static_argnums: tuple[int, ...] = ..., static_argnames: tuple[str, ...] = ..., donate_argnums: tuple[int, ...] = ...,
        donate_argnames: tuple[str, ...] = ..., keep_unused: bool = ..., inline: bool = ..., device: Any = ..., backend: str | None = ...,
        shardings: tuple[Any, Any] | None = ..., compiler_options: dict[str, Any] | None = ...) -> PjitFunction[..., Any]: ...

@final
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

@final
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
    def compiler_ir(self, dialect: str | None = ...) -> ClosedJaxpr | str: ...
    def compile(self, compiler_options: Any = ..., *, device_assignment: Any = ...) -> Compiled: ...
    def cost_analysis(self) -> dict[str, float]: ...

@final
class Executable:
    def as_text(self) -> str: ...
    def local_devices(self) -> list[Device]: ...
    def cost_analysis(self) -> dict[str, float]: ...

@final
class Compiled:
    in_avals: Any
    out_avals: Any
    out_info: Any
    donate_argnums: tuple[int, ...]
    input_shardings: Any
    output_shardings: Any
    @property
    def input_formats(self) -> Any: ...
    @property
    def output_formats(self) -> Any: ...
    def _program(self) -> ClosedJaxpr: ...
    def _communicated(self) -> tuple[int, int]: ...
    def runtime_executable(self) -> Executable: ...
    def call(self, *args: Any, **kwargs: Any) -> Any: ...
    args_info: Any
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    fun_name: str
    device: Device
    def as_text(self) -> str: ...
    def cost_analysis(self) -> dict[str, float]: ...
    def memory_analysis(self) -> SimpleNamespace: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

# ---- configuration
def config_define(name: str, default: Any, traced: bool) -> None: ...
def config_get(name: str) -> Any: ...
def checks_values() -> bool: ...
def called_by_user() -> bool:
    """Whether the user's code called the function of a module that calls what it is given, such as `vectorize`."""

def config_set(name: str, value: Any) -> None: ...
def config_push(name: str, value: Any) -> None:
    """For this thread, until the matching `config_pop`."""

def config_pop(name: str) -> None: ...

# ---- devices and arrays
def devices(backend: str | None = ...) -> list[Device]: ...
def default_backend() -> str: ...
def before_compiling(f: Callable[[Device], object] | None) -> None:
    """From now on f(device) is called before each program is compiled; what it raises is raised where that was asked for. None: nothing is called."""

def has_cpus() -> bool:
    """Whether CPU devices have been made: nothing has asked for them before the first array."""

def inventory() -> list[tuple[str, list[tuple[str, str]]]]:
    """The instruction tiers, and each graphics adapter with its driver and limits: names with facts."""

@final
class Deadline:
    """Ends the process with a message, unless it is cancelled before."""

    def __new__(cls, seconds: float, message: str) -> Deadline: ...
    def cancel(self) -> None: ...

@final
class MpiTransport:
    """Messages between processes, by the functions of the MPI library that mpi4py has loaded; `handles` are the bytes of one, the communicator and `MPI_BYTE`."""

    def __new__(cls, path: str, handles: tuple[int, int, int], any_tag: int, tags: int, size: int) -> MpiTransport: ...
    def begin(self, number: int, digest: int, receivers: Sequence[int], messages: Sequence[bytes], senders: Sequence[int]) -> MpiTransfer: ...
    def sent(self) -> list[int]: ...
    def taken(self) -> list[int]: ...
    def close(self) -> None: ...

@final
class MpiTransfer:
    """Messages that are on their way."""

    def poll(self) -> list[bytes] | None: ...
    def missing(self) -> list[int]: ...
    def receives_from(self, peer: int) -> bool: ...
    def wrong(self) -> list[int]: ...
    def has_none(self, peer: int, sent: int) -> bool: ...
    def cancel(self) -> None: ...

@final
class Watch:
    """What the processes of a run report to each other of their calls; `wire` carries it, and seconds are None for never."""

    def __new__(cls, here: int, size: int, transport: object, wire: object, silence: float | None, circle: float | None) -> Watch: ...
    def pump(self) -> None: ...
    def call(self, peers: Sequence[int], digest: int, text: str) -> int: ...
    def give_up(self, call: int, why: str) -> None: ...
    def finish(self, call: int) -> None: ...
    def died(self, peer: int) -> None: ...
    def dead(self) -> list[int]: ...
    def has_ended(self, peer: int) -> bool: ...
    def set_bounds(self, silence: float | None, circle: float | None) -> None: ...
    def is_place_wanted(self) -> bool: ...
    def place(self, place: str) -> None: ...
    def place_of(self, peer: int) -> str | None: ...
    def wait(self, call: int) -> int: ...
    def over(self, wait: int) -> None: ...
    def look(self, wait: int, call: int, transfer: object) -> dict[str, Any] | None: ...
    def end(self) -> None: ...
    def farewell(self, timeout: float | None) -> tuple[str, list[int]]: ...
    def is_sent(self) -> bool: ...
    def stop(self) -> None: ...

def process_index() -> int: ...
def set_processes(here: int, cpus: list[int], engine: object, transport: object, watch: Watch) -> None: ...
def wanted_cpus() -> int: ...
def process_count() -> int: ...
def device_put(x: Any, device: Any = ..., src: Any = ...) -> Array: ...
def use_mesh(sharding: Any | None) -> None: ...
def reshard(x: Any, sharding: Any) -> Array: ...
def resolved(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...
def constrain(x: Any, axes: Sequence[tuple[str, int]], spec: Sequence[Sequence[str]], unconstrained: Sequence[int], devices: Sequence[Device]) -> Array: ...
def array_of_parts(shape: Sequence[int], sharding: Any, parts: Sequence[Array], weak_type: bool) -> Array: ...
def exclude_source(path: str) -> None: ...

def register_hooks(folder: str, loaders: Mapping[str, Callable[[], Any]]) -> None: ...
def provide_hook(name: str, value: Any) -> None: ...
def load_hooks() -> int: ...
def scope_enter(name: str) -> int: ...
def scope_leave(outer: int) -> None: ...
def clear_caches() -> None: ...
def live_executables(platform: str) -> list[Any]:
    """The compiled programs of all jitted functions, for the devices of that platform."""
def tracer_number(x: Any) -> int:
    """A number that only objects of the same tracer have; 0 for anything else."""
def effects_barrier() -> None: ...
def num_threads() -> int: ...
def set_num_threads(n: int) -> None: ...
