//! Sine, cosine and tangent, for every finite argument.
//!
//! Invariant: `x = q pi/2 + r` with `|r| <= pi/4` and r as two words whose relative error is far below a unit, however
//! close x is to a multiple of pi/2. Up to [`is_moderate`]'s bound r is found by subtracting q times pi/2 in four parts
//! (Cody, Waite); beyond, by multiplying with the bits of 2/pi that matter (Payne, Hanek).
//!
//! [`sin`], [`cos`] and [`tan`] are right everywhere. `sin_moderate` and its like leave the second reduction out:
//! equal bits where `is_moderate` holds, for blocks in which it holds throughout.
//!
//! ```
//! use ferrax_kernel::math::{sin, sin_moderate};
//! assert_eq!(sin(2.0_f64.powi(1023)), 0.563127779850884);
//! assert_eq!(sin(1.0_f32).to_bits(), sin_moderate(1.0_f32).to_bits());
//! ```

use super::coefficients::*;
use super::double::{Double, HALF_PI, fast_two_sum, two_sum};
use super::polynomial;
use super::real::{Int, Real};

/// pi/2 in four parts; the first three have so few bits that any quadrant number in range times them is exact.
const HALF_PI_PARTS: [(f32, f64); 4] = [
    (1.5708008, 1.5707963267341256),
    (-4.4535846e-6, 6.077100506303966e-11),
    (-8.706138e-10, 2.0222662487111665e-21),
    (6.223372e-14, 8.4784276603689e-32),
];

/// `x = q pi/2 + r`; only the two lowest bits of q count.
struct Quadrant<R: Real> {
    r: Double<R>,
    q: R::Int,
}

/// Whether the short reduction suffices: `|x| <= 3072` (wide: `1.5 * 2^20`); not for NaN.
#[inline(always)]
pub fn is_moderate<R: Real>(x: R) -> R::Mask {
    x.abs().le(R::constant(3072.0, 1572864.0))
}

#[inline(always)]
fn reduce_moderate<R: Real>(x: R) -> Quadrant<R> {
    let (q, q_int) = x.clone().mul(R::constant(0.636_619_8, 0.6366197723675814)).round_small();
    let [c1, c2, c3, c4] = HALF_PI_PARTS.map(|(narrow, wide)| R::constant(narrow, wide));
    let first = x.sub(q.clone().mul(c1));
    let second = two_sum(first, q.clone().mul(c2).neg());
    let third = two_sum(second.hi, q.clone().mul(c3).neg());
    let lo = second.lo.add(third.lo).sub(q.mul(c4));
    Quadrant { r: fast_two_sum(third.hi, lo), q: q_int }
}

/// The reduction of a finite argument past the moderate ones.
#[inline(always)]
fn reduce_huge<R: Real>(x: R) -> Quadrant<R> {
    let width = if R::WIDE { 64 } else { 32 };
    let word_log2 = if R::WIDE { 6 } else { 5 };
    let int = |value: i64| R::Int::constant(value);
    let negative = x.clone().is_negative();
    // |x| = mantissa 2^exponent
    let bits = x.abs().to_bits();
    let exponent = bits.clone().shr_unsigned(R::mantissa_bits()).sub(int(R::bias() + R::mantissa_bits() as i64));
    let hidden = int(1 << R::mantissa_bits());
    let mantissa = bits.and(int((1 << R::mantissa_bits()) - 1)).or(hidden);
    // Bits of 2/pi above this offset give multiples of 4 quadrants, and those three words below it are noise.
    let offset = exponent.sub(int(2));
    let index = offset.clone().add(int(2 * width)).shr_unsigned(word_log2).sub(int(2));
    let shift = offset.and(int(width - 1));
    let back = int(width - 1).sub(shift.clone());
    let [w0, w1, w2, w3] = [0, 1, 2, 3].map(|i| R::two_over_pi_word(index.clone().add(int(i))));
    let window =
        |high: R::Int, low: R::Int| high.shl_by(shift.clone()).or(low.shr_unsigned(1).shr_unsigned_by(back.clone()));
    let v0 = window(w0, w1.clone());
    let v1 = window(w1, w2.clone());
    let v2 = window(w2, w3);
    // The two leading words of mantissa * (v0, v1, v2) modulo 2^(3 width): the quadrant in the top two bits, then its fraction.
    let carried = mantissa.clone().mul_high_unsigned(v2);
    let p1 = mantissa.clone().mul(v1.clone()).add(carried.clone());
    let top = int(if R::WIDE { i64::MIN } else { i32::MIN as i64 });
    let carry = p1.clone().xor(top.clone()).lt(carried.xor(top));
    let p0 = mantissa.clone().mul(v0).add(mantissa.mul_high_unsigned(v1));
    let p0 = p0.add(R::Int::select(carry, int(1), int(0)));
    let q = p0.clone().add(int(1 << (width - 3))).shr_unsigned((width - 2) as u32);
    let fraction = p0.sub(q.clone().shl((width - 2) as u32));
    // Four half words, the first signed; their sum as two words. Each is exact, and only leading ones cancel.
    let half = (width / 2) as u32;
    let low_half = int((1 << half) - 1);
    let unit = |i: i64| R::power_of_two(int(2 - (half as i64) * i));
    let a = R::from_small(fraction.clone().shr(half)).mul(unit(1));
    let b = R::from_small(fraction.and(low_half.clone())).mul(unit(2));
    let c = R::from_small(p1.clone().shr_unsigned(half)).mul(unit(3));
    let d = R::from_small(p1.and(low_half)).mul(unit(4));
    let ab = fast_two_sum(a, b);
    let abc = two_sum(ab.hi, c);
    let abcd = two_sum(abc.hi, d);
    let turns = fast_two_sum(abcd.hi, ab.lo.add(abc.lo).add(abcd.lo));
    let r = turns.mul(Double::words(HALF_PI));
    let zero = int(0);
    Quadrant {
        r: Double::select(negative.clone(), r.clone().neg(), r),
        q: R::Int::select(negative, zero.sub(q.clone()), q),
    }
}

#[inline(always)]
fn reduce<R: Real>(x: R) -> Quadrant<R> {
    let moderate = is_moderate(x.clone());
    let near = reduce_moderate(x.clone());
    let far = reduce_huge(x);
    Quadrant { r: Double::select(moderate.clone(), near.r, far.r), q: R::Int::select(moderate, near.q, far.q) }
}

/// `(sin r, cos r)` as two words each.
#[inline(always)]
pub(super) fn sin_cos<R: Real>(r: Double<R>) -> (Double<R>, Double<R>) {
    let one = R::exact(1.0);
    let z = r.hi.clone().mul(r.hi.clone());
    let half = R::exact(0.5).mul(z.clone());
    // sin(hi + lo) = sin(hi) + lo cos(hi), and cos(hi) is 1 - z/2 as far as lo can tell
    let cube = r.hi.clone().mul(z.clone());
    let tail = r.lo.clone().sub(r.lo.clone().mul(half.clone()));
    let sin = fast_two_sum(r.hi.clone(), cube.mul(polynomial(z.clone(), &SIN_32, &SIN_64)).add(tail));
    // cos(hi + lo) = cos(hi) - lo sin(hi), and sin(hi) is hi as far as lo can tell
    let lead = fast_two_sum(one, half.neg());
    let tail = z.clone().mul(z.clone()).mul(polynomial(z, &COS_32, &COS_64)).sub(r.hi.mul(r.lo));
    (sin, fast_two_sum(lead.hi, lead.lo.add(tail)))
}

/// Bit `bit` of q, moved to the sign.
#[inline(always)]
fn sign_from<R: Real>(q: R::Int, bit: u32) -> R::Int {
    q.shr_unsigned(bit).shl(if R::WIDE { 63 } else { 31 })
}

#[inline(always)]
fn odd<R: Real>(q: R::Int) -> R::Mask {
    q.and(R::int(1, 1)).eq(R::int(1, 1))
}

/// NaN if x is not finite, x itself if it is tiny (with its zero's sign), else y.
#[inline(always)]
fn finish<R: Real>(x: R, y: R) -> R {
    let magnitude = x.clone().abs();
    let y = R::select(magnitude.clone().lt(R::constant(1.2207031e-4, 3.725290298461914e-9)), x, y);
    R::select(magnitude.lt(R::infinity()), y, R::nan())
}

#[inline(always)]
fn sin_quadrant<R: Real>(x: R, Quadrant { r, q }: Quadrant<R>) -> R {
    let (sin, cos) = sin_cos(r);
    let y = R::select(odd::<R>(q.clone()), cos.hi, sin.hi).flip_sign(sign_from::<R>(q, 1));
    finish(x, y)
}

#[inline(always)]
fn cos_quadrant<R: Real>(x: R, Quadrant { r, q }: Quadrant<R>) -> R {
    let (sin, cos) = sin_cos(r);
    let y = R::select(odd::<R>(q.clone()), sin.hi, cos.hi).flip_sign(sign_from::<R>(q.add(R::int(1, 1)), 1));
    R::select(x.abs().lt(R::infinity()), y, R::nan())
}

#[inline(always)]
fn tan_quadrant<R: Real>(x: R, Quadrant { r, q }: Quadrant<R>) -> R {
    let (sin, cos) = sin_cos(r);
    // tan(r), and in odd quadrants -1 / tan(r)
    let swap = odd::<R>(q.clone());
    let above = Double::select(swap.clone(), cos.clone(), sin.clone());
    let below = Double::select(swap, sin, cos);
    let y = above.div(below).hi.flip_sign(sign_from::<R>(q, 0));
    finish(x, y)
}

/// The sine.
#[inline(always)]
pub fn sin<R: Real>(x: R) -> R {
    sin_quadrant(x.clone(), reduce(x))
}

/// The cosine.
#[inline(always)]
pub fn cos<R: Real>(x: R) -> R {
    cos_quadrant(x.clone(), reduce(x))
}

/// The tangent.
#[inline(always)]
pub fn tan<R: Real>(x: R) -> R {
    tan_quadrant(x.clone(), reduce(x))
}

/// [`sin`] where [`is_moderate`] or not finite.
#[inline(always)]
pub fn sin_moderate<R: Real>(x: R) -> R {
    sin_quadrant(x.clone(), reduce_moderate(x))
}

/// [`cos`] where [`is_moderate`] or not finite.
#[inline(always)]
pub fn cos_moderate<R: Real>(x: R) -> R {
    cos_quadrant(x.clone(), reduce_moderate(x))
}

/// [`tan`] where [`is_moderate`] or not finite.
#[inline(always)]
pub fn tan_moderate<R: Real>(x: R) -> R {
    tan_quadrant(x.clone(), reduce_moderate(x))
}
