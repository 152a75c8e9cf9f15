//! Discrete Fourier transforms along an axis.
use super::{Tensor, axis_of, emit};
use ferrax_ir::Dtype;
use ferrax_ir::ops::fft::Fft;
use ferrax_kernel::routine::FftKind;

#[track_caller]
fn along(x: &Tensor, kind: FftKind, n: usize, axis: i64) -> Tensor {
    let k = axis_of(axis, x.rank()) as i64;
    let y = emit(Fft { fft_lengths: [n].into(), fft_type: kind }, &[&x.move_axis(k, -1)]);
    y.move_axis(-1, k)
}
/// Float or complex, in single or double precision.
#[track_caller]
fn complexed(x: &Tensor) -> Tensor {
    let x = super::inexact(x);
    x.astype(x.dtype().complex())
}
#[track_caller]
fn real(x: &Tensor) -> Tensor {
    let x = super::inexact(x);
    if x.dtype() == Dtype::F64 { x } else { x.astype(Dtype::F32) }
}
impl Tensor {
    /// `y[k] = sum_j x[j] exp(-2 pi i j k / n)` along an axis.
    #[track_caller]
    pub fn fft(&self, axis: i64) -> Tensor {
        let n = self.shape()[axis_of(axis, self.rank())];
        along(&complexed(self), FftKind::Forward, n, axis)
    }
    /// The inverse of `fft`.
    #[track_caller]
    pub fn ifft(&self, axis: i64) -> Tensor {
        let n = self.shape()[axis_of(axis, self.rank())];
        along(&complexed(self), FftKind::Inverse, n, axis)
    }
    /// The first half of `fft` of real numbers, `n / 2 + 1` elements: the rest are their conjugates.
    #[track_caller]
    pub fn rfft(&self, axis: i64) -> Tensor {
        let n = self.shape()[axis_of(axis, self.rank())];
        along(&real(self), FftKind::RealForward, n, axis)
    }
    /// The `n` real numbers whose `rfft` this is.
    #[track_caller]
    pub fn irfft(&self, n: usize, axis: i64) -> Tensor {
        let k = axis_of(axis, self.rank());
        along(&complexed(self).narrow(k, 0, n / 2 + 1), FftKind::RealInverse, n, axis)
    }
}
