//! Reductions by the native code of a nest, once there was enough work.
//!
//! INVARIANT: the nest is made at most once, all later runs use it, and no thread waits for it; the bits are those of `kernels/reduce.rs`.
use super::alone::{RowKernel, RowNest, RowShape};
use crate::kernels::Bases;
use crate::native::WorkCount;
use crate::threads::{self, Cost, SharedPtr};
use crate::tuning::NativeTuning;
use ferrax_kernel::Res;
use ferrax_kernel::error::filled;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub struct NestedReduction {
    kernel: RowKernel,
    cost: Cost,
    done: WorkCount,
    /// The parts in which a row-fused group runs it; 0 where it runs by itself.
    parts: AtomicUsize,
    code: OnceLock<Option<RowCode>>,
}
pub struct RowCode {
    /// The results of blocks, which the loop over rows reads, where there are many.
    blocks: Option<BlockCode>,
    all: RowLoop,
    inputs: usize,
}
struct BlockCode {
    whole: RowLoop,
    rest: Option<RowLoop>,
    /// Bytes of a row's results of each reduction, and whether they lie side by side.
    row_bytes: Vec<usize>,
    is_by_rows: bool,
}
/// Code for rows, by groups of them.
struct RowLoop {
    shape: RowShape,
    groups: RowNest,
    /// For rows that are no whole group.
    single: Option<RowNest>,
}
impl NestedReduction {
    /// `nanos`: the estimated time of one run.
    pub fn new(kernel: RowKernel, nanos: f64) -> NestedReduction {
        let (cost, done) = (Cost::of(nanos), WorkCount::default());
        NestedReduction { kernel, cost, done, parts: AtomicUsize::new(0), code: OnceLock::new() }
    }
    /// Says that it will be run in so many equal parts.
    pub fn in_parts(&self, parts: usize) {
        self.parts.store(parts, Ordering::Relaxed);
    }
    /// Announces so many runs; makes the code where that pays.
    #[inline]
    pub fn expect(&self, runs: usize) {
        if self.code.get().is_none() {
            let nanos = (runs as f64 * self.cost.estimate) as u64;
            if self.done.reaches(nanos, NativeTuning::DEFAULT.nests_over_programs) {
                let _ = self.code.set(self.made());
            }
        }
    }
    pub fn cost(&self) -> &Cost {
        &self.cost
    }
    fn made(&self) -> Option<RowCode> {
        let parts = Some(self.parts.load(Ordering::Relaxed)).filter(|p| *p > 0);
        let inputs = self.kernel.inputs();
        let Some(k) = self.kernel.in_blocks() else {
            return Some(RowCode { blocks: None, all: RowLoop::new(&self.kernel, parts)?, inputs });
        };
        let all = RowLoop::new(&k.last, parts)?;
        let rest = match k.rest {
            Some(rest) => Some(RowLoop::new(&rest, parts)?),
            None => None,
        };
        let row_bytes = k.bytes.iter().map(|n| n / all.shape.rows.max(1)).collect();
        let blocks = BlockCode { whole: RowLoop::new(&k.blocks, parts)?, rest, row_bytes, is_by_rows: k.is_by_rows };
        Some(RowCode { blocks: Some(blocks), all, inputs })
    }
    #[inline]
    pub fn code(&self) -> Option<&RowCode> {
        self.code.get()?.as_ref()
    }
    /// Whether there is no code, and will be none.
    pub fn failed(&self) -> bool {
        matches!(self.code.get(), Some(None))
    }
    /// The code that there is, or will be.
    pub fn text(&self) -> Option<String> {
        match self.code.get() {
            Some(code) => code.as_ref().map(RowCode::text),
            None => self.made().map(|code| code.text()),
        }
    }
}
impl RowCode {
    fn text(&self) -> String {
        let blocks = self.blocks.as_ref().map_or(String::new(), |b| {
            format!(
                "  blocks{}{}",
                b.whole.text(),
                b.rest.as_ref().map_or(String::new(), |r| format!("  rest{}", r.text()))
            )
        });
        format!("  strategy=reduce{}{blocks}", self.all.text())
    }
    /// The memory of an array of the code: of an input, of a block's results, or of an output.
    fn array(&self, bases: Bases, of_blocks: &[SharedPtr], cell: usize) -> *mut u8 {
        match cell.checked_sub(self.inputs) {
            None => bases.input(cell as u32),
            Some(k) if k < of_blocks.len() => of_blocks[k].get(),
            Some(k) => bases.output((k - of_blocks.len()) as u32),
        }
    }
    pub fn run(&self, bases: Bases, cost: Option<&Cost>) -> Res<()> {
        let Some(b) = &self.blocks else {
            return self.all.run(bases.cancel, cost, &|cell| self.array(bases, &[], cell));
        };
        let rows = 0..self.all.shape.rows;
        let mut memory = b.memory(&rows)?;
        let places = b.places(&mut memory, &rows);
        let of_block = |cell: usize| self.array(bases, &places, cell);
        b.whole.run(bases.cancel, cost, &of_block)?;
        // SAFETY: `bases` are as `CompiledKernel::run` demands; the other threads are done.
        unsafe {
            if let Some(rest) = &b.rest {
                rest.rows(0..rest.shape.rows, bases.cancel, &of_block);
            }
            self.all.rows(rows, bases.cancel, &of_block);
        }
        Ok(())
    }
    /// Makes some of `of` equal parts of the results; gives false, and makes nothing, where it cannot be divided so.
    ///
    /// # Errors
    /// `OutOfMemory` where there is none for the results of blocks.
    ///
    /// # Safety
    /// As `CompiledKernel::run_rows`.
    pub unsafe fn run_rows(&self, bases: Bases, parts: &Range<usize>, of: usize) -> Res<bool> {
        let Some(b) = &self.blocks else {
            let at = |cell: usize| self.array(bases, &[], cell);
            // SAFETY: by the contract.
            return Ok(unsafe { self.all.run_rows(parts, of, bases.cancel, &at) });
        };
        let loops = || [Some(&b.whole), b.rest.as_ref(), Some(&self.all)].into_iter().flatten();
        if !b.is_by_rows || !loops().all(|l| l.divides(parts, of)) {
            return Ok(false);
        }
        let rows = self.all.of_parts(parts, of);
        let mut memory = b.memory(&rows)?;
        let places = b.places(&mut memory, &rows);
        let at = |cell: usize| self.array(bases, &places, cell);
        // SAFETY: by the contract; each loop makes its part of the results.
        loops().for_each(|l| unsafe {
            l.run_rows(parts, of, bases.cancel, &at);
        });
        Ok(true)
    }
}
impl BlockCode {
    /// For the results of these rows.
    fn memory(&self, rows: &Range<usize>) -> Res<Vec<u64>> {
        filled(self.row_bytes.iter().map(|n| (n * rows.len()).div_ceil(8)).sum(), 0)
    }
    /// Where the results of each reduction would begin, if they were those of all rows.
    fn places(&self, memory: &mut [u64], rows: &Range<usize>) -> SmallVec<[SharedPtr; 4]> {
        let mut at = memory.as_mut_ptr().cast::<u8>();
        let next = |n: &usize| {
            let here = SharedPtr(at.wrapping_sub(n * rows.start));
            at = at.wrapping_add((n * rows.len()).next_multiple_of(8));
            here
        };
        self.row_bytes.iter().map(next).collect()
    }
}
impl RowLoop {
    fn new(k: &RowKernel, parts: Option<usize>) -> Option<RowLoop> {
        let shape = k.shape(parts)?;
        let is_whole = parts.is_none() && shape.rows.is_multiple_of(shape.of_group);
        let groups = k.compile(shape)?;
        let single = if shape.of_group == 1 || is_whole { None } else { Some(k.compile(shape.single())?) };
        Some(RowLoop { shape, groups, single })
    }
    fn text(&self) -> String {
        let RowShape { rows, of_group, .. } = self.shape;
        let nest: String = self.groups.text().lines().map(|line| format!("  | {line}\n")).collect();
        format!(" nest of {rows} rows, {of_group} at a time\n{nest}")
    }
    fn run(&self, cancel: &AtomicBool, cost: Option<&Cost>, at: &(dyn Fn(usize) -> *mut u8 + Sync)) -> Res<()> {
        let RowShape { rows, of_group, .. } = self.shape;
        threads::try_ranges(rows.div_ceil(of_group), cost, cancel, &|r| {
            // SAFETY: the arrays are as `CompiledKernel::run` demands; `try_ranges` gives each row to one thread.
            unsafe { self.rows(r.start * of_group..rows.min(r.end * of_group), cancel, at) };
            Ok(())
        })
    }
    fn of_parts(&self, parts: &Range<usize>, of: usize) -> Range<usize> {
        let each = self.shape.rows / of;
        parts.start * each..parts.end * each
    }
    fn divides(&self, parts: &Range<usize>, of: usize) -> bool {
        let (RowShape { rows, of_group, .. }, all) = (self.shape, self.of_parts(parts, of));
        let is_whole = all.start.is_multiple_of(of_group) && all.end.is_multiple_of(of_group);
        rows.is_multiple_of(of) && (is_whole || self.single.is_some())
    }
    /// # Safety
    /// As `CompiledKernel::run_rows`, for memory that `at` gives.
    unsafe fn run_rows(
        &self,
        parts: &Range<usize>,
        of: usize,
        cancel: &AtomicBool,
        at: &dyn Fn(usize) -> *mut u8,
    ) -> bool {
        let divides = self.divides(parts, of);
        if divides {
            // SAFETY: by the contract.
            unsafe { self.rows(self.of_parts(parts, of), cancel, at) };
        }
        divides
    }
    /// # Safety
    /// As `run_rows`, of these rows.
    unsafe fn rows(&self, all: Range<usize>, cancel: &AtomicBool, at: &dyn Fn(usize) -> *mut u8) {
        let of_group = self.shape.of_group;
        let (first, last) = (all.start.div_ceil(of_group), all.end / of_group);
        let (from, to) = if first < last { (first * of_group, last * of_group) } else { (all.end, all.end) };
        // SAFETY: by the contract; these ranges are those rows.
        unsafe {
            if first < last {
                self.groups.run((first, last - first), at, cancel);
            }
            for (from, to) in [(all.start, from), (to, all.end)] {
                if let Some(single) = self.single.as_ref().filter(|_| from < to) {
                    single.run((from, to - from), at, cancel);
                }
            }
        }
    }
}
