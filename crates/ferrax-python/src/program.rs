//! A closed program as a Python object: `ClosedJaxpr`. [`crate::jaxpr`] defines its views.
//!
//! INVARIANT: the captured values beside a program are its leading inputs.
use ferrax_ir::program::Program;
use ferrax_ir::value::Value;
use pyo3::prelude::*;
use std::sync::Arc;

/// A closed program: the captured values beside it are its leading inputs.
#[pyclass(frozen, weakref, module = "ferrax.core", name = "ClosedJaxpr")]
pub struct PyProgram {
    pub program: Arc<Program>,
    pub consts: Vec<Value>,
}

impl PyProgram {
    pub fn closed(program: Arc<Program>, consts: Vec<Value>) -> PyProgram {
        PyProgram { program, consts }
    }
    /// The program with its captured inputs as ordinary ones, as in an op.
    pub fn open(&self) -> Arc<Program> {
        if self.program.n_consts() == 0 { self.program.clone() } else { Arc::new(self.program.with_consts(0)) }
    }
}
