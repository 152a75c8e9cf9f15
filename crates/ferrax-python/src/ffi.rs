//! The modules of this crate that may use `unsafe`: CPython functions that pyo3 does not wrap, and the MPI library.
//!
//! INVARIANT: every function here is safe to call with the interpreter attached; each `unsafe`
//! block has its proof.
#![allow(unsafe_code)]
pub mod fork;
pub mod frames;
pub mod lent;
pub mod mpi;
pub mod recursion;
pub mod threads;
