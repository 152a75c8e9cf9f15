//! Instructions for the steps of a nest.
//!
//! Register rbx holds the frame; rax, rcx, rdx and the last three vector registers are temporaries of a step.
//!
//! INVARIANT: a step reads its operands before it writes its result, whose register may be that of an operand.
mod floats;
mod vectors;
mod wholes;

use super::allocate::{Held, NestAllocation, Place};
use super::order::{Inst, Order};
use super::{FrameLayout, OPERAND_WORDS};
use crate::instructions::VectorSize;
use crate::instructions::opcodes::{COPY, LOAD, Length, STORE, Shape, from_whole, load_one, one, store_one, to_whole};
use crate::native::encode::{Encoder, Label, R8, RAX, RBX, RCX, RDI, RDX, RSI, Rm, at, cc};
use crate::nest::{Callee, Def, Nest, NestOp, NestTrip, NestValue, RowCall, lane};
use ferrax_kernel::{Bin, DType};

/// Iterations of an innermost loop that does not look whether the run was cancelled.
const SHORT: usize = 1024;

/// Vectors in between.
const V0: u8 = 13;
const V1: u8 = 14;
const V2: u8 = 15;

/// Known facts about a value's bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RegisterKind {
    /// Whether it has 64 bits.
    Whole(bool),
    Float(bool),
}
fn kind(d: DType) -> RegisterKind {
    match lane(d) {
        DType::F32 => RegisterKind::Float(false),
        DType::F64 => RegisterKind::Float(true),
        DType::I64 | DType::U64 => RegisterKind::Whole(true),
        _ => RegisterKind::Whole(false),
    }
}

struct Emitter<'a> {
    nest: &'a Nest,
    order: &'a Order,
    allocation: &'a NestAllocation,
    layout: FrameLayout,
    e: Encoder,
    /// For each loop: the labels of an iteration's start and of the code after the loop.
    labels: Vec<(Label, Label)>,
    cancelled: Label,
    has_vectors: bool,
    /// Whether all displacements of elements have 32 bits.
    is_near: bool,
}

/// A place that is read or written whole.
#[derive(Clone, Copy, PartialEq, Debug)]
enum NestSite {
    Whole(u8),
    Float(u8),
    Frame(i32),
    Bits(u64),
    Vector(u8),
    VectorFrame(i32),
}

/// The longest vectors of a nest.
pub fn size(nest: &Nest) -> VectorSize {
    let is_long = |d: &Def| d.lanes > 1 && d.bytes() > VectorSize::Ymm.bytes();
    if nest.defs.iter().any(is_long) { VectorSize::Zmm } else { VectorSize::Ymm }
}
/// `None` if an element is further from its index than instructions can encode.
pub fn emit(nest: &Nest, order: &Order, allocation: &NestAllocation, layout: FrameLayout) -> Option<Vec<u8>> {
    let mut e = Encoder::new(size(nest), 1024);
    let labels = order.loops.iter().map(|_| (e.label(), e.label())).collect();
    let cancelled = e.label();
    let has_vectors = nest.defs.iter().any(|d| d.lanes > 1);
    let mut m = Emitter { nest, order, allocation, layout, e, labels, cancelled, has_vectors, is_near: true };
    // push rbx, rbp, r12 to r15; sub rsp, 8; mov rbx, rdi
    m.e.bytes(&[0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, 0x48, 0x83, 0xec, 8, 0x48, 0x89, 0xfb]);
    for k in 0..nest.arrays {
        if let Place::Reg(r) = allocation.places[order.array(k) as usize] {
            let from = at(RBX, 8 * (layout.arrays as i32 + k as i32));
            m.e.whole(true, &[0x8b], r, from, &[]);
        }
    }
    for (pos, inst) in order.insts.iter().enumerate() {
        m.step(pos, *inst);
    }
    for (k, v) in nest.outs.iter().enumerate() {
        let from = m.site(*v);
        m.copy(from, NestSite::Frame(8 * (layout.outs + k) as i32));
    }
    m.e.set(RAX, 1);
    let end = m.e.label();
    m.e.here(end);
    m.leave();
    m.e.here(m.cancelled);
    m.e.set(RAX, 0);
    m.leave();
    m.is_near.then(|| m.e.finish())
}

impl Emitter<'_> {
    fn leave(&mut self) {
        self.without_upper_halves();
        self.e.bytes(&[0x48, 0x83, 0xc4, 8, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3]);
    }
    fn kind(&self, v: NestValue) -> RegisterKind {
        kind(self.nest.dtype(v))
    }
    fn word(&self, v: u32) -> i32 {
        let v = v as usize;
        let word = match self.allocation.places[v] {
            Place::Spill(n) => self.layout.spills + n as usize,
            Place::Given if v < self.nest.defs.len() => match self.nest.defs[v].op {
                NestOp::Input(k) => self.layout.inputs + k as usize,
                _ => unreachable!("only inputs are given"),
            },
            Place::Given => self.layout.arrays + v - self.order.array(0) as usize,
            place => unreachable!("{place:?} is not a word"),
        };
        8 * word as i32
    }
    /// The location of a value.
    fn site(&self, v: u32) -> NestSite {
        if (v as usize) < self.nest.defs.len()
            && let Some(bits) = self.nest.known(v)
        {
            return NestSite::Bits(bits);
        }
        let lanes = self.nest.defs.get(v as usize).map_or(1, |d| d.lanes);
        match self.allocation.places[v as usize] {
            Place::Reg(r) if lanes > 1 => NestSite::Vector(r),
            _ if lanes > 1 => NestSite::VectorFrame(self.word(v)),
            Place::Reg(r) if (v as usize) < self.nest.defs.len() && self.nest.def(v).is_float() => NestSite::Float(r),
            Place::Reg(r) => NestSite::Whole(r),
            _ => NestSite::Frame(self.word(v)),
        }
    }
    /// All 64 bits, or all of a vector.
    fn copy(&mut self, from: NestSite, to: NestSite) {
        match (from, to) {
            _ if from == to => (),
            (NestSite::Whole(a), NestSite::Whole(b)) => self.e.whole(true, &[0x8b], b, Rm::Reg(a), &[]),
            (NestSite::Frame(a), NestSite::Whole(b)) => self.e.whole(true, &[0x8b], b, at(RBX, a), &[]),
            (NestSite::Bits(x), NestSite::Whole(b)) => self.e.set(b, x),
            (NestSite::Whole(a), NestSite::Frame(b)) => self.e.whole(true, &[0x89], a, at(RBX, b), &[]),
            (NestSite::Float(a), NestSite::Float(b)) => self.e.vector(&one(1, 0, 0x28), b, 0, Rm::Reg(a), None),
            (NestSite::Frame(a), NestSite::Float(b)) => self.e.vector(&load_one(true), b, 0, at(RBX, a), None),
            (NestSite::Bits(x), NestSite::Float(b)) => {
                let from = self.e.pool(true, x);
                self.e.vector(&load_one(true), b, 0, from, None);
            }
            (NestSite::Float(a), NestSite::Frame(b)) => self.e.vector(&store_one(true), a, 0, at(RBX, b), None),
            (NestSite::Float(a), NestSite::Whole(b)) => self.e.vector(&to_whole(true), a, 0, Rm::Reg(b), None),
            (NestSite::Whole(a), NestSite::Float(b)) => self.e.vector(&from_whole(true), b, 0, Rm::Reg(a), None),
            (NestSite::Frame(_) | NestSite::Bits(_), NestSite::Frame(_)) => {
                self.copy(from, NestSite::Whole(RAX));
                self.copy(NestSite::Whole(RAX), to);
            }
            (NestSite::Vector(a), NestSite::Vector(b)) => self.e.vector(&COPY, b, 0, Rm::Reg(a), None),
            (NestSite::VectorFrame(a), NestSite::Vector(b)) => self.e.vector(&LOAD, b, 0, at(RBX, a), None),
            (NestSite::Vector(a), NestSite::VectorFrame(b)) => self.e.vector(&STORE, a, 0, at(RBX, b), None),
            (NestSite::VectorFrame(_), NestSite::VectorFrame(_)) => {
                self.copy(from, NestSite::Vector(V2));
                self.copy(NestSite::Vector(V2), to);
            }
            (from, to) => unreachable!("{from:?} is not copied to {to:?}"),
        }
    }
    /// Parallel copies: one may overwrite the source of another.
    fn copies(&mut self, mut all: Vec<(NestSite, NestSite)>) {
        all.retain(|(from, to)| from != to);
        while !all.is_empty() {
            let free = all.iter().position(|(_, to)| all.iter().all(|(from, _)| from != to));
            match free {
                Some(k) => {
                    let (from, to) = all.swap_remove(k);
                    self.copy(from, to);
                }
                None => {
                    // a cycle: the value in its first location is saved first
                    let aside = match all[0].1 {
                        NestSite::Float(_) => NestSite::Float(V0),
                        NestSite::Vector(_) | NestSite::VectorFrame(_) => NestSite::Vector(V0),
                        _ => NestSite::Whole(RCX),
                    };
                    let first = all[0].1;
                    self.copy(first, aside);
                    all.iter_mut().filter(|c| c.0 == first).for_each(|c| c.0 = aside);
                }
            }
        }
    }
    /// The value in a register: its own, or this one.
    fn whole(&mut self, v: u32, other: u8) -> u8 {
        match self.site(v) {
            NestSite::Whole(r) => r,
            site => {
                self.copy(site, NestSite::Whole(other));
                other
            }
        }
    }
    /// The same of a float, or of a vector.
    fn float(&mut self, v: NestValue, other: u8) -> u8 {
        match self.site(v) {
            NestSite::Float(r) | NestSite::Vector(r) => r,
            NestSite::Bits(x) if self.nest.def(v).lanes > 1 => {
                self.constant(self.shape(v), other, x);
                other
            }
            site @ NestSite::VectorFrame(_) => {
                self.copy(site, NestSite::Vector(other));
                other
            }
            site => {
                self.copy(site, NestSite::Float(other));
                other
            }
        }
    }
    fn shape(&self, v: NestValue) -> Shape {
        match self.nest.def(v).lanes {
            1 => Shape::one(matches!(self.kind(v), RegisterKind::Float(true) | RegisterKind::Whole(true))),
            _ => {
                let def = self.nest.def(v);
                let length = if def.bytes() == self.e.size().bytes() { Length::Whole } else { Length::Half };
                Shape { wide: def.wide, length }
            }
        }
    }
    /// The value as an operand that may be memory.
    fn rm(&mut self, v: NestValue) -> Rm {
        match self.site(v) {
            NestSite::Whole(r) | NestSite::Float(r) | NestSite::Vector(r) => Rm::Reg(r),
            NestSite::Frame(word) | NestSite::VectorFrame(word) => at(RBX, word),
            NestSite::Bits(x) => {
                let def = self.nest.def(v);
                self.e.pool(def.lanes == 1 || def.wide, x)
            }
        }
    }
    /// The register of the result, or `other`.
    fn target(&self, v: NestValue, other: u8) -> u8 {
        match self.site(v) {
            NestSite::Whole(r) | NestSite::Float(r) | NestSite::Vector(r) => r,
            _ => other,
        }
    }
    /// Writes the result where it belongs.
    fn done(&mut self, v: NestValue, from: u8) {
        let to = self.site(v);
        let from = match self.kind(v) {
            _ if self.nest.def(v).lanes > 1 => NestSite::Vector(from),
            RegisterKind::Float(_) => NestSite::Float(from),
            RegisterKind::Whole(_) => NestSite::Whole(from),
        };
        self.copy(from, to);
    }

    fn step(&mut self, pos: usize, inst: Inst) {
        match inst {
            Inst::Let(v) if self.order.fused[v as usize] => (),
            Inst::Let(v) if self.nest.def(v).lanes > 1 => self.vector(pos, v),
            Inst::Let(v) => self.define(pos, v),
            Inst::Store { array, index, offset, value, dtype, stride } if self.nest.def(value).lanes > 1 => {
                self.store_vector((array, index, offset), value, dtype, stride);
            }
            Inst::Store { array, index, offset, value, dtype, .. } => {
                let to = self.element(array, index, offset, dtype);
                match kind(dtype) {
                    RegisterKind::Float(wide) => {
                        let r = self.float(value, V0);
                        self.e.vector(&store_one(wide), r, 0, to, None);
                    }
                    RegisterKind::Whole(_) => {
                        let r = self.whole(value, RDX);
                        match dtype.size() {
                            1 => self.e.whole(false, &[0x88], r, to, &[]),
                            2 => self.e.store16(r, to),
                            n => self.e.whole(n == 8, &[0x89], r, to, &[]),
                        }
                    }
                }
            }
            Inst::CallRow(c) => self.call_row(pos, c),
            Inst::Begin(l) => self.begin(l),
            Inst::ExitUnless(p, l) => {
                let out = self.labels[l].1;
                if self.order.fused[p as usize] {
                    let holds = self.compare(p);
                    return self.e.jump_if(holds ^ 1, out);
                }
                match self.site(p) {
                    NestSite::Bits(x) if x & 0xff != 0 => (),
                    NestSite::Bits(_) => self.e.jump(out),
                    _ => {
                        let r = self.whole(p, RAX);
                        self.e.whole(false, &[0x84], r, Rm::Reg(r), &[]);
                        self.e.jump_if(cc::EQUAL, out);
                    }
                }
            }
            Inst::End(l) => self.end(l),
        }
    }
    fn begin(&mut self, l: usize) {
        let info = &self.order.loops[l];
        let (top, out) = self.labels[l];
        let mut moves: Vec<(NestSite, NestSite)> =
            info.carries.iter().map(|c| (self.site(c.init), self.site(c.slot))).collect();
        match info.trip {
            NestTrip::Static(n) if info.counted_by.is_none() => {
                moves.push((NestSite::Bits(n as u64), self.site(info.counter)));
            }
            NestTrip::Dyn(n) => moves.push((self.site(n), self.site(info.counter))),
            _ => (),
        }
        self.copies(moves);
        match info.trip {
            NestTrip::Static(0) => self.e.jump(out),
            NestTrip::Dyn(_) => {
                let r = self.whole(info.counter, RAX);
                self.e.whole(true, &[0x85], r, Rm::Reg(r), &[]);
                self.e.jump_if(cc::NOT_GREATER, out);
            }
            _ => (),
        }
        self.e.here(top);
    }
    fn end(&mut self, l: usize) {
        let info = &self.order.loops[l];
        let (top, out) = self.labels[l];
        let is_short = matches!(info.trip, NestTrip::Static(n) if n <= SHORT) && !self.order.has_loops(l);
        if !is_short {
            self.e.whole(true, &[0x8b], RAX, at(RBX, 0), &[]);
            self.e.whole(false, &[0x80], 7, at(RAX, 0), &[0]);
            self.e.jump_if(cc::NOT_EQUAL, self.cancelled);
        }
        let moves = info.carries.iter().map(|c| (self.site(c.next), self.site(c.slot))).collect();
        self.copies(moves);
        match (info.trip, info.counted_by) {
            (NestTrip::Forever, _) => self.e.jump(top),
            (_, Some((slot, end))) => {
                let r = self.whole(slot, RAX);
                let wide = self.kind(slot) == RegisterKind::Whole(true);
                self.e.whole(wide, &[0x81], 7, Rm::Reg(r), &(end as i32).to_le_bytes());
                self.e.jump_if(cc::NOT_EQUAL, top);
            }
            _ => {
                let rm = match self.site(info.counter) {
                    NestSite::Whole(r) => Rm::Reg(r),
                    NestSite::Frame(word) => at(RBX, word),
                    site => unreachable!("a counter in {site:?}"),
                };
                self.e.whole(true, &[0xff], 1, rm, &[]);
                self.e.jump_if(cc::NOT_EQUAL, top);
            }
        }
        self.e.here(out);
    }
    /// A displacement of so many bytes.
    fn near(&mut self, bytes: i64) -> i32 {
        i32::try_from(bytes).unwrap_or_else(|_| {
            self.is_near = false;
            0
        })
    }
    /// An element of an array; may take rax and rcx.
    fn element(&mut self, array: u32, index: NestValue, offset: i32, d: DType) -> Rm {
        let base = self.whole(self.order.array(array), RAX);
        let size = d.size() as u8;
        let offset = self.near(offset as i64 * size as i64);
        match self.site(index) {
            NestSite::Bits(0) => at(base, offset),
            _ => {
                let index = self.whole(index, RCX);
                Rm::At { base, index: Some((index, size)), offset }
            }
        }
    }
    fn define(&mut self, pos: usize, v: NestValue) {
        let def = *self.nest.def(v);
        match (def.op, self.kind(v)) {
            (NestOp::Const(_) | NestOp::Carry | NestOp::After, _) => (),
            (NestOp::Input(k), _) => {
                let from = NestSite::Frame(8 * (self.layout.inputs as i32 + k as i32));
                let to = self.site(v);
                self.copy(from, to);
            }
            (NestOp::Load(array, offset), kind) => {
                let from = self.element(array, def.args[0], offset, def.dtype);
                match kind {
                    RegisterKind::Float(wide) => {
                        let d = self.target(v, V0);
                        self.e.vector(&load_one(wide), d, 0, from, None);
                        self.done(v, d);
                    }
                    RegisterKind::Whole(_) => {
                        let d = self.target(v, RAX);
                        self.widen(def.dtype, d, from);
                        self.done(v, d);
                    }
                }
            }
            (NestOp::Call(f, n), _) => self.call(pos, v, f, n),
            (NestOp::Select, RegisterKind::Whole(wide)) => self.select_whole(v, wide),
            (NestOp::Select, RegisterKind::Float(_)) => self.select_float(v),
            (NestOp::Bin(f), RegisterKind::Whole(_)) if f.is_comparison() => self.comparison(v, f),
            (NestOp::Bin(f), RegisterKind::Whole(wide)) => self.whole_bin(v, f, wide),
            (NestOp::Un(f), _) => self.un(v, f),
            (NestOp::Convert(from), _) => self.convert(v, from),
            (NestOp::Wrap, _) => {
                let from = self.whole(def.args[0], RAX);
                let d = self.target(v, RAX);
                self.widen(def.dtype, d, Rm::Reg(from));
                self.done(v, d);
            }
            (NestOp::Bits(_), _) => {
                let (from, to) = (self.site(def.args[0]), self.site(v));
                self.copy(from, to);
            }
            (NestOp::First, _) => self.first(v, def.args[0]),
            (NestOp::Vector(code), _) => self.instruction(v, code, self.shape(v)),
            (
                NestOp::LoadApart(..)
                | NestOp::LoadWide(..)
                | NestOp::Splat
                | NestOp::Ramp(_)
                | NestOp::Down(_)
                | NestOp::Settle
                | NestOp::Bin(_)
                | NestOp::Blend(_),
                _,
            ) => {
                unreachable!("{:?} is of vectors, or an instruction by now", def.op)
            }
        }
    }
    /// The registers that a call may change, and where they are kept.
    fn kept(&self, pos: usize) -> Vec<(NestSite, NestSite)> {
        self.allocation
            .kept
            .iter()
            .filter(|k| k.0.spans(pos))
            .map(|(_, r, held, word)| {
                let word = 8 * (self.layout.spills as i32 + *word as i32);
                match held {
                    Held::Whole => (NestSite::Whole(*r), NestSite::Frame(word)),
                    Held::Float => (NestSite::Float(*r), NestSite::Frame(word)),
                    Held::Vector => (NestSite::Vector(*r), NestSite::VectorFrame(word)),
                }
            })
            .collect()
    }
    /// Calls a block function over a row of working memory.
    fn call_row(&mut self, pos: usize, c: RowCall) {
        let kept = self.kept(pos);
        for (reg, word) in &kept {
            self.copy(*reg, *word);
        }
        let scratch = self.nest.scratch.map_or(0, |s| s.0 as usize);
        self.e.whole(true, &[0x8b], RAX, at(RBX, 8 * (self.layout.arrays + scratch) as i32), &[]);
        let second = c.from[c.operands as usize - 1];
        for (r, place) in [(RDI, c.to), (RSI, c.from[0]), (RDX, second)] {
            self.e.whole(true, &[0x8d], r, at(RAX, place), &[]);
        }
        self.without_upper_halves();
        self.e.set(RCX, c.callee.address() as u64);
        self.e.set(R8, c.elements as u64);
        self.e.set(RAX, crate::native::many_entry() as u64);
        self.e.bytes(&[0xff, 0xd0]);
        for (reg, word) in &kept {
            self.copy(*word, *reg);
        }
    }
    /// Calls a block function for one element; registers that it may change are kept in the frame.
    fn call(&mut self, pos: usize, v: NestValue, f: Callee, n: u8) {
        let kept = self.kept(pos);
        let args = self.nest.def(v).args;
        let first = self.layout.calls;
        let lanes = self.nest.def(v).lanes;
        let operand = |k: usize| 8 * (first + OPERAND_WORDS * k) as i32;
        for (k, a) in args[..n as usize].iter().enumerate() {
            let from = self.site(*a);
            let to = operand(k + 1);
            self.copy(from, if lanes > 1 { NestSite::VectorFrame(to) } else { NestSite::Frame(to) });
        }
        for (reg, word) in &kept {
            self.copy(*reg, *word);
        }
        for (r, k) in [(RDI, 0), (RSI, 1), (RDX, n.max(1) as usize)] {
            self.e.whole(true, &[0x8d], r, at(RBX, operand(k)), &[]);
        }
        self.without_upper_halves();
        self.e.set(RCX, f.address() as u64);
        self.e.set(R8, lanes as u64);
        self.e.set(RAX, crate::native::many_entry() as u64);
        self.e.bytes(&[0xff, 0xd0]);
        for (reg, word) in &kept {
            self.copy(*word, *reg);
        }
        if lanes > 1 {
            let to = self.site(v);
            return self.copy(NestSite::VectorFrame(operand(0)), to);
        }
        let (d, from) = (self.nest.dtype(v), at(RBX, operand(0)));
        match kind(d) {
            RegisterKind::Float(wide) => {
                let r = self.target(v, V0);
                self.e.vector(&load_one(wide), r, 0, from, None);
                self.done(v, r);
            }
            RegisterKind::Whole(wide) => {
                let r = self.target(v, RAX);
                match d {
                    DType::Bool => self.widen(d, r, from),
                    _ => self.e.whole(wide, &[0x8b], r, from, &[]),
                }
                self.done(v, r);
            }
        }
    }
    /// The condition under which an integer comparison holds; emits the comparison that sets the
    /// flags.
    fn compare(&mut self, p: NestValue) -> u8 {
        let def = *self.nest.def(p);
        let NestOp::Bin(f) = def.op else { unreachable!("a comparison") };
        let of = self.nest.dtype(def.args[0]);
        let wide = self.kind(def.args[0]) == RegisterKind::Whole(true);
        let a = self.whole(def.args[0], RAX);
        match self.site(def.args[1]) {
            NestSite::Bits(x) if as_immediate(wide, x).is_some() => {
                let x = as_immediate(wide, x).unwrap_or(0);
                self.e.whole(wide, &[0x81], 7, Rm::Reg(a), &x.to_le_bytes());
            }
            NestSite::Bits(_) => {
                let b = self.whole(def.args[1], RCX);
                self.e.whole(wide, &[0x3b], a, Rm::Reg(b), &[]);
            }
            _ => {
                let b = self.rm(def.args[1]);
                self.e.whole(wide, &[0x3b], a, b, &[]);
            }
        }
        let signed = of.is_signed();
        match f {
            Bin::Eq => cc::EQUAL,
            Bin::Ne => cc::NOT_EQUAL,
            Bin::Lt if signed => cc::LESS,
            Bin::Ge if signed => cc::LESS ^ 1,
            Bin::Le if signed => cc::NOT_GREATER,
            Bin::Gt if signed => cc::NOT_GREATER ^ 1,
            Bin::Lt => cc::BELOW,
            Bin::Ge => cc::BELOW ^ 1,
            Bin::Le => cc::NOT_ABOVE,
            _ => cc::NOT_ABOVE ^ 1,
        }
    }
}
/// A constant that fits behind an instruction.
fn as_immediate(wide: bool, x: u64) -> Option<i32> {
    if wide { i32::try_from(x as i64).ok() } else { Some(x as u32 as i32) }
}
