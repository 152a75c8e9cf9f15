//! scatter, scatter-add, -sub, -mul, -min, -max: updates written into, or combined with, windows of the operand. numpy: `x[i] = u`,
//! `np.add.at`. Updates apply position by position: of several that set one element, that of the last position wins.
//!
//! ```text
//! out = x;  for p, w:  out[starts(p) + w] = f(out[starts(p) + w], updates[p.., w..])
//! ```
//!
//! Derivatives: set and add are linear in operand and updates. mul: `dy = dx * prod u + sum_k du_k * x * prod of the others`. min and
//! max: the tangent of the chosen element, with equal shares among ties.
use super::dot::free;
use super::gather::{Check, Gather, GatherDims, five, others, shift};
use super::loops::{Loop, Trip};
use super::meaning::{self, converted};
use super::pointwise::Pw;
use super::reduce::{Monoid, counting};
use super::with_zeros;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, bind, current, int, lit, one, values1};
use crate::dtype::Dtype;
use crate::error::{Res, mixed_dtypes, not_linear, type_err};
use crate::factors::{By, Factors, In, Indexed, Out, Vectors};
use crate::lower::{Graph, TensorId, TensorIds, physical};
use crate::op::{Avals, Axes, Numbers, Op, Rules, Tans};
use crate::operators::emit;
use crate::ops::concatenate::Concatenate;
use crate::ops::iota::Iota;
use crate::ops::pad::Pad;
use crate::ops::reshape::Reshape;
use crate::ops::transpose::Transpose;
use crate::param::{Member, Param, ParamValue, Shape};
use crate::primitive;
use crate::support::{Move, Selector, Support, Supports, Within, within_written};
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::routine::{self, Combine, OutOfBounds, Routine};
use ferrax_kernel::{Bin, DType, Dims, ReduceKind};
use smallvec::smallvec;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScatterKind {
    Set,
    Add,
    Sub,
    Mul,
    Min,
    Max,
}
impl Member for ScatterKind {
    const ALL: &'static [(ScatterKind, &'static str)] = &[
        (ScatterKind::Set, "scatter"),
        (ScatterKind::Add, "scatter-add"),
        (ScatterKind::Sub, "scatter-sub"),
        (ScatterKind::Mul, "scatter-mul"),
        (ScatterKind::Min, "scatter-min"),
        (ScatterKind::Max, "scatter-max"),
    ];
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ScatterDims {
    pub update_window_dims: Dims,
    pub inserted_window_dims: Dims,
    pub scatter_dims_to_operand_dims: Dims,
    pub operand_batching_dims: Dims,
    pub scatter_indices_batching_dims: Dims,
}
impl ParamValue for ScatterDims {
    fn words() -> String {
        "ScatterDimensionNumbers".into()
    }
    fn to_param(&self) -> Param {
        Param::Struct(
            "ScatterDimensionNumbers",
            vec![
                ("update_window_dims", Param::ints(&self.update_window_dims)),
                ("inserted_window_dims", Param::ints(&self.inserted_window_dims)),
                ("scatter_dims_to_operand_dims", Param::ints(&self.scatter_dims_to_operand_dims)),
                ("operand_batching_dims", Param::ints(&self.operand_batching_dims)),
                ("scatter_indices_batching_dims", Param::ints(&self.scatter_indices_batching_dims)),
            ],
        )
    }
    fn from_param(p: &Param) -> Option<ScatterDims> {
        let [
            update_window_dims,
            inserted_window_dims,
            scatter_dims_to_operand_dims,
            operand_batching_dims,
            scatter_indices_batching_dims,
        ] = five(p)?;
        Some(ScatterDims {
            update_window_dims,
            inserted_window_dims,
            scatter_dims_to_operand_dims,
            operand_batching_dims,
            scatter_indices_batching_dims,
        })
    }
}

primitive! {
    pub struct Scatter = kind: ScatterKind {
        dimension_numbers: Box<ScatterDims>,
        indices_are_sorted: bool,
        mode: OutOfBounds,
        unique_indices: bool,
    } always_none { update_consts = hidden, update_jaxpr = hidden }
}

/// Where the one window begins that is at these numbers along some dimensions; `None` where it does not fit.
pub(super) fn first(
    numbers: &[i64],
    dims: &[usize],
    operand: &[usize],
    window: &[usize],
    mode: OutOfBounds,
) -> Option<Dims> {
    let mut start: Dims = operand.iter().map(|_| 0).collect();
    for (n, d) in numbers.iter().zip(dims) {
        let most = operand[*d].checked_sub(window[*d])?;
        let n = if mode == OutOfBounds::Clip { (*n).clamp(0, most as i64) } else { *n };
        start[*d] = usize::try_from(n).ok().filter(|n| *n <= most)?;
    }
    (numbers.len() == dims.len() && operand.iter().zip(window).all(|(n, w)| w <= n)).then_some(start)
}
/// `x` with `u`, of as many dimensions, at `start`, combined with what is there; `None` where that is a small part of it.
pub(super) fn written(cx: &dyn Cx, x: &Value, u: &Value, start: &[usize], combine: Option<Pw>) -> Res<Option<Value>> {
    let (n, w, size) = (x.shape(), u.shape(), Dims::new(x.shape()));
    if Dims::new(w).size().saturating_mul(4) < size.size() || x.dtype().is_key() || x.tape() > 0 {
        return Ok(None);
    }
    let around = (0..x.rank()).map(|d| (start[d] as i64, (n[d] - start[d] - w[d]) as i64, 0)).collect();
    let zero = cx.zeros(&Aval::of(x.dtype(), Dims::default()))?;
    let u = cx.bind1(Pad { padding_config: around }, &[cx.convert(u, x.dtype())?, zero])?;
    let mut inside: Option<Value> = None;
    for d in (0..x.rank()).filter(|d| w[*d] < n[*d]) {
        let k = cx.bind1(Iota { dtype: Dtype::I32, shape: size.clone().into(), dimension: d }, &[])?;
        let edge = |k: usize| cx.stretch(&int(Dtype::I32, k as i64), &size);
        let after = cx.pw2(Pw::Ge, &k, &edge(start[d])?)?;
        let both = cx.pw2(Pw::And, &after, &cx.pw2(Pw::Lt, &k, &edge(start[d] + w[d])?)?)?;
        inside = Some(match inside {
            None => both,
            Some(all) => cx.pw2(Pw::And, &all, &both)?,
        });
    }
    let new = combine.map_or(Ok(u.clone()), |f| cx.pw2(f, x, &u))?;
    Ok(Some(match inside {
        None => new,
        Some(p) => cx.select(&p, x, &new)?,
    }))
}

impl Scatter {
    /// The same that keeps the largest.
    pub(super) fn largest(&self) -> Scatter {
        self.with(ScatterKind::Max)
    }
    fn with(&self, kind: ScatterKind) -> Scatter {
        Scatter { kind, ..self.clone() }
    }
    /// The window's sizes on every operand axis, as `updates` has them.
    fn window(&self, operand: usize, updates: &[usize]) -> Dims {
        let d = &*self.dimension_numbers;
        let mut w = d.update_window_dims.iter().map(|k| updates[*k]);
        let point = |k: usize| d.inserted_window_dims.contains(&k) || d.operand_batching_dims.contains(&k);
        (0..operand).map(|k| if point(k) { 1 } else { w.next().unwrap_or(1) }).collect()
    }
    /// Reads `x` at the positions of the updates; zero for dropped updates.
    fn read(&self, cx: &dyn Cx, x: &Value, indices: &Value, updates: &[usize]) -> Res<Value> {
        let d = &*self.dimension_numbers;
        let dims = GatherDims {
            offset_dims: d.update_window_dims.clone(),
            collapsed_slice_dims: d.inserted_window_dims.clone(),
            start_index_map: d.scatter_dims_to_operand_dims.clone(),
            operand_batching_dims: d.operand_batching_dims.clone(),
            start_indices_batching_dims: d.scatter_indices_batching_dims.clone(),
        };
        let op = Gather {
            dimension_numbers: Box::new(dims),
            fill_value: Some(super::gather::zero_fill(x.dtype())),
            indices_are_sorted: self.indices_are_sorted,
            mode: self.mode,
            slice_sizes: self.window(x.rank(), updates),
            unique_indices: self.unique_indices,
        };
        cx.bind1(op, &[x.clone(), indices.clone()])
    }
    /// Which updates stay, where several set one element: bool, of the updates' shape.
    fn winners(&self, cx: &dyn Cx, operand: &Dims, indices: &Value, updates: &Dims) -> Res<Value> {
        // number the updates from 1, set the numbers, and compare each with the one that is read back
        let n = Dims::new(&[updates.size()]);
        let ids = cx.bind1(Iota { dtype: Dtype::I32, shape: n.into(), dimension: 0 }, &[])?;
        let ids = cx.reshape(&cx.add(&ids, &lit(Dtype::I32, 1.0))?, updates)?;
        let none = cx.zeros(&Aval::of(Dtype::I32, operand.clone()))?;
        let set = cx.bind1(self.with(ScatterKind::Set), &[none, indices.clone(), ids.clone()])?;
        let found = self.read(cx, &set, indices, updates)?;
        cx.pw2(Pw::Eq, &found, &ids)
    }
    fn indicator(cx: &dyn Cx, p: &Value, d: Dtype) -> Res<Value> {
        cx.convert(p, d)
    }
    /// Applies updates one by one: for products and extremes of complex numbers, whose parts cannot
    /// be combined separately.
    fn one_by_one(&self, x: &[Value]) -> Res<Values> {
        let [a, i, u] = x else { return type_err("scatter takes 3 operands") };
        if a.shape().contains(&0) || u.shape().contains(&0) {
            return Ok(values1(a.clone()));
        }
        let d = &*self.dimension_numbers;
        let last = i.rank() - 1;
        let lead = Dims::new(&i.shape()[..last]);
        // index vectors that name the batching axes too, in a dtype that holds their sizes
        let i = &if i.dtype().size() < 4 { converted(i, Dtype::I32, false) } else { i.clone() };
        let along = |axis: &usize| {
            let shape = lead.insert(last, 1);
            emit(Iota { dimension: *axis, dtype: i.dtype(), shape: Shape(shape) }, &[])
        };
        let all: Values = [i.clone()].into_iter().chain(d.scatter_indices_batching_dims.iter().map(along)).collect();
        let all = emit(Concatenate { dimension: last }, &all);
        let places = d.scatter_dims_to_operand_dims.concat(&d.operand_batching_dims);
        let n = lead.size();
        let reshaped = |v: &Value, shape: Dims| emit(Reshape { new_sizes: shape }, std::slice::from_ref(v));
        let all = reshaped(&all, Dims::new(&[n, places.len()]));
        // positions in front, then the window
        let positions = others(u.rank(), &d.update_window_dims);
        let window = Dims::new(u.shape()).pick(&d.update_window_dims);
        let permutation = positions.concat(&d.update_window_dims);
        let u = emit(Transpose { permutation }, std::slice::from_ref(u));
        let u = reshaped(&u, Dims::new(&[n]).concat(&window));
        let mut inserted: Vec<usize> =
            d.inserted_window_dims.iter().chain(d.operand_batching_dims.iter()).copied().collect();
        inserted.sort_unstable();
        let one = Scatter {
            kind: ScatterKind::Set,
            dimension_numbers: Box::new(ScatterDims {
                update_window_dims: (0..window.len()).collect(),
                inserted_window_dims: inserted.into_iter().collect(),
                scatter_dims_to_operand_dims: places,
                ..ScatterDims::default()
            }),
            unique_indices: true,
            ..self.clone()
        };
        let f = match self.kind {
            ScatterKind::Mul => Pw::Mul,
            ScatterKind::Min => Pw::Min,
            _ => Pw::Max,
        };
        let step = |cx: &dyn Cx, x: &[Value]| {
            let [a, i, u] = x else { return type_err("a carry and two elements") };
            let met = one.read(cx, a, i, u.shape())?;
            let next = cx.bind1(one.clone(), &[a.clone(), i.clone(), cx.pw2(f, &met, u)?])?;
            Ok(values1(next))
        };
        let ins = [a.aval(), all.aval().unbatched(0), u.aval().unbatched(0)];
        let (body, _) = current().recur().stage(&ins, &step)?;
        bind(&Loop::new(Trip::Static(n), 0, 1, body).into(), &[a.clone(), all, u])
    }
    /// dy of mul: `dx prod u + scatter-add of du_k (x prod of the others)`, the others' product made without dividing by zero.
    fn product_jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<Tan> {
        let (a, i, u) = (&x[0], &x[1], &x[2]);
        let d = a.dtype();
        let (zero, ones) = (lit(d, 0.0), lit(d, 1.0));
        let mut dy = match &dx[0] {
            Some(t) => Some(cx.bind1(self.clone(), &[t.clone(), i.clone(), u.clone()])?),
            None => None,
        };
        if let Some(t) = &dx[2] {
            let shape = Dims::new(u.shape());
            let is0 = cx.pw2(Pw::Eq, u, &zero)?;
            let safe = cx.select(&is0, u, &cx.broadcast(&ones, &shape, &[])?)?;
            let product = cx.bind1(self.clone(), &[a.clone(), i.clone(), safe.clone()])?;
            let none = cx.zeros(&a.aval())?;
            let count =
                cx.bind1(self.with(ScatterKind::Add), &[none.clone(), i.clone(), Self::indicator(cx, &is0, d)?])?;
            let (p, z) = (self.read(cx, &product, i, &shape)?, self.read(cx, &count, i, &shape)?);
            let own = Self::indicator(cx, &is0, d)?;
            // no other element is zero
            let clear = cx.pw2(Pw::Eq, &z, &own)?;
            let others = cx.div(&p, &safe)?;
            let others = cx.select(&clear, &cx.zeros(&others.aval())?, &others)?;
            let term = cx.mul(t, &others)?;
            dy = cx.add_tan(dy, Some(cx.bind1(self.with(ScatterKind::Add), &[none, i.clone(), term])?))?;
        }
        Ok(dy)
    }
    /// dy of min and max: the mean of the tangents of all that equal the result.
    fn extremum_jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan], y: &Value) -> Res<Tan> {
        let (a, i, u) = (&x[0], &x[1], &x[2]);
        let d = counting(a.dtype());
        let shape = Dims::new(u.shape());
        let at = self.read(cx, y, i, &shape)?;
        let mine = Self::indicator(cx, &cx.pw2(Pw::Eq, a, y)?, d)?;
        let theirs = Self::indicator(cx, &cx.pw2(Pw::Eq, u, &at)?, d)?;
        let add = self.with(ScatterKind::Add);
        let count = cx.bind1(add.clone(), &[mine.clone(), i.clone(), theirs.clone()])?;
        let start = cx.mul(&cx.convert(&cx.inst(&dx[0], &a.aval())?, d)?, &mine)?;
        let terms = cx.mul(&cx.convert(&cx.inst(&dx[2], &u.aval())?, d)?, &theirs)?;
        let sum = cx.bind1(add, &[start, i.clone(), terms])?;
        Ok(Some(cx.convert(&cx.div(&sum, &count)?, a.dtype())?))
    }
}

impl Rules for Scatter {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a, i, u] = x else { return type_err(format!("{} takes 3 operands, got {}", self.kind.name(), x.len())) };
        let d = &*self.dimension_numbers;
        if a.tape + i.tape + u.tape > 0 {
            return type_err(format!("{} does not accept a tape", self.kind.name()));
        }
        let check = Check { op: "scatter", operand: a, indices: i };
        check.indices()?;
        if a.dtype != u.dtype {
            return mixed_dtypes("scatter", &[a.dtype.long(), u.dtype.long()]);
        }
        check.sorted("update_window_dims", &d.update_window_dims)?;
        check.within("update_window_dims", &d.update_window_dims, u.rank())?;
        let rank = d.update_window_dims.len() + i.rank() - 1;
        if u.rank() != rank {
            return type_err(format!("Updates tensor must be of rank {rank}; got {}.", u.rank()));
        }
        for (what, dims) in
            [("inserted_window_dims", &d.inserted_window_dims), ("operand_batching_dims", &d.operand_batching_dims)]
        {
            check.sorted(what, dims)?;
            check.within(what, dims, a.rank())?;
        }
        check.disjoint("inserted_window_dims", &d.inserted_window_dims, &d.operand_batching_dims)?;
        let size = d.update_window_dims.len() + d.inserted_window_dims.len() + d.operand_batching_dims.len();
        if size != a.rank() {
            return type_err(format!(
                "Scatter op has window of size {size}; doesn't match operand of rank {}.",
                a.rank()
            ));
        }
        check.map("scatter_dims_to_operand_dims", &d.scatter_dims_to_operand_dims)?;
        check.disjoint("scatter_dims_to_operand_dims", &d.scatter_dims_to_operand_dims, &d.operand_batching_dims)?;
        check.batching("scatter_indices_batching_dims", &d.operand_batching_dims, &d.scatter_indices_batching_dims)?;
        let window = self.window(a.rank(), &u.shape);
        if let Some(k) = (0..a.rank()).find(|k| window[*k] > a.shape[*k].max(1)) {
            let points = |k: &usize| d.inserted_window_dims.contains(k) || d.operand_batching_dims.contains(k);
            return type_err(format!(
                "Bounds of the window dimensions of updates must not exceed the bounds of the corresponding dimensions of operand. For dimension {}, updates bound is {}, operand bound is {}.",
                d.update_window_dims[k - (0..k).filter(points).count()],
                window[k],
                a.shape[k]
            ));
        }
        let positions: Dims = others(u.rank(), &d.update_window_dims).iter().map(|k| u.shape[*k]).collect();
        if let Some(k) = (0..positions.len()).find(|k| positions[*k] != i.shape[*k]) {
            return type_err(format!(
                "Bounds of the scatter dimensions of updates must be the same as the bounds of the corresponding dimensions of scatter indices. For scatter dimension {k}, updates bound is {}, indices bound is {}.",
                positions[k], i.shape[k]
            ));
        }
        Ok(smallvec![Aval { weak: a.weak && u.weak, ..a.clone() }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind(&self.clone().into(), x)?;
        if dx[0].is_none() && dx[2].is_none() {
            return Ok(with_zeros(y));
        }
        let dy = match self.kind {
            ScatterKind::Set | ScatterKind::Add | ScatterKind::Sub => {
                let t = cx.inst(&dx[0], &x[0].aval())?;
                let u = cx.inst(&dx[2], &x[2].aval())?;
                Some(cx.bind1(self.clone(), &[t, x[1].clone(), u])?)
            }
            ScatterKind::Mul => self.product_jvp(cx, x, dx)?,
            ScatterKind::Min | ScatterKind::Max => self.extremum_jvp(cx, x, dx, &y[0])?,
        };
        Ok((values1(one(y)?), smallvec![dy]))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let mut out: Tans = smallvec![None, None, None];
        let Some(ct) = &ct[0] else { return Ok(out) };
        let i = x[1].value()?;
        let u = x[2].aval();
        match self.kind {
            ScatterKind::Add | ScatterKind::Sub => {
                if x[0].is_linear() {
                    out[0] = Some(ct.clone());
                }
                if x[2].is_linear() {
                    let back = self.read(cx, ct, i, &u.shape)?;
                    out[2] = Some(if self.kind == ScatterKind::Sub { cx.neg(&back)? } else { back });
                }
            }
            ScatterKind::Set => {
                if x[0].is_linear() {
                    // elements that are replaced have no cotangent
                    let (whole, support) = cx.bare(ct);
                    let y = cx.bind1(self.clone(), &[whole, i.clone(), cx.zeros(&u)?])?;
                    let shape = Dims::new(ct.shape());
                    let axes: Vec<usize> = (0..shape.len()).collect();
                    let (set, i, part) = (self.clone(), i.clone(), u.clone());
                    let f: Move = Arc::new(move |cx, w, other| {
                        cx.bind1(set.clone(), &[w.clone(), i.clone(), cx.full(other, &part.with_dtype(w.dtype()))?])
                    });
                    out[0] = Some(cx.supported(cx.bare(&y).0, support.by(&shape, &shape, &axes, &f))?);
                }
                if x[2].is_linear() {
                    let mut back = self.read(cx, ct, i, &u.shape)?;
                    if !self.unique_indices {
                        let won = self.winners(cx, &x[0].aval().shape, i, &u.shape)?;
                        let (plain, support) = cx.bare(&back);
                        let kept = cx.select(&won, &cx.zeros(&plain.aval())?, &plain)?;
                        // an update that another one replaced is not read
                        back = if support.is_everywhere() {
                            kept
                        } else {
                            let lost = Selector::mask(&Dims::new(kept.shape()), move |_| Ok(won.clone()));
                            cx.supported(kept, support.and(&Support::masked_already(lost)))?
                        };
                    }
                    out[2] = Some(back);
                }
            }
            ScatterKind::Mul if x[0].is_linear() && !x[2].is_linear() => {
                out[0] = Some(cx.bind1(self.clone(), &[ct.clone(), i.clone(), x[2].value()?.clone()])?);
            }
            _ => return not_linear(self.kind.name()),
        }
        Ok(out)
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let n = &*self.dimension_numbers;
        let operand = cx.batch_at(&x[0], d[0], ax.n, 0)?;
        let updates = cx.batch_at(&x[2], d[2], ax.n, 0)?;
        let indices = cx.to_front(&x[1], d[1])?;
        let up = |v: &Dims| shift(v, 1);
        let lead = |v: &Dims| Dims::new(&[0]).concat(&up(v));
        let mut dims = ScatterDims {
            update_window_dims: up(&n.update_window_dims),
            inserted_window_dims: up(&n.inserted_window_dims),
            scatter_dims_to_operand_dims: up(&n.scatter_dims_to_operand_dims),
            operand_batching_dims: up(&n.operand_batching_dims),
            scatter_indices_batching_dims: n.scatter_indices_batching_dims.clone(),
        };
        if d[1].is_some() {
            dims.operand_batching_dims = lead(&n.operand_batching_dims);
            dims.scatter_indices_batching_dims = lead(&n.scatter_indices_batching_dims);
        } else {
            dims.update_window_dims = lead(&n.update_window_dims);
        }
        let op = Scatter { dimension_numbers: Box::new(dims), ..self.clone() };
        Ok((cx.bind(&op.into(), &[operand, indices, updates])?, smallvec![Some(0)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let of_masks = match self.kind {
            ScatterKind::Set => self.clone(),
            ScatterKind::Add | ScatterKind::Sub => self.largest(),
            _ => return Ok(None),
        };
        within_written(cx, &self.clone().into(), of_masks.into(), x, s, 2)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors { addresses: true, ..Factors::whole(x, out) };
        let d = &*self.dimension_numbers;
        let (operand, updates) = (&x[0], &x[2]);
        let kept = free(operand.rank(), &d.inserted_window_dims, &d.operand_batching_dims);
        for (k, w) in kept.iter().zip(d.update_window_dims.iter()) {
            if updates.shape[*w] == operand.shape[*k] && !d.scatter_dims_to_operand_dims.contains(k) {
                f.link(operand.shape[*k], &[In(0, *k), In(2, *w), Out(0, *k)]);
            }
        }
        let batch = free(updates.rank(), &d.update_window_dims, &[]);
        for (k, i) in d.operand_batching_dims.iter().zip(d.scatter_indices_batching_dims.iter()) {
            f.link(operand.shape[*k], &[In(0, *k), In(1, *i), In(2, batch[*i]), Out(0, *k)]);
        }
        for k in 0..operand.rank() {
            if f.ins[0][k].is_empty() {
                f.keep(&[In(0, k), Out(0, k)]);
            }
        }
        let (window, to) = (self.window(operand.rank(), &updates.shape), &d.scatter_dims_to_operand_dims);
        for (component, dim) in to.iter().copied().enumerate().filter(|i| window[i.1] == 1) {
            let windows = to.iter().map(|k| (*k, window[*k])).collect();
            let clamped = self.mode == OutOfBounds::Clip;
            f.indexed.push(Indexed { dim, by: By::Vectors(Vectors { component, windows, clamped, read: None }) });
        }
        // each device takes some of the updates
        let monoid = match self.kind {
            ScatterKind::Add => Monoid::of_sum(operand.dtype),
            ScatterKind::Min => Monoid::Min,
            ScatterKind::Max => Monoid::Max,
            _ => return f,
        };
        if !operand.dtype.is_complex() || monoid == Monoid::Sum {
            let others = (0..batch.len()).filter(|i| !d.scatter_indices_batching_dims.contains(i));
            others.for_each(|i| f.fold(updates.shape[batch[i]], monoid, &[In(1, i), In(2, batch[i])]));
        }
        if monoid == Monoid::Sum {
            f.start.push(0);
        }
        f
    }
    fn placed(&self, cx: &dyn Cx, x: &[Value], numbers: Numbers) -> Res<Option<Value>> {
        let d = &*self.dimension_numbers;
        let combine = match self.kind {
            ScatterKind::Set => None,
            _ if x[0].dtype().is_bool() => return Ok(None),
            ScatterKind::Add => Some(Pw::Add),
            ScatterKind::Sub => Some(Pw::Sub),
            ScatterKind::Mul => Some(Pw::Mul),
            _ if x[0].dtype().is_complex() => return Ok(None),
            ScatterKind::Min => Some(Pw::Min),
            ScatterKind::Max => Some(Pw::Max),
        };
        let (operand, window) = (x[0].shape(), self.window(x[0].rank(), x[2].shape()));
        let Some(numbers) = numbers(&x[1]).filter(|_| x[1].rank() == 1) else { return Ok(None) };
        let Some(start) = first(&numbers, &d.scatter_dims_to_operand_dims, operand, &window, self.mode) else {
            return Ok(None);
        };
        let u = cx.reshape(&x[2], &window)?;
        written(cx, &x[0], &u, &start, combine)
    }
    fn on_rows(&self, _: &[Aval], _: &Aval) -> Option<Op> {
        Some(Scatter { mode: OutOfBounds::FillOrDrop, indices_are_sorted: false, ..self.clone() }.into())
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        let (d, [operand, indices, updates]) = (&*self.dimension_numbers, [0, 1, 2].map(|i| &t.specs[i].dims));
        let kept = free(t.x[0].rank(), &d.inserted_window_dims, &d.operand_batching_dims);
        let windows = || kept.iter().zip(d.update_window_dims.iter());
        let fits = |(o, u): (&usize, &usize)| {
            let whole = operand[*o].is_empty() && updates[*u].is_empty();
            whole || t.x[0].shape[*o] == t.x[2].shape[*u] && operand[*o] == updates[*u]
        };
        let queries = free(t.x[2].rank(), &d.update_window_dims, &[]);
        let beside = |k: &usize| !d.scatter_indices_batching_dims.contains(k);
        let batch = d.operand_batching_dims.iter().zip(d.scatter_indices_batching_dims.iter());
        let differ = batch.clone().any(|(o, i)| {
            let mut sizes = [&operand[*o], &indices[*i], &updates[queries[*i]]].into_iter().filter(|c| !c.is_empty());
            sizes.next().is_some_and(|first| sizes.any(|c| c != first))
        });
        let resolved = !differ
            && windows().all(fits)
            && d.inserted_window_dims.iter().all(|k| operand[*k].is_empty())
            && queries.iter().enumerate().all(|(k, u)| !beside(&k) || updates[*u].is_empty())
            && (0..indices.len()).all(|k| !beside(&k) || indices[k].is_empty());
        if !resolved {
            t.refuse(|| {
                format!(
                    "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update as out sharding \
                     could not be resolved unambiguously (or would require collectives on inputs). Got operand={}, indices={}, updates={}",
                    t.type_text(0),
                    t.type_text(1),
                    t.type_text(2)
                )
            })?;
        }
        let mut spec = t.specs[0].clone();
        for (o, i) in batch.filter(|(o, _)| operand[**o].is_empty()) {
            let other = if indices[*i].is_empty() { &updates[queries[*i]] } else { &indices[*i] };
            spec.dims[*o] = other.clone();
        }
        Ok(smallvec![spec])
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let d = &*self.dimension_numbers;
        let p = physical(&out[0]);
        let combine = match self.kind {
            ScatterKind::Set => Combine::Set,
            ScatterKind::Add if p.dtype == DType::Bool => Combine::Reduce(ReduceKind::Or),
            ScatterKind::Mul if p.dtype == DType::Bool => Combine::Reduce(ReduceKind::And),
            ScatterKind::Add => Combine::Reduce(ReduceKind::Sum),
            ScatterKind::Sub => Combine::Sub,
            ScatterKind::Mul => Combine::Reduce(ReduceKind::Prod),
            ScatterKind::Min => Combine::Reduce(ReduceKind::Min),
            ScatterKind::Max => Combine::Reduce(ReduceKind::Max),
        };
        let r = |b: &Graph, u: TensorId| routine::Scatter {
            operand: out[0].shape.clone(),
            indices: b.shape(x[1]),
            updates: b.shape(u),
            update_window_dims: d.update_window_dims.clone(),
            inserted_window_dims: d.inserted_window_dims.clone(),
            scatter_dims_to_operand_dims: d.scatter_dims_to_operand_dims.clone(),
            operand_batching_dims: d.operand_batching_dims.clone(),
            scatter_indices_batching_dims: d.scatter_indices_batching_dims.clone(),
            combine,
            mode: self.mode,
            unique: self.unique_indices,
            dtype: b.dtype(u),
            index_dtype: b.dtype(x[1]),
        };
        let one = |b: &mut Graph, a: TensorId, u: TensorId| {
            b.routine(Routine::Scatter(r(b, u)), &[a, x[1], u], &[out[0].shape.clone()])[0]
        };
        if let Some(y) = self.in_known_place(b, x) {
            return Ok(smallvec![y]);
        }
        Ok(smallvec![match (b.parts(x[0]), b.parts(x[2])) {
            (Some((a0, a1)), Some((u0, u1))) => {
                if !matches!(self.kind, ScatterKind::Set | ScatterKind::Add | ScatterKind::Sub) {
                    return meaning::lower(b, x, &|x| self.one_by_one(x));
                }
                let (p, q) = (one(b, a0, u0), one(b, a1, u1));
                b.pair(p, q)
            }
            _ => {
                let lane = if self.combines_many(b, x) { p.dtype.lane() } else { p.dtype };
                let [operand, updates] = [x[0], x[2]].map(|v| b.convert(v, lane));
                let y = one(b, operand, updates);
                b.convert(y, p.dtype)
            }
        }])
    }
}

impl Scatter {
    /// Whether many floats may meet in one element: they are combined in the dtype of arithmetic and
    /// rounded once, unless few updates of a large operand would convert all of it.
    fn combines_many(&self, b: &Graph, x: &[TensorId]) -> bool {
        let few = 16 * b.shape(x[2]).size() < b.shape(x[0]).size() && b.constant_of(x[0]).is_none();
        let rounds = matches!(self.kind, ScatterKind::Add | ScatterKind::Sub | ScatterKind::Mul);
        b.dtype(x[0]).is_float() && rounds && !self.unique_indices && !few
    }
    /// One window at a constant position in bounds: it is read, combined with the updates, and
    /// written back.
    fn in_known_place(&self, b: &mut Graph, x: &[TensorId]) -> Option<TensorId> {
        let d = &*self.dimension_numbers;
        let (operand, updates) = (b.shape(x[0]), b.shape(x[2]));
        let window: Dims = updates.pick(&d.update_window_dims);
        let is_pair = b.parts(x[0]).is_some();
        let combined = match self.kind {
            ScatterKind::Set => None,
            ScatterKind::Sub => Some(Bin::Sub),
            ScatterKind::Add => Some(Bin::Add),
            _ if is_pair => return None,
            ScatterKind::Mul => Some(Bin::Mul),
            ScatterKind::Min => Some(Bin::Min),
            ScatterKind::Max => Some(Bin::Max),
        };
        let is_bool = b.dtype(x[0]) == DType::Bool;
        if window.size() != updates.size() || !d.operand_batching_dims.is_empty() || is_bool && combined.is_some() {
            return None;
        }
        let known = b.known(x[1]).filter(|k| k.len() == d.scatter_dims_to_operand_dims.len())?;
        let (mut starts, mut sizes) = (vec![0; operand.len()], Dims::new(&vec![1; operand.len()]));
        for (axis, start) in d.scatter_dims_to_operand_dims.iter().zip(&known) {
            starts[*axis] = *start;
        }
        let kept = (0..operand.len()).filter(|k| !d.inserted_window_dims.contains(k));
        kept.zip(&window[..]).for_each(|(k, n)| sizes[k] = *n);
        // windows that reach outside are moved or dropped
        let fits = |k: usize| starts[k] >= 0 && starts[k] as u128 + sizes[k] as u128 <= operand[k] as u128;
        if !(0..operand.len()).all(fits) {
            return None;
        }
        let mut window = b.reshape(x[2], sizes.clone());
        if let Some(f) = combined {
            let from: Vec<usize> = starts.iter().map(|s| *s as usize).collect();
            let old = b.slice(x[0], &from, &vec![1; operand.len()], sizes);
            window = match (b.parts(old), b.parts(window)) {
                (Some((p, q)), Some((u, v))) => {
                    let (p, q) = (b.bin(f, p, u), b.bin(f, q, v));
                    b.pair(p, q)
                }
                _ => b.bin(f, old, window),
            };
        }
        Some(b.updated(x[0], window, &starts))
    }
}

/// The scatter that writes one window at a start for each batch element: a batched
/// dynamic_update_slice.
pub(super) fn windows(rank: usize) -> ScatterDims {
    ScatterDims {
        update_window_dims: (1..=rank).collect(),
        scatter_dims_to_operand_dims: (1..=rank).collect(),
        operand_batching_dims: [0].into(),
        scatter_indices_batching_dims: [0].into(),
        ..ScatterDims::default()
    }
}
