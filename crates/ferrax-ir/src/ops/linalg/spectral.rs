//! Eigenvalues, singular values and Schur forms.
//!
//! ```text
//! eigh    a -> v, w             a v = v diag(w), w ascending; of one triangle of a
//! eig     a -> w, vl, vr        a vr = vr diag(w), vl' a = diag(w) vl'
//! svd     a -> s, u, vt         a = u diag(s) vt, s descending
//! schur   a -> t, z             a = z t z', t triangular (real: but for blocks of two rows)
//! ```
//! Derivatives: Giles, An extended collection of matrix derivative results (2008); of svd as Townsend, Differentiating the singular value
//! decomposition (2016), with the skew and the symmetric part of `u' da v` apart: the skew one divides by sums of singular values, which
//! equal ones do not make infinite. Where values coincide, vectors have no derivative within their space, and it is taken as zero;
//! functions of the space alone are differentiated correctly.
use super::factors::no_derivative;
use super::*;
use crate::cx::Arg;
use crate::error::{not_linear, value_err};
use crate::factors::Factors;
use crate::op::{Avals, Rules};
use crate::primitive;
use smallvec::smallvec;

primitive! {
    pub struct Eigh = "eigh" {
        lower: bool,
        /// Has no effect, and is kept to be shown: values are always sorted.
        sort_eigenvalues: bool,
        /// From the first to before the second.
        subset_by_index: Option<(usize, usize)>,
    } always_none { algorithm = always }
}
primitive! {
    pub struct Eig = "eig" {
        compute_left_eigenvectors: bool,
        compute_right_eigenvectors: bool,
        /// Has no effect, and is kept to be shown: eigenvectors have derivatives.
        enable_eigvec_derivs: bool,
    } always_none { implementation = always }
}
primitive! {
    pub struct Svd = "svd" {
        compute_uv: bool,
        full_matrices: bool,
        subset_by_index: Option<(usize, usize)>,
    } always_none { algorithm = always }
}
primitive! {
    pub struct Schur = "schur" {
        compute_schur_vectors: bool,
        sort_eig_vals: bool,
    } always_none { select_callable = always }
}

fn subset(name: &str, s: Option<(usize, usize)>, n: usize) -> Res<usize> {
    match s {
        None => Ok(n),
        Some((from, to)) if from <= to && to <= n => Ok(to - from),
        Some((from, to)) => {
            value_err(format!("{name}: subset_by_index=({from}, {to}) is not a range within the {n} values"))
        }
    }
}
/// Along the last axis.
fn part(b: &mut Graph, x: TensorId, axis_back: usize, s: Option<(usize, usize)>) -> TensorId {
    let Some((from, to)) = s else { return x };
    let mut shape = b.shape(x);
    let axis = shape.len() - 1 - axis_back;
    let (mut start, stride) = (vec![0; shape.len()], vec![1; shape.len()]);
    (start[axis], shape[axis]) = (from, to - from);
    b.slice(x, &start, &stride, shape)
}
/// A matrix of `values[j] - values[i]`.
fn gaps(values: &Value, like: &Value) -> Value {
    rows(values, like) - columns(values, like)
}

impl Eigh {
    fn whole(&self) -> Eigh {
        Eigh { subset_by_index: None, ..self.clone() }
    }
}
impl Rules for Eigh {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("eigh takes 1 operand, got {}", x.len())) };
        accepts("eigh", 0, a, true, 2)?;
        let n = square("eigh", a)?;
        let k = subset("eigh", self.subset_by_index, n)?;
        let w = a.with_dtype(a.dtype.real());
        Ok(smallvec![with_tail(a, 2, &[n, k]), with_tail(&w, 2, &[k])])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        if dx[0].is_some() && self.subset_by_index.is_some() {
            // those that are left out count
            let (y, dy) = self.whole().jvp(cx, x, dx)?;
            let y = self.chosen(cx, &y)?;
            let dy: Values = dy.into_iter().flatten().collect();
            return Ok((y, self.chosen(cx, &dy)?.into_iter().map(Some).collect()));
        }
        jvp(&self.clone().into(), cx, x, dx, &|y, _, dx| {
            let (v, w) = (&y[0], &y[1]);
            let Some(da) = &dx[0] else { return Ok(vec![None, None]) };
            let inner = mm(&mm(&adjoint(v), &hermitian(da, self.lower)), v);
            let f = gaps(w, &real(&inner));
            let f = reciprocal(&f, &rounding(w, &f, units(w)));
            let dv = mm(v, &(&inner * raised(&f, &inner)));
            Ok(vec![Some(dv), Some(real(&diagonal(&inner)))])
        })
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("eigh")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        let whole = [with_tail(&out[0], 2, &[n, n]), with_tail(&out[1], 1, &[n])];
        let y = lower(b, Decomposition::Eigh { lower: self.lower }, x, 2, [m, n, 0], &whole);
        Ok(y.into_iter().map(|y| part(b, y, 0, self.subset_by_index)).collect())
    }
}
impl Eigh {
    /// The requested ones among all vectors and values.
    fn chosen(&self, cx: &dyn Cx, y: &[Value]) -> Res<Values> {
        let Some((from, to)) = self.subset_by_index else { return Ok(y.into()) };
        y.iter().map(|v| along_last(cx, v, from, to)).collect()
    }
}
fn along_last(cx: &dyn Cx, v: &Value, from: usize, to: usize) -> Res<Value> {
    let mut limit = Dims::new(v.shape());
    let mut start: Dims = limit.iter().map(|_| 0).collect();
    let last = limit.len() - 1;
    (start[last], limit[last]) = (from, to);
    cx.bind1(Slice { start_indices: start, limit_indices: limit, strides: None }, std::slice::from_ref(v))
}

impl Eig {
    /// The tangent of unit eigenvectors `v` of values `w`, where `inner` is `v^-1 da v`; of each, orthogonal to itself.
    fn vectors(v: &Value, w: &Value, inner: &Value) -> Value {
        let gap = gaps(w, inner);
        // schur forms are computed in double precision
        let n = w.shape()[w.rank() - 1] as f64;
        let least = rounding(w, &real(&gap), if w.dtype().real() == Dtype::F32 { 2.0 } else { 8.0 + 2.0 * n });
        let f = {
            let none = f2(Pw::Le, &f1(Pw::Abs, &gap), &least);
            let safe = emit(Select {}, &[none.clone(), gap.clone(), fill(&gap, 1.0)]);
            emit(Select {}, &[none, f2(Pw::Div, &fill(&gap, 1.0), &safe), fill(&gap, 0.0)])
        };
        let moved = mm(v, &(inner * f));
        let along = emit(Reduce { kind: Monoid::Sum, axes: Dims::new(&[v.rank() - 2]) }, &[conj(v) * &moved]);
        &moved - v * rows(&along, v)
    }
}
impl Rules for Eig {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("eig takes 1 operand, got {}", x.len())) };
        accepts("eig", 0, a, true, 2)?;
        let n = square("eig", a)?;
        let c = a.with_dtype(a.dtype.complex()).strong();
        let vectors = self.compute_left_eigenvectors as usize + self.compute_right_eigenvectors as usize;
        Ok(std::iter::once(with_tail(&c, 2, &[n])).chain((0..vectors).map(|_| c.clone())).collect())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        if dx[0].is_none() {
            return super::super::zero_jvp(&self.clone().into(), cx, x);
        }
        let (left, right) = (self.compute_left_eigenvectors, self.compute_right_eigenvectors);
        let all = Eig { compute_right_eigenvectors: true, ..self.clone() };
        jvp(&all.into(), cx, x, dx, &|y, _, dx| {
            let Some(da) = &dx[0] else { return Ok(vec![None; y.len()]) };
            let (w, v) = (&y[0], &y[y.len() - 1]);
            let da = if da.dtype() == v.dtype() { da.clone() } else { raised(da, v) };
            let inner = solve(v, &mm(&da, v))?;
            let mut dy = vec![Some(diagonal(&inner))];
            if left {
                let u = &y[1];
                let other = solve(u, &mm(&adjoint(&da), u))?;
                dy.push(Some(Eig::vectors(u, &conj(w), &other)));
            }
            dy.push(right.then(|| Eig::vectors(v, w, &inner)));
            Ok(dy)
        })
        .map(|(mut y, mut dy)| {
            if !right {
                y.pop();
                dy.pop();
            }
            (y, dy)
        })
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("eig")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        let kind = Decomposition::Eig { left: self.compute_left_eigenvectors, right: self.compute_right_eigenvectors };
        Ok(lower(b, kind, x, 2, [m, n, 0], out))
    }
}

impl Svd {
    /// Tangents of singular values and both sets of vectors, thin or full.
    fn tangents(y: &[Value], da: &Value) -> Vec<Value> {
        let (s, u, vt) = (&y[0], &y[1], &y[2]);
        let k = s.shape()[s.rank() - 1];
        let ([m, p], [q, n]) = (sizes(u.shape()), sizes(vt.shape()));
        let (u1, v1) = (block(u, (0, m), (0, k)), adjoint(&block(vt, (0, k), (0, n))));
        let inner = mm(&mm(&adjoint(&u1), da), &v1);
        let like = real(&inner);
        let least = rounding(s, &like, units(s));
        let e = raised(&reciprocal(&gaps(s, &like), &least), &inner);
        let g = raised(&reciprocal(&(rows(s, &like) + columns(s, &like)), &least), &inner);
        let (even, odd) = ((&inner + adjoint(&inner)) * e, (&inner - adjoint(&inner)) * g);
        let over = |a: Value| {
            let r = reciprocal(&rows(s, &real(&a)), &rounding(s, &real(&a), units(s)));
            &a * raised(&r, &a)
        };
        // the component outside the space of the vectors
        let side = |x: &Value, turn: Value, moved: Value, rows: usize, all: &Value, count: usize| {
            let mut d = mm(x, &turn);
            if rows > k {
                let out = &moved - mm(x, &mm(&adjoint(x), &moved));
                d = d + over(out);
            }
            if count > k {
                let rest = block(all, (0, rows), (k, count));
                d = beside(&d, &-mm(x, &adjoint(&mm(&adjoint(&rest), &d))));
            }
            d
        };
        let du = side(&u1, (&even + &odd) * 0.5, mm(da, &v1), m, u, p);
        let dv = side(&v1, (&even - &odd) * 0.5, mm(&adjoint(da), &u1), n, &adjoint(vt), q);
        vec![real(&diagonal(&inner)), du, adjoint(&dv)]
    }
}
impl Rules for Svd {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("svd takes 1 operand, got {}", x.len())) };
        accepts("svd", 0, a, true, 2)?;
        if self.full_matrices && self.subset_by_index.is_some() {
            return value_err("full_matrices and subset_by_index cannot both be set");
        }
        let [m, n] = sizes(&a.shape);
        let k = subset("svd", self.subset_by_index, m.min(n))?;
        let mut out: Avals = smallvec![with_tail(&a.with_dtype(a.dtype.real()), 2, &[k])];
        if self.compute_uv {
            let (p, q) = if self.full_matrices { (m, n) } else { (k, k) };
            out.extend([with_tail(a, 2, &[m, p]), with_tail(a, 2, &[q, n])]);
        }
        Ok(out)
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        if dx[0].is_none() || x[0].shape().contains(&0) {
            return super::super::zero_jvp(&self.clone().into(), cx, x);
        }
        let full = self.full_matrices && self.compute_uv;
        let all = Svd { compute_uv: true, full_matrices: full, subset_by_index: None };
        let (mut y, mut dy) = jvp(&all.into(), cx, x, dx, &|y, _, dx| {
            Ok(dx[0].as_ref().map_or(vec![None; y.len()], |da| Svd::tangents(y, da).into_iter().map(Some).collect()))
        })?;
        if !self.compute_uv {
            y.truncate(1);
            dy.truncate(1);
        }
        if let Some((from, to)) = self.subset_by_index {
            let rows = |v: &Value| {
                let r = v.rank();
                let turn = |v: &Value| cx.move_axis(v, r - 1, r - 2);
                turn(&along_last(cx, &turn(v)?, from, to)?)
            };
            let cut = |(i, v): (usize, &Value)| if i == 2 { rows(v) } else { along_last(cx, v, from, to) };
            y = y.iter().enumerate().map(cut).collect::<Res<_>>()?;
            let t: Vec<Value> = dy.into_iter().flatten().collect();
            dy = t.iter().enumerate().map(|v| cut(v).map(Some)).collect::<Res<_>>()?;
        }
        Ok((y, dy))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("svd")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        let kind = Decomposition::Svd { full: self.full_matrices, vectors: self.compute_uv };
        let Some(_) = self.subset_by_index else { return Ok(lower(b, kind, x, 2, [m, n, 0], out)) };
        let k = m.min(n);
        let mut whole = vec![with_tail(&out[0], 1, &[k])];
        if self.compute_uv {
            whole.extend([with_tail(&out[1], 2, &[m, k]), with_tail(&out[2], 2, &[k, n])]);
        }
        let y = lower(b, kind, x, 2, [m, n, 0], &whole);
        Ok(y.into_iter().enumerate().map(|(i, y)| part(b, y, (i == 2) as usize, self.subset_by_index)).collect())
    }
}

impl Rules for Schur {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("schur takes 1 operand, got {}", x.len())) };
        accepts("schur", 0, a, true, 2)?;
        square("schur", a)?;
        if self.sort_eig_vals {
            return Err(Error::not_implemented("The sort feature of LAPACK's gees routine is not implemented."));
        }
        Ok((0..1 + self.compute_schur_vectors as usize).map(|_| a.strong()).collect())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        no_derivative(self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("schur")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        Ok(lower(b, Decomposition::Schur { vectors: self.compute_schur_vectors }, x, 2, [m, n, 0], out))
    }
}
