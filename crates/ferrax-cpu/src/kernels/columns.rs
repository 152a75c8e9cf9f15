//! Reductions of neighbouring columns by one pointwise program, which accumulates each row directly.
//!
//! ```text
//!     acc[r % LANES, column] = f(acc[r % LANES, column], value(r, column))
//! ```
//!
//! As native code this is a loop over rows in registers, where [`super::fold`] would read values that the inner program wrote to memory; the
//! order of combination is the same. The last columns, fewer than a vector, overlap the columns before them and have accumulators of their own.
use super::lane::Lane;
use super::program::{Bases, Frame, Spec, TileProgram};
use crate::tuning::Target;
use ferrax_kernel::kernel::Access;
use ferrax_kernel::order::{BLOCK, LANES};
use ferrax_kernel::{Affine, Kernel, Node, NodeId, ReduceKind, Res, Scalar};
use smallvec::smallvec;

/// Columns of the longest vectors: a width that suits one tier suits the others.
const COLUMNS_OF_VECTOR: usize = 16;

pub struct ColumnFold {
    program: TileProgram,
    /// The first accumulator's number among the inputs; among the outputs it is 0.
    first: u32,
    columns: usize,
    /// The offset of the accumulators of the last columns within a row; and the distance between
    /// rows.
    last: usize,
    row: usize,
    /// Bytes of an element of each accumulator.
    sizes: Vec<usize>,
}
impl ColumnFold {
    /// For reductions over `k.rdims` whose columns are the last `inner_dims` of the grid, `width` of them at a time, which all take elements into
    /// lanes; `loops` go through rows.
    pub fn compile(
        k: &Kernel,
        reduces: &[(NodeId, ReduceKind, NodeId)],
        loops: &[usize],
        (inner_dims, width): (usize, usize),
        target: &Target,
    ) -> Res<Option<ColumnFold>> {
        let g = k.grid.len();
        let columns: usize = k.grid[g - inner_dims..].iter().product();
        let is_storage = |d| Lane::of(d).is_storage_of(d) && Lane::of(d).size() >= 4;
        if columns < COLUMNS_OF_VECTOR
            || k.domain().iter().product::<usize>() < target.tuning.kernels.min_column_elements
            || !reduces.iter().all(|(_, kind, of)| kind.bin().is_some() && is_storage(k.dtype(*of)))
        {
            return Ok(None);
        }
        let last = width.next_multiple_of(COLUMNS_OF_VECTOR);
        let row = last + if columns.is_multiple_of(COLUMNS_OF_VECTOR) { 0 } else { COLUMNS_OF_VECTOR };
        let mut strides = vec![0i64; g + k.rdims.len()];
        let mut step = 1;
        for d in (g..g + k.rdims.len()).rev() {
            strides[d] = step * row as i64;
            step *= k.rdims[d - g] as i64;
        }
        step = 1;
        for d in (g - inner_dims..g).rev() {
            strides[d] = step;
            step *= k.grid[d] as i64;
        }
        let place = Affine::new(0, strides);
        let mut with = k.clone();
        let (first, mut outs) = (k.inputs.len() as u32, vec![]);
        for (j, (_, kind, of)) in (0..).zip(reduces) {
            let Some(by) = kind.bin() else { unreachable!("seen to take elements") };
            let dtype = k.dtype(*of);
            let fill = Scalar::from_f64(dtype, 0.0);
            let access = Access { input: first + j, at: place.clone(), guards: smallvec![], fill };
            with.inputs.push((dtype, LANES * row));
            with.nodes.push((dtype, Node::Load(Box::new(access))));
            let lane = with.nodes.len() as NodeId - 1;
            with.nodes.push((dtype, Node::Bin(by, lane, *of)));
            outs.push((lane + 1, j));
        }
        let (program, ..) = TileProgram::compile(&Spec {
            kernel: &with,
            loops,
            outs: &outs,
            places: &vec![&place; outs.len()],
            keep: &[],
            given: &[],
            aliased: true,
            target,
            max_tile: BLOCK,
        })?;
        let sizes = reduces.iter().map(|r| k.dtype(r.2).size()).collect();
        let fold = ColumnFold { program, first, columns, last, row, sizes };
        let is_even = fold.program.row().is_multiple_of(columns);
        Ok((is_even && (0..outs.len() as u32).all(|j| fold.program.is_in_place(first + j, j))).then_some(fold))
    }
    pub fn expect(&self, runs: usize) {
        self.program.expect(runs.saturating_mul(self.program.total()));
    }
    pub fn text(&self) -> String {
        self.program.text()
    }
    /// Whether it is code, or will be after enough work.
    pub fn becomes_code(&self) -> bool {
        self.is_ready() || !self.failed() && self.program.code_text() == "whole"
    }
    /// Whether it is code; until then it is of no use, nor is it where it `failed` to become some.
    pub fn is_ready(&self) -> bool {
        self.program.is_all_native()
    }
    pub fn failed(&self) -> bool {
        self.program.was_tried() && !self.is_ready()
    }
    pub fn frame_bytes(&self) -> usize {
        self.program.frame_bytes()
    }
    /// # Safety
    /// As [`TileProgram::start`].
    pub unsafe fn start<'a>(&self, memory: *mut u8, bases: Bases<'a>) -> Frame<'a> {
        // SAFETY: by the contract.
        unsafe { self.program.start(memory, bases, self.program.tile().min(self.program.total().max(1))) }
    }
    /// Elements of a row of accumulators.
    pub fn row(&self) -> usize {
        self.row
    }
    /// Folds rows into accumulators: those from `row` on, of all rows, the first of which is the
    /// `i`th of its columns; of each row the columns `c..c + w`.
    ///
    /// # Safety
    /// As [`TileProgram::eval`]; `acc` points at the accumulators of each reduction, `LANES` rows;
    /// `i` is a multiple of LANES.
    pub unsafe fn take(
        &self,
        frame: &mut Frame,
        acc: impl Fn(usize) -> *mut u8,
        (row, i): (usize, usize),
        rows: usize,
        (c, w): (usize, usize),
    ) {
        let (whole, rest) = (w / COLUMNS_OF_VECTOR * COLUMNS_OF_VECTOR, w % COLUMNS_OF_VECTOR);
        for r in (0..rows).step_by(LANES) {
            let count = LANES.min(rows - r);
            // columns `from..` of these rows, to the accumulators `to..` of the lanes from 0 on
            let mut part = |from: usize, n: usize, to: usize| {
                for (j, size) in self.sizes.iter().enumerate() {
                    let at = acc(j).wrapping_add(to * size).wrapping_sub(((i + r) * self.row + from) * size);
                    self.program.put(frame, (self.first + j as u32, j as u32), at);
                }
                // SAFETY: rows of the program, parts of which are evaluated; the table points each
                // of them to its lane, as set above.
                unsafe { self.program.eval_rows(frame, (row + r) * self.columns + from, n, count, self.columns) };
            };
            if whole > 0 {
                part(c, whole, 0);
            }
            if rest > 0 {
                part(c + w - COLUMNS_OF_VECTOR, COLUMNS_OF_VECTOR, self.last);
            }
        }
        for (j, size) in self.sizes.iter().enumerate().filter(|_| rest > 0) {
            for lane in 0..LANES {
                let row = acc(j).wrapping_add(lane * self.row * size);
                let last = row.wrapping_add((self.last + COLUMNS_OF_VECTOR - rest) * size);
                // SAFETY: elements of one row of accumulators, the last ones behind all others.
                unsafe { row.wrapping_add(whole * size).copy_from_nonoverlapping(last, rest * size) };
            }
        }
    }
}
