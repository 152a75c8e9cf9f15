//! Triangular factors and systems: cholesky and its update, lu, substitution, tridiagonal systems. Matrices are row-major.
//!
//! Golub and Van Loan, Matrix Computations, 4th edition: algorithms 3.1.1, 3.4.1, 4.2.1 and section 6.5.4.
use super::field::{RealOrComplex, dot, rows, subtract};

/// The lower factor of what the lower triangle says, in its place, zeros above; whether there is one.
pub fn cholesky<T: RealOrComplex>(a: &mut [T], n: usize) -> bool {
    for i in 0..n {
        for j in 0..=i {
            // conj(l_j) . l_i
            let s = a[i * n + j] - dot(&a[j * n..j * n + j], &a[i * n..i * n + j]);
            if i > j {
                a[i * n + j] = s.scale(1.0 / a[j * n + j].re());
            } else if s.re() > 0.0 && s.re().is_finite() {
                a[i * n + i] = T::real(s.re().sqrt());
            } else {
                return false;
            }
        }
        a[i * n + i + 1..(i + 1) * n].fill(T::ZERO);
    }
    true
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
/// `op(a) x = b`, or `x op(a) = b`, in the place of `b`, of `m` rows and `k` columns.
pub fn solve<T: RealOrComplex>(t: Triangle, a: &[T], b: &mut [T], m: usize, k: usize) {
    let n = if t.left { m } else { k };
    let at = |i: usize, j: usize| {
        let x = if t.transpose { a[j * n + i] } else { a[i * n + j] };
        if t.conjugate { x.conj() } else { x }
    };
    let lower = t.lower != t.transpose;
    let divide = |row: &mut [T], i: usize| {
        if !t.unit {
            let d = at(i, i);
            row.iter_mut().for_each(|x| *x = *x / d);
        }
    };
    if t.left {
        for step in 0..n {
            let i = if lower { step } else { n - 1 - step };
            let known = if lower { 0..i } else { i + 1..n };
            for j in known {
                let (row, other) = rows(b, k, i, j);
                subtract(row, at(i, j), other);
            }
            divide(&mut b[i * k..(i + 1) * k], i);
        }
        return;
    }
    for row in b.chunks_exact_mut(k.max(1)) {
        for step in 0..n {
            let j = if lower { n - 1 - step } else { step };
            let known = if lower { j + 1..n } else { 0..j };
            let s = known.fold(T::ZERO, |s, i| s + row[i] * at(i, j));
            row[j] -= s;
            divide(&mut row[j..j + 1], j);
        }
    }
}

/// `p a = l u` in the place of `a`, `m` by `n`: row k was exchanged with row `pivots[k]`. A column of zeros is passed over.
pub fn lu<T: RealOrComplex>(a: &mut [T], pivots: &mut [usize], m: usize, n: usize) {
    for k in 0..m.min(n) {
        let mut best = k;
        for i in k + 1..m {
            if a[i * n + k].size() > a[best * n + k].size() {
                best = i;
            }
        }
        pivots[k] = best;
        if best != k {
            let (x, y) = rows(a, n, k, best);
            x.swap_with_slice(y);
        }
        let pivot = a[k * n + k];
        if pivot == T::ZERO {
            continue;
        }
        for i in k + 1..m {
            let (row, top) = rows(a, n, i, k);
            let l = row[k] / pivot;
            row[k] = l;
            subtract(&mut row[k + 1..], l, &top[k + 1..]);
        }
    }
}
/// Where each row comes from, after these exchanges. One that leaves the array is passed over.
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

/// `x` of the system with diagonals `lower` (its first element unused), `d` and `upper` (its last unused), in the place of `b` of `k`
/// columns, by elimination with exchanges of neighbours. `second` is what they bring above `upper`.
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
            // rows i and i + 1 trade places
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
