//! Across the lanes of a named axis, or the devices of a pmap: psum, pmax, pmin, all_gather, reduce_scatter, all_to_all, ppermute,
//! axis_index. The `vmap` that has the name turns them into ordinary operations on its batch axis, whether or not an operand has lanes;
//! those without such a `vmap` are left to the devices.
//!
//! ```text
//! psum: out[j] = sum_i x[i]    all_gather: out[j] = (x[0], x[1], ..)    ppermute: out[d] = x[s] for (s, d) in perm, else 0
//! all_to_all: out[j] = (x[0] at j, x[1] at j, ..)                       reduce_scatter: out[j] = sum_i x[i] at j
//! ```
//!
//! With `axis_index_groups`, i runs over the group of j alone, in the order in which the group is given. What groups are and who
//! is in which is defined by `ferrax_kernel::collective`, for batches and for devices.
mod groups;
mod vary;

pub(crate) use vary::as_terms;
pub use vary::{CastKind, VaryCast};

use super::iota::Iota;
use super::linear_jvp;
use super::pointwise::Pw;
use super::reduce::Monoid;
use super::zero_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int, values1};
use crate::dtype::Dtype;
use crate::effects::{Effects, Name};
use crate::error::{Error, ErrorKind, Res, not_linear, type_err, value_err};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::param::{Member, Param, ParamValue};
use crate::primitive;
use crate::typing::Sums;
use crate::value::{Value, Values};
use crate::vary::Vary;
use ferrax_kernel::Dims;
use ferrax_kernel::collective::{Across, Collective, Groups};
use groups::{by_groups, check_groups, pick_lanes};
use smallvec::{SmallVec, smallvec};

/// The names of axes, as a tuple; a single name is read too.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Names(pub SmallVec<[Name; 1]>);
impl Names {
    fn effects(&self) -> Effects {
        Effects { axes: self.0.clone(), ..Effects::default() }
    }
    fn has(&self, ax: Axis) -> bool {
        self.0.iter().any(|n| ax.is(n))
    }
    fn without(&self, ax: Axis) -> Names {
        Names(self.0.iter().filter(|n| !ax.is(n)).cloned().collect())
    }
    fn across(&self, groups: &Option<Groups>) -> Across {
        Across { axes: self.0.to_vec(), groups: groups.clone() }
    }
    /// The one name; gathers along several axes at once are made one by one.
    fn vary(&self) -> Vary {
        Vary::of(self.0.iter().cloned())
    }
    fn only(&self, what: &str) -> Res<&Name> {
        match &self.0[..] {
            [n] => Ok(n),
            _ => Err(Error::not_implemented(format!("{what} along several axes at once: nest one call for each axis"))),
        }
    }
}
impl ParamValue for Names {
    fn words() -> String {
        "a tuple of axis names".into()
    }
    fn to_param(&self) -> Param {
        Param::Tuple(self.0.iter().map(|n| Param::Str(n.clone())).collect())
    }
    fn from_param(p: &Param) -> Option<Names> {
        match p {
            Param::Str(s) => Some(Names(smallvec![s.clone()])),
            p => p.items()?.iter().map(Name::from_param).collect::<Option<_>>().map(Names),
        }
    }
}

impl ParamValue for Groups {
    fn words() -> String {
        "groups of axis indices".into()
    }
    fn to_param(&self) -> Param {
        let group = |g: &[u32]| Param::Tuple(g.iter().map(|i| Param::Int(*i as i64)).collect());
        Param::Tuple(self.iter().map(group).collect())
    }
    fn from_param(p: &Param) -> Option<Groups> {
        let group = |p: &Param| p.items()?.iter().map(u32::from_param).collect::<Option<Vec<_>>>();
        p.items()?.iter().map(group).collect::<Option<Vec<_>>>().map(Groups::new)
    }
}
/// The error for a name that no enclosing vmap or pmap has.
pub fn unbound(name: &str) -> Error {
    Error::new(ErrorKind::Name, format!("unbound axis name: {name}"))
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AllReduceKind {
    Sum,
    /// The sum of a varying value, which is invariant; its transpose is not a sum.
    SumInvariant,
    /// The sum of a value that types mark as not yet summed (`unreduced`).
    SumTerms,
    Max,
    Min,
}
impl Member for AllReduceKind {
    const ALL: &'static [(AllReduceKind, &'static str)] = &[
        (AllReduceKind::Sum, "psum"),
        (AllReduceKind::SumInvariant, "psum_invariant"),
        (AllReduceKind::SumTerms, "unreduced_psum"),
        (AllReduceKind::Max, "pmax"),
        (AllReduceKind::Min, "pmin"),
    ];
}
impl AllReduceKind {
    fn sums(self) -> bool {
        matches!(self, AllReduceKind::Sum | AllReduceKind::SumInvariant | AllReduceKind::SumTerms)
    }
}
primitive! {
    pub struct AllReduce = kind: AllReduceKind {
        axes: Names,
        axis_index_groups: Option<Groups>,
    }
}
primitive! {
    pub struct AxisIndex = "axis_index" {
        axis_name: Name,
    }
}
/// The types of gathered values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GatherKind {
    /// It varies over the axis, though it is the same everywhere.
    Vary,
    Invariant,
    Reduced,
}
impl Member for GatherKind {
    const ALL: &'static [(GatherKind, &'static str)] = &[
        (GatherKind::Vary, "all_gather"),
        (GatherKind::Invariant, "all_gather_invariant"),
        (GatherKind::Reduced, "all_gather_reduced"),
    ];
}
/// Whether types mark that it takes a sum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScatterSumKind {
    Vary,
    Terms,
}
impl Member for ScatterSumKind {
    const ALL: &'static [(ScatterSumKind, &'static str)] =
        &[(ScatterSumKind::Vary, "reduce_scatter"), (ScatterSumKind::Terms, "unreduced_reduce_scatter")];
}
primitive! {
    /// Untiled, the gathered axis is new; tiled, it is operand axis `all_gather_dimension`, `axis_size` times as long.
    pub struct AllGather = kind: GatherKind {
        all_gather_dimension: usize,
        axis_index_groups: Option<Groups>,
        axis_name: Names,
        /// The number of gathered values: the size of the axis, or of a group.
        axis_size: usize,
        tiled: bool,
    }
}
primitive! {
    /// The transpose of all_gather, but of the invariant one.
    pub struct ReduceScatter = kind: ScatterSumKind {
        axis_index_groups: Option<Groups>,
        axis_name: Names,
        axis_size: usize,
        scatter_dimension: usize,
        tiled: bool,
    }
}
primitive! {
    /// Untiled, axis `split_axis` has one entry for each device and leaves, and the devices appear as `concat_axis`.
    pub struct AllToAll = "all_to_all" {
        axis_index_groups: Option<Groups>,
        axis_name: Name,
        axis_size: usize,
        concat_axis: usize,
        split_axis: usize,
        tiled: bool,
    }
}
primitive! {
    pub struct Permute = "ppermute" {
        axis_name: Names,
        perm: Vec<(usize, usize)>,
    }
}

fn operand<'a>(name: &str, x: &'a [Aval]) -> Res<&'a Aval> {
    match x {
        [a] => Ok(a),
        _ => Err(Error::type_error(format!("{name} takes 1 operand, got {}", x.len()))),
    }
}
impl Rules for AllReduce {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let a = operand(self.kind.name(), x)?;
        check_groups(self.kind.name(), self.axes.0.len(), &self.axis_index_groups, None)?;
        if self.kind != AllReduceKind::SumTerms {
            self.axes.refuse_sums(self.kind.name(), a)?;
        }
        if a.dtype.is_key() || (a.dtype.is_bool() && self.kind.sums()) {
            return type_err(format!("{} does not accept dtype {}.", self.kind.name(), a.dtype.long()));
        }
        Ok(smallvec![a.clone()])
    }
    /// The extremum's tangent is the mean of the tangents of those that reach it.
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let (AllReduceKind::Max | AllReduceKind::Min, Some(t)) = (self.kind, &dx[0]) else {
            return linear_jvp(&self.clone().into(), cx, x, dx);
        };
        let y = cx.bind1(self.clone(), x)?;
        let kind = if x[0].vary().is_none() { AllReduceKind::Sum } else { AllReduceKind::SumInvariant };
        let sum = AllReduce { kind, ..self.clone() };
        let mine = cx.convert(&cx.pw2(Pw::Eq, &x[0], &y)?, y.dtype())?;
        let total = cx.bind1(sum.clone(), &[cx.mul(t, &mine)?])?;
        let count = cx.bind1(sum, &[mine])?;
        let dy = cx.div(&total, &count)?;
        Ok((values1(y), smallvec![Some(dy)]))
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let back = |op: Op| Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(op, std::slice::from_ref(ct))).transpose()?]);
        match self.kind {
            AllReduceKind::Sum => back(self.clone().into()),
            AllReduceKind::SumInvariant => back(VaryCast { kind: CastKind::Vary, axes: self.axes.clone() }.into()),
            AllReduceKind::SumTerms => back(VaryCast { kind: CastKind::Reduced, axes: self.axes.clone() }.into()),
            kind => not_linear(kind.name()),
        }
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        if !self.axes.has(ax) {
            return Ok((cx.bind(&self.clone().into(), x)?, d.into()));
        }
        let kind = match self.kind {
            _ if self.kind.sums() => Monoid::Sum,
            AllReduceKind::Max => Monoid::Max,
            _ => Monoid::Min,
        };
        let (y, d) = by_groups(cx, ax, self, &self.axis_index_groups, (&x[0], d[0]), |n, x, d| {
            let y = match d {
                Some(d) => cx.reduce(kind, x, [d].into())?,
                None if self.kind.sums() => cx.mul(x, &int(x.dtype(), n as i64))?,
                None => x.clone(),
            };
            Ok((y, None))
        })?;
        // groups are of one axis alone
        let axes = self.axes.without(ax);
        if axes.0.is_empty() {
            return Ok((y, d));
        }
        Ok((cx.bind(&AllReduce { axes, ..self.clone() }.into(), &y)?, d))
    }
    fn sums(&self) -> Sums {
        if self.kind.sums() { Sums::Moved } else { Sums::Sliced }
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let kind = match self.kind {
            kind if kind.sums() => ferrax_kernel::ReduceKind::Sum,
            AllReduceKind::Max => ferrax_kernel::ReduceKind::Max,
            _ => ferrax_kernel::ReduceKind::Min,
        };
        Ok(b.collective(Collective::AllReduce(kind), self.axes.across(&self.axis_index_groups), x, out))
    }
}

impl Rules for AxisIndex {
    fn infer(&self, _: &[Aval]) -> Res<Avals> {
        Ok(smallvec![Aval::scalar(Dtype::I32)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        Ok(smallvec![])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], _: &[Dim]) -> Res<(Values, Axes)> {
        if !ax.is(&self.axis_name) {
            return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None]));
        }
        let iota = Iota { dimension: 0, dtype: Dtype::I32, shape: Dims::new(&[ax.n]).into() };
        Ok((cx.bind(&iota.into(), &[])?, smallvec![Some(0)]))
    }
    fn lower(&self, b: &mut Graph, _: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        Ok(b.collective(Collective::AxisIndex, Across::axes([self.axis_name.clone()]), &[], out))
    }
}

impl Rules for AllGather {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let (a, k) = (operand("all_gather", x)?, self.all_gather_dimension);
        check_groups("all_gather", self.axis_name.0.len(), &self.axis_index_groups, Some(self.axis_size))?;
        self.axis_name.refuse_sums(self.kind.name(), a)?;
        if k >= a.rank() + !self.tiled as usize {
            return value_err(format!("all_gather axis {k} is out of bounds for {}", a.long()));
        }
        let mut shape = a.shape.clone();
        if self.tiled {
            shape[k] = shape[k].saturating_mul(self.axis_size)
        } else {
            shape = shape.insert(k, self.axis_size)
        }
        Ok(smallvec![a.with_shape(shape)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        if self.kind == GatherKind::Invariant {
            let mine = |ct| self.own_part(cx, ct, x[0].aval().shape[..].into());
            return Ok(smallvec![ct[0].as_ref().map(mine).transpose()?]);
        }
        let kind = if self.kind == GatherKind::Reduced { ScatterSumKind::Terms } else { ScatterSumKind::Vary };
        let back = ReduceScatter {
            kind,
            axis_index_groups: self.axis_index_groups.clone(),
            axis_name: self.axis_name.clone(),
            axis_size: self.axis_size,
            scatter_dimension: self.all_gather_dimension,
            tiled: self.tiled,
        };
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(back, std::slice::from_ref(ct))).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let k = self.all_gather_dimension;
        if !self.axis_name.has(ax) {
            let x = cx.to_front(&x[0], d[0])?;
            let by = d[0].is_some() as usize;
            let op = AllGather { all_gather_dimension: k + by, ..self.clone() };
            return Ok((cx.bind(&op.into(), &[x])?, smallvec![d[0].map(|_| 0)]));
        }
        self.axis_name.only("all_gather")?;
        by_groups(cx, ax, self, &self.axis_index_groups, (&x[0], d[0]), |n, x, d| {
            let y = cx.batch_at(x, d, n, k)?;
            let y = if self.tiled { merge(cx, &y, k)? } else { y };
            // it has one value, in a type that varies
            let varies = ax.kind.is_manual() && self.kind == GatherKind::Vary;
            if varies { Ok((cx.batch_at(&y, None, n, 0)?, Some(0))) } else { Ok((y, None)) }
        })
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let k = self.all_gather_dimension;
        let shape = b.shape(x[0]);
        let stacked = out[0].with_shape(shape.insert(0, self.axis_size));
        let y = b.collective(Collective::AllGather, self.axis_name.across(&self.axis_index_groups), x, &[stacked])[0];
        // the devices' axis to its place
        let perm: Vec<usize> = (1..=k).chain([0]).chain(k + 1..=shape.len()).collect();
        let y = b.transpose(y, &perm);
        Ok(smallvec![b.reshape(y, out[0].shape.clone())])
    }
}
/// Axes k and k + 1 as one.
fn merge(cx: &dyn Cx, x: &Value, k: usize) -> Res<Value> {
    let mut s = Dims::new(x.shape());
    s[k + 1] *= s[k];
    cx.reshape(x, &s.remove(k))
}
/// Axis k as `n` blocks, the blocks first.
fn split(cx: &dyn Cx, x: &Value, k: usize, n: usize) -> Res<Value> {
    let mut s = Dims::new(x.shape());
    s[k] /= n.max(1);
    cx.reshape(x, &s.insert(k, n))
}

impl Rules for ReduceScatter {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let (a, k, n) = (operand("reduce_scatter", x)?, self.scatter_dimension, self.axis_size);
        check_groups("reduce_scatter", self.axis_name.0.len(), &self.axis_index_groups, Some(n))?;
        if self.kind == ScatterSumKind::Vary {
            self.axis_name.refuse_sums("reduce_scatter", a)?;
        }
        match a.shape.get(k) {
            None => return value_err(format!("reduce_scatter dimension {k} is out of bounds for {}", a.long())),
            Some(m) if self.tiled && (n == 0 || !m.is_multiple_of(n)) => {
                return value_err(format!(
                    "tiled reduce_scatter operand scatter dimension size {m} must be divisible by shard_count {n}"
                ));
            }
            Some(m) if !self.tiled && *m != n => {
                return value_err(format!(
                    "reduce_scatter operand scatter dimension size {m} must match shard count {n}"
                ));
            }
            Some(_) => (),
        }
        let mut shape = a.shape.clone();
        if self.tiled {
            shape[k] /= n
        } else {
            shape = shape.remove(k)
        }
        Ok(smallvec![a.with_shape(shape)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let kind = if self.kind == ScatterSumKind::Terms { GatherKind::Reduced } else { GatherKind::Vary };
        let back = AllGather {
            kind,
            all_gather_dimension: self.scatter_dimension,
            axis_index_groups: self.axis_index_groups.clone(),
            axis_name: self.axis_name.clone(),
            axis_size: self.axis_size,
            tiled: self.tiled,
        };
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(back, std::slice::from_ref(ct))).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let k = self.scatter_dimension;
        if !self.axis_name.has(ax) {
            let x = cx.to_front(&x[0], d[0])?;
            let op = ReduceScatter { scatter_dimension: k + d[0].is_some() as usize, ..self.clone() };
            return Ok((cx.bind(&op.into(), &[x])?, smallvec![d[0].map(|_| 0)]));
        }
        self.axis_name.only("reduce_scatter")?;
        by_groups(cx, ax, self, &self.axis_index_groups, (&x[0], d[0]), |n, x, d| {
            let sum = match d {
                Some(d) => cx.reduce(Monoid::Sum, x, [d].into())?,
                None => cx.mul(x, &int(x.dtype(), n as i64))?,
            };
            // the scattered axis is now the lanes'
            Ok((if self.tiled { split(cx, &sum, k, n)? } else { sum }, Some(k)))
        })
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let (k, n) = (self.scatter_dimension, self.axis_size);
        let mut s = b.shape(x[0]);
        if self.tiled {
            s[k] /= n;
            s = s.insert(k, n);
        }
        let y = b.reshape(x[0], s.clone());
        let perm: Vec<usize> = std::iter::once(k).chain((0..s.len()).filter(|j| *j != k)).collect();
        let y = b.transpose(y, &perm);
        let kind = Collective::ReduceScatter(ferrax_kernel::ReduceKind::Sum);
        Ok(b.collective(kind, self.axis_name.across(&self.axis_index_groups), &[y], out))
    }
}

impl Rules for AllToAll {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let (a, s, c, n) = (operand("all_to_all", x)?, self.split_axis, self.concat_axis, self.axis_size);
        check_groups("all_to_all", 1, &self.axis_index_groups, Some(n))?;
        Names(smallvec![self.axis_name.clone()]).refuse_sums("all_to_all", a)?;
        if s >= a.rank() || c >= a.rank() {
            return value_err(format!("all_to_all axes {s} and {c} are out of bounds for {}", a.long()));
        }
        let m = a.shape[s];
        if !self.tiled && m != n {
            return value_err(format!(
                "all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are {n} and {m} respectively."
            ));
        }
        if self.tiled && (n == 0 || !m.is_multiple_of(n)) {
            return value_err(format!(
                "The size of all_to_all split_axis ({m}) has to be divisible by the size of the named axis {} ({n})",
                self.axis_name
            ));
        }
        let mut shape = a.shape.clone();
        if self.tiled {
            shape[s] /= n;
            shape[c] *= n;
        } else {
            shape = shape.remove(s).insert(c, n);
        }
        Ok(smallvec![a.with_shape(shape)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let back = AllToAll { split_axis: self.concat_axis, concat_axis: self.split_axis, ..self.clone() };
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(back, std::slice::from_ref(ct))).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let (s, c) = (self.split_axis, self.concat_axis);
        if !ax.is(&self.axis_name) {
            let by = d[0].is_some() as usize;
            let x = cx.to_front(&x[0], d[0])?;
            let op = AllToAll { split_axis: s + by, concat_axis: c + by, ..self.clone() };
            return Ok((cx.bind(&op.into(), &[x])?, smallvec![d[0].map(|_| 0)]));
        }
        by_groups(cx, ax, self, &self.axis_index_groups, (&x[0], d[0]), |n, x, d| {
            // [lanes, .., split, ..]: the lanes become the concatenated axis, the split axis becomes the lanes
            let x = cx.batch_at(x, d, n, 0)?;
            let x = if self.tiled { split(cx, &x, s + 1, n)? } else { x };
            let x = cx.move_axis(&x, s + 1, 0)?; // [split, lanes, rest..]
            let y = cx.move_axis(&x, 1, c + 1)?;
            Ok((if self.tiled { merge(cx, &y, c + 1)? } else { y }, Some(0)))
        })
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let (s, c, n) = (self.split_axis, self.concat_axis, self.axis_size);
        let mut shape = b.shape(x[0]);
        if self.tiled {
            shape[s] /= n;
            shape = shape.insert(s, n);
        }
        let y = b.reshape(x[0], shape.clone());
        let perm: Vec<usize> = std::iter::once(s).chain((0..shape.len()).filter(|j| *j != s)).collect();
        let y = b.transpose(y, &perm);
        let swapped = out[0].with_shape(shape.pick(&perm));
        let across = Across { axes: vec![self.axis_name.clone()], groups: self.axis_index_groups.clone() };
        let y = b.collective(Collective::AllToAll, across, &[y], &[swapped])[0];
        let perm: Vec<usize> = (1..=c).chain([0]).chain(c + 1..shape.len()).collect();
        let y = b.transpose(y, &perm);
        Ok(smallvec![b.reshape(y, out[0].shape.clone())])
    }
}

impl Rules for Permute {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let a = operand("ppermute", x)?;
        self.axis_name.refuse_sums("ppermute", a)?;
        for side in [0, 1] {
            let mut seen: Vec<usize> = self.perm.iter().map(|p| if side == 0 { p.0 } else { p.1 }).collect();
            seen.sort_unstable();
            if seen.windows(2).any(|w| w[0] == w[1]) {
                return value_err(format!("ppermute sources and destinations must be unique, got {:?}.", self.perm));
            }
        }
        Ok(smallvec![a.clone()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let back = Permute { perm: self.perm.iter().map(|(s, d)| (*d, *s)).collect(), ..self.clone() };
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(back, std::slice::from_ref(ct))).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        if !self.axis_name.has(ax) {
            return Ok((cx.bind(&self.clone().into(), x)?, d.into()));
        }
        self.axis_name.only("ppermute")?;
        if let Some((s, t)) = self.perm.iter().find(|(s, t)| *s >= ax.n || *t >= ax.n) {
            return value_err(format!("ppermute pair ({s}, {t}) is out of range for an axis of size {}", ax.n));
        }
        let x = cx.batch_at(&x[0], d[0], ax.n, 0)?;
        let source = |t: usize| self.perm.iter().find(|p| p.1 == t).map(|p| p.0);
        let lanes: Vec<_> = (0..ax.n).map(source).collect();
        Ok((values1(pick_lanes(cx, &x, 0, &lanes)?), smallvec![Some(0)]))
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let perm = self.perm.iter().map(|(s, d)| (*s as u32, *d as u32)).collect();
        Ok(b.collective(Collective::Permute(perm), self.axis_name.across(&None), x, out))
    }
}
