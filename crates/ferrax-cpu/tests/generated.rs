//! Generated kernels, one way and another: native code, tile programs, every tier, parts and threads give the bits of the reference, and touch
//! nothing but their buffers. `SEEDS=from..to` chooses.
#![cfg(unix)]
use crate::fenced::{Fenced, SEED, Side};
use crate::generate::{Rng, guarded_kernel, kernel_of_pairs, kernel_of_rows, random_bytes, random_kernel, seeds};
use ferrax_cpu::kernels::Bases;
use ferrax_cpu::lowering::CompiledKernel;
use ferrax_cpu::threads::ThreadTuning;
use ferrax_cpu::{Tier, set_num_threads};
use ferrax_kernel::{Bin, DType, Kernel, Node, Scalar, Un, reference};
use std::sync::atomic::{AtomicBool, Ordering};

/// How a kernel is run.
#[derive(Clone, Copy, Debug)]
enum How {
    Whole,
    /// In so many parts, one after the other, where it has them.
    Parts(usize),
}
/// The outputs, in memory of their own or in that of the inputs of the same number.
fn run(c: &CompiledKernel, k: &Kernel, ins: &[Vec<u8>], shared: &[bool], side: Side, how: How) -> Vec<Vec<u8>> {
    let ins: Vec<Fenced> = ins.iter().map(|b| Fenced::copy_of(b, side)).collect();
    let outs: Vec<Fenced> = k.output_dtypes().map(|d| Fenced::new(d.size() * k.grid.size(), side)).collect();
    let ptrs: Vec<*mut u8> = ins.iter().chain(&outs).map(|b| b.ptr()).collect();
    let at: Vec<u32> = (0..ins.len() as u32).collect();
    let to: Vec<u32> = (0..outs.len()).map(|j| if shared[j] { j } else { ins.len() + j } as u32).collect();
    let bases = Bases { ptrs: &ptrs, ins: &at, outs: &to, cancel: &AtomicBool::new(false) };
    match how {
        // SAFETY: buffers are as long as the kernel says, and shared ones are read only where they are written.
        How::Whole => unsafe { c.run(bases, true) }.unwrap(),
        How::Parts(n) => {
            for part in 0..n {
                // SAFETY: as above, and it splits into so many.
                unsafe { c.run_rows(bases, part..part + 1, n) }.unwrap();
            }
        }
    }
    ins.iter().for_each(|b| drop(b.bytes()));
    (0..outs.len()).map(|j| if shared[j] { ins[j].bytes() } else { outs[j].bytes() }).collect()
}
/// The first element that is another, where all nans are one.
fn differs(d: DType, a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b {
        return None;
    }
    let nan = |x: &[u8]| d.is_float() && Scalar::from_bytes(d, x).to_f64().is_nan();
    a.chunks(d.size()).zip(b.chunks(d.size())).position(|(x, y)| x != y && !(nan(x) && nan(y)))
}
/// Whether the reference's numbers are those of the definition to the bit.
fn is_exact(k: &Kernel) -> bool {
    use Un::*;
    k.nodes.iter().all(|n| match n.1 {
        Node::Un(f, _) => {
            matches!(
                f,
                Neg | Abs | Sign | Not | Popcnt | Clz | Floor | Ceil | RoundEven | RoundAway | Trunc | IsFinite | Sqrt
            )
        }
        Node::Bin(f, ..) => !matches!(f, Bin::Pow | Bin::Atan2),
        _ => true,
    })
}
/// Compares all ways of a kernel.
fn try_kernel(k: &Kernel, ins: &[Vec<u8>], shared: &[bool], seed: u64) {
    let aliased = shared.iter().any(|s| *s);
    let views: Vec<&[u8]> = ins.iter().map(|b| &b[..]).collect();
    let mut want = is_exact(k).then(|| reference::kernel(k, &views).unwrap());
    let mut same = |got: Vec<Vec<u8>>, way: &dyn Fn() -> String| {
        let want = want.get_or_insert_with(|| got.clone());
        for (j, (g, w)) in got.iter().zip(want).enumerate() {
            let d = k.dtype(k.outputs[j]);
            if let Some(i) = differs(d, g, w) {
                let [g, w] = [g, w].map(|x| Scalar::from_bytes(d, &x[i * d.size()..][..d.size()]));
                panic!("seed {seed}, {}, output {j} element {i} is {g:?}, not {w:?}\n{k:?}", way());
            }
        }
    };
    for tier in Tier::ALL.into_iter().filter(|t| t.is_available()) {
        let c = CompiledKernel::new(k, aliased, tier).unwrap();
        for is_code in [false, true] {
            if is_code && tier == Tier::Portable {
                continue;
            }
            if is_code {
                c.expect(1 << 40);
            }
            let way = |how: How, side: Side| format!("{}, code {is_code}, {how:?}, {side:?}", tier.name());
            for side in Side::BOTH {
                if !is_code && (side == Side::First) != (seed / 8).is_multiple_of(2) {
                    continue; // code is what may reach too far
                }
                same(run(&c, k, ins, shared, side, How::Whole), &|| way(How::Whole, side));
                if c.nanos() > ThreadTuning::DEFAULT.min_nanos {
                    set_num_threads(1);
                    same(run(&c, k, ins, shared, side, How::Whole), &|| {
                        format!("{}, one thread", way(How::Whole, side))
                    });
                    set_num_threads(2);
                }
            }
            if let Some(n) = [2, 3, 5].into_iter().find(|n| k.grid.size() > 0 && c.splits(*n)) {
                let (how, side) = (How::Parts(n), Side::BOTH[(seed / 16 % 2) as usize]);
                same(run(&c, k, ins, shared, side, how), &|| way(how, side));
            }
        }
    }
}
/// A kernel and what it reads.
fn made(seed: u64) -> (Kernel, Vec<Vec<u8>>, Vec<bool>) {
    /// Elements of all operands: strides over strides may ask for more than there is memory.
    const MAX_ELEMENTS: usize = 1 << 20;
    let rng = &mut Rng(seed);
    let k = loop {
        let k = match seed % 8 {
            0 => random_kernel(rng),
            1 => guarded_kernel(rng),
            2 => kernel_of_pairs(rng),
            _ => kernel_of_rows(rng),
        };
        if k.inputs.iter().map(|i| i.1).sum::<usize>() <= MAX_ELEMENTS {
            break k;
        }
    };
    k.verify().unwrap_or_else(|e| panic!("seed {seed}: {e}\n{k:?}"));
    let ins = k.inputs.iter().map(|(d, n)| random_bytes(rng, *d, *n)).collect();
    let n = k.grid.size();
    let shared = (0..k.outputs.len()).map(|j| {
        let fits = k.inputs.get(j).is_some_and(|i| *i == (k.dtype(k.outputs[j]), n));
        fits && n > 0 && k.rdims.is_empty() && k.in_place(j, j) && rng.below(2) == 0
    });
    let shared = shared.collect();
    (k, ins, shared)
}

#[test]
fn every_way_of_a_kernel_gives_its_bits_and_stays_within_its_buffers() {
    set_num_threads(2);
    for seed in seeds(500) {
        SEED.store(seed, Ordering::Relaxed);
        let (k, ins, shared) = made(seed);
        try_kernel(&k, &ins, &shared, seed);
    }
}
