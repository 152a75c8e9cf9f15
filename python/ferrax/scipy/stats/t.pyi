"""Student's t distribution of df degrees of freedom, of density proportional to (1 + x^2 / df)^-((df + 1) / 2)."""

from ferrax._core import Array
from ferrax.typing import ArrayLike

def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array: ...
