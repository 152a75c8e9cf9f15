//! numpy's conveniences over the explicit language: type promotion, broadcasting, indexing.
//!
//! INVARIANT: what comes out of here needs no promotion and no rank change any more; the primitives get operands of one dtype, of
//! equal rank or rank 0. Nothing here reads a global: the configuration is passed.
//!
//! ```text
//! f32[3,4] + i32[4]   ->   convert b, broadcast_in_dim to [1,4], add
//! ```
pub mod elementwise;
pub mod indexing;
pub mod promotion;

pub use promotion::{Promotion, Rank};
