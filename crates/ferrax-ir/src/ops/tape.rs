//! tape_len: the number of elements of a tape. empty_tape: the zero of a tape type, which is equal to zero for every length, because reading past
//! the end of a tape gives zeros. With these a loop of run-time length can map over tapes, and no other primitive handles them.
use super::zero_jvp;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, PerElement, Tan};
use crate::dtype::Dtype;
use crate::error::{Res, not_linear, type_err};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::mask::cat;
use crate::op::{Avals, Axes, Rules, Tans};
use crate::ops::loops::{Loop, Trip};
use crate::ops::pointwise::Pw;
use crate::primitive;
use crate::value::{Value, Values};
use ferrax_kernel::DType;
use smallvec::smallvec;

primitive! {
    /// A batched tape holds as many elements as the longest loop of the batch wrote; elements
    /// beyond a shorter loop's own are never read.
    pub struct TapeLen = "tape_len" {}
}
impl Rules for TapeLen {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        match x {
            [a] if a.tape > 0 => Ok(smallvec![Aval::scalar(Dtype::I32)]),
            _ => type_err(format!("tape_len of {x:?}")),
        }
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], _: &[Tan]) -> Res<(Values, Tans)> {
        zero_jvp(&self.clone().into(), cx, x)
    }
    fn transpose(&self, _: &dyn Cx, _: &[Arg], _: &[Tan]) -> Res<Tans> {
        not_linear("tape_len")
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], _: &[Dim]) -> Res<(Values, Axes)> {
        Ok((cx.bind(&self.clone().into(), x)?, smallvec![None]))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(smallvec![b.tape_len(x[0], DType::I32)])
    }
}

primitive! {
    pub struct EmptyTape = "empty_tape" {
        aval: Aval,
    }
}
impl Rules for EmptyTape {
    fn infer(&self, _: &[Aval]) -> Res<Avals> {
        Ok(smallvec![self.aval.clone()])
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
    fn lower(&self, b: &mut Graph, _: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(smallvec![b.empty_tape(&self.aval)])
    }
}
/// `f` over the elements of tapes, as a loop as long as the longest of them.
pub fn zip_tapes(cx: &dyn Cx, consts: &[Value], tapes: &[Value], f: PerElement) -> Res<Value> {
    let mut n = cx.bind1(TapeLen {}, &tapes[..1])?;
    for t in &tapes[1..] {
        let m = cx.bind1(TapeLen {}, std::slice::from_ref(t))?;
        n = cx.pw2(Pw::Max, &n, &m)?;
    }
    let elements = tapes.iter().map(|t| Aval { tape: t.tape() - 1, ..t.aval() });
    let ins: Vec<Aval> = consts.iter().map(Value::aval).chain(elements).collect();
    let (body, held) =
        cx.recur().stage(&ins, &|cx, a| Ok(smallvec![f(cx, &a[..consts.len()], &a[consts.len()..])?]))?;
    let op = Loop::new(Trip::Dyn, held.len() + consts.len(), 0, body);
    cx.bind1(op, &cat(&[&[n], &held, consts, tapes]))
}
