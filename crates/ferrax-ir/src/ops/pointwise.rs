//! Pointwise functions, one row each: `out[i] = f(x[i], y[i])`, numpy's ufuncs on equal dtypes.
//!
//! Operands have equal ranks and sizes that are equal or 1, or rank 0. A row says name, domain, output dtype and, for each operand,
//! the product of the slope with a tangent. infer, jvp, transpose, batch follow for the whole family:
//!
//! ```text
//!     dy = sum_i slope_i(x, y) * dx_i        ct_i = slope_i(x) * ct, where the function is linear in operand i
//! ```
//!
//! The terms are JAX's, in its order, and a pole is a pole: what keeps one from a masked tangent is its support (`support.rs`).
//! Where JAX's term is nan and the function has a derivative (`x ** 0.` at 0) or a convention (the angle of the origin), it is that.
mod domain;
pub(super) mod lower;
mod terms;

use super::convert::Convert;
use crate::aval::Aval;
use crate::cx::{Arg, Axis, Cx, Dim, Tan, int, lit, values1, zero};
use crate::dtype::Dtype;
use crate::error::{Error, Res, mixed_dtypes, no_jvp, not_linear, type_err};
use crate::factors::Factors;
use crate::lower::{Graph, TensorId, TensorIds};
use crate::op::{Avals, Axes, Rules, Tans};
use crate::param::{Field, Param, ParamList, ParamMap, ParamValue, Params, Show};
use crate::support::{Supports, Within, within_each, within_product, within_sum};
use crate::typing::{Specs, Sums, Typing};
use crate::value::{Value, Values};
pub use domain::{Domain, Out};
use ferrax_kernel::Dims;
use smallvec::{SmallVec, smallvec};
pub use terms::{At, Slope};
use {Domain::*, Out::*, Slope::*};

pub struct Row {
    pub name: &'static str,
    pub domain: Domain,
    pub out: Out,
    pub slopes: &'static [Slope],
    /// The name of its integer parameter.
    pub param: Option<&'static str>,
}

macro_rules! table {
    ($($F:ident $name:literal $($param:literal)? $dom:ident $out:ident [$($slope:expr),* $(,)?];)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Pw { $($F),* }
        impl Pw {
            pub const ALL: &'static [Pw] = &[$(Pw::$F),*];
            pub fn row(self) -> &'static Row {
                match self { $(Pw::$F => {
                    static ROW: Row = Row { name: $name, domain: $dom, out: $out, slopes: &[$($slope),*], param: table!(@param $($param)?) };
                    &ROW
                })* }
            }
            pub fn from_name(s: &str) -> Option<Pw> { match s { $($name => Some(Pw::$F),)* _ => None } }
        }
    };
    (@param) => { None };
    (@param $p:literal) => { Some($p) };
}

const TWO_OVER_SQRT_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI;
const HALF_SQRT_PI: f64 = 1.0 / TWO_OVER_SQRT_PI;

table! {
    Neg "neg" Number Same [Minus];
    Sign "sign" Number Same [Flat];
    Floor "floor" Float Same [Flat];
    Ceil "ceil" Float Same [Flat];
    Round "round" "rounding_method" Float Same [Flat];
    IsFinite "is_finite" Float Bool [Flat];
    Exp "exp" Inexact Same [By(|a, t| a.mul(t, a.y))];
    Exp2 "exp2" Inexact Same [By(|a, t| {
        let ln2 = a.f(Pw::Log, &[&a.k(2.0)])?;
        let ty = a.mul(t, a.y)?;
        a.mul(&ln2, &ty)
    })];
    Log "log" Inexact Same [By(|a, t| a.f(Pw::Div, &[t, &a.x[0]]))];
    Log1p "log1p" Inexact Same [By(|a, t| {
        let x1 = a.f(Pw::Add, &[&a.x[0], &a.k(1.0)])?;
        a.f(Pw::Div, &[t, &x1])
    })];
    Expm1 "expm1" Inexact Same [By(|a, t| a.mul(t, &a.f(Pw::Exp, &[&a.x[0]])?))];
    Sin "sin" Inexact Same [By(|a, t| a.mul(t, &a.f(Pw::Cos, &[&a.x[0]])?))];
    Cos "cos" Inexact Same [By(|a, t| {
        let s = a.mul(t, &a.f(Pw::Sin, &[&a.x[0]])?)?;
        a.cx.neg(&s)
    })];
    Tan "tan" Inexact Same [By(|a, t| {
        let s = a.square(a.y)?;
        a.mul(t, &a.f(Pw::Add, &[&a.k(1.0), &s])?)
    })];
    Asin "asin" Inexact Same [By(|a, t| a.mul(t, &a.f(Pw::Rsqrt, &[&a.one_less_square()?])?))];
    Acos "acos" Inexact Same [By(|a, t| {
        let r = a.f(Pw::Rsqrt, &[&a.one_less_square()?])?;
        a.mul(t, &a.cx.neg(&r)?)
    })];
    Atan "atan" Inexact Same [By(|a, t| {
        let s = a.square(&a.x[0])?;
        a.f(Pw::Div, &[t, &a.f(Pw::Add, &[&a.k(1.0), &s])?])
    })];
    Sinh "sinh" Inexact Same [By(|a, t| a.mul(t, &a.f(Pw::Cosh, &[&a.x[0]])?))];
    Cosh "cosh" Inexact Same [By(|a, t| a.mul(t, &a.f(Pw::Sinh, &[&a.x[0]])?))];
    // (t + t y)(1 - y): exact where y is near -1, and of y alone, which the next layer of a network keeps anyway
    Tanh "tanh" Inexact Same [By(|a, t| {
        let ty = a.mul(t, a.y)?;
        let s = a.f(Pw::Add, &[t, &ty])?;
        a.mul(&s, &a.f(Pw::Sub, &[&a.k(1.0), a.y])?)
    })];
    Asinh "asinh" Inexact Same [By(|a, t| a.mul(t, &a.inverse_radius()?))];
    // of two factors: their product would be rounded near 1
    Acosh "acosh" Inexact Same [By(|a, t| {
        let less = a.f(Pw::Rsqrt, &[&a.f(Pw::Sub, &[&a.x[0], &a.k(1.0)])?])?;
        let more = a.f(Pw::Rsqrt, &[&a.f(Pw::Add, &[&a.x[0], &a.k(1.0)])?])?;
        a.mul(t, &a.mul(&less, &more)?)
    })];
    Atanh "atanh" Inexact Same [By(|a, t| a.f(Pw::Div, &[t, &a.one_less_square()?]))];
    // y (1 - y), with the logistic of -x for 1 - y
    Logistic "logistic" Inexact Same [By(|a, t| {
        let rest = a.f(Pw::Logistic, &[&a.cx.neg(&a.x[0])?])?;
        let s = a.mul(a.y, &rest)?;
        a.mul(t, &s)
    })];
    Erf "erf" Float Same [By(|a, t| a.gauss(t, &a.x[0], true, TWO_OVER_SQRT_PI))];
    Erfc "erfc" Float Same [By(|a, t| a.gauss(t, &a.x[0], true, -TWO_OVER_SQRT_PI))];
    ErfInv "erf_inv" Float Same [By(|a, t| a.gauss(t, a.y, false, HALF_SQRT_PI))];
    Lgamma "lgamma" Float Same [By(|a, t| a.mul(t, &a.f(Pw::Digamma, &[&a.x[0]])?))];
    Digamma "digamma" Float Same [By(|a, t| a.mul(t, &a.f(Pw::Polygamma, &[&a.k(1.0), &a.x[0]])?))];
    Polygamma "polygamma" Float Same [NoRule, By(|a, t| {
        let n1 = a.f(Pw::Add, &[&a.x[0], &a.k(1.0)])?;
        a.mul(t, &a.f(Pw::Polygamma, &[&n1, &a.x[1]])?)
    })];
    // i0e - |i1e| is a function of its own: the difference cancels for large x
    BesselI0e "bessel_i0e" Float Same [By(|a, t| {
        let gap = a.f(Pw::BesselGap, &[&a.x[0]])?;
        let s = a.f(Pw::Sign, &[&a.x[0]])?;
        a.mul(t, &a.cx.neg(&a.mul(&s, &gap)?)?)
    })];
    BesselI1e "bessel_i1e" Float Same [By(|a, t| {
        let gap = a.f(Pw::BesselGap, &[&a.x[0]])?;
        a.mul(t, &a.f(Pw::Sub, &[&gap, &a.bessel_i1e_over_x()?])?)
    })];
    BesselGap "bessel_i0e_minus_i1e" Float Same [By(|a, t| a.mul(t, &a.bessel_gap_slope()?))];
    Sqrt "sqrt" Inexact Same [By(|a, t| a.mul(t, &a.f(Pw::Div, &[&a.k(0.5), a.y])?))];
    Rsqrt "rsqrt" Inexact Same [By(|a, t| {
        let r = a.f(Pw::Div, &[a.y, &a.x[0]])?;
        a.mul(t, &a.mul(&a.k(-0.5), &r)?)
    })];
    Cbrt "cbrt" Float Same [By(|a, t| {
        let p = a.ipow(a.y, -2)?;
        a.mul(t, &a.mul(&a.k(1.0 / 3.0), &p)?)
    })];
    Square "square" Number Same [By(|a, t| a.mul(t, &a.mul(&a.k(2.0), &a.x[0])?))];
    IntegerPow "integer_pow" "y" Number Same [By(|a, t| match a.n {
        0 => a.mul(t, &a.k(0.0)),
        1 => Ok(t.clone()),
        2 => a.mul(t, &a.mul(&a.k(2.0), &a.x[0])?),
        n => {
            let p = a.ipow(&a.x[0], n - 1)?;
            let s = a.mul(&a.k(n as f64), &p)?;
            a.mul(t, &s)
        }
    })];
    Abs "abs" Signed RealPart [By(|a, t| {
        let x = &a.x[0];
        if !x.dtype().is_complex() {
            let p = a.f(Pw::Ge, &[x, &a.k(0.0)])?;
            return a.select(&p, &a.cx.neg(t)?, t);
        }
        // the direction of an infinite x is that of its infinite parts
        let [zero, inf] = [0.0, f64::INFINITY].map(|c| lit(a.y.dtype(), c));
        let far = a.f(Pw::Eq, &[a.y, &inf])?;
        let part = |f: Pw| {
            let v = a.f(f, &[x])?;
            let is = a.f(Pw::Eq, &[&a.f(Pw::Abs, &[&v])?, &inf])?;
            a.select(&is, &zero, &a.f(Pw::Sign, &[&v])?)
        };
        let x = &a.select(&far, x, &a.f(Pw::Complex, &[&part(Pw::Real)?, &part(Pw::Imag)?])?)?;
        let c = a.cx.bind1(Pointwise { f: Pw::Conj, y: 0 }, std::slice::from_ref(x))?;
        let m = a.cx.convert(&a.f(Pw::Abs, &[x])?, x.dtype())?;
        let p = a.f(Pw::Eq, &[&m, &a.k(0.0)])?;
        let m = a.select(&p, &m, &a.k(1.0))?;
        let s = a.mul(t, &a.f(Pw::Div, &[&c, &m])?)?;
        a.f(Pw::Real, &[&s])
    })];
    Not "not" Bits Same [Flat];
    PopulationCount "population_count" Integer Same [Flat];
    Clz "clz" Integer Same [Flat];
    Real "real" Complex RealPart [Lin(|a, t| a.f(Pw::Real, &[t]))];
    Imag "imag" Complex RealPart [Lin(|a, t| a.f(Pw::Imag, &[t]))];
    Conj "conj" WideInexact ComplexOf [Lin(|a, t| a.f(Pw::Conj, &[t]))];
    Copy "copy" Any Same [One];
    StopGradient "stop_gradient" Any Same [Flat];

    Add "add" Number Same [One, One];
    AddAny "add_any" Any Same [One, One];
    Sub "sub" Number Same [One, Minus];
    Mul "mul" Number Same [Lin(|a, t| a.mul(t, &a.x[1])), Lin(|a, t| a.mul(&a.x[0], t))];
    // dx / y  -  (dy * (x / y)) / y: a square of y could leave the dtype's range where the term does not
    Div "div" Number Same [Lin(|a, t| a.f(Pw::Div, &[t, &a.x[1]])), By(|a, t| {
        let ty = a.mul(&a.cx.neg(t)?, a.y)?;
        a.f(Pw::Div, &[&ty, &a.x[1]])
    })];
    Rem "rem" Real Same [One, By(|a, t| {
        let q = a.f(Pw::Div, &[&a.x[0], &a.x[1]])?;
        let s = a.f(Pw::Sign, &[&q])?;
        let m = a.f(Pw::Floor, &[&a.f(Pw::Abs, &[&q])?])?;
        let sm = a.mul(&s, &m)?;
        a.mul(&a.cx.neg(t)?, &sm)
    })];
    Max "max" Any Same [By(|a, t| a.share(t, 0)), By(|a, t| a.share(t, 1))];
    Min "min" Any Same [By(|a, t| a.share(t, 0)), By(|a, t| a.share(t, 1))];
    Pow "pow" Inexact Same [By(pow_base), By(|a, t| {
        let zero = a.f(Pw::Eq, &[&a.x[0], &a.k(0.0)])?;
        let safe = a.select(&zero, &a.x[0], &a.k(1.0))?;
        let l = a.f(Pw::Log, &[&safe])?;
        a.mul(t, &a.mul(&l, a.y)?)
    })];
    Atan2 "atan2" Inexact Same [
        By(|a, t| a.over_squared_radius(t, &a.x[1])),
        By(|a, t| a.over_squared_radius(t, &a.cx.neg(&a.x[0])?)),
    ];
    NextAfter "nextafter" Float Same [NoRule, NoRule];
    Complex "complex" Wide ComplexOf [
        Lin(|a, t| a.f(Pw::Complex, &[t, &lit(t.dtype(), 0.0)])),
        Lin(|a, t| a.f(Pw::Complex, &[&lit(t.dtype(), 0.0), t])),
    ];
    And "and" Bits Same [Flat, Flat];
    Or "or" Bits Same [Flat, Flat];
    Xor "xor" Bits Same [Flat, Flat];
    ShiftLeft "shift_left" Integer Same [Flat, Flat];
    ShiftRightLogical "shift_right_logical" Integer Same [Flat, Flat];
    ShiftRightArithmetic "shift_right_arithmetic" Integer Same [Flat, Flat];
    Eq "eq" Any Bool [Flat, Flat];
    Ne "ne" Any Bool [Flat, Flat];
    Lt "lt" Ordered Bool [Flat, Flat];
    Le "le" Ordered Bool [Flat, Flat];
    Gt "gt" Ordered Bool [Flat, Flat];
    Ge "ge" Ordered Bool [Flat, Flat];
    // by the total order: -nan < -inf < .. < -0 < 0 < .. < inf < nan
    LeTo "le_to" Ordered Bool [Flat, Flat];
    LtTo "lt_to" Ordered Bool [Flat, Flat];
    // the upper half of the product, of twice the width
    MulHi "mulhi" Integer Same [Flat, Flat];
}

/// t * b x^(b-1). An integer exponent is a constant; b = 0 gives 0 also at x = 0. Elsewhere this has its slope in b there.
fn pow_base(a: &At, t: &Value) -> Res<Value> {
    let (x, mut b) = (&a.x[0], a.x[1].clone());
    let whole = b.dtype().is_int();
    if whole {
        b = a.cx.bind1(Convert { new_dtype: x.dtype(), weak_type: false }, &[b])?;
    }
    // strong, as in JAX
    let b1 = a.f(Pw::Sub, &[&b, &lit(x.dtype(), 1.0)])?;
    let p = a.f(Pw::Pow, &[x, &b1])?;
    let mut s = a.mul(&b, &p)?;
    if !matches!(b, Value::Lit(l) if !l.is_zero()) {
        let mut flat = a.f(Pw::Eq, &[&b, &lit(b.dtype(), 0.0)])?;
        if !matches!(b, Value::Lit(_)) {
            flat = a.cx.stretch(&flat, &Dims::new(s.shape()))?;
            let pole = a.f(Pw::Ne, &[&s, &lit(s.dtype(), 0.0)])?;
            flat = a.f(Pw::And, &[&flat, &pole])?;
        }
        s = a.select(&flat, &s, &lit(x.dtype(), 0.0))?;
    }
    a.mul(t, &s)
}

/// `y` is integer_pow's exponent or round's method, 0 elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pointwise {
    pub f: Pw,
    pub y: i32,
}
impl From<Pw> for crate::op::Op {
    fn from(f: Pw) -> Self {
        Pointwise { f, y: 0 }.into()
    }
}

impl Pw {
    /// Whether JAX's primitive has a parameter of that name.
    fn has_accuracy(self) -> bool {
        use Pw::*;
        matches!(self, Exp | Exp2 | Log | Log1p | Expm1 | Sin | Cos | Tan | Tanh | Logistic | Sqrt | Rsqrt | Cbrt)
    }
}
impl Params for Pointwise {
    fn names() -> Vec<&'static str> {
        Pw::ALL.iter().map(|f| f.row().name).collect()
    }
    fn name(&self) -> &'static str {
        self.f.row().name
    }
    fn fields(name: &str) -> Vec<Field> {
        let Some(f) = Pw::from_name(name) else { return vec![] };
        match f.row().param {
            Some(k) => vec![Field::of::<i32>(k, Show::always)],
            None if f.has_accuracy() => vec![Field::none("accuracy", Show::hidden)],
            None => vec![],
        }
    }
    fn params(&self) -> ParamList {
        match self.f.row().param {
            Some(k) => vec![(k, Param::Int(self.y as i64), Show::always)],
            None if self.f.has_accuracy() => vec![("accuracy", Param::None, Show::hidden)],
            None => vec![],
        }
    }
    fn from_params(name: &str, p: &mut ParamMap) -> Res<Pointwise> {
        let Some(f) = Pw::from_name(name) else { return type_err(format!("no primitive is called {name}")) };
        p.remove("accuracy");
        p.remove("input_dtype");
        let y = match f.row().param {
            Some(k) => match p.remove(k) {
                Some(Param::Enum(_, s)) => {
                    ["AWAY_FROM_ZERO", "TO_NEAREST_EVEN"].iter().position(|n| **n == *s).unwrap_or(0) as i32
                }
                Some(v) => i32::from_param(&v).map_or_else(|| type_err(format!("{k} must be an integer")), Ok)?,
                None => return type_err(format!("needs {k}, an integer")),
            },
            None => 0,
        };
        Ok(Pointwise { f, y })
    }
}

impl Pointwise {
    fn check(&self, x: &[Aval]) -> Res<()> {
        let row = self.f.row();
        let n = row.slopes.len();
        if x.len() != n {
            return type_err(format!("{} takes {n} operands, got {}", row.name, x.len()));
        }
        if x.iter().any(|a| a.tape > 0) {
            return type_err(format!("{} does not accept a tape", row.name));
        }
        // pow takes an integer exponent beside an inexact base
        let same = x.iter().all(|a| a.dtype == x[0].dtype) || self.f == Pw::Pow && x[1].dtype.is_int();
        let of_keys = matches!(self.f, Pw::Eq | Pw::Ne | Pw::Copy | Pw::StopGradient);
        // the only functions of float0: those that pass a value on, and the sum of cotangents
        let of_float0 = matches!(self.f, Pw::Copy | Pw::StopGradient | Pw::AddAny);
        let has = |d: Dtype| row.domain.has(d) && (of_keys || !d.is_key()) && (of_float0 || d != Dtype::Float0);
        for (i, a) in x.iter().enumerate() {
            if !(has(a.dtype) || self.f == Pw::Pow && i == 1 && a.dtype.is_int()) {
                let at = if n > 1 { format!(" at position {i}") } else { String::new() };
                if a.dtype == Dtype::Float0 {
                    return Err(Error::float0(row.name, &at));
                }
                return type_err(format!(
                    "{} does not accept dtype {}{at}. Accepted dtypes{at} are subtypes of {}.",
                    row.name,
                    a.dtype.long(),
                    if self.f == Pw::Pow && i == 1 { "integer, floating, complexfloating" } else { row.domain.words() }
                ));
            }
        }
        if !same {
            let d: Vec<&str> = x.iter().map(|a| a.dtype.long()).collect();
            if self.f == Pw::Pow {
                return type_err(format!(
                    "the first argument to pow must have an inexact dtype (float or complex), and the second argument must have an inexact or \
                     integer dtype, and two inexact dtypes must match, but got {} respectively.",
                    d.join(" and ")
                ));
            }
            return mixed_dtypes(row.name, &d);
        }
        Ok(())
    }
}

impl Rules for Pointwise {
    fn infer(&self, x: &[Aval]) -> Res<Avals> {
        self.check(x)?;
        let row = self.f.row();
        let dtype = match row.out {
            Same => x[0].dtype,
            Out::Bool => Dtype::BOOL,
            RealPart => x[0].dtype.real(),
            ComplexOf => x[0].dtype.complex(),
        };
        let weak = x.iter().all(|a| a.weak);
        Ok(smallvec![Aval { shape: common_shape(row.name, x)?, dtype, weak, ..Aval::scalar(dtype) }])
    }
    fn jvp(&self, cx: &dyn Cx, x: &[Value], dx: &[Tan]) -> Res<(Values, Tans)> {
        let y = cx.bind1(*self, x)?;
        if !y.has_tangent() {
            return Ok((values1(y), smallvec![None]));
        }
        if let (Pw::Add | Pw::Sub, [Some(s), Some(t)]) = (self.f, dx) {
            let dy = cx.stretch(&cx.pw2(self.f, s, t)?, &Dims::new(y.shape()))?;
            return Ok((values1(y), smallvec![Some(dy)]));
        }
        let at = At { cx, x, y: &y, n: self.y };
        let mut dy = None;
        for (t, slope) in dx.iter().zip(self.f.row().slopes) {
            let Some(t) = t else { continue };
            let term = match slope {
                Flat => continue,
                One => t.clone(),
                Minus => cx.neg(t)?,
                By(_) if self.f == Pw::IntegerPow && self.y == 0 => continue,
                Lin(s) | By(s) => s(&at, t)?,
                NoRule => return no_jvp(self.f.row().name),
            };
            dy = cx.add_tan(dy, Some(cx.stretch(&term, &Dims::new(y.shape()))?))?;
        }
        Ok((values1(y), smallvec![dy]))
    }
    fn transpose(&self, cx: &dyn Cx, x: &[Arg], ct: &[Tan]) -> Res<Tans> {
        let Some(ct) = &ct[0] else { return Ok(smallvec![None; x.len()]) };
        let lin: SmallVec<[bool; 2]> = x.iter().map(Arg::is_linear).collect();
        let aval = |i: usize| x[i].aval();
        match self.f {
            // <(re, im), ct> in JAX's convention: no conjugate
            Pw::Real => return Ok(smallvec![Some(cx.pw2(Pw::Complex, ct, &zero(ct.dtype()))?)]),
            Pw::Imag => return Ok(smallvec![Some(cx.pw2(Pw::Complex, &zero(ct.dtype()), &cx.neg(ct)?)?)]),
            Pw::Conj => {
                let back = cx.pw(Pw::Conj, std::slice::from_ref(ct))?;
                return Ok(smallvec![Some(if aval(0).dtype.is_complex() { back } else { cx.pw(Pw::Real, &[back])? })]);
            }
            Pw::Complex => {
                let re =
                    if lin[0] { Some(cx.sum_to(cx.pw(Pw::Real, std::slice::from_ref(ct))?, &aval(0))?) } else { None };
                let im = if lin[1] {
                    Some(cx.sum_to(cx.neg(&cx.pw(Pw::Imag, std::slice::from_ref(ct))?)?, &aval(1))?)
                } else {
                    None
                };
                return Ok(smallvec![re, im]);
            }
            _ => (),
        }
        // A linear operand has no value; the term in it does not read it, and one that would is caught by the count.
        let vals: Values =
            x.iter().map(|a| a.known().cloned().unwrap_or_else(|| lit(a.aval().dtype, f64::NAN))).collect();
        let n_linear = lin.iter().filter(|l| **l).count();
        let at = At { cx, x: &vals, y: &vals[0], n: self.y };
        let mut out = Tans::new();
        for (a, slope) in x.iter().zip(self.f.row().slopes) {
            let Arg::Linear(aval) = a else {
                out.push(None);
                continue;
            };
            let g = match slope {
                One => ct.clone(),
                Minus => cx.neg(ct)?,
                Lin(s) if n_linear == 1 => s(&at, ct)?,
                By(s) if self.f == Pw::IntegerPow && self.y == 1 => s(&at, ct)?,
                _ => return not_linear(self.f.row().name),
            };
            out.push(Some(cx.sum_to(g, aval)?));
        }
        Ok(out)
    }
    fn batch(&self, cx: &dyn Cx, _: Axis, x: &[Value], d: &[Dim]) -> Res<(Values, Axes)> {
        let (x, at) = align(cx, x, d)?;
        Ok((cx.bind(&(*self).into(), &x)?, smallvec![Some(at)]))
    }
    fn within(&self, cx: &dyn Cx, x: &[Value], s: &Supports) -> Res<Within> {
        let op = |x: &[Value]| cx.bind1(*self, x);
        match self.f {
            Pw::Neg | Pw::Real | Pw::Imag | Pw::Conj | Pw::Copy => Ok(within_each(op(x)?, x, s)),
            Pw::Mul => Ok(within_product(op(x)?, x, s)),
            Pw::Div if s[1].is_none() => Ok(within_product(op(x)?, x, s)),
            Pw::Complex if (0..2).any(|i| matches!(&x[i], Value::Lit(l) if l.is_zero() && s[i].is_none())) => {
                Ok(within_each(op(x)?, x, s))
            }
            Pw::Add | Pw::AddAny | Pw::Sub | Pw::Complex => {
                let avals: Vec<Aval> = x.iter().map(Value::aval).collect();
                within_sum(cx, x, s, &common_shape(self.f.row().name, &avals)?, &op)
            }
            _ => Ok(None),
        }
    }
    fn sums(&self) -> Sums {
        match self.f {
            Pw::Add | Pw::AddAny => Sums::Add,
            Pw::Neg | Pw::Sub => Sums::Linear,
            Pw::Mul => Sums::Mul,
            Pw::Copy => Sums::Moved,
            _ => Sums::Pointwise,
        }
    }
    fn factors(&self, x: &[Aval], out: &[Aval]) -> Factors {
        Factors::pointwise(x, out)
    }
    fn cuts(&self, t: &Typing) -> Res<Specs> {
        t.broadcasting()
    }
    fn lower(&self, b: &mut Graph, x: &[TensorId], out: &[Aval]) -> Res<TensorIds> {
        let spread = |b: &mut Graph, v: TensorId| {
            if b.rank(v) > 0 { b.broadcast(v, out[0].shape.clone(), &(0..out[0].rank()).collect::<Dims>()) } else { v }
        };
        let x: TensorIds = x.iter().map(|v| spread(b, *v)).collect();
        Ok(smallvec![lower::lower(self.f, self.y, b, &x)?])
    }
}

/// The shape of a pointwise result: equal ranks with sizes equal or 1, or rank 0.
pub fn common_shape(name: &str, x: &[Aval]) -> Res<Dims> {
    let Some(first) = x.iter().find(|a| a.rank() > 0) else { return Ok(Dims::default()) };
    let mut shape = first.shape.clone();
    for a in x {
        if a.rank() == 0 || a.shape == shape {
            continue;
        }
        if a.rank() != shape.len() {
            let (m, n) = (shape.len().min(a.rank()), shape.len().max(a.rank()));
            return type_err(format!("{name}: arrays must have the same number of dimensions, got {{{m}, {n}}}"));
        }
        for k in 0..shape.len() {
            match (shape[k], a.shape[k]) {
                (m, n) if m == n => (),
                (1, n) => shape[k] = n,
                (_, 1) => (),
                _ => {
                    let all: Vec<String> = x.iter().map(|a| a.shape.to_string()).collect();
                    return type_err(format!("{name} got incompatible shapes for broadcasting: {}.", all.join(", ")));
                }
            }
        }
    }
    Ok(shape)
}

/// Operands of a pointwise primitive with the batch axis in one place, and ranks made equal where a batched scalar meets an array.
/// An operand without lanes gets a batch axis of size 1, or stays if it has rank 0.
pub fn align(cx: &dyn Cx, x: &[Value], d: &[Dim]) -> Res<(Values, usize)> {
    let lane_rank = |i: usize| x[i].rank() - d[i].is_some() as usize;
    let rank = (0..x.len()).map(lane_rank).max().unwrap_or(0);
    let lead = (0..x.len()).find(|&i| d[i].is_some() && lane_rank(i) == rank);
    let at = lead.and_then(|i| d[i]).unwrap_or(0);
    let fit = |i: usize| match d[i] {
        None if lane_rank(i) == 0 => Ok(x[i].clone()),
        None => cx.expand(&x[i], 1, at),
        Some(k) if lane_rank(i) == rank => cx.move_axis(&x[i], k, at),
        Some(_) => {
            let mut shape: Dims = (0..=rank).map(|_| 1).collect();
            shape[at] = x[i].shape()[0];
            cx.broadcast(&x[i], &shape, &[at])
        }
    };
    Ok(((0..x.len()).map(fit).collect::<Res<_>>()?, at))
}
/// The literal `x` in the dtype of `like`.
pub fn like(v: &Value, x: i64) -> Value {
    int(v.dtype(), x)
}
