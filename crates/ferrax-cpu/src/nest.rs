//! Nests: loops over scalars and elements of arrays, as one structure that is compiled to one native function.
//!
//! ```text
//!     for i { for j { a = a.at[i, j].set(a[i, j - 1] * .5) } }     ->     loop 1..n { v0 = i * n; loop 1..n { v1 = load a[v0 + j - 1]; store a[v0 + j] <- v1 * .5 } }
//! ```
//!
//! The stages: `lowering` translates the steps of a plan one by one, with every clamp and wrap of an index; `fuse` joins loops over the same
//! indices; `simplify` uses the ranges of integers; `vectors` vectorizes free loops, whose iterations are independent; `native/nest` allocates
//! registers and encodes. `executable/nests/interpret.rs` runs the nest of `simplify` without native code.
//!
//! INVARIANT: an index of a load or store lies inside its array for all operands: a nest is built with clamps, only clamps that change nothing are
//! removed, and `verify` proves it again for the nest that runs.
mod facts;
mod frame;
mod fuse;
mod simplify;
pub mod text;
mod vectors;
mod verify;

use crate::instructions::{Function, Opcode};
use ferrax_kernel::{Bin, DType, Un};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

pub use facts::lane;
pub use frame::{FrameLayout, NestFrame, OPERAND_WORDS};
pub use fuse::{drop_dead_stores, fuse};
pub use simplify::simplify;
pub use vectors::{inline_functions, vectorize};
pub use verify::verify;

pub type NestValue = u32;
pub type ArrayId = u32;
/// A function over blocks of lanes, as those of kernels are.
pub type CalledFn = unsafe fn(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize);
/// A function that is called for one element, or for a vector or a row, and what it is, where vectors can have its operations in its place. Two
/// are equal if they have one address.
#[derive(Clone, Copy, Debug)]
pub struct Callee(CalledFn, Option<Function>);
impl Callee {
    pub fn new(f: CalledFn, what: Option<Function>) -> Callee {
        Callee(f, what.filter(|f| f.is_recorded()))
    }
    pub fn recorded(self) -> Option<Function> {
        self.1
    }
    pub fn function(self) -> CalledFn {
        self.0
    }
    pub fn address(self) -> usize {
        self.0 as usize
    }
}
impl PartialEq for Callee {
    fn eq(&self, other: &Callee) -> bool {
        self.address() == other.address()
    }
}
impl Eq for Callee {}
impl Hash for Callee {
    fn hash<H: Hasher>(&self, h: &mut H) {
        self.address().hash(h);
    }
}

/// The operation that defines a value. Operands are in [`Def::args`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NestOp {
    /// The bits of a lane.
    Const(u64),
    /// A number that is read before the nest.
    Input(u32),
    /// A carry within its loop, or after it.
    Carry,
    After,
    Un(Un),
    Bin(Bin),
    /// `args[0] ? args[1] : args[2]`.
    Select,
    /// From this dtype.
    Convert(DType),
    /// The same bits of a lane of another dtype.
    Bits(DType),
    /// Back to a value of the dtype, where the lane is wider.
    Wrap,
    /// The nan that a reduction gives for any.
    Settle,
    Call(Callee, u8),
    /// An instruction on vectors, its mask or its third operand in between.
    Vector(Opcode),
    /// The element at `args[0]`, and so many further; of vectors, those that follow it.
    Load(ArrayId, i32),
    /// A vector of elements that are so far apart: so many of them in the first lanes, the other lanes hold no elements.
    LoadApart(ArrayId, i32, i32, u8),
    /// A vector of the elements from `args[0]` on, which in memory have this dtype of half the width.
    LoadWide(ArrayId, i32, DType),
    /// A vector that holds a number in each lane; or that number, and so much more from lane to lane.
    Splat,
    Ramp(i8),
    /// The lanes of a vector, so many further down; those that come from above are of no use.
    Down(u8),
    /// The first lanes of `args[0]`, so many, and the others of `args[1]`.
    Blend(u8),
    /// The first lane of a vector.
    First,
}
impl NestCounts {
    /// The operations of a body, as the interpreter has them.
    pub fn interpreted(&self) -> usize {
        self.loads + self.stores + self.operations + self.calls
    }
}
impl NestOp {
    pub fn operands(self) -> usize {
        match self {
            NestOp::Const(_) | NestOp::Input(_) | NestOp::Carry | NestOp::After => 0,
            NestOp::Un(_) | NestOp::Convert(_) | NestOp::Bits(_) | NestOp::Wrap | NestOp::Settle => 1,
            NestOp::Load(..) | NestOp::LoadApart(..) | NestOp::LoadWide(..) | NestOp::Splat | NestOp::Ramp(_) => 1,
            NestOp::Down(_) | NestOp::First => 1,
            NestOp::Bin(_) | NestOp::Blend(_) => 2,
            NestOp::Select => 3,
            NestOp::Call(_, n) => n as usize,
            NestOp::Vector(code) => match code {
                Opcode::Blend => 3,
                code if code.is_fused() => 3,
                code => 1 + code.is_binary() as usize,
            },
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Def {
    pub op: NestOp,
    pub dtype: DType,
    pub args: [NestValue; 3],
    /// How many numbers it is: one, or those of a vector.
    pub lanes: u8,
    /// Whether a vector's elements have 8 bytes, not 4. Those of a vector of truth values, a mask, are as wide as the numbers beside it.
    pub wide: bool,
    /// Whether an integer is the mathematical result of its operands in every iteration: it does not wrap.
    pub is_exact: bool,
}
impl Def {
    pub fn args(&self) -> &[NestValue] {
        &self.args[..self.op.operands()]
    }
    pub fn is_float(&self) -> bool {
        matches!(lane(self.dtype), DType::F32 | DType::F64)
    }
    /// Bytes of a vector.
    pub fn bytes(&self) -> usize {
        self.lanes as usize * if self.wide { 8 } else { 4 }
    }
    /// Whether it is held in a register for floats.
    pub fn is_in_vectors(&self) -> bool {
        self.lanes > 1 || self.is_float()
    }
}

#[derive(Clone, Debug)]
pub enum Stmt {
    Let(NestValue),
    /// `array[index + offset] = value`.
    Store {
        array: ArrayId,
        index: NestValue,
        offset: i32,
        value: NestValue,
        dtype: DType,
        /// From element to element, where the value is a vector.
        stride: i32,
    },
    Loop(Box<NestLoop>),
    /// Leaves the innermost loop.
    ExitUnless(NestValue),
    /// A block function over a row of working memory.
    CallRow(RowCall),
}
/// `w[to ..] = f(w[from[0] ..], w[from[1] ..])`, so many elements; places in bytes of the working memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowCall {
    pub callee: Callee,
    pub to: i32,
    pub from: [i32; 2],
    pub operands: u8,
    pub elements: u32,
}
/// Bytes of working memory for the sums of reductions; rows of functions stand behind.
pub const FOLD_SCRATCH: usize = 512;

#[derive(Clone, Debug)]
pub struct NestCarry {
    pub init: NestValue,
    /// Its value within an iteration.
    pub slot: NestValue,
    pub next: NestValue,
    /// Its value after the loop.
    pub after: NestValue,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NestTrip {
    Static(usize),
    /// An i64; none where it is negative.
    Dyn(NestValue),
    /// The body says.
    Forever,
}

/// Known properties of a loop's iterations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopKind {
    /// Each follows the one before.
    Sequential,
    /// The same, but they touch different elements, and hand nothing on but the counter: `simplify` found that out.
    Independent,
    /// They touch different elements, and hand nothing on but the counter: written as the elements of one array.
    Free,
    /// As free ones; each carry but the counter is a reduction in the waist's order, which an iteration adds one element to.
    Fold,
}

#[derive(Clone, Debug)]
pub struct NestLoop {
    pub kind: LoopKind,
    pub trip: NestTrip,
    pub carries: Vec<NestCarry>,
    pub body: Vec<Stmt>,
}

/// A nest: values by number, and the statements that compute them.
#[derive(Clone, Debug, Default)]
pub struct Nest {
    pub defs: Vec<Def>,
    pub body: Vec<Stmt>,
    pub inputs: Vec<DType>,
    pub arrays: u32,
    /// How many bytes each array has, working memory apart.
    pub lengths: Vec<usize>,
    /// The results of the nest.
    pub outs: Vec<NestValue>,
    /// The array that is working memory, and how many bytes it has.
    pub scratch: Option<(ArrayId, usize)>,
    /// Arrays that are written, and those that may be the same memory.
    pub meeting: Vec<(ArrayId, ArrayId)>,
    /// The function to call if operands are not known to be ordinary: a divisor of zero, a shift by the width.
    pub callees: FxHashMap<(Bin, DType), Callee>,
}
impl Nest {
    pub fn dtype(&self, v: NestValue) -> DType {
        self.defs[v as usize].dtype
    }
    pub fn def(&self, v: NestValue) -> &Def {
        &self.defs[v as usize]
    }
    pub fn known(&self, v: NestValue) -> Option<u64> {
        if let NestOp::Const(bits) = self.def(v).op { Some(bits) } else { None }
    }
    pub fn known_integer(&self, v: NestValue) -> Option<i128> {
        Some(facts::integer(self.dtype(v), self.known(v)?))
    }
    /// How much a carry grows from this value in its loop to the next, where that is a constant.
    pub fn step(&self, slot: NestValue, next: NestValue) -> Option<i128> {
        let def = self.def(next);
        match def.op {
            NestOp::Bin(Bin::Add) if def.args[0] == slot => self.known_integer(def.args[1]),
            NestOp::Bin(Bin::Add) if def.args[1] == slot => self.known_integer(def.args[0]),
            NestOp::Bin(Bin::Sub) if def.args[0] == slot => Some(-self.known_integer(def.args[1])?),
            _ => None,
        }
    }
    /// The value that another stays below where a predicate holds, and by how much at least.
    pub fn limit(&self, predicate: NestValue, slot: NestValue) -> Option<(NestValue, i128)> {
        let def = self.def(predicate);
        Some(match def.op {
            NestOp::Bin(Bin::Lt) if def.args[0] == slot => (def.args[1], 1),
            NestOp::Bin(Bin::Le) if def.args[0] == slot => (def.args[1], 0),
            NestOp::Bin(Bin::Gt) if def.args[1] == slot => (def.args[0], 1),
            NestOp::Bin(Bin::Ge) if def.args[1] == slot => (def.args[0], 0),
            _ => return None,
        })
    }
    pub fn add(&mut self, op: NestOp, dtype: DType, args: &[NestValue]) -> NestValue {
        let mut all = [0; 3];
        all[..args.len()].copy_from_slice(args);
        self.defs.push(Def { op, dtype, args: all, lanes: 1, wide: false, is_exact: false });
        self.defs.len() as NestValue - 1
    }
    pub fn constant(&mut self, x: i64) -> NestValue {
        self.add(NestOp::Const(x as u64), DType::I64, &[])
    }
    /// The same operation on other operands.
    pub fn again(&mut self, v: NestValue, of: impl Fn(NestValue) -> NestValue) -> NestValue {
        let mut def = *self.def(v);
        def.args[..def.op.operands()].iter_mut().for_each(|a| *a = of(*a));
        self.defs.push(def);
        self.defs.len() as NestValue - 1
    }
    /// Counts loops, loads, stores and other operations.
    pub fn counts(&self) -> NestCounts {
        let mut counts = NestCounts::default();
        count(self, &self.body, &mut counts);
        counts
    }
}
#[derive(Default, Clone, Copy, Debug)]
pub struct NestCounts {
    pub loops: usize,
    pub vector_loops: usize,
    pub loads: usize,
    pub stores: usize,
    pub operations: usize,
    pub calls: usize,
    pub rows_called: usize,
}
fn count(nest: &Nest, body: &[Stmt], c: &mut NestCounts) {
    for s in body {
        match s {
            Stmt::Let(v) => match nest.def(*v).op {
                NestOp::Load(..) | NestOp::LoadApart(..) | NestOp::LoadWide(..) => c.loads += 1,
                NestOp::Const(_) | NestOp::Input(_) => (),
                NestOp::Call(..) => c.calls += 1,
                _ => c.operations += 1,
            },
            Stmt::Store { .. } => c.stores += 1,
            Stmt::ExitUnless(_) => (),
            Stmt::CallRow(_) => c.rows_called += 1,
            Stmt::Loop(l) => {
                c.loops += 1;
                let of_vectors = |s: &Stmt| matches!(s, Stmt::Let(v) if nest.def(*v).lanes > 1);
                c.vector_loops += l.body.iter().any(of_vectors) as usize;
                count(nest, &l.body, c);
            }
        }
    }
}
/// Adds the arrays that statements load from.
fn loads(nest: &Nest, body: &[Stmt], found: &mut FxHashSet<ArrayId>) {
    for s in body {
        match s {
            Stmt::Let(v) => {
                if let NestOp::Load(array, _) | NestOp::LoadApart(array, ..) | NestOp::LoadWide(array, ..) =
                    nest.def(*v).op
                {
                    found.insert(array);
                }
            }
            Stmt::Loop(l) => loads(nest, &l.body, found),
            _ => (),
        }
    }
}
/// The arrays that statements store to.
pub fn stored(body: &[Stmt], found: &mut SmallVec<[ArrayId; 4]>) {
    for s in body {
        match s {
            Stmt::Store { array, .. } if !found.contains(array) => found.push(*array),
            Stmt::Loop(l) => stored(&l.body, found),
            _ => (),
        }
    }
}
