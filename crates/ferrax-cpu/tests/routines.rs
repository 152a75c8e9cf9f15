//! Routines against the reference evaluator, over generated parameters.
use crate::generate::{Rng, random_bytes};
use ferrax_cpu::kernels::Bases;
use ferrax_cpu::{CpuBackend, Tier, routines, set_num_threads};
use ferrax_kernel::backend::RunArg;
use ferrax_kernel::kernel::{Affine, Guard};
use ferrax_kernel::plan::{Place, Step};
use ferrax_kernel::routine::*;
use ferrax_kernel::{Backend, DType, Dims, Plan, ReduceKind, Routine, RunCx, Scalar, reference};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Operands and results of a routine as a plan's inputs and outputs; in place if asked, where the routine updates its operand.
fn plan(r: &Routine, in_place: bool) -> Plan {
    let mut p = Plan::default();
    let mut ins = vec![];
    for (i, (d, n)) in r.operands().into_iter().enumerate() {
        ins.push(p.add_slot(d, n, 0));
        p.places.push(Place::Input(i as u32));
    }
    p.inputs = ins.clone();
    for (i, (d, n)) in r.results().into_iter().enumerate() {
        let s = p.add_slot(d, n, 0);
        p.outputs.push(s);
        p.places.push(Place::Output(i as u32));
        p.donatable.push(if in_place && i == 0 { Some(0) } else { None });
    }
    p.steps = vec![Step::Routine { routine: Arc::new(r.clone()), ins, outs: p.outputs.clone() }];
    p
}
fn run(r: &Routine, ins: &[Vec<u8>], in_place: bool) -> Vec<Vec<u8>> {
    run_on(Tier::current(), r, ins, in_place)
}
fn run_on(tier: Tier, r: &Routine, ins: &[Vec<u8>], in_place: bool) -> Vec<Vec<u8>> {
    let device = CpuBackend::with_tier(tier).unwrap();
    let exe = plan(r, in_place).verify().and_then(|p| device.compile(p)).unwrap_or_else(|e| panic!("{e}: {r:?}"));
    let args = ins
        .iter()
        .enumerate()
        .map(|(k, b)| RunArg { buffer: device.upload(b).unwrap(), donated: in_place && k == 0 })
        .collect();
    let outs = exe.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args).unwrap();
    let outs: Vec<Vec<u8>> = outs.iter().map(|b| device.download(b).unwrap()).collect();
    #[cfg(unix)]
    for side in crate::fenced::Side::BOTH {
        for ((x, y), (d, _)) in run_within(tier, r, ins, in_place, side).iter().zip(&outs).zip(r.results()) {
            assert!(x == y || scalars(d, x) == scalars(d, y), "{side:?}: {r:?}");
        }
    }
    outs
}
/// The results, where what is beyond operands and results may not be touched.
#[cfg(unix)]
fn run_within(tier: Tier, r: &Routine, ins: &[Vec<u8>], in_place: bool, side: crate::fenced::Side) -> Vec<Vec<u8>> {
    use crate::fenced::Fenced;
    let results = r.results();
    let ins: Vec<Fenced> = ins.iter().map(|b| Fenced::copy_of(b, side)).collect();
    let outs: Vec<Fenced> = results.iter().map(|(d, n)| Fenced::new(d.size() * n, side)).collect();
    let ptrs: Vec<*mut u8> = ins.iter().chain(&outs).map(|b| b.ptr()).collect();
    let at: Vec<u32> = (0..ins.len() as u32).collect();
    let to: Vec<u32> = (0..outs.len()).map(|j| if in_place && j == 0 { 0 } else { ins.len() + j } as u32).collect();
    let bases = Bases { ptrs: &ptrs, ins: &at, outs: &to, cancel: &AtomicBool::new(false) };
    routines::compile(r, tier).unwrap().run(bases, true).unwrap();
    ins.iter().for_each(|b| drop(b.bytes()));
    (0..outs.len()).map(|j| if in_place && j == 0 { ins[0].bytes() } else { outs[j].bytes() }).collect()
}
fn scalars(d: DType, b: &[u8]) -> Vec<Scalar> {
    let nan = Scalar::from_f64(d, f64::NAN);
    reference::read(d, b).into_iter().map(|s| if d.is_float() && s.to_f64().is_nan() { nan } else { s }).collect()
}
fn check(r: &Routine, ins: &[Vec<u8>]) {
    let views: Vec<&[u8]> = ins.iter().map(|b| &b[..]).collect();
    let want = reference::routine(r, &views).unwrap();
    for in_place in [false, true] {
        if in_place && !r.updates_operand() {
            continue;
        }
        for ((g, w), (d, _)) in run(r, ins, in_place).iter().zip(&want).zip(r.results()) {
            let (g, w) = (scalars(d, g), scalars(d, w));
            if let Some(i) = (0..w.len().max(g.len())).find(|i| g.get(*i) != w.get(*i)) {
                panic!("element {i} is {:?}, not {:?}, in place {in_place}: {r:?}", g.get(i), w.get(i));
            }
        }
    }
}
/// Small whole numbers, whose sums of products are exact in every float and in any order.
fn whole(rng: &mut Rng, d: DType, n: usize) -> Vec<u8> {
    let x: Vec<Scalar> = (0..n)
        .map(|_| Scalar::from_i64(d, rng.below(5) as i64 - if d.is_float() || d.is_signed() { 2 } else { 0 }))
        .collect();
    reference::write(&x)
}
fn dims(rng: &mut Rng, rank: usize, most: usize) -> Dims {
    (0..rank).map(|_| 1 + rng.below(most)).collect()
}
fn subset(rng: &mut Rng, of: &[usize]) -> Vec<usize> {
    of.iter().copied().filter(|_| rng.below(2) == 0).collect()
}
/// Indices, some outside.
fn index_bytes(rng: &mut Rng, d: DType, n: usize, reach: usize) -> Vec<u8> {
    let x: Vec<Scalar> = (0..n).map(|_| Scalar::from_i64(d, rng.below(reach + 4) as i64 - 2)).collect();
    reference::write(&x)
}
const INDEX: [DType; 4] = [DType::I32, DType::I64, DType::U8, DType::U32];
const ALL: [DType; 8] =
    [DType::F32, DType::F64, DType::I32, DType::U8, DType::I16, DType::F16, DType::BF16, DType::I64];
const MODES: [OutOfBounds; 2] = [OutOfBounds::Clip, OutOfBounds::FillOrDrop];

/// How windows and positions share the axes: of operand, indices, and the array of windows.
struct Layout {
    operand: Dims,
    indices: Dims,
    window: Dims,
    /// Axes of the windows' array that run over windows.
    window_axes: Dims,
    left_out: Dims,
    batching: Dims,
    indices_batching: Dims,
    indexed: Dims,
    all: Dims,
}
fn layout(rng: &mut Rng) -> Layout {
    let rank = 1 + rng.below(3);
    let operand = dims(rng, rank, 5);
    let n_batch = rng.below(2).min(rank - 1);
    let batching: Vec<usize> = (0..n_batch).collect();
    let rest: Vec<usize> = (n_batch..rank).collect();
    let mut indexed = subset(rng, &rest);
    if rng.below(2) == 0 {
        indexed.reverse();
    }
    let mut window: Dims = operand.iter().map(|n| 1 + rng.below(*n)).collect();
    batching.iter().for_each(|k| window[*k] = 1);
    let left_out = subset(rng, &rest);
    left_out.iter().for_each(|k| window[*k] = 1);
    // Positions: batch axes, then some more.
    let mut positions: Vec<usize> = batching.iter().map(|k| operand[*k]).collect();
    positions.extend((0..rng.below(3)).map(|_| 1 + rng.below(4)));
    let indices: Dims = positions.iter().copied().chain([indexed.len()]).collect();
    let kept: Vec<usize> = rest.iter().copied().filter(|k| !left_out.contains(k)).collect();
    let total = positions.len() + kept.len();
    let mut window_axes: Vec<usize> = vec![];
    while window_axes.len() < kept.len() {
        let k = rng.below(total);
        if !window_axes.contains(&k) {
            window_axes.push(k);
        }
    }
    window_axes.sort();
    let (mut p, mut w) = (positions.iter(), kept.iter().map(|k| window[*k]));
    let all: Dims =
        (0..total).map(|k| if window_axes.contains(&k) { w.next().unwrap() } else { *p.next().unwrap() }).collect();
    let d = |v: &[usize]| Dims::new(v);
    Layout {
        operand,
        indices,
        window,
        window_axes: d(&window_axes),
        left_out: d(&left_out),
        batching: d(&batching),
        indices_batching: d(&batching),
        indexed: d(&indexed),
        all,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn gathers(seed: u64) {
        let rng = &mut Rng(seed);
        let l = layout(rng);
        let (d, i) = (rng.pick(&ALL), rng.pick(&INDEX));
        let g = Gather {
            operand: l.operand.clone(), indices: l.indices.clone(), slice_sizes: l.window, offset_dims: l.window_axes, collapsed_slice_dims: l.left_out,
            start_index_map: l.indexed, operand_batching_dims: l.batching, start_indices_batching_dims: l.indices_batching, mode: rng.pick(&MODES),
            fill: Scalar::from_f64(d, 7.0), dtype: d, index_dtype: i, out: l.all, apart: false,
        };
        let ins = [random_bytes(rng, d, l.operand.size()), index_bytes(rng, i, l.indices.size(), 5)];
        check(&Routine::Gather(g.clone()), &ins);
        // a component in each array
        let vector = g.start_index_map.len();
        let component = |j: usize| ins[1].chunks(i.size()).skip(j).step_by(vector).flatten().copied().collect();
        let apart: Vec<Vec<u8>> = std::iter::once(ins[0].clone()).chain((0..vector).map(component)).collect();
        let separate = Routine::Gather(Gather { apart: true, ..g.clone() });
        check(&separate, &apart);
        let means = |r: &Routine, x: &[Vec<u8>]| reference::routine(r, &x.iter().map(|b| &b[..]).collect::<Vec<_>>()).unwrap();
        assert_eq!(means(&Routine::Gather(g), &ins), means(&separate, &apart));
    }
    #[test]
    fn scatters(seed: u64) {
        let rng = &mut Rng(seed);
        let l = layout(rng);
        let (d, i) = (rng.pick(&ALL), rng.pick(&INDEX));
        let s = Scatter {
            operand: l.operand.clone(), indices: l.indices.clone(), updates: l.all.clone(), update_window_dims: l.window_axes, inserted_window_dims: l.left_out,
            scatter_dims_to_operand_dims: l.indexed, operand_batching_dims: l.batching, scatter_indices_batching_dims: l.indices_batching,
            combine: rng.pick(&[Combine::Set, Combine::Reduce(ReduceKind::Sum), Combine::Reduce(ReduceKind::Max), Combine::Reduce(ReduceKind::Prod), Combine::Sub]),
            mode: rng.pick(&MODES), unique: false, dtype: d, index_dtype: i,
        };
        let ins = [random_bytes(rng, d, l.operand.size()), index_bytes(rng, i, l.indices.size(), 5), random_bytes(rng, d, l.all.size())];
        check(&Routine::Scatter(s), &ins);
    }
    #[test]
    fn dynamic_slices(seed: u64) {
        let rng = &mut Rng(seed);
        let rank = rng.below(4);
        let operand = dims(rng, rank, 6);
        let sizes: Dims = operand.iter().map(|n| rng.below(n + 1)).collect();
        let (d, i) = (rng.pick(&ALL), rng.pick(&INDEX));
        let starts: Vec<Vec<u8>> = (0..rank).map(|_| index_bytes(rng, i, 1, 6)).collect();
        let x = random_bytes(rng, d, operand.size());
        let update = random_bytes(rng, d, sizes.size());
        let slice = Routine::DynamicSlice { operand: operand.clone(), sizes: sizes.clone(), dtype: d, index_dtype: i };
        check(&slice, &[vec![x.clone()], starts.clone()].concat());
        let r = Routine::DynamicUpdateSlice { operand, update: sizes, dtype: d, index_dtype: i };
        check(&r, &[vec![x, update], starts].concat());
    }
    #[test]
    fn sorts(seed: u64) {
        let rng = &mut Rng(seed);
        let (outer, n, inner) = (1 + rng.below(3), rng.pick(&[0, 1, 2, 7, 40, 700]), 1 + rng.below(3));
        let count = 1 + rng.below(3);
        let dtypes: Vec<DType> = (0..count).map(|_| rng.pick(&[DType::F32, DType::F64, DType::I32, DType::U8, DType::Bool, DType::F16, DType::I64])).collect();
        let ins: Vec<Vec<u8>> = dtypes.iter().map(|d| random_bytes(rng, *d, outer * n * inner)).collect();
        check(&Routine::Sort { outer, n, inner, num_keys: 1 + rng.below(count), dtypes }, &ins);
    }
    #[test]
    fn the_greatest(seed: u64) {
        let rng = &mut Rng(seed);
        let (outer, n, inner) = (1 + rng.below(3), rng.pick(&[1, 2, 7, 40, 700, 3000]), 1 + rng.below(2));
        let k = rng.pick(&[0, 1, 2, 5, 130, n / 2, n]).min(n);
        let dtype = rng.pick(&ALL);
        let x = match rng.below(3) {
            0 => random_bytes(rng, dtype, outer * n * inner),
            // few values, so that most are equal
            1 => whole(rng, dtype, outer * n * inner),
            // each better than all before it
            _ => {
                let up: Vec<Scalar> = (0..outer * n * inner).map(|i| Scalar::from_i64(dtype, (i / 40 % 100) as i64)).collect();
                reference::write(&up)
            }
        };
        check(&Routine::TopK { outer, n, inner, k, dtype }, &[x]);
    }
    /// A vector on either side: the same bits by rows, by columns, and by neither, near what doubles give.
    #[test]
    fn products_by_vectors_do_not_depend_on_layout(seed: u64) {
        let rng = &mut Rng(seed);
        let (rows, k, b) = (rng.pick(&[2, 5, 37, 128, 300, 1100]), rng.pick(&[3, 15, 16, 70, 257, 520]), 1 + rng.below(2));
        let dtype = rng.pick(&[DType::F32, DType::F64]);
        let numbers = |rng: &mut Rng, n: usize| -> Vec<f64> { (0..n).map(|_| rng.below(2001) as f64 / 1000.0 - 1.0).collect() };
        let (a, v) = (numbers(rng, b * rows * k), numbers(rng, b * k));
        let bytes = |x: &[f64]| reference::write(&x.iter().map(|x| Scalar::from_f64(dtype, *x)).collect::<Vec<_>>());
        let (r, s) = (rows as i64, k as i64);
        // element (i, p) of batch b at these strides
        let laid = |strides: [i64; 3]| {
            let reach = (b as i64 - 1) * strides[0] + (r - 1) * strides[1] + (s - 1) * strides[2];
            let mut to = vec![0.0; reach as usize + 1];
            for (i, x) in a.iter().enumerate() {
                let (i, p) = (i / k, i % k);
                to[(i / rows) * strides[0] as usize + i % rows * strides[1] as usize + p * strides[2] as usize] = *x;
            }
            bytes(&to)
        };
        let mut first: Option<Vec<u8>> = None;
        for [batch, row, along] in [[r * s, s, 1], [r * s, 1, r], [2 * r * s, 2 * s, 2]] {
            let (n, m) = (Dot { b, m: rows, n: 1, k, lhs: [batch, row, along], rhs: [s, 1, 1], dtype, out: dtype },
                Dot { b, m: 1, n: rows, k, lhs: [s, 1, 1], rhs: [batch, along, row], dtype, out: dtype });
            let x = laid([batch, row, along]);
            for (d, ins) in [(n, [x.clone(), bytes(&v)]), (m, [bytes(&v), x.clone()])] {
                let got = run(&Routine::Dot(d), &ins, false).remove(0);
                let want = first.get_or_insert(got.clone());
                prop_assert!(got == *want, "{row} {along}");
            }
        }
        let got = reals(dtype, &first.unwrap());
        let eps = if dtype == DType::F32 { 6e-8 } else { 1.2e-16 };
        for (i, got) in got.iter().enumerate() {
            let exact: f64 = (0..k).map(|p| a[i * k + p] * v[i / rows * k + p]).sum();
            prop_assert!((got - exact).abs() <= eps * k as f64 * 2.0, "{got} is not {exact}");
        }
    }
    #[test]
    fn cumulatives(seed: u64) {
        let rng = &mut Rng(seed);
        let (n, d) = (rng.below(40), [DType::F32, DType::F64, DType::I32, DType::U8, DType::I16, DType::F16, DType::BF16]);
        // several blocks of the order of running combinations, and several of their totals
        let n = n + rng.pick(&[0, 0, 50, 64, 128, 240, 5000]);
        let (outer, inner) = (1 + rng.below(6), if n < 1000 { rng.pick(&[1, 1, 2, 5, 300]) } else { rng.pick(&[1, 40]) });
        let d = rng.pick(&d);
        let kind = rng.pick(&[CumulativeKind::Sum, CumulativeKind::Prod, CumulativeKind::Max, CumulativeKind::Min]);
        let x = random_bytes(rng, d, outer * n * inner);
        check(&Routine::Cumulative { kind, outer, n, inner, reverse: rng.below(2) == 0, dtype: d }, &[x]);
    }
    #[test]
    fn convolutions(seed: u64) {
        let rng = &mut Rng(seed);
        let c = convolution(rng, 5);
        let ins = [whole(rng, c.dtype, c.x), whole(rng, c.dtype, Routine::Conv(Box::new(c.clone())).operands()[1].1)];
        check(&Routine::Conv(Box::new(c)), &ins);
    }
    #[test]
    fn transforms(seed: u64) {
        let rng = &mut Rng(seed);
        let f = transform(rng, 90);
        let r = Routine::Fft(f.clone());
        let x = whole(rng, f.dtype, r.operands()[0].1);
        let want = reals(f.dtype, &reference::routine(&r, &[&x]).unwrap()[0]);
        let got = reals(f.dtype, &run(&r, &[x], false)[0]);
        let eps = if f.dtype == DType::F32 { 2e-7 } else { 4e-16 };
        let size = if f.is_inverse() { 1.0 } else { f.lengths.size() as f64 };
        prop_assert_eq!(got.len(), want.len());
        for (g, w) in got.iter().zip(&want) {
            prop_assert!((g - w).abs() <= 20.0 * eps * size, "{g} is not {w}: {f:?}");
        }
    }
    #[test]
    fn transforms_are_those_of_each_row(seed: u64) {
        let rng = &mut Rng(seed);
        let f = Fft { outer: 3, ..transform(rng, 300) };
        let (all, one) = (Routine::Fft(f.clone()), Routine::Fft(Fft { outer: 1, ..f.clone() }));
        let x = whole(rng, f.dtype, all.operands()[0].1);
        let parts: Vec<u8> = x.chunks_exact(x.len() / 3).flat_map(|x| run(&one, &[x.to_vec()], false).remove(0)).collect();
        prop_assert!(run(&all, &[x], false)[0] == parts, "{f:?}");
    }
    #[test]
    fn products(seed: u64) {
        let rng = &mut Rng(seed);
        let mut size = || rng.pick(&[1, 1, 2, 3, 5, 16, 17, 40]);
        let (b, m, n, k) = (size().min(5), size(), size(), size());
        let (dtype, out) = rng.pick(&[(DType::F32, DType::F32), (DType::F64, DType::F64), (DType::F16, DType::F16), (DType::BF16, DType::F32), (DType::I32, DType::I32), (DType::I8, DType::I32), (DType::U8, DType::U8), (DType::I64, DType::I64), (DType::Bool, DType::Bool), (DType::F32, DType::F64)]);
        let layouts = |x: usize, y: usize| [[(x * y) as i64, y as i64, 1], [(x * y) as i64, 1, x as i64], [0, y as i64, 1], [y as i64, (b * y) as i64, 1]];
        let d = Dot { b, m, n, k, lhs: rng.pick(&layouts(m, k)), rhs: rng.pick(&layouts(k, n)), dtype, out };
        let r = Routine::Dot(d);
        let ins: Vec<Vec<u8>> = r.operands().into_iter().map(|(d, n)| whole(rng, d, n)).collect();
        check(&r, &ins);
    }
}

/// A transform of a few axes.
fn transform(rng: &mut Rng, most: usize) -> Fft {
    let axes = 1 + rng.below(3);
    let most = if axes == 1 { most } else { 9 };
    let lengths = dims(rng, axes, most);
    let kind = rng.pick(&[FftKind::Forward, FftKind::Inverse, FftKind::RealForward, FftKind::RealInverse]);
    let inner = rng.pick(&[1, 1, 2, 19]);
    Fft { kind, outer: rng.below(4), lengths, inner, dtype: rng.pick(&[DType::F32, DType::F64]) }
}
fn reals(d: DType, b: &[u8]) -> Vec<f64> {
    reference::read(d, b).iter().map(|s| s.to_f64()).collect()
}

/// A convolution of an array in any layout, to rows or columns side by side; numbers up to `size`.
fn convolution(rng: &mut Rng, size: usize) -> Conv {
    let rank = rng.below(3);
    let mut n = |most: usize| 1 + rng.below(most);
    let (images, groups, ci, co) = (n(2), n(3), n(size), n(size));
    let space: Vec<usize> = (0..rank).map(|_| n(2 * size)).collect();
    let window: Vec<usize> = (0..rank).map(|_| n(3)).collect();
    let (steps, dilation): (Vec<usize>, Vec<usize>) = (0..rank).map(|_| (n(3), n(2))).unzip();
    let (low, places): (Vec<i64>, Vec<usize>) = (0..rank).map(|_| (n(4) as i64 - 2, n(2 * size))).unzip();
    // x: images, groups, channels, space, in some order
    let axes = [&[images, groups, ci], &space[..]].concat();
    let mut order: Vec<usize> = (0..axes.len()).collect();
    (0..axes.len()).for_each(|k| order.swap(k, rng.below(axes.len())));
    let mut strides = vec![0i64; axes.len()];
    order.iter().rev().fold(1, |s, k| {
        strides[*k] = s as i64;
        s * axes[*k]
    });
    // rows with the images, or batches of them; terms by channel or by place
    let (by_rows, channels_first, behind) = (rng.below(2) == 0, rng.below(2) == 0, rng.below(2) == 0);
    let along = |k: usize, by: usize| strides[3 + k] * by as i64;
    let image = (images, strides[0]);
    let batch: Vec<(usize, i64)> = if by_rows { vec![(groups, strides[1])] } else { vec![image, (groups, strides[1])] };
    let mut rows: Vec<(usize, i64)> = if by_rows { vec![image] } else { vec![] };
    rows.extend((0..rank).map(|k| (places[k], along(k, steps[k]))));
    let mut terms: Vec<(usize, i64)> = (0..rank).map(|k| (window[k], along(k, dilation[k]))).collect();
    terms.insert(if channels_first { 0 } else { rank }, (ci, strides[2]));
    let (first_row, first_term) = (batch.len() + by_rows as usize, batch.len() + rows.len() + channels_first as usize);
    let guards = (0..rank).map(|k| {
        let mut at = Affine::new(-low[k], vec![0; batch.len() + rows.len() + terms.len()]);
        (at.strides[first_row + k], at.strides[first_term + k]) = (steps[k] as i64, dilation[k] as i64);
        Guard { at, lo: 0, hi: space[k] as i64 }
    });
    let sizes = |v: &[(usize, i64)]| -> Dims { v.iter().map(|x| x.0).collect() };
    let (m, k) = (sizes(&rows).size(), sizes(&terms).size());
    let y = match behind {
        true => [if by_rows { vec![] } else { vec![0] }, vec![k * co, co, 1]].concat(),
        false => [if by_rows { vec![] } else { vec![0] }, vec![k * co, 1, k]].concat(),
    };
    let out = if by_rows { vec![co, groups * co, 1] } else { vec![groups * co * m, co * m, 1, m] };
    Conv {
        at: Affine::new(
            -(0..rank).map(|k| low[k] * strides[3 + k]).sum::<i64>(),
            batch.iter().chain(&rows).chain(&terms).map(|x| x.1),
        ),
        batch: sizes(&batch),
        guards: guards.collect(),
        rows: sizes(&rows),
        terms: sizes(&terms),
        columns: co,
        x: axes.iter().product(),
        y: Dims::new(&y),
        out: Dims::new(&out),
        dtype: rng.pick(&[DType::F32, DType::F64, DType::I32, DType::I64]),
    }
}

/// Bits do not depend on layout or threads, for operands that round.
/// Panels, with and without blocks, add the terms of an element one after the other.
#[test]
#[cfg(target_arch = "x86_64")]
fn an_element_of_a_product_is_its_terms_in_order() {
    if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
        return; // a library's order, then
    }
    let rng = &mut Rng(21);
    for (m, n, k) in [(40, 50, 60), (130, 270, 300), (67, 1100, 129), (300, 129, 517)] {
        let mut real = |n: usize| (0..n).map(|_| rng.below(1 << 20) as f32 / 3e5 - 1.0).collect::<Vec<f32>>();
        let (x, y) = (real(m * k), real(k * n));
        let bytes = |x: &[f32]| x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let (lhs, rhs) = ([(m * k) as i64, k as i64, 1], [(k * n) as i64, n as i64, 1]);
        let dot = Routine::Dot(Dot { b: 1, m, n, k, lhs, rhs, dtype: DType::F32, out: DType::F32 });
        let got = run(&dot, &[bytes(&x), bytes(&y)], false);
        for i in 0..m {
            for j in 0..n {
                let want = (0..k).fold(0f32, |sum, p| x[i * k + p].mul_add(y[p * n + j], sum));
                let at = (i * n + j) * 4;
                assert_eq!(got[0][at..at + 4], want.to_le_bytes(), "{m} {n} {k}: {i} {j}");
            }
        }
    }
}
#[test]
fn products_have_one_value_whatever_the_layout_and_the_threads() {
    let rng = &mut Rng(11);
    for (b, m, n, k) in [
        (1, 8, 8, 8),
        (1, 64, 64, 64),
        (1, 300, 200, 500),
        (3, 33, 65, 129),
        (1, 1, 700, 900),
        (1, 900, 1, 700),
        (2, 5, 7, 3000),
        (1, 513, 257, 1025),
        (1, 2, 300, 300),
        (1, 300, 2, 300),
        (1, 300, 300, 2),
        (1, 4, 4, 1000),
        (1, 37, 41, 43),
        (1, 16, 200, 1),
        (1, 17, 31, 2000),
        (1, 32, 32, 3000),
        (1, 33, 500, 7),
        (1, 500, 35, 40),
        (2, 47, 32, 2500),
        (1, 40, 700, 1),
        (300, 2, 2, 2),
        (301, 3, 3, 3),
        (200, 4, 4, 4),
        (99, 2, 1, 2),
        (100, 3, 1, 3),
        (1000, 4, 1, 4),
    ] {
        for d in [DType::F32, DType::F64] {
            let real = |rng: &mut Rng, n: usize| {
                reference::write(
                    &(0..n).map(|_| Scalar::from_f64(d, rng.below(1 << 20) as f64 / 3e5 - 1.0)).collect::<Vec<_>>(),
                )
            };
            let (x, y) = (real(rng, b * m * k), real(rng, b * k * n));
            let transposed = |x: &[u8], r: usize, c: usize| {
                let v = reference::read(d, x);
                reference::write(
                    &(0..b * r * c).map(|i| v[i / (r * c) * r * c + i % r * c + i / r % c]).collect::<Vec<_>>(),
                )
            };
            let dot = |lt: bool, rt: bool| {
                let side = |t: bool, r: usize, c: usize| {
                    if t { [(r * c) as i64, 1, r as i64] } else { [(r * c) as i64, c as i64, 1] }
                };
                Routine::Dot(Dot { b, m, n, k, lhs: side(lt, m, k), rhs: side(rt, k, n), dtype: d, out: d })
            };
            set_num_threads(1);
            let want = run(&dot(false, false), &[x.clone(), y.clone()], false);
            for threads in [1, 4] {
                set_num_threads(threads);
                for (lt, rt) in [(false, false), (true, false), (false, true), (true, true)] {
                    let ins = [
                        if lt { transposed(&x, m, k) } else { x.clone() },
                        if rt { transposed(&y, k, n) } else { y.clone() },
                    ];
                    assert!(
                        run(&dot(lt, rt), &ins, false) == want,
                        "{d} {b} {m} {n} {k} on {threads} threads, transposed {lt} {rt}"
                    );
                }
            }
        }
    }
}

/// Images with their channels last, whose windows overlap along lines, or meet, or leave gaps; zeros around, and not; in groups, dilated, with
/// many columns and with few; and the derivative by the weights, where places are terms and the window is rows.
#[test]
fn lines_of_overlapping_windows() {
    let rng = &mut Rng(23);
    let (n, h, w, high, wide) = (2, 9, 40, 3, 3);
    for (steps, pad, dilation, [groups, c, co]) in [
        (1, 1, 1, [1, 5, 7]),
        (2, 1, 1, [1, 5, 17]),
        (3, 2, 1, [1, 5, 7]),
        (4, 1, 1, [1, 5, 40]),
        (1, 0, 1, [1, 5, 12]),
        (2, -1i64, 1, [1, 5, 7]),
        (1, 2, 2, [1, 6, 3]),
        (2, 2, 2, [1, 6, 20]),
        (2, 3, 3, [1, 4, 33]),
        (1, 1, 1, [3, 4, 8]),
        (1, 2, 2, [2, 8, 1]),
        (1, 1, 1, [1, 16, 4]),
        (1, 1, 1, [1, 1, 20]),
        (2, 1, 1, [1, 1, 2]),
    ] {
        let along = |n: usize, window: usize| ((n as i64 + 2 * pad) as usize - (window - 1) * dilation - 1) / steps + 1;
        let (oh, ow) = (along(h, high), along(w, wide));
        let channels = groups * c;
        let (s, e) = (steps as i64, dilation as i64);
        let d = [(h * w * channels) as i64, (w * channels) as i64, channels as i64];
        let guard = |at: &[i64], n: usize| Guard { at: Affine::new(-pad, at.to_vec()), lo: 0, hi: n as i64 };
        let offset = -pad * (d[1] + d[2]);
        let forward = Conv {
            batch: [groups].into(),
            rows: [n, oh, ow].into(),
            terms: [high, wide, c].into(),
            columns: co,
            x: n * h * w * channels,
            at: Affine::new(offset, vec![c as i64, d[0], s * d[1], s * d[2], e * d[1], e * d[2], 1]),
            guards: vec![guard(&[0, 0, s, 0, e, 0, 0], h), guard(&[0, 0, 0, s, 0, e, 0], w)],
            y: [co, groups * co, 1].into(),
            out: [co, groups * co, 1].into(),
            dtype: if steps == 2 { DType::F64 } else { DType::F32 },
        };
        let by_weights = Conv {
            rows: [high, wide, c].into(),
            terms: [n, oh, ow].into(),
            at: Affine::new(offset, vec![c as i64, e * d[1], e * d[2], 1, d[0], s * d[1], s * d[2]]),
            guards: vec![guard(&[0, e, 0, 0, 0, s, 0], h), guard(&[0, 0, e, 0, 0, 0, s], w)],
            ..forward.clone()
        };
        for conv in [forward, by_weights] {
            let ins = [
                whole(rng, conv.dtype, conv.x),
                whole(rng, conv.dtype, Routine::Conv(Box::new(conv.clone())).operands()[1].1),
            ];
            check(&Routine::Conv(Box::new(conv)), &ins);
        }
    }
}

/// Images with their channels first, whose planes are read by windows: lines of any length, by steps from line to line, dilated, with zeros
/// around, or cut; more channels than lie near; a kernel that is one line, or one column.
#[test]
fn planes_of_overlapping_windows() {
    let rng = &mut Rng(24);
    for ([h, w], [high, wide], [steps, dilation], pad, [groups, c, co]) in [
        ([9, 40], [3, 3], [1, 1], 1, [1, 5, 7]),
        ([20, 16], [3, 3], [2, 1], 1, [1, 5, 17]),
        ([33, 12], [5, 2], [1, 2], 0, [1, 3, 9]),
        ([6, 70], [1, 7], [1, 1], 3, [2, 4, 3]),
        ([40, 13], [7, 1], [1, 1], 2, [1, 4, 3]),
        ([12, 31], [2, 4], [3, 1], -1i64, [1, 2, 8]),
        ([70, 64], [3, 3], [1, 1], 1, [1, 40, 2]),
        ([9, 300], [3, 3], [1, 3], 3, [1, 110, 1]),
        ([2, 20], [4, 4], [1, 1], 3, [3, 2, 2]),
        ([30, 40], [3, 3], [1, 1], 9, [1, 2, 4]),
    ] {
        let along = |n: usize, window: usize, steps: usize| {
            ((n as i64 + 2 * pad) as usize - (window - 1) * dilation - 1) / steps + 1
        };
        let (oh, ow) = (along(h, high, steps), along(w, wide, 1));
        let (n, s, e, line) = (2, steps as i64, dilation as i64, w as i64);
        let (plane, m, k) = ((h * w) as i64, oh * ow, c * high * wide);
        let image = plane * (groups * c) as i64;
        let guard = |at: &[i64], n: usize| Guard { at: Affine::new(-pad, at.to_vec()), lo: 0, hi: n as i64 };
        let conv = Conv {
            batch: [n, groups].into(),
            rows: [oh, ow].into(),
            terms: [c, high, wide].into(),
            columns: co,
            x: n * groups * c * h * w,
            at: Affine::new(-pad * (line + 1), vec![image, plane * c as i64, s * line, 1, plane, e * line, e]),
            guards: vec![guard(&[0, 0, s, 0, 0, e, 0], h), guard(&[0, 0, 0, 1, 0, 0, e], w)],
            y: [0, co * k, 1, k].into(),
            out: [groups * co * m, co * m, 1, m].into(),
            dtype: if steps == 2 { DType::F64 } else { DType::F32 },
        };
        let ins = [
            whole(rng, conv.dtype, conv.x),
            whole(rng, conv.dtype, Routine::Conv(Box::new(conv.clone())).operands()[1].1),
        ];
        check(&Routine::Conv(Box::new(conv)), &ins);
    }
}

/// Groups whose columns are fewer than a vector's lanes: channels last, forward and as the derivative by the weights is.
#[test]
fn groups_side_by_side() {
    let rng = &mut Rng(25);
    for seed in 0..60 {
        let rank = 1 + seed % 3;
        let [groups, ci, co] =
            [rng.pick(&[2, 3, 4, 8, 16, 17, 32, 35]), rng.pick(&[1, 1, 2, 3, 8]), rng.pick(&[1, 1, 2, 3, 4, 8])];
        let dtype = rng.pick(&[DType::F32, DType::F32, DType::F64]);
        let (images, all) = (1 + rng.below(3), groups * ci);
        let most = [40, 12, 6][rank - 1];
        let window: Vec<usize> = (0..rank).map(|_| 1 + rng.below(4)).collect();
        let steps: Vec<usize> = (0..rank).map(|_| rng.pick(&[1, 1, 2])).collect();
        let dilation: Vec<usize> = (0..rank).map(|_| rng.pick(&[1, 1, 2, 3])).collect();
        let low: Vec<i64> = (0..rank).map(|_| rng.pick(&[0, 0, 1, 2, -1])).collect();
        let space: Vec<usize> = (0..rank).map(|k| (window[k] - 1) * dilation[k] + 2 + rng.below(most)).collect();
        let places: Vec<usize> = (0..rank)
            .map(|k| {
                let reach = space[k] as i64 + 2 * low[k] - ((window[k] - 1) * dilation[k]) as i64 - 1;
                (reach.max(0) as usize) / steps[k] + 1
            })
            .collect();
        // elements from image to image, and from place to place
        let mut from = vec![all as i64; rank + 1];
        (0..rank).rev().for_each(|k| from[k] = from[k + 1] * space[k] as i64);
        let image = from.remove(0);
        let forward = rng.below(2) == 0;
        let by = |n: &[usize], step: &[usize]| -> Vec<(usize, i64, i64)> {
            (0..rank).map(|k| (n[k], step[k] as i64 * from[k], step[k] as i64)).collect()
        };
        let (here, there) = (by(&places, &steps), by(&window, &dilation));
        let (images_axis, channels) = ((images, image, 0), (ci, 1, 0));
        let (rows, terms) = match forward {
            true => ([&[images_axis], &here[..]].concat(), [&there[..], &[channels]].concat()),
            false => ([&there[..], &[channels]].concat(), [&[images_axis], &here[..]].concat()),
        };
        let axes = [&[(groups, ci as i64, 0)], &rows[..], &terms[..]].concat();
        let sizes = |v: &[(usize, i64, i64)]| -> Dims { v.iter().map(|x| x.0).collect() };
        let offset = -(0..rank).map(|k| low[k] * from[k]).sum::<i64>();
        let (first_row, first_term) = (1 + forward as usize, 1 + rows.len() + !forward as usize);
        let guards = (0..rank)
            .filter(|k| low[*k] != 0 || (places[*k] - 1) * steps[*k] + (window[*k] - 1) * dilation[*k] >= space[*k]);
        let guards = guards.map(|k| {
            let mut along = vec![0; axes.len()];
            (along[first_row + k], along[first_term + k]) = (axes[first_row + k].2, axes[first_term + k].2);
            Guard { at: Affine::new(-low[k], along), lo: 0, hi: space[k] as i64 }
        });
        let conv = Conv {
            batch: [groups].into(),
            rows: sizes(&rows),
            terms: sizes(&terms),
            columns: co,
            x: images * space.iter().product::<usize>() * all,
            at: Affine::new(offset, axes.iter().map(|a| a.1).collect::<Vec<_>>()),
            guards: guards.collect(),
            y: [co, co * groups, 1].into(),
            out: [co, co * groups, 1].into(),
            dtype,
        };
        let r = Routine::Conv(Box::new(conv.clone()));
        let ins = [whole(rng, dtype, conv.x), whole(rng, dtype, r.operands()[1].1)];
        check(&r, &ins);
    }
}

/// Threads and blocks change no bits of a convolution, whose numbers are no small ones.
#[test]
fn long_convolutions_are_the_same_on_any_threads() {
    let rng = &mut Rng(21);
    for _ in 0..12 {
        let mut c = convolution(rng, 24);
        c.dtype = DType::F32;
        let len = Routine::Conv(Box::new(c.clone())).operands()[1].1;
        let mut real = |n: usize| {
            let x: Vec<Scalar> = (0..n).map(|_| Scalar::f32(rng.below(1 << 20) as f32 / 3e5 - 1.0)).collect();
            reference::write(&x)
        };
        let ins = [real(c.x), real(len)];
        let r = Routine::Conv(Box::new(c));
        set_num_threads(1);
        let want = run(&r, &ins, false);
        set_num_threads(4);
        assert!(run(&r, &ins, false) == want, "{r:?}");
        let (want, got) = (reference::read(DType::F32, &want[0]), reference::routine(&r, &[&ins[0], &ins[1]]).unwrap());
        for (x, y) in want.iter().zip(reference::read(DType::F32, &got[0])) {
            assert!((x.to_f64() - y.to_f64()).abs() < 1e-3 * (1.0 + y.to_f64().abs()), "{x:?} {y:?} {r:?}");
        }
    }
}

/// The simplifier counts on it: what is 32 long both ways may change sides. And all tiers give the same bits.
#[test]
fn exchanging_long_operands_transposes_the_product() {
    let rng = &mut Rng(12);
    for (b, m, n, k) in [
        (1, 64, 128, 64),
        (1, 300, 200, 500),
        (3, 33, 65, 129),
        (1, 513, 257, 1025),
        (1, 32, 32, 3000),
        (2, 33, 40, 9),
        (1, 32, 500, 1),
        (1, 50, 77, 2),
    ] {
        for d in [DType::F32, DType::F64] {
            let mut real = |n: usize| {
                let x: Vec<Scalar> =
                    (0..n).map(|_| Scalar::from_f64(d, rng.below(1 << 20) as f64 / 3e5 - 1.0)).collect();
                reference::write(&x)
            };
            let (x, y) = (real(b * m * k), real(b * k * n));
            let (xs, ys) = ((m * k) as i64, (k * n) as i64);
            let product = Dot { b, m, n, k, lhs: [xs, k as i64, 1], rhs: [ys, n as i64, 1], dtype: d, out: d };
            let exchanged = Dot { m: n, n: m, lhs: [ys, 1, n as i64], rhs: [xs, 1, k as i64], ..product.clone() };
            let (product, exchanged) = (Routine::Dot(product), Routine::Dot(exchanged));
            let want = run(&product, &[x.clone(), y.clone()], false);
            let value = reference::read(d, &want[0]);
            let transposed: Vec<Scalar> =
                (0..b * m * n).map(|i| value[i / (m * n) * m * n + i % m * n + i / m % n]).collect();
            let transposed = vec![reference::write(&transposed)];
            for tier in Tier::ALL.into_iter().filter(|t| t.is_available()) {
                let at = format!("{d} {b} {m} {n} {k} {}", tier.name());
                assert!(run_on(tier, &product, &[x.clone(), y.clone()], false) == want, "{at}");
                assert!(run_on(tier, &exchanged, &[y.clone(), x.clone()], false) == transposed, "exchanged {at}");
            }
        }
    }
}

/// Rows of an embedding, most of them met several times although the caller promised that none would be.
#[test]
fn a_broken_promise_of_unique_indices_changes_nothing() {
    let (rows, width, n) = (50, 64, 4000);
    let rng = &mut Rng(7);
    for (d, combine) in [
        (DType::F32, Combine::Set),
        (DType::F32, Combine::Reduce(ReduceKind::Sum)),
        (DType::BF16, Combine::Sub),
        (DType::I8, Combine::Reduce(ReduceKind::Max)),
    ] {
        let r = Routine::Scatter(Scatter {
            operand: [rows, width].into(),
            indices: [n, 1].into(),
            updates: [n, width].into(),
            update_window_dims: [1].into(),
            inserted_window_dims: [0].into(),
            scatter_dims_to_operand_dims: [0].into(),
            operand_batching_dims: Dims::default(),
            scatter_indices_batching_dims: Dims::default(),
            combine,
            mode: OutOfBounds::FillOrDrop,
            unique: true,
            dtype: d,
            index_dtype: DType::I32,
        });
        let ins = [
            random_bytes(rng, d, rows * width),
            index_bytes(rng, DType::I32, n, rows + 2),
            random_bytes(rng, d, n * width),
        ];
        for threads in [1, 2, 7] {
            set_num_threads(threads);
            check(&r, &ins);
        }
        set_num_threads(0);
    }
}

/// Many updates of few elements, which threads may divide: among them nans, zeros of both signs, and indices that reach outside.
#[test]
fn many_updates_of_few_elements_are_the_reference() {
    use ReduceKind::*;
    let rng = &mut Rng(11);
    let kinds = [
        (DType::F32, vec![Max, Min, Sum, Prod]),
        (DType::F64, vec![Max, Min, Sum]),
        (DType::I32, vec![Max, Min, Sum, Prod, And, Or, Xor]),
        (DType::U32, vec![Max, Min, Sum, And]),
        (DType::I64, vec![Max, Min, Sum, Prod]),
        (DType::I8, vec![Max, Sum]),
        (DType::Bool, vec![Max, And]),
    ];
    for (d, kind) in kinds.into_iter().flat_map(|(d, kinds)| kinds.into_iter().map(move |k| (d, k))) {
        for (n, few) in [(20_000, 7), (30_000, 1000), (9_000, 1)] {
            let r = Routine::Scatter(Scatter {
                operand: [few].into(),
                indices: [n, 1].into(),
                updates: [n].into(),
                update_window_dims: Dims::default(),
                inserted_window_dims: [0].into(),
                scatter_dims_to_operand_dims: [0].into(),
                operand_batching_dims: Dims::default(),
                scatter_indices_batching_dims: Dims::default(),
                combine: Combine::Reduce(kind),
                mode: OutOfBounds::FillOrDrop,
                unique: false,
                dtype: d,
                index_dtype: DType::I32,
            });
            let ins = [
                random_bytes(rng, d, few),
                index_bytes(rng, DType::I32, n, few + few.div_ceil(9)),
                random_bytes(rng, d, n),
            ];
            for threads in [1, 2, 7] {
                set_num_threads(threads);
                check(&r, &ins);
            }
            set_num_threads(0);
        }
    }
}

/// More positions than addresses are computed at once: single elements, rows short and long, indices that repeat and that reach outside.
#[test]
fn long_lists_of_positions_are_the_reference() {
    let (rows, n) = (40, 1300);
    let rng = &mut Rng(8);
    for (d, width, combine) in [
        (DType::F32, 1, Combine::Set),
        (DType::F32, 1, Combine::Reduce(ReduceKind::Sum)),
        (DType::F64, 1, Combine::Sub),
        (DType::I32, 1, Combine::Reduce(ReduceKind::Min)),
        (DType::F16, 1, Combine::Reduce(ReduceKind::Sum)),
        (DType::U8, 1, Combine::Reduce(ReduceKind::Max)),
        (DType::Bool, 1, Combine::Reduce(ReduceKind::Or)),
        (DType::F32, 4, Combine::Reduce(ReduceKind::Sum)),
        (DType::I16, 4, Combine::Set),
        (DType::U32, 16, Combine::Reduce(ReduceKind::Prod)),
    ] {
        for (i, mode) in [(DType::I32, OutOfBounds::FillOrDrop), (DType::I64, OutOfBounds::Clip)] {
            let indices: Dims = [n, 1].into();
            let scatter = Routine::Scatter(Scatter {
                operand: [rows, width].into(),
                indices: indices.clone(),
                updates: [n, width].into(),
                update_window_dims: [1].into(),
                inserted_window_dims: [0].into(),
                scatter_dims_to_operand_dims: [0].into(),
                operand_batching_dims: Dims::default(),
                scatter_indices_batching_dims: Dims::default(),
                combine,
                mode,
                unique: false,
                dtype: d,
                index_dtype: i,
            });
            let gather = Routine::Gather(Gather {
                operand: [rows, width].into(),
                indices,
                slice_sizes: [1, width].into(),
                offset_dims: [1].into(),
                collapsed_slice_dims: [0].into(),
                start_index_map: [0].into(),
                operand_batching_dims: Dims::default(),
                start_indices_batching_dims: Dims::default(),
                mode,
                fill: Scalar::from_f64(d, 7.0),
                dtype: d,
                index_dtype: i,
                out: [n, width].into(),
                apart: false,
            });
            // windows that stand before the positions: columns
            let columns = Routine::Gather(Gather {
                operand: [width, rows].into(),
                indices: [n, 1].into(),
                slice_sizes: [width, 1].into(),
                offset_dims: [0].into(),
                collapsed_slice_dims: [1].into(),
                start_index_map: [1].into(),
                operand_batching_dims: Dims::default(),
                start_indices_batching_dims: Dims::default(),
                mode,
                fill: Scalar::from_f64(d, 7.0),
                dtype: d,
                index_dtype: i,
                out: [width, n].into(),
                apart: false,
            });
            let operand = random_bytes(rng, d, rows * width);
            let at = index_bytes(rng, i, n, rows + 2);
            check(&gather, &[operand.clone(), at.clone()]);
            check(&columns, &[operand.clone(), at.clone()]);
            check(&scatter, &[operand, at, random_bytes(rng, d, n * width)]);
        }
    }
}

/// Windows that move along an axis of their own and stand before the positions: a broken promise takes them window by window.
#[test]
fn a_broken_promise_of_windows_that_come_first() {
    let (n, width, places) = (20, 3, 40);
    let rng = &mut Rng(11);
    for (d, combine) in
        [(DType::F32, Combine::Set), (DType::F32, Combine::Reduce(ReduceKind::Sum)), (DType::I8, Combine::Sub)]
    {
        let scatter = |updates: [usize; 2], window: usize, unique: bool| {
            Routine::Scatter(Scatter {
                operand: [n].into(),
                indices: [places, 1].into(),
                updates: updates.into(),
                update_window_dims: [window].into(),
                inserted_window_dims: Dims::default(),
                scatter_dims_to_operand_dims: [0].into(),
                operand_batching_dims: Dims::default(),
                scatter_indices_batching_dims: Dims::default(),
                combine,
                mode: OutOfBounds::FillOrDrop,
                unique,
                dtype: d,
                index_dtype: DType::I32,
            })
        };
        let (x, at) = (random_bytes(rng, d, n), index_bytes(rng, DType::I32, places, n));
        let rows = random_bytes(rng, d, places * width);
        let element = |i: usize| rows[i * d.size()..(i + 1) * d.size()].to_vec();
        let columns: Vec<u8> = (0..width * places).flat_map(|i| element(i % places * width + i / places)).collect();
        let by_window = [x.clone(), at.clone(), rows.clone()];
        let views: Vec<&[u8]> = by_window.iter().map(|b| &b[..]).collect();
        let want = reference::routine(&scatter([places, width], 1, false), &views).unwrap();
        for threads in [1, 7] {
            set_num_threads(threads);
            let got = run(&scatter([width, places], 0, true), &[x.clone(), at.clone(), columns.clone()], false);
            assert_eq!(scalars(d, &got[0]), scalars(d, &want[0]), "{d} {combine:?}");
        }
        set_num_threads(0);
    }
}

/// Rows that are long enough to be taken as matrices lie at other distances in the operand than in the result.
#[test]
fn long_transforms_are_those_of_each_row() {
    for kind in [FftKind::Forward, FftKind::Inverse, FftKind::RealForward, FftKind::RealInverse] {
        let f = Fft { kind, outer: 3, lengths: Dims::new(&[1 << 17]), inner: 1, dtype: DType::F32 };
        let (all, one) = (Routine::Fft(f.clone()), Routine::Fft(Fft { outer: 1, ..f.clone() }));
        let x = whole(&mut Rng(7), f.dtype, all.operands()[0].1);
        let parts: Vec<u8> =
            x.chunks_exact(x.len() / 3).flat_map(|x| run(&one, &[x.to_vec()], false).remove(0)).collect();
        assert!(run(&all, &[x], false)[0] == parts, "{f:?}");
    }
}
/// Threads and tiers: the same bits.
#[test]
fn transforms_do_not_depend_on_threads() {
    let lengths: [&[usize]; 5] = [&[1 << 18], &[40_009], &[300, 300], &[40, 50, 60], &[1 << 12]];
    for (n, kind) in
        lengths.iter().flat_map(|n| [FftKind::Forward, FftKind::RealForward, FftKind::RealInverse].map(|k| (*n, k)))
    {
        let r = Routine::Fft(Fft {
            kind,
            outer: if n[0] == 1 << 12 { 40 } else { 1 },
            lengths: Dims::new(n),
            inner: if n[0] == 300 { 3 } else { 1 },
            dtype: DType::F32,
        });
        let x = whole(&mut Rng(7), DType::F32, r.operands()[0].1);
        set_num_threads(1);
        let alone = run_on(Tier::Portable, &r, &[x.clone()], false);
        set_num_threads(3);
        let together = run(&r, &[x], false);
        set_num_threads(0);
        assert!(alone == together, "{r:?}");
    }
}
