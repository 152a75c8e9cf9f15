//! A matrix by a vector, limited by reading the matrix: by rows or by columns, whichever are contiguous.
//!
//! ```text
//! y[i] = fold(s[0..16]),   s[l] = the sum of a[i, k] v[k] over k = l, l + 16, l + 32 ..;   fold: s[l] += s[l + 8], then 4, 2, 1
//! ```
//! INVARIANT: each element is that sum, with products and sums rounded separately, for every layout, thread count and tier.
#![allow(unsafe_code)]
use super::{CompiledRoutine, Run};
use crate::kernels::Bases;
use crate::kernels::block::tiers;
use crate::memory::Block;
use crate::threads::{self, Cost, SharedPtr};
use crate::tier::Tier;
use ferrax_kernel::Res;
use ferrax_kernel::routine::Dot;

/// Sums that an element has.
const SUMS: usize = 16;
/// Rows whose sums stay in registers.
const ROWS: usize = 4;
/// Elements whose sums stay in the nearer caches, where columns are read; and where there are few.
const COLUMNS: usize = 512;
const FEW_COLUMNS: usize = 32;
/// Nanoseconds of an element of four bytes.
const NANOS: f64 = 0.1;

/// Part of a product: `rows` elements of the result.
pub struct VectorPart {
    strategy: VectorStrategy,
    a: *const u8,
    /// From row to row, and along a row.
    strides: [isize; 2],
    rows: usize,
    v: *const u8,
    k: usize,
    out: *mut u8,
}
pub trait ByVector {
    /// # Safety
    /// The strides stay inside `a`, `v` holds k elements side by side, `out` as many as there are rows.
    unsafe fn run(x: &VectorPart);
}
tiers!(pick, ByVector, fn(x: &VectorPart));
/// The product function for elements of `size` bytes.
fn product(size: usize, tier: Tier) -> unsafe fn(&VectorPart) {
    match (tier, size) {
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        (Tier::Avx512, 4) => x86::wide_f32,
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        (Tier::Avx512, _) => x86::wide_f64,
        #[cfg(target_arch = "x86_64")]
        (Tier::Avx2, 4) => x86::narrow_f32,
        #[cfg(target_arch = "x86_64")]
        (Tier::Avx2, _) => x86::narrow_f64,
        (_, 4) => pick::<Products<f32>>(tier),
        (_, _) => pick::<Products<f64>>(tier),
    }
}
struct Products<T>(std::marker::PhantomData<T>);
trait Summed: Copy + Default + std::ops::Mul<Output = Self> + std::ops::AddAssign {}
impl Summed for f32 {}
impl Summed for f64 {}
impl<T: Summed> ByVector for Products<T> {
    #[inline(always)]
    unsafe fn run(x: &VectorPart) {
        // SAFETY: by the contract.
        unsafe {
            match x.strides {
                [_, 1] => by_rows::<T>(x),
                [1, _] if x.rows <= FEW_COLUMNS => by_columns::<T, FEW_COLUMNS>(x),
                [1, _] => by_columns::<T, COLUMNS>(x),
                _ => by_elements::<T>(x),
            }
        }
    }
}
/// The sums of an element, in their order.
#[inline(always)]
fn folded<T: Summed>(mut s: [T; SUMS]) -> T {
    let mut half = SUMS / 2;
    while half > 0 {
        for l in 0..half {
            s[l] += s[l + half];
        }
        half /= 2;
    }
    s[0]
}
/// # Safety
/// As [`ByVector::run`].
#[inline(always)]
unsafe fn by_rows<T: Summed>(x: &VectorPart) {
    let (a, v, out) = (x.a.cast::<T>(), x.v.cast::<T>(), x.out.cast::<T>());
    for i in (0..x.rows).step_by(ROWS) {
        let count = ROWS.min(x.rows - i);
        // SAFETY: by the contract; rows that are not there are the last one again.
        unsafe {
            let mut rows = [a; ROWS];
            for (r, row) in rows.iter_mut().enumerate() {
                *row = a.offset((i + r.min(count - 1)) as isize * x.strides[0]);
            }
            let mut s = [[T::default(); SUMS]; ROWS];
            let mut p = 0;
            while p + SUMS <= x.k {
                let y = v.add(p).cast::<[T; SUMS]>().read();
                for r in 0..ROWS {
                    let z = rows[r].add(p).cast::<[T; SUMS]>().read();
                    for l in 0..SUMS {
                        s[r][l] += z[l] * y[l];
                    }
                }
                p += SUMS;
            }
            for l in 0..x.k - p {
                for r in 0..ROWS {
                    s[r][l] += *rows[r].add(p + l) * *v.add(p + l);
                }
            }
            for r in 0..count {
                *out.add(i + r) = folded(s[r]);
            }
        }
    }
}
/// # Safety
/// As [`ByVector::run`].
#[inline(always)]
unsafe fn by_columns<T: Summed, const N: usize>(x: &VectorPart) {
    let (a, v, out) = (x.a.cast::<T>(), x.v.cast::<T>(), x.out.cast::<T>());
    for from in (0..x.rows).step_by(N) {
        let count = N.min(x.rows - from);
        let mut s = [[T::default(); N]; SUMS];
        for p in 0..x.k {
            let s = &mut s[p % SUMS];
            // SAFETY: by the contract.
            unsafe {
                let (y, column) = (*v.add(p), a.offset(from as isize + p as isize * x.strides[1]));
                if count == N {
                    for j in 0..N {
                        s[j] += *column.add(j) * y;
                    }
                } else {
                    for j in 0..count {
                        s[j] += *column.add(j) * y;
                    }
                }
            }
        }
        let mut half = SUMS / 2;
        while half > 0 {
            let (low, high) = s.split_at_mut(half);
            for l in 0..half {
                for j in 0..N {
                    low[l][j] += high[l][j];
                }
            }
            half /= 2;
        }
        for j in 0..count {
            // SAFETY: by the contract.
            unsafe { *out.add(from + j) = s[0][j] };
        }
    }
}
/// # Safety
/// As [`ByVector::run`].
#[inline(always)]
unsafe fn by_elements<T: Summed>(x: &VectorPart) {
    let (a, v, out) = (x.a.cast::<T>(), x.v.cast::<T>(), x.out.cast::<T>());
    for i in 0..x.rows {
        let mut s = [T::default(); SUMS];
        // SAFETY: by the contract.
        unsafe {
            for p in 0..x.k {
                s[p % SUMS] += *a.offset(i as isize * x.strides[0] + p as isize * x.strides[1]) * *v.add(p);
            }
            *out.add(i) = folded(s);
        }
    }
}

/// How a matrix is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VectorStrategy {
    /// Elements of a row lie together: rows at a time, their sums in vectors.
    Rows,
    /// Elements of a column do: some hundred columns at a time, their sums in memory, so that a matrix that no cache holds is read along its lines.
    Columns,
    Elements,
}
/// The strategy for a matrix of these strides, from row to row and along a row.
pub fn pick_strategy(strides: [isize; 2]) -> VectorStrategy {
    match strides {
        [_, 1] => VectorStrategy::Rows,
        [1, _] => VectorStrategy::Columns,
        _ => VectorStrategy::Elements,
    }
}

/// A batch of `rows` sums over k products each.
struct MatrixVector {
    product: unsafe fn(&VectorPart),
    strategy: VectorStrategy,
    /// Which operand is the matrix, its elements from one of the batch to the next, and its strides: from row to row, and along a row.
    matrix: u32,
    batch: i64,
    strides: [isize; 2],
    /// Elements from vector to vector, and along one.
    others: i64,
    step: i64,
    b: usize,
    rows: usize,
    k: usize,
    /// Bytes of an element.
    size: usize,
    cost: Cost,
}
impl MatrixVector {
    fn bytes(&self, i: usize, stride: i64) -> isize {
        i as isize * stride as isize * self.size as isize
    }
    /// Elements of the result that are made at a time, no more than [`COLUMNS`]: as many by each thread, and whole lines of columns.
    fn unit(&self, threads: usize) -> usize {
        const LINE: usize = 32;
        let fewest = self.rows.div_ceil(COLUMNS);
        let shared = if self.b < threads { fewest.next_multiple_of(threads) } else { fewest };
        self.rows.div_ceil(shared.min(self.rows.div_ceil(LINE))).next_multiple_of(LINE)
    }
    /// Whether elements of a vector are strided, so that they are copied first.
    fn copies_vector(&self) -> bool {
        self.step != 1 && self.k != 1
    }
    fn dense(&self, v: SharedPtr) -> Res<Block> {
        let (b, k, size) = (self.b, self.k, self.size);
        let dense = Block::new(b * k * size)?;
        for (i, p) in (0..b).flat_map(|i| (0..k).map(move |p| (i, p))) {
            let from = v.get().wrapping_offset(self.bytes(i, self.others) + self.bytes(p, self.step));
            // SAFETY: `Routine::verify` found the greatest of these positions inside the operand; the block holds b * k elements.
            unsafe { dense.ptr().add((i * k + p) * size).copy_from_nonoverlapping(from, size) };
        }
        Ok(dense)
    }
}
impl CompiledRoutine for MatrixVector {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        if self.b * self.rows == 0 {
            return Ok(());
        }
        let (a, v) = (SharedPtr(bases.input(self.matrix)), SharedPtr(bases.input(1 - self.matrix)));
        let out = SharedPtr(bases.output(0));
        let dense = if self.copies_vector() { Some(self.dense(v)?) } else { None };
        let vector = match &dense {
            Some(dense) => (SharedPtr(dense.ptr()), self.k as i64),
            None => (v, self.others),
        };
        let unit = self.unit(if parallel { threads::num_threads() } else { 1 });
        let units = self.rows.div_ceil(unit);
        threads::try_ranges(self.b * units, parallel.then_some(&self.cost), bases.cancel, &|r| {
            for i in r {
                let (i, from) = (i / units, i % units * unit);
                let start = self.bytes(i, self.batch) + self.bytes(from, self.strides[0] as i64);
                let part = VectorPart {
                    strategy: self.strategy,
                    a: a.get().wrapping_offset(start),
                    strides: self.strides,
                    rows: unit.min(self.rows - from),
                    v: vector.0.get().wrapping_offset(self.bytes(i, vector.1)),
                    k: self.k,
                    out: out.get().wrapping_add((i * self.rows + from) * self.size),
                };
                // SAFETY: `Routine::verify`: the greatest positions of both operands lie inside them; the result is dense, and these elements are this
                // unit's alone.
                unsafe { (self.product)(&part) };
            }
            Ok(())
        })
    }
    fn text(&self) -> String {
        let strategy = match self.strategy {
            VectorStrategy::Rows => "rows",
            VectorStrategy::Columns => "columns",
            VectorStrategy::Elements => "elements",
        };
        let copied = if self.copies_vector() { " vector=copied" } else { "" };
        format!("dot strategy=matrix_vector by={strategy}{copied}")
    }
}

/// `d` has one row or one column, and floats of `size` bytes throughout.
pub fn compile(d: &Dot, size: usize, tier: Tier) -> Res<Run> {
    let (matrix, [batch, row, along], [others, step], rows) = match d.n {
        1 => (0, d.lhs, [d.rhs[0], d.rhs[1]], d.m),
        _ => (1, [d.rhs[0], d.rhs[2], d.rhs[1]], [d.lhs[0], d.lhs[2]], d.n),
    };
    let (b, k) = (d.b, d.k);
    // the stride of an axis of one element is irrelevant
    let strides = [if rows == 1 { k as i64 } else { row }, if k == 1 { 1 } else { along }].map(|s| s as isize);
    let cost = Cost::of((b * rows * k) as f64 * NANOS * (size / 4) as f64);
    let product = product(size, tier);
    let strategy = pick_strategy(strides);
    Ok(Box::new(MatrixVector { product, strategy, matrix, batch, strides, others, step, b, rows, k, size, cost }))
}

/// Rows whose sums are vectors: the same sums as in the loops above, which the compiler keeps in
/// memory.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{ByVector, COLUMNS, Products, SUMS, Summed, VectorPart, VectorStrategy, folded};
    use ferrax_host::panel::Vector;
    use std::arch::x86_64::*;
    use std::mem::MaybeUninit;

    trait Rounding: Vector<Element: Summed> {
        /// `self + a * b`, each rounded.
        ///
        /// # Safety
        /// The machine has these vectors.
        unsafe fn plus_product(self, a: Self, b: Self) -> Self;
        /// `self + o`.
        ///
        /// # Safety
        /// The machine has these vectors.
        unsafe fn plus(self, o: Self) -> Self;
        /// The first `n` elements at `p`, and zeros.
        ///
        /// # Safety
        /// The machine has these vectors; n elements, no more than a vector has.
        unsafe fn load_first(p: *const Self::Element, n: usize) -> Self;
    }
    /// By way of a copy.
    ///
    /// # Safety
    /// As `Rounding::load_first`.
    #[inline(always)]
    unsafe fn copied<V: Vector, const N: usize>(p: *const V::Element, n: usize) -> V {
        let mut all = [V::Element::default(); N];
        for (k, e) in all.iter_mut().enumerate().take(n) {
            // SAFETY: by the contract.
            *e = unsafe { *p.add(k) };
        }
        // SAFETY: a vector of elements.
        unsafe { V::load(all.as_ptr()) }
    }
    macro_rules! rounding {
        ($($V:ident: $add:ident $mul:ident, |$p:ident, $n:ident| $first:expr;)*) => {$(
            impl Rounding for $V {
                #[inline(always)]
                unsafe fn plus(self, o: Self) -> Self {
                    // SAFETY: by the contract of the trait.
                    unsafe { $add(self, o) }
                }
                #[inline(always)]
                unsafe fn load_first($p: *const Self::Element, $n: usize) -> Self {
                    // SAFETY: by the contract of the trait.
                    unsafe { $first }
                }
                #[inline(always)]
                unsafe fn plus_product(self, a: Self, b: Self) -> Self {
                    // SAFETY: by the contract of the trait.
                    unsafe { $add(self, $mul(a, b)) }
                }
            }
        )*};
    }
    rounding! {
        __m256: _mm256_add_ps _mm256_mul_ps, |p, n| copied::<__m256, 8>(p, n);
        __m256d: _mm256_add_pd _mm256_mul_pd, |p, n| copied::<__m256d, 4>(p, n);
    }
    #[cfg(feature = "avx512")]
    rounding! {
        __m512: _mm512_add_ps _mm512_mul_ps, |p, n| _mm512_maskz_loadu_ps(((1u32 << n) - 1) as u16, p);
        __m512d: _mm512_add_pd _mm512_mul_pd, |p, n| _mm512_maskz_loadu_pd(((1u32 << n) - 1) as u8, p);
    }
    /// `R` rows at a time, `W` vectors for the sums of each.
    ///
    /// # Safety
    /// As [`ByVector::run`]; the elements of a row lie side by side, and the machine has these vectors.
    #[inline(always)]
    unsafe fn by_rows<V: Rounding, const R: usize, const W: usize>(x: &VectorPart) {
        let lanes = SUMS / W;
        let (a, v, out) = (x.a.cast::<V::Element>(), x.v.cast::<V::Element>(), x.out.cast::<V::Element>());
        let (whole, rest) = (x.k / SUMS * SUMS, x.k % SUMS);
        // The rest of a row, or of the vector, padded with zeros: these leave a sum unchanged,
        // since none is -0.
        // SAFETY: the last `rest` elements.
        let left = |from: *const V::Element, w: usize| unsafe {
            V::load_first(from.wrapping_add(whole + w * lanes), rest.saturating_sub(w * lanes).min(lanes))
        };
        // SAFETY: by the contract; rows that are not there are the last one again.
        unsafe {
            for i in (0..x.rows).step_by(R) {
                let count = R.min(x.rows - i);
                let rows: [*const V::Element; R] =
                    std::array::from_fn(|r| a.offset((i + r.min(count - 1)) as isize * x.strides[0]));
                let mut s = [[V::zero(); W]; R];
                let mut p = 0;
                while p < whole {
                    for w in 0..W {
                        let y = V::load(v.add(p + w * lanes));
                        for r in 0..R {
                            s[r][w] = s[r][w].plus_product(V::load(rows[r].add(p + w * lanes)), y);
                        }
                    }
                    p += SUMS;
                }
                for w in 0..if rest > 0 { W } else { 0 } {
                    let y = left(v, w);
                    for r in 0..R {
                        s[r][w] = s[r][w].plus_product(left(rows[r], w), y);
                    }
                }
                let mut sums = [[V::Element::default(); SUMS]; R];
                for r in 0..R {
                    for w in 0..W {
                        s[r][w].store(sums[r].as_mut_ptr().add(w * lanes));
                    }
                }
                for r in 0..count {
                    *out.add(i + r) = folded(sums[r]);
                }
            }
        }
    }
    /// All columns of the part at a time, whose sums lie in memory: rows are read from end to end, `STREAMS` of them at once, those whose terms go to one
    /// sum, so that each sum is read and written once for so many terms.
    ///
    /// # Safety
    /// As [`ByVector::run`]; there are [`COLUMNS`] columns at most, whose elements lie side by side, and the machine has these vectors.
    #[inline(always)]
    unsafe fn by_columns<V: Rounding>(x: &VectorPart) {
        const STREAMS: usize = 4;
        let (a, v, out) = (x.a.cast::<V::Element>(), x.v.cast::<V::Element>(), x.out.cast::<V::Element>());
        let (whole, rest) = (x.rows / V::LANES * V::LANES, x.rows % V::LANES);
        let width = x.rows.next_multiple_of(V::LANES);
        let mut memory = MaybeUninit::<[[V::Element; COLUMNS]; SUMS]>::uninit();
        let sums = memory.as_mut_ptr().cast::<V::Element>();
        // SAFETY: by the contract; at most COLUMNS elements of each sum, a multiple of LANES; the
        // sums are written before they are read.
        unsafe {
            for l in 0..SUMS {
                for j in (0..width).step_by(V::LANES) {
                    V::zero().store(sums.add(l * COLUMNS + j));
                }
            }
            // Adds `S` rows, at distance SUMS, from the `p`-th on, to the sums of the first.
            macro_rules! add {
                ($p:expr, $S:expr) => {{
                    let p = $p;
                    let to = sums.add(p % SUMS * COLUMNS);
                    let rows: [*const V::Element; $S] =
                        std::array::from_fn(|u| a.offset((p + u * SUMS) as isize * x.strides[1]));
                    let by: [V; $S] = std::array::from_fn(|u| V::splat(*v.add(p + u * SUMS)));
                    for j in (0..whole).step_by(V::LANES) {
                        let mut s = V::load(to.add(j));
                        for u in 0..$S {
                            s = s.plus_product(V::load(rows[u].add(j)), by[u]);
                        }
                        s.store(to.add(j));
                    }
                    if rest > 0 {
                        let mut s = V::load(to.add(whole));
                        for u in 0..$S {
                            s = s.plus_product(V::load_first(rows[u].add(whole), rest), by[u]);
                        }
                        s.store(to.add(whole));
                    }
                }};
            }
            let mut from = 0;
            while from + STREAMS * SUMS <= x.k {
                for p in from..from + SUMS {
                    add!(p, STREAMS);
                }
                from += STREAMS * SUMS;
            }
            for p in from..x.k {
                add!(p, 1);
            }
            for j in (0..width).step_by(V::LANES) {
                let mut s: [V; SUMS] = std::array::from_fn(|l| V::load(sums.add(l * COLUMNS + j)));
                let mut half = SUMS / 2;
                while half > 0 {
                    for l in 0..half {
                        s[l] = s[l].plus(s[l + half]);
                    }
                    half /= 2;
                }
                if j < whole {
                    s[0].store(out.add(j));
                } else {
                    s[0].store(sums.add(j));
                    out.add(j).copy_from_nonoverlapping(sums.add(j), rest);
                }
            }
        }
    }
    macro_rules! parts {
        ($features:literal $($name:ident $V:ident $R:literal $W:literal;)*) => {$(
            /// # Safety
            /// As [`ByVector::run`], and the machine has these features.
            #[target_feature(enable = $features)]
            pub unsafe fn $name(x: &VectorPart) {
                // SAFETY: the same contract, and these are the features.
                unsafe {
                    match x.strategy {
                        VectorStrategy::Rows => by_rows::<$V, $R, $W>(x),
                        VectorStrategy::Columns => by_columns::<$V>(x),
                        VectorStrategy::Elements => Products::<<$V as Vector>::Element>::run(x),
                    }
                }
            }
        )*};
    }
    #[cfg(feature = "avx512")]
    parts! { "avx512f,avx512bw,avx512dq,avx512vl" wide_f32 __m512 4 1; wide_f64 __m512d 4 2; }
    parts! { "avx2,fma" narrow_f32 __m256 4 2; narrow_f64 __m256d 2 4; }
}
