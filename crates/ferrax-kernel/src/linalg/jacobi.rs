//! Jacobi rotations: eigenvalues and eigenvectors of small Hermitian matrices by two-sided
//! rotations, singular values by one-sided rotations of columns.
//!
//! A sweep rotates every pair of columns once, in rounds of disjoint pairs as in a tournament, so
//! the rotations of a round are independent. Jacobi, Crelle 30 (1846); Hestenes, J. SIAM 6 (1958);
//! Demmel and Veselic, SIAM J. Matrix Anal. 13 (1992): small singular values are as accurate as the
//! columns determine them, and the method converges for every matrix.
//!
//! ```text
//! (x, y) of vectors, g = x' y:     x, y  ->  c x - s p y, s x + c p y      p = conj(g) / |g|
//! ```
use super::field::{dot, norm, rows, scaled, squares, swap_rows, unit_scale};
use super::lanes::{ElementLanes, LaneMask, Masks, RealLanes};

const SWEEPS: usize = 80;
/// The square of a column that counts as zero, relative to the square of the matrix: rotations of rounding errors would go on until they
/// vanish.
const NOTHING: f64 = 1e-120;

/// The rotation of a pair, and whether it is applied.
#[derive(Clone, Copy)]
pub struct Rotation<E: ElementLanes> {
    c: E::Real,
    s: E::Real,
    /// `c p` and `s p`.
    cp: E,
    sp: E,
    turns: Masks<E>,
}
impl<E: ElementLanes> Rotation<E> {
    /// No rotation.
    #[inline(always)]
    pub fn none() -> Self {
        let (zero, one) = (E::Real::splat(0.0), E::Real::splat(1.0));
        Rotation { c: one, s: zero, cp: E::all(1.0), sp: E::all(0.0), turns: zero.less(zero) }
    }
    /// The rotation that makes vectors of squared lengths `a` and `d` and inner product `g`
    /// orthogonal, and the squared length that it moves from one to the other.
    #[inline(always)]
    fn new(a: E::Real, d: E::Real, g: E, size: E::Real, turns: Masks<E>) -> (Self, E::Real) {
        let one = E::Real::splat(1.0);
        let (apart, twice) = (d - a, size + size);
        let r = (apart * apart + twice * twice).sqrt();
        let t = E::Real::select(apart.less(E::Real::splat(0.0)), -twice, twice) / (RealLanes::abs(apart) + r);
        let c = one / (one + t * t).sqrt();
        let s = c * t;
        let p = g.conj().scale(one / size);
        (Rotation { c, s, cp: p.scale(c), sp: p.scale(s), turns }, t * size)
    }
    #[inline(always)]
    fn apply(&self, x: E, y: E) -> (E, E) {
        let (u, v) = (x.scale(self.c) - self.sp * y, x.scale(self.s) + self.cp * y);
        (E::choose(self.turns, u, x), E::choose(self.turns, v, y))
    }
    /// As `apply`, by the conjugate rotation.
    #[inline(always)]
    fn conjugate(&self) -> Self {
        Rotation { cp: self.cp.conj(), sp: self.sp.conj(), ..*self }
    }
    /// Rows i and j of an array of rows of `n`.
    #[inline(always)]
    fn rows(&self, a: &mut [E], n: usize, i: usize, j: usize) {
        if n > 0 {
            let (x, y) = rows(a, n, i, j);
            for (x, y) in x.iter_mut().zip(y) {
                (*x, *y) = self.apply(*x, *y);
            }
        }
    }
}

/// Pair `k` of round `round`, the smaller one first, of `n`; none for the element without a
/// partner, whose index is the number of the round if n is odd.
#[inline(always)]
fn pair(n: usize, round: usize, k: usize) -> Option<(usize, usize)> {
    let last = rounds(n);
    let (p, q) = if k == 0 { (round, last) } else { ((round + k) % last, (round + last - k) % last) };
    let (p, q) = (p.min(q), p.max(q));
    (q < n).then_some((p, q))
}
#[inline(always)]
fn rounds(n: usize) -> usize {
    if n < 2 { 0 } else { n + n % 2 - 1 }
}

/// The eigenvalues of the Hermitian matrix `a`, ascending, in `d`, and eigenvector k in row k of `v`. Pairs whose product is not above
/// `tolerance` relative to their values stay as they are. `turns` is working memory, for half as many as `a` has rows, rounded up.
#[inline(always)]
pub fn eigen<E: ElementLanes>(
    a: &mut [E],
    v: &mut [E],
    d: &mut [E::Real],
    turns: &mut [Rotation<E>],
    n: usize,
    tolerance: f64,
) {
    let scale = unit_scale(a);
    scaled(a, scale);
    v.fill(E::all(0.0));
    for i in 0..n {
        v[i * n + i] = E::all(1.0);
    }
    let whole = squares(a.iter().copied());
    let (tolerance, nothing) = (E::Real::splat(tolerance), (whole * E::Real::splat(NOTHING)).sqrt());
    for _ in 0..SWEEPS {
        let mut rotated = nothing.less(nothing);
        for round in 0..rounds(n) {
            let mut some = nothing.less(nothing);
            for k in 0..n.div_ceil(2) {
                turns[k] = Rotation::none();
                let Some((p, q)) = pair(n, round, k) else { continue };
                let (x, y, g) = (a[p * n + p].re(), a[q * n + q].re(), a[p * n + q]);
                let size = g.abs();
                let more = (tolerance * (RealLanes::abs(x) + RealLanes::abs(y))).less(size).and(nothing.less(size));
                if more.any() {
                    let (turn, by) = Rotation::new(x, y, g, size, more);
                    turns[k] = turn;
                    a[p * n + p] = E::choose(more, E::real(x - by), a[p * n + p]);
                    a[q * n + q] = E::choose(more, E::real(y + by), a[q * n + q]);
                    a[p * n + q] = E::choose(more, E::all(0.0), g);
                    some = some.or(more);
                }
            }
            if some.any() {
                rotated = rotated.or(some);
                turn_round(a, v, turns, n, round);
            }
        }
        if !rotated.any() {
            break;
        }
    }
    for i in 0..n {
        d[i] = a[i * n + i].re() / scale;
    }
    sort(d, true, [(v, n), (&mut [], 0)]);
    v.chunks_mut(n.max(1)).for_each(point_up);
}
/// Turns a vector to where the greatest of its real parts, the first of these, is not negative: so rounding errors do not choose the sign
/// of an eigenvector.
#[inline(always)]
fn point_up<E: ElementLanes>(row: &mut [E]) {
    let zero = E::Real::splat(0.0);
    let (mut most, mut part) = (zero, zero);
    for x in row.iter() {
        let size = RealLanes::abs(x.re());
        let more = most.less(size);
        most = E::Real::select(more, size, most);
        part = E::Real::select(more, x.re(), part);
    }
    let down = part.less(zero);
    row.iter_mut().for_each(|x| *x = E::choose(down, -*x, *x));
}
/// Applies the rotations of a round to rows and columns of `a`, of which the upper triangle is
/// stored, and to the rows of `v`.
#[inline(always)]
fn turn_round<E: ElementLanes>(a: &mut [E], v: &mut [E], turns: &[Rotation<E>], n: usize, round: usize) {
    for k in 0..n.div_ceil(2) {
        let Some((p, q)) = pair(n, round, k) else { continue };
        if turns[k].turns.any() {
            turns[k].rows(v, n, p, q);
        }
        let left = turns[k].conjugate();
        for l in k + 1..n.div_ceil(2) {
            let Some((r, s)) = pair(n, round, l) else { continue };
            let right = turns[l];
            if left.turns.or(right.turns).any() {
                let [pr, qr] = [at(a, n, p, r), at(a, n, q, r)];
                let [ps, qs] = [at(a, n, p, s), at(a, n, q, s)];
                let ((pr, qr), (ps, qs)) = (left.apply(pr, qr), left.apply(ps, qs));
                let ((pr, ps), (qr, qs)) = (right.apply(pr, ps), right.apply(qr, qs));
                put(a, n, p, r, pr);
                put(a, n, q, r, qr);
                put(a, n, p, s, ps);
                put(a, n, q, s, qs);
            }
        }
        // the element without a partner is the one whose index is the number of the round
        if n % 2 == 1 {
            let (x, y) = left.apply(at(a, n, p, round), at(a, n, q, round));
            put(a, n, p, round, x);
            put(a, n, q, round, y);
        }
    }
}
#[inline(always)]
fn at<E: ElementLanes>(a: &[E], n: usize, i: usize, j: usize) -> E {
    if i < j { a[i * n + j] } else { a[j * n + i].conj() }
}
#[inline(always)]
fn put<E: ElementLanes>(a: &mut [E], n: usize, i: usize, j: usize, x: E) {
    if i < j {
        a[i * n + j] = x;
    } else {
        a[j * n + i] = x.conj();
    }
}
/// Exchanges until `x` ascends, or descends, each time the first of the least or greatest; and the rows of both arrays with it.
#[inline(always)]
fn sort<E: ElementLanes>(x: &mut [E::Real], ascending: bool, [(a, m), (b, n)]: [(&mut [E], usize); 2]) {
    for i in 0..x.len() {
        let (mut best, mut at) = (x[i], E::Real::splat(i as f64));
        for j in i + 1..x.len() {
            let more = if ascending { x[j].less(best) } else { best.less(x[j]) };
            (best, at) = (E::Real::select(more, x[j], best), E::Real::select(more, E::Real::splat(j as f64), at));
        }
        for j in i + 1..x.len() {
            let here = at.equals(E::Real::splat(j as f64));
            if here.any() {
                (x[i], x[j]) = (E::Real::select(here, x[j], x[i]), E::Real::select(here, x[i], x[j]));
                swap_rows(a, m, i, j, here);
                swap_rows(b, n, i, j, here);
            }
        }
    }
}

/// Rotates the `n` rows of `b`, each of `m` elements, into orthogonal ones, the longest first, and
/// the rows of `v` (each of `width`) likewise. Writes their lengths to `s`, and scales nonzero rows
/// to length 1.
#[inline(always)]
pub fn orthogonalize<E: ElementLanes>(
    b: &mut [E],
    [n, m]: [usize; 2],
    v: &mut [E],
    width: usize,
    s: &mut [E::Real],
    turns: &mut [Rotation<E>],
    tolerance: f64,
) {
    let zero = E::Real::splat(0.0);
    let scale = unit_scale(b);
    scaled(b, scale);
    let nothing = squares(b.iter().copied()) * E::Real::splat(NOTHING);
    // the rounding error of the product of orthogonal rows
    let tolerance = E::Real::splat(tolerance * (4 + m) as f64);
    // each sweep leaves less to turn, down to rounding
    for _ in 0..SWEEPS {
        let mut rotated = zero.less(zero);
        for round in 0..rounds(n) {
            for k in 0..n.div_ceil(2) {
                turns[k] = Rotation::none();
                let Some((p, q)) = pair(n, round, k) else { continue };
                let (x, y) = (&b[p * m..(p + 1) * m], &b[q * m..(q + 1) * m]);
                let (mut a, mut d, mut g) = (zero, zero, E::all(0.0));
                for (x, y) in x.iter().zip(y) {
                    a += x.square();
                    d += y.square();
                    g += x.conj() * *y;
                }
                let size = g.abs();
                let more = (tolerance * (a * d).sqrt()).less(size).and(nothing.less(a)).and(nothing.less(d));
                if more.any() {
                    turns[k] = Rotation::new(a, d, g, size, more).0;
                }
            }
            for k in 0..n.div_ceil(2) {
                let Some((p, q)) = pair(n, round, k) else { continue };
                let turn = turns[k];
                if turn.turns.any() {
                    rotated = rotated.or(turn.turns);
                    turn.rows(b, m, p, q);
                    turn.rows(v, width, p, q);
                }
            }
        }
        if !rotated.any() {
            break;
        }
    }
    for k in 0..n {
        let row = &mut b[k * m..(k + 1) * m];
        s[k] = norm(row.iter().copied());
        let none = nothing.less(s[k] * s[k]).not();
        s[k] = E::Real::select(none, zero, s[k]);
        let by = E::Real::select(none, zero, E::Real::splat(1.0) / s[k]);
        for x in row {
            *x = E::choose(none, E::all(0.0), x.scale(by));
        }
        s[k] = s[k] / scale;
    }
    sort(s, false, [(b, m), (v, width)]);
}
/// Replaces the rows of `b` from `first` on, each of `m` elements, by unit vectors orthogonal to all before them.
pub fn complete<E: ElementLanes<Real = f64>>(b: &mut [E], first: usize, m: usize) {
    let count = b.len() / m.max(1);
    let mut next = 0;
    for k in first..count {
        // a unit vector, orthogonalized twice against the others (Kahan); one of m - k is long
        // enough
        loop {
            let (before, rest) = b.split_at_mut(k * m);
            let row = &mut rest[..m];
            row.fill(E::all(0.0));
            row[next % m] = E::all(1.0);
            for _ in 0..2 {
                for other in before.chunks_exact(m) {
                    let along = dot(other, row);
                    row.iter_mut().zip(other).for_each(|(x, y)| *x -= along * *y);
                }
            }
            let length = norm(row.iter().copied());
            next += 1;
            // the squares of these lengths sum to m - k over all unit vectors, so that one in a round is not less than this
            if length * length * m as f64 >= 0.5 || next > 2 * m * count {
                row.iter_mut().for_each(|x| *x = x.scale(1.0 / length));
                break;
            }
        }
    }
}
