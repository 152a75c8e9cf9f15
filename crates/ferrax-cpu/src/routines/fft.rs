//! `Fft`: rows by plans of `rustfft` and `realfft`, other axes by blocks of columns that are gathered, transformed and put back.
//!
//! INVARIANT: each transform is one plan's, whatever stands beside it: threads and batches change no bits. A plan uses AVX and fused
//! multiply-add where the machine has them, as matrix products do, whatever the tier of the device: all tiers of a machine share it.
//!
//! ```text
//! fft of c64[64, 30, 20] along the last two: 1920 rows of 20; then for each of 64: 20 columns of 30, 16 at a time
//! rfft of f32[30, 20] along the first: 20 columns of 30, all at a time, written as columns of 16
//! ```
#[cfg(feature = "fft")]
mod library {
    pub use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
    pub use rustfft::num_complex::Complex;
    pub use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
}
#[cfg(not(feature = "fft"))]
#[path = "fft/without_library.rs"]
mod library;
#[cfg(all(test, feature = "fft"))]
#[allow(dead_code)] // its tests ask for a part of it
mod without_library;

use super::Run;
use super::walk::SharedPtr;
use crate::kernels::Bases;
use crate::memory::{Block, installed};
use crate::threads::{self, Cost};
use ferrax_kernel::routine::{Fft, FftKind};
use ferrax_kernel::{DType, Error, Res};
use library::{Complex, ComplexToReal, Fft as Plan, FftDirection, FftNum, FftPlanner, RealFftPlanner, RealToComplex};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Time of one element's part in one halving, estimated.
const NANOS: f64 = 0.15;

pub fn compile(f: &Fft) -> Res<Run> {
    match f.dtype {
        DType::F32 => compiled::<f32>(f),
        _ => compiled::<f64>(f),
    }
}

type Transform<T> = Arc<dyn Plan<T>>;
/// How the last of the axes is transformed.
enum FftRows<T: FftNum> {
    Complex(Transform<T>),
    Forward(Arc<dyn RealToComplex<T>>),
    Inverse(Arc<dyn ComplexToReal<T>>),
}
/// Another axis: the middle one of `[outer, n, inner]`, all of them complex.
struct FftColumns<T: FftNum> {
    outer: usize,
    n: usize,
    inner: usize,
    plan: Transform<T>,
    cost: Cost,
}
struct FftPlan<T: FftNum> {
    /// Their number, the elements of one on either side, and how far apart these are.
    rows: usize,
    from: usize,
    to: usize,
    inner: usize,
    along: FftRows<T>,
    columns: Vec<FftColumns<T>>,
    /// Factor of the result; 1 forward.
    scale: T,
    cost: Cost,
}

/// Tables of a plan are made by the planner, which takes its memory unasked.
fn affordable<T>(n: usize) -> Res<()> {
    // Bluestein's algorithm: a chirp, its transform, and tables of a transform of up to 4 n
    let bytes = n.saturating_mul(16 * size_of::<Complex<T>>());
    let refused = || Error::OutOfMemory(format!("out of memory while planning a Fourier transform of length {n}"));
    if installed().is_some_and(|most| bytes > most) {
        return Err(refused());
    }
    ferrax_kernel::error::room::<u8>(bytes).map(drop).map_err(|_| refused())
}

fn compiled<T: FftNum>(f: &Fft) -> Res<Run> {
    let (n, half) = (f.lengths[f.lengths.len() - 1], f.last());
    f.lengths.iter().try_for_each(|n| affordable::<T>(*n))?;
    let direction = if f.is_inverse() { FftDirection::Inverse } else { FftDirection::Forward };
    let mut planner = FftPlanner::<T>::new();
    let along = match f.kind {
        FftKind::Forward | FftKind::Inverse => FftRows::Complex(planner.plan_fft(n, direction)),
        FftKind::RealForward => FftRows::Forward(RealFftPlanner::new().plan_fft_forward(n)),
        FftKind::RealInverse => FftRows::Inverse(RealFftPlanner::new().plan_fft_inverse(n)),
    };
    let (from, to) = match f.kind {
        FftKind::RealForward => (n, half),
        FftKind::RealInverse => (half, n),
        _ => (n, n),
    };
    let mut shape = f.lengths.insert(0, f.outer).concat(&[f.inner]);
    let rank = f.lengths.len();
    shape[rank] = half;
    let length = f.lengths.size() as f64;
    let nanos =
        (f.outer * f.inner * f.lengths.size()) as f64 * (length.log2() + 1.0) * NANOS * (size_of::<T>() / 4) as f64;
    let column = |k: usize| FftColumns {
        outer: shape[..k].iter().product(),
        n: shape[k],
        inner: shape[k + 1..].iter().product(),
        plan: planner.plan_fft(shape[k], direction),
        cost: Cost::of(nanos),
    };
    // Where elements of the last axis lie apart, and are complex on both sides, it is one of columns, too.
    let all = f.inner > 1 && matches!(along, FftRows::Complex(_));
    let columns = (1..rank + all as usize).rev().map(column).collect();
    let scale = if f.is_inverse() { T::from_f64(1.0 / length) } else { None }.unwrap_or_else(T::one);
    let rows = shape[..rank].iter().product();
    let plan = FftPlan { rows, from, to, inner: f.inner, along, columns, scale, cost: Cost::of(nanos) };
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        let (x, y) = (SharedPtr(bases.input(0)), SharedPtr(bases.output(0)));
        let last = plan.columns.len();
        if all {
            return plan.run_columns(x, y, true, parallel, bases.cancel);
        }
        if !matches!(plan.along, FftRows::Inverse(_)) || last == 0 {
            plan.run_rows(x, y, last == 0, parallel, bases.cancel)?;
            return plan.run_columns(y, y, true, parallel, bases.cancel);
        }
        // the real axis comes last, and the operand stays as it is
        let bytes = plan.rows * plan.from * plan.inner * size_of::<Complex<T>>();
        let between = Block::new(bytes)?;
        // SAFETY: as many bytes as the operand has, freshly taken, hence apart from it.
        unsafe { between.ptr().copy_from_nonoverlapping(x.get(), bytes) };
        let own = SharedPtr(between.ptr());
        plan.run_columns(own, own, false, parallel, bases.cancel)?;
        plan.run_rows(SharedPtr(between.ptr()), y, true, parallel, bases.cancel)
    }))
}

/// `n` numbers from the `at`-th on.
///
/// # Safety
/// They exist, and nobody writes to them while the slice lives.
unsafe fn slice<'a, E>(p: SharedPtr, at: usize, n: usize) -> &'a [E] {
    // SAFETY: by the contract; numbers are aligned to their parts, and any bits are a number.
    unsafe { std::slice::from_raw_parts(p.get().cast::<E>().add(at), n) }
}
/// # Safety
/// They exist, and nobody else touches them while the slice lives.
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
        let (from, to) = (self.from, self.to);
        if self.inner > 1 {
            return self.run_apart(x, y, scale, parallel, cancel);
        }
        threads::try_ranges(self.rows, parallel.then_some(&self.cost), cancel, &|r: Range<usize>| {
            if r.is_empty() {
                return Ok(());
            }
            match &self.along {
                FftRows::Complex(plan) => {
                    let scratch = working::<T>(plan.get_immutable_scratch_len())?;
                    // SAFETY: rows r of operand and result, which nobody else writes; the block is this piece's own.
                    let (x, y, scratch): (&[Complex<T>], &mut [Complex<T>], _) = unsafe {
                        let n = plan.get_immutable_scratch_len();
                        let (at, count) = (r.start * from, r.len() * from);
                        (slice(x, at, count), slice_mut(y, at, count), slice_mut(SharedPtr(scratch.ptr()), 0, n))
                    };
                    plan.process_immutable_with_scratch(x, y, scratch);
                    if scale != T::one() {
                        y.iter_mut().for_each(|z| *z = *z * scale);
                    }
                }
                FftRows::Forward(plan) => {
                    let own = working::<T>(from.div_ceil(2) + plan.get_scratch_len())?;
                    for row in r {
                        // SAFETY: row of operand and result; the block's first half holds `from` reals, its second the plan's scratch.
                        let (x, y, copy, scratch): (&[T], &mut [Complex<T>], &mut [T], &mut [Complex<T>]) = unsafe {
                            let own = SharedPtr(own.ptr());
                            let scratch = slice_mut(own, from.div_ceil(2), plan.get_scratch_len());
                            (slice(x, row * from, from), slice_mut(y, row * to, to), slice_mut(own, 0, from), scratch)
                        };
                        copy.copy_from_slice(x);
                        plan.process_with_scratch(copy, y, scratch).map_err(|e| Error::Invalid(e.to_string()))?;
                    }
                }
                FftRows::Inverse(plan) => {
                    let own = working::<T>(from + plan.get_scratch_len())?;
                    for row in r {
                        // SAFETY: as above, the block's first part holding `from` complex numbers.
                        let (x, y, copy, scratch): (&[Complex<T>], &mut [T], &mut [Complex<T>], &mut [Complex<T>]) = unsafe {
                            let own = SharedPtr(own.ptr());
                            let scratch = slice_mut(own, from, plan.get_scratch_len());
                            (slice(x, row * from, from), slice_mut(y, row * to, to), slice_mut(own, 0, from), scratch)
                        };
                        copy.copy_from_slice(x);
                        real_ends(copy, to);
                        plan.process_with_scratch(copy, y, scratch).map_err(|e| Error::Invalid(e.to_string()))?;
                        if scale != T::one() {
                            y.iter_mut().for_each(|v| *v = *v * scale);
                        }
                    }
                }
            }
            Ok(())
        })
    }
    /// Real on one side, with elements that lie apart: some columns at a time.
    fn run_apart(&self, x: SharedPtr, y: SharedPtr, scale: T, parallel: bool, cancel: &AtomicBool) -> Res<()> {
        let wide = LINES / size_of::<T>();
        let (from, to, inner, blocks) = (self.from, self.to, self.inner, self.inner.div_ceil(wide));
        // of complex numbers, in either of both halves
        let part = wide * apart(from.max(to));
        let length = match &self.along {
            FftRows::Forward(plan) => plan.get_scratch_len(),
            FftRows::Inverse(plan) => plan.get_scratch_len(),
            FftRows::Complex(_) => return Err(Error::Invalid("a complex transform of columns as of rows".into())),
        };
        threads::try_ranges(self.rows * blocks, parallel.then_some(&self.cost), cancel, &|r: Range<usize>| {
            let own = working::<T>(2 * part + length)?;
            let own = SharedPtr(own.ptr());
            // SAFETY: the block is this piece's own: two halves, and the plan's scratch.
            let scratch: &mut [Complex<T>] = unsafe { slice_mut(own, 2 * part, length) };
            for unit in r {
                let (row, first) = (unit / blocks, unit % blocks * wide);
                let width = wide.min(inner - first);
                // SAFETY: `width` columns of operand and result that belong to this unit alone; both halves as above.
                unsafe {
                    match &self.along {
                        FftRows::Forward(plan) => {
                            let (reals, pairs): (&mut [T], &mut [Complex<T>]) =
                                (slice_mut(own, 0, 2 * part), slice_mut(own, part, part));
                            gathered(x, [row * from, from, inner, first, width], reals, apart(from));
                            for w in 0..width {
                                let reals = &mut reals[w * apart(from)..][..from];
                                let pairs = &mut pairs[w * apart(to)..][..to];
                                plan.process_with_scratch(reals, pairs, scratch)
                                    .map_err(|e| Error::Invalid(e.to_string()))?;
                            }
                            for j in 0..to {
                                let line = slice_mut::<Complex<T>>(y, (row * to + j) * inner + first, width);
                                for (w, z) in line.iter_mut().enumerate() {
                                    *z = pairs[w * apart(to) + j];
                                }
                            }
                        }
                        FftRows::Inverse(plan) => {
                            let (pairs, reals): (&mut [Complex<T>], &mut [T]) =
                                (slice_mut(own, 0, part), slice_mut(own, 2 * part, 2 * part));
                            gathered(x, [row * from, from, inner, first, width], pairs, apart(from));
                            for w in 0..width {
                                let pairs = &mut pairs[w * apart(from)..][..from];
                                real_ends(pairs, to);
                                let reals = &mut reals[w * apart(to)..][..to];
                                plan.process_with_scratch(pairs, reals, scratch)
                                    .map_err(|e| Error::Invalid(e.to_string()))?;
                            }
                            for j in 0..to {
                                let line = slice_mut::<T>(y, (row * to + j) * inner + first, width);
                                for (w, v) in line.iter_mut().enumerate() {
                                    *v = reals[w * apart(to) + j] * scale;
                                }
                            }
                        }
                        FftRows::Complex(_) => (),
                    }
                }
            }
            Ok(())
        })
    }
    /// From x to y, which may be one, then in place.
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

/// Takes away what a real result of length `n` leaves no place for; the crate would speak of it as an error.
fn real_ends<T: FftNum>(x: &mut [Complex<T>], n: usize) {
    x[0].im = T::zero();
    if n.is_multiple_of(2) {
        x[n / 2].im = T::zero();
    }
}
/// `width` columns from the `first`-th on, each `apart` from the next, of `n` rows of `inner` that begin at row `start`.
///
/// # Safety
/// They exist, and nobody writes to them.
unsafe fn gathered<E: Copy>(
    x: SharedPtr,
    [start, n, inner, first, width]: [usize; 5],
    columns: &mut [E],
    apart: usize,
) {
    for j in 0..n {
        // SAFETY: by the contract.
        let line: &[E] = unsafe { slice(x, (start + j) * inner + first, width) };
        for (w, z) in line.iter().enumerate() {
            columns[w * apart + j] = *z;
        }
    }
}

impl<T: FftNum> FftColumns<T> {
    fn run(&self, x: SharedPtr, y: SharedPtr, scale: T, parallel: bool, cancel: &AtomicBool) -> Res<()> {
        let wide = LINES / size_of::<Complex<T>>();
        let (n, inner, blocks) = (self.n, self.inner, self.inner.div_ceil(wide));
        threads::try_ranges(self.outer * blocks, parallel.then_some(&self.cost), cancel, &|r: Range<usize>| {
            let length = self.plan.get_inplace_scratch_len();
            let own = working::<T>(wide * apart(n) + length)?;
            for unit in r {
                let (row, first) = (unit / blocks * n, unit % blocks * wide);
                let width = wide.min(inner - first);
                // SAFETY: the block is this piece's own, and holds `wide` columns and the plan's scratch; `width` numbers of each of n rows belong to
                // this unit alone, and are read before they are written.
                unsafe {
                    let own = SharedPtr(own.ptr());
                    let columns: &mut [Complex<T>] = slice_mut(own, 0, wide * apart(n));
                    let scratch = slice_mut(own, wide * apart(n), length);
                    gathered(x, [row, n, inner, first, width], columns, apart(n));
                    for w in 0..width {
                        self.plan.process_with_scratch(&mut columns[w * apart(n)..][..n], scratch);
                    }
                    for j in 0..n {
                        let line = slice_mut::<Complex<T>>(y, (row + j) * inner + first, width);
                        for (w, z) in line.iter_mut().enumerate() {
                            *z = columns[w * apart(n) + j] * scale;
                        }
                    }
                }
            }
            Ok(())
        })
    }
}
