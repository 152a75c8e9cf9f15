//! Methods of concrete arrays only: readiness, deletion, placement.
//!
//! INVARIANT: on a tracer each of them raises JAX's error.
use super::PyArray;
use crate::device;
use crate::error::{IntoPyResult, named};
use crate::placement;
use crate::trace_errors;
use ferrax::array;
use ferrax_ir::error::ErrorKind;
use ferrax_ir::value::{Array, Value};
use ferrax_kernel::Dims;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PySet;

impl PyArray {
    /// The array, where a tracer has no such attribute.
    fn only(&self, name: &str) -> PyResult<&Array> {
        match &self.value {
            Value::Array(a) => Ok(a),
            _ => Err(PyAttributeError::new_err(format!("Tracer has no attribute {name}"))),
        }
    }
    /// The array; for a tracer an error that a concrete value is required.
    fn concretely(&self, py: Python, what: &str) -> PyResult<&Array> {
        match &self.value {
            Value::Array(a) => Ok(a),
            _ => {
                let note = format!("The {what} traced array with shape {}.", self.value.aval().long());
                Err(trace_errors::concretization(py, &self.value, ErrorKind::Concretization, &note))
            }
        }
    }
    /// The array; for a tracer an error that the method is not available.
    fn available(&self, py: Python, kind: &str, name: &str) -> PyResult<&Array> {
        match &self.value {
            Value::Array(a) => Ok(a),
            _ => Err(PyAttributeError::new_err(format!(
                "The '{name}' {kind} is not available on traced array with shape {}.{}",
                self.value.aval().long(),
                trace_errors::origin(py, &self.value)
            ))),
        }
    }
}

#[pymethods]
impl PyArray {
    /// The origin of a traced value for error messages: the function being traced, and the
    /// arguments it depends on.
    fn _origin_msg(&self, py: Python) -> String {
        trace_errors::origin(py, &self.value)
    }
    /// Waits until the elements are computed; raises the error of a failed computation. Returns the
    /// array.
    fn block_until_ready<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        let a = slf.get().available(py, "method", "block_until_ready")?;
        if array::data(a).py(py)?.is_deleted() {
            return Err(named(
                py,
                "JaxRuntimeError",
                "INVALID_ARGUMENT: BlockHostUntilReady() called on deleted or donated buffer",
            ));
        }
        for s in &array::shards(a).py(py)? {
            array::finished(&s.buffer).py(py)?;
        }
        Ok(slf.clone())
    }
    fn is_ready(&self, py: Python) -> PyResult<bool> {
        let d = array::data(self.only("is_ready")?).py(py)?;
        if d.is_deleted() {
            return Err(PyRuntimeError::new_err(format!(
                "Array has been deleted with shape={}.",
                self.value.aval().long()
            )));
        }
        Ok(d.is_ready())
    }
    fn is_deleted(&self, py: Python) -> PyResult<bool> {
        Ok(array::data(self.concretely(py, "is_deleted() method was called on")?).py(py)?.is_deleted())
    }
    /// Gives the memory back; every later use of the array is an error.
    fn delete(&self, py: Python) -> PyResult<()> {
        array::data(self.concretely(py, "delete() method was called on")?).py(py)?.delete();
        Ok(())
    }
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        let a = self.concretely(py, "devices() method was called on")?;
        let shards = array::shards(a).py(py)?;
        let devices: Vec<_> = match &array::data(a).py(py)?.layout {
            Some(l) => l.devices().to_vec(),
            None => shards.iter().map(|s| s.device).collect(),
        };
        PySet::new(py, devices.into_iter().map(|d| device::object(py, d)).collect::<PyResult<Vec<_>>>()?)
    }
    /// The device that holds the array, or its sharding if there are several.
    #[getter]
    fn device<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let d = array::data(slf.get().only("device")?).py(py)?;
        match &d.layout {
            Some(l) if l.devices().len() > 1 => placement::sharding(py, l),
            _ => Ok(device::object(py, d.device)?.into_any()),
        }
    }
    #[getter]
    fn sharding<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, me) = (slf.py(), slf.get());
        let Value::Array(a) = &me.value else {
            return Err(PyAttributeError::new_err(format!(
                "The 'sharding' attribute is not available on traced array with shape {}. To query sharding information on tracers, use `jax.typeof(x)`.",
                me.value.aval().long()
            )));
        };
        placement::sharding_of(py, a)
    }
    #[getter]
    fn committed(&self, py: Python) -> PyResult<bool> {
        Ok(array::data(self.concretely(py, "'committed' attribute is not available on")?).py(py)?.committed)
    }
    #[getter]
    fn is_fully_addressable(&self, py: Python) -> PyResult<bool> {
        let a = self.concretely(py, "is_fully_addressable property was called on")?;
        Ok(array::data(a).py(py)?.layout.as_ref().is_none_or(|l| l.is_addressable()))
    }
    #[getter]
    fn is_fully_replicated(&self, py: Python) -> PyResult<bool> {
        let a = self.concretely(py, "'is_fully_replicated' attribute is not available on")?;
        Ok(array::data(a).py(py)?.layout.as_ref().is_none_or(|l| l.is_replicated()))
    }
    /// The parts of the array, one a device: a list of `Shard`.
    #[getter]
    fn addressable_shards<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, me) = (slf.py(), slf.get());
        let a = me.concretely(py, "'addressable_shards' attribute is not available on")?;
        let shards = array::shards(a).py(py)?;
        let committed = array::data(a).py(py)?.committed;
        let layout = &array::data(a).py(py)?.layout;
        let shape = layout.as_ref().map(|l| l.part_shape(&a.aval().shape)).transpose().py(py)?;
        let mut parts = vec![];
        for s in shards {
            let mut aval = a.aval().clone();
            if let Some(part) = &shape {
                aval.shape = Dims::new(part);
            }
            let part = array::array(aval, s.device, s.buffer.clone(), committed);
            parts.push(super::value::wrap(py, Value::Array(part))?);
        }
        crate::hooks::shards(py)?.call1((slf, parts))
    }
    #[getter]
    fn global_shards<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        crate::hooks::global_shards(slf.py())?.call1((slf,))
    }
    fn addressable_data<'py>(slf: &Bound<'py, Self>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        // of copies any is as good
        let copies = matches!(slf.get().value, Value::Array(_)) && slf.get().is_fully_replicated(slf.py())?;
        let index = if copies { 0 } else { index };
        slf.getattr("addressable_shards")?.get_item(index)?.getattr("data")
    }
    fn copy_to_host_async(&self, py: Python) -> PyResult<()> {
        // memory that the host can read needs no copy; a deleted array has nothing to copy
        array::shards(self.available(py, "method", "copy_to_host_async")?).py(py).map(drop)
    }
    fn on_device_size_in_bytes(&self, py: Python) -> PyResult<usize> {
        let shards = array::shards(self.concretely(py, "on_device_size_in_bytes() method was called on")?).py(py)?;
        Ok(shards.iter().map(|s| s.buffer.bytes()).sum())
    }
    fn platform(&self, py: Python) -> PyResult<&'static str> {
        Ok(array::shards(self.only("platform")?).py(py)?[0].device.platform())
    }
    fn unsafe_buffer_pointer(&self, py: Python) -> PyResult<usize> {
        let a = self.concretely(py, "unsafe_buffer_pointer() method was called on")?;
        if super::buffers::device_count(py, a)? > 1 {
            let note = "INVALID_ARGUMENT: UnsafeBufferPointer() is supported only for unsharded arrays.";
            return Err(named(py, "JaxRuntimeError", note));
        }
        match super::buffers::host_bytes(py, a)? {
            b @ super::buffers::Bytes::Device(_) => Ok(super::buffers::HostMemory(b).address()),
            _ => Err(PyRuntimeError::new_err("the array's memory cannot be read by the host")),
        }
    }
}
