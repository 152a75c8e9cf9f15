//! concatenate: operands one after another along `dimension`. numpy: `concatenate`. split: its inverse. numpy: `split`.
use super::{joint_jvp, linear_jvp};
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::error::{Res, mixed_dtypes, type_err, value_err};
use crate::factors::{Factors, Moved, Run};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::support::{Supports, Within, parts_to_join, within_joined, within_parts};
use crate::typing::{Specs, Sums, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

primitive! {
    pub struct Concatenate = "concatenate" {
        dimension: usize,
    }
}
fn shapes(x: &[Aval]) -> String {
    x.iter().map(|a| a.shape.to_string()).collect::<Vec<_>>().join(", ")
}
impl Rules for Concatenate {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let (Some(a), k) = (x.first(), self.dimension) else {
            return value_err("concatenate requires a non-empty sequences of arrays");
        };
        if let Some(b) = x.iter().find(|b| b.dtype != a.dtype) {
            return mixed_dtypes("concatenate", &[a.dtype.long(), b.dtype.long()]);
        }
        if x.iter().any(|b| b.rank() != a.rank() || b.tape > 0) {
            return type_err(format!(
                "Cannot concatenate arrays with different numbers of dimensions: got {}.",
                shapes(x)
            ));
        }
        if k >= a.rank() {
            return type_err(format!("concatenate dimension out of bounds: dimension {k} for shapes {}.", shapes(x)));
        }
        if x.iter().any(|b| b.shape.remove(k) != a.shape.remove(k)) {
            return type_err(format!(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: concatenating along dimension {k} for shapes {}.",
                shapes(x)
            ));
        }
        let mut shape = a.shape.clone();
        shape[k] = x.iter().fold(0, |n: usize, b| n.saturating_add(b.shape[k]));
        shape.checked(a.dtype.size())?;
        Ok(smallvec![Aval { weak: x.iter().all(|b| b.weak), ..a.with_shape(shape) }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        joint_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None; x.len()]) };
        let sizes: Dims = x.iter().map(|a| a.aval().shape[self.dimension]).collect();
        let parts = cx.bind(&Split { axis: self.dimension, sizes }.into(), std::slice::from_ref(ct))?;
        Ok(x.iter().zip(parts).map(|(a, p)| a.is_linear().then_some(p)).collect())
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let at = d.iter().flatten().next().copied().unwrap_or(0);
        let moved: Values = x.iter().zip(d).map(|(v, d)| cx.batch_at(v, *d, ax.n, at)).collect::<Res<_>>()?;
        let op = Concatenate { dimension: self.dimension + (self.dimension >= at) as usize };
        Ok((cx.bind(&op.into(), &moved)?, smallvec![Some(at)]))
    }
    /// The support that all parts share, and that does not extend along the axis, becomes the
    /// support of the result.
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        within_joined(cx, &self.clone().into(), x, s, self.dimension, &|k| k)
    }
    fn sums(&self) -> Sums {
        Sums::Alike
    }
    fn numbers(&self, x: &dyn Fn(usize) -> Option<Vec<i64>>, n: usize) -> Option<Vec<i64>> {
        let mut all = vec![];
        for i in 0.. {
            if self.dimension > 0 || all.len() >= n {
                break;
            }
            all.extend(x(i)?);
        }
        (all.len() == n).then_some(all)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::along(x, out, |d| d != self.dimension);
        let (dim, mut at) = (self.dimension, 0);
        let sizes: Vec<usize> = x.iter().map(|a| a.shape[dim]).collect();
        let mut run = |(operand, n): (usize, &usize)| {
            at += n;
            Run { rows: at - n..at, operand, first: 0, step: 1 }
        };
        let runs = sizes.iter().enumerate().map(&mut run).collect();
        f.moved.push(Moved { result: 0, dim, size: out[0].shape[dim], sizes, runs, fill: None });
        f
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        let words = |all: &str| format!("All operands should have the same sharding. Got shardings {all}");
        Ok(smallvec![t.alike(0, words)?])
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let _ = out;
        Ok(smallvec![b.concatenate(x, self.dimension)])
    }
}

primitive! {
    pub struct Split = "split" {
        axis: usize,
        sizes: Dims,
    }
}
impl Rules for Split {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("split takes 1 operand, got {}", x.len())) };
        if self.axis >= a.rank()
            || a.tape > 0
            || self.sizes.iter().fold(0, |n: usize, s| n.saturating_add(*s)) != a.shape[self.axis]
        {
            return value_err(format!(
                "Sum of sizes {} must be equal to dimension {} of the operand shape {:?}",
                self.sizes.iter().map(|n| *n as u128).sum::<u128>(),
                self.axis,
                a.shape
            ));
        }
        let part = |n: &usize| {
            let mut s = a.shape.clone();
            s[self.axis] = *n;
            a.with_shape(s)
        };
        Ok(self.sizes.iter().map(part).collect())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let a = x[0].aval();
        let part = |k: usize| {
            let mut s = a.shape.clone();
            s[self.axis] = self.sizes[k];
            a.with_shape(s)
        };
        let parts = parts_to_join(cx, ct, &part)?;
        Ok(smallvec![Some(cx.bind1(Concatenate { dimension: self.axis }, &parts)?)])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let at = d[0];
        let axis = self.axis + at.is_some_and(|d| self.axis >= d) as usize;
        let y = cx.bind(&Split { axis, sizes: self.sizes.clone() }.into(), x)?;
        let n = y.len();
        Ok((y, smallvec![at; n]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        within_parts(cx, &self.clone().into(), x, s, self.axis, Some(&self.sizes))
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::along(x, out, |d| d != self.axis);
        let mut at = 0;
        let mut rows = |(result, size): (usize, &usize)| {
            let run = Run { rows: 0..*size, operand: 0, first: at, step: 1 };
            at += *size as i64;
            let sizes = vec![x[0].shape[self.axis]];
            Moved { result, dim: self.axis, size: *size, sizes, runs: vec![run], fill: None }
        };
        f.moved = self.sizes.iter().enumerate().map(&mut rows).collect();
        f
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        t.varying("split")
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let (rank, mut at) = (b.rank(x[0]), 0);
        let mut part = |a: &Aval| {
            let start: Dims = (0..rank).map(|k| if k == self.axis { at } else { 0 }).collect();
            at += a.shape[self.axis];
            b.slice(x[0], &start, &vec![1; rank], a.shape.clone())
        };
        Ok(out.iter().map(&mut part).collect())
    }
}
