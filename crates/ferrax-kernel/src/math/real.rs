//! What a lane of real numbers must do for the scalar functions: IEEE arithmetic, comparison, selection and bits.
//!
//! Invariant: no method's control flow depends on a lane's value, so an implementation may compute (`f32`, `f64`) or
//! record (a builder of shader text: statements appended where each value is made, the value a name). Constants are
//! made without a context, methods take `self` by value, and `Clone` is cheap.
//!
//! ```
//! use ferrax_kernel::math::Real;
//! fn relu<R: Real>(x: R) -> R {
//!     let zero = R::exact(0.0);
//!     R::select(x.clone().lt(zero.clone()), zero, x)
//! }
//! assert_eq!((relu(-2.0_f32), relu(3.0_f64)), (0.0, 3.0));
//! ```

/// A truth value for each lane.
pub trait Mask: Clone {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
}

/// A two's-complement integer as wide as the [`Real`] it belongs to; arithmetic wraps.
pub trait Int: Clone {
    type Mask: Mask;
    fn constant(value: i64) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// The low half of the product.
    fn mul(self, other: Self) -> Self;
    /// The high half of the product of the operands as unsigned integers.
    fn mul_high_unsigned(self, other: Self) -> Self;
    /// Shift left by a fixed amount below the width.
    fn shl(self, by: u32) -> Self;
    /// Shift right by a fixed amount below the width, filling with the sign.
    fn shr(self, by: u32) -> Self;
    /// Shift right by a fixed amount below the width, filling with zeros.
    fn shr_unsigned(self, by: u32) -> Self;
    /// Shift left by a computed amount in `0..width`.
    fn shl_by(self, by: Self) -> Self;
    /// Shift right by a computed amount in `0..width`, filling with zeros.
    fn shr_unsigned_by(self, by: Self) -> Self;
    fn eq(self, other: Self) -> Self::Mask;
    /// Compared as signed.
    fn lt(self, other: Self) -> Self::Mask;
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
}

/// A binary floating-point number: `f32`'s format, or `f64`'s where [`Real::WIDE`].
///
/// Comparisons with NaN answer false on the CPU; nothing in [`super`] relies on it where a NaN may arrive.
#[allow(clippy::wrong_self_convention)] // by value, as everything here
pub trait Real: Clone {
    type Mask: Mask;
    type Int: Int<Mask = Self::Mask>;
    /// Whether the format is binary64; otherwise it is binary32.
    const WIDE: bool;
    /// Whether [`Real::mul_add`] rounds once. Where a device does not guarantee it, results stay
    /// within the bounds of its own laws, and values that must be exact are computed without it.
    const FUSED: bool = true;

    /// `narrow` in the narrow format, `wide` in the wide one.
    fn constant(narrow: f32, wide: f64) -> Self;
    fn from_bits(bits: Self::Int) -> Self;
    fn to_bits(self) -> Self::Int;

    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// `self * by + to`, rounded once: an operation of the definition, the same wherever it is computed, and not a contraction of two.
    fn mul_add(self, by: Self, to: Self) -> Self;
    fn sqrt(self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn lt(self, other: Self) -> Self::Mask;
    fn le(self, other: Self) -> Self::Mask;
    fn eq(self, other: Self) -> Self::Mask;
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// The nearest integer, ties to even, as a real and as an integer, for `|self| < 2^(DIGITS - 2)`.
    fn round_small(self) -> (Self, Self::Int);
    /// An integer nearest to `self * by`, or next to that where it is almost as near, under the same condition.
    fn round_product(self, by: Self) -> (Self, Self::Int);
    /// The real equal to an integer of `|self| < 2^(DIGITS - 2)`.
    fn from_small(int: Self::Int) -> Self;
    /// Word `index` of the binary expansion of 2/pi, the first word being its first 32 (or 64) fraction bits; words
    /// before the first are 0. `index` is at least -2 and small enough for any finite argument's reduction.
    fn two_over_pi_word(index: Self::Int) -> Self::Int;

    /// `self * by - less`, rounded once.
    #[inline(always)]
    fn mul_sub(self, by: Self, less: Self) -> Self {
        self.mul_add(by, less.neg())
    }
    /// `from - self * by`, rounded once.
    #[inline(always)]
    fn sub_from(self, by: Self, from: Self) -> Self {
        self.neg().mul_add(by, from)
    }

    /// A constant that `f32` holds exactly.
    #[inline(always)]
    fn exact(value: f32) -> Self {
        Self::constant(value, value as f64)
    }
    /// An integer constant.
    #[inline(always)]
    fn int(narrow: i32, wide: i64) -> Self::Int {
        <Self::Int as Int>::constant(if Self::WIDE { wide } else { narrow as i64 })
    }
    /// Explicit mantissa bits of the format: 23 or 52.
    #[inline(always)]
    fn mantissa_bits() -> u32 {
        if Self::WIDE { 52 } else { 23 }
    }
    /// Exponent bias of the format.
    #[inline(always)]
    fn bias() -> i64 {
        if Self::WIDE { 1023 } else { 127 }
    }
    #[inline(always)]
    fn infinity() -> Self {
        Self::exact(f32::INFINITY)
    }
    /// The NaN that every function answers with: quiet, positive, payload 0.
    #[inline(always)]
    fn nan() -> Self {
        Self::from_bits(Self::int(0x7fc0_0000, 0x7ff8_0000_0000_0000))
    }
    #[inline(always)]
    fn is_nan(self) -> Self::Mask {
        Self::int(0x7f80_0000, 0x7ff0_0000_0000_0000).lt(self.abs().to_bits())
    }
    /// Whether the sign bit is set, for -0 and NaN too.
    #[inline(always)]
    fn is_negative(self) -> Self::Mask {
        self.to_bits().lt(Self::int(0, 0))
    }
    /// Only the sign bit.
    #[inline(always)]
    fn sign_bit(self) -> Self::Int {
        self.to_bits().and(Self::int(i32::MIN, i64::MIN))
    }
    /// `self` with the sign flipped where `sign` has its top bit.
    #[inline(always)]
    fn flip_sign(self, sign: Self::Int) -> Self {
        Self::from_bits(self.to_bits().xor(sign))
    }
    /// `self`, which must not be negative, with the sign bit `sign`.
    #[inline(always)]
    fn with_sign(self, sign: Self::Int) -> Self {
        Self::from_bits(self.to_bits().or(sign))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(self.clone().lt(other.clone()), other, self)
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(other.clone().lt(self.clone()), other, self)
    }
    /// `self * 2^k`, rounded once, for a normal number near 1 and an integer k up to twice the bias, which is given as a number, too.
    #[inline(always)]
    fn scaled(self, _number: Self, k: Self::Int) -> Self {
        scaled_by_factors(self, k)
    }
    /// `2^exponent` for an exponent of a normal number.
    #[inline(always)]
    fn power_of_two(exponent: Self::Int) -> Self {
        Self::from_bits(exponent.add(<Self::Int as Int>::constant(Self::bias())).shl(Self::mantissa_bits()))
    }
}

/// [`Real::scaled`] for machines without an instruction for it.
#[inline(always)]
pub fn scaled_by_factors<R: Real>(x: R, k: R::Int) -> R {
    // Each factor is normal for any k in range; their biased exponents share k and twice the bias, which makes it positive.
    let both = k.add(<R::Int as Int>::constant(2 * R::bias()));
    let half = both.clone().shr_unsigned(1);
    let factor = |exponent: R::Int| R::from_bits(exponent.shl(R::mantissa_bits()));
    x.mul(factor(half.clone())).mul(factor(both.sub(half)))
}

impl Mask for bool {
    #[inline(always)]
    fn and(self, other: bool) -> bool {
        self & other
    }
    #[inline(always)]
    fn or(self, other: bool) -> bool {
        self | other
    }
    #[inline(always)]
    fn xor(self, other: bool) -> bool {
        self ^ other
    }
    #[inline(always)]
    fn not(self) -> bool {
        !self
    }
}

macro_rules! lanes {
    ($real:ty, $int:ty, $uint:ty, $double:ty, $wide:expr, $words:expr) => {
        impl Int for $int {
            type Mask = bool;
            #[inline(always)]
            fn constant(value: i64) -> $int {
                value as $int
            }
            #[inline(always)]
            fn add(self, other: $int) -> $int {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: $int) -> $int {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn and(self, other: $int) -> $int {
                self & other
            }
            #[inline(always)]
            fn or(self, other: $int) -> $int {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: $int) -> $int {
                self ^ other
            }
            #[inline(always)]
            fn mul(self, other: $int) -> $int {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn mul_high_unsigned(self, other: $int) -> $int {
                ((self as $uint as $double * other as $uint as $double) >> <$uint>::BITS) as $int
            }
            #[inline(always)]
            fn shl(self, by: u32) -> $int {
                self << by
            }
            #[inline(always)]
            fn shr(self, by: u32) -> $int {
                self >> by
            }
            #[inline(always)]
            fn shr_unsigned(self, by: u32) -> $int {
                (self as $uint >> by) as $int
            }
            #[inline(always)]
            fn shl_by(self, by: $int) -> $int {
                self.wrapping_shl(by as u32)
            }
            #[inline(always)]
            fn shr_unsigned_by(self, by: $int) -> $int {
                (self as $uint).wrapping_shr(by as u32) as $int
            }
            #[inline(always)]
            fn eq(self, other: $int) -> bool {
                self == other
            }
            #[inline(always)]
            fn lt(self, other: $int) -> bool {
                self < other
            }
            #[inline(always)]
            fn select(mask: bool, yes: $int, no: $int) -> $int {
                if mask { yes } else { no }
            }
        }

        impl Real for $real {
            type Mask = bool;
            type Int = $int;
            const WIDE: bool = $wide;

            #[inline(always)]
            fn constant(narrow: f32, wide: f64) -> $real {
                // One of the two conversions is the identity; the other is discarded with its branch.
                if $wide { wide as $real } else { narrow as $real }
            }
            #[inline(always)]
            fn from_bits(bits: $int) -> $real {
                <$real>::from_bits(bits as $uint)
            }
            #[inline(always)]
            fn to_bits(self) -> $int {
                self.to_bits() as $int
            }
            #[inline(always)]
            fn add(self, other: $real) -> $real {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: $real) -> $real {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: $real) -> $real {
                self * other
            }
            #[inline(always)]
            fn div(self, other: $real) -> $real {
                self / other
            }
            /// The instruction, or the C library's function, which rounds once too.
            #[inline(always)]
            fn mul_add(self, by: $real, to: $real) -> $real {
                <$real>::mul_add(self, by, to)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$real>::is_nan(self)
            }
            #[inline(always)]
            fn sqrt(self) -> $real {
                self.sqrt()
            }
            #[inline(always)]
            fn neg(self) -> $real {
                -self
            }
            #[inline(always)]
            fn abs(self) -> $real {
                self.abs()
            }
            #[inline(always)]
            fn lt(self, other: $real) -> bool {
                self < other
            }
            #[inline(always)]
            fn le(self, other: $real) -> bool {
                self <= other
            }
            #[inline(always)]
            fn eq(self, other: $real) -> bool {
                self == other
            }
            #[inline(always)]
            fn select(mask: bool, yes: $real, no: $real) -> $real {
                if mask { yes } else { no }
            }
            // Adding 1.5 * 2^(DIGITS - 1) leaves the integer in the low bits of the sum, rounded by the addition itself: no
            // rounding or conversion instruction, which not every tier has for every width.
            #[inline(always)]
            fn round_small(self) -> ($real, $int) {
                const MAGIC: $real = 1.5 * (1_u64 << (<$real>::MANTISSA_DIGITS - 1)) as $real;
                let sum = self + MAGIC;
                (sum - MAGIC, (sum.to_bits() as $int).wrapping_sub(MAGIC.to_bits() as $int))
            }
            #[inline(always)]
            fn round_product(self, by: $real) -> ($real, $int) {
                const MAGIC: $real = 1.5 * (1_u64 << (<$real>::MANTISSA_DIGITS - 1)) as $real;
                let sum = <$real>::mul_add(self, by, MAGIC);
                (sum - MAGIC, (sum.to_bits() as $int).wrapping_sub(MAGIC.to_bits() as $int))
            }
            #[inline(always)]
            fn from_small(int: $int) -> $real {
                const MAGIC: $real = 1.5 * (1_u64 << (<$real>::MANTISSA_DIGITS - 1)) as $real;
                <$real>::from_bits((MAGIC.to_bits() as $int).wrapping_add(int) as $uint) - MAGIC
            }
            #[inline(always)]
            fn two_over_pi_word(index: $int) -> $int {
                // Two words of zeros precede the first.
                $words[((index + 2) as usize).min($words.len() - 1)] as $int
            }
        }
    };
}

lanes!(f32, i32, u32, u64, false, TWO_OVER_PI_32);
lanes!(f64, i64, u64, u128, true, TWO_OVER_PI_64);

/// The bits of 2/pi after the point, 32 to a word, behind two words of zeros.
pub const TWO_OVER_PI_32: [u32; 10] = [
    0x0000_0000,
    0x0000_0000,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
    0xdebb_c561,
];

/// The bits of 2/pi after the point, 64 to a word, behind two words of zeros.
pub const TWO_OVER_PI_64: [u64; 22] = [
    0x0000_0000_0000_0000,
    0x0000_0000_0000_0000,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
];
