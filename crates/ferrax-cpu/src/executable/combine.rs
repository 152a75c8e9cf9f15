//! How devices combine their operands in a collective: kernels on blocks of elements.
//!
//! INVARIANT: all devices combine the same elements with the same kernels, so that it does not matter which of them does.
#![allow(unsafe_code)]
use crate::kernels::Bases;
use crate::lowering::CompiledKernel;
use crate::tuning::Target;
use ferrax_kernel::backend::{RunCx, TermArithmetic};
use ferrax_kernel::collective::tree::accumulator;
use ferrax_kernel::{DType, Error, Kernel, ReduceKind, Res};
use smallvec::SmallVec;

/// For whole blocks, and for the remainder: elements to accumulators, accumulators to elements, two accumulators to one.
pub struct Combiner {
    types: [DType; 2],
    sizes: [usize; 2],
    kernels: [Vec<CompiledKernel>; 2],
}
impl Combiner {
    pub fn new(kind: ReduceKind, dtype: DType, len: usize, target: Target) -> Res<Combiner> {
        let bin = kind.bin().ok_or_else(|| Error::Invalid("devices cannot combine positions".into()))?;
        let (acc, block) = (accumulator(dtype), target.tuning.kernels.combined_elements);
        let kinds: [(&[DType], DType, _); 3] =
            [(&[dtype], acc, None), (&[acc], dtype, None), (&[acc, acc], acc, Some(bin))];
        let kernels = |n: usize| -> Res<Vec<CompiledKernel>> {
            let all = kinds.iter().filter(|_| n > 0).map(|k| Kernel::elementwise(k.0, k.1, k.2, n));
            all.map(|k| CompiledKernel::new(&k, false, target)).collect()
        };
        let whole = kernels(if len < block { 0 } else { block })?;
        Ok(Combiner { types: [dtype, acc], sizes: [block, len % block], kernels: [whole, kernels(len % block)?] })
    }
}
/// As [`TermArithmetic`], in a run.
pub struct BlockArithmetic<'a> {
    pub with: &'a Combiner,
    pub cx: &'a RunCx<'a>,
}
impl BlockArithmetic<'_> {
    /// Runs the kernel of this number on operands of dtype `d`, to a result of dtype `e`.
    fn run(&self, which: usize, from: &[&[u8]], d: DType, to: &mut [u8], e: DType) -> Res<()> {
        let n = to.len() / e.size();
        let fits = |x: &[u8], d: DType| x.len() == n * d.size() && x.as_ptr().align_offset(d.size()) == 0;
        let found = self.with.sizes.iter().position(|s| *s == n).and_then(|k| self.with.kernels[k].get(which));
        let Some(kernel) = found.filter(|_| from.iter().all(|x| fits(x, d)) && fits(to, e)) else {
            return Err(Error::Invalid(format!("devices combine {n} elements, for which there is no kernel")));
        };
        let ins = from.iter().map(|x| x.as_ptr().cast_mut());
        let ptrs: SmallVec<[*mut u8; 3]> = ins.chain([to.as_mut_ptr()]).collect();
        let (ins, outs): (&[u32], &[u32]) = if from.len() == 1 { (&[0], &[1]) } else { (&[0, 1], &[2]) };
        // SAFETY: the kernel was made for n elements, which operands and result have, aligned to them; the result is borrowed mutably, and overlaps no
        // operand; operands are only read.
        unsafe { kernel.run(Bases { ptrs: &ptrs, ins, outs, cancel: self.cx.cancel }, false) }
    }
}
impl TermArithmetic for BlockArithmetic<'_> {
    fn sizes(&self) -> [usize; 3] {
        [self.with.types[0].size(), self.with.types[1].size(), self.with.sizes[0]]
    }
    fn widen(&self, from: &[u8], to: &mut [u8]) -> Res<()> {
        self.run(0, &[from], self.with.types[0], to, self.with.types[1])
    }
    fn round(&self, from: &[u8], to: &mut [u8]) -> Res<()> {
        self.run(1, &[from], self.with.types[1], to, self.with.types[0])
    }
    fn pair(&self, a: &[u8], b: &[u8], to: &mut [u8]) -> Res<()> {
        self.run(2, &[a, b], self.with.types[1], to, self.with.types[1])
    }
}
