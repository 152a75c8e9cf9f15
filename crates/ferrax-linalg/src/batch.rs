//! Batches of matrices: one by one or several in SIMD lanes, on several threads if that pays. Small matrices are computed by the reference implementation,
//! large ones by [`blocked`].
//!
//! Each range of a batch has its own memory, which its matrices reuse.
//!
//! INVARIANT: a small matrix is computed by one thread in one lane, and each block of a large one by one thread: bits depend neither on the number of
//! threads or lanes nor on the tier.
#![allow(unsafe_code)]
use crate::blocked::{self, BlockedDecomposition};
use crate::lanes::{self, RunLanes};
use crate::tuning::LinalgTuning;
use ferrax_host::Tier;
use ferrax_host::memory::Block;
use ferrax_host::threads::{self, Cost, SharedPtr};
use ferrax_kernel::error::room;
use ferrax_kernel::linalg::lanes::RealLanes;
use ferrax_kernel::linalg::{Decomposition, Entries, LaneWorkspace, Linalg, Workspace};
use ferrax_kernel::{Error, Res};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Nanoseconds an operation takes.
pub const NANOS: f64 = 0.8;

/// The matrices of a batch.
struct MatrixBatch<'a> {
    l: &'a Linalg,
    /// Operands and results, and the bytes of one matrix of each.
    from: &'a [SharedPtr],
    to: &'a [SharedPtr],
    ins: &'a [usize],
    outs: &'a [usize],
    /// Working memory of one.
    memory: usize,
    min_batch: usize,
    cancel: &'a AtomicBool,
}
impl MatrixBatch<'_> {
    fn part(p: &SharedPtr, bytes: usize, i: usize) -> *mut u8 {
        if bytes == 0 { std::ptr::NonNull::dangling().as_ptr() } else { p.get().wrapping_add(i * bytes) }
    }
    /// Operands and results of `count` matrices from the `i`-th on.
    ///
    /// # Safety
    /// They are one thread's.
    #[allow(clippy::mut_from_ref)] // the results are memory of others
    unsafe fn slices(&self, i: usize, count: usize) -> (SmallVec<[&[u8]; 4]>, SmallVec<[&mut [u8]; 4]>) {
        // SAFETY: the plan's verification has compared sizes with the routine's; no result overlaps
        // an operand, and by the contract these have no other user.
        unsafe {
            let ins = self.from.iter().zip(self.ins);
            let outs = self.to.iter().zip(self.outs);
            (
                ins.map(|(p, n)| std::slice::from_raw_parts(Self::part(p, *n, i).cast_const(), n * count)).collect(),
                outs.map(|(p, n)| std::slice::from_raw_parts_mut(Self::part(p, *n, i), n * count)).collect(),
            )
        }
    }
    fn uncancelled(&self) -> Res<()> {
        if self.cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
    /// # Safety
    /// The range is one thread's.
    unsafe fn in_lanes<R: RealLanes>(
        &self,
        range: Range<usize>,
        many: Option<RunLanes<R>>,
        one: RunLanes<f64>,
    ) -> Res<()> {
        // allocated once to test for it: a vector that cannot be allocated ends the process
        drop(room::<u8>(self.memory.saturating_mul(if many.is_some() { R::LANES } else { 1 }))?);
        let (mut lanes, mut lane) = (LaneWorkspace::<R>::default(), LaneWorkspace::<f64>::default());
        let mut i = range.start;
        while i < range.end {
            self.uncancelled()?;
            let left = range.end - i;
            let count = if many.is_some() && left >= self.min_batch { left.min(R::LANES) } else { 1 };
            // SAFETY: by the contract.
            let (ins, mut outs) = unsafe { self.slices(i, count) };
            match many {
                Some(many) if count > 1 => many(self.l, &mut lanes, count, &ins, &mut outs),
                _ => one(self.l, &mut lane, 1, &ins, &mut outs),
            }
            i += count;
        }
        Ok(())
    }
    /// # Safety
    /// The range is one thread's.
    unsafe fn one_by_one(
        &self,
        range: Range<usize>,
        blocked: Option<&BlockedDecomposition>,
        parallel: bool,
    ) -> Res<()> {
        let block = blocked.map(|b| Block::new(b.bytes())).transpose()?;
        if let Some(blocked) = blocked {
            // the packing of products takes less than that, and is allocated without a test
            drop(room::<u8>(blocked.bytes())?);
        }
        let mut work = None;
        for i in range {
            self.uncancelled()?;
            if let (Some(blocked), Some(block)) = (blocked, &block) {
                let part = |(p, n): (&SharedPtr, &usize)| Self::part(p, *n, i);
                let ins: SmallVec<[*const u8; 4]> =
                    self.from.iter().zip(self.ins).map(part).map(|p| p.cast_const()).collect();
                let outs: SmallVec<[*mut u8; 4]> = self.to.iter().zip(self.outs).map(part).collect();
                // SAFETY: as in `slices`; arrays are aligned to more than their elements.
                if unsafe { blocked.run(self.l, block, &ins, &outs, parallel, self.cancel) }? {
                    continue;
                }
            }
            let work = match &mut work {
                Some(work) => work,
                None => {
                    // as in `in_lanes`
                    drop(room::<u8>(self.memory)?);
                    work.insert(Workspace::default())
                }
            };
            // SAFETY: by the contract.
            let (ins, mut outs) = unsafe { self.slices(i, 1) };
            self.l.run(work, &ins, &mut outs);
        }
        Ok(())
    }
}

/// Who decomposes a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinalgStrategy {
    /// By blocks, on several threads where that pays: [`blocked`].
    Blocked,
    /// The reference implementation in the SIMD lanes of a vector: one matrix of the batch in each, or one alone.
    Lanes { several: bool },
    /// The reference implementation, element by element.
    Reference,
}
/// The strategy for a batch of matrices of this kind and size. Between lanes and reference it changes no bits.
pub fn pick(l: &Linalg, t: &LinalgTuning) -> LinalgStrategy {
    if blocked::takes(l, t) {
        return LinalgStrategy::Blocked;
    }
    if !l.has_lanes() || cfg!(not(feature = "blocked")) {
        return LinalgStrategy::Reference;
    }
    let most = l.operands().into_iter().chain(l.results()).map(|(_, n)| n).max().unwrap_or(0);
    let small = match l.kind {
        Decomposition::Cholesky => l.n <= t.max_cholesky_in_lanes,
        Decomposition::Lu => l.n <= t.max_lu_in_lanes,
        Decomposition::Solve(s) => !s.left || l.n <= t.max_left_system_in_lanes,
        _ => true,
    };
    LinalgStrategy::Lanes { several: l.batch >= t.min_batch && most <= t.max_elements_in_lanes && small }
}

/// How a batch of matrices of one size is decomposed.
pub struct CompiledLinalg {
    l: Linalg,
    strategy: LinalgStrategy,
    tier: Tier,
    /// Bytes of one matrix of each operand and result.
    ins: Vec<usize>,
    outs: Vec<usize>,
    /// Working memory of one matrix.
    memory: usize,
    min_batch: usize,
    /// Matrices that stay in one range, for lanes without a matrix cost as much as others.
    each: usize,
    blocked: Option<BlockedDecomposition>,
    cost: Cost,
}
impl CompiledLinalg {
    pub fn new(l: &Linalg, tier: Tier, tuning: &LinalgTuning) -> CompiledLinalg {
        let l = l.clone();
        let bytes = |(e, n): (Entries, usize)| {
            let (dtype, each) = l.layout(e);
            dtype.size() * each * n
        };
        let ins: Vec<usize> = l.operands().into_iter().map(bytes).collect();
        let outs: Vec<usize> = l.results().into_iter().map(bytes).collect();
        let strategy = pick(&l, tuning);
        CompiledLinalg {
            strategy,
            tier,
            // working memory is doubles, a few times as many as operands and results have elements
            memory: (ins.iter().sum::<usize>() + outs.iter().sum::<usize>()).saturating_mul(6 * 8 / l.dtype.size()),
            min_batch: tuning.min_batch,
            each: if matches!(strategy, LinalgStrategy::Lanes { several: true }) { lanes::count(tier) } else { 1 },
            blocked: if strategy == LinalgStrategy::Blocked { blocked::of(&l, tier) } else { None },
            cost: Cost::of(l.operations() as f64 * l.batch as f64 * NANOS),
            ins,
            outs,
            l,
        }
    }
    /// Decomposes the batch; `parallel` allows it to use other threads.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no working memory, `Cancelled` where the run was.
    ///
    /// # Safety
    /// Operands and results are as many as the batch has, as large as it states, and aligned; no result overlaps anything, and nothing else uses them.
    pub unsafe fn run(&self, from: &[SharedPtr], to: &[SharedPtr], parallel: bool, cancel: &AtomicBool) -> Res<()> {
        let matrices = MatrixBatch {
            l: &self.l,
            from,
            to,
            ins: &self.ins,
            outs: &self.outs,
            memory: self.memory,
            min_batch: self.min_batch,
            cancel,
        };
        let (batch, each) = (self.l.batch, self.each);
        threads::try_ranges(batch.div_ceil(each), parallel.then_some(&self.cost), cancel, &|range| {
            // SAFETY: ranges are disjoint, and each belongs to one thread.
            unsafe { self.range(&matrices, range.start * each..(range.end * each).min(batch), parallel) }
        })
    }
    /// The strategy and its parameters, on one line. It does not depend on how many threads there are.
    pub fn text(&self) -> String {
        let strategy = match self.strategy {
            LinalgStrategy::Blocked => "blocked".to_string(),
            LinalgStrategy::Lanes { several: true } => format!("lanes matrices={}", self.each),
            LinalgStrategy::Lanes { several: false } => "lanes matrices=1".into(),
            LinalgStrategy::Reference => "reference".into(),
        };
        format!("linalg strategy={strategy}")
    }
    /// # Safety
    /// The range is one thread's.
    unsafe fn range(&self, matrices: &MatrixBatch, range: Range<usize>, parallel: bool) -> Res<()> {
        let LinalgStrategy::Lanes { several } = self.strategy else {
            // SAFETY: by the contract.
            return unsafe { matrices.one_by_one(range, self.blocked.as_ref(), parallel) };
        };
        let one = lanes::one(self.tier);
        let _ = several; // of no use where there are no vectors
        // SAFETY: by the contract.
        unsafe {
            #[cfg(all(target_arch = "x86_64", feature = "blocked"))]
            match self.tier {
                Tier::Avx512 => {
                    return matrices.in_lanes(range, several.then_some(lanes::x86::eight as RunLanes<_>), one);
                }
                Tier::Avx2 => {
                    return matrices.in_lanes(range, several.then_some(lanes::x86::four as RunLanes<_>), one);
                }
                Tier::Portable => (),
            }
            matrices.in_lanes::<f64>(range, None, one)
        }
    }
}
