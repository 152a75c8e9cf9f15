//! The stages of a jitted function as objects: traced, lowered, compiled; and the methods that lead there.
//!
//! INVARIANT: looking at a stage runs nothing.
use super::{Flat, Jit, Variant, types_of};
use crate::config;
use crate::device;
use crate::error::{IntoPyResult, guarded};
use crate::ffi::vectorcall;
use crate::program::PyProgram;
use crate::tree::{Leaves, PyTreeDef, TreeDef};
use crate::value::{operand, wrap};
use ferrax::compiled::{Compiled, device_of};
use ferrax::eval;
use ferrax_ir::aval::Aval;
use ferrax_ir::value::{Value, Values};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// The methods of a jitted function.
#[pyclass(frozen, name = "_JitMethods")]
pub struct PyJit(pub Arc<Jit>);
impl PyJit {
    fn traced<'py>(&self, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<PyTraced> {
        let py = args.py();
        let jit = &self.0;
        let flat = jit.flatten_call(args, kwargs)?;
        let ins = types_of(&flat.leaves)?;
        let flags = config::flags();
        let variant = Arc::new(guarded(|| jit.trace(py, &flat, ins, flags, crate::transforms::axes()))?);
        let in_def = flat.arguments_def(py)?;
        Ok(PyTraced { variant, in_def: Arc::new(in_def), name: jit.name().into(), device: jit.options.device })
    }
}
#[pymethods]
impl PyJit {
    /// Traces for arguments of these types (arrays or `ShapeDtypeStruct`s).
    #[pyo3(signature = (*args, **kwargs))]
    fn trace<'py>(&self, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<PyTraced> {
        self.traced(args, kwargs)
    }
    /// Traces and lowers for arguments of these types.
    #[pyo3(signature = (*args, **kwargs))]
    fn lower<'py>(&self, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<PyLowered> {
        Ok(self.traced(args, kwargs)?.lower())
    }
    /// The output as a pytree of `ShapeDtypeStruct`.
    #[pyo3(signature = (*args, **kwargs))]
    fn eval_shape<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.traced(args, kwargs)?.out_info(args.py())
    }
    fn clear_cache(&self) {
        self.0.clear();
    }
    fn _cache_size(&self) -> usize {
        self.0.size()
    }
}

/// Types as a pytree of `ShapeDtypeStruct`.
fn structs<'py>(py: Python<'py>, avals: &[Aval], def: &TreeDef) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("ferrax")?.getattr("ShapeDtypeStruct")?;
    let mut leaves = vec![];
    for a in avals {
        let keywords = PyDict::new(py);
        keywords.set_item("weak_type", a.weak)?;
        leaves.push(
            class
                .call((crate::aval::shape_to_py(py, &a.shape)?, crate::dtype::to_py(py, a.dtype)?), Some(&keywords))?,
        );
    }
    def.unflatten(py, &mut leaves.into_iter())
}

macro_rules! infos {
    ($T:ident) => {
        #[pymethods]
        impl $T {
            /// The output as a pytree of `ShapeDtypeStruct`.
            #[getter]
            fn out_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                structs(py, &self.variant.program.out_avals(), &self.variant.out_def)
            }
            /// The types of the arguments, as (args, kwargs).
            #[getter]
            fn args_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                structs(py, self.variant.in_avals(), &self.in_def)
            }
            #[getter]
            fn in_tree(&self) -> PyTreeDef {
                PyTreeDef::shared(self.in_def.clone())
            }
            #[getter]
            fn out_tree(&self) -> PyTreeDef {
                PyTreeDef::shared(self.variant.out_def.clone())
            }
            #[getter]
            fn in_avals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let leaves = self
                    .variant
                    .in_avals()
                    .iter()
                    .map(|a| Ok(Bound::new(py, crate::aval::ShapedArray(a.clone()))?.into_any()));
                self.in_def.unflatten(py, &mut leaves.collect::<PyResult<Vec<_>>>()?.into_iter())
            }
            #[getter]
            fn fun_name(&self) -> &str {
                &self.name
            }
        }
    };
}

/// A traced function.
#[pyclass(frozen, module = "ferrax.stages", name = "Traced")]
pub struct PyTraced {
    variant: Arc<Variant>,
    in_def: Arc<TreeDef>,
    name: String,
    device: Option<&'static ferrax::device::Device>,
}
infos!(PyTraced);
#[pymethods]
impl PyTraced {
    #[getter]
    fn jaxpr(&self) -> PyProgram {
        PyProgram::closed(self.variant.program.clone(), self.variant.consts.clone())
    }
    fn lower(&self) -> PyLowered {
        PyLowered {
            variant: self.variant.clone(),
            in_def: self.in_def.clone(),
            name: self.name.clone(),
            device: self.device,
        }
    }
}

/// A traced function on its way to a device.
#[pyclass(frozen, module = "ferrax.stages", name = "Lowered")]
pub struct PyLowered {
    variant: Arc<Variant>,
    in_def: Arc<TreeDef>,
    name: String,
    device: Option<&'static ferrax::device::Device>,
}
infos!(PyLowered);
impl PyLowered {
    fn made(&self, py: Python) -> PyResult<Arc<Compiled>> {
        let device = match self.device {
            Some(d) => d,
            None => device_of(&self.variant.consts, eval::current_device()).py(py)?,
        };
        guarded(|| self.variant.compiled(py, device))
    }
}
#[pymethods]
impl PyLowered {
    /// The program as text. `dialect` is accepted and ignored: there is one.
    #[pyo3(signature = (dialect=None, *, debug_info=false))]
    fn as_text(&self, dialect: Option<&str>, debug_info: bool) -> String {
        let _ = (dialect, debug_info);
        self.variant.program.to_string()
    }
    #[pyo3(signature = (compiler_options=None))]
    fn compile(&self, py: Python, compiler_options: Option<&Bound<PyAny>>) -> PyResult<PyCompiled> {
        let _ = compiler_options;
        Ok(PyCompiled {
            compiled: self.made(py)?,
            variant: self.variant.clone(),
            in_def: self.in_def.clone(),
            name: self.name.clone(),
        })
    }
    fn cost_analysis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        costs(py, &*self.made(py)?)
    }
}
fn costs<'py>(py: Python<'py>, c: &Compiled) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    let bytes = |slots: &[usize]| slots.iter().sum::<usize>();
    d.set_item("flops", c.plan().work() as f64)?;
    let ins: Vec<usize> = c.program.in_avals().iter().map(|a| a.shape.size() * a.dtype.size()).collect();
    let outs: Vec<usize> = c.out_avals().iter().map(|a| a.shape.size() * a.dtype.size()).collect();
    d.set_item("bytes accessed", (bytes(&ins) + bytes(&outs)) as f64)?;
    Ok(d)
}

/// A function compiled for one device and one signature.
#[pyclass(frozen, module = "ferrax.stages", name = "Compiled")]
pub struct PyCompiled {
    compiled: Arc<Compiled>,
    variant: Arc<Variant>,
    in_def: Arc<TreeDef>,
    name: String,
}
infos!(PyCompiled);
#[pymethods]
impl PyCompiled {
    /// The plan as it runs, below the program that it came from.
    fn as_text(&self) -> String {
        let program = self.variant.program.to_string().lines().map(|l| format!("# {l}\n")).collect::<String>();
        format!("{program}{}", self.compiled.text())
    }
    fn cost_analysis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        costs(py, &self.compiled)
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
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let keywords = kwargs.map_or_else(|| PyDict::new(py), |k| k.clone());
        let (mut def, mut leaves) = (TreeDef::default(), Leaves::new());
        def.flatten(PyTuple::new(py, [args.as_any(), keywords.as_any()])?.as_any(), None, &mut leaves)?;
        if !def.equal(py, &self.in_def)? {
            return Err(PyTypeError::new_err(format!(
                "Function compiled with input pytree does not match the input pytree it was called with. Compiled for {}, called with {}.",
                self.in_def.text(py)?,
                def.text(py)?
            )));
        }
        let flags = config::flags();
        let mut values = Values::new();
        for (i, (x, want)) in leaves.iter().zip(self.variant.in_avals()).enumerate() {
            let v = operand(x, flags)?.ok_or_else(|| crate::value::not_an_array(x, &self.name, i))?;
            if !v.aval().same(want) {
                return Err(PyTypeError::new_err(format!(
                    "Argument types differ from the types for which this computation was compiled. Argument {i} was compiled with {} and called with {}",
                    want.long(),
                    v.aval().long()
                )));
            }
            values.push(v);
        }
        if !ferrax_ir::cx::at_root() || values.iter().any(|v| v.is_tracer()) {
            return Err(PyTypeError::new_err(
                "Cannot apply JAX transformations to a function lowered and compiled for a particular signature. Detected argument of Tracer type.",
            ));
        }
        let all: Values = self.variant.consts.iter().cloned().chain(values).collect();
        let out = guarded(|| self.compiled.run(&all, &self.variant.donated).py(py))?;
        let objects = out.into_iter().map(|a| wrap(py, Value::Array(a))).collect::<PyResult<Vec<_>>>()?;
        self.variant.out_def.unflatten(py, &mut objects.into_iter())
    }
    /// The device it runs on.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, device::PyDevice>> {
        device::object(py, self.compiled.device)
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
    /// The structure of (args, kwargs) without the static ones.
    fn arguments_def(&self, py: Python<'py>) -> PyResult<TreeDef> {
        use super::structure::Slot;
        let s = &self.structure;
        let dynamic = |slots: &[Slot], py| {
            TreeDef::tuple(
                py,
                slots.iter().filter_map(|s| if let Slot::Dynamic { def, .. } = s { Some(def) } else { None }),
            )
        };
        let args = dynamic(&s.slots[..s.n_positional], py);
        let mut leaves = Leaves::new();
        let keywords = PyDict::new(py);
        for (name, slot) in s.names.iter().zip(&s.slots[s.n_positional..]) {
            if let Slot::Dynamic { def, .. } = slot {
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
