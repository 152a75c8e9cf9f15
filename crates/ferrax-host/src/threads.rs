//! The thread pool: built when first needed, rebuilt in a forked child, absent with one thread.
//!
//! INVARIANT: the number of threads changes no bits, only which thread computes which tiles.
#![allow(unsafe_code)]
use crate::share;
use crate::standby::Standby;
use ferrax_kernel::{Error, Res};
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

static WANTED: AtomicUsize = AtomicUsize::new(0);
/// Threads of the pool that have helped a moment ago.
static STANDBY: Standby = Standby::new();
static POOL: Mutex<Option<(u32, usize, Arc<rayon::ThreadPool>)>> = Mutex::new(None);

/// Runs that are under way. Each has a thread, so this many fewer are left to help: none if there are as many devices as cores.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// A run that is under way, until it is dropped.
pub struct Running(());
impl Running {
    pub fn enter() -> Running {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Running(())
    }
}
impl Drop for Running {
    fn drop(&mut self) {
        // a forked child begins at 0, whatever its parent was doing
        let _ = RUNNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    }
}
fn default_threads() -> usize {
    std::env::var("FERRAX_NUM_THREADS")
        .ok()
        .and_then(|s| s.trim().parse().ok())
        .filter(|n| *n > 0)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Threads that a large step is spread over: [`set_num_threads`], else `FERRAX_NUM_THREADS`, else one for each core.
pub fn num_threads() -> usize {
    match WANTED.load(Ordering::Relaxed) {
        0 => {
            let n = default_threads();
            let _ = WANTED.compare_exchange(0, n, Ordering::Relaxed, Ordering::Relaxed);
            n
        }
        n => n,
    }
}
/// Sets how many threads later runs use; 0 means the default.
pub fn set_num_threads(n: usize) {
    WANTED.store(if n == 0 { default_threads() } else { n }, Ordering::Relaxed);
}

/// Takes the lock of the pool, to be held over a fork.
pub fn freeze() -> impl std::any::Any {
    POOL.lock().unwrap_or_else(|e| e.into_inner())
}

/// The pool of this process, if there is more than one thread.
pub fn pool() -> Option<Arc<rayon::ThreadPool>> {
    let n = num_threads();
    if n <= 1 {
        return None;
    }
    let pid = std::process::id();
    let mut slot = POOL.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((p, k, pool)) = &*slot
        && *p == pid
        && *k == n
    {
        return Some(pool.clone());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n).thread_name(|k| format!("ferrax-{k}")).build().ok()?;
    let pool = Arc::new(pool);
    // The threads of a parent process do not exist in its child: its pool must not be waited for.
    if let Some((p, _, old)) = slot.replace((pid, n, pool.clone()))
        && p != pid
    {
        std::mem::forget(old);
        STANDBY.clear();
        RUNNING.store(0, Ordering::Relaxed);
    }
    Some(pool)
}

/// The choice of threads for a piece of work. There is one per process, as threads are shared.
pub struct ThreadTuning {
    /// Estimated nanoseconds of work below which one thread does it.
    pub min_nanos: f64,
    /// Nanoseconds of a piece: at least, and at most, so that no run takes longer to notice that it was cancelled.
    pub min_piece_nanos: f64,
    pub max_piece_nanos: f64,
    /// Measured nanoseconds from which threads always pay and are not measured again; and below
    /// which they never do.
    pub min_shared_nanos: u32,
    pub max_alone_nanos: u32,
    /// One of so many runs measures the other choice.
    pub runs_of_try: u32,
    /// Nanoseconds of work on one thread after which a sleeping thread is woken; and of the
    /// remaining work of a run that was not measured before.
    pub min_waking_nanos: u64,
    pub min_waking_rest_nanos: u128,
}
impl ThreadTuning {
    pub const DEFAULT: ThreadTuning = ThreadTuning {
        min_nanos: 8_000.0,
        min_piece_nanos: 3_000.0,
        max_piece_nanos: 10e6,
        min_shared_nanos: 500_000,
        max_alone_nanos: 3_000,
        runs_of_try: 32,
        min_waking_nanos: 30_000,
        min_waking_rest_nanos: 25_000,
    };
}

/// The thresholds: one for the process, as threads are.
const TUNING: ThreadTuning = ThreadTuning::DEFAULT;

/// The time of a piece of work in nanoseconds: an estimate first, then measurements on one thread,
/// and with threads that were awake. Kernels with equal estimates differ tenfold, and data in one
/// core's cache may cost more to fetch than to process there.
pub struct Cost {
    pub estimate: f64,
    /// 0 until it is known.
    alone: Moving,
    shared: Moving,
    runs: AtomicU32,
}
/// A mean over the last runs that decreases at once: a longer time was disturbed, or will be
/// measured again.
struct Moving(AtomicU32);
impl Moving {
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
    fn took(&self, nanos: u128) {
        let now = u32::try_from(nanos).unwrap_or(u32::MAX).max(1);
        let old = self.get();
        self.0.store(if old == 0 || now < old { now } else { old + (now - old) / 8 }, Ordering::Relaxed);
    }
}
/// The threads that do a piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Alone,
    Shared,
    /// Decided by the time of its first part.
    Unknown,
}
impl Cost {
    pub fn of(estimate: f64) -> Cost {
        let none = || Moving(AtomicU32::new(0));
        Cost { estimate, alone: none(), shared: none(), runs: AtomicU32::new(0) }
    }
    /// `awake`: whether a thread that is awake can be called.
    fn way(&self, awake: bool) -> Way {
        const TRIES: u32 = TUNING.runs_of_try;
        let (alone, shared) = (self.alone.get(), self.shared.get());
        match (alone, shared) {
            (0, _) if self.estimate >= TUNING.min_shared_nanos as f64 => Way::Shared,
            (0, _) => Way::Unknown,
            _ if alone >= TUNING.min_shared_nanos => Way::Shared,
            _ if alone < TUNING.max_alone_nanos => Way::Alone,
            _ if !awake => {
                if MISSED.is_due(alone) {
                    Way::Shared
                } else {
                    Way::Alone
                }
            }
            (_, 0) => Way::Shared,
            _ => {
                let tries = self.runs.fetch_add(1, Ordering::Relaxed) % TRIES == TRIES - 1;
                if (shared < alone) != tries { Way::Shared } else { Way::Alone }
            }
        }
    }
}

/// Work that was done alone since a helper was last awake, although sharing might have paid: waking a thread takes long, and pays
/// only for much work, or for work that recurs.
struct Missed {
    nanos: AtomicU64,
    last: AtomicU64,
}
static MISSED: Missed = Missed { nanos: AtomicU64::new(0), last: AtomicU64::new(0) };
impl Missed {
    fn is_due(&self, nanos: u32) -> bool {
        const WAKING: u64 = TUNING.min_waking_nanos;
        static SINCE: OnceBox<Instant> = OnceBox::new();
        let now = SINCE.get_or_init(|| Box::new(Instant::now())).elapsed().as_nanos() as u64;
        let again = now.saturating_sub(self.last.swap(now, Ordering::Relaxed)) < 4 * WAKING;
        let before = if again { self.nanos.load(Ordering::Relaxed) } else { 0 };
        let due = before + nanos as u64 >= WAKING;
        self.nanos.store(if due { 0 } else { before + nanos as u64 }, Ordering::Relaxed);
        due
    }
}

/// Runs `work(range)` over `0..n`, on this thread if there is no cost, else cut into pieces, in
/// parallel where that pays. It polls `cancel` between pieces and stops once it is set.
pub fn for_ranges(n: usize, cost: Option<&Cost>, cancel: &AtomicBool, work: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
    let t = &TUNING;
    let Some(cost) = cost.filter(|c| c.estimate >= t.min_nanos && n >= 2) else { return work(0..n) };
    let nanos = match cost.alone.get() {
        0 => cost.estimate,
        taken => taken as f64,
    };
    let threads = num_threads();
    let pieces =
        n.min((threads * 4).max((nanos / t.max_piece_nanos) as usize)).min((nanos / t.min_piece_nanos) as usize).max(1);
    let at = |k: usize| (n as u128 * k as u128 / pieces as u128) as usize;
    let piece = |k: usize| {
        if !cancel.load(Ordering::Relaxed) {
            work(at(k)..at(k + 1))
        }
    };
    let helpers = threads.saturating_sub(RUNNING.load(Ordering::Relaxed).max(1));
    let Some(pool) = pool().filter(|_| helpers > 0) else {
        return if nanos > t.max_piece_nanos { (0..pieces).for_each(piece) } else { work(0..n) };
    };
    let (awake, begun) = (STANDBY.has_parked(), Instant::now());
    let share = |from: usize| {
        share::run(pieces - from, helpers, |help| STANDBY.call(help, |stay| pool.spawn(stay)), &|k| piece(from + k))
    };
    match cost.way(awake) {
        Way::Alone => {
            work(0..n);
            cost.alone.took(begun.elapsed().as_nanos());
        }
        Way::Shared => {
            share(0);
            if awake {
                cost.shared.took(begun.elapsed().as_nanos());
            }
        }
        Way::Unknown => {
            piece(0);
            let first = begun.elapsed().as_nanos();
            cost.alone.took(first * pieces as u128);
            // The time of the first piece predicts that of the rest.
            match first * (pieces - 1) as u128 >= t.min_waking_rest_nanos {
                true => share(1),
                false => (1..pieces).for_each(piece),
            }
        }
    }
}
/// [`for_ranges`] of work that may fail. The first error is returned; the other pieces run nevertheless.
pub fn try_ranges(
    n: usize,
    cost: Option<&Cost>,
    cancel: &AtomicBool,
    work: &(dyn Fn(std::ops::Range<usize>) -> Res<()> + Sync),
) -> Res<()> {
    let failed: OnceLock<Error> = OnceLock::new();
    for_ranges(n, cost, cancel, &|r| {
        if let Err(e) = work(r) {
            let _ = failed.set(e);
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}

/// A pointer that threads share; each touches its own elements.
#[derive(Clone, Copy)]
pub struct SharedPtr(pub *mut u8);
// SAFETY: a pointer is only a number; code that dereferences it proves that no two threads write one element.
unsafe impl Send for SharedPtr {}
// SAFETY: as above.
unsafe impl Sync for SharedPtr {}
impl SharedPtr {
    pub fn get(&self) -> *mut u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(alone: u32, shared: u32) -> Cost {
        let c = Cost::of(100_000.0);
        c.alone.0.store(alone, Ordering::Relaxed);
        c.shared.0.store(shared, Ordering::Relaxed);
        c
    }
    #[test]
    fn the_quicker_way_is_taken_and_the_other_tried_now_and_then() {
        for (alone, shared, quicker, other) in
            [(20_000, 12_000, Way::Shared, Way::Alone), (9_000, 12_000, Way::Alone, Way::Shared)]
        {
            let c = known(alone, shared);
            let ways: Vec<Way> = (0..320).map(|_| c.way(true)).collect();
            assert_eq!(ways.iter().filter(|w| **w == other).count(), 10);
            assert_eq!(ways.iter().filter(|w| **w == quicker).count(), 310);
        }
    }
    #[test]
    fn what_is_not_known_is_tried() {
        assert_eq!(known(0, 0).way(true), Way::Unknown);
        assert_eq!(known(20_000, 0).way(true), Way::Shared);
        assert_eq!(known(1_000, 0).way(true), Way::Alone);
        assert_eq!(known(1_000_000, 0).way(false), Way::Shared);
        assert_eq!(Cost::of(1e6).way(false), Way::Shared);
    }
    #[test]
    fn work_that_comes_again_and_again_wakes_somebody() {
        let missed = Missed { nanos: AtomicU64::new(0), last: AtomicU64::new(0) };
        let due = (0..10).filter(|_| missed.is_due(10_000)).count();
        assert_eq!(due, 3);
        assert!(missed.is_due(40_000));
    }
}
