//! Programs that a user of this programming model writes on the first day: the seed programs of the project, each by its name there, with the
//! values that JAX 0.10.2 gives. Data that Python's programs draw with numpy comes from keys here.
//!
//! Left out, for they are about Python itself:
//! - `decorator_with_options_and_methods`: decorators and bound methods,
//! - `lists_are_rejected`: lists as arguments; a `Vec` is no tensor, and the compiler says so,
//! - `sixty_four_bits_by_environment`: 64-bit types are what Rust says they are, whatever the environment says,
//! - `older_spellings_still_work`: names that Python's documents used to have.
//!
//! Of the others the parts are left out that a type rules out: assigning to an element, `bool(x)` and `np.sin(x)` of a tracer (`item` and
//! `to_vec` take their places), static arguments by name, a configuration for 64 bits, `custom_gradient` (`custom_vjp` says it).
mod arrays;
mod control;
mod differentiation;
mod drawn;
mod learning;
mod maps;
mod parallel;
mod programs;
mod tracing;

use ferrax::*;

pub fn v(t: &Tensor) -> Vec<f32> {
    t.astype(Dtype::F32).to_vec().unwrap()
}
pub fn near(t: &Tensor, want: &[f32], tolerance: f32) {
    let got = v(t);
    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= tolerance * (1.0 + b.abs());
    assert!(got.len() == want.len() && got.iter().zip(want).all(near), "{got:?} {want:?}");
}
pub fn close(t: &Tensor, want: &[f32]) {
    near(t, want, 1e-5);
}
pub fn f(x: f32) -> Tensor {
    Tensor::from(x)
}
pub fn x3() -> Tensor {
    Tensor::from([1.0f32, 2.0, 3.0])
}
pub fn zero_to(n: usize) -> Tensor {
    Tensor::arange(n, Dtype::F32)
}
/// One line, one blank between words.
pub fn flat(text: impl ToString) -> String {
    text.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
