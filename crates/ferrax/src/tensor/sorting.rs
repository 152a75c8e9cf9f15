//! Order: sort, argsort, top_k, searchsorted, median.
//!
//! ```
//! use ferrax::Tensor;
//! let x = Tensor::from([2.0f32, 3.0, 1.0]);
//! assert_eq!(x.sort(0).to_vec::<f32>()?, [1.0, 2.0, 3.0]);
//! let ((high, at), (low, _)) = (x.top_k(2, 0), x.approx_min_k(1, 0));
//! assert_eq!((high.to_vec::<f32>()?, at.to_vec::<i32>()?, low.item()), (vec![3.0, 2.0], vec![1, 0], 1.0));
//! assert_eq!(x.median(0).item(), 2.0);
//! # Ok::<(), ferrax::Error>(())
//! ```
use super::{IntoTensor, Tensor, axis_of, emit_many, exactly, promote};
use crate::mistakes;
use ferrax_ir::ops::sort::Sort;
use ferrax_ir::ops::top_k::{ApproxTopK, TopK};
use ferrax_ir::{Dtype, Error};

impl Tensor {
    /// Ascending along an axis; nan comes last.
    #[track_caller]
    pub fn sort(&self, axis: i64) -> Tensor {
        let dimension = axis_of(axis, self.rank());
        emit_many(Sort { dimension, is_stable: true, num_keys: 1 }, &[self]).remove(0)
    }
    /// The positions (int32) that sort along an axis; equal elements keep their order.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([3, 1, 2]).argsort(0).to_vec::<i32>()?, [1, 2, 0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn argsort(&self, axis: i64) -> Tensor {
        let dimension = axis_of(axis, self.rank());
        let at = Tensor::iota(self.shape(), dimension, Dtype::I32);
        emit_many(Sort { dimension, is_stable: true, num_keys: 1 }, &[self, &at]).remove(1)
    }
    /// This one sorted along an axis, and `with` in the same order.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let (keys, values) = Tensor::from([3, 1]).sort_with(&Tensor::from([30, 10]), 0);
    /// assert_eq!((keys.to_vec::<i32>()?, values.to_vec::<i32>()?), (vec![1, 3], vec![10, 30]));
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn sort_with(&self, with: &Tensor, axis: i64) -> (Tensor, Tensor) {
        let dimension = axis_of(axis, self.rank());
        let mut out = emit_many(Sort { dimension, is_stable: true, num_keys: 1 }, &[self, with]);
        let with = out.remove(1);
        (out.remove(0), with)
    }
    /// The k largest along an axis, descending, and their positions (int32).
    #[track_caller]
    pub fn top_k(&self, k: usize, axis: i64) -> (Tensor, Tensor) {
        let mut out = emit_many(TopK { axis: axis_of(axis, self.rank()), k }, &[self]);
        let at = out.remove(1);
        (out.remove(0), at)
    }
    /// The k largest floats along an axis, descending, and their positions (int32): [`Tensor::top_k`] under the name of those that may miss
    /// some elsewhere; ours miss none.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, 5.0, 3.0]).approx_max_k(2, 0).0.to_vec::<f32>()?, [5.0, 3.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// For other dtypes, and a k of 0 or above the size.
    #[track_caller]
    pub fn approx_max_k(&self, k: usize, axis: i64) -> (Tensor, Tensor) {
        self.approx(k, axis, true)
    }
    /// The k smallest floats along an axis, ascending, and their positions (int32); none is missed.
    ///
    /// # Panics
    /// For other dtypes, and a k of 0 or above the size.
    #[track_caller]
    pub fn approx_min_k(&self, k: usize, axis: i64) -> (Tensor, Tensor) {
        self.approx(k, axis, false)
    }
    #[track_caller]
    fn approx(&self, k: usize, axis: i64, is_max_k: bool) -> (Tensor, Tensor) {
        let op = ApproxTopK {
            aggregate_to_topk: true,
            is_max_k,
            k,
            recall_target: 0.95.into(),
            reduction_dimension: axis,
            reduction_input_size_override: -1,
        };
        let [values, at] = exactly(emit_many(op, &[self]));
        (values, at)
    }
    /// The position at which each of `values` would be inserted in this ascending vector, nan last:
    /// before equal elements (int32).
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1, 3, 3, 5]).searchsorted(Tensor::from([3, 9])).to_vec::<i32>()?, [1, 4]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn searchsorted(&self, values: impl IntoTensor) -> Tensor {
        let [x, v] = exactly(promote(&[self, &values.into_tensor()]));
        let v = v.expand_dims(-1);
        (v.gt(&x) | (v.is_nan() & !x.is_nan())).sum_axes(-1)
    }
    /// The middle element along an axis, the mean of two; nan if any is.
    #[track_caller]
    pub fn median(&self, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        let x = super::inexact(self);
        let n = x.shape()[k];
        if n == 0 {
            mistakes::raise(Error::value(format!("an axis without elements has no median: {}", x.aval().long())));
        }
        let sorted = super::where_(&x.is_nan().any_keep(k), f64::NAN, &x).sort(axis);
        let at = |i: usize| sorted.narrow(k, i, i + 1).squeeze(k);
        if n % 2 == 1 { at(n / 2) } else { at(n / 2 - 1) * 0.5 + at(n / 2) * 0.5 }
    }
}
