//! Conversion of primitives' parameters between Python and the language.
//!
//! INVARIANT: a parameter converted to Python and back is equal. Enumerations convert by class and
//! member name; named tuples are tuples.
use crate::aval::ShapedArray;
use crate::callback::HostCallable;
use crate::dtype;
use crate::ffi::recursion;
use crate::function;
use crate::program::PyProgram;
use ferrax_ir::cx::Fun;
use ferrax_ir::param::{Param, ParamMap};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::ffi::CStr;
use std::sync::Arc;

/// The context of the error for a parameter that contains itself.
const LEVEL: &CStr = c" while reading a parameter";

/// A Python object as a parameter.
pub fn from_py(key: &str, x: &Bound<PyAny>) -> PyResult<Param> {
    let py = x.py();
    if x.is_none() {
        return Ok(Param::None);
    }
    if let Ok(b) = x.cast_exact::<PyBool>() {
        return Ok(Param::Bool(b.is_true()));
    }
    if x.is_exact_instance_of::<PyInt>() {
        return Ok(Param::Int(x.extract()?));
    }
    if let Ok(t) = x.cast::<PyTuple>() {
        let _level = recursion::enter(py, LEVEL)?;
        return Ok(Param::Tuple(t.iter_borrowed().map(|x| from_py(key, &x)).collect::<PyResult<_>>()?));
    }
    if let Ok(t) = x.cast::<PyList>() {
        let _level = recursion::enter(py, LEVEL)?;
        return Ok(Param::List(t.iter().map(|x| from_py(key, &x)).collect::<PyResult<_>>()?));
    }
    if let Ok(p) = x.cast::<PyProgram>() {
        return Ok(Param::Prog(p.get().open()));
    }
    if let Ok(s) = x.cast::<PyString>() {
        return Ok(Param::Str(s.to_str()?.into()));
    }
    if let Ok(f) = x.cast_exact::<PyFloat>() {
        return Ok(Param::Float(f.value()));
    }
    if let Ok(a) = x.cast::<ShapedArray>() {
        return Ok(Param::Aval(a.get().0.clone()));
    }
    if let Ok(f) = x.cast::<HostCallable>() {
        return Ok(Param::Host(f.get().0.clone()));
    }
    if let Some((class, member)) = enumeration(x)? {
        return Ok(Param::Enum(class, member));
    }
    if x.is_instance(dtype::generic(py)?)? {
        // A NumPy type that no Python type holds (`longdouble`) is its own item.
        let item = x.call_method0("item")?;
        if !item.is_instance(dtype::generic(py)?)? {
            return from_py(key, &item);
        }
    }
    if let Ok(d) = dtype::any(x)
        && !x.is_callable_value()
    {
        return Ok(Param::Dtype(d));
    }
    if x.is_instance_of::<PyInt>() {
        return Ok(Param::Int(x.extract()?));
    }
    if x.is_callable() {
        let f = function::host_fn(x);
        return Ok(Param::Fun(f));
    }
    if x.hasattr("__iter__")? {
        let _level = recursion::enter(py, LEVEL)?;
        return Ok(Param::Tuple(x.try_iter()?.map(|x| from_py(key, &x?)).collect::<PyResult<_>>()?));
    }
    Err(PyTypeError::new_err(format!("parameter {key}: {} is not a value that a parameter can have", x.repr()?)))
}

trait CallableValue {
    /// A function, and not a scalar class such as `jnp.float32`, which is a dtype.
    fn is_callable_value(&self) -> bool;
}
impl CallableValue for Bound<'_, PyAny> {
    fn is_callable_value(&self) -> bool {
        self.is_callable() && !self.is_instance_of::<pyo3::types::PyType>() && !self.hasattr("dtype").unwrap_or(false)
    }
}

/// The classes whose members occur in parameters, by their names in programs' text.
const ENUMS: [&str; 8] = [
    "GatherScatterMode",
    "RandomAlgorithm",
    "RoundingMethod",
    "Precision",
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "FftType",
    "AccuracyMode",
];

fn enumeration(x: &Bound<PyAny>) -> PyResult<Option<(&'static str, Arc<str>)>> {
    let class = x.get_type();
    if !class.hasattr("__members__")? {
        return Ok(None);
    }
    let name = class.name()?.to_string();
    let Some(known) = ENUMS.iter().find(|e| **e == name) else { return Ok(None) };
    Ok(Some((known, x.getattr("name")?.extract::<String>()?.into())))
}

/// Keyword arguments of `bind`.
pub fn map(params: Option<&Bound<PyDict>>) -> PyResult<ParamMap> {
    let mut map = ParamMap::default();
    for (k, v) in params.iter().flat_map(|d| d.iter()) {
        let key = k.cast::<PyString>()?.to_str()?.to_string();
        let p = from_py(&key, &v)?;
        map.insert(key, p);
    }
    Ok(map)
}

/// A parameter as a Python object.
pub fn to_py<'py>(py: Python<'py>, p: &Param) -> PyResult<Bound<'py, PyAny>> {
    Ok(match p {
        Param::None => py.None().into_bound(py),
        Param::Bool(b) => b.into_pyobject(py)?.to_owned().into_any(),
        Param::Int(i) => i.into_pyobject(py)?.into_any(),
        Param::Float(x) => x.into_pyobject(py)?.into_any(),
        Param::Str(s) => PyString::new(py, s).into_any(),
        Param::Dtype(d) => dtype::to_py(py, *d)?.clone(),
        Param::Enum(class, member) => {
            match crate::hooks::lax(py).and_then(|m| m.getattr(*class)).and_then(|c| c.getattr(&**member)) {
                Ok(v) => v,
                Err(_) => PyString::new(py, &format!("{class}.{member}")).into_any(),
            }
        }
        Param::Tuple(v) => PyTuple::new(py, v.iter().map(|p| to_py(py, p)).collect::<PyResult<Vec<_>>>()?)?.into_any(),
        Param::Struct(class, fields) => {
            let d = PyDict::new(py);
            for (k, p) in fields {
                d.set_item(*k, to_py(py, p)?)?;
            }
            crate::hooks::lax(py)?.getattr(*class)?.call((), Some(&d))?
        }
        Param::List(v) => PyList::new(py, v.iter().map(|p| to_py(py, p)).collect::<PyResult<Vec<_>>>()?)?.into_any(),
        Param::Prog(p) => Bound::new(py, PyProgram::closed(p.clone(), vec![]))?.into_any(),
        Param::Fun(Fun::Prog(p)) => Bound::new(py, PyProgram::closed(p.clone(), vec![]))?.into_any(),
        Param::Fun(f) => function::callable(py, f)?,
        Param::Aval(a) => Bound::new(py, ShapedArray(a.clone()))?.into_any(),
        Param::Host(f) => Bound::new(py, HostCallable(f.clone()))?.into_any(),
        Param::Policy(p) => match p.host().and_then(|h| h.downcast_ref::<Py<PyAny>>()) {
            Some(f) => f.bind(py).clone(),
            None => PyString::new(py, p.name()).into_any(),
        },
    })
}
