//! Reductions in registers: values are accumulated into the sixteen lanes of the written order ([`ferrax_kernel::order`]).
//!
//! ```text
//!     sum of exp(x - m):      zmm0 = x[i] - m;  zmm0 = exp(zmm0);  zmm31 += zmm0          (sixteen positions an iteration)
//! ```
//!
//! Each accumulation depends on the one before it. To hide that latency, short bodies go through several *chains* at once: different rows, or
//! different blocks of one row.
//!
//! INVARIANT: lane j combines the elements j, j + 16, .. of its chain in this order, with the reduction's function.
use super::asm::{self, Emitted, KeptOperand, TABLE};
use super::pages::Pages;
use super::regalloc::allocate;
use super::{Function, LaneWidth, Operand, Recording, Replaced, TUNING, TableSlot, enter, masks};
use crate::instructions::VectorSize;
use crate::instructions::graph::{self, Leaf, VecGraph, VecNode, VecValue};
use crate::instructions::opcodes::{MemoryElement, Opcode, Site};
use ferrax_kernel::order::LANES;
use std::mem::MaybeUninit;

/// Chains that go side by side, at most, and accumulators of all of them.
pub const CHAINS: usize = 4;
const MAX_ACCUMULATORS: usize = 16;

/// A pointer of the code's table: of which chain, and of which of the vectors that hold sixteen positions.
struct FoldSlot {
    slot: TableSlot,
    chain: usize,
    /// Bytes from the current position of the chain.
    at: usize,
}
pub struct RegisterFold {
    code: Pages,
    /// From sixteen lanes to the first of them.
    finish: Pages,
    slots: Vec<FoldSlot>,
    chains: usize,
    /// Bytes of an element.
    size: usize,
    identities: Vec<u64>,
}

/// The memory of the code: pointers, followed by the accumulators, `[fold][chain][lane]`.
#[repr(C, align(64))]
pub struct FoldMemory {
    table: [*mut u8; TABLE],
    accumulators: [MaybeUninit<u64>; MAX_ACCUMULATORS * LANES],
}
/// Bytes that pointers move from one group of chains to the next.
pub struct FoldSteps([isize; TABLE]);
impl Default for FoldMemory {
    fn default() -> FoldMemory {
        FoldMemory {
            table: [std::ptr::null_mut(); TABLE],
            accumulators: [MaybeUninit::uninit(); MAX_ACCUMULATORS * LANES],
        }
    }
}

impl RegisterFold {
    /// `folds`: places of values, the functions that combine them, and the initial value of each
    /// lane. None if there is no native equivalent.
    pub fn compile(
        calls: &[Replaced],
        width: LaneWidth,
        known: &dyn Fn(u16) -> Operand,
        folds: &[(u16, Function, u64)],
        vector: VectorSize,
    ) -> Option<RegisterFold> {
        let wide = width == LaneWidth::Wide;
        let parts = LANES / vector.lanes(wide);
        let most = (CHAINS / parts).min(MAX_ACCUMULATORS / folds.len().max(1)).max(1);
        let once = record(calls, (wide, vector), known, folds, 1)?;
        let chains = if once.0.nodes.len() > TUNING.max_values_of_chains * parts { 1 } else { most };
        let fits = |r: &(VecGraph, Vec<FoldSlot>)| r.1.len() <= TABLE && r.0.nodes.len() <= TUNING.max_values;
        let several = if chains > 1 { record(calls, (wide, vector), known, folds, chains).filter(fits) } else { None };
        let (chains, (g, slots)) = match several {
            Some(several) => (chains, several),
            None => (1, Some(once).filter(fits)?),
        };
        if folds.len() * chains > MAX_ACCUMULATORS {
            return None;
        }
        let finish = finishing((wide, vector), folds, chains)?;
        let mut frame = 0;
        let vectors: Vec<Option<u32>> = slots
            .iter()
            .map(|s| {
                let still = s.slot.step == 0;
                frame += still as u32;
                still.then(|| frame - 1)
            })
            .collect();
        let allocation = allocate(&g, &vectors, false, false);
        if allocation.frame > TUNING.max_spills {
            return None;
        }
        let operands: Vec<MemoryElement> = slots.iter().map(|s| s.slot.element).collect();
        let kept: Vec<KeptOperand> = (0..)
            .zip(slots.iter().zip(&vectors))
            .filter_map(|(operand, (s, v))| v.map(|slot| KeptOperand { operand, slot, from: s.slot.from }))
            .collect();
        let emitted = Emitted { operands: &operands, still: &kept, parts, ..allocation.emitted(wide, vector) };
        let code = asm::assemble(&emitted, &masks::forms(&emitted));
        Some(RegisterFold {
            code: Pages::new(&code)?,
            finish,
            slots,
            chains,
            size: if wide { 8 } else { 4 },
            identities: folds.iter().map(|f| f.2).collect(),
        })
    }
    /// How many chains go at once.
    pub fn chains(&self) -> usize {
        self.chains
    }
    /// The accumulators of one chain of a fold.
    pub fn result(&self, memory: &FoldMemory, fold: usize, chain: usize) -> *const u8 {
        let at = fold * self.bytes() + chain * LANES * self.size;
        memory.accumulators.as_ptr().cast::<u8>().wrapping_add(at)
    }
    /// Of the accumulators of a fold.
    fn bytes(&self) -> usize {
        self.chains * LANES * self.size
    }
    /// Points a chain to where its operands are.
    pub fn point(&self, memory: &mut FoldMemory, chain: usize, place: impl Fn(u16) -> *mut u8) {
        for (p, s) in memory.table.iter_mut().zip(&self.slots).filter(|(_, s)| s.chain == chain) {
            *p = place(s.slot.at).wrapping_add(s.at);
        }
    }
    /// How far each pointer moves where its operand moves so many bytes.
    pub fn steps(&self, of: impl Fn(u16) -> isize) -> FoldSteps {
        let mut steps = [0; TABLE];
        steps.iter_mut().zip(&self.slots).for_each(|(step, s)| *step = of(s.slot.at));
        FoldSteps(steps)
    }
    /// Moves all chains on.
    pub fn advance(&self, memory: &mut FoldMemory, by: &FoldSteps) {
        for (p, step) in memory.table.iter_mut().zip(by.0).take(self.slots.len()) {
            *p = p.wrapping_offset(step);
        }
    }
    /// Folds the `n` elements of each chain, from nothing.
    ///
    /// # Safety
    /// All chains were pointed to operands, of which those that move have n elements, and others a vector of them, or one.
    pub unsafe fn run(&self, memory: &mut FoldMemory, n: usize) {
        let acc = memory.accumulators.as_mut_ptr().cast::<u8>();
        for (k, bits) in self.identities.iter().enumerate() {
            for lane in 0..self.chains * LANES {
                // SAFETY: `compile` saw that they fit; both sizes of elements are aligned there.
                unsafe {
                    match self.size {
                        4 => acc.add(k * self.bytes()).cast::<u32>().add(lane).write(*bits as u32),
                        _ => acc.add(k * self.bytes()).cast::<u64>().add(lane).write(*bits),
                    }
                }
            }
        }
        let (whole, rest) = (n / LANES * LANES, n % LANES);
        if whole > 0 {
            // SAFETY: `whole` positions are at most n, and a multiple of the positions of an
            // iteration.
            unsafe { enter(&self.code, memory.table.as_mut_ptr(), whole) };
        }
        if rest > 0 {
            // SAFETY: as promised, after the first `whole` elements.
            unsafe { self.tail(memory, whole, rest) }
        }
        // SAFETY: the accumulators are all it touches.
        unsafe { enter(&self.finish, memory.table.as_mut_ptr(), LANES) };
    }
    /// The last `n` positions, less than one iteration, from copies. Lanes behind them are reset to
    /// the identity.
    ///
    /// # Safety
    /// As `run`: n elements at `from`.
    unsafe fn tail(&self, memory: &mut FoldMemory, from: usize, n: usize) {
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Copied([u8; LANES * 16]);
        let mut copies = [const { MaybeUninit::<Copied>::uninit() }; TABLE];
        let before = memory.accumulators;
        let table = memory.table;
        for ((s, copy), p) in self.slots.iter().zip(&mut copies).zip(&mut memory.table).filter(|s| s.0.0.slot.step > 0)
        {
            let copy = copy.write(Copied([0; LANES * 16])).0.as_mut_ptr();
            // of the sixteen positions, this vector has some
            let (first, step) = (s.at / s.slot.step, s.slot.step);
            if n > first {
                // SAFETY: there are n elements, of which those of the vector begin at `first`; a
                // copy holds sixteen.
                unsafe { copy.copy_from_nonoverlapping(p.add(from * step), (n - first) * step) }
            }
            *p = copy;
        }
        // SAFETY: each copy has a vector of elements.
        unsafe { enter(&self.code, memory.table.as_mut_ptr(), LANES) };
        memory.table = table;
        let (old, acc) = (before.as_ptr().cast::<u8>(), memory.accumulators.as_mut_ptr().cast::<u8>());
        for k in 0..self.identities.len() * self.chains {
            let at = (k * LANES + n) * self.size;
            // SAFETY: lanes n.. of an accumulator, in both.
            unsafe { acc.add(at).copy_from_nonoverlapping(old.add(at), (LANES - n) * self.size) }
        }
    }
}

/// The graph of an iteration, and the operands that it reads.
fn record(
    calls: &[Replaced],
    (wide, vector): (bool, VectorSize),
    known: &dyn Fn(u16) -> Operand,
    folds: &[(u16, Function, u64)],
    chains: usize,
) -> Option<(VecGraph, Vec<FoldSlot>)> {
    let parts = LANES / vector.lanes(wide);
    graph::begin(wide, vector);
    let mut slots: Vec<FoldSlot> = vec![];
    for (chain, part) in (0..chains).flat_map(|c| (0..parts).map(move |p| (c, p))) {
        let mut r =
            Recording { known, first: slots.len(), slots: vec![], values: vec![], size: if wide { 8 } else { 4 } };
        for c in calls {
            let (of, _) = c.function.elements();
            let mut ops = [0; 3];
            for j in 0..c.function.operands() {
                ops[j] = r.read(c.ops[j], of[j]);
            }
            let v = c.function.record(ops);
            r.values.retain(|v| v.0 != c.d);
            r.values.push((c.d, v));
        }
        for (k, (of, by, _)) in folds.iter().enumerate() {
            let x = r.read(*of, MemoryElement::Lane);
            let site = ((k * chains + chain) * parts + part) as u32;
            let v = by.record([graph::leaf(Leaf::State(site)), x, 0]);
            if !matches!(graph::with(|g| g.nodes[v as usize]), VecNode::Op { .. }) {
                graph::end();
                return None;
            }
            graph::with(|g| g.output(Site::State(site), v, MemoryElement::Lane));
        }
        slots.extend(r.slots.into_iter().map(|slot| {
            let at = part * vector.lanes(wide) * slot.step;
            FoldSlot { slot, chain, at }
        }));
    }
    Some((graph::end(), slots))
}

/// Code that folds the lanes of each accumulator, halves first, into lane 0.
fn finishing((wide, vector): (bool, VectorSize), folds: &[(u16, Function, u64)], chains: usize) -> Option<Pages> {
    let (lanes, size) = (vector.lanes(wide), if wide { 8 } else { 4 });
    let parts = LANES / lanes;
    graph::begin(wide, vector);
    for (k, (_, by, _)) in folds.iter().enumerate() {
        for chain in 0..chains {
            let first = (k * chains + chain) * parts;
            let mut all: Vec<VecValue> = (0..parts).map(|p| graph::leaf(Leaf::State((first + p) as u32))).collect();
            while all.len() > 1 {
                let half = all.len() / 2;
                all = (0..half).map(|j| by.record([all[j], all[j + half], 0])).collect();
            }
            let mut v = all[0];
            let mut apart = lanes / 2 * size;
            while apart >= size {
                let turned = turned(v, apart, vector);
                v = by.record([v, turned, 0]);
                apart /= 2;
            }
            if let Function::Bin(_, d) = by
                && d.is_float()
            {
                v = Function::Settle(*d).record([v, 0, 0]);
            }
            graph::with(|g| g.output(Site::State(first as u32), v, MemoryElement::Lane));
        }
    }
    let g = graph::end();
    let allocation = allocate(&g, &[], true, false);
    if g.nodes.len() > TUNING.max_values || allocation.frame > TUNING.max_spills {
        return None;
    }
    let emitted = Emitted { parts, ..allocation.emitted(wide, vector) };
    Pages::new(&asm::assemble(&emitted, &masks::forms(&emitted)))
}
/// Swaps elements at a distance of so many bytes.
fn turned(v: VecValue, apart: usize, vector: VectorSize) -> VecValue {
    /// Two by two, and the first of two with the second.
    const PAIRS: u8 = 0b01_00_11_10;
    const ONES: u8 = 0b10_11_00_01;
    match (apart, vector) {
        (4, _) => graph::un(Opcode::Rotation(ONES), v),
        (8, _) => graph::un(Opcode::Rotation(PAIRS), v),
        (16, VectorSize::Ymm) => graph::bin(Opcode::Halves(1), v, v),
        (16, VectorSize::Zmm) => graph::bin(Opcode::TurnQuarters(ONES), v, v),
        _ => graph::bin(Opcode::TurnQuarters(PAIRS), v, v),
    }
}
