"""Pytrees: nested containers of leaves, flattened and unflattened.

A pytree is a leaf, None (a tree without leaves), or a tuple, list, dict, OrderedDict, defaultdict, namedtuple or registered class of
pytrees. Dicts are walked in sorted key order. Invariant: `tree_unflatten(*reversed(tree_flatten(t)))` rebuilds `t`.

    leaves, treedef = tree_flatten({"b": [1, (2, None)], "a": 3})     # [3, 1, 2], PyTreeDef({'a': *, 'b': [*, (*, None)]})
"""

from __future__ import annotations

import collections
import functools
import inspect
import operator as _op
from typing import Any

from . import _core
from ._core import DictKey, FlattenedIndexKey, GetAttrKey, PyTreeDef, SequenceKey

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
_NODE_TYPES = {tuple, list, dict, collections.OrderedDict, collections.defaultdict, type(None)}


# ---------------------------------------------------------------- apart and together


def tree_flatten(tree, is_leaf=None):
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


def tree_unflatten(treedef: Any, leaves: Any) -> Any:
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


def tree_leaves(tree, is_leaf=None):
    """The leaves of a pytree, in order.

    Args:
        tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.

    Returns:
        List of leaves.

    >>> jax.tree_util.tree_leaves({"b": 1, "a": [2, None]})
    [2, 1]
    """
    return _core.tree_flatten(tree, is_leaf)[0]


def tree_structure(tree, is_leaf=None):
    """The structure of a pytree.

    Args:
        tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.

    Returns:
        `PyTreeDef`.

    >>> jax.tree_util.tree_structure((1, [2, 3]))
    PyTreeDef((*, [*, *]))
    """
    return _core.tree_flatten(tree, is_leaf)[1]


def tree_map(f, tree, *rest, is_leaf=None):
    """The pytree of `f(leaf, *others)` over the leaves of `tree` and the corresponding subtrees of `rest`.

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


def tree_reduce(function, tree, initializer=_MISSING, is_leaf=None):
    """`functools.reduce` over the leaves.

    Args:
        function: function of two arguments.
        tree: pytree.
        initializer: first value; default: the first leaf.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.

    Returns:
        The last value.

    Raises:
        TypeError: there is no leaf and no initializer.

    >>> jax.tree_util.tree_reduce(lambda x, y: x + y, [1, (2, 3)])
    6
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is _MISSING:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(operation, tree, *, identity=_MISSING, is_leaf=None):
    """The leaves combined pairwise by an associative operation, as a balanced tree of logarithmic depth.

    Args:
        operation: associative function of two leaves.
        tree: pytree.
        identity: the result for no leaves.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.

    Returns:
        The combined value.

    Raises:
        TypeError: there is no leaf and no identity.

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


def tree_all(tree, *, is_leaf=None):
    """Whether every leaf is true.

    Args:
        tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.

    Returns:
        bool.

    >>> jax.tree_util.tree_all([True, (True, False)])
    False
    """
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable, is_leaf=None):
    """Whether every element is a leaf (None is not one).

    Args:
        iterable: iterable.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.

    Returns:
        bool.

    >>> jax.tree_util.all_leaves([1, 2])
    True
    """
    items = list(iterable)
    leaves = tree_leaves(items, is_leaf)
    return len(leaves) == len(items) and all(map(_op.is_, leaves, items))


def tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose):
    """A tree of trees turned inside out: outer of inner becomes inner of outer.

    Args:
        outer_treedef: `PyTreeDef` of the outer tree.
        inner_treedef: `PyTreeDef` of the inner trees; None: that of the first.
        pytree_to_transpose: pytree.

    Returns:
        Pytree.

    Raises:
        TypeError: the tree has not the leaves of outer of inner.

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


def tree_broadcast(prefix_tree, full_tree, is_leaf=None):
    """`full_tree`'s structure with, at each leaf, the leaf of `prefix_tree` above it.

    Args:
        prefix_tree: pytree, a prefix of full_tree.
        full_tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.

    Returns:
        Pytree of full_tree's structure.

    Raises:
        ValueError: `prefix_tree` is not a prefix of `full_tree`.

    >>> jax.tree_util.tree_broadcast(1, [2, 3])
    [1, 1]
    """
    return tree_structure(full_tree, is_leaf).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def broadcast_prefix(prefix_tree, full_tree, is_leaf=None, *, name="broadcast_prefix prefix_tree", prefix_is_leaf=None):
    """The list of `prefix_tree`'s leaves, each repeated once per leaf of `full_tree` below it.

    Args:
        prefix_tree: pytree, a prefix of full_tree.
        full_tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.
        name: the name of the prefix in errors.
        prefix_is_leaf: as is_leaf, for prefix_tree; None: is_leaf.

    Returns:
        List of leaves.

    Raises:
        ValueError: where `prefix_tree` is no prefix.
    """
    leaves, treedef = _core.tree_flatten(prefix_tree, prefix_is_leaf or is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except (ValueError, TypeError):
        for message in prefix_errors(prefix_tree, full_tree, name, prefix_is_leaf or is_leaf):
            raise ValueError(message) from None
        raise
    out = []
    for leaf, sub in zip(leaves, subtrees, strict=True):
        out.extend([leaf] * len(_core.tree_flatten(sub, is_leaf)[0]))
    return out


def spread_prefix(prefix, tree, name):
    """A specification called `name`, a prefix of `tree` with None among its leaves, as one entry per leaf of `tree`.

    Raises:
      ValueError: it is no prefix; the message lists each mismatch.
    """

    def is_none(x):
        return x is None

    try:
        return broadcast_prefix(prefix, tree, name=name, prefix_is_leaf=is_none)
    except ValueError:
        found = prefix_errors(prefix, tree, name, is_none)
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value; \n  Mismatch details ({len(found)} found):\n  " + "\n  ".join(found)
        ) from None


# ---------------------------------------------------------------- key paths


def tree_flatten_with_path(tree, is_leaf=None, is_leaf_takes_path=False):
    """As `tree_flatten`, with each leaf's path.

    Args:
        tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.
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
    """The predicate's results in the order in which flattening asks for them: parents before children."""
    stop = bool(is_leaf(path, node))
    out.append(stop)
    if not stop and is_tree_node(type(node)):
        for key, child in flatten_one_level_with_keys(node)[0]:
            _walk_decisions(child, path + (key,), is_leaf, out)


def tree_leaves_with_path(tree, is_leaf=None, is_leaf_takes_path=False):
    """The (path, leaf) pairs of a pytree.

    Args:
        tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.
        is_leaf_takes_path: call the predicate as `is_leaf(path, node)`.

    Returns:
        List of pairs.

    >>> jax.tree_util.tree_leaves_with_path({"a": [5]})
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f, tree, *rest, is_leaf=None, is_leaf_takes_path=False):
    """As `tree_map`, calling `f(path, leaf, *others)`.

    Args:
        f: function of a path and 1 + len(rest) arguments.
        tree: pytree.
        *rest: pytrees of which tree's structure is a prefix.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.
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


def keystr(keys, *, simple=False, separator=""):
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
    return separator.join(map(_simple_key, keys))


def _simple_key(key):
    if isinstance(key, SequenceKey):
        return str(key.idx)
    if isinstance(key, GetAttrKey):
        return key.name
    if isinstance(key, (DictKey, FlattenedIndexKey)):
        return str(key.key)
    return str(key)


# ---------------------------------------------------------------- one level


def flatten_one_level(tree):
    """The children of a node, a list for a list and else a tuple, and its metadata.

    Args:
        tree: pytree, not a leaf.

    Returns:
        (children, metadata): children are a list for a list, else a tuple.

    Raises:
        ValueError: `tree` is a leaf.

    >>> flatten_one_level([1, (2, 3)])
    ([1, (2, 3)], None)
    """
    pairs, data = flatten_one_level_with_keys(tree)
    children = (x for _, x in pairs)
    return list(children) if type(tree) is list else tuple(children), data


def flatten_one_level_with_keys(tree):
    """The (key, child) pairs of a node and its metadata.

    Args:
        tree: pytree, not a leaf.

    Returns:
        (pairs, metadata), each pair a key and a child.

    Raises:
        ValueError: `tree` is a leaf.

    >>> flatten_one_level_with_keys({"a": [5]})
    (((DictKey(key='a'), [5]),), ('a',))
    """
    pairs, treedef = _core.tree_flatten_with_path(tree, lambda x: x is not tree)
    data = treedef.node_data()
    if data is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    metadata = data[1]
    return tuple((path[0], x) for path, x in pairs), tuple(metadata) if isinstance(metadata, list) else metadata


def is_tree_node(typ):
    """Whether values of this type are inner nodes of a pytree.

    Args:
        typ: type.

    Returns:
        bool.

    >>> is_tree_node(list), is_tree_node(int)
    (True, False)
    """
    return typ in _NODE_TYPES or (issubclass(typ, tuple) and hasattr(typ, "_fields"))


def treedef_children(treedef):
    """The structures of a node's children.

    Args:
        treedef: `PyTreeDef`.

    Returns:
        List of `PyTreeDef`.

    >>> jax.tree_util.treedef_children(jax.tree_util.tree_structure((1, [2])))
    [PyTreeDef(*), PyTreeDef([*])]
    """
    return treedef.children()


def treedef_is_leaf(treedef):
    """Whether the structure has one node: a leaf, None, or an empty container.

    Args:
        treedef: `PyTreeDef`.

    Returns:
        bool.

    >>> jax.tree_util.treedef_is_leaf(jax.tree_util.tree_structure(1))
    True
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs):
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


# ---------------------------------------------------------------- registration


def register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None):
    """Makes a class an inner node.

    Args:
        nodetype: the class.
        flatten_func: `flatten_func(obj) -> (children, aux)`, aux hashable and comparable.
        unflatten_func: `unflatten_func(aux, children) -> obj`; the children may be any objects.
        flatten_with_keys_func: as `flatten_func`, with (key, child) pairs.

    Returns:
        None.

    Raises:
        TypeError: `nodetype` is not a class.
        ValueError: the class is registered already.

    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> register_pytree_node(Interval, lambda x: ((x.low, x.high), None), lambda aux, children: Interval(*children))
    >>> jax.tree_util.tree_leaves([Interval(1, 2), 3])
    [1, 2, 3]
    """
    if not isinstance(nodetype, type):
        raise TypeError(f"Expected a class to register as a pytree node, got {nodetype!r}")
    if nodetype in _NODE_TYPES:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {nodetype}.")
    _core.register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
    _NODE_TYPES.add(nodetype)


def register_pytree_node_class(cls):
    """Class decorator: registers a class with methods `tree_flatten(self)` and `tree_unflatten(cls, aux, children)`.

    Args:
        cls: class.

    Returns:
        The class.

    >>> @register_pytree_node_class
    ... class Pair(list):
    ...     def tree_flatten(self):
    ...         return tuple(self), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(children)
    >>> jax.tree_util.tree_map(lambda x: x + 1, Pair([1, 2]))
    [2, 3]
    """
    register_pytree_node(cls, _op.methodcaller("tree_flatten"), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func=None):
    """Makes a class an inner node whose children have keys.

    Args:
        nodetype: the class.
        flatten_with_keys: `flatten_with_keys(obj) -> ([(key, child), ...], aux)`.
        unflatten_func: `unflatten_func(aux, children) -> obj`.
        flatten_func: a quicker version of `flatten_with_keys` without the keys.

    Returns:
        None.

    >>> class Box:
    ...     def __init__(self, inside):
    ...         self.inside = inside
    >>> register_pytree_with_keys(Box, lambda x: ([(GetAttrKey("inside"), x.inside)], None), lambda aux, children: Box(*children))
    >>> [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(Box([5]))]
    [('.inside[0]', 5)]
    """
    if flatten_func is None:

        def flatten_func(obj):
            pairs, aux = flatten_with_keys(obj)
            return [x for _, x in pairs], aux

    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls):
    """Class decorator: registers a class with methods `tree_flatten_with_keys` and `tree_unflatten` (and, for speed, `tree_flatten`).

    Args:
        cls: class.

    Returns:
        The class.

    >>> @register_pytree_with_keys_class
    ... class Row(list):
    ...     def tree_flatten_with_keys(self):
    ...         return [(SequenceKey(i), x) for i, x in enumerate(self)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(children)
    >>> [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(Row([5, 6]))]
    ['[0]', '[1]']
    """
    flatten = _op.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, _op.methodcaller("tree_flatten_with_keys"), cls.tree_unflatten, flatten)
    return cls


def register_dataclass(nodetype, data_fields=None, meta_fields=None, drop_fields=()):
    """Makes a dataclass (or a class made from its fields) an inner node.

    Args:
      nodetype: the class. A dataclass needs no field lists: fields marked `dataclasses.field(metadata={"static": True})` are metadata.
      data_fields: the names of the fields that are children.
      meta_fields: the names of the fields that are metadata: hashable, compared by `==`, static under `jit`.
      drop_fields: the names of fields that are not part of the pytree; they need defaults.

    Returns:
      the class, so that it may be used as a decorator.

    Raises:
      TypeError: field lists are needed and missing.
      ValueError: they are not exactly the fields with `init=True`.

    >>> import dataclasses
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = dataclasses.field(metadata={"static": True})
    >>> jax.tree_util.tree_map(lambda x: 2 * x, Layer(1.5, "first"))
    Layer(weight=3.0, name='first')
    """
    import dataclasses

    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is specified."
            f" Got data_fields={data_fields!r} meta_fields={meta_fields!r}."
        )
    if data_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(f"register_dataclass: data_fields and meta_fields are required when nodetype is not a dataclass. Got nodetype={nodetype!r}.")
        fields = [f for f in dataclasses.fields(nodetype) if f.name not in drop_fields]
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
    data_fields, meta_fields = tuple(data_fields), tuple(meta_fields)
    if dataclasses.is_dataclass(nodetype):
        _check_fields({f.name for f in dataclasses.fields(nodetype) if f.init}, {*data_fields, *meta_fields}, set(drop_fields))
    keys = tuple(map(GetAttrKey, data_fields))

    def flatten(obj):
        return [getattr(obj, n) for n in data_fields], tuple(getattr(obj, n) for n in meta_fields)

    def flatten_with_keys(obj):
        return [(k, getattr(obj, n)) for k, n in zip(keys, data_fields, strict=True)], tuple(getattr(obj, n) for n in meta_fields)

    def unflatten(meta, data):
        return nodetype(**dict(zip(meta_fields, meta, strict=True)), **dict(zip(data_fields, data, strict=True)))

    def filled(meta, data):
        obj = object.__new__(nodetype)
        for name, x in zip((*meta_fields, *data_fields), (*meta, *data), strict=True):
            object.__setattr__(obj, name, x)
        return obj

    if not _takes_fields(nodetype, (*meta_fields, *data_fields)):
        unflatten = filled  # an `__init__` of the class's own, with parameters of its own

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def _takes_fields(cls, names):
    """Whether a class is constructed from its fields by name."""
    try:
        inspect.signature(cls).bind(**dict.fromkeys(names))
    except TypeError:
        return False
    except ValueError:  # there is no signature to be read
        pass
    return True


def _check_fields(init_fields, given, dropped):
    head = "data_fields and meta_fields must include all dataclass fields with ``init=True`` and only them."
    missing, unexpected = init_fields - given - dropped, given - init_fields
    if missing or unexpected:
        lacking = f" Missing fields: {missing}. Add them to drop_fields to suppress this error." if missing else ""
        raise ValueError(head + lacking + (f" Unexpected fields: {unexpected}." if unexpected else ""))


def register_static(cls):
    """Class decorator: values of the class are trees without leaves; they must be hashable and comparable, and are static under `jit`.

    Args:
        cls: class.

    Returns:
        The class.

    >>> @register_static
    ... class Name(str):
    ...     pass
    >>> jax.tree_util.tree_leaves({"a": Name("x"), "b": 1})
    [1]
    """
    register_pytree_node(cls, lambda obj: ((), obj), lambda obj, _: obj, lambda obj: ((), obj))
    return cls


class _Opaque:
    """Prevents functools.partial from merging a nested partial's arguments into its own."""

    def __init__(self, fun):
        self.fun = fun

    def __call__(self, *args, **kw):
        return self.fun(*args, **kw)

    def __hash__(self):
        return hash(self.fun)

    def __eq__(self, other):
        return isinstance(other, _Opaque) and self.fun == other.fun

    def __repr__(self):
        return repr(self.fun)


class Partial(functools.partial):
    """`functools.partial` as a pytree: the bound arguments are its children, the function is metadata.

    add_one = Partial(operator.add, jnp.ones(3))      # can be passed through jit as an argument
    """

    def __new__(klass, func, *args, **kw):
        """The function with `args` and `kw` bound; a partial function as the argument remains one object, as metadata."""
        if isinstance(func, functools.partial):
            shim = _Opaque(func)
            functools.update_wrapper(shim, func, assigned=())
            return super().__new__(klass, shim, *args, **kw)
        return super().__new__(klass, func, *args, **kw)


register_pytree_node(Partial, lambda p: ((p.args, p.keywords), p.func), lambda func, xs: Partial(func, *xs[0], **xs[1]))


# ---------------------------------------------------------------- where two trees part


def prefix_errors(prefix_tree, full_tree, name="prefix", is_leaf=None):
    """One message for each place where `prefix_tree` is not a prefix of `full_tree`; none if it is.

    Args:
        prefix_tree: pytree that should be a prefix of full_tree.
        full_tree: pytree.
        name: the name of the prefix in messages.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such node.

    Returns:
        List of messages.
    """
    return list(_prefix_errors(prefix_tree, full_tree, "", name, is_leaf))


def _prefix_errors(prefix, full, path, name, is_leaf):
    if (is_leaf is not None and is_leaf(prefix)) or not is_tree_node(type(prefix)):
        return
    where = f"at key path\n    {name}{path}\nAt that key path, the prefix pytree {name} has a subtree of type"
    if type(prefix) is not type(full):
        yield (
            f"pytree structure error: different types {where}\n    {type(prefix)}\nbut at the same key path the full pytree has a "
            f"subtree of different type\n    {type(full)}."
        )
        return
    kind = type(prefix).__name__
    if isinstance(prefix, (tuple, list)) and len(prefix) != len(full):
        yield (
            f"pytree structure error: different lengths of {kind} {where} {kind} of length {len(prefix)}, but the full pytree has a "
            f"subtree of the same type but of length {len(full)}."
        )
        return
    p_pairs, p_data = flatten_one_level_with_keys(prefix)
    f_pairs, f_data = flatten_one_level_with_keys(full)
    if len(p_pairs) != len(f_pairs):
        p_names, f_names = [_simple_key(k) for k, _ in p_pairs], [_simple_key(k) for k, _ in f_pairs]
        yield (
            f"pytree structure error: different numbers of pytree children {where}\n    {type(prefix)}\nwith {len(p_names)} child keys\n"
            f"    {' '.join(p_names)}\nbut at the same key path the full pytree has a subtree of the same type but with "
            f"{len(f_names)} child keys\n    {' '.join(f_names)}\nso the symmetric difference on key sets is\n"
            f"    {' '.join(sorted(set(p_names) ^ set(f_names)))}"
        )
        return
    if p_data != f_data:
        import difflib

        diff = "\n".join("    " + line for line in difflib.ndiff([str(p_data)], [str(f_data)]))
        yield (
            f"pytree structure error: different pytree metadata {where}\n    {type(prefix)}\nwith metadata\n    {p_data}\nbut at the "
            f"same key path the full pytree has a subtree of the same type but with metadata\n    {f_data}\nso the diff in the "
            f"metadata at these pytree nodes is\n{diff}"
        )
        return
    for (key, p), (_, f) in zip(p_pairs, f_pairs, strict=True):
        yield from _prefix_errors(p, f, path + str(key), name, is_leaf)


def _serialize(self):
    """The structure as bytes of a protocol buffer. Raises ValueError for nodes of a user's class and keys that are no strings."""
    from ._tree_proto import serialize

    return serialize(self)


def _deserialize(registry, data):
    """The structure that `serialize_using_proto` wrote. Raises ValueError for bytes that are none."""
    from ._tree_proto import deserialize

    return deserialize(registry, data)


PyTreeDef.serialize_using_proto = _serialize
PyTreeDef.deserialize_using_proto = staticmethod(_deserialize)
