//! The inverse trigonometric functions: asin, acos, atan, atan2.
//!
//! Invariant: each polynomial is odd and runs over an argument of at most 1/2; what reduces the argument to that is
//! exact, or carried in two words.
//!
//! ```
//! use ferrax_kernel::math::{acos, atan2};
//! assert_eq!(acos(-1.0_f32), std::f32::consts::PI);
//! assert_eq!(atan2(0.0_f64, -0.0), std::f64::consts::PI);
//! ```

use super::coefficients::*;
use super::double::{Double, HALF_PI, PI, QUARTER_PI, Words, fast_two_sum};
use super::polynomial;
use super::real::{Mask, Real};

/// atan(1/2) and atan(3/2).
const ATAN_HALF: Words = ((0.4636476, 5.0121587e-9), (0.4636476090008061, 2.2698777452961687e-17));
const ATAN_THREE_HALVES: Words = ((0.98279375, -2.5131424e-8), (0.982793723247329, 1.3903311031230998e-17));

/// `whole - part`, where `whole` is the larger.
#[inline(always)]
fn less<R: Real>(whole: Double<R>, part: Double<R>) -> Double<R> {
    let difference = fast_two_sum(whole.hi, part.hi.neg());
    Double { hi: difference.hi, lo: difference.lo.add(whole.lo.sub(part.lo)) }
}

/// For `|x| <= 1/2` asin(|x|), else asin(sqrt((1 - |x|) / 2)), which is acos(|x|) / 2; and whether
/// it is the latter.
#[inline(always)]
fn asin_half<R: Real>(x: R) -> (Double<R>, R::Mask) {
    let half = R::exact(0.5);
    let zero = R::exact(0.0);
    let magnitude = x.abs().min(R::exact(1.0));
    let large = half.clone().lt(magnitude.clone());
    // Exact: the magnitude is at least 1/2 where this is used.
    let gap = half.clone().sub(half.mul(magnitude.clone()));
    let square = R::select(large.clone(), gap.clone(), magnitude.clone().mul(magnitude.clone()));
    let root = Double { hi: gap, lo: zero.clone() }.sqrt();
    let s = Double::select(large.clone(), root, Double { hi: magnitude, lo: zero });
    let tail = s.hi.clone().mul(square.clone().mul(polynomial(square, &ASIN_32, &ASIN_64)));
    (Double { hi: s.hi, lo: s.lo.add(tail) }, large)
}

#[inline(always)]
fn outside_unit<R: Real>(x: R) -> R::Mask {
    x.clone().is_nan().or(R::exact(1.0).lt(x.abs()))
}

/// The inverse sine.
#[inline(always)]
pub fn asin<R: Real>(x: R) -> R {
    let (a, large) = asin_half(x.clone());
    let complement = less(Double::words(HALF_PI), a.clone().scaled(R::exact(2.0))).value();
    let y = R::select(large, complement, a.value()).with_sign(x.clone().sign_bit());
    R::select(outside_unit(x), R::nan(), y)
}

/// The inverse cosine.
#[inline(always)]
pub fn acos<R: Real>(x: R) -> R {
    let (a, large) = asin_half(x.clone());
    let negative = x.clone().is_negative();
    let twice = a.clone().scaled(R::exact(2.0));
    // pi/2 - asin(x); 2 a; pi - 2 a
    let signed = Double::select(negative.clone(), a.clone().neg(), a);
    let near = less(Double::words(HALF_PI), signed);
    let far = Double::select(negative, less(Double::words(PI), twice.clone()), twice);
    let y = Double::select(large, far, near).value();
    R::select(outside_unit(x), R::nan(), y)
}

/// The angle of (below, above) in the first quadrant; neither negative, not both 0 nor both infinite, no overflow in 5 times either.
#[inline(always)]
fn angle<R: Real>(above: R, below: R) -> Double<R> {
    let (n, d) = (above, below);
    let twice = |v: &R| v.clone().add(v.clone());
    let thrice = |v: &R| twice(v).add(v.clone());
    // atan(n/d) = atan(c) + atan((n - c d) / (d + c n)) for c = 0, 1/2, 1, 3/2, infinity
    let cases = [
        (0.4375, Double::words(ATAN_HALF), twice(&n).sub(d.clone()), twice(&d).add(n.clone())),
        (0.6875, Double::words(QUARTER_PI), n.clone().sub(d.clone()), n.clone().add(d.clone())),
        (1.1875, Double::words(ATAN_THREE_HALVES), twice(&n).sub(thrice(&d)), twice(&d).add(thrice(&n))),
        (2.4375, Double::words(HALF_PI), d.clone().neg(), n.clone()),
    ];
    let zero = R::exact(0.0);
    let mut offset = Double { hi: zero.clone(), lo: zero };
    let (mut t_above, mut t_below) = (n.clone(), d.clone());
    for (from, value, case_above, case_below) in cases {
        let here = R::exact(from).mul(d.clone()).le(n.clone());
        offset = Double::select(here.clone(), value, offset);
        t_above = R::select(here.clone(), case_above, t_above);
        t_below = R::select(here, case_below, t_below);
    }
    let t = t_above.div(t_below);
    let square = t.clone().mul(t.clone());
    let tail = t.clone().mul(square.clone().mul(polynomial(square, &ATAN_32, &ATAN_64)));
    let sum = fast_two_sum(offset.hi, t);
    Double { hi: sum.hi, lo: sum.lo.add(offset.lo.add(tail)) }
}

/// The inverse tangent.
#[inline(always)]
pub fn atan<R: Real>(x: R) -> R {
    // Past the limit the answer does not change, and the angle's sums do not overflow.
    let magnitude = x.clone().abs().min(R::constant(1e30, 1e300));
    let y = angle(magnitude, R::exact(1.0)).value().with_sign(x.clone().sign_bit());
    R::select(x.is_nan(), R::nan(), y)
}

/// The angle of the point (x, y), from -pi to pi.
#[inline(always)]
pub fn atan2<R: Real>(y: R, x: R) -> R {
    let (zero, one) = (R::exact(0.0), R::exact(1.0));
    let (above, below) = (y.clone().abs(), x.clone().abs());
    // Both infinite: as on the diagonal. Both zero: as on the x axis. Huge: the same angle closer in.
    let smaller = above.clone().min(below.clone());
    let larger = above.clone().max(below.clone());
    let diagonal = smaller.eq(R::infinity());
    let origin = larger.clone().eq(zero);
    let closer = R::select(R::constant(1e37, 1e307).lt(larger), R::exact(0.0625), one.clone());
    let above = R::select(diagonal.clone(), one.clone(), above.mul(closer.clone()));
    let below = R::select(diagonal.or(origin), one, below.mul(closer));
    let first = angle(above, below);
    let reflected = less(Double::words(PI), first.clone());
    let angle = Double::select(x.clone().is_negative(), reflected, first).value().with_sign(y.clone().sign_bit());
    R::select(x.is_nan().or(y.is_nan()), R::nan(), angle)
}
