//! Products of one size that do not depend on each other, as one pass: each alone would leave most of the device idle.
//!
//! ```text
//!     q = h @ wq;  k = h @ wk;  v = h @ wv
//! ```
//! INVARIANT: as of programs over rows: one that joins reads nothing that a unit between it and the pass writes, and writes nothing that such a unit names.
use super::between::Between;
use super::rows::RowProgram;
use super::units::{Together, Unit};
use super::{Compiling, Op};
use crate::routines::{self, Product};
use crate::task::{Limits, Reg};
use crate::wgsl::Lowered;
use ferrax_kernel::Res;
use ferrax_kernel::plan::{SlotId, Step};

/// Parts of a pass, at most, and units before and after its place among which they are looked for.
const MAX_PARTS: usize = 4;
const WINDOW: usize = 24;

/// The pass of such programs, and the slots that it reads.
fn lower(programs: &[&RowProgram], limits: Limits) -> Res<(Lowered, Vec<SlotId>)> {
    let mut slots: Vec<SlotId> = vec![];
    let mut input = |s: &SlotId| {
        let at = slots.iter().position(|known| known == s).unwrap_or_else(|| {
            slots.push(*s);
            slots.len() - 1
        });
        Reg::In(at)
    };
    let all = programs.iter().filter_map(|p| Some((p.product()?, p.ins.iter().map(&mut input).collect::<Vec<_>>())));
    let all: Vec<(Product, Vec<Reg>)> = all.collect();
    Ok((routines::together(all, limits)?, slots))
}

impl Compiling<'_> {
    /// The same units, where products are together.
    pub fn together<'a>(&self, units: Vec<Unit<'a>>) -> Vec<Unit<'a>> {
        let limits = Limits::of(&self.device.limits);
        let programs: Vec<Option<RowProgram>> = units.iter().map(|u| self.product_of(u)).collect();
        let mut all: Vec<(Unit, Option<RowProgram>)> = units.into_iter().zip(programs).collect();
        let mut here = 0;
        while here < all.len() {
            let mut group = group(&all, here, limits);
            let of = |group: &[usize]| group.iter().filter_map(|u| all[*u].1.as_ref()).collect::<Vec<_>>();
            // fewer where the device does not bind the arrays of all
            while group.len() > 1 && lower(&of(&group), limits).is_err() {
                group.pop();
            }
            if group.len() > 1 {
                here -= group.iter().filter(|u| **u < here).count();
                let unit = taken(&mut all, group);
                all.insert(here, (unit, None));
            }
            here += 1;
        }
        all.into_iter().map(|(unit, _)| unit).collect()
    }
    /// A unit that is a product, as a program.
    fn product_of(&self, unit: &Unit) -> Option<RowProgram> {
        match unit {
            Unit::Rows(program, _) if program.routine.is_some() => Some((**program).clone()),
            Unit::Step(step) if matches!(step, Step::Routine { .. }) => self.alone(step),
            _ => None,
        }
    }
    pub fn of_together(&self, it: &Together) -> Res<Op> {
        let (task, ins) = lower(&it.programs.iter().collect::<Vec<_>>(), Limits::of(&self.device.limits))?;
        let outs = it.programs.iter().flat_map(|p| &p.outs).copied().collect();
        Ok(Op::Task { what: "products", task: task.compile(self.device)?, ins, outs })
    }
}

/// The numbers of the units that may be one pass in the place of unit `here`, that first: earlier ones may wait till then, and later ones run there.
fn group(all: &[(Unit, Option<RowProgram>)], here: usize, limits: Limits) -> Vec<usize> {
    let Some(start) = all[here].1.as_ref() else { return vec![] };
    let mut group = vec![here];
    let joins = |group: &[usize], at: usize, between: &Between| {
        let is_part = |p: &&RowProgram| group.len() < MAX_PARTS && p.is_alike(start, limits);
        all[at].1.as_ref().filter(is_part).filter(|p| between.allows(&p.ins, &p.outs))
    };
    let (mut before, mut after) = (Between::new(&start.ins, &start.outs), Between::new(&start.ins, &start.outs));
    for at in (here.saturating_sub(WINDOW)..here).rev() {
        if let Some(p) = joins(&group, at, &before) {
            group.push(at);
            after.add_slots(&p.ins, &p.outs);
        }
        all[at].0.steps().iter().for_each(|step| before.add(step));
    }
    for at in here + 1..all.len().min(here + WINDOW) {
        if joins(&group, at, &after).is_some() {
            group.push(at);
        }
        all[at].0.steps().iter().for_each(|step| after.add(step));
    }
    group
}
/// These units, which are all no longer.
fn taken<'a>(all: &mut Vec<(Unit<'a>, Option<RowProgram>)>, mut group: Vec<usize>) -> Unit<'a> {
    group.sort_unstable();
    let members: Vec<_> = group.iter().rev().map(|u| all.remove(*u)).collect();
    let (units, programs): (Vec<Unit>, Vec<_>) = members.into_iter().rev().unzip();
    let steps = units.iter().flat_map(Unit::steps).copied().collect();
    Unit::Together(Together { units, programs: programs.into_iter().flatten().collect() }, steps)
}
