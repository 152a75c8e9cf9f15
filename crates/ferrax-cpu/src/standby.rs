//! Threads that have just helped, and look out for more to do before they go back to sleep.
//!
//! Kernels come one after the other, within a run and from run to run, and to wake a thread takes longer than most of them. So who has helped stays
//! for [`STAY`], in a seat where it can be called by a store:
//!
//! ```text
//!     EMPTY --sits down--> WAITING --is called--> CALLED --is told--> TOLD --leaves with its errand--> EMPTY
//!                             `--- gives up ---------------------------------------------------------^
//! ```
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread stays awake with nothing to do.
const STAY: Duration = Duration::from_micros(100);
/// Threads that may wait at one time.
const SEATS: usize = 64;

pub type Errand = Box<dyn FnOnce() + Send>;

const EMPTY: u8 = 0;
const WAITING: u8 = 1;
const CALLED: u8 = 2;
const TOLD: u8 = 3;

/// On a line of its own: who waits in it looks at it all the time.
#[repr(align(128))]
struct Seat {
    state: AtomicU8,
    errand: Mutex<Option<Errand>>,
}
impl Seat {
    fn changes(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}
pub struct Standby {
    seats: [Seat; SEATS],
    /// How many wait in them, roughly.
    waiting: AtomicUsize,
}
impl Standby {
    pub const fn new() -> Standby {
        Standby {
            seats: [const { Seat { state: AtomicU8::new(EMPTY), errand: Mutex::new(None) } }; SEATS],
            waiting: AtomicUsize::new(0),
        }
    }
    /// Whether somebody waits.
    pub fn is_anybody_there(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
    /// Gives an errand to a thread that waits, or to one that `wake` gets, which stays afterwards.
    pub fn call(&'static self, errand: Errand, wake: impl FnOnce(Errand)) {
        let Some(seat) = self.seats.iter().find(|s| s.changes(WAITING, CALLED)) else {
            return wake(Box::new(move || {
                errand();
                self.stay();
            }));
        };
        *seat.errand.lock().unwrap_or_else(|e| e.into_inner()) = Some(errand);
        seat.state.store(TOLD, Ordering::Release);
    }
    /// Does what it is called for, until it has not been for a while.
    fn stay(&self) {
        while let Some(errand) = self.wait() {
            errand();
        }
    }
    fn wait(&self) -> Option<Errand> {
        let seat = self.seats.iter().find(|s| s.changes(EMPTY, WAITING))?;
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let errand = self.wait_in(seat);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        errand
    }
    fn wait_in(&self, seat: &Seat) -> Option<Errand> {
        let since = Instant::now();
        loop {
            for _ in 0..32 {
                if seat.state.load(Ordering::Acquire) == TOLD {
                    let errand = seat.errand.lock().unwrap_or_else(|e| e.into_inner()).take();
                    seat.state.store(EMPTY, Ordering::Release);
                    return errand;
                }
                std::hint::spin_loop();
            }
            if since.elapsed() > STAY && seat.changes(WAITING, EMPTY) {
                return None;
            }
            rayon::yield_now(); // the pool may have work of its own
        }
    }
    /// In a forked child: those who waited are not there.
    pub fn clear(&self) {
        self.waiting.store(0, Ordering::Relaxed);
        for s in &self.seats {
            s.state.store(EMPTY, Ordering::Release);
        }
    }
}
