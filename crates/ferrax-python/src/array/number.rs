//! Arithmetic and comparison: each slot promotes, broadcasts and emits one primitive, or forwards to `ferrax.numpy`.
//!
//! INVARIANT: an operand that is neither an array nor a scalar gives `NotImplemented`, so that its
//! own class may answer; lists and tuples (exactly these classes) are refused by name.
use super::PyArray;
use super::value::{converting, held, large_unsigned, operand, python_scalar, wrap};
use crate::config::{self, Flags};
use crate::debug;
use crate::error::{IntoPyResult, guarded};
use ferrax::numpy::elementwise::{Coercion, elementwise_in};
use ferrax::numpy::promotion;
use ferrax_ir::dtype::Dtype;
use ferrax_ir::ops::pointwise::{Pointwise, Pw};
use ferrax_ir::value::{Value, Values};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};
use smallvec::smallvec;

/// Passes a warning of the core on to Python.
pub fn warn(text: String) {
    Python::attach(|py| {
        if let Ok(text) = std::ffi::CString::new(text) {
            let _ = PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2);
        }
    })
}

/// The other operand of an operator: a value, `None` for "not mine", or an error.
fn other(
    slf: &Bound<PyArray>,
    x: &Bound<PyAny>,
    symbol: &str,
    reflected: bool,
    flags: Flags,
) -> PyResult<Option<Value>> {
    if let Some(v) = held(x) {
        return Ok(Some(v.clone()));
    }
    if let Some(v) = large_unsigned(x, slf.get().value.dtype()) {
        return Ok(Some(v));
    }
    if let Some(v) = python_scalar(x, flags).map_err(|e| overflow(x, e))? {
        crate::guard::operand(x, &v, flags)?;
        return Ok(Some(v));
    }
    if let Some(converted) = converting(x)? {
        return operand(&converted, flags);
    }
    let found = operand(x, flags).map_err(|e| overflow(x, e))?;
    if found.is_none() && (x.is_exact_instance_of::<PyList>() || x.is_exact_instance_of::<PyTuple>()) {
        let (a, b) = (slf.get_type().name()?.to_string(), x.get_type().name()?.to_string());
        let (a, b) = if reflected { (b, a) } else { (a, b) };
        return Err(PyTypeError::new_err(format!("unsupported operand type(s) for {symbol}: '{a}' and '{b}'")));
    }
    Ok(found)
}
fn overflow(x: &Bound<PyAny>, e: PyErr) -> PyErr {
    if !e.is_instance_of::<PyOverflowError>(x.py()) {
        return e;
    }
    let class = super::value::type_text(x);
    PyOverflowError::new_err(format!(
        "An overflow was encountered while parsing an argument to a jitted computation, whose argument path is y. Got {class} with value {}",
        x.str().map(|s| s.to_string()).unwrap_or_default()
    ))
}

fn no_modulus() -> PyErr {
    PyTypeError::new_err("pow() of arrays takes no modulus")
}
/// `f(slf, x)`, or `f(x, slf)` if reflected.
#[inline]
fn binary<'py>(
    slf: &Bound<'py, PyArray>,
    x: &Bound<'py, PyAny>,
    f: Pw,
    coercion: Coercion,
    symbol: &str,
    reflected: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let flags = config::flags();
    let Some(y) = other(slf, x, symbol, reflected, flags)? else { return Ok(py.NotImplemented().into_bound(py)) };
    let mine = slf.get().value.clone();
    let xs: Values = if reflected { smallvec![y, mine] } else { smallvec![mine, y] };
    let out = guarded(|| elementwise_in(f, coercion, xs, flags.promotion_of_operators(), &mut warn).py(py))?;
    if debug::wanted(flags) {
        debug::check(py, f.row().name, std::slice::from_ref(&out), flags)?;
    }
    wrap(py, out)
}
fn unary<'py>(slf: &Bound<'py, PyArray>, f: Pw) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let out = guarded(|| {
        elementwise_in(
            f,
            Coercion::Any,
            smallvec![slf.get().value.clone()],
            config::flags().promotion_of_operators(),
            &mut warn,
        )
        .py(py)
    })?;
    wrap(py, out)
}
/// A function of `ferrax.numpy`, for operators that are compositions.
fn numpy_call<'py>(
    slf: &Bound<'py, PyArray>,
    x: &Bound<'py, PyAny>,
    name: &str,
    symbol: &str,
    reflected: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    if other(slf, x, symbol, reflected, config::flags())?.is_none() {
        return Ok(py.NotImplemented().into_bound(py));
    }
    let f = function(py, name)?;
    let given = if x.is_instance_of::<PyArray>() { None } else { converting(x)? };
    let x = given.as_ref().unwrap_or(x);
    if reflected { f.call1((x, slf)) } else { f.call1((slf, x)) }
}
/// Attributes of `ferrax.numpy`, looked up once.
pub fn function<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    crate::hooks::numpy(py)?.getattr(name)
}

#[pymethods]
impl PyArray {
    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Add, Coercion::Arithmetic, "+", false)
    }
    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Add, Coercion::Arithmetic, "+", true)
    }
    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Sub, Coercion::Any, "-", false)
    }
    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Sub, Coercion::Any, "-", true)
    }
    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Mul, Coercion::Arithmetic, "*", false)
    }
    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Mul, Coercion::Arithmetic, "*", true)
    }
    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Div, Coercion::Inexact, "/", false)
    }
    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Div, Coercion::Inexact, "/", true)
    }
    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::And, Coercion::Any, "&", false)
    }
    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::And, Coercion::Any, "&", true)
    }
    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Or, Coercion::Any, "|", false)
    }
    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Or, Coercion::Any, "|", true)
    }
    fn __xor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Xor, Coercion::Any, "^", false)
    }
    fn __rxor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::Xor, Coercion::Any, "^", true)
    }
    fn __lshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::ShiftLeft, Coercion::Number, "<<", false)
    }
    fn __rlshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, Pw::ShiftLeft, Coercion::Number, "<<", true)
    }
}

#[pymethods]
impl PyArray {
    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        numpy_call(slf, other, "floor_divide", "//", false)
    }
    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        numpy_call(slf, other, "floor_divide", "//", true)
    }
    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        numpy_call(slf, other, "remainder", "%", false)
    }
    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        numpy_call(slf, other, "remainder", "%", true)
    }
    fn __divmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        numpy_call(slf, other, "divmod", "divmod()", false)
    }
    fn __rdivmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        numpy_call(slf, other, "divmod", "divmod()", true)
    }
    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        numpy_call(slf, other, "matmul", "@", false)
    }
    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        numpy_call(slf, other, "matmul", "@", true)
    }
    fn __rshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, shift_right(&slf.get().value), Coercion::Number, ">>", false)
    }
    fn __rrshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(slf, other, shift_right(&slf.get().value), Coercion::Number, ">>", true)
    }
    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulus: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if !modulus.is_none() {
            return Err(no_modulus());
        }
        // A static integer exponent is a parameter, not an operand.
        if other.is_instance_of::<PyInt>()
            && let Ok(y) = other.extract::<i32>()
            && (y >= 0 || slf.get().value.dtype().is_inexact())
        {
            let py = slf.py();
            let out = guarded(|| {
                let x = &slf.get().value;
                let x =
                    if x.dtype() == Dtype::BOOL { promotion::convert(x, Dtype::I32, false).py(py)? } else { x.clone() };
                promotion::one(ferrax_ir::bind(&Pointwise { f: Pw::IntegerPow, y }.into(), &[x]).py(py)?).py(py)
            })?;
            return wrap(py, out);
        }
        numpy_call(slf, other, "power", "** or pow()", false)
    }
    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulus: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if !modulus.is_none() {
            return Err(no_modulus());
        }
        numpy_call(slf, other, "power", "** or pow()", true)
    }
    fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        unary(slf, Pw::Neg)
    }
    fn __pos__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }
    fn __abs__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let d = slf.get().value.dtype();
        if d == Dtype::BOOL || d.is_unsigned() { Ok(slf.clone().into_any()) } else { unary(slf, Pw::Abs) }
    }
    fn __invert__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        unary(slf, Pw::Not)
    }
    fn __richcmp__<'py>(slf: &Bound<'py, Self>, x: &Bound<'py, PyAny>, op: CompareOp) -> PyResult<Bound<'py, PyAny>> {
        let (f, symbol) = match op {
            CompareOp::Lt => (Pw::Lt, "<"),
            CompareOp::Le => (Pw::Le, "<="),
            CompareOp::Eq => (Pw::Eq, "=="),
            CompareOp::Ne => (Pw::Ne, "!="),
            CompareOp::Gt => (Pw::Gt, ">"),
            CompareOp::Ge => (Pw::Ge, ">="),
        };
        binary(slf, x, f, Coercion::Any, symbol, false)
    }
}

fn shift_right(x: &Value) -> Pw {
    if x.dtype().is_unsigned() { Pw::ShiftRightLogical } else { Pw::ShiftRightArithmetic }
}
