//! The waist's example plans on the cpu: control steps, tapes, cancelling.
use crate::examples::{self, Example};
use ferrax_cpu::CpuBackend;
use ferrax_kernel::backend::RunArg;
use ferrax_kernel::{Backend, Error, Plan, Res, RunCx};
use std::sync::atomic::AtomicBool;

fn run(plan: Plan, ins: &[Vec<u8>], cancel: bool) -> Res<Vec<Vec<u8>>> {
    let device = CpuBackend::new();
    let run = device.compile(plan.verify()?)?;
    let mut last = None;
    // Twice, as the second run finds the first one's arena.
    for _ in 0..2 {
        let args = ins.iter().map(|b| Ok(RunArg { buffer: device.upload(b)?, donated: false })).collect::<Res<_>>()?;
        let outs = run.run(&RunCx { cancel: &AtomicBool::new(cancel), world: None }, args)?;
        last = Some(outs.iter().map(|b| device.download(b)).collect());
    }
    last.unwrap()
}

#[test]
fn control_steps_compute_what_they_say() {
    for Example { name, plan, ins, outs } in examples::all() {
        assert_eq!(run(plan, &ins, false).unwrap(), outs, "{name}");
    }
}
#[test]
fn a_cancelled_run_says_so() {
    for Example { plan, ins, .. } in examples::all() {
        assert!(matches!(run(plan, &ins, true), Err(Error::Cancelled)));
    }
}
