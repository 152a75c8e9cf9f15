//! Row programs: steps over the same rows in one pass have the bits that they have one by one.
use crate::examples::{Build, load};
use crate::run::{Noise, kernel_plan, own_gpu, run};
use ferrax_kernel::backend::RunArg;
use ferrax_kernel::kernel::{Kernel, Node};
use ferrax_kernel::plan::{Plan, Step};
use ferrax_kernel::{Backend, Bin, DType, Dims, ReduceKind, RunCx, Un};
use ferrax_wgpu::GpuBackend;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The results of the steps, each run as a plan of its own.
fn one_by_one(gpu: &GpuBackend, plan: &Plan, ins: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut known: HashMap<u32, Vec<u8>> = plan.inputs.iter().copied().zip(ins.iter().cloned()).collect();
    for step in &plan.steps {
        let Step::Kernel { kernel, ins, outs } = step else { unreachable!("all are kernels") };
        let operands: Vec<Vec<u8>> = ins.iter().map(|s| known[s].clone()).collect();
        known.extend(outs.iter().copied().zip(run(gpu, kernel_plan(kernel), &operands).unwrap()));
    }
    plan.outputs.iter().map(|o| known[o].clone()).collect()
}

/// The results of the plan, and how many passes it has.
pub fn at_once(gpu: &GpuBackend, plan: &Plan, ins: &[Vec<u8>]) -> (Vec<Vec<u8>>, usize) {
    let made = gpu.compile(plan.clone().verify().unwrap()).unwrap();
    let args = ins.iter().map(|b| RunArg { buffer: gpu.upload(b).unwrap(), donated: false }).collect();
    let outs = made.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args).unwrap();
    let passes = made.text().matches("fn main(").count();
    (outs.iter().map(|b| gpu.download(b).unwrap()).collect(), passes)
}

fn kernel(grid: &[usize], rdims: &[usize], inputs: Vec<(DType, usize)>, nodes: Vec<(DType, Node)>) -> Arc<Kernel> {
    let outputs = vec![nodes.len() as u32 - 1];
    Arc::new(Kernel { grid: Dims::new(grid), rdims: Dims::new(rdims), inputs, nodes, outputs })
}

/// `m = reduce x;  e = f(x, m);  s = reduce e;  t = -s;  y = g(e, t)`, where some of m, e, s are results too.
fn chain(noise: &mut Noise, d: DType, [rows, n]: [usize; 2], kinds: [ReduceKind; 2]) -> Plan {
    let mut b = Build::default();
    let slot = |b: &mut Build, len: usize, seen: bool| if seen { b.output(d, len) } else { b.temp(d, len) };
    let x = b.input(d, rows * n);
    let m = slot(&mut b, rows, noise.below(3) == 0);
    let e = slot(&mut b, rows * n, noise.below(3) == 0);
    let s = slot(&mut b, rows, noise.below(3) == 0);
    let t = slot(&mut b, rows, false);
    let y = slot(&mut b, rows * n, true);
    let (width, acc) = (n as i64, d.lane());
    // split dimensions, as programs have them
    let split = |dims: &[usize], strides: &[i64]| -> (Vec<usize>, Vec<i64>) {
        if rows % 2 == 1 {
            return (dims.to_vec(), strides.to_vec());
        }
        let (dims, strides) =
            ([&[rows / 2, 2], &dims[1..]].concat(), [&[2 * strides[0], strides[0]], &strides[1..]].concat());
        (dims, strides)
    };
    let reduce = |kind: ReduceKind, of: u32, to: u32| {
        let nodes = vec![
            load(d, 0, &[width, 1]),
            (acc, Node::Convert(0)),
            (acc, Node::Reduce { kind, of: 1 }),
            (d, Node::Convert(2)),
        ];
        Step::Kernel { kernel: kernel(&[rows], &[n], vec![(d, rows * n)], nodes), ins: vec![of], outs: vec![to] }
    };
    let map = |f: Bin, all: u32, each: u32, to: u32| {
        let (grid, dense) = split(&[rows, n], &[width, 1]);
        let (_, of_row) = split(&[rows, n], &[1, 0]);
        let nodes = vec![load(d, 0, &dense), load(d, 1, &of_row), (d, Node::Bin(f, 0, 1))];
        let inputs = vec![(d, rows * n), (d, rows)];
        Step::Kernel { kernel: kernel(&grid, &[], inputs, nodes), ins: vec![all, each], outs: vec![to] }
    };
    let (grid, dense) = split(&[rows], &[1]);
    let negated = kernel(&grid, &[], vec![(d, rows)], vec![load(d, 0, &dense), (d, Node::Un(Un::Neg, 0))]);
    b.0.steps = vec![
        reduce(kinds[0], x, m),
        map(Bin::Sub, x, m, e),
        reduce(kinds[1], e, s),
        Step::Kernel { kernel: negated, ins: vec![s], outs: vec![t] },
        map(Bin::Add, e, t, y),
    ];
    b.0
}

#[test]
fn steps_over_rows_are_one_pass_with_the_same_bits() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(41);
    for n in [4, 7, 16, 33, 100, 512, 1000, 1024, 1028, 3000, 8192, 16388, 70_000] {
        for d in [DType::F32, DType::BF16, DType::I32, DType::I8] {
            let rows = [1, 3, 16, 40][noise.below(if n > 1 << 14 { 2 } else { 4 })];
            let kinds = [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min];
            let two = [kinds[noise.below(3)], kinds[noise.below(3)]];
            let plan = chain(&mut noise, d, [rows, n], two);
            let ins = [if d.is_float() { noise.values(d, rows * n) } else { noise.bits(d, rows * n) }];
            let (got, passes) = at_once(&gpu, &plan, &ins);
            let what = format!("{rows} rows of {n} {d}");
            assert_eq!(got, one_by_one(&gpu, &plan, &ins), "{what}");
            // narrow values of rows end no word where a workgroup has one row
            let is_cut = n > 1024 && d.size() < 4;
            let least = if n > 1 << 14 { 3 } else { 1 };
            assert!(passes == least || is_cut && (least..=8).contains(&passes), "{what}: {passes}");
        }
    }
}

/// A map that reads another position of what the program makes cannot be a part of it.
#[test]
fn a_shifted_read_ends_a_program() {
    let Some(gpu) = own_gpu(None) else { return };
    let (rows, n, d) = (5, 64, DType::F32);
    let mut b = Build::default();
    let (x, m, e, y) = (b.input(d, rows * n), b.temp(d, rows), b.temp(d, rows * n), b.output(d, rows * n));
    let nodes = vec![load(d, 0, &[n as i64, 1]), (d, Node::Reduce { kind: ReduceKind::Max, of: 0 })];
    let max = kernel(&[rows], &[n], vec![(d, rows * n)], nodes);
    let nodes = vec![load(d, 0, &[n as i64, 1]), load(d, 1, &[1, 0]), (d, Node::Bin(Bin::Sub, 0, 1))];
    let less = kernel(&[rows, n], &[], vec![(d, rows * n), (d, rows)], nodes);
    let mut back = load(d, 0, &[n as i64, -1]);
    if let Node::Load(a) = &mut back.1 {
        a.at.offset = n as i64 - 1;
    }
    let reversed = kernel(&[rows, n], &[], vec![(d, rows * n)], vec![back, (d, Node::Un(Un::Neg, 0))]);
    b.0.steps = vec![
        Step::Kernel { kernel: max, ins: vec![x], outs: vec![m] },
        Step::Kernel { kernel: less, ins: vec![x, m], outs: vec![e] },
        Step::Kernel { kernel: reversed, ins: vec![e], outs: vec![y] },
    ];
    let ins = [Noise(42).values(d, rows * n)];
    let (got, passes) = at_once(&gpu, &b.0, &ins);
    assert_eq!((got, passes), (one_by_one(&gpu, &b.0, &ins), 2));
}
