"""Nodes of pytrees: one level of a tree, registered classes, `Partial`.

Invariant: there is one registry, that of the extension; `is_tree_node` agrees with it.
"""

from __future__ import annotations

import collections
import functools
import inspect
import operator as _op
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .. import _core
from .._base.tracebacks import api_boundary
from .._core import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

_Class = TypeVar("_Class", bound="type[Any]")


_C = TypeVar("_C", bound=type[Any])


_NODE_TYPES = {tuple, list, dict, collections.OrderedDict, collections.defaultdict, type(None)}


def simple_key(key):
    if isinstance(key, SequenceKey):
        return str(key.idx)
    if isinstance(key, GetAttrKey):
        return key.name
    if isinstance(key, (DictKey, FlattenedIndexKey)):
        return str(key.key)
    return str(key)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children of a node and its metadata: of a named tuple its class.

    Args:
        tree: pytree, not a leaf.

    Returns:
        (children, metadata): children are a tuple for None, a tuple, a dict or a node of a user's
        class, else a list.

    Raises:
        ValueError: `tree` is a leaf.

    >>> flatten_one_level([1, (2, 3)])
    ([1, (2, 3)], None)
    """
    pairs, data = flatten_one_level_with_keys(tree)
    children = [x for _, x in pairs]
    return children if type(tree) in (list, collections.OrderedDict, collections.defaultdict) or data is type(tree) else tuple(children), data


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[Any], Hashable]:
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
    if metadata is None and isinstance(tree, tuple) and type(tree) is not tuple:
        metadata = type(tree)
    return tuple((path[0], x) for path, x in pairs), tuple(metadata) if isinstance(metadata, list) else metadata


def is_tree_node(typ: type[Any]) -> bool:
    """Whether values of this type are inner nodes of a pytree.

    Args:
        typ: type.

    Returns:
        bool.

    >>> is_tree_node(list), is_tree_node(int)
    (True, False)
    """
    return typ in _NODE_TYPES or (issubclass(typ, tuple) and hasattr(typ, "_fields"))


def register_pytree_node(
    nodetype: type[Any],
    flatten_func: Callable[[Any], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
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


def register_pytree_node_class(cls: _C) -> _C:
    """Class decorator: registers a class with methods `tree_flatten(self)` and
    `tree_unflatten(cls, aux, children)`.

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


def register_pytree_with_keys(
    nodetype: type[Any],
    flatten_with_keys: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
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


def register_pytree_with_keys_class(cls: _C) -> _C:
    """Class decorator: registers a class with methods `tree_flatten_with_keys` and `tree_unflatten`
    (and, for speed, `tree_flatten`).

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


def register_dataclass(
    nodetype: _Class, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = ()
) -> _Class:
    """Makes a dataclass (or a class made from its fields) an inner node.

    Args:
        nodetype: the class. A dataclass needs no field lists: fields marked
          `dataclasses.field(metadata={"static": True})` are metadata.
        data_fields: the names of the fields that are children.
        meta_fields: the names of the fields that are metadata: hashable, compared by `==`, static
          under `jit`.
        drop_fields: the names of fields that are not part of the pytree; they need defaults.

    Returns:
        the class, so that it may be used as a decorator.

    Raises:
        TypeError: field lists are needed and missing.
        ValueError: they are not exactly the fields with `init=True`, or a field is in both.

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
    if both := {*data_fields} & {*meta_fields}:
        raise ValueError(f"data_fields and meta_fields must not overlap. Overlapping fields: {both}.")
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
        unflatten = filled  # an `__init__` that the class defines, with other parameters

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


def register_static(cls: _C) -> _C:
    """Class decorator: values of the class are trees without leaves; they must be hashable and
    comparable, and are static under `jit`.

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

    @api_boundary
    def __call__(self, *args, **kw):
        return self.fun(*args, **kw)

    def __hash__(self):
        return hash(self.fun)

    def __eq__(self, other):
        return self.fun == (other.fun if isinstance(other, _Opaque) else other)

    def __repr__(self):
        return repr(self.fun)


class Partial(functools.partial):
    """`functools.partial` as a pytree: the bound arguments are its children, the function is
    metadata.

    add_one = Partial(operator.add, jnp.ones(3))      # can be passed through jit as an argument
    """

    def __new__(klass, func: Callable[..., Any], *args: Any, **kw: Any) -> Self:
        """The function with `args` and `kw` bound; a partial function as the argument remains one
        object, as metadata.
        """
        if isinstance(func, functools.partial):
            shim = _Opaque(func)
            functools.update_wrapper(shim, func, assigned=())
            made = super().__new__(klass, shim, *args, **kw)
            # set only now: `functools.partial` unpacks objects that have these
            shim.func, shim.args, shim.keywords = func.func, func.args, func.keywords
            return made
        return super().__new__(klass, func, *args, **kw)
