//! Source locations: the Python instruction and the `named_scope`s at which an equation was traced;
//! and how functions are called.
//!
//! A location is a number in a table of (code object, instruction, scopes). File, line and column
//! are computed on request. Frames of this library are skipped.
//!
//! INVARIANT: finding the location never fails and runs no Python code, except at the first
//! instruction of each code object.
pub mod scopes;

use crate::ffi::frames;
use crate::once::Once;
use ferrax_ir::cx::{Lines, Scopes};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Beyond so many places (a program that makes code without end) new ones are unknown.
const MAX_LINES: usize = 1 << 20;

/// INVARIANT: a code object in the table is kept alive by it, so its address stays its identity.
#[derive(Default)]
struct SourceTable {
    /// Whether a code object is this library's.
    codes: FxHashMap<usize, bool>,
    kept: Vec<Py<PyAny>>,
    ids: FxHashMap<(usize, i32, u32), u32>,
    /// Place number i + 1: its code object, the instruction, and the scopes around it.
    places: Vec<(Py<PyAny>, i32, u32)>,
    /// Excluded files and folders of other libraries.
    excluded: Vec<String>,
}
static EXCLUSIONS: AtomicU32 = AtomicU32::new(0);
static TABLE: Mutex<Option<SourceTable>> = Mutex::new(None);
fn table() -> MutexGuard<'static, Option<SourceTable>> {
    TABLE.lock().unwrap_or_else(|e| e.into_inner())
}
thread_local! {
    /// The last instruction, its scopes, its number.
    static LAST: Cell<(usize, i32, u32, u32)> = const { Cell::new((0, 0, 0, 0)) };
    /// The number of exclusions at that time.
    static SEEN: Cell<u32> = const { Cell::new(0) };
}

/// Installs the access to source lines.
pub fn install() {
    let scopes =
        Scopes { open: scopes::open, enter: scopes::enter_transform, leave: scopes::scope_leave, moved, named };
    ferrax_ir::cx::install_lines(Lines { here, text, names, scopes: Some(scopes) });
}
/// The names of a line's scopes.
fn names(line: u32) -> String {
    let table = table();
    let Some(t) = table.as_ref() else { return String::new() };
    let place = (line as usize).checked_sub(1).and_then(|i| t.places.get(i));
    place.map_or(String::new(), |p| scopes::text(p.2))
}
/// The same instruction in other scopes: see [`Scopes::moved`].
fn moved(line: u32, beneath: u32, transform: Option<&'static str>) -> u32 {
    elsewhere(line, |at| scopes::moved(at, beneath, transform))
}
/// The same instruction beneath a scope: see [`Scopes::named`].
fn named(line: u32, name: &'static str) -> u32 {
    elsewhere(line, |at| scopes::beneath(at, name))
}
fn elsewhere(line: u32, to: impl FnOnce(u32) -> u32) -> u32 {
    Python::attach(|py| {
        let mut table = table();
        let Some(t) = table.as_mut() else { return line };
        let Some((code, lasti, at)) = (line as usize).checked_sub(1).and_then(|i| t.places.get(i)) else { return line };
        let (lasti, to) = (*lasti, to(*at));
        if to == *at {
            return line;
        }
        let key = (code.as_ptr() as usize, lasti, to);
        match t.ids.get(&key) {
            Some(id) => *id,
            None if t.places.len() >= MAX_LINES => line,
            None => {
                let code = code.clone_ref(py);
                t.places.push((code, lasti, to));
                let id = t.places.len() as u32;
                t.ids.insert(key, id);
                id
            }
        }
    })
}
/// The number of the user's instruction that runs now.
pub fn here() -> u32 {
    let (scopes, exclusions) = (scopes::open(), EXCLUSIONS.load(Ordering::Acquire));
    if SEEN.replace(exclusions) != exclusions {
        LAST.set((0, 0, 0, 0));
    }
    frames::walk(|code, lasti| {
        let (at, last) = (code.as_ptr() as usize, LAST.get());
        if (last.0, last.1, last.2) == (at, lasti, scopes) {
            return Some(last.3);
        }
        let known = table().get_or_insert_default().codes.get(&at).copied();
        let ours = match known {
            Some(ours) => ours,
            None => is_ours(code),
        };
        if ours {
            return None;
        }
        let mut table = table();
        let t = table.get_or_insert_default();
        let id = match t.ids.get(&(at, lasti, scopes)) {
            Some(id) => *id,
            None if t.places.len() >= MAX_LINES => 0,
            None => {
                t.places.push((code.clone().unbind(), lasti, scopes));
                let id = t.places.len() as u32;
                t.ids.insert((at, lasti, scopes), id);
                id
            }
        };
        LAST.set((at, lasti, scopes, id));
        Some(id)
    })
    .unwrap_or(0)
}
/// exclude_source(path): the lines of a file, or of the files of a folder, are no longer the user's.
#[pyfunction]
pub fn exclude_source(path: String) {
    let mut table = table();
    let t = table.get_or_insert_default();
    t.excluded.push(path);
    t.codes.clear();
    EXCLUSIONS.fetch_add(1, Ordering::Release);
}
/// Whether a code object that is met for the first time is this library's. Remembered.
fn is_ours(code: &Bound<PyAny>) -> bool {
    let file = code.getattr("co_filename").and_then(|f| f.extract::<String>()).unwrap_or_default();
    let mut table = table();
    let t = table.get_or_insert_default();
    let ours = crate::hooks::inside(&file).is_some() || t.excluded.iter().any(|e| file.starts_with(e.as_str()));
    t.kept.push(code.clone().unbind());
    t.codes.insert(code.as_ptr() as usize, ours);
    ours
}

/// A position in a file: an equation's `source_info`.
#[pyclass(frozen, get_all, module = "ferrax.core", name = "SourceInfo")]
pub struct SourceInfo {
    file_name: String,
    function_name: String,
    start_line: u32,
    start_column: u32,
    end_line: u32,
    end_column: u32,
    /// The names of the scopes around it, joined by slashes.
    name_stack: String,
}
#[pymethods]
impl SourceInfo {
    /// The place itself, which `source_info_util` reads as it reads a traceback.
    #[getter]
    fn traceback(slf: PyRef<Self>) -> PyRef<Self> {
        slf
    }
    fn __repr__(&self) -> String {
        format!("{}:{}:{} ({})", self.file_name, self.start_line, self.start_column, self.function_name)
    }
}
/// The place of a number, if it is known.
pub fn info(py: Python, line: u32) -> Option<SourceInfo> {
    let (code, lasti) = {
        let table = table();
        let (code, lasti, _) = table.as_ref()?.places.get((line as usize).checked_sub(1)?)?;
        (code.clone_ref(py).into_bound(py), *lasti)
    };
    let read = || -> PyResult<SourceInfo> {
        type Span = (Option<u32>, Option<u32>, Option<u32>, Option<u32>);
        let first: u32 = code.getattr("co_firstlineno")?.extract()?;
        let mut all = code.call_method0("co_positions")?.try_iter()?;
        let span: Span = match all.nth(lasti.max(0) as usize / 2) {
            Some(s) => s?.extract()?,
            None => (None, None, None, None),
        };
        let start_line = span.0.unwrap_or(first);
        Ok(SourceInfo {
            file_name: code.getattr("co_filename")?.extract()?,
            function_name: code.getattr("co_qualname")?.extract()?,
            start_line,
            start_column: span.2.unwrap_or(0),
            end_line: span.1.unwrap_or(start_line),
            end_column: span.3.unwrap_or(0),
            name_stack: names(line),
        })
    };
    read().ok()
}
/// `model.py:12:8 (loss)`
pub fn text(line: u32) -> Option<String> {
    Python::attach(|py| info(py, line).map(|i| i.__repr__()))
}

// ---- functions by name ----

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
/// The function that `f` wraps, by `functools.wraps` and `functools.partial`. Attributes that a
/// class computes on access are not followed: the chain may be infinite.
fn unwrapped<'py>(f: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let own = f.getattr("__dict__").ok().and_then(|d| d.cast_into::<PyDict>().ok());
    if let Some(w) = own.and_then(|d| d.get_item("__wrapped__").ok().flatten()) {
        return Some(w);
    }
    static PARTIAL: Once<Py<PyType>> = Once::new();
    let partial = PARTIAL.import(f.py(), "functools", "partial").ok()?;
    if f.is_instance(partial).ok()? { f.getattr("func").ok() } else { None }
}
pub fn name_of(f: &Bound<PyAny>) -> String {
    f.getattr("__name__")
        .and_then(|n| n.extract::<String>())
        .unwrap_or_else(|_| f.get_type().name().map(|n| n.to_string()).unwrap_or_default())
}
