//! Which dimensions may be cut though they are no multiple of the parts: those of rows that move (`x[1:]`), and of what is computed of them element
//! by element. The parts are as large as the first, and the last of them end with rows of no meaning.
//!
//! ```text
//! x[1:] - x[:-1] of x:f32[64] in 8 parts      both of 63 rows, in parts of 8: a row of the next device for the first, nothing for the second
//! ```
//!
//! INVARIANT: of inputs, outputs and what bodies take no dimension may: they are cut evenly.
use ferrax_ir::Aval;
use ferrax_ir::factors::{DimFactors, Factors, Moved};
use ferrax_ir::layout::{CutAxes, Grid, Spec};
use ferrax_ir::ops::reduce::Monoid;
use ferrax_ir::program::Atom;
use smallvec::{SmallVec, smallvec};

/// Of each dimension of a variable, whether it may.
pub type May = SmallVec<[bool; 4]>;

/// Of each result of an equation, where variables before it may so.
pub fn results(args: &[Atom], f: &Factors, (ins, out): (&[Aval], &[Aval]), before: &[May]) -> Vec<May> {
    let goes_on = |id: u8| {
        let factor = &f.factors[id as usize];
        let may = |a: &Atom, d: usize| matches!(a, Atom::Var(v) if before[*v as usize][d]);
        let has = |(a, dims): (&Atom, &SmallVec<[DimFactors; 4]>)| {
            dims.iter().enumerate().any(|(d, ids)| ids.contains(&id) && may(a, d))
        };
        !factor.whole
            && factor.fold.is_none()
            && args.iter().zip(&f.ins).any(has)
            && is_alone(f, id, (ins, out))
            && takes_any(f)
    };
    let of = |(k, a): (usize, &Aval)| -> May {
        if a.dtype.is_key() || a.tape > 0 {
            return smallvec![false; a.rank()];
        }
        let is = |d| f.moved.iter().any(|m| takes_most(m, k, d)) || f.outs[k][d].iter().any(|id| goes_on(*id));
        (0..a.rank()).map(is).collect()
    };
    out.iter().enumerate().map(of).collect()
}
/// Whether these are the rows of dimension `d` of result `k`, and enough that devices should not send them to all.
fn takes_most(m: &Moved, k: usize, d: usize) -> bool {
    (m.result, m.dim) == (k, d) && m.sizes.iter().all(|n| *n <= m.size.saturating_mul(4))
}
/// Whether elements without meaning do no harm.
fn takes_any(f: &Factors) -> bool {
    !f.addresses && f.batch.is_none() && !f.once
}
/// Whether a factor is all of each dimension that has it.
fn is_alone(f: &Factors, id: u8, (ins, outs): (&[Aval], &[Aval])) -> bool {
    let size = f.factors[id as usize].size;
    let mut all = f.ins.iter().zip(ins).chain(f.outs.iter().zip(outs));
    all.all(|(dims, a)| {
        dims.iter().zip(a.shape.iter()).all(|(ids, n)| !ids.contains(&id) || ids.len() == 1 && *n == size)
    })
}
/// Whether all parts are equal.
pub fn is_even(size: usize, cut: &[u8], grid: &Grid) -> bool {
    size.is_multiple_of(grid.parts(cut))
}
/// Whether each of so many parts has a row.
pub fn fills(size: usize, parts: usize) -> bool {
    (parts - 1) * size.div_ceil(parts) < size
}
/// Cut as this, as far as parts are equal.
pub fn even(spec: &Spec, shape: &[usize], grid: &Grid) -> Spec {
    let mut spec = spec.clone();
    for (cut, n) in spec.dims.iter_mut().zip(shape) {
        while !is_even(*n, cut, grid) {
            cut.pop();
        }
    }
    spec
}
/// Leaves only cuts of factors in equal parts, or in parts with rows of no meaning that no other row depends on.
pub fn leave(f: &Factors, (ins, outs): (&[Aval], &[Aval]), may: &[May], chosen: &mut [CutAxes], grid: &Grid) {
    for (id, cut) in chosen.iter_mut().enumerate() {
        let factor = &f.factors[id];
        let has = move |ids: &[u8]| ids.contains(&(id as u8));
        let read = || f.ins.iter().zip(ins).filter(move |(dims, _)| dims.iter().any(|ids| has(ids)));
        let results =
            || f.outs.iter().zip(may).flat_map(|(dims, may)| dims.iter().zip(may)).filter(move |(ids, _)| has(ids));
        let folds = match factor.fold {
            None | Some(Monoid::Sum | Monoid::Or) => true,
            // an identity, of numbers that are in order
            Some(_) => read().count() == 1 && read().all(|(_, a)| !a.dtype.is_complex()),
        };
        let apt = || {
            folds
                && takes_any(f)
                && is_alone(f, id as u8, (ins, outs))
                && read().next().is_some()
                && results().all(|(_, may)| *may)
        };
        let keys = || ins.iter().chain(outs).any(|a| a.dtype.is_key() || a.tape > 0);
        if !factor.whole && !is_even(factor.size, cut, grid) && (keys() || !apt()) {
            cut.clear();
        }
    }
}
