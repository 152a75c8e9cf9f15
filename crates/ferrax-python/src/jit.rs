//! The function that `jit` returns: it traces once per signature and then runs the compiled
//! program.
//!
//! ```text
//! call ── match the arguments' structure ── leaves to values ── look their types up ── run ── put the outputs together
//!              (no allocation)                                     │ miss
//!                                                                  └── trace, compile, remember
//! ```
//!
//! A signature is the structure of the arguments, the static arguments, the types of the leaves (weakness included), the
//! configuration and the named axes in scope.
//!
//! INVARIANT: a cache hit runs no Python code, except the flatten functions of user-defined
//! classes. The cache is not locked while Python runs. A trace that captured tracers belongs to its
//! caller and is not cached.
mod cache;
mod laid;
mod run;
mod stages;
mod structs;
mod structure;
mod typed;
pub mod vectorcall;

pub use stages::{PyCompiled, PyExecutable, PyJit, PyLowered, PyTraced};

use crate::array::value::{self, argument, held, operand, type_text, wrap};
use crate::config::{self, Flags};
use crate::error::{IntoPyResult, from_py};
use crate::reads;
use crate::source::{describe, name_of};
use crate::trace::Pins;
use crate::trace_errors;
use crate::tree::{Leaves, TreeDef};
use crate::whose;
use cache::{TraceCache, clear_all, lock};
use ferrax::compiled::Compiled;
use ferrax::device::Device;
use ferrax::spmd::Spmd;
use ferrax_ir::aval::Aval;
use ferrax_ir::cx::NamedAxis;
use ferrax_ir::program::Program;
use ferrax_ir::value::{Value, Values};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};
use run::{check_compiler_options, listener, usable};
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use structure::{ArgSlot, Structure, hashable, paths};
use typed::Typed;
use vectorcall::Args;

/// The options of `jit`.
pub struct Options {
    pub static_argnums: Vec<isize>,
    pub static_argnames: Vec<String>,
    pub donate_argnums: Vec<isize>,
    pub donate_argnames: Vec<String>,
    pub keep_unused: bool,
    pub inline: bool,
    /// The device that it runs on regardless of its arguments: from `device`, `backend`, and
    /// shardings of one device.
    pub device: Option<&'static Device>,
    /// `in_shardings` and `out_shardings`, where they are over meshes.
    pub shardings: Option<(Py<PyAny>, Py<PyAny>)>,
    pub compiler_options: Option<Py<PyAny>>,
}

pub struct Jit {
    function: Py<PyAny>,
    name: String,
    options: Options,
    cache: Arc<Mutex<TraceCache>>,
    /// It closes over mutable references, or was given some: `ferrax._references.refs` makes values of them. Such a function has no traces of its own.
    refers: AtomicBool,
    /// A trace had the value of a surrounding program's reference as a constant: the next one is to have it as an input.
    read: AtomicBool,
}

/// One traced signature.
pub struct Variant {
    ins: Vec<Aval>,
    epoch: u64,
    axes: Vec<NamedAxis>,
    /// Captured values are its leading inputs.
    pub program: Arc<Program>,
    pub consts: Vec<Value>,
    pub out_def: Arc<TreeDef>,
    /// Which outputs are of dtype float0.
    float0: Vec<usize>,
    /// Which leaves the user gave up.
    given_up: Vec<bool>,
    /// Which of consts and leaves are donated: those that the caller gives up and a result can
    /// reuse. Empty if none is.
    donated: Vec<bool>,
    /// The device of functions called in it that are jitted for a device; it runs there too.
    pinned: Option<&'static Device>,
    call: OnceLock<ferrax_ir::Op>,
    compiled: Mutex<SmallVec<[Arc<Compiled>; 1]>>,
    /// The requested layouts of arguments and results; none if nothing was specified.
    laid: Option<Box<laid::Laid>>,
    /// Partitioned, for the layouts of arguments that were met.
    spmd: Mutex<Vec<Arc<Spmd>>>,
    used: std::sync::atomic::AtomicU64,
}

/// The flattened arguments of a call.
pub struct Flat<'py> {
    structure: Arc<Structure>,
    pub leaves: Leaves<'py>,
}

impl Flat<'_> {
    /// All leaves as values: arrays are read in place, the others are `made`.
    fn values<'a>(&'a self, made: &'a [Value]) -> SmallVec<[&'a Value; 8]> {
        let (mut all, mut made) = (SmallVec::with_capacity(self.leaves.len()), made.iter());
        all.extend(self.leaves.iter().filter_map(|x| held(x).or_else(|| made.next())));
        all
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        cache::leave(&self.function, &self.options, &self.cache);
    }
}
impl Jit {
    pub fn new(function: &Bound<PyAny>, options: Options) -> Jit {
        let cache = cache::of(function, &options);
        Jit {
            function: function.clone().unbind(),
            name: name_of(function),
            options,
            cache,
            refers: AtomicBool::new(false),
            read: AtomicBool::new(false),
        }
    }
    pub fn function(&self) -> &Py<PyAny> {
        &self.function
    }
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn text(&self, py: Python) -> PyResult<String> {
        Ok(match self.function.bind(py).repr() {
            Ok(f) => format!("<PjitFunction of {f}>"),
            Err(_) => "<PjitFunction>".into(),
        })
    }
    pub fn clear(&self) {
        cache::clear(&self.cache);
    }
    /// Calls `each` with the Python objects that the traces refer to, where nothing else shares them. For the collector.
    pub fn visit(&self, each: &mut dyn FnMut(&Py<PyAny>)) {
        if Arc::strong_count(&self.cache) == 1
            && let Ok(cache) = self.cache.try_lock()
        {
            cache.visit(each);
        }
    }
    /// Whether it has been found to refer, so that it has no traces of its own.
    pub fn refers(&self) -> bool {
        self.refers.load(Ordering::Relaxed)
    }
    /// How many traces are kept.
    pub fn size(&self) -> usize {
        let all = lock(&self.cache).structures();
        all.iter().map(|s| lock(&s.variants).len).sum()
    }

    /// A call by vectorcall.
    pub fn call<'py>(&self, slf: &Bound<'py, PyAny>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let flags = config::flags().placed();
        if flags.disable_jit() {
            return self.call_plainly(args);
        }
        let flat = self.flatten(args)?;
        let made = match self.converted(py, &flat, flags) {
            Ok(made) => made,
            Err(e) => return self.referring(slf, args, e),
        };
        let values = flat.values(&made);
        let variant = match self.variant(py, &flat, &values, flags) {
            Ok(v) => v,
            Err(e) => return self.referring(slf, args, e),
        };
        let out = variant.run(py, self, &values)?;
        variant.out_def.unflatten(py, &mut out.into_iter())
    }
    /// After an error: the call of a function that closes over mutable references, or is given some, by the hook `call_jitted`; else the error.
    #[cold]
    fn referring<'py>(&self, slf: &Bound<'py, PyAny>, args: &Args<'_, 'py>, e: PyErr) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let call = crate::hooks::call_jitted(py)?;
        let (positional, keywords) = collected(args)?;
        let called = call.call1((slf, e.value(py), positional, keywords))?;
        let Some(out) = called.extract::<Option<(Bound<PyAny>,)>>()? else { return Err(e) };
        self.refers.store(true, Ordering::Relaxed);
        Ok(out.0)
    }
    fn call_plainly<'py>(&self, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let (positional, keywords) = if whose::is_library(self.function.bind(py)) {
            // this library's functions require arrays; the user's get their arguments unchanged, as
            // in JAX
            let flat = self.flatten(args)?;
            let made = self.converted(py, &flat, config::flags())?;
            let values: Values = flat.values(&made).into_iter().cloned().collect();
            flat.structure.arguments(py, &mut values.into_iter().map(|v| wrap(py, v)))?
        } else {
            collected(args)?
        };
        self.function.bind(py).call(positional, Some(&keywords))
    }

    // ---- the structure of the arguments ----

    pub fn flatten<'py>(&self, args: &Args<'_, 'py>) -> PyResult<Flat<'py>> {
        let py = args.py();
        let mut leaves = Leaves::new();
        // The most recently used structures are tried first; the lock is not held while arguments
        // are examined.
        for at in 0..cache::RECENT {
            let Some(s) = lock(&self.cache).recent(at) else { break };
            leaves.clear();
            if s.matches(py, args, &mut leaves)? {
                if at > 0 {
                    lock(&self.cache).used(&s);
                }
                return Ok(Flat { structure: s, leaves });
            }
        }
        leaves.clear();
        let made = self.structure(args, &mut leaves)?;
        let known = lock(&self.cache).with_hash(made.hash);
        for s in known {
            if s.equal(py, &made)? {
                lock(&self.cache).used(&s);
                return Ok(Flat { structure: s, leaves });
            }
        }
        let s = Arc::new(made);
        let dropped = lock(&self.cache).insert(&s);
        drop(dropped);
        Ok(Flat { structure: s, leaves })
    }
    fn structure<'py>(&self, args: &Args<'_, 'py>, leaves: &mut Leaves<'py>) -> PyResult<Structure> {
        let py = args.py();
        let n = args.n_positional();
        let at = |i: isize| if i < 0 { i + n as isize } else { i };
        let mut names: Vec<(Bound<'py, PyString>, usize)> = vec![];
        if let Some(t) = args.names() {
            for (k, name) in t.iter().enumerate() {
                names.push((name.cast_into::<PyString>()?, n + k));
            }
        }
        names.sort_by(|a, b| a.0.to_str().unwrap_or("").cmp(b.0.to_str().unwrap_or("")));
        let mut slots = Vec::with_capacity(n + names.len());
        let mut slot = |x: Bound<'py, PyAny>, fixed: bool, donated: bool| -> PyResult<()> {
            slots.push(if fixed {
                hashable(&x)?;
                ArgSlot::Static(x.unbind())
            } else {
                let mut def = TreeDef::default();
                def.flatten(&x, None, leaves)?;
                ArgSlot::Dynamic { def, donated }
            });
            Ok(())
        };
        for i in 0..n {
            let is = |list: &[isize]| list.iter().any(|k| at(*k) == i as isize);
            slot(args.get(i), is(&self.options.static_argnums), is(&self.options.donate_argnums))?;
        }
        for (name, i) in &names {
            let text = name.to_str()?;
            let is = |list: &[String]| list.iter().any(|k| k == text);
            slot(args.get(*i), is(&self.options.static_argnames), is(&self.options.donate_argnames))?;
        }
        Structure::new(py, n, names.into_iter().map(|n| n.0.unbind()).collect(), slots)
    }

    // ---- values ----

    /// The values of leaves that are not arrays of ours. A jitted function of this library calls
    /// `__jax_array__` as its other functions do.
    fn converted(&self, py: Python, flat: &Flat, flags: Flags) -> PyResult<Values> {
        let mut out = Values::new();
        for (i, x) in flat.leaves.iter().enumerate().filter(|(_, x)| held(x).is_none()) {
            out.push(match operand(x, flags) {
                Ok(Some(v)) => v,
                Ok(None) => return Err(self.bad_argument(py, flat, i)),
                Err(e) if e.is_instance_of::<PyValueError>(py) && whose::is_library(self.function.bind(py)) => {
                    argument(x, flags, self.name(), i)?
                }
                Err(e) if e.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) => {
                    return Err(self.overflow(py, flat, i));
                }
                Err(e) => return Err(e),
            });
        }
        Ok(out)
    }
    fn path(&self, py: Python, flat: &Flat, i: usize) -> String {
        paths(py, &self.function, &flat.structure, &flat.leaves)
            .ok()
            .and_then(|p| p.get(i).cloned())
            .unwrap_or_else(|| format!("leaf {i}"))
    }
    fn bad_argument(&self, py: Python, flat: &Flat, i: usize) -> PyErr {
        PyTypeError::new_err(format!(
            "Error interpreting argument to {} as an abstract array. The problematic value is of type {} and was passed to the function at path {}.\n\
             This typically means that a jit-wrapped function was called with a non-array argument, and this argument was not marked as static using the \
             static_argnums or static_argnames parameters of jax.jit.",
            self.function.bind(py).repr().map(|r| r.to_string()).unwrap_or_default(),
            type_text(&flat.leaves[i]),
            self.path(py, flat, i)
        ))
    }
    fn overflow(&self, py: Python, flat: &Flat, i: usize) -> PyErr {
        let x = &flat.leaves[i];
        pyo3::exceptions::PyOverflowError::new_err(format!(
            "An overflow was encountered while parsing an argument to a jitted computation, whose argument path is {}. Got {} with value {}",
            self.path(py, flat, i),
            type_text(x),
            x.str().map(|s| s.to_string()).unwrap_or_default()
        ))
    }

    // ---- traces ----

    /// The trace for these types, made if there is none yet: the types of a call's values, or of
    /// abstract arguments.
    pub fn variant<T: Typed>(&self, py: Python, flat: &Flat, values: &[T], flags: Flags) -> PyResult<Arc<Variant>> {
        let axes = if ferrax_ir::cx::no_axes() { vec![] } else { ferrax_ir::cx::axes() };
        let key = {
            let variants = &mut *lock(&flat.structure.variants);
            let fits = |v: &&Arc<Variant>| v.epoch == flags.epoch() && v.axes == axes && v.fits(values);
            variants.clock += 1;
            let clock = variants.clock;
            let mut key = 0;
            let mut found = variants.last.as_ref().filter(fits).cloned();
            if found.is_none() {
                let mut h = FxHasher::default();
                values.iter().for_each(|v| v.hash_type(&mut h));
                flags.epoch().hash(&mut h);
                key = h.finish();
                found = variants.map.get(&key).and_then(|all| all.iter().find(fits)).cloned();
                variants.last.clone_from(&found);
            }
            if let Some(v) = found {
                v.used.store(clock, Ordering::Relaxed);
                return Ok(v);
            }
            key
        };
        if self.refers() {
            return Err(PyTypeError::new_err("a function that refers is called by ferrax._references.refs"));
        }
        if flags.no_tracing() {
            return Err(pyo3::exceptions::PyRuntimeError::new_err(format!(
                "re-tracing function {} for `jit`, but 'no_tracing' is set",
                describe(self.function.bind(py))
            )));
        }
        let ins: Vec<Aval> = values.iter().map(Typed::to_aval).collect();
        if flags.explain_misses() {
            self.explain(py, flat, &ins, flags)?;
        }
        let mark = reads::read_mark();
        let made = {
            let _inputs = self.read.load(Ordering::Relaxed).then(reads::Forbidden::begin);
            Arc::new(self.trace(py, flat, ins, flags, axes)?)
        };
        if reads::reads_outside(mark) {
            self.read.store(true, Ordering::Relaxed);
        } else if !made.consts.iter().any(Value::is_tracer) {
            let dropped = lock(&flat.structure.variants).insert(key, made.clone());
            drop(dropped);
        }
        Ok(made)
    }
    /// Logs why a call is traced anew: how its types differ from those of the nearest trace, or its structure from the one used last.
    fn explain(&self, py: Python, flat: &Flat, ins: &[Aval], flags: config::Flags) -> PyResult<()> {
        let at = ferrax_ir::cx::place(crate::source::here()).unwrap_or_default();
        let head = format!("TRACING CACHE MISS at {at}:");
        let this = describe(self.function.bind(py)).replacen(" at ", " defined at ", 1);
        let closest =
            format!("{head}\n  for {this}\n  all previously seen cache keys differ. For the closest previous key:");
        let old: Vec<Arc<Variant>> = lock(&flat.structure.variants).map.values().flatten().cloned().collect();
        let same = |v: &Arc<Variant>| v.ins.iter().zip(ins).filter(|(a, b)| a == b).count();
        let nearest = old.iter().max_by_key(|v| (same(v), v.used.load(std::sync::atomic::Ordering::Relaxed)));
        let text = if let Some(v) = nearest {
            let differ = ins.iter().zip(&v.ins).enumerate().filter(|(_, (a, b))| a != b);
            let shown = |a: &Aval| {
                format!("{:?}{}", Aval { weak: false, ..a.clone() }, if a.weak { "{weak_type=True}" } else { "" })
            };
            let lines: Vec<String> = differ
                .map(|(i, (now, before))| {
                    format!("\n  * at {}, now {} and before {}", self.path(py, flat, i), shown(now), shown(before))
                })
                .collect();
            if lines.is_empty() {
                let settings = config::differences(py, flags.epoch(), v.epoch).into_iter();
                let lines: String = settings
                    .map(|(name, now, old)| format!("\n  * {name} differs: now {now} and before {old}"))
                    .collect();
                let lines = if lines.is_empty() { "\n  * the named axes in scope differ".into() } else { lines };
                format!("{closest}\n  Tracing context doesn't match, e.g. due to config or context manager.{lines}")
            } else {
                format!("{closest}\n  different input types:{}", lines.concat())
            }
        } else {
            let before = lock(&self.cache).structures();
            let before = before.into_iter().filter(|s| !Arc::ptr_eq(s, &flat.structure));
            match before.max_by_key(|s| s.used.load(std::sync::atomic::Ordering::Relaxed)) {
                None => format!("{head}\n  never seen function:\n    {this}"),
                Some(before) => {
                    let found: Vec<String> = crate::hooks::structure_changes(py)?
                        .call1((&self.function, flat.structure.shown(py)?, before.shown(py)?))?
                        .extract()?;
                    let lines: Vec<String> = found.iter().map(|l| format!("\n  * {l}")).collect();
                    format!("{closest}\n  different input pytree:{}", lines.concat())
                }
            }
        };
        match listener(py, true)? {
            Some(log) => log.say(text),
            None => Ok(()),
        }
    }
    /// Runs the Python function on tracers.
    pub fn trace(
        &self,
        py: Python,
        flat: &Flat,
        ins: Vec<Aval>,
        flags: Flags,
        axes: Vec<NamedAxis>,
    ) -> PyResult<Variant> {
        let f = self.function.bind(py);
        let started = std::time::Instant::now();
        let structure = &flat.structure;
        let wanted = self.wanted_ins(py, flat, &ins)?;
        let pins = Pins::open();
        let mut out_def = None;
        let cell = std::cell::RefCell::new(&mut out_def);
        let run = |x: &[Value]| -> ferrax_ir::Res<Values> {
            trace_errors::tagged(x);
            let run = || -> PyResult<Values> {
                let (args, kwargs) = structure.arguments(py, &mut x.iter().map(|v| wrap(py, v.clone())))?;
                let out = f.call(args, Some(&kwargs))?;
                let (mut def, mut leaves) = (TreeDef::default(), Leaves::new());
                def.flatten(&out, None, &mut leaves)?;
                let flags = config::flags();
                let values = leaves.iter().enumerate().map(|(i, x)| {
                    operand(x, flags)?.ok_or_else(|| {
                        crate::function::bad_output(
                            f,
                            "jit",
                            x,
                            &crate::function::component(py, &out, i).unwrap_or_default(),
                        )
                    })
                });
                let values = values.collect::<PyResult<Values>>()?;
                **cell.borrow_mut() = Some(def);
                Ok(values)
            };
            run().map_err(from_py)
        };
        let traced = {
            let (function, structure, leaves) = (
                self.function.clone_ref(py),
                structure.clone(),
                flat.leaves.iter().map(|x| x.clone().unbind()).collect::<Vec<_>>(),
            );
            let lazy = move || {
                Python::attach(|py| {
                    let leaves: Vec<Bound<PyAny>> = leaves.iter().map(|x| x.bind(py).clone()).collect();
                    paths(py, &function, &structure, &leaves).unwrap_or_default()
                })
            };
            let _open = trace_errors::open(f, "jit", lazy);
            let _names = crate::source::scopes::OutsideScopes::begin();
            let _concrete = crate::array::value::Concrete::begin();
            crate::error::guarded(|| ferrax_transform::make_program(&run, &ins).py(py))?
        };
        let (program, consts) = traced;
        let Some(out_def) = out_def else { return Err(PyTypeError::new_err("the function was not traced to its end")) };
        if let Some(log) = listener(py, flags.log_compiles())? {
            let seconds = started.elapsed().as_secs_f64();
            log.say(format!("Finished tracing {} for jit in {seconds:.6} sec", self.name))?;
        }
        let mut given_up = vec![];
        for s in &structure.slots {
            if let ArgSlot::Dynamic { def, donated } = s {
                given_up.extend(std::iter::repeat_n(*donated, def.n_leaves()));
            }
        }
        let is_float0 = |a: &Aval| a.dtype == ferrax_ir::Dtype::Float0;
        let float0 = (0..).zip(program.out_avals()).filter(|(_, a)| is_float0(a)).map(|(i, _)| i).collect();
        let laid = self.laid(py, wanted, &program, &out_def)?;
        let several = laid.as_ref().and_then(|l| l.mesh()).is_some_and(|m| m.devices().len() > 1);
        let donated = usable(py, &program, &given_up, several)?;
        Ok(Variant {
            ins,
            float0,
            epoch: flags.epoch(),
            axes,
            program: Arc::new(program),
            consts,
            out_def: Arc::new(out_def),
            given_up,
            donated,
            pinned: pins.found(),
            call: OnceLock::new(),
            compiled: Mutex::default(),
            laid,
            spmd: Mutex::default(),
            used: Default::default(),
        })
    }
}

/// The arguments of a call as a tuple and a dict.
fn collected<'py>(args: &Args<'_, 'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
    let py = args.py();
    let positional = PyTuple::new(py, (0..args.n_positional()).map(|i| args.get(i)))?;
    let keywords = PyDict::new(py);
    for (k, name) in args.names().iter().flat_map(|t| t.iter()).enumerate() {
        keywords.set_item(name, args.get(args.n_positional() + k))?;
    }
    Ok((positional, keywords))
}
/// An attribute of a jitted function that is neither in its dict nor on its class.
pub fn attribute<'py>(slf: &Bound<'py, PyAny>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let text = name.cast::<PyString>()?;
    if text.to_str()?.starts_with("__") {
        return Err(pyo3::exceptions::PyAttributeError::new_err(text.to_str()?.to_string()));
    }
    let Some(jit) = vectorcall::shared(slf) else { return Err(PyTypeError::new_err("not a jitted function")) };
    Bound::new(py, PyJit(jit))?.as_any().getattr(text)
}

/// jit(fun, *, static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused, inline, device, backend, shardings, compiler_options)
#[pyfunction]
#[pyo3(signature = (fun, static_argnums=vec![], static_argnames=vec![], donate_argnums=vec![], donate_argnames=vec![], keep_unused=false, inline=false, device=None, backend=None, shardings=None, compiler_options=None))]
pub fn jit<'py>(
    fun: &Bound<'py, PyAny>,
    static_argnums: Vec<isize>,
    static_argnames: Vec<String>,
    donate_argnums: Vec<isize>,
    donate_argnames: Vec<String>,
    keep_unused: bool,
    inline: bool,
    device: Option<&Bound<'py, PyAny>>,
    backend: Option<&str>,
    shardings: Option<(Py<PyAny>, Py<PyAny>)>,
    compiler_options: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = fun.py();
    if !fun.is_callable() {
        return Err(PyTypeError::new_err(format!("Expected a callable value, got {}", fun.repr()?)));
    }
    let device = match (device, backend) {
        (Some(d), _) if !d.is_none() => crate::device::from_py_object(d)?,
        (_, Some(b)) => {
            let all = crate::device::devices(py, Some(b))?;
            crate::device::from_py_object(&all.get_item(0)?)?
        }
        _ => None,
    };
    let options = Options {
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        keep_unused,
        inline,
        device,
        shardings,
        compiler_options,
    };
    let out = vectorcall::new(py, Jit::new(fun, options))?;
    // as functools.wraps
    use crate::once::intern;
    let copied = [
        intern!(py, "__module__"),
        intern!(py, "__name__"),
        intern!(py, "__qualname__"),
        intern!(py, "__doc__"),
        intern!(py, "__annotations__"),
    ];
    for name in copied {
        if let Ok(v) = fun.getattr(name) {
            out.setattr(name, v)?;
        }
    }
    if let Ok(d) = fun.getattr("__dict__")
        && let Ok(d) = d.cast::<PyDict>()
        && !d.is_empty()
    {
        let own = out.getattr("__dict__")?;
        let own = own.cast::<PyDict>()?;
        own.update(d.as_mapping())?;
        // a mapped function has a `lower` of its own; jit's come from its type
        for method in stages::METHODS {
            own.call_method1("pop", (method, py.None()))?;
        }
    }
    out.setattr(intern!(py, "__wrapped__"), fun)?;
    Ok(out)
}

/// The type of an object that is not an array but has a shape and a dtype.
fn shaped(x: &Bound<PyAny>) -> Option<Aval> {
    let shape = crate::aval::shape_of(&x.getattr("shape").ok()?).ok()?;
    let np = crate::dtype::numpy(x.py()).ok()?;
    let dtype = np.getattr("dtype").and_then(|d| d.call1((x.getattr("dtype")?,))).ok()?;
    Some(Aval::of(crate::dtype::canonical(crate::dtype::exact(&dtype).ok()?), shape))
}
/// Whether it is a mutable reference or a description of one. The hook `stage_jitted` makes stages
/// with these: a program traced with the value of a reference would get the reference when it runs.
fn is_reference(x: &Bound<PyAny>) -> bool {
    let is_array = x.is_instance_of::<crate::array::PyArray>();
    !is_array && x.getattr("is_ref").is_ok_and(|r| r.is(PyBool::new(x.py(), true)))
}
/// The types of a call's leaves where they may be `ShapeDtypeStruct`s: nothing is run.
pub fn types_of(leaves: &[Bound<PyAny>]) -> PyResult<Vec<Aval>> {
    leaves
        .iter()
        .map(|x| match if is_reference(x) { None } else { value::aval_of(x)?.or_else(|| shaped(x)) } {
            Some(a) => Ok(a),
            None => Err(PyTypeError::new_err(format!(
                "Argument '{}' of type {} is not a valid JAX type",
                x.str()?,
                type_text(x)
            ))),
        })
        .collect()
}

/// live_executables(platform): the compiled programs of all jitted functions, for the devices of that platform.
#[pyfunction]
pub fn live_executables(platform: &str) -> Vec<PyExecutable> {
    let all = cache::all_variants().into_iter().flat_map(|v| lock(&v.compiled).to_vec());
    all.filter(|c| c.device.platform() == platform).map(PyExecutable::of).collect()
}
/// clear_caches(): forgets compiled primitives and the traces of every jitted function.
#[pyfunction]
pub fn clear_caches() {
    ferrax::eval::clear_cache();
    clear_all();
}
