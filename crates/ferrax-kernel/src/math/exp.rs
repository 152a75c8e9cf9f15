//! The exponential and what is made of it: exp, exp2, expm1, logistic, sinh, cosh, tanh.
//!
//! Invariant: `x = k ln(2) + r` with `|r| <= ln(2)/2`, and `e^x = 2^k (1 + r + r^2 q(r))` with one polynomial `q`. Where the last sum's rounding
//! is all that matters, r is one word; where e^x is but a part of the result, two.
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

/// A power of two by its exponent, which is a small integer, as a number and as an integer.
#[derive(Clone)]
pub(super) struct Power<R: Real> {
    number: R,
    pub(super) int: R::Int,
}

/// `x = k ln(2) + r.hi + r.lo`, as `(r, k)`, for `|x|` below 2^10 in either format.
#[inline(always)]
pub(super) fn reduce_ln2<R: Real>(x: R) -> (Double<R>, Power<R>) {
    let (rest, k) = reduce_high(x);
    let low = R::constant(LN2_LOW.0, LN2_LOW.1);
    let hi = k.number.clone().sub_from(low.clone(), rest.clone());
    let lo = k.number.clone().sub_from(low, rest.sub(hi.clone()));
    (Double { hi, lo }, k)
}

/// `x - k LN2_HIGH` and k.
#[inline(always)]
fn reduce_high<R: Real>(x: R) -> (R, Power<R>) {
    let (number, int) = x.clone().round_product(R::constant(1.442_695, 1.4426950408889634));
    // Exact: the product has few bits, and the operands of the subtraction are close.
    (number.clone().sub_from(R::constant(LN2_HIGH.0, LN2_HIGH.1), x), Power { number, int })
}

/// `e^x = 2^k y` as `(y, k)`, y between sqrt(1/2) and sqrt(2) with an error of less than a unit, for `|x|` below 2^10 in either format.
#[inline(always)]
pub(super) fn exp_parts<R: Real>(x: R) -> (R, Power<R>) {
    let one = R::exact(1.0);
    let (rest, k) = reduce_high(x);
    let r = k.number.clone().sub_from(R::constant(LN2_LOW.0, LN2_LOW.1), rest);
    let slope = polynomial(r.clone(), &EXP_32, &EXP_64).mul_add(r.clone(), one.clone());
    (slope.mul_add(r, one), k)
}

/// `y * 2^k` for a result that is a normal number.
#[inline(always)]
pub(super) fn scale_normal<R: Real>(y: R, k: R::Int) -> R {
    R::from_bits(y.to_bits().add(k.shl(R::mantissa_bits())))
}

/// `e^r - 1 - r.hi` for a reduced `r`.
#[inline(always)]
pub(super) fn exp_tail<R: Real>(r: Double<R>) -> R {
    let square = r.hi.clone().mul(r.hi.clone());
    square.mul_add(polynomial(r.hi, &EXP_32, &EXP_64), r.lo)
}

/// `y * 2^k` for a normal `y` near 1, rounded once where the result is subnormal.
#[inline(always)]
pub(super) fn scale<R: Real>(y: R, k: Power<R>) -> R {
    y.scaled(k.number, k.int)
}

#[inline(always)]
fn clamp<R: Real>(x: R, low: R, high: R) -> R {
    x.max(low).min(high)
}

/// `e^x`.
#[inline(always)]
pub fn exp<R: Real>(x: R) -> R {
    let (y, k) = exp_parts(clamp(x.clone(), R::constant(-104.0, -746.0), R::constant(89.0, 710.0)));
    R::select(x.is_nan(), R::nan(), scale(y, k))
}

/// `e^(x.hi + x.lo) = 2^k (y.hi + y.lo)` as `(y, k)`, for `|x|` below 2^10 in either format.
#[inline(always)]
pub(super) fn exp_words<R: Real>(x: Double<R>) -> (Double<R>, Power<R>) {
    let (r, k) = reduce_ln2(x.hi);
    let r = fast_two_sum(r.hi, r.lo.add(x.lo));
    let sum = fast_two_sum(R::exact(1.0), r.hi.clone());
    (fast_two_sum(sum.hi, sum.lo.add(exp_tail(r))), k)
}

/// `2^x`.
#[inline(always)]
pub fn exp2<R: Real>(x: R) -> R {
    let clamped = clamp(x.clone(), R::constant(-151.0, -1076.0), R::constant(128.0, 1024.0));
    let (number, int) = clamped.clone().round_small();
    let r = clamped.sub(number.clone());
    let slope = polynomial(r.clone(), &EXP2_32, &EXP2_64)
        .mul_add(r.clone(), R::constant(-1.904_654_3e-9, 2.3190468138462996e-17));
    let rise = r.clone().mul_add(R::constant(0.693_147_2, 0.6931471805599453), slope.mul(r));
    let y = R::exact(1.0).add(rise);
    R::select(x.is_nan(), R::nan(), scale(y, Power { number, int }))
}

/// `(e^x - 1) / 2` as two words, for x from about -40 (narrow: -20) up; may overflow by doubling only.
#[inline(always)]
fn half_expm1<R: Real>(x: R) -> Double<R> {
    let (r, k) = reduce_ln2(x);
    let unit = R::power_of_two(k.int.sub(R::int(1, 1)));
    // 2^k (1 + r) - 1, halved, and then the tail
    let sum = two_sum(unit.clone().sub(R::exact(0.5)), unit.clone().mul(r.hi.clone()));
    fast_two_sum(sum.hi, unit.mul_add(exp_tail(r), sum.lo))
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
    // With e = e^-|x|, which cannot overflow: s = e / (1 + e), and for positive x, 1 - s.
    let one = R::exact(1.0);
    let (r, k) = reduce_ln2(x.clone().abs().min(R::constant(104.0, 746.0)).neg());
    let e = fast_two_sum(one.clone(), r.hi.clone().add(exp_tail(r)));
    let e = Double { hi: scale(e.hi, k.clone()), lo: scale(e.lo, k) };
    let below = fast_two_sum(one.clone(), e.hi.clone());
    let s = e.hi.div(below.hi);
    // The second words over the sum, whose inverse is 1 - s.
    let rest = s.clone().sub_from(below.lo, e.lo);
    let s = one.clone().sub(s.clone()).mul_add(rest, s);
    let y = R::select(x.clone().is_negative(), s.clone(), one.sub(s));
    R::select(x.is_nan(), R::nan(), y)
}

/// `(e^|x| / 4, e^-|x| / 4)`, the first as two words; `|x|` is taken at most a little past the overflow of sinh.
#[inline(always)]
fn quarter_exps<R: Real>(x: R) -> (Double<R>, R) {
    let magnitude = x.abs().min(R::constant(89.5, 710.6));
    let (e, k) = exp_words(Double { hi: magnitude, lo: R::exact(0.0) });
    let up = e.scaled(R::power_of_two(k.int.sub(R::int(2, 2))));
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
    let one = R::exact(1.0);
    let magnitude = x.clone().abs();
    let square = x.clone().mul(x.clone());
    let small =
        polynomial(square.clone(), &TANH_32, &TANH_64).mul(square).mul_add(magnitude.clone(), magnitude.clone());
    // 1 - 2 / (e^2|x| + 1): at 0.625, the subtrahend is less than half
    let clamped = magnitude.clone().min(R::constant(10.0, 20.0));
    let (y, k) = exp_parts(clamped.clone().add(clamped));
    let large = one.clone().sub(R::exact(2.0).div(scale_normal(y, k.int).add(one)));
    let y = R::select(magnitude.lt(R::exact(0.625)), small, large).with_sign(x.clone().sign_bit());
    R::select(x.is_nan(), R::nan(), y)
}
