//! A reduction as a nest of its own: the loop over its results is the outermost one, of which threads and row-fused groups run parts.
//!
//! ```text
//!     y[i] = sum x[i, :]     ->     loop of `count` { g = clamp(first + i); loop over the rows of group g { s = fold loop ..; store y[..] <- s } }
//! ```
//! The first group and the number of groups are numbers that the nest is given. They are clamped, so that the proof that it stays in its arrays holds
//! for all numbers.
//!
//! INVARIANT: a result is computed from the same elements in the same order, whichever part it is in.
use super::build::{Builder, WrittenNest};
use super::functions::NAMES;
use super::rows::{merged_axes, terms};
use super::{Cell, PlanCells};
use super::{is_proved, show};
use crate::kernels::pieces;
use crate::native::NestCode;
use crate::nest::{self, LoopKind, Nest, NestTrip, NestValue, text};
use crate::tier::Tier;
use crate::tuning::Target;
use ferrax_kernel::kernel::Access;
use ferrax_kernel::order::BLOCK;
use ferrax_kernel::plan::{Place, Plan, Slot, SlotId};
use ferrax_kernel::{Affine, Bin, DType, Kernel, Node, NodeId, Scalar};
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;

/// A reduction whose neighbouring axes are one, where its results go, and how many elements each output has.
pub struct RowKernel {
    kernel: Kernel,
    outs: Vec<(NodeId, u32, Affine)>,
    lengths: Vec<usize>,
    aliased: bool,
    target: Target,
}
/// How the results of a kernel are grouped: the leading axes that make up rows, and how many rows are a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowShape {
    depth: usize,
    pub rows: usize,
    pub of_group: usize,
}
/// A reduction of many elements as one of the results of its blocks, which other reductions give: of whole blocks, and of what is left.
pub struct BlockKernels {
    pub blocks: RowKernel,
    pub rest: Option<RowKernel>,
    /// Its inputs are followed by the results of the blocks.
    pub last: RowKernel,
    /// Bytes of those results, for each reduction; and whether those of a row lie side by side.
    pub bytes: Vec<usize>,
    pub is_by_rows: bool,
}
/// Code that goes through groups of rows, whose arrays are the kernel's inputs, followed by its outputs.
pub struct RowNest {
    code: NestCode,
    /// The nest before its loops are vectors.
    shown: Nest,
    arrays: Vec<Cell>,
}

/// Rows of a group, at least: so many are reduced side by side. Of columns: the elements of a cache line.
const MIN_ROWS: usize = 4;
const MIN_COLUMNS: usize = 16;

impl RowShape {
    /// The same rows one by one.
    pub fn single(self) -> RowShape {
        RowShape { of_group: 1, ..self }
    }
}
impl RowKernel {
    /// None of a kernel that has guards, or whose elements are strided along its reduced axis as well as along its results.
    pub fn new(k: &Kernel, aliased: bool, target: &Target) -> Option<RowKernel> {
        if target.tier == Tier::Portable || !NestCode::is_available() {
            return None;
        }
        let dense = pieces::dense(&k.grid);
        let outs: Vec<_> = k.outputs.iter().enumerate().map(|(j, o)| (*o, j as u32, dense.clone())).collect();
        let (kernel, outs) = merged_axes(k, &outs)?;
        let lengths = vec![k.grid.size(); k.outputs.len()];
        let is_long = kernel.rdims.len() == 1 && kernel.rdims[0] > target.tuning.scalars.max_unrolled_reduction;
        let r = RowKernel { kernel, outs, lengths, aliased, target: *target };
        (is_long && (r.along_rows() || r.across_columns())).then_some(r)
    }
    /// The reduction of its blocks' results, if it has more blocks than a nest has loops for.
    pub fn in_blocks(&self) -> Option<BlockKernels> {
        let (k, n) = (&self.kernel, self.kernel.rdims[0]);
        let (whole, left, rows) = (n / BLOCK, n % BLOCK, k.grid.size());
        let reduces: Vec<NodeId> =
            (0..).zip(&k.nodes).filter(|(_, n)| matches!(n.1, Node::Reduce { .. })).map(|(id, _)| id).collect();
        if n <= self.target.tuning.scalars.max_reduction_blocks * BLOCK {
            return None;
        }
        // The results of blocks lie side by side where elements do: along rows, or across columns.
        let (count, by_rows, rank) = (whole + usize::from(left > 0), self.along_rows(), k.grid.len());
        let dense = k.grid.strides();
        let of_results = |d: usize| dense[d] as i64 * if by_rows { count as i64 } else { 1 };
        let of_blocks = if by_rows { 1 } else { rows as i64 };
        // elements of `blocks` blocks of `n` from block `first` on
        let part = |first: usize, blocks: usize, n: usize| {
            let axes = |of_grid: &dyn Fn(usize) -> i64, block: i64| -> SmallVec<[i64; 4]> {
                let grid = (0..rank).map(of_grid);
                if by_rows { grid.chain([block]).collect() } else { [block].into_iter().chain(grid).collect() }
            };
            let moved = |a: &Affine| {
                let step = a.stride(rank);
                let strides = axes(&|d| a.stride(d), step * BLOCK as i64).into_iter().chain([step]);
                Affine::new(a.offset + step * (first * BLOCK) as i64, strides)
            };
            let sizes = axes(&|d| k.grid[d] as i64, blocks as i64);
            let mut kernel = k.clone();
            (kernel.grid, kernel.rdims) = (sizes.iter().map(|n| *n as usize).collect(), [n].into_iter().collect());
            kernel.outputs.clone_from(&reduces);
            for (_, node) in &mut kernel.nodes {
                match node {
                    Node::Index(a) => *a = moved(a),
                    Node::Load(a) => a.at = moved(&a.at),
                    _ => (),
                }
            }
            let to = Affine::new(of_blocks * first as i64, axes(&of_results, of_blocks));
            let outs = reduces.iter().zip(0..).map(|(r, j)| (*r, j, to.clone())).collect();
            let lengths = vec![rows * count; reduces.len()];
            RowKernel { kernel, outs, lengths, aliased: false, target: self.target }
        };
        let mut kernel = k.clone();
        kernel.rdims = [count].into_iter().collect();
        let at = Affine::new(0, (0..rank).map(of_results).chain([of_blocks]));
        for r in &reduces {
            let dtype = k.dtype(*r);
            let access = Access {
                input: kernel.inputs.len() as u32,
                at: at.clone(),
                guards: SmallVec::new(),
                fill: Scalar::from_f64(dtype, 0.0),
            };
            kernel.inputs.push((dtype, rows * count));
            kernel.nodes.push((dtype, Node::Load(Box::new(access))));
            let block = kernel.nodes.len() as NodeId - 1;
            if let Node::Reduce { of, .. } = &mut kernel.nodes[*r as usize].1 {
                *of = block;
            }
        }
        Some(BlockKernels {
            blocks: part(0, whole, BLOCK),
            rest: (left > 0).then(|| part(whole, 1, left)),
            last: RowKernel { kernel, outs: self.outs.clone(), lengths: self.lengths.clone(), ..*self },
            bytes: reduces.iter().map(|r| rows * count * k.dtype(*r).size()).collect(),
            is_by_rows: by_rows,
        })
    }
    /// Whether the elements that are reduced are no further apart along this axis.
    fn lie_along(&self, axis: usize, most: i64) -> bool {
        let k = &self.kernel;
        k.nodes.iter().zip(terms(k)).all(|((_, n), is_reduced)| match n {
            Node::Load(a) if is_reduced => a.at.stride(axis).abs() <= most,
            _ => true,
        })
    }
    fn along_rows(&self) -> bool {
        self.lie_along(self.kernel.grid.len(), 2)
    }
    fn across_columns(&self) -> bool {
        self.kernel.grid.len().checked_sub(1).is_some_and(|last| self.lie_along(last, 1))
    }
    /// The number of its inputs, which are before its outputs among the arrays.
    pub fn inputs(&self) -> usize {
        self.kernel.inputs.len()
    }
    /// The shape for threads, or for `parts` equal parts of the results.
    pub fn shape(&self, parts: Option<usize>) -> Option<RowShape> {
        let (grid, t) = (&self.kernel.grid, &self.target.tuning.scalars);
        let rows = |depth: usize| grid[..depth].iter().product::<usize>();
        let inner = grid.len().saturating_sub(1);
        let depth = match parts {
            Some(parts) => (0..=grid.len()).find(|d| rows(*d).is_multiple_of(parts))?,
            None if rows(inner) >= t.min_groups => inner,
            None => grid.len(),
        };
        let n = self.kernel.rdims[0];
        let last = grid.last().copied().unwrap_or(1);
        let fits = |of_group: usize| depth == 1 || last.is_multiple_of(of_group);
        let least = if self.along_rows() { MIN_ROWS } else { MIN_COLUMNS };
        let mut of_group = if depth < grid.len() {
            1
        } else {
            (t.group_elements / n).clamp(least, t.max_group_rows).next_power_of_two()
        };
        while of_group > least && (rows(depth) / of_group < t.min_groups || !fits(of_group)) {
            of_group /= 2;
        }
        if of_group > rows(depth) || !fits(of_group) {
            of_group = if parts.is_none() && depth == 1 { rows(depth).max(1) } else { 1 };
        }
        Some(RowShape { depth, rows: rows(depth), of_group })
    }
    /// The code; none where there is none for some step of it.
    pub fn compile(&self, shape: RowShape) -> Option<RowNest> {
        let plan = self.plan();
        let c = PlanCells::of_inputs_and_outputs(&plan, self.target);
        let written = self.written(&c, shape)?;
        show("build", &written.nest);
        let mut simple = nest::simplify(&written.nest);
        show("simplify", &simple);
        let shown = simple.clone();
        nest::vectorize(&mut simple, &self.target)?;
        let nest = nest::inline_functions(simple);
        is_proved("inline", &nest)?;
        Some(RowNest { code: NestCode::new(&nest)?, shown, arrays: written.arrays })
    }
    /// A plan of the kernel's inputs and outputs, without steps.
    fn plan(&self) -> Plan {
        let k = &self.kernel;
        let ins = k.inputs.iter().map(|(dtype, len)| Slot { dtype: *dtype, len: *len, tape: 0 });
        let outs = k.output_dtypes().zip(&self.lengths).map(|(dtype, len)| Slot { dtype, len: *len, tape: 0 });
        let n = k.inputs.len() as u32;
        Plan {
            slots: ins.chain(outs).collect(),
            places: (0..n).map(Place::Input).chain((0..k.outputs.len() as u32).map(Place::Output)).collect(),
            inputs: (0..n).collect(),
            outputs: (n..n + k.outputs.len() as u32).collect(),
            donatable: vec![None; k.outputs.len()],
            arena: 0,
            steps: vec![],
        }
    }
    fn written(&self, c: &PlanCells, shape: RowShape) -> Option<WrittenNest> {
        let k = &self.kernel;
        let n = k.inputs.len() as SlotId;
        let ins: Vec<SlotId> = (0..n).collect();
        let outs: Vec<SlotId> = (n..n + k.outputs.len() as SlotId).collect();
        let mut b = Builder::of_arrays(c, ins.iter().chain(&outs).copied());
        let [first, count] = [b.number(DType::I64), b.number(DType::I64)];
        let groups = shape.rows / shape.of_group;
        b.repeat(LoopKind::Sequential, NestTrip::Dyn(count), &[], &mut |b, i, _| {
            let least = b.index(0)?;
            let most = b.index(groups.max(1) as i64 - 1)?;
            let at = b.bin(Bin::Add, DType::I64, first, i)?;
            let at = b.bin(Bin::Max, DType::I64, at, least)?;
            let at = b.bin(Bin::Min, DType::I64, at, most)?;
            let mut index = self.leading(b, shape, at)?;
            if shape.of_group == 1 {
                b.kernel_at(k, &self.outs, (&ins, &outs), &mut index)?;
                return Some(vec![]);
            }
            let by = b.index(shape.of_group as i64)?;
            let group = index.pop()?;
            let from = b.bin(Bin::Mul, DType::I64, group, by)?;
            b.repeat(LoopKind::Free, NestTrip::Static(shape.of_group), &[], &mut |b, j, _| {
                let row = b.bin(Bin::Add, DType::I64, from, j)?;
                index.push(row);
                b.kernel_at(k, &self.outs, (&ins, &outs), &mut index)?;
                index.pop();
                Some(vec![])
            })?;
            Some(vec![])
        })?;
        let mut written = b.written(vec![], vec![], vec![])?;
        if self.aliased {
            let arrays = written.arrays.iter().copied().zip(0..);
            let (of_ins, of_outs): (Vec<_>, Vec<_>) = arrays.partition(|(cell, _)| *cell < n as Cell);
            let pairs = of_ins.iter().flat_map(|(_, a)| of_outs.iter().flat_map(|(_, b)| [(*a, *b), (*b, *a)]));
            written.nest.meeting = pairs.collect();
        }
        Some(written)
    }
    /// The index along each axis that makes up rows, of a group: along the last of them, that of the group.
    fn leading(&self, b: &mut Builder, shape: RowShape, group: NestValue) -> Option<Vec<NestValue>> {
        let mut sizes = self.kernel.grid[..shape.depth].to_vec();
        if let Some(last) = sizes.last_mut() {
            *last /= shape.of_group;
        }
        let (mut index, mut rest) = (vec![], group);
        for (axis, n) in sizes.iter().enumerate().rev() {
            let by = b.index(*n as i64)?;
            index.push(if axis == 0 { rest } else { b.bin(Bin::Rem, DType::I64, rest, by)? });
            if axis > 0 {
                rest = b.bin(Bin::Div, DType::I64, rest, by)?;
            }
        }
        index.reverse();
        Some(index)
    }
}
impl RowNest {
    /// Goes through so many groups, from this one on.
    ///
    /// # Safety
    /// `at` gives the memory of each input and output of the kernel, which are as long as it says; these groups are the caller's.
    pub unsafe fn run(&self, (first, count): (usize, usize), at: impl Fn(usize) -> *mut u8, cancel: &AtomicBool) {
        let mut frame = self.code.frame();
        frame.give(0, first as u64);
        frame.give(1, count as u64);
        for (n, cell) in self.arrays.iter().enumerate() {
            frame.point(n, at(*cell as usize));
        }
        // SAFETY: the frame is of this code, and each array has the bytes that the proof counted with, by the contract.
        unsafe { self.code.run(&mut frame, cancel) };
    }
    /// The nest before its loops are vectors, a line for each statement.
    pub fn text(&self) -> String {
        text::print(&self.shown, &NAMES)
    }
}
