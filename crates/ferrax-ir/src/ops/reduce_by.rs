//! reduce, reduce_window: arrays of one shape, combined by a computation on scalars, for which the initial values are an identity. numpy:
//! `frompyfunc(f).reduce`. Elements outside the operands count as the initial value.
//!
//! ```text
//! jaxpr: (a1.., b1..) -> (c1..)     operands: arrays x1.., then their initial values
//! ```
//!
//! INVARIANT: the computation is associative (and for `reduce` commutative): elements are combined in pairs, of which there are few rounds.
//! Each op means a composition of others ([`Folded::meaning`]), by which it is differentiated and lowered.
use super::slice::Slice;
use super::windows::{Windows, lower_as, windowed};
use super::with_zeros;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, AxisKind, Cx, Dim, Tan};
use crate::error::{Res, not_linear, type_err, value_err};
use crate::factors::{Factors, In, Out};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::mask::{nonzero, spread};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::program::Program;
use crate::value::{Tag, Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;
use std::sync::Arc;

primitive! {
    pub struct ReduceBy = "reduce" {
        dimensions: Dims,
        jaxpr: Arc<Program>,
    } always_none { computation = hidden, out_sharding = hidden }
}
primitive! {
    pub struct ReduceWindowBy = "reduce_window" {
        base_dilation: Dims,
        /// The captures of the computation: none.
        consts: Dims,
        jaxpr: Arc<Program>,
        padding: Box<[(i64, i64)]>,
        window_dilation: Dims,
        window_dimensions: Dims,
        window_strides: Dims,
    }
}

/// The computation on arrays of one shape, element by element.
fn each(cx: &dyn Cx, body: &Arc<Program>, a: &[Value], b: &[Value]) -> Res<Values> {
    let (on, all) = (vec![true; a.len() + b.len()], vec![true; a.len()]);
    let mut p = body.clone();
    // a batch's lanes come to the front
    for n in a[0].shape().iter().rev() {
        let ax = Axis { n: *n, name: None, tag: &Tag::new("reduce"), kind: AxisKind::Lanes };
        p = cx.recur().batch(&p, ax, &on, &all)?.0;
    }
    cx.inline(&p, &[a, b].concat())
}

/// The common part of the two ops.
trait Folded: Rules + Clone {
    fn meaning(&self, cx: &dyn Cx, x: &[Value]) -> Res<Values>;
    fn jaxpr(&self) -> &Arc<Program>;

    fn check(&self, name: &str, x: &[Aval]) -> Res<()> {
        let n = x.len() / 2;
        if n == 0 || x.len() % 2 == 1 {
            return value_err(format!("{name} must have at least one operand, and an initial value for each"));
        }
        let (xs, starts) = x.split_at(n);
        if xs.iter().any(|a| a.shape != xs[0].shape) {
            let shapes: Vec<String> = xs.iter().map(|a| a.shape.to_string()).collect();
            return value_err(format!("All {name} operands must have the same shape: [{}]", shapes.join(", ")));
        }
        if x.iter().any(|a| a.tape > 0 || a.dtype.is_key()) {
            return type_err(format!("{name} does not accept {}", xs[0].long()));
        }
        let p = self.jaxpr();
        let scalar = |a: &Aval, b: &Aval| b.rank() == 0 && a.dtype == b.dtype;
        let (ins, outs) = (p.in_avals(), p.out_avals());
        let fits = ins.len() == 2 * n
            && outs.len() == n
            && ins.iter().zip(xs.iter().chain(xs)).all(|(i, a)| scalar(a, i))
            && outs.iter().zip(xs).all(|(o, a)| scalar(a, o));
        if !fits || starts.iter().zip(xs).any(|(s, a)| !scalar(a, s)) {
            let types = |v: &[Aval]| v.iter().map(Aval::long).collect::<Vec<_>>().join(", ");
            return type_err(format!(
                "{name} computation must take two scalars for each operand and return one, of the operands' dtypes ({}): it takes ({}) and returns ({})",
                types(xs),
                types(ins),
                types(&outs)
            ));
        }
        Ok(())
    }
    fn meant(&self, cx: &dyn Cx, x: &[Value]) -> Res<Arc<Program>> {
        let avals: Vec<Aval> = x.iter().map(Value::aval).collect();
        Ok(cx.recur().stage(&avals, &|cx, x| self.meaning(cx, x))?.0)
    }
    fn derived(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let p = self.meant(cx, x)?;
        let (nz, n) = (nonzero(dx), p.n_outs());
        if !nz.contains(&true) {
            return Ok(with_zeros(cx.inline(&p, x)?));
        }
        let (q, out_nz) = cx.recur().jvp(&p, &nz, &vec![false; n], &[nz.len()], &[n])?;
        let args: Values = x.iter().cloned().chain(dx.iter().flatten().cloned()).collect();
        let mut y = cx.inline(&q, &args)?.into_vec();
        let dy = spread(&out_nz, y.split_off(n));
        Ok((y.into(), dy.into()))
    }
    /// Lanes of operands alone go along as one more axis; those of initial values have them all spelled out.
    fn batched(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim], op: Self) -> Res<(Values, Axes)>
    where
        crate::op::Op: From<Self>,
    {
        let n = x.len() / 2;
        let front = |(v, d): (&Value, &Dim)| cx.batch_at(v, *d, ax.n, 0);
        let y = if d[n..].iter().all(Option::is_none) {
            let mut args: Values = x[..n].iter().zip(d).map(front).collect::<Res<_>>()?;
            args.extend(x[n..].iter().cloned());
            cx.bind(&op.into(), &args)?
        } else {
            let lane = |(v, d): (&Value, &Dim)| d.map_or(v.aval(), |d| v.aval().unbatched(d));
            let avals: Vec<Aval> = x.iter().zip(d).map(lane).collect();
            let p = cx.recur().stage(&avals, &|cx, x| self.meaning(cx, x))?.0;
            let p = cx.recur().batch(&p, ax, &vec![true; x.len()], &vec![true; n])?.0;
            cx.inline(&p, &x.iter().zip(d).map(front).collect::<Res<Values>>()?)?
        };
        Ok((y, smallvec![Some(0); n]))
    }
}

impl Folded for ReduceBy {
    fn jaxpr(&self) -> &Arc<Program> {
        &self.jaxpr
    }
    /// One half combined with the other until one row is left; odd rows wait for the end.
    fn meaning(&self, cx: &dyn Cx, x: &[Value]) -> Res<Values> {
        let (xs, starts) = x.split_at(x.len() / 2);
        if self.dimensions.is_empty() {
            return Ok(xs.into());
        }
        let shape = Dims::new(xs[0].shape());
        let kept: Dims = (0..shape.len()).filter(|d| !self.dimensions.contains(d)).collect();
        let rest = shape.pick(&kept);
        let order: Dims = self.dimensions.iter().chain(kept.iter()).copied().collect();
        let mut n: usize = self.dimensions.iter().map(|d| shape[*d]).product();
        let flat = |v: &Value| cx.reshape(&cx.transpose(v, order.clone())?, &rest.insert(0, n));
        let mut rows: Values = xs.iter().map(flat).collect::<Res<_>>()?;
        let cut = |rows: &[Value], from: usize, to: usize| -> Res<Values> {
            let zeros: Dims = rest.iter().map(|_| 0).collect();
            let op = Slice { limit_indices: rest.insert(0, to), start_indices: zeros.insert(0, from), strides: None };
            rows.iter().map(|v| cx.bind1(op.clone(), std::slice::from_ref(v))).collect()
        };
        let mut last = vec![];
        while n > 1 {
            if n % 2 == 1 {
                last.push(cut(&rows, n - 1, n)?);
            }
            let half = n / 2;
            rows = each(cx, &self.jaxpr, &cut(&rows, 0, half)?, &cut(&rows, half, 2 * half)?)?;
            n = half;
        }
        let one = rest.insert(0, 1);
        let mut out: Values = starts.iter().map(|s| cx.broadcast(s, &one, &[])).collect::<Res<_>>()?;
        if n > 0 {
            last.push(rows);
        }
        for part in last.iter().rev() {
            out = each(cx, &self.jaxpr, &out, part)?;
        }
        out.iter().map(|v| cx.reshape(v, &rest)).collect()
    }
}
impl Rules for ReduceBy {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        self.check("reduce", x)?;
        let a = &x[0];
        let twice = |i: usize| self.dimensions[..i].contains(&self.dimensions[i]);
        if self.dimensions.iter().any(|d| *d >= a.rank()) || (0..self.dimensions.len()).any(twice) {
            return value_err(format!(
                "reduction axes {} must be distinct and inside of {}.",
                self.dimensions,
                a.long()
            ));
        }
        Ok(x[..x.len() / 2].iter().map(|a| a.with_shape(a.shape.without(&self.dimensions))).collect())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        self.derived(cx, x, dx)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("reduce")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let dimensions = self.dimensions.iter().map(|k| k + 1).collect();
        self.batched(cx, ax, x, d, ReduceBy { dimensions, ..self.clone() })
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::whole(x, out);
        let kept = (0..x[0].rank()).filter(|k| !self.dimensions.contains(k));
        for (d, k) in kept.enumerate() {
            let ins = (0..x.len() / 2).map(|i| In(i, k));
            f.link(x[0].shape[k], &ins.chain((0..out.len()).map(|i| Out(i, d))).collect::<Vec<_>>());
        }
        f
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        lower_as(b, x, &|cx, x| self.meaning(cx, x))
    }
}

windowed!(ReduceWindowBy);
impl Folded for ReduceWindowBy {
    fn jaxpr(&self) -> &Arc<Program> {
        &self.jaxpr
    }
    fn meaning(&self, cx: &dyn Cx, x: &[Value]) -> Res<Values> {
        let (xs, starts) = x.split_at(x.len() / 2);
        let w = self.windows();
        let out = w.over("reduce_window", &Dims::new(xs[0].shape()))?;
        let starts: Values = starts.iter().map(|s| cx.broadcast(s, &out, &[])).collect::<Res<_>>()?;
        if out.contains(&0) {
            return Ok(starts);
        }
        if w.few() {
            let taps = w.taps(cx, xs, &x[xs.len()..])?;
            return taps.iter().try_fold(starts, |acc, part| each(cx, &self.jaxpr, &acc, part));
        }
        let combine = |cx: &dyn Cx, a: &[Value], b: &[Value]| each(cx, &self.jaxpr, a, b);
        let y = w.fold(cx, xs, &x[xs.len()..], None, &combine)?;
        each(cx, &self.jaxpr, &starts, &y)
    }
}
impl Rules for ReduceWindowBy {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        self.check("reduce_window", x)?;
        if !self.consts.is_empty() {
            return type_err("reduce_window: the computation must close over nothing");
        }
        let out = self.windows().over("reduce_window", &x[0].shape)?;
        Ok(x[..x.len() / 2].iter().map(|a| a.with_shape(out.clone())).collect())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        self.derived(cx, x, dx)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("reduce_window")
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let w = self.windows().insert(0);
        let op = ReduceWindowBy {
            base_dilation: w.base,
            padding: w.padding.into(),
            window_dilation: w.dilation,
            window_dimensions: w.size,
            window_strides: w.strides,
            ..self.clone()
        };
        self.batched(cx, ax, x, d, op)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::along(x, out, |d| self.windows().stays(d))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        lower_as(b, x, &|cx, x| self.meaning(cx, x))
    }
}
