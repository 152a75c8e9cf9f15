//! Eigenvalues and singular values of large matrices: reduction, and divide and conquer, by `faer`; reflections are applied in pieces.
//!
//! INVARIANT: as in [`super`]; matrices whose elements are far from 1 are scaled by a power of two first.
#![allow(unsafe_code)]
use super::qr::Reflected;
use super::{At, NARROW, Number, Task, lead, reflections, transpose};
use crate::tuning::LinalgTuning;
use faer::diag::{DiagMut, DiagRef};
use faer::dyn_stack::MemStack;
use faer::linalg::evd::{self, tridiag};
use faer::linalg::{householder, svd};
use faer::{Auto, Conj, Par, Spec};
use ferrax_kernel::Res;
use ferrax_kernel::linalg::{Decomposition, Linalg};
use std::mem::MaybeUninit;

/// The size up to which eigenvalues and singular values are computed without divide and conquer,
/// which is faster for large matrices. Its roots in single precision are sometimes some hundred
/// roundings off.
fn undivided<T: Number>() -> usize {
    if T::SINGLE { 128 } else { 64 }
}
pub fn eigen_params<T: Number>() -> Spec<evd::SelfAdjointEvdParams, T> {
    let auto = <evd::SelfAdjointEvdParams as Auto<T>>::auto();
    Spec::new(evd::SelfAdjointEvdParams { recursion_threshold: undivided::<T>(), ..auto })
}
pub fn singular_params<T: Number>() -> Spec<svd::SvdParams, T> {
    let auto = <svd::SvdParams as Auto<T>>::auto();
    // its own triangular factor omits columns that nearly depend on others, which costs an error of some hundred roundings of the matrix
    Spec::new(svd::SvdParams { recursion_threshold: undivided::<T>(), qr_ratio_threshold: f64::INFINITY, ..auto })
}
/// Whether the reductions are our own.
pub fn is_in_rows(l: &Linalg) -> bool {
    let least = if matches!(l.kind, Decomposition::Svd { .. }) { 33 } else { 64 };
    !l.complex && l.m.min(l.n) >= least
}
/// Whether to compute a triangular factor first: if one side is much longer. Without vectors our own reductions are faster up to a greater ratio.
pub fn is_long(l: &Linalg) -> bool {
    let (most, least) = (l.m.max(l.n), l.m.min(l.n));
    match l.kind {
        Decomposition::Svd { vectors: false, .. } if is_in_rows(l) => {
            most > LinalgTuning::DEFAULT.max_aspect_of_values * least
        }
        _ => 6 * most > 11 * least,
    }
}

impl Task<'_> {
    pub(super) fn eigh<T: Number>(&self, lower: bool) -> Res<bool> {
        let n = self.of.n;
        if is_in_rows(self.of) {
            let done = if T::SINGLE { self.eigh_in_rows::<f32>(lower) } else { self.eigh_in_rows::<f64>(lower) };
            if let Some(done) = done? {
                return Ok(done);
            }
        }
        let read = |i: usize| if lower { 0..i + 1 } else { i..n };
        let Some(scale) = self.scale::<T>([n, n], read) else { return Ok(false) };
        let (mut parts, lead, width) = (self.parts(), lead::<T>(n), reflections(n));
        let (a, u, h) = (parts.take::<T>(n * lead), parts.take::<T>(n * lead), parts.take::<T>(width * n));
        let (d, e, w) = (parts.take::<T>(n), parts.take::<T>(n), parts.take::<T>(n));
        let stack = parts.stack();
        // SAFETY: the operand's n rows of n become columns; if the upper triangle is meant, they
        // are its conjugated columns already. The diagonals and eigenvalues have n elements each,
        // the coefficients of reflections `width` rows.
        let (a, vectors, h) = unsafe {
            let from = self.input::<T>(0);
            match lower {
                true => transpose(from, n, [n, n], a, lead, |x| x.scaled(scale)),
                false => {
                    (0..n * n).for_each(|i| *a.add(i / n * lead + i % n) = (*from.add(i)).scaled(scale).conjugated())
                }
            }
            (0..n * lead).for_each(|i| *u.add(i) = T::of(0.0));
            (0..width * n).for_each(|i| *h.add(i) = T::of(0.0));
            let (a, u, h) = (At::new(a, 1, lead), At::new(u, 1, lead), At::new(h, 1, width));
            let reduced = (a.block(0..n, 0..n), h.block(0..width, 0..n - 1));
            tridiag::tridiag_in_place(reduced.0, reduced.1, Par::Seq, stack, Default::default());
            (0..n).for_each(|i| *d.add(i) = *a.ptr(i, i));
            (0..n - 1).for_each(|i| *e.add(i) = *a.ptr(i + 1, i));
            *e.add(n - 1) = T::of(0.0);
            (0..n).for_each(|i| *w.add(i) = T::of(0.0));
            let diagonals = (DiagRef::from_raw_parts(d, n, 1), DiagRef::from_raw_parts(e, n, 1));
            let (values, vectors) = (DiagMut::from_raw_parts_mut(w, n, 1), u.block(0..n, 0..n));
            let (d, e) = diagonals;
            let done = evd::tridiagonal_self_adjoint_evd(d, e, values, Some(vectors), Par::Seq, stack, eigen_params());
            if done.is_err() || !(0..n).all(|i| (*w.add(i)).parts().0.is_finite()) {
                return Ok(false);
            }
            (a, u, h)
        };
        let scratch = householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(n, width, NARROW)
            .unaligned_bytes_required()
            + 64;
        self.pieces(n, NARROW, 2 * n * n * n, scratch, &|r, p| {
            // SAFETY: columns of this piece and scratch memory of that many bytes; nothing writes
            // the operands meanwhile.
            unsafe {
                let stack = MemStack::new(std::slice::from_raw_parts_mut(p.cast::<MaybeUninit<u8>>(), scratch));
                let (v, t) = (a.read(1..n, 0..n - 1), h.read(0..width, 0..n - 1));
                let columns = vectors.block(1..n, r);
                householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
                    v,
                    t,
                    Conj::No,
                    columns,
                    Par::Seq,
                    stack,
                );
            }
        })?;
        // SAFETY: the result's vectors are rows of the same array, transposed, and it has n values.
        unsafe {
            transpose(vectors.ptr(0, 0), lead, [n, n], self.output::<T>(0), n, |x| x);
            (0..n).for_each(|i| (*w.add(i)).scaled(1.0 / scale).put_real(self.outs[1], i));
        }
        Ok(true)
    }

    /// The decomposition of the triangular factor, whose left vectors are then multiplied by q; of the adjoint if that has more rows. `None` if columns
    /// depend on others.
    fn long_svd<T: Number>(&self, full: bool, vectors: bool) -> Res<bool> {
        let (wide, least, most) = (self.of.n > self.of.m, self.of.m.min(self.of.n), self.of.m.max(self.of.n));
        let Some(Reflected { a, h, scale, mut parts }) = self.reduced::<T>(wide)? else { return Ok(false) };
        let columns = if full && vectors { most } else { least };
        let (high, low) = (lead::<T>(most), lead::<T>(least));
        let (u, d) = (parts.take::<T>(columns * high), parts.take::<T>(least));
        let (r, v) = (parts.take::<T>(least * low), parts.take::<T>(least * low));
        let (q, r, v) = (At::new(u, 1, high), At::new(r, 1, low), At::new(v, 1, low));
        // SAFETY: of this task's memory, as large as was taken.
        unsafe {
            for j in 0..least {
                (0..least).for_each(|i| *r.ptr(i, j) = if i > j { T::of(0.0) } else { *a.ptr(i, j) });
                (0..least).for_each(|i| *v.ptr(i, j) = T::of(0.0));
                *d.add(j) = T::of(0.0);
            }
            for j in 0..columns {
                (0..most).for_each(|i| *q.ptr(i, j) = T::of((i == j && j >= least) as u8 as f64));
            }
            let values = DiagMut::from_raw_parts_mut(d, least, 1);
            let sides = vectors.then(|| (q.block(0..least, 0..least), v.block(0..least, 0..least)));
            let (left, right) = sides.map_or((None, None), |(u, v)| (Some(u), Some(v)));
            let r = r.read(0..least, 0..least);
            let done = svd::svd(r, values, left, right, Par::Seq, parts.stack(), singular_params());
            if done.is_err() || !(0..least).all(|i| (*d.add(i)).parts().0.is_finite()) {
                return Ok(false);
            }
            (0..least).for_each(|i| (*d.add(i)).scaled(1.0 / scale).put_real(self.outs[0], i));
        }
        if !vectors {
            return Ok(true);
        }
        self.reflect(most, columns, least, false, [a, h, q])?;
        // SAFETY: results: one holds the vectors as rows, the other those of the adjoint.
        unsafe {
            let (left, right) = (self.output::<T>(1), self.output::<T>(2));
            let conjugated = |from: At<T>, rows: usize, columns: usize, to: *mut T| {
                (0..rows * columns).for_each(|i| *to.add(i) = (*from.ptr(i % rows, i / rows)).conjugated());
            };
            match wide {
                true => {
                    transpose(v.ptr(0, 0), low, [least, least], left, least, |x| x);
                    conjugated(q, most, columns, right);
                }
                false => {
                    transpose(q.ptr(0, 0), high, [columns, most], left, columns, |x| x);
                    conjugated(v, least, least, right);
                }
            }
        }
        Ok(true)
    }
    pub(super) fn svd<T: Number>(&self, full: bool, vectors: bool) -> Res<bool> {
        if is_long(self.of) && self.long_svd::<T>(full, vectors)? {
            return Ok(true);
        }
        if is_in_rows(self.of) {
            let done =
                if T::SINGLE { self.svd_in_rows::<f32>(full, vectors) } else { self.svd_in_rows::<f64>(full, vectors) };
            if let Some(done) = done? {
                return Ok(done);
            }
        }
        let (m, n) = (self.of.m, self.of.n);
        let least = m.min(n);
        let Some(scale) = self.scale::<T>([m, n], |_| 0..n) else { return Ok(false) };
        let (mut parts, lead) = (self.parts(), lead::<T>(m));
        let (columns, rows) = if full { (m, n) } else { (least, least) };
        let (a, u, d) = (parts.take::<T>(n * lead), parts.take::<T>(columns * lead), parts.take::<T>(least));
        // SAFETY: the operand's m rows of n become columns; u is transposed into its result, and
        // the columns of v are the rows of its adjoint's, at distance n.
        unsafe {
            transpose(self.input::<T>(0), n, [m, n], a, lead, |x| x.scaled(scale));
            let a = At::new(a, 1, lead).read(0..m, 0..n);
            (0..least).for_each(|i| *d.add(i) = T::of(0.0));
            let values = DiagMut::from_raw_parts_mut(d, least, 1);
            let sides = vectors.then(|| {
                (0..columns * lead).for_each(|i| *u.add(i) = T::of(0.0));
                let v = self.output::<T>(2);
                (0..n * rows).for_each(|i| *v.add(i) = T::of(0.0));
                (At::new(u, 1, lead).block(0..m, 0..columns), At::new(v, 1, n).block(0..n, 0..rows))
            });
            let (left, right) = sides.map_or((None, None), |(u, v)| (Some(u), Some(v)));
            let done = svd::svd(a, values, left, right, Par::Seq, parts.stack(), singular_params());
            if done.is_err() || !(0..least).all(|i| (*d.add(i)).parts().0.is_finite()) {
                return Ok(false);
            }
            (0..least).for_each(|i| (*d.add(i)).scaled(1.0 / scale).put_real(self.outs[0], i));
            if vectors {
                transpose(u, lead, [columns, m], self.output::<T>(1), columns, |x| x);
                let v = self.output::<T>(2);
                (0..n * rows).for_each(|i| *v.add(i) = (*v.add(i)).conjugated());
            }
        }
        Ok(true)
    }
}
