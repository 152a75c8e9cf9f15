//! The calling code: settings about user code (strict promotion of dtypes and ranks) apply to the
//! user's code and not to this library's compositions.
//!
//! The Python frames identify the caller. They are inspected only while such a setting is on, so
//! calls cost nothing otherwise. Seen from the innermost frame outwards, a check applies
//!
//! - to an operator (`x + y`), if it is used in the user's code;
//! - to a function's arguments (`promote_dtypes`, `elementwise`), if the first public function of this library on the way outwards was
//!   called by the user's code: `jnp.add(x, y)` is checked, the `jnp.add` in the body of `jnp.linspace` is not. (A function that passes its
//!   arguments to another of the same name counts as one with it.) A function whose body promotes its arguments with other functions
//!   marks this at its entry (`check_promotion` of numpy/_support/arguments.py).
//!
//! Frames of transforms are skipped: `vmap(jnp.add)` is the user's call of `jnp.add`.
//!
//! INVARIANT: a trace is reused only for callers of the same kind, which is part of the key
//! (`config::Flags::placed`).
use crate::ffi::frames;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard};

/// The kind of a frame, by its code object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    User,
    /// A public function of this library.
    Public,
    /// A function of this library that no user calls by name.
    Private,
    /// It calls functions that it is given, on behalf of its own caller.
    Between,
}

/// Modules in public folders, and whole folders, whose functions call their arguments. Private folders of the package, and the modules
/// beside them, do so too, since transforms are defined there.
const BETWEEN: [&str; 9] = [
    "experimental/checkify/",
    "extend/core/",
    "interpreters/",
    "lax/_bodies.py",
    "lax/_control_flow.py",
    "lax/_loops.py",
    "numpy/_support/array_methods.py",
    "numpy/_functional/ufuncs.py",
    "numpy/_functional/vectorizing.py",
];
/// Modules of those that compute.
const COMPOSING: [&str; 4] = ["_base/bounds.py", "_base/dtypes.py", "flatten_util.py", "ops.py"];
/// Modules of helpers, whatever their functions are called.
const HELPERS: [&str; 2] = ["numpy/_support/arguments.py", "scipy/stats/_families.py"];
/// Names of the functions that decorators of this library return.
const WRAPPERS: [&str; 5] = ["wrapped", "wrapper", "method", "computed", "with_the_value"];

/// INVARIANT: a code object in the table is kept alive by it, so its address stays its identity.
#[derive(Default)]
struct OwnerTable {
    owners: FxHashMap<usize, Owner>,
    kept: Vec<Py<PyAny>>,
}
static TABLE: Mutex<Option<OwnerTable>> = Mutex::new(None);
fn table() -> MutexGuard<'static, Option<OwnerTable>> {
    TABLE.lock().unwrap_or_else(|e| e.into_inner())
}

fn owner(code: &Bound<PyAny>) -> Owner {
    let at = code.as_ptr() as usize;
    let known = table().get_or_insert_default().owners.get(&at).copied();
    known.unwrap_or_else(|| {
        let found = classified(code);
        let mut table = table();
        let t = table.get_or_insert_default();
        // A program that makes code without end keeps none of it alive: the user's code is identified each time.
        if found != Owner::User {
            t.kept.push(code.clone().unbind());
            t.owners.insert(at, found);
        }
        found
    })
}
fn classified(code: &Bound<PyAny>) -> Owner {
    let text = |name: &str| code.getattr(name).and_then(|t| t.extract::<String>()).unwrap_or_default();
    let file = text("co_filename");
    let Some(inside) = crate::hooks::inside(&file).map(|path| path.replace('\\', "/")) else { return Owner::User };
    let name = text("co_name");
    if calls_what_it_is_given(&inside, &name) {
        return Owner::Between;
    }
    let nested = text("co_qualname").contains("<locals>");
    if nested && WRAPPERS.contains(&name.as_str()) {
        return Owner::Between;
    }
    let private = nested || name.starts_with(['_', '<']) || HELPERS.contains(&inside.as_str());
    if private { Owner::Private } else { Owner::Public }
}

fn calls_what_it_is_given(inside: &str, name: &str) -> bool {
    // of a ufunc, `__call__`
    if inside == "numpy/_functional/ufuncs.py" && !name.starts_with("__") {
        return false;
    }
    if inside.contains('/') && !inside.starts_with('_') {
        BETWEEN.iter().any(|path| inside.starts_with(path))
    } else {
        !COMPOSING.contains(&inside)
    }
}

/// Whether a function is one of this library's.
pub fn is_library(function: &Bound<PyAny>) -> bool {
    function.getattr("__code__").is_ok_and(|code| owner(&code) != Owner::User)
}

/// Whether checks apply to the code that runs now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// To its operators: they are used in the user's code.
    pub operators: bool,
    /// To the arguments of the public function that runs now; where none does, to those of the function that is called.
    pub arguments: bool,
}

pub fn standing() -> Standing {
    let mut out = Standing { operators: true, arguments: true };
    let name = |code: &Bound<PyAny>| code.getattr("co_name").and_then(|t| t.extract::<String>()).unwrap_or_default();
    let mut public: Option<String> = None;
    frames::walk(|code, _| {
        match (owner(code), &public) {
            (Owner::Between, _) => return None,
            (Owner::User, _) => return Some(()),
            // the function that a public one of the same name hands its arguments on to
            (Owner::Public, Some(inner)) if *inner == name(code) => {}
            (_, Some(_)) => {
                out.arguments = false;
                return Some(());
            }
            (Owner::Public, None) => public = Some(name(code)),
            (Owner::Private, None) => {}
        }
        out.operators = false;
        None
    });
    out
}

/// called_by_user(): whether the user's code called the calling function.
#[pyfunction]
pub fn called_by_user() -> bool {
    standing().operators
}

/// The frame of this library's function that the user's code called and that runs now. None where the user's own code runs, or a transform
/// on behalf of it.
pub fn entered(py: Python) -> PyResult<Option<Bound<PyAny>>> {
    let (mut found, mut composes) = (None, false);
    let mut frame = py.import("sys")?.getattr("_getframe")?.call0()?;
    while !frame.is_none() {
        match owner(&frame.getattr("f_code")?) {
            Owner::User => break,
            owner => composes |= owner != Owner::Between,
        }
        let outer = frame.getattr("f_back")?;
        found = Some(frame);
        frame = outer;
    }
    Ok(found.filter(|_| composes))
}
