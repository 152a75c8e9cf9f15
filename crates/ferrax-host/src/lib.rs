//! The host's resources for computing: its cores, its instructions, its memory, and products of matrices in registers.
//!
//! INVARIANT: neither the number of threads nor the tier changes bits.
#![deny(unsafe_code)]
pub mod memory;
pub mod panel;
pub mod scratch;
mod share;
mod standby;
pub mod threads;
pub mod tier;

pub use tier::Tier;
