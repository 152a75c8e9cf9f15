//! Singular values of a bidiagonal matrix by implicit shifts; the rotations are applied to the rows
//! of other matrices.
//!
//! Golub and Reinsch, Numerische Mathematik 14 (1970), with the tests of LINPACK.
use super::field::{RealOrComplex, rows};

const SWEEPS: usize = 80;

/// Singular values, descending, of the upper bidiagonal matrix with diagonal `d` and superdiagonal
/// `e` (of the same length, its last element 0). Applies the rotations of its vectors to the rows
/// of `u` (each of `m`) and of `v` (each of `n`); either may be empty. Returns whether it
/// converged.
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
