//! Reads and writes by index ([`Indexed`]) on the part of an operand that a device has: indices count from the part's first row. Elements
//! outside of it are read as zero, and updates there are dropped; a read then takes from each device the rows that it has.
//!
//! ```text
//! x[7] of x cut in parts of 4 rows      device 1 reads its row 3, the others read zeros; the bits are added
//! ```
//!
//! INVARIANT: an index that is clamped is clamped to the whole array, before it is made to count from the part.
use super::Here;
use crate::aval::Aval;
use crate::cx::{Cx, int};
use crate::dtype::Dtype;
use crate::error::Res;
use crate::factors::{By, First, Indexed, Read, Vectors};
use crate::op::Op;
use crate::ops::bitcast::Bitcast;
use crate::ops::gather::{Gather, GatherDims, zero_fill};
use crate::ops::iota::Iota;
use crate::ops::pointwise::Pw;
use crate::ops::reduce::Monoid;
use crate::ops::scatter::{Scatter, ScatterDims, ScatterKind};
use crate::value::Value;
use ferrax_kernel::Dims;
use ferrax_kernel::routine::OutOfBounds;

/// Where an operand is cut.
struct OwnRows<'a> {
    dim: usize,
    axes: &'a [u8],
    /// The rows of a part.
    size: usize,
}

impl Here<'_> {
    /// The result of an op whose operand 0 is cut along an indexed dimension by `axes`: this device's part of what is written, the whole of what
    /// is read, which has the type `out` here. `None` where the indices may be larger than 64 bits hold.
    pub fn indexed(&self, op: &Op, i: &Indexed, x: &[Value], out: &Aval, axes: &[u8]) -> Res<Option<Value>> {
        let at = OwnRows { dim: i.dim, axes, size: x[0].shape()[i.dim] };
        match &i.by {
            By::Rows { first, step } => {
                let Some(first) = self.first_row(first, x, &at, out.shape[at.dim])? else { return Ok(None) };
                let y = self.read_rows(&x[0], &first, (out.shape[at.dim], *step), &at)?;
                // the other dimensions, of these rows
                let mut args = x.to_vec();
                args[0] = y;
                let types: Vec<Aval> = args.iter().map(Value::aval).collect();
                let op = op.rules().local(&types, std::slice::from_ref(out)).unwrap_or_else(|| op.clone());
                self.of_one(&self.cx.bind1(op, &args)?, axes).map(Some)
            }
            By::Update { first } => {
                let first = self.first_row(first, x, &at, x[1].shape()[at.dim])?;
                first.map(|first| self.write_rows(&x[0], &x[1], &first, &at)).transpose()
            }
            By::Vectors(v) => self.by_vectors(op, v, x, out, &at),
        }
    }
    fn by_vectors(&self, op: &Op, v: &Vectors, x: &[Value], out: &Aval, at: &OwnRows) -> Res<Option<Value>> {
        let Some(indices) = wide(self.cx, &x[1])? else { return Ok(None) };
        let rows = |d: usize| if d == at.dim { at.size * self.grid.parts(at.axes) } else { x[0].shape()[d] };
        let limits: Vec<i64> = v.windows.iter().map(|(d, n)| rows(*d) as i64 - *n as i64).collect();
        let inside = if v.clamped { clamped(self.cx, &indices, &limits)? } else { indices.clone() };
        let mut args = x.to_vec();
        args[1] = self.from_part(&inside, v.component, at)?;
        let types: Vec<Aval> = args.iter().map(Value::aval).collect();
        let Some(local) = op.rules().on_rows(&types, out) else { return Ok(None) };
        let y = self.cx.bind1(local, &args)?;
        let Some(Read { fill, batch }) = &v.read else { return Ok(Some(y)) };
        let y = self.of_one(&y, at.axes)?;
        let Some(fill) = fill else { return Ok(Some(y)) };
        // an index outside of the whole operand, which no device has
        let outside = self.cx.broadcast(&outside(self.cx, &indices, &limits)?, &out.shape, batch)?;
        self.cx.select(&outside, &y, &self.cx.full(*fill, out)?).map(Some)
    }
    /// The first of `count` rows of the whole operand.
    fn first_row(&self, first: &First, x: &[Value], at: &OwnRows, count: usize) -> Res<Option<Value>> {
        let operand = match first {
            First::At(n) => return Ok(Some(int(Dtype::I64, *n as i64))),
            First::Operand(i) => &x[*i],
        };
        let Some(start) = wide(self.cx, operand)? else { return Ok(None) };
        let most = (at.size * self.grid.parts(at.axes)).saturating_sub(count);
        let start = self.cx.pw2(Pw::Min, &start, &int(Dtype::I64, most as i64))?;
        self.cx.pw2(Pw::Max, &int(Dtype::I64, 0), &start).map(Some)
    }
    /// By vectors whose component `j` counts from this device's part.
    fn from_part(&self, indices: &Value, j: usize, at: &OwnRows) -> Res<Value> {
        let (cx, shape) = (self.cx, Dims::new(indices.shape()));
        let is = cx.pw2(Pw::Eq, &component(cx, indices)?, &cx.stretch(&int(Dtype::I32, j as i64), &shape)?)?;
        let number = cx.convert(&self.number(at.axes)?, Dtype::I64)?;
        let first = cx.stretch(&cx.mul(&number, &int(Dtype::I64, at.size as i64))?, &shape)?;
        let moved = cx.select(&is, indices, &cx.sub(indices, &first)?)?;
        // beyond 32 bits it is outside of the part on either side
        let most = cx.stretch(&int(Dtype::I64, i32::MAX as i64), &shape)?;
        let least = cx.stretch(&int(Dtype::I64, -1), &shape)?;
        cx.convert(&cx.pw2(Pw::Max, &least, &cx.pw2(Pw::Min, &moved, &most)?)?, Dtype::I32)
    }
    /// Of `count` rows from `first` on in steps, the place of each in this device's part, as index vectors of one component.
    fn places(&self, first: &Value, count: usize, step: usize, at: &OwnRows) -> Res<Value> {
        let (cx, shape) = (self.cx, Dims::new(&[count, 1]));
        let iota = cx.bind1(Iota { dimension: 0, dtype: Dtype::I64, shape: shape.clone().into() }, &[])?;
        let steps = cx.mul(&iota, &cx.stretch(&int(Dtype::I64, step as i64), &shape)?)?;
        self.from_part(&cx.add(&steps, &cx.stretch(first, &shape)?)?, 0, at)
    }
    /// Those of `count` rows of the whole operand that this device's part `x` has, the others as zeros.
    fn read_rows(&self, x: &Value, first: &Value, (count, step): (usize, usize), at: &OwnRows) -> Res<Value> {
        let d = at.dim;
        let op = Gather {
            dimension_numbers: Box::new(GatherDims {
                offset_dims: (0..x.rank()).filter(|k| *k != d).collect(),
                collapsed_slice_dims: Dims::new(&[d]),
                start_index_map: Dims::new(&[d]),
                ..GatherDims::default()
            }),
            fill_value: Some(zero_fill(x.dtype())),
            indices_are_sorted: true,
            mode: OutOfBounds::FillOrDrop,
            slice_sizes: x.shape().iter().enumerate().map(|(k, n)| if k == d { 1 } else { *n }).collect(),
            unique_indices: true,
        };
        self.cx.bind1(op, &[x.clone(), self.places(first, count, step, at)?])
    }
    /// This device's part `x` with those of the rows of `u` that belong to it.
    fn write_rows(&self, x: &Value, u: &Value, first: &Value, at: &OwnRows) -> Res<Value> {
        let d = at.dim;
        let op = Scatter {
            kind: ScatterKind::Set,
            dimension_numbers: Box::new(ScatterDims {
                update_window_dims: (0..x.rank()).filter(|k| *k != d).collect(),
                inserted_window_dims: Dims::new(&[d]),
                scatter_dims_to_operand_dims: Dims::new(&[d]),
                ..ScatterDims::default()
            }),
            indices_are_sorted: true,
            mode: OutOfBounds::FillOrDrop,
            unique_indices: true,
        };
        self.cx.bind1(op, &[x.clone(), self.places(first, u.shape()[d], 1, at)?, u.clone()])
    }
    /// Whether [`Here::of_one`] gives values of this dtype bit by bit.
    pub fn takes_of_one(d: Dtype) -> bool {
        d.is_bool() || d.num().is_some_and(|n| !n.is_small()) && !d.is_complex() && (d.is_int() || d.is_float())
    }
    /// On all devices along `axes`, the value of the one that has it; the others have zeros in its place. Bits are moved, so that -0 and
    /// nans stay what they are.
    fn of_one(&self, v: &Value, axes: &[u8]) -> Res<Value> {
        let d = v.dtype();
        if d.is_bool() {
            return self.fold(v, Monoid::Or, axes);
        }
        if d.is_int() {
            return self.fold(v, Monoid::Sum, axes);
        }
        let bits = match d.size() {
            8 => Dtype::U64,
            4 => Dtype::U32,
            2 => Dtype::U16,
            _ => Dtype::U8,
        };
        let v = self.cx.bind1(Bitcast { new_dtype: bits }, std::slice::from_ref(v))?;
        self.cx.bind1(Bitcast { new_dtype: d }, &[self.fold(&v, Monoid::Sum, axes)?])
    }
}
/// By vectors as integers of 64 bits; `None` of a dtype of which these cannot hold all values.
fn wide(cx: &dyn Cx, indices: &Value) -> Res<Option<Value>> {
    if indices.dtype() == Dtype::U64 { Ok(None) } else { cx.convert(indices, Dtype::I64).map(Some) }
}
/// For each component of index vectors, one number.
fn of_each(cx: &dyn Cx, indices: &Value, numbers: &[i64]) -> Res<Value> {
    let (k, shape) = (component(cx, indices)?, Dims::new(indices.shape()));
    let mut all = cx.stretch(&int(Dtype::I64, numbers[0]), &shape)?;
    for (j, n) in numbers.iter().enumerate().skip(1) {
        let is = cx.pw2(Pw::Eq, &k, &cx.stretch(&int(Dtype::I32, j as i64), &shape)?)?;
        all = cx.select(&is, &all, &cx.stretch(&int(Dtype::I64, *n), &shape)?)?;
    }
    Ok(all)
}
/// The number of each component of index vectors.
fn component(cx: &dyn Cx, indices: &Value) -> Res<Value> {
    let shape = Dims::new(indices.shape());
    cx.bind1(Iota { dimension: shape.len() - 1, dtype: Dtype::I32, shape: shape.into() }, &[])
}
/// By vectors within 0 and the limits of their components.
fn clamped(cx: &dyn Cx, indices: &Value, limits: &[i64]) -> Res<Value> {
    let zero = cx.stretch(&int(Dtype::I64, 0), &Dims::new(indices.shape()))?;
    cx.pw2(Pw::Max, &zero, &cx.pw2(Pw::Min, indices, &of_each(cx, indices, limits)?)?)
}
/// Whether each index vector has a component outside of 0 and its limit.
fn outside(cx: &dyn Cx, indices: &Value, limits: &[i64]) -> Res<Value> {
    let inside = cx.pw2(Pw::Eq, indices, &clamped(cx, indices, limits)?)?;
    let all = cx.reduce(Monoid::And, &inside, Dims::new(&[indices.rank() - 1]))?;
    cx.pw(Pw::Not, &[all])
}
