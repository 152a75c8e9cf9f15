//! Kernels as they run: as tile programs, and reductions as nests once there was enough work.
//!
//! INVARIANT: the bits of a kernel's outputs are a function of its inputs' values, whichever form runs.
use super::alone::RowKernel;
use super::reduction::NestedReduction;
use crate::kernels::{Bases, TileKernel};
use crate::tuning::Target;
use ferrax_kernel::{Affine, Kernel, Res};
use std::ops::Range;

/// A kernel, compiled.
pub struct CompiledKernel {
    tiles: TileKernel,
    nest: Option<Box<NestedReduction>>,
}
impl CompiledKernel {
    /// `aliased`: whether an output may share memory with an input (which the kernel then reads only at the position that it writes).
    pub fn new(k: &Kernel, aliased: bool, target: impl Into<Target>) -> Res<CompiledKernel> {
        let target = target.into();
        let tiles = TileKernel::new(k, aliased, target)?;
        let row_kernel = if tiles.reduces() { RowKernel::new(k, aliased, &target) } else { None };
        let nest = row_kernel.map(|k| Box::new(NestedReduction::new(k, tiles.nanos())));
        Ok(CompiledKernel { tiles, nest })
    }
    /// With outputs whose elements lie at these positions of larger arrays; none of kernels with reductions.
    pub fn placed(k: &Kernel, to: &Affine, aliased: bool, target: &Target) -> Res<Option<CompiledKernel>> {
        let tiles = TileKernel::placed(k, to, aliased, target)?;
        Ok(tiles.map(|tiles| CompiledKernel { tiles, nest: None }))
    }
    /// Estimated time of one run.
    pub fn nanos(&self) -> f64 {
        self.tiles.nanos()
    }
    /// Announces so many runs, which count as work: code is made where that pays.
    pub fn expect(&self, runs: usize) {
        match self.nest.as_ref().filter(|n| !n.failed()) {
            Some(nest) => nest.expect(runs),
            None => self.tiles.expect(runs),
        }
    }
    /// Says that it will be run in so many equal parts (`run_rows`).
    pub fn in_parts(&self, parts: usize) {
        self.nest.iter().for_each(|n| n.in_parts(parts));
    }
    /// The strategy on one line, and the programs, or the nest, below it.
    pub fn text(&self) -> String {
        self.nest.as_ref().and_then(|n| n.text()).unwrap_or_else(|| self.tiles.text())
    }
    /// Whether its grid can be run in so many parts, which lie one after the other.
    pub fn splits(&self, parts: usize) -> bool {
        self.tiles.splits(parts)
    }
    /// Runs some of `of` equal parts of the grid, on this thread.
    ///
    /// # Errors
    /// `OutOfMemory` if working memory cannot be allocated.
    ///
    /// # Safety
    /// As `run`, for the memory that these parts touch; `splits(of)`, and the parts lie below it.
    pub unsafe fn run_rows(&self, bases: Bases, parts: Range<usize>, of: usize) -> Res<()> {
        // SAFETY: as this function demands.
        unsafe {
            match self.nest.as_ref().and_then(|n| n.code()) {
                Some(code) if code.run_rows(bases, &parts, of)? => Ok(()),
                _ => self.tiles.run_rows(bases, parts, of),
            }
        }
    }
    /// Runs the kernel, spread over threads where that pays and `parallel` allows it.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no working memory.
    ///
    /// # Safety
    /// `bases` point at buffers of the sizes that the kernel states, aligned to their elements; outputs overlap nothing, but, where
    /// the kernel was compiled as aliased, inputs that it reads only where it writes.
    #[inline]
    pub unsafe fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        self.expect(1);
        match self.nest.as_ref().and_then(|n| Some((n.code()?, n.cost()))) {
            Some((code, cost)) => code.run(bases, parallel.then_some(cost)),
            // SAFETY: as this function demands.
            None => unsafe { self.tiles.run(bases, parallel) },
        }
    }
}
