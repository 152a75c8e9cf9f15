//! Transforms of flat Python functions.
//!
//! A flat function takes leaves and returns a sequence of leaves. `None` among tangents and cotangents is a symbolic zero.
//!
//! INVARIANT: an exception of the function is passed on unchanged, and the current trace is
//! restored.
pub mod batching;
pub mod derivatives;
pub mod parts;
pub mod rules;
