//! The thread pool: built when first needed, rebuilt in a forked child, absent with one thread.
//!
//! INVARIANT: the number of threads changes no bits, only which thread computes which tiles.
use crate::share;
use crate::standby::Standby;
use ferrax_kernel::{Error, Res};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

static WANTED: AtomicUsize = AtomicUsize::new(0);
/// Threads of the pool that have helped a moment ago.
static STANDBY: Standby = Standby::new();
static POOL: Mutex<Option<(u32, usize, Arc<rayon::ThreadPool>)>> = Mutex::new(None);

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
    }
    Some(pool)
}

/// Work below this many estimated nanoseconds stays on one thread.
pub const WORTH: f64 = 8_000.0;

/// Work above this many estimated nanoseconds is shared at once. Below, the first piece tells what it really takes: kernels from the cache that
/// have become native code take a tenth of others that are estimated alike.
const SURELY_WORTH: f64 = 150_000.0;
/// What the rest must take, as the first piece says, before another thread is woken for it, or called that is awake.
const WAKING: f64 = 25_000.0;
const CALLING: f64 = 3_000.0;

/// Runs `work(range)` over `0..n` cut into pieces, in parallel where that is worth it. `nanos` is an estimate of the whole. Between pieces it
/// looks at `cancel`: once that is set, what is left is left.
pub fn for_ranges(n: usize, nanos: f64, cancel: &AtomicBool, work: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
    const PIECE: f64 = 2_000.0;
    /// No piece takes longer than this, roughly, so that no run is deaf for longer.
    const DEAF: f64 = 10e6;
    if nanos < WORTH || n < 2 {
        return work(0..n);
    }
    let threads = num_threads();
    let pieces = n.min((threads * 4).max((nanos / DEAF) as usize)).min((nanos / PIECE) as usize).max(1);
    let at = |k: usize| (n as u128 * k as u128 / pieces as u128) as usize;
    let piece = |k: usize| {
        if !cancel.load(Ordering::Relaxed) {
            work(at(k)..at(k + 1))
        }
    };
    match pool().filter(|_| pieces > 1) {
        Some(pool) => {
            let awake = !STANDBY.is_empty();
            let first = usize::from(nanos < SURELY_WORTH && !(awake && pieces < 4));
            let begun = Instant::now();
            (0..first).for_each(&piece);
            let rest = begun.elapsed().as_nanos() as f64 * (pieces - 1) as f64;
            let least = if awake { CALLING } else { WAKING };
            let helpers = if first > 0 && rest < least { 0 } else { threads - 1 };
            share::run(pieces - first, helpers, |help| STANDBY.call(help, |stay| pool.spawn(stay)), &|k| {
                piece(first + k)
            });
        }
        None if nanos > DEAF => (0..pieces).for_each(piece),
        None => work(0..n),
    }
}
/// [`for_ranges`] of work that may fail. The first error is given; the other pieces run all the same.
pub fn try_ranges(
    n: usize,
    nanos: f64,
    cancel: &AtomicBool,
    work: &(dyn Fn(std::ops::Range<usize>) -> Res<()> + Sync),
) -> Res<()> {
    let failed: OnceLock<Error> = OnceLock::new();
    for_ranges(n, nanos, cancel, &|r| {
        if let Err(e) = work(r) {
            let _ = failed.set(e);
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}
