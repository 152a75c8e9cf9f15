//! Divide and conquer for symmetric tridiagonal matrices: eigenvalues and eigenvectors.
//!
//! ```text
//! T = (T1, T2) + rho w w'     split where the diagonal is halved, down to 32 rows, which QR steps diagonalize
//!   = Q (D + rho z z') Q'     Q of both halves, z from a column of each
//!   = (Q S) L (Q S)'          S and L by the secular equation;  Q S is a product
//! ```
//!
//! Deflation comes first: nearly equal poles are rotated into each other, and poles with a negligible z are eigenvalues already. Cuppen 1981; Gu and
//! Eisenstat 1995; Rutter (LAPACK working note 69); Golub and Van Loan 8.4. Eigenvectors are rows here, so they are exchanged and rotated in
//! contiguous memory.
//!
//! INVARIANT: as in [`reflections`](super::householder): bits depend on sizes alone.
#![allow(unsafe_code)]
use super::householder::Workers;
use super::matrix_vector::RowElement;
use super::secular_equation::Secular;
use super::vector_merge::{Deflated, Halves, Pieces, Reach, Vectors, merge_ascending};
use ferrax_host::panel::Rows;
use ferrax_kernel::Res;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows that are not cut.
const LEAF: usize = 32;

/// The leaves of `0..n`, and the mergers of each level, the last first: where their halves begin and end. A half of `gap` rows fewer begins after the middle.
pub fn tree(n: usize, leaf: usize, gap: usize) -> (Vec<Range<usize>>, Vec<Vec<[usize; 3]>>) {
    let (mut leaves, mut levels) = (vec![], vec![]);
    let mut ranges: Vec<Range<usize>> = std::iter::once(0..n).collect();
    while !ranges.is_empty() {
        let (mut halves, mut level) = (vec![], vec![]);
        for r in ranges {
            if r.len() <= leaf {
                leaves.push(r);
                continue;
            }
            let middle = r.start + r.len() / 2;
            level.push([r.start, middle, r.end]);
            halves.extend([r.start..middle, middle + gap..r.end]);
        }
        levels.push(level);
        ranges = halves;
    }
    levels.reverse();
    (leaves, levels)
}
/// The mergers of a level: many at a time, of few each by all threads.
pub fn in_turn(
    level: &[[usize; 3]],
    workers: Workers,
    merge: &(dyn Fn([usize; 3], Workers) -> Res<()> + Sync),
) -> Res<()> {
    if level.len() <= 2 {
        return level.iter().try_for_each(|at| merge(*at, workers));
    }
    let failed = OnceLock::new();
    workers.pieces(level.len(), 1, 1e6, 0, &|k, _| {
        if let Err(e) = merge(level[k.start], workers.alone()) {
            let _ = failed.set(e);
        }
    })?;
    failed.into_inner().map_or(Ok(()), Err)
}

/// Eigenvalues rising in `d`, of the matrix with diagonals `d` and `e` (whose last element is not used); and which rows of `x.q` belong to them; or
/// `None` if QR steps do not converge.
///
/// # Safety
/// `x` has `n` rows of as many columns, this caller's.
pub unsafe fn tridiagonal<T: RowElement>(
    x: &Vectors<T>,
    d: &mut [f64],
    e: &[f64],
    product: Rows,
    workers: Workers,
) -> Res<Option<Vec<usize>>> {
    let n = d.len();
    let (leaves, levels) = tree(n, LEAF, 0);
    for [_, middle, _] in levels.iter().flatten() {
        let by = e[middle - 1].abs();
        d[middle - 1] -= by;
        d[*middle] -= by;
    }
    let norm = d.iter().chain(&e[..n.saturating_sub(1)]).fold(0.0f64, |m, x| m.max(x.abs()));
    // SAFETY: the vectors' memory.
    unsafe { std::slice::from_raw_parts_mut(x.q, n * x.lead).fill(T::default()) };
    let mut order: Vec<usize> = (0..n).collect();
    let (values, places) = (Pieces::new(d), Pieces::new(&mut order));
    let failed = AtomicBool::new(false);
    let x = *x;
    workers.pieces(leaves.len(), 1, n as f64 * 2_000.0, 0, &|k, _| {
        let (x, r) = (&x, leaves[k.start].clone());
        // SAFETY: the rows of a leaf are one piece's.
        let done = unsafe { leaf(x, r.clone(), values.of(r.clone()), &e[r.clone()], places.of(r)) };
        if !done {
            failed.store(true, Ordering::Relaxed);
        }
    })?;
    if failed.into_inner() {
        return Ok(None);
    }
    for level in &levels {
        in_turn(level, workers, &|at, workers| {
            let (x, r) = (&x, at[0]..at[2]);
            // SAFETY: the rows of a merger are one piece's.
            unsafe { merge(x, at, (e[at[1] - 1], norm), values.of(r.clone()), places.of(r), product, workers) }
        })?;
    }
    let sorted: Vec<f64> = order.iter().map(|i| d[*i]).collect();
    d.copy_from_slice(&sorted);
    Ok(Some(order))
}

/// Up to [`LEAF`] rows by implicit QR steps (Golub and Van Loan, algorithm 8.3.3), and whether they converged. `order` gives the rows of ascending values.
///
/// # Safety
/// The rows are this caller's.
unsafe fn leaf<T: RowElement>(x: &Vectors<T>, r: Range<usize>, d: &mut [f64], e: &[f64], order: &mut [usize]) -> bool {
    let n = d.len();
    let mut q = [[0.0f64; LEAF]; LEAF];
    (0..n).for_each(|i| q[i][i] = 1.0);
    let mut off = [0.0f64; LEAF];
    off[..n - 1].copy_from_slice(&e[..n - 1]);
    let done = steps(d, &mut off[..n], &mut |i, c, s| {
        let (before, rest) = q.split_at_mut(i + 1);
        for (x, y) in before[i].iter_mut().zip(&mut rest[0]) {
            (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
        }
    });
    for (i, q) in q[..n].iter().enumerate() {
        for (j, v) in q[..n].iter().enumerate() {
            // SAFETY: an element of these rows.
            unsafe { *x.q.add((r.start + i) * x.lead + r.start + j) = T::narrow(*v) };
        }
    }
    sort(d, r.start, order);
    done
}
/// Sorts the rows from `start` on by value, ascending.
pub fn sort(d: &[f64], start: usize, order: &mut [usize]) {
    order.iter_mut().enumerate().for_each(|(i, o)| *o = start + i);
    order.sort_by(|i, j| d[i - start].total_cmp(&d[j - start]));
}
/// Diagonalises a tridiagonal matrix; `turn(i, c, s)` is called for each rotation of i and i + 1.
fn steps(d: &mut [f64], e: &mut [f64], turn: &mut dyn FnMut(usize, f64, f64)) -> bool {
    const MAX_STEPS: usize = 40;
    let n = d.len();
    let (mut end, mut left) = (n, MAX_STEPS * n);
    let small = |i: usize, d: &[f64], e: &[f64]| {
        e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs()) * 0.5 || e[i].abs() < f64::MIN_POSITIVE
    };
    while end > 1 {
        if small(end - 2, d, e) {
            end -= 1;
            continue;
        }
        if left == 0 {
            return false;
        }
        left -= 1;
        let start = (0..end - 2).rev().find(|i| small(*i, d, e)).map_or(0, |i| i + 1);
        // Wilkinson's shift
        let (a, b, c) = (d[end - 2], e[end - 2], d[end - 1]);
        let half = (a - c) / 2.0;
        let shift = c - b * (b / (half + half.hypot(b).copysign(half)));
        let (mut f, mut g) = (d[start] - shift, e[start]);
        for i in start..end - 1 {
            let h = f.hypot(g);
            let (c, s) = if h == 0.0 { (1.0, 0.0) } else { (f / h, g / h) };
            if i > start {
                e[i - 1] = h;
            }
            let (p, o, q) = (d[i], e[i], d[i + 1]);
            d[i] = c * (c * p + s * o) + s * (c * o + s * q);
            d[i + 1] = s * (s * p - c * o) - c * (s * o - c * q);
            e[i] = c * (c * o - s * p) + s * (c * q - s * o);
            turn(i, c, s);
            if i + 2 < end {
                f = e[i];
                g = s * e[i + 1];
                e[i + 1] *= c;
            }
        }
    }
    true
}

/// Sorts poles `d` by `rising`, and deflates entries of z of at most `tolerance`.
///
/// # Safety
/// As for [`merge`].
unsafe fn deflate<T: RowElement>(
    x: &Vectors<T>,
    h: &Halves,
    rising: &[usize],
    (d, z): (&mut [f64], &mut [f64]),
    rho: f64,
    tolerance: f64,
) -> Deflated {
    let (n, start) = (d.len(), h.rows.start);
    let mut reach: Vec<Reach> = (0..n).map(|i| if i < h.top.len() { Reach::Top } else { Reach::Bottom }).collect();
    let (mut poles, mut done) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let mut last: Option<usize> = None;
    for &i in rising {
        if rho * z[i].abs() <= tolerance {
            done.push(i);
            continue;
        }
        if let Some(p) = last {
            let size = z[p].hypot(z[i]);
            let (c, s) = (z[i] / size, -z[p] / size);
            if ((d[i] - d[p]) * c * s).abs() <= tolerance {
                (z[p], z[i]) = (0.0, size);
                reach[i] = reach[i].and(reach[p]);
                reach[p] = reach[i];
                // SAFETY: two rows of the merger.
                unsafe { x.turn(start + p, start + i, h.top.start..h.bottom.end, c, s) };
                let (low, high) = (d[p], d[i]);
                d[p] = low * c * c + high * s * s;
                d[i] = low * s * s + high * c * c;
                done.push(p);
            } else {
                poles.push(p);
            }
        }
        last = Some(i);
    }
    poles.extend(last);
    Deflated { poles, done, reach }
}

/// Two halves become one: `d` and `order` of both.
///
/// # Safety
/// The rows from the first to the last are this caller's, of all three arrays.
unsafe fn merge<T: RowElement>(
    x: &Vectors<T>,
    [start, middle, end]: [usize; 3],
    (rho, norm): (f64, f64),
    d: &mut [f64],
    order: &mut [usize],
    product: Rows,
    workers: Workers,
) -> Res<()> {
    let (n, first) = (end - start, middle - start);
    let h = Halves { rows: start..end, top: start..middle, bottom: middle..end };
    // SAFETY: elements of these rows.
    let of = |i: usize| unsafe {
        if i < middle { x.at(i, middle - 1) } else { x.at(i, middle) * if rho < 0.0 { -1.0 } else { 1.0 } }
    };
    let mut z: Vec<f64> = (start..end).map(of).collect();
    let square = z.iter().map(|z| z * z).sum::<f64>();
    let rho = rho.abs() * square;
    let by = 1.0 / square.sqrt();
    z.iter_mut().for_each(|z| *z *= by);
    let rising = merge_ascending(d, &order[..n], start, [first; 2]);
    let most = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    // z has length 1: the rank-one term scales it against the poles by norm
    let tolerance = 8.0 * T::ROUNDING * most(d).max(most(&z) * norm);
    // SAFETY: by the contract.
    let Deflated { poles, done, reach } = unsafe { deflate(x, &h, &rising, (d, &mut z), rho, tolerance) };
    let k = poles.len();
    let (pd, squares): (Vec<f64>, Vec<f64>) = poles.iter().map(|i| (d[*i], z[*i] * z[*i])).unzip();
    // deflated entries are not in the sum
    let total = squares.iter().sum::<f64>();
    let squares: Vec<f64> = squares.iter().map(|z| z / total).collect();
    let equation =
        Secular { d: &pd, squares: &squares, rho: rho * total, exact: Secular::exact::<T>(), squared: false };
    let (roots, mut weights) = equation.solve(workers)?;
    for (w, i) in weights.iter_mut().zip(&poles) {
        *w = w.abs().sqrt().copysign(z[*i]);
    }
    // vectors by the range where they are not zero, then those that are done
    let mut gathered: Vec<usize> = (0..k).collect();
    gathered.sort_by_key(|p| reach[poles[*p]]);
    let (gd, gw): (Vec<f64>, Vec<f64>) = gathered.iter().map(|p| (pd[*p], weights[*p])).unzip();
    let reach: Vec<Reach> = gathered.iter().map(|p| reach[poles[*p]]).collect();
    let of: Vec<usize> = gathered.iter().map(|p| poles[*p]).chain(done.iter().copied()).map(|i| start + i).collect();
    let values: Vec<f64> = roots.iter().map(|r| pd[r.pole] + r.by).chain(done.iter().map(|i| d[*i])).collect();
    d.copy_from_slice(&values);
    // SAFETY: rows of the merger.
    unsafe {
        x.gather(&h, &of, workers)?;
        x.multiply(&h, &reach, product, workers, &|i, to| equation.vector(roots[i], &gd, &gw, to))?;
        x.put_back(&h, k);
    }
    sort(d, start, order);
    Ok(())
}
