"""What internals of JAX's are here, where a public name does not say it already.

Invariant: each does what its name says, on Ferrax's own objects.
"""

import pathlib
import typing

from .. import _core
from .._refs import RefType as AbstractRef
from ..extend import source_info_util
from ..numpy import asarray
from ..tree_util import is_tree_node

__all__ = [
    "AbstractRef",
    "ExtendedDType",
    "Out",
    "api_boundary",
    "exclude_paths",
    "include_frame",
    "node_types",
    "reconstruct_array",
    "register_exclusion",
    "stop_gradient_p",
    "trace_state_clean",
]

Out = typing.TypeVar("Out")
stop_gradient_p = _core.primitive("stop_gradient")
_HOME = str(pathlib.Path(__file__).parents[1])
exclude_paths = [_HOME]


class ExtendedDType:
    """The base class of dtypes that libraries define; no array can have one."""


class _NodeTypes:
    """The types of inner nodes of pytrees."""

    def __contains__(self, typ):
        return is_tree_node(typ)


node_types = _NodeTypes()


def reconstruct_array(make, args, state, type_):
    """The array that a pickle of JAX's holds: a numpy array, made and then set, and whether its type is weak."""
    value = make(*args)
    value.__setstate__(state)
    return asarray(value)


def api_boundary(fun, **_):
    """`fun`: tracebacks are left whole, so there is nothing to cut at its boundary."""
    return fun


def register_exclusion(path):
    """Counts the frames of a file among the library's: errors and equations name lines elsewhere."""
    exclude_paths.append(path)
    source_info_util.register_exclusion(path)


def include_frame(frame):
    """Whether a frame is the user's: of no file that is excluded."""
    return not frame.f_code.co_filename.startswith(tuple(exclude_paths))


def trace_state_clean():
    """Whether no transformation is at work."""
    return all(t.what == "eval" for t in _core.traces())
