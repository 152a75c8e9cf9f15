//! Functions without an exact definition, in double precision; narrower floats are computed here and rounded once.
use crate::Un;
use std::f64::consts::PI;

pub fn un(f: Un, x: f64) -> f64 {
    match f {
        Un::Rsqrt => 1.0 / x.sqrt(),
        Un::Cbrt => x.cbrt(),
        Un::Exp => x.exp(),
        Un::Exp2 => x.exp2(),
        Un::Expm1 => x.exp_m1(),
        Un::Log => x.ln(),
        Un::Log1p => x.ln_1p(),
        Un::Sin => x.sin(),
        Un::Cos => x.cos(),
        Un::Tan => x.tan(),
        Un::Asin => x.asin(),
        Un::Acos => x.acos(),
        Un::Atan => x.atan(),
        Un::Sinh => x.sinh(),
        Un::Cosh => x.cosh(),
        Un::Tanh => x.tanh(),
        Un::Asinh => x.asinh(),
        Un::Acosh => x.acosh(),
        Un::Atanh => x.atanh(),
        Un::Logistic => 1.0 / (1.0 + (-x).exp()),
        Un::Erf => erf(x),
        Un::Erfc => erfc(x),
        Un::ErfInv => erf_inv(x),
        Un::Lgamma => lgamma(x),
        Un::Digamma => digamma(x),
        _ => unreachable!("{} is no transcendental function", f.name()),
    }
}

/// Below 2 the Taylor series with all terms positive (Abramowitz and Stegun 7.1.6), above it `1 - erfc`.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    if x.abs() > 2.0 {
        return x.signum() * (1.0 - erfc(x.abs()));
    }
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > 1e-18 * sum.abs() {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    sum * (-x * x).exp() * 2.0 / PI.sqrt()
}

/// Above 2 the continued fraction (Abramowitz and Stegun 7.1.14), evaluated from its end.
fn erfc(x: f64) -> f64 {
    if x < 2.0 || x.is_nan() {
        return 1.0 - erf(x);
    }
    let fraction = (1..200).rev().fold(x, |tail, k| x + k as f64 / 2.0 / tail);
    (-x * x).exp() / fraction / PI.sqrt()
}

/// Newton's steps on `erf(y) - x`, in the tail written with `erfc`, from Winitzki's approximation.
fn erf_inv(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 1.0 {
        return f64::NAN;
    }
    if x.abs() == 1.0 || x == 0.0 {
        return if x == 0.0 { x } else { x * f64::INFINITY };
    }
    let (a, l) = (0.147, (-x * x).ln_1p());
    let b = 2.0 / (PI * a) + l / 2.0;
    let mut y = ((b * b - l / a).sqrt() - b).sqrt();
    for _ in 0..6 {
        let error = if y > 2.0 { (1.0 - x.abs()) - erfc(y) } else { erf(y) - x.abs() };
        y -= error * PI.sqrt() / 2.0 * (y * y).exp();
    }
    y.copysign(x)
}

/// Stirling's series above 15, the recurrence up to it, reflection below 1/2.
fn lgamma(x: f64) -> f64 {
    if x.is_infinite() || x <= 0.0 && x == x.floor() {
        return f64::INFINITY;
    }
    if x < 0.5 {
        // The distance to the nearest integer is exact, and its sine may be subnormal.
        return PI.ln() - (PI * (x - x.round())).sin().abs().ln() - lgamma(1.0 - x);
    }
    if x == 1.0 || x == 2.0 {
        return 0.0;
    }
    let (mut z, mut product) = (x, 1.0);
    while z < 15.0 {
        product *= z;
        z += 1.0;
    }
    let r = 1.0 / (z * z);
    let tail = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / z;
    (z - 0.5) * z.ln() - z + 0.5 * (2.0 * PI).ln() + tail - f64::ln(product)
}

/// The asymptotic series above 15, the recurrence up to it, reflection below 0; nan at the poles.
fn digamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 && x == x.floor() {
        return f64::NAN;
    }
    if x < 0.0 {
        return digamma(1.0 - x) - PI / (PI * (x - x.round())).tan();
    }
    let (mut z, mut sum) = (x, 0.0);
    while z < 15.0 {
        sum -= 1.0 / z;
        z += 1.0;
    }
    let r = 1.0 / (z * z);
    sum + z.ln() - 0.5 / z - r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * (1.0 / 240.0 - r / 132.0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::LN_2;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-14 * b.abs().max(1e-300), "{a} is not {b}");
    }
    #[test]
    fn known_values() {
        close(erf(0.5), 0.5204998778130465);
        close(erf(3.0), 0.9999779095030014);
        close(erfc(5.0), 1.5374597944280349e-12);
        close(erf_inv(0.5), 0.4769362762044699);
        close(erf_inv(0.9999), 2.7510639057120607);
        close(lgamma(0.5), PI.sqrt().ln());
        close(lgamma(-1.5), 0.8600470153764810);
        close(lgamma(100.0), 359.13420536957539878);
        close(digamma(1.0), -0.5772156649015329);
        close(digamma(0.5), -0.5772156649015329 - 2.0 * LN_2);
    }
}
