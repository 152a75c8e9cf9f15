//! Kernels of one element: a list of operations on a file of 64-bit registers, without tiles.
//!
//! Neighbouring scalar kernels become one block; a loop whose whole body is scalar keeps its carries in registers.
//!
//! INVARIANT: a register holds a lane, canonical for its dtype, in its low bytes; blocks compute what the tile programs of the same
//! kernels would, bit for bit, for they call the same functions.
//!
//! ```text
//!     x = x * 0.999 + 0.1     ->    read r0 <- cell 2;  r3 = mul r0 r1;  r4 = add r3 r2;  write cell 3 <- r4     (r1, r2: constants)
//! ```
#![allow(unsafe_code)]
use crate::executable::{Cell, Compiler, State};
use crate::kernels::block::{BlockFn, choose};
use crate::kernels::lane::{Lane, bf16_bits, f16_bits};
use crate::kernels::{moves, scalar};
use crate::tier::Tier;
use ferrax_kernel::plan::{Loop, SlotId, Step, Trip};
use ferrax_kernel::{Bin, DType, Error, Kernel, Node, Res, RunCx, Scalar};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

type Reg = u16;

/// Loops are short on prologue in the portable tier; its bits are those of the others.
const TIER: Tier = Tier::Portable;

macro_rules! codes {
    ($($Code:ident $Bin:ident $T:ident -> $R:ident |$x:ident, $y:ident| $e:expr;)*) => {
        /// What an instruction does: the commonest functions directly, the rest by their block function.
        #[derive(Clone, Copy)]
        enum Code {
            $($Code,)*
            /// `d = a`.
            Move,
            Call(BlockFn),
        }
        fn direct(f: Bin, lane: Lane) -> Option<Code> {
            match (f, lane) {
                $((Bin::$Bin, Lane::$T) => Some(Code::$Code),)*
                _ => None,
            }
        }
        /// # Safety
        /// Registers of the code lie below the file's length.
        #[inline(always)]
        unsafe fn exec(code: &[Ins], r: *mut u64) {
            for i in code {
                // SAFETY: by the contract.
                unsafe {
                    match i.code {
                        $(Code::$Code => {
                            let $x = value::$T(*r.add(i.a as usize));
                            let $y = value::$T(*r.add(i.b as usize));
                            *r.add(i.d as usize) = bits::$R($e);
                        })*
                        Code::Move => *r.add(i.d as usize) = *r.add(i.a as usize),
                        Code::Call(f) => f(r.add(i.d as usize).cast(), r.add(i.a as usize).cast(), r.add(i.b as usize).cast(), r.add(i.c as usize).cast(), 1),
                    }
                }
            }
        }
    };
}
codes! {
    AddF32 Add F32 -> F32 |x, y| x + y;
    SubF32 Sub F32 -> F32 |x, y| x - y;
    MulF32 Mul F32 -> F32 |x, y| x * y;
    DivF32 Div F32 -> F32 |x, y| x / y;
    LtF32 Lt F32 -> Bool |x, y| x < y;
    GtF32 Gt F32 -> Bool |x, y| x > y;
    AddF64 Add F64 -> F64 |x, y| x + y;
    SubF64 Sub F64 -> F64 |x, y| x - y;
    MulF64 Mul F64 -> F64 |x, y| x * y;
    DivF64 Div F64 -> F64 |x, y| x / y;
    LtF64 Lt F64 -> Bool |x, y| x < y;
    GtF64 Gt F64 -> Bool |x, y| x > y;
    AddI32 Add I32 -> I32 |x, y| x.wrapping_add(y);
    SubI32 Sub I32 -> I32 |x, y| x.wrapping_sub(y);
    MulI32 Mul I32 -> I32 |x, y| x.wrapping_mul(y);
    LtI32 Lt I32 -> Bool |x, y| x < y;
    EqI32 Eq I32 -> Bool |x, y| x == y;
    AddI64 Add I64 -> I64 |x, y| x.wrapping_add(y);
    SubI64 Sub I64 -> I64 |x, y| x.wrapping_sub(y);
    LtI64 Lt I64 -> Bool |x, y| x < y;
    AndBool And Bool -> Bool |x, y| x & y;
    OrBool Or Bool -> Bool |x, y| x | y;
}
/// A register as a value.
#[allow(non_snake_case)]
mod value {
    #[inline(always)]
    pub fn F32(x: u64) -> f32 {
        f32::from_bits(x as u32)
    }
    #[inline(always)]
    pub fn F64(x: u64) -> f64 {
        f64::from_bits(x)
    }
    #[inline(always)]
    pub fn I32(x: u64) -> i32 {
        x as i32
    }
    #[inline(always)]
    pub fn I64(x: u64) -> i64 {
        x as i64
    }
    #[inline(always)]
    pub fn Bool(x: u64) -> bool {
        x & 0xff != 0
    }
}
/// A value as a register.
#[allow(non_snake_case)]
mod bits {
    #[inline(always)]
    pub fn F32(x: f32) -> u64 {
        x.to_bits() as u64
    }
    #[inline(always)]
    pub fn F64(x: f64) -> u64 {
        x.to_bits()
    }
    #[inline(always)]
    pub fn I32(x: i32) -> u64 {
        x as u32 as u64
    }
    #[inline(always)]
    pub fn I64(x: i64) -> u64 {
        x as u64
    }
    #[inline(always)]
    pub fn Bool(x: bool) -> u64 {
        x as u64
    }
}

#[derive(Clone, Copy)]
struct Ins {
    code: Code,
    d: Reg,
    a: Reg,
    b: Reg,
    c: Reg,
}
/// An element in memory and the register that stands for it.
#[derive(Clone, Copy)]
struct Place {
    cell: Cell,
    offset: usize,
    dtype: DType,
    reg: Reg,
}
impl Place {
    /// # Safety
    /// The cell points at an element of this dtype.
    #[inline(always)]
    unsafe fn read(&self, ptrs: &[*mut u8]) -> u64 {
        // SAFETY: by the contract.
        unsafe {
            let p = ptrs[self.cell as usize].add(self.offset);
            let bits = match self.dtype.size() {
                4 => return p.cast::<u32>().read() as u64,
                8 => return p.cast::<u64>().read(),
                1 => p.read() as u64,
                _ => p.cast::<u16>().read() as u64,
            };
            moves::lane_bits(Scalar { dtype: self.dtype, bits })
        }
    }
    /// # Safety
    /// As `read`.
    #[inline(always)]
    unsafe fn write(&self, ptrs: &[*mut u8], x: u64) {
        // SAFETY: by the contract.
        unsafe {
            let p = ptrs[self.cell as usize].add(self.offset);
            match self.dtype.size() {
                4 => p.cast::<u32>().write(x as u32),
                8 => p.cast::<u64>().write(x),
                1 => p.write(x as u8),
                _ => p.cast::<u16>().write(match self.dtype {
                    DType::F16 => f16_bits(f32::from_bits(x as u32)),
                    DType::BF16 => bf16_bits(f32::from_bits(x as u32)),
                    _ => x as u16,
                }),
            }
        }
    }
}
type File = SmallVec<[u64; 64]>;

/// Straight-line scalar code.
#[derive(Default)]
pub struct Block {
    file: Vec<u64>,
    code: Vec<Ins>,
    reads: Vec<Place>,
    writes: Vec<Place>,
    kernels: u64,
}
impl Block {
    pub fn run(&self, state: &mut State) {
        let mut file: File = SmallVec::from_slice(&self.file);
        let r = file.as_mut_ptr();
        state.launches += self.kernels;
        // SAFETY: places are scalar slots (or elements of verified loads), registers below the file's length.
        unsafe {
            for p in &self.reads {
                *r.add(p.reg as usize) = p.read(&state.ptrs);
            }
            exec(&self.code, r);
            for p in &self.writes {
                p.write(&state.ptrs, *r.add(p.reg as usize));
            }
        }
    }
    pub fn text(&self) -> String {
        format!("{} scalar operations, {} reads, {} writes", self.code.len(), self.reads.len(), self.writes.len())
    }
}

/// Builds a block out of steps.
#[derive(Default)]
pub struct Builder {
    block: Block,
    /// The register that holds an element of a cell now, by cell and offset in bytes.
    known: HashMap<(Cell, usize), (DType, Reg)>,
    /// Cells that are read beyond their first element; these are not set.
    split: HashSet<Cell>,
    /// The cells that were set, with the number of the last setting.
    written: HashMap<Cell, (usize, DType)>,
    settings: usize,
}
impl Builder {
    pub fn is_empty(&self) -> bool {
        self.block.kernels == 0 && self.block.code.is_empty() && self.written.is_empty()
    }
    fn fresh(&mut self, value: u64) -> Option<Reg> {
        self.block.file.push(value);
        Reg::try_from(self.block.file.len() - 1).ok()
    }
    fn emit(&mut self, code: Code, ops: &[Reg]) -> Option<Reg> {
        let d = self.fresh(0)?;
        let (a, b, c) = (ops[0], *ops.get(1).unwrap_or(&ops[0]), *ops.get(2).unwrap_or(&ops[0]));
        self.block.code.push(Ins { code, d, a, b, c });
        Some(d)
    }
    /// The register of an element of a cell, read before the block if nothing wrote it.
    fn element(&mut self, cell: Cell, offset: usize, d: DType) -> Option<Reg> {
        if let Some((known, reg)) = self.known.get(&(cell, offset)) {
            return (*known == d).then_some(*reg);
        }
        // Another element of a cell that was written whole cannot be.
        if self.written.contains_key(&cell) {
            return None;
        }
        let reg = self.fresh(0)?;
        self.block.reads.push(Place { cell, offset, dtype: d, reg });
        self.known.insert((cell, offset), (d, reg));
        if offset > 0 {
            self.split.insert(cell);
        }
        Some(reg)
    }
    fn set(&mut self, cell: Cell, d: DType, reg: Reg) {
        self.known.insert((cell, 0), (d, reg));
        self.settings += 1;
        self.written.insert(cell, (self.settings, d));
    }
    /// Takes a step in, if it is scalar; gives false, and changes nothing that counts, if not.
    pub fn step(&mut self, c: &Compiler, s: &Step) -> bool {
        let (n_code, n_file, n_reads) = (self.block.code.len(), self.block.file.len(), self.block.reads.len());
        let done = match s {
            Step::Kernel { kernel, ins, outs } => self.kernel(c, kernel, ins, outs),
            Step::Copy { from, to } => self.copy(c, *from, *to),
            _ => None,
        };
        if done.is_none() {
            // Nothing was set yet: a step sets its results last.
            self.block.code.truncate(n_code);
            self.block.file.truncate(n_file);
            for p in self.block.reads.drain(n_reads..) {
                self.known.remove(&(p.cell, p.offset));
            }
        }
        done.is_some()
    }
    fn copy(&mut self, c: &Compiler, from: SlotId, to: SlotId) -> Option<()> {
        let (a, b) = (&c.plan.slots[from as usize], &c.plan.slots[to as usize]);
        if a.len != 1 || b.len != 1 || a.tape + b.tape > 0 || a.dtype != b.dtype {
            return None;
        }
        let (x, y) = (c.cell(from), c.cell(to));
        let reg = self.element(x, 0, a.dtype)?;
        if x != y {
            if self.split.contains(&y) {
                return None;
            }
            self.set(y, a.dtype, reg);
        }
        Some(())
    }
    fn kernel(&mut self, c: &Compiler, k: &Kernel, ins: &[SlotId], outs: &[SlotId]) -> Option<()> {
        if k.grid.size() != 1 || outs.iter().any(|o| c.plan.slots[*o as usize].len != 1) {
            return None;
        }
        let cells = c.cells(ins);
        let mut at: Vec<Reg> = vec![];
        for (d, node) in &k.nodes {
            let reg = self.node(k, *d, node, &cells, &at)?;
            at.push(reg);
        }
        // Results become visible together.
        let to = c.cells(outs);
        if to.iter().any(|o| self.split.contains(o)) {
            return None;
        }
        for (o, node) in to.iter().zip(&k.outputs) {
            self.set(*o, k.dtype(*node), at[*node as usize]);
        }
        self.block.kernels += 1;
        Some(())
    }
    fn node(&mut self, k: &Kernel, d: DType, node: &Node, cells: &[Cell], at: &[Reg]) -> Option<Reg> {
        let lane = Lane::of(d);
        let of = |n: &u32| at[*n as usize];
        let canonical = |b: &mut Builder, r: Reg| match scalar::canonical(d, TIER) {
            Some(f) => b.emit(Code::Call(f), &[r]),
            None => Some(r),
        };
        let calls = |b: &mut Builder, fs: [Option<BlockFn>; 3], r: Reg| {
            fs.into_iter().flatten().try_fold(r, |r, f| b.emit(Code::Call(f), &[r]))
        };
        match node {
            Node::Const(s) => self.fresh(moves::lane_bits(*s)),
            Node::Index(a) => {
                let x = Scalar::from_i64(DType::I64, a.offset);
                let r = self.fresh(x.bits)?;
                self.emit(Code::Call(scalar::convert(DType::I64, d, TIER)), &[r])
            }
            Node::Load(a) => {
                if a.guards.iter().any(|g| !(g.lo..g.hi).contains(&g.at.offset)) {
                    return self.fresh(moves::lane_bits(a.fill));
                }
                self.element(cells[a.input as usize], usize::try_from(a.at.offset).ok()? * d.size(), d)
            }
            Node::Un(f, x) => {
                let r = calls(self, scalar::un(*f, k.dtype(*x), TIER)?, of(x))?;
                if d == DType::Bool { Some(r) } else { canonical(self, r) }
            }
            Node::Bin(f, x, y) => {
                let from = Lane::of(k.dtype(*x));
                let code = match direct(*f, from) {
                    Some(code) => code,
                    None => Code::Call(scalar::bin(*f, k.dtype(*x), TIER)?),
                };
                let r = self.emit(code, &[of(x), of(y)])?;
                if d == DType::Bool { Some(r) } else { canonical(self, r) }
            }
            Node::Select { p, t, f } => self.emit(Code::Call(choose(lane.size(), TIER)), &[of(p), of(t), of(f)]),
            Node::Convert(x) if k.dtype(*x) == d => Some(of(x)),
            Node::Convert(x) => self.emit(Code::Call(scalar::convert(k.dtype(*x), d, TIER)), &[of(x)]),
            Node::Bitcast(x) => calls(self, scalar::bitcast(k.dtype(*x), d, TIER), of(x)),
            Node::Round { of: x, exponent, mantissa } => {
                let words = self.fresh(*exponent as u64 | (*mantissa as u64) << 32)?;
                let r = self.emit(Code::Call(scalar::round(d, TIER)), &[of(x), words])?;
                canonical(self, r)
            }
            Node::Reduce { .. } => None,
        }
    }
    /// The block, which writes all cells it set back to memory.
    pub fn finish(mut self) -> Block {
        // In the order of the settings: where two cells share memory, one after the other's death, the later one stays.
        let mut written: Vec<(usize, Cell, DType)> = self.written.drain().map(|(cell, (n, d))| (n, cell, d)).collect();
        written.sort_unstable_by_key(|w| w.0);
        for (_, cell, dtype) in written {
            if let Some((_, reg)) = self.known.get(&(cell, 0)) {
                self.block.writes.push(Place { cell, offset: 0, dtype, reg: *reg });
            }
        }
        self.block
    }
}

enum Trips {
    Static(usize),
    Dyn(Place),
    /// The predicate's register after the condition's code.
    While(Vec<Ins>, Reg),
}
/// A scalar of the window at `index`: base cell, bytes apart.
struct Window {
    place: Place,
    stride: usize,
}
/// A loop that is scalar throughout.
pub struct ScalarLoop {
    file: Vec<u64>,
    trips: Trips,
    reverse: bool,
    /// Read once: what the body does not change, and the carries' initial values.
    reads: Vec<Place>,
    xs: Vec<Window>,
    body: Vec<Ins>,
    ys: Vec<Window>,
    /// (next, slot) registers that are copied at the end of an iteration.
    moves: Vec<(Reg, Reg)>,
    /// Carry slots to the places of their results.
    outs: Vec<Place>,
    count: Option<(Cell, usize)>,
    kernels: u64,
}

/// The loop as scalar code, if it can be.
pub fn compile_loop(c: &Compiler, l: &Loop) -> Option<ScalarLoop> {
    let scalar = |s: SlotId| c.plan.slots[s as usize].len == 1 && c.plan.slots[s as usize].tape == 0;
    if !l.carries.iter().all(|k| [k.init, k.slot, k.next, k.out].into_iter().all(scalar)) {
        return None;
    }
    let plain = |w: &ferrax_kernel::plan::Window| {
        scalar(w.each)
            && c.plan.slots[w.all as usize].tape == 0
            && matches!(l.trip, Trip::Static(n) if n <= c.plan.slots[w.all as usize].len)
    };
    if !l.xs.iter().chain(&l.ys).all(plain) {
        return None;
    }
    let dtype = |s: SlotId| c.plan.slots[s as usize].dtype;
    let mut b = Builder::default();
    // Carries and windows are registers from the start.
    let mut reads = vec![];
    let mut slots = vec![];
    for k in &l.carries {
        let d = dtype(k.slot);
        if [k.init, k.next, k.out].into_iter().any(|s| dtype(s) != d) {
            return None;
        }
        let (init, cell) = (c.cell(k.init), c.cell(k.slot));
        let reg = b.fresh(0)?;
        if b.known.contains_key(&(cell, 0)) {
            return None;
        }
        reads.push(Place { cell: init, offset: 0, dtype: d, reg });
        b.known.insert((cell, 0), (d, reg));
        slots.push(reg);
    }
    let mut xs = vec![];
    for w in &l.xs {
        let d = dtype(w.each);
        let reg = b.fresh(0)?;
        b.known.insert((c.cell(w.each), 0), (d, reg));
        xs.push(Window { place: Place { cell: c.cell(w.all), offset: 0, dtype: d, reg }, stride: d.size() });
    }
    let trips = match &l.trip {
        Trip::Static(n) => Trips::Static(*n),
        Trip::Dyn(s) => {
            let cell = c.cell(*s);
            Trips::Dyn(Place { cell, offset: 0, dtype: dtype(*s), reg: 0 })
        }
        Trip::While { cond, pred } => {
            if !cond.iter().all(|s| b.step(c, s)) {
                return None;
            }
            let reg = b.element(c.cell(*pred), 0, DType::Bool)?;
            let code = std::mem::take(&mut b.block.code);
            // The body starts from the carries, not from what the condition made.
            Trips::While(code, reg)
        }
    };
    if !l.body.iter().all(|s| b.step(c, s)) {
        return None;
    }
    let mut next = vec![];
    for k in &l.carries {
        next.push(b.element(c.cell(k.next), 0, dtype(k.next))?);
    }
    let mut ys = vec![];
    for w in &l.ys {
        let d = dtype(w.each);
        let reg = b.element(c.cell(w.each), 0, d)?;
        ys.push(Window { place: Place { cell: c.cell(w.all), offset: 0, dtype: d, reg }, stride: d.size() });
    }
    // A cell that an iteration reads before it writes would carry a value over: only carries may.
    let early = |p: &Place| b.written.contains_key(&p.cell);
    if b.block.reads.iter().any(early) {
        return None;
    }
    // Moves in parallel: a next that is another carry's slot is kept aside first.
    let mut body = std::mem::take(&mut b.block.code);
    let mut moves = vec![];
    for (n, s) in next.iter_mut().zip(&slots) {
        if *n != *s && slots.contains(n) {
            let d = b.fresh(0)?;
            body.push(Ins { code: Code::Move, d, a: *n, b: *n, c: *n });
            *n = d;
        }
        if *n != *s {
            moves.push((*n, *s));
        }
    }
    reads.extend(b.block.reads.iter().copied());
    let outs = l
        .carries
        .iter()
        .zip(&slots)
        .map(|(k, reg)| Place { cell: c.cell(k.out), offset: 0, dtype: dtype(k.slot), reg: *reg })
        .collect();
    let count = l.count.map(|s| (c.cell(s), c.bytes(s)));
    Some(ScalarLoop {
        file: b.block.file,
        trips,
        reverse: l.reverse,
        reads,
        xs,
        body,
        ys,
        moves,
        outs,
        count,
        kernels: b.block.kernels,
    })
}

impl ScalarLoop {
    pub fn run(&self, state: &mut State, cx: &RunCx) -> Res<()> {
        let mut file: File = SmallVec::from_slice(&self.file);
        let r = file.as_mut_ptr();
        let ptrs = &state.ptrs;
        let mut done = 0;
        // SAFETY: places are scalar slots, windows have an element for each iteration, registers lie below the file's length.
        unsafe {
            for p in &self.reads {
                *r.add(p.reg as usize) = p.read(ptrs);
            }
            let trips = match &self.trips {
                Trips::Static(n) => *n,
                Trips::Dyn(p) => Scalar { dtype: p.dtype.lane(), bits: p.read(ptrs) }.to_i64().max(0) as usize,
                Trips::While(..) => usize::MAX,
            };
            while done < trips {
                if let Trips::While(code, pred) = &self.trips {
                    exec(code, r);
                    if *r.add(*pred as usize) & 0xff == 0 {
                        break;
                    }
                }
                if cx.cancel.load(Ordering::Relaxed) {
                    return Err(Error::Cancelled);
                }
                let at = if self.reverse { trips - 1 - done } else { done };
                for x in &self.xs {
                    *r.add(x.place.reg as usize) = Place { offset: at * x.stride, ..x.place }.read(ptrs);
                }
                exec(&self.body, r);
                for y in &self.ys {
                    Place { offset: at * y.stride, ..y.place }.write(ptrs, *r.add(y.place.reg as usize));
                }
                for (from, to) in &self.moves {
                    *r.add(*to as usize) = *r.add(*from as usize);
                }
                done += 1;
            }
            for p in &self.outs {
                p.write(ptrs, *r.add(p.reg as usize));
            }
            if let Some((cell, bytes)) = self.count {
                crate::control::write_int(ptrs[cell as usize], bytes, done);
            }
        }
        state.launches += self.kernels * done as u64;
        Ok(())
    }
    pub fn text(&self) -> String {
        format!("scalar loop of {} operations and {} moves", self.body.len(), self.moves.len())
    }
}
