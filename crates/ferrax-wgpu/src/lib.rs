//! A backend on any GPU that wgpu reaches: plans become compute passes, kernels become WGSL.
//!
//! Devices are found at the first call of [`devices`], until which nothing is loaded, and opened when they are first used. Elements of up to 32 bits are supported, on every
//! adapter alike (narrow ones are packed in words and computed in 32 bits, as the waist has it); a plan with a 64-bit dtype is
//! refused with an error that names dtype and adapter, never narrowed.
//!
//! INVARIANT: a slot's buffer never changes once written, but for updates in place of a buffer that nobody else holds; so copies,
//! reshapes and carries of loops are references, and whatever the memory plan says about places need not be obeyed.
//!
//! ```no_run
//! for gpu in ferrax_wgpu::devices() {
//!     println!("{}", ferrax_kernel::Backend::description(&*gpu));
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
