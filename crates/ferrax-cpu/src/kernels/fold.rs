//! Reductions inside a tile, in the order of [`ferrax_kernel::order`].
//!
//! Accumulators of a block are laid out `[LANES][width]`: lane j of column i at `j * width + i`. A row reduction has width 1, a
//! column reduction handles `width` neighbouring results at once; both take element r of a block into lane `r % LANES`.
//!
//! INVARIANT: each (lane, column) takes its elements in increasing r, one at a time, starting from the identity.
// Loops over the lanes of local arrays, several at once, by index.
// PERF: no closures here that a function of the library calls: where that is not inlined, they are compiled without the tier's instructions.
#![allow(clippy::needless_range_loop)]
use super::block::{F2, tiers};
use super::lane::*;
use crate::tier::Tier;
use ferrax_kernel::order::{BLOCK, LANES};
use ferrax_kernel::{DType, ReduceKind};
use std::marker::PhantomData;

/// Takes rows `r0 .. r0 + rows` of `src` (`width` lanes each) into the accumulators.
pub type FoldFn = unsafe fn(acc: *mut u8, src: *const u8, width: usize, r0: usize, rows: usize);
/// Reduces `rows` rows of `n <= BLOCK` elements each to one element each.
pub type RowsFn = unsafe fn(d: *mut u8, src: *const u8, rows: usize, n: usize);
/// Folds the lanes: column i of lane 0 becomes the result.
pub type FinishFn = unsafe fn(acc: *mut u8, width: usize);

pub trait Fold {
    /// # Safety
    /// `acc` holds LANES * width lanes, `src` rows * width.
    unsafe fn run(acc: *mut u8, src: *const u8, width: usize, r0: usize, rows: usize);
}
tiers!(pick_fold, Fold, fn(acc: *mut u8, src: *const u8, width: usize, r0: usize, rows: usize));
pub trait FoldRows {
    /// # Safety
    /// `src` holds rows * n lanes, `d` rows.
    unsafe fn run(d: *mut u8, src: *const u8, rows: usize, n: usize);
}
tiers!(pick_rows, FoldRows, fn(d: *mut u8, src: *const u8, rows: usize, n: usize));
pub trait Finish {
    /// # Safety
    /// `acc` holds LANES * width lanes.
    unsafe fn run(acc: *mut u8, width: usize);
}
tiers!(pick_finish, Finish, fn(acc: *mut u8, width: usize));

/// A combining function with the value it starts from.
trait LaneMonoid: F2<R = <Self as F2>::A> {
    const IDENTITY: Self::A;
    /// Whether grouping changes no bits, so that four rows of lanes may go side by side.
    const ANY_ORDER: bool;
    /// Whether many short rows are worth code of their own.
    const OFTEN: bool;
    /// A block's result: of all nans the one that [`ferrax_kernel::order`] states.
    fn settled(x: Self::A) -> Self::A;
}
macro_rules! settle {
    ($x:ident f32) => {
        if $x.is_nan() { f32::from_bits(0x7fc0_0000) } else { $x }
    };
    ($x:ident f64) => {
        if $x.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000) } else { $x }
    };
    ($x:ident $T:ident) => {
        $x
    };
}
/// Sums and products of floats round; all else is associative and commutative.
macro_rules! any_order {
    (Sum f32) => {
        false
    };
    (Sum f64) => {
        false
    };
    (Prod f32) => {
        false
    };
    (Prod f64) => {
        false
    };
    ($Name:ident $T:ident) => {
        true
    };
}
macro_rules! often {
    (f32) => {
        true
    };
    ($T:ident) => {
        false
    };
}
macro_rules! monoid {
    ($Name:ident: $($T:ident $id:expr, |$x:ident, $y:ident| $e:expr;)*) => {
        struct $Name<T>(PhantomData<T>);
        $(
            impl F2 for $Name<$T> {
                type A = $T;
                type R = $T;
                #[inline(always)]
                fn f($x: $T, $y: $T) -> $T { $e }
            }
            impl LaneMonoid for $Name<$T> {
                const IDENTITY: $T = $id;
                const ANY_ORDER: bool = any_order!($Name $T);
                const OFTEN: bool = often!($T);
                #[inline(always)]
                fn settled(x: $T) -> $T { settle!(x $T) }
            }
        )*
    };
}
monoid! { Sum: f32 0.0, |x, y| x + y; f64 0.0, |x, y| x + y; i32 0, |x, y| x.wrapping_add(y); u32 0, |x, y| x.wrapping_add(y);
i64 0, |x, y| x.wrapping_add(y); u64 0, |x, y| x.wrapping_add(y); u8 0, |x, y| x | y; }
monoid! { Prod: f32 1.0, |x, y| x * y; f64 1.0, |x, y| x * y; i32 1, |x, y| x.wrapping_mul(y); u32 1, |x, y| x.wrapping_mul(y);
i64 1, |x, y| x.wrapping_mul(y); u64 1, |x, y| x.wrapping_mul(y); u8 1, |x, y| x & y; }
monoid! { Max: f32 f32::NEG_INFINITY, |x, y| Float::maximum(x, y); f64 f64::NEG_INFINITY, |x, y| Float::maximum(x, y);
i32 i32::MIN, |x, y| if x > y { x } else { y }; u32 0, |x, y| if x > y { x } else { y };
i64 i64::MIN, |x, y| if x > y { x } else { y }; u64 0, |x, y| if x > y { x } else { y }; u8 0, |x, y| x | y; }
monoid! { Min: f32 f32::INFINITY, |x, y| Float::minimum(x, y); f64 f64::INFINITY, |x, y| Float::minimum(x, y);
i32 i32::MAX, |x, y| if x < y { x } else { y }; u32 u32::MAX, |x, y| if x < y { x } else { y };
i64 i64::MAX, |x, y| if x < y { x } else { y }; u64 u64::MAX, |x, y| if x < y { x } else { y }; u8 1, |x, y| x & y; }
monoid! { And: i32 -1, |x, y| x & y; u32 u32::MAX, |x, y| x & y; i64 -1, |x, y| x & y; u64 u64::MAX, |x, y| x & y; u8 1, |x, y| x & y; }
monoid! { Or: i32 0, |x, y| x | y; u32 0, |x, y| x | y; i64 0, |x, y| x | y; u64 0, |x, y| x | y; u8 0, |x, y| x | y; }
monoid! { Xor: i32 0, |x, y| x ^ y; u32 0, |x, y| x ^ y; i64 0, |x, y| x ^ y; u64 0, |x, y| x ^ y; u8 0, |x, y| x ^ y; }

struct Folding<M>(PhantomData<M>);
#[inline(always)]
unsafe fn take<M: LaneMonoid>(acc: *mut M::A, src: *const M::A, n: usize) {
    for i in 0..n {
        // SAFETY: by the caller's contract.
        unsafe { *acc.add(i) = M::f(*acc.add(i), *src.add(i)) }
    }
}
/// Elements that are combined side by side where their order does not count.
const WIDE: usize = 128;
/// Folds all `n` elements, at least one.
///
/// # Safety
/// `src` holds n lanes.
#[inline(always)]
unsafe fn in_any_order<M: LaneMonoid>(src: *const M::A, n: usize) -> M::A {
    let mut acc = [M::IDENTITY; WIDE];
    let (p, mut k) = (acc.as_mut_ptr(), 0);
    // PERF: the compiler does not know the length, so it vectorises the loop instead of unrolling
    // it.
    // SAFETY: lanes below n are read; halves of the accumulators are disjoint.
    unsafe {
        while k < n {
            let step = WIDE.min(n - k);
            take::<M>(p, src.add(k), step);
            k += step;
        }
        let mut w = WIDE / 2;
        while w > 0 {
            take::<M>(p, p.add(w), w);
            w /= 2;
        }
        *p
    }
}
impl<M: LaneMonoid> Fold for Folding<M> {
    #[inline(always)]
    unsafe fn run(acc: *mut u8, src: *const u8, width: usize, r0: usize, rows: usize) {
        let (acc, mut src) = (acc.cast::<M::A>(), src.cast::<M::A>());
        let (mut r, end) = (r0, r0 + rows);
        if M::ANY_ORDER && width == 1 && rows >= WIDE {
            // SAFETY: rows lanes are read.
            let x = unsafe { in_any_order::<M>(src, rows) };
            // SAFETY: there is a first lane.
            unsafe { *acc = M::f(*acc, x) };
            return;
        }
        // SAFETY: rows * width lanes are read in all, and lanes below LANES * width updated.
        unsafe {
            while r < end && (width != 1 || r % LANES != 0) {
                let run = (LANES - r % LANES).min(end - r);
                take::<M>(acc.add(r % LANES * width), src, run * width);
                (r, src) = (r + run, src.add(run * width));
            }
            // Rows of one lane: the accumulators stay in registers.
            if end - r >= LANES {
                let mut a: [M::A; LANES] = acc.cast::<[M::A; LANES]>().read();
                while end - r >= LANES {
                    let x = src.cast::<[M::A; LANES]>().read();
                    for j in 0..LANES {
                        a[j] = M::f(a[j], x[j]);
                    }
                    (r, src) = (r + LANES, src.add(LANES));
                }
                acc.cast::<[M::A; LANES]>().write(a);
            }
            take::<M>(acc, src, (end - r) * width);
        }
    }
}
#[inline(always)]
fn tree<M: LaneMonoid>(mut a: [M::A; LANES]) -> M::A {
    for j in 0..8 {
        a[j] = M::f(a[j], a[j + 8]);
    }
    for j in 0..4 {
        a[j] = M::f(a[j], a[j + 4]);
    }
    for j in 0..2 {
        a[j] = M::f(a[j], a[j + 2]);
    }
    M::f(a[0], a[1])
}
/// Rows up to this long are folded together.
const MAX_ROW: usize = 256;
/// The same result as `tree` for sixteen rows: the halves of each row's lanes are combined, two
/// rows in one vector; then again.
#[inline(always)]
fn trees<M: LaneMonoid>(a: [[M::A; LANES]; LANES]) -> [M::A; LANES] {
    /// `W` lanes of each group of `2 W`, of both vectors.
    #[inline(always)]
    fn halved<M: LaneMonoid, const W: usize>(a: [M::A; LANES], b: [M::A; LANES]) -> [M::A; LANES] {
        let at = |i: usize, half: usize| {
            let (group, lane) = (i / W, i % W);
            let of = if group < LANES / (2 * W) { &a } else { &b };
            of[group % (LANES / (2 * W)) * 2 * W + half * W + lane]
        };
        let (mut low, mut high) = ([M::IDENTITY; LANES], [M::IDENTITY; LANES]);
        for i in 0..LANES {
            (low[i], high[i]) = (at(i, 0), at(i, 1));
        }
        for i in 0..LANES {
            low[i] = M::f(low[i], high[i]);
        }
        low
    }
    let none = [M::IDENTITY; LANES];
    let (mut b, mut c, mut d) = ([none; 8], [none; 4], [none; 2]);
    for r in 0..8 {
        b[r] = halved::<M, 8>(a[2 * r], a[2 * r + 1]);
    }
    for r in 0..4 {
        c[r] = halved::<M, 4>(b[2 * r], b[2 * r + 1]);
    }
    for r in 0..2 {
        d[r] = halved::<M, 2>(c[2 * r], c[2 * r + 1]);
    }
    halved::<M, 1>(d[0], d[1])
}
/// The lanes that a row is folded into.
///
/// # Safety
/// `src` holds n lanes; a whole number of [`LANES`], if they are `readable` (only n of them count).
#[inline(always)]
unsafe fn lanes_of_row<M: LaneMonoid>(src: *const M::A, n: usize, readable: bool) -> [M::A; LANES] {
    let mut a = [M::IDENTITY; LANES];
    let whole = n / LANES * LANES;
    // SAFETY: by the contract.
    unsafe {
        let mut k = 0;
        while k < whole {
            let x = src.add(k).cast::<[M::A; LANES]>().read();
            for j in 0..LANES {
                a[j] = M::f(a[j], x[j]);
            }
            k += LANES;
        }
        let rest = n - whole;
        if rest > 0 && readable {
            let x = src.add(whole).cast::<[M::A; LANES]>().read();
            for j in 0..LANES {
                let taken = M::f(a[j], x[j]);
                a[j] = if j < rest { taken } else { a[j] };
            }
        } else {
            for j in 0..rest {
                a[j] = M::f(a[j], *src.add(whole + j));
            }
        }
    }
    a
}
struct FoldingRows<M>(PhantomData<M>);
impl<M: LaneMonoid> FoldRows for FoldingRows<M> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, src: *const u8, rows: usize, n: usize) {
        let (d, src) = (d.cast::<M::A>(), src.cast::<M::A>());
        let padded = n.next_multiple_of(LANES);
        let mut row = 0;
        // SAFETY: row < rows; n lanes of each are read, or more where a later row has them.
        unsafe {
            while M::OFTEN && n <= MAX_ROW && row + LANES <= rows {
                let readable = (row + LANES - 1) * n + padded <= rows * n;
                let mut a = [[M::IDENTITY; LANES]; LANES];
                for r in 0..LANES {
                    a[r] = lanes_of_row::<M>(src.add((row + r) * n), n, readable);
                }
                d.add(row).cast::<[M::A; LANES]>().write_unaligned(trees::<M>(a).map(M::settled));
                row += LANES;
            }
            for row in row..rows {
                let from = src.add(row * n);
                let x = if M::ANY_ORDER && n >= WIDE {
                    in_any_order::<M>(from, n)
                } else {
                    tree::<M>(lanes_of_row::<M>(from, n, row * n + padded <= rows * n))
                };
                *d.add(row) = M::settled(x);
            }
        }
    }
}
struct Finishing<M>(PhantomData<M>);
impl<M: LaneMonoid> Finish for Finishing<M> {
    #[inline(always)]
    unsafe fn run(acc: *mut u8, width: usize) {
        let acc = acc.cast::<M::A>();
        // SAFETY: lanes 0 .. 2 w lie within the LANES * width that there are, and the two halves are disjoint.
        unsafe {
            let mut w = LANES / 2;
            while w > 0 {
                take::<M>(acc, acc.add(w * width), w * width);
                w /= 2;
            }
            for i in 0..width {
                *acc.add(i) = M::settled(*acc.add(i));
            }
        }
    }
}

/// The functions of one kind of reduction on one lane.
#[derive(Clone, Copy)]
pub struct Folder {
    pub fold: FoldFn,
    pub rows: RowsFn,
    pub finish: FinishFn,
}

/// `None` where the kind is not defined for the dtype, and for the two kinds that give positions.
pub fn folder(kind: ReduceKind, d: DType, t: Tier) -> Option<Folder> {
    fn of<M: LaneMonoid>(t: Tier) -> Folder {
        Folder {
            fold: pick_fold::<Folding<M>>(t),
            rows: pick_rows::<FoldingRows<M>>(t),
            finish: pick_finish::<Finishing<M>>(t),
        }
    }
    macro_rules! lanes {
        ($M:ident float) => {
            match Lane::of(d) { Lane::F32 => of::<$M<f32>>(t), Lane::F64 => of::<$M<f64>>(t), _ => lanes!($M int) }
        };
        ($M:ident int) => {
            match Lane::of(d) {
                Lane::Bool => of::<$M<u8>>(t), Lane::I32 => of::<$M<i32>>(t), Lane::U32 => of::<$M<u32>>(t),
                Lane::I64 => of::<$M<i64>>(t), Lane::U64 => of::<$M<u64>>(t), _ => return None,
            }
        };
    }
    Some(match kind {
        ReduceKind::Sum => lanes!(Sum float),
        ReduceKind::Prod => lanes!(Prod float),
        ReduceKind::Max => lanes!(Max float),
        ReduceKind::Min => lanes!(Min float),
        ReduceKind::And => lanes!(And int),
        ReduceKind::Or => lanes!(Or int),
        ReduceKind::Xor => lanes!(Xor int),
        ReduceKind::ArgMax | ReduceKind::ArgMin => return None,
    })
}

/// Positions of extremes: folds rows `r0..` of a block into (value, r) accumulators laid out as
/// above; `u32::MAX` means none yet.
pub type ArgFoldFn = unsafe fn(best: *mut u8, at: *mut u32, src: *const u8, width: usize, r0: usize, rows: usize);
/// Folds the lanes of a block, then takes each column's winner into the running best (value, position), which earlier blocks filled.
pub type ArgFinishFn =
    unsafe fn(best: *mut u8, at: *mut u32, width: usize, run_best: *mut u8, run_at: *mut i64, base: i64);
pub trait ArgFold {
    /// # Safety
    /// `best` and `at` hold LANES * width, `src` rows * width.
    unsafe fn run(best: *mut u8, at: *mut u32, src: *const u8, width: usize, r0: usize, rows: usize);
}
tiers!(pick_arg_fold, ArgFold, fn(best: *mut u8, at: *mut u32, src: *const u8, width: usize, r0: usize, rows: usize));
/// Positions of the extremes of `rows` rows of `n` elements each, as integers of `bytes` bytes.
pub type ArgRowsFn = unsafe fn(d: *mut u8, bytes: usize, src: *const u8, rows: usize, n: usize);
pub trait ArgRows {
    /// # Safety
    /// `src` holds rows * n elements, `d` an integer for each row; n is 1 at least.
    unsafe fn run(d: *mut u8, bytes: usize, src: *const u8, rows: usize, n: usize);
}
tiers!(pick_arg_rows, ArgRows, fn(d: *mut u8, bytes: usize, src: *const u8, rows: usize, n: usize));
pub trait ArgFinish {
    /// # Safety
    /// `best` and `at` hold LANES * width, `run_best` and `run_at` width.
    unsafe fn run(best: *mut u8, at: *mut u32, width: usize, run_best: *mut u8, run_at: *mut i64, base: i64);
}
tiers!(
    pick_arg_finish,
    ArgFinish,
    fn(best: *mut u8, at: *mut u32, width: usize, run_best: *mut u8, run_at: *mut i64, base: i64)
);

/// A strict order.
trait Beats {
    type A: Copy;
    /// Of numbers.
    fn is_beyond(x: Self::A, y: Self::A) -> bool;
    fn is_nan(x: Self::A) -> bool;
    /// Whether `x` beats `y`: a nan beats every number.
    #[inline(always)]
    fn beats(x: Self::A, y: Self::A) -> bool {
        Self::is_beyond(x, y) | (Self::is_nan(x) & !Self::is_nan(y))
    }
}
struct Greater<T>(PhantomData<T>);
struct Less<T>(PhantomData<T>);
macro_rules! beats {
    ($($T:ty)*) => {$(
        impl Beats for Greater<$T> {
            type A = $T;
            #[inline(always)]
            fn is_beyond(x: $T, y: $T) -> bool { x > y }
            #[inline(always)]
            #[allow(clippy::eq_op)]
            fn is_nan(x: $T) -> bool { x != x }
        }
        impl Beats for Less<$T> {
            type A = $T;
            #[inline(always)]
            fn is_beyond(x: $T, y: $T) -> bool { x < y }
            #[inline(always)]
            #[allow(clippy::eq_op)]
            fn is_nan(x: $T) -> bool { x != x }
        }
    )*};
}
beats!(u8 i32 u32 i64 u64 f32 f64);

/// The position of the first greatest of `n` elements, in the order of `B`: finds the greatest
/// value first, nans separately, then its position.
///
/// # Safety
/// `src` holds n elements, at least one.
#[inline(always)]
unsafe fn first_best<B: Beats>(src: *const B::A, n: usize) -> usize {
    // SAFETY: by the contract.
    unsafe {
        if n < LANES {
            let mut best = 0;
            for k in 1..n {
                best = if B::beats(*src.add(k), *src.add(best)) { k } else { best };
            }
            return best;
        }
        // the last chunk are the last elements, some of which were taken before
        let chunk = |k: usize| src.add(k.min(n - LANES)).cast::<[B::A; LANES]>().read();
        let mut a = chunk(0);
        let mut k = LANES;
        while k < n {
            let x = chunk(k);
            for j in 0..LANES {
                a[j] = if B::is_beyond(x[j], a[j]) { x[j] } else { a[j] };
            }
            k += LANES;
        }
        // PERF: hides the values from the compiler, which would otherwise lay out the lanes of the
        // loop above for the code below and shuffle them at each step.
        let mut a = std::hint::black_box(a);
        let (mut k, mut is_nan) = (0, [0u8; LANES]);
        while k < n {
            let x = chunk(k);
            for j in 0..LANES {
                is_nan[j] |= B::is_nan(x[j]) as u8;
            }
            k += LANES;
        }
        macro_rules! halve {
            ($($w:literal)*) => {$(
                for j in 0..$w {
                    a[j] = if B::is_beyond(a[j + $w], a[j]) { a[j + $w] } else { a[j] };
                }
            )*};
        }
        halve!(8 4 2 1);
        // The first element that the best is not beyond, or the first nan.
        macro_rules! first {
            ($is_it:expr) => {{
                let mut k = 0;
                loop {
                    let (x, mut found) = (chunk(k), [0u8; LANES]);
                    for j in 0..LANES {
                        found[j] = $is_it(x[j]) as u8;
                    }
                    let found = u128::from_le_bytes(found);
                    if found != 0 || k + LANES >= n {
                        return k.min(n - LANES) + found.trailing_zeros() as usize / 8 % LANES;
                    }
                    k += LANES;
                }
            }};
        }
        if u128::from_le_bytes(is_nan) != 0 {
            first!(|x| B::is_nan(x))
        } else {
            let best = a[0];
            first!(|x| !B::is_beyond(best, x))
        }
    }
}
struct ArgBest<B>(PhantomData<B>);
impl<B: Beats> ArgRows for ArgBest<B> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, bytes: usize, src: *const u8, rows: usize, n: usize) {
        for row in 0..rows {
            // SAFETY: by the contract.
            unsafe {
                let at = first_best::<B>(src.cast::<B::A>().add(row * n), n);
                match bytes {
                    4 => *d.cast::<u32>().add(row) = at as u32,
                    _ => *d.cast::<u64>().add(row) = at as u64,
                }
            }
        }
    }
}
impl<B: Beats> ArgFold for ArgBest<B> {
    #[inline(always)]
    unsafe fn run(best: *mut u8, at: *mut u32, src: *const u8, width: usize, r0: usize, rows: usize) {
        let (best, src) = (best.cast::<B::A>(), src.cast::<B::A>());
        let one = |k: usize, x: *const B::A, r: u32| {
            // SAFETY: k is below LANES * width and x one of the rows * width elements.
            unsafe {
                let x = *x;
                let wins = (*at.add(k) == u32::MAX) | B::beats(x, *best.add(k));
                *best.add(k) = if wins { x } else { *best.add(k) };
                *at.add(k) = if wins { r } else { *at.add(k) };
            }
        };
        if width == 1 && rows > 0 {
            // One lane is enough where the best of the rows is found at once.
            // SAFETY: as above.
            return unsafe {
                let at = first_best::<B>(src, rows);
                one(0, src.add(at), (r0 + at) as u32)
            };
        }
        for r in r0..r0 + rows {
            for i in 0..width {
                // SAFETY: as above.
                unsafe { one(r % LANES * width + i, src.add((r - r0) * width + i), r as u32) };
            }
        }
    }
}
impl<B: Beats> ArgFinish for ArgBest<B> {
    #[inline(always)]
    unsafe fn run(best: *mut u8, at: *mut u32, width: usize, run_best: *mut u8, run_at: *mut i64, base: i64) {
        let (best, run_best) = (best.cast::<B::A>(), run_best.cast::<B::A>());
        // SAFETY: k below LANES * width, i below width.
        unsafe {
            for i in 0..width {
                let (mut v, mut p) = (*best.add(i), *at.add(i));
                for j in 1..LANES {
                    let (x, q) = (*best.add(j * width + i), *at.add(j * width + i));
                    if q != u32::MAX && (p == u32::MAX || B::beats(x, v) || (!B::beats(v, x) && q < p)) {
                        (v, p) = (x, q);
                    }
                }
                if p != u32::MAX && (*run_at.add(i) < 0 || B::beats(v, *run_best.add(i))) {
                    *run_best.add(i) = v;
                    *run_at.add(i) = base + p as i64;
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
pub struct ArgFolder {
    pub rows: ArgRowsFn,
    pub fold: ArgFoldFn,
    pub finish: ArgFinishFn,
}
/// `d` is the dtype of the compared elements.
pub fn arg_folder(greatest: bool, d: DType, t: Tier) -> ArgFolder {
    fn of<B: Beats>(t: Tier) -> ArgFolder {
        ArgFolder {
            rows: pick_arg_rows::<ArgBest<B>>(t),
            fold: pick_arg_fold::<ArgBest<B>>(t),
            finish: pick_arg_finish::<ArgBest<B>>(t),
        }
    }
    macro_rules! lanes {
        ($B:ident) => {
            match Lane::of(d) {
                Lane::Bool => of::<$B<u8>>(t),
                Lane::I32 => of::<$B<i32>>(t),
                Lane::U32 => of::<$B<u32>>(t),
                Lane::I64 => of::<$B<i64>>(t),
                Lane::U64 => of::<$B<u64>>(t),
                Lane::F32 => of::<$B<f32>>(t),
                Lane::F64 => of::<$B<f64>>(t),
            }
        };
    }
    if greatest { lanes!(Greater) } else { lanes!(Less) }
}
const _: () = assert!(BLOCK.is_multiple_of(LANES) && BLOCK < u32::MAX as usize);
