//! What other GPU projects stumbled over, and what this backend promises about control, memory and failure.
use crate::examples::{self, Build, Example, f32s, i32s, load};
use crate::run::{DTYPES, Noise, compare, gpu, kernel_plan, own_gpu, run, run_in};
use ferrax_kernel::backend::{RunArg, World};
use ferrax_kernel::kernel::{Affine, Guard, Kernel, Node};
use ferrax_kernel::plan::{Across, Carry, Collective, HostCall, HostFn, Loop, Place, Step, Trip, Window};
use ferrax_kernel::reference::{ReferenceBackend, together};
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Backend, Bin, Buffer, DType, Dims, Error, ReduceKind, Res, Routine, RunCx, Scalar, Un};
use ferrax_wgpu::Counts;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[test]
fn control_steps_compute_what_they_say() {
    let Some(gpu) = gpu() else { return };
    for Example { name, plan, ins, outs } in examples::all() {
        assert_eq!(run(&*gpu, plan, &ins).unwrap_or_else(|e| panic!("{name}: {e}")), outs, "{name}");
    }
}

#[test]
fn a_cancelled_run_says_so() {
    let Some(gpu) = gpu() else { return };
    for Example { plan, ins, .. } in examples::all() {
        assert!(matches!(run_in(&*gpu, plan, &ins, true, None), Err(Error::Cancelled)));
    }
}

fn copy_of(len: usize, offset: i64) -> Kernel {
    let nodes = vec![
        load(DType::U32, 0, &[1]),
        (DType::U32, Node::Index(Affine::new(offset, [1]))),
        (DType::U32, Node::Bin(Bin::Add, 0, 1)),
    ];
    Kernel { grid: [len].into(), rdims: Dims::default(), inputs: vec![(DType::U32, len)], nodes, outputs: vec![2] }
}

/// A device that allows few workgroups in a dimension folds as a large array does on a real one.
#[test]
fn dispatches_beyond_one_dimension() {
    let Some(mut limits) = own_gpu(None).map(|_| ferrax_wgpu::adapters()[0].limits()) else { return };
    limits.max_compute_workgroups_per_dimension = 7;
    let gpu = own_gpu(Some(limits)).unwrap();
    for len in [7 * 256 - 1, 7 * 256, 7 * 256 + 1, 49 * 256 - 3] {
        compare(&gpu, "a folded grid", kernel_plan(&copy_of(len, 3)), &[Noise(21).bits(DType::U32, len)], 0.0, 0.0);
    }
}

#[test]
fn arrays_beyond_65535_workgroups() {
    let Some(gpu) = gpu() else { return };
    for len in [65535 * 256 - 1, 65535 * 256 + 1, (1 << 24) + 1] {
        let k = copy_of(len, 5);
        let x: Vec<u8> = (0..len as u32).flat_map(|i| (7 * i).to_le_bytes()).collect();
        let out = run(&*gpu, kernel_plan(&k), &[x]).unwrap();
        let right = out[0]
            .chunks_exact(4)
            .zip(0u32..)
            .all(|(b, i)| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) == (8 * i) + 5);
        assert!(right, "{len}");
    }
}

#[test]
fn the_least_limits_of_webgpu_are_enough() {
    let Some(_) = gpu() else { return };
    let adapter = &ferrax_wgpu::adapters()[0];
    let limits = wgpu::Limits { max_compute_invocations_per_workgroup: 128, ..wgpu::Limits::downlevel_defaults() };
    let gpu = ferrax_wgpu::GpuBackend::open(adapter, Some(limits), Arc::new(ReferenceBackend)).unwrap();
    let n = 3000;
    let nodes = vec![load(DType::F32, 0, &[n as i64, 1]), (DType::F32, Node::Reduce { kind: ReduceKind::Max, of: 0 })];
    let k = Kernel { grid: [9].into(), rdims: [n].into(), inputs: vec![(DType::F32, 9 * n)], nodes, outputs: vec![1] };
    compare(&gpu, "a reduction", kernel_plan(&k), &[Noise(22).values(DType::F32, 9 * n)], 0.0, 0.0);
    let r = Routine::Sort { outer: 2, n: 700, inner: 1, dtypes: vec![DType::F32], num_keys: 1 };
    compare(&gpu, "a sort", crate::run::routine_plan(&r), &[Noise(23).values(DType::F32, 1400)], 0.0, 0.0);
}

/// Concatenation of 40 arrays, of every width, on a device that binds 8 buffers; and 12 outputs.
#[test]
fn more_operands_than_bindings() {
    let Some(_) = gpu() else { return };
    let adapter = &ferrax_wgpu::adapters()[0];
    let gpu = ferrax_wgpu::GpuBackend::open(
        adapter,
        Some(wgpu::Limits { max_storage_buffers_per_shader_stage: 8, ..adapter.limits() }),
        Arc::new(ReferenceBackend),
    )
    .unwrap();
    for d in DTYPES {
        let mut nodes = vec![load(d, 0, &[1])];
        for i in 1..40 {
            nodes.push(load(d, i, &[1]));
            let (p, x) = (nodes.len() as u32 - 2, nodes.len() as u32 - 1);
            let f = if d == DType::Bool { Bin::Xor } else { Bin::Max };
            nodes.push((d, Node::Bin(f, if i == 1 { 0 } else { p }, x)));
        }
        let outputs = (0..12).map(|o| 2 + 6 * o).collect();
        let k = Kernel { grid: [11].into(), rdims: Dims::default(), inputs: vec![(d, 11); 40], nodes, outputs };
        let mut noise = Noise(24);
        let ins: Vec<_> = (0..40).map(|_| noise.values(d, 11)).collect();
        compare(&gpu, &format!("40 operands of {d}"), kernel_plan(&k), &ins, 0.0, 0.0);
    }
}

#[test]
fn empty_arrays_need_no_device_work() {
    let Some(gpu) = own_gpu(None) else { return };
    let before = gpu.counts();
    for d in DTYPES {
        let k = Kernel {
            grid: [3, 0].into(),
            rdims: Dims::default(),
            inputs: vec![(d, 0)],
            nodes: vec![load(d, 0, &[0, 1])],
            outputs: vec![0],
        };
        assert_eq!(run(&gpu, kernel_plan(&k), &[vec![]]).unwrap(), [[0_u8; 0]]);
    }
    assert_eq!(gpu.counts().dispatches, before.dispatches);
}

#[test]
fn buffers_above_the_limit_are_an_error() {
    let Some(_) = gpu() else { return };
    let adapter = &ferrax_wgpu::adapters()[0];
    let limits =
        wgpu::Limits { max_buffer_size: 1 << 20, max_storage_buffer_binding_size: 1 << 20, ..adapter.limits() };
    let gpu = ferrax_wgpu::GpuBackend::open(adapter, Some(limits), Arc::new(ReferenceBackend)).unwrap();
    assert!(run(&gpu, kernel_plan(&copy_of(1 << 18, 0)), &[vec![0; 1 << 20]]).is_ok());
    assert!(matches!(gpu.upload(&vec![0; (1 << 20) + 4]), Err(Error::OutOfMemory(_))));
    assert!(matches!(run(&gpu, kernel_plan(&copy_of((1 << 18) + 1, 0)), &[]), Err(Error::OutOfMemory(_))));
    // And the device works on.
    assert!(run(&gpu, kernel_plan(&copy_of(5, 0)), &[vec![0; 20]]).is_ok());
}

#[test]
fn a_lost_device_takes_its_arrays_and_is_opened_anew() {
    let Some(gpu) = own_gpu(None) else { return };
    let b = gpu.upload(&[1, 2, 3, 4]).unwrap();
    let run_it = gpu.compile(kernel_plan(&copy_of(1, 0)).verify().unwrap()).unwrap();
    let cancel = AtomicBool::new(false);
    let run = |b: Buffer| {
        run_it
            .run(&RunCx { cancel: &cancel, world: None }, [RunArg { buffer: b, donated: false }].into_iter().collect())
    };
    let made = run(b.clone()).unwrap().remove(0);
    gpu.lose();
    for e in [
        gpu.download(&b).err(),
        gpu.download(&made).err(),
        run(b).err(),
        made.memory().unwrap().wait(&mut || Ok(())).err(),
    ] {
        assert!(matches!(&e, Some(Error::Device(e)) if e.contains("is lost")), "{e:?}");
    }
    // The compiled program runs again, on arrays that are uploaded again.
    let b = gpu.upload(&[5, 6, 7, 8]).unwrap();
    assert_eq!(gpu.download(&run(b).unwrap()[0]).unwrap(), [5, 6, 7, 8]);
    assert!(run(made).is_err());
}

#[test]
fn devices_are_opened_at_first_use() {
    let Some(_) = gpu() else { return };
    let gpu = ferrax_wgpu::GpuBackend::closed(ferrax_wgpu::adapters().remove(0), None, Arc::new(ReferenceBackend));
    assert!(!gpu.description().is_empty() && gpu.supports(DType::F32) && !gpu.is_open());
    assert_eq!(gpu.memory_stats().unwrap().in_use, 0);
    let b = gpu.upload(&[0; 4000]).unwrap();
    assert!(gpu.is_open());
    let stats = gpu.memory_stats().unwrap();
    assert!(stats.in_use >= 4000 && stats.peak >= stats.in_use && stats.requests == 1, "{stats:?}");
    drop(b);
    let stats = gpu.memory_stats().unwrap();
    assert!(stats.in_use == 0 && stats.kept >= 4000, "{stats:?}");
}

/// A product that keeps lavapipe busy for a second or so, a hardware GPU for a moment.
fn long_work(gpu: &ferrax_wgpu::GpuBackend, n: usize) -> Buffer {
    let d =
        Dot { b: 1, m: n, n, k: n, lhs: [0, n as i64, 1], rhs: [0, n as i64, 1], dtype: DType::F32, out: DType::F32 };
    let run_it = gpu.compile(crate::run::routine_plan(&Routine::Dot(d)).verify().unwrap()).unwrap();
    let arg = || RunArg { buffer: gpu.zeros(4 * n * n).unwrap(), donated: false };
    let cancel = AtomicBool::new(false);
    run_it.run(&RunCx { cancel: &cancel, world: None }, [arg(), arg()].into_iter().collect()).unwrap().remove(0)
}

#[test]
fn long_work_is_cut_and_completion_is_a_state() {
    let Some(gpu) = own_gpu(None) else { return };
    let before = gpu.counts().submissions;
    let y = long_work(&gpu, 512);
    let m = y.memory().unwrap();
    m.wait(&mut || Ok(())).unwrap();
    assert!(m.is_done() && y.is_done());
    // a billion operations are more than software does in one submission's time
    if ferrax_wgpu::adapters()[0].get_info().device_type == wgpu::DeviceType::Cpu {
        assert!(gpu.counts().submissions - before > 4, "{:?}", gpu.counts());
    }
    assert_eq!(gpu.download(&y).unwrap(), vec![0; 4 * 512 * 512]);
}

#[test]
fn a_wait_is_told_to_stop() {
    let Some(gpu) = own_gpu(None) else { return };
    let y = long_work(&gpu, 512);
    let stop = &mut || Err(Error::Cancelled);
    for stopped in [gpu.read(&y, stop).err(), y.memory().unwrap().wait(stop).err(), gpu.drain(stop).err()] {
        // or it ended before the cancel
        assert!(matches!(stopped, None | Some(Error::Cancelled)), "{stopped:?}");
    }
    // And the device works on.
    assert_eq!(gpu.download(&y).unwrap(), vec![0; 4 * 512 * 512]);
}

#[test]
fn bytes_of_any_length_come_back() {
    let Some(gpu) = gpu() else { return };
    for n in [0, 1, 2, 3, 4, 5, 7, 8, 255, 256, 257, 100_003] {
        let x: Vec<u8> = (0..n).map(|i| (i * 7 + 3) as u8).collect();
        assert_eq!(gpu.download(&gpu.upload(&x).unwrap()).unwrap(), x);
        assert_eq!(gpu.download(&gpu.zeros(n).unwrap()).unwrap(), vec![0; n]);
    }
    let other = ferrax_kernel::reference::ReferenceBackend.upload(&[1]).unwrap();
    assert!(matches!(gpu.download(&other), Err(Error::Invalid(_))));
}

/// `tanh`, `logistic` and related functions do not overflow on the way; nan and infinities come through.
#[test]
fn ends_of_domains() {
    let Some(gpu) = gpu() else { return };
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let x = f32s(&[
        0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 20.0, -20.0, 88.0, -88.0, 100.0, -100.0, 1e10, -1e10, 1e30, 3e38, 1e-30,
        0.5, 2.0,
    ]);
    for f in Un::ALL {
        if ferrax_kernel::reference::un(*f, Scalar::f32(1.0)).is_ok() && *f != Un::IsFinite {
            let nodes = vec![load(DType::F32, 0, &[1]), (DType::F32, Node::Un(*f, 0))];
            let k = Kernel {
                grid: [20].into(),
                rdims: Dims::default(),
                inputs: vec![(DType::F32, 20)],
                nodes,
                outputs: vec![1],
            };
            compare(&*gpu, f.name(), kernel_plan(&k), std::slice::from_ref(&x), 64.0, 1e-3);
        }
    }
}

#[test]
fn powers_at_their_special_cases() {
    let Some(gpu) = gpu() else { return };
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let edge = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan, -8.0, 3.0, 0.5, 2.0, -2.0, 1.0 / 3.0];
    let (x, y): (Vec<f32>, Vec<f32>) = edge.iter().flat_map(|x| edge.iter().map(|y| (*x, *y))).unzip();
    for f in [Bin::Pow, Bin::Atan2] {
        let k = examples::binary(f, DType::F32, x.len(), [x.len(), x.len()]);
        compare(&*gpu, f.name(), kernel_plan(&k), &[f32s(&x), f32s(&y)], 16.0, 1e-3);
    }
}

fn counted(gpu: &ferrax_wgpu::GpuBackend, plan: ferrax_kernel::Plan, ins: &[Vec<u8>]) -> Counts {
    let executable = gpu.compile(plan.verify().unwrap()).unwrap();
    let args = |donated| ins.iter().map(|b| RunArg { buffer: gpu.upload(b).unwrap(), donated }).collect();
    let cancel = AtomicBool::new(false);
    let cx = RunCx { cancel: &cancel, world: None };
    drop(executable.run(&cx, args(false)).unwrap());
    let (args, before) = (args(false), gpu.counts());
    let made = executable.run(&cx, args).unwrap();
    made.iter().for_each(|b| b.memory().unwrap().wait(&mut || Ok(())).unwrap());
    gpu.counts().since(before)
}

#[test]
fn a_chain_is_one_dispatch_and_a_run_one_submission() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut nodes = vec![load(DType::F32, 0, &[1])];
    for i in 0..20 {
        nodes.push((DType::F32, Node::Bin(Bin::Add, i, 0)));
    }
    let chain = Kernel {
        grid: [100].into(),
        rdims: Dims::default(),
        inputs: vec![(DType::F32, 100)],
        nodes,
        outputs: vec![20],
    };
    let cost = |c: Counts| [c.dispatches, c.submissions, c.waits, c.error_scopes, c.buffers, c.pipelines, c.host_steps];
    assert_eq!(cost(counted(&gpu, kernel_plan(&chain), &[vec![0; 400]])), [1, 1, 1, 1, 0, 0, 0]);
    // Three kernels of one shape share a pipeline, and no copy is made between them.
    let mut b = Build::default();
    let (x, y) = (b.input(DType::F32, 8), b.output(DType::F32, 8));
    let (s, t, u) = (b.temp(DType::F32, 8), b.temp(DType::F32, 8), b.temp(DType::F32, 8));
    b.0.steps = vec![
        b.binary(Bin::Add, x, x, s),
        b.binary(Bin::Add, s, s, t),
        Step::Copy { from: t, to: u },
        b.binary(Bin::Add, u, t, y),
    ];
    let before = gpu.counts().pipelines;
    assert_eq!(cost(counted(&gpu, b.0, &[vec![0; 32]])), [3, 1, 1, 1, 0, 0, 0]);
    assert!(gpu.counts().pipelines <= before + 3);
}

/// Short runs are submitted together, and results wait for what made them.
#[test]
fn short_runs_share_a_submission() {
    let Some(gpu) = own_gpu(None) else { return };
    let len = 64;
    let executable = gpu.compile(kernel_plan(&copy_of(len, 1)).verify().unwrap()).unwrap();
    let cancel = AtomicBool::new(false);
    let mut x = gpu.upload(&vec![0; 4 * len]).unwrap();
    let before = gpu.counts();
    for _ in 0..100 {
        let arg = RunArg { buffer: x, donated: false };
        x = executable.run(&RunCx { cancel: &cancel, world: None }, [arg].into_iter().collect()).unwrap().remove(0);
        // an upload is not overtaken by what is recorded: it gets no memory that commands still read
        let other = gpu.upload(&vec![255; 4 * len]).unwrap();
        drop(other);
    }
    assert!(gpu.counts().since(before).submissions <= 100 / 16, "{:?}", gpu.counts().since(before));
    x.memory().unwrap().wait(&mut || Ok(())).unwrap();
    assert!(x.is_done());
    let expected: Vec<u8> = (0..len as u32).flat_map(|i| (100 * (i + 1)).to_le_bytes()).collect();
    assert_eq!(gpu.download(&x).unwrap(), expected);
}

/// Maps of one dimension are one pipeline for all sizes and constants.
#[test]
fn sizes_share_a_pipeline() {
    let Some(gpu) = own_gpu(None) else { return };
    for d in [DType::F32, DType::U8] {
        let map = |n: usize, by: f64| {
            let mut shifted = load(d, 0, &[1]);
            if let Node::Load(a) = &mut shifted.1 {
                a.at.offset = -(by as i64);
                a.guards = vec![Guard { at: Affine::new(0, [1]), lo: by as i64, hi: n as i64 }].into();
            }
            let nodes = vec![shifted, (d, Node::Const(Scalar::from_f64(d, by))), (d, Node::Bin(Bin::Add, 0, 1))];
            Kernel { grid: [n].into(), rdims: Dims::default(), inputs: vec![(d, n)], nodes, outputs: vec![2] }
        };
        // a pipeline lives as long as a program that has it
        let _first = gpu.compile(kernel_plan(&map(2, 1.0)).verify().unwrap()).unwrap();
        let before = gpu.counts().pipelines;
        for n in [2, 3, 4, 5, 63, 64, 65, 1000, 4097] {
            let by = if d == DType::F32 { (n % 7 + 1) as f64 } else { 1.0 };
            compare(&gpu, &format!("{n} {d}"), kernel_plan(&map(n, by)), &[Noise(43).values(d, n)], 0.0, 0.0);
        }
        assert_eq!(gpu.counts().pipelines, before);
    }
}

/// More elements than a loop in one dispatch takes: the host dispatches each iteration.
#[test]
fn iterations_allocate_nothing() {
    let Some(gpu) = own_gpu(None) else { return };
    let plan = |n: usize| {
        let mut b = Build::default();
        let (x, out) = (b.input(DType::F32, 10_000), b.output(DType::F32, 10_000));
        let carry = b.carry(DType::F32, 10_000, x, out);
        let t = b.temp(DType::F32, 10_000);
        let body = vec![b.binary(Bin::Add, carry.slot, carry.slot, t), b.binary(Bin::Mul, t, carry.slot, carry.next)];
        let l = Loop {
            trip: Trip::Static(n),
            reverse: false,
            carries: vec![carry],
            xs: vec![],
            ys: vec![],
            count: None,
            body,
        };
        b.0.steps = vec![Step::Loop(Box::new(l))];
        b.0
    };
    let (few, many) = (counted(&gpu, plan(3), &[vec![0; 40_000]]), counted(&gpu, plan(50), &[vec![0; 40_000]]));
    assert_eq!((few.dispatches, many.dispatches), (6, 100));
    assert_eq!((few.buffers, many.buffers), (0, 0));
    assert_eq!(many.submissions, 1);
}

/// A loop that writes one element of its carry each time does not copy the carry.
#[test]
fn updates_in_a_loop_are_in_place() {
    let Some(gpu) = own_gpu(None) else { return };
    for d in [DType::F32, DType::U8] {
        let (n, len) = (20, 1000);
        let mut b = Build::default();
        let (x, i0, one) = (b.input(d, len), b.input(DType::I32, 1), b.input(DType::I32, 1));
        let (out, i_out) = (b.output(d, len), b.output(DType::I32, 1));
        let slot = b.temp(d, len);
        let next = b.slot(d, len, Place::Same(slot));
        let carry = Carry { init: x, slot, next, out };
        let i = b.carry(DType::I32, 1, i0, i_out);
        let update = b.temp(d, 1);
        let convert = Kernel {
            grid: [1].into(),
            rdims: Dims::default(),
            inputs: vec![(DType::I32, 1)],
            nodes: vec![load(DType::I32, 0, &[1]), (d, Node::Convert(0))],
            outputs: vec![1],
        };
        let put = Routine::DynamicUpdateSlice {
            operand: [len].into(),
            update: [1].into(),
            dtype: d,
            index_dtype: DType::I32,
        };
        let body = vec![
            Step::Kernel { kernel: Arc::new(convert), ins: vec![i.slot], outs: vec![update] },
            Step::Routine { routine: Arc::new(put), ins: vec![slot, update, i.slot], outs: vec![next] },
            b.binary(Bin::Add, i.slot, one, i.next),
        ];
        let l = Loop {
            trip: Trip::Static(n),
            reverse: false,
            carries: vec![carry, i],
            xs: vec![],
            ys: vec![],
            count: None,
            body,
        };
        b.0.steps = vec![Step::Loop(Box::new(l))];
        let ins = [vec![0; len * d.size()], i32s(&[3]), i32s(&[1])];
        let counts = counted(&gpu, b.0.clone(), &ins);
        // Two for each, since the update is converted where it is read, and one copy of the input.
        assert_eq!(counts.dispatches, 2 * n as u64 + 1);
        compare(&gpu, "a loop of updates", b.0, &ins, 0.0, 0.0);
    }
}

#[test]
fn windows_of_bytes_share_words() {
    let Some(gpu) = gpu() else { return };
    for d in DTYPES {
        for reverse in [false, true] {
            let mut b = Build::default();
            let xs = b.input(d, 5 * 3);
            let ys = b.output(d, 5 * 3);
            let (x, y) = (b.window(d, 3), b.window(d, 3));
            let f = if d == DType::Bool { Bin::Xor } else { Bin::Add };
            let body = vec![b.binary(f, x, x, y)];
            let (xs, ys) = (vec![Window { all: xs, each: x }], vec![Window { all: ys, each: y }]);
            let l = Loop { trip: Trip::Static(5), reverse, carries: vec![], xs, ys, count: None, body };
            b.0.steps = vec![Step::Loop(Box::new(l))];
            compare(&*gpu, &format!("rows of {d}"), b.0, &[Noise(25).values(d, 15)], 0.0, 0.0);
        }
    }
}

#[test]
fn donated_buffers_are_updated_in_place() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut b = Build::default();
    let (x, u, i) = (b.input(DType::F32, 64), b.input(DType::F32, 1), b.input(DType::I32, 1));
    let y = b.output(DType::F32, 64);
    b.0.donatable = vec![Some(0)];
    let put = Routine::DynamicUpdateSlice {
        operand: [64].into(),
        update: [1].into(),
        dtype: DType::F32,
        index_dtype: DType::I32,
    };
    b.0.steps = vec![Step::Routine { routine: Arc::new(put), ins: vec![x, u, i], outs: vec![y] }];
    let executable = gpu.compile(b.0.verify().unwrap()).unwrap();
    for (donated, dispatches) in [(false, 2), (true, 1)] {
        let given = gpu.upload(&f32s(&[1.0; 64])).unwrap();
        let kept = (!donated).then(|| given.clone());
        let rest = [f32s(&[7.0]), i32s(&[9])].map(|b| RunArg { buffer: gpu.upload(&b).unwrap(), donated: false });
        let args = [RunArg { buffer: given, donated }].into_iter().chain(rest).collect();
        let before = gpu.counts().dispatches;
        let out = executable.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args).unwrap();
        assert_eq!(gpu.counts().dispatches - before, dispatches);
        let mut expected = [1.0; 64];
        expected[9] = 7.0;
        assert_eq!(gpu.download(&out[0]).unwrap(), f32s(&expected));
        if let Some(kept) = kept {
            assert_eq!(gpu.download(&kept).unwrap(), f32s(&[1.0; 64]));
        }
    }
}

struct Reverse;
impl HostFn for Reverse {
    fn call(&self, ins: &[&[u8]], outs: &mut [&mut [u8]]) -> Res<()> {
        outs[0].copy_from_slice(ins[0]);
        outs[0].reverse();
        Ok(())
    }
}

#[test]
fn callbacks_see_what_was_computed() {
    let Some(gpu) = gpu() else { return };
    let mut b = Build::default();
    let (x, y) = (b.input(DType::U8, 5), b.output(DType::U8, 5));
    let (s, t) = (b.temp(DType::U8, 5), b.temp(DType::U8, 5));
    let call = HostCall { name: "reverse".into(), f: Arc::new(Reverse) };
    b.0.steps = vec![
        b.binary(Bin::Add, x, x, s),
        Step::Callback { call, ins: vec![s], outs: vec![t] },
        b.binary(Bin::Add, t, x, y),
    ];
    assert_eq!(run(&*gpu, b.0, &[vec![1, 2, 3, 4, 5]]).unwrap(), [[11, 10, 9, 8, 7]]);
}

#[test]
fn collectives_combine_on_the_device() {
    let Some(gpu) = gpu() else { return };
    let collect = |kind: Collective, out: usize| {
        let one = |rank: usize, world: &dyn World| {
            let mut b = Build::default();
            let (x, y) = (b.input(DType::I32, 3), b.output(DType::I32, out));
            let ins = if kind == Collective::AxisIndex { vec![] } else { vec![x] };
            b.0.steps =
                vec![Step::Collective { kind: kind.clone(), across: Across::axes(["i".into()]), ins, outs: vec![y] }];
            let mine = [1, 2, 3].map(|v| v * [10, 1, 30][rank]);
            run_in(&*gpu, b.0, &[i32s(&mine)], false, Some(world)).unwrap().remove(0)
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

/// Several threads on one device: none reads another's memory.
#[test]
fn threads_share_a_device() {
    let Some(gpu) = gpu() else { return };
    let plan = kernel_plan(&copy_of(5000, 1)).verify().unwrap();
    let executable = gpu.compile(plan).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (gpu, executable) = (&gpu, &executable);
            scope.spawn(move || {
                for round in 0..20u32 {
                    let x: Vec<u8> = (0..5000u32).flat_map(|i| (i * thread + round).to_le_bytes()).collect();
                    let arg = RunArg { buffer: gpu.upload(&x).unwrap(), donated: false };
                    let out = executable
                        .run(&RunCx { cancel: &AtomicBool::new(false), world: None }, [arg].into_iter().collect())
                        .unwrap();
                    let expected: Vec<u8> =
                        (0..5000u32).flat_map(|i| (i * thread + round + i + 1).to_le_bytes()).collect();
                    assert_eq!(gpu.download(&out[0]).unwrap(), expected);
                }
            });
        }
    });
}

#[test]
fn text_shows_the_shaders() {
    let Some(gpu) = gpu() else { return };
    let text = gpu.compile(kernel_plan(&copy_of(5000, 1)).verify().unwrap()).unwrap().text();
    assert!(text.contains("kernel [0] -> [1]: 1 passes") && text.contains("fn main("), "{text}");
}
