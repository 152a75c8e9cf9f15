//! The tables of scalar functions: `Un` and `Bin` for each lane, and conversions between dtypes.
//!
//! INVARIANT: a function sees and gives lanes that are canonical for their dtype; [`un`] and [`bin`] give a result of the lane's
//! width, which [`canonical`] then brings back to a narrow dtype.
#![allow(clippy::eq_op)] // `x != x` asks for NaN in every lane type
mod convert;
use super::address::PutFns;
use super::block::{BlockFn, BlockLoop, F1, F2, map1, map2, pick};
use super::lane::*;
use super::moves::{self, Element};
use crate::tier::Tier;
pub use convert::convert;
use ferrax_kernel::{Bin, DType, Un, math};
use std::marker::PhantomData;

macro_rules! f1 {
    ($Name:ident: $($A:ty => $R:ty, |$x:ident| $e:expr;)*) => {
        struct $Name<T>(PhantomData<T>);
        $(impl F1 for $Name<$A> {
            type A = $A;
            type R = $R;
            #[inline(always)]
            fn f($x: $A) -> $R { $e }
        })*
    };
}
/// The same expression for several lanes.
macro_rules! f1s {
    ($Name:ident[$($A:ty),*] |$x:ident| $e:expr) => { f1! { $Name: $($A => $A, |$x| $e;)* } };
}
macro_rules! f2s {
    ($Name:ident[$($A:ty),*] |$x:ident, $y:ident| $e:expr) => {
        struct $Name<T>(PhantomData<T>);
        $(impl F2 for $Name<$A> {
            type A = $A;
            type R = $A;
            #[inline(always)]
            fn f($x: $A, $y: $A) -> $A { $e }
        })*
    };
}
macro_rules! compare {
    ($Name:ident |$x:ident, $y:ident| $e:expr) => { compare!(@ $Name [u8, i32, u32, i64, u64, f32, f64] |$x, $y| $e); };
    (@ $Name:ident [$($A:ty),*] |$x:ident, $y:ident| $e:expr) => {
        struct $Name<T>(PhantomData<T>);
        $(impl F2 for $Name<$A> {
            type A = $A;
            type R = u8;
            #[inline(always)]
            fn f($x: $A, $y: $A) -> u8 { ($e) as u8 }
        })*
    };
}

f1s!(NegF[f32, f64] |x| -x);
f1s!(NegI[i32, u32, i64, u64] |x| x.wrapping_neg());
f1s!(AbsF[f32, f64] |x| x.abs());
f1s!(AbsI[i32, u32, i64, u64] |x| Integer::abs(x));
f1s!(SignF[f32, f64] |x| Float::sign(x));
f1! { SignI: i32 => i32, |x| Integer::sign(x); i64 => i64, |x| Integer::sign(x); u32 => u32, |x| (x != 0) as u32; u64 => u64, |x| (x != 0) as u64; }
f1s!(NotI[i32, u32, i64, u64] |x| !x);
f1s!(NotB[u8] | x | x ^ 1);
f1! { Popcnt: i32 => i32, |x| x.count_ones() as i32; u32 => u32, |x| x.count_ones(); i64 => i64, |x| x.count_ones() as i64; u64 => u64, |x| x.count_ones() as u64; }
f1! { Clz: i32 => i32, |x| x.leading_zeros() as i32; u32 => u32, |x| x.leading_zeros(); i64 => i64, |x| x.leading_zeros() as i64; u64 => u64, |x| x.leading_zeros() as u64; }
f1s!(Popcnt8[i32] | x | (x & 0xff).count_ones() as i32);
f1s!(Popcnt16[i32] | x | (x & 0xffff).count_ones() as i32);
f1s!(Clz8[i32] | x | (x & 0xff).leading_zeros() as i32 - 24);
f1s!(Clz16[i32] | x | (x & 0xffff).leading_zeros() as i32 - 16);
f1s!(Floor[f32, f64] |x| x.floor());
f1s!(Ceil[f32, f64] |x| x.ceil());
f1s!(RoundEven[f32, f64] |x| x.round_ties_even());
f1s!(RoundAway[f32, f64] |x| x.round());
f1s!(Trunc[f32, f64] |x| x.trunc());
f1! { IsFinite: f32 => u8, |x| x.is_finite() as u8; f64 => u8, |x| x.is_finite() as u8; }
f1s!(Sqrt[f32, f64] |x| x.sqrt());
f1s!(Rsqrt[f32, f64] |x| 1.0 / x.sqrt());
f1s!(Cbrt[f32, f64] |x| math::cbrt(x));
f1s!(Exp[f32, f64] |x| math::exp(x));
f1s!(Exp2[f32, f64] |x| math::exp2(x));
f1s!(Expm1[f32, f64] |x| math::expm1(x));
f1s!(Log[f32, f64] |x| math::log(x));
f1s!(Log1p[f32, f64] |x| math::log1p(x));
f1s!(Asin[f32, f64] |x| math::asin(x));
f1s!(Acos[f32, f64] |x| math::acos(x));
f1s!(Atan[f32, f64] |x| math::atan(x));
f1s!(Sinh[f32, f64] |x| math::sinh(x));
f1s!(Cosh[f32, f64] |x| math::cosh(x));
f1s!(Tanh[f32, f64] |x| math::tanh(x));
f1s!(Asinh[f32, f64] |x| math::asinh(x));
f1s!(Acosh[f32, f64] |x| math::acosh(x));
f1s!(Atanh[f32, f64] |x| math::atanh(x));
f1s!(Logistic[f32, f64] |x| math::logistic(x));
f1s!(Erf[f32, f64] |x| math::erf(x));
f1s!(Erfc[f32, f64] |x| math::erfc(x));
f1s!(ErfInv[f32, f64] |x| math::erf_inv(x));
f1s!(Lgamma[f32, f64] |x| math::lgamma(x));
f1s!(Digamma[f32, f64] |x| math::digamma(x));

f2s!(AddF[f32, f64] |x, y| x + y);
f2s!(AddI[i32, u32, i64, u64] |x, y| x.wrapping_add(y));
f2s!(SubF[f32, f64] |x, y| x - y);
f2s!(SubI[i32, u32, i64, u64] |x, y| x.wrapping_sub(y));
f2s!(MulF[f32, f64] |x, y| x * y);
f2s!(MulI[i32, u32, i64, u64] |x, y| x.wrapping_mul(y));
f2s!(DivF[f32, f64] |x, y| x / y);
f2s!(DivI[i32, u32, i64, u64] |x, y| Integer::div(x, y));
f2s!(RemF[f32, f64] |x, y| x % y);
f2s!(RemI[i32, u32, i64, u64] |x, y| Integer::rem(x, y));
f2s!(Pow[f32, f64] |x, y| math::pow(x, y));
f2s!(MaxF[f32, f64] |x, y| Float::maximum(x, y));
f2s!(MaxI[u8, i32, u32, i64, u64] |x, y| if x > y { x } else { y });
f2s!(MinF[f32, f64] |x, y| Float::minimum(x, y));
f2s!(MinI[u8, i32, u32, i64, u64] |x, y| if x < y { x } else { y });
f2s!(Atan2[f32, f64] |x, y| math::atan2(x, y));
f2s!(NextAfter[f32, f64] |x, y| x.next_after(y));
f2s!(NextAfterF16[f32] | x, y | next_after_16(x, y, f16_bits, f16_value));
f2s!(NextAfterBF16[f32] | x, y | next_after_16(x, y, bf16_bits, bf16_value));
f2s!(And[u8, i32, u32, i64, u64] |x, y| x & y);
f2s!(Or[u8, i32, u32, i64, u64] |x, y| x | y);
f2s!(Xor[u8, i32, u32, i64, u64] |x, y| x ^ y);
f2s!(Shl[i32, u32, i64, u64] |x, y| Integer::shl(x, y));
f2s!(ShrLogical[i32, u32, i64, u64] |x, y| Integer::shr_logical(x, y));
f2s!(ShrLogical8[i32] | x, y | Integer::shr_logical(x & 0xff, y));
f2s!(ShrLogical16[i32] | x, y | Integer::shr_logical(x & 0xffff, y));
f2s!(ShrArithmetic[i32, u32, i64, u64] |x, y| Integer::shr_arithmetic(x, y));
f2s!(ShrArithmetic8[u32] | x, y | Integer::shr_arithmetic(x as i8 as i32 as u32, y));
f2s!(ShrArithmetic16[u32] | x, y | Integer::shr_arithmetic(x as i16 as i32 as u32, y));
compare!(Eq | x, y | x == y);
compare!(Ne | x, y | x != y);
compare!(Lt | x, y | x < y);
compare!(Le | x, y | x <= y);
compare!(Gt | x, y | x > y);
compare!(Ge | x, y | x >= y);

/// Periodic functions: a block whose operands are all moderate takes the short reduction, which gives the same bits.
macro_rules! periodic {
    ($($Name:ident $full:ident $moderate:ident;)*) => {$(
        struct $Name<T>(PhantomData<T>);
        impl<R: math::Real<Mask = bool> + Copy> BlockLoop for $Name<R> {
            #[inline(always)]
            unsafe fn run(d: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
                let (d, a) = (d.cast::<R>(), a.cast::<R>());
                let mut i = 0;
                while i < n {
                    let end = n.min(i + 64);
                    // SAFETY: end <= n, and both hold n lanes.
                    unsafe {
                        let mut all = true;
                        for j in i..end {
                            all &= math::is_moderate(*a.add(j));
                        }
                        if all {
                            for j in i..end {
                                *d.add(j) = math::$moderate(*a.add(j));
                            }
                        } else {
                            for j in i..end {
                                *d.add(j) = math::$full(*a.add(j));
                            }
                        }
                    }
                    i = end;
                }
            }
        }
    )*};
}
periodic! { Sin sin sin_moderate; Cos cos cos_moderate; Tan tan tan_moderate; }

/// The neighbour of `x` towards `y` among the values of a 16-bit float.
#[inline(always)]
fn next_after_16(x: f32, y: f32, bits: fn(f32) -> u16, value: fn(u16) -> f32) -> f32 {
    let h = bits(x);
    let away = ((y > x) & (x > 0.0)) | ((y < x) & (x < 0.0));
    let step = if away { h.wrapping_add(1) } else { h.wrapping_sub(1) };
    let step = if x == 0.0 { (bits(y) & 0x8000) | 1 } else { step };
    if x.is_nan() | y.is_nan() {
        x + y
    } else if x == y {
        y
    } else {
        value(step)
    }
}

/// Picks a row's instance for a lane. `none` where the row has no such lane.
macro_rules! row {
    ($map:ident $tier:ident $lane:ident: $F:ident float) => {
        match $lane { Lane::F32 => $map::<$F<f32>>($tier), Lane::F64 => $map::<$F<f64>>($tier), _ => return None }
    };
    ($map:ident $tier:ident $lane:ident: $I:ident int) => {
        match $lane {
            Lane::I32 => $map::<$I<i32>>($tier), Lane::U32 => $map::<$I<u32>>($tier),
            Lane::I64 => $map::<$I<i64>>($tier), Lane::U64 => $map::<$I<u64>>($tier),
            _ => return None,
        }
    };
    ($map:ident $tier:ident $lane:ident: $I:ident bits) => {
        match $lane { Lane::Bool => $map::<$I<u8>>($tier), _ => row!($map $tier $lane: $I int) }
    };
    ($map:ident $tier:ident $lane:ident: $F:ident $I:ident number) => {
        match $lane { Lane::F32 | Lane::F64 => row!($map $tier $lane: $F float), _ => row!($map $tier $lane: $I int) }
    };
    ($map:ident $tier:ident $lane:ident: $F:ident $I:ident any) => {
        match $lane { Lane::F32 | Lane::F64 => row!($map $tier $lane: $F float), _ => row!($map $tier $lane: $I bits) }
    };
}

/// Whether it changes nothing but the sign of a float, and keeps a nan as it is.
pub fn is_exact(f: Un, d: DType) -> bool {
    d.is_float() && matches!(f, Un::Neg | Un::Abs | Un::Sign)
}
/// One function of a lane; `None` where it is not defined for the dtype.
pub fn un(f: Un, d: DType, t: Tier) -> Option<BlockFn> {
    let lane = Lane::of(d);
    Some(match f {
        Un::Neg => row!(map1 t lane: NegF NegI number),
        Un::Abs => row!(map1 t lane: AbsF AbsI number),
        Un::Sign => row!(map1 t lane: SignF SignI number),
        Un::Not if lane == Lane::Bool => map1::<NotB<u8>>(t),
        Un::Not => row!(map1 t lane: NotI int),
        // counting bits needs the dtype's own width
        Un::Popcnt if d == DType::I8 => map1::<Popcnt8<i32>>(t),
        Un::Popcnt if d == DType::I16 => map1::<Popcnt16<i32>>(t),
        Un::Popcnt => row!(map1 t lane: Popcnt int),
        Un::Clz if matches!(d, DType::I8 | DType::U8) => map1::<Clz8<i32>>(t),
        Un::Clz if matches!(d, DType::I16 | DType::U16) => map1::<Clz16<i32>>(t),
        Un::Clz => row!(map1 t lane: Clz int),
        Un::Floor => row!(map1 t lane: Floor float),
        Un::Ceil => row!(map1 t lane: Ceil float),
        Un::RoundEven => row!(map1 t lane: RoundEven float),
        Un::RoundAway => row!(map1 t lane: RoundAway float),
        Un::Trunc => row!(map1 t lane: Trunc float),
        Un::IsFinite => row!(map1 t lane: IsFinite float),
        Un::Sqrt => row!(map1 t lane: Sqrt float),
        Un::Rsqrt => row!(map1 t lane: Rsqrt float),
        Un::Cbrt => row!(map1 t lane: Cbrt float),
        Un::Exp => row!(map1 t lane: Exp float),
        Un::Exp2 => row!(map1 t lane: Exp2 float),
        Un::Expm1 => row!(map1 t lane: Expm1 float),
        Un::Log => row!(map1 t lane: Log float),
        Un::Log1p => row!(map1 t lane: Log1p float),
        Un::Sin => row!(pick t lane: Sin float),
        Un::Cos => row!(pick t lane: Cos float),
        Un::Tan => row!(pick t lane: Tan float),
        Un::Asin => row!(map1 t lane: Asin float),
        Un::Acos => row!(map1 t lane: Acos float),
        Un::Atan => row!(map1 t lane: Atan float),
        Un::Sinh => row!(map1 t lane: Sinh float),
        Un::Cosh => row!(map1 t lane: Cosh float),
        Un::Tanh => row!(map1 t lane: Tanh float),
        Un::Asinh => row!(map1 t lane: Asinh float),
        Un::Acosh => row!(map1 t lane: Acosh float),
        Un::Atanh => row!(map1 t lane: Atanh float),
        Un::Logistic => row!(map1 t lane: Logistic float),
        Un::Erf => row!(map1 t lane: Erf float),
        Un::Erfc => row!(map1 t lane: Erfc float),
        Un::ErfInv => row!(map1 t lane: ErfInv float),
        Un::Lgamma => row!(map1 t lane: Lgamma float),
        Un::Digamma => row!(map1 t lane: Digamma float),
    })
}

pub fn bin(f: Bin, d: DType, t: Tier) -> Option<BlockFn> {
    let lane = Lane::of(d);
    Some(match f {
        // On bool, sums are `or` and products `and`, as the greatest and the least are.
        Bin::Add if lane == Lane::Bool => map2::<Or<u8>>(t),
        Bin::Mul if lane == Lane::Bool => map2::<And<u8>>(t),
        Bin::Add => row!(map2 t lane: AddF AddI number),
        Bin::Sub => row!(map2 t lane: SubF SubI number),
        Bin::Mul => row!(map2 t lane: MulF MulI number),
        Bin::Div => row!(map2 t lane: DivF DivI number),
        Bin::Rem => row!(map2 t lane: RemF RemI number),
        Bin::Pow => row!(map2 t lane: Pow float),
        Bin::Max => row!(map2 t lane: MaxF MaxI any),
        Bin::Min => row!(map2 t lane: MinF MinI any),
        Bin::Atan2 => row!(map2 t lane: Atan2 float),
        Bin::NextAfter if d == DType::F16 => map2::<NextAfterF16<f32>>(t),
        Bin::NextAfter if d == DType::BF16 => map2::<NextAfterBF16<f32>>(t),
        Bin::NextAfter => row!(map2 t lane: NextAfter float),
        Bin::And => row!(map2 t lane: And bits),
        Bin::Or => row!(map2 t lane: Or bits),
        Bin::Xor => row!(map2 t lane: Xor bits),
        Bin::Shl => row!(map2 t lane: Shl int),
        Bin::ShrLogical if d == DType::I8 => map2::<ShrLogical8<i32>>(t),
        Bin::ShrLogical if d == DType::I16 => map2::<ShrLogical16<i32>>(t),
        Bin::ShrLogical => row!(map2 t lane: ShrLogical int),
        Bin::ShrArithmetic if d == DType::U8 => map2::<ShrArithmetic8<u32>>(t),
        Bin::ShrArithmetic if d == DType::U16 => map2::<ShrArithmetic16<u32>>(t),
        Bin::ShrArithmetic => row!(map2 t lane: ShrArithmetic int),
        Bin::Eq => row!(map2 t lane: Eq Eq any),
        Bin::Ne => row!(map2 t lane: Ne Ne any),
        Bin::Lt => row!(map2 t lane: Lt Lt any),
        Bin::Le => row!(map2 t lane: Le Le any),
        Bin::Gt => row!(map2 t lane: Gt Gt any),
        Bin::Ge => row!(map2 t lane: Ge Ge any),
    })
}

/// A function of lanes, of the narrower elements `E`: its result is rounded to one of them.
struct OfElements<E, F, const BITS: u32>(PhantomData<(E, F)>);
impl<E: Element, F: F2<A = E::L, R = E::L>, const BITS: u32> F2 for OfElements<E, F, BITS>
where
    E::L: Rounded,
{
    type A = E::S;
    type R = E::S;
    #[inline(always)]
    fn f(a: E::S, b: E::S) -> E::S {
        E::store(F::f(E::load(a), E::load(b)).rounded::<BITS>())
    }
}
/// Lanes as values of narrower elements, which floats are distinguished by their bits of exponent.
trait Rounded {
    fn rounded<const EXPONENT: u32>(self) -> Self;
}
impl Rounded for f32 {
    #[inline(always)]
    fn rounded<const EXPONENT: u32>(self) -> f32 {
        if EXPONENT == 5 { round_f16(self) } else { round_bf16(self) }
    }
}
impl Rounded for i32 {
    #[inline(always)]
    fn rounded<const EXPONENT: u32>(self) -> i32 {
        self // the low bits of an integer are stored
    }
}
impl Rounded for u32 {
    #[inline(always)]
    fn rounded<const EXPONENT: u32>(self) -> u32 {
        self
    }
}
/// As [`put`], for elements that are narrower than lanes.
fn put_narrow(f: Bin, d: DType) -> Option<PutFns> {
    macro_rules! of {
        ($L:ty, $E:ty, $BITS:literal: $Add:ident $Sub:ident $Mul:ident $Max:ident $Min:ident) => {
            match f {
                Bin::Add => PutFns::of_elements::<OfElements<$E, $Add<$L>, $BITS>>(),
                Bin::Sub => PutFns::of_elements::<OfElements<$E, $Sub<$L>, $BITS>>(),
                Bin::Mul => PutFns::of_elements::<OfElements<$E, $Mul<$L>, $BITS>>(),
                Bin::Max => PutFns::of_elements::<OfElements<$E, $Max<$L>, $BITS>>(),
                Bin::Min => PutFns::of_elements::<OfElements<$E, $Min<$L>, $BITS>>(),
                _ => return None,
            }
        };
    }
    Some(match d {
        DType::I8 => of!(i32, moves::EI8, 0: AddI SubI MulI MaxI MinI),
        DType::U8 => of!(u32, moves::EU8, 0: AddI SubI MulI MaxI MinI),
        DType::I16 => of!(i32, moves::EI16, 0: AddI SubI MulI MaxI MinI),
        DType::U16 => of!(u32, moves::EU16, 0: AddI SubI MulI MaxI MinI),
        DType::F16 => of!(f32, moves::EF16, 5: AddF SubF MulF MaxF MinF),
        DType::BF16 => of!(f32, moves::EBF16, 8: AddF SubF MulF MaxF MinF),
        _ => return None,
    })
}
/// Scattered elements combined one by one, or windows of them where elements are lanes.
pub fn put(f: Bin, d: DType, t: Tier) -> Option<PutFns> {
    let lane = Lane::of(d);
    if !lane.is_storage_of(d) {
        return put_narrow(f, d);
    }
    fn combine<F: F2<R = <F as F2>::A>>(t: Tier) -> PutFns {
        PutFns::of::<F>(t)
    }
    if lane == Lane::Bool {
        return Some(match f {
            Bin::Add | Bin::Max | Bin::Or => combine::<Or<u8>>(t),
            Bin::Mul | Bin::Min | Bin::And => combine::<And<u8>>(t),
            Bin::Xor => combine::<Xor<u8>>(t),
            _ => return None,
        });
    }
    Some(match f {
        Bin::Add => row!(combine t lane: AddF AddI number),
        Bin::Sub => row!(combine t lane: SubF SubI number),
        Bin::Mul => row!(combine t lane: MulF MulI number),
        Bin::Max => row!(combine t lane: MaxF MaxI number),
        Bin::Min => row!(combine t lane: MinF MinI number),
        Bin::And => row!(combine t lane: And int),
        Bin::Or => row!(combine t lane: Or int),
        Bin::Xor => row!(combine t lane: Xor int),
        _ => return None,
    })
}

f1s!(WrapI8[i32] | x | x as i8 as i32);
f1s!(WrapI16[i32] | x | x as i16 as i32);
f1s!(WrapU8[u32] | x | x as u8 as u32);
f1s!(WrapU16[u32] | x | x as u16 as u32);
f1s!(RoundF16[f32] | x | round_f16(x));
f1s!(RoundBF16[f32] | x | round_bf16(x));

/// Brings a lane back to a value of the dtype, where the lane is wider.
pub fn canonical(d: DType, t: Tier) -> Option<BlockFn> {
    Some(match d {
        DType::I8 => map1::<WrapI8<i32>>(t),
        DType::I16 => map1::<WrapI16<i32>>(t),
        DType::U8 => map1::<WrapU8<u32>>(t),
        DType::U16 => map1::<WrapU16<u32>>(t),
        DType::F16 => map1::<RoundF16<f32>>(t),
        DType::BF16 => map1::<RoundBF16<f32>>(t),
        _ => return None,
    })
}

f1! { ToBitsF16: f32 => u32, |x| f16_bits(x) as u32; }
f1! { ToBitsBF16: f32 => u32, |x| bf16_bits(x) as u32; }
f1! { FromBitsF16: u32 => f32, |x| f16_value(x as u16); }
f1! { FromBitsBF16: u32 => f32, |x| bf16_value(x as u16); }
f1! { SameBits: u8 => u8, |x| x; u32 => u32, |x| x; u64 => u64, |x| x; }
f1! { ByteOfBool: u8 => u32, |x| x as u32; }
f1! { BoolOfByte: u32 => u8, |x| (x & 0xff != 0) as u8; }

/// The lane's bits copied.
pub fn copy(bytes: usize, t: Tier) -> BlockFn {
    match bytes {
        1 => map1::<SameBits<u8>>(t),
        4 => map1::<SameBits<u32>>(t),
        _ => map1::<SameBits<u64>>(t),
    }
}

/// The functions, in turn, that reinterpret a dtype's bits as another dtype of its size.
pub fn bitcast(from: DType, to: DType, t: Tier) -> [Option<BlockFn>; 3] {
    if from == to {
        return [Some(copy(Lane::of(from).size(), t)), None, None];
    }
    if from.size() >= 4 {
        return [Some(copy(from.size(), t)), None, None];
    }
    let bits = match from {
        DType::F16 => Some(map1::<ToBitsF16<f32>>(t)),
        DType::BF16 => Some(map1::<ToBitsBF16<f32>>(t)),
        DType::Bool => Some(map1::<ByteOfBool<u8>>(t)),
        _ => None,
    };
    let value = match to {
        DType::F16 => Some((Some(map1::<WrapU16<u32>>(t)), map1::<FromBitsF16<u32>>(t))),
        DType::BF16 => Some((Some(map1::<WrapU16<u32>>(t)), map1::<FromBitsBF16<u32>>(t))),
        DType::Bool => Some((None, map1::<BoolOfByte<u32>>(t))),
        d => canonical(d, t).map(|f| (None, f)),
    };
    let mut all = [bits].into_iter().chain(value.map(|v| v.0)).chain([value.map(|v| v.1)]).flatten();
    [all.next(), all.next(), all.next()]
}

struct Rotate;
/// `b` points at the number of bits.
impl BlockLoop for Rotate {
    #[inline(always)]
    unsafe fn run(d: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        let (d, a) = (d.cast::<u32>(), a.cast::<u32>());
        // SAFETY: by the contract: n lanes each, and a word at b.
        unsafe {
            let by = *b.cast::<u32>();
            for i in 0..n {
                *d.add(i) = (*a.add(i)).rotate_left(by);
            }
        }
    }
}
struct RotateXor;
/// `c` points at the number of bits.
impl BlockLoop for RotateXor {
    #[inline(always)]
    unsafe fn run(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
        let (d, a, b) = (d.cast::<u32>(), a.cast::<u32>(), b.cast::<u32>());
        // SAFETY: by the contract: n lanes each, and a word at c.
        unsafe {
            let by = *c.cast::<u32>();
            for i in 0..n {
                *d.add(i) = (*a.add(i)).rotate_left(by) ^ *b.add(i);
            }
        }
    }
}
/// `a` rotated left by the word that b points at.
pub fn rotate(t: Tier) -> BlockFn {
    pick::<Rotate>(t)
}
/// `a` rotated left by the word that c points at, exclusive or `b`.
pub fn rotate_xor(t: Tier) -> BlockFn {
    pick::<RotateXor>(t)
}

struct Rounding<F>(PhantomData<F>);
/// A float format that can be rounded to a narrower one.
trait RoundsTo {
    type L: Copy;
    fn round(x: Self::L, exponent: u32, mantissa: u32) -> Self::L;
}
macro_rules! rounds {
    ($($F:ident $L:ty: |$x:ident, $e:ident, $m:ident| $r:expr;)*) => {$(
        struct $F;
        impl RoundsTo for $F {
            type L = $L;
            #[inline(always)]
            fn round($x: $L, $e: u32, $m: u32) -> $L { $r }
        }
    )*};
}
rounds! {
    AtF32 f32: |x, e, m| x.reduce_precision(e, m);
    AtF64 f64: |x, e, m| x.reduce_precision(e, m);
    AtF16 f32: |x, e, m| if x.is_nan() { x } else { f16_value(reduce_precision(f16_bits(x) as u64, 5, 10, e, m) as u16) };
    AtBF16 f32: |x, e, m| if x.is_nan() { x } else { bf16_value(reduce_precision(bf16_bits(x) as u64, 8, 7, e, m) as u16) };
}
/// `b` points at two words: exponent bits, then mantissa bits.
impl<F: RoundsTo> BlockLoop for Rounding<F> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        let (d, a, b) = (d.cast::<F::L>(), a.cast::<F::L>(), b.cast::<u32>());
        // SAFETY: by the contract: n lanes each, and two words at b.
        unsafe {
            let (exponent, mantissa) = (*b, *b.add(1));
            for i in 0..n {
                *d.add(i) = F::round(*a.add(i), exponent, mantissa);
            }
        }
    }
}

/// Rounds to a float format given at run time: operand b points at its two u32 words.
pub fn round(d: DType, t: Tier) -> BlockFn {
    match d {
        DType::F16 => pick::<Rounding<AtF16>>(t),
        DType::BF16 => pick::<Rounding<AtBF16>>(t),
        DType::F64 => pick::<Rounding<AtF64>>(t),
        _ => pick::<Rounding<AtF32>>(t),
    }
}
