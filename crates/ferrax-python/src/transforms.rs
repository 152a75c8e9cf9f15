//! Transforms of flat Python functions.
//!
//! A flat function takes leaves and returns a sequence of leaves. `None` among tangents and cotangents is a symbolic zero.
//!
//! INVARIANT: an exception of the function comes out as it is, and whatever trace was current before is current after.
pub mod batching;
pub mod derivatives;
pub mod rules;
