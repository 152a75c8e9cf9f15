//! Double-word arithmetic: a number as an unevaluated sum of two, the second below half a unit of the first.
//!
//! Invariant: the sums and products are exact but for under- and overflow, where the fused multiply-add is one and where it is not.
//! (Dekker 1971; Joldes, Muller, Popescu 2017 for names and bounds.)
//!
//! ```text
//! two_sum(1, 2^-40) = (1, 2^-40)        two_mul(1 + 2^-23, 1 + 2^-23) = (1 + 2^-22, 2^-46)   in f32
//! ```

use super::real::{Int, Real};

/// A constant as two words, in the narrow format and in the wide one.
pub(super) type Words = ((f32, f32), (f64, f64));

pub(super) const PI: Words = ((3.1415927, -8.742278e-8), (3.141592653589793, 1.2246467991473532e-16));
pub(super) const HALF_PI: Words = ((1.5707964, -4.371139e-8), (1.5707963267948966, 6.123233995736766e-17));
pub(super) const QUARTER_PI: Words = ((0.7853982, -2.1855694e-8), (0.7853981633974483, 3.061616997868383e-17));

/// `hi + lo`, not evaluated.
#[derive(Clone)]
pub(super) struct Double<R> {
    pub hi: R,
    pub lo: R,
}

/// `a + b` exactly, for any operands.
#[inline(always)]
pub(super) fn two_sum<R: Real>(a: R, b: R) -> Double<R> {
    let hi = a.clone().add(b.clone());
    let b_part = hi.clone().sub(a.clone());
    let a_part = hi.clone().sub(b_part.clone());
    Double { hi, lo: a.sub(a_part).add(b.sub(b_part)) }
}

/// `a + b` exactly, for `|a| >= |b|` or `a = 0`.
#[inline(always)]
pub(super) fn fast_two_sum<R: Real>(a: R, b: R) -> Double<R> {
    let hi = a.clone().add(b.clone());
    let lo = b.sub(hi.clone().sub(a));
    Double { hi, lo }
}

/// The leading half of a mantissa, and the rest.
#[inline(always)]
pub(super) fn split<R: Real>(a: R) -> (R, R) {
    let hi = R::from_bits(a.clone().to_bits().and(R::int(!0xfff, !0x7ff_ffff)));
    (hi.clone(), a.sub(hi))
}

/// `a * b` exactly.
#[inline(always)]
pub(super) fn two_mul<R: Real>(a: R, b: R) -> Double<R> {
    let hi = a.clone().mul(b.clone());
    if R::FUSED {
        return Double { lo: a.mul_sub(b, hi.clone()), hi };
    }
    let (ah, al) = split(a);
    let (bh, bl) = split(b);
    let lo = ah.clone().mul(bh.clone()).sub(hi.clone()).add(ah.mul(bl.clone())).add(al.clone().mul(bh)).add(al.mul(bl));
    Double { hi, lo }
}

/// `a - q * b`, exactly where q is the quotient to within a few units.
#[inline(always)]
pub(super) fn remainder<R: Real>(a: R, q: R, b: R) -> R {
    if R::FUSED {
        return q.sub_from(b, a);
    }
    let product = two_mul(q, b);
    a.sub(product.hi).sub(product.lo)
}

impl<R: Real> Double<R> {
    #[inline(always)]
    pub fn words((narrow, wide): Words) -> Self {
        Double { hi: R::constant(narrow.0, wide.0), lo: R::constant(narrow.1, wide.1) }
    }

    #[inline(always)]
    pub fn select(mask: R::Mask, yes: Self, no: Self) -> Self {
        Double { hi: R::select(mask.clone(), yes.hi, no.hi), lo: R::select(mask, yes.lo, no.lo) }
    }

    /// The nearest single word.
    #[inline(always)]
    pub fn value(self) -> R {
        self.hi.add(self.lo)
    }

    /// Both words times a power of two.
    #[inline(always)]
    pub fn scaled(self, by: R) -> Self {
        Double { hi: self.hi.mul(by.clone()), lo: self.lo.mul(by) }
    }

    #[inline(always)]
    pub fn neg(self) -> Self {
        Double { hi: self.hi.neg(), lo: self.lo.neg() }
    }

    #[inline(always)]
    pub fn add_word(self, other: R) -> Self {
        let sum = two_sum(self.hi, other);
        fast_two_sum(sum.hi, sum.lo.add(self.lo))
    }

    #[inline(always)]
    pub fn mul(self, other: Self) -> Self {
        let product = two_mul(self.hi.clone(), other.hi.clone());
        let cross = self.lo.mul_add(other.hi, self.hi.mul_add(other.lo, product.lo));
        fast_two_sum(product.hi, cross)
    }

    #[inline(always)]
    pub fn mul_word(self, other: R) -> Self {
        let product = two_mul(self.hi, other.clone());
        fast_two_sum(product.hi, self.lo.mul_add(other, product.lo))
    }

    /// The quotient, with one division.
    #[inline(always)]
    pub fn div(self, other: Self) -> Self {
        let inverse = R::exact(1.0).div(other.hi.clone());
        let hi = self.hi.clone().mul(inverse.clone());
        let rest = hi.clone().sub_from(other.lo, remainder(self.hi, hi.clone(), other.hi).add(self.lo));
        fast_two_sum(hi, rest.mul(inverse))
    }

    /// The square root of a number that is not negative; of 0, 0.
    #[inline(always)]
    pub fn sqrt(self) -> Self {
        let zero = R::exact(0.0);
        let hi = self.hi.clone().sqrt();
        let rest = remainder(self.hi.clone(), hi.clone(), hi.clone()).add(self.lo);
        let lo = rest.div(hi.clone().add(hi.clone()));
        let lo = R::select(self.hi.eq(zero.clone()), zero, lo);
        Double { hi, lo }
    }
}
