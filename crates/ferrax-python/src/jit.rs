//! What `jit` returns: a function that traces once per signature and runs the compiled program after that.
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
//! INVARIANT: on a hit no Python code runs, unless an argument's own class defines how it is taken apart. The cache is not locked
//! while Python runs. A trace that captured tracers belongs to its caller and is not kept.
mod stages;
mod structure;

pub use stages::{PyCompiled, PyJit, PyLowered, PyTraced};

use crate::array::ArrayImpl;
use crate::config::{self, Flags};
use crate::debug;
use crate::error::{IntoPyResult, from_py};
use crate::ffi::vectorcall::{self, Args};
use crate::trace_errors;
use crate::transforms::{self, describe, name_of};
use crate::tree::{Leaves, TreeDef};
use crate::value::{self, held, operand, type_text, wrap};
use ferrax::compiled::{Compiled, device_of};
use ferrax::device::Device;
use ferrax::eval;
use ferrax_ir::aval::Aval;
use ferrax_ir::effects::Name;
use ferrax_ir::ops::call::Call;
use ferrax_ir::program::{Fx, Program};
use ferrax_ir::value::{Value, Values};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use structure::{Slot, Structure, hashable, paths};

/// What the user asked of `jit`.
pub struct Options {
    pub static_argnums: Vec<isize>,
    pub static_argnames: Vec<String>,
    pub donate_argnums: Vec<isize>,
    pub donate_argnames: Vec<String>,
    pub keep_unused: bool,
    pub inline: bool,
    pub device: Option<&'static Device>,
}

pub struct Jit {
    function: Py<PyAny>,
    name: String,
    options: Options,
    cache: Arc<Mutex<Cache>>,
}

/// The caches of all jitted functions that are alive, for `clear_caches`.
static CACHES: Mutex<Vec<Weak<Mutex<Cache>>>> = Mutex::new(vec![]);
/// Forgets all traces.
pub fn clear_all() {
    let all: Vec<_> = lock(&CACHES).iter().filter_map(Weak::upgrade).collect();
    for c in all {
        let old = std::mem::take(&mut *lock(&c));
        drop(old);
    }
}

#[derive(Default)]
struct Cache {
    /// Most recently used first.
    structures: Vec<Arc<Structure>>,
}
/// More structures, or more variants of one, than this: the one used longest ago goes.
const MAX_STRUCTURES: usize = 256;
const MAX_VARIANTS: usize = 1024;

#[derive(Default)]
struct Variants {
    map: HashMap<u64, Vec<Arc<Variant>>, BuildHasherDefault<Fx>>,
    /// The one used last: nearly always the next one too, and found without hashing.
    last: Option<Arc<Variant>>,
    len: usize,
    clock: u64,
}

/// One traced signature.
pub struct Variant {
    ins: Vec<Aval>,
    epoch: u32,
    axes: Vec<(Name, usize)>,
    /// Captured values are its leading inputs.
    pub program: Arc<Program>,
    pub consts: Vec<Value>,
    pub out_def: Arc<TreeDef>,
    /// Which outputs are of dtype float0.
    float0: Vec<usize>,
    /// Which of consts and leaves are donated; empty if none is.
    donated: Vec<bool>,
    call: OnceLock<ferrax_ir::Op>,
    compiled: Mutex<SmallVec<[Arc<Compiled>; 1]>>,
    used: std::sync::atomic::AtomicU64,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

/// The arguments of a call, taken apart.
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

impl Jit {
    pub fn new(function: &Bound<PyAny>, options: Options) -> Jit {
        let cache = Arc::default();
        let mut all = lock(&CACHES);
        if all.len() == all.capacity() {
            all.retain(|c| c.strong_count() > 0);
        }
        all.push(Arc::downgrade(&cache));
        Jit { function: function.clone().unbind(), name: name_of(function), options, cache }
    }
    pub fn function(&self) -> &Py<PyAny> {
        &self.function
    }
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn text(&self, py: Python) -> PyResult<String> {
        Ok(format!("<PjitFunction of {}>", self.function.bind(py).repr()?))
    }
    pub fn clear(&self) {
        let old = std::mem::take(&mut *lock(&self.cache));
        drop(old);
    }
    /// How many traces are kept.
    pub fn size(&self) -> usize {
        let all: Vec<Arc<Structure>> = lock(&self.cache).structures.clone();
        all.iter().map(|s| lock(&s.variants).len).sum()
    }

    /// A call by vectorcall.
    pub fn call<'py>(&self, slf: &Bound<'py, PyAny>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let flags = config::flags();
        if flags.disable_jit() {
            return self.call_plainly(args);
        }
        let flat = self.flatten(args)?;
        let made = self.converted(py, &flat, flags)?;
        let values = flat.values(&made);
        let variant = self.variant(py, &flat, &values, flags)?;
        let out = variant.run(py, self, &values)?;
        variant.out_def.unflatten(py, &mut out.into_iter())
    }
    fn call_plainly<'py>(&self, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let positional = PyTuple::new(py, (0..args.n_positional()).map(|i| args.get(i)))?;
        let keywords = PyDict::new(py);
        if let Some(names) = args.names() {
            for (k, name) in names.iter().enumerate() {
                keywords.set_item(name, args.get(args.n_positional() + k))?;
            }
        }
        self.function.bind(py).call(positional, Some(&keywords))
    }

    // ---- the structure of the arguments ----

    pub fn flatten<'py>(&self, args: &Args<'_, 'py>) -> PyResult<Flat<'py>> {
        let py = args.py();
        let mut leaves = Leaves::new();
        // The structures most recently used are tried first; the lock is not held while arguments are looked at.
        for at in 0..4 {
            let Some(s) = lock(&self.cache).structures.get(at).cloned() else { break };
            leaves.clear();
            if s.matches(py, args, &mut leaves)? {
                if at > 0 {
                    let cache = &mut lock(&self.cache).structures;
                    if let Some(i) = cache.iter().position(|t| Arc::ptr_eq(t, &s)) {
                        cache[..=i].rotate_right(1);
                    }
                }
                return Ok(Flat { structure: s, leaves });
            }
        }
        leaves.clear();
        let made = self.structure(args, &mut leaves)?;
        let known: Vec<Arc<Structure>> = lock(&self.cache).structures.clone();
        for s in known {
            if s.equal(py, &made)? {
                let cache = &mut lock(&self.cache).structures;
                cache.retain(|t| !Arc::ptr_eq(t, &s));
                cache.insert(0, s.clone());
                return Ok(Flat { structure: s, leaves });
            }
        }
        let s = Arc::new(made);
        let dropped = {
            let cache = &mut lock(&self.cache).structures;
            cache.insert(0, s.clone());
            if cache.len() > MAX_STRUCTURES { cache.pop() } else { None }
        };
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
                Slot::Static(x.unbind())
            } else {
                let mut def = TreeDef::default();
                def.flatten(&x, None, leaves)?;
                Slot::Dynamic { def, donated }
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
        let _ = py;
        Ok(Structure {
            n_positional: n,
            names: names.into_iter().map(|n| n.0.unbind()).collect(),
            slots,
            variants: Mutex::default(),
        })
    }

    // ---- values ----

    /// The values of the leaves that are no arrays of ours.
    fn converted(&self, py: Python, flat: &Flat, flags: Flags) -> PyResult<Values> {
        let mut out = Values::new();
        for (i, x) in flat.leaves.iter().enumerate().filter(|(_, x)| held(x).is_none()) {
            out.push(match operand(x, flags) {
                Ok(Some(v)) => v,
                Ok(None) => return Err(self.bad_argument(py, flat, i)),
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

    /// The trace for these types, made if there is none yet.
    pub fn variant(&self, py: Python, flat: &Flat, values: &[&Value], flags: Flags) -> PyResult<Arc<Variant>> {
        let axes = if transforms::no_axes() { vec![] } else { transforms::axes() };
        let key = {
            let variants = &mut *lock(&flat.structure.variants);
            let fits = |v: &&Arc<Variant>| v.epoch == flags.epoch() && v.axes == axes && v.fits(values);
            variants.clock += 1;
            let clock = variants.clock;
            let mut key = 0;
            let mut found = variants.last.as_ref().filter(fits).cloned();
            if found.is_none() {
                let mut h = Fx::default();
                values.iter().for_each(|v| hash_type(v, &mut h));
                flags.epoch().hash(&mut h);
                key = h.finish();
                found = variants.map.get(&key).and_then(|all| all.iter().find(fits)).cloned();
                variants.last.clone_from(&found);
            }
            if let Some(v) = found {
                v.used.store(clock, std::sync::atomic::Ordering::Relaxed);
                return Ok(v);
            }
            key
        };
        let ins: Vec<Aval> = values.iter().map(|v| v.aval()).collect();
        if flags.explain_misses() {
            self.explain(py, flat, &ins)?;
        }
        let made = Arc::new(self.trace(py, flat, ins, flags, axes)?);
        if !made.consts.iter().any(Value::is_tracer) {
            let dropped = lock(&flat.structure.variants).insert(key, made.clone());
            drop(dropped);
        }
        Ok(made)
    }
    /// Logs why a call is traced anew: the first argument whose type no earlier trace had.
    fn explain(&self, py: Python, flat: &Flat, ins: &[Aval]) -> PyResult<()> {
        let old: Vec<Arc<Variant>> = lock(&flat.structure.variants).map.values().flatten().cloned().collect();
        let differs = |v: &Arc<Variant>| v.ins.iter().zip(ins).position(|(a, b)| a != b);
        let nearest = old.iter().filter_map(|v| differs(v).map(|i| (i, v))).max_by_key(|d| d.0);
        let why = match (nearest, old.is_empty()) {
            (Some((i, v)), _) => {
                format!("argument {} has type {:?}, earlier traces had {:?}", self.path(py, flat, i), ins[i], v.ins[i])
            }
            (None, true) if lock(&self.cache).structures.len() > 1 => {
                "the arguments' structure, or a static argument, was not seen before".into()
            }
            (None, true) => "the function was not called before".into(),
            (None, false) => "the configuration or the named axes in scope have changed".into(),
        };
        let logging = py.import("logging")?.call_method1("getLogger", ("ferrax",))?;
        logging
            .call_method1("warning", (format!("TRACING CACHE MISS of {}: {why}", describe(self.function.bind(py))),))?;
        Ok(())
    }
    /// Runs the Python function on tracers.
    pub fn trace(
        &self,
        py: Python,
        flat: &Flat,
        ins: Vec<Aval>,
        flags: Flags,
        axes: Vec<(Name, usize)>,
    ) -> PyResult<Variant> {
        let f = self.function.bind(py);
        let started = flags.log_compiles().then(std::time::Instant::now);
        let structure = &flat.structure;
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
                let values = leaves.iter().map(|x| {
                    operand(x, flags)?.ok_or_else(|| {
                        PyTypeError::new_err(format!(
                            "function {} traced for jit returned a value of type {}, which is not a valid JAX type",
                            describe(f),
                            type_text(x)
                        ))
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
            let _open = trace_errors::open(describe(f), "jit", lazy);
            crate::error::guarded(|| ferrax_transform::make_program(&run, &ins).py(py))?
        };
        let (program, consts) = traced;
        let Some(out_def) = out_def else { return Err(PyTypeError::new_err("the function was not traced to its end")) };
        if let Some(t) = started {
            let logging = py.import("logging")?.call_method1("getLogger", ("ferrax",))?;
            logging.call_method1(
                "warning",
                (format!("Finished tracing {} for jit in {:.6} sec", self.name, t.elapsed().as_secs_f64()),),
            )?;
        }
        let mut donated: Vec<bool> = vec![];
        if structure.slots.iter().any(|s| matches!(s, Slot::Dynamic { donated: true, .. })) {
            donated = vec![false; consts.len()];
            for s in &structure.slots {
                if let Slot::Dynamic { def, donated: d } = s {
                    donated.extend(std::iter::repeat_n(*d, def.n_leaves()));
                }
            }
        }
        let is_float0 = |a: &Aval| a.dtype == ferrax_ir::Dtype::Float0;
        let float0 = (0..program.out_avals().len()).filter(|i| is_float0(&program.out_avals()[*i])).collect();
        Ok(Variant {
            ins,
            float0,
            epoch: flags.epoch(),
            axes,
            program: Arc::new(program),
            consts,
            out_def: Arc::new(out_def),
            donated,
            call: OnceLock::new(),
            compiled: Mutex::default(),
            used: Default::default(),
        })
    }
}

fn hash_type(v: &Value, h: &mut Fx) {
    let (weak, tape) = (v.weak(), v.tape());
    h.write_u64(weak as u64 | (tape as u64) << 1 | (v.rank() as u64) << 9);
    v.dtype().hash(h);
    v.shape().iter().for_each(|n| h.write_usize(*n));
}

impl Variants {
    /// Adds a trace; returns what had to go.
    fn insert(&mut self, key: u64, v: Arc<Variant>) -> Vec<Arc<Variant>> {
        v.used.store(self.clock, std::sync::atomic::Ordering::Relaxed);
        self.map.entry(key).or_default().push(v);
        self.len += 1;
        if self.len <= MAX_VARIANTS {
            return vec![];
        }
        let age = |v: &Arc<Variant>| v.used.load(std::sync::atomic::Ordering::Relaxed);
        let mut ages: Vec<u64> = self.map.values().flatten().map(age).collect();
        ages.sort_unstable();
        let limit = ages[ages.len() / 4];
        let mut gone = vec![];
        self.map.retain(|_, all| {
            let (keep, old): (Vec<_>, Vec<_>) = std::mem::take(all).into_iter().partition(|v| age(v) > limit);
            gone.extend(old);
            *all = keep;
            !all.is_empty()
        });
        self.len -= gone.len();
        gone
    }
}

impl Variant {
    #[inline]
    fn fits(&self, values: &[&Value]) -> bool {
        self.ins.len() == values.len()
            && self.ins.iter().zip(values).all(|(a, v)| {
                a.dtype == v.dtype() && a.weak == v.weak() && *a.shape == *v.shape() && a.tape == v.tape()
            })
    }
    /// The outputs for these leaves: run here and now, or bound as one equation where something is traced.
    pub fn run<'py>(&self, py: Python<'py>, jit: &Jit, values: &[&Value]) -> PyResult<Leaves<'py>> {
        let with_consts: SmallVec<[&Value; 8]>;
        let all = if self.consts.is_empty() {
            values
        } else {
            with_consts = self.consts.iter().chain(values.iter().copied()).collect();
            &with_consts
        };
        if !ferrax_ir::cx::at_root() || all.iter().any(|v| v.is_tracer()) {
            return self.bind(jit, all).py(py)?.into_iter().map(|v| wrap(py, v)).collect();
        }
        let default = jit.options.device.unwrap_or_else(eval::current_device);
        let compiled = self.compiled(py, device_of(all, default).py(py)?)?;
        let out = compiled.run(all, &self.donated).py(py)?;
        let flags = config::flags();
        if debug::wanted(flags) {
            let x: Values = all.iter().map(|v| (*v).clone()).collect();
            let y: Values = out.iter().cloned().map(Value::Array).collect();
            debug::check_program(py, &jit.name, &self.program, &x, &y, flags)?;
        }
        let mut objects = Leaves::with_capacity(out.len());
        for a in out {
            objects.push(ArrayImpl::object(py, Value::Array(a))?);
        }
        for i in &self.float0 {
            if let Some(v) = held(&objects[*i]).cloned() {
                objects[*i] = value::to_ndarray(py, &v)?;
            }
        }
        Ok(objects)
    }
    /// The call as one equation of the trace that is open, or its body's equations where it is to be inlined.
    fn bind(&self, jit: &Jit, all: &[&Value]) -> ferrax_ir::Res<Values> {
        let all: Values = all.iter().map(|v| (*v).clone()).collect();
        if jit.options.inline {
            return ferrax_ir::current().inline(&self.program, &all);
        }
        let op = self.call.get_or_init(|| {
            let open = match self.program.n_consts() {
                0 => self.program.clone(),
                _ => Arc::new(self.program.with_consts(0)),
            };
            Call { inline: false, keep_unused: jit.options.keep_unused, ..Call::new(&jit.name, open) }.into()
        });
        ferrax_ir::bind(op, &all)
    }
    pub fn compiled(&self, py: Python, device: &'static Device) -> PyResult<Arc<Compiled>> {
        if let Some(c) = lock(&self.compiled).iter().find(|c| c.device.id == device.id) {
            return Ok(c.clone());
        }
        let c = Arc::new(Compiled::new(self.program.clone(), device).py(py)?);
        lock(&self.compiled).push(c.clone());
        Ok(c)
    }
    pub fn in_avals(&self) -> &[Aval] {
        &self.ins
    }
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

/// jit(fun, *, static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused, inline, device, backend)
#[pyfunction]
#[pyo3(signature = (fun, static_argnums=vec![], static_argnames=vec![], donate_argnums=vec![], donate_argnames=vec![], keep_unused=false, inline=false, device=None, backend=None))]
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
    let options =
        Options { static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused, inline, device };
    let out = vectorcall::new(py, Jit::new(fun, options))?;
    // as functools.wraps
    for name in ["__module__", "__name__", "__qualname__", "__doc__", "__annotations__"] {
        if let Ok(v) = fun.getattr(name) {
            out.setattr(name, v)?;
        }
    }
    if let Ok(d) = fun.getattr("__dict__")
        && let Ok(d) = d.cast::<PyDict>()
    {
        out.getattr("__dict__")?.cast::<PyDict>()?.update(d.as_mapping())?;
    }
    out.setattr("__wrapped__", fun)?;
    Ok(out)
}

/// The type of what is no array but has a shape and a dtype.
fn shaped(x: &Bound<PyAny>) -> Option<Aval> {
    let shape = crate::aval::shape_of(&x.getattr("shape").ok()?).ok()?;
    let np = crate::dtype::numpy(x.py()).ok()?;
    let dtype = np.getattr("dtype").and_then(|d| d.call1((x.getattr("dtype")?,))).ok()?;
    Some(Aval::of(crate::dtype::canonical(crate::dtype::exact(&dtype).ok()?), shape))
}
/// The types of a call's leaves where they may be `ShapeDtypeStruct`s: nothing is run.
pub fn types_of(leaves: &[Bound<PyAny>]) -> PyResult<Vec<Aval>> {
    leaves
        .iter()
        .map(|x| match value::aval_of(x)?.or_else(|| shaped(x)) {
            Some(a) => Ok(a),
            None => Err(PyTypeError::new_err(format!(
                "Argument '{}' of type {} is not a valid JAX type",
                x.str()?,
                type_text(x)
            ))),
        })
        .collect()
}
