//! Reduction of symmetric matrices to tridiagonal form by reflections, a panel of columns at a time.
//!
//! ```text
//! for each 32 columns:  for each column:  apply the panel's changes;  its reflection v;  w = A v with the panel's changes
//!                       then A -= V W' + W V'  for the rest of the matrix, right of them: a product
//! ```
//! So half of the operations are a matrix product. The other half reads the lower triangle of the matrix once for each column, and uses each element
//! twice. Dongarra, Hammarling and Sorensen 1989 (LAPACK working note 2); Golub and Van Loan 8.3.1.
//!
//! INVARIANT: the sizes alone determine the pieces, whose sums are added in order: bits do not depend on threads.
#![allow(unsafe_code)]
use super::householder::{BATCH, Workers, group_of, reflect};
use super::matrix_vector::{RowBlock, RowElement, RowOperations};
use crate::tuning::LinalgTuning;
use ferrax_host::panel::{self, Matrices};
use ferrax_host::threads::SharedPtr;
use ferrax_kernel::Res;

/// Columns of a panel.
pub const PANEL: usize = 32;
/// Pieces that a product of a large matrix with a vector is cut into.
const PIECES: usize = 4;
/// Rows of one piece of a panel's update.
const ROWS: usize = 64;

/// A matrix during its reduction.
#[derive(Clone, Copy)]
pub struct Symmetric<T> {
    /// `n` rows rounded up to groups, at distance `lead`; the lower triangle is read, with the
    /// whole of each group on the diagonal; zero beyond `n`.
    pub a: *mut T,
    pub lead: usize,
    pub n: usize,
    /// `n` rows: vectors of reflections, as [`Sequence`](super::householder::Sequence) has them, from 1.
    pub vectors: *mut T,
    /// [`memory`] elements, of any content.
    pub work: *mut T,
}
/// Elements of `Symmetric::work`.
pub fn memory(lead: usize) -> usize {
    (5 * PANEL + PIECES) * lead + 2 * PANEL
}

/// The diagonals, and the reflections' taus.
pub struct Diagonals<'a> {
    pub d: &'a mut [f64],
    pub e: &'a mut [f64],
    pub taus: &'a mut [f64],
}

/// Offsets of a panel's rows in the working memory: `V'` above `W'`; `-W'` above `-V'`; its
/// columns; sums of pieces; and coefficients.
#[derive(Clone, Copy)]
struct Panel<T> {
    left: *mut T,
    right: *mut T,
    columns: *mut T,
    sums: *mut T,
    some: *mut T,
    others: *mut T,
    /// Its first column.
    k: usize,
}

/// # Safety
/// All is as large as stated, and this caller's.
pub unsafe fn reduce<T: RowElement>(
    x: &Symmetric<T>,
    to: &mut Diagonals,
    ops: &RowOperations<T>,
    workers: Workers,
) -> Res<()> {
    let Symmetric { a, lead, n, work, .. } = *x;
    // SAFETY: parts of the working memory, and of the matrix.
    unsafe {
        let columns = work.add(4 * PANEL * lead);
        let sums = columns.add(PANEL * lead);
        let some = sums.add(PIECES * lead);
        for k in (0..n).step_by(PANEL) {
            let right = work.add(2 * PANEL * lead);
            let panel = Panel { left: work, right, columns, sums, some, others: some.add(PANEL), k };
            let width = PANEL.min(n - k);
            for r in (k..n).step_by(8) {
                for i in 0..width {
                    for r in r..(r + 8).min(n) {
                        *columns.add(i * lead + r) = *a.add(r * lead + k + i);
                    }
                }
            }
            for i in 0..width {
                column(x, &panel, i, to, ops, workers)?;
            }
            if k + width < n {
                update(x, k + width, &panel, ops, workers)?;
            }
        }
    }
    Ok(())
}
/// Computes the reflection of the `i`-th column of a panel, and its update.
///
/// # Safety
/// As of [`reduce`]; the columns before are done.
unsafe fn column<T: RowElement>(
    x: &Symmetric<T>,
    panel: &Panel<T>,
    i: usize,
    to: &mut Diagonals,
    ops: &RowOperations<T>,
    workers: Workers,
) -> Res<()> {
    let Panel { left, right, columns, sums, some, others, k } = *panel;
    let Symmetric { lead, n, vectors, .. } = *x;
    let (j, first, whole) = (k + i, group_of::<T>(k), n.next_multiple_of(T::GROUP));
    let zero = |at: *mut T, r: std::ops::Range<usize>| {
        // SAFETY: elements of a row of the working memory.
        unsafe { std::slice::from_raw_parts_mut(at.wrapping_add(r.start), r.len()).fill(T::default()) }
    };
    // SAFETY: rows of the working memory from `first` on, and those of vectors.
    unsafe {
        let (v, w) = (left.add(i * lead), left.add((PANEL + i) * lead));
        let column = columns.add(i * lead);
        let rows = |a: *const T, from: usize| RowBlock { a: a.add(from), lead, count: i, n: whole - from };
        let one = |a: *const T, from: usize| RowBlock { a: a.add(from), lead, count: 1, n: whole - from };
        let (left_w, right_v) = (left.add(PANEL * lead), right.add(PANEL * lead));
        // apply the panel's changes
        for p in 0..i {
            *some.add(p) = *right.add(p * lead + j);
            *others.add(p) = *right_v.add(p * lead + j);
        }
        let from = group_of::<T>(j);
        zero(column, from..j);
        zero(column, n..whole);
        (ops.combine)(rows(left, from), some, column.add(from));
        (ops.combine)(rows(left_w, from), others, column.add(from));
        to.d[j] = (*column.add(j)).wide();
        if j + 1 >= n {
            return Ok(());
        }
        let from = group_of::<T>(j + 1);
        zero(v, first..j + 1);
        v.add(j + 1).copy_from_nonoverlapping(column.add(j + 1), whole - j - 1);
        let (beta, tau) = reflect(v, j + 1, n, some, ops);
        (to.e[j], to.taus[j]) = (beta, tau);
        // w = tau (A v - V (W' v) - W (V' v)), less tau / 2 (w . v) v
        times_vector(x, from, v, w, sums, ops, workers)?;
        (ops.dots)(rows(left, from), v.add(from), others);
        (ops.dots)(rows(left_w, from), v.add(from), some);
        (ops.combine)(rows(right, from), others, w.add(from));
        (ops.combine)(rows(right_v, from), some, w.add(from));
        (ops.dots)(one(v, from), w.add(from), some);
        let half = T::narrow(-0.5 * tau * tau * (*some).wide());
        zero(w, first..j + 1);
        let (minus_w, minus_v) = (right.add(i * lead), right_v.add(i * lead));
        zero(minus_w, first..from);
        zero(minus_v, first..from);
        let ws = std::slice::from_raw_parts_mut(w.add(from), whole - from);
        let vs = std::slice::from_raw_parts(v.add(from).cast_const(), whole - from);
        scaled(ws, vs, T::narrow(tau), half, minus_w.add(from), minus_v.add(from));
        // whole groups of reflections begin together
        let row = vectors.add(j * lead);
        let begin = group_of::<T>(k / BATCH * BATCH);
        zero(row, begin..first);
        row.add(first).copy_from_nonoverlapping(v.add(first), whole - first);
    }
    Ok(())
}
/// `w = tau w + half v`; and both negated.
///
/// # Safety
/// As many elements as slices have.
#[inline(always)]
unsafe fn scaled<T: RowElement>(w: &mut [T], v: &[T], tau: T, half: T, minus_w: *mut T, minus_v: *mut T) {
    for (i, (w, v)) in w.iter_mut().zip(v).enumerate() {
        let x = tau.wide() * w.wide() + half.wide() * v.wide();
        *w = T::narrow(x);
        // SAFETY: by the contract.
        unsafe {
            *minus_w.add(i) = T::narrow(-x);
            *minus_v.add(i) = T::narrow(-v.wide());
        }
    }
}

/// `w = A v` for the part right of and below the group at `from`, before which `v` is zero.
///
/// # Safety
/// As of [`reduce`].
unsafe fn times_vector<T: RowElement>(
    x: &Symmetric<T>,
    from: usize,
    v: *const T,
    w: *mut T,
    sums: *mut T,
    ops: &RowOperations<T>,
    workers: Workers,
) -> Res<()> {
    let whole = x.n.next_multiple_of(T::GROUP);
    let rows = whole - from;
    let pieces = if rows >= LinalgTuning::DEFAULT.min_rows_in_pieces { PIECES } else { 1 };
    // an equal part of the triangle for each
    let cut = |p: usize| group_of::<T>(from + (rows as f64 * (p as f64 / pieces as f64).sqrt()) as usize);
    let (a, lead) = (SharedPtr(x.a.cast()), x.lead);
    let (v, sums) = (SharedPtr(v.cast_mut().cast()), SharedPtr(sums.cast()));
    let part = |p: usize| {
        // SAFETY: rows of this piece, and its own sums.
        unsafe {
            let (a, v, y) = (a.get().cast::<T>(), v.get().cast::<T>(), sums.get().cast::<T>().add(p * lead));
            let (begin, end) = (cut(p), if p + 1 == pieces { whole } else { cut(p + 1) });
            std::slice::from_raw_parts_mut(y.add(from), end - from).fill(T::default());
            let mut out = [[T::default(); 16]; 2];
            for r in (begin..end).step_by(T::GROUP) {
                let a = a.add(r * lead);
                let rows = |c: usize, n: usize| RowBlock { a: a.add(c).cast_const(), lead, count: T::GROUP, n };
                (ops.both)(rows(from, r - from), v.add(from), v.add(r), out[0].as_mut_ptr(), y.add(from));
                (ops.dots)(rows(r, T::GROUP), v.add(r), out[1].as_mut_ptr());
                for i in 0..T::GROUP {
                    let y = y.add(r + i);
                    *y = T::narrow((*y).wide() + (out[0][i].wide() + out[1][i].wide()));
                }
            }
        }
    };
    if pieces == 1 {
        part(0);
    } else {
        workers.pieces(pieces, 1, 1e6, 0, &|p, _| part(p.start))?;
    }
    // SAFETY: as above.
    unsafe {
        let sums = sums.get().cast::<T>();
        w.add(from).copy_from_nonoverlapping(sums.add((pieces - 1) * lead + from), rows);
        for p in (0..pieces - 1).rev() {
            let end = cut(p + 1);
            let one = [T::narrow(1.0)];
            let b = RowBlock { a: sums.add(p * lead + from).cast_const(), lead, count: 1, n: end - from };
            (ops.combine)(b, one.as_ptr(), w.add(from));
        }
    }
    Ok(())
}

/// Subtracts a panel's product from the rows from `end` on, in pieces with a part of the lower triangle each.
///
/// # Safety
/// As of [`reduce`].
unsafe fn update<T: RowElement>(
    x: &Symmetric<T>,
    end: usize,
    panel: &Panel<T>,
    ops: &RowOperations<T>,
    workers: Workers,
) -> Res<()> {
    let first = group_of::<T>(end);
    let whole = x.n.next_multiple_of(T::GROUP);
    let (a, lead, product) = (SharedPtr(x.a.cast()), x.lead, ops.product);
    let (left, right) = (SharedPtr(panel.left.cast()), SharedPtr(panel.right.cast()));
    let rows = whole - first;
    let nanos = (rows * rows * PANEL) as f64 * 0.03;
    workers.pieces(rows, ROWS, nanos, panel::MEMORY, &|r, scratch| {
        // the longest rows first, so that threads end together
        let (begin, stop) = (whole - r.end, whole - r.start);
        // SAFETY: rows of this piece, to the end of its groups on the diagonal.
        unsafe {
            let (left, right) = (left.get().cast::<T>(), right.get().cast::<T>());
            product(&Matrices {
                a: left.add(begin).cast_const().cast(),
                b: right.add(first).cast_const().cast(),
                c: a.get().cast::<T>().add(begin * lead + first).cast(),
                m: stop - begin,
                n: stop - first,
                k: 2 * PANEL,
                a_strides: [1, lead as isize],
                b_strides: [lead as isize, 1],
                c_row: lead,
                adds: true,
                scratch,
                blocks: std::ptr::null_mut(),
            })
        }
    })
}
