//! Expensive checks, on request: whether traces leak their tracers, whether programs are well typed.
//!
//! INVARIANT: this crate holds no configuration; at every trace it asks the host, whose answer may differ by thread.
//!
//! ```
//! assert!(!ferrax_ir::checks::leaks()); // without a host there is no check
//! ```
use crate::error::Res;
use crate::program::Program;
use crate::value::{Tag, Value};
use std::sync::OnceLock;

/// The answers of the host.
pub struct HostChecks {
    /// Whether a trace that begins now is checked for leaks when it ends.
    pub leaks: fn() -> bool,
    /// Whether programs are verified.
    pub programs: fn() -> bool,
    /// Frees objects of the host that only cycles keep alive.
    pub collect: fn(),
    /// A name for a tracer, and lines that say which objects of the host hold it.
    pub holders: fn(&Value) -> Option<(String, String)>,
}
static HOST: OnceLock<HostChecks> = OnceLock::new();

/// Installs the host's checks. Only the first call has an effect.
pub fn install(host: HostChecks) {
    let _ = HOST.set(host);
}
pub fn leaks() -> bool {
    HOST.get().is_some_and(|h| (h.leaks)())
}
pub(crate) fn holders(v: &Value) -> Option<(String, String)> {
    HOST.get().and_then(|h| (h.holders)(v))
}
/// The error for tracers that are still held after the end of their trace, if leaks are checked.
pub fn ended(tag: &Tag) -> Res<()> {
    if tag.left().is_empty() {
        return Ok(());
    }
    if let Some(h) = HOST.get() {
        (h.collect)();
    }
    match &*tag.left() {
        [] => Ok(()),
        left => Err(tag.leak(left)),
    }
}
/// Verifies a program that a transform made, if programs are to be verified.
pub fn built(p: &Program) -> Res<()> {
    if HOST.get().is_some_and(|h| (h.programs)()) { crate::verify::verify(p) } else { Ok(()) }
}
