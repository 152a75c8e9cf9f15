//! Python objects as operands, and values as Python objects.
//!
//! INVARIANT: a Python scalar becomes a weakly typed literal, a numpy scalar a strongly typed one,
//! a numpy array a copied array; the thread's configuration decides about 64-bit types.
use super::buffers;
use super::constants;
use super::{ArrayImpl, PyArray, PyTracer};
use crate::aval::ShapedArray;
use crate::config::{self, Flags};
use crate::dtype;
use crate::error::IntoPyResult;
use crate::guard;
use ferrax::{array, eval};
use ferrax_ir::aval::{Aval, Lit};
use ferrax_ir::dtype::Dtype;
use ferrax_ir::value::{Value, Values};
use ferrax_kernel::error::filled;
use ferrax_kernel::{DType, Dims, Scalar};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyTuple, PyType};
use std::cell::Cell;
use std::sync::OnceLock;

/// The value of an array or tracer object.
#[inline]
pub fn held<'a>(x: &'a Bound<PyAny>) -> Option<&'a Value> {
    match x.cast_exact::<ArrayImpl>() {
        Ok(a) => Some(&a.as_super().get().value),
        Err(_) => x.cast::<PyArray>().ok().map(|a| &a.get().value),
    }
}

/// `x` as an operand; `None` if it is neither an array nor a scalar.
#[inline]
pub fn operand(x: &Bound<PyAny>, flags: Flags) -> PyResult<Option<Value>> {
    match held(x) {
        Some(v) => Ok(Some(v.clone())),
        None => {
            let v = foreign(x, flags)?;
            if let Some(v) = &v {
                guard::operand(x, v, flags)?;
            }
            Ok(v)
        }
    }
}

/// An operand that is not ours.
fn foreign(x: &Bound<PyAny>, flags: Flags) -> PyResult<Option<Value>> {
    let py = x.py();
    if let Some(l) = python_scalar(x, flags)? {
        return Ok(Some(l));
    }
    if x.is_instance(dtype::ndarray(py)?)? {
        return if dtype::is_numeric(x)? {
            Ok(Some(constants::captured(x, from_ndarray(x, flags.x64())?)))
        } else {
            Ok(None)
        };
    }
    if x.is_instance(dtype::generic(py)?)? {
        return if dtype::is_numeric(x)? { numpy_scalar(x, flags).map(Some) } else { Ok(None) };
    }
    if let Some(array) = of_node(x)? {
        return operand(&array, flags.unguarded());
    }
    unconverted(x)?;
    if ABSTRACT.get() && x.get_type().name()?.to_str()? == "ShapeDtypeStruct" {
        let aval = x.getattr("aval")?.cast_into::<ShapedArray>()?;
        return ferrax_ir::current().zeros(&aval.get().0).py(py).map(Some);
    }
    Ok(None)
}

thread_local! { static ABSTRACT: Cell<bool> = const { Cell::new(false) } }
/// abstract_values(on): whether a `ShapeDtypeStruct` is accepted as an array of zeros of its type
/// on this thread; returns the previous setting. For functions of which only types are needed.
#[pyfunction]
pub fn abstract_values(on: bool) -> bool {
    ABSTRACT.replace(on)
}
/// While it lives, none does, and all scalars are literals: a trace that is kept must not hold the zeros, and does not depend on who looks.
pub struct Concrete {
    abstract_before: bool,
    _scalars: KnownScalars,
}
impl Concrete {
    pub fn begin() -> Concrete {
        Concrete { abstract_before: ABSTRACT.replace(false), _scalars: KnownScalars::literal() }
    }
}
impl Drop for Concrete {
    fn drop(&mut self) {
        ABSTRACT.set(self.abstract_before);
    }
}

thread_local! {
    /// Scalars written down before this age are captured, not literals.
    static CAPTURED_BEFORE: Cell<u32> = const { Cell::new(0) };
}
/// Set while a function is traced: how scalars are captured that the surrounding program wrote
/// down.
pub struct KnownScalars(u32);
impl KnownScalars {
    /// It is captured, as any array is: programs made of one closure have as many constants whether those are known or traced.
    pub fn captured() -> KnownScalars {
        KnownScalars(CAPTURED_BEFORE.replace(array::ages::begin()))
    }
    pub fn literal() -> KnownScalars {
        KnownScalars(CAPTURED_BEFORE.replace(0))
    }
    pub fn is_captured() -> bool {
        CAPTURED_BEFORE.get() != 0
    }
}
impl Drop for KnownScalars {
    fn drop(&mut self) {
        CAPTURED_BEFORE.set(self.0);
    }
}

/// The result of an object's `__jax_array__`, for functions and operators, which convert their
/// operands where they are called.
pub fn converting<'py>(x: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match x.getattr_opt(crate::once::intern!(x.py(), "__jax_array__"))? {
        Some(f) if !x.is_instance_of::<pyo3::types::PyType>() => f.call0().map(Some),
        _ => Ok(None),
    }
}
/// Whether instances of a class are inner nodes of pytrees; set by `tree`, which this module cannot
/// depend on.
pub static IS_NODE: OnceLock<fn(&Bound<PyType>) -> PyResult<bool>> = OnceLock::new();
/// The result of `__jax_array__` of a pytree's node: as an argument it is flattened, traced and
/// converted inside.
fn of_node<'py>(x: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match IS_NODE.get() {
        Some(is_node) if is_node(&x.get_type())? => converting(x),
        _ => Ok(None),
    }
}
/// Refused as an argument of a transform: converting it once or at each use would give different
/// traces.
fn unconverted(x: &Bound<PyAny>) -> PyResult<()> {
    match x.getattr_opt(crate::once::intern!(x.py(), "__jax_array__"))? {
        Some(_) if !x.is_instance_of::<pyo3::types::PyType>() => Err(PyValueError::new_err(
            "Triggering __jax_array__() during abstractification is no longer supported. To avoid this error, either explicitly convert your object using \
             jax.numpy.array(), or register your object as a pytree.",
        )),
        _ => Ok(()),
    }
}
/// Refuses masked arrays: a numpy array is converted by its elements only.
fn unmasked(x: &Bound<PyAny>) -> PyResult<()> {
    let py = x.py();
    if x.get_type().is(dtype::ndarray(py)?) || !x.hasattr(crate::once::intern!(py, "mask"))? {
        return Ok(());
    }
    if x.is_instance(&dtype::numpy(py)?.getattr("ma")?.getattr("MaskedArray")?)? {
        return Err(PyValueError::new_err(
            "numpy masked arrays are not supported as direct inputs to JAX functions. Use arr.filled() to convert the value to a standard numpy array.",
        ));
    }
    Ok(())
}

/// A bool, int, float or complex of Python, as a weak literal (a bool is never weak).
pub fn python_scalar(x: &Bound<PyAny>, flags: Flags) -> PyResult<Option<Value>> {
    // numpy's float64 and complex128 are also Python floats and complex numbers, and are strongly typed: exact classes first.
    if let Ok(f) = x.cast_exact::<PyFloat>() {
        let d = if flags.x64() { DType::F64 } else { DType::F32 };
        return Ok(Some(Value::Lit(Lit::new(Scalar::from_f64(d, f.value()), true))));
    }
    if let Ok(b) = x.cast_exact::<PyBool>() {
        return Ok(Some(Value::Lit(Lit::from(b.is_true()))));
    }
    if x.is_exact_instance_of::<PyInt>() {
        return int_literal(x, flags.x64()).map(Some);
    }
    if let Ok(c) = x.cast_exact::<PyComplex>() {
        return complex_value(c.real(), c.imag(), flags.x64(), true).map(Some);
    }
    if x.is_instance(dtype::generic(x.py())?)? {
        return Ok(None);
    }
    if x.is_instance_of::<PyInt>() {
        return int_literal(x, flags.x64()).map(Some); // an IntEnum
    }
    if let Ok(f) = x.cast::<PyFloat>() {
        let d = if flags.x64() { DType::F64 } else { DType::F32 };
        return Ok(Some(Value::Lit(Lit::new(Scalar::from_f64(d, f.value()), true))));
    }
    Ok(None)
}
fn int_literal(x: &Bound<PyAny>, x64: bool) -> PyResult<Value> {
    let (d, name) = if x64 { (DType::I64, "int64") } else { (DType::I32, "int32") };
    let n = match x.extract::<i64>() {
        Ok(n) if x64 || i32::try_from(n).is_ok() => n,
        Err(e) if !e.is_instance_of::<PyOverflowError>(x.py()) => return Err(e),
        _ => return Err(PyOverflowError::new_err(format!("Python int {} too large to convert to {name}", x.str()?))),
    };
    Ok(Value::Lit(Lit::new(Scalar::from_i64(d, n), true)))
}
/// A Python integer that only uint64 represents, beside an array of that dtype.
pub fn large_unsigned(x: &Bound<PyAny>, beside: Dtype) -> Option<Value> {
    if beside != Dtype::Num(DType::U64) || !x.is_exact_instance_of::<PyInt>() {
        return None;
    }
    let n = x.extract::<u64>().ok().filter(|n| *n > i64::MAX as u64)?;
    Some(Value::Lit(Lit::new(Scalar::from_i64(DType::U64, n as i64), true)))
}
/// Whether `x` is a Python integer and no bool.
fn is_int(x: &Bound<PyAny>) -> bool {
    x.is_instance_of::<PyInt>() && !x.is_instance_of::<PyBool>()
}
/// A Python integer at the requested dtype, which may represent it where the default integer dtype
/// does not; `None` if `x` is not such an integer.
pub fn int_at(x: &Bound<PyAny>, d: Dtype) -> PyResult<Option<Value>> {
    if !is_int(x) || x.is_instance(dtype::generic(x.py())?)? {
        return Ok(None);
    }
    Ok(match d {
        Dtype::BOOL => Some(Value::Lit(Lit::from(x.is_truthy()?))),
        Dtype::Num(n) if n.is_float() => Some(Value::Lit(Lit::new(Scalar::from_f64(n, x.extract()?), false))),
        Dtype::Num(n) => {
            let bits = n.bits();
            let (low, high) = match n.is_signed() {
                false => (0, (1i128 << bits) - 1),
                true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            };
            match x.extract::<i128>() {
                // those of 2 and 4 bits wrap
                Ok(i) if (low..=high).contains(&i) || n.is_small() => {
                    Some(Value::Lit(Lit::new(Scalar::from_i64(n, i as i64), false)))
                }
                _ => {
                    let text = format!("Python integer {} out of bounds for {}", x.str()?, d.long());
                    return Err(PyOverflowError::new_err(text));
                }
            }
        }
        Dtype::C64 | Dtype::C128 => Some(complex_value(x.extract()?, 0.0, d == Dtype::C128, false)?),
        _ => None,
    })
}
fn complex_value(re: f64, im: f64, wide: bool, weak: bool) -> PyResult<Value> {
    if !wide {
        return Ok(Value::Lit(Lit::c64(re as f32, im as f32, weak)));
    }
    let aval = Aval { weak, ..Aval::scalar(Dtype::C128) };
    let bytes = [re.to_le_bytes(), im.to_le_bytes()].concat();
    Python::attach(|py| array::from_bytes(aval, &bytes, eval::current_device(), false).py(py)).map(Value::Array)
}

/// A numpy scalar as a strongly typed literal.
fn numpy_scalar(x: &Bound<PyAny>, flags: Flags) -> PyResult<Value> {
    let py = x.py();
    let d = dtype::canonical(dtype::exact(&x.getattr(crate::once::intern!(py, "dtype"))?)?);
    match d {
        Dtype::Num(n) if n.is_float() => Ok(Value::Lit(Lit::new(Scalar::from_f64(n, x.extract()?), false))),
        Dtype::BOOL => Ok(Value::Lit(Lit::from(x.is_truthy()?))),
        Dtype::Num(n) => {
            let i = x.call_method0(crate::once::intern!(py, "item"))?;
            let i = i.extract::<i64>().or_else(|_| i.extract::<u64>().map(|u| u as i64))?;
            Ok(Value::Lit(Lit::new(Scalar::from_i64(n, i), false)))
        }
        Dtype::C64 | Dtype::C128 => {
            let re: f64 = x.getattr(crate::once::intern!(py, "real"))?.extract()?;
            let im: f64 = x.getattr(crate::once::intern!(py, "imag"))?.extract()?;
            complex_value(re, im, d == Dtype::C128, false)
        }
        _ => from_ndarray(&dtype::numpy(py)?.call_method1("asarray", (x,))?, flags.x64()),
    }
}

/// A numpy array's elements, copied to the current device.
pub fn from_ndarray(x: &Bound<PyAny>, x64: bool) -> PyResult<Value> {
    from_ndarray_on(x, x64, None)
}
/// As `from_ndarray`, on a device that a user named.
pub fn from_ndarray_on(
    x: &Bound<PyAny>,
    x64: bool,
    device: Option<&'static ferrax::device::Device>,
) -> PyResult<Value> {
    let py = x.py();
    unmasked(x)?;
    let np = dtype::numpy(py)?;
    let given = dtype::exact(&x.getattr(crate::once::intern!(py, "dtype"))?)?;
    let d = ferrax::numpy::promotion::canonical(given, x64);
    let shape: Dims = x
        .getattr(crate::once::intern!(py, "shape"))?
        .cast::<PyTuple>()?
        .iter()
        .map(|n| n.extract::<usize>())
        .collect::<PyResult<_>>()?;
    let aval = Aval::of(d, shape);
    let current = eval::current_device();
    let (device, committed) = device.map_or((current, false), |d| (d, true));
    if let Dtype::Float0 = d {
        let bytes = filled(aval.shape.size(), 0u8).map_err(ferrax_ir::Error::from).py(py)?;
        return Ok(Value::Array(array::from_bytes(aval, &bytes, device, committed).py(py)?));
    }
    // contiguous, in native byte order, and in the requested dtype
    let mut a = x.clone();
    let native: bool =
        x.getattr(crate::once::intern!(py, "dtype"))?.getattr(crate::once::intern!(py, "isnative"))?.extract()?;
    if given != d || !native {
        a = a.call_method1(crate::once::intern!(py, "astype"), (dtype::to_py(py, d)?,))?;
    }
    if !a
        .getattr(crate::once::intern!(py, "flags"))?
        .getattr(crate::once::intern!(py, "c_contiguous"))?
        .extract::<bool>()?
    {
        a = np.call_method1(crate::once::intern!(py, "ascontiguousarray"), (a,))?;
    }
    if let Some(bits) = dtype::without_letter(d) {
        a = a.call_method1(crate::once::intern!(py, "view"), (bits,))?;
    }
    let made = buffers::with_bytes(&a, |bytes| array::from_bytes(aval, bytes, device, committed))?;
    Ok(Value::Array(made.py(py)?))
}

/// `x` as an operand, or JAX's error for a value that is not one.
pub fn required(x: &Bound<PyAny>, flags: Flags, of: &str, at: usize) -> PyResult<Value> {
    match operand(x, flags)? {
        Some(v) => Ok(v),
        None => Err(not_an_array(x, of, at)),
    }
}
/// An operand of a function: `__jax_array__` is called once, where the function is called.
#[inline]
pub fn argument(x: &Bound<PyAny>, flags: Flags, of: &str, at: usize) -> PyResult<Value> {
    match held(x) {
        Some(v) => Ok(v.clone()),
        None => match python_scalar(x, flags)? {
            Some(v) => guard::operand(x, &v, flags).map(|()| v),
            None => match converting(x)? {
                Some(array) => required(&array, flags, of, at),
                None => required(x, flags, of, at),
            },
        },
    }
}
pub fn not_an_array(x: &Bound<PyAny>, of: &str, at: usize) -> PyErr {
    if let Ok(d) = x.getattr("dtype")
        && let Err(e) = dtype::exact(&d)
        && e.is_instance_of::<PyTypeError>(x.py())
    {
        return e;
    }
    PyTypeError::new_err(format!("{of} requires ndarray or scalar arguments, got {} at position {at}.", type_text(x)))
}
pub fn type_text(x: &Bound<PyAny>) -> String {
    x.get_type().repr().map(|s| s.to_string()).unwrap_or_default()
}
/// All of a sequence as operands.
pub fn all_required(xs: &Bound<PyAny>, of: &str) -> PyResult<Values> {
    let flags = config::flags();
    xs.try_iter()?.enumerate().map(|(i, x)| required(&x?, flags, of, i)).collect()
}
/// Operands, where `None` is a symbolic zero.
pub fn all_optional(xs: &Bound<PyAny>, of: &str) -> PyResult<Vec<Option<Value>>> {
    let flags = config::flags();
    let one = |(i, x): (usize, PyResult<Bound<PyAny>>)| {
        let x = x?;
        if x.is_none() || is_float0(&x)? { Ok(None) } else { required(&x, flags, of, i).map(Some) }
    };
    xs.try_iter()?.enumerate().map(one).collect()
}
fn is_float0(x: &Bound<PyAny>) -> PyResult<bool> {
    let py = x.py();
    if held(x).is_some() || !x.is_instance(dtype::ndarray(py)?)? {
        return Ok(false);
    }
    x.getattr(crate::once::intern!(py, "dtype"))?.eq(dtype::to_py(py, Dtype::Float0)?)
}

/// The type of an operand, without making an array of it.
pub fn aval_of(x: &Bound<PyAny>) -> PyResult<Option<Aval>> {
    if let Some(v) = held(x) {
        return Ok(Some(v.aval()));
    }
    let (py, flags) = (x.py(), config::flags());
    if is_int(x) && !x.is_instance(dtype::generic(py)?)? {
        // the type does not depend on the value, which may be out of its range
        let d = if flags.x64() { Dtype::I64 } else { Dtype::I32 };
        return Ok(Some(Aval { weak: true, ..Aval::scalar(d) }));
    }
    if let Some(v) = python_scalar(x, flags)? {
        return Ok(Some(v.aval()));
    }
    if x.is_instance(dtype::ndarray(py)?)? || x.is_instance(dtype::generic(py)?)? {
        if !dtype::is_numeric(x)? {
            return Ok(None);
        }
        unmasked(x)?;
        let d = dtype::canonical(dtype::exact(&x.getattr("dtype")?)?);
        return Ok(Some(Aval::of(d, crate::aval::shape_of(&x.getattr("shape")?)?)));
    }
    if let Ok(a) = x.cast::<crate::aval::ShapedArray>() {
        return Ok(Some(a.get().0.clone()));
    }
    unconverted(x)?;
    if let Ok(a) = x.getattr("aval")
        && let Ok(a) = a.cast::<crate::aval::ShapedArray>()
    {
        return Ok(Some(a.get().0.clone()));
    }
    Ok(None)
}

/// The avals of a Python sequence of `ShapedArray`s or things with a type.
pub fn avals(xs: &Bound<PyAny>) -> PyResult<Vec<Aval>> {
    xs.try_iter()?
        .map(|x| {
            let x = x?;
            match aval_of(&x)? {
                Some(a) => Ok(a),
                None => match (x.getattr("shape"), x.getattr("dtype")) {
                    (Ok(s), Ok(d)) => Ok(Aval::of(dtype::any(&d)?, crate::aval::shape_of(&s)?)),
                    _ => Err(PyTypeError::new_err(format!("{} is not the type of an array", x.repr()?))),
                },
            }
        })
        .collect()
}

/// A value as a Python object. A literal becomes an array on the current device.
#[inline]
pub fn wrap<'py>(py: Python<'py>, v: Value) -> PyResult<Bound<'py, PyAny>> {
    match v {
        Value::Array(_) => ArrayImpl::object(py, v),
        Value::Tracer(_) => PyTracer::object(py, v),
        Value::Lit(l) => {
            let a = array::from_lit(&l, eval::current_device()).py(py)?;
            ArrayImpl::object(py, Value::Array(a))
        }
    }
}
pub fn wrap_all<'py>(py: Python<'py>, vs: impl IntoIterator<Item = Value>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    vs.into_iter()
        .map(|v| match is_float0_array(&v) {
            true => to_ndarray(py, &v),
            false => wrap(py, v),
        })
        .collect()
}
/// Arrays of float0 have no elements to compute with: users meet them as numpy arrays.
#[inline]
pub fn is_float0_array(v: &Value) -> bool {
    matches!(v, Value::Array(a) if a.aval().dtype == Dtype::Float0)
}
pub fn wrap_optional<'py>(py: Python<'py>, v: Option<Value>) -> PyResult<Bound<'py, PyAny>> {
    match v {
        Some(v) => wrap(py, v),
        None => Ok(py.None().into_bound(py)),
    }
}

/// The bytes of a value on the host as a numpy array, read-only. Waits.
pub fn to_ndarray<'py>(py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyAny>> {
    let np = dtype::numpy(py)?;
    let a = match v {
        Value::Array(a) => a.clone(),
        Value::Lit(l) => array::from_lit(l, eval::current_device()).py(py)?,
        Value::Tracer(_) => return Err(PyValueError::new_err("a tracer has no elements")),
    };
    let aval = a.aval();
    if aval.dtype.is_key() {
        return Err(PyTypeError::new_err(
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use jax.random.key_data(arr) if you wish to extract the underlying integer array.",
        ));
    }
    raw_ndarray(py, np, &a, aval.dtype, &aval.shape)
}
/// The physical elements of an array under another dtype and shape of the same size.
pub fn raw_ndarray<'py>(
    py: Python<'py>,
    np: &Bound<'py, PyModule>,
    a: &ferrax_ir::value::Array,
    d: Dtype,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let shape_py = PyTuple::new(py, shape)?;
    if shape.contains(&0) || d == Dtype::Float0 {
        array::shards(a).py(py)?;
        let out = np.call_method1("zeros", (shape_py, dtype::to_py(py, d)?))?;
        out.call_method1("setflags", (false,))?;
        return Ok(out);
    }
    let memory = super::buffers::host_bytes(py, a)?;
    let flat = np.call_method1(
        crate::once::intern!(py, "frombuffer"),
        (Bound::new(py, buffers::HostMemory(memory))?, dtype::to_py(py, d)?),
    )?;
    flat.call_method1(crate::once::intern!(py, "reshape"), (shape_py,))
}

/// The error for an object that cannot be converted to an array.
pub fn no_array(x: &Bound<PyAny>) -> PyResult<PyErr> {
    Ok(PyTypeError::new_err(format!("Argument '{}' of type {} is not a valid JAX type", x.str()?, type_text(x))))
}
/// A rank-0 array that a program wrote down is captured as a literal ([`KnownScalars`] gives the
/// exceptions). A computed one is an input of the program that captures it, whether or not it is
/// ready.
pub fn to_lit(a: &ferrax_ir::value::Array) -> Option<ferrax_ir::Lit> {
    array::data(a).ok().filter(|d| d.written > 0 && d.written >= CAPTURED_BEFORE.get() && !d.is_deleted())?;
    if a.aval().dtype.is_key() || a.aval().dtype == ferrax_ir::Dtype::C128 {
        return None;
    }
    Value::Array(a.clone()).item().ok()
}
