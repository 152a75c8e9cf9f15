//! Eigenvalues of large real symmetric matrices by Ferrax's own row kernels: reduction to tridiagonal form, divide and conquer, and back-transformation.
//!
//! INVARIANT: as in [`super`]; matrices whose elements are far from 1 are scaled by a power of two first.
#![allow(unsafe_code)]
use super::{Number, Portions, Task};
use crate::eigen_divide_and_conquer;
use crate::householder::{Sequence, row_of};
use crate::matrix_vector::RowElement;
use crate::tridiagonalization::{self, Diagonals, Symmetric};
use crate::vector_merge::Vectors;
use ferrax_host::threads::SharedPtr;
use ferrax_kernel::Res;

/// Elements of working memory.
pub fn elements<T: RowElement>(n: usize) -> usize {
    parts::<T>(n).into_iter().map(|n| n + 64 / size_of::<T>()).sum()
}
/// Sizes of the parts of working memory: the matrix, reflections' vectors, eigenvectors, transposed
/// or small blocks, triangles, and the reduction.
fn parts<T: RowElement>(n: usize) -> [usize; 6] {
    let lead = row_of::<T>(n);
    let square = n.next_multiple_of(T::GROUP) * lead;
    let [transposed, triangles] = Sequence::<T>::memory(n, n);
    [square, square, square, square.max(transposed), triangles, tridiagonalization::memory(lead)]
}

impl Task<'_> {
    /// `None` on a machine without fused multiply-add.
    pub(super) fn eigh_in_rows<T: RowElement + Number>(&self, lower: bool) -> Res<Option<bool>> {
        let n = self.of.n;
        let Some(ops) = T::operations(self.tier) else { return Ok(None) };
        let read = |i: usize| if lower { 0..i + 1 } else { i..n };
        let Some(scale) = self.scale::<T>([n, n], read) else { return Ok(Some(false)) };
        let (lead, whole, workers) = (row_of::<T>(n), n.next_multiple_of(T::GROUP), self.workers());
        let mut memory: Portions = self.parts();
        let [a, vectors, q, small, triangles, work] = parts::<T>(n).map(|n| memory.take::<T>(n));
        // SAFETY: the operand has n rows of n, the matrix as many whole groups, of which the lower
        // triangle is read to the end of groups.
        unsafe {
            let from = self.input::<T>(0);
            for i in 0..whole {
                let end = (i / T::GROUP + 1) * T::GROUP;
                for j in 0..end {
                    let (low, high) = (i.min(j), i.max(j));
                    let at = if lower { high * n + low } else { low * n + high };
                    *a.add(i * lead + j) = if high < n { (*from.add(at)).scaled(scale) } else { T::of(0.0) };
                }
            }
        }
        let (mut d, mut e, mut taus) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        // SAFETY: this task's memory, as large as was taken.
        let order = unsafe {
            let mut diagonals = Diagonals { d: &mut d, e: &mut e, taus: &mut taus };
            tridiagonalization::reduce(&Symmetric { a, lead, n, vectors, work }, &mut diagonals, &ops, workers)?;
            let x = Vectors { q, gathered: a, small, lead };
            let Some(order) = eigen_divide_and_conquer::tridiagonal(&x, &mut d, &e, ops.product, workers)? else {
                return Ok(Some(false));
            };
            if !d.iter().all(|x| x.is_finite()) {
                return Ok(Some(false));
            }
            let taus = taus.as_ptr();
            let reflections = Sequence { vectors, lead, count: n - 1, n, from: 1, taus, transposed: small, triangles };
            reflections.prepare(&ops, workers)?;
            reflections.apply_to_rows(&ops, q, lead, n, false, workers)?;
            order
        };
        self.put_columns(q, lead, &order, n, self.output::<T>(0))?;
        // SAFETY: the result's values.
        (0..n).for_each(|i| unsafe { *self.output::<T>(1).add(i) = T::of(d[i] / scale) });
        Ok(Some(true))
    }
    /// The rows `order` of `from`, of `m` elements, as the columns of `to`.
    pub(super) fn put_columns<T: RowElement>(
        &self,
        from: *const T,
        lead: usize,
        order: &[usize],
        m: usize,
        to: *mut T,
    ) -> Res<()> {
        const SIDE: usize = 16;
        let (from, to, n) = (SharedPtr(from.cast_mut().cast()), SharedPtr(to.cast()), order.len());
        self.workers().pieces(m, 4 * SIDE, (m * n) as f64 * 0.5, 0, &|r, _| {
            let (from, to) = (from.get().cast::<T>(), to.get().cast::<T>());
            for i0 in r.clone().step_by(SIDE) {
                for (at, rows) in order.chunks(SIDE).enumerate() {
                    for i in i0..(i0 + SIDE).min(r.end) {
                        for (k, row) in rows.iter().enumerate() {
                            // SAFETY: elements of both; rows of the result of this piece.
                            unsafe { *to.add(i * n + at * SIDE + k) = *from.add(row * lead + i) };
                        }
                    }
                }
            }
        })
    }
}
