//! cumsum, cumprod, cummax, cummin, cumlogsumexp: running combinations along `axis`, from its end where `reverse`. numpy: the same.
//!
//! All but cumsum differentiate by a parallel prefix sum: neighbours are combined in pairs, the pairs are scanned, and each pair before an
//! element of even position is combined with that element. Products with zeros need no division that way. The order is that of JAX's
//! `associative_scan`, so that equal extremes share a slope as they do there.
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
    /// Elements `first`, `first + step` .. of `x`, up to `end`, counted in the direction of the scan.
    fn every(&self, cx: &dyn Cx, x: &Value, first: usize, end: usize, step: usize) -> Res<Value> {
        let shape = Dims::new(x.shape());
        let (axis, n) = (self.axis, shape[self.axis]);
        let mut start_indices: Dims = shape.iter().map(|_| 0).collect();
        let (mut limit_indices, mut strides) = (shape.clone(), shape.iter().map(|_| 1).collect::<Dims>());
        let last = first + (end - first).div_ceil(step).max(1) * step - step;
        let (from, to) = if self.reverse { (n - 1 - last, n - first) } else { (first, last + 1) };
        (start_indices[axis], limit_indices[axis], strides[axis]) = (from, to, step);
        cx.bind1(Slice { limit_indices, start_indices, strides: Some(strides) }, std::slice::from_ref(x))
    }
    /// An array of `n` elements along the axis with those of `x` at `first`, `first + 2` .., counted in the direction of the scan, and zeros.
    fn spread(&self, cx: &dyn Cx, x: &Value, first: usize, n: usize) -> Res<Value> {
        let rest = n + 1 - first - 2 * x.shape()[self.axis];
        let (lo, hi) = if self.reverse { (rest, first) } else { (first, rest) };
        let along = |k| if k == self.axis { (lo as i64, hi as i64, 1) } else { (0, 0, 0) };
        let padding_config = (0..x.shape().len()).map(along).collect();
        cx.bind1(Pad { padding_config }, &[x.clone(), lit(x.dtype(), 0.0)])
    }
    /// The running combination of `x` and its tangent.
    fn scanned(&self, cx: &dyn Cx, x: &[Value; 2]) -> Res<[Value; 2]> {
        let n = x[0].shape()[self.axis];
        if n < 2 {
            return Ok(x.clone());
        }
        let every = |x: &[Value; 2], first, end, step| -> Res<[Value; 2]> {
            Ok([self.every(cx, &x[0], first, end, step)?, self.every(cx, &x[1], first, end, step)?])
        };
        let odd = self.scanned(cx, &self.combine(cx, &every(x, 0, n - 1, 2)?, &every(x, 1, n, 2)?)?)?;
        let first = every(x, 0, 1, 1)?;
        let even = match n {
            2 => None,
            _ => Some(self.combine(cx, &every(&odd, 0, (n - 1) / 2, 1)?, &every(x, 2, n, 2)?)?),
        };
        let joined = |k: usize| -> Res<Value> {
            let mut y = cx.add(&self.spread(cx, &first[k], 0, n)?, &self.spread(cx, &odd[k], 1, n)?)?;
            if let Some(even) = &even {
                y = cx.add(&y, &self.spread(cx, &even[k], 2, n)?)?;
            }
            Ok(y)
        };
        Ok([joined(0)?, joined(1)?])
    }
    /// The combination of the accumulated value with the current one, and its tangent.
    fn combine(&self, cx: &dyn Cx, [l, dl]: &[Value; 2], [r, dr]: &[Value; 2]) -> Res<[Value; 2]> {
        Ok(match self.kind {
            CumulativeKind::Sum => [cx.add(l, r)?, cx.add(dl, dr)?],
            CumulativeKind::Prod => {
                let dy = cx.add(&cx.mul(dl, r)?, &cx.mul(l, dr)?)?;
                [cx.mul(l, r)?, dy]
            }
            CumulativeKind::Max | CumulativeKind::Min => {
                let f = if self.kind == CumulativeKind::Max { Pw::Max } else { Pw::Min };
                let y = cx.pw2(f, l, r)?;
                let half = cx.mul(&lit(dl.dtype(), 0.5), &cx.add(dl, dr)?)?;
                let (left, right) = (cx.pw2(Pw::Eq, l, &y)?, cx.pw2(Pw::Eq, r, &y)?);
                let tied = cx.pw2(Pw::And, &left, &right)?;
                let one = cx.select(&left, dr, dl)?;
                let dy = cx.select(&tied, &one, &half)?;
                [y, dy]
            }
            CumulativeKind::LogSumExp => {
                let LogSumExp { y, s, el, er, infinite } = logsumexp(cx, l, r)?;
                let dy = cx.add(&cx.mul(dl, &el)?, &cx.mul(dr, &er)?)?;
                // if all elements are -inf, flat; where some are inf, 1 for each of them
                let nothing = cx.pw2(Pw::Eq, &s, &lit(s.dtype(), 0.0))?;
                let whole = infinite.map_or(Ok(nothing.clone()), |i| cx.pw2(Pw::Or, &nothing, &i))?;
                let one = cx.stretch(&lit(s.dtype(), 1.0), &Dims::new(s.shape()))?;
                let dy = cx.div(&dy, &cx.select(&whole, &s, &one)?)?;
                [y, dy]
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
            CumulativeKind::LogSumExp => logsumexp(cx, l, r).map(|c| c.y),
        }
    }
    /// Whether each combination rounds floats.
    fn rounds(&self) -> bool {
        !matches!(self.kind, CumulativeKind::Max | CumulativeKind::Min)
    }
}

/// y = m + log(s), s = e^(l - m) + e^(r - m), these two terms, and for reals where m is infinite: there the terms are 1 for what is infinite, else 0.
struct LogSumExp {
    y: Value,
    s: Value,
    el: Value,
    er: Value,
    infinite: Option<Value>,
}

fn logsumexp(cx: &dyn Cx, l: &Value, r: &Value) -> Res<LogSumExp> {
    let real =
        |v: &Value| if v.dtype().is_complex() { cx.pw(Pw::Real, std::slice::from_ref(v)) } else { Ok(v.clone()) };
    let most = cx.pw2(Pw::Max, &real(l)?, &real(r)?)?;
    let finite = cx.pw(Pw::IsFinite, std::slice::from_ref(&most))?;
    let mut m = cx.select(&finite, &cx.zeros(&most.aval())?, &most)?;
    let is_top = |v: &Value| cx.pw2(Pw::Eq, v, &lit(v.dtype(), f64::INFINITY));
    let infinite = if l.dtype().is_complex() {
        m = cx.pw2(Pw::Complex, &m, &cx.zeros(&m.aval())?)?;
        None
    } else {
        Some(is_top(&most)?)
    };
    let e = |v: &Value| {
        let mut power = cx.sub(v, &m)?;
        if let Some(infinite) = &infinite {
            let (zero, none) = (lit(v.dtype(), 0.0), lit(v.dtype(), f64::NEG_INFINITY));
            let shape = Dims::new(v.shape());
            let share = cx.select(&is_top(v)?, &cx.stretch(&none, &shape)?, &cx.stretch(&zero, &shape)?)?;
            power = cx.select(infinite, &power, &share)?;
        }
        cx.pw(Pw::Exp, &[power])
    };
    let (el, er) = (e(l)?, e(r)?);
    let s = cx.add(&el, &er)?;
    let m = infinite.as_ref().map_or(Ok(m.clone()), |i| cx.select(i, &m, &most))?;
    let y = cx.add(&cx.pw(Pw::Log, std::slice::from_ref(&s))?, &m)?;
    Ok(LogSumExp { y, s, el, er, infinite })
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
        let [_, t] = self.scanned(cx, &[x[0].clone(), dx.clone()])?;
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
