//! Steps that the device lacks (decompositions, Fourier transforms, 64-bit computations): the CPU backend runs them in between, on copies.
//!
//! INVARIANT: every plan runs on the device. The device stores elements of any width; steps that compute with wide ones run on the host.
use super::{Op, Run};
use crate::device::counters::count;
use ferrax_kernel::backend::{Backend, Executable, RunArg};
use ferrax_kernel::plan::{Place, Plan, SlotId, Step};
use ferrax_kernel::{DType, Kernel, Res, Routine};
use std::cell::Cell;
use std::sync::Arc;

/// Whether shaders compute with elements of `d`.
fn computes(d: DType) -> bool {
    d.size() <= 4
}
/// Whether the device has a kernel's dtypes.
fn has_kernel(k: &Kernel) -> bool {
    k.nodes.iter().map(|n| n.0).chain(k.inputs.iter().map(|i| i.0)).all(computes)
}
/// Whether the device has a routine, at its dtypes.
pub fn has_routine(r: &Routine) -> bool {
    crate::routines::has(r) && r.operands().iter().chain(&r.results()).all(|(d, _)| computes(*d))
}
/// Whether a step is left to the host.
pub fn is_for_host(s: &Step) -> bool {
    match s {
        Step::Kernel { kernel, .. } => !has_kernel(kernel),
        Step::Routine { routine, .. } => !has_routine(routine),
        _ => false,
    }
}

/// Whether the host runs the whole plan: at least half of its kernels and routines are the host's,
/// so that transfers for those in between cost more than computing them there. Plans that
/// communicate with other devices, and tapes that other plans read, stay on the device.
pub fn is_plan_for_host(plan: &Plan) -> bool {
    let tape = |s: &SlotId| plan.slots[*s as usize].tape > 0;
    if plan.meets() || plan.inputs.iter().chain(&plan.outputs).any(tape) {
        return false;
    }
    let (all, hosts) = (Cell::new(0), Cell::new(0));
    plan.any_step(&|s| {
        if matches!(s, Step::Kernel { .. } | Step::Routine { .. }) {
            all.set(all.get() + 1);
            hosts.set(hosts.get() + usize::from(is_for_host(s)));
        }
        false
    });
    hosts.get() > 0 && 2 * hosts.get() >= all.get()
}

/// A step of the host's: the plan of it alone, compiled there.
pub struct HostStep {
    what: &'static str,
    exe: Arc<dyn Executable>,
    ins: Vec<SlotId>,
    outs: Vec<SlotId>,
}

impl HostStep {
    /// `Step::Kernel` or `Step::Routine` of `plan`.
    pub fn new(host: &dyn Backend, plan: &Plan, step: &Step) -> Res<HostStep> {
        let mut alone = Plan::default();
        let mut slot = |of: &SlotId, place: Place| {
            let s = &plan.slots[*of as usize];
            alone.places.push(place);
            alone.add_slot(s.dtype, s.len, 0)
        };
        let mut all = |slots: &[SlotId], place: fn(u32) -> Place| -> Vec<SlotId> {
            slots.iter().zip(0..).map(|(s, i)| slot(s, place(i))).collect()
        };
        let (what, ins, outs, step, inputs, outputs) = match step {
            Step::Routine { routine, ins, outs } => {
                let (i, o) = (all(ins, Place::Input), all(outs, Place::Output));
                let step = Step::Routine { routine: routine.clone(), ins: i.clone(), outs: o.clone() };
                (routine.name(), ins, outs, step, i, o)
            }
            Step::Kernel { kernel, ins, outs } => {
                let (i, o) = (all(ins, Place::Input), all(outs, Place::Output));
                let step = Step::Kernel { kernel: kernel.clone(), ins: i.clone(), outs: o.clone() };
                ("kernel", ins, outs, step, i, o)
            }
            _ => return Err(ferrax_kernel::Error::Invalid("the host is given a step with blocks".into())),
        };
        alone.donatable = vec![None; outputs.len()];
        (alone.inputs, alone.outputs, alone.steps) = (inputs, outputs, vec![step]);
        let exe = host.compile(alone.verify()?)?;
        Ok(HostStep { what, exe, ins: ins.clone(), outs: outs.clone() })
    }
    /// For people.
    pub fn line(&self) -> String {
        format!("{} on the host {:?} -> {:?}", self.what, self.ins, self.outs)
    }
}

impl Run<'_> {
    pub fn host_step(&mut self, step: &HostStep) -> Res<()> {
        self.run_on_host(&*step.exe, &step.ins, &step.outs)
    }
    /// Reads slots `ins`, runs `exe` of the host's on them, and writes slots `outs`.
    pub fn run_on_host(&mut self, exe: &dyn Executable, ins: &[SlotId], outs: &[SlotId]) -> Res<()> {
        count(&self.recorder.device.counters.host_steps);
        let host = self.compiled.host.clone();
        let mut args = smallvec::SmallVec::new();
        for s in ins {
            args.push(RunArg { buffer: host.upload(&self.bytes(*s)?)?, donated: true });
        }
        let made = exe.run(self.cx, args)?;
        outs.iter().zip(&made).try_for_each(|(o, b)| self.set_bytes(*o, &host.download(b)?))
    }
    /// Reduces the bytes of all devices by `k`.
    pub fn host_reduce(&mut self, out: SlotId, k: Kernel, all: &[&[u8]]) -> Res<()> {
        let host = self.compiled.host.clone();
        let mut plan = Plan::default();
        let mut slot = |(d, len): (DType, usize), place: Place| {
            plan.places.push(place);
            plan.add_slot(d, len, 0)
        };
        let ins: Vec<SlotId> = k.inputs.iter().zip(0..).map(|(of, i)| slot(*of, Place::Input(i))).collect();
        let outs = vec![slot((k.dtype(k.outputs[0]), k.grid.size()), Place::Output(0))];
        plan.donatable = vec![None];
        let step = Step::Kernel { kernel: Arc::new(k), ins: ins.clone(), outs: outs.clone() };
        (plan.inputs, plan.outputs, plan.steps) = (ins, outs, vec![step]);
        let exe = host.compile(plan.verify()?)?;
        let arg = |b: &&[u8]| Ok(RunArg { buffer: host.upload(b)?, donated: true });
        let made = exe.run(self.cx, all.iter().map(arg).collect::<Res<_>>()?)?;
        self.set_bytes(out, &host.download(&made[0])?)
    }
}

/// The op of a step that is left to the host.
pub fn op(host: &dyn Backend, plan: &Plan, step: &Step) -> Res<Op> {
    HostStep::new(host, plan, step).map(|s| Op::Host(Box::new(s)))
}
