//! The encoder of scalar code: instructions over 64-bit and vector registers as bytes.
//!
//! INVARIANT: memory is accessed at a base and an offset, with or without an index, or in the pool of constants behind the code.
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rm {
    Reg(u8),
    /// `[base + index * scale + offset]`.
    At {
        base: u8,
        index: Option<(u8, u8)>,
        offset: i32,
    },
    Pool(usize),
}
pub fn at(base: u8, offset: i32) -> Rm {
    Rm::At { base, index: None, offset }
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

#[derive(Default)]
pub struct Encoder {
    code: Vec<u8>,
    pool: Vec<u64>,
    in_pool: FxHashMap<u64, usize>,
    /// For each constant: where its displacement is encoded, the end of the instruction, and the
    /// constant.
    from_pool: Vec<(usize, usize, usize)>,
    labels: Vec<usize>,
    jumps: Vec<(usize, Label)>,
}

impl Encoder {
    /// A constant of 64 bits, zero behind it.
    pub fn pool(&mut self, bits: u64) -> Rm {
        let next = self.pool.len();
        let k = *self.in_pool.entry(bits).or_insert(next);
        if k == next {
            self.pool.push(bits);
        }
        Rm::Pool(k)
    }
    fn modrm(&mut self, reg: u8, rm: Rm, behind: usize) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Reg(r) => self.code.push(0xc0 | reg | r & 7),
            Rm::Pool(k) => {
                self.code.push(reg | 5);
                let place = self.code.len();
                self.code.extend([0; 4]);
                self.from_pool.push((place, place + 4 + behind, k));
            }
            Rm::At { base, index, offset } => {
                let near = i8::try_from(offset).ok();
                let mode = match near {
                    Some(0) if base & 7 != 5 => 0,
                    Some(_) => 0x40,
                    None => 0x80,
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
    /// The upper bits of the registers: of `reg`, of an index, of a base or `rm`.
    fn upper(reg: u8, rm: Rm) -> (u8, u8, u8) {
        let (x, b) = match rm {
            Rm::Reg(r) => (0, r >> 3),
            Rm::At { base, index, .. } => (index.map_or(0, |i| i.0 >> 3), base >> 3),
            Rm::Pool(_) => (0, 0),
        };
        (reg >> 3, x, b)
    }
    /// An instruction over whole numbers: its bytes, registers, and constants behind it.
    pub fn whole(&mut self, wide: bool, op: &[u8], reg: u8, rm: Rm, imm: &[u8]) {
        let (r, x, b) = Self::upper(reg, rm);
        // always with a REX prefix, with which the low bytes of all registers can be named
        self.code.push(0x40 | (wide as u8) << 3 | r << 2 | x << 1 | b);
        self.code.extend(op);
        self.modrm(reg, rm, imm.len());
        self.code.extend(imm);
    }
    /// The same of 16 bits, to memory.
    pub fn store16(&mut self, reg: u8, rm: Rm) {
        self.code.push(0x66);
        self.whole(false, &[0x89], reg, rm, &[]);
    }
    /// An instruction with three operands: map 1 is 0F, 2 0F38, 3 0F3A; prefix 1 is 66, 2 F3, 3 F2.
    #[allow(clippy::too_many_arguments)] // these are its parts
    pub fn vex(&mut self, map: u8, prefix: u8, wide: bool, op: u8, reg: u8, second: u8, rm: Rm, imm: Option<u8>) {
        let (r, x, b) = Self::upper(reg, rm);
        self.code.extend([
            0xc4,
            (r ^ 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | map,
            (wide as u8) << 7 | (!second & 15) << 3 | prefix,
            op,
        ]);
        self.modrm(reg, rm, imm.is_some() as usize);
        self.code.extend(imm);
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
    pub fn label(&mut self) -> Label {
        self.labels.push(usize::MAX);
        Label(self.labels.len() - 1)
    }
    pub fn here(&mut self, l: Label) {
        self.labels[l.0] = self.code.len();
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
        while !self.code.len().is_multiple_of(16) {
            self.code.push(0xcc);
        }
        let pool = self.code.len();
        for (place, end, k) in std::mem::take(&mut self.from_pool) {
            let by = (pool + 16 * k) as i64 - end as i64;
            self.code[place..place + 4].copy_from_slice(&(by as i32).to_le_bytes());
        }
        for bits in &self.pool {
            self.code.extend(bits.to_le_bytes());
            self.code.extend([0; 8]);
        }
        self.code
    }
}
