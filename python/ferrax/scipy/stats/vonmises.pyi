"""The von Mises distribution on the circle, of density exp(kappa cos(x)) / (2 pi I0(kappa)), periodic in x."""

from ferrax._core import Array
from ferrax.typing import ArrayLike

def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array: ...
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array: ...
