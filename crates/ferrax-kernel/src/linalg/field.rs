//! The element types of one matrix, and operations on vectors and arrays of them. Single precision
//! is computed in double precision and rounded once.
//!
//! Loops over lanes are written as loops, not closures: the compiler would compile a closure as a
//! function of its own, without the instruction set of its caller.
//!
//! INVARIANT: a number is finite if all its parts are finite; no operation panics.
use super::lanes::{ComplexLanes, ElementLanes, LaneMask, Masks, RealLanes};

/// A real or complex number in double precision.
pub trait RealOrComplex: ElementLanes<Real = f64> + PartialEq {
    const ZERO: Self;
    const ONE: Self;
    fn complex(self) -> C128 {
        C128 { re: self.re(), im: self.im() }
    }
}
impl RealOrComplex for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
}
impl RealOrComplex for C128 {
    const ZERO: C128 = C128 { re: 0.0, im: 0.0 };
    const ONE: C128 = C128 { re: 1.0, im: 0.0 };
}
pub type C128 = ComplexLanes<f64>;

/// `sum conj(x) y`
#[inline(always)]
pub fn dot<E: ElementLanes>(x: &[E], y: &[E]) -> E {
    let mut s = E::all(0.0);
    for (x, y) in x.iter().zip(y) {
        s += x.conj() * *y;
    }
    s
}
/// `y -= a x`
#[inline(always)]
pub fn subtract<E: ElementLanes>(y: &mut [E], a: E, x: &[E]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y -= a * *x;
    }
}
/// The largest part; nans are passed over.
#[inline(always)]
fn most<E: ElementLanes>(x: impl Iterator<Item = E>) -> E::Real {
    let mut most = E::Real::splat(0.0);
    for x in x {
        most = most.greater(RealLanes::abs(x.re()));
        if E::COMPLEX {
            most = most.greater(RealLanes::abs(x.im()));
        }
    }
    most
}
/// The sum of squares.
#[inline(always)]
pub fn squares<E: ElementLanes>(x: impl Iterator<Item = E>) -> E::Real {
    let mut s = E::Real::splat(0.0);
    for x in x {
        s += x.square();
    }
    s
}
/// `x a`, for a real number.
#[inline(always)]
pub fn scaled<E: ElementLanes>(a: &mut [E], by: E::Real) {
    for x in a {
        *x = x.scale(by);
    }
}
/// The Euclidean norm, scaled so that squares neither overflow nor vanish.
#[inline(always)]
pub fn norm<E: ElementLanes>(x: impl Iterator<Item = E> + Clone) -> E::Real {
    let most = most(x.clone());
    let (low, high) = (most.less(E::Real::splat(1e-140)), E::Real::splat(1e140).less(most));
    if !low.or(high).any() {
        return squares(x).sqrt();
    }
    let up = E::Real::select(low, E::Real::splat(2f64.powi(660)), E::Real::splat(1.0));
    let by = E::Real::select(high, E::Real::splat(2f64.powi(-660)), up);
    let mut s = E::Real::splat(0.0);
    for x in x {
        s += x.scale(by).square();
    }
    s.sqrt() / by
}
/// Two rows of an array of rows of `n`.
#[inline(always)]
pub fn rows<T>(a: &mut [T], n: usize, i: usize, j: usize) -> (&mut [T], &mut [T]) {
    debug_assert!(i != j);
    if i < j {
        let (x, y) = a.split_at_mut(j * n);
        (&mut x[i * n..(i + 1) * n], &mut y[..n])
    } else {
        let (x, y) = a.split_at_mut(i * n);
        (&mut y[..n], &mut x[j * n..(j + 1) * n])
    }
}
/// Exchanges rows i and j where `holds`.
#[inline(always)]
pub fn swap_rows<E: ElementLanes>(a: &mut [E], n: usize, i: usize, j: usize, holds: Masks<E>) {
    if i != j && n > 0 {
        let (x, y) = rows(a, n, i, j);
        for (x, y) in x.iter_mut().zip(y) {
            (*x, *y) = (E::choose(holds, *y, *x), E::choose(holds, *x, *y));
        }
    }
}
/// The transpose of an `m` by `n` array, conjugated on request.
#[inline(always)]
pub fn transposed<E: ElementLanes>(a: &[E], m: usize, n: usize, conjugate: bool, out: &mut [E]) {
    for i in 0..m {
        for j in 0..n {
            let x = a[i * n + j];
            out[j * m + i] = if conjugate { x.conj() } else { x };
        }
    }
}
/// A power of two that brings the largest part near 1, and 1 where all are zero.
#[inline(always)]
pub fn unit_scale<E: ElementLanes>(a: &[E]) -> E::Real {
    let most = most(a.iter().copied());
    if !most.less(E::Real::splat(1e-10)).or(E::Real::splat(1e10).less(most)).any() {
        return E::Real::splat(1.0);
    }
    let mut scales = [1.0; 64];
    most.each(E::Real::LANES, |k, most| {
        let near = (1e-10..=1e10).contains(&most) || most == 0.0;
        scales[k] = if near { 1.0 } else { 2f64.powi(-(most.log2() as i32).clamp(-1000, 1000)) };
    });
    E::Real::from_fn(|k| scales[k])
}
