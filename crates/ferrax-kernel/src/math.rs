//! The scalar functions, each written once over [`Real`] lanes: branch-free, without fused multiply-add, tables or libm.
//!
//! A loop over a block, `for i in 0..n { out[i] = exp(x[i]) }`, vectorises under whatever target features its function
//! has, with the same bits under each. Every function is defined on all of its format (subnormal, huge, infinite, NaN,
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

// Constants stand as the two formats need them, rounded or cut, which is not what the standard library's are.
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
pub use real::{Int, Mask, Real, TWO_OVER_PI_32};
pub use rounding::{ceil, floor, next_after, round_away, round_even, trunc};
pub use trig::{cos, cos_moderate, is_moderate, sin, sin_moderate, tan, tan_moderate};

/// The polynomial with these coefficients, lowest first, by Horner's rule.
#[inline(always)]
fn polynomial<R: Real, const N: usize, const M: usize>(x: R, narrow: &[f32; N], wide: &[f64; M]) -> R {
    if R::WIDE {
        let mut y = R::constant(0.0, wide[M - 1]);
        for i in (0..M - 1).rev() {
            y = y.mul(x.clone()).add(R::constant(0.0, wide[i]));
        }
        y
    } else {
        let mut y = R::constant(narrow[N - 1], 0.0);
        for i in (0..N - 1).rev() {
            y = y.mul(x.clone()).add(R::constant(narrow[i], 0.0));
        }
        y
    }
}
