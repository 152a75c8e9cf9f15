//! `Array`: a frozen base class with every slot, and two leaf classes without any: concrete arrays and tracers.
//!
//! ```text
//! Array ── ArrayImpl     a value on a device
//!       └─ Tracer        a value that a transform traces
//! ```
//!
//! INVARIANT: an object never changes. Operators, indexing with static indices and conversions run
//! without a Python frame. Methods that are compositions (`sum`, `reshape`, ...) are attributes
//! that `ferrax.numpy` sets on the class with [`install_methods`].
pub mod buffers;
mod concrete;
mod constants;
mod host;
mod index;
mod number;
pub mod value;

pub use host::{_from_pickle, number as number_of};
pub use number::warn as number_warning;

use crate::aval::{ShapedArray, shape_to_py, size, size_to_py};
use crate::dtype;
use crate::once::Once;
use ferrax_ir::value::{TracerNode, Value};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::{PyDict, PyTuple, PyType};

/// The class of all arrays, concrete and traced.
#[pyclass(subclass, frozen, weakref, sequence, module = "ferrax", name = "Array")]
pub struct PyArray {
    pub value: Value,
}

/// A concrete array.
#[pyclass(extends = PyArray, frozen, module = "ferrax", name = "ArrayImpl")]
pub struct ArrayImpl;

/// A value that a transformation follows: it has a type, and a number only under `grad` and `jvp`.
#[pyclass(extends = PyArray, frozen, subclass, module = "ferrax.core", name = "Tracer")]
pub struct PyTracer;

impl ArrayImpl {
    #[inline]
    pub fn object<'py>(py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, PyClassInitializer::from(PyArray { value }).add_subclass(ArrayImpl))?.into_any())
    }
}
impl PyTracer {
    #[inline]
    pub fn object<'py>(py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, PyClassInitializer::from(PyArray { value }).add_subclass(PyTracer))?.into_any())
    }
}

/// Whether `x` is an array or tracer of exactly our classes: then it is a leaf of any pytree.
#[inline]
pub fn is_array_exact(x: &Bound<PyAny>) -> bool {
    x.cast_exact::<ArrayImpl>().is_ok() || x.cast_exact::<PyTracer>().is_ok()
}

/// Whether `ferrax.numpy` has put its methods on the class.
static METHODS: Once<()> = Once::new();

/// install_methods(methods, properties): functions of an array that become methods and properties of `Array`.
#[pyfunction]
pub fn install_methods(py: Python, methods: &Bound<PyDict>, properties: &Bound<PyDict>) -> PyResult<()> {
    let class = py.get_type::<PyArray>();
    for (name, f) in methods {
        class.setattr(name.cast()?, f)?;
    }
    let property = py.import("builtins")?.getattr("property")?;
    for (name, f) in properties {
        class.setattr(name.cast()?, property.call1((f,))?)?;
    }
    METHODS.get_or_init(py, || ());
    Ok(())
}

#[pymethods]
impl PyArray {
    #[new]
    #[classmethod]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(cls: &Bound<PyType>, _args: &Bound<PyTuple>, _kwargs: Option<&Bound<PyDict>>) -> PyResult<PyArray> {
        Err(PyTypeError::new_err(format!("cannot create '{}' instances; use ferrax.numpy.array", cls.name()?)))
    }
    #[classattr]
    fn __array_priority__() -> i32 {
        100
    }
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.value.is_tracer() { shape_to_py(py, self.value.shape()) } else { PyTuple::new(py, self.value.shape()) }
    }
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype::to_py(py, self.value.dtype()).cloned()
    }
    #[getter]
    fn ndim(&self) -> usize {
        self.value.rank()
    }
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let n = size(self.value.shape());
        if self.value.is_tracer() { size_to_py(py, n) } else { Ok(n.into_pyobject(py)?.into_any()) }
    }
    #[getter]
    fn itemsize(&self) -> usize {
        self.value.dtype().size()
    }
    #[getter]
    fn nbytes(&self) -> u128 {
        size(self.value.shape()) * self.value.dtype().size() as u128
    }
    #[getter]
    fn weak_type(&self) -> bool {
        self.value.weak()
    }
    #[getter]
    fn aval(&self) -> ShapedArray {
        ShapedArray(self.value.aval())
    }
    fn __len__(&self) -> PyResult<usize> {
        self.value.shape().first().copied().ok_or_else(|| PyTypeError::new_err("len() of unsized object"))
    }
    fn __setitem__(&self, _index: &Bound<PyAny>, _value: &Bound<PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use x = x.at[idx].set(y) or another .at[] method: \
             https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html",
        ))
    }
    fn __delitem__(&self, _index: &Bound<PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("JAX arrays are immutable and do not support item deletion"))
    }
    /// Attributes that `ferrax.numpy` installs: imports it if it has not been imported yet.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if METHODS.get().is_none() && !name.starts_with("__") {
            crate::hooks::numpy(py)?;
            if METHODS.get().is_some() {
                return slf.getattr(name);
            }
        }
        let class = slf.get_type();
        // Python also calls this after a getter has raised, and discards the error: call the getter
        // again.
        if let Ok(getter) = class.getattr(name).and_then(|d| d.getattr("__get__")) {
            return getter.call1((slf, &class));
        }
        if let Some(part) = tracer_part(&slf.get().value, name) {
            return match part {
                Part::Value(v) => value::wrap(py, v),
                Part::Axis(dim) => Ok(dim.into_pyobject(py)?.into_any()),
            };
        }
        // a tracer's type has more attributes
        if matches!(slf.get().value, Value::Tracer(_))
            && !name.starts_with('_')
            && let Some(found) = Bound::new(py, slf.get().aval())?.getattr_opt(name)?
        {
            return Ok(found);
        }
        Err(PyAttributeError::new_err(match slf.get().value {
            Value::Tracer(_) => format!("{} has no attribute {name}", class.name()?),
            _ => format!("'{}' object has no attribute '{name}'", class.fully_qualified_name()?),
        }))
    }
}

/// JAX's name of the class of such a tracer.
pub fn tracer_class(v: &Value) -> &'static str {
    let Value::Tracer(t) = v else { return "Array" };
    match &t.0.node {
        TracerNode::Var(..) => "DynamicJaxprTracer",
        TracerNode::Batched { .. } => "BatchTracer",
        TracerNode::Within { val, .. } => tracer_class(val),
        TracerNode::Dual { tangent: Value::Tracer(d), .. } if matches!(d.0.node, TracerNode::Var(..)) => {
            "LinearizeTracer"
        }
        TracerNode::Dual { .. } => "JVPTracer",
    }
}

enum Part {
    Value(Value),
    Axis(usize),
}

/// The parts of a tracer, by JAX's names: the values of all elements and their axis under `vmap`, value and tangent
/// under differentiation.
fn tracer_part(v: &Value, name: &str) -> Option<Part> {
    let Value::Tracer(t) = v else { return None };
    match (&t.0.node, name) {
        (TracerNode::Batched { val, .. }, "val") => Some(Part::Value(val.clone())),
        (TracerNode::Batched { dim, .. }, "batch_dim") => Some(Part::Axis(*dim)),
        (TracerNode::Dual { primal, .. }, "primal") => Some(Part::Value(primal.clone())),
        (TracerNode::Dual { tangent, .. }, "tangent") => match tangent {
            // its support is applied at the end of the transform
            Value::Tracer(t) if let TracerNode::Within { val, .. } = &t.0.node => Some(Part::Value(val.clone())),
            v => Some(Part::Value(v.clone())),
        },
        (TracerNode::Within { val, .. }, _) => tracer_part(val, name),
        _ => None,
    }
}

/// A tracer's repr: its class and type, and its parts if it has some.
pub fn tracer_text(py: Python, v: &Value) -> PyResult<String> {
    let Value::Tracer(t) = v else { return value::wrap(py, v.clone())?.str()?.extract() };
    let part = |v: &Value| -> PyResult<String> {
        Ok(match v {
            Value::Tracer(_) => tracer_text(py, v)?,
            v => value::wrap(py, v.clone())?.str()?.to_string(),
        })
    };
    let long = |v: &Value| format!("{}{}", if v.weak() { "~" } else { "" }, v.aval().long());
    Ok(match &t.0.node {
        TracerNode::Var(..) => format!("JitTracer({})", long(v)),
        TracerNode::Batched { val, .. } => format!("VmapTracer(aval={}, batched={})", long(v), long(val)),
        TracerNode::Within { val, .. } => part(val)?,
        TracerNode::Dual { primal, tangent } => match tangent {
            Value::Tracer(d) if matches!(d.0.node, TracerNode::Var(..)) => {
                format!("GradTracer(primal={}, typeof(tangent)={})", part(primal)?, tangent.aval())
            }
            _ => format!("JVPTracer(primal={}, tangent={})", part(primal)?, part(tangent)?),
        },
    })
}
