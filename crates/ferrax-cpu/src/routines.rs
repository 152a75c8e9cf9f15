//! Routines: what is not a loop nest over scalars, one file for each family.
//!
//! INVARIANT: a routine's bits are a function of its operands' values and its parameters, never of layout or threads.
#![allow(unsafe_code)]
mod dot;

use crate::kernels::Bases;
use crate::tier::Tier;
use ferrax_kernel::{Error, Res, Routine};

/// Runs a routine; the second argument allows it to use the pool.
pub type Run = Box<dyn Fn(Bases, bool) -> Res<()> + Send + Sync>;

pub fn compile(r: &Routine, tier: Tier) -> Res<Run> {
    match r {
        Routine::Dot(d) => dot::compile(d, tier),
        other => Err(Error::Unsupported(format!("{} on the cpu", other.name()))),
    }
}
