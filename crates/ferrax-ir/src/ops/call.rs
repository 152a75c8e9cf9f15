//! jit: `out = jaxpr(x)`. Its rules are bookkeeping around `cx.recur()`, and those of other calls are the same.
use crate::aval::{Aval, same_avals};
use crate::cx::{Arg, Axis, Cx, Dim, KnownSplit, Residual, Tan};
use crate::effects::Effects;
use crate::error::Res;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::mask::{cat, count, merge, nonzero, not, pick, spread};
use crate::op::{Avals, Axes, BodyRules, Op, Rules, Tans};
use crate::primitive;
use crate::program::{Atom, In, Program, mismatch};
use crate::support::Bared;
use crate::value::{Value, Values};
use std::sync::Arc;

primitive! {
    pub struct Call = "jit" {
        name: Arc<str>,
        jaxpr: Arc<Program>,
        /// Inlined where it is traced; only a program read from text has it.
        inline: bool = nonempty,
        keep_unused: bool = nonempty,
    } always_none { in_shardings = hidden, out_shardings = hidden, in_layouts = hidden, out_layouts = hidden, donated_invars = hidden, ctx_mesh = hidden, compiler_options_kvs = hidden }
}
pub fn check_ins(name: &str, x: &[Aval], body: &Program) -> Res<()> {
    if same_avals(x, body.in_avals()) { Ok(()) } else { Err(mismatch(name, x, body.in_avals())) }
}
/// The residuals of a split, in order: forwarded operands by name, new ones from the known part's outputs.
pub fn residuals(sp: &KnownSplit, x: &[Value], new: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut new = new.into_iter();
    let get = |r: &Residual| match r {
        Residual::In(i) => Some(x[*i].clone()),
        Residual::New => new.next(),
    };
    sp.res.iter().filter_map(get).collect()
}
/// For each new residual of a split, the position of the known output that it equals, if there is one: it need not be returned twice.
pub fn among_outputs(sp: &KnownSplit) -> Vec<Option<usize>> {
    let (made, new) = sp.known.outs().split_at(count(&not(&sp.out_unk)));
    new.iter().map(|a| made.iter().position(|m| m == a && matches!(a, Atom::Var(_)))).collect()
}
/// All new residuals, those that are known outputs and the others.
pub fn with_forwarded(made: &[Value], others: Vec<Value>, from: &[Option<usize>]) -> Vec<Value> {
    let mut others = others.into_iter();
    from.iter().filter_map(|i| i.map_or_else(|| others.next(), |i| Some(made[i].clone()))).collect()
}
/// Held values of the one body, as leading operands.
pub fn lift_one(body: &Arc<Program>, with: impl Fn(Arc<Program>) -> Op, x: &[Value]) -> Option<(Op, Values)> {
    if body.held().is_empty() {
        return None;
    }
    let (body, held) = body.release();
    Some((with(body), held.into_iter().chain(x.iter().cloned()).collect()))
}
/// The operands with their batch axes, if any, in front.
pub fn fronts(cx: &dyn Cx, x: &[Value], d: &[Dim]) -> Res<Vec<Value>> {
    x.iter().zip(d).map(|(v, d)| cx.to_front(v, *d)).collect()
}
pub fn lanes(d: &[Dim]) -> Vec<bool> {
    d.iter().map(Option::is_some).collect()
}
pub fn front_dims(b: &[bool]) -> Axes {
    b.iter().map(|b| b.then_some(0)).collect()
}

pub fn jvp(
    body: &Arc<Program>,
    with: impl Fn(Arc<Program>) -> Op,
    cx: &dyn Cx,
    x: &[Value],
    dx: &[Tan],
) -> Res<(Values, Tans)> {
    let m = body.n_outs();
    if cx.keeps_supports() {
        let bare = Bared::of(cx, dx)?;
        let made = cx.recur().jvp_within(body, &bare.supports)?;
        let args = cat(&[x, &bare.values, &bare.selectors]);
        let y = cx.bind_body(&with(made.program.clone()), &args)?;
        let dy = made.tangents(cx, &args, &y[m..])?;
        return Ok((y[..m].into(), dy.into()));
    }
    let (body, nz) = cx.recur().jvp(body, &nonzero(dx), &vec![false; m], &[x.len()], &[m])?;
    let args: Values = x.iter().cloned().chain(dx.iter().flatten().cloned()).collect();
    let mut y = cx.bind_body(&with(body), &args)?.into_vec();
    let dy = spread(&nz, y.split_off(m));
    Ok((y.into(), dy.into()))
}
fn transpose(body: &Arc<Program>, with: impl Fn(Arc<Program>) -> Op, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
    let lin: Vec<bool> = x.iter().map(Arg::is_linear).collect();
    let bare = Bared::of(cx, ct)?;
    let made = cx.recur().transpose_within(body, &lin, &bare.supports)?;
    let known: Vec<Value> = x.iter().filter_map(|a| a.known().cloned()).collect();
    let args = cat(&[&known, &bare.values, &bare.selectors]);
    let y = cx.bind_body(&with(made.program.clone()), &args)?;
    let cts = made.tangents(cx, &args, &y)?;
    Ok(merge(&lin, cts, vec![None; x.len()]).into())
}
pub fn batch(
    body: &Arc<Program>,
    with: impl Fn(Arc<Program>) -> Op,
    cx: &dyn Cx,
    ax: Axis,
    x: &[Value],
    d: &[Dim],
) -> Res<(Values, Axes)> {
    let (body, out) = cx.recur().batch(body, ax, &lanes(d), &vec![false; body.n_outs()])?;
    Ok((cx.bind_body(&with(body), &fronts(cx, x, d)?)?, front_dims(&out)))
}

impl Call {
    pub fn new(name: &str, jaxpr: Arc<Program>) -> Call {
        Call { name: name.into(), jaxpr, inline: false, keep_unused: false }
    }
    fn with(&self, jaxpr: Arc<Program>) -> Op {
        Call { jaxpr, ..self.clone() }.into()
    }
}
impl Rules for Call {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        check_ins("jit", x, &self.jaxpr)?;
        Ok(self.jaxpr.out_avals().into())
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        jvp(&self.jaxpr, |p| self.with(p), cx, x, dx)
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        transpose(&self.jaxpr, |p| self.with(p), cx, x, ct)
    }
    fn batch(&self, cx: &dyn Cx, ax: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        batch(&self.jaxpr, |p| self.with(p), cx, ax, x, d)
    }
    fn expanded(&self, x: &[Aval]) -> Res<Option<(Arc<Program>, Vec<usize>)>> {
        Ok(Some((self.jaxpr.clone(), (0..x.len()).collect())))
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], _: &[Aval]) -> Res<TensorIds> {
        b.inline(&self.jaxpr, x)
    }
}
impl BodyRules for Call {
    fn split(&self, cx: &dyn Cx, rec: &dyn Cx, x: &[Value], unk: &[bool]) -> Res<Values> {
        let sp = cx.recur().split(&self.jaxpr, unk, &vec![false; self.jaxpr.n_outs()], &vec![true; x.len()])?;
        let idle = sp.known.n_outs() == 0 && !sp.known.effects().io;
        let (made, from) = (count(&not(&sp.out_unk)), among_outputs(&sp));
        let once: Vec<usize> =
            (0..made).chain((0..from.len()).filter(|k| from[*k].is_none()).map(|k| made + k)).collect();
        let mut known = vec![];
        if !idle {
            let ins: Vec<In> = (0..sp.known.in_avals().len()).map(In::Old).collect();
            let jaxpr =
                if once.len() < sp.known.n_outs() { sp.known.rewire(&ins, Some(&once)) } else { sp.known.clone() };
            known = cx.bind_body(&self.with(jaxpr), &pick(x, &not(unk)))?.into_vec();
        }
        let others = known.split_off(made);
        let new = with_forwarded(&known, others, &from);
        let args = cat(&[&residuals(&sp, x, new), &pick(x, unk)]);
        Ok(merge(&sp.out_unk, rec.record_body(&self.with(sp.unknown.clone()), &args)?, known).into())
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
}
