//! The simplifier: calls inlined, equal equations merged, identities applied, dead code dropped.
//!
//! ```text
//! { lambda ; a:f32[3]. let b:f32[3] = jit[jaxpr={ .. sin .. }] a  c:f32[3] = sin a  d:f32[3] = mul c 1.0:f32[] in (b, d) }
//! { lambda ; a:f32[3]. let b:f32[3] = sin a in (b, b) }
//! ```
//!
//! INVARIANT: no bits change. Every identity holds for -0, inf and nan ([`laws`]); equations with effects are neither merged nor moved;
//! values that a checkpoint computes again stay separate, because its body is not inlined.
mod laws;

use crate::aval::Aval;
use crate::op::Op;
use crate::program::{Atom, Eqn, Program};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The same function, simpler. Inputs stay as they are, used or not.
pub fn simplify(p: &Program) -> Arc<Program> {
    simplified(p, Simplifier::default())
}
/// The same function with its calls inlined and its dead code removed, without merging equal
/// equations.
pub fn inline_calls(p: &Program) -> Arc<Program> {
    simplified(p, Simplifier { as_written: true, ..Simplifier::default() })
}
fn simplified(p: &Program, mut s: Simplifier) -> Arc<Program> {
    let ins: Vec<Atom> = p.in_avals().iter().map(|a| s.input(a.clone())).collect();
    let n_ins = ins.len();
    let outs = s.inline(p, ins);
    let Simplifier { avals, eqns, .. } = s;
    match Program::new(0, n_ins, avals, eqns, outs, vec![]) {
        // removes unread equations; inputs stay
        Ok(q) => q.rewire(&(0..n_ins).map(crate::program::In::Old).collect::<Vec<_>>(), None),
        Err(e) => unreachable!("the simplifier keeps definitions in order: {e}"),
    }
}

#[derive(Default)]
struct Simplifier {
    /// Equations are neither merged nor replaced.
    as_written: bool,
    avals: Vec<Aval>,
    eqns: Vec<Eqn>,
    /// The equation that defines each variable, and which of its outputs it is.
    source: Vec<Option<(u32, u32)>>,
    /// A lower bound of the reads of each variable; outputs of a program count as read often.
    reads: Vec<u32>,
    seen: FxHashMap<(Op, SmallVec<[Atom; 2]>), u32>,
}

impl Simplifier {
    fn input(&mut self, a: Aval) -> Atom {
        self.avals.push(a);
        self.source.push(None);
        self.reads.push(0);
        Atom::Var(self.avals.len() as u32 - 1)
    }
    fn inline(&mut self, p: &Program, ins: Vec<Atom>) -> Vec<Atom> {
        let mut env = ins;
        let reads = reads(p);
        for e in p.eqns() {
            let args: SmallVec<[Atom; 2]> = e.args.iter().map(|a| read(&env, a)).collect();
            if let Some(body) = e.op.inlined()
                && body.held().is_empty()
            {
                let outs = self.inline(body, args.into_vec());
                env.extend(outs);
                continue;
            }
            let outs = &p.avals()[env.len()..env.len() + e.n_out as usize];
            let made = self.emit(&e.op, args, outs);
            for (a, n) in made.iter().zip(&reads[env.len()..]) {
                if let Atom::Var(v) = a {
                    self.reads[*v as usize] += n;
                }
            }
            env.extend(made);
        }
        p.outs().iter().map(|a| read(&env, a)).collect()
    }
    fn emit(&mut self, op: &Op, args: SmallVec<[Atom; 2]>, outs: &[Aval]) -> SmallVec<[Atom; 2]> {
        if let [out] = outs
            && !self.as_written
            && let Some(a) = laws::apply(self, op, &args, out)
        {
            return SmallVec::from_slice(&[a]);
        }
        let pure = op.effects() == Default::default() && !self.as_written;
        let key = (op.clone(), args);
        if pure && let Some(first) = self.seen.get(&key) {
            return (*first..*first + outs.len() as u32).map(Atom::Var).collect();
        }
        let first = self.avals.len() as u32;
        let at = self.eqns.len() as u32;
        self.avals.extend_from_slice(outs);
        self.source.extend((0..outs.len() as u32).map(|k| Some((at, k))));
        self.reads.resize(self.avals.len(), 0);
        self.eqns.push(Eqn { op: key.0.clone(), args: key.1.clone(), n_out: outs.len() as u32 });
        if pure {
            self.seen.insert(key, first);
        }
        (first..first + outs.len() as u32).map(Atom::Var).collect()
    }
    /// The equation that made `a`, if it has one output.
    fn maker(&self, a: &Atom) -> Option<&Eqn> {
        let Atom::Var(v) = a else { return None };
        let (e, _) = self.source[*v as usize]?;
        Some(&self.eqns[e as usize]).filter(|e| e.n_out == 1)
    }
    /// The equation that made `a`, if one reader is all that `a` has.
    fn sole_maker(&self, a: &Atom) -> Option<&Eqn> {
        let Atom::Var(v) = a else { return None };
        self.maker(a).filter(|_| self.reads[*v as usize] == 1)
    }
    fn aval(&self, a: &Atom) -> Aval {
        match a {
            Atom::Var(v) => self.avals[*v as usize].clone(),
            Atom::Lit(l) => l.aval(),
        }
    }
}
/// How often each variable of a program is read; those that leave it count twice, because their readers are unknown.
fn reads(p: &Program) -> Vec<u32> {
    let mut n = vec![0; p.avals().len()];
    let once = p.eqns().iter().flat_map(|e| &e.args);
    for a in once.chain(p.outs()).chain(p.outs()) {
        if let Atom::Var(v) = a {
            n[*v as usize] += 1;
        }
    }
    n
}
fn read(env: &[Atom], a: &Atom) -> Atom {
    match a {
        Atom::Var(v) => env[*v as usize],
        Atom::Lit(_) => *a,
    }
}
