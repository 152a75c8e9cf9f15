//! Elementwise functions, one row each: the method's name, the primitive of the language's table, what it computes.
//!
//! A test asks that every row of that table (`Pw::ALL`) is here, is an operator, or is listed as no function of the user's.
use super::{IntoTensor, PROMOTION, Tensor, constant, emit, exactly, pointwise, pointwise_in, pw};
use crate::mistakes::{self, ok};
use crate::numpy::elementwise::{Coercion, promote_shapes};
use crate::numpy::promotion::convert;
use ferrax_ir::ops::pointwise::{Pointwise, Pw};
use ferrax_ir::{Dtype, Error, Value};

macro_rules! unary {
    ($($f:ident $F:ident $doc:literal;)*) => {
        impl Tensor { $(#[doc = $doc] #[track_caller] pub fn $f(&self) -> Tensor { pointwise(Pw::$F, &[self]) })* }
        /// The functions of one operand: name and primitive.
        #[doc(hidden)]
        pub const UNARY: &[(&str, Pw)] = &[$((stringify!($f), Pw::$F)),*];
    }
}
macro_rules! binary {
    ($($f:ident $F:ident $doc:literal;)*) => {
        impl Tensor { $(#[doc = $doc] #[track_caller] pub fn $f(&self, o: impl IntoTensor) -> Tensor { pointwise(Pw::$F, &[self, &o.into_tensor()]) })* }
        /// The functions of two operands: name and primitive.
        #[doc(hidden)]
        pub const BINARY: &[(&str, Pw)] = &[$((stringify!($f), Pw::$F)),*];
    }
}
unary! {
    sign Sign "Elementwise sign: -1, 0 or 1; of a complex number, its direction.";
    exp Exp "Elementwise exponential.";
    exp2 Exp2 "Elementwise power of two.";
    log Log "Elementwise natural logarithm.";
    log1p Log1p "Elementwise `log(1 + x)`, accurate near 0.";
    expm1 Expm1 "Elementwise `exp(x) - 1`, accurate near 0.";
    sin Sin "Elementwise sine.";
    cos Cos "Elementwise cosine.";
    tan Tan "Elementwise tangent.";
    asin Asin "Elementwise inverse sine.";
    acos Acos "Elementwise inverse cosine.";
    atan Atan "Elementwise inverse tangent.";
    sinh Sinh "Elementwise hyperbolic sine.";
    cosh Cosh "Elementwise hyperbolic cosine.";
    tanh Tanh "Elementwise hyperbolic tangent.";
    asinh Asinh "Elementwise inverse hyperbolic sine.";
    acosh Acosh "Elementwise inverse hyperbolic cosine.";
    atanh Atanh "Elementwise inverse hyperbolic tangent.";
    logistic Logistic "Elementwise `1 / (1 + exp(-x))`.";
    erf Erf "Elementwise error function.";
    erfc Erfc "Elementwise `1 - erf(x)`.";
    erf_inv ErfInv "Elementwise inverse of the error function.";
    lgamma Lgamma "Elementwise logarithm of the absolute value of the gamma function.";
    digamma Digamma "Elementwise derivative of `lgamma`.";
    bessel_i0e BesselI0e "Elementwise modified Bessel function of order 0, times `exp(-|x|)`.";
    bessel_i1e BesselI1e "Elementwise modified Bessel function of order 1, times `exp(-|x|)`.";
    sqrt Sqrt "Elementwise square root.";
    rsqrt Rsqrt "Elementwise `1 / sqrt(x)`.";
    cbrt Cbrt "Elementwise cube root.";
    square Square "Elementwise square.";
    abs Abs "Elementwise absolute value.";
    is_finite IsFinite "Elementwise: neither infinite nor nan.";
    population_count PopulationCount "Elementwise number of bits that are set.";
    leading_zeros Clz "Elementwise number of leading zero bits.";
    stop_gradient StopGradient "The same value, whose derivative is zero.";
    copy Copy "The same value in memory of its own.";
}
binary! {
    maximum Max "Elementwise larger one; nan if one is.";
    minimum Min "Elementwise smaller one; nan if one is.";
    atan2 Atan2 "Elementwise angle of the point (o, self).";
    nextafter NextAfter "Elementwise next number towards o.";
    polygamma Polygamma "Elementwise polygamma function of order self at o.";
    shift_right_logical ShiftRightLogical "Elementwise shift that brings in zeros.";
    eq Eq "Elementwise `==`.";
    ne Ne "Elementwise `!=`.";
    lt Lt "Elementwise `<`.";
    le Le "Elementwise `<=`.";
    gt Gt "Elementwise `>`.";
    ge Ge "Elementwise `>=`.";
}
/// Rows of the table that are reached otherwise, or are the language's own.
#[doc(hidden)]
pub const OTHERWISE: &[(&str, Pw)] = &[
    ("-", Pw::Neg),
    ("!", Pw::Not),
    ("+", Pw::Add),
    ("-", Pw::Sub),
    ("*", Pw::Mul),
    ("/", Pw::Div),
    ("%", Pw::Rem),
    ("&", Pw::And),
    ("|", Pw::Or),
    ("^", Pw::Xor),
    ("<<", Pw::ShiftLeft),
    (">>", Pw::ShiftRightArithmetic),
    ("pow", Pw::Pow),
    ("powi", Pw::IntegerPow),
    ("floor", Pw::Floor),
    ("ceil", Pw::Ceil),
    ("round", Pw::Round),
    ("real", Pw::Real),
    ("imag", Pw::Imag),
    ("conj", Pw::Conj),
    ("complex", Pw::Complex),
    ("", Pw::AddAny),
    ("", Pw::MulZero),
    ("", Pw::DivZero),
    ("", Pw::LeTo),
    ("", Pw::LtTo),
    ("mul_hi", Pw::MulHi),
];

impl Tensor {
    /// Elementwise power to an integer that is known now: exact by repeated multiplication.
    #[track_caller]
    pub fn powi(&self, n: i32) -> Tensor {
        emit(Pointwise { f: Pw::IntegerPow, y: n }, &[self])
    }
    /// Elementwise power. An integer of Rust's, and one of rank 0 whose value is known, is taken as [`Tensor::powi`] does; integers to powers of
    /// integers are integers, of which powers that do not fit are lost.
    ///
    /// ```
    /// use ferrax::{Dtype, Tensor};
    /// let x = Tensor::from([2, 3]);
    /// assert_eq!((x.pow(3).to_vec::<i32>()?, x.pow(&x).to_vec::<i32>()?), (vec![8, 27], vec![4, 27]));
    /// assert_eq!(x.pow(0.5).dtype(), Dtype::F32);
    /// assert_eq!(x.float_power(-1).to_vec::<f32>()?, [0.5, 1.0 / 3.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// For integers to a negative power that is known: [`Tensor::float_power`] makes them floats.
    #[track_caller]
    pub fn pow(&self, o: impl IntoTensor) -> Tensor {
        let o = o.into_tensor();
        let (d, e) = (self.dtype(), o.dtype());
        let whole = e.is_int() || e.is_bool();
        if whole && o.rank() == 0 && !o.0.is_tracer() {
            if e.is_int() && matches!(o.0, Value::Array(_)) && d.is_float() {
                // an exponent in an array is an operand: one program serves all
                return Tensor(ok(convert(&pw(Pw::Pow, &[self, &o]).0, d, self.0.weak())));
            }
            let (x, n) = (if d.is_bool() { self.astype(Dtype::I32) } else { self.clone() }, integer_of(&o));
            if !d.is_inexact() && n < 0 {
                mistakes::raise(Error::type_error(format!(
                    "Integers cannot be raised to negative powers, got {} to the power {n}",
                    x.aval().long()
                )));
            }
            return x.known_power(n);
        }
        let [x, y] = exactly(super::promote(&[self, &o]));
        match x.dtype() {
            // an integer exponent is taken as it is
            dtype if d.is_inexact() && e.is_int() && dtype == d => {
                let [x, o] = same_rank(self, &o);
                pw(Pw::Pow, &[&x, &o])
            }
            dtype if dtype.is_inexact() => pointwise_in(Pw::Pow, Coercion::Any, &[&x, &y]),
            dtype if dtype.is_bool() => integer_power(&x.astype(Dtype::I32), &y.astype(Dtype::I32)),
            _ => integer_power(&x, &y),
        }
    }
    /// Elementwise power of floats; integers become floats.
    #[track_caller]
    pub fn float_power(&self, o: impl IntoTensor) -> Tensor {
        pointwise_in(Pw::Pow, Coercion::Inexact, &[self, &o.into_tensor()])
    }
    /// To an integer of any size: the primitive's parameter has 32 bits.
    #[track_caller]
    fn known_power(&self, n: i64) -> Tensor {
        if let Ok(n) = i32::try_from(n) {
            return self.powi(n);
        }
        let (high, low) = (n.unsigned_abs() >> 30, n.unsigned_abs() & ((1 << 30) - 1));
        let sign = n.signum();
        self.powi(1 << 30).known_power(sign * high as i64) * self.known_power(sign * low as i64)
    }
    /// Elementwise largest integer that is not above; integers stay.
    #[track_caller]
    pub fn floor(&self) -> Tensor {
        if self.dtype().is_float() { pw(Pw::Floor, &[self]) } else { self.clone() }
    }
    /// Elementwise least integer that is not below; integers stay.
    #[track_caller]
    pub fn ceil(&self) -> Tensor {
        if self.dtype().is_float() { pw(Pw::Ceil, &[self]) } else { self.clone() }
    }
    /// Elementwise nearest integer, the even one of two; integers stay.
    #[track_caller]
    pub fn round(&self) -> Tensor {
        if self.dtype().is_float() { emit(Pointwise { f: Pw::Round, y: 1 }, &[self]) } else { self.clone() }
    }
    /// Elementwise base 2 logarithm.
    #[track_caller]
    pub fn log2(&self) -> Tensor {
        let x = super::inexact(self);
        pw(Pw::Div, &[&pw(Pw::Log, &[&x]), &pw(Pw::Log, &[&constant(x.dtype(), 2.0)])])
    }
    /// Elementwise: whether it is nan.
    #[track_caller]
    pub fn is_nan(&self) -> Tensor {
        pw(Pw::Ne, &[self, self])
    }
    /// Elementwise: whether it is infinite.
    #[track_caller]
    pub fn is_inf(&self) -> Tensor {
        self.abs().eq(f64::INFINITY)
    }
    /// Elementwise remainder with the sign of `o`: numpy's `%`. 0 for integers where `o` is 0.
    #[track_caller]
    pub fn modulo(&self, o: impl IntoTensor) -> Tensor {
        let [x, mut y] = exactly(super::promote(&[self, &o.into_tensor()]));
        let zero = constant(x.dtype(), 0.0);
        if x.dtype().is_int() {
            y = super::where_(&y.eq(&zero), y.ones_like(), &y);
        }
        let rest = pointwise(Pw::Rem, &[&x, &y]);
        let differ = rest.lt(&zero).ne(y.lt(&zero)) & rest.ne(&zero);
        super::where_(&differ, &rest + &y, &rest)
    }
    /// Elementwise largest integer that is not above `self / o`.
    #[track_caller]
    pub fn floor_div(&self, o: impl IntoTensor) -> Tensor {
        let [x, y] = exactly(super::promote(&[self, &o.into_tensor()]));
        if !x.dtype().is_int() {
            let rest = pointwise(Pw::Rem, &[&x, &y]);
            // by zero: the infinity, or the nan, that division gives
            let q = super::where_(&y.eq(0.0), &x, &x - &rest) / &y;
            let differ = rest.ne(0.0) & y.sign().ne(rest.sign());
            let q = super::where_(&differ, &q - 1.0, &q);
            return emit(Pointwise { f: Pw::Round, y: 0 }, &[&q]); // halves away from zero
        }
        let q = pointwise(Pw::Div, &[&x, &y]);
        if x.dtype().is_unsigned() {
            return q;
        }
        let differ = x.sign().ne(y.sign()) & pointwise(Pw::Rem, &[&x, &y]).ne(0);
        super::where_(&differ, &q - 1, &q)
    }
    /// Elementwise `sqrt(self^2 + o^2)`, without overflow.
    #[track_caller]
    pub fn hypot(&self, o: impl IntoTensor) -> Tensor {
        let (x, y) = (self.abs(), o.into_tensor().abs());
        let (low, high) = (x.minimum(&y), x.maximum(&y));
        let safe = super::where_(&high.eq(0.0), high.ones_like(), &high);
        let length = &high * ((low / &safe).square() + 1.0).sqrt();
        let infinite = x.eq(f64::INFINITY) | y.eq(f64::INFINITY);
        super::where_(&infinite, f64::INFINITY, super::where_(&high.eq(0.0), &high, length))
    }
    /// Limited to `[low, high]`.
    #[track_caller]
    pub fn clip(&self, low: impl IntoTensor, high: impl IntoTensor) -> Tensor {
        high.into_tensor().minimum(low.into_tensor().maximum(self))
    }
    /// The real part; a real number is its own.
    #[track_caller]
    pub fn real(&self) -> Tensor {
        if self.dtype().is_complex() { pw(Pw::Real, &[self]) } else { self.clone() }
    }
    /// The imaginary part.
    #[track_caller]
    pub fn imag(&self) -> Tensor {
        if self.dtype().is_complex() { pw(Pw::Imag, &[self]) } else { self.zeros_like() }
    }
    /// The complex conjugate; a real number is its own.
    #[track_caller]
    pub fn conj(&self) -> Tensor {
        if self.dtype().is_complex() { pw(Pw::Conj, &[self]) } else { self.clone() }
    }
    /// The angle of a complex number.
    #[track_caller]
    pub fn angle(&self) -> Tensor {
        self.imag().atan2(self.real())
    }
    /// `self + i * imaginary`.
    #[track_caller]
    pub fn complex(&self, imaginary: impl IntoTensor) -> Tensor {
        pointwise(Pw::Complex, &[self, &imaginary.into_tensor()])
    }
    /// The bits of every element as another dtype of as many bits.
    #[track_caller]
    pub fn bitcast(&self, dtype: Dtype) -> Tensor {
        emit(ferrax_ir::ops::bitcast::Bitcast { new_dtype: dtype }, &[self])
    }
    /// `if self { yes } else { no }`, elementwise: [`super::where_`] as a method.
    #[track_caller]
    pub fn select(&self, yes: impl IntoTensor, no: impl IntoTensor) -> Tensor {
        super::where_(self, yes, no)
    }
}
#[track_caller]
fn same_rank(x: &Tensor, y: &Tensor) -> [Tensor; 2] {
    let both = ok(promote_shapes("pow", [x.0.clone(), y.0.clone()].into_iter().collect(), PROMOTION, &mut |_| ()));
    exactly(both.into_iter().map(Tensor).collect())
}
/// An integer whose value is known.
#[track_caller]
fn integer_of(x: &Tensor) -> i64 {
    let l = ok(x.0.item());
    l.scalar().map_or(0, |s| s.to_i64())
}
/// By squaring. Six bits of y are read: any power that fits has an exponent below 64, or a base of -1, 0 or 1.
#[track_caller]
fn integer_power(x: &Tensor, y: &Tensor) -> Tensor {
    let [mut x, mut y] = same_rank(x, y);
    let (zero, one) = (constant(x.dtype(), 0.0), constant(x.dtype(), 1.0));
    let empty = pw(Pw::And, &[&pw(Pw::Eq, &[&x, &zero]), &pw(Pw::Ne, &[&y, &zero])]);
    let mut out = super::where_(&empty, &zero, &one);
    for i in 0..6 {
        let odd = pw(Pw::And, &[&y, &one]);
        out = super::where_(&odd, pw(Pw::Mul, &[&out, &x]), &out);
        if i < 5 {
            x = pw(Pw::Mul, &[&x, &x]);
            y = pw(Pw::ShiftRightLogical, &[&y, &one]);
        }
    }
    out.strong()
}
