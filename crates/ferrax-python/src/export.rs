//! Exported programs as Python objects, from which `ferrax.export` builds its classes.
//!
//! INVARIANT: Python handles trees; the core takes and returns leaves, and stores Python's
//! description of trees as bytes.
use crate::array::value::{operand, type_text, wrap_all};
use crate::config;
use crate::error::{IntoPyResult, from_py, guarded};
use crate::program::PyProgram;
use ferrax::export::{
    Constraint, Exported, ExportedSize, ExportedType, MakeVjp, ProgramFamily, Signature, TracedProgram,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::Arc;

/// ProgramFamily(names, traced): closed programs of one function at several sizes, as one.
#[pyclass(frozen, module = "ferrax.export", name = "ProgramFamily")]
pub struct PyProgramFamily(ProgramFamily);
#[pymethods]
impl PyProgramFamily {
    #[new]
    fn new(py: Python, names: Vec<String>, traced: Vec<Py<PyProgram>>) -> PyResult<PyProgramFamily> {
        let traced: Vec<TracedProgram> = traced
            .iter()
            .map(Py::get)
            .map(|t| TracedProgram { program: t.program.clone(), consts: t.consts.clone() })
            .collect();
        guarded(|| Ok(PyProgramFamily(ProgramFamily::new(&names, &traced).py(py)?)))
    }
    /// The sizes that vary, each as its values in the programs: integers, or floats for constants that are not integers.
    #[getter]
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let values = |(at, fraction): (&Vec<i64>, &bool)| match fraction {
            false => at.into_pyobject(py),
            true => at.iter().map(|n| f64::from_bits(*n as u64)).collect::<Vec<_>>().into_pyobject(py),
        };
        self.0.sizes().iter().zip(self.0.fractions()).map(values).collect()
    }
    /// Which inputs are read.
    #[getter]
    fn used(&self) -> Vec<bool> {
        self.0.used().to_vec()
    }
}

/// An exported program of flat arguments and results.
#[pyclass(frozen, weakref, module = "ferrax.export", name = "ExportedProgram")]
pub struct PyExported(Arc<Exported>);

/// (name, whether it is used, shape, dtype, whether it is weak); a symbolic size is its text.
fn described<'py>(py: Python<'py>, t: &ExportedType) -> PyResult<Bound<'py, PyTuple>> {
    let size = |s: &ExportedSize| -> PyResult<Bound<'py, PyAny>> {
        match s.expr.number() {
            Some(n) => Ok(n.into_pyobject(py)?.into_any()),
            None => Ok(s.text().into_pyobject(py)?.into_any()),
        }
    };
    let shape = PyTuple::new(py, t.shape.iter().map(size).collect::<PyResult<Vec<_>>>()?)?;
    (&t.name, t.used, shape, crate::dtype::to_py(py, t.dtype)?, t.weak).into_pyobject(py)
}

fn no_array(x: &Bound<PyAny>) -> PyErr {
    let text = x.str().map_or_else(|_| String::new(), |s| s.to_string());
    PyTypeError::new_err(format!("Argument '{text}' of type {} is not a valid JAX type", type_text(x)))
}

#[pymethods]
impl PyExported {
    /// `families` with the expressions of their sizes; `platforms` with the number of the family for each; `constraints` as (text,
    /// difference, whether it must be 0); `get_vjp` makes the `ExportedProgram` of the derivative.
    #[new]
    #[pyo3(signature = (fun_name, *, platforms, families, disabled_checks, notes, calling_convention, variables, constraints, get_vjp))]
    fn new(
        py: Python,
        fun_name: String,
        platforms: Vec<(String, usize)>,
        families: Vec<(Py<PyProgramFamily>, Vec<String>)>,
        disabled_checks: Vec<String>,
        notes: Vec<u8>,
        calling_convention: u32,
        variables: Vec<(String, i64)>,
        constraints: Vec<(String, String, bool)>,
        get_vjp: Option<Py<PyAny>>,
    ) -> PyResult<PyExported> {
        let mut s = Signature { fun_name, platforms, disabled_checks, notes, ..Signature::default() };
        (s.calling_convention, s.variables) = (calling_convention, variables);
        let names = s.variable_names();
        for (text, difference, equal) in constraints {
            let difference = ExportedSize::parse(&difference, &names).py(py)?;
            s.constraints.push(Constraint { text, difference, equal });
        }
        let make = get_vjp.map(|f| -> MakeVjp {
            Box::new(move || {
                Python::attach(|py| {
                    let made = f.call0(py).map_err(from_py)?;
                    let made = made.bind(py).cast::<PyExported>().map_err(|e| from_py(e.into()))?;
                    Ok(made.get().0.clone())
                })
            })
        });
        let families: Vec<(&ProgramFamily, Vec<String>)> =
            families.iter().map(|(f, e)| (&f.get().0, e.clone())).collect();
        guarded(|| Ok(PyExported(Exported::new(s, &families, make).py(py)?)))
    }
    /// The program in a file's bytes.
    #[staticmethod]
    fn load(py: Python, blob: &[u8]) -> PyResult<PyExported> {
        guarded(|| Ok(PyExported(Exported::from_bytes(blob).py(py)?)))
    }
    /// The bytes of the file, with these notes.
    fn serialize<'py>(&self, py: Python<'py>, vjp_order: usize, notes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &guarded(|| self.0.to_bytes(vjp_order, Some(notes)).py(py))?))
    }
    /// The flat results for flat arguments.
    fn call<'py>(&self, py: Python<'py>, leaves: Vec<Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (signature, flags) = (self.0.signature(), config::flags());
        let mut args = Vec::with_capacity(leaves.len());
        for (i, x) in leaves.iter().enumerate() {
            if signature.inputs.get(i).is_some_and(ExportedType::is_float0) {
                args.push(None);
                continue;
            }
            args.push(Some(operand(x, flags)?.ok_or_else(|| no_array(x))?));
        }
        wrap_all(py, guarded(|| self.0.apply(&args).py(py))?)
    }
    /// The derivative, or None.
    fn vjp(&self, py: Python) -> PyResult<Option<PyExported>> {
        Ok(guarded(|| self.0.vjp().py(py))?.map(PyExported))
    }
    #[getter]
    fn has_vjp(&self) -> bool {
        self.0.has_vjp()
    }
    #[getter]
    fn fun_name(&self) -> &str {
        &self.0.signature().fun_name
    }
    #[getter]
    fn platforms(&self) -> Vec<&str> {
        self.0.signature().platforms.iter().map(|p| &*p.0).collect()
    }
    #[getter]
    fn disabled_checks(&self) -> Vec<String> {
        self.0.signature().disabled_checks.clone()
    }
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.signature().notes)
    }
    #[getter]
    fn calling_convention(&self) -> u32 {
        self.0.signature().calling_convention
    }
    /// The symbolic sizes' names.
    #[getter]
    fn variables(&self) -> Vec<String> {
        self.0.signature().variable_names()
    }
    /// The constraints on symbolic sizes, as written.
    #[getter]
    fn constraints(&self) -> Vec<&str> {
        self.0.signature().constraints.iter().map(|c| &*c.text).collect()
    }
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.0.signature().inputs.iter().map(|t| described(py, t)).collect()
    }
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.0.signature().outputs.iter().map(|t| described(py, t)).collect()
    }
    /// The code of the program.
    #[getter]
    fn code<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.code())
    }
    /// The program as text.
    fn text(&self, py: Python) -> PyResult<String> {
        self.0.text().py(py)
    }
}
