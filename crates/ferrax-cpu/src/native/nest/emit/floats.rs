//! Instructions on floats, and conversions from and to floats.
use super::{Emitter, NestSite, RAX, RegisterKind, V0, V1, V2};
use crate::native::nest::encode::Rm;
use crate::nest::{NestOp, NestValue};
use ferrax_kernel::{Bin, DType, Scalar, Un};

/// Predicates of comparisons, and operations on masks: of one number and of vectors.
pub(super) const EQUAL: u8 = 0;
pub(super) const LESS: u8 = 1;
pub(super) const NOT_GREATER: u8 = 2;
pub(super) const UNORDERED: u8 = 3;
pub(super) const NOT_EQUAL: u8 = 4;
pub(super) const AND: u8 = 0x54;
pub(super) const OR: u8 = 0x56;

fn prefix(wide: bool) -> u8 {
    if wide { 3 } else { 2 }
}

impl Emitter<'_> {
    fn arithmetic(&mut self, op: u8, wide: bool, d: u8, a: u8, b: Rm) {
        self.e.vex(1, prefix(wide), false, op, d, a, b, None);
    }
    fn compared(&mut self, predicate: u8, wide: bool, d: u8, a: u8, b: Rm) {
        self.e.vex(1, prefix(wide), false, 0xc2, d, a, b, Some(predicate));
    }
    /// `d = mask ? b : a`.
    fn blend(&mut self, wide: bool, d: u8, a: u8, b: Rm, mask: u8) {
        self.e.vex(3, 1, false, if wide { 0x4b } else { 0x4a }, d, a, b, Some(mask << 4));
    }
    /// The mask of a comparison, in the first vector.
    pub fn float_mask(&mut self, f: Bin, a: NestValue, b: NestValue, wide: bool) {
        let (a, b, predicate) = match f {
            Bin::Eq => (a, b, EQUAL),
            Bin::Ne => (a, b, NOT_EQUAL),
            Bin::Lt => (a, b, LESS),
            Bin::Le => (a, b, NOT_GREATER),
            Bin::Gt => (b, a, LESS),
            _ => (b, a, NOT_GREATER),
        };
        let a = self.float(a, V0);
        let b = self.rm(b);
        self.compared(predicate, wide, V0, a, b);
    }
    pub fn float_bin(&mut self, v: NestValue, f: Bin, wide: bool) {
        let [a, b, _] = self.nest.def(v).args;
        let d = self.target(v, V0);
        let op = match f {
            Bin::Add => 0x58,
            Bin::Mul => 0x59,
            Bin::Sub => 0x5c,
            Bin::Div => 0x5e,
            _ => {
                self.float_extreme(v, f, wide);
                return;
            }
        };
        let a = self.float(a, V1);
        let b = self.rm(b);
        self.arithmetic(op, wide, d, a, b);
        self.done(v, d);
    }
    /// Nan if either is; of equals, zeros among them, the bits of both.
    fn float_extreme(&mut self, v: NestValue, f: Bin, wide: bool) {
        let [a, b, _] = self.nest.def(v).args;
        let x = self.float(a, V1);
        let y = self.rm(b);
        // the machine's gives the second where they are equal, or one is nan
        self.arithmetic(if f == Bin::Max { 0x5f } else { 0x5d }, wide, V0, x, y);
        let (predicate, inner, outer) = if f == Bin::Max { (NOT_EQUAL, OR, AND) } else { (EQUAL, AND, OR) };
        self.compared(predicate, wide, V2, x, y);
        self.e.vex(1, 0, false, inner, V2, V2, Rm::Reg(x), None);
        self.e.vex(1, 0, false, outer, V0, V0, Rm::Reg(V2), None);
        self.compared(UNORDERED, wide, V2, x, Rm::Reg(x));
        let d = self.target(v, V0);
        self.blend(wide, d, V0, Rm::Reg(x), V2);
        self.done(v, d);
    }
    pub fn select_float(&mut self, v: NestValue, wide: bool) {
        let [p, t, f] = self.nest.def(v).args;
        let def = *self.nest.def(p);
        let of = if self.order.fused[p as usize] { self.kind(def.args[0]) } else { RegisterKind::Whole(false) };
        if let (RegisterKind::Float(w), NestOp::Bin(g)) = (of, def.op) {
            self.float_mask(g, def.args[0], def.args[1], w);
        } else {
            if self.order.fused[p as usize] {
                let holds = self.compare(p);
                self.e.whole(false, &[0x0f, 0x90 | holds], 0, Rm::Reg(RAX), &[]);
                self.e.whole(false, &[0x0f, 0xb6], RAX, Rm::Reg(RAX), &[]);
            } else {
                let from = self.site(p);
                self.copy(from, NestSite::Whole(RAX));
            }
            self.e.whole(wide, &[0xf7], 3, Rm::Reg(RAX), &[]);
            self.e.vex(1, 1, wide, 0x6e, V0, 0, Rm::Reg(RAX), None);
        }
        let d = self.target(v, V1);
        let no = self.float(f, V1);
        let yes = self.rm(t);
        self.blend(wide, d, no, yes, V0);
        self.done(v, d);
    }
    pub fn settle(&mut self, v: NestValue) {
        let wide = self.kind(v) == RegisterKind::Float(true);
        let a = self.float(self.nest.def(v).args[0], V1);
        self.compared(UNORDERED, wide, V0, a, Rm::Reg(a));
        let nan = self.e.pool(Scalar::from_f64(self.nest.dtype(v), f64::NAN).bits);
        let d = self.target(v, V1);
        self.blend(wide, d, a, nan, V0);
        self.done(v, d);
    }
    pub fn un(&mut self, v: NestValue, f: Un) {
        let a = self.nest.def(v).args[0];
        let RegisterKind::Float(wide) = self.kind(a) else {
            // of truth values
            let from = self.site(a);
            self.copy(from, NestSite::Whole(RAX));
            self.e.whole(false, &[0x83], 6, Rm::Reg(RAX), &[1]);
            return self.done(v, RAX);
        };
        let sign: u64 = if wide { 1 << 63 } else { 1 << 31 };
        let (all, one, infinity) = match wide {
            true => (u64::MAX, 1f64.to_bits(), f64::INFINITY.to_bits()),
            false => (u32::MAX as u64, 1f32.to_bits() as u64, f32::INFINITY.to_bits() as u64),
        };
        let d = self.target(v, V0);
        match f {
            Un::Neg | Un::Abs => {
                let a = self.float(a, V1);
                let (op, bits) = if f == Un::Neg { (0x57, sign) } else { (0x54, all ^ sign) };
                let bits = self.e.pool(bits);
                self.e.vex(1, 0, false, op, d, a, bits, None);
            }
            Un::Floor | Un::Ceil | Un::RoundEven | Un::Trunc => {
                let a = self.float(a, V1);
                let how = match f {
                    Un::Floor => 1,
                    Un::Ceil => 2,
                    Un::Trunc => 3,
                    _ => 0,
                };
                self.e.vex(3, 1, false, if wide { 0x0b } else { 0x0a }, d, a, Rm::Reg(a), Some(8 | how));
            }
            Un::Sqrt => {
                let a = self.float(a, V1);
                self.arithmetic(0x51, wide, d, a, Rm::Reg(a));
            }
            Un::Rsqrt => {
                let a = self.float(a, V1);
                self.arithmetic(0x51, wide, V1, a, Rm::Reg(a));
                self.copy(NestSite::Bits(one), NestSite::Float(V0));
                self.arithmetic(0x5e, wide, d, V0, Rm::Reg(V1));
            }
            Un::IsFinite => {
                let a = self.float(a, V1);
                let bits = self.e.pool(all ^ sign);
                self.e.vex(1, 0, false, 0x54, V0, a, bits, None);
                let infinity = self.e.pool(infinity);
                self.compared(LESS, wide, V0, V0, infinity);
                self.mask_to_truth();
                return self.done(v, RAX);
            }
            _ => unreachable!("{f:?} is called"),
        }
        self.done(v, d);
    }
    pub fn convert(&mut self, v: NestValue, from: DType) {
        let a = self.nest.def(v).args[0];
        let to = self.nest.dtype(v);
        match (super::kind(from), self.kind(v)) {
            (RegisterKind::Whole(wide), RegisterKind::Float(double)) => {
                let from_wide = wide || from == DType::U32;
                let r = self.whole(a, RAX);
                let d = self.target(v, V0);
                self.e.vex(1, 0, false, 0x57, V1, V1, Rm::Reg(V1), None);
                self.e.vex(1, prefix(double), from_wide, 0x2a, d, V1, Rm::Reg(r), None);
                self.done(v, d);
            }
            (RegisterKind::Float(double), RegisterKind::Float(_)) => {
                let r = self.float(a, V1);
                let d = self.target(v, V0);
                self.e.vex(1, prefix(double), false, 0x5a, d, r, Rm::Reg(r), None);
                self.done(v, d);
            }
            (RegisterKind::Float(double), RegisterKind::Whole(_)) => {
                // to a truth value: not equal to zero
                let a = self.float(a, V1);
                let zero = self.e.pool(0);
                self.compared(NOT_EQUAL, double, V0, a, zero);
                self.mask_to_truth();
                self.done(v, RAX);
            }
            (RegisterKind::Whole(wide), RegisterKind::Whole(_)) => {
                let r = self.whole(a, RAX);
                if to == DType::Bool {
                    self.e.whole(wide, &[0x85], r, Rm::Reg(r), &[]);
                    self.e.whole(false, &[0x0f, 0x95], 0, Rm::Reg(RAX), &[]);
                    self.e.whole(false, &[0x0f, 0xb6], RAX, Rm::Reg(RAX), &[]);
                    return self.done(v, RAX);
                }
                let d = self.target(v, RAX);
                match to.size() {
                    8 if !wide && from.is_signed() => self.e.whole(true, &[0x63], d, Rm::Reg(r), &[]),
                    8 if wide => self.e.whole(true, &[0x8b], d, Rm::Reg(r), &[]),
                    8 => self.e.whole(false, &[0x8b], d, Rm::Reg(r), &[]),
                    _ => self.widen(to, d, Rm::Reg(r)),
                }
                self.done(v, d);
            }
        }
    }
}
