//! Singular values and vectors of bidiagonal matrices, by divide and conquer.
//!
//! ```text
//! B = ( B1          )    B1 and B2 have a column more than rows (B2 not where it is the last);  with  B1 = U1 (D1 0) V1'  and so B2
//!     ( a e'  b f'  )    B = (U1, 1, U2) ( z_0 z' ) (V1, V2)'     z from a column of V1 and V2 each
//!     (        B2   )                    (     D  )
//! ```
//! Squares of the middle's singular values are the roots of a secular equation, whose poles are the squares of 0 and of D. Gu and Eisenstat 1995 ("A
//! divide-and-conquer algorithm for the bidiagonal SVD"). Poles that nearly coincide, or have a negligible z, are deflated first, as in [`conquer`](super::eigen_divide_and_conquer). Vectors are rows: the k-th
//! left and the k-th right one belong together, and the last row of a part, except of the last part, is the null vector of its matrix.
//!
//! INVARIANT: as in [`reflections`](super::householder): bits depend on sizes alone.
#![allow(unsafe_code)]
use super::eigen_divide_and_conquer::{in_turn, sort, tree};
use super::householder::Workers;
use super::matrix_vector::RowElement;
use super::secular_equation::{Secular, SecularRoot};
use super::vector_merge::{Deflated, Halves, Pieces, Reach, Vectors, merge_ascending};
use ferrax_host::panel::Rows;
use ferrax_kernel::Res;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows that are not cut.
const LEAF: usize = 31;

/// Singular values in `values`, and which rows of `u` and `v` belong to them, from the least up; of the upper bidiagonal matrix of `d` and `e` (whose
/// last element is not used); or `None` if QR steps do not converge.
///
/// # Safety
/// `u` and `v` have as many rows and columns as `d` has elements, this caller's.
pub unsafe fn bidiagonal<T: RowElement>(
    [u, v]: [&Vectors<T>; 2],
    d: &[f64],
    e: &[f64],
    values: &mut [f64],
    product: Rows,
    workers: Workers,
) -> Res<Option<Vec<usize>>> {
    let n = d.len();
    let (leaves, levels) = tree(n, LEAF, 1);
    for x in [u, v] {
        // SAFETY: the vectors' memory.
        unsafe { std::slice::from_raw_parts_mut(x.q, n * x.lead).fill(T::default()) };
    }
    let mut order: Vec<usize> = (0..n).collect();
    let (values, places) = (Pieces::new(values), Pieces::new(&mut order));
    let failed = AtomicBool::new(false);
    let norm = d.iter().chain(e).fold(0.0f64, |m, x| m.max(x.abs()));
    // of a matrix of zeros all vectors are left as they are
    let both = Both { u: *u, v: *v, d, e, norm: if norm == 0.0 { f64::EPSILON } else { norm } };
    workers.pieces(leaves.len(), 1, n as f64 * 4_000.0, 0, &|k, _| {
        let r = leaves[k.start].clone();
        // SAFETY: the rows of a leaf are one piece's.
        if !unsafe { both.leaf(r.clone(), values.of(r.clone()), places.of(r)) } {
            failed.store(true, Ordering::Relaxed);
        }
    })?;
    if failed.into_inner() {
        return Ok(None);
    }
    for level in &levels {
        in_turn(level, workers, &|at, workers| {
            let r = at[0]..at[2];
            // SAFETY: the rows of a merger are one piece's.
            unsafe { both.merge(at, values.of(r.clone()), places.of(r), product, workers) }
        })?;
    }
    if norm == 0.0 {
        // SAFETY: no piece is left.
        unsafe { values.of::<f64>(0..n) }.fill(0.0);
    }
    Ok(Some(order))
}

/// Singular values in the place of `d`, from the greatest down, of the upper bidiagonal matrix of `d` and `e` (whose last element is not used); whether QR
/// steps have converged. Without vectors there is nothing to rotate, and QR steps are faster than divide and conquer.
pub fn values(d: &mut [f64], e: &mut [f64]) -> bool {
    if d.iter().chain(e.iter().take(d.len() - 1)).all(|x| *x == 0.0) {
        d.fill(0.0);
        return true;
    }
    let done = steps(d, e, &mut |_, _, _, _| ());
    d.iter_mut().for_each(|x| *x = x.abs());
    d.sort_unstable_by(|x, y| y.total_cmp(x));
    done
}

struct Both<'a, T> {
    u: Vectors<T>,
    v: Vectors<T>,
    d: &'a [f64],
    e: &'a [f64],
    /// The largest magnitude of their elements, which is not 0.
    norm: f64,
}
impl<T: RowElement> Both<'_, T> {
    /// Whether the part that ends there has a column more than rows.
    fn is_wide(&self, end: usize) -> bool {
        end < self.d.len()
    }
    /// Up to [`LEAF`] rows by implicit QR steps, and whether they converged.
    ///
    /// # Safety
    /// The rows of both, and the row after them, are this caller's.
    unsafe fn leaf(&self, r: Range<usize>, values: &mut [f64], order: &mut [usize]) -> bool {
        let (n, wide) = (r.len(), self.is_wide(r.end));
        let (mut u, mut v) = ([[0.0f64; LEAF + 1]; LEAF + 1], [[0.0f64; LEAF + 1]; LEAF + 1]);
        (0..=n).for_each(|i| (u[i][i], v[i][i]) = (1.0, 1.0));
        values.copy_from_slice(&self.d[r.clone()]);
        let mut e = [0.0f64; LEAF + 1];
        let inner = n - !wide as usize;
        e[..inner].copy_from_slice(&self.e[r.start..r.start + inner]);
        let mut turn = |left: bool, i: usize, c: f64, s: f64| {
            let (before, rest) = if left { &mut u } else { &mut v }.split_at_mut(i + 1);
            for (x, y) in before[i].iter_mut().zip(&mut rest[0]) {
                (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
            }
        };
        if wide {
            squared(values, &mut e, &mut turn);
        }
        let done = steps(values, &mut e, &mut turn);
        for i in 0..n {
            if values[i] < 0.0 {
                values[i] = -values[i];
                v[i].iter_mut().for_each(|x| *x = -*x);
            }
        }
        let put = |x: &Vectors<T>, of: &[[f64; LEAF + 1]], n: usize| {
            for (i, row) in of[..n].iter().enumerate() {
                for (j, a) in row[..n].iter().enumerate() {
                    // SAFETY: an element of these rows.
                    unsafe { *x.q.add((r.start + i) * x.lead + r.start + j) = T::narrow(*a) };
                }
            }
        };
        put(&self.u, &u, n);
        put(&self.v, &v, n + wide as usize);
        sort(values, r.start, order);
        done
    }
    /// Deflates the poles `d`, sorted by `rising`; `z[0]` belongs to the pole 0 at the middle;
    /// entries of at most `tolerance` are dropped.
    ///
    /// # Safety
    /// As for [`Both::merge`].
    unsafe fn deflate(
        &self,
        h: &Halves,
        middle: usize,
        rising: &[usize],
        (d, z): (&mut [f64], &mut [f64]),
        tolerance: f64,
    ) -> Deflated {
        let start = h.rows.start;
        let mut reach: Vec<Reach> =
            h.rows.clone().map(|i| if i < middle { Reach::Top } else { Reach::Bottom }).collect();
        let (mut poles, mut done) = (Vec::with_capacity(d.len()), Vec::with_capacity(d.len()));
        poles.push(middle - start);
        let mut last: Option<usize> = None;
        for &i in rising {
            if z[i].abs() <= tolerance {
                done.push(i);
                continue;
            }
            if let Some(p) = last {
                if d[i] - d[p] <= tolerance {
                    let size = z[p].hypot(z[i]);
                    let (c, s) = (z[i] / size, -z[p] / size);
                    (z[p], z[i]) = (0.0, size);
                    reach[i] = reach[i].and(reach[p]);
                    reach[p] = reach[i];
                    for x in [&self.u, &self.v] {
                        // SAFETY: two rows of the merger.
                        unsafe { x.turn(start + p, start + i, start..h.bottom.end, c, s) };
                    }
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
    /// Two parts and the row between them become one.
    ///
    /// # Safety
    /// The rows of both, and the row after them, are this caller's.
    unsafe fn merge(
        &self,
        [start, middle, end]: [usize; 3],
        values: &mut [f64],
        order: &mut [usize],
        product: Rows,
        workers: Workers,
    ) -> Res<()> {
        let (n, at, wide) = (end - start, middle - start, self.is_wide(end));
        let (alpha, beta) = (self.d[middle], self.e[middle]);
        let columns = end + wide as usize;
        let left = Halves { rows: start..end, top: start..middle + 1, bottom: middle + 1..end };
        let right = Halves { bottom: middle + 1..columns, ..left.clone() };
        let (u, v) = (&self.u, &self.v);
        // SAFETY: elements of these rows.
        let of = |i: usize| unsafe { if i <= middle { alpha * v.at(i, middle) } else { beta * v.at(i, middle + 1) } };
        let mut z: Vec<f64> = (start..end).map(of).collect();
        if wide {
            let other = of(end);
            let size = z[at].hypot(other);
            if size > 0.0 {
                // SAFETY: two rows of this merger.
                unsafe { v.turn(middle, end, start..columns, z[at] / size, other / size) };
            }
            z[at] = size;
        }
        // SAFETY: an element of the middle's row, which is zero elsewhere.
        unsafe { *u.q.add(middle * u.lead + middle) = T::narrow(1.0) };
        let rising = merge_ascending(values, &order[..n], start, [at, at + 1]);
        let most = rising.last().map_or(0.0, |i| values[*i]);
        // parts that are negligible beside the whole would vanish when squared
        let most = most.max(alpha.abs()).max(beta.abs()).max(self.norm / 1024.0);
        let tolerance = 8.0 * T::ROUNDING * most;
        values[at] = 0.0;
        z[at] = if z[at].abs() <= tolerance { tolerance } else { z[at] };
        // SAFETY: by the contract.
        let Deflated { poles, done, mut reach } =
            unsafe { self.deflate(&right, middle, &rising, (values, &mut z), tolerance) };
        let k = poles.len();
        let mut pd: Vec<f64> = poles.iter().map(|i| values[*i]).collect();
        if k > 1 {
            // away from the pole at 0
            pd[1] = pd[1].max(tolerance / 2.0);
        }
        let squares: Vec<f64> = poles.iter().map(|i| z[*i] * z[*i]).collect();
        let total = squares.iter().sum::<f64>();
        let squares: Vec<f64> = squares.iter().map(|z| z / total).collect();
        let equation = Secular { d: &pd, squares: &squares, rho: total, exact: Secular::exact::<T>(), squared: true };
        let (roots, mut weights) = equation.solve(workers)?;
        for (w, i) in weights.iter_mut().zip(&poles) {
            *w = w.abs().sqrt().copysign(z[*i]);
        }
        let new: Vec<f64> = roots.iter().map(|r| pd[r.pole] + r.by).chain(done.iter().map(|i| values[*i])).collect();
        for (x, h, is_left) in [(u, &left, true), (v, &right, false)] {
            reach[at] = if is_left || !wide { Reach::Top } else { Reach::All };
            let mut gathered: Vec<usize> = (0..k).collect();
            gathered.sort_by_key(|p| reach[poles[*p]]);
            let (gd, gw): (Vec<f64>, Vec<f64>) = gathered.iter().map(|p| (pd[*p], weights[*p])).unzip();
            let reaches: Vec<Reach> = gathered.iter().map(|p| reach[poles[*p]]).collect();
            let zero = gathered.iter().position(|p| *p == 0).expect("the pole at 0 stays");
            let of: Vec<usize> = gathered.iter().map(|p| poles[*p]).chain(done.iter().copied()).collect();
            let of: Vec<usize> = of.into_iter().map(|i| start + i).collect();
            let row =
                |i: usize, to: &mut [f64]| left_or_right(&equation, roots[i], is_left.then_some(zero), &gd, &gw, to);
            // SAFETY: rows of the merger.
            unsafe {
                x.gather(h, &of, workers)?;
                x.multiply(h, &reaches, product, workers, &row)?;
                x.put_back(h, k);
            }
        }
        values.copy_from_slice(&new);
        sort(values, start, order);
        Ok(())
    }
}
/// The right or the left vector of a root; the left one's element for the pole at 0 is at `zero`.
fn left_or_right(
    equation: &Secular,
    root: SecularRoot,
    zero: Option<usize>,
    d: &[f64],
    weights: &[f64],
    to: &mut [f64],
) {
    equation.vector(root, d, weights, to);
    let Some(zero) = zero else { return };
    // -1 where the right one's element is z_0 / -x, before that got its length
    let x = equation.d[root.pole] + root.by;
    let first = to[zero] / weights[zero] * (x * x);
    for (x, d) in to.iter_mut().zip(d) {
        *x *= d;
    }
    to[zero] = first;
    let size = to.iter().map(|x| x * x).sum::<f64>().sqrt();
    to.iter_mut().for_each(|x| *x /= size);
}

/// A rotation that takes (f, g) to (r, 0).
fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    // PERF: enough for numbers whose squares are not too small, which nearly all are.
    let r = (f * f + g * g).sqrt();
    let r = if (1e-140..1e140).contains(&r) { r } else { f.hypot(g) };
    if r == 0.0 { (1.0, 0.0, 0.0) } else { (f / r, g / r, r) }
}
/// Takes the extra column to zero: by rotations of columns, which make the matrix lower bidiagonal, then of rows.
fn squared(d: &mut [f64], e: &mut [f64], turn: &mut dyn FnMut(bool, usize, f64, f64)) {
    let n = d.len();
    for i in 0..n {
        let (c, s, r) = rotation(d[i], e[i]);
        d[i] = r;
        turn(false, i, c, s);
        e[i] = 0.0;
        if i + 1 < n {
            e[i] = s * d[i + 1];
            d[i + 1] *= c;
        }
    }
    for i in 0..n - 1 {
        let (c, s, r) = rotation(d[i], e[i]);
        d[i] = r;
        e[i] = s * d[i + 1];
        d[i + 1] *= c;
        turn(true, i, c, s);
    }
}
/// Diagonalises an upper bidiagonal matrix; `turn(left, i, c, s)` is called for each rotation of i and i + 1 (Golub and Van Loan, algorithm 8.6.2; Demmel and Kahan
/// 1990, without a shift if a value is negligible).
fn steps(d: &mut [f64], e: &mut [f64], turn: &mut impl FnMut(bool, usize, f64, f64)) -> bool {
    const MAX_STEPS: usize = 60;
    let n = d.len();
    let norm = d.iter().chain(&e[..n - 1]).fold(0.0f64, |m, x| m.max(x.abs()));
    let nothing = (f64::EPSILON / 4.0 * norm).max(f64::MIN_POSITIVE);
    let (mut end, mut left) = (n, MAX_STEPS * n);
    while end > 1 {
        if e[end - 2].abs() <= nothing {
            end -= 1;
            continue;
        }
        if left == 0 {
            return false;
        }
        left -= 1;
        let start = (0..end - 2).rev().find(|i| e[*i].abs() <= nothing).map_or(0, |i| i + 1);
        let shift = if d[start..end].iter().any(|d| d.abs() <= nothing) {
            0.0
        } else {
            smaller_value(d[end - 2], e[end - 2], d[end - 1])
        };
        let first = d[start].abs();
        let has_shift = shift > 0.0 && (shift / first).powi(2) > f64::EPSILON;
        let mut f = if has_shift { (first - shift) * (d[start].signum() + shift / d[start]) } else { d[start] };
        let mut g = e[start];
        for i in start..end - 1 {
            let (c, s, r) = rotation(f, g);
            if i > start {
                e[i - 1] = r;
            }
            f = c * d[i] + s * e[i];
            e[i] = c * e[i] - s * d[i];
            g = s * d[i + 1];
            d[i + 1] *= c;
            turn(false, i, c, s);
            let (c, s, r) = rotation(f, g);
            d[i] = r;
            f = c * e[i] + s * d[i + 1];
            d[i + 1] = c * d[i + 1] - s * e[i];
            if i + 2 < end {
                g = s * e[i + 1];
                e[i + 1] *= c;
            }
            turn(true, i, c, s);
        }
        e[end - 2] = f;
    }
    true
}
/// The smaller singular value of `(f g; 0 h)`.
fn smaller_value(f: f64, g: f64, h: f64) -> f64 {
    let (f, g, h) = (f.abs(), g.abs(), h.abs());
    let large = (f + h).hypot(g);
    let other = (f - h).hypot(g);
    // the product of both values is f h, their sum and difference the two above
    2.0 * (f / (large + other)) * h
}
