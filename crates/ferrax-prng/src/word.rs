//! What a 32-bit word must do for the ciphers: all arithmetic is modulo 2^32.
//!
//! Invariant: no operation depends on a word's value for its control flow, so an implementation may record instead of compute.
//!
//! ```
//! use ferrax_prng::Word;
//! assert_eq!(Word::rotate_left(0x8000_0001_u32, 1), 3);
//! ```

/// A 32-bit unsigned word, or the expression of one.
pub trait Word: Clone {
    fn constant(value: u32) -> Self;
    fn add(self, other: Self) -> Self;
    /// The low half of the product.
    fn mul(self, by: u32) -> Self;
    fn sub(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    /// Shift left by `0 < by < 32`.
    fn shl(self, by: u32) -> Self;
    /// Shift right by `0 < by < 32`, filling with zeros.
    fn shr(self, by: u32) -> Self;
    /// Shift right by a computed amount below 32, filling with zeros.
    fn shr_by(self, by: Self) -> Self;
    /// `if self < bound { yes } else { no }`, compared as unsigned.
    fn select_lt(self, bound: Self, yes: Self, no: Self) -> Self;

    /// The high half of the product: of halves of 16 bits, for a word may have no wider type to be multiplied in.
    fn mul_high(self, by: u32) -> Self {
        let half = Self::constant(0xffff);
        let (low, high) = (self.clone().and(half.clone()), self.shr(16));
        let (by_low, by_high) = (by & 0xffff, by >> 16);
        let middle = high.clone().mul(by_low).add(low.clone().mul(by_low).shr(16));
        let carried = middle.clone().and(half).add(low.mul(by_high));
        high.mul(by_high).add(middle.shr(16)).add(carried.shr(16))
    }
    fn rotate_left(self, by: u32) -> Self {
        self.clone().shl(by).or(self.shr(32 - by))
    }
}

impl Word for u32 {
    #[inline(always)]
    fn constant(value: u32) -> u32 {
        value
    }
    #[inline(always)]
    fn add(self, other: u32) -> u32 {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn mul(self, by: u32) -> u32 {
        self.wrapping_mul(by)
    }
    #[inline(always)]
    fn mul_high(self, by: u32) -> u32 {
        ((u64::from(self) * u64::from(by)) >> 32) as u32
    }
    #[inline(always)]
    fn sub(self, other: u32) -> u32 {
        self.wrapping_sub(other)
    }
    #[inline(always)]
    fn xor(self, other: u32) -> u32 {
        self ^ other
    }
    #[inline(always)]
    fn or(self, other: u32) -> u32 {
        self | other
    }
    #[inline(always)]
    fn and(self, other: u32) -> u32 {
        self & other
    }
    #[inline(always)]
    fn shl(self, by: u32) -> u32 {
        self << by
    }
    #[inline(always)]
    fn shr(self, by: u32) -> u32 {
        self >> by
    }
    #[inline(always)]
    fn shr_by(self, by: u32) -> u32 {
        self >> (by & 31)
    }
    #[inline(always)]
    fn select_lt(self, bound: u32, yes: u32, no: u32) -> u32 {
        if self < bound { yes } else { no }
    }
    #[inline(always)]
    fn rotate_left(self, by: u32) -> u32 {
        u32::rotate_left(self, by)
    }
}
