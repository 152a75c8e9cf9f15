//! The thread pool: built when first needed, rebuilt in a forked child, absent with one thread.
//!
//! INVARIANT: the number of threads changes no bits, only which thread computes which tiles.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

static WANTED: AtomicUsize = AtomicUsize::new(0);
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
    }
    Some(pool)
}

/// Work below this many estimated nanoseconds stays on one thread.
pub const WORTH: f64 = 30_000.0;

/// Runs `work(range)` over `0..n` cut into pieces, in parallel where that is worth it. `nanos` is an estimate of the whole.
pub fn for_ranges(n: usize, nanos: f64, work: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
    const PIECE: f64 = 10_000.0;
    let threads = if nanos < WORTH || n < 2 { 1 } else { num_threads() };
    if threads <= 1 {
        return work(0..n);
    }
    let pieces = n.min(threads * 4).min((nanos / PIECE) as usize).max(1);
    let Some(pool) = pool().filter(|_| pieces > 1) else { return work(0..n) };
    let piece = |k: usize| (n as u128 * k as u128 / pieces as u128) as usize;
    let run = || {
        use rayon::prelude::*;
        (0..pieces).into_par_iter().with_max_len(1).for_each(|k| work(piece(k)..piece(k + 1)));
    };
    pool.install(run)
}
