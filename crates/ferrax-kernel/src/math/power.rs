//! Powers and roots: pow, cbrt, sqrt, rsqrt.
//!
//! Invariant: `x^y = e^(y log x)` with the logarithm and the product in two words, whose error stays below a unit of
//! the result for every exponent that does not over- or underflow.
//!
//! ```
//! use ferrax_kernel::math::{cbrt, pow};
//! assert_eq!(pow(f64::NAN, 0.0), 1.0);
//! assert_eq!(cbrt(-27.0_f32), -3.0);
//! ```

use super::coefficients::*;
use super::double::{Double, Words, fast_two_sum, two_mul, two_sum};
use super::exp::{exp_words, scale};
use super::log::{Reduced, reduce_any, smallest_normal};
use super::polynomial;
use super::real::{Int, Mask, Real};
use super::rounding::round_magnitude;

/// 2/3 as two words.
const TWO_THIRDS: Words = ((0.6666667, -1.9868216e-8), (0.6666666666666666, 3.700743415417188e-17));
/// ln(2) as two words, the first short.
const LN2: Words = ((0.69314575, 1.4286068e-6), (0.6931471805601177, -1.7239444525614835e-13));

/// `log(2^k (1 + f))` to about 12 bits more than the format has.
#[inline(always)]
fn log_precise<R: Real>(argument: Reduced<R>) -> Double<R> {
    let Reduced { f, k } = argument;
    let f = f.hi;
    let s = Double { hi: f.clone(), lo: R::exact(0.0) }.div(fast_two_sum(R::exact(2.0), f));
    let z = s.clone().mul(s.clone());
    // 2 s + s z (2/3 + z p(z))
    let tail = z.hi.clone().mul(polynomial(z.hi.clone(), &LOG_TAIL_32, &LOG_TAIL_64));
    let third = Double::words(TWO_THIRDS);
    let series = fast_two_sum(third.hi, tail);
    let series = Double { hi: series.hi, lo: series.lo.add(third.lo) };
    let cubic = s.clone().mul(z.mul(series));
    let twice = s.scaled(R::exact(2.0));
    let log = fast_two_sum(twice.hi, cubic.hi);
    let log = Double { hi: log.hi, lo: log.lo.add(twice.lo.add(cubic.lo)) };
    let k = R::from_small(k);
    let ln2 = Double::words(LN2);
    // The first product is exact: the first word of this ln(2) is short.
    let whole = two_sum(k.clone().mul(ln2.hi), log.hi);
    fast_two_sum(whole.hi, whole.lo.add(log.lo.add(k.mul(ln2.lo))))
}

/// Whether a number that is not negative is an integer.
#[inline(always)]
fn is_integer<R: Real>(a: R) -> R::Mask {
    round_magnitude(a.clone()).eq(a)
}

/// `x^y`, with the special cases of IEEE 754's pow.
#[inline(always)]
pub fn pow<R: Real>(x: R, y: R) -> R {
    let (zero, one) = (R::exact(0.0), R::exact(1.0));
    let (base, exponent) = (x.clone().abs(), y.clone().abs());
    // Past the limit on y even the base next to 1 over- or underflows; the product itself must not.
    let limit = R::constant(274877906944.0, 73786976294838206464.0);
    let factor = y.clone().min(limit.clone()).max(limit.neg());
    let log = log_precise(reduce_any(base.clone()));
    let product = two_mul(log.hi, factor.clone());
    let product = fast_two_sum(product.hi, product.lo.add(log.lo.mul(factor)));
    let bound = R::constant(110.0, 760.0);
    let inside = product.hi.clone().abs().lt(bound.clone());
    let capped = Double { hi: bound.with_sign(product.hi.clone().sign_bit()), lo: zero.clone() };
    let (e, k) = exp_words(Double::select(inside, product, capped));
    let magnitude = scale(e.value(), k);

    let grows = one.clone().lt(base.clone()).xor(y.clone().is_negative());
    let limit = R::select(grows, R::infinity(), zero.clone());
    let base_is_limit = base.clone().eq(zero.clone()).or(base.clone().eq(R::infinity()));
    let extreme = base_is_limit.clone().or(exponent.clone().eq(R::infinity()));
    let magnitude = R::select(extreme, limit, magnitude);
    let magnitude = R::select(base.eq(one.clone()), one.clone(), magnitude);

    let integer = is_integer(exponent.clone());
    let odd = integer.clone().and(is_integer(exponent.clone().mul(R::exact(0.5))).not());
    let negative = x.clone().is_negative();
    let sign = R::Int::select(negative.clone().and(odd), R::int(i32::MIN, i64::MIN), R::int(0, 0));
    let result = magnitude.with_sign(sign);
    let invalid = negative.and(base_is_limit.or(integer).not());
    let result = R::select(invalid.or(x.clone().is_nan()).or(y.is_nan()), R::nan(), result);
    R::select(exponent.eq(zero).or(x.eq(one.clone())), one, result)
}

/// The cube root.
#[inline(always)]
pub fn cbrt<R: Real>(x: R) -> R {
    let one = R::exact(1.0);
    let magnitude = x.clone().abs();
    // magnitude = m 2^(3 q + r), m in [1, 2), r in 0..3; subnormals are scaled by 2^24 or 2^54 first.
    let subnormal = magnitude.clone().lt(smallest_normal());
    let up = R::select(subnormal.clone(), R::constant(16_777_216.0, 18014398509481984.0), one.clone());
    let bits = magnitude.clone().mul(up).to_bits();
    let e = bits.clone().shr_unsigned(R::mantissa_bits()).sub(R::Int::constant(R::bias()));
    let m = R::from_bits(bits.sub(e.clone().shl(R::mantissa_bits())));
    let third = R::constant(0.33333334, 0.3333333333333333);
    let (q_real, q) = R::from_small(e.clone().sub(R::int(1, 1))).mul(third.clone()).round_small();
    let r = R::from_small(e).sub(q_real.mul(R::exact(3.0)));
    let pick = |at_0: R, at_1: R, at_2: R| {
        let low = R::select(r.clone().lt(R::exact(0.5)), at_0, at_1);
        R::select(r.clone().lt(R::exact(1.5)), low, at_2)
    };
    let v = m.clone().mul(pick(one.clone(), R::exact(2.0), R::exact(4.0)));
    let inverse = polynomial(m, &CBRT_32, &CBRT_64).mul(pick(
        one.clone(),
        R::constant(0.7937005, 0.7937005259840998),
        R::constant(0.62996054, 0.6299605249474366),
    ));
    // Newton for v^(-1/3), then for the root itself with its cube in two words
    let cube = inverse.clone().mul(inverse.clone()).mul(inverse.clone());
    let inverse = inverse.clone().add(inverse.mul(one.sub(v.clone().mul(cube)).mul(third.clone())));
    let square = inverse.clone().mul(inverse);
    let root = v.clone().mul(square.clone());
    let root_square = two_mul(root.clone(), root.clone());
    let root_cube = root_square.mul_word(root.clone());
    let rest = v.sub(root_cube.hi).sub(root_cube.lo);
    let root = root.add(rest.mul(square).mul(third));
    let q = q.sub(R::Int::select(subnormal, R::int(8, 18), R::int(0, 0)));
    let y = root.mul(R::power_of_two(q)).with_sign(x.clone().sign_bit());
    let itself = magnitude.clone().eq(R::exact(0.0)).or(magnitude.eq(R::infinity()));
    R::select(x.clone().is_nan(), R::nan(), R::select(itself, x, y))
}

/// Whether a square root is of a negative number. LLVM replaces a selection between nan and the
/// root of a negative number by the root itself, whose nan is negative; a comparison of bits
/// prevents that.
#[inline(always)]
fn has_no_root<R: Real>(x: R) -> R::Mask {
    let infinity = R::int(0x7f80_0000, 0x7ff0_0000_0000_0000);
    infinity.lt(x.clone().abs().to_bits()).or(x.lt(R::exact(0.0)))
}

/// The square root.
#[inline(always)]
pub fn sqrt<R: Real>(x: R) -> R {
    R::select(has_no_root(x.clone()), R::nan(), x.sqrt())
}

/// `1 / sqrt(x)`; of -0, -infinity.
#[inline(always)]
pub fn rsqrt<R: Real>(x: R) -> R {
    let y = R::exact(1.0).div(x.clone().sqrt());
    R::select(has_no_root(x), R::nan(), y)
}
