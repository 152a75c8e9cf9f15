//! Choosing elements by positions, orders and bits: `lexsort`, `partition`, `delete`, `insert`, `unravel_index`, `packbits` ..
//!
//! ```
//! use ferrax::{Tensor, lexsort, ravel_multi_index};
//! let (minor, major) = (Tensor::from([3, 1, 2]), Tensor::from([1, 0, 0]));
//! assert_eq!(lexsort(&[&minor, &major], 0).to_vec::<i32>()?, [1, 2, 0]); // the last key decides first
//! let x = Tensor::from([5, 1, 4, 2]);
//! assert_eq!(x.partition(1, 0).slice(ferrax::s![..2]).to_vec::<i32>()?, [1, 2]);
//! assert_eq!(x.delete(&Tensor::from([0, 3]), 0).to_vec::<i32>()?, [1, 4]);
//! assert_eq!(x.insert(1, 9, 0).to_vec::<i32>()?, [5, 9, 1, 4, 2]);
//! let at = Tensor::from([7]).unravel_index(&[3, 4]);
//! assert_eq!((at[0].item(), at[1].item()), (1.0, 3.0));
//! assert_eq!(ravel_multi_index(&at, &[3, 4]).item(), 7.0);
//! assert_eq!(Tensor::from([true, false, true]).packbits(0).to_vec::<u8>()?, [0b1010_0000]);
//! # Ok::<(), ferrax::Error>(())
//! ```
use super::{IntoTensor, Tensor, axis_of, concatenate, constant, emit_many, inexact, promote, pw, stack, where_};
use crate::mistakes;
use crate::s;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::ops::sort::Sort;
use ferrax_ir::{Dtype, Error};
use std::borrow::Borrow;

/// The positions (int32) that sort along an axis by several keys, the last of which decides first; equal elements keep their order.
///
/// # Panics
/// For no keys, or keys of several shapes.
#[track_caller]
pub fn lexsort<T: Borrow<Tensor>>(keys: &[T], axis: i64) -> Tensor {
    let Some(first) = keys.first().map(Borrow::borrow) else {
        mistakes::raise(Error::type_error("need sequence of keys with len > 0 in lexsort"))
    };
    let dimension = axis_of(axis, first.rank());
    let at = Tensor::iota(first.shape(), dimension, Dtype::I32);
    let all: Vec<&Tensor> = keys.iter().rev().map(Borrow::borrow).chain([&at]).collect();
    emit_many(Sort { dimension, is_stable: true, num_keys: keys.len() }, &all).remove(keys.len())
}
/// The position in a flattened array of `dims` that positions along its axes name.
///
/// # Panics
/// Unless there is one for each axis.
#[track_caller]
pub fn ravel_multi_index<T: Borrow<Tensor>>(index: &[T], dims: &[usize]) -> Tensor {
    if index.len() != dims.len() {
        mistakes::raise(Error::value(format!("len(multi_index)={} != len(dims)={}", index.len(), dims.len())));
    }
    let strides = (0..dims.len()).map(|d| dims[d + 1..].iter().product::<usize>());
    let all = index.iter().zip(strides).map(|(i, stride)| i.borrow() * stride);
    all.reduce(|a, b| a + b).unwrap_or_else(|| Tensor::from(0))
}

impl Tensor {
    /// The k-th smallest element along an axis in its place, smaller ones before it, larger ones behind.
    #[track_caller]
    pub fn partition(&self, k: usize, axis: i64) -> Tensor {
        let n = self.kth(k, axis);
        let low = turned(&turned(self).top_k(k + 1, axis).0);
        concatenate(&[low, self.top_k(n - k - 1, axis).0], axis)
    }
    /// The positions (int32) that [`Tensor::partition`] takes elements from.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// let x = Tensor::from([9, 1, 5]);
    /// assert_eq!(x.argpartition(0, 0).slice(s![0]).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn argpartition(&self, k: usize, axis: i64) -> Tensor {
        let n = self.kth(k, axis);
        let (x, at) = (self.move_axis(axis, -1), -1);
        let low = turned(&x).top_k(k + 1, at).1;
        // whether it is among them, position by position
        let taken = Tensor::arange(n, Dtype::I32).expand_dims(-1).eq(low.expand_dims(-2)).any_axes(-1);
        let high = where_(&taken, 0.0, Tensor::ones(x.shape())).top_k(n - k - 1, at).1;
        concatenate(&[low, high], -1).move_axis(-1, axis)
    }
    /// How many elements there are along an axis, of which k is one.
    #[track_caller]
    fn kth(&self, k: usize, axis: i64) -> usize {
        let n = self.shape()[axis_of(axis, self.rank())];
        if k >= n {
            mistakes::raise(Error::value(format!("kth(={k}) out of bounds ({n})")));
        }
        n
    }
    /// Ascending along the last axis, complex.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([2.0f32, 1.0]).sort_complex().real().to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn sort_complex(&self) -> Tensor {
        let x = self.sort(-1);
        match x.dtype() {
            d if d.is_complex() => x,
            Dtype::F64 => x.astype(Dtype::C128),
            _ => x.astype(Dtype::C64),
        }
    }
    /// Positions in a flattened array of `shape` as positions along its axes; negative ones count from the end.
    #[track_caller]
    pub fn unravel_index(&self, shape: &[usize]) -> Vec<Tensor> {
        let total: usize = shape.iter().product();
        let mut rest = where_(&self.lt(0), self + total, self).clip(0, total.max(1) - 1);
        let mut out = vec![];
        for n in shape.iter().rev() {
            let (more, at) = rest.div_mod((*n).max(1));
            out.push(at);
            rest = more;
        }
        out.reverse();
        out
    }
    /// Elementwise, that of `choices` which this one's integers name; those outside name the nearest.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([1, 0]).choose(&[Tensor::from([10, 20]), Tensor::from([30, 40])]);
    /// assert_eq!(x.to_vec::<i32>()?, [30, 20]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn choose<T: Borrow<Tensor>>(&self, choices: &[T]) -> Tensor {
        if choices.is_empty() {
            mistakes::raise(Error::value("choices must be a sequence with at least one element"));
        }
        let all: Vec<&Tensor> = choices.iter().map(Borrow::borrow).collect();
        let all = promote(&all);
        let mut both =
            super::broadcast_arrays(&std::iter::once(self.clip(0, choices.len() - 1)).chain(all).collect::<Vec<_>>());
        let at = both.remove(0);
        stack(&both, 0).take_along_axis(&at.expand_dims(0), 0).squeeze(0)
    }
    /// Without the slices at these positions of an axis.
    ///
    /// # Panics
    /// If the positions are not known.
    #[track_caller]
    pub fn delete(&self, at: &Tensor, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        let n = self.shape()[k];
        let places = where_(&at.lt(0), at + n, at).flatten();
        let kept = Tensor::full(&[n], true).at(s![&places]).set(false).nonzero().remove(0);
        self.take(&kept, k as i64)
    }
    /// With `values`, which broadcast, as a new slice before position `at` of an axis.
    #[track_caller]
    pub fn insert(&self, at: i64, values: impl IntoTensor, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        let n = self.shape()[k];
        let at = if at < 0 { at + n as i64 } else { at }.clamp(0, n as i64) as usize;
        let mut shape = self.shape().to_vec();
        shape[k] = 1;
        let values = values.into_tensor().astype(self.dtype());
        let new = if values.rank() + 1 == self.rank() { values.expand_dims(k as i64) } else { values };
        concatenate(&[self.narrow(k, 0, at), new.broadcast_to(&shape), self.narrow(k, at, n)], k as i64)
    }
    /// A vector without the zeros at its ends.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([0, 0, 1, 0, 2, 0]).trim_zeros().to_vec::<i32>()?, [1, 0, 2]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the elements are not known.
    #[track_caller]
    pub fn trim_zeros(&self) -> Tensor {
        if self.rank() != 1 {
            mistakes::raise(Error::value(format!("trim_zeros takes a vector, got {}", self.aval().long())));
        }
        let at = self.nonzero().remove(0);
        match at.size() {
            0 => self.narrow(0, 0, 0),
            _ => self.narrow(0, at.min().item() as usize, at.max().item() as usize + 1),
        }
    }
    /// The differences of neighbours of the flattened elements.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([[1, 4], [9, 9]]).ediff1d().to_vec::<i32>()?, [3, 5, 0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn ediff1d(&self) -> Tensor {
        self.flatten().diff(1, 0)
    }
    /// Angles along an axis without jumps of more than half a `period`.
    ///
    /// ```
    /// use ferrax::{Tensor, s};
    /// let x = Tensor::from([0.0f32, 3.0, -3.0]); // a step of -6 is one of 6 less than a turn
    /// assert!(x.unwrap(0, std::f64::consts::TAU).slice(s![2]).item() > 3.0);
    /// ```
    #[track_caller]
    pub fn unwrap(&self, axis: i64, period: f64) -> Tensor {
        let k = axis_of(axis, self.rank());
        let x = inexact(self);
        let n = x.shape()[k];
        if n == 0 {
            return x;
        }
        let (step, half) = (x.diff(1, k as i64), period / 2.0);
        let wrapped = (&step + half).modulo(period) - half;
        let wrapped = where_(&(wrapped.eq(-half) & step.gt(0)), half, wrapped);
        let correction = where_(&step.abs().lt(half), 0, wrapped - &step);
        concatenate(&[x.narrow(k, 0, 1), x.narrow(k, 1, n) + correction.cumsum(k as i64)], k as i64)
    }
    /// Elementwise distance to the next number away from zero.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from(1.0f32).spacing().item(), f32::EPSILON as f64);
    /// ```
    #[track_caller]
    pub fn spacing(&self) -> Tensor {
        let x = inexact(self);
        let step = x.nextafter(constant(x.dtype(), f64::INFINITY).copysign(&x)) - &x;
        let least = match x.dtype() {
            Dtype::F16 => 2f64.powi(-24),
            Dtype::BF16 => 2f64.powi(-133),
            Dtype::F64 => f64::from_bits(1),
            _ => 2f64.powi(-149),
        };
        where_(&step.eq(0), constant(x.dtype(), least).copysign(&x), step)
    }
    /// Whether elements are nonzero, eight a byte along an axis, the first in the highest bit; zeros fill the last.
    #[track_caller]
    pub fn packbits(&self, axis: i64) -> Tensor {
        let x = self.ne(constant(self.dtype(), 0.0)).astype(Dtype::U8).move_axis(axis, -1);
        let n = x.shape()[x.rank() - 1];
        let mut widths = vec![(0, 0); x.rank()];
        widths[x.rank() - 1].1 = (n.div_ceil(8) * 8 - n) as i64;
        let mut shape = x.shape().to_vec();
        shape[x.rank() - 1] = n.div_ceil(8);
        shape.push(8);
        let bits = Tensor::arange(8, Dtype::U8).flip(0);
        let shifted = pw(Pw::ShiftLeft, &[&x.pad(&widths, 0).reshape(&shape), &bits.broadcast_to(&shape)]);
        shifted.sum_axes(-1).astype(Dtype::U8).move_axis(-1, axis)
    }
    /// The bits of bytes along an axis, the highest first.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([5u8]).unpackbits(0).to_vec::<u8>()?, [0, 0, 0, 0, 0, 1, 0, 1]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// Unless the dtype is uint8.
    #[track_caller]
    pub fn unpackbits(&self, axis: i64) -> Tensor {
        if self.dtype() != Dtype::U8 {
            mistakes::raise(Error::type_error("Expected an input array of unsigned byte data type"));
        }
        let x = self.move_axis(axis, -1);
        let bits = Tensor::from([128u8, 64, 32, 16, 8, 4, 2, 1]);
        let mut shape = x.shape().to_vec();
        shape[x.rank() - 1] *= 8;
        let set = (x.expand_dims(-1) & bits).gt(0).astype(Dtype::U8);
        set.reshape(&shape).move_axis(-1, axis)
    }
}
/// Reverses the order: the largest of these are the smallest of those.
#[track_caller]
fn turned(x: &Tensor) -> Tensor {
    match x.dtype() {
        d if d.is_bool() || d.is_unsigned() => !x,
        _ => -x,
    }
}
