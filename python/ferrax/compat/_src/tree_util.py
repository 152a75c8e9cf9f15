"""`jax._src.tree_util`: the registry of pytree nodes.

Invariant: it is read, never written.
"""

import collections.abc
import functools

from ...tree_util import PyTreeDef, flatten_one_level, is_tree_node

__all__ = ["RegistryEntry", "node_types"]


RegistryEntry = collections.namedtuple("RegistryEntry", ["to_iter", "from_iter"])


class _NodeTypes:
    """The types of inner nodes of pytrees, with the functions that flatten and unflatten each."""

    def __contains__(self, typ):
        return is_tree_node(typ)

    def __getitem__(self, typ):
        if typ not in self:
            raise KeyError(typ)
        return RegistryEntry(_apart, functools.partial(_together, typ))

    def get(self, typ, default=None):
        return self[typ] if typ in self else default


def _apart(tree):
    children, data = flatten_one_level(tree)
    return children, tuple(data) if type(tree) is dict else data


def _together(typ, data, children):
    children = list(children)
    leaf = PyTreeDef.from_node_data_and_children(None, [])
    return PyTreeDef.from_node_data_and_children((typ, None if data is typ else data), [leaf] * len(children)).unflatten(children)


node_types = _NodeTypes()
