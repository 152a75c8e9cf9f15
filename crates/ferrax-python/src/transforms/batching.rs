//! vmap and pmap.
//!
//! INVARIANT: an axis is counted from the front before the core sees it.
use crate::array::value::{all_required, wrap_all};
use crate::config;
use crate::debug;
use crate::device;
use crate::error::{IntoPyResult, from_py, guarded};
use crate::function::call;
use crate::trace::{self, trace};
use ferrax_ir::cx::{AxisKind, Dim, NamedAxis, name_axes};
use ferrax_ir::error::{Error, Res};
use ferrax_ir::op::Op;
use ferrax_ir::ops::pmap::{Places, Pmap};
use ferrax_ir::value::Value;
use ferrax_transform::{self as transform};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::cell::RefCell;
use std::sync::Arc;

/// vmap(fun, operands, in_dims, axis_size, axis_name, out_dims, manual=False, spmd=()) -> outputs
///
/// `manual`: the lanes are the parts of a shard_map, and types say what varies over the axis.
///
/// `out_dims()` is called after `fun` has run; `out_dims(i)` is the specification of output i in errors.
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
    let asked: RefCell<Option<Vec<Option<isize>>>> = RefCell::new(None);
    let place = |i: usize, a: &ferrax_ir::Aval, lanes: Dim| -> Res<Dim> {
        if asked.borrow().is_none() {
            let dims = out_dims
                .call0()
                .and_then(|d| d.try_iter()?.map(|d| d?.extract()).collect::<PyResult<Vec<_>>>())
                .map_err(from_py)?;
            *asked.borrow_mut() = Some(dims);
        }
        let d = asked.borrow().as_ref().and_then(|d| d.get(i).copied()).flatten();
        match d {
            None => match (lanes, &shown) {
                (None, _) => Ok(None),
                (_, Some(name)) => {
                    Err(Error::value(format!("vmap has mapped output (axis_name={name}) but out_axes is None")))
                }
                (Some(at), None) => {
                    let path: String = out_dims.call1((i,)).and_then(|p| p.extract()).map_err(from_py)?;
                    Err(Error::value(format!("at {path}, got axis spec None but output was batched on axis {at}")))
                }
            },
            Some(d) => axis(d, a.rank() + 1).map(Some).map_err(from_py),
        }
    };
    let out = guarded(|| {
        transform::map_axis(&|x| call(fun, x, "vmap"), &x, &dims, (axis_size, name, kind), &spmd, &place).py(py)
    })?;
    if asked.borrow().is_none() {
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

/// pmap(fun, operands, in_dims, out_dims, axis_size, axis_name, devices, donated, name) -> outputs
///
/// Operand i is cut along `in_dims[i]`, a piece for each device, or goes to all of them, and is given up if `donated[i]`; outputs are put
/// together along `out_dims()`.
#[pyfunction]
#[pyo3(signature = (fun, operands, in_dims, out_dims, axis_size, axis_name, devices=None, donated=vec![], name="pmap"))]
pub fn pmap<'py>(
    fun: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyAny>,
    in_dims: &Bound<'py, PyAny>,
    out_dims: &Bound<'py, PyAny>,
    axis_size: usize,
    axis_name: &Bound<'py, PyAny>,
    devices: Option<&Bound<'py, PyAny>>,
    donated: Vec<bool>,
    name: &str,
) -> PyResult<Bound<'py, PyList>> {
    let py = fun.py();
    let places = match devices {
        None => vec![],
        Some(all) => all
            .try_iter()?
            .map(|d| Ok(device::from_py_object(&d?)?.map(|d| d.id).unwrap_or_default()))
            .collect::<PyResult<_>>()?,
    };
    let x = all_required(operands, "pmap")?;
    let cx = ferrax_ir::current();
    let (mut args, mut mapped, mut ins) = (vec![], vec![], vec![]);
    for (d, v) in in_dims.try_iter()?.zip(x) {
        let d: Option<isize> = d?.extract()?;
        let v = match d {
            Some(d) => {
                let at = axis(d, v.rank())?;
                guarded(|| cx.move_axis(&v, at, 0).py(py))?
            }
            None => v,
        };
        ins.push(if d.is_some() { v.aval().unbatched(0) } else { v.aval() });
        mapped.push(d.is_some());
        args.push(v);
    }
    let axis_text = trace::axis_name(axis_name)?.unwrap_or_else(|| "<axis>".into());
    let (program, consts) = {
        let _axes = name_axes([NamedAxis { name: axis_text.clone(), size: axis_size, kind: AxisKind::Devices }]);
        trace(py, fun, &ins, &fun.getattr("fun").unwrap_or_else(|_| fun.clone()), "pmap", trace::paths(None))?
    };
    if program.effects().ordered && axis_size > 1 {
        return Err(PyValueError::new_err(format!(
            "The ordered effects of {name} are not supported for more than 1 device: pmap runs it on {axis_size}"
        )));
    }
    let n = consts.len();
    let flags = config::flags();
    let checked = debug::wanted(flags) && ferrax_ir::cx::at_root();
    // a checked operation may have to run again
    let gives = donated.contains(&true) && !checked;
    let op: Op = Pmap {
        axis_name: axis_text,
        axis_size,
        call_jaxpr: Arc::new(program.with_consts(0)),
        mapped: std::iter::repeat_n(false, n).chain(mapped).collect(),
        name: name.into(),
        devices: Places(places),
        donated: gives.then(|| std::iter::repeat_n(false, n).chain(donated).collect()),
    }
    .into();
    let all: Vec<Value> = consts.into_iter().chain(args).collect();
    let out = guarded(|| ferrax_ir::bind(&op, &all).py(py))?;
    if checked {
        debug::check_spread(py, name, &op, &all, &out, flags)?;
    }
    let dims = out_dims.call0()?.try_iter()?.map(|d| d?.extract()).collect::<PyResult<Vec<Option<isize>>>>()?;
    let place = |(v, d): (Value, Option<isize>)| -> PyResult<Value> {
        match d {
            Some(0) => Ok(v),
            Some(d) => {
                let to = axis(d, v.rank())?;
                guarded(|| cx.move_axis(&v, 0, to).py(py))
            }
            None => match ferrax::numpy::indexing::static_index(&v, &[ferrax::numpy::indexing::Item::Int(0)]).py(py)? {
                Some(ferrax::numpy::indexing::Indexed::New(v)) => Ok(v),
                _ => Ok(v),
            },
        }
    };
    let out = out.into_iter().zip(dims).map(place).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, wrap_all(py, out)?)
}
