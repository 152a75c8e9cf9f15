//! Ferrax in Rust: JAX's programming model over closures. Tensors with numpy's operations, transforms that nest in any order (`jit`,
//! `grad`, `vmap`, ..), trees, random keys, networks and optimisers.
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
//! **Errors.** A mistake of the program's author (shapes that do not fit, an axis that does not exist) is a panic with the caller's
//! location, like an index out of bounds. Operations that depend on the outside world, and all transforms, return a [`Result`](Res). Inside a transform's closure
//! such a panic becomes the transform's error, and [`catch`] does the same anywhere.
//!
//! **Names.** A method or function has the name that it has in Python, and is composed of the same primitives, so that bits agree:
//! `tests/api/golden.rs`. The differences between both APIs are listed in `tests/api/apis.txt`. [`Tensor::bind`] gives access to every primitive,
//! whether it has a method or not.
//!
//! **Trees.** Functions take and return [`Tree`]s: tensors, tuples, `Vec`s, maps, and types with `#[derive(Tree)]`. A
//! closure's one argument is a reference to a tree; several arguments are a tuple.
//!
//! **Features.** `api` (default): all of this; the Python extension is built without. `gpu`: devices with `wgpu`, off by default because it is most
//! of a clean build. `safetensors`: trees of weights in files (`weights`). `ndarray`: elements as `ndarray`'s views (`views`).
//! `linalg`: blocked decompositions of large matrices; without it they are slower, and their last bits differ from Python's. `fft`, `gemm`,
//! `avx512` (default): a Fourier transform, products for machines without AVX2, and loops for AVX-512; without them a program is smaller,
//! and slower with the same results.
//!
//! | Python | Rust |
//! |---|---|
//! | `jnp.sin(x)`, `x.sum(axis=0)`, `x.sum(0, keepdims=True)` | `x.sin()`, `x.sum_axes(0)`, `x.sum_keep(0)` |
//! | `x[1:, None, idx]`, `x.at[i].add(v)` | `x.slice(s![1.., NewAxis, &idx])`, `x.at(s![&i]).add(v)` |
//! | `jnp.where(c, x, y)`, `x @ y`, `x % y` | `where_(&c, x, y)`, `x.matmul(&y)`, `x.modulo(&y)` |
//! | `grad(f)(x)`, `grad(f, has_aux=True)` | `grad(f)(&x)?`, `value_and_grad_aux(f)` |
//! | `jit(f, static_argnums=0)`, `donate_argnums` | `jit_static(f)`, `jit_donate(f)` |
//! | `vmap(f, in_axes=(1, None), axis_name="i")` | `vmap_with(VmapOptions { in_axes: &[Some(1), None], name: Some("i"), .. }, f)` |
//! | `lax.scan(f, init, xs)` | `scan(f, &init, &xs)?` |
//! | `random.normal(key, (3,))` | `random::normal(&key, &[3], Dtype::F32)` |
//!
//! INVARIANT: this crate has no types that rules need; a rule gets values and a context, never a device.
#![deny(unsafe_code)]
#![warn(missing_docs)]
// The engine, which the extension module uses.
#[doc(hidden)]
pub mod array;
#[doc(hidden)]
pub mod compiled;
pub mod device;
#[doc(hidden)]
pub mod eval;
pub mod export;
#[doc(hidden)]
pub mod fork;
#[doc(hidden)]
pub mod instead;
#[doc(hidden)]
pub mod key_reuse;
#[doc(hidden)]
pub mod numpy;
#[doc(hidden)]
pub mod parts;
#[doc(hidden)]
pub mod pmap;
#[doc(hidden)]
pub mod processes;
mod rescue;
#[doc(hidden)]
pub mod runtime;
mod speculation;
#[doc(hidden)]
pub mod spmd;
#[doc(hidden)]
pub mod world;

#[cfg(all(doctest, feature = "api"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "api")]
pub mod dlpack;
#[cfg(feature = "api")]
mod gradients;
#[cfg(feature = "api")]
mod layout;
#[cfg(feature = "api")]
mod least_squares;
#[cfg(feature = "api")]
mod mistakes;
#[cfg(feature = "api")]
pub mod nn;
#[cfg(feature = "api")]
pub mod optim;
#[cfg(feature = "api")]
pub mod random;
#[cfg(feature = "api")]
pub mod special;
#[cfg(feature = "api")]
mod tensor;
#[cfg(feature = "api")]
mod transforms;
#[cfg(feature = "api")]
mod tree;
#[cfg(feature = "ndarray")]
pub mod views;
#[cfg(feature = "safetensors")]
pub mod weights;

/// Decompositions, systems and products of matrices, over the last two axes.
#[cfg(feature = "api")]
pub mod linalg {
    pub use crate::least_squares::{lstsq, pinv};
    pub use crate::special::det;
    pub use crate::tensor::linalg::*;
}

/// Polynomials as vectors of coefficients, the highest power first.
#[cfg(feature = "api")]
pub mod poly {
    pub use crate::least_squares::fit;
    pub use crate::tensor::poly::*;
}

#[cfg(feature = "api")]
pub use ferrax_derive::Tree;
pub use ferrax_ir::{Aval, Dims, Dtype, Error, ErrorKind, Param, ParamMap, Program, Res};
#[cfg(feature = "api")]
pub use gradients::check_grads;
#[cfg(feature = "api")]
pub use mistakes::catch;
#[cfg(feature = "api")]
pub use num_complex::Complex;
#[cfg(feature = "api")]
#[doc(hidden)]
pub use tensor::{BINARY, OTHERWISE, UNARY};
#[cfg(feature = "api")]
pub use tensor::{
    ConvOptions, Element, Ellipsis, IntoAxes, IntoTensor, Mode, NewAxis, Padding, Spot, Subscript, Tensor, block,
    broadcast_arrays, column_stack, concatenate, dot_general, dot_general_in, dstack, einsum, fftfreq, hstack, lexsort,
    meshgrid, meshgrid_ij, ragged_dot, ragged_dot_general, ravel_multi_index, rfftfreq, scaled_dot, stack, vstack,
    where_, windows,
};
#[cfg(feature = "api")]
pub use transforms::{
    Jitted, Output, PmapOptions, ScanOptions, VmapOptions, all_gather, all_to_all, associative_scan, axis_index,
    axis_size, checkpoint, cond, custom_jvp, custom_linear_solve, custom_root, custom_vjp, debug_callback,
    effects_barrier, eval_jaxpr, eval_shape, fori_loop, grad, hessian, io_callback, jacfwd, jacrev, jit, jit_donate,
    jit_static, jvp, linear_transpose, linearize, make_jaxpr, map, pbroadcast, pmap, pmap_with, pmax, pmean, pmin,
    ppermute, pshuffle, psum, psum_scatter, pswapaxes, pure_callback, reduce, reduce_window, scan, scan_with, switch,
    value_and_grad, value_and_grad_aux, vjp, vmap, vmap_with, while_loop,
};
#[cfg(feature = "api")]
pub use tree::{Outline, Tree};
