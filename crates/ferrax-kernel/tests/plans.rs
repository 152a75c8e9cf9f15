//! Plans on the reference backend: control steps, host calls, collectives, cancelling, and plans that break their own rules.
mod examples;

use examples::{Build, Example, f32s, i32s};
use ferrax_kernel::backend::{RunArg, World};
use ferrax_kernel::plan::{Across, Collective, HostCall, HostFn, Plan, Step};
use ferrax_kernel::{
    Backend, Bin, DType, Error, ReduceKind, Res, RunCx,
    reference::{ReferenceBackend, together},
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn run_in(plan: Plan, ins: &[Vec<u8>], cancel: bool, world: Option<&dyn World>) -> Res<Vec<Vec<u8>>> {
    let device = ReferenceBackend;
    let run = device.compile(plan.verify()?)?;
    let arg = |b: &Vec<u8>| Ok(RunArg { buffer: device.upload(b)?, donated: false });
    let args = ins.iter().map(arg).collect::<Res<_>>()?;
    let outs = run.run(&RunCx { cancel: &AtomicBool::new(cancel), world }, args)?;
    outs.iter().map(|b| device.download(b)).collect()
}
fn run(plan: Plan, ins: &[Vec<u8>]) -> Res<Vec<Vec<u8>>> {
    run_in(plan, ins, false, None)
}

#[test]
fn control_steps_compute_what_they_say() {
    for Example { name, plan, ins, outs } in examples::all() {
        assert_eq!(run(plan, &ins).unwrap(), outs, "{name}");
    }
}

#[test]
fn a_cancelled_run_says_so() {
    for Example { plan, ins, .. } in examples::all() {
        assert!(matches!(run_in(plan, &ins, true, None), Err(Error::Cancelled)));
    }
}

struct Reverse;
impl HostFn for Reverse {
    fn call(&self, ins: &[&[u8]], outs: &mut [&mut [u8]]) -> Res<()> {
        outs[0].copy_from_slice(ins[0]);
        outs[0].reverse();
        if ins[0].is_empty() { Err(Error::Invalid("nothing to reverse".into())) } else { Ok(()) }
    }
}
fn reverse(len: usize) -> Plan {
    let mut b = Build::default();
    let (x, y) = (b.input(DType::U8, len), b.output(DType::U8, len));
    b.0.steps = vec![Step::Callback {
        call: HostCall { name: "reverse".into(), f: Arc::new(Reverse) },
        ins: vec![x],
        outs: vec![y],
    }];
    b.0
}

#[test]
fn callbacks_get_bytes_and_may_fail() {
    assert_eq!(run(reverse(3), &[vec![1, 2, 3]]).unwrap(), [[3, 2, 1]]);
    assert!(run(reverse(0), &[vec![]]).is_err());
}

#[test]
fn collectives_combine_in_the_order_of_devices() {
    let collect = |kind: Collective, out: usize| {
        let one = |rank: usize, world: &dyn World| {
            let mut b = Build::default();
            let (x, y) = (b.input(DType::I32, 3), b.output(DType::I32, out));
            let ins = if kind == Collective::AxisIndex { vec![] } else { vec![x] };
            b.0.steps =
                vec![Step::Collective { kind: kind.clone(), across: Across::axes(["i".into()]), ins, outs: vec![y] }];
            let mine = [1, 2, 3].map(|v| v * [10, 1, 30][rank]);
            run_in(b.0, &[i32s(&mine)], false, Some(world)).unwrap().remove(0)
        };
        together(3, one).remove(1)
    };
    assert_eq!(collect(Collective::AllReduce(ReduceKind::Sum), 3), i32s(&[41, 82, 123]));
    assert_eq!(collect(Collective::AllReduce(ReduceKind::Max), 3), i32s(&[30, 60, 90]));
    assert_eq!(collect(Collective::AllGather, 9), i32s(&[10, 20, 30, 1, 2, 3, 30, 60, 90]));
    assert_eq!(collect(Collective::AllToAll, 3), i32s(&[20, 2, 60]));
    assert_eq!(collect(Collective::Permute(vec![(2, 1), (1, 0)]), 3), i32s(&[30, 60, 90]));
    assert_eq!(collect(Collective::Permute(vec![(1, 2)]), 3), i32s(&[0, 0, 0]));
    assert_eq!(collect(Collective::AxisIndex, 1), i32s(&[1]));
}

#[test]
fn broken_plans_are_errors() {
    let mut unwritten = Build::default();
    let (x, y) = (unwritten.temp(DType::F32, 1), unwritten.output(DType::F32, 1));
    unwritten.0.steps = vec![Step::Copy { from: x, to: y }];
    assert!(run(unwritten.0, &[]).is_err());

    let mut outside = Build::default();
    let (x, y) = (outside.input(DType::F32, 2), outside.output(DType::F32, 3));
    let kernel = Arc::new(examples::binary(Bin::Add, DType::F32, 3, [2, 2]));
    outside.0.steps = vec![Step::Kernel { kernel, ins: vec![x, x], outs: vec![y] }];
    assert!(run(outside.0, &[f32s(&[1., 2.])]).is_err());

    let mut lonely = Build::default();
    let y = lonely.output(DType::I32, 1);
    lonely.0.steps = vec![Step::Collective {
        kind: Collective::AxisIndex,
        across: Across::axes(["i".into()]),
        ins: vec![],
        outs: vec![y],
    }];
    assert!(run(lonely.0, &[]).is_err());
    assert!(run(reverse(3), &[vec![1, 2]]).is_err());
}
