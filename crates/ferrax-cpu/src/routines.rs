//! Routines: what is not a loop nest over scalars, one file for each family.
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
mod panel;
mod scatter;
mod sort;
mod top_k;
mod vector;
mod walk;

pub use dot::SHORT;
pub use gather::Gathering;

use crate::kernels::Bases;
use crate::tier::Tier;
use ferrax_kernel::{Res, Routine};

/// Runs a routine; the second argument allows it to use other threads.
pub type Run = Box<dyn Fn(Bases, bool) -> Res<()> + Send + Sync>;

/// Estimated time of one run.
pub fn nanos(r: &Routine) -> f64 {
    let each = match r {
        Routine::Dot(_) | Routine::Conv(_) => dot::NANOS,
        Routine::Linalg(_) => linalg::NANOS,
        _ => 0.3,
    };
    r.work() as f64 * each
}

pub fn compile(r: &Routine, tier: Tier) -> Res<Run> {
    match r {
        Routine::Dot(d) => dot::compile(d, tier),
        Routine::Gather(g) => Ok(Gathering::new(g, tier)?.routine()),
        Routine::Scatter(s) => scatter::compile(s, tier),
        Routine::DynamicSlice { operand, sizes, dtype, index_dtype } => {
            dynamic_slice::slice(operand, sizes, *dtype, *index_dtype)
        }
        Routine::DynamicUpdateSlice { operand, update, dtype, index_dtype } => {
            dynamic_slice::update(operand, update, *dtype, *index_dtype)
        }
        Routine::Sort { outer, n, inner, dtypes, num_keys } => sort::compile(*outer, *n, *inner, dtypes, *num_keys),
        Routine::TopK { outer, n, inner, k, dtype } => top_k::compile([*outer, *n, *inner], *k, *dtype, tier),
        Routine::Cumulative { kind, outer, n, inner, reverse, dtype } => {
            cumulative::compile(*kind, [*outer, *n, *inner], *reverse, *dtype, tier)
        }
        Routine::Conv(c) => conv::compile(c, tier),
        Routine::Linalg(l) => linalg::compile(l, tier),
        Routine::Fft(f) => fft::compile(f, tier),
    }
}
