//! The numbers of linear algebra: doubles, and pairs of them. Matrices of single precision are computed in double and rounded once.
//!
//! INVARIANT: a number is finite or not as its parts are; no operation panics.
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// A real or complex number in double precision.
pub trait RealOrComplex:
    Copy
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
    const COMPLEX: bool;
    const ZERO: Self;
    const ONE: Self;
    /// The imaginary part is left out where there is no place for it.
    fn new(re: f64, im: f64) -> Self;
    fn re(self) -> f64;
    fn im(self) -> f64;
    fn conj(self) -> Self;
    fn scale(self, by: f64) -> Self;
    fn real(x: f64) -> Self {
        Self::new(x, 0.0)
    }
    fn complex(self) -> C128 {
        C128 { re: self.re(), im: self.im() }
    }
    fn abs(self) -> f64 {
        if Self::COMPLEX { self.re().hypot(self.im()) } else { self.re().abs() }
    }
    /// `|x|^2`
    fn square(self) -> f64 {
        if Self::COMPLEX { self.re() * self.re() + self.im() * self.im() } else { self.re() * self.re() }
    }
    /// `|re| + |im|`: what pivots are chosen by.
    fn size(self) -> f64 {
        self.re().abs() + self.im().abs()
    }
    fn finite(self) -> bool {
        self.re().is_finite() && self.im().is_finite()
    }
}
impl RealOrComplex for f64 {
    const COMPLEX: bool = false;
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn new(re: f64, _: f64) -> f64 {
        re
    }
    #[inline(always)]
    fn re(self) -> f64 {
        self
    }
    #[inline(always)]
    fn im(self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn conj(self) -> f64 {
        self
    }
    #[inline(always)]
    fn scale(self, by: f64) -> f64 {
        self * by
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct C128 {
    pub re: f64,
    pub im: f64,
}
impl RealOrComplex for C128 {
    const COMPLEX: bool = true;
    const ZERO: C128 = C128 { re: 0.0, im: 0.0 };
    const ONE: C128 = C128 { re: 1.0, im: 0.0 };
    #[inline(always)]
    fn new(re: f64, im: f64) -> C128 {
        C128 { re, im }
    }
    #[inline(always)]
    fn re(self) -> f64 {
        self.re
    }
    #[inline(always)]
    fn im(self) -> f64 {
        self.im
    }
    #[inline(always)]
    fn conj(self) -> C128 {
        C128 { re: self.re, im: -self.im }
    }
    #[inline(always)]
    fn scale(self, by: f64) -> C128 {
        C128 { re: self.re * by, im: self.im * by }
    }
}
impl Add for C128 {
    type Output = C128;
    #[inline(always)]
    fn add(self, o: C128) -> C128 {
        C128 { re: self.re + o.re, im: self.im + o.im }
    }
}
impl Sub for C128 {
    type Output = C128;
    #[inline(always)]
    fn sub(self, o: C128) -> C128 {
        C128 { re: self.re - o.re, im: self.im - o.im }
    }
}
impl Mul for C128 {
    type Output = C128;
    #[inline(always)]
    fn mul(self, o: C128) -> C128 {
        C128 { re: self.re * o.re - self.im * o.im, im: self.re * o.im + self.im * o.re }
    }
}
/// By the larger part of the divisor first (Smith 1962), so that nothing overflows on the way.
impl Div for C128 {
    type Output = C128;
    fn div(self, o: C128) -> C128 {
        if o.re.abs() >= o.im.abs() {
            let r = o.im / o.re;
            let d = o.re + o.im * r;
            // by zero: as the parts say
            let r = if o.re == 0.0 { 0.0 } else { r };
            let d = if o.re == 0.0 { o.re } else { d };
            C128 { re: (self.re + self.im * r) / d, im: (self.im - self.re * r) / d }
        } else {
            let r = o.re / o.im;
            let d = o.im + o.re * r;
            C128 { re: (self.re * r + self.im) / d, im: (self.im * r - self.re) / d }
        }
    }
}
impl Neg for C128 {
    type Output = C128;
    #[inline(always)]
    fn neg(self) -> C128 {
        C128 { re: -self.re, im: -self.im }
    }
}
impl AddAssign for C128 {
    #[inline(always)]
    fn add_assign(&mut self, o: C128) {
        *self = *self + o;
    }
}
impl SubAssign for C128 {
    #[inline(always)]
    fn sub_assign(&mut self, o: C128) {
        *self = *self - o;
    }
}

/// `sum conj(x) y`
#[inline]
pub fn dot<T: RealOrComplex>(x: &[T], y: &[T]) -> T {
    x.iter().zip(y).fold(T::ZERO, |s, (x, y)| s + x.conj() * *y)
}
/// `y -= a x`
#[inline]
pub fn subtract<T: RealOrComplex>(y: &mut [T], a: T, x: &[T]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y -= a * *x);
}
/// The Euclidean norm, scaled so that squares neither overflow nor vanish.
pub fn norm<T: RealOrComplex>(x: impl Iterator<Item = T> + Clone) -> f64 {
    let most = x.clone().fold(0.0f64, |m, x| m.max(x.re().abs()).max(x.im().abs()));
    if most == 0.0 || !most.is_finite() {
        // a maximum passes over nans
        return x.fold(most, |s, x| s + x.square() * 0.0);
    }
    if (1e-140..1e140).contains(&most) {
        return x.map(T::square).sum::<f64>().sqrt();
    }
    let by = if most < 1.0 { 2f64.powi(660) } else { 2f64.powi(-660) };
    x.map(|x| x.scale(by).square()).sum::<f64>().sqrt() / by
}
/// Two rows of an array of rows of `n`.
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
/// The transpose of an `m` by `n` array, conjugated where asked.
pub fn transposed<T: RealOrComplex>(a: &[T], m: usize, n: usize, conjugate: bool, out: &mut [T]) {
    for i in 0..m {
        for j in 0..n {
            let x = a[i * n + j];
            out[j * m + i] = if conjugate { x.conj() } else { x };
        }
    }
}
/// A power of two that brings the largest part near 1, and 1 where all are zero.
pub fn unit_scale<T: RealOrComplex>(a: &[T]) -> f64 {
    let most = a.iter().fold(0.0f64, |m, x| m.max(x.re().abs()).max(x.im().abs()));
    if (1e-10..1e10).contains(&most) || most == 0.0 { 1.0 } else { 2f64.powi(-(most.log2() as i32).clamp(-1000, 1000)) }
}
