"""`ferrax.numpy.linalg`: linear algebra."""

from collections.abc import Sequence
from ferrax._core import Array
from ferrax.sharding import NamedSharding, PartitionSpec
from ferrax.typing import ArrayLike, DTypeLike
from typing import Any, Literal, NamedTuple, overload, type_check_only

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

@type_check_only
class _QR(NamedTuple):
    Q: Array
    R: Array

@type_check_only
class _SVD(NamedTuple):
    U: Array
    S: Array
    Vh: Array

@type_check_only
class _Eig(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array

@type_check_only
class _Eigh(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array

@type_check_only
class _Slogdet(NamedTuple):
    sign: Array
    logabsdet: Array

def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array: ...
def cond(x: ArrayLike, p: Any = None) -> Array: ...
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array: ...
def det(a: ArrayLike) -> Array: ...
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array: ...
def eig(a: ArrayLike) -> _Eig: ...
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> _Eigh: ...
def eigvals(a: ArrayLike) -> Array: ...
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array: ...
def inv(a: ArrayLike) -> Array: ...
def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False) -> tuple[Array, Array, Array, Array]: ...
def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None, preferred_element_type: DTypeLike | None = None) -> Array: ...
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | int = "fro") -> Array: ...
def matrix_power(a: ArrayLike, n: int) -> Array: ...
def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None) -> Array: ...
def matrix_transpose(x: ArrayLike, /) -> Array: ...
def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array: ...
def norm(x: ArrayLike, ord: int | str | None = None, axis: tuple[int, ...] | int | None = None, keepdims: bool = False) -> Array: ...
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None) -> Array: ...
@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "full"] = "reduced") -> _QR: ...
@overload
def qr(a: ArrayLike, mode: str) -> Any: ...
def slogdet(a: ArrayLike, *, method: str | None = None) -> _Slogdet: ...
def solve(a: ArrayLike, b: ArrayLike) -> Array: ...
@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False, subset_by_index: tuple[int, int] | None = None
) -> _SVD: ...
@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False, subset_by_index: tuple[int, int] | None = None
) -> Array: ...
@overload
def svd(a: ArrayLike, full_matrices: bool, compute_uv: bool, hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> Any: ...
def svdvals(x: ArrayLike, /) -> Array: ...
def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def tensorinv(a: ArrayLike, ind: int = 2) -> Array: ...
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array: ...
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array: ...
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None, preferred_element_type: DTypeLike | None = None) -> Array: ...
def vector_norm(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: int | str = 2) -> Array: ...
