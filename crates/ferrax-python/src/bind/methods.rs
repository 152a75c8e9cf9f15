//! Methods of primitive objects: bind, compute results, infer the results' types.
//!
//! INVARIANT: built-in primitives use [`super::bind`]; primitives defined in Python use their own
//! functions.
use super::bind;
use crate::array::value::avals as avals_of;
use crate::aval::ShapedArray;
use crate::error::{IntoPyResult, guarded};
use crate::primitive::{self, PyPrimitive, apply};
use ferrax_ir::op::Op;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// How a primitive of the language is computed, whatever a user put in its place.
#[pyclass(frozen, module = "ferrax.extend.core", name = "_Implementation")]
struct Implementation(Py<PyPrimitive>);
#[pymethods]
impl Implementation {
    #[getter]
    fn __name__(&self) -> &str {
        self.0.get().name()
    }
    #[pyo3(signature = (*operands, **params))]
    fn __call__<'py>(
        &self,
        operands: &Bound<'py, PyTuple>,
        params: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        ferrax::instead::plainly(|| evaluated(&self.0, operands, params))
    }
    fn __repr__(&self) -> String {
        format!("<implementation of {}>", self.__name__())
    }
}

#[pymethods]
impl PyPrimitive {
    /// The function that computes the operation on concrete arrays.
    #[getter]
    #[pyo3(name = "impl")]
    fn get_implementation<'py>(me: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = me.py();
        if let Ok(f) = me.get().implementation(py) {
            return Ok(f.into_bound(py));
        }
        Ok(Bound::new(py, Implementation(me.clone().unbind()))?.into_any())
    }
    /// The result's type (a list of types, if there are several results).
    ///
    /// Raises:
    ///   NotImplementedError: no rule was given.
    #[pyo3(signature = (*avals, **params))]
    fn abstract_eval<'py>(
        me: &Bound<'py, Self>,
        avals: &Bound<'py, PyTuple>,
        params: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, p) = (me.py(), me.get());
        if !p.builtin {
            return p.type_rule(py)?.bind(py).call(avals, params);
        }
        let op = Op::from_name(p.name(), primitive::map(params)?).py(py)?;
        let out = op.results(&avals_of(avals.as_any())?).py(py)?;
        let out = out.into_iter().map(|a| Bound::new(py, ShapedArray(a))).collect::<PyResult<Vec<_>>>()?;
        match &out[..] {
            [one] if !p.multiple() => Ok(one.clone().into_any()),
            all => Ok(PyList::new(py, all)?.into_any()),
        }
    }
    /// `bind(*operands, **params)`, in the trace that is at work: `trace` is that one.
    fn bind_with_trace<'py>(
        me: &Bound<'py, Self>,
        trace: &Bound<'py, PyAny>,
        operands: &Bound<'py, PyAny>,
        params: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = trace;
        me.getattr("bind")?
            .call(PyTuple::new(me.py(), operands.try_iter()?.collect::<PyResult<Vec<_>>>()?)?, Some(params))
    }
    /// Applies the operation: computes it, or records it where a function is being traced.
    #[pyo3(signature = (*operands, **params))]
    #[pyo3(name = "bind")]
    fn bound<'py>(
        me: &Bound<'py, Self>,
        operands: &Bound<'py, PyTuple>,
        params: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, p) = (me.py(), me.get());
        if !p.builtin {
            return guarded(|| apply(me, operands, params));
        }
        let out = bind(&PyString::new(py, p.name()), operands, params)?;
        if let Ok(t) = out.cast::<PyTuple>() {
            return Ok(t.to_list().into_any());
        }
        Ok(out)
    }
}

/// A primitive's results on concrete arrays, whatever is traced around it.
fn evaluated(p: &Py<PyPrimitive>, operands: &Bound<PyTuple>, params: Option<&Bound<PyDict>>) -> PyResult<Py<PyAny>> {
    let py = operands.py();
    let me = p.bind(py).get();
    if !me.builtin {
        return me.implementation(py)?.bind(py).call(operands, params).map(Bound::unbind);
    }
    let name = PyString::new(py, me.name());
    ferrax_ir::enter(ferrax_ir::cx::eval_root(), || bind(&name, operands, params)).map(Bound::unbind)
}
