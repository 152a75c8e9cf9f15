//! `DynamicSlice` and `DynamicUpdateSlice`: a window whose starts are data, clamped so that it lies inside.
use super::array::{as_index, clamp_start, position};
use crate::Scalar;
use crate::shape::Dims;

/// The position in an array of shape `operand` of index `i` of the window.
fn at(operand: &Dims, window: &Dims, starts: &[Vec<Scalar>], i: usize) -> usize {
    let inside = window.unravel(i);
    let start = |k: usize| clamp_start(as_index(starts[k][0]), window[k], operand[k]);
    let index: Vec<usize> = (0..operand.len()).map(|k| start(k) + inside[k]).collect();
    position(operand, &index)
}

pub fn slice(operand: &Dims, sizes: &Dims, x: &[Scalar], starts: &[Vec<Scalar>]) -> Vec<Scalar> {
    (0..sizes.size()).map(|i| x[at(operand, sizes, starts, i)]).collect()
}

pub fn update(operand: &Dims, sizes: &Dims, x: &[Scalar], update: &[Scalar], starts: &[Vec<Scalar>]) -> Vec<Scalar> {
    let mut out = x.to_vec();
    for (i, u) in update.iter().enumerate() {
        out[at(operand, sizes, starts, i)] = *u;
    }
    out
}
