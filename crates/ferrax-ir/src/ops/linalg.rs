//! Linear algebra: decompositions of the matrices along the last two axes of an operand, and the solution of structured systems.
//!
//! ```text
//! svd[full_matrices=False ..] f32[5,3,2] -> f32[5,2] f32[5,3,2] f32[5,2,2]
//! ```
//! Every primitive here is one routine of the waist; leading axes are one batch. Their derivatives are compositions of others.
//! INVARIANT: a derivative is that of the computed function: of the triangle that is read, and of the matrix that it represents.
pub mod factors;
pub mod orthogonal;
pub mod spectral;

use super::meaning;
use crate::aval::Aval;
use crate::cx::{Axis, Cx, Dim, Tan};
use crate::dtype::Dtype;
use crate::error::{Error, Res, type_err};
use crate::lower::{Graph, TensorId, TensorIds, physical};
use crate::mask::{nonzero, spread};
use crate::op::{Axes, Op, Tans};
use crate::operators::emit;
use crate::ops::dot::{Dot, DotDims};
use crate::ops::iota::Iota;
use crate::ops::pad::Pad;
use crate::ops::pointwise::Pw;
use crate::ops::reduce::{Monoid, Reduce};
use crate::ops::reshape::Reshape;
use crate::ops::select::Select;
use crate::ops::slice::Slice;
use crate::ops::transpose::Transpose;
use crate::value::{Value, Values};
use ferrax_kernel::linalg::{Decomposition, Linalg};
use ferrax_kernel::routine::Routine;
use ferrax_kernel::{DType, Dims};
use meaning::{f1, f2, fill, stretched};

// ---- checks of inference ----

/// That operand `k` of `name` is of a dtype of single or double precision, and of at least this rank.
fn accepts(name: &str, k: usize, a: &Aval, complex: bool, rank: usize) -> Res<()> {
    let kinds = if complex { "floating, complexfloating" } else { "floating" };
    let taken = a.dtype.is_float() || complex && a.dtype.is_complex();
    if !taken || a.tape > 0 {
        return type_err(format!(
            "{name} does not accept dtype {} at position {k}. Accepted dtypes at position {k} are subtypes of {kinds}.",
            a.dtype.long()
        ));
    }
    if a.dtype.is_float() && !matches!(a.dtype, Dtype::F32 | Dtype::F64) {
        return Err(Error::not_implemented(format!(
            "Unsupported dtype {}. Convert the operand of {name} to float32 first.",
            a.dtype.long()
        )));
    }
    if a.rank() < rank {
        return type_err(format!("Input {k} to {name} must have rank at least {rank}, but got shape={}", a.shape));
    }
    Ok(())
}
/// Checks that all operands have the dtype and the leading axes of the first: all but its last
/// `r[0]`.
fn alike(name: &str, x: &[Aval], r: &[usize]) -> Res<()> {
    let lead = |k: usize| &x[k].shape[..x[k].rank() - r[k]];
    for k in 1..x.len() {
        if x[k].dtype != x[0].dtype {
            return type_err(format!(
                "lax.{name} requires arguments to have the same dtypes, got {}.",
                x.iter().map(|a| a.dtype.long()).collect::<Vec<_>>().join(", ")
            ));
        }
        if lead(k) != lead(0) {
            let shapes: Vec<String> = x.iter().map(|a| a.shape.to_string()).collect();
            return type_err(format!("{name}: leading axes differ in shapes {}", shapes.join(", ")));
        }
    }
    Ok(())
}
/// Rows and columns.
fn sizes(shape: &[usize]) -> [usize; 2] {
    [shape[shape.len() - 2], shape[shape.len() - 1]]
}
/// The leading axes, less the last `rank`, followed by others.
fn with_tail(a: &Aval, rank: usize, tail: &[usize]) -> Aval {
    a.with_shape(a.shape[..a.rank() - rank].iter().chain(tail).copied().collect())
}
fn square(name: &str, a: &Aval) -> Res<usize> {
    let [m, n] = sizes(&a.shape);
    if m == n {
        return Ok(n);
    }
    let shape = &a.shape;
    Err(Error::value(match name {
        "hessenberg" => format!("Argument to Hessenberg reduction must have shape [..., n, n], got shape {shape}"),
        _ => format!("The input to {name} must be a square matrix. Got shape {shape}."),
    }))
}

// ---- the rules that all share ----

/// One routine over all matrices of the operands; the first operand has this many matrix axes.
fn lower(
    b: &mut Graph,
    kind: Decomposition,
    x: &[TensorId],
    own: usize,
    [m, n, k]: [usize; 3],
    out: &[Aval],
) -> TensorIds {
    let complex = b.parts(x[0]).is_some();
    let batch = b.shape(x[0])[..b.rank(x[0]) - own].iter().product();
    let ins: TensorIds = x.iter().map(|v| b.take_out(*v)).collect();
    let dtype = if b.dtype(ins[0]) == DType::I32 { DType::F32 } else { b.dtype(ins[0]) };
    let r = Routine::Linalg(Box::new(Linalg { kind, batch, m, n, k, dtype, complex }));
    let shapes: Vec<Dims> = out.iter().map(|a| physical(a).shape).collect();
    let y = b.routine(r, &ins, &shapes);
    out.iter().zip(y).map(|(a, y)| if a.dtype.is_complex() { b.unzip(y) } else { y }).collect()
}
/// All lanes in front: every rule reads its matrices from the last axes.
fn batch(op: Op, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
    let x: Values = x.iter().zip(d).map(|(v, d)| cx.batch_at(v, *d, ax.n, 0)).collect::<Res<_>>()?;
    let y = cx.bind(&op, &x)?;
    let axes = y.iter().map(|_| Some(0)).collect();
    Ok((y, axes))
}
/// (results, operands, tangents of operands) -> tangents of results.
type Tangents<'a> = &'a dyn Fn(&[Value], &[Value], &[Tan]) -> Res<Vec<Tan>>;
/// Results of `op`, and their tangents as a composition of results, operands and the tangents that
/// exist.
fn jvp(op: &Op, cx: &dyn Cx, x: &[Value], dx: &[Tan], f: Tangents) -> Res<(Values, Tans)> {
    let y = cx.bind(op, x)?;
    if dx.iter().all(Option::is_none) {
        return Ok(super::with_zeros(y));
    }
    let dy = tangents(cx, &y, x, dx, f)?;
    Ok((y, dy))
}
fn tangents(cx: &dyn Cx, y: &[Value], x: &[Value], dx: &[Tan], f: Tangents) -> Res<Tans> {
    let (ny, nx, nz) = (y.len(), x.len(), nonzero(dx));
    let args: Vec<Value> = y.iter().chain(x).chain(dx.iter().flatten()).cloned().collect();
    let ins: Vec<Aval> = args.iter().map(Value::aval).collect();
    let mask = std::cell::RefCell::new(vec![]);
    let p = meaning::program(&ins, &|v| {
        let dy = f(&v[..ny], &v[ny..ny + nx], &spread(&nz, v[ny + nx..].iter().cloned()))?;
        *mask.borrow_mut() = nonzero(&dy);
        Ok(dy.into_iter().flatten().collect())
    })?;
    Ok(spread(&mask.into_inner(), cx.inline(&p, &args)?).into())
}

// ---- operations for derivatives ----

/// The product of matrices.
fn mm(a: &Value, b: &Value) -> Value {
    let r = a.rank();
    let lead: Dims = (0..r - 2).collect();
    let dims = DotDims { lc: Dims::new(&[r - 1]), rc: Dims::new(&[r - 2]), lb: lead.clone(), rb: lead };
    emit(Dot::new(dims), &[a.clone(), b.clone()])
}
fn transposed(a: &Value) -> Value {
    let r = a.rank();
    let permutation = (0..r - 2).chain([r - 1, r - 2]).collect();
    emit(Transpose { permutation }, std::slice::from_ref(a))
}
fn conj(a: &Value) -> Value {
    if a.dtype().is_complex() { f1(Pw::Conj, a) } else { a.clone() }
}
/// The conjugate transpose.
fn adjoint(a: &Value) -> Value {
    transposed(&conj(a))
}
fn real(a: &Value) -> Value {
    if a.dtype().is_complex() { f1(Pw::Real, a) } else { a.clone() }
}
/// A real value in the dtype of `like`.
fn raised(a: &Value, like: &Value) -> Value {
    if a.dtype() == like.dtype() { a.clone() } else { f2(Pw::Complex, a, &fill(a, 0.0)) }
}
/// Whether `f` (a comparison) holds of row and column of each element.
fn places(f: Pw, a: &Value) -> Value {
    let shape = Dims::new(a.shape());
    let index = |dimension| emit(Iota { dimension, dtype: Dtype::I32, shape: shape.clone().into() }, &[]);
    f2(f, &index(a.rank() - 2), &index(a.rank() - 1))
}
/// The elements at whose places `f` holds of row and column, zeros elsewhere.
fn only(f: Pw, a: &Value) -> Value {
    emit(Select {}, &[places(f, a), fill(a, 0.0), a.clone()])
}
fn diagonal(a: &Value) -> Value {
    let d = only(Pw::Eq, a);
    emit(Reduce { kind: Monoid::Sum, axes: Dims::new(&[a.rank() - 2]) }, &[d])
}
fn identity(like: &Value) -> Value {
    emit(Select {}, &[places(Pw::Eq, like), fill(like, 0.0), fill(like, 1.0)])
}
/// A matrix like `a` whose columns are all `v`, or whose rows are.
fn columns(v: &Value, a: &Value) -> Value {
    spread_vector(v, a, 0)
}
fn rows(v: &Value, a: &Value) -> Value {
    spread_vector(v, a, 1)
}
fn spread_vector(v: &Value, a: &Value, back: usize) -> Value {
    let shape = Dims::new(v.shape());
    let wide = emit(Reshape { new_sizes: shape.insert(shape.len() - back, 1) }, std::slice::from_ref(v));
    stretched(&wide, &Dims::new(a.shape()))
}
/// Rows `r.0..r.1` and columns `c.0..c.1`.
fn block(a: &Value, r: (usize, usize), c: (usize, usize)) -> Value {
    let shape = Dims::new(a.shape());
    let k = shape.len() - 2;
    if r == (0, shape[k]) && c == (0, shape[k + 1]) {
        return a.clone();
    }
    let (mut start, mut limit): (Dims, Dims) = (shape.iter().map(|_| 0).collect(), shape);
    (start[k], start[k + 1], limit[k], limit[k + 1]) = (r.0, c.0, r.1, c.1);
    emit(Slice { start_indices: start, limit_indices: limit, strides: None }, std::slice::from_ref(a))
}
/// Pads with zero rows and columns to the given size, or cuts off rows and columns.
fn resized(a: &Value, m: usize, n: usize) -> Value {
    let r = a.rank();
    let more = |k: usize, n: usize| (0, n as i64 - a.shape()[k] as i64, 0);
    let lead = (0..r - 2).map(|_| (0, 0, 0));
    let padding_config: Box<[_]> = lead.chain([more(r - 2, m), more(r - 1, n)]).collect();
    let zero = Value::Lit(crate::aval::Lit::zero(a.dtype()));
    emit(Pad { padding_config }, &[a.clone(), zero])
}
/// One matrix beside the other.
fn beside(a: &Value, b: &Value) -> Value {
    emit(crate::ops::concatenate::Concatenate { dimension: a.rank() - 1 }, &[a.clone(), b.clone()])
}
/// One matrix above the other.
fn below(a: &Value, b: &Value) -> Value {
    emit(crate::ops::concatenate::Concatenate { dimension: a.rank() - 2 }, &[a.clone(), b.clone()])
}
/// The Hermitian matrix that one triangle defines; a tangent of it is Hermitian too.
fn hermitian(a: &Value, lower: bool) -> Value {
    let strict = only(if lower { Pw::Gt } else { Pw::Lt }, a);
    let middle = only(Pw::Eq, a);
    let middle = if a.dtype().is_complex() { (&middle + conj(&middle)) * 0.5 } else { middle };
    &strict + adjoint(&strict) + middle
}
/// `1 / x`, or zero if `x` is at most `least`. Where values coincide, functions of the space that
/// their vectors span are differentiable, and have no derivative along these vectors.
fn reciprocal(x: &Value, least: &Value) -> Value {
    let size = f1(Pw::Abs, x);
    let none = f2(Pw::Le, &size, least);
    let safe = emit(Select {}, &[none.clone(), x.clone(), fill(x, 1.0)]);
    let one = f2(Pw::Div, &fill(x, 1.0), &safe);
    emit(Select {}, &[none, one, fill(x, 0.0)])
}
/// The tolerance for differences of equal values, in units of the largest: twice the largest
/// difference observed between repeated values of matrices of up to 400 rows. No more, since values
/// that are merely close have derivatives. Small matrices of single precision are decomposed in
/// double precision.
fn units(values: &Value) -> f64 {
    let n = values.shape()[values.rank() - 1] as f64;
    match n {
        ..=16.0 if values.dtype().real() == Dtype::F32 => 2.0,
        ..=16.0 => 4.0 + 2.0 * n.sqrt(),
        _ => 4.0 + 4.0 * n.sqrt(),
    }
}
/// The rounding error of differences of equal values: so many units of the largest value, in the
/// shape of `like`.
fn rounding(values: &Value, like: &Value, units: f64) -> Value {
    let size = f1(Pw::Abs, values);
    let eps = if size.dtype() == Dtype::F64 { f64::EPSILON } else { f32::EPSILON as f64 };
    let axis = values.rank() - 1;
    let most = emit(Reduce { kind: Monoid::Max, axes: Dims::new(&[axis]) }, &[size]);
    let most = f1(Pw::StopGradient, &most) * (eps * units);
    let shape = Dims::new(most.shape()).concat(&[1, 1]);
    stretched(&emit(Reshape { new_sizes: shape }, &[most]), &Dims::new(like.shape()))
}
/// `a x = b` for a square `a`, by its triangular factors.
fn solve(a: &Value, b: &Value) -> Res<Value> {
    let lu = crate::cx::bind(&factors::Lu {}.into(), std::slice::from_ref(a))?;
    let b = factors::permuted(b, &lu[2])?;
    let half = factors::TriangularSolve { left_side: true, lower: true, unit_diagonal: true, ..Default::default() };
    let y = emit(half, &[lu[0].clone(), b]);
    let other = factors::TriangularSolve { left_side: true, ..Default::default() };
    Ok(emit(other, &[lu[0].clone(), y]))
}
