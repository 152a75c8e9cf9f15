//! `Linalg`: matrices one by one, several at once where threads are worth it: small ones as the waist's text has it, others by [`large`].
//!
//! Each range of a batch has one [`Workspace`], or one block, so that the second matrix of it takes no memory.
//!
//! INVARIANT: a small matrix is one thread's, and so is each block of a large one: bits do not depend on how many there are.
#![allow(unsafe_code)]
#[cfg(feature = "faer")]
mod large;
#[cfg(not(feature = "faer"))]
#[path = "linalg/without_library.rs"]
mod large;

use super::Run;
use super::walk::SharedPtr;
use crate::kernels::Bases;
use crate::memory::Block;
use crate::threads;
use ferrax_kernel::error::room;
use ferrax_kernel::linalg::{Entries, Linalg, Workspace};
use ferrax_kernel::{Error, Res};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

/// Nanoseconds an operation takes.
pub const NANOS: f64 = 0.8;

pub fn compile(l: &Linalg) -> Res<Run> {
    let l = l.clone();
    let bytes = |(e, n): (Entries, usize)| {
        let (dtype, each) = l.layout(e);
        dtype.size() * each * n
    };
    let ins: Vec<usize> = l.operands().into_iter().map(bytes).collect();
    let outs: Vec<usize> = l.results().into_iter().map(bytes).collect();
    // working memory is doubles, a few times as many as operands and results have elements
    let memory = (ins.iter().sum::<usize>() + outs.iter().sum::<usize>()).saturating_mul(6 * 8 / l.dtype.size());
    let nanos = l.operations() as f64 * l.batch as f64 * NANOS;
    let large = large::pick(&l);
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        let from: Vec<SharedPtr> = (0..ins.len()).map(|k| SharedPtr(bases.input(k as u32))).collect();
        let to: Vec<SharedPtr> = (0..outs.len()).map(|k| SharedPtr(bases.output(k as u32))).collect();
        threads::try_ranges(l.batch, if parallel { nanos } else { 0.0 }, bases.cancel, &|range| {
            let block = large.as_ref().map(|large| Block::new(large.bytes())).transpose()?;
            if let Some(large) = &large {
                // what products pack is less than that, and taken unasked
                drop(room::<u8>(large.bytes())?);
            }
            let mut work = None;
            for i in range {
                if bases.cancel.load(Ordering::Relaxed) {
                    return Err(Error::Cancelled);
                }
                let part = |(p, n): (&SharedPtr, &usize)| {
                    let p = if *n == 0 { std::ptr::NonNull::dangling().as_ptr() } else { p.get().wrapping_add(i * n) };
                    (p, *n)
                };
                if let (Some(large), Some(block)) = (&large, &block) {
                    let ins: SmallVec<[*const u8; 4]> =
                        from.iter().zip(&ins).map(part).map(|(p, _)| p.cast_const()).collect();
                    let outs: SmallVec<[*mut u8; 4]> = to.iter().zip(&outs).map(part).map(|(p, _)| p).collect();
                    // SAFETY: as below; arrays are aligned to more than their elements.
                    if unsafe { large.run(&l, block, &ins, &outs, parallel, bases.cancel) }? {
                        continue;
                    }
                }
                // asked for before it is taken: a vector that finds none ends the process
                let work = match &mut work {
                    Some(work) => work,
                    None => {
                        drop(room::<u8>(memory)?);
                        work.insert(Workspace::default())
                    }
                };
                // SAFETY: matrix i of every operand and result, whose sizes the plan's verification has compared with the routine's; each is
                // one range's, and no result lies where an operand does.
                unsafe {
                    let ins: SmallVec<[&[u8]; 4]> = from
                        .iter()
                        .zip(&ins)
                        .map(part)
                        .map(|(p, n)| std::slice::from_raw_parts(p.cast_const(), n))
                        .collect();
                    let mut outs: SmallVec<[&mut [u8]; 4]> =
                        to.iter().zip(&outs).map(part).map(|(p, n)| std::slice::from_raw_parts_mut(p, n)).collect();
                    l.run(work, &ins, &mut outs);
                }
            }
            Ok(())
        })
    }))
}
