"""The wrapped Cauchy distribution on [0, 2 pi], of density (1 - c^2) / (2 pi (1 + c^2 - 2 c cos(x)))."""

from ferrax._core import Array
from ferrax.typing import ArrayLike

def logpdf(x: ArrayLike, c: ArrayLike) -> Array: ...
def pdf(x: ArrayLike, c: ArrayLike) -> Array: ...
