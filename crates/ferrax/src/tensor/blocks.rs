//! Grouped products, whose groups of rows have different right operands, and block-scaled products.
//!
//! ```
//! use ferrax::{Dtype, Tensor, ragged_dot, scaled_dot};
//! let (rows, weights) = (Tensor::ones(&[3, 2]), Tensor::from([[[1.0f32], [1.0]], [[5.0], [5.0]]]));
//! assert_eq!(ragged_dot(&rows, &weights, &Tensor::from([1, 2])).to_vec::<f32>()?, [2.0, 10.0, 10.0]);
//! let (x, y) = (Tensor::ones(&[1, 4]), Tensor::ones(&[4, 1]));
//! assert_eq!(scaled_dot(&x, &y, Some(&Tensor::full(&[1, 2], 0.5)), None, Dtype::F32).item(), 2.0);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: a scale has its operand's shape but for the contracted axis, whose size is a divisor of the operand's.
use super::{Tensor, dot_general, emit, exactly, promote};
use crate::mistakes;
use ferrax_ir::ops::broadcast::BroadcastInDim;
use ferrax_ir::ops::dot::DotDims;
use ferrax_ir::ops::ragged_dot::{RaggedDims, RaggedDot};
use ferrax_ir::{Dims, Dtype, Error};

/// Rows of `x` `[m, k]`, in groups of the sizes `[g]`, times `y` `[g, k, n]` of the group: `[m, n]`. Rows beyond the last group give zeros.
///
/// # Panics
/// Where shapes do not fit.
#[track_caller]
pub fn ragged_dot(x: &Tensor, y: &Tensor, sizes: &Tensor) -> Tensor {
    ragged_dot_general(x, y, sizes, (&[1], &[1]), (&[], &[]), 0, &[0])
}
/// [`dot_general`] where an axis of `x` falls into groups of `sizes`. If it is a free one, each group meets the slice of `y` along `groups` that
/// is its own; if it is contracted, each group is summed alone, along a new first axis; if it is a batch axis, groups change nothing.
///
/// ```
/// use ferrax::{Tensor, ragged_dot_general};
/// let (x, y) = (Tensor::from([[1.0f32, 2.0, 3.0]]), Tensor::ones(&[3, 1]));
/// let sums = ragged_dot_general(&x, &y, &Tensor::from([1, 2]), (&[1], &[0]), (&[], &[]), 1, &[]);
/// assert_eq!((sums.shape(), sums.to_vec::<f32>()?), (&[2, 1, 1][..], vec![1.0, 5.0]));
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Panics
/// Where shapes and axes do not fit.
#[track_caller]
pub fn ragged_dot_general(
    x: &Tensor,
    y: &Tensor,
    sizes: &Tensor,
    contract: (&[usize], &[usize]),
    batch: (&[usize], &[usize]),
    ragged: usize,
    groups: &[usize],
) -> Tensor {
    let [x, y] = exactly(promote(&[x, y]));
    let dot = DotDims { lc: contract.0.into(), rc: contract.1.into(), lb: batch.0.into(), rb: batch.1.into() };
    let numbers = RaggedDims { dot, ragged: [ragged].into(), groups: groups.into() };
    let op = RaggedDot {
        precision: Default::default(),
        preferred_element_type: None,
        ragged_dot_dimension_numbers: Box::new(numbers),
    };
    emit(op, &[&x, &y, sizes])
}
/// The (batched) product of matrices whose blocks along the contracted axis have scales, computed in float32 and given in `dtype`: `x`
/// `[.., m, k]`, `y` `[.., k, n]`, their scales `[.., m, k / block]` and `[.., k / block, n]`, blocks of two or more.
///
/// # Panics
/// Where ranks and sizes do not fit.
#[track_caller]
pub fn scaled_dot(x: &Tensor, y: &Tensor, x_scale: Option<&Tensor>, y_scale: Option<&Tensor>, dtype: Dtype) -> Tensor {
    let n = x.rank();
    let ranks = [Some(x), Some(y), x_scale, y_scale].map(|t| t.map_or(n, Tensor::rank));
    if n < 2 || ranks != [n; 4] {
        mistakes::raise(Error::type_error(format!(
            "scaled_dot takes operands and scales of one rank of 2 or more, got ranks {ranks:?}"
        )));
    }
    let batch: Vec<usize> = (0..n - 2).collect();
    let (x, y) = (scaled("x", x, x_scale, n - 1), scaled("y", y, y_scale, n - 2));
    dot_general(&x, &y, (&[n - 1], &[n - 2]), (&batch, &batch)).astype(dtype)
}
/// In float32, each block along the contracted axis times its scale.
#[track_caller]
fn scaled(name: &str, x: &Tensor, scale: Option<&Tensor>, contract: usize) -> Tensor {
    let x = x.astype(Dtype::F32);
    let Some(scale) = scale else { return x };
    let (have, of) = (scale.shape(), x.shape());
    let others = (0..x.rank()).all(|d| d == contract || have[d] == of[d]);
    let (n, blocks) = (of[contract], have[contract]);
    if !others || blocks == 0 || !n.is_multiple_of(blocks) || n / blocks < 2 {
        mistakes::raise(Error::type_error(format!(
            "the scale of {name} has its operand's shape, but for a divisor of axis {contract} that is at most half of it; got {} for {}",
            Dims::new(have),
            Dims::new(of)
        )));
    }
    let apart = [&of[..contract], &[blocks, n / blocks], &of[contract + 1..]].concat();
    let axes: Dims = (0..apart.len()).filter(|d| *d != contract + 1).collect();
    let spread = BroadcastInDim { broadcast_dimensions: axes, shape: Dims::new(&apart).into() };
    &x * emit(spread, &[&scale.astype(Dtype::F32)]).reshape(of)
}
