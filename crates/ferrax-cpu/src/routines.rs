//! Routines: operations that are not loop nests over scalars, one file for each family.
//!
//! A family is a struct with the tables of one compiled routine, a `Strategy`, and a function `pick` that chooses the strategy from shapes, dtypes, tier
//! and the family's tuning alone. Its text names the strategy, and `tests/filetests/cpu` pins it.
//!
//! INVARIANT: a routine's bits are a function of its operands' values and its parameters, never of layout or threads.
#![allow(unsafe_code)]
mod conv;
mod cumulative;
mod dot;
mod dynamic_slice;
mod fft;
mod gather;
mod linalg;
mod scatter;
mod sort;
mod strided;
mod top_k;
mod vector;

pub use gather::Gathering;

use crate::kernels::Bases;
use crate::tuning::Target;
use ferrax_kernel::{Res, Routine};
use ferrax_linalg::CompiledLinalg;

/// A routine with its strategy chosen and its tables made.
pub trait CompiledRoutine: Send + Sync {
    /// Runs it; `parallel` allows it to use other threads.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no working memory, `Cancelled` where the run was.
    fn run(&self, bases: Bases, parallel: bool) -> Res<()>;
    /// The strategy and its parameters, on one line. It does not depend on how many threads there are.
    fn text(&self) -> String;
}
pub type Run = Box<dyn CompiledRoutine>;

/// Estimated time of one run.
pub fn nanos(r: &Routine) -> f64 {
    let each = match r {
        Routine::Dot(_) | Routine::Conv(_) => dot::NANOS,
        Routine::Linalg(_) => ferrax_linalg::NANOS,
        _ => 0.3,
    };
    r.work() as f64 * each
}

/// # Errors
/// `Invalid` if parameters contradict each other, `Unsupported` if sizes exceed the limits of the
/// family, `OutOfMemory` if tables cannot be allocated.
pub fn compile(r: &Routine, target: impl Into<Target>) -> Res<Run> {
    let target = target.into();
    let (tier, tuning) = (target.tier, &target.tuning);
    match r {
        Routine::Dot(d) => dot::compile(d, &target),
        Routine::Gather(g) => Ok(Box::new(Gathering::new(g, &target)?)),
        Routine::Scatter(s) => scatter::compile(s, &target),
        Routine::DynamicSlice { operand, sizes, dtype, index_dtype } => {
            dynamic_slice::slice(operand, sizes, *dtype, *index_dtype)
        }
        Routine::DynamicUpdateSlice { operand, update, dtype, index_dtype } => {
            dynamic_slice::update(operand, update, *dtype, *index_dtype)
        }
        Routine::Sort { outer, n, inner, dtypes, num_keys } => {
            sort::compile(*outer, *n, *inner, dtypes, *num_keys, &tuning.sort)
        }
        Routine::TopK { outer, n, inner, k, dtype } => {
            top_k::compile([*outer, *n, *inner], *k, *dtype, tier, &tuning.top_k)
        }
        Routine::Cumulative { kind, outer, n, inner, reverse, dtype } => {
            cumulative::compile(*kind, [*outer, *n, *inner], *reverse, *dtype, &target)
        }
        Routine::Conv(c) => conv::compile(c, &target),
        Routine::Linalg(l) => Ok(Box::new(CompiledLinalg::new(l, tier, &tuning.linalg))),
        Routine::Fft(f) => fft::compile(f, &target),
    }
}
