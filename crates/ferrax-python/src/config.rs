//! The configuration that the runtime reads: one value for the process, overridden for a thread.
//!
//! INVARIANT: a flag's value is part of [`epoch`] if it can change what a function traces to; a traced program is only reused
//! under an equal epoch.
use ferrax::numpy::{Promotion, Rank};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::sync::RwLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The flags read on hot paths, packed into a word that is a cache key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flags(u32);

const X64: u32 = 1;
const THREEFRY_PARTITIONABLE: u32 = 2;
const DEBUG_NANS: u32 = 4;
const DEBUG_INFS: u32 = 8;
const DISABLE_JIT: u32 = 16;
const STRICT: u32 = 32;
const RANK_WARN: u32 = 64;
const RANK_RAISE: u32 = 128;
const LOG_COMPILES: u32 = 256;
const EXPLAIN_MISSES: u32 = 512;
const CHECK_LEAKS: u32 = 1024;
const ENABLE_CHECKS: u32 = 2048;

/// Flags whose values are bits.
const BITS: [(&str, u32); 9] = [
    ("jax_enable_x64", X64),
    ("jax_threefry_partitionable", THREEFRY_PARTITIONABLE),
    ("jax_debug_nans", DEBUG_NANS),
    ("jax_debug_infs", DEBUG_INFS),
    ("jax_disable_jit", DISABLE_JIT),
    ("jax_log_compiles", LOG_COMPILES),
    ("jax_explain_cache_misses", EXPLAIN_MISSES),
    ("jax_check_tracer_leaks", CHECK_LEAKS),
    ("jax_enable_checks", ENABLE_CHECKS),
];
/// Flags whose values are words or objects.
const OBJECTS: [&str; 6] = [
    "jax_numpy_rank_promotion",
    "jax_numpy_dtype_promotion",
    "jax_num_cpu_devices",
    "jax_default_matmul_precision",
    "jax_default_device",
    "jax_platforms",
];

static PROCESS: AtomicU32 = AtomicU32::new(THREEFRY_PARTITIONABLE);
static PROCESS_OBJECTS: RwLock<[Option<Py<PyAny>>; 6]> = RwLock::new([const { None }; 6]);
thread_local! {
    /// (which bits are overridden, their values)
    static LOCAL: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    static LOCAL_OBJECTS: RefCell<[Option<Py<PyAny>>; 6]> = const { RefCell::new([const { None }; 6]) };
}

/// The flags in force on this thread.
#[inline]
pub fn flags() -> Flags {
    let (mask, bits) = LOCAL.get();
    Flags(PROCESS.load(Ordering::Relaxed) & !mask | bits)
}
impl Flags {
    /// Random bits in the original counter layout instead of the partitionable one.
    pub fn original_layout(self) -> bool {
        !self.has(THREEFRY_PARTITIONABLE)
    }
    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }
    pub fn x64(self) -> bool {
        self.has(X64)
    }
    pub fn disable_jit(self) -> bool {
        self.has(DISABLE_JIT)
    }
    pub fn debug_nans(self) -> bool {
        self.has(DEBUG_NANS)
    }
    pub fn debug_infs(self) -> bool {
        self.has(DEBUG_INFS)
    }
    pub fn log_compiles(self) -> bool {
        self.has(LOG_COMPILES)
    }
    pub fn explain_misses(self) -> bool {
        self.has(EXPLAIN_MISSES)
    }
    pub fn check_leaks(self) -> bool {
        self.has(CHECK_LEAKS)
    }
    pub fn enable_checks(self) -> bool {
        self.has(ENABLE_CHECKS)
    }
    pub fn promotion(self) -> Promotion {
        let rank = if self.has(RANK_RAISE) {
            Rank::Raise
        } else if self.has(RANK_WARN) {
            Rank::Warn
        } else {
            Rank::Allow
        };
        Promotion { x64: self.x64(), strict: self.has(STRICT), rank }
    }
    /// What a traced program depends on.
    #[inline]
    pub fn epoch(self) -> u32 {
        self.0 & !(LOG_COMPILES | EXPLAIN_MISSES)
    }
}

/// What an object flag means for the packed word: the bits it owns and their values.
fn bits_of(name: &str, value: &Bound<PyAny>) -> (u32, u32) {
    let is = |s: &str| value.extract::<String>().is_ok_and(|v| v == s);
    match name {
        "jax_numpy_rank_promotion" => (
            RANK_WARN | RANK_RAISE,
            if is("raise") {
                RANK_RAISE
            } else if is("warn") {
                RANK_WARN
            } else {
                0
            },
        ),
        "jax_numpy_dtype_promotion" => (STRICT, if is("strict") { STRICT } else { 0 }),
        _ => (0, 0),
    }
}
fn unknown(name: &str) -> PyErr {
    PyAttributeError::new_err(format!("Unrecognized config option: {name}"))
}
fn default_of<'py>(py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyAny>> {
    Ok(match OBJECTS[i] {
        "jax_numpy_rank_promotion" => "allow".into_pyobject(py)?.into_any(),
        "jax_numpy_dtype_promotion" => "standard".into_pyobject(py)?.into_any(),
        "jax_num_cpu_devices" => (-1i64).into_pyobject(py)?.into_any(),
        _ => py.None().into_bound(py),
    })
}

/// config_get(name): the value in force on this thread.
#[pyfunction]
pub fn config_get<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    if let Some((_, bit)) = BITS.iter().find(|b| b.0 == name) {
        return Ok(flags().has(*bit).into_pyobject(py)?.to_owned().into_any());
    }
    let i = OBJECTS.iter().position(|o| *o == name).ok_or_else(|| unknown(name))?;
    let local = LOCAL_OBJECTS.with(|l| l.borrow()[i].as_ref().map(|v| v.clone_ref(py)));
    if let Some(v) = local {
        return Ok(v.into_bound(py));
    }
    match &PROCESS_OBJECTS.read().unwrap_or_else(|e| e.into_inner())[i] {
        Some(v) => Ok(v.bind(py).clone()),
        None => default_of(py, i),
    }
}
/// config_set(name, value): for the whole process.
#[pyfunction]
pub fn config_set(name: &str, value: &Bound<PyAny>) -> PyResult<()> {
    if let Some((_, bit)) = BITS.iter().find(|b| b.0 == name) {
        set(*bit, if value.is_truthy()? { *bit } else { 0 });
        return Ok(());
    }
    let i = OBJECTS.iter().position(|o| *o == name).ok_or_else(|| unknown(name))?;
    if name == "jax_platforms" {
        crate::device::set_platforms(value)?;
    }
    let (mask, bits) = bits_of(name, value);
    set(mask, bits);
    let old = PROCESS_OBJECTS.write().unwrap_or_else(|e| e.into_inner())[i].replace(value.clone().unbind());
    drop(old);
    Ok(())
}
fn set(mask: u32, bits: u32) {
    let _ = PROCESS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(old & !mask | bits));
}
/// config_set_local(name, value): for this thread; None goes back to the process's value. Returns what was set for the thread before, or None.
#[pyfunction]
pub fn config_set_local<'py>(
    py: Python<'py>,
    name: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (mask, bits) = LOCAL.get();
    if let Some((_, bit)) = BITS.iter().find(|b| b.0 == name) {
        let before = (mask & bit != 0).then_some(bits & bit != 0);
        LOCAL.set(match value.is_none() {
            true => (mask & !bit, bits & !bit),
            false => (mask | bit, bits & !bit | if value.is_truthy()? { *bit } else { 0 }),
        });
        return Ok(before.map(|b| b.into_pyobject(py).map(|b| b.to_owned().into_any())).transpose()?);
    }
    let i = OBJECTS.iter().position(|o| *o == name).ok_or_else(|| unknown(name))?;
    let (owned, values) = bits_of(name, value);
    LOCAL.set(if value.is_none() { (mask & !owned, bits & !owned) } else { (mask | owned, bits & !owned | values) });
    let new = (!value.is_none()).then(|| value.clone().unbind());
    let old = LOCAL_OBJECTS.with(|l| std::mem::replace(&mut l.borrow_mut()[i], new));
    Ok(old.map(|v| v.into_bound(py)))
}

/// The flags as attributes: `config.jax_enable_x64`.
#[pyclass(frozen, name = "_NativeConfig")]
pub struct NativeConfig;
#[pymethods]
impl NativeConfig {
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        config_get(py, name)
    }
}
