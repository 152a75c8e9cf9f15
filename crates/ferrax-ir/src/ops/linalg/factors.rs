//! Triangular factors and systems.
//!
//! ```text
//! cholesky            a -> l            a = l l', of the lower triangle of a
//! cholesky_update     r, w -> s         s' s = r' r + w w'
//! triangular_solve    a, b -> x         op(a) x = b, or x op(a) = b
//! tridiagonal_solve   dl, d, du, b -> x
//! lu                  a -> lu, pivots, permutation        a[permutation] = l u
//! lu_pivots_to_permutation, symmetric_product (alpha a a^T + beta c)
//! ```
//! Derivatives: Giles, An extended collection of matrix derivative results (2008); Murray, arXiv:1602.07527; lu: de Hoog, Anderssen and
//! Lukas, BIT 51 (2011).
use super::*;
use crate::cx::{Arg, current};
use crate::error::{no_jvp, not_linear, value_err};
use crate::factors::Factors;
use crate::op::{Avals, Rules};
use crate::ops::gather::take_along;
use crate::ops::{with_zeros, zero_jvp};
use crate::param::FloatParam;
use crate::primitive;
use ferrax_kernel::linalg::Triangle;
use smallvec::smallvec;

primitive! {
    pub struct Cholesky = "cholesky" {}
}
primitive! {
    pub struct CholeskyUpdate = "cholesky_update" {}
}
primitive! {
    #[derive(Default)]
    pub struct TriangularSolve = "triangular_solve" {
        conjugate_a: bool,
        left_side: bool,
        lower: bool,
        transpose_a: bool,
        unit_diagonal: bool,
    }
}
primitive! {
    pub struct TridiagonalSolve = "tridiagonal_solve" {
        /// Has no effect, and is kept to be shown: exchanges of rows find a solution wherever there is one.
        perturb_singular: bool,
    }
}
primitive! {
    pub struct Lu = "lu" {}
}
primitive! {
    pub struct PivotsToPermutation = "lu_pivots_to_permutation" {
        permutation_size: usize,
    }
}
primitive! {
    pub struct SymmetricProduct = "symmetric_product" {
        alpha: FloatParam,
        beta: FloatParam,
    }
}

/// The lower triangle with half its diagonal: the part of a Hermitian matrix `x + x'` that belongs
/// to a lower factor.
fn half(a: &Value) -> Value {
    only(Pw::Gt, a) + only(Pw::Eq, a) * 0.5
}
/// `dl` for `l l' = a`.
fn factor_tangent(l: &Value, da: &Value) -> Value {
    let left = TriangularSolve { left_side: true, lower: true, ..Default::default() };
    let right = TriangularSolve { lower: true, transpose_a: true, conjugate_a: true, ..Default::default() };
    let inner = emit(left, &[l.clone(), emit(right, &[l.clone(), da.clone()])]);
    mm(l, &half(&inner))
}
/// Rows in the order of a permutation.
pub fn permuted(a: &Value, order: &Value) -> Res<Value> {
    let index = columns_of(order, a);
    take_along(&*current(), a, &index, a.rank() - 2)
}
fn columns_of(order: &Value, a: &Value) -> Value {
    let shape = Dims::new(order.shape());
    let wide = emit(Reshape { new_sizes: shape.concat(&[1]) }, std::slice::from_ref(order));
    let mut to = Dims::new(a.shape());
    let last = to.len() - 2;
    to[last] = shape[shape.len() - 1];
    stretched(&wide, &to)
}

impl Rules for Cholesky {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("cholesky takes 1 operand, got {}", x.len())) };
        accepts("cholesky", 0, a, true, 2)?;
        square("cholesky", a)?;
        Ok(smallvec![a.clone()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        jvp(&self.clone().into(), cx, x, dx, &|y, _, dx| {
            Ok(vec![dx[0].as_ref().map(|da| factor_tangent(&y[0], &hermitian(da, true)))])
        })
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("cholesky")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        Ok(lower(b, Decomposition::Cholesky, x, 2, [m, n, 0], out))
    }
}

impl Rules for CholeskyUpdate {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [r, w] = x else { return type_err(format!("cholesky_update takes 2 operands, got {}", x.len())) };
        for (k, rank) in [2, 1].into_iter().enumerate() {
            accepts("cholesky_update", k, &x[k], false, rank)?;
        }
        let [m, n] = sizes(&r.shape);
        if m != n || w.shape[w.rank() - 1] != n {
            return value_err(format!(
                "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the same size as input. Got shapes {} and {} instead",
                r.shape, w.shape
            ));
        }
        alike("cholesky_update", x, &[2, 1])?;
        Ok(smallvec![r.clone()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        jvp(&self.clone().into(), cx, x, dx, &|y, x, dx| {
            let twice = |a: &Value, b: &Value| {
                let p = mm(a, b);
                &p + transposed(&p)
            };
            let r = only(Pw::Le, &x[0]);
            let by_r = dx[0].as_ref().map(|d| twice(&transposed(&only(Pw::Le, d)), &r));
            let by_w = dx[1].as_ref().map(|d| {
                let p = columns(d, &r) * rows(&x[1], &r);
                &p + transposed(&p)
            });
            let da = match (by_r, by_w) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
            Ok(vec![da.map(|da| transposed(&factor_tangent(&transposed(&y[0]), &da)))])
        })
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("cholesky_update")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        Ok(lower(b, Decomposition::CholeskyUpdate, x, 2, [m, n, 0], out))
    }
}

impl TriangularSolve {
    fn op(&self, a: &Value) -> Value {
        let a = if self.conjugate_a { conj(a) } else { a.clone() };
        if self.transpose_a { transposed(&a) } else { a }
    }
    /// The part of a tangent of `a` that is read.
    fn read(&self, da: &Value) -> Value {
        only(
            match (self.lower, self.unit_diagonal) {
                (true, false) => Pw::Ge,
                (true, true) => Pw::Gt,
                (false, false) => Pw::Le,
                (false, true) => Pw::Lt,
            },
            da,
        )
    }
}
impl Rules for TriangularSolve {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = "triangular_solve";
        let [a, b] = x else { return type_err(format!("{name} takes 2 operands, got {}", x.len())) };
        accepts(name, 0, a, true, 2)?;
        accepts(name, 1, b, true, 2)?;
        let ([m, n], [rows, columns]) = (sizes(&a.shape), sizes(&b.shape));
        if m != n {
            return value_err(format!(
                "The first input to triangular_solve must be a square matrix. Got shape {}.",
                a.shape
            ));
        }
        if n != if self.left_side { rows } else { columns } {
            return value_err(format!(
                "Incompatible shapes for arguments to triangular_solve: {} and {}.",
                a.shape, b.shape
            ));
        }
        alike(name, x, &[2, 2])?;
        Ok(smallvec![b.strong()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        jvp(&self.clone().into(), cx, x, dx, &|y, x, dx| {
            let moved = dx[0].as_ref().map(|da| {
                let da = self.op(&self.read(da));
                if self.left_side { mm(&da, &y[0]) } else { mm(&y[0], &da) }
            });
            let rhs = match (&dx[1], moved) {
                (Some(db), Some(m)) => Some(db - m),
                (None, Some(m)) => Some(-m),
                (db, None) => db.clone(),
            };
            Ok(vec![rhs.map(|r| emit(self.clone(), &[x[0].clone(), r]))])
        })
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let (Arg::Known(a), Some(ct), true) = (&x[0], &ct[0], x[1].is_linear()) else {
            return not_linear("triangular_solve");
        };
        let back = TriangularSolve { transpose_a: !self.transpose_a, ..self.clone() };
        Ok(smallvec![None, Some(cx.bind1(back, &[(*a).clone(), ct.clone()])?)])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[1]));
        let t = Triangle {
            left: self.left_side,
            lower: self.lower,
            transpose: self.transpose_a,
            conjugate: self.conjugate_a,
            unit: self.unit_diagonal,
        };
        Ok(lower(b, Decomposition::Solve(t), x, 2, [m, n, 0], out))
    }
}

/// A vector moved by one place, a zero entering.
fn shifted(v: &Value, down: bool) -> Value {
    let by = if down { (1, -1, 0) } else { (-1, 1, 0) };
    let padding_config: Box<[_]> = (1..v.rank()).map(|_| (0, 0, 0)).chain([by]).collect();
    emit(Pad { padding_config }, &[v.clone(), Value::Lit(crate::aval::Lit::zero(v.dtype()))])
}
/// Rows of a matrix moved likewise.
fn moved(a: &Value, down: bool) -> Value {
    transposed(&shifted(&transposed(a), down))
}
impl Rules for TridiagonalSolve {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = "tridiagonal_solve";
        let [l, d, u, b] = x else { return type_err(format!("{name} takes 4 operands, got {}", x.len())) };
        for (k, a) in [l, d, u].into_iter().enumerate() {
            accepts(name, k, a, true, 1)?;
        }
        accepts(name, 3, b, true, 2)?;
        if l.shape != d.shape || u.shape != d.shape {
            return type_err("tridiagonal_solve requires that all diagonal arguments have the same shape.");
        }
        if b.shape[..b.rank() - 1] != d.shape[..] {
            return type_err(format!(
                "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal the dimensions of the diagonal arguments, got {} and {}.",
                b.shape, d.shape
            ));
        }
        alike(name, x, &[1, 1, 1, 2])?;
        Ok(smallvec![Aval { weak: x.iter().all(|a| a.weak), ..b.clone() }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        jvp(&self.clone().into(), cx, x, dx, &|y, x, dx| {
            let y = &y[0];
            // the missing elements of the first and last rows are not read, since no unknown
            // belongs to them
            let parts = [
                dx[0].as_ref().map(|d| columns(d, y) * moved(y, true)),
                dx[1].as_ref().map(|d| columns(d, y) * y),
                dx[2].as_ref().map(|d| columns(d, y) * moved(y, false)),
            ];
            let rhs = parts.into_iter().flatten().fold(dx[3].clone(), |r, p| Some(r.map_or(-&p, |r| r - &p)));
            Ok(vec![rhs.map(|r| emit(self.clone(), &[x[0].clone(), x[1].clone(), x[2].clone(), r]))])
        })
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let (Some(l), Some(d), Some(u), Some(ct)) = (x[0].known(), x[1].known(), x[2].known(), &ct[0]) else {
            return not_linear("tridiagonal_solve");
        };
        let args = [l.clone(), d.clone(), u.clone(), ct.clone()];
        let ins: Vec<Aval> = args.iter().map(Value::aval).collect();
        let p = meaning::program(&ins, &|v| {
            let (l, u) = (shifted(&v[2], true), shifted(&v[0], false));
            Ok(smallvec![emit(self.clone(), &[l, v[1].clone(), u, v[3].clone()])])
        })?;
        let mut y = cx.inline(&p, &args)?;
        Ok(smallvec![None, None, None, y.pop()])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(1))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [n, k] = sizes(&b.shape(x[3]));
        Ok(lower(b, Decomposition::TridiagonalSolve, x, 1, [n, n, k], out))
    }
}

/// The tangent of both packed factors, where `da` is that of their product. For the square part,
/// with `inner = l^-1 da u^-1`, `dl = l low(inner)` and `du = up(inner) u`; the part below or right
/// of it is solved separately, so that no intermediate is larger than the matrix.
fn tangent_of_lu(lu: &Value, da: &Value, [m, n]: [usize; 2]) -> Value {
    let k = m.min(n);
    let top = block(lu, (0, k), (0, k));
    let lower = TriangularSolve { left_side: true, lower: true, unit_diagonal: true, ..Default::default() };
    let half = emit(lower, &[top.clone(), block(da, (0, k), (0, n))]);
    let inner = emit(TriangularSolve::default(), &[top.clone(), block(&half, (0, k), (0, k))]);
    let (low, up) = (only(Pw::Gt, &inner), only(Pw::Le, &inner));
    let d = mm(&(only(Pw::Gt, &top) + identity(&top)), &low) + mm(&up, &only(Pw::Le, &top));
    if n > k {
        return beside(&d, &(block(&half, (0, k), (k, n)) - mm(&low, &block(lu, (0, k), (k, n)))));
    }
    if m > k {
        let rest = emit(TriangularSolve::default(), &[top, block(da, (k, m), (0, k))]);
        return below(&d, &(rest - mm(&block(lu, (k, m), (0, k)), &up)));
    }
    d
}
impl Rules for Lu {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("lu takes 1 operand, got {}", x.len())) };
        accepts("lu", 0, a, true, 2)?;
        let [m, n] = sizes(&a.shape);
        let index = a.with_dtype(Dtype::I32).strong();
        Ok(smallvec![a.clone(), with_tail(&index, 2, &[m.min(n)]), with_tail(&index, 2, &[m])])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let Some(da) = &dx[0] else { return Ok(with_zeros(cx.bind(&self.clone().into(), x)?)) };
        let y = cx.bind(&self.clone().into(), x)?;
        let [m, n] = sizes(x[0].shape());
        let args = [y[0].clone(), y[2].clone(), da.clone()];
        let p = meaning::program(&args.iter().map(Value::aval).collect::<Vec<_>>(), &|v| {
            Ok(smallvec![tangent_of_lu(&v[0], &permuted(&v[2], &v[1])?, [m, n])])
        })?;
        let dy = cx.inline(&p, &args)?.pop();
        Ok((y, smallvec![dy, None, None]))
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("lu")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let [m, n] = sizes(&b.shape(x[0]));
        Ok(lower(b, Decomposition::Lu, x, 2, [m, n, 0], out))
    }
}

impl Rules for PivotsToPermutation {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = "lu_pivots_to_permutation";
        let [p] = x else { return type_err(format!("{name} takes 1 operand, got {}", x.len())) };
        if p.dtype != Dtype::I32 || p.tape > 0 {
            return type_err(format!(
                "{name} does not accept dtype {} at position 0. Accepted dtypes at position 0 are subtypes of int32.",
                p.dtype.long()
            ));
        }
        if p.rank() == 0 {
            return type_err(format!("Input 0 to {name} must have rank at least 1, but got shape={}", p.shape));
        }
        let count = p.shape[p.rank() - 1];
        if self.permutation_size < count {
            return value_err(format!(
                "Output permutation size {} has to exceed the trailing dimension of the pivots. Got pivots size {count}",
                self.permutation_size
            ));
        }
        Ok(smallvec![with_tail(p, 1, &[self.permutation_size]).strong()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("lu_pivots_to_permutation")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(1))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let shape = b.shape(x[0]);
        let n = shape[shape.len() - 1];
        Ok(lower(b, Decomposition::Permutation, x, 1, [self.permutation_size, n, 0], out))
    }
}

impl SymmetricProduct {
    fn meaning(&self, x: &[Value]) -> Res<Values> {
        let value = |r: &FloatParam| match crate::param::ParamValue::to_param(r) {
            crate::param::Param::Float(x) => x,
            _ => 0.0,
        };
        let product = mm(&x[0], &transposed(&x[0])) * value(&self.alpha);
        // an operand times zero is not read: it may be nan
        Ok(smallvec![if value(&self.beta) == 0.0 { product } else { product + &x[1] * value(&self.beta) }])
    }
}
impl Rules for SymmetricProduct {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = "symmetric_product";
        let [a, c] = x else { return type_err(format!("{name} takes 2 operands, got {}", x.len())) };
        accepts(name, 0, a, true, 2)?;
        accepts(name, 1, c, true, 2)?;
        let ([m, _], [p, q]) = (sizes(&a.shape), sizes(&c.shape));
        if p != q || p != m {
            return value_err(format!(
                "symmetric_update expects a rectangular matrix of shape (m, n) and a square matrix of shape (n, n). Got shapes {} and {}.",
                a.shape, c.shape
            ));
        }
        alike(name, x, &[2, 2])?;
        Ok(smallvec![c.strong()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind(&self.clone().into(), x)?;
        Ok((y, meaning::tangents(&|x| self.meaning(x), cx, x, dx)?))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        meaning::transpose(&|x| self.meaning(x), cx, x, ct)
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(self.clone().into(), cx, ax, x, d)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::batched(x, out, x[0].rank().saturating_sub(2))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        meaning::lower(b, x, &|x| self.meaning(x))
    }
}

/// For ops without derivatives: symbolic zeros in, zeros out.
pub(super) fn no_derivative(op: Op, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
    match dx.iter().all(Option::is_none) {
        true => zero_jvp(&op, cx, x),
        false => no_jvp(op.name()),
    }
}
