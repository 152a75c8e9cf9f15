//! Discrete Fourier transforms along axes, and the frequencies of their elements.
//!
//! ```
//! use ferrax::{Dtype, Tensor, fftfreq};
//! let x = Tensor::from([1.0f32, 2.0, 3.0, 4.0]);
//! assert_eq!(x.rfft(0).real().to_vec::<f32>()?, [10.0, -2.0, -2.0]);
//! assert_eq!(x.rfft(0).irfft(4, 0).to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! assert_eq!(x.fft(0).ifft(0).dtype(), Dtype::C64);
//! assert_eq!(Tensor::eye(2, 2).fftn(..).real().to_vec::<f32>()?, [2.0, 0.0, 0.0, 2.0]);
//! assert_eq!(fftfreq(4, 0.5).fftshift(..).to_vec::<f32>()?, [-1.0, -0.5, 0.0, 0.5]);
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: each is one transform over the last axes of the transposed operand, padded with zeros
//! or cut to the lengths.
use super::{IntoAxes, Tensor, axis_of, concatenate, constant, emit, inexact, pw};
use crate::mistakes;
use ferrax_ir::ops::fft::Fft;
use ferrax_ir::ops::pointwise::Pw;
use ferrax_ir::{Dims, Dtype, Error};
use ferrax_kernel::routine::FftKind;

/// Float or complex, in single or double precision.
#[track_caller]
fn complexed(x: &Tensor) -> Tensor {
    let x = inexact(x);
    x.astype(x.dtype().complex())
}
#[track_caller]
fn real(x: &Tensor) -> Tensor {
    let x = inexact(x);
    if x.dtype().is_complex() {
        mistakes::raise(Error::value("only real valued inputs supported for rfft"));
    }
    if x.dtype() == Dtype::F64 { x } else { x.astype(Dtype::F32) }
}
/// The last axes padded with zeros at their ends, or cut.
#[track_caller]
fn fitted(x: &Tensor, lengths: &[usize]) -> Tensor {
    let lead = x.rank() - lengths.len();
    let shorter = (lead..x.rank()).filter(|k| x.shape()[*k] > lengths[k - lead]);
    let cut = shorter.fold(x.clone(), |x, k| x.narrow(k, 0, lengths[k - lead]));
    let more = lengths.iter().zip(&cut.shape()[lead..]).map(|(n, m)| (0, (n - m) as i64));
    let widths: Vec<(i64, i64)> = vec![(0, 0); lead].into_iter().chain(more).collect();
    if widths.iter().any(|w| w.1 > 0) { cut.pad(&widths, constant(x.dtype(), 0.0)) } else { cut }
}
/// Applies `f` to `x` with these axes last, and moves them back.
#[track_caller]
fn with_last(x: &Tensor, axes: &[usize], f: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
    let order: Vec<usize> = (0..x.rank()).filter(|k| !axes.contains(k)).chain(axes.iter().copied()).collect();
    if order.is_sorted() {
        return f(x);
    }
    let back: Vec<i64> = (0..x.rank()).map(|k| order.iter().position(|o| *o == k).unwrap_or(k) as i64).collect();
    f(&x.permute(&order.iter().map(|k| *k as i64).collect::<Vec<_>>())).permute(&back)
}
#[track_caller]
fn transform(x: &Tensor, kind: FftKind, lengths: &[usize], axes: &[usize]) -> Tensor {
    if lengths.contains(&0) {
        mistakes::raise(Error::value("Shape should be positive."));
    }
    with_last(x, axes, |x| of_last(x, kind, lengths))
}
#[track_caller]
fn of_last(x: &Tensor, kind: FftKind, lengths: &[usize]) -> Tensor {
    let mut held = lengths.to_vec();
    if let (FftKind::RealInverse, Some(n)) = (kind, held.last_mut()) {
        *n = *n / 2 + 1;
    }
    let x = fitted(x, &held);
    // three axes at a time, the real one with the last three
    let n = lengths.len();
    let mut groups: Vec<(usize, usize)> =
        (0..n.div_ceil(3)).map(|g| (n - 3 * g, (n - 3 * g).saturating_sub(3))).collect();
    if kind == FftKind::RealInverse {
        groups.reverse();
    }
    groups.into_iter().fold(x, |x, (high, low)| {
        let fft_type = match kind {
            _ if high == n => kind,
            FftKind::Forward | FftKind::RealForward => FftKind::Forward,
            _ => FftKind::Inverse,
        };
        let lead = x.rank() - n;
        let op = Fft { fft_lengths: Dims::new(&lengths[low..high]), fft_type };
        with_last(&x, &(lead + low..lead + high).collect::<Vec<_>>(), |x| emit(op, &[x]))
    })
}
impl Tensor {
    #[track_caller]
    fn sizes(&self, axes: &[usize]) -> Vec<usize> {
        axes.iter().map(|k| self.shape()[*k]).collect()
    }
    #[track_caller]
    fn over(&self, kind: FftKind, axes: impl IntoAxes) -> Tensor {
        let axes = axes.axes(self.rank());
        let x = if kind == FftKind::RealForward { real(self) } else { complexed(self) };
        if axes.is_empty() { x } else { transform(&x, kind, &self.sizes(&axes), &axes) }
    }
    /// `y[k] = sum_j x[j] exp(-2 pi i j k / n)` along an axis.
    #[track_caller]
    pub fn fft(&self, axis: i64) -> Tensor {
        self.over(FftKind::Forward, axis)
    }
    /// The inverse of `fft`.
    #[track_caller]
    pub fn ifft(&self, axis: i64) -> Tensor {
        self.over(FftKind::Inverse, axis)
    }
    /// The first half of `fft` of real numbers, `n / 2 + 1` elements: the rest are their conjugates.
    ///
    /// # Panics
    /// For complex numbers.
    #[track_caller]
    pub fn rfft(&self, axis: i64) -> Tensor {
        self.over(FftKind::RealForward, axis)
    }
    /// The `n` real numbers whose `rfft` this is.
    #[track_caller]
    pub fn irfft(&self, n: usize, axis: i64) -> Tensor {
        transform(&complexed(self), FftKind::RealInverse, &[n], &[axis_of(axis, self.rank())])
    }
    /// [`Tensor::fft`] along several axes, one after the other; `..` for all.
    #[track_caller]
    pub fn fftn(&self, axes: impl IntoAxes) -> Tensor {
        self.over(FftKind::Forward, axes)
    }
    /// The inverse of `fftn`.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::eye(2, 2);
    /// assert_eq!(x.fftn(..).ifftn(..).real().to_vec::<f32>()?, x.to_vec::<f32>()?);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn ifftn(&self, axes: impl IntoAxes) -> Tensor {
        self.over(FftKind::Inverse, axes)
    }
    /// [`Tensor::fftn`] of real numbers: half of it along the last of the axes.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::ones(&[2, 6]).rfftn([0, 1]).shape(), [2, 4]);
    /// ```
    ///
    /// # Panics
    /// For complex numbers.
    #[track_caller]
    pub fn rfftn(&self, axes: impl IntoAxes) -> Tensor {
        self.over(FftKind::RealForward, axes)
    }
    /// The real numbers whose `rfftn` this is, `n` of them along the last of the axes.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::eye(2, 3);
    /// assert_eq!(x.rfftn(..).irfftn(3, ..).all_close(&x, 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn irfftn(&self, n: usize, axes: impl IntoAxes) -> Tensor {
        let axes = axes.axes(self.rank());
        let mut lengths = self.sizes(&axes);
        match lengths.last_mut() {
            Some(last) => *last = n,
            None => mistakes::raise(Error::value("irfftn requires an axis")),
        }
        transform(&complexed(self), FftKind::RealInverse, &lengths, &axes)
    }
    /// The `n` real numbers that are the `fft` of a sequence with Hermitian symmetry, of which this
    /// is the first half.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, 2.0, 3.0]).hfft(4, 0).to_vec::<f32>()?, [8.0, -2.0, 0.0, -2.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn hfft(&self, n: usize, axis: i64) -> Tensor {
        let y = self.conj().irfft(n, axis);
        &y * constant(y.dtype(), n as f64)
    }
    /// The inverse of `hfft`: `n / 2 + 1` elements.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([8.0f32, -2.0, 0.0, -2.0]).ihfft(0).real().to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// For complex numbers.
    #[track_caller]
    pub fn ihfft(&self, axis: i64) -> Tensor {
        let n = self.shape()[axis_of(axis, self.rank())];
        let y = self.rfft(axis);
        (&y * constant(y.dtype(), 1.0 / n as f64)).conj()
    }
    /// The zero frequency moved to the middle of axes.
    #[track_caller]
    pub fn fftshift(&self, axes: impl IntoAxes) -> Tensor {
        let axes = axes.axes(self.rank());
        axes.iter().fold(self.clone(), |x, k| x.roll((x.shape()[*k] / 2) as i64, *k as i64))
    }
    /// The inverse of `fftshift`, which differs from it for odd sizes.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([1, 2, 3]);
    /// assert_eq!(x.fftshift(0).ifftshift(0).to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn ifftshift(&self, axes: impl IntoAxes) -> Tensor {
        let axes = axes.axes(self.rank());
        axes.iter().fold(self.clone(), |x, k| x.roll(-((x.shape()[*k] / 2) as i64), *k as i64))
    }
}
#[track_caller]
fn per(k: &Tensor, n: usize, d: f64) -> Tensor {
    pw(Pw::Div, &[k, &constant(Dtype::F32, d * n as f64)])
}
/// The frequencies of `fft` of `n` samples at distance `d`, float32: `[0, 1, .., (n - 1) / 2, -(n /
/// 2), .., -1] / (d n)`.
#[track_caller]
pub fn fftfreq(n: usize, d: f64) -> Tensor {
    let half = n / 2;
    let below = pw(Pw::Sub, &[&Tensor::arange(half, Dtype::F32), &constant(Dtype::F32, half as f64)]);
    per(&concatenate(&[Tensor::arange(n - half, Dtype::F32), below], 0), n, d)
}
/// The frequencies of `rfft` of `n` samples at distance `d`, float32: `[0, 1, .., n / 2] / (d n)`.
///
/// ```
/// assert_eq!(ferrax::rfftfreq(4, 1.0).to_vec::<f32>()?, [0.0, 0.25, 0.5]);
/// # Ok::<(), ferrax::Error>(())
/// ```
#[track_caller]
pub fn rfftfreq(n: usize, d: f64) -> Tensor {
    per(&Tensor::arange(n / 2 + 1, Dtype::F32), n, d)
}
