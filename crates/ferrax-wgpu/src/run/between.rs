//! What a step must not touch, to change places with other steps.
use super::names;
use ferrax_kernel::plan::{SlotId, Step};

/// The slots of steps before which a later one may run, or for which an earlier one may wait.
#[derive(Default)]
pub struct Between {
    named: Vec<SlotId>,
    written: Vec<SlotId>,
}
impl Between {
    pub fn new(ins: &[SlotId], outs: &[SlotId]) -> Between {
        let mut it = Between::default();
        it.add_slots(ins, outs);
        it
    }
    /// Slots that are read, and those that are written.
    pub fn add_slots(&mut self, ins: &[SlotId], outs: &[SlotId]) {
        self.named.extend(ins.iter().chain(outs));
        self.written.extend(outs);
    }
    /// Of steps other than kernels and routines all is taken to be written.
    pub fn add(&mut self, step: &Step) {
        names(step, &mut |s| self.named.push(s));
        match step {
            Step::Kernel { outs, .. } => self.written.extend(outs),
            Step::Routine { routine, ins, outs } => {
                self.written.extend(outs);
                self.written.extend(ins.first().filter(|_| routine.updates_operand()));
            }
            other => names(other, &mut |s| self.written.push(s)),
        }
    }
    /// Whether a step with these slots may change places with all of them: it reads nothing that they write, and writes nothing that they name.
    pub fn allows(&self, ins: &[SlotId], outs: &[SlotId]) -> bool {
        !ins.iter().any(|s| self.written.contains(s)) && !outs.iter().any(|s| self.named.contains(s))
    }
}
