//! `Fft`: one axis after the other, by passes in which a workgroup holds whole transforms, of up to 2048 numbers ([`pass`]).
//!
//! ```text
//!     n = a b:    X[k1 + a k2] = sum_i2 w_b^(i2 k2) w_n^(i2 k1) sum_i1 w_a^(i1 k1) x[i1 b + i2]        two passes
//!     other n:    X[k] = c[k] sum_j (c[j] x[j]) / c[k - j],   c[j] = w_2n^(j^2)                        by transforms of a power of two
//! ```
mod pass;

use crate::task::{Limits, Reg};
use crate::wgsl::Lowered;
use ferrax_kernel::routine::{Fft, FftKind};
use ferrax_kernel::{DType, Error, Res};
use pass::{Form, Load, Store, Transforms};

/// Numbers that a workgroup holds, in 16 KiB.
const MAX_HELD: usize = 2048;
/// Lengths whose squares a shader counts.
const MAX_SQUARED: usize = 1 << 16;

/// Whether shaders have the transforms of `f`.
pub fn has(f: &Fft) -> bool {
    f.dtype == DType::F32 && f.lengths.iter().all(|n| split(*n).is_some() || *n < MAX_SQUARED)
}

/// Factors of two to seven of a length, if it has no others.
fn radices(n: usize) -> Option<Vec<usize>> {
    let (mut rest, mut all) = (n, vec![]);
    for r in [4, 2, 3, 5, 7] {
        while rest.is_multiple_of(r) {
            rest /= r;
            all.push(r);
        }
    }
    (rest == 1).then_some(all)
}
/// A length as a product of two that workgroups hold, the first of which is 1 where one will do.
fn split(n: usize) -> Option<(usize, usize)> {
    radices(n)?;
    if n <= MAX_HELD {
        return Some((1, n));
    }
    let mut near = (1..=n.isqrt()).rev();
    near.find(|a| n.is_multiple_of(*a)).map(|a| (a, n / a)).filter(|(_, b)| *b <= MAX_HELD)
}

pub fn lower(f: &Fft, limits: Limits) -> Res<Lowered> {
    let mut task = Lowered::default();
    let rank = f.lengths.len();
    let (last, half) = (f.lengths[rank - 1], f.last());
    let mut narrow = f.lengths.clone();
    narrow[rank - 1] = half;
    // the axes in turn: real numbers become complex first, and are made last
    let mut axes: Vec<usize> = (0..rank).collect();
    if f.kind == FftKind::RealForward {
        axes.rotate_right(1);
    }
    let mut from = Reg::In(0);
    for (k, axis) in axes.iter().enumerate() {
        let is_last = *axis == rank - 1;
        let n = if is_last { last } else { f.lengths[*axis] };
        let outer = f.outer * narrow[..*axis].iter().product::<usize>();
        let inner = narrow[axis + 1..].iter().product::<usize>() * f.inner;
        let form = match f.kind {
            FftKind::RealForward if is_last => Form::Real,
            FftKind::RealInverse if is_last => Form::Hermitian(n),
            _ => Form::Complex,
        };
        let to = if k + 1 == rank { Reg::Out(0) } else { task.add_scratch(8 * outer * narrow[*axis] * inner) };
        let is_real = form == Form::Hermitian(n);
        let given = if form == Form::Real { n } else { narrow[*axis] };
        let made = if is_real { n } else { narrow[*axis] };
        let scale = if f.is_inverse() { 1.0 / n as f64 } else { 1.0 };
        let load = Load { reads: vec![from], len: given, form, chirp: None };
        let store = Store { to, len: made, is_real, scale, chirp: None };
        let axis = Axis { outer, n, inner, inverse: f.is_inverse(), limits };
        axis.along(&mut task, load, store)?;
        from = to;
    }
    Ok(task)
}

/// The middle axis of `[outer, n, inner]`.
struct Axis {
    outer: usize,
    n: usize,
    inner: usize,
    inverse: bool,
    limits: Limits,
}

impl Axis {
    fn along(&self, task: &mut Lowered, load: Load, store: Store) -> Res<()> {
        match split(self.n) {
            Some(parts) => self.transform(task, parts, load, store),
            None => self.by_chirps(task, load, store),
        }
    }
    /// One pass, or two for a length of two factors.
    fn transform(&self, task: &mut Lowered, (a, b): (usize, usize), load: Load, store: Store) -> Res<()> {
        let Axis { outer, n, inner, inverse, limits } = *self;
        let pass = Transforms { outer, parts: 1, inner, n: b, at: [1, 0], to: [1, 0], turn: None, inverse };
        if a == 1 {
            return pass.lower(task, &load, &store, limits);
        }
        let between = task.add_scratch(8 * outer * n * inner);
        let first = Transforms { parts: b, n: a, at: [b, 1], to: [b, 1], turn: Some(n), ..pass };
        first.lower(task, &load, &Store::of(between, n), limits)?;
        let second = Transforms { parts: a, at: [1, b], to: [a, 1], ..pass };
        second.lower(task, &Load::of(vec![between], n), &store, limits)
    }
    /// As a convolution, which transforms of a power of two have.
    fn by_chirps(&self, task: &mut Lowered, load: Load, store: Store) -> Res<()> {
        let (n, limits) = (self.n, self.limits);
        let m = (2 * n - 1).next_power_of_two();
        let parts = split(m).filter(|_| n < MAX_SQUARED);
        let parts = parts.ok_or_else(|| Error::Unsupported(format!("a transform of {n} numbers")))?;
        let chirp = Some((n, self.inverse));
        let long = Axis { n: m, inverse: false, ..*self };
        let (numbers, filter) = (task.add_scratch(8 * self.outer * m * self.inner), task.add_scratch(8 * m));
        long.transform(task, parts, Load { chirp, ..load }, Store::of(numbers, m))?;
        let of_filter = Load { reads: vec![], len: m, form: Form::Filter, chirp: Some((n, !self.inverse)) };
        let one = Axis { outer: 1, n: m, inner: 1, inverse: false, limits };
        one.transform(task, parts, of_filter, Store::of(filter, m))?;
        let back = Axis { inverse: true, ..long };
        let store = Store { chirp, scale: store.scale / m as f64, ..store };
        back.transform(task, parts, Load::of(vec![numbers, filter], m), store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_products_that_workgroups_hold() {
        for n in 1..10_000 {
            let Some((a, b)) = split(n) else { continue };
            assert!(a * b == n && b <= MAX_HELD && (a == 1) == (n <= MAX_HELD), "{n}: {a} by {b}");
            for part in [a, b] {
                assert_eq!(radices(part).unwrap().iter().product::<usize>(), part);
            }
        }
        assert_eq!(
            [split(1 << 20), split(1 << 22), split(1 << 23), split(11)].map(|s| s.is_some()),
            [true, true, false, false]
        );
    }
}
