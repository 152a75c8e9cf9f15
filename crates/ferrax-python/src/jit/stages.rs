//! The stages of a jitted function as objects: traced, lowered, compiled; and the methods that
//! create them.
//!
//! INVARIANT: inspecting a stage runs nothing.
mod compiled;
mod lowered;
mod methods;

pub use compiled::{PyCompiled, PyExecutable};
pub use lowered::{PyLowered, PyTraced};
pub use methods::{METHODS, PyJit};

use super::{Jit, Variant};
use crate::device;
use crate::error::{IntoPyResult, guarded};
use crate::tree::TreeDef;
use ferrax::compiled::Compiled;
use ferrax::device::Device;
use ferrax::eval;
use ferrax::parts::Layout;
use ferrax::spmd::{Spmd, device_of};
use ferrax_ir::aval::Aval;
use ferrax_kernel::plan::Operations;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

pub(super) fn sharding<'py>(py: Python<'py>, d: &'static Device) -> PyResult<Bound<'py, PyAny>> {
    crate::hooks::single_device_sharding(py)?.call1((device::object(py, d)?,))
}

/// The common data of all stages.
#[derive(Clone)]
struct Stage {
    jit: Arc<Jit>,
    variant: Arc<Variant>,
    in_def: Arc<TreeDef>,
    /// The leaf arguments' names.
    names: Arc<[String]>,
    /// The device that the user, or a committed argument, requests.
    device: Option<&'static Device>,
    /// How the arguments lie that are over meshes.
    given: Arc<[Option<Arc<Layout>>]>,
}
impl Stage {
    /// Where a result will lie: see [`Variant::place`].
    fn place<'py>(&self, py: Python<'py>, i: usize, concrete: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.variant.place(py, i, self.jit.options.device, concrete)
    }
    /// The program of the devices of a mesh, if the arguments, or the function, request one.
    fn parted(&self, py: Python) -> PyResult<Option<Arc<Spmd>>> {
        let v = &self.variant;
        let place = v.laid.as_ref().and_then(|l| l.mesh()).or_else(|| self.given.iter().flatten().next());
        let Some(place) = place else { return Ok(None) };
        let given = ferrax::spmd::layouts_of(&v.consts).into_iter().chain(self.given.iter().cloned()).collect();
        guarded(|| v.partitioned(py, place, given)).map(Some)
    }
    /// The compiled program of one device.
    fn on_one(&self, py: Python, on: Option<&'static Device>) -> PyResult<Arc<Compiled>> {
        match self.parted(py)? {
            Some(s) => Ok(s.compiled().clone()),
            None => self.made(py, on),
        }
    }
    fn made(&self, py: Python, on: Option<&'static Device>) -> PyResult<Arc<Compiled>> {
        let device = match on.or(self.device).or(self.variant.pinned) {
            Some(d) => d,
            None => device_of(&self.variant.consts, eval::current_device()).py(py)?,
        };
        guarded(|| self.variant.compiled(py, &self.jit, device))
    }
}

macro_rules! infos {
    ($T:ident) => {
        #[pymethods]
        impl $T {
            /// The output as a pytree of `ShapeDtypeStruct`.
            #[getter]
            fn out_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                self.stage().variant.structs(py, |i| self.place(py, i))
            }
            #[getter]
            fn out_avals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                avals(py, &self.stage().variant.program.out_avals(), &self.stage().variant.out_def)
            }
            /// The types of the arguments and whether they are donated, as (args, kwargs).
            #[getter]
            fn args_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let s = self.stage();
                let class = crate::hooks::arg_info(py)?;
                let given_up = s.variant.given_up.iter();
                let leaves =
                    s.variant.in_avals().iter().zip(given_up).map(|(a, donated)| {
                        class.call1((Bound::new(py, crate::aval::ShapedArray(a.clone()))?, *donated))
                    });
                s.in_def.unflatten(py, &mut leaves.collect::<PyResult<Vec<_>>>()?.into_iter())
            }
            /// The positions of the donated arguments among all leaves.
            #[getter]
            fn donate_argnums<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                let given_up = self.stage().variant.given_up.iter().enumerate();
                PyTuple::new(py, given_up.filter(|g| *g.1).map(|g| g.0).collect::<Vec<_>>())
            }
            /// Whether keyword arguments are refused: never. An attribute that libraries read.
            #[getter]
            fn _no_kwargs(&self) -> bool {
                false
            }
            #[getter]
            fn in_tree(&self) -> PyTreeDef {
                PyTreeDef::shared(self.stage().in_def.clone())
            }
            #[getter]
            fn out_tree(&self) -> PyTreeDef {
                PyTreeDef::shared(self.stage().variant.out_def.clone())
            }
            #[getter]
            fn in_avals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                avals(py, self.stage().variant.in_avals(), &self.stage().in_def)
            }
            #[getter]
            fn fun_name(&self) -> &str {
                self.stage().jit.name()
            }
        }
    };
}
use infos;
fn avals<'py>(py: Python<'py>, all: &[Aval], def: &TreeDef) -> PyResult<Bound<'py, PyAny>> {
    let leaves = all.iter().map(|a| Ok(Bound::new(py, crate::aval::ShapedArray(a.clone()))?.into_any()));
    def.unflatten(py, &mut leaves.collect::<PyResult<Vec<_>>>()?.into_iter())
}
fn costs<'py>(py: Python<'py>, operations: Operations, ins: &[Aval], outs: &[Aval]) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    let bytes = |a: &Aval| (a.shape.size() * a.dtype.size()) as f64;
    d.set_item("flops", operations.arithmetic as f64)?;
    d.set_item("transcendentals", operations.transcendental as f64)?;
    let mut all = 0.0;
    for (i, a) in ins.iter().enumerate() {
        d.set_item(format!("bytes accessed{i}{{}}"), bytes(a))?;
        all += bytes(a);
    }
    let out: f64 = outs.iter().map(bytes).sum();
    d.set_item("bytes accessedout{}", out)?;
    d.set_item("bytes accessed", all + out)?;
    Ok(d)
}
