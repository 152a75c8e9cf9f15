"""Pytrees: nested containers of leaves, flattened and unflattened.

A pytree is a leaf, None (a tree without leaves), or a tuple, list, dict, OrderedDict, defaultdict,
namedtuple or registered class of pytrees. Dicts are walked in sorted key order. Invariant:
`tree_unflatten(*reversed(tree_flatten(t)))` rebuilds `t`.

    leaves, treedef = tree_flatten({"b": [1, (2, None)], "a": 3})     # [3, 1, 2], PyTreeDef({'a': *, 'b': [*, (*, None)]})
"""

from __future__ import annotations

import functools
import operator as _op
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core
from ._core import DictKey, FlattenedIndexKey, GetAttrKey, PyTreeDef, SequenceKey
from ._trees.nodes import (
    Partial,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    simple_key,
)
from ._trees.prefixes import broadcast_prefix, prefix_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_T = TypeVar("_T")


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

KeyEntry = object
KeyPath = tuple

_MISSING = type("_Missing", (), {"__repr__": lambda self: "<no value>"})()
# ---------------------------------------------------------------- flattening and unflattening


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a pytree, in order, and its structure.

    Args:
        tree: a pytree.
        is_leaf: a predicate on nodes; a node for which it is true counts as a leaf.

    Returns:
        (leaves, treedef): a list of leaves and a `PyTreeDef`.

    Raises:
        ValueError: a dict has keys that cannot be sorted.

    >>> jax.tree_util.tree_flatten({"b": 1, "a": [2, 3]})
    ([2, 3, 1], PyTreeDef({'a': [*, *], 'b': *}))
    """
    return _core.tree_flatten(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The pytree of structure `treedef` with the given leaves; the inverse of `tree_flatten`.

    Args:
        treedef: `PyTreeDef`.
        leaves: iterable of the leaves, in order.

    Returns:
        Pytree.

    Raises:
        ValueError: there are too few or too many leaves.

    >>> jax.tree_util.tree_unflatten(jax.tree_util.tree_structure([0, 0]), [5, 6])
    [5, 6]
    """
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a pytree, in order.

    Args:
        tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.

    Returns:
        List of leaves.

    >>> jax.tree_util.tree_leaves({"b": 1, "a": [2, None]})
    [2, 1]
    """
    return _core.tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a pytree.

    Args:
        tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.

    Returns:
        `PyTreeDef`.

    >>> jax.tree_util.tree_structure((1, [2, 3]))
    PyTreeDef((*, [*, *]))
    """
    return _core.tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The pytree of `f(leaf, *others)` over the leaves of `tree` and the corresponding subtrees of
    `rest`.

    Args:
        f: a function of 1 + len(rest) arguments.
        tree: the pytree whose structure the result has.
        *rest: pytrees of which `tree`'s structure is a prefix.
        is_leaf: see `tree_flatten`; applies to `tree`.

    Returns:
        Pytree of tree's structure.

    Raises:
        ValueError: the structures do not match; the message says where.

    >>> jax.tree_util.tree_map(lambda x, y: x + y, {"a": 1}, {"a": 10})
    {'a': 11}
    """
    leaves, treedef = _core.tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    columns = [leaves]
    for other in rest:
        columns.append(_flatten_up_to(treedef, tree, other, is_leaf))
    return treedef.unflatten([f(*xs) for xs in zip(*columns, strict=True)])


tree_multimap = tree_map


def _flatten_up_to(treedef, tree, other, is_leaf):
    try:
        return treedef.flatten_up_to(other)
    except (ValueError, TypeError):
        for message in prefix_errors(tree, other, "tree_map tree", is_leaf):
            raise ValueError(message) from None
        raise


def tree_reduce(function: Callable[[_T, Any], _T], tree: Any, initializer: Any = _MISSING, is_leaf: Callable[[Any], bool] | None = None) -> _T:
    """`functools.reduce` over the leaves.

    Args:
        function: function of two arguments.
        tree: pytree.
        initializer: first value; default: the first leaf.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.

    Returns:
        The last value.

    Raises:
        TypeError: the tree has no leaf, and no initializer is given.

    >>> jax.tree_util.tree_reduce(lambda x, y: x + y, [1, (2, 3)])
    6
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is _MISSING:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(operation: Callable[[_T, _T], _T], tree: Any, *, identity: Any = _MISSING, is_leaf: Callable[[Any], bool] | None = None) -> _T:
    """The leaves combined pairwise by an associative operation, as a balanced tree of logarithmic
    depth.

    Args:
        operation: associative function of two leaves.
        tree: pytree.
        identity: the result for no leaves.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.

    Returns:
        The combined value.

    Raises:
        TypeError: the tree has no leaf, and no identity is given.

    >>> jax.tree_util.tree_reduce_associative(lambda x, y: x + y, [1, (2, 3)])
    6
    """
    items = tree_leaves(tree, is_leaf)
    if not items:
        if identity is _MISSING:
            raise TypeError("Must specify identity for parallel reduction of empty sequence.")
        return identity
    return _reduce_halves(operation, items)


def _reduce_halves(operation, items):
    if len(items) == 1:
        return items[0]
    mid = len(items) // 2
    return operation(_reduce_halves(operation, items[:mid]), _reduce_halves(operation, items[mid:]))


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether every leaf is true.

    Args:
        tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.

    Returns:
        bool.

    >>> jax.tree_util.tree_all([True, (True, False)])
    False
    """
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether every element is a leaf (None is not one).

    Args:
        iterable: iterable.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.

    Returns:
        bool.

    >>> jax.tree_util.all_leaves([1, 2])
    True
    """
    items = list(iterable)
    leaves = tree_leaves(items, is_leaf)
    return len(leaves) == len(items) and all(map(_op.is_, leaves, items))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out: outer of inner becomes inner of outer.

    Args:
        outer_treedef: `PyTreeDef` of the outer tree.
        inner_treedef: `PyTreeDef` of the inner trees; None: that of the first.
        pytree_to_transpose: pytree.

    Returns:
        Pytree.

    Raises:
        TypeError: the tree does not have the structure of outer with inner at each leaf.

    >>> jax.tree_util.tree_transpose(jax.tree_util.tree_structure([0, 0]), jax.tree_util.tree_structure((0, 0)), [(1, 2), (3, 4)])
    ([1, 3], [2, 4])
    """
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    inner = inner_treedef.num_leaves
    # Nodes of a user's class may store the structure of their children, so that only the number of leaves can be compared.
    if treedef.num_leaves != inner * outer_treedef.num_leaves:
        raise TypeError(f"Mismatch\n{treedef}\n != \n{outer_treedef.compose(inner_treedef)}")
    columns = [outer_treedef.unflatten(leaves[i::inner]) for i in range(inner)]
    return inner_treedef.unflatten(columns)


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """`full_tree`'s structure with, at each leaf, the leaf of `prefix_tree` above it.

    Args:
        prefix_tree: pytree, a prefix of full_tree.
        full_tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.

    Returns:
        Pytree of full_tree's structure.

    Raises:
        ValueError: `prefix_tree` is not a prefix of `full_tree`.

    >>> jax.tree_util.tree_broadcast(1, [2, 3])
    [1, 1]
    """
    return tree_structure(full_tree, is_leaf).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


# ---------------------------------------------------------------- key paths


def tree_flatten_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
    """As `tree_flatten`, with each leaf's path.

    Args:
        tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.
        is_leaf_takes_path: call the predicate as `is_leaf(path, node)`.

    Returns:
        ([(path, leaf), ...], treedef).

    >>> jax.tree_util.tree_flatten_with_path((7,))
    ([((SequenceKey(idx=0),), 7)], PyTreeDef((*,)))
    """
    if is_leaf is not None and is_leaf_takes_path:
        decisions = []
        _walk_decisions(tree, (), is_leaf, decisions)
        decided = iter(decisions)
        return _core.tree_flatten_with_path(tree, lambda _: next(decided))
    return _core.tree_flatten_with_path(tree, is_leaf)


def _walk_decisions(node, path, is_leaf, out):
    """The predicate's results in the order of flattening: parents before children."""
    stop = bool(is_leaf(path, node))
    out.append(stop)
    if not stop and is_tree_node(type(node)):
        for key, child in flatten_one_level_with_keys(node)[0]:
            _walk_decisions(child, path + (key,), is_leaf, out)


def tree_leaves_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False) -> list[tuple[Any, Any]]:
    """The (path, leaf) pairs of a pytree.

    Args:
        tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.
        is_leaf_takes_path: call the predicate as `is_leaf(path, node)`.

    Returns:
        List of pairs.

    >>> jax.tree_util.tree_leaves_with_path({"a": [5]})
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False) -> Any:
    """As `tree_map`, calling `f(path, leaf, *others)`.

    Args:
        f: function of a path and 1 + len(rest) arguments.
        tree: pytree.
        *rest: pytrees of which tree's structure is a prefix.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.
        is_leaf_takes_path: call the predicate as `is_leaf(path, node)`.

    Returns:
        Pytree of tree's structure.

    >>> jax.tree_util.tree_map_with_path(lambda path, x: jax.tree_util.keystr(path), {"a": [5]})
    {'a': ["['a'][0]"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    plain = (lambda x: False) if is_leaf is None else is_leaf
    columns = [[p for p, _ in pairs], [x for _, x in pairs]]
    columns += [_flatten_up_to(treedef, tree, other, None if is_leaf_takes_path else plain) for other in rest]
    return treedef.unflatten([f(*xs) for xs in zip(*columns, strict=True)])


def keystr(keys: Any, *, simple: bool = False, separator: str = "") -> str:
    """A path as text.

    Args:
        keys: a path: sequence of keys.
        simple: the keys alone: `a0x` in place of `['a'][0].x`.
        separator: the text between keys.

    Returns:
        str.

    >>> jax.tree_util.keystr((jax.tree_util.DictKey("a"), jax.tree_util.SequenceKey(0)))
    "['a'][0]"
    """
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(map(simple_key, keys))


# ---------------------------------------------------------------- structures


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of a node's children.

    Args:
        treedef: `PyTreeDef`.

    Returns:
        List of `PyTreeDef`.

    >>> jax.tree_util.treedef_children(jax.tree_util.tree_structure((1, [2])))
    [PyTreeDef(*), PyTreeDef([*])]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure has one node: a leaf, None, or an empty container.

    Args:
        treedef: `PyTreeDef`.

    Returns:
        bool.

    >>> jax.tree_util.treedef_is_leaf(jax.tree_util.tree_structure(1))
    True
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose elements have the given structures.

    Args:
        treedefs: iterable of `PyTreeDef`.

    Returns:
        `PyTreeDef`.

    >>> jax.tree_util.treedef_tuple([jax.tree_util.tree_structure(1)])
    PyTreeDef((*,))
    """
    return _core.treedef_tuple(list(treedefs))


class _DefaultRegistry:
    """The one registry, under the method names that JAX gives it."""

    def __repr__(self):
        return "default_registry"

    def flatten(self, tree, is_leaf=None):
        return tree_flatten(tree, is_leaf)

    def flatten_with_path(self, tree, is_leaf=None):
        return tree_flatten_with_path(tree, is_leaf)

    def flatten_one_level(self, tree):
        return flatten_one_level(tree) if is_tree_node(type(tree)) else None

    def flatten_one_level_with_keys(self, tree):
        return flatten_one_level_with_keys(tree) if is_tree_node(type(tree)) else None

    def is_node(self, typ):
        return is_tree_node(typ)

    def register_node(self, nodetype, to_iterable, from_iterable, to_iterable_with_keys=None):
        register_pytree_node(nodetype, to_iterable, from_iterable, to_iterable_with_keys)

    def register_dataclass_node(self, nodetype, data_fields, meta_fields):
        register_dataclass(nodetype, data_fields, meta_fields)


default_registry = _DefaultRegistry()


register_pytree_node(Partial, lambda p: ((p.args, p.keywords), p.func), lambda func, xs: Partial(func, *xs[0], **xs[1]))


def _serialize(self):
    """The structure as bytes of a protocol buffer.

    Raises ValueError for nodes of a user's class and keys that are not strings.
    """
    from ._trees.proto import serialize

    return serialize(self)


def _deserialize(registry, data):
    """The structure that `serialize_using_proto` wrote.

    Raises ValueError for bytes that do not hold one.
    """
    from ._trees.proto import deserialize

    return deserialize(registry, data)


PyTreeDef.serialize_using_proto = _serialize
PyTreeDef.deserialize_using_proto = staticmethod(_deserialize)
