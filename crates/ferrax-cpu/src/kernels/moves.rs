//! Moving elements between buffers and lanes: loads with any stride, stores, constants, index values.
//!
//! INVARIANT: loads read exactly the elements that their arguments name; the callers' verified kernels say that these lie in the buffer.
use super::block::{BlockFn, BlockLoop, F1, map1, pick, tiers};
use super::lane::*;
use crate::tier::Tier;
use ferrax_kernel::{DType, Scalar};
use once_cell::race::OnceBox;
use std::marker::PhantomData;

/// `rows` rows of `n` elements each, one after the other into `d`; strides are in elements of the buffer.
pub type LoadFn = unsafe fn(d: *mut u8, src: *const u8, rows: usize, row_stride: isize, n: usize, stride: isize);

pub trait Load {
    /// # Safety
    /// `src + r row_stride + j stride` is an element to read for all r < rows, j < n; `d` holds rows * n lanes.
    unsafe fn run(d: *mut u8, src: *const u8, rows: usize, row_stride: isize, n: usize, stride: isize);
}
tiers!(pick_load, Load, fn(d: *mut u8, src: *const u8, rows: usize, row_stride: isize, n: usize, stride: isize));

/// Beyond this distance two elements share no cache line that a row would read again.
const FAR: isize = 4;

/// How an element in memory becomes a lane and back.
pub trait Element {
    type S: Copy;
    type L: Copy;
    fn load(x: Self::S) -> Self::L;
    fn store(x: Self::L) -> Self::S;
}
macro_rules! element {
    ($($Name:ident $S:ty, $L:ty: $load:expr, $store:expr;)*) => {$(
        pub struct $Name;
        impl Element for $Name {
            type S = $S;
            type L = $L;
            #[inline(always)]
            fn load(x: $S) -> $L { ($load)(x) }
            #[inline(always)]
            fn store(x: $L) -> $S { ($store)(x) }
        }
    )*};
}
element! {
    E8 u8, u8: |x| x, |x| x;
    E16 u16, u16: |x| x, |x| x;
    E32 u32, u32: |x| x, |x| x;
    E64 u64, u64: |x| x, |x| x;
    EI8 i8, i32: |x| x as i32, |x| x as i8;
    EI16 i16, i32: |x| x as i32, |x| x as i16;
    EU8 u8, u32: |x| x as u32, |x| x as u8;
    EU16 u16, u32: |x| x as u32, |x| x as u16;
    EF16 u16, f32: f16_value, f16_bits;
    EBF16 u16, f32: bf16_value, bf16_bits;
}
/// Sides of the squares that are transposed in registers.
const TRANSPOSED_SIDE: usize = 8;
/// Rows whose elements lie together across them: `d[r n + j] = src[r + j stride]`.
///
/// # Safety
/// As `Load`.
#[inline(always)]
unsafe fn transposed<E: Element>(d: *mut E::L, src: *const E::S, rows: usize, n: usize, stride: isize) {
    let (whole_rows, whole) = (rows / TRANSPOSED_SIDE * TRANSPOSED_SIDE, n / TRANSPOSED_SIDE * TRANSPOSED_SIDE);
    let one = |r: usize, j: usize| {
        // SAFETY: an element of the rows.
        unsafe { *d.add(r * n + j) = E::load(*src.offset(j as isize * stride + r as isize)) }
    };
    for j in (0..whole).step_by(TRANSPOSED_SIDE) {
        for r in (0..whole_rows).step_by(TRANSPOSED_SIDE) {
            // SAFETY: TRANSPOSED_SIDE elements along each side, from a column and a row that have as many left.
            unsafe {
                let mut square = [[E::load(*src); TRANSPOSED_SIDE]; TRANSPOSED_SIDE];
                for k in 0..TRANSPOSED_SIDE {
                    let column =
                        src.offset((j + k) as isize * stride + r as isize).cast::<[E::S; TRANSPOSED_SIDE]>().read();
                    for i in 0..TRANSPOSED_SIDE {
                        square[i][k] = E::load(column[i]);
                    }
                }
                for k in 0..TRANSPOSED_SIDE {
                    d.add((r + k) * n + j).cast::<[E::L; TRANSPOSED_SIDE]>().write(square[k]);
                }
            }
        }
        for r in whole_rows..rows {
            for j in j..j + TRANSPOSED_SIDE {
                one(r, j);
            }
        }
    }
    for r in 0..rows {
        for j in whole..n {
            one(r, j);
        }
    }
}
/// Squares of 32-bit elements, transposed by shuffles that no compiler finds.
#[cfg(target_arch = "x86_64")]
mod transposed {
    use super::{E32, FAR, Load, Loading, TRANSPOSED_SIDE};
    use std::arch::x86_64::*;

    /// Only for tiers that have AVX2.
    pub struct LoadingWords;
    impl Load for LoadingWords {
        #[inline(always)]
        unsafe fn run(d: *mut u8, src: *const u8, rows: usize, row_stride: isize, n: usize, stride: isize) {
            // SAFETY: by the contract, and of the tier.
            unsafe {
                if row_stride == 1 && stride.abs() > FAR && rows >= TRANSPOSED_SIDE && n >= TRANSPOSED_SIDE {
                    transposed(d.cast(), src.cast(), rows, n, stride)
                } else {
                    Loading::<E32>::run(d, src, rows, row_stride, n, stride)
                }
            }
        }
    }
    /// As [`super::transposed()`].
    ///
    /// # Safety
    /// As `Load`, and the machine has AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn transposed(d: *mut f32, src: *const f32, rows: usize, n: usize, stride: isize) {
        let (whole_rows, whole) = (rows / TRANSPOSED_SIDE * TRANSPOSED_SIDE, n / TRANSPOSED_SIDE * TRANSPOSED_SIDE);
        // SAFETY: elements of the rows, and lanes of theirs: squares lie in the part that is whole both ways, the rest is taken one by one.
        unsafe {
            for j in (0..whole).step_by(TRANSPOSED_SIDE) {
                for r in (0..whole_rows).step_by(TRANSPOSED_SIDE) {
                    square(d.add(r * n + j), n, src.offset(j as isize * stride + r as isize), stride);
                }
            }
            for r in 0..rows {
                let first = if r < whole_rows { whole } else { 0 };
                for j in first..n {
                    *d.add(r * n + j) = *src.offset(j as isize * stride + r as isize);
                }
            }
        }
    }
    /// # Safety
    /// Eight elements from each of eight places on either side.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn square(d: *mut f32, d_stride: usize, src: *const f32, stride: isize) {
        // SAFETY: by the contract.
        unsafe {
            let row = |k: isize| _mm256_loadu_ps(src.offset(k * stride));
            let of_two = |a, b| (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            // pairs of rows, then fours, then halves: after each, twice as many neighbours are of one column
            let ((a0, a1), (a2, a3)) = (of_two(row(0), row(1)), of_two(row(2), row(3)));
            let ((a4, a5), (a6, a7)) = (of_two(row(4), row(5)), of_two(row(6), row(7)));
            let of_four = |a, b| (_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xee>(a, b));
            let ((b0, b1), (b2, b3)) = (of_four(a0, a2), of_four(a1, a3));
            let ((b4, b5), (b6, b7)) = (of_four(a4, a6), of_four(a5, a7));
            for (k, (low, high)) in [(b0, b4), (b1, b5), (b2, b6), (b3, b7)].into_iter().enumerate() {
                _mm256_storeu_ps(d.add(k * d_stride), _mm256_permute2f128_ps::<0x20>(low, high));
                _mm256_storeu_ps(d.add((k + 4) * d_stride), _mm256_permute2f128_ps::<0x31>(low, high));
            }
        }
    }
}
/// Repeats the `n` lanes at `d` in the rows that follow.
///
/// # Safety
/// `d` holds rows * n lanes.
#[inline(always)]
unsafe fn repeat<L: Copy>(d: *mut L, rows: usize, n: usize) {
    let (mut done, all) = (n, rows * n);
    while done < all {
        let count = done.min(all - done);
        // SAFETY: by the contract; the copied lanes end before the written ones begin.
        unsafe { d.add(done).copy_from_nonoverlapping(d, count) };
        done += count;
    }
}
/// The longest rows that [`short_rows`] takes.
const MAX_SHORT_ROW: usize = 32;
/// Rows of a few elements: two runs of K lanes each, the second of which ends with the row, so that no loop goes over its elements.
///
/// ```text
///     n = 6, K = 4:   0 1 2 3        then        2 3 4 5
/// ```
///
/// # Safety
/// As `Load`, for one row; K <= n <= 2 K.
#[inline(always)]
unsafe fn short_row<E: Element, const K: usize>(d: *mut E::L, row: *const E::S, n: usize, stride: isize) {
    // SAFETY: K elements from the first one, and K up to the last one, of n.
    unsafe {
        let run = |from: usize| -> [E::L; K] {
            let first = row.offset(from as isize * stride);
            match stride {
                1 => first.cast::<[E::S; K]>().read_unaligned().map(E::load),
                0 => [E::load(*first); K],
                s => std::array::from_fn(|i| E::load(*first.offset(i as isize * s))),
            }
        };
        let (begin, end) = (run(0), run(n - K));
        d.cast::<[E::L; K]>().write_unaligned(begin);
        d.add(n - K).cast::<[E::L; K]>().write_unaligned(end);
    }
}
/// `rows` rows of 2 to `MAX_SHORT_ROW` elements.
///
/// # Safety
/// As `Load`.
#[inline(always)]
unsafe fn short_rows<E: Element>(
    d: *mut E::L,
    src: *const E::S,
    rows: usize,
    row_stride: isize,
    n: usize,
    stride: isize,
) {
    #[inline(always)]
    unsafe fn of<E: Element, const K: usize>(
        d: *mut E::L,
        src: *const E::S,
        rows: usize,
        row_stride: isize,
        n: usize,
        stride: isize,
    ) {
        for r in 0..rows {
            // SAFETY: by the contract: a row's elements and lanes.
            unsafe { short_row::<E, K>(d.add(r * n), src.offset(r as isize * row_stride), n, stride) }
        }
    }
    // SAFETY: by the contract; each K is at least half of n, and no more than it.
    unsafe {
        match (n, stride) {
            (2..4, 0) => of::<E, 2>(d, src, rows, row_stride, n, 0),
            (4..8, 0) => of::<E, 4>(d, src, rows, row_stride, n, 0),
            (8..16, 0) => of::<E, 8>(d, src, rows, row_stride, n, 0),
            (_, 0) => of::<E, 16>(d, src, rows, row_stride, n, 0),
            (2..4, 1) => of::<E, 2>(d, src, rows, row_stride, n, 1),
            (4..8, 1) => of::<E, 4>(d, src, rows, row_stride, n, 1),
            (8..16, 1) => of::<E, 8>(d, src, rows, row_stride, n, 1),
            (_, 1) => of::<E, 16>(d, src, rows, row_stride, n, 1),
            (2..4, s) => of::<E, 2>(d, src, rows, row_stride, n, s),
            (4..8, s) => of::<E, 4>(d, src, rows, row_stride, n, s),
            (_, s) => of::<E, 8>(d, src, rows, row_stride, n, s),
        }
    }
}
struct Loading<E>(PhantomData<E>);
impl<E: Element> Load for Loading<E> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, src: *const u8, mut rows: usize, row_stride: isize, mut n: usize, mut stride: isize) {
        let (mut d, src) = (d.cast::<E::L>(), src.cast::<E::S>());
        // PERF: rows of one element each are one row.
        if n == 1 {
            (rows, n, stride) = (1, rows, row_stride);
        }
        // PERF: equal rows are read once.
        let (first, all) = (d, rows);
        let repeats = row_stride == 0 && rows > 1 && n > 0;
        if repeats {
            rows = 1;
        }
        if row_stride == 1 && stride.abs() > FAR && rows >= TRANSPOSED_SIDE && n >= TRANSPOSED_SIDE {
            // SAFETY: this contract is that one's.
            return unsafe { transposed::<E>(d, src, rows, n, stride) };
        }
        if rows > 1 && (2..=MAX_SHORT_ROW).contains(&n) && (matches!(stride, 0 | 1) || n <= 16) {
            // SAFETY: this contract is that one's.
            return unsafe { short_rows::<E>(d, src, rows, row_stride, n, stride) };
        }
        for r in 0..rows {
            // SAFETY: by the contract these are elements to read and lanes to write.
            unsafe {
                let row = src.offset(r as isize * row_stride);
                match stride {
                    1 => {
                        for j in 0..n {
                            *d.add(j) = E::load(*row.add(j));
                        }
                    }
                    // Constant distances become shuffles of whole vectors.
                    2 => {
                        for j in 0..n {
                            *d.add(j) = E::load(*row.add(2 * j));
                        }
                    }
                    3 => {
                        for j in 0..n {
                            *d.add(j) = E::load(*row.add(3 * j));
                        }
                    }
                    -1 => {
                        for j in 0..n {
                            *d.add(j) = E::load(*row.sub(j));
                        }
                    }
                    0 => {
                        if n > 0 {
                            let x = E::load(*row);
                            let whole = n / TRANSPOSED_SIDE * TRANSPOSED_SIDE;
                            for j in (0..whole).step_by(TRANSPOSED_SIDE) {
                                d.add(j).cast::<[E::L; TRANSPOSED_SIDE]>().write([x; TRANSPOSED_SIDE]);
                            }
                            for j in whole..n {
                                *d.add(j) = x;
                            }
                        }
                    }
                    s => {
                        for j in 0..n {
                            *d.add(j) = E::load(*row.offset(j as isize * s));
                        }
                    }
                }
                d = d.add(n);
            }
        }
        if repeats {
            // SAFETY: by the contract; the first row was written.
            unsafe { repeat(first, all, n) };
        }
    }
}

/// `rows` rows of `n` lanes each, one after the other in `src`, to elements; strides are in elements of the buffer.
pub type StoreFn = unsafe fn(d: *mut u8, src: *const u8, rows: usize, row_stride: isize, n: usize, stride: isize);
pub trait StoreRows {
    /// # Safety
    /// `d + r row_stride + j stride` is an element to write for all r < rows, j < n; `src` holds
    /// rows * n lanes and overlaps none of them.
    unsafe fn run(d: *mut u8, src: *const u8, rows: usize, row_stride: isize, n: usize, stride: isize);
}
tiers!(pick_store, StoreRows, fn(d: *mut u8, src: *const u8, rows: usize, row_stride: isize, n: usize, stride: isize));
struct Spreading<E>(PhantomData<E>);
impl<E: Element> StoreRows for Spreading<E> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, src: *const u8, rows: usize, row_stride: isize, n: usize, stride: isize) {
        let (d, mut src) = (d.cast::<E::S>(), src.cast::<E::L>());
        for r in 0..rows {
            // SAFETY: by the contract these are elements to write and lanes to read.
            unsafe {
                let row = d.offset(r as isize * row_stride);
                match stride {
                    1 => {
                        for j in 0..n {
                            *row.add(j) = E::store(*src.add(j));
                        }
                    }
                    s => {
                        for j in 0..n {
                            *row.offset(j as isize * s) = E::store(*src.add(j));
                        }
                    }
                }
                src = src.add(n);
            }
        }
    }
}
/// Lanes of two or three operands in turn: `d[2 i] = a[i]`, `d[2 i + 1] = b[i]`.
struct Weaving<E, const N: usize>(PhantomData<E>);
impl<E: Element, const N: usize> BlockLoop for Weaving<E, N> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
        let (d, a, b, c) = (d.cast::<E::S>(), a.cast::<E::L>(), b.cast::<E::L>(), c.cast::<E::L>());
        for i in 0..n {
            // SAFETY: `d` holds N n elements, which overlap no operand; the N operands hold n lanes
            // each.
            unsafe {
                let of = [*a.add(i), *b.add(i)].map(E::store);
                *d.add(N * i) = of[0];
                *d.add(N * i + 1) = of[1];
                if N == 3 {
                    *d.add(N * i + 2) = E::store(*c.add(i));
                }
            }
        }
    }
}
struct Widening<E>(PhantomData<E>);
impl<E: Element> F1 for Widening<E> {
    type A = E::S;
    type R = E::L;
    #[inline(always)]
    fn f(x: E::S) -> E::L {
        E::load(x)
    }
}
struct First<T>(PhantomData<T>);
impl<T: Copy> F1 for First<T> {
    type A = [T; 2];
    type R = T;
    #[inline(always)]
    fn f([x, _]: [T; 2]) -> T {
        x
    }
}
struct Second<T>(PhantomData<T>);
impl<T: Copy> F1 for Second<T> {
    type A = [T; 2];
    type R = T;
    #[inline(always)]
    fn f([_, x]: [T; 2]) -> T {
        x
    }
}
struct Storing<E>(PhantomData<E>);
impl<E: Element> F1 for Storing<E> {
    type A = E::L;
    type R = E::S;
    #[inline(always)]
    fn f(x: E::L) -> E::S {
        E::store(x)
    }
}

pub fn load(d: DType, t: Tier) -> LoadFn {
    match d {
        DType::Bool => pick_load::<Loading<E8>>(t),
        DType::I8 => pick_load::<Loading<EI8>>(t),
        DType::I16 => pick_load::<Loading<EI16>>(t),
        DType::U8 => pick_load::<Loading<EU8>>(t),
        DType::U16 => pick_load::<Loading<EU16>>(t),
        DType::F16 => pick_load::<Loading<EF16>>(t),
        DType::BF16 => pick_load::<Loading<EBF16>>(t),
        DType::I32 | DType::U32 | DType::F32 => load_words(t),
        DType::I64 | DType::U64 | DType::F64 => pick_load::<Loading<E64>>(t),
        small => load(small.storage(), t),
    }
}
/// Elements moved as they are, without becoming lanes.
pub fn load_raw(bytes: usize, t: Tier) -> LoadFn {
    match bytes {
        1 => pick_load::<Loading<E8>>(t),
        2 => pick_load::<Loading<E16>>(t),
        4 => load_words(t),
        _ => pick_load::<Loading<E64>>(t),
    }
}
/// For elements of 32 bits.
fn load_words(t: Tier) -> LoadFn {
    match t {
        #[cfg(target_arch = "x86_64")]
        Tier::Avx2 | Tier::Avx512 => pick_load::<transposed::LoadingWords>(t),
        _ => pick_load::<Loading<E32>>(t),
    }
}
/// From elements to lanes, contiguous.
pub fn widen(d: DType, t: Tier) -> BlockFn {
    match d {
        DType::I8 => map1::<Widening<EI8>>(t),
        DType::I16 => map1::<Widening<EI16>>(t),
        DType::U8 => map1::<Widening<EU8>>(t),
        DType::U16 => map1::<Widening<EU16>>(t),
        DType::F16 => map1::<Widening<EF16>>(t),
        DType::BF16 => map1::<Widening<EBF16>>(t),
        d if d.storage() != d => widen(d.storage(), t),
        d => unreachable!("elements of {d} are lanes"),
    }
}
/// The first, or the second, elements of pairs.
pub fn plane(bytes: usize, second: bool, t: Tier) -> BlockFn {
    match (bytes, second) {
        (4, false) => map1::<First<u32>>(t),
        (4, true) => map1::<Second<u32>>(t),
        (_, false) => map1::<First<u64>>(t),
        (_, true) => map1::<Second<u64>>(t),
    }
}
/// From lanes to elements, contiguous.
pub fn store(d: DType, t: Tier) -> BlockFn {
    match d {
        DType::Bool => map1::<Storing<E8>>(t),
        DType::I8 => map1::<Storing<EI8>>(t),
        DType::I16 => map1::<Storing<EI16>>(t),
        DType::U8 => map1::<Storing<EU8>>(t),
        DType::U16 => map1::<Storing<EU16>>(t),
        DType::F16 => map1::<Storing<EF16>>(t),
        DType::BF16 => map1::<Storing<EBF16>>(t),
        DType::I32 | DType::U32 | DType::F32 => map1::<Storing<E32>>(t),
        DType::I64 | DType::U64 | DType::F64 => map1::<Storing<E64>>(t),
        small => store(small.storage(), t),
    }
}

/// From lanes to elements anywhere.
pub fn spread(d: DType, t: Tier) -> StoreFn {
    match d {
        DType::Bool => pick_store::<Spreading<E8>>(t),
        DType::I8 => pick_store::<Spreading<EI8>>(t),
        DType::I16 => pick_store::<Spreading<EI16>>(t),
        DType::U8 => pick_store::<Spreading<EU8>>(t),
        DType::U16 => pick_store::<Spreading<EU16>>(t),
        DType::F16 => pick_store::<Spreading<EF16>>(t),
        DType::BF16 => pick_store::<Spreading<EBF16>>(t),
        DType::I32 | DType::U32 | DType::F32 => pick_store::<Spreading<E32>>(t),
        DType::I64 | DType::U64 | DType::F64 => pick_store::<Spreading<E64>>(t),
        small => spread(small.storage(), t),
    }
}
/// The operands' lanes as elements in turn, for two or three operands.
pub fn interleave(d: DType, operands: usize, t: Tier) -> BlockFn {
    macro_rules! of {
        ($E:ty) => {
            if operands == 2 { pick::<Weaving<$E, 2>>(t) } else { pick::<Weaving<$E, 3>>(t) }
        };
    }
    match d {
        DType::Bool => of!(E8),
        DType::I8 => of!(EI8),
        DType::I16 => of!(EI16),
        DType::U8 => of!(EU8),
        DType::U16 => of!(EU16),
        DType::F16 => of!(EF16),
        DType::BF16 => of!(EBF16),
        DType::I32 | DType::U32 | DType::F32 => of!(E32),
        DType::I64 | DType::U64 | DType::F64 => of!(E64),
        small => interleave(small.storage(), operands, t),
    }
}

/// The canonical lane of a constant, as bits.
pub fn lane_bits(s: Scalar) -> u64 {
    match s.dtype {
        DType::F16 => f16_value(s.bits as u16).to_bits() as u64,
        DType::BF16 => bf16_value(s.bits as u16).to_bits() as u64,
        DType::I8 | DType::I16 => s.to_i64() as i32 as u32 as u64,
        _ => s.bits,
    }
}

/// The lane of an element in memory.
///
/// # Safety
/// `p` points at an element of this dtype.
#[inline]
pub unsafe fn read_lane(p: *const u8, dtype: DType) -> u64 {
    // SAFETY: by the contract.
    let bits = unsafe {
        match dtype.size() {
            4 => return p.cast::<u32>().read() as u64,
            8 => return p.cast::<u64>().read(),
            1 => p.read() as u64,
            _ => p.cast::<u16>().read() as u64,
        }
    };
    lane_bits(Scalar { dtype, bits })
}
/// Writes a lane to an element in memory.
///
/// # Safety
/// As `read_lane`.
#[inline]
pub unsafe fn write_lane(p: *mut u8, dtype: DType, x: u64) {
    // SAFETY: by the contract.
    unsafe {
        match dtype.size() {
            4 => p.cast::<u32>().write(x as u32),
            8 => p.cast::<u64>().write(x),
            1 => p.write(x as u8),
            _ => p.cast::<u16>().write(match dtype {
                DType::F16 => f16_bits(f32::from_bits(x as u32)),
                DType::BF16 => bf16_bits(f32::from_bits(x as u32)),
                _ => x as u16,
            }),
        }
    }
}

/// `n` lanes of `bytes` each with these bits.
///
/// # Safety
/// `d` holds n lanes, aligned.
pub unsafe fn fill(d: *mut u8, bytes: usize, bits: u64, n: usize) {
    // SAFETY: by the contract.
    unsafe {
        match bytes {
            1 => d.write_bytes(bits as u8, n),
            2 => std::slice::from_raw_parts_mut(d.cast::<u16>(), n).fill(bits as u16),
            4 => std::slice::from_raw_parts_mut(d.cast::<u32>(), n).fill(bits as u32),
            _ => std::slice::from_raw_parts_mut(d.cast::<u64>(), n).fill(bits),
        }
    }
}

/// Lanes `start + j step` for j < n, as values of a dtype.
pub type IndexFn = unsafe fn(d: *mut u8, start: i64, step: i64, n: usize);
pub trait Index {
    /// # Safety
    /// `d` holds n lanes, aligned.
    unsafe fn run(d: *mut u8, start: i64, step: i64, n: usize);
}
tiers!(pick_index, Index, fn(d: *mut u8, start: i64, step: i64, n: usize));
trait OfIndex: Copy {
    fn of(x: i64) -> Self;
}
macro_rules! of_index {
    ($($T:ty)*) => {$(
        impl OfIndex for $T {
            #[inline(always)]
            fn of(x: i64) -> $T { x as $T }
        }
    )*};
}
of_index!(i32 u32 i64 u64 f32 f64);
struct IndicesOf<T>(PhantomData<T>);
impl<T: OfIndex> Index for IndicesOf<T> {
    #[inline(always)]
    unsafe fn run(d: *mut u8, start: i64, step: i64, n: usize) {
        let d = d.cast::<T>();
        for j in 0..n {
            // SAFETY: j < n.
            unsafe { *d.add(j) = T::of(start.wrapping_add((j as i64).wrapping_mul(step))) }
        }
    }
}
/// Not yet canonical for narrow dtypes.
pub fn index(lane: Lane, t: Tier) -> IndexFn {
    match lane {
        Lane::Bool | Lane::U32 => pick_index::<IndicesOf<u32>>(t),
        Lane::I32 => pick_index::<IndicesOf<i32>>(t),
        Lane::I64 => pick_index::<IndicesOf<i64>>(t),
        Lane::U64 => pick_index::<IndicesOf<u64>>(t),
        Lane::F32 => pick_index::<IndicesOf<f32>>(t),
        Lane::F64 => pick_index::<IndicesOf<f64>>(t),
    }
}

/// So many numbers lie in memory: an index that stays below is read like any other element.
pub const COUNTED: i64 = 1 << 15;
/// The numbers from 0 on, each a lane.
pub fn counted(lane: Lane) -> *const u8 {
    static TABLES: [OnceBox<Box<[u64]>>; 4] = [const { OnceBox::new() }; 4];
    let (k, of) = match lane {
        Lane::Bool | Lane::I32 | Lane::U32 => (0, Lane::I32),
        Lane::I64 | Lane::U64 => (1, Lane::I64),
        Lane::F32 => (2, lane),
        Lane::F64 => (3, lane),
    };
    let table = TABLES[k].get_or_init(|| {
        let mut numbers = vec![0u64; COUNTED as usize * of.size() / 8];
        // SAFETY: room for so many lanes.
        unsafe { index(of, Tier::Portable)(numbers.as_mut_ptr().cast(), 0, 1, COUNTED as usize) };
        Box::new(numbers.into())
    });
    table.as_ptr().cast()
}
