//! Instructions on vectors of 32 bytes: four numbers of 64 bits, or eight of 32. Truth values are masks of the same width.
use super::floats::{AND, EQUAL, LESS, NOT_EQUAL, NOT_GREATER, OR, UNORDERED};
use super::{Emitter, NestSite, RAX, RDX, V0, V1, V2};
use crate::native::nest::encode::Rm;
use crate::nest::{Def, NestOp, NestValue};
use ferrax_kernel::{Bin, DType, Scalar, Un};

/// Prefixes of an instruction on whole vectors: of numbers of 32 bits, of 64 bits or whole numbers, and of a move of one.
const PS: u8 = 4;
const PD: u8 = 5;
const XOR: u8 = 0x57;

fn prefix(wide: bool) -> u8 {
    if wide { PD } else { PS }
}

impl Emitter<'_> {
    /// So many bytes further.
    fn further(&mut self, rm: Rm, bytes: i64) -> Rm {
        match rm {
            Rm::At { base, index, offset } => Rm::At { base, index, offset: self.near(offset as i64 + bytes) },
            other => other,
        }
    }
    /// Clears upper halves, after which SSE instructions cost no transition penalty.
    pub fn without_upper_halves(&mut self) {
        if self.has_vectors {
            self.e.bytes(&[0xc5, 0xf8, 0x77]);
        }
    }
    /// The vector in a register: its own, or this one.
    fn vec(&mut self, v: NestValue, other: u8) -> u8 {
        match self.site(v) {
            NestSite::Vector(r) => r,
            site => {
                self.copy(site, NestSite::Vector(other));
                other
            }
        }
    }
    fn made(&mut self, v: NestValue, from: u8) {
        let to = self.site(v);
        self.copy(NestSite::Vector(from), to);
    }
    fn packed(&mut self, op: u8, wide: bool, d: u8, a: u8, b: Rm) {
        self.e.vex(1, prefix(wide), false, op, d, a, b, None);
    }
    fn bits(&mut self, op: u8, d: u8, a: u8, b: Rm) {
        self.e.vex(1, PS, false, op, d, a, b, None);
    }
    fn packed_compared(&mut self, predicate: u8, wide: bool, d: u8, a: u8, b: Rm) {
        self.e.vex(1, prefix(wide), false, 0xc2, d, a, b, Some(predicate));
    }
    /// `d = mask ? b : a`.
    fn packed_blend(&mut self, wide: bool, d: u8, a: u8, b: Rm, mask: u8) {
        self.e.vex(3, PD, false, if wide { 0x4b } else { 0x4a }, d, a, b, Some(mask << 4));
    }
    /// The number at a place, in all lanes.
    fn broadcast(&mut self, wide: bool, d: u8, from: Rm) {
        self.e.vex(2, PD, false, if wide { 0x19 } else { 0x18 }, d, 0, from, None);
    }
    fn repeated(&mut self, wide: bool, d: u8, bits: u64) {
        let from = self.e.pool(bits);
        self.broadcast(wide, d, from);
    }
    fn nothing(&mut self, d: u8) {
        self.bits(XOR, d, d, Rm::Reg(d));
    }
    fn ones(&mut self, d: u8) {
        self.e.vex(1, PD, false, 0x76, d, d, Rm::Reg(d), None);
    }
    /// Small numbers, one for each lane.
    fn numbers(&mut self, wide: bool, d: u8, of: impl Fn(i64) -> i64) {
        let bytes: [u8; 8] = std::array::from_fn(|k| of(k as i64) as i8 as u8);
        let from = self.e.pool(u64::from_le_bytes(bytes));
        self.e.vex(2, PD, false, if wide { 0x22 } else { 0x21 }, d, 0, from, None);
    }
    /// Broadcasts a number, from any location, to all lanes.
    fn splat(&mut self, v: NestValue, def: &Def, wide: bool) {
        let (of, d) = (def.args[0], self.target(v, V0));
        match (self.site(of), def.dtype) {
            (NestSite::Bits(x), DType::Bool) => {
                if x & 0xff != 0 {
                    self.ones(d);
                } else {
                    self.nothing(d);
                }
            }
            (site, DType::Bool) => {
                self.copy(site, NestSite::Whole(RAX));
                self.e.whole(wide, &[0xf7], 3, Rm::Reg(RAX), &[]);
                self.e.vex(1, 1, wide, 0x6e, V0, 0, Rm::Reg(RAX), None);
                self.broadcast(wide, d, Rm::Reg(V0));
            }
            (NestSite::Whole(r), _) => {
                self.e.vex(1, 1, wide, 0x6e, V0, 0, Rm::Reg(r), None);
                self.broadcast(wide, d, Rm::Reg(V0));
            }
            _ => {
                let from = self.rm(of);
                self.broadcast(wide, d, from);
            }
        }
        self.made(v, d);
    }

    pub fn vector(&mut self, pos: usize, v: NestValue) {
        let def = *self.nest.def(v);
        let wide = def.lanes == 4;
        match def.op {
            NestOp::Carry | NestOp::After | NestOp::Const(_) | NestOp::Input(_) => (),
            NestOp::Splat => self.splat(v, &def, wide),
            NestOp::Ramp(by) => {
                let first = self.whole(def.args[0], RAX);
                self.e.vex(1, 1, wide, 0x6e, V0, 0, Rm::Reg(first), None);
                self.broadcast(wide, V0, Rm::Reg(V0));
                self.numbers(wide, V1, |k| k * by as i64);
                let d = self.target(v, V0);
                self.e.vex(1, PD, false, if wide { 0xd4 } else { 0xfe }, d, V0, Rm::Reg(V1), None);
                self.made(v, d);
            }
            NestOp::Load(array, offset) => {
                let from = self.element(array, def.args[0], offset, def.dtype);
                let d = self.target(v, V0);
                if def.dtype == DType::Bool {
                    self.e.vex(2, PD, false, if wide { 0x32 } else { 0x31 }, V0, 0, from, None);
                    self.nothing(V1);
                    self.e.vex(1, PD, false, if wide { 0xfb } else { 0xfa }, d, V1, Rm::Reg(V0), None);
                } else {
                    self.e.vex(1, PS, false, 0x10, d, 0, from, None);
                }
                self.made(v, d);
            }
            NestOp::LoadApart(array, offset, stride, lanes) => {
                let from = self.element(array, def.args[0], offset, def.dtype);
                let d = self.target(v, V0);
                self.load_apart(d, from, wide, stride, lanes as i32);
                self.made(v, d);
            }
            NestOp::LoadWide(array, offset, from) => {
                let place = self.element(array, def.args[0], offset, from);
                let d = self.target(v, V0);
                match (from, def.dtype) {
                    (DType::F32, _) => self.e.vex(1, PS, false, 0x5a, d, 0, place, None),
                    (_, DType::F64) => self.e.vex(1, PS | 2, false, 0xe6, d, 0, place, None),
                    (DType::U32, _) => self.e.vex(2, PD, false, 0x35, d, 0, place, None),
                    _ => self.e.vex(2, PD, false, 0x25, d, 0, place, None),
                }
                self.made(v, d);
            }
            NestOp::Blend(lanes) => {
                let others = self.vec(def.args[1], V1);
                let first = self.rm(def.args[0]);
                let d = self.target(v, V0);
                self.e.vex(3, PD, false, if wide { 0x0d } else { 0x0c }, d, others, first, Some((1 << lanes) - 1));
                self.made(v, d);
            }
            NestOp::Un(f) => self.vector_un(v, &def, f),
            NestOp::Bin(f) => self.vector_bin(v, &def, f),
            NestOp::Select => {
                let [p, t, f] = def.args;
                let mask = self.vec(p, V0);
                let no = self.vec(f, V1);
                let yes = self.rm(t);
                let d = self.target(v, V1);
                self.packed_blend(wide, d, no, yes, mask);
                self.made(v, d);
            }
            NestOp::Convert(from) => self.vector_convert(v, &def, from),
            NestOp::Bits(_) => {
                let (from, to) = (self.site(def.args[0]), self.site(v));
                self.copy(from, to);
            }
            NestOp::Settle => {
                let a = self.vec(def.args[0], V1);
                self.packed_compared(UNORDERED, wide, V0, a, Rm::Reg(a));
                self.repeated(wide, V2, Scalar::from_f64(def.dtype, f64::NAN).bits);
                let d = self.target(v, V1);
                self.packed_blend(wide, d, a, Rm::Reg(V2), V0);
                self.made(v, d);
            }
            NestOp::Call(f, n) => self.call(pos, v, f, n),
            NestOp::Down(by) => {
                let a = self.vec(def.args[0], V0);
                let d = self.target(v, V0);
                match by as usize * if wide { 8 } else { 4 } {
                    16 => self.e.vex(3, PD, true, 0x01, d, 0, Rm::Reg(a), Some(0x4e)),
                    8 => self.e.vex(3, PD, false, 0x05, d, 0, Rm::Reg(a), Some(0x05)),
                    _ => self.e.vex(3, PD, false, 0x04, d, 0, Rm::Reg(a), Some(0xb1)),
                }
                self.made(v, d);
            }
            NestOp::First | NestOp::Wrap => unreachable!("numbers of a vector are as wide as its lanes"),
        }
    }
    /// The first lane as a number.
    pub fn first(&mut self, v: NestValue, of: NestValue) {
        let r = self.vec(of, V0);
        let to = self.site(v);
        self.copy(NestSite::Float(r), to);
    }
    /// The first `lanes` of a vector: elements that are `stride` apart, one by one; the other lanes are zero.
    fn load_apart(&mut self, d: u8, from: Rm, wide: bool, stride: i32, lanes: i32) {
        let (size, half) = if wide { (8i64, 2) } else { (4, 4) };
        if stride == -1 && lanes == 2 * half {
            let first = self.further(from, -(32 - size));
            return self.turned(d, first, wide);
        }
        if stride == 1 {
            self.numbers(wide, V1, |k| if k < lanes as i64 { -1 } else { 0 });
            return self.e.vex(2, PD, false, if wide { 0x2d } else { 0x2c }, d, V1, from, None);
        }
        let place = |m: &mut Self, k: i32| m.further(from, k as i64 * stride as i64 * size);
        for (first, to) in [(0, V0), (half, V1)] {
            let end = lanes.min(first + half);
            if first >= end {
                return self.copy(NestSite::Vector(V0), NestSite::Vector(d));
            }
            let at = place(self, first);
            self.e.vex(1, if wide { 3 } else { 2 }, false, 0x10, to, 0, at, None);
            for k in first + 1..end {
                let at = place(self, k);
                if wide {
                    self.e.vex(1, 1, false, 0x16, to, to, at, None);
                } else {
                    self.e.vex(3, 1, false, 0x21, to, to, at, Some((k - first) as u8 * 16));
                }
            }
        }
        self.e.vex(3, PD, false, 0x18, d, V0, Rm::Reg(V1), Some(1));
    }
    /// The other way round.
    fn turned(&mut self, d: u8, from: Rm, wide: bool) {
        if wide {
            return self.e.vex(3, PD, true, 0x01, d, 0, from, Some(0x1b));
        }
        self.numbers(false, V2, |k| 7 - k);
        self.e.vex(2, PD, false, 0x16, d, V2, from, None);
    }
    pub fn store_vector(
        &mut self,
        (array, index, offset): (u32, NestValue, i32),
        value: NestValue,
        dtype: DType,
        stride: i32,
    ) {
        let wide = self.nest.def(value).lanes == 4;
        let x = self.vec(value, V0);
        let to = self.element(array, index, offset, dtype);
        let size = if wide { 8i64 } else { 4 };
        if dtype == DType::Bool {
            self.e.vex(1, prefix(wide), false, 0x50, RDX, 0, Rm::Reg(x), None);
            let bytes = self.e.pool(0x0101_0101_0101_0101);
            self.e.vex(2, 3, true, 0xf5, RDX, RDX, bytes, None);
            return self.e.whole(!wide, &[0x89], RDX, to, &[]);
        }
        if wide && dtype.size() == 4 {
            // numbers of half the width
            if dtype == DType::F32 {
                self.e.vex(1, PD, false, 0x5a, V1, 0, Rm::Reg(x), None);
            } else {
                self.e.vex(3, PD, false, 0x19, x, 0, Rm::Reg(V1), Some(1));
                self.e.vex(1, 0, false, 0xc6, V1, x, Rm::Reg(V1), Some(0x88));
            }
            return self.e.vex(1, 0, false, 0x11, V1, 0, to, None);
        }
        match stride {
            1 => self.e.vex(1, PS, false, 0x11, x, 0, to, None),
            -1 => {
                self.turned(V1, Rm::Reg(x), wide);
                let first = self.further(to, -(32 - size));
                self.e.vex(1, PS, false, 0x11, V1, 0, first, None);
            }
            _ => {
                let place = |m: &mut Self, k: i32| m.further(to, k as i64 * stride as i64 * size);
                self.e.vex(3, PD, false, 0x19, x, 0, Rm::Reg(V1), Some(1));
                for (half, from) in [(0, x), (1, V1)] {
                    if wide {
                        let [low, high] = [place(self, 2 * half), place(self, 2 * half + 1)];
                        self.e.vex(1, 1, false, 0x13, from, 0, low, None);
                        self.e.vex(1, 1, false, 0x17, from, 0, high, None);
                    } else {
                        for k in 0..4 {
                            let at = place(self, 4 * half + k);
                            self.e.vex(3, 1, false, 0x17, from, 0, at, Some(k as u8));
                        }
                    }
                }
            }
        }
    }
    fn vector_un(&mut self, v: NestValue, def: &Def, f: Un) {
        let wide = def.lanes == 4;
        let a = self.vec(def.args[0], V1);
        let d = self.target(v, V0);
        let (all, sign) = if wide { (u64::MAX, 1 << 63) } else { (u32::MAX as u64, 1 << 31) };
        let (one, infinity) = match wide {
            true => (1f64.to_bits(), f64::INFINITY.to_bits()),
            false => (1f32.to_bits() as u64, f32::INFINITY.to_bits() as u64),
        };
        match f {
            Un::Not => {
                self.ones(V0);
                self.bits(XOR, d, a, Rm::Reg(V0));
            }
            Un::Neg | Un::Abs => {
                let (op, bits) = if f == Un::Neg { (XOR, sign) } else { (AND, all ^ sign) };
                self.repeated(wide, V0, bits);
                self.bits(op, d, a, Rm::Reg(V0));
            }
            Un::Floor | Un::Ceil | Un::RoundEven | Un::Trunc => {
                let how = match f {
                    Un::Floor => 1,
                    Un::Ceil => 2,
                    Un::Trunc => 3,
                    _ => 0,
                };
                self.e.vex(3, PD, false, if wide { 0x09 } else { 0x08 }, d, 0, Rm::Reg(a), Some(8 | how));
            }
            Un::Sqrt => self.packed(0x51, wide, d, 0, Rm::Reg(a)),
            Un::Rsqrt => {
                self.packed(0x51, wide, V1, 0, Rm::Reg(a));
                self.repeated(wide, V0, one);
                self.packed(0x5e, wide, d, V0, Rm::Reg(V1));
            }
            _ => {
                self.repeated(wide, V0, all ^ sign);
                self.bits(AND, V1, a, Rm::Reg(V0));
                self.repeated(wide, V0, infinity);
                self.packed_compared(LESS, wide, d, V1, Rm::Reg(V0));
            }
        }
        self.made(v, d);
    }
    fn vector_bin(&mut self, v: NestValue, def: &Def, f: Bin) {
        let (wide, of) = (def.lanes == 4, self.nest.dtype(def.args[0]));
        let [a, b, _] = def.args;
        let d = self.target(v, V0);
        if f.is_comparison() && of.is_float() {
            let (a, b, predicate) = match f {
                Bin::Eq => (a, b, EQUAL),
                Bin::Ne => (a, b, NOT_EQUAL),
                Bin::Lt => (a, b, LESS),
                Bin::Le => (a, b, NOT_GREATER),
                Bin::Gt => (b, a, LESS),
                _ => (b, a, NOT_GREATER),
            };
            let (a, b) = (self.vec(a, V1), self.rm(b));
            self.packed_compared(predicate, wide, d, a, b);
            return self.made(v, d);
        }
        if f.is_comparison() {
            let (a, b, is_equality, negated) = match f {
                Bin::Eq | Bin::Ne => (a, b, true, f == Bin::Ne),
                Bin::Gt | Bin::Le => (a, b, false, f == Bin::Le),
                _ => (b, a, false, f == Bin::Ge),
            };
            if is_equality {
                let (a, b) = (self.vec(a, V1), self.rm(b));
                self.e.vex(if wide { 2 } else { 1 }, PD, false, if wide { 0x29 } else { 0x76 }, d, a, b, None);
            } else {
                self.packed_greater(wide, of.is_signed(), d, a, b);
            }
            if negated {
                self.ones(V1);
                self.bits(XOR, d, d, Rm::Reg(V1));
            }
            return self.made(v, d);
        }
        if of.is_float() {
            let op = match f {
                Bin::Add => 0x58,
                Bin::Mul => 0x59,
                Bin::Sub => 0x5c,
                Bin::Div => 0x5e,
                _ => return self.vector_extreme(v, def, f),
            };
            let (a, b) = (self.vec(a, V1), self.rm(b));
            self.packed(op, wide, d, a, b);
            return self.made(v, d);
        }
        let is_truth = of == DType::Bool;
        let signed = of.is_signed();
        if wide && !is_truth && matches!(f, Bin::Mul | Bin::Max | Bin::Min) {
            return match f {
                Bin::Mul => self.vector_product(v, a, b),
                _ => self.vector_extreme_of_64_bits(v, f, signed, a, b),
            };
        }
        let (map, op) = match f {
            // counts of the width or more leave nothing, or the sign
            Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic => {
                let op = match f {
                    Bin::Shl => 0x47,
                    Bin::ShrLogical => 0x45,
                    _ => 0x46,
                };
                let (a, b) = (self.vec(a, V1), self.rm(b));
                self.e.vex(2, PD, wide, op, d, a, b, None);
                return self.made(v, d);
            }
            Bin::Or => (1, 0xeb),
            Bin::And => (1, 0xdb),
            Bin::Xor => (1, 0xef),
            Bin::Add | Bin::Max if is_truth => (1, 0xeb),
            Bin::Mul | Bin::Min if is_truth => (1, 0xdb),
            Bin::Add => (1, if wide { 0xd4 } else { 0xfe }),
            Bin::Sub => (1, if wide { 0xfb } else { 0xfa }),
            Bin::Mul => (2, 0x40),
            Bin::Max => (2, if signed { 0x3d } else { 0x3f }),
            _ => (2, if signed { 0x39 } else { 0x3b }),
        };
        let (a, b) = (self.vec(a, V1), self.rm(b));
        self.e.vex(map, PD, false, op, d, a, b, None);
        self.made(v, d);
    }
    /// `d = a > b`, of whole numbers.
    fn packed_greater(&mut self, wide: bool, signed: bool, d: u8, a: NestValue, b: NestValue) {
        let (map, op) = if wide { (2, 0x37) } else { (1, 0x66) };
        if signed {
            let (a, b) = (self.vec(a, V1), self.rm(b));
            return self.e.vex(map, PD, false, op, d, a, b, None);
        }
        // without their highest bits turned, greater numbers would be negative ones
        self.repeated(wide, V2, if wide { 1 << 63 } else { 1 << 31 });
        let a = self.vec(a, V1);
        self.bits(XOR, V1, a, Rm::Reg(V2));
        let b = self.rm(b);
        self.bits(XOR, V2, V2, b);
        self.e.vex(map, PD, false, op, d, V1, Rm::Reg(V2), None);
    }
    fn vector_extreme_of_64_bits(&mut self, v: NestValue, f: Bin, signed: bool, a: NestValue, b: NestValue) {
        self.packed_greater(true, signed, V0, a, b);
        let (greater, less) = if f == Bin::Max { (a, b) } else { (b, a) };
        let less = self.vec(less, V1);
        let greater = self.rm(greater);
        let d = self.target(v, V1);
        self.packed_blend(true, d, less, greater, V0);
        self.made(v, d);
    }
    /// The low halves of products of 64-bit numbers: of the low words, and 2^32 times the sum of both crosswise.
    fn vector_product(&mut self, v: NestValue, a: NestValue, b: NestValue) {
        let (a, b) = (self.vec(a, V1), self.vec(b, V2));
        // high words of one by low words of the other
        self.e.vex(1, PD, false, 0x73, 2, V0, Rm::Reg(a), Some(32));
        self.e.vex(1, PD, false, 0xf4, V0, V0, Rm::Reg(b), None);
        self.copy(NestSite::Vector(V0), NestSite::VectorFrame(self.aside()));
        self.e.vex(1, PD, false, 0x73, 2, V0, Rm::Reg(b), Some(32));
        self.e.vex(1, PD, false, 0xf4, V0, V0, Rm::Reg(a), None);
        let other = super::at(super::RBX, self.aside());
        self.e.vex(1, PD, false, 0xd4, V0, V0, other, None);
        self.e.vex(1, PD, false, 0x73, 6, V0, Rm::Reg(V0), Some(32));
        self.e.vex(1, PD, false, 0xf4, V1, a, Rm::Reg(b), None);
        let d = self.target(v, V1);
        self.e.vex(1, PD, false, 0xd4, d, V0, Rm::Reg(V1), None);
        self.made(v, d);
    }
    /// The place in the frame of a vector that is spilled for a moment: that of an operand of a call.
    fn aside(&self) -> i32 {
        8 * self.layout.calls as i32
    }
    /// As of single numbers (`floats.rs`).
    fn vector_extreme(&mut self, v: NestValue, def: &Def, f: Bin) {
        let (wide, [a, b, _]) = (def.lanes == 4, def.args);
        let x = self.vec(a, V1);
        let y = self.rm(b);
        self.packed(if f == Bin::Max { 0x5f } else { 0x5d }, wide, V0, x, y);
        let (predicate, inner, outer) = if f == Bin::Max { (NOT_EQUAL, OR, AND) } else { (EQUAL, AND, OR) };
        self.packed_compared(predicate, wide, V2, x, y);
        self.bits(inner, V2, V2, Rm::Reg(x));
        self.bits(outer, V0, V0, Rm::Reg(V2));
        self.packed_compared(UNORDERED, wide, V2, x, Rm::Reg(x));
        let d = self.target(v, V0);
        self.packed_blend(wide, d, V0, Rm::Reg(x), V2);
        self.made(v, d);
    }
    fn vector_convert(&mut self, v: NestValue, def: &Def, from: DType) {
        let wide = def.lanes == 4;
        let a = self.vec(def.args[0], V1);
        let d = self.target(v, V0);
        match (from, def.dtype) {
            (DType::Bool, to) => {
                self.repeated(wide, V0, Scalar::from_f64(to, 1.0).bits);
                self.bits(AND, d, a, Rm::Reg(V0));
            }
            (from, DType::Bool) if from.is_float() => {
                self.nothing(V0);
                self.packed_compared(NOT_EQUAL, wide, d, a, Rm::Reg(V0));
            }
            (_, DType::Bool) => {
                self.nothing(V0);
                let (map, op) = if wide { (2, 0x29) } else { (1, 0x76) };
                self.e.vex(map, PD, false, op, d, a, Rm::Reg(V0), None);
                self.ones(V1);
                self.bits(XOR, d, d, Rm::Reg(V1));
            }
            (DType::I32, DType::F32) => self.e.vex(1, PS, false, 0x5b, d, 0, Rm::Reg(a), None),
            _ => self.copy(NestSite::Vector(a), NestSite::Vector(d)),
        }
        self.made(v, d);
    }
}
