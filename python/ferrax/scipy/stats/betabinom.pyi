"""The beta-binomial distribution: successes among n trials whose probability is drawn from the beta distribution of shapes a and b."""

from ferrax._core import Array
from ferrax.typing import ArrayLike

def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array: ...
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array: ...
