//! The configuration: one value for the process, with overrides per thread.
//!
//! The table in `python/ferrax/_base/config.py` defines the flags, their defaults and their types, and
//! registers each with [`config_define`]. This module holds their values, and a packed word of
//! those that hot paths read.
//!
//! INVARIANT: a flag that can change traced programs is part of [`Flags::epoch`]; a traced program
//! is reused only under an equal epoch.
use crate::device::{self, PyDevice};
use crate::whose;
use ferrax::numpy::{Promotion, Rank};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The flags read on hot paths, packed into a word that is a cache key: bits, then the number of the process's other values that
/// traces depend on, then that of the thread's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flags(u64);

const X64: u64 = 1;
const THREEFRY_PARTITIONABLE: u64 = 2;
const DEBUG_NANS: u64 = 4;
const DEBUG_INFS: u64 = 8;
const DISABLE_JIT: u64 = 16;
const STRICT: u64 = 32;
const RANK_WARN: u64 = 64;
const RANK_RAISE: u64 = 128;
const LOG_COMPILES: u64 = 256;
const EXPLAIN_MISSES: u64 = 512;
const CHECK_LEAKS: u64 = 1024;
const ENABLE_CHECKS: u64 = 2048;
const NO_TRACING: u64 = 4096;
const KEY_REUSE: u64 = 8192;
/// Not a setting but the kind of caller: see `Flags::placed`.
const USERS_OPERATORS: u64 = 16384;
const USERS_ARGUMENTS: u64 = 32768;
const WITHOUT_ONES: u64 = 65536;
const CASTS_BY_HAND: u64 = 131_072;
const GUARD_HOST: u64 = 262_144;
const GUARD_DEVICES: u64 = 524_288;
const PROCESS_SHIFT: u32 = 20;
const LOCAL_SHIFT: u32 = 42;
const NUMBERS: u64 = (1 << 22) - 1;

/// The flags that have bits: which, and which of them each value sets.
type Bits = (&'static str, u64, &'static [(&'static str, u64)]);
const BITS: [Bits; 17] = [
    ("jax_enable_x64", X64, &[("True", X64)]),
    ("jax_threefry_partitionable", THREEFRY_PARTITIONABLE, &[("True", THREEFRY_PARTITIONABLE)]),
    ("jax_debug_nans", DEBUG_NANS, &[("True", DEBUG_NANS)]),
    ("jax_debug_infs", DEBUG_INFS, &[("True", DEBUG_INFS)]),
    ("jax_disable_jit", DISABLE_JIT, &[("True", DISABLE_JIT)]),
    ("jax_log_compiles", LOG_COMPILES, &[("True", LOG_COMPILES)]),
    ("jax_explain_cache_misses", EXPLAIN_MISSES, &[("True", EXPLAIN_MISSES)]),
    ("jax_check_tracer_leaks", CHECK_LEAKS, &[("True", CHECK_LEAKS)]),
    ("jax_enable_checks", ENABLE_CHECKS, &[("True", ENABLE_CHECKS)]),
    ("jax_debug_key_reuse", KEY_REUSE, &[("True", KEY_REUSE)]),
    ("jax_no_tracing", NO_TRACING, &[("True", NO_TRACING)]),
    ("jax_remove_size_one_mesh_axis_from_type", WITHOUT_ONES, &[("True", WITHOUT_ONES)]),
    ("jax_auto_pcast", CASTS_BY_HAND, &[("False", CASTS_BY_HAND)]),
    ("jax_transfer_guard_host_to_device", GUARD_HOST, &guarded(GUARD_HOST)),
    ("jax_transfer_guard_device_to_device", GUARD_DEVICES, &guarded(GUARD_DEVICES)),
    ("jax_numpy_dtype_promotion", STRICT, &[("strict", STRICT)]),
    ("jax_numpy_rank_promotion", RANK_WARN | RANK_RAISE, &[("warn", RANK_WARN), ("raise", RANK_RAISE)]),
];

/// The values under which transfers are looked at.
const fn guarded(bit: u64) -> [(&'static str, u64); 4] {
    [("log", bit), ("disallow", bit), ("log_explicit", bit), ("disallow_explicit", bit)]
}

struct Entry {
    name: String,
    /// Its place in `BITS`.
    bits: Option<usize>,
    /// Whether traces depend on it. (Those with bits are in the epoch by their bits.)
    traced: bool,
    default: Py<PyAny>,
    process: Option<Py<PyAny>>,
}
/// Values of traced flags without bits: (a flag's number, the value as text).
type Context = Vec<(usize, String)>;
#[derive(Default)]
struct ConfigTable {
    entries: Vec<Entry>,
    numbers: FxHashMap<String, usize>,
    /// The epoch's number for the values of traced flags without bits; no values at all are 0.
    contexts: HashMap<Context, u64>,
}
static TABLE: LazyLock<RwLock<ConfigTable>> = LazyLock::new(RwLock::default);
static PROCESS: AtomicU64 = AtomicU64::new(THREEFRY_PARTITIONABLE);
thread_local! {
    /// (which bits are overridden, their values)
    static LOCAL: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    /// For each flag the values that blocks of this thread have set, the innermost last.
    static BLOCKS: RefCell<Vec<Vec<Py<PyAny>>>> = const { RefCell::new(vec![]) };
}
fn read() -> RwLockReadGuard<'static, ConfigTable> {
    TABLE.read().unwrap_or_else(|e| e.into_inner())
}
fn write() -> RwLockWriteGuard<'static, ConfigTable> {
    TABLE.write().unwrap_or_else(|e| e.into_inner())
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
    fn has(self, bit: u64) -> bool {
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
    pub fn key_reuse(self) -> bool {
        self.has(KEY_REUSE)
    }
    pub fn no_tracing(self) -> bool {
        self.has(NO_TRACING)
    }
    /// Mesh axes of size one are left out of types.
    pub fn without_ones(self) -> bool {
        self.has(WITHOUT_ONES)
    }
    /// A value that varies over fewer mesh axes than the other operands is refused.
    pub fn casts_by_hand(self) -> bool {
        self.has(CASTS_BY_HAND)
    }
    /// Transfers from the host to a device are refused or reported.
    #[inline]
    pub fn guards_host(self) -> bool {
        self.has(GUARD_HOST)
    }
    /// Transfers between devices are.
    pub fn guards_devices(self) -> bool {
        self.has(GUARD_DEVICES)
    }
    /// The same where nothing looks at transfers: what follows is not a transfer, or was looked at.
    pub fn unguarded(self) -> Flags {
        Flags(self.0 & !(GUARD_HOST | GUARD_DEVICES))
    }
    pub fn enable_checks(self) -> bool {
        self.has(ENABLE_CHECKS)
    }
    /// The same, and whether the settings of promotion apply to the calling code: part of the key
    /// of traces.
    #[inline]
    pub fn placed(self) -> Flags {
        if self.has(STRICT | RANK_WARN | RANK_RAISE) { self.with_standing() } else { self }
    }
    #[cold]
    fn with_standing(self) -> Flags {
        let s = whose::standing();
        let bit = |b: bool, bit: u64| if b { bit } else { 0 };
        Flags(self.0 | bit(s.operators, USERS_OPERATORS) | bit(s.arguments, USERS_ARGUMENTS))
    }
    /// How an operator promotes in the code that uses it.
    #[inline]
    pub fn promotion_of_operators(self) -> Promotion {
        self.placed().promotion_if(USERS_OPERATORS)
    }
    /// How a function promotes its arguments where it is called.
    #[inline]
    pub fn promotion_of_arguments(self) -> Promotion {
        self.placed().promotion_if(USERS_ARGUMENTS)
    }
    fn promotion_if(self, bit: u64) -> Promotion {
        if self.has(bit) { self.promotion() } else { Promotion { x64: self.x64(), ..Promotion::default() } }
    }
    fn promotion(self) -> Promotion {
        let rank = if self.has(RANK_RAISE) {
            Rank::Raise
        } else if self.has(RANK_WARN) {
            Rank::Warn
        } else {
            Rank::Allow
        };
        Promotion { x64: self.x64(), strict: self.has(STRICT), rank }
    }
    /// The settings that a traced program depends on.
    #[inline]
    pub fn epoch(self) -> u64 {
        self.0 & !(LOG_COMPILES | EXPLAIN_MISSES | NO_TRACING | GUARD_HOST | GUARD_DEVICES)
    }
}

fn unknown(name: &str) -> PyErr {
    PyAttributeError::new_err(format!("Unrecognized config option: {name}"))
}
fn number(name: &str) -> PyResult<usize> {
    read().numbers.get(name).copied().ok_or_else(|| unknown(name))
}
/// The bits that a flag owns, and those of a value.
fn bits_of(which: usize, value: &Bound<PyAny>) -> (u64, u64) {
    let (_, mask, words) = BITS[which];
    let word = value.str().map(|s| s.to_string()).unwrap_or_default();
    (mask, words.iter().find(|w| w.0 == word).map_or(0, |w| w.1))
}
/// The number of a set of values of the traced flags without bits.
fn context<'py>(py: Python<'py>, value: impl Fn(usize, &Entry) -> Option<Bound<'py, PyAny>>) -> u64 {
    let mut key = Context::new();
    {
        let table = read();
        for (i, e) in table.entries.iter().enumerate().filter(|(_, e)| e.traced && e.bits.is_none()) {
            let Some(v) = value(i, e) else { continue };
            let text = |v: &Bound<'py, PyAny>| v.repr().map(|r| r.to_string()).unwrap_or_default();
            key.push((i, text(&v)));
        }
        let _ = py;
    }
    if key.is_empty() {
        return 0;
    }
    let mut table = write();
    let next = table.contexts.len() as u64 + 1;
    *table.contexts.entry(key).or_insert(next) & NUMBERS
}

/// The differences between the settings of two traces (`Flags::epoch`): (setting, its value in the
/// first, in the second).
pub fn differences(py: Python, first: u64, second: u64) -> Vec<(String, String, String)> {
    let table = read();
    let usual = |e: &Entry| e.default.bind(py).str().map(|s| s.to_string()).unwrap_or_default();
    let in_force = |epoch: u64| -> Vec<String> {
        let context = |shift: u32| {
            let id = epoch >> shift & NUMBERS;
            let found = table.contexts.iter().find(|c| *c.1 == id);
            found.map(|c| c.0.as_slice()).unwrap_or_default()
        };
        let of = |(i, e): (usize, &Entry)| match e.bits {
            Some(which) => {
                let (_, mask, words) = BITS[which];
                let unset = if words[0].0 == "True" { "False".into() } else { usual(e) };
                words.iter().find(|w| w.1 == epoch & mask).map_or(unset, |w| w.0.into())
            }
            None => {
                let all = context(LOCAL_SHIFT).iter().chain(context(PROCESS_SHIFT));
                let set = all.filter(|c| c.0 == i).map(|c| c.1.trim_matches('\'').to_string()).next();
                set.unwrap_or_else(|| usual(e))
            }
        };
        table.entries.iter().enumerate().map(of).collect()
    };
    let all = table.entries.iter().zip(in_force(first)).zip(in_force(second));
    all.filter(|((_, a), b)| a != b).map(|((e, a), b)| (e.name.clone(), a, b)).collect()
}

/// config_define(name, default, traced): a flag of the table. `traced`: traces depend on its value.
#[pyfunction]
pub fn config_define(name: String, default: &Bound<PyAny>, traced: bool) {
    let bits = BITS.iter().position(|b| b.0 == name);
    if let Some(i) = bits {
        set_bits(bits_of(i, default));
    }
    let mut table = write();
    let n = table.entries.len();
    table.numbers.insert(name.clone(), n);
    table.entries.push(Entry { name, bits, traced, default: default.clone().unbind(), process: None });
}
fn set_bits((mask, bits): (u64, u64)) {
    let _ = PROCESS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(old & !mask | bits));
}
fn local<'py>(py: Python<'py>, i: usize) -> Option<Bound<'py, PyAny>> {
    BLOCKS.with(|b| b.borrow().get(i)?.last().map(|v| v.bind(py).clone()))
}

/// config_get(name): the value in force on this thread.
#[pyfunction]
pub fn config_get<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let i = number(name)?;
    if let Some(v) = local(py, i) {
        return Ok(v);
    }
    let table = read();
    let e = &table.entries[i];
    Ok(e.process.as_ref().unwrap_or(&e.default).bind(py).clone())
}
/// config_set(name, value): for the whole process.
#[pyfunction]
pub fn config_set(name: &str, value: &Bound<PyAny>) -> PyResult<()> {
    let py = value.py();
    let i = number(name)?;
    match name {
        "jax_platforms" => device::set_platforms(value)?,
        "jax_num_cpu_devices" => device::set_num_cpu_devices(value)?,
        "jax_default_device" => ferrax::device::set_default_device(device::from_py_object(value)?),
        _ => (),
    }
    let (bits, old) = {
        let mut table = write();
        let e = &mut table.entries[i];
        (e.bits, e.process.replace(value.clone().unbind()))
    };
    drop(old);
    match bits {
        Some(which) => set_bits(bits_of(which, value)),
        None => {
            let set = |_: usize, e: &Entry| {
                let v = e.process.as_ref()?.bind(py);
                if v.eq(e.default.bind(py)).unwrap_or(false) { None } else { Some(v.clone()) }
            };
            set_bits((NUMBERS << PROCESS_SHIFT, context(py, set) << PROCESS_SHIFT));
        }
    }
    Ok(())
}
/// config_push(name, value): until the matching `config_pop`, the value on this thread.
#[pyfunction]
pub fn config_push(name: &str, value: &Bound<PyAny>) -> PyResult<()> {
    let i = number(name)?;
    BLOCKS.with(|b| {
        let b = &mut *b.borrow_mut();
        if b.len() <= i {
            b.resize_with(i + 1, Vec::new);
        }
        b[i].push(value.clone().unbind());
    });
    changed(value.py(), i)
}
/// config_pop(name): the end of a block.
#[pyfunction]
pub fn config_pop(py: Python, name: &str) -> PyResult<()> {
    let i = number(name)?;
    let old = BLOCKS.with(|b| b.borrow_mut().get_mut(i).and_then(Vec::pop));
    drop(old);
    changed(py, i)
}
/// Updates the values derived from this thread's settings after flag `i` has changed.
fn changed(py: Python, i: usize) -> PyResult<()> {
    let value = local(py, i);
    let (bits, is_device) = {
        let table = read();
        (table.entries[i].bits, table.entries[i].name == "jax_default_device")
    };
    let (mask, word) = LOCAL.get();
    match (bits, &value) {
        (Some(which), Some(v)) => {
            let (m, b) = bits_of(which, v);
            LOCAL.set((mask | m, word & !m | b));
        }
        (Some(which), None) => LOCAL.set((mask & !BITS[which].1, word & !BITS[which].1)),
        (None, _) => {
            let id = context(py, |i, _| local(py, i));
            LOCAL.set((mask, word & !(NUMBERS << LOCAL_SHIFT) | id << LOCAL_SHIFT));
        }
    }
    if is_device {
        let device = value.map_or(Ok(None), |v| device::from_py_object(&v))?;
        ferrax::eval::set_default_device(device);
    }
    Ok(())
}

#[pymethods]
impl PyDevice {
    /// A device is a context manager: new arrays go to it.
    fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        config_push("jax_default_device", slf.as_any())?;
        Ok(slf)
    }
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<PyTuple>) -> PyResult<()> {
        config_pop(_args.py(), "jax_default_device")
    }
}
