//! Native code for x86-64 with AVX2 or AVX-512: a run of calls of a tile program becomes one loop over registers.
//!
//! ```text
//!     r0 = mul in0, in0;  r1 = add r0, c;  out0 = mul r1, in0      ->      ymm0 = in0[i]
//!     (three passes over the nearest cache)                                ymm1 = ymm0 * ymm0; ymm1 += c; ymm1 *= ymm0
//!                                                                          out0[i] = ymm1
//! ```
//!
//! The stages: record the calls as a graph (`instructions/lower.rs`), allocate registers (`native/regalloc.rs`), encode (`native/asm.rs`), map the
//! pages (`native/pages.rs`). Calls between such runs stay with the tile program. So does everything where there is no code: other machines,
//! systems that refuse executable pages, kernels with too little work.
//!
//! INVARIANT: a segment reads, of each operand, only the elements of the positions it runs for, and writes the bits that the calls it
//! replaces write.
#![allow(unsafe_code)]
mod asm;
#[cfg(test)]
pub mod decoded;
mod encode;
mod masks;
mod nest;
mod pages;
mod regalloc;

use crate::instructions::opcodes::{MemoryElement, Site};
use crate::instructions::{Function, LaneWidth, VectorSize, graph};
use crate::nest::CalledFn;
use crate::tuning::NativeTuning;
use asm::{Emitted, Kept, KeptOperand};
pub use nest::NestCode;

use pages::Pages;
use regalloc::allocate;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

/// A call of a tile program, operands by their places in the table of the frame.
#[derive(Clone, Copy, Debug)]
pub struct Replaced {
    pub function: Function,
    pub d: u16,
    pub ops: [u16; 3],
}
/// Where an operand comes from.
pub enum Operand {
    /// These bits in each lane.
    Const(u64),
    /// The same in each lane.
    Still,
    /// The same in each lane: an element of so many bytes, to which this place of the table points.
    One {
        at: u16,
        bytes: usize,
    },
    /// Elements of the row at a distance of so many bytes; this entry of the table points to the
    /// first. For masked rows.
    Strided {
        at: u16,
        bytes: usize,
        stride: i32,
    },
    Moving,
    /// It moves, and this place of the table points to it.
    Elsewhere(u16),
}

/// Operands of one segment.
pub const MAX_OPERANDS: usize = asm::TABLE;
/// Limits of a segment.
const TUNING: NativeTuning = NativeTuning::DEFAULT;

/// An operand's entry in the frame's table, and the bytes per element if it moves.
#[derive(Clone, Copy)]
struct TableSlot {
    at: u16,
    /// The value there, if it does not move.
    from: Kept,
    element: MemoryElement,
    step: usize,
    read: bool,
    written: bool,
}
/// A run of calls as code.
pub struct Segment {
    code: Pages,
    slots: Vec<TableSlot>,
    lanes: usize,
    /// Whether a position may be computed twice: no result may overlap an operand.
    repeats: bool,
    /// Whether it goes through several rows.
    by_rows: bool,
    /// The positions that all of its rows have, where these are no more than a vector's.
    masked: Option<usize>,
    /// Whether it takes nothing but whole rows.
    strided: bool,
}

/// `NativeTuning::min_nanos`, unless a test set another.
static MIN_NANOS: AtomicU64 = AtomicU64::new(TUNING.min_nanos);
/// Work, in nanoseconds, after which code pays.
#[inline]
pub fn min_nanos() -> u64 {
    MIN_NANOS.load(Ordering::Relaxed)
}
/// Sets the work after which code is compiled, for tests: it applies to programs compiled or run
/// from now on.
#[doc(hidden)]
pub fn set_min_nanos(nanos: u64) {
    MIN_NANOS.store(nanos, Ordering::Relaxed);
}

/// Work so far, towards code that is made once.
#[derive(Default)]
pub struct WorkCount(AtomicU64);
impl WorkCount {
    /// Counts so many nanoseconds; gives true once, to the thread that goes over the work after which code pays, so many times that of a program.
    /// No other thread waits for what that one makes: it may be a thread that a forked child does not have.
    pub fn reaches(&self, nanos: u64, times: u64) -> bool {
        if nanos == 0 {
            return false; // PERF: a few elements, which never come to anything
        }
        let before = self.0.fetch_add(nanos, Ordering::Relaxed);
        let worth = min_nanos().saturating_mul(times);
        before < worth && before.saturating_add(nanos) >= worth
    }
}

/// Whether this machine can run the generated code.
pub fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}
/// A table of pointers, and a number of positions or iterations; gives how many there were.
#[cfg(target_arch = "x86_64")]
type LoopEntry = unsafe extern "sysv64" fn(*mut *mut u8, usize) -> usize;

/// The entry point that generated code calls for a function: with its result, two operands, and the number of elements.
fn many_entry() -> usize {
    #[cfg(target_arch = "x86_64")]
    return enter_many as *const () as usize;
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("there is code for x86-64 only");
}
/// # Safety
/// The function's contract, of n elements.
#[cfg(target_arch = "x86_64")]
#[allow(improper_ctypes_definitions)] // the function is only passed on
unsafe extern "sysv64" fn enter_many(d: *mut u8, a: *const u8, b: *const u8, f: CalledFn, n: usize) {
    // SAFETY: by the contract.
    unsafe { f(d, a, b, b, n) }
}

struct Recording<'a> {
    known: &'a dyn Fn(u16) -> Operand,
    slots: Vec<TableSlot>,
    /// Operands written so far, with their values.
    values: Vec<(u16, graph::VecValue)>,
    size: usize,
}
impl Recording<'_> {
    fn slot(&mut self, at: u16, element: MemoryElement) -> usize {
        let is_lane = |bytes: usize| bytes == self.size && element == MemoryElement::Lane;
        let step = element.bytes(self.size);
        let (at, from, step) = match (self.known)(at) {
            Operand::Still => (at, Kept::Vector, 0),
            Operand::One { at, bytes } if is_lane(bytes) => (at, Kept::One, 0),
            Operand::Strided { at, bytes, stride } if is_lane(bytes) => (at, Kept::Strided(stride), 0),
            Operand::Elsewhere(at) => (at, Kept::Vector, step),
            _ => (at, Kept::Vector, step),
        };
        if let Some(k) = self.slots.iter().position(|s| s.at == at && s.element == element) {
            return k;
        }
        self.slots.push(TableSlot { at, from, element, step, read: false, written: false });
        self.slots.len() - 1
    }
    fn read(&mut self, at: u16, element: MemoryElement) -> graph::VecValue {
        if let Some((_, v)) = self.values.iter().find(|v| v.0 == at) {
            return *v;
        }
        if let Operand::Const(bits) = (self.known)(at) {
            let bits = match element {
                MemoryElement::Bool if bits != 0 => u64::MAX,
                _ => bits,
            };
            return graph::with(|g| g.constant(bits));
        }
        let k = self.slot(at, element);
        self.slots[k].read = true;
        graph::with(|g| g.operand(k as u32, element))
    }
}

impl Segment {
    /// `rows`: the positions of a row, and the bytes from one row to the next, where positions have
    /// rows. `live`: whether an operand is read after the calls. None if there is no native
    /// equivalent.
    pub fn compile(
        calls: &[Replaced],
        width: LaneWidth,
        known: &dyn Fn(u16) -> Operand,
        live: &dyn Fn(u16) -> bool,
        aliased: bool,
        vector: VectorSize,
        rows: Option<(usize, &dyn Fn(u16) -> i64)>,
    ) -> Option<Segment> {
        let (g, slots) = record(calls, (width, vector), known, live)?;
        let both = |of: &dyn Fn(&TableSlot, &TableSlot) -> bool| {
            slots.iter().any(|w| w.written && slots.iter().any(|r| r.read && r.at == w.at && of(r, w)))
        };
        // Written as lanes and read as narrower elements, it would be written before it is read.
        if both(&|r, w| r.element != w.element) {
            return None;
        }
        // An operand that may be both must not be read again once it is written.
        let late = aliased || both(&|_, _| true);
        let mut frame = 0;
        let vectors: Vec<Option<u32>> = slots
            .iter()
            .map(|s| {
                frame += (s.step == 0) as u32;
                (s.step == 0).then(|| frame - 1)
            })
            .collect();
        let strided = slots.iter().any(|s| s.from.stride().is_some());
        let has_pairs = slots.iter().any(|s| s.element == MemoryElement::Pair);
        // the elements of a vector are at 32-bit displacements from its first
        let reach = |by: i32| by.checked_mul(VectorSize::Zmm.lanes(false) as i32);
        let is_near = slots.iter().filter_map(|s| s.from.stride()).all(|by| reach(by).is_some());
        if strided && (vector != VectorSize::Zmm || has_pairs || !is_near) {
            return None;
        }
        let allocation = allocate(&g, &vectors, late, strided);
        if allocation.frame > TUNING.max_spills {
            return None;
        }
        let operands: Vec<MemoryElement> = slots.iter().map(|s| s.element).collect();
        let strides: Option<Vec<i32>> =
            rows.and_then(|(_, by)| slots.iter().map(|s| i32::try_from(by(s.at)).ok()).collect());
        let is_part = |n: &usize| vector == VectorSize::Zmm && strides.is_some() && *n <= vector.lanes(g.wide);
        let masked = rows.map(|r| r.0).filter(is_part);
        if strided && masked.is_none() || has_pairs && masked.is_some() {
            return None;
        }
        let from = |s: &TableSlot| match s.from {
            Kept::Strided(by) if s.written => Kept::Result(by),
            from => from,
        };
        let kept: Vec<KeptOperand> = (0..)
            .zip(slots.iter().zip(&vectors))
            .filter_map(|(operand, (s, v))| v.map(|slot| KeptOperand { operand, slot, from: from(s) }))
            .collect();
        let emitted = Emitted {
            operands: &operands,
            still: &kept,
            rows: strides.as_deref(),
            masked,
            ..allocation.emitted(g.wide, vector)
        };
        let code = asm::assemble(&emitted, &masks::forms(&emitted));
        Some(Segment {
            code: Pages::new(&code)?,
            slots,
            lanes: vector.lanes(g.wide),
            repeats: !late,
            by_rows: strides.is_some(),
            masked,
            strided,
        })
    }
    /// Whether it reads this entry of the table.
    pub fn reads(&self, at: u16) -> bool {
        self.slots.iter().any(|s| s.at == at && s.read)
    }
    /// Whether it can do so many positions of a row.
    #[inline]
    pub fn takes(&self, n: usize) -> bool {
        !self.strided || self.masked == Some(n)
    }
    /// The operands that it goes through.
    pub fn moving(&self) -> impl Iterator<Item = u16> {
        self.slots.iter().filter(|s| s.step > 0).map(|s| s.at)
    }
    /// Computes the calls for n positions of the memory that `table` points to.
    ///
    /// # Safety
    /// Each entry that the calls name points to n elements; entries that do not move point to a
    /// vector of them, or to one. A result overlaps an operand only as the segment was compiled
    /// for. It `takes` n.
    #[inline]
    pub unsafe fn run(&self, table: &[*mut u8], n: usize) {
        let mut p = self.pointers(table);
        if self.masked == Some(n) {
            // SAFETY: by the contract; nothing but n positions is touched.
            return unsafe { self.call(&p, n, 1) };
        }
        let whole = n / self.lanes * self.lanes;
        if whole > 0 {
            // SAFETY: `whole` positions are at most n.
            unsafe { self.call(&p, whole, 1) }
        }
        if n == whole {
            return;
        }
        if self.repeats && whole > 0 {
            // PERF: the last vector again, from where it ends with the last position.
            self.slots.iter().zip(&mut p).for_each(|(s, p)| *p = p.wrapping_add((n - self.lanes) * s.step));
            // SAFETY: these are positions below n, which read nothing that was written.
            return unsafe { self.call(&p, self.lanes, 1) };
        }
        // SAFETY: as promised, after the first `whole` elements.
        unsafe { self.tail(&p, whole, n - whole) }
    }
    fn pointers(&self, table: &[*mut u8]) -> [*mut u8; MAX_OPERANDS] {
        let mut p = [std::ptr::null_mut(); MAX_OPERANDS];
        self.slots.iter().zip(&mut p).for_each(|(s, p)| *p = table[s.at as usize]);
        p
    }
    /// Whether rows of `n` positions can be done one after the other.
    pub fn takes_rows(&self, n: usize) -> bool {
        let in_vectors = n >= self.lanes && (self.repeats || n.is_multiple_of(self.lanes));
        self.by_rows && (self.masked == Some(n) || in_vectors)
    }
    /// As `run`, for `rows` rows: each operand of a row is one stride after that of the previous
    /// row.
    ///
    /// # Safety
    /// As `run`, for each of the rows; `takes_rows(n)`.
    pub unsafe fn run_rows(&self, table: &[*mut u8], n: usize, rows: usize) {
        let mut p = self.pointers(table);
        if self.masked == Some(n) {
            // SAFETY: by the contract; nothing but n positions of each row is touched.
            return unsafe { self.call(&p, n, rows) };
        }
        let whole = n / self.lanes * self.lanes;
        // SAFETY: whole vectors of positions below n; where the last one begins within another, nothing is read that was written.
        unsafe {
            self.call(&p, whole, rows);
            if n > whole {
                self.slots.iter().zip(&mut p).for_each(|(s, p)| *p = p.wrapping_add((n - self.lanes) * s.step));
                self.call(&p, self.lanes, rows);
            }
        }
    }
    /// The last positions, less than a vector of them, by way of copies.
    ///
    /// # Safety
    /// As `run`: `n` elements at `from`.
    unsafe fn tail(&self, p: &[*mut u8; MAX_OPERANDS], from: usize, n: usize) {
        const BYTES: usize = 2 * VectorSize::Zmm.bytes(); // of pairs
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Vector([u8; BYTES]);
        let mut copies = [const { MaybeUninit::<Vector>::uninit() }; MAX_OPERANDS];
        let mut q = *p;
        for ((s, copy), q) in self.slots.iter().zip(&mut copies).zip(&mut q).filter(|s| s.0.0.step > 0) {
            let copy = copy.write(Vector([0; BYTES])).0.as_mut_ptr();
            if s.read {
                // SAFETY: there are n elements at `from`; a copy holds a vector, which is more.
                unsafe { copy.copy_from_nonoverlapping(q.add(from * s.step), n * s.step) }
            }
            *q = copy;
        }
        // SAFETY: each copy is a vector of elements.
        unsafe { self.call(&q, self.lanes, 1) };
        for ((s, copy), p) in self.slots.iter().zip(&copies).zip(p).filter(|s| s.0.0.written) {
            // SAFETY: as above.
            unsafe { p.add(from * s.step).copy_from_nonoverlapping(copy.as_ptr().cast::<u8>(), n * s.step) }
        }
    }
    /// # Safety
    /// Each pointer has `n` elements, a multiple of the lanes (or the row that is masked) and not 0, in each of `rows` rows, one at least; one without `by_rows`.
    #[inline]
    unsafe fn call(&self, p: &[*mut u8; MAX_OPERANDS], n: usize, rows: usize) {
        let mut table = Table { p: *p, rows };
        // SAFETY: the code touches the elements 0..n of its operands and its own frame.
        unsafe { enter(&self.code, (&raw mut table).cast(), n) };
    }
}
/// The memory that a segment's code accesses.
#[repr(C)]
struct Table {
    p: [*mut u8; MAX_OPERANDS],
    rows: usize,
}
/// Runs code.
///
/// # Safety
/// `assemble` made it, and the memory that it accesses is valid.
#[inline]
unsafe fn enter(code: &Pages, table: *mut *mut u8, n: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the contract; the pages hold a function of this type, which keeps the registers that are to be kept, and needs AVX2, which
    // `is_available` saw.
    unsafe {
        let f: LoopEntry = std::mem::transmute(code.start());
        f(table, n)
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{:?} {table:?} {n}: there is code for x86-64 only", code.start());
}

/// The graph of the calls, the table entries of their operands, and which of these do not move.
fn record(
    calls: &[Replaced],
    (width, vector): (LaneWidth, VectorSize),
    known: &dyn Fn(u16) -> Operand,
    live: &dyn Fn(u16) -> bool,
) -> Option<(graph::VecGraph, Vec<TableSlot>)> {
    let wide = width == LaneWidth::Wide;
    graph::begin(wide, vector);
    let mut r = Recording { known, slots: vec![], values: vec![], size: if wide { 8 } else { 4 } };
    let mut elements = vec![];
    for c in calls {
        let (of, result) = c.function.elements();
        let mut ops = [0; 3];
        for j in 0..c.function.operands() {
            ops[j] = r.read(c.ops[j], of[j]);
        }
        let v = c.function.record(ops);
        elements.retain(|e: &(u16, MemoryElement)| e.0 != c.d);
        r.values.retain(|v| v.0 != c.d);
        r.values.push((c.d, v));
        elements.push((c.d, result));
    }
    for ((at, v), (_, element)) in std::mem::take(&mut r.values).into_iter().zip(elements) {
        if live(at) {
            let k = r.slot(at, element);
            r.slots[k].written = true;
            graph::with(|g| g.output(Site::At(k as u32), v, element));
        }
    }
    let g = graph::end();
    let fits = r.slots.len() <= MAX_OPERANDS && g.nodes.len() <= TUNING.max_values && !g.outputs.is_empty();
    fits.then_some((g, r.slots))
}
