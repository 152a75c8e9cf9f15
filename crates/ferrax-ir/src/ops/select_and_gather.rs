//! select_and_gather_add, select_and_scatter_add: of each window the element that `select_prim` prefers, the first of equals. The element
//! at that position of another array is read, or the window's source is added there: the derivative of reduce_window_max and min, and its transpose.
//!
//! ```text
//! gather:  out[o] = tangents[p(o)]               operands: tangents, operand
//! scatter: out[p] = sum of source[o], p(o) = p   operands: source, operand
//! ```
use super::gather::{Gather, GatherDims, zero_fill};
use super::iota::Iota;
use super::linear_jvp;
use super::pad::Pad;
use super::pointwise::Pw;
use super::reduce::{Monoid, identity};
use super::scatter::{Scatter, ScatterDims, ScatterKind};
use super::windows::{Windows, lower_as, windowed};
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int, lit, truth, values1};
use crate::dtype::Dtype;
use crate::error::{Res, type_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::param::{Param, ParamValue};
use crate::primitive;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use ferrax_kernel::routine::OutOfBounds;
use smallvec::smallvec;

/// Windows whose results are gathered: this many of them, at most, cover an element.
const COVER: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Comparison {
    Ge,
    Le,
}
impl ParamValue for Comparison {
    fn words() -> String {
        "ge or le".into()
    }
    fn to_param(&self) -> Param {
        Param::Str(if *self == Comparison::Ge { "ge" } else { "le" }.into())
    }
    fn from_param(p: &Param) -> Option<Comparison> {
        match p {
            Param::Str(s) if **s == *"ge" => Some(Comparison::Ge),
            Param::Str(s) if **s == *"le" => Some(Comparison::Le),
            _ => None,
        }
    }
}
impl Comparison {
    fn kind(self) -> Monoid {
        if self == Comparison::Ge { Monoid::Max } else { Monoid::Min }
    }
    /// The value to which every element is preferred.
    fn worst(self, d: Dtype) -> Value {
        match (d.is_complex(), self) {
            (true, Comparison::Ge) => lit(d, f64::NEG_INFINITY),
            (true, Comparison::Le) => lit(d, f64::INFINITY),
            _ => identity(self.kind(), d),
        }
    }
    fn keeps(self, cx: &dyn Cx, x: &Value, y: &Value) -> Res<Value> {
        match (x.dtype().is_complex(), self) {
            (false, Comparison::Ge) => cx.pw2(Pw::Ge, x, y),
            (false, Comparison::Le) => cx.pw2(Pw::Le, x, y),
            (true, Comparison::Ge) => cx.pw2(Pw::Eq, &cx.pw2(Pw::Max, x, y)?, x),
            (true, Comparison::Le) => cx.pw2(Pw::Eq, &cx.pw2(Pw::Min, x, y)?, x),
        }
    }
    /// `of` at each window's choice among `x`; `outside` where a window covers no element.
    fn choose(self, cx: &dyn Cx, w: &Windows, x: &Value, of: &[Value], outside: &[Value]) -> Res<Values> {
        let shape = Dims::new(x.shape());
        let out = w.over("window", &shape)?;
        let full = w.inside(&shape, &out);
        let (mut state, mut fills) = (vec![x.clone()], vec![self.worst(x.dtype())]);
        if !full {
            state.push(cx.broadcast(&truth(true), &shape, &[])?);
            fills.push(truth(false));
        }
        let own = state.len();
        state.extend_from_slice(of);
        fills.extend_from_slice(outside);
        let combine = |cx: &dyn Cx, a: &[Value], b: &[Value]| -> Res<Values> {
            let stays = self.stays(cx, a, b, full)?;
            let mut y: Values = smallvec![cx.select(&stays, &b[0], &a[0])?];
            if !full {
                y.push(cx.pw2(Pw::Or, &a[1], &b[1])?);
            }
            for (a, b) in a[own..].iter().zip(&b[own..]) {
                y.push(cx.select(&stays, b, a)?);
            }
            Ok(y)
        };
        Ok(w.fold(cx, &state, &fills, None, &combine)?[own..].into())
    }
    /// Whether a stays before b: elements, and unless windows are `full` of them, whether they are any.
    fn stays(self, cx: &dyn Cx, a: &[Value], b: &[Value], full: bool) -> Res<Value> {
        let better = self.keeps(cx, &a[0], &b[0])?;
        if full {
            return Ok(better);
        }
        let better = cx.pw2(Pw::Or, &better, &cx.pw(Pw::Not, &b[1..2])?)?;
        cx.pw2(Pw::And, &better, &a[1])
    }
    /// Of windows of few elements, the place of the choice within each: its row-major position in a window of size `within`; -1 where a window
    /// covers no element.
    fn places(self, cx: &dyn Cx, w: &Windows, x: &Value, within: &Dims) -> Res<Value> {
        let shape = Dims::new(x.shape());
        let out = w.over("window", &shape)?;
        let full = w.inside(&shape, &out);
        let mut state = vec![x.clone()];
        if !full {
            state.push(cx.broadcast(&truth(true), &shape, &[])?);
        }
        let taps = w.taps(cx, &state, &[self.worst(x.dtype()), truth(false)][..state.len()])?;
        let strides = within.strides();
        let number = |i: usize| {
            let at: i64 = w.size.unravel(i).iter().zip(&strides).map(|(i, s)| *i as i64 * *s as i64).sum();
            cx.broadcast(&int(Dtype::I32, at), &out, &[])
        };
        let (mut best, mut place) = (taps[0].clone(), number(0)?);
        if !full {
            let none = cx.broadcast(&int(Dtype::I32, -1), &out, &[])?;
            place = cx.select(&best[1], &none, &place)?;
        }
        for (i, tap) in taps.iter().enumerate().skip(1) {
            let stays = self.stays(cx, &best, tap, full)?;
            let mut here = number(i)?;
            if !full {
                // neither is an element
                here = cx.select(&tap[1], &place, &here)?;
                best[1] = cx.pw2(Pw::Or, &best[1], &tap[1])?;
            }
            best[0] = cx.select(&stays, &tap[0], &best[0])?;
            place = cx.select(&stays, &here, &place)?;
        }
        Ok(place)
    }
    /// The flat position of each window's choice; -1 where a window covers no element.
    fn positions(self, cx: &dyn Cx, w: &Windows, x: &Value) -> Res<Value> {
        let shape = Dims::new(x.shape());
        let dtype = index_dtype(&shape);
        let at = flat_positions(cx, &shape, dtype)?;
        Ok(self.choose(cx, w, x, &[at], &[int(dtype, -1)])?.remove(0))
    }
}
/// 32 bits where they hold the positions: not every device has 64.
fn index_dtype(shape: &Dims) -> Dtype {
    if i32::try_from(shape.size()).is_ok() { Dtype::I32 } else { Dtype::I64 }
}
/// Each element's own row-major position.
fn flat_positions(cx: &dyn Cx, shape: &Dims, dtype: Dtype) -> Res<Value> {
    let mut at = cx.broadcast(&int(dtype, 0), shape, &[])?;
    for (dimension, s) in shape.strides().iter().enumerate() {
        let i = cx.bind1(Iota { dimension, dtype, shape: shape.clone().into() }, &[])?;
        at = cx.add(&at, &cx.mul(&i, &int(dtype, *s as i64))?)?;
    }
    Ok(at)
}
fn flat(cx: &dyn Cx, x: &Value) -> Res<Value> {
    cx.reshape(x, &Dims::new(&[x.shape().iter().product()]))
}
/// `x` at flat positions, zero at those that are -1.
fn read(cx: &dyn Cx, x: &Value, at: &Value) -> Res<Value> {
    if x.shape().contains(&0) {
        return cx.zeros(&x.aval().with_shape(Dims::new(at.shape())));
    }
    let dims = GatherDims { collapsed_slice_dims: [0].into(), start_index_map: [0].into(), ..GatherDims::default() };
    let op = Gather {
        dimension_numbers: Box::new(dims),
        fill_value: Some(zero_fill(x.dtype())),
        indices_are_sorted: false,
        mode: OutOfBounds::FillOrDrop,
        slice_sizes: [1].into(),
        unique_indices: false,
    };
    let index = Dims::new(at.shape()).insert(at.rank(), 1);
    cx.bind1(op, &[flat(cx, x)?, cx.reshape(at, &index)?])
}
/// Zeros of a shape, with `x` added at flat positions; elements at position -1 are dropped.
fn write(cx: &dyn Cx, x: &Value, at: &Value, shape: &Dims) -> Res<Value> {
    let dims = ScatterDims {
        inserted_window_dims: [0].into(),
        scatter_dims_to_operand_dims: [0].into(),
        ..ScatterDims::default()
    };
    let op = Scatter {
        kind: ScatterKind::Add,
        dimension_numbers: Box::new(dims),
        indices_are_sorted: false,
        mode: OutOfBounds::FillOrDrop,
        unique_indices: false,
    };
    let zeros = cx.zeros(&Aval::of(x.dtype(), [shape.size()].into()))?;
    let index = Dims::new(at.shape()).insert(at.rank(), 1);
    let y = cx.bind1(op, &[zeros, cx.reshape(at, &index)?, x.clone()])?;
    cx.reshape(&y, shape)
}

fn check(name: &str, what: &str, t: &Aval, a: &Aval) -> Res<()> {
    if t.dtype != a.dtype {
        return type_err(format!(
            "{name} {what} and operand dtypes must match, got {} and {}.",
            t.dtype.long(),
            a.dtype.long()
        ));
    }
    if a.dtype.is_key() || a.tape + t.tape > 0 {
        return type_err(format!("operand to {name} must have a number dtype, got {}", a.dtype.long()));
    }
    Ok(())
}
/// Both operands with the lanes on axis 0.
fn both(cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<Values> {
    x.iter().zip(d).map(|(v, d)| cx.batch_at(v, *d, ax.n, 0)).collect()
}

primitive! {
    pub struct SelectAndGatherAdd = "select_and_gather_add" {
        base_dilation: Dims,
        padding: Box<[(i64, i64)]>,
        select_prim: Comparison,
        window_dilation: Dims,
        window_dimensions: Dims,
        window_strides: Dims,
    }
}
windowed!(SelectAndGatherAdd);
impl SelectAndGatherAdd {
    pub fn new(select: Comparison, w: Windows) -> SelectAndGatherAdd {
        SelectAndGatherAdd {
            base_dilation: w.base,
            padding: w.padding.into(),
            select_prim: select,
            window_dilation: w.dilation,
            window_dimensions: w.size,
            window_strides: w.strides,
        }
    }
}
impl Rules for SelectAndGatherAdd {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = "select_and_gather_add";
        let [t, a] = x else { return type_err(format!("{name} takes 2 operands, got {}", x.len())) };
        if t.shape != a.shape {
            return type_err(format!(
                "{name} tangents and operand shapes must match, got {} and {}.",
                t.shape, a.shape
            ));
        }
        check(name, "tangents", t, a)?;
        Ok(smallvec![t.with_shape(self.windows().over(name, &a.shape)?)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None; 2]) };
        let (a, w) = (x[1].value()?, self.windows());
        let plain = |v: &Dims| v.iter().all(|d| *d == 1);
        let back = if plain(&w.base) && plain(&w.dilation) {
            let op = SelectAndScatterAdd {
                padding: self.padding.clone(),
                select_prim: self.select_prim,
                window_dimensions: w.size,
                window_strides: w.strides,
            };
            cx.bind1(op, &[ct.clone(), a.clone()])?
        } else {
            write(cx, ct, &self.select_prim.positions(cx, &w, a)?, &Dims::new(a.shape()))?
        };
        Ok(smallvec![Some(back), None])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let op = SelectAndGatherAdd::new(self.select_prim, self.windows().insert(0));
        Ok((cx.bind(&op.into(), &both(cx, ax, x, d)?)?, smallvec![Some(0)]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        self.windows().factors(x, out, &x[0].shape, &out[0].shape)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        let w = self.windows();
        lower_as(b, x, &|cx, x| {
            if w.few() {
                let zero = lit(x[0].dtype(), 0.0);
                return self.select_prim.choose(cx, &w, &x[1], &x[..1], &[zero]);
            }
            Ok(values1(read(cx, &x[0], &self.select_prim.positions(cx, &w, &x[1])?)?))
        })
    }
}

primitive! {
    pub struct SelectAndScatterAdd = "select_and_scatter_add" {
        padding: Box<[(i64, i64)]>,
        select_prim: Comparison,
        window_dimensions: Dims,
        window_strides: Dims,
    }
}
impl SelectAndScatterAdd {
    fn windows(&self) -> Windows {
        let ones: Dims = self.window_dimensions.iter().map(|_| 1).collect();
        Windows {
            size: self.window_dimensions.clone(),
            strides: self.window_strides.clone(),
            padding: self.padding.to_vec(),
            base: ones.clone(),
            dilation: ones,
        }
    }
    fn meaning(&self, cx: &dyn Cx, source: &Value, x: &Value) -> Res<Value> {
        let w = self.windows();
        let shape = Dims::new(x.shape());
        // how many windows can cover an element, along each axis
        let cover: Dims = (0..shape.len()).map(|k| w.size[k].div_ceil(w.strides[k])).collect();
        let few = w.few() && cover.size() <= COVER;
        if !few || shape.contains(&0) || source.shape().contains(&0) {
            return write(cx, source, &self.select_prim.positions(cx, &w, x)?, &shape);
        }
        // Each element q * stride + r - low asks the windows q, q - 1, .. whether they chose it, the first of them first.
        let (out, rank) = (Dims::new(source.shape()), shape.len());
        let within: Dims = (0..rank).map(|k| cover[k] * w.strides[k]).collect();
        let place = self.select_prim.places(cx, &w, x, &within)?;
        let reached = |k: usize| ((shape[k] as i64 + w.padding[k].0).max(0) as usize).div_ceil(w.strides[k]);
        let q: Dims = (0..rank).map(reached).collect();
        let split: Dims = q.iter().zip(w.strides.iter()).flat_map(|(q, s)| [*q, *s]).collect();
        let joined: Dims = q.iter().zip(w.strides.iter()).map(|(q, s)| q * s).collect();
        let front: Dims = (0..rank).map(|k| 2 * k).collect();
        let mut mine = cx.broadcast(&int(Dtype::I32, 0), &split, &[])?;
        let strides = within.strides();
        for k in (0..rank).filter(|k| w.strides[*k] > 1) {
            let i = cx.bind1(Iota { dimension: 2 * k + 1, dtype: Dtype::I32, shape: split.clone().into() }, &[])?;
            mine = cx.add(&mine, &cx.mul(&i, &int(Dtype::I32, strides[k] as i64))?)?;
        }
        let mut sum: Option<Value> = None;
        for i in (0..cover.size()).rev() {
            let back = cover.unravel(i);
            let config: Box<[(i64, i64, i64)]> =
                (0..rank).map(|k| (back[k] as i64, q[k] as i64 - (out[k] + back[k]) as i64, 0)).collect();
            let shifted = |x: &Value, fill: Value| -> Res<Value> {
                let x = cx.bind1(Pad { padding_config: config.clone() }, &[x.clone(), fill])?;
                cx.broadcast(&x, &split, &front)
            };
            let before: i64 = (0..rank).map(|k| (back[k] * w.strides[k]) as i64 * strides[k] as i64).sum();
            let here = cx.add(&mine, &int(Dtype::I32, before))?;
            let chose = cx.pw2(Pw::Eq, &shifted(&place, int(Dtype::I32, -1))?, &here)?;
            let term = shifted(source, lit(source.dtype(), 0.0))?;
            let term = cx.select(&chose, &cx.zeros(&term.aval())?, &term)?;
            sum = Some(match sum {
                None => term,
                Some(sum) => cx.add(&sum, &term)?,
            });
        }
        let sum = cx.reshape(&sum.unwrap_or(mine), &joined)?;
        let config: Box<[(i64, i64, i64)]> =
            (0..rank).map(|k| (-w.padding[k].0, shape[k] as i64 + w.padding[k].0 - joined[k] as i64, 0)).collect();
        cx.bind1(Pad { padding_config: config }, &[sum, lit(source.dtype(), 0.0)])
    }
}
impl Rules for SelectAndScatterAdd {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = "select_and_scatter_add";
        let [s, a] = x else { return type_err(format!("{name} takes 2 operands, got {}", x.len())) };
        check(name, "source", s, a)?;
        let out = self.windows().over(name, &a.shape)?;
        if s.shape != out {
            return type_err(format!("{name} source must have shape {out}, got {}.", s.shape));
        }
        Ok(smallvec![s.with_shape(a.shape.clone())])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None; 2]) };
        let op = SelectAndGatherAdd::new(self.select_prim, self.windows());
        Ok(smallvec![Some(cx.bind1(op, &[ct.clone(), x[1].value()?.clone()])?), None])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let w = self.windows().insert(0);
        let op = SelectAndScatterAdd {
            padding: w.padding.into(),
            select_prim: self.select_prim,
            window_dimensions: w.size,
            window_strides: w.strides,
        };
        Ok((cx.bind(&op.into(), &both(cx, ax, x, d)?)?, smallvec![Some(0)]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        self.windows().factors(x, out, &x[1].shape, &x[0].shape)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        lower_as(b, x, &|cx, x| Ok(values1(self.meaning(cx, &x[0], &x[1])?)))
    }
}
