//! Functions of integers whose ranges decide them, and indices as sums.
//!
//! INVARIANT: the result is that of the function for all operands in their ranges.
use super::Rewriter;
use crate::nest::facts::{Linear, Range};
use crate::nest::{Def, NestOp, NestValue};
use ferrax_kernel::{Bin, DType, Un};

impl Rewriter<'_> {
    pub(super) fn emit(&mut self, op: NestOp, dtype: DType, args: &[NestValue]) -> NestValue {
        let mut all = [0; 3];
        all[..args.len()].copy_from_slice(args);
        let def = Def { op, dtype, args: all, lanes: 1, wide: false, is_exact: false };
        let full = Range::of(dtype);
        match op {
            NestOp::Const(bits) => self.constant(dtype, bits),
            NestOp::Bin(f) => self.bin(f, def),
            NestOp::Un(Un::Not) if dtype == DType::Bool => match self.range(args[0]).and_then(Range::is_one) {
                Some(x) => self.integer(DType::Bool, 1 - x),
                None => self.place(def, full, None),
            },
            NestOp::Select => self.select(def),
            NestOp::Convert(from) if from == dtype => args[0],
            NestOp::Convert(_) if full.is_some() && self.range(args[0]).is_some() && dtype != DType::Bool => {
                let range = self.range(args[0]).filter(|r| full.is_some_and(|all| all.contains(*r)));
                let sum = range.map(|_| self.sum(args[0]));
                self.place(def, range.or(full), sum)
            }
            NestOp::Convert(_) if dtype == DType::Bool && self.out.dtype(args[0]) == DType::Bool => args[0],
            NestOp::Wrap => match (self.range(args[0]), full) {
                (Some(r), Some(all)) if all.contains(r) => args[0],
                _ => self.place(def, full, None),
            },
            _ => self.place(def, full, None),
        }
    }
    pub(super) fn select(&mut self, def: Def) -> NestValue {
        let [p, t, f] = def.args;
        if t == f {
            return t;
        }
        if let Some(x) = self.range(p).and_then(Range::is_one) {
            return if x != 0 { t } else { f };
        }
        let range = self.range(t).zip(self.range(f)).map(|(a, b)| a.union(b));
        self.place(def, range, None)
    }
    pub(super) fn bin(&mut self, f: Bin, mut def: Def) -> NestValue {
        let [a, b, _] = def.args;
        let of = self.out.dtype(a);
        let Some((x, y)) = self.range(a).zip(self.range(b)) else {
            return self.place(def, Range::of(def.dtype), None);
        };
        if f.is_comparison() {
            let decided = self.difference(a, b).and_then(|d| Range::decides(f, d));
            return match decided {
                Some(holds) => self.integer(DType::Bool, holds as i128),
                None => self.place(def, Range::of(DType::Bool), None),
            };
        }
        if of == DType::Bool {
            return self.logic(f, def, x, y);
        }
        if let (Bin::Max | Bin::Min, Some(d)) = (f, self.difference(a, b)) {
            if d.lo >= 0 {
                return if f == Bin::Max { a } else { b };
            }
            if d.hi <= 0 {
                return if f == Bin::Max { b } else { a };
            }
        }
        match (f, y.is_one()) {
            (Bin::And, Some(mask)) if x.lo >= 0 && mask >= 0 && (mask + 1) & mask == 0 && x.hi <= mask => return a,
            (Bin::Div, Some(1)) => return a,
            (Bin::Div, Some(by)) if x.lo >= 0 && by > 0 && by & (by - 1) == 0 => {
                let shift = self.integer(of, by.trailing_zeros() as i128);
                return self.emit(NestOp::Bin(Bin::ShrLogical), def.dtype, &[a, shift]);
            }
            (Bin::Rem, Some(by)) if x.lo >= 0 && by > 0 && by & (by - 1) == 0 => {
                let mask = self.integer(of, by - 1);
                return self.emit(NestOp::Bin(Bin::And), def.dtype, &[a, mask]);
            }
            (Bin::Rem, Some(by)) if x.lo >= 0 && x.hi < by => return a,
            (Bin::Xor | Bin::Or | Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic, Some(0)) => return a,
            _ => (),
        }
        let all = Range::of(def.dtype);
        let bits = i128::from(def.dtype.bits());
        let is_plain = match f {
            Bin::Div | Bin::Rem => y.lo > 0 || y.hi < -1,
            Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic => y.lo >= 0 && y.hi < bits,
            _ => true,
        };
        if !is_plain && let Some(callee) = self.raw.callees.get(&(f, def.dtype)).copied() {
            // for a divisor of 0 or -1, or a shift by the width or more, the machine's instruction
            // gives another result
            def.op = NestOp::Call(callee, 2);
            return self.place(def, all, None);
        }
        let shift = Range::shift(f, y, def.dtype.bits());
        let exact = Range::bin_or_shift(f, x, y, shift).filter(|r| all.is_some_and(|all| all.contains(*r)));
        let sum = exact.and_then(|_| Linear::bin(f, [&self.sum(a), &self.sum(b)], [x, y], shift));
        if matches!(f, Bin::Add | Bin::Mul | Bin::And | Bin::Or | Bin::Xor) && x.is_one().is_some() {
            // constants last, where an instruction takes them
            def.args = [b, a, 0];
        }
        self.place(def, exact.or(all), sum)
    }
    pub(super) fn logic(&mut self, f: Bin, def: Def, x: Range, y: Range) -> NestValue {
        let [a, b, _] = def.args;
        match (f, x.is_one(), y.is_one()) {
            (Bin::And | Bin::Mul | Bin::Min, Some(0), _) | (Bin::Or | Bin::Add | Bin::Max, Some(1), _) => a,
            (Bin::And | Bin::Mul | Bin::Min, _, Some(0)) | (Bin::Or | Bin::Add | Bin::Max, _, Some(1)) => b,
            (Bin::And | Bin::Mul | Bin::Min, Some(1), _) | (Bin::Or | Bin::Add | Bin::Max, Some(0), _) => b,
            (Bin::And | Bin::Mul | Bin::Min, _, Some(1)) | (Bin::Or | Bin::Add | Bin::Max, _, Some(0)) => a,
            _ => self.place(def, Range::of(DType::Bool), None),
        }
    }
    /// An index as a value and a constant behind it.
    pub(super) fn address(&mut self, index: NestValue) -> (NestValue, i64) {
        let sum = self.sum(index);
        let (constant, mut terms) = (sum.constant, sum.terms.clone());
        if i32::try_from(constant.saturating_mul(8)).is_err() || terms.is_empty() {
            let at = terms.is_empty().then_some(constant).filter(|c| i32::try_from(c.saturating_mul(8)).is_ok());
            return match at {
                Some(c) => (self.integer(DType::I64, 0), c),
                None => (index, 0),
            };
        }
        terms.sort_by_key(|t| (self.levels[t.0 as usize], t.0));
        let mut total = None;
        for (v, by) in terms {
            let wide = self.wide(v);
            let factor = self.integer(DType::I64, by as i128);
            let term = self.emit(NestOp::Bin(Bin::Mul), DType::I64, &[wide, factor]);
            total = Some(match total {
                None => term,
                Some(t) => self.emit(NestOp::Bin(Bin::Add), DType::I64, &[t, term]),
            });
        }
        (total.unwrap_or(index), constant)
    }
    pub(super) fn wide(&mut self, v: NestValue) -> NestValue {
        let from = self.out.dtype(v);
        if from.size() == 8 { v } else { self.emit(NestOp::Convert(from), DType::I64, &[v]) }
    }
}
