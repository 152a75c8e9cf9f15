//! The waist: everything that a backend must be able to run, and nothing else.
//!
//! Primitives, above it, are an open set; so are backends, below it. The waist is closed: a dtype
//! table, a list of scalar functions, loop-nest kernels over them, a list of routines, and plans
//! made of these. A backend implements each scalar function ([`expr::Un`], [`expr::Bin`]) and each
//! [`routine::Routine`], in exhaustive matches.
//!
//! INVARIANT: this crate knows no primitive, trace or device API. Complex numbers and PRNG keys do
//! not exist at this level.
#![deny(unsafe_code)]
pub mod backend;
pub mod buffer;
pub mod collective;
pub mod dtype;
pub mod error;
pub mod expr;
pub mod fault;
pub mod kernel;
pub mod linalg;
pub mod math;
mod minifloat;
pub mod order;
pub mod plan;
pub mod reference;
pub mod routine;
pub mod shape;
pub mod small;
pub mod text;

pub use backend::{Backend, Executable, RunCx};
pub use buffer::{Buffer, Promise};
pub use dtype::{DType, Scalar};
pub use error::{Error, Res};
pub use expr::{Bin, ReduceKind, Un};
pub use kernel::{Access, Affine, Kernel, Node, NodeId};
pub use plan::{Plan, Step, VerifiedPlan};
pub use routine::Routine;
pub use shape::Dims;
