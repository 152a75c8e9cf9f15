//! Programs as text, as JAX prints a jaxpr, and back.
//!
//! ```text
//! { lambda a:f32[3]; b:f32[]. let
//!     c:f32[3] = mul b a
//!     d:f32[] = reduce_sum[axes=(0,) out_sharding=None] c
//!   in (d,) }
//! ```
//!
//! Names are given in order of appearance and have no meaning; `_` is an unread output; a program that several equations share is
//! printed once, before the others: `let f = { .. } in`. The parser ignores white space.
//!
//! INVARIANT: `parse(print(p))` equals `p` up to names, user lines and weakness of types, which text does not show, for every program
//! without functions of the host language; one with them parses against a table of such functions.
mod parse;
mod print;

pub use parse::{parse, parse_application, parse_with};
pub use print::{letters, param, print, print_with};
