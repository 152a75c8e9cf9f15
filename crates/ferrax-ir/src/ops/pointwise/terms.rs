//! Terms of derivatives: the slope of each operand, and the operations that the terms of the table use.
use super::lower::GAP_FAR;
use super::{Pointwise, Pw};
use crate::cx::{Cx, lit};
use crate::dtype::Dtype;
use crate::error::Res;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;

/// The inputs of a row's term.
pub struct At<'a> {
    pub cx: &'a dyn Cx,
    pub x: &'a [Value],
    pub y: &'a Value,
    pub n: i32,
}
type Term = fn(&At, &Value) -> Res<Value>;

pub enum Slope {
    /// The derivative is zero: the function is flat, or its values have no tangent.
    Flat,
    One,
    Minus,
    /// The function is linear in this operand: the term does not read it, and serves `transpose` too.
    Lin(Term),
    By(Term),
    /// JAX has no rule either.
    NoRule,
}

impl At<'_> {
    pub(super) fn f(&self, f: Pw, x: &[&Value]) -> Res<Value> {
        let x: Values = x.iter().map(|v| (*v).clone()).collect();
        self.cx.pw(f, &x)
    }
    pub(super) fn mul(&self, x: &Value, y: &Value) -> Res<Value> {
        self.cx.mul(x, y)
    }
    /// A constant in the operands' dtype.
    pub(super) fn k(&self, c: f64) -> Value {
        lit(self.x[0].dtype(), c)
    }
    pub(super) fn square(&self, x: &Value) -> Res<Value> {
        self.f(Pw::Square, &[x])
    }
    pub(super) fn ipow(&self, x: &Value, y: i32) -> Res<Value> {
        self.cx.bind1(Pointwise { f: Pw::IntegerPow, y }, std::slice::from_ref(x))
    }
    /// `t v / (x^2 + y^2)` for v = x or y, and 0 at the origin, where the angle is flat by definition.
    /// In units of the greater of the two, so that no square leaves the dtype's range.
    pub(super) fn over_squared_radius(&self, t: &Value, v: &Value) -> Res<Value> {
        let unit = if self.x[0].dtype().is_complex() {
            self.k(1.0)
        } else {
            let [x, y] = [0, 1].map(|k| self.f(Pw::Abs, &[&self.x[k]]));
            let m = self.f(Pw::StopGradient, &[&self.f(Pw::Max, &[&x?, &y?])?])?;
            self.select(&self.f(Pw::Eq, &[&m, &self.k(0.0)])?, &m, &self.k(1.0))?
        };
        let scaled = |v: &Value| self.f(Pw::Div, &[v, &unit]);
        let [x, y] = [0, 1].map(|k| self.square(&scaled(&self.x[k])?));
        let r2 = self.f(Pw::Add, &[&x?, &y?])?;
        let zero = self.f(Pw::Eq, &[&r2, &self.k(0.0)])?;
        let slope = self.f(Pw::Div, &[&scaled(v)?, &self.select(&zero, &r2, &self.k(1.0))?])?;
        self.mul(t, &scaled(&slope)?)
    }
    /// `exact` as the value, with the derivative of `formula`: where the formula cancels, and its
    /// derivative does not.
    fn exactly(&self, formula: &Value, exact: &Value) -> Res<Value> {
        let error = self.f(Pw::Sub, &[exact, formula])?;
        self.f(Pw::Add, &[formula, &self.f(Pw::StopGradient, &[&error])?])
    }
    /// 1 - x^2, with the slope -2 x: of the two factors one is exact near 1.
    pub(super) fn one_less_square(&self) -> Res<Value> {
        let (x, one) = (&self.x[0], &self.k(1.0));
        let factors = self.mul(&self.f(Pw::Sub, &[one, x])?, &self.f(Pw::Add, &[one, x])?)?;
        if x.dtype().is_complex() {
            return Ok(factors);
        }
        self.exactly(&self.f(Pw::Sub, &[one, &self.square(x)?])?, &factors)
    }
    /// 1 / sqrt(x^2 + 1); of a square that overflows, 1 / |x|.
    pub(super) fn inverse_radius(&self) -> Res<Value> {
        let (x, one) = (&self.x[0], &self.k(1.0));
        let r = self.f(Pw::Rsqrt, &[&self.f(Pw::Add, &[&self.square(x)?, one])?])?;
        if x.dtype().is_complex() {
            return Ok(r);
        }
        let size = self.f(Pw::Abs, &[x])?;
        let far = if x.dtype() == Dtype::F16 { 128.0 } else { 1e9 };
        let far = self.f(Pw::Gt, &[&size, &self.k(far)])?;
        let inverse = self.f(Pw::Div, &[one, &size])?;
        self.exactly(&r, &self.select(&far, &r, &inverse)?)
    }
    /// i1e(x) / x; below 1 by its series, exp(-|x|) sum (x^2/4)^k / (2 k! (k+1)!), which has its derivatives at 0.
    pub(super) fn bessel_i1e_over_x(&self) -> Res<Value> {
        let x = &self.x[0];
        let size = self.f(Pw::Abs, &[x])?;
        let big = self.f(Pw::Gt, &[&size, &self.k(1.0)])?;
        let far = self.select(&big, &self.k(1.0), x)?;
        let ratio = self.f(Pw::Div, &[&self.f(Pw::BesselI1e, &[&far])?, &far])?;
        let near = self.select(&big, x, &self.k(0.0))?;
        let quarter = self.mul(&self.k(0.25), &self.square(&near)?)?;
        let (mut sum, mut c) = (self.k(0.0), vec![0.5]);
        let terms = if x.dtype() == Dtype::F64 { 10 } else { 5 };
        (1..terms).for_each(|k| c.push(c[k - 1] / (k * (k + 1)) as f64));
        for c in c.iter().rev() {
            sum = self.f(Pw::Add, &[&self.mul(&sum, &quarter)?, &self.k(*c)])?;
        }
        let damped = self.mul(&sum, &self.f(Pw::Exp, &[&self.cx.neg(&size)?])?)?;
        self.select(&big, &damped, &ratio)
    }
    /// The derivative of y = i0e(x) - |i1e(x)|: sign(x) (i1e(x) / x - 2 y), and above 8, where that cancels, of y = p(u) / |x|^(3/2) with
    /// u = 16 / |x| - 1, p being a Chebyshev series.
    pub(super) fn bessel_gap_slope(&self) -> Res<Value> {
        let (x, y) = (&self.x[0], self.y);
        let sign = self.f(Pw::Sign, &[x])?;
        let near = self.f(Pw::Sub, &[&self.bessel_i1e_over_x()?, &self.mul(&self.k(2.0), y)?])?;
        let size = self.f(Pw::Abs, &[x])?;
        let far = self.f(Pw::Gt, &[&size, &self.k(8.0)])?;
        let size = self.select(&far, &self.k(8.0), &size)?;
        let u = self.f(Pw::Sub, &[&self.f(Pw::Div, &[&self.k(16.0), &size])?, &self.k(1.0)])?;
        let used = if x.dtype() == Dtype::F64 { GAP_FAR.len() } else { 8 };
        let bend = self.chebyshev_slope(&u, &GAP_FAR[..used])?;
        let root = self.f(Pw::Sqrt, &[&size])?;
        let bend = self.f(Pw::Div, &[&self.mul(&self.k(16.0), &bend)?, &self.mul(&self.mul(&size, &size)?, &root)?])?;
        let above = self.f(Pw::Add, &[&self.mul(&self.k(1.5), y)?, &bend])?;
        let above = self.cx.neg(&self.f(Pw::Div, &[&above, &size])?)?;
        self.mul(&sign, &self.select(&far, &near, &above)?)
    }
    /// The derivative of a Chebyshev series at t, by Clenshaw's recurrence.
    fn chebyshev_slope(&self, t: &Value, c: &[f64]) -> Res<Value> {
        let mut d = vec![0.0; c.len() + 1];
        for k in (1..c.len()).rev() {
            d[k - 1] = d[k + 1] + 2.0 * k as f64 * c[k];
        }
        d[0] /= 2.0;
        let twice = self.f(Pw::Add, &[t, t])?;
        let (mut b1, mut b2) = (self.k(0.0), self.k(0.0));
        for c in d[1..].iter().rev() {
            let p = self.f(Pw::Sub, &[&self.mul(&twice, &b1)?, &b2])?;
            (b1, b2) = (self.f(Pw::Add, &[&p, &self.k(*c)])?, b1);
        }
        let p = self.f(Pw::Sub, &[&self.mul(t, &b1)?, &b2])?;
        self.f(Pw::Add, &[&p, &self.k(d[0])])
    }
    pub(super) fn select(&self, p: &Value, on_false: &Value, on_true: &Value) -> Res<Value> {
        self.cx.select(p, on_false, on_true)
    }
    /// t * c * exp(sign * v^2)
    pub(super) fn gauss(&self, t: &Value, v: &Value, negate: bool, c: f64) -> Res<Value> {
        let mut e = self.square(v)?;
        if negate {
            e = self.cx.neg(&e)?;
        }
        let e = self.f(Pw::Exp, &[&e])?;
        let te = self.mul(t, &e)?;
        self.mul(&self.k(c), &te)
    }
    /// The share of max or min that goes to operand `me`: all, a half at a tie, nothing. A selection, not a product, so that a zero share
    /// stays zero.
    pub(super) fn share(&self, t: &Value, me: usize) -> Res<Value> {
        let shape = Dims::new(self.y.shape());
        let full = |v: &Value| if v.rank() == 0 { Ok(v.clone()) } else { self.cx.stretch(v, &shape) };
        let mine = self.f(Pw::Eq, &[&self.x[me], self.y])?;
        let its = self.f(Pw::Eq, &[&self.x[1 - me], self.y])?;
        let den = self.select(&its, &self.k(1.0), &self.k(2.0))?;
        let part = full(&self.f(Pw::Div, &[t, &den])?)?;
        self.select(&mine, &self.k(0.0), &part)
    }
}
