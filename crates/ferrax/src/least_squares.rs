//! Pseudo-inverses and least-squares solutions. The derivative is that at constant rank, not that
//! of singular values, which does not exist where two are equal.
//!
//! ```
//! use ferrax::{Tensor, grad, linalg, poly};
//! let a = Tensor::from([[1.0f32, 0.0], [0.0, 2.0], [0.0, 0.0]]);
//! let (x, residuals, rank, s) = linalg::lstsq(&a, &Tensor::from([3.0f32, 4.0, 0.5]), None);
//! assert_eq!((x.to_vec::<f32>()?, s.to_vec::<f32>()?), (vec![3.0, 2.0], vec![2.0, 1.0]));
//! assert_eq!((residuals.item(), rank.item()), (0.25, 2.0));
//! let x = Tensor::from([0.0f32, 1.0, 2.0, 3.0]);
//! let line = poly::fit(&x, &(&x * 2.0 + 1.0), 1);
//! assert!(line.all_close(Tensor::from([2.0f32, 1.0]), 1e-5, 1e-5).to_vec::<bool>()?[0]);
//! let g = grad(|a: &Tensor| linalg::pinv(a).sum())(&Tensor::eye(2, 2))?; // of equal singular values
//! assert_eq!(g.to_vec::<f32>()?, [-1.0, -1.0, -1.0, -1.0]);
//! # Ok::<(), ferrax::Error>(())
//! ```
use crate::mistakes::{ok, raise};
use crate::tensor::linalg::{adjoint, singular_values, svd};
use crate::tensor::{Tensor, constant, exactly, inexact, poly, promote, where_};
use crate::transforms::custom_jvp;
use ferrax_ir::{Dtype, Error};

/// The distance from 1 to the next number of a dtype, or of its parts.
fn eps(d: Dtype) -> f64 {
    if matches!(d, Dtype::F64 | Dtype::C128) { f64::EPSILON } else { f32::EPSILON as f64 }
}
/// The pseudo-inverse of Moore and Penrose, where singular values up to `relative` times the largest count as zero.
#[track_caller]
fn pinv_of(a: &Tensor, relative: &Tensor) -> Tensor {
    if a.size() == 0 {
        return a.swap_axes(-1, -2);
    }
    let value = |(a, relative): &(Tensor, Tensor)| {
        let (u, s, vt) = svd(a);
        let kept = s.gt(relative.expand_dims(-1) * s.narrow(s.rank() - 1, 0, 1)) & s.gt(0.0);
        let inverse = where_(&kept, 1 / where_(&kept, &s, 1.0), 0.0);
        (adjoint(&vt) * inverse.expand_dims(-2).astype(a.dtype())).matmul(adjoint(&u))
    };
    // Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973)
    let rule = |(a, relative): &(Tensor, Tensor), (da, _): &(Tensor, Tensor)| {
        let p = pinv_of(a, relative);
        let back = adjoint(da);
        let rest = &back - thin(&back, a, &p);
        let more = &back - thin(&p, a, &back);
        let dp = -thin(&p, da, &p) + thin(&p, &adjoint(&p), &rest) + thin(&more, &adjoint(&p), &p);
        (p, dp)
    };
    ok(custom_jvp(value, rule)(&(a.clone(), relative.clone())))
}
/// `x y z`, where x and z have one shape and y that of their adjoints: no intermediate result is larger than the operands.
fn thin(x: &Tensor, y: &Tensor, z: &Tensor) -> Tensor {
    let [.., n, m] = *x.shape() else { unreachable!("matrices") };
    if n <= m { x.matmul(y).matmul(z) } else { x.matmul(y.matmul(z)) }
}
/// The pseudo-inverses of Moore and Penrose, by singular values; those up to `10 max(n, m) eps` of the largest count as zero.
///
/// # Panics
/// For less than two axes.
#[track_caller]
pub fn pinv(a: &Tensor) -> Tensor {
    let a = inexact(a);
    let [.., n, m] = *a.shape() else { raise(Error::value("pinv requires a matrix")) };
    pinv_of(&a, &constant(a.dtype().real(), 10.0 * n.max(m) as f64 * eps(a.dtype())))
}
/// `(x, residuals, rank, s)`: the x of least norm that minimizes the norm of `b - a x`, for a
/// matrix a and a vector or matrix b; the squared norms of the residuals; the number of singular
/// values above `relative` (`None`: `max(n, m) eps`) times the largest; all of them. Single precision
/// is computed in double, whose eps it is: the rank is that of the given numbers.
///
/// # Panics
/// For other ranks, and another number of rows.
#[track_caller]
pub fn lstsq(a: &Tensor, b: &Tensor, relative: Option<f64>) -> (Tensor, Tensor, Tensor, Tensor) {
    let [a, b] = exactly(promote(&[&inexact(a), &inexact(b)]));
    let given = a.dtype();
    let wide = if given.is_complex() { Dtype::C128 } else { Dtype::F64 };
    if given != wide {
        let (x, residuals, rank, s) = lstsq(&a.astype(wide), &b.astype(wide), relative);
        return (x.astype(given), residuals.astype(given.real()), rank, s.astype(given.real()));
    }
    let (&[n, m], 1 | 2) = (a.shape(), b.rank()) else {
        raise(Error::type_error(format!(
            "lstsq takes a matrix and a vector or a matrix, got {} and {}",
            a.aval().long(),
            b.aval().long()
        )));
    };
    if b.shape()[0] != n {
        raise(Error::value("Leading dimensions of input arrays must match"));
    }
    let vector = b.rank() == 1;
    let b = if vector { b.expand_dims(-1) } else { b };
    let real = a.dtype().real();
    let (s, rank, x) = if a.size() == 0 {
        (Tensor::zeros_in(&[0], real), Tensor::from(0), Tensor::zeros_in(&[m, b.shape()[1]], a.dtype()))
    } else {
        let relative = match relative {
            Some(r) if r < 0.0 => eps(real),
            Some(r) => r,
            None => eps(real) * n.max(m) as f64,
        };
        let relative = constant(real, relative);
        let s = singular_values(&a);
        let rank = (s.gt(0.0) & s.ge(&relative * s.narrow(0, 0, 1))).sum();
        (s, rank, pinv_of(&a, &relative).matmul(&b))
    };
    let residuals = (&b - a.matmul(&x)).norm_axes(0).powi(2);
    (if vector { x.squeeze(1) } else { x }, residuals, rank, s)
}
/// The polynomial of a degree that is nearest to the points `(x, y)` in the least squares sense: its coefficients, the highest power first.
///
/// # Panics
/// Unless x and y are vectors of one size, not empty.
#[track_caller]
pub fn fit(x: &Tensor, y: &Tensor, degree: usize) -> Tensor {
    let [x, y] = exactly(promote(&[&inexact(x), &inexact(y)]));
    if x.rank() != 1 || x.size() == 0 || x.shape() != y.shape() {
        raise(Error::type_error(format!(
            "poly::fit takes two vectors of one size, not empty, got {} and {}",
            x.aval().long(),
            y.aval().long()
        )));
    }
    let (given, relative) = (x.dtype(), Some(x.size() as f64 * eps(x.dtype())));
    let wide = if given.is_complex() { Dtype::C128 } else { Dtype::F64 };
    let (x, y) = (x.astype(wide), y.astype(wide));
    let powers = poly::vander(&x, degree + 1);
    // columns of unit length keep the problem well scaled
    let scale = (&powers * &powers).sum_axes(0).sqrt();
    (lstsq(&(powers / scale.expand_dims(0)), &y, relative).0 / scale).astype(given)
}
