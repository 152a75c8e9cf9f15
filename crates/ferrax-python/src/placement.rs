//! Placements of arrays: conversion of devices and shardings.
//!
//! ```text
//! NamedSharding(mesh, P("x")) --layout--> Layout {mesh, dims} --sharding--> the same object
//! ```
//!
//! INVARIANT: an array returns the sharding object that the user gave; a computed array creates its
//! sharding at first request.
use crate::device::{self, PyDevice};
use crate::error::IntoPyResult;
use ferrax::array;
use ferrax::parts::{DeviceMesh, HostObject, Layout};
use ferrax_ir::cut::{MeshType, TypedCut};
use ferrax_ir::layout::{AxisSet, CutAxes, Grid, Spec};
use ferrax_ir::value::Array;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// The devices of a mesh and its axes, as layouts refer to them: a mesh makes it once.
#[pyclass(frozen, module = "ferrax._core", name = "DeviceMesh")]
pub struct PyDeviceMesh(pub Arc<DeviceMesh>);
#[pymethods]
impl PyDeviceMesh {
    #[new]
    fn new(
        py: Python,
        axes: Vec<(String, usize)>,
        devices: Vec<Bound<PyDevice>>,
        label: &str,
        typed: Option<(Vec<bool>, String)>,
    ) -> PyResult<PyDeviceMesh> {
        let grid = Grid::new(axes.into_iter().map(|(name, n)| (name.into(), n)));
        let devices = devices.iter().map(|d| d.get().0).collect();
        let mesh = DeviceMesh::new(grid.clone(), devices, label).py(py)?;
        Ok(PyDeviceMesh(match typed {
            Some((explicit, label)) => mesh.known_as(mesh_of(grid, explicit, None, label)),
            None => Arc::new(mesh),
        }))
    }
    /// numbered(axes, devices, label): the mesh of an equation, which names devices by the executor's numbers.
    #[staticmethod]
    fn numbered(py: Python, axes: Vec<(String, usize)>, devices: Vec<usize>, label: &str) -> PyResult<PyDeviceMesh> {
        let grid = Grid::new(axes.into_iter().map(|(name, n)| (name.into(), n)));
        let devices = devices.into_iter().filter_map(ferrax::device::numbered).collect();
        Ok(PyDeviceMesh(Arc::new(DeviceMesh::new(grid, devices, label).py(py)?)))
    }
}

fn kept(x: &Bound<PyAny>) -> HostObject {
    Arc::new(x.clone().unbind())
}
fn given<'py>(py: Python<'py>, x: &HostObject) -> Option<Bound<'py, PyAny>> {
    x.downcast_ref::<Py<PyAny>>().map(|x| x.bind(py).clone())
}

/// Whether it is a sharding over a mesh of devices.
pub fn is_over_mesh(x: &Bound<PyAny>) -> PyResult<bool> {
    match x.getattr_opt(crate::once::intern!(x.py(), "_cuts_of_devices"))? {
        Some(cuts) => Ok(!cuts.call0()?.is_none()),
        None => Ok(false),
    }
}
/// The layout of a sharding over a mesh of devices; `None` of anything else.
pub fn layout(x: &Bound<PyAny>, rank: usize) -> PyResult<Option<Arc<Layout>>> {
    let py = x.py();
    let Some(cuts) = x.getattr_opt(crate::once::intern!(py, "_cuts_of_devices"))? else { return Ok(None) };
    let found: Option<(Bound<PyDeviceMesh>, SpecNumbers)> = cuts.call0()?.extract()?;
    let Some((mesh, (dims, unreduced, reduced))) = found else { return Ok(None) };
    if dims.len() > rank {
        return Err(PyValueError::new_err(format!(
            "Sharding {} is only valid for values of rank at least {}, but was applied to a value of rank {rank}.",
            x.repr()?,
            dims.len()
        )));
    }
    let mut spec =
        Spec::new(dims.into_iter().map(CutAxes::from_vec)).summed(AxisSet::of(unreduced), AxisSet::of(reduced));
    spec.dims.resize(rank, CutAxes::new());
    let host_mesh = kept(&x.getattr(crate::once::intern!(py, "mesh"))?);
    let made = Layout::new(mesh.get().0.clone(), spec, Some(host_mesh));
    let _ = made.host.set(kept(x));
    Ok(Some(Arc::new(made)))
}
type Axes = Vec<(String, usize)>;
/// The axes that cut each dimension, those along which it is a sum, and those along which it was
/// one.
pub type SpecNumbers = (Vec<Vec<u8>>, Vec<u8>, Vec<u8>);
/// A spec's numbers, for Python.
pub fn numbers<'py>(py: Python<'py>, spec: &Spec) -> PyResult<[Bound<'py, PyTuple>; 3]> {
    let of = |c: &CutAxes| PyTuple::new(py, c.iter().map(|a| *a as usize));
    let dims = spec.dims.iter().map(of).collect::<PyResult<Vec<_>>>()?;
    Ok([PyTuple::new(py, dims)?, of(&spec.unreduced.axes())?, of(&spec.reduced.axes())?])
}
/// A mesh in types: axes, which of them types mention, and its name.
pub type MeshFacts = (Axes, Vec<bool>, String);
/// `manual`: which axes a body for parts names, where types say of sums along them.
pub fn mesh_type((axes, explicit, label): MeshFacts, manual: Option<Vec<bool>>) -> MeshType {
    mesh_of(Grid::new(axes.into_iter().map(|(name, n)| (name.into(), n))), explicit, manual, label)
}
fn mesh_of(grid: Grid, explicit: Vec<bool>, manual: Option<Vec<bool>>, label: String) -> MeshType {
    let manual = manual.unwrap_or_else(|| vec![false; explicit.len()]);
    MeshType { grid, explicit, manual, label: label.into() }
}
/// The cut in types of arrays of a rank with this sharding; none for any other object.
pub fn cut(x: &Bound<PyAny>, rank: usize) -> PyResult<TypedCut> {
    let Some(typed) = x.getattr_opt(crate::once::intern!(x.py(), "_typed"))? else { return Ok(TypedCut::NONE) };
    let found: Option<(Axes, Vec<bool>, String, SpecNumbers)> = typed.call0()?.extract()?;
    let Some((axes, explicit, label, (dims, unreduced, reduced))) = found else { return Ok(TypedCut::NONE) };
    let mut spec =
        Spec::new(dims.into_iter().map(CutAxes::from_vec)).summed(AxisSet::of(unreduced), AxisSet::of(reduced));
    spec.dims.resize(rank, CutAxes::new());
    Ok(TypedCut::new(&Arc::new(mesh_type((axes, explicit, label), None)), &spec))
}
/// The layout of any sharding: of one device, a mesh without axes.
pub fn layout_of_any(x: &Bound<PyAny>, rank: usize) -> PyResult<Arc<Layout>> {
    if let Some(l) = layout(x, rank)? {
        return Ok(l);
    }
    let Some(d) = device::from_py_object(x)? else {
        return Err(PyValueError::new_err(format!("{} names no device", x.repr()?)));
    };
    let mesh = DeviceMesh::new(Grid::default(), vec![d], "").py(x.py())?;
    let made = Layout::new(Arc::new(mesh), Spec::whole(rank), None);
    let _ = made.host.set(kept(x));
    Ok(Arc::new(made))
}
/// The sharding object of a layout.
pub fn sharding<'py>(py: Python<'py>, l: &Layout) -> PyResult<Bound<'py, PyAny>> {
    if let Some(x) = l.host.get().and_then(|x| given(py, x)) {
        return Ok(x);
    }
    let mesh = l.host_mesh.as_ref().and_then(|m| given(py, m));
    let mesh = match mesh {
        Some(m) => m,
        None => {
            let devices = l.devices().iter().map(|d| device::object(py, d)).collect::<PyResult<Vec<_>>>()?;
            let axes: Vec<(&str, usize)> = l.mesh.grid.axes.iter().map(|a| (&*a.0, a.1)).collect();
            crate::hooks::mesh_of_devices(py)?.call1((axes, devices, &*l.mesh.label))?
        }
    };
    let [dims, unreduced, reduced] = numbers(py, &l.spec)?;
    let made = crate::hooks::sharding_of_cuts(py)?.call1((mesh, dims, unreduced, reduced))?;
    let _ = l.host.set(kept(&made));
    Ok(made)
}
/// The sharding object of an array.
pub fn sharding_of<'py>(py: Python<'py>, a: &Array) -> PyResult<Bound<'py, PyAny>> {
    let d = array::data(a).py(py)?;
    match &d.layout {
        Some(l) => sharding(py, l),
        None => crate::hooks::single_device_sharding(py)?.call1((device::object(py, d.device)?,)),
    }
}
