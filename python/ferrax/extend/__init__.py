"""What libraries build on: programs as objects, primitives of one's own."""

from . import core

__all__ = ["core"]
