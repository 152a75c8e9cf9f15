//! device_put: the operand on another device. The identity on values; numpy has one place only.
//!
//! ```text
//! out = x, on device devices[0]; its cotangent goes back to srcs[0]
//! ```
//!
//! Run eagerly, it moves. Inside a program, which runs on one device, it is the identity.
use super::linear_jvp;
use super::pmap::Places;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::error::{Res, type_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::value::{Value, Values};
use smallvec::smallvec;

primitive! {
    pub struct DevicePut = "device_put" {
        /// The target devices, by the executor's number; none keeps the current one.
        devices: Places,
        /// The source devices, if known.
        srcs: Places,
    }
}
impl Rules for DevicePut {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        let [a] = x else { return type_err(format!("device_put takes 1 operand, got {}", x.len())) };
        Ok(smallvec![a.clone()])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        linear_jvp(&self.clone().into(), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, _: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let back = DevicePut { devices: self.srcs.clone(), srcs: self.devices.clone() };
        Ok(smallvec![ct[0].as_ref().map(|ct| cx.bind1(back, std::slice::from_ref(ct))).transpose()?])
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        Ok((cx.bind(&self.clone().into(), x)?, d.into()))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::pointwise(x, out)
    }
    fn lower(&self, _: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(smallvec![x[0]])
    }
}
