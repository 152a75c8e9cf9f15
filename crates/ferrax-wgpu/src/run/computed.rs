//! Operands of routines that their shaders compute where they read them: what kernels make for such routines alone, indices and updates.
//!
//! ```text
//!     j = select(i < 0, i + n, i);  y = x[j]         one task, which reads x and i; j has no memory
//! ```
//! INVARIANT: between such a kernel and a routine, nothing updates what it reads in place.
use super::moves::updates;
use super::units::{Computed, Unit};
use super::{Compiling, Op};
use crate::routines::{self, Argument};
use crate::run::host::is_for_host;
use crate::task::{Limits, Reg};
use crate::wgsl::{with_outputs, work};
use ferrax_kernel::kernel::{Kernel, Node};
use ferrax_kernel::plan::{SlotId, Step};
use ferrax_kernel::{Res, Routine};
use std::collections::HashMap;

/// A result of a kernel that reduces nothing.
#[derive(Clone)]
struct Maker<'a> {
    /// The numbers of the kernel's unit, and of those of copies.
    units: Vec<usize>,
    kernel: Kernel,
    ins: &'a [SlotId],
}

impl<'a> Maker<'a> {
    /// The results of a step, by their slots.
    fn of(number: usize, step: &'a Step) -> Vec<(SlotId, Maker<'a>)> {
        let Step::Kernel { kernel, ins, outs } = step else { return vec![] };
        let reduces = kernel.nodes.iter().any(|(_, n)| matches!(n, Node::Reduce { .. }));
        if is_for_host(step) || reduces || kernel.grid.size() == 0 {
            return vec![];
        }
        let one = |o: &u32| Maker { units: vec![number], kernel: with_outputs(kernel, &[*o]), ins };
        outs.iter().copied().zip(kernel.outputs.iter().map(one)).collect()
    }
    /// Whether operand `k` of a routine, in unit `at`, may be computed there.
    fn serves(&self, routine: &Routine, ins: &[SlotId], k: usize, units: &[Unit], at: usize) -> bool {
        let is_as_it_was = |s: &SlotId| {
            let mut between = units[self.units[0] + 1..at].iter().flat_map(Unit::steps);
            !between.any(|step| updates(step, *s))
        };
        self.units[0] < at
            && routines::computes(routine, k, work::of_element(&self.kernel))
            && !(routine.updates_operand() && self.ins.contains(&ins[0]))
            && self.ins.iter().all(is_as_it_was)
    }
}

/// The routine of a unit that is one.
fn routine<'a>(unit: &Unit<'a>) -> Option<(&'a Routine, &'a [SlotId], &'a [SlotId])> {
    let Unit::Step(step) = unit else { return None };
    match *step {
        Step::Routine { routine, ins, outs } if !is_for_host(step) => Some((&**routine, &ins[..], &outs[..])),
        _ => None,
    }
}

impl Compiling<'_> {
    /// The same units, where routines compute those operands that no other step reads.
    pub fn computing<'a>(&self, mut units: Vec<Unit<'a>>) -> Vec<Unit<'a>> {
        let makers = self.makers(&units);
        let gone: Vec<usize> = makers.values().flat_map(|m| &m.units).copied().collect();
        let found: Vec<(usize, Unit)> = (0..units.len())
            .filter_map(|at| {
                let (routine, ins, outs) = routine(&units[at])?;
                let mut steps: Vec<usize> =
                    ins.iter().filter_map(|s| makers.get(s)).flat_map(|m| &m.units).copied().collect();
                steps.sort_unstable();
                steps.dedup();
                (!steps.is_empty()).then(|| {
                    let steps = steps.iter().chain([&at]).flat_map(|u| units[*u].steps()).copied().collect();
                    (at, Unit::Computed(Computed::of(routine, ins, outs, &makers), steps))
                })
            })
            .collect();
        found.into_iter().for_each(|(at, unit)| units[at] = unit);
        let mut number = 0..;
        units.retain(|_| number.next().is_some_and(|n| !gone.contains(&n)));
        units
    }
    /// Those results of kernels that are all their kernels make, and that routines alone read, which can compute them.
    fn makers<'a>(&self, units: &[Unit<'a>]) -> HashMap<SlotId, Maker<'a>> {
        let mut makers: HashMap<SlotId, Maker> = HashMap::new();
        for (i, unit) in units.iter().enumerate() {
            let Unit::Step(step) = unit else { continue };
            makers.extend(Maker::of(i, step));
            if let Step::Copy { from, to } = step
                && let Some(mut copy) = makers.get(from).cloned()
            {
                copy.units.push(i);
                makers.insert(*to, copy);
            }
        }
        loop {
            let reads = reads(units, &makers);
            let is_whole = |s: &SlotId| self.uses[*s as usize] == 1 + reads.get(s).unwrap_or(&0);
            let stay: Vec<usize> = makers.iter().filter(|(s, _)| !is_whole(s)).map(|(_, m)| m.units[0]).collect();
            if stay.is_empty() {
                return makers;
            }
            makers.retain(|_, m| !stay.contains(&m.units[0]));
        }
    }
    pub fn of_computed(&self, it: &Computed) -> Res<Op> {
        let lowered = routines::lower_of(it.routine, &it.arguments, Limits::of(&self.device.limits));
        let task = lowered?.compile(self.device)?;
        Ok(Op::Task { what: it.routine.name(), task, ins: it.ins.clone(), outs: it.outs.to_vec() })
    }
}
/// How often each of `makers` is copied, or read by a routine that can compute it.
fn reads(units: &[Unit], makers: &HashMap<SlotId, Maker>) -> HashMap<SlotId, usize> {
    let mut reads = HashMap::new();
    for (at, unit) in units.iter().enumerate() {
        if let Unit::Step(Step::Copy { from, to }) = unit
            && makers.contains_key(to)
        {
            *reads.entry(*from).or_insert(0) += 1;
        }
        let Some((routine, ins, _)) = routine(unit) else { continue };
        for (k, s) in ins.iter().enumerate() {
            let serves = makers.get(s).is_some_and(|m| m.serves(routine, ins, k, units, at));
            *reads.entry(*s).or_insert(0) += usize::from(serves);
        }
    }
    reads
}

impl<'a> Computed<'a> {
    fn of(
        routine: &'a Routine,
        slots: &'a [SlotId],
        outs: &'a [SlotId],
        makers: &HashMap<SlotId, Maker>,
    ) -> Computed<'a> {
        let mut ins: Vec<SlotId> = vec![];
        let mut input = |s: &SlotId| {
            let at = ins.iter().position(|i| i == s).unwrap_or_else(|| {
                ins.push(*s);
                ins.len() - 1
            });
            Reg::In(at)
        };
        let mut argument = |s: &SlotId| match makers.get(s) {
            Some(m) => {
                Argument::Computed { kernel: Box::new(m.kernel.clone()), ins: m.ins.iter().map(&mut input).collect() }
            }
            None => Argument::Array(input(s)),
        };
        let arguments = slots.iter().map(&mut argument).collect();
        Computed { routine, ins, outs, arguments }
    }
}
