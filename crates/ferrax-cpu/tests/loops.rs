//! Scalar plans and loops against the reference evaluator, and loops against their unrolled bodies.
use crate::fenced::{Fenced, SEED, Side};
use crate::generate::{Rng, random_bytes, seeds};
use ferrax_cpu::{CpuBackend, Tier, native, stats};
use ferrax_kernel::backend::RunArg;
use ferrax_kernel::buffer::Memory;
use ferrax_kernel::kernel::{Access, Guard};
use ferrax_kernel::plan::{Carry, Loop, Place, SlotId, Step, Trip, Window};
use ferrax_kernel::reference::{self, ReferenceBackend};
use ferrax_kernel::routine::{Combine, Dot, OutOfBounds, Scatter};
use ferrax_kernel::{
    Affine, Backend, Bin, Buffer, DType, Dims, Kernel, Node, Plan, ReduceKind, Routine, RunCx, Scalar, Un,
};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn run(device: &dyn Backend, plan: &Plan, ins: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let exe = plan.clone().verify().and_then(|p| device.compile(p)).unwrap_or_else(|e| panic!("{e}: {plan:?}"));
    let args = ins.iter().map(|b| RunArg { buffer: device.upload(b).unwrap(), donated: false }).collect();
    let outs = exe.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args).unwrap();
    outs.iter().map(|b| device.download(b).unwrap()).collect()
}
fn scalars(d: DType, b: &[u8]) -> Vec<Scalar> {
    let nan = Scalar::from_f64(d, f64::NAN);
    reference::read(d, b).into_iter().map(|s| if d.is_float() && s.to_f64().is_nan() { nan } else { s }).collect()
}
/// The tiers of this machine: the portable one, whose nests are interpreted, and those with vectors of
/// 32 and 64 bytes.
fn devices() -> impl Iterator<Item = CpuBackend> {
    Tier::ALL.into_iter().filter_map(CpuBackend::with_tier)
}
fn same(plan: &Plan, ins: &[Vec<u8>]) {
    let want = run(&ReferenceBackend, plan, ins);
    for device in devices() {
        for ((g, w), s) in run(&device, plan, ins).iter().zip(&want).zip(&plan.outputs) {
            let d = plan.slots[*s as usize].dtype;
            assert_eq!(scalars(d, g), scalars(d, w), "{plan:?}");
        }
    }
}

const DTYPES: [DType; 5] = [DType::F32, DType::I32, DType::F16, DType::U8, DType::F64];

struct Build {
    plan: Plan,
    rng: Rng,
    dtypes: &'static [DType],
    /// Whether loops index arrays, and update elements of carries in place.
    elements: bool,
}
impl Build {
    fn new(seed: u64, dtypes: &'static [DType]) -> Build {
        Build { plan: Plan::default(), rng: Rng(seed), dtypes, elements: false }
    }
    /// A loop of up to `trips` iterations, with what it takes.
    fn generated(seed: u64, dtypes: &'static [DType], lens: &[usize], trips: usize) -> (Plan, Vec<Vec<u8>>) {
        Build::new(seed, dtypes).finished(lens, trips)
    }
    fn finished(self, lens: &[usize], trips: usize) -> (Plan, Vec<Vec<u8>>) {
        let mut b = self;
        let len = b.rng.pick(lens);
        let d = |b: &mut Build| b.rng.pick(b.dtypes);
        let given: Vec<SlotId> =
            (0..2).map(|_| d(&mut b)).collect::<Vec<_>>().into_iter().map(|d| b.input(d, len)).collect();
        let n_outs = 1 + b.rng.below(3);
        let outs = (0..n_outs).map(|_| d(&mut b)).collect::<Vec<_>>().into_iter().map(|d| b.output(d, len)).collect();
        let trips = b.rng.below(trips);
        let (mut steps, made) = b.loop_with_inits(&given, trips, len, 2, Some(outs));
        let last = b.output(b.dtypes[0], len);
        steps.push(b.kernel(&made, last));
        b.plan.steps = steps;
        let ins = b.plan.inputs.clone();
        let bytes = |s: SlotId| random_bytes(&mut b.rng, b.plan.slots[s as usize].dtype, b.plan.slots[s as usize].len);
        let ins = ins.into_iter().map(bytes).collect();
        (b.plan, ins)
    }
    fn slot(&mut self, d: DType, len: usize, place: Place) -> SlotId {
        self.plan.places.push(place);
        self.plan.add_slot(d, len, 0)
    }
    fn temp(&mut self, d: DType, len: usize) -> SlotId {
        let at = self.plan.arena;
        self.plan.arena += (len * d.size()).next_multiple_of(64).max(64);
        self.slot(d, len, Place::Arena(at))
    }
    fn input(&mut self, d: DType, len: usize) -> SlotId {
        let s = self.slot(d, len, Place::Input(self.plan.inputs.len() as u32));
        self.plan.inputs.push(s);
        s
    }
    fn output(&mut self, d: DType, len: usize) -> SlotId {
        let s = self.slot(d, len, Place::Output(self.plan.outputs.len() as u32));
        self.plan.outputs.push(s);
        self.plan.donatable.push(None);
        s
    }
    /// A kernel over `len` elements that reads some of `from` and writes a new value to `to`.
    fn kernel(&mut self, from: &[SlotId], to: SlotId) -> Step {
        let (d, len) = (self.plan.slots[to as usize].dtype, self.plan.slots[to as usize].len);
        let mut k = Kernel {
            grid: if len == 1 && self.rng.below(2) == 0 { Dims::default() } else { [len].into() },
            ..Kernel::default()
        };
        let (mut ins, mut values) = (vec![], vec![]);
        let reduces = self.rng.below(4) == 0;
        for i in 0..1 + self.rng.below(3) {
            let s = self.rng.pick(from);
            let (e, n) = (self.plan.slots[s as usize].dtype, self.plan.slots[s as usize].len);
            let mut guards = smallvec::SmallVec::new();
            let all = n as i64;
            let at = match self.rng.below(4) {
                _ if reduces && i == 0 => Affine::new(0, vec![0; k.grid.len()].into_iter().chain([1])),
                _ if n != len || len == 1 => Affine::constant(self.rng.below(n) as i64),
                0 => Affine::new(all - 1, [-1]),
                1 => {
                    let at = Affine::new(self.rng.below(3) as i64 - 1, [1]);
                    guards.push(Guard { at: at.clone(), lo: 0, hi: all });
                    at
                }
                _ => Affine::new(0, [1]),
            };
            k.inputs.push((e, n));
            let access = Access { input: ins.len() as u32, at, guards, fill: Scalar::one(e) };
            k.nodes.push((e, Node::Load(Box::new(access))));
            if reduces && i == 0 {
                k.rdims = [n].into();
                let kind = self.rng.pick(&[ReduceKind::Sum, ReduceKind::Max, ReduceKind::Prod]);
                k.nodes.push((e, Node::Reduce { kind, of: 0 }));
            }
            k.nodes.push((d, Node::Convert(k.nodes.len() as u32 - 1)));
            values.push(k.nodes.len() as u32 - 1);
            ins.push(s);
        }
        k.nodes.push((d, Node::Const(Scalar::from_f64(d, self.rng.below(4) as f64))));
        let c = k.nodes.len() as u32 - 1;
        let (x, y) = (self.rng.pick(&values), self.rng.pick(&values));
        let f = self.rng.pick(&[Bin::Add, Bin::Sub, Bin::Mul, Bin::Max, Bin::Min, Bin::Div, Bin::Rem]);
        let curve = if d.is_float() { Un::Sin } else { Un::Abs };
        k.nodes.push((d, Node::Bin(f, x, y)));
        k.nodes.push((DType::Bool, Node::Bin(self.rng.pick(&[Bin::Lt, Bin::Gt, Bin::Eq]), c + 1, c)));
        k.nodes.push((d, Node::Un(self.rng.pick(&[Un::Neg, Un::Abs, Un::Sign, curve]), y)));
        k.nodes.push((d, Node::Select { p: c + 2, t: c + 1, f: c + 3 }));
        k.outputs = vec![c + 4];
        Step::Kernel { kernel: Arc::new(k), ins, outs: vec![to] }
    }
    /// A short product of two vectors that `from` has, one of them summed up: long ones round less, by fused multiply-add.
    fn product(&mut self, from: &[SlotId], to: SlotId) -> Option<Step> {
        let (d, len) = (self.plan.slots[to as usize].dtype, self.plan.slots[to as usize].len);
        let like: Vec<SlotId> = from
            .iter()
            .copied()
            .filter(|s| self.plan.slots[*s as usize].dtype == d && self.plan.slots[*s as usize].len == len)
            .collect();
        if !matches!(d, DType::F32 | DType::F64) || like.is_empty() || len > 16 || self.rng.below(2) == 0 {
            return None;
        }
        // element i of the result: the sum over k of x[i] y[k], or of x[k] y[i]
        let (lhs, rhs, m, n) =
            if self.rng.below(2) == 0 { ([0, 1, 0], [0, 1, 0], len, 1) } else { ([0, 0, 1], [0, 0, 1], 1, len) };
        let dot = Dot { b: 1, m, n, k: len, lhs, rhs, dtype: d, out: d };
        let ins = vec![self.rng.pick(&like), self.rng.pick(&like)];
        Some(Step::Routine { routine: Arc::new(Routine::Dot(dot)), ins, outs: vec![to] })
    }
    /// A choice between two or three branches of a few kernels, whose results both are.
    fn choice(&mut self, captured: &[SlotId], len: usize) -> (Vec<Step>, Vec<SlotId>) {
        let index = self.temp(DType::I32, 1);
        let outs: Vec<SlotId> = (0..1 + self.rng.below(2))
            .map(|_| self.rng.pick(self.dtypes))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|d| self.temp(d, len))
            .collect();
        let branches = (0..2 + self.rng.below(2))
            .map(|_| {
                let mut inside = captured.to_vec();
                let mut steps = vec![];
                if self.rng.below(2) == 0 {
                    let d = self.rng.pick(self.dtypes);
                    let t = self.temp(d, len);
                    steps.push(self.kernel(&inside, t));
                    inside.push(t);
                }
                steps.extend(outs.iter().map(|o| self.kernel(&inside, *o)));
                steps
            })
            .collect();
        let steps = vec![self.kernel(captured, index), Step::Switch { index, branches, outs: outs.clone() }];
        (steps, outs)
    }
    /// What sets, adds to or drops an element of each of these carries, in place.
    fn updates(&mut self, inside: &[SlotId], carries: &[(SlotId, SlotId)]) -> Vec<Step> {
        let (mut before, mut steps) = (vec![], vec![]);
        for (slot, next) in carries {
            let (dtype, len) = (self.plan.slots[*slot as usize].dtype, self.plan.slots[*slot as usize].len);
            let (update, index) = (self.temp(dtype, 1), self.temp(DType::I32, 1));
            before.extend([self.kernel(inside, update), self.kernel(inside, index)]);
            let (one, index_dtype): (Dims, DType) = ([1].into(), DType::I32);
            let (routine, ins) = if self.rng.below(2) == 0 {
                let r = Routine::DynamicUpdateSlice { operand: [len].into(), update: one, dtype, index_dtype };
                (r, vec![*slot, update, index])
            } else {
                let combines = [Combine::Set, Combine::Reduce(ReduceKind::Sum), Combine::Reduce(ReduceKind::Max)];
                let r = Routine::Scatter(Scatter {
                    operand: [len].into(),
                    indices: one.clone(),
                    updates: Dims::default(),
                    update_window_dims: Dims::default(),
                    inserted_window_dims: [0].into(),
                    scatter_dims_to_operand_dims: [0].into(),
                    operand_batching_dims: Dims::default(),
                    scatter_indices_batching_dims: Dims::default(),
                    combine: self.rng.pick(&combines),
                    mode: self.rng.pick(&[OutOfBounds::Clip, OutOfBounds::FillOrDrop]),
                    unique: false,
                    dtype,
                    index_dtype,
                });
                (r, vec![*slot, index, update])
            };
            steps.push(Step::Routine { routine: Arc::new(routine), ins, outs: vec![*next] });
        }
        before.extend(steps);
        before
    }
    /// A loop over carries like `inits` with scalar windows, `len` elements in each value; gives the slots it makes.
    fn a_loop(
        &mut self,
        captured: &[SlotId],
        trips: usize,
        len: usize,
        depth: usize,
        outs: Option<Vec<SlotId>>,
    ) -> (Step, Vec<SlotId>) {
        let n = 1 + self.rng.below(3);
        let mut carries = vec![];
        let dtypes: Vec<DType> = match &outs {
            Some(o) => o.iter().map(|s| self.plan.slots[*s as usize].dtype).collect(),
            None => (0..n).map(|_| self.rng.pick(self.dtypes)).collect(),
        };
        let mut inside: Vec<SlotId> = captured.to_vec();
        let mut body = vec![];
        let mut updated = vec![];
        for (k, d) in dtypes.iter().enumerate() {
            let init = self.temp(*d, len);
            if self.elements && self.rng.below(2) == 0 {
                let is_inner = outs.is_none();
                let slot = if is_inner { self.slot(*d, len, Place::Same(init)) } else { self.temp(*d, len) };
                let next = self.slot(*d, len, Place::Same(slot));
                let out = outs.as_ref().map_or_else(|| self.slot(*d, len, Place::Same(init)), |o| o[k]);
                inside.push(slot);
                updated.push((slot, next));
                carries.push(Carry { init, slot, next, out });
                continue;
            }
            let slot = self.temp(*d, len);
            let next = if self.rng.below(5) == 0 { slot } else { self.temp(*d, len) };
            let out = outs.as_ref().map_or_else(|| self.temp(*d, len), |o| o[k]);
            inside.push(slot);
            carries.push(Carry { init, slot, next, out });
        }
        let xs: Vec<Window> = (0..self.rng.below(2))
            .map(|_| {
                let d = self.rng.pick(self.dtypes);
                let all = self.input(d, trips * len);
                let each = self.slot(d, len, Place::Window);
                inside.push(each);
                Window { all, each }
            })
            .collect();
        for _ in 0..self.rng.below(4) {
            let d = self.rng.pick(self.dtypes);
            let t = self.temp(d, len);
            let step = match self.product(&inside, t) {
                Some(step) => step,
                None => self.kernel(&inside, t),
            };
            body.push(step);
            inside.push(t);
        }
        if self.elements && len <= 12 {
            let d = self.rng.pick(self.dtypes);
            let (all, index, part) = (self.input(d, 12), self.temp(DType::I32, 1), self.temp(d, len));
            body.push(self.kernel(&inside, index));
            let (operand, sizes) = ([12].into(), [len].into());
            let routine = Routine::DynamicSlice { operand, sizes, dtype: d, index_dtype: DType::I32 };
            body.push(Step::Routine { routine: Arc::new(routine), ins: vec![all, index], outs: vec![part] });
            inside.push(part);
        }
        if self.rng.below(3) == 0 {
            let (steps, made) = self.choice(&inside, len);
            body.extend(steps);
            inside.extend(made);
        }
        if depth > 0 && self.rng.below(3) == 0 {
            let inner = self.rng.below(4);
            let (setup, made) = self.loop_with_inits(&inside, inner, len, depth - 1, None);
            body.extend(setup);
            inside.extend(made);
        }
        let ys: Vec<Window> = (0..self.rng.below(2))
            .map(|_| {
                let d = self.rng.pick(self.dtypes);
                let all = self.temp(d, trips * len);
                let each = self.slot(d, len, Place::Window);
                body.push(self.kernel(&inside, each));
                Window { all, each }
            })
            .collect();
        for c in &carries {
            if c.next != c.slot && !updated.contains(&(c.slot, c.next)) {
                body.push(self.kernel(&inside, c.next));
            }
        }
        body.extend(self.updates(&inside, &updated));
        let made: Vec<SlotId> = carries
            .iter()
            .map(|c| c.out)
            .chain(if trips > 0 && len == 1 { ys.iter().map(|y| y.all).collect() } else { vec![] })
            .collect();
        let count = if self.rng.below(2) == 0 { Some(self.temp(DType::I32, 1)) } else { None };
        let l = Loop { trip: Trip::Static(trips), reverse: self.rng.below(2) == 0, carries, xs, ys, count, body };
        (Step::Loop(Box::new(l)), made)
    }
    fn loop_with_inits(
        &mut self,
        captured: &[SlotId],
        trips: usize,
        len: usize,
        depth: usize,
        outs: Option<Vec<SlotId>>,
    ) -> (Vec<Step>, Vec<SlotId>) {
        let (step, made) = self.a_loop(captured, trips, len, depth, outs);
        let Step::Loop(l) = &step else { unreachable!() };
        let inits: Vec<SlotId> = l.carries.iter().map(|c| c.init).collect();
        let mut steps: Vec<Step> = inits.iter().map(|i| self.kernel(captured, *i)).collect();
        steps.push(step);
        (steps, made)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn generated_loops_are_the_reference(seed: u64) {
        let (plan, ins) = Build::generated(seed, &DTYPES, &[1, 1, 1, 3, 3, 8, 16, 40], 6);
        same(&plan, &ins);
    }
}
/// Loops whose elements are alike wide are native code at once here; what each leaves after one run, the next starts from.
#[test]
fn loops_as_native_code_are_the_reference() {
    if !native::is_available() {
        return;
    }
    native::set_min_nanos(0);
    let (mut made, seeds) = (0, seeds(500));
    let all = seeds.end - seeds.start;
    for seed in seeds {
        let dtypes: &[DType] = if seed % 3 == 0 { &[DType::F64] } else { &[DType::F32, DType::I32] };
        let (plan, ins) = Build::generated(seed, dtypes, &[1, 1, 2, 3, 8], 40);
        let device = CpuBackend::new();
        let exe = device.compile(plan.clone().verify().unwrap()).unwrap();
        let want = run(&ReferenceBackend, &plan, &ins);
        for _ in 0..2 {
            let args = ins.iter().map(|b| RunArg { buffer: device.upload(b).unwrap(), donated: false }).collect();
            let outs = exe.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args).unwrap();
            for ((o, w), s) in outs.iter().zip(&want).zip(&plan.outputs) {
                let d = plan.slots[*s as usize].dtype;
                assert_eq!(scalars(d, &device.download(o).unwrap()), scalars(d, w), "seed {seed}: {}", exe.text());
            }
        }
        made += u64::from(exe.text().contains(", native"));
    }
    assert!(made >= all / 4, "{made} of {all} loops were code");
}

/// Operands between protected pages.
struct FencedMemory(Fenced, usize);
// SAFETY: plain memory, which nothing writes once it is a buffer's.
unsafe impl Send for FencedMemory {}
// SAFETY: as above.
unsafe impl Sync for FencedMemory {}
impl Memory for FencedMemory {
    fn len(&self) -> usize {
        self.1
    }
    fn host(&self) -> Option<&[u8]> {
        // SAFETY: so many bytes are readable.
        Some(unsafe { std::slice::from_raw_parts(self.0.ptr(), self.1) })
    }
}

/// Loops of mixed dtypes, nested, which index arrays and update elements: as nests, and where a dtype has none, step by step.
fn nests_are_the_reference(dtypes: &[&'static [DType]], lens: &[usize]) {
    let mut made = [0; Tier::ALL.len()];
    for (seed, (k, device)) in seeds(500).flat_map(|seed| devices().enumerate().map(move |d| (seed, d))) {
        let b = Build { elements: true, ..Build::new(seed, dtypes[seed as usize % dtypes.len()]) };
        let (plan, ins) = b.finished(lens, 7);
        let exe = device.compile(plan.clone().verify().unwrap_or_else(|e| panic!("{e}: {plan:?}"))).unwrap();
        let want = run(&ReferenceBackend, &plan, &ins);
        SEED.store(seed, Ordering::Relaxed);
        for side in Side::BOTH {
            let fenced = |b: &Vec<u8>| Buffer::ready(FencedMemory(Fenced::copy_of(b, side), b.len()));
            let args = ins.iter().map(|b| RunArg { buffer: fenced(b), donated: false }).collect();
            let outs = exe.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args).unwrap();
            for ((o, w), s) in outs.iter().zip(&want).zip(&plan.outputs) {
                let d = plan.slots[*s as usize].dtype;
                let (got, want) = (scalars(d, &device.download(o).unwrap()), scalars(d, w));
                assert_eq!(got, want, "seed {seed}: {}\n{plan:?}", exe.text());
            }
        }
        let how = if k == 0 { ", interpreted" } else { ", native" };
        made[k] += usize::from(exe.text().contains("nest of") && exe.text().contains(how));
    }
    println!("{made:?} were nests");
    assert!(made[1] > 0 || !native::is_available());
    assert!(made[0] > 0 || lens[0] > 8);
}
#[test]
fn generated_nests_are_the_reference() {
    const HELD: [DType; 8] =
        [DType::F32, DType::I32, DType::U8, DType::F64, DType::I64, DType::I16, DType::U32, DType::I32];
    nests_are_the_reference(&[&DTYPES, &HELD, &HELD, &HELD, &HELD], &[1, 1, 2, 3, 7]);
}
/// The same over rows, as vectors where the numbers are alike wide.
#[test]
fn generated_nests_over_rows_are_the_reference() {
    let alike: [&'static [DType]; 7] = [
        &[DType::F32],
        &[DType::F32, DType::I32],
        &[DType::F64, DType::I64],
        &[DType::F64],
        &[DType::F32, DType::I32, DType::U32],
        &[DType::I64, DType::U32, DType::I32],
        &[DType::F64, DType::I64, DType::I32, DType::F32],
    ];
    nests_are_the_reference(&alike, &[9, 12, 16, 17, 40]);
}

/// `while x < limit { x = x + x * k; n += 1 }`, for scalars (in registers) and for arrays (in memory).
fn doubling(len: usize) -> Plan {
    let mut b = Build::new(0, &DTYPES);
    let f = DType::F32;
    let (x0, k) = (b.input(f, len), b.input(f, len));
    let (out, count) = (b.output(f, len), b.output(DType::I32, 1));
    let (x, next, pred) = (b.temp(f, len), b.temp(f, len), b.temp(DType::Bool, 1));
    let load = |input, strides: &[i64]| {
        (
            f,
            Node::Load(Box::new(Access {
                input,
                at: Affine::new(0, strides.iter().copied()),
                guards: Default::default(),
                fill: Scalar::zero(f),
            })),
        )
    };
    let below = Kernel {
        inputs: vec![(f, len)],
        nodes: vec![load(0, &[]), (f, Node::Const(Scalar::f32(1000.0))), (DType::Bool, Node::Bin(Bin::Lt, 0, 1))],
        outputs: vec![2],
        ..Kernel::default()
    };
    let step = Kernel {
        grid: [len].into(),
        inputs: vec![(f, len), (f, len)],
        nodes: vec![load(0, &[1]), load(1, &[1]), (f, Node::Bin(Bin::Mul, 0, 1)), (f, Node::Bin(Bin::Add, 0, 2))],
        outputs: vec![3],
        ..Kernel::default()
    };
    let cond = vec![Step::Kernel { kernel: Arc::new(below), ins: vec![x], outs: vec![pred] }];
    let body = vec![Step::Kernel { kernel: Arc::new(step), ins: vec![x, k], outs: vec![next] }];
    let carries = vec![Carry { init: x0, slot: x, next, out }];
    b.plan.steps = vec![Step::Loop(Box::new(Loop {
        trip: Trip::While { cond, pred },
        reverse: false,
        carries,
        xs: vec![],
        ys: vec![],
        count: Some(count),
        body,
    }))];
    b.plan
}
fn f32s(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn while_loops_run_until_the_predicate_fails() {
    for worth in [u64::MAX, 0] {
        native::set_min_nanos(worth);
        for len in [1, 2, 33] {
            // up to some seven thousand iterations
            for (start, growth) in [(1.0, 1.0), (3.0, 1.0), (2000.0, 1.0), (1.0, 0.001)] {
                same(&doubling(len), &[f32s(&vec![start; len]), f32s(&vec![growth; len])]);
            }
        }
    }
}
#[test]
fn iterations_take_no_memory() {
    for len in [1, 5000] {
        let device = CpuBackend::new();
        let exe = device.compile(doubling(len).verify().unwrap()).unwrap();
        let taken = |growth: f32| {
            let args =
                [1.0, growth].map(|v| RunArg { buffer: device.upload(&f32s(&vec![v; len])).unwrap(), donated: false });
            let before = stats();
            exe.run(&RunCx { cancel: &AtomicBool::new(false), world: None }, args.into_iter().collect()).unwrap();
            let after = stats();
            (after.blocks - before.blocks, after.launches - before.launches)
        };
        taken(1.0);
        let ((few_blocks, few), (many_blocks, many)) = (taken(1.0), taken(0.001));
        // a loop of scalars is one native function, and so one launch
        assert!(many > 100 * few || len == 1 && many == few, "{many} launches against {few}");
        assert_eq!(few_blocks, many_blocks);
    }
}
