//! Products of one size that do not depend on each other, as one pass: each alone would leave most of the device idle.
//!
//! ```text
//!     q = h @ wq;  k = h @ wk;  v = h @ wv
//! ```
//! INVARIANT: as of programs over rows: one that joins reads nothing that a unit between it and the first writes, and writes nothing that such a unit names.
use super::passed::Passed;
use super::rows::RowProgram;
use super::units::{Together, Unit};
use super::{Compiling, Op};
use crate::routines::{self, Product};
use crate::task::{Limits, Reg};
use crate::wgsl::Lowered;
use ferrax_kernel::Res;
use ferrax_kernel::plan::{SlotId, Step};

/// Parts of a pass, at most, and units after its first among which more are looked for.
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
        let mut groups: Vec<Vec<usize>> = vec![];
        for first in 0..units.len() {
            let is_taken = |u: usize| groups.iter().any(|g| g.contains(&u));
            let mut group = if is_taken(first) { vec![] } else { group(&units, &programs, first, &is_taken, limits) };
            let of = |group: &[usize]| group.iter().filter_map(|u| programs[*u].as_ref()).collect::<Vec<_>>();
            // fewer where the device does not bind the arrays of all
            while group.len() > 1 && lower(&of(&group), limits).is_err() {
                group.pop();
            }
            if group.len() > 1 {
                groups.push(group);
            }
        }
        let mut units: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
        let mut programs = programs;
        for group in groups {
            let steps = group.iter().filter_map(|u| units[*u].as_ref()).flat_map(Unit::steps).copied().collect();
            let members = Together {
                units: group.iter().filter_map(|u| units[*u].take()).collect(),
                programs: group.iter().filter_map(|u| programs[*u].take()).collect(),
            };
            units[group[0]] = Some(Unit::Together(members, steps));
        }
        units.into_iter().flatten().collect()
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

/// The numbers of the units that may be one pass with unit `first`, itself among them.
fn group(
    units: &[Unit],
    programs: &[Option<RowProgram>],
    first: usize,
    is_taken: &dyn Fn(usize) -> bool,
    limits: Limits,
) -> Vec<usize> {
    let Some(start) = programs[first].as_ref() else { return vec![] };
    let mut group = vec![first];
    let mut passed = Passed::new(&start.ins, &start.outs);
    for (at, unit) in units.iter().enumerate().take(first + WINDOW).skip(first + 1) {
        let joins = programs[at].as_ref().is_some_and(|p| {
            group.len() < MAX_PARTS && !is_taken(at) && p.is_alike(start, limits) && passed.allows(&p.ins, &p.outs)
        });
        if joins {
            group.push(at);
        }
        unit.steps().iter().for_each(|step| passed.add(step));
    }
    group
}
