//! `Linalg`: decompositions and triangular systems, by `ferrax-linalg`.
use super::CompiledRoutine;
use crate::kernels::Bases;
use crate::threads::SharedPtr;
use ferrax_kernel::Res;
use ferrax_linalg::CompiledLinalg;
use smallvec::SmallVec;

impl CompiledRoutine for CompiledLinalg {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        let ins: SmallVec<[SharedPtr; 4]> = (0..bases.ins.len()).map(|k| SharedPtr(bases.input(k as u32))).collect();
        let outs: SmallVec<[SharedPtr; 4]> = (0..bases.outs.len()).map(|k| SharedPtr(bases.output(k as u32))).collect();
        // SAFETY: the plan's verification has compared sizes with the routine's, and no result overlaps an operand.
        unsafe { CompiledLinalg::run(self, &ins, &outs, parallel, bases.cancel) }
    }
    fn text(&self) -> String {
        CompiledLinalg::text(self)
    }
}
