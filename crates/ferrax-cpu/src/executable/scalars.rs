//! Scalar blocks: kernels of one element, and of few elements inside loops, as operations on a file of 64-bit registers.
//!
//! Neighbouring scalar kernels become one block, branches between such blocks included. A loop whose whole body is scalar, or of few elements where
//! that costs less than tiles, keeps its carries in registers.
//!
//! ```text
//!     x = x * 0.999 + 0.1     ->    read r0 <- cell 2;  r3 = mul r0 r1;  r4 = add r3 r2;  write cell 3 <- r4     (r1, r2: constants)
//! ```
//!
//! INVARIANT: a register holds a lane, canonical for its dtype, in its low bytes. Blocks call the same functions as the tile programs of the same
//! kernels, so they give the same bits.
#![allow(unsafe_code)]
mod build;
mod compile;
mod repeat;

pub use build::{ScalarBuilder, tiled_kernel};
pub use compile::compile_loop;
use repeat::LazyLoop;
pub use repeat::ScalarLoop;

use super::{Cell, RunState};
use crate::kernels::block::BlockFn;
use crate::kernels::lane::{Float, Integer, Lane, bf16_bits, f16_bits};
use crate::kernels::moves;
use crate::tier::Tier;
use ferrax_kernel::{Bin, DType, Scalar};
use smallvec::SmallVec;
use std::mem::MaybeUninit;

type Reg = u16;

/// Loops are short on prologue in the portable tier; its bits are those of the others.
const TIER: Tier = Tier::Portable;
/// The tier of a function: long ones take fused multiply-adds, for which the portable tier calls the C library.
fn tier_of(is_long: bool) -> Tier {
    if is_long { Tier::current() } else { TIER }
}

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
        unsafe fn exec(code: &[ScalarIns], r: *mut u64) {
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

#[derive(Clone, Copy)]
struct ScalarIns {
    code: Code,
    d: Reg,
    a: Reg,
    b: Reg,
    c: Reg,
}
/// An element in memory and its register.
#[derive(Clone, Copy)]
struct CellScalar {
    cell: Cell,
    offset: usize,
    dtype: DType,
    reg: Reg,
}
impl CellScalar {
    fn moved(self, bytes: usize) -> CellScalar {
        CellScalar { offset: self.offset + bytes, ..self }
    }
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
/// # Safety
/// `p` points at an integer of `bytes` bytes.
pub unsafe fn write_int(p: *mut u8, bytes: usize, x: usize) {
    // SAFETY: by the contract.
    unsafe {
        match bytes {
            4 => p.cast::<i32>().write_unaligned(x as i32),
            8 => p.cast::<i64>().write_unaligned(x as i64),
            _ => p.copy_from_nonoverlapping(x.to_le_bytes().as_ptr(), bytes.min(8)),
        }
    }
}

type File = SmallVec<[u64; 64]>;

/// Straight-line scalar code.
#[derive(Default)]
pub struct ScalarBlock {
    file: Vec<u64>,
    code: Vec<ScalarIns>,
    reads: Vec<CellScalar>,
    writes: Vec<CellScalar>,
    kernels: u64,
    /// Registers that are set before the block: those that it neither reads from memory nor
    /// computes.
    constants: Vec<(Reg, u64)>,
    /// The block as a loop of one iteration, with the state index of each write; none where the
    /// written value is a constant.
    lazy: Option<(LazyLoop, Vec<Option<usize>>)>,
}
impl ScalarBlock {
    pub fn run(&self, state: &mut RunState) {
        state.launches += self.kernels;
        if let Some((lazy, states)) = &self.lazy
            && let Some(code) = lazy.get(self.code.len() as u64, &self.file)
        {
            // SAFETY: as below; the text's state begins with what is read.
            unsafe {
                code.once(self.reads.iter().map(|p| p.read(&state.ptrs)), |left| {
                    for (p, n) in self.writes.iter().zip(states) {
                        p.write(&state.ptrs, n.map_or_else(|| self.file[p.reg as usize], |n| left.value(n)));
                    }
                });
            }
            return;
        }
        let mut file: SmallVec<[MaybeUninit<u64>; 256]> = SmallVec::with_capacity(self.file.len());
        let r = file.as_mut_ptr().cast::<u64>();
        // SAFETY: registers are numbers that `fresh` returned, each with a new entry of the file.
        // Places are slots of one element (`copy` and `kernel` refuse to write others), or the
        // constant element of a load, which `Kernel::verify` proved to be in bounds; verify,
        // places: the cells point at them. A register is set before it is read: it is a constant,
        // loaded from memory, or computed earlier.
        unsafe {
            for (reg, x) in &self.constants {
                r.add(*reg as usize).write(*x);
            }
            for p in &self.reads {
                r.add(p.reg as usize).write(p.read(&state.ptrs));
            }
            exec(&self.code, r);
            for p in &self.writes {
                p.write(&state.ptrs, *r.add(p.reg as usize));
            }
        }
    }
    pub fn text(&self) -> String {
        let native = if self.lazy.as_ref().is_some_and(|l| l.0.is_native()) { ", native" } else { "" };
        let [n, reads, writes] = [self.code.len(), self.reads.len(), self.writes.len()];
        format!("{n} scalar operations, {reads} reads, {writes} writes{native}")
    }
}
