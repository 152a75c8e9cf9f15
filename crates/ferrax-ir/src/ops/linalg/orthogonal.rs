//! Reflections: qr, products of reflections, and reductions by them.
//!
//! ```text
//! qr                     a -> q, r (and order, with pivoting)      a = q r, or a[:, order] = q r
//! geqrf                  a -> a, taus                              r and, below its diagonal, the reflections whose product q is
//! householder_product    a, taus -> q                              the reflections below the diagonal of a, multiplied
//! ormqr                  a, taus, c -> q c                         or its adjoint, or from the right
//! hessenberg             a -> h, taus        tridiagonal    a -> a, d, e, taus
//! ```
//! Derivatives of the products: those of their compact form. Of qr: Walter, Lehmann and Lamour, Optimization Methods and Software 27 (2012); Roberts and Roberts, arXiv:2009.10071.
//! Of geqrf: those of q, and of its reflections as triangular factors of `q - 1` (Ballard et al., J. Parallel Distrib. Comput. 85 (2015)).
use super::factors::{TriangularSolve, no_derivative};
use super::*;
use crate::cx::Arg;
use crate::error::{no_jvp, not_linear, value_err};
use crate::factors::Factors;
use crate::op::{Avals, Rules};
use crate::ops::gather::take_along;
use crate::ops::{meaning, with_zeros, zero_jvp};
use crate::primitive;
use smallvec::smallvec;

primitive! {
    pub struct Qr = "qr" {
        full_matrices: bool,
        pivoting: bool,
    } always_none { use_magma = always }
}
primitive! {
    pub struct Geqrf = "geqrf" {}
}
primitive! {
    pub struct HouseholderProduct = "householder_product" {}
}
primitive! {
    pub struct Ormqr = "ormqr" {
        left: bool,
        /// The adjoint of q: its transpose, conjugated.
        transpose: bool,
    }
}
primitive! {
    pub struct Hessenberg = "hessenberg" {}
}
primitive! {
    pub struct Tridiagonal = "tridiagonal" {
        lower: bool,
    }
}

impl Qr {
    fn tangents(&self, y: &[Value], da: &Value) -> Res<Vec<Tan>> {
        let (q, r) = (&y[0], &y[1]);
        let [m, _] = sizes(q.shape());
        let [inner, n] = sizes(r.shape());
        let k = m.min(n);
        let da = match y.get(2) {
            Some(order) => {
                let shape = Dims::new(order.shape());
                let wide = shape.insert(shape.len() - 1, 1);
                let wide = emit(Reshape { new_sizes: wide }, std::slice::from_ref(order));
                let index = stretched(&wide, &Dims::new(da.shape()));
                take_along(&*crate::cx::current(), da, &index, da.rank() - 1)?
            }
            None => da.clone(),
        };
        let (q1, r1) = (block(q, (0, m), (0, k)), block(r, (0, k), (0, k)));
        // the first k columns decide q and the triangle
        let c = emit(TriangularSolve::default(), &[r1.clone(), block(&da, (0, m), (0, k))]);
        let s = mm(&adjoint(&q1), &c);
        let low = only(Pw::Gt, &s);
        let mut skew = &low - adjoint(&low);
        if s.dtype().is_complex() {
            // so that the diagonal of r stays real
            let d = only(Pw::Eq, &s);
            skew = skew + (&d - raised(&real(&d), &d));
        }
        let mut dq = mm(&q1, &(&skew - &s)) + &c;
        let mut dr = mm(&(&s - &skew), &r1);
        if n > k {
            let r2 = block(r, (0, k), (k, n));
            let rest = mm(&adjoint(&q1), &block(&da, (0, m), (k, n))) - mm(&mm(&adjoint(&q1), &dq), &r2);
            dr = beside(&dr, &rest);
        }
        if inner > k {
            // q stays unitary; a rotation of the other columns among themselves is not determined, and is taken as zero
            let q2 = block(q, (0, m), (k, inner));
            let rest = -mm(&q1, &adjoint(&mm(&adjoint(&q2), &dq)));
            dq = beside(&dq, &rest);
            dr = resized(&dr, inner, n);
        }
        let mut dy = vec![Some(dq), Some(dr)];
        dy.resize(y.len(), None);
        Ok(dy)
    }
}
impl Rules for Qr {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("qr takes 1 operand, got {}", x.len())) };
        accepts("qr", 0, a, true, 2)?;
        let [m, n] = sizes(&a.shape);
        let inner = if self.full_matrices { m } else { m.min(n) };
        let mut out: Avals = smallvec![with_tail(a, 2, &[m, inner]), with_tail(a, 2, &[inner, n])];
        if self.pivoting {
            out.push(with_tail(&a.with_dtype(Dtype::I32).strong(), 2, &[n]));
        }
        Ok(out)
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind(&self.clone().into(), x)?;
        let none: Tans = smallvec![None; y.len()];
        if dx[0].is_none() || y[0].shape().contains(&0) || y[1].shape().contains(&0) {
            return Ok((y, none));
        }
        let dy = tangents(cx, &y, x, dx, &|y, _, dx| match &dx[0] {
            Some(da) => self.tangents(y, da),
            None => Ok(vec![None; y.len()]),
        })?;
        Ok((y, dy))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("qr")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        let kind = Decomposition::Qr { full: self.full_matrices, pivoting: self.pivoting };
        Ok(lower(b, kind, x, 2, [m, n, 0], out))
    }
}

impl Geqrf {
    /// With V the vectors of the reflections and T that of [`Reflections`], the first columns of `q - 1` are `V U` for `U = -T V'` of V's
    /// first rows: factors without exchanges, whose tangents follow from those of q. The taus are the diagonal of -U.
    fn tangents(y: &[Value], da: &Value) -> Res<Vec<Tan>> {
        let (packed, taus) = (&y[0], &y[1]);
        let [m, n] = sizes(packed.shape());
        let k = m.min(n);
        let part = block(packed, (0, m), (0, k));
        let r = only(Pw::Le, &block(packed, (0, k), (0, n)));
        let all = Reflections::of(&part, taus);
        let dy = Qr { full_matrices: false, pivoting: false }.tangents(&[all.product(&part), r], da)?;
        let [Some(dq), Some(dr)] = &dy[..] else { return Ok(vec![None, None]) };
        let first = block(&all.v, (0, k), (0, k));
        let u = -mm(&all.t, &adjoint(&first));
        // an identity reflection has no row in U, and its vector, which is that of the identity, is
        // unchanged
        let size = f1(Pw::Abs, &diagonal(&u));
        let none = f2(Pw::Eq, &size, &fill(&size, 0.0));
        let there = emit(Select {}, &[none, fill(taus, 1.0), fill(taus, 0.0)]);
        let whole = &u + &only(Pw::Eq, &columns(&f2(Pw::Sub, &fill(taus, 1.0), &there), &u));
        let over = |x: &Value| emit(TriangularSolve::default(), &[whole.clone(), x.clone()]);
        let unit = TriangularSolve { left_side: true, lower: true, unit_diagonal: true, ..Default::default() };
        let x = emit(unit, &[first.clone(), block(dq, (0, k), (0, k))]);
        let low = only(Pw::Gt, &over(&x));
        let du = &x - &mm(&low, &u);
        let dtaus = -&there * diagonal(&du);
        let top = mm(&first, &low);
        let dv = match m > k {
            true => {
                let (rest, below) = (block(dq, (k, m), (0, k)), block(&all.v, (k, m), (0, k)));
                let rest = over(&(&rest - &mm(&below, &du)));
                emit(crate::ops::concatenate::Concatenate { dimension: top.rank() - 2 }, &[top, rest])
            }
            false => top,
        };
        let dv = only(Pw::Gt, &(&dv * &rows(&there, &dv)));
        let packed = resized(&dv, m, n) + only(Pw::Le, &resized(dr, m, n));
        Ok(vec![Some(packed), Some(dtaus)])
    }
}
impl Rules for Geqrf {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("geqrf takes 1 operand, got {}", x.len())) };
        accepts("geqrf", 0, a, true, 2)?;
        let [m, n] = sizes(&a.shape);
        Ok(smallvec![a.strong(), with_tail(&a.strong(), 2, &[m.min(n)])])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind(&self.clone().into(), x)?;
        if dx[0].is_none() || y[0].shape().contains(&0) {
            return Ok(with_zeros(y));
        }
        let dy = tangents(cx, &y, x, dx, &|y, _, dx| match &dx[0] {
            Some(da) => Self::tangents(y, da),
            None => Ok(vec![None; y.len()]),
        })?;
        Ok((y, dy))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("geqrf")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        Ok(lower(b, Decomposition::Geqrf, x, 2, [m, n, 0], out))
    }
}

/// A product of reflections `1 - tau v v'`: `1 - V T V'`, where T = (1 + D U)^-1 D, D has the taus
/// and U is the strict upper triangle of V'V. (Schreiber and Van Loan, SIAM J. Sci. Stat. Comput.
/// 10 (1989), without the division by taus, which may be zero.)
struct Reflections {
    v: Value,
    t: Value,
}
impl Reflections {
    fn of(a: &Value, taus: &Value) -> Self {
        let (m, k) = (sizes(a.shape())[0], taus.shape()[taus.rank() - 1]);
        let low = only(Pw::Gt, &block(a, (0, m), (0, k)));
        let v = &low + identity(&low);
        let inner = mm(&adjoint(&v), &v);
        let d = only(Pw::Eq, &columns(taus, &inner));
        let above = &columns(taus, &inner) * &only(Pw::Lt, &inner);
        let half = TriangularSolve { left_side: true, unit_diagonal: true, ..Default::default() };
        Reflections { t: emit(half, &[above, d]), v }
    }
    /// Their first columns, as many as `a` has.
    fn product(&self, a: &Value) -> Value {
        let ([_, n], [_, k]) = (sizes(a.shape()), sizes(self.v.shape()));
        let first = block(&self.v, (0, n), (0, k));
        identity(a) - mm(&mm(&self.v, &self.t), &adjoint(&first))
    }
    fn times(&self, c: &Value, left: bool, back: bool) -> Value {
        let t = if back { adjoint(&self.t) } else { self.t.clone() };
        let v = &self.v;
        match left {
            true => c - mm(&mm(v, &t), &mm(&adjoint(v), c)),
            false => c - mm(&mm(c, v), &mm(&t, &adjoint(v))),
        }
    }
}

impl Rules for HouseholderProduct {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = "householder_product";
        let [a, taus] = x else { return type_err(format!("{name} takes 2 operands, got {}", x.len())) };
        accepts(name, 0, a, true, 2)?;
        accepts(name, 1, taus, true, 1)?;
        let ([m, n], k) = (sizes(&a.shape), taus.shape[taus.rank() - 1]);
        if m < n {
            return value_err(format!(
                "The first argument to householder_product must have at least as many rows as columns, got shape {}",
                a.shape
            ));
        }
        if k > n {
            return value_err(
                "The second argument to householder_product must not have more rows than the minimum of the first argument's rows and columns.",
            );
        }
        alike(name, x, &[2, 1])?;
        Ok(smallvec![a.strong()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind(&self.clone().into(), x)?;
        if dx.iter().all(Option::is_none) {
            return Ok(with_zeros(y));
        }
        let dy = meaning::tangents(&|x| Ok(smallvec![Reflections::of(&x[0], &x[1]).product(&x[0])]), cx, x, dx)?;
        Ok((y, dy))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("householder_product")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let ([m, n], taus) = (sizes(&b.shape(x[0])), b.shape(x[1]));
        Ok(lower(b, Decomposition::HouseholderProduct, x, 2, [m, n, taus[taus.len() - 1]], out))
    }
}

impl Rules for Ormqr {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = "ormqr";
        let [a, taus, c] = x else { return type_err(format!("{name} takes 3 operands, got {}", x.len())) };
        accepts(name, 0, a, true, 2)?;
        accepts(name, 1, taus, true, 1)?;
        accepts(name, 2, c, true, 2)?;
        let ([rows, k], [m, n]) = (sizes(&a.shape), sizes(&c.shape));
        let (side, what) = if self.left { (m, "rows") } else { (n, "columns") };
        if rows != side {
            return value_err(format!(
                "ormqr with left={} expects c to have the same number of {what} as the Householder matrix a{}. Got a shape {} and c shape {}.",
                if self.left { "True" } else { "False" },
                if self.left { "" } else { " has rows" },
                a.shape,
                c.shape
            ));
        }
        let count = taus.shape[taus.rank() - 1];
        if count != k || k > rows {
            return value_err(format!(
                "ormqr expects as many reflections as the Householder matrix has columns, and no more than it has rows. Got a shape {} and taus shape {}.",
                a.shape, taus.shape
            ));
        }
        alike(name, x, &[2, 1, 2])?;
        Ok(smallvec![c.strong()])
    }
    /// It is linear in c, and has the tangents of the compact form in the reflections.
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind(&self.clone().into(), x)?;
        if dx[0].is_some() || dx[1].is_some() {
            let times = |x: &[Value]| Reflections::of(&x[0], &x[1]).times(&x[2], self.left, self.transpose);
            return Ok((y, meaning::tangents(&|x| Ok(smallvec![times(x)]), cx, x, dx)?));
        }
        let dy =
            dx[2].as_ref().map(|t| cx.bind1(self.clone(), &[x[0].clone(), x[1].clone(), t.clone()])).transpose()?;
        Ok((y, smallvec![dy]))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let (Some(a), Some(taus), Some(ct)) = (x[0].known(), x[1].known(), &ct[0]) else { return not_linear("ormqr") };
        // the transpose is the adjoint, conjugated
        let flip =
            |v: &Value| if v.dtype().is_complex() { cx.pw(Pw::Conj, std::slice::from_ref(v)) } else { Ok(v.clone()) };
        let back = Ormqr { transpose: !self.transpose, ..self.clone() };
        let y = cx.bind1(back, &[a.clone(), taus.clone(), flip(ct)?])?;
        Ok(smallvec![None, None, Some(flip(&y)?)])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let ([_, k], [m, n]) = (sizes(&b.shape(x[0])), sizes(&b.shape(x[2])));
        let kind = Decomposition::Multiply { left: self.left, adjoint: self.transpose };
        Ok(lower(b, kind, x, 2, [m, n, k], out))
    }
}

impl Rules for Hessenberg {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("hessenberg takes 1 operand, got {}", x.len())) };
        accepts("hessenberg", 0, a, true, 2)?;
        let n = square("hessenberg", a)?;
        Ok(smallvec![a.strong(), with_tail(&a.strong(), 2, &[n.saturating_sub(1)])])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        no_derivative(self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("hessenberg")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        Ok(lower(b, Decomposition::Hessenberg, x, 2, [m, n, 0], out))
    }
}

impl Rules for Tridiagonal {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("tridiagonal takes 1 operand, got {}", x.len())) };
        accepts("tridiagonal", 0, a, true, 2)?;
        let n = square("tridiagonal", a)?;
        let (a, e) = (a.strong(), n.saturating_sub(1));
        let real = a.with_dtype(a.dtype.real());
        let vectors = [with_tail(&real, 2, &[n]), with_tail(&real, 2, &[e]), with_tail(&a, 2, &[e])];
        Ok(std::iter::once(a).chain(vectors).collect())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        match dx[0] {
            None => zero_jvp(&self.clone().into(), cx, x),
            Some(_) => no_jvp("tridiagonal"),
        }
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("tridiagonal")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        Ok(lower(b, Decomposition::Tridiagonal { lower: self.lower }, x, 2, [m, n, 0], out))
    }
}
