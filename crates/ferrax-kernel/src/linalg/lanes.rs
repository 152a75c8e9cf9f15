//! Vectors with one matrix in each lane: the type over which the reference decompositions are
//! written.
//!
//! The reference has one lane, an `f64`; a backend provides vectors. Lanes are independent: every
//! operation is one of IEEE 754 in each lane, and choices that differ between matrices use masks,
//! not branches.
//!
//! INVARIANT: the bits of a matrix depend neither on the other lanes nor on their number.
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// In which lanes something holds.
pub trait LaneMask: Copy {
    fn any(self) -> bool;
    fn and(self, o: Self) -> Self;
    fn or(self, o: Self) -> Self;
    fn not(self) -> Self;
}
impl LaneMask for bool {
    #[inline(always)]
    fn any(self) -> bool {
        self
    }
    #[inline(always)]
    fn and(self, o: bool) -> bool {
        self & o
    }
    #[inline(always)]
    fn or(self, o: bool) -> bool {
        self | o
    }
    #[inline(always)]
    fn not(self) -> bool {
        !self
    }
}

/// A real number of each matrix, in double precision.
pub trait RealLanes:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
    type LaneMask: LaneMask;
    const LANES: usize;
    fn splat(x: f64) -> Self;
    /// Lane k is `f(k)`.
    fn from_fn(f: impl FnMut(usize) -> f64) -> Self;
    /// `f(k, lane k)` of the first `count` lanes.
    fn each(self, count: usize, f: impl FnMut(usize, f64));
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    /// `self < o`; false where either is nan.
    fn less(self, o: Self) -> Self::LaneMask;
    fn equals(self, o: Self) -> Self::LaneMask;
    fn select(holds: Self::LaneMask, a: Self, b: Self) -> Self;

    /// The greater one, `self` where either is nan.
    #[inline(always)]
    fn greater(self, o: Self) -> Self {
        Self::select(self.less(o), o, self)
    }
    /// `sqrt(self^2 + o^2)` without intermediate overflow; nan for infinities.
    #[inline(always)]
    fn hypot(self, o: Self) -> Self {
        let (a, b) = (self.abs(), o.abs());
        let swap = a.less(b);
        let (most, least) = (Self::select(swap, b, a), Self::select(swap, a, b));
        let r = least / most;
        let one = Self::splat(1.0);
        Self::select(most.equals(Self::splat(0.0)), most, most * (one + r * r).sqrt())
    }
    #[inline(always)]
    fn is_finite(self) -> Self::LaneMask {
        self.abs().less(Self::splat(f64::INFINITY))
    }
}
impl RealLanes for f64 {
    type LaneMask = bool;
    const LANES: usize = 1;
    #[inline(always)]
    fn splat(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn from_fn(mut f: impl FnMut(usize) -> f64) -> f64 {
        f(0)
    }
    #[inline(always)]
    fn each(self, count: usize, mut f: impl FnMut(usize, f64)) {
        if count > 0 {
            f(0, self);
        }
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn abs(self) -> f64 {
        f64::abs(self)
    }
    #[inline(always)]
    fn less(self, o: f64) -> bool {
        self < o
    }
    #[inline(always)]
    fn equals(self, o: f64) -> bool {
        self == o
    }
    #[inline(always)]
    fn select(holds: bool, a: f64, b: f64) -> f64 {
        if holds { a } else { b }
    }
}

/// The element of a matrix: real, or a pair of reals.
pub trait ElementLanes:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
    type Real: RealLanes;
    const COMPLEX: bool;
    /// The imaginary part is left out where there is no place for it.
    fn new(re: Self::Real, im: Self::Real) -> Self;
    fn re(self) -> Self::Real;
    fn im(self) -> Self::Real;
    fn conj(self) -> Self;
    fn scale(self, by: Self::Real) -> Self;
    fn abs(self) -> Self::Real;
    /// `|x|^2`
    fn square(self) -> Self::Real;
    /// `|re| + |im|`, by which pivots are chosen.
    fn size(self) -> Self::Real;
    fn finite(self) -> Masks<Self>;
    fn choose(holds: Masks<Self>, a: Self, b: Self) -> Self;
    #[inline(always)]
    fn real(x: Self::Real) -> Self {
        Self::new(x, Self::Real::splat(0.0))
    }
    /// The same number in every lane.
    #[inline(always)]
    fn all(x: f64) -> Self {
        Self::real(Self::Real::splat(x))
    }
    #[inline(always)]
    fn is_zero(self) -> Masks<Self> {
        self.size().equals(Self::Real::splat(0.0))
    }
}
pub type Masks<E> = <<E as ElementLanes>::Real as RealLanes>::LaneMask;

impl<R: RealLanes> ElementLanes for R {
    type Real = R;
    const COMPLEX: bool = false;
    #[inline(always)]
    fn new(re: R, _: R) -> R {
        re
    }
    #[inline(always)]
    fn re(self) -> R {
        self
    }
    #[inline(always)]
    fn im(self) -> R {
        R::splat(0.0)
    }
    #[inline(always)]
    fn conj(self) -> R {
        self
    }
    #[inline(always)]
    fn scale(self, by: R) -> R {
        self * by
    }
    #[inline(always)]
    fn abs(self) -> R {
        RealLanes::abs(self)
    }
    #[inline(always)]
    fn square(self) -> R {
        self * self
    }
    #[inline(always)]
    fn size(self) -> R {
        RealLanes::abs(self)
    }
    #[inline(always)]
    fn finite(self) -> R::LaneMask {
        RealLanes::is_finite(self)
    }
    #[inline(always)]
    fn choose(holds: R::LaneMask, a: R, b: R) -> R {
        R::select(holds, a, b)
    }
}

/// A complex number of each matrix.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ComplexLanes<R> {
    pub re: R,
    pub im: R,
}
impl<R: RealLanes> ElementLanes for ComplexLanes<R> {
    type Real = R;
    const COMPLEX: bool = true;
    #[inline(always)]
    fn new(re: R, im: R) -> ComplexLanes<R> {
        ComplexLanes { re, im }
    }
    #[inline(always)]
    fn re(self) -> R {
        self.re
    }
    #[inline(always)]
    fn im(self) -> R {
        self.im
    }
    #[inline(always)]
    fn conj(self) -> ComplexLanes<R> {
        ComplexLanes { re: self.re, im: -self.im }
    }
    #[inline(always)]
    fn scale(self, by: R) -> ComplexLanes<R> {
        ComplexLanes { re: self.re * by, im: self.im * by }
    }
    #[inline(always)]
    fn abs(self) -> R {
        self.re.hypot(self.im)
    }
    #[inline(always)]
    fn square(self) -> R {
        self.re * self.re + self.im * self.im
    }
    #[inline(always)]
    fn size(self) -> R {
        RealLanes::abs(self.re) + RealLanes::abs(self.im)
    }
    #[inline(always)]
    fn finite(self) -> R::LaneMask {
        self.re.is_finite().and(self.im.is_finite())
    }
    #[inline(always)]
    fn choose(holds: R::LaneMask, a: ComplexLanes<R>, b: ComplexLanes<R>) -> ComplexLanes<R> {
        ComplexLanes { re: R::select(holds, a.re, b.re), im: R::select(holds, a.im, b.im) }
    }
}
impl<R: RealLanes> Add for ComplexLanes<R> {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        ComplexLanes { re: self.re + o.re, im: self.im + o.im }
    }
}
impl<R: RealLanes> Sub for ComplexLanes<R> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        ComplexLanes { re: self.re - o.re, im: self.im - o.im }
    }
}
impl<R: RealLanes> Mul for ComplexLanes<R> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        ComplexLanes { re: self.re * o.re - self.im * o.im, im: self.re * o.im + self.im * o.re }
    }
}
/// By the larger part of the divisor first (Smith 1962), so that nothing overflows on the way; by zero as the parts say.
impl<R: RealLanes> Div for ComplexLanes<R> {
    type Output = Self;
    #[inline(always)]
    fn div(self, o: Self) -> Self {
        let swapped = RealLanes::abs(o.re).less(RealLanes::abs(o.im));
        let (p, q) = (R::select(swapped, o.im, o.re), R::select(swapped, o.re, o.im));
        let (a, b) = (R::select(swapped, self.im, self.re), R::select(swapped, self.re, self.im));
        let by_zero = p.equals(R::splat(0.0));
        let r = R::select(by_zero, R::splat(0.0), q / p);
        let d = R::select(by_zero, p, p + q * r);
        let im = (self.im * R::select(swapped, r, R::splat(1.0)) - self.re * R::select(swapped, R::splat(1.0), r)) / d;
        ComplexLanes { re: (a + b * r) / d, im }
    }
}
impl<R: RealLanes> Neg for ComplexLanes<R> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        ComplexLanes { re: -self.re, im: -self.im }
    }
}
impl<R: RealLanes> AddAssign for ComplexLanes<R> {
    #[inline(always)]
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}
impl<R: RealLanes> SubAssign for ComplexLanes<R> {
    #[inline(always)]
    fn sub_assign(&mut self, o: Self) {
        *self = *self - o;
    }
}
