//! Indices, starts and updates that routines compute where they read them.
use crate::examples::{Build, load};
use crate::rows::at_once;
use crate::run::{DTYPES, Noise, compare, own_gpu};
use ferrax_kernel::kernel::{Kernel, Node};
use ferrax_kernel::plan::{Plan, SlotId, Step};
use ferrax_kernel::routine::{Combine, Gather, OutOfBounds, Scatter};
use ferrax_kernel::{Bin, DType, Dims, ReduceKind, Routine, Scalar, reference};
use std::sync::Arc;

const I: DType = DType::I32;

/// `j = select(i < 0, i + n, i)`, as programs have it of indices that count from the end.
fn counted(b: &mut Build, i: SlotId, len: usize, n: i32) -> (SlotId, Step) {
    let nodes = vec![
        load(I, 0, &[1]),
        (I, Node::Const(Scalar::i32(0))),
        (DType::Bool, Node::Bin(Bin::Lt, 0, 1)),
        (I, Node::Const(Scalar::i32(n))),
        (I, Node::Bin(Bin::Add, 0, 3)),
        (I, Node::Select { p: 2, t: 4, f: 0 }),
    ];
    let kernel = Kernel { grid: [len].into(), inputs: vec![(I, len)], nodes, outputs: vec![5], ..Kernel::default() };
    let j = b.temp(I, len);
    (j, Step::Kernel { kernel: Arc::new(kernel), ins: vec![i], outs: vec![j] })
}
fn integers(noise: &mut Noise, len: usize, n: usize) -> Vec<u8> {
    let one = |_| Scalar::i32(noise.below(2 * n + 2) as i32 - n as i32 - 1);
    reference::write(&(0..len).map(one).collect::<Vec<_>>())
}
fn dims(x: &[usize]) -> Dims {
    Dims::new(x)
}

/// Rows of `[n, 3]` at computed indices.
fn gathered(b: &mut Build, d: DType, n: usize, len: usize) -> Vec<Step> {
    let (x, i, y) = (b.input(d, 3 * n), b.input(I, len), b.output(d, 3 * len));
    let (j, made) = counted(b, i, len, n as i32);
    let g = Gather {
        operand: dims(&[n, 3]),
        indices: dims(&[len, 1]),
        slice_sizes: dims(&[1, 3]),
        offset_dims: dims(&[1]),
        collapsed_slice_dims: dims(&[0]),
        start_index_map: dims(&[0]),
        operand_batching_dims: dims(&[]),
        start_indices_batching_dims: dims(&[]),
        mode: OutOfBounds::FillOrDrop,
        fill: Scalar::one(d),
        dtype: d,
        index_dtype: I,
        out: dims(&[len, 3]),
        apart: false,
    };
    vec![made, Step::Routine { routine: Arc::new(Routine::Gather(g)), ins: vec![x, j], outs: vec![y] }]
}

/// `x` of `n` elements with computed updates at computed indices; perhaps of the array itself.
fn scattered(b: &mut Build, noise: &mut Noise, d: DType, n: usize, combine: Combine) -> Vec<Step> {
    let len = n;
    let (x, i, u, y) = (b.input(d, n), b.input(I, len), b.input(d, len), b.output(d, n));
    let (j, made) = counted(b, i, len, n as i32);
    let value = b.temp(d, len);
    let of = if noise.below(2) == 0 { u } else { x };
    let update = b.binary(Bin::Max, u, of, value);
    let s = Scatter {
        operand: dims(&[n]),
        indices: dims(&[len, 1]),
        updates: dims(&[len]),
        update_window_dims: dims(&[]),
        inserted_window_dims: dims(&[0]),
        scatter_dims_to_operand_dims: dims(&[0]),
        operand_batching_dims: dims(&[]),
        scatter_indices_batching_dims: dims(&[]),
        combine,
        mode: OutOfBounds::FillOrDrop,
        unique: false,
        dtype: d,
        index_dtype: I,
    };
    let routine = Arc::new(Routine::Scatter(s));
    vec![made, update, Step::Routine { routine, ins: vec![x, j, value], outs: vec![y] }]
}

/// A window of `[4, n]` at computed starts, doubled and written at those.
fn windows(b: &mut Build, d: DType, n: usize) -> Vec<Step> {
    let (x, i, y) = (b.input(d, 4 * n), b.input(I, 1), b.output(d, 4 * n));
    let (row, made) = counted(b, i, 1, 4);
    let column = b.temp(I, 1);
    let start = b.constant(Scalar::i32(1), column);
    let (window, twice) = (b.temp(d, 2 * 2), b.temp(d, 2 * 2));
    let (operand, sizes) = (dims(&[4, n]), dims(&[2, 2]));
    let slice = Routine::DynamicSlice { operand: operand.clone(), sizes: sizes.clone(), dtype: d, index_dtype: I };
    let update = Routine::DynamicUpdateSlice { operand, update: sizes, dtype: d, index_dtype: I };
    vec![
        made,
        start,
        Step::Routine { routine: Arc::new(slice), ins: vec![x, row, column], outs: vec![window] },
        b.binary(Bin::Max, window, window, twice),
        Step::Routine { routine: Arc::new(update), ins: vec![x, twice, row, column], outs: vec![y] },
    ]
}

#[test]
fn operands_that_routines_compute_have_the_values_of_the_reference() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(91);
    for d in DTYPES {
        for n in [5, 40, 300] {
            let mut b = Build::default();
            b.0.steps = gathered(&mut b, d, n, 7);
            let ins = [noise.values(d, 3 * n), integers(&mut noise, 7, n)];
            compare(&gpu, &format!("gather of {d}"), b.0, &ins, 0.0, 0.0);
            let all = [Combine::Set, Combine::Reduce(ReduceKind::Max)];
            for combine in all.into_iter().take(if d == DType::Bool { 1 } else { 2 }) {
                let mut b = Build::default();
                b.0.steps = scattered(&mut b, &mut noise, d, n, combine);
                let ins = [noise.values(d, n), integers(&mut noise, n, n), noise.values(d, n)];
                compare(&gpu, &format!("scatter of {d}"), b.0, &ins, 0.0, 0.0);
            }
            let mut b = Build::default();
            b.0.steps = windows(&mut b, d, n);
            let ins = [noise.values(d, 4 * n), integers(&mut noise, 1, 4)];
            compare(&gpu, &format!("windows of {d}"), b.0, &ins, 0.0, 0.0);
        }
    }
}

/// The plan with a result more, or another step in between, and the passes of each.
fn passes(gpu: &ferrax_wgpu::GpuBackend, change: impl Fn(&mut Build)) -> usize {
    let mut noise = Noise(92);
    let mut b = Build::default();
    b.0.steps = gathered(&mut b, DType::F32, 9, 7);
    change(&mut b);
    let plan: Plan = b.0;
    let ins = [noise.values(DType::F32, 27), integers(&mut noise, 7, 9)];
    compare(gpu, "a gather", plan.clone(), &ins, 0.0, 0.0);
    at_once(gpu, &plan, &ins).1
}

#[test]
fn indices_have_memory_only_where_another_step_reads_them() {
    let Some(gpu) = own_gpu(None) else { return };
    assert_eq!(passes(&gpu, |_| ()), 1);
    // an output more
    let seen = passes(&gpu, |b| {
        let out = b.output(I, 7);
        let Step::Kernel { outs, .. } = b.0.steps[0].clone() else { return };
        b.0.steps.push(Step::Copy { from: outs[0], to: out });
    });
    assert_eq!(seen, 2);
    // two that read it
    let twice = passes(&gpu, |b| {
        let out = b.output(DType::F32, 21);
        let Step::Routine { routine, ins, .. } = b.0.steps[1].clone() else { return };
        b.0.steps.push(Step::Routine { routine, ins, outs: vec![out] });
    });
    assert_eq!(twice, 2);
}
