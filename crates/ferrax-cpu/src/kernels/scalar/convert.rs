//! Conversions between lanes, with the semantics of Rust's `as`: floats are truncated and saturate, and nan becomes 0.
#![allow(unsafe_code)]
#![allow(clippy::eq_op)] // `x != x` asks for NaN in every lane type
use crate::kernels::block::{BlockFn, F1, map1};
use crate::kernels::lane::*;
use crate::tier::Tier;
use ferrax_kernel::DType;
use std::marker::PhantomData;

/// The result of a conversion, by its target dtype. `L` is the target's lane.
trait To<S> {
    type L: Copy;
    fn to(x: S) -> Self::L;
}
macro_rules! target {
    ($Name:ident -> $L:ty; $($S:ty)*; |$x:ident| $e:expr) => {
        struct $Name;
        $(impl To<$S> for $Name {
            type L = $L;
            #[inline(always)]
            fn to($x: $S) -> $L { $e }
        })*
    };
}
target!(ToI8 -> i32; u8 i32 u32 i64 u64 f32 f64; |x| x as i8 as i32);
target!(ToI16 -> i32; u8 i32 u32 i64 u64 f32 f64; |x| x as i16 as i32);
target!(ToI32 -> i32; u8 i32 u32 i64 u64 f32; |x| x as i32);
target!(ToI64 -> i64; u8 i32 u32 i64 u64; |x| x as i64);
target!(ToU8 -> u32; u8 i32 u32 i64 u64 f32 f64; |x| x as u8 as u32);
target!(ToU16 -> u32; u8 i32 u32 i64 u64 f32 f64; |x| x as u16 as u32);
target!(ToU32 -> u32; u8 i32 u32 i64 u64; |x| x as u32);
target!(ToU64 -> u64; u8 i32 u32 i64 u64; |x| x as u64);
/// The result of `as`, in steps that are vector instructions: the number is clamped to the
/// integers' range, of which `$below` is the greatest float, and converted; `$above` or more gives
/// the greatest integer, and a nan 0.
/// has, and converted; numbers from `$above` on give the greatest integer, and a nan gives 0.
macro_rules! integer_of_float {
    ($($Name:ident -> $L:ty: $I:ty, $S:ty, $least:expr, $below:expr, $above:expr;)*) => {$(
        impl To<$S> for $Name {
            type L = $L;
            #[inline(always)]
            #[allow(clippy::eq_op)]
            fn to(x: $S) -> $L {
                let inside = if x > $least { x } else { $least };
                let inside = if inside < $below { inside } else { $below };
                // SAFETY: a number from `$least` to `$below`, whose whole part the integer has; a nan has become the least.
                let y = unsafe { inside.to_int_unchecked::<$I>() };
                let y = if x >= $above { <$I>::MAX } else { y };
                (if x == x { y } else { 0 }) as $L
            }
        }
    )*};
}
integer_of_float! {
    ToI32 -> i32: i32, f64, -2147483648.0, 2147483647.0, 2147483647.0;
    ToI64 -> i64: i64, f64, -9223372036854775808.0, 9223372036854774784.0, 9223372036854775808.0;
    ToI64 -> i64: i64, f32, -9223372036854775808.0, 9223371487098961920.0, 9223372036854775808.0;
    ToU32 -> u32: u32, f64, 0.0, 4294967295.0, 4294967295.0;
    ToU32 -> u32: u32, f32, 0.0, 4294967040.0, 4294967296.0;
    ToU64 -> u64: u64, f64, 0.0, 18446744073709549568.0, 18446744073709551616.0;
    ToU64 -> u64: u64, f32, 0.0, 18446742974197923840.0, 18446744073709551616.0;
}
target!(ToF32 -> f32; u8 i32 u32 i64 u64 f32 f64; |x| x as f32);
target!(ToF64 -> f64; u8 i32 u32 i64 u64 f32 f64; |x| x as f64);
target!(ToF16 -> f32; u8 i32 u32 i64 u64 f32 f64; |x| quiet(round_f16(f32_to_odd(x as f64))));
target!(ToBF16 -> f32; u8 i32 u32 i64 u64 f32 f64; |x| round_bf16(x as f32));
target!(ToBool -> u8; u8 i32 u32 i64 u64 f32 f64; |x| (x != (0u8 as _)) as u8);

struct Convert<S, D>(PhantomData<(S, D)>);
impl<S: Copy, D: To<S>> F1 for Convert<S, D> {
    type A = S;
    type R = D::L;
    #[inline(always)]
    fn f(x: S) -> D::L {
        D::to(x)
    }
}

/// From a canonical lane of `from` to a canonical lane of `to`.
pub fn convert(from: DType, to: DType, t: Tier) -> BlockFn {
    fn source<D: To<u8> + To<i32> + To<u32> + To<i64> + To<u64> + To<f32> + To<f64>>(from: DType, t: Tier) -> BlockFn {
        match Lane::of(from) {
            Lane::Bool => map1::<Convert<u8, D>>(t),
            Lane::I32 => map1::<Convert<i32, D>>(t),
            Lane::U32 => map1::<Convert<u32, D>>(t),
            Lane::I64 => map1::<Convert<i64, D>>(t),
            Lane::U64 => map1::<Convert<u64, D>>(t),
            Lane::F32 => map1::<Convert<f32, D>>(t),
            Lane::F64 => map1::<Convert<f64, D>>(t),
        }
    }
    match to {
        DType::Bool => source::<ToBool>(from, t),
        DType::I8 => source::<ToI8>(from, t),
        DType::I16 => source::<ToI16>(from, t),
        DType::I32 => source::<ToI32>(from, t),
        DType::I64 => source::<ToI64>(from, t),
        DType::U8 => source::<ToU8>(from, t),
        DType::U16 => source::<ToU16>(from, t),
        DType::U32 => source::<ToU32>(from, t),
        DType::U64 => source::<ToU64>(from, t),
        DType::F16 => source::<ToF16>(from, t),
        DType::BF16 => source::<ToBF16>(from, t),
        DType::F32 => source::<ToF32>(from, t),
        DType::F64 => source::<ToF64>(from, t),
        small => convert(from, small.storage(), t),
    }
}
