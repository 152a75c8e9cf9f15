//! Python objects that are created once and kept.
//!
//! INVARIANT: no thread waits for a value that another thread creates. In a forked child the
//! creating thread does not exist, so a waiting child would hang. If two threads create a value at
//! once, the first one's is kept. (pyo3's own cells wait for the interpreter during creation.)
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::OnceLock;

pub struct Once<T>(OnceLock<T>);

impl<T> Once<T> {
    pub const fn new() -> Once<T> {
        Once(OnceLock::new())
    }
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }
    /// Storing the value runs no Python: the thread keeps the interpreter throughout, which forks
    /// rely on.
    pub fn get_or_init(&self, _: Python, make: impl FnOnce() -> T) -> &T {
        match self.0.get() {
            Some(known) => known,
            None => {
                let made = make();
                self.0.get_or_init(|| made)
            }
        }
    }
    pub fn get_or_try_init<E>(&self, _: Python, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        match self.0.get() {
            Some(known) => Ok(known),
            None => {
                let made = make()?;
                Ok(self.0.get_or_init(|| made))
            }
        }
    }
}
impl Once<Py<PyType>> {
    /// A class of a module.
    pub fn import<'py>(&self, py: Python<'py>, module: &str, name: &str) -> PyResult<&Bound<'py, PyType>> {
        let find = || Ok::<_, PyErr>(py.import(module)?.getattr(name)?.cast_into::<PyType>()?.unbind());
        Ok(self.get_or_try_init(py, find)?.bind(py))
    }
}

/// The interned string, as a `&Bound<PyString>`.
macro_rules! intern {
    ($py:expr, $text:expr) => {{
        static TEXT: $crate::once::Once<pyo3::Py<pyo3::types::PyString>> = $crate::once::Once::new();
        let py = $py;
        TEXT.get_or_init(py, || pyo3::types::PyString::intern(py, $text).unbind()).bind(py)
    }};
}
pub(crate) use intern;
