//! ragged_dot_general: `dot_general` where the rows along one axis of lhs fall into groups of the sizes of a third operand.
//!
//! ```text
//! the ragged axis is free:        each group meets its own slice of rhs         out[m, n] = lhs[m, k] rhs[g(m), k, n]
//! it is contracted:               each group is summed alone                    out[g, m, n] = sum over k in g of lhs[m, k] rhs[k, n]
//! it is a batch axis:             the groups change nothing
//! ```
//! Every row meets every group, as zeros but its own: one product with groups as a batch axis. Rows outside of a group are left out of both
//! sides and of what is summed, in derivatives too, so that zeros there meet no infinity.
use super::conv::Asked;
use super::dot::{Dot, DotDims, free};
use super::meaning::{self, choose, f2, fill};
use super::pointwise::Pw;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, values1};
use crate::dtype::Dtype;
use crate::error::{Res, type_err};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::operators::emit;
use crate::ops::broadcast::BroadcastInDim;
use crate::ops::cumulative::Cumulative;
use crate::ops::iota::Iota;
use crate::ops::reduce::{Monoid, Reduce};
use crate::ops::transpose::Transpose;
use crate::param::{Param, ParamValue, Shape};
use crate::primitive;
use crate::program::Program;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use ferrax_kernel::routine::CumulativeKind;
use smallvec::smallvec;
use std::sync::Arc;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct RaggedDims {
    pub dot: DotDims,
    pub ragged: Dims,
    pub groups: Dims,
}
impl ParamValue for RaggedDims {
    fn words() -> String {
        "RaggedDotDimensionNumbers".into()
    }
    fn to_param(&self) -> Param {
        let pair = |a: &Dims, b: &Dims| Param::Tuple(vec![Param::ints(a), Param::ints(b)]);
        let dot = Param::Tuple(vec![pair(&self.dot.lc, &self.dot.rc), pair(&self.dot.lb, &self.dot.rb)]);
        Param::Struct(
            "RaggedDotDimensionNumbers",
            vec![
                ("dot_dimension_numbers", dot),
                ("lhs_ragged_dimensions", Param::ints(&self.ragged)),
                ("rhs_group_dimensions", Param::ints(&self.groups)),
            ],
        )
    }
    fn from_param(p: &Param) -> Option<RaggedDims> {
        let fields: Vec<&Param> = match p {
            Param::Struct(_, f) => f.iter().map(|x| &x.1).collect(),
            p => p.items()?.iter().collect(),
        };
        let [dot, ragged, groups] = fields[..] else { return None };
        let (dot, ragged) = (DotDims::from_param(dot)?, Dims::from_param(ragged)?);
        Some(RaggedDims { dot, ragged, groups: Dims::from_param(groups)? })
    }
}

primitive! {
    pub struct RaggedDot = "ragged_dot_general" {
        precision: Asked = nonempty,
        preferred_element_type: Option<Dtype>,
        ragged_dot_dimension_numbers: Box<RaggedDims>,
    } always_none { group_offset = hidden, out_sharding = hidden }
}

#[derive(PartialEq)]
enum DimRole {
    Free,
    Contracted,
    Batch,
}
impl RaggedDot {
    fn role(&self, axis: usize) -> DimRole {
        let d = &self.ragged_dot_dimension_numbers.dot;
        if d.lc.contains(&axis) {
            DimRole::Contracted
        } else if d.lb.contains(&axis) {
            DimRole::Batch
        } else {
            DimRole::Free
        }
    }
    /// The axes of lhs that come before the ragged one and may have group sizes of their own.
    fn outer(&self, rank: usize, axis: usize) -> Dims {
        let d = &self.ragged_dot_dimension_numbers.dot;
        let before = |v: &[usize]| v.iter().copied().take_while(|k| *k != axis).collect::<Dims>();
        match self.role(axis) {
            DimRole::Batch => before(&d.lb),
            DimRole::Contracted => d.lb.concat(&before(&d.lc)),
            DimRole::Free => d.lb.concat(&before(&free(rank, &d.lc, &d.lb))),
        }
    }
    fn dot(&self, dims: DotDims, dtype: Dtype) -> Dot {
        Dot { precision: self.precision.clone(), preferred_element_type: Some(dtype), ..Dot::new(dims) }
    }
    fn meaning(&self, x: &[Value]) -> Res<Values> {
        let [lhs, rhs, sizes] = x else { return type_err("ragged_dot_general takes 3 operands") };
        let n = &*self.ragged_dot_dimension_numbers;
        let (axis, rank) = (n.ragged[0], lhs.rank());
        let dtype = self.preferred_element_type.unwrap_or(lhs.dtype());
        let role = self.role(axis);
        if role == DimRole::Batch {
            return Ok(values1(emit(self.dot(n.dot.clone(), dtype), &[lhs.clone(), rhs.clone()])));
        }
        let last = sizes.rank() - 1;
        let outer = if last > 0 { self.outer(rank, axis) } else { Dims::default() };
        let count = sizes.shape()[last];
        // an operand with groups as its last axis, zero where they do not have the element
        let masked = |v: &Value, places: &dyn Fn(usize) -> usize| {
            let wide = Dims::new(v.shape()).concat(&[count]);
            let own = members(sizes, &wide, places(axis), outer.iter().map(|k| places(*k)), v.rank());
            let spread = BroadcastInDim { broadcast_dimensions: (0..v.rank()).collect(), shape: wide.into() };
            let v = emit(spread, std::slice::from_ref(v));
            choose(&own, &v, &fill(&v, 0.0))
        };
        let left = masked(lhs, &|k| k);
        let mut dims = n.dot.clone();
        let place = |of: &[usize], k: usize| of.iter().position(|i| *i == k);
        // axes of the product: batches, groups, the free axes of both sides
        let at = dims.lb.len();
        dims.lb.push(rank);
        if role == DimRole::Free {
            let rows = free(rank, &n.dot.lc, &n.dot.lb);
            dims.rb.push(n.groups[0]);
            let y = emit(self.dot(dims, dtype), &[left, rhs.clone()]);
            let places = |k: usize| place(&n.dot.lb, k).unwrap_or_else(|| at + 1 + place(&rows, k).unwrap_or(0));
            let own = members(sizes, &Dims::new(y.shape()), places(axis), outer.iter().map(|k| places(*k)), at);
            let y = choose(&own, &y, &fill(&y, 0.0));
            let kind = if y.dtype() == Dtype::BOOL { Monoid::Or } else { Monoid::Sum };
            return Ok(values1(emit(Reduce { kind, axes: [at].into_iter().collect() }, &[y])));
        }
        let places = |k: usize| match place(&n.dot.lc, k) {
            Some(i) => n.dot.rc[i],
            None => n.dot.rb[place(&n.dot.lb, k).unwrap_or(0)],
        };
        dims.rb.push(rhs.rank());
        let y = emit(self.dot(dims, dtype), &[left, masked(rhs, &places)]);
        let permutation = [at].into_iter().chain((0..y.rank()).filter(|k| *k != at)).collect();
        Ok(values1(emit(Transpose { permutation }, &[y])))
    }
}
/// Whether the element of an array of `shape` is in the group that its index on the axis `group_at` names, by its index on `row_at`. Sizes
/// vary with the axes `outer`, whose places in the array these are.
fn members(sizes: &Value, shape: &Dims, row_at: usize, outer: impl Iterator<Item = usize>, group_at: usize) -> Value {
    let places: Vec<usize> = outer.chain([group_at]).collect();
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|k| places[*k]);
    let turn = Transpose { permutation: order.iter().copied().collect() };
    let broadcast_dimensions: Dims = order.iter().map(|k| places[*k]).collect();
    let stretch = BroadcastInDim { broadcast_dimensions, shape: shape.clone().into() };
    let spread = |v: &Value| emit(stretch.clone(), &[emit(turn.clone(), std::slice::from_ref(v))]);
    let running = Cumulative { kind: CumulativeKind::Sum, axis: sizes.rank() - 1, reverse: false };
    let ends = emit(running, std::slice::from_ref(sizes));
    let starts = &ends - sizes;
    let row = emit(Iota { dimension: row_at, dtype: sizes.dtype(), shape: Shape(shape.clone()) }, &[]);
    f2(Pw::And, &f2(Pw::Lt, &row, &spread(&ends)), &f2(Pw::Ge, &row, &spread(&starts)))
}
fn sizes_at(a: &Aval, axes: &[usize]) -> Dims {
    axes.iter().map(|k| a.shape[*k]).collect()
}

impl Rules for RaggedDot {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let name = "ragged_dot_general";
        let [lhs, rhs, sizes] = x else { return type_err(format!("{name} takes 3 operands, got {}", x.len())) };
        let n = &*self.ragged_dot_dimension_numbers;
        let d = &n.dot;
        if x.iter().any(|a| a.tape > 0) {
            return type_err(format!("{name} does not accept a tape"));
        }
        if !sizes.dtype.is_int() {
            return type_err(format!("{name} requires that group_sizes.dtype is subtype of np.integer."));
        }
        if sizes.rank() == 0 {
            return type_err(format!("{name} requires group_sizes of at least one axis."));
        }
        // the checks of the product itself, without the group axis
        let product = self.dot(d.clone(), self.preferred_element_type.unwrap_or(lhs.dtype));
        let plain = product.infer(&[lhs.clone(), rhs.clone()])?;
        let [axis] = n.ragged[..] else { return type_err(format!("{name} expects exactly one lhs ragged dimension.")) };
        let rank = lhs.rank();
        if axis >= rank {
            return type_err(format!(
                "{name} requires lhs ragged dimension numbers to be nonnegative and less than the number of axes of the lhs value, got {axis} for lhs of rank {rank}."
            ));
        }
        let (role, count) = (self.role(axis), sizes.shape[sizes.rank() - 1]);
        if role != DimRole::Free && !n.groups.is_empty() {
            return type_err(format!(
                "{name} requires zero group dimensions in the rhs when lhs ragged dimension is contracting or batch."
            ));
        }
        if role == DimRole::Free {
            let [group] = n.groups[..] else {
                return type_err(format!(
                    "{name} requires exactly one rhs group dimension when lhs ragged dimension is noncontracting."
                ));
            };
            if group >= rhs.rank() || d.rc.contains(&group) || d.rb.contains(&group) {
                return type_err(format!(
                    "{name} requires rhs group dimension numbers to be distinct from contracting and batch dimensions."
                ));
            }
            if rhs.shape[group] != count {
                return type_err(format!("expected rhs group dimension size to be {count}, got {}.", rhs.shape[group]));
            }
        }
        let wanted = sizes_at(lhs, &self.outer(rank, axis)).concat(&[count]);
        if sizes.rank() > 1 && sizes.shape != wanted {
            return type_err(format!("expected group_sizes to have shape {wanted}, got {}.", sizes.shape));
        }
        let rfree = free(rhs.rank(), &d.rc.concat(&n.groups), &d.rb);
        let parts = [sizes_at(lhs, &d.lb), sizes_at(lhs, &free(rank, &d.lc, &d.lb)), sizes_at(rhs, &rfree)];
        let groups: &[usize] = if role == DimRole::Contracted { &[count] } else { &[] };
        let shape = parts.iter().fold(Dims::new(groups), |all, p| all.concat(p));
        shape.checked(plain[0].dtype.size())?;
        Ok(smallvec![Aval::of(plain[0].dtype, shape)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let op: Op = self.clone().into();
        let y = cx.bind1(op.clone(), x)?;
        let with = |l: &Value, r: &Value| cx.bind1(op.clone(), &[l.clone(), r.clone(), x[2].clone()]);
        let l = dx[0].as_ref().map(|t| with(t, &x[1])).transpose()?;
        let r = dx[1].as_ref().map(|t| with(&x[0], t)).transpose()?;
        Ok((values1(y), smallvec![cx.add_tan(l, r)?]))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        meaning::transpose(&|x| self.meaning(x), cx, x, ct)
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        meaning::batch(&|x| self.meaning(x), cx, ax, x, d)
    }
    fn expanded(&self, x: &[Aval]) -> Res<Option<(Arc<Program>, Vec<usize>)>> {
        Ok(Some((meaning::program(x, &|x| self.meaning(x))?, (0..x.len()).collect())))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        meaning::lower(b, x, &|x| self.meaning(x))
    }
}
