//! cumsum, cumprod, cummax, cummin, cumlogsumexp: running combinations along `axis`, from its end where `reverse`. numpy: the same.
//!
//! All but cumsum differentiate by the doubling scan: after the step of width s, entry i holds the combination, and the tangent, of the
//! 2 s elements that end at i. Products with zeros need no division that way.
use super::linear_jvp;
use super::pad::Pad;
use super::pointwise::Pw;
use super::pointwise::lower::{logaddexp, lower};
use super::slice::Slice;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int, lit, values1};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err, value_err};
use crate::factors::{Factors, Shared};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::param::Member;
use crate::parts::{Along, Here};
use crate::primitive;
use crate::support::{Selector, Support, Supports, Within};
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::routine::{CumulativeKind, Routine};
use ferrax_kernel::{DType, Dims};
use smallvec::smallvec;

impl Member for CumulativeKind {
    const ALL: &'static [(CumulativeKind, &'static str)] = &[
        (CumulativeKind::Sum, "cumsum"),
        (CumulativeKind::Prod, "cumprod"),
        (CumulativeKind::Max, "cummax"),
        (CumulativeKind::Min, "cummin"),
        (CumulativeKind::LogSumExp, "cumlogsumexp"),
    ];
}

primitive! {
    pub struct Cumulative = kind: CumulativeKind {
        axis: usize,
        reverse: bool,
    }
}

impl Cumulative {
    /// Entry i is entry i - s of x (i + s in reverse), and `fill` where there is none.
    fn shifted(&self, cx: &dyn Cx, x: &Value, s: usize, fill: f64) -> Res<Value> {
        let shape = Dims::new(x.shape());
        let n = shape[self.axis];
        let mut start_indices: Dims = shape.iter().map(|_| 0).collect();
        let mut limit_indices = shape.clone();
        let mut config: Vec<(i64, i64, i64)> = vec![(0, 0, 0); shape.len()];
        if self.reverse {
            start_indices[self.axis] = s;
            config[self.axis].1 = s as i64;
        } else {
            limit_indices[self.axis] = n - s;
            config[self.axis].0 = s as i64;
        }
        let part = cx.bind1(Slice { limit_indices, start_indices, strides: None }, std::slice::from_ref(x))?;
        cx.bind1(Pad { padding_config: config.into_iter().collect() }, &[part, lit(x.dtype(), fill)])
    }
    /// The combination of the accumulated value with the current one, and its tangent.
    fn combine(&self, cx: &dyn Cx, l: (&Value, &Value), r: (&Value, &Value)) -> Res<(Value, Value)> {
        Ok(match self.kind {
            CumulativeKind::Sum => (cx.add(l.0, r.0)?, cx.add(l.1, r.1)?),
            CumulativeKind::Prod => {
                let dy = cx.add(&cx.mul(l.1, r.0)?, &cx.mul(l.0, r.1)?)?;
                (cx.mul(l.0, r.0)?, dy)
            }
            CumulativeKind::Max | CumulativeKind::Min => {
                let f = if self.kind == CumulativeKind::Max { Pw::Max } else { Pw::Min };
                let y = cx.pw2(f, l.0, r.0)?;
                let half = cx.mul(&lit(l.1.dtype(), 0.5), &cx.add(l.1, r.1)?)?;
                let (left, right) = (cx.pw2(Pw::Eq, l.0, &y)?, cx.pw2(Pw::Eq, r.0, &y)?);
                let tied = cx.pw2(Pw::And, &left, &right)?;
                let one = cx.select(&left, r.1, l.1)?;
                (y, cx.select(&tied, &one, &half)?)
            }
            CumulativeKind::LogSumExp => {
                let [y, s, el, er] = logsumexp(cx, l.0, r.0)?;
                let dy = cx.add(&cx.mul(l.1, &el)?, &cx.mul(r.1, &er)?)?;
                // if all elements are -inf, flat
                let nothing = cx.pw2(Pw::Eq, &s, &crate::cx::lit(s.dtype(), 0.0))?;
                let one = cx.stretch(&crate::cx::lit(s.dtype(), 1.0), &Dims::new(s.shape()))?;
                (y, cx.div(&dy, &cx.select(&nothing, &s, &one)?)?)
            }
        })
    }
    /// Without tangents.
    fn combined(&self, cx: &dyn Cx, l: &Value, r: &Value) -> Res<Value> {
        match self.kind {
            CumulativeKind::Sum => cx.add(l, r),
            CumulativeKind::Prod => cx.mul(l, r),
            CumulativeKind::Max => cx.pw2(Pw::Max, l, r),
            CumulativeKind::Min => cx.pw2(Pw::Min, l, r),
            CumulativeKind::LogSumExp => logsumexp(cx, l, r).map(|[y, ..]| y),
        }
    }
    /// Whether each combination rounds floats.
    fn rounds(&self) -> bool {
        !matches!(self.kind, CumulativeKind::Max | CumulativeKind::Min)
    }
    fn identity(&self) -> f64 {
        match self.kind {
            CumulativeKind::Sum => 0.0,
            CumulativeKind::Prod => 1.0,
            CumulativeKind::Max | CumulativeKind::LogSumExp => f64::NEG_INFINITY,
            CumulativeKind::Min => f64::INFINITY,
        }
    }
}

/// y = m + log(s), s = e^(l - m) + e^(r - m), and these two terms.
fn logsumexp(cx: &dyn Cx, l: &Value, r: &Value) -> Res<[Value; 4]> {
    let real =
        |v: &Value| if v.dtype().is_complex() { cx.pw(Pw::Real, std::slice::from_ref(v)) } else { Ok(v.clone()) };
    let m = cx.pw2(Pw::Max, &real(l)?, &real(r)?)?;
    let finite = cx.pw(Pw::IsFinite, std::slice::from_ref(&m))?;
    let mut m = cx.select(&finite, &cx.zeros(&m.aval())?, &m)?;
    if l.dtype().is_complex() {
        m = cx.pw2(Pw::Complex, &m, &cx.zeros(&m.aval())?)?;
    }
    let e = |v: &Value| cx.pw(Pw::Exp, &[cx.sub(v, &m)?]);
    let (el, er) = (e(l)?, e(r)?);
    let s = cx.add(&el, &er)?;
    let y = cx.add(&cx.pw(Pw::Log, std::slice::from_ref(&s))?, &m)?;
    Ok([y, s, el, er])
}

impl Rules for Cumulative {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = self.kind.name();
        let [a] = x else { return type_err(format!("{name} takes 1 operand, got {}", x.len())) };
        if self.axis >= a.rank() {
            return value_err(format!("axis {} is out of bounds for array of shape {}", self.axis, a.shape));
        }
        let (accepted, words) = match self.kind {
            CumulativeKind::LogSumExp => (a.dtype.is_inexact(), "floating, complexfloating"),
            _ => (a.dtype.is_int() || a.dtype.is_inexact(), "number"),
        };
        if !accepted {
            return type_err(format!(
                "{name} does not accept dtype {}. Accepted dtypes are subtypes of {words}.",
                a.dtype.long()
            ));
        }
        Ok(smallvec![a.clone()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let (false, Some(dx)) = (self.kind == CumulativeKind::Sum, &dx[0]) else {
            return linear_jvp(&self.clone().into(), cx, x, dx);
        };
        let y = cx.bind1(self.clone(), x)?;
        let n = x[0].shape()[self.axis];
        let (mut v, mut t) = (x[0].clone(), dx.clone());
        let mut s = 1;
        while s < n {
            let l = (self.shifted(cx, &v, s, self.identity())?, self.shifted(cx, &t, s, 0.0)?);
            (v, t) = self.combine(cx, (&l.0, &l.1), (&v, &t))?;
            s *= 2;
        }
        Ok((values1(y), smallvec![Some(t)]))
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        if self.kind != CumulativeKind::Sum {
            return not_linear(self.kind.name());
        }
        let back = Cumulative { reverse: !self.reverse, ..self.clone() };
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(back, std::slice::from_ref(ct))).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let axis = self.axis + d[0].is_some_and(|d| self.axis >= d) as usize;
        Ok((cx.bind(&Cumulative { axis, ..self.clone() }.into(), x)?, d.into()))
    }
    /// A sum is zero where no element before it differs from zero.
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let (CumulativeKind::Sum, Some(s)) = (self.kind, &s[0]) else { return Ok(None) };
        let (stays, applied) = s.split_by(&[self.axis]);
        let y = cx.bind1(self.clone(), &[applied.apply(cx, &x[0])?])?;
        if applied.is_everywhere() {
            return Ok(Some((values1(y), smallvec![Some(stays)])));
        }
        let (shape, most) = (Dims::new(x[0].shape()), Cumulative { kind: CumulativeKind::Max, ..self.clone() });
        let met = Selector::mask(&shape.clone(), move |cx| {
            let mask = cx.convert(&cx.stretch(&applied.mask(cx, &shape)?, &shape)?, Dtype::I32)?;
            cx.pw2(Pw::Gt, &cx.bind1(most.clone(), &[mask])?, &int(Dtype::I32, 0))
        });
        Ok(Some((values1(y), smallvec![Some(stays.and(&Support::masked_already(met)))])))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::along(x, out, |d| d != self.axis);
        f.shared = Some(Shared { dim: self.axis, cut: true, last: false });
        f
    }
    /// Narrow floats are rounded once, after all combinations.
    fn shared(&self, here: &Here, x: &[Value], axes: &[u8]) -> Res<Option<Values>> {
        let (cx, d) = (here.cx, x[0].dtype());
        let x = if self.rounds() && d.is_narrow_float() { cx.convert(&x[0], Dtype::F32)? } else { x[0].clone() };
        let own = cx.bind1(self.clone(), &[x])?;
        let along = Along { op: &self.clone().into(), dim: self.axis, reverse: self.reverse };
        let y = here.after_others(&along, &own, axes, &|l, r| self.combined(cx, l, r))?;
        Ok(Some(values1(cx.convert(&y, d)?)))
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        t.refuse_along(self.axis, "Input should be unsharded over the axis being reduced")?;
        t.by_factors(&self.factors(t.x, t.out))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let shape = &out[0].shape;
        let (outer, n) = (shape[..self.axis].iter().product(), shape[self.axis]);
        let inner = shape[self.axis + 1..].iter().product();
        let one = |b: &mut Graph, v: TensorId| {
            let r = Routine::Cumulative { kind: self.kind, outer, n, inner, reverse: self.reverse, dtype: b.dtype(v) };
            b.routine(r, &[v], &[shape.clone()])[0]
        };
        Ok(smallvec![match b.parts(x[0]) {
            None if b.dtype(x[0]) == DType::Bool => {
                return type_err(format!("{} does not accept dtype bool.", self.kind.name()));
            }
            None => one(b, x[0]),
            Some((p, q)) => match self.kind {
                CumulativeKind::Sum => {
                    let (p, q) = (one(b, p), one(b, q));
                    b.pair(p, q)
                }
                CumulativeKind::Prod => self.doubled(b, x[0], &|b, l, r| lower(Pw::Mul, 0, b, &[l, r]))?,
                CumulativeKind::Max => self.doubled(b, x[0], &|b, l, r| lower(Pw::Max, 0, b, &[l, r]))?,
                CumulativeKind::Min => self.doubled(b, x[0], &|b, l, r| lower(Pw::Min, 0, b, &[l, r]))?,
                CumulativeKind::LogSumExp => {
                    // with nothing: the principal value of the first element
                    let none = b.scalar(p, f64::NEG_INFINITY);
                    let zero = b.scalar(p, 0.0);
                    let none = b.pair(none, zero);
                    let first = logaddexp(b, x[0], none);
                    self.doubled(b, first, &|b, l, r| Ok(logaddexp(b, l, r)))?
                }
            },
        }])
    }
}
impl Cumulative {
    /// For pairs, whose parts cannot be accumulated separately: combines each element with the one
    /// 1, 2, 4 .. before it.
    fn doubled(
        &self,
        b: &mut Graph,
        x: TensorId,
        combine: &dyn Fn(&mut Graph, TensorId, TensorId) -> Res<TensorId>,
    ) -> Res<TensorId> {
        let whole = b.shape(x);
        let (axis, n) = (self.axis, whole[self.axis]);
        let part = |b: &mut Graph, x: TensorId, from: usize, len: usize| {
            let (mut start, mut shape) = (vec![0; whole.len()], whole.clone());
            (start[axis], shape[axis]) = (from, len);
            b.slice(x, &start, &vec![1; whole.len()], shape)
        };
        let mut x = if self.reverse { b.reverse(x, &[axis]) } else { x };
        let mut step = 1;
        while step < n {
            let (first, before, rest) = (part(b, x, 0, step), part(b, x, 0, n - step), part(b, x, step, n - step));
            let y = combine(b, before, rest)?;
            x = b.concatenate(&[first, y], axis);
            step *= 2;
        }
        Ok(if self.reverse { b.reverse(x, &[axis]) } else { x })
    }
}
