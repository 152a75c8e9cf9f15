//! The closed list of operations that are not loop nests over scalars. `reference/` defines each;
//! every backend implements each in one file.
//!
//! Operands and results are dense row-major buffers; shapes are parameters, so a routine is checked and costed without its buffers.
mod verify;

use crate::dtype::{DType, Scalar};
use crate::expr::{Bin, ReduceKind};
use crate::kernel::{Access, Affine, Guard, Kernel, Node};
use crate::linalg::Linalg;
use crate::shape::Dims;
use smallvec::SmallVec;

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

/// The treatment of an index out of bounds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OutOfBounds {
    /// The window is moved inside.
    Clip,
    /// Gather gives `fill`; scatter drops the update. A window that does not lie wholly inside counts as outside.
    FillOrDrop,
    /// The caller promises that there is none; the result is then unspecified, but no memory outside is touched (treat as Clip).
    Promise,
}

/// XLA's gather. `indices` has its index vector on the last axis; if they are `apart`, each
/// component is a separate operand. For each index vector (one per position of the remaining axes
/// of `indices`) a window of `slice_sizes` is read; `offset_dims` are the output's axes for the
/// window, and the other output axes are the positions' axes in order; `collapsed_slice_dims` and
/// `operand_batching_dims` (size-1 axes of the window) are left out. `start_index_map[j]` is the
/// operand axis that component j of the index vector moves along. Operand axis
/// `operand_batching_dims[j]` is indexed by the position along axis
/// `start_indices_batching_dims[j]` of `indices`.
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
    /// Operands are then the operand and, of each component of the index vectors, an array of the positions' shape.
    pub apart: bool,
}
impl Gather {
    /// Arrays of indices, and how many each holds.
    fn index_arrays(&self) -> (usize, usize) {
        let (all, vector) = (self.indices.size(), self.start_index_map.len());
        if self.apart { (vector, all.checked_div(vector).unwrap_or(0)) } else { (1, all) }
    }
}

/// How an update is combined with the element in the operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combine {
    Set,
    Reduce(ReduceKind),
    Sub,
}

/// XLA's scatter: operands operand, indices, updates; the result starts as the operand (in place where that dies). Updates are
/// applied position by position, in row-major order, and each window in row-major order: for `Set` the last one wins; a float sum is taken
/// in that order.
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
    /// The caller's promise that no two updates affect one element: they may then be applied in any
    /// order. If it is broken, such an element holds the result of some order of some of its
    /// updates; other elements are not affected, and no memory outside is touched.
    pub unique: bool,
    pub dtype: DType,
    pub index_dtype: DType,
}
impl Scatter {
    /// The axes of the updates in the order in which updates are applied, positions first, and their sizes.
    pub fn order(&self) -> (Vec<usize>, Dims) {
        let positions = (0..self.updates.len()).filter(|k| !self.update_window_dims.contains(k));
        let order: Vec<usize> = positions.chain(self.update_window_dims.iter().copied()).collect();
        let sizes = self.updates.pick(&order);
        (order, sizes)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Routine {
    Dot(Dot),
    Gather(Gather),
    Scatter(Scatter),
    /// Operands: x of shape `operand`, then one rank-0 start per axis (all of `index_dtype`),
    /// clamped so that the window is in bounds.
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
    /// The `k` greatest along the middle axis of `[outer, n, inner]` in descending order, the first of equals first, and their positions as
    /// i32: two results `[outer, k, inner]`. Floats compare by their total order: nan above all, those with a sign below all, -0 below 0.
    TopK {
        outer: usize,
        n: usize,
        inner: usize,
        k: usize,
        dtype: DType,
    },
    /// Running combination along the middle axis of `[outer, n, inner]`, from the first element (from the last where `reverse`), in
    /// sequence or in blocks ([`CumulativeKind::in_blocks`]); the accumulator has the lane dtype and each element is rounded as it is
    /// written.
    Cumulative {
        kind: CumulativeKind,
        outer: usize,
        n: usize,
        inner: usize,
        reverse: bool,
        dtype: DType,
    },
    /// A product whose left side is read out of an array by windows.
    Conv(Box<Conv>),
    /// A decomposition of each matrix of a batch. Where it is not unique, so are its results; they do not depend on threads.
    Linalg(Box<Linalg>),
    /// A discrete Fourier transform.
    Fft(Fft),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FftKind {
    Forward,
    Inverse,
    RealForward,
    RealInverse,
}

/// The discrete Fourier transform along the middle axes of `[outer, lengths.., inner]`, whose
/// complex numbers are interleaved, as a trailing axis of 2: `y[k] = sum_j x[j] exp(-2 pi i jk /
/// n)` on each axis, the inverse with `+` and divided by the product of `lengths`.
/// `RealForward` takes real numbers and gives the first `n / 2 + 1` of the last axis' n.
/// `RealInverse` takes these, as if the others were their conjugates, and gives real numbers; it
/// ignores the imaginary parts at 0 and n / 2, which contradict that.
/// The rounding of its sums depends on the backend: within one device bits depend on the parameters
/// and the numbers alone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fft {
    pub kind: FftKind,
    pub outer: usize,
    /// One to three, none of them 0.
    pub lengths: Dims,
    pub inner: usize,
    /// Of the parts: f32 or f64.
    pub dtype: DType,
}
impl Fft {
    /// Complex numbers along the last of `lengths`: of both sides, or of the complex one.
    pub fn last(&self) -> usize {
        let n = self.lengths.last().copied().unwrap_or(1);
        if self.kind == FftKind::Forward || self.kind == FftKind::Inverse { n } else { n / 2 + 1 }
    }
    pub fn is_inverse(&self) -> bool {
        matches!(self.kind, FftKind::Inverse | FftKind::RealInverse)
    }
    /// Elements of the real side, and parts of the complex one.
    pub fn sizes(&self) -> (usize, usize) {
        let rest = self.outer * self.inner * self.lengths[..self.lengths.len() - 1].iter().product::<usize>();
        (self.outer * self.inner * self.lengths.size(), rest * self.last() * 2)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CumulativeKind {
    Sum,
    Prod,
    Max,
    Min,
    LogSumExp,
}
impl CumulativeKind {
    /// Whether it has the order of [`crate::order::running`]. A product has as many roundings in every order, and a part of it may
    /// overflow where the whole does not; extremes round nothing.
    pub fn in_blocks(self) -> bool {
        matches!(self, CumulativeKind::Sum | CumulativeKind::LogSumExp)
    }
}

/// `out[b.., m.., n] = sum_k x[at(b, m, k)] * y[b, k, n]`, where an element that a guard refuses is zero: a convolution, with its places as
/// rows m, and channels and window as terms k. Sums in `dtype` (f32, f64, or integers of 32 and 64 bits, which wrap), in increasing k.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Conv {
    pub batch: Dims,
    pub rows: Dims,
    pub terms: Dims,
    pub columns: usize,
    /// Elements of x.
    pub x: usize,
    /// Over batch, rows, terms; no stride of a guard is negative.
    pub at: Affine,
    pub guards: Vec<Guard>,
    /// Strides of y over batch, terms (all of them as one axis) and columns.
    pub y: Dims,
    /// Strides of the result over batch, rows (as one axis) and columns, which fill it; one of the
    /// last two is 1.
    pub out: Dims,
    pub dtype: DType,
}
impl Conv {
    /// Elements of y.
    fn weights(&self) -> usize {
        let n = self.batch.concat(&[self.terms.size(), self.columns]);
        if n.contains(&0) { 0 } else { 1 + n.iter().zip(self.y.iter()).map(|(n, s)| (n - 1) * s).sum::<usize>() }
    }
    fn size(&self) -> usize {
        self.batch.size() * self.rows.size() * self.columns
    }
    /// The sizes of the axes (batch, rows, columns), and the order in which the result, which is
    /// dense over them, has these axes.
    pub fn grid(&self) -> (Dims, Vec<usize>) {
        let nb = self.batch.len();
        let rows = self.rows.strides().into_iter().map(|s| s as usize * self.out[nb]);
        let strides: Vec<usize> = self.out[..nb].iter().copied().chain(rows).chain([self.out[nb + 1]]).collect();
        let sizes = self.batch.concat(&self.rows).concat(&[self.columns]);
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|k| (std::cmp::Reverse(strides[*k]), sizes[*k]));
        (sizes, order)
    }
    /// The same as a loop nest, which sums in the waist's order.
    pub fn kernel(&self) -> Kernel {
        let (nb, nr, nt) = (self.batch.len(), self.rows.len(), self.terms.len());
        let (sizes, order) = self.grid();
        let place = |k: usize| order.iter().position(|o| *o == k).expect("a permutation");
        let permuted = |a: &Affine| {
            let mut to = Affine::new(a.offset, vec![0; sizes.len() + nt]);
            (0..nb + nr).for_each(|k| to.strides[place(k)] = a.stride(k));
            (0..nt).for_each(|k| to.strides[sizes.len() + k] = a.stride(nb + nr + k));
            to
        };
        let mut at = Affine::new(0, vec![0; sizes.len() + nt]);
        (0..nb).for_each(|k| at.strides[place(k)] = self.y[k] as i64);
        at.strides[place(nb + nr)] = self.y[nb + 1] as i64;
        for (k, s) in self.terms.strides().iter().enumerate() {
            at.strides[sizes.len() + k] = *s as i64 * self.y[nb] as i64;
        }
        let load = |input: u32, at: Affine, guards: SmallVec<[Guard; 1]>| {
            (self.dtype, Node::Load(Box::new(Access { input, at, guards, fill: Scalar::zero(self.dtype) })))
        };
        let guards = self.guards.iter().map(|g| Guard { at: permuted(&g.at), lo: g.lo, hi: g.hi }).collect();
        Kernel {
            grid: sizes.pick(&order),
            rdims: self.terms.clone(),
            inputs: vec![(self.dtype, self.x), (self.dtype, self.weights())],
            nodes: vec![
                load(0, permuted(&self.at), guards),
                load(1, at, SmallVec::new()),
                (self.dtype, Node::Bin(Bin::Mul, 0, 1)),
                (self.dtype, Node::Reduce { kind: ReduceKind::Sum, of: 2 }),
            ],
            outputs: vec![3],
        }
    }
}

/// All matrices of a batch, one after the other.
fn lain(l: &Linalg, parts: Vec<(crate::linalg::Entries, usize)>) -> Vec<(DType, usize)> {
    let one = |(e, n): (crate::linalg::Entries, usize)| {
        let (dtype, each) = l.layout(e);
        (dtype, l.batch * n * each)
    };
    parts.into_iter().map(one).collect()
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
            Routine::Gather(g) => {
                let (arrays, n) = g.index_arrays();
                std::iter::once((g.dtype, g.operand.size())).chain((0..arrays).map(|_| (g.index_dtype, n))).collect()
            }
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
            Routine::Cumulative { outer, n, inner, dtype, .. } | Routine::TopK { outer, n, inner, dtype, .. } => {
                vec![(*dtype, outer * n * inner)]
            }
            Routine::Conv(c) => vec![(c.dtype, c.x), (c.dtype, c.weights())],
            Routine::Linalg(l) => lain(l, l.operands()),
            Routine::Fft(f) => {
                let (real, complex) = f.sizes();
                vec![(f.dtype, if f.kind == FftKind::RealForward { real } else { complex })]
            }
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
            Routine::TopK { outer, inner, k, dtype, .. } => {
                vec![(*dtype, outer * k * inner), (DType::I32, outer * k * inner)]
            }
            Routine::Conv(c) => vec![(c.dtype, c.size())],
            Routine::Linalg(l) => lain(l, l.results()),
            Routine::Fft(f) => {
                let (real, complex) = f.sizes();
                vec![(f.dtype, if f.kind == FftKind::RealInverse { real } else { complex })]
            }
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
            Routine::TopK { .. } => "top_k",
            Routine::Cumulative { .. } => "cumulative",
            Routine::Conv(_) => "conv",
            Routine::Linalg(_) => "linalg",
            Routine::Fft(_) => "fft",
        }
    }
    /// Whether an element takes it much longer than a nanosecond: a decomposition, or a sort.
    pub fn is_slow(&self) -> bool {
        matches!(self, Routine::Linalg(_) | Routine::Sort { .. })
    }
    /// An estimate of scalar operations, by which asynchronous and parallel execution are chosen.
    pub fn work(&self) -> u64 {
        let size = |v: &[(DType, usize)]| v.iter().map(|x| x.1 as u64).sum::<u64>();
        match self {
            Routine::Dot(d) => [d.b, d.m, d.n, d.k].iter().fold(1u64, |a, n| a.saturating_mul(*n as u64)),
            Routine::Gather(g) => 4 * g.out.size() as u64,
            Routine::Scatter(s) => 4 * s.updates.size() as u64,
            Routine::DynamicSlice { sizes, .. } => sizes.size() as u64,
            Routine::DynamicUpdateSlice { update, .. } => update.size() as u64,
            Routine::Sort { n, .. } => size(&self.operands()) * (64 - (*n as u64).leading_zeros() as u64),
            Routine::Cumulative { .. } | Routine::TopK { .. } => size(&self.operands()),
            Routine::Conv(c) => (c.size() as u64).saturating_mul(c.terms.size() as u64),
            Routine::Linalg(l) => l.operations().saturating_mul(l.batch as u64),
            Routine::Fft(f) => size(&self.operands()) * (64 - (f.lengths.size() as u64).leading_zeros() as u64),
        }
    }
}
