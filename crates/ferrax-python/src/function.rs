//! Python functions as functions of the language, and the other way round.
//!
//! A flat function takes leaves and returns a sequence of leaves.
//!
//! INVARIANT: an exception of the function is passed on unchanged. Functions are called with the
//! interpreter attached.
use crate::array::value::{all_required, operand, type_text, wrap_all};
use crate::config;
use crate::error::{IntoPyResult, from_py, guarded};
use crate::source::{describe, name_of};
use ferrax_ir::cx::{Fun, Tan};
use ferrax_ir::error::Res;
use ferrax_ir::value::{Value, Values};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::Arc;

/// Calls a flat function on values; its results are values.
pub fn call(f: &Bound<PyAny>, x: &[Value], what: &str) -> Res<Values> {
    let py = f.py();
    let run = || -> PyResult<Values> {
        let args = PyTuple::new(py, wrap_all(py, x.iter().cloned())?)?;
        let out = f.call1(args)?;
        results(f, &out, what)
    };
    run().map_err(from_py)
}
/// A sequence of leaves as values.
fn results(f: &Bound<PyAny>, out: &Bound<PyAny>, what: &str) -> PyResult<Values> {
    let flags = config::flags().unguarded();
    let one = |(i, x): (usize, PyResult<Bound<PyAny>>)| {
        let x = x?;
        operand(&x, flags)?.ok_or_else(|| bad_result(f, &x, what, &path(f, out, i).unwrap_or_default()))
    };
    if let Ok(t) = out.cast::<PyTuple>() {
        return t.iter().map(Ok).enumerate().map(one).collect();
    }
    if let Ok(l) = out.cast::<PyList>() {
        return l.iter().map(Ok).enumerate().map(one).collect();
    }
    out.try_iter()?.enumerate().map(one).collect()
}
/// The path of leaf i in the result of the user's function, if `f` returns leaves of such a result.
fn path(f: &Bound<PyAny>, leaves: &Bound<PyAny>, i: usize) -> PyResult<String> {
    let whole = f.getattr("out_tree")?.call_method1("unflatten", (leaves,))?;
    component(f.py(), &whole, i)
}
/// The path of leaf i of a tree, as text.
pub fn component(py: Python, tree: &Bound<PyAny>, i: usize) -> PyResult<String> {
    let paths = crate::hooks::tree_flatten_with_path(py)?.call1((tree,))?.get_item(0)?;
    crate::hooks::keystr(py)?.call1((paths.get_item(i)?.get_item(0)?,))?.extract()
}
fn bad_result(f: &Bound<PyAny>, x: &Bound<PyAny>, what: &str, path: &str) -> PyErr {
    if what == "vmap" {
        return PyTypeError::new_err(format!(
            "Output from batched function {} with type {} is not a valid JAX type",
            x.repr().map(|r| r.to_string()).unwrap_or_default(),
            type_text(x)
        ));
    }
    let user = f.getattr("fun").unwrap_or_else(|_| f.clone());
    bad_output(&user, what, x, path)
}
/// The error for a function that returned an object that is not an array, at a path of its output.
pub fn bad_output(f: &Bound<PyAny>, what: &str, x: &Bound<PyAny>, path: &str) -> PyErr {
    let at = if path.is_empty() { String::new() } else { format!(" at output component {path}") };
    PyTypeError::new_err(format!(
        "function {} traced for {what} returned a value of type {}{at}, which is not a valid JAX type",
        describe(f),
        type_text(x)
    ))
}
/// A Python callable as a function of the language, called with the interpreter attached.
pub fn host(
    name: &str,
    f: &Bound<PyAny>,
    run: impl Fn(&Bound<PyAny>, &[Value]) -> Res<Values> + Send + Sync + 'static,
) -> Fun {
    let f = Arc::new(f.clone().unbind());
    let held = f.clone();
    Fun::user(name, move |x| Python::attach(|py| run(f.bind(py), x))).holding(held)
}
/// A rule in Python, which may take and return symbolic zeros.
pub fn host_rule(
    name: &str,
    f: &Bound<PyAny>,
    run: impl Fn(&Bound<PyAny>, &[Tan]) -> PyResult<Vec<Tan>> + Send + Sync + 'static,
) -> Fun {
    let f = Arc::new(f.clone().unbind());
    let held = f.clone();
    Fun::user_tans(name, move |x| Python::attach(|py| run(f.bind(py), x).map_err(from_py))).holding(held)
}
/// A flat Python function as a parameter.
pub fn host_fn(f: &Bound<PyAny>) -> Fun {
    host(&name_of(f), f, |f, x| call(f, x, "bind"))
}
/// A function of the language as a Python callable of leaves.
pub fn callable<'py>(py: Python<'py>, f: &Fun) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(py, HostFunction(f.clone()))?.into_any())
}
/// A function held by an equation.
#[pyclass(frozen, name = "_Function")]
pub struct HostFunction(pub Fun);
#[pymethods]
impl HostFunction {
    #[getter]
    fn __name__(&self) -> &str {
        self.0.name()
    }
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyList>> {
        let xs = all_required(args.as_any(), self.0.name())?;
        let out = guarded(|| self.0.call(&*ferrax_ir::current(), &xs).py(py))?;
        PyList::new(py, wrap_all(py, out)?)
    }
    fn __repr__(&self) -> String {
        format!("<function {}>", self.0.name())
    }
}
