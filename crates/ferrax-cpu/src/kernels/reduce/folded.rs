//! Reductions along rows by native code that keeps accumulators in registers.
//!
//! INVARIANT: only for one column; the code folds in the order of [`super`], so bits are equal.
use super::{BLOCK, Reducing, copy_one};
use crate::kernels::program::{Bases, Frame};
use crate::native::{CHAINS, FoldMemory, RegisterFold};
use std::ops::Range;

impl Reducing {
    /// Folds as many of the blocks of a unit as go at once, and are of one length: gives how many.
    ///
    /// # Safety
    /// As `block`, of one column.
    pub(super) unsafe fn fold_blocks(
        &self,
        code: &RegisterFold,
        inner: &Frame,
        memory: &mut FoldMemory,
        u: usize,
        blocks: Range<usize>,
    ) -> usize {
        let whole = (self.n / BLOCK).saturating_sub(blocks.start);
        let count = code.chains().min(blocks.len()).min(whole.max(1));
        let mut from = [0; CHAINS];
        (0..count).for_each(|c| from[c] = u * self.n + (blocks.start + c) * BLOCK);
        // SAFETY: positions of the unit, which is a row.
        unsafe { self.inner.fold(code, inner, memory, &from[..count], BLOCK.min(self.n - blocks.start * BLOCK)) };
        count
    }
    /// The results of a chain, to lane 0 of a block's accumulators.
    ///
    /// # Safety
    /// As `block`.
    pub(super) unsafe fn take_folded(&self, code: &RegisterFold, memory: &FoldMemory, acc: *mut u8, chain: usize) {
        for (k, r) in self.reductions.iter().enumerate() {
            // SAFETY: an element each.
            unsafe { copy_one(acc.add(r.at), code.result(memory, k, chain), r.bytes) };
        }
    }
    /// Whole short rows, by code that folds them.
    ///
    /// # Safety
    /// As `rows`.
    pub(super) unsafe fn rows_folded(&self, code: &RegisterFold, m: *mut u8, bases: Bases, from: usize, to: usize) {
        // SAFETY: as `rows`.
        unsafe {
            let (inner, mut epilogue, _) = self.start(m, bases, None);
            let mut memory = FoldMemory::default();
            let steps = self.inner.fold_steps(code, code.chains() * self.n);
            let mut g = from;
            while g < to {
                let count = self.epilogue.tile().min(to - g);
                for row in (0..count).step_by(code.chains()) {
                    let chains = code.chains().min(count - row);
                    match steps.as_ref().filter(|_| row > 0 && chains == code.chains()) {
                        Some(steps) => {
                            code.advance(&mut memory, steps);
                            self.inner.fold_here(code, &mut memory, self.n);
                        }
                        None => {
                            let mut at = [0; CHAINS];
                            (0..chains).for_each(|c| at[c] = (g + row + c) * self.n);
                            self.inner.fold(code, &inner, &mut memory, &at[..chains], self.n);
                        }
                    }
                    for (k, r) in self.reductions.iter().enumerate() {
                        let d = self.epilogue.lanes(&epilogue, r.result).add(row * r.bytes);
                        for c in 0..chains {
                            copy_one(d.add(c * r.bytes), code.result(&memory, k, c), r.bytes);
                        }
                    }
                }
                self.conclude(&mut epilogue, g, count);
                g += count;
            }
        }
    }
}
