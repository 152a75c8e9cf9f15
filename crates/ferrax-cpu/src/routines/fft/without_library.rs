//! Replaces the library where it is not compiled in: the same names, with transforms by the factors of the length, in double precision, rounded once.
//!
//! INVARIANT: a plan's sums depend on the length alone.
use std::f64::consts::TAU;
use std::ops::{Add, Mul, Sub};
use std::sync::Arc;

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Complex<T> {
    pub re: T,
    pub im: T,
}
impl<T: FftNum> Mul<T> for Complex<T> {
    type Output = Complex<T>;
    fn mul(self, by: T) -> Complex<T> {
        Complex { re: self.re * by, im: self.im * by }
    }
}
pub trait FftNum:
    Copy + Send + Sync + PartialEq + Default + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + 'static
{
    fn zero() -> Self {
        Self::default()
    }
    fn one() -> Self;
    fn from_f64(x: f64) -> Option<Self>;
    fn wide(self) -> f64;
}
macro_rules! number {
    ($($T:ident)*) => { $(impl FftNum for $T {
        fn one() -> $T {
            1.0
        }
        fn from_f64(x: f64) -> Option<$T> {
            Some(x as $T)
        }
        fn wide(self) -> f64 {
            self.into()
        }
    })* }
}
number! { f32 f64 }

#[derive(Clone, Copy)]
pub enum FftDirection {
    Forward,
    Inverse,
}
/// A transform of one length.
pub struct Factored {
    n: usize,
    /// The powers of the root of unity.
    twiddles: Vec<Complex<f64>>,
    factors: Vec<usize>,
}
/// The name by which [`super`] refers to it; `T` is the type of the parts that it reads and writes.
pub trait Fft<T: FftNum>: Send + Sync {
    fn get_immutable_scratch_len(&self) -> usize;
    fn get_inplace_scratch_len(&self) -> usize;
    fn process_immutable_with_scratch(&self, x: &[Complex<T>], y: &mut [Complex<T>], scratch: &mut [Complex<T>]);
    fn process_with_scratch(&self, x: &mut [Complex<T>], scratch: &mut [Complex<T>]);
}
impl Factored {
    fn new(n: usize, direction: FftDirection) -> Factored {
        let sign = if matches!(direction, FftDirection::Forward) { -1.0 } else { 1.0 };
        let twiddle = |k: usize| {
            let (im, re) = (sign * TAU * k as f64 / n as f64).sin_cos();
            Complex { re, im }
        };
        let (mut left, mut p, mut factors) = (n, 2, vec![]);
        while left > 1 {
            if p * p > left {
                p = left;
            }
            while left.is_multiple_of(p) {
                left /= p;
                factors.push(p);
            }
            p += 1;
        }
        Factored { n, twiddles: (0..n).map(twiddle).collect(), factors }
    }
    /// Every `step`-th of `x`, transformed into `y`, whose length is the product of `factors`.
    fn transform(
        &self,
        x: &[Complex<f64>],
        step: usize,
        factors: &[usize],
        y: &mut [Complex<f64>],
        part: &mut [Complex<f64>],
    ) {
        let Some((p, rest)) = factors.split_first() else {
            y[0] = x[0];
            return;
        };
        let m = y.len() / p;
        for r in 0..*p {
            self.transform(&x[r * step..], step * p, rest, &mut y[r * m..(r + 1) * m], part);
        }
        // element k of each part, times its twiddle factor, is a sum of p terms
        let twiddles = self.n / y.len();
        for k in 0..m {
            for (r, z) in part[..*p].iter_mut().enumerate() {
                *z = times(y[r * m + k], self.twiddles[r * k * twiddles]);
            }
            for q in 0..*p {
                let mut sum = part[0];
                for (r, z) in part[1..*p].iter().enumerate() {
                    let z = times(*z, self.twiddles[(r + 1) * q % p * (self.n / p)]);
                    sum = Complex { re: sum.re + z.re, im: sum.im + z.im };
                }
                y[q * m + k] = sum;
            }
        }
    }
    fn run(&self, x: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let mut y = vec![Complex::default(); self.n];
        let mut part = vec![Complex::default(); self.factors.iter().copied().max().unwrap_or(1)];
        self.transform(x, 1, &self.factors, &mut y, &mut part);
        y
    }
}
fn times(a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
    Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
}
fn wide<T: FftNum>(x: &[Complex<T>]) -> Vec<Complex<f64>> {
    x.iter().map(|z| Complex { re: z.re.wide(), im: z.im.wide() }).collect()
}
fn rounded<T: FftNum>(x: f64) -> T {
    T::from_f64(x).unwrap_or_default()
}
impl<T: FftNum> Fft<T> for Factored {
    fn get_immutable_scratch_len(&self) -> usize {
        0
    }
    fn get_inplace_scratch_len(&self) -> usize {
        0
    }
    fn process_immutable_with_scratch(&self, x: &[Complex<T>], y: &mut [Complex<T>], _: &mut [Complex<T>]) {
        for (x, y) in x.chunks(self.n).zip(y.chunks_mut(self.n)) {
            for (z, to) in self.run(&wide(x)).iter().zip(y) {
                *to = Complex { re: rounded(z.re), im: rounded(z.im) };
            }
        }
    }
    fn process_with_scratch(&self, x: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        let own = x.to_vec();
        self.process_immutable_with_scratch(&own, x, scratch);
    }
}
pub struct FftPlanner<T>(std::marker::PhantomData<T>);
impl<T: FftNum> FftPlanner<T> {
    pub fn new() -> FftPlanner<T> {
        FftPlanner(std::marker::PhantomData)
    }
    pub fn plan_fft(&mut self, n: usize, direction: FftDirection) -> Arc<dyn Fft<T>> {
        Arc::new(Factored::new(n, direction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<Complex<f64>> {
        (0..n).map(|k| Complex { re: (1.3 * k as f64).sin(), im: (0.7 * k as f64 + 0.2).cos() }).collect()
    }
    /// The sum as it is written.
    fn direct(x: &[Complex<f64>], sign: f64) -> Vec<Complex<f64>> {
        let n = x.len();
        let one = |q: usize| {
            x.iter().enumerate().fold(Complex::default(), |s: Complex<f64>, (k, z)| {
                let (im, re) = (sign * TAU * (q * k % n) as f64 / n as f64).sin_cos();
                let z = times(*z, Complex { re, im });
                Complex { re: s.re + z.re, im: s.im + z.im }
            })
        };
        (0..n).map(one).collect()
    }
    fn near(a: &[Complex<f64>], b: &[Complex<f64>]) {
        let far = |(a, b): (&Complex<f64>, &Complex<f64>)| (a.re - b.re).abs().max((a.im - b.im).abs());
        let worst = a.iter().zip(b).map(far).fold(0.0, f64::max);
        assert!(a.len() == b.len() && worst < 1e-11 * a.len() as f64, "{worst} for {}", a.len());
    }

    #[test]
    fn transforms_are_the_sums_they_mean() {
        for n in (1..50).chain([64, 97, 120, 128, 210, 243, 289, 360]) {
            let x = numbers(n);
            for (direction, sign) in [(FftDirection::Forward, -1.0), (FftDirection::Inverse, 1.0)] {
                let plan = FftPlanner::<f64>::new().plan_fft(n, direction);
                let mut y = vec![Complex::default(); n];
                plan.process_immutable_with_scratch(&x, &mut y, &mut []);
                near(&y, &direct(&x, sign));
                let mut two = [x.clone(), y.clone()].concat();
                plan.process_with_scratch(&mut two, &mut []);
                near(&two[..n], &y);
                near(&two[n..], &direct(&y, sign));
            }
        }
    }
}
