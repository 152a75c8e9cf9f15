"""The Dirichlet distribution on the simplex, of density prod x_i^(alpha_i - 1) / B(alpha)."""

from ferrax._core import Array
from ferrax.typing import ArrayLike

def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array: ...
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array: ...
