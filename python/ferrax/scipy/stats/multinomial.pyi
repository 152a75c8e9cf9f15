"""The multinomial distribution: counts of the outcomes of n trials, the outcomes having probabilities p."""

from ferrax._core import Array
from ferrax.typing import ArrayLike

def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array: ...
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array: ...
