//! top_k: the k largest elements along `axis`, in descending order, and their positions; the first of equals first. approx_top_k: the
//! same, or the k smallest. numpy: `argsort`, reversed.
//!
//! ```text
//! top_k[axis=1 k=2] f32[2,3] -> f32[2,2] i32[2,2]
//! ```
//! Floats compare by their total order: nan is the largest, -0 is less than 0. `approx_top_k` is exact for every requested recall.
use super::gather::take_along;
use super::with_zeros;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err, value_err};
use crate::factors::{Factors, Shared};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::param::FloatParam;
use crate::parts::Here;
use crate::primitive;
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Un;
use ferrax_kernel::routine::Routine;
use smallvec::smallvec;

primitive! {
    pub struct TopK = "top_k" {
        axis: usize,
        k: usize,
    }
}
primitive! {
    pub struct ApproxTopK = "approx_top_k" {
        aggregate_to_topk: bool,
        is_max_k: bool,
        k: usize,
        recall_target: FloatParam,
        /// Negative ones count from the last.
        reduction_dimension: i64,
        reduction_input_size_override: i64,
    }
}
/// Positions are int32.
const MAX_K: usize = i32::MAX as usize;

fn types(a: &Aval, axis: usize, k: usize) -> Avals {
    let mut shape = a.shape.clone();
    shape[axis] = k;
    smallvec![a.with_shape(shape.clone()), Aval { weak: a.weak, ..Aval::of(Dtype::I32, shape) }]
}
/// Values by the positions that the op itself finds.
fn chosen(op: &Op, axis: usize, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
    let y = cx.bind(op, x)?;
    let Some(t) = &dx[0] else { return Ok(with_zeros(y)) };
    let t = take_along(cx, t, &y[1], axis)?;
    Ok((y, smallvec![Some(t), None]))
}

/// The largest of what is largest in each device's part, where that is less than all.
fn of_parts(here: &Here, x: &Value, op: &TopK, axes: &[u8]) -> Res<Option<Values>> {
    let (cx, axis, part, bytes) = (here.cx, op.axis, x.shape()[op.axis], x.dtype().size());
    let k = op.k.min(part);
    // positions are sent too
    if k == 0 || k * (bytes + Dtype::I32.size()) >= part * bytes {
        return Ok(None);
    }
    let own = cx.bind(&TopK { axis, k }.into(), std::slice::from_ref(x))?;
    let at = cx.add(&own[1], &cx.mul(&here.number(axes)?, &int(Dtype::I32, part as i64))?)?;
    let all = here.gather(&own[0], axis, axes, true)?;
    let mut y = cx.bind(&op.clone().into(), &[all])?;
    y[1] = take_along(cx, &here.gather(&at, axis, axes, true)?, &y[1], axis)?;
    Ok(Some(y))
}

impl Rules for TopK {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("top_k takes 1 operand, got {}", x.len())) };
        if a.dtype.is_complex() {
            return value_err("top_k is not compatible with complex inputs.");
        }
        if a.dtype.is_key() || a.tape > 0 {
            return type_err(format!("top_k does not accept {}", a.long()));
        }
        if self.axis >= a.rank() {
            return value_err(format!("axis {} is out of bounds for array of dimension {}", self.axis, a.rank()));
        }
        if self.k > a.shape[self.axis] {
            return value_err(format!(
                "k argument to top_k must be no larger than size along axis; got k={} with shape={} and axis={}",
                self.k,
                list(a),
                self.axis
            ));
        }
        // the last position is one less than the size
        if a.shape[self.axis] > MAX_K + 1 {
            return value_err(format!(
                "top_k returns int32 indices, which will overflow for array dimensions larger than the maximum int32 ({MAX_K}). Got operand.shape={}",
                a.shape
            ));
        }
        Ok(types(a, self.axis, self.k))
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        chosen(&self.clone().into(), self.axis, cx, x, dx)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("top_k")
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let axis = self.axis + d[0].is_some_and(|d| self.axis >= d) as usize;
        Ok((cx.bind(&TopK { axis, k: self.k }.into(), x)?, smallvec![d[0]; 2]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let shared = Some(Shared { dim: self.axis, cut: false, last: false });
        Factors { shared, ..Factors::along(x, out, |d| d != self.axis) }
    }
    fn shared(&self, here: &Here, x: &[Value], axes: &[u8]) -> Res<Option<Values>> {
        of_parts(here, &x[0], self, axes)
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        t.refuse_along(
            self.axis,
            "The input should be unsharded over the axis along which to compute the top_k values",
        )?;
        t.by_factors(&self.factors(t.x, t.out))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let (x, shape) = (x[0], b.shape(x[0]));
        let r = Routine::TopK {
            outer: shape[..self.axis].iter().product(),
            n: shape[self.axis],
            inner: shape[self.axis + 1..].iter().product(),
            k: self.k,
            dtype: b.dtype(x),
        };
        let to = out[0].shape.clone();
        Ok(b.routine(r, &[x], &[to.clone(), to]))
    }
}
/// A shape as Python writes a list.
fn list(a: &Aval) -> String {
    format!("[{}]", a.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
}

impl ApproxTopK {
    fn axis(&self, rank: usize) -> Option<usize> {
        let axis = self.reduction_dimension + if self.reduction_dimension < 0 { rank as i64 } else { 0 };
        usize::try_from(axis).ok().filter(|k| *k < rank)
    }
    /// The axis of an operand that passed inference.
    fn known_axis(&self, rank: usize) -> usize {
        self.axis(rank).unwrap_or_default()
    }
    /// The first `k` in order, with lanes at `d`.
    fn exactly(&self, k: usize, cx: &dyn Cx, x: &Value, d: usize) -> Res<(Values, Axes)> {
        let exact = TopK { axis: self.known_axis(x.rank()), k }.into();
        let turned = |v: &Value| if self.is_max_k { Ok(v.clone()) } else { cx.neg(v) };
        let mut y = cx.bind(&exact, &[turned(x)?])?;
        y[0] = turned(&y[0])?;
        Ok((y, smallvec![Some(d); 2]))
    }
    /// How many of `n` elements there are: k, or, not aggregated, as many as XLA's partial reduction leaves. That halves the number of tiles while the
    /// expected recall stays above the target.
    fn size(&self, n: usize, rank: usize) -> usize {
        let tile = if rank == 1 { 1024 } else { 128 };
        if self.aggregate_to_topk || n <= tile {
            return if self.aggregate_to_topk { self.k } else { n };
        }
        let tiles = n.div_ceil(tile);
        let halvings = if self.k == 1 {
            tiles.ilog2()
        } else {
            let wanted = ((1.0 - self.k as f64) / self.recall_target.get().ln()) as usize;
            let whole = usize::try_from(self.reduction_input_size_override).unwrap_or(n).max(n);
            (whole / wanted.max(tile).min(n)).ilog2().min(tiles.next_power_of_two().ilog2())
        };
        if self.k == 1 {
            tile
        } else if halvings == 0 {
            n
        } else {
            tiles.div_ceil(1 << halvings) * tile
        }
    }
}
impl Rules for ApproxTopK {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("approx_top_k takes 1 operand, got {}", x.len())) };
        if !a.dtype.is_float() || a.tape > 0 {
            return value_err("operand must be a floating type");
        }
        let Some(axis) = self.axis(a.rank()) else {
            return value_err(format!(
                "axis {} is out of bounds for array of dimension {}",
                self.reduction_dimension,
                a.rank()
            ));
        };
        if self.k == 0 {
            return value_err("k must be positive, got 0");
        }
        if self.k > a.shape[axis] {
            return value_err(format!(
                "k must be smaller than the size of reduction_dim {}, got {}",
                a.shape[axis], self.k
            ));
        }
        Ok(types(a, axis, self.size(a.shape[axis], a.rank())))
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        chosen(&self.clone().into(), self.known_axis(x[0].rank()), cx, x, dx)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("approx_top_k")
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let mut op = self.clone();
        let axis = self.known_axis(x[0].rank() - d[0].is_some() as usize);
        if let Some(d) = d[0] {
            op.reduction_dimension = (axis + (axis >= d) as usize) as i64;
            let (now, n) = (op.known_axis(x[0].rank()), x[0].rank());
            let size = self.size(x[0].aval().shape[now], n - 1);
            if op.size(x[0].aval().shape[now], n) != size {
                return op.exactly(size, cx, &x[0], d); // a size that depends on the rank without the batch
            }
        }
        Ok((cx.bind(&op.into(), x)?, smallvec![d[0]; 2]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let axis = self.known_axis(x[0].rank());
        let shared = self.aggregate_to_topk.then_some(Shared { dim: axis, cut: false, last: false });
        Factors { shared, ..Factors::along(x, out, |d| d != axis) }
    }
    fn shared(&self, here: &Here, x: &[Value], axes: &[u8]) -> Res<Option<Values>> {
        let exact = TopK { axis: self.known_axis(x[0].rank()), k: self.k };
        let turned = |v: &Value| if self.is_max_k { Ok(v.clone()) } else { here.cx.neg(v) };
        let Some(mut y) = of_parts(here, &turned(&x[0])?, &exact, axes)? else { return Ok(None) };
        y[0] = turned(&y[0])?;
        Ok(Some(y))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let axis = self.known_axis(b.rank(x[0]));
        let exact = TopK { axis, k: out[0].shape[axis] };
        if self.is_max_k {
            return exact.lower(b, x, out);
        }
        let negated = b.un(Un::Neg, x[0]);
        let mut y = exact.lower(b, &[negated], out)?;
        y[0] = b.un(Un::Neg, y[0]);
        Ok(y)
    }
}
