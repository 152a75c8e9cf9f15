//! Speculative inline execution: a run of unknown length starts on the calling thread. Enqueuing a run and waking its caller costs 40 us,
//! more than most loops over few numbers take, and as much as copying a megabyte.
//!
//! A watching thread stops a speculative run that takes long; the run is then enqueued and starts again from the beginning. A program whose
//! speculative runs took long is enqueued at once for some calls, twice as many each time, before it is executed speculatively again.
//!
//! INVARIANT: a speculative run can be repeated: it has no effects, and its inputs are only lent. Once it has called the host it is not
//! stopped any more, so the user's functions are called as often as the program says.
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Speculative runs longer than this should have been enqueued.
const MAX_INLINE: Duration = Duration::from_micros(400);
/// The period of the watching thread, which stops a run that it finds for the second time.
const LOOK: Duration = Duration::from_millis(2);
/// Periods without runs after which the watching thread ends.
const MAX_IDLE: u32 = 50;
/// Speculative runs at one time, on all threads.
const MAX_RUNS: usize = 16;

/// The history of one program's speculative runs.
#[derive(Default)]
pub struct Pace {
    /// It is known to end soon, and is not watched.
    ends: bool,
    /// Calls that are still to be enqueued at once.
    skip: AtomicU32,
    /// Consecutive long runs.
    long: AtomicU32,
}
impl Pace {
    /// `ends`: whether the program is known to end within milliseconds.
    pub fn new(ends: bool) -> Pace {
        Pace { ends, ..Pace::default() }
    }
    /// Runs `f` speculatively, given the flag that stops it. `None` if it was stopped, or should be enqueued.
    pub fn run_inline<T>(&self, f: impl FnOnce(&AtomicBool) -> T) -> Option<T> {
        let skip = self.skip.load(Ordering::Relaxed);
        if skip > 0 {
            self.skip.store(skip - 1, Ordering::Relaxed);
            return None;
        }
        let slot = if self.ends { None } else { Some(Slot::take()?) };
        let begun = Instant::now();
        let out = f(slot.as_ref().map_or(&UNWATCHED, |s| &s.stop));
        let took = begun.elapsed();
        let stopped = slot.is_some_and(|s| s.fate.load(Ordering::Relaxed) == STOPPED);
        if took <= MAX_INLINE {
            self.long.store(0, Ordering::Relaxed);
        } else {
            let times = self.long.fetch_add(1, Ordering::Relaxed).min(10);
            self.skip.store(2 << times, Ordering::Relaxed);
        }
        (!stopped).then_some(out)
    }
}

/// The entry of a speculative run for the watching thread.
struct Slot {
    /// Odd while a run occupies the slot; grows by two with each run.
    count: AtomicU64,
    fate: AtomicU8,
    stop: AtomicBool,
}
/// The fate of a run: the watching thread stops it, or the run itself decides to stay.
const OPEN: u8 = 0;
const STOPPED: u8 = 1;
const KEPT: u8 = 2;

thread_local! {
    /// The slot of the speculative run that this thread executes.
    static RUNNING: Cell<Option<&'static Slot>> = const { Cell::new(None) };
}
/// Prevents the calling thread's speculative run, if there is one, from being stopped; false if it was stopped already.
pub fn keep() -> bool {
    let Some(slot) = RUNNING.get() else { return true };
    slot.fate.compare_exchange(OPEN, KEPT, Ordering::AcqRel, Ordering::Acquire).map_or_else(|now| now == KEPT, |_| true)
}
static SLOTS: [Slot; MAX_RUNS] =
    [const { Slot { count: AtomicU64::new(0), fate: AtomicU8::new(OPEN), stop: AtomicBool::new(false) } }; MAX_RUNS];
/// The flag of runs that are not watched.
static UNWATCHED: AtomicBool = AtomicBool::new(false);
static WATCHED: AtomicBool = AtomicBool::new(false);

/// An occupied slot, and the one that the thread occupied before.
struct OccupiedSlot(&'static Slot, Option<&'static Slot>);
impl std::ops::Deref for OccupiedSlot {
    type Target = Slot;
    fn deref(&self) -> &Slot {
        self.0
    }
}
impl Drop for OccupiedSlot {
    fn drop(&mut self) {
        RUNNING.set(self.1);
        self.0.count.fetch_add(1, Ordering::Release);
    }
}
impl Slot {
    fn take() -> Option<OccupiedSlot> {
        let free = |p: &&Slot| {
            let now = p.count.load(Ordering::Relaxed);
            now.is_multiple_of(2) && p.count.compare_exchange(now, now + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        let slot = SLOTS.iter().find(free)?;
        let occupied = OccupiedSlot(slot, RUNNING.replace(Some(slot)));
        slot.stop.store(false, Ordering::Release);
        slot.fate.store(OPEN, Ordering::Release);
        (WATCHED.load(Ordering::SeqCst) || watch()).then_some(occupied)
    }
}

/// Starts the watching thread if there is none; false if the system gives no thread.
fn watch() -> bool {
    if WATCHED.swap(true, Ordering::AcqRel) {
        return true;
    }
    let spawned = std::thread::Builder::new().name("ferrax-watch".into()).spawn(look).is_ok();
    if !spawned {
        WATCHED.store(false, Ordering::Release);
    }
    spawned
}
fn look() {
    let mut seen = [0; MAX_RUNS];
    let mut idle = 0;
    loop {
        std::thread::sleep(LOOK);
        let mut any = false;
        for (p, seen) in SLOTS.iter().zip(&mut seen) {
            let now = p.count.load(Ordering::Acquire);
            any |= now != *seen;
            if now % 2 == 1 && now == *seen {
                any = true;
                // a run that takes the slot right now is repeated without need
                let open = p.fate.compare_exchange(OPEN, STOPPED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
                p.stop.fetch_or(open, Ordering::AcqRel);
            }
            *seen = now;
        }
        idle = if any { 0 } else { idle + 1 };
        if idle < MAX_IDLE {
            continue;
        }
        WATCHED.store(false, Ordering::SeqCst);
        // a run that began after the last look may have found the thread still there
        let begun = SLOTS.iter().any(|p| p.count.load(Ordering::SeqCst) % 2 == 1);
        if !begun || WATCHED.swap(true, Ordering::AcqRel) {
            return;
        }
        idle = 0;
    }
}
/// In a forked child only the forking thread exists: there is no watching thread, and other threads' runs are gone.
pub fn in_child() {
    WATCHED.store(false, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_stopped_and_the_next_calls_are_enqueued() {
        let pace = Pace::default();
        let endless = |stop: &AtomicBool| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        assert_eq!(pace.run_inline(endless), None);
        for _ in 0..2 {
            assert_eq!(pace.run_inline(|_| unreachable!("it is enqueued")), None::<()>);
        }
        assert_eq!(pace.run_inline(endless), None);
        for _ in 0..4 {
            assert_eq!(pace.run_inline(|_| unreachable!("and for more calls after the second")), None::<()>);
        }
        assert_eq!(pace.run_inline(|_| 3), Some(3));
        assert_eq!(pace.run_inline(|_| 4), Some(4));
    }

    #[test]
    fn a_run_that_was_kept_is_not_stopped() {
        let pace = Pace::default();
        let slow = |stop: &AtomicBool| {
            assert!(keep() && keep());
            std::thread::sleep(5 * LOOK);
            !stop.load(Ordering::Relaxed)
        };
        assert_eq!(pace.run_inline(slow), Some(true));
        let late = |stop: &AtomicBool| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            assert!(!keep(), "it is over");
        };
        assert_eq!(Pace::default().run_inline(late), None);
        assert!(keep(), "in no speculative run");
    }

    #[test]
    fn there_are_as_many_runs_at_one_time_as_slots() {
        fn nested(depth: usize) -> usize {
            Pace::default().run_inline(|_| nested(depth + 1)).unwrap_or(depth)
        }
        assert!(nested(0) <= MAX_RUNS);
    }
}
