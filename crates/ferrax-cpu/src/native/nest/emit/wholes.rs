//! Instructions on integers and truth values.
use super::{Emitter, NestSite, RegisterKind, V0, as_immediate};
use crate::instructions::opcodes::{Shape, from_whole, one, to_whole};
use crate::native::encode::{RAX, RCX, RDX, Rm, cc};
use crate::nest::{NestOp, NestValue};
use ferrax_kernel::{Bin, DType};

impl Emitter<'_> {
    /// A number of this dtype as its lane.
    pub fn widen(&mut self, d: DType, to: u8, from: Rm) {
        match d {
            DType::I8 => self.e.whole(false, &[0x0f, 0xbe], to, from, &[]),
            DType::I16 => self.e.whole(false, &[0x0f, 0xbf], to, from, &[]),
            DType::U8 | DType::Bool => self.e.whole(false, &[0x0f, 0xb6], to, from, &[]),
            DType::U16 => self.e.whole(false, &[0x0f, 0xb7], to, from, &[]),
            _ => self.e.whole(d.size() == 8, &[0x8b], to, from, &[]),
        }
    }
    /// An operand of an instruction that takes no constant of the pool.
    fn second(&mut self, v: NestValue, other: u8) -> Rm {
        match self.site(v) {
            NestSite::Bits(_) => Rm::Reg(self.whole(v, other)),
            _ => self.rm(v),
        }
    }
    pub fn whole_bin(&mut self, v: NestValue, f: Bin, wide: bool) {
        let [a, b, _] = self.nest.def(v).args;
        let of = self.nest.dtype(a);
        let f = match (f, of == DType::Bool) {
            (Bin::Add | Bin::Max, true) => Bin::Or,
            (Bin::Mul | Bin::Min, true) => Bin::And,
            (f, _) => f,
        };
        match f {
            Bin::Max | Bin::Min => return self.extreme(v, f, wide),
            Bin::Div | Bin::Rem => return self.divide(v, f, wide),
            Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic => return self.shift(v, f, wide),
            Bin::Mul => return self.multiply(v, wide),
            _ => (),
        }
        let (extension, op) = match f {
            Bin::Add => (0, 0x03),
            Bin::Sub => (5, 0x2b),
            Bin::And => (4, 0x23),
            Bin::Or => (1, 0x0b),
            _ => (6, 0x33),
        };
        let d = self.target(v, RAX);
        let constant = if let NestSite::Bits(x) = self.site(b) { as_immediate(wide, x) } else { None };
        // a sum into a third register
        if let (Bin::Add, NestSite::Whole(x)) = (f, self.site(a))
            && x != d
        {
            let place = match (constant, self.site(b)) {
                (Some(offset), _) => Some(Rm::At { base: x, index: None, offset }),
                (_, NestSite::Whole(y)) => Some(Rm::At { base: x, index: Some((y, 1)), offset: 0 }),
                _ => None,
            };
            if let Some(place) = place {
                self.e.whole(wide, &[0x8d], d, place, &[]);
                return self.done(v, d);
            }
        }
        let second = self.site(b);
        // an operand in the result's register is read first
        let into = if second == NestSite::Whole(d) && self.site(a) != NestSite::Whole(d) { RAX } else { d };
        let from = self.site(a);
        self.copy(from, NestSite::Whole(into));
        match constant {
            Some(x) => self.e.whole(wide, &[0x81], extension, Rm::Reg(into), &x.to_le_bytes()),
            None => {
                let b = self.second(b, RCX);
                self.e.whole(wide, &[op], into, b, &[]);
            }
        }
        self.done(v, into);
    }
    fn multiply(&mut self, v: NestValue, wide: bool) {
        let [a, b, _] = self.nest.def(v).args;
        let d = self.target(v, RAX);
        if let NestSite::Bits(x) = self.site(b)
            && let Some(x) = as_immediate(wide, x)
        {
            let a = self.second(a, RCX);
            self.e.whole(wide, &[0x69], d, a, &x.to_le_bytes());
            return self.done(v, d);
        }
        let from = self.site(a);
        self.copy(from, NestSite::Whole(RAX));
        let b = self.second(b, RCX);
        self.e.whole(wide, &[0x0f, 0xaf], RAX, b, &[]);
        self.done(v, RAX);
    }
    fn extreme(&mut self, v: NestValue, f: Bin, wide: bool) {
        let [a, b, _] = self.nest.def(v).args;
        let signed = self.nest.dtype(a).is_signed();
        let from = self.site(a);
        self.copy(from, NestSite::Whole(RAX));
        let b = self.second(b, RCX);
        self.e.whole(wide, &[0x3b], RAX, b, &[]);
        let other = match (f == Bin::Max, signed) {
            (true, true) => cc::LESS,
            (true, false) => cc::BELOW,
            (false, true) => cc::NOT_GREATER ^ 1,
            (false, false) => cc::NOT_ABOVE ^ 1,
        };
        self.e.whole(wide, &[0x0f, 0x40 | other], RAX, b, &[]);
        self.done(v, RAX);
    }
    /// Divides by a divisor that is neither 0 nor -1.
    fn divide(&mut self, v: NestValue, f: Bin, wide: bool) {
        let [a, b, _] = self.nest.def(v).args;
        let signed = self.nest.dtype(a).is_signed();
        let (first, second) = (self.site(a), self.site(b));
        self.copy(second, NestSite::Whole(RCX));
        self.copy(first, NestSite::Whole(RAX));
        if signed {
            self.e.bytes(if wide { &[0x48, 0x99] } else { &[0x99] });
        } else {
            self.e.set(RDX, 0);
        }
        self.e.whole(wide, &[0xf7], if signed { 7 } else { 6 }, Rm::Reg(RCX), &[]);
        self.done(v, if f == Bin::Div { RAX } else { RDX });
    }
    /// By less than the width.
    fn shift(&mut self, v: NestValue, f: Bin, wide: bool) {
        let [a, b, _] = self.nest.def(v).args;
        let (extension, prefix) = match f {
            Bin::Shl => (4, 1),
            Bin::ShrLogical => (5, 3),
            _ => (7, 2),
        };
        let d = self.target(v, RAX);
        if let NestSite::Bits(n) = self.site(b) {
            let from = self.site(a);
            self.copy(from, NestSite::Whole(d));
            self.e.whole(wide, &[0xc1], extension, Rm::Reg(d), &[n as u8]);
            return self.done(v, d);
        }
        let by = self.whole(b, RCX);
        let a = self.second(a, RDX);
        self.e.vector(&one(2, prefix, 0xf7).wide(wide), d, by, a, None);
        self.done(v, d);
    }
    /// A truth value as 0 or 1 in a register.
    pub fn truth(&mut self, condition: u8) {
        self.e.whole(false, &[0x0f, 0x90 | condition], 0, Rm::Reg(RAX), &[]);
        self.e.whole(false, &[0x0f, 0xb6], RAX, Rm::Reg(RAX), &[]);
    }
    pub fn comparison(&mut self, v: NestValue, f: Bin) {
        let [a, b, _] = self.nest.def(v).args;
        if let RegisterKind::Float(wide) = self.kind(a) {
            self.float_mask(f, a, b, Shape::one(wide), V0);
            self.mask_to_truth();
            return self.done(v, RAX);
        }
        if self.nest.dtype(a) != DType::Bool {
            let holds = self.compare(v);
            self.truth(holds);
            return self.done(v, RAX);
        }
        // of truth values
        let (first, second) = (self.site(a), self.site(b));
        self.copy(first, NestSite::Whole(RAX));
        self.copy(second, NestSite::Whole(RCX));
        let turn = |m: &mut Self, r: u8| m.e.whole(false, &[0x83], 6, Rm::Reg(r), &[1]);
        match f {
            Bin::Ne => self.e.whole(false, &[0x33], RAX, Rm::Reg(RCX), &[]),
            Bin::Eq => {
                self.e.whole(false, &[0x33], RAX, Rm::Reg(RCX), &[]);
                turn(self, RAX);
            }
            _ => {
                let (first, op) = match f {
                    Bin::Lt => (true, 0x23),
                    Bin::Gt => (false, 0x23),
                    Bin::Le => (true, 0x0b),
                    _ => (false, 0x0b),
                };
                turn(self, if first { RAX } else { RCX });
                self.e.whole(false, &[op], RAX, Rm::Reg(RCX), &[]);
            }
        }
        self.done(v, RAX);
    }
    /// The mask in the first vector of a truth value in rax.
    pub fn truth_to_mask(&mut self, wide: bool) {
        self.e.whole(wide, &[0xf7], 3, Rm::Reg(RAX), &[]);
        self.e.vector(&from_whole(wide), V0, 0, Rm::Reg(RAX), None);
    }
    /// The truth value in rax of a mask in the first vector.
    pub fn mask_to_truth(&mut self) {
        self.e.vector(&to_whole(false), V0, 0, Rm::Reg(RAX), None);
        self.e.whole(false, &[0x83], 4, Rm::Reg(RAX), &[1]);
    }
    pub fn select_whole(&mut self, v: NestValue, wide: bool) {
        let [p, t, f] = self.nest.def(v).args;
        let is_float = self.order.fused[p as usize] && self.nest.def(self.nest.def(p).args[0]).is_float();
        // the operands, before the flags
        let holds = if self.order.fused[p as usize] && !is_float {
            self.compare(p)
        } else {
            if is_float {
                let def = *self.nest.def(p);
                let (NestOp::Bin(g), RegisterKind::Float(w)) = (def.op, self.kind(def.args[0])) else {
                    unreachable!("floats")
                };
                self.float_mask(g, def.args[0], def.args[1], Shape::one(w), V0);
                self.mask_to_truth();
            } else {
                let from = self.site(p);
                self.copy(from, NestSite::Whole(RAX));
            }
            self.e.whole(false, &[0x84], RAX, Rm::Reg(RAX), &[]);
            cc::NOT_EQUAL
        };
        // moves leave flags as they are
        let (yes, no) = (self.site(t), self.site(f));
        self.copy(no, NestSite::Whole(RDX));
        let t = match yes {
            NestSite::Bits(_) => {
                self.copy(yes, NestSite::Whole(RCX));
                Rm::Reg(RCX)
            }
            _ => self.rm(t),
        };
        self.e.whole(wide, &[0x0f, 0x40 | holds], RDX, t, &[]);
        self.done(v, RDX);
    }
}
