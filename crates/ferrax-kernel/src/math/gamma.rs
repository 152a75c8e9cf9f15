//! The logarithm of the gamma function's magnitude, and its derivative.
//!
//! Invariant: positive arguments are shifted by whole numbers into one polynomial's interval, or from 8 on follow
//! Stirling's series; negative ones are reflected without rounding the argument.
//!
//! ```
//! use ferrax_kernel::math::{digamma, lgamma};
//! assert_eq!(lgamma(3.0_f64), std::f64::consts::LN_2);
//! assert!(digamma(-1.0_f32).is_nan());
//! ```

use super::coefficients::*;
use super::double::{Double, PI, Words};
use super::log::{log, smallest_normal};
use super::polynomial;
use super::real::{Mask, Real};
use super::rounding::round_magnitude;
use super::trig::sin_cos;

/// The argument from which Stirling's series is used.
const STIRLING_FROM: f32 = 8.0;
/// The steps down from there to the polynomials' intervals.
const STEPS: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

/// The positive root of digamma as two words.
const DIGAMMA_ROOT: Words = ((1.4616321, 1.243815e-8), (1.4616321449683622, 9.549995429965697e-17));

/// `(sin(pi f), cos(pi f))`, both of |f|, for the distance f of a number to the nearest integer; and whether f is 0.
#[inline(always)]
fn sin_cos_pi<R: Real>(a: R) -> (R, R, R) {
    let f = R::select(a.clone().lt(R::infinity()), a.clone().sub(round_magnitude(a)), R::exact(0.0));
    let distance = f.clone().abs();
    let swap = R::exact(0.25).lt(distance.clone());
    let h = R::select(swap.clone(), R::exact(0.5).sub(distance.clone()), distance);
    let pi = Double::words(PI);
    let (sin, cos) = sin_cos(pi.mul_word(h));
    let (sin, cos) = (sin.value(), cos.value());
    (R::select(swap.clone(), cos.clone(), sin.clone()), R::select(swap, sin, cos), f)
}

/// lgamma of a positive number.
#[inline(always)]
fn lgamma_positive<R: Real>(a: R) -> R {
    let one = R::exact(1.0);
    let small = a.clone().lt(R::exact(STIRLING_FROM));
    let z = R::select(small.clone(), a.clone(), R::exact(2.0));
    let (whole, _) = z.clone().round_small();
    let u = z.clone().sub(whole.clone());
    // gamma(z) = gamma(2 + u) * (z - 1)(z - 2)...(2 + u), or over z, or over z (z + 1)
    let mut product = one.clone();
    for i in STEPS {
        let taken = R::exact(i + 1.5).lt(whole.clone());
        product = R::select(taken, product.clone().mul(z.clone().sub(R::exact(i))), product);
    }
    let up_once = whole.clone().lt(R::exact(1.5));
    let up_twice = whole.lt(R::exact(0.5));
    let over = R::select(up_twice, z.clone().mul(z.clone().add(one.clone())), z.clone());
    let product = R::select(up_once.clone(), over, product);
    let logarithm = log(R::select(small.clone(), product, a.clone()));
    let base = u.clone().mul(polynomial(u, &LGAMMA_32, &LGAMMA_64));
    let near = R::select(up_once, base.clone().sub(logarithm.clone()), base.add(logarithm.clone()));
    // (a - 1/2) (log(a) - 1) + (log(2 pi) - 1) / 2 + series
    let inverse = one.clone().div(a.clone());
    let series = inverse.clone().mul(polynomial(inverse.clone().mul(inverse), &STIRLING_32, &STIRLING_64));
    let constant = R::constant(0.41893855, 0.4189385332046727).add(series);
    let far = a.sub(R::exact(0.5)).mul(logarithm.sub(one)).add(constant);
    R::select(small, near, far)
}

/// The logarithm of |gamma(x)|; infinite at the poles 0, -1, -2, ...
#[inline(always)]
pub fn lgamma<R: Real>(x: R) -> R {
    let a = x.clone().abs();
    let positive = lgamma_positive(a.clone());
    // |gamma(x) gamma(-x)| = pi / |x sin(pi x)|
    let (sin, _, f) = sin_cos_pi(a.clone());
    let pi = Double::<R>::words(PI).hi;
    let tiny = a.clone().lt(smallest_normal());
    let below = R::select(tiny, R::exact(1.0), a.clone().mul(sin));
    let reflected = log(pi.div(below)).sub(positive.clone());
    // Close to 0 on the left, |gamma| is that of the right.
    let close = a.clone().lt(R::constant(1e-9, 1e-18));
    let reflected = R::select(close, positive.clone(), reflected);
    let reflected = R::select(f.eq(R::exact(0.0)), R::infinity(), reflected);
    let y = R::select(x.clone().is_negative(), reflected, positive);
    let y = R::select(a.eq(R::exact(0.0)), R::infinity(), y);
    R::select(x.is_nan(), R::nan(), y)
}

/// digamma of a positive number.
#[inline(always)]
fn digamma_positive<R: Real>(a: R) -> R {
    let one = R::exact(1.0);
    let small = a.clone().lt(R::exact(STIRLING_FROM));
    let z = R::select(small.clone(), a.clone(), R::exact(2.0));
    let below_one = z.clone().lt(one.clone());
    let (steps, _) = z.clone().sub(R::exact(1.5)).round_small();
    let steps = R::select(below_one.clone(), R::exact(-1.0), steps);
    let base_argument = z.clone().sub(steps.clone());
    // digamma(z) = digamma(z - n) + 1/(z - 1) + ... + 1/(z - n), or digamma(z + 1) - 1/z; the sum as one fraction
    let (mut above, mut below) = (R::exact(0.0), one.clone());
    for i in STEPS {
        let taken = R::exact(i - 0.5).lt(steps.clone());
        let term = z.clone().sub(R::exact(i));
        above = R::select(taken.clone(), above.clone().mul(term.clone()).add(below.clone()), above);
        below = R::select(taken, below.clone().mul(term), below);
    }
    let above = R::select(below_one.clone(), R::exact(-1.0), above);
    let below = R::select(below_one, z, below);
    let root = Double::words(DIGAMMA_ROOT);
    let u = base_argument.clone().sub(R::exact(1.5));
    let base = base_argument.sub(root.hi).sub(root.lo).mul(polynomial(u, &DIGAMMA_32, &DIGAMMA_64));
    let near = base.add(above.div(below));
    let inverse = one.div(a.clone());
    let square = inverse.clone().mul(inverse.clone());
    let series = square.clone().mul(polynomial(square, &DIGAMMA_TAIL_32, &DIGAMMA_TAIL_64));
    let far = log(a).sub(inverse.mul(R::exact(0.5))).sub(series);
    R::select(small, near, far)
}

/// The derivative of log gamma; NaN at the poles 0, -1, -2, ...
#[inline(always)]
pub fn digamma<R: Real>(x: R) -> R {
    let a = x.clone().abs();
    let positive = digamma_positive(a.clone());
    // digamma(-a) = digamma(a) + 1/a + pi cot(pi a)
    let (sin, cos, f) = sin_cos_pi(a.clone());
    let cotangent = Double::<R>::words(PI).hi.mul(cos.div(sin)).flip_sign(f.clone().sign_bit());
    let reflected = positive.clone().add(R::exact(1.0).div(a.clone())).add(cotangent);
    // Close to 0 the two poles cancel: there digamma(x) is -1/x.
    let close = a.clone().lt(R::constant(1e-9, 1e-18));
    let reflected = R::select(close, R::exact(1.0).div(a.clone()), reflected);
    let reflected = R::select(f.eq(R::exact(0.0)), R::nan(), reflected);
    let y = R::select(x.clone().is_negative(), reflected, positive);
    R::select(x.is_nan().or(a.eq(R::exact(0.0))), R::nan(), y)
}
