//! Triangular factors and systems: cholesky and its update, lu, substitution, tridiagonal systems. Matrices are row-major.
//!
//! Golub and Van Loan, Matrix Computations, 4th edition: algorithms 3.1.1, 3.4.1, 4.2.1 and section 6.5.4.
use super::field::{RealOrComplex, rows, subtract, swap_rows};
use super::lanes::{ElementLanes, LaneMask, Masks, RealLanes};

/// The Cholesky factor of the matrix that the lower triangle defines, in place, with zeros above;
/// if there is one. `w` is working memory for a column.
#[inline(always)]
pub fn cholesky<E: ElementLanes>(a: &mut [E], w: &mut [E], n: usize) -> Masks<E> {
    let zero = E::Real::splat(0.0);
    let mut done = zero.equals(zero);
    for k in 0..n {
        let (above, rest) = a.split_at_mut((k + 1) * n);
        let row = &mut above[k * n + k..];
        let d = row[0].re();
        done = done.and(zero.less(d)).and(d.is_finite());
        let root = d.sqrt();
        let by = E::Real::splat(1.0) / root;
        row[0] = E::real(root);
        row[1..].fill(E::all(0.0));
        // subtracts the column's products from the columns right of it, row by row
        for (i, row) in rest.chunks_exact_mut(n).enumerate() {
            let l = row[k].scale(by);
            (row[k], w[i]) = (l, l.conj());
            subtract(&mut row[k + 1..k + 2 + i], l, &w[..=i]);
        }
    }
    done
}
/// `r' r` becomes `r' r + w w'` for an upper `r`, by rotations of each row with `w`.
pub fn cholesky_update(r: &mut [f64], w: &mut [f64], n: usize) {
    for k in 0..n {
        let row = &mut r[k * n..(k + 1) * n];
        let h = row[k].hypot(w[k]);
        if h == 0.0 {
            continue;
        }
        let (c, s) = (row[k] / h, w[k] / h);
        for j in k..n {
            let (x, y) = (row[j], w[j]);
            (row[j], w[j]) = (c * x + s * y, c * y - s * x);
        }
        row[..k].fill(0.0);
    }
}

/// Which triangle is read, and how.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Triangle {
    pub left: bool,
    pub lower: bool,
    pub transpose: bool,
    pub conjugate: bool,
    pub unit: bool,
}
impl Triangle {
    /// An element of `op(a)`.
    #[inline(always)]
    fn at<E: ElementLanes>(&self, a: &[E], n: usize, i: usize, j: usize) -> E {
        let x = if self.transpose { a[j * n + i] } else { a[i * n + j] };
        if self.conjugate { x.conj() } else { x }
    }
}
/// `op(a) x = b`, or `x op(a) = b`, in the place of `b`, of `m` rows and `k` columns.
#[inline(always)]
pub fn solve<E: ElementLanes>(t: Triangle, a: &[E], b: &mut [E], m: usize, k: usize) {
    let n = if t.left { m } else { k };
    let lower = t.lower != t.transpose;
    if t.left {
        for step in 0..n {
            let i = if lower { step } else { n - 1 - step };
            let known = if lower { 0..i } else { i + 1..n };
            for j in known {
                let (row, other) = rows(b, k, i, j);
                subtract(row, t.at(a, n, i, j), other);
            }
            if !t.unit {
                let d = t.at(a, n, i, i);
                for x in &mut b[i * k..(i + 1) * k] {
                    *x = *x / d;
                }
            }
        }
        return;
    }
    for row in b.chunks_exact_mut(k.max(1)) {
        for step in 0..n {
            let j = if lower { n - 1 - step } else { step };
            let known = if lower { j + 1..n } else { 0..j };
            let mut s = E::all(0.0);
            for i in known {
                s += row[i] * t.at(a, n, i, j);
            }
            row[j] -= s;
            if !t.unit {
                row[j] = row[j] / t.at(a, n, j, j);
            }
        }
    }
}

/// `p a = l u` in the place of `a`, `m` by `n`: row k was exchanged with row `pivots[k]`. A column of zeros is passed over.
#[inline(always)]
pub fn lu<E: ElementLanes>(a: &mut [E], pivots: &mut [E::Real], m: usize, n: usize) {
    for k in 0..m.min(n) {
        let (mut best, mut most) = (E::Real::splat(k as f64), a[k * n + k].size());
        for i in k + 1..m {
            let size = a[i * n + k].size();
            let more = most.less(size);
            best = E::Real::select(more, E::Real::splat(i as f64), best);
            most = E::Real::select(more, size, most);
        }
        pivots[k] = best;
        for i in k + 1..m {
            let here = best.equals(E::Real::splat(i as f64));
            if here.any() {
                swap_rows(a, n, k, i, here);
            }
        }
        let pivot = a[k * n + k];
        let none = pivot.is_zero();
        let (above, below) = a.split_at_mut((k + 1) * n);
        let top = &above[k * n + k + 1..];
        for row in below.chunks_exact_mut(n) {
            let l = row[k] / pivot;
            row[k] = E::choose(none, row[k], l);
            subtract(&mut row[k + 1..], E::choose(none, E::all(0.0), l), top);
        }
    }
}
/// The source of each row after these exchanges. Exchanges with a row out of bounds are skipped.
pub fn permutation(pivots: impl Iterator<Item = i64>, out: &mut [usize]) {
    out.iter_mut().enumerate().for_each(|(i, p)| *p = i);
    for (i, j) in pivots.enumerate() {
        if let Ok(j) = usize::try_from(j)
            && j < out.len()
            && i < out.len()
        {
            out.swap(i, j);
        }
    }
}

/// Solves systems with diagonals `lower` (its first element unused), `d` and `upper` (its last
/// unused), by elimination with exchanges of neighbours; `b` of `k` columns becomes `x`. `second`
/// is the superdiagonal above `upper` that exchanges fill.
pub fn tridiagonal_solve<T: RealOrComplex>(
    lower: &mut [T],
    d: &mut [T],
    upper: &mut [T],
    second: &mut [T],
    b: &mut [T],
    k: usize,
) {
    let n = d.len();
    second.fill(T::ZERO);
    for i in 0..n.saturating_sub(1) {
        let below = lower[i + 1];
        if below == T::ZERO {
            continue;
        }
        if d[i].size() < below.size() {
            // exchanges rows i and i + 1
            let (pivot, next, after) = (below, d[i + 1], if i + 2 < n { upper[i + 1] } else { T::ZERO });
            let (x, y) = rows(b, k, i, i + 1);
            x.swap_with_slice(y);
            let l = d[i] / pivot;
            d[i + 1] = upper[i] - l * next;
            if i + 2 < n {
                upper[i + 1] = -(l * after);
            }
            (d[i], upper[i], second[i]) = (pivot, next, after);
            subtract(y, l, x);
        } else {
            let l = below / d[i];
            d[i + 1] -= l * upper[i];
            let (x, y) = rows(b, k, i, i + 1);
            subtract(y, l, x);
        }
    }
    for i in (0..n).rev() {
        if i + 1 < n {
            let (x, y) = rows(b, k, i, i + 1);
            subtract(x, upper[i], y);
        }
        if i + 2 < n {
            let (x, y) = rows(b, k, i, i + 2);
            subtract(x, second[i], y);
        }
        b[i * k..(i + 1) * k].iter_mut().for_each(|x| *x = *x / d[i]);
    }
}
