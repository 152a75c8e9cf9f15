//! Counters that tests of growth look at: what ran, and what memory was taken.
use crate::memory;
use std::sync::atomic::{AtomicU64, Ordering};

static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// Totals of the process so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Kernels and routines run.
    pub launches: u64,
    /// Blocks of memory taken, from the pool or the system.
    pub blocks: u64,
}
pub fn stats() -> Stats {
    Stats { launches: LAUNCHES.load(Ordering::Relaxed), blocks: memory::blocks_taken() }
}
pub(crate) fn add_launches(n: u64) {
    LAUNCHES.fetch_add(n, Ordering::Relaxed);
}
