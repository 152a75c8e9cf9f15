//! Modules that are already imported: a lookup imports nothing.
//!
//! ```text
//! modules::imported(py, "logging")     // None where logging is not imported
//! ```
//!
//! INVARIANT: no Python code runs except the lookup in `sys.modules`, which is found once.
use crate::once::Once;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

pub fn imported<'py>(py: Python<'py>, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    static MODULES: Once<Py<PyDict>> = Once::new();
    let find = || Ok::<_, PyErr>(py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind());
    MODULES.get_or_try_init(py, find).ok()?.bind(py).get_item(name).ok().flatten()
}
