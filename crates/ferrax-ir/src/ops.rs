//! One module per family of primitives: parameters, then infer, jvp, transpose, batch, lower.
pub mod argreduce;
pub mod barrier;
pub mod bitcast;
pub mod broadcast;
pub mod call;
pub mod callback;
pub mod checkpoint;
pub mod clamp;
pub mod collective;
pub mod concatenate;
pub mod cond;
pub mod conv;
pub mod convert;
pub mod cumulative;
pub mod custom;
pub mod device_put;
pub mod dot;
pub mod dynamic_slice;
pub mod fft;
pub mod foreign;
pub mod gather;
pub mod iota;
pub mod linalg;
pub mod linear_solve;
pub mod loops;
pub mod meaning;
pub mod pad;
pub mod pmap;
pub mod pointwise;
pub mod ragged_dot;
pub mod random;
pub mod reduce;
pub mod reduce_by;
pub mod reduce_window;
pub mod reshape;
pub mod reshard;
pub mod rev;
pub mod rng;
pub mod scatter;
pub mod select;
pub mod select_and_gather;
pub mod shard_map;
pub mod sharding_constraint;
pub mod slice;
pub mod sort;
pub mod special;
pub mod squeeze;
pub mod stack;
pub mod tape;
pub mod tile;
pub mod top_k;
pub mod transpose;
pub mod windows;

use crate::cx::{Cx, Tan};
use crate::error::Res;
use crate::op::{Op, Tans};
use crate::value::{Value, Values};
use smallvec::smallvec;

/// y = A x, linear in operand 0 and constant in the others: dy = A dx.
pub fn linear_jvp(op: &Op, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
    let y = cx.bind(op, x)?;
    let Some(t) = &dx[0] else { return Ok(with_zeros(y)) };
    let mut args: Values = x.into();
    args[0] = t.clone();
    Ok((y, cx.bind(op, &args)?.into_iter().map(Some).collect()))
}
/// Linear in all operands together: those without a tangent have a zero one, where any has one.
pub fn joint_jvp(op: &Op, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
    let y = cx.bind(op, x)?;
    if dx.iter().all(Option::is_none) {
        return Ok(with_zeros(y));
    }
    let t: Values = dx.iter().zip(x).map(|(t, x)| cx.inst(t, &x.aval())).collect::<Res<_>>()?;
    Ok((y, cx.bind(op, &t)?.into_iter().map(Some).collect()))
}
/// The tangents are zero whatever the operands'.
pub fn zero_jvp(op: &Op, cx: &dyn Cx, x: &[Value]) -> Res<(Values, Tans)> {
    Ok(with_zeros(cx.bind(op, x)?))
}
pub fn with_zeros(y: Values) -> (Values, Tans) {
    let dy = smallvec![None; y.len()];
    (y, dy)
}
