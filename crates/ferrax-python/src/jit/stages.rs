//! The stages of a jitted function as objects: traced, lowered, compiled; and the methods that
//! create them.
//!
//! INVARIANT: inspecting a stage runs nothing.
use super::laid::Layouts;
use super::vectorcall;
use super::{Flat, Jit, Variant, types_of};
use crate::array::value::{held, operand};
use crate::aval::ShapedArray;
use crate::config;
use crate::device;
use crate::error::{IntoPyResult, guarded, leaving};
use crate::placement;
use crate::program::PyProgram;
use crate::tree::{Leaves, PyTreeDef, TreeDef};
use ferrax::compiled::Compiled;
use ferrax::device::Device;
use ferrax::eval;
use ferrax::key_reuse;
use ferrax::parts::Layout;
use ferrax::spmd::{Spmd, device_of};
use ferrax_ir::aval::Aval;
use ferrax_ir::value::{Value, Values};
use ferrax_kernel::plan::Operations;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The methods of a jitted function, by name.
pub const METHODS: [&str; 4] = ["trace", "lower", "eval_shape", "clear_cache"];

/// The methods of a jitted function.
#[pyclass(frozen, name = "_JitMethods")]
pub struct PyJit(pub Arc<Jit>);
impl PyJit {
    fn traced<'py>(&self, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<PyTraced> {
        let py = args.py();
        let jit = &self.0;
        let flat = jit.flatten_call(args, kwargs)?;
        let ins = types_of(&flat.leaves)?;
        let flags = config::flags().placed();
        let (given, device) = asked(&flat.leaves, &ins)?;
        let device = jit.options.device.or(device);
        let _inputs = crate::reads::Forbidden::begin();
        let variant = if jit.refers() {
            Arc::new(guarded(|| jit.trace(py, &flat, ins, flags, ferrax_ir::cx::axes()))?)
        } else {
            guarded(|| jit.variant(py, &flat, &ins, flags))?
        };
        if flags.key_reuse() {
            key_reuse::check(&variant.program).py(py)?;
        }
        let names = flat.leaves_of(py, jit)?;
        let in_def = Arc::new(flat.arguments_def(py)?);
        Ok(PyTraced(Stage { variant, in_def, names, jit: jit.clone(), device, given: given.into() }))
    }
}
impl PyJit {
    /// After an error: the stage of a function that closes over mutable references, or is given some, by the hook `stage_jitted`; else the error.
    #[cold]
    fn referring<'py>(
        &self,
        what: &str,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        e: PyErr,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let keywords = kwargs.map_or_else(|| PyDict::new(py), Clone::clone);
        let function = self.0.function.bind(py);
        let call = (function, self._options(py)?, what, e.value(py), args, keywords);
        let made = crate::hooks::stage_jitted(py)?.call1(call).map_err(|e| leaving(py, e))?;
        if made.is_none() { Err(leaving(py, e)) } else { Ok(made) }
    }
}
/// The placements that a call's leaves request: the layouts of those over meshes, and the device of
/// the first other one that is committed or whose sharding names one.
fn asked(leaves: &[Bound<PyAny>], ins: &[Aval]) -> PyResult<(Layouts, Option<&'static Device>)> {
    let (mut layouts, mut device) = (vec![], None);
    for (x, a) in leaves.iter().zip(ins) {
        let mut found = None;
        match held(x) {
            Some(Value::Array(a)) => {
                let d = ferrax::array::data(a).py(x.py())?;
                found.clone_from(&d.layout);
                if d.committed && found.is_none() {
                    device = device.or(Some(d.device));
                }
            }
            Some(_) => (),
            None if x.cast::<ShapedArray>().is_ok() => (),
            None => {
                if let Some(s) = x.getattr_opt("sharding")?.filter(|s| !s.is_none()) {
                    found = placement::layout(&s, a.rank())?;
                    // for a mesh without devices the type is sufficient
                    let of_mesh = s.getattr_opt("mesh")?.is_some();
                    if found.is_none() && !of_mesh {
                        device = device.map_or_else(|| device::from_py_object(&s), |d| Ok(Some(d)))?;
                    }
                }
            }
        }
        layouts.push(found);
    }
    Ok((layouts, device))
}
#[pymethods]
impl PyJit {
    /// Traces for arguments of these types (arrays or `ShapeDtypeStruct`s).
    #[pyo3(signature = (*args, **kwargs))]
    fn trace<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.traced(args, kwargs) {
            Ok(t) => Ok(Bound::new(args.py(), t)?.into_any()),
            Err(e) => self.referring("trace", args, kwargs, e),
        }
    }
    /// Traces and lowers for arguments of these types.
    #[pyo3(signature = (*args, **kwargs))]
    fn lower<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.traced(args, kwargs) {
            Ok(t) => Ok(Bound::new(args.py(), PyLowered(t.0))?.into_any()),
            Err(e) => self.referring("lower", args, kwargs, e),
        }
    }
    /// The output as a pytree of `ShapeDtypeStruct`.
    #[pyo3(signature = (*args, **kwargs))]
    fn eval_shape<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.traced(args, kwargs) {
            Ok(PyTraced(t)) => t.variant.structs(args.py(), |i| t.place(args.py(), i, false)),
            Err(e) => self.referring("eval_shape", args, kwargs, e),
        }
    }
    fn clear_cache(&self) {
        self.0.clear();
    }
    fn _cache_size(&self) -> usize {
        self.0.size()
    }
    /// The keywords of `_core.jit` that this was made with.
    fn _options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (o, d) = (&self.0.options, PyDict::new(py));
        d.set_item("static_argnums", &o.static_argnums)?;
        d.set_item("static_argnames", &o.static_argnames)?;
        d.set_item("donate_argnums", &o.donate_argnums)?;
        d.set_item("donate_argnames", &o.donate_argnames)?;
        d.set_item("keep_unused", o.keep_unused)?;
        d.set_item("inline", o.inline)?;
        d.set_item("device", o.device.map(|d| device::object(py, d)).transpose()?)?;
        d.set_item("shardings", o.shardings.as_ref().map(|s| (s.0.bind(py), s.1.bind(py))))?;
        d.set_item("compiler_options", o.compiler_options.as_ref())?;
        Ok(d)
    }
}

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
fn avals<'py>(py: Python<'py>, all: &[Aval], def: &TreeDef) -> PyResult<Bound<'py, PyAny>> {
    let leaves = all.iter().map(|a| Ok(Bound::new(py, crate::aval::ShapedArray(a.clone()))?.into_any()));
    def.unflatten(py, &mut leaves.collect::<PyResult<Vec<_>>>()?.into_iter())
}

/// A traced function.
#[pyclass(frozen, weakref, module = "ferrax.stages", name = "Traced")]
pub struct PyTraced(Stage);
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
pub struct PyLowered(Stage);
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
            super::check_compiler_options(options)?;
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

/// A compiled program: a plan on a device.
#[pyclass(frozen, weakref, module = "ferrax.stages", name = "Executable")]
pub struct PyExecutable(Arc<Compiled>);
impl PyExecutable {
    pub(super) fn of(compiled: Arc<Compiled>) -> PyExecutable {
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
    compiled: Arc<Compiled>,
    /// Of a function over a mesh.
    spmd: Option<Arc<Spmd>>,
    stage: Stage,
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
    /// The plan as it runs, below the program that it came from.
    fn as_text(&self) -> String {
        let program = self.stage.variant.program.to_string();
        let program = program.lines().map(|l| format!("# {l}\n")).collect::<String>();
        format!("{program}{}", self.compiled.text())
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

impl Jit {
    /// As `flatten`, for a call by tuple and dict.
    fn flatten_call<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Flat<'py>> {
        let py = args.py();
        let mut items: Vec<Bound<'py, PyAny>> = args.iter().collect();
        let names: Vec<Bound<'py, PyAny>> = kwargs.map_or(vec![], |k| k.keys().iter().collect());
        items.extend(kwargs.into_iter().flat_map(|k| k.values().iter()));
        vectorcall::with_args(py, &items, args.len(), &names, |a| self.flatten(a))
    }
}
impl<'py> Flat<'py> {
    /// The names of the leaves, by the function's parameters.
    fn leaves_of(&self, py: Python<'py>, jit: &Jit) -> PyResult<Arc<[String]>> {
        Ok(super::paths(py, jit.function(), &self.structure, &self.leaves)?.into())
    }
    /// The structure of (args, kwargs) without the static ones.
    fn arguments_def(&self, py: Python<'py>) -> PyResult<TreeDef> {
        use super::structure::ArgSlot;
        let s = &self.structure;
        let dynamic = |slots: &[ArgSlot], py| {
            TreeDef::tuple(
                py,
                slots.iter().filter_map(|s| if let ArgSlot::Dynamic { def, .. } = s { Some(def) } else { None }),
            )
        };
        let args = dynamic(&s.slots[..s.n_positional], py);
        let mut leaves = Leaves::new();
        let keywords = PyDict::new(py);
        for (name, slot) in s.names.iter().zip(&s.slots[s.n_positional..]) {
            if let ArgSlot::Dynamic { def, .. } = slot {
                let marks: Vec<Bound<'py, PyAny>> =
                    (0..def.n_leaves()).map(|i| Ok(i.into_pyobject(py)?.into_any())).collect::<PyResult<_>>()?;
                keywords.set_item(name, def.unflatten(py, &mut marks.into_iter())?)?;
            }
        }
        let mut kw = TreeDef::default();
        kw.flatten(keywords.as_any(), None, &mut leaves)?;
        Ok(TreeDef::tuple(py, [&args, &kw]))
    }
}
