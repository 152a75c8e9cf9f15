//! Selects the parts of a program that become native code, and when that is made.
//!
//! INVARIANT: the parts compute what the instructions compute, in their order. They are made at most once, all later tiles use them, and no
//! thread waits for them.
use super::{DIRECT, Ins, Op, Setup, TileProgram};
use crate::instructions::{Function, LaneWidth, VectorSize};
use crate::native::{self, Operand, Replaced, Segment, WorkCount};
use crate::tier::Tier;
use crate::tuning::Target;
use std::ops::Range;
use std::sync::OnceLock;

/// Instructions that are interpreted, or native code in their place.
pub enum CodePart {
    Calls(Range<usize>),
    Native(Segment),
}
/// The parts, once there was enough work.
pub struct Lazy {
    parts: OnceLock<Option<Vec<CodePart>>>,
    /// Nanoseconds so far of work that native code would shorten, and the nanoseconds per position.
    /// Long functions count only in part, since native code shortens them only in part.
    done: WorkCount,
    cost: f64,
    tier: Tier,
    aliased: bool,
    /// As in the tuning.
    min_row: usize,
    min_long_vector_bytes: usize,
}
impl Lazy {
    pub fn new(target: &Target, aliased: bool, cost: f64) -> Lazy {
        let t = &target.tuning.kernels;
        Lazy {
            parts: OnceLock::new(),
            done: WorkCount::default(),
            cost,
            tier: target.tier,
            aliased,
            min_row: t.min_row,
            min_long_vector_bytes: t.min_long_vector_bytes,
        }
    }
    #[inline(always)]
    pub fn get(&self) -> Option<&[CodePart]> {
        self.parts.get()?.as_deref()
    }
}

impl TileProgram {
    /// Announces the evaluation of so many positions; compiles native code where that pays.
    #[inline]
    pub fn expect(&self, positions: usize) {
        if self.code.parts.get().is_none() {
            self.count((positions as f64 * self.code.cost) as u64);
        }
    }
    fn count(&self, nanos: u64) {
        if self.code.done.reaches(nanos, 1) {
            let there = self.code.tier != Tier::Portable && native::is_available();
            let _ = self.code.parts.set(if there { self.parts() } else { None });
        }
    }
    /// Which parts are, or will be, native code: made for this text where there was too little work so far.
    pub fn code_text(&self) -> String {
        if self.code.tier == Tier::Portable || !native::is_available() {
            return "none".into();
        }
        let made;
        let parts = match self.code.parts.get() {
            Some(parts) => parts.as_deref(),
            None => {
                made = self.parts();
                made.as_deref()
            }
        };
        let Some(parts) = parts else { return "none".into() };
        let calls = |p: &CodePart| if let CodePart::Calls(r) = p { r.len() } else { 0 };
        match parts.iter().map(calls).sum() {
            0usize if parts.len() == 1 => "whole".into(),
            calls => {
                let segments = parts.iter().filter(|p| matches!(p, CodePart::Native(_))).count();
                format!("{segments} segments, {calls} calls")
            }
        }
    }
    /// The length of the vectors of that code, where it is not the longest that the machine has.
    pub fn vector_text(&self) -> &'static str {
        let is_short = self.code.tier == Tier::Avx512 && self.vector() == VectorSize::Ymm && self.code_text() != "none";
        if is_short { ", 256-bit vectors" } else { "" }
    }
    /// Whether the program is one native segment that advances only through buffers used in place.
    pub fn is_all_native(&self) -> bool {
        matches!(self.code.get(), Some([CodePart::Native(s)]) if s.moving().all(|o| o as usize >= self.n_regs))
    }
    /// The segment, if it is all there is, and can take rows of these many positions one after the other.
    #[inline]
    pub(super) fn segment_of_rows(&self, n: usize) -> Option<&Segment> {
        match self.code.get() {
            Some([CodePart::Native(s)]) if self.is_all_native() && s.takes_rows(n) => Some(s),
            _ => None,
        }
    }
    /// The distance in bytes between the same position of two rows, for an entry of the table.
    fn row_stride(&self, o: Op) -> i64 {
        let (k, outer) = (o as usize, self.dims.len() - 2);
        match k.checked_sub(self.n_regs) {
            None => 0,
            Some(k) if k < self.directs.len() => self.directs[k].strides[outer] * self.directs[k].size as i64,
            Some(k) => match self.loads.get(k - self.directs.len()) {
                Some(l) => l.strides[outer] * l.size as i64,
                None => {
                    let s = &self.stores[k - self.directs.len() - self.loads.len()];
                    s.strides[outer] * s.size as i64
                }
            },
        }
    }
    fn parts(&self) -> Option<Vec<CodePart>> {
        let known = |o: Op| self.known(o);
        let stride = |o: Op| self.row_stride(o);
        let rows = (self.by_rows && self.dims.len() > 1).then_some((self.row(), &stride as &dyn Fn(Op) -> i64));
        let mut parts: Vec<CodePart> = vec![];
        let (mut from, mut at) = (0, 0);
        while at < self.body.len() {
            let (calls, width) = self.run_from(at);
            let end = at + calls.len().max(1);
            let live = |o: Op| self.is_wanted(o, end);
            let segment = if self.pays(&calls) {
                Segment::compile(&calls, width, &known, &live, self.code.aliased, self.vector(), rows)
            } else {
                None
            };
            if let Some(s) = segment {
                if from < at {
                    parts.push(CodePart::Calls(from..at));
                }
                parts.push(CodePart::Native(s));
                from = end;
            }
            at = end;
        }
        if parts.is_empty() {
            return None;
        }
        if from < self.body.len() {
            parts.push(CodePart::Calls(from..self.body.len()));
        }
        Some(self.without_repeating(parts))
    }
    /// Removes copies of values that all positions of a row share, where native code alone reads
    /// them: it broadcasts them itself.
    fn without_repeating(&self, parts: Vec<CodePart>) -> Vec<CodePart> {
        let spares = |i: &Ins| match *i {
            Ins::Load { load, d } if (d as usize) < self.n_regs && self.is_in_code(load) => {
                parts.iter().all(|p| match p {
                    CodePart::Calls(r) => !self.body[r.clone()].iter().any(|i| i.reads(d)),
                    CodePart::Native(s) => !s.reads(d),
                })
            }
            _ => false,
        };
        let spared: Vec<usize> = (0..self.body.len()).filter(|i| spares(&self.body[*i])).collect();
        let mut left = vec![];
        for p in parts {
            let CodePart::Calls(Range { mut start, end }) = p else {
                left.push(p);
                continue;
            };
            for at in spared.iter().copied().filter(|at| (start..end).contains(at)).chain([end]).collect::<Vec<_>>() {
                if start < at {
                    left.push(CodePart::Calls(start..at));
                }
                start = at + 1;
            }
        }
        left
    }
    /// The longest run of calls from this instruction on that can be one segment.
    fn run_from(&self, at: usize) -> (Vec<Replaced>, LaneWidth) {
        let mut width = LaneWidth::Any;
        let mut calls = vec![];
        for i in &self.body[at..] {
            let (function, d, [a, b, c]) = match *i {
                Ins::Call { d, a, b, c, what: Some(function), .. } => (function, d, [a, b, c]),
                Ins::Store { store, v } => match self.stores[store as usize].in_code {
                    Some(dtype) => (Function::Copy(dtype), self.pointer_of_store(store), [v; 3]),
                    None => break,
                },
                _ => break,
            };
            let Some(w) = function.width().filter(|_| self.is_for_tier(function)) else { break };
            if width != LaneWidth::Any && w != LaneWidth::Any && w != width {
                break;
            }
            width = if width == LaneWidth::Any { w } else { width };
            calls.push(Replaced { function, d, ops: [a, b, c] });
        }
        (calls, width)
    }
    /// Whether everything after the loads of shared values can become one segment that loops over
    /// rows by itself.
    pub(super) fn becomes_rows_of_code(&self) -> bool {
        let of_rows =
            |i: &&Ins| matches!(**i, Ins::Load { load, d } if (d as usize) < self.n_regs && self.is_in_code(load));
        let first = self.body.iter().take_while(of_rows).count();
        let (calls, width) = self.run_from(first);
        let still = self.setup.iter().filter(|s| matches!(s, Setup::Splat { .. } | Setup::Call { .. })).count();
        self.code.tier != Tier::Portable
            && native::is_available()
            && !self.code.aliased
            && first + calls.len() == self.body.len()
            && self.directs.len() + first + still + self.stores.len() <= native::MAX_OPERANDS
            && (self.masked || self.row() >= self.vector().lanes(width == LaneWidth::Wide))
    }
    /// Long ones where rows have several, or are a part of one.
    pub(super) fn vector(&self) -> VectorSize {
        let row = if self.by_rows { self.row() } else { self.total };
        let of_lanes = |i: &Ins| matches!(i, Ins::Call { what: Some(Function::Widen(_)), .. });
        let lane = if self.body.iter().any(of_lanes) { 4 } else { 1 };
        let element = self.directs.iter().map(|d| d.size).max().unwrap_or(1).max(lane);
        let is_long = self.code.tier == Tier::Avx512 && row * element >= self.code.min_long_vector_bytes;
        if is_long || self.masked { VectorSize::Zmm } else { VectorSize::Ymm }
    }
    /// Vectors of 512 bits are worth more to a long function than registers are.
    fn is_for_tier(&self, f: Function) -> bool {
        self.code.tier == Tier::Avx2 || self.vector() == VectorSize::Zmm || !f.is_long()
    }
    /// A single call is a loop already, so native code gains only where that loop is not the best
    /// one:
    /// - bools are bytes;
    /// - a function has more constants than there are registers (native code reads them from
    ///   memory);
    /// - the call overwrites its operand, or an operand would be repeated first;
    /// - rows are short, so that there are many calls.
    fn pays(&self, calls: &[Replaced]) -> bool {
        let of_bools = |c: &Replaced| {
            let (ops, result) = c.function.bools();
            ops[0] || result
        };
        let of_row = |c: &Replaced| {
            let ops = &c.ops[..c.function.operands()];
            ops.iter().any(|o| matches!(self.known(*o), Operand::One { .. }))
        };
        // a function reads constants from memory, as it reads all else
        let of_constants = |c: &Replaced| {
            let ops = &c.ops[..c.function.operands()];
            self.by_rows && ops.iter().any(|o| matches!(self.known(*o), Operand::Const(_)))
        };
        let is_short = self.by_rows && self.dims.len() > 1 && self.row() < self.code.min_row;
        calls.len() > 1
            || is_short
            || self.code.aliased
            || calls.iter().any(|c| of_bools(c) || c.function.is_long() || of_row(c) || of_constants(c))
    }
    pub(super) fn known(&self, o: Op) -> Operand {
        for s in &self.setup {
            match *s {
                Setup::Fill { d, bits, .. } if d == o => return Operand::Const(bits),
                Setup::Splat { d, .. } | Setup::Call { d, .. } if d == o => return Operand::Still,
                _ => (),
            }
        }
        for i in &self.body {
            if let Ins::Load { load, d } = *i
                && d == o
                && self.is_of_row(load)
            {
                return Operand::One { at: self.pointer_of(load), bytes: self.loads[load as usize].size };
            }
            let strided = |at: Op, strides: &[i64], size: usize| {
                let stride = i32::try_from(strides[strides.len() - 1] * size as i64).unwrap_or(i32::MAX);
                Operand::Strided { at, bytes: size, stride }
            };
            match *i {
                Ins::Load { load, d } if d == o && self.is_in_code(load) => {
                    let l = &self.loads[load as usize];
                    return strided(self.pointer_of(load), &l.strides, l.size);
                }
                Ins::Store { store, .. } if self.by_rows && self.pointer_of_store(store) == o => {
                    let s = &self.stores[store as usize];
                    return strided(o, &s.strides, s.size);
                }
                _ => (),
            }
        }
        Operand::Moving
    }
    /// Whether an operand is read by an instruction from `end` on, or by others.
    fn is_wanted(&self, o: Op, end: usize) -> bool {
        debug_assert!(o & DIRECT == 0);
        o as usize >= self.n_regs || self.keep.contains(&o) || self.body[end..].iter().any(|i| i.reads(o))
    }
}
