//! numpy semantics over the explicit language: type promotion, broadcasting, indexing.
//!
//! INVARIANT: results need no further promotion or change of rank: primitives get operands of one
//! dtype, of equal rank or rank 0. This module reads no globals; the configuration is passed.
//!
//! ```text
//! f32[3,4] + i32[4]   ->   convert b, broadcast_in_dim to [1,4], add
//! ```
pub mod elementwise;
pub mod indexing;
pub mod promotion;

pub use promotion::{Promotion, Rank};
