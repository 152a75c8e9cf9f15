"""`ferrax.scipy.linalg`: linear algebra under scipy's names.

Invariant: this file is only the list of public names.

    >>> det(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
    Array(6., dtype=float32)
"""

from ._decompositions import (
    cho_factor as cho_factor,
    cholesky as cholesky,
    eigh as eigh,
    eigh_tridiagonal as eigh_tridiagonal,
    hessenberg as hessenberg,
    lu as lu,
    lu_factor as lu_factor,
    qr as qr,
    qr_multiply as qr_multiply,
    rsf2csf as rsf2csf,
    schur as schur,
    svd as svd,
)
from ._solving import (
    cho_solve as cho_solve,
    det as det,
    inv as inv,
    lu_solve as lu_solve,
    solve as solve,
    solve_triangular as solve_triangular,
)
from ._functions import (
    expm as expm,
    expm_frechet as expm_frechet,
    funm as funm,
    polar as polar,
    solve_sylvester as solve_sylvester,
    sqrtm as sqrtm,
)
from ._structured import (
    block_diag as block_diag,
    circulant as circulant,
    companion as companion,
    convolution_matrix as convolution_matrix,
    dft as dft,
    fiedler as fiedler,
    fiedler_companion as fiedler_companion,
    hadamard as hadamard,
    hankel as hankel,
    helmert as helmert,
    hilbert as hilbert,
    invhilbert as invhilbert,
    invpascal as invpascal,
    leslie as leslie,
    pascal as pascal,
    toeplitz as toeplitz,
)
