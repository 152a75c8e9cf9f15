//! Reflections: qr, with exchanges of columns too, reduction to Hessenberg and to tridiagonal form, and products of reflections.
//!
//! A reflection is `h = 1 - tau v v'`, where `v` is 1 at its own row and zero above; its other elements are stored below the diagonal of the reduced
//! matrix, as LAPACK packs it. `q = h[0] h[1] ..`. Golub and Van Loan, Matrix Computations, chapters 5, 7.4 and 8.3.
use super::field::{RealOrComplex, norm, scaled, subtract};
use super::lanes::{ElementLanes, LaneMask, RealLanes};

/// The reflection whose adjoint sends `(alpha, x)` to `(beta, 0)`, `beta` real: `x` becomes the rest of `v`; gives `beta` and `tau`.
#[inline(always)]
fn reflection<E: ElementLanes>(alpha: E, x: &mut [E]) -> (E::Real, E) {
    let (zero, one, mut up) = (E::Real::splat(0.0), E::Real::splat(1.0), E::Real::splat(1.0));
    let (mut alpha, mut rest) = (alpha, norm(x.iter().copied()));
    let none = rest.equals(zero).and(alpha.im().equals(zero));
    let mut size = alpha.abs().hypot(rest);
    let tiny = size.less(E::Real::splat(1e-290));
    if tiny.and(none.not()).any() {
        // beyond the range of a reciprocal
        up = E::Real::select(tiny, E::Real::splat(2f64.powi(660)), up);
        scaled(x, up);
        (alpha, rest) = (alpha.scale(up), norm(x.iter().copied()));
        size = alpha.abs().hypot(rest);
    }
    let beta = E::Real::select(alpha.re().less(zero), size, -size);
    let by = E::choose(none, E::all(0.0), E::all(1.0) / (alpha - E::real(beta)));
    for x in x {
        *x = *x * by;
    }
    let tau = (E::real(beta) - alpha).scale(one / beta);
    (E::Real::select(none, alpha.re(), beta) / up, E::choose(none, E::all(0.0), tau))
}
/// `c = (1 - tau v v') c` over columns `from..n`; row 0 of `v` is 1 and belongs to row `top` of c.
/// Where `tau` is zero, c is unchanged.
#[inline(always)]
fn reflect_rows<E: ElementLanes>(c: &mut [E], n: usize, top: usize, from: usize, v: &[E], tau: E, w: &mut [E]) {
    let (none, w) = (tau.is_zero(), &mut w[..n - from]);
    let (above, below) = c.split_at_mut((top + 1) * n);
    if let ([s], 1) = (&mut *w, n) {
        // one column: the same sums, without a loop for each row of one
        *s = above[top];
        below.iter().zip(v).for_each(|(c, v)| *s += v.conj() * *c);
        *s = E::choose(none, E::all(0.0), tau * *s);
        above[top] -= *s;
        below.iter_mut().zip(v).for_each(|(c, v)| *c -= *v * *s);
        return;
    }
    let first = &mut above[top * n + from..];
    w.copy_from_slice(first);
    for (row, v) in below.chunks_exact(n).zip(v) {
        let v = v.conj();
        for (w, c) in w.iter_mut().zip(&row[from..]) {
            *w += v * *c;
        }
    }
    for (w, c) in w.iter_mut().zip(first) {
        *w = E::choose(none, E::all(0.0), tau * *w);
        *c -= *w;
    }
    for (row, v) in below.chunks_exact_mut(n).zip(v) {
        subtract(&mut row[from..], *v, w);
    }
}
/// `c = c (1 - tau v v')`, where `v` begins at column `first`.
fn reflect_columns<T: RealOrComplex>(c: &mut [T], n: usize, first: usize, v: &[T], tau: T) {
    if tau == T::ZERO {
        return;
    }
    for row in c.chunks_exact_mut(n) {
        let part = &mut row[first..first + 1 + v.len()];
        let s = part[1..].iter().zip(v).fold(part[0], |s, (c, v)| s + *c * *v) * tau;
        part[0] -= s;
        part[1..].iter_mut().zip(v).for_each(|(c, v)| *c -= s * v.conj());
    }
}
/// The rest of reflection k, whose 1 is at row `k + shift`.
#[inline(always)]
fn column<T: ElementLanes>(a: &[T], m: usize, n: usize, k: usize, shift: usize, v: &mut Vec<T>) {
    v.clear();
    v.extend((k + shift + 1..m).map(|i| a[i * n + k]));
}
/// Reduces column k of `a` below row `k + shift`.
#[inline(always)]
fn reduce_column<T: ElementLanes>(a: &mut [T], m: usize, n: usize, k: usize, shift: usize, v: &mut Vec<T>) -> T {
    column(a, m, n, k, shift, v);
    let top = k + shift;
    let (beta, tau) = reflection(a[top * n + k], v);
    a[top * n + k] = T::real(beta);
    for (i, v) in v.iter().enumerate() {
        a[(top + 1 + i) * n + k] = *v;
    }
    tau
}

/// r above the diagonal, reflections below it.
#[inline(always)]
pub fn qr<T: ElementLanes>(a: &mut [T], m: usize, n: usize, taus: &mut [T], w: &mut [T], v: &mut Vec<T>) {
    for k in 0..m.min(n) {
        taus[k] = reduce_column(a, m, n, k, 0, v);
        reflect_rows(a, n, k, k + 1, v, taus[k].conj(), w);
    }
}
/// The same with pivoting: the longest remaining column is reduced first. Column k of the
/// factorization was column `order[k]`.
pub fn pivoted_qr<T: RealOrComplex>(
    a: &mut [T],
    m: usize,
    n: usize,
    taus: &mut [T],
    order: &mut [usize],
    w: &mut [T],
    v: &mut Vec<T>,
) {
    order.iter_mut().enumerate().for_each(|(i, p)| *p = i);
    for k in 0..m.min(n) {
        let length = |a: &[T], j: usize| norm((k..m).map(|i| a[i * n + j]));
        let (mut best, mut most) = (k, length(a, k));
        for j in k + 1..n {
            let l = length(a, j);
            if l > most {
                (best, most) = (j, l);
            }
        }
        if best != k {
            order.swap(k, best);
            (0..m).for_each(|i| a.swap(i * n + k, i * n + best));
        }
        taus[k] = reduce_column(a, m, n, k, 0, v);
        reflect_rows(a, n, k, k + 1, v, taus[k].conj(), w);
    }
}
/// The first `columns` columns of `q`, from reflections in `a` (`m` by `n`) whose 1 is at row `k + shift`.
#[inline(always)]
pub fn product<T: ElementLanes>(
    a: &[T],
    [m, n]: [usize; 2],
    shift: usize,
    taus: &[T],
    columns: usize,
    q: &mut [T],
    w: &mut [T],
    v: &mut Vec<T>,
) {
    q.fill(T::all(0.0));
    (0..m.min(columns)).for_each(|i| q[i * columns + i] = T::all(1.0));
    for k in (0..taus.len().min(n)).rev() {
        if k + shift < columns {
            column(a, m, n, k, shift, v);
            reflect_rows(q, columns, k + shift, k + shift, v, taus[k], w);
        }
    }
}
/// `op(q) c`, or `c op(q)`, in the place of `c`, of `rows` rows and `columns` columns; op: adjoint, or transpose of the real.
pub fn multiply<T: RealOrComplex>(
    a: &[T],
    n: usize,
    taus: &[T],
    c: &mut [T],
    [rows, columns]: [usize; 2],
    left: bool,
    adjoint: bool,
    w: &mut [T],
    v: &mut Vec<T>,
) {
    let m = if left { rows } else { columns };
    let count = taus.len();
    for step in 0..count {
        let k = if left == adjoint { step } else { count - 1 - step };
        let tau = if adjoint { taus[k].conj() } else { taus[k] };
        column(a, m, n, k, 0, v);
        if left {
            reflect_rows(c, columns, k, 0, v, tau, w);
        } else {
            reflect_columns(c, columns, k, v, tau);
        }
    }
}
/// `a = q h q'`, h zero below its first subdiagonal.
pub fn hessenberg<T: RealOrComplex>(a: &mut [T], n: usize, taus: &mut [T], w: &mut [T], v: &mut Vec<T>) {
    for k in 0..n.saturating_sub(1) {
        taus[k] = reduce_column(a, n, n, k, 1, v);
        reflect_rows(a, n, k + 1, k + 1, v, taus[k].conj(), w);
        reflect_columns(a, n, k + 1, v, taus[k]);
    }
}
/// `a = q t q'`, t with diagonal `d` and real subdiagonal `e`, of the Hermitian matrix that the
/// lower triangle defines. Its reflections are stored below the subdiagonal.
pub fn tridiagonal<T: RealOrComplex>(
    a: &mut [T],
    n: usize,
    d: &mut [f64],
    e: &mut [f64],
    taus: &mut [T],
    w: &mut [T],
    v: &mut Vec<T>,
) {
    for k in 0..n.saturating_sub(1) {
        let tau = reduce_column(a, n, n, k, 1, v);
        (taus[k], e[k]) = (tau, a[(k + 1) * n + k].re());
        d[k] = a[k * n + k].re();
        a[k * n + k] = T::real(d[k]);
        if tau == T::ZERO {
            continue;
        }
        // h' b h = b - v w' - w v', where x = tau b v and w = x - tau/2 (x' v) v
        let (first, len) = (k + 1, n - k - 1);
        let at = |i: usize| if i == 0 { T::ONE } else { v[i - 1] };
        for i in 0..len {
            let mut s = T::ZERO;
            for j in 0..=i {
                s += a[(first + i) * n + first + j] * at(j);
            }
            for j in i + 1..len {
                s += a[(first + j) * n + first + i].conj() * at(j);
            }
            w[i] = tau * s;
        }
        let mut s = T::ZERO;
        (0..len).for_each(|i| s += w[i].conj() * at(i));
        let half = (tau * s).scale(0.5);
        (0..len).for_each(|i| w[i] -= half * at(i));
        for i in 0..len {
            for j in 0..=i {
                let x = at(i) * w[j].conj() + w[i] * at(j).conj();
                a[(first + i) * n + first + j] -= x;
            }
        }
    }
    if n > 0 {
        d[n - 1] = a[n * n - 1].re();
        a[n * n - 1] = T::real(d[n - 1]);
    }
}
/// `a = u b v'` for `m >= n`: b with diagonal `d` and `e` above it, both real. The reflections of u
/// are stored in `a`, those of v in `p` (n by n), whose 1 is one row lower.
pub fn bidiagonal<T: RealOrComplex>(
    a: &mut [T],
    [m, n]: [usize; 2],
    d: &mut [f64],
    e: &mut [f64],
    [left, right]: [&mut [T]; 2],
    p: &mut [T],
    w: &mut [T],
    v: &mut Vec<T>,
) {
    for k in 0..n {
        left[k] = reduce_column(a, m, n, k, 0, v);
        d[k] = a[k * n + k].re();
        reflect_rows(a, n, k, k + 1, v, left[k].conj(), w);
        if k + 1 == n {
            e[k] = 0.0;
            break;
        }
        // row k, conjugated, as a column
        v.clear();
        v.extend(a[k * n + k + 2..(k + 1) * n].iter().map(|x| x.conj()));
        let (beta, tau) = reflection(a[k * n + k + 1].conj(), v);
        (e[k], right[k]) = (beta, tau);
        v.iter().enumerate().for_each(|(i, x)| p[(k + 2 + i) * n + k] = *x);
        reflect_columns(&mut a[(k + 1) * n..], n, k + 1, v, tau);
    }
}
