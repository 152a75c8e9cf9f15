//! Functions with custom derivatives or iterations: `sinc`, `i0`, `gcd`, `frexp` ..
//!
//! ```
//! use ferrax::{Tensor, grad, special};
//! assert_eq!(special::gcd(&Tensor::from([12, -9]), 6).to_vec::<i32>()?, [6, 3]);
//! assert_eq!(special::lcm(&Tensor::from([4, 0]), 6).to_vec::<i32>()?, [12, 0]);
//! let (mantissa, exponent) = special::frexp(&Tensor::from([8.0f32, -0.3]));
//! assert_eq!((mantissa.to_vec::<f32>()?, exponent.to_vec::<i32>()?), (vec![0.5, -0.6], vec![4, -1]));
//! let second = grad(|x: &Tensor| grad(|x: &Tensor| special::sinc(x))(x))(&Tensor::from(0.0f32))?;
//! assert!((second.item() + 3.289868).abs() < 1e-5); // -pi^2 / 3, at the hole
//! # Ok::<(), ferrax::Error>(())
//! ```
use crate::mistakes::{ok, raise};
use crate::s;
use crate::tensor::{Ellipsis, IntoTensor, Tensor, constant, exactly, inexact, linalg, promote, where_};
use crate::transforms::{cond, custom_jvp, while_loop};
use ferrax_ir::{Dtype, Error, Res};
use std::f64::consts::PI;

/// sin(v) / v for |v| < 1 by its series: derivatives of the quotient cancel there.
#[track_caller]
fn sinc_near_zero(v: &Tensor) -> Tensor {
    let square = v * v;
    let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
    (0..11).rev().fold(v.zeros_like(), |total, k| {
        let term = (1 - k as i32 % 2 * 2) as f64 / factorial(2 * k + 1);
        total * &square + constant(v.dtype(), term)
    })
}
/// `sin(pi x) / (pi x)`, 1 at 0, with all its derivatives there.
#[track_caller]
pub fn sinc(x: &Tensor) -> Tensor {
    let x = inexact(x);
    let dtype = x.dtype();
    let x = if matches!(dtype, Dtype::F16 | Dtype::BF16) { x.astype(Dtype::F32) } else { x };
    let y = constant(x.dtype(), PI) * &x;
    let near = y.abs().lt(1.0);
    let (close, far) = (where_(&near, &y, 0.0), where_(&near, 1.0, &y));
    where_(&near, sinc_near_zero(&close), far.sin() / &far).astype(dtype)
}
/// The modified Bessel function of order 0.
///
/// ```
/// use ferrax::{Tensor, special};
/// assert!((special::i0(&Tensor::from(1.0f32)).item() - 1.266066).abs() < 1e-5);
/// ```
#[track_caller]
pub fn i0(x: &Tensor) -> Tensor {
    let value = |x: &Tensor| {
        let x = x.abs();
        x.exp() * x.bessel_i0e()
    };
    let rule = move |x: &Tensor, dx: &Tensor| {
        let a = x.abs();
        (value(x), x.sign() * (a.exp() * a.bessel_i1e()) * dx)
    };
    ok(custom_jvp(value, rule)(&inexact(x)))
}
/// Kaiser's window of `n` samples, float32.
///
/// ```
/// use ferrax::special;
/// let w = special::kaiser(5, 8.6);
/// assert!(w.argmax(0).item() == 2.0 && (w.max().item() - 1.0).abs() < 1e-6);
/// ```
#[track_caller]
pub fn kaiser(n: usize, beta: f64) -> Tensor {
    let c = |x: f64| constant(Dtype::F32, x);
    if n < 2 {
        return Tensor::ones(&[n]);
    }
    let half = 0.5 * (n as f64 - 1.0);
    let x = ((Tensor::arange(n, Dtype::F32) - c(half)) / c(half)).powi(2);
    i0(&(c(beta) * (c(1.0) - x).sqrt())) / i0(&c(beta))
}
#[track_caller]
fn integers(name: &str, x: &Tensor, y: impl IntoTensor) -> [Tensor; 2] {
    let both = promote(&[x, &y.into_tensor()]);
    if !both[0].dtype().is_int() {
        raise(Error::value(format!("Arguments to {name} must be integers.")));
    }
    exactly(crate::tensor::broadcast_arrays(&both)).map(|x: Tensor| x.abs().strong())
}
/// Elementwise greatest common divisor of integers.
#[track_caller]
pub fn gcd(x: &Tensor, y: impl IntoTensor) -> Tensor {
    let [x, y] = integers("gcd", x, y);
    let step = |(a, b): &(Tensor, Tensor)| {
        let more = b.ne(0);
        let (a, b) = (where_(&more, b, a), where_(&more, a % where_(&more, b, 1), b.zeros_like()));
        (a.maximum(&b), a.minimum(&b))
    };
    ok(while_loop(|s: &(Tensor, Tensor)| s.1.ne(0).any(), step, &(x, y))).0
}
/// Elementwise least common multiple of integers.
#[track_caller]
pub fn lcm(x: &Tensor, y: impl IntoTensor) -> Tensor {
    let [x, y] = integers("lcm", x, y);
    let d = gcd(&x, &y);
    let nothing = d.eq(0);
    where_(&nothing, 0, x * y.floor_div(where_(&nothing, 1, &d)))
}
/// Elementwise `(m, e)` with `x = m 2^e` and m in [0.5, 1); 0, nan and infinities with e = 0. e is int32.
///
/// # Panics
/// For complex numbers.
#[track_caller]
pub fn frexp(x: &Tensor) -> (Tensor, Tensor) {
    let x = inexact(x).strong();
    let (words, exponent, mantissa, least) = match x.dtype() {
        Dtype::F16 => (Dtype::I16, 5, 10, -14),
        Dtype::BF16 => (Dtype::I16, 8, 7, -126),
        Dtype::F32 => (Dtype::I32, 8, 23, -126),
        Dtype::F64 => (Dtype::I64, 11, 52, -1022),
        d => raise(Error::type_error(format!("frexp does not accept dtype {}", d.long()))),
    };
    let value = move |x: &Tensor| {
        let c = |v: i64| constant(words, v as f64);
        let small = x.abs().lt(constant(x.dtype(), 2f64.powi(least)));
        let bits = where_(&small, x * constant(x.dtype(), 2f64.powi(mantissa)), x).bitcast(words);
        let (bias, ones) = ((1i64 << (exponent - 1)) - 1, (1i64 << exponent) - 1);
        let e = ((&bits >> c(mantissa as i64)) & c(ones)).astype(Dtype::I32) - (bias - 1);
        let e = e + where_(&small, constant(Dtype::I32, -mantissa as f64), constant(Dtype::I32, 0.0));
        // the sign and the mantissa's bits, under the exponent of [0.5, 1)
        let kept = &bits - (((&bits >> c(mantissa as i64)) & c(ones)) << c(mantissa as i64));
        let m = (kept | (c(bias - 1) << c(mantissa as i64))).bitcast(x.dtype());
        let special = x.is_inf() | x.is_nan() | x.eq(0.0);
        (where_(&special, x, m), where_(&special, 0, e).astype(Dtype::I32))
    };
    let rule = move |x: &Tensor, dx: &Tensor| {
        let (m, e) = value(x);
        let dm = dx * constant(x.dtype(), 2.0).pow(-e.astype(x.dtype()));
        ((m, e.clone()), (dm, e.zeros_like()))
    };
    ok(custom_jvp(value, rule)(&x))
}
/// Elementwise `x 2^n` for integers n.
///
/// ```
/// use ferrax::{Tensor, special};
/// assert_eq!(special::ldexp(&Tensor::from([0.5f32, 3.0]), Tensor::from([4, -1])).to_vec::<f32>()?, [8.0, 1.5]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn ldexp(x: &Tensor, n: impl IntoTensor) -> Tensor {
    let x = inexact(x).strong();
    let d = x.dtype();
    let (m, e) = frexp(&x);
    let e = e.astype(d) + n.into_tensor().astype(d);
    let up = e.gt(0.0);
    // half of the last step is the mantissa's, so that the power stays finite
    let (m, e) = (where_(&up, &m * 2.0, &m), where_(&up, &e - 1.0, &e));
    let out = m * constant(d, 2.0).pow(e);
    where_(&(x.is_inf() | x.eq(0.0)), &x, out)
}
/// Elementwise log2(2**x + 2**y), without overflow.
///
/// ```
/// use ferrax::{Tensor, special};
/// assert_eq!(special::logaddexp2(&Tensor::from([3.0f32, 1000.0]), 3.0).to_vec::<f32>()?, [4.0, 1000.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn logaddexp2(x: &Tensor, y: impl IntoTensor) -> Tensor {
    const SCALE: f64 = 1.0 / std::f64::consts::LN_2;
    let [x, y] = exactly(promote(&[x, &y.into_tensor()]));
    let log1p = |x: Tensor| constant(x.dtype(), SCALE) * x.log1p();
    log_add([inexact(&x), inexact(&y)], |x| x.exp2(), log1p, Some(1.0 / SCALE))
}
/// The logarithm of the sum of powers, without overflow: `exp` raises the base, `log1p` is its logarithm of 1 + x, and `ln` the natural
/// logarithm of the base, unless that is e.
#[track_caller]
pub(crate) fn log_add(
    [x, y]: [Tensor; 2],
    exp: fn(&Tensor) -> Tensor,
    log1p: fn(Tensor) -> Tensor,
    ln: Option<f64>,
) -> Tensor {
    let value = move |(x, y): &(Tensor, Tensor)| {
        let (top, delta) = (x.maximum(y), x - y);
        where_(&delta.ne(&delta), x + y, top + log1p(exp(&-delta.abs())))
    };
    // The share of x in the sum: of the difference, since the sum is rounded. Between equal infinities that is nan: +inf is all of it.
    let share = move |x: &Tensor, y: &Tensor, out: &Tensor| {
        let v = x - y;
        let odd = v.ne(&v) & out.eq(out);
        let whole = where_(&x.gt(0), 1.0, v.zeros_like());
        let power = ln.map_or_else(|| v.clone(), |ln| constant(v.dtype(), ln) * &v);
        where_(&odd, whole, power.logistic())
    };
    let rule = move |x: &(Tensor, Tensor), dx: &(Tensor, Tensor)| {
        let out = value(x);
        let change = &dx.0 * share(&x.0, &x.1, &out) + &dx.1 * share(&x.1, &x.0, &out);
        (out, change)
    };
    ok(custom_jvp(value, rule)(&(x, y)))
}

/// The determinant. Its derivative is there for singular matrices, too.
#[track_caller]
pub fn det(a: &Tensor) -> Tensor {
    let a = linalg::square("det", a);
    let n = a.shape()[a.rank() - 1];
    let x = |i: usize, j: usize| a.slice(s![Ellipsis, i, j]);
    match n {
        0 => Tensor::ones(&a.shape()[..a.rank() - 2]).astype(a.dtype()),
        1 => x(0, 0),
        2 => x(0, 0) * x(1, 1) - x(0, 1) * x(1, 0),
        3 => {
            let along = x(0, 0) * x(1, 1) * x(2, 2) + x(0, 1) * x(1, 2) * x(2, 0) + x(0, 2) * x(1, 0) * x(2, 1);
            along - x(0, 2) * x(1, 1) * x(2, 0) - x(0, 0) * x(1, 2) * x(2, 1) - x(0, 1) * x(1, 0) * x(2, 2)
        }
        _ => ok(custom_jvp(factored_det, det_rule)(&a)),
    }
}
#[track_caller]
fn factored_det(a: &Tensor) -> Tensor {
    let (d, parity) = linalg::factors(a);
    d.prod_axes(-1) * parity.astype(a.dtype())
}
/// Of a regular matrix by its inverse, of a singular one by its cofactors.
fn det_rule(a: &Tensor, da: &Tensor) -> Res<(Tensor, Tensor)> {
    type Three = (Tensor, Tensor, Tensor);
    let y = ok(custom_jvp(factored_det, det_rule)(a));
    let trace = |x: Tensor| x.diagonal().sum_axes(-1);
    let dy = cond(
        &y.ne(0).all(),
        |(a, da, y): &Three| y * trace(linalg::solve(a, da)),
        |(a, da, _): &Three| trace(adjugate(a).matmul(da)),
        &(a.clone(), da.clone(), y.clone()),
    )?;
    Ok((y, dy))
}
#[track_caller]
fn adjugate(a: &Tensor) -> Tensor {
    let (u, s, vt) = linalg::svd(a);
    let n = a.shape()[a.rank() - 1];
    let products = where_(&Tensor::eye(n, n).astype(Dtype::BOOL), 1.0, s.expand_dims(-2)).prod_axes(-1);
    let turn = factored_det(&u.matmul(&vt)).expand_dims(-1).expand_dims(-1);
    (turn * (linalg::adjoint(&vt) * products.expand_dims(-2).astype(a.dtype()))).matmul(linalg::adjoint(&u))
}
