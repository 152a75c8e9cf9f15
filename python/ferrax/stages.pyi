"""What stands between a function and its run: `jit(f).trace(x)`, `.lower(x)`, `.compile()`."""

import numpy as np
from ferrax._core import ShapedArray
from typing import Any, TypeAlias

from ferrax._core import PjitFunction as Wrapped
from ferrax._core import Traced as Traced
from ferrax._core import Lowered as Lowered
from ferrax._core import Executable as Executable
from ferrax._core import Compiled as Compiled

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Executable", "Lowered", "Traced", "Wrapped"]

class ArgInfo:
    def __init__(self, _aval: ShapedArray, donated: bool) -> None: ...
    donated: Any
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...

CompilerOptions: TypeAlias = Any
