//! The interpreter of nests: what runs where there is no native code, or where it is not worth making, and the reference of that code.
//!
//! ```text
//!     loop 10 { x = x * 0.999 + 0.1 }     ->     loop 10 { r3 = mul r0 r1;  r4 = add r3 r2;  r0 <- r4 }     (r1, r2: constants)
//! ```
//!
//! Registers are words of the frame. Straight-line code is a list of operations on them; elements of arrays and loops are items between such lists.
//!
//! INVARIANT: a register holds a lane, canonical for its dtype, in its low bytes. Operations are those of block functions, so they give their bits.
#![allow(unsafe_code)]
use crate::instructions::Function;
use crate::kernels::block::BlockFn;
use crate::kernels::lane::{Float, Integer, Lane};
use crate::kernels::{moves, scalar};
use crate::lowering::functions::{TIER, tier_of};
use crate::nest::{ArrayId, FrameLayout, Nest, NestFrame, NestLoop, NestOp, NestTrip, NestValue, Stmt, lane};
use ferrax_kernel::{Bin, DType};
use std::sync::atomic::{AtomicBool, Ordering};

type Reg = u16;

macro_rules! codes {
    ($($Code:ident $Bin:ident $T:ident -> $R:ident |$x:ident, $y:ident| $e:expr;)*) => {
        /// The implementation of an instruction: the most frequent functions directly, the rest by
        /// their block function.
        #[derive(Clone, Copy)]
        enum Code {
            $($Code,)*
            /// `d = a`.
            Move,
            /// `d = a ? b : c`.
            Select,
            /// The nan that a reduction gives for any.
            Settle32,
            Settle64,
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
        unsafe fn exec(code: &[Operation], r: *mut u64) {
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
                        Code::Select => {
                            let (x, y) = (*r.add(i.b as usize), *r.add(i.c as usize));
                            *r.add(i.d as usize) = if value::Bool(*r.add(i.a as usize)) { x } else { y };
                        }
                        Code::Settle32 => {
                            let x = *r.add(i.a as usize);
                            *r.add(i.d as usize) = if value::F32(x).is_nan() { 0x7fc0_0000 } else { x };
                        }
                        Code::Settle64 => {
                            let x = *r.add(i.a as usize);
                            *r.add(i.d as usize) = if value::F64(x).is_nan() { 0x7ff8_0000_0000_0000 } else { x };
                        }
                        Code::Call(f) => {
                            // A lane may be less than a register.
                            r.add(i.d as usize).write(0);
                            f(r.add(i.d as usize).cast(), r.add(i.a as usize).cast(), r.add(i.b as usize).cast(), r.add(i.c as usize).cast(), 1)
                        }
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
    MaxF32 Max F32 -> F32 |x, y| Float::maximum(x, y);
    MinF32 Min F32 -> F32 |x, y| Float::minimum(x, y);
    LtF32 Lt F32 -> Bool |x, y| x < y;
    LeF32 Le F32 -> Bool |x, y| x <= y;
    GeF32 Ge F32 -> Bool |x, y| x >= y;
    GtF32 Gt F32 -> Bool |x, y| x > y;
    EqF32 Eq F32 -> Bool |x, y| x == y;
    NeF32 Ne F32 -> Bool |x, y| x != y;
    AddF64 Add F64 -> F64 |x, y| x + y;
    SubF64 Sub F64 -> F64 |x, y| x - y;
    MulF64 Mul F64 -> F64 |x, y| x * y;
    DivF64 Div F64 -> F64 |x, y| x / y;
    LtF64 Lt F64 -> Bool |x, y| x < y;
    GtF64 Gt F64 -> Bool |x, y| x > y;
    AddI32 Add I32 -> I32 |x, y| x.wrapping_add(y);
    SubI32 Sub I32 -> I32 |x, y| x.wrapping_sub(y);
    MulI32 Mul I32 -> I32 |x, y| x.wrapping_mul(y);
    MaxI32 Max I32 -> I32 |x, y| x.max(y);
    MinI32 Min I32 -> I32 |x, y| x.min(y);
    LtI32 Lt I32 -> Bool |x, y| x < y;
    LeI32 Le I32 -> Bool |x, y| x <= y;
    GeI32 Ge I32 -> Bool |x, y| x >= y;
    GtI32 Gt I32 -> Bool |x, y| x > y;
    NeI32 Ne I32 -> Bool |x, y| x != y;
    EqI32 Eq I32 -> Bool |x, y| x == y;
    AndI32 And I32 -> I32 |x, y| x & y;
    AddU32 Add U32 -> U32 |x, y| x.wrapping_add(y);
    MulU32 Mul U32 -> U32 |x, y| x.wrapping_mul(y);
    AndU32 And U32 -> U32 |x, y| x & y;
    OrU32 Or U32 -> U32 |x, y| x | y;
    XorU32 Xor U32 -> U32 |x, y| x ^ y;
    ShlU32 Shl U32 -> U32 |x, y| Integer::shl(x, y);
    ShrU32 ShrLogical U32 -> U32 |x, y| Integer::shr_logical(x, y);
    AddI64 Add I64 -> I64 |x, y| x.wrapping_add(y);
    SubI64 Sub I64 -> I64 |x, y| x.wrapping_sub(y);
    LtI64 Lt I64 -> Bool |x, y| x < y;
    AndBool And Bool -> Bool |x, y| x & y;
    OrBool Or Bool -> Bool |x, y| x | y;
    XorBool Xor Bool -> Bool |x, y| x ^ y;
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
    pub fn U32(x: u64) -> u32 {
        x as u32
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
    pub fn U32(x: u32) -> u64 {
        x as u64
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

/// An operation on registers.
#[derive(Clone, Copy)]
struct Operation {
    code: Code,
    d: Reg,
    a: Reg,
    b: Reg,
    c: Reg,
}
/// The element of an array at an index and so many further.
#[derive(Clone, Copy)]
struct ArrayElement {
    /// The register with the array's address.
    array: Reg,
    index: Reg,
    offset: i32,
    dtype: DType,
}
impl ArrayElement {
    /// # Safety
    /// The registers are the frame's, and the nest's arrays have such an element.
    unsafe fn pointer(self, r: *mut u64) -> *mut u8 {
        // SAFETY: by the contract.
        let (array, index) = unsafe { (*r.add(self.array as usize) as *mut u8, *r.add(self.index as usize)) };
        let at = (index as i64).wrapping_add(self.offset as i64);
        array.wrapping_offset(at as isize * self.dtype.size() as isize)
    }
}
enum Item {
    Code(Vec<Operation>),
    Load(Reg, ArrayElement),
    Store(Reg, ArrayElement),
    ExitUnless(Reg),
    Loop(Box<Repeated>),
}
enum Iterations {
    Static(usize),
    Dyn(Reg),
    Forever,
}
/// A loop: moves before it, and after each iteration.
struct Repeated {
    trips: Iterations,
    inits: Vec<(Reg, Reg)>,
    body: Vec<Item>,
    moves: Vec<(Reg, Reg)>,
}
/// How a list of items ended.
#[derive(PartialEq)]
enum Ended {
    Whole,
    /// At an exit of the loop around it.
    Exit,
    Cancelled,
}

/// A nest of scalars, ready to be interpreted.
pub struct Interpreter {
    layout: FrameLayout,
    /// A frame with its constants.
    words: Vec<u64>,
    body: Vec<Item>,
    outs: Vec<Reg>,
}
impl Interpreter {
    /// `None` if the nest has vectors or too many values.
    pub fn new(nest: &Nest) -> Option<Interpreter> {
        let layout = FrameLayout::new(nest, 0, false);
        let mut w = Writer { nest, layout, words: vec![0; layout.end], registers: vec![None; nest.defs.len()] };
        let body = w.items(&nest.body)?;
        let outs = nest.outs.iter().map(|v| w.register(*v)).collect::<Option<_>>()?;
        Some(Interpreter { layout, words: w.words, body, outs })
    }
    pub fn frame(&self) -> NestFrame {
        NestFrame::new(self.words.as_slice().into(), self.layout)
    }
    /// Goes through the nest; false where `cancel` was set.
    ///
    /// # Safety
    /// The frame is this interpreter's, its arrays are those of the nest.
    pub unsafe fn run(&self, frame: &mut NestFrame, cancel: &AtomicBool) -> bool {
        let r = frame.words().as_mut_ptr();
        // SAFETY: registers are words of the frame; by the contract.
        unsafe {
            if run(&self.body, r, cancel) == Ended::Cancelled {
                return false;
            }
            for (n, out) in self.outs.iter().enumerate() {
                *r.add(self.layout.outs + n) = *r.add(*out as usize);
            }
        }
        true
    }
}
/// # Safety
/// Registers are words of `r`, and elements lie in their arrays.
unsafe fn run(items: &[Item], r: *mut u64, cancel: &AtomicBool) -> Ended {
    for item in items {
        // SAFETY: by the contract.
        unsafe {
            match item {
                Item::Code(code) => exec(code, r),
                Item::Load(d, from) => *r.add(*d as usize) = moves::read_lane(from.pointer(r), from.dtype),
                Item::Store(value, to) => moves::write_lane(to.pointer(r), to.dtype, *r.add(*value as usize)),
                Item::ExitUnless(p) if value::Bool(*r.add(*p as usize)) => (),
                Item::ExitUnless(_) => return Ended::Exit,
                Item::Loop(l) => {
                    if !l.run(r, cancel) {
                        return Ended::Cancelled;
                    }
                }
            }
        }
    }
    Ended::Whole
}
impl Repeated {
    /// False where the run was cancelled.
    ///
    /// # Safety
    /// As `run`.
    unsafe fn run(&self, r: *mut u64, cancel: &AtomicBool) -> bool {
        // SAFETY: by the contract.
        unsafe {
            let trips = match self.trips {
                Iterations::Static(n) => n,
                Iterations::Dyn(n) => (*r.add(n as usize) as i64).max(0) as usize,
                Iterations::Forever => usize::MAX,
            };
            self.inits.iter().for_each(|(from, to)| *r.add(*to as usize) = *r.add(*from as usize));
            for _ in 0..trips {
                if cancel.load(Ordering::Relaxed) {
                    return false;
                }
                match run(&self.body, r, cancel) {
                    Ended::Whole => (),
                    Ended::Exit => return true,
                    Ended::Cancelled => return false,
                }
                self.moves.iter().for_each(|(from, to)| *r.add(*to as usize) = *r.add(*from as usize));
            }
        }
        true
    }
}

/// Writes a nest as items.
struct Writer<'a> {
    nest: &'a Nest,
    layout: FrameLayout,
    words: Vec<u64>,
    registers: Vec<Option<Reg>>,
}
impl Writer<'_> {
    fn fresh(&mut self, bits: u64) -> Option<Reg> {
        self.words.push(bits);
        Reg::try_from(self.words.len() - 1).ok()
    }
    /// The register of a value that was defined before, or is a constant.
    fn register(&mut self, v: NestValue) -> Option<Reg> {
        if self.registers[v as usize].is_none() {
            self.registers[v as usize] = Some(self.fresh(self.nest.known(v)?)?);
        }
        self.registers[v as usize]
    }
    fn define(&mut self, v: NestValue) -> Option<Reg> {
        let r = self.fresh(0)?;
        self.registers[v as usize] = Some(r);
        Some(r)
    }
    fn element(&mut self, array: ArrayId, index: NestValue, offset: i32, dtype: DType) -> Option<ArrayElement> {
        let array = Reg::try_from(self.layout.arrays + array as usize).ok()?;
        Some(ArrayElement { array, index: self.register(index)?, offset, dtype })
    }
    fn items(&mut self, body: &[Stmt]) -> Option<Vec<Item>> {
        let mut items = vec![];
        for s in body {
            let item = match s {
                Stmt::Let(v) => {
                    let def = *self.nest.def(*v);
                    match def.op {
                        _ if def.lanes > 1 => return None,
                        NestOp::Const(_) => continue,
                        NestOp::Input(n) => {
                            let word = Reg::try_from(self.layout.inputs + n as usize).ok()?;
                            self.registers[*v as usize] = Some(word);
                            continue;
                        }
                        NestOp::Load(array, offset) => {
                            let from = self.element(array, def.args[0], offset, def.dtype)?;
                            Item::Load(self.define(*v)?, from)
                        }
                        _ => {
                            let operation = self.operation(*v)?;
                            match items.last_mut() {
                                Some(Item::Code(code)) => {
                                    code.push(operation);
                                    continue;
                                }
                                _ => Item::Code(vec![operation]),
                            }
                        }
                    }
                }
                Stmt::Store { array, index, offset, value, dtype, .. } => {
                    let to = self.element(*array, *index, *offset, *dtype)?;
                    Item::Store(self.register(*value)?, to)
                }
                Stmt::ExitUnless(p) => Item::ExitUnless(self.register(*p)?),
                Stmt::Loop(l) => Item::Loop(Box::new(self.repeated(l)?)),
                Stmt::CallRow(_) => return None,
            };
            items.push(item);
        }
        Some(items)
    }
    fn repeated(&mut self, l: &NestLoop) -> Option<Repeated> {
        let trips = match l.trip {
            NestTrip::Static(n) => Iterations::Static(n),
            NestTrip::Dyn(n) => Iterations::Dyn(self.register(n)?),
            NestTrip::Forever => Iterations::Forever,
        };
        let mut inits = vec![];
        for c in &l.carries {
            let init = self.register(c.init)?;
            // After the loop a carry is what its slot holds then.
            let slot = self.define(c.slot)?;
            self.registers[c.after as usize] = Some(slot);
            inits.push((init, slot));
        }
        let mut body = self.items(&l.body)?;
        let slots: Vec<Reg> = inits.iter().map(|i| i.1).collect();
        let mut moves = vec![];
        for (c, slot) in l.carries.iter().zip(&slots) {
            let mut next = self.register(c.next)?;
            if next == *slot {
                continue;
            }
            // The moves are parallel: another carry's slot is kept aside first.
            if slots.contains(&next) {
                let d = self.fresh(0)?;
                body.push(Item::Code(vec![Operation { code: Code::Move, d, a: next, b: next, c: next }]));
                next = d;
            }
            moves.push((next, *slot));
        }
        Some(Repeated { trips, inits, body, moves })
    }
    fn operation(&mut self, v: NestValue) -> Option<Operation> {
        let def = *self.nest.def(v);
        let of = def.args().first().map_or(def.dtype, |a| self.nest.dtype(*a));
        let code = match def.op {
            NestOp::Un(f) => Code::Call(scalar::un(f, of, tier_of(Function::Un(f, of).is_long()))?),
            NestOp::Bin(f) => match direct(f, Lane::of(of)) {
                Some(code) => code,
                None => Code::Call(scalar::bin(f, lane(of), TIER)?),
            },
            NestOp::Select => Code::Select,
            NestOp::Convert(from) => Code::Call(scalar::convert(from, def.dtype, TIER)),
            NestOp::Bits(_) => Code::Move,
            NestOp::Wrap => Code::Call(scalar::canonical(def.dtype, TIER)?),
            NestOp::Settle if lane(def.dtype) == DType::F32 => Code::Settle32,
            NestOp::Settle => Code::Settle64,
            NestOp::Call(f, _) => Code::Call(f.function()),
            _ => return None,
        };
        let mut ops = [0; 3];
        for (r, a) in ops.iter_mut().zip(def.args()) {
            *r = self.register(*a)?;
        }
        for k in def.args().len().max(1)..3 {
            ops[k] = ops[k - 1];
        }
        let [a, b, c] = ops;
        Some(Operation { code, d: self.define(v)?, a, b, c })
    }
}
