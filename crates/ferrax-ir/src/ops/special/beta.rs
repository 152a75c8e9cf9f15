//! The regularised incomplete beta function, by a continued fraction, and its derivatives.
//!
//! ```text
//! I_x(a, b) = w / (beta_0 + alpha_1 / (beta_1 + alpha_2 / (beta_2 + ..))) = 1 - I_(1-x)(b, a),   w = x^a (1-x)^b / B(a, b)
//! alpha_n = (a+n-1) (a+b+n-1) n (b-n) x^2 / (a+2n-1)^2     beta_n = n + n (b-n) x / (a+2n-1) + (a+n) (lambda + 1 + n (2-x)) / (a+2n+1)
//! lambda = a - (a+b) x
//! ```
//! (Didonato and Morris 1992, Algorithm 708). It is taken on the side where it converges in O(sqrt(max(a, b))) steps. Its terms are positive there, and lambda is
//! computed without rounding of the sum and the product, so nothing cancels. For large parameters Temme's uniform expansion replaces it, as in `gamma`.
//! INVARIANT: each approximant is a mean of the two before it, and derivatives in a and b are carried along, so they are as accurate as values.
use super::gamma::{log_gamma_1p, log_power};
use super::{epsilon, log_less, stirling};
use crate::ops::meaning::{any, choose, f1, f2, fill, keep, repeat, with};
use crate::ops::pointwise::Pw;
use crate::value::Value;
use std::f64::consts::PI;

const MOST_STEPS: i64 = 200_000;

/// alpha_n and beta_n.
struct Terms {
    alpha: Value,
    beta: Value,
    /// Their derivatives in a and b.
    slopes: [[Value; 2]; 2],
}
/// Operands of the fraction: the parameters, x, 1 - x and lambda.
struct Operands<'a> {
    a: &'a Value,
    b: &'a Value,
    x: &'a Value,
    y: &'a Value,
    lambda: &'a Value,
}
impl Operands<'_> {
    fn terms(&self, n: &Value) -> Terms {
        let Operands { a, b, x, y, lambda } = *self;
        let s = a + &(2.0 * n - 1.0);
        let (u, v, w) = (a + &(n - 1.0), a + b + (n - 1.0), n * &(b - n) * x);
        let (by_s, by_t) = (1.0 / &s, 1.0 / (&s + 2.0));
        let (share, scale) = (&u * &by_s, &v * &by_s);
        let wx = &w * x;
        let weight = (a + n) * &by_t;
        let rise = lambda + 1.0 + n * &(y + 1.0);
        let alpha = &share * &scale * &wx;
        let of_s = 2.0 * &alpha * &by_s;
        let alpha_a = (&scale + &share) * &by_s * &wx - of_s;
        let alpha_b = &share * &(&by_s * &wx + &scale * n * (x * x));
        let beta_a = (n + 1.0) * &by_t * &by_t * &rise + &weight * y - &w * &by_s * &by_s;
        let beta_b = n * x * &by_s - &weight * x;
        Terms { alpha, beta: n + &(&w * &by_s) + &weight * &rise, slopes: [[alpha_a, beta_a], [alpha_b, beta_b]] }
    }
    /// beta_0 and its derivatives.
    fn first(&self) -> [Value; 3] {
        let Operands { a, x, y, lambda, .. } = *self;
        let (next, rise) = (1.0 / (a + 1.0), lambda + 1.0);
        let share = a * &next;
        [&share * &rise, &next * &next * &rise + &share * y, -(&share * x)]
    }
}

/// The fraction. State: n, the approximant before, the approximant, B_(n-1) / B_n of its denominators, how far it moved, whether it moves on.
fn fraction(at: &Operands) -> Value {
    let eps = epsilon(at.a);
    let going = |s: &[Value]| any(&s[5]);
    let step = |s: &[Value]| {
        let [n, before, f, ratio, moved, on] = s else { unreachable!("six carries") };
        let n = n + 1.0;
        let Terms { alpha, beta, .. } = at.terms(&n);
        let part = &alpha * ratio;
        let ratio = 1.0 / (&beta + &part);
        let back = &part * &ratio;
        let moved = -(&back * moved);
        let next = &beta * &ratio * f + &back * before;
        let far = f2(Pw::Gt, &f1(Pw::Abs, &moved), &(f1(Pw::Abs, &next) * eps));
        vec![n, f.clone(), choose(on, &next, f), ratio, moved, f2(Pw::And, on, &far)]
    };
    let one = fill(at.a, 1.0);
    let zeroth = at.first()[0].clone();
    let Terms { alpha, beta, .. } = at.terms(&one);
    let moved = &alpha / &beta;
    let all = f2(Pw::Eq, &one, &one);
    let start = vec![one, zeroth.clone(), &zeroth + &moved, 1.0 / beta, moved, all];
    repeat(MOST_STEPS, start, &going, &step)[2].clone()
}

/// The fraction, and the derivatives of its logarithm in a and b. State: that of `fraction`, and for each parameter the derivative of the two approximants, that
/// of the ratio's logarithm, and that of the move.
fn fraction_slopes(at: &Operands) -> [Value; 3] {
    let eps = epsilon(at.a);
    let size = |v: &Value| f1(Pw::Abs, v);
    let going = |s: &[Value]| any(&s[5]);
    let step = |s: &[Value]| {
        let [n, before, f, ratio, moved, on] = &s[..6] else { unreachable!("six carries") };
        let n = n + 1.0;
        let Terms { alpha, beta, slopes } = at.terms(&n);
        let part = &alpha * ratio;
        let next_ratio = 1.0 / (&beta + &part);
        let (back, ahead) = (&part * &next_ratio, &beta * &next_ratio);
        let next = &ahead * f + &back * before;
        let now = -(&back * moved);
        let mut far = f2(Pw::Gt, &size(&now), &(size(&next) * eps));
        let mut rest = vec![];
        for (k, [by_alpha, by_beta]) in slopes.iter().enumerate() {
            let [slope_before, slope, of_ratio, of_moved] = &s[6 + 4 * k..10 + 4 * k] else {
                unreachable!("four carries")
            };
            let by_part = by_alpha * ratio + &part * of_ratio;
            let turn = (&ahead * &by_part - &back * by_beta) * &next_ratio;
            let next_slope = &ahead * slope + &back * slope_before - &turn * moved;
            let of_now = -(&back * of_moved) - &turn * moved;
            let felt = f2(Pw::Gt, &size(&of_now), &(size(&next_slope) * eps));
            far = f2(Pw::Or, &far, &felt);
            let of_ratio = -((by_beta + &by_part) * &next_ratio);
            rest.extend([slope.clone(), choose(on, &next_slope, slope), of_ratio, of_now]);
        }
        let on = f2(Pw::And, on, &far);
        [&[n, f.clone(), choose(&s[5], &next, f), next_ratio, now, on][..], &rest].concat()
    };
    let one = fill(at.a, 1.0);
    let [zeroth, by_a, by_b] = at.first();
    let Terms { alpha, beta, slopes } = at.terms(&one);
    let moved = &alpha / &beta;
    let mut start =
        vec![one.clone(), zeroth.clone(), &zeroth + &moved, 1.0 / &beta, moved.clone(), f2(Pw::Eq, &one, &one)];
    for ([by_alpha, by_beta], by_zeroth) in slopes.iter().zip([by_a, by_b]) {
        let of_moved = (by_alpha - &(&moved * by_beta)) / &beta;
        start.extend([by_zeroth.clone(), by_zeroth + &of_moved, -(by_beta / &beta), of_moved]);
    }
    let out = repeat(MOST_STEPS, start, &going, &step);
    [out[2].clone(), &out[7] / &out[2], &out[11] / &out[2]]
}

/// a - (a + b) x, of the unrounded sum and product: their errors by Knuth and Dekker.
fn lambda(a: &Value, b: &Value, x: &Value) -> Value {
    let sum = a + b;
    let product = x * &sum;
    let fixed = |v: &Value| f1(Pw::StopGradient, v);
    let (c, d, z, total, rounded) = (fixed(a), fixed(b), fixed(x), fixed(&sum), fixed(&product));
    let part = &total - &c;
    let lack = (&c - &(&total - &part)) + (&d - &part);
    let factor = if epsilon(a) < 1e-10 { ((1 << 27) + 1) as f64 } else { ((1 << 12) + 1) as f64 };
    let halves = |v: &Value| {
        let scaled = v * factor;
        let high = &scaled - &(&scaled - v);
        (high.clone(), v - &high)
    };
    let ((p, q), (r, s)) = (halves(&z), halves(&total));
    let less = &q * &s - (rounded - &p * &r - &q * &r - &p * &s);
    let correction = less + z * lack;
    // halves of the greatest numbers are infinite
    let correction = keep(&f1(Pw::IsFinite, &correction), &correction, 0.0);
    a - &product - correction
}

/// log of w over the lesser of a and b. Where they are large by Stirling's series, for the plain formula subtracts large numbers.
fn log_weight(a: &Value, b: &Value, x: &Value) -> Value {
    let large = f2(Pw::And, &with(Pw::Ge, a, 10.0), &with(Pw::Ge, b, 10.0));
    let (m, n) = (keep(&large, a, 10.0), keep(&large, b, 10.0));
    let about = exponent(&m, &n, &keep(&large, x, 0.5));
    let rest = stirling(&m) + stirling(&n) - stirling(&(&m + &n));
    let spread = -0.5
        * f1(Pw::Log, &(2.0 * PI * f2(Pw::Min, &m, &n) * (1.0 + f2(Pw::Min, &m, &n) / f2(Pw::Max, &m, &n))))
        - rest;
    let plain = less_log_beta(a * &f1(Pw::Log, x) + b * &f1(Pw::Log1p, &-x), a, b);
    choose(&large, &(about + spread), &plain)
}
/// log of w.
fn weight(a: &Value, b: &Value, x: &Value) -> Value {
    f2(Pw::Min, a, b) * f1(Pw::Exp, &log_weight(a, b, x))
}
/// a log(x (a+b) / a) + b log((1-x) (a+b) / b), which is 0 at the mean.
fn exponent(a: &Value, b: &Value, x: &Value) -> Value {
    let off = lambda(a, b, x);
    let sum = a + b;
    let (left, right) = (x * &(&sum / a), (1.0 - x) * (&sum / b));
    a * &log_less(&-(&off / a), &left) + b * &log_less(&(off / b), &right)
}
/// The derivatives of that logarithm in a and b: log x + psi(a + b) - psi(a), and log(1-x) + psi(a + b) - psi(b).
fn log_weight_slopes(a: &Value, b: &Value, x: &Value) -> [Value; 2] {
    let (off, sum) = (lambda(a, b, x), a + b);
    // psi less log, of large n
    let rest = |n: &Value| {
        const TERMS: [f64; 5] = [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0];
        let square = 1.0 / (n * n);
        let series = TERMS.iter().rev().fold(fill(n, 0.0), |series, c| series * &square + *c);
        -0.5 / n - series * &square
    };
    let one = |m: &Value, log: Value, t: Value, y: &Value| {
        let large = with(Pw::Ge, m, 10.0);
        let about = with(Pw::Lt, &f1(Pw::Abs, &t), 0.5);
        let ratio = choose(&about, &f1(Pw::Log1p, &keep(&about, &t, 0.0)), &f1(Pw::Log, &(y * &(&sum / m))));
        let of_large = ratio + rest(&keep(&large, &sum, 20.0)) - rest(&keep(&large, m, 10.0));
        choose(&large, &of_large, &(log + f1(Pw::Digamma, &sum) - f1(Pw::Digamma, m)))
    };
    [one(a, f1(Pw::Log, x), -(&off / a), x), one(b, f1(Pw::Log1p, &-x), off / b, &(1.0 - x))]
}
/// v - log B(a, b), less the logarithm of the lesser of a and b, in the order that cancels least. Beside a large parameter by log gamma(p + q) - log gamma(q) of
/// Stirling's series, which is (q - 1/2) log(1 + p/q) + p (log(p + q) - 1) and a rest (Didonato and Morris 1992, Algorithm 708).
fn less_log_beta(v: Value, a: &Value, b: &Value) -> Value {
    let (less, more) = (f2(Pw::Min, a, b), f2(Pw::Max, a, b));
    let large = f2(Pw::And, &with(Pw::Ge, &more, 10.0), &f1(Pw::IsFinite, &more));
    let (p, q) = (keep(&large, &less, 1.0), keep(&large, &more, 10.0));
    let sum = &p + &q;
    let growth = (&q - 0.5) * f1(Pw::Log1p, &(&p / &q)) + &p * (f1(Pw::Log, &sum) - 1.0);
    let beside = &v + growth + stirling(&sum) - stirling(&q) - log_gamma_1p(&p);
    let gammas = log_gamma_1p(&(a + b)) - log_gamma_1p(&less) - log_gamma_1p(&more);
    let plain = v + gammas - f1(Pw::Log1p, &(&less / &more));
    choose(&large, &beside, &plain)
}

/// The derivative in x: of large parameters by the weight, elsewhere by x^(a-1) (1-x)^(b-1) / B(a, b), whose power may be in range where the weight is not.
pub(super) fn density(a: &Value, b: &Value, x: &Value) -> Value {
    let within = f2(Pw::And, &with(Pw::Gt, x, 0.0), &with(Pw::Lt, x, 1.0));
    let large = f2(Pw::And, &within, &with(Pw::Ge, &f2(Pw::Min, a, b), 10.0));
    let safe = keep(&large, x, 0.5);
    let of_large = weight(a, b, &safe) / (&safe * &(1.0 - &safe));
    let power = |n: &Value, log: Value| log_power(&(n - 1.0), log);
    let logs = power(a, f1(Pw::Log, x)) + power(b, f1(Pw::Log1p, &-x));
    choose(&large, &of_large, &(f2(Pw::Min, a, b) * f1(Pw::Exp, &less_log_beta(logs, a, b))))
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

/// Whether the fraction is taken of I_x(a, b) itself, not of its complement, and its operands.
struct Side {
    near: Value,
    first: Value,
    second: Value,
    x: Value,
    y: Value,
    lambda: Value,
}
impl Side {
    fn of(a: &Value, b: &Value, x: &Value) -> Side {
        let (near, y) = (f2(Pw::Lt, x, &((a + 1.0) / (a + b + 2.0))), 1.0 - x);
        let pick = |v: &Value, w: &Value| choose(&near, v, w);
        let off = lambda(a, b, x);
        Side { first: pick(a, b), second: pick(b, a), x: pick(x, &y), y: pick(&y, x), lambda: pick(&off, &-&off), near }
    }
    fn at(&self) -> Operands<'_> {
        Operands { a: &self.first, b: &self.second, x: &self.x, y: &self.y, lambda: &self.lambda }
    }
}

/// The derivatives of I_x(a, b) in a and b: 0 at the ends of x and for one infinite parameter, nan unless a, b > 0 and 0 <= x <= 1.
pub(super) fn slopes(a: &Value, b: &Value, x: &Value) -> [Value; 2] {
    let (within, [safe_a, safe_b, safe_x]) = inside(a, b, x);
    let side = Side::of(&safe_a, &safe_b, &safe_x);
    let near = &side.near;
    let [f, by_first, by_second] = fraction_slopes(&side.at());
    let part = weight(&safe_a, &safe_b, &safe_x) / f;
    let [log_a, log_b] = log_weight_slopes(&safe_a, &safe_b, &safe_x);
    let little = with(Pw::Lt, &side.first, 1.0);
    let [little_first, little_second] = complement_slopes(&side.first, &side.second, &side.x, &little);
    let of_first = choose(&little, &little_first, &(&part * (choose(near, &log_a, &log_b) - by_first)));
    let of_second = choose(&little, &little_second, &(&part * (choose(near, &log_b, &log_a) - by_second)));
    let [by_a, by_b] = [choose(near, &of_first, &-&of_second), choose(near, &of_second, &-&of_first)];
    let positive = |v: &Value| with(Pw::Gt, v, 0.0);
    let legal = all(&[positive(a), positive(b), with(Pw::Ge, x, 0.0), with(Pw::Le, x, 1.0)]);
    let infinite = |v: &Value| with(Pw::Eq, v, f64::INFINITY);
    let still = f2(Pw::And, &legal, &f1(Pw::Not, &f2(Pw::And, &infinite(a), &infinite(b))));
    let ends = keep(&still, &fill(a, 0.0), f64::NAN);
    [by_a, by_b].map(|slope| choose(&within, &slope, &ends))
}

/// Whether both parameters are so large that two terms of Temme's expansion give full precision, and its value there.
fn uniform(a: &Value, b: &Value, x: &Value) -> (Value, Value) {
    let least = if epsilon(a) < 1e-10 { 1e8 } else { 1e6 };
    let large = with(Pw::Ge, &f2(Pw::Min, a, b), least);
    let (a, b, x) = (keep(&large, a, least), keep(&large, b, least), keep(&large, x, 0.5));
    let (sum, off) = (&a + &b, -lambda(&a, &b, &x));
    let (p, q) = (&a / &sum, &b / &sum);
    let power = f2(Pw::Min, &exponent(&a, &b, &x), &fill(&a, 0.0));
    let spread = f1(Pw::Sqrt, &(&p * &q));
    let (skew, bend) = ((&q - &p) / &spread, (1.0 - 3.0 * &p * &q) / (&p * &q));
    // Farther away, its factor is 0.
    let t = &off / &(&sum * &spread);
    let c = &skew / 3.0 + t * (&skew * &skew / 6.0 - bend / 4.0);
    let rest = f1(Pw::Exp, &power) / f1(Pw::Sqrt, &(2.0 * PI * sum)) * c;
    let at = f1(Pw::Sign, &off) * f1(Pw::Sqrt, &-power);
    (large, 0.5 * f1(Pw::Erfc, &-at) + rest)
}

/// log gamma(a + b) - log gamma(a) of b <= 1, with the digits of b: by the recurrence up to a + 10, and there by Stirling's series.
fn growth(a: &Value, b: &Value) -> Value {
    let low = (0..10).fold(fill(a, 0.0), |sum, k| sum + f1(Pw::Log1p, &(b / &(a + k as f64))));
    let up = a + 10.0;
    let log = f1(Pw::Log1p, &(b / &up));
    let power = |k: i32, c: f64| c * f1(Pw::Expm1, &(-(k as f64) * &log)) / up_to(&up, k);
    let rest = power(1, 1.0 / 12.0) + power(3, -1.0 / 360.0) + power(5, 1.0 / 1260.0) + power(7, -1.0 / 1680.0);
    let rest = rest + power(9, 1.0 / 1188.0) + power(11, -691.0 / 360360.0) + power(13, 1.0 / 156.0);
    (&up - 0.5) * &log + b * &(f1(Pw::Log, &(&up + b)) - 1.0) + rest - low
}
/// An odd power.
fn up_to(v: &Value, k: i32) -> Value {
    let square = v * v;
    (0..k / 2).fold(v.clone(), |power, _| power * &square)
}

/// Its derivative in a, with the digits of b.
fn growth_slope(a: &Value, b: &Value) -> Value {
    const TERMS: [f64; 7] =
        [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
    let low = (0..10).fold(fill(a, 0.0), |sum, k| sum + b / &((a + k as f64) * (a + b + k as f64)));
    let up = a + 10.0;
    let log = f1(Pw::Log1p, &(b / &up));
    let square = &up * &up;
    let (mut power, mut rest) = (fill(a, 1.0), fill(a, 0.0));
    for (k, c) in TERMS.iter().enumerate() {
        power = power * &square;
        rest = rest + *c * f1(Pw::Expm1, &(-2.0 * (k + 1) as f64 * &log)) / &power;
    }
    low + &log + b / &(2.0 * &up * (&up + b)) - rest
}

/// The derivatives of I_x(a, b) of a small a in a and b, by the terms of `complement`.
fn complement_slopes(a: &Value, b: &Value, x: &Value, used: &Value) -> [Value; 2] {
    let (a, b, x) = (keep(used, a, 0.5), keep(used, b, 1.0), keep(used, x, 0.5));
    let eps = epsilon(&a);
    // n, the factor and its derivative in b, the sum and its derivatives in a and b
    let step = |s: &[Value]| {
        let [n, factor, by_b, sum, sum_a, sum_b] = s else { unreachable!("six carries") };
        let n = n + 1.0;
        let (share, part) = ((&n - &b) / &n * &x, &x / &n);
        let by_b = by_b * &share - factor * &part;
        let factor = factor * &share;
        let inverse = 1.0 / (&a + &n);
        let term = &factor * &inverse;
        let (sum, sum_a, sum_b) = (sum + &term, sum_a - &term * &inverse, sum_b + &by_b * &inverse);
        vec![n, factor, by_b, sum, sum_a, sum_b]
    };
    let going = |s: &[Value]| {
        let felt = |part: &Value, sum: &Value| f2(Pw::Gt, &f1(Pw::Abs, part), &(f1(Pw::Abs, sum) * eps));
        any(&f2(Pw::Or, &felt(&s[1], &s[3]), &felt(&s[2], &s[5])))
    };
    let (one, zero) = (fill(&a, 1.0), fill(&a, 0.0));
    let out =
        repeat(MOST_STEPS, step(&[zero.clone(), one, zero.clone(), zero.clone(), zero.clone(), zero]), &going, &step);
    let (sum, sum_a, sum_b) = (&out[3], &out[4], &out[5]);
    let log_x = f1(Pw::Log, &x);
    let power = f1(Pw::Exp, &(&a * &log_x - log_gamma_1p(&a) + growth(&b, &a)));
    let by_a = log_x - f1(Pw::Digamma, &(&a + 1.0)) + f1(Pw::Digamma, &(&a + &b));
    let whole = 1.0 + &a * sum;
    let of_a = &power * (by_a * &whole + sum + &a * sum_a);
    [of_a, &power * (growth_slope(&b, &a) * whole + &a * sum_b)]
}

/// 1 - I_x(a, b) of a small a, whose digits 1 less the function would lose, if it is `used`:
/// I = x^a / (a B(a, b)) (1 + a sum_(n >= 1) (1-b) (2-b) .. (n-b) x^n / (n! (a+n))).
fn complement(a: &Value, b: &Value, x: &Value, used: &Value) -> Value {
    let (a, b, x) = (keep(used, a, 0.5), keep(used, b, 1.0), keep(used, x, 0.5));
    let eps = epsilon(&a);
    let step = |s: &[Value]| {
        let [n, factor, sum] = s else { unreachable!("three carries") };
        let n = n + 1.0;
        let factor = factor * &((&n - &b) / &n * &x);
        let sum = sum + &(&factor / &(&a + &n));
        vec![n, factor, sum]
    };
    let going = |s: &[Value]| any(&f2(Pw::Gt, &f1(Pw::Abs, &s[1]), &(f1(Pw::Abs, &s[2]) * eps)));
    let (one, zero) = (fill(&a, 1.0), fill(&a, 0.0));
    let sum = repeat(MOST_STEPS, step(&[zero.clone(), one, zero]), &going, &step)[2].clone();
    let log = &a * &f1(Pw::Log, &x) - log_gamma_1p(&a) + growth(&b, &a);
    -f1(Pw::Expm1, &log) - &a * &f1(Pw::Exp, &log) * sum
}

/// I_x(a, b): nan unless a, b >= 0, one of them above 0, and 0 <= x <= 1.
pub(super) fn incomplete(a: &Value, b: &Value, x: &Value) -> Value {
    let (inside, [safe_a, safe_b, safe_x]) = inside(a, b, x);
    let (large, of_large) = uniform(&safe_a, &safe_b, &safe_x);
    let small = f1(Pw::Not, &large);
    let [safe_a, safe_b] = [&safe_a, &safe_b].map(|v| keep(&small, v, 1.0));
    let side = Side::of(&safe_a, &safe_b, &safe_x);
    let part = weight(&safe_a, &safe_b, &safe_x) / fraction(&side.at());
    let little = f2(Pw::And, &with(Pw::Lt, &safe_b, 1.0), &f1(Pw::Not, &side.near));
    let rest = choose(&little, &complement(&safe_b, &safe_a, &(1.0 - &safe_x), &little), &(1.0 - &part));
    let value = choose(&large, &of_large, &choose(&side.near, &part, &rest));
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
