//! How each variable of a program is cut: from inputs, wanted outputs and constraints through the factors of the equations, forwards and
//! backwards, until nothing changes. It begins with the specs in types.
//!
//! INVARIANT: a spec only grows (an axis is added to the finer end of a dimension), so the walk ends. Each spec is one that its array can
//! have: axes cut one dimension each, and into equal parts.
use super::expanded;
use super::uneven::{self, May};
use ferrax_ir::effects::Name;
use ferrax_ir::error::value_err;
use ferrax_ir::factors::{DimFactors, Factors, Moved, Tie, Ties};
use ferrax_ir::layout::{AxisSet, CutAxes, Grid, Spec};
use ferrax_ir::ops::collective::Names;
use ferrax_ir::ops::shard_map::{ManualBody, NamedSpec};
use ferrax_ir::program::Atom;
use ferrax_ir::{Aval, Program, Res};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// A program, and how its variables are cut.
pub struct Flow {
    pub program: Arc<Program>,
    pub specs: Vec<Spec>,
    /// The dimensions of variables whose partitioning is fixed.
    fixed: Vec<Fixed>,
    /// Which may be cut in parts that are not equal.
    pub uneven: Vec<May>,
    pub eqns: Vec<Way>,
    /// The first result of each equation.
    pub firsts: Vec<usize>,
}
/// The most variables that one equation's rows are followed to.
const MAX_ORIGINS: usize = 16;
/// Whether each dimension is fixed.
type Fixed = SmallVec<[bool; 4]>;
/// How specs go through an equation.
pub enum Way {
    Factors(Factors),
    Bodies(Bodies),
    Manual(Box<Manual>),
}
/// A body that is written for parts: along the axes that it does not name, the `grid`, it is partitioned as any program.
pub struct Manual {
    pub body: Flow,
    pub grid: Grid,
    /// The numbers of its grid's axes in the enclosing grid.
    axes: CutAxes,
    /// How it cuts operands and results itself.
    ins: Vec<Spec>,
    pub outs: Vec<Spec>,
}
impl Manual {
    /// The spec of a value that is cut as the body states, and further as it is inside.
    pub fn around(&self, own: &Spec, inside: &Spec) -> Spec {
        let further = |cut: &CutAxes| cut.iter().map(|a| self.axes[*a as usize]).collect::<CutAxes>();
        Spec::new(own.dims.iter().zip(&inside.dims).map(|(o, i)| o.iter().copied().chain(further(i)).collect()))
            .summed(own.unreduced, AxisSet::NONE)
    }
    /// How what is cut so around the body is cut inside, as far as that is by axes that it does not name.
    fn within(&self, own: &Spec, around: &Spec) -> Spec {
        let number = |a: &u8| self.axes.iter().position(|b| a == b).map(|i| i as u8);
        let further = |(o, a): (&CutAxes, &CutAxes)| match a.strip_prefix(&o[..]) {
            Some(tail) => tail.iter().map_while(number).collect(),
            None => CutAxes::new(),
        };
        Spec::new(own.dims.iter().zip(&around.dims).map(further))
    }
    fn input(&self, i: usize) -> usize {
        self.body.program.held().len() + i
    }
    /// How the operands are cut inside, and around.
    pub fn ins(&self) -> Vec<(Spec, Spec)> {
        let one = |(i, own)| {
            let inside = self.body.specs[self.input(i)].clone();
            let around = self.around(own, &inside);
            (inside, around)
        };
        self.ins.iter().enumerate().map(one).collect()
    }
}
pub struct Bodies {
    pub ties: Ties,
    pub bodies: Vec<Flow>,
    /// As which the op takes its operands and gives its results.
    pub ins: Vec<Spec>,
    pub outs: Vec<Spec>,
}

/// One of an equation's operands or results.
#[derive(Clone, Copy)]
struct Place<'a> {
    at: Atom,
    dims: &'a [DimFactors],
}

impl Flow {
    pub fn new(program: Arc<Program>, grid: &Grid) -> Res<Flow> {
        let specs: Vec<Spec> = program.avals().iter().map(|a| typed(a, grid)).collect();
        let fixed = program.avals().iter().map(|a| smallvec![a.tape > 0; a.rank()]).collect();
        let uneven = program.avals().iter().map(|a| smallvec![false; a.rank()]).collect();
        let mut flow = Flow { specs, fixed, uneven, eqns: vec![], firsts: vec![], program: program.clone() };
        let mut first = program.first_var();
        for e in program.eqns() {
            let x: Vec<Aval> = e.args.iter().map(|a| program.atom_aval(a)).collect();
            let out = &program.avals()[first..first + e.n_out as usize];
            let ties = e.op.body().and_then(|b| b.ties(&x));
            let manual = e.op.body().and_then(|b| b.manual());
            let way = match ties {
                _ if let Some(m) = manual => flow.manual(first, &m, grid)?,
                Some(ties) => {
                    let body = |b: &Arc<Program>| Flow::new(expanded(b)?, grid);
                    let bodies = e.op.bodies().into_iter().map(body).collect::<Res<Vec<Flow>>>()?;
                    let terms = |a: &Aval| Spec::whole(a.rank()).summed(typed(a, grid).unreduced, AxisSet::NONE);
                    let of = |a: &[Aval]| a.iter().map(terms).collect();
                    Way::Bodies(Bodies { ties, bodies, ins: of(&x), outs: of(out) })
                }
                None if e.op.has_io() => Way::Factors(Factors::once(&x, out)),
                None => Way::Factors(e.op.rules().factors(&x, out)),
            };
            if let Way::Factors(f) = &way {
                flow.constrain(first, f, grid)?;
                let may = uneven::results(&e.args, f, (&x, out), &flow.uneven);
                may.into_iter().enumerate().for_each(|(k, may)| flow.uneven[first + k] = may);
            }
            flow.eqns.push(way);
            flow.firsts.push(first);
            first += e.n_out as usize;
        }
        flow.leave_terms();
        Ok(flow)
    }
    /// A body for parts: its results are cut as it says.
    fn manual(&mut self, first: usize, m: &ManualBody, grid: &Grid) -> Res<Way> {
        m.check(grid)?;
        // a reduced value is the same everywhere
        let spec = |s: &NamedSpec| Ok(Spec { reduced: AxisSet::NONE, ..ManualBody::spec(s, grid)? });
        let specs = |all: &[NamedSpec]| all.iter().map(spec).collect::<Res<Vec<Spec>>>();
        let (ins, outs) = (specs(m.ins)?, specs(m.outs)?);
        for (i, spec) in outs.iter().enumerate() {
            self.specs[first + i] = spec.clone();
            self.fixed[first + i].fill(true);
        }
        let own = grid.without(&m.axes.0);
        let axes = own.axes.iter().filter_map(|a| grid.find(&a.0)).collect();
        let body = Flow::new(expanded(m.program)?, &own)?;
        Ok(Way::Manual(Box::new(Manual { body, grid: own, axes, ins, outs })))
    }
    /// The result of a constraint: dimensions that it leaves open may be cut. A dimension that does not divide evenly stays whole.
    fn constrain(&mut self, v: usize, f: &Factors, grid: &Grid) -> Res<()> {
        let (Some(wanted), Some(own)) = (&f.wanted, &f.grid) else { return Ok(()) };
        let shape = &self.program.avals()[v].shape;
        let same = |name: &Name| match grid.find(name) {
            // of as many devices: sizes tell whether it is the axis that is meant
            Some(a) if own.size() == grid.size() => {
                own.find(name).is_some_and(|o| own.axis_size(o) == grid.axis_size(a))
            }
            found => found.is_some(),
        };
        let known = wanted.iter().flatten().flat_map(|n| &n.0).all(same);
        let cut = |names: &Names, g: &Grid| names.0.iter().filter_map(|n| g.find(n)).collect::<CutAxes>();
        let mut spec = Spec::whole(shape.len());
        for (d, names) in wanted.iter().enumerate().filter_map(|(d, names)| Some((d, names.as_ref()?))) {
            spec.dims[d] = cut(names, if known { grid } else { own });
        }
        if !known {
            // of another mesh of these devices
            spec = match spec.renamed(own, grid, shape) {
                Some(spec) => spec,
                None => {
                    return value_err(format!(
                        "a sharding constraint over a mesh of axes {:?}, which are not those of {:?}",
                        own.axes, grid.axes
                    ));
                }
            };
        }
        for (d, _) in wanted.iter().enumerate().filter_map(|(d, names)| Some((d, names.as_ref()?))) {
            if shape[d].is_multiple_of(grid.parts(&spec.dims[d])) {
                self.specs[v].dims[d] = spec.dims[d].clone();
            }
        }
        self.fixed[v] = wanted.iter().map(Option::is_some).collect();
        Ok(())
    }
    /// A sum need not be taken if all its readers accept its terms.
    fn leave_terms(&mut self) {
        let program = self.program.clone();
        let mut first = program.avals().len();
        for (e, way) in program.eqns().iter().zip(&self.eqns).rev() {
            first -= e.n_out as usize;
            let wanted = self.specs.get(first).map_or(AxisSet::NONE, |s| s.unreduced);
            let Way::Factors(f) = way else { continue };
            for (i, a) in e.args.iter().enumerate().filter(|_| !wanted.is_empty()) {
                let Atom::Var(v) = *a else { continue };
                let requested =
                    if f.wanted.is_some() { wanted } else { e.op.rules().sums().term(i, AxisSet::NONE, wanted) };
                let uses = |a: &&Atom| matches!(a, Atom::Var(w) if *w == v);
                let read = program.eqns().iter().flat_map(|e| &e.args).chain(program.outs()).filter(uses).count();
                if v as usize >= program.first_var() && read == 1 {
                    let spec = &mut self.specs[v as usize];
                    spec.unreduced = spec.unreduced | requested.without(spec.cutting());
                }
            }
        }
    }
    /// The equation that makes a variable, and its first result.
    pub fn made_by(&self, v: usize) -> (usize, usize) {
        let i = self.firsts.partition_point(|first| *first <= v).saturating_sub(1);
        (i, self.firsts[i])
    }
    /// The operands of which a variable has rows, and which, where its equation does nothing else than to move those of one dimension.
    pub fn moves_of(&self, a: &Atom) -> Option<(&[Atom], &Moved)> {
        let Atom::Var(v) = a else { return None };
        if (*v as usize) < self.program.first_var() {
            return None;
        }
        let (i, first) = self.made_by(*v as usize);
        let Way::Factors(f) = &self.eqns[i] else { return None };
        f.moved_dim()?;
        let m = f.moves_of(*v as usize - first).next().filter(|m| m.fill.is_none())?;
        Some((&self.program.eqns()[i].args, m))
    }
    /// The variables of which operands have rows along a dimension, where they cannot be cut as these are.
    fn moved_from(&self, args: &[Atom], dim: usize, found: &mut Vec<Atom>) {
        for (args, m) in args.iter().filter_map(|a| self.moves_of(a)).filter(|(_, m)| m.dim == dim) {
            for a in &args[..m.sizes.len()] {
                if found.len() < MAX_ORIGINS && !found.contains(a) {
                    found.push(*a);
                    self.moved_from(&[*a], dim, found);
                }
            }
        }
    }
    pub fn fix_inputs(&mut self, ins: &[Spec]) {
        let n_held = self.program.held().len();
        for (i, s) in ins.iter().enumerate() {
            self.specs[n_held + i] = s.clone();
            self.fixed[n_held + i].fill(true);
        }
    }
    /// Specs that outputs should have; their variables take them where they can.
    pub fn ask_outputs(&mut self, outs: &[Option<Spec>], grid: &Grid) {
        let atoms = self.program.outs().to_vec();
        for (a, s) in atoms.iter().zip(outs) {
            let (Atom::Var(v), Some(s)) = (a, s) else { continue };
            if self.fixed[*v as usize].contains(&true) {
                self.merge(*v as usize, s, grid);
            } else {
                self.specs[*v as usize] = s.clone();
            }
        }
    }
    /// The spec of an output that has no wanted one.
    pub fn out_spec(&self, i: usize, grid: &Grid) -> Spec {
        match self.program.outs()[i] {
            Atom::Var(v) => uneven::even(&self.specs[v as usize], &self.program.avals()[v as usize].shape, grid),
            Atom::Lit(_) => Spec::whole(0),
        }
    }
    /// Walks forwards and backwards until nothing changes; whether anything did.
    pub fn settle(&mut self, grid: &Grid) -> bool {
        let (mut ever, n) = (false, self.eqns.len());
        loop {
            let mut changed = false;
            for i in (0..n).chain((0..n).rev()) {
                changed |= self.step(i, self.firsts[i], grid);
            }
            ever |= changed;
            if !changed {
                return ever;
            }
        }
    }
    fn step(&mut self, i: usize, first: usize, grid: &Grid) -> bool {
        let program = self.program.clone();
        let e = &program.eqns()[i];
        let outs: Vec<Atom> = (first..first + e.n_out as usize).map(|v| Atom::Var(v as u32)).collect();
        // taken out while the specs are written
        let mut way = std::mem::replace(&mut self.eqns[i], Way::Factors(Factors::default()));
        let changed = match &mut way {
            Way::Factors(f) => self.through(f, &e.args, &outs, grid),
            Way::Bodies(b) => self.through_bodies(b, &e.args, &outs, grid),
            Way::Manual(m) => self.through_manual(m, &e.args, first, grid),
        };
        self.eqns[i] = way;
        changed
    }
    fn through(&mut self, f: &Factors, args: &[Atom], outs: &[Atom], grid: &Grid) -> bool {
        if f.factors.is_empty() {
            return false;
        }
        let places = args.iter().zip(&f.ins).chain(outs.iter().zip(&f.outs));
        let mut places: Vec<Place> = places.map(|(at, dims)| Place { at: *at, dims }).collect();
        // a source of rows is best cut as the result is
        let mut origins = vec![];
        if let Some((dim, _)) = f.moved_dim() {
            self.moved_from(args, dim, &mut origins);
        }
        let mut along = f.outs.first().cloned().unwrap_or_default();
        along.iter_mut().enumerate().for_each(|(d, ids)| {
            if f.moved.iter().all(|m| m.dim != d) {
                ids.clear();
            }
        });
        places.extend(origins.iter().map(|at| Place { at: *at, dims: &along }));
        // the axes on which all that cut a factor agree, and the operand that cut it first
        let mut axes: Vec<Option<CutAxes>> = vec![None; f.factors.len()];
        let mut order: Vec<u8> = vec![];
        for p in &places {
            let Atom::Var(v) = p.at else { continue };
            let shape = &self.program.avals()[v as usize].shape;
            for ((cut, ids), n) in self.specs[v as usize].dims.iter().zip(p.dims).zip(shape.iter()) {
                for (id, part) in project(cut, ids, *n, f, grid) {
                    let known = &mut axes[id as usize];
                    match known {
                        None => {
                            order.push(id);
                            *known = Some(part);
                        }
                        Some(known) if part.starts_with(known) => *known = part,
                        Some(known) => {
                            let common = known.iter().zip(&part).take_while(|(a, b)| a == b).count();
                            if common < part.len() {
                                known.truncate(common);
                            }
                        }
                    }
                }
            }
        }
        let axes: Vec<CutAxes> = axes.into_iter().map(Option::unwrap_or_default).collect();
        let mut changed = false;
        for p in &places {
            let Atom::Var(v) = p.at else { continue };
            // of two dimensions that an axis might cut, the one whose factor was cut first
            let rank = |ids: &DimFactors| order.iter().position(|id| ids.contains(id));
            let mut dims: Vec<(usize, &DimFactors)> =
                p.dims.iter().enumerate().filter(|(_, ids)| rank(ids).is_some()).collect();
            dims.sort_by_key(|(_, ids)| rank(ids));
            for (d, ids) in dims {
                changed |= self.extend(v as usize, d, join(ids, &axes, f, grid), grid);
            }
        }
        changed
    }
    /// Makes a dimension's cut finer, as far as axes are free and parts are equal.
    fn extend(&mut self, v: usize, d: usize, to: CutAxes, grid: &Grid) -> bool {
        let size = self.program.avals()[v].shape[d];
        !self.fixed[v][d] && grow(&mut self.specs[v], d, &to, (size, self.uneven[v][d]), grid)
    }
    fn merge(&mut self, v: usize, with: &Spec, grid: &Grid) -> bool {
        let mut changed = false;
        for (d, cut) in with.dims.iter().enumerate() {
            changed |= self.extend(v, d, cut.clone(), grid);
        }
        changed
    }
    /// Operands of a body for parts are best cut as it requires; other axes that cut them cut the values inside, and the results, too.
    fn through_manual(&mut self, m: &mut Manual, args: &[Atom], first: usize, grid: &Grid) -> bool {
        let mut changed = false;
        for (i, a) in args.iter().enumerate() {
            let Atom::Var(v) = a else { continue };
            let inside = m.within(&m.ins[i], &self.specs[*v as usize]);
            let at = m.input(i);
            changed |= m.body.merge(at, &inside, &m.grid);
        }
        changed |= m.body.settle(&m.grid);
        for (a, (_, around)) in args.iter().zip(m.ins()) {
            if let Atom::Var(v) = a {
                changed |= self.merge(*v as usize, &around, grid);
            }
        }
        for (i, own) in m.outs.iter().enumerate() {
            let spec = m.around(own, &m.body.out_spec(i, &m.grid));
            changed |= self.specs[first + i] != spec;
            self.specs[first + i] = spec;
        }
        changed
    }
    fn through_bodies(&mut self, b: &mut Bodies, args: &[Atom], outs: &[Atom], grid: &Grid) -> bool {
        let mut changed = false;
        let ends = [(args, &mut b.ins, true), (outs, &mut b.outs, false)];
        for (atoms, specs, ins) in ends {
            for (i, a) in atoms.iter().enumerate() {
                let Atom::Var(v) = a else { continue };
                // one end of the op: a variable here, and those of the bodies
                let aval = self.program.avals()[*v as usize].clone();
                if aval.tape > 0 {
                    continue;
                }
                let ties = b.ties.bodies.iter().zip(&mut b.bodies);
                let mut inner: Vec<(&mut Flow, Atom, bool)> = vec![];
                for (t, body) in ties {
                    let of = if ins { &t.ins } else { &t.outs };
                    let found =
                        of.iter().enumerate().find(|(_, t)| matches!(t, Tie::Same(k) | Tie::Element(k) if *k == i));
                    let Some((at, tie)) = found else { continue };
                    let at = match ins {
                        true => Atom::Var((body.program.held().len() + at) as u32),
                        false => body.program.outs()[at],
                    };
                    inner.push((body, at, matches!(tie, Tie::Element(_))));
                }
                let spec = &mut specs[i];
                changed |= merge_into(spec, &self.specs[*v as usize], &aval, inner.iter().any(|i| i.2), grid);
                for (body, at, element) in &mut inner {
                    let Atom::Var(w) = at else { continue };
                    let own = &body.specs[*w as usize];
                    let own = if *element { stacked(own) } else { own.clone() };
                    changed |= merge_into(spec, &own, &aval, *element, grid);
                }
                for (body, at, element) in &mut inner {
                    let Atom::Var(w) = at else { continue };
                    let own = if *element { unstacked(spec) } else { spec.clone() };
                    changed |= body.merge(*w as usize, &own, grid);
                }
                changed |= self.merge(*v as usize, &specs[i], grid);
            }
        }
        for (result, operand) in b.ties.bodies.iter().flat_map(|t| &t.carried) {
            let aval = self.program.atom_aval(&args[*operand]);
            let (i, o) = (b.ins[*operand].clone(), b.outs[*result].clone());
            changed |= merge_into(&mut b.ins[*operand], &o, &aval, false, grid);
            changed |= merge_into(&mut b.outs[*result], &i, &aval, false, grid);
        }
        for body in &mut b.bodies {
            changed |= body.settle(grid);
        }
        changed
    }
}
/// What a type says, by the names of a grid's axes.
pub fn typed(a: &Aval, grid: &Grid) -> Spec {
    let Some(p) = a.cut.get() else { return Spec::whole(a.rank()) };
    let axis = |k: &u8| grid.find(p.mesh.grid.name(*k)).filter(|i| grid.axis_size(*i) == p.mesh.grid.axis_size(*k));
    let of = |cut: &CutAxes| cut.iter().map(axis).collect::<Option<CutAxes>>().unwrap_or_default();
    let sum = p.spec.unreduced.axes().iter().filter_map(axis).collect::<CutAxes>();
    Spec::new(p.spec.dims.iter().map(of)).summed(AxisSet::of(sum), AxisSet::NONE)
}
fn merge_into(spec: &mut Spec, with: &Spec, a: &Aval, but_first: bool, grid: &Grid) -> bool {
    let mut changed = false;
    for (d, cut) in with.dims.iter().enumerate().skip(but_first as usize) {
        changed |= grow(spec, d, cut, (a.shape[d], false), grid);
    }
    changed
}
pub fn stacked(s: &Spec) -> Spec {
    Spec::new(std::iter::once(CutAxes::new()).chain(s.dims.iter().cloned())).summed(s.unreduced, s.reduced)
}
pub fn unstacked(s: &Spec) -> Spec {
    Spec::new(s.dims.iter().skip(1).cloned()).summed(s.unreduced, s.reduced)
}
/// Makes dimension `d` of a spec as fine as `to`, as far as axes are free and parts are equal, or need not be.
fn grow(spec: &mut Spec, d: usize, to: &[u8], (size, uneven): (usize, bool), grid: &Grid) -> bool {
    if size == 0 || !to.starts_with(&spec.dims[d]) {
        return false;
    }
    let mut changed = false;
    for a in to[spec.dims[d].len()..].iter() {
        let n = grid.parts(&spec.dims[d]) * grid.axis_size(*a);
        if spec.uses(*a) || !(size.is_multiple_of(n) || uneven && uneven::fills(size, n)) {
            break;
        }
        spec.dims[d].push(*a);
        changed = true;
    }
    changed
}
/// Which axes cut each factor of a dimension of size `n`: the coarsest factor takes what it can; a finer one is cut only if all coarser are, entirely.
pub fn project(cut: &[u8], ids: &DimFactors, n: usize, f: &Factors, grid: &Grid) -> Vec<(u8, CutAxes)> {
    if let [id] = ids[..]
        && f.factors[id as usize].size == n
    {
        return if cut.is_empty() { vec![] } else { vec![(id, CutAxes::from_slice(cut))] };
    }
    let (mut rest, mut found) = (cut, vec![]);
    for id in ids {
        let (size, mut mine, mut n) = (f.factors[*id as usize].size, CutAxes::new(), 1);
        while let [a, tail @ ..] = rest
            && size.is_multiple_of(n * grid.axis_size(*a))
        {
            n *= grid.axis_size(*a);
            mine.push(*a);
            rest = tail;
        }
        if !mine.is_empty() {
            found.push((*id, mine));
        }
        if n != size {
            break;
        }
    }
    found
}
/// The cut of a dimension whose factors are cut by these axes.
pub fn join(ids: &DimFactors, axes: &[CutAxes], f: &Factors, grid: &Grid) -> CutAxes {
    let mut cut = CutAxes::new();
    for id in ids {
        let mine = &axes[*id as usize];
        cut.extend_from_slice(mine);
        if grid.parts(mine) != f.factors[*id as usize].size {
            break;
        }
    }
    cut
}
