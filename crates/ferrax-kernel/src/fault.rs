//! Faults of this library: panics, and plans that break their own rules. No program should meet one.
//!
//! Invariant: a fault is reported where it is noticed, before anything takes its place: with `FERRAX_FAULTS` each leaves a line in the file of that
//! name, of this process or of a child, so that a test that passes all the same is known to have met one.
//!
//! ```
//! use ferrax_kernel::fault;
//! let panic = std::panic::catch_unwind(|| [1, 2, 3][std::hint::black_box(3)]).unwrap_err();
//! assert!(fault::text(&*panic).contains("out of bounds"));
//! ```
use std::any::Any;
use std::io::Write;

/// What a panic says.
pub fn text(panic: &(dyn Any + Send)) -> String {
    let owned = panic.downcast_ref::<String>().cloned();
    owned.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
}

/// Whether a fault is always an error, as in tests. Elsewhere a simpler implementation takes over from the one that failed.
pub fn is_strict() -> bool {
    std::env::var_os("FERRAX_STRICT_PLANS").is_some()
}

/// Appends the fault to the file that `FERRAX_FAULTS` names.
pub fn report(text: &str) {
    let Some(path) = std::env::var_os("FERRAX_FAULTS") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    // in one write: several processes may append
    let line = format!("{}\n", text.replace('\n', " "));
    if let Err(e) = file.and_then(|mut f| f.write_all(line.as_bytes())) {
        eprintln!("ferrax: a fault could not be recorded ({e}): {line}");
    }
}
