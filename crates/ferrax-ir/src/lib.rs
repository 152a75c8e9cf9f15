//! The language: avals, values, programs, primitives and their rules. It knows no trace and no backend.
//!
//! ```text
//! { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
//! ```
//!
//! INVARIANT: rules emit through a [`Cx`]; they never run anything and never look inside an array.
#![forbid(unsafe_code)]
pub mod aval;
pub mod checks;
pub mod code;
pub mod cut;
pub mod cx;
pub mod dtype;
pub mod effects;
pub mod error;
pub mod factors;
pub mod host;
pub mod layout;
pub mod lower;
pub mod mask;
pub mod op;
pub mod operators;
pub mod ops;
pub mod param;
pub mod parts;
pub mod program;
pub mod settings;
pub mod simplify;
pub mod support;
pub mod text;
pub mod typing;
pub mod value;
pub mod vary;
pub mod verify;

pub use aval::{Aval, Lit};
pub use cx::{Arg, Axis, Cx, Dim, Fun, Recur, Tan, bind, current, enter};
pub use dtype::{Dtype, KeyImpl};
pub use error::{Error, ErrorKind, Res};
pub use ferrax_kernel::Dims;
pub use op::{Op, Rules};
pub use param::{Param, ParamMap};
pub use program::Program;
pub use text::{parse, print};
pub use value::{Array, Payload, Value, Values};
