//! Primitives as Python objects, and primitives that Python defines.
//!
//! INVARIANT: there is one meaning per name; a primitive defined in Python cannot shadow one of the language.
use crate::bind::is_multiple;
use crate::param;
use ferrax_ir::op::Op;
use ferrax_ir::value::Values;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::HashMap;
use std::sync::{LazyLock, RwLock};

/// What an equation does, by name.
#[pyclass(frozen, weakref, module = "ferrax.core", name = "PrimitiveName")]
pub struct PyPrimitive {
    name: String,
    multiple: bool,
}
impl PyPrimitive {
    pub fn of(op: &Op) -> PyPrimitive {
        PyPrimitive { name: op.name().into(), multiple: is_multiple(op, op.name()) }
    }
}
#[pymethods]
impl PyPrimitive {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }
    #[getter]
    fn multiple_results(&self) -> bool {
        self.multiple
    }
    #[getter]
    fn call_primitive(&self) -> bool {
        false
    }
    #[getter]
    fn map_primitive(&self) -> bool {
        false
    }
    #[pyo3(signature = (*operands, **params))]
    fn bind<'py>(&self, py: Python<'py>, operands: &Bound<'py, PyTuple>, params: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        crate::bind::bind(&pyo3::types::PyString::new(py, &self.name), operands, params)
    }
    /// (functions, parameters) to bind with: the functions are among the parameters here.
    fn get_bind_params<'py>(&self, py: Python<'py>, params: &Bound<'py, PyDict>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
        Ok((PyList::empty(py), params.copy()?))
    }
    fn __str__(&self) -> &str {
        &self.name
    }
    fn __repr__(&self) -> &str {
        &self.name
    }
    fn __eq__(&self, o: &Bound<PyAny>) -> bool {
        match o.cast::<PyPrimitive>() {
            Ok(p) => p.get().name == self.name,
            Err(_) => !o.is_instance_of::<pyo3::types::PyString>() && o.getattr("name").and_then(|n| n.extract::<String>()).is_ok_and(|n| n == self.name),
        }
    }
    fn __hash__(&self, py: Python) -> PyResult<isize> {
        pyo3::types::PyString::new(py, &self.name).hash()
    }
}

/// A primitive that Python defines.
pub struct Foreign {
    pub name: String,
    pub multiple: bool,
    pub abstract_eval: Py<PyAny>,
    pub implementation: Py<PyAny>,
    pub rules: Py<PyAny>,
}
static TABLE: LazyLock<RwLock<HashMap<String, std::sync::Arc<Foreign>>>> = LazyLock::new(Default::default);

pub fn find(_py: Python, name: &str) -> Option<std::sync::Arc<Foreign>> {
    let table = TABLE.read().unwrap_or_else(|e| e.into_inner());
    if table.is_empty() { None } else { table.get(name).cloned() }
}

/// register_primitive(name, multiple_results, abstract_eval, impl, rules): makes `bind(name, ...)` mean a primitive of Python's.
#[pyfunction]
pub fn register_primitive(name: &str, multiple_results: bool, abstract_eval: Py<PyAny>, implementation: Py<PyAny>, rules: Py<PyAny>) -> PyResult<()> {
    if Op::names().contains(&name) {
        return Err(PyValueError::new_err(format!("there is a primitive called {name} already")));
    }
    let f = Foreign { name: name.into(), multiple: multiple_results, abstract_eval, implementation, rules };
    TABLE.write().unwrap_or_else(|e| e.into_inner()).insert(name.into(), std::sync::Arc::new(f));
    Ok(())
}

impl Foreign {
    pub fn bind<'py>(&self, py: Python<'py>, xs: Values, params: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let _ = (xs, param::map(params)?, self.multiple);
        Err(crate::error::to_py(py, ferrax_ir::Error::not_implemented(format!("{}: primitives defined in Python", self.name))))
    }
}
