//! `TileProgram`: the nodes of a kernel as a list of block-function calls over tiles of a loop nest.
//!
//! ```text
//!     x + sin(y)[:, None]     ->   direct in0 +pos      (x is read in place, tile after tile)
//!                                  load r0 <- in1       (one row's value, repeated)
//!                                  call sin r1 <- r0
//!                                  call add out0 <- in0, r1
//! ```
//!
//! Positions are linear over the loop dimensions, after merging neighbouring ones that have one stride in every access. Values that
//! do not vary are computed once per run. Registers are reused when their last reader has run.
//!
//! INVARIANT: evaluating a range of positions touches only these positions of what is read in place or written, and the elements that
//! the kernel's loads name for them, which `Kernel::verify` proved to exist.
mod build;
mod code;
mod nest;
mod patterns;
mod registers;
mod rows;

use super::block::{BlockFn, RoundsFn};
use super::lane::Lane;
use super::moves;
use crate::instructions::Function;
use crate::tuning::Target;
use code::CodePart;
use ferrax_kernel::{Affine, DType, Kernel, NodeId};
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;

/// Position of a pointer in the frame's table: registers first, then buffers that are used in
/// place.
type Op = u16;
const DIRECT: u16 = 0x8000;
/// Lanes of the longest vectors.
const VECTOR: usize = 16;

#[derive(Clone, Copy, Debug)]
enum Buf {
    In(u32),
    Out(u32),
    /// The numbers from 0 on.
    Counted(Lane),
    /// The register that holds the values that all rows share.
    Row(Op),
}
/// A buffer that is used in place: its elements are contiguous along the innermost loop, or spaced
/// as an interleaving call requires.
struct Direct {
    buf: Buf,
    offset: i64,
    size: usize,
    /// Elements from one position to the next.
    step: usize,
    /// Along each loop, in elements. Read where tiles are rows; elsewhere all positions are one run.
    strides: SmallVec<[i64; 4]>,
}
enum Ins {
    Call {
        f: BlockFn,
        d: Op,
        a: Op,
        b: Op,
        c: Op,
        /// The native equivalent, if there is one.
        what: Option<Function>,
    },
    /// Rounds of two words, by the bits in the bytes of `by`.
    Rounds {
        f: RoundsFn,
        d: Op,
        e: Op,
        a: Op,
        b: Op,
        by: u32,
    },
    Load {
        load: u32,
        d: Op,
    },
    Index {
        index: u32,
        d: Op,
    },
    /// To elements that do not lie one after the other.
    Store {
        store: u32,
        v: Op,
    },
}
impl Ins {
    /// The operands that it reads or writes, as places that can be replaced.
    fn operands(&mut self) -> SmallVec<[&mut Op; 4]> {
        match self {
            Ins::Call { d, a, b, c, .. } => [d, a, b, c].into_iter().collect(),
            Ins::Rounds { d, e, a, b, .. } => [d, e, a, b].into_iter().collect(),
            Ins::Load { d, .. } | Ins::Index { d, .. } => [d].into_iter().collect(),
            Ins::Store { v, .. } => [v].into_iter().collect(),
        }
    }
    fn reads(&self, o: Op) -> bool {
        match *self {
            Ins::Call { a, b, c, .. } => [a, b, c].contains(&o),
            Ins::Rounds { a, b, .. } => [a, b].contains(&o),
            Ins::Store { v, .. } => v == o,
            Ins::Load { .. } | Ins::Index { .. } => false,
        }
    }
    fn results(&self) -> SmallVec<[Op; 2]> {
        match *self {
            Ins::Call { d, .. } | Ins::Load { d, .. } | Ins::Index { d, .. } => SmallVec::from_slice(&[d]),
            Ins::Rounds { d, e, .. } => SmallVec::from_slice(&[d, e]),
            Ins::Store { .. } => SmallVec::new(),
        }
    }
}
struct Stores {
    f: moves::StoreFn,
    output: u32,
    size: usize,
    offset: i64,
    strides: SmallVec<[i64; 4]>,
    lane_bytes: usize,
    /// Native code does it, of elements that are lanes, where rows are parts of a vector.
    in_code: Option<DType>,
}
struct Loads {
    f: moves::LoadFn,
    buf: Buf,
    size: usize,
    offset: i64,
    strides: SmallVec<[i64; 4]>,
    guards: Vec<Between>,
    fill: u64,
    lane_bytes: usize,
    /// Lanes are stored as they are.
    is_storage: bool,
    /// A row of the operand can take the place of the register: its lanes are contiguous.
    in_place: bool,
    /// Native code loads it, with strides: lanes are elements, and rows are parts of a vector.
    in_code: bool,
}
impl Loads {
    fn is_of_row(&self) -> bool {
        self.guards.is_empty() && self.is_storage && matches!(self.strides.last(), Some(0))
    }
}
struct Between {
    offset: i64,
    strides: SmallVec<[i64; 4]>,
    lo: i64,
    hi: i64,
}
struct Indices {
    f: moves::IndexFn,
    offset: i64,
    strides: SmallVec<[i64; 4]>,
    lane_bytes: usize,
}
enum Setup {
    Fill {
        d: Op,
        bytes: usize,
        bits: u64,
    },
    Splat {
        d: Op,
        f: moves::LoadFn,
        buf: Buf,
        size: usize,
        offset: i64,
    },
    /// `n` elements at distance `stride`: a row that all rows share.
    Row {
        d: Op,
        f: moves::LoadFn,
        buf: Buf,
        size: usize,
        offset: i64,
        stride: i64,
        n: usize,
    },
    Call {
        f: BlockFn,
        d: Op,
        a: Op,
        b: Op,
        c: Op,
    },
}

pub struct TileProgram {
    dims: SmallVec<[usize; 4]>,
    total: usize,
    tile: usize,
    /// Length of the rows that tiles should not straddle.
    row: usize,
    n_regs: usize,
    reg_bytes: usize,
    /// Each row is a part of one long vector, or one, where all of it is native code.
    masked: bool,
    /// Tiles are parts of rows: buffers used in place are contiguous within a row, but not beyond
    /// it.
    by_rows: bool,
    directs: Vec<Direct>,
    setup: Vec<Setup>,
    body: Vec<Ins>,
    loads: Vec<Loads>,
    stores: Vec<Stores>,
    indices: Vec<Indices>,
    /// Registers that the caller reads.
    keep: SmallVec<[Op; 2]>,
    code: code::Lazy,
    /// Estimated nanoseconds for one position.
    pub cost: f64,
}

/// The parts of a kernel to compile.
pub struct Spec<'a> {
    pub kernel: &'a Kernel,
    /// Loop dimensions, outermost first, as positions in the kernel's domain.
    pub loops: &'a [usize],
    /// Nodes that become outputs.
    pub outs: &'a [(NodeId, u32)],
    /// Where each of them lies in its output, in elements over the kernel's domain: then positions
    /// are evaluated by `tile_range`s only. Empty where positions are the outputs' own.
    pub places: &'a [&'a Affine],
    /// Nodes whose lanes the caller reads after a tile was evaluated.
    pub keep: &'a [NodeId],
    /// Nodes whose lanes the caller provides before.
    pub given: &'a [NodeId],
    /// Whether an output may be the memory of an input.
    pub aliased: bool,
    pub target: &'a Target,
    pub max_tile: usize,
}

/// The buffers of a run: pointers by cell, and the cells of inputs and outputs.
#[derive(Clone, Copy)]
pub struct Bases<'a> {
    pub ptrs: &'a [*mut u8],
    pub ins: &'a [u32],
    pub outs: &'a [u32],
    /// Long computations poll it; their results are not used once it is set.
    pub cancel: &'a AtomicBool,
}
// SAFETY: the pointers are to memory that the run holds; tiles write disjoint ranges of the outputs and only read the inputs.
unsafe impl Sync for Bases<'_> {}
impl Bases<'_> {
    #[inline(always)]
    pub fn input(&self, k: u32) -> *mut u8 {
        self.ptrs[self.ins[k as usize] as usize]
    }
    #[inline(always)]
    pub fn output(&self, k: u32) -> *mut u8 {
        self.ptrs[self.outs[k as usize] as usize]
    }
    /// The address of a buffer, if it has one: the caller `put`s buffers that are neither inputs
    /// nor outputs.
    #[inline(always)]
    fn of(&self, buf: Buf) -> *mut u8 {
        let (cells, k) = match buf {
            Buf::In(k) => (self.ins, k),
            Buf::Out(k) => (self.outs, k),
            Buf::Counted(lane) => return moves::counted(lane).cast_mut(),
            Buf::Row(_) => return std::ptr::null_mut(), // the frame's own
        };
        cells.get(k as usize).map_or(std::ptr::null_mut(), |c| self.ptrs[*c as usize])
    }
}

/// The working memory of one thread for one program: pointer table, bases of buffers used in place,
/// registers.
pub struct Frame<'a> {
    p: &'a mut [*mut u8],
    base: &'a mut [*mut u8],
    bases: Bases<'a>,
}

impl TileProgram {
    pub fn tile(&self) -> usize {
        self.tile
    }
    pub fn total(&self) -> usize {
        self.total
    }
    /// The length of the table: registers, buffers used in place, and where tiles are rows, the
    /// buffers of loads and stores.
    fn n_pointers(&self) -> usize {
        self.n_regs + self.directs.len() + if self.by_rows { self.loads.len() + self.stores.len() } else { 0 }
    }
    /// The table's entry for the address that a load reads from, where tiles are rows.
    fn pointer_of(&self, load: u32) -> Op {
        (self.n_regs + self.directs.len() + load as usize) as Op
    }
    /// The same of a store.
    fn pointer_of_store(&self, store: u32) -> Op {
        (self.n_regs + self.directs.len() + self.loads.len() + store as usize) as Op
    }
    /// Whether native code does a load, of one element or of strided ones. Its register is its alone.
    fn is_in_code(&self, load: u32) -> bool {
        let is_kept = || self.keep.iter().any(|k| self.is_made_by(*k, load));
        self.is_of_row(load) || self.loads[load as usize].in_code && !is_kept()
    }
    /// Whether all lanes of a load are one element of its row, as in memory. No other value uses
    /// its register.
    fn is_of_row(&self, load: u32) -> bool {
        self.by_rows && self.loads[load as usize].is_of_row() && !self.keep.iter().any(|k| self.is_made_by(*k, load))
    }
    fn is_made_by(&self, o: Op, load: u32) -> bool {
        self.body.iter().any(|i| matches!(*i, Ins::Load { load: l, d } if l == load && d == o))
    }
    /// Bytes of working memory a frame needs.
    pub fn frame_bytes(&self) -> usize {
        let table = (self.n_pointers() + self.directs.len()) * 8;
        table.next_multiple_of(64) + self.n_regs * self.reg_bytes
    }
    pub fn n_tiles(&self) -> usize {
        match self.total {
            0 => 0,
            n if self.row >= self.tile => n / self.row * self.row.div_ceil(self.tile),
            n => (n / self.row).div_ceil(self.tile / self.row),
        }
    }
    /// First position and length of a tile.
    #[inline]
    pub fn tile_range(&self, t: usize) -> (usize, usize) {
        if self.row >= self.tile {
            let pieces = self.row.div_ceil(self.tile);
            let (row, piece) = (t / pieces, t % pieces);
            let from = piece * self.tile;
            (row * self.row + from, self.tile.min(self.row - from))
        } else {
            let step = self.tile / self.row * self.row;
            (t * step, step.min(self.total - t * step))
        }
    }
    /// How many positions from `pos` on, before `end`, can be evaluated at once: a tile, as far as its row goes. Native code without registers in
    /// memory goes through all that lie in one row.
    fn longest(&self, pos: usize, end: usize) -> usize {
        let of_row = |row: usize| row - pos % row;
        let n = match self.by_rows {
            _ if self.is_all_native() && (!self.by_rows || self.dims.len() == 1) => end - pos,
            true if self.is_all_native() => of_row(self.dims[self.dims.len() - 1]),
            true => of_row(self.dims[self.dims.len() - 1]).min(self.tile),
            false if self.row >= self.tile => of_row(self.row).min(self.tile),
            false => self.tile / self.row * self.row,
        };
        n.min(end - pos)
    }
    /// Lays the frame out in `memory` and computes the loop-invariant values, for tiles of up to
    /// `n` positions.
    ///
    /// # Safety
    /// `memory` has `frame_bytes` bytes, 64-byte aligned, for as long as the frame lives; `bases` point at buffers as long as the kernel says.
    #[inline]
    pub unsafe fn start<'a>(&self, memory: *mut u8, bases: Bases<'a>, n: usize) -> Frame<'a> {
        // Native code reads at most one vector of each loop-invariant value.
        let n = if self.is_all_native() { n.min(VECTOR) } else { n };
        // SAFETY: `frame_bytes` counts exactly these pieces.
        unsafe {
            let n_p = self.n_pointers();
            let p = std::slice::from_raw_parts_mut(memory.cast::<*mut u8>(), n_p);
            let base = std::slice::from_raw_parts_mut(memory.cast::<*mut u8>().add(n_p), self.directs.len());
            let regs = memory.add(((n_p + self.directs.len()) * 8).next_multiple_of(64));
            for (r, slot) in p[..self.n_regs].iter_mut().enumerate() {
                *slot = regs.add(r * self.reg_bytes);
            }
            for (b, d) in base.iter_mut().zip(&self.directs) {
                *b = match d.buf {
                    Buf::Row(r) => p[r as usize],
                    buf => bases.of(buf).wrapping_offset(d.offset as isize * d.size as isize),
                };
            }
            for s in &self.setup {
                match s {
                    Setup::Row { d, f, buf, size, offset, stride, n } => {
                        let from = bases.of(*buf).wrapping_offset(*offset as isize * *size as isize);
                        f(p[*d as usize], from, 1, 0, *n, *stride as isize)
                    }
                    Setup::Fill { d, bytes, bits } => moves::fill(p[*d as usize], *bytes, *bits, n),
                    Setup::Splat { d, f, buf, size, offset } => {
                        f(p[*d as usize], bases.of(*buf).offset(*offset as isize * *size as isize), 1, 0, n, 0)
                    }
                    Setup::Call { f, d, a, b, c } => {
                        f(p[*d as usize], p[*a as usize], p[*b as usize], p[*c as usize], n)
                    }
                }
            }
            Frame { p, base, bases }
        }
    }
    /// Evaluates positions `pos .. pos + n`, n at most the tile and the length the frame was
    /// started for, or `longest`.
    ///
    /// # Safety
    /// The frame is one of this program's; the positions lie below `total`; no other thread evaluates them.
    #[inline]
    pub unsafe fn eval(&self, frame: &mut Frame, pos: usize, n: usize) {
        // SAFETY: an operand used in place advances by one element a position (`build` takes only such accesses), so that `pos` below
        // `total` stays inside by `Kernel::verify`; registers hold `tile` lanes, and n is no more.
        unsafe {
            if self.by_rows {
                self.point_to_row(frame, pos);
            } else {
                for (k, d) in self.directs.iter().enumerate() {
                    frame.p[self.n_regs + k] = frame.base[k].wrapping_add(pos * d.step * d.size);
                }
            }
            self.run(frame, pos, n)
        }
    }
    /// Positions of a row, along which all that is used in place is even.
    pub fn row(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }
    /// # Safety
    /// As `eval`; the pointers are set for `pos`.
    #[inline]
    unsafe fn run(&self, frame: &mut Frame, pos: usize, n: usize) {
        // SAFETY: by the contract.
        unsafe {
            match self.code.get() {
                None => self.interpret(&self.body, frame, pos, n),
                Some([CodePart::Native(s)]) if !s.takes(n) => self.interpret(&self.body, frame, pos, n),
                Some(parts) => {
                    for part in parts {
                        match part {
                            CodePart::Calls(r) => self.interpret(&self.body[r.clone()], frame, pos, n),
                            CodePart::Native(s) => s.run(frame.p, n),
                        }
                    }
                }
            }
        }
    }
    /// Evaluates positions `from..to`, which begin where a tile does, or a row.
    ///
    /// # Safety
    /// As `eval`, of a frame that was started for whole tiles.
    #[inline]
    pub unsafe fn eval_all(&self, frame: &mut Frame, from: usize, to: usize) {
        let mut pos = from;
        if !self.by_rows {
            while pos < to {
                let n = self.longest(pos, to);
                // SAFETY: by the contract; `longest` is no more than can be evaluated at once.
                unsafe { self.eval(frame, pos, n) };
                pos += n;
            }
            return;
        }
        // PERF: from a whole row to the next, all pointers move by a stride each.
        let width = self.dims[self.dims.len() - 1];
        let (mut n, mut rows) = (0, 0);
        while pos < to {
            n = if n == width { width.min(to - pos) } else { self.longest(pos, to) };
            if rows > 0 {
                self.point_to_next_row(frame);
            } else {
                rows = self.point_to_row(frame, pos);
            }
            if n == width
                && rows > 1
                && let Some(segment) = self.segment_of_rows(width)
            {
                let count = rows.min((to - pos) / width);
                // SAFETY: rows of the program, which follow at a constant stride as far as
                // `point_to_row` says.
                unsafe { segment.run_rows(frame.p, width, count) };
                pos += count * width;
                rows = 0;
                continue;
            }
            rows = if n == width { rows - 1 } else { 0 };
            // SAFETY: as above; the pointers are set for `pos`.
            unsafe { self.run(frame, pos, n) };
            pos += n;
        }
    }
    /// # Safety
    /// As `eval`, whose instructions these are, those before them done.
    #[inline]
    unsafe fn interpret(&self, body: &[Ins], frame: &mut Frame, pos: usize, n: usize) {
        for i in body {
            // SAFETY: as `eval`.
            unsafe {
                match *i {
                    Ins::Call { f, d, a, b, c, .. } => {
                        let p = &frame.p;
                        f(p[d as usize], p[a as usize], p[b as usize], p[c as usize], n)
                    }
                    Ins::Rounds { f, d, e, a, b, by } => {
                        let p = &frame.p;
                        f(p[d as usize], p[e as usize], p[a as usize], p[b as usize], by, n)
                    }
                    Ins::Load { load, d } => self.load(load, d, frame, pos, n),
                    Ins::Index { index, d } => self.index(&self.indices[index as usize], frame.p[d as usize], pos, n),
                    Ins::Store { store, v } => {
                        self.store(&self.stores[store as usize], frame.p[v as usize], frame, pos, n)
                    }
                }
            }
        }
    }
    /// The lanes of an operand, as the last `eval` left them.
    #[inline]
    pub fn lanes(&self, frame: &Frame, op: u16) -> *mut u8 {
        frame.p[op as usize]
    }

    /// One line for each instruction, for people.
    pub fn text(&self) -> String {
        let buf = |b: Buf| match b {
            Buf::In(k) => format!("in{k}"),
            Buf::Out(k) => format!("out{k}"),
            Buf::Counted(_) => "numbers".into(),
            Buf::Row(r) => format!("r{r}"),
        };
        let op = |o: Op| match (o as usize).checked_sub(self.n_regs) {
            None => format!("r{o}"),
            Some(k) => buf(self.directs[k].buf),
        };
        let by = if self.by_rows { "rows" } else { "positions" };
        let mut s = format!("  loops {:?} tile {} by {by}, registers {}", &self.dims[..], self.tile, self.n_regs);
        s += &format!(", code {}{}\n", self.code_text(), self.vector_text());
        for i in &self.setup {
            s += &match i {
                Setup::Fill { d, bits, .. } => format!("  once {} = {bits:#x}\n", op(*d)),
                Setup::Splat { d, buf: b, offset, .. } => format!("  once {} = {}[{offset}]\n", op(*d), buf(*b)),
                Setup::Row { d, buf: b, offset, stride, .. } => {
                    format!("  once {} = {}[{offset} + [{stride}]]\n", op(*d), buf(*b))
                }
                Setup::Call { d, a, b, c, .. } => {
                    format!("  once {} = call {} {} {}\n", op(*d), op(*a), op(*b), op(*c))
                }
            };
        }
        for i in &self.body {
            s += &match i {
                Ins::Call { d, a, b, c, what: Some(f), .. } => {
                    let operands: Vec<String> = [a, b, c].iter().take(f.operands()).map(|o| op(**o)).collect();
                    format!("  {} = {} {}\n", op(*d), f.text(), operands.join(" "))
                }
                Ins::Call { d, a, b, c, what: None, .. } => {
                    format!("  {} = loop_only {} {} {}\n", op(*d), op(*a), op(*b), op(*c))
                }
                Ins::Rounds { d, e, a, b, by, .. } => {
                    format!("  {}, {} = rounds({}, {}) by {by:#x}\n", op(*d), op(*e), op(*a), op(*b))
                }
                Ins::Load { load, d } => {
                    let l = &self.loads[*load as usize];
                    format!("  {} = {}[{} + {:?}]\n", op(*d), buf(l.buf), l.offset, &l.strides[..])
                }
                Ins::Index { index, d } => {
                    format!("  {} = {:?} indices\n", op(*d), &self.indices[*index as usize].strides[..])
                }
                Ins::Store { store, v } => {
                    let s = &self.stores[*store as usize];
                    format!("  out{}[{} + {:?}] = {}\n", s.output, s.offset, &s.strides[..], op(*v))
                }
            };
        }
        s
    }
}
