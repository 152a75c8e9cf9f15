//! Transforms of flat Python functions: tracing to a program, jvp, linearize, vmap, checkpoint, custom rules.
//!
//! A flat function takes leaves and returns a sequence of leaves. `None` among tangents and cotangents is a symbolic zero.
//!
//! INVARIANT: an exception of the function comes out as it is, and whatever trace was current before is current after.
use crate::aval::ShapedArray;
use crate::bind::avals;
use crate::config;
use crate::debug;
use crate::error::{IntoPyResult, from_py, guarded};
use crate::program::PyProgram;
use crate::trace_errors;
use crate::value::{all_optional, all_required, operand, type_text, wrap_all, wrap_optional};
use ferrax::device::Device;
use ferrax_ir::aval::Lit;
use ferrax_ir::cx::{Dim, Fun, Tan, name_axes};
use ferrax_ir::effects::Name;
use ferrax_ir::error::{Error, Kind, Res};
use ferrax_ir::op::Op;
use ferrax_ir::ops::checkpoint::{Policy, Remat};
use ferrax_ir::ops::custom::{CustomJvp, CustomVjp, NumOuts};
use ferrax_ir::ops::pmap::{Places, Pmap};
use ferrax_ir::program::Program;
use ferrax_ir::value::{Value, Values};
use ferrax_transform::trace::Trace;
use ferrax_transform::{self as transform, Linear};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::cell::RefCell;
use std::sync::Arc;

// ---- calling Python ----

/// Calls a flat function on values; its results are values.
pub fn call(f: &Bound<PyAny>, x: &[Value], what: &str) -> Res<Values> {
    let py = f.py();
    let run = || -> PyResult<Values> {
        let args = PyTuple::new(py, wrap_all(py, x.iter().cloned())?)?;
        let out = f.call1(args)?;
        results(f, &out, what)
    };
    run().map_err(from_py)
}
/// A sequence of leaves as values.
fn results(f: &Bound<PyAny>, out: &Bound<PyAny>, what: &str) -> PyResult<Values> {
    let flags = config::flags();
    let one = |x: PyResult<Bound<PyAny>>| {
        let x = x?;
        operand(&x, flags)?.ok_or_else(|| bad_result(f, &x, what))
    };
    if let Ok(t) = out.cast::<PyTuple>() {
        return t.iter().map(|x| one(Ok(x))).collect();
    }
    if let Ok(l) = out.cast::<PyList>() {
        return l.iter().map(|x| one(Ok(x))).collect();
    }
    out.try_iter()?.map(one).collect()
}
fn bad_result(f: &Bound<PyAny>, x: &Bound<PyAny>, what: &str) -> PyErr {
    if what == "vmap" {
        return PyTypeError::new_err(format!(
            "Output from batched function {} with type {} is not a valid JAX type",
            x.repr().map(|r| r.to_string()).unwrap_or_default(),
            type_text(x)
        ));
    }
    let user = f.getattr("fun").unwrap_or_else(|_| f.clone());
    bad_output(&user, what, x, "")
}
/// The error for a function that returned what is no array, at a path of its output.
pub fn bad_output(f: &Bound<PyAny>, what: &str, x: &Bound<PyAny>, path: &str) -> PyErr {
    let at = if path.is_empty() { String::new() } else { format!(" at output component {path}") };
    PyTypeError::new_err(format!(
        "function {} traced for {what} returned a value of type {}{at}, which is not a valid JAX type",
        describe(f),
        type_text(x)
    ))
}
/// identities(values) -> for each an integer that is equal for one and the same value, None for what has no identity.
#[pyfunction]
pub fn identities(values: &Bound<PyAny>) -> PyResult<Vec<Option<usize>>> {
    values.try_iter()?.map(|x| Ok(crate::value::held(&x?).and_then(Value::id))).collect()
}
/// `loss at model.py:12`
pub fn describe(f: &Bound<PyAny>) -> String {
    let mut inner = f.clone();
    while let Some(w) = unwrapped(&inner) {
        inner = w;
    }
    let name = inner
        .getattr("__name__")
        .and_then(|n| n.extract::<String>())
        .unwrap_or_else(|_| inner.repr().map(|r| r.to_string()).unwrap_or_default());
    let place = || -> PyResult<String> {
        let code = inner.getattr("__code__")?;
        Ok(format!(
            "{} at {}:{}",
            name,
            code.getattr("co_filename")?.extract::<String>()?,
            code.getattr("co_firstlineno")?.extract::<usize>()?
        ))
    };
    place().unwrap_or(name)
}
/// The function that `f` wraps, as `functools.wraps` and `functools.partial` say it. Attributes that a class makes up as they are asked
/// for are not followed: there may be no end to them.
fn unwrapped<'py>(f: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let own = f.getattr("__dict__").ok().and_then(|d| d.cast_into::<PyDict>().ok());
    if let Some(w) = own.and_then(|d| d.get_item("__wrapped__").ok().flatten()) {
        return Some(w);
    }
    let partial = f.py().import("functools").and_then(|m| m.getattr("partial")).ok()?;
    if f.is_instance(&partial).ok()? { f.getattr("func").ok() } else { None }
}
pub fn name_of(f: &Bound<PyAny>) -> String {
    f.getattr("__name__")
        .and_then(|n| n.extract::<String>())
        .unwrap_or_else(|_| f.get_type().name().map(|n| n.to_string()).unwrap_or_default())
}

/// A Python callable as a function of the language, called with the interpreter attached.
fn host(
    name: &str,
    f: &Bound<PyAny>,
    run: impl Fn(&Bound<PyAny>, &[Value]) -> Res<Values> + Send + Sync + 'static,
) -> Fun {
    let f = Arc::new(f.clone().unbind());
    let held = f.clone();
    Fun::user(name, move |x| Python::attach(|py| run(f.bind(py), x))).holding(held)
}
/// A rule in Python, which may take and give symbolic zeros.
fn host_rule(
    name: &str,
    f: &Bound<PyAny>,
    run: impl Fn(&Bound<PyAny>, &[Tan]) -> PyResult<Vec<Tan>> + Send + Sync + 'static,
) -> Fun {
    let f = Arc::new(f.clone().unbind());
    let held = f.clone();
    Fun::user_tans(name, move |x| Python::attach(|py| run(f.bind(py), x).map_err(from_py))).holding(held)
}
/// A flat Python function as a parameter.
pub fn host_fn(f: &Bound<PyAny>) -> Fun {
    host(&name_of(f), f, |f, x| call(f, x, "bind"))
}
/// A function of the language as a Python callable of leaves.
pub fn callable<'py>(py: Python<'py>, f: &Fun) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(py, HostFunction(f.clone()))?.into_any())
}
/// A function held by an equation.
#[pyclass(frozen, name = "_Function")]
pub struct HostFunction(pub Fun);
#[pymethods]
impl HostFunction {
    #[getter]
    fn __name__(&self) -> &str {
        self.0.name()
    }
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyList>> {
        let xs = all_required(args.as_any(), self.0.name())?;
        let out = guarded(|| self.0.call(&*ferrax_ir::current(), &xs).py(py))?;
        PyList::new(py, wrap_all(py, out)?)
    }
    fn __repr__(&self) -> String {
        format!("<function {}>", self.0.name())
    }
}

// ---- named axes in scope ----

/// trace_context(): what a trace depends on besides its function and arguments: the configuration, and the named axes in scope.
#[pyfunction]
pub fn trace_context(py: Python) -> PyResult<Bound<PyTuple>> {
    let axes = ferrax_ir::cx::axes().iter().map(|(name, n)| (name.to_string(), *n)).collect::<Vec<_>>();
    (config::flags().epoch(), PyTuple::new(py, axes)?).into_pyobject(py)
}
/// A name of an axis as text; names that are no strings go by their repr.
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

// ---- tracing ----

/// make_program(fun, avals, axis_env=(), user_fun=None, arg_paths=None, what="jit") -> (program, captured values)
#[pyfunction]
#[pyo3(signature = (fun, avals, axis_env=None, user_fun=None, arg_paths=None, what="jit"))]
pub fn make_program<'py>(
    fun: &Bound<'py, PyAny>,
    avals: &Bound<'py, PyAny>,
    axis_env: Option<&Bound<'py, PyAny>>,
    user_fun: Option<&Bound<'py, PyAny>>,
    arg_paths: Option<&Bound<'py, PyAny>>,
    what: &str,
) -> PyResult<(PyProgram, Bound<'py, PyList>)> {
    let py = fun.py();
    let mut env = vec![];
    if let Some(pairs) = axis_env {
        for pair in pairs.try_iter()? {
            let (name, size): (Bound<PyAny>, usize) = pair?.extract()?;
            env.extend(axis_name(&name)?.map(|n| (n, size)));
        }
    }
    let _axes = name_axes(env);
    let ins = crate::bind::avals(avals)?;
    let user = user_fun.unwrap_or(fun);
    let (program, consts) = trace(py, fun, &ins, describe(user), word(what), paths(arg_paths))?;
    let list = PyList::new(py, wrap_all(py, consts.iter().cloned())?)?;
    Ok((PyProgram::closed(program, consts), list))
}
/// What names the leaf arguments when an error asks: a list, or a function that makes it.
type Paths = Box<dyn Fn() -> Vec<String>>;
fn paths(given: Option<&Bound<PyAny>>) -> Paths {
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
/// Words for what a function is traced for.
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
    user: String,
    what: &'static str,
    paths: Paths,
) -> PyResult<(Arc<Program>, Vec<Value>)> {
    let _open = trace_errors::open(user, what, paths);
    let run = |x: &[Value]| {
        trace_errors::tagged(x);
        call(fun, x, what)
    };
    let (pins, names) = (Pins::open(), crate::source::Names::none());
    let (program, consts) = guarded(|| transform::make_program(&run, ins).py(py))?;
    drop(names);
    pins.hand_on(what).py(py)?;
    Ok((Arc::new(program), consts))
}

// ---- devices asked for while a function is traced ----

thread_local! {
    /// For each function that is being traced on this thread, the device that functions jitted for one ask for.
    static PINS: RefCell<Vec<Option<&'static Device>>> = const { RefCell::new(vec![]) };
}
/// Held while a function is traced.
pub struct Pins;
impl Pins {
    pub fn open() -> Pins {
        PINS.with(|p| p.borrow_mut().push(None));
        Pins
    }
    /// What was asked for inside.
    pub fn found(&self) -> Option<&'static Device> {
        PINS.with(|p| p.borrow().last().copied().flatten())
    }
    /// Asks for a device: the function that is being traced will run there. False if none is.
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
    /// The end of a body: what it asks for, the function around it asks for. A body that is run by itself cannot ask.
    fn hand_on(self, what: &str) -> Res<()> {
        let found = self.found();
        drop(self);
        match found {
            Some(d) if !Pins::pin(d)? && what != "jit" && *d != *ferrax::eval::current_device() => Err(Error::new(
                Kind::Value,
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

// ---- derivatives ----

/// jvp(fun, primals, tangents) -> (outputs, their tangents)
#[pyfunction]
pub fn jvp<'py>(
    fun: &Bound<'py, PyAny>,
    primals: &Bound<'py, PyAny>,
    tangents: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    let py = fun.py();
    let x = all_required(primals, "jvp")?;
    let dx = all_optional(tangents, "jvp")?;
    if x.len() != dx.len() {
        return Err(PyTypeError::new_err(format!("jvp: {} primals but {} tangents", x.len(), dx.len())));
    }
    let (y, dy) = guarded(|| transform::jvp(&|x| call(fun, x, "jvp"), &x, &dx).py(py))?;
    Ok((PyList::new(py, wrap_all(py, y)?)?, optional_list(py, dy)?))
}
fn optional_list<'py>(py: Python<'py>, v: impl IntoIterator<Item = Tan>) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, v.into_iter().map(|t| wrap_optional(py, t)).collect::<PyResult<Vec<_>>>()?)
}

/// linearize(fun, primals) -> (outputs, the linear map from tangents to tangents)
#[pyfunction]
pub fn linearize<'py>(
    fun: &Bound<'py, PyAny>,
    primals: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyList>, PyLinear)> {
    let py = fun.py();
    let x = all_required(primals, "linearize")?;
    let (y, linear) = guarded(|| transform::linearize(&|x| call(fun, x, "grad"), &x).py(py))?;
    Ok((PyList::new(py, wrap_all(py, y)?)?, PyLinear::new(linear)))
}
/// linear_transpose(fun, avals) -> (output types, the linear map that `fun` is)
#[pyfunction]
pub fn linear_transpose<'py>(
    fun: &Bound<'py, PyAny>,
    in_avals: &Bound<'py, PyAny>,
) -> PyResult<(Vec<ShapedArray>, PyLinear)> {
    let py = fun.py();
    let ins = avals(in_avals)?;
    let run = || -> Res<Linear> {
        let r = Trace::record(ferrax_ir::current());
        let x: Vec<Value> = ins.iter().map(|a| r.new_in(a.clone())).collect();
        let outs = r.run(|| call(fun, &x, "linear_transpose"))?;
        let out_avals = outs.iter().map(Value::aval).collect();
        let (prog, residuals) = r.close(&outs)?;
        Ok(Linear {
            prog,
            residuals,
            nz_in: vec![true; ins.len()],
            nz_out: vec![true; outs.len()],
            in_avals: ins.clone(),
            out_avals,
        })
    };
    let linear = guarded(|| run().py(py))?;
    Ok((linear.out_avals.iter().map(|a| ShapedArray(a.clone())).collect(), PyLinear::new(linear)))
}

/// A linear map with its residuals: what a function's derivative at a point is.
#[pyclass(frozen, weakref, module = "ferrax", name = "Linear")]
pub struct PyLinear(Arc<Shared>, Vec<Value>);
/// All but the residuals.
struct Shared(Linear);

impl PyLinear {
    fn new(mut linear: Linear) -> PyLinear {
        let residuals = std::mem::take(&mut linear.residuals);
        PyLinear(Arc::new(Shared(linear)), residuals)
    }
    /// The map with the residuals in it.
    fn with<T>(&self, f: impl FnOnce(&Linear) -> T) -> T {
        let l = &self.0.0;
        let whole = Linear {
            prog: l.prog.with_consts(l.prog.n_consts()),
            residuals: self.1.clone(),
            nz_in: l.nz_in.clone(),
            nz_out: l.nz_out.clone(),
            in_avals: l.in_avals.clone(),
            out_avals: l.out_avals.clone(),
        };
        f(&whole)
    }
}
#[pymethods]
impl PyLinear {
    #[getter]
    fn residuals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, wrap_all(py, self.1.iter().cloned())?)
    }
    /// The program of the map: residuals and tangents in, tangents out.
    #[getter]
    fn program(&self) -> PyProgram {
        let p = &self.0.0.prog;
        PyProgram::closed(Arc::new(p.with_consts(p.n_consts())), self.1.clone())
    }
    #[getter]
    fn in_avals(&self) -> Vec<ShapedArray> {
        self.0.0.in_avals.iter().map(|a| ShapedArray(a.clone())).collect()
    }
    #[getter]
    fn out_avals(&self) -> Vec<ShapedArray> {
        self.0.0.out_avals.iter().map(|a| ShapedArray(a.clone())).collect()
    }
    /// The same map at another point: with other residuals.
    fn replace(&self, residuals: &Bound<PyAny>) -> PyResult<PyLinear> {
        let flags = config::flags();
        // a pytree is also unflattened with leaves that are no arrays (axis numbers, placeholders); they are kept out of the map
        let new: PyResult<Vec<Value>> = residuals
            .try_iter()?
            .map(|x| operand(&x?, flags)?.ok_or_else(|| PyTypeError::new_err("a residual must be an array")))
            .collect();
        Ok(PyLinear(self.0.clone(), new?))
    }
    /// Tangents of the outputs for those of the inputs.
    fn apply<'py>(&self, tangents: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = tangents.py();
        let t = all_optional(tangents, "linear map")?;
        let out = guarded(|| {
            self.with(|l| {
                let cx = ferrax_ir::current();
                let dx = t.iter().zip(&l.in_avals).map(|(t, a)| cx.inst(t, a)).collect::<Res<Vec<_>>>()?;
                l.apply(&dx)
            })
            .py(py)
        })?;
        optional_list(py, out)
    }
    /// Cotangents of the inputs for those of the outputs.
    fn transpose<'py>(&self, cotangents: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = cotangents.py();
        let ct = all_optional(cotangents, "linear map")?;
        let out = guarded(|| self.with(|l| l.transpose(&ct)).py(py))?;
        optional_list(py, out)
    }
}
/// (residuals, the map): how a linear map is taken apart as a pytree.
#[pyfunction]
pub fn _linear_flatten<'py>(l: &Bound<'py, PyLinear>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyLinear>)> {
    Ok((l.get().residuals(l.py())?, Bound::new(l.py(), PyLinear(l.get().0.clone(), vec![]))?))
}
#[pyfunction]
pub fn _linear_unflatten(l: &Bound<PyLinear>, residuals: &Bound<PyAny>) -> PyResult<PyLinear> {
    l.get().replace(residuals)
}

// ---- batching ----

/// vmap(fun, operands, in_dims, axis_size, axis_name, out_dims) -> outputs
///
/// `out_dims()` is asked after `fun` has run; `out_dims(i)` is what an error calls the specification of output i.
#[pyfunction]
pub fn vmap<'py>(
    fun: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyAny>,
    in_dims: &Bound<'py, PyAny>,
    axis_size: usize,
    axis_name: &Bound<'py, PyAny>,
    out_dims: &Bound<'py, PyAny>,
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
    let name = self::axis_name(axis_name)?;
    let shown = name.clone();
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
    let out = guarded(|| transform::vmap(&|x| call(fun, x, "vmap"), &x, &dims, axis_size, name, &place).py(py))?;
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
            .map(|d| Ok(crate::device::from_py_object(&d?)?.map(|d| d.id).unwrap_or_default()))
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
    let axis_text = self::axis_name(axis_name)?.unwrap_or_else(|| "<axis>".into());
    let (program, consts) = {
        let _axes = name_axes([(axis_text.clone(), axis_size)]);
        trace(py, fun, &ins, describe(&fun.getattr("fun").unwrap_or_else(|_| fun.clone())), "pmap", paths(None))?
    };
    if program.effects().ordered && axis_size > 1 {
        return Err(PyValueError::new_err(format!(
            "The ordered effects of {name} are not supported for more than 1 device: pmap runs it on {axis_size}"
        )));
    }
    let n = consts.len();
    let flags = config::flags();
    let checked = debug::wanted(flags) && ferrax_ir::cx::at_root();
    // what is checked may have to run again
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

// ---- checkpoint and custom rules ----

/// checkpoint(program, operands, prevent_cse, policy) -> outputs; the program's captured values are its leading operands.
#[pyfunction]
#[pyo3(signature = (program, operands, prevent_cse=true, policy=None))]
pub fn checkpoint<'py>(
    program: &Bound<'py, PyProgram>,
    operands: &Bound<'py, PyAny>,
    prevent_cse: bool,
    policy: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let py = program.py();
    let policy = policy.filter(|p| !p.is_none()).map(self::policy);
    let op = Remat { jaxpr: program.get().open(), prevent_cse, differentiated: false, policy };
    let consts = program.get().consts.iter().cloned();
    let args: Vec<Value> = consts.chain(all_required(operands, "checkpoint")?).collect();
    let out = guarded(|| ferrax_ir::bind(&op.into(), &args).py(py))?;
    PyList::new(py, wrap_all(py, out)?)
}

/// `policy(primitive, *avals, **params)` as what a checkpoint asks. Anything true keeps the results.
pub fn policy(f: &Bound<PyAny>) -> Policy {
    let host: Arc<Py<PyAny>> = Arc::new(f.clone().unbind());
    let asked = host.clone();
    let keeps = move |op: &ferrax_ir::Op, ins: &[ferrax_ir::Aval]| {
        Python::attach(|py| {
            let prim = crate::primitive::of(py, op)?.into_any();
            let mut args = vec![prim];
            for a in ins {
                args.push(Bound::new(py, ShapedArray(a.clone()))?.into_any());
            }
            let params = crate::param::dict(py, op)?;
            asked.bind(py).call(PyTuple::new(py, args)?, Some(&params))?.is_truthy()
        })
        .map_err(from_py)
    };
    let name = f.getattr("__name__").and_then(|n| n.extract()).unwrap_or_else(|_| name_of(f));
    Policy::new(&name, f.as_ptr() as usize, host, Arc::new(keeps))
}

/// Tangents of the inexact among `x`, spread over all of them.
fn spread<'py>(py: Python<'py>, inexact: &[bool], t: &[Tan]) -> PyResult<Bound<'py, PyList>> {
    let mut t = t.iter();
    let one = |on: &bool| wrap_optional(py, if *on { t.next().cloned().flatten() } else { None });
    PyList::new(py, inexact.iter().map(one).collect::<PyResult<Vec<_>>>()?)
}
/// Two sequences, as a rule returns them.
fn pair<'py>(out: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    out.extract::<(Bound<PyAny>, Bound<PyAny>)>()
}

/// custom_jvp_call(name, fun, rule, operands, symbolic_zeros=False); rule(primals, tangents) -> (outputs, output tangents)
#[pyfunction]
#[pyo3(signature = (name, fun, rule, operands, symbolic_zeros=false))]
pub fn custom_jvp_call<'py>(
    name: &str,
    fun: &Bound<'py, PyAny>,
    rule: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyAny>,
    symbolic_zeros: bool,
) -> PyResult<Bound<'py, PyList>> {
    let py = fun.py();
    let x = all_required(operands, name)?;
    let n = x.len();
    let jvp = host_rule(&name_of(rule), rule, move |rule, all| {
        let py = rule.py();
        let (x, t) = all.split_at(n);
        let inexact: Vec<bool> = x.iter().map(|x| x.as_ref().is_some_and(Value::has_tangent)).collect();
        let out =
            rule.call1((PyList::new(py, wrap_all(py, x.iter().flatten().cloned())?)?, spread(py, &inexact, t)?))?;
        let (y, dy) = pair(&out)?;
        let (y, dy) = (all_required(&y, "custom_jvp")?, all_optional(&dy, "custom_jvp")?);
        let dy: Vec<Tan> = y.iter().zip(dy).filter(|(y, _)| y.has_tangent()).map(|(_, t)| t).collect();
        Ok(y.into_iter().map(Some).chain(dy).collect())
    });
    let op = CustomJvp {
        name: name.into(),
        call_jaxpr: host(name, fun, |f, x| call(f, x, "custom_jvp")),
        jvp,
        num_consts: 0,
        symbolic_zeros,
    };
    let out = guarded(|| ferrax_ir::bind(&op.into(), &x).py(py))?;
    PyList::new(py, wrap_all(py, out)?)
}

/// custom_vjp_call(name, fun, fwd, bwd, operands, symbolic_zeros=False); fwd(*x) -> (outputs, residuals); bwd(residuals, cts) -> cts of x
#[pyfunction]
#[pyo3(signature = (name, fun, fwd, bwd, operands, symbolic_zeros=false))]
pub fn custom_vjp_call<'py>(
    name: &str,
    fun: &Bound<'py, PyAny>,
    fwd: &Bound<'py, PyAny>,
    bwd: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyAny>,
    symbolic_zeros: bool,
) -> PyResult<Bound<'py, PyList>> {
    let py = fun.py();
    let x = all_required(operands, name)?;
    // How many outputs there are is known when `fwd` has run; which of them and of the operands carry tangents, too.
    let outs = NumOuts::default();
    let in_avals: Vec<ferrax_ir::Aval> = x.iter().map(Value::aval).collect();
    let kinds: Arc<std::sync::Mutex<Vec<bool>>> = Arc::default();
    let (told, told_kinds) = (outs.clone(), kinds.clone());
    let n = x.len();
    let fwd_fn = host(&name_of(fwd), fwd, move |fwd, x| {
        let run = || -> PyResult<Values> {
            let py = fwd.py();
            let (x, perturbed) = x.split_at(n);
            let kwargs = PyDict::new(py);
            if symbolic_zeros {
                let on = |v: &Value| matches!(v, Value::Lit(l) if *l == Lit::from_i64(ferrax_ir::Dtype::BOOL, 1));
                kwargs.set_item("perturbed", perturbed.iter().map(on).collect::<Vec<_>>())?;
            }
            let out = fwd.call(PyTuple::new(py, wrap_all(py, x.iter().cloned())?)?, Some(&kwargs))?;
            let (y, res) = pair(&out)?;
            let mut y = all_required(&y, "custom_vjp")?;
            told.set(y.len());
            *told_kinds.lock().unwrap_or_else(|e| e.into_inner()) = y.iter().map(Value::has_tangent).collect();
            y.extend(all_required(&res, "custom_vjp")?);
            Ok(y)
        };
        run().map_err(from_py)
    });
    let bwd_fn = host_rule(&name_of(bwd), bwd, move |bwd, all| {
        let py = bwd.py();
        let kinds = kinds.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let n_ct = kinds.iter().filter(|k| **k).count();
        let (res, ct) = all.split_at(all.len() - n_ct);
        let res = PyList::new(py, wrap_all(py, res.iter().flatten().cloned())?)?;
        let out = bwd.call1((res, spread(py, &kinds, ct)?))?;
        let cts = all_optional(&out, "custom_vjp")?;
        if cts.len() != in_avals.len() {
            return Err(PyTypeError::new_err(format!(
                "Custom VJP bwd rule must return {} cotangents, one for each argument, but it returned {}",
                in_avals.len(),
                cts.len()
            )));
        }
        Ok(cts.into_iter().zip(&in_avals).filter(|(_, a)| a.has_tangent()).map(|(t, _)| t).collect())
    });
    let op = CustomVjp {
        name: name.into(),
        call_jaxpr: host(name, fun, |f, x| call(f, x, "custom_vjp")),
        fwd: fwd_fn,
        bwd: bwd_fn,
        num_consts: 0,
        num_outs: outs,
        symbolic_zeros,
    };
    let out = guarded(|| ferrax_ir::bind(&op.into(), &x).py(py))?;
    PyList::new(py, wrap_all(py, out)?)
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
