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
//! INVARIANT: memory is accessed only through [`Site`]s: a vector of the pool, of the stack frame or behind the table, the elements of an
//! operand at the positions rdx .. rdx + lanes, or an element of a strided row.

use super::opcodes::{Coded, Coding, MemoryElement, Opcode, Site, VecInst, plain, quarter};

/// General registers, by number. rsp, rbp and r13 are no bases: their encodings mean something else.
const RAX: u8 = 0;
const BASES: [u8; 9] = [1, 8, 9, 10, 11, 3, 12, 14, 15];
/// Twice the position, where operands are pairs.
const TWICE: u8 = 13;
const SAVED: [u8; 5] = [3, 12, 14, 15, TWICE];
/// Pointers of a table that has vectors behind it.
pub const TABLE: usize = 64;

/// How long the registers are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum VectorSize {
    /// 256 bits, sixteen of them.
    #[default]
    Ymm,
    /// 512 bits, thirty-two registers; and mask registers, which here only pass the outcome of a
    /// comparison to a blend.
    Zmm,
}
impl VectorSize {
    pub const fn bytes(self) -> usize {
        match self {
            VectorSize::Ymm => 32,
            VectorSize::Zmm => 64,
        }
    }
    pub fn registers(self) -> u8 {
        match self {
            VectorSize::Ymm => 16,
            VectorSize::Zmm => 32,
        }
    }
    pub fn lanes(self, wide: bool) -> usize {
        self.bytes() / if wide { 8 } else { 4 }
    }
}
/// The mask of bits that is used at once: others may stay (native/masks.rs).
const MASK: u8 = 1;
/// The register for strided results: no value is kept in it where a function has such results.
pub const LAST: u8 = 31;
/// Those that strided operands go through before a row's body: nothing stays in them.
pub const GATHERING: u8 = 2;
/// The mask of the elements of a row that is shorter than a vector.
pub const ROW_MASK: u8 = 7;
/// Beside the number of a mask: elements where it does not hold become zeros.
const ZEROING: u8 = 0x80;
/// In place of a mask: the row's mask applies only where memory of the row is accessed, and other
/// lanes are not zeroed (stores, and instructions that compute a mask).
const ROW_ALONE: u8 = 0x40;

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
    /// Registers that hold vectors behind the table while the loop runs.
    pub states: &'a [(u8, u32)],
    /// Registers that hold a constant throughout.
    pub constants: &'a [(u8, u32)],
    /// How many vectors of positions it goes through at once.
    pub parts: usize,
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
    /// Without operands, constants or a frame, one vector of positions at a time. Callers set the
    /// rest.
    pub fn new(wide: bool, vector: VectorSize, body: &'a [VecInst]) -> Emitted<'a> {
        Emitted {
            wide,
            vector,
            operands: &[],
            still: &[],
            body,
            frame: 0,
            pool: &[],
            states: &[],
            constants: &[],
            parts: 1,
            rows: None,
            masked: None,
        }
    }
}

struct Asm<'a> {
    f: &'a Emitted<'a>,
    bytes: Vec<u8>,
    /// For each constant: where its displacement is encoded, the end of that instruction, and the
    /// constant.
    fixups: Vec<(usize, usize, u32)>,
}

/// The bytes of a function, its pool behind them. `masks`, of long vectors, say how each instruction treats them.
pub fn assemble(f: &Emitted, masks: &[MaskForm]) -> Vec<u8> {
    let mut a =
        Asm { f, bytes: Vec::with_capacity(256 + 12 * f.body.len() + f.vector.bytes() * f.pool.len()), fixups: vec![] };
    a.prologue();
    let row = a.bytes.len();
    a.begin();
    let start = a.bytes.len();
    match f.vector {
        VectorSize::Ymm => f.body.iter().for_each(|i| a.inst(i)),
        VectorSize::Zmm => f.body.iter().zip(masks).for_each(|(i, form)| a.long_inst(i, *form)),
    }
    let positions = (f.parts * f.vector.lanes(f.wide)) as u8;
    a.bytes.extend([0x48, 0x83, 0xc2, positions]); // add rdx, positions
    if f.has_pairs() {
        a.bytes.extend([0x4c, 0x8d, 0x2c, 0x12]); // lea r13, [rdx + rdx]
    }
    a.bytes.extend([0x48, 0x39, 0xf2]); // cmp rdx, rsi
    let end = a.bytes.len() + 6;
    a.bytes.extend([0x0f, 0x82]); // jb
    a.bytes.extend((start as i32 - end as i32).to_le_bytes());
    if let Some(strides) = f.rows {
        a.next_row(strides, row);
    }
    a.epilogue();
    a.pool();
    a.bytes
}

impl Asm<'_> {
    fn prologue(&mut self) {
        self.bytes.push(0x55); // push rbp
        self.bytes.extend([0x48, 0x89, 0xe5]); // mov rbp, rsp
        self.saved().iter().for_each(|r| self.push(*r));
        self.bytes.extend([0x48, 0x81, 0xec]); // sub rsp, frame
        self.bytes.extend((self.size() * self.f.frame).to_le_bytes());
        self.bytes.extend([0x48, 0x83, 0xe4, (self.size() as u8).wrapping_neg()]); // and rsp, -vector
        for k in self.f.still.iter().filter(|k| k.from == Kept::Vector) {
            self.keep(k);
        }
        for (k, base) in (0..self.f.operands.len()).zip(BASES) {
            self.pointer(base, k as u32);
        }
        for (d, n) in self.f.states {
            self.inst(&VecInst::Load { d: *d, from: Site::State(*n) });
        }
        for (d, c) in self.f.constants {
            self.inst(&VecInst::Load { d: *d, from: Site::Pool(*c) });
        }
        if let Some(n) = self.f.masked {
            self.bytes.push(0xb8); // mov eax, a bit for each position
            self.bytes.extend(((1u32 << n) - 1).to_le_bytes());
            self.bytes.extend([0xc5, 0xf8, 0x92, 0xc0 | ROW_MASK << 3]); // kmovw mask, eax
        }
    }
    /// An operand that does not move, to its vector of the frame, through a register that the body takes anew.
    fn keep(&mut self, k: &KeptOperand) {
        if let Kept::Strided(by) = k.from {
            self.gather(k.operand, by);
            return self.inst(&VecInst::Store { from: 0, to: Site::Stack(k.slot) });
        }
        let is_one = k.from == Kept::One;
        self.pointer(RAX, k.operand);
        // [rax] without an index
        let (map, op) = match (self.f.operands[k.operand as usize], self.f.wide) {
            (MemoryElement::Lane, wide) if is_one => (2, 0x18 + wide as u8),
            (MemoryElement::Lane, _) => (1, 0x10),
            (_, false) => (2, 0x21),
            (_, true) => (2, 0x22),
        };
        let w = is_one && self.f.wide && self.f.vector == VectorSize::Zmm;
        self.prefix(&Coded { w, ..plain(map, (map == 2) as u8, op) }, [0; 4], 0);
        self.bytes.extend([op, 0x00]);
        self.inst(&VecInst::Store { from: 0, to: Site::Stack(k.slot) });
    }
    /// Strided elements of a row, to the first register by way of the second.
    fn gather(&mut self, k: u32, by: i32) {
        let n = self.f.masked.expect("strided rows are masked");
        let of_quarter = if self.f.wide { 2 } else { 4 };
        for first in (0..n).step_by(of_quarter) {
            let d = (first > 0) as u8;
            for j in 0..of_quarter.min(n - first) {
                let at = Site::Element(k, ((first + j) as i32 * by) as u32);
                match (self.f.wide, j) {
                    (true, 0) => self.vector(&Coded { w: true, ..quarter(1, 3, 0x10) }, d, 0, at, None),
                    (true, _) => self.vector(&Coded { w: true, ..quarter(1, 1, 0x16) }, d, d, at, None),
                    (false, 0) => self.vector(&quarter(1, 2, 0x10), d, 0, at, None),
                    (false, _) => self.vector(&quarter(3, 1, 0x21), d, d, at, Some((j as u8) << 4)),
                }
            }
            if first > 0 {
                self.vector(&plain(3, 1, 0x18), 0, 0, Site::Reg(d), Some((first / of_quarter) as u8));
            }
        }
    }
    /// The elements of a vector to strided places, by way of the last register.
    fn scatter(&mut self, from: u8, k: u32, by: i32) {
        let n = self.f.masked.expect("strided rows are masked");
        let of_quarter = if self.f.wide { 2 } else { 4 };
        for j in 0..n {
            let at = Site::Element(k, (j as i32 * by) as u32);
            if j % of_quarter == 0 {
                self.vector(&plain(3, 1, 0x19), from, 0, Site::Reg(LAST), Some((j / of_quarter) as u8));
            }
            match (self.f.wide, (j % of_quarter) as u8) {
                (true, 0) => self.vector(&Coded { w: true, ..quarter(1, 3, 0x11) }, LAST, 0, at, None),
                (true, _) => self.vector(&Coded { w: true, ..quarter(1, 1, 0x17) }, LAST, 0, at, None),
                (false, element) => self.vector(&quarter(3, 1, 0x17), LAST, 0, at, Some(element)),
            }
        }
    }
    /// Emits the start of a row.
    fn begin(&mut self) {
        for k in self.f.still.iter().filter(|k| k.from.is_of_row()) {
            self.keep(k);
        }
        self.bytes.extend([0x31, 0xd2]); // xor edx, edx
        if self.f.has_pairs() {
            self.bytes.extend([0x45, 0x31, 0xed]); // xor r13d, r13d
        }
    }
    fn next_row(&mut self, strides: &[i32], row: usize) {
        for (k, by) in (0u32..).zip(strides).filter(|s| *s.1 != 0) {
            if self.f.still.iter().any(|s| s.operand == k && s.from.stride().is_none()) {
                self.add_to_entry(k, *by);
            } else {
                self.go_on(k, *by);
            }
        }
        self.bytes.extend([0x48, 0xff, 0x8f]); // dec qword [rdi + 8 TABLE]
        self.bytes.extend((8 * TABLE as u32).to_le_bytes());
        self.bytes.extend([0x0f, 0x85]); // jnz
        let end = self.bytes.len() + 4;
        self.bytes.extend((row as i32 - end as i32).to_le_bytes());
    }
    fn epilogue(&mut self) {
        for (from, n) in self.f.states {
            self.inst(&VecInst::Store { from: *from, to: Site::State(*n) });
        }
        self.bytes.extend([0x48, 0x89, 0xd0]); // mov rax, rdx
        let saved = self.saved();
        self.bytes.extend([0x48, 0x8d, 0x65, (-8 * saved.len() as i8) as u8]); // lea rsp, [rbp - saved]
        saved.iter().rev().for_each(|r| self.pop(*r));
        self.bytes.push(0x5d); // pop rbp
        self.bytes.extend([0xc5, 0xf8, 0x77]); // vzeroupper
        self.bytes.push(0xc3);
    }
    fn push(&mut self, r: u8) {
        if r >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x50 + (r & 7));
    }
    fn pop(&mut self, r: u8) {
        if r >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x58 + (r & 7));
    }
    fn saved(&self) -> &'static [u8] {
        if self.f.has_pairs() { &SAVED } else { &SAVED[..SAVED.len() - 1] }
    }
    /// Entry k of the table.
    fn pointer(&mut self, r: u8, k: u32) {
        self.bytes.extend([0x48 | (r >> 3) << 2, 0x8b, 0x87 | (r & 7) << 3]);
        self.bytes.extend((8 * k).to_le_bytes());
    }
    /// Moves operand k on.
    fn go_on(&mut self, k: u32, by: i32) {
        let Some(r) = BASES.get(k as usize) else { return self.add_to_entry(k, by) };
        self.bytes.extend([0x48 | r >> 3, 0x81, 0xc0 | (r & 7)]); // add base, by
        self.bytes.extend(by.to_le_bytes());
    }
    fn add_to_entry(&mut self, k: u32, by: i32) {
        self.bytes.extend([0x48, 0x81, 0x87]); // add qword [rdi + 8 k], by
        self.bytes.extend((8 * k).to_le_bytes());
        self.bytes.extend(by.to_le_bytes());
    }
    /// Bytes of a vector.
    fn size(&self) -> u32 {
        self.f.vector.bytes() as u32
    }
    /// The prefix. `r`, `x`, `b` extend the register, the index and the base; `mask` names the mask of bits, if there is one.
    fn prefix(&mut self, row: &Coded, [r, v, x, b]: [u8; 4], mask: u8) {
        let high = |n: u8, bit: u8, at: u8| ((n >> bit & 1) ^ 1) << at;
        let first = high(r, 3, 7) | high(x, 3, 6) | high(b, 3, 5) | row.map;
        let second = (row.w as u8) << 7 | (!v & 15) << 3 | row.prefix;
        match self.f.vector {
            VectorSize::Ymm => self.bytes.extend([0xc4, first, second | (!row.short as u8) << 2]),
            VectorSize::Zmm => {
                let length = if row.short { 0 } else { 2 << 5 };
                self.bytes.extend([0x62, first | high(r, 4, 4), second | 4, length | high(v, 4, 3) | mask]);
            }
        }
    }
    /// One instruction; `tail` are the bytes of its immediate.
    fn vector(&mut self, row: &Coded, r: u8, v: u8, rm: Site, tail: Option<u8>) {
        self.masked(row, r, v, rm, tail, 0);
    }
    fn masked(&mut self, row: &Coded, r: u8, v: u8, rm: Site, tail: Option<u8>, mask: u8) {
        let mask = match rm {
            Site::At(_) if self.f.masked.is_some() => match mask {
                0 => ZEROING | ROW_MASK,
                ROW_ALONE => ROW_MASK,
                by => {
                    self.of_bits(0x41, MASK, Some(by & !ZEROING), ROW_MASK);
                    by & ZEROING | MASK
                }
            },
            _ if mask == ROW_ALONE => 0,
            _ => mask,
        };
        let (x, b) = match rm {
            Site::Reg(m) => (m >> 1, m), // the index's bit is a register's highest
            Site::At(k) | Site::Element(k, _) => (0, self.base(k)),
            Site::PairAt(k, _) => (TWICE, self.base(k)),
            _ => (0, 0),
        };
        self.prefix(row, [r, v, x, b], mask);
        self.bytes.push(row.op);
        let reg = (r & 7) << 3;
        match rm {
            Site::Reg(x) => self.bytes.push(0xc0 | reg | (x & 7)),
            Site::Pool(c) => {
                self.bytes.push(reg | 5);
                let here = self.bytes.len();
                self.fixups.push((here, here + 4 + tail.is_some() as usize, c));
                self.bytes.extend([0; 4]);
            }
            Site::Stack(slot) => {
                self.bytes.extend([0x80 | reg | 4, 0x24]); // [rsp + vector * slot]
                self.bytes.extend((self.size() * slot).to_le_bytes());
            }
            Site::At(k) => {
                let scale = self.f.operands[k as usize].bytes(if self.f.wide { 8 } else { 4 }).ilog2() as u8;
                self.bytes.extend([reg | 4, scale << 6 | 2 << 3 | (b & 7)]); // [base + rdx * scale]
            }
            Site::PairAt(_, second) => {
                let scale = if self.f.wide { 3 } else { 2 };
                self.bytes.extend([0x80 | reg | 4, scale << 6 | (TWICE & 7) << 3 | (b & 7)]); // [base + r13 * scale + at]
                self.bytes.extend((self.size() * second as u32).to_le_bytes());
            }
            Site::State(n) => {
                self.bytes.push(0x80 | reg | 7); // [rdi + table + vector * n]
                self.bytes.extend((8 * TABLE as u32 + self.size() * n).to_le_bytes());
            }
            Site::Element(_, at) => {
                self.bytes.extend([0x80 | reg | 4, 4 << 3 | (b & 7)]); // [base + at]
                self.bytes.extend(at.to_le_bytes());
            }
        }
        self.bytes.extend(tail);
    }
    /// The register that holds operand k's pointer.
    fn base(&mut self, k: u32) -> u8 {
        match BASES.get(k as usize) {
            Some(r) => *r,
            None => {
                self.pointer(RAX, k);
                RAX
            }
        }
    }
    fn inst(&mut self, i: &VecInst) {
        let row = |map, prefix, op, short| Coded { short, ..plain(map, prefix, op) };
        let long = self.f.vector == VectorSize::Zmm;
        match *i {
            VecInst::Op { code, d, a, b, m } => {
                let row = code.row(self.f.wide);
                let imm = if code == Opcode::Blend { Some(m << 4) } else { row.imm };
                match (row.form, b) {
                    (Coding::Three, _) => self.vector(&row, d, a, b, imm),
                    (Coding::Two, _) => self.vector(&row, d, 0, b, imm),
                    (Coding::Shift(ext), _) => self.vector(&row, ext, d, b, imm),
                    (Coding::Extract, Site::Reg(from)) => self.vector(&row, from, 0, Site::Reg(d), imm),
                    (Coding::Extract, _) => unreachable!("memory is not taken apart"),
                }
            }
            VecInst::Fused { code, grows, d, a, b } => {
                let row = code.row(self.f.wide);
                self.vector(&Coded { op: row.op + if grows { 0x10 } else { 0 }, ..row }, d, a, b, None)
            }
            VecInst::Load { d, from: Site::Reg(a) } => self.vector(&row(1, 0, 0x28, false), d, 0, Site::Reg(a), None),
            VecInst::Load { d, from } => self.vector(&self.moved(0x10), d, 0, from, None),
            VecInst::LoadNarrow { d, from } => {
                let op = match self.element(from) {
                    MemoryElement::Bool if self.f.wide => 0x22,
                    MemoryElement::Bool | MemoryElement::I8 | MemoryElement::Lane | MemoryElement::Pair => 0x21,
                    MemoryElement::U8 => 0x31,
                    MemoryElement::I16 | MemoryElement::F16 => 0x23,
                    MemoryElement::U16 | MemoryElement::Bf16 => 0x33,
                };
                self.vector(&row(2, 1, op, false), d, 0, from, None)
            }
            VecInst::Store { from, to: Site::At(k) } if let Some(by) = self.stride(k) => self.scatter(from, k, by),
            VecInst::Store { from, to } => self.masked(&self.moved(0x11), from, 0, to, None, ROW_ALONE),
            VecInst::StoreNarrow { from, to } => {
                let narrow = match (self.element(to).bytes(4), self.f.wide) {
                    (2, _) if long => row(2, 2, 0x33, false),
                    (_, wide) if long => row(2, 2, 0x31 + wide as u8, false),
                    (2, _) => row(1, 0, 0x11, true),
                    (_, true) => row(1, 1, 0x7e, true),
                    (_, false) => row(1, 1, 0xd6, true),
                };
                self.masked(&narrow, from, 0, to, None, ROW_ALONE)
            }
            VecInst::StoreHalf { from, to } => self.masked(&row(3, 1, 0x1d, false), from, 0, to, Some(0), ROW_ALONE),
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
    fn moved(&self, op: u8) -> Coded {
        let w = self.f.masked.is_some() && self.f.wide;
        Coded { w, ..plain(1, w as u8, op) }
    }
    fn long_inst(&mut self, i: &VecInst, form: MaskForm) {
        match *i {
            VecInst::Op { code, d, a, b, m } => self.long(code, [d, a, m], b, form),
            _ => self.inst(i),
        }
    }
    /// An operation on 512 bits.
    fn long(&mut self, code: Opcode, [d, a, m]: [u8; 3], b: Site, form: MaskForm) {
        let wide = self.f.wide;
        let row = code.row(wide);
        // this bit distinguishes the sizes of elements
        let row = match code {
            Opcode::FromI32 | Opcode::ToI32 | Opcode::Rotation(_) => row,
            Opcode::MulEvens | Opcode::MulEvensUnsigned | Opcode::OddsDown | Opcode::Quads(_) => {
                Coded { w: true, ..row }
            }
            _ => Coded { w: wide, ..row },
        };
        let of_masks = |op| Coded { w: wide, ..plain(2, 2, op) };
        let chosen = Coded { w: wide, ..plain(2, 1, 0x64) };
        let to_vector = |s: &mut Self, k: u8| s.vector(&of_masks(0x38), d, 0, Site::Reg(k), None);
        match form {
            MaskForm::None => (),
            MaskForm::Compared { k, is_vector } => {
                self.masked(&row, k, a, b, row.imm, ROW_ALONE);
                return if is_vector {
                    to_vector(self, k)
                };
            }
            MaskForm::Combined { k, a, b, is_vector } => {
                let op = match code {
                    Opcode::And => 0x41,
                    Opcode::AndNot => 0x42,
                    Opcode::Or => 0x45,
                    _ => 0x47,
                };
                self.of_bits(op, k, Some(a), b);
                return if is_vector {
                    to_vector(self, k)
                };
            }
            MaskForm::Negated { k, a, is_vector } => {
                self.of_bits(0x44, k, None, a);
                return if is_vector {
                    to_vector(self, k)
                };
            }
            MaskForm::Chosen { by } => return self.masked(&chosen, d, a, b, None, by),
            MaskForm::Kept { by, of_a, negated } => {
                let by = if negated { MASK } else { by };
                if let MaskForm::Kept { by: k, negated: true, .. } = form {
                    self.of_bits(0x44, MASK, None, k);
                }
                let of = if of_a { Site::Reg(a) } else { b };
                return self.masked(&Coded { w: wide, ..plain(1, wide as u8, 0x10) }, d, 0, of, None, ZEROING | by);
            }
        }
        match code {
            Opcode::Compare(_) | Opcode::IntEq | Opcode::IntGt => {
                self.masked(&row, MASK, a, b, row.imm, ROW_ALONE);
                to_vector(self, MASK);
            }
            Opcode::Blend => {
                self.vector(&of_masks(0x39), MASK, 0, Site::Reg(m), None);
                self.masked(&chosen, d, a, b, None, MASK);
            }
            Opcode::Odds => {
                self.bytes.extend([0xb8, 0xaa, 0xaa, 0, 0]); // mov eax, every other bit
                self.bytes.extend([0xc5, 0xf8, 0x92, 0xc0 | MASK << 3]); // kmovw mask, eax
                self.masked(&chosen, d, a, b, None, MASK);
            }
            _ => match row.form {
                Coding::Three => self.vector(&row, d, a, b, row.imm),
                Coding::Two => self.vector(&row, d, 0, b, row.imm),
                Coding::Shift(ext) => self.vector(&row, ext, d, b, row.imm),
                Coding::Extract => match b {
                    Site::Reg(from) => self.vector(&row, from, 0, Site::Reg(d), row.imm),
                    _ => unreachable!("memory is not taken apart"),
                },
            },
        }
    }
    /// A logical operation on masks of bits.
    fn of_bits(&mut self, op: u8, d: u8, a: Option<u8>, b: u8) {
        let long = (a.is_some() as u8) << 2;
        self.bytes.extend([0xc5, 0x80 | (!a.unwrap_or(0) & 15) << 3 | long, op, 0xc0 | d << 3 | b]);
    }
    fn pool(&mut self) {
        let size = self.f.vector.bytes();
        let start = self.bytes.len().next_multiple_of(size);
        self.bytes.resize(start, 0xcc);
        for c in self.f.pool {
            for _ in 0..self.f.vector.lanes(self.f.wide) {
                let c = c.to_le_bytes();
                self.bytes.extend_from_slice(if self.f.wide { &c } else { &c[..4] });
            }
        }
        for (at, from, c) in std::mem::take(&mut self.fixups) {
            let distance = (start + size * c as usize) as i32 - from as i32;
            self.bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
    }
}
