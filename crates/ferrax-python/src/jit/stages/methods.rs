//! The methods of a jitted function that create stages.
use super::{PyLowered, PyTraced, Stage};
use crate::array::value::held;
use crate::aval::ShapedArray;
use crate::config;
use crate::device;
use crate::error::{IntoPyResult, guarded, leaving};
use crate::jit::laid::Layouts;
use crate::jit::structure::ArgSlot;
use crate::jit::{Flat, Jit, paths, types_of, vectorcall};
use crate::placement;
use crate::tree::{Leaves, TreeDef};
use ferrax::device::Device;
use ferrax::key_reuse;
use ferrax_ir::aval::Aval;
use ferrax_ir::value::Value;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

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
        let (given, device) = requested(&flat.leaves, &ins)?;
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
fn requested(leaves: &[Bound<PyAny>], ins: &[Aval]) -> PyResult<(Layouts, Option<&'static Device>)> {
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
        Ok(paths(py, jit.function(), &self.structure, &self.leaves)?.into())
    }
    /// The structure of (args, kwargs) without the static ones.
    fn arguments_def(&self, py: Python<'py>) -> PyResult<TreeDef> {
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
