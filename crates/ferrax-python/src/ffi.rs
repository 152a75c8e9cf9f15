//! The corner of the crate where `unsafe` is allowed: calls that CPython offers and pyo3 does not.
//!
//! INVARIANT: every function here is safe to call with the interpreter attached; each `unsafe` block has its proof.
#![allow(unsafe_code)]
pub mod fork;
pub mod frames;
pub mod lent;
pub mod recursion;
pub mod threads;
