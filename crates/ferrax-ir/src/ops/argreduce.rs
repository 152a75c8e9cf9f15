//! argmax, argmin: the position of the greatest or least element along one axis; the first of equals, the first nan. numpy: the same.
use super::gather::take_along;
use super::zero_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int, values1};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err, value_err};
use crate::factors::{Factors, In, Out, Shared};
use crate::lower::{Graph, TensorId, TensorIds, physical};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::param::Member;
use crate::parts::Here;
use crate::primitive;
use crate::value::{Value, Values};
use ferrax_kernel::{Dims, ReduceKind};
use smallvec::smallvec;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArgKind {
    Max,
    Min,
}
impl Member for ArgKind {
    const ALL: &'static [(ArgKind, &'static str)] = &[(ArgKind::Max, "argmax"), (ArgKind::Min, "argmin")];
}

primitive! {
    pub struct ArgReduce = kind: ArgKind {
        axes: Dims,
        index_dtype: Dtype,
    }
}
impl Rules for ArgReduce {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = self.kind.name();
        let [a] = x else { return type_err(format!("{name} takes 1 operand, got {}", x.len())) };
        if !self.index_dtype.is_int() {
            return type_err(format!("index_dtype must be an integer type, but got {}", self.index_dtype.long()));
        }
        let [axis] = self.axes[..] else {
            return type_err(format!("{name} takes one axis, got axes={}", self.axes));
        };
        if axis >= a.rank() {
            return value_err(format!("Invalid axis {axis} for operand shape {}", a.shape));
        }
        if a.shape[axis] == 0 {
            return value_err(format!(
                "argmin and argmax require non-empty reduced dimension. operand.shape={} axis={axis}",
                a.shape
            ));
        }
        if a.dtype.is_complex() || a.dtype.is_key() {
            return type_err(format!(
                "{name} does not accept dtype {}. Accepted dtypes are subtypes of floating, integer, bool.",
                a.dtype.long()
            ));
        }
        Ok(smallvec![Aval::of(self.index_dtype, a.shape.without(&self.axes))])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear(self.kind.name())
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let Some(d) = d[0] else { return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None])) };
        let axes: Dims = self.axes.iter().map(|k| k + (*k >= d) as usize).collect();
        let at = d - axes.iter().filter(|k| **k < d).count();
        Ok((cx.bind(&ArgReduce { axes, ..self.clone() }.into(), x)?, smallvec![Some(at)]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::whole(x, out);
        let kept = (0..x[0].rank()).filter(|k| !self.axes.contains(k));
        kept.enumerate().for_each(|(d, k)| f.link(x[0].shape[k], &[In(0, k), Out(0, d)]));
        f.shared = self.axes.first().map(|dim| Shared { dim: *dim, cut: false, last: false });
        f
    }
    /// Of the elements that each device chooses in its part.
    fn shared(&self, here: &Here, x: &[Value], axes: &[u8]) -> Res<Option<Values>> {
        let (cx, axis, bytes) = (here.cx, self.axes[0], x[0].dtype().size());
        let part = x[0].shape()[axis];
        let index = if i32::try_from(part * here.grid.parts(axes)).is_ok() { Dtype::I32 } else { Dtype::I64 };
        // positions are sent too
        if bytes + index.size() >= part * bytes {
            return Ok(None);
        }
        let choice: Op = ArgReduce { index_dtype: index, ..self.clone() }.into();
        let mut kept = Dims::new(x[0].shape());
        kept[axis] = 1;
        let choose = |x: &Value| cx.reshape(&cx.bind1(choice.clone(), std::slice::from_ref(x))?, &kept);
        let own = choose(&x[0])?;
        let best = here.gather(&take_along(cx, &x[0], &own, axis)?, axis, axes, true)?;
        let first = cx.mul(&cx.convert(&here.number(axes)?, index)?, &int(index, part as i64))?;
        let at = here.gather(&cx.add(&own, &first)?, axis, axes, true)?;
        let y = cx.reshape(&take_along(cx, &at, &choose(&best)?, axis)?, &kept.remove(axis))?;
        Ok(Some(values1(cx.convert(&y, self.index_dtype)?)))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let kind = match self.kind {
            ArgKind::Max => ReduceKind::ArgMax,
            ArgKind::Min => ReduceKind::ArgMin,
        };
        Ok(smallvec![b.reduce_as(kind, physical(&out[0]).dtype, x[0], &self.axes)])
    }
}
