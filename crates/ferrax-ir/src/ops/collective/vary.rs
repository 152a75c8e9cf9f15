//! The effect of collectives on the axes that a value varies over, and `pvary`, which does nothing else.
//!
//! ```text
//! pvary: out[j] = x, in a type that varies     its transpose is psum_invariant, whose transpose it is
//! ```
use super::{AllGather, AllReduce, AllReduceKind, AllToAll, AxisIndex, Names, Permute, ReduceScatter, operand};
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int, is_manual, values1};
use crate::dtype::Dtype;
use crate::effects::Effects;
use crate::error::Res;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Effectful, Rules, Tans};
use crate::ops::dynamic_slice::DynamicSlice;
use crate::ops::linear_jvp;
use crate::primitive;
use crate::value::{Value, Values};
use crate::vary::Vary;
use ferrax_kernel::Dims;
use smallvec::smallvec;

primitive! {
    /// x, in a type that varies over the axes. Its transpose is the sum of what each position contributes.
    pub struct Pvary = "pvary" {
        axes: Names,
    }
}
impl Effectful for AllReduce {
    fn effects(&self) -> Effects {
        self.axes.effects()
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        Some(x.without(self.axes.vary()))
    }
}
impl Effectful for AxisIndex {
    fn effects(&self) -> Effects {
        Effects::axis(&self.axis_name)
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        Some(if is_manual(&self.axis_name) { x | Vary::over(&self.axis_name) } else { x })
    }
}
impl Effectful for AllGather {
    fn effects(&self) -> Effects {
        self.axis_name.effects()
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        Some(if self.invariant { x.without(self.axis_name.vary()) } else { x })
    }
}
impl Effectful for ReduceScatter {
    fn effects(&self) -> Effects {
        self.axis_name.effects()
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        Some(x)
    }
}
impl Effectful for AllToAll {
    fn effects(&self) -> Effects {
        Effects::axis(&self.axis_name)
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        Some(x)
    }
}
impl Effectful for Permute {
    fn effects(&self) -> Effects {
        self.axis_name.effects()
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        Some(x)
    }
}

impl AllGather {
    /// Of a gathered value the part that this position gave.
    pub(super) fn own_part(&self, cx: &dyn Cx, x: &Value, part: Dims) -> Res<Value> {
        let (name, k) = (self.axis_name.only("all_gather")?, self.all_gather_dimension);
        let index = cx.bind1(AxisIndex { axis_name: name.clone() }, &[])?;
        let x = cx.vary_over(x, index.vary())?;
        let mut slice_sizes = part.clone();
        if !self.tiled {
            slice_sizes = slice_sizes.insert(k, 1);
        }
        let at = cx.mul(&index, &int(Dtype::I32, slice_sizes[k] as i64))?;
        let mut operands = vec![x];
        operands.extend((0..slice_sizes.len()).map(|i| if i == k { at.clone() } else { int(Dtype::I32, 0) }));
        let y = cx.bind1(DynamicSlice { slice_sizes }, &operands)?;
        cx.reshape(&y, &part)
    }
}
impl Effectful for Pvary {
    fn effects(&self) -> Effects {
        self.axes.effects()
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        Some(x | self.axes.vary())
    }
}
impl Rules for Pvary {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        Ok(smallvec![operand("pvary", x)?.clone()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let back = AllReduce { kind: AllReduceKind::SumInvariant, axes: self.axes.clone(), axis_index_groups: None };
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(back, std::slice::from_ref(ct))).transpose()?])
    }
    /// Each lane has the value.
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        if !self.axes.has(ax) {
            return Ok((cx.bind(&self.clone().into(), x)?, d.into()));
        }
        let at = d[0].unwrap_or(0);
        let y = cx.batch_at(&x[0], d[0], ax.n, at)?;
        let axes = self.axes.without(ax);
        let y = if axes.0.is_empty() { y } else { cx.bind1(Pvary { axes }, &[y])? };
        Ok((values1(y), smallvec![Some(at)]))
    }
    fn lower(&self, _: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(x.into())
    }
}
