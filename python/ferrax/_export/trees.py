"""Trees of arguments and results as bytes, for exported programs: JSON, with registered classes by
name.

    leaf "*"    None "0"    tuple ["t", ..]    list ["l", ..]    dict ["d", [key, ..], ..]    registered ["c", name, auxiliary, ..]

Invariant: reading calls only functions that the process registered under the names in the file.
"""

from __future__ import annotations

import base64
import collections
import json
from typing import Any

from .. import _core
from ..tree_util import tree_structure

_MOST_NESTED = 500
_by_type, _by_name = {}, {}
_Registered = collections.namedtuple("_Registered", "nodetype name write read build")


def register_pytree_node_serialization(
    nodetype: type[Any], *, serialized_name: str, serialize_auxdata: Any, deserialize_auxdata: Any, from_children: Any = None
) -> type[Any]:
    """Registers a pytree node class, so that functions of it can be serialized.

    Args:
        nodetype: the class. It must be registered as a pytree node, unless `from_children` is
          given.
        serialized_name: the name of the class in files.
        serialize_auxdata: converts a node's metadata to bytes.
        deserialize_auxdata: converts the bytes back to the metadata.
        from_children: `from_children(metadata, children)` builds a node whose structure is all that
          is used. Without it the node is built from class, metadata and children.

    Returns:
        `nodetype`.

    Raises:
        ValueError: the class or the name is registered already, or the class is not a pytree node.
    """
    if nodetype in _by_type:
        raise ValueError(
            f"Duplicate serialization registration for type `{nodetype}`. Previous registration was with serialized_name `{_by_type[nodetype].name}`."
        )
    if serialized_name in _by_name:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{serialized_name}`."
            f" Previous registration was for type `{_by_name[serialized_name].nodetype}`."
        )
    if from_children is None and not _core.is_tree_node(nodetype):
        raise ValueError(f"If `from_children` is not present, you must call first`jax.tree_util.register_pytree_node` for `{nodetype}`")
    entry = _Registered(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _by_type[nodetype] = _by_name[serialized_name] = entry
    return nodetype


def register_namedtuple_serialization(nodetype: type[Any], *, serialized_name: str) -> type[Any]:
    """Registers a class of named tuples, so that exported functions that take or return it can be
    serialized.

    Args:
        nodetype: class made by `collections.namedtuple` or `typing.NamedTuple`.
        serialized_name: str, the name of the class in files; it must be the same where the program
          is read.

    Returns:
        The class.

    Raises:
        ValueError: the class is not a named tuple, or it or the name is registered already.
    """
    if not _is_namedtuple(nodetype):
        raise ValueError("Use `jax.export.register_pytree_node_serialization` for types other than `collections.namedtuple`.")

    def write(data):
        return json.dumps(nodetype._fields).encode()

    def read(data):
        fields = tuple(json.loads(data))
        if fields != nodetype._fields:
            raise ValueError(f"the fields of {nodetype} are {nodetype._fields}, and were {fields} when it was serialized")
        return nodetype

    return register_pytree_node_serialization(
        nodetype, serialized_name=serialized_name, serialize_auxdata=write, deserialize_auxdata=read, from_children=lambda _, children: nodetype(*children)
    )


def _is_namedtuple(x):
    return isinstance(x, type) and issubclass(x, tuple) and hasattr(x, "_fields")


def write_tree(tree):
    """A PyTreeDef as a JSON value.

    Raises:
        ValueError: it contains a class that is not registered.
        TypeError: it has a dictionary with keys other than strings.
    """
    found = tree.node_data()
    if found is None:
        return "*"
    kind, data = found
    children = [write_tree(c) for c in tree.children()]
    if kind is tuple or kind is list:
        return ["t" if kind is tuple else "l", *children]
    if kind is type(None):
        return "0"
    if kind is dict:
        for key in data:
            if not isinstance(key, str):
                raise TypeError(f"Serialization is supported only for dictionaries with string keys. Found key {key} of type {type(key)}.")
        return ["d", list(data), *children]
    entry = _by_type.get(kind)
    if entry is None:
        raise ValueError(f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`. {_REMEDY}")
    auxiliary = entry.write(data)
    if not isinstance(auxiliary, (bytes, bytearray)):
        raise ValueError(f"The custom serialization of the auxiliary data of `{kind}` must be bytes, got {type(auxiliary)}.")
    return ["c", entry.name, base64.b64encode(auxiliary).decode(), *children]


_REMEDY = "Use `export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`."
_make = _core.PyTreeDef.from_node_data_and_children


def read_tree(x, depth=0):
    """The PyTreeDef of a JSON value.

    Raises:
        ValueError: the value is not one of a PyTreeDef, or contains a class that is not registered.
    """
    if depth > _MOST_NESTED:
        raise ValueError("the file is damaged: a tree is nested too deeply")
    if x == "*":
        return _make(None, [])
    if x == "0":
        return tree_structure(None)
    kind = x[0] if isinstance(x, list) and x and isinstance(x[0], str) else ""
    rest = x[{"t": 1, "l": 1, "d": 2, "c": 3}.get(kind, 0) :]
    if kind in ("t", "l"):
        return _make(((tuple, list)[kind == "l"], None), [read_tree(c, depth + 1) for c in rest])
    if kind == "d" and len(x) > 1 and isinstance(x[1], list) and all(isinstance(k, str) for k in x[1]) and len(set(x[1])) == len(rest):
        return _make((dict, x[1]), [read_tree(c, depth + 1) for c in rest])
    if kind == "c" and len(x) > 2 and isinstance(x[1], str) and isinstance(x[2], str):
        entry = _by_name.get(x[1])
        if entry is None:
            raise ValueError(f"Cannot deserialize a PyTreeDef containing an unregistered type `{x[1]}`. {_REMEDY}")
        data, children = entry.read(base64.b64decode(x[2])), [read_tree(c, depth + 1) for c in rest]
        if entry.build is None:
            return _make((entry.nodetype, data), children)
        # a node of leaves, each of which is then replaced by the tree of its child
        node = tree_structure(entry.build(data, tuple(object() for _ in children)))
        return _make(node.node_data(), children)
    raise ValueError("the file is damaged: a tree has an unknown form")


def _ordered_dict(data):
    return json.dumps(list(data)).encode()


register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_ordered_dict,
    deserialize_auxdata=lambda data: json.loads(data),
    from_children=lambda keys, children: collections.OrderedDict(zip(keys, children, strict=True)),
)
