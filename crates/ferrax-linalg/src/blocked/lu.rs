//! LU factors with row exchanges: of real matrices by Ferrax's own row kernels, written directly into the result; of complex ones by `faer`.
//!
//! INVARIANT: as in [`super`].
#![allow(unsafe_code)]
use super::{At, Number, PANEL, Task, lead, transpose};
use crate::householder::row_of;
use crate::matrix_vector::RowElement;
use crate::partial_pivoting::{self, Columns, eliminate};
use crate::triangular_solve::{self, System};
use faer::linalg::lu::partial_pivoting::factor as faer_lu;
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve as triangular;
use faer::prelude::ReborrowMut;
use faer::{Accum, Par};
use ferrax_host::panel::Matrices;
use ferrax_host::scratch::Scratch;
use ferrax_host::threads::SharedPtr;
use ferrax_kernel::Res;
use ferrax_kernel::linalg::Linalg;
use std::ops::Range;

/// Elements of working memory.
pub fn elements<T: RowElement>(l: &Linalg) -> usize {
    partial_pivoting::PANEL * row_of::<T>(l.m) + l.m.min(l.n) * 4 / size_of::<T>() + 128
}

impl Task<'_> {
    pub(super) fn lu<T: Number>(&self) -> Res<bool> {
        let (m, n) = (self.of.m, self.of.n);
        if self.scale::<T>([m, n], |_| 0..n).is_none() {
            return Ok(false);
        }
        let ours = match (self.of.complex, T::SINGLE) {
            (true, _) => None,
            (_, true) => self.lu_in_rows::<f32>()?,
            (_, false) => self.lu_in_rows::<f64>()?,
        };
        let done = match ours {
            Some(done) => done,
            None => self.lu_by_library::<T>()?,
        };
        if done {
            // SAFETY: results: indices of exchanges, and of rows.
            unsafe {
                let pivots = std::slice::from_raw_parts(self.output::<u32>(1).cast_const(), m.min(n));
                let order = std::slice::from_raw_parts_mut(self.output::<u32>(2), m);
                (0..m).for_each(|i| order[i] = i as u32);
                pivots.iter().enumerate().for_each(|(i, p)| order.swap(i, *p as usize));
            }
        }
        Ok(done)
    }
    /// `None` on a machine without fused multiply-add.
    fn lu_in_rows<T: RowElement + Number>(&self) -> Res<Option<bool>> {
        const PANEL: usize = partial_pivoting::PANEL;
        let ops = T::operations(self.tier).zip(triangular_solve::pick(size_of::<T>(), self.tier));
        let Some((ops, (solve, product))) = ops else { return Ok(None) };
        let (m, n) = (self.of.m, self.of.n);
        let (least, lead) = (m.min(n), row_of::<T>(m));
        let mut parts = self.parts();
        let (columns, out) = (parts.take::<T>(PANEL * lead), self.output::<T>(0));
        // SAFETY: m * n elements each, which do not overlap; as many indices as there are pivots;
        // rows of this task's memory.
        let pivots = unsafe {
            out.copy_from_nonoverlapping(self.input::<T>(0), m * n);
            std::slice::from_raw_parts_mut(columns, PANEL * lead).fill(T::default());
            std::slice::from_raw_parts_mut(self.output::<u32>(1), least)
        };
        let (a, panel) = (At::new(out, n, 1), SharedPtr(columns.cast()));
        for k in (0..least).step_by(PANEL) {
            let (end, width) = ((k + PANEL).min(least), PANEL.min(least - k));
            let own = &mut pivots[k..end];
            // SAFETY: the panel's columns, and as many elements of its rows.
            unsafe {
                transpose(a.ptr(k, k), n, [m - k, width], columns.add(k), lead, |x| x);
                let done = Scratch.with(partial_pivoting::memory(size_of::<T>()), |scratch| {
                    eliminate(&Columns { a: columns, lead, width, from: k, m, scratch }, own, Number::usable, &ops)
                })?;
                if done.is_none() {
                    return Ok(Some(false));
                }
                transpose(columns.add(k), lead, [width, m - k], a.ptr(k, k), n, |x| x);
                for i in 0..width {
                    let below = std::slice::from_raw_parts_mut(columns.add(i * lead + end), m - end);
                    below.iter_mut().for_each(|x| *x = -*x);
                }
            }
            let exchanges = &pivots[k..end];
            let bytes = triangular_solve::memory(width, size_of::<T>());
            self.wide(n - end, (n - end) * (m - k) * width, bytes, &|r, scratch| {
                let columns = end + r.start..end + r.end;
                exchange(a, k, exchanges, columns.clone());
                let (count, top) = (columns.len(), a.ptr(k, columns.start));
                for side in (0..count).step_by(triangular_solve::SIDES) {
                    // SAFETY: columns of this piece; the panel is not written meanwhile.
                    unsafe {
                        solve(&System {
                            a: a.ptr(k, k).cast(),
                            a_strides: [n as isize, 1],
                            n: width,
                            lower: true,
                            unit: true,
                            x: top.wrapping_add(side).cast(),
                            x_strides: [n as isize, 1],
                            sides: triangular_solve::SIDES.min(count - side),
                            scratch,
                            product,
                        })
                    }
                }
                if end < m {
                    // SAFETY: as above.
                    unsafe {
                        (ops.product)(&Matrices {
                            a: panel.get().cast::<T>().add(end).cast_const().cast(),
                            b: top.cast_const().cast(),
                            c: a.ptr(end, columns.start).cast(),
                            m: m - end,
                            n: count,
                            k: width,
                            a_strides: [1, lead as isize],
                            b_strides: [n as isize, 1],
                            c_row: n,
                            adds: true,
                            scratch,
                            blocks: std::ptr::null_mut(),
                        })
                    }
                }
            })?;
        }
        // the rest of a panel takes part in the exchanges after it
        let pivots = &pivots[..];
        self.pieces(least, PANEL, least * m, 0, &|r, _| {
            if r.end < least {
                exchange(a, r.end, &pivots[r.end..], r.clone());
            }
        })?;
        Ok(Some(true))
    }
    fn lu_by_library<T: Number>(&self) -> Res<bool> {
        let (m, n) = (self.of.m, self.of.n);
        let least = m.min(n);
        let (mut parts, lead) = (self.parts(), lead::<T>(m));
        let p = parts.take::<T>(n * lead);
        // SAFETY: the operand has m rows of n; the parts have room for as many columns, and for four times m indices.
        let (place, row, pivots) = unsafe {
            transpose(self.input::<T>(0), n, [m, n], p, lead, |x| x);
            let mut indices = || std::slice::from_raw_parts_mut(parts.take::<u32>(m), m);
            (indices(), indices(), indices())
        };
        let (from, to) = (parts.take::<u32>(m), parts.take::<u32>(m));
        let stack = parts.stack();
        let a = At::new(p, 1, lead);
        for k in (0..least).step_by(PANEL) {
            let end = (k + PANEL).min(least);
            let rows = m - k;
            // SAFETY: of this task's memory: the panel, and indices of its rows.
            unsafe {
                let (from, to) = (std::slice::from_raw_parts_mut(from, rows), std::slice::from_raw_parts_mut(to, rows));
                faer_lu::lu_in_place(a.block(k..m, k..end), from, to, Par::Seq, stack, Default::default());
                // the exchanges that, one after the other, bring each row to its place
                (0..rows).for_each(|i| (place[i], row[i]) = (i as u32, i as u32));
                for i in 0..end - k {
                    let at = place[from[i] as usize] as usize;
                    pivots[k + i] = (k + at) as u32;
                    row.swap(i, at);
                    (place[row[i] as usize], place[row[at] as usize]) = (i as u32, at as u32);
                }
            }
            // SAFETY: an element of this task's memory.
            if !(k..end).all(|i| unsafe { *a.ptr(i, i) }.usable()) {
                return Ok(false);
            }
            let exchanges = &pivots[k..end];
            let others = n - (end - k);
            self.wide(others, (n - end) * (m - k) * (end - k), 0, &|r, _| {
                let columns = r.map(|j| if j < k { j } else { j + end - k });
                let right = columns.clone().filter(|j| *j >= end).min().unwrap_or(n);
                let last = columns.clone().max().map_or(right, |j| j + 1).max(right);
                // SAFETY: columns of this piece; the panel is not written meanwhile.
                unsafe {
                    for j in columns {
                        let column = a.ptr(0, j);
                        for (i, p) in exchanges.iter().enumerate() {
                            column.add(k + i).swap(column.add(*p as usize));
                        }
                    }
                    if right < last {
                        let mut top = a.block(k..end, right..last);
                        let square = a.read(k..end, k..end);
                        triangular::solve_unit_lower_triangular_in_place(square, top.rb_mut(), Par::Seq);
                        let below = a.block(end..m, right..last);
                        matmul(below, Accum::Add, a.read(end..m, k..end), top.as_ref(), -T::of(1.0), Par::Seq);
                    }
                }
            })?;
        }
        // SAFETY: results: n columns of m, transposed into m rows of n; indices of exchanges.
        unsafe {
            transpose(p, lead, [n, m], self.output::<T>(0), n, |x| x);
            self.output::<u32>(1).copy_from_nonoverlapping(pivots.as_ptr(), least);
        }
        Ok(true)
    }
}
/// Exchanges rows from the `k`-th on in those columns, which belong to the caller.
fn exchange<T: Number>(a: At<T>, k: usize, with: &[u32], columns: Range<usize>) {
    for (i, p) in with.iter().enumerate() {
        if *p as usize != k + i {
            // SAFETY: columns of two rows of the result.
            unsafe {
                std::ptr::swap_nonoverlapping(
                    a.ptr(k + i, columns.start),
                    a.ptr(*p as usize, columns.start),
                    columns.len(),
                )
            };
        }
    }
}
