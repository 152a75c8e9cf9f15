//! The dtype table: the type of an element of a buffer. Facts about dtypes are defined here only.
//!
//! Backends implement the dtypes of `DType::ALL`. Those of `DType::SMALL`, of at most 8 bits, occur
//! in programs; [`crate::small`] legalizes kernels that use them.
//!
//! INVARIANT: `Scalar` compares and hashes by bits, so programs with `nan` or `-0.0` compare
//! correctly.
use crate::minifloat::{Minifloat, Topmost};
use half::{bf16, f16};
use std::fmt;

macro_rules! table {
    (wide $($Name:ident $text:literal $long:literal $bytes:literal $kind:ident;)*;
     small $($Small:ident $stext:literal $slong:literal $bits:literal $skind:ident;)*;) => {
        table! { @ [$($Name)*] [$($Small)*] $($Name $text $long $bytes (8 * $bytes) $kind;)* $($Small $stext $slong 1 $bits $skind;)* }
    };
    (@ [$($Wide:ident)*] [$($Small:ident)*] $($Name:ident $text:literal $long:literal $bytes:literal $bits:tt $kind:ident;)*) => {
        /// Element types of buffers. Booleans are one byte, 0 or 1; those of fewer than 8 bits are the low bits of a byte.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DType { $($Name),* }
        impl DType {
            /// The dtypes that backends implement.
            pub const ALL: &'static [DType] = &[$(DType::$Wide),*];
            /// Those that [`crate::small`] writes in terms of the others.
            pub const SMALL: &'static [DType] = &[$(DType::$Small),*];
            /// Bits of an element that count; a bool has 8.
            pub const fn bits(self) -> u32 { match self { $(DType::$Name => $bits),* } }
            /// Short name, as programs print it: `f32`.
            pub const fn short(self) -> &'static str { match self { $(DType::$Name => $text),* } }
            /// numpy's name: `float32`.
            pub const fn long(self) -> &'static str { match self { $(DType::$Name => $long),* } }
            /// Bytes per element.
            pub const fn size(self) -> usize { match self { $(DType::$Name => $bytes),* } }
            pub const fn kind(self) -> DTypeKind { match self { $(DType::$Name => DTypeKind::$kind),* } }
            pub fn from_short(s: &str) -> Option<DType> { match s { $($text => Some(DType::$Name),)* _ => None } }
            pub fn from_long(s: &str) -> Option<DType> { match s { $($long => Some(DType::$Name),)* _ => None } }
        }
    }
}
table! {
    wide
    Bool "bool" "bool"     1 Bool;
    I8   "i8"   "int8"     1 Int;
    I16  "i16"  "int16"    2 Int;
    I32  "i32"  "int32"    4 Int;
    I64  "i64"  "int64"    8 Int;
    U8   "u8"   "uint8"    1 Uint;
    U16  "u16"  "uint16"   2 Uint;
    U32  "u32"  "uint32"   4 Uint;
    U64  "u64"  "uint64"   8 Uint;
    F16  "f16"  "float16"  2 Float;
    BF16 "bf16" "bfloat16" 2 Float;
    F32  "f32"  "float32"  4 Float;
    F64  "f64"  "float64"  8 Float;
    ;
    small
    I2   "i2"   "int2"  2 Int;
    I4   "i4"   "int4"  4 Int;
    U2   "u2"   "uint2" 2 Uint;
    U4   "u4"   "uint4" 4 Uint;
    F4E2M1FN      "f4_e2m1fn"      "float4_e2m1fn"      4 Float;
    F8E3M4        "f8_e3m4"        "float8_e3m4"        8 Float;
    F8E4M3        "f8_e4m3"        "float8_e4m3"        8 Float;
    F8E4M3B11FNUZ "f8_e4m3b11fnuz" "float8_e4m3b11fnuz" 8 Float;
    F8E4M3FN      "f8_e4m3fn"      "float8_e4m3fn"      8 Float;
    F8E4M3FNUZ    "f8_e4m3fnuz"    "float8_e4m3fnuz"    8 Float;
    F8E5M2        "f8_e5m2"        "float8_e5m2"        8 Float;
    F8E5M2FNUZ    "f8_e5m2fnuz"    "float8_e5m2fnuz"    8 Float;
    F8E8M0FNU     "f8_e8m0fnu"     "float8_e8m0fnu"     8 Float;
    ;
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DTypeKind {
    Bool,
    Int,
    Uint,
    Float,
}

impl DType {
    pub fn is_float(self) -> bool {
        self.kind() == DTypeKind::Float
    }
    /// Signed or unsigned, not bool.
    pub fn is_int(self) -> bool {
        matches!(self.kind(), DTypeKind::Int | DTypeKind::Uint)
    }
    pub fn is_signed(self) -> bool {
        self.kind() == DTypeKind::Int
    }
    /// -inf, or the least of the values where there is none.
    pub fn lowest(self) -> Scalar {
        self.extreme(true)
    }
    /// inf, or the greatest of the values where there is none.
    pub fn highest(self) -> Scalar {
        self.extreme(false)
    }
    fn extreme(self, least: bool) -> Scalar {
        if self.is_small() && self.is_float() {
            return Scalar { dtype: self, bits: minifloat(self).extreme(least) as u64 };
        }
        Scalar::from_f64(self, if least { f64::NEG_INFINITY } else { f64::INFINITY })
    }
    /// The least value of an integer dtype of up to 32 bits.
    pub fn least(self) -> i64 {
        if self.is_signed() { -1 << (self.bits() - 1) } else { 0 }
    }
    /// The greatest one.
    pub fn greatest(self) -> i64 {
        (1 << (self.bits() - self.is_signed() as u32)) - 1
    }
    /// The dtype arithmetic is done in: 16-bit floats compute in f32 and round after each function, narrow integers in 32 bits
    /// and wrap after each function.
    pub fn lane(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            DType::I8 | DType::I16 => DType::I32,
            DType::U8 | DType::U16 | DType::Bool => DType::U32,
            DType::I2 | DType::I4 => DType::I32,
            DType::U2 | DType::U4 => DType::U32,
            d if d.is_small() => DType::F32,
            d => d,
        }
    }
    /// Whether it is of [`DType::SMALL`].
    pub fn is_small(self) -> bool {
        self > DType::F64
    }
    /// The dtype of the elements for backends: bytes, if they do not implement this one.
    pub fn storage(self) -> DType {
        if self.is_small() { DType::U8 } else { self }
    }
}
/// The format of a small float.
pub(crate) fn minifloat(d: DType) -> Minifloat {
    let of = |exponent, mantissa, bias, special| Minifloat { exponent, mantissa, bias, special };
    match d {
        DType::F4E2M1FN => of(2, 1, 1, Topmost::Finite),
        DType::F8E3M4 => of(3, 4, 3, Topmost::Ieee),
        DType::F8E4M3 => of(4, 3, 7, Topmost::Ieee),
        DType::F8E4M3B11FNUZ => of(4, 3, 11, Topmost::LoneSign),
        DType::F8E4M3FN => of(4, 3, 7, Topmost::AllOnes),
        DType::F8E4M3FNUZ => of(4, 3, 8, Topmost::LoneSign),
        DType::F8E5M2 => of(5, 2, 15, Topmost::Ieee),
        DType::F8E5M2FNUZ => of(5, 2, 16, Topmost::LoneSign),
        _ => of(8, 0, 127, Topmost::Power),
    }
}
impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.short())
    }
}

/// One element: its dtype and its bits, zero-extended to 64.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scalar {
    pub dtype: DType,
    pub bits: u64,
}

impl Scalar {
    pub const fn zero(dtype: DType) -> Scalar {
        Scalar { dtype, bits: 0 }
    }
    pub fn one(dtype: DType) -> Scalar {
        Scalar::from_i64(dtype, 1)
    }
    pub fn bool(x: bool) -> Scalar {
        Scalar { dtype: DType::Bool, bits: x as u64 }
    }
    pub fn f32(x: f32) -> Scalar {
        Scalar { dtype: DType::F32, bits: x.to_bits() as u64 }
    }
    pub fn f64(x: f64) -> Scalar {
        Scalar { dtype: DType::F64, bits: x.to_bits() }
    }
    pub fn i32(x: i32) -> Scalar {
        Scalar { dtype: DType::I32, bits: x as u32 as u64 }
    }
    pub fn u32(x: u32) -> Scalar {
        Scalar { dtype: DType::U32, bits: x as u64 }
    }
    /// `x` rounded to `dtype`; to an integer dtype it truncates and saturates, nan to 0; to bool it is `x != 0`.
    pub fn from_f64(dtype: DType, x: f64) -> Scalar {
        use DType::*;
        let bits = match dtype {
            Bool => (x != 0.0) as u64,
            I8 => x as i8 as u8 as u64,
            I16 => x as i16 as u16 as u64,
            I32 => x as i32 as u32 as u64,
            I64 => x as i64 as u64,
            U8 => x as u8 as u64,
            U16 => x as u16 as u64,
            U32 => x as u32 as u64,
            U64 => x as u64,
            F16 => f16::from_f32(to_odd(x)).to_bits() as u64,
            BF16 => bf16::from_f32(x as f32).to_bits() as u64,
            F32 => (x as f32).to_bits() as u64,
            F64 => x.to_bits(),
            I2 | I4 | U2 | U4 => return Scalar::from_i64(dtype, (x as i64).clamp(dtype.least(), dtype.greatest())),
            d => minifloat(d).encode(x) as u64,
        };
        Scalar { dtype, bits }
    }
    /// `x` converted to `dtype`; integers wrap.
    pub fn from_i64(dtype: DType, x: i64) -> Scalar {
        let bits = match dtype {
            DType::Bool => (x != 0) as u64,
            d if d.is_float() => return Scalar::from_f64(d, x as f64),
            d => x as u64 & (u64::MAX >> (64 - d.bits())),
        };
        Scalar { dtype, bits }
    }
    /// The value as a double: exact but for 64-bit integers beyond 2^53.
    pub fn to_f64(self) -> f64 {
        match self.dtype {
            DType::F16 => f16::from_bits(self.bits as u16).to_f64(),
            DType::BF16 => bf16::from_bits(self.bits as u16).to_f64(),
            DType::F32 => f32::from_bits(self.bits as u32) as f64,
            DType::F64 => f64::from_bits(self.bits),
            d if d.is_small() && d.is_float() => minifloat(d).decode(self.bits as u8),
            DType::U64 => self.bits as f64,
            _ => self.to_i64() as f64,
        }
    }
    /// The value as a 64-bit integer; floats truncate and saturate, u64 wraps.
    pub fn to_i64(self) -> i64 {
        match self.dtype {
            DType::I8 => self.bits as i8 as i64,
            DType::I16 => self.bits as i16 as i64,
            DType::I32 => self.bits as i32 as i64,
            DType::I2 | DType::I4 => {
                let unused = 64 - self.dtype.bits();
                (self.bits << unused) as i64 >> unused
            }
            d if d.is_float() => self.to_f64() as i64,
            _ => self.bits as i64,
        }
    }
    pub fn is_zero(self) -> bool {
        if self.dtype.is_float() { self.to_f64() == 0.0 } else { self.bits == 0 }
    }
    /// Little-endian bytes, `dtype.size()` of them.
    pub fn bytes(self) -> [u8; 8] {
        self.bits.to_le_bytes()
    }
    pub fn from_bytes(dtype: DType, b: &[u8]) -> Scalar {
        let mut w = [0; 8];
        w[..dtype.size()].copy_from_slice(&b[..dtype.size()]);
        // the bits above those that count have no meaning
        let bits = u64::from_le_bytes(w) & (u64::MAX >> (64 - dtype.bits()));
        Scalar { dtype, bits }
    }
}
/// To f32 rounding to odd: rounding that to 16 bits rounds once in all. (`half` rounds 64-bit floats twice.)
fn to_odd(x: f64) -> f32 {
    let y = x as f32;
    if x.is_nan() || y as f64 == x {
        return y;
    }
    let toward_zero = y.to_bits() - (y.abs() as f64 > x.abs()) as u32;
    f32::from_bits(toward_zero | 1)
}
impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{self}:{}", self.dtype)
    }
}
/// As Python prints it: `True`, `3`, `2.0`, `1e-05`, `inf`, `nan`. An f32 prints the shortest decimal of its double, as JAX does.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.dtype.kind() {
            DTypeKind::Bool => f.write_str(if self.bits != 0 { "True" } else { "False" }),
            DTypeKind::Int => write!(f, "{}", self.to_i64()),
            DTypeKind::Uint => write!(f, "{}", self.bits),
            DTypeKind::Float => python_float(f, self.to_f64()),
        }
    }
}
/// `repr(float)`: positional from 1e-4 up to 1e16, else scientific with a two-digit exponent.
fn python_float(f: &mut fmt::Formatter, x: f64) -> fmt::Result {
    if x.is_nan() {
        return f.write_str("nan");
    }
    if x.is_infinite() {
        return f.write_str(if x > 0.0 { "inf" } else { "-inf" });
    }
    if x != 0.0 && !(1e-4..1e16).contains(&x.abs()) {
        let s = format!("{x:e}");
        let (m, e) = s.split_once('e').expect("LowerExp prints an exponent");
        let e: i32 = e.parse().map_err(|_| fmt::Error)?;
        return write!(f, "{m}e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs());
    }
    write!(f, "{x:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_print_as_python_does() {
        let s = |x: f64| Scalar::f64(x).to_string();
        assert_eq!(
            [s(2.0), s(1e-5), s(1e16), s(0.1), s(-0.0), s(1.5e-300), s(123456789.0)],
            ["2.0", "1e-05", "1e+16", "0.1", "-0.0", "1.5e-300", "123456789.0"]
        );
        assert_eq!(Scalar::f32(0.1).to_string(), "0.10000000149011612");
    }
    #[test]
    fn integers_wrap_and_floats_saturate() {
        assert_eq!(Scalar::from_i64(DType::I8, 200).to_i64(), -56);
        assert_eq!(Scalar::from_f64(DType::I32, 1e10).to_i64(), i32::MAX as i64);
        assert_eq!(Scalar::from_f64(DType::I32, f64::NAN).to_i64(), 0);
        assert_eq!(Scalar::from_f64(DType::U8, -1.0).to_i64(), 0);
    }
    #[test]
    fn bytes_round_trip() {
        for d in DType::ALL.iter().chain(DType::SMALL) {
            let s = Scalar::from_f64(*d, 1.0);
            assert_eq!(Scalar::from_bytes(*d, &s.bytes()), s);
        }
    }
}
