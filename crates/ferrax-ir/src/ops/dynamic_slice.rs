//! dynamic_slice: `out = x[i : i + sizes]`; dynamic_update_slice: `x` with `u` written at `i`. Starts are rank-0 integers, one for each
//! axis, clamped so that the window is inside the operand.
use super::gather::{Gather, GatherDims};
use super::linear_jvp;
use super::scatter::{Scatter, ScatterKind, first, windows, written};
use super::with_zeros;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int};
use crate::error::{Res, mixed_dtypes, type_err};
use crate::factors::{By, Factors, First, Indexed};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Numbers, Op, Rules, Tans};
use crate::ops::concatenate::Concatenate;
use crate::primitive;
use crate::support::{Move, Supports, Within, within_moved, within_written};
use crate::typing::{Specs, Sums, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use ferrax_kernel::routine::{OutOfBounds, Routine};
use smallvec::smallvec;
use std::sync::Arc;

primitive! {
    pub struct DynamicSlice = "dynamic_slice" {
        slice_sizes: Dims,
    }
}
primitive! {
    pub struct DynamicUpdateSlice = "dynamic_update_slice" {}
}

fn check_starts(name: &str, a: &Aval, starts: &[Aval]) -> Res<()> {
    if starts.len() != a.rank() {
        return type_err(format!(
            "{name} start_indices must have length equal to the number of dimensions of the operand, got indices of length {} for operand shape {}.",
            starts.len(),
            a.shape
        ));
    }
    if starts.iter().any(|s| !s.dtype.is_int()) {
        let dtypes: Vec<&str> = starts.iter().map(|s| s.dtype.long()).collect();
        let colon = if name == "dynamic_slice" { ":" } else { "" };
        return type_err(format!(
            "index arguments to {name} must be integers of the same type, got{colon} {}",
            dtypes.join(", ")
        ));
    }
    if let Some(s) = starts.iter().find(|s| s.rank() > 0) {
        return type_err(format!("index arguments to {name} must be integer scalars, got {}", s.long()));
    }
    Ok(())
}
/// The starts of all lanes as `[n, rank]`.
fn starts(cx: &dyn Cx, n: usize, x: &[Value], d: &[Dim]) -> Res<Value> {
    let dtype = x[0].dtype();
    let column = |(v, d): (&Value, &Dim)| {
        let v = cx.convert(v, dtype)?;
        let v = if d.is_some() { v } else { cx.broadcast(&v, &Dims::new(&[n]), &[])? };
        cx.reshape(&v, &Dims::new(&[n, 1]))
    };
    let columns: Values = x.iter().zip(d).map(column).collect::<Res<_>>()?;
    if columns.len() == 1 { Ok(columns[0].clone()) } else { cx.bind1(Concatenate { dimension: 1 }, &columns) }
}
/// Starts in one dtype, as the routine requires: i32 stays, every other dtype becomes i64.
/// Starts that constants determine, clamped so that the window is in bounds.
fn known_starts(b: &Graph, starts: &[TensorId], operand: &[usize], sizes: &[usize]) -> Option<Vec<i64>> {
    let known = starts.iter().map(|s| b.known(*s)?.first().copied()).collect::<Option<Vec<i64>>>()?;
    let last = operand.iter().zip(sizes).map(|(n, w)| (n - w) as i64);
    Some(known.iter().zip(last).map(|(s, last)| (*s).clamp(0, last)).collect())
}
fn lowered_starts(b: &mut Graph, x: &[TensorId]) -> TensorIds {
    use ferrax_kernel::DType::{I32, I64};
    let d = if x.iter().all(|v| b.dtype(*v) == I32) { I32 } else { I64 };
    x.iter().map(|v| b.convert(*v, d)).collect()
}

impl Rules for DynamicSlice {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let Some((a, s)) = x.split_first() else { return type_err("dynamic_slice takes an operand") };
        check_starts("dynamic_slice", a, s)?;
        if self.slice_sizes.len() != a.rank() || (0..a.rank()).any(|k| self.slice_sizes[k] > a.shape[k]) {
            return type_err(format!(
                "slice slice_sizes must be less than or equal to operand shape, got slice_sizes {} for operand shape {}.",
                self.slice_sizes, a.shape
            ));
        }
        Ok(smallvec![a.with_shape(self.slice_sizes.clone())])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let mut out: Tans = smallvec![None; x.len()];
        if let Some(ct) = &ct[0] {
            let index: Values = x[1..].iter().map(|i| i.value().cloned()).collect::<Res<_>>()?;
            let put = move |cx: &dyn Cx, around: Value, part: &Value| {
                let args: Values = [around, part.clone()].into_iter().chain(index.iter().cloned()).collect();
                cx.bind1(DynamicUpdateSlice {}, &args)
            };
            let (part, support) = cx.bare(ct);
            let a = x[0].aval();
            let y = put(cx, cx.zeros(&a.strong())?, &part)?;
            let cut: Vec<usize> = (0..a.rank()).filter(|k| self.slice_sizes[*k] != a.shape[*k]).collect();
            let whole = a.clone();
            let f: Move = Arc::new(move |cx, w, other| put(cx, cx.full(other, &whole.with_dtype(w.dtype()))?, w));
            out[0] = Some(cx.supported(cx.bare(&y).0, support.into_zeros(&self.slice_sizes, &a.shape, &cut, &f))?);
        }
        Ok(out)
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let rank = self.slice_sizes.len();
        if d[1..].iter().all(Option::is_none) {
            let Some(at) = d[0] else { return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None])) };
            let mut args: Values = x.into();
            let zero = x.get(1).map_or(int(crate::Dtype::I32, 0), |v| int(v.dtype(), 0));
            args.insert(1 + at, zero);
            let op = DynamicSlice { slice_sizes: self.slice_sizes.insert(at, ax.n) };
            return Ok((cx.bind(&op.into(), &args)?, smallvec![Some(at)]));
        }
        let index = starts(cx, ax.n, &x[1..], &d[1..])?;
        let lanes = d[0].is_some() as usize;
        let mut dims = GatherDims {
            offset_dims: (1..=rank).collect(),
            start_index_map: (lanes..rank + lanes).collect(),
            ..GatherDims::default()
        };
        let mut slice_sizes = self.slice_sizes.clone();
        if lanes == 1 {
            dims.operand_batching_dims = [0].into();
            dims.start_indices_batching_dims = [0].into();
            slice_sizes = slice_sizes.insert(0, 1.min(ax.n));
        }
        let op = Gather {
            dimension_numbers: Box::new(dims),
            fill_value: None,
            indices_are_sorted: false,
            mode: OutOfBounds::Clip,
            slice_sizes,
            unique_indices: false,
        };
        Ok((cx.bind(&op.into(), &[cx.to_front(&x[0], d[0])?, index])?, smallvec![Some(0)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let cut = |k: &usize| self.slice_sizes[*k] != x[0].shape()[*k];
        within_moved(cx, &self.clone().into(), x, s, &(0..x[0].rank()).filter(cut).collect::<Vec<_>>())
    }
    fn sums(&self) -> Sums {
        Sums::Sliced
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::along(x, out, |d| x[0].shape[d] == out[0].shape[d]);
        let rows = |dim: usize| By::Rows { first: First::Operand(1 + dim), step: 1 };
        let cut = (0..x[0].rank()).filter(|d| x[0].shape[*d] != out[0].shape[*d]);
        f.indexed = cut.map(|dim| Indexed { dim, by: rows(dim) }).collect();
        f
    }
    fn local(&self, _: &[Aval], out: &[Aval]) -> Option<Op> {
        Some(DynamicSlice { slice_sizes: out[0].shape.clone() }.into())
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        t.varying("dynamic_slice")
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        if let Some(starts) = known_starts(b, &x[1..], &b.shape(x[0]), &self.slice_sizes) {
            let starts: Vec<usize> = starts.iter().map(|s| *s as usize).collect();
            return Ok(smallvec![b.slice(x[0], &starts, &vec![1; starts.len()], self.slice_sizes.clone())]);
        }
        let s = lowered_starts(b, &x[1..]);
        let one = |b: &mut Graph, v: TensorId| {
            if out[0].rank() == 0 {
                return v;
            }
            let r = Routine::DynamicSlice {
                operand: b.shape(v),
                sizes: out[0].shape.clone(),
                dtype: b.dtype(v),
                index_dtype: b.dtype(s[0]),
            };
            let mut ins: TensorIds = smallvec![v];
            ins.extend(s.iter().copied());
            b.routine(r, &ins, &[out[0].shape.clone()])[0]
        };
        Ok(smallvec![match b.parts(x[0]) {
            Some((p, q)) => {
                let (p, q) = (one(b, p), one(b, q));
                b.pair(p, q)
            }
            None => one(b, x[0]),
        }])
    }
}

impl Rules for DynamicUpdateSlice {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a, u, s @ ..] = x else { return type_err("dynamic_update_slice takes an operand and an update") };
        if a.rank() != u.rank() {
            return type_err(format!(
                "dynamic_update_slice update must have the same rank as operand, got update shape {} for operand shape {}.",
                u.shape, a.shape
            ));
        }
        if a.dtype != u.dtype {
            return mixed_dtypes("dynamic_update_slice", &[a.dtype.long(), u.dtype.long()]);
        }
        check_starts("dynamic_update_slice", a, s)?;
        if (0..a.rank()).any(|k| u.shape[k] > a.shape[k]) {
            return type_err(format!(
                "dynamic_update_slice update shape must be smaller than operand shape, got update shape {} for operand shape {}.",
                u.shape, a.shape
            ));
        }
        Ok(smallvec![Aval { weak: a.weak && u.weak, ..a.clone() }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind(&self.clone().into(), x)?;
        if dx[0].is_none() && dx[1].is_none() {
            return Ok(with_zeros(y));
        }
        let mut args: Values = x.into();
        args[0] = cx.inst(&dx[0], &x[0].aval())?;
        args[1] = cx.inst(&dx[1], &x[1].aval())?;
        let dy = cx.bind1(self.clone(), &args)?;
        Ok((y, smallvec![Some(dy)]))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let mut out: Tans = smallvec![None; x.len()];
        let Some(ct) = &ct[0] else { return Ok(out) };
        let index: Values = x[2..].iter().map(|i| i.value().cloned()).collect::<Res<_>>()?;
        if x[0].is_linear() {
            let (u, index) = (x[1].aval(), index.clone());
            let put = move |cx: &dyn Cx, around: &Value, part: Value| {
                let args: Values = [around.clone(), part].into_iter().chain(index.iter().cloned()).collect();
                cx.bind1(DynamicUpdateSlice {}, &args)
            };
            let (whole, support) = cx.bare(ct);
            let y = put(cx, &whole, cx.zeros(&u.strong())?)?;
            let shape = Dims::new(ct.shape());
            let axes: Vec<usize> = (0..shape.len()).collect();
            let f: Move = Arc::new(move |cx, w, other| put(cx, w, cx.full(other, &u.with_dtype(w.dtype()))?));
            out[0] = Some(cx.supported(cx.bare(&y).0, support.by(&shape, &shape, &axes, &f))?);
        }
        if x[1].is_linear() {
            let mut args: Values = smallvec![ct.clone()];
            args.extend(index);
            out[1] = Some(cx.bind1(DynamicSlice { slice_sizes: x[1].aval().shape }, &args)?);
        }
        Ok(out)
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        if d.iter().all(Option::is_none) {
            return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None]));
        }
        let (operand, update) = (cx.batch_at(&x[0], d[0], ax.n, 0)?, cx.batch_at(&x[1], d[1], ax.n, 0)?);
        if d[2..].iter().all(Option::is_none) {
            let zero = x.get(2).map_or(int(crate::Dtype::I32, 0), |v| int(v.dtype(), 0));
            let mut args: Values = smallvec![operand, update, zero];
            args.extend(x[2..].iter().cloned());
            return Ok((cx.bind(&self.clone().into(), &args)?, smallvec![Some(0)]));
        }
        let index = starts(cx, ax.n, &x[2..], &d[2..])?;
        let op = Scatter {
            kind: ScatterKind::Set,
            dimension_numbers: Box::new(windows(x[0].rank() - d[0].is_some() as usize)),
            indices_are_sorted: true,
            mode: OutOfBounds::Clip,
            unique_indices: true,
        };
        Ok((cx.bind(&op.into(), &[operand, index, update])?, smallvec![Some(0)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        within_written(cx, &self.clone().into(), self.clone().into(), x, s, 1)
    }
    fn sums(&self) -> Sums {
        Sums::Padded
    }
    fn placed(&self, cx: &dyn Cx, x: &[Value], numbers: Numbers) -> Res<Option<Value>> {
        let all: Option<Vec<i64>> = x[2..].iter().map(|v| numbers(v)?.first().copied()).collect();
        let dims: Dims = (0..x[0].rank()).collect();
        let start = all.and_then(|n| first(&n, &dims, x[0].shape(), x[1].shape(), OutOfBounds::Clip));
        start.map_or(Ok(None), |start| written(cx, &x[0], &x[1], &start, None))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::along(x, out, |d| x[0].shape[d] == x[1].shape[d]);
        let less: Vec<usize> = (0..x[0].rank()).filter(|d| x[0].shape[*d] != x[1].shape[*d]).collect();
        if let [dim] = less[..] {
            f.indexed.push(Indexed { dim, by: By::Update { first: First::Operand(2 + dim) } });
        }
        f
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        if t.specs[0] != t.specs[1] || t.typed[0] != t.typed[1] {
            t.refuse(|| {
                let of = |i: usize| format!("{}{}", t.x[i].long(), if t.typed[i] { t.axes_text() } else { String::new() });
                format!(
                    "dynamic_update_slice operand sharding must be equal to update sharding, got operand sharding {} and update sharding {}.",
                    of(0),
                    of(1)
                )
            })?;
        }
        Ok(t.as_first())
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        if let Some(starts) = known_starts(b, &x[2..], &out[0].shape, &b.shape(x[1])) {
            return Ok(smallvec![b.updated(x[0], x[1], &starts)]);
        }
        let s = lowered_starts(b, &x[2..]);
        let one = |b: &mut Graph, v: TensorId, u: TensorId| {
            if out[0].rank() == 0 {
                return u;
            }
            let r = Routine::DynamicUpdateSlice {
                operand: b.shape(v),
                update: b.shape(u),
                dtype: b.dtype(v),
                index_dtype: b.dtype(s[0]),
            };
            let mut ins: TensorIds = smallvec![v, u];
            ins.extend(s.iter().copied());
            b.routine(r, &ins, &[out[0].shape.clone()])[0]
        };
        Ok(smallvec![match (b.parts(x[0]), b.parts(x[1])) {
            (Some((p, q)), Some((u, v))) => {
                let (p, q) = (one(b, p, u), one(b, q, v));
                b.pair(p, q)
            }
            _ => one(b, x[0], x[1]),
        }])
    }
}
