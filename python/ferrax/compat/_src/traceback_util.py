"""`jax._src.traceback_util`: whose frames a traceback shows.

Invariant: an excluded file counts as the library's.
"""

from ..._base.tracebacks import api_boundary, exclude_paths, filter_traceback, include_frame
from ...extend import source_info_util

__all__ = ["api_boundary", "exclude_paths", "filter_traceback", "include_frame", "register_exclusion"]


def register_exclusion(path):
    """Counts the frames of a file among the library's: errors and equations name lines
    elsewhere.
    """
    exclude_paths.append(path)
    source_info_util.register_exclusion(path)
