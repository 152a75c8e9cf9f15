//! Reduction of general matrices to upper triangular form by reflections, a group of columns at a time.
//!
//! ```text
//! for each 64 columns:   16 at a time:  each one, less what those before change of it;  its reflection;  then the 16 applied to those after them
//!                        then the 64 applied to all columns after them
//! ```
//! Columns are rows of memory, so reflections are applied to them from the right. Schreiber and Van Loan 1989; Golub and Van Loan 5.2.1 and 5.2.3.
//!
//! INVARIANT: as in [`reflections`](super::householder): bits depend on sizes alone.
#![allow(unsafe_code)]
use super::householder::{BATCH, BlockReflector, Sequence, Workers, group_of, reflect};
use super::matrix_vector::{RowBlock, RowElement, RowOperations};
use ferrax_host::panel;
use ferrax_host::scratch::Scratch;
use ferrax_kernel::Res;
use std::ops::Range;

/// Columns that are reduced one by one.
const STRIP: usize = 16;

/// A matrix of `all.n` rows during its reduction: `columns` rows of memory with as many elements,
/// padded with zeros to a whole group, at distance `all.lead`. The reflections are written to `all`
/// and prepared.
#[derive(Clone, Copy)]
pub struct ByColumns<T> {
    pub a: *mut T,
    pub columns: usize,
    pub all: Sequence<T>,
    /// `all.vectors` and `all.taus`, to be written.
    pub vectors: *mut T,
    pub taus: *mut f64,
}
/// The triangle comes in the columns' place, with zeros below.
///
/// # Safety
/// All is as large as stated, and this caller's.
pub unsafe fn reduce<T: RowElement>(x: &ByColumns<T>, ops: &RowOperations<T>, workers: Workers) -> Res<()> {
    let ByColumns { a, columns, all, .. } = x;
    for (g, begin) in (0..all.count).step_by(BATCH).enumerate() {
        let end = (begin + BATCH).min(all.count);
        // SAFETY: by the contract; scratch memory of that many bytes.
        unsafe {
            Scratch.with(memory::<T>(), |scratch| {
                for s in (begin..end).step_by(STRIP) {
                    x.strip(s..(s + STRIP).min(end), begin..end, ops, scratch);
                }
            })?;
            all.prepare_one(g, ops)?;
            if end < *columns {
                all.apply_group(g, ops, a.add(end * all.lead), all.lead, columns - end, workers)?;
            }
        }
    }
    Ok(())
}
/// Bytes that a strip takes.
fn memory<T>() -> usize {
    panel::MEMORY + (2 * BATCH * STRIP + STRIP * STRIP + STRIP) * size_of::<T>()
}

impl<T: RowElement> ByColumns<T> {
    /// Reduces the columns of a strip and applies its reflections to the columns right of it in the
    /// group.
    ///
    /// # Safety
    /// As for [`reduce`]; earlier columns and reflections are done. `scratch` has [`memory`] bytes.
    unsafe fn strip(&self, own: Range<usize>, group: Range<usize>, ops: &RowOperations<T>, scratch: *mut u8) {
        let Sequence { vectors, lead, n, .. } = self.all;
        let (from, whole) = (group_of::<T>(own.start), n.next_multiple_of(T::GROUP));
        // SAFETY: columns, vectors, and parts of the scratch memory.
        unsafe {
            let some = scratch.add(panel::MEMORY).cast::<T>();
            let v = vectors.add(own.start * lead + from);
            let rows = |count: usize| RowBlock { a: v, lead, count, n: whole - from };
            // rows of T'
            let mut t = [[0.0f64; STRIP]; STRIP];
            for (i, j) in own.clone().enumerate() {
                let (x, v) = (self.a.add(j * lead), self.vectors.add(j * lead));
                // less V T' (V' x)
                (ops.dots)(rows(i), x.add(from), some);
                let by: [T; STRIP] = std::array::from_fn(|p| {
                    let products = t[p][..=p].iter().enumerate().map(|(l, t)| t * (*some.add(l)).wide());
                    T::narrow(-products.sum::<f64>())
                });
                (ops.combine)(rows(i), by.as_ptr(), x.add(from));
                // its reflection
                let first = group_of::<T>(group.start);
                std::slice::from_raw_parts_mut(v.add(first), j - first).fill(T::default());
                v.add(j).copy_from_nonoverlapping(x.add(j), whole - j);
                let (beta, tau) = reflect(v, j, n, some, ops);
                std::slice::from_raw_parts_mut(x.add(j), n - j).fill(T::default());
                *x.add(j) = T::narrow(beta);
                *self.taus.add(j) = tau;
                // T[..i, i] = -tau T[..i, ..i] (V' v)
                (ops.dots)(rows(i), v.add(from), some);
                for p in 0..i {
                    let by = -tau * (*some.add(p)).wide();
                    for l in 0..=p {
                        t[i][l] += by * t[p][l];
                    }
                }
                t[i][i] = tau;
            }
            let (k, m) = (own.len(), group.end - own.end);
            if m == 0 {
                return;
            }
            let w = some.add(STRIP);
            let (by, triangle) = (w.add(BATCH * STRIP), w.add(2 * BATCH * STRIP));
            for p in 0..k {
                for q in 0..k {
                    *triangle.add(p * STRIP + q) = T::narrow(-t[q][p]);
                }
            }
            let c = self.a.add(own.end * lead + from);
            let lead_of_v = lead as isize;
            let block = BlockReflector {
                k,
                n: whole - from,
                v: (v, [1, lead_of_v]),
                adjoint: (v, [lead_of_v, 1]),
                negated: (triangle.cast_const(), [STRIP as isize, 1]),
            };
            block.apply((c, lead, m), ([w, by], STRIP), ops.product, scratch);
        }
    }
}
