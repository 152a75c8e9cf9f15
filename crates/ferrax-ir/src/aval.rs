//! What a value is before anyone has computed it: dtype, shape, whether its dtype is only a Python scalar's, and how many loops of
//! unknown length it is stacked over, over which manual axes it varies, and how it is cut. `Lit` is a rank-0 constant written in a program.
//!
//! INVARIANT: `Lit` compares and hashes by its bits, so programs that hold `nan` or `-0.0` compare correctly.
use crate::cut::{Parted, TypedCut};
use crate::dtype::Dtype;
use crate::layout::CutAxes;
use crate::vary::Vary;
use ferrax_kernel::{DType, Dims, Scalar};
use std::fmt;

/// `tape = k`: k nested sequences of lengths known only at run time, of arrays `dtype[shape]`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Aval {
    pub shape: Dims,
    pub dtype: Dtype,
    /// The dtype yields to any other: it comes from a Python scalar.
    pub weak: bool,
    pub tape: u8,
    /// The axes of a `shard_map` with checked types over which the value may vary.
    pub vary: Vary,
    /// How it is cut among devices, where types say so. A type that is given another shape has no cut until the value that it describes is
    /// known.
    pub cut: TypedCut,
}

impl Aval {
    pub fn new(dtype: Dtype, shape: &[usize]) -> Aval {
        Aval { shape: Dims::new(shape), dtype, weak: false, tape: 0, vary: Vary::NONE, cut: TypedCut::NONE }
    }
    pub fn of(dtype: Dtype, shape: Dims) -> Aval {
        Aval { shape, dtype, weak: false, tape: 0, vary: Vary::NONE, cut: TypedCut::NONE }
    }
    pub fn scalar(dtype: Dtype) -> Aval {
        Aval::of(dtype, Dims::default())
    }
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
    pub fn with_shape(&self, shape: Dims) -> Aval {
        Aval { shape, cut: TypedCut::NONE, ..*self }
    }
    pub fn with_dtype(&self, dtype: Dtype) -> Aval {
        Aval { dtype, ..self.clone() }
    }
    pub fn varying(&self, vary: Vary) -> Aval {
        Aval { vary, ..self.clone() }
    }
    pub fn strong(&self) -> Aval {
        Aval { weak: false, ..self.clone() }
    }
    /// The type of a tangent or cotangent; `None` where the only one is zero (JAX's float0).
    pub fn tangent(&self) -> Option<Aval> {
        self.dtype.is_inexact().then(|| self.clone())
    }
    /// The type of a cotangent, for a value that has tangents.
    pub fn cotangent(&self) -> Aval {
        Aval { cut: self.cut.cotangent(), ..self.clone() }
    }
    pub fn has_tangent(&self) -> bool {
        self.dtype.is_inexact()
    }
    pub fn batched(&self, n: usize, at: usize) -> Aval {
        Aval { cut: self.cut.insert(at), ..self.with_shape(self.shape.insert(at, n)) }
    }
    /// The same, where these mesh axes cut the batch.
    pub fn batched_cut(&self, n: usize, at: usize, axes: CutAxes) -> Aval {
        Aval { cut: self.cut.insert_cut(at, axes), ..self.with_shape(self.shape.insert(at, n)) }
    }
    pub fn unbatched(&self, at: usize) -> Aval {
        Aval { cut: self.cut.remove(at), ..self.with_shape(self.shape.remove(at)) }
    }
    /// Equality of types except for weakness and for the axes over which they vary, which the host
    /// language checks: compares bodies and carries.
    pub fn same(&self, o: &Aval) -> bool {
        self.dtype == o.dtype && self.tape == o.tape && self.shape == o.shape
    }
    fn dims(&self) -> String {
        self.cut.get().map_or_else(|| join(&self.shape), |cut| join_cut(&self.shape, &cut))
    }
    /// `{V:x, U:y}`: the axes over which it varies, and those along which it is a sum or was one.
    fn marks(&self) -> String {
        let sums = self.cut.get().map_or(vec![], |cut| cut.sums_text());
        if sums.is_empty() {
            return varies(self.vary);
        }
        let vary = varies(self.vary);
        let vary = vary.trim_matches(['{', '}']);
        let all: Vec<&str> =
            Some(vary).filter(|v| !v.is_empty()).into_iter().chain(sums.iter().map(String::as_str)).collect();
        format!("{{{}}}", all.join(", "))
    }
    /// As JAX writes types in error messages: `float32[2,3]`.
    pub fn long(&self) -> String {
        format!("{}[{}]{}", self.dtype.long(), self.dims(), self.marks())
    }
}
pub fn same_avals(a: &[Aval], b: &[Aval]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
}
/// `{V:x}`, the axes in the order in which functions were mapped over them; empty for a value that
/// varies over none.
fn varies(v: Vary) -> String {
    if v.is_none() {
        return String::new();
    }
    match &v.in_order()[..] {
        [one] => format!("{{V:{one}}}"),
        many => format!("{{V:({})}}", many.join(",")),
    }
}
#[cold]
fn join_cut(s: &[usize], cut: &Parted) -> String {
    s.iter().enumerate().map(|(d, n)| format!("{n}{}", cut.dim_text(d))).collect::<Vec<_>>().join(",")
}
fn join(s: &[usize]) -> String {
    s.iter().map(|d| d.to_string()).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Aval {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for _ in 0..self.tape {
            write!(f, "tape ")?;
        }
        write!(f, "{}[{}]{}", self.dtype, self.dims(), self.marks())
    }
}
impl fmt::Debug for Aval {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{self}{}", if self.weak { "*" } else { "" })
    }
}

/// A rank-0 constant: no allocation, never a captured input. Both parts of a complex one are kept in single precision: a complex128
/// that is not exact there is an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lit {
    bits: u64,
    dtype: Dtype,
    pub weak: bool,
}

impl Lit {
    pub fn new(s: Scalar, weak: bool) -> Lit {
        Lit { bits: s.bits, dtype: Dtype::Num(s.dtype), weak }
    }
    pub fn c64(re: f32, im: f32, weak: bool) -> Lit {
        Lit::complex(Dtype::C64, re, im, weak)
    }
    /// A complex literal whose parts are exact in single precision.
    pub fn complex(dtype: Dtype, re: f32, im: f32, weak: bool) -> Lit {
        Lit { bits: re.to_bits() as u64 | (im.to_bits() as u64) << 32, dtype, weak }
    }
    pub fn from_f64(dtype: Dtype, x: f64) -> Lit {
        match dtype {
            Dtype::Num(d) => Lit::new(Scalar::from_f64(d, x), false),
            Dtype::Float0 => Lit { bits: 0, dtype, weak: false },
            d => Lit::complex(d, x as f32, 0.0, false),
        }
    }
    pub fn from_i64(dtype: Dtype, x: i64) -> Lit {
        match dtype {
            Dtype::Num(d) => Lit::new(Scalar::from_i64(d, x), false),
            d => Lit::from_f64(d, x as f64),
        }
    }
    pub fn zero(dtype: Dtype) -> Lit {
        Lit { bits: 0, dtype, weak: false }
    }
    /// The literal of these bits, as [`Lit::bits`] gives them; `None` if no literal of the dtype has them.
    pub fn from_bits(dtype: Dtype, bits: u64, weak: bool) -> Option<Lit> {
        let fits = match dtype {
            Dtype::BOOL => bits <= 1,
            Dtype::Num(d) => d.bits() >= 64 || bits >> d.bits() == 0,
            Dtype::C64 | Dtype::C128 => true,
            Dtype::Key(_) => false,
            Dtype::Float0 => bits == 0,
        };
        fits.then_some(Lit { bits, dtype, weak })
    }
    /// The element's bits, zero-extended; of a complex one the real part's, and above them the imaginary part's, in single precision.
    pub fn bits(&self) -> u64 {
        self.bits
    }
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }
    pub fn aval(&self) -> Aval {
        Aval {
            shape: Dims::default(),
            dtype: self.dtype,
            weak: self.weak,
            tape: 0,
            vary: Vary::NONE,
            cut: TypedCut::NONE,
        }
    }
    /// The waist's scalar; `None` for a complex literal.
    pub fn scalar(&self) -> Option<Scalar> {
        self.dtype.num().map(|dtype| Scalar { dtype, bits: self.bits })
    }
    /// Real and imaginary parts, as doubles.
    pub fn parts(&self) -> (f64, f64) {
        match self.scalar() {
            Some(s) => (s.to_f64(), 0.0),
            None => (f32::from_bits(self.bits as u32) as f64, f32::from_bits((self.bits >> 32) as u32) as f64),
        }
    }
    pub fn is_zero(&self) -> bool {
        self.parts() == (0.0, 0.0)
    }
}
/// As Python prints it; complex numbers as `0j`, `(2+0j)`.
impl fmt::Display for Lit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(s) = self.scalar() {
            return write!(f, "{s}");
        }
        let (re, im) = self.parts();
        let short = |x: f64| {
            let s = Scalar::f64(x).to_string();
            s.strip_suffix(".0").map_or(s.clone(), str::to_string)
        };
        match re == 0.0 && re.is_sign_positive() {
            true => write!(f, "{}j", short(im)),
            false => write!(f, "({}{}{}j)", short(re), if im.is_sign_negative() { "" } else { "+" }, short(im)),
        }
    }
}
impl fmt::Debug for Lit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{self}:{}", self.dtype)
    }
}
impl From<Scalar> for Lit {
    fn from(s: Scalar) -> Lit {
        Lit::new(s, false)
    }
}
impl From<bool> for Lit {
    fn from(x: bool) -> Lit {
        Lit::new(Scalar::from_i64(DType::Bool, x as i64), false)
    }
}
