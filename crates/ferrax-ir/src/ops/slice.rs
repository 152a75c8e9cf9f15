//! slice: `out = x[start : limit : stride]` along every axis, bounds known when traced. numpy: basic slicing.
use super::linear_jvp;
use super::pad::Pad;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, zero};
use crate::error::{Res, type_err};
use crate::factors::{By, Factors, First, Indexed, Moved, Run};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::primitive;
use crate::support::{Supports, Within, within_moved};
use crate::typing::{Specs, Sums, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

primitive! {
    pub struct Slice = "slice" {
        limit_indices: Dims,
        start_indices: Dims,
        strides: Option<Dims>,
    }
}
impl Slice {
    pub fn stride(&self, k: usize) -> usize {
        self.strides.as_ref().map_or(1, |s| s[k])
    }
}
impl Rules for Slice {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("slice takes 1 operand, got {}", x.len())) };
        let (start, limit) = (&self.start_indices, &self.limit_indices);
        if start.len() != a.rank() || limit.len() != a.rank() || a.tape > 0 {
            return type_err(format!(
                "slice start_indices must have length equal to the number of dimensions of the operand, got indices {start} for operand shape {}.",
                a.shape
            ));
        }
        if let Some(s) = &self.strides {
            if s.len() != a.rank() {
                return type_err(format!(
                    "slice strides must have length equal to the number of dimensions of the operand, got strides {s} for operand shape {}.",
                    a.shape
                ));
            }
            if s.contains(&0) {
                return type_err(format!("slice strides must be positive, got {s}"));
            }
        }
        if (0..a.rank()).any(|k| limit[k] > a.shape[k]) {
            return type_err(format!(
                "slice limit_indices must be less than or equal to operand shape, got limit_indices {limit} for operand shape {}.",
                a.shape
            ));
        }
        if (0..a.rank()).any(|k| limit[k] < start[k]) {
            return type_err(format!(
                "slice limit_indices must be greater than or equal to start_indices, got start_indices {start} and limit_indices {limit}."
            ));
        }
        Ok(smallvec![a.with_shape((0..a.rank()).map(|k| (limit[k] - start[k]).div_ceil(self.stride(k))).collect())])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    /// Zeros with the cotangent at the places that were read.
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None]) };
        let a = x[0].aval();
        let config = (0..a.rank()).map(|k| {
            let (m, s, lo) = (ct.shape()[k], self.stride(k), self.start_indices[k]);
            let (width, apart) = if m < 2 { (m, 0) } else { ((m - 1) * s + 1, s as i64 - 1) };
            (lo as i64, (a.shape[k] - width) as i64 - lo as i64, apart)
        });
        Ok(smallvec![Some(cx.bind1(Pad { padding_config: config.collect() }, &[ct.clone(), zero(ct.dtype())])?)])
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let Some(d) = d[0] else { return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None])) };
        let op = Slice {
            limit_indices: self.limit_indices.insert(d, ax.n),
            start_indices: self.start_indices.insert(d, 0),
            strides: self.strides.as_ref().map(|s| s.insert(d, 1)),
        };
        Ok((cx.bind(&op.into(), x)?, smallvec![Some(d)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let cut = |k: usize, n: usize| self.start_indices[k] != 0 || self.limit_indices[k] != n || self.stride(k) != 1;
        let axes: Vec<usize> = x[0].shape().iter().enumerate().filter(|(k, n)| cut(*k, **n)).map(|(k, _)| k).collect();
        within_moved(cx, &self.clone().into(), x, s, &axes)
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::along(x, out, |d| x[0].shape[d] == out[0].shape[d]);
        let rows = |dim: usize| By::Rows { first: First::At(self.start_indices[dim]), step: self.stride(dim) };
        let cut = (0..x[0].rank()).filter(|d| x[0].shape[*d] != out[0].shape[*d]);
        f.indexed = cut.map(|dim| Indexed { dim, by: rows(dim) }).collect();
        let rows = |dim: usize| {
            let (size, step) = (out[0].shape[dim], self.stride(dim) as i64);
            let run = Run { rows: 0..size, operand: 0, first: self.start_indices[dim] as i64, step };
            Moved { result: 0, dim, size, sizes: vec![x[0].shape[dim]], runs: vec![run], fill: None }
        };
        f.moved = (0..x[0].rank()).filter(|d| x[0].shape[*d] != out[0].shape[*d]).map(rows).collect();
        f
    }
    fn local(&self, x: &[Aval], out: &[Aval]) -> Option<Op> {
        // an axis that has its size may be cut, or its rows were read
        let is_whole = |d: usize| x[0].shape[d] == out[0].shape[d];
        let rank = x[0].rank();
        let start_indices = (0..rank).map(|d| if is_whole(d) { 0 } else { self.start_indices[d] }).collect();
        let limit = |d: usize| if is_whole(d) { x[0].shape[d] } else { self.limit_indices[d] };
        let strides = (0..rank).map(|d| if is_whole(d) { 1 } else { self.stride(d) }).collect();
        let strides = self.strides.is_some().then_some(strides);
        Some(Slice { start_indices, limit_indices: (0..rank).map(limit).collect(), strides }.into())
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        t.varying("slicing")
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let strides: Dims = (0..self.start_indices.len()).map(|k| self.stride(k)).collect();
        Ok(smallvec![b.slice(x[0], &self.start_indices, &strides, out[0].shape.clone())])
    }
}
