//! The exponential and what is made of it: exp, exp2, expm1, logistic, sinh, cosh, tanh.
//!
//! Invariant: `x = k ln(2) + r` with `|r| <= ln(2)/2`, and `e^x = 2^k (1 + r + r^2 q(r))` with one polynomial `q`.
//!
//! ```
//! use ferrax_kernel::math::{exp, logistic};
//! assert_eq!(exp(0.0_f32), 1.0);
//! assert_eq!(logistic(f64::NEG_INFINITY), 0.0);
//! ```

use super::coefficients::*;
use super::double::{Double, fast_two_sum, two_sum};
use super::polynomial;
use super::real::{Int, Real};

/// ln(2) in two parts, for each format; the first has so few bits that any exponent times it is exact.
pub(super) const LN2_HIGH: (f32, f64) = (0.69314575, 0.6931471805601177);
pub(super) const LN2_LOW: (f32, f64) = (1.4286068e-6, -1.7239444525614835e-13);

/// `x = k ln(2) + r.hi + r.lo`, as `(r, k)`, for `|x|` below 2^10 in either format.
#[inline(always)]
pub(super) fn reduce_ln2<R: Real>(x: R) -> (Double<R>, R::Int) {
    let (k, k_int) = x.clone().mul(R::constant(1.442_695, 1.4426950408889634)).round_small();
    // Exact: the product has few bits, and the operands of the subtraction are close.
    let rest = x.sub(k.clone().mul(R::constant(LN2_HIGH.0, LN2_HIGH.1)));
    let tail = k.mul(R::constant(LN2_LOW.0, LN2_LOW.1));
    let hi = rest.clone().sub(tail.clone());
    let lo = rest.sub(hi.clone()).sub(tail);
    (Double { hi, lo }, k_int)
}

/// `e^r - 1 - r.hi` for a reduced `r`.
#[inline(always)]
pub(super) fn exp_tail<R: Real>(r: Double<R>) -> R {
    let square = r.hi.clone().mul(r.hi.clone());
    square.mul(polynomial(r.hi, &EXP_32, &EXP_64)).add(r.lo)
}

/// `y * 2^k` for a normal `y` near 1, rounded once where the result is subnormal.
#[inline(always)]
pub(super) fn scale<R: Real>(y: R, k: R::Int) -> R {
    // Two factors, each of them normal for any k in range. The offset makes the halving shift unsigned.
    let half = k.clone().add(R::int(4096, 4096)).shr_unsigned(1).sub(R::int(2048, 2048));
    y.mul(R::power_of_two(half.clone())).mul(R::power_of_two(k.sub(half)))
}

#[inline(always)]
fn clamp<R: Real>(x: R, low: R, high: R) -> R {
    x.max(low).min(high)
}

/// `e^x`.
#[inline(always)]
pub fn exp<R: Real>(x: R) -> R {
    let (r, k) = reduce_ln2(clamp(x.clone(), R::constant(-104.0, -746.0), R::constant(89.0, 710.0)));
    let y = R::exact(1.0).add(r.hi.clone().add(exp_tail(r)));
    R::select(x.is_nan(), R::nan(), scale(y, k))
}

/// `e^(x.hi + x.lo) = 2^k (y.hi + y.lo)` as `(y, k)`, for `|x|` below 2^10 in either format.
#[inline(always)]
pub(super) fn exp_words<R: Real>(x: Double<R>) -> (Double<R>, R::Int) {
    let (r, k) = reduce_ln2(x.hi);
    let r = fast_two_sum(r.hi, r.lo.add(x.lo));
    let sum = fast_two_sum(R::exact(1.0), r.hi.clone());
    (fast_two_sum(sum.hi, sum.lo.add(exp_tail(r))), k)
}

/// `2^x`.
#[inline(always)]
pub fn exp2<R: Real>(x: R) -> R {
    let clamped = clamp(x.clone(), R::constant(-151.0, -1076.0), R::constant(128.0, 1024.0));
    let (k, k_int) = clamped.clone().round_small();
    let r = clamped.sub(k);
    let square = r.clone().mul(r.clone());
    let tail = square
        .mul(polynomial(r.clone(), &EXP2_32, &EXP2_64))
        .add(r.clone().mul(R::constant(-1.904_654_3e-9, 2.3190468138462996e-17)));
    let y = R::exact(1.0).add(r.mul(R::constant(0.693_147_2, 0.6931471805599453)).add(tail));
    R::select(x.is_nan(), R::nan(), scale(y, k_int))
}

/// `(e^x - 1) / 2` as two words, for x from about -40 (narrow: -20) up; may overflow by doubling only.
#[inline(always)]
fn half_expm1<R: Real>(x: R) -> Double<R> {
    let (r, k) = reduce_ln2(x);
    let unit = R::power_of_two(k.sub(R::int(1, 1)));
    // 2^k (1 + r) - 1, halved, and then the tail
    let sum = two_sum(unit.clone().sub(R::exact(0.5)), unit.clone().mul(r.hi.clone()));
    fast_two_sum(sum.hi, sum.lo.add(unit.mul(exp_tail(r))))
}

/// Below this, a function `x + O(x^2)` equals x to within a small part of a unit.
#[inline(always)]
fn tiny<R: Real>() -> R {
    R::constant(1.4901161e-8, 1.3877787807814457e-17)
}

/// `e^x - 1`.
#[inline(always)]
pub fn expm1<R: Real>(x: R) -> R {
    let half = half_expm1(clamp(x.clone(), R::constant(-20.0, -40.0), R::constant(89.0, 710.0))).hi;
    let y = R::select(x.clone().abs().lt(tiny()), x.clone(), half.clone().add(half));
    R::select(x.is_nan(), R::nan(), y)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn logistic<R: Real>(x: R) -> R {
    // 1 / (1 + e) and, for negative x, e / (1 + e) with e = e^-|x|, neither of which can overflow
    let (zero, one) = (R::exact(0.0), R::exact(1.0));
    let magnitude = x.clone().abs().min(R::constant(104.0, 746.0));
    let (e, k) = exp_words(Double { hi: magnitude.neg(), lo: zero.clone() });
    let e = Double { hi: scale(e.hi, k.clone()), lo: scale(e.lo, k) };
    let negative = x.clone().is_negative();
    let above = Double::select(negative.clone(), e.clone(), Double { hi: one.clone(), lo: zero });
    let below = fast_two_sum(one.clone(), e.hi);
    let y = above.hi.div(below.hi);
    // The second words, to first order; 1 / (1 + e) is y, or 1 - y.
    let inverse = R::select(negative, one.sub(y.clone()), y.clone());
    let rest = above.lo.sub(y.clone().mul(below.lo.add(e.lo)));
    let y = y.add(rest.mul(inverse));
    R::select(x.is_nan(), R::nan(), y)
}

/// `(e^|x| / 4, e^-|x| / 4)`, the first as two words; `|x|` is taken at most a little past the overflow of sinh.
#[inline(always)]
fn quarter_exps<R: Real>(x: R) -> (Double<R>, R) {
    let magnitude = x.abs().min(R::constant(89.5, 710.6));
    let (e, k) = exp_words(Double { hi: magnitude, lo: R::exact(0.0) });
    let up = e.scaled(R::power_of_two(k.sub(R::int(2, 2))));
    let down = R::exact(0.0625).div(up.hi.clone());
    (up, down)
}

/// `(e^x - e^-x) / 2`.
#[inline(always)]
pub fn sinh<R: Real>(x: R) -> R {
    let (up, down) = quarter_exps(x.clone());
    let difference = fast_two_sum(up.hi, down.neg());
    let half = difference.hi.add(difference.lo.add(up.lo));
    let large = half.clone().add(half).with_sign(x.clone().sign_bit());
    let square = x.clone().mul(x.clone());
    let small = x.clone().add(x.clone().mul(square.clone()).mul(polynomial(square, &SINH_32, &SINH_64)));
    let magnitude = x.clone().abs();
    let y = R::select(magnitude.clone().lt(R::exact(1.0)), small, large);
    let y = R::select(magnitude.lt(tiny()), x.clone(), y);
    R::select(x.is_nan(), R::nan(), y)
}

/// `(e^x + e^-x) / 2`.
#[inline(always)]
pub fn cosh<R: Real>(x: R) -> R {
    let (up, down) = quarter_exps(x.clone());
    let sum = fast_two_sum(up.hi, down);
    let half = sum.hi.add(sum.lo.add(up.lo));
    R::select(x.is_nan(), R::nan(), half.clone().add(half))
}

/// `sinh(x) / cosh(x)`.
#[inline(always)]
pub fn tanh<R: Real>(x: R) -> R {
    let magnitude = x.clone().abs();
    let clamped = magnitude.clone().min(R::constant(10.0, 20.0));
    // With h = (e^2|x| - 1) / 2, tanh |x| = h / (h + 1).
    let h = half_expm1(clamped.clone().add(clamped));
    let below = two_sum(h.hi.clone(), R::exact(1.0));
    let y = h.hi.clone().div(below.hi.clone());
    // The second words to first order, with 1 - y for 1 / (h + 1); where y is almost 1 they no longer matter.
    let inverse = R::exact(1.0).sub(y.clone());
    let below_lo = R::select(h.hi.lt(R::exact(4096.0)), below.lo, R::exact(0.0));
    let rest = h.lo.mul(inverse.clone()).sub(y.clone().mul(below_lo));
    let y = y.add(rest.mul(inverse)).with_sign(x.clone().sign_bit());
    let y = R::select(magnitude.lt(tiny()), x.clone(), y);
    R::select(x.is_nan(), R::nan(), y)
}
