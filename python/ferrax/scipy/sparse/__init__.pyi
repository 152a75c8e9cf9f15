"""`ferrax.scipy.sparse`: `linalg`, the solvers of large linear systems."""

from . import linalg as linalg
