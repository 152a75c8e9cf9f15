//! Python's recursion limit applied to recursion in Rust: deep or cyclic input raises
//! `RecursionError` and never overflows the stack.
use pyo3::prelude::*;

/// One level of recursion, left when dropped.
pub struct Level<'py>(#[allow(dead_code)] Python<'py>);

pub fn enter<'py>(py: Python<'py>, what: &'static std::ffi::CStr) -> PyResult<Level<'py>> {
    // SAFETY: the interpreter is attached (`py`), `what` is a static C string; `Drop` leaves the
    // level exactly once.
    match unsafe { pyo3::ffi::Py_EnterRecursiveCall(what.as_ptr()) } {
        0 => Ok(Level(py)),
        _ => Err(PyErr::fetch(py)),
    }
}
impl Drop for Level<'_> {
    fn drop(&mut self) {
        // SAFETY: the interpreter is attached, and `enter` counted this level.
        unsafe { pyo3::ffi::Py_LeaveRecursiveCall() }
    }
}
