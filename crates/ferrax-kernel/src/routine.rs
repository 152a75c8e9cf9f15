//! The closed list of what is not a loop nest over scalars. Each has one meaning, written in `reference/`, and one file per backend.
//!
//! Operands and results are dense row-major buffers; shapes are parameters, so a routine is checked and costed without its buffers.
mod verify;

use crate::dtype::{DType, Scalar};
use crate::expr::ReduceKind;
use crate::shape::Dims;

/// `out[b, m, n] = sum_k lhs[b, m, k] * rhs[b, k, n]`: strides, in elements, say where the two operands have these axes, so
/// transposed operands need no copy. Sums in `acc` dtype (f32 for 16-bit floats, wrapping integers for integers), rounds to `out`.
/// For bool: `or` of `and`s.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dot {
    pub b: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Strides of b, m, k.
    pub lhs: [i64; 3],
    /// Strides of b, k, n.
    pub rhs: [i64; 3],
    pub dtype: DType,
    pub out: DType,
}

/// What an index outside the operand means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OutOfBounds {
    /// The window is moved inside.
    Clip,
    /// Gather gives `fill`; scatter drops the update. A window that does not lie wholly inside counts as outside.
    FillOrDrop,
    /// The caller promises that there is none; the result is then unspecified, but no memory outside is touched (treat as Clip).
    Promise,
}

/// XLA's gather. `indices` has its index vector on the last axis. For each index vector (one per position of the remaining axes of
/// `indices`) a window of `slice_sizes` is read; `offset_dims` says where the window's axes lie in the output, the others being the
/// positions' axes in order; `collapsed_slice_dims` and `operand_batching_dims` (size-1 axes of the window) are left out.
/// `start_index_map[j]` is the operand axis that component j of the index vector moves along. Operand axis
/// `operand_batching_dims[j]` is indexed by the position along axis `start_indices_batching_dims[j]` of `indices`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Gather {
    pub operand: Dims,
    pub indices: Dims,
    pub slice_sizes: Dims,
    pub offset_dims: Dims,
    pub collapsed_slice_dims: Dims,
    pub start_index_map: Dims,
    pub operand_batching_dims: Dims,
    pub start_indices_batching_dims: Dims,
    pub mode: OutOfBounds,
    pub fill: Scalar,
    pub dtype: DType,
    pub index_dtype: DType,
    pub out: Dims,
}

/// How an update meets what stands in the operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combine {
    Set,
    Reduce(ReduceKind),
    Sub,
}

/// XLA's scatter: operands operand, indices, updates; the result starts as the operand (in place where that dies). Updates are
/// applied in row-major order of `updates`: for `Set` the last one wins; a float sum is taken in that order.
/// Axes: `update_window_dims` of `updates` run over the window, its other axes over the positions of `indices`; `inserted_window_dims`
/// and `operand_batching_dims` are operand axes with window size 1; `scatter_dims_to_operand_dims[j]` is the operand axis of index
/// component j.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scatter {
    pub operand: Dims,
    pub indices: Dims,
    pub updates: Dims,
    pub update_window_dims: Dims,
    pub inserted_window_dims: Dims,
    pub scatter_dims_to_operand_dims: Dims,
    pub operand_batching_dims: Dims,
    pub scatter_indices_batching_dims: Dims,
    pub combine: Combine,
    pub mode: OutOfBounds,
    /// The caller's promise that no two updates meet: they may then be applied in parallel.
    pub unique: bool,
    pub dtype: DType,
    pub index_dtype: DType,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Routine {
    Dot(Dot),
    Gather(Gather),
    Scatter(Scatter),
    /// Operands: x of shape `operand`, then one rank-0 start per axis (all of `index_dtype`), clamped so that the window lies inside.
    DynamicSlice {
        operand: Dims,
        sizes: Dims,
        dtype: DType,
        index_dtype: DType,
    },
    /// Operands: x, the update of shape `update`, then the starts. The result starts as x (in place where that dies).
    DynamicUpdateSlice {
        operand: Dims,
        update: Dims,
        dtype: DType,
        index_dtype: DType,
    },
    /// Sorts along the middle axis of `[outer, n, inner]`, lexicographically by the first `num_keys` operands, and carries the rest along. Ascending;
    /// nan last; -0 and 0 are equal, as are all nans; stable.
    Sort {
        outer: usize,
        n: usize,
        inner: usize,
        dtypes: Vec<DType>,
        num_keys: usize,
    },
    /// Running combination along the middle axis of `[outer, n, inner]`, strictly in sequence (from the end where `reverse`), from the
    /// first element; the accumulator has the lane dtype and each element is rounded as it is written.
    Cumulative {
        kind: CumulativeKind,
        outer: usize,
        n: usize,
        inner: usize,
        reverse: bool,
        dtype: DType,
    },
    /// Sliding windows: `out[o]` = combine over the window at `o * strides - padding` with base and window dilation, of x and, outside of x, nothing;
    /// in sequence (row major within the window) from the identity, accumulated in the lane dtype and rounded once.
    ReduceWindow {
        kind: ReduceKind,
        operand: Dims,
        window: Dims,
        strides: Dims,
        base_dilation: Dims,
        window_dilation: Dims,
        padding: Vec<(i64, i64)>,
        dtype: DType,
        out: Dims,
    },
    /// Convolution as XLA has it, in the canonical layout: lhs [n, ci, spatial..], rhs [co, ci / groups, window..], out [n, co, spatial..].
    Conv(Box<Conv>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CumulativeKind {
    Sum,
    Prod,
    Max,
    Min,
    LogSumExp,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Conv {
    pub lhs: Dims,
    pub rhs: Dims,
    pub out: Dims,
    pub strides: Dims,
    pub padding: Vec<(i64, i64)>,
    pub lhs_dilation: Dims,
    pub rhs_dilation: Dims,
    pub feature_groups: usize,
    pub batch_groups: usize,
    pub dtype: DType,
    pub out_dtype: DType,
}

impl Routine {
    /// Dtype and element count of each operand.
    pub fn operands(&self) -> Vec<(DType, usize)> {
        match self {
            Routine::Dot(d) => {
                let span = |n: [usize; 3], s: [i64; 3]| {
                    if n.contains(&0) {
                        0
                    } else {
                        1 + n.iter().zip(s).map(|(n, s)| (n - 1) * s.unsigned_abs() as usize).sum::<usize>()
                    }
                };
                vec![(d.dtype, span([d.b, d.m, d.k], d.lhs)), (d.dtype, span([d.b, d.k, d.n], d.rhs))]
            }
            Routine::Gather(g) => vec![(g.dtype, g.operand.size()), (g.index_dtype, g.indices.size())],
            Routine::Scatter(s) => {
                vec![(s.dtype, s.operand.size()), (s.index_dtype, s.indices.size()), (s.dtype, s.updates.size())]
            }
            Routine::DynamicSlice { operand, dtype, index_dtype, .. } => {
                std::iter::once((*dtype, operand.size())).chain(operand.iter().map(|_| (*index_dtype, 1))).collect()
            }
            Routine::DynamicUpdateSlice { operand, update, dtype, index_dtype } => {
                [(*dtype, operand.size()), (*dtype, update.size())]
                    .into_iter()
                    .chain(operand.iter().map(|_| (*index_dtype, 1)))
                    .collect()
            }
            Routine::Sort { outer, n, inner, dtypes, .. } => dtypes.iter().map(|d| (*d, outer * n * inner)).collect(),
            Routine::Cumulative { outer, n, inner, dtype, .. } => vec![(*dtype, outer * n * inner)],
            Routine::ReduceWindow { operand, dtype, .. } => vec![(*dtype, operand.size())],
            Routine::Conv(c) => vec![(c.dtype, c.lhs.size()), (c.dtype, c.rhs.size())],
        }
    }
    /// Dtype and element count of each result.
    pub fn results(&self) -> Vec<(DType, usize)> {
        match self {
            Routine::Dot(d) => vec![(d.out, d.b * d.m * d.n)],
            Routine::Gather(g) => vec![(g.dtype, g.out.size())],
            Routine::DynamicSlice { sizes, dtype, .. } => vec![(*dtype, sizes.size())],
            Routine::Scatter(_) | Routine::DynamicUpdateSlice { .. } => vec![self.operands()[0]],
            Routine::Sort { .. } | Routine::Cumulative { .. } => self.operands(),
            Routine::ReduceWindow { dtype, out, .. } => vec![(*dtype, out.size())],
            Routine::Conv(c) => vec![(c.out_dtype, c.out.size())],
        }
    }
    /// Whether result 0 starts as operand 0, and so is computed in place where the memory plan gives both one place. A backend must
    /// handle both cases: same place (update it) and different places (copy first).
    pub fn updates_operand(&self) -> bool {
        matches!(self, Routine::Scatter(_) | Routine::DynamicUpdateSlice { .. })
    }
    pub fn name(&self) -> &'static str {
        match self {
            Routine::Dot(_) => "dot",
            Routine::Gather(_) => "gather",
            Routine::Scatter(_) => "scatter",
            Routine::DynamicSlice { .. } => "dynamic_slice",
            Routine::DynamicUpdateSlice { .. } => "dynamic_update_slice",
            Routine::Sort { .. } => "sort",
            Routine::Cumulative { .. } => "cumulative",
            Routine::ReduceWindow { .. } => "reduce_window",
            Routine::Conv(_) => "conv",
        }
    }
    /// Scalar operations, roughly: what asynchrony and parallelism are decided by.
    pub fn work(&self) -> u64 {
        let size = |v: &[(DType, usize)]| v.iter().map(|x| x.1 as u64).sum::<u64>();
        match self {
            Routine::Dot(d) => [d.b, d.m, d.n, d.k].iter().fold(1u64, |a, n| a.saturating_mul(*n as u64)),
            Routine::Gather(g) => 4 * g.out.size() as u64,
            Routine::Scatter(s) => 4 * s.updates.size() as u64,
            Routine::DynamicSlice { sizes, .. } => sizes.size() as u64,
            Routine::DynamicUpdateSlice { update, .. } => update.size() as u64,
            Routine::Sort { n, .. } => size(&self.operands()) * (64 - (*n as u64).leading_zeros() as u64),
            Routine::Cumulative { .. } => size(&self.operands()),
            Routine::ReduceWindow { window, out, .. } => (window.size() as u64).saturating_mul(out.size() as u64),
            Routine::Conv(c) => {
                (c.out.size() as u64).saturating_mul((c.rhs.size() / c.rhs.first().copied().unwrap_or(1).max(1)) as u64)
            }
        }
    }
}
