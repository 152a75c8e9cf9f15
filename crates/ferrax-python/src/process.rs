//! Process-wide settings of the runtime: thread count, signals during waits, forks, shutdown.
//!
//! INVARIANT: a waiting thread releases the interpreter's lock and checks for signals every 50 ms.
//! A forked child finds no lock held by a thread that it does not have. Nothing enters the
//! interpreter during finalization.
use crate::error::{IntoPyResult, from_py};
use crate::ffi::fork::at_fork;
use crate::ffi::threads;
use ferrax::device;
use ferrax::fork::{self, Still};
use ferrax::runtime::{self, Host};
use ferrax_ir::error::Res;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether forks have to keep threads from entering the interpreter: it does so itself from 3.12 on, by a lock that it then holds.
static GATED: AtomicBool = AtomicBool::new(false);
thread_local! {
    /// The locks, from right before a fork to right after.
    static STILL: RefCell<Option<Still>> = const { RefCell::new(None) };
    /// Values that a forked child has lost, kept until the interpreter can drop them.
    static LOST: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Installs the functions that wait, and those that the interpreter calls at a fork and at its end.
pub fn install(m: &Bound<PyModule>) -> PyResult<()> {
    runtime::install(Host { detached, look_up, warn });
    let py = m.py();
    // Not the interpreter's hooks: hooks of other libraries run in between, and may pass the
    // interpreter to a thread that waits for our locks.
    GATED.store(m.py().version_info() < (3, 12), Relaxed);
    at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    let os = py.import("os")?;
    if os.hasattr("register_at_fork")? {
        let hooks = PyDict::new(py);
        hooks.set_item("after_in_child", wrap_pyfunction!(forget_lost, m)?)?;
        os.call_method("register_at_fork", (), Some(&hooks))?;
    }
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(shutdown, m)?,))?;
    Ok(())
}
fn detached(f: &mut (dyn FnMut() + Send)) {
    Python::attach(|py| py.detach(f));
}
fn look_up() -> Res<()> {
    Python::attach(|py| py.check_signals()).map_err(from_py)
}
/// A filter may make an error of a warning: there is no caller that could catch it.
fn warn(text: &str) {
    Python::attach(|py| {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        if let Err(e) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1) {
            e.write_unraisable(py, None);
        }
    });
}

/// Takes the locks, so that the guarded state is consistent in the child.
fn before_fork() {
    if GATED.load(Relaxed) {
        threads::close_gate();
    }
    STILL.with(|s| s.replace(Some(fork::freeze())));
}
fn after_fork_in_parent() {
    drop(STILL.with(|s| s.take()));
    if GATED.load(Relaxed) {
        threads::open_gate();
    }
}
fn after_fork_in_child() {
    threads::open_gate_in_child();
    if let Some(still) = STILL.with(|s| s.take()) {
        LOST.with(|l| l.replace(Some(still.in_child())));
    }
}
/// In the child, once the interpreter is whole there.
#[pyfunction]
fn forget_lost() {
    drop(LOST.with(|l| l.take()));
}
/// Effects happen, all else stops. An error of an effect that was not reported yet is raised here, for Python to print.
#[pyfunction]
fn shutdown(py: Python) -> PyResult<()> {
    runtime::close().py(py)
}

/// effects_barrier(): waits until the effects of all calls so far have happened; raises the error
/// of one of them.
#[pyfunction]
pub fn effects_barrier(py: Python) -> PyResult<()> {
    runtime::barrier().py(py)
}

/// num_threads(): how many threads a large step is spread over.
#[pyfunction]
pub fn num_threads() -> usize {
    device::num_threads()
}
/// set_num_threads(n): from the next step on; 0 is the default. Runs that are under way keep the pool they have.
#[pyfunction]
pub fn set_num_threads(n: usize) {
    device::set_num_threads(n);
}
