//! The scalar functions, one element at a time: the tables of [`crate::expr`], literally.
//!
//! INVARIANT: integers are computed exactly in 128 bits and then wrapped to their dtype; 16-bit floats are computed in f32 and then
//! rounded. Functions without an exact definition are those of [`crate::math`], which has tests of its own.
use super::undefined;
use crate::error::Res;
use crate::{Bin, DType, Scalar, Un, math};
use half::{bf16, f16};

/// The exact value of an integer or bool.
fn int(x: Scalar) -> i128 {
    if x.dtype == DType::U64 { x.bits as i128 } else { x.to_i64() as i128 }
}

/// `v` wrapped to an integer dtype; to bool, `v != 0`.
fn wrap(d: DType, v: i128) -> Scalar {
    if d == DType::Bool { Scalar::bool(v != 0) } else { Scalar::from_i64(d, v as i64) }
}

fn width(d: DType) -> u32 {
    if d == DType::Bool { 1 } else { d.bits() }
}

fn as_f32(x: Scalar) -> f32 {
    match x.dtype {
        DType::F16 => f16::from_bits(x.bits as u16).to_f32(),
        DType::BF16 => bf16::from_bits(x.bits as u16).to_f32(),
        d if d.is_small() => x.to_f64() as f32,
        _ => f32::from_bits(x.bits as u32),
    }
}

/// `v` rounded to `d`, which is f32 or narrower.
fn from_f32(d: DType, v: f32) -> Scalar {
    match d {
        DType::F16 => Scalar { dtype: d, bits: f16::from_f32(v).to_bits() as u64 },
        DType::BF16 => Scalar { dtype: d, bits: bf16::from_f32(v).to_bits() as u64 },
        d if d.is_small() => Scalar::from_f64(d, v as f64),
        _ => Scalar::f32(v),
    }
}

/// `f(x)`.
///
/// # Errors
/// `Invalid` where `f` is not defined for the dtype of `x`.
pub fn un(f: Un, x: Scalar) -> Res<Scalar> {
    match (f, x.dtype) {
        (Un::IsFinite, d) if d.is_float() => Ok(Scalar::bool(x.to_f64().is_finite())),
        (_, DType::F64) => un_f64(f, f64::from_bits(x.bits)).map(Scalar::f64),
        (_, d) if d.is_float() => un_f32(f, as_f32(x)).map(|y| from_f32(d, y)),
        _ => un_int(f, x),
    }
}

/// `f(x, y)`, for two operands of one dtype.
///
/// # Errors
/// `Invalid` where `f` is not defined for that dtype, or there are two dtypes.
pub fn bin(f: Bin, x: Scalar, y: Scalar) -> Res<Scalar> {
    if x.dtype != y.dtype {
        return Err(undefined(&format!("{} of {x:?} and {y:?}", f.name()), x));
    }
    match (f, x.dtype) {
        (_, d) if !d.is_float() => bin_int(f, x, y),
        (Bin::Eq, _) => Ok(Scalar::bool(x.to_f64() == y.to_f64())),
        (Bin::Ne, _) => Ok(Scalar::bool(x.to_f64() != y.to_f64())),
        (Bin::Lt, _) => Ok(Scalar::bool(x.to_f64() < y.to_f64())),
        (Bin::Le, _) => Ok(Scalar::bool(x.to_f64() <= y.to_f64())),
        (Bin::Gt, _) => Ok(Scalar::bool(x.to_f64() > y.to_f64())),
        (Bin::Ge, _) => Ok(Scalar::bool(x.to_f64() >= y.to_f64())),
        (Bin::NextAfter, _) => Ok(next_after(x, y)),
        (_, DType::F64) => bin_f64(f, f64::from_bits(x.bits), f64::from_bits(y.bits)).map(Scalar::f64),
        (_, d) => bin_f32(f, as_f32(x), as_f32(y)).map(|z| from_f32(d, z)),
    }
}

fn un_int(f: Un, x: Scalar) -> Res<Scalar> {
    let (d, v) = (x.dtype, int(x));
    if d == DType::Bool && f != Un::Not {
        return Err(undefined(f.name(), x));
    }
    Ok(match f {
        Un::Neg => wrap(d, -v),
        Un::Abs => wrap(d, v.abs()),
        Un::Sign => wrap(d, v.signum()),
        Un::Not if d == DType::Bool => Scalar::bool(v == 0),
        Un::Not => wrap(d, !v),
        Un::Popcnt => wrap(d, x.bits.count_ones() as i128),
        Un::Clz => wrap(d, (x.bits.leading_zeros() - (64 - width(d))) as i128),
        _ => return Err(undefined(f.name(), x)),
    })
}

fn bin_int(f: Bin, x: Scalar, y: Scalar) -> Res<Scalar> {
    let (d, a, b) = (x.dtype, int(x), int(y));
    if d == DType::Bool && matches!(f, Bin::Sub | Bin::Div | Bin::Rem | Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic)
    {
        return Err(undefined(f.name(), x));
    }
    // A negative amount counts as one that is too large.
    let amount = (0..width(d) as i128).contains(&b).then_some(b as u32);
    Ok(match f {
        Bin::Add => wrap(d, a + b),
        Bin::Sub => wrap(d, a - b),
        Bin::Mul => wrap(d, a.wrapping_mul(b)),
        Bin::Div if b == 0 => wrap(d, -1),
        Bin::Div => wrap(d, a / b),
        Bin::Rem if b == 0 => x,
        Bin::Rem => wrap(d, a % b),
        Bin::Max => wrap(d, a.max(b)),
        Bin::Min => wrap(d, a.min(b)),
        Bin::And => wrap(d, a & b),
        Bin::Or => wrap(d, a | b),
        Bin::Xor => wrap(d, a ^ b),
        Bin::Shl => wrap(d, amount.map_or(0, |n| a << n)),
        Bin::ShrLogical => Scalar { dtype: d, bits: amount.map_or(0, |n| x.bits >> n) },
        // The top bit is taken for a sign, also that of an unsigned integer.
        Bin::ShrArithmetic => {
            let top = x.bits >> (width(d) - 1) & 1;
            let signed = a - if top == 1 && !d.is_signed() { 1i128 << width(d) } else { 0 };
            wrap(d, signed >> amount.unwrap_or(width(d) - 1))
        }
        Bin::Eq => Scalar::bool(a == b),
        Bin::Ne => Scalar::bool(a != b),
        Bin::Lt => Scalar::bool(a < b),
        Bin::Le => Scalar::bool(a <= b),
        Bin::Gt => Scalar::bool(a > b),
        Bin::Ge => Scalar::bool(a >= b),
        Bin::Pow | Bin::Atan2 | Bin::NextAfter => return Err(undefined(f.name(), x)),
    })
}

macro_rules! floats {
    ($un:ident $bin:ident $T:ident $scalar:path) => {
        fn $un(f: Un, x: $T) -> Res<$T> {
            Ok(match f {
                Un::Neg => -x,
                Un::Abs => x.abs(),
                Un::Sign if x == 0.0 || x.is_nan() => x,
                Un::Sign => x.signum(),
                Un::Floor => x.floor(),
                Un::Ceil => x.ceil(),
                Un::RoundEven => x.round_ties_even(),
                Un::RoundAway => x.round(),
                Un::Trunc => x.trunc(),
                Un::Sqrt => x.sqrt(),
                Un::Not | Un::Popcnt | Un::Clz | Un::IsFinite => return Err(undefined(f.name(), $scalar(x))),
                Un::Rsqrt => math::rsqrt(x),
                Un::Cbrt => math::cbrt(x),
                Un::Exp => math::exp(x),
                Un::Exp2 => math::exp2(x),
                Un::Expm1 => math::expm1(x),
                Un::Log => math::log(x),
                Un::Log1p => math::log1p(x),
                Un::Sin => math::sin(x),
                Un::Cos => math::cos(x),
                Un::Tan => math::tan(x),
                Un::Asin => math::asin(x),
                Un::Acos => math::acos(x),
                Un::Atan => math::atan(x),
                Un::Sinh => math::sinh(x),
                Un::Cosh => math::cosh(x),
                Un::Tanh => math::tanh(x),
                Un::Asinh => math::asinh(x),
                Un::Acosh => math::acosh(x),
                Un::Atanh => math::atanh(x),
                Un::Logistic => math::logistic(x),
                Un::Erf => math::erf(x),
                Un::Erfc => math::erfc(x),
                Un::ErfInv => math::erf_inv(x),
                Un::Lgamma => math::lgamma(x),
                Un::Digamma => math::digamma(x),
            })
        }
        fn $bin(f: Bin, x: $T, y: $T) -> Res<$T> {
            Ok(match f {
                Bin::Add => x + y,
                Bin::Sub => x - y,
                Bin::Mul => x * y,
                Bin::Div => x / y,
                Bin::Rem => x % y,
                Bin::Max | Bin::Min if x.is_nan() || y.is_nan() => $T::NAN,
                // Only zeros are equal and differ in bits.
                Bin::Max if x == y => {
                    if x.is_sign_negative() {
                        y
                    } else {
                        x
                    }
                }
                Bin::Min if x == y => {
                    if x.is_sign_negative() {
                        x
                    } else {
                        y
                    }
                }
                Bin::Max => {
                    if x > y {
                        x
                    } else {
                        y
                    }
                }
                Bin::Min => {
                    if x < y {
                        x
                    } else {
                        y
                    }
                }
                Bin::Pow => math::pow(x, y),
                Bin::Atan2 => math::atan2(x, y),
                Bin::And | Bin::Or | Bin::Xor | Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic => {
                    return Err(undefined(f.name(), $scalar(x)))
                }
                Bin::Eq | Bin::Ne | Bin::Lt | Bin::Le | Bin::Gt | Bin::Ge | Bin::NextAfter => {
                    unreachable!("done by `bin` for all floats at once")
                }
            })
        }
    };
}
floats! { un_f32 bin_f32 f32 Scalar::f32 }
floats! { un_f64 bin_f64 f64 Scalar::f64 }

/// The neighbour of `x` towards `y`, at the dtype's own width.
fn next_after(x: Scalar, y: Scalar) -> Scalar {
    let (a, b) = (x.to_f64(), y.to_f64());
    let sign = 1u64 << (width(x.dtype) - 1);
    if a.is_nan() || b.is_nan() {
        return Scalar::from_f64(x.dtype, f64::NAN);
    }
    let bits = match a {
        _ if a == b => return Scalar::from_f64(x.dtype, b),
        _ if x.dtype.is_small() => return next_small(x, a, b),
        0.0 => 1 | if b < 0.0 { sign } else { 0 },
        // Away from zero is one more in the bits, whatever the sign.
        _ if (a < b) == (a > 0.0) => x.bits + 1,
        _ => x.bits - 1,
    };
    Scalar { dtype: x.dtype, bits }
}

/// The neighbour of `x` of value `a` towards `b`, searched among all values: beyond the last one,
/// rounding decides.
fn next_small(x: Scalar, a: f64, b: f64) -> Scalar {
    let d = x.dtype;
    let values = (0..1u64 << d.bits()).map(|bits| Scalar { dtype: d, bits });
    let beyond = values.filter(|s| if a < b { s.to_f64() > a } else { s.to_f64() < a });
    let order = |s: &Scalar, t: &Scalar| s.to_f64().total_cmp(&t.to_f64());
    let next = if a < b { beyond.min_by(order) } else { beyond.max_by(order) };
    let zero = |s: Scalar| if s.to_f64() == 0.0 { Scalar::from_f64(d, if a < 0.0 { -0.0 } else { 0.0 }) } else { s };
    next.map_or(Scalar::from_f64(d, if a < b { f64::INFINITY } else { f64::NEG_INFINITY }), zero)
}

/// `x` at another dtype, as [`crate::expr`] says; to bf16 it goes through f32, as JAX on CPU does.
pub fn convert(x: Scalar, to: DType) -> Scalar {
    match (x.dtype, to) {
        (from, to) if from == to => x,
        (from, DType::Bool) if from.is_float() => Scalar::bool(x.to_f64() != 0.0),
        (DType::F64, DType::BF16) => from_f32(to, x.to_f64() as f32),
        (from, _) if from.is_float() => Scalar::from_f64(to, x.to_f64()),
        (_, DType::F64) => Scalar::f64(int(x) as f64),
        (_, to) if to.is_float() => from_f32(to, int(x) as f32),
        (_, to) => wrap(to, int(x)),
    }
}

/// The same bits at another dtype of the same size.
pub fn bitcast(x: Scalar, to: DType) -> Scalar {
    Scalar { dtype: to, bits: x.bits }
}

/// A float rounded to `exponent` and `mantissa` bits: to nearest even, overflow to inf; a subnormal
/// result becomes zero.
pub fn round(x: Scalar, exponent: u8, mantissa: u8) -> Scalar {
    if x.dtype.is_small() {
        return convert(round(convert(x, DType::F32), exponent, mantissa), x.dtype);
    }
    let (e, m): (u32, u32) = match x.dtype {
        DType::F16 => (5, 10),
        DType::BF16 => (8, 7),
        DType::F32 => (8, 23),
        _ => (11, 52),
    };
    if x.to_f64().is_nan() {
        return x;
    }
    let sign = x.bits & 1 << (e + m);
    let mut bits = x.bits ^ sign;
    if (mantissa as u32) < m {
        let dropped = m - mantissa as u32;
        let odd = bits >> dropped & 1;
        bits = (bits + (1 << (dropped - 1)) - 1 + odd) >> dropped << dropped;
    }
    if (exponent as u32) < e {
        let bias = (1i64 << (exponent.max(1) - 1)) - 1;
        let power = (bits >> m) as i64 - ((1i64 << (e - 1)) - 1);
        if power > bias {
            bits = ((1 << e) - 1) << m;
        } else if power < 1 - bias {
            bits = 0;
        }
    }
    Scalar { dtype: x.dtype, bits: bits | sign }
}
