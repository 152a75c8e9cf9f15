"""What libraries build on: programs as objects, primitives of one's own."""

from . import backend, core, linear_util, random, sharding, source_info_util

__all__ = ["backend", "core", "linear_util", "random", "sharding", "source_info_util"]
