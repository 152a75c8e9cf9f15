//! Values on the host: numpy arrays, Python numbers, text.
//!
//! INVARIANT: converting a tracer without a value raises JAX's error for that conversion. Under
//! `grad` and `jvp` there is a value; `if`, `int` and `item` use it as in JAX, and conversions that
//! would silently turn a float into a constant are refused.
use super::value::{to_ndarray, wrap};
use super::{PyArray, tracer_text};
use crate::dtype;
use crate::error::IntoPyResult;
use crate::ffi::lent;
use crate::trace_errors;
use ferrax::array;
use ferrax::device::HOST_MEMORY;
use ferrax_ir::aval::Lit;
use ferrax_ir::dtype::Dtype;
use ferrax_ir::error::ErrorKind;
use ferrax_ir::value::Value;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyString, PyTuple};

impl PyArray {
    /// The value, if no transformation follows it. Called where a number would leave a derivative,
    /// since the number has no derivative.
    fn settled(&self, py: Python, kind: ErrorKind, note: &str) -> PyResult<&Value> {
        match &self.value {
            Value::Tracer(_) => Err(trace_errors::concretization(py, &self.value, kind, note)),
            v => Ok(v),
        }
    }
    /// The number, behind derivatives too: for decisions and integers, through which nothing is differentiated.
    fn known(&self, py: Python, kind: ErrorKind, note: &str) -> PyResult<&Value> {
        self.value.concrete().ok_or_else(|| trace_errors::concretization(py, &self.value, kind, note))
    }
    fn check_scalar(&self) -> PyResult<()> {
        match self.value.rank() {
            0 => Ok(()),
            n => Err(PyTypeError::new_err(format!(
                "Only scalar arrays can be converted to Python scalars; got arr.ndim={n}"
            ))),
        }
    }
    /// The scalar for the Python type `function`.
    fn scalar(&self, py: Python, function: &str) -> PyResult<Lit> {
        self.check_scalar()?;
        self.settled(py, ErrorKind::Concretization, &scalar_note(function))?.item().py(py)
    }
}
/// Whether some of an array's devices belong to other processes, and hold other parts: its text has no elements, as in JAX.
fn is_elsewhere(py: Python, v: &Value) -> PyResult<bool> {
    let Value::Array(a) = v else { return Ok(false) };
    Ok(array::data(a).py(py)?.layout.as_ref().is_some_and(|l| !l.is_addressable() && !l.is_replicated()))
}
fn scalar_note(function: &str) -> String {
    format!(
        "The problem arose with the `{function}` function. If trying to convert the data type of a value, try using `x.astype({function})` or `jnp.array(x, {function})` instead."
    )
}
/// A literal as a Python number.
pub fn number<'py>(py: Python<'py>, l: &Lit) -> PyResult<Bound<'py, PyAny>> {
    Ok(match (l.scalar(), l.dtype()) {
        (Some(s), d) if d.is_float() => s.to_f64().into_pyobject(py)?.into_any(),
        (Some(s), Dtype::BOOL) => (s.bits != 0).into_pyobject(py)?.to_owned().into_any(),
        (Some(s), d) if d.is_unsigned() => s.bits.into_pyobject(py)?.into_any(),
        (Some(s), _) => s.to_i64().into_pyobject(py)?.into_any(),
        (None, _) => {
            let (re, im) = l.parts();
            PyComplex::from_doubles(py, re, im).into_any()
        }
    })
}

#[pymethods]
impl PyArray {
    /// The elements as a numpy array: as JAX's internal name has it, which libraries read.
    #[getter]
    fn _value<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_ndarray(slf.py(), slf.get().settled(slf.py(), ErrorKind::TracerArray, "")?)
    }
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let a = to_ndarray(py, slf.get().settled(py, ErrorKind::TracerArray, "")?);
        let a = a.map_err(|e| super::buffers::swallowed(slf.as_any()).unwrap_or(e))?;
        let copies = copy.is_some_and(|c| c.is_truthy().unwrap_or(false));
        if let Some(d) = dtype.filter(|d| !d.is_none()) {
            let keywords = PyDict::new(py);
            keywords.set_item("copy", copies)?;
            return a.call_method("astype", (d,), Some(&keywords));
        }
        if copies { a.call_method0("copy") } else { Ok(a) }
    }
    fn __bool__(&self, py: Python) -> PyResult<bool> {
        match self.value.shape().iter().product::<usize>() {
            0 => Err(PyValueError::new_err(
                "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty.",
            )),
            1 => {
                let v = self.known(py, ErrorKind::TracerBool, "")?;
                if self.value.dtype() == Dtype::C128 {
                    to_ndarray(py, v)?.is_truthy()
                } else {
                    Ok(!v.item().py(py)?.is_zero())
                }
            }
            _ => Err(PyValueError::new_err(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
            )),
        }
    }
    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<f64> {
        let l = self.scalar(py, "float")?;
        match l.scalar() {
            Some(s) => Ok(s.to_f64()),
            // of a complex number Python's own refusal
            None => py.import("builtins")?.getattr("float")?.call1((number(py, &l)?,))?.extract(),
        }
    }
    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.check_scalar()?;
        let x = number(py, &self.known(py, ErrorKind::Concretization, &scalar_note("int"))?.item().py(py)?)?;
        py.import("builtins")?.getattr("int")?.call1((x,))
    }
    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.value.dtype() == Dtype::C128 && self.value.rank() == 0 {
            return to_ndarray(py, self.settled(py, ErrorKind::Concretization, &scalar_note("complex"))?)?
                .call_method0("item");
        }
        let (re, im) = self.scalar(py, "complex")?.parts();
        Ok(PyComplex::from_doubles(py, re, im).into_any())
    }
    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if !self.value.dtype().is_int() || self.value.rank() > 0 {
            return Err(PyTypeError::new_err("Only integer scalar arrays can be converted to a scalar index."));
        }
        number(py, &self.known(py, ErrorKind::TracerInteger, "")?.item().py(py)?)
    }
    #[pyo3(signature = (*args))]
    fn item<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let v = slf.get().known(py, ErrorKind::Concretization, "This occurred in the item() method of jax.Array")?;
        if args.is_empty() && slf.get().value.shape().iter().product::<usize>() != 1 {
            return Err(PyValueError::new_err("can only convert an array of size 1 to a Python scalar"));
        }
        to_ndarray(py, v)?.call_method1("item", args)
    }
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let note = format!("The tolist() method was called on traced array with shape {}.", self.value.aval().long());
        to_ndarray(py, self.settled(py, ErrorKind::Concretization, &note)?)?.call_method0("tolist")
    }
    #[pyo3(signature = (order="C"))]
    fn tobytes<'py>(&self, py: Python<'py>, order: &str) -> PyResult<Bound<'py, PyAny>> {
        let note = format!("The tobytes() method was called on traced array with shape {}.", self.value.aval().long());
        to_ndarray(py, self.settled(py, ErrorKind::Concretization, &note)?)?.call_method1("tobytes", (order,))
    }
    fn __format__<'py>(slf: &Bound<'py, Self>, spec: &str) -> PyResult<Bound<'py, PyString>> {
        let py = slf.py();
        let me = slf.get();
        let terms = me.value.cut().get().is_some_and(|p| !p.spec.unreduced.is_empty());
        if (terms && me.value.concrete().is_some()) || is_elsewhere(py, &me.value)? {
            return slf.repr();
        }
        if spec.is_empty() && me.value.is_tracer() {
            return slf.str();
        }
        match me.value.concrete() {
            // as NumPy's scalar: a float of any width is formatted as Python's
            Some(v) if me.value.rank() == 0 && !me.value.dtype().is_key() => {
                let x = to_ndarray(py, v)?.get_item(PyTuple::empty(py))?;
                Ok(x.call_method1("__format__", (spec,))?.cast_into()?)
            }
            _ if spec.is_empty() => slf.str(),
            None => Err(PyTypeError::new_err(format!(
                "unsupported format string passed to {}.__format__",
                slf.get_type().name()?
            ))),
            Some(v) => Err(PyTypeError::new_err(format!(
                "unsupported format string passed to {}.__format__",
                if v.dtype().is_key() { "PRNGKeyArray" } else { "numpy.ndarray" }
            ))),
        }
    }
    fn __str__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        let (py, me) = (slf.py(), slf.get());
        match &me.value {
            Value::Tracer(_) => Ok(PyString::new(py, &tracer_text(py, &me.value)?)),
            _ if me.value.dtype().is_key() => slf.repr(),
            v if v.cut().get().is_some_and(|p| !p.spec.unreduced.is_empty()) || is_elsewhere(py, v)? => slf.repr(),
            v => to_ndarray(py, v)?.str(),
        }
    }
    /// As JAX prints: `Array([1., 2.], dtype=float32)`.
    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<String> {
        let (py, me) = (slf.py(), slf.get());
        let Value::Array(a) = &me.value else { return tracer_text(py, &me.value) };
        let np = dtype::numpy(py)?;
        let aval = a.aval();
        let weak = if aval.weak { ", weak_type=True" } else { "" };
        if aval.cut.get().is_some_and(|p| !p.spec.unreduced.is_empty()) {
            let (shape, sharding) = (slf.getattr("shape")?.repr()?, slf.getattr("sharding")?.repr()?);
            return Ok(format!("Array(shape={shape}, dtype={}{weak}, sharding={sharding})", aval.dtype.long()));
        }
        if is_elsewhere(py, &me.value)? {
            return Ok(format!("Array(shape={}, dtype={}{weak})", slf.getattr("shape")?.repr()?, aval.dtype.long()));
        }
        if let Dtype::Key(k) = aval.dtype {
            let words = super::value::raw_ndarray(py, np, a, Dtype::U32, &aval.shape.insert(aval.rank(), k.words()))?;
            return Ok(format!(
                "Array({}, dtype={}) overlaying:\n{}",
                slf.getattr("shape")?.repr()?,
                aval.dtype.long(),
                words.str()?
            ));
        }
        let x = to_ndarray(py, &me.value)?;
        let dtype = format!("dtype={}{weak})", aval.dtype.long());
        let prefix = "Array(";
        if aval.shape.contains(&0) {
            return Ok(format!("{prefix}[], shape={}, {dtype}", slf.getattr("shape")?.repr()?));
        }
        let keywords = PyDict::new(py);
        keywords.set_item("prefix", prefix)?;
        keywords.set_item("suffix", ",")?;
        keywords.set_item("separator", ", ")?;
        let body: String = np.call_method("array2string", (x,), Some(&keywords))?.extract()?;
        let width: usize = np.call_method0("get_printoptions")?.get_item("linewidth")?.extract()?;
        let text = format!("{prefix}{body}");
        let last = text.rsplit('\n').next().map_or(0, |s| s.chars().count());
        let gap = if last + 1 + dtype.chars().count() + 1 > width {
            format!("\n{}", " ".repeat(prefix.len()))
        } else {
            " ".into()
        };
        Ok(format!("{text},{gap}{dtype}"))
    }
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, me) = (slf.py(), slf.get());
        let v = me.settled(py, ErrorKind::Concretization, "This occurred while pickling or copying the value.")?;
        if let Value::Array(a) = v
            && let Dtype::Key(k) = a.aval().dtype
        {
            let shape = a.aval().shape.insert(a.aval().rank(), k.words());
            let words = super::value::raw_ndarray(py, dtype::numpy(py)?, a, Dtype::U32, &shape)?;
            return Ok((crate::hooks::unpickled_key(py)?.clone(), (words, k.name()).into_pyobject(py)?));
        }
        let rebuild = crate::hooks::own(py, "_from_pickle")?;
        Ok((rebuild, (to_ndarray(py, v)?, me.value.weak()).into_pyobject(py)?))
    }
    /// Another array of the same elements: it shares the memory, which nothing writes to, and outlives the deletion of this one.
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        match &slf.get().value {
            Value::Array(a) => wrap(py, Value::Array(ferrax::array::again(a).py(py)?)),
            _ => Ok(slf.clone().into_any()),
        }
    }
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PyArray::__copy__(slf)
    }
    /// The array for another library, by DLPack. A consumer that does not support the read-only
    /// flag gets a copy.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        if let Value::Array(a) = &self.value
            && let device = array::data(a).py(py)?.device
            && device.memory_kind().0 != HOST_MEMORY
        {
            let wanted: Option<(u32, u32)> = dl_device.map(|d| d.extract()).transpose()?;
            if wanted != Some((HOST_MEMORY, 0)) {
                return Err(PyBufferError::new_err(format!(
                    "the array lies in the memory of {device} ({}), which other libraries cannot read\n\
                     help: ask for a copy on the host, by dl_device=(1, 0) or numpy.asarray",
                    device.backend.description()
                )));
            }
            if copy == Some(false) {
                return Err(PyValueError::new_err(format!(
                    "to bring the array from {device} to the host takes a copy"
                )));
            }
        }
        if let Value::Array(a) = &self.value
            && let n = super::buffers::device_count(py, a)?
            && n > 1
        {
            return Err(PyBufferError::new_err(format!(
                "to_dlpack can only pack a dlpack tensor from an array on a singular device, but an array with a Sharding over {n} devices was provided."
            )));
        }
        let note =
            format!("The __dlpack__() method was called on traced array with shape {}.", self.value.aval().long());
        let a = to_ndarray(py, self.settled(py, ErrorKind::Concretization, &note)?)?;
        let dtype = a.getattr("dtype")?.getattr("name")?;
        let name = dtype.cast::<PyString>()?.to_str()?;
        let bits = lent::bits_of(name);
        let a = bits.map_or(Ok(a.clone()), |bits| a.call_method1("view", (bits,)))?;
        let named = |capsule: Bound<'py, PyAny>| match bits {
            Some(_) => lent::name_elements(&capsule, name).map(|()| capsule),
            None => Ok(capsule),
        };
        let understands = max_version.is_some_and(|v| v.0 >= 1);
        if understands && copy != Some(true) {
            let keywords = PyDict::new(py);
            keywords.set_item("max_version", max_version)?;
            return named(a.call_method("__dlpack__", (), Some(&keywords))?);
        }
        if copy == Some(false) {
            return Err(PyValueError::new_err(
                "a read-only array cannot be handed over without a copy to a library that speaks DLPack before 1.0",
            ));
        }
        named(a.call_method0("copy")?.call_method0("__dlpack__")?)
    }
    /// The array's device, by DLPack's numbers.
    fn __dlpack_device__(&self, py: Python) -> PyResult<(u32, u32)> {
        match &self.value {
            Value::Array(a) => Ok(array::data(a).py(py)?.device.memory_kind()),
            _ => Ok((HOST_MEMORY, 0)),
        }
    }
}
/// Rebuilds a pickled array.
#[pyfunction]
pub fn _from_pickle<'py>(x: &Bound<'py, PyAny>, weak: bool) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let v = super::value::from_ndarray(x, true)?;
    let v = if weak { ferrax::numpy::promotion::convert(&v, v.dtype(), true).py(py)? } else { v };
    wrap(py, v)
}
