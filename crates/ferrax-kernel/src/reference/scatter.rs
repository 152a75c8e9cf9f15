//! `Scatter`: the destination of each element of the updates, position by position.
use super::array::{as_index, clamp_start, position};
use super::scalar::bin;
use super::undefined;
use crate::error::Res;
use crate::routine::{Combine, OutOfBounds, Scatter};
use crate::shape::Dims;
use crate::{Bin, Scalar};

pub fn scatter(s: &Scatter, operand: &[Scalar], indices: &[Scalar], updates: &[Scalar]) -> Res<Vec<Scalar>> {
    let mut out = operand.to_vec();
    let (order, sizes) = s.order();
    for n in 0..s.updates.size() {
        let mut u: Dims = order.iter().map(|_| 0).collect();
        order.iter().zip(sizes.unravel(n).iter()).for_each(|(axis, i)| u[*axis] = *i);
        if let Some(at) = target(s, indices, &u) {
            out[at] = combine(s.combine, out[at], updates[position(&s.updates, &u)])?;
        }
    }
    Ok(out)
}

fn combine(how: Combine, old: Scalar, new: Scalar) -> Res<Scalar> {
    match how {
        Combine::Set => Ok(new),
        Combine::Sub => bin(Bin::Sub, old, new),
        Combine::Reduce(kind) => bin(kind.bin().ok_or_else(|| undefined(kind.name(), old))?, old, new),
    }
}

/// The position in the operand that update index `u` writes; none where it is dropped.
fn target(s: &Scatter, indices: &[Scalar], u: &Dims) -> Option<usize> {
    let rank = s.operand.len();
    let window_index = u.pick(&s.update_window_dims);
    let window_sizes = s.updates.pick(&s.update_window_dims);
    let positions = u.without(&s.update_window_dims);
    let mut start = vec![0i64; rank];
    for (j, axis) in s.scatter_dims_to_operand_dims.iter().enumerate() {
        start[*axis] = as_index(indices[position(&s.indices, &positions.concat(&[j]))]);
    }
    for (axis, of) in s.operand_batching_dims.iter().zip(s.scatter_indices_batching_dims.iter()) {
        start[*axis] = positions[*of] as i64;
    }
    let mut inside = window_index.iter().zip(window_sizes.iter());
    let mut index = vec![];
    for (axis, &start) in start.iter().enumerate() {
        let left_out = s.inserted_window_dims.contains(&axis) || s.operand_batching_dims.contains(&axis);
        let (within, size) = if left_out {
            (&0, &1)
        } else {
            inside.next().expect("update_window_dims has as many axes as the window keeps")
        };
        if *size > s.operand[axis] {
            return None;
        }
        let moved = clamp_start(start, *size, s.operand[axis]);
        if s.mode == OutOfBounds::FillOrDrop && moved as i64 != start {
            return None;
        }
        index.push(moved + within);
    }
    Some(position(&s.operand, &index))
}
