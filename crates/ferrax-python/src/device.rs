//! Devices as Python objects, and the bytes of arrays on the host.
use crate::array::PyArray;
use crate::config;
use crate::dtype;
use crate::error::{IntoPyResult, kernel_to_py};
use crate::ffi::buffers::Bytes;
use crate::value::{self, held};
use ferrax::array::{self, Shard};
use ferrax::device::{self, Device, Platform};
use ferrax_ir::error::Res;
use ferrax_ir::ops::device_put::DevicePut;
use ferrax_ir::ops::pmap::Places;
use ferrax_ir::value::{Array, Value};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};

/// One device that runs programs.
#[pyclass(frozen, weakref, module = "ferrax", name = "Device")]
pub struct PyDevice(pub &'static Device);

#[pymethods]
impl PyDevice {
    #[getter]
    #[allow(clippy::misnamed_getters)] // JAX's `id` counts within the platform
    fn id(&self) -> usize {
        self.0.index
    }
    #[getter]
    fn platform(&self) -> &'static str {
        self.0.platform()
    }
    #[getter]
    fn device_kind(&self) -> String {
        if self.0.platform() == "cpu" { "cpu".into() } else { self.0.backend.description() }
    }
    #[getter]
    fn process_index(&self) -> usize {
        0
    }
    #[getter]
    fn host_id(&self) -> usize {
        0
    }
    #[getter]
    fn local_hardware_id(&self) -> usize {
        self.0.index
    }
    /// What the backend says of itself: the adapter's name, the instruction set.
    #[getter]
    fn description(&self) -> String {
        self.0.backend.description()
    }
    fn memory_stats(&self) -> Option<()> {
        None
    }
    fn __repr__(&self) -> String {
        let class = if self.0.platform() == "cpu" { "CpuDevice" } else { "GpuDevice" };
        format!("{class}(id={})", self.0.index)
    }
    fn __str__(&self) -> String {
        self.0.to_string()
    }
    fn __eq__(&self, o: &Bound<PyAny>) -> bool {
        o.cast::<PyDevice>().is_ok_and(|o| o.get().0 == self.0)
    }
    fn __hash__(&self) -> u64 {
        let mut h = DefaultHasher::new();
        self.0.id.hash(&mut h);
        h.finish()
    }
    /// A device is a context manager: new arrays go to it.
    fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        config::config_push("jax_default_device", slf.as_any())?;
        Ok(slf)
    }
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<PyTuple>) -> PyResult<()> {
        config::config_pop(_args.py(), "jax_default_device")
    }
}

pub fn object<'py>(py: Python<'py>, d: &'static Device) -> PyResult<Bound<'py, PyDevice>> {
    Bound::new(py, PyDevice(d))
}
/// A device from a `Device`, or from a sharding of one device.
pub fn from_py_object(x: &Bound<PyAny>) -> PyResult<Option<&'static Device>> {
    if x.is_none() {
        return Ok(None);
    }
    if let Ok(d) = x.cast::<PyDevice>() {
        return Ok(Some(d.get().0));
    }
    if let Ok(s) = x.extract::<String>() {
        return match platform(&s).map_or(&[][..], device::offered) {
            [] => Err(unknown_backend(&s)),
            [first, ..] => Ok(Some(first)),
        };
    }
    if let Ok(set) = x.getattr("device_set") {
        let all: Vec<Bound<PyAny>> = set.try_iter()?.collect::<PyResult<_>>()?;
        if let [one] = &all[..] {
            return from_py_object(one);
        }
    }
    Err(PyValueError::new_err(format!("expected a device, got {}", x.repr()?)))
}

/// A name of JAX's for one of our platforms.
pub fn platform(name: &str) -> Option<Platform> {
    match name {
        "cpu" => Some(Platform::Cpu),
        "gpu" | "cuda" | "rocm" | "metal" | "vulkan" => Some(Platform::Gpu),
        _ => None,
    }
}
/// The flag jax_platforms: which platforms there are, the default first. None and "" take all, the CPU first.
pub fn set_platforms(value: &Bound<PyAny>) -> PyResult<()> {
    let names: Option<String> = value.extract()?;
    let names = names.as_deref().unwrap_or_default();
    let mut order = vec![];
    for name in names.split(',').filter(|n| !n.is_empty()) {
        let Some(p) = platform(name) else {
            return Err(PyRuntimeError::new_err(format!(
                "Unable to initialize backend '{name}': Backend '{name}' is not in the list of known backends: ['cpu', 'gpu']. (set FERRAX_PLATFORMS='' to automatically choose an available backend)"
            )));
        };
        if !order.contains(&p) && !p.devices().is_empty() {
            order.push(p);
        }
    }
    if order.is_empty() && !names.is_empty() {
        return Err(PyRuntimeError::new_err(format!(
            "Unable to initialize backend '{names}': no such device was found. (set FERRAX_PLATFORMS='' to automatically choose an available backend)"
        )));
    }
    device::set_platforms(&order);
    Ok(())
}
/// devices(backend=None): all devices of a platform.
#[pyfunction]
#[pyo3(signature = (backend=None))]
pub fn devices<'py>(py: Python<'py>, backend: Option<&str>) -> PyResult<Bound<'py, PyList>> {
    let found = match backend {
        None => device::first_device().platform_devices(),
        Some(b) => match platform(b).map_or(&[][..], device::offered) {
            [] => return Err(unknown_backend(b)),
            found => found,
        },
    };
    PyList::new(py, found.iter().map(|d| object(py, d)).collect::<PyResult<Vec<_>>>()?)
}
fn unknown_backend(b: &str) -> PyErr {
    let present =
        [Platform::Cpu, Platform::Gpu].into_iter().filter(|p| !device::offered(*p).is_empty()).map(Platform::name);
    PyRuntimeError::new_err(match b {
        "gpu" => {
            let present = present.collect::<Vec<_>>().join(",");
            format!(
                "Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. Platforms present are: {present}"
            )
        }
        _ => {
            let present = present.map(|p| format!("'{p}'")).collect::<Vec<_>>().join(", ");
            format!("Unknown backend {b}. Available backends are [{present}]")
        }
    })
}
/// Frees what cycles of Python objects hold.
pub fn collect() {
    Python::attach(|py| {
        // a failing finalizer is reported by Python itself; what stays alive is reported as a leak
        let _ = py.import("gc").and_then(|gc| gc.call_method0("collect"));
    });
}
/// The flag jax_num_cpu_devices: how many there are to be. They are made when the first is asked for.
pub fn set_num_cpu_devices(value: &Bound<PyAny>) -> PyResult<()> {
    let n = value.extract::<Option<i64>>()?.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    device::set_num_cpu_devices(n).py(value.py())
}
#[pyfunction]
pub fn default_backend() -> &'static str {
    ferrax::eval::current_device().platform()
}
#[pyfunction]
pub fn process_index() -> usize {
    0
}
#[pyfunction]
pub fn process_count() -> usize {
    1
}

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

/// The elements of an array where the host can read them.
pub fn host_bytes(py: Python, a: &Array) -> PyResult<Bytes> {
    let shards = array::shards(a).py(py)?;
    if let [Shard { buffer, .. }] = &shards[..] {
        array::wait(buffer).py(py)?;
        let in_place = match buffer.try_memory() {
            Some(Ok(m)) => m.host().is_some(),
            Some(Err(e)) => return Err(kernel_to_py(py, e)),
            None => false,
        };
        if in_place {
            return Ok(Bytes::Device(buffer.clone()));
        }
    }
    Ok(Bytes::Owned(py.detach(|| array::bytes(a)).py(py)?))
}

impl PyArray {
    /// The array behind a concrete value, an error for a tracer.
    pub fn concrete(&self) -> Option<&Array> {
        match &self.value {
            Value::Array(a) => Some(a),
            _ => None,
        }
    }
}

/// clear_caches(): forgets compiled primitives and the traces of every jitted function.
#[pyfunction]
pub fn clear_caches() {
    ferrax::eval::clear_cache();
    crate::jit::clear_all();
}

/// A rank-0 array that a program wrote down is captured as a literal; one that was computed is an input of whatever captures it, whether or not it
/// happens to be there yet.
pub fn to_lit(a: &Array) -> Option<ferrax_ir::Lit> {
    array::data(a).ok().filter(|d| d.constant && !d.is_deleted())?;
    if a.aval().dtype.is_key() || a.aval().dtype == ferrax_ir::Dtype::C128 {
        return None;
    }
    Value::Array(a.clone()).item().ok()
}
