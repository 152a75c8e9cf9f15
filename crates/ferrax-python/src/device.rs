//! Devices as Python objects.
//!
//! INVARIANT: two objects of one device are equal; each of JAX's names for a platform finds its
//! devices.
use crate::error::{IntoPyResult, from_py};
use crate::ffi::threads::entered;
use ferrax::compiled::{CompileCheck, set_check};
use ferrax::device::{self, Device, Platform};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

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
    /// The client that runs programs on the devices of its platform.
    #[getter]
    fn client<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::hooks::client_of(py)?.call1((self.0.platform(),))
    }
    /// The memories that it reaches: its own.
    fn addressable_memories<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        crate::hooks::memories_of(slf.py())?.call1((slf,))
    }
    fn default_memory<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::memory(slf, "device")
    }
    /// The memory of a kind; a JaxRuntimeError where it reaches none.
    fn memory<'py>(slf: &Bound<'py, Self>, kind: &str) -> PyResult<Bound<'py, PyAny>> {
        crate::hooks::memory_of(slf.py())?.call1((slf, kind))
    }
    #[getter]
    fn process_index(&self) -> usize {
        self.0.process
    }
    #[getter]
    fn host_id(&self) -> usize {
        self.0.process
    }
    /// Its number among those of its platform and process.
    #[getter]
    fn local_hardware_id(&self) -> usize {
        self.0.platform_devices().iter().take_while(|d| *d != self.0).filter(|d| d.process == self.0.process).count()
    }
    /// The backend's description: the adapter's name, the instruction set.
    #[getter]
    fn description(&self) -> String {
        self.0.backend.description()
    }
    /// The memory that arrays use, by JAX's names; None if it is not counted.
    fn memory_stats<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(stats) = self.0.backend.memory_stats() else { return Ok(None) };
        let d = PyDict::new(py);
        for (name, n) in [
            ("num_allocs", stats.requests),
            ("bytes_in_use", stats.in_use),
            ("peak_bytes_in_use", stats.peak),
            ("largest_alloc_size", stats.largest),
            ("bytes_reserved", stats.kept),
        ] {
            d.set_item(name, n)?;
        }
        Ok(Some(d))
    }
    /// What a GPU was asked for since it was opened: dispatches, submissions, waits, bytes ..
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let d = PyDict::new(py);
        self.0.backend.counters().into_iter().try_for_each(|(name, n)| d.set_item(name, n))?;
        Ok(d)
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
    // the sharding of a type, over a mesh without axes, requires no device
    if let Ok(axes) = x.getattr("mesh").and_then(|m| m.getattr("axis_names"))
        && axes.len()? == 0
    {
        return Ok(None);
    }
    if let Ok(set) = x.getattr("device_set") {
        let all: Vec<Bound<PyAny>> = set.try_iter()?.collect::<PyResult<_>>()?;
        if let [one] = &all[..] {
            return from_py_object(one);
        }
    }
    Err(PyValueError::new_err(format!("expected a device, got {}", x.repr()?)))
}

/// JAX's name for one of our platforms.
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
        if !order.contains(&p) {
            order.push(p);
        }
    }
    // Only where nothing else will do are GPUs looked for now: to import the library loads no driver.
    if order == [Platform::Gpu] && Platform::Gpu.devices().is_empty() {
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
/// Collects cycles of Python objects.
pub fn collect() {
    Python::attach(|py| {
        // Python itself reports a failing finalizer; objects that stay alive are reported as leaks
        let _ = py.import("gc").and_then(|gc| gc.call_method0("collect"));
    });
}
/// The flag jax_num_cpu_devices: the number of CPU devices, which are created at first use.
pub fn set_num_cpu_devices(value: &Bound<PyAny>) -> PyResult<()> {
    let n = value.extract::<Option<i64>>()?.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    device::set_num_cpu_devices(n).py(value.py())
}
/// Whether CPU devices have been created: the first array creates them.
#[pyfunction]
pub fn has_cpus() -> bool {
    device::has_cpus()
}
/// The hardware of this machine: names, each with its properties.
#[pyfunction]
pub fn inventory(py: Python) -> Vec<(String, Vec<(&'static str, String)>)> {
    py.detach(ferrax::device::inventory)
}
/// before_compiling(f): from now on f(device) is called before a program is compiled for a device,
/// and an error of it is raised by the compilation. None: no call.
#[pyfunction]
pub fn before_compiling(f: Option<Py<PyAny>>) {
    let check = |f: Py<PyAny>| -> CompileCheck {
        Arc::new(move |d| {
            let call = |py: Python| f.call1(py, (object(py, d)?,)).map(drop);
            entered(call).unwrap_or(Ok(())).map_err(from_py)
        })
    };
    set_check(f.map(check));
}
#[pyfunction]
pub fn default_backend() -> &'static str {
    ferrax::eval::current_device().platform()
}
