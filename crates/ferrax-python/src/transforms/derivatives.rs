//! jvp, linearize, linear_transpose, and their linear maps.
//!
//! INVARIANT: `None` among tangents and cotangents is a symbolic zero.
use crate::array::value::{all_optional, all_required, avals, operand, wrap_all, wrap_optional};
use crate::aval::ShapedArray;
use crate::config;
use crate::error::{IntoPyResult, guarded};
use crate::function::call;
use crate::program::PyProgram;
use ferrax_ir::code::{Decoder, Encoder};
use ferrax_ir::cx::Tan;
use ferrax_ir::error::Res;
use ferrax_ir::value::Value;
use ferrax_transform::{self as transform, Linear};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::sync::Arc;

/// jvp(fun, primals, tangents) -> (outputs, their tangents)
#[pyfunction]
pub fn jvp<'py>(
    fun: &Bound<'py, PyAny>,
    primals: &Bound<'py, PyAny>,
    tangents: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    let py = fun.py();
    let x = all_required(primals, "jvp")?;
    let dx = all_optional(tangents, "jvp")?;
    if x.len() != dx.len() {
        return Err(PyTypeError::new_err(format!("jvp: {} primals but {} tangents", x.len(), dx.len())));
    }
    let (y, dy) = guarded(|| transform::jvp(&|x| call(fun, x, "jvp"), &x, &dx).py(py))?;
    Ok((PyList::new(py, wrap_all(py, y)?)?, optional_list(py, dy)?))
}
fn optional_list<'py>(py: Python<'py>, v: impl IntoIterator<Item = Tan>) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, v.into_iter().map(|t| wrap_optional(py, t)).collect::<PyResult<Vec<_>>>()?)
}

/// linearize(fun, primals) -> (outputs, the linear map from tangents to tangents)
#[pyfunction]
pub fn linearize<'py>(
    fun: &Bound<'py, PyAny>,
    primals: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyList>, PyLinear)> {
    let py = fun.py();
    let x = all_required(primals, "linearize")?;
    let (y, linear) = guarded(|| transform::linearize(&|x| call(fun, x, "grad"), &x).py(py))?;
    Ok((PyList::new(py, wrap_all(py, y)?)?, PyLinear::new(linear)))
}
/// linear_transpose(fun, avals) -> (output types, the linear map that `fun` is)
#[pyfunction]
pub fn linear_transpose<'py>(
    fun: &Bound<'py, PyAny>,
    in_avals: &Bound<'py, PyAny>,
) -> PyResult<(Vec<ShapedArray>, PyLinear)> {
    let py = fun.py();
    let ins = avals(in_avals)?;
    let linear = guarded(|| transform::linear(&|x| call(fun, x, "linear_transpose"), &ins).py(py))?;
    Ok((linear.out_avals.iter().map(|a| ShapedArray(a.clone())).collect(), PyLinear::new(linear)))
}

/// A linear map with its residuals: the derivative of a function at a point.
#[pyclass(frozen, weakref, module = "ferrax", name = "Linear")]
pub struct PyLinear(
    /// All but the residuals.
    Arc<Linear>,
    /// The residuals.
    Vec<Value>,
);

impl PyLinear {
    fn new(mut linear: Linear) -> PyLinear {
        let residuals = std::mem::take(&mut linear.residuals);
        PyLinear(Arc::new(linear), residuals)
    }
    /// The map with the residuals in it.
    fn with<T>(&self, f: impl FnOnce(&Linear) -> T) -> T {
        let l = &self.0;
        let whole = Linear {
            prog: l.prog.with_consts(l.prog.n_consts()),
            residuals: self.1.clone(),
            nz_in: l.nz_in.clone(),
            nz_out: l.nz_out.clone(),
            in_avals: l.in_avals.clone(),
            out_avals: l.out_avals.clone(),
            scopes: l.scopes,
        };
        f(&whole)
    }
}
#[pymethods]
impl PyLinear {
    #[getter]
    fn residuals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, wrap_all(py, self.1.iter().cloned())?)
    }
    /// The program of the map: residuals and tangents in, tangents out.
    #[getter]
    fn program(&self) -> PyProgram {
        let p = &self.0.prog;
        PyProgram::closed(Arc::new(p.with_consts(p.n_consts())), self.1.clone())
    }
    #[getter]
    fn in_avals(&self) -> Vec<ShapedArray> {
        self.0.in_avals.iter().map(|a| ShapedArray(a.clone())).collect()
    }
    #[getter]
    fn out_avals(&self) -> Vec<ShapedArray> {
        self.0.out_avals.iter().map(|a| ShapedArray(a.clone())).collect()
    }
    /// The same map at another point: with other residuals.
    fn replace(&self, residuals: &Bound<PyAny>) -> PyResult<PyLinear> {
        let flags = config::flags();
        // a pytree is also unflattened with leaves that are not arrays (axis numbers, placeholders); they are kept out of the map
        let new: PyResult<Vec<Value>> = residuals
            .try_iter()?
            .map(|x| operand(&x?, flags)?.ok_or_else(|| PyTypeError::new_err("a residual must be an array")))
            .collect();
        Ok(PyLinear(self.0.clone(), new?))
    }
    /// How it pickles: as its program's bytes, with its residuals.
    ///
    /// # Errors
    /// `NotImplementedError` where its transpose, or another part of it, is a Python function.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let l = &self.0;
        let bytes = guarded(|| {
            let mut e = Encoder::default();
            e.program(&Arc::new(l.prog.with_consts(0))).and_then(|()| e.bytes()).py(py)
        })?;
        let parts = (
            PyBytes::new(py, &bytes),
            (l.nz_in.clone(), l.nz_out.clone()),
            (self.in_avals(), self.out_avals()),
            self.residuals(py)?,
        );
        Ok((crate::hooks::own(py, "_linear_from_pickle")?, parts.into_pyobject(py)?))
    }
    fn __copy__(me: Py<Self>) -> Py<Self> {
        me
    }
    /// Itself: neither it nor its residuals change.
    fn __deepcopy__(me: Py<Self>, _memo: &Bound<PyAny>) -> Py<Self> {
        me
    }
    /// Tangents of the outputs for those of the inputs.
    fn apply<'py>(&self, tangents: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = tangents.py();
        let t = all_optional(tangents, "linear map")?;
        let out = guarded(|| {
            self.with(|l| {
                let cx = ferrax_ir::current();
                let dx = t.iter().zip(&l.in_avals).map(|(t, a)| cx.inst(t, a)).collect::<Res<Vec<_>>>()?;
                l.apply(&dx)
            })
            .py(py)
        })?;
        optional_list(py, out)
    }
    /// Cotangents of the inputs for those of the outputs; only of those that are `wanted`, where that is given.
    #[pyo3(signature = (cotangents, wanted=None))]
    fn transpose<'py>(
        &self,
        cotangents: &Bound<'py, PyAny>,
        wanted: Option<Vec<bool>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = cotangents.py();
        let ct = all_optional(cotangents, "linear map")?;
        let wanted = wanted.unwrap_or_else(|| vec![true; self.0.nz_in.len()]);
        if wanted.len() != self.0.nz_in.len() {
            return Err(PyTypeError::new_err(format!("{} places for {} inputs", wanted.len(), self.0.nz_in.len())));
        }
        let out = guarded(|| self.with(|l| l.transpose_to(&ct, &wanted)).py(py))?;
        optional_list(py, out)
    }
}
/// Rebuilds a pickled linear map.
#[pyfunction]
pub fn _linear_from_pickle(
    py: Python,
    program: &[u8],
    nonzero: (Vec<bool>, Vec<bool>),
    ends: (Bound<PyAny>, Bound<PyAny>),
    residuals: &Bound<PyAny>,
) -> PyResult<PyLinear> {
    let prog = guarded(|| {
        let mut d = Decoder::new(program, &[]);
        let p = d.program().py(py)?;
        d.end().py(py)?;
        Ok(p)
    })?;
    let residuals = all_required(residuals, "linear map")?.to_vec();
    let (nz_in, nz_out) = nonzero;
    let (in_avals, out_avals) = (avals(&ends.0)?, avals(&ends.1)?);
    let prog = prog.with_consts(prog.n_consts());
    Ok(PyLinear::new(Linear { prog, residuals, nz_in, nz_out, in_avals, out_avals, scopes: 0 }))
}
/// (residuals, the map): the children of a linear map as a pytree node.
#[pyfunction]
pub fn _linear_flatten<'py>(l: &Bound<'py, PyLinear>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyLinear>)> {
    Ok((l.get().residuals(l.py())?, Bound::new(l.py(), PyLinear(l.get().0.clone(), vec![]))?))
}
#[pyfunction]
pub fn _linear_unflatten(l: &Bound<PyLinear>, residuals: &Bound<PyAny>) -> PyResult<PyLinear> {
    l.get().replace(residuals)
}
