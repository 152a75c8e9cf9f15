//! Ferrax in Rust: devices, arrays, evaluation, and `jit`, `grad`, `vmap` over closures.
//!
//! INVARIANT: no type that a rule needs lives here; a rule sees values and a context, never a device.
#![forbid(unsafe_code)]
pub mod array;
pub mod compiled;
pub mod device;
pub mod eval;
pub mod numpy;
pub mod pmap;
pub mod queue;
pub mod world;
