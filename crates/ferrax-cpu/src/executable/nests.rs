//! Loops, with all loops inside them, that run as one native function: see `nest.rs`.
//!
//! INVARIANT: a loop becomes a nest completely or not at all. Its arrays are updated in place; all other values are in registers.
#![allow(unsafe_code)]
mod build;
mod functions;
mod kernels;
mod routines;
mod rows;

use super::{Cell, Compiler, Location, RunState};
use crate::native::{self, NestCode};
use crate::nest::{self, NestCounts, VectorLimits};
use crate::tier::Tier;
use ferrax_kernel::plan::Loop;
use ferrax_kernel::{DType, Error, Res, RunCx};

/// A number in memory: its cell, and how many bytes behind.
#[derive(Clone, Copy)]
struct CellNumber {
    cell: Cell,
    offset: usize,
    dtype: DType,
}
/// A loop as code.
pub struct NestedLoop {
    code: NestCode,
    inputs: Vec<CellNumber>,
    arrays: Vec<Cell>,
    /// From cell to cell, and bytes.
    before: Vec<(Cell, Cell, usize)>,
    after: Vec<(Cell, Cell, usize)>,
    outs: Vec<CellNumber>,
    counts: NestCounts,
}

/// The loop as a nest, if it can be, and if this machine makes code of it.
pub fn compile(c: &Compiler, l: &Loop) -> Option<NestedLoop> {
    if c.target.tier == Tier::Portable || !NestCode::is_available() || native::min_nanos() == u64::MAX {
        return None;
    }
    let windows = l.xs.iter().chain(&l.ys).map(|w| w.all);
    let carries = l.carries.iter().flat_map(|k| [k.init, k.slot, k.out]);
    let seen: Vec<Cell> = windows.chain(carries).map(|s| c.cell(s)).collect();
    let between = c.target.tuning.scalars.max_statements_between;
    // with fewer loops first; as they were written where one of them cannot be
    [(true, true), (true, false), (false, false)].into_iter().find_map(|(rows, fused)| {
        let mut written = build::Builder::of(c, l, rows)?;
        if fused && !nest::fuse(&mut written.nest, between) {
            return None;
        }
        let mut simple = nest::simplify(&written.nest);
        if fused {
            nest::drop_dead_stores(&mut simple, &|array| {
                // the arena's memory that is no carry's and no window's is the loop's own
                written.arrays.get(array as usize).is_none_or(|cell| {
                    seen.contains(cell) || !matches!(c.locations[*cell as usize], Location::Arena(_))
                })
            });
        }
        if rows {
            let t = &c.target.tuning.scalars;
            let limits = VectorLimits {
                scalar_iterations: t.max_scalar_row,
                scalar_operations: t.max_scalar_operations,
                called_bytes: t.max_called_bytes,
                column_operations: t.max_column_operations,
                called_row: t.min_called_row,
                row_bytes: t.max_row_bytes,
            };
            nest::vectorize(&mut simple, limits)?;
        }
        let counts = simple.counts();
        let code = NestCode::new(&simple)?;
        let build::WrittenNest { inputs, arrays, before, after, outs, .. } = written;
        Some(NestedLoop { code, inputs, arrays, before, after, outs, counts })
    })
}

impl NestedLoop {
    pub fn run(&self, state: &mut RunState, cx: &RunCx) -> Res<()> {
        state.launches += 1;
        let mut frame = self.code.frame();
        // SAFETY: verify, places: inputs are elements of live slots, and arrays are slots of as
        // many bytes as their indices are clamped to (the nest's invariant). Arrays that are stored
        // to belong to the loop: the memory plan updates them in place. Copies are between the
        // slots of one carry, of equal size. The code writes the frame and the arrays only.
        unsafe {
            for (n, p) in self.inputs.iter().enumerate() {
                frame.give(n, read(state.ptrs[p.cell as usize].add(p.offset), p.dtype));
            }
            for (from, to, bytes) in &self.before {
                state.ptrs[*to as usize].copy_from(state.ptrs[*from as usize], *bytes);
            }
            for (n, cell) in self.arrays.iter().enumerate() {
                frame.point(n, state.ptrs[*cell as usize]);
            }
            if !self.code.run(&mut frame, cx.cancel) {
                return Err(Error::Cancelled);
            }
            for (from, to, bytes) in &self.after {
                state.ptrs[*to as usize].copy_from(state.ptrs[*from as usize], *bytes);
            }
            for (n, p) in self.outs.iter().enumerate() {
                write(state.ptrs[p.cell as usize].add(p.offset), p.dtype, frame.left(n));
            }
        }
        Ok(())
    }
    pub fn text(&self) -> String {
        let NestCounts { loops, vector_loops, loads, stores, operations, calls, rows_called } = self.counts;
        let of_vectors = if vector_loops > 0 { format!(" ({vector_loops} of vectors)") } else { String::new() };
        let mut called = if calls > 0 { format!(", {calls} calls") } else { String::new() };
        if rows_called > 0 {
            called += &format!(", {rows_called} functions over rows");
        }
        format!(
            "nest of {loops} loops{of_vectors}, native: {loads} loads, {stores} stores, {operations} operations{called}"
        )
    }
}
/// # Safety
/// `p` points at an element of this dtype.
unsafe fn read(p: *const u8, d: DType) -> u64 {
    // SAFETY: by the contract.
    unsafe {
        match d {
            DType::I8 => p.cast::<i8>().read() as i32 as u32 as u64,
            DType::I16 => p.cast::<i16>().read() as i32 as u32 as u64,
            _ => match d.size() {
                1 => p.read() as u64,
                2 => p.cast::<u16>().read() as u64,
                4 => p.cast::<u32>().read() as u64,
                _ => p.cast::<u64>().read(),
            },
        }
    }
}
/// # Safety
/// As `read`.
unsafe fn write(p: *mut u8, d: DType, x: u64) {
    // SAFETY: by the contract.
    unsafe {
        match d.size() {
            1 => p.write(x as u8),
            2 => p.cast::<u16>().write(x as u16),
            4 => p.cast::<u32>().write(x as u32),
            _ => p.cast::<u64>().write(x),
        }
    }
}
