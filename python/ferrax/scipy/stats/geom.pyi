"""The geometric distribution: trials of probability p up to the first success."""

from ferrax._core import Array
from ferrax.typing import ArrayLike

def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...
