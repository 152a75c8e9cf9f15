//! The error function, its complement and its inverse.
//!
//! Invariant: `erf(x) = x + x p(x^2)` near 0; away from it `erfc(x) = e^(-x^2) g(s) / (2 x + 1)` with `s = 1 / (x + 3)` and g
//! a polynomial near 1.2, every factor in two words, so that the relative error stays small as far as erfc goes.
//!
//! ```
//! use ferrax_kernel::math::{erf_inv, erfc};
//! assert_eq!(erfc(26.5_f64), 2.2109076642637343e-307);
//! assert_eq!(erf_inv(1.0_f32), f32::INFINITY);
//! ```

use super::coefficients::*;
use super::double::{Double, Words, fast_two_sum, remainder, two_mul, two_sum};
use super::exp::{exp_parts, exp_words, scale, scale_normal};
use super::log::{log_words, reduce};
use super::real::{Mask, Real};
use super::{polynomial, split_polynomial};

/// erf_inv'(0) = sqrt(pi) / 2 as two words.
const ERF_INV_AT_0: Words = ((0.88622695, -2.66232e-8), (0.886226925452758, -3.8332932499128993e-17));

/// `erf(x) / x - 1` for `|x| <= 1`.
#[inline(always)]
fn erf_excess<R: Real>(x: R) -> R {
    polynomial(x.clone().mul(x), &ERF_32, &ERF_64)
}

/// erfc of a number from 0.79 to a little past where erfc underflows.
#[inline(always)]
fn erfc_far<R: Real>(x: R) -> R {
    let (one, three) = (R::exact(1.0), R::exact(3.0));
    // Both inverses from one division; the error is corrected below.
    let twice = x.clone().add(x.clone());
    let below = fast_two_sum(twice, one.clone());
    let shifted = x.clone().add(three);
    let both = one.div(below.hi.clone().mul(shifted.clone()));
    let (inverse, s) = (shifted.mul(both.clone()), below.hi.clone().mul(both));
    // The first term is most of it: the others' roundings do not show.
    let tail = polynomial(s.clone(), ERFCX_32.last_chunk::<10>().unwrap(), ERFCX_64.last_chunk::<19>().unwrap());
    let g = fast_two_sum(R::constant(ERFCX_32[0], ERFCX_64[0]), s.mul(tail));
    let quotient = g.hi.clone().mul(inverse.clone());
    let rest = quotient.clone().sub_from(below.lo, remainder(g.hi, quotient.clone(), below.hi).add(g.lo));
    let square = two_mul(x.clone(), x);
    let (e, k) = exp_words(square.neg());
    let low = quotient.clone().mul_add(e.lo, rest.mul(inverse).mul(e.hi.clone()));
    scale(quotient.mul_add(e.hi, low), k)
}

/// The error function.
#[inline(always)]
pub fn erf<R: Real>(x: R) -> R {
    let one = R::exact(1.0);
    let magnitude = x.clone().abs();
    let near = x.clone().mul_add(erf_excess(x.clone()), x.clone());
    // 1 - erfc: an error of a few units in erfc is lost in the subtraction.
    let a = magnitude.clone().min(R::constant(4.0, 6.5));
    let less = if R::WIDE {
        let (shifted, below) = (a.clone().add(R::exact(3.0)), a.clone().add(a.clone()).add(one.clone()));
        let both = one.clone().div(shifted.clone().mul(below.clone()));
        let g = polynomial(below.mul(both.clone()), &[0.0], &ERFCX_64);
        let (e, k) = exp_parts(a.clone().mul(a).neg());
        scale_normal(e.mul(g.mul(shifted.mul(both))), k.int)
    } else {
        let (e, k) = exp_parts(polynomial(a, &ERF_FAR_32, &[0.0]).neg());
        scale_normal(e, k.int)
    };
    let far = one.clone().sub(less).with_sign(x.clone().sign_bit());
    R::select(x.is_nan(), R::nan(), R::select(magnitude.lt(one), near, far))
}

/// `1 - erf(x)`.
#[inline(always)]
pub fn erfc<R: Real>(x: R) -> R {
    let one = R::exact(1.0);
    let magnitude = x.clone().abs();
    let less = fast_two_sum(one.clone(), x.clone().neg());
    let near = less.hi.add(x.clone().sub_from(erf_excess(x.clone()), less.lo));
    let far = erfc_far(magnitude.clone().max(R::exact(0.796875)).min(R::constant(10.2, 27.5)));
    let far = R::select(x.clone().is_negative(), R::exact(2.0).sub(far.clone()), far);
    R::select(x.is_nan(), R::nan(), R::select(magnitude.lt(R::exact(0.796875)), near, far))
}

/// The y with `erf(y) = x`.
#[inline(always)]
pub fn erf_inv<R: Real>(x: R) -> R {
    let one = R::exact(1.0);
    let magnitude = x.clone().abs();
    let inside = magnitude.clone().lt(one.clone());
    let a = R::select(inside, magnitude.clone(), R::exact(0.0));
    // w = -log(1 - x^2), and erf_inv(x) / x is a function of w
    let square = two_mul(a.clone(), a.clone());
    let gap = fast_two_sum(one.clone(), square.hi.neg());
    let w = log_words(reduce(fast_two_sum(gap.hi, gap.lo.sub(square.lo)))).neg();
    let centred = w.hi.clone().sub(R::exact(3.125)).add(w.lo.clone());
    let slope_rest = split_polynomial(
        centred.clone(),
        ERF_INV_32.last_chunk::<11>().unwrap(),
        ERF_INV_64.last_chunk::<23>().unwrap(),
    );
    let slope = fast_two_sum(R::constant(ERF_INV_32[0], ERF_INV_64[0]), centred.mul(slope_rest));
    let rise = w.clone().mul(slope);
    let at_0 = Double::words(ERF_INV_AT_0);
    let near = two_sum(at_0.hi, rise.hi);
    let near = Double { hi: near.hi, lo: near.lo.add(at_0.lo.add(rise.lo)) };
    let clamped = Double { hi: w.hi.clone().max(R::exact(4.0)), lo: w.lo };
    let root = clamped.sqrt();
    let tail = |centre: f32, c0: R, rest: &dyn Fn(R) -> R| {
        let t = root.hi.clone().sub(R::exact(centre)).add(root.lo.clone());
        fast_two_sum(c0, t.clone().mul(rest(t)))
    };
    let middle = tail(3.25, R::constant(ERF_INV_TAIL_32[0], ERF_INV_TAIL_64[0]), &|t| {
        split_polynomial(t, ERF_INV_TAIL_32.last_chunk::<9>().unwrap(), ERF_INV_TAIL_64.last_chunk::<21>().unwrap())
    });
    let mut ratio = Double::select(w.hi.clone().lt(R::exact(6.25)), near, middle);
    // The narrow format has no number so close to 1.
    if R::WIDE {
        let far = tail(5.0, R::constant(0.0, ERF_INV_FAR_64[0]), &|t| {
            split_polynomial(t, &[0.0; 2], ERF_INV_FAR_64.last_chunk::<19>().unwrap())
        });
        ratio = Double::select(w.hi.lt(R::exact(16.0)), ratio, far);
    }
    let y = a.clone().mul(ratio.hi).add(a.mul(ratio.lo));
    let y = R::select(magnitude.clone().eq(one.clone()), R::infinity(), y).with_sign(x.clone().sign_bit());
    R::select(x.is_nan().or(one.lt(magnitude)), R::nan(), y)
}
