//! Threefry-2x32 and the two ways JAX lays counters out over it, as pure functions of a key and an index; Philox-4x32, the cipher alone.
//!
//! Invariant: every function is straight-line and generic over [`Word`], so the lines that compute on `u32` also
//! build a kernel's scalar expressions; the bits equal JAX 0.10.2's (`tests/golden`).
//!
//! ```
//! use ferrax_prng::{Bits, Layout, Width, fold_in, key_from_seed, split};
//! let key = key_from_seed(42, false);
//! assert_eq!(key, [0, 42]);
//! assert_eq!(split(Layout::Partitionable, key, 1, 2), [0x03d7_b32d, 0xadd0_83f4]);
//! assert_eq!(fold_in(key, 2), [0x92fb_20ea, 0x0f38_d913]);
//! let draw = Bits::new(Layout::Partitionable, Width::W32, 3).unwrap();
//! assert_eq!(draw.element(key, [0, 0]), [0, 0x6d3e_048f ^ 0x1022_172d]);
//! ```

#![forbid(unsafe_code)]

mod layout;
mod philox;
mod threefry;
mod word;

pub use layout::{Bits, Layout, TooLarge, Width, split};
pub use philox::philox4x32;
pub use threefry::{fold_in, key_from_seed, threefry2x32};
pub use word::Word;
