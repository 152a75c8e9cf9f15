//! sharding_constraint: the operand, cut among the devices of a mesh as the program requires. The identity on values; numpy has one device.
//!
//! ```text
//! out = x, dimension k cut by the mesh axes `spec[k]`; those in `unconstrained_dims` as it comes
//! ```
//!
//! Only a program that is partitioned obeys it.
use super::collective::Names;
use super::linear_jvp;
use super::pmap::Places;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::effects::Name;
use crate::error::{Res, type_err, value_err};
use crate::factors::Factors;
use crate::layout::Grid;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::param::{Param, ParamValue};
use crate::primitive;
use crate::support::{Supports, Within};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

impl ParamValue for Grid {
    fn words() -> String {
        "a tuple of (name of an axis, size)".into()
    }
    fn to_param(&self) -> Param {
        let axis = |(name, n): &(crate::effects::Name, usize)| {
            Param::Tuple(vec![Param::Str(name.clone()), Param::Int(*n as i64)])
        };
        Param::Tuple(self.axes.iter().map(axis).collect())
    }
    fn from_param(p: &Param) -> Option<Grid> {
        p.items()?.iter().map(ParamValue::from_param).collect::<Option<_>>().map(|axes| Grid { axes })
    }
}
primitive! {
    pub struct ShardingConstraint = "sharding_constraint" {
        mesh: Grid,
        spec: Vec<Names>,
        unconstrained_dims: Dims,
        /// The mesh's devices, by the executor's numbers; none for any.
        devices: Places = hidden,
    }
}
/// As Python writes the tuple.
fn names_text(names: &[Name]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("'{n}'")).collect();
    format!("({}{})", quoted.join(", "), if quoted.len() == 1 { "," } else { "" })
}
impl ShardingConstraint {
    /// As Python writes the specification.
    fn spec_text(&self) -> String {
        let dim = |names: &Names| match &names.0[..] {
            [] => "None".to_string(),
            [one] => format!("'{one}'"),
            many => names_text(many),
        };
        let mut dims: Vec<String> = self.spec.iter().map(dim).collect();
        while dims.last().is_some_and(|d| d == "None") {
            dims.pop();
        }
        format!("P({}{})", dims.join(", "), if dims.len() == 1 { "," } else { "" })
    }
}
impl Rules for ShardingConstraint {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("sharding_constraint takes 1 operand, got {}", x.len())) };
        if self.spec.len() != a.rank() {
            return value_err(format!("sharding_constraint has {} dimensions for {}", self.spec.len(), a.long()));
        }
        for name in self.spec.iter().flat_map(|n| &n.0) {
            if self.mesh.find(name).is_none() {
                return value_err(format!("sharding_constraint names an axis {name} that its mesh does not have"));
            }
        }
        Ok(smallvec![a.clone()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(self.clone(), std::slice::from_ref(ct))).transpose()?])
    }
    /// The lanes are not constrained.
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let Some(d) = d[0] else { return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None])) };
        let mut spec = self.spec.clone();
        let lanes = ax.spmd();
        if spec.iter().any(|names| names.0.iter().any(|n| lanes.contains(n))) {
            return value_err(format!(
                "vmap spmd_axis_name {} cannot appear in with_sharding_constraint spec, but got spec {}",
                names_text(lanes),
                self.spec_text()
            ));
        }
        spec.insert(d, Names(lanes.into()));
        let free = self.unconstrained_dims.iter().map(|k| k + (*k >= d) as usize);
        let unconstrained_dims = free.chain(lanes.is_empty().then_some(d)).collect();
        let op = ShardingConstraint { spec, unconstrained_dims, ..self.clone() };
        Ok((cx.bind(&op.into(), x)?, smallvec![Some(d)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        Ok(Some((cx.bind(&self.clone().into(), x)?, smallvec![s[0].clone()])))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let wanted = |(k, names): (usize, &Names)| (!self.unconstrained_dims.contains(&k)).then(|| names.clone());
        let wanted = self.spec.iter().enumerate().map(wanted).collect();
        Factors { wanted: Some(wanted), grid: Some(self.mesh.clone()), ..Factors::pointwise(x, out) }
    }
    fn lower(&self, _: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(smallvec![x[0]])
    }
}
