//! Which steps of a plan are one task: updates of one array in turn, at starts that are constants, as concatenations of many arrays have them.
//!
//! INVARIANT: windows of one task have no element in common, so their order does not matter; a step that joins reads nothing that a step between it
//! and the first writes.
use super::{Compiling, Op, names};
use crate::routines::{self, Placed};
use crate::task::Limits;
use ferrax_kernel::kernel::Node;
use ferrax_kernel::plan::{SlotId, Step};
use ferrax_kernel::{DType, Dims, Res, Routine};
use std::collections::HashMap;

/// Updates of `operand`, of elements of `dtype`, in the order of `ins` after the array itself.
pub struct Updates {
    operand: Dims,
    dtype: DType,
    windows: Vec<Placed>,
    ins: Vec<SlotId>,
    out: SlotId,
    /// The constants that its text has instead of reading.
    starts: Vec<SlotId>,
}

/// The values of slots of one element that are constants.
fn constants(steps: &[Step]) -> HashMap<SlotId, i64> {
    let mut known = HashMap::new();
    for step in steps {
        if let Step::Kernel { kernel, outs, .. } = step
            && kernel.grid.size() == 1
        {
            for (slot, o) in outs.iter().zip(&kernel.outputs) {
                if let Node::Const(x) = kernel.nodes[*o as usize].1 {
                    known.insert(*slot, x.to_i64());
                }
            }
        }
    }
    known
}

/// An update at known starts: its array, the slots of its starts, and where its window is.
struct Update<'a> {
    operand: &'a Dims,
    dtype: DType,
    ins: &'a [SlotId],
    out: SlotId,
    at: Placed,
}
impl<'a> Update<'a> {
    fn of(step: &'a Step, known: &HashMap<SlotId, i64>) -> Option<Update<'a>> {
        let Step::Routine { routine, ins, outs } = step else { return None };
        let Routine::DynamicUpdateSlice { operand, update, dtype, .. } = &**routine else { return None };
        let start =
            |(k, s): (usize, &SlotId)| Some((*known.get(s)?).clamp(0, operand[k] as i64 - update[k] as i64) as usize);
        let starts = ins[2..].iter().enumerate().map(start).collect::<Option<Vec<_>>>()?;
        let at = Placed { window: update.clone(), starts };
        (dtype.size() <= 4).then_some(Update { operand, dtype: *dtype, ins, out: outs[0], at })
    }
}

impl Compiling<'_> {
    /// The updates that begin with each step of a block, where there are several, and their steps.
    pub fn updates(&self, steps: &[Step]) -> HashMap<usize, (Updates, Vec<usize>)> {
        let known = constants(steps);
        let mut found = HashMap::new();
        let mut taken = vec![false; steps.len()];
        for first in 0..steps.len() {
            if taken[first] {
                continue;
            }
            let Some(chain) = self.chain(steps, first, &known) else { continue };
            chain.1.iter().for_each(|i| taken[*i] = true);
            found.insert(first, chain);
        }
        found
    }
    fn chain(&self, steps: &[Step], first: usize, known: &HashMap<SlotId, i64>) -> Option<(Updates, Vec<usize>)> {
        let Update { operand, dtype, ins, out, at } = Update::of(&steps[first], known)?;
        let starts = ins[2..].to_vec();
        let mut all =
            Updates { operand: operand.clone(), dtype, windows: vec![at], ins: ins[..2].to_vec(), out, starts };
        let (mut members, mut written) = (vec![first], vec![]);
        for (i, step) in steps.iter().enumerate().skip(first + 1) {
            let next = Update::of(step, known).filter(|u| u.ins[0] == all.out);
            let Some(next) = next else {
                let mut is_read = false;
                names(step, &mut |s| {
                    is_read |= s == all.out;
                    written.push(s);
                });
                if is_read {
                    break;
                }
                continue;
            };
            let is_last = self.uses[all.out as usize] > 2
                || written.contains(&next.ins[1])
                || next.ins[1] == all.out
                || !all.windows.iter().all(|w| w.is_apart(&next.at));
            if is_last {
                break;
            }
            all.windows.push(next.at);
            all.ins.push(next.ins[1]);
            all.starts.extend(&next.ins[2..]);
            all.out = next.out;
            members.push(i);
        }
        (members.len() > 1).then_some((all, members))
    }
    /// Whether nothing reads what a step makes but the starts of updates, each as often as `read` says.
    pub fn is_unread(&self, step: &Step, read: &HashMap<SlotId, usize>) -> bool {
        let Step::Kernel { outs, .. } = step else { return false };
        outs.iter().all(|s| read.get(s).is_some_and(|n| self.uses[*s as usize] == n + 1))
    }
    pub fn of_updates(&self, u: &Updates) -> Res<Op> {
        let limits = Limits::of(&self.device.limits);
        let task = routines::updates(&u.operand, &u.windows, u.dtype, limits)?.compile(self.device)?;
        Ok(Op::Task { what: "updates", task, ins: u.ins.clone(), outs: vec![u.out] })
    }
}
impl Updates {
    pub fn starts(&self) -> &[SlotId] {
        &self.starts
    }
}
