//! Decompositions against the reference implementation, in one program.
mod blocked;
#[cfg(unix)]
#[path = "../../ferrax-cpu/tests/against/fenced.rs"]
mod fenced;
mod lanes;
mod spectra;

use ferrax_host::Tier;
use ferrax_host::memory::Block;
use ferrax_host::threads::SharedPtr;
use ferrax_kernel::buffer::Memory;
use ferrax_kernel::linalg::Linalg;
use ferrax_kernel::{DType, reference};
use ferrax_linalg::{CompiledLinalg, LinalgTuning};
use std::sync::atomic::AtomicBool;

struct Rng(u64);
impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}
fn reals(d: DType, b: &[u8]) -> Vec<f64> {
    reference::read(d, b).iter().map(|s| s.to_f64()).collect()
}

/// Bytes of each result.
fn sizes(l: &Linalg) -> Vec<usize> {
    let bytes = |(e, n)| {
        let (dtype, each) = l.layout(e);
        dtype.size() * each * n * l.batch
    };
    l.results().into_iter().map(bytes).collect()
}
fn decompose(tier: Tier, l: &Linalg, ins: &[*mut u8], outs: &[*mut u8]) {
    let shared = |p: &[*mut u8]| p.iter().map(|p| SharedPtr(*p)).collect::<Vec<_>>();
    let compiled = CompiledLinalg::new(l, tier, &LinalgTuning::DEFAULT);
    // SAFETY: memory of the test, as large as the routine says.
    unsafe { compiled.run(&shared(ins), &shared(outs), true, &AtomicBool::new(false)) }.unwrap();
}
/// The results, which are the same where what is beyond operands and results may not be touched.
fn run_on(tier: Tier, l: &Linalg, ins: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let operands: Vec<Block> = ins.iter().map(|b| Block::copy_of(b).unwrap()).collect();
    let results: Vec<Block> = sizes(l).into_iter().map(|n| Block::zeroed(n).unwrap()).collect();
    let pointers = |b: &[Block]| b.iter().map(|b| b.ptr()).collect::<Vec<_>>();
    decompose(tier, l, &pointers(&operands), &pointers(&results));
    let outs: Vec<Vec<u8>> = results.iter().map(|b| b.host().unwrap().to_vec()).collect();
    #[cfg(unix)]
    for side in fenced::Side::BOTH {
        use fenced::Fenced;
        let operands: Vec<Fenced> = ins.iter().map(|b| Fenced::copy_of(b, side)).collect();
        let results: Vec<Fenced> = sizes(l).into_iter().map(|n| Fenced::new(n, side)).collect();
        let pointers = |b: &[Fenced]| b.iter().map(|b| b.ptr()).collect::<Vec<_>>();
        decompose(tier, l, &pointers(&operands), &pointers(&results));
        operands.iter().zip(ins).for_each(|(b, x)| assert!(b.bytes() == *x, "an operand was written: {l:?}"));
        for (k, (got, want)) in results.iter().zip(&outs).enumerate() {
            assert!(got.bytes() == *want, "{side:?}: result {k} of {l:?}");
        }
    }
    outs
}
