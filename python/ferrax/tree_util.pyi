"""Pytrees: nested containers of leaves, taken apart and put together again."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Self, TypeVar

from ferrax._core import SequenceKey as SequenceKey
from ferrax._core import PyTreeDef as PyTreeDef
from ferrax._core import GetAttrKey as GetAttrKey
from ferrax._core import FlattenedIndexKey as FlattenedIndexKey
from ferrax._core import DictKey as DictKey

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_multimap",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]

_T = TypeVar("_T")
_C = TypeVar("_C", bound=type[Any])

KeyEntry = object
KeyPath = tuple[Any, ...]

class Partial:
    def __new__(cls, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    args: tuple[Any, ...]
    func: Callable[..., Any]
    keywords: dict[str, Any]

def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool: ...

default_registry: Any

def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]: ...
def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[Any], Hashable]: ...
def is_tree_node(typ: type[Any]) -> bool: ...
def keystr(keys: Any, *, simple: bool = False, separator: str = "") -> str: ...
def register_dataclass(
    nodetype: Any, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = ()
) -> Any: ...
def register_pytree_node(
    nodetype: type[Any],
    flatten_func: Callable[[Any], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None: ...
def register_pytree_node_class(cls: _C) -> _C: ...
def register_pytree_with_keys(
    nodetype: type[Any],
    flatten_with_keys: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None: ...
def register_pytree_with_keys_class(cls: _C) -> _C: ...
def register_static(cls: _C) -> _C: ...
def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool: ...
def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any: ...
def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]: ...
def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Any, Any]], PyTreeDef]: ...
def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]: ...
def tree_leaves_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False) -> list[tuple[Any, Any]]: ...
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any: ...
def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False) -> Any: ...
def tree_multimap(f: Any, tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any: ...
def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = ..., is_leaf: Callable[[Any], bool] | None = None) -> Any: ...
def tree_reduce_associative(operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = ..., is_leaf: Callable[[Any], bool] | None = None) -> Any: ...
def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef: ...
def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any: ...
def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any: ...
def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]: ...
def treedef_is_leaf(treedef: PyTreeDef) -> bool: ...
def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef: ...
