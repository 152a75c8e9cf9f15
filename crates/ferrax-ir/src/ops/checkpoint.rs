//! remat2 (checkpoint): `out = jaxpr(x)`, and reverse mode keeps its operands and the values that the policy selects; the rest is computed
//! again when it is transposed.
//!
//! ```text
//! y = sin (x @ w)         keeping dots:    forwards   a = x @ w; y = sin a
//!                                          backwards  from x, w, a: ct * cos a, ..
//! ```
//!
//! INVARIANT: the policy decides what is kept and nothing else: values and gradients are the same under each.
mod policy;

use super::call::{batch, check_ins, jvp, lift_one};
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan};
use crate::effects::Effects;
use crate::error::{Error, Res};
use crate::factors::{BodyTies, Ties};
use crate::lower::{Graph, TensorId, TensorIds};
use crate::mask::{cat, count, merge, not, pick};
use crate::op::{Avals, Axes, BodyRules, Op, Rules, Tans};
use crate::primitive;
use crate::program::Program;
use crate::support::{Bared, Crossing, Leaf, Place};
use crate::value::{Value, Values};
pub use policy::Policy;
use policy::cut;
use std::sync::Arc;

primitive! {
    pub struct Remat = "remat2" {
        jaxpr: Arc<Program>,
        prevent_cse: bool,
        differentiated: bool,
        policy: Option<Policy>,
    }
}

impl Remat {
    pub fn new(jaxpr: Arc<Program>) -> Remat {
        Remat { jaxpr, prevent_cse: true, differentiated: false, policy: None }
    }
    fn with(&self, jaxpr: Arc<Program>) -> Op {
        Remat { jaxpr, ..self.clone() }.into()
    }
}
impl Rules for Remat {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        check_ins("checkpoint", x, &self.jaxpr)?;
        Ok(self.jaxpr.out_avals().into())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        jvp(&self.jaxpr, |p| self.with(p), cx, x, dx)
    }
    /// The body still holds its nonlinear part: split; compute the known half again and transpose the other, in one body.
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let lin: Vec<bool> = x.iter().map(Arg::is_linear).collect();
        let sp = cx.recur().split(&self.jaxpr, &lin, &vec![true; self.jaxpr.n_outs()], &vec![false; x.len()])?;
        let inner: Vec<bool> = (0..sp.unknown.n_ins()).map(|i| i >= sp.res.len()).collect();
        let bare = Bared::of(cx, ct)?;
        let back = cx.recur().transpose_within(&sp.unknown, &inner, &bare.supports)?;
        let known: Vec<Value> = x.iter().filter_map(|a| a.known().cloned()).collect();
        let cts = cat(&[&bare.values, &bare.selectors]);
        let ins: Vec<Aval> = known.iter().chain(&cts).map(Value::aval).collect();
        let (n, n_res) = (known.len(), sp.res.len());
        // a selector that is computed again is a result
        let (mut shown, first) = (vec![], back.program.n_outs() - back.outs.iter().flatten().count());
        let mut place = |p: &Leaf<Place>| {
            let which = match p.which {
                Place::In(i) if i < n_res => {
                    shown.push(i);
                    Place::Out(first + shown.len() - 1)
                }
                Place::In(i) => Place::In(n + i - n_res),
                out => out,
            };
            Ok(Leaf { which, axes: p.axes.clone() })
        };
        let outs = back.outs.iter().map(|s| s.as_ref().map(|s| s.map(&mut place)).transpose()).collect::<Res<_>>()?;
        let (program, consts) = cx.recur().stage(&ins, &|cx, a| {
            let res = cx.inline_named(&sp.known, &a[..n], "rematted_computation")?;
            let mut y = cx.inline(&back.program, &cat(&[&res, &a[n..]]))?;
            y.extend(shown.iter().map(|i| res[*i].clone()));
            Ok(y)
        })?;
        let op = Remat { jaxpr: program.clone(), differentiated: true, ..self.clone() };
        let args = cat(&[&known, &cts]);
        let y = cx.bind(&op.into(), &cat(&[&consts, &args]))?;
        let cts = Crossing { program, outs }.tangents(cx, &args, &y)?;
        Ok(merge(&lin, cts, vec![None; x.len()]).into())
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(&self.jaxpr, |p| self.with(p), cx, ax, x, d)
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        b.inline(&self.jaxpr, x)
    }
}
impl BodyRules for Remat {
    /// Computes the known outputs and the values that the policy keeps; the unknown outputs become
    /// the rest of the body, which is split when it is transposed.
    fn split(&self, cx: &dyn Cx, rec: &dyn Cx, x: &[Value], unk: &[bool]) -> Res<Values> {
        let effects = self.jaxpr.effects();
        if effects.external {
            let which = if effects.ordered { "OrderedIO" } else { "IO" };
            return Err(Error::not_implemented(format!(
                "Effects not supported in partial-eval of `checkpoint`/`remat`: [{which}]"
            )));
        }
        let parts = cut(cx, &self.jaxpr, unk, &vec![false; self.jaxpr.n_outs()], self.policy.as_ref())?;
        let n_known = count(&not(&parts.out_unk));
        let (rest, needed) = parts.rest.dce(&parts.out_unk);
        let (needed_kept, needed_ins) = needed.split_at(parts.known.n_outs() - n_known);
        let (known, ins) = parts.known.dce(&cat(&[&vec![true; n_known], needed_kept]));
        let mut y = cx.inline_here(&known, &pick(&pick(x, &not(unk)), &ins), 0)?.into_vec();
        let kept = y.split_off(n_known);
        let args = cat(&[&kept, &pick(x, needed_ins)]);
        Ok(merge(&parts.out_unk, rec.record_body(&self.with(rest), &args)?, y).into())
    }
    fn dce(&self, used: &[bool]) -> Option<(Op, Vec<bool>, Vec<bool>)> {
        let (jaxpr, kept) = self.jaxpr.dce(used);
        Some((self.with(jaxpr), kept, used.to_vec()))
    }
    fn lift(&self, x: &[Value]) -> Option<(Op, Values)> {
        lift_one(&self.jaxpr, |p| self.with(p), x)
    }
    fn effects(&self) -> Effects {
        self.jaxpr.effects().clone()
    }
    fn bodies(&self) -> Vec<&Arc<Program>> {
        vec![&self.jaxpr]
    }
    fn ties(&self, x: &[Aval]) -> Option<Ties> {
        Some(Ties { bodies: vec![BodyTies::same(0..x.len(), self.jaxpr.n_outs())] })
    }
    fn with_bodies(&self, bodies: Vec<Arc<Program>>) -> Option<Op> {
        bodies.into_iter().next().map(|b| self.with(b))
    }
}
