//! QR of large matrices: real ones by Ferrax's own row kernels, others by `faer`, whose blocks of reflections are also used for singular values.
//!
//! INVARIANT: as in [`super`]; matrices whose elements are far from 1 are scaled by a power of two first.
#![allow(unsafe_code)]
use super::{At, NARROW, Number, Portions, Task, WIDE, lead, reflections, transpose};
use crate::householder::{Sequence, row_of};
use crate::householder_qr::{self, ByColumns};
use crate::matrix_vector::{RowElement, RowOperations};
use faer::dyn_stack::MemStack;
use faer::linalg::householder;
use faer::linalg::qr::no_pivoting::factor as faer_qr;
use faer::{Conj, Par};
use ferrax_host::threads::SharedPtr;
use ferrax_kernel::Res;
use ferrax_kernel::linalg::{Decomposition, Linalg};
use std::ops::Range;

/// Elements of working memory for real matrices in rows: columns, reflections' vectors, columns of
/// q, and transposed blocks.
pub fn elements<T: RowElement>(l: &Linalg) -> usize {
    QrSizes::of::<T>(l).parts.into_iter().map(|n| n + 64 / size_of::<T>()).sum()
}
struct QrSizes {
    lead: usize,
    least: usize,
    parts: [usize; 5],
}
impl QrSizes {
    fn of<T: RowElement>(l: &Linalg) -> QrSizes {
        let (least, lead) = (l.m.min(l.n), row_of::<T>(l.m));
        let inner = match l.kind {
            Decomposition::Qr { full: true, .. } => l.m,
            Decomposition::Qr { .. } => least,
            _ => 0,
        };
        let [transposed, triangles] = Sequence::<T>::memory(least, l.m);
        QrSizes { lead, least, parts: [l.n * lead, least * lead, inner * lead, transposed, triangles] }
    }
}
/// The result of the reduction in rows: columns of the triangle, the reflections, and memory for q.
struct InRows<T> {
    a: *mut T,
    all: Sequence<T>,
    taus: Vec<f64>,
    q: *mut T,
    scale: f64,
    ops: RowOperations<T>,
}

/// The columns of each group of them.
fn blocks(least: usize) -> impl DoubleEndedIterator<Item = Range<usize>> {
    let width = reflections(least);
    (0..least).step_by(width).map(move |k| k..(k + width).min(least))
}
/// Bytes that `w` reflections take to go over [`WIDE`] columns.
fn reflecting<T: Number>(m: usize, w: usize) -> usize {
    householder::apply_block_householder_on_the_left_in_place_scratch::<T>(m, w, WIDE).unaligned_bytes_required() + 64
}
/// A matrix times a power of two, reduced by reflections: their vectors below the diagonal of `a`,
/// the factors of their groups in `h`; and the rest of the working memory.
pub struct Reflected<T> {
    pub(super) a: At<T>,
    pub(super) h: At<T>,
    pub(super) scale: f64,
    pub(super) parts: Portions,
}

impl Task<'_> {
    /// The operand in rows, reduced; `None` on a machine without fused multiply-add, or `None` within it if elements are not finite.
    fn reduced_in_rows<T: RowElement + Number>(&self) -> Res<Option<Option<InRows<T>>>> {
        let Some(ops) = T::operations(self.tier) else { return Ok(None) };
        let (m, n) = (self.of.m, self.of.n);
        let Some(scale) = self.scale::<T>([m, n], |_| 0..n) else { return Ok(Some(None)) };
        let QrSizes { lead, least, parts } = QrSizes::of::<T>(self.of);
        let mut memory = self.parts();
        let [a, vectors, q, by_columns, triangles] = parts.map(|n| memory.take::<T>(n));
        let (from, to) = (SharedPtr(self.ins[0].cast_mut()), SharedPtr(a.cast()));
        self.pieces(n, NARROW, m * n * 16, 0, &|r, _| {
            // SAFETY: columns of this piece; the operand has m rows of n.
            unsafe {
                let (from, to) = (from.get().cast::<T>().add(r.start), to.get().cast::<T>().add(r.start * lead));
                transpose(from.cast_const(), n, [m, r.len()], to, lead, |x| x.scaled(scale));
                (0..r.len())
                    .for_each(|j| std::slice::from_raw_parts_mut(to.add(j * lead + m), lead - m).fill(T::of(0.0)));
            }
        })?;
        let mut taus = vec![0.0; least];
        let to = taus.as_mut_ptr();
        let all = Sequence { vectors, lead, count: least, n: m, from: 0, taus: to, transposed: by_columns, triangles };
        // SAFETY: this task's memory, as large as was taken.
        unsafe { householder_qr::reduce(&ByColumns { a, columns: n, all, vectors, taus: to }, &ops, self.workers())? };
        Ok(Some(Some(InRows { a, all, taus, q, scale, ops })))
    }
    /// The triangle, of that many rows, in a result of `n` columns.
    fn put_triangle<T: RowElement + Number>(&self, x: &InRows<T>, rows: usize, to: *mut T) -> Res<()> {
        let n = self.of.n;
        self.put_columns(x.a, x.all.lead, &(0..n).collect::<Vec<_>>(), rows, to)?;
        if x.scale != 1.0 {
            for i in 0..rows.min(n) {
                // SAFETY: elements of the result from the diagonal on.
                let row = unsafe { std::slice::from_raw_parts_mut(to.add(i * n + i), n - i) };
                row.iter_mut().for_each(|r| *r = r.scaled(1.0 / x.scale));
            }
        }
        Ok(())
    }
    fn geqrf_in_rows<T: RowElement + Number>(&self) -> Res<Option<bool>> {
        let Some(reduced) = self.reduced_in_rows::<T>()? else { return Ok(None) };
        let Some(x) = reduced else { return Ok(Some(false)) };
        let (m, lead) = (self.of.m, x.all.lead);
        for (j, tau) in x.taus.iter().enumerate() {
            // SAFETY: below the diagonal of a column, and of a vector; as many coefficients as reflections.
            unsafe {
                let (from, to) = (x.all.vectors.add(j * lead + j + 1), x.a.add(j * lead + j + 1));
                to.copy_from_nonoverlapping(from, m - j - 1);
                *self.output::<T>(1).add(j) = T::of(*tau);
            }
        }
        self.put_triangle(&x, m, self.output::<T>(0))?;
        Ok(Some(true))
    }
    fn qr_in_rows<T: RowElement + Number>(&self, full: bool) -> Res<Option<bool>> {
        let Some(reduced) = self.reduced_in_rows::<T>()? else { return Ok(None) };
        let Some(x) = reduced else { return Ok(Some(false)) };
        let (m, lead) = (self.of.m, x.all.lead);
        let inner = if full { m } else { m.min(self.of.n) };
        // SAFETY: columns of q, which this task has memory for.
        unsafe {
            std::slice::from_raw_parts_mut(x.q, inner * lead).fill(T::of(0.0));
            (0..inner).for_each(|j| *x.q.add(j * lead + j) = T::of(1.0));
            x.all.apply_to_rows(&x.ops, x.q, lead, inner, true, self.workers())?;
        }
        self.put_columns(x.q, lead, &(0..inner).collect::<Vec<_>>(), m, self.output::<T>(0))?;
        self.put_triangle(&x, inner, self.output::<T>(1))?;
        Ok(Some(true))
    }
    /// The operand (or its adjoint) in columns, near 1, reduced by reflections; if its columns are independent.
    pub(super) fn reduced<T: Number>(&self, adjoint: bool) -> Res<Option<Reflected<T>>> {
        let (rows, columns) = (self.of.m, self.of.n);
        let (m, n) = if adjoint { (columns, rows) } else { (rows, columns) };
        let least = m.min(n);
        let Some(scale) = self.scale::<T>([m, n], |_| 0..n) else { return Ok(None) };
        let (width, lead) = (reflections(least), lead::<T>(m));
        let mut parts = self.parts();
        let (p, h) = (parts.take::<T>(n * lead), parts.take::<T>(width * least));
        // SAFETY: the operand has m rows of n, or n rows of m, and there is room for n columns of m.
        unsafe {
            let from = self.input::<T>(0);
            match adjoint {
                true => {
                    (0..n * m).for_each(|i| *p.add(i / m * lead + i % m) = (*from.add(i)).scaled(scale).conjugated())
                }
                false => transpose(from, n, [m, n], p, lead, |x| x.scaled(scale)),
            }
        }
        let (a, h) = (At::new(p, 1, lead), At::new(h, 1, width));
        let (at, left) = (parts.at, parts.left);
        let stack = parts.stack();
        for b in blocks(least) {
            let w = b.len();
            // SAFETY: of this task's memory.
            let done = unsafe {
                let (panel, factor) = (a.block(b.start..m, b.clone()), h.block(0..w, b.clone()));
                faer_qr::qr_in_place(panel, factor, Par::Seq, stack, Default::default())
            };
            if done.rank < w {
                return Ok(None);
            }
            let rest = n - b.end;
            self.wide(rest, 2 * rest * (m - b.start) * w, reflecting::<T>(m, w), &|r, p| {
                // SAFETY: columns of this piece; nothing writes the operands meanwhile; scratch
                // memory of that many bytes.
                unsafe {
                    let columns = a.block(b.start..m, b.end + r.start..b.end + r.end);
                    let (v, t) = (a.read(b.start..m, b.clone()), h.read(0..w, b.clone()));
                    let bytes = std::slice::from_raw_parts_mut(p.cast(), reflecting::<T>(m, w));
                    householder::apply_block_householder_transpose_on_the_left_in_place_with_conj(
                        v,
                        t,
                        Conj::Yes,
                        columns,
                        Par::Seq,
                        MemStack::new(bytes),
                    );
                }
            })?;
        }
        Ok(Some(Reflected { a, h, scale, parts: Portions { at, left } }))
    }
    /// Multiplies q, of m rows and `columns` columns, by `least` reflections (a, h) in place. Where
    /// q is zero before the first row that a group changes (in an identity, or above a triangle),
    /// those parts are skipped.
    pub(super) fn reflect<T: Number>(
        &self,
        m: usize,
        columns: usize,
        least: usize,
        triangular: bool,
        [a, h, q]: [At<T>; 3],
    ) -> Res<()> {
        for b in blocks(least).rev() {
            let (w, first) = (b.len(), if triangular { b.start } else { 0 });
            let rest = columns - first;
            self.wide(rest, 2 * rest * (m - b.start) * w, reflecting::<T>(m, w), &|r, p| {
                // SAFETY: as of `reduced`.
                unsafe {
                    let columns = q.block(b.start..m, first + r.start..first + r.end);
                    let (v, t) = (a.read(b.start..m, b.clone()), h.read(0..w, b.clone()));
                    let bytes = std::slice::from_raw_parts_mut(p.cast(), reflecting::<T>(m, w));
                    householder::apply_block_householder_on_the_left_in_place_with_conj(
                        v,
                        t,
                        Conj::No,
                        columns,
                        Par::Seq,
                        MemStack::new(bytes),
                    );
                }
            })?;
        }
        Ok(())
    }
    pub(super) fn geqrf<T: Number>(&self) -> Res<bool> {
        let ours = if T::SINGLE { self.geqrf_in_rows::<f32>()? } else { self.geqrf_in_rows::<f64>()? };
        if let Some(done) = ours {
            return Ok(done);
        }
        let (m, n) = (self.of.m, self.of.n);
        let Some(Reflected { a, h, scale, .. }) = self.reduced::<T>(false)? else { return Ok(false) };
        let width = reflections(m.min(n));
        // SAFETY: results: m rows of n, and as many coefficients as there are reflections, whose reciprocals lie on the diagonals of h.
        unsafe {
            let (packed, taus) = (self.output::<T>(0), self.output::<T>(1));
            transpose(a.ptr(0, 0), lead::<T>(m), [n, m], packed, n, |x| x);
            for i in 0..m.min(n) {
                for j in i..n {
                    let x = packed.add(i * n + j);
                    *x = (*x).scaled(1.0 / scale);
                }
                *taus.add(i) = T::of(1.0 / (*h.ptr(i % width, i)).parts().0);
            }
        }
        Ok(true)
    }
    pub(super) fn qr<T: Number>(&self, full: bool) -> Res<bool> {
        let ours = if T::SINGLE { self.qr_in_rows::<f32>(full)? } else { self.qr_in_rows::<f64>(full)? };
        if let Some(done) = ours {
            return Ok(done);
        }
        let (m, n) = (self.of.m, self.of.n);
        let least = m.min(n);
        let Some(Reflected { a, h, scale, mut parts }) = self.reduced::<T>(false)? else { return Ok(false) };
        let (inner, lead) = (if full { m } else { least }, lead::<T>(m));
        let q = At::new(parts.take::<T>(inner * lead), 1, lead);
        for j in 0..inner {
            for i in 0..m {
                // SAFETY: an element of this task's memory.
                unsafe { *q.ptr(i, j) = T::of((i == j) as u8 as f64) };
            }
        }
        self.reflect(m, inner, least, true, [a, h, q])?;
        // SAFETY: results: m rows of q, and as many of r as q has columns.
        unsafe {
            transpose(q.ptr(0, 0), lead, [inner, m], self.output::<T>(0), inner, |x| x);
            let r = self.output::<T>(1);
            for i in 0..inner {
                for j in 0..n {
                    *r.add(i * n + j) = if j < i { T::of(0.0) } else { (*a.ptr(i, j)).scaled(1.0 / scale) };
                }
            }
        }
        Ok(true)
    }
}
