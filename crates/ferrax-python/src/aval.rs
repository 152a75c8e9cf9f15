//! `ShapedArray`: the type of an array as Python sees it.
//!
//! INVARIANT: immutable; equal types compare and hash equal. The dtype is that of the type,
//! canonical or not.
use crate::dtype;
use crate::error::IntoPyResult;
use crate::placement;
use ferrax_ir::aval::Aval;
use ferrax_ir::cut::TypedCut;
use ferrax_ir::dtype::Dtype;
use ferrax_ir::vary::Vary;
use ferrax_kernel::Dims;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyTuple};
use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};

/// ShapedArray(shape, dtype, weak_type=False): a type of arrays. `str()` is "float32[2,3]".
#[pyclass(frozen, weakref, module = "ferrax.core", name = "ShapedArray", subclass)]
pub struct ShapedArray(pub Aval);

/// A shape from a sequence of ints (or one int).
pub fn shape_of(x: &Bound<PyAny>) -> PyResult<Dims> {
    let one = |d: &Bound<PyAny>| -> PyResult<usize> {
        let n: isize = match d.extract::<isize>() {
            Ok(n) => n,
            Err(e) => d.call_method0("__index__").map_err(|_| e)?.extract()?,
        };
        usize::try_from(n).map_err(|_| {
            PyTypeError::new_err(format!(
                "Shapes must be 1D sequences of concrete values of non-negative integers, got {x}."
            ))
        })
    };
    if let Ok(t) = x.cast::<PyTuple>() {
        return t.iter_borrowed().map(|d| one(&d)).collect();
    }
    if let Ok(it) = x.try_iter() {
        return it.map(|d| one(&d?)).collect();
    }
    Ok(Dims::new(&[one(x)?]))
}
pub fn shape_to_py<'py>(py: Python<'py>, s: &[usize]) -> PyResult<Bound<'py, PyTuple>> {
    if !NAMED_SIZES.get() {
        return PyTuple::new(py, s);
    }
    PyTuple::new(py, s.iter().map(|n| size_to_py(py, *n as u128)).collect::<PyResult<Vec<_>>>()?)
}
/// A size as a Python object: a number, or the object that [`symbolic_sizes`] substitutes.
pub fn size_to_py<'py>(py: Python<'py>, n: u128) -> PyResult<Bound<'py, PyAny>> {
    let named = if NAMED_SIZES.get() { SIZES.with_borrow(|t| t.as_ref().map(|t| t.clone_ref(py))) } else { None };
    let object = named.map_or(Ok(None), |t| t.bind(py).get_item(n))?;
    object.map_or_else(|| Ok(n.into_pyobject(py)?.into_any()), Ok)
}
/// Whether sizes are symbolic on this thread.
pub fn sizes_are_symbolic() -> bool {
    NAMED_SIZES.get()
}
thread_local! {
    static NAMED_SIZES: Cell<bool> = const { Cell::new(false) };
    static SIZES: RefCell<Option<Py<PyDict>>> = const { RefCell::new(None) };
}
/// symbolic_sizes(table): from now on, on this thread, the shapes of tracers and types have the table's objects in the place of its keys;
/// None for no table. Returns the table before.
#[pyfunction]
pub fn symbolic_sizes(table: Option<Py<PyDict>>) -> Option<Py<PyDict>> {
    NAMED_SIZES.set(table.is_some());
    SIZES.replace(table)
}
pub fn size(s: &[usize]) -> u128 {
    s.iter().map(|n| *n as u128).product()
}

impl ShapedArray {
    fn text(&self) -> String {
        format!("{}{}", if self.0.weak { "~" } else { "" }, self.0.long())
    }
}

#[pymethods]
impl ShapedArray {
    #[new]
    #[pyo3(signature = (shape, dtype, weak_type=false, *, sharding=None, manual_axis_type=None, **_ignored))]
    fn new(
        shape: &Bound<PyAny>,
        dtype: &Bound<PyAny>,
        weak_type: bool,
        sharding: Option<&Bound<PyAny>>,
        manual_axis_type: Option<&Bound<PyAny>>,
        _ignored: Option<Bound<PyDict>>,
    ) -> PyResult<ShapedArray> {
        let shape = shape_of(shape)?;
        let cut = sharding.map_or(Ok(TypedCut::NONE), |s| placement::cut(s, shape.len()))?;
        if let Some(s) = sharding.filter(|_| !cut.is_none()) {
            s.call_method1("check_type", (PyTuple::new(s.py(), shape.iter())?,))?;
        }
        let mut vary = Vary::NONE;
        if let Some(mat) = manual_axis_type.filter(|m| !m.is_none()) {
            let names: Vec<String> =
                mat.getattr("varying")?.try_iter()?.map(|n| n?.extract()).collect::<PyResult<_>>()?;
            vary = Vary::of(names.into_iter().map(Into::into));
        }
        Ok(ShapedArray(Aval { weak: weak_type, cut, vary, ..Aval::of(dtype::any(dtype)?, shape) }))
    }
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        shape_to_py(py, &self.0.shape)
    }
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype::to_py(py, self.0.dtype).cloned()
    }
    #[getter]
    fn weak_type(&self) -> bool {
        self.0.weak
    }
    /// The manual axes that the value varies over, as a frozenset.
    #[getter]
    fn vma<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, self.0.vary.names().iter().map(|n| n.to_string()))
    }
    /// The same as JAX's object.
    #[getter]
    fn manual_axis_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let sets = PyDict::new(py);
        sets.set_item("varying", self.vma(py)?)?;
        for (word, names) in ["unreduced", "reduced"].into_iter().zip(self.0.cut.manual_sums()) {
            sets.set_item(word, PyFrozenSet::new(py, names.iter().map(|n| n.to_string()))?)?;
        }
        crate::hooks::manual_axis_type(py)?.call((), Some(&sets))
    }
    #[getter]
    fn mat<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.manual_axis_type(py)
    }
    #[getter]
    fn ndim(&self) -> usize {
        self.0.rank()
    }
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        size_to_py(py, size(&self.0.shape))
    }
    /// Over the abstract mesh of the type, or else the current one, which may have no axes.
    #[getter]
    pub fn sharding<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(parted) = self.0.cut.get() else {
            return crate::hooks::sharding_of_type(py)?.call1((self.0.rank(), py.None(), py.None()));
        };
        // `mat` lists the sums along axes that a body for parts names
        let explicit = parted.mesh.axes(|m| &m.explicit);
        let spec = parted.spec.clone();
        let (unreduced, reduced) = (spec.unreduced & explicit, spec.reduced & explicit);
        let [dims, unreduced, reduced] = placement::numbers(py, &spec.summed(unreduced, reduced))?;
        crate::hooks::sharding_of_type(py)?.call1((self.0.rank(), &*parted.mesh.label, dims, unreduced, reduced))
    }
    #[pyo3(signature = (short_dtypes=false))]
    fn str_short(&self, short_dtypes: bool) -> String {
        if short_dtypes { self.0.to_string() } else { self.0.long() }
    }
    /// A copy with some attributes changed.
    #[pyo3(signature = (**changes))]
    fn update(&self, changes: Option<Bound<PyDict>>) -> PyResult<ShapedArray> {
        let mut a = self.0.clone();
        for (k, v) in changes.iter().flat_map(|d| d.iter()) {
            match k.extract::<String>()?.as_str() {
                "shape" => a = a.with_shape(shape_of(&v)?),
                "dtype" => a.dtype = dtype::any(&v)?,
                "weak_type" => a.weak = v.is_truthy()?,
                "sharding" => a.cut = placement::cut(&v, a.rank())?,
                _ => {}
            }
        }
        Ok(ShapedArray(a))
    }
    /// The type of one element along the leading axis, which must not be cut.
    fn _element(&self, py: Python) -> PyResult<ShapedArray> {
        ferrax_ir::typing::leading_is_whole(&self.0).py(py)?;
        Ok(ShapedArray(self.0.unbatched(0)))
    }
    fn strip_weak_type(&self) -> ShapedArray {
        ShapedArray(self.0.strong())
    }
    /// The type of tangents: floats as they are, float0 for all else.
    fn to_tangent_aval(&self) -> ShapedArray {
        ShapedArray(self.0.tangent().unwrap_or_else(|| self.0.strong().with_dtype(Dtype::Float0)))
    }
    fn at_least_vspace(&self) -> ShapedArray {
        self.to_tangent_aval()
    }
    fn __str__(&self) -> String {
        self.text()
    }
    fn __repr__(&self) -> String {
        format!("ShapedArray({}{})", self.0.long(), if self.0.weak { ", weak_type=True" } else { "" })
    }
    fn __hash__(&self) -> u64 {
        let mut h = DefaultHasher::new();
        self.0.hash(&mut h);
        h.finish()
    }
    fn __richcmp__(&self, py: Python, other: &Bound<PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let Ok(o) = other.cast::<ShapedArray>() else { return Ok(py.NotImplemented()) };
        let same = self.0 == o.get().0;
        Ok(match op {
            CompareOp::Eq => same.into_pyobject(py)?.to_owned().into_any().unbind(),
            CompareOp::Ne => (!same).into_pyobject(py)?.to_owned().into_any().unbind(),
            _ => py.NotImplemented(),
        })
    }
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyTuple>, Bound<'py, PyAny>, bool))> {
        let (py, a) = (slf.py(), slf.get());
        Ok((slf.get_type().into_any(), (a.shape(py)?, a.dtype(py)?, a.0.weak)))
    }
}
