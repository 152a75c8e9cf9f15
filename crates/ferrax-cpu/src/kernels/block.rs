//! Block functions: one loop for each scalar function and lane type, compiled once for each tier.
//!
//! INVARIANT: a block function touches elements `0..n` of its operands and nothing else; operands may be the same memory or
//! disjoint, and are aligned to their lane.
//!
//! Loops are plain, over raw pointers: LLVM checks for overlap once, then runs the vector loop. `#[inline(always)]` carries a
//! loop into a wrapper with the tier's target features, which is where it becomes machine code.
use crate::tier::Tier;
use std::marker::PhantomData;

/// `d[i] = f(a[i], b[i], c[i])` for i in 0..n; functions of fewer operands ignore the rest.
pub type BlockFn = unsafe fn(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize);

pub trait BlockLoop {
    /// # Safety
    /// The operands this function reads and `d` hold `n` lanes each, aligned.
    unsafe fn run(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize);
}

/// Generates the tier wrappers of a trait's static function, and the function that picks one. The unit tests' build of this crate has the portable
/// tier alone, since these loops are most of what is compiled; tests of tiers are in `tests/`.
macro_rules! tiers {
    ($pick:ident, $Trait:ident, fn($($x:ident: $t:ty),*)) => {
        pub fn $pick<F: $Trait>(tier: $crate::tier::Tier) -> unsafe fn($($t),*) {
            unsafe fn portable<F: $Trait>($($x: $t),*) {
                // SAFETY: the same contract as this function's.
                unsafe { F::run($($x),*) }
            }
            // if the whole crate is compiled for these features, the portable tier has them as well
            #[cfg(all(target_arch = "x86_64", not(test), not(all(target_feature = "avx2", target_feature = "fma"))))]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2<F: $Trait>($($x: $t),*) {
                // SAFETY: the same contract as this function's.
                unsafe { F::run($($x),*) }
            }
            #[cfg(all(target_arch = "x86_64", not(test), feature = "avx512"))]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn avx512<F: $Trait>($($x: $t),*) {
                // SAFETY: the same contract as this function's.
                unsafe { F::run($($x),*) }
            }
            match tier {
                #[cfg(all(target_arch = "x86_64", not(test), feature = "avx512"))]
                $crate::tier::Tier::Avx512 => avx512::<F>,
                #[cfg(all(target_arch = "x86_64", not(test), not(all(target_feature = "avx2", target_feature = "fma"))))]
                $crate::tier::Tier::Avx2 => avx2::<F>,
                _ => portable::<F>,
            }
        }
    };
}
pub(crate) use tiers;
tiers!(pick, BlockLoop, fn(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize));

/// Some rounds over the words `a[i]` and `b[i]`, which give `d[i]` and `e[i]`: the first takes the second in, the second is rotated by
/// a byte of `by`, lowest first, and takes the first in by exclusive or.
pub type RoundsFn = unsafe fn(d: *mut u8, e: *mut u8, a: *const u8, b: *const u8, by: u32, n: usize);
pub trait Mix {
    /// # Safety
    /// All four hold n words, aligned; d and e do not overlap.
    unsafe fn run(d: *mut u8, e: *mut u8, a: *const u8, b: *const u8, by: u32, n: usize);
}
tiers!(pick_mix, Mix, fn(d: *mut u8, e: *mut u8, a: *const u8, b: *const u8, by: u32, n: usize));
struct Times<const ROUNDS: usize>;
impl<const ROUNDS: usize> Mix for Times<ROUNDS> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, e: *mut u8, a: *const u8, b: *const u8, by: u32, n: usize) {
        let (d, e, a, b) = (d.cast::<u32>(), e.cast::<u32>(), a.cast::<u32>(), b.cast::<u32>());
        let by = by.to_le_bytes();
        for i in 0..n {
            // SAFETY: i < n, and all hold n words.
            unsafe {
                let (mut x, mut y) = (*a.add(i), *b.add(i));
                for by in &by[..ROUNDS] {
                    x = x.wrapping_add(y);
                    y = y.rotate_left(*by as u32) ^ x;
                }
                *d.add(i) = x;
                *e.add(i) = y;
            }
        }
    }
}
/// One to four rounds.
pub fn rounds(n: usize, tier: Tier) -> RoundsFn {
    match n {
        1 => pick_mix::<Times<1>>(tier),
        2 => pick_mix::<Times<2>>(tier),
        3 => pick_mix::<Times<3>>(tier),
        _ => pick_mix::<Times<4>>(tier),
    }
}

/// A scalar function of one operand.
pub trait F1 {
    type A: Copy;
    type R: Copy;
    fn f(a: Self::A) -> Self::R;
}
/// A scalar function of two operands of one type.
pub trait F2 {
    type A: Copy;
    type R: Copy;
    fn f(a: Self::A, b: Self::A) -> Self::R;
}

struct Map1<F>(PhantomData<F>);
impl<F: F1> BlockLoop for Map1<F> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        let (d, a) = (d.cast::<F::R>(), a.cast::<F::A>());
        for i in 0..n {
            // SAFETY: i < n, and both hold n lanes.
            unsafe { *d.add(i) = F::f(*a.add(i)) }
        }
    }
}
struct Map2<F>(PhantomData<F>);
impl<F: F2> BlockLoop for Map2<F> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        let (d, a, b) = (d.cast::<F::R>(), a.cast::<F::A>(), b.cast::<F::A>());
        for i in 0..n {
            // SAFETY: i < n, and all hold n lanes.
            unsafe { *d.add(i) = F::f(*a.add(i), *b.add(i)) }
        }
    }
}
struct Choose<T>(PhantomData<T>);
impl<T: Copy> BlockLoop for Choose<T> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
        let (d, b, c) = (d.cast::<T>(), b.cast::<T>(), c.cast::<T>());
        for i in 0..n {
            // SAFETY: i < n, and all hold n lanes.
            unsafe {
                let (x, y) = (*b.add(i), *c.add(i));
                *d.add(i) = if *a.add(i) != 0 { x } else { y };
            }
        }
    }
}

pub fn map1<F: F1>(tier: Tier) -> BlockFn {
    pick::<Map1<F>>(tier)
}
pub fn map2<F: F2>(tier: Tier) -> BlockFn {
    pick::<Map2<F>>(tier)
}
/// `a` is bool.
pub fn choose(bytes: usize, tier: Tier) -> BlockFn {
    match bytes {
        1 => pick::<Choose<u8>>(tier),
        4 => pick::<Choose<u32>>(tier),
        _ => pick::<Choose<u64>>(tier),
    }
}
