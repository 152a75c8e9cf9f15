//! `Linalg`: matrices one by one or several in lanes, on several threads where these are worth it: small ones as the waist's text has it,
//! others by [`large`].
//!
//! Each range of a batch has its own memory, so that the second matrix of it takes none.
//!
//! INVARIANT: a small matrix is one thread's and one lane's, and each block of a large one a thread's: bits depend neither on how many there
//! are nor on the tier.
#![allow(unsafe_code)]
#[cfg(feature = "linalg")]
mod bidiagonal;
#[cfg(feature = "linalg")]
mod conquer;
#[cfg(feature = "linalg")]
mod elimination;
#[cfg(feature = "linalg")]
mod factor;
#[cfg(feature = "linalg")]
mod large;
#[cfg(not(feature = "linalg"))]
#[path = "linalg/without_library.rs"]
mod large;
#[cfg(feature = "linalg")]
mod merged;
#[cfg(feature = "linalg")]
mod reflections;
#[cfg(feature = "linalg")]
mod rows;
#[cfg(feature = "linalg")]
mod secular;
#[cfg(feature = "linalg")]
mod singular;
#[cfg(feature = "linalg")]
mod substitute;
#[cfg(feature = "linalg")]
mod triangular;
#[cfg(feature = "linalg")]
mod tridiagonal;
mod vectors;

use super::Run;
use super::walk::SharedPtr;
use crate::kernels::Bases;
use crate::memory::Block;
use crate::threads::{self, Cost};
use crate::tier::Tier;
use ferrax_kernel::error::room;
use ferrax_kernel::linalg::lanes::RealLanes;
use ferrax_kernel::linalg::{Decomposition, Entries, LaneWorkspace, Linalg, Workspace};
use ferrax_kernel::{Error, Res};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use vectors::RunLanes;

/// Nanoseconds an operation takes.
pub const NANOS: f64 = 0.8;
/// Where fewer matrices are left, each goes by itself.
const TOGETHER: usize = 3;

/// The matrices of a batch.
struct MatrixBatch<'a> {
    l: &'a Linalg,
    /// Operands and results, and the bytes of one matrix of each.
    from: SmallVec<[SharedPtr; 4]>,
    to: SmallVec<[SharedPtr; 4]>,
    ins: &'a [usize],
    outs: &'a [usize],
    /// Working memory of one.
    memory: usize,
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
    #[allow(clippy::mut_from_ref)] // what is written is others' memory
    unsafe fn slices(&self, i: usize, count: usize) -> (SmallVec<[&[u8]; 4]>, SmallVec<[&mut [u8]; 4]>) {
        // SAFETY: the plan's verification has compared sizes with the routine's; no result lies where an operand does, and by the contract
        // nobody else has these.
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
        // asked for before it is taken: a vector that finds none ends the process
        drop(room::<u8>(self.memory.saturating_mul(if many.is_some() { R::LANES } else { 1 }))?);
        let (mut lanes, mut lane) = (LaneWorkspace::<R>::default(), LaneWorkspace::<f64>::default());
        let mut i = range.start;
        while i < range.end {
            self.uncancelled()?;
            let left = range.end - i;
            let count = if many.is_some() && left >= TOGETHER { left.min(R::LANES) } else { 1 };
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
    unsafe fn one_by_one(&self, range: Range<usize>, large: Option<&large::Large>, parallel: bool) -> Res<()> {
        let block = large.map(|large| Block::new(large.bytes())).transpose()?;
        if let Some(large) = large {
            // what products pack is less than that, and taken unasked
            drop(room::<u8>(large.bytes())?);
        }
        let mut work = None;
        for i in range {
            self.uncancelled()?;
            if let (Some(large), Some(block)) = (large, &block) {
                let part = |(p, n): (&SharedPtr, &usize)| Self::part(p, *n, i);
                let ins: SmallVec<[*const u8; 4]> =
                    self.from.iter().zip(self.ins).map(part).map(|p| p.cast_const()).collect();
                let outs: SmallVec<[*mut u8; 4]> = self.to.iter().zip(self.outs).map(part).collect();
                // SAFETY: as in `slices`; arrays are aligned to more than their elements.
                if unsafe { large.run(self.l, block, &ins, &outs, parallel, self.cancel) }? {
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

/// Whether matrices of this kind and size are quicker in lanes than each by itself, whose rows the compiler makes vectors of. It changes no bits.
fn together(l: &Linalg) -> bool {
    /// Elements with which several matrices still fit into the nearer caches.
    const ELEMENTS: usize = 4096;
    let most = l.operands().into_iter().chain(l.results()).map(|(_, n)| n).max().unwrap_or(0);
    most <= ELEMENTS
        && match l.kind {
            Decomposition::Cholesky => l.n <= 12,
            Decomposition::Lu => l.n <= 32,
            Decomposition::Solve(t) => !t.left || l.n < 8,
            _ => true,
        }
}

pub fn compile(l: &Linalg, tier: Tier) -> Res<Run> {
    let l = l.clone();
    let bytes = |(e, n): (Entries, usize)| {
        let (dtype, each) = l.layout(e);
        dtype.size() * each * n
    };
    let ins: Vec<usize> = l.operands().into_iter().map(bytes).collect();
    let outs: Vec<usize> = l.results().into_iter().map(bytes).collect();
    // working memory is doubles, a few times as many as operands and results have elements
    let memory = (ins.iter().sum::<usize>() + outs.iter().sum::<usize>()).saturating_mul(6 * 8 / l.dtype.size());
    let cost = Cost::of(l.operations() as f64 * l.batch as f64 * NANOS);
    let large = large::pick(&l, tier);
    let in_lanes = large.is_none() && l.has_lanes();
    let several = l.batch >= TOGETHER && together(&l);
    // so many stay in one range, for lanes without a matrix cost as much as others
    let each = if several && in_lanes { vectors::lanes(tier) } else { 1 };
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        let matrices = MatrixBatch {
            l: &l,
            from: (0..ins.len()).map(|k| SharedPtr(bases.input(k as u32))).collect(),
            to: (0..outs.len()).map(|k| SharedPtr(bases.output(k as u32))).collect(),
            ins: &ins,
            outs: &outs,
            memory,
            cancel: bases.cancel,
        };
        threads::try_ranges(l.batch.div_ceil(each), parallel.then_some(&cost), bases.cancel, &|range| {
            let range = range.start * each..(range.end * each).min(l.batch);
            let one = vectors::one(tier);
            let _ = several; // of no use where there are no vectors
            // SAFETY: ranges lie apart, and each is one thread's.
            unsafe {
                #[cfg(all(target_arch = "x86_64", feature = "linalg"))]
                match tier {
                    Tier::Avx512 if in_lanes => {
                        return matrices.in_lanes(range, several.then_some(vectors::x86::eight as RunLanes<_>), one);
                    }
                    Tier::Avx2 if in_lanes => {
                        return matrices.in_lanes(range, several.then_some(vectors::x86::four as RunLanes<_>), one);
                    }
                    _ => (),
                }
                // without vectors the text for one matrix is code enough
                match cfg!(feature = "linalg") && in_lanes {
                    true => matrices.in_lanes::<f64>(range, None, one),
                    false => matrices.one_by_one(range, large.as_ref(), parallel),
                }
            }
        })
    }))
}
