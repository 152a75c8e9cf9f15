//! The incomplete gamma functions and their derivatives in both arguments, by series (x below a + 1) and continued fraction (above).
//!
//! ```text
//! P(a, x) = w S / a,  S = sum x^n / ((a+1) ... (a+n))        Q(a, x) = 1 - P = w C,  C = 1 / (x+1-a - 1(1-a) / (x+3-a - ...))
//! w = x^a exp(-x) / gamma(a) = x p,  p the density of the gamma distribution
//! ```
//! For large a, whose expansions are long, by Temme's uniform one (Mathematics of Computation 33, 1979; coefficients of DiDonato and Morris, 1986):
//!
//! ```text
//! Q(a, x) = erfc(eta sqrt(a/2)) / 2 + R,   R = exp(-a eta^2/2) / sqrt(2 pi a) (c0(eta) + c1(eta) / a + ..),   eta^2/2 = x/a - 1 - log(x/a)
//! ```
//! For a and x below 1, where Q is as small as a, and 1 - P would lose its digits:
//!
//! ```text
//! P(a, x) = x^a / gamma(a+1) (1 + a T),   T = sum_(n >= 1) (-x)^n / (n! (a+n))
//! ```
//! INVARIANT: both expansions carry their derivative in a along, so that derivatives are as accurate as values.
use super::{epsilon, log_less, stirling, tiny};
use crate::ops::meaning::{any, choose, f1, f2, fill, keep, repeat, with};
use crate::ops::pointwise::Pw;
use crate::value::Value;
use std::f64::consts::PI;

const MOST_TERMS: i64 = 20_000;

/// S and its derivative in a.
fn series(a: &Value, x: &Value) -> [Value; 2] {
    let eps = epsilon(a);
    // r, the term and its derivative, the sums
    let step = |s: &[Value]| {
        let [r, c, dc, s, ds] = s else { unreachable!("five carries") };
        let r = r + 1.0;
        let next = c * x / &r;
        let dc = dc * x / &r - &next / &r;
        vec![r, next.clone(), dc.clone(), s + &next, ds + &dc]
    };
    let going = |s: &[Value]| {
        let [_, c, dc, s, ds] = s else { unreachable!("five carries") };
        let value = f2(Pw::Gt, c, &(s * eps));
        let slope = f2(Pw::Gt, &f1(Pw::Abs, dc), &(f1(Pw::Abs, ds) * eps));
        any(&f2(Pw::Or, &value, &slope))
    };
    let (one, zero) = (fill(a, 1.0), fill(a, 0.0));
    // The first derivative's term is -x / (a+1)^2: 0 must not end the loop.
    let first = step(&[a.clone(), one.clone(), zero.clone(), one, zero]);
    let out = repeat(MOST_TERMS, first, &going, &step);
    [out[3].clone(), out[4].clone()]
}

/// C and its derivative in a, by Lentz's method: C is a product of ratios. Those within rounding of 1 are taken for 1: they would never all be, and
/// each would add its rounding.
fn fraction(a: &Value, x: &Value) -> [Value; 2] {
    let (noise, tiny) = (8.0 * epsilon(a), tiny(a));
    let felt = |v: &Value| with(Pw::Gt, &f1(Pw::Abs, v), noise);
    let away = |v: Value| keep(&with(Pw::Ne, &v, 0.0), &v, tiny);
    let step = |s: &[Value]| {
        let [k, b, c, dc, d, dd, h, dh, _] = s else { unreachable!("nine carries") };
        let k = k + 1.0;
        let p = &k * &(a - &k);
        let b = b + 2.0;
        let slope = &k * d + &p * dd - 1.0;
        let d = 1.0 / away(&p * d + &b);
        let dd = -(slope * &d * &d);
        let dc = &k / c - &p * dc / (c * c) - 1.0;
        let c = away(&b + &(&p / c));
        let (change, slope) = (&d * &c - 1.0, &dd * &c + &d * &dc);
        let (moves, turns) = (felt(&change), felt(&slope));
        // Of a whole order one change is 0, and its derivatives are not.
        let turns_alone = f2(Pw::And, &f1(Pw::Not, &moves), &turns);
        let still = keep(&turns_alone, &(&change - &f1(Pw::StopGradient, &change)), 0.0);
        let ratio = keep(&moves, &change, 0.0) + still + 1.0;
        let (next, dnext) = (h * &ratio, dh * &ratio + h * &keep(&turns, &slope, 0.0));
        vec![k, b, c, dc, d, dd, next, dnext, f2(Pw::Or, &moves, &turns)]
    };
    let going = |s: &[Value]| any(&s[8]);
    let b = (x - a) + 1.0;
    let d = 1.0 / &b;
    let square = &d * &d;
    let (huge, zero) = (fill(a, (1.0 / tiny).sqrt()), fill(a, 0.0));
    let all = f2(Pw::Eq, &zero, &zero);
    let first = vec![zero.clone(), b, huge, zero, d.clone(), square.clone(), d, square, all];
    let out = repeat(MOST_TERMS, first, &going, &step);
    [out[6].clone(), out[7].clone()]
}

/// The two sums of the series and the fraction's two values, each expansion at a harmless point where it is not used: the series where `low`, the
/// fraction where not, if `beyond`.
fn both(a: &Value, x: &Value, low: &Value, beyond: &Value) -> ([Value; 2], [Value; 2]) {
    let high = f2(Pw::And, &f1(Pw::Not, low), beyond);
    let s = series(&keep(low, a, 1.0), &keep(low, x, 0.5));
    let c = fraction(&keep(&high, a, 1.0), &keep(&high, x, 3.0));
    (s, c)
}

/// log gamma(a + 1), for small a with the digits of a.
pub(super) fn log_gamma_1p(a: &Value) -> Value {
    // (-1)^k (zeta(k) - 1) / k
    const TERMS: [f64; 25] = [
        0.32246703342411322,
        -0.067352301053198095,
        0.020580808427784548,
        -0.0073855510286739853,
        0.0028905103307415233,
        -0.001192753911703261,
        0.00050966952474304242,
        -0.00022315475845357938,
        9.9457512781808534e-5,
        -4.4926236738133142e-5,
        2.0507212775670692e-5,
        -9.4394882752683959e-6,
        4.3748667899074878e-6,
        -2.0392157538013662e-6,
        9.5514121304074198e-7,
        -4.492469198764566e-7,
        2.1207184805554666e-7,
        -1.00432248239681e-7,
        4.7698101693639806e-8,
        -2.2711094608943165e-8,
        1.0838659214896954e-8,
        -5.1834750419700467e-9,
        2.4836745438024783e-9,
        -1.1921401405860912e-9,
        5.731367241678862e-10,
    ];
    const ONE_LESS_EULER: f64 = 0.42278433509846714;
    let small = with(Pw::Lt, a, 0.5);
    let at = keep(&small, a, 0.0);
    let used = if epsilon(a) < 1e-10 { TERMS.len() } else { 12 };
    let sum = TERMS[..used].iter().rev().fold(fill(a, 0.0), |sum, c| sum * &at + *c);
    let series = &at * &(sum * &at + ONE_LESS_EULER) - f1(Pw::Log1p, &at);
    choose(&small, &series, &f1(Pw::Lgamma, &(keep(&f1(Pw::Not, &small), a, 1.0) + 1.0)))
}

/// Whether a and x are below 1, and P or Q where they are.
fn of_little(a: &Value, x: &Value, upper: bool) -> (Value, Value) {
    let little = f2(Pw::And, &with(Pw::Lt, a, 1.0), &with(Pw::Lt, x, 1.0));
    let (a, x) = (keep(&little, a, 0.5), keep(&little, x, 0.5));
    let terms = if epsilon(&a) < 1e-10 { 18 } else { 10 };
    // T = -x (1 / (a+1) - x/2 (1 / (a+2) - x/3 (..)))
    let sum = (1..=terms).rev().fold(fill(&a, 0.0), |sum, n| (1.0 / (&a + n as f64) + sum) * -(&x / n as f64));
    let log = &a * &f1(Pw::Log, &x) - log_gamma_1p(&a);
    let power = f1(Pw::Exp, &log);
    let rest = &power * &(a * sum);
    (little, if upper { -f1(Pw::Expm1, &log) - rest } else { power + rest })
}

/// log(w / a). For large a by Stirling's series about x = a, where the plain formula subtracts large numbers.
fn log_weight(a: &Value, x: &Value) -> Value {
    let large = with(Pw::Ge, a, 10.0);
    let n = keep(&large, a, 10.0);
    let at = keep(&large, x, 10.0);
    let (t, ratio) = ((&at - &n) / &n, &at / &n);
    let about = &n * &log_less(&t, &ratio) - 0.5 * f1(Pw::Log, &(2.0 * PI * &n)) - stirling(&n);
    choose(&large, &about, &(a * &f1(Pw::Log, x) - x - log_gamma_1p(a)))
}

/// Orders from which the first two terms of the uniform expansion reach full precision.
const LARGE: f64 = 1e6;
/// P or Q of an order that is LARGE.
fn uniform(a: &Value, x: &Value, upper: bool) -> Value {
    const C0: [f64; 6] = [-1.0 / 3.0, 1.0 / 12.0, -2.0 / 135.0, 1.0 / 864.0, 1.0 / 2835.0, -139.0 / 777_600.0];
    const C1: [f64; 4] = [-1.0 / 540.0, -1.0 / 288.0, 1.0 / 378.0, -77.0 / 77_760.0];
    let t = (x - a) / a;
    let half_square = -log_less(&t, &(x / a));
    let eta = f1(Pw::Sign, &t) * f1(Pw::Sqrt, &(2.0 * &half_square));
    // Farther away, its factor is 0.
    let near = with(Pw::Min, &with(Pw::Max, &eta, -1.0), 1.0);
    let polynomial = |c: &[f64]| c.iter().rev().fold(fill(a, 0.0), |y, c| y * &near + *c);
    let rest =
        f1(Pw::Exp, &-(a * &half_square)) / f1(Pw::Sqrt, &(2.0 * PI * a)) * (polynomial(&C0) + polynomial(&C1) / a);
    let at = eta * f1(Pw::Sqrt, &(0.5 * a));
    if upper { 0.5 * f1(Pw::Erfc, &at) + rest } else { 0.5 * f1(Pw::Erfc, &-at) - rest }
}

/// -(dP/da) / p of an order that is LARGE: the expansion's derivative, out of which eta cancels. For t = x/a - 1 and L = log(x/a) it is
/// x/a (L / t + g / a), g = (t + t^2/2 - (1+t) L) / t^3 = 1/6 - t/12 + t^2/20 - ..
fn slope_of_large(a: &Value, x: &Value) -> Value {
    let (t, ratio) = ((x - a) / a, with(Pw::Max, &(x / a), tiny(a)));
    let within = |n: f64| with(Pw::Lt, &f1(Pw::Abs, &t), n);
    let (still, small) = (with(Pw::Ne, &t, 0.0), within(0.1));
    let far = keep(&f1(Pw::Not, &small), &t, 1.0);
    let log = choose(&within(0.5), &f1(Pw::Log1p, &t), &f1(Pw::Log, &ratio));
    let main = keep(&still, &(&log / keep(&still, &t, 1.0)), 1.0);
    let about = (0..8).rev().fold(fill(a, 0.0), |y, k| y * -&t + 1.0 / ((k + 2) * (k + 3)) as f64);
    let away = (0.5 + (1.0 - &log * (&ratio / &far)) / &far) / &far;
    ratio * (main + choose(&small, &about, &away) / a)
}

/// Whether the order is infinite and x is not, nor below 0.
fn bounded_below(a: &Value, x: &Value) -> Value {
    let finite = f2(Pw::And, &with(Pw::Ge, x, 0.0), &with(Pw::Lt, x, f64::INFINITY));
    f2(Pw::And, &with(Pw::Eq, a, f64::INFINITY), &finite)
}

/// n log x, the logarithm of a power: 0 where n is, at x = 0 too. Elsewhere it has its slope in n there.
pub(super) fn log_power(n: &Value, log: Value) -> Value {
    let of_zero = f2(Pw::And, &with(Pw::Eq, n, 0.0), &f1(Pw::Not, &f1(Pw::IsFinite, &log)));
    choose(&of_zero, &fill(n, 0.0), &(n * &log))
}
/// p, the derivative of P in x: below 1 by a x^(a-1) exp(-x) / gamma(a+1), whose power may be in range where w is not.
pub(super) fn density(a: &Value, x: &Value) -> Value {
    let low = with(Pw::Lt, x, 1.0);
    let safe = keep(&f1(Pw::Not, &low), x, 1.0);
    let above = f1(Pw::Exp, &log_weight(a, &safe)) * (a / &safe);
    let below = a * &f1(Pw::Exp, &(log_power(&(a - 1.0), f1(Pw::Log, x)) - x - log_gamma_1p(a)));
    choose(&bounded_below(a, x), &fill(a, 0.0), &choose(&low, &below, &above))
}

/// Whether the formulas hold, and arguments for which they do.
fn inside(a: &Value, x: &Value) -> (Value, Value, Value) {
    let good = |v: &Value| f2(Pw::And, &with(Pw::Gt, v, 0.0), &f1(Pw::IsFinite, v));
    let inside = f2(Pw::And, &good(a), &good(x));
    (inside.clone(), keep(&inside, a, 1.0), keep(&inside, x, 1.0))
}

/// P(a, x), or Q(a, x) if `upper`: nan for a <= 0 or x < 0, and for both infinite the end of x.
pub(super) fn incomplete(a: &Value, x: &Value, upper: bool) -> Value {
    let (within, safe_a, safe_x) = inside(a, x);
    let large = with(Pw::Ge, &safe_a, LARGE);
    let of_large = uniform(&keep(&large, &safe_a, LARGE), &keep(&large, &safe_x, LARGE), upper);
    let small = f1(Pw::Not, &large);
    let (safe_a, safe_x) = (keep(&small, &safe_a, 1.0), keep(&small, &safe_x, 1.0));
    let low = f2(Pw::And, &with(Pw::Ge, &safe_a, 1.0), &f2(Pw::Lt, &safe_x, &(&safe_a + 1.0)));
    let ([s, _], [c, _]) = both(&safe_a, &safe_x, &low, &with(Pw::Ge, &safe_x, 1.0));
    let weight = f1(Pw::Exp, &log_weight(&safe_a, &safe_x));
    let (p, q) = (&weight * &s, weight * &safe_a * c);
    let value = if upper { choose(&low, &(1.0 - p), &q) } else { choose(&low, &p, &(1.0 - q)) };
    let (little, of_little) = of_little(&safe_a, &safe_x, upper);
    let value = choose(&little, &of_little, &value);
    let value = choose(&large, &of_large, &value);
    let (at_zero, beyond) = if upper { (1.0, 0.0) } else { (0.0, 1.0) };
    let positive = with(Pw::Gt, a, 0.0);
    let first = f2(Pw::And, &with(Pw::Eq, x, 0.0), &positive);
    let last = f2(Pw::And, &with(Pw::Eq, x, f64::INFINITY), &positive);
    let none = f2(Pw::And, &with(Pw::Eq, a, 0.0), &with(Pw::Gt, x, 0.0));
    let edge = keep(&f2(Pw::Or, &last, &none), &fill(a, beyond), f64::NAN);
    // for an infinite order the whole weight is at infinity
    let start = f2(Pw::Or, &first, &bounded_below(a, x));
    choose(&within, &value, &choose(&start, &fill(a, at_zero), &edge))
}

/// (dP/da, -(dP/da) / p): 0 at the ends of x, the first also at infinite a, nan for a <= 0 or x < 0. The second is how a gamma draw moves with its shape at constant
/// probability; the weight cancels, so tails are exact.
pub(super) fn slopes(a: &Value, x: &Value) -> [Value; 2] {
    let (within, safe_a, safe_x) = inside(a, x);
    let large = with(Pw::Ge, &safe_a, LARGE);
    let of_large = slope_of_large(&keep(&large, &safe_a, LARGE), &keep(&large, &safe_x, LARGE));
    let small = f1(Pw::Not, &large);
    let (less_a, less_x) = (keep(&small, &safe_a, 1.0), keep(&small, &safe_x, 1.0));
    let low = f2(Pw::Lt, &less_x, &(&less_a + 1.0));
    let ([s, ds], [c, dc]) = both(&less_a, &less_x, &low, &f1(Pw::Not, &low));
    let log = f1(Pw::Log, &less_x);
    let below = -(&less_x / &less_a * (s * (&log - &f1(Pw::Digamma, &(&less_a + 1.0))) + ds));
    let above = &less_x * &(c * (log - f1(Pw::Digamma, &less_a)) + dc);
    let slope = choose(&large, &of_large, &choose(&low, &below, &above));
    let by_shape = -(f1(Pw::Exp, &log_weight(&safe_a, &safe_x)) * (&safe_a / &safe_x * &slope));
    let end = f2(Pw::Or, &with(Pw::Eq, x, 0.0), &with(Pw::Eq, x, f64::INFINITY));
    let proper = f2(Pw::And, &with(Pw::Gt, a, 0.0), &with(Pw::Lt, a, f64::INFINITY));
    let at_end = f2(Pw::And, &proper, &end);
    let ends = |still: &Value| keep(still, &fill(a, 0.0), f64::NAN);
    let by_shape_ends = ends(&f2(Pw::Or, &at_end, &bounded_below(a, x)));
    [choose(&within, &by_shape, &by_shape_ends), choose(&within, &slope, &ends(&at_end))]
}
