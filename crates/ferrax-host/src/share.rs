//! Work in pieces, shared between the calling thread and helpers that wake up in time.
//!
//! Waking a thread takes tens of microseconds, as long as a kernel over a whole cache. So the caller does not wait for helpers: it starts
//! at once with the first piece and proceeds upwards; helpers take pieces from the last one down. A helper that arrives after the last piece was
//! taken finds the gate closed and leaves.
//!
//! ```text
//!     caller    0 1 2 3 . . .          the gate closes once no piece is left,
//!     helper        . . . 7 6          and the caller waits only for helpers that are inside
//! ```
//!
//! INVARIANT: a helper touches the work only between entering and leaving the gate, and `run` returns, or unwinds, only when the gate is
//! closed and no helper is inside.
#![allow(unsafe_code)]
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Thread;

const CLOSED: usize = 1 << (usize::BITS - 1);
/// How often the caller checks whether the last helper has left, before it sleeps: helpers finish the piece that they have started.
const SPINS: usize = 2000;

struct Job {
    /// Valid until `run` ends; the gate guarantees that no helper uses it later.
    work: *const (dyn Fn(usize) + Sync),
    /// The first remaining piece, and the end of the remaining ones.
    left: AtomicU64,
    /// How many helpers are inside, and whether no more may enter.
    gate: AtomicUsize,
    caller: Thread,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}
// SAFETY: `work` is Sync, and only helpers inside the gate use it.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    fn take(&self, first: bool) -> Option<usize> {
        let split = |x: u64| (x >> 32, x & 0xffff_ffff);
        let without = |x: u64| match split(x) {
            (from, to) if from >= to => None,
            (from, to) if first => Some((from + 1) << 32 | to),
            (from, to) => Some(from << 32 | (to - 1)),
        };
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, without).ok()?;
        let (from, to) = split(before);
        Some(if first { from } else { to - 1 } as usize)
    }
    fn do_pieces(&self, first: bool) {
        while let Some(k) = self.take(first) {
            // SAFETY: the caller is here itself, or waits until this helper has left.
            unsafe { (*self.work)(k) }
        }
    }
    /// The loop of a helper.
    fn help(&self) {
        let enter = |inside: usize| (inside & CLOSED == 0).then_some(inside + 1);
        if self.gate.fetch_update(Ordering::Acquire, Ordering::Relaxed, enter).is_err() {
            return;
        }
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.do_pieces(false))) {
            self.left.store(0, Ordering::Relaxed);
            *self.panic.lock().unwrap_or_else(|e| e.into_inner()) = Some(payload);
        }
        if self.gate.fetch_sub(1, Ordering::Release) == CLOSED + 1 {
            self.caller.unpark();
        }
    }
    /// Closes the entrance and waits for the threads inside.
    fn close(&self) {
        self.gate.fetch_or(CLOSED, Ordering::AcqRel);
        for turn in 0.. {
            if self.gate.load(Ordering::Acquire) == CLOSED {
                return;
            }
            if turn < SPINS { std::hint::spin_loop() } else { std::thread::park() }
        }
    }
}

/// Closes the gate however `run` ends.
struct Gate<'a>(&'a Job);
impl Drop for Gate<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Calls `work` with each number below `pieces`, on this thread and on up to `helpers` others;
/// `call` starts the given closure on one of them.
///
/// # Panics
/// With the payload of a panic of `work`, on any thread.
pub fn run(pieces: usize, helpers: usize, call: impl Fn(Box<dyn FnOnce() + Send>), work: &(dyn Fn(usize) + Sync)) {
    let pieces = u32::try_from(pieces).expect("fewer pieces than 2^32");
    // SAFETY: only the lifetime is changed; `Gate` keeps the job from outliving the work while a helper may call it.
    let work = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work) };
    let job = Arc::new(Job {
        work,
        left: AtomicU64::new(pieces as u64),
        gate: AtomicUsize::new(0),
        caller: std::thread::current(),
        panic: Mutex::new(None),
    });
    {
        let gate = Gate(&job);
        for _ in 0..helpers.min(pieces.saturating_sub(1) as usize) {
            let job = job.clone();
            call(Box::new(move || job.help()));
        }
        gate.0.do_pieces(true);
    }
    let panic = job.panic.lock().unwrap_or_else(|e| e.into_inner()).take();
    if let Some(payload) = panic {
        resume_unwind(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    type Help = Box<dyn FnOnce() + Send>;

    /// How often each of `pieces` is done if helpers are separate threads.
    fn counts(pieces: usize, helpers: usize) -> Vec<usize> {
        let done: Vec<AtomicUsize> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
        let work = |k: usize| {
            done[k].fetch_add(1, Ordering::Relaxed);
            std::thread::yield_now();
        };
        run(pieces, helpers, |help| drop(std::thread::spawn(help)), &work);
        done.into_iter().map(AtomicUsize::into_inner).collect()
    }
    #[test]
    fn each_piece_is_done_once() {
        for pieces in [0, 1, 2, 3, 100] {
            for helpers in 0..4 {
                for _ in 0..50 {
                    assert_eq!(counts(pieces, helpers), vec![1; pieces]);
                }
            }
        }
    }
    #[test]
    fn nobody_waits_for_helpers_that_do_not_come_and_who_comes_late_does_nothing() {
        let late: Mutex<Vec<Help>> = Mutex::default();
        let done = AtomicUsize::new(0);
        run(10, 3, |help| late.lock().unwrap().push(help), &|_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.load(Ordering::Relaxed), 10);
        let late = late.into_inner().unwrap();
        assert_eq!(late.len(), 3);
        late.into_iter().for_each(|help| help());
        assert_eq!(done.into_inner(), 10);
    }
    #[test]
    fn helpers_begin_at_the_end() {
        // Two pieces that wait for each other: the caller has the first, and only a helper can have the second.
        let (both, who) = (Barrier::new(2), Mutex::new(vec![]));
        let work = |k: usize| {
            both.wait();
            who.lock().unwrap().push((k, std::thread::current().id()));
        };
        run(2, 1, |help| drop(std::thread::spawn(help)), &work);
        let who = who.into_inner().unwrap();
        let me = std::thread::current().id();
        assert!(who.iter().all(|(k, id)| (*k == 0) == (*id == me)), "{who:?}");
    }
    #[test]
    fn a_panic_reaches_the_caller_and_finds_nobody_inside() {
        for panics in [0, 1] {
            let (both, inside) = (Barrier::new(2), AtomicUsize::new(0));
            let work = |k: usize| {
                inside.fetch_add(1, Ordering::SeqCst);
                both.wait();
                if k == panics {
                    inside.fetch_sub(1, Ordering::SeqCst);
                    panic!("piece {k}");
                }
                std::thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
            };
            let out = catch_unwind(AssertUnwindSafe(|| run(2, 1, |help| drop(std::thread::spawn(help)), &work)));
            assert_eq!(out.unwrap_err().downcast_ref::<String>().unwrap(), &format!("piece {panics}"));
            assert_eq!(inside.into_inner(), 0);
        }
    }
}
