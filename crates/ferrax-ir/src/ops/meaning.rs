//! Primitives that are compositions of others: all their rules, derived from one function on values.
//!
//! ```text
//! lower: the composition, traced and lowered       batch, transpose, derivative: those of the composition
//! ```
//! INVARIANT: the composition reads its operands alone. It runs in the trace that is current, so the operators on values serve it.
use super::call::{front_dims, fronts, lanes};
use crate::aval::{Aval, Lit};
use crate::cx::{Arg, Axis, Cx, Dim, Tan, current, eval_root, int};
use crate::dtype::Dtype;
use crate::error::{Error, Res};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::mask::{count, merge, nonzero, spread};
use crate::op::{Axes, Tans};
use crate::operators::{catch, emit};
use crate::ops::broadcast::BroadcastInDim;
use crate::ops::convert::Convert;
use crate::ops::loops::{Loop, Trip};
use crate::ops::pointwise::Pw;
use crate::ops::reduce::{Monoid, Reduce};
use crate::ops::select::Select;
use crate::program::Program;
use crate::value::{Value, Values};
use ferrax_kernel::{DType, Dims};
use std::panic::panic_any;
use std::sync::Arc;

/// The composition: results of operands.
pub type Meaning<'a> = &'a dyn Fn(&[Value]) -> Res<Values>;

/// The composition as a program on operands of these types.
pub fn program(ins: &[Aval], f: Meaning) -> Res<Arc<Program>> {
    let (p, captured) = eval_root().recur().stage(ins, &|_, x| catch(|| f(x)))?;
    if captured.is_empty() { Ok(p) } else { Err(Error::type_error("a composition reads its operands alone")) }
}
fn avals(x: &[Value]) -> Vec<Aval> {
    x.iter().map(Value::aval).collect()
}

pub fn lower(b: &mut Graph, x: &[TensorId], f: Meaning) -> Res<TensorIds> {
    let aval = |v: &TensorId| match (b.parts(*v), b.dtype(*v)) {
        (None, d) => Aval::of(Dtype::Num(d), b.shape(*v)),
        (Some((re, _)), _) if b.dtype(re) == DType::F64 => Aval::of(Dtype::C128, b.shape(re)),
        (Some((re, _)), _) => Aval::of(Dtype::C64, b.shape(re)),
    };
    let ins: Vec<Aval> = x.iter().map(aval).collect();
    let p = program(&ins, f)?;
    b.inline(&p, x)
}
pub fn batch(f: Meaning, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
    let lane = |(v, d): (&Value, &Dim)| d.map_or(v.aval(), |d| v.aval().unbatched(d));
    let p = program(&x.iter().zip(d).map(lane).collect::<Vec<_>>(), f)?;
    let (p, out) = cx.recur().batch(&p, ax, &lanes(d), &vec![false; p.n_outs()])?;
    Ok((cx.inline(&p, &fronts(cx, x, d)?)?, front_dims(&out)))
}
pub fn transpose(f: Meaning, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
    let p = program(&x.iter().map(Arg::aval).collect::<Vec<_>>(), f)?;
    let lin: Vec<bool> = x.iter().map(Arg::is_linear).collect();
    let (p, nz) = cx.recur().transpose(&p, &lin, &nonzero(ct), &vec![false; count(&lin)])?;
    let known = x.iter().filter_map(|a| a.known().cloned());
    let args: Values = known.chain(ct.iter().flatten().cloned()).collect();
    let cts = spread(&nz, cx.inline(&p, &args)?);
    Ok(merge(&lin, cts, vec![None; x.len()]).into())
}
/// The tangents of the results.
pub fn tangents(f: Meaning, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<Tans> {
    let p = program(&avals(x), f)?;
    let m = p.n_outs();
    let (p, nz) = cx.recur().jvp(&p, &nonzero(dx), &vec![false; m], &[x.len()], &[m])?;
    let args: Values = x.iter().cloned().chain(dx.iter().flatten().cloned()).collect();
    let mut y = cx.inline(&p, &args)?.into_vec();
    Ok(spread(&nz, y.split_off(m)).into())
}

// ---- operations for compositions ----

pub fn f1(f: Pw, x: &Value) -> Value {
    emit(f, std::slice::from_ref(x))
}
pub fn f2(f: Pw, x: &Value, y: &Value) -> Value {
    emit(f, &[x.clone(), y.clone()])
}
/// `c` in the dtype and shape of `like`, strong.
pub fn fill(like: &Value, c: f64) -> Value {
    let c = Value::Lit(Lit::from_f64(like.dtype(), c));
    stretched(&c, &Dims::new(like.shape()))
}
/// A value with `c` beside it, in its dtype.
pub fn with(f: Pw, x: &Value, c: f64) -> Value {
    f2(f, x, &crate::cx::lit(x.dtype(), c))
}
pub fn stretched(x: &Value, shape: &Dims) -> Value {
    if *x.shape() == **shape {
        return x.clone();
    }
    let broadcast_dimensions = (0..x.rank()).collect();
    emit(BroadcastInDim { broadcast_dimensions, shape: shape.clone().into() }, std::slice::from_ref(x))
}
pub fn converted(x: &Value, dtype: Dtype, weak: bool) -> Value {
    if x.dtype() == dtype && x.weak() == weak {
        return x.clone();
    }
    emit(Convert { new_dtype: dtype, weak_type: weak }, std::slice::from_ref(x))
}
pub fn choose(p: &Value, yes: &Value, no: &Value) -> Value {
    emit(Select {}, &[p.clone(), no.clone(), yes.clone()])
}
/// `yes` where `p`, elsewhere the number.
pub fn keep(p: &Value, yes: &Value, no: f64) -> Value {
    choose(p, yes, &fill(yes, no))
}
pub fn any(p: &Value) -> Value {
    if p.rank() == 0 {
        return p.clone();
    }
    emit(Reduce { kind: Monoid::Or, axes: (0..p.rank()).collect() }, std::slice::from_ref(p))
}
/// `while going(state) { state = step(state) }`, for at most `most` steps.
pub fn repeat(
    most: i64,
    state: Vec<Value>,
    going: &dyn Fn(&[Value]) -> Value,
    step: &dyn Fn(&[Value]) -> Vec<Value>,
) -> Vec<Value> {
    let cx = current();
    let run = || {
        let count = [int(Dtype::I32, 0)];
        let state = [&count[..], &state].concat();
        let ins = avals(&state);
        let advance = |s: &[Value]| [&[with(Pw::Add, &s[0], 1.0)][..], &step(&s[1..])].concat().into();
        let (body, held) = cx.recur().stage(&ins, &|_, s| catch(|| Ok(advance(s))))?;
        let more =
            |s: &[Value]| [f2(Pw::And, &with(Pw::Lt, &s[0], most as f64), &going(&s[1..]))].into_iter().collect();
        let (cond, read) = cx.recur().stage(&ins, &|_, s| catch(|| Ok(more(s))))?;
        let op = Loop::new(Trip::While { cond, n_cond: read.len(), counted: false }, held.len(), ins.len(), body);
        cx.bind(&op.into(), &[&read[..], &held, &state].concat())
    };
    match run() {
        Ok(y) => y.into_iter().skip(1).collect(),
        Err(e) => panic_any(e),
    }
}
