//! Equations that read or write rows of a dimension that is cut and that is not one of their factors: by index, or by moves from part to
//! part.
//!
//! INVARIANT: an equation that only moves rows waits for its readers: those that move rows too take them from its operands (`roll` is a
//! concatenation of two slices). Others make it, as it would have been; they can only be where it cannot be cut (one row).
use super::{Emitter, Versions};
use crate::partition::flow::{Flow, Way};
use crate::partition::uneven::is_even;
use ferrax_ir::factors::{Factors, In, Indexed, Moved, Out, Run, Windowed};
use ferrax_ir::layout::{AxisSet, CutAxes, Grid, Spec};
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
pub fn as_made(flow: &Flow, grid: &Grid) -> Vec<Spec> {
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
                    Way::Factors(f) => needs_whole(f, (i, d), grid.parts(axes), &p.avals()[v], &p.avals()[*first..]),
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
fn needs_whole(f: &Factors, (i, d): (usize, usize), parts: usize, operand: &Aval, outs: &[Aval]) -> bool {
    let by_parts = f.windows.iter().any(|w| i == 0 && w.dim == d) || f.shared.is_some_and(|s| s.dim == d);
    if other(f, i, d, parts).is_some()
        || f.wanted.is_some()
        || by_parts
        || f.moved.iter().any(|m| m.dim == d && i < m.sizes.len())
    {
        return false;
    }
    let by_index = |r: &Indexed| {
        i == 0 && r.dim == d && (r.by.writes() || outs[0].shape.size().saturating_mul(4) <= operand.shape.size())
    };
    f.ins[i][d].iter().all(|id| f.factors[*id as usize].whole) && !f.indexed.iter().any(by_index)
}
/// A factor that can be cut in so many parts in place of dimension `d` of operand `i`, which must be whole.
fn other(f: &Factors, i: usize, d: usize, parts: usize) -> Option<u8> {
    let whole = |id: &u8| f.factors[*id as usize].whole;
    let all = || f.ins.iter().chain(&f.outs).flatten();
    let alone = |id: &u8| all().all(|ids| ids.len() == 1 || !ids.contains(id));
    let apt = |id: &u8| {
        let factor = &f.factors[*id as usize];
        factor.fold.is_none() && !factor.whole && factor.size > 0 && factor.size.is_multiple_of(parts) && alone(id)
    };
    f.ins[i][d].iter().all(whole).then(|| f.ins[i].iter().flatten().copied().find(apt)).flatten()
}
/// The most runs that are composed of others: each may be a message.
const MAX_RUNS: usize = 16;
/// Windows whose rows are cut by these axes, and the number of positions that they are for.
pub struct Halo<'a> {
    windows: &'a Windowed,
    axes: CutAxes,
    positions: usize,
}
impl Halo<'_> {
    /// The axes along which results are terms of sums.
    pub fn folds(&self) -> CutAxes {
        if matches!(self.windows.of, In(..)) { self.axes.clone() } else { CutAxes::new() }
    }
}
/// What the rows of a dimension are taken from.
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
                let even = is_even(aval.shape[m.dim], &to.dims[m.dim], self.grid) || made.dims[m.dim] == to.dims[m.dim];
                if !even || aval.shape[m.dim] == 0 {
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
    /// The dimensions of operand 0 that stay cut for an op on windows: where a device needs little more than its part.
    pub(super) fn halos<'f>(
        &self,
        f: &'f Factors,
        chosen: &[CutAxes],
        (avals, made, ins): (&[Aval], &[Spec], &mut [Spec]),
        (outs, wanted, natural): (&[Aval], &[Spec], &mut [Spec]),
    ) -> Vec<Halo<'f>> {
        let mut found: Vec<Halo> = vec![];
        for w in &f.windows {
            let (axes, positions) = match w.of {
                Out(k, d) => (&wanted[k].dims[d], outs[k].shape[d]),
                In(k, d) => (&made[k].dims[d], avals[k].shape[d]),
            };
            let (rows, parts) = (avals[0].shape[w.dim], self.grid.parts(axes));
            let used = |a: &u8| {
                let folded = found.iter().any(|h| h.axes.contains(a));
                folded || ins.iter().chain(&*natural).any(|s| s.uses(*a)) || chosen.iter().any(|c| c.contains(a))
            };
            let even = rows.is_multiple_of(parts)
                && positions.is_multiple_of(parts)
                && (positions / parts * w.stride).is_multiple_of(w.spread);
            let free = ins[0].dims[w.dim].is_empty() && ins[0].unreduced.is_empty();
            let cut = free && !axes.is_empty() && !made[0].dims[w.dim].is_empty();
            if cut && even && !axes.iter().any(used) && (1..rows).contains(&w.rows(positions / parts)) {
                let axes = axes.clone();
                ins[0].dims[w.dim] = axes.clone();
                match w.of {
                    Out(k, d) => natural[k].dims[d] = axes.clone(),
                    In(k, d) => ins[k].dims[d] = axes.clone(),
                }
                found.push(Halo { windows: w, axes, positions });
            }
        }
        found
    }
    /// The results, and how they are cut, of an op of which the devices share the work along a dimension that is no factor.
    pub(super) fn shared(
        &mut self,
        e: &Eqn,
        f: &Factors,
        chosen: &[CutAxes],
        (made, ins): (&[Spec], &[Spec]),
        (wanted, natural): (&[Spec], &[Spec]),
    ) -> Res<Option<(Vec<Spec>, Values)>> {
        let Some(s) = f.shared else { return Ok(None) };
        let axes = made[0].dims[s.dim].clone();
        let used = |a: &u8| ins.iter().chain(natural).any(|s| s.uses(*a)) || chosen.iter().any(|c| c.contains(a));
        let even = is_even(self.flow.program.atom_aval(&e.args[0]).shape[s.dim], &axes, self.grid);
        let apt = even && if s.cut { wanted[0].dims[s.dim] == axes } else { !self.is_known(&e.args[0], &ins[0]) };
        let instead = || other(f, 0, s.dim, self.grid.parts(&axes)).is_some_and(|id| chosen[id as usize].is_empty());
        if axes.is_empty() || !apt || axes.iter().any(used) || s.last && instead() {
            return Ok(None);
        }
        let (mut ins, mut natural) = (ins.to_vec(), natural.to_vec());
        let results = natural.iter_mut().filter(|_| s.cut);
        ins.iter_mut().chain(results).for_each(|spec| spec.dims[s.dim] = axes.clone());
        let x: Values = e.args.iter().zip(&ins).map(|(a, s)| self.read(a, s)).collect::<Res<_>>()?;
        Ok(e.op.rules().shared(&self.here, &x, &axes)?.map(|y| (natural, y)))
    }
    /// Whether there is a version that is cut so already.
    fn is_known(&self, a: &Atom, spec: &Spec) -> bool {
        matches!(a, Atom::Var(v) if self.env[*v as usize].iter().any(|k| k.0 == *spec))
    }
    /// Operands that must be whole along a dimension that is cut are cut along another one: an exchange moves a part of them, a gather moves all.
    pub(super) fn turned(
        &self,
        e: &Eqn,
        f: &Factors,
        chosen: &mut [CutAxes],
        (made, ins): (&[Spec], &mut [Spec]),
        (outs, wanted, natural): (&[Aval], &[Spec], &mut [Spec]),
    ) {
        let bytes = |a: &Aval| a.shape.size().saturating_mul(a.dtype.size());
        for i in 0..made.len() {
            let aval = self.flow.program.atom_aval(&e.args[i]);
            for (d, axes) in made[i].dims.iter().enumerate() {
                let used =
                    |a: &u8| ins.iter().chain(&*natural).any(|s| s.uses(*a)) || chosen.iter().any(|c| c.contains(a));
                if axes.is_empty() || axes.iter().any(used) || self.is_known(&e.args[i], &ins[i]) {
                    continue;
                }
                let Some(id) = other(f, i, d, self.grid.parts(axes)).filter(|id| chosen[*id as usize].is_empty())
                else {
                    continue;
                };
                // results that are to be whole are gathered then
                let whole = outs.iter().zip(wanted).filter(|(_, w)| !axes.iter().all(|a| w.uses(*a)));
                if whole.map(|(a, _)| bytes(a)).sum::<usize>() > bytes(&aval) {
                    continue;
                }
                chosen[id as usize] = axes.clone();
                let specs = ins.iter_mut().zip(&f.ins).chain(natural.iter_mut().zip(&f.outs));
                for (cut, _) in specs.flat_map(|(s, ids)| s.dims.iter_mut().zip(ids)).filter(|(_, ids)| ids[..] == [id])
                {
                    *cut = axes.clone();
                }
            }
        }
    }
    /// The op on what windows read, and operand 0 with that.
    pub(super) fn with_halos(&self, op: &Op, halos: &[Halo], x: &mut Values) -> Res<Op> {
        let mut padding = vec![];
        for h in halos {
            x[0] = self.here.with_halo(&x[0], h.windows, h.positions, &h.axes)?;
            padding.push((h.windows.dim, h.windows.around(h.positions / self.grid.parts(&h.axes))));
        }
        Ok(op.rules().around(&padding).filter(|_| !padding.is_empty()).unwrap_or_else(|| op.clone()))
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
            let even = is_even(self.flow.program.avals()[*v as usize].shape[i.dim], axes, self.grid);
            even && !axes.is_empty() && !axes.iter().any(|a| all().any(|s| s.uses(*a)))
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
