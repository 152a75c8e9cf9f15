//! Decompositions of matrices and triangular systems on the cores of the host, for [`Linalg`](ferrax_kernel::linalg::Linalg). docs/linalg.md says which
//! algorithm computes each.
//!
//! INVARIANT: bits are a function of the operands' values and the routine's parameters, never of threads, batch or instruction tier, except for the fused
//! multiply-add, which is taken where the machine has it.
#![deny(unsafe_code)]
mod batch;
#[cfg(feature = "blocked")]
mod bidiagonalization;
#[cfg(feature = "blocked")]
mod blocked;
#[cfg(not(feature = "blocked"))]
#[path = "without_faer.rs"]
mod blocked;
#[cfg(feature = "blocked")]
mod cholesky;
#[cfg(feature = "blocked")]
mod eigen_divide_and_conquer;
#[cfg(feature = "blocked")]
mod householder;
#[cfg(feature = "blocked")]
mod householder_qr;
mod lanes;
#[cfg(feature = "blocked")]
mod matrix_vector;
#[cfg(feature = "blocked")]
mod partial_pivoting;
#[cfg(feature = "blocked")]
mod secular_equation;
#[cfg(feature = "blocked")]
mod svd_divide_and_conquer;
#[cfg(feature = "blocked")]
mod triangular_solve;
#[cfg(feature = "blocked")]
mod tridiagonalization;
mod tuning;
#[cfg(feature = "blocked")]
mod vector_merge;

pub use batch::{CompiledLinalg, NANOS};
pub use tuning::LinalgTuning;
