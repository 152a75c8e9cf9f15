//! Loops, with all loops inside them, and blocks of kernels of few elements, that run as one nest: see `nest.rs`.
//!
//! INVARIANT: a loop becomes a nest completely or not at all. Its arrays are updated in place; all other values are in registers.
#![allow(unsafe_code)]
mod interpret;

use super::{Compiler, RunState};
use crate::kernels::moves::{read_lane, write_lane};
use crate::lowering::{self, Builder, Cell, CellNumber, Location, Style, WrittenNest, is_proved, kernel_nanos, show};
use crate::native::{self, NestCode};
use crate::nest::{self, Nest, NestCounts, NestFrame};
use crate::tier::Tier;
use ferrax_kernel::plan::{Loop, Step};
use ferrax_kernel::{Error, Res, RunCx};
use interpret::Interpreter;
use std::sync::atomic::AtomicBool;

/// The implementation that runs a nest.
enum Executor {
    Native(NestCode),
    Interpreted(Interpreter),
}
impl Executor {
    fn frame(&self) -> NestFrame {
        match self {
            Executor::Native(code) => code.frame(),
            Executor::Interpreted(code) => code.frame(),
        }
    }
    /// # Safety
    /// The frame is this executor's, its arrays are those of the nest.
    unsafe fn run(&self, frame: &mut NestFrame, cancel: &AtomicBool) -> bool {
        // SAFETY: by the contract.
        unsafe {
            match self {
                Executor::Native(code) => code.run(frame, cancel),
                Executor::Interpreted(code) => code.run(frame, cancel),
            }
        }
    }
}
/// A nest, ready to run.
pub struct CompiledNest {
    executor: Executor,
    inputs: Vec<CellNumber>,
    arrays: Vec<Cell>,
    /// From cell to cell, and bytes.
    before: Vec<(Cell, Cell, usize)>,
    after: Vec<(Cell, Cell, usize)>,
    outs: Vec<CellNumber>,
    nest: Nest,
    /// Kernels that a run does the work of: of a block all of them, of a loop one.
    launches: u64,
}
impl CompiledNest {
    fn new(executor: Executor, written: WrittenNest, nest: Nest, launches: u64) -> CompiledNest {
        let WrittenNest { inputs, arrays, before, after, outs, .. } = written;
        CompiledNest { executor, inputs, arrays, before, after, outs, nest, launches }
    }
}

/// Whether this machine makes code of nests.
fn is_native(c: &Compiler) -> bool {
    c.target.tier != Tier::Portable && NestCode::is_available() && native::min_nanos() != u64::MAX
}
/// The loop as a nest, if it can be.
pub fn compile(c: &Compiler, l: &Loop) -> Option<CompiledNest> {
    if is_native(c)
        && let Some(nest) = compile_native(c, l)
    {
        return Some(nest);
    }
    let written = Builder::of(c, l, Style::Interpreted)?;
    let simple = nest::simplify(&written.nest);
    is_proved("simplify", &simple)?;
    let is_cheap = simple.counts().interpreted() as f64 * c.target.tuning.scalars.nanos[0] <= step_nanos(&l.body);
    if !is_cheap && !is_scalar(c, l) {
        return None;
    }
    Some(CompiledNest::new(Executor::Interpreted(Interpreter::new(&simple)?), written, simple, 1))
}
/// Whether all carries are scalars, those of loops inside it among them: steps one by one would cost more in any case.
fn is_scalar(c: &Compiler, l: &Loop) -> bool {
    let inside = |s: &Step| match s {
        Step::Loop(l) => is_scalar(c, l),
        _ => true,
    };
    l.carries.iter().all(|k| c.plan.slots[k.slot as usize].len == 1) && l.body.iter().all(inside)
}
/// The first of these steps, as far as they are kernels, products and copies of few elements, as a nest without loops; and how many they are. There
/// is no nest where they set nothing.
pub fn compile_block(
    c: &Compiler,
    steps: &[Step],
    may_take: impl Fn(&Step) -> bool,
) -> Option<(Option<CompiledNest>, usize)> {
    let is_repeated = c.repeats_in_cache();
    let most = if is_repeated { c.target.tuning.scalars.max_block_elements } else { 1 };
    let (written, n) = Builder::block(c, steps, most, may_take)?;
    if written.outs.is_empty() {
        return Some((None, n));
    }
    let launches = steps[..n].iter().filter(|s| !matches!(s, Step::Copy { .. })).count() as u64;
    let simple = nest::simplify(&written.nest);
    let operations = simple.counts().operations;
    let pays = is_repeated && operations >= c.target.tuning.scalars.min_native_operations && is_native(c);
    let code = if pays { NestCode::new(&nest::inline_functions(simple.clone())).map(Executor::Native) } else { None };
    let executor = match code {
        Some(code) => code,
        None => Executor::Interpreted(Interpreter::new(&simple)?),
    };
    Some((Some(CompiledNest::new(executor, written, simple, launches)), n))
}
/// The loop as native code, with loops over the elements of its arrays.
fn compile_native(c: &Compiler, l: &Loop) -> Option<CompiledNest> {
    let windows = l.xs.iter().chain(&l.ys).map(|w| w.all);
    let carries = l.carries.iter().flat_map(|k| [k.init, k.slot, k.out]);
    let seen: Vec<Cell> = windows.chain(carries).map(|s| c.cell(s)).collect();
    let between = c.target.tuning.scalars.max_statements_between;
    // with fewer loops first; as they were written where one of them cannot be
    [(true, true), (true, false), (false, false)].into_iter().find_map(|(rows, fused)| {
        let style = if rows { Style::Rows } else { Style::Scalars };
        let mut written = Builder::of(c, l, style)?;
        show("build", &written.nest);
        if fused {
            if !nest::fuse(&mut written.nest, between) {
                return None;
            }
            show("fuse", &written.nest);
        }
        let mut simple = nest::simplify(&written.nest);
        show("simplify", &simple);
        if fused {
            nest::drop_dead_stores(&mut simple, &|array| {
                // the arena's memory that is no carry's and no window's is the loop's own
                written.arrays.get(array as usize).is_none_or(|cell| {
                    seen.contains(cell) || !matches!(c.locations[*cell as usize], Location::Arena(_))
                })
            });
        }
        if rows {
            nest::vectorize(&mut simple, &c.target)?;
        }
        let simple = nest::inline_functions(simple);
        is_proved(if rows { "vectorize" } else { "inline" }, &simple)?;
        Some(CompiledNest::new(Executor::Native(NestCode::new(&simple)?), written, simple, 1))
    })
}

impl CompiledNest {
    pub fn run(&self, state: &mut RunState, cx: &RunCx) -> Res<()> {
        state.launches += self.launches;
        let mut frame = self.executor.frame();
        // SAFETY: verify, places: inputs are elements of live slots, and arrays are slots of as
        // many bytes as their indices are clamped to (the nest's invariant). Arrays that are stored
        // to belong to the loop: the memory plan updates them in place. Copies are between the
        // slots of one carry, of equal size. The code writes the frame and the arrays only.
        unsafe {
            for (n, p) in self.inputs.iter().enumerate() {
                frame.give(n, read_lane(state.ptrs[p.cell as usize].add(p.offset), p.dtype));
            }
            for (from, to, bytes) in &self.before {
                state.ptrs[*to as usize].copy_from(state.ptrs[*from as usize], *bytes);
            }
            for (n, cell) in self.arrays.iter().enumerate() {
                frame.point(n, state.ptrs[*cell as usize]);
            }
            if !self.executor.run(&mut frame, cx.cancel) {
                return Err(Error::Cancelled);
            }
            for (from, to, bytes) in &self.after {
                state.ptrs[*to as usize].copy_from(state.ptrs[*from as usize], *bytes);
            }
            for (n, p) in self.outs.iter().enumerate() {
                write_lane(state.ptrs[p.cell as usize].add(p.offset), p.dtype, frame.left(n));
            }
        }
        Ok(())
    }
    /// The implementation and its counters, then the loops that run, each after `| `.
    pub fn text(&self) -> String {
        let NestCounts { loops, vector_loops, loads, stores, operations, calls, rows_called } = self.nest.counts();
        let some = |n: usize, what: String| if n > 0 { what } else { String::new() };
        let of_vectors = some(vector_loops, format!(" ({vector_loops} of vectors)"));
        let called = some(calls, format!(", {calls} calls"))
            + &some(rows_called, format!(", {rows_called} functions over rows"));
        let how = if let Executor::Native(_) = self.executor { "native" } else { "interpreted" };
        if loops == 0 {
            let (reads, writes, operations) = (self.inputs.len(), self.outs.len(), operations + calls);
            return format!("{operations} scalar operations, {reads} reads, {writes} writes, {how}");
        }
        let mut text = format!(
            "nest of {loops} loops{of_vectors}, {how}: {loads} loads, {stores} stores, {operations} operations{called}"
        );
        nest::text::print(&self.nest, &lowering::functions::NAMES)
            .lines()
            .for_each(|line| text += &format!("\n| {line}"));
        text
    }
}

/// The estimated time of steps one by one, in nanoseconds; of loops among them, of one iteration, as a nest's operations are counted.
fn step_nanos(steps: &[Step]) -> f64 {
    let each = |s: &Step| match s {
        Step::Kernel { kernel, .. } => kernel_nanos(kernel),
        Step::Routine { routine, .. } => 60.0 + 0.3 * routine.work() as f64,
        Step::Switch { branches, .. } => branches.iter().map(|b| step_nanos(b)).fold(0.0, f64::max),
        Step::Loop(l) => step_nanos(&l.body),
        _ => 30.0,
    };
    steps.iter().map(each).sum()
}

#[cfg(test)]
mod tests;
