//! The dtypes that a row of the table accepts, and the dtype of its result.
use crate::dtype::Dtype;
use Domain::*;

#[derive(Clone, Copy, PartialEq)]
pub enum Domain {
    Float,
    /// float32, float64: the dtypes of the parts of complex numbers.
    Wide,
    /// These and complex numbers.
    WideInexact,
    Inexact,
    Complex,
    /// Not bool.
    Number,
    /// Not bool, not unsigned.
    Signed,
    /// Not bool, not complex.
    Real,
    Integer,
    /// bool or integer.
    Bits,
    /// bool, integer, float.
    Ordered,
    Any,
}
impl Domain {
    pub(super) fn has(self, d: Dtype) -> bool {
        match self {
            Float => d.is_float(),
            Wide => matches!(d, Dtype::F32 | Dtype::F64),
            WideInexact => matches!(d, Dtype::F32 | Dtype::F64) || d.is_complex(),
            Inexact => d.is_inexact(),
            Complex => d.is_complex(),
            Number => d.is_int() || d.is_inexact(),
            Signed => d.is_int() && !d.is_unsigned() || d.is_inexact(),
            Real => d.is_int() || d.is_float(),
            Integer => d.is_int(),
            Bits => d.is_int() || d.is_bool(),
            Ordered => d.is_int() || d.is_float() || d.is_bool(),
            Any => true,
        }
    }
    pub(super) fn words(self) -> &'static str {
        match self {
            Float => "floating",
            Wide => "float32, float64",
            WideInexact => "float32, float64, complexfloating",
            Inexact => "floating, complexfloating",
            Complex => "complexfloating",
            Number => "integer, floating, complexfloating",
            Signed => "signedinteger, floating, complexfloating",
            Real => "integer, floating",
            Integer => "integer",
            Bits => "bool, integer",
            Ordered => "bool, integer, floating",
            Any => "generic",
        }
    }
}
#[derive(Clone, Copy, PartialEq)]
pub enum Out {
    Same,
    Bool,
    /// The real part's dtype.
    RealPart,
    ComplexOf,
}
