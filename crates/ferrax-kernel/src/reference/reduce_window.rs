//! `ReduceWindow`: the elements of a window that lie on elements of the operand, combined in sequence (row-major within the window)
//! from the identity. The accumulator has the lane dtype and is rounded once.
use super::array::position;
use super::kernel::lane;
use super::scalar::{bin, convert};
use super::undefined;
use crate::error::Res;
use crate::shape::Dims;
use crate::{DType, ReduceKind, Scalar};

pub struct Window<'a> {
    pub size: &'a Dims,
    pub strides: &'a Dims,
    pub base_dilation: &'a Dims,
    pub dilation: &'a Dims,
    pub padding: &'a [(i64, i64)],
}

impl Window<'_> {
    /// The operand index that element `w` of the window of output index `o` lies on; none in padding and in the holes of dilation.
    pub fn at(&self, operand: &[usize], o: &[usize], w: &[usize]) -> Option<Vec<usize>> {
        let along = |k: usize| {
            let p = (o[k] * self.strides[k] + w[k] * self.dilation[k]) as i64 - self.padding[k].0;
            let step = self.base_dilation[k] as i64;
            (p >= 0 && p % step == 0 && p / step < operand[k] as i64).then_some((p / step) as usize)
        };
        (0..operand.len()).map(along).collect()
    }
}

pub fn reduce_window(
    kind: ReduceKind,
    w: &Window,
    operand: &Dims,
    out: &Dims,
    dtype: DType,
    x: &[Scalar],
) -> Res<Vec<Scalar>> {
    let (Some(f), Some(identity)) = (kind.bin(), kind.identity(dtype)) else {
        return Err(undefined(kind.name(), Scalar::zero(dtype)));
    };
    let one = |o: usize| {
        let o = out.unravel(o);
        let inside = |i: usize| w.at(operand, &o, &w.size.unravel(i)).map(|at| x[position(operand, &at)]);
        let sum = (0..w.size.size()).filter_map(inside).try_fold(lane(identity), |sum, e| bin(f, sum, lane(e)))?;
        Ok(convert(sum, dtype))
    };
    (0..out.size()).map(one).collect()
}
