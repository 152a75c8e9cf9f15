//! Kernels that reduce: tiles of the inner program folded into accumulators, block by block, then the epilogue.
//!
//! Two loop orders, equal in bits: rows (`grid, rdims`), where the elements of one result lie side by side, and columns
//! (`outer grid, rdims, inner grid`), where neighbouring results do. The choice looks at strides only.
//!
//! INVARIANT: blocks are combined in increasing order by the same levels, whether one thread made them or many.
mod split;

use super::Scratch;
use super::fold::{self, ArgFolder, Folder};
use super::lane::Lane;
use super::program::{Bases, Frame, Spec, TileProgram};
use super::{moves, scalar};
use crate::threads::{self, Cost};
use crate::tuning::{KernelTuning, Target};
use ferrax_kernel::order::{BLOCK, LANES};
use ferrax_kernel::{Error, Kernel, Node, NodeId, ReduceKind, Res};
use std::ops::Range;
use std::sync::atomic::Ordering;

enum How {
    Fold(Folder, u64),
    Arg(ArgFolder),
}
struct Reduction {
    how: How,
    /// The operand of the inner program that is reduced, and its lane size.
    value: u16,
    bytes: usize,
    /// The operand of the epilogue that takes the result, and its lane.
    result: u16,
    out: Lane,
    /// Back to a narrow dtype.
    canonical: Option<super::block::BlockFn>,
    /// Offsets in the accumulator memory: accumulators of a block, then levels.
    at: usize,
}
pub struct Reducing {
    inner: TileProgram,
    epilogue: TileProgram,
    reductions: Vec<Reduction>,
    /// Sizes: grid dimensions before the reduced ones, reduced, and after them.
    outer: usize,
    n: usize,
    columns: usize,
    /// Columns taken at once.
    width: usize,
    levels: usize,
    acc_bytes: usize,
    tuning: KernelTuning,
}

impl Reducing {
    pub fn compile(k: &Kernel, aliased: bool, target: &Target) -> Res<Reducing> {
        let (tier, t) = (target.tier, &target.tuning.kernels);
        let reduces: Vec<(NodeId, ReduceKind, NodeId)> = k
            .nodes
            .iter()
            .enumerate()
            .filter_map(|(n, x)| if let Node::Reduce { kind, of } = x.1 { Some((n as u32, kind, of)) } else { None })
            .collect();
        let g = k.grid.len();
        let inner_dims = column_dims(k, &reduces);
        let outer: usize = k.grid[..g - inner_dims].iter().product();
        let columns: usize = k.grid[g - inner_dims..].iter().product();
        let n = k.rdims.size();
        let loops: Vec<usize> = (0..g - inner_dims).chain(g..g + k.rdims.len()).chain(g - inner_dims..g).collect();
        let keep: Vec<NodeId> = reduces.iter().map(|r| r.2).collect();
        let (inner, values, _) = TileProgram::compile(&Spec {
            kernel: k,
            loops: &loops,
            outs: &[],
            places: &[],
            keep: &keep,
            given: &[],
            aliased: false,
            target,
            max_tile: BLOCK,
        })?;
        let outs: Vec<(NodeId, u32)> = k.outputs.iter().enumerate().map(|(j, o)| (*o, j as u32)).collect();
        let given: Vec<NodeId> = reduces.iter().map(|r| r.0).collect();
        let grid: Vec<usize> = (0..g).collect();
        let (epilogue, _, results) = TileProgram::compile(&Spec {
            kernel: k,
            loops: &grid,
            outs: &outs,
            places: &[],
            keep: &[],
            given: &given,
            aliased,
            target,
            max_tile: BLOCK,
        })?;
        let most = t.max_reduced_columns.min(inner.tile().max(1)).min(epilogue.tile());
        let width = if columns <= most {
            columns
        } else {
            columns.div_ceil(columns.div_ceil(most)).next_multiple_of(16).min(most)
        }
        .max(1);
        let (mut levels, mut m) = (0, n.div_ceil(BLOCK));
        while m > 1 {
            levels += 1;
            m = m.div_ceil(BLOCK);
        }
        let mut at = 0;
        let mut reductions = vec![];
        for (((node, kind, of), value), result) in reduces.iter().zip(values).zip(results) {
            let d = k.dtype(*of);
            let bytes = Lane::of(d).size();
            let how = match kind {
                ReduceKind::ArgMax | ReduceKind::ArgMin => {
                    How::Arg(fold::arg_folder(*kind == ReduceKind::ArgMax, d, tier))
                }
                _ => {
                    let f = fold::folder(*kind, d, tier)
                        .ok_or_else(|| Error::Invalid(format!("{} is not defined for {d}", kind.name())))?;
                    How::Fold(f, kind.identity(d).map_or(0, moves::lane_bits))
                }
            };
            let size = match how {
                How::Fold(..) => (1 + levels) * (LANES * width * bytes).next_multiple_of(64),
                How::Arg(_) => LANES * width * (bytes + 4) + width * (bytes + 8) + 256,
            };
            let canonical = scalar::canonical(k.dtype(*node), tier);
            reductions.push(Reduction { how, value, bytes, result, out: Lane::of(k.dtype(*node)), canonical, at });
            at += size.next_multiple_of(64);
        }
        Ok(Reducing { inner, epilogue, reductions, outer, n, columns, width, levels, acc_bytes: at, tuning: *t })
    }
    pub fn nanos(&self) -> f64 {
        (self.outer * self.columns) as f64
            * (self.n as f64 * (self.inner.cost + 0.1 * self.reductions.len() as f64) + self.epilogue.cost)
    }
    pub fn expect(&self, runs: usize) {
        self.inner.expect(runs.saturating_mul(self.inner.total()));
        self.epilogue.expect(runs.saturating_mul(self.epilogue.total()));
    }
    pub fn text(&self) -> String {
        let order = match self.columns {
            _ if self.whole_rows() => "whole_rows",
            1 => "rows",
            _ => "columns",
        };
        format!(
            "  strategy=reduce order={order} {} x {} x {} width={} levels={}\n{}  epilogue\n{}",
            self.outer,
            self.n,
            self.columns,
            self.width,
            self.levels,
            self.inner.text(),
            self.epilogue.text()
        )
    }

    pub fn run(&self, scratch: Scratch, bases: Bases, cost: Option<&Cost>) -> Res<()> {
        if self.outer * self.columns == 0 {
            return Ok(());
        }
        let chunks = self.columns.div_ceil(self.width);
        let units = self.outer * chunks;
        let blocks = self.n.div_ceil(BLOCK);
        if self.whole_rows() {
            let per = self.epilogue.tile().min(self.outer);
            threads::try_ranges(self.outer.div_ceil(per), cost, bases.cancel, &|r| {
                // SAFETY: `bases` are as `TileKernel::run` demands, m has `memory()` bytes; `for_ranges` gives each row to one thread.
                scratch.with(self.memory(), |m| unsafe {
                    self.rows(m, bases, r.start * per, (r.end * per).min(self.outer))
                })
            })
        } else if cost.is_some_and(|c| self.tuning.splits_results(units, blocks, c.estimate, threads::num_threads())) {
            self.split(scratch, bases, cost, units, blocks)
        } else {
            threads::try_ranges(units, cost, bases.cancel, &|r| {
                // SAFETY: as above, for units: each is a run of results of its own.
                scratch.with(self.memory(), |m| unsafe { self.units(m, bases, r) })
            })
        }
    }
    fn whole_rows(&self) -> bool {
        self.columns == 1 && self.n > 0 && self.n <= self.inner.tile()
    }
    /// Whether the results can be made in so many parts, which lie one after the other.
    pub fn splits(&self, parts: usize) -> bool {
        self.columns > 0 && self.outer.is_multiple_of(parts)
    }
    /// Makes some of `of` equal parts of the results, on this thread.
    ///
    /// # Safety
    /// As `TileKernel::run_rows`.
    pub unsafe fn run_rows(&self, scratch: Scratch, bases: Bases, parts: Range<usize>, of: usize) -> Res<()> {
        let each = self.outer / of;
        let (from, to) = (parts.start * each, parts.end * each);
        let chunks = self.columns.div_ceil(self.width);
        // SAFETY: m has `memory()` bytes, the rest is the caller's promise.
        scratch.with(self.memory(), |m| unsafe {
            match self.whole_rows() {
                true => self.rows(m, bases, from, to),
                false => self.units(m, bases, from * chunks..to * chunks),
            }
        })
    }
    /// # Safety
    /// As `start`; this thread alone has these units.
    unsafe fn units(&self, m: *mut u8, bases: Bases, units: Range<usize>) {
        let blocks = self.n.div_ceil(BLOCK);
        // SAFETY: by the contract.
        unsafe {
            let (mut inner, mut epilogue, acc) = self.start(m, bases);
            for u in units {
                self.begin(acc);
                let mut b = 0;
                while b < blocks {
                    if bases.cancel.load(Ordering::Relaxed) {
                        return;
                    }
                    self.block(&mut inner, acc, u, b);
                    self.push(acc, b, blocks);
                    b += 1;
                }
                self.finish(&mut epilogue, acc, u, blocks);
            }
        }
    }
    fn memory(&self) -> usize {
        self.inner_bytes() + self.epilogue.frame_bytes().next_multiple_of(64) + self.acc_bytes
    }
    fn inner_bytes(&self) -> usize {
        self.inner.frame_bytes().next_multiple_of(64)
    }
    /// Sets up the frames of the inner program and of the epilogue, and the accumulators.
    ///
    /// # Safety
    /// `m` has `memory()` bytes.
    unsafe fn start<'a>(&self, m: *mut u8, bases: Bases<'a>) -> (Frame<'a>, Frame<'a>, *mut u8) {
        // SAFETY: the three pieces that `memory` counts.
        unsafe {
            let e = m.add(self.inner_bytes());
            let acc = e.add(self.epilogue.frame_bytes().next_multiple_of(64));
            let n = self.inner.tile().min(self.n.max(1) * self.columns.max(1) * self.outer.max(1));
            (
                self.inner.start(m, bases, if self.n == 0 { 0 } else { n }),
                self.epilogue.start(e, bases, self.epilogue.tile().min(self.epilogue.total())),
                acc,
            )
        }
    }
    /// Whole short rows, several to a tile.
    ///
    /// # Safety
    /// As `start`; `0 < n <= inner.tile()`, one column; this thread alone has rows `from..to`.
    unsafe fn rows(&self, m: *mut u8, bases: Bases, from: usize, to: usize) {
        // SAFETY: see above; result registers hold a tile of the epilogue.
        unsafe {
            let (mut inner, mut epilogue, _) = self.start(m, bases);
            let at_once = self.inner.tile() / self.n;
            let mut g = from;
            while g < to {
                let count = self.epilogue.tile().min(to - g);
                let mut row = 0;
                while row < count {
                    let k = at_once.min(count - row);
                    self.inner.eval(&mut inner, (g + row) * self.n, k * self.n);
                    for r in &self.reductions {
                        let src = self.inner.lanes(&inner, r.value);
                        let d = self.epilogue.lanes(&epilogue, r.result).add(row * r.out.size());
                        match &r.how {
                            How::Fold(f, _) => (f.rows)(d, src, k, self.n),
                            How::Arg(f) => (f.rows)(d, r.out.size(), src, k, self.n),
                        }
                    }
                    row += k;
                }
                self.conclude(&mut epilogue, g, count);
                g += count;
            }
        }
    }
    /// Converts results to their dtype and runs the epilogue.
    ///
    /// # Safety
    /// The epilogue's result registers are filled for `n` positions from `pos`, which belong to
    /// this thread.
    unsafe fn conclude(&self, epilogue: &mut Frame, pos: usize, n: usize) {
        // SAFETY: registers hold a tile of the epilogue, and n is no more than that; the caller's positions are its own.
        unsafe {
            for r in &self.reductions {
                if let Some(f) = r.canonical {
                    let d = self.epilogue.lanes(epilogue, r.result);
                    f(d, d, d, d, n);
                }
            }
            self.epilogue.eval(epilogue, pos, n);
        }
    }
    /// First column and number of columns of a unit, and its outer index.
    fn unit(&self, u: usize) -> (usize, usize, usize) {
        let chunks = self.columns.div_ceil(self.width);
        let c = u % chunks * self.width;
        (u / chunks, c, self.width.min(self.columns - c))
    }
    fn stride(&self, r: &Reduction) -> usize {
        (LANES * self.width * r.bytes).next_multiple_of(64)
    }
    /// Before the first block of a unit: levels at the identity, no best yet.
    ///
    /// # Safety
    /// `acc` is the accumulator memory.
    unsafe fn begin(&self, acc: *mut u8) {
        for r in &self.reductions {
            // SAFETY: the pieces that `acc_bytes` counts.
            unsafe {
                match &r.how {
                    How::Fold(_, identity) => {
                        for l in 1..=self.levels {
                            moves::fill(acc.add(r.at + l * self.stride(r)), r.bytes, *identity, LANES * self.width);
                        }
                    }
                    How::Arg(_) => ArgPlaces::of(acc.add(r.at), r.bytes, self.width).begin(self.width),
                }
            }
        }
    }
    /// Reduces one block of a unit: its result is in lane 0 (for positions: in the running best).
    ///
    /// # Safety
    /// As for `start`, which returned the frame `inner`.
    unsafe fn block(&self, inner: &mut Frame, acc: *mut u8, u: usize, b: usize) {
        let (outer, c, w) = self.unit(u);
        let (from, to) = (b * BLOCK, ((b + 1) * BLOCK).min(self.n));
        // SAFETY: positions of this unit and block; accumulators hold LANES * width.
        unsafe {
            for r in &self.reductions {
                match &r.how {
                    How::Fold(_, identity) => moves::fill(acc.add(r.at), r.bytes, *identity, LANES * w),
                    How::Arg(_) => ArgPlaces::of(acc.add(r.at), r.bytes, self.width).begin_block(w),
                }
            }
            let step = if w == self.columns { (self.inner.tile() / w).max(1) } else { 1 };
            let mut i = from;
            while i < to {
                let rows = step.min(to - i);
                self.inner.eval(inner, (outer * self.n + i) * self.columns + c, rows * w);
                for r in &self.reductions {
                    let src = self.inner.lanes(inner, r.value);
                    match &r.how {
                        How::Fold(f, _) => (f.fold)(acc.add(r.at), src, w, i - from, rows),
                        How::Arg(f) => {
                            let a = ArgPlaces::of(acc.add(r.at), r.bytes, self.width);
                            (f.fold)(a.best, a.at, src, w, i - from, rows)
                        }
                    }
                }
                i += rows;
            }
            for r in &self.reductions {
                match &r.how {
                    How::Fold(f, _) => (f.finish)(acc.add(r.at), w),
                    How::Arg(f) => {
                        let a = ArgPlaces::of(acc.add(r.at), r.bytes, self.width);
                        (f.finish)(a.best, a.at, w, a.run_best, a.run_at, from as i64)
                    }
                }
            }
        }
    }
    /// Takes the result of block b, in lane 0, into the levels.
    ///
    /// # Safety
    /// As `block`.
    unsafe fn push(&self, acc: *mut u8, b: usize, blocks: usize) {
        if blocks <= 1 {
            return;
        }
        for r in &self.reductions {
            let How::Fold(f, identity) = &r.how else { continue };
            // SAFETY: level l follows the block's accumulators.
            unsafe {
                let level = |l: usize| acc.add(r.at + l * self.stride(r));
                let (mut k, mut l) = (b, 1);
                (f.fold)(level(1), level(0), self.width, k % BLOCK, 1);
                // A level that is full moves up, unless it is the last.
                while k % BLOCK == BLOCK - 1 && l < self.levels {
                    (f.finish)(level(l), self.width);
                    k /= BLOCK;
                    (f.fold)(level(l + 1), level(l), self.width, k % BLOCK, 1);
                    moves::fill(level(l), r.bytes, *identity, LANES * self.width);
                    l += 1;
                }
            }
        }
    }
    /// The result of a unit: folds the levels upwards and runs the epilogue.
    ///
    /// # Safety
    /// As for `block`, after the last one.
    unsafe fn finish(&self, epilogue: &mut Frame, acc: *mut u8, u: usize, blocks: usize) {
        let (outer, c, w) = self.unit(u);
        for r in &self.reductions {
            // SAFETY: as `push`; the result register holds at least `width` lanes.
            unsafe {
                let d = self.epilogue.lanes(epilogue, r.result);
                match &r.how {
                    How::Fold(f, identity) => {
                        let level = |l: usize| acc.add(r.at + l * self.stride(r));
                        let mut top = 0;
                        if blocks == 0 {
                            moves::fill(level(0), r.bytes, *identity, w);
                        } else if blocks > 1 {
                            let mut k = blocks; // parts that level l has taken so far
                            for l in 1..=self.levels {
                                let part = k % BLOCK;
                                if l < self.levels && part != 0 {
                                    (f.finish)(level(l), self.width);
                                    (f.fold)(level(l + 1), level(l), self.width, k / BLOCK % BLOCK, 1);
                                }
                                k = k.div_ceil(BLOCK);
                            }
                            (f.finish)(level(self.levels), self.width);
                            top = self.levels;
                        }
                        d.copy_from_nonoverlapping(level(top), w * r.bytes);
                    }
                    How::Arg(_) => ArgPlaces::of(acc.add(r.at), r.bytes, self.width).write(d, r.out, w),
                }
            }
        }
        // SAFETY: the unit's positions are this thread's.
        unsafe { self.conclude(epilogue, outer * self.columns + c, w) }
    }
}

/// The memory of an arg-reduction's state.
struct ArgPlaces {
    run_at: *mut i64,
    best: *mut u8,
    run_best: *mut u8,
    at: *mut u32,
}
impl ArgPlaces {
    /// # Safety
    /// `m` has the bytes that `Reducing::compile` counted for this width.
    unsafe fn of(m: *mut u8, bytes: usize, width: usize) -> ArgPlaces {
        // SAFETY: the sum of the offsets is less than the size that was allocated.
        unsafe {
            let best = m.add((width * 8).next_multiple_of(64));
            let run_best = best.add((LANES * width * bytes).next_multiple_of(64));
            let at = run_best.add((width * bytes).next_multiple_of(64));
            ArgPlaces { run_at: m.cast(), best, run_best, at: at.cast() }
        }
    }
    unsafe fn begin(&self, width: usize) {
        // SAFETY: `width` positions are there.
        unsafe { std::slice::from_raw_parts_mut(self.run_at, width).fill(-1) }
    }
    unsafe fn begin_block(&self, width: usize) {
        // SAFETY: LANES * width of them are there.
        unsafe { std::slice::from_raw_parts_mut(self.at, LANES * width).fill(u32::MAX) }
    }
    /// The positions found, as lanes; 0 for an empty reduction.
    unsafe fn write(&self, d: *mut u8, lane: Lane, width: usize) {
        for i in 0..width {
            // SAFETY: i < width.
            unsafe {
                let p = (*self.run_at.add(i)).max(0);
                match lane.size() {
                    4 => *d.cast::<u32>().add(i) = p as u32,
                    _ => *d.cast::<u64>().add(i) = p as u64,
                }
            }
        }
    }
}

/// The number of trailing grid dimensions that become inner loops of the reduced ones: those along
/// which the widest load has smaller strides.
fn column_dims(k: &Kernel, reduces: &[(NodeId, ReduceKind, NodeId)]) -> usize {
    let g = k.grid.len();
    let mut needed = vec![false; k.nodes.len()];
    reduces.iter().for_each(|r| needed[r.2 as usize] = true);
    for n in (0..k.nodes.len()).rev() {
        if needed[n] {
            k.nodes[n].1.operands().iter().for_each(|o| needed[*o as usize] = true);
        }
    }
    let domain = k.domain();
    let reach = |s: &ferrax_kernel::Affine| {
        (0..domain.len()).filter(|d| s.stride(*d) != 0).map(|d| domain[d]).product::<usize>()
    };
    let widest = k
        .nodes
        .iter()
        .enumerate()
        .filter(|(n, _)| needed[*n])
        .filter_map(|(_, x)| if let Node::Load(a) = &x.1 { Some(&a.at) } else { None })
        .max_by_key(|a| reach(a));
    let Some(a) = widest else { return 0 };
    let step =
        (g..domain.len()).filter(|d| domain[*d] > 1).map(|d| a.stride(d).unsigned_abs()).filter(|s| *s > 0).min();
    let Some(step) = step else { return 0 };
    let mut count = 0;
    let mut last_used = 0;
    for d in (0..g).rev() {
        let s = a.stride(d).unsigned_abs();
        if domain[d] > 1 && (s == 0 || s >= step) {
            break;
        }
        count += 1;
        if domain[d] > 1 {
            last_used = count;
        }
    }
    last_used
}
