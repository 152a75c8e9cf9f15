//! What a function is before it is compiled: traced, and lowered.
use super::{PyCompiled, Stage, avals, costs, infos};
use crate::device;
use crate::error::{IntoPyResult, guarded};
use crate::jit::check_compiler_options;
use crate::program::PyProgram;
use crate::tree::PyTreeDef;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A traced function.
#[pyclass(frozen, weakref, module = "ferrax.stages", name = "Traced")]
pub struct PyTraced(pub(super) Stage);
infos!(PyTraced);
impl PyTraced {
    fn stage(&self) -> &Stage {
        &self.0
    }
    fn place<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.place(py, i, true)
    }
}
#[pymethods]
impl PyTraced {
    #[getter]
    fn jaxpr(&self) -> PyProgram {
        PyProgram::closed(self.0.variant.program.clone(), self.0.variant.consts.clone())
    }
    /// The program made ready for platforms; it is the same for all that there are.
    #[pyo3(signature = (*, lowering_platforms=None))]
    fn lower(&self, lowering_platforms: Option<Vec<String>>) -> PyResult<PyLowered> {
        match lowering_platforms.iter().flatten().find(|p| !PLATFORMS.contains(&p.as_str())) {
            Some(p) => Err(PyValueError::new_err(format!(
                "lowering_platforms: there is no platform '{p}'; there are {}",
                PLATFORMS.map(|p| format!("'{p}'")).join(", ")
            ))),
            None => Ok(PyLowered(self.0.clone())),
        }
    }
}

/// Names of platforms that programs are lowered for. A program is the same for all; where it runs is decided by its arguments.
const PLATFORMS: [&str; 5] = ["cpu", "gpu", "cuda", "rocm", "tpu"];

/// A traced function on its way to a device.
#[pyclass(frozen, weakref, module = "ferrax.stages", name = "Lowered")]
pub struct PyLowered(pub(super) Stage);
infos!(PyLowered);
impl PyLowered {
    fn stage(&self) -> &Stage {
        &self.0
    }
    fn place<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.place(py, i, true)
    }
}
/// The forms of a program: the portable one, and the one that runs.
enum Dialect {
    Jaxpr,
    Plan,
}
fn dialect(name: Option<&str>) -> PyResult<Dialect> {
    match name {
        None | Some("jaxpr") => Ok(Dialect::Jaxpr),
        Some("plan") => Ok(Dialect::Plan),
        Some(other) => Err(PyValueError::new_err(format!("unknown dialect: {other}; there are 'jaxpr' and 'plan'"))),
    }
}
#[pymethods]
impl PyLowered {
    /// The program as text: as a `jaxpr` (the default), or as the `plan` that runs. `debug_info` adds the user's lines and the names of
    /// the scopes around them.
    #[pyo3(signature = (dialect=None, *, debug_info=false))]
    fn as_text(&self, py: Python, dialect: Option<&str>, debug_info: bool) -> PyResult<String> {
        Ok(match self::dialect(dialect)? {
            Dialect::Jaxpr => {
                let parted = self.0.parted(py)?;
                let program = parted.as_ref().map_or(&self.0.variant.program, |s| &s.compiled().program);
                let text = ferrax_ir::text::print_with(program, debug_info, debug_info);
                if parted.is_some() { annotations(&self.0.variant.program) + &text } else { text }
            }
            Dialect::Plan => self.0.on_one(py, None)?.text(),
        })
    }
    /// The program as an object: a closed `jaxpr` (the default), or the text of the `plan`.
    #[pyo3(signature = (dialect=None))]
    fn compiler_ir<'py>(&self, py: Python<'py>, dialect: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let v = &self.0.variant;
        Ok(match self::dialect(dialect)? {
            Dialect::Jaxpr => Bound::new(py, PyProgram::closed(v.program.clone(), v.consts.clone()))?.into_any(),
            Dialect::Plan => self.0.on_one(py, None)?.text().into_pyobject(py)?.into_any(),
        })
    }
    /// Compiles it. `device_assignment` is a sequence of one device.
    #[pyo3(signature = (compiler_options=None, *, device_assignment=None))]
    fn compile(
        &self,
        py: Python,
        compiler_options: Option<&Bound<PyAny>>,
        device_assignment: Option<Vec<Bound<PyAny>>>,
    ) -> PyResult<PyCompiled> {
        if let Some(options) = compiler_options.filter(|o| !o.is_none()) {
            check_compiler_options(options)?;
        }
        let on = match device_assignment.as_deref() {
            None => None,
            Some([one]) => device::from_py_object(one)?,
            Some(all) => {
                return Err(PyValueError::new_err(format!(
                    "device_assignment: a program runs on one device, got {}",
                    all.len()
                )));
            }
        };
        let spmd = if on.is_none() { self.0.parted(py)? } else { None };
        let compiled = match &spmd {
            Some(s) => s.compiled().clone(),
            None => self.0.made(py, on)?,
        };
        Ok(PyCompiled { compiled, spmd, stage: self.0.clone() })
    }
    /// The operations and bytes of the program as it was written; a `Compiled` gives those of its plan.
    fn cost_analysis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let p = &self.0.variant.program;
        let operations = guarded(|| ferrax_ir::lower::operations(p).py(py))?;
        costs(py, operations, p.in_avals(), &p.out_avals())
    }
}
/// The shardings of a partitioned program, in Shardy's notation: a comment above the program of one
/// device.
fn annotations(p: &ferrax_ir::Program) -> String {
    let lines = ferrax_transform::partition::annotations(p);
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines.iter().map(|l| format!("# {l}\n")).collect();
    format!(
        "# how types and constraints of the program of whole arrays cut its values; below, the program of one device\n{lines}"
    )
}
