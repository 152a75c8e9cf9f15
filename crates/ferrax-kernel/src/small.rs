//! The small dtypes: integers of 2 and 4 bits, floats of 4 and 8. In memory an element is a byte, of which the low bits count.
//!
//! Backends implement bytes only: [`legalize`] rewrites a plan's small elements as bytes. A kernel
//! moves their bits; where it computes, it widens them to the dtype's lane and rounds the result of
//! each function.
//!
//! ```text
//!     n0:f8_e5m2 = load 0[i0]          n0:u8 = load 0[i0], .., n9:f32: its value
//!     n1:f8_e5m2 = sin n0        -->   n10:f32 = sin n9
//!     out n1                           .., n30:u8: that, rounded; out n30
//! ```
mod legalize;
mod nodes;

pub use legalize::{legalize, legalized};
