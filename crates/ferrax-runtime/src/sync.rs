//! Threads and locks: the standard library's, or, under the feature `loom`, those of a model checker that tries every order.
//!
//! INVARIANT: time affects only how soon a wait rechecks its condition. The model has no clock: there a wait rechecks whenever it is woken.
#[cfg(not(feature = "loom"))]
mod imp {
    pub use std::sync::{Condvar, Mutex, MutexGuard};
    pub use std::thread_local;
    use std::time::{Duration, Instant};

    /// When a wait last looked up.
    pub struct Clock(Instant);
    impl Clock {
        const TICK: Duration = Duration::from_millis(50);
        pub fn start() -> Clock {
            Clock(Instant::now())
        }
        /// Whether it is time to look up.
        pub fn due(&mut self) -> bool {
            let due = self.0.elapsed() >= Clock::TICK;
            if due {
                self.0 = Instant::now();
            }
            due
        }
        /// Waits for a change, or until it is time to look up.
        pub fn wait<'a, T>(&mut self, c: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            let left = Clock::TICK.saturating_sub(self.0.elapsed());
            c.wait_timeout(guard, left).unwrap_or_else(|e| e.into_inner()).0
        }
    }
    /// The result of `f`; `None` if it panics.
    pub fn caught<T>(f: impl FnOnce() -> T) -> Option<T> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).ok()
    }
    pub fn spawn(name: String, f: impl FnOnce() + Send + 'static) -> bool {
        std::thread::Builder::new().name(name).spawn(f).is_ok()
    }
}

#[cfg(feature = "loom")]
mod imp {
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
    pub use loom::thread_local;

    /// Looks up once before each sleep.
    pub struct Clock(bool);
    impl Clock {
        pub fn start() -> Clock {
            Clock(false)
        }
        pub fn due(&mut self) -> bool {
            !std::mem::replace(&mut self.0, true)
        }
        pub fn wait<'a, T>(&mut self, c: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0 = false;
            c.wait(guard).unwrap_or_else(|e| e.into_inner())
        }
    }
    /// The model's own panics are its findings.
    pub fn caught<T>(f: impl FnOnce() -> T) -> Option<T> {
        Some(f())
    }
    pub fn spawn(_: String, f: impl FnOnce() + Send + 'static) -> bool {
        loom::thread::spawn(f);
        true
    }
}

pub(crate) use imp::*;
