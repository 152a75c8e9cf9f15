//! `Fft`: rows by plans of `rustfft`; other axes by blocks of columns that are copied to rows, transformed and copied back.
//!
//! INVARIANT: each transform is computed by one plan, independent of its neighbours: threads and batches change no bits. A plan uses AVX and fused
//! multiply-add where the machine has them, like matrix products, independent of the tier of the device: all tiers of a machine share it.
//!
//! ```text
//! fft of c64[64, 30, 20] along the last two: 1920 rows of 20; then for each of 64: 20 columns of 30, 16 at a time
//! rfft of f32[30, 20] along the first: 20 columns of 30, all at a time, written as columns of 16
//! fft of c64[2^20]: 1024 columns of 1024, multiplied by roots of unity, then the columns of their transpose
//! ```
//!
//! A long row of `p q` numbers is a matrix of `[p, q]` ("Bailey's four steps"): its columns are transformed, element k of column j is multiplied
//! by `exp(-2 pi i jk / pq)`, and the columns of the transpose of that give the result, in order. Threads share such a row, and two short
//! plans with one table of factors are made faster than a plan of the whole row.
mod halves;
mod pairs;
#[cfg(feature = "fft")]
mod library {
    pub use rustfft::num_complex::Complex;
    pub use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
}
#[cfg(not(feature = "fft"))]
#[path = "fft/without_library.rs"]
mod library;
#[cfg(all(test, feature = "fft"))]
#[allow(dead_code)] // the tests use only a part of it
mod without_library;

use self::halves::RealHalves;
use super::{CompiledRoutine, Run};
use crate::kernels::Bases;
use crate::memory::{Block, installed};
use crate::threads::{self, Cost, SharedPtr};
use crate::tier::Tier;
use crate::tuning::{FftTuning, Target};
use ferrax_kernel::routine::{Fft, FftKind};
use ferrax_kernel::{DType, Error, Res};
use library::{Complex, Fft as Plan, FftDirection, FftNum, FftPlanner};
use std::f64::consts::TAU;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Time of one element's part in one halving, estimated.
const NANOS: f64 = 0.15;

/// The factors `[p, q]` of a row's length n if the row is transformed as a matrix; none if one plan
/// transforms it. `dense`: its elements are contiguous.
fn pick(n: usize, dense: bool, t: &FftTuning) -> Option<[usize; 2]> {
    let q = (1..=n.isqrt()).rev().find(|q| n.is_multiple_of(*q)).unwrap_or(1);
    let p = n / q;
    (n >= t.min_matrix_length && p <= t.max_aspect * q && dense).then_some([p, q])
}

pub fn compile(f: &Fft, target: &Target) -> Res<Run> {
    match f.dtype {
        DType::F32 => compiled::<f32>(f, target),
        _ => compiled::<f64>(f, target),
    }
}

type Transform<T> = Arc<dyn Plan<T>>;
/// How a row of complex numbers is transformed.
enum FftRow<T: FftNum> {
    Whole(Transform<T>),
    /// As a matrix: its columns, then the columns of the transposed result.
    Matrix(Box<[FftColumns<T>; 2]>),
}
/// How the last of the axes is transformed.
enum FftRows<T: FftNum> {
    Complex(FftRow<T>),
    /// Real on one side: of an even length, by complex numbers of two real ones each; else by numbers whose other part is zero.
    Even(FftRow<T>, RealHalves<T>),
    Odd(Transform<T>),
}
/// Another axis: the middle one of `[outer, n, inner]`, all of them complex.
struct FftColumns<T: FftNum> {
    outer: usize,
    /// From one of the outer to the next, on either side.
    apart: [usize; 2],
    n: usize,
    inner: usize,
    plan: Transform<T>,
    /// The factors of the columns before they become rows.
    twiddles: Option<Vec<Complex<T>>>,
    tier: Tier,
    cost: Cost,
}
struct FftPlan<T: FftNum> {
    kind: FftKind,
    /// The number of rows, the elements of one in the operand and the result, and the distances
    /// between these.
    rows: usize,
    from: usize,
    to: usize,
    inner: usize,
    along: FftRows<T>,
    columns: Vec<FftColumns<T>>,
    /// Whether the last axis is one of columns, too.
    all: bool,
    /// Factor of the result; 1 forward.
    scale: T,
    cost: Cost,
}

/// Checks that a plan's tables fit into memory: the planner allocates them without a way to report
/// failure.
fn affordable<T>(n: usize) -> Res<()> {
    // Bluestein's algorithm: a chirp, its transform, and tables of a transform of up to 4 n
    let bytes = n.saturating_mul(16 * size_of::<Complex<T>>());
    let refused = || Error::OutOfMemory(format!("out of memory while planning a Fourier transform of length {n}"));
    if installed().is_some_and(|most| bytes > most) {
        return Err(refused());
    }
    ferrax_kernel::error::room::<u8>(bytes).map(drop).map_err(|_| refused())
}

/// Makes plans, each length's once.
struct Plans<T: FftNum> {
    planner: FftPlanner<T>,
    direction: FftDirection,
    tier: Tier,
    tuning: FftTuning,
}
impl<T: FftNum> Plans<T> {
    /// `exp(-2 pi i k / n)` forward, its conjugate backward.
    fn twiddle(&self, k: usize, n: usize) -> (f64, f64) {
        let (sin, cos) = (TAU * k as f64 / n as f64).sin_cos();
        (cos, if matches!(self.direction, FftDirection::Forward) { -sin } else { sin })
    }
    /// A transform of rows of `n` numbers, at the distances `apart` in the operand and the result.
    /// Threads share rows only if elements are contiguous.
    fn row(&mut self, rows: usize, n: usize, apart: [usize; 2], nanos: f64, dense: bool) -> Res<FftRow<T>> {
        let Some([p, q]) = pick(n, dense, &self.tuning) else {
            return Ok(FftRow::Whole(self.planner.plan_fft(n, self.direction)));
        };
        let (first, second) = (self.planner.plan_fft(p, self.direction), self.planner.plan_fft(q, self.direction));
        let twiddles = Some(self.twiddles(p, q)?);
        let columns = |n, inner, apart, plan, twiddles| FftColumns {
            outer: rows,
            apart,
            n,
            inner,
            plan,
            twiddles,
            tier: self.tier,
            cost: Cost::of(nanos / 2.0),
        };
        Ok(FftRow::Matrix(Box::new([
            columns(p, q, [apart[0], n], first, twiddles),
            columns(q, p, [n, apart[1]], second, None),
        ])))
    }
    /// The twiddle factors of element k of column j, column by column: each a product of two from
    /// small tables.
    fn twiddles(&self, p: usize, q: usize) -> Res<Vec<Complex<T>>> {
        let n = p * q;
        let step = n.isqrt().next_power_of_two();
        let near: Vec<(f64, f64)> = (0..step).map(|k| self.twiddle(k, n)).collect();
        let far: Vec<(f64, f64)> = (0..n.div_ceil(step)).map(|k| self.twiddle(k * step, n)).collect();
        let number = |x| T::from_f64(x).unwrap_or_else(T::zero);
        let mut twiddles = ferrax_kernel::error::room(n)?;
        for j in 0..q {
            twiddles.extend((0..p).map(|k| {
                let (a, b) = (near[j * k % step], far[j * k / step]);
                Complex { re: number(a.0 * b.0 - a.1 * b.1), im: number(a.0 * b.1 + a.1 * b.0) }
            }));
        }
        Ok(twiddles)
    }
}

fn compiled<T: FftNum>(f: &Fft, target: &Target) -> Res<Run> {
    let tier = target.tier;
    let (n, half) = (f.lengths[f.lengths.len() - 1], f.last());
    f.lengths.iter().try_for_each(|n| affordable::<T>(*n))?;
    let direction = if f.is_inverse() { FftDirection::Inverse } else { FftDirection::Forward };
    let mut plans = Plans::<T> { planner: FftPlanner::new(), direction, tier, tuning: target.tuning.fft };
    let (from, to) = match f.kind {
        FftKind::RealForward => (n, half),
        FftKind::RealInverse => (half, n),
        _ => (n, n),
    };
    let mut shape = f.lengths.insert(0, f.outer).concat(&[f.inner]);
    let rank = f.lengths.len();
    shape[rank] = half;
    let rows = shape[..rank].iter().product();
    let length = f.lengths.size() as f64;
    let nanos =
        (f.outer * f.inner * f.lengths.size()) as f64 * (length.log2() + 1.0) * NANOS * (size_of::<T>() / 4) as f64;
    let dense = f.inner == 1;
    let along = match f.kind {
        FftKind::Forward | FftKind::Inverse => FftRows::Complex(plans.row(rows, n, [n, n], nanos, dense)?),
        _ if n % 2 == 1 => FftRows::Odd(plans.planner.plan_fft(n, direction)),
        _ => {
            let apart = if f.is_inverse() { [half, n / 2] } else { [n / 2, half] };
            let row = plans.row(rows, n / 2, apart, nanos, dense)?;
            FftRows::Even(row, RealHalves::new(n, |k| plans.twiddle(k, n), tier, f.is_inverse()))
        }
    };
    let mut column = |k: usize| FftColumns {
        outer: shape[..k].iter().product(),
        apart: [shape[k..].iter().product(); 2],
        n: shape[k],
        inner: shape[k + 1..].iter().product(),
        plan: plans.planner.plan_fft(shape[k], direction),
        twiddles: None,
        tier,
        cost: Cost::of(nanos),
    };
    // If elements of the last axis are strided and complex on both sides, that axis is a transform
    // of columns, too.
    let all = f.inner > 1 && matches!(along, FftRows::Complex(_));
    let columns = (1..rank + all as usize).rev().map(&mut column).collect();
    let scale = if f.is_inverse() { T::from_f64(1.0 / length) } else { None }.unwrap_or_else(T::one);
    let cost = Cost::of(nanos);
    Ok(Box::new(FftPlan { kind: f.kind, rows, from, to, inner: f.inner, along, columns, all, scale, cost }))
}
impl<T: FftNum> CompiledRoutine for FftPlan<T> {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        let (x, y) = (SharedPtr(bases.input(0)), SharedPtr(bases.output(0)));
        let last = self.columns.len();
        if self.all {
            return self.run_columns(x, y, true, parallel, bases.cancel);
        }
        if self.kind != FftKind::RealInverse || last == 0 {
            self.run_rows(x, y, last == 0, parallel, bases.cancel)?;
            return self.run_columns(y, y, true, parallel, bases.cancel);
        }
        // the real axis comes last, and the operand stays as it is
        let bytes = self.rows * self.from * self.inner * size_of::<Complex<T>>();
        let between = Block::new(bytes)?;
        // SAFETY: as many bytes as the operand has, freshly allocated, so that they do not overlap.
        unsafe { between.ptr().copy_from_nonoverlapping(x.get(), bytes) };
        let own = SharedPtr(between.ptr());
        self.run_columns(own, own, false, parallel, bases.cancel)?;
        self.run_rows(SharedPtr(between.ptr()), y, true, parallel, bases.cancel)
    }
    fn text(&self) -> String {
        let row = |row: &FftRow<T>| match row {
            FftRow::Whole(_) => "plan".to_string(),
            FftRow::Matrix(m) => format!("matrix[{},{}]", m[0].n, m[1].n),
        };
        let rows = match &self.along {
            _ if self.all => "none".into(),
            FftRows::Complex(r) => row(r),
            FftRows::Even(r, _) => format!("real_halves {}", row(r)),
            FftRows::Odd(_) => "real_as_complex plan".into(),
        };
        let columns: Vec<usize> = self.columns.iter().map(|c| c.n).collect();
        format!("fft rows={rows} columns={columns:?}")
    }
}

/// `n` numbers from the `at`-th on.
///
/// # Safety
/// They exist, and nothing writes to them while the slice lives.
unsafe fn slice<'a, E>(p: SharedPtr, at: usize, n: usize) -> &'a [E] {
    // SAFETY: by the contract; numbers are aligned to their parts, and any bits are a number.
    unsafe { std::slice::from_raw_parts(p.get().cast::<E>().add(at), n) }
}
/// # Safety
/// They exist, and nothing else touches them while the slice lives.
unsafe fn slice_mut<'a, E>(p: SharedPtr, at: usize, n: usize) -> &'a mut [E] {
    // SAFETY: by the contract; as above.
    unsafe { std::slice::from_raw_parts_mut(p.get().cast::<E>().add(at), n) }
}
/// Working memory for `n` numbers.
fn working<T>(n: usize) -> Res<Block> {
    Block::zeroed(n.saturating_mul(size_of::<Complex<T>>()))
}

impl<T: FftNum> FftPlan<T> {
    fn run_rows(&self, x: SharedPtr, y: SharedPtr, scaled: bool, parallel: bool, cancel: &AtomicBool) -> Res<()> {
        let scale = if scaled { self.scale } else { T::one() };
        if self.inner > 1 {
            return self.run_apart(x, y, scale, parallel, cancel);
        }
        match &self.along {
            FftRows::Complex(FftRow::Matrix(m)) => run_matrix(m, x, y, scale, parallel, cancel),
            FftRows::Even(FftRow::Matrix(m), h) if self.kind == FftKind::RealForward => {
                run_matrix(m, x, y, T::one(), parallel, cancel)?;
                h.run_rows(y, self.rows, T::one(), parallel.then_some(&self.cost), cancel);
                Ok(())
            }
            FftRows::Even(FftRow::Matrix(m), h) => {
                let count = self.rows * self.from;
                let own = Block::new(count.saturating_mul(size_of::<Complex<T>>()))?;
                // SAFETY: as many numbers as the operand has, which do not overlap it.
                unsafe { own.ptr().cast::<Complex<T>>().copy_from_nonoverlapping(x.get().cast(), count) };
                let own = SharedPtr(own.ptr());
                h.run_rows(own, self.rows, scale, parallel.then_some(&self.cost), cancel);
                run_matrix(m, own, y, T::one(), parallel, cancel)
            }
            _ => threads::try_ranges(self.rows, parallel.then_some(&self.cost), cancel, &|r: Range<usize>| {
                let own = working::<T>(self.room())?;
                for row in r {
                    // SAFETY: row of operand and result, which nothing else touches; the block is this piece's own.
                    unsafe { self.run_row(x, row * self.from, y, row * self.to, scale, SharedPtr(own.ptr())) };
                }
                Ok(())
            }),
        }
    }
    /// Numbers that [`Self::run_row`] works in.
    fn room(&self) -> usize {
        match &self.along {
            FftRows::Complex(FftRow::Whole(p)) => p.get_immutable_scratch_len(),
            FftRows::Even(FftRow::Whole(p), _) => self.from.max(self.to) + p.get_immutable_scratch_len(),
            FftRows::Odd(p) => 2 * self.from.max(self.to) + p.get_immutable_scratch_len(),
            _ => 0,
        }
    }
    /// The row that begins with the elements `at` and `to` of operand and result.
    ///
    /// # Safety
    /// They exist; nothing else touches the result's, or writes to the others; `own` has [`Self::room`].
    unsafe fn run_row(&self, x: SharedPtr, at: usize, y: SharedPtr, to: usize, scale: T, own: SharedPtr) {
        let n = self.from.max(self.to);
        // SAFETY: by the contract; pairs of reals are complex numbers, of the required size and
        // alignment.
        unsafe {
            match &self.along {
                FftRows::Complex(FftRow::Whole(plan)) => {
                    let scratch = slice_mut(own, 0, plan.get_immutable_scratch_len());
                    let y: &mut [Complex<T>] = slice_mut(y, to, n);
                    plan.process_immutable_with_scratch(slice(x, at, n), y, scratch);
                    if scale != T::one() {
                        y.iter_mut().for_each(|z| *z = *z * scale);
                    }
                }
                FftRows::Even(FftRow::Whole(plan), h) if self.kind == FftKind::RealForward => {
                    let scratch = slice_mut(own, 0, plan.get_immutable_scratch_len());
                    let x = slice(SharedPtr(x.get().cast::<T>().add(at).cast()), 0, n / 2);
                    let y: &mut [Complex<T>] = slice_mut(y, to, n / 2 + 1);
                    plan.process_immutable_with_scratch(x, &mut y[..n / 2], scratch);
                    h.run(y, T::one());
                }
                FftRows::Even(FftRow::Whole(plan), h) => {
                    let (copy, scratch): (&mut [Complex<T>], _) =
                        (slice_mut(own, 0, n / 2 + 1), slice_mut(own, n / 2 + 1, plan.get_immutable_scratch_len()));
                    copy.copy_from_slice(slice(x, at, n / 2 + 1));
                    h.run(copy, scale);
                    let y = slice_mut(SharedPtr(y.get().cast::<T>().add(to).cast()), 0, n / 2);
                    plan.process_immutable_with_scratch(&copy[..n / 2], y, scratch);
                }
                FftRows::Odd(plan) => {
                    let (before, after): (&mut [Complex<T>], &mut [Complex<T>]) =
                        (slice_mut(own, 0, n), slice_mut(own, n, n));
                    let scratch = slice_mut(own, 2 * n, plan.get_immutable_scratch_len());
                    if self.kind == FftKind::RealForward {
                        let x: &[T] = slice(x, at, n);
                        for (z, x) in before.iter_mut().zip(x) {
                            *z = Complex { re: *x, im: T::zero() };
                        }
                        plan.process_immutable_with_scratch(before, after, scratch);
                        slice_mut(y, to, n / 2 + 1).copy_from_slice(&after[..n / 2 + 1]);
                    } else {
                        // the other half is the conjugate of this one
                        let x: &[Complex<T>] = slice(x, at, n / 2 + 1);
                        before[0] = Complex { re: x[0].re, im: T::zero() };
                        for (k, z) in x.iter().enumerate().skip(1) {
                            before[k] = *z;
                            before[n - k] = Complex { re: z.re, im: T::zero() - z.im };
                        }
                        plan.process_immutable_with_scratch(before, after, scratch);
                        let y: &mut [T] = slice_mut(y, to, n);
                        for (y, z) in y.iter_mut().zip(after) {
                            *y = z.re * scale;
                        }
                    }
                }
                _ => (),
            }
        }
    }
    /// Real on one side, with strided elements: some columns at a time.
    fn run_apart(&self, x: SharedPtr, y: SharedPtr, scale: T, parallel: bool, cancel: &AtomicBool) -> Res<()> {
        let wide = LINES / size_of::<T>();
        let (from, to, inner, blocks) = (self.from, self.to, self.inner, self.inner.div_ceil(wide));
        let forward = self.kind == FftKind::RealForward;
        // of complex numbers, in either of both halves
        let part = wide * apart(from.max(to));
        threads::try_ranges(self.rows * blocks, parallel.then_some(&self.cost), cancel, &|r: Range<usize>| {
            let own = working::<T>(2 * part + self.room())?;
            let (before, after) =
                (SharedPtr(own.ptr()), SharedPtr(own.ptr().wrapping_add(part * size_of::<Complex<T>>())));
            let scratch = SharedPtr(own.ptr().wrapping_add(2 * part * size_of::<Complex<T>>()));
            for unit in r {
                let (row, first) = (unit / blocks, unit % blocks * wide);
                let width = wide.min(inner - first);
                let taken = SomeColumns { row: row * from, n: from, inner, first, width };
                let put = SomeColumns { row: row * to, n: to, ..taken };
                // SAFETY: `width` columns of operand and result that belong to this unit; the block
                // belongs to this piece: two halves that hold the columns, an even number of
                // elements apart, and scratch memory for a row.
                unsafe {
                    if forward {
                        taken.gather::<T>(x, before, 2 * apart(from));
                    } else {
                        taken.gather::<Complex<T>>(x, before, apart(from));
                    }
                    for w in 0..width {
                        let at = if forward { 2 * w * apart(from) } else { w * apart(from) };
                        let to = if forward { w * apart(to) } else { 2 * w * apart(to) };
                        self.run_row(before, at, after, to, scale, scratch);
                    }
                    if forward {
                        put.scatter::<Complex<T>>(y, after, apart(to));
                    } else {
                        put.scatter::<T>(y, after, 2 * apart(to));
                    }
                }
            }
            Ok(())
        })
    }
    /// From x to y, which may be the same memory, then in place.
    fn run_columns(&self, x: SharedPtr, y: SharedPtr, scaled: bool, parallel: bool, cancel: &AtomicBool) -> Res<()> {
        for (k, c) in self.columns.iter().enumerate() {
            let last = scaled && k + 1 == self.columns.len();
            c.run(if k == 0 { x } else { y }, y, if last { self.scale } else { T::one() }, parallel, cancel)?;
        }
        Ok(())
    }
}
/// Bytes of each row that are taken together: two lines of the cache.
const LINES: usize = 128;
/// From column to column in working memory: no power of two, for such columns meet in the same lines of the cache.
fn apart(n: usize) -> usize {
    n + 8
}

/// Some columns of `n` rows of `inner` elements: `width` of them from the `first`-th on, the rows from the `row`-th on.
#[derive(Clone, Copy)]
struct SomeColumns {
    row: usize,
    n: usize,
    inner: usize,
    first: usize,
    width: usize,
}
impl SomeColumns {
    fn start<E>(&self, p: SharedPtr) -> *mut E {
        p.get().cast::<E>().wrapping_add(self.row * self.inner + self.first)
    }
    /// Copies them out as rows, at distance `apart`, one line after the other: squares transposed
    /// in registers would alternate between several distant rows, which takes five times as long.
    ///
    /// # Safety
    /// The columns exist, and nothing writes to them; `to` has room for the rows.
    unsafe fn gather<E: Copy>(self, x: SharedPtr, to: SharedPtr, apart: usize) {
        let (x, to) = (self.start::<E>(x), to.get().cast::<E>());
        for j in 0..self.n {
            for w in 0..self.width {
                // SAFETY: by the contract.
                unsafe { *to.add(w * apart + j) = *x.add(j * self.inner + w) };
            }
        }
    }
    /// Puts them back.
    ///
    /// # Safety
    /// They exist, and nothing else touches them; `from` holds the rows.
    unsafe fn scatter<E: Copy>(self, y: SharedPtr, from: SharedPtr, apart: usize) {
        let (y, from) = (self.start::<E>(y), from.get().cast::<E>());
        for j in 0..self.n {
            for w in 0..self.width {
                // SAFETY: by the contract.
                unsafe { *y.add(j * self.inner + w) = *from.add(w * apart + j) };
            }
        }
    }
}

/// Rows, as matrices, from x to y.
fn run_matrix<T: FftNum>(
    [first, second]: &[FftColumns<T>; 2],
    x: SharedPtr,
    y: SharedPtr,
    scale: T,
    parallel: bool,
    cancel: &AtomicBool,
) -> Res<()> {
    let between = Block::new((first.outer * first.apart[1]).saturating_mul(size_of::<Complex<T>>()))?;
    let own = SharedPtr(between.ptr());
    first.run(x, own, T::one(), parallel, cancel)?;
    second.run(own, y, scale, parallel, cancel)
}

impl<T: FftNum> FftColumns<T> {
    fn run(&self, x: SharedPtr, y: SharedPtr, scale: T, parallel: bool, cancel: &AtomicBool) -> Res<()> {
        let wide = LINES / size_of::<Complex<T>>();
        let (n, inner, blocks) = (self.n, self.inner, self.inner.div_ceil(wide));
        let times = pairs::pick(size_of::<T>(), self.tier).products;
        threads::try_ranges(self.outer * blocks, parallel.then_some(&self.cost), cancel, &|units: Range<usize>| {
            let length = self.plan.get_inplace_scratch_len();
            let own = working::<T>(wide * apart(n) + length)?;
            for unit in units {
                let (row, first) = (unit / blocks, unit % blocks * wide);
                let width = wide.min(inner - first);
                let some = SomeColumns { row: 0, n, inner, first, width };
                let size = size_of::<Complex<T>>();
                let x = SharedPtr(x.get().wrapping_add(row * self.apart[0] * size));
                let y = SharedPtr(y.get().wrapping_add(row * self.apart[1] * size));
                // SAFETY: the block is this piece's own, and holds `wide` columns and the plan's scratch; `width` numbers of each of n rows belong to
                // this unit alone, and are read before they are written; where columns become rows, the result is no operand, and has a twiddle for
                // each of its numbers.
                unsafe {
                    let own = SharedPtr(own.ptr());
                    let scratch = slice_mut(own, wide * apart(n), length);
                    some.gather::<Complex<T>>(x, own, apart(n));
                    let columns: &mut [Complex<T>] = slice_mut(own, 0, wide * apart(n));
                    for w in 0..width {
                        let column = &mut columns[w * apart(n)..][..n];
                        self.plan.process_with_scratch(column, scratch);
                        if let Some(twiddles) = &self.twiddles {
                            let (at, to) = ((first + w) * n, y.get().cast::<Complex<T>>());
                            times(to.add(at).cast(), column.as_ptr().cast(), twiddles[at..at + n].as_ptr().cast(), n);
                        } else if scale != T::one() {
                            column.iter_mut().for_each(|z| *z = *z * scale);
                        }
                    }
                    if self.twiddles.is_none() {
                        some.scatter::<Complex<T>>(y, own, apart(n));
                    }
                }
            }
            Ok(())
        })
    }
}
