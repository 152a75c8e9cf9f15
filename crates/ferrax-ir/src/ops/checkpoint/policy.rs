//! The values that a checkpoint keeps: a predicate over primitives, and the split of a program by it.
//!
//! ```text
//! { lambda ; x w. a = dot x w; y = sin a; z = mul y t in (z,) }     x, w known; dots kept
//! known: { lambda ; x w. a = dot x w in (a,) }
//! rest:  { lambda ; a x w t. y = sin a; z = mul y t in (z,) }
//! ```
//!
//! INVARIANT: the rest reads of the known part only operands and kept values; it recomputes all others. Calls are inlined;
//! in loops and branches the kept values inside are stacked, or zeros where the other branch ran.
use crate::aval::Aval;
use crate::cx::{Cx, Line, read};
use crate::error::{Res, value_err};
use crate::mask::{cat, count, fixpoint, not, or, pick};
use crate::op::Op;
use crate::ops::cond::Cond;
use crate::ops::loops::{Loop, Trip};
use crate::param::{Param, ParamValue};
use crate::program::{Atom, In, Program};
use crate::value::{Value, Values};
use std::any::Any;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Whether reverse mode keeps a primitive's results, given its operands' types.
pub type Keeps = dyn Fn(&Op, &[Aval]) -> Res<bool> + Send + Sync;

/// A policy, with the name it prints by. Two are equal if they are the same object of the host language (`identity`), or the same
/// policy of the list below.
#[derive(Clone)]
pub struct Policy {
    name: Arc<str>,
    identity: usize,
    keeps: Arc<Keeps>,
    host: Option<Arc<dyn Any + Send + Sync>>,
}
impl Policy {
    /// `host`: the object that `keeps` calls, at the address `identity`.
    pub fn new(name: &str, identity: usize, host: Arc<dyn Any + Send + Sync>, keeps: Arc<Keeps>) -> Policy {
        Policy { name: name.into(), identity, keeps, host: Some(host) }
    }
    /// The policies that need no host language.
    pub fn named(name: &str) -> Option<Policy> {
        let keeps: fn(&Op, &[Aval]) -> Res<bool> = match name {
            "everything_saveable" => |_, _| Ok(true),
            "nothing_saveable" => |_, _| Ok(false),
            "dots_saveable" => |op, _| Ok(matches!(op.name(), "dot_general" | "conv_general_dilated")),
            "dots_with_no_batch_dims_saveable" => {
                |op, _| Ok(matches!(op, Op::Dot(d) if d.dimension_numbers.lb.is_empty()))
            }
            _ => return None,
        };
        Some(Policy { name: name.into(), identity: 0, keeps: Arc::new(keeps), host: None })
    }
    /// The host language's policy of that name, read from text: the program runs, but the policy cannot be called.
    fn unknown(name: &str) -> Policy {
        let shown = name.to_string();
        let keeps = move |_: &Op, _: &[Aval]| {
            value_err(format!("the policy {shown} is known by name only, because the program was read from text"))
        };
        Policy { name: name.into(), identity: 0, keeps: Arc::new(keeps), host: None }
    }
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn host(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.host.as_ref()
    }
}
impl PartialEq for Policy {
    fn eq(&self, o: &Policy) -> bool {
        (self.identity, &self.name) == (o.identity, &o.name)
    }
}
impl Eq for Policy {}
impl Hash for Policy {
    fn hash<H: Hasher>(&self, h: &mut H) {
        (self.identity, &self.name).hash(h);
    }
}
impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}
impl ParamValue for Policy {
    fn words() -> String {
        "a checkpoint policy".into()
    }
    fn to_param(&self) -> Param {
        Param::Policy(self.clone())
    }
    fn from_param(p: &Param) -> Option<Policy> {
        match p {
            Param::Policy(p) => Some(p.clone()),
            Param::Str(s) => Some(Policy::named(s).unwrap_or_else(|| Policy::unknown(s))),
            Param::Fun(f) => Some(Policy::unknown(f.name())),
            _ => None,
        }
    }
}

/// known: (known ins) -> (known outs.., kept..); rest: (kept.., ins..) -> outs, all of both.
pub struct Cut {
    pub known: Arc<Program>,
    pub rest: Arc<Program>,
    pub out_unk: Vec<bool>,
}
impl Cut {
    fn n_kept(&self) -> usize {
        self.known.n_outs() - count(&not(&self.out_unk))
    }
}

/// The operands of the op that goes on, for those of the op that was cut and the kept values.
type Arrange = Box<dyn Fn(&[Value], &[Value]) -> Vec<Value>>;

/// An op with bodies, cut: `known` gives the known outputs and kept values; `rest` takes operands and kept values, and gives all outputs.
struct CutOp {
    known: Op,
    /// The operands that `known` does not take: unknown ones, and initial carries that become
    /// unknown.
    ins_unk: Vec<bool>,
    rest: Op,
    out_unk: Vec<bool>,
    arrange: Arrange,
}

/// How the rest gets an equation's outputs.
enum RestStep {
    Again,
    Kept(Range<usize>),
    Inline(Arc<Program>, Range<usize>),
    Op(Op, Range<usize>, Arrange),
}

/// Cuts `p` where the inputs `unk` are unknown; `force` makes an output unknown. Without a policy nothing is kept.
pub fn cut(cx: &dyn Cx, p: &Arc<Program>, unk: &[bool], force: &[bool], policy: Option<&Policy>) -> Res<Cut> {
    let steps: RefCell<Vec<RestStep>> = RefCell::default();
    let out_unk: RefCell<Vec<bool>> = RefCell::default();
    let kept_avals: RefCell<Vec<Aval>> = RefCell::default();
    let (known, held) = cx.recur().stage(&pick(p.in_avals(), &not(unk)), &|cx, a| {
        let mut a = a.iter().cloned();
        let mut env: Vec<Option<Value>> = p.held().iter().cloned().map(Some).collect();
        env.extend(unk.iter().map(|u| if *u { None } else { a.next() }));
        let (mut kept, mut steps) = (vec![], steps.borrow_mut());
        let place = Line::kept();
        for (e, line) in p.eqns().iter().zip(p.lines()) {
            place.set(*line);
            let args: Vec<Option<Value>> = e.args.iter().map(|a| known_atom(&env, a)).collect();
            let (step, outs) = known_step(cx, p, &e.op, &e.args, &args, e.n_out as usize, policy, &mut kept)?;
            steps.push(step);
            env.extend(outs);
        }
        let outs: Vec<Option<Value>> =
            p.outs().iter().zip(force).map(|(a, f)| if *f { None } else { known_atom(&env, a) }).collect();
        *out_unk.borrow_mut() = outs.iter().map(Option::is_none).collect();
        *kept_avals.borrow_mut() = kept.iter().map(Value::aval).collect();
        Ok(outs.into_iter().flatten().chain(kept).collect())
    })?;
    let known = closed(known, held);
    let (steps, kept_avals) = (steps.into_inner(), kept_avals.into_inner());
    let n_kept = kept_avals.len();
    let (rest, held) = cx.recur().stage(&cat(&[&kept_avals, p.in_avals()]), &|cx, a| {
        let (kept, ins) = a.split_at(n_kept);
        let mut env: Vec<Value> = cat(&[p.held(), ins]);
        let place = Line::kept();
        for ((e, line), step) in p.eqns().iter().zip(p.lines()).zip(&steps) {
            place.set(*line);
            let args: Vec<Value> = e.args.iter().map(|a| read(&env, a)).collect();
            match step {
                RestStep::Again => env.extend(cx.bind(&e.op, &args)?),
                RestStep::Kept(at) => env.extend_from_slice(&kept[at.clone()]),
                RestStep::Inline(rest, at) => env.extend(cx.inline(rest, &cat(&[&kept[at.clone()], &args]))?),
                RestStep::Op(op, at, arrange) => env.extend(cx.bind_body(op, &arrange(&args, &kept[at.clone()]))?),
            }
        }
        Ok(p.outs().iter().map(|a| read(&env, a)).collect())
    })?;
    Ok(Cut { known, rest: closed(rest, held), out_unk: out_unk.into_inner() })
}
fn closed(p: Arc<Program>, held: Vec<Value>) -> Arc<Program> {
    if held.is_empty() { p } else { Arc::new(p.with_consts(0).hold(held)) }
}
fn known_atom(env: &[Option<Value>], a: &Atom) -> Option<Value> {
    match a {
        Atom::Var(v) => env[*v as usize].clone(),
        Atom::Lit(l) => Some(Value::Lit(*l)),
    }
}
/// Emits the known part of an equation, records the values to keep, and adds the unknown part.
#[allow(clippy::too_many_arguments)]
fn known_step(
    cx: &dyn Cx,
    p: &Program,
    op: &Op,
    atoms: &[Atom],
    args: &[Option<Value>],
    n_out: usize,
    policy: Option<&Policy>,
    kept: &mut Vec<Value>,
) -> Res<(RestStep, Vec<Option<Value>>)> {
    let unk: Vec<bool> = args.iter().map(Option::is_none).collect();
    let known: Values = args.iter().flatten().cloned().collect();
    let at = kept.len();
    if let Some(policy) = policy {
        if let Some(body) = op.inlined() {
            let c = cut(cx, body, &unk, &vec![false; body.n_outs()], Some(policy))?;
            let mut y = cx.inline(&c.known, &known)?.into_vec();
            kept.extend(y.split_off(y.len() - c.n_kept()));
            return Ok((RestStep::Inline(c.rest, at..kept.len()), spread(&c.out_unk, y)));
        }
        if !unk.contains(&true) {
            let avals: Vec<Aval> = atoms.iter().map(|a| p.atom_aval(a)).collect();
            if (policy.keeps)(op, &avals)? {
                let y = cx.bind(op, &known)?;
                kept.extend(y.iter().cloned());
                return Ok((RestStep::Kept(at..kept.len()), y.into_iter().map(Some).collect()));
            }
        }
        // unknown operands that the body does not use, as tangents of a callback's operands
        if let (true, Some((smaller, used, _))) =
            (unk.contains(&true), op.body().and_then(|b| b.dce(&vec![true; n_out])))
        {
            let avals: Vec<Aval> = pick(atoms, &used).iter().map(|a| p.atom_aval(a)).collect();
            if !unk.iter().zip(&used).any(|(u, used)| *u && *used) && (policy.keeps)(&smaller, &avals)? {
                let args: Values = pick(args, &used).into_iter().flatten().collect();
                let y = cx.bind_body(&smaller, &args)?;
                kept.extend(y.iter().cloned());
                return Ok((RestStep::Kept(at..kept.len()), y.into_iter().map(Some).collect()));
            }
        }
        let inside = match op {
            Op::Loop(l) => cut_loop(cx, l, &unk, policy)?,
            Op::Cond(c) => cut_cond(cx, c, &unk, policy)?,
            _ => None,
        };
        if let Some(c) = inside {
            let args: Vec<Value> =
                args.iter().zip(&c.ins_unk).filter(|(_, u)| !**u).filter_map(|(v, _)| v.clone()).collect();
            let mut y = cx.bind_body(&c.known, &args)?.into_vec();
            kept.extend(y.split_off(count(&not(&c.out_unk))));
            return Ok((RestStep::Op(c.rest, at..kept.len(), c.arrange), spread(&c.out_unk, y)));
        }
    }
    if !unk.contains(&true) {
        return Ok((RestStep::Again, cx.bind(op, &known)?.into_iter().map(Some).collect()));
    }
    if op.body().is_none() {
        return Ok((RestStep::Again, vec![None; n_out]));
    }
    // some outputs of the body may be known
    let avals: Vec<Aval> = atoms.iter().map(|a| p.atom_aval(a)).collect();
    let (one, _) = cx.recur().stage(&avals, &|cx, a| cx.record(op, a))?;
    let parts = cx.recur().split(&one, &unk, &vec![false; n_out], &vec![true; unk.len()])?;
    let n_known = count(&not(&parts.out_unk));
    let (first, ins) = parts.known.dce(&(0..parts.known.n_outs()).map(|i| i < n_known).collect::<Vec<_>>());
    let y = cx.inline(&first, &pick(&known, &ins))?;
    Ok((RestStep::Again, spread(&parts.out_unk, y.into_vec())))
}
fn spread(out_unk: &[bool], known: Vec<Value>) -> Vec<Option<Value>> {
    let mut known = known.into_iter();
    out_unk.iter().map(|u| if *u { None } else { known.next() }).collect()
}

/// Kept values are stacked as the loop's ys, and are among the xs of the loop that goes on from them. A `while` is counted, and goes on
/// as a loop of that many steps.
fn cut_loop(cx: &dyn Cx, l: &Loop, unk: &[bool], policy: &Policy) -> Res<Option<CutOp>> {
    let [h, c, k, s] = l.groups();
    if l.counted() || unk[h.clone()].contains(&true) {
        return Ok(None);
    }
    let n_ys = l.n_ys();
    let (k_unk, parts) = fixpoint(unk[k.clone()].to_vec(), |k_unk| {
        let ins = cat(&[&unk[c.clone()], k_unk, &unk[s.clone()]]);
        let parts = cut(cx, &l.body, &ins, &cat(&[k_unk, &vec![false; n_ys]]), Some(policy))?;
        Ok((parts.out_unk[..k.len()].to_vec(), parts))
    })?;
    let n_kept = parts.n_kept();
    if n_kept == 0 {
        return Ok(None);
    }
    let trip = match &l.trip {
        Trip::While { cond, n_cond, .. } => {
            if cond.used_ins()[h.len()..].iter().zip(&k_unk).any(|(used, unk)| *used && *unk) {
                return Ok(None);
            }
            let known = (0..k.len()).filter(|i| !k_unk[*i]).map(|i| In::Old(h.len() + i));
            let ins: Vec<In> = (0..h.len()).map(In::Old).chain(known).collect();
            Trip::While { cond: cond.rewire(&ins, None), n_cond: *n_cond, counted: true }
        }
        t => t.clone(),
    };
    let is_while = matches!(trip, Trip::While { .. });
    let known = Loop {
        trip,
        n_consts: count(&not(&unk[c.clone()])),
        n_carry: count(&not(&k_unk)),
        body: parts.known.clone(),
        ..l.clone()
    };
    let ins: Vec<In> = (n_kept..parts.rest.n_ins()).chain(0..n_kept).map(In::Old).collect();
    let trip = if is_while { Trip::Dyn } else { l.trip.clone() };
    let rest = Loop { trip, body: parts.rest.rewire(&ins, None), ..l.clone() };
    let head = h.len();
    let arrange: Arrange = match is_while {
        false => Box::new(|x, kept| cat(&[x, kept])),
        true => Box::new(move |x, kept| cat(&[&kept[kept.len() - 1..], &x[head..], &kept[..kept.len() - 1]])),
    };
    let ins_unk = cat(&[&unk[..k.start], &k_unk, &unk[k.end..]]);
    Ok(Some(CutOp { known: known.into(), ins_unk, rest: rest.into(), out_unk: parts.out_unk, arrange }))
}

/// Every branch returns the kept values of all branches; those of the branches not taken are zeros.
fn cut_cond(cx: &dyn Cx, c: &Cond, unk: &[bool], policy: &Policy) -> Res<Option<CutOp>> {
    let Some(first) = c.branches.first().filter(|_| !unk[0]) else { return Ok(None) };
    let (out_unk, cuts) = fixpoint(vec![false; first.n_outs()], |force| {
        let cuts = c.branches.iter().map(|b| cut(cx, b, &unk[1..], force, Some(policy))).collect::<Res<Vec<_>>>()?;
        Ok((cuts.iter().fold(force.to_vec(), |u, c| or(&u, &c.out_unk)), cuts))
    })?;
    let n_known = count(&not(&out_unk));
    let kept: Vec<Vec<Aval>> = cuts.iter().map(|c| c.known.out_avals()[n_known..].to_vec()).collect();
    if kept.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let known_ins = pick(first.in_avals(), &not(&unk[1..]));
    let (mut known, mut rest, mut at) = (vec![], vec![], 0);
    for (k, branch) in cuts.iter().enumerate() {
        let (p, held) = cx.recur().stage(&known_ins, &|cx, a| {
            let mut out = cx.inline(&branch.known, a)?.into_vec();
            let mut mine = out.split_off(n_known);
            for (j, avals) in kept.iter().enumerate() {
                match j == k {
                    true => out.append(&mut mine),
                    false => out.extend(avals.iter().map(|a| cx.zeros(a)).collect::<Res<Vec<_>>>()?),
                }
            }
            Ok(out.into())
        })?;
        known.push(closed(p, held));
        let own = at..at + kept[k].len();
        at = own.end;
        let slot = |(i, a): (usize, &Aval)| if own.contains(&i) { In::Old(i - own.start) } else { In::New(a.clone()) };
        let mut ins: Vec<In> = kept.iter().flatten().enumerate().map(slot).collect();
        ins.extend((kept[k].len()..branch.rest.n_ins()).map(In::Old));
        rest.push(branch.rest.rewire(&ins, None));
    }
    let arrange: Arrange = Box::new(|x, kept| cat(&[&x[..1], kept, &x[1..]]));
    let ins_unk = unk.to_vec();
    Ok(Some(CutOp {
        known: Cond { branches: known }.into(),
        ins_unk,
        rest: Cond { branches: rest }.into(),
        out_unk,
        arrange,
    }))
}
