//! shard_map: the body on each device of a mesh, on its parts of the operands; results are assembled from the parts.
//!
//! ```text
//! operand k is cut by the axes in_specs[k], and each device runs `jaxpr` on its part; out_specs says how results go together
//! numpy: split every operand along those axes, a loop over the devices, concatenate along the results' axes
//! ```
//!
//! `manual_axes` are the axes of the mesh that the body names in its collectives; along the others it is partitioned like any program.
//! With `check_vma` the body's types say over which axes values vary. In a program of one device the positions of the mesh are lanes.
use super::call::{among_outputs, residuals, with_forwarded};
use super::collective::{AllReduce, AllReduceKind, Names};
use super::iota::Iota;
use super::pmap::Places;
use super::pointwise::Pw;
use super::reduce::Monoid;
use super::slice::Slice;
use crate::aval::{Aval, same_avals};
use crate::cut::{BodyMesh, MeshType, TypedCut};
use crate::cx::{
    Arg, Axis, AxisKind, Body, Cx, Dim, NamedAxis, Residual, Tan, cuts_lanes, eval_root, int, lit, name_axes,
};
use crate::dtype::Dtype;
use crate::effects::{Effects, Name};
use crate::error::{Error, Res, value_err};
use crate::layout::{AxisSet, CutAxes, Grid, Spec};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::mask::{cat, count, merge, nonzero, not, pick, spread};
use crate::op::{Avals, Axes, BodyRules, Op, Rules, Tans};
use crate::ops::call::lanes;
use crate::param::{Param, ParamValue};
use crate::program::{Program, mismatch};
use crate::value::{Tag, Value, Values};
use crate::vary::Vary;
use crate::{hidden_param, primitive};
use ferrax_kernel::Dims;
use smallvec::smallvec;
use std::sync::Arc;

/// How an array lies on the mesh, by the names of its axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NamedSpec {
    /// For each dimension the axes that cut it, the coarsest first.
    pub dims: Vec<Names>,
    /// The array is the sum of what the devices along these have.
    pub unreduced: Names,
    /// The sums of its derivatives along these are not taken.
    pub reduced: Names,
}
impl From<Vec<Names>> for NamedSpec {
    fn from(dims: Vec<Names>) -> NamedSpec {
        NamedSpec { dims, unreduced: Names(smallvec![]), reduced: Names(smallvec![]) }
    }
}
/// A tuple of the dimensions; behind them `unreduced` and `reduced`, each with its axes, where there are such.
impl ParamValue for NamedSpec {
    fn words() -> String {
        "for each dimension a tuple of axis names".into()
    }
    fn to_param(&self) -> Param {
        let mut all: Vec<Param> = self.dims.iter().map(Names::to_param).collect();
        for (word, names) in [("unreduced", &self.unreduced), ("reduced", &self.reduced)] {
            if !names.0.is_empty() {
                all.extend([Param::Str(word.into()), names.to_param()]);
            }
        }
        Param::Tuple(all)
    }
    fn from_param(p: &Param) -> Option<NamedSpec> {
        let mut spec = NamedSpec::from(vec![]);
        let mut rest = p.items()?.iter();
        while let Some(p) = rest.next() {
            match p {
                Param::Str(s) if **s == *"unreduced" => spec.unreduced = Names::from_param(rest.next()?)?,
                Param::Str(s) if **s == *"reduced" => spec.reduced = Names::from_param(rest.next()?)?,
                p => spec.dims.push(Names::from_param(p)?),
            }
        }
        Some(spec)
    }
}
impl NamedSpec {
    fn whole(rank: usize) -> NamedSpec {
        vec![Names(smallvec![]); rank].into()
    }
    /// Cut by these axes along a new leading dimension.
    fn stacked(names: &[Name], rank: usize) -> NamedSpec {
        let mut spec = NamedSpec::whole(rank + 1);
        spec.dims[0] = Names(names.into());
        spec
    }
    fn rank(&self) -> usize {
        self.dims.len()
    }
    /// The axes that cut it.
    fn cutting(&self) -> Vec<Name> {
        self.dims.iter().flat_map(|names| names.0.iter().cloned()).collect()
    }
    /// Those along which devices have different values: parts, or terms.
    fn apart(&self) -> Vec<Name> {
        self.cutting().into_iter().chain(self.unreduced.0.iter().cloned()).collect()
    }
    /// That of cotangents.
    fn cotangent(&self) -> NamedSpec {
        NamedSpec { unreduced: self.reduced.clone(), reduced: self.unreduced.clone(), ..self.clone() }
    }
    /// Of a value whose type says this of sums.
    fn of_type(self, cut: TypedCut) -> NamedSpec {
        let [unreduced, reduced] = cut.manual_sums().map(|names| Names(names.into()));
        NamedSpec { unreduced, reduced, ..self }
    }
}

primitive! {
    pub struct ShardMap = "shard_map" {
        check_vma: bool,
        in_specs: Vec<NamedSpec>,
        jaxpr: Arc<Program>,
        manual_axes: Names,
        mesh: Grid,
        out_specs: Vec<NamedSpec>,
        /// The mesh's devices, by the executor's numbers.
        devices: Places = hidden,
        /// Further text of the host about the mesh.
        label: Option<Arc<str>> = hidden,
        types: MeshTypes = hidden,
    }
}

/// The mesh as types know it around the body, and within it, where the axes that the body names are none of theirs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MeshTypes {
    pub around: Option<Arc<MeshType>>,
    pub within: Option<Arc<MeshType>>,
}
hidden_param!(MeshTypes, "meshes", MeshTypes::default());
impl MeshTypes {
    /// The cut in the type of a device's part of a value whose type has `cut`.
    pub fn local(&self, cut: TypedCut) -> TypedCut {
        match (cut.get(), &self.within) {
            (Some(p), Some(m)) if p.mesh.grid == m.grid => TypedCut::new(m, &p.spec),
            _ => TypedCut::NONE,
        }
    }
}

/// A body that runs on parts, as the pass that partitions programs sees it.
pub struct ManualBody<'a> {
    pub program: &'a Arc<Program>,
    pub mesh: &'a Grid,
    /// The axes that the body itself names.
    pub axes: &'a Names,
    pub ins: &'a [NamedSpec],
    pub outs: &'a [NamedSpec],
}
impl ManualBody<'_> {
    /// Whether the axes that it names are those of the grid that the program is partitioned for.
    pub fn check(&self, grid: &Grid) -> Res<()> {
        let size = |g: &Grid, n: &Name| g.find(n).map(|a| g.axis_size(a));
        match self.axes.0.iter().find(|n| size(grid, n).is_none() || size(grid, n) != size(self.mesh, n)) {
            None => Ok(()),
            Some(n) => Err(Error::not_implemented(format!(
                "one program with shard_maps over several meshes: the axis {n} of {:?} is not one of {:?}; jit what belongs to each mesh by itself",
                self.mesh.axes, grid.axes
            ))),
        }
    }
    /// A spec in terms of a grid that has its axes.
    pub fn spec(named: &NamedSpec, grid: &Grid) -> Res<Spec> {
        let find = |n: &Name| match grid.find(n) {
            Some(a) => Ok(a),
            None => value_err(format!("a shard_map cuts by the axis {n}, which is not one of {:?}", grid.axes)),
        };
        let axes = |names: &Names| names.0.iter().map(find).collect::<Res<CutAxes>>();
        let [unreduced, reduced] = [axes(&named.unreduced)?, axes(&named.reduced)?].map(AxisSet::of);
        let dims = named.dims.iter().map(axes).collect::<Res<Vec<_>>>()?;
        Ok(Spec::new(dims).summed(unreduced, reduced))
    }
}

impl ShardMap {
    fn with(&self, jaxpr: Arc<Program>, in_specs: Vec<NamedSpec>, out_specs: Vec<NamedSpec>) -> Op {
        ShardMap { jaxpr, in_specs, out_specs, ..self.clone() }.into()
    }
    fn size(&self, name: &Name) -> usize {
        self.mesh.find(name).map_or(1, |a| self.mesh.axis_size(a))
    }
    fn parts(&self, names: &[Name]) -> usize {
        names.iter().map(|n| self.size(n)).product()
    }
    /// The axes that cut the lanes of an enclosing `vmap`: those that it names, or those that cut the mapped dimension, which is the first,
    /// according to its type.
    fn of_lanes(&self, ax: Axis, x: &[Value], d: &[Dim]) -> Res<Vec<Name>> {
        let typed = || {
            let found = x.iter().zip(d).filter(|(_, d)| d.is_some()).find_map(|(v, _)| v.cut().get());
            found.map_or(vec![], |p| p.spec.dims.first().map_or(vec![], |cut| p.mesh.grid.names(cut).to_vec()))
        };
        let (names, what) = match ax.spmd() {
            [] => (typed(), "vmapped away explicit mesh axis"),
            names => (names.to_vec(), "vmap spmd_axis_name"),
        };
        for (specs, side) in [(&self.in_specs, "in_specs"), (&self.out_specs, "out_specs")] {
            if specs.iter().any(|s| s.apart().iter().any(|n| names.contains(n))) {
                return value_err(format!("{what} cannot appear in shard_map {side}"));
            }
        }
        let known = |n: &Name| self.manual_axes.0.contains(n);
        Ok(if names.iter().all(known) && ax.n.is_multiple_of(self.parts(&names).max(1)) { names } else { vec![] })
    }
    /// The axes along which each device has a copy, and copies of cotangents are terms; not those that cut lanes around.
    fn unmentioned(&self, spec: &NamedSpec) -> Vec<Name> {
        let there = spec.apart();
        let is_said = |n: &Name| there.contains(n) || spec.reduced.0.contains(n);
        self.manual_axes.0.iter().filter(|n| !is_said(n) && !cuts_lanes(n)).cloned().collect()
    }
    /// Works on the body where its axes are in scope: the user's rules in it may name them.
    fn inside<T>(&self, f: impl FnOnce() -> T) -> T {
        let kind = if self.check_vma { AxisKind::Manual } else { AxisKind::Devices };
        let axis = |name: &Name| NamedAxis { name: name.clone(), size: self.size(name), kind };
        let _named = name_axes(self.manual_axes.0.iter().map(axis));
        let _mesh = BodyMesh::enter(self.types.within.clone());
        f()
    }
    /// The type of a device's part.
    fn local(&self, a: &Aval, spec: &NamedSpec) -> Res<Aval> {
        if spec.rank() != a.rank() {
            return value_err(format!("shard_map has a spec of {} dimensions for {}", spec.rank(), a.long()));
        }
        let mut shape = a.shape.clone();
        for (n, names) in shape.iter_mut().zip(&spec.dims) {
            let parts = self.parts(&names.0);
            if parts == 0 || !n.is_multiple_of(parts) {
                return value_err(format!("shard_map cannot cut {} into {parts} equal parts", a.long()));
            }
            *n /= parts;
        }
        let vary = if self.check_vma { a.vary | Vary::of(spec.cutting()) } else { a.vary };
        Ok(Aval { cut: self.types.local(a.cut), ..a.with_shape(shape).varying(vary) })
    }
    /// The type of an array that is assembled from parts.
    fn global(&self, a: &Aval, spec: &NamedSpec) -> Res<Aval> {
        if spec.rank() != a.rank() {
            return value_err(format!("shard_map has a spec of {} dimensions for {}", spec.rank(), a.long()));
        }
        let size = |(n, names): (&usize, &Names)| n.saturating_mul(self.parts(&names.0));
        let shape: Dims = a.shape.iter().zip(&spec.dims).map(size).collect();
        Ok(a.with_shape(shape).varying(a.vary.without(Vary::of(self.manual_axes.0.iter().cloned()))))
    }
    /// The same on one device: the positions along each axis are lanes, those of the first axis outermost.
    pub fn alone(&self) -> Res<Arc<Program>> {
        let root = eval_root();
        let names = &self.manual_axes.0;
        let mut body = self.jaxpr.clone();
        let kind = if self.check_vma { AxisKind::Manual } else { AxisKind::Devices };
        for name in names.iter().rev() {
            let tag = Tag::new("shard_map");
            let ax = Axis { n: self.size(name), name: Some(name), tag: &tag, kind };
            let mapped: Vec<bool> = self.in_specs.iter().map(|s| s.apart().contains(name)).collect();
            let all = vec![true; self.out_specs.len()];
            body = self.inside(|| root.recur().batch(&body, ax, &mapped, &all))?.0;
        }
        let locals = self.jaxpr.in_avals().iter().zip(&self.in_specs);
        let ins: Vec<Aval> = locals.map(|(a, s)| self.global(a, s)).collect::<Res<_>>()?;
        let run = |cx: &dyn Cx, x: &[Value]| -> Res<Values> {
            let x: Values = x.iter().zip(&self.in_specs).map(|(v, s)| self.cut(cx, v, s)).collect::<Res<_>>()?;
            cx.inline(&body, &x)?.iter().zip(&self.out_specs).map(|(v, s)| self.joined(cx, v, s)).collect()
        };
        Ok(root.recur().stage(&ins, &run)?.0)
    }
    /// An operand with an axis in front for each of the axes that cut it, and of those along which it is a sum: there the first has it.
    fn cut(&self, cx: &dyn Cx, x: &Value, spec: &NamedSpec) -> Res<Value> {
        let (mut y, mut shape, mut at) = (x.clone(), Dims::default(), vec![]);
        for name in spec.unreduced.0.iter().rev() {
            y = self.on_first(cx, &y, self.size(name))?;
        }
        for name in &spec.unreduced.0 {
            at.push((name, shape.len()));
            shape.push(self.size(name));
        }
        for (n, names) in x.shape().iter().zip(&spec.dims) {
            for name in &names.0 {
                at.push((name, shape.len()));
                shape.push(self.size(name));
            }
            shape.push(n / self.parts(&names.0).max(1));
        }
        let place = |name: &Name| at.iter().find(|a| a.0 == name).map(|a| a.1);
        let front: Vec<usize> = self.manual_axes.0.iter().filter_map(place).collect();
        let rest = (0..shape.len()).filter(|i| !front.contains(i));
        let order: Dims = front.iter().copied().chain(rest).collect();
        cx.transpose(&cx.reshape(&y, &shape)?, order)
    }
    /// `n` values of which x is the sum: itself and zeros.
    fn on_first(&self, cx: &dyn Cx, x: &Value, n: usize) -> Res<Value> {
        let all = cx.batch_at(x, None, n, 0)?;
        let numbers = Iota { dimension: 0, dtype: Dtype::I32, shape: Dims::new(all.shape()).into() };
        let first = cx.pw2(Pw::Eq, &cx.bind1(numbers, &[])?, &int(Dtype::I32, 0))?;
        cx.select(&first, &cx.zeros(&all.aval())?, &all)
    }
    /// A result that has all axes in front, put together: the sum along those that it is a term of, the first part along those that its
    /// spec leaves out.
    fn joined(&self, cx: &dyn Cx, y: &Value, spec: &NamedSpec) -> Res<Value> {
        let names = &self.manual_axes.0;
        let (there, terms) = (spec.cutting(), &spec.unreduced.0);
        let sums: Dims = (0..names.len()).filter(|k| terms.contains(&names[*k])).collect();
        let y = &match sums.is_empty() {
            true => y.clone(),
            false => {
                let kept = sums.iter().fold(Dims::new(y.shape()), |mut shape, k| {
                    shape[*k] = 1;
                    shape
                });
                cx.reshape(&cx.reduce(Monoid::Sum, y, sums)?, &kept)?
            }
        };
        let mut limit_indices = Dims::new(y.shape());
        for (k, _) in names.iter().enumerate().filter(|(_, n)| !there.contains(n)) {
            limit_indices[k] = 1;
        }
        let start_indices = y.shape().iter().map(|_| 0).collect();
        let y = match *limit_indices == *y.shape() {
            true => y.clone(),
            false => cx.bind1(Slice { limit_indices, start_indices, strides: None }, std::slice::from_ref(y))?,
        };
        let (mut order, mut shape) = (Dims::default(), Dims::default());
        for (d, cut) in spec.dims.iter().enumerate() {
            let axes = cut.0.iter().filter_map(|n| names.iter().position(|m| m == n));
            order = order.iter().copied().chain(axes).chain([names.len() + d]).collect();
            shape.push(y.shape()[names.len() + d] * self.parts(&cut.0));
        }
        let gone = (0..names.len()).filter(|k| !order.contains(k)).collect::<Vec<_>>();
        let order = gone.into_iter().chain(order.iter().copied()).collect();
        cx.reshape(&cx.transpose(&y, order)?, &shape)
    }
    /// A program made from the operands of another; values that the other holds stay held.
    fn staged(&self, cx: &dyn Cx, ins: &[Aval], f: Body) -> Res<Arc<Program>> {
        let (p, held) = self.inside(|| cx.recur().stage(ins, f))?;
        Ok(if held.is_empty() { p } else { Arc::new(p.with_consts(0).hold(held)) })
    }
    /// The axes along which a value of the body has to be stacked to leave it whole; along those that it is a term of it leaves as one.
    fn apart(&self, a: &Aval) -> Vec<Name> {
        let varies = |n: &&Name| if self.check_vma { a.vary.has(n) } else { !cuts_lanes(n) };
        self.manual_axes.0.iter().filter(varies).cloned().collect()
    }
    /// The layout of such a value outside.
    fn left(&self, a: &Aval, apart: &[Name]) -> NamedSpec {
        let spec = if apart.is_empty() { NamedSpec::whole(a.rank()) } else { NamedSpec::stacked(apart, a.rank()) };
        if self.check_vma { spec.of_type(a.cut) } else { spec }
    }
}
impl Rules for ShardMap {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        if x.len() != self.in_specs.len() || self.jaxpr.n_outs() != self.out_specs.len() {
            return value_err("shard_map needs a spec for each operand and each result");
        }
        let ins: Vec<Aval> = x.iter().zip(&self.in_specs).map(|(a, s)| self.local(a, s)).collect::<Res<_>>()?;
        if !same_avals(&ins, self.jaxpr.in_avals()) {
            return Err(mismatch("shard_map", &ins, self.jaxpr.in_avals()));
        }
        // where the types of operands state how they are cut, so do those of results: as the specs do
        let of_operands = x.iter().find_map(|a| a.cut.get()).map(|p| p.mesh.clone());
        let mesh = of_operands.or_else(|| self.types.around.clone()).filter(|m| m.grid == self.mesh);
        let typed = |(part, s): (&Aval, &NamedSpec)| {
            let a = self.global(part, s)?;
            let Some(m) = &mesh else { return Ok(a) };
            let mut spec = ManualBody::spec(s, &m.grid)?;
            if let Some(inside) = part.cut.get().filter(|p| p.mesh.grid == m.grid && p.mesh.explicit.contains(&true)) {
                spec.dims.iter_mut().zip(&inside.spec.dims).for_each(|(own, further)| own.extend_from_slice(further));
            }
            Ok(Aval { cut: TypedCut::new(m, &spec), ..a })
        };
        self.jaxpr.out_avals().iter().zip(&self.out_specs).map(typed).collect()
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let (nz, m) = (nonzero(dx), self.jaxpr.n_outs());
        let (body, out) = self.inside(|| cx.recur().jvp(&self.jaxpr, &nz, &vec![false; m], &[x.len()], &[m]))?;
        let args: Values = x.iter().cloned().chain(dx.iter().flatten().cloned()).collect();
        let ins = cat(&[&self.in_specs, &pick(&self.in_specs, &nz)]);
        let outs = cat(&[&self.out_specs, &pick(&self.out_specs, &out)]);
        let mut y = cx.bind_body(&self.with(body, ins, outs), &args)?.into_vec();
        let dy = spread(&out, y.split_off(m));
        Ok((y.into(), dy.into()))
    }
    /// Where types say what varies, the body's transpose holds all sums. Else devices that have copies of a result share its
    /// cotangent, and that of an operand of which they have copies is the sum of theirs.
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let lin: Vec<bool> = x.iter().map(Arg::is_linear).collect();
        let ct_nz = nonzero(ct);
        let (mut body, nz) =
            self.inside(|| cx.recur().transpose(&self.jaxpr, &lin, &ct_nz, &vec![false; count(&lin)]))?;
        let back = |specs: &[NamedSpec]| specs.iter().map(NamedSpec::cotangent).collect::<Vec<_>>();
        let (in_cts, out_cts) = (back(&self.in_specs), back(&self.out_specs));
        let ins = cat(&[&pick(&self.in_specs, &not(&lin)), &pick(&out_cts, &ct_nz)]);
        let outs = pick(&pick(&in_cts, &lin), &nz);
        let mut cts: Vec<Value> = ct.iter().flatten().cloned().collect();
        if !self.check_vma {
            for (v, spec) in cts.iter_mut().zip(pick(&out_cts, &ct_nz)) {
                let copies = self.parts(&self.unmentioned(&spec));
                if copies > 1 {
                    *v = cx.mul(v, &lit(v.dtype(), 1.0 / copies as f64))?;
                }
            }
            let sum = |cx: &dyn Cx, (v, spec): (Value, &NamedSpec)| {
                let axes = Names(self.unmentioned(spec).into());
                match axes.0.is_empty() {
                    true => Ok(v),
                    false => cx.bind1(AllReduce { kind: AllReduceKind::Sum, axes, axis_index_groups: None }, &[v]),
                }
            };
            let inner = body.clone();
            body = self.staged(cx, inner.in_avals(), &|cx, x| {
                cx.inline(&inner, x)?.into_iter().zip(&outs).map(|v| sum(cx, v)).collect()
            })?;
        }
        let args: Values = x.iter().filter_map(|a| a.known().cloned()).chain(cts).collect();
        let out = cx.bind_body(&self.with(body, ins, outs), &args)?;
        Ok(merge(&lin, spread(&nz, out), vec![None; x.len()]).into())
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let m = self.jaxpr.n_outs();
        let args: Values = x.iter().zip(d).map(|(v, d)| cx.to_front(v, *d)).collect::<Res<_>>()?;
        let names = self.of_lanes(ax, &args, d)?;
        let n = ax.n / self.parts(&names).max(1);
        let own = Axis { n, ..ax };
        let (body, out) = self.inside(|| cx.recur().batch(&self.jaxpr, own, &lanes(d), &vec![false; m]))?;
        let with_lanes = |(s, b): (&NamedSpec, bool)| -> NamedSpec {
            let lanes = b.then(|| Names(names[..].into()));
            NamedSpec { dims: lanes.into_iter().chain(s.dims.iter().cloned()).collect(), ..s.clone() }
        };
        let ins = self.in_specs.iter().zip(lanes(d)).map(with_lanes).collect();
        let outs = self.out_specs.iter().zip(out.iter().copied()).map(with_lanes).collect();
        let y = cx.bind_body(&self.with(body, ins, outs), &args)?;
        Ok((y, out.iter().map(|b| b.then_some(0)).collect()))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        let lanes = self.alone()?;
        b.inline(&lanes, x)
    }
}
impl BodyRules for ShardMap {
    /// The residuals leave each device as they are, stacked along the axes over which they vary.
    fn split(&self, cx: &dyn Cx, rec: &dyn Cx, x: &[Value], unk: &[bool]) -> Res<Values> {
        let n_out = self.jaxpr.n_outs();
        let sp = self.inside(|| cx.recur().split(&self.jaxpr, unk, &vec![false; n_out], &vec![true; x.len()]))?;
        let known_in = not(unk);
        let made = count(&not(&sp.out_unk));
        let new: Vec<Aval> = sp.known.out_avals().split_off(made);
        if new.iter().any(|a| a.tape > 0) {
            return Err(Error::not_implemented(
                "reverse-mode derivatives of a while_loop inside a shard_map over several devices",
            ));
        }
        let apart: Vec<Vec<Name>> = new.iter().map(|a| self.apart(a)).collect();
        // a result of the known part is a residual as it is, where its spec names all axes along which it differs
        let known_specs = pick(&self.out_specs, &not(&sp.out_unk));
        let covered = |i: usize, names: &[Name]| names.iter().all(|n| known_specs[i].apart().contains(n));
        let from: Vec<Option<usize>> =
            among_outputs(&sp).into_iter().zip(&apart).map(|(i, names)| i.filter(|i| covered(*i, names))).collect();
        let own = |k: &usize| from[*k].is_none();
        let idle = sp.known.n_outs() == 0 && !sp.known.effects().io;
        let mut known = vec![];
        if !idle {
            let body = self.staged(cx, sp.known.in_avals(), &|cx, x| {
                let mut y = cx.inline(&sp.known, x)?.into_vec();
                let new = y.split_off(made);
                for (k, v) in new.into_iter().enumerate().filter(|(k, _)| own(k)) {
                    y.push(match apart[k].is_empty() {
                        true => v,
                        false => cx.reshape(&v, &Dims::new(v.shape()).insert(0, 1))?,
                    });
                }
                Ok(y.into())
            })?;
            let of_new: Vec<NamedSpec> = (0..new.len()).filter(own).map(|k| self.left(&new[k], &apart[k])).collect();
            let outs = cat(&[&known_specs, &of_new]);
            let op = self.with(body, pick(&self.in_specs, &known_in), outs);
            known = cx.bind_body(&op, &pick(x, &known_in))?.into_vec();
        }
        let others = known.split_off(made);
        let new_values = with_forwarded(&known, others, &from);
        let mut each = new.iter().zip(&apart).zip(&from);
        let mut ins: Vec<(NamedSpec, Option<Dims>)> = vec![];
        for r in &sp.res {
            ins.push(match r {
                Residual::In(i) => (self.in_specs[*i].clone(), None),
                Residual::New => match each.next() {
                    Some((_, Some(i))) => (known_specs[*i].clone(), None),
                    Some(((a, names), None)) => (self.left(a, names), (!names.is_empty()).then(|| a.shape.clone())),
                    None => unreachable!("as many residuals as the known part makes"),
                },
            });
        }
        let mut avals = sp.unknown.in_avals().to_vec();
        for (a, _) in avals.iter_mut().zip(&ins).filter(|(_, i)| i.1.is_some()) {
            *a = a.batched(1, 0);
        }
        let body = self.staged(cx, &avals, &|cx, x| {
            let mut x: Values = x.into();
            for (v, (_, shape)) in x.iter_mut().zip(&ins) {
                if let Some(shape) = shape {
                    *v = cx.reshape(v, shape)?;
                }
            }
            cx.inline(&sp.unknown, &x)
        })?;
        let in_specs = ins.iter().map(|i| i.0.clone()).chain(pick(&self.in_specs, unk)).collect();
        let args = cat(&[&residuals(&sp, x, new_values), &pick(x, unk)]);
        let op = self.with(body, in_specs, pick(&self.out_specs, &sp.out_unk));
        Ok(merge(&sp.out_unk, rec.record_body(&op, &args)?, known).into())
    }
    fn dce(&self, used: &[bool]) -> Option<(Op, Vec<bool>, Vec<bool>)> {
        let (body, kept) = self.jaxpr.dce(used);
        Some((self.with(body, pick(&self.in_specs, &kept), pick(&self.out_specs, used)), kept, used.to_vec()))
    }
    fn lift(&self, x: &[Value]) -> Option<(Op, Values)> {
        if self.jaxpr.held().is_empty() {
            return None;
        }
        let (body, held) = self.jaxpr.release();
        let specs: Vec<NamedSpec> = held.iter().map(|v| NamedSpec::whole(v.rank())).collect();
        let op = self.with(body, cat(&[&specs, &self.in_specs]), self.out_specs.clone());
        Some((op, held.into_iter().chain(x.iter().cloned()).collect()))
    }
    fn effects(&self) -> Effects {
        let mut e = self.jaxpr.effects().clone();
        e.axes.retain(|a| !self.manual_axes.0.contains(a));
        e
    }
    fn bodies(&self) -> Vec<&Arc<Program>> {
        vec![&self.jaxpr]
    }
    fn manual(&self) -> Option<ManualBody<'_>> {
        Some(ManualBody {
            program: &self.jaxpr,
            mesh: &self.mesh,
            axes: &self.manual_axes,
            ins: &self.in_specs,
            outs: &self.out_specs,
        })
    }
}
