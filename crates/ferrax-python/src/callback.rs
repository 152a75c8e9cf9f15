//! Calls from a running program back into Python.
//!
//! INVARIANT: a callback receives copies of its arrays on the host, and its results are copied
//! before they are released. The interpreter is attached only while the callback runs. It may wait
//! for anything: another thread serves the device meanwhile. An exception becomes a
//! `JaxRuntimeError` with its traceback and the exception as cause.
use crate::array::buffers;
use crate::array::value::avals;
use crate::array::value::{self, all_required, wrap_all};
use crate::dtype;
use crate::error::{IntoPyResult, guarded, named};
use crate::ffi::threads::entered;
use crate::source::name_of;
use ferrax::{array, device, runtime};
use ferrax_ir::aval::Aval;
use ferrax_ir::op::Op;
use ferrax_ir::ops::callback::{Callable, Callback, CallbackKind};
use ferrax_ir::param::Member;
use ferrax_ir::value::Value;
use ferrax_kernel::plan::HostFn;
use ferrax_kernel::{Error, Res};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

struct PythonFn {
    kind: CallbackKind,
    f: Arc<Py<PyAny>>,
    ins: Vec<Aval>,
    outs: Vec<Aval>,
}

/// Bytes in physical form as an array on the host.
fn to_array<'py>(py: Python<'py>, a: &Aval, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let array = array::from_bytes(Aval { weak: false, ..a.clone() }, bytes, &device::cpus()[0], false).py(py)?;
    value::wrap(py, Value::Array(array))
}
/// An array's bytes into their place.
fn from_numpy(i: usize, x: &Bound<PyAny>, a: &Aval, to: &mut [u8]) -> PyResult<()> {
    let py = x.py();
    let np = dtype::numpy(py)?;
    let x = np.call_method1("asarray", (x, dtype::to_py(py, a.dtype)?))?;
    let shape: Vec<usize> = x.getattr("shape")?.extract()?;
    if shape.len() != a.rank() {
        return Err(PyRuntimeError::new_err(format!(
            "Incorrect output shape for return value #{i}: Expected: {}, Actual: {}",
            PyTuple::new(py, a.shape.iter())?.repr()?,
            PyTuple::new(py, shape)?.repr()?
        )));
    }
    let x = np.call_method1(
        "ascontiguousarray",
        (np.call_method1("broadcast_to", (x, PyTuple::new(py, a.shape.iter())?))?,),
    )?;
    let x = match dtype::without_letter(a.dtype) {
        Some(bits) => x.call_method1("view", (bits,))?,
        None => x,
    };
    let fits = buffers::with_bytes(&x, |bytes| {
        if bytes.len() == to.len() {
            to.copy_from_slice(bytes);
        }
        bytes.len() == to.len()
    })?;
    if fits {
        Ok(())
    } else {
        Err(PyRuntimeError::new_err(format!("a callback returned an array that is not a {}", a.long())))
    }
}

impl HostFn for PythonFn {
    fn call(&self, ins: &[&[u8]], outs: &mut [&mut [u8]]) -> Res<()> {
        let call = |py: Python| {
            let run = || -> PyResult<()> {
                let args = self.ins.iter().zip(ins).map(|(a, b)| to_array(py, a, b)).collect::<PyResult<Vec<_>>>()?;
                // operations of a callback are evaluated at once, whatever trace was current on
                // this thread
                let out =
                    ferrax_ir::enter(ferrax_ir::cx::eval_root(), || self.f.bind(py).call1(PyTuple::new(py, args)?))?;
                let out: Vec<Bound<PyAny>> =
                    if out.is_none() { vec![] } else { out.try_iter()?.collect::<PyResult<_>>()? };
                if out.len() != self.outs.len() {
                    return Err(PyRuntimeError::new_err(format!(
                        "a callback returned {} arrays where {} were promised",
                        out.len(),
                        self.outs.len()
                    )));
                }
                let places = self.outs.iter().zip(outs);
                out.iter().zip(places).enumerate().try_for_each(|(i, (x, (a, to)))| from_numpy(i, x, a, to))
            };
            guarded(run).map_err(|e| Error::Host(Arc::new(explained(py, self.kind, e))))
        };
        // An interpreter that shuts down admits no thread.
        runtime::host(|| entered(call)).flatten().unwrap_or(Err(Error::Cancelled))
    }
}
/// The error of a callback that raised. It is logged as well: its reader may be far away, or there may be none.
fn explained(py: Python, kind: CallbackKind, e: PyErr) -> PyErr {
    // An interrupt, and an index that is checked where it is used, are not errors of the callback.
    let index = || crate::error::class(py, "JAXIndexError");
    if e.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) || index().is_ok_and(|c| e.is_instance(py, &c)) {
        return e;
    }
    // a foreign function's report is passed on unchanged
    if e.value(py).hasattr("reported").unwrap_or(false) {
        return e;
    }
    let log = || -> PyResult<()> {
        let with = PyDict::new(py);
        with.set_item("exc_info", (e.get_type(py), e.value(py), e.traceback(py)))?;
        let logger = py.import("logging")?.call_method1("getLogger", ("jax._src.callback",))?;
        logger.call_method(
            "error",
            (format!("jax.{} failed", kind.name().replacen("debug_", "debug.", 1)),),
            Some(&with),
        )?;
        Ok(())
    };
    if let Err(broken) = log() {
        broken.write_unraisable(py, None); // a handler of the user's
    }
    let text = || -> PyResult<String> {
        let lines: Vec<String> = py
            .import("traceback")?
            .call_method1("format_exception", (e.get_type(py), e.value(py), e.traceback(py)))?
            .extract()?;
        Ok(lines.concat())
    };
    let out = named(
        py,
        "JaxRuntimeError",
        &format!("INTERNAL: CpuCallback error calling callback: {}", text().unwrap_or_else(|_| e.to_string())),
    );
    out.set_cause(py, Some(e));
    out
}

/// callback(fun, operands, out_avals, kind, ordered, vmap_method) -> results; `kind` is "pure", "io", "debug" or "print".
#[pyfunction]
pub fn callback<'py>(
    fun: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyAny>,
    out_avals: &Bound<'py, PyAny>,
    kind: &str,
    ordered: bool,
    vmap_method: Option<&str>,
) -> PyResult<Bound<'py, PyList>> {
    let py = fun.py();
    let x = all_required(operands, "callback")?;
    let kind = match kind {
        "pure" => CallbackKind::Pure,
        "io" => CallbackKind::Io,
        "debug" => CallbackKind::Debug,
        "print" => CallbackKind::Print,
        _ => return Err(PyValueError::new_err(format!("no kind of callback is called {kind}"))),
    };
    let op = op(fun, kind, x.iter().map(Value::aval).collect(), avals(out_avals)?, ordered, vmap_method);
    let out = guarded(|| ferrax_ir::bind(&op, &x).py(py))?;
    PyList::new(py, wrap_all(py, out)?)
}

/// The op that calls `fun`.
pub fn op(
    fun: &Bound<PyAny>,
    kind: CallbackKind,
    ins: Vec<Aval>,
    outs: Vec<Aval>,
    ordered: bool,
    vmap_method: Option<&str>,
) -> Op {
    let f = Arc::new(fun.clone().unbind());
    let make = move |ins: &[Aval], outs: &[Aval]| {
        Arc::new(PythonFn { kind, f: f.clone(), ins: ins.to_vec(), outs: outs.to_vec() }) as Arc<dyn HostFn>
    };
    let host = Some(Arc::new(fun.clone().unbind()) as Arc<dyn Any + Send + Sync>);
    let callback = Callable { name: name_of(fun).into(), host, make: Arc::new(make) };
    Callback { kind, callback, ins, ordered, result_avals: outs, vmap_method: vmap_method.map(Into::into) }.into()
}

/// The function of a callback equation, as its parameter `callback`: it can be bound again.
///
/// Attributes:
///   callback_func: the function of arrays, as it was given.
#[pyclass(frozen, module = "ferrax._core")]
pub struct HostCallable(pub Callable);
#[pymethods]
impl HostCallable {
    #[getter]
    fn callback_func<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let f = self.0.host.as_ref().and_then(|h| h.downcast_ref::<Py<PyAny>>());
        f.map(|f| f.bind(py).clone())
            .ok_or_else(|| PyRuntimeError::new_err(format!("{} is not a Python function", self.0.name)))
    }
    #[getter]
    fn __name__(&self) -> &str {
        &self.0.name
    }
    fn __repr__(&self) -> &str {
        &self.0.name
    }
    fn __eq__(&self, other: &HostCallable) -> bool {
        self.0 == other.0
    }
    fn __hash__(&self) -> u64 {
        let mut h = DefaultHasher::new();
        self.0.hash(&mut h);
        h.finish()
    }
}
