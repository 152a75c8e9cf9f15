//! Transposition: a linear program, run backwards over cotangents.
//!
//! INVARIANT: a cotangent is `None` until the first contribution to it; an equation is skipped if none of its outputs has one.
use ferrax_ir::cut::Lenient;
use ferrax_ir::cx::{Arg, Cx, Line, Tan};
use ferrax_ir::op::Tans;
use ferrax_ir::program::Atom;
use ferrax_ir::{Program, Res, Value, Values};
use smallvec::SmallVec;

/// `known[i]` is the value of input i, or `None` if the program is linear in it; only those inputs get
/// cotangents that are `wanted`; `place` gives the line of the transpose of an equation. Returns
/// cotangents per input; where `cx` keeps supports beside them, these are not applied.
pub fn backward(
    cx: &dyn Cx,
    p: &Program,
    known: &[Option<Value>],
    cts: Vec<Tan>,
    wanted: impl Fn(usize) -> bool,
    place: impl Fn(u32) -> u32,
) -> Res<Vec<Tan>> {
    let n_held = p.held().len();
    let mut val: Vec<Option<Value>> = Vec::with_capacity(p.avals().len());
    val.extend(p.held().iter().cloned().map(Some));
    val.extend_from_slice(known);
    val.resize(p.avals().len(), None);
    let mut linear: Vec<bool> = val.iter().map(Option::is_none).collect();
    let value = |val: &[Option<Value>], a: &Atom| match a {
        Atom::Var(v) => val[*v as usize].clone(),
        Atom::Lit(l) => Some(Value::Lit(*l)),
    };
    // whether it depends on an input whose cotangent is requested
    let mut reached = linear.clone();
    for (i, r) in reached[n_held..p.first_var()].iter_mut().enumerate() {
        *r &= wanted(i);
    }
    // forwards: computes values that depend on no linear input
    let mut first = p.first_var();
    let at = Line::kept();
    for (e, line) in p.eqns().iter().zip(p.lines()) {
        let outs = first..first + e.n_out as usize;
        first = outs.end;
        let any = |of: &[bool]| e.args.iter().any(|a| matches!(a, Atom::Var(v) if of[*v as usize]));
        let reaches = any(&reached);
        reached[outs.clone()].fill(reaches);
        if !any(&linear) {
            let x: Values = e.args.iter().filter_map(|a| value(&val, a)).collect();
            at.set(place(*line));
            for (v, y) in outs.zip(cx.bind(&e.op, &x).map_err(|e| at.blame(e))?) {
                linear[v] = false;
                val[v] = Some(y);
            }
        }
    }
    // backwards
    let mut ct: Vec<Tan> = vec![None; p.avals().len()];
    let give = |ct: &mut Vec<Tan>, a: &Atom, t: Tan| -> Res<()> {
        if let Atom::Var(v) = a
            && reached[*v as usize]
            && t.is_some()
        {
            let old = ct[*v as usize].take();
            ct[*v as usize] = cx.add_tan(old, t.map(|t| cx.tangent(t)))?;
        }
        Ok(())
    };
    for (a, t) in p.outs().iter().zip(cts) {
        give(&mut ct, a, t)?;
    }
    for (e, line) in p.eqns().iter().zip(p.lines()).rev() {
        let outs = first - e.n_out as usize..first;
        first = outs.start;
        if ct[outs.clone()].iter().all(Option::is_none) {
            continue;
        }
        let cts: Tans = outs.map(|v| ct[v].take()).collect();
        let vals: SmallVec<[Option<Value>; 2]> = e.args.iter().map(|a| value(&val, a)).collect();
        let args: SmallVec<[Arg; 2]> = e
            .args
            .iter()
            .zip(&vals)
            .map(|(a, v)| v.as_ref().map_or_else(|| Arg::Linear(p.atom_aval(a)), Arg::Known))
            .collect();
        at.set(place(*line));
        let typed = args.iter().any(|a| !a.cut().is_none()) || cts.iter().flatten().any(|t| !t.cut().is_none());
        let _resolved = typed.then(Lenient::enter);
        let back = e.op.rules().transpose(cx, &args, &cts).map_err(|e| at.blame(e))?;
        for (a, mut t) in e.args.iter().zip(back) {
            if typed {
                // a cotangent is partitioned like its primal value
                t = t.map(|t| cx.cut_as(t, p.atom_aval(a).cut.cotangent())).transpose()?;
            }
            give(&mut ct, a, t)?;
        }
    }
    ct.truncate(p.first_var());
    Ok(ct.split_off(n_held))
}
