//! The scalar functions, each written once over [`Real`] lanes: branch-free, without tables or libm.
//!
//! A loop over a block, `for i in 0..n { out[i] = exp(x[i]) }`, vectorises under whatever target features its function
//! has, with the same bits under each: a fused multiply-add stands where it is written, and nowhere else. Every function is defined on all of its format (subnormal, huge, infinite, NaN,
//! signed zeros) and lies within the bound in units of the last place that `tests/math.rs` states for it.
//!
//! Invariant: a result's bits are a function of the operands' values alone; every NaN result is the one positive
//! quiet NaN.
//!
//! ```
//! use ferrax_kernel::math::{Real, exp, log1p};
//! fn softplus<R: Real>(x: R) -> R {
//!     log1p(exp(x))
//! }
//! assert_eq!(softplus(0.0_f32), std::f32::consts::LN_2);
//! assert_eq!(softplus(0.0_f64), std::f64::consts::LN_2);
//! ```

// Constants are rounded or truncated as the two formats need them, unlike the standard library's.
#![allow(clippy::approx_constant, clippy::excessive_precision)]

mod arc;
mod coefficients;
mod double;
mod erf;
mod exp;
mod gamma;
mod log;
mod power;
mod real;
mod rounding;
mod trig;

pub use arc::{acos, asin, atan, atan2};
pub use erf::{erf, erf_inv, erfc};
pub use exp::{cosh, exp, exp2, expm1, logistic, sinh, tanh};
pub use gamma::{digamma, lgamma};
pub use log::{acosh, asinh, atanh, log, log1p};
pub use power::{cbrt, pow, rsqrt, sqrt};
pub use real::{Int, Mask, Real, TWO_OVER_PI_32, scaled_by_factors};
pub use rounding::{ceil, floor, next_after, round_away, round_even, trunc};
pub use trig::{cos, cos_moderate, is_moderate, sin, sin_moderate, tan, tan_moderate};

/// The polynomial with these coefficients, lowest first, by Horner's rule.
#[inline(always)]
fn polynomial<R: Real, const N: usize, const M: usize>(x: R, narrow: &[f32; N], wide: &[f64; M]) -> R {
    if R::WIDE && M >= 10 { split_polynomial(x, narrow, wide) } else { horner(x, 0, 1, narrow, wide) }
}

/// The same, with even and odd powers separate: one more product, and half the latency, which
/// bounds a loop over a long polynomial. Roundings of large terms that cancel are larger.
#[inline(always)]
fn split_polynomial<R: Real, const N: usize, const M: usize>(x: R, narrow: &[f32; N], wide: &[f64; M]) -> R {
    let square = x.clone().mul(x.clone());
    horner(square.clone(), 1, 2, narrow, wide).mul_add(x, horner(square, 0, 2, narrow, wide))
}

/// The polynomial of every `step`th coefficient after the first `from`.
#[inline(always)]
fn horner<R: Real, const N: usize, const M: usize>(
    x: R,
    from: usize,
    step: usize,
    narrow: &[f32; N],
    wide: &[f64; M],
) -> R {
    let coefficient = |i: usize| if R::WIDE { R::constant(0.0, wide[i]) } else { R::constant(narrow[i], 0.0) };
    let mut i = from + ((if R::WIDE { M } else { N }) - 1 - from) / step * step;
    let mut y = coefficient(i);
    while i > from {
        i -= step;
        y = y.mul_add(x.clone(), coefficient(i));
    }
    y
}
