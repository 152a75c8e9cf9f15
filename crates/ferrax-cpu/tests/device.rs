//! The cpu as a device: memory donated, memory borrowed, results shared, devices talking to each other.
use ferrax_cpu::CpuBackend;
use ferrax_kernel::backend::{RunArg, World};
use ferrax_kernel::kernel::Access;
use ferrax_kernel::plan::{Across, Collective, HostCall, HostFn, Place, Step};
use ferrax_kernel::reference::{ReferenceBackend, together};
use ferrax_kernel::{Affine, Backend, Bin, Buffer, DType, Error, Kernel, Node, Plan, ReduceKind, Res, RunCx, Scalar};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn f32s(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|v| v.to_le_bytes()).collect()
}
/// out0 = in0 + in1, over n floats; out0 may take in0's memory.
fn add(n: usize) -> Plan {
    let d = DType::F32;
    let load = |input| {
        (
            d,
            Node::Load(Box::new(Access {
                input,
                at: Affine::new(0, [1]),
                guards: Default::default(),
                fill: Scalar::zero(d),
            })),
        )
    };
    let k = Kernel {
        grid: [n].into(),
        inputs: vec![(d, n), (d, n)],
        nodes: vec![load(0), load(1), (d, Node::Bin(Bin::Add, 0, 1))],
        outputs: vec![2],
        ..Kernel::default()
    };
    let mut p = Plan::default();
    for place in [Place::Input(0), Place::Input(1), Place::Output(0)] {
        p.add_slot(d, n, 0);
        p.places.push(place);
    }
    (p.inputs, p.outputs, p.donatable) = (vec![0, 1], vec![2], vec![Some(0)]);
    p.steps = vec![Step::Kernel { kernel: Arc::new(k), ins: vec![0, 1], outs: vec![2] }];
    p
}
fn run_in(plan: Plan, args: Vec<(Buffer, bool)>, world: Option<&dyn World>) -> Res<Vec<Buffer>> {
    let exe = CpuBackend::new().compile(plan.verify()?)?;
    let args = args.into_iter().map(|(buffer, donated)| RunArg { buffer, donated }).collect();
    Ok(exe.run(&RunCx { cancel: &AtomicBool::new(false), world }, args)?.into_vec())
}
fn address(b: &Buffer) -> *const u8 {
    b.memory().unwrap().host().unwrap().as_ptr()
}

#[test]
fn donated_memory_becomes_the_output_unless_somebody_holds_it() {
    let device = CpuBackend::new();
    for n in [1, 5, 1000, 400_000] {
        let (x, y) = (f32s(&vec![1.5; n]), f32s(&vec![2.0; n]));
        for held in [false, true] {
            let (a, b) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
            let before = address(&a);
            let keep = held.then(|| a.clone());
            let out = run_in(add(n), vec![(a, true), (b, false)], None).unwrap();
            assert_eq!(address(&out[0]) == before, !held);
            assert_eq!(device.download(&out[0]).unwrap(), f32s(&vec![3.5; n]));
            assert!(keep.is_none_or(|k| device.download(&k).unwrap() == x));
        }
    }
}
#[test]
fn a_view_of_another_buffer_is_not_taken_over() {
    let device = CpuBackend::new();
    let owner = device.upload(&f32s(&[1.0, 2.0])).unwrap();
    let (view, promise) = Buffer::pending(8, 0);
    promise.fill(owner.clone());
    drop(promise);
    let out = run_in(add(2), vec![(view, true), (owner.clone(), false)], None).unwrap();
    assert_eq!(device.download(&out[0]).unwrap(), f32s(&[2.0, 4.0]));
    assert_eq!(device.download(&owner).unwrap(), f32s(&[1.0, 2.0]));
}

#[test]
fn a_buffer_is_taken_over_as_soon_as_it_is_seen_to_be_ready() {
    for _ in 0..2000 {
        let (mut x, promise) = Buffer::pending(8, 0);
        let made = CpuBackend::new().upload(&f32s(&[1.0, 2.0])).unwrap();
        let run = std::thread::spawn(move || promise.fill(made));
        while !x.is_ready() {
            std::hint::spin_loop();
        }
        assert!(x.memory_mut().is_some());
        run.join().unwrap();
    }
}
#[test]
fn wrong_arguments_are_errors() {
    let device = CpuBackend::new();
    let b = |n: usize| device.upload(&vec![0; n]).unwrap();
    assert!(run_in(add(2), vec![(b(8), false)], None).is_err());
    assert!(run_in(add(2), vec![(b(8), false), (b(4), false)], None).is_err());
    assert!(run_in(add(2), vec![(b(8), false), (Buffer::pending(8, 0).0, false)], None).is_err());
    let (poisoned, promise) = Buffer::pending(8, 0);
    promise.poison(Error::Cancelled);
    assert!(matches!(run_in(add(2), vec![(b(8), false), (poisoned, false)], None), Err(Error::Cancelled)));
}
#[test]
fn arrays_of_no_elements_go_through() {
    let device = CpuBackend::new();
    let b = || device.upload(&[]).unwrap();
    assert_eq!(run_in(add(0), vec![(b(), true), (b(), false)], None).unwrap()[0].bytes(), 0);
}

struct Twice;
impl HostFn for Twice {
    fn call(&self, ins: &[&[u8]], outs: &mut [&mut [u8]]) -> Res<()> {
        outs[0].iter_mut().zip(ins[0]).for_each(|(o, x)| *o = 2 * x);
        if ins[0][0] == 0 { Err(Error::Host(Arc::new("zero"))) } else { Ok(()) }
    }
}
/// One step from input 0 to output 0.
fn one_step(d: DType, n: usize, m: usize, step: impl FnOnce(u32, u32) -> Step) -> Plan {
    let mut p = Plan::default();
    p.add_slot(d, n, 0);
    p.add_slot(d, m, 0);
    p.places = vec![Place::Input(0), Place::Output(0)];
    (p.inputs, p.outputs, p.donatable) = (vec![0], vec![1], vec![None]);
    p.steps = vec![step(0, 1)];
    p
}
#[test]
fn host_functions_get_bytes_and_their_errors_come_back() {
    let device = CpuBackend::new();
    let plan = || {
        one_step(DType::U8, 2, 2, |x, y| Step::Callback {
            call: HostCall { name: "twice".into(), f: Arc::new(Twice) },
            ins: vec![x],
            outs: vec![y],
        })
    };
    let go = |x: &[u8]| run_in(plan(), vec![(device.upload(x).unwrap(), false)], None);
    assert_eq!(device.download(&go(&[3, 4]).unwrap()[0]).unwrap(), [6, 8]);
    assert!(matches!(go(&[0, 4]), Err(Error::Host(_))));
}

#[test]
fn collectives_meet() {
    const N: usize = 3;
    let cases: [(Collective, usize, fn(usize) -> Vec<i32>); 6] = [
        (Collective::ReduceScatter(ReduceKind::Sum), 1, |i| vec![3 + 30 * i as i32]),
        (Collective::AllReduce(ReduceKind::Sum), 3, |_| vec![3, 33, 63]),
        (Collective::AllReduce(ReduceKind::Max), 3, |_| vec![2, 12, 22]),
        (Collective::AllGather, 9, |_| vec![0, 10, 20, 1, 11, 21, 2, 12, 22]),
        (Collective::AllToAll, 3, |i| [0, 1, 2].map(|j| j + 10 * i as i32).to_vec()),
        (Collective::Permute(vec![(0, 1), (1, 2)]), 3, |i| {
            if i == 0 { vec![0; 3] } else { [0, 10, 20].map(|x| x + i as i32 - 1).to_vec() }
        }),
    ];
    for (kind, m, want) in cases {
        together(N, |i, world| {
            let kind = kind.clone();
            let plan = one_step(DType::I32, 3, m, |x, y| Step::Collective {
                kind,
                across: Across::axes(["i".into()]),
                ins: vec![x],
                outs: vec![y],
            });
            let mine: Vec<u8> = [0, 10, 20].iter().flat_map(|x| (x + i as i32).to_le_bytes()).collect();
            let device = CpuBackend::new();
            let out = run_in(plan, vec![(device.upload(&mine).unwrap(), false)], Some(world)).unwrap();
            let want: Vec<u8> = want(i).iter().flat_map(|x| x.to_le_bytes()).collect();
            assert_eq!(device.download(&out[0]).unwrap(), want);
        });
    }
    let plan = one_step(DType::I32, 3, 3, |x, y| Step::Collective {
        kind: Collective::AllGather,
        across: Across::axes(["i".into()]),
        ins: vec![x],
        outs: vec![y],
    });
    assert!(run_in(plan, vec![(CpuBackend::new().zeros(12).unwrap(), false)], None).is_err());
}

/// Sums long enough to be shared among devices are those of the reference, which adds in their order.
#[test]
fn long_reductions_are_shared() {
    for (n, len) in [(2, 4096 * 2), (3, 4096 * 7 + 5), (4, 4095), (5, 4096 * 5), (3, 0)] {
        let mine = |i: usize| f32s(&(0..len).map(|k| 0.1 + (k * (i + 3) % 97) as f32 * 0.37).collect::<Vec<_>>());
        let run = |device: &(dyn Backend + Sync)| {
            together(n, |i, world| {
                let plan = one_step(DType::F32, len, len, |x, y| Step::Collective {
                    kind: Collective::AllReduce(ReduceKind::Sum),
                    across: Across::axes(["i".into()]),
                    ins: vec![x],
                    outs: vec![y],
                });
                let exe = device.compile(plan.verify().unwrap()).unwrap();
                let arg = RunArg { buffer: device.upload(&mine(i)).unwrap(), donated: false };
                let cx = RunCx { cancel: &AtomicBool::new(false), world: Some(world) };
                device.download(&exe.run(&cx, [arg].into_iter().collect()).unwrap()[0]).unwrap()
            })
        };
        assert_eq!(run(&CpuBackend::new()), run(&ReferenceBackend), "{n} devices, {len} floats");
    }
}
