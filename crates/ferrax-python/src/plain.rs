//! Objects without references to others: holding one keeps nothing else alive.
use crate::aval::ShapedArray;
use crate::dtype;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};

/// Whether an object refers to no other.
pub fn is_plain(x: &Bound<PyAny>) -> bool {
    x.is_none()
        || x.is_exact_instance_of::<PyBool>()
        || x.is_exact_instance_of::<PyInt>()
        || x.is_exact_instance_of::<PyFloat>()
        || x.is_exact_instance_of::<PyString>()
}
/// The same of a tuple of them, of dtypes and of types of arrays.
pub fn refers_to_nothing(x: &Bound<PyAny>) -> bool {
    match x.cast_exact::<PyTuple>() {
        Ok(t) => t.iter().all(|x| refers_to_nothing(&x)),
        Err(_) => is_plain(x) || x.is_exact_instance_of::<ShapedArray>() || is_dtype(x),
    }
}
fn is_dtype(x: &Bound<PyAny>) -> bool {
    dtype::numpy(x.py()).and_then(|np| x.is_instance(&np.getattr("dtype")?)).unwrap_or(false)
}
