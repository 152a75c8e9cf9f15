//! Quantiles, covariances, histograms.
//!
//! ```
//! use ferrax::Tensor;
//! let x = Tensor::from([1.0f32, 2.0, 4.0, f32::NAN]);
//! assert_eq!(x.nanquantile(0.5, 0).item(), 2.0);
//! assert!(x.quantile(0.5, 0).item().is_nan());
//! let (counts, edges) = x.slice(ferrax::s![..3]).histogram(3, None);
//! assert_eq!((counts.to_vec::<f32>()?, edges.to_vec::<f32>()?), (vec![1.0, 1.0, 1.0], vec![1.0, 2.0, 3.0, 4.0]));
//! let points = Tensor::from([[0.0f32, 0.0], [1.0, 1.0], [0.9, 0.1]]);
//! let (boxes, edges) = points.histogramdd(&[2, 2], None);
//! assert_eq!((boxes.to_vec::<i32>()?, edges[0].to_vec::<f32>()?), (vec![1, 0, 1, 1], vec![0.0, 0.5, 1.0]));
//! assert_eq!(Tensor::from([2, 0, 2]).bincount(4).to_vec::<i32>()?, [1, 0, 2, 0]);
//! let rows = Tensor::from([[1.0f32, 2.0, 3.0], [3.0, 2.0, 1.0]]);
//! assert_eq!(rows.cov(1).to_vec::<f32>()?, [1.0, -1.0, -1.0, 1.0]);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: a nan among the elements gives nan, except in functions that ignore nan.
use super::{
    IntoAxes, IntoTensor, Tensor, axis_of, concatenate, constant, exactly, inexact, promote, pw, stack, where_,
};
use crate::mistakes;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::{Dtype, Error};

/// `n` points from a to b, rank-0 floats of one dtype: a weighted mean of the ends, and the last end as it is.
#[track_caller]
pub(super) fn points(a: &Tensor, b: &Tensor, n: usize) -> Tensor {
    let d = a.dtype();
    match n {
        0 => Tensor::zeros_in(&[0], d),
        1 => a.reshape(&[1]),
        n => {
            let t = pw(Pw::Div, &[&Tensor::arange(n - 1, d), &constant(d, (n - 1) as f64)]);
            concatenate(&[a * (constant(d, 1.0) - &t) + b * t, b.reshape(&[1])], 0)
        }
    }
}
impl Tensor {
    /// The q-quantile along an axis, between two elements by a straight line; q in [0, 1], a vector of them along a new first axis.
    ///
    /// # Panics
    /// For complex numbers, an empty axis, and q of more axes.
    #[track_caller]
    pub fn quantile(&self, q: impl IntoTensor, axis: i64) -> Tensor {
        self.quantiles(q.into_tensor(), axis, false)
    }
    /// [`Tensor::quantile`], ignoring nan.
    #[track_caller]
    pub fn nanquantile(&self, q: impl IntoTensor, axis: i64) -> Tensor {
        self.quantiles(q.into_tensor(), axis, true)
    }
    /// [`Tensor::quantile`] with q in percent.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, 2.0, 5.0]).percentile(25, 0).item(), 1.5);
    /// ```
    #[track_caller]
    pub fn percentile(&self, q: impl IntoTensor, axis: i64) -> Tensor {
        self.quantile(hundredth(q), axis)
    }
    /// [`Tensor::nanquantile`] with q in percent.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, f32::NAN, 2.0, 5.0]).nanpercentile(25, 0).item(), 1.5);
    /// ```
    #[track_caller]
    pub fn nanpercentile(&self, q: impl IntoTensor, axis: i64) -> Tensor {
        self.nanquantile(hundredth(q), axis)
    }
    /// The median along an axis, ignoring nan.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, f32::NAN, 2.0, 5.0]).nanmedian(0).item(), 2.0);
    /// ```
    #[track_caller]
    pub fn nanmedian(&self, axis: i64) -> Tensor {
        self.nanquantile(0.5, axis)
    }
    #[track_caller]
    fn quantiles(&self, q: Tensor, axis: i64, skip: bool) -> Tensor {
        let (x, q, k) = (inexact(self), inexact(&q).strong(), axis_of(axis, self.rank()));
        if x.dtype().is_complex() || x.shape()[k] == 0 || q.rank() > 1 {
            mistakes::raise(Error::value(format!(
                "quantile does not support complex or empty input, nor q of rank above 1, got {} and {}",
                x.aval().long(),
                q.aval().long()
            )));
        }
        let missing = x.is_nan();
        let mark = if skip { missing.clone() } else { missing.any_keep(k) };
        let sorted = where_(&mark, f64::NAN, &x).sort(k as i64);
        let count = if skip {
            (!missing).astype(Dtype::I32).astype(q.dtype()).sum_axes(k)
        } else {
            constant(q.dtype(), x.shape()[k] as f64)
        };
        let one = |q: &Tensor| sorted.at_share(q, &count, k).astype(x.dtype());
        if q.rank() == 0 { one(&q) } else { stack(&q.unstack(0).iter().map(one).collect::<Vec<_>>(), 0) }
    }
    /// The quantile q of the first `count` elements of each ascending vector along axis k.
    #[track_caller]
    fn at_share(&self, q: &Tensor, count: &Tensor, k: usize) -> Tensor {
        let (zero, one) = (constant(q.dtype(), 0.0), constant(q.dtype(), 1.0));
        let last = count - &one;
        let position = q * &last;
        let (low, high) = (position.floor(), position.ceil());
        let share = &position - &low;
        let pick = |i: Tensor| {
            let i = zero.maximum(i.minimum(&last)).astype(Dtype::I32);
            match i.rank() {
                0 => self.take(&i, k as i64),
                _ => self.take_along_axis(&i.expand_dims(k as i64), k as i64).squeeze(k),
            }
        };
        pick(low) * (one.clone() - &share) + pick(high) * share
    }
    /// The mean along axes, weighted; weights have the tensor's shape.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([1.0f32, 5.0]);
    /// assert_eq!(x.average(&Tensor::from([3.0f32, 1.0]), 0).item(), 2.0);
    /// ```
    #[track_caller]
    pub fn average(&self, weights: &Tensor, axes: impl IntoAxes) -> Tensor {
        let [x, w] = exactly(promote(&[&inexact(self), weights]));
        let axes = axes.axes(x.rank());
        (x * &w).sum_axes(&axes[..]) / w.sum_axes(&axes[..])
    }
    /// The covariances of variables, each a row of observations, over `n - ddof`: a matrix, or one number for one variable.
    ///
    /// # Panics
    /// Above rank 2.
    #[track_caller]
    pub fn cov(&self, ddof: i64) -> Tensor {
        let x = match self.rank() {
            0 => inexact(self).reshape(&[1, 1]),
            1 => inexact(self).expand_dims(0),
            2 => inexact(self),
            _ => mistakes::raise(Error::value("m has more than 2 dimensions")),
        };
        let n = x.shape()[1] as f64 - ddof as f64;
        let x = &x - x.mean_axes(1).expand_dims(-1);
        let c = x.matmul(x.t().conj());
        (&c / constant(c.dtype(), n)).squeeze(..)
    }
    /// The correlations of variables, each a row of observations: covariances over the products of standard deviations.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// let c = Tensor::from([[1.0f32, 2.0, 3.0], [6.0, 4.0, 2.0]]).corrcoef();
    /// assert!((c.slice(s![0, 1]).item() + 1.0).abs() < 1e-5);
    /// ```
    #[track_caller]
    pub fn corrcoef(&self) -> Tensor {
        let c = self.cov(1);
        if c.rank() == 0 {
            return c.clone() / c;
        }
        let s = c.diagonal().real().sqrt();
        let out = &c / s.expand_dims(-1) / s.expand_dims(0);
        let limited = |x: Tensor| x.clip(-1.0, 1.0);
        if out.dtype().is_complex() { limited(out.real()).complex(limited(out.imag())) } else { limited(out) }
    }
    /// The `bins + 1` edges of equal bins over `range` (`None`: from the least element to the largest).
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([0.0f32, 4.0]).histogram_bin_edges(2, None).to_vec::<f32>()?, [0.0, 2.0, 4.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn histogram_bin_edges(&self, bins: usize, range: Option<(f64, f64)>) -> Tensor {
        let x = inexact(self).strong();
        let c = |v: f64| constant(x.dtype(), v);
        let (low, high) = match range {
            Some((a, b)) => (c(a), c(b)),
            None if x.size() == 0 => (c(0.0), c(1.0)),
            None => (x.min(), x.max()),
        };
        let same = (&high - &low).eq(0.0);
        points(&where_(&same, &low - 0.5, &low), &where_(&same, &high + 0.5, &high), bins + 1)
    }
    /// `(counts, edges)` of the elements in equal bins over `range`; the last edge belongs to the
    /// last bin; elements outside are not counted.
    #[track_caller]
    pub fn histogram(&self, bins: usize, range: Option<(f64, f64)>) -> (Tensor, Tensor) {
        let x = inexact(self).strong().flatten();
        let edges = x.histogram_bin_edges(bins, range);
        let at = edges.searchsorted_right(&x);
        let last = edges.narrow(0, bins, bins + 1);
        let at = where_(&x.eq(last), bins, at).astype(Dtype::I32);
        let counts = Tensor::zeros_in(&[bins + 1], x.dtype()).at(crate::s![&at]).add(1);
        (counts.narrow(0, 1, bins + 1), edges)
    }
    /// `(counts, edges)` of points, rows of this matrix, in equal boxes: `bins` and `range` (`None`: from the least to the largest) have an entry
    /// for each column. Counts are int32, of shape `bins`; each column has a vector of edges.
    ///
    /// # Panics
    /// Unless this is a matrix, with a column for each entry.
    #[track_caller]
    pub fn histogramdd(&self, bins: &[usize], range: Option<&[(f64, f64)]>) -> (Tensor, Vec<Tensor>) {
        let x = inexact(self);
        let entries = [Some(bins.len()), range.map(<[_]>::len)];
        if x.rank() != 2 || entries.iter().flatten().any(|n| *n != x.shape()[1]) {
            mistakes::raise(Error::value(format!(
                "histogramdd takes points in rows, with bins and a range for each column; got {} and {} bins",
                x.aval().long(),
                bins.len()
            )));
        }
        let one = |(k, n): (usize, &usize)| {
            let column = x.narrow(1, k, k + 1).squeeze(1);
            let edges = column.histogram_bin_edges(*n, range.map(|r| r[k]));
            let at = edges.searchsorted_right(&column);
            (where_(&column.eq(edges.narrow(0, *n, n + 1)), &at - 1, &at), edges)
        };
        let (at, edges): (Vec<Tensor>, Vec<Tensor>) = bins.iter().enumerate().map(one).unzip();
        // one more bin at each side, for elements outside
        let wide: Vec<usize> = bins.iter().map(|n| n + 2).collect();
        let counts = super::ravel_multi_index(&at, &wide).bincount(wide.iter().product()).reshape(&wide);
        (bins.iter().enumerate().fold(counts, |c, (k, n)| c.narrow(k, 1, n + 1)), edges)
    }
    /// `(counts, edges of this one, edges of y)` of points in the plane, whose coordinates two vectors are: [`Tensor::histogramdd`] of two columns.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let (x, y) = (Tensor::from([0.0f32, 1.0, 1.0]), Tensor::from([0.0f32, 2.0, 4.0]));
    /// let (counts, _, edges) = x.histogram2d(&y, [1, 2], Some([(0.0, 1.0), (0.0, 4.0)]));
    /// assert_eq!((counts.to_vec::<i32>()?, edges.to_vec::<f32>()?), (vec![1, 2], vec![0.0, 2.0, 4.0]));
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// Unless they are vectors of one size.
    #[track_caller]
    pub fn histogram2d(
        &self,
        y: &Tensor,
        bins: [usize; 2],
        range: Option<[(f64, f64); 2]>,
    ) -> (Tensor, Tensor, Tensor) {
        let (counts, edges) = stack(&[self, y], 1).histogramdd(&bins, range.as_ref().map(|r| &r[..]));
        let [x, y] = exactly(edges);
        (counts, x, y)
    }
    /// How often each integer below `length` occurs in this vector; negative ones count as 0, others are not counted.
    #[track_caller]
    pub fn bincount(&self, length: usize) -> Tensor {
        let at = self.astype(Dtype::I32).maximum(0);
        Tensor::zeros_in(&[length], Dtype::I32).at(crate::s![&at]).add(1)
    }
    /// The bin of each element among edges that rise or fall: i where `edges[i - 1] <= x < edges[i]`.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([0.5f32, 2.0]).digitize(&Tensor::from([0.0f32, 1.0, 2.0])).to_vec::<i32>()?, [1, 3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn digitize(&self, edges: &Tensor) -> Tensor {
        let n = edges.size();
        let falling = n as i32 - edges.flip(0).searchsorted_right(self);
        let ends = edges.take(&Tensor::from([0, n as i32 - 1]), 0).unstack(0);
        where_(&ends[1].ge(&ends[0]), edges.searchsorted_right(self), falling)
    }
    /// [`Tensor::searchsorted`], after equal elements.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 3, 3, 5]).searchsorted_right(Tensor::from([3, 9])).to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn searchsorted_right(&self, values: impl IntoTensor) -> Tensor {
        let [x, v] = exactly(promote(&[self, &values.into_tensor()]));
        let v = v.expand_dims(-1);
        (v.ge(&x) | v.is_nan()).sum_axes(-1)
    }
}
#[track_caller]
fn hundredth(q: impl IntoTensor) -> Tensor {
    let q = inexact(&q.into_tensor()).strong();
    pw(Pw::Div, &[&q, &constant(q.dtype(), 100.0).broadcast_to(q.shape())])
}
