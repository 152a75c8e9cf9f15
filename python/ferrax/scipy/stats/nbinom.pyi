"""The negative binomial distribution: failures before the n-th success, in trials of probability p."""

from ferrax._core import Array
from ferrax.typing import ArrayLike

def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array: ...
