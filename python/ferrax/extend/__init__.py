"""What libraries build on: programs as objects, primitives of one's own."""

from . import core, linear_util, source_info_util

__all__ = ["core", "linear_util", "source_info_util"]
