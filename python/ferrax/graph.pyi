"""Programs as graphs: Graphviz text, and pictures that need no Graphviz."""

from typing import Any

__all__ = ["dot", "svg"]

def dot(program: Any) -> str: ...
def svg(program: Any) -> str: ...
