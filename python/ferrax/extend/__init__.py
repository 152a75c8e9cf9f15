"""Interfaces for libraries: programs as objects, custom primitives."""

from . import backend, core, linear_util, random, sharding, source_info_util

__all__ = ["backend", "core", "linear_util", "random", "sharding", "source_info_util"]
