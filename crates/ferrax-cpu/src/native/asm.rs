//! The encoder: instructions over registers of 256 bits (VEX) or 512 (EVEX), as bytes.
//!
//! A function takes a table of pointers (rdi) and a count of positions (rsi), and goes through its body once for each vector of positions:
//!
//! ```text
//!     prologue: base registers <- table; what does not move -> stack; constants -> registers that are left
//!     loop:     body; rdx += positions of a vector; below rsi? again
//!     epilogue: rax <- rdx; registers back; return           pool: constants, a whole vector each
//! ```
//!
//! Where operands are pairs, r13 is twice rdx.
//!
//! INVARIANT: memory is accessed through [`Site`]s alone: a vector of the pool, of the stack frame or behind the table, the elements of an
//! operand at the positions rdx .. rdx + lanes; and, before and behind a row's body, as elements of a strided row.

use super::encode::{
    Encoder, Label, MASK, RAX, RBP, RBX, RCX, RDI, RDX, ROW_ALONE, ROW_MASK, RSI, RSP, Rm, ZEROING, at, cc,
};
use crate::instructions::VectorSize;
use crate::instructions::opcodes::{
    self, COPY, Coded, LOAD, MemoryElement, Opcode, STORE, Shape, Site, VecInst, plain, quarter,
};

/// rsp, rbp and r13 are no bases: their encodings mean something else.
const BASES: [u8; 9] = [RCX, 8, 9, 10, 11, RBX, 12, 14, 15];
/// Twice the position, where operands are pairs.
const TWICE: u8 = 13;
const SAVED: [u8; 5] = [RBX, 12, 14, 15, TWICE];
/// Pointers of a table.
pub const TABLE: usize = 64;
/// The register for strided results: no value is kept in it where a function has such results.
pub const LAST: u8 = 31;
/// Registers through which strided operands are loaded before a row's body: they keep no values.
pub const GATHERING: u8 = 2;

/// An operand that does not move.
#[derive(Clone, Copy, Debug)]
pub struct KeptOperand {
    pub operand: u32,
    /// The vector of the frame that keeps it.
    pub slot: u32,
    pub from: Kept,
}
/// The value in memory of an operand that does not move along a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// A vector.
    Vector,
    /// One element, to be repeated.
    One,
    /// The elements of a masked row, so many bytes apart.
    Strided(i32),
    /// Such a row that is only written.
    Result(i32),
}
impl Kept {
    /// Whether it is read again in each row.
    fn is_of_row(self) -> bool {
        matches!(self, Kept::One | Kept::Strided(_))
    }
    /// The bytes between elements that do not lie side by side.
    pub fn stride(self) -> Option<i32> {
        match self {
            Kept::Strided(by) | Kept::Result(by) => Some(by),
            Kept::Vector | Kept::One => None,
        }
    }
}
/// How an instruction of the body treats masks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MaskForm {
    /// By vectors.
    None,
    /// A comparison, into this k register, and into a vector if one is needed.
    Compared {
        k: u8,
        is_vector: bool,
    },
    /// A logical operation of two masks, or the complement of one.
    Combined {
        k: u8,
        a: u8,
        b: u8,
        is_vector: bool,
    },
    Negated {
        k: u8,
        a: u8,
        is_vector: bool,
    },
    /// A choice by this one.
    Chosen {
        by: u8,
    },
    /// The elements where it holds, or where it does not, and zeros: of `a`, or of `b`.
    Kept {
        by: u8,
        of_a: bool,
        negated: bool,
    },
}

/// The parts of a function.
pub struct Emitted<'a> {
    /// Whether elements are 8 bytes wide.
    pub wide: bool,
    pub vector: VectorSize,
    pub operands: &'a [MemoryElement],
    pub still: &'a [KeptOperand],
    pub body: &'a [VecInst],
    pub frame: u32,
    /// Elements, each repeated in a vector of its own.
    pub pool: &'a [u64],
    /// Registers that hold a constant throughout.
    pub constants: &'a [(u8, u32)],
    /// Set if the function loops over several rows of positions, whose number follows the pointers:
    /// the bytes from one row to the next, for each operand.
    pub rows: Option<&'a [i32]>,
    /// Positions of a row that is shorter than a long vector: nothing behind them is read or written.
    pub masked: Option<usize>,
}

impl<'a> Emitted<'a> {
    fn has_pairs(&self) -> bool {
        self.operands.contains(&MemoryElement::Pair)
    }
    /// Without operands, constants or a frame. Callers set the rest.
    pub fn new(wide: bool, vector: VectorSize, body: &'a [VecInst]) -> Emitted<'a> {
        Emitted {
            wide,
            vector,
            operands: &[],
            still: &[],
            body,
            frame: 0,
            pool: &[],
            constants: &[],
            rows: None,
            masked: None,
        }
    }
}

struct Asm<'a> {
    f: &'a Emitted<'a>,
    e: Encoder,
}

/// The bytes of a function, its pool behind them. `masks`, of long vectors, say how each instruction treats them.
pub fn assemble(f: &Emitted, masks: &[MaskForm]) -> Vec<u8> {
    let capacity = 256 + 12 * f.body.len() + f.vector.bytes() * f.pool.len();
    let mut a = Asm { f, e: Encoder::new(f.vector, capacity) };
    a.prologue();
    let row = a.e.mark();
    a.begin();
    let start = a.e.mark();
    match f.vector {
        VectorSize::Ymm => f.body.iter().for_each(|i| a.inst(i)),
        VectorSize::Zmm => f.body.iter().zip(masks).for_each(|(i, form)| a.long_inst(i, *form)),
    }
    let positions = f.vector.lanes(f.wide) as u8;
    a.e.whole(true, &[0x83], 0, Rm::Reg(RDX), &[positions]); // add rdx, positions
    if f.has_pairs() {
        a.e.whole(true, &[0x8d], TWICE, Rm::At { base: RDX, index: Some((RDX, 1)), offset: 0 }, &[]); // lea r13, [rdx + rdx]
    }
    a.e.whole(true, &[0x39], RSI, Rm::Reg(RDX), &[]); // cmp rdx, rsi
    a.e.jump_if(cc::BELOW, start);
    if let Some(strides) = f.rows {
        a.next_row(strides, row);
    }
    a.epilogue();
    a.e.finish()
}

impl Asm<'_> {
    fn prologue(&mut self) {
        self.e.push(RBP);
        self.e.whole(true, &[0x8b], RBP, Rm::Reg(RSP), &[]); // mov rbp, rsp
        self.saved().iter().for_each(|r| self.e.push(*r));
        let size = self.f.vector.bytes() as u32;
        self.e.whole(true, &[0x81], 5, Rm::Reg(RSP), &(size * self.f.frame).to_le_bytes()); // sub rsp, frame
        self.e.whole(true, &[0x83], 4, Rm::Reg(RSP), &[(size as u8).wrapping_neg()]); // and rsp, -vector
        for k in self.f.still.iter().filter(|k| k.from == Kept::Vector) {
            self.keep(k);
        }
        for (k, base) in (0..self.f.operands.len()).zip(BASES) {
            pointer(&mut self.e, base, k as u32);
        }
        for (d, c) in self.f.constants {
            self.inst(&VecInst::Load { d: *d, from: Site::Pool(*c) });
        }
        if let Some(n) = self.f.masked {
            self.e.bit_mask(ROW_MASK, (1 << n) - 1, RAX); // a bit for each position
        }
    }
    /// An operand that does not move, to its vector of the frame, through a register that the body takes anew.
    fn keep(&mut self, k: &KeptOperand) {
        if let Kept::Strided(by) = k.from {
            self.gather(k.operand, by);
            return self.inst(&VecInst::Store { from: 0, to: Site::Stack(k.slot) });
        }
        pointer(&mut self.e, RAX, k.operand);
        let row = match self.f.operands[k.operand as usize] {
            MemoryElement::Lane if k.from == Kept::One => opcodes::broadcast(self.f.wide),
            MemoryElement::Lane => LOAD,
            _ => opcodes::widen_bytes(self.f.wide),
        };
        self.e.vector(&row, 0, 0, at(RAX, 0), None);
        self.inst(&VecInst::Store { from: 0, to: Site::Stack(k.slot) });
    }
    /// Strided elements of a row, to the first register by way of the second.
    fn gather(&mut self, k: u32, by: i32) {
        let n = self.f.masked.expect("strided rows are masked");
        self.e.gather(Shape::vector(self.f.wide), [0, 1], n, |e, j| at(base(e, k), j as i32 * by));
    }
    /// The elements of a vector to strided places, by way of the last register.
    fn scatter(&mut self, from: u8, k: u32, by: i32) {
        let n = self.f.masked.expect("strided rows are masked");
        self.e.scatter(Shape::vector(self.f.wide), [from, LAST], n, |e, j| at(base(e, k), j as i32 * by));
    }
    /// Emits the start of a row.
    fn begin(&mut self) {
        for k in self.f.still.iter().filter(|k| k.from.is_of_row()) {
            self.keep(k);
        }
        self.e.whole(false, &[0x33], RDX, Rm::Reg(RDX), &[]); // xor edx, edx
        if self.f.has_pairs() {
            self.e.whole(false, &[0x33], TWICE, Rm::Reg(TWICE), &[]);
        }
    }
    fn next_row(&mut self, strides: &[i32], row: Label) {
        for (k, by) in (0u32..).zip(strides).filter(|s| *s.1 != 0) {
            // moves the operand on: its register, or its entry of the table
            let kept = self.f.still.iter().any(|s| s.operand == k && s.from.stride().is_none());
            let place = match BASES.get(k as usize) {
                Some(r) if !kept => Rm::Reg(*r),
                _ => at(RDI, 8 * k as i32),
            };
            self.e.whole(true, &[0x81], 0, place, &by.to_le_bytes()); // add
        }
        self.e.whole(true, &[0xff], 1, at(RDI, 8 * TABLE as i32), &[]); // dec
        self.e.jump_if(cc::NOT_EQUAL, row);
    }
    fn epilogue(&mut self) {
        self.e.whole(true, &[0x8b], RAX, Rm::Reg(RDX), &[]); // mov rax, rdx
        let saved = self.saved();
        self.e.whole(true, &[0x8d], RSP, at(RBP, -8 * saved.len() as i32), &[]); // lea rsp, [rbp - saved]
        saved.iter().rev().for_each(|r| self.e.pop(*r));
        self.e.pop(RBP);
        self.e.without_upper_halves();
        self.e.bytes(&[0xc3]);
    }
    fn saved(&self) -> &'static [u8] {
        if self.f.has_pairs() { &SAVED } else { &SAVED[..SAVED.len() - 1] }
    }
    /// Where an instruction finds a site.
    fn rm(&mut self, site: Site) -> Rm {
        let size = self.f.vector.bytes() as i32;
        let lane = if self.f.wide { 8 } else { 4 };
        match site {
            Site::Reg(r) => Rm::Reg(r),
            Site::Pool(c) => self.e.pool(self.f.wide, self.f.pool[c as usize]),
            Site::Stack(slot) => at(RSP, size * slot as i32),
            Site::At(k) => {
                let index = Some((RDX, self.f.operands[k as usize].bytes(lane) as u8));
                match base(&mut self.e, k) {
                    base if self.f.masked.is_some() => Rm::Row { base, index },
                    base => Rm::At { base, index, offset: 0 },
                }
            }
            Site::PairAt(k, second) => {
                let offset = size * second as i32;
                Rm::At { base: base(&mut self.e, k), index: Some((TWICE, lane as u8)), offset }
            }
        }
    }
    /// One instruction.
    fn vector(&mut self, row: &Coded, r: u8, v: u8, site: Site, imm: Option<u8>) {
        self.masked(row, r, v, site, imm, 0);
    }
    fn masked(&mut self, row: &Coded, r: u8, v: u8, site: Site, imm: Option<u8>, mask: u8) {
        let rm = self.rm(site);
        self.e.masked(row, r, v, rm, imm, mask);
    }
    fn inst(&mut self, i: &VecInst) {
        let long = self.f.vector == VectorSize::Zmm;
        let shape = Shape::vector(self.f.wide);
        match *i {
            VecInst::Op { code: Opcode::Odds, d, a, b, .. } if long => {
                self.e.bit_mask(MASK, 0xaaaa, RAX);
                let b = self.rm(b);
                self.e.chosen(shape, d, a, b, MASK);
            }
            VecInst::Op { code, d, a, b, m } => {
                let b = self.rm(b);
                self.e.op(code, shape, d, a, b, m);
            }
            VecInst::Fused { code, grows, d, a, b } => {
                let row = code.row(shape);
                self.vector(&Coded { op: row.op + if grows { 0x10 } else { 0 }, ..row }, d, a, b, None)
            }
            VecInst::Load { d, from: Site::Reg(a) } => self.vector(&COPY, d, 0, Site::Reg(a), None),
            VecInst::Load { d, from } => self.vector(&self.moved(LOAD), d, 0, from, None),
            VecInst::LoadNarrow { d, from } => {
                let op = match self.element(from) {
                    MemoryElement::Bool if self.f.wide => 0x22,
                    MemoryElement::Bool | MemoryElement::I8 | MemoryElement::Lane | MemoryElement::Pair => 0x21,
                    MemoryElement::U8 => 0x31,
                    MemoryElement::I16 | MemoryElement::F16 => 0x23,
                    MemoryElement::U16 | MemoryElement::Bf16 => 0x33,
                };
                self.vector(&plain(2, 1, op), d, 0, from, None)
            }
            VecInst::Store { from, to: Site::At(k) } if let Some(by) = self.stride(k) => self.scatter(from, k, by),
            VecInst::Store { from, to } => self.masked(&self.moved(STORE), from, 0, to, None, ROW_ALONE),
            VecInst::StoreNarrow { from, to } => {
                let narrow = match (self.element(to).bytes(4), self.f.wide) {
                    (2, _) if long => plain(2, 2, 0x33),
                    (_, wide) if long => plain(2, 2, 0x31 + wide as u8),
                    (2, _) => quarter(1, 0, 0x11),
                    (_, true) => quarter(1, 1, 0x7e),
                    (_, false) => quarter(1, 1, 0xd6),
                };
                self.masked(&narrow, from, 0, to, None, ROW_ALONE)
            }
            VecInst::StoreHalf { from, to } => self.masked(&plain(3, 1, 0x1d), from, 0, to, Some(0), ROW_ALONE),
        }
    }
    /// The elements of the operand at a site.
    fn element(&self, at: Site) -> MemoryElement {
        if let Site::At(k) = at { self.f.operands[k as usize] } else { MemoryElement::Lane }
    }
    /// The bytes between the elements of an operand, where they do not lie side by side.
    fn stride(&self, k: u32) -> Option<i32> {
        self.f.still.iter().find(|s| s.operand == k)?.from.stride()
    }
    /// A vector from or to memory: only where it is masked does the size of its elements matter.
    fn moved(&self, row: Coded) -> Coded {
        let w = self.f.masked.is_some() && self.f.wide;
        Coded { prefix: w as u8, ..row.wide(w) }
    }
    fn long_inst(&mut self, i: &VecInst, form: MaskForm) {
        match *i {
            VecInst::Op { code, d, a, b, .. } if form != MaskForm::None => self.by_masks(code, [d, a], b, form),
            _ => self.inst(i),
        }
    }
    /// An operation on masks of bits, or by them.
    fn by_masks(&mut self, code: Opcode, [d, a]: [u8; 2], b: Site, form: MaskForm) {
        let wide = self.f.wide;
        let (k, is_vector) = match form {
            MaskForm::None => unreachable!("by vectors"),
            MaskForm::Compared { k, is_vector } => {
                let row = code.row(Shape::vector(wide));
                self.masked(&row, k, a, b, row.imm, ROW_ALONE);
                (k, is_vector)
            }
            MaskForm::Combined { k, a, b, is_vector } => {
                let op = match code {
                    Opcode::And => 0x41,
                    Opcode::AndNot => 0x42,
                    Opcode::Or => 0x45,
                    _ => 0x47,
                };
                self.e.of_bits(op, k, Some(a), b);
                (k, is_vector)
            }
            MaskForm::Negated { k, a, is_vector } => {
                self.e.of_bits(0x44, k, None, a);
                (k, is_vector)
            }
            MaskForm::Chosen { by } => {
                let b = self.rm(b);
                return self.e.chosen(Shape::vector(wide), d, a, b, by);
            }
            MaskForm::Kept { by, of_a, negated } => {
                if negated {
                    self.e.of_bits(0x44, MASK, None, by);
                }
                let by = if negated { MASK } else { by };
                let of = if of_a { Site::Reg(a) } else { b };
                let row = Coded { prefix: wide as u8, ..LOAD.wide(wide) };
                return self.masked(&row, d, 0, of, None, ZEROING | by);
            }
        };
        if is_vector {
            self.e.mask_to_vector(Shape::vector(wide), d, k);
        }
    }
}
/// Entry k of the table.
fn pointer(e: &mut Encoder, r: u8, k: u32) {
    e.whole(true, &[0x8b], r, at(RDI, 8 * k as i32), &[]);
}
/// The register that holds operand k's pointer.
fn base(e: &mut Encoder, k: u32) -> u8 {
    match BASES.get(k as usize) {
        Some(r) => *r,
        None => {
            pointer(e, RAX, k);
            RAX
        }
    }
}
