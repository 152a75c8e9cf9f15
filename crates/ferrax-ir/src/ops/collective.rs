//! Across the lanes of a named axis, or the devices of a pmap: psum, pmax, pmin, all_gather, reduce_scatter, all_to_all, ppermute,
//! axis_index. The `vmap` that has the name turns them into ordinary operations on its batch axis, whether or not an operand has lanes;
//! what no vmap took is left to the devices.
//!
//! ```text
//! psum: out[j] = sum_i x[i]    all_gather: out[j] = (x[0], x[1], ..)    ppermute: out[d] = x[s] for (s, d) in perm, else 0
//! all_to_all: out[j] = (x[0] at j, x[1] at j, ..)                       reduce_scatter: out[j] = sum_i x[i] at j
//! ```
use super::concatenate::Concatenate;
use super::iota::Iota;
use super::linear_jvp;
use super::pointwise::Pw;
use super::reduce::ReduceKind;
use super::slice::Slice;
use super::zero_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int, values1};
use crate::dtype::Dtype;
use crate::effects::{Effects, Name};
use crate::error::{Error, Kind, Res, not_linear, type_err, value_err};
use crate::lower::{Graph, Node, Nodes};
use crate::op::{Avals, Axes, Effectful, Rules, Tans};
use crate::param::{Member, Param, ParamValue};
use crate::primitive;
use crate::value::{Value, Values};
use ferrax_kernel::{Dims, plan};
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
    /// The one name; gathers along several axes at once are made one by one.
    fn only(&self, what: &str) -> Res<&Name> {
        match &self.0[..] {
            [n] => Ok(n),
            _ => Err(Error::not_implemented(format!("{what} along several axes at once: nest one call for each axis"))),
        }
    }
}
impl ParamValue for Names {
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

/// The error of a name that no vmap or pmap around has.
pub fn unbound(name: &str) -> Error {
    Error::new(
        Kind::Name,
        format!(
            "Found an unbound axis name: {name}. To fix this, please call the function under `vmap` or `pmap` with axis_name={name:?}."
        ),
    )
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AllReduceKind {
    Sum,
    Max,
    Min,
}
impl Member for AllReduceKind {
    const ALL: &'static [(AllReduceKind, &'static str)] =
        &[(AllReduceKind::Sum, "psum"), (AllReduceKind::Max, "pmax"), (AllReduceKind::Min, "pmin")];
}
primitive! {
    pub struct AllReduce = kind: AllReduceKind {
        axes: Names,
    } always_none { axis_index_groups = always }
}
primitive! {
    pub struct AxisIndex = "axis_index" {
        axis_name: Name,
    }
}
primitive! {
    /// Untiled, the gathered axis is new; tiled, it is operand axis `all_gather_dimension`, `axis_size` times as long.
    pub struct AllGather = "all_gather" {
        all_gather_dimension: usize,
        axis_name: Names,
        axis_size: usize,
        tiled: bool,
    } always_none { axis_index_groups = always }
}
primitive! {
    /// The transpose of all_gather.
    pub struct ReduceScatter = "reduce_scatter" {
        axis_name: Names,
        axis_size: usize,
        scatter_dimension: usize,
        tiled: bool,
    } always_none { axis_index_groups = always }
}
primitive! {
    /// Untiled, axis `split_axis` has one entry for each device and leaves, and the devices appear as `concat_axis`.
    pub struct AllToAll = "all_to_all" {
        axis_name: Name,
        axis_size: usize = hidden,
        concat_axis: usize,
        split_axis: usize,
        tiled: bool,
    } always_none { axis_index_groups = always }
}
primitive! {
    pub struct Permute = "ppermute" {
        axis_name: Names,
        perm: Vec<(usize, usize)>,
    }
}

impl Effectful for AllReduce {
    fn effects(&self) -> Effects {
        self.axes.effects()
    }
}
impl Effectful for AxisIndex {
    fn effects(&self) -> Effects {
        Effects::axis(&self.axis_name)
    }
}
impl Effectful for AllGather {
    fn effects(&self) -> Effects {
        self.axis_name.effects()
    }
}
impl Effectful for ReduceScatter {
    fn effects(&self) -> Effects {
        self.axis_name.effects()
    }
}
impl Effectful for AllToAll {
    fn effects(&self) -> Effects {
        Effects::axis(&self.axis_name)
    }
}
impl Effectful for Permute {
    fn effects(&self) -> Effects {
        self.axis_name.effects()
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
        if a.dtype.is_key() || (a.dtype.is_bool() && self.kind == AllReduceKind::Sum) {
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
        let sum = AllReduce { kind: AllReduceKind::Sum, ..self.clone() };
        let mine = cx.convert(&cx.pw2(Pw::Eq, &x[0], &y)?, y.dtype())?;
        let total = cx.bind1(sum.clone(), &[cx.mul(t, &mine)?])?;
        let count = cx.bind1(sum, &[mine])?;
        let dy = cx.div(&total, &count)?;
        Ok((values1(y), smallvec![Some(dy)]))
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        if self.kind != AllReduceKind::Sum {
            return not_linear(self.kind.name());
        }
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(self.clone(), std::slice::from_ref(ct))).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        if !self.axes.has(ax) {
            return Ok((cx.bind(&self.clone().into(), x)?, d.into()));
        }
        let kind = match self.kind {
            AllReduceKind::Sum => ReduceKind::Sum,
            AllReduceKind::Max => ReduceKind::Max,
            AllReduceKind::Min => ReduceKind::Min,
        };
        let y = match d[0] {
            Some(d) => cx.reduce(kind, &x[0], [d].into())?,
            None if self.kind == AllReduceKind::Sum => cx.mul(&x[0], &int(x[0].dtype(), ax.n as i64))?,
            None => x[0].clone(),
        };
        let axes = self.axes.without(ax);
        let y = if axes.0.is_empty() { y } else { cx.bind1(AllReduce { axes, ..self.clone() }, &[y])? };
        Ok((values1(y), smallvec![None]))
    }
    fn lower(&self, b: &mut Graph, x: &[Node], out: &[Aval]) -> Res<Nodes> {
        let kind = match self.kind {
            AllReduceKind::Sum => ferrax_kernel::ReduceKind::Sum,
            AllReduceKind::Max => ferrax_kernel::ReduceKind::Max,
            AllReduceKind::Min => ferrax_kernel::ReduceKind::Min,
        };
        Ok(b.collective(plan::Collective::AllReduce(kind), self.axes.0.to_vec(), x, out))
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
    fn lower(&self, b: &mut Graph, _: &[Node], out: &[Aval]) -> Res<Nodes> {
        Ok(b.collective(plan::Collective::AxisIndex, vec![self.axis_name.clone()], &[], out))
    }
}

impl Rules for AllGather {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let (a, k) = (operand("all_gather", x)?, self.all_gather_dimension);
        if k >= a.rank() + !self.tiled as usize {
            return value_err(format!("all_gather axis {k} is out of bounds for {}", a.long()));
        }
        let mut shape = a.shape.clone();
        if self.tiled {
            shape[k] *= self.axis_size
        } else {
            shape = shape.insert(k, self.axis_size)
        }
        Ok(smallvec![a.with_shape(shape)])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let back = ReduceScatter {
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
        let y = cx.batch_at(&x[0], d[0], ax.n, k)?;
        Ok((values1(if self.tiled { merge(cx, &y, k)? } else { y }), smallvec![None]))
    }
    fn lower(&self, b: &mut Graph, x: &[Node], out: &[Aval]) -> Res<Nodes> {
        let k = self.all_gather_dimension;
        let shape = b.shape(x[0]);
        let stacked = out[0].with_shape(shape.insert(0, self.axis_size));
        let y = b.collective(plan::Collective::AllGather, self.axis_name.0.to_vec(), x, &[stacked])[0];
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
        let (a, k) = (operand("reduce_scatter", x)?, self.scatter_dimension);
        let n = self.axis_size;
        let fits = a.shape.get(k).is_some_and(|m| if self.tiled { m.is_multiple_of(n) } else { *m == n });
        if !fits {
            return value_err(format!(
                "reduce_scatter operand scatter dimension size {:?} must match shard count {n}",
                a.shape.get(k)
            ));
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
        let back = AllGather {
            all_gather_dimension: self.scatter_dimension,
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
        let sum = match d[0] {
            Some(d) => cx.reduce(ReduceKind::Sum, &x[0], [d].into())?,
            None => cx.mul(&x[0], &int(x[0].dtype(), ax.n as i64))?,
        };
        // the scattered axis is now the lanes'
        Ok((values1(if self.tiled { split(cx, &sum, k, ax.n)? } else { sum }), smallvec![Some(k)]))
    }
    fn lower(&self, b: &mut Graph, x: &[Node], out: &[Aval]) -> Res<Nodes> {
        let (k, n) = (self.scatter_dimension, self.axis_size);
        let mut s = b.shape(x[0]);
        if self.tiled {
            s[k] /= n;
            s = s.insert(k, n);
        }
        let y = b.reshape(x[0], s.clone());
        let perm: Vec<usize> = std::iter::once(k).chain((0..s.len()).filter(|j| *j != k)).collect();
        let y = b.transpose(y, &perm);
        let swapped = out[0].with_shape(s.pick(&perm));
        let y = b.collective(plan::Collective::AllToAll, self.axis_name.0.to_vec(), &[y], &[swapped])[0];
        Ok(smallvec![b.reduce(ferrax_kernel::ReduceKind::Sum, y, &[0])])
    }
}

impl Rules for AllToAll {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let (a, s, c, n) = (operand("all_to_all", x)?, self.split_axis, self.concat_axis, self.axis_size);
        let fits = a.shape.get(s).is_some_and(|m| if self.tiled { m.is_multiple_of(n) } else { *m == n });
        if !fits || c >= a.rank() {
            return value_err(format!(
                "all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are {n} and {:?} respectively.",
                a.shape.get(s)
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
        // [lanes, .., split, ..]: the lanes become the concatenated axis, the split axis becomes the lanes
        let x = cx.batch_at(&x[0], d[0], ax.n, 0)?;
        let x = if self.tiled { split(cx, &x, s + 1, ax.n)? } else { x };
        let x = cx.move_axis(&x, s + 1, 0)?; // [split, lanes, rest..]
        let y = cx.move_axis(&x, 1, c + 1)?;
        Ok((values1(if self.tiled { merge(cx, &y, c + 1)? } else { y }), smallvec![Some(0)]))
    }
    fn lower(&self, b: &mut Graph, x: &[Node], out: &[Aval]) -> Res<Nodes> {
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
        let y = b.collective(plan::Collective::AllToAll, vec![self.axis_name.clone()], &[y], &[swapped])[0];
        let perm: Vec<usize> = (1..=c).chain([0]).chain(c + 1..shape.len()).collect();
        let y = b.transpose(y, &perm);
        Ok(smallvec![b.reshape(y, out[0].shape.clone())])
    }
}

impl Rules for Permute {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let a = operand("ppermute", x)?;
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
        let shape = Dims::new(x.shape());
        let one = |k: usize| {
            let mut start_indices: Dims = shape.iter().map(|_| 0).collect();
            let mut limit_indices = shape.clone();
            start_indices[0] = k;
            limit_indices[0] = k + 1;
            cx.bind1(Slice { limit_indices, start_indices, strides: None }, std::slice::from_ref(&x))
        };
        let mut none = x.aval();
        none.shape[0] = 1;
        let lane = |t: usize| match self.perm.iter().find(|p| p.1 == t) {
            Some((s, _)) => one(*s),
            None => cx.zeros(&none),
        };
        let lanes: Values = (0..ax.n).map(lane).collect::<Res<_>>()?;
        Ok((values1(cx.bind1(Concatenate { dimension: 0 }, &lanes)?), smallvec![Some(0)]))
    }
    fn lower(&self, b: &mut Graph, x: &[Node], out: &[Aval]) -> Res<Nodes> {
        let perm = self.perm.iter().map(|(s, d)| (*s as u32, *d as u32)).collect();
        Ok(b.collective(plan::Collective::Permute(perm), self.axis_name.0.to_vec(), x, out))
    }
}
