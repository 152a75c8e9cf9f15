//! Who holds a tracer that outlived its trace: the Python package looks for them, and distinguishes tracers by their numbers.
//!
//! INVARIANT: while a tracer is alive its number is its own.
use crate::array::value::{held, wrap};
use ferrax_ir::value::Value;
use pyo3::prelude::*;
use std::sync::Arc;

/// The number of a tracer among those that are alive, and lines that say what holds it.
pub fn holders(v: &Value) -> Option<(String, String)> {
    Python::attach(|py| {
        let x = wrap(py, v.clone()).ok()?;
        let found = crate::hooks::holders(py).and_then(|f| f.call1((&x,))).ok()?;
        let lines: String = found.extract().ok()?;
        Some((tracer_number(&x).to_string(), lines))
    })
}
/// A number that only objects of the same tracer have; 0 for anything else.
#[pyfunction]
pub fn tracer_number(x: &Bound<PyAny>) -> usize {
    match held(x) {
        Some(Value::Tracer(t)) => Arc::as_ptr(&t.0) as usize,
        _ => 0,
    }
}
