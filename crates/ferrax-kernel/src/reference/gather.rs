//! `Gather`: the source of each element of the output.
use super::array::{as_index, clamp_start, position};
use crate::Scalar;
use crate::routine::{Gather, OutOfBounds};
use crate::shape::Dims;

pub fn gather(g: &Gather, operand: &[Scalar], indices: &[Vec<Scalar>]) -> Vec<Scalar> {
    (0..g.out.size()).map(|o| source(g, indices, &g.out.unravel(o)).map_or(g.fill, |at| operand[at])).collect()
}

/// The position in the operand that output index `out` reads; none where it is filled.
fn source(g: &Gather, indices: &[Vec<Scalar>], out: &Dims) -> Option<usize> {
    let rank = g.operand.len();
    // The output's axes are the window's and the positions'.
    let window_index = out.pick(&g.offset_dims);
    let positions = out.without(&g.offset_dims);
    let mut start = vec![0i64; rank];
    for (j, axis) in g.start_index_map.iter().enumerate() {
        let at = position(&g.indices, &positions.concat(&[j]));
        start[*axis] = as_index(if g.apart { indices[j][at / g.start_index_map.len()] } else { indices[0][at] });
    }
    for (axis, of) in g.operand_batching_dims.iter().zip(g.start_indices_batching_dims.iter()) {
        start[*axis] = positions[*of] as i64;
    }
    let mut inside = window_index.iter();
    let mut index = vec![];
    for (axis, &start) in start.iter().enumerate() {
        let left_out = g.collapsed_slice_dims.contains(&axis) || g.operand_batching_dims.contains(&axis);
        let within =
            if left_out { 0 } else { *inside.next().expect("offset_dims has as many axes as the window keeps") };
        let moved = clamp_start(start, g.slice_sizes[axis], g.operand[axis]);
        if g.mode == OutOfBounds::FillOrDrop && moved as i64 != start {
            return None;
        }
        index.push(moved + within);
    }
    Some(position(&g.operand, &index))
}
