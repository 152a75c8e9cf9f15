//! `x[i]`: static integers, slices, `...` and `None` are emitted here; other indices go to
//! `ferrax.numpy._indexing.at`.
use super::PyArray;
use super::value::{held, required, wrap};
use crate::config::flags;
use crate::error::{IntoPyResult, guarded};
use ferrax::numpy::indexing::{self, Item};
use ferrax_ir::value::Value;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicUsize, Ordering};

type Items = SmallVec<[Item; 4]>;

/// One entry of an index, if it is static.
fn item(x: &Bound<PyAny>) -> PyResult<Option<Item>> {
    if x.is_exact_instance_of::<PyInt>() {
        return Ok(x.extract::<i64>().ok().map(Item::Int));
    }
    if x.is_none() {
        return Ok(Some(Item::NewAxis));
    }
    if x.is_instance_of::<PyEllipsis>() {
        return Ok(Some(Item::Ellipsis));
    }
    if let Ok(s) = x.cast::<PySlice>() {
        let py = x.py();
        let part = |name| -> PyResult<Option<Option<i64>>> {
            let v = s.as_any().getattr(name)?;
            if v.is_none() {
                return Ok(Some(None));
            }
            if held(&v).is_some() {
                return Ok(None);
            }
            Ok(Some(Some(clamped(&v)?)))
        };
        let (start, stop, step) = (
            part(crate::once::intern!(py, "start"))?,
            part(crate::once::intern!(py, "stop"))?,
            part(crate::once::intern!(py, "step"))?,
        );
        return Ok(match (start, stop, step) {
            (Some(start), Some(stop), Some(step)) => Some(Item::Slice { start, stop, step }),
            _ => None,
        });
    }
    if x.is_instance_of::<PyInt>() && !x.is_instance_of::<PyBool>() {
        return Ok(x.extract::<i64>().ok().map(Item::Int));
    }
    let py = x.py();
    if x.is_instance(crate::dtype::generic(py)?)?
        && x.getattr(crate::once::intern!(py, "dtype"))?
            .getattr(crate::once::intern!(py, "kind"))?
            .extract::<char>()
            .is_ok_and(|k| k == 'i' || k == 'u')
    {
        return Ok(x.extract::<i64>().ok().map(Item::Int));
    }
    Ok(None)
}
/// A bound of a slice; numbers beyond 64 bits are as good as the largest.
fn clamped(x: &Bound<PyAny>) -> PyResult<i64> {
    match x.extract::<i64>() {
        Ok(i) => Ok(i),
        Err(e) if e.is_instance_of::<pyo3::exceptions::PyOverflowError>(x.py()) => {
            Ok(if x.lt(0)? { i64::MIN + 1 } else { i64::MAX })
        }
        Err(e) => match x.call_method0("__index__") {
            Ok(i) => clamped(&i),
            Err(_) => Err(e),
        },
    }
}
/// The index, if all of it is static.
fn items(index: &Bound<PyAny>) -> PyResult<Option<Items>> {
    if let Ok(t) = index.cast::<PyTuple>() {
        return t.iter_borrowed().map(|x| item(&x)).collect();
    }
    Ok(item(index)?.map(|i| Items::from_elem(i, 1)))
}

#[pymethods]
impl PyArray {
    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if crate::aval::sizes_are_symbolic() && slf.get().value.is_tracer() {
            let sizes = crate::aval::shape_to_py(py, slf.get().value.shape())?;
            crate::hooks::symbolic_slice(py)?.call1((sizes, index))?;
        }
        if let Some(items) = items(index)?
            && let Some(out) = guarded(|| indexing::static_index(&slf.get().value, &items).py(py))?
        {
            return match out {
                indexing::Indexed::Same => Ok(slf.clone().into_any()),
                indexing::Indexed::New(v) => wrap(py, v),
            };
        }
        crate::hooks::getitem(py)?.call1((slf, index))
    }
    /// `x.at[index].set(y)` and related methods: a new array with some elements changed.
    #[getter]
    fn at<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        crate::hooks::index_update_helper(slf.py())?.call1((slf,))
    }
    /// Rows are made on demand: a program that only reads the first ones does not wait for all.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let n = *slf.get().value.shape().first().ok_or_else(|| PyTypeError::new_err("iteration over a 0-d array"))?;
        let value = &slf.get().value;
        if matches!(value, Value::Array(_)) && !value.cut().of_dim(0).is_empty() {
            // types do not say where one row would lie: those of the whole are on the host's side
            let whole = required(&slf.call_method0("__array__")?, flags(), "iteration", 0)?;
            return wrap(py, whole)?.call_method0("__iter__");
        }
        if n > MAX_ROWS_AT_ONCE {
            let rows = Rows { of: slf.clone().unbind(), next: AtomicUsize::new(0), n };
            return Ok(Bound::new(py, rows)?.into_any());
        }
        let all = (0..n).map(|i| row(slf, i)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyTuple::new(py, all)?.try_iter()?.into_any())
    }
}

/// Iteration over longer arrays makes rows one by one.
const MAX_ROWS_AT_ONCE: usize = 256;

/// Row `i` of an array.
fn row<'py>(of: &Bound<'py, PyArray>, i: usize) -> PyResult<Bound<'py, PyAny>> {
    let py = of.py();
    let row = guarded(|| indexing::static_index(&of.get().value, &[Item::Int(i as i64)]).py(py))?;
    match row {
        Some(indexing::Indexed::New(v)) => wrap(py, v),
        _ => Ok(of.clone().into_any()),
    }
}

/// The rows of an array, one after the other.
#[pyclass(frozen)]
struct Rows {
    of: Py<PyArray>,
    next: AtomicUsize,
    n: usize,
}
#[pymethods]
impl Rows {
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }
    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let this = slf.get();
        let i = this.next.fetch_add(1, Ordering::Relaxed);
        if i < this.n { row(this.of.bind(slf.py()), i).map(Some) } else { Ok(None) }
    }
    fn __length_hint__(&self) -> usize {
        self.n.saturating_sub(self.next.load(Ordering::Relaxed))
    }
}
