//! Reductions that ignore nan.
//!
//! INVARIANT: for other dtypes than floats they are the plain reductions.
use super::{all, keep, max, min, most_of, prod, root, sum};
use crate::tensor::{Tensor, constant, inexact, where_};
use ferrax_ir::{Dims, Dtype};

#[track_caller]
fn filled(x: &Tensor, by: f64) -> Tensor {
    if x.dtype().is_inexact() { where_(&x.is_nan(), constant(x.dtype(), by), x) } else { x.clone() }
}
#[track_caller]
pub(super) fn nansum(x: &Tensor, axes: &Dims) -> Tensor {
    sum(&filled(x, 0.0), axes)
}
#[track_caller]
pub(super) fn nanprod(x: &Tensor, axes: &Dims) -> Tensor {
    prod(&filled(x, 1.0), axes)
}
#[track_caller]
fn extreme(x: &Tensor, axes: &Dims, fill: f64, f: fn(&Tensor, &Dims) -> Tensor) -> Tensor {
    let out = f(&filled(x, fill), axes);
    if !x.dtype().is_inexact() {
        return out;
    }
    where_(&all(&x.is_nan(), axes), constant(x.dtype(), f64::NAN), out)
}
#[track_caller]
pub(super) fn nanmax(x: &Tensor, axes: &Dims) -> Tensor {
    extreme(x, axes, f64::NEG_INFINITY, max)
}
#[track_caller]
pub(super) fn nanmin(x: &Tensor, axes: &Dims) -> Tensor {
    extreme(x, axes, f64::INFINITY, min)
}
/// How many elements are not nan.
#[track_caller]
fn present(x: &Tensor, axes: &Dims) -> Tensor {
    sum(&(!x.is_nan()).astype(Dtype::I32), axes)
}
#[track_caller]
pub(super) fn nanmean(x: &Tensor, axes: &Dims) -> Tensor {
    let x = inexact(x);
    let count = sum(&(!x.is_nan()).astype(Dtype::I32).astype(x.dtype()), axes);
    nansum(&x, axes) / count
}
#[track_caller]
pub(super) fn nanvar(x: &Tensor, axes: &Dims) -> Tensor {
    let x = inexact(x);
    let middle = keep(&nanmean(&x, axes), x.shape(), axes);
    let centred = where_(&x.is_nan(), constant(x.dtype(), 0.0), &x - middle);
    let squares = if x.dtype().is_complex() { (&centred * centred.conj()).real() } else { centred.square() };
    let n = present(&x, axes).astype(squares.dtype());
    let nothing = n.le(0.0);
    let total = sum(&squares, axes) / where_(&nothing, 1.0, &n);
    where_(&nothing, f64::NAN, total)
}
#[track_caller]
pub(super) fn nanstd(x: &Tensor, axes: &Dims) -> Tensor {
    root(&nanvar(x, axes))
}
impl Tensor {
    /// The position (int32) of the first largest element that is not nan along an axis; -1 if all are.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([f32::NAN, 1.0, 5.0]).nanargmax(0).item(), 2.0);
    /// ```
    #[track_caller]
    pub fn nanargmax(&self, axis: i64) -> Tensor {
        self.position(axis, filled(self, f64::NEG_INFINITY).argmax(axis))
    }
    /// The position (int32) of the first least element that is not nan along an axis; -1 if all are.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([f32::NAN, 1.0, 5.0]).nanargmin(0).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn nanargmin(&self, axis: i64) -> Tensor {
        self.position(axis, filled(self, f64::INFINITY).argmin(axis))
    }
    #[track_caller]
    fn position(&self, axis: i64, at: Tensor) -> Tensor {
        if self.dtype().is_inexact() { where_(&self.is_nan().all_axes(axis), -1, at) } else { at }
    }
    /// Running sum along an axis, nan counting as 0.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, f32::NAN, 5.0]).nancumsum(0).to_vec::<f32>()?, [1.0, 1.0, 6.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn nancumsum(&self, axis: i64) -> Tensor {
        filled(self, 0.0).cumsum(axis)
    }
    /// Running product along an axis, nan counting as 1.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([2.0f32, f32::NAN, 5.0]).nancumprod(0).to_vec::<f32>()?, [2.0, 2.0, 10.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn nancumprod(&self, axis: i64) -> Tensor {
        filled(self, 1.0).cumprod(axis)
    }
    /// `nan` where there is a nan, and the largest and the least finite numbers for the infinite ones.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([f32::NAN, f32::INFINITY, 1.0]);
    /// assert_eq!(x.nan_to_num(0.5).to_vec::<f32>().unwrap(), [0.5, f32::MAX, 1.0]);
    /// ```
    #[track_caller]
    pub fn nan_to_num(&self, nan: f64) -> Tensor {
        let d = self.dtype();
        if !d.is_inexact() {
            return self.clone();
        }
        if d.is_complex() {
            return self.real().nan_to_num(nan).complex(self.imag().nan_to_num(nan));
        }
        let most = most_of(d);
        let c = |x: f64| constant(d, x);
        let x = where_(&self.is_nan(), c(nan), self);
        let x = where_(&x.eq(c(f64::INFINITY)), c(most), &x);
        where_(&x.eq(c(f64::NEG_INFINITY)), c(-most), &x)
    }
}
