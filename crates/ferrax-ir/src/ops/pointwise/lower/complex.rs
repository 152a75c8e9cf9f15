//! Rows of complex numbers: the textbook formulas over (re, im), arranged so that no intermediate overflows where the result does not.
//!
//! At infinities and nans they are those of C (ISO/IEC 9899, annex G): a part that is determined for every value of an unknown part is returned.
//! `sqrt(nan + inf i)` is `inf + inf i`, `cosh(inf + 0 i)` is `inf + 0 i`.
use super::{integer_pow, level, zero_like};
use crate::error::{Error, Res};
use crate::lower::{Graph, TensorId};
use crate::ops::pointwise::Pw;
use ferrax_kernel::{Bin, DType, Scalar, Un};

/// A complex number under construction.
type C = (TensorId, TensorId);

pub(super) fn lower(f: Pw, n: i32, g: &mut Graph, x: &[TensorId]) -> Res<TensorId> {
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
            return Ok(finite(g, a));
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
        Pw::Div => div(g, a, z[1]),
        Pw::Square => {
            let (less, more) = (g.bin(Bin::Sub, a.0, a.1), g.bin(Bin::Add, a.0, a.1));
            let xy = g.bin(Bin::Mul, a.0, a.1);
            (g.bin(Bin::Mul, less, more), g.bin(Bin::Add, xy, xy))
        }
        Pw::IntegerPow => {
            let m = |g: &mut Graph, a: TensorId, b: TensorId| {
                let (a, b) = (part(g, a), part(g, b));
                let c = mul(g, a, b);
                g.pair(c.0, c.1)
            };
            let inverse = |g: &mut Graph, a: TensorId| {
                let a = part(g, a);
                let one = unit(g, a);
                let c = div(g, one, a);
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
            let re = g.bin(Bin::Sub, ec, t);
            let unknown = endless_beside_unknown(g, a);
            (g.select(unknown, e, re), exp(g, a).1)
        }
        Pw::Log => log(g, a),
        Pw::Log1p => {
            // |1 + z|^2 - 1 = x (2 + x) + y^2; for large |z|, where squares may overflow, the 1 does not count
            let (one, two, half) = (g.scalar(a.0, 1.0), g.scalar(a.0, 2.0), g.scalar(a.0, 0.5));
            let x2 = g.bin(Bin::Add, two, a.0);
            let (p, y2) = (g.bin(Bin::Mul, a.0, x2), g.bin(Bin::Mul, a.1, a.1));
            let s = g.bin(Bin::Add, p, y2);
            let l = g.un(Un::Log1p, s);
            let x1 = g.bin(Bin::Add, a.0, one);
            let re = g.bin(Bin::Mul, half, l);
            let size = abs(g, (x1, a.1));
            let (far, limit) = (g.un(Un::Log, size), g.scalar(size, 1e9));
            let outside = g.bin(Bin::Gt, size, limit);
            (g.select(outside, far, re), g.bin(Bin::Atan2, a.1, x1))
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
            let p = (g.select(base0, at_zero, p.0), g.select(base0, zero, p.1));
            // and z^0 = 1, 1^z = 1 also where z is infinite or no number
            let nothing = g.scalar(a.1, 0.0);
            let (x, y) = (g.bin(Bin::Eq, a.0, one), g.bin(Bin::Eq, a.1, nothing));
            let base1 = g.bin(Bin::And, x, y);
            let sure = g.bin(Bin::Or, exp0, base1);
            (g.select(sure, one, p.0), g.select(sure, zero, p.1))
        }
        Pw::Sin => rotated(g, a, sinh),
        Pw::Cos => {
            let t = turn(g, a);
            cosh(g, t)
        }
        Pw::Tan => rotated(g, a, tanh),
        Pw::Sinh => sinh(g, a),
        Pw::Cosh => cosh(g, a),
        Pw::Tanh => tanh(g, a),
        Pw::Logistic => {
            let (one, m) = (unit(g, a), each(g, a, Un::Neg));
            let e = exp(g, m);
            let d = both(g, Bin::Add, one, e);
            div(g, one, d)
        }
        Pw::Asinh => asinh(g, a),
        Pw::Asin => rotated(g, a, asinh),
        Pw::Acos => acos(g, a),
        Pw::Acosh => acosh(g, a),
        Pw::Atanh => atanh(g, a),
        Pw::Atan => rotated(g, a, atanh),
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
/// Whether a part is infinite.
fn is_endless(g: &mut Graph, a: C) -> TensorId {
    let inf = g.scalar(a.0, f64::INFINITY);
    let (x, y) = (g.un(Un::Abs, a.0), g.un(Un::Abs, a.1));
    let (p, q) = (g.bin(Bin::Eq, x, inf), g.bin(Bin::Eq, y, inf));
    g.bin(Bin::Or, p, q)
}
/// Whether the real part is infinite, and the imaginary one is infinite or nan, so that it has no angle.
fn endless_beside_unknown(g: &mut Graph, a: C) -> TensorId {
    let (x, inf) = (g.un(Un::Abs, a.0), g.scalar(a.0, f64::INFINITY));
    let (endless, known) = (g.bin(Bin::Eq, x, inf), g.un(Un::IsFinite, a.1));
    let unknown = g.un(Un::Not, known);
    g.bin(Bin::And, endless, unknown)
}
/// The size of one number with the sign of another.
fn with_sign(g: &mut Graph, size: TensorId, of: TensorId) -> TensorId {
    let (below, size) = (signed(g, of), g.un(Un::Abs, size));
    let minus = g.un(Un::Neg, size);
    g.select(below, minus, size)
}
/// s t, where zero times anything is a zero with the sign of the product.
fn times(g: &mut Graph, s: TensorId, t: TensorId) -> TensorId {
    let (zero, p) = (g.scalar(s, 0.0), g.bin(Bin::Mul, s, t));
    let (a, b) = (g.bin(Bin::Eq, s, zero), g.bin(Bin::Eq, t, zero));
    let none = g.bin(Bin::Or, a, b);
    let (zero, sign) = (with_sign(g, zero, s), signed(g, t));
    let minus = g.un(Un::Neg, zero);
    let zero = g.select(sign, minus, zero);
    g.select(none, zero, p)
}
/// i z
fn turn(g: &mut Graph, a: C) -> C {
    (g.un(Un::Neg, a.1), a.0)
}
/// -i f(i z): the sine of the hyperbolic one, and so on.
fn rotated(g: &mut Graph, a: C, f: impl Fn(&mut Graph, C) -> C) -> C {
    let t = turn(g, a);
    let c = f(g, t);
    back(g, c)
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
/// Smith's division, scaled by the larger part of b; by zero it gives infinity and by infinity
/// zero, as in C.
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
    let im = g.select(p, im, neg);
    let (u, v) = (g.bin(Bin::Ne, re, re), g.bin(Bin::Ne, im, im));
    let (unknown, limit) = (g.bin(Bin::And, u, v), quotient_at_an_end(g, a, b));
    (g.select(unknown, limit.0, re), g.select(unknown, limit.1, im))
}
/// The value of a / b if exactly one of them is infinite, or b is zero; otherwise the result is
/// meaningless.
fn quotient_at_an_end(g: &mut Graph, a: C, b: C) -> C {
    let (inf, zero) = (g.scalar(a.0, f64::INFINITY), g.scalar(a.0, 0.0));
    let pole = with_sign(g, inf, b.0);
    let at_zero = (g.bin(Bin::Mul, pole, a.0), g.bin(Bin::Mul, pole, a.1));
    let (none, a_endless, b_endless) = (is_zero(g, b), is_endless(g, a), is_endless(g, b));
    let (c, d) = (corner(g, a, a_endless), corner(g, b, b_endless));
    let minus = g.un(Un::Neg, d.1);
    let direction = mul(g, c, (d.0, minus));
    let scale = g.select(a_endless, inf, zero);
    let far = (g.bin(Bin::Mul, scale, direction.0), g.bin(Bin::Mul, scale, direction.1));
    // infinity over infinity, and nan
    let (p, q) = (finite(g, a), finite(g, b));
    let known = g.bin(Bin::Or, p, q);
    let nan = g.scalar(a.0, f64::NAN);
    let far = (g.select(known, far.0, nan), g.select(known, far.1, nan));
    (g.select(none, at_zero.0, far.0), g.select(none, at_zero.1, far.1))
}
/// Of an infinite number the parts that are infinite as ones, the others as zeros; any other number as it is.
fn corner(g: &mut Graph, a: C, endless: TensorId) -> C {
    let mut one = |x: TensorId| {
        let (size, inf) = (g.un(Un::Abs, x), g.scalar(x, f64::INFINITY));
        let (p, one, zero) = (g.bin(Bin::Eq, size, inf), g.scalar(x, 1.0), g.scalar(x, 0.0));
        let size = g.select(p, one, zero);
        let unit = with_sign(g, size, x);
        g.select(endless, unit, x)
    };
    (one(a.0), one(a.1))
}
fn finite(g: &mut Graph, a: C) -> TensorId {
    let (p, q) = (g.un(Un::IsFinite, a.0), g.un(Un::IsFinite, a.1));
    g.bin(Bin::And, p, q)
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
    // without an angle: 0 and 0, or infinity and nan
    let (unknown, none) = (endless_beside_unknown(g, a), g.bin(Bin::Eq, e, zero));
    let nothing = g.bin(Bin::And, unknown, none);
    let (re, im) = (g.select(unknown, e, re), g.select(nothing, e, im));
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
    // up to infinity, whatever the real part is
    let (y, inf) = (g.un(Un::Abs, a.1), g.scalar(a.1, f64::INFINITY));
    let up = g.bin(Bin::Eq, y, inf);
    (g.select(up, inf, re), g.select(up, a.1, im))
}
fn sinh(g: &mut Graph, a: C) -> C {
    let (s, c) = (g.un(Un::Sinh, a.0), g.un(Un::Cosh, a.0));
    let (cy, sy) = (g.un(Un::Cos, a.1), g.un(Un::Sin, a.1));
    let (re, unknown) = (times(g, s, cy), endless_beside_unknown(g, a));
    (g.select(unknown, s, re), times(g, c, sy))
}
fn cosh(g: &mut Graph, a: C) -> C {
    let (s, c) = (g.un(Un::Sinh, a.0), g.un(Un::Cosh, a.0));
    let (cy, sy) = (g.un(Un::Cos, a.1), g.un(Un::Sin, a.1));
    let (re, unknown) = (g.bin(Bin::Mul, c, cy), endless_beside_unknown(g, a));
    (g.select(unknown, c, re), times(g, s, sy))
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
    // sin y e^(-|x|) and cos y e^(-|x|) separately: the exponential alone may underflow
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
    let (sure, none) = (g.bin(Bin::Or, known, endless), g.bin(Bin::Eq, a.0, zero));
    let sure = g.bin(Bin::And, far, sure);
    let re = g.select(sure, sign, re);
    (g.select(none, a.0, re), g.select(real, a.1, im))
}
/// The roots of `a + b z` and `c + d z`, for real a to d.
fn roots(g: &mut Graph, z: C, [a, b, c, d]: [f64; 4]) -> (C, C) {
    let mut root = |a: f64, b: f64| {
        let (a, b) = (g.scalar(z.0, a), g.scalar(z.0, b));
        let (x, y) = (g.bin(Bin::Mul, b, z.0), g.bin(Bin::Mul, b, z.1));
        let w = (g.bin(Bin::Add, a, x), y);
        sqrt(g, w)
    };
    (root(a, b), root(c, d))
}
// The inverse sines and cosines are Kahan's: no product cancels, and on a cut the sign of a zero
// selects the side.
// W. Kahan, Branch Cuts for Complex Elementary Functions, 1987.

/// With r, s = sqrt(1 + w), sqrt(1 - w) for w = -i z: asinh(re(r) im(s) - re(s) im(r)) + i atan2(im(z), re(r s)).
fn asinh(g: &mut Graph, z: C) -> C {
    let w = back(g, z);
    let (r, s) = roots(g, w, [1.0, 1.0, 1.0, -1.0]);
    let (a, b) = (g.bin(Bin::Mul, r.0, s.1), g.bin(Bin::Mul, s.0, r.1));
    let (c, d) = (g.bin(Bin::Mul, r.0, s.0), g.bin(Bin::Mul, r.1, s.1));
    let (x, y) = (g.bin(Bin::Sub, a, b), g.bin(Bin::Sub, c, d));
    let (re, im) = (g.un(Un::Asinh, x), g.bin(Bin::Atan2, z.1, y));
    let (endless, inf, size) = (is_endless(g, z), g.scalar(z.0, f64::INFINITY), g.un(Un::Abs, z.0));
    let (end, angle) = (with_sign(g, inf, z.0), g.bin(Bin::Atan2, z.1, size));
    let (re, im) = (g.select(endless, end, re), g.select(endless, angle, im));
    let zero = g.scalar(z.1, 0.0);
    let real = g.bin(Bin::Eq, z.1, zero);
    (re, g.select(real, z.1, im))
}
/// With r, s = sqrt(1 - z), sqrt(1 + z): 2 atan2(re(r), re(s)) + i asinh(re(s) im(r) - im(s) re(r)).
fn acos(g: &mut Graph, z: C) -> C {
    let (r, s) = roots(g, z, [1.0, -1.0, 1.0, 1.0]);
    let (a, b) = (g.bin(Bin::Mul, s.0, r.1), g.bin(Bin::Mul, s.1, r.0));
    let (y, half) = (g.bin(Bin::Sub, a, b), g.bin(Bin::Atan2, r.0, s.0));
    let (re, im) = (g.bin(Bin::Add, half, half), g.un(Un::Asinh, y));
    let (endless, inf, size) = (is_endless(g, z), g.scalar(z.1, f64::INFINITY), g.un(Un::Abs, z.1));
    let end = with_sign(g, inf, z.1);
    let (end, angle) = (g.un(Un::Neg, end), g.bin(Bin::Atan2, size, z.0));
    let (re, im) = (g.select(endless, angle, re), g.select(endless, end, im));
    let (none, quarter) = (beside_nothing(g, z), g.scalar(z.0, std::f64::consts::FRAC_PI_2));
    (g.select(none, quarter, re), im)
}
/// With r, s = sqrt(z - 1), sqrt(z + 1): asinh(re(r) re(s) + im(r) im(s)) + 2i atan2(im(r), re(s)).
fn acosh(g: &mut Graph, z: C) -> C {
    let (r, s) = roots(g, z, [-1.0, 1.0, 1.0, 1.0]);
    let (a, b) = (g.bin(Bin::Mul, r.0, s.0), g.bin(Bin::Mul, r.1, s.1));
    let (x, half) = (g.bin(Bin::Add, a, b), g.bin(Bin::Atan2, r.1, s.0));
    let (re, im) = (g.un(Un::Asinh, x), g.bin(Bin::Add, half, half));
    let (endless, inf, angle) = (is_endless(g, z), g.scalar(z.0, f64::INFINITY), g.bin(Bin::Atan2, z.1, z.0));
    let (re, im) = (g.select(endless, inf, re), g.select(endless, angle, im));
    let (none, quarter) = (beside_nothing(g, z), g.scalar(z.0, std::f64::consts::FRAC_PI_2));
    (re, g.select(none, quarter, im))
}
/// Whether the real part is zero and the imaginary one nan: on the imaginary axis the angle is known.
fn beside_nothing(g: &mut Graph, z: C) -> TensorId {
    let zero = g.scalar(z.0, 0.0);
    let (none, unknown) = (g.bin(Bin::Eq, z.0, zero), g.bin(Bin::Ne, z.1, z.1));
    g.bin(Bin::And, none, unknown)
}
/// -i log((x + i y) / sqrt(x^2 + y^2)). Its imaginary part, a logarithm near 1, is that of atan(y /
/// x), which is -atan(x / y) up to pi / 2.
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
/// log1p(4x / ((1 - x)^2 + y^2)) / 4 for x >= 0, mirrored for x < 0; atan2(2y, (1 - x) (1 + x) -
/// y^2) / 2. Where the squares would overflow, x / |z|^2; where they would underflow, log(|2 + iy|
/// / |y|) / 2.
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
    // for large |z| only y's sign counts: infinity over infinity has no angle
    let yy = g.bin(Bin::Mul, two, a.1);
    let (sign, flat) = (g.un(Un::Sign, a.1), g.bin(Bin::Eq, a.1, zero));
    let sign = g.select(flat, a.1, sign);
    let (yy, minus) = (g.select(outside, sign, yy), g.scalar(q, f64::NEG_INFINITY));
    let q = g.select(endless, minus, q);
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
