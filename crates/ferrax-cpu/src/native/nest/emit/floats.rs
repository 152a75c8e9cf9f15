//! Instructions on single floats, and conversions from and to them.
use super::{Emitter, NestSite, RegisterKind, V0, V1};
use crate::instructions::opcodes::{Opcode, Shape, one};
use crate::instructions::record::{EQ, LE, LT, NE};
use crate::native::encode::{RAX, Rm};
use crate::nest::{NestOp, NestValue};
use ferrax_kernel::{Bin, DType, Un};

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
        let (a, b, predicate) = match f {
            Bin::Eq => (a, b, EQ),
            Bin::Ne => (a, b, NE),
            Bin::Lt => (a, b, LT),
            Bin::Le => (a, b, LE),
            Bin::Gt => (b, a, LT),
            _ => (b, a, LE),
        };
        let (a, b) = (self.float(a, V1), self.rm(b));
        self.op(Opcode::Compare(predicate), shape, d, a, b);
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
    /// The complement of a truth value, or whether a float is finite.
    pub(super) fn un(&mut self, v: NestValue, f: Un) {
        let a = self.nest.def(v).args[0];
        if f == Un::IsFinite {
            let (shape, a) = (self.shape(a), self.float(a, V1));
            let (sign, infinity) = match shape.wide {
                true => (1 << 63, f64::INFINITY.to_bits()),
                false => (1 << 31, f32::INFINITY.to_bits() as u64),
            };
            let [magnitude, infinity] = [sign - 1, infinity].map(|bits| self.e.pool(shape.wide, bits));
            self.op(Opcode::And, shape, V0, a, magnitude);
            self.op(Opcode::Compare(LT), shape, V0, V0, infinity);
            self.mask_to_truth();
            return self.done(v, RAX);
        }
        let from = self.site(a);
        self.copy(from, NestSite::Whole(RAX));
        self.e.whole(false, &[0x83], 6, Rm::Reg(RAX), &[1]);
        self.done(v, RAX);
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
                self.op(Opcode::Compare(NE), Shape::one(double), V0, a, zero);
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
