//! Hurwitz's zeta function, by the Euler-Maclaurin formula.
//!
//! ```text
//! zeta(x, q) = sum_(k<10) (q+k)^-x + w^(1-x) / (x-1) + w^-x / 2 + sum_j B_2j / (2j)! x (x+1) ... (x+2j-2) w^(1-x-2j),   w = q + 10
//! ```
//! INVARIANT: no loop: ten terms are summed directly and the formula's corrections approximate the rest, for all arguments.
use crate::ops::meaning::{choose, f1, f2, fill, keep, with};
use crate::ops::pointwise::Pw;
use crate::ops::pointwise::lower::BERNOULLI;
use crate::value::Value;

const TERMS: usize = 10;

/// For x > 1 and q > 0.
fn positive(x: &Value, q: &Value) -> Value {
    let minus = -x;
    // the small ones first
    let term = |k: usize| f2(Pw::Pow, &(q + k as f64), &minus);
    let head = (0..TERMS - 1).rev().fold(term(TERMS - 1), |sum, k| sum + term(k));
    let w = q + TERMS as f64;
    let power = f2(Pw::Pow, &w, &minus);
    let mut tail = &power * &w / (x - 1.0) + &power / 2.0;
    let mut factor = x * &power / &w;
    for (j, c) in BERNOULLI.iter().enumerate() {
        tail = tail + *c * &factor;
        let (s, t) = ((x + (2 * j + 1) as f64) / &w, (x + (2 * j + 2) as f64) / &w);
        factor = factor * s * t;
    }
    head + tail
}

/// The sum of (q + k)^-x over k >= 0: nan for x < 1, and for q < 0 unless x is whole; inf at poles.
pub(super) fn zeta(x: &Value, q: &Value) -> Value {
    let and = |a: &Value, b: &Value| f2(Pw::And, a, b);
    let or = |a: &Value, b: &Value| f2(Pw::Or, a, b);
    let whole = |v: &Value| f2(Pw::Eq, v, &f1(Pw::Floor, v));
    let finite = and(&with(Pw::Gt, x, 1.0), &and(&f1(Pw::IsFinite, x), &f1(Pw::IsFinite, q)));
    let above = and(&finite, &with(Pw::Gt, q, 0.0));
    let negative = and(&with(Pw::Lt, q, 0.0), &and(&whole(x), &not(&whole(q))));
    let below = and(&finite, &negative);
    let known = or(&above, &below);
    let safe = keep(&known, x, 2.0);
    // Below zero: the terms after zero, and those before it, which are, up to the sign, the first
    // terms of another such sum.
    let f = keep(&below, &(q - &f1(Pw::Floor, q)), 0.5);
    let (start, end) = (choose(&above, q, &f), keep(&below, &(1.0 - q), 1.5));
    let out = positive(&safe, &start);
    let even = |v: &Value| with(Pw::Eq, &(v % 2.0), 0.0);
    let sign = keep(&even(&safe), &fill(x, 1.0), -1.0);
    let before = positive(&safe, &(1.0 - f)) - positive(&safe, &end);
    let out = choose(&below, &(&out + &(sign * before)), &out);
    let place = and(&with(Pw::Le, q, 0.0), &whole(q));
    let at_zero = and(&with(Pw::Eq, q, 0.0), &with(Pw::Gt, x, 1.0));
    let pole = or(&with(Pw::Eq, x, 1.0), &or(&and(&place, &even(x)), &at_zero));
    let pole = and(&pole, &f2(Pw::Eq, q, q));
    let far = and(&with(Pw::Eq, q, f64::INFINITY), &with(Pw::Gt, x, 1.0));
    let steep = with(Pw::Eq, x, f64::INFINITY);
    let limit = or(&far, &and(&steep, &with(Pw::Gt, q, 1.0)));
    let edge = keep(&pole, &fill(x, f64::INFINITY), f64::NAN);
    let edge = keep(&not(&and(&steep, &with(Pw::Eq, q, 1.0))), &edge, 1.0);
    choose(&known, &out, &keep(&not(&limit), &edge, 0.0))
}
fn not(p: &Value) -> Value {
    f1(Pw::Not, p)
}
