//! The closed list of scalar functions: what one element of a kernel can be computed with.
//!
//! Types: `Un` keeps its operand's dtype unless the row says otherwise; `Bin` takes two operands of one dtype. Comparisons give
//! bool. 16-bit floats compute in f32 and round after each function; narrow integers wrap after each function.
//!
//! What machines disagree on is fixed here, as JAX on CPU has it:
//! - integers wrap; `x / 0 = -1` (all bits set, also unsigned), `x % 0 = x`, `MIN / -1 = MIN`, `MIN % -1 = 0`; division truncates, `%` takes the dividend's sign
//! - shifts by the width or more give 0; the arithmetic one gives 0 or -1; a negative amount counts as one that is too large
//! - the arithmetic right shift takes the top bit for a sign, also that of an unsigned integer
//! - to bf16, 64-bit floats and integers go through f32; every other conversion rounds once
//! - float to integer truncates and saturates, nan gives 0; integer to narrower integer wraps; anything to bool is `!= 0`
//! - `Max` and `Min` are nan if either operand is; `Max(-0, 0) = 0`, `Min(0, -0) = -0`
//! - subnormals are kept

macro_rules! table {
    ($Enum:ident: $($Name:ident $text:literal $doc:literal;)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(clippy::empty_docs)] // the name says it all
        pub enum $Enum { $(#[doc = $doc] $Name),* }
        impl $Enum {
            pub const ALL: &'static [$Enum] = &[$($Enum::$Name),*];
            pub const fn name(self) -> &'static str { match self { $($Enum::$Name => $text),* } }
            pub fn from_name(s: &str) -> Option<$Enum> { match s { $($text => Some($Enum::$Name),)* _ => None } }
        }
    }
}

table! { Un:
    Neg "neg" "`-x`; integers wrap.";
    Abs "abs" "`|x|`; `abs(MIN) = MIN`.";
    Sign "sign" "-1, 0 or 1; nan and signed zeros stay.";
    Not "not" "Bitwise; logical for bool.";
    Popcnt "popcnt" "Number of set bits.";
    Clz "clz" "Number of leading zero bits at the dtype's own width.";
    Floor "floor" "";
    Ceil "ceil" "";
    RoundEven "round_even" "To nearest, ties to even.";
    RoundAway "round_away" "To nearest, ties away from zero.";
    Trunc "trunc" "Towards zero.";
    IsFinite "is_finite" "Gives bool.";
    Sqrt "sqrt" "Correctly rounded.";
    Rsqrt "rsqrt" "";
    Cbrt "cbrt" "";
    Exp "exp" "";
    Exp2 "exp2" "";
    Expm1 "expm1" "";
    Log "log" "";
    Log1p "log1p" "";
    Sin "sin" "";
    Cos "cos" "";
    Tan "tan" "";
    Asin "asin" "";
    Acos "acos" "";
    Atan "atan" "";
    Sinh "sinh" "";
    Cosh "cosh" "";
    Tanh "tanh" "";
    Asinh "asinh" "";
    Acosh "acosh" "";
    Atanh "atanh" "";
    Logistic "logistic" "`1 / (1 + exp(-x))`.";
    Erf "erf" "";
    Erfc "erfc" "";
    ErfInv "erf_inv" "";
    Lgamma "lgamma" "`log |gamma(x)|`.";
    Digamma "digamma" "";
}

table! { Bin:
    Add "add" "";
    Sub "sub" "";
    Mul "mul" "";
    Div "div" "";
    Rem "rem" "Sign of the dividend, as C's fmod.";
    Pow "pow" "Floats, by IEEE's special cases. (Integer powers are lowered to products.)";
    Max "max" "";
    Min "min" "";
    Atan2 "atan2" "";
    NextAfter "nextafter" "";
    And "and" "";
    Or "or" "";
    Xor "xor" "";
    Shl "shl" "";
    ShrLogical "shr_logical" "";
    ShrArithmetic "shr_arithmetic" "";
    Eq "eq" "Gives bool, as the five below; comparisons with nan are false.";
    Ne "ne" "True for nan.";
    Lt "lt" "";
    Le "le" "";
    Gt "gt" "";
    Ge "ge" "";
}

impl Bin {
    /// Whether the result is bool whatever the operands are.
    pub const fn is_comparison(self) -> bool {
        matches!(self, Bin::Eq | Bin::Ne | Bin::Lt | Bin::Le | Bin::Gt | Bin::Ge)
    }
}

table! { ReduceKind:
    Sum "sum" "Identity 0.";
    Prod "prod" "Identity 1.";
    Max "max" "Identity: the dtype's least value, -inf for floats. Nan wins.";
    Min "min" "Identity: the dtype's greatest value, inf for floats. Nan wins.";
    And "and" "Identity: all bits set.";
    Or "or" "Identity 0.";
    Xor "xor" "Identity 0.";
    ArgMax "argmax" "The row-major position, within the reduced dimensions, of the greatest element; the first of equals; the first nan if there is one.";
    ArgMin "argmin" "Likewise for the least.";
}

impl ReduceKind {
    /// The function that combines two elements; none for the two that give positions.
    pub const fn bin(self) -> Option<Bin> {
        match self {
            ReduceKind::Sum => Some(Bin::Add),
            ReduceKind::Prod => Some(Bin::Mul),
            ReduceKind::Max => Some(Bin::Max),
            ReduceKind::Min => Some(Bin::Min),
            ReduceKind::And => Some(Bin::And),
            ReduceKind::Or => Some(Bin::Or),
            ReduceKind::Xor => Some(Bin::Xor),
            ReduceKind::ArgMax | ReduceKind::ArgMin => None,
        }
    }
    /// The result of an empty reduction, and the initial value of accumulators. `None` for the two
    /// that give positions.
    pub fn identity(self, d: crate::DType) -> Option<crate::Scalar> {
        use crate::{DType, Scalar};
        let all_ones = Scalar { dtype: d, bits: if d == DType::Bool { 1 } else { u64::MAX >> (64 - d.bits()) } };
        let sign_bit = 1u64 << (d.bits() - 1);
        let extreme = |least: bool| match d.kind() {
            crate::dtype::DTypeKind::Float => {
                if least {
                    d.lowest()
                } else {
                    d.highest()
                }
            }
            crate::dtype::DTypeKind::Int => Scalar { dtype: d, bits: if least { sign_bit } else { sign_bit - 1 } },
            _ if least => Scalar::zero(d),
            _ => all_ones,
        };
        match self {
            ReduceKind::Sum | ReduceKind::Or | ReduceKind::Xor => Some(Scalar::zero(d)),
            ReduceKind::Prod => Some(Scalar::one(d)),
            ReduceKind::Max => Some(extreme(true)),
            ReduceKind::Min => Some(extreme(false)),
            ReduceKind::And => Some(all_ones),
            ReduceKind::ArgMax | ReduceKind::ArgMin => None,
        }
    }
}
