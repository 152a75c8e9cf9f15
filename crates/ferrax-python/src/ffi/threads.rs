//! Attaching threads of the runtime to the interpreter, for callbacks.
//!
//! The interpreter creates a thread state under a lock of its own, and before CPython 3.12 a fork
//! does not take that lock: a child forked at that moment would wait for it forever. So thread
//! states are created behind a gate that is closed around forks.
//!
//! ```text
//! entered(|py| callback.call1(py, args))
//! ```
//!
//! INVARIANT: when a process forks, no thread is inside the gate, and the interpreter's lock on
//! thread states is free.
#![allow(unsafe_code)]
use pyo3::{Python, ffi};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Makers of records, and forks that keep them out.
struct Gate {
    inside: AtomicUsize,
    forks: AtomicUsize,
}
static GATE: Gate = Gate { inside: AtomicUsize::new(0), forks: AtomicUsize::new(0) };

impl Gate {
    fn pass<T>(&self, f: impl FnOnce() -> T) -> T {
        loop {
            self.inside.fetch_add(1, SeqCst);
            if self.forks.load(SeqCst) == 0 {
                break;
            }
            self.inside.fetch_sub(1, SeqCst);
            std::thread::yield_now();
        }
        let out = f();
        self.inside.fetch_sub(1, SeqCst);
        out
    }
}
/// Keeps threads from entering anew, right before a fork. Those inside the gate wait for no lock that a forking thread holds.
pub fn close_gate() {
    GATE.forks.fetch_add(1, SeqCst);
    while GATE.inside.load(SeqCst) > 0 {
        std::thread::yield_now();
    }
}
pub fn open_gate() {
    GATE.forks.fetch_sub(1, SeqCst);
}
/// In the child there is one thread, and it is not inside.
pub fn open_gate_in_child() {
    GATE.inside.store(0, SeqCst);
    GATE.forks.store(0, SeqCst);
}

/// The calling thread's record, made here; it goes with this. The thread holds the interpreter from the making on.
struct Record;
impl Record {
    fn make() -> Option<Record> {
        // SAFETY: the interpreter is initialised, the thread has no record, and a record may be made without the interpreter's lock.
        let state = GATE.pass(|| unsafe { ffi::PyThreadState_New(ffi::PyInterpreterState_Main()) });
        if state.is_null() {
            return None;
        }
        // SAFETY: the record is this thread's, and not the current one: it was made right now.
        unsafe { ffi::PyEval_RestoreThread(state) };
        Some(Record)
    }
}
impl Drop for Record {
    fn drop(&mut self) {
        // SAFETY: `make` left the record as `PyGILState_Ensure` leaves one that it makes: counted once, and current.
        unsafe { ffi::PyGILState_Release(ffi::PyGILState_STATE::PyGILState_UNLOCKED) };
    }
}

/// Calls `f` with the interpreter attached; `None` after the interpreter's end.
pub fn entered<T>(f: impl FnOnce(Python) -> T) -> Option<T> {
    // SAFETY: both may be called at any time, on any thread.
    let foreign = unsafe { ffi::Py_IsInitialized() != 0 && ffi::PyGILState_GetThisThreadState().is_null() };
    let _record = if foreign { Some(Record::make()?) } else { None };
    Python::try_attach(f)
}
