//! Reductions with few results of many elements: threads share the blocks, whose results are combined in order.
//!
//! INVARIANT: the bits are those of one thread: blocks are computed and combined as in [`super`].
use super::{ArgPlaces, How, Reducing, Reduction};
use crate::kernels::Scratch;
use crate::kernels::fold::ArgFolder;
use crate::kernels::program::Bases;
use crate::threads::{self, Cost};
use ferrax_kernel::Res;
use ferrax_kernel::error::filled;
use std::sync::atomic::Ordering;

impl Reducing {
    /// Few results of many elements: blocks in parallel, then their results in order.
    pub(super) fn split(
        &self,
        scratch: Scratch,
        bases: Bases,
        cost: Option<&Cost>,
        units: usize,
        blocks: usize,
    ) -> Res<()> {
        // For each reduction: [unit][block][width] of values, and of positions.
        let size = |r: &Reduction| r.bytes + if matches!(r.how, How::Arg(_)) { 8 } else { 0 };
        let mut starts = vec![];
        let mut total = 0;
        for r in &self.reductions {
            starts.push(total);
            total += (units * blocks * self.width * size(r)).next_multiple_of(64);
        }
        let mut parts: Vec<u64> = filled(total / 8, 0)?;
        let parts = Parts(parts.as_mut_ptr().cast::<u8>());
        let place = |k: usize, u: usize, b: usize| {
            let r = &self.reductions[k];
            let i = (u * blocks + b) * self.width;
            let positions = units * blocks * self.width * 8;
            match r.how {
                How::Fold(..) => (parts.get().wrapping_add(starts[k] + i * r.bytes), std::ptr::null_mut()),
                // Positions first: they are aligned whatever the lane.
                How::Arg(_) => (
                    parts.get().wrapping_add(starts[k] + positions + i * r.bytes),
                    parts.get().wrapping_add(starts[k] + i * 8),
                ),
            }
        };
        threads::try_ranges(units * blocks, cost, bases.cancel, &|range| {
            scratch.with(self.memory(), |m| {
                // SAFETY: m has `memory()` bytes. `place(k, u, b)` is a run of `width` entries
                // within those that `total` counted, a different one for each (unit, block), and
                // each (unit, block) belongs to one thread.
                unsafe {
                    let (mut inner, _, acc) = self.start(m, bases);
                    for t in range.clone() {
                        let (u, b) = (t / blocks, t % blocks);
                        self.begin(acc);
                        self.block(&mut inner, acc, u, b);
                        for (k, r) in self.reductions.iter().enumerate() {
                            let (v, p) = place(k, u, b);
                            match r.how {
                                How::Fold(..) => v.copy_from_nonoverlapping(acc.add(r.at), self.width * r.bytes),
                                How::Arg(_) => {
                                    let a = ArgPlaces::of(acc.add(r.at), r.bytes, self.width);
                                    v.copy_from_nonoverlapping(a.run_best, self.width * r.bytes);
                                    p.copy_from_nonoverlapping(a.run_at.cast(), self.width * 8);
                                }
                            }
                        }
                    }
                }
            })
        })?;
        if bases.cancel.load(Ordering::Relaxed) {
            return Ok(());
        }
        scratch.with(self.memory(), |m| {
            // SAFETY: no piece was skipped, as nothing was cancelled and none failed, so that all parts are written; the other threads are done.
            unsafe {
                let (_, mut epilogue, acc) = self.start(m, bases);
                for u in 0..units {
                    self.begin(acc);
                    for b in 0..blocks {
                        for (k, r) in self.reductions.iter().enumerate() {
                            let (v, p) = place(k, u, b);
                            match &r.how {
                                How::Fold(..) => acc.add(r.at).copy_from_nonoverlapping(v, self.width * r.bytes),
                                How::Arg(f) => self.merge(f, r, acc, v, p.cast(), self.unit(u).2),
                            }
                        }
                        self.push(acc, b, blocks);
                    }
                    self.finish(&mut epilogue, acc, u, blocks);
                }
            }
        })
    }
    /// Takes a block's (value, position) for each column into the running best.
    ///
    /// # Safety
    /// `v` and `p` hold `w` entries.
    unsafe fn merge(&self, f: &ArgFolder, r: &Reduction, acc: *mut u8, v: *const u8, p: *const i64, w: usize) {
        // SAFETY: the running places hold `width`; the block's places, LANES entries at least.
        unsafe {
            let a = ArgPlaces::of(acc.add(r.at), r.bytes, self.width);
            for i in 0..w {
                a.begin_block(1);
                a.best.copy_from_nonoverlapping(v.add(i * r.bytes), r.bytes);
                *a.at = 0;
                (f.finish)(a.best, a.at, 1, a.run_best.add(i * r.bytes), a.run_at.add(i), *p.add(i));
            }
        }
    }
}
/// A pointer that threads share. Each uses its own part of the memory.
struct Parts(*mut u8);
// SAFETY: only `split` has one, whose threads write at the places of different (unit, block) pairs.
unsafe impl Sync for Parts {}
impl Parts {
    fn get(&self) -> *mut u8 {
        self.0
    }
}
