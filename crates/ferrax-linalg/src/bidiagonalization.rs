//! Reduction of general matrices to upper bidiagonal form by reflections from the left and from the right, a panel of columns and rows at a time.
//!
//! ```text
//! for each 32 columns:  for each column:  apply the panel's changes;  its reflection v;  A' v, which gives the row and its reflection u;  A u
//!                       then A -= V Y' + X U'  for the rest of the matrix, right of and below them: a product
//! ```
//! `u` is the row minus multiples of a unit vector, and the row is a known one minus a multiple of `A' v`. So `A u` needs only `A (A' v)`, and the matrix, stored in
//! strips of columns, is read once for both. Dongarra, Hammarling and Sorensen 1989 (LAPACK working note 2); Howell, Demmel, Fulton, Hammarling and Marmol 2008
//! ("Cache efficient bidiagonalization using BLAS 2.5 operators", LAPACK working note 174); Golub and Van Loan 5.4.8.
//!
//! INVARIANT: pieces are cut by size alone, and their sums are added in order: bits do not depend on threads.
#![allow(unsafe_code)]
use super::householder::{BATCH, Workers, group_of, reflect};
use super::matrix_vector::{RowBlock, RowElement, RowOperations, STRIP, Strip};
use crate::tuning::LinalgTuning;
use ferrax_host::panel::{self, Matrices};
use ferrax_host::threads::SharedPtr;
use ferrax_kernel::Res;

/// Columns of a panel.
const PANEL: usize = 32;
/// Pieces that a product with a vector is cut into, if that pays.
const PIECES: usize = 4;

/// Columns of a strip.
pub const fn strip_of<T: RowElement>() -> usize {
    STRIP * T::GROUP
}
/// Elements of a row of `n` columns: whole strips, such that consecutive rows do not conflict in the cache.
pub fn row_of_strips<T: RowElement>(n: usize) -> usize {
    let n = n.next_multiple_of(strip_of::<T>());
    n + if (n * size_of::<T>()).is_multiple_of(1024) { T::GROUP } else { 0 }
}

/// A matrix during its reduction, of `m >= n` rows.
#[derive(Clone, Copy)]
pub struct General<T> {
    /// Strip after strip of all rows; zero beyond `n`.
    pub a: *mut T,
    pub m: usize,
    pub n: usize,
    /// Elements of a row of `m`, and of one of `n`.
    pub high: usize,
    pub wide: usize,
    /// `n` rows of each: vectors of reflections from the left, from 0, and from the right, from 1.
    pub left: *mut T,
    pub right: *mut T,
    /// [`memory`] elements, of any content.
    pub work: *mut T,
}
/// Elements of `General::work`.
pub fn memory<T: RowElement>(high: usize, wide: usize) -> usize {
    let vectors = (3 * PANEL + 2 + PIECES * (T::GROUP + 1)) * high + (2 * PANEL + 2) * wide;
    vectors + 4 * PANEL + T::GROUP
}

/// The diagonals, and the reflections' taus.
pub struct UpperBidiagonal<'a> {
    pub d: &'a mut [f64],
    pub e: &'a mut [f64],
    pub left: &'a mut [f64],
    pub right: &'a mut [f64],
}

/// Offsets of a panel's rows in the working memory.
#[derive(Clone, Copy)]
struct PanelPair<T> {
    /// `V'` above `X'`, of `m` elements each.
    v: *mut T,
    /// `-Y'` above `-U'`, of `n` elements each.
    u: *mut T,
    /// The panel's columns, and the next one, before the panel's changes.
    columns: *mut T,
    /// A row before `A' v` is taken off, and after; sums of groups and of pieces; coefficients, twice; ones.
    row: *mut T,
    next: *mut T,
    groups: *mut T,
    sums: *mut T,
    some: *mut T,
    others: *mut T,
    ones: *mut T,
    /// Its first column.
    k: usize,
}

/// # Safety
/// All is as large as stated, and this caller's.
pub unsafe fn reduce<T: RowElement>(
    x: &General<T>,
    to: &mut UpperBidiagonal,
    ops: &RowOperations<T>,
    workers: Workers,
) -> Res<()> {
    let General { a, m, n, high, wide, work, .. } = *x;
    let strip = strip_of::<T>();
    // SAFETY: parts of the working memory, and of the matrix.
    unsafe {
        let columns = work.add(2 * PANEL * high);
        let groups = columns.add((PANEL + 1) * high);
        let sums = groups.add(PIECES * high * T::GROUP);
        let u = sums.add((PIECES + 1) * high);
        let row = u.add(2 * PANEL * wide);
        let some = row.add(2 * wide);
        let ones = some.add(4 * PANEL);
        std::slice::from_raw_parts_mut(ones, T::GROUP).fill(T::narrow(1.0));
        for k in (0..n).step_by(PANEL) {
            let others = some.add(2 * PANEL);
            let panel =
                PanelPair { v: work, u, columns, row, next: row.add(wide), groups, sums, some, others, ones, k };
            let width = PANEL.min(n - k);
            for r in (k..m).step_by(8) {
                for j in k..(k + PANEL + 1).min(n) {
                    let (from, to) = (a.add(j / strip * strip * m + j % strip), columns.add((j - k) * high));
                    for r in r..(r + 8).min(m) {
                        *to.add(r) = *from.add(r * strip);
                    }
                }
            }
            for i in 0..width {
                step(x, &panel, i, to, ops, workers)?;
            }
            if k + width < n {
                update(x, k + width, &panel, ops, workers)?;
            }
        }
    }
    Ok(())
}
/// The `i`-th column and row of a panel: computes their reflections, and the changes by these.
///
/// # Safety
/// As for [`reduce`]; the earlier columns and rows are done.
unsafe fn step<T: RowElement>(
    x: &General<T>,
    panel: &PanelPair<T>,
    i: usize,
    to: &mut UpperBidiagonal,
    ops: &RowOperations<T>,
    workers: Workers,
) -> Res<()> {
    let PanelPair { v: vs, u: us, columns, row, next, sums, some, others, k, .. } = *panel;
    let General { a, m, n, high, wide, .. } = *x;
    let (j, strip) = (k + i, strip_of::<T>());
    let zero = |at: *mut T, r: std::ops::Range<usize>| {
        // SAFETY: elements of a row of the working memory.
        unsafe { std::slice::from_raw_parts_mut(at.wrapping_add(r.start), r.len()).fill(T::default()) }
    };
    let begin = k / BATCH * BATCH;
    // rows of m and of n elements: where the panel's begin, where this step's do, and where they end
    let (first, from, whole) = (group_of::<T>(k), group_of::<T>(j), m.next_multiple_of(T::GROUP));
    let (first_n, from_n, whole_n) = (k / strip * strip, (j + 1) / strip * strip, n.next_multiple_of(strip));
    let of_m = |a: *const T, count: usize| RowBlock { a: a.wrapping_add(from), lead: high, count, n: whole - from };
    let of_n =
        |a: *const T, count: usize| RowBlock { a: a.wrapping_add(from_n), lead: wide, count, n: whole_n - from_n };
    // SAFETY: rows of the working memory from `first` on, and those of vectors.
    unsafe {
        let (xs, minus_us) = (vs.add(PANEL * high), us.add(PANEL * wide));
        let v = vs.add(i * high);
        for p in 0..i {
            *some.add(p) = *us.add(p * wide + j);
            *others.add(p) = *minus_us.add(p * wide + j);
        }
        v.add(j).copy_from_nonoverlapping(columns.add(i * high + j), m - j);
        zero(v, first..j);
        zero(v, m..whole);
        (ops.combine)(of_m(vs, i), some, v.add(from));
        (ops.combine)(of_m(xs, i), others, v.add(from));
        zero(v, from..j);
        let (beta, tau) = reflect(v, j, m, some, ops);
        (to.d[j], to.left[j]) = (beta, tau);
        let kept = x.left.add(j * high);
        zero(kept, begin..first);
        kept.add(first).copy_from_nonoverlapping(v.add(first), whole - first);
        if j + 1 >= n {
            return Ok(());
        }
        // the row before the subtraction of a multiple of A' v; then the whole row, and A times it
        for at in (from_n..whole_n).step_by(strip) {
            row.add(at).copy_from_nonoverlapping(a.add(at * m + j * strip), strip);
        }
        for p in 0..i {
            *some.add(p) = *vs.add(p * high + j);
            *others.add(p) = *xs.add(p * high + j);
        }
        (ops.combine)(of_n(us, i), some, row.add(from_n));
        (ops.combine)(of_n(minus_us, i), others, row.add(from_n));
        zero(row, from_n..j + 1);
        next.add(from_n).copy_from_nonoverlapping(row.add(from_n), whole_n - from_n);
        (ops.dots)(of_m(vs, i), v.add(from), some);
        (ops.dots)(of_m(xs, i), v.add(from), others);
        scale(some, 0..i, -tau);
        scale(others, 0..i, -tau);
        (ops.combine)(of_n(us, i), some, next.add(from_n));
        (ops.combine)(of_n(minus_us, i), others, next.add(from_n));
        let product = sums.add(PIECES * high);
        through(x, panel, j, tau, v, product, ops, workers)?;
        let y = us.add(i * wide);
        zero(y, first_n..from_n);
        for at in from_n..whole_n {
            *y.add(at) = T::narrow((*next.add(at)).wide() - (*row.add(at)).wide());
        }
        // its reflection
        let head = (*next.add(j + 1)).wide();
        let (beta, tau) = reflect(next, j + 1, n, some, ops);
        (to.e[j], to.right[j]) = (beta, tau);
        let (u, kept) = (minus_us.add(i * wide), x.right.add(j * wide));
        zero(u, first_n..from_n);
        for at in from_n..whole_n {
            *u.add(at) = T::narrow(-(*next.add(at)).wide());
        }
        zero(kept, begin..from_n);
        kept.add(from_n).copy_from_nonoverlapping(next.add(from_n), whole_n - from_n);
        // x = tau (A u - V (Y' u) - X (U' u))
        let to = xs.add(i * high);
        zero(to, first..whole);
        if tau == 0.0 {
            return Ok(());
        }
        let (by, column) = (1.0 / (head - beta), columns.add((i + 1) * high));
        for r in j + 1..m {
            *to.add(r) = T::narrow(by * ((*product.add(r)).wide() - beta * (*column.add(r)).wide()));
        }
        (ops.dots)(of_n(us, i + 1), next.add(from_n), some);
        (ops.dots)(of_n(minus_us, i), next.add(from_n), others);
        (ops.combine)(of_m(vs, i + 1), some, to.add(from));
        (ops.combine)(of_m(xs, i), others, to.add(from));
        scale(to, j + 1..m, tau);
        zero(to, from..j + 1);
    }
    Ok(())
}
/// Multiplies a range of elements.
///
/// # Safety
/// They exist, and nothing else touches them.
unsafe fn scale<T: RowElement>(x: *mut T, range: std::ops::Range<usize>, by: f64) {
    for i in range {
        // SAFETY: by the contract.
        unsafe { *x.add(i) = T::narrow(by * (*x.add(i)).wide()) };
    }
}
/// `next -= tau A' v` for the columns after `j`, and `product = A next`.
///
/// # Safety
/// As of [`reduce`].
unsafe fn through<T: RowElement>(
    x: &General<T>,
    panel: &PanelPair<T>,
    j: usize,
    tau: f64,
    v: *const T,
    product: *mut T,
    ops: &RowOperations<T>,
    workers: Workers,
) -> Res<()> {
    let (strip, m, high) = (strip_of::<T>(), x.m, x.high);
    let strips = (j + 1) / strip..x.n.div_ceil(strip);
    let pieces =
        if (m - j) * (x.n - j) >= LinalgTuning::DEFAULT.min_elements_in_pieces { PIECES.min(strips.len()) } else { 1 };
    let cut = |p: usize| strips.start + strips.len() * p / pieces;
    let [a, v, next, groups, sums, ones] =
        [x.a, v.cast_mut(), panel.next, panel.groups, panel.sums, panel.ones].map(|p| SharedPtr(p.cast()));
    let (minus, rows, strip_kernel, dots) = (T::narrow(-tau), m - j, ops.strip, ops.dots);
    let part = |p: usize| {
        // SAFETY: strips of this piece, and its own sums.
        unsafe {
            let groups = groups.get().cast::<T>().add(p * high * T::GROUP);
            std::slice::from_raw_parts_mut(groups, rows * T::GROUP).fill(T::default());
            for s in cut(p)..cut(p + 1) {
                strip_kernel(Strip {
                    a: a.get().cast::<T>().add(s * strip * m + j * strip).cast_const(),
                    rows,
                    v: v.get().cast::<T>().add(j).cast_const(),
                    minus,
                    to: next.get().cast::<T>().add(s * strip),
                    skip: (j + 1).saturating_sub(s * strip),
                    sums: groups,
                });
            }
            let b = RowBlock { a: groups.cast_const(), lead: T::GROUP, count: rows, n: T::GROUP };
            dots(b, ones.get().cast(), sums.get().cast::<T>().add(p * high + j));
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
        for r in j..m {
            let mut sum = (*sums.add(r)).wide();
            for p in 1..pieces {
                sum += (*sums.add(p * high + r)).wide();
            }
            *product.add(r) = T::narrow(sum);
        }
    }
    Ok(())
}
/// Subtracts a panel's products from the rows and columns from `end` on, strip by strip.
///
/// # Safety
/// As for [`reduce`].
unsafe fn update<T: RowElement>(
    x: &General<T>,
    end: usize,
    panel: &PanelPair<T>,
    ops: &RowOperations<T>,
    workers: Workers,
) -> Res<()> {
    let (strip, m, high, wide, product) = (strip_of::<T>(), x.m, x.high, x.wide, ops.product);
    let strips = end / strip..x.n.div_ceil(strip);
    let [a, v, u] = [x.a, panel.v, panel.u].map(|p| SharedPtr(p.cast()));
    let nanos = 2.0 * ((m - end) * strips.len() * strip * PANEL) as f64 * 0.03;
    workers.pieces(strips.len(), 1, nanos, panel::MEMORY, &|s, scratch| {
        let at = (strips.start + s.start) * strip;
        // SAFETY: a strip of this piece.
        unsafe {
            product(&Matrices {
                a: v.get().cast::<T>().add(end).cast_const().cast(),
                b: u.get().cast::<T>().add(at).cast_const().cast(),
                c: a.get().cast::<T>().add(at * m + end * strip).cast(),
                m: m - end,
                n: strip,
                k: 2 * PANEL,
                a_strides: [1, high as isize],
                b_strides: [wide as isize, 1],
                c_row: strip,
                adds: true,
                scratch,
                blocks: std::ptr::null_mut(),
            })
        }
    })
}
