//! Vectors of doubles as lanes of the reference decompositions: eight with AVX-512, four with AVX2.
//!
//! INVARIANT: each operation is that of IEEE 754 in every lane, none fused, so all tiers give the bits of the reference implementation in one lane.
#![allow(unsafe_code)]
use ferrax_host::Tier;
use ferrax_kernel::linalg::{LaneWorkspace, Linalg};

/// [`Linalg::run_lanes`] compiled for a tier.
pub type RunLanes<R> = fn(&Linalg, &mut LaneWorkspace<R>, usize, &[&[u8]], &mut [&mut [u8]]);

/// One matrix at a time, with loops over rows as the compiler vectorizes them.
pub fn one(tier: Tier) -> RunLanes<f64> {
    #[cfg(all(target_arch = "x86_64", feature = "blocked"))]
    match tier {
        Tier::Avx512 | Tier::Avx2 => return x86::one_avx2,
        Tier::Portable => (),
    }
    let _ = tier;
    Linalg::run_lane
}

/// How many matrices a tier's vectors hold.
pub fn count(tier: Tier) -> usize {
    match tier {
        Tier::Avx512 => 8,
        Tier::Avx2 => 4,
        Tier::Portable => 1,
    }
}

#[cfg(all(target_arch = "x86_64", feature = "blocked"))]
pub mod x86 {
    use super::*;
    use ferrax_kernel::linalg::lanes::{LaneMask, RealLanes};
    use std::arch::x86_64::*;
    use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

    macro_rules! compiled {
        ($($name:ident $inner:ident $R:ty, $features:literal;)*) => {$(
            pub fn $name(l: &Linalg, lanes: &mut LaneWorkspace<$R>, count: usize, ins: &[&[u8]], outs: &mut [&mut [u8]]) {
                // SAFETY: the caller has checked the tier, or has its vectors.
                unsafe { $inner(l, lanes, count, ins, outs) }
            }
            #[target_feature(enable = $features)]
            fn $inner(l: &Linalg, lanes: &mut LaneWorkspace<$R>, count: usize, ins: &[&[u8]], outs: &mut [&mut [u8]]) {
                l.run_lanes(lanes, count, ins, outs)
            }
        )*};
    }
    compiled! {
        one_avx2 inner_one_avx2 f64, "avx2,fma";
        eight inner_eight Eight, "avx512f,avx512bw,avx512dq,avx512vl";
        four inner_four Four, "avx2,fma";
    }

    /// Made only where the machine has AVX-512: by the code of its tier.
    #[derive(Clone, Copy)]
    pub struct Eight(__m512d);
    #[derive(Clone, Copy)]
    pub struct Mask8(__mmask8);
    /// Made only where the machine has AVX2.
    #[derive(Clone, Copy)]
    pub struct Four(__m256d);
    #[derive(Clone, Copy)]
    pub struct Mask4(__m256d);

    impl LaneMask for Mask8 {
        #[inline(always)]
        fn any(self) -> bool {
            self.0 != 0
        }
        #[inline(always)]
        fn and(self, o: Mask8) -> Mask8 {
            Mask8(self.0 & o.0)
        }
        #[inline(always)]
        fn or(self, o: Mask8) -> Mask8 {
            Mask8(self.0 | o.0)
        }
        #[inline(always)]
        fn not(self) -> Mask8 {
            Mask8(!self.0)
        }
    }
    impl LaneMask for Mask4 {
        #[inline(always)]
        fn any(self) -> bool {
            // SAFETY: a `Mask4` exists only where AVX2 does.
            unsafe { _mm256_movemask_pd(self.0) != 0 }
        }
        #[inline(always)]
        fn and(self, o: Mask4) -> Mask4 {
            // SAFETY: as above.
            Mask4(unsafe { _mm256_and_pd(self.0, o.0) })
        }
        #[inline(always)]
        fn or(self, o: Mask4) -> Mask4 {
            // SAFETY: as above.
            Mask4(unsafe { _mm256_or_pd(self.0, o.0) })
        }
        #[inline(always)]
        fn not(self) -> Mask4 {
            // SAFETY: as above.
            Mask4(unsafe { _mm256_xor_pd(self.0, _mm256_castsi256_pd(_mm256_set1_epi64x(-1))) })
        }
    }
    macro_rules! operators {
        ($($T:ident $lanes:literal $add:ident $sub:ident $mul:ident $div:ident $xor:ident $set:ident $load:ident $store:ident $sqrt:ident;)*) => {$(
            operators! { $T: Add add $add, Sub sub $sub, Mul mul $mul, Div div $div }
            impl Neg for $T {
                type Output = $T;
                #[inline(always)]
                fn neg(self) -> $T {
                    // SAFETY: a vector exists only where its instructions do.
                    $T(unsafe { $xor(self.0, $set(-0.0)) })
                }
            }
            impl AddAssign for $T {
                #[inline(always)]
                fn add_assign(&mut self, o: $T) {
                    *self = *self + o;
                }
            }
            impl SubAssign for $T {
                #[inline(always)]
                fn sub_assign(&mut self, o: $T) {
                    *self = *self - o;
                }
            }
            impl $T {
                #[inline(always)]
                fn one(x: f64) -> $T {
                    // SAFETY: the text over these lanes runs in the code of their tier.
                    $T(unsafe { $set(x) })
                }
                #[inline(always)]
                fn lanes(mut f: impl FnMut(usize) -> f64) -> $T {
                    let mut x = [0.0; $lanes];
                    (0..$lanes).for_each(|k| x[k] = f(k));
                    // SAFETY: as above, and as many doubles as are read.
                    $T(unsafe { $load(x.as_ptr()) })
                }
                #[inline(always)]
                fn every(self, count: usize, mut f: impl FnMut(usize, f64)) {
                    let mut x = [0.0; $lanes];
                    // SAFETY: as above, and as many doubles as are written.
                    unsafe { $store(x.as_mut_ptr(), self.0) };
                    x.iter().take(count).enumerate().for_each(|(k, x)| f(k, *x));
                }
                #[inline(always)]
                fn root(self) -> $T {
                    // SAFETY: as above.
                    $T(unsafe { $sqrt(self.0) })
                }
            }
        )*};
        ($T:ident: $($Op:ident $f:ident $intrinsic:ident),*) => {$(
            impl $Op for $T {
                type Output = $T;
                #[inline(always)]
                fn $f(self, o: $T) -> $T {
                    // SAFETY: a vector exists only where its instructions do.
                    $T(unsafe { $intrinsic(self.0, o.0) })
                }
            }
        )*};
    }
    operators! {
        Eight 8 _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_xor_pd _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_sqrt_pd;
        Four 4 _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_xor_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_sqrt_pd;
    }
    macro_rules! real {
        ($T:ident $M:ident $lanes:literal: |$a:ident, $b:ident| abs $abs:expr, less $less:expr, equals $equals:expr, |$m:ident| select $select:expr) => {
            impl RealLanes for $T {
                type LaneMask = $M;
                const LANES: usize = $lanes;
                #[inline(always)]
                fn splat(x: f64) -> $T {
                    $T::one(x)
                }
                #[inline(always)]
                fn from_fn(f: impl FnMut(usize) -> f64) -> $T {
                    $T::lanes(f)
                }
                #[inline(always)]
                fn each(self, count: usize, f: impl FnMut(usize, f64)) {
                    self.every(count, f)
                }
                #[inline(always)]
                fn sqrt(self) -> $T {
                    self.root()
                }
                #[inline(always)]
                fn abs(self) -> $T {
                    let $a = self.0;
                    // SAFETY: a vector exists only where its instructions do.
                    $T(unsafe { $abs })
                }
                #[inline(always)]
                fn less(self, o: $T) -> $M {
                    let ($a, $b) = (self.0, o.0);
                    // SAFETY: as above.
                    $M(unsafe { $less })
                }
                #[inline(always)]
                fn equals(self, o: $T) -> $M {
                    let ($a, $b) = (self.0, o.0);
                    // SAFETY: as above.
                    $M(unsafe { $equals })
                }
                #[inline(always)]
                fn select(holds: $M, a: $T, b: $T) -> $T {
                    let ($m, $a, $b) = (holds.0, a.0, b.0);
                    // SAFETY: as above.
                    $T(unsafe { $select })
                }
            }
        };
    }
    real! {
        Eight Mask8 8: |a, b| abs _mm512_abs_pd(a), less _mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b), equals _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(a, b),
        |m| select _mm512_mask_blend_pd(m, b, a)
    }
    real! {
        Four Mask4 4: |a, b| abs _mm256_andnot_pd(_mm256_set1_pd(-0.0), a), less _mm256_cmp_pd::<_CMP_LT_OQ>(a, b), equals _mm256_cmp_pd::<_CMP_EQ_OQ>(a, b),
        |m| select _mm256_blendv_pd(b, a, m)
    }
}
