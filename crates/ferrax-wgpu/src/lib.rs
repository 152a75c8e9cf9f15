//! A backend on any GPU that wgpu supports: plans become compute passes, kernels become WGSL.
//!
//! The first call of [`devices`] finds the devices; until then nothing is loaded. They are opened when they are first used. Shaders compute with elements of up to 32
//! bits on every adapter (narrow ones are packed in words and computed in 32 bits, as the waist defines). The CPU backend runs what shaders lack, on
//! copies: decompositions, Fourier transforms, and all computations with 64-bit elements.
//!
//! INVARIANT: a slot's buffer never changes once written, except by updates in place of a buffer that has no other owner; so copies,
//! reshapes and carries of loops are references, and the places of the memory plan are ignored.
//!
//! ```no_run
//! use ferrax_kernel::{Backend, reference::ReferenceBackend};
//! use std::sync::Arc;
//! let host: Arc<dyn Backend> = Arc::new(ReferenceBackend);
//! for gpu in ferrax_wgpu::devices(&host) {
//!     println!("{}", gpu.description());
//! }
//! ```
#![deny(unsafe_code)]
mod adapters;
mod backend;
mod block_on;
mod device;
mod recorder;
mod routines;
mod run;
mod task;
mod wgsl;

pub use adapters::adapters;
pub use backend::{GpuBackend, devices};
pub use device::Counts;
pub use wgpu::Limits;
