//! Reductions in registers: a run of calls whose values are taken into sixteen lanes each, as [`ferrax_kernel::order`] says.
//!
//! ```text
//!     sum of exp(x - m):      zmm0 = x[i] - m;  zmm0 = exp(zmm0);  zmm31 += zmm0          (sixteen positions an iteration)
//! ```
//!
//! What is taken into one lane has to wait for what was taken before, so that short bodies go through several *chains* at once: rows, or blocks of
//! one row, that lie apart.
//!
//! INVARIANT: lane j takes the elements j, j + 16, .. of its chain, in this order, each combined as the function says.
use super::allot::allot;
use super::asm::{self, Emitted, KeptOperand, Site, TABLE, VectorSize};
use super::graph::{self, Leaf, VecGraph, VecNode};
use super::pages::Pages;
use super::{Function, LaneWidth, MOST_SPILLS, MOST_VALUES, Operand, Recording, Replaced, TableSlot, enter, masks};
use ferrax_kernel::order::LANES;
use std::mem::MaybeUninit;

/// Chains that go side by side, at most, and accumulators of all of them.
pub const CHAINS: usize = 4;
const MOST_ACCUMULATORS: usize = 16;

/// A pointer of the code's table: of which chain, and of which of the vectors that hold sixteen positions.
struct FoldSlot {
    slot: TableSlot,
    chain: usize,
    /// Bytes from where the chain stands.
    at: usize,
}
pub struct RegisterFold {
    code: Pages,
    slots: Vec<FoldSlot>,
    chains: usize,
    /// Bytes of an element.
    size: usize,
    identities: Vec<u64>,
}

/// What the code works on: pointers, and behind them the accumulators, `[fold][chain][lane]`.
#[repr(C, align(64))]
pub struct FoldMemory {
    table: [*mut u8; TABLE],
    accumulators: [MaybeUninit<u64>; MOST_ACCUMULATORS * LANES],
}
impl Default for FoldMemory {
    fn default() -> FoldMemory {
        FoldMemory {
            table: [std::ptr::null_mut(); TABLE],
            accumulators: [MaybeUninit::uninit(); MOST_ACCUMULATORS * LANES],
        }
    }
}

impl RegisterFold {
    /// `folds`: places of values, by what they are combined, and what each lane starts from. None where there is no code.
    pub fn compile(
        calls: &[Replaced],
        width: LaneWidth,
        known: &dyn Fn(u16) -> Operand,
        folds: &[(u16, Function, u64)],
        vector: VectorSize,
    ) -> Option<RegisterFold> {
        /// Values of a body that takes longer than what is taken last has to wait.
        const LONG: usize = 40;
        let wide = width == LaneWidth::Wide;
        let parts = LANES / vector.lanes(wide);
        let most = (CHAINS / parts).min(MOST_ACCUMULATORS / folds.len().max(1)).max(1);
        let once = record(calls, (wide, vector), known, folds, 1)?;
        let chains = if once.0.nodes.len() > LONG * parts { 1 } else { most };
        let fits = |r: &(VecGraph, Vec<FoldSlot>)| r.1.len() <= TABLE && r.0.nodes.len() <= MOST_VALUES;
        let several = if chains > 1 { record(calls, (wide, vector), known, folds, chains).filter(fits) } else { None };
        let (chains, (g, slots)) = match several {
            Some(several) => (chains, several),
            None => (1, Some(once).filter(fits)?),
        };
        if folds.len() * chains > MOST_ACCUMULATORS {
            return None;
        }
        let mut frame = 0;
        let vectors: Vec<Option<u32>> = slots
            .iter()
            .map(|s| {
                let still = s.slot.step == 0;
                frame += still as u32;
                still.then(|| frame - 1)
            })
            .collect();
        let allotted = allot(&g, &vectors, false);
        if allotted.frame > MOST_SPILLS {
            return None;
        }
        let operands: Vec<bool> = slots.iter().map(|s| s.slot.is_bool).collect();
        let kept: Vec<KeptOperand> = (0..)
            .zip(slots.iter().zip(&vectors))
            .filter_map(|(operand, (s, v))| v.map(|slot| KeptOperand { operand, slot, is_one: s.slot.is_one }))
            .collect();
        let emitted = Emitted {
            wide,
            vector,
            operands: &operands,
            still: &kept,
            body: &allotted.body,
            frame: allotted.frame,
            pool: &allotted.pool,
            states: &allotted.states,
            constants: &allotted.constants,
            steps: None,
            parts,
            rows: None,
        };
        let code = asm::assemble(&emitted, &masks::forms(&emitted));
        Some(RegisterFold {
            code: Pages::new(&code)?,
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
    /// The lanes of a fold: sixteen of the first chain, then of the next.
    pub fn lanes(&self, memory: &FoldMemory, fold: usize) -> *const u8 {
        memory.accumulators.as_ptr().cast::<u8>().wrapping_add(fold * self.bytes())
    }
    /// Of the accumulators of a fold.
    fn bytes(&self) -> usize {
        self.chains * LANES * self.size
    }
    /// Points a chain to where `table` says that its operands are.
    pub fn point(&self, memory: &mut FoldMemory, chain: usize, table: &[*mut u8]) {
        for (p, s) in memory.table.iter_mut().zip(&self.slots).filter(|(_, s)| s.chain == chain) {
            *p = table[s.slot.at as usize].wrapping_add(s.at);
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
            // SAFETY: `whole` positions are at most n, and a multiple of what an iteration takes.
            unsafe { enter(&self.code, memory.table.as_mut_ptr(), whole) };
        }
        if rest > 0 {
            // SAFETY: as promised, after the first `whole` elements.
            unsafe { self.tail(memory, whole, rest) }
        }
    }
    /// The last `n` positions, less than an iteration's, by way of copies: what the lanes behind them take is taken back.
    ///
    /// # Safety
    /// As `run`: n elements at `from`.
    unsafe fn tail(&self, memory: &mut FoldMemory, from: usize, n: usize) {
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Copied([u8; LANES * 8]);
        let mut copies = [const { MaybeUninit::<Copied>::uninit() }; TABLE];
        let before = memory.accumulators;
        let table = memory.table;
        for ((s, copy), p) in self.slots.iter().zip(&mut copies).zip(&mut memory.table).filter(|s| s.0.0.slot.step > 0)
        {
            let copy = copy.write(Copied([0; LANES * 8])).0.as_mut_ptr();
            // of the sixteen positions, this vector has some
            let (first, step) = (s.at / s.slot.step, s.slot.step);
            if n > first {
                // SAFETY: n elements are there, of which the vector's begin at `first`; a copy holds sixteen.
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

/// The graph of an iteration, and what it reads.
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
            let (of, _) = c.function.bools();
            let mut ops = [0; 3];
            for j in 0..c.function.operands() {
                ops[j] = r.read(c.ops[j], of[j]);
            }
            let v = c.function.record(ops);
            r.values.retain(|v| v.0 != c.d);
            r.values.push((c.d, v));
        }
        for (k, (of, by, _)) in folds.iter().enumerate() {
            let x = r.read(*of, false);
            let site = ((k * chains + chain) * parts + part) as u32;
            let v = by.record([graph::leaf(Leaf::State(site)), x, 0]);
            if !matches!(graph::with(|g| g.nodes[v as usize]), VecNode::Op { .. }) {
                graph::end();
                return None;
            }
            graph::with(|g| g.output(Site::State(site), v, false));
        }
        slots.extend(r.slots.into_iter().map(|slot| {
            let at = part * vector.lanes(wide) * slot.step;
            FoldSlot { slot, chain, at }
        }));
    }
    Some((graph::end(), slots))
}
