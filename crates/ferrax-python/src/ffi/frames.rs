//! The running Python frames, which pyo3 has no safe way to iterate over.
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;

/// Calls `found` with code object and instruction of each frame, the innermost first, until it gives something. Nothing where this
/// thread is not attached to the interpreter.
pub fn walk<T>(mut found: impl FnMut(&Bound<PyAny>, c_int) -> Option<T>) -> Option<T> {
    // SAFETY: it may be called without being attached, and on any thread.
    if unsafe { ffi::PyGILState_Check() } == 0 {
        return None;
    }
    Python::attach(|py| {
        // SAFETY: attached; the frame is borrowed from the running thread, and null where no Python code runs. `from_borrowed_ptr_or_opt`
        // takes a reference of its own.
        let mut frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
        while let Some(f) = frame {
            let at: *mut ffi::PyFrameObject = f.as_ptr().cast();
            // SAFETY: `f` keeps the frame alive; its code object is never null, and the reference is new.
            let code = unsafe { Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(at).cast()) };
            // SAFETY: as above; reading the instruction has no effect.
            let lasti = unsafe { ffi::PyFrame_GetLasti(at) };
            if let Some(t) = found(&code, lasti) {
                return Some(t);
            }
            // SAFETY: as above; the reference is new, or null for the outermost frame.
            frame = unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyFrame_GetBack(at).cast()) };
        }
        None
    })
}
