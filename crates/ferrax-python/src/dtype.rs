//! Conversion of dtypes, and the one place where 64-bit types become 32-bit ones.
//!
//! INVARIANT: an incoming dtype is made canonical for the thread's configuration, unless the caller
//! asks for it unchanged. Outgoing numpy dtype objects are always the same ones.
use crate::config;
use crate::once::Once;
use ferrax::numpy::promotion;
use ferrax_ir::dtype::{Dtype, KeyImpl};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyTuple, PyType};

/// The dtypes without numbers.
const OTHERS: [Dtype; 4] = [Dtype::FRY, Dtype::Float0, Dtype::RBG, Dtype::URBG];
/// The unsigned integer of its size under which numpy hands out the memory of a dtype that the buffer protocol has no letter for.
pub fn without_letter(d: Dtype) -> Option<&'static str> {
    match d {
        Dtype::BF16 => Some("uint16"),
        Dtype::Num(n) if n.is_small() => Some("uint8"),
        _ => None,
    }
}
fn index(d: Dtype) -> usize {
    promotion::NUMBERS.iter().chain(&OTHERS).position(|a| *a == d).unwrap_or(0)
}

/// The dtype of typed PRNG keys, which numpy lacks.
#[pyclass(frozen, eq, hash, module = "ferrax.dtypes", name = "KeyTy")]
#[derive(PartialEq, Eq, Hash)]
pub struct KeyDtype(KeyImpl);
impl KeyDtype {
    fn dtype(&self) -> Dtype {
        Dtype::Key(self.0)
    }
}
/// The dtype of keys of the generator of this tag.
#[pyfunction]
#[pyo3(signature = (tag = "fry"))]
pub fn _key_dtype<'py>(py: Python<'py>, tag: &str) -> PyResult<Bound<'py, PyAny>> {
    let r#impl = KeyImpl::from_tag(tag).ok_or_else(|| PyTypeError::new_err(format!("no keys are tagged {tag}")))?;
    to_py(py, Dtype::Key(r#impl)).cloned()
}
#[pymethods]
impl KeyDtype {
    #[getter]
    fn name(&self) -> &'static str {
        self.dtype().long()
    }
    #[getter]
    fn itemsize(&self) -> usize {
        self.dtype().size()
    }
    /// The name of the generator, as `key(seed, impl=..)` takes it.
    #[getter]
    fn implementation(&self) -> &'static str {
        self.0.name()
    }
    #[getter]
    fn kind(&self) -> &'static str {
        "V"
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((crate::hooks::own(py, "_key_dtype")?, PyTuple::new(py, [self.0.tag()])?))
    }
    /// The scalar type, `ferrax.dtypes.prng_key`.
    #[getter(r#type)]
    fn scalar_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(crate::hooks::prng_key(py)?.clone().into_any())
    }
    fn __repr__(&self) -> &'static str {
        self.dtype().long()
    }
}

pub fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static NUMPY: Once<Py<PyModule>> = Once::new();
    Ok(NUMPY.get_or_try_init(py, || py.import("numpy").map(Bound::unbind))?.bind(py))
}
/// numpy's abstract scalar class, which all numpy scalars are instances of.
pub fn generic(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static GENERIC: Once<Py<PyType>> = Once::new();
    GENERIC.import(py, "numpy", "generic")
}
pub fn ndarray(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static NDARRAY: Once<Py<PyType>> = Once::new();
    NDARRAY.import(py, "numpy", "ndarray")
}

/// The dtype object for Python.
pub fn to_py(py: Python<'_>, d: Dtype) -> PyResult<&Bound<'_, PyAny>> {
    const N: usize = promotion::NUMBERS.len() + OTHERS.len();
    static OBJECTS: [Once<Py<PyAny>>; N] = [const { Once::new() }; N];
    let make = || -> PyResult<Py<PyAny>> {
        let np = numpy(py)?;
        Ok(match d {
            Dtype::Key(k) => Bound::new(py, KeyDtype(k))?.into_any(),
            Dtype::Float0 => np.getattr("dtype")?.call1((vec![("float0", np.getattr("void")?, 0)],))?,
            d if without_letter(d).is_some() => {
                np.getattr("dtype")?.call1((py.import("ml_dtypes")?.getattr(d.long())?,))?
            }
            d => np.getattr("dtype")?.call1((d.long(),))?,
        }
        .unbind())
    };
    Ok(OBJECTS[index(d)].get_or_try_init(py, make)?.bind(py))
}

/// The dtype of a numpy dtype object, as it is.
pub fn exact(x: &Bound<PyAny>) -> PyResult<Dtype> {
    let py = x.py();
    // the objects that go out are those that mostly come in
    for d in [Dtype::F32, Dtype::I32, Dtype::BOOL, Dtype::F64, Dtype::I64, Dtype::U32, Dtype::C64] {
        if to_py(py, d)?.is(x) {
            return Ok(d);
        }
    }
    if let Ok(k) = x.cast::<KeyDtype>() {
        return Ok(k.get().dtype());
    }
    let name: String = x.getattr(crate::once::intern!(py, "name"))?.extract()?;
    if let Some(d) = Dtype::from_long(&name) {
        return Ok(d);
    }
    if x.eq(to_py(py, Dtype::Float0)?)? {
        return Ok(Dtype::Float0);
    }
    Err(PyTypeError::new_err(format!(
        "Dtype {} is not a valid JAX array type. Only arrays of numeric types are supported by JAX.",
        x.str()?
    )))
}
/// Whether numpy's array or scalar x holds numbers, rather than text, dates or objects.
pub fn is_numeric(x: &Bound<PyAny>) -> PyResult<bool> {
    let d = x.getattr(crate::once::intern!(x.py(), "dtype"))?;
    let kind = d.getattr(crate::once::intern!(x.py(), "kind"))?;
    Ok(!matches!(kind.cast::<PyString>()?.to_str()?, "O" | "U" | "S" | "M" | "m"))
}
/// The default dtype of a Python scalar class.
fn of_scalar_class(py: Python, x: &Bound<PyAny>) -> Option<Dtype> {
    let is = |t: Bound<PyType>| x.is(&t);
    if is(py.get_type::<PyFloat>()) {
        Some(Dtype::F64)
    } else if is(py.get_type::<PyInt>()) {
        Some(Dtype::I64)
    } else if is(py.get_type::<PyBool>()) {
        Some(Dtype::BOOL)
    } else if is(py.get_type::<PyComplex>()) {
        Some(Dtype::C128)
    } else {
        None
    }
}
/// Anything that numpy takes for a dtype (and a typed key's), without canonicalisation.
pub fn any(x: &Bound<PyAny>) -> PyResult<Dtype> {
    let py = x.py();
    if let Some(d) = of_scalar_class(py, x) {
        return Ok(d);
    }
    if let Ok(k) = x.cast::<KeyDtype>() {
        return Ok(k.get().dtype());
    }
    let dtype_class = numpy(py)?.getattr(crate::once::intern!(py, "dtype"))?;
    if x.is_instance(&dtype_class)? {
        return exact(x);
    }
    if let Ok(s) = x.extract::<String>() {
        if let Some(d) = Dtype::from_long(&s) {
            return Ok(d);
        }
    } else if let Ok(d) = x.getattr(crate::once::intern!(py, "dtype"))
        && d.is_instance(&dtype_class)?
    {
        // a scalar constructor such as `ferrax.numpy.float32`
        return exact(&d);
    }
    exact(&dtype_class.call1((x,))?)
}
/// The dtype that replaces `d` under the thread's configuration.
pub fn canonical(d: Dtype) -> Dtype {
    promotion::canonical(d, config::flags().x64())
}
/// A requested dtype: canonical, with a warning if that changes an explicit request.
pub fn requested(x: &Bound<PyAny>, of: &str) -> PyResult<Dtype> {
    let py = x.py();
    let given = any(x)?;
    let d = canonical(given);
    if d != given && of_scalar_class(py, x).is_none() {
        crate::hooks::narrowed(py)?.call1((given.long().to_string(), d.long().to_string(), of))?;
    }
    Ok(d)
}
