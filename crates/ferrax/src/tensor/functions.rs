//! Elementwise functions that are composed of others, comparisons of whole tensors, and functions that iterate inside (`igamma`, ..).
//!
//! ```
//! use ferrax::Tensor;
//! let x = Tensor::from([1.0f32, -2.5, 100.0]);
//! assert_eq!(x.trunc().to_vec::<f32>()?, [1.0, -2.0, 100.0]);
//! assert_eq!(x.copysign(-1.0).to_vec::<f32>()?, [-1.0, -2.5, -100.0]);
//! assert!(x.all_close(&x + 1e-9, 1e-5, 1e-8).to_vec::<bool>()?[0]);
//! let (whole, part) = (x.div_mod(2).0, x.modf().0);
//! assert_eq!((whole.to_vec::<f32>()?, part.to_vec::<f32>()?), (vec![0.0, -2.0, 50.0], vec![0.0, -0.5, 0.0]));
//! assert!((Tensor::from(2.0f32).igamma(1.0).item() - 0.2642411).abs() < 1e-6);
//! # Ok::<(), ferrax::Error>(())
//! ```
use super::{IntoTensor, Tensor, constant, emit, emit_many, exactly, inexact, promote, pw, where_};
use crate::numpy::elementwise::Coercion;
use ferrax_ir::Dtype;
use ferrax_ir::ops::barrier::OptimizationBarrier;
use ferrax_ir::ops::bitcast::ReducePrecision;
use ferrax_ir::ops::pointwise::{Pointwise, Pw};
use ferrax_ir::ops::special::{Special, SpecialKind};
use std::f64::consts::{LN_10, PI};

/// Two operands in their common float dtype, of one shape.
#[track_caller]
fn floats(x: &Tensor, y: impl IntoTensor) -> [Tensor; 2] {
    let [x, y] = exactly(promote(&[x, &y.into_tensor()]));
    exactly(super::broadcast_arrays(&[inexact(&x).strong(), inexact(&y).strong()]))
}
impl Tensor {
    /// Elementwise `1 / x`; integers become floats.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([2, 4]).reciprocal();
    /// assert_eq!(y.all_close(Tensor::from([0.5f32, 0.25]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn reciprocal(&self) -> Tensor {
        emit(Pointwise { f: Pw::IntegerPow, y: -1 }, &[&inexact(self)])
    }
    /// Elementwise base 10 logarithm.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1.0f32, 1000.0]).log10();
    /// assert_eq!(y.all_close(Tensor::from([0.0f32, 3.0]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn log10(&self) -> Tensor {
        self.scaled(|x| x.log(), 1.0 / LN_10)
    }
    /// Elementwise: degrees as radians.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([180.0f32]).deg2rad();
    /// assert_eq!(y.all_close(Tensor::from([3.1415927f32]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn deg2rad(&self) -> Tensor {
        self.scaled(Tensor::clone, PI / 180.0)
    }
    /// Elementwise: radians as degrees.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([3.1415927f32]).rad2deg();
    /// assert_eq!(y.all_close(Tensor::from([180.0f32]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn rad2deg(&self) -> Tensor {
        self.scaled(Tensor::clone, 180.0 / PI)
    }
    #[track_caller]
    fn scaled(&self, f: impl Fn(&Tensor) -> Tensor, by: f64) -> Tensor {
        let x = f(&inexact(self));
        &x * constant(x.dtype(), by)
    }
    /// Elementwise nearest integer towards 0; integers stay.
    #[track_caller]
    pub fn trunc(&self) -> Tensor {
        if self.dtype().is_float() { where_(&self.lt(0.0), self.ceil(), self.floor()) } else { self.clone() }
    }
    /// Elementwise `(fraction, whole part)`, both with the sign of x.
    #[track_caller]
    pub fn modf(&self) -> (Tensor, Tensor) {
        let x = inexact(self);
        let whole = where_(&x.ge(0.0), x.floor(), x.ceil());
        (&x - &whole, whole)
    }
    /// Elementwise `(floor_div, modulo)`.
    #[track_caller]
    pub fn div_mod(&self, o: impl IntoTensor) -> (Tensor, Tensor) {
        let o = o.into_tensor();
        (self.floor_div(&o), self.modulo(&o))
    }
    /// Elementwise: whether the sign bit is set; that of -0.0 is.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([-0.0f32, 0.0]).signbit();
    /// assert_eq!(y.all_close(Tensor::from([true, false]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn signbit(&self) -> Tensor {
        let (d, bits) = match self.dtype() {
            Dtype::F16 | Dtype::BF16 => (Dtype::I16, 15),
            Dtype::F32 => (Dtype::I32, 31),
            Dtype::F64 => (Dtype::I64, 63),
            _ => return self.lt(0),
        };
        pw(Pw::ShiftRightArithmetic, &[&self.bitcast(d), &constant(d, bits as f64)]).astype(Dtype::BOOL)
    }
    /// Elementwise size of this one with the sign of `o`.
    #[track_caller]
    pub fn copysign(&self, o: impl IntoTensor) -> Tensor {
        let [x, y] = floats(self, o);
        where_(&y.signbit(), -x.abs(), x.abs())
    }
    /// Elementwise maximum, ignoring nan.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1.0f32, f32::NAN]).fmax(0.5);
    /// assert_eq!(y.all_close(Tensor::from([1.0f32, 0.5]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn fmax(&self, o: impl IntoTensor) -> Tensor {
        let o = o.into_tensor();
        where_(&(self.gt(&o) | o.is_nan()), self, &o)
    }
    /// Elementwise minimum, ignoring nan.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1.0f32, f32::NAN]).fmin(0.5);
    /// assert_eq!(y.all_close(Tensor::from([0.5f32, 0.5]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn fmin(&self, o: impl IntoTensor) -> Tensor {
        let o = o.into_tensor();
        where_(&(self.lt(&o) | o.is_nan()), self, &o)
    }
    /// Elementwise 0 below 0, 1 above, and `at_zero` there.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([-2.0f32, 0.0, 3.0]).heaviside(0.5);
    /// assert_eq!(y.all_close(Tensor::from([0.0f32, 0.5, 1.0]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn heaviside(&self, at_zero: impl IntoTensor) -> Tensor {
        let [x, y] = floats(self, at_zero);
        let c = |v: f64| constant(x.dtype(), v);
        where_(&x.lt(0.0), c(0.0), where_(&x.gt(0.0), c(1.0), where_(&x.is_nan(), &x, y)))
    }
    /// Elementwise: whether it is the positive infinity.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([f32::INFINITY, 1.0]).is_pos_inf();
    /// assert_eq!(y.all_close(Tensor::from([true, false]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn is_pos_inf(&self) -> Tensor {
        self.eq(f64::INFINITY)
    }
    /// Elementwise: whether it is the negative infinity.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([f32::NEG_INFINITY, 1.0]).is_neg_inf();
    /// assert_eq!(y.all_close(Tensor::from([true, false]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn is_neg_inf(&self) -> Tensor {
        self.eq(f64::NEG_INFINITY)
    }
    /// Elementwise `|x - o| <= absolute + relative |o|`; infinite numbers are close to themselves, nan to nothing.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1.0f32, 1.1]).is_close(1.0, 1e-5, 1e-8);
    /// assert_eq!(y.all_close(Tensor::from([true, false]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn is_close(&self, o: impl IntoTensor, relative: f64, absolute: f64) -> Tensor {
        let [x, y] = exactly(promote(&[self, &o.into_tensor()]));
        if x.dtype().is_bool() {
            return x.eq(y);
        }
        let (x, y) = (inexact(&x), inexact(&y));
        let close = (&x - &y).abs().le(absolute + relative * y.abs());
        where_(&(x.is_finite() & y.is_finite()), close, x.eq(&y))
    }
    /// Whether all elements are close: [`Tensor::is_close`].
    #[track_caller]
    pub fn all_close(&self, o: impl IntoTensor, relative: f64, absolute: f64) -> Tensor {
        self.is_close(o, relative, absolute).all()
    }
    /// Whether shapes and all elements are equal.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([1, 2]);
    /// assert_eq!((x.array_equal(&x).item(), x.array_equal(Tensor::from([1, 2, 3])).item()), (1.0, 0.0));
    /// ```
    #[track_caller]
    pub fn array_equal(&self, o: impl IntoTensor) -> Tensor {
        let o = o.into_tensor();
        if self.shape() == o.shape() { self.eq(o).all() } else { Tensor::from(false) }
    }
    /// Elementwise upper half of the product of two integers.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1 << 30, 7]).mul_hi(Tensor::from([12, 7]));
    /// assert_eq!(y.all_close(Tensor::from([3, 0]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn mul_hi(&self, o: impl IntoTensor) -> Tensor {
        super::pointwise_in(Pw::MulHi, Coercion::Any, &[self, &o.into_tensor()])
    }
    #[track_caller]
    fn special(&self, kind: SpecialKind, o: impl IntoTensor) -> Tensor {
        let [x, y] = floats(self, o);
        emit(Special { kind }, &[&x, &y])
    }
    /// Elementwise regularised lower incomplete gamma function of order self at x.
    #[track_caller]
    pub fn igamma(&self, x: impl IntoTensor) -> Tensor {
        self.special(SpecialKind::Igamma, x)
    }
    /// Elementwise `1 - igamma`.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1.0f32]).igammac(1.0);
    /// assert_eq!(y.all_close(Tensor::from([0.36787944f32]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn igammac(&self, x: impl IntoTensor) -> Tensor {
        self.special(SpecialKind::Igammac, x)
    }
    /// The derivative of `igamma` in its order.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1.0f32]).igamma_grad_a(1.0);
    /// assert_eq!(y.all_close(Tensor::from([-0.4317297f32]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn igamma_grad_a(&self, x: impl IntoTensor) -> Tensor {
        self.special(SpecialKind::IgammaGradA, x)
    }
    /// The derivative of a draw x from the gamma distribution in its order, self.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1.0f32]).random_gamma_grad(1.0);
    /// assert_eq!(y.all_close(Tensor::from([1.173563f32]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn random_gamma_grad(&self, x: impl IntoTensor) -> Tensor {
        self.special(SpecialKind::RandomGammaGrad, x)
    }
    /// Elementwise Hurwitz zeta function: the sum of `(q + k)^-self` over k.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([2.0f32]).zeta(1.0);
    /// assert_eq!(y.all_close(Tensor::from([1.6449341f32]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn zeta(&self, q: impl IntoTensor) -> Tensor {
        self.special(SpecialKind::Zeta, q)
    }
    /// Elementwise regularised incomplete beta function of a = self and b, at x.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1.0f32]).betainc(2.0, 0.5);
    /// assert_eq!(y.all_close(Tensor::from([0.75f32]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn betainc(&self, b: impl IntoTensor, x: impl IntoTensor) -> Tensor {
        let [a, b] = floats(self, b);
        let [a, x] = floats(&a, x);
        let [a, b] = floats(&a, b);
        emit(Special { kind: SpecialKind::Betainc }, &[&a, &b, &x])
    }
    /// Rounded to a float format of so many bits, and back.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1.26f32]).reduce_precision(5, 2);
    /// assert_eq!(y.all_close(Tensor::from([1.25f32]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn reduce_precision(&self, exponent_bits: usize, mantissa_bits: usize) -> Tensor {
        emit(ReducePrecision { exponent_bits, mantissa_bits }, &[self])
    }
    /// The same value, over which nothing is moved when it is compiled.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let y = Tensor::from([1.0f32]).optimization_barrier();
    /// assert_eq!(y.all_close(Tensor::from([1.0f32]), 1e-5, 1e-6).item(), 1.0);
    /// ```
    #[track_caller]
    pub fn optimization_barrier(&self) -> Tensor {
        emit_many(OptimizationBarrier {}, &[self]).remove(0)
    }
}
