//! Rounding to integers, and the neighbouring number; all exact.
//!
//! Invariant: the rounding itself is one addition of the number whose unit is 1, so no instruction for it is needed.
//!
//! ```
//! use ferrax_kernel::math::{next_after, round_away, round_even};
//! assert_eq!((round_even(2.5_f32), round_away(2.5_f32)), (2.0, 3.0));
//! assert_eq!(next_after(0.0_f64, -1.0), -f64::from_bits(1));
//! ```

use super::real::{Int, Mask, Real};

/// The number from which on every number is an integer.
#[inline(always)]
fn unit<R: Real>() -> R {
    R::constant(8388608.0, 4503599627370496.0)
}

/// [`round_even`] of a number that is not negative.
#[inline(always)]
pub(super) fn round_magnitude<R: Real>(a: R) -> R {
    let rounded = a.clone().add(unit()).sub(unit());
    R::select(unit::<R>().le(a.clone()), a, rounded)
}

/// Gives the result the argument's sign, also where it is zero, and makes NaN the canonical one.
#[inline(always)]
fn finish<R: Real>(x: R, magnitude: R) -> R {
    let y = magnitude.with_sign(x.clone().sign_bit());
    R::select(x.is_nan(), R::nan(), y)
}

/// To the nearest integer, ties to even.
#[inline(always)]
pub fn round_even<R: Real>(x: R) -> R {
    finish(x.clone(), round_magnitude(x.abs()))
}

/// The magnitude rounded down.
#[inline(always)]
fn whole<R: Real>(x: R) -> R {
    let a = x.abs();
    let rounded = round_magnitude(a.clone());
    R::select(a.lt(rounded.clone()), rounded.clone().sub(R::exact(1.0)), rounded)
}

/// Towards zero.
#[inline(always)]
pub fn trunc<R: Real>(x: R) -> R {
    finish(x.clone(), whole(x))
}

/// To the nearest integer, ties away from zero.
#[inline(always)]
pub fn round_away<R: Real>(x: R) -> R {
    let below = whole(x.clone());
    let up = R::exact(0.5).le(x.clone().abs().sub(below.clone()));
    let y = R::select(up, below.clone().add(R::exact(1.0)), below);
    finish(x, y)
}

/// Downwards.
#[inline(always)]
pub fn floor<R: Real>(x: R) -> R {
    let below = whole(x.clone());
    let inexact = below.clone().lt(x.clone().abs());
    let up = x.clone().is_negative().and(inexact);
    let y = R::select(up, below.clone().add(R::exact(1.0)), below);
    finish(x, y)
}

/// Upwards.
#[inline(always)]
pub fn ceil<R: Real>(x: R) -> R {
    let y = floor(x.clone().neg()).neg();
    R::select(x.is_nan(), R::nan(), y)
}

/// The next number from `x` in the direction of `y`; `y` if they are equal.
#[inline(always)]
pub fn next_after<R: Real>(x: R, y: R) -> R {
    let one = R::int(1, 1);
    let bits = x.clone().to_bits();
    let upwards = x.clone().lt(y.clone());
    // Away from zero the bits count up, whatever the sign.
    let away = upwards.xor(x.clone().is_negative());
    let stepped = R::Int::select(away, bits.clone().add(one.clone()), bits.sub(one.clone()));
    let from_zero = R::from_bits(one).with_sign(y.clone().sign_bit());
    let out = R::select(x.clone().eq(R::exact(0.0)), from_zero, R::from_bits(stepped));
    let out = R::select(x.clone().eq(y.clone()), y.clone(), out);
    R::select(x.is_nan().or(y.is_nan()), R::nan(), out)
}
