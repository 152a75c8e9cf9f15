//! The Python objects that programs hold, for caches that keep programs.
use crate::primitive::bound_objects;
use crate::program::PyProgram;
use ferrax_ir::host;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// held_objects(program) -> the Python objects that rules, policies and callbacks of the program refer to.
#[pyfunction]
pub fn held_objects<'py>(py: Python<'py>, program: &PyProgram) -> PyResult<Bound<'py, PyList>> {
    let mut all: Vec<Bound<PyAny>> = vec![];
    host::objects(&program.program, &mut |held| match held.downcast_ref::<Py<PyAny>>() {
        Some(x) => all.push(x.bind(py).clone()),
        None => all.extend(bound_objects(py, held)),
    });
    PyList::new(py, all)
}
