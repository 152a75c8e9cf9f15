//! Transforms of real numbers by complex transforms of half the length.
//!
//! ```text
//! z[j] = x[2j] + i x[2j + 1], Z its transform, m = n / 2, w = exp(-2 pi i / n):
//! X[k] = E + w^k O,  X[m - k] = conj(E - w^k O)      E = (Z[k] + conj Z[m - k]) / 2,  O = (Z[k] - conj Z[m - k]) / 2i
//! ```
//!
//! The inverse combines the same pairs: `Z[k] = E + i O / w^k` with E and O of X, twice as large. Parts of X that a real result cannot have
//! (imaginary parts at 0 and m) are ignored.
#![allow(unsafe_code)]
use super::library::{Complex, FftNum};
use super::pairs::{self, OnPairs};
use super::{SharedPtr, slice_mut};
use crate::threads::{self, Cost};
use crate::tier::Tier;
use std::sync::atomic::AtomicBool;

pub struct RealHalves<T: FftNum> {
    m: usize,
    /// `w^k` from k = 1 on, for the first of each pair.
    twiddles: Vec<Complex<T>>,
    inverse: bool,
    pairs: OnPairs,
}

impl<T: FftNum> RealHalves<T> {
    /// The transform of `n` reals, an even number, with `twiddle(k)` for `w^k` forward and its conjugate backward.
    pub fn new(n: usize, twiddle: impl Fn(usize) -> (f64, f64), tier: Tier, inverse: bool) -> RealHalves<T> {
        let m = n / 2;
        let number = |x| T::from_f64(x).unwrap_or_else(T::zero);
        let twiddles =
            (1..m.div_ceil(2)).map(twiddle).map(|(re, im)| Complex { re: number(re), im: number(im) }).collect();
        let on_rows = pairs::pick(size_of::<T>(), tier);
        let pairs = if inverse { on_rows.together } else { on_rows.apart };
        RealHalves { m, twiddles, inverse, pairs }
    }
    /// The transform of `m + 1` numbers: forward from the first m, backward to them.
    pub fn run(&self, row: &mut [Complex<T>], scale: T) {
        self.ends(row, scale);
        // SAFETY: a row is as long.
        unsafe { self.run_part(SharedPtr(row.as_mut_ptr().cast()), 0..self.twiddles.len(), scale) };
    }
    /// The elements without a partner: the first with the last, and the middle.
    fn ends(&self, row: &mut [Complex<T>], scale: T) {
        let (m, first) = (self.m, row[0]);
        let other = if self.inverse { row[m].re } else { first.im };
        let zero = T::zero();
        if self.inverse {
            row[0] = Complex { re: (first.re + other) * scale, im: (first.re - other) * scale };
        } else {
            row[0] = Complex { re: first.re + other, im: zero };
            row[m] = Complex { re: first.re - other, im: zero };
        }
        if m.is_multiple_of(2) && m > 0 {
            let by = if self.inverse { scale + scale } else { T::one() };
            row[m / 2] = Complex { re: row[m / 2].re * by, im: zero - row[m / 2].im * by };
        }
    }
    /// Some of the pairs.
    ///
    /// # Safety
    /// `row` has `m + 1` numbers, and nothing else touches those of these pairs.
    unsafe fn run_part(&self, row: SharedPtr, pairs: std::ops::Range<usize>, scale: T) {
        let half = T::from_f64(0.5).unwrap_or_else(T::one);
        let (scale, n) = (if self.inverse { scale } else { half }, pairs.len());
        let low = row.get().cast::<Complex<T>>().wrapping_add(1 + pairs.start);
        let high = row.get().cast::<Complex<T>>().wrapping_add(self.m - pairs.end);
        // SAFETY: pairs lie below and above the middle; there are as many twiddles.
        unsafe {
            (self.pairs)(low.cast(), high.cast(), self.twiddles[pairs].as_ptr().cast(), (&raw const scale).cast(), n)
        };
    }
    /// The transforms of contiguous rows, by all threads.
    pub fn run_rows(&self, rows: SharedPtr, count: usize, scale: T, cost: Option<&Cost>, cancel: &AtomicBool) {
        /// Pairs that are done together.
        const PAIRS: usize = 4096;
        let pieces = self.twiddles.len().div_ceil(PAIRS).max(1);
        threads::for_ranges(count * pieces, cost, cancel, &|units| {
            for unit in units {
                let (row, from) = (unit / pieces, unit % pieces * PAIRS);
                let row = SharedPtr(rows.get().wrapping_add(row * (self.m + 1) * size_of::<Complex<T>>()));
                // SAFETY: rows of `m + 1` numbers, whose pairs, and ends, are each one unit's.
                unsafe {
                    if from == 0 {
                        self.ends(slice_mut(row, 0, self.m + 1), scale);
                    }
                    self.run_part(row, from..self.twiddles.len().min(from + PAIRS), scale);
                }
            }
        });
    }
}
