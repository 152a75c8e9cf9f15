//! How far each scalar function lies from the exact value, in units of the last place, over the corpora in `math/`.
//!
//! `within!(name, f32 bound, f64 bound)`: the error of every row is at most the bound, zeros keep their sign, and
//! infinities and NaN stand exactly where the corpus has them. lgamma and digamma are measured in units of
//! `max(1, |value|)`, because close to their zeros on the negative axis only the absolute error is small.

use ferrax_kernel::math;

trait Lane: Copy {
    const DIGITS: usize;
    fn parse(hex: &str) -> Self;
    /// The index among all numbers of the format in order, both zeros being 0.
    fn ordinal(self) -> i128;
    fn wide(self) -> f64;
    /// Units in the last place of `max(1, |self|)`.
    fn unit_from_one(self) -> f64;
}

macro_rules! lane {
    ($real:ty, $uint:ty, $digits:expr) => {
        impl Lane for $real {
            const DIGITS: usize = $digits;
            fn parse(hex: &str) -> $real {
                <$real>::from_bits(<$uint>::from_str_radix(hex, 16).unwrap())
            }
            fn ordinal(self) -> i128 {
                let magnitude = i128::from(self.abs().to_bits());
                if self.is_sign_negative() { -magnitude } else { magnitude }
            }
            fn wide(self) -> f64 {
                self.into()
            }
            fn unit_from_one(self) -> f64 {
                let above = self.abs().max(1.0);
                f64::from(<$real>::from_bits(above.to_bits() + 1) - above)
            }
        }
    };
}
lane!(f32, u32, 8);
lane!(f64, u64, 16);

/// The largest error over the rows of one format.
fn worst<L: Lane>(name: &str, rows: &str, absolute: bool, f: impl Fn(&[L]) -> L) -> f64 {
    let mut worst = 0.0_f64;
    let mut count = 0;
    for row in rows.lines() {
        let fields: Vec<&str> = row.split(',').collect();
        let [ref words @ .., rest] = fields[..] else { panic!("{name}: {row}") };
        if words[0].len() != L::DIGITS {
            continue;
        }
        let words: Vec<L> = words.iter().map(|w| L::parse(w)).collect();
        let (nearest, args) = words.split_last().unwrap();
        let out = f(args);
        let (out_wide, nearest_wide) = (out.wide(), nearest.wide());
        let arguments: Vec<f64> = args.iter().map(|a| a.wide()).collect();
        let shown = format!("{name}({arguments:?}) = {out_wide:?}, not {nearest_wide:?}");
        count += 1;
        if nearest_wide.is_nan() || nearest_wide == 0.0 && rest == "0" {
            assert!(out_wide.to_bits() == nearest_wide.to_bits(), "{shown}");
            continue;
        }
        assert!(!out_wide.is_nan(), "{shown}");
        if out_wide.is_infinite() || nearest_wide.is_infinite() {
            assert_eq!(out_wide, nearest_wide, "{shown}");
            continue;
        }
        let rest: f64 = rest.parse::<f64>().unwrap() / 100.0;
        let steps = (out.ordinal() - nearest.ordinal()) as f64;
        let error = if absolute && nearest_wide.abs() < 1.0 {
            (out_wide - nearest_wide).abs() / nearest.unit_from_one()
        } else {
            (steps - rest).abs()
        };
        if error > worst {
            worst = error;
            assert!(error < 1e3, "{shown}");
        }
    }
    assert!(count > 300, "{name}: {count} rows");
    worst
}

macro_rules! within {
    ($name:ident, $narrow:expr, $wide:expr $(, $absolute:ident)?) => {
        within!(@test $name, $narrow, $wide, false $(|| stringify!($absolute) == "absolute")?, |f, x| f(x[0]));
    };
    (2, $name:ident, $narrow:expr, $wide:expr) => {
        within!(@test $name, $narrow, $wide, false, |f, x| f(x[0], x[1]));
    };
    (@test $name:ident, $narrow:expr, $wide:expr, $absolute:expr, |$f:ident, $x:ident| $call:expr) => {
        #[test]
        fn $name() {
            let rows = include_str!(concat!("math/", stringify!($name), ".csv"));
            let narrow = worst::<f32>(stringify!($name), rows, $absolute, |$x| { let $f = math::$name::<f32>; $call });
            let wide = worst::<f64>(stringify!($name), rows, $absolute, |$x| { let $f = math::$name::<f64>; $call });
            println!("{:10} f32 {narrow:.3} of {:.2}   f64 {wide:.3} of {:.2}", stringify!($name), $narrow, $wide);
            assert!(narrow <= $narrow, "f32: {narrow} units");
            assert!(wide <= $wide, "f64: {wide} units");
        }
    };
}

within!(exp, 1.0, 1.0);
within!(exp2, 1.2, 1.2);
within!(expm1, 1.2, 1.2);
within!(logistic, 1.5, 1.5);
within!(log, 1.0, 1.0);
within!(log1p, 1.0, 1.0);
within!(sin, 1.0, 1.0);
within!(cos, 1.0, 1.0);
within!(tan, 1.2, 1.2);
within!(asin, 1.0, 1.0);
within!(acos, 1.0, 1.0);
within!(atan, 1.0, 1.0);
within!(sinh, 1.0, 1.0);
within!(cosh, 1.0, 1.0);
within!(tanh, 1.5, 1.5);
within!(asinh, 1.2, 1.2);
within!(acosh, 1.0, 1.0);
within!(atanh, 1.0, 1.0);
within!(erf, 1.2, 1.2);
within!(erfc, 1.5, 1.5);
within!(erf_inv, 2.0, 2.0);
within!(cbrt, 0.6, 0.6);
within!(sqrt, 0.51, 0.51);
within!(rsqrt, 1.51, 1.51);
within!(lgamma, 4.0, 4.0, absolute);
within!(digamma, 30.0, 30.0, absolute);
within!(2, atan2, 1.8, 1.8);
within!(2, pow, 1.0, 1.0);

/// Every 3-thousandth or so `f32`, of all exponents and both signs, against the same function in `f64`, which the
/// corpus has measured: what 300 rows cannot see.
#[test]
fn narrow_agrees_with_wide_everywhere() {
    macro_rules! sweep {
        ($($name:ident $bound:expr),* $(,)?) => {$({
            let mut worst = (0.0_f64, 0.0_f32);
            for bits in (0..=u32::MAX).step_by(3251) {
                let x = f32::from_bits(bits);
                let (out, exact) = (math::$name(x), math::$name(f64::from(x)));
                let nearest = exact as f32;
                if nearest.is_nan() || nearest.is_infinite() || out.is_nan() || out.is_infinite() {
                    assert!(out.to_bits() == nearest.to_bits() || out.is_nan() && nearest.is_nan(), "{}({x:e}): {out:e}, not {exact:e}", stringify!($name));
                    continue;
                }
                let exponent = (exact.abs().max(f64::from(f32::MIN_POSITIVE)).to_bits() >> 52) as i32 - 1023;
                let error = (f64::from(out) - exact).abs() * 2.0_f64.powi(23 - exponent);
                if error > worst.0 {
                    worst = (error, x);
                }
            }
            println!("{:10} {:.3} at {:e}", stringify!($name), worst.0, worst.1);
            assert!(worst.0 <= $bound, "{}: {} units at {:e}", stringify!($name), worst.0, worst.1);
        })*};
    }
    sweep!(
        exp 1.0, exp2 1.2, expm1 1.2, logistic 1.5, log 1.0, log1p 1.0, sin 1.0, cos 1.0, tan 1.2, asin 1.0, acos 1.0,
        atan 1.0, sinh 1.0, cosh 1.0, tanh 1.5, asinh 1.2, acosh 1.0, atanh 1.0, erf 1.2, erfc 1.5, erf_inv 2.0,
        cbrt 0.6, sqrt 0.51, rsqrt 1.51,
    );
}

/// The short reduction gives the bits of the full one wherever it says so.
#[test]
fn moderate_angles_need_no_full_reduction() {
    for bits in (0..=u32::MAX).step_by(4099) {
        let x = f32::from_bits(bits);
        // every exponent of f64 from about 2^-130 to 2^130
        let wide = f64::from(x) * 1.000_000_123;
        if math::is_moderate(x) || !x.is_finite() {
            assert_eq!(math::sin(x).to_bits(), math::sin_moderate(x).to_bits(), "{x:e}");
            assert_eq!(math::cos(x).to_bits(), math::cos_moderate(x).to_bits(), "{x:e}");
            assert_eq!(math::tan(x).to_bits(), math::tan_moderate(x).to_bits(), "{x:e}");
        }
        if math::is_moderate(wide) || !wide.is_finite() {
            assert_eq!(math::sin(wide).to_bits(), math::sin_moderate(wide).to_bits(), "{wide:e}");
            assert_eq!(math::cos(wide).to_bits(), math::cos_moderate(wide).to_bits(), "{wide:e}");
            assert_eq!(math::tan(wide).to_bits(), math::tan_moderate(wide).to_bits(), "{wide:e}");
        }
    }
}

/// Odd functions are odd, even ones even, bit for bit.
#[test]
fn signs_are_symmetric() {
    macro_rules! symmetric {
        (odd: $($odd:ident)*; even: $($even:ident)*) => {
            for bits in (0..=u32::MAX / 2).step_by(40_009) {
                let x = f32::from_bits(bits);
                let wide = f64::from(x) * 1.000_000_123;
                $(
                    let (right, left) = (math::$odd(x), math::$odd(-x));
                    assert!(right.is_nan() && left.is_nan() || (-right).to_bits() == left.to_bits(), "{}({x:e})", stringify!($odd));
                    let (right, left) = (math::$odd(wide), math::$odd(-wide));
                    assert!(right.is_nan() && left.is_nan() || (-right).to_bits() == left.to_bits(), "{}({wide:e})", stringify!($odd));
                )*
                $(
                    assert_eq!(math::$even(x).to_bits(), math::$even(-x).to_bits(), "{}({x:e})", stringify!($even));
                    assert_eq!(math::$even(wide).to_bits(), math::$even(-wide).to_bits(), "{}({wide:e})", stringify!($even));
                )*
            }
        };
    }
    symmetric!(odd: sin tan asin atan sinh tanh asinh atanh erf erf_inv cbrt; even: cos cosh);
}

/// Rounding is the standard library's, and so are neighbours; NaN is the canonical one.
#[test]
fn rounding_is_exact() {
    macro_rules! rounding {
        ($x:expr, $real:ty) => {{
            let x: $real = $x;
            let cases = [
                (math::floor(x), x.floor()),
                (math::ceil(x), x.ceil()),
                (math::trunc(x), x.trunc()),
                (math::round_even(x), x.round_ties_even()),
                (math::round_away(x), x.round()),
                (math::next_after(x, <$real>::INFINITY), if x == 0.0 { <$real>::from_bits(1) } else { x.next_up() }),
                (
                    math::next_after(x, <$real>::NEG_INFINITY),
                    if x == 0.0 { -<$real>::from_bits(1) } else { x.next_down() },
                ),
                (math::next_after(x, x), x),
            ];
            for (i, (out, expected)) in cases.into_iter().enumerate() {
                let expected = if expected.is_nan() { <$real>::NAN } else { expected };
                assert_eq!(out.to_bits(), expected.to_bits(), "case {i} of {x:e}: {out:e}, not {expected:e}");
            }
        }};
    }
    for bits in (0..=u32::MAX).step_by(9973) {
        let x = f32::from_bits(bits);
        rounding!(x, f32);
        rounding!(f64::from(x), f64);
        rounding!(f64::from(x) * 1.000_000_123, f64);
    }
    for half in -20..=20 {
        rounding!(half as f32 * 0.5, f32);
        rounding!(f64::from(half) * 0.5, f64);
    }
}
