//! The sums over devices that are taken late: the terms of several are added on each device first, so that one all-reduce suffices for all
//! of them.
//!
//! ```text
//! c = dot a b; d = dot e f; g = add_any c d        a, b, e, f cut along the folded dimension
//! c = dot a b; d = dot e f; h = add_any c d; g = all_reduce h
//! ```
//!
//! INVARIANT: a variable whose sum is left has one reader, which adds it to others of its kind, or moves its elements on the way to such a reader. So no
//! sum is taken twice, and none of more bytes than before.
use super::flow::{Flow, Way};
use ferrax_ir::Aval;
use ferrax_ir::factors::Factors;
use ferrax_ir::layout::AxisSet;
use ferrax_ir::ops::reduce::Monoid;
use ferrax_ir::program::{Atom, Eqn};
use ferrax_ir::typing::Sums;

/// Whether each variable stays terms of a sum if it is made as such.
pub fn late(flow: &Flow) -> Vec<bool> {
    let p = &flow.program;
    let n = p.avals().len();
    let mut readers = vec![0_usize; n];
    for a in p.eqns().iter().flat_map(|e| &e.args).chain(p.outs()) {
        if let Atom::Var(v) = a {
            readers[*v as usize] += 1;
        }
    }
    // those that may be terms, and that have one reader
    let mut open = vec![false; n];
    let mut first = p.first_var();
    for (e, way) in p.eqns().iter().zip(&flow.eqns) {
        let out = first;
        first += e.n_out as usize;
        if let Way::Factors(f) = way {
            // terms of less than 32 bits would be rounded before they are added
            let rounds = p.avals()[out..first].iter().any(|a| a.dtype.is_narrow_float());
            let adds = !rounds && f.factors.iter().any(|f| f.fold == Some(Monoid::Sum));
            let passes = e.n_out == 1 && linear_in(e, f, &open).is_some();
            let single = (out..first).all(|v| readers[v] == 1);
            open[out..first].fill(single && (adds || passes));
        }
    }
    let mut late = vec![false; n];
    for (e, way) in p.eqns().iter().zip(&flow.eqns).rev() {
        first -= e.n_out as usize;
        let Way::Factors(f) = way else { continue };
        let Some(terms) = linear_in(e, f, &open).filter(|_| e.n_out == 1) else { continue };
        let out = &p.avals()[first];
        let fits = |a: &Aval| a.dtype == out.dtype && out.shape.size() <= a.shape.size();
        if terms.len() > 1 || (late[first] && terms.iter().all(|v| fits(&p.avals()[*v]))) {
            terms.into_iter().for_each(|v| late[v] = true);
        }
    }
    late
}
/// The operands that an equation is linear in, all of them together, if each may be a term of a sum.
fn linear_in(e: &Eqn, f: &Factors, open: &[bool]) -> Option<Vec<usize>> {
    if f.once || f.wanted.is_some() {
        return None;
    }
    let some = AxisSet::of([0]);
    let var = |a: &Atom| if let Atom::Var(v) = a { Some(*v as usize).filter(|v| open[*v]) } else { None };
    let kind = e.op.rules().sums();
    let found: Vec<Option<usize>> = match kind {
        // a product is linear in one factor at a time
        Sums::Mul => match e.args.iter().filter_map(var).collect::<Vec<_>>()[..] {
            [v] => vec![Some(v)],
            _ => return None,
        },
        _ => {
            let terms = e.args.iter().enumerate().filter(|(i, _)| !kind.term(*i, AxisSet::NONE, some).is_empty());
            terms.map(|(_, a)| var(a)).collect()
        }
    };
    found.into_iter().collect::<Option<Vec<_>>>().filter(|v| !v.is_empty())
}
