//! reshard: the operand, whose type is from now on that of a cut. The identity on values.
//!
//! ```text
//! f32[8@x,2] -> f32[8,2@y]        out = x
//! ```
use super::linear_jvp;
use crate::aval::Aval;
use crate::cut::TypedCut;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::error::{Res, type_err};
use crate::factors::Factors;
use crate::layout::CutAxes;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::ops::collective::Names;
use crate::support::{Supports, Within};
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use crate::{hidden_param, primitive};
use smallvec::smallvec;

hidden_param!(TypedCut, "a sharding", TypedCut::NONE);
primitive! {
    pub struct Reshard = "reshard" {
        dst_sharding: TypedCut = hidden,
    }
}
impl Rules for Reshard {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("reshard takes 1 operand, got {}", x.len())) };
        Ok(smallvec![Aval { cut: self.dst_sharding, ..a.clone() }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let from = x[0].aval().cut;
        let back = |ct: &Value| match from.is_none() {
            true => Ok(ct.clone()),
            false => cx.bind1(Reshard { dst_sharding: from.cotangent() }, std::slice::from_ref(ct)),
        };
        Ok(smallvec![ct[0].as_ref().map(back).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        // the lanes stay where they are; if the operand's type does not state their axes, like all lanes of this `vmap`
        let cut = |d: usize| Some(x[0].cut().of_dim(d)).filter(|c| !c.is_empty()).unwrap_or_else(|| ax.cut());
        let lanes = |d: usize| self.dst_sharding.insert_cut(d, cut(d));
        let dst_sharding = d[0].map_or(self.dst_sharding, lanes);
        Ok((cx.bind(&Reshard { dst_sharding }.into(), x)?, smallvec![d[0]]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        Ok(Some((cx.bind(&self.clone().into(), x)?, smallvec![s[0].clone()])))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let Some(to) = self.dst_sharding.get() else { return Factors::pointwise(x, out) };
        // axes of which types do not speak cut as they come
        let all = to.mesh.explicit.iter().all(|e| *e);
        let wanted = |cut: &CutAxes| (all || !cut.is_empty()).then(|| Names(to.mesh.grid.names(cut)));
        let (wanted, grid) = (Some(to.spec.dims.iter().map(wanted).collect()), Some(to.mesh.grid.clone()));
        Factors { wanted, grid, ..Factors::pointwise(x, out) }
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        Ok(self.dst_sharding.get().map_or_else(|| t.as_first(), |to| smallvec![to.spec.clone()]))
    }
    fn lower(&self, _: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(smallvec![x[0]])
    }
}
