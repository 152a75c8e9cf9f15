//! The effect of collectives on the axes that a value varies over, and the casts, which do nothing else.
//!
//! ```text
//! pvary                 one value      ->  varying       its transpose is psum_invariant, whose transpose it is
//! preduced              one value      ->  reduced       unreduced_psum
//! vary_unreduced_cast_p varying        ->  terms         reduced_vary_cast_p
//! reduced_vary_cast_p   reduced        ->  varying       vary_unreduced_cast_p
//! ```
//!
//! INVARIANT: a cast gives its operand. Along one axis a value is one of: the same everywhere, varying, terms of a sum (`unreduced`), or the
//! same everywhere with derivatives that are terms (`reduced`).
use super::{
    AllGather, AllReduce, AllReduceKind, AllToAll, AxisIndex, GatherKind, Names, Permute, ReduceScatter,
    ScatterSumKind, operand,
};
use crate::aval::Aval;
use crate::cut::Recast;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int, is_manual, values1};
use crate::dtype::Dtype;
use crate::effects::{Effects, Name};
use crate::error::{Res, value_err};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Effectful, Op, Rules, Tans};
use crate::ops::dynamic_slice::DynamicSlice;
use crate::ops::linear_jvp;
use crate::ops::pointwise::Pw;
use crate::param::Member;
use crate::primitive;
use crate::typing::Sums;
use crate::value::{Value, Values};
use crate::vary::Vary;
use ferrax_kernel::Dims;
use smallvec::smallvec;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CastKind {
    Vary,
    Reduced,
    VaryTerms,
    ReducedVary,
}
impl Member for CastKind {
    const ALL: &'static [(CastKind, &'static str)] = &[
        (CastKind::Vary, "pvary"),
        (CastKind::Reduced, "preduced"),
        (CastKind::VaryTerms, "vary_unreduced_cast_p"),
        (CastKind::ReducedVary, "reduced_vary_cast_p"),
    ];
}
primitive! {
    /// x with another type concerning these axes.
    pub struct VaryCast = kind: CastKind {
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
    fn recast(&self) -> Option<(Recast, &Names)> {
        (self.kind == AllReduceKind::SumTerms).then_some((Recast::Summed, &self.axes))
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
        Some(if self.kind == GatherKind::Vary { x } else { x.without(self.axis_name.vary()) })
    }
    fn recast(&self) -> Option<(Recast, &Names)> {
        (self.kind == GatherKind::Reduced).then_some((Recast::Reduced, &self.axis_name))
    }
}
impl Effectful for ReduceScatter {
    fn effects(&self) -> Effects {
        self.axis_name.effects()
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        let manual = self.kind == ScatterSumKind::Terms && self.axis_name.0.iter().all(|n| is_manual(n));
        Some(if manual { x | self.axis_name.vary() } else { x })
    }
    fn recast(&self) -> Option<(Recast, &Names)> {
        (self.kind == ScatterSumKind::Terms).then_some((Recast::Summed, &self.axis_name))
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
impl Names {
    /// Refuses a value that is a term of a sum along one of the axes, or was made whole of one.
    pub(super) fn refuse_sums(&self, name: &str, a: &Aval) -> Res<()> {
        let [terms, reduced] = a.cut.manual_sums();
        for (names, what) in [(terms, "unreduced"), (reduced, "reduced")] {
            if names.iter().any(|n| self.0.contains(n)) {
                let axes: Vec<String> = self.0.iter().map(|n| format!("'{n}'")).collect();
                let axes = axes.join(", ");
                return value_err(format!("{name} cannot accept args which are {what}. Got {a} and axes={{{axes}}}"));
            }
        }
        Ok(())
    }
}
/// A value, the same everywhere along the axes, as terms of a sum that is it: the first position has it, the others zeros.
pub(crate) fn as_terms(cx: &dyn Cx, x: &Value, axes: &[Name]) -> Res<Value> {
    let mut y = x.clone();
    for name in axes.iter().filter(|n| !x.vary().has(n)) {
        let index = cx.bind1(AxisIndex { axis_name: name.clone() }, &[])?;
        let first = cx.pw2(Pw::Eq, &index, &int(Dtype::I32, 0))?;
        let y_here = cx.vary_over(&y, index.vary())?;
        let zeros = cx.vary_over(&cx.zeros(&Aval { vary: Vary::NONE, ..y.aval() })?, y_here.vary())?;
        y = cx.select(&cx.vary_over(&first, y_here.vary())?, &zeros, &y_here)?;
    }
    cx.bind1(VaryCast { kind: CastKind::VaryTerms, axes: Names(axes.into()) }, &[y])
}
impl Effectful for VaryCast {
    fn effects(&self) -> Effects {
        self.axes.effects()
    }
    fn vary(&self, x: Vary) -> Option<Vary> {
        Some(match self.kind {
            CastKind::Vary | CastKind::ReducedVary => x | self.axes.vary(),
            CastKind::Reduced => x,
            CastKind::VaryTerms => x.without(self.axes.vary()),
        })
    }
    fn recast(&self) -> Option<(Recast, &Names)> {
        match self.kind {
            CastKind::Vary => None,
            CastKind::Reduced => Some((Recast::Reduced, &self.axes)),
            CastKind::VaryTerms => Some((Recast::Terms, &self.axes)),
            CastKind::ReducedVary => Some((Recast::Vary, &self.axes)),
        }
    }
}
impl Rules for VaryCast {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let a = operand(self.kind.name(), x)?;
        match self.kind {
            CastKind::Vary => self.axes.refuse_sums("pvary", a)?,
            CastKind::VaryTerms => self.axes.refuse_sums("vary_unreduced_cast", a)?,
            CastKind::Reduced | CastKind::ReducedVary => (),
        }
        Ok(smallvec![a.clone()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let axes = self.axes.clone();
        let sum = |kind| Op::from(AllReduce { kind, axes: axes.clone(), axis_index_groups: None });
        let cast = |kind| Op::from(VaryCast { kind, axes: axes.clone() });
        let back = match self.kind {
            CastKind::Vary => sum(AllReduceKind::SumInvariant),
            CastKind::Reduced => sum(AllReduceKind::SumTerms),
            CastKind::VaryTerms => cast(CastKind::ReducedVary),
            CastKind::ReducedVary => cast(CastKind::VaryTerms),
        };
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(back, std::slice::from_ref(ct))).transpose()?])
    }
    /// Each lane has the value.
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let varies = matches!(self.kind, CastKind::Vary | CastKind::ReducedVary);
        if !self.axes.has(ax) {
            return Ok((cx.bind(&self.clone().into(), x)?, d.into()));
        }
        let axes = self.axes.without(ax);
        let (y, d) = if varies {
            let at = d[0].unwrap_or(0);
            (cx.batch_at(&x[0], d[0], ax.n, at)?, Some(at))
        } else {
            (x[0].clone(), d[0])
        };
        let y = if axes.0.is_empty() { y } else { cx.bind1(VaryCast { axes, ..self.clone() }, &[y])? };
        Ok((values1(y), smallvec![d]))
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn lower(&self, _: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(x.into())
    }
}
