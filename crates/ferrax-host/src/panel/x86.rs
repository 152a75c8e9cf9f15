//! The vectors of panel products on x86-64, and the products compiled for AVX2 and AVX-512.
//!
//! INVARIANT: every function is called only on machines with its target features: [`super::pick`] and its siblings ask the tier.
use super::{Matrices, Vector, product, product_by_table};
use std::arch::x86_64::*;
use std::convert::identity;

macro_rules! vector {
    ($V:ident $E:ident $lanes:literal: $zero:ident $load:ident $store:ident $splat:ident $fused:ident $repeated:ident $cast:ident) => {
        impl Vector for $V {
            type Element = $E;
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: by the contract of the trait, here and below.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn load(p: *const $E) -> Self {
                // SAFETY: see above.
                unsafe { $load(p) }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $E) {
                // SAFETY: see above.
                unsafe { $store(p, self) }
            }
            #[inline(always)]
            unsafe fn splat(x: $E) -> Self {
                // SAFETY: see above.
                unsafe { $splat(x) }
            }
            #[inline(always)]
            unsafe fn repeated<const N: usize>(p: *const $E) -> Self {
                // SAFETY: see above.
                unsafe { $cast($repeated(p.cast(), N * size_of::<$E>())) }
            }
            #[inline(always)]
            unsafe fn fused(self, a: Self, b: Self) -> Self {
                // SAFETY: see above.
                unsafe { $fused(a, b, self) }
            }
        }
    };
}
macro_rules! integers {
    ($($V:ident: $load:ident $store:ident $fused:ident $add:ident $mul:ident;)*) => {$(
        #[inline(always)]
        unsafe fn $load(p: *const i32) -> $V {
            // SAFETY: by the contract of the trait; here and below.
            unsafe { p.cast::<$V>().read_unaligned() }
        }
        #[inline(always)]
        unsafe fn $store(p: *mut i32, x: $V) {
            // SAFETY: see above.
            unsafe { p.cast::<$V>().write_unaligned(x) }
        }
        #[inline(always)]
        unsafe fn $fused(a: $V, b: $V, c: $V) -> $V {
            // SAFETY: see above.
            unsafe { $add($mul(a, b), c) }
        }
    )*};
}
/// The `bytes` bytes at `p`, repeated: 8, 16, 32 or all 64.
#[inline(always)]
unsafe fn repeated_512(p: *const u8, bytes: usize) -> __m512d {
    // SAFETY: by the contract of the trait.
    unsafe {
        match bytes {
            8 => _mm512_set1_pd(p.cast::<f64>().read_unaligned()),
            16 => _mm512_castps_pd(_mm512_broadcast_f32x4(_mm_loadu_ps(p.cast()))),
            32 => _mm512_broadcast_f64x4(_mm256_loadu_pd(p.cast())),
            _ => _mm512_loadu_pd(p.cast()),
        }
    }
}
/// As `repeated_512`: 8, 16 or all 32.
#[inline(always)]
unsafe fn repeated_256(p: *const u8, bytes: usize) -> __m256d {
    // SAFETY: by the contract of the trait.
    unsafe {
        match bytes {
            8 => _mm256_set1_pd(p.cast::<f64>().read_unaligned()),
            16 => _mm256_broadcast_pd(&p.cast::<__m128d>().read_unaligned()),
            _ => _mm256_loadu_pd(p.cast()),
        }
    }
}
integers! {
    __m512i: load_512 store_512 fused_512 _mm512_add_epi32 _mm512_mullo_epi32;
    __m256i: load_256 store_256 fused_256 _mm256_add_epi32 _mm256_mullo_epi32;
}
vector! { __m512i i32 16: _mm512_setzero_si512 load_512 store_512 _mm512_set1_epi32 fused_512 repeated_512 _mm512_castpd_si512 }
vector! { __m256i i32 8: _mm256_setzero_si256 load_256 store_256 _mm256_set1_epi32 fused_256 repeated_256 _mm256_castpd_si256 }
vector! { __m512 f32 16: _mm512_setzero_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_fmadd_ps repeated_512 _mm512_castpd_ps }
vector! { __m512d f64 8: _mm512_setzero_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_fmadd_pd repeated_512 identity }
vector! { __m256 f32 8: _mm256_setzero_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_fmadd_ps repeated_256 _mm256_castpd_ps }
vector! { __m256d f64 4: _mm256_setzero_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_fmadd_pd repeated_256 identity }
/// Two 16-bit integers in each 32-bit element: two terms of the sum at once.
#[derive(Clone, Copy)]
pub struct TermPairs<V>(V);
macro_rules! pairs {
    ($($V:ident: $add:ident $products:ident;)*) => {$(
        impl Vector for TermPairs<$V> {
            type Element = i32;
            const LANES: usize = $V::LANES;
            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: by the contract of the trait, here and below.
                TermPairs(unsafe { $V::zero() })
            }
            #[inline(always)]
            unsafe fn load(p: *const i32) -> Self {
                // SAFETY: see above.
                TermPairs(unsafe { $V::load(p) })
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut i32) {
                // SAFETY: see above.
                unsafe { self.0.store(p) }
            }
            #[inline(always)]
            unsafe fn splat(x: i32) -> Self {
                // SAFETY: see above.
                TermPairs(unsafe { $V::splat(x) })
            }
            #[inline(always)]
            unsafe fn repeated<const N: usize>(p: *const i32) -> Self {
                // SAFETY: see above.
                TermPairs(unsafe { $V::repeated::<N>(p) })
            }
            #[inline(always)]
            unsafe fn fused(self, a: Self, b: Self) -> Self {
                // SAFETY: see above.
                TermPairs(unsafe { $add(self.0, $products(a.0, b.0)) })
            }
        }
    )*};
}
pairs! {
    __m512i: _mm512_add_epi32 _mm512_madd_epi16;
    __m256i: _mm256_add_epi32 _mm256_madd_epi16;
}
macro_rules! fields {
    ($($V:ident: $less:ident $over:ident;)*) => {$(
        impl super::Divisible for $V {
            #[inline(always)]
            unsafe fn less(self, o: Self) -> Self {
                // SAFETY: see above.
                unsafe { $less(self, o) }
            }
            #[inline(always)]
            unsafe fn over(self, o: Self) -> Self {
                // SAFETY: see above.
                unsafe { $over(self, o) }
            }
        }
    )*};
}
fields! {
    __m512: _mm512_sub_ps _mm512_div_ps;
    __m512d: _mm512_sub_pd _mm512_div_pd;
    __m256: _mm256_sub_ps _mm256_div_ps;
    __m256d: _mm256_sub_pd _mm256_div_pd;
}

macro_rules! products {
    ($features:literal $($name:ident $V:ty, $m:literal;)*) => {$(
        /// # Safety
        /// As `product`.
        #[target_feature(enable = $features)]
        pub unsafe fn $name(x: &Matrices) {
            // SAFETY: the same contract, and these are the features.
            unsafe { product::<$V, $m>(x) }
        }
    )*};
}
macro_rules! products_by_table {
    ($features:literal $($name:ident $V:ident $m:literal;)*) => {$(
        /// # Safety
        /// As `product_by_table`.
        #[target_feature(enable = $features)]
        pub unsafe fn $name(x: &Matrices, table: &[i32]) {
            // SAFETY: the same contract, and these are the features.
            unsafe { product_by_table::<$V, $m>(x, table) }
        }
    )*};
}
products_by_table! { "avx512f,avx512bw,avx512dq,avx512vl" wide_f32_by_table __m512 8; wide_f64_by_table __m512d 8; }
products_by_table! { "avx2,fma" narrow_f32_by_table __m256 6; narrow_f64_by_table __m256d 6; }
// Accumulators, a panel's row and one element more fit the registers: 32 of them, and 16.
products! {
    "avx512f,avx512bw,avx512dq,avx512vl"
    wide_f32 __m512, 8; wide_f64 __m512d, 8; wide_i32 __m512i, 8; wide_pairs TermPairs<__m512i>, 8;
}
products! { "avx2,fma" narrow_f32 __m256, 6; narrow_f64 __m256d, 6; narrow_i32 __m256i, 6; narrow_pairs TermPairs<__m256i>, 6; }
