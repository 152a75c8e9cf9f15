//! From the steps of a plan to nests, and kernels as they run: as tile programs, and as nests once there was enough work.
#![allow(unsafe_code)]
mod alone;
mod build;
mod cells;
mod compiled;
pub mod functions;
mod kernels;
mod reduction;
mod routines;
mod rows;

use crate::nest::{self, Nest};
pub use build::{Builder, Style, WrittenNest};
pub use cells::{Cell, Location, PlanCells};
pub use compiled::CompiledKernel;
use ferrax_kernel::{DType, Kernel};

/// A number in memory: its cell, and how many bytes behind.
#[derive(Clone, Copy)]
pub struct CellNumber {
    pub cell: Cell,
    pub offset: usize,
    pub dtype: DType,
}
/// Set, it has the nest printed after each pass.
const SHOWN: &str = "FERRAX_PRINT_NESTS";

pub fn show(pass: &str, nest: &Nest) {
    if std::env::var_os(SHOWN).is_some() {
        eprintln!("== {pass}\n{}", nest::text::print(nest, &functions::NAMES));
    }
}
/// A nest of which it is proved that it stays in its arrays, after the last pass; others do not run.
pub fn is_proved(pass: &str, nest: &Nest) -> Option<()> {
    show(pass, nest);
    let proof = nest::verify(nest);
    if let Err(e) = &proof
        && std::env::var_os(SHOWN).is_some()
    {
        eprintln!("== refused: {e}");
    }
    proof.ok()
}
/// The estimated time of a kernel as a tile program, in nanoseconds.
pub fn kernel_nanos(k: &Kernel) -> f64 {
    80.0 + 6.0 * k.nodes.len() as f64
}
