//! Roots of `1 / rho + sum z_i^2 / (d_i - x)`, which are the eigenvalues of `D + rho z z'`, and the vectors that belong to them. For singular values, poles and roots
//! are squares, represented by their square roots.
//!
//! Between two poles the function is approximated by one with two poles and a constant, which agrees with it and with the slopes of its two parts ("the middle way", Ren-Cang Li
//! 1993, LAPACK working note 89), within a bracket that each evaluation narrows. Roots are represented by their distance from the nearer pole, so that all differences
//! `d_i - x` are accurate. Vectors are computed from the `z` for which the computed roots are exact (Gu and Eisenstat 1994), so they are orthogonal independent of the accuracy of
//! the roots.
//!
//! INVARIANT: sums over poles are kept in eight parts, by position: bits do not depend on the width of vectors.
#![allow(unsafe_code)]
use super::householder::Workers;
use super::matrix_vector::RowElement;
use super::vector_merge::Pieces;
use ferrax_host::Tier;
use ferrax_kernel::Res;

/// Poles `d`, rising; the squares of `z`, whose sum is 1; and `rho > 0`.
#[derive(Clone, Copy)]
pub struct Secular<'a> {
    pub d: &'a [f64],
    pub squares: &'a [f64],
    pub rho: f64,
    /// The tolerance of a value at a root, relative to the sum of the magnitudes of its terms.
    pub exact: f64,
    /// Whether the poles are the squares of `d`.
    pub squared: bool,
}
/// `d[pole] + by`: the root, or its square root.
#[derive(Clone, Copy, Default, Debug)]
pub struct SecularRoot {
    pub pole: usize,
    pub by: f64,
}

/// A value and its parts: terms of the poles before `split`, negative, and of those from it on, with their slopes.
#[derive(Clone, Copy)]
struct Value {
    below: f64,
    above: f64,
    slope_below: f64,
    slope_above: f64,
}

const LANES: usize = 8;
fn total(x: [f64; LANES]) -> f64 {
    ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
}

/// A pole less `x`, both relative to an origin; squares for singular values.
#[inline(always)]
fn difference<const S: bool>(d: f64, origin: f64, by: f64) -> f64 {
    let near = (d - origin) - by;
    if S { near * ((d + origin) + by) } else { near }
}
/// The result of a step from `x`.
#[inline(always)]
fn moved<const S: bool>(origin: f64, by: f64, step: f64) -> f64 {
    if !S {
        return by + step;
    }
    let x = origin + by;
    by + step / (x + (x * x + step).max(0.0).sqrt())
}
/// Sums of `z^2 / (d - x)` and of `z^2 / (d - x)^2` over some poles.
#[inline(always)]
fn sums<const S: bool>(d: &[f64], squares: &[f64], origin: f64, by: f64) -> [f64; 2] {
    let (mut value, mut slope) = ([0.0; LANES], [0.0; LANES]);
    let ((d, d_rest), (z, z_rest)) = (d.as_chunks::<LANES>(), squares.as_chunks::<LANES>());
    for (d, z) in d.iter().zip(z) {
        for l in 0..LANES {
            let one = 1.0 / difference::<S>(d[l], origin, by);
            let term = z[l] * one;
            value[l] += term;
            slope[l] += term * one;
        }
    }
    for (l, (d, z)) in d_rest.iter().zip(z_rest).enumerate() {
        let one = 1.0 / difference::<S>(*d, origin, by);
        let term = z * one;
        value[l] += term;
        slope[l] += term * one;
    }
    [total(value), total(slope)]
}

/// The contribution of a root to the weights of some poles.
#[inline(always)]
fn ratios<const S: bool>(product: &mut [f64], d: &[f64], origin: f64, by: f64, dj: f64) {
    for (p, d) in product.iter_mut().zip(d) {
        *p *= difference::<S>(*d, origin, by) / difference::<S>(*d, dj, 0.0);
    }
}

impl Secular<'_> {
    #[inline(always)]
    fn value<const S: bool>(&self, split: usize, origin: f64, by: f64) -> Value {
        let [below, slope_below] = sums::<S>(&self.d[..split], &self.squares[..split], origin, by);
        let [above, slope_above] = sums::<S>(&self.d[split..], &self.squares[split..], origin, by);
        Value { below, above, slope_below, slope_above }
    }
    /// How exact roots of matrices of `T` need be.
    pub fn exact<T: RowElement>() -> f64 {
        (T::ROUNDING / 1024.0).max(f64::EPSILON / 2.0)
    }
    /// All roots, and the squares of the z for which they are exact.
    pub fn solve(&self, workers: Workers) -> Res<(Vec<SecularRoot>, Vec<f64>)> {
        let k = self.d.len();
        let (mut roots, mut weights) = (vec![SecularRoot::default(); k], vec![0.0f64; k]);
        let to = Pieces::new(&mut roots);
        // SAFETY: roots of this piece.
        workers.pieces(k, 16, (k * k) as f64 * 5.0, 0, &|r, _| self.roots(r.start, unsafe { to.of(r) }))?;
        let to = Pieces::new(&mut weights);
        // SAFETY: weights of this piece.
        workers.pieces(k, 64, (k * k) as f64, 0, &|r, _| self.weights(&roots, r.start, unsafe { to.of(r) }))?;
        Ok((roots, weights))
    }
    /// The root between pole `j` and the next, or beyond the last one.
    #[inline(always)]
    fn root<const S: bool>(&self, j: usize) -> SecularRoot {
        let (d, z, n) = (self.d, self.squares, self.d.len());
        if n == 1 {
            return SecularRoot { pole: 0, by: moved::<S>(d[0], 0.0, self.rho * z[0]) };
        }
        let last = j + 1 == n;
        // the two poles of the model: those beside the root, of the last one the last two
        let (p, q) = if last { (j - 1, j) } else { (j, j + 1) };
        let gap = difference::<S>(d[q], d[p], 0.0);
        let half = moved::<S>(d[j], 0.0, if last { self.rho } else { gap } / 2.0);
        let constant = 1.0 / self.rho;
        // at the middle, without the two
        let v = self.value::<S>(p + 1, d[j], half);
        let [at_p, at_q] = [p, q].map(|i| z[i] / difference::<S>(d[i], d[j], half));
        let w = constant + v.below + v.above;
        let rest = w - at_p - at_q;
        // values rise between poles
        let left = w > 0.0;
        let pole = if last || left { j } else { j + 1 };
        let origin = d[pole];
        let (mut low, mut high) = match (last, left) {
            (_, true) => (0.0, half),
            (false, false) => (moved::<S>(origin, 0.0, -gap / 2.0), 0.0),
            (true, false) => (half, moved::<S>(origin, 0.0, self.rho)),
        };
        // of the model: rest + z_p / (d_p - x) + z_q / (d_q - x) = 0, from the origin
        let both = z[p] + z[q];
        let first = match (last, left) {
            (false, true) => quadratic(rest, rest * gap + both, z[p] * gap),
            (false, false) => -quadratic(-rest, -rest * gap + both, z[q] * gap),
            (true, _) => beyond(rest, -rest * gap + both, -z[q] * gap),
        };
        let mut by = moved::<S>(origin, 0.0, first);
        if !(by > low && by < high) {
            by = (low + high) / 2.0;
        }
        for turn in 0..200 {
            let v = self.value::<S>(p + 1, origin, by);
            let w = constant + v.below + v.above;
            let slope = v.slope_below + v.slope_above;
            let size =
                constant + (v.above.abs() + v.below.abs()) * 8.0 + difference::<S>(origin, origin, by).abs() * slope;
            if w == 0.0 || w.abs() <= self.exact * size {
                break;
            }
            if w > 0.0 {
                high = by;
            } else {
                low = by;
            }
            let width = high - low;
            if width <= 4.0 * f64::EPSILON * low.abs().max(high.abs()) {
                break;
            }
            let [to_p, to_q] = [p, q].map(|i| difference::<S>(d[i], origin, by));
            let c = w - to_p * v.slope_below - to_q * v.slope_above;
            let a = (to_p + to_q) * w - to_p * to_q * slope;
            let b = to_p * to_q * w;
            let mut step = if last { beyond(c.max(0.0), a, b) } else { quadratic(c, a, b) };
            let goes_down = w * step < 0.0;
            if !goes_down {
                step = -w / slope;
            }
            let next = moved::<S>(origin, by, step);
            // a bracket that does not shrink is halved now and then
            by = if next > low && next < high && turn % 12 != 11 { next } else { low + width / 2.0 };
        }
        SecularRoot { pole, by }
    }
    /// For the poles from `from` on, the `z_i^2` for which these roots are exact: the product over
    /// `j` of `(x_j - d_i) / (d_j - d_i)`, with the numerator alone for `i = j`.
    #[inline(always)]
    fn weights_of<const S: bool>(&self, roots: &[SecularRoot], from: usize, product: &mut [f64]) {
        product.fill(1.0);
        let own = &self.d[from..from + product.len()];
        for (j, r) in roots.iter().enumerate() {
            let (origin, dj) = (self.d[r.pole], self.d[j]);
            if j < from || j >= from + product.len() {
                ratios::<S>(product, own, origin, r.by, dj);
                continue;
            }
            let at = j - from;
            ratios::<S>(&mut product[..at], &own[..at], origin, r.by, dj);
            product[at] *= difference::<S>(dj, origin, r.by);
            ratios::<S>(&mut product[at + 1..], &own[at + 1..], origin, r.by, dj);
        }
    }
    /// The unit vector of a root, of poles and weights in any order.
    #[inline(always)]
    fn vector_of<const S: bool>(&self, root: SecularRoot, d: &[f64], weights: &[f64], to: &mut [f64]) {
        let origin = self.d[root.pole];
        let mut squares = [0.0; LANES];
        for ((to, d), w) in to.iter_mut().zip(d).zip(weights) {
            *to = w / difference::<S>(*d, origin, root.by);
        }
        let (chunks, rest) = to.as_chunks::<LANES>();
        for c in chunks {
            for l in 0..LANES {
                squares[l] += c[l] * c[l];
            }
        }
        for (l, x) in rest.iter().enumerate() {
            squares[l] += x * x;
        }
        let by = 1.0 / total(squares).sqrt();
        for x in to {
            *x *= by;
        }
    }
    #[inline(always)]
    fn roots_of<const S: bool>(&self, from: usize, to: &mut [SecularRoot]) {
        for (i, r) in to.iter_mut().enumerate() {
            *r = self.root::<S>(from + i);
        }
    }
}
macro_rules! compiled {
    ($($(#[$doc:meta])* $name:ident $of:ident ($($x:ident: $T:ty),*);)*) => {
        impl Secular<'_> {$(
            $(#[$doc])*
            pub fn $name(&self, $($x: $T),*) {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                    fn wide(s: &Secular, $($x: $T),*) {
                        if s.squared { s.$of::<true>($($x),*) } else { s.$of::<false>($($x),*) }
                    }
                    #[target_feature(enable = "avx2,fma")]
                    fn narrow(s: &Secular, $($x: $T),*) {
                        if s.squared { s.$of::<true>($($x),*) } else { s.$of::<false>($($x),*) }
                    }
                    if Tier::Avx512.is_available() {
                        // SAFETY: the machine has them.
                        return unsafe { wide(self, $($x),*) };
                    }
                    if Tier::Avx2.is_available() {
                        // SAFETY: the machine has them.
                        return unsafe { narrow(self, $($x),*) };
                    }
                }
                if self.squared { self.$of::<true>($($x),*) } else { self.$of::<false>($($x),*) }
            }
        )*}
    };
}
compiled! {
    /// The roots from the `from`-th on.
    roots roots_of(from: usize, to: &mut [SecularRoot]);
    /// As `weights_of`.
    weights weights_of(roots: &[SecularRoot], from: usize, product: &mut [f64]);
    /// As `vector_of`.
    vector vector_of(root: SecularRoot, d: &[f64], weights: &[f64], to: &mut [f64]);
}

/// The root of `c x^2 - a x + b` between two poles, from one on their left.
#[inline(always)]
fn quadratic(c: f64, a: f64, b: f64) -> f64 {
    let root = (a * a - 4.0 * b * c).abs().sqrt();
    if a <= 0.0 { (a - root) / (2.0 * c) } else { 2.0 * b / (a + root) }
}
/// The other root, which lies beyond both poles.
#[inline(always)]
fn beyond(c: f64, a: f64, b: f64) -> f64 {
    let root = (a * a - 4.0 * b * c).abs().sqrt();
    if a >= 0.0 { (a + root) / (2.0 * c) } else { 2.0 * b / (a - root) }
}
