//! The scalar functions of each row. Real rows are one function or a short composition; complex rows are in `complex`.
//!
//! INVARIANT: the match over rows has no `_` arm for real operands: a new row must define its lowering.
pub(in crate::ops) mod bits;
mod complex;
mod special;

pub(in crate::ops) use complex::logaddexp;
pub(in crate::ops) use special::{BERNOULLI, GAP_FAR};

use super::Pw;
use crate::error::Res;
use crate::lower::{Graph, TensorId};
use ferrax_kernel::{Bin, DType, Dims, Scalar, Un};

/// Operands have the output's shape or rank 0. `n` is the row's integer parameter.
pub(in crate::ops) fn lower(f: Pw, n: i32, g: &mut Graph, x: &[TensorId]) -> Res<TensorId> {
    let paired = x.iter().any(|v| g.parts(*v).is_some());
    if f == Pw::Complex {
        let (a, b) = level(g, x[0], x[1]);
        return Ok(g.pair(a, b));
    }
    if paired { complex::lower(f, n, g, x) } else { real(f, n, g, x) }
}

fn real(f: Pw, n: i32, g: &mut Graph, x: &[TensorId]) -> Res<TensorId> {
    let bool = g.dtype(x[0]) == DType::Bool;
    let un = |g: &mut Graph, u| Ok(g.un(u, x[0]));
    let bin = |g: &mut Graph, b| Ok(g.bin(b, x[0], x[1]));
    match f {
        Pw::Neg => un(g, Un::Neg),
        Pw::Sign => un(g, Un::Sign),
        Pw::Floor => un(g, Un::Floor),
        Pw::Ceil => un(g, Un::Ceil),
        Pw::Round => un(g, if n == 0 { Un::RoundAway } else { Un::RoundEven }),
        Pw::IsFinite => un(g, Un::IsFinite),
        Pw::Exp => un(g, Un::Exp),
        Pw::Exp2 => un(g, Un::Exp2),
        Pw::Log => un(g, Un::Log),
        Pw::Log1p => un(g, Un::Log1p),
        Pw::Expm1 => un(g, Un::Expm1),
        Pw::Sin => un(g, Un::Sin),
        Pw::Cos => un(g, Un::Cos),
        Pw::Tan => un(g, Un::Tan),
        Pw::Asin => un(g, Un::Asin),
        Pw::Acos => un(g, Un::Acos),
        Pw::Atan => un(g, Un::Atan),
        Pw::Sinh => un(g, Un::Sinh),
        Pw::Cosh => un(g, Un::Cosh),
        Pw::Tanh => un(g, Un::Tanh),
        Pw::Asinh => un(g, Un::Asinh),
        Pw::Acosh => un(g, Un::Acosh),
        Pw::Atanh => un(g, Un::Atanh),
        Pw::Logistic => un(g, Un::Logistic),
        Pw::Erf => un(g, Un::Erf),
        Pw::Erfc => un(g, Un::Erfc),
        Pw::ErfInv => un(g, Un::ErfInv),
        Pw::Lgamma => un(g, Un::Lgamma),
        Pw::Digamma => un(g, Un::Digamma),
        Pw::Sqrt => un(g, Un::Sqrt),
        Pw::Rsqrt => un(g, Un::Rsqrt),
        Pw::Cbrt => un(g, Un::Cbrt),
        Pw::Square => Ok(g.bin(Bin::Mul, x[0], x[0])),
        Pw::IntegerPow => real_integer_pow(g, x[0], n),
        Pw::Abs => un(g, Un::Abs),
        Pw::Not => un(g, Un::Not),
        Pw::PopulationCount => un(g, Un::Popcnt),
        Pw::Clz => un(g, Un::Clz),
        Pw::Conj => {
            let zero = zero_like(g, x[0]);
            Ok(g.pair(x[0], zero))
        }
        Pw::Real | Pw::Copy | Pw::StopGradient => Ok(x[0]),
        Pw::Imag => Ok(zero_like(g, x[0])),
        Pw::Add | Pw::AddAny if bool => bin(g, Bin::Or),
        Pw::Add | Pw::AddAny => bin(g, Bin::Add),
        Pw::Sub => bin(g, Bin::Sub),
        Pw::Mul if bool => bin(g, Bin::And),
        Pw::Mul => bin(g, Bin::Mul),
        Pw::Div => bin(g, Bin::Div),
        Pw::Rem => bin(g, Bin::Rem),
        Pw::Max if bool => bin(g, Bin::Or),
        Pw::Max => bin(g, Bin::Max),
        Pw::Min if bool => bin(g, Bin::And),
        Pw::Min => bin(g, Bin::Min),
        Pw::Pow => {
            let e = g.convert(x[1], g.dtype(x[0]));
            Ok(g.bin(Bin::Pow, x[0], e))
        }
        Pw::Atan2 => bin(g, Bin::Atan2),
        Pw::NextAfter => bin(g, Bin::NextAfter),
        Pw::And => bin(g, Bin::And),
        Pw::Or => bin(g, Bin::Or),
        Pw::Xor => bin(g, Bin::Xor),
        Pw::ShiftLeft => bin(g, Bin::Shl),
        Pw::ShiftRightLogical => bin(g, Bin::ShrLogical),
        Pw::ShiftRightArithmetic => bin(g, Bin::ShrArithmetic),
        Pw::Eq => bin(g, Bin::Eq),
        Pw::Ne => bin(g, Bin::Ne),
        Pw::Lt => bin(g, Bin::Lt),
        Pw::Le => bin(g, Bin::Le),
        Pw::Gt => bin(g, Bin::Gt),
        Pw::Ge => bin(g, Bin::Ge),
        Pw::LeTo | Pw::LtTo => {
            let (a, b) = (bits::order_key(g, x[0]), bits::order_key(g, x[1]));
            Ok(g.bin(if f == Pw::LeTo { Bin::Le } else { Bin::Lt }, a, b))
        }
        Pw::MulHi => Ok(bits::mulhi(g, x[0], x[1])),
        Pw::Complex => unreachable!("made before"),
        Pw::Polygamma => {
            let (n, x) = level(g, x[0], x[1]);
            Ok(special::polygamma(g, &[n, x]))
        }
        Pw::BesselI0e => Ok(special::bessel_i0e(g, x)),
        Pw::BesselI1e => Ok(special::bessel_i1e(g, x)),
        Pw::BesselGap => Ok(special::bessel_gap(g, x)),
    }
}

/// Narrow floats are computed in single precision, so that only the power is rounded, and 1 / x^n has a wider range.
fn real_integer_pow(g: &mut Graph, x: TensorId, n: i32) -> Res<TensorId> {
    let d = g.dtype(x);
    let narrow = d.is_float() && d.size() < 4;
    let wide = if narrow { g.convert(x, DType::F32) } else { x };
    let y = integer_pow(g, wide, n, &|g, a, b| g.bin(Bin::Mul, a, b), &|g, a| {
        let one = g.scalar(a, 1.0);
        g.bin(Bin::Div, one, a)
    })?;
    Ok(if narrow { g.convert(y, d) } else { y })
}

/// x^n by repeated squaring, lowest bit first.
fn integer_pow(
    g: &mut Graph,
    x: TensorId,
    n: i32,
    mul: &dyn Fn(&mut Graph, TensorId, TensorId) -> TensorId,
    inverse: &dyn Fn(&mut Graph, TensorId) -> TensorId,
) -> Res<TensorId> {
    let (mut left, mut square, mut acc) = (n.unsigned_abs(), x, None);
    while left > 0 {
        if left & 1 == 1 {
            acc = Some(match acc {
                None => square,
                Some(a) => mul(g, a, square),
            });
        }
        left >>= 1;
        if left > 0 {
            square = mul(g, square, square);
        }
    }
    Ok(match acc {
        None => {
            let shape = g.shape(x);
            let one = |g: &mut Graph, v: TensorId, c: i64| g.constant(Scalar::from_i64(g.dtype(v), c), shape.clone());
            match g.parts(x) {
                Some((re, im)) => {
                    let (a, b) = (one(g, re, 1), one(g, im, 0));
                    g.pair(a, b)
                }
                None => one(g, x, 1),
            }
        }
        Some(a) if n < 0 => inverse(g, a),
        Some(a) => a,
    })
}

fn zero_like(g: &mut Graph, x: TensorId) -> TensorId {
    g.constant(Scalar::zero(g.dtype(x)), g.shape(x))
}
/// Broadcasts both to one shape, so that they can form a pair.
fn level(g: &mut Graph, a: TensorId, b: TensorId) -> (TensorId, TensorId) {
    let (sa, sb) = (g.shape(a), g.shape(b));
    let grow = |g: &mut Graph, v: TensorId, to: &Dims| if g.rank(v) == 0 { g.broadcast(v, to.clone(), &[]) } else { v };
    if sa.len() < sb.len() { (grow(g, a, &sb), b) } else { (a, grow(g, b, &sa)) }
}
