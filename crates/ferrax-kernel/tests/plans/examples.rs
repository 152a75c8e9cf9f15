//! Plans with every kind of control step, and what they compute, worked out by hand. Run on the reference evaluator here and on
//! devices in their own crates.
use ferrax_kernel::kernel::Node;
use ferrax_kernel::plan::{Carry, Loop, Place, Plan, SlotId, Step, Trip, Window};
use ferrax_kernel::{Access, Affine, Bin, DType, Dims, Kernel, Scalar};
use std::sync::Arc;

pub struct Example {
    pub name: &'static str,
    pub plan: Plan,
    pub ins: Vec<Vec<u8>>,
    pub outs: Vec<Vec<u8>>,
}

pub fn f32s(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|v| v.to_le_bytes()).collect()
}
pub fn i32s(x: &[i32]) -> Vec<u8> {
    x.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub fn load(d: DType, input: u32, strides: &[i64]) -> (DType, Node) {
    let at = Affine::new(0, strides.iter().copied());
    (d, Node::Load(Box::new(Access { input, at, guards: vec![].into(), fill: Scalar::zero(d) })))
}

/// `f(x, y)` over `len` elements; an operand of one element is broadcast.
pub fn binary(f: Bin, d: DType, len: usize, lens: [usize; 2]) -> Kernel {
    let stride = |n: usize| if n == 1 { 0 } else { 1 };
    let out = if f.is_comparison() { DType::Bool } else { d };
    Kernel {
        grid: Dims::new(&[len]),
        rdims: Dims::default(),
        inputs: vec![(d, lens[0]), (d, lens[1])],
        nodes: vec![load(d, 0, &[stride(lens[0])]), load(d, 1, &[stride(lens[1])]), (out, Node::Bin(f, 0, 1))],
        outputs: vec![2],
    }
}

/// A plan under construction: slots with their places, all intermediates at offsets of their own in the arena.
#[derive(Default)]
pub struct Build(pub Plan);
impl Build {
    pub fn slot(&mut self, d: DType, len: usize, place: Place) -> SlotId {
        self.0.places.push(place);
        self.0.add_slot(d, len, 0)
    }
    pub fn temp(&mut self, d: DType, len: usize) -> SlotId {
        let at = self.0.arena;
        self.0.arena += (len * d.size()).next_multiple_of(64).max(64);
        self.slot(d, len, Place::Arena(at))
    }
    pub fn input(&mut self, d: DType, len: usize) -> SlotId {
        let s = self.slot(d, len, Place::Input(self.0.inputs.len() as u32));
        self.0.inputs.push(s);
        s
    }
    pub fn output(&mut self, d: DType, len: usize) -> SlotId {
        let s = self.slot(d, len, Place::Output(self.0.outputs.len() as u32));
        self.0.outputs.push(s);
        self.0.donatable.push(None);
        s
    }
    pub fn window(&mut self, d: DType, len: usize) -> SlotId {
        self.slot(d, len, Place::Window)
    }
    pub fn tape(&mut self, d: DType, len: usize) -> SlotId {
        self.0.places.push(Place::Tape);
        self.0.add_slot(d, len, 1)
    }
    pub fn carry(&mut self, d: DType, len: usize, init: SlotId, out: SlotId) -> Carry {
        Carry { init, slot: self.temp(d, len), next: self.temp(d, len), out }
    }
    /// `z = f(x, y)`.
    pub fn binary(&self, f: Bin, x: SlotId, y: SlotId, z: SlotId) -> Step {
        let slot = |s: SlotId| &self.0.slots[s as usize];
        let kernel = binary(f, slot(x).dtype, slot(z).len, [slot(x).len, slot(y).len]);
        Step::Kernel { kernel: Arc::new(kernel), ins: vec![x, y], outs: vec![z] }
    }
    pub fn constant(&self, x: Scalar, to: SlotId) -> Step {
        Step::Kernel {
            kernel: Arc::new(ferrax_kernel::plan::fill(x, self.0.slots[to as usize].len)),
            ins: vec![],
            outs: vec![to],
        }
    }
}

fn static_loop(trip: Trip, carries: Vec<Carry>, body: Vec<Step>) -> Loop {
    Loop { trip, reverse: false, carries, xs: vec![], ys: vec![], count: None, body }
}

/// `a, b = b, a + b`, ten times: carries that are exchanged.
fn fibonacci() -> Example {
    let mut b = Build::default();
    let (x, y) = (b.input(DType::I32, 1), b.input(DType::I32, 1));
    let (p, q) = (b.output(DType::I32, 1), b.output(DType::I32, 1));
    let first = b.carry(DType::I32, 1, x, p);
    let second = b.carry(DType::I32, 1, y, q);
    let body = vec![
        Step::Copy { from: second.slot, to: first.next },
        b.binary(Bin::Add, first.slot, second.slot, second.next),
    ];
    b.0.steps = vec![Step::Loop(Box::new(static_loop(Trip::Static(10), vec![first, second], body)))];
    Example { name: "fibonacci", plan: b.0, ins: vec![i32s(&[0]), i32s(&[1])], outs: vec![i32s(&[55]), i32s(&[89])] }
}

/// `c += x[i]; y[i] = c * c` over the rows of f32[3, 2], from either end.
fn scan(reverse: bool) -> Example {
    let mut b = Build::default();
    let (c0, xs) = (b.input(DType::F32, 2), b.input(DType::F32, 6));
    let (c, ys) = (b.output(DType::F32, 2), b.output(DType::F32, 6));
    let carry = b.carry(DType::F32, 2, c0, c);
    let (x, y) = (b.window(DType::F32, 2), b.window(DType::F32, 2));
    let body = vec![b.binary(Bin::Add, carry.slot, x, carry.next), b.binary(Bin::Mul, carry.next, carry.next, y)];
    let mut l = static_loop(Trip::Static(3), vec![carry], body);
    l.reverse = reverse;
    l.xs.push(Window { all: xs, each: x });
    l.ys.push(Window { all: ys, each: y });
    b.0.steps = vec![Step::Loop(Box::new(l))];
    let squares = if reverse { [100., 196., 81., 144., 36., 64.] } else { [4., 16., 25., 64., 100., 196.] };
    Example {
        name: if reverse { "scan, reverse" } else { "scan" },
        plan: b.0,
        ins: vec![f32s(&[1., 2.]), f32s(&[1., 2., 3., 4., 5., 6.])],
        outs: vec![f32s(&[10., 14.]), f32s(&squares)],
    }
}

/// `while i < n { tape.push(i * i); i += 1 }`, then the tape's length, then the sum of the tape, read from its end.
fn while_with_tape(n: i32) -> Example {
    let mut b = Build::default();
    let bound = b.input(DType::I32, 1);
    let (i_out, len, sum) = (b.output(DType::I32, 1), b.output(DType::I32, 1), b.output(DType::I32, 1));
    let (zero, one, pred) = (b.temp(DType::I32, 1), b.temp(DType::I32, 1), b.temp(DType::Bool, 1));
    let tape = b.tape(DType::I32, 1);
    let carry = b.carry(DType::I32, 1, zero, i_out);
    let pushed = b.window(DType::I32, 1);
    let cond = vec![b.binary(Bin::Lt, carry.slot, bound, pred)];
    let body =
        vec![b.binary(Bin::Mul, carry.slot, carry.slot, pushed), b.binary(Bin::Add, carry.slot, one, carry.next)];
    let mut write = static_loop(Trip::While { cond, pred }, vec![carry], body);
    write.ys.push(Window { all: tape, each: pushed });
    let count = b.temp(DType::I32, 1);
    write.count = Some(count);
    let total = b.carry(DType::I32, 1, zero, sum);
    let read_back = b.window(DType::I32, 1);
    let body = vec![b.binary(Bin::Add, total.slot, read_back, total.next)];
    let mut read = static_loop(Trip::Dyn(count), vec![total], body);
    read.reverse = true;
    read.xs.push(Window { all: tape, each: read_back });
    b.0.steps = vec![
        b.constant(Scalar::i32(0), zero),
        b.constant(Scalar::i32(1), one),
        Step::Loop(Box::new(write)),
        Step::TapeLen { tape, out: len },
        Step::Loop(Box::new(read)),
    ];
    let k = n.max(0);
    let squares = (0..k).map(|i| i * i).sum();
    Example {
        name: "while with tape",
        plan: b.0,
        ins: vec![i32s(&[n])],
        outs: vec![i32s(&[k]), i32s(&[k]), i32s(&[squares])],
    }
}

/// `[x + y, x - y, x * y][clamp(i)]`.
fn switch(i: i32, expected: f32) -> Example {
    let mut b = Build::default();
    let (index, x, y) = (b.input(DType::I32, 1), b.input(DType::F32, 3), b.input(DType::F32, 1));
    let z = b.output(DType::F32, 3);
    let branches = [Bin::Add, Bin::Sub, Bin::Mul].map(|f| vec![b.binary(f, x, y, z)]).into();
    b.0.steps = vec![Step::Switch { index, branches, outs: vec![z] }];
    Example {
        name: "switch",
        plan: b.0,
        ins: vec![i32s(&[i]), f32s(&[5.; 3]), f32s(&[2.])],
        outs: vec![f32s(&[expected; 3])],
    }
}

/// `for i in 0..3 { for j in 0..4 { x += 1 } x *= 2 }` on f32[2]: loops nest.
fn nested() -> Example {
    let mut b = Build::default();
    let x = b.input(DType::F32, 2);
    let out = b.output(DType::F32, 2);
    let (one, two, inner_out) = (b.temp(DType::F32, 1), b.temp(DType::F32, 1), b.temp(DType::F32, 2));
    let outer = b.carry(DType::F32, 2, x, out);
    let inner = b.carry(DType::F32, 2, outer.slot, inner_out);
    let add = b.binary(Bin::Add, inner.slot, one, inner.next);
    let inner = Step::Loop(Box::new(static_loop(Trip::Static(4), vec![inner], vec![add])));
    let double = b.binary(Bin::Mul, inner_out, two, outer.next);
    b.0.steps = vec![
        b.constant(Scalar::f32(1.), one),
        b.constant(Scalar::f32(2.), two),
        Step::Loop(Box::new(static_loop(Trip::Static(3), vec![outer], vec![inner, double]))),
    ];
    Example { name: "nested loops", plan: b.0, ins: vec![f32s(&[0., 1.])], outs: vec![f32s(&[56., 64.])] }
}

/// Reading past the end of an empty tape gives zeros: the sum of four elements is the carry it began with.
fn empty_tape() -> Example {
    let mut b = Build::default();
    let x = b.input(DType::F32, 2);
    let out = b.output(DType::F32, 2);
    let tape = b.tape(DType::F32, 2);
    let carry = b.carry(DType::F32, 2, x, out);
    let each = b.window(DType::F32, 2);
    let body = vec![b.binary(Bin::Add, carry.slot, each, carry.next)];
    let mut l = static_loop(Trip::Static(4), vec![carry], body);
    l.xs.push(Window { all: tape, each });
    b.0.steps = vec![Step::EmptyTape { out: tape }, Step::Loop(Box::new(l))];
    Example { name: "empty tape", plan: b.0, ins: vec![f32s(&[3., 4.])], outs: vec![f32s(&[3., 4.])] }
}

pub fn all() -> Vec<Example> {
    let mut all = vec![fibonacci(), scan(false), scan(true), nested(), empty_tape()];
    all.extend([5, 1, 0, -3].map(while_with_tape));
    all.extend([(0, 7.), (1, 3.), (2, 10.), (-4, 7.), (9, 10.)].map(|(i, e)| switch(i, e)));
    all
}
