//! The regularised incomplete beta function, by its continued fraction, and its derivatives.
//!
//! ```text
//! I_x(a, b) = x^a (1-x)^b / (a B(a, b)) / (1 + d_1 / (1 + d_2 / (1 + ...))) = 1 - I_(1-x)(b, a)
//! d_(2m) = m (b-m) x / ((a+2m-1) (a+2m))          d_(2m+1) = -(a+m) (a+b+m) x / ((a+2m) (a+2m+1))
//! ```
//! INVARIANT: the fraction is taken on the side where it converges in O(sqrt(max(a, b))) steps; the other side is one minus it. For derivatives in a and b
//! the recurrence carries those of its logarithm along, so that they are as accurate as values.
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

/// The fraction, and the derivatives of its logarithm in a and b: `lc`, `ld` are those of c and d.
fn fraction_slopes(a: &Value, b: &Value, x: &Value) -> [Value; 3] {
    let eps = epsilon(a);
    let (noise, tiny) = (8.0 * eps, tiny(a) / eps);
    let size = |v: &Value| f1(Pw::Abs, v);
    let away = |v: Value| keep(&with(Pw::Ge, &size(&v), tiny), &v, tiny);
    // 1 + t / c and 1 / (1 + t d), after those with the derivatives of t in a and b
    let advance = |s: &[Value], t: &Value, by: [Value; 2]| {
        let (c, d) = (&s[0], &s[1]);
        let (next_c, next_d) = (away(1.0 + t / c), 1.0 / away(1.0 + t * d));
        let lc = |i: usize| (&by[i] - &(t * &s[2 + i])) / c / &next_c;
        let ld = |i: usize| -(&by[i] + &(t * &s[4 + i])) * d * &next_d;
        let (logs_c, logs_d) = ([lc(0), lc(1)], [ld(0), ld(1)]);
        [[next_c, next_d], logs_c, logs_d].concat()
    };
    let step = |s: &[Value]| {
        let (k, h) = (&s[0], &s[1]);
        let twice = a + &(2.0 * k);
        let by_b = -(a + k) * x / (&twice * (&twice + 1.0));
        let rates = 1.0 / (a + k) + 1.0 / (a + b + k) - 1.0 / &twice - 1.0 / (&twice + 1.0);
        let t = &by_b * (a + b + k);
        let first = advance(&s[2..8], &t, [&t * &rates, by_b]);
        let k = k + 1.0;
        let twice = a + &(2.0 * &k);
        let by_b = &k * x / ((&twice - 1.0) * &twice);
        let t = &by_b * (b - &k);
        let rates = -(1.0 / (&twice - 1.0) + 1.0 / &twice);
        let second = advance(&first, &t, [&t * &rates, by_b]);
        let change = &first[0] * &first[1] * (&second[0] * &second[1]) - 1.0;
        let moves = with(Pw::Gt, &size(&change), noise);
        let h = h * &(keep(&moves, &change, 0.0) + 1.0);
        let turned = |i: usize| {
            let turn = &first[2 + i] + &first[4 + i] + &second[2 + i] + &second[4 + i];
            // lc and ld cancel in the end, up to rounding
            let felt = f2(Pw::Gt, &size(&turn), &(noise * (size(&s[8 + i]) + size(&second[2 + i]))));
            (&s[8 + i] + &keep(&felt, &turn, 0.0), felt)
        };
        let ((by_a, felt_a), (by_b, felt_b)) = (turned(0), turned(1));
        let moves = f2(Pw::Or, &moves, &f2(Pw::Or, &felt_a, &felt_b));
        [&[k, h][..], &second, &[by_a, by_b, moves]].concat()
    };
    let going = |s: &[Value]| any(&s[10]);
    let (one, zero) = (fill(a, 1.0), fill(a, 0.0));
    let mut state = vec![zero.clone(); 10];
    (state[1], state[2]) = (one.clone(), one);
    state.push(f2(Pw::Eq, &zero, &zero));
    let out = repeat(MOST_STEPS, step(&state), &going, &step);
    [out[1].clone(), out[8].clone(), out[9].clone()]
}

/// a / (a + b), b / (a + b), and x less the first, from the end that x is nearer to.
fn about_mean(a: &Value, b: &Value, x: &Value) -> (Value, Value, Value) {
    let (p, q) = (a / (a + b), b / (a + b));
    let off = choose(&with(Pw::Lt, &p, 0.5), &(x - &p), &(&q - (1.0 - x)));
    (p, q, off)
}

/// log of x^a (1-x)^b / B(a, b). Where a and b are large by Stirling's series, for the plain formula subtracts large numbers.
fn log_weight(a: &Value, b: &Value, x: &Value) -> Value {
    let large = f2(Pw::And, &with(Pw::Ge, a, 10.0), &with(Pw::Ge, b, 10.0));
    let (m, n) = (keep(&large, a, 10.0), keep(&large, b, 10.0));
    let at = keep(&large, x, 0.5);
    let (p, q, off) = about_mean(&m, &n, &at);
    let (s, t) = (&off / &p, -off / &q);
    let (left, right) = (&at / &p, (1.0 - &at) / &q);
    let rest = stirling(&m) + stirling(&n) - stirling(&(&m + &n));
    let spread = 0.5 * f1(Pw::Log, &(&m * &(&n / (&m + &n)) / (2.0 * PI))) - rest;
    let about = m * log_less(&s, &left) + n * log_less(&t, &right) + spread;
    let plain = less_log_beta(a * &f1(Pw::Log, x) + b * &f1(Pw::Log1p, &-x), a, b);
    choose(&large, &about, &plain)
}
/// The derivatives of that logarithm in a and b: log x + psi(a + b) - psi(a), and log(1-x) + psi(a + b) - psi(b).
fn log_weight_slopes(a: &Value, b: &Value, x: &Value) -> [Value; 2] {
    let (p, q, off) = about_mean(a, b, x);
    let sum = a + b;
    // psi less log, of large n
    let rest = |n: &Value| {
        const TERMS: [f64; 5] = [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0];
        let square = 1.0 / (n * n);
        let series = TERMS.iter().rev().fold(fill(n, 0.0), |series, c| series * &square + *c);
        -0.5 / n - series * &square
    };
    let one = |m: &Value, log: Value, off: &Value, share: &Value, y: &Value| {
        let large = with(Pw::Ge, m, 10.0);
        let t = off / share;
        let about = with(Pw::Lt, &f1(Pw::Abs, &t), 0.5);
        let ratio = choose(&about, &f1(Pw::Log1p, &keep(&about, &t, 0.0)), &f1(Pw::Log, &(y / share)));
        let of_large = ratio + rest(&keep(&large, &sum, 20.0)) - rest(&keep(&large, m, 10.0));
        choose(&large, &of_large, &(log + f1(Pw::Digamma, &sum) - f1(Pw::Digamma, m)))
    };
    [one(a, f1(Pw::Log, x), &off, &p, x), one(b, f1(Pw::Log1p, &-x), &-&off, &q, &(1.0 - x))]
}
/// v - log B(a, b), in the order that cancels least. Beside a large parameter by log gamma(p + q) - log gamma(q) of Stirling's series, which is
/// (q - 1/2) log(1 + p/q) + p (log(p + q) - 1) and a rest (Didonato and Morris 1992, Algorithm 708).
fn less_log_beta(v: Value, a: &Value, b: &Value) -> Value {
    let (less, more) = (f2(Pw::Min, a, b), f2(Pw::Max, a, b));
    let large = f2(Pw::And, &with(Pw::Ge, &more, 10.0), &f1(Pw::IsFinite, &more));
    let (p, q) = (keep(&large, &less, 1.0), keep(&large, &more, 10.0));
    let sum = &p + &q;
    let growth = (&q - 0.5) * f1(Pw::Log1p, &(&p / &q)) + &p * (f1(Pw::Log, &sum) - 1.0);
    let beside = &v + growth + stirling(&sum) - stirling(&q) - f1(Pw::Lgamma, &p);
    let plain = v + f1(Pw::Lgamma, &(a + b)) - f1(Pw::Lgamma, a) - f1(Pw::Lgamma, b);
    choose(&large, &beside, &plain)
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

/// The derivatives of the density in a and b; 0 at the ends.
pub(super) fn density_slopes(a: &Value, b: &Value, x: &Value) -> [Value; 2] {
    let inside = f2(Pw::And, &with(Pw::Gt, x, 0.0), &with(Pw::Lt, x, 1.0));
    let safe = keep(&inside, x, 0.5);
    let density = density(a, b, &safe);
    log_weight_slopes(a, b, &safe).map(|slope| keep(&inside, &(&density * &slope), 0.0))
}

/// Arguments for which the formulas hold, and where they are the given ones.
fn inside(a: &Value, b: &Value, x: &Value) -> (Value, [Value; 3]) {
    let good = |v: &Value| f2(Pw::And, &with(Pw::Gt, v, 0.0), &f1(Pw::IsFinite, v));
    let inside = all(&[good(a), good(b), with(Pw::Gt, x, 0.0), with(Pw::Lt, x, 1.0)]);
    let safe = [keep(&inside, a, 1.0), keep(&inside, b, 1.0), keep(&inside, x, 0.5)];
    (inside, safe)
}
fn all(p: &[Value]) -> Value {
    p[1..].iter().fold(p[0].clone(), |all, p| f2(Pw::And, &all, p))
}

/// The derivatives of I_x(a, b) in a and b: 0 at the ends of x and for one infinite parameter, nan unless a, b > 0 and 0 <= x <= 1.
pub(super) fn slopes(a: &Value, b: &Value, x: &Value) -> [Value; 2] {
    let (within, [safe_a, safe_b, safe_x]) = inside(a, b, x);
    let near = f2(Pw::Lt, &safe_x, &((&safe_a + 1.0) / (&safe_a + &safe_b + 2.0)));
    let (first, second) = (choose(&near, &safe_a, &safe_b), choose(&near, &safe_b, &safe_a));
    let [h, by_first, by_second] = fraction_slopes(&first, &second, &choose(&near, &safe_x, &(1.0 - &safe_x)));
    let part = f1(Pw::Exp, &log_weight(&safe_a, &safe_b, &safe_x)) / (&first * &h);
    let [log_a, log_b] = log_weight_slopes(&safe_a, &safe_b, &safe_x);
    let of_first = &part * (choose(&near, &log_a, &log_b) - 1.0 / &first - by_first);
    let of_second = &part * (choose(&near, &log_b, &log_a) - by_second);
    let [by_a, by_b] = [choose(&near, &of_first, &-&of_second), choose(&near, &of_second, &-&of_first)];
    let positive = |v: &Value| with(Pw::Gt, v, 0.0);
    let legal = all(&[positive(a), positive(b), with(Pw::Ge, x, 0.0), with(Pw::Le, x, 1.0)]);
    let infinite = |v: &Value| with(Pw::Eq, v, f64::INFINITY);
    let still = f2(Pw::And, &legal, &f1(Pw::Not, &f2(Pw::And, &infinite(a), &infinite(b))));
    let ends = keep(&still, &fill(a, 0.0), f64::NAN);
    [by_a, by_b].map(|slope| choose(&within, &slope, &ends))
}

/// I_x(a, b): nan unless a, b >= 0, one of them above 0, and 0 <= x <= 1.
pub(super) fn incomplete(a: &Value, b: &Value, x: &Value) -> Value {
    let (inside, [safe_a, safe_b, safe_x]) = inside(a, b, x);
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
