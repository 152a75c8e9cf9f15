//! Linear algebra over the last two axes.
//!
//! ```
//! use ferrax::{Tensor, linalg};
//! let a = Tensor::from([[4.0f32, 1.0], [1.0, 3.0]]);
//! let l = linalg::cholesky(&a);
//! assert!((l.matmul(l.t()) - &a).abs().max().item() < 1e-6);
//! let x = linalg::solve(&a, &Tensor::from([1.0f32, 2.0]));
//! assert!((a.matmul(&x) - Tensor::from([1.0f32, 2.0])).abs().max().item() < 1e-6);
//! let (w, v) = linalg::eigh(&a);
//! assert!((v.matmul(w.diag()).matmul(v.t()) - &a).abs().max().item() < 1e-5);
//! assert!((linalg::det(&a).item() - 11.0).abs() < 1e-4);
//! let (u, s, vt) = linalg::svd(&a);
//! assert!(((u * s).matmul(vt) - &a).abs().max().item() < 1e-5);
//! let (q, r) = linalg::qr(&a);
//! assert!((q.matmul(r) - a).abs().max().item() < 1e-5);
//! ```
use super::{Tensor, constant, emit, emit_many, exactly, inexact, promote, where_};
use crate::mistakes;
use ferrax_ir::ops::linalg::factors::{Cholesky, Lu, TriangularSolve};
use ferrax_ir::ops::linalg::orthogonal::Qr;
use ferrax_ir::ops::linalg::spectral::{Eig, Eigh, Svd};
use ferrax_ir::{Dtype, Error};

#[track_caller]
pub(crate) fn square(name: &str, a: &Tensor) -> Tensor {
    match a.shape() {
        [.., n, m] if n == m => inexact(a),
        s => mistakes::raise(Error::value(format!(
            "Argument to {name} must have shape [..., n, n], got shape {}",
            ferrax_ir::Dims::new(s)
        ))),
    }
}
#[track_caller]
pub(crate) fn adjoint(a: &Tensor) -> Tensor {
    a.swap_axes(-1, -2).conj()
}
#[track_caller]
fn symmetric(a: &Tensor) -> Tensor {
    (a + adjoint(a)) / 2.0
}
/// The lower triangular l with `a = l l'`, of the Hermitian part of a positive definite a; nan where it is not.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let a = Tensor::from([[4.0f32, 1.0], [1.0, 3.0]]);
/// let l = linalg::cholesky(&a);
/// assert_eq!(l.matmul(l.t()).all_close(&a, 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn cholesky(a: &Tensor) -> Tensor {
    emit(Cholesky {}, &[&symmetric(&square("cholesky", a))])
}
/// `(lu, pivots, permutation)` with `a[permutation] = l u`: l below the diagonal of lu, with ones on its own, u above.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let a = Tensor::from([[4.0f32, 1.0], [1.0, 3.0]]);
/// let (lu, _, order) = linalg::lu(&a);
/// let (l, u) = (lu.tril(-1) + Tensor::eye(2, 2), lu.triu(0));
/// assert_eq!(l.matmul(u).all_close(a.take(&order, 0), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn lu(a: &Tensor) -> (Tensor, Tensor, Tensor) {
    let [lu, pivots, order] = exactly(emit_many(Lu {}, &[&inexact(a)]));
    (lu, pivots, order)
}
/// `(q, r)` with `a = q r`: orthonormal columns, and an upper triangle.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let a = Tensor::from([[4.0f32, 1.0], [1.0, 3.0]]);
/// let (q, r) = linalg::qr(&a);
/// assert_eq!(q.matmul(r).all_close(a, 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn qr(a: &Tensor) -> (Tensor, Tensor) {
    let op = Qr { full_matrices: false, pivoting: false };
    let [q, r] = exactly(emit_many(op, &[&inexact(a)]));
    (q, r)
}
/// `(u, s, vt)` with `a = u diag(s) vt`: singular values descending, as many as the smaller side.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let a = Tensor::from([[4.0f32, 1.0], [1.0, 3.0]]);
/// let (u, s, vt) = linalg::svd(&a);
/// assert_eq!((u * s).matmul(vt).all_close(a, 1e-5, 1e-5).item(), 1.0);
/// ```
#[track_caller]
pub fn svd(a: &Tensor) -> (Tensor, Tensor, Tensor) {
    let op = Svd { compute_uv: true, full_matrices: false, subset_by_index: None };
    let [s, u, vt] = exactly(emit_many(op, &[&inexact(a)]));
    (u, s, vt)
}
/// The singular values, descending.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::singular_values(&Tensor::from([[0.0f32, 2.0], [1.0, 0.0]])).to_vec::<f32>()?, [2.0, 1.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn singular_values(a: &Tensor) -> Tensor {
    emit_many(Svd { compute_uv: false, full_matrices: false, subset_by_index: None }, &[&inexact(a)]).remove(0)
}
/// `(w, v)` of the Hermitian part of a: eigenvalues ascending, eigenvectors in columns.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let a = Tensor::from([[4.0f32, 1.0], [1.0, 3.0]]);
/// let (w, v) = linalg::eigh(&a);
/// assert_eq!(a.matmul(&v).all_close(v * w, 1e-5, 1e-5).item(), 1.0);
/// ```
#[track_caller]
pub fn eigh(a: &Tensor) -> (Tensor, Tensor) {
    let op = Eigh { lower: true, sort_eigenvalues: true, subset_by_index: None };
    let a = symmetric(&square("eigh", a));
    let [v, w] = exactly(emit_many(op, &[&a]));
    (w, v)
}
/// `(w, v)`: complex eigenvalues and right eigenvectors, in columns.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let a = Tensor::from([[0.0f32, -1.0], [1.0, 0.0]]); // a quarter turn
/// let (w, v) = linalg::eig(&a);
/// assert!((a.matmul(&v) - v * w).abs().max().item() < 1e-5);
/// ```
#[track_caller]
pub fn eig(a: &Tensor) -> (Tensor, Tensor) {
    let op = Eig { compute_left_eigenvectors: false, compute_right_eigenvectors: true, enable_eigvec_derivs: false };
    let [w, v] = exactly(emit_many(op, &[&square("eig", a)]));
    (w, v)
}
/// `x` with `op(a) x = b` for a triangular a: its lower or upper part, as it is or transposed.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let (a, b) = (Tensor::from([[2.0f32, 0.0], [1.0, 4.0]]), Tensor::from([2.0f32, 9.0]));
/// assert_eq!(linalg::solve_triangular(&a, &b, true, false).to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn solve_triangular(a: &Tensor, b: &Tensor, lower: bool, transpose: bool) -> Tensor {
    triangular(a, b, TriangularSolve { left_side: true, lower, transpose_a: transpose, ..TriangularSolve::default() })
}
#[track_caller]
fn triangular(a: &Tensor, b: &Tensor, op: TriangularSolve) -> Tensor {
    let [a, b] = exactly(promote(&[&square("solve_triangular", a), b]));
    if b.rank() + 1 < a.rank() || b.rank() == 0 {
        mistakes::raise(Error::value(format!(
            "a x = b takes vectors or matrices, got {} for {}",
            b.aval().long(),
            a.aval().long()
        )));
    }
    let vector = b.rank() < a.rank();
    let b = if vector { b.expand_dims(-1) } else { b };
    let lead = a.shape()[..a.rank() - 2].to_vec();
    let shape = [&lead[..], &b.shape()[b.rank() - 2..]].concat();
    let x = emit(op, &[&a, &b.broadcast_to(&shape)]);
    if vector { x.squeeze(-1) } else { x }
}
/// `x` with `a x = b`; b is a vector (one axis less than a has) or a matrix.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let a = Tensor::from([[2.0f32, 0.0], [0.0, 4.0]]);
/// assert_eq!(linalg::solve(&a, &Tensor::from([2.0f32, 8.0])).to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn solve(a: &Tensor, b: &Tensor) -> Tensor {
    let [a, b] = exactly(promote(&[&square("solve", a), &inexact(b)]));
    if b.rank() + 1 < a.rank() || b.rank() == 0 {
        mistakes::raise(Error::value(format!(
            "a x = b takes vectors or matrices, got {} for {}",
            b.aval().long(),
            a.aval().long()
        )));
    }
    let vector = b.rank() < a.rank();
    let b = if vector { b.expand_dims(-1) } else { b };
    let shape = [&a.shape()[..a.rank() - 2], &b.shape()[b.rank() - 2..]].concat();
    let b = b.broadcast_to(&shape);
    let (lu, _, order) = lu(&a);
    let b = b.take_along_axis(&order.expand_dims(-1).broadcast_to(&shape), -2);
    let unit = TriangularSolve { left_side: true, lower: true, unit_diagonal: true, ..TriangularSolve::default() };
    let x = triangular(&lu, &b, unit);
    let x = triangular(&lu, &x, TriangularSolve { left_side: true, ..TriangularSolve::default() });
    if vector { x.squeeze(-1) } else { x }
}
/// The inverse.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::inv(&Tensor::from([[2.0f32, 0.0], [0.0, 4.0]])).to_vec::<f32>()?, [0.5, 0.0, 0.0, 0.25]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn inv(a: &Tensor) -> Tensor {
    let a = square("inv", a);
    let n = a.shape()[a.rank() - 1];
    solve(&a, &Tensor::eye(n, n).astype(a.dtype()).broadcast_to(a.shape()))
}
/// `(sign, logarithm of the absolute value)` of the determinant.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let (sign, log) = linalg::slogdet(&Tensor::from([[0.0f32, 1.0], [1.0, 0.0]]));
/// assert_eq!((sign.item(), log.item()), (-1.0, 0.0));
/// ```
#[track_caller]
pub fn slogdet(a: &Tensor) -> (Tensor, Tensor) {
    let a = square("slogdet", a);
    let (d, parity) = factors(&a);
    let size = d.abs();
    let nothing = d.eq(0.0).any_axes(-1);
    let direction = (&d / where_(&size.eq(0.0), 1.0, &size)).prod_axes(-1) * parity.astype(a.dtype());
    let zero = constant(direction.dtype(), 0.0);
    (where_(&nothing, zero, direction), where_(&nothing, f64::NEG_INFINITY, size.log().sum_axes(-1)))
}
/// The diagonal of u, and the sign of the permutation.
#[track_caller]
pub(crate) fn factors(a: &Tensor) -> (Tensor, Tensor) {
    let (lu, pivots, _) = lu(a);
    let n = a.shape()[a.rank() - 1];
    let swaps = pivots.ne(Tensor::arange(n, Dtype::I32)).sum_axes(-1);
    (lu.diagonal(), 1 - swaps.modulo(2) * 2)
}
/// `a` to a power that is known now, by repeated squaring; of its inverse, if negative.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let a = Tensor::from([[1.0f32, 1.0], [0.0, 1.0]]);
/// assert_eq!(linalg::matrix_power(&a, 5).to_vec::<f32>()?, [1.0, 5.0, 0.0, 1.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn matrix_power(a: &Tensor, n: i32) -> Tensor {
    let mut base = if n < 0 { inv(a) } else { square("matrix_power", a) };
    let k = a.shape()[a.rank() - 1];
    let mut out: Option<Tensor> = None;
    let mut n = n.unsigned_abs();
    while n > 0 {
        if n & 1 == 1 {
            out = Some(out.map_or_else(|| base.clone(), |o| o.matmul(&base)));
        }
        n >>= 1;
        if n > 0 {
            base = base.matmul(&base);
        }
    }
    out.unwrap_or_else(|| Tensor::eye(k, k).astype(base.dtype()).broadcast_to(a.shape()))
}
/// The eigenvalues of any square matrix, complex.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let w = linalg::eigvals(&Tensor::from([[0.0f32, -1.0], [1.0, 0.0]]));
/// assert_eq!(w.imag().abs().all_close(Tensor::ones(&[2]), 1e-5, 1e-6).item(), 1.0);
/// ```
#[track_caller]
pub fn eigvals(a: &Tensor) -> Tensor {
    let op = Eig { compute_left_eigenvectors: false, compute_right_eigenvectors: false, enable_eigvec_derivs: false };
    emit_many(op, &[&square("eigvals", a)]).remove(0)
}
/// The eigenvalues of the Hermitian part, ascending.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::eigvalsh(&Tensor::from([[2.0f32, 0.0], [0.0, 1.0]])).to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn eigvalsh(a: &Tensor) -> Tensor {
    eigh(a).0
}
/// The Frobenius norm of each matrix: the square root of the sum of squares.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::matrix_norm(&Tensor::from([[3.0f32, 0.0], [0.0, 4.0]])).item(), 5.0);
/// ```
#[track_caller]
pub fn matrix_norm(a: &Tensor) -> Tensor {
    a.norm_axes([-2, -1])
}
/// How many singular values are above the rounding of the largest (int32).
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::matrix_rank(&Tensor::ones(&[3, 3])).item(), 1.0);
/// ```
#[track_caller]
pub fn matrix_rank(a: &Tensor) -> Tensor {
    let s = singular_values(a);
    let [.., n, m] = a.shape() else { mistakes::raise(Error::value("matrix_rank requires a matrix")) };
    let eps = if s.dtype() == Dtype::F64 { f64::EPSILON } else { f32::EPSILON as f64 };
    s.gt(s.max_keep(-1) * ((*n).max(*m) as f64 * eps)).sum_axes(-1)
}
/// The product of matrices, one after the other, in the order of least work.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let (a, b, c) = (Tensor::ones(&[9, 2]), Tensor::ones(&[2, 9]), Tensor::ones(&[9, 1]));
/// assert_eq!(linalg::multi_dot(&[&a, &b, &c]).shape(), [9, 1]); // b c first
/// ```
#[track_caller]
pub fn multi_dot(all: &[&Tensor]) -> Tensor {
    let labels: Vec<char> = ('a'..).take(all.len() + 1).collect();
    let terms: Vec<String> = labels.windows(2).map(|l| l.iter().collect()).collect();
    let ends = [labels[0], labels[all.len()]];
    super::einsum(&format!("{}->{}", terms.join(","), ends.iter().collect::<String>()), all)
}
/// The Kronecker product: every element of a times all of b.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::kron(&Tensor::from([1, 10]), &Tensor::from([1, 2])).to_vec::<i32>()?, [1, 2, 10, 20]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn kron(a: &Tensor, b: &Tensor) -> Tensor {
    let rank = a.rank().max(b.rank());
    let shape = |x: &Tensor| [&vec![1; rank - x.rank()], x.shape()].concat();
    let (s, t) = (shape(a), shape(b));
    let wide =
        |v: &[usize], first: bool| v.iter().flat_map(|n| if first { [*n, 1] } else { [1, *n] }).collect::<Vec<_>>();
    let both = a.reshape(&wide(&s, true)) * b.reshape(&wide(&t, false));
    both.reshape(&s.iter().zip(&t).map(|(n, m)| n * m).collect::<Vec<_>>())
}
/// The sum of products over the last `n` axes of a and the first of b.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::tensordot(&Tensor::ones(&[2, 3, 4]), &Tensor::ones(&[3, 4, 5]), 2).shape(), [2, 5]);
/// ```
///
/// # Panics
/// Where their sizes differ.
#[track_caller]
pub fn tensordot(a: &Tensor, b: &Tensor, n: usize) -> Tensor {
    if n > a.rank().min(b.rank()) {
        mistakes::raise(Error::type_error(format!(
            "Number of tensordot axes (axes {n}) exceeds input ranks ({} and {})",
            ferrax_ir::Dims::new(a.shape()),
            ferrax_ir::Dims::new(b.shape())
        )));
    }
    let (left, right): (Vec<usize>, Vec<usize>) = ((a.rank() - n..a.rank()).collect(), (0..n).collect());
    super::dot_general(a, b, (&left, &right), (&[], &[]))
}
/// The cross product of vectors of three along the last axis.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::cross(&Tensor::from([1, 0, 0]), &Tensor::from([0, 1, 0])).to_vec::<i32>()?, [0, 0, 1]);
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Panics
/// For others.
#[track_caller]
pub fn cross(a: &Tensor, b: &Tensor) -> Tensor {
    let parts = |x: &Tensor| match x.shape() {
        [.., 3] => x.unstack(-1),
        _ => mistakes::raise(Error::value("Dimension must be 3 for cross product")),
    };
    let (a, b) = (parts(a), parts(b));
    let at = |i: usize, j: usize| &a[i] * &b[j] - &a[j] * &b[i];
    super::stack(&super::broadcast_arrays(&[at(1, 2), at(2, 0), at(0, 1)]), -1)
}
/// The product of all elements of two, summed; those of a conjugated.
///
/// ```
/// use ferrax::{Complex, Tensor, linalg};
/// let z = Tensor::from([Complex::new(0.0f32, 2.0)]);
/// assert_eq!(linalg::vdot(&z, &z).real().item(), 4.0);
/// ```
#[track_caller]
pub fn vdot(a: &Tensor, b: &Tensor) -> Tensor {
    a.conj().flatten().matmul(b.flatten())
}
/// Matrices times vectors, over the last axes.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::matvec(&Tensor::ones(&[7, 2, 3]), &Tensor::ones(&[7, 3])).shape(), [7, 2]);
/// ```
#[track_caller]
pub fn matvec(a: &Tensor, v: &Tensor) -> Tensor {
    a.matmul(v.expand_dims(-1)).squeeze(-1)
}
/// Vectors, conjugated, times matrices, over the last axes.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::vecmat(&Tensor::ones(&[7, 2]), &Tensor::ones(&[7, 2, 3])).shape(), [7, 3]);
/// ```
#[track_caller]
pub fn vecmat(v: &Tensor, a: &Tensor) -> Tensor {
    v.conj().expand_dims(-2).matmul(a).squeeze(-2)
}
/// The tensor `b` with `tensordot(inv, a, n)` the identity of the last axes, for an a whose first `n` axes have as many elements as the rest.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// assert_eq!(linalg::tensorinv(&Tensor::eye(6, 6).reshape(&[2, 3, 6]), 2).shape(), [6, 2, 3]);
/// ```
#[track_caller]
pub fn tensorinv(a: &Tensor, n: usize) -> Tensor {
    let (s, t) = a.shape().split_at(n.min(a.rank()));
    let k: usize = s.iter().product();
    inv(&a.reshape(&[k, k])).reshape(&[t, s].concat())
}
/// `x` with `tensordot(a, x, rank of x) = b`.
///
/// ```
/// use ferrax::{Tensor, linalg};
/// let x = linalg::tensorsolve(&Tensor::eye(6, 6).reshape(&[2, 3, 6]), &Tensor::ones(&[2, 3]));
/// assert_eq!((x.shape(), x.sum().item()), (&[6][..], 6.0));
/// ```
#[track_caller]
pub fn tensorsolve(a: &Tensor, b: &Tensor) -> Tensor {
    let k = b.size();
    solve(&a.reshape(&[k, k]), &b.flatten()).reshape(&a.shape()[b.rank()..])
}
