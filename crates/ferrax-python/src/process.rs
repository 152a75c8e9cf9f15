//! What the process does to the runtime: signals while a thread waits, forks, and the end.
//!
//! INVARIANT: whoever waits releases the interpreter's lock and looks for signals every 50 ms. A child of a fork finds no lock held by a thread
//! that it does not have. Nothing enters the interpreter once it is being finalised.
use crate::error::{IntoPyResult, from_py};
use ferrax::fork::{self, Still};
use ferrax::runtime::{self, Host};
use ferrax_ir::error::Res;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::RefCell;

thread_local! { static STILL: RefCell<Option<Still>> = const { RefCell::new(None) } }

/// Tells the runtime how to wait, and the interpreter what to call at a fork and at the end.
pub fn install(m: &Bound<PyModule>) -> PyResult<()> {
    runtime::install(Host { detached, look_up });
    let py = m.py();
    let os = py.import("os")?;
    if os.hasattr("register_at_fork")? {
        let hooks = PyDict::new(py);
        hooks.set_item("before", wrap_pyfunction!(before_fork, m)?)?;
        hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, m)?)?;
        hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, m)?)?;
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

/// Takes the locks, so that the child finds what they guard whole.
#[pyfunction]
fn before_fork() {
    STILL.with(|s| s.replace(Some(fork::freeze())));
}
#[pyfunction]
fn after_fork_in_parent() {
    drop(STILL.with(|s| s.take()));
}
#[pyfunction]
fn after_fork_in_child() {
    if let Some(still) = STILL.with(|s| s.take()) {
        still.in_child();
    }
}
/// Effects happen, all else stops. What an effect raised that nobody asked for is raised here, for Python to print.
#[pyfunction]
fn shutdown(py: Python) -> PyResult<()> {
    runtime::close().py(py)
}

/// effects_barrier(): waits until the effects of all that was called so far have happened; raises what one of them raised.
#[pyfunction]
pub fn effects_barrier(py: Python) -> PyResult<()> {
    runtime::barrier().py(py)
}
