//! Objects of the host language that programs hold: rules, policies and callbacks refer to them.
//!
//! INVARIANT: an op without its rules computes the same as with them, and holds no objects of the host but callbacks and the parameters of
//! the host's own primitives.
//!
//! ```text
//! scan[jaxpr={ lambda ; c x. c' = custom_jvp_call[call_jaxpr=p, jvp=..] c in (c', x) }]
//!     without rules: scan[jaxpr={ lambda ; c x. c' = jit[jaxpr=p] c in (c', x) }]
//! ```
use crate::cx::{Fun, Held};
use crate::error::Res;
use crate::op::Op;
use crate::ops::call::Call;
use crate::param::{Param, ParamMap};
use crate::program::{Eqn, Program};
use smallvec::smallvec;
use std::any::Any;
use std::sync::Arc;

/// The objects that the program's ops refer to, those of programs inside included.
pub fn objects(p: &Program, each: &mut dyn FnMut(&Held)) {
    p.eqns().iter().for_each(|e| objects_of(&e.op, each));
}
/// The objects that an op refers to.
pub fn objects_of(op: &Op, each: &mut dyn FnMut(&Held)) {
    for f in op.functions() {
        match f {
            Fun::Prog(p) => objects(p, each),
            Fun::User(f) => f.held.iter().for_each(&mut *each),
        }
    }
    match op {
        Op::Callback(c) => c.callback.host.iter().for_each(each),
        Op::Foreign(f) if !f.definition.plain(&f.opaque) => each(&f.opaque),
        op => {
            if let Op::Remat(r) = op {
                r.policy.iter().filter_map(|p| p.host()).for_each(&mut *each);
            }
            if op.functions().is_empty() {
                op.bodies().iter().for_each(|b| objects(b, each));
            }
        }
    }
}
/// The op as it is evaluated: without rules for derivatives and policies in its bodies. None where it has none.
pub fn without_rules(op: &Op) -> Res<Option<Op>> {
    if op.bodies().iter().all(|b| bare(b).is_ok_and(|b| b.is_none()))
        && !matches!(op, Op::Remat(r) if r.policy.is_some())
    {
        return Ok(None);
    }
    let mut params = ParamMap::default();
    for (k, v, _) in op.params() {
        let v = if matches!(v, Param::Policy(_)) { Param::None } else { bare_param(v)? };
        params.insert(k.into(), v);
    }
    Op::from_name(op.name(), params).map(Some)
}
fn bare_param(p: Param) -> Res<Param> {
    let all = |x: Vec<Param>| x.into_iter().map(bare_param).collect::<Res<Vec<_>>>();
    Ok(match p {
        Param::Prog(p) => Param::Prog(bare(&p)?.unwrap_or(p)),
        Param::Tuple(x) => Param::Tuple(all(x)?),
        Param::List(x) => Param::List(all(x)?),
        Param::Struct(name, x) => {
            Param::Struct(name, x.into_iter().map(|(k, v)| Ok((k, bare_param(v)?))).collect::<Res<_>>()?)
        }
        p => p,
    })
}
/// The program without rules; None where it has none. Made once.
fn bare(p: &Arc<Program>) -> Res<Option<Arc<Program>>> {
    type Kept = Option<Arc<Program>>;
    let key = ("without_rules", 0, None, smallvec![], vec![]);
    let known = |m: &Arc<dyn Any + Send + Sync>| m.downcast_ref::<Kept>().cloned();
    if let Some(found) = p.memo().lock().unwrap_or_else(|e| e.into_inner()).get(&key).and_then(known) {
        return Ok(found);
    }
    let mut changed = false;
    let mut eqns = p.eqns().to_vec();
    for e in &mut eqns {
        if let Some(op) = bare_op(e)? {
            e.op = op;
            changed = true;
        }
    }
    let made = changed.then(|| p.with_eqns(eqns)).map(Arc::new);
    p.memo().lock().unwrap_or_else(|e| e.into_inner()).insert(key, Arc::new(made.clone()));
    Ok(made)
}
fn bare_op(e: &Eqn) -> Res<Option<Op>> {
    let function = match &e.op {
        Op::CustomJvp(c) => &c.call_jaxpr,
        Op::CustomVjp(c) => &c.call_jaxpr,
        op => return without_rules(op),
    };
    let Fun::Prog(p) = function else { return Ok(None) };
    let jaxpr = bare(p)?.unwrap_or_else(|| p.clone());
    Ok(Some(Call { name: function.name().into(), jaxpr, inline: false, keep_unused: false }.into()))
}
