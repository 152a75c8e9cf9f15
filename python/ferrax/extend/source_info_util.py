"""Which lines of a program its equations and errors are said to come from.

    register_exclusion(__file__)            # never from this file of a library

Invariant: the innermost line that is neither Ferrax's nor excluded.
"""

from .._core import exclude_source

__all__ = ["register_exclusion"]


def register_exclusion(path):
    """Passes over the lines of a file, or of the files of a folder, where equations and errors say where they come from."""
    exclude_source(path)
