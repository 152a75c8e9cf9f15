//! What each row is in scalar functions. Real rows are one function or a short composition; complex rows are the textbook formulas over
//! (re, im), arranged so that no intermediate overflows where the result does not.
//!
//! INVARIANT: the match over rows has no `_` arm for real operands: a new row must say what it computes.
pub(in crate::ops) mod bits;
mod inverse;
mod quotient;
mod special;

use inverse::{acos, acosh, asinh};
use quotient::complex_quotient;
pub(in crate::ops) use special::BERNOULLI;

use super::Pw;
use crate::error::{Error, Res};
use crate::lower::{Graph, TensorId};
use ferrax_kernel::{Bin, DType, Dims, Scalar, Un};

/// Operands have the output's shape or rank 0. `n` is the row's integer parameter.
pub(in crate::ops) fn lower(f: Pw, n: i32, g: &mut Graph, x: &[TensorId]) -> Res<TensorId> {
    let paired = x.iter().any(|v| g.parts(*v).is_some());
    if f == Pw::Complex {
        let (a, b) = level(g, x[0], x[1]);
        return Ok(g.pair(a, b));
    }
    if paired { complex(f, n, g, x) } else { real(f, n, g, x) }
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
        Pw::IntegerPow => integer_pow(g, x[0], n, &|g, a, b| g.bin(Bin::Mul, a, b), &|g, a| {
            let one = g.scalar(a, 1.0);
            g.bin(Bin::Div, one, a)
        }),
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
        Pw::MulZero => bin(g, Bin::MulZero),
        Pw::Div => bin(g, Bin::Div),
        // 0 / y = 0 whatever y is
        Pw::DivZero => {
            let (zero, q) = (g.scalar(x[0], 0.0), g.bin(Bin::Div, x[0], x[1]));
            let p = g.bin(Bin::Eq, x[0], zero);
            Ok(g.select(p, zero, q))
        }
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
    }
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
/// Both at one shape, so that they can stand as a pair.
fn level(g: &mut Graph, a: TensorId, b: TensorId) -> (TensorId, TensorId) {
    let (sa, sb) = (g.shape(a), g.shape(b));
    let grow = |g: &mut Graph, v: TensorId, to: &Dims| if g.rank(v) == 0 { g.broadcast(v, to.clone(), &[]) } else { v };
    if sa.len() < sb.len() { (grow(g, a, &sb), b) } else { (a, grow(g, b, &sa)) }
}

/// A complex number under construction.
type C = (TensorId, TensorId);

fn complex(f: Pw, n: i32, g: &mut Graph, x: &[TensorId]) -> Res<TensorId> {
    let mut z = Vec::with_capacity(2);
    for v in x {
        z.push(match g.parts(*v) {
            Some(p) => p,
            None => {
                // an integer exponent
                let like = g.parts(x[0]).ok_or_else(|| Error::type_error("a real operand beside a complex one"))?.0;
                let re = g.convert(*v, g.dtype(like));
                (re, zero_like(g, re))
            }
        });
    }
    let a = z[0];
    let c = match f {
        Pw::Real => return Ok(a.0),
        Pw::Imag => return Ok(a.1),
        Pw::Abs => return Ok(abs(g, a)),
        Pw::IsFinite => {
            let (p, q) = (g.un(Un::IsFinite, a.0), g.un(Un::IsFinite, a.1));
            return Ok(g.bin(Bin::And, p, q));
        }
        Pw::Eq | Pw::Ne => {
            let (p, q) = (g.bin(Bin::Eq, a.0, z[1].0), g.bin(Bin::Eq, a.1, z[1].1));
            let both = g.bin(Bin::And, p, q);
            return Ok(if f == Pw::Eq { both } else { g.un(Un::Not, both) });
        }
        Pw::Copy | Pw::StopGradient => return Ok(x[0]),
        Pw::Neg => each(g, a, Un::Neg),
        Pw::Conj => (a.0, g.un(Un::Neg, a.1)),
        Pw::Add | Pw::AddAny => both(g, Bin::Add, a, z[1]),
        Pw::Sub => both(g, Bin::Sub, a, z[1]),
        Pw::Mul => mul(g, a, z[1]),
        Pw::MulZero => {
            let p = mul(g, a, z[1]);
            let (za, zb) = (is_zero(g, a), is_zero(g, z[1]));
            let none = g.bin(Bin::Or, za, zb);
            zero_where(g, none, p)
        }
        Pw::Div => complex_quotient(g, a, z[1]),
        Pw::DivZero => {
            let q = div(g, a, z[1]);
            let none = is_zero(g, a);
            zero_where(g, none, q)
        }
        Pw::Square => mul(g, a, a),
        Pw::IntegerPow => {
            let m = |g: &mut Graph, a: TensorId, b: TensorId| {
                let (a, b) = (part(g, a), part(g, b));
                let c = mul(g, a, b);
                g.pair(c.0, c.1)
            };
            let inverse = |g: &mut Graph, a: TensorId| {
                let a = part(g, a);
                let one = unit(g, a);
                let c = complex_quotient(g, one, a);
                g.pair(c.0, c.1)
            };
            return integer_pow(g, x[0], n, &m, &inverse);
        }
        Pw::Sign => {
            let m = abs(g, a);
            let zero = g.scalar(m, 0.0);
            let none = g.bin(Bin::Eq, m, zero);
            let q = (g.bin(Bin::Div, a.0, m), g.bin(Bin::Div, a.1, m));
            let (re, im) = (g.select(none, zero, q.0), g.select(none, zero, q.1));
            (re, im)
        }
        Pw::Exp => exp(g, a),
        Pw::Exp2 => {
            let ln2 = g.scalar(a.0, std::f64::consts::LN_2);
            let s = (g.bin(Bin::Mul, a.0, ln2), g.bin(Bin::Mul, a.1, ln2));
            exp(g, s)
        }
        Pw::Expm1 => {
            // exp(x) cos y - 1 = expm1(x) cos y - 2 sin^2(y / 2)
            let e = g.un(Un::Expm1, a.0);
            let (c, half) = (g.un(Un::Cos, a.1), g.scalar(a.1, 0.5));
            let h = g.bin(Bin::Mul, a.1, half);
            let s = g.un(Un::Sin, h);
            let s2 = g.bin(Bin::Mul, s, s);
            let two = g.scalar(s, 2.0);
            let (ec, t) = (g.bin(Bin::Mul, e, c), g.bin(Bin::Mul, two, s2));
            (g.bin(Bin::Sub, ec, t), exp(g, a).1)
        }
        Pw::Log => log(g, a),
        Pw::Log1p => {
            // |1 + z|^2 - 1 = x (2 + x) + y^2
            let (one, two, half) = (g.scalar(a.0, 1.0), g.scalar(a.0, 2.0), g.scalar(a.0, 0.5));
            let x2 = g.bin(Bin::Add, two, a.0);
            let (p, y2) = (g.bin(Bin::Mul, a.0, x2), g.bin(Bin::Mul, a.1, a.1));
            let s = g.bin(Bin::Add, p, y2);
            let l = g.un(Un::Log1p, s);
            let x1 = g.bin(Bin::Add, a.0, one);
            (g.bin(Bin::Mul, half, l), g.bin(Bin::Atan2, a.1, x1))
        }
        Pw::Sqrt => sqrt(g, a),
        Pw::Rsqrt => {
            let (one, r) = (unit(g, a), sqrt(g, a));
            div(g, one, r)
        }
        Pw::Pow => {
            let l = log(g, a);
            let e = mul(g, l, z[1]);
            let p = exp(g, e);
            // 0^0 = 1, 0^y = 0
            let (base0, exp0) = (is_zero(g, a), is_zero(g, z[1]));
            let (one, zero) = (g.scalar(a.0, 1.0), g.scalar(a.0, 0.0));
            let at_zero = g.select(exp0, one, zero);
            let at_zero = level(g, at_zero, p.0).0;
            (g.select(base0, at_zero, p.0), g.select(base0, zero, p.1))
        }
        Pw::Sin => {
            let t = turn(g, a);
            let s = sinh(g, t);
            back(g, s)
        }
        Pw::Cos => {
            let t = turn(g, a);
            cosh(g, t)
        }
        Pw::Tan => {
            let t = turn(g, a);
            let s = tanh(g, t);
            back(g, s)
        }
        Pw::Sinh => sinh(g, a),
        Pw::Cosh => cosh(g, a),
        Pw::Tanh => tanh(g, a),
        Pw::Logistic => {
            let (one, m) = (unit(g, a), each(g, a, Un::Neg));
            let e = exp(g, m);
            let d = both(g, Bin::Add, one, e);
            div(g, one, d)
        }
        // asin z = -i asinh(i z), atan z = -i atanh(i z)
        Pw::Asinh => asinh(g, a),
        Pw::Asin => {
            let t = turn(g, a);
            let s = asinh(g, t);
            back(g, s)
        }
        Pw::Acos => acos(g, a),
        Pw::Acosh => acosh(g, a),
        Pw::Atanh => atanh(g, a),
        Pw::Atan => {
            let t = turn(g, a);
            let s = atanh(g, t);
            back(g, s)
        }
        Pw::Atan2 => atan2(g, a, z[1]),
        Pw::Max | Pw::Min => {
            // lexicographic
            let b = z[1];
            let order = if f == Pw::Max { Bin::Gt } else { Bin::Lt };
            let (re, tie, im) = (g.bin(order, a.0, b.0), g.bin(Bin::Eq, a.0, b.0), g.bin(order, a.1, b.1));
            let t = g.bin(Bin::And, tie, im);
            let p = g.bin(Bin::Or, re, t);
            (g.select(p, a.0, b.0), g.select(p, a.1, b.1))
        }
        _ => return Err(Error::type_error(format!("{} does not accept complex numbers", f.row().name))),
    };
    let c = level(g, c.0, c.1);
    Ok(g.pair(c.0, c.1))
}

fn part(g: &Graph, x: TensorId) -> C {
    g.parts(x).unwrap_or((x, x))
}
fn each(g: &mut Graph, a: C, f: Un) -> C {
    (g.un(f, a.0), g.un(f, a.1))
}
fn both(g: &mut Graph, f: Bin, a: C, b: C) -> C {
    (g.bin(f, a.0, b.0), g.bin(f, a.1, b.1))
}
fn unit(g: &mut Graph, like: C) -> C {
    let shape = g.shape(like.0);
    let one = g.constant(Scalar::one(g.dtype(like.0)), shape);
    (one, zero_like(g, like.0))
}
fn is_zero(g: &mut Graph, a: C) -> TensorId {
    let zero = g.scalar(a.0, 0.0);
    let (p, q) = (g.bin(Bin::Eq, a.0, zero), g.bin(Bin::Eq, a.1, zero));
    g.bin(Bin::And, p, q)
}
fn zero_where(g: &mut Graph, p: TensorId, c: C) -> C {
    let zero = g.scalar(c.0, 0.0);
    (g.select(p, zero, c.0), g.select(p, zero, c.1))
}
/// i z
fn turn(g: &mut Graph, a: C) -> C {
    (g.un(Un::Neg, a.1), a.0)
}
/// -i z
fn back(g: &mut Graph, a: C) -> C {
    (a.1, g.un(Un::Neg, a.0))
}
fn mul(g: &mut Graph, a: C, b: C) -> C {
    let (ac, bd, ad, bc) =
        (g.bin(Bin::Mul, a.0, b.0), g.bin(Bin::Mul, a.1, b.1), g.bin(Bin::Mul, a.0, b.1), g.bin(Bin::Mul, a.1, b.0));
    (g.bin(Bin::Sub, ac, bd), g.bin(Bin::Add, ad, bc))
}
/// Smith's division: scaled by the larger part of b. NaN where b is zero, and at many infinities: see `quotient`.
fn div(g: &mut Graph, a: C, b: C) -> C {
    let (br, bi) = (g.un(Un::Abs, b.0), g.un(Un::Abs, b.1));
    let p = g.bin(Bin::Ge, br, bi);
    let (big, small) = (g.select(p, b.0, b.1), g.select(p, b.1, b.0));
    let r = g.bin(Bin::Div, small, big);
    let sr = g.bin(Bin::Mul, small, r);
    let d = g.bin(Bin::Add, big, sr);
    let (x, y) = (g.select(p, a.0, a.1), g.select(p, a.1, a.0)); // the parts that meet big and small
    let (yr, xr) = (g.bin(Bin::Mul, y, r), g.bin(Bin::Mul, x, r));
    let re = g.bin(Bin::Add, x, yr);
    let re = g.bin(Bin::Div, re, d);
    let im = g.bin(Bin::Sub, y, xr);
    let im = g.bin(Bin::Div, im, d);
    let neg = g.un(Un::Neg, im);
    (re, g.select(p, im, neg))
}
/// max sqrt(1 + (min / max)^2); inf if either part is.
fn abs(g: &mut Graph, a: C) -> TensorId {
    let (x, y) = (g.un(Un::Abs, a.0), g.un(Un::Abs, a.1));
    let (big, small) = (g.bin(Bin::Max, x, y), g.bin(Bin::Min, x, y));
    let (zero, one, inf) = (g.scalar(x, 0.0), g.scalar(x, 1.0), g.scalar(x, f64::INFINITY));
    let none = g.bin(Bin::Eq, big, zero);
    let r = g.bin(Bin::Div, small, big);
    let r2 = g.bin(Bin::Mul, r, r);
    let s = g.bin(Bin::Add, one, r2);
    let s = g.un(Un::Sqrt, s);
    let h = g.bin(Bin::Mul, big, s);
    let h = g.select(none, zero, h);
    let (xi, yi) = (g.bin(Bin::Eq, x, inf), g.bin(Bin::Eq, y, inf));
    let p = g.bin(Bin::Or, xi, yi);
    g.select(p, inf, h)
}
fn exp(g: &mut Graph, a: C) -> C {
    let e = g.un(Un::Exp, a.0);
    let (c, s) = (g.un(Un::Cos, a.1), g.un(Un::Sin, a.1));
    let zero = g.scalar(a.1, 0.0);
    let flat = g.bin(Bin::Eq, a.1, zero);
    let (re, im) = (g.bin(Bin::Mul, e, c), g.bin(Bin::Mul, e, s));
    (g.select(flat, e, re), g.select(flat, a.1, im))
}
fn log(g: &mut Graph, a: C) -> C {
    let m = abs(g, a);
    (g.un(Un::Log, m), g.bin(Bin::Atan2, a.1, a.0))
}
/// Whether x is negative, or a zero with a sign.
fn signed(g: &mut Graph, x: TensorId) -> TensorId {
    let bits = g.bitcast(x, if g.dtype(x) == DType::F64 { DType::I64 } else { DType::I32 });
    let zero = g.scalar(bits, 0.0);
    g.bin(Bin::Lt, bits, zero)
}
/// w = sqrt((|z| + |x|) / 2); (w, y / 2w) or (|y| / 2w, copysign(w, y)).
fn sqrt(g: &mut Graph, a: C) -> C {
    let (m, x) = (abs(g, a), g.un(Un::Abs, a.0));
    let (zero, half) = (g.scalar(m, 0.0), g.scalar(m, 0.5));
    let (hm, hx) = (g.bin(Bin::Mul, m, half), g.bin(Bin::Mul, x, half));
    let w = g.bin(Bin::Add, hm, hx);
    let w = g.un(Un::Sqrt, w);
    let ww = g.bin(Bin::Add, w, w);
    let v = g.bin(Bin::Div, a.1, ww);
    let right = g.bin(Bin::Ge, a.0, zero);
    let below = signed(g, a.1);
    let nw = g.un(Un::Neg, w);
    let (av, sw) = (g.un(Un::Abs, v), g.select(below, nw, w));
    let none = g.bin(Bin::Eq, m, zero);
    let (re, im) = (g.select(right, w, av), g.select(right, v, sw));
    let (re, im) = (g.select(none, zero, re), g.select(none, a.1, im));
    // an infinite imaginary part is that of the root, whatever the real part
    let (y, inf) = (g.un(Un::Abs, a.1), g.scalar(m, f64::INFINITY));
    let up = g.bin(Bin::Eq, y, inf);
    (g.select(up, inf, re), g.select(up, a.1, im))
}
/// a b, or where b is zero a zero of that sign, whatever a is.
fn times_zero(g: &mut Graph, a: TensorId, b: TensorId) -> TensorId {
    let zero = g.scalar(b, 0.0);
    let (flat, minus, turned) = (g.bin(Bin::Eq, b, zero), g.un(Un::Neg, b), signed(g, a));
    let (at_zero, ab) = (g.select(turned, minus, b), g.bin(Bin::Mul, a, b));
    g.select(flat, at_zero, ab)
}
fn sinh(g: &mut Graph, a: C) -> C {
    let (s, c) = (g.un(Un::Sinh, a.0), g.un(Un::Cosh, a.0));
    let (cy, sy) = (g.un(Un::Cos, a.1), g.un(Un::Sin, a.1));
    (g.bin(Bin::Mul, s, cy), times_zero(g, c, sy))
}
fn cosh(g: &mut Graph, a: C) -> C {
    let (s, c) = (g.un(Un::Sinh, a.0), g.un(Un::Cosh, a.0));
    let (cy, sy) = (g.un(Un::Cos, a.1), g.un(Un::Sin, a.1));
    (g.bin(Bin::Mul, c, cy), times_zero(g, s, sy))
}
/// With s = sinh x, q = tan y and b = 1 + q^2: (b s cosh x + i q) / (1 + b s^2), where nothing cancels.
/// For large |x|: sign x + 4i sin y cos y e^(-2 |x|).
fn tanh(g: &mut Graph, a: C) -> C {
    let double = g.dtype(a.0) == DType::F64;
    let (s, q) = (g.un(Un::Sinh, a.0), g.un(Un::Tan, a.1));
    let (zero, one) = (g.scalar(s, 0.0), g.scalar(s, 1.0));
    let c = g.un(Un::Cosh, a.0);
    let q2 = g.bin(Bin::Mul, q, q);
    let b = g.bin(Bin::Add, one, q2);
    let bs = g.bin(Bin::Mul, b, s);
    let bs2 = g.bin(Bin::Mul, bs, s);
    let d = g.bin(Bin::Add, one, bs2);
    let re = g.bin(Bin::Mul, bs, c);
    let (re, im) = (g.bin(Bin::Div, re, d), g.bin(Bin::Div, q, d));
    let x = g.un(Un::Abs, a.0);
    let limit = g.scalar(x, if double { 20.0 } else { 10.0 });
    let far = g.bin(Bin::Gt, x, limit);
    // sin y e^(-|x|) and cos y e^(-|x|) apart: the exponential alone may underflow
    let m = g.un(Un::Neg, x);
    let e = g.un(Un::Exp, m);
    let (sy, cy) = (g.un(Un::Sin, a.1), g.un(Un::Cos, a.1));
    let (sy, cy) = (g.bin(Bin::Mul, sy, e), g.bin(Bin::Mul, cy, e));
    let four = g.scalar(sy, 4.0);
    let sc = g.bin(Bin::Mul, sy, cy);
    let tail = g.bin(Bin::Mul, four, sc);
    let inf = g.scalar(x, f64::INFINITY);
    let (endless, known) = (g.bin(Bin::Eq, x, inf), g.un(Un::IsFinite, a.1));
    let at_end = g.select(known, tail, zero);
    let tail = g.select(endless, at_end, tail);
    let sign = g.un(Un::Sign, a.0);
    let real = g.bin(Bin::Eq, a.1, zero);
    let im = g.select(far, tail, im);
    (g.select(far, sign, re), g.select(real, a.1, im))
}
/// -i log((x + i y) / sqrt(x^2 + y^2)). Its imaginary part, a logarithm near 1, is that of atan(y / x), which is -atan(x / y) but for pi / 2.
fn atan2(g: &mut Graph, y: C, x: C) -> C {
    let iy = turn(g, y);
    let (sum, xx, yy) = (both(g, Bin::Add, x, iy), mul(g, x, x), mul(g, y, y));
    let square = both(g, Bin::Add, xx, yy);
    let r = sqrt(g, square);
    let q = div(g, sum, r);
    let (ax, ay) = (abs(g, x), abs(g, y));
    let flat = g.bin(Bin::Ge, ax, ay);
    let pick = |g: &mut Graph, a: C, b: C| (g.select(flat, a.0, b.0), g.select(flat, a.1, b.1));
    let (small, big) = (pick(g, y, x), pick(g, x, y));
    let w = div(g, small, big);
    let t = turn(g, w);
    let l = atanh(g, t);
    let im = back(g, l).1;
    let minus = g.un(Un::Neg, im);
    (g.bin(Bin::Atan2, q.1, q.0), g.select(flat, im, minus))
}
/// log1p(4x / ((1 - x)^2 + y^2)) / 4 for x >= 0, mirrored for x < 0; atan2(2y, (1 - x) (1 + x) - y^2) / 2.
/// Where the squares would overflow, x / |z|^2; where they would vanish, log(|2 + iy| / |y|) / 2.
fn atanh(g: &mut Graph, a: C) -> C {
    let huge = if g.dtype(a.0) == DType::F64 { 1e150 } else { 1e18 };
    let (x, y) = (g.un(Un::Abs, a.0), g.un(Un::Abs, a.1));
    let (zero, one, two) = (g.scalar(x, 0.0), g.scalar(x, 1.0), g.scalar(x, 2.0));
    let (four, half, quarter) = (g.scalar(x, 4.0), g.scalar(x, 0.5), g.scalar(x, 0.25));
    let (below, above) = (g.bin(Bin::Sub, one, x), g.bin(Bin::Add, one, x));
    let y2 = g.bin(Bin::Mul, y, y);
    let b2 = g.bin(Bin::Mul, below, below);
    let d = g.bin(Bin::Add, b2, y2);
    let x4 = g.bin(Bin::Mul, four, x);
    let r = g.bin(Bin::Div, x4, d);
    let near = g.un(Un::Log1p, r);
    let near = g.bin(Bin::Mul, quarter, near);
    let m = abs(g, a);
    let (inf, limit) = (g.scalar(m, f64::INFINITY), g.scalar(m, huge));
    let endless = g.bin(Bin::Eq, m, inf);
    let far = g.bin(Bin::Div, x, m);
    let far = g.bin(Bin::Div, far, m);
    let far = g.select(endless, zero, far);
    let outside = g.bin(Bin::Gt, m, limit);
    let re = g.select(outside, far, near);
    let h = abs(g, (two, y));
    let h = g.bin(Bin::Div, h, y);
    let pole = g.un(Un::Log, h);
    let pole = g.bin(Bin::Mul, half, pole);
    let (at_one, close) = (g.bin(Bin::Eq, x, one), g.bin(Bin::Lt, y, one));
    let at_pole = g.bin(Bin::And, at_one, close);
    let re = g.select(at_pole, pole, re);
    let nre = g.un(Un::Neg, re);
    let left = g.bin(Bin::Lt, a.0, zero);
    let none = g.bin(Bin::Eq, a.0, zero);
    let re = g.select(left, nre, re);
    let p = g.bin(Bin::Mul, below, above);
    let q = g.bin(Bin::Sub, p, y2);
    // far out only y's sign counts: infinity over infinity has no angle
    let yy = g.bin(Bin::Mul, two, a.1);
    let (sign, flat) = (g.un(Un::Sign, a.1), g.bin(Bin::Eq, a.1, zero));
    let sign = g.select(flat, a.1, sign);
    let yy = g.select(outside, sign, yy);
    let t = g.bin(Bin::Atan2, yy, q);
    (g.select(none, a.0, re), g.bin(Bin::Mul, half, t))
}
/// log(e^a + e^b), with the larger real part taken out: the imaginary part is the principal one.
pub(in crate::ops) fn logaddexp(g: &mut Graph, x: TensorId, y: TensorId) -> TensorId {
    let (a, b) = (part(g, x), part(g, y));
    let m = g.bin(Bin::Max, a.0, b.0);
    let (finite, zero) = (g.un(Un::IsFinite, m), g.scalar(m, 0.0));
    let m = g.select(finite, m, zero);
    let (p, q) = ((g.bin(Bin::Sub, a.0, m), a.1), (g.bin(Bin::Sub, b.0, m), b.1));
    let (p, q) = (exp(g, p), exp(g, q));
    let s = both(g, Bin::Add, p, q);
    let l = log(g, s);
    let re = g.bin(Bin::Add, l.0, m);
    g.pair(re, l.1)
}
