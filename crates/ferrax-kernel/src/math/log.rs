//! The logarithm and what is made of it: log, log1p, asinh, acosh, atanh.
//!
//! Invariant: the argument is `2^k (1 + f)` with `1 + f` between sqrt(1/2) and sqrt(2). In the wide format, with `s = f / (2 + f)`,
//! `log(1 + f) = 2 s + s^3 p(s^2)`: the series of 2 atanh(s), which converges fast because `s^2 < 0.03`. In the narrow one
//! `f + f^2 p(f)` takes a few terms more and no division.
//!
//! ```
//! use ferrax_kernel::math::{log, log1p};
//! assert_eq!(log(0.0_f32), f32::NEG_INFINITY);
//! assert_eq!(log1p(1e-300_f64), 1e-300);
//! ```

use super::coefficients::*;
use super::double::{Double, fast_two_sum, two_mul, two_sum};
use super::exp::{LN2_HIGH, LN2_LOW};
use super::real::{Int, Mask, Real};
use super::{polynomial, split_polynomial};

/// `2^k (1 + f.hi + f.lo)`, `1 + f` in [sqrt(1/2), sqrt(2)].
pub(super) struct Reduced<R: Real> {
    pub f: Double<R>,
    pub k: R::Int,
}

/// `(f, k)` for a positive normal number.
#[inline(always)]
fn reduce_word<R: Real>(u: R) -> (R, R::Int) {
    let bits = u.to_bits();
    let k =
        bits.clone().sub(R::int(0x3f35_04f3, 0x3fe6_a09e_667f_3bcd)).add(R::int(0x3f80_0000, 0x3ff0_0000_0000_0000));
    let k = k.shr_unsigned(R::mantissa_bits()).sub(R::Int::constant(R::bias()));
    let m = R::from_bits(bits.sub(k.clone().shl(R::mantissa_bits())));
    (m.sub(R::exact(1.0)), k)
}

/// Splits a positive normal number `u.hi + u.lo`.
#[inline(always)]
pub(super) fn reduce<R: Real>(u: Double<R>) -> Reduced<R> {
    let (f, k) = reduce_word(u.hi);
    // The second word matters only where k is at most the precision; past it, keep the scale a normal number.
    let limit = R::int(60, 60);
    let capped = R::Int::select(limit.clone().lt(k.clone()), limit, k.clone());
    let lo = u.lo.mul(R::power_of_two(R::int(0, 0).sub(capped)));
    Reduced { f: Double { hi: f, lo }, k }
}

/// `log(2^k (1 + f))` as a sum whose first term is exact; f's second word may be none.
#[inline(always)]
fn log_terms<R: Real>(f: R, lo: Option<R>, k: R::Int) -> (R, R) {
    let one = R::exact(1.0);
    let k = R::from_small(k);
    let whole = k.clone().mul(R::constant(LN2_HIGH.0, LN2_HIGH.1));
    let ln2_low = R::constant(LN2_LOW.0, LN2_LOW.1);
    let low = |inverse: R| match lo {
        Some(lo) => lo.mul_add(inverse, k.clone().mul(ln2_low.clone())),
        None => k.clone().mul(ln2_low.clone()),
    };
    if !R::WIDE {
        // lo / (1 + f), for 1 / (1 + f) = 1 - f + f^2 - ...
        let square = f.clone().mul(f.clone());
        let low = low(one.clone().sub(f.clone()).mul(square.clone().add(one)));
        return (whole, f.clone().add(split_polynomial(f, &LOG1P_32, &[0.0; 2]).mul_add(square, low)));
    }
    let s = f.clone().div(R::exact(2.0).add(f.clone()));
    let z = s.clone().mul(s.clone());
    let half_square = R::exact(0.5).mul(f.clone()).mul(f.clone());
    // 1 / (1 + f) = (1 - s) / (1 + s) = 1 - 2 s + 2 s^2 - ...
    let low = low(s.clone().sub(z.clone()).mul_add(R::exact(-2.0), one));
    // 2 s = f - s f = f - f^2/2 + s f^2/2: the leading terms stay free of the rounding of s
    let series = s.mul_add(z.clone().mul_add(polynomial(z, &[0.0], &LOG_64), half_square.clone()), low);
    (whole, f.sub(half_square.sub(series)))
}

/// `log(2^k (1 + f))`.
#[inline(always)]
fn log_reduced<R: Real>(argument: Reduced<R>) -> R {
    let (whole, part) = log_terms(argument.f.hi, Some(argument.f.lo), argument.k);
    whole.add(part)
}

/// `log(2^k (1 + f))`, the rounding of its last sum kept as the second word.
#[inline(always)]
pub(super) fn log_words<R: Real>(argument: Reduced<R>) -> Double<R> {
    let (whole, part) = log_terms(argument.f.hi, Some(argument.f.lo), argument.k);
    fast_two_sum(whole, part)
}

/// The smallest normal number.
#[inline(always)]
pub(super) fn smallest_normal<R: Real>() -> R {
    R::constant(f32::MIN_POSITIVE, f64::MIN_POSITIVE)
}

/// [`reduce`] for any positive finite single word.
#[inline(always)]
pub(super) fn reduce_any<R: Real>(x: R) -> Reduced<R> {
    let subnormal = x.clone().lt(smallest_normal());
    let up = R::select(subnormal.clone(), R::constant(16_777_216.0, 9007199254740992.0), R::exact(1.0));
    let (f, k) = reduce_word(x.mul(up));
    let digits = R::int(24, 53);
    Reduced { f: Double { hi: f, lo: R::exact(0.0) }, k: k.sub(R::Int::select(subnormal, digits, R::int(0, 0))) }
}

/// The natural logarithm.
#[inline(always)]
pub fn log<R: Real>(x: R) -> R {
    let zero = R::exact(0.0);
    let Reduced { f, k } = reduce_any(x.clone());
    let (whole, part) = log_terms(f.hi, None, k);
    let y = whole.add(part);
    let y = R::select(x.clone().eq(R::infinity()), R::infinity(), y);
    let y = R::select(x.clone().eq(zero.clone()), R::infinity().neg(), y);
    R::select(x.clone().is_nan().or(x.lt(zero)), R::nan(), y)
}

/// Below this, a function `x + O(x^2)` equals x to within a small part of a unit.
#[inline(always)]
fn tiny<R: Real>() -> R {
    R::constant(1.4901161e-8, 1.3877787807814457e-17)
}

/// `log(1 + x)`.
#[inline(always)]
pub fn log1p<R: Real>(x: R) -> R {
    let zero = R::exact(0.0);
    let minus_one = R::exact(-1.0);
    let Reduced { f, k } = reduce(two_sum(R::exact(1.0), x.clone()));
    let near = k.clone().eq(R::int(0, 0));
    let f = Double::select(near, Double { hi: x.clone(), lo: zero }, f);
    let y = log_reduced(Reduced { f, k });
    let y = R::select(x.clone().abs().lt(tiny()), x.clone(), y);
    let y = R::select(x.clone().eq(R::infinity()), R::infinity(), y);
    let y = R::select(x.clone().eq(minus_one.clone()), R::infinity().neg(), y);
    R::select(x.clone().is_nan().or(x.lt(minus_one)), R::nan(), y)
}

/// Past this, `x^2 + 1` is `x^2` twice over, and `x^2` still far from overflow.
#[inline(always)]
fn huge<R: Real>() -> R {
    R::constant(16384.0, 1073741824.0)
}

/// `log(2 x)` in reduced form, for huge x.
#[inline(always)]
fn reduce_twice<R: Real>(x: R) -> Reduced<R> {
    let (f, k) = reduce_word(x);
    Reduced { f: Double { hi: f, lo: R::exact(0.0) }, k: k.add(R::int(1, 1)) }
}

#[inline(always)]
fn select_reduced<R: Real>(mask: R::Mask, yes: Reduced<R>, no: Reduced<R>) -> Reduced<R> {
    Reduced { f: Double::select(mask.clone(), yes.f, no.f), k: R::Int::select(mask, yes.k, no.k) }
}

/// `log(x + sqrt(x^2 + 1))`.
#[inline(always)]
pub fn asinh<R: Real>(x: R) -> R {
    let one = R::exact(1.0);
    let magnitude = x.clone().abs();
    let is_huge = huge::<R>().lt(magnitude.clone());
    let a = R::select(is_huge.clone(), one.clone(), magnitude.clone());
    let square = two_mul(a.clone(), a.clone());
    let root = square.clone().add_word(one.clone()).sqrt();
    // log1p needs the argument less 1 to full precision here: a + a^2 / (1 + root).
    let excess = fast_two_sum(a.clone(), square.hi.div(one.add(root.hi.clone())));
    let sum = two_sum(root.hi, a.clone());
    let sum = fast_two_sum(sum.hi, sum.lo.add(root.lo));
    let small = a.lt(R::exact(0.34375));
    let argument = select_reduced(small, Reduced { f: excess, k: R::int(0, 0) }, reduce(sum));
    let argument = select_reduced(is_huge, reduce_twice(magnitude.clone()), argument);
    let y = log_reduced(argument).with_sign(x.clone().sign_bit());
    let y = R::select(magnitude.clone().lt(R::constant(1.2207031e-4, 3.725290298461914e-9)), x.clone(), y);
    let y = R::select(magnitude.eq(R::infinity()), x.clone(), y);
    R::select(x.is_nan(), R::nan(), y)
}

/// `log(x + sqrt(x^2 - 1))`, for `x >= 1`.
#[inline(always)]
pub fn acosh<R: Real>(x: R) -> R {
    let one = R::exact(1.0);
    let is_huge = huge::<R>().lt(x.clone());
    let a = R::select(is_huge.clone(), R::exact(2.0), x.clone());
    let square = two_mul(a.clone(), a.clone());
    let less = two_sum(square.hi, R::exact(-1.0));
    let root = fast_two_sum(less.hi, less.lo.add(square.lo)).sqrt();
    let above = a.clone().sub(one.clone());
    let excess = fast_two_sum(root.hi.clone(), above.clone());
    let excess = Double { hi: excess.hi, lo: excess.lo.add(root.lo.clone()) };
    let sum = fast_two_sum(a, root.hi);
    let sum = fast_two_sum(sum.hi, sum.lo.add(root.lo));
    let small = above.lt(R::exact(0.05859375));
    let argument = select_reduced(small, Reduced { f: excess, k: R::int(0, 0) }, reduce(sum));
    let argument = select_reduced(is_huge, reduce_twice(x.clone()), argument);
    let y = log_reduced(argument);
    let y = R::select(x.clone().eq(R::infinity()), R::infinity(), y);
    R::select(x.clone().is_nan().or(x.lt(one)), R::nan(), y)
}

/// `log((1 + x) / (1 - x)) / 2`.
#[inline(always)]
pub fn atanh<R: Real>(x: R) -> R {
    let zero = R::exact(0.0);
    let one = R::exact(1.0);
    let magnitude = x.clone().abs();
    let inside = magnitude.clone().lt(one.clone());
    let a = R::select(inside, magnitude.clone(), zero.clone());
    // log1p(2 a / (1 - a)) where that argument is small, else log((1 + a) / (1 - a))
    let small = a.clone().lt(R::exact(0.17089844));
    let below = fast_two_sum(one.clone(), a.clone().neg());
    let above = fast_two_sum(one.clone(), a.clone());
    let above = Double::select(small.clone(), Double { hi: a.clone().add(a), lo: zero }, above);
    let quotient = above.div(below);
    let argument = select_reduced(small, Reduced { f: quotient.clone(), k: R::int(0, 0) }, reduce(quotient));
    let y = R::exact(0.5).mul(log_reduced(argument)).with_sign(x.clone().sign_bit());
    let y = R::select(magnitude.clone().lt(R::constant(1.2207031e-4, 3.725290298461914e-9)), x.clone(), y);
    let y = R::select(magnitude.clone().eq(one.clone()), R::infinity().with_sign(x.clone().sign_bit()), y);
    R::select(x.is_nan().or(one.lt(magnitude)), R::nan(), y)
}
