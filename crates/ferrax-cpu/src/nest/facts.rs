//! Facts about integers: the interval of a value, and the value as a linear combination of others.
//!
//! INVARIANT: both hold for the mathematical integers, not modulo a power of two: a sum that may wrap is treated as an unknown value.
use super::NestValue;
use ferrax_kernel::{Bin, DType};
use smallvec::SmallVec;

/// Least and greatest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub lo: i128,
    pub hi: i128,
}
impl Range {
    pub fn one(x: i128) -> Range {
        Range { lo: x, hi: x }
    }
    /// All values of an integer dtype; none of a float.
    pub fn of(d: DType) -> Option<Range> {
        let bits = match d {
            DType::Bool => return Some(Range { lo: 0, hi: 1 }),
            d if d.is_int() => d.bits(),
            _ => return None,
        };
        Some(match d.is_signed() {
            true => Range { lo: -(1i128 << (bits - 1)), hi: (1i128 << (bits - 1)) - 1 },
            false => Range { lo: 0, hi: (1i128 << bits) - 1 },
        })
    }
    pub fn contains(self, o: Range) -> bool {
        self.lo <= o.lo && o.hi <= self.hi
    }
    pub fn union(self, o: Range) -> Range {
        Range { lo: self.lo.min(o.lo), hi: self.hi.max(o.hi) }
    }
    /// The intersection, if it is known not to be empty.
    pub fn meet(self, o: Range) -> Range {
        let both = Range { lo: self.lo.max(o.lo), hi: self.hi.min(o.hi) };
        if both.lo <= both.hi { both } else { self }
    }
    pub fn plus(self, o: Range) -> Range {
        Range { lo: self.lo + o.lo, hi: self.hi + o.hi }
    }
    pub fn minus(self, o: Range) -> Range {
        Range { lo: self.lo - o.hi, hi: self.hi - o.lo }
    }
    pub fn times(self, o: Range) -> Range {
        let all = [self.lo, self.hi].map(|a| [o.lo, o.hi].map(|b| a.saturating_mul(b)));
        let all = all.iter().flatten();
        Range { lo: *all.clone().min().expect("four"), hi: *all.max().expect("four") }
    }
    pub fn is_one(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }
    /// The result of a function of integers, before it wraps; none where nothing is known.
    pub fn bin(f: Bin, a: Range, b: Range) -> Option<Range> {
        Some(match f {
            Bin::Add => a.plus(b),
            Bin::Sub => a.minus(b),
            Bin::Mul => a.times(b),
            Bin::Max => Range { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) },
            Bin::Min => Range { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
            Bin::Div if a.lo >= 0 && b.lo > 0 => Range { lo: a.lo / b.hi, hi: a.hi / b.lo },
            Bin::Rem if a.lo >= 0 && b.lo > 0 => Range { lo: 0, hi: a.hi.min(b.hi - 1) },
            Bin::And if a.lo >= 0 && b.lo >= 0 => Range { lo: 0, hi: a.hi.min(b.hi) },
            Bin::And if a.lo >= 0 => Range { lo: 0, hi: a.hi },
            Bin::And if b.lo >= 0 => Range { lo: 0, hi: b.hi },
            Bin::Or | Bin::Xor if a.lo >= 0 && b.lo >= 0 => {
                let bits = 128 - (a.hi.max(b.hi) as u128).leading_zeros();
                Range { lo: 0, hi: (1i128 << bits) - 1 }
            }
            Bin::ShrLogical | Bin::ShrArithmetic if a.lo >= 0 && b.lo >= 0 => {
                Range { lo: 0, hi: a.hi >> b.lo.min(100) }
            }
            _ => return None,
        })
    }
    /// The same of a shift by so many, where that is known.
    pub fn bin_or_shift(f: Bin, a: Range, b: Range, shift: Option<i128>) -> Option<Range> {
        match shift {
            Some(n) => Some(a.times(Range::one(1 << n))),
            None => Range::bin(f, a, b),
        }
    }
    /// The places by which a number of so many bits is shifted to the left, if they are one number and less than those.
    pub fn shift(f: Bin, by: Range, bits: u32) -> Option<i128> {
        by.is_one().filter(|n| f == Bin::Shl && (0..i128::from(bits)).contains(n))
    }
    /// Whether `a f b` holds for all of a difference `a - b`, or for none.
    pub fn decides(f: Bin, difference: Range) -> Option<bool> {
        let Range { lo, hi } = difference;
        let (yes, no) = match f {
            Bin::Lt => (hi < 0, lo >= 0),
            Bin::Le => (hi <= 0, lo > 0),
            Bin::Gt => (lo > 0, hi <= 0),
            Bin::Ge => (lo >= 0, hi < 0),
            Bin::Eq => (lo == 0 && hi == 0, lo > 0 || hi < 0),
            Bin::Ne => (lo > 0 || hi < 0, lo == 0 && hi == 0),
            _ => return None,
        };
        if yes { Some(true) } else { no.then_some(false) }
    }
}

/// `constant + sum of factor * value`, the values in order, none with factor 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Linear {
    pub constant: i64,
    pub terms: SmallVec<[(NestValue, i64); 3]>,
}
/// Sums of more values are values of their own.
const MAX_TERMS: usize = 8;
impl Linear {
    pub fn constant(constant: i64) -> Linear {
        Linear { constant, terms: SmallVec::new() }
    }
    pub fn of(v: NestValue) -> Linear {
        Linear { constant: 0, terms: SmallVec::from_slice(&[(v, 1)]) }
    }
    /// `self + factor * o`; none where it does not fit.
    pub fn plus(&self, o: &Linear, factor: i64) -> Option<Linear> {
        let mut sum = self.clone();
        sum.constant = sum.constant.checked_add(o.constant.checked_mul(factor)?)?;
        for (v, by) in &o.terms {
            let by = by.checked_mul(factor)?;
            match sum.terms.iter_mut().find(|t| t.0 == *v) {
                Some(t) => t.1 = t.1.checked_add(by)?,
                None => sum.terms.push((*v, by)),
            }
        }
        sum.terms.retain(|t| t.1 != 0);
        sum.terms.sort_unstable_by_key(|t| t.0);
        (sum.terms.len() <= MAX_TERMS).then_some(sum)
    }
    pub fn times(&self, factor: i64) -> Option<Linear> {
        Linear::default().plus(self, factor)
    }
    /// The result of a function of two sums with these ranges, which does not wrap.
    pub fn bin(f: Bin, [p, q]: [&Linear; 2], [x, y]: [Range; 2], shift: Option<i128>) -> Option<Linear> {
        match f {
            Bin::Add => p.plus(q, 1),
            Bin::Sub => p.plus(q, -1),
            Bin::Mul => match (y.is_one(), x.is_one()) {
                (Some(by), _) => p.times(i64::try_from(by).ok()?),
                (_, Some(by)) => q.times(i64::try_from(by).ok()?),
                _ => None,
            },
            Bin::Shl => p.times(1i64.checked_shl(u32::try_from(shift?).ok()?)?),
            _ => None,
        }
    }
    pub fn range(&self, of: impl Fn(NestValue) -> Range) -> Range {
        let start = Range::one(self.constant as i128);
        self.terms.iter().fold(start, |sum, (v, by)| sum.plus(of(*v).times(Range::one(*by as i128))))
    }
}

/// The dtype that arithmetic is done in; bools stay bools.
pub fn lane(d: DType) -> DType {
    if d == DType::Bool { d } else { d.lane() }
}
/// The integer in the bits of a lane.
pub fn integer(d: DType, bits: u64) -> i128 {
    match lane(d) {
        DType::Bool => (bits & 0xff != 0) as i128,
        DType::I32 => bits as i32 as i128,
        DType::U32 => bits as u32 as i128,
        DType::I64 => bits as i64 as i128,
        _ => bits as i128,
    }
}
/// The bits of a lane that holds this integer.
pub fn lane_of(d: DType, x: i128) -> u64 {
    match lane(d) {
        DType::Bool | DType::I32 | DType::U32 => x as u32 as u64,
        _ => x as u64,
    }
}
