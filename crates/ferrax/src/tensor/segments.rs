//! Segment reductions: `segment_sum` and related functions.
//!
//! ```
//! use ferrax::Tensor;
//! let (rows, ids) = (Tensor::from([1, 2, 4]), Tensor::from([0, 0, 2]));
//! assert_eq!(rows.segment_sum(&ids, 3).to_vec::<i32>()?, [3, 0, 4]);
//! assert_eq!(rows.segment_prod(&ids, 3).to_vec::<i32>()?, [2, 1, 4]);
//! assert_eq!(rows.segment_max(&ids, 3).to_vec::<i32>()?, [2, i32::MIN, 4]);
//! assert_eq!(rows.segment_min(&ids, 2).to_vec::<i32>()?, [1, i32::MAX]); // what has no segment is left out
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: the result has a row for each segment; rows with a number outside of the segments,
//! negative ones too, are dropped.
use super::{Tensor, constant, emit};
use crate::mistakes;
use ferrax_ir::ops::scatter::{Scatter, ScatterDims, ScatterKind};
use ferrax_ir::{Dtype, Error, Lit, Value};
use ferrax_kernel::ReduceKind;
use ferrax_kernel::routine::OutOfBounds;

macro_rules! segments {
    ($($f:ident $kind:ident $start:ident $doc:literal;)*) => { impl Tensor { $(
        #[doc = $doc]
        #[doc = ""]
        #[doc = "`ids` is a vector of integers, one for each row, in any order; one row alone is that of every id."]
        #[doc = ""]
        #[doc = "# Panics"]
        #[doc = "For ids of another dtype or shape."]
        #[track_caller]
        pub fn $f(&self, ids: &Tensor, segments: usize) -> Tensor {
            self.segment(ids, segments, ScatterKind::$kind, ReduceKind::$start)
        }
    )* } }
}
segments! {
    segment_sum Add Sum "The sums of the rows of each of `segments` segments, 0 for one without rows.";
    segment_prod Mul Prod "The products of the rows of each of `segments` segments, 1 for one without rows.";
    segment_max Max Max "The maxima of the rows of each of `segments` segments, the least value for one without rows.";
    segment_min Min Min "The minima of the rows of each of `segments` segments, the greatest value for one without rows.";
}
impl Tensor {
    #[track_caller]
    fn segment(&self, ids: &Tensor, segments: usize, kind: ScatterKind, start: ReduceKind) -> Tensor {
        if !ids.dtype().is_int() || ids.rank() != 1 {
            mistakes::raise(Error::type_error(format!(
                "segment ids are a vector of integers, one for each row of {}, got {}",
                self.aval().long(),
                ids.aval().long()
            )));
        }
        let rest = self.shape().get(1..).unwrap_or_default();
        let rows = self.broadcast_to(&[ids.shape(), rest].concat());
        let op = Scatter {
            kind,
            dimension_numbers: Box::new(ScatterDims {
                update_window_dims: (1..rows.rank()).collect(),
                inserted_window_dims: [0].into(),
                scatter_dims_to_operand_dims: [0].into(),
                ..ScatterDims::default()
            }),
            indices_are_sorted: false,
            mode: OutOfBounds::FillOrDrop,
            unique_indices: false,
        };
        let out = neutral(self.dtype(), start).broadcast_to(&[&[segments], rest].concat());
        emit(op, &[&out, &ids.expand_dims(-1), &rows.strong()])
    }
}
/// The identity of the reduction.
#[track_caller]
fn neutral(d: Dtype, of: ReduceKind) -> Tensor {
    match (d.num().and_then(|n| of.identity(n)), of) {
        (Some(x), _) => Tensor(Value::Lit(Lit::new(x, false))),
        (None, ReduceKind::Max) => constant(d, f64::NEG_INFINITY),
        (None, ReduceKind::Min) => constant(d, f64::INFINITY),
        (None, ReduceKind::Prod) => constant(d, 1.0),
        _ => constant(d, 0.0),
    }
}
