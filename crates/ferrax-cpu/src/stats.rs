//! Counters for tests of growth: launches, and memory taken.
//!
//! INVARIANT: they count the work of the calling thread; work on a pool thread is counted for that thread.
use crate::memory;
use std::cell::Cell;

thread_local! {
    static LAUNCHES: Cell<u64> = const { Cell::new(0) };
}

/// Totals of this thread so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Kernels and routines run.
    pub launches: u64,
    /// Blocks of memory taken, from the pool or the system.
    pub blocks: u64,
}
pub fn stats() -> Stats {
    Stats { launches: LAUNCHES.get(), blocks: memory::blocks_taken() }
}
pub(crate) fn add_launches(n: u64) {
    LAUNCHES.set(LAUNCHES.get() + n);
}
