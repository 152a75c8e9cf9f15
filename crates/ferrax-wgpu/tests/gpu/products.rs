//! Products with what is computed of each of their results: the values of the steps one by one, in the passes of the product alone.
use crate::examples::{Build, load};
use crate::rows::at_once;
use crate::run::{Noise, compare, own_gpu, routine_plan};
use ferrax_kernel::kernel::{Affine, Guard, Kernel, Node};
use ferrax_kernel::plan::{Place, Plan, SlotId, Step};
use ferrax_kernel::routine::{Conv, Dot};
use ferrax_kernel::{Bin, DType, Dims, ReduceKind, Routine, Un};
use ferrax_wgpu::GpuBackend;
use std::sync::Arc;

/// An array with a value for each result of a product.
#[derive(Clone, Copy)]
struct Whole {
    slot: SlotId,
    dtype: DType,
}

fn strides(dims: &[usize]) -> Vec<i64> {
    Dims::new(dims).strides().iter().map(|s| *s as i64).collect()
}

/// The nodes of a map.
struct Nodes(Vec<(DType, Node)>);
impl Nodes {
    fn add(&mut self, d: DType, node: Node) -> u32 {
        self.0.push((d, node));
        self.0.len() as u32 - 1
    }
    fn dtype(&self, id: u32) -> DType {
        self.0[id as usize].0
    }
    fn converted(&mut self, id: u32, d: DType) -> u32 {
        if self.dtype(id) == d { id } else { self.add(d, Node::Convert(id)) }
    }
    /// A value of an earlier one or two.
    fn random(&mut self, noise: &mut Noise) -> u32 {
        let n = self.0.len();
        let (x, y) = (noise.below(n) as u32, noise.below(n) as u32);
        let d = if self.dtype(x) == DType::Bool { DType::I32 } else { self.dtype(x) };
        let (x, y) = (self.converted(x, d), self.converted(y, d));
        match noise.below(8) {
            0 => self.add(d, Node::Un([Un::Neg, Un::Abs][noise.below(2)], x)),
            1 | 2 => {
                let p = self.add(DType::Bool, Node::Bin([Bin::Gt, Bin::Le][noise.below(2)], x, y));
                self.add(d, Node::Select { p, t: x, f: y })
            }
            3 | 4 => {
                let to = [DType::F32, DType::F16, DType::BF16, DType::I32, DType::I8, DType::U8][noise.below(6)];
                self.converted(x, to)
            }
            _ => {
                let f = [Bin::Add, Bin::Sub, Bin::Mul, Bin::Max, Bin::Min][noise.below(5)];
                self.add(d, Node::Bin(f, x, y))
            }
        }
    }
}

/// A map of some of `wholes`, and of arrays over some of the axes, which are inputs.
fn map(noise: &mut Noise, b: &mut Build, axes: &[usize], wholes: &[Whole], is_last: bool) -> (Step, Vec<Whole>) {
    // as programs have them: split, or with axes made one
    let axes: Vec<usize> = match noise.below(3) {
        0 => axes.iter().flat_map(|d| if d % 2 == 0 { vec![d / 2, 2] } else { vec![*d] }).collect(),
        _ => axes.to_vec(),
    };
    let grid = if noise.below(3) == 0 { vec![axes.iter().product()] } else { axes };
    let (mut nodes, mut inputs, mut ins) = (Nodes(vec![]), vec![], vec![]);
    for w in [&wholes[..1], &wholes[wholes.len() - 1..]].concat() {
        nodes.add(w.dtype, load(w.dtype, ins.len() as u32, &strides(&grid)).1);
        inputs.push((w.dtype, grid.iter().product()));
        ins.push(w.slot);
    }
    for _ in 0..1 + noise.below(2) {
        let d = [DType::F32, DType::F16, DType::I32][noise.below(3)];
        let of: Vec<bool> = grid.iter().map(|_| noise.below(2) == 0).collect();
        let sizes: Vec<usize> = grid.iter().zip(&of).map(|(n, of)| if *of { *n } else { 1 }).collect();
        let at: Vec<i64> = strides(&sizes).iter().zip(&of).map(|(s, of)| if *of { *s } else { 0 }).collect();
        let len = sizes.iter().product();
        nodes.add(d, load(d, ins.len() as u32, &at).1);
        inputs.push((d, len));
        ins.push(b.input(d, len));
    }
    let mut outputs = vec![];
    for _ in 0..2 + noise.below(5) {
        let last = nodes.random(noise);
        if noise.below(6) == 0 {
            outputs.push(last);
        }
    }
    let joined = nodes.converted(nodes.0.len() as u32 - 1, nodes.dtype(0));
    let f = if nodes.dtype(0) == DType::Bool { Bin::Xor } else { Bin::Add };
    outputs.push(nodes.add(nodes.dtype(0), Node::Bin(f, joined, 0)));
    outputs.dedup();
    let made: Vec<Whole> = outputs
        .iter()
        .map(|o| {
            let (dtype, len) = (nodes.dtype(*o), grid.iter().product());
            let slot = if is_last || noise.below(3) == 0 { b.output(dtype, len) } else { b.temp(dtype, len) };
            Whole { slot, dtype }
        })
        .collect();
    let kernel = Kernel { grid: Dims::new(&grid), rdims: Dims::default(), inputs, nodes: nodes.0, outputs };
    (Step::Kernel { kernel: Arc::new(kernel), ins, outs: made.iter().map(|w| w.slot).collect() }, made)
}

/// A product, whose results have these axes, with maps that read it one after the other.
fn product_with_maps(noise: &mut Noise, r: &Routine, axes: &[usize]) -> Plan {
    let mut b = Build::default();
    let ins = r.operands().iter().map(|(d, len)| b.input(*d, *len)).collect();
    let (dtype, len) = r.results()[0];
    let slot = if noise.below(3) == 0 { b.output(dtype, len) } else { b.temp(dtype, len) };
    let mut steps = vec![Step::Routine { routine: Arc::new(r.clone()), ins, outs: vec![slot] }];
    let mut wholes = vec![Whole { slot, dtype }];
    let maps = 1 + noise.below(2);
    for i in 0..maps {
        let (step, made) = map(noise, &mut b, axes, &wholes, i + 1 == maps);
        steps.push(step);
        wholes.extend(made);
    }
    b.0.steps = steps;
    b.0
}

fn inputs(noise: &mut Noise, plan: &Plan) -> Vec<Vec<u8>> {
    let slot = |s: &SlotId| (plan.slots[*s as usize].dtype, plan.slots[*s as usize].len);
    plan.inputs.iter().map(slot).map(|(d, len)| noise.values(d, len)).collect()
}

/// Passes of a plan.
fn passes(gpu: &GpuBackend, plan: &Plan, ins: &[Vec<u8>]) -> usize {
    at_once(gpu, plan, ins).1
}

fn check(gpu: &GpuBackend, noise: &mut Noise, r: &Routine, axes: &[usize]) {
    let plan = product_with_maps(noise, r, axes);
    let ins = inputs(noise, &plan);
    let what = format!("{r:?} with {:?}", &plan.steps[1..]);
    compare(gpu, &what, plan.clone(), &ins, 0.0, 0.0);
    let alone = passes(gpu, &routine_plan(r), &ins[..2]);
    // rows that end within a word go through memory
    let ends = axes.last().is_some_and(|n| n % 4 != 0);
    let is_narrow = plan.outputs.iter().any(|o| plan.slots[*o as usize].dtype.size() < 4);
    let got = passes(gpu, &plan, &ins);
    assert!(got == alone || got == alone + 1 && ends && is_narrow, "{what}: {got} passes, {alone} alone");
}

#[test]
fn maps_of_products_are_in_their_passes() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(51);
    let sizes = [1, 15, 16, 17, 60, 63, 64, 65, 128, 130];
    for turn in 0..35 {
        let (b, m, n) = ([1, 1, 2, 3][noise.below(4)], sizes[noise.below(10)], sizes[noise.below(10)]);
        let k = if m * n < 5000 { [1, 8, 33, 512, 600, 1024] } else { [1, 7, 8, 9, 16, 33] }[noise.below(6)];
        let (mi, ni, ki) = (m as i64, n as i64, k as i64);
        let lhs = if noise.below(2) == 0 { [mi * ki, ki, 1] } else { [mi * ki, 1, mi] };
        let rhs = if noise.below(2) == 0 { [ni * ki, ni, 1] } else { [0, 1, ki] };
        let (dtype, out) = [
            (DType::F32, DType::F32),
            (DType::F16, DType::F16),
            (DType::BF16, DType::F32),
            (DType::BF16, DType::BF16),
            (DType::I32, DType::I32),
            (DType::I8, DType::I8),
            (DType::Bool, DType::Bool),
        ][turn % 7];
        let r = Routine::Dot(Dot { b, m, n, k, lhs, rhs, dtype, out });
        check(&gpu, &mut noise, &r, &[b, m, n]);
    }
}

/// Of images, with places as rows or as columns of the result, in one part and in several.
#[test]
fn maps_of_convolutions_are_in_their_passes() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(52);
    for turn in 0..12 {
        let (last, dtype) = (turn % 2 == 0, [DType::F32, DType::I32][turn / 2 % 2]);
        let (images, places, window) = (2, [9, 16, 40][noise.below(3)], [3, 16][noise.below(2)]);
        let (space, channels, columns) = (places + window - 1, [8, 40][noise.below(2)], [8, 12, 65][noise.below(3)]);
        let (h, c) = if last { (channels, 1) } else { (1, space) };
        let image = space * channels;
        let conv = Conv {
            batch: if last { Dims::default() } else { [images].into() },
            rows: if last { Dims::new(&[images, places]) } else { [places].into() },
            terms: Dims::new(&[window, channels]),
            columns,
            x: images * image,
            at: Affine::new(0, [image, h, h, c].map(|s| s as i64)),
            guards: vec![Guard { at: Affine::new(0, [0, 1, 1, 0]), lo: 0, hi: space as i64 }],
            y: if last { Dims::new(&[columns, 1]) } else { Dims::new(&[0, columns, 1]) },
            out: if last { Dims::new(&[columns, 1]) } else { Dims::new(&[columns * places, 1, places]) },
            dtype,
        };
        let axes = if last { [images, places, columns] } else { [images, columns, places] };
        check(&gpu, &mut noise, &Routine::Conv(Box::new(conv)), &axes);
    }
}

/// `p = x @ y` of 64 by 48 results, then a step for each of `readers`, which have the product's slot, its number of values, and results.
fn with_readers(readers: &[&dyn Fn(&mut Build, SlotId) -> Step]) -> Plan {
    let (m, n, k) = (64, 48, 32);
    let (lhs, rhs) = ([0, 32, 1], [0, 48, 1]);
    let r = Routine::Dot(Dot { b: 1, m, n, k, lhs, rhs, dtype: DType::F32, out: DType::F32 });
    let mut b = Build::default();
    let ins = r.operands().iter().map(|(d, len)| b.input(*d, *len)).collect();
    let p = b.temp(DType::F32, m * n);
    let mut steps = vec![Step::Routine { routine: Arc::new(r), ins, outs: vec![p] }];
    steps.extend(readers.iter().map(|f| f(&mut b, p)));
    b.0.steps = steps;
    b.0
}
/// `-p[at]` over a grid, as a result.
fn negated(b: &mut Build, p: SlotId, grid: &[usize], at: &[i64]) -> Step {
    let len = grid.iter().product();
    let nodes = vec![load(DType::F32, 0, at), (DType::F32, Node::Un(Un::Neg, 0))];
    let (grid, inputs) = (Dims::new(grid), vec![(DType::F32, len)]);
    let kernel = Kernel { grid, rdims: Dims::default(), inputs, nodes, outputs: vec![1] };
    let out = b.output(DType::F32, len);
    Step::Kernel { kernel: Arc::new(kernel), ins: vec![p], outs: vec![out] }
}

#[test]
fn readers_of_other_positions_have_passes_of_their_own() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(53);
    let own = |b: &mut Build, p: SlotId| negated(b, p, &[64, 48], &[48, 1]);
    let transposed = |b: &mut Build, p: SlotId| negated(b, p, &[48, 64], &[1, 48]);
    let sum = |b: &mut Build, p: SlotId| {
        let nodes = vec![load(DType::F32, 0, &[48, 1]), (DType::F32, Node::Reduce { kind: ReduceKind::Sum, of: 0 })];
        let inputs = vec![(DType::F32, 64 * 48)];
        let kernel = Kernel { grid: [64].into(), rdims: [48].into(), inputs, nodes, outputs: vec![1] };
        let out = b.output(DType::F32, 64);
        Step::Kernel { kernel: Arc::new(kernel), ins: vec![p], outs: vec![out] }
    };
    // p + z, where a step before it writes z
    let made = |b: &mut Build, _: SlotId| negated(b, 0, &[64, 32], &[32, 1]);
    let later = |b: &mut Build, p: SlotId| {
        let z = b.0.outputs[0];
        let nodes =
            vec![load(DType::F32, 0, &[48, 1]), load(DType::F32, 1, &[32, 0]), (DType::F32, Node::Bin(Bin::Add, 0, 1))];
        let inputs = vec![(DType::F32, 64 * 48), (DType::F32, 64 * 32)];
        let (grid, outputs) = (Dims::new(&[64, 48]), vec![2]);
        let kernel = Kernel { grid, rdims: Dims::default(), inputs, nodes, outputs };
        let out = b.output(DType::F32, 64 * 48);
        Step::Kernel { kernel: Arc::new(kernel), ins: vec![p, z], outs: vec![out] }
    };
    type Reader<'a> = &'a dyn Fn(&mut Build, SlotId) -> Step;
    let cases: [(&[Reader], usize); 7] = [
        (&[&own], 1),
        (&[&transposed], 1),
        (&[&own, &own], 1),
        (&[&own, &transposed], 2),
        (&[&transposed, &own], 2),
        (&[&sum, &own], 2),
        (&[&made, &later], 3),
    ];
    for (readers, expected) in cases {
        let plan = with_readers(readers);
        let ins = inputs(&mut noise, &plan);
        compare(&gpu, &format!("{:?}", plan.steps), plan.clone(), &ins, 0.0, 0.0);
        assert_eq!(passes(&gpu, &plan, &ins), expected, "{:?}", plan.steps);
    }
}

#[test]
fn products_of_which_the_transpose_is_read_are_one_pass() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(56);
    let sizes = [1, 10, 16, 30, 64, 65, 128];
    for turn in 0..24 {
        let (b, m, n, k) = (1 + noise.below(3), sizes[noise.below(7)], sizes[noise.below(7)], 1 + noise.below(40));
        let (mi, ni, ki) = (m as i64, n as i64, k as i64);
        let lhs = if noise.below(2) == 0 { [mi * ki, ki, 1] } else { [mi * ki, 1, mi] };
        let rhs = if noise.below(2) == 0 { [ni * ki, ni, 1] } else { [ni * ki, 1, ki] };
        let (dtype, out) = [(DType::F32, DType::F32), (DType::BF16, DType::F32), (DType::I32, DType::I32)][turn % 3];
        let r = Routine::Dot(Dot { b, m, n, k, lhs, rhs, dtype, out });
        let mut it = Build::default();
        let ins = r.operands().iter().map(|(d, len)| it.input(*d, *len)).collect();
        let (w, p, y) = (it.input(out, b * m * n), it.temp(out, b * m * n), it.output(out, b * m * n));
        let nodes =
            vec![load(out, 0, &[mi * ni, mi, 1]), load(out, 1, &[mi * ni, 1, ni]), (out, Node::Bin(Bin::Sub, 0, 1))];
        let (grid, inputs) = (Dims::new(&[b, n, m]), vec![(out, b * m * n); 2]);
        let kernel = Kernel { grid, rdims: Dims::default(), inputs, nodes, outputs: vec![2] };
        it.0.steps = vec![
            Step::Routine { routine: Arc::new(r.clone()), ins, outs: vec![p] },
            Step::Kernel { kernel: Arc::new(kernel), ins: vec![w, p], outs: vec![y] },
        ];
        let ins = self::inputs(&mut noise, &it.0);
        let what = format!("{:?}", it.0.steps);
        compare(&gpu, &what, it.0.clone(), &ins, 0.0, 0.0);
        assert_eq!(passes(&gpu, &it.0, &ins), passes(&gpu, &routine_plan(&r), &ins[..2]), "{what}");
    }
}

/// The strides of an array whose axes lie in random order in memory.
fn permuted(noise: &mut Noise, sizes: &[usize]) -> Vec<i64> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    (1..sizes.len()).for_each(|i| order.swap(i, noise.below(i + 1)));
    let (mut behind, mut at) = (1, vec![0; sizes.len()]);
    for k in order {
        at[k] = behind;
        behind *= sizes[k] as i64;
    }
    at
}
/// A step that makes an array of these axes from another, where they are divided, in another order and perhaps reversed or alike for all of one.
fn moved(noise: &mut Noise, b: &mut Build, axes: &[usize], d: DType) -> (Step, SlotId) {
    let grid: Vec<usize> =
        axes.iter().flat_map(|n| if n % 2 == 0 && noise.below(2) == 0 { vec![n / 2, 2] } else { vec![*n] }).collect();
    let mut at = Affine::new(0, permuted(noise, &grid));
    let (k, len) = (noise.below(grid.len()), grid.iter().product());
    match noise.below(4) {
        0 => {
            at.offset = at.strides[k] * (grid[k] as i64 - 1);
            at.strides[k] = -at.strides[k];
        }
        1 => at.strides[k] = 0,
        _ => (),
    }
    let from = [DType::F32, DType::F16, DType::I32, d][noise.below(4)];
    let mut access = load(from, 0, &[]);
    if let Node::Load(a) = &mut access.1 {
        a.at = at;
    }
    let nodes = if from == d { vec![access] } else { vec![access, (d, Node::Convert(0))] };
    let outputs = vec![nodes.len() as u32 - 1];
    let kernel = Kernel { grid: Dims::new(&grid), rdims: Dims::default(), inputs: vec![(from, len)], nodes, outputs };
    let (source, out) = (b.input(from, len), b.temp(d, len));
    (Step::Kernel { kernel: Arc::new(kernel), ins: vec![source], outs: vec![out] }, out)
}

#[test]
fn operands_are_read_where_they_come_from() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(54);
    let sizes = [2, 16, 17, 24, 64, 66, 130];
    for turn in 0..40 {
        let (b, m, n) = ([1, 2, 4][noise.below(3)], sizes[noise.below(7)], sizes[noise.below(7)]);
        let k = if b == 1 && m * n < 5000 { [8, 33, 512, 1024] } else { [6, 8, 16, 32] }[noise.below(4)];
        let (mi, ni, ki) = (m as i64, n as i64, k as i64);
        let by = [noise.below(2) == 0, noise.below(2) == 0];
        let lhs = if by[0] { [mi * ki, ki, 1] } else { [mi * ki, 1, mi] };
        let rhs = if by[1] { [ni * ki, ni, 1] } else { [ni * ki, 1, ki] };
        let (dtype, out) = [(DType::F32, DType::F32), (DType::BF16, DType::F32), (DType::I32, DType::I32)][turn % 3];
        let r = Routine::Dot(Dot { b, m, n, k, lhs, rhs, dtype, out });
        let mut it = Build::default();
        let axes = [if by[0] { [b, m, k] } else { [b, k, m] }, if by[1] { [b, k, n] } else { [b, n, k] }];
        let (mut steps, mut ins) = (vec![], vec![]);
        for (i, axes) in axes.iter().enumerate() {
            // one of them, or both
            if turn % 4 == i {
                ins.push(it.input(dtype, axes.iter().product()));
            } else {
                let (step, slot) = moved(&mut noise, &mut it, axes, dtype);
                steps.push(step);
                ins.push(slot);
            }
        }
        let product = it.output(out, b * m * n);
        steps.push(Step::Routine { routine: Arc::new(r.clone()), ins, outs: vec![product] });
        it.0.steps = steps;
        let ins = inputs(&mut noise, &it.0);
        let what = format!("{:?}", it.0.steps);
        compare(&gpu, &what, it.0.clone(), &ins, 0.0, 0.0);
        let operands: Vec<Vec<u8>> = r.operands().iter().map(|(d, len)| noise.values(*d, *len)).collect();
        assert_eq!(passes(&gpu, &it.0, &ins), passes(&gpu, &routine_plan(&r), &operands), "{what}");
    }
}

/// `t` is x transposed, `p = t @ y`; `between` has steps of x and t in between.
fn of_transposed(between: impl Fn(&mut Build, SlotId, SlotId) -> Vec<Step>) -> Plan {
    let (m, n, k, d) = (64, 48, 32, DType::F32);
    let mut b = Build::default();
    let (from, y, start) = (b.input(d, k * m), b.input(d, k * n), b.input(DType::I32, 1));
    let (x, t, p) = (b.temp(d, k * m), b.temp(d, k * m), b.output(d, m * n));
    let one = |nodes: Vec<(DType, Node)>, grid: &[usize]| {
        let outputs = vec![nodes.len() as u32 - 1];
        Arc::new(Kernel { grid: Dims::new(grid), rdims: Dims::default(), inputs: vec![(d, k * m)], nodes, outputs })
    };
    let negated = one(vec![load(d, 0, &[1]), (d, Node::Un(Un::Neg, 0))], &[k * m]);
    let transposed = one(vec![load(d, 0, &[1, m as i64])], &[m, k]);
    let r = Dot { b: 1, m, n, k, lhs: [0, k as i64, 1], rhs: [0, n as i64, 1], dtype: d, out: d };
    let mut steps = vec![
        Step::Kernel { kernel: negated, ins: vec![from], outs: vec![x] },
        Step::Kernel { kernel: transposed, ins: vec![x], outs: vec![t] },
    ];
    steps.extend(between(&mut b, x, t));
    steps.push(Step::Routine { routine: Arc::new(Routine::Dot(r)), ins: vec![t, y], outs: vec![p] });
    assert_eq!(start, 2);
    b.0.steps = steps;
    b.0
}

#[test]
fn what_others_read_or_update_is_moved() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(55);
    let nothing = |_: &mut Build, _: SlotId, _: SlotId| vec![];
    let read = |b: &mut Build, _: SlotId, t: SlotId| vec![negated(b, t, &[64, 32], &[32, 1])];
    // x is updated in place before the product reads t
    let updated = |b: &mut Build, x: SlotId, _: SlotId| {
        let (operand, update) = (Dims::new(&[64 * 32]), Dims::new(&[7]));
        let (dtype, index_dtype) = (DType::F32, DType::I32);
        let r = Routine::DynamicUpdateSlice { operand, update, dtype, index_dtype };
        let (seven, u) = (b.input(dtype, 7), b.slot(dtype, 64 * 32, Place::Same(x)));
        let step = Step::Routine { routine: Arc::new(r), ins: vec![x, seven, 2], outs: vec![u] };
        vec![step, negated(b, u, &[64 * 32], &[1])]
    };
    for (plan, expected) in [(of_transposed(nothing), 2), (of_transposed(read), 4), (of_transposed(updated), 5)] {
        let ins = inputs(&mut noise, &plan);
        compare(&gpu, &format!("{:?}", plan.steps), plan.clone(), &ins, 0.0, 0.0);
        assert_eq!(passes(&gpu, &plan, &ins), expected, "{:?}", plan.steps);
    }
}
