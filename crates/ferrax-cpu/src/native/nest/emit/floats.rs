//! Instructions on single floats, and conversions from and to them.
use super::{Emitter, NestSite, RegisterKind, V0, V1, V2};
use crate::instructions::opcodes::{Opcode, Shape, one};
use crate::native::encode::{RAX, Rm};
use crate::nest::{NestOp, NestValue};
use ferrax_kernel::{Bin, DType, Scalar, Un};

/// Predicates of comparisons.
const EQUAL: Opcode = Opcode::Compare(0);
const LESS: Opcode = Opcode::Compare(1);
const NOT_GREATER: Opcode = Opcode::Compare(2);
const UNORDERED: Opcode = Opcode::Compare(3);
const NOT_EQUAL: Opcode = Opcode::Compare(4);

impl Emitter<'_> {
    pub(super) fn op(&mut self, code: Opcode, shape: Shape, d: u8, a: u8, b: Rm) {
        self.e.op(code, shape, d, a, b, 0);
    }
    /// `d = mask ? b : a`.
    pub(super) fn blend(&mut self, shape: Shape, d: u8, a: u8, b: Rm, mask: u8) {
        self.e.op(Opcode::Blend, shape, d, a, b, mask);
    }
    /// `d =` the mask of a comparison.
    pub(super) fn float_mask(&mut self, f: Bin, a: NestValue, b: NestValue, shape: Shape, d: u8) {
        let (a, b, code) = match f {
            Bin::Eq => (a, b, EQUAL),
            Bin::Ne => (a, b, NOT_EQUAL),
            Bin::Lt => (a, b, LESS),
            Bin::Le => (a, b, NOT_GREATER),
            Bin::Gt => (b, a, LESS),
            _ => (b, a, NOT_GREATER),
        };
        let (a, b) = (self.float(a, V1), self.rm(b));
        self.op(code, shape, d, a, b);
    }
    pub(super) fn float_bin(&mut self, v: NestValue, f: Bin) {
        let (shape, [a, b, _]) = (self.shape(v), self.nest.def(v).args);
        let code = match f {
            Bin::Add => Opcode::Add,
            Bin::Mul => Opcode::Mul,
            Bin::Sub => Opcode::Sub,
            Bin::Div => Opcode::Div,
            _ => return self.float_extreme(v, f),
        };
        let d = self.target(v, V0);
        let (a, b) = (self.float(a, V1), self.rm(b));
        self.op(code, shape, d, a, b);
        self.done(v, d);
    }
    /// Nan if either is; of equals, zeros among them, the bits of both.
    fn float_extreme(&mut self, v: NestValue, f: Bin) {
        let (shape, [a, b, _]) = (self.shape(v), self.nest.def(v).args);
        let (x, y) = (self.float(a, V1), self.rm(b));
        let (code, differ, inner, outer) = match f {
            Bin::Max => (Opcode::Max, NOT_EQUAL, Opcode::Or, Opcode::And),
            _ => (Opcode::Min, EQUAL, Opcode::And, Opcode::Or),
        };
        // the machine's gives the second where they are equal, or one is nan
        self.op(code, shape, V0, x, y);
        self.op(differ, shape, V2, x, y);
        self.op(inner, shape, V2, V2, Rm::Reg(x));
        self.op(outer, shape, V0, V0, Rm::Reg(V2));
        self.op(UNORDERED, shape, V2, x, Rm::Reg(x));
        let d = self.target(v, V0);
        self.blend(shape, d, V0, Rm::Reg(x), V2);
        self.done(v, d);
    }
    pub(super) fn select_float(&mut self, v: NestValue) {
        let (shape, [p, t, f]) = (self.shape(v), self.nest.def(v).args);
        let def = *self.nest.def(p);
        let of = if self.order.fused[p as usize] { self.kind(def.args[0]) } else { RegisterKind::Whole(false) };
        if let (RegisterKind::Float(w), NestOp::Bin(g)) = (of, def.op) {
            self.float_mask(g, def.args[0], def.args[1], Shape::one(w), V0);
        } else {
            if self.order.fused[p as usize] {
                let holds = self.compare(p);
                self.truth(holds);
            } else {
                let from = self.site(p);
                self.copy(from, NestSite::Whole(RAX));
            }
            self.truth_to_mask(shape.wide);
        }
        let no = self.float(f, V1);
        let yes = self.rm(t);
        let d = self.target(v, V1);
        self.blend(shape, d, no, yes, V0);
        self.done(v, d);
    }
    pub(super) fn settle(&mut self, v: NestValue) {
        let shape = self.shape(v);
        let a = self.float(self.nest.def(v).args[0], V1);
        self.op(UNORDERED, shape, V0, a, Rm::Reg(a));
        let nan = self.e.pool(shape.wide, Scalar::from_f64(self.nest.dtype(v), f64::NAN).bits);
        let d = self.target(v, V1);
        self.blend(shape, d, a, nan, V0);
        self.done(v, d);
    }
    /// A function of a float, or of a truth value.
    pub(super) fn un(&mut self, v: NestValue, f: Un) {
        let a = self.nest.def(v).args[0];
        if !matches!(self.kind(a), RegisterKind::Float(_)) {
            let from = self.site(a);
            self.copy(from, NestSite::Whole(RAX));
            self.e.whole(false, &[0x83], 6, Rm::Reg(RAX), &[1]);
            return self.done(v, RAX);
        }
        let shape = self.shape(a);
        let (sign, one, infinity) = match shape.wide {
            true => (1 << 63, 1f64.to_bits(), f64::INFINITY.to_bits()),
            false => (1 << 31, 1f32.to_bits() as u64, f32::INFINITY.to_bits() as u64),
        };
        let (a, d) = (self.float(a, V1), self.target(v, V0));
        let with = |m: &mut Self, code: Opcode, d: u8, bits: u64| {
            let bits = m.e.pool(shape.wide, bits);
            m.op(code, shape, d, a, bits);
        };
        match f {
            Un::Neg => with(self, Opcode::Xor, d, sign),
            Un::Abs => with(self, Opcode::And, d, sign - 1),
            Un::RoundEven => self.op(Opcode::Round(0), shape, d, a, Rm::Reg(a)),
            Un::Floor => self.op(Opcode::Round(1), shape, d, a, Rm::Reg(a)),
            Un::Ceil => self.op(Opcode::Round(2), shape, d, a, Rm::Reg(a)),
            Un::Trunc => self.op(Opcode::Round(3), shape, d, a, Rm::Reg(a)),
            Un::Sqrt => self.op(Opcode::Sqrt, shape, d, a, Rm::Reg(a)),
            Un::Rsqrt => {
                self.op(Opcode::Sqrt, shape, V1, a, Rm::Reg(a));
                self.constant(shape, V0, one);
                self.op(Opcode::Div, shape, d, V0, Rm::Reg(V1));
            }
            Un::IsFinite => {
                with(self, Opcode::And, V0, sign - 1);
                let infinity = self.e.pool(shape.wide, infinity);
                self.op(LESS, shape, V0, V0, infinity);
                self.mask_to_truth();
                return self.done(v, RAX);
            }
            _ => unreachable!("{f:?} is called"),
        }
        self.done(v, d);
    }
    pub(super) fn convert(&mut self, v: NestValue, from: DType) {
        let a = self.nest.def(v).args[0];
        let to = self.nest.dtype(v);
        match (super::kind(from), self.kind(v)) {
            (RegisterKind::Whole(wide), RegisterKind::Float(double)) => {
                let from_wide = wide || from == DType::U32;
                let r = self.whole(a, RAX);
                let d = self.target(v, V0);
                self.op(Opcode::Xor, Shape::one(false), V1, V1, Rm::Reg(V1));
                self.e.vector(&one(1, 2 | double as u8, 0x2a).wide(from_wide), d, V1, Rm::Reg(r), None);
                self.done(v, d);
            }
            (RegisterKind::Float(double), RegisterKind::Float(_)) => {
                let r = self.float(a, V1);
                let d = self.target(v, V0);
                self.e.vector(&one(1, 2 | double as u8, 0x5a), d, r, Rm::Reg(r), None);
                self.done(v, d);
            }
            (RegisterKind::Float(double), RegisterKind::Whole(_)) => {
                // to a truth value: not equal to zero
                let a = self.float(a, V1);
                let zero = self.e.pool(true, 0);
                self.op(NOT_EQUAL, Shape::one(double), V0, a, zero);
                self.mask_to_truth();
                self.done(v, RAX);
            }
            (RegisterKind::Whole(wide), RegisterKind::Whole(_)) => {
                let r = self.whole(a, RAX);
                if to == DType::Bool {
                    self.e.whole(wide, &[0x85], r, Rm::Reg(r), &[]);
                    self.truth(crate::native::encode::cc::NOT_EQUAL);
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
