"""The normal distribution of vectors, of density exp(-d' cov^-1 d / 2) / sqrt((2 pi)^n det(cov)), d = x - mean."""

from ferrax._core import Array
from ferrax.typing import ArrayLike
from typing import Any

def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> ArrayLike: ...
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array: ...
