//! Elementwise functions, one row each: the method's name, the primitive of the language's table, what it computes.
//!
//! A test checks that every row of that table (`Pw::ALL`) is a method, an operator, or listed as
//! internal.
use super::{IntoTensor, PROMOTION, Tensor, constant, emit, exactly, pointwise, pointwise_in, pw};
use crate::mistakes::{self, ok};
use crate::numpy::elementwise::{Coercion, promote_shapes};
use crate::numpy::promotion::convert;
use ferrax_ir::ops::pointwise::{Pointwise, Pw};
use ferrax_ir::{Dtype, Error, Value};

macro_rules! unary {
    ($($f:ident $F:ident $doc:literal $x:tt => $y:tt;)*) => {
        impl Tensor { $(
            #[doc = concat!(
                $doc, "\n\n```\nuse ferrax::Tensor;\nlet y = Tensor::from(", stringify!($x), ").", stringify!($f), "();\n",
                "assert_eq!(y.all_close(Tensor::from(", stringify!($y), "), 1e-6, 1e-6).item(), 1.0);\n```"
            )]
            #[track_caller]
            pub fn $f(&self) -> Tensor {
                pointwise(Pw::$F, &[self])
            }
        )* }
        /// The functions of one operand: name and primitive.
        #[doc(hidden)]
        pub const UNARY: &[(&str, Pw)] = &[$((stringify!($f), Pw::$F)),*];
    }
}
macro_rules! binary {
    ($($f:ident $F:ident $doc:literal $x:tt $o:tt => $y:tt;)*) => {
        impl Tensor { $(
            #[doc = concat!(
                $doc, "\n\n```\nuse ferrax::Tensor;\nlet y = Tensor::from(", stringify!($x), ").", stringify!($f), "(Tensor::from(",
                stringify!($o), "));\nassert_eq!(y.all_close(Tensor::from(", stringify!($y), "), 1e-6, 1e-6).item(), 1.0);\n```"
            )]
            #[track_caller]
            pub fn $f(&self, o: impl IntoTensor) -> Tensor {
                pointwise(Pw::$F, &[self, &o.into_tensor()])
            }
        )* }
        /// The functions of two operands: name and primitive.
        #[doc(hidden)]
        pub const BINARY: &[(&str, Pw)] = &[$((stringify!($f), Pw::$F)),*];
    }
}
unary! {
    sign Sign "Elementwise sign: -1, 0 or 1; of a complex number, its direction." [-2.0f32, 0.0, 3.0] => [-1.0f32, 0.0, 1.0];
    exp Exp "Elementwise exponential." [0.0f32, 1.0] => [1.0f32, 2.7182817];
    exp2 Exp2 "Elementwise power of two." [0.0f32, 3.0] => [1.0f32, 8.0];
    log Log "Elementwise natural logarithm." [1.0f32, 2.7182817] => [0.0f32, 1.0];
    log1p Log1p "Elementwise `log(1 + x)`, accurate near 0." [0.0f32, 1e-6] => [0.0f32, 1e-6];
    expm1 Expm1 "Elementwise `exp(x) - 1`, accurate near 0." [0.0f32, 1e-6] => [0.0f32, 1e-6];
    sin Sin "Elementwise sine." [0.0f32, 1.5707964] => [0.0f32, 1.0];
    cos Cos "Elementwise cosine." [0.0f32, 1.5707964] => [1.0f32, 0.0];
    tan Tan "Elementwise tangent." [0.0f32, 0.7853982] => [0.0f32, 1.0];
    asin Asin "Elementwise inverse sine." [0.0f32, 1.0] => [0.0f32, 1.5707964];
    acos Acos "Elementwise inverse cosine." [1.0f32, 0.0] => [0.0f32, 1.5707964];
    atan Atan "Elementwise inverse tangent." [0.0f32, 1.0] => [0.0f32, 0.7853982];
    sinh Sinh "Elementwise hyperbolic sine." [0.0f32, 1.0] => [0.0f32, 1.1752012];
    cosh Cosh "Elementwise hyperbolic cosine." [0.0f32, 1.0] => [1.0f32, 1.5430806];
    tanh Tanh "Elementwise hyperbolic tangent." [0.0f32, 1.0] => [0.0f32, 0.7615942];
    asinh Asinh "Elementwise inverse hyperbolic sine." [0.0f32, 1.1752012] => [0.0f32, 1.0];
    acosh Acosh "Elementwise inverse hyperbolic cosine." [1.0f32, 1.5430806] => [0.0f32, 1.0];
    atanh Atanh "Elementwise inverse hyperbolic tangent." [0.0f32, 0.7615942] => [0.0f32, 1.0];
    logistic Logistic "Elementwise `1 / (1 + exp(-x))`." [0.0f32, 100.0] => [0.5f32, 1.0];
    erf Erf "Elementwise error function." [0.0f32, 10.0] => [0.0f32, 1.0];
    erfc Erfc "Elementwise `1 - erf(x)`." [0.0f32, 10.0] => [1.0f32, 0.0];
    erf_inv ErfInv "Elementwise inverse of the error function." [0.0f32, 0.8427008] => [0.0f32, 1.0];
    lgamma Lgamma "Elementwise logarithm of the absolute value of the gamma function." [1.0f32, 4.0] => [0.0f32, 1.7917595];
    digamma Digamma "Elementwise derivative of `lgamma`." [1.0f32] => [-0.5772157f32];
    bessel_i0e BesselI0e "Elementwise modified Bessel function of order 0, times `exp(-|x|)`." [0.0f32, 1.0] => [1.0f32, 0.4657596];
    bessel_i1e BesselI1e "Elementwise modified Bessel function of order 1, times `exp(-|x|)`." [0.0f32, 1.0] => [0.0f32, 0.2079104];
    sqrt Sqrt "Elementwise square root." [4.0f32, 9.0] => [2.0f32, 3.0];
    rsqrt Rsqrt "Elementwise `1 / sqrt(x)`." [4.0f32, 0.25] => [0.5f32, 2.0];
    cbrt Cbrt "Elementwise cube root." [8.0f32, -27.0] => [2.0f32, -3.0];
    square Square "Elementwise square." [3.0f32, -2.0] => [9.0f32, 4.0];
    abs Abs "Elementwise absolute value." [-3, 2] => [3, 2];
    is_finite IsFinite "Elementwise: neither infinite nor nan." [1.0f32, f32::INFINITY, f32::NAN] => [true, false, false];
    population_count PopulationCount "Elementwise number of bits that are set." [7, 8] => [3, 1];
    leading_zeros Clz "Elementwise number of leading zero bits." [1, 255] => [31, 24];
    stop_gradient StopGradient "The same value, whose derivative is zero." [1.0f32, 2.0] => [1.0f32, 2.0];
    copy Copy "The same value in memory of its own." [1.0f32, 2.0] => [1.0f32, 2.0];
}
binary! {
    maximum Max "Elementwise larger one; nan if one is." [1.0f32, 5.0] [3.0f32, 2.0] => [3.0f32, 5.0];
    minimum Min "Elementwise smaller one; nan if one is." [1.0f32, 5.0] [3.0f32, 2.0] => [1.0f32, 2.0];
    atan2 Atan2 "Elementwise angle of the point (o, self)." [1.0f32, 0.0] [1.0f32, 1.0] => [0.7853982f32, 0.0];
    nextafter NextAfter "Elementwise next number towards o." [1.0f32] [2.0f32] => [1.0000001f32];
    polygamma Polygamma "Elementwise polygamma function of order self at o." [1.0f32] [1.0f32] => [1.6449341f32];
    shift_right_logical ShiftRightLogical "Elementwise shift that brings in zeros." [-1] [28] => [15];
    eq Eq "Elementwise `==`." [1, 2] [1, 3] => [true, false];
    ne Ne "Elementwise `!=`." [1, 2] [1, 3] => [false, true];
    lt Lt "Elementwise `<`." [1, 2] [2, 2] => [true, false];
    le Le "Elementwise `<=`." [2, 3] [2, 2] => [true, false];
    gt Gt "Elementwise `>`." [3, 2] [2, 2] => [true, false];
    ge Ge "Elementwise `>=`." [2, 1] [2, 2] => [true, false];
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
    ("", Pw::LeTo),
    ("", Pw::LtTo),
    ("", Pw::BesselGap),
    ("mul_hi", Pw::MulHi),
];

impl Tensor {
    /// Elementwise power to an integer that is known now: exact by repeated multiplication.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([2, -3]).powi(3).to_vec::<i32>()?, [8, -27]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
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
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([-1.5f32, 1.5]).floor().to_vec::<f32>()?, [-2.0, 1.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn floor(&self) -> Tensor {
        if self.dtype().is_float() { pw(Pw::Floor, &[self]) } else { self.clone() }
    }
    /// Elementwise least integer that is not below; integers stay.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([-1.5f32, 1.5]).ceil().to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn ceil(&self) -> Tensor {
        if self.dtype().is_float() { pw(Pw::Ceil, &[self]) } else { self.clone() }
    }
    /// Elementwise nearest integer, the even one of two; integers stay.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([0.5f32, 1.5]).round().to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn round(&self) -> Tensor {
        if self.dtype().is_float() { emit(Pointwise { f: Pw::Round, y: 1 }, &[self]) } else { self.clone() }
    }
    /// Elementwise base 2 logarithm.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, 8.0]).log2().to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn log2(&self) -> Tensor {
        let x = super::inexact(self);
        pw(Pw::Div, &[&pw(Pw::Log, &[&x]), &pw(Pw::Log, &[&constant(x.dtype(), 2.0)])])
    }
    /// Elementwise: whether it is nan.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([f32::NAN, 1.0]).is_nan().to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn is_nan(&self) -> Tensor {
        pw(Pw::Ne, &[self, self])
    }
    /// Elementwise: whether it is infinite.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([f32::NEG_INFINITY, 1.0]).is_inf().to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn is_inf(&self) -> Tensor {
        self.abs().eq(f64::INFINITY)
    }
    /// Elementwise remainder with the sign of `o`: numpy's `%`. 0 for integers where `o` is 0.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// let x = Tensor::from([-7, 7]);
    /// assert_eq!((x.modulo(3).to_vec::<i32>()?, (&x % 3).to_vec::<i32>()?), (vec![2, 1], vec![-1, 1]));
    /// # Ok::<(), ferrax::Error>(())
    /// ```
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
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([-7, 7]).floor_div(2).to_vec::<i32>()?, [-4, 3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
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
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([3e30f32]).hypot(4e30).is_finite().item(), 1.0);
    /// ```
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
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([-5, 1, 5]).clip(0, 3).to_vec::<i32>()?, [0, 1, 3]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    #[track_caller]
    pub fn clip(&self, low: impl IntoTensor, high: impl IntoTensor) -> Tensor {
        high.into_tensor().minimum(low.into_tensor().maximum(self))
    }
    /// The real part; a real number is its own.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from(1.0f32).complex(2.0).real().item(), 1.0);
    /// ```
    #[track_caller]
    pub fn real(&self) -> Tensor {
        if self.dtype().is_complex() { pw(Pw::Real, &[self]) } else { self.clone() }
    }
    /// The imaginary part.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from(1.0f32).complex(2.0).imag().item(), 2.0);
    /// ```
    #[track_caller]
    pub fn imag(&self) -> Tensor {
        if self.dtype().is_complex() { pw(Pw::Imag, &[self]) } else { self.zeros_like() }
    }
    /// The complex conjugate; a real number is its own.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from(1.0f32).complex(2.0).conj().imag().item(), -2.0);
    /// ```
    #[track_caller]
    pub fn conj(&self) -> Tensor {
        if self.dtype().is_complex() { pw(Pw::Conj, &[self]) } else { self.clone() }
    }
    /// The angle of a complex number.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert!((Tensor::from(0.0f32).complex(2.0).angle().item() - 1.570796).abs() < 1e-6);
    /// ```
    #[track_caller]
    pub fn angle(&self) -> Tensor {
        self.imag().atan2(self.real())
    }
    /// `self + i * imaginary`.
    ///
    /// ```
    /// use ferrax::{Dtype, Tensor};
    /// assert_eq!(Tensor::from(1.0f32).complex(2.0).dtype(), Dtype::C64);
    /// ```
    #[track_caller]
    pub fn complex(&self, imaginary: impl IntoTensor) -> Tensor {
        pointwise(Pw::Complex, &[self, &imaginary.into_tensor()])
    }
    /// The bits of every element as another dtype of as many bits.
    ///
    /// ```
    /// use ferrax::{Dtype, Tensor};
    /// assert_eq!(Tensor::from(1.0f32).bitcast(Dtype::I32).item(), 0x3f80_0000 as f64);
    /// ```
    #[track_caller]
    pub fn bitcast(&self, dtype: Dtype) -> Tensor {
        emit(ferrax_ir::ops::bitcast::Bitcast { new_dtype: dtype }, &[self])
    }
    /// `if self { yes } else { no }`, elementwise: [`super::where_`] as a method.
    ///
    /// ```
    /// use ferrax::Tensor;
    /// assert_eq!(Tensor::from([true, false]).select(1, 2).to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
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
