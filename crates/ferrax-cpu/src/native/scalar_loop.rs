//! Native code for loops over scalars: an iteration is the body, once.
//!
//! ```text
//!     x = x * 0.999 + 0.1     ->     again: ymm0 = state[0] * pool[0]; ymm0 += pool[1]; state[0] = ymm0; rdx += 1; below rsi? again
//! ```
//!
//! The carries live in vectors behind the table of pointers, all lanes equal. Elements of windows are broadcast into all lanes when read, and
//! written from the lowest lane.
//!
//! INVARIANT: an iteration writes its results after all its reads. So it starts from the carries of the last iteration, and an iteration
//! whose condition is false writes nothing.
use super::asm::{self, Emitted, TABLE, VectorSize};
use super::graph::{self, Leaf, VecValue};
use super::opcodes::{MemoryElement, Site};
use super::pages::Pages;
use super::regalloc::allocate;
use super::{CalledFn, LaneWidth, Replaced, TUNING, enter};
use ferrax_kernel::DType;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// An operation on registers: recorded, or called where it cannot be.
pub struct LoopOperation {
    pub what: Replaced,
    pub call: Option<CalledFn>,
}
impl LoopOperation {
    fn width(&self) -> Option<LaneWidth> {
        self.what.function.width().or_else(|| self.call.and(self.what.function.width_called()))
    }
}
/// An element of a window, and its register.
#[derive(Clone, Copy)]
pub struct WindowElement {
    pub reg: u16,
    pub window: u32,
    /// Bytes from the window's current position.
    pub at: u32,
    pub dtype: DType,
}
/// A loop over a file of registers, with one operation for each register that changes.
pub struct LoopText {
    /// Registers that are set before the first iteration and whose values differ between runs.
    pub state: Vec<(u16, DType)>,
    /// (register of the state, register that it is given at the end of an iteration).
    pub next: Vec<(u16, u16)>,
    pub condition: Vec<LoopOperation>,
    /// The loop ends when this register is zero after the condition.
    pub goes_on: Option<u16>,
    pub body: Vec<LoopOperation>,
    pub xs: Vec<WindowElement>,
    pub ys: Vec<WindowElement>,
    /// The bytes by which each window moves.
    pub steps: Vec<i32>,
}
/// A loop as code.
pub struct LoopCode {
    code: Pages,
    /// Registers of the state, those that are bools.
    state: Vec<(u16, bool)>,
    wide: bool,
}

fn width_of(d: DType) -> Option<LaneWidth> {
    Some(match d {
        DType::Bool => LaneWidth::Any,
        DType::F32 | DType::I32 | DType::U32 => LaneWidth::Narrow,
        DType::F64 | DType::I64 | DType::U64 => LaneWidth::Wide,
        _ => return None,
    })
}

impl LoopText {
    /// The width of all elements; none where they differ, or where something cannot be recorded.
    pub fn width(&self) -> Option<LaneWidth> {
        let windows = self.xs.iter().chain(&self.ys);
        if self.steps.len() > TABLE || windows.clone().any(|w| w.dtype == DType::Bool) {
            return None;
        }
        let dtypes = self.state.iter().map(|s| s.1).chain(windows.map(|w| w.dtype)).map(width_of);
        let functions = self.condition.iter().chain(&self.body).map(LoopOperation::width);
        let mut all = LaneWidth::Any;
        for width in dtypes.chain(functions) {
            match width? {
                LaneWidth::Any => (),
                width if all == LaneWidth::Any => all = width,
                width if width != all => return None,
                _ => (),
            }
        }
        Some(all)
    }
    /// `constant`: the value of a register that never changes.
    pub fn compile(&self, constant: &dyn Fn(u16) -> u64) -> Option<LoopCode> {
        let wide = self.width()? == LaneWidth::Wide;
        graph::begin(wide, VectorSize::Ymm);
        self.record(constant);
        let g = graph::end();
        if g.nodes.len() > TUNING.max_values {
            return None;
        }
        let allocation = allocate(&g, &[], true, false);
        if allocation.frame > TUNING.max_spills {
            return None;
        }
        let emitted = Emitted { steps: Some(&self.steps), ..allocation.emitted(wide, VectorSize::Ymm) };
        let code = asm::assemble(&emitted, &[]);
        Some(LoopCode {
            code: Pages::new(&code)?,
            state: self.state.iter().map(|(r, d)| (*r, *d == DType::Bool)).collect(),
            wide,
        })
    }
    fn record(&self, constant: &dyn Fn(u16) -> u64) {
        let mut values: FxHashMap<u16, VecValue> = FxHashMap::default();
        for ((r, _), n) in self.state.iter().zip(0..) {
            values.insert(*r, graph::leaf(Leaf::State(n)));
        }
        for x in &self.xs {
            values.insert(x.reg, graph::leaf(Leaf::Window(x.window, x.at)));
        }
        let read = |values: &FxHashMap<u16, VecValue>, r: u16, is_bool: bool| match values.get(&r) {
            Some(v) => *v,
            None if is_bool => graph::constant(if constant(r) & 0xff == 0 { 0 } else { u64::MAX }),
            None => graph::constant(constant(r)),
        };
        let run = |values: &mut FxHashMap<u16, VecValue>, all: &[LoopOperation]| {
            for LoopOperation { what: c, call } in all {
                let (bools, _) = c.function.bools();
                let mut ops = [0; 3];
                for j in 0..c.function.operands() {
                    ops[j] = read(values, c.ops[j], bools[j]);
                }
                let last = ops[c.function.operands() - 1];
                let value = match call {
                    Some(f) if c.function.width().is_none() => graph::call(*f, ops[0], last),
                    _ => c.function.record(ops),
                };
                values.insert(c.d, value);
            }
        };
        run(&mut values, &self.condition);
        let goes_on = self.goes_on.map(|r| read(&values, r, true));
        run(&mut values, &self.body);
        graph::with(|g| g.goes_on = goes_on);
        for y in &self.ys {
            let v = read(&values, y.reg, false);
            graph::with(|g| g.output(Site::Window(y.window, y.at), v, MemoryElement::Lane));
        }
        for (slot, next) in &self.next {
            let (n, d) =
                self.state.iter().zip(0..).find_map(|((r, d), n)| (r == slot).then_some((n, *d))).expect("state");
            let v = read(&values, *next, d == DType::Bool);
            graph::with(|g| g.output(Site::State(n), v, MemoryElement::Lane));
        }
    }
}

/// The words of a vector.
const WORDS: usize = VectorSize::Ymm.bytes() / 8;
/// A table of pointers, and a vector behind it for each register of the state.
type LoopMemory = SmallVec<[MaybeUninit<u64>; 384]>;

/// The state after the code has run.
pub struct LeftState<'a> {
    code: &'a LoopCode,
    memory: &'a LoopMemory,
}
impl LeftState<'_> {
    /// The value of register `n` of the state.
    ///
    /// # Safety
    /// It was given one, or the code gives it one.
    #[inline]
    pub unsafe fn value(&self, n: usize) -> u64 {
        // SAFETY: there is a vector for each; by the contract it has a value.
        let x = unsafe { self.memory[TABLE + WORDS * n].assume_init() };
        match (self.code.state[n].1, self.code.wide) {
            (true, _) => x & 1,
            (false, true) => x,
            (false, false) => x & 0xffff_ffff,
        }
    }
}

impl LoopCode {
    fn memory(&self) -> LoopMemory {
        let words = TABLE + WORDS * self.state.len();
        let mut memory = LoopMemory::with_capacity(words);
        // SAFETY: so many there are, and they need no values.
        unsafe { memory.set_len(words) };
        memory
    }
    /// Gives the first registers of the state these values.
    #[inline]
    fn give(&self, memory: &mut LoopMemory, values: impl Iterator<Item = u64>) {
        for (((_, is_bool), v), x) in self.state.iter().zip(memory[TABLE..].chunks_exact_mut(WORDS)).zip(values) {
            v.fill(MaybeUninit::new(match (is_bool, self.wide) {
                (true, _) => {
                    if x & 0xff != 0 {
                        u64::MAX
                    } else {
                        0
                    }
                }
                (false, true) => x,
                (false, false) => x & 0xffff_ffff | x << 32,
            }));
        }
    }
    /// Runs at most `n` iterations from the current state of the file and the windows; returns how
    /// many ran.
    ///
    /// # Safety
    /// Each window has elements at its place and at the next `n - 1`; registers of the state lie in
    /// the file.
    pub unsafe fn run(&self, file: &mut [u64], windows: &[*mut u8], n: usize) -> usize {
        if n == 0 {
            return 0;
        }
        let mut memory = self.memory();
        windows.iter().zip(&mut memory).for_each(|(w, m)| *m = MaybeUninit::new(*w as u64));
        self.give(&mut memory, self.state.iter().map(|(r, _)| file[*r as usize]));
        // SAFETY: `assemble` made it; behind the table is a vector for each register of the state, and the windows' elements are there, by the
        // contract.
        let done = unsafe { enter(&self.code, memory.as_mut_ptr().cast(), n) };
        let left = LeftState { code: self, memory: &memory };
        for (n, (r, _)) in self.state.iter().enumerate() {
            // SAFETY: all were given values.
            file[*r as usize] = unsafe { left.value(n) };
        }
        done
    }
    /// Runs one iteration from these values of the first registers of the state.
    ///
    /// # Safety
    /// The loop has no windows, and all state that its operations read is given.
    #[inline]
    pub unsafe fn once(&self, values: impl Iterator<Item = u64>, then: impl FnOnce(LeftState)) {
        let mut memory = self.memory();
        self.give(&mut memory, values);
        // SAFETY: as in `run`.
        unsafe { enter(&self.code, memory.as_mut_ptr().cast(), 1) };
        then(LeftState { code: self, memory: &memory });
    }
}
