//! Schur forms `a = z t z'` of Hessenberg matrices, and eigenvectors of (quasi-)triangular
//! matrices.
//!
//! Real: Francis's double shifts, as in `hqr2` (Peters and Wilkinson, Numerische Mathematik 16, 1970); a block of two rows has equal
//! diagonal elements and conjugate eigenvalues. Complex: single shifts. Golub and Van Loan, chapter 7.5.
use super::field::{C128, RealOrComplex, norm};
use super::lanes::ElementLanes;

const SWEEPS: usize = 100;
const PATIENCE: usize = 24;
/// This is negligible relative to the whole matrix, and its square does not vanish.
const TINY: f64 = 1e-40;

/// Columns i and j of the first `count` rows: `(x, y)` becomes `(p x + q y, r x + s y)`.
fn turn_columns<T: RealOrComplex>(a: &mut [T], n: usize, count: usize, i: usize, j: usize, [p, q, r, s]: [T; 4]) {
    for row in a.chunks_exact_mut(n).take(count) {
        let (x, y) = (row[i], row[j]);
        (row[i], row[j]) = (p * x + q * y, r * x + s * y);
    }
}
/// Rows i and j, from column `from` on, likewise.
fn turn_rows<T: RealOrComplex>(a: &mut [T], n: usize, from: usize, i: usize, j: usize, [p, q, r, s]: [T; 4]) {
    for k in from..n {
        let (x, y) = (a[i * n + k], a[j * n + k]);
        (a[i * n + k], a[j * n + k]) = (p * x + q * y, r * x + s * y);
    }
}
/// The first row of the block that ends at `hi`: where a subdiagonal element is negligible relative to its neighbours, or not above
/// `least`.
fn block_start<T: RealOrComplex>(h: &mut [T], n: usize, hi: usize, least: f64) -> usize {
    for l in (1..=hi).rev() {
        let beside = h[(l - 1) * n + l - 1].size() + h[l * n + l].size();
        if h[l * n + l - 1].size() <= (f64::EPSILON * beside).max(least) {
            h[l * n + l - 1] = T::ZERO;
            return l;
        }
    }
    0
}
/// The magnitude below which an element counts as zero. At first it is the one whose products would
/// underflow. After many sweeps it is the rounding of the whole matrix, since a block of the size
/// of rounding errors may cycle.
fn negligible(whole: f64, sweeps: usize) -> f64 {
    whole * if sweeps < PATIENCE { TINY } else { f64::EPSILON }
}

/// Reduces `h` to triangular form and applies the rotations to `z` (empty: no columns). Returns
/// whether it converged.
pub fn complex(h: &mut [C128], z: &mut [C128], n: usize) -> bool {
    let whole = norm(h.iter().copied());
    if !whole.is_finite() {
        return false;
    }
    h.iter_mut().filter(|x| x.size() < TINY * whole).for_each(|x| *x = RealOrComplex::ZERO);
    let (mut hi, mut sweeps) = (n.saturating_sub(1), 0);
    while hi > 0 {
        let lo = block_start(h, n, hi, negligible(whole, sweeps));
        if lo == hi {
            (hi, sweeps) = (hi - 1, 0);
            continue;
        }
        sweeps += 1;
        if sweeps > SWEEPS {
            return false;
        }
        let at = |i: usize, j: usize| h[i * n + j];
        let shift = if sweeps % 11 == 10 {
            // an exceptional shift, since an iteration that has not converged cycles
            at(hi, hi) + C128::real(at(hi, hi - 1).size())
        } else {
            let [p, _] = eigenvalues(at(hi - 1, hi - 1), at(hi - 1, hi), at(hi, hi - 1), at(hi, hi));
            p
        };
        (lo..=hi).for_each(|i| h[i * n + i] -= shift);
        let mut before: Option<(f64, C128)> = None;
        for k in lo..=hi {
            // the columns follow one step behind the rows
            let previous = before.take();
            if k == hi {
                if let Some(t) = previous {
                    right(h, z, n, k - 1, hi, t);
                }
                break;
            }
            // a rotation that sends (x, y) to (r, 0)
            let (x, y) = (h[k * n + k], h[(k + 1) * n + k]);
            let r = x.abs().hypot(y.abs());
            let (c, s) = if r == 0.0 {
                (1.0, C128::ZERO)
            } else if x.abs() == 0.0 {
                (0.0, y.conj().scale(1.0 / y.abs()))
            } else {
                (x.abs() / r, (x.scale(1.0 / x.abs()) * y.conj()).scale(1.0 / r))
            };
            turn_rows(h, n, k, k, k + 1, [C128::real(c), s, -s.conj(), C128::real(c)]);
            h[(k + 1) * n + k] = C128::ZERO;
            before = Some((c, s));
            if let Some(t) = previous {
                right(h, z, n, k - 1, hi, t);
            }
        }
        (lo..=hi).for_each(|i| h[i * n + i] += shift);
    }
    true
}
fn right(h: &mut [C128], z: &mut [C128], n: usize, k: usize, hi: usize, (c, s): (f64, C128)) {
    let t = [C128::real(c), s.conj(), -s, C128::real(c)];
    turn_columns(h, n, (k + 2).min(hi + 1), k, k + 1, t);
    turn_columns(z, n, n, k, k + 1, t);
}
/// The eigenvalues of a matrix of two rows, the one nearer to `d` first.
fn eigenvalues(a: C128, b: C128, c: C128, d: C128) -> [C128; 2] {
    let half = (a - d).scale(0.5);
    let root = sqrt(half * half + b * c);
    let root = if (half.conj() * root).re < 0.0 { -root } else { root };
    // d - b c / (half + root) is the nearer one
    let sum = half + root;
    if sum == C128::ZERO { [d, d] } else { [d - b * c / sum, d + sum] }
}
fn sqrt(x: C128) -> C128 {
    let r = x.abs();
    if r == 0.0 {
        return C128::ZERO;
    }
    let u = ((r + x.re.abs()) * 0.5).sqrt();
    let v = x.im / (2.0 * u);
    if x.re >= 0.0 { C128 { re: u, im: v } } else { C128 { re: v.abs(), im: u.copysign(x.im) } }
}

/// Reduces `h` to triangular form with blocks of two rows, and applies the rotations to `z`.
/// Returns whether it converged.
pub fn real(h: &mut [f64], z: &mut [f64], n: usize) -> bool {
    let whole = norm(h.iter().copied());
    if !whole.is_finite() {
        return false;
    }
    h.iter_mut().filter(|x| x.size() < TINY * whole).for_each(|x| *x = RealOrComplex::ZERO);
    let (mut end, mut sweeps) = (n, 0);
    while end > 0 {
        let hi = end - 1;
        let lo = block_start(h, n, hi, negligible(whole, sweeps));
        if lo == hi {
            (end, sweeps) = (hi, 0);
        } else if lo + 1 == hi {
            standardize(h, z, n, lo);
            (end, sweeps) = (lo, 0);
        } else {
            sweeps += 1;
            if sweeps > SWEEPS {
                return false;
            }
            double_step(h, z, n, lo, hi, sweeps % 11 == 10);
        }
    }
    true
}
/// One implicit step of two shifts over rows `lo..=hi`.
fn double_step(h: &mut [f64], z: &mut [f64], n: usize, lo: usize, hi: usize, exceptional: bool) {
    let at = |i: usize, j: usize| h[i * n + j];
    // sum and product of the shifts: eigenvalues of the last block
    let (sum, product) = if exceptional {
        let s = at(hi, hi - 1).abs() + at(hi - 1, hi - 2).abs();
        (1.5 * s + at(hi, hi) * 2.0, s * s + at(hi, hi) * (1.5 * s + at(hi, hi)))
    } else {
        let (a, b, c, d) = (at(hi - 1, hi - 1), at(hi - 1, hi), at(hi, hi - 1), at(hi, hi));
        (a + d, a * d - b * c)
    };
    // the first column of the product of both shifted matrices
    let (a, b, c, d) = (at(lo, lo), at(lo, lo + 1), at(lo + 1, lo), at(lo + 1, lo + 1));
    let mut x = [a * a + b * c - sum * a + product, c * (a + d - sum), c * at(lo + 2, lo + 1)];
    for k in lo..hi {
        let last = k + 1 == hi;
        if k > lo {
            x = [h[k * n + k - 1], h[(k + 1) * n + k - 1], if last { 0.0 } else { h[(k + 2) * n + k - 1] }];
        }
        let size = norm(x.iter().copied());
        if size == 0.0 {
            continue;
        }
        let beta = if x[0] > 0.0 { -size } else { size };
        // 1 - tau (1, v) (1, v)'
        let (tau, v) = ((beta - x[0]) / beta, [x[1] / (x[0] - beta), x[2] / (x[0] - beta)]);
        if k > lo {
            h[k * n + k - 1] = beta;
            h[(k + 1) * n + k - 1] = 0.0;
            if !last {
                h[(k + 2) * n + k - 1] = 0.0;
            }
        }
        for j in k..n {
            let third = if last { 0.0 } else { v[1] * h[(k + 2) * n + j] };
            let s = tau * (h[k * n + j] + v[0] * h[(k + 1) * n + j] + third);
            h[k * n + j] -= s;
            h[(k + 1) * n + j] -= s * v[0];
            if !last {
                h[(k + 2) * n + j] -= s * v[1];
            }
        }
        let columns = |a: &mut [f64], count: usize| {
            for row in a.chunks_exact_mut(n).take(count) {
                let third = if last { 0.0 } else { v[1] * row[k + 2] };
                let s = tau * (row[k] + v[0] * row[k + 1] + third);
                row[k] -= s;
                row[k + 1] -= s * v[0];
                if !last {
                    row[k + 2] -= s * v[1];
                }
            }
        };
        columns(h, (k + 4).min(hi + 1));
        columns(z, n);
    }
}
/// Splits the block of rows k and k + 1 if its eigenvalues are real; else makes its diagonal elements equal.
fn standardize(h: &mut [f64], z: &mut [f64], n: usize, k: usize) {
    let (a, b, c, d) = (h[k * n + k], h[k * n + k + 1], h[(k + 1) * n + k], h[(k + 1) * n + k + 1]);
    let p = 0.5 * (a - d);
    let scale = p.abs().max(b.abs()).max(c.abs());
    let (p1, b1, c1) = (p / scale, b / scale, c / scale);
    let disc = p1 * p1 + b1 * c1;
    let real = disc >= 0.0;
    let (cs, sn) = if real {
        // (y, c) is an eigenvector
        let y = (p1 + disc.sqrt().copysign(p1)) * scale;
        let r = y.hypot(c);
        (y / r, c / r)
    } else {
        let sum = b + c;
        let tau = sum.hypot(a - d);
        if tau == 0.0 {
            return;
        }
        let cs = (0.5 * (1.0 + sum.abs() / tau)).sqrt();
        (cs, -(p / (tau * cs)) * 1f64.copysign(sum))
    };
    turn_rows(h, n, k, k, k + 1, [cs, sn, -sn, cs]);
    turn_columns(h, n, k + 2, k, k + 1, [cs, sn, -sn, cs]);
    turn_columns(z, n, n, k, k + 1, [cs, sn, -sn, cs]);
    if real {
        h[(k + 1) * n + k] = 0.0;
    } else {
        let mean = 0.5 * (h[k * n + k] + h[(k + 1) * n + k + 1]);
        (h[k * n + k], h[(k + 1) * n + k + 1]) = (mean, mean);
    }
}

/// The eigenvalues on the diagonal of a Schur form; of a real one in conjugate pairs, the one above the axis first.
pub fn diagonal<T: RealOrComplex>(t: &[T], n: usize, w: &mut [C128]) {
    let mut k = 0;
    while k < n {
        let block = !T::COMPLEX && k + 1 < n && t[(k + 1) * n + k] != T::ZERO;
        w[k] = t[k * n + k].complex();
        if block {
            let (b, c) = (t[k * n + k + 1].re(), t[(k + 1) * n + k].re());
            let im = b.abs().sqrt() * c.abs().sqrt();
            w[k].im = im;
            w[k + 1] = C128 { re: w[k].re, im: -im };
            k += 1;
        }
        k += 1;
    }
}
/// The eigenvectors of a Schur form, as rows of `x` of `n`: row k is that of `w[k]`. With `left`, those of its adjoint.
pub fn vectors<T: RealOrComplex>(t: &[T], n: usize, w: &[C128], left: bool, x: &mut [C128]) {
    let least = (f64::EPSILON * norm(t.iter().copied())).max(1e-150);
    // the adjoint with rows and columns in reverse, which has this form again
    let at = |i: usize, j: usize| {
        if left { t[(n - 1 - j) * n + n - 1 - i].conj().complex() } else { t[i * n + j].complex() }
    };
    let joined = |i: usize| !T::COMPLEX && i > 0 && at(i, i - 1) != C128::ZERO;
    for k in 0..n {
        let value = if left { w[n - 1 - k].conj() } else { w[k] };
        let row = if left { n - 1 - k } else { k };
        let x = &mut x[row * n..(row + 1) * n];
        x.fill(C128::ZERO);
        if joined(k) || k + 1 < n && joined(k + 1) {
            // of a block of two: its null vector, by the larger of its rows
            let (p, q) = if joined(k) { (k - 1, k) } else { (k, k + 1) };
            if at(p, q).abs() >= at(q, p).abs() {
                (x[p], x[q]) = (C128::ONE, (value - at(p, p)) / at(p, q));
            } else {
                (x[p], x[q]) = ((value - at(q, q)) / at(q, p), C128::ONE);
            }
            substitute(at, value, least, p, q + 1, joined, x);
        } else {
            x[k] = C128::ONE;
            substitute(at, value, least, k, k + 1, joined, x);
        }
        if left {
            x.reverse();
        }
    }
}
/// Elements `0..first` of `x`, whose elements from `first` to `end` are known and later ones zero.
fn substitute(
    at: impl Fn(usize, usize) -> C128,
    value: C128,
    least: f64,
    first: usize,
    end: usize,
    joined: impl Fn(usize) -> bool,
    x: &mut [C128],
) {
    let safe = |d: C128| if d.size() < least { C128::real(least) } else { d };
    let mut i = first;
    while i > 0 {
        i -= 1;
        let rest = |r: usize, from: usize, x: &[C128]| (from..end).fold(C128::ZERO, |s, j| s - at(r, j) * x[j]);
        if joined(i) {
            let (p, q) = (i - 1, i);
            let (r0, r1) = (rest(p, q + 1, x), rest(q, q + 1, x));
            let (a, b, c, d) = (at(p, p) - value, at(p, q), at(q, p), at(q, q) - value);
            let det = a * d - b * c;
            let det = if det.size() < least * least { C128::real(least * least) } else { det };
            x[p] = (d * r0 - b * r1) / det;
            x[q] = (a * r1 - c * r0) / det;
            i -= 1;
        } else {
            x[i] = rest(i, i + 1, x) / safe(at(i, i) - value);
        }
        // scaled down before it overflows
        let most = x[i..end].iter().fold(0.0f64, |m, x| m.max(x.size()));
        if most > 1e100 {
            x[i..end].iter_mut().for_each(|x| *x = x.scale(1.0 / most));
        }
    }
}

/// Scales rows and columns by powers of two until they have like sizes: `a[i, j] = a[i, j] s[j] / s[i]`. Parlett and Reinsch,
/// Numerische Mathematik 13 (1969).
pub fn balance<T: RealOrComplex>(a: &mut [T], n: usize, s: &mut [f64]) {
    s.fill(1.0);
    let mut again = true;
    while again {
        again = false;
        for i in 0..n {
            let (mut c, mut r) = (0.0, 0.0);
            for j in (0..n).filter(|j| *j != i) {
                c += a[j * n + i].size();
                r += a[i * n + j].size();
            }
            if c == 0.0 || r == 0.0 || !(c + r).is_finite() {
                continue;
            }
            let (mut f, sum) = (1.0, c + r);
            while c < r / 2.0 && f < 1e100 {
                (f, c, r) = (f * 2.0, c * 2.0, r / 2.0);
            }
            while c >= r * 2.0 && f > 1e-100 {
                (f, c, r) = (f / 2.0, c / 2.0, r * 2.0);
            }
            if c + r < 0.95 * sum && f != 1.0 && (1e-15..1e15).contains(&(s[i] * f)) {
                again = true;
                s[i] *= f;
                (0..n).for_each(|j| a[i * n + j] = a[i * n + j].scale(1.0 / f));
                (0..n).for_each(|j| a[j * n + i] = a[j * n + i].scale(f));
            }
        }
    }
}
