//! A compiled function: its text, its costs, where its arguments lie, and its calls, which are checked.
use super::{Stage, avals, costs, infos, sharding};
use crate::array::value::operand;
use crate::config;
use crate::device;
use crate::error::{IntoPyResult, guarded};
use crate::placement;
use crate::program::PyProgram;
use crate::tree::{Leaves, PyTreeDef, TreeDef};
use ferrax::compiled::Compiled;
use ferrax::parts::Layout;
use ferrax::spmd::Spmd;
use ferrax_ir::aval::Aval;
use ferrax_ir::value::{Value, Values};
use ferrax_kernel::plan::Exchange;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A compiled program: a plan on a device.
#[pyclass(frozen, weakref, module = "ferrax.stages", name = "Executable")]
pub struct PyExecutable(Arc<Compiled>);
impl PyExecutable {
    pub(crate) fn of(compiled: Arc<Compiled>) -> PyExecutable {
        PyExecutable(compiled)
    }
}
#[pymethods]
impl PyExecutable {
    /// The plan as text.
    fn as_text(&self) -> String {
        self.0.text()
    }
    fn local_devices<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, device::PyDevice>>> {
        Ok(vec![device::object(py, self.0.device)?])
    }
    fn cost_analysis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let c = &self.0;
        costs(py, c.plan().operations(), c.program.in_avals(), c.out_avals())
    }
}

/// A function compiled for one device and one signature.
#[pyclass(frozen, weakref, module = "ferrax.stages", name = "Compiled")]
pub struct PyCompiled {
    /// The compiled program of one device.
    pub(super) compiled: Arc<Compiled>,
    /// Of a function over a mesh.
    pub(super) spmd: Option<Arc<Spmd>>,
    pub(super) stage: Stage,
}
infos!(PyCompiled);
impl PyCompiled {
    fn stage(&self) -> &Stage {
        &self.stage
    }
    fn shardings<'py>(
        &self,
        py: Python<'py>,
        def: &TreeDef,
        of: impl Fn(&Spmd) -> &[Arc<Layout>],
    ) -> PyResult<Bound<'py, PyAny>> {
        let all = (0..def.n_leaves()).map(|i| self.lies(py, i, &of)).collect::<PyResult<Vec<_>>>()?;
        def.unflatten(py, &mut all.into_iter())
    }
    fn lies<'py>(
        &self,
        py: Python<'py>,
        i: usize,
        of: impl Fn(&Spmd) -> &[Arc<Layout>],
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.spmd {
            Some(s) => placement::sharding(py, &of(s)[i]),
            None => sharding(py, self.compiled.device),
        }
    }
    fn place<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.lies(py, i, |s| &s.outs).map(Some)
    }
}
#[pymethods]
impl PyCompiled {
    /// The plan as it runs, below the program that it came from, and over a mesh what a device reads of others' bytes by each collective.
    fn as_text(&self) -> String {
        let program = self.stage.variant.program.to_string();
        let program = program.lines().map(|l| format!("# {l}\n")).collect::<String>();
        let exchange = |e: Exchange| format!("# {}: {} bytes, {} messages\n", e.text, e.moved.bytes, e.moved.messages);
        let exchanges = self.spmd.iter().flat_map(|s| s.exchanges()).map(exchange).collect::<String>();
        format!("{program}{exchanges}{}", self.compiled.text())
    }
    /// The program that it came from, of leaves.
    fn _program(&self) -> PyProgram {
        let v = &self.stage.variant;
        PyProgram::closed(v.program.clone(), v.consts.clone())
    }
    fn runtime_executable(&self) -> PyExecutable {
        PyExecutable(self.compiled.clone())
    }
    /// Of one device. Over a mesh also the bytes that it reads of others', and in how many messages, the mean over devices.
    fn cost_analysis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let c = &self.compiled;
        let d = costs(py, c.plan().operations(), c.program.in_avals(), c.out_avals())?;
        if let Some(s) = &self.spmd {
            let moved = s.communication();
            d.set_item("bytes communicated", moved.bytes)?;
            d.set_item("messages", moved.messages)?;
        }
        Ok(d)
    }
    /// (bytes, messages) that the devices of this process have read of others' in all calls, as they were counted.
    fn _communicated(&self) -> (u64, u64) {
        let n = |n: &AtomicU64| n.load(Ordering::Relaxed);
        self.spmd.as_ref().map_or((0, 0), |s| (n(&s.moved.bytes), n(&s.moved.messages)))
    }
    /// Sizes in bytes of arguments, outputs and intermediate memory.
    fn memory_analysis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let size = |avals: &[Aval]| avals.iter().map(|a| a.shape.size() * a.dtype.size()).sum::<usize>();
        let d = PyDict::new(py);
        d.set_item("argument_size_in_bytes", size(self.compiled.program.in_avals()))?;
        d.set_item("output_size_in_bytes", size(self.compiled.out_avals()))?;
        d.set_item("alias_size_in_bytes", 0)?;
        d.set_item("temp_size_in_bytes", self.compiled.plan().arena)?;
        d.set_item("generated_code_size_in_bytes", 0)?;
        py.import("types")?.getattr("SimpleNamespace")?.call((), Some(&d))
    }
    /// The requested shardings of the arguments, as (args, kwargs).
    #[getter]
    fn input_shardings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let n = self.stage.variant.consts.len();
        self.shardings(py, &self.stage.in_def, |s| &s.ins[n..])
    }
    /// The shardings of the results.
    #[getter]
    fn output_shardings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.shardings(py, &self.stage.variant.out_def, |s| &s.outs)
    }
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let (stage, v) = (&self.stage, &self.stage.variant);
        let keywords = kwargs.map_or_else(|| PyDict::new(py), |k| k.clone());
        let (mut def, mut leaves) = (TreeDef::default(), Leaves::new());
        let given = PyTuple::new(py, [args.as_any(), keywords.as_any()])?;
        def.flatten(given.as_any(), None, &mut leaves)?;
        if !def.equal(py, &stage.in_def)? {
            let words = crate::hooks::argument_mismatches(py)?
                .call1((Bound::new(py, PyTreeDef::shared(stage.in_def.clone()))?, given))?;
            return Err(PyTypeError::new_err(words.extract::<String>()?));
        }
        let flags = config::flags();
        let mut values = Values::new();
        for (i, x) in leaves.iter().enumerate() {
            let value = operand(x, flags)?.ok_or_else(|| crate::array::value::not_an_array(x, stage.jit.name(), i))?;
            if value.is_tracer() {
                return Err(PyTypeError::new_err(format!(
                    "Cannot apply JAX transformations to a function lowered and compiled for a particular signature. Detected argument of Tracer type <class '{}'>.",
                    crate::array::tracer_class(&value)
                )));
            }
            values.push(value);
        }
        self.check_types(&values)?;
        self.check_devices(py, &values)?;
        ferrax_ir::cx::at_root().then_some(()).ok_or_else(|| {
            PyTypeError::new_err(
                "Cannot apply JAX transformations to a function lowered and compiled for a particular signature: it is called while a function is traced.",
            )
        })?;
        let all: Values = v.consts.iter().cloned().chain(values).collect();
        let all: Vec<&Value> = all.iter().collect();
        let forced = stage.jit.options.device.or(v.pinned);
        let out = guarded(|| match (&self.spmd, forced) {
            (Some(s), _) => v.run_spmd(py, &stage.jit, &all, s),
            (None, Some(d)) => v.run_on(py, &stage.jit, &all, d),
            (None, None) => {
                let out = v.checked_run(py, &stage.jit, &self.compiled, &all)?;
                v.objects(py, out)
            }
        })?;
        v.out_def.unflatten(py, &mut out.into_iter())
    }
    #[pyo3(signature = (*args, **kwargs))]
    fn call<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.__call__(args, kwargs)
    }
    /// The device it runs on.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, device::PyDevice>> {
        device::object(py, self.compiled.device)
    }
}
impl PyCompiled {
    fn name(&self, i: usize) -> String {
        self.stage.names.get(i).cloned().unwrap_or_else(|| format!("leaf {i}"))
    }
    fn check_types(&self, values: &[Value]) -> PyResult<()> {
        let pairs = values.iter().zip(self.stage.variant.in_avals()).enumerate();
        let wrong = pairs.filter(|(_, (v, want))| !v.aval().same(want)).map(|(i, (v, want))| {
            format!("Argument '{}' compiled with {} and called with {}", self.name(i), want.long(), v.aval().long())
        });
        let wrong: Vec<String> = wrong.collect();
        if wrong.is_empty() {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "Argument types differ from the types for which this computation was compiled. Perhaps you are calling the compiled executable with a different \
             enable_x64 mode than when it was AOT compiled? The mismatches are:\n{}",
            wrong.join("\n")
        )))
    }
    /// A committed argument must be where the function runs.
    fn check_devices(&self, py: Python, values: &[Value]) -> PyResult<()> {
        let mut wrong = vec![];
        let first = self.stage.variant.consts.len();
        for (i, v) in values.iter().enumerate() {
            if let Value::Array(a) = v {
                let d = ferrax::array::data(a).py(py)?;
                let wanted = self.spmd.as_ref().map(|s| &s.ins[first + i]);
                let fits = match (&d.layout, wanted) {
                    _ if !d.committed => true,
                    (Some(l), Some(w)) => l.lies_as(w, v.shape()),
                    (Some(l), None) => l.devices() == [self.compiled.device],
                    (None, Some(w)) => w.devices() == [d.device],
                    (None, None) => d.device == self.compiled.device,
                };
                if !fits {
                    wrong.push(format!(
                        "Argument {} with shape {}:\n  Passed sharding: {}\n  Required sharding: {}",
                        self.name(i),
                        a.aval().long(),
                        placement::sharding_of(py, a)?.repr()?,
                        match wanted {
                            Some(w) => placement::sharding(py, w)?.repr()?,
                            None => sharding(py, self.compiled.device)?.repr()?,
                        }
                    ));
                }
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "Computation was compiled for input shardings that disagree with the shardings of arguments passed to it. Here are the {} mismatches:\n{}",
            wrong.len(),
            wrong.join("\n")
        )))
    }
}
