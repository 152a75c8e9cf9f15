//! Runs whose length is not known well, tried on the calling thread: to hand one over and to be woken again costs 40 microseconds, which is more than most
//! loops over few numbers take, and than a megabyte takes to move.
//!
//! A trial that takes long is stopped by a watching thread and begun anew where runs are handed over; programs whose trials took long are
//! tried again after so many calls, twice as many each time.
//!
//! INVARIANT: what is tried can be begun anew: it has no effects, and its inputs are only lent. A run that has called the host is not stopped any
//! more, so that functions of the user's are called as often as the program says.
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A trial of more than this was long: its caller had better gone on.
const BRIEF: Duration = Duration::from_micros(400);
/// How often the watching thread looks: a run that it has seen before is stopped.
const LOOK: Duration = Duration::from_millis(2);
/// After so many looks at nothing it ends.
const IDLE: u32 = 50;
/// Trials at one time, of all threads.
const MOST: usize = 16;

/// What the trials of one program have shown.
#[derive(Default)]
pub struct Pace {
    /// It ends soon enough by itself: nobody need watch.
    ends: bool,
    /// Calls for which it is not tried.
    skip: AtomicU32,
    /// Long trials, one after the other.
    long: AtomicU32,
}
impl Pace {
    /// Of a program that ends after some milliseconds at most, or may not.
    pub fn new(ends: bool) -> Pace {
        Pace { ends, ..Pace::default() }
    }
    /// Runs `f` as a trial, given the flag that stops it. `None` where it is not tried or was stopped.
    pub fn tried<T>(&self, f: impl FnOnce(&AtomicBool) -> T) -> Option<T> {
        let skip = self.skip.load(Ordering::Relaxed);
        if skip > 0 {
            self.skip.store(skip - 1, Ordering::Relaxed);
            return None;
        }
        let seat = if self.ends { None } else { Some(Seat::take()?) };
        let begun = Instant::now();
        let out = f(seat.as_ref().map_or(&UNWATCHED, |s| &s.stop));
        let took = begun.elapsed();
        let stopped = seat.is_some_and(|s| s.fate.load(Ordering::Relaxed) == STOPPED);
        if took <= BRIEF {
            self.long.store(0, Ordering::Relaxed);
        } else {
            let times = self.long.fetch_add(1, Ordering::Relaxed).min(10);
            self.skip.store(2 << times, Ordering::Relaxed);
        }
        (!stopped).then_some(out)
    }
}

/// Where a trial is seen by the watching thread.
struct Seat {
    /// Odd while a trial is here; grows with each.
    trial: AtomicU64,
    fate: AtomicU8,
    stop: AtomicBool,
}
/// What has become of a trial: one of the two that may end it comes first.
const OPEN: u8 = 0;
const STOPPED: u8 = 1;
const KEPT: u8 = 2;

thread_local! {
    /// The trial that this thread is in.
    static TRIED: Cell<Option<&'static Seat>> = const { Cell::new(None) };
}
/// Keeps the trial that the calling thread is in, if it is in one, from being stopped; false if it has been.
pub fn keep() -> bool {
    let Some(seat) = TRIED.get() else { return true };
    seat.fate.compare_exchange(OPEN, KEPT, Ordering::AcqRel, Ordering::Acquire).map_or_else(|now| now == KEPT, |_| true)
}
static SEATS: [Seat; MOST] =
    [const { Seat { trial: AtomicU64::new(0), fate: AtomicU8::new(OPEN), stop: AtomicBool::new(false) } }; MOST];
/// The flag of trials that nobody watches.
static UNWATCHED: AtomicBool = AtomicBool::new(false);
static WATCHED: AtomicBool = AtomicBool::new(false);

/// A trial in its seat, and the one that the thread was in before.
struct Seated(&'static Seat, Option<&'static Seat>);
impl std::ops::Deref for Seated {
    type Target = Seat;
    fn deref(&self) -> &Seat {
        self.0
    }
}
impl Drop for Seated {
    fn drop(&mut self) {
        TRIED.set(self.1);
        self.0.trial.fetch_add(1, Ordering::Release);
    }
}
impl Seat {
    fn take() -> Option<Seated> {
        let free = |p: &&Seat| {
            let now = p.trial.load(Ordering::Relaxed);
            now.is_multiple_of(2) && p.trial.compare_exchange(now, now + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        let seat = SEATS.iter().find(free)?;
        let seated = Seated(seat, TRIED.replace(Some(seat)));
        seat.stop.store(false, Ordering::Release);
        seat.fate.store(OPEN, Ordering::Release);
        (WATCHED.load(Ordering::SeqCst) || watch()).then_some(seated)
    }
}

/// Sees to it that somebody watches; false where there is no thread for it.
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
    let mut seen = [0; MOST];
    let mut idle = 0;
    loop {
        std::thread::sleep(LOOK);
        let mut any = false;
        for (p, seen) in SEATS.iter().zip(&mut seen) {
            let now = p.trial.load(Ordering::Acquire);
            any |= now != *seen;
            if now % 2 == 1 && now == *seen {
                any = true;
                // a trial that takes the seat right now is begun anew without need
                let open = p.fate.compare_exchange(OPEN, STOPPED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
                p.stop.fetch_or(open, Ordering::AcqRel);
            }
            *seen = now;
        }
        idle = if any { 0 } else { idle + 1 };
        if idle < IDLE {
            continue;
        }
        WATCHED.store(false, Ordering::SeqCst);
        // who began after the last look may have found somebody watching
        let begun = SEATS.iter().any(|p| p.trial.load(Ordering::SeqCst) % 2 == 1);
        if !begun || WATCHED.swap(true, Ordering::AcqRel) {
            return;
        }
        idle = 0;
    }
}
/// In a forked child, whose only thread is the one that forked: nobody watches, and what other threads tried is over.
pub fn in_child() {
    WATCHED.store(false, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_trial_is_stopped_and_not_repeated_at_once() {
        let pace = Pace::default();
        let endless = |stop: &AtomicBool| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        assert_eq!(pace.tried(endless), None);
        for _ in 0..2 {
            assert_eq!(pace.tried(|_| unreachable!("it is not tried yet")), None::<()>);
        }
        assert_eq!(pace.tried(endless), None);
        for _ in 0..4 {
            assert_eq!(pace.tried(|_| unreachable!("nor for longer after the second")), None::<()>);
        }
        assert_eq!(pace.tried(|_| 3), Some(3));
        assert_eq!(pace.tried(|_| 4), Some(4));
    }

    #[test]
    fn a_trial_that_was_kept_is_not_stopped() {
        let pace = Pace::default();
        let slow = |stop: &AtomicBool| {
            assert!(keep() && keep());
            std::thread::sleep(5 * LOOK);
            !stop.load(Ordering::Relaxed)
        };
        assert_eq!(pace.tried(slow), Some(true));
        let late = |stop: &AtomicBool| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            assert!(!keep(), "it is over");
        };
        assert_eq!(Pace::default().tried(late), None);
        assert!(keep(), "in no trial");
    }

    #[test]
    fn there_are_as_many_trials_at_one_time_as_seats() {
        fn nested(depth: usize) -> usize {
            Pace::default().tried(|_| nested(depth + 1)).unwrap_or(depth)
        }
        assert!(nested(0) <= MOST);
    }
}
