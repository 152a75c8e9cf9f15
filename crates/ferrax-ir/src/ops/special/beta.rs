//! The regularised incomplete beta function, by its continued fraction.
//!
//! ```text
//! I_x(a, b) = x^a (1-x)^b / (a B(a, b)) / (1 + d_1 / (1 + d_2 / (1 + ...))) = 1 - I_(1-x)(b, a)
//! d_(2m) = m (b-m) x / ((a+2m-1) (a+2m))          d_(2m+1) = -(a+m) (a+b+m) x / ((a+2m) (a+2m+1))
//! ```
//! INVARIANT: the fraction is taken on the side where it converges in O(sqrt(max(a, b))) steps; the other side is one minus it.
use super::gamma::log_power;
use super::{epsilon, log_less, stirling, tiny};
use crate::ops::meaning::{any, choose, f1, f2, fill, keep, repeat, with};
use crate::ops::pointwise::Pw;
use crate::value::Value;
use std::f64::consts::PI;

const MOST_STEPS: i64 = 20_000;

/// 1 + d_1 / (1 + d_2 / ...), by Lentz's method: a product of ratios. Those within rounding of 1 are taken for 1: they would never all be, and each
/// would add its rounding.
fn fraction(a: &Value, b: &Value, x: &Value) -> Value {
    let eps = epsilon(a);
    let (noise, tiny) = (8.0 * eps, tiny(a) / eps);
    let away = |v: Value| keep(&with(Pw::Ge, &f1(Pw::Abs, &v), tiny), &v, tiny);
    let advance = |c: &Value, d: &Value, term: &Value| (away(1.0 + term / c), 1.0 / away(1.0 + term * d));
    let step = |s: &[Value]| {
        let [k, h, c, d, _] = s else { unreachable!("five carries") };
        let term = -((a + k) * (a + b + k)) * x / ((a + &(2.0 * k)) * (a + &(2.0 * k) + 1.0));
        let (c, d) = advance(c, d, &term);
        let first = &c * &d;
        let k = k + 1.0;
        let term = &k * &(b - &k) * x / ((a + &(2.0 * &k) - 1.0) * (a + &(2.0 * &k)));
        let (c, d) = advance(&c, &d, &term);
        let change = first * (&c * &d) - 1.0;
        let moves = with(Pw::Gt, &f1(Pw::Abs, &change), noise);
        vec![k, h * &(keep(&moves, &change, 0.0) + 1.0), c, d, moves]
    };
    let going = |s: &[Value]| any(&s[4]);
    let (one, zero) = (fill(a, 1.0), fill(a, 0.0));
    let first = step(&[zero.clone(), one.clone(), one.clone(), zero.clone(), f2(Pw::Eq, &zero, &zero)]);
    repeat(MOST_STEPS, first, &going, &step)[1].clone()
}

/// log of x^a (1-x)^b / B(a, b). Where a and b are large by Stirling's series, for the plain formula subtracts large numbers.
fn log_weight(a: &Value, b: &Value, x: &Value) -> Value {
    let large = f2(Pw::And, &with(Pw::Ge, a, 10.0), &with(Pw::Ge, b, 10.0));
    let (m, n) = (keep(&large, a, 10.0), keep(&large, b, 10.0));
    let p = &m / (&m + &n);
    let off = keep(&large, x, 0.5) - &p;
    let at = keep(&large, x, 0.5);
    let (s, t) = (&off / &p, -off / (1.0 - &p));
    let (left, right) = (&at / &p, (1.0 - &at) / (1.0 - &p));
    let rest = stirling(&m) + stirling(&n) - stirling(&(&m + &n));
    let spread = 0.5 * f1(Pw::Log, &(&m * &(&n / (&m + &n)) / (2.0 * PI))) - rest;
    let about = m * log_less(&s, &left) + n * log_less(&t, &right) + spread;
    let plain = less_log_beta(a * &f1(Pw::Log, x) + b * &f1(Pw::Log1p, &-x), a, b);
    choose(&large, &about, &plain)
}
/// v - log B(a, b), in the order that cancels least.
fn less_log_beta(v: Value, a: &Value, b: &Value) -> Value {
    v + f1(Pw::Lgamma, &(a + b)) - f1(Pw::Lgamma, a) - f1(Pw::Lgamma, b)
}

/// The derivative in x. At its ends, where the weight over x (1-x) is 0 / 0, by x^(a-1) (1-x)^(b-1) / B(a, b).
pub(super) fn density(a: &Value, b: &Value, x: &Value) -> Value {
    let end = f2(Pw::Or, &with(Pw::Eq, x, 0.0), &with(Pw::Eq, x, 1.0));
    let safe = keep(&f1(Pw::Not, &end), x, 0.5);
    let inside = f1(Pw::Exp, &log_weight(a, b, &safe)) / (&safe * &(1.0 - &safe));
    let power = |n: &Value, log: Value| log_power(&(n - 1.0), log);
    let logs = power(a, f1(Pw::Log, x)) + power(b, f1(Pw::Log1p, &-x));
    choose(&end, &f1(Pw::Exp, &less_log_beta(logs, a, b)), &inside)
}

/// I_x(a, b): nan unless a, b >= 0, one of them above 0, and 0 <= x <= 1.
pub(super) fn incomplete(a: &Value, b: &Value, x: &Value) -> Value {
    let all = |p: &[Value]| p[1..].iter().fold(p[0].clone(), |all, p| f2(Pw::And, &all, p));
    let good = |v: &Value| f2(Pw::And, &with(Pw::Gt, v, 0.0), &f1(Pw::IsFinite, v));
    let inside = all(&[good(a), good(b), with(Pw::Gt, x, 0.0), with(Pw::Lt, x, 1.0)]);
    let (safe_a, safe_b, safe_x) = (keep(&inside, a, 1.0), keep(&inside, b, 1.0), keep(&inside, x, 0.5));
    let near = f2(Pw::Lt, &safe_x, &((&safe_a + 1.0) / (&safe_a + &safe_b + 2.0)));
    let (first, second) = (choose(&near, &safe_a, &safe_b), choose(&near, &safe_b, &safe_a));
    let weight = f1(Pw::Exp, &log_weight(&safe_a, &safe_b, &safe_x));
    let part = weight / (&first * &fraction(&first, &second, &choose(&near, &safe_x, &(1.0 - &safe_x))));
    let value = choose(&near, &part, &(1.0 - &part));
    let legal = all(&[with(Pw::Ge, a, 0.0), with(Pw::Ge, b, 0.0), with(Pw::Ge, x, 0.0), with(Pw::Le, x, 1.0)]);
    // The whole weight is at 0 if a is 0 or b infinite, and at 1 if b is 0 or a infinite; there is
    // none below x = 0.
    let at = |v: &Value, w: &Value| f2(Pw::Or, &with(Pw::Eq, v, 0.0), &with(Pw::Eq, w, f64::INFINITY));
    let (at_zero, at_one) = (at(a, b), at(b, a));
    let beyond = f2(Pw::And, &at_zero, &with(Pw::Gt, x, 0.0));
    let ends = keep(&f2(Pw::Or, &beyond, &with(Pw::Eq, x, 1.0)), &fill(a, 1.0), 0.0);
    let known = f2(Pw::And, &legal, &f1(Pw::Not, &f2(Pw::And, &at_zero, &at_one)));
    choose(&inside, &value, &keep(&known, &ends, f64::NAN))
}
