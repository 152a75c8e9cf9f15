//! Lanes: the types that arithmetic is done in, and what each offers to the tables of functions.
//!
//! INVARIANT: the lane of a narrow dtype holds a value that the dtype can hold exactly (i8 sign-extended, f16 as its f32);
//! bools are one byte, 0 or 1.
#![allow(clippy::eq_op)] // `x != x` asks for NaN in every lane type
use ferrax_kernel::DType;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    Bool,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Lane {
    pub fn of(d: DType) -> Lane {
        match d {
            DType::Bool => Lane::Bool,
            DType::I8 | DType::I16 | DType::I32 => Lane::I32,
            DType::U8 | DType::U16 | DType::U32 => Lane::U32,
            DType::I64 => Lane::I64,
            DType::U64 => Lane::U64,
            DType::F16 | DType::BF16 | DType::F32 => Lane::F32,
            DType::F64 => Lane::F64,
            // plans have bytes in their place
            small => Lane::of(small.storage()),
        }
    }
    pub fn size(self) -> usize {
        match self {
            Lane::Bool => 1,
            Lane::I32 | Lane::U32 | Lane::F32 => 4,
            _ => 8,
        }
    }
    /// The dtype of this lane.
    pub fn dtype(self) -> DType {
        match self {
            Lane::Bool => DType::Bool,
            Lane::I32 => DType::I32,
            Lane::U32 => DType::U32,
            Lane::I64 => DType::I64,
            Lane::U64 => DType::U64,
            Lane::F32 => DType::F32,
            Lane::F64 => DType::F64,
        }
    }
    /// Whether a buffer of this dtype can be read as lanes in place.
    pub fn is_storage_of(self, d: DType) -> bool {
        self.size() == d.size()
    }
}

/// Operations that integers of every lane offer.
pub trait Integer: Copy + Ord {
    const ZERO: Self;
    fn shl(self, by: Self) -> Self;
    fn shr_logical(self, by: Self) -> Self;
    fn shr_arithmetic(self, by: Self) -> Self;
    fn div(self, by: Self) -> Self;
    fn rem(self, by: Self) -> Self;
    fn sign(self) -> Self;
    fn abs(self) -> Self;
}
macro_rules! integer {
    ($T:ident $U:ident $I:ident $signed:literal, |$a:ident, $b:ident| $quotient:expr) => {
        impl Integer for $T {
            const ZERO: $T = 0;
            #[inline(always)]
            fn shl(self, by: $T) -> $T {
                if (by as $U) < $U::BITS as $U { self.wrapping_shl(by as u32) } else { 0 }
            }
            #[inline(always)]
            fn shr_logical(self, by: $T) -> $T {
                if (by as $U) < $U::BITS as $U { (self as $U).wrapping_shr(by as u32) as $T } else { 0 }
            }
            #[inline(always)]
            fn shr_arithmetic(self, by: $T) -> $T {
                let by = if (by as $U) < $U::BITS as $U { by as u32 } else { $U::BITS - 1 };
                (self as $I).wrapping_shr(by) as $T
            }
            #[inline(always)]
            fn div(self, by: $T) -> $T {
                let $a = self;
                let $b = if by == 0 { 1 } else { by };
                let q = $quotient;
                if by == 0 {
                    $T::MAX | $T::MIN
                } else if $signed && by == $T::MAX | $T::MIN {
                    self.wrapping_neg()
                } else {
                    q
                }
            }
            #[inline(always)]
            fn rem(self, by: $T) -> $T {
                if by == 0 { self } else { self.wrapping_sub(self.div(by).wrapping_mul(by)) }
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn sign(self) -> $T {
                (self > 0) as $T - ((self < 0) as $T)
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn abs(self) -> $T {
                if self < 0 { self.wrapping_neg() } else { self }
            }
        }
    };
}
// 32-bit quotients are exact through doubles, which vectorise: the distance to the next integer is at least 1 / b, the error less.
integer!(i32 u32 i32 true, |a, b| (a as f64 / b as f64) as i32);
integer!(u32 u32 i32 false, |a, b| (a as f64 / b as f64) as u32);
integer!(i64 u64 i64 true, |a, b| a.wrapping_div(b));
integer!(u64 u64 i64 false, |a, b| a / b);

/// Operations of both float lanes beyond the operators.
pub trait Float: Copy {
    fn maximum(self, o: Self) -> Self;
    fn minimum(self, o: Self) -> Self;
    fn sign(self) -> Self;
    fn next_after(self, to: Self) -> Self;
    fn reduce_precision(self, exponent: u32, mantissa: u32) -> Self;
}
macro_rules! float {
    ($T:ident $U:ident $mantissa:literal) => {
        impl Float for $T {
            /// Nan if either is; of equals, the one that has no sign.
            #[inline(always)]
            fn maximum(self, o: $T) -> $T {
                let equal = $T::from_bits(self.to_bits() & o.to_bits());
                let other = if (self > o) | (self != self) { self } else { o };
                if self == o { equal } else { other }
            }
            #[inline(always)]
            fn minimum(self, o: $T) -> $T {
                let equal = $T::from_bits(self.to_bits() | o.to_bits());
                let other = if (self < o) | (self != self) { self } else { o };
                if self == o { equal } else { other }
            }
            #[inline(always)]
            fn sign(self) -> $T {
                let s = if self > 0.0 { 1.0 } else { -1.0 };
                if (self == 0.0) | (self != self) { self } else { s }
            }
            #[inline(always)]
            fn next_after(self, to: $T) -> $T {
                let (x, sign) = (self.to_bits(), 1 << ($U::BITS - 1));
                let away = ((to > self) & (self > 0.0)) | ((to < self) & (self < 0.0));
                let step = if away { x.wrapping_add(1) } else { x.wrapping_sub(1) };
                let step = if self == 0.0 { (to.to_bits() & sign) | 1 } else { step };
                let moved = if self == to { to } else { $T::from_bits(step) };
                if (self != self) | (to != to) { self + to } else { moved }
            }
            #[inline(always)]
            fn reduce_precision(self, exponent: u32, mantissa: u32) -> $T {
                let out = $T::from_bits(reduce_precision(
                    self.to_bits() as u64,
                    $U::BITS - 1 - $mantissa,
                    $mantissa,
                    exponent,
                    mantissa,
                ) as $U);
                if self != self { self } else { out }
            }
        }
    };
}
float!(f32 u32 23);
float!(f64 u64 52);

/// The bits of a float of `e` exponent and `m` mantissa bits, rounded to nearest even at `mantissa`
/// bits; a result beyond the range of `exponent` bits becomes inf, a result that would be subnormal
/// becomes a signed zero.
#[inline(always)]
pub fn reduce_precision(x: u64, e: u32, m: u32, exponent: u32, mantissa: u32) -> u64 {
    let sign = x & (1 << (e + m));
    let mut x = x ^ sign;
    if mantissa < m {
        let drop = m - mantissa;
        let half = (1u64 << (drop - 1)) - 1;
        let odd = (x >> drop) & 1;
        x = (x + half + odd) & !((1u64 << drop) - 1);
    }
    if exponent < e {
        let bias = (1u64 << (e - 1)) - 1;
        let narrow = (1u64 << (exponent.max(1) - 1)) - 1;
        let biased = x >> m;
        let inf = ((1u64 << e) - 1) << m;
        x = if biased > bias + narrow { inf } else { x };
        x = if biased <= bias - narrow { 0 } else { x };
    }
    x | sign
}

/// `x` rounded to the nearest 16-bit IEEE float, kept as f32.
#[inline(always)]
pub fn round_f16(x: f32) -> f32 {
    let a = x.abs();
    let sign = x.to_bits() & 0x8000_0000;
    // Below 2^-14 the quantum is 2^-24, the unit in the last place of 0.5.
    let small = (a + 0.5) - 0.5;
    let b = a.to_bits();
    let big = f32::from_bits(b.wrapping_add(0xfff + ((b >> 13) & 1)) & !0x1fff);
    let big = if big >= 65536.0 { f32::INFINITY } else { big };
    let r = if a < 6.103_515_6e-5 { small } else { big };
    if x.is_nan() { x } else { f32::from_bits(r.to_bits() | sign) }
}
/// The same, of a nan the one that arithmetic gives for it.
#[inline(always)]
pub fn quiet(x: f32) -> f32 {
    if x.is_nan() { f32::from_bits(x.to_bits() | 0x40_0000) } else { x }
}
#[inline(always)]
pub fn round_bf16(x: f32) -> f32 {
    let b = x.to_bits();
    let r = f32::from_bits(b.wrapping_add(0x7fff + ((b >> 16) & 1)) & 0xffff_0000);
    if x.is_nan() { f32::from_bits((b & 0xffff_0000) | 0x40_0000) } else { r }
}
/// To f32 rounding to odd, so that rounding once more to 16 bits rounds once in all.
#[inline(always)]
pub fn f32_to_odd(x: f64) -> f32 {
    let y = x as f32;
    let back = y as f64;
    let b = y.to_bits();
    let b = if back.abs() > x.abs() { b.wrapping_sub(1) } else { b };
    if (back == x) | x.is_nan() { y } else { f32::from_bits(b | 1) }
}
/// The bits of a value that a 16-bit IEEE float holds exactly.
#[inline(always)]
pub fn f16_bits(x: f32) -> u16 {
    let a = x.abs();
    let sign = (x.to_bits() >> 16) & 0x8000;
    let small = (a + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let normal = (a.to_bits() >> 13).wrapping_sub(112 << 10);
    let r = if a < 6.103_515_6e-5 { small } else { normal };
    let r = if a == f32::INFINITY { 0x7c00 } else { r };
    let payload = (a.to_bits() >> 13) & 0x3ff;
    let nan = 0x7c00 | if payload == 0 { 0x200 } else { payload };
    (if x.is_nan() { nan | sign } else { r | sign }) as u16
}
#[inline(always)]
pub fn f16_value(h: u16) -> f32 {
    let h = h as u32;
    let sign = (h & 0x8000) << 16;
    let scaled = f32::from_bits((h & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    let special = f32::from_bits(((h & 0x3ff) << 13) | 0x7f80_0000);
    let a = if h & 0x7c00 == 0x7c00 { special } else { scaled };
    f32::from_bits(a.to_bits() | sign)
}
#[inline(always)]
pub fn bf16_bits(x: f32) -> u16 {
    (x.to_bits() >> 16) as u16
}
#[inline(always)]
pub fn bf16_value(h: u16) -> f32 {
    f32::from_bits((h as u32) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn sixteen_bit_floats_round_as_half_does() {
        for h in 0..=u16::MAX {
            let v = f16::from_bits(h);
            assert!(f16_value(h).to_bits() == v.to_f32().to_bits() || v.is_nan());
            assert!(f16_bits(v.to_f32()) == h || v.is_nan());
            assert!(bf16_value(h).to_bits() == bf16::from_bits(h).to_f32().to_bits() || bf16::from_bits(h).is_nan());
        }
        let mut x = 0x1234_5678u32;
        for _ in 0..1_000_000 {
            x = x.wrapping_mul(1664525).wrapping_add(1013904223);
            let e = (100 + (x >> 7) % 50) << 23;
            for f in [f32::from_bits(x), f32::from_bits((x & 0x807f_ffff) | e), f32::from_bits((x & 0x807f_f000) | e)] {
                if f.is_nan() {
                    assert!(round_f16(f).is_nan() && round_bf16(f).is_nan());
                    continue;
                }
                assert_eq!(round_f16(f).to_bits(), f16::from_f32(f).to_f32().to_bits(), "{f:e}");
                assert_eq!(round_bf16(f).to_bits(), bf16::from_f32(f).to_f32().to_bits(), "{f:e}");
                let d = f as f64 * (1.0 + 1e-9);
                // The nearer one of the two neighbours in f16.
                let r = round_f16(f32_to_odd(d)) as f64;
                if r.is_finite() && d.abs() < 65504.0 {
                    let h = f16::from_f64(r).to_bits();
                    for other in
                        [h.wrapping_add(1), h.wrapping_sub(1)].map(f16::from_bits).into_iter().filter(|o| o.is_finite())
                    {
                        assert!((r - d).abs() <= (other.to_f64() - d).abs(), "{d:e}");
                    }
                }
                assert_eq!(f32_to_odd(d) as f64 == d, d as f32 as f64 == d);
            }
        }
    }
    #[test]
    fn integers_divide_as_the_table_says() {
        assert_eq!([i32::MIN.div(-1), 7.div(0), (-7).div(2), i32::MIN.div(1)], [i32::MIN, -1, -3, i32::MIN]);
        assert_eq!([i32::MIN.rem(-1), 7.rem(0), (-7).rem(2)], [0, 7, -1]);
        assert_eq!(
            [5u32.div(0), u32::MAX.div(1), u32::MAX.div(2), u32::MAX.div(u32::MAX)],
            [u32::MAX, u32::MAX, 0x7fff_ffff, 1]
        );
        assert_eq!(1i32.shl(32), 0);
        assert_eq!((-8i32).shr_arithmetic(-1), -1);
    }
}
