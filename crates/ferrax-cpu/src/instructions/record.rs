//! Recording numbers: the scalar functions of `ferrax_kernel::math`, run over these, append their operations to the graph of the calling
//! thread.
//!
//! INVARIANT: a recorded operation gives the bits of the same method of `f32` or `f64`, element by element. The one exception is which nan a
//! sum, product or quotient of nans gives; no function of `math` makes that visible.
use super::VectorSize;
use super::graph::{VecValue, bin, constant, fused, greater, not, sar, select, un, with};
use super::opcodes::Opcode;
use ferrax_kernel::math::{Int, Mask, Real, scaled_by_factors};

/// `x < y` and the like, false where one is nan; unordered ones true.
pub const EQ: u8 = 0;
pub const NE: u8 = 4;
pub const LT: u8 = 0x11;
pub const LE: u8 = 0x12;
pub const UNORDERED: u8 = 3;

#[derive(Clone)]
pub struct VecReal<const WIDE: bool>(pub VecValue);
#[derive(Clone)]
pub struct VecInt<const WIDE: bool>(pub VecValue);
#[derive(Clone)]
pub struct VecMask(pub VecValue);

impl Mask for VecMask {
    fn and(self, other: Self) -> Self {
        VecMask(bin(Opcode::And, self.0, other.0))
    }
    fn or(self, other: Self) -> Self {
        VecMask(bin(Opcode::Or, self.0, other.0))
    }
    fn xor(self, other: Self) -> Self {
        VecMask(bin(Opcode::Xor, self.0, other.0))
    }
    fn not(self) -> Self {
        VecMask(not(self.0))
    }
}

impl<const WIDE: bool> Int for VecInt<WIDE> {
    type Mask = VecMask;
    fn constant(value: i64) -> Self {
        VecInt(constant(value as u64))
    }
    fn add(self, other: Self) -> Self {
        VecInt(bin(Opcode::IntAdd, self.0, other.0))
    }
    fn sub(self, other: Self) -> Self {
        VecInt(bin(Opcode::IntSub, self.0, other.0))
    }
    fn and(self, other: Self) -> Self {
        VecInt(bin(Opcode::And, self.0, other.0))
    }
    fn or(self, other: Self) -> Self {
        VecInt(bin(Opcode::Or, self.0, other.0))
    }
    fn xor(self, other: Self) -> Self {
        VecInt(bin(Opcode::Xor, self.0, other.0))
    }
    fn mul(self, _: Self) -> Self {
        unreachable!("only the reduction of huge angles multiplies words")
    }
    fn mul_high_unsigned(self, _: Self) -> Self {
        unreachable!("only the reduction of huge angles multiplies words")
    }
    fn shl(self, by: u32) -> Self {
        VecInt(un(Opcode::Shl(by as u8), self.0))
    }
    fn shr(self, by: u32) -> Self {
        VecInt(sar(self.0, by as u8))
    }
    fn shr_unsigned(self, by: u32) -> Self {
        VecInt(un(Opcode::Shr(by as u8), self.0))
    }
    fn shl_by(self, by: Self) -> Self {
        VecInt(bin(Opcode::ShlBy, self.0, by.0))
    }
    fn shr_unsigned_by(self, by: Self) -> Self {
        VecInt(bin(Opcode::ShrBy, self.0, by.0))
    }
    fn eq(self, other: Self) -> VecMask {
        VecMask(bin(Opcode::IntEq, self.0, other.0))
    }
    fn lt(self, other: Self) -> VecMask {
        VecMask(greater(other.0, self.0))
    }
    fn select(mask: VecMask, yes: Self, no: Self) -> Self {
        VecInt(select(mask.0, yes.0, no.0))
    }
}

impl<const WIDE: bool> Real for VecReal<WIDE> {
    type Mask = VecMask;
    type Int = VecInt<WIDE>;
    const WIDE: bool = WIDE;

    fn constant(narrow: f32, wide: f64) -> Self {
        let bits = if WIDE { wide.to_bits() } else { narrow.to_bits() as u64 };
        VecReal(constant(bits))
    }
    fn from_bits(bits: Self::Int) -> Self {
        VecReal(bits.0)
    }
    fn to_bits(self) -> Self::Int {
        VecInt(self.0)
    }
    fn add(self, other: Self) -> Self {
        VecReal(bin(Opcode::Add, self.0, other.0))
    }
    fn sub(self, other: Self) -> Self {
        VecReal(bin(Opcode::Sub, self.0, other.0))
    }
    fn mul(self, other: Self) -> Self {
        VecReal(bin(Opcode::Mul, self.0, other.0))
    }
    fn div(self, other: Self) -> Self {
        VecReal(bin(Opcode::Div, self.0, other.0))
    }
    fn mul_add(self, by: Self, to: Self) -> Self {
        VecReal(fused(Opcode::MulAdd, self.0, by.0, to.0))
    }
    fn mul_sub(self, by: Self, less: Self) -> Self {
        VecReal(fused(Opcode::MulSub, self.0, by.0, less.0))
    }
    fn sub_from(self, by: Self, from: Self) -> Self {
        VecReal(fused(Opcode::SubFrom, self.0, by.0, from.0))
    }
    fn sqrt(self) -> Self {
        VecReal(un(Opcode::Sqrt, self.0))
    }
    fn neg(self) -> Self {
        self.flip_sign(Self::int(i32::MIN, i64::MIN))
    }
    fn abs(self) -> Self {
        Self::from_bits(self.to_bits().and(Self::int(i32::MAX, i64::MAX)))
    }
    fn lt(self, other: Self) -> VecMask {
        VecMask(bin(Opcode::Compare(LT), self.0, other.0))
    }
    fn le(self, other: Self) -> VecMask {
        VecMask(bin(Opcode::Compare(LE), self.0, other.0))
    }
    fn eq(self, other: Self) -> VecMask {
        VecMask(bin(Opcode::Compare(EQ), self.0, other.0))
    }
    fn select(mask: VecMask, yes: Self, no: Self) -> Self {
        VecReal(select(mask.0, yes.0, no.0))
    }
    fn round_small(self) -> (Self, Self::Int) {
        let magic = magic::<WIDE>();
        let sum = self.add(magic.clone());
        (sum.clone().sub(magic.clone()), sum.to_bits().sub(magic.to_bits()))
    }
    fn round_product(self, by: Self) -> (Self, Self::Int) {
        let magic = magic::<WIDE>();
        let sum = self.mul_add(by, magic.clone());
        (sum.clone().sub(magic.clone()), sum.to_bits().sub(magic.to_bits()))
    }
    fn from_small(int: Self::Int) -> Self {
        let magic = magic::<WIDE>();
        Self::from_bits(magic.clone().to_bits().add(int)).sub(magic)
    }
    fn scaled(self, number: Self, k: Self::Int) -> Self {
        if with(|g| g.vector) == VectorSize::Zmm {
            return VecReal(bin(Opcode::Scale, self.0, number.0));
        }
        scaled_by_factors(self, k)
    }
    fn two_over_pi_word(_: Self::Int) -> Self::Int {
        unreachable!("only the reduction of huge angles asks for words")
    }

    // One instruction each, with the same answer for every operand, nan and signed zeros among them.
    fn is_nan(self) -> VecMask {
        VecMask(bin(Opcode::Compare(UNORDERED), self.0, self.0))
    }
    fn max(self, other: Self) -> Self {
        VecReal(bin(Opcode::Max, other.0, self.0))
    }
    fn min(self, other: Self) -> Self {
        VecReal(bin(Opcode::Min, other.0, self.0))
    }
}

/// A number so large that its unit is 1: adding it leaves the integer in the low bits, as `math` does it.
fn magic<const WIDE: bool>() -> VecReal<WIDE> {
    VecReal::constant(1.5 * (1_u32 << 23) as f32, 1.5 * (1_u64 << 52) as f64)
}
