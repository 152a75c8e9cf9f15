//! A backend on any GPU that wgpu reaches: plans become compute passes, kernels become WGSL.
//!
//! Devices are found at the first call of [`devices`], until which nothing is loaded, and opened when they are first used. Shaders compute with elements of up to 32
//! bits, on every adapter alike (narrow ones are packed in words and computed in 32 bits, as the waist has it). What they lack the host's backend runs in between, on
//! copies: decompositions, Fourier transforms, and whatever computes with elements of 64 bits.
//!
//! INVARIANT: a slot's buffer never changes once written, but for updates in place of a buffer that have no other owner; so copies,
//! reshapes and carries of loops are references, and whatever the memory plan says about places need not be obeyed.
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
