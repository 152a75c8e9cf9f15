//! Singular values: of small matrices by one-sided rotations, pairs of columns being turned until all are orthogonal; of larger ones by
//! implicit shifts on a bidiagonal matrix.
//!
//! Hestenes, J. SIAM 6 (1958); Demmel and Veselic, SIAM J. Matrix Anal. 13 (1992): small singular values come out as accurate as the
//! columns say, and it converges whatever the matrix.
use super::field::{RealOrComplex, dot, norm, rows, unit_scale};

const SWEEPS: usize = 80;
/// Beside the square of the matrix, the square of a row that is nothing: turning rounding errors would go on until they vanish.
const NOTHING: f64 = 1e-120;

/// Turns the `n` rows of `b`, each of `m` elements, into orthogonal ones, the longest first, and the rows of `v` (each of `width`) as they
/// are turned; `s` is their lengths, and they have length 1 then where they are not zero. Whether all
/// is finite.
pub fn orthogonalize<T: RealOrComplex>(
    b: &mut [T],
    n: usize,
    m: usize,
    v: &mut [T],
    width: usize,
    s: &mut [f64],
) -> bool {
    let scale = unit_scale(b);
    b.iter_mut().for_each(|x| *x = x.scale(scale));
    let nothing = NOTHING * b.iter().map(|x| x.square()).sum::<f64>();
    // each sweep leaves less to turn, down to rounding
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                turned |= turn(b, m, v, width, p, q, nothing);
            }
        }
        if !turned {
            break;
        }
    }
    for k in 0..n {
        let row = &mut b[k * m..(k + 1) * m];
        s[k] = norm(row.iter().copied());
        if s[k] * s[k] <= nothing {
            s[k] = 0.0;
            row.fill(T::ZERO);
        }
    }
    for i in 0..n {
        let most = (i + 1..n).fold(i, |k, j| if s[j] > s[k] { j } else { k });
        if most != i {
            s.swap(i, most);
            let (x, y) = rows(b, m, i, most);
            x.swap_with_slice(y);
            if width > 0 {
                let (x, y) = rows(v, width, i, most);
                x.swap_with_slice(y);
            }
        }
        if s[i] > 0.0 {
            let length = s[i];
            b[i * m..(i + 1) * m].iter_mut().for_each(|x| *x = x.scale(1.0 / length));
        }
    }
    s.iter_mut().for_each(|x| *x /= scale);
    s.iter().all(|x| x.is_finite())
}
/// Whether rows p and q had to be turned.
fn turn<T: RealOrComplex>(b: &mut [T], m: usize, v: &mut [T], width: usize, p: usize, q: usize, nothing: f64) -> bool {
    let (x, y) = rows(b, m, p, q);
    let (mut a, mut d, mut g) = (0.0, 0.0, T::ZERO);
    for (x, y) in x.iter().zip(&*y) {
        a += x.square();
        d += y.square();
        g += x.conj() * *y;
    }
    let size = g.abs();
    // what the product of orthogonal rows comes to by rounding
    if size <= f64::EPSILON * (4 + m) as f64 * a.sqrt() * d.sqrt() || a.min(d) <= nothing {
        return false;
    }
    let zeta = (d - a) / (2.0 * size);
    let t = 1f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = c * t;
    let phase = g.scale(1.0 / size).conj();
    let apply = |x: &mut [T], y: &mut [T]| {
        for (x, y) in x.iter_mut().zip(y) {
            let z = phase * *y;
            (*x, *y) = (x.scale(c) - z.scale(s), x.scale(s) + z.scale(c));
        }
    };
    apply(x, y);
    if width > 0 {
        let (x, y) = rows(v, width, p, q);
        apply(x, y);
    }
    true
}
/// Replaces the rows of `b` from `first` on, each of `m` elements, by unit vectors orthogonal to all before them.
pub fn complete<T: RealOrComplex>(b: &mut [T], first: usize, m: usize) {
    let count = b.len() / m.max(1);
    let mut next = 0;
    for k in first..count {
        // a unit vector, less what lies along the others, twice (Kahan); one of m - k is long enough
        loop {
            let (before, rest) = b.split_at_mut(k * m);
            let row = &mut rest[..m];
            row.fill(T::ZERO);
            row[next % m] = T::ONE;
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

/// Singular values, descending, of the upper bidiagonal matrix of diagonal `d` and what is above it, `e` (as long, its last element 0): by
/// implicit shifts. The rows of `u` (each of `m`) and of `v` (each of `n`) are turned as its vectors are; either may be empty. Whether it
/// converged. Golub and Reinsch, Numerische Mathematik 14 (1970), with the tests of LINPACK.
pub fn bidiagonal<T: RealOrComplex>(
    d: &mut [f64],
    e: &mut [f64],
    u: &mut [T],
    m: usize,
    v: &mut [T],
    n: usize,
) -> bool {
    let small = |x: f64, beside: f64| x.abs() <= f64::MIN_POSITIVE + f64::EPSILON * beside;
    let (mut p, mut sweeps) = (d.len(), 0);
    while p > 0 {
        let split = (0..p - 1).rev().find(|k| small(e[*k], d[*k].abs() + d[*k + 1].abs()));
        if let Some(k) = split {
            e[k] = 0.0;
        }
        let first = split.map_or(0, |k| k + 1);
        if first + 1 == p {
            if d[first] < 0.0 {
                d[first] = -d[first];
                if n > 0 {
                    v[first * n..(first + 1) * n].iter_mut().for_each(|x| *x = -*x);
                }
            }
            (p, sweeps) = (first, 0);
            continue;
        }
        sweeps += 1;
        if sweeps > SWEEPS {
            return false;
        }
        let beside = |j: usize, e: &[f64]| {
            (if j + 1 < p { e[j].abs() } else { 0.0 }) + if j > first { e[j - 1].abs() } else { 0.0 }
        };
        match (first..p).rev().find(|j| small(d[*j], beside(*j, e))) {
            Some(j) if j + 1 == p => {
                d[j] = 0.0;
                let mut f = std::mem::take(&mut e[j - 1]);
                for i in (first..j).rev() {
                    let (c, s, r) = rotation(d[i], f);
                    d[i] = r;
                    if i > first {
                        f = -s * e[i - 1];
                        e[i - 1] *= c;
                    }
                    turn_rows(v, n, i, j, c, s);
                }
            }
            Some(j) => {
                d[j] = 0.0;
                let mut f = std::mem::take(&mut e[j]);
                for i in j + 1..p {
                    let (c, s, r) = rotation(d[i], f);
                    d[i] = r;
                    f = -s * e[i];
                    e[i] *= c;
                    turn_rows(u, m, i, j, c, s);
                }
            }
            None => shifted_step(d, e, first, p, u, m, v, n),
        }
    }
    for i in 0..d.len() {
        let most = (i + 1..d.len()).fold(i, |k, j| if d[j] > d[k] { j } else { k });
        if most != i {
            d.swap(i, most);
            for (x, n) in [(&mut *u, m), (&mut *v, n)] {
                if n > 0 {
                    let (x, y) = rows(x, n, i, most);
                    x.swap_with_slice(y);
                }
            }
        }
    }
    d.iter().all(|x| x.is_finite())
}
/// `(c, s, r)` with `c x + s y = r` and `c y = s x`.
fn rotation(x: f64, y: f64) -> (f64, f64, f64) {
    let r = x.hypot(y);
    if r == 0.0 { (1.0, 0.0, 0.0) } else { (x / r, y / r, r) }
}
fn turn_rows<T: RealOrComplex>(a: &mut [T], n: usize, i: usize, j: usize, c: f64, s: f64) {
    if n > 0 {
        let (x, y) = rows(a, n, i, j);
        for (x, y) in x.iter_mut().zip(y) {
            (*x, *y) = (x.scale(c) + y.scale(s), y.scale(c) - x.scale(s));
        }
    }
}
fn shifted_step<T: RealOrComplex>(
    d: &mut [f64],
    e: &mut [f64],
    first: usize,
    p: usize,
    u: &mut [T],
    m: usize,
    v: &mut [T],
    n: usize,
) {
    let scale = [d[p - 1], d[p - 2], e[p - 2], d[first], e[first]].into_iter().fold(0.0f64, |s, x| s.max(x.abs()));
    let [last, before, beside, head, next] = [d[p - 1], d[p - 2], e[p - 2], d[first], e[first]].map(|x| x / scale);
    let b = ((before + last) * (before - last) + beside * beside) / 2.0;
    let c = (last * beside) * (last * beside);
    let shift = if b != 0.0 || c != 0.0 { c / (b + (b * b + c).sqrt().copysign(b)) } else { 0.0 };
    let (mut f, mut g) = ((head + last) * (head - last) + shift, head * next);
    for j in first..p - 1 {
        let (c, s, r) = rotation(f, g);
        if j > first {
            e[j - 1] = r;
        }
        f = c * d[j] + s * e[j];
        e[j] = c * e[j] - s * d[j];
        g = s * d[j + 1];
        d[j + 1] *= c;
        turn_rows(v, n, j, j + 1, c, s);
        let (c, s, r) = rotation(f, g);
        d[j] = r;
        f = c * e[j] + s * d[j + 1];
        d[j + 1] = c * d[j + 1] - s * e[j];
        g = s * e[j + 1];
        e[j + 1] *= c;
        turn_rows(u, m, j, j + 1, c, s);
    }
    e[p - 2] = f;
}
