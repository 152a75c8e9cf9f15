//! How the values of a program of whole arrays are partitioned, as comments in Shardy's notation.
//!
//! ```text
//! sdy.sharding_constraint f32[8,2] <@mesh, [{"x"}, {?}]>       cut along x; the second dimension as it comes
//! ```
//!
//! INVARIANT: one line for each value whose partitioning a constraint or its type states, in the order of the equations, those of bodies
//! included.
use ferrax_ir::layout::Grid;
use ferrax_ir::program::Eqn;
use ferrax_ir::{Aval, Program};

/// The lines, without the marks of comments.
pub fn annotations(p: &Program) -> Vec<String> {
    let (mut lines, mut first) = (vec![], p.first_var());
    for e in p.eqns() {
        let outs = &p.avals()[first..first + e.n_out as usize];
        first += outs.len();
        match e.op.bodies() {
            bodies if bodies.is_empty() => lines.extend(outs.iter().filter_map(|a| of_result(p, e, a))),
            bodies => lines.extend(bodies.into_iter().flat_map(|b| annotations(b))),
        }
    }
    lines
}
fn of_result(p: &Program, e: &Eqn, a: &Aval) -> Option<String> {
    let whole = Aval { cut: ferrax_ir::cut::TypedCut::NONE, ..a.clone() };
    if let Some(parted) = a.cut.get() {
        let (grid, closed) = (&parted.mesh.grid, parted.mesh.explicit.iter().all(|e| *e));
        let dims = parted.spec.dims.iter().map(|cut| dim(&names(grid, cut), !closed)).collect::<Vec<_>>();
        let terms = names(grid, &parted.spec.unreduced.axes());
        let terms = if terms.is_empty() { String::new() } else { format!(", unreduced={}", dim(&terms, false)) };
        return Some(format!("sdy.sharding_constraint {whole} <@mesh, [{}]{terms}>", dims.join(", ")));
    }
    let x: Vec<Aval> = e.args.iter().map(|a| p.atom_aval(a)).collect();
    let wanted = e.op.rules().factors(&x, std::slice::from_ref(a)).wanted?;
    let dims = wanted.iter().map(|w| match w {
        None => dim(&[], true),
        Some(names) => dim(&names.0.iter().map(|n| n.to_string()).collect::<Vec<_>>(), false),
    });
    Some(format!("sdy.sharding_constraint {whole} <@mesh, [{}]>", dims.collect::<Vec<_>>().join(", ")))
}
fn names(grid: &Grid, axes: &[u8]) -> Vec<String> {
    axes.iter().map(|a| grid.name(*a).to_string()).collect()
}
/// `{"x", ?}`: the axes that cut a dimension, and whether others may.
fn dim(names: &[String], open: bool) -> String {
    let quoted = names.iter().map(|n| format!("\"{n}\"")).chain(open.then(|| "?".to_string()));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(", "))
}
