//! Tracing a flat Python function to a program.
//!
//! INVARIANT: the current trace is restored afterwards; named scopes and device requests of a body
//! are local to it.
use crate::array::value::{KnownScalars, avals, held, wrap_all};
use crate::config;
use crate::error::{IntoPyResult, guarded};
use crate::function::call;
use crate::program::PyProgram;
use crate::trace_errors;
use ferrax::device::Device;
use ferrax::key_reuse;
use ferrax_ir::cx::{AxisKind, NamedAxis, name_axes};
use ferrax_ir::effects::Name;
use ferrax_ir::error::{Error, ErrorKind, Res};
use ferrax_ir::program::Program;
use ferrax_ir::value::{Tag, Value};
use ferrax_ir::vary::Vary;
use ferrax_transform::trace::Trace;
use ferrax_transform::{self as transform};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::cell::RefCell;
use std::sync::Arc;

/// trace_context(): the state that a trace depends on besides its function and arguments: the
/// configuration, the named axes in scope, and whether scalars are captured.
#[pyfunction]
pub fn trace_context(py: Python) -> PyResult<Bound<PyTuple>> {
    let axes =
        ferrax_ir::cx::axes().iter().map(|a| (a.name.to_string(), a.size, a.kind.is_manual())).collect::<Vec<_>>();
    (config::flags().placed().epoch(), PyTuple::new(py, axes)?, KnownScalars::is_captured()).into_pyobject(py)
}
/// identities(values) -> for each an integer that identifies the value, None for values without
/// identity.
#[pyfunction]
pub fn identities(values: &Bound<PyAny>) -> PyResult<Vec<Option<usize>>> {
    values.try_iter()?.map(|x| Ok(held(&x?).and_then(Value::id))).collect()
}
/// A name of an axis as text; names that are not strings are shown by their repr.
pub fn axis_name(x: &Bound<PyAny>) -> PyResult<Option<Name>> {
    if x.is_none() {
        return Ok(None);
    }
    Ok(Some(match x.extract::<String>() {
        Ok(s) => s.into(),
        Err(_) => x.repr()?.to_str()?.into(),
    }))
}
/// axis_size(name): the size of the named axis in scope. NameError where there is none.
#[pyfunction]
pub fn axis_size(py: Python, name: &Bound<PyAny>) -> PyResult<usize> {
    ferrax_ir::cx::axis_size(&axis_name(name)?.unwrap_or_else(|| "None".into())).py(py)
}

/// is_manual(name): whether types record which values vary over the named axis in scope, as in a
/// shard_map.
#[pyfunction]
pub fn is_manual(name: &Bound<PyAny>) -> PyResult<bool> {
    Ok(axis_name(name)?.is_some_and(|n| ferrax_ir::cx::is_manual(&n)))
}
/// varying(x, names): x as a value that varies over these axes too, where they are manual.
#[pyfunction]
pub fn varying<'py>(x: &Bound<'py, PyAny>, names: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let mut over = vec![];
    for name in names.try_iter()? {
        over.extend(axis_name(&name?)?.filter(|n| ferrax_ir::cx::is_manual(n)));
    }
    match held(x) {
        Some(v) if !over.is_empty() => {
            let v = guarded(|| ferrax_ir::current().vary_over(v, Vary::of(over)).py(py))?;
            Ok(wrap_all(py, [v])?.remove(0))
        }
        _ => Ok(x.clone()),
    }
}

/// make_program(fun, avals, axis_env=(), user_fun=None, arg_paths=None, what="jit", capture_scalars=False) -> (program, captured values)
#[pyfunction]
#[pyo3(signature = (fun, avals, axis_env=None, user_fun=None, arg_paths=None, what="jit", capture_scalars=false))]
pub fn make_program<'py>(
    fun: &Bound<'py, PyAny>,
    avals: &Bound<'py, PyAny>,
    axis_env: Option<&Bound<'py, PyAny>>,
    user_fun: Option<&Bound<'py, PyAny>>,
    arg_paths: Option<&Bound<'py, PyAny>>,
    what: &str,
    capture_scalars: bool,
) -> PyResult<(PyProgram, Bound<'py, PyList>)> {
    let py = fun.py();
    let mut env = vec![];
    if let Some(pairs) = axis_env {
        for pair in pairs.try_iter()? {
            let (name, size): (Bound<PyAny>, usize) = pair?.extract()?;
            env.extend(axis_name(&name)?.map(|name| NamedAxis { name, size, kind: AxisKind::Lanes }));
        }
    }
    let _axes = name_axes(env);
    let _scalars = capture_scalars.then(KnownScalars::captured);
    let ins = self::avals(avals)?;
    let user = user_fun.unwrap_or(fun);
    let (program, consts) = trace(py, fun, &ins, user, word(what), paths(arg_paths))?;
    let list = PyList::new(py, wrap_all(py, consts.iter().cloned())?)?;
    Ok((PyProgram::closed(program, consts), list))
}
/// The names of leaf arguments for errors: a list, or a function that makes it.
pub type Paths = Box<dyn Fn() -> Vec<String>>;
pub fn paths(given: Option<&Bound<PyAny>>) -> Paths {
    let given = given.map(|g| g.clone().unbind());
    Box::new(move || {
        let Some(given) = &given else { return vec![] };
        Python::attach(|py| {
            let given = given.bind(py);
            let list = if given.is_callable() { given.call0() } else { Ok(given.clone()) };
            list.and_then(|l| l.extract()).unwrap_or_default()
        })
    })
}
/// The description of the transform that a function is traced for.
fn word(what: &str) -> &'static str {
    const WORDS: [&str; 17] = [
        "jit",
        "checkpoint / remat",
        "scan",
        "while_cond",
        "while_body",
        "fori_loop",
        "cond",
        "switch",
        "make_jaxpr",
        "pmap",
        "vmap",
        "grad",
        "custom_jvp",
        "custom_vjp",
        "eval_shape",
        "linearize",
        "reduce",
    ];
    WORDS.iter().find(|w| **w == what).copied().unwrap_or("jit")
}
/// Traces a flat function.
pub fn trace(
    py: Python,
    fun: &Bound<PyAny>,
    ins: &[ferrax_ir::Aval],
    user: &Bound<PyAny>,
    what: &'static str,
    paths: Paths,
) -> PyResult<(Arc<Program>, Vec<Value>)> {
    let _open = trace_errors::open(user, what, paths);
    let run = |x: &[Value]| {
        trace_errors::tagged(x);
        call(fun, x, what)
    };
    let (pins, names) = (Pins::open(), crate::source::scopes::OutsideScopes::begin());
    let (program, consts) = guarded(|| transform::make_program(&run, ins).py(py))?;
    drop(names);
    pins.hand_on(what).py(py)?;
    if config::flags().key_reuse() {
        key_reuse::check(&program).py(py)?;
    }
    Ok((Arc::new(program), consts))
}

thread_local! {
    /// For each function that is being traced on this thread, the device that functions in it are
    /// jitted for.
    static PINS: RefCell<Vec<Option<&'static Device>>> = const { RefCell::new(vec![]) };
}
/// Held while a function is traced.
pub struct Pins;
impl Pins {
    pub fn open() -> Pins {
        PINS.with(|p| p.borrow_mut().push(None));
        Pins
    }
    /// The device requested inside.
    pub fn found(&self) -> Option<&'static Device> {
        PINS.with(|p| p.borrow().last().copied().flatten())
    }
    /// Requests a device: the function that is being traced will run there. False if none is.
    pub fn pin(device: &'static Device) -> Res<bool> {
        PINS.with(|p| match p.borrow_mut().last_mut() {
            None => Ok(false),
            Some(Some(d)) if *d != device => Err(Error::value(format!(
                "Received incompatible devices for jitted computation: functions that are called in it ask for {d} and for {device}"
            ))),
            Some(one) => {
                *one = Some(device);
                Ok(true)
            }
        })
    }
    /// The end of a body: its request becomes that of the function around it. A body that runs
    /// separately cannot request a device.
    fn hand_on(self, what: &str) -> Res<()> {
        let found = self.found();
        drop(self);
        match found {
            Some(d) if !Pins::pin(d)? && what != "jit" && *d != *ferrax::eval::current_device() => Err(Error::new(
                ErrorKind::Value,
                format!(
                    "a function jitted for {d} is called in the body of a {what}: jit what is around it, or put its arguments there"
                ),
            )),
            _ => Ok(()),
        }
    }
}
impl Drop for Pins {
    fn drop(&mut self) {
        PINS.with(|p| p.borrow_mut().pop());
    }
}

/// Operations on known values inside the block run at once, whatever trace is current; those on its tracers are its own.
#[pyclass(unsendable, name = "_EvalContext")]
pub struct EvalContext(Vec<ferrax_ir::cx::Saved>);
#[pymethods]
impl EvalContext {
    fn __enter__(&mut self) {
        if ferrax_ir::cx::at_root() {
            self.0.push(ferrax_ir::cx::replace_current(ferrax_ir::cx::eval_root()));
            return;
        }
        let fold = Trace::fold(ferrax_ir::cx::eval_root(), ferrax_ir::current());
        self.0.push(ferrax_ir::cx::replace_current(fold));
    }
    #[pyo3(signature = (*_exc))]
    fn __exit__(&mut self, _exc: &Bound<PyAny>) {
        if let Some(saved) = self.0.pop() {
            ferrax_ir::cx::restore_current(saved);
        }
    }
}
/// eval_context(): a context manager inside which operations on known values run at once.
#[pyfunction]
pub fn eval_context() -> EvalContext {
    EvalContext(vec![])
}

/// One trace: the level of one transformation. Equal only to itself.
#[pyclass(frozen, module = "ferrax._core")]
pub struct TraceTag(Arc<Tag>);
impl TraceTag {
    pub fn tag(&self) -> Arc<Tag> {
        self.0.clone()
    }
}
#[pymethods]
impl TraceTag {
    /// Which transformation: "jit", "vmap", "grad", ..
    #[getter]
    fn what(&self) -> &'static str {
        self.0.what
    }
    /// An object that identifies the trace.
    #[getter]
    fn main<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::intern(py, &format!("{} {:p}", self.0.what, Arc::as_ptr(&self.0)))
    }
    fn __eq__(&self, other: &TraceTag) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    fn __hash__(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}
/// staging(): the program under construction that operations end in now; None where they end in results.
#[pyfunction]
pub fn staging() -> Option<TraceTag> {
    let current = ferrax_ir::current();
    current.staging().map(|t| TraceTag(t.clone()))
}
/// traces(): those that operations pass through now, the innermost first.
#[pyfunction]
pub fn traces() -> Vec<TraceTag> {
    let mut all = vec![];
    ferrax_ir::current().tags(&mut all);
    all.into_iter().map(TraceTag).collect()
}
/// trace_of(x): the trace that a traced value belongs to; None for any other value.
#[pyfunction]
pub fn trace_of(x: &Bound<PyAny>) -> Option<TraceTag> {
    match held(x) {
        Some(Value::Tracer(t)) => Some(TraceTag(t.0.tag.clone())),
        _ => None,
    }
}
/// at_root(): whether nothing is traced on this thread.
#[pyfunction]
pub fn at_root() -> bool {
    ferrax_ir::cx::at_root()
}
