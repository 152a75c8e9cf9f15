//! The table that maps error kinds to Python classes, and back.
//!
//! INVARIANT: an exception of a Python callable is passed on as the same object; a panic becomes a
//! `RuntimeError` with its text, never a `PanicException`.
use ferrax_ir::error::{Error, Res};
use ferrax_kernel::fault;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The exception class of that name: Python's, else the package's.
pub fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    if let Ok(c) = py.import("builtins")?.getattr(name) {
        return Ok(c.cast_into::<PyType>()?);
    }
    Ok(crate::hooks::error_class(py)?.call1((name,))?.cast_into::<PyType>()?)
}

/// The exception of a name and a message.
pub fn named(py: Python, name: &str, message: &str) -> PyErr {
    match class(py, name) {
        Ok(c) => PyErr::from_type(c, message.to_string()),
        Err(_) => PyRuntimeError::new_err(format!("{name}: {message}")),
    }
}

pub fn to_py(py: Python, e: Error) -> PyErr {
    let e = match e {
        Error::Raised(kind, message) => return named(py, kind.class(), &message),
        Error::Host(e) => e,
    };
    match e.downcast::<PyErr>() {
        Ok(e) => *e,
        Err(e) => match e.downcast::<Arc<dyn Any + Send + Sync>>() {
            Ok(e) => match e.downcast_ref::<PyErr>() {
                Some(e) => e.clone_ref(py),
                None => PyRuntimeError::new_err("a host callback failed"),
            },
            Err(_) => PyRuntimeError::new_err("a host callback failed"),
        },
    }
}
pub fn from_py(e: PyErr) -> Error {
    Error::Host(Box::new(e))
}
/// An error of the waist that is a Python exception at heart.
pub fn kernel_to_py(py: Python, e: ferrax_kernel::Error) -> PyErr {
    match e {
        ferrax_kernel::Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        ferrax_kernel::Error::Deleted(m) => PyRuntimeError::new_err(m),
        e => to_py(py, e.into()),
    }
}

/// Results of the core, as Python results.
pub trait IntoPyResult<T> {
    fn py(self, py: Python) -> PyResult<T>;
}
impl<T> IntoPyResult<T> for Res<T> {
    #[inline]
    fn py(self, py: Python) -> PyResult<T> {
        match self {
            Ok(x) => Ok(x),
            Err(e) => Err(to_py(py, e)),
        }
    }
}

/// An error on its way out of a jitted function to the code that called it: the hook `left` removes this library's frames from its traceback.
#[cold]
pub fn leaving(py: Python, e: PyErr) -> PyErr {
    let value = e.value(py);
    let filtered = || {
        if let Some(traceback) = e.traceback(py) {
            value.setattr(crate::once::intern!(py, "__traceback__"), traceback)?;
        }
        crate::hooks::left(py)?.call1((value, !ferrax_ir::cx::at_root()))
    };
    filtered().map_or_else(|_| e.clone_ref(py), PyErr::from_value)
}

/// Runs `f`; a panic becomes an exception that says it is a bug of this library.
pub fn guarded<T>(f: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(r) => r,
        Err(p) => {
            // An operator in Rust panics with the error as payload.
            let p = match p.downcast::<Error>() {
                Ok(e) => return Python::attach(|py| Err(to_py(py, *e))),
                Err(p) => p,
            };
            let text = fault::text(&*p);
            fault::report(&text);
            Err(PyRuntimeError::new_err(format!("internal error in ferrax, please report it: {text}")))
        }
    }
}
