//! The instructions of tile programs: what each does to a vector, and how it is encoded.
//!
//! INVARIANT: an opcode has one row, of which both encodings (VEX and EVEX) are derived.

/// The operation of one instruction on vectors with elements of 4 or 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Opcode {
    Add,
    Sub,
    Mul,
    Div,
    /// `a < b ? a : b`, so b is the result for a nan.
    Min,
    Max,
    /// `a * m + b`, rounded once.
    MulAdd,
    /// `a * m - b`.
    MulSub,
    /// `b - a * m`.
    SubFrom,
    Sqrt,
    /// `a * 2^b` of an integer b, rounded once. Of 512 bits only.
    Scale,
    /// To an integer: 0 nearest, 1 down, 2 up, 3 towards zero.
    Round(u8),
    /// By predicate, to a mask: all bits of an element or none.
    Compare(u8),
    And,
    /// `!a & b`.
    AndNot,
    Or,
    Xor,
    IntAdd,
    IntSub,
    IntMul,
    IntEq,
    IntGt,
    MaxSigned,
    MaxUnsigned,
    MinSigned,
    MinUnsigned,
    IntAbs,
    Shl(u8),
    Shr(u8),
    Sar(u8),
    ShlBy,
    ShrBy,
    SarBy,
    /// `m ? b : a`, by the top bit of m's elements.
    Blend,
    FromI32,
    /// Towards zero; the least integer where it does not fit.
    ToI32,
    /// The nearest 16-bit float of each element, in the lower half; and each element of the lower half as one of 32 bits. Of nans both make
    /// quiet ones.
    ToHalf,
    FromHalf,
    /// The upper half in the lower.
    High,
    /// Of 128 bits: 32-bit elements to 16 bits, 16-bit elements to bytes, both operands', unsigned.
    Pack16,
    Pack8,
    /// Of 128 bits: the even 32-bit elements of a, then of b.
    Evens,
    /// Of 32-bit elements: the products of the even ones, 64 bits each.
    MulEvens,
    MulEvensUnsigned,
    /// Each odd 32-bit element in the even place before it, zero in its own.
    OddsDown,
    /// The even 32-bit elements of a, the odd ones of b.
    Odds,
    /// Within 128 bits, 32-bit elements from where two bits each say; whole 128 bits of 512 from there, the first two of a; halves of 256
    /// bits, of a from 0 and of b from 2 on.
    Rotation(u8),
    TurnQuarters(u8),
    Halves(u8),
    /// Within 128 bits: the elements of the lower, or upper, half of a and b in turn.
    UnpackLow,
    UnpackHigh,
    /// Within 128 bits, 32-bit elements from where two bits each say: two of a, two of b.
    Shuffle(u8),
    /// Within 256 bits, 64-bit elements from where two bits each say.
    Quads(u8),
    /// Two operands that lie in turn in memory. Nothing computes it: its halves are stored.
    Pair,
}

/// The elements of an operand in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryElement {
    /// As wide as a lane, and the same bits.
    Lane,
    /// A byte of 0 or 1, which is a mask in lanes.
    Bool,
    I8,
    U8,
    I16,
    U16,
    /// The upper half of a lane.
    Bf16,
    /// The number of a lane, with fewer bits.
    F16,
    /// Two elements as wide as lanes: a position has both.
    Pair,
}
impl MemoryElement {
    /// Bytes of one, where a lane has so many.
    pub fn bytes(self, lane: usize) -> usize {
        match self {
            MemoryElement::Lane => lane,
            MemoryElement::Pair => 2 * lane,
            MemoryElement::Bool | MemoryElement::I8 | MemoryElement::U8 => 1,
            MemoryElement::I16 | MemoryElement::U16 | MemoryElement::Bf16 | MemoryElement::F16 => 2,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Site {
    Reg(u8),
    /// A constant.
    Pool(u32),
    /// A vector of the frame.
    Stack(u32),
    /// Operand k at the position.
    At(u32),
    /// The first or the second vector of the pairs of operand k at the position.
    PairAt(u32, bool),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VecInst {
    /// `m` is the mask of a blend.
    Op {
        code: Opcode,
        d: u8,
        a: u8,
        b: Site,
        m: u8,
    },
    /// A [fused](Opcode::is_fused) one: `d = a * d + b`, or where it is a sum that grows, `d = a * b + d`.
    Fused {
        code: Opcode,
        grows: bool,
        d: u8,
        a: u8,
        b: Site,
    },
    Load {
        d: u8,
        from: Site,
    },
    /// Elements that are narrower than lanes, each widened to one.
    LoadNarrow {
        d: u8,
        from: Site,
    },
    Store {
        from: u8,
        to: Site,
    },
    /// To elements that are narrower than lanes: short vectors hold them packed, long ones in lanes.
    StoreNarrow {
        from: u8,
        to: Site,
    },
    /// To 16-bit floats: the nearest of each element.
    StoreHalf {
        from: u8,
        to: Site,
    },
}

/// How an instruction's operands are encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// Register, register, register or memory.
    Three,
    /// Register, register or memory.
    Two,
    /// The extension of the opcode; the result is encoded as the first operand.
    Shift(u8),
    /// The result is encoded last.
    Extract,
}
/// How much of a vector an instruction concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    Whole,
    Half,
    /// Of 512 bits a quarter; of 256 the half that is encoded as short.
    Quarter,
    /// One number, or 128 bits, always encoded as of short vectors (VEX).
    One,
}
/// The type of an operation's operands: elements of 8 bytes or 4, and one number or a vector of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    pub wide: bool,
    pub length: Length,
}
impl Shape {
    pub const fn vector(wide: bool) -> Shape {
        Shape { wide, length: Length::Whole }
    }
    pub const fn one(wide: bool) -> Shape {
        Shape { wide, length: Length::One }
    }
    pub fn is_one(self) -> bool {
        self.length == Length::One
    }
    /// An instruction over such vectors.
    pub fn of(self, row: Coded) -> Coded {
        Coded { length: self.length, ..row }
    }
}
#[derive(Clone, Copy)]
pub struct Coded {
    pub map: u8,
    pub prefix: u8,
    /// The bit W of the encoding for 256 bits, and of that for 512.
    pub w: bool,
    pub w_long: bool,
    pub op: u8,
    pub form: Coding,
    pub imm: Option<u8>,
    pub length: Length,
}

impl Opcode {
    /// Whether it reads `a`.
    pub fn is_binary(self) -> bool {
        !matches!(
            self,
            Opcode::Sqrt
                | Opcode::Round(_)
                | Opcode::IntAbs
                | Opcode::FromI32
                | Opcode::ToI32
                | Opcode::ToHalf
                | Opcode::FromHalf
                | Opcode::High
                | Opcode::OddsDown
                | Opcode::Shl(_)
                | Opcode::Shr(_)
                | Opcode::Sar(_)
                | Opcode::Rotation(_)
                | Opcode::Quads(_)
        )
    }
    /// As texts of nests have it: `vmuladd`, `vshl(23)`.
    pub fn text(self) -> String {
        format!("v{self:?}").to_lowercase()
    }
    pub fn is_fused(self) -> bool {
        matches!(self, Opcode::MulAdd | Opcode::MulSub | Opcode::SubFrom)
    }
    /// Whether its last operand may be memory.
    pub fn takes_memory(self) -> bool {
        !matches!(
            self,
            Opcode::Shl(_)
                | Opcode::Shr(_)
                | Opcode::Sar(_)
                | Opcode::ToHalf
                | Opcode::FromHalf
                | Opcode::High
                | Opcode::OddsDown
                | Opcode::Pack16
                | Opcode::Pack8
                | Opcode::Evens
        )
    }
    /// Whether its operands may change places.
    pub fn commutes(self) -> bool {
        use Opcode::*;
        matches!(self, And | Or | Xor | IntAdd | IntMul | IntEq | MaxSigned | MaxUnsigned | MinSigned | MinUnsigned)
    }
    /// How it is encoded.
    pub fn row(self, of: Shape) -> Coded {
        let row = self.packed(of.wide);
        if !of.is_one() {
            return if row.length == Length::Whole { of.of(row) } else { row };
        }
        let row = of.of(row);
        match self {
            Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Div | Opcode::Min | Opcode::Max | Opcode::Compare(_) => {
                Coded { prefix: row.prefix | 2, ..row }
            }
            Opcode::Sqrt => Coded { prefix: row.prefix | 2, form: Coding::Three, ..row },
            Opcode::Round(_) => Coded { op: row.op + 2, form: Coding::Three, ..row },
            Opcode::MulAdd | Opcode::MulSub | Opcode::SubFrom => Coded { op: row.op + 1, ..row },
            _ => row,
        }
    }
    fn packed(self, wide: bool) -> Coded {
        use Coding::*;
        use Opcode::*;
        let row = |map, prefix, op, form| Coded { w_long: wide, form, ..plain(map, prefix, op) };
        // single and double precision differ by the prefix, 32 and 64 bits by the opcode
        let float = |op, form| row(1, wide as u8, op, form);
        let int = |op: u8, op_wide: u8| row(1, 1, if wide { op_wide } else { op }, Three);
        let narrow = |op| {
            debug_assert!(!wide);
            row(2, 1, op, Three)
        };
        match self {
            Add => float(0x58, Three),
            Mul => float(0x59, Three),
            Sub => float(0x5c, Three),
            Min => float(0x5d, Three),
            Div => float(0x5e, Three),
            Max => float(0x5f, Three),
            Sqrt => float(0x51, Two),
            Scale => Coded { w: wide, ..row(2, 1, 0x2c, Three) },
            MulAdd => Coded { w: wide, ..row(2, 1, 0xa8, Three) },
            MulSub => Coded { w: wide, ..row(2, 1, 0xaa, Three) },
            SubFrom => Coded { w: wide, ..row(2, 1, 0xac, Three) },
            And => float(0x54, Three),
            AndNot => float(0x55, Three),
            Or => float(0x56, Three),
            Xor => float(0x57, Three),
            Compare(p) => Coded { imm: Some(p), ..float(0xc2, Three) },
            Round(to) => Coded { imm: Some(to | 8), ..row(3, 1, 8 + wide as u8, Two) },
            Blend => row(3, 1, 0x4a + wide as u8, Three),
            IntAdd => int(0xfe, 0xd4),
            IntSub => int(0xfa, 0xfb),
            IntEq if wide => row(2, 1, 0x29, Three),
            IntEq => row(1, 1, 0x76, Three),
            IntGt if wide => row(2, 1, 0x37, Three),
            IntGt => row(1, 1, 0x66, Three),
            IntMul => narrow(0x40),
            MaxSigned => narrow(0x3d),
            MaxUnsigned => narrow(0x3f),
            MinSigned => narrow(0x39),
            MinUnsigned => narrow(0x3b),
            IntAbs => Coded { form: Two, ..narrow(0x1e) },
            Shl(n) => Coded { imm: Some(n), form: Shift(6), ..int(0x72, 0x73) },
            Shr(n) => Coded { imm: Some(n), form: Shift(2), ..int(0x72, 0x73) },
            Sar(n) => Coded { imm: Some(n), form: Shift(4), ..narrow(0x72) }.in_map(1),
            ShlBy => Coded { w: wide, ..row(2, 1, 0x47, Three) },
            ShrBy => Coded { w: wide, ..row(2, 1, 0x45, Three) },
            SarBy => narrow(0x46),
            FromI32 => Coded { w_long: false, ..row(1, 0, 0x5b, Two) },
            ToI32 => Coded { w_long: false, ..row(1, 2, 0x5b, Two) },
            ToHalf => Coded { imm: Some(0), ..row(3, 1, 0x1d, Extract) },
            FromHalf => row(2, 1, 0x13, Two),
            High => Coded { imm: Some(1), ..row(3, 1, 0x39, Extract) },
            Pack16 => Coded { length: Length::Quarter, ..row(2, 1, 0x2b, Three) },
            Pack8 => Coded { length: Length::Quarter, ..row(1, 1, 0x67, Three) },
            Evens => Coded { length: Length::Quarter, imm: Some(0x88), ..row(1, 0, 0xc6, Three) },
            MulEvens => Coded { w_long: true, ..narrow(0x28) },
            MulEvensUnsigned => Coded { w_long: true, ..row(1, 1, 0xf4, Three) },
            OddsDown => Coded { imm: Some(32), form: Shift(2), w_long: true, ..narrow(0x73) }.in_map(1),
            Odds => Coded { imm: Some(0xaa), ..narrow(0x02) }.in_map(3),
            Rotation(from) => Coded { imm: Some(from), w_long: false, ..row(3, 1, 0x04, Two) },
            TurnQuarters(from) => Coded { imm: Some(from), ..row(3, 1, 0x23, Three) },
            Halves(from) => Coded { imm: Some(from), ..row(3, 1, 0x06, Three) },
            UnpackLow => float(0x14, Three),
            UnpackHigh => float(0x15, Three),
            Shuffle(from) => Coded { imm: Some(from), ..row(1, 0, 0xc6, Three) },
            Quads(from) => Coded { imm: Some(from), ..row(3, 1, 0x01, Two) }.wide(true),
            Pair => unreachable!("pairs are stored by their halves"),
        }
    }
}
/// Two operands, of all elements of which each is 4 bytes.
pub const fn plain(map: u8, prefix: u8, op: u8) -> Coded {
    let form = Coding::Two;
    Coded { map, prefix, w: false, w_long: false, op, form, imm: None, length: Length::Whole }
}
/// On the first quarter of a vector.
pub const fn quarter(map: u8, prefix: u8, op: u8) -> Coded {
    Coded { length: Length::Quarter, ..plain(map, prefix, op) }
}
/// On one number, or 128 bits.
pub const fn one(map: u8, prefix: u8, op: u8) -> Coded {
    Coded { length: Length::One, ..plain(map, prefix, op) }
}
/// Between masks of bits and vectors of 512.
pub const fn of_masks(op: u8, wide: bool) -> Coded {
    plain(2, 2, op).wide(wide)
}
impl Coded {
    pub const fn in_map(self, map: u8) -> Coded {
        Coded { map, ..self }
    }
    /// With this bit W.
    pub const fn wide(self, w: bool) -> Coded {
        Coded { w, w_long: w, ..self }
    }
}

/// Moves, which no graph has as operations.
pub const LOAD: Coded = plain(1, 0, 0x10);
pub const STORE: Coded = plain(1, 0, 0x11);
pub const COPY: Coded = plain(1, 0, 0x28);
/// One number from memory, and to memory.
pub const fn load_one(wide: bool) -> Coded {
    one(1, 2 | wide as u8, 0x10)
}
pub const fn store_one(wide: bool) -> Coded {
    one(1, 2 | wide as u8, 0x11)
}
/// From a general register, and to one.
pub const fn from_whole(wide: bool) -> Coded {
    one(1, 1, 0x6e).wide(wide)
}
pub const fn to_whole(wide: bool) -> Coded {
    one(1, 1, 0x7e).wide(wide)
}
/// The first element in all.
pub const fn broadcast(wide: bool) -> Coded {
    Coded { w_long: wide, ..plain(2, 1, 0x18 + wide as u8) }
}
/// Bytes, with their signs, as elements.
pub const fn widen_bytes(wide: bool) -> Coded {
    plain(2, 1, 0x21 + wide as u8)
}
/// So many bits of a vector from the place that the immediate names, to a register or memory.
pub const EXTRACT: Coded = plain(3, 1, 0x19);
pub const INSERT: Coded = plain(3, 1, 0x18);
/// An element of the first 128 bits from memory, into the place that the immediate names (in bits 4 and 5), and one to memory.
pub const INSERT_ONE: Coded = quarter(3, 1, 0x21);
pub const EXTRACT_ONE: Coded = quarter(3, 1, 0x17);
/// One element from memory to the first of 128 bits.
pub const fn load_first(wide: bool) -> Coded {
    quarter(1, 2 | wide as u8, 0x10).wide(wide)
}
/// 64 bits from memory to the upper half of 128, and the halves to memory.
pub const LOAD_HIGH: Coded = quarter(1, 1, 0x16).wide(true);
pub const STORE_LOW: Coded = quarter(1, 3, 0x11).wide(true);
pub const STORE_HIGH: Coded = quarter(1, 1, 0x17).wide(true);
