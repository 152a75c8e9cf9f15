//! Removal of unused values.
use crate::nest::{Nest, NestOp, NestTrip, NestValue, Stmt};

pub fn prune(nest: &mut Nest) {
    let mut live = vec![false; nest.defs.len()];
    let mut work: Vec<NestValue> = nest.outs.clone();
    // for each carry: slot, value after the loop, and the values that it depends on
    let mut carried = vec![None; nest.defs.len()];
    roots(&nest.body, &mut work, &mut carried);
    while let Some(v) = work.pop() {
        if std::mem::replace(&mut live[v as usize], true) {
            continue;
        }
        work.extend_from_slice(nest.defs[v as usize].args());
        if let Some(of) = carried[v as usize] {
            work.extend::<[NestValue; 3]>(of);
        }
    }
    keep(&mut nest.body, &live, &nest.defs.iter().map(|d| matches!(d.op, NestOp::Const(_))).collect::<Vec<_>>());
}
fn roots(body: &[Stmt], work: &mut Vec<NestValue>, carried: &mut [Option<[NestValue; 3]>]) {
    for s in body {
        match s {
            Stmt::Let(_) | Stmt::CallRow(_) => (),
            Stmt::Store { index, value, .. } => work.extend([*index, *value]),
            Stmt::ExitUnless(p) => work.push(*p),
            Stmt::Loop(l) => {
                if let NestTrip::Dyn(n) = l.trip {
                    work.push(n);
                }
                for c in &l.carries {
                    carried[c.slot as usize] = Some([c.init, c.next, c.slot]);
                    carried[c.after as usize] = Some([c.init, c.next, c.slot]);
                }
                roots(&l.body, work, carried);
            }
        }
    }
}
fn keep(body: &mut Vec<Stmt>, live: &[bool], constant: &[bool]) {
    body.retain_mut(|s| match s {
        Stmt::Let(v) => live[*v as usize] && !constant[*v as usize],
        Stmt::Loop(l) => {
            l.carries.retain(|c| live[c.slot as usize]);
            keep(&mut l.body, live, constant);
            true
        }
        _ => true,
    });
}
