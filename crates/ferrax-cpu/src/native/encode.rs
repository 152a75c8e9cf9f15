//! The encoder: instructions over general registers and over vectors of 256 bits (VEX) or 512 (EVEX), as bytes.
//!
//! INVARIANT: memory is accessed at a base and an offset, with or without an index, or in the pool of constants behind the code.
use crate::instructions::VectorSize;
use crate::instructions::opcodes::{
    Coded, Coding, EXTRACT, EXTRACT_ONE, INSERT, INSERT_ONE, LOAD_HIGH, Length, Opcode, STORE_HIGH, STORE_LOW, Shape,
    load_first, of_masks, plain,
};

/// General registers, by number.
pub const RAX: u8 = 0;
pub const RCX: u8 = 1;
pub const RDX: u8 = 2;
pub const RBX: u8 = 3;
pub const RSP: u8 = 4;
pub const RBP: u8 = 5;
pub const RSI: u8 = 6;
pub const RDI: u8 = 7;
pub const R8: u8 = 8;

/// The mask of bits that is used at once: others may stay (native/masks.rs).
pub const MASK: u8 = 1;
/// The mask of the elements of a row that is shorter than a vector.
pub const ROW_MASK: u8 = 7;
/// Beside the number of a mask: elements where it does not hold become zeros.
pub const ZEROING: u8 = 0x80;
/// In place of a mask: the row's mask applies only where memory of the row is accessed, and other
/// lanes are not zeroed (stores, and instructions that compute a mask).
pub const ROW_ALONE: u8 = 0x40;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rm {
    Reg(u8),
    /// `[base + index * scale + offset]`.
    At {
        base: u8,
        index: Option<(u8, u8)>,
        offset: i32,
    },
    /// The same, of a row's elements: those that the row's mask names.
    Row {
        base: u8,
        index: Option<(u8, u8)>,
    },
    /// So many bytes from the start of the pool.
    Pool(usize),
}
pub fn at(base: u8, offset: i32) -> Rm {
    Rm::At { base, index: None, offset }
}
impl Rm {
    fn parts(self) -> Option<(u8, Option<(u8, u8)>, i32)> {
        match self {
            Rm::At { base, index, offset } => Some((base, index, offset)),
            Rm::Row { base, index } => Some((base, index, 0)),
            Rm::Reg(_) | Rm::Pool(_) => None,
        }
    }
}

/// Conditions, as instructions number them; the lowest bit turns one into its opposite.
pub mod cc {
    pub const BELOW: u8 = 2;
    pub const EQUAL: u8 = 4;
    pub const NOT_EQUAL: u8 = 5;
    pub const NOT_ABOVE: u8 = 6;
    pub const LESS: u8 = 12;
    pub const NOT_GREATER: u8 = 14;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(usize);

pub struct Encoder {
    size: VectorSize,
    code: Vec<u8>,
    /// Constants, each repeated through a whole vector.
    pool: Vec<[u8; 16]>,
    /// For each use of a constant: where its displacement is encoded, the end of the instruction, and
    /// the constant's place in the pool.
    from_pool: Vec<(usize, usize, usize)>,
    labels: Vec<usize>,
    jumps: Vec<(usize, Label)>,
}

impl Encoder {
    pub fn new(size: VectorSize, capacity: usize) -> Encoder {
        let code = Vec::with_capacity(capacity);
        Encoder { size, code, pool: vec![], from_pool: vec![], labels: vec![], jumps: vec![] }
    }
    pub fn size(&self) -> VectorSize {
        self.size
    }
    /// A constant of 32 bits or 64, in all elements of a vector.
    pub fn pool(&mut self, wide: bool, bits: u64) -> Rm {
        let b = bits.to_le_bytes();
        self.pattern(std::array::from_fn(|k| if wide { b[k % 8] } else { b[k % 4] }))
    }
    /// Sixteen bytes, repeated through a vector.
    pub fn pattern(&mut self, bytes: [u8; 16]) -> Rm {
        let k = self.pool.iter().position(|p| *p == bytes).unwrap_or(self.pool.len());
        if k == self.pool.len() {
            self.pool.push(bytes);
        }
        Rm::Pool(k * self.size.bytes())
    }
    fn modrm(&mut self, reg: u8, rm: Rm, behind: usize, any_offset: bool) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Reg(r) => self.code.push(0xc0 | reg | r & 7),
            Rm::Pool(k) => {
                self.code.push(reg | 5);
                let place = self.code.len();
                self.code.extend([0; 4]);
                self.from_pool.push((place, place + 4 + behind, k));
            }
            Rm::At { .. } | Rm::Row { .. } => {
                let (base, index, offset) = rm.parts().expect("memory");
                let mode = match i8::try_from(offset) {
                    Ok(0) if base & 7 != 5 => 0,
                    Ok(_) if any_offset => 0x40,
                    _ => 0x80,
                };
                match index {
                    Some((r, scale)) => {
                        self.code.push(mode | reg | 4);
                        self.code.push((scale.trailing_zeros() as u8) << 6 | (r & 7) << 3 | base & 7);
                    }
                    None if base & 7 == 4 => self.code.extend([mode | reg | 4, 0x24]),
                    None => self.code.push(mode | reg | base & 7),
                }
                match mode {
                    0 => (),
                    0x40 => self.code.push(offset as u8),
                    _ => self.code.extend(offset.to_le_bytes()),
                }
            }
        }
    }
    /// The registers that a prefix extends: the index, and the base or `rm`.
    fn upper(rm: Rm) -> (u8, u8) {
        match (rm, rm.parts()) {
            (Rm::Reg(r), _) => (r >> 1, r), // the index's bit is a vector register's highest
            (_, Some((base, index, _))) => (index.map_or(0, |i| i.0), base),
            _ => (0, 0),
        }
    }
    /// An instruction over whole numbers: its bytes, registers, and constants behind it.
    pub fn whole(&mut self, wide: bool, op: &[u8], reg: u8, rm: Rm, imm: &[u8]) {
        let (x, b) = Self::upper(rm);
        let x = if let Rm::Reg(_) = rm { 0 } else { x >> 3 };
        // always with a REX prefix, with which the low bytes of all registers can be named
        self.code.push(0x40 | (wide as u8) << 3 | (reg >> 3) << 2 | x << 1 | b >> 3);
        self.code.extend(op);
        self.modrm(reg, rm, imm.len(), true);
        self.code.extend(imm);
    }
    /// The same of 16 bits, to memory.
    pub fn store16(&mut self, reg: u8, rm: Rm) {
        self.code.push(0x66);
        self.whole(false, &[0x89], reg, rm, &[]);
    }
    /// An instruction with three operands and no mask.
    pub fn vector(&mut self, row: &Coded, r: u8, v: u8, rm: Rm, imm: Option<u8>) {
        self.masked(row, r, v, rm, imm, 0);
    }
    /// The same; `mask` names the mask of bits, if there is one.
    pub fn masked(&mut self, row: &Coded, r: u8, v: u8, rm: Rm, imm: Option<u8>, mask: u8) {
        let mask = match rm {
            Rm::Row { .. } => match mask {
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
        let (x, b) = Self::upper(rm);
        let high = |n: u8, bit: u8, at: u8| ((n >> bit & 1) ^ 1) << at;
        let first = high(r, 3, 7) | high(x, 3, 6) | high(b, 3, 5) | row.map;
        let is_long = self.size == VectorSize::Zmm && row.length != Length::One;
        let w = if is_long { row.w_long } else { row.w };
        let second = (w as u8) << 7 | (!v & 15) << 3 | row.prefix;
        if is_long {
            let length = match row.length {
                Length::Whole => 2 << 5,
                Length::Half => 1 << 5,
                Length::Quarter | Length::One => 0,
            };
            self.code.extend([0x62, first | high(r, 4, 4), second | 4, length | high(v, 4, 3) | mask]);
        } else {
            // there is no index register here
            let first = if let Rm::Reg(_) = rm { first | 0x40 } else { first };
            self.code.extend([0xc4, first, second | ((row.length == Length::Whole) as u8) << 2]);
        }
        self.code.push(row.op);
        self.modrm(r, rm, imm.is_some() as usize, !is_long);
        self.code.extend(imm);
    }
    /// Encodes an opcode for one number or for vectors. `m` is the mask of a blend.
    pub fn op(&mut self, code: Opcode, shape: Shape, d: u8, a: u8, b: Rm, m: u8) {
        let row = code.row(shape);
        match code {
            _ if self.size == VectorSize::Ymm || shape.is_one() => {
                self.formed(&row, d, a, b, if code == Opcode::Blend { Some(m << 4) } else { row.imm });
            }
            Opcode::Compare(_) | Opcode::IntEq | Opcode::IntGt => {
                self.masked(&row, MASK, a, b, row.imm, ROW_ALONE);
                self.mask_to_vector(shape, d, MASK);
            }
            Opcode::Blend => {
                self.vector(&shape.of(of_masks(0x39, shape.wide)), MASK, 0, Rm::Reg(m), None);
                self.chosen(shape, d, a, b, MASK);
            }
            _ => self.formed(&row, d, a, b, row.imm),
        }
    }
    fn formed(&mut self, row: &Coded, d: u8, a: u8, b: Rm, imm: Option<u8>) {
        match (row.form, b) {
            (Coding::Three, _) => self.vector(row, d, a, b, imm),
            (Coding::Two, _) => self.vector(row, d, 0, b, imm),
            (Coding::Shift(extension), _) => self.vector(row, extension, d, b, imm),
            (Coding::Extract, Rm::Reg(from)) => self.vector(row, from, 0, Rm::Reg(d), imm),
            (Coding::Extract, _) => unreachable!("memory is not taken apart"),
        }
    }
    /// The first n elements of a vector, each from its place, and zeros behind them: to `d`, by way of `other` those behind the first quarter.
    pub fn gather(
        &mut self,
        shape: Shape,
        [d, other]: [u8; 2],
        n: usize,
        mut place: impl FnMut(&mut Encoder, usize) -> Rm,
    ) {
        let of_quarter = if shape.wide { 2 } else { 4 };
        for k in 0..n {
            let (quarter, at) = (k / of_quarter, k % of_quarter);
            let to = if quarter == 0 { d } else { other };
            let from = place(self, k);
            match (shape.wide, at) {
                (wide, 0) => self.vector(&load_first(wide), to, 0, from, None),
                (true, _) => self.vector(&LOAD_HIGH, to, to, from, None),
                (false, _) => self.vector(&INSERT_ONE, to, to, from, Some((at as u8) << 4)),
            }
            if quarter > 0 && (at + 1 == of_quarter || k + 1 == n) {
                self.vector(&shape.of(INSERT), d, d, Rm::Reg(other), Some(quarter as u8));
            }
        }
    }
    /// The first n elements of a vector, each to its place, by way of `other`.
    pub fn scatter(
        &mut self,
        shape: Shape,
        [from, other]: [u8; 2],
        n: usize,
        mut place: impl FnMut(&mut Encoder, usize) -> Rm,
    ) {
        let of_quarter = if shape.wide { 2 } else { 4 };
        for k in 0..n {
            let (quarter, at) = ((k / of_quarter) as u8, (k % of_quarter) as u8);
            if at == 0 {
                self.vector(&shape.of(EXTRACT), from, 0, Rm::Reg(other), Some(quarter));
            }
            let to = place(self, k);
            match (shape.wide, at) {
                (true, 0) => self.vector(&STORE_LOW, other, 0, to, None),
                (true, _) => self.vector(&STORE_HIGH, other, 0, to, None),
                (false, _) => self.vector(&EXTRACT_ONE, other, 0, to, Some(at)),
            }
        }
    }
    /// By a mask of bits: `d = k ? b : a`.
    pub fn chosen(&mut self, shape: Shape, d: u8, a: u8, b: Rm, k: u8) {
        self.masked(&shape.of(plain(2, 1, 0x64).wide(shape.wide)), d, a, b, None, k);
    }
    /// All bits of the elements where a mask of bits holds.
    pub fn mask_to_vector(&mut self, shape: Shape, d: u8, k: u8) {
        self.vector(&shape.of(of_masks(0x38, shape.wide)), d, 0, Rm::Reg(k), None);
    }
    /// A mask of these bits, by way of one of the first eight registers.
    pub fn bit_mask(&mut self, k: u8, bits: u32, by: u8) {
        self.set(by, bits as u64);
        self.code.extend([0xc5, 0xf8, 0x92, 0xc0 | k << 3 | by]); // kmovw
    }
    /// A logical operation on masks of bits.
    pub fn of_bits(&mut self, op: u8, d: u8, a: Option<u8>, b: u8) {
        let long = (a.is_some() as u8) << 2;
        self.code.extend([0xc5, 0x80 | (!a.unwrap_or(0) & 15) << 3 | long, op, 0xc0 | d << 3 | b]);
    }
    pub fn bytes(&mut self, b: &[u8]) {
        self.code.extend(b);
    }
    /// `reg = x`, flags as they are.
    pub fn set(&mut self, reg: u8, x: u64) {
        if let Ok(x) = u32::try_from(x) {
            self.code.push(0x40 | reg >> 3);
            self.code.push(0xb8 | reg & 7);
            self.code.extend(x.to_le_bytes());
        } else if let Ok(x) = i32::try_from(x as i64) {
            self.whole(true, &[0xc7], 0, Rm::Reg(reg), &x.to_le_bytes());
        } else {
            self.code.push(0x48 | reg >> 3);
            self.code.push(0xb8 | reg & 7);
            self.code.extend(x.to_le_bytes());
        }
    }
    pub fn push(&mut self, r: u8) {
        self.code.extend([0x40 | r >> 3, 0x50 | r & 7]);
    }
    pub fn pop(&mut self, r: u8) {
        self.code.extend([0x40 | r >> 3, 0x58 | r & 7]);
    }
    /// Clears upper halves, after which SSE instructions cost no transition penalty.
    pub fn without_upper_halves(&mut self) {
        self.code.extend([0xc5, 0xf8, 0x77]);
    }
    pub fn label(&mut self) -> Label {
        self.labels.push(usize::MAX);
        Label(self.labels.len() - 1)
    }
    pub fn here(&mut self, l: Label) {
        self.labels[l.0] = self.code.len();
    }
    /// A label of this place.
    pub fn mark(&mut self) -> Label {
        let l = self.label();
        self.here(l);
        l
    }
    pub fn jump(&mut self, to: Label) {
        self.code.push(0xe9);
        self.distance(to);
    }
    pub fn jump_if(&mut self, condition: u8, to: Label) {
        self.code.extend([0x0f, 0x80 | condition]);
        self.distance(to);
    }
    fn distance(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.code.extend([0; 4]);
    }
    /// The code, its constants behind it.
    pub fn finish(mut self) -> Vec<u8> {
        for (place, to) in std::mem::take(&mut self.jumps) {
            let by = self.labels[to.0] as i64 - (place as i64 + 4);
            self.code[place..place + 4].copy_from_slice(&(by as i32).to_le_bytes());
        }
        let pool = self.code.len().next_multiple_of(self.size.bytes());
        self.code.resize(pool, 0xcc);
        for (place, end, k) in std::mem::take(&mut self.from_pool) {
            let by = (pool + k) as i64 - end as i64;
            self.code[place..place + 4].copy_from_slice(&(by as i32).to_le_bytes());
        }
        let repeats = self.size.bytes() / 16;
        for bytes in &self.pool {
            (0..repeats).for_each(|_| self.code.extend(bytes));
        }
        self.code
    }
}
