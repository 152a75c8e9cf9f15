//! What a 32-bit word must do for Threefry: all arithmetic is modulo 2^32.
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
