//! Differences, integrals, interpolation, convolutions of vectors, polynomials.
//!
//! ```
//! use ferrax::{Mode, Tensor, poly};
//! let x = Tensor::from([1.0f32, 4.0, 9.0]);
//! assert_eq!(x.diff(1, 0).to_vec::<f32>()?, [3.0, 5.0]);
//! assert_eq!(x.gradient(1.0, 0).to_vec::<f32>()?, [3.0, 4.0, 5.0]);
//! assert_eq!(x.trapezoid(0.5, 0).item(), 4.5);
//! let (xp, fp) = (Tensor::from([1.0f32, 2.0]), Tensor::from([10.0f32, 20.0]));
//! assert_eq!(Tensor::from([0.0f32, 1.5, 3.0]).interp(&xp, &fp).to_vec::<f32>()?, [10.0, 15.0, 20.0]);
//! assert_eq!(x.convolve(&xp, Mode::Same).to_vec::<f32>()?, [1.0, 6.0, 17.0]);
//! let p = Tensor::from([1.0f32, 0.0, 2.0]); // x^2 + 2
//! assert_eq!((poly::val(&p, 3.0).item(), poly::val(&poly::der(&p), 3.0).item()), (11.0, 6.0));
//! assert_eq!(poly::mul(&p, &fp).to_vec::<f32>()?, [10.0, 20.0, 20.0, 40.0]);
//! # Ok::<(), ferrax::Error>(())
//! ```
use super::{
    ConvOptions, IntoTensor, Padding, Tensor, axis_of, concatenate, constant, emit, exactly, inexact, promote, pw,
    where_,
};
use crate::mistakes;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::{Dtype, Error};

/// The part of a convolution of vectors to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Wherever they meet.
    Full,
    /// As long as the longer one.
    Same,
    /// Where the shorter one lies within the longer one.
    Valid,
}
impl Tensor {
    /// The n-th differences of neighbours along an axis; of booleans, whether they differ.
    #[track_caller]
    pub fn diff(&self, n: usize, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        let f = if self.dtype().is_bool() { Pw::Ne } else { Pw::Sub };
        (0..n).fold(self.clone(), |x, _| {
            let m = x.shape()[k];
            if m == 0 { x } else { pw(f, &[&x.narrow(k, 1, m), &x.narrow(k, 0, m - 1)]) }
        })
    }
    /// The derivative along an axis by central differences, one-sided at the ends, of samples `spacing` apart.
    ///
    /// # Panics
    /// For fewer than two elements along the axis.
    #[track_caller]
    pub fn gradient(&self, spacing: impl IntoTensor, axis: i64) -> Tensor {
        let (x, k) = (inexact(self), axis_of(axis, self.rank()));
        let n = x.shape()[k];
        if n < 2 {
            let m = "Shape of array too small to calculate a numerical gradient, at least 2 elements are required.";
            mistakes::raise(Error::value(m));
        }
        let h = spacing.into_tensor().astype(x.dtype());
        let part = |a: usize, b: usize| x.narrow(k, a, b);
        let inner = (part(2, n) - part(0, n - 2)) * constant(x.dtype(), 0.5);
        let ends = [part(1, 2) - part(0, 1), part(n - 1, n) - part(n - 2, n - 1)];
        concatenate(&[&ends[0] / &h, inner / &h, &ends[1] / &h], k as i64)
    }
    /// The integral along an axis by the trapezoidal rule, of samples `spacing` apart.
    #[track_caller]
    pub fn trapezoid(&self, spacing: impl IntoTensor, axis: i64) -> Tensor {
        let (x, k) = (inexact(self), axis_of(axis, self.rank()));
        let n = x.shape()[k];
        let end = |i: usize| x.narrow(k, i, i + 1).squeeze(k);
        let half = constant(x.dtype(), 0.5) * (end(0) + end(n - 1));
        spacing.into_tensor().astype(x.dtype()) * (x.sum_axes(k) - half)
    }
    /// Straight lines between the points (xp, fp) of ascending xp, at this one's elements; the end values outside.
    ///
    /// # Panics
    /// Unless xp and fp are vectors of one size, not empty.
    #[track_caller]
    pub fn interp(&self, xp: &Tensor, fp: &Tensor) -> Tensor {
        if xp.rank() != 1 || xp.size() == 0 || xp.shape() != fp.shape() {
            mistakes::raise(Error::value("xp and fp must be one-dimensional arrays of equal size, not empty"));
        }
        let [x, xp] = exactly(promote(&[&inexact(self), xp]));
        let fp = inexact(fp);
        let n = xp.size();
        let i = xp.searchsorted_right(&x).clip(1, n - 1).astype(Dtype::I32);
        let before = &i - 1;
        let (f0, x0) = (fp.take(&before, 0), xp.take(&before, 0));
        let (df, dx) = (fp.take(&i, 0) - &f0, xp.take(&i, 0) - &x0);
        // where two coordinates coincide the slope of the step is undefined
        let eps = if dx.dtype() == Dtype::F64 { f64::EPSILON } else { f32::EPSILON as f64 };
        let flat = dx.abs().le(eps * eps);
        let f = where_(&flat, &f0, &f0 + (&x - &x0) / where_(&flat, 1.0, &dx) * df);
        let end = |v: &Tensor, i: usize| v.narrow(0, i, i + 1).squeeze(0);
        let f = where_(&x.lt(end(&xp, 0)), end(&fp, 0), f);
        where_(&x.gt(end(&xp, n - 1)), end(&fp, n - 1), f)
    }
    /// The convolution of two vectors.
    ///
    /// # Panics
    /// Unless they are vectors of at least one element.
    #[track_caller]
    pub fn convolve(&self, o: &Tensor, mode: Mode) -> Tensor {
        let (x, y) = if self.size() < o.size() { (o, self) } else { (self, o) };
        slid(x, &y.flip(0), mode)
    }
    /// The correlation of two vectors: sums of products with o, conjugated, moved along.
    ///
    /// ```
    /// use ferrax::{Mode, Tensor};
    /// let (x, y) = (Tensor::from([1.0f32, 2.0, 3.0]), Tensor::from([0.0f32, 1.0]));
    /// assert_eq!(x.correlate(&y, Mode::Valid).to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// Unless they are vectors of at least one element.
    #[track_caller]
    pub fn correlate(&self, o: &Tensor, mode: Mode) -> Tensor {
        let o = o.conj();
        match self.size() < o.size() {
            true => slid(&o.conj(), &self.conj(), mode).flip(0).conj(),
            false => slid(self, &o, mode),
        }
    }
}
#[track_caller]
fn slid(x: &Tensor, y: &Tensor, mode: Mode) -> Tensor {
    if x.rank() != 1 || y.rank() != 1 || y.size() == 0 {
        mistakes::raise(Error::value(format!(
            "convolutions are of vectors of at least one element, got {} and {}",
            x.aval().long(),
            y.aval().long()
        )));
    }
    let [x, y] = exactly(promote(&[&inexact(x), &inexact(y)]));
    let n = y.size() as i64;
    let widths = match mode {
        Mode::Full => (n - 1, n - 1),
        Mode::Same => (n / 2, n - n / 2 - 1),
        Mode::Valid => (0, 0),
    };
    let layout = ("NCH", "OIH", "NCH");
    let o = ConvOptions { padding: Padding::Explicit(vec![widths]), layout, ..ConvOptions::default() };
    x.reshape(&[1, 1, -1]).conv(&y.reshape(&[1, 1, -1]), &o).squeeze([0, 1])
}

/// Polynomials as vectors of coefficients, the highest power first.
pub mod poly {
    use super::*;
    use ferrax_ir::ops::pointwise::Pointwise;

    /// A polynomial has a vector of coefficients.
    #[track_caller]
    fn check(all: &[&Tensor]) {
        if let Some(p) = all.iter().find(|p| p.rank() != 1) {
            mistakes::raise(Error::value(format!("a polynomial is a vector of coefficients, got {}", p.aval().long())));
        }
    }
    /// The value at x, by Horner's rule.
    #[track_caller]
    pub fn val(p: &Tensor, x: impl IntoTensor) -> Tensor {
        check(&[p]);
        let [p, x] = exactly(promote(&[p, &x.into_tensor()]));
        let x = x.strong();
        p.unstack(0).iter().fold(x.zeros_like(), |y, c| y * &x + c)
    }
    /// The sum of two.
    #[track_caller]
    pub fn add(p: &Tensor, q: &Tensor) -> Tensor {
        check(&[p, q]);
        let [p, q] = exactly(promote(&[p, q]));
        let (p, q) = if q.size() > p.size() { (q, p) } else { (p, q) };
        let (n, k) = (p.size(), q.size());
        concatenate(&[p.narrow(0, 0, n - k), p.narrow(0, n - k, n) + q], 0)
    }
    /// The difference of two.
    #[track_caller]
    pub fn sub(p: &Tensor, q: &Tensor) -> Tensor {
        add(p, &-q)
    }
    /// The product of two.
    #[track_caller]
    pub fn mul(p: &Tensor, q: &Tensor) -> Tensor {
        p.convolve(q, Mode::Full)
    }
    /// The derivative.
    #[track_caller]
    pub fn der(p: &Tensor) -> Tensor {
        check(&[p]);
        let (p, n) = (inexact(p), p.size().saturating_sub(1));
        let powers = constant(p.dtype(), n as f64) - Tensor::arange(n, p.dtype());
        p.narrow(0, 0, n) * powers
    }
    /// The integral that is `k` at 0.
    ///
    /// ```
    /// use ferrax::{Tensor, poly};
    /// assert_eq!(poly::int(&Tensor::from([6.0f32, 2.0]), 5.0).to_vec::<f32>()?, [3.0, 2.0, 5.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn int(p: &Tensor, k: impl IntoTensor) -> Tensor {
        check(&[p]);
        let p = inexact(p);
        let n = p.size();
        let powers = (constant(p.dtype(), n as f64) - Tensor::arange(n + 1, p.dtype())).maximum(1.0);
        concatenate(&[p.clone(), k.into_tensor().astype(p.dtype()).reshape(&[1])], 0) / powers
    }
    /// The quotient and the remainder, which is as long as p.
    ///
    /// ```
    /// use ferrax::{Tensor, poly};
    /// let (q, rest) = poly::div(&Tensor::from([1.0f32, 0.0, -1.0]), &Tensor::from([1.0f32, 1.0]));
    /// assert_eq!((q.to_vec::<f32>()?, rest.to_vec::<f32>()?), (vec![1.0, -1.0], vec![0.0, 0.0, 0.0]));
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn div(p: &Tensor, q: &Tensor) -> (Tensor, Tensor) {
        check(&[p, q]);
        let [p, q] = exactly(promote(&[&inexact(p), q]));
        let (n, k) = (p.size(), q.size());
        if k == 0 {
            mistakes::raise(Error::value("a polynomial without coefficients divides none"));
        }
        let (mut rest, mut terms) = (p.clone(), vec![]);
        for i in 0..(n + 1).saturating_sub(k) {
            let d = rest.slice(crate::s![i]) / q.slice(crate::s![0]);
            rest = rest.at(crate::s![i..i + k]).add(-&d * &q);
            terms.push(d);
        }
        (if terms.is_empty() { Tensor::zeros_in(&[1], p.dtype()) } else { super::super::stack(&terms, 0) }, rest)
    }
    /// The polynomial with these zeros and 1 before the highest power.
    ///
    /// ```
    /// use ferrax::{Tensor, poly};
    /// assert_eq!(poly::from_roots(&Tensor::from([1.0f32, 2.0])).to_vec::<f32>()?, [1.0, -3.0, 2.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn from_roots(zeros: &Tensor) -> Tensor {
        check(&[zeros]);
        let zeros = inexact(zeros);
        let one = Tensor::ones(&[1]).astype(zeros.dtype());
        zeros.unstack(0).iter().fold(one.clone(), |p, z| {
            let factor = concatenate(&[one.clone(), -z.reshape(&[1])], 0);
            p.convolve(&factor, Mode::Full)
        })
    }
    /// The complex zeros, eigenvalues of the companion matrix. The first coefficient is not 0.
    ///
    /// ```
    /// use ferrax::{Tensor, poly};
    /// let zeros = poly::roots(&Tensor::from([1.0f32, 0.0, 4.0])); // of x^2 + 4
    /// assert_eq!(zeros.imag().abs().all_close(Tensor::from([2.0f32, 2.0]), 1e-5, 1e-5).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn roots(p: &Tensor) -> Tensor {
        check(&[p]);
        let p = inexact(p);
        let n = p.size();
        if n < 2 {
            return Tensor::zeros_in(&[0], p.dtype().complex());
        }
        let at = |k: usize| Tensor::iota(&[n - 1, n - 1], k, Dtype::I32);
        let below = at(0).eq(at(1) + 1).astype(p.dtype());
        let first = -p.narrow(0, 1, n) / p.slice(crate::s![0]);
        super::super::linalg::eigvals(&below.at(crate::s![0]).set(first))
    }
    /// The powers of a vector's elements in rows, falling to 0: `(size, n)`.
    ///
    /// ```
    /// use ferrax::{Tensor, poly};
    /// assert_eq!(poly::vander(&Tensor::from([2, 3]), 3).to_vec::<i32>()?, [4, 2, 1, 9, 3, 1]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn vander(x: &Tensor, n: usize) -> Tensor {
        check(&[x]);
        let column = x.expand_dims(-1);
        if !x.dtype().is_inexact() {
            let powers = (0..n).rev().map(|k| emit(Pointwise { f: Pw::IntegerPow, y: k as i32 }, &[&column]));
            return concatenate(&powers.collect::<Vec<_>>(), 1);
        }
        let powers = constant(x.dtype(), n as f64 - 1.0) - Tensor::arange(n, x.dtype());
        column.pow(powers.expand_dims(0))
    }
}
