"""Internal names of JAX that no public module defines.

Invariant: each does what its name says, on Ferrax's own objects.
"""

import collections
import collections.abc
import functools
import types
import typing

from .. import _core
from .._base.tracebacks import api_boundary, exclude_paths, include_frame
from .._references.refs import RefType as AbstractRef
from .._runtime.devices import client_of
from ..extend import source_info_util
from ..numpy import asarray
from ..tree_util import PyTreeDef, flatten_one_level, is_tree_node
from ._distributions import FOLLOWS

__all__ = [
    "AbstractRef",
    "ExtendedDType",
    "Out",
    "api_boundary",
    "backends",
    "exclude_paths",
    "global_state",
    "ifrt_programs",
    "include_frame",
    "is_vmappable",
    "node_types",
    "reconstruct_array",
    "register_exclusion",
    "stop_gradient_p",
    "trace_state_clean",
    "version_info",
]

version_info = tuple(map(int, FOLLOWS.split(".")))
# A run is one process, without a coordinator.
global_state = types.SimpleNamespace(process_id=0, num_processes=1, client=None)
ifrt_programs = None  # there are no programs of another runtime
Out = typing.TypeVar("Out")
stop_gradient_p = _core.primitive("stop_gradient")


class _Backends(collections.abc.Mapping):
    """The clients of the platforms in use, by name: none before the first array."""

    def __getitem__(self, platform):
        if platform not in self:
            raise KeyError(platform)
        return client_of(platform)

    def __contains__(self, platform):
        return platform in tuple(self)

    def __iter__(self):
        return iter(("cpu",) if _core.has_cpus() else ())

    def __len__(self):
        return int(_core.has_cpus())


backends = _Backends()


class ExtendedDType:
    """The base class of dtypes that libraries define; no array can have one."""


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


def reconstruct_array(make, args, state, type_):
    """The array in a pickle of JAX: its constructor, its state, and whether its type is weak."""
    value = make(*args)
    value.__setstate__(state)
    return asarray(value)


def register_exclusion(path):
    """Counts the frames of a file among the library's: errors and equations name lines elsewhere."""
    exclude_paths.append(path)
    source_info_util.register_exclusion(path)


def is_vmappable(x):
    """Whether `x` is of a type that a library gave rules for `vmap`: no such rules can be given, so never."""
    return False


def trace_state_clean():
    """Whether no transformation is at work."""
    return all(t.what == "eval" for t in _core.traces())
