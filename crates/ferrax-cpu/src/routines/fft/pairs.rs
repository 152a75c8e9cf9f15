//! Vectors of complex numbers with interleaved real and imaginary parts, and the operations that transforms need on rows of them.
//!
//! INVARIANT: a number's bits do not depend on a vector's width: products are two products and a sum, without fused multiply-add.
#![allow(unsafe_code)]
use crate::tier::Tier;

/// Replaces `a[k]` and `b[n - 1 - k]` by combinations of the sum and the difference of a and conj
/// b, the latter times a twiddle factor; `scale` is one real number.
pub type OnPairs = unsafe fn(low: *mut u8, high: *mut u8, twiddles: *const u8, scale: *const u8, n: usize);
/// `to[k] = a[k] b[k]`
pub type ComplexProducts = unsafe fn(to: *mut u8, a: *const u8, b: *const u8, n: usize);

/// Functions on rows of complex numbers, for a size of their parts and a machine.
#[derive(Clone, Copy)]
pub struct ComplexRows {
    pub products: ComplexProducts,
    /// `(s - i d w) scale` and `conj(s + i d w) scale`, of sum s, difference d and twiddle factor
    /// w: splits the transform of pairs.
    pub apart: OnPairs,
    /// The same with `+ i d w`: its inverse.
    pub together: OnPairs,
}

/// Some complex numbers.
trait ComplexVector: Copy {
    type Part: Copy;
    const NUMBERS: usize;
    /// # Safety
    /// `NUMBERS` of them lie there, and the machine has these vectors; so for all that follows.
    unsafe fn load(p: *const Self::Part) -> Self;
    /// # Safety
    /// As above.
    unsafe fn store(self, p: *mut Self::Part);
    /// # Safety
    /// As above.
    unsafe fn splat(x: Self::Part) -> Self;
    /// # Safety
    /// As above.
    unsafe fn add(self, o: Self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn sub(self, o: Self) -> Self;
    /// Part by part.
    ///
    /// # Safety
    /// As above.
    unsafe fn mul(self, o: Self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn conj(self) -> Self;
    /// The other sign for real parts.
    ///
    /// # Safety
    /// As above.
    unsafe fn mirrored(self) -> Self;
    /// Imaginary parts for real ones, and real ones for them.
    ///
    /// # Safety
    /// As above.
    unsafe fn swapped(self) -> Self;
    /// Real parts for both; imaginary parts for both.
    ///
    /// # Safety
    /// As above.
    unsafe fn parts(self) -> (Self, Self);
    /// The last number first.
    ///
    /// # Safety
    /// As above.
    unsafe fn reversed(self) -> Self;
    /// The product of complex numbers.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn times(self, o: Self) -> Self {
        // SAFETY: by the contract.
        unsafe {
            let (re, im) = o.parts();
            self.mul(re).add(self.swapped().mul(im).mirrored())
        }
    }
}

/// One number at a time: where there are no vectors, and at the end of a row.
#[derive(Clone, Copy)]
struct One<T>([T; 2]);
macro_rules! one {
    ($($T:ty)*) => {$(
        impl ComplexVector for One<$T> {
            type Part = $T;
            const NUMBERS: usize = 1;
            #[inline(always)]
            unsafe fn load(p: *const $T) -> Self {
                // SAFETY: by the contract.
                One(unsafe { p.cast::<[$T; 2]>().read() })
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $T) {
                // SAFETY: by the contract.
                unsafe { p.cast::<[$T; 2]>().write(self.0) }
            }
            #[inline(always)]
            unsafe fn splat(x: $T) -> Self {
                One([x, x])
            }
            #[inline(always)]
            unsafe fn add(self, o: Self) -> Self {
                One([self.0[0] + o.0[0], self.0[1] + o.0[1]])
            }
            #[inline(always)]
            unsafe fn sub(self, o: Self) -> Self {
                One([self.0[0] - o.0[0], self.0[1] - o.0[1]])
            }
            #[inline(always)]
            unsafe fn mul(self, o: Self) -> Self {
                One([self.0[0] * o.0[0], self.0[1] * o.0[1]])
            }
            #[inline(always)]
            unsafe fn conj(self) -> Self {
                One([self.0[0], -self.0[1]])
            }
            #[inline(always)]
            unsafe fn mirrored(self) -> Self {
                One([-self.0[0], self.0[1]])
            }
            #[inline(always)]
            unsafe fn swapped(self) -> Self {
                One([self.0[1], self.0[0]])
            }
            #[inline(always)]
            unsafe fn parts(self) -> (Self, Self) {
                (One([self.0[0]; 2]), One([self.0[1]; 2]))
            }
            #[inline(always)]
            unsafe fn reversed(self) -> Self {
                self
            }
        }
    )*};
}
one! { f32 f64 }

/// # Safety
/// As [`ComplexProducts`]; the result overlaps neither operand, and the machine has these vectors.
#[inline(always)]
unsafe fn products<V: ComplexVector, O: ComplexVector<Part = V::Part>>(
    to: *mut u8,
    a: *const u8,
    b: *const u8,
    n: usize,
) {
    let (to, a, b) = (to.cast::<V::Part>(), a.cast::<V::Part>(), b.cast::<V::Part>());
    let whole = n / V::NUMBERS * V::NUMBERS;
    // SAFETY: by the contract: numbers below n.
    unsafe {
        for k in (0..whole).step_by(V::NUMBERS) {
            V::load(a.add(2 * k)).times(V::load(b.add(2 * k))).store(to.add(2 * k));
        }
        for k in whole..n {
            O::load(a.add(2 * k)).times(O::load(b.add(2 * k))).store(to.add(2 * k));
        }
    }
}
/// # Safety
/// As [`OnPairs`]; rows do not overlap, and the machine has these vectors.
#[inline(always)]
unsafe fn on_pairs<V: ComplexVector, O: ComplexVector<Part = V::Part>, const JOINED: bool>(
    low: *mut u8,
    high: *mut u8,
    twiddles: *const u8,
    scale: *const u8,
    n: usize,
) {
    /// # Safety
    /// As many numbers at each of these places.
    #[inline(always)]
    unsafe fn some<V: ComplexVector, const JOINED: bool>(
        a: *mut V::Part,
        b: *mut V::Part,
        w: *const V::Part,
        scale: V::Part,
    ) {
        // SAFETY: by the contract.
        unsafe {
            let (x, y) = (V::load(a), V::load(b).reversed().conj());
            let (sum, difference) = (x.add(y), x.sub(y));
            // times i, or divided by it
            let across = if JOINED { difference.swapped().mirrored() } else { difference.swapped().conj() };
            let rotated = across.times(V::load(w));
            sum.add(rotated).mul(V::splat(scale)).store(a);
            sum.sub(rotated).conj().mul(V::splat(scale)).reversed().store(b);
        }
    }
    let (low, high, twiddles) = (low.cast::<V::Part>(), high.cast::<V::Part>(), twiddles.cast::<V::Part>());
    let whole = n / V::NUMBERS * V::NUMBERS;
    // SAFETY: by the contract: numbers below n of each row.
    unsafe {
        let scale = *scale.cast::<V::Part>();
        for k in (0..whole).step_by(V::NUMBERS) {
            let back = n - k - V::NUMBERS;
            some::<V, JOINED>(low.add(2 * k), high.add(2 * back), twiddles.add(2 * k), scale);
        }
        for k in whole..n {
            some::<O, JOINED>(low.add(2 * k), high.add(2 * (n - k - 1)), twiddles.add(2 * k), scale);
        }
    }
}

macro_rules! rows {
    ($name:ident $V:ty, $O:ty $(, $features:literal)?) => {
        pub mod $name {
            use super::*;
            $(#[target_feature(enable = $features)])?
            unsafe fn products_of(to: *mut u8, a: *const u8, b: *const u8, n: usize) {
                // SAFETY: the same contract.
                unsafe { products::<$V, $O>(to, a, b, n) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn pairs_of<const JOINED: bool>(low: *mut u8, high: *mut u8, w: *const u8, scale: *const u8, n: usize) {
                // SAFETY: the same contract.
                unsafe { on_pairs::<$V, $O, JOINED>(low, high, w, scale, n) }
            }
            pub const ROWS: ComplexRows =
                ComplexRows { products: products_of, apart: pairs_of::<false>, together: pairs_of::<true> };
        }
    };
}
rows! { portable_f32 One<f32>, One<f32> }
rows! { portable_f64 One<f64>, One<f64> }

/// For parts of `size` bytes.
pub fn pick(size: usize, tier: Tier) -> ComplexRows {
    match (tier, size) {
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        (Tier::Avx512, 4) => x86::wide_f32::ROWS,
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        (Tier::Avx512, _) => x86::wide_f64::ROWS,
        #[cfg(target_arch = "x86_64")]
        (Tier::Avx2, 4) => x86::narrow_f32::ROWS,
        #[cfg(target_arch = "x86_64")]
        (Tier::Avx2, _) => x86::narrow_f64::ROWS,
        (_, 4) => portable_f32::ROWS,
        _ => portable_f64::ROWS,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($V:ty, $T:ty, $numbers:literal: $load:ident $store:ident $splat:ident $add:ident $sub:ident $mul:ident $xor:expr;
         |$x:ident| $swapped:expr, $re:expr, $im:expr, $reversed:expr) => {
            impl ComplexVector for $V {
                type Part = $T;
                const NUMBERS: usize = $numbers;
                #[inline(always)]
                unsafe fn load(p: *const $T) -> Self {
                    // SAFETY: by the contract of the trait, here and below.
                    unsafe { $load(p) }
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut $T) {
                    // SAFETY: see above.
                    unsafe { $store(p, self) }
                }
                #[inline(always)]
                unsafe fn splat(x: $T) -> Self {
                    // SAFETY: see above.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn add(self, o: Self) -> Self {
                    // SAFETY: see above.
                    unsafe { $add(self, o) }
                }
                #[inline(always)]
                unsafe fn sub(self, o: Self) -> Self {
                    // SAFETY: see above.
                    unsafe { $sub(self, o) }
                }
                #[inline(always)]
                unsafe fn mul(self, o: Self) -> Self {
                    // SAFETY: see above.
                    unsafe { $mul(self, o) }
                }
                #[inline(always)]
                unsafe fn conj(self) -> Self {
                    let signs: [$T; 2 * $numbers] = std::array::from_fn(|k| if k % 2 == 1 { -0.0 } else { 0.0 });
                    // SAFETY: see above.
                    unsafe { $xor(self, $load(signs.as_ptr())) }
                }
                #[inline(always)]
                unsafe fn mirrored(self) -> Self {
                    let signs: [$T; 2 * $numbers] = std::array::from_fn(|k| if k % 2 == 0 { -0.0 } else { 0.0 });
                    // SAFETY: see above.
                    unsafe { $xor(self, $load(signs.as_ptr())) }
                }
                #[inline(always)]
                unsafe fn swapped(self) -> Self {
                    let $x = self;
                    // SAFETY: see above.
                    unsafe { $swapped }
                }
                #[inline(always)]
                unsafe fn parts(self) -> (Self, Self) {
                    let $x = self;
                    // SAFETY: see above.
                    unsafe { ($re, $im) }
                }
                #[inline(always)]
                unsafe fn reversed(self) -> Self {
                    let $x = self;
                    // SAFETY: see above.
                    unsafe { $reversed }
                }
            }
        };
    }
    vector! {
        __m256, f32, 4: _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_xor_ps;
        |x| _mm256_permute_ps::<0xb1>(x), _mm256_moveldup_ps(x), _mm256_movehdup_ps(x),
        _mm256_castpd_ps(_mm256_permute4x64_pd::<0x1b>(_mm256_castps_pd(x)))
    }
    vector! {
        __m256d, f64, 2: _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_xor_pd;
        |x| _mm256_permute_pd::<0x5>(x), _mm256_movedup_pd(x), _mm256_permute_pd::<0xf>(x), _mm256_permute4x64_pd::<0x4e>(x)
    }
    rows! { narrow_f32 __m256, One<f32>, "avx2,fma" }
    rows! { narrow_f64 __m256d, One<f64>, "avx2,fma" }
    #[cfg(feature = "avx512")]
    vector! {
        __m512, f32, 8: _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_xor_ps;
        |x| _mm512_permute_ps::<0xb1>(x), _mm512_moveldup_ps(x), _mm512_movehdup_ps(x),
        _mm512_castpd_ps(_mm512_permutexvar_pd(_mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_castps_pd(x)))
    }
    #[cfg(feature = "avx512")]
    vector! {
        __m512d, f64, 4: _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_xor_pd;
        |x| _mm512_permute_pd::<0x55>(x), _mm512_movedup_pd(x), _mm512_permute_pd::<0xff>(x), _mm512_shuffle_f64x2::<0x1b>(x, x)
    }
    #[cfg(feature = "avx512")]
    rows! { wide_f32 __m512, One<f32>, "avx512f,avx512bw,avx512dq,avx512vl" }
    #[cfg(feature = "avx512")]
    rows! { wide_f64 __m512d, One<f64>, "avx512f,avx512bw,avx512dq,avx512vl" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every width has the bits of one number at a time, rows of every length.
    #[test]
    fn vectors_are_as_single_numbers() {
        fn of<T: Copy + From<f32> + PartialEq + std::fmt::Debug>(tiers: &[Tier]) {
            let number = |k: usize, by: usize| T::from((k * by % 101) as f32 * 0.37 - 11.0);
            for n in 0..40 {
                let row = |by: usize| -> Vec<T> { (0..2 * n).map(|k| number(k, by)).collect() };
                let done = |tier: Tier| {
                    let rows = pick(size_of::<T>(), tier);
                    let (mut low, mut high, mut to, twiddles, scale) = (row(7), row(13), row(1), row(29), T::from(0.5));
                    let (a, b) = (low.as_mut_ptr().cast(), high.as_mut_ptr().cast());
                    // SAFETY: rows of n numbers each, and a machine of these tiers.
                    unsafe {
                        (rows.apart)(a, b, twiddles.as_ptr().cast(), (&raw const scale).cast(), n);
                        (rows.together)(a, b, twiddles.as_ptr().cast(), (&raw const scale).cast(), n);
                        (rows.products)(to.as_mut_ptr().cast(), a, b, n);
                    }
                    (low, high, to)
                };
                for t in tiers {
                    assert_eq!(done(*t), done(Tier::Portable), "{n} by {t:?}");
                }
            }
        }
        let tiers: Vec<Tier> = Tier::ALL.into_iter().filter(|t| t.is_available()).collect();
        of::<f32>(&tiers);
        of::<f64>(&tiers);
    }
}
