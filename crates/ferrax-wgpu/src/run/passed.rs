//! What a step must not touch, to run before other steps.
use super::names;
use ferrax_kernel::plan::{SlotId, Step};

/// The slots of steps before which another one may run.
#[derive(Default)]
pub struct Passed {
    named: Vec<SlotId>,
    written: Vec<SlotId>,
}
impl Passed {
    pub fn new(ins: &[SlotId], outs: &[SlotId]) -> Passed {
        Passed { named: [ins, outs].concat(), written: outs.to_vec() }
    }
    /// What a kernel or a routine reads it does not write; of other steps all is taken to be written.
    pub fn add(&mut self, step: &Step) {
        names(step, &mut |s| self.named.push(s));
        match step {
            Step::Kernel { outs, .. } | Step::Routine { outs, .. } => self.written.extend(outs),
            other => names(other, &mut |s| self.written.push(s)),
        }
    }
    /// Whether a step with these slots may run before all of them: it reads nothing that they write, and writes nothing that they name.
    pub fn allows(&self, ins: &[SlotId], outs: &[SlotId]) -> bool {
        !ins.iter().any(|s| self.written.contains(s)) && !outs.iter().any(|s| self.named.contains(s))
    }
}
