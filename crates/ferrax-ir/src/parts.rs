//! Communication of a device of a mesh with the others, for the pass that partitions programs: its number, a value cut in another way
//! (slices where it is cut finer, exchanges where an axis goes to another dimension, gathers where it is cut no more), a fold of the values
//! of all.
mod indexed;
mod moved;
mod running;
mod sorted;
mod uneven;

use crate::aval::Aval;
use crate::cx::{Cx, int};
use crate::dtype::Dtype;
use crate::error::Res;
use crate::layout::{AxisSet, CutAxes, Grid, Spec};
use crate::op::Op;
use crate::ops::collective::{
    AllGather, AllReduce, AllReduceKind, AllToAll, AxisIndex, GatherKind, Names, ReduceScatter, ScatterSumKind,
};
use crate::ops::cond::Cond;
use crate::ops::dynamic_slice::{DynamicSlice, DynamicUpdateSlice};
use crate::ops::pointwise::Pw;
use crate::ops::reduce::Monoid;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;
use std::cell::RefCell;

pub use moved::{Source, Target};
pub use running::Along;

impl Spec {
    /// The type of each part.
    pub fn shard(&self, grid: &Grid, a: &Aval) -> Aval {
        a.with_shape(self.shard_shape(grid, &a.shape))
    }
}

/// The device's positions along the axes, each emitted once in a program.
pub struct Here<'a> {
    pub cx: &'a dyn Cx,
    pub grid: &'a Grid,
    indices: RefCell<Vec<Option<Value>>>,
}

impl<'a> Here<'a> {
    pub fn new(cx: &'a dyn Cx, grid: &'a Grid) -> Here<'a> {
        Here { cx, grid, indices: RefCell::new(vec![None; grid.axes.len()]) }
    }
    fn along(&self, axis: u8) -> Res<Value> {
        let known = self.indices.borrow()[axis as usize].clone();
        if let Some(v) = known {
            return Ok(v);
        }
        let v = self.cx.bind1(AxisIndex { axis_name: self.grid.name(axis).clone() }, &[])?;
        self.indices.borrow_mut()[axis as usize] = Some(v.clone());
        Ok(v)
    }
    /// The device's number along several axes, row major.
    pub fn number(&self, axes: &[u8]) -> Res<Value> {
        let i32_ = |n: usize| int(Dtype::I32, n as i64);
        let mut at: Option<Value> = None;
        for a in axes {
            let mine = self.along(*a)?;
            at = Some(match at {
                None => mine,
                Some(at) => self.cx.add(&self.cx.mul(&at, &i32_(self.grid.axis_size(*a)))?, &mine)?,
            });
        }
        Ok(at.unwrap_or(i32_(0)))
    }
    /// This device's part along each dimension, of a value that is there whole (or cut coarser).
    fn slice(&self, v: &Value, by: &[CutAxes]) -> Res<Value> {
        let mut sizes = Dims::new(v.shape());
        let mut args = vec![v.clone()];
        for (d, cut) in by.iter().enumerate() {
            sizes[d] /= self.grid.parts(cut).max(1);
            args.push(match cut.is_empty() {
                true => int(Dtype::I32, 0),
                false => self.cx.mul(&self.number(cut)?, &int(Dtype::I32, sizes[d] as i64))?,
            });
        }
        self.cx.bind1(DynamicSlice { slice_sizes: sizes }, &args)
    }
    /// What the devices along `axes` have, one after another along dimension `d`; untiled, along a new one.
    pub fn gather(&self, v: &Value, d: usize, axes: &[u8], tiled: bool) -> Res<Value> {
        let op = AllGather {
            all_gather_dimension: d,
            axis_index_groups: None,
            axis_name: Names(self.grid.names(axes)),
            axis_size: self.grid.parts(axes),
            tiled,
            kind: GatherKind::Vary,
        };
        self.cx.bind1(op, std::slice::from_ref(v))
    }
    /// Dimension `from`, cut by an axis at its fine end, is cut no more by it, and dimension `to` is.
    fn exchange(&self, v: &Value, axis: u8, from: usize, to: usize) -> Res<Value> {
        let op = AllToAll {
            axis_index_groups: None,
            axis_name: self.grid.name(axis).clone(),
            axis_size: self.grid.axis_size(axis),
            concat_axis: from,
            split_axis: to,
            tiled: true,
        };
        self.cx.bind1(op, std::slice::from_ref(v))
    }
    /// The value, which is cut as `from` says, cut as `to`.
    pub fn reshard(&self, v: &Value, from: &Spec, to: &Spec) -> Res<Value> {
        let (mut v, mut at) = self.summed(v, from, to)?;
        for d in 0..at.dims.len() {
            v = self.among_zeros(&v, &mut at, to, d)?;
        }
        while at.dims != to.dims {
            let n = at.dims.len();
            // the value is only cut finer, by axes that are free
            let free = |d: usize| {
                let more = to.dims[d].starts_with(&at.dims[d]).then(|| &to.dims[d][at.dims[d].len()..]);
                more.filter(|m| m.iter().all(|a| !at.uses(*a)))
            };
            let by: Vec<CutAxes> = (0..n).map(|d| free(d).map_or(CutAxes::new(), CutAxes::from_slice)).collect();
            if by.iter().any(|c| !c.is_empty()) {
                v = self.slice(&v, &by)?;
                at.dims.iter_mut().zip(&by).for_each(|(d, c)| d.extend_from_slice(c));
                continue;
            }
            let common = |d: usize| at.dims[d].iter().zip(&to.dims[d]).take_while(|(a, b)| a == b).count();
            let leaves = |d: usize| at.dims[d].len() > common(d);
            let last = |d: usize| at.dims[d].last().copied();
            let takes = |d: usize, a: u8| common(d) == at.dims[d].len() && to.dims[d].get(common(d)) == Some(&a);
            let moves = (0..n).filter(|d| leaves(*d)).find_map(|d| {
                let a = last(d)?;
                let split = |e: &usize| v.shape()[*e].is_multiple_of(self.grid.axis_size(a));
                Some((d, (0..n).filter(|e| takes(*e, a)).find(split)?, a))
            });
            if let Some((d, e, a)) = moves {
                v = self.exchange(&v, a, d, e)?;
                at.dims[d].pop();
                at.dims[e].push(a);
                continue;
            }
            let Some(d) = (0..n).find(|d| leaves(*d)) else {
                unreachable!("specs differ where an axis leaves or comes")
            };
            let keep = common(d);
            v = self.gather(&v, d, &at.dims[d][keep..], true)?;
            at.dims[d].truncate(keep);
        }
        let terms = to.unreduced.without(at.unreduced);
        if terms.is_empty() { Ok(v) } else { self.on_first(&v, &terms.axes()) }
    }
    /// A dimension that is cut by axes along which terms are required: the parts are the terms, each among zeros.
    fn among_zeros(&self, v: &Value, at: &mut Spec, to: &Spec, d: usize) -> Res<Value> {
        let keep = at.dims[d].iter().zip(&to.dims[d]).take_while(|(a, b)| a == b).count();
        let gone = CutAxes::from_slice(&at.dims[d][keep..]);
        let new = to.unreduced.without(at.unreduced);
        if gone.is_empty() || !gone.iter().all(|a| new.contains(*a)) {
            return Ok(v.clone());
        }
        let (size, mut shape) = (v.shape()[d], Dims::new(v.shape()));
        shape[d] *= self.grid.parts(&gone);
        let mut args = vec![self.cx.zeros(&v.aval().with_shape(shape))?, v.clone()];
        for k in 0..v.rank() {
            let start = || self.cx.mul(&self.number(&gone)?, &int(Dtype::I32, size as i64));
            args.push(if k == d { start()? } else { int(Dtype::I32, 0) });
        }
        at.dims[d].truncate(keep);
        at.unreduced = at.unreduced | AxisSet::of(gone);
        self.cx.bind1(DynamicUpdateSlice {}, &args)
    }
    /// The value with the sums taken that `to` does not leave: each device gets only its part, if that is requested.
    fn summed(&self, v: &Value, from: &Spec, to: &Spec) -> Res<(Value, Spec)> {
        let (mut v, mut at) = (v.clone(), from.clone());
        let mut axes = from.unreduced.without(to.unreduced);
        at.unreduced = from.unreduced & to.unreduced;
        for d in 0..at.dims.len() {
            let Some(more) = to.dims[d].strip_prefix(&at.dims[d][..]).filter(|m| !m.is_empty()) else { continue };
            let parts = v.shape()[d].is_multiple_of(self.grid.parts(more));
            if parts && more.iter().all(|a| axes.contains(*a)) {
                v = self.sum_parts(&v, more, d)?;
                axes = axes.without(AxisSet::of(more.iter().copied()));
                at.dims[d].extend_from_slice(more);
            }
        }
        if !axes.is_empty() {
            v = self.fold(&v, Monoid::Sum, &axes.axes())?;
        }
        Ok((v, at))
    }
    /// The fold of the values of the devices along `axes`, on all of them.
    pub fn fold(&self, v: &Value, monoid: Monoid, axes: &[u8]) -> Res<Value> {
        let kind = match monoid {
            Monoid::Sum => AllReduceKind::Sum,
            Monoid::Max => AllReduceKind::Max,
            Monoid::Min => AllReduceKind::Min,
            Monoid::Or if v.dtype().is_bool() => AllReduceKind::Max,
            Monoid::And if v.dtype().is_bool() => AllReduceKind::Min,
            _ => return self.cx.reduce(monoid, &self.gather(v, 0, axes, false)?, Dims::new(&[0])),
        };
        let op = AllReduce { kind, axes: Names(self.grid.names(axes)), axis_index_groups: None };
        self.cx.bind1(op, std::slice::from_ref(v))
    }
    /// The sum of the values of the devices along `axes`, of which each gets its part along dimension `d`.
    pub fn sum_parts(&self, v: &Value, axes: &[u8], d: usize) -> Res<Value> {
        let op = ReduceScatter {
            kind: ScatterSumKind::Vary,
            axis_index_groups: None,
            axis_name: Names(self.grid.names(axes)),
            axis_size: self.grid.parts(axes),
            scatter_dimension: d,
            tiled: true,
        };
        self.cx.bind1(op, std::slice::from_ref(v))
    }
    /// The value on the first of the devices along `axes`; zeros on the others.
    pub fn on_first(&self, v: &Value, axes: &[u8]) -> Res<Value> {
        let first = self.cx.pw2(Pw::Eq, &self.number(axes)?, &int(Dtype::I32, 0))?;
        self.cx.select(&first, &self.cx.zeros(&v.aval())?, v)
    }
    /// The results of an operation that only the first device does, on all.
    pub fn once(&self, op: &Op, x: &[Value]) -> Res<Values> {
        let all: Vec<u8> = (0..self.grid.axes.len() as u8).collect();
        let first = self.cx.pw2(Pw::Eq, &self.number(&all)?, &int(Dtype::I32, 0))?;
        let avals: Vec<Aval> = x.iter().map(Value::aval).collect();
        let outs = op.results(&avals)?;
        let recur = self.cx.recur();
        let (idle, _) = recur.stage(&avals, &|cx, _| outs.iter().map(|a| cx.zeros(a)).collect())?;
        let (busy, _) = recur.stage(&avals, &|cx, x| cx.bind(op, x))?;
        let mut args: Values = smallvec![self.cx.convert(&first, Dtype::I32)?];
        args.extend(x.iter().cloned());
        let made = self.cx.bind(&Cond { branches: vec![idle, busy] }.into(), &args)?;
        made.iter().map(|v| self.from_first(v, &all)).collect()
    }
    fn from_first(&self, v: &Value, all: &[u8]) -> Res<Value> {
        let stacked = self.gather(v, 0, all, false)?;
        let mut sizes = Dims::new(stacked.shape());
        sizes[0] = 1;
        let mut args = vec![stacked.clone()];
        args.resize(stacked.rank() + 1, int(Dtype::I32, 0));
        let first = self.cx.bind1(DynamicSlice { slice_sizes: sizes }, &args)?;
        self.cx.reshape(&first, &Dims::new(v.shape()))
    }
}
