//! shard_map over the devices of a mesh: the body as a program of parts.
//!
//! INVARIANT: a spec has as many dimensions as its array, and names axes by their numbers on the mesh.
use crate::array::value::{all_required, wrap_all};
use crate::error::{IntoPyResult, guarded};
use crate::placement::{self, MeshFacts, PyDeviceMesh, SpecNumbers};
use crate::trace::{self, trace};
use ferrax_ir::Aval;
use ferrax_ir::cut::BodyMesh;
use ferrax_ir::cx::{AxisKind, NamedAxis, name_axes};
use ferrax_ir::layout::{CutAxes, Grid, Spec};
use ferrax_ir::op::Op;
use ferrax_ir::ops::collective::Names;
use ferrax_ir::ops::pmap::Places;
use ferrax_ir::ops::shard_map::{MeshTypes, NamedSpec, ShardMap};
use ferrax_ir::value::Value;
use ferrax_ir::vary::{self, Vary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;

fn named((cuts, unreduced, reduced): &SpecNumbers, rank: usize, grid: &Grid) -> NamedSpec {
    let mut dims: Vec<Names> = cuts.iter().map(|c| Names(grid.names(c))).collect();
    dims.resize(rank, Names(Default::default()));
    NamedSpec { dims, unreduced: Names(grid.names(unreduced)), reduced: Names(grid.names(reduced)) }
}

/// shard_map(fun, operands, in_specs, out_specs, mesh, manual, check_vma) -> outputs
///
/// `manual`: the numbers of the mesh's axes that `fun` is mapped over. `out_specs()` is called after `fun` was traced. `within`: the mesh as types know it
/// there, and along which of its axes they say what is a sum. `unordered`: what errors call a function whose ordered effects are refused.
#[pyfunction]
#[pyo3(signature = (fun, operands, in_specs, out_specs, mesh, manual, check_vma, within=None, unordered=None))]
pub fn shard_map<'py>(
    fun: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyAny>,
    in_specs: Vec<SpecNumbers>,
    out_specs: &Bound<'py, PyAny>,
    mesh: &Bound<'py, PyDeviceMesh>,
    manual: Vec<u8>,
    check_vma: bool,
    within: Option<(MeshFacts, Vec<bool>)>,
    unordered: Option<&str>,
) -> PyResult<Bound<'py, PyList>> {
    let py = fun.py();
    let mesh = &mesh.get().0;
    let grid = &mesh.grid;
    let x = all_required(operands, "shard_map")?;
    let types = MeshTypes {
        around: mesh.typed.clone(),
        within: within.map(|(w, sums)| Arc::new(placement::mesh_type(w, Some(sums)))),
    };
    let without_ones = crate::config::flags().without_ones();
    let varies = |i: &&u8| grid.axis_size(**i) > 1 || !without_ones;
    let local = |(v, (cuts, ..)): (&Value, &SpecNumbers)| -> Aval {
        let a = v.aval();
        let mut spec = Spec::new(cuts.iter().map(|c| CutAxes::from_slice(c)));
        spec.dims.resize(a.rank(), CutAxes::new());
        let over = if check_vma {
            Vary::of(cuts.iter().flatten().filter(varies).map(|i| grid.name(*i).clone()))
        } else {
            Vary::NONE
        };
        Aval { cut: types.local(a.cut), ..spec.shard(grid, &a).varying(a.vary | over) }
    };
    let ins: Vec<Aval> = x.iter().zip(&in_specs).map(local).collect();
    let kind = if check_vma { AxisKind::Manual } else { AxisKind::Devices };
    let names = grid.names(&manual);
    let (program, consts) = {
        let axis = |i: &u8| NamedAxis { name: grid.name(*i).clone(), size: grid.axis_size(*i), kind };
        names.iter().filter(|_| check_vma).for_each(vary::entered);
        let _axes = name_axes(manual.iter().map(axis));
        let _mesh = BodyMesh::enter(types.within.clone());
        let user = fun.getattr("fun").unwrap_or_else(|_| fun.clone());
        trace(py, fun, &ins, &user, "shard_map", trace::paths(None))?
    };
    if let (Some(name), true) = (unordered, program.effects().ordered) {
        return Err(PyValueError::new_err(format!(
            "The ordered effects of {name} are not supported for more than 1 device: pmap runs it on {}",
            mesh.devices.len()
        )));
    }
    let outs: Vec<SpecNumbers> = out_specs.call0()?.extract()?;
    let all = consts.iter().map(|v| named(&SpecNumbers::default(), v.rank(), grid));
    let op: Op = ShardMap {
        check_vma,
        in_specs: all.chain(x.iter().zip(&in_specs).map(|(v, c)| named(c, v.rank(), grid))).collect(),
        out_specs: program.out_avals().iter().zip(&outs).map(|(a, c)| named(c, a.rank(), grid)).collect(),
        jaxpr: Arc::new(program.with_consts(0)),
        manual_axes: Names(names),
        mesh: grid.clone(),
        devices: Places(mesh.devices.iter().map(|d| d.id).collect()),
        label: (!mesh.label.is_empty()).then(|| mesh.label.clone()),
        types,
    }
    .into();
    let args: Vec<Value> = consts.into_iter().chain(x).collect();
    let out = guarded(|| ferrax_ir::bind(&op, &args).py(py))?;
    PyList::new(py, wrap_all(py, out)?)
}
