//! iota: `out[..i..] = i` along `dimension`. No operands: only the trace decides where it runs. numpy: `arange`, broadcast.
use super::zero_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::dtype::Dtype;
use crate::error::{Res, type_err, value_err};
use crate::factors::{Factors, Out};
use crate::lower::{Graph, TensorId, TensorIds, physical};
use crate::op::{Avals, Axes, Op, Rules, Tans};
use crate::param::Shape;
use crate::primitive;
use crate::value::{Value, Values};
use ferrax_kernel::Scalar;
use smallvec::smallvec;

primitive! {
    pub struct Iota = "iota" {
        dimension: usize,
        dtype: Dtype,
        shape: Shape,
    } always_none { sharding = always }
}
impl Rules for Iota {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        if !x.is_empty() {
            return type_err(format!("iota takes no operands, got {}", x.len()));
        }
        if self.dtype.is_bool() || self.dtype.is_key() {
            return type_err(format!(
                "iota does not accept dtype {}. Accepted dtypes are subtypes of integer, floating, complexfloating.",
                self.dtype.long()
            ));
        }
        if self.dimension >= self.shape.len() {
            return value_err(format!(
                "iota dimension must be between 0 and len(shape), got dimension={} for shape={}",
                self.dimension, self.shape.0
            ));
        }
        Ok(smallvec![Aval::of(self.dtype, self.shape.0.clone())])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        Ok(smallvec![])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], _: &[Dim]) -> Res<(Values, Axes)> {
        Ok((cx.bind(&self.clone().into(), x)?, smallvec![None]))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::whole(x, out);
        let others = (0..self.shape.len()).filter(|d| *d != self.dimension);
        others.for_each(|d| f.link(self.shape[d], &[Out(0, d)]));
        f
    }
    fn local(&self, _: &[Aval], out: &[Aval]) -> Option<Op> {
        Some(Iota { shape: out[0].shape.clone().into(), ..self.clone() }.into())
    }
    fn lower(&self, b: &mut Graph, _: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let p = physical(&out[0]);
        let shape = self.shape.0.clone();
        let i = b.iota(p.dtype, shape.clone(), self.dimension);
        if !p.paired {
            return Ok(smallvec![i]);
        }
        let zero = b.constant(Scalar::zero(p.dtype), shape);
        Ok(smallvec![b.pair(i, zero)])
    }
}
