//! Equations that read or write rows of a dimension that is cut and that is not one of their factors: by index, or by moves from part to
//! part.
//!
//! INVARIANT: an equation that only moves rows waits for its readers: those that move rows too take them from its operands (`roll` is a
//! concatenation of two slices). Others make it, as it would have been; they can only be where it cannot be cut (`x[1:]`).
use super::{Emitter, Versions};
use crate::partition::flow::{Flow, Way};
use ferrax_ir::factors::{Factors, Indexed, Moved, Run, Running, Windowed};
use ferrax_ir::layout::{AxisSet, CutAxes, Spec};
use ferrax_ir::parts::{Here, Source, Target};
use ferrax_ir::program::{Atom, Eqn};
use ferrax_ir::value::{Value, Values};
use ferrax_ir::{Aval, Op, Res};

/// The readers of a variable that has rows of others along one dimension.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Readers {
    /// How many of them move rows of that dimension too.
    moves: usize,
    others: usize,
}
pub fn readers(flow: &Flow) -> Vec<Readers> {
    let mut found = vec![Readers::default(); flow.specs.len()];
    for (e, way) in flow.program.eqns().iter().zip(&flow.eqns) {
        let moved = if let Way::Factors(f) = way { f.moved_dim() } else { None };
        for (i, a) in e.args.iter().enumerate() {
            let Atom::Var(v) = a else { continue };
            let of_dim = |(dim, n)| i < n && flow.moves_of(a).is_some_and(|(_, inner)| inner.dim == dim);
            match moved.is_some_and(of_dim) {
                true => found[*v as usize].moves += 1,
                false => found[*v as usize].others += 1,
            }
        }
    }
    for a in flow.program.outs() {
        if let Atom::Var(v) = a {
            found[*v as usize].others += 1;
        }
    }
    found
}
/// How variables are made: as the flow says, but whole along a dimension to which rows move, if all that read it need it whole. So rows are not
/// moved to be gathered.
pub fn as_made(flow: &Flow) -> Vec<Spec> {
    let p = &flow.program;
    let (mut needs_part, mut read) = (vec![AxisSet::NONE; flow.specs.len()], vec![false; flow.specs.len()]);
    for a in p.outs() {
        if let Atom::Var(v) = a {
            needs_part[*v as usize] = flow.specs[*v as usize].cutting();
        }
    }
    for ((e, way), first) in p.eqns().iter().zip(&flow.eqns).zip(&flow.firsts) {
        for (i, a) in e.args.iter().enumerate() {
            let Atom::Var(v) = a else { continue };
            let (v, spec) = (*v as usize, &flow.specs[*v as usize]);
            read[v] = true;
            for (d, axes) in spec.dims.iter().enumerate().filter(|(_, axes)| !axes.is_empty()) {
                let whole = match way {
                    Way::Factors(f) => needs_whole(f, i, d, &p.avals()[v], &p.avals()[*first..]),
                    _ => false,
                };
                if !whole {
                    needs_part[v] = needs_part[v] | AxisSet::of(axes.iter().copied());
                }
            }
        }
    }
    let mut specs = flow.specs.clone();
    for (way, first) in flow.eqns.iter().zip(&flow.firsts) {
        let Way::Factors(f) = way else { continue };
        let whole = |m: &Moved| {
            let v = first + m.result;
            read[v] && (needs_part[v] & AxisSet::of(specs[v].dims[m.dim].iter().copied())).is_empty()
        };
        if f.moved.iter().all(whole) {
            f.moved.iter().for_each(|m| specs[first + m.result].dims[m.dim] = CutAxes::new());
        }
    }
    specs
}
/// Whether an equation reads dimension `d` of operand `i` whole.
fn needs_whole(f: &Factors, i: usize, d: usize, operand: &Aval, outs: &[Aval]) -> bool {
    let by_parts = f.windows.iter().map(|w| w.dim).chain(f.running.map(|r| r.dim)).any(|by| i == 0 && by == d);
    if f.wanted.is_some() || by_parts || f.moved.iter().any(|m| m.dim == d && i < m.sizes.len()) {
        return false;
    }
    let by_index = |r: &Indexed| {
        i == 0 && r.dim == d && (r.by.writes() || outs[0].shape.size().saturating_mul(4) <= operand.shape.size())
    };
    f.ins[i][d].iter().all(|id| f.factors[*id as usize].whole) && !f.indexed.iter().any(by_index)
}
/// The most runs that are composed of others: each may be a message.
const MAX_RUNS: usize = 16;
/// The sources of the rows of a dimension.
#[derive(Clone, Debug)]
pub struct Taken {
    dim: usize,
    atoms: Vec<Atom>,
    runs: Vec<Run>,
}

impl Emitter<'_> {
    /// Whether an equation is emitted where its result is read, if at all; what its rows are taken from is kept.
    pub(super) fn waits(&mut self, i: usize, first: usize) -> bool {
        let flow = self.flow;
        let Way::Factors(f) = &flow.eqns[i] else { return false };
        let Some((dim, n)) = f.moved_dim() else { return false };
        let e = &flow.program.eqns()[i];
        let is_cut = |a: &Atom| match a {
            Atom::Var(v) => {
                let made = &self.env[*v as usize];
                made.first().is_none_or(|k| !k.0.dims[dim].is_empty() && k.0.unreduced.is_empty())
            }
            Atom::Lit(_) => false,
        };
        let results = first..first + e.n_out as usize;
        let pays = |v: usize| {
            let (r, whole) = (self.readers[v], flow.specs[v].dims[dim].is_empty());
            r.moves > 0 && (whole || r.others == 0)
        };
        if !results.clone().all(pays) || !e.args.iter().take(n).any(is_cut) {
            return false;
        }
        let of = |v: usize| f.moves_of(v - first).next().map(|m| (v, self.taken(&e.args[..n], m)));
        let all: Vec<(usize, Taken)> = results.filter_map(of).collect();
        let waits = all.iter().all(|t| t.1.runs.len() <= MAX_RUNS);
        self.waiting.extend(all.into_iter().filter(|_| waits));
        waits
    }
    /// The results, as they are to be cut, of an equation that only moves rows, some of them of a dimension that is cut.
    pub(super) fn moved(&mut self, e: &Eqn, f: &Factors, wanted: &[Spec]) -> Res<Option<Versions>> {
        if f.moved.is_empty() {
            return Ok(None);
        }
        let of = |(k, to): (usize, &Spec)| {
            let moves: Vec<&Moved> = f.moves_of(k).collect();
            Ok(self.moved_result(e, &moves, to)?.map(|y| (to.clone(), y)))
        };
        wanted.iter().enumerate().map(of).collect()
    }
    fn moved_result(&mut self, e: &Eqn, moves: &[&Moved], to: &Spec) -> Res<Option<Value>> {
        let p = &self.flow.program;
        let operands = &e.args[..moves[0].sizes.len()];
        let movable = |a: &Atom| !p.atom_aval(a).dtype.is_key() && p.atom_aval(a).tape == 0;
        if !to.unreduced.is_empty() || !operands.iter().all(movable) {
            return Ok(None);
        }
        let mut taken = Taken { dim: moves[0].dim, atoms: vec![], runs: moves[0].runs.clone() };
        match moves {
            [m] => taken = self.taken(operands, m),
            _ => taken.atoms = operands.to_vec(),
        }
        // each operand is cut as the result is, where its rows divide evenly
        let mut specs = vec![];
        let mut any = false;
        for a in &taken.atoms {
            let (made, aval) = (self.made(a)?, self.flow.program.atom_aval(a));
            if !made.unreduced.is_empty() {
                return Ok(None);
            }
            let mut spec = to.clone();
            for m in moves {
                if !aval.shape[m.dim].is_multiple_of(self.grid.parts(&to.dims[m.dim])) || aval.shape[m.dim] == 0 {
                    spec.dims[m.dim] = CutAxes::new();
                }
                any |= !spec.dims[m.dim].is_empty() && !made.dims[m.dim].is_empty();
            }
            specs.push(spec);
        }
        if !any {
            return Ok(None);
        }
        let mut x: Vec<Value> = taken.atoms.iter().zip(&specs).map(|(a, s)| self.read(a, s)).collect::<Res<_>>()?;
        // rows that are dropped are dropped before others are sent, and rows that are added are added after
        let mut order = moves.to_vec();
        order.sort_by_key(|m| (m.size > m.sizes[0], !to.dims[m.dim].is_empty()));
        for m in order {
            let parts = |s: &Spec| self.grid.parts(&s.dims[m.dim]);
            let sources: Vec<Source> =
                x.iter().zip(&specs).map(|(v, s)| Source { value: v.clone(), parts: parts(s) }).collect();
            let fill = m.fill.map(|i| self.read(&e.args[i], &Spec::whole(0))).transpose()?;
            let target = Target { dim: m.dim, rows: m.size, axes: &to.dims[m.dim] };
            let runs = if moves.len() == 1 { &taken.runs } else { &m.runs };
            x = vec![self.here.moved(&sources, runs, fill.as_ref(), &target)?];
        }
        Ok(x.pop())
    }
    /// The rows of the operands; of operands that are not made yet, the rows of their sources.
    fn taken(&self, operands: &[Atom], m: &Moved) -> Taken {
        let mut all = Taken { dim: m.dim, atoms: vec![], runs: vec![] };
        for (i, a) in operands.iter().enumerate() {
            let mine = m.runs.iter().filter(|r| r.operand == i);
            match self.waiting_for(a).filter(|below| below.dim == m.dim) {
                Some(below) => {
                    let through = |r| below.runs.iter().filter_map(move |b: &Run| Run::through(r, b));
                    mine.flat_map(through).for_each(|r| all.add(below.atoms[r.operand], r));
                }
                None => mine.for_each(|r| all.add(*a, r.clone())),
            }
        }
        all
    }
    /// The sources of the rows of a variable that is not made yet.
    fn waiting_for(&self, a: &Atom) -> Option<&Taken> {
        let Atom::Var(v) = a else { return None };
        self.waiting.get(&(*v as usize)).filter(|_| self.env[*v as usize].is_empty())
    }
    /// The dimensions of operand 0 that stay cut for an op on windows, and by which axes: where a device needs little more than its part.
    pub(super) fn halos<'f>(
        &self,
        f: &'f Factors,
        chosen: &[CutAxes],
        (avals, made, ins): (&[Aval], &[Spec], &mut [Spec]),
        (outs, wanted, natural): (&[Aval], &[Spec], &mut [Spec]),
    ) -> Vec<(&'f Windowed, CutAxes)> {
        let mut found = vec![];
        for w in &f.windows {
            let (axes, rows, positions) = (&wanted[0].dims[w.result], avals[0].shape[w.dim], outs[0].shape[w.result]);
            let parts = self.grid.parts(axes);
            let used = |a: &u8| ins.iter().chain(&*natural).any(|s| s.uses(*a)) || chosen.iter().any(|c| c.contains(a));
            let even = rows.is_multiple_of(parts) && positions.is_multiple_of(parts);
            let cut = !axes.is_empty() && !made[0].dims[w.dim].is_empty() && ins[0].unreduced.is_empty();
            if cut && even && !axes.iter().any(used) && w.rows(positions / parts) < rows {
                ins[0].dims[w.dim] = axes.clone();
                natural[0].dims[w.result] = axes.clone();
                found.push((w, axes.clone()));
            }
        }
        found
    }
    /// The dimension of a running combination that stays cut, and by which axes.
    pub(super) fn running(
        &self,
        f: &Factors,
        chosen: &[CutAxes],
        (made, ins): (&[Spec], &mut [Spec]),
        (wanted, natural): (&[Spec], &mut [Spec]),
    ) -> Option<(Running, CutAxes)> {
        let r = f.running?;
        let axes = wanted[0].dims[r.dim].clone();
        let used = |a: &u8| ins[0].uses(*a) || natural[0].uses(*a) || chosen.iter().any(|c| c.contains(a));
        if axes.is_empty() || made[0].dims[r.dim] != axes || axes.iter().any(used) {
            return None;
        }
        ins[0].dims[r.dim] = axes.clone();
        natural[0].dims[r.dim] = axes.clone();
        Some((r, axes))
    }
    /// The op on what windows read, and operand 0 with that.
    pub(super) fn with_halos(&self, op: &Op, halos: &[(&Windowed, CutAxes)], x: &mut Values, outs: &[Aval]) -> Res<Op> {
        for (w, axes) in halos {
            x[0] = self.here.with_halo(&x[0], w, outs[0].shape[w.result], axes)?;
        }
        let dims: Vec<usize> = halos.iter().map(|(w, _)| w.dim).collect();
        Ok(op.rules().inside(&dims).filter(|_| !dims.is_empty()).unwrap_or_else(|| op.clone()))
    }
    /// The result where operand 0 is cut along a dimension that is no factor, of which each device can apply the indices to its part.
    pub(super) fn indexed(
        &mut self,
        e: &Eqn,
        f: &Factors,
        (first, ins): (&Spec, &[Spec]),
        chosen: &[CutAxes],
        (outs, natural): (&[Aval], &[Spec]),
    ) -> Res<Option<(Spec, Value)>> {
        let ([out], [natural], [Atom::Var(v), ..]) = (outs, natural, &e.args[..]) else { return Ok(None) };
        let folds = f.factors.iter().zip(chosen).any(|(f, axes)| f.fold.is_some() && !axes.is_empty());
        if !first.unreduced.is_empty() || !natural.unreduced.is_empty() || folds {
            return Ok(None);
        }
        let all = || ins.iter().chain([natural]);
        let is_free = |i: &&Indexed| {
            let axes = &first.dims[i.dim];
            !axes.is_empty() && !axes.iter().any(|a| all().any(|s| s.uses(*a)))
        };
        let found = f.indexed.iter().filter(is_free);
        let Some(i) = found.max_by_key(|i| i.by.writes()) else { return Ok(None) };
        let axes = first.dims[i.dim].clone();
        if !i.by.writes() {
            // an operand that is whole, or not much larger than the part that is read, is read whole
            let bytes = |a: &Aval, s: &Spec| s.shard(self.grid, a).shape.size().saturating_mul(a.dtype.size());
            let whole = bytes(&self.flow.program.avals()[*v as usize], &ins[0]);
            let known = self.env[*v as usize].iter().any(|k| k.0 == ins[0]);
            if known || !Here::takes_of_one(out.dtype) || bytes(out, natural).saturating_mul(4) > whole {
                return Ok(None);
            }
        }
        let (mut own, mut made) = (ins[0].clone(), natural.clone());
        own.dims[i.dim] = axes.clone();
        if i.by.writes() {
            made.dims[i.dim] = axes.clone();
        }
        let specs = std::iter::once(&own).chain(&ins[1..]);
        let x: Values = e.args.iter().zip(specs).map(|(a, s)| self.read(a, s)).collect::<Res<_>>()?;
        let y = self.here.indexed(&e.op, i, &x, &made.shard(self.grid, out), &axes)?;
        Ok(y.map(|y| (made, y)))
    }
}
impl Taken {
    /// More rows, which may continue the last run.
    fn add(&mut self, from: Atom, run: Run) {
        let known = self.atoms.iter().position(|a| *a == from);
        let operand = known.unwrap_or(self.atoms.len());
        if known.is_none() {
            self.atoms.push(from);
        }
        let run = Run { operand, ..run };
        match self.runs.iter_mut().find(|r| r.meets(&run)) {
            Some(r) => r.rows.end = run.rows.end,
            None => self.runs.push(run),
        }
    }
}
