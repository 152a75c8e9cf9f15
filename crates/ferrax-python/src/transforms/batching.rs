//! vmap.
//!
//! INVARIANT: an axis is counted from the front before the core sees it.
use crate::array::value::{all_required, wrap_all};
use crate::error::{IntoPyResult, from_py, guarded};
use crate::function::call;
use crate::trace;
use ferrax_ir::cx::{AxisKind, Dim};
use ferrax_ir::error::{Error, Res};
use ferrax_transform::{self as transform};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::cell::RefCell;

/// vmap(fun, operands, in_dims, axis_size, axis_name, out_dims, manual=False, spmd=()) -> outputs
///
/// `manual`: the lanes are the parts of a shard_map, and types say what varies over the axis.
///
/// `out_dims()` is called after `fun` has run. `out_dims(i)` is called for an output i that is mapped though its place is None: the place
/// that it is given, or its specification, for the error.
#[pyfunction]
#[pyo3(signature = (fun, operands, in_dims, axis_size, axis_name, out_dims, manual=false, spmd=vec![]))]
pub fn vmap<'py>(
    fun: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyAny>,
    in_dims: &Bound<'py, PyAny>,
    axis_size: usize,
    axis_name: &Bound<'py, PyAny>,
    out_dims: &Bound<'py, PyAny>,
    manual: bool,
    spmd: Vec<String>,
) -> PyResult<Bound<'py, PyList>> {
    let py = fun.py();
    let x = all_required(operands, "vmap")?;
    let dims: Vec<Dim> = in_dims
        .try_iter()?
        .zip(&x)
        .map(|(d, v)| {
            let d: Option<isize> = d?.extract()?;
            d.map(|d| axis(d, v.rank())).transpose()
        })
        .collect::<PyResult<_>>()?;
    let name = trace::axis_name(axis_name)?;
    let shown = name.clone();
    let spmd: Vec<ferrax_ir::effects::Name> = spmd.into_iter().map(Into::into).collect();
    let kind = if manual { AxisKind::Manual } else { AxisKind::Lanes };
    let requested: RefCell<Option<Vec<Option<isize>>>> = RefCell::new(None);
    let place = |i: usize, a: &ferrax_ir::Aval, lanes: Dim| -> Res<Dim> {
        if requested.borrow().is_none() {
            let dims = out_dims
                .call0()
                .and_then(|d| d.try_iter()?.map(|d| d?.extract()).collect::<PyResult<Vec<_>>>())
                .map_err(from_py)?;
            *requested.borrow_mut() = Some(dims);
        }
        let d = requested.borrow().as_ref().and_then(|d| d.get(i).copied()).flatten();
        match d {
            None => {
                let Some(at) = lanes else { return Ok(None) };
                let path = out_dims.call1((i,)).map_err(from_py)?;
                if let Ok(d) = path.extract() {
                    return axis(d, a.rank() + 1).map(Some).map_err(from_py);
                }
                if let Some(name) = &shown {
                    return Err(Error::value(format!(
                        "vmap has mapped output (axis_name={name}) but out_axes is None"
                    )));
                }
                let path: String = path.extract().map_err(from_py)?;
                Err(Error::value(format!("at {path}, got axis spec None but output was batched on axis {at}")))
            }
            Some(d) => axis(d, a.rank() + 1).map(Some).map_err(from_py),
        }
    };
    let out = guarded(|| {
        transform::map_axis(&|x| call(fun, x, "vmap"), &x, &dims, (axis_size, name, kind), &spmd, &place).py(py)
    })?;
    if requested.borrow().is_none() {
        out_dims.call0()?;
    }
    PyList::new(py, wrap_all(py, out)?)
}
fn axis(d: isize, rank: usize) -> PyResult<usize> {
    let at = if d < 0 { d + rank as isize } else { d };
    match usize::try_from(at) {
        Ok(at) if at < rank => Ok(at),
        _ => Err(PyValueError::new_err(format!("axis {d} is out of bounds for array of dimension {rank}"))),
    }
}
