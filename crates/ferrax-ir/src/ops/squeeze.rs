//! squeeze: removes axes of size 1. numpy: `squeeze`.
use super::linear_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::error::{Res, value_err};
use crate::factors::{Factors, In, Out};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::support::{Supports, Within, within_reshape};
use crate::typing::Sums;
use crate::value::{Value, Values};
use ferrax_kernel::Dims;
use smallvec::smallvec;

primitive! {
    pub struct Squeeze = "squeeze" {
        dimensions: Dims,
    }
}
impl Rules for Squeeze {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return value_err(format!("squeeze takes 1 operand, got {}", x.len())) };
        let d = &self.dimensions;
        if (1..d.len()).any(|k| d[..k].contains(&d[k])) {
            return value_err(format!("dimensions are not unique: {d}"));
        }
        if self.dimensions.iter().any(|k| *k >= a.rank() || a.shape[*k] != 1) {
            return value_err(format!(
                "cannot select an axis to squeeze out which has size not equal to one, got shape={} and dimensions={}",
                a.shape, self.dimensions
            ));
        }
        Ok(smallvec![a.with_shape(a.shape.without(&self.dimensions))])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let a = x[0].aval();
        let kept: Dims = (0..a.rank()).filter(|k| !self.dimensions.contains(k)).collect();
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.broadcast(ct, &a.shape, &kept)).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let Some(d) = d[0] else { return Ok((cx.bind(&self.clone().into(), x)?, smallvec![None])) };
        let dimensions: Dims = self.dimensions.iter().map(|k| k + (*k >= d) as usize).collect();
        let at = d - dimensions.iter().filter(|k| **k < d).count();
        Ok((cx.bind(&Squeeze { dimensions }.into(), x)?, smallvec![Some(at)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let y = cx.bind1(self.clone(), x)?;
        Ok(within_reshape(x, s, y))
    }
    fn sums(&self) -> Sums {
        Sums::Moved
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::whole(x, out);
        let kept = (0..x[0].rank()).filter(|k| !self.dimensions.contains(k));
        kept.enumerate().for_each(|(d, k)| f.link(x[0].shape[k], &[In(0, k), Out(0, d)]));
        f
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        Ok(smallvec![b.reshape(x[0], out[0].shape.clone())])
    }
}
