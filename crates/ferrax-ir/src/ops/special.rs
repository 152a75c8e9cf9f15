//! igamma, igammac, igamma_grad_a, random_gamma_grad, regularized_incomplete_beta, betainc_grad_a, betainc_grad_b, zeta.
//! scipy: `gammainc`, `gammaincc`, `betainc`, `zeta`.
//!
//! ```text
//! igamma(a, x) = P(a, x)    igammac = 1 - P    igamma_grad_a = dP/da    random_gamma_grad = -(dP/da) / (dP/dx)
//! regularized_incomplete_beta(a, b, x) = I_x(a, b)    betainc_grad_a = dI/da    betainc_grad_b = dI/db
//! zeta(x, q) = sum_(k >= 0) (q + k)^-x
//! ```
//! Pointwise as the rows of `pointwise` are, but they need loops: each is a composition, whose loops end when every element has converged.
//! Half precision is computed in single.
mod beta;
mod gamma;
mod zeta;

use super::meaning::{self, converted, stretched};
use super::pointwise::{Pw, align, common_shape};
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, enter, values1};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::operators::catch;
use crate::param::Member;
use crate::primitive;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpecialKind {
    Igamma,
    Igammac,
    IgammaGradA,
    RandomGammaGrad,
    Betainc,
    BetaincGradA,
    BetaincGradB,
    Zeta,
}
use SpecialKind::*;
impl Member for SpecialKind {
    const ALL: &'static [(SpecialKind, &'static str)] = &[
        (Igamma, "igamma"),
        (Igammac, "igammac"),
        (IgammaGradA, "igamma_grad_a"),
        (RandomGammaGrad, "random_gamma_grad"),
        (Betainc, "regularized_incomplete_beta"),
        (BetaincGradA, "betainc_grad_a"),
        (BetaincGradB, "betainc_grad_b"),
        (Zeta, "zeta"),
    ];
}
primitive! {
    pub struct Special = kind: SpecialKind {}
}

/// The distance from 1 to the next number of an array's dtype, and its least normal number.
fn epsilon(x: &Value) -> f64 {
    if x.dtype() == Dtype::F64 { f64::EPSILON } else { f32::EPSILON as f64 }
}
fn tiny(x: &Value) -> f64 {
    if x.dtype() == Dtype::F64 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE as f64 }
}
/// log gamma(n) less (n - 1/2) log n - n + log(2 pi) / 2, for n of 10 and more: Stirling's series.
fn stirling(n: &Value) -> Value {
    const TERMS: [f64; 7] =
        [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0];
    let square = 1.0 / (n * n);
    let sum = TERMS[..6].iter().rev().fold(meaning::fill(n, TERMS[6]), |sum, c| sum * &square + *c);
    sum / n
}
/// log(x / at) - x / at + 1 for x - at = t at, without cancellation about 0 and near -1.
fn log_less(t: &Value, ratio: &Value) -> Value {
    let below = |n: f64| meaning::with(Pw::Lt, &meaning::f1(Pw::Abs, t), n);
    let (close, near) = (below(0.3), below(0.5));
    let log = meaning::choose(&near, &meaning::f1(Pw::Log1p, t), &meaning::f1(Pw::Log, ratio));
    // log(1 + t) = 2 (s + s^3 / 3 + ..), whose first term is t - s t
    let s = t / (t + 2.0);
    let square = &s * &s;
    let sum = (0..12).rev().fold(meaning::fill(t, 0.0), |sum, k| sum * &square + 1.0 / (2 * k + 3) as f64);
    meaning::choose(&close, &(2.0 * &s * &square * sum - t * &s), &(log - t))
}
fn is_half(d: Dtype) -> bool {
    d.size() < 4
}

impl Special {
    /// `f` of operands of one shape and at least single precision; its result in the first operand's dtype, weak where `weak`.
    fn widely(x: &[Value], weak: bool, f: impl FnOnce(&[Value]) -> Value) -> Res<Value> {
        let shape = common_shape("special", &x.iter().map(Value::aval).collect::<Vec<_>>())?;
        let dtype = x[0].dtype();
        let wide = if is_half(dtype) { Dtype::F32 } else { dtype };
        let x: Values = x.iter().map(|v| stretched(&converted(v, wide, false), &shape)).collect();
        Ok(converted(&f(&x), dtype, weak))
    }
    fn meaning(&self, x: &[Value]) -> Res<Values> {
        let y = Special::widely(x, false, |x| match self.kind {
            Igamma => gamma::incomplete(&x[0], &x[1], false),
            Igammac => gamma::incomplete(&x[0], &x[1], true),
            IgammaGradA => gamma::slopes(&x[0], &x[1])[0].clone(),
            RandomGammaGrad => gamma::slopes(&x[0], &x[1])[1].clone(),
            Betainc => beta::incomplete(&x[0], &x[1], &x[2]),
            BetaincGradA => beta::slopes(&x[0], &x[1], &x[2])[0].clone(),
            BetaincGradB => beta::slopes(&x[0], &x[1], &x[2])[1].clone(),
            Zeta => zeta::zeta(&x[0], &x[1]),
        })?;
        Ok(values1(y))
    }
    fn with(&self, cx: &dyn Cx, kind: SpecialKind, x: &[Value]) -> Res<Value> {
        let _ = self;
        cx.bind1(Special { kind }, x)
    }
}

impl Rules for Special {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = self.kind.name();
        let n = if matches!(self.kind, Betainc | BetaincGradA | BetaincGradB) { 3 } else { 2 };
        if x.len() != n {
            return type_err(format!("{name} takes {n} operands, got {}", x.len()));
        }
        for (i, a) in x.iter().enumerate() {
            if !a.dtype.is_float() || a.tape > 0 {
                return type_err(format!(
                    "{name} does not accept dtype {} at position {i}. Accepted dtypes at position {i} are subtypes of floating.",
                    a.dtype.long()
                ));
            }
        }
        // JAX takes float16 beside bfloat16 here
        let halves = self.kind == RandomGammaGrad && x.iter().all(|a| is_half(a.dtype));
        if !halves && x.iter().any(|a| a.dtype != x[0].dtype) {
            let d: Vec<&str> = x.iter().map(|a| a.dtype.long()).collect();
            return type_err(format!("lax.{name} requires arguments to have the same dtypes, got {}.", d.join(", ")));
        }
        let weak = x.iter().all(|a| a.weak);
        Ok(smallvec![Aval { shape: common_shape(name, x)?, dtype: x[0].dtype, weak, ..Aval::scalar(x[0].dtype) }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind1(self.clone(), x)?;
        let (shape, weak) = (Dims::new(y.shape()), y.weak());
        let density = |f: &dyn Fn(&[Value]) -> Value| enter(cx.handle(), || catch(|| Special::widely(x, weak, f)));
        let mut dy = None;
        for (i, t) in dx.iter().enumerate() {
            let Some(t) = t else { continue };
            let slope = match (self.kind, i) {
                (Igamma | Igammac, 0) => self.with(cx, IgammaGradA, x)?,
                (Igamma | Igammac, _) => density(&|x| gamma::density(&x[0], &x[1]))?,
                (Betainc, 2) => density(&|x| beta::density(&x[0], &x[1], &x[2]))?,
                (Betainc, 0) => self.with(cx, BetaincGradA, x)?,
                (Betainc, _) => self.with(cx, BetaincGradB, x)?,
                (BetaincGradA, 2) => density(&|x| beta::density_slopes(&x[0], &x[1], &x[2])[0].clone())?,
                (BetaincGradB, 2) => density(&|x| beta::density_slopes(&x[0], &x[1], &x[2])[1].clone())?,
                // -x zeta(x + 1, q)
                (Zeta, 1) => {
                    let up = cx.add(&x[0], &crate::cx::lit(x[0].dtype(), 1.0))?;
                    let z = self.with(cx, Zeta, &[up, x[1].clone()])?;
                    cx.mul(&cx.neg(&x[0])?, &z)?
                }
                (IgammaGradA | RandomGammaGrad | BetaincGradA | BetaincGradB | Zeta, _) => {
                    let one: Tans = (0..x.len()).map(|j| dx[j].clone().filter(|_| j == i)).collect();
                    let part = meaning::tangents(&|x| self.meaning(x), cx, x, &one)?.remove(0);
                    let part = match part {
                        Some(t) => Some(enter(cx.handle(), || catch(|| Ok(converted(&t, y.dtype(), weak))))?),
                        None => None,
                    };
                    dy = cx.add_tan(dy, part)?;
                    continue;
                }
            };
            let t = cx.convert(t, y.dtype())?;
            let mut term = cx.mul(&t, &slope)?;
            if self.kind == Igammac {
                term = cx.neg(&term)?;
            }
            dy = cx.add_tan(dy, Some(cx.stretch(&term, &shape)?))?;
        }
        Ok((values1(y), smallvec![dy]))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear(self.kind.name())
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let (x, at) = align(cx, x, d)?;
        Ok((cx.bind(&self.clone().into(), &x)?, smallvec![Some(at)]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::pointwise(x, out)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        meaning::lower(b, x, &|x| self.meaning(x))
    }
}
