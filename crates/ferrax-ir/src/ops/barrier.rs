//! optimization_barrier: the operands unchanged, one result for each. It has no effect, since no reordering changes a result; programs keep
//! it for their readers.
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::error::Res;
use crate::factors::{Factors, In, Out};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::primitive;
use crate::support::{Supports, Within};
use crate::value::{Value, Values};
use smallvec::smallvec;

primitive! {
    pub struct OptimizationBarrier = "optimization_barrier" {}
}
impl Rules for OptimizationBarrier {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        Ok(x.iter().cloned().collect())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind(&OptimizationBarrier {}.into(), x)?;
        let known: Values = dx.iter().flatten().cloned().collect();
        if known.is_empty() {
            return Ok((y, smallvec![None; x.len()]));
        }
        let mut t = cx.bind(&OptimizationBarrier {}.into(), &known)?.into_iter();
        let dy = dx.iter().map(|d| d.as_ref().and_then(|_| t.next())).collect();
        Ok((y, dy))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let known: Values = ct.iter().flatten().cloned().collect();
        let mut t = cx.bind(&OptimizationBarrier {}.into(), &known)?.into_iter();
        Ok(ct.iter().zip(x).map(|(c, a)| c.as_ref().and_then(|_| t.next()).filter(|_| a.is_linear())).collect())
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        Ok((cx.bind(&OptimizationBarrier {}.into(), x)?, d.into()))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        Ok(Some((cx.bind(&OptimizationBarrier {}.into(), x)?, s.iter().cloned().collect())))
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        let mut f = Factors::whole(x, out);
        for (i, a) in x.iter().enumerate() {
            (0..a.rank()).for_each(|d| f.link(a.shape[d], &[In(i, d), Out(i, d)]));
        }
        f
    }
    fn lower(&self, _: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        Ok(x.into())
    }
}
