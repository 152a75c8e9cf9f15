//! The scalar table: one row of WGSL for each function of [`ferrax_kernel::expr`], over lanes that are in the range of their dtype.
//!
//! INVARIANT: both matches are exhaustive; a function that a dtype lacks, or that this backend does not implement yet, is an error.
use super::{from_word, lane, narrowed, to_word};
use ferrax_kernel::{Bin, DType, Error, ReduceKind, Res, Un};

fn undefined<T>(what: &str, d: DType) -> Res<T> {
    Err(Error::Invalid(format!("{what} is not defined for {d}")))
}

/// `f(x)` as a lane of `d`, the operand's dtype (of bool for `IsFinite`).
pub fn un(f: Un, d: DType, x: &str) -> Res<String> {
    if f == Un::IsFinite {
        return Ok(format!("is_finite({x})"));
    }
    let value = match lane(d) {
        "f32" => un_float(f, d, x)?,
        "bool" if f == Un::Not => return Ok(format!("!({x})")),
        "bool" => return undefined(f.name(), d),
        _ => un_integer(f, d, x)?,
    };
    Ok(narrowed(d, &value))
}

fn un_integer(f: Un, d: DType, x: &str) -> Res<String> {
    let signed = d.is_signed();
    let width = 8 * d.size();
    Ok(match f {
        Un::Neg if signed => format!("(0 - ({x}))"),
        Un::Neg => format!("(0u - ({x}))"),
        Un::Abs if signed => format!("select({x}, 0 - ({x}), ({x}) < 0)"),
        Un::Abs => x.to_string(),
        Un::Sign if signed => format!("sign({x})"),
        Un::Sign => format!("min({x}, 1u)"),
        Un::Not => format!("(~({x}))"),
        Un::Popcnt => cast(d, &format!("countOneBits({})", to_word(d, x))),
        Un::Clz => cast(d, &format!("(countLeadingZeros({}) - {}u)", to_word(d, x), 32 - width)),
        Un::Floor
        | Un::Ceil
        | Un::RoundEven
        | Un::RoundAway
        | Un::Trunc
        | Un::IsFinite
        | Un::Sqrt
        | Un::Rsqrt
        | Un::Cbrt
        | Un::Exp
        | Un::Exp2
        | Un::Expm1
        | Un::Log
        | Un::Log1p
        | Un::Sin
        | Un::Cos
        | Un::Tan
        | Un::Asin
        | Un::Acos
        | Un::Atan
        | Un::Sinh
        | Un::Cosh
        | Un::Tanh
        | Un::Asinh
        | Un::Acosh
        | Un::Atanh
        | Un::Logistic
        | Un::Erf
        | Un::Erfc
        | Un::ErfInv
        | Un::Lgamma
        | Un::Digamma => return undefined(f.name(), d),
    })
}

/// A `u32` expression as an integer lane of `d`.
fn cast(d: DType, u: &str) -> String {
    if d.is_signed() { format!("bitcast<i32>({u})") } else { u.to_string() }
}

fn un_float(f: Un, d: DType, x: &str) -> Res<String> {
    Ok(match f {
        Un::Neg => format!("bitcast<f32>(bitcast<u32>({x}) ^ 0x80000000u)"),
        Un::Abs => format!("bitcast<f32>(bitcast<u32>({x}) & 0x7fffffffu)"),
        Un::Sign => format!("sign_f32({x})"),
        Un::Floor => format!("integral({x}, floor({x}))"),
        Un::Ceil => format!("integral({x}, ceil({x}))"),
        Un::RoundEven => format!("integral({x}, round({x}))"),
        Un::RoundAway => format!("round_away({x})"),
        Un::Trunc => format!("integral({x}, trunc({x}))"),
        Un::Sqrt => format!("root({x})"),
        Un::Exp | Un::Exp2 | Un::Expm1 | Un::Log | Un::Log1p => format!("m_{}({x})", f.name()),
        Un::Sin | Un::Cos | Un::Tan | Un::Asin | Un::Acos | Un::Atan => format!("m_{}({x})", f.name()),
        Un::Sinh | Un::Cosh | Un::Tanh | Un::Asinh | Un::Acosh | Un::Atanh => format!("m_{}({x})", f.name()),
        Un::Rsqrt | Un::Cbrt | Un::Logistic | Un::Erf | Un::Erfc | Un::ErfInv | Un::Lgamma | Un::Digamma => {
            format!("m_{}({x})", f.name())
        }
        Un::Not | Un::Popcnt | Un::Clz | Un::IsFinite => return undefined(f.name(), d),
    })
}

/// `f(x, y)` for two lanes of `d`; a lane of `d`, or of bool for comparisons.
pub fn bin(f: Bin, d: DType, x: &str, y: &str) -> Res<String> {
    if f.is_comparison() {
        return Ok(compare(f, d, x, y));
    }
    let value = match lane(d) {
        "f32" => bin_float(f, d, x, y)?,
        "bool" => return bin_bool(f, d, x, y),
        _ => bin_integer(f, d, x, y)?,
    };
    Ok(narrowed(d, &value))
}

fn compare(f: Bin, d: DType, x: &str, y: &str) -> String {
    // WGSL orders no booleans.
    let (x, y) = if d == DType::Bool { (to_word(d, x), to_word(d, y)) } else { (x.to_string(), y.to_string()) };
    let float = d.is_float();
    match f {
        Bin::Eq if float => format!("eq_f32({x}, {y})"),
        Bin::Ne if float => format!("!eq_f32({x}, {y})"),
        Bin::Lt if float => format!("lt_f32({x}, {y})"),
        Bin::Le if float => format!("le_f32({x}, {y})"),
        Bin::Gt if float => format!("lt_f32({y}, {x})"),
        Bin::Ge if float => format!("le_f32({y}, {x})"),
        Bin::Eq => format!("(({x}) == ({y}))"),
        Bin::Ne => format!("(({x}) != ({y}))"),
        Bin::Lt => format!("(({x}) < ({y}))"),
        Bin::Le => format!("(({x}) <= ({y}))"),
        Bin::Gt => format!("(({x}) > ({y}))"),
        _ => format!("(({x}) >= ({y}))"),
    }
}

fn bin_bool(f: Bin, d: DType, x: &str, y: &str) -> Res<String> {
    Ok(match f {
        Bin::And | Bin::Min | Bin::Mul => format!("(({x}) & ({y}))"),
        Bin::Or | Bin::Max | Bin::Add => format!("(({x}) | ({y}))"),
        Bin::Xor => format!("(({x}) != ({y}))"),
        Bin::Sub
        | Bin::Div
        | Bin::Rem
        | Bin::Pow
        | Bin::Atan2
        | Bin::NextAfter
        | Bin::Shl
        | Bin::ShrLogical
        | Bin::ShrArithmetic => return undefined(f.name(), d),
        Bin::Eq | Bin::Ne | Bin::Lt | Bin::Le | Bin::Gt | Bin::Ge => return undefined(f.name(), d),
    })
}

fn bin_integer(f: Bin, d: DType, x: &str, y: &str) -> Res<String> {
    let word = |v: &str| if d.is_signed() { format!("bitcast<u32>({v})") } else { v.to_string() };
    let width = 8 * d.size();
    Ok(match f {
        Bin::Add => format!("(({x}) + ({y}))"),
        Bin::Sub => format!("(({x}) - ({y}))"),
        Bin::Mul => format!("(({x}) * ({y}))"),
        Bin::Div => format!("div_{}({x}, {y})", lane(d)),
        Bin::Rem => format!("rem_{}({x}, {y})", lane(d)),
        Bin::Max => format!("max({x}, {y})"),
        Bin::Min => format!("min({x}, {y})"),
        Bin::And => format!("(({x}) & ({y}))"),
        Bin::Or => format!("(({x}) | ({y}))"),
        Bin::Xor => format!("(({x}) ^ ({y}))"),
        Bin::Shl => cast(d, &format!("shl({}, {}, {width}u)", word(x), word(y))),
        Bin::ShrLogical => cast(d, &format!("shr_logical({}, {}, {width}u)", to_word(d, x), word(y))),
        Bin::ShrArithmetic => {
            // The top bit of the dtype is the sign, also of an unsigned one.
            let spare = 32 - width;
            let signed = format!("(bitcast<i32>({} << {spare}u) >> {spare}u)", word(x));
            let shifted = format!("shr_arithmetic({signed}, {}, {width}u)", word(y));
            if d.is_signed() { shifted } else { format!("bitcast<u32>({shifted})") }
        }
        Bin::Pow | Bin::Atan2 | Bin::NextAfter => return undefined(f.name(), d),
        Bin::Eq | Bin::Ne | Bin::Lt | Bin::Le | Bin::Gt | Bin::Ge => return undefined(f.name(), d),
    })
}

fn bin_float(f: Bin, d: DType, x: &str, y: &str) -> Res<String> {
    Ok(match f {
        Bin::Add => format!("opaque(({x}) + ({y}))"),
        Bin::Sub => format!("opaque(({x}) - ({y}))"),
        Bin::Mul => format!("opaque(({x}) * ({y}))"),
        Bin::Div => format!("divide({x}, {y})"),
        Bin::Rem => format!("fmod({x}, {y})"),
        Bin::Max => format!("max_f32({x}, {y})"),
        Bin::Min => format!("min_f32({x}, {y})"),
        Bin::Pow | Bin::Atan2 => format!("m_{}({x}, {y})", f.name()),
        Bin::NextAfter => {
            let sign = 1u32 << (8 * d.size() - 1);
            let stepped = format!("next_after({}, {}, {sign}u, {x}, {y})", to_word(d, x), to_word(d, y));
            format!("select({}, float(0x7fc00000u), is_nan({x}) || is_nan({y}))", from_word(d, &stepped))
        }
        Bin::And | Bin::Or | Bin::Xor | Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic => {
            return undefined(f.name(), d);
        }
        Bin::Eq | Bin::Ne | Bin::Lt | Bin::Le | Bin::Gt | Bin::Ge => return undefined(f.name(), d),
    })
}

/// The combination of two accumulators of a reduction, in the lane dtype `d`.
pub fn combine(kind: ReduceKind, d: DType, x: &str, y: &str) -> Res<String> {
    match kind.bin() {
        Some(f) => bin(f, d, x, y),
        None => undefined(kind.name(), d),
    }
}

/// `x`, a lane of `from`, as a lane of `to`.
pub fn convert(from: DType, to: DType, x: &str) -> String {
    let value = match (lane(from), lane(to)) {
        ("f32", "bool") => format!("!is_zero({x})"),
        ("i32", "bool") => format!("(({x}) != 0)"),
        ("u32", "bool") => format!("(({x}) != 0u)"),
        // Saturating at the width of the target.
        ("f32", "i32") if to.size() < 4 => {
            let half = 1i64 << (8 * to.size() - 1);
            return format!("clamp(f32_to_i32({x}), -{half}, {})", half - 1);
        }
        ("f32", "u32") if to.size() < 4 => return format!("min(f32_to_u32({x}), {}u)", (1u64 << (8 * to.size())) - 1),
        ("f32", "i32") => format!("f32_to_i32({x})"),
        ("f32", "u32") => format!("f32_to_u32({x})"),
        ("bool", t) => format!("{t}(select(0u, 1u, {x}))"),
        ("i32", "u32") => format!("bitcast<u32>({x})"),
        ("u32", "i32") => format!("bitcast<i32>({x})"),
        (f, t) if f == t => x.to_string(),
        (_, t) => format!("{t}({x})"),
    };
    // A narrower or equal dtype of the same lane holds it already.
    if from == to { x.to_string() } else { narrowed(to, &value) }
}

/// `x`, a lane of the float `d`, rounded to fewer bits.
pub fn round(d: DType, x: &str, exponent: u8, mantissa: u8) -> String {
    let (e, m) = match d {
        DType::F16 => (5, 10),
        DType::BF16 => (8, 7),
        _ => (8, 23),
    };
    from_word(d, &format!("round_to({}, {e}u, {m}u, {exponent}u, {mantissa}u)", to_word(d, x)))
}
