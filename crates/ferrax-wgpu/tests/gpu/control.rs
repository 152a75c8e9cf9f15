//! Loops and branches: persistent kernels, and blocks that the host runs, against the reference evaluator.
use crate::examples::{Build, load};
use crate::run::{DTYPES, Noise, compare, own_gpu, run};
use ferrax_kernel::kernel::{Kernel, Node};
use ferrax_kernel::plan::{Carry, Loop, Plan, SlotId, Step, Trip, Window};
use ferrax_kernel::{Backend, Bin, DType, ReduceKind, Scalar};
use ferrax_wgpu::GpuBackend;
use std::sync::Arc;

/// `out = max x`, of at least one element.
fn maximum(b: &Build, x: SlotId, out: SlotId) -> Step {
    let (d, len) = (b.0.slots[x as usize].dtype, b.0.slots[x as usize].len);
    let nodes = vec![load(d, 0, &[1]), (d, Node::Reduce { kind: ReduceKind::Max, of: 0 })];
    let k = Kernel { rdims: [len].into(), inputs: vec![(d, len)], nodes, outputs: vec![1], ..Kernel::default() };
    Step::Kernel { kernel: Arc::new(k), ins: vec![x], outs: vec![out] }
}

/// How a loop ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Static,
    Dyn,
    While,
}

/// ```text
///     for i in 0..n:   m = max a;  a = [a + x[i], a - m, a][i];  for j in 0..3: a = min(a, w[j]);  y[i] = a ^ m
/// ```
/// where `a` has `len` elements of `d`; the windows are there where `n` is known. The plan, and what it is given.
fn generated(noise: &mut Noise, d: DType, len: usize, n: usize, end: End) -> (Plan, Vec<Vec<u8>>) {
    let mut b = Build::default();
    let integer = DType::I32;
    let (a0, bound, i0, one) = (b.input(d, len), b.input(integer, 1), b.input(integer, 1), b.input(integer, 1));
    let (xs, ws) = (b.input(d, n * len), b.input(d, 3 * len));
    let (a_out, i_out, ys) = (b.output(d, len), b.output(integer, 1), b.output(d, n * len));
    let (a, i) = (b.carry(d, len, a0, a_out), b.carry(integer, 1, i0, i_out));
    let (m, inner, least, y) = (b.temp(d, 1), b.temp(d, len), b.temp(d, len), b.window(d, len));
    let x = if end == End::Static { b.window(d, len) } else { a0 };
    let m_or_a = if len > 0 { m } else { a.slot };
    let (plus, minus) =
        if d == DType::Bool { (Bin::Or, Bin::And) } else { (Bin::Add, if d.is_float() { Bin::Sub } else { Bin::Xor }) };
    let branches = vec![
        vec![b.binary(plus, a.slot, x, inner)],
        vec![b.binary(minus, a.slot, m_or_a, inner)],
        vec![Step::Copy { from: a.slot, to: inner }],
    ];
    let carry = b.carry(d, len, inner, least);
    let w = b.window(d, len);
    let floor = if d == DType::Bool { Bin::Xor } else { Bin::Min };
    let inner_loop = Loop {
        trip: Trip::Static(3),
        reverse: noise.below(2) == 0,
        body: vec![b.binary(floor, carry.slot, w, carry.next)],
        carries: vec![carry],
        xs: vec![Window { all: ws, each: w }],
        ys: vec![],
        count: None,
    };
    let mut body = vec![];
    if len > 0 {
        body.push(maximum(&b, a.slot, m));
    }
    body.extend([
        Step::Switch { index: i.slot, branches, outs: vec![inner] },
        Step::Loop(Box::new(inner_loop)),
        Step::Copy { from: least, to: a.next },
        b.binary(Bin::Add, i.slot, one, i.next),
    ]);
    let (mut moved, mut made) = (vec![], vec![]);
    if end == End::Static {
        body.push(b.binary(minus, least, m_or_a, y));
        moved.push(Window { all: xs, each: x });
        made.push(Window { all: ys, each: y });
    }
    let pred = b.temp(DType::Bool, 1);
    let trip = match end {
        End::Static => Trip::Static(n),
        End::Dyn => Trip::Dyn(bound),
        End::While => Trip::While { cond: vec![b.binary(Bin::Lt, i.slot, bound, pred)], pred },
    };
    let count = b.output(integer, 1);
    let reverse = end == End::Static && noise.below(2) == 0;
    let outer = Loop { trip, reverse, carries: vec![a, i], xs: moved, ys: made, count: Some(count), body };
    b.0.steps = vec![Step::Loop(Box::new(outer))];
    if end != End::Static {
        b.0.steps.push(b.constant(Scalar::zero(d), ys));
    }
    let number = |x: usize| (x as i32).to_le_bytes().to_vec();
    let arrays =
        [noise.values(d, len), number(n), number(0), number(1), noise.values(d, n * len), noise.values(d, 3 * len)];
    (b.0, arrays.into())
}

fn dispatches(gpu: &GpuBackend, plan: &Plan, ins: &[Vec<u8>]) -> (Vec<Vec<u8>>, u64, u64) {
    let before = gpu.counts();
    let outs = run(gpu, plan.clone(), ins).unwrap();
    let after = gpu.counts().since(before);
    (outs, after.dispatches, after.downloads - plan.outputs.len() as u64)
}

#[test]
fn blocks_of_any_sizes_and_dtypes_have_the_values_of_the_reference() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(71);
    for end in [End::Static, End::Dyn, End::While] {
        for d in DTYPES {
            for len in [0, 1, 3, 7, 64, 255, 257, 1023, 1025, 4096, 4099] {
                if noise.below(3) > 0 {
                    continue;
                }
                let n = [0, 1, 2, 5][noise.below(4)];
                let (plan, ins) = generated(&mut noise, d, len, n, end);
                compare(&gpu, &format!("{end:?}, {n} of {len} {d}"), plan, &ins, 0.0, 0.0);
            }
        }
    }
}

#[test]
fn a_loop_over_small_blocks_is_one_dispatch() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(72);
    for (end, reads) in [(End::Static, 0), (End::Dyn, 1), (End::While, 1)] {
        for (d, len) in [(DType::F32, 64), (DType::BF16, 33), (DType::I8, 1000), (DType::F32, 4096)] {
            let (plan, ins) = generated(&mut noise, d, len, 5, end);
            let constants = u64::from(end != End::Static);
            let (_, dispatches, downloads) = dispatches(&gpu, &plan, &ins);
            assert_eq!((dispatches, downloads), (1 + constants, reads), "{end:?} of {len} {d}");
        }
    }
}

/// `for i in ..n: a = a + 1`, of one element.
fn counting(n: usize, end: End) -> (Plan, Vec<Vec<u8>>) {
    let mut b = Build::default();
    let d = DType::I32;
    let (zero, one, bound) = (b.input(d, 1), b.input(d, 1), b.input(d, 1));
    let (out, count) = (b.output(d, 1), b.output(d, 1));
    let Carry { init, slot, next, out } = b.carry(d, 1, zero, out);
    let pred = b.temp(DType::Bool, 1);
    let trip = match end {
        End::Static => Trip::Static(n),
        End::Dyn => Trip::Dyn(bound),
        End::While => Trip::While { cond: vec![b.binary(Bin::Lt, slot, bound, pred)], pred },
    };
    let body = vec![b.binary(Bin::Add, slot, one, next)];
    let carries = vec![Carry { init, slot, next, out }];
    let l = Loop { trip, reverse: false, carries, xs: vec![], ys: vec![], count: Some(count), body };
    b.0.steps = vec![Step::Loop(Box::new(l))];
    let ins = [0, 1, n as i32].map(|x| x.to_le_bytes().to_vec());
    (b.0, ins.into())
}

#[test]
fn long_loops_are_cut_into_dispatches() {
    let Some(gpu) = own_gpu(None) else { return };
    for end in [End::Static, End::Dyn, End::While] {
        for n in [1, 100, 4095, 4096, 4097, 8192, 20_000] {
            let (plan, ins) = counting(n, end);
            let (outs, dispatches, _) = dispatches(&gpu, &plan, &ins);
            let expected = (n as i32).to_le_bytes().to_vec();
            assert_eq!(outs, [expected.clone(), expected], "{end:?} {n}");
            // a software adapter takes fewer iterations at once
            let (least, most) = ((n as u64).div_ceil(4096), (n as u64).div_ceil(256) + 1);
            assert!((least..=most).contains(&dispatches), "{end:?} {n}: {dispatches}");
        }
    }
}

#[test]
fn an_endless_loop_is_interrupted() {
    let Some(gpu) = own_gpu(None) else { return };
    let (plan, ins) = counting(i32::MAX as usize, End::While);
    let made = gpu.compile(plan.verify().unwrap()).unwrap();
    let cancel = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let args = ins.iter().map(|b| ferrax_kernel::backend::RunArg { buffer: gpu.upload(b).unwrap(), donated: false });
    let args = args.collect();
    let before = gpu.counts().dispatches;
    let error = std::thread::scope(|s| {
        s.spawn(|| {
            while gpu.counts().dispatches < before + 2 {
                std::thread::yield_now();
            }
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        made.run(&ferrax_kernel::RunCx { cancel: &cancel, world: None }, args).err()
    });
    assert!(matches!(error, Some(ferrax_kernel::Error::Cancelled)), "{error:?}");
}
