//! The equations on parts: which axes cut each factor of an equation, its operands brought to that, the same primitive on the parts, and
//! what its folded factors leave to be folded among the devices.
//!
//! INVARIANT: a value is brought to another spec when it is read with that spec, and once: each variable keeps its versions.
mod rows;
mod uneven;

use super::flow::{Bodies, Flow, Manual, Way, join, project, typed, unstacked};
use super::{Gathered, late::late, uneven as may};
use crate::trace::Trace;
use ferrax_ir::cx::{Cx, Line, line};
use ferrax_ir::factors::{DimFactors, Factors, Tie};
use ferrax_ir::layout::{AxisSet, CutAxes, Grid, Spec};
use ferrax_ir::op::Avals;
use ferrax_ir::ops::reduce::Monoid;
use ferrax_ir::parts::Here;
use ferrax_ir::program::{Atom, Eqn};
use ferrax_ir::value::Values;
use ferrax_ir::{Aval, Dtype, Op, Program, Res, Value};
use std::cell::RefCell;
use std::collections::HashMap;

/// A program on parts: inputs cut as `ins` say, outputs as `outs` do, or as they come. What is gathered is added to `gathered`.
pub fn emit(
    flow: &Flow,
    grid: &Grid,
    ins: &[Spec],
    outs: &[Option<Spec>],
    gathered: &RefCell<Vec<Gathered>>,
) -> Res<(Program, Vec<Spec>)> {
    let s = Trace::stage();
    let p = &flow.program;
    let here = Here::new(&*s, grid);
    let made = p.in_avals().iter().zip(ins).map(|(a, spec)| vec![(spec.clone(), s.new_in(spec.shard(grid, a)))]);
    let mut env: Vec<Versions> = made.collect();
    env.resize(p.avals().len(), vec![]);
    let (readers, wanted) = (rows::readers(flow), rows::as_made(flow, grid));
    let mut e = Emitter { flow, grid, here, env, late: late(flow), readers, wanted, waiting: HashMap::new(), gathered };
    let at = Line::kept();
    for (i, line) in p.lines().iter().enumerate().take(p.eqns().len()) {
        at.set(*line);
        e.equation(i).map_err(|e| at.blame(e))?;
    }
    let (mut values, mut specs) = (vec![], vec![]);
    for (i, (a, wanted)) in p.outs().iter().zip(outs).enumerate() {
        let spec = wanted.clone().unwrap_or_else(|| flow.out_spec(i, grid));
        values.push(e.version(a, &spec)?.0);
        specs.push(spec);
    }
    let program = s.close(&values)?.0;
    Ok((program, specs))
}

type Versions = Vec<(Spec, Value)>;
struct Emitter<'a> {
    flow: &'a Flow,
    grid: &'a Grid,
    here: Here<'a>,
    /// The versions of each variable, the one it was made as first; none where its equation waits until it is read.
    env: Vec<Versions>,
    /// The variables that stay terms of a sum that is not taken.
    late: Vec<bool>,
    readers: Vec<rows::Readers>,
    /// How each variable is to be made.
    wanted: Vec<Spec>,
    /// Variables that are made when they are read otherwise than for the rows that they have of others.
    waiting: HashMap<usize, rows::Taken>,
    gathered: &'a RefCell<Vec<Gathered>>,
}

/// The results of an equation: their first variable, how they are best cut, and the axes along which they stay terms of sums.
struct Results<'a> {
    first: usize,
    wanted: &'a [Spec],
    asked: AxisSet,
}

impl Emitter<'_> {
    fn cx(&self) -> &dyn Cx {
        self.here.cx
    }
    /// What an equation reads.
    fn read(&mut self, a: &Atom, spec: &Spec) -> Res<Value> {
        let (value, gathered) = self.version(a, spec)?;
        if gathered {
            let aval = self.flow.program.atom_aval(a);
            self.gathered.borrow_mut().push(Gathered { aval, line: line() });
        }
        Ok(value)
    }
    /// A value cut so, and whether it was gathered whole for that.
    fn version(&mut self, a: &Atom, spec: &Spec) -> Res<(Value, bool)> {
        let v = match a {
            Atom::Lit(l) if spec.unreduced.is_empty() => return Ok((Value::Lit(*l), false)),
            Atom::Lit(l) => return Ok((self.here.on_first(&Value::Lit(*l), &spec.unreduced.axes())?, false)),
            Atom::Var(v) => *v as usize,
        };
        self.made(a)?;
        let known = &self.env[v];
        // what is whole is only cut
        let source = known.iter().find(|k| k.0 == *spec).or_else(|| known.iter().find(|k| k.0.is_whole()));
        let (from, value) = source.unwrap_or(&known[0]).clone();
        if from == *spec {
            return Ok((value, false));
        }
        let value = self.brought(&value, &self.flow.program.avals()[v].shape, &from, spec)?;
        self.env[v].push((spec.clone(), value.clone()));
        Ok((value, spec.is_whole() && from.dims.iter().any(|d| self.grid.parts(d) > 1)))
    }
    /// How a variable was made; a literal is whole.
    fn made(&mut self, a: &Atom) -> Res<Spec> {
        let Atom::Var(v) = a else { return Ok(Spec::whole(0)) };
        if self.env[*v as usize].is_empty() {
            let (i, first) = self.flow.made_by(*v as usize);
            self.emitted(i, first)?;
        }
        Ok(self.env[*v as usize][0].0.clone())
    }
    fn wholes(&mut self, args: &[Atom]) -> Res<Values> {
        args.iter().map(|a| self.read(a, &Spec::whole(self.flow.program.atom_aval(a).rank()))).collect()
    }
    fn equation(&mut self, i: usize) -> Res<()> {
        let first = self.flow.firsts[i];
        if self.waits(i, first) { Ok(()) } else { self.emitted(i, first) }
    }
    fn emitted(&mut self, i: usize, first: usize) -> Res<()> {
        let (flow, e) = (self.flow, &self.flow.program.eqns()[i]);
        let wanted = self.wanted[first..first + e.n_out as usize].to_vec();
        let made = match &flow.eqns[i] {
            Way::Factors(f) if f.wanted.is_some() => vec![(wanted[0].clone(), self.version(&e.args[0], &wanted[0])?.0)],
            Way::Factors(f) if f.once && self.grid.size() > 1 => self.once(e)?,
            Way::Factors(f) => match self.moved(e, f, &wanted)? {
                Some(versions) => versions,
                None => self.on_parts(e, f, first, &wanted)?,
            },
            Way::Bodies(b) => self.with_bodies(e, b, first)?,
            Way::Manual(m) => self.manual(e, m)?,
        };
        made.into_iter().enumerate().for_each(|(k, version)| self.env[first + k].push(version));
        Ok(())
    }
    fn on_parts(&mut self, e: &Eqn, f: &Factors, first: usize, wanted: &[Spec]) -> Res<Versions> {
        let p = &self.flow.program;
        let avals: Avals = e.args.iter().map(|a| p.atom_aval(a)).collect();
        let outs = &p.avals()[first..first + e.n_out as usize];
        let made: Vec<Spec> = e.args.iter().map(|a| self.made(a)).collect::<Res<_>>()?;
        // the result of an operation on terms has terms, where its type says so or its readers want them
        let all = |specs: &[Spec]| specs.iter().fold(AxisSet::NONE, |all, s| all | s.unreduced);
        let kind = e.op.rules().sums();
        let linear = (0..avals.len()).any(|i| !kind.term(i, AxisSet::NONE, all(wanted)).is_empty());
        let typed = outs.iter().fold(AxisSet::NONE, |all, a| all | typed(a, self.grid).unreduced);
        let asked = if linear { all(wanted) | typed } else { typed };
        let terms = (asked | self.left(e, &made)) & all(&made);
        let mut chosen = choose(f, (&avals, &made), (outs, wanted), terms, self.grid);
        may::leave(f, (&avals, outs), &self.flow.uneven[first..first + outs.len()], &mut chosen, self.grid);
        let cut = |dims: &[DimFactors]| Spec::new(dims.iter().map(|ids| join(ids, &chosen, f, self.grid)));
        let of_terms = |i: usize| cut(&f.ins[i]).summed(kind.term(i, made[i].unreduced, terms), AxisSet::NONE);
        let mut ins: Vec<Spec> = (0..f.ins.len()).map(of_terms).collect();
        let mut natural: Vec<Spec> = f.outs.iter().map(|d| cut(d).summed(terms, AxisSet::NONE)).collect();
        let results = Results { first, wanted, asked };
        if !f.indexed.is_empty()
            && let Some(version) = self.indexed(e, f, (&made[0], &ins), &chosen, (outs, &natural))?
        {
            return Ok(vec![version]);
        }
        if let Some((natural, y)) = self.shared(e, f, &chosen, (&made, &ins), (wanted, &natural))? {
            return self.versions(&folded(f, &chosen), y.into_iter().zip(natural), &results);
        }
        let halos = self.halos(f, &chosen, (&avals, &made, &mut ins), (outs, wanted, &mut natural));
        self.turned(e, f, &mut chosen, (&made, &mut ins), (outs, wanted, &mut natural));
        let mut x: Values = e.args.iter().zip(&ins).map(|(a, s)| self.read(a, s)).collect::<Res<_>>()?;
        let op = self.with_halos(&e.op, &halos, &mut x)?;
        self.masked(f, &chosen, &mut x)?;
        let sum = outs.first().map_or(Monoid::Sum, |a| Monoid::of_sum(a.dtype));
        let sums = halos.iter().map(|h| (sum, h.folds())).filter(|(_, axes)| !axes.is_empty());
        let folds: Vec<(Monoid, CutAxes)> = folded(f, &chosen).into_iter().chain(sums).collect();
        let axes: Vec<u8> = folds.iter().flat_map(|(_, axes)| axes.iter().copied()).collect();
        for i in f.start.iter().filter(|_| !axes.is_empty()) {
            x[*i] = self.here.on_first(&x[*i], &axes)?;
        }
        let rounds = folds.iter().any(|(m, _)| matches!(m, Monoid::Sum | Monoid::Prod));
        let y: Values = match outs {
            [out] if rounds && out.dtype.is_narrow_float() => vec![self.unrounded(&op, &x)?].into(),
            _ => {
                let parts: Avals = natural.iter().zip(outs).map(|(s, a)| s.shard(self.grid, a)).collect();
                let local: Avals = x.iter().map(Value::aval).collect();
                let op = op.rules().local(&local, &parts).unwrap_or(op);
                self.cx().bind(&op, &x)?
            }
        };
        self.versions(&folds, y.into_iter().zip(natural), &results)
    }
    /// What the devices have of results, with the folds among them and the sums taken that are not to be left.
    fn versions(
        &self,
        folds: &[(Monoid, CutAxes)],
        made: impl Iterator<Item = (Value, Spec)>,
        results: &Results,
    ) -> Res<Versions> {
        let mut versions = vec![];
        for (k, ((mut y, mut spec), wanted)) in made.zip(results.wanted).enumerate() {
            let v = results.first + k;
            let left = if self.late[v] { all_axes(self.grid) } else { wanted.unreduced };
            let taken = spec.unreduced.without(results.asked | left);
            spec.unreduced = spec.unreduced.without(taken);
            for (monoid, axes) in std::iter::once(&(Monoid::Sum, taken.axes())).chain(folds) {
                if !axes.is_empty() {
                    (y, spec) = self.fold(y, spec, *monoid, axes, wanted, left)?;
                }
            }
            versions.push((spec, self.cx().convert(&y, self.flow.program.avals()[v].dtype)?));
        }
        Ok(versions)
    }
    /// A device's term or factor of a result of less than 32 bits, in 32: one device rounds the result, and not the parts of it.
    fn unrounded(&self, op: &Op, x: &Values) -> Res<Value> {
        let wide = Dtype::F32;
        if let Some(op) = op.rules().wider(wide) {
            return self.cx().bind1(op, x);
        }
        let widened = |v: &Value| if v.dtype().is_narrow_float() { self.cx().convert(v, wide) } else { Ok(v.clone()) };
        let x = x.iter().map(widened).collect::<Res<Values>>()?;
        self.cx().bind1(op.clone(), &x)
    }
    /// The axes along which all operands that an equation is linear in are terms of sums that were left for it.
    fn left(&self, e: &Eqn, made: &[Spec]) -> AxisSet {
        let late = |a: &Atom| matches!(a, Atom::Var(v) if self.late[*v as usize]);
        let terms = e.args.iter().zip(made).filter(|(a, _)| late(a)).map(|(_, s)| s.unreduced);
        terms.reduce(|a, b| a & b).unwrap_or(AxisSet::NONE)
    }
    /// The fold of what the devices along `axes` have, on all of them; each gets only its part, if that is requested. Sums along the axes of `left` are not taken.
    fn fold(
        &self,
        y: Value,
        mut spec: Spec,
        monoid: Monoid,
        axes: &[u8],
        wanted: &Spec,
        left: AxisSet,
    ) -> Res<(Value, Spec)> {
        let left = if monoid == Monoid::Sum { left } else { AxisSet::NONE };
        spec.unreduced = spec.unreduced | (left & AxisSet::of(axes.iter().copied()));
        let axes: CutAxes = axes.iter().copied().filter(|a| !left.contains(*a)).collect();
        if axes.is_empty() {
            return Ok((y, spec));
        }
        let axes = &axes[..];
        let ends_so = |d: &usize| {
            let to = &wanted.dims[*d];
            to.starts_with(&spec.dims[*d]) && to[spec.dims[*d].len()..] == *axes
        };
        let part = (0..spec.dims.len()).find(|d| ends_so(d) && y.shape()[*d].is_multiple_of(self.grid.parts(axes)));
        if let (Some(d), Monoid::Sum) = (part, monoid) {
            spec.dims[d].extend_from_slice(axes);
            return Ok((self.here.sum_parts(&y, axes, d)?, spec));
        }
        Ok((self.here.fold(&y, monoid, axes)?, spec))
    }
    /// Equations that call the host: the first device calls, and the others get its results.
    fn once(&mut self, e: &Eqn) -> Res<Versions> {
        let x = self.wholes(&e.args)?;
        let y = self.here.once(&e.op, &x)?;
        Ok(y.into_iter().map(|v| (Spec::whole(v.rank()), v)).collect())
    }
    /// A body for parts: operands are partitioned as it requires, and its equations are emitted here.
    fn manual(&mut self, e: &Eqn, m: &Manual) -> Res<Versions> {
        let (ins, around): (Vec<Spec>, Vec<Spec>) = m.ins().into_iter().unzip();
        let x: Values = e.args.iter().zip(&around).map(|(a, s)| Ok(self.version(a, s)?.0)).collect::<Res<_>>()?;
        let (body, outs) = emit(&m.body, &m.grid, &ins, &vec![None; m.outs.len()], self.gathered)?;
        let y = self.cx().inline(&body, &x)?;
        let made = y.into_iter().zip(m.outs.iter().zip(&outs));
        Ok(made.map(|(v, (own, inside))| (m.around(own, inside), v)).collect())
    }
    /// An op with bodies: they are partitioned, for operands and results cut as the flow found.
    fn with_bodies(&mut self, e: &Eqn, b: &Bodies, first: usize) -> Res<Versions> {
        let x: Values = e.args.iter().zip(&b.ins).map(|(a, s)| self.read(a, s)).collect::<Res<_>>()?;
        let mut outs = b.outs.clone();
        for (aval, spec) in self.flow.program.avals()[first..].iter().zip(&mut outs) {
            if aval.tape > 0 {
                *spec = Spec::whole(aval.rank());
            }
        }
        for (result, operand) in b.ties.bodies.iter().flat_map(|t| &t.carried) {
            outs[*result] = b.ins[*operand].clone();
        }
        let mut programs = vec![];
        for (ties, body) in b.ties.bodies.iter().zip(&b.bodies) {
            let of = |tie: &Tie, specs: &[Spec], avals: &[Aval], rank: usize| match tie {
                Tie::Same(i) => specs[*i].clone(),
                Tie::Element(i) if avals[*i].tape > 0 => Spec::whole(rank),
                Tie::Element(i) => unstacked(&specs[*i]),
                Tie::Whole => Spec::whole(rank),
            };
            let args: Vec<Aval> = e.args.iter().map(|a| self.flow.program.atom_aval(a)).collect();
            let results = &self.flow.program.avals()[first..];
            let ins: Vec<Spec> =
                ties.ins.iter().zip(body.program.in_avals()).map(|(t, a)| of(t, &b.ins, &args, a.rank())).collect();
            let wanted: Vec<Option<Spec>> = ties
                .outs
                .iter()
                .zip(body.program.out_avals())
                .map(|(t, a)| Some(of(t, &outs, results, a.rank())))
                .collect();
            programs.push(std::sync::Arc::new(emit(body, self.grid, &ins, &wanted, self.gathered)?.0));
        }
        let op: Op = e.op.body().and_then(|o| o.with_bodies(programs)).unwrap_or_else(|| e.op.clone());
        let y = self.cx().bind(&op, &x)?;
        Ok(y.into_iter().zip(outs).map(|(v, s)| (s, v)).collect())
    }
}

/// The folds among devices that factors leave.
fn folded(f: &Factors, chosen: &[CutAxes]) -> Vec<(Monoid, CutAxes)> {
    let folds = f.factors.iter().zip(chosen).filter_map(|(f, axes)| Some((f.fold?, axes.clone())));
    folds.filter(|(_, axes)| !axes.is_empty()).collect()
}
fn all_axes(grid: &Grid) -> AxisSet {
    AxisSet::of(0..grid.axes.len() as u8)
}

/// The axes that cut each factor: those that cut most bytes already, so that least is moved; among equals, a factor that results have. An
/// axis cuts one factor.
fn choose(
    f: &Factors,
    (ins, made): (&[Aval], &[Spec]),
    (outs, wanted): (&[Aval], &[Spec]),
    terms: AxisSet,
    grid: &Grid,
) -> Vec<CutAxes> {
    let mut votes: Vec<(u8, CutAxes, usize)> = vec![];
    let results = outs.iter().zip(wanted).zip(&f.outs);
    let operands = ins.iter().zip(made).zip(&f.ins);
    for ((a, spec), dims) in results.chain(operands) {
        let bytes = a.shape.size().saturating_mul(a.dtype.size());
        for ((cut, ids), n) in spec.dims.iter().zip(dims).zip(a.shape.iter()) {
            for (id, part) in project(cut, ids, *n, f, grid).into_iter().filter(|p| !f.factors[p.0 as usize].whole) {
                match votes.iter_mut().find(|v| v.0 == id && v.1 == part) {
                    Some(v) => v.2 = v.2.saturating_add(bytes),
                    None => votes.push((id, part, bytes)),
                }
            }
        }
    }
    votes.sort_by_key(|(id, _, bytes)| (std::cmp::Reverse(*bytes), f.factors[*id as usize].fold.is_some()));
    let mut chosen = vec![CutAxes::new(); f.factors.len()];
    let mut used: Vec<u8> = terms.axes().to_vec();
    for (id, part, _) in votes {
        let mine = &mut chosen[id as usize];
        if mine.is_empty() {
            mine.extend(part.into_iter().take_while(|a| !used.contains(a)));
            used.extend_from_slice(mine);
        }
    }
    // a finer factor of a dimension is cut only where all coarser ones are, entirely
    for ids in f.ins.iter().chain(&f.outs).flatten() {
        let mut full = true;
        for id in ids {
            if !full {
                chosen[*id as usize].clear();
            }
            full &= grid.parts(&chosen[*id as usize]) == f.factors[*id as usize].size;
        }
    }
    chosen
}
