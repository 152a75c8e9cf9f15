//! Errors of the Rust API, and how they are reported.
//!
//! Operations on tensors cannot return a `Result` and stay readable. So a mistake in a program (shapes that do not fit, an axis that does not
//! exist, a dtype that an operation does not accept) is a panic, like an index out of bounds, with the error's text and the caller's location.
//! Operations that depend on the outside world return a `Result`: reading elements and files, and every transform, because the closure that it runs may fail.
//! Inside a transform, and inside [`catch`], the panic is silent and is returned as the [`Error`].
//!
//! ```
//! use ferrax::{Tensor, catch, grad};
//! let (x, y) = (Tensor::zeros(&[2]), Tensor::zeros(&[3]));
//! let error = catch(|| Ok(&x + &y)).unwrap_err();
//! assert!(error.message().starts_with("add got incompatible shapes for broadcasting: (2,), (3,)."), "{error}");
//! assert!(error.message().contains("\nat "), "{error}"); // and the place
//! assert!(grad(|x: &Tensor| (x + &y).sum())(&x).is_err());
//! ```
use ferrax_ir::{Error, Res};
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{Location, resume_unwind};
use std::sync::{Mutex, Once};

thread_local! {
    static CATCHING: Cell<u32> = const { Cell::new(0) };
    static HERE: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// Runs `f`; a panic of an operation about a mistake becomes an [`Error`]. Other panics pass through.
pub fn catch<T>(f: impl FnOnce() -> Res<T>) -> Res<T> {
    struct Depth;
    impl Drop for Depth {
        fn drop(&mut self) {
            CATCHING.set(CATCHING.get() - 1);
        }
    }
    CATCHING.set(CATCHING.get() + 1);
    let _depth = Depth;
    ferrax_ir::operators::catch(f)
}

/// The value, or a panic at the caller's place.
#[track_caller]
pub(crate) fn ok<T>(r: Res<T>) -> T {
    match r {
        Ok(v) => v,
        Err(e) => raise(e),
    }
}
/// A mistake of the program that calls.
#[track_caller]
pub(crate) fn raise(e: Error) -> ! {
    let at = Location::caller();
    let e = match e {
        Error::Raised(k, m) if !m.contains(AT) => Error::Raised(k, format!("{m}{AT}{at}")),
        e => e,
    };
    if CATCHING.get() > 0 {
        resume_unwind(Box::new(e)) // no message: the caller returns the error
    }
    panic!("{e:?}")
}
const AT: &str = "\nat ";

/// The source location of operations, for programs' lines and their errors.
#[track_caller]
#[inline]
pub(crate) fn here() {
    HERE.set(Some(Location::caller()));
}
/// Evaluation, and lines of Rust sources. Idempotent.
#[inline]
pub(crate) fn init() {
    crate::eval::init();
    static LINES: Once = Once::new();
    LINES.call_once(|| {
        ferrax_ir::cx::install_lines(ferrax_ir::cx::Lines { here: line, text, names: |_| String::new(), scopes: None })
    });
}

static PLACES: Mutex<Option<(HashMap<&'static Location<'static>, u32>, Vec<&'static Location<'static>>)>> =
    Mutex::new(None);

fn line() -> u32 {
    let Some(at) = HERE.get() else { return 0 };
    let mut places = PLACES.lock().unwrap_or_else(|e| e.into_inner());
    let (numbers, all) = places.get_or_insert_default();
    *numbers.entry(at).or_insert_with(|| {
        all.push(at);
        all.len() as u32
    })
}
fn text(line: u32) -> Option<String> {
    let places = PLACES.lock().unwrap_or_else(|e| e.into_inner());
    places.as_ref()?.1.get(line as usize - 1).map(|at| at.to_string())
}
