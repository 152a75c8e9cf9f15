//! Ferrax in Rust: devices, arrays, evaluation, and `jit`, `grad`, `vmap` over closures.
//!
//! ```
//! use ferrax::{Tensor, grad, jit};
//! let loss = |w: &Tensor| ((w * 3.0 - 6.0).powi(2)).sum();
//! let step = jit(move |w: &Tensor| Ok::<_, ferrax::Error>(w - grad(loss)(w)? * 0.05));
//! let mut w = Tensor::from(0.0f32);
//! for _ in 0..100 {
//!     w = step(&w)?;
//! }
//! assert!((w.item() - 2.0).abs() < 1e-4);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: no type that a rule needs lives here; a rule sees values and a context, never a device.
#![forbid(unsafe_code)]
pub mod array;
pub mod compiled;
pub mod device;
pub mod eval;
pub mod export;
pub mod fork;
pub mod numpy;
pub mod pmap;
pub mod runtime;
mod tensor;
mod transforms;
mod tree;
pub mod world;

pub use ferrax_ir::{Dtype, Error, Res};
pub use tensor::{Element, Tensor};
pub use transforms::{Output, catch, grad, jit, jvp, make_jaxpr, value_and_grad, vmap};
pub use tree::Tree;
