//! Arrays on the way between devices.
//!
//! INVARIANT: an array that a user put on a device is committed to it; one that went along with its operands is not.
use crate::array::value::{self, held};
use crate::config;
use crate::device::from_py_object;
use crate::dtype;
use crate::error::IntoPyResult;
use ferrax::array;
use ferrax::device::Device;
use ferrax_ir::error::Res;
use ferrax_ir::ops::device_put::DevicePut;
use ferrax_ir::ops::pmap::Places;
use ferrax_ir::value::Value;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// device_put(x, device, src): an array of x's elements there; `device` None leaves an array where it is. The cotangent goes to `src`, to
/// where x is if that is not said.
#[pyfunction]
#[pyo3(signature = (x, device=None, src=None))]
pub fn device_put<'py>(
    x: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    src: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let flags = config::flags();
    let to = match device {
        Some(d) => from_py_object(d)?,
        None => None,
    };
    if held(x).is_none() && x.is_instance(dtype::ndarray(py)?)? {
        return value::wrap(py, value::from_ndarray_on(x, flags.x64(), to)?);
    }
    let Some(v) = value::operand(x, flags)? else {
        return Err(PyTypeError::new_err(format!(
            "Argument '{}' of type {} is not a valid JAX type",
            x.str()?,
            value::type_text(x)
        )));
    };
    match (v, to) {
        (Value::Lit(l), to) => {
            let d = to.unwrap_or_else(ferrax::eval::current_device);
            let a = array::from_lit(&l, d).py(py)?;
            value::wrap(py, Value::Array(array::put(&a, d, to.is_some()).py(py)?))
        }
        (Value::Array(a), Some(d)) => value::wrap(py, Value::Array(py.detach(|| array::put(&a, d, true)).py(py)?)),
        (v, Some(d)) => value::wrap(py, put_traced(&v, d, src.map_or(Ok(None), from_py_object)?).py(py)?),
        (v, None) => value::wrap(py, v),
    }
}
/// The equation that puts a value on a device. Its cotangent goes back to where the value is, if that is known.
pub fn put_traced(v: &Value, to: &Device, src: Option<&Device>) -> Res<Value> {
    let src = match v.concrete() {
        _ if src.is_some() => Places(src.iter().map(|d| d.id).collect()),
        Some(Value::Array(a)) => Places(vec![array::data(a)?.device.id]),
        _ => Places::default(),
    };
    let op = DevicePut { devices: Places(vec![to.id]), srcs: src };
    Ok(ferrax_ir::bind(&op.into(), std::slice::from_ref(v))?.remove(0))
}
