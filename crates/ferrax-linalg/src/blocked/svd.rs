//! Singular values of large real matrices by Ferrax's own row kernels: reduction to bidiagonal form, divide and conquer, and back-transformation.
//!
//! INVARIANT: as in [`super`]; matrices whose elements are far from 1 are scaled by a power of two first.
#![allow(unsafe_code)]
use super::{Number, Task};
use crate::bidiagonalization::{self, General, UpperBidiagonal, row_of_strips, strip_of};
use crate::householder::{Sequence, row_of};
use crate::matrix_vector::RowElement;
use crate::svd_divide_and_conquer;
use crate::vector_merge::Vectors;
use ferrax_host::threads::SharedPtr;
use ferrax_kernel::Res;
use ferrax_kernel::linalg::Linalg;

/// Elements of working memory.
pub fn elements<T: RowElement>(l: &Linalg, full: bool) -> usize {
    Sizes::<T>::of(l, full).parts().into_iter().map(|n| n + 64 / size_of::<T>()).sum()
}
/// Sizes of the matrix or its adjoint, whichever has no more columns than rows.
struct Sizes<T> {
    m: usize,
    n: usize,
    /// Elements of a row of `m`, of `n`, and of either.
    high: usize,
    wide: usize,
    lead: usize,
    /// The number of left vectors to compute.
    columns: usize,
    element: std::marker::PhantomData<T>,
}
impl<T: RowElement> Sizes<T> {
    fn of(l: &Linalg, full: bool) -> Self {
        let (m, n) = (l.m.max(l.n), l.m.min(l.n));
        let (high, wide) = (row_of::<T>(m), row_of_strips::<T>(n));
        let columns = if full { m } else { n };
        Sizes { m, n, high, wide, lead: high.max(wide), columns, element: std::marker::PhantomData }
    }
    /// Sizes of the parts of working memory: the matrix and gathered vectors, the reflections'
    /// vectors on both sides, left and right vectors, transposed or small blocks, triangles, and
    /// the reduction.
    fn parts(&self) -> [usize; 8] {
        let Sizes { m, n, high, wide, lead, columns, .. } = *self;
        let strips = n.next_multiple_of(strip_of::<T>()) * m;
        let [transposed, triangles] = Sequence::<T>::memory(n, m);
        let work = bidiagonalization::memory::<T>(high, wide);
        [strips.max(n * lead), n * high, n * wide, columns * lead, n * lead, transposed.max(n * lead), triangles, work]
    }
}

impl Task<'_> {
    /// `None` on a machine without fused multiply-add.
    pub(super) fn svd_in_rows<T: RowElement + Number>(&self, full: bool, vectors: bool) -> Res<Option<bool>> {
        let Some(ops) = T::operations(self.tier) else { return Ok(None) };
        let of = [self.of.m, self.of.n];
        let Some(scale) = self.scale::<T>(of, |_| 0..of[1]) else { return Ok(Some(false)) };
        let sizes = Sizes::<T>::of(self.of, full);
        let Sizes { m, n, high, wide, lead, columns, .. } = sizes;
        let (adjoint, workers) = (of[0] < of[1], self.workers());
        let mut memory = self.parts();
        let [a, left, right, u, v, small, triangles, work] = sizes.parts().map(|n| memory.take::<T>(n));
        self.put_in_strips(a, adjoint, scale)?;
        let zeros = || vec![0.0f64; n];
        let (mut d, mut e, mut left_taus, mut right_taus, mut values) = (zeros(), zeros(), zeros(), zeros(), zeros());
        // SAFETY: this task's memory, as large as was taken.
        let mut order = unsafe {
            let mut to = UpperBidiagonal { d: &mut d, e: &mut e, left: &mut left_taus, right: &mut right_taus };
            bidiagonalization::reduce(&General { a, m, n, high, wide, left, right, work }, &mut to, &ops, workers)?;
            if !vectors {
                return Ok(Some(self.put_values::<T>(&mut d, &mut e, scale)));
            }
            let [x, y] = [u, v].map(|q| Vectors { q, gathered: a, small, lead });
            let Some(order) = svd_divide_and_conquer::bidiagonal([&x, &y], &d, &e, &mut values, ops.product, workers)?
            else {
                return Ok(Some(false));
            };
            order
        };
        if !values.iter().all(|x| x.is_finite()) {
            return Ok(Some(false));
        }
        order.reverse();
        for (i, k) in order.iter().enumerate() {
            // SAFETY: the result's values.
            unsafe { *self.output::<T>(0).add(i) = T::of(values[*k] / scale) };
        }
        let (transposed, taus) = (small, [left_taus.as_ptr(), right_taus.as_ptr()]);
        // SAFETY: as above; columns that were not in the matrix begin as unit vectors.
        unsafe {
            std::slice::from_raw_parts_mut(u.add(n * lead), (columns - n) * lead).fill(T::of(0.0));
            (n..columns).for_each(|i| *u.add(i * lead + i) = T::of(1.0));
            let of_u =
                Sequence { vectors: left, lead: high, count: n, n: m, from: 0, taus: taus[0], transposed, triangles };
            of_u.prepare(&ops, workers)?;
            of_u.apply_to_rows(&ops, u, lead, columns, false, workers)?;
            let of_v =
                Sequence { vectors: right, lead: wide, count: n - 1, n, from: 1, taus: taus[1], transposed, triangles };
            of_v.prepare(&ops, workers)?;
            of_v.apply_to_rows(&ops, v, lead, n, false, workers)?;
        }
        let all: Vec<usize> = order.iter().copied().chain(n..columns).collect();
        let (in_columns, in_rows) = match adjoint {
            false => ((u, &all, m), (v, &order, n)),
            true => ((v, &order, n), (u, &all, m)),
        };
        self.put_columns(in_columns.0, lead, in_columns.1, in_columns.2, self.output::<T>(1))?;
        for (i, k) in in_rows.1.iter().enumerate() {
            // SAFETY: a row of the result.
            unsafe {
                let (from, to) = (in_rows.0.add(k * lead).cast_const(), self.output::<T>(2).add(i * in_rows.2));
                to.copy_from_nonoverlapping(from, in_rows.2);
            }
        }
        Ok(Some(true))
    }
    /// The values of a bidiagonal matrix alone, from the greatest down, and whether they were found.
    fn put_values<T: RowElement + Number>(&self, d: &mut [f64], e: &mut [f64], scale: f64) -> bool {
        if !svd_divide_and_conquer::values(d, e) || !d.iter().all(|x| x.is_finite()) {
            return false;
        }
        for (i, x) in d.iter().enumerate() {
            // SAFETY: the result's values.
            unsafe { *self.output::<T>(0).add(i) = T::of(x / scale) };
        }
        true
    }
    /// The operand, or its adjoint, in strips of columns.
    fn put_in_strips<T: RowElement + Number>(&self, to: *mut T, adjoint: bool, scale: f64) -> Res<()> {
        let (m, n) = (self.of.m.max(self.of.n), self.of.m.min(self.of.n));
        let (strip, from) = (strip_of::<T>(), SharedPtr(self.ins[0].cast_mut()));
        let to = SharedPtr(to.cast());
        let [down, across] = if adjoint { [1, m] } else { [n, 1] };
        self.workers().pieces(n.div_ceil(strip), 1, (m * n) as f64, 0, &|s, _| {
            let (from, to) = (from.get().cast::<T>(), to.get().cast::<T>().wrapping_add(s.start * strip * m));
            for i in 0..m {
                for j in 0..strip {
                    let column = s.start * strip + j;
                    // SAFETY: elements of the operand, and of this piece's strip.
                    unsafe {
                        *to.add(i * strip + j) = match column < n {
                            true => (*from.add(i * down + column * across)).scaled(scale),
                            false => T::of(0.0),
                        }
                    }
                }
            }
        })
    }
}
