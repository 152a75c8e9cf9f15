//! `bind`: binds one primitive by its name; and the functions that promote and broadcast before it.
//!
//! INVARIANT: `bind` itself promotes nothing; a primitive with a sequence of results returns a
//! tuple, even for one result.
mod methods;

use crate::array::number_warning as warn;
use crate::array::value::{self, argument, operand, wrap, wrap_all};
use crate::aval::{ShapedArray, shape_of};
use crate::config;
use crate::debug;
use crate::dtype;
use crate::error::{IntoPyResult, guarded};
use crate::primitive;
use ferrax::numpy::elementwise as ew;
use ferrax::numpy::promotion;
use ferrax_ir::dtype::Dtype;
use ferrax_ir::op::Op;
use ferrax_ir::ops::pointwise::{Pointwise, Pw};
use ferrax_ir::param::Param;
use ferrax_ir::value::{Value, Values};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// Results as `bind` returns them.
fn results<'py>(py: Python<'py>, multiple: bool, out: Values) -> PyResult<Bound<'py, PyAny>> {
    if !multiple && out.len() == 1 {
        return wrap(py, promotion::one(out).py(py)?);
    }
    Ok(PyTuple::new(py, wrap_all(py, out)?)?.into_any())
}

/// bind(name, *operands, **params): the results of one primitive in the current trace.
#[pyfunction]
#[pyo3(signature = (name, /, *operands, **params))]
pub fn bind<'py>(
    name: &Bound<'py, PyString>,
    operands: &Bound<'py, PyTuple>,
    params: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    let text = name.to_str()?;
    let flags = config::flags();
    let xs: Values =
        operands.iter_borrowed().enumerate().map(|(i, x)| bindable(&x, flags, text, i)).collect::<PyResult<_>>()?;
    if params.is_none()
        && let Some(f) = Pw::from_name(text)
        && f.row().param.is_none()
    {
        let out = guarded(|| ferrax_ir::bind(&Op::Pointwise(Pointwise { f, y: 0 }), &xs).py(py))?;
        if debug::wanted(flags) {
            debug::check(py, text, &out, flags)?;
        }
        return wrap(py, promotion::one(out).py(py)?);
    }
    let mut map = primitive::map(params)?;
    if flags.original_layout() && matches!(text, "random_bits" | "random_split") && map.get("original").is_none() {
        map.insert("original".into(), Param::Bool(true));
    }
    let op = Op::from_name(text, map).py(py)?;
    let out = guarded(|| ferrax_ir::bind(&op, &xs).py(py))?;
    if text == "convert_element_type" {
        tell_of_lost_part(py, xs[0].dtype(), out[0].dtype())?;
    }
    if debug::wanted(flags) {
        debug::check_op(py, text, &op, &xs, &out, flags)?;
    }
    results(py, op.multiple(), out)
}

/// Warns that a conversion drops imaginary parts. One to booleans reads them.
#[inline]
fn tell_of_lost_part(py: Python, from: Dtype, to: Dtype) -> PyResult<()> {
    if !from.is_complex() || to.is_complex() || to == Dtype::BOOL {
        return Ok(());
    }
    let category = py.import("numpy.exceptions")?.getattr("ComplexWarning")?;
    PyErr::warn(py, &category, c"Casting complex values to real discards the imaginary part", 2)
}

/// An operand of the primitive `of`, or JAX's error for a value that is not one.
#[inline]
fn bindable(x: &Bound<PyAny>, flags: config::Flags, of: &str, at: usize) -> PyResult<Value> {
    if let Some(v) = value::held(x) {
        return Ok(v.clone());
    }
    let given = value::converting(x)?;
    operand(given.as_ref().unwrap_or(x), flags)?.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "Error interpreting argument to {of} as a JAX value. The problematic value is of type {} and was passed to {of} at position {at}.",
            value::type_text(x)
        ))
    })
}

/// elementwise(name, *operands): a pointwise primitive of operands of any dtypes and shapes, by numpy's rules.
#[pyfunction]
#[pyo3(signature = (name, /, *operands))]
pub fn elementwise<'py>(name: &Bound<'py, PyString>, operands: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let py = name.py();
    let text = name.to_str()?;
    let Some(f) = Pw::from_name(text) else {
        return Err(PyTypeError::new_err(format!("no pointwise primitive is called {text}")));
    };
    let flags = config::flags();
    let xs: Values =
        operands.iter_borrowed().enumerate().map(|(i, x)| argument(&x, flags, text, i)).collect::<PyResult<_>>()?;
    if xs.is_empty() {
        return Err(PyTypeError::new_err(format!("{text} needs an operand")));
    }
    let out = guarded(|| ew::elementwise(f, xs, flags.promotion_of_arguments(), &mut warn).py(py))?;
    if debug::wanted(flags) {
        debug::check(py, text, std::slice::from_ref(&out), flags)?;
    }
    wrap(py, out)
}

/// promote_dtypes(*xs): the arguments as arrays of their common dtype.
#[pyfunction]
#[pyo3(signature = (*xs))]
pub fn promote_dtypes<'py>(py: Python<'py>, xs: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    promoted(py, xs, |v| promotion::promote(v, config::flags().promotion_of_arguments()))
}
/// promote_dtypes_inexact(*xs): the arguments as arrays of their common float or complex dtype.
#[pyfunction]
#[pyo3(signature = (*xs))]
pub fn promote_dtypes_inexact<'py>(py: Python<'py>, xs: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    promoted(py, xs, |v| promotion::promote_inexact(v, config::flags().promotion_of_arguments()))
}
/// promote_shapes(*xs): the arguments with their ranks made equal (rank 0 stays).
#[pyfunction]
#[pyo3(signature = (*xs))]
pub fn promote_shapes<'py>(py: Python<'py>, xs: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    promoted(py, xs, |v| {
        ew::promote_shapes(
            "operation",
            v.iter().cloned().collect(),
            config::flags().promotion_of_arguments(),
            &mut warn,
        )
    })
}
fn promoted<'py>(
    py: Python<'py>,
    xs: &Bound<'py, PyTuple>,
    f: impl FnOnce(&[Value]) -> ferrax_ir::Res<Values>,
) -> PyResult<Bound<'py, PyTuple>> {
    if xs.is_empty() {
        return Ok(PyTuple::empty(py));
    }
    let flags = config::flags();
    let values: Values =
        xs.iter_borrowed().enumerate().map(|(i, x)| argument(&x, flags, "operation", i)).collect::<PyResult<_>>()?;
    let out = guarded(|| f(&values).py(py))?;
    // an argument that needed nothing comes back as the object it is
    let same = |(i, v): (usize, Value)| -> PyResult<Bound<'py, PyAny>> {
        match (&values[i], &v) {
            (a, b) if a.id().is_some() && a.id() == b.id() => {
                let x = xs.get_item(i)?;
                if value::held(&x).is_some() { Ok(x) } else { wrap(py, v) }
            }
            _ => operand_object(py, v),
        }
    };
    PyTuple::new(py, out.into_iter().enumerate().map(same).collect::<PyResult<Vec<_>>>()?)
}
/// A value as an object that keeps a literal a literal: a numpy scalar or a Python number.
fn operand_object<'py>(py: Python<'py>, v: Value) -> PyResult<Bound<'py, PyAny>> {
    wrap(py, v)
}

/// result_type(*xs): the dtype that the arguments (arrays, scalars, dtypes) are promoted to.
#[pyfunction]
#[pyo3(signature = (*xs, return_weak_type_flag=false))]
pub fn result_type<'py>(
    py: Python<'py>,
    xs: &Bound<'py, PyTuple>,
    return_weak_type_flag: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let kinds = xs.iter().map(|x| kind_of(&x)).collect::<PyResult<Vec<_>>>()?;
    if kinds.is_empty() {
        return Err(PyValueError::new_err("at least one array or dtype is required"));
    }
    let (d, weak) = promotion::result_type(&kinds, config::flags().promotion_of_arguments()).py(py)?;
    let d = dtype::to_py(py, d)?.clone();
    if return_weak_type_flag { Ok((d, weak).into_pyobject(py)?.into_any()) } else { Ok(d) }
}
fn kind_of(x: &Bound<PyAny>) -> PyResult<(Dtype, bool)> {
    if let Some(v) = value::held(x) {
        return Ok((v.dtype(), v.weak()));
    }
    if let Some(array) = value::converting(x)? {
        return kind_of(&array);
    }
    let is_class = x.is_instance_of::<pyo3::types::PyType>();
    if !is_class && let Some(a) = value::aval_of(x)? {
        return Ok((a.dtype, a.weak));
    }
    // a Python scalar class is as weak as its instances
    let py = x.py();
    let weak = x.is(py.get_type::<pyo3::types::PyInt>())
        || x.is(py.get_type::<pyo3::types::PyFloat>())
        || x.is(py.get_type::<pyo3::types::PyComplex>());
    Ok((dtype::canonical(dtype::any(x)?), weak))
}

/// broadcast_to(x, shape): x repeated to a shape by numpy's rule.
#[pyfunction]
pub fn broadcast_to<'py>(x: &Bound<'py, PyAny>, shape: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let shape = shape_of(shape)?;
    let v = argument(x, config::flags(), "broadcast_to", 0)?;
    if *v.shape() == *shape && value::held(x).is_some() {
        return Ok(x.clone());
    }
    let out = guarded(|| ew::broadcast_to(&v, &shape).py(py))?;
    wrap(py, out)
}

/// asarray(x, dtype=None, copy=None, weak_type=None): an array of x's elements; nested lists and tuples are stacked by numpy.
#[pyfunction]
#[pyo3(signature = (x, dtype=None, copy=None, weak_type=None))]
pub fn asarray<'py>(
    x: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<&Bound<'py, PyAny>>,
    weak_type: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let flags = config::flags();
    let want = match dtype {
        Some(d) if !d.is_none() => Some(dtype::requested(d, "asarray")?),
        _ => None,
    };
    if let Some(v) = value::held(x) {
        let d = want.unwrap_or(v.dtype());
        let weak = weak_type.unwrap_or(want.is_none() && v.weak());
        if d == v.dtype() && weak == v.weak() {
            if copy.is_some_and(|c| c.is_truthy().unwrap_or(false)) {
                let out = guarded(|| {
                    ferrax_ir::bind(&Op::Pointwise(Pointwise { f: Pw::Copy, y: 0 }), std::slice::from_ref(v)).py(py)
                })?;
                return wrap(py, promotion::one(out).py(py)?);
            }
            return Ok(x.clone());
        }
        let out = guarded(|| promotion::convert(v, d, weak).py(py))?;
        tell_of_lost_part(py, v.dtype(), d)?;
        return wrap(py, out);
    }
    if let Some(array) = value::converting(x)? {
        return asarray(&array, dtype, copy, weak_type);
    }
    let wide = match want {
        Some(d) => by_numpy(x, d)?,
        None => None,
    };
    let x = wide.as_ref().unwrap_or(x);
    let read = match want {
        Some(d) => value::int_at(x, d)?,
        None => None,
    };
    let v = match read {
        Some(v) => v,
        None => match operand(x, flags)? {
            Some(v) => v,
            None => {
                let made = nested(x, want)?;
                crate::guard::operand(x, &made, flags)?;
                made
            }
        },
    };
    let d = want.unwrap_or(v.dtype());
    let weak = weak_type.unwrap_or(want.is_none() && v.weak());
    tell_of_lost_part(py, v.dtype(), d)?;
    // constants are made at once, whatever trace is current
    let out = guarded(|| ferrax_ir::enter(ferrax_ir::cx::eval_root(), || promotion::convert(&v, d, weak)).py(py))?;
    wrap(py, out)
}
/// Converts a numpy array or scalar of an unsupported dtype by numpy to the requested one: reading
/// it at a supported narrower dtype would lose bits.
fn by_numpy<'py>(x: &Bound<'py, PyAny>, want: Dtype) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = x.py();
    let number = want.num().is_some() || want.is_complex();
    if !number || !(x.is_instance(dtype::ndarray(py)?)? || x.is_instance(dtype::generic(py)?)?) {
        return Ok(None);
    }
    let given = x.getattr("dtype")?;
    if !matches!(given.getattr("kind")?.extract::<char>()?, 'i' | 'u' | 'f' | 'c') {
        return Ok(None);
    }
    if let Ok(own) = dtype::exact(&given) {
        let read = dtype::canonical(own);
        if read == own || read == want {
            return Ok(None);
        }
    }
    let array = dtype::numpy(py)?.call_method1("asarray", (x,))?;
    Ok(Some(array.call_method1("astype", (dtype::to_py(py, want)?,))?))
}
/// A list, tuple or other array-like, by way of numpy. Elements must all be concrete; `ferrax.numpy.array` stacks traced ones.
fn nested(x: &Bound<PyAny>, want: Option<Dtype>) -> PyResult<Value> {
    let py = x.py();
    if x.is_none() {
        return Err(PyValueError::new_err("None is not a valid value for jnp.array"));
    }
    let np = dtype::numpy(py)?;
    let list = x.is_instance_of::<PyList>() || x.is_instance_of::<PyTuple>();
    let made = if list
        && let Some(d) = want
        && d.num().is_some()
        && dtype::without_letter(d).is_none()
    {
        np.call_method1("asarray", (x, dtype::to_py(py, d)?))?
    } else {
        np.call_method1("asarray", (x,))?
    };
    let given = made.getattr("dtype")?;
    let kind: char = given.getattr("kind")?.extract()?;
    if matches!(kind, 'O' | 'U' | 'S' | 'M' | 'm') {
        return Err(PyTypeError::new_err(format!(
            "Value '{}' with dtype {} is not a valid JAX array type. Only arrays of numeric types are supported by JAX.",
            x.str()?,
            given.str()?
        )));
    }
    value::from_ndarray(&made, config::flags().x64())
}

/// get_aval(x): the type of an array or scalar.
#[pyfunction]
pub fn get_aval<'py>(x: &Bound<'py, PyAny>) -> PyResult<ShapedArray> {
    match value::aval_of(x)? {
        Some(a) => Ok(ShapedArray(a)),
        None => Err(PyTypeError::new_err(format!(
            "Argument '{}' of type {} is not a valid JAX type",
            x.str()?,
            value::type_text(x)
        ))),
    }
}
