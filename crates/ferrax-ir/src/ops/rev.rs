//! rev: `out[i] = x[n - 1 - i]` along each of `dimensions`. numpy: `flip`.
use super::linear_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::error::{Res, type_err};
use crate::factors::{Factors, Moved, Run};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::support::{Supports, Within, within_moved};
use crate::typing::{Specs, Typing};
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

primitive! {
    pub struct Rev = "rev" {
        dimensions: Dims,
    }
}
impl Rules for Rev {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("rev takes 1 operand, got {}", x.len())) };
        if self.dimensions.iter().any(|k| *k >= a.rank()) {
            return type_err(format!(
                "rev dimensions must all be less than operand ndim, got dimensions {} for operand ndim {}.",
                self.dimensions,
                a.rank()
            ));
        }
        let d = &self.dimensions;
        if (1..d.len()).any(|k| d[..k].contains(&d[k])) {
            return type_err(format!("rev dimensions must be unique, got {d}."));
        }
        Ok(smallvec![a.clone()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(self.clone(), std::slice::from_ref(ct))).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let shift = |d: usize| self.dimensions.iter().map(|k| k + (*k >= d) as usize).collect();
        let dimensions = d[0].map_or(self.dimensions.clone(), shift);
        Ok((cx.bind(&Rev { dimensions }.into(), x)?, d.into()))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        within_moved(cx, &self.clone().into(), x, s, &self.dimensions)
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::along(x, out, |d| !self.dimensions.contains(&d));
        let rows = |dim: usize| {
            let size = out[0].shape[dim];
            let run = Run { rows: 0..size, operand: 0, first: size as i64 - 1, step: -1 };
            Moved { result: 0, dim, size, sizes: vec![size], runs: vec![run], fill: None }
        };
        f.moved = self.dimensions.iter().map(|d| rows(*d)).collect();
        f
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        Ok(t.as_first())
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(smallvec![b.reverse(x[0], &self.dimensions)])
    }
}
