//! Threads that have just helped, and spin for more work before they go back to sleep.
//!
//! Kernels come one after the other, within a run and from run to run, and waking a thread takes longer than most of them. So a thread that has helped
//! parks for [`STAY`] in a slot, where a store assigns it a task:
//!
//! ```text
//!     IDLE --parks--> PARKED --is chosen--> SIGNALLED --task stored--> ASSIGNED --takes the task--> IDLE
//!                       `--- times out ------------------------------------------------------------^
//! ```
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread stays awake with nothing to do.
const STAY: Duration = Duration::from_micros(100);
/// Threads that may wait at one time.
const MAX_PARKED: usize = 64;

pub type HelperTask = Box<dyn FnOnce() + Send>;

const IDLE: u8 = 0;
const PARKED: u8 = 1;
const SIGNALLED: u8 = 2;
const ASSIGNED: u8 = 3;

/// On a separate cache line, because the thread that waits in it polls it.
#[repr(align(128))]
struct Slot {
    state: AtomicU8,
    task: Mutex<Option<HelperTask>>,
}
impl Slot {
    fn changes(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}
pub struct Standby {
    slots: [Slot; MAX_PARKED],
    /// About how many threads wait in them.
    waiting: AtomicUsize,
}
impl Standby {
    pub const fn new() -> Standby {
        Standby {
            slots: [const { Slot { state: AtomicU8::new(IDLE), task: Mutex::new(None) } }; MAX_PARKED],
            waiting: AtomicUsize::new(0),
        }
    }
    /// Whether a thread waits.
    pub fn has_parked(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
    /// Gives a task to a thread that waits, or to one that `wake` wakes, which stays afterwards.
    pub fn call(&'static self, task: HelperTask, wake: impl FnOnce(HelperTask)) {
        let Some(slot) = self.slots.iter().find(|s| s.changes(PARKED, SIGNALLED)) else {
            return wake(Box::new(move || {
                task();
                self.stay();
            }));
        };
        *slot.task.lock().unwrap_or_else(|e| e.into_inner()) = Some(task);
        slot.state.store(ASSIGNED, Ordering::Release);
    }
    /// Runs tasks until there has been no task for a while.
    fn stay(&self) {
        while let Some(task) = self.wait() {
            task();
        }
    }
    fn wait(&self) -> Option<HelperTask> {
        // A lock that is taken belongs to a thread that a fork has lost: an idle slot has no user.
        let slot = self.slots.iter().find(|s| s.task.try_lock().is_ok() && s.changes(IDLE, PARKED))?;
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let task = self.wait_in(slot);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        task
    }
    fn wait_in(&self, slot: &Slot) -> Option<HelperTask> {
        let since = Instant::now();
        loop {
            for _ in 0..32 {
                if slot.state.load(Ordering::Acquire) == ASSIGNED {
                    let task = slot.task.lock().unwrap_or_else(|e| e.into_inner()).take();
                    slot.state.store(IDLE, Ordering::Release);
                    return task;
                }
                std::hint::spin_loop();
            }
            if since.elapsed() > STAY && slot.changes(PARKED, IDLE) {
                return None;
            }
            rayon::yield_now(); // the pool may have work of its own
        }
    }
    /// Called in a forked child, which has no waiting threads.
    pub fn clear(&self) {
        self.waiting.store(0, Ordering::Relaxed);
        for s in &self.slots {
            s.state.store(IDLE, Ordering::Release);
        }
    }
}
