//! `Fft`: rows by plans of `rustfft` and `realfft`, other axes by blocks of columns that are gathered, transformed and put back.
//!
//! INVARIANT: each transform is one plan's, whatever stands beside it: threads and batches change no bits. A plan uses AVX and fused
//! multiply-add where the machine has them, as matrix products do, whatever the tier of the device: all tiers of a machine share it.
//!
//! ```text
//! fft of c64[64, 30, 20] along the last two: 1920 rows of 20; then for each of 64: 20 columns of 30, 16 at a time
//! ```
use super::Run;
use super::walk::SharedPtr;
use crate::kernels::Bases;
use crate::memory::{Block, installed};
use crate::threads;
use ferrax_kernel::routine::{Fft, FftKind};
use ferrax_kernel::{DType, Error, Res};
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftNum, FftPlanner};
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

type Transform<T> = Arc<dyn rustfft::Fft<T>>;
/// How the last axis is transformed.
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
}
struct FftPlan<T: FftNum> {
    /// Their number, and the elements of one on either side.
    rows: usize,
    from: usize,
    to: usize,
    along: FftRows<T>,
    columns: Vec<FftColumns<T>>,
    /// Factor of the result; 1 forward.
    scale: T,
    nanos: f64,
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
    let mut shape = f.lengths.insert(0, f.outer);
    let rank = f.lengths.len();
    shape[rank] = half;
    let column = |k: usize| FftColumns {
        outer: shape[..k].iter().product(),
        n: shape[k],
        inner: shape[k + 1..].iter().product(),
        plan: planner.plan_fft(shape[k], direction),
    };
    let columns = (1..rank).rev().map(column).collect();
    let length = f.lengths.size() as f64;
    let scale = if f.is_inverse() { T::from_f64(1.0 / length) } else { None }.unwrap_or_else(T::one);
    let rows = shape[..rank].iter().product();
    let nanos = (f.outer * f.lengths.size()) as f64 * (length.log2() + 1.0) * NANOS * (size_of::<T>() / 4) as f64;
    let plan = FftPlan { rows, from, to, along, columns, scale, nanos };
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        let nanos = if parallel { plan.nanos } else { 0.0 };
        let (x, y) = (SharedPtr(bases.input(0)), SharedPtr(bases.output(0)));
        let last = plan.columns.len();
        if !matches!(plan.along, FftRows::Inverse(_)) || last == 0 {
            plan.run_rows(x, y, last == 0, nanos, bases.cancel)?;
            return plan.run_columns(y, true, nanos, bases.cancel);
        }
        // the real axis comes last, and the operand stays as it is
        let bytes = plan.rows * plan.from * size_of::<Complex<T>>();
        let between = Block::new(bytes)?;
        // SAFETY: as many bytes as the operand has, freshly taken, hence apart from it.
        unsafe { between.ptr().copy_from_nonoverlapping(x.get(), bytes) };
        plan.run_columns(SharedPtr(between.ptr()), false, nanos, bases.cancel)?;
        plan.run_rows(SharedPtr(between.ptr()), y, true, nanos, bases.cancel)
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
    fn run_rows(&self, x: SharedPtr, y: SharedPtr, scaled: bool, nanos: f64, cancel: &AtomicBool) -> Res<()> {
        let scale = if scaled { self.scale } else { T::one() };
        let (from, to) = (self.from, self.to);
        threads::try_ranges(self.rows, nanos, cancel, &|r: Range<usize>| {
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
                        // What the real result leaves no place for; the crate would speak of it as an error.
                        copy[0].im = T::zero();
                        if to % 2 == 0 {
                            copy[from - 1].im = T::zero();
                        }
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
    /// In place.
    fn run_columns(&self, y: SharedPtr, scaled: bool, nanos: f64, cancel: &AtomicBool) -> Res<()> {
        for (k, c) in self.columns.iter().enumerate() {
            let last = scaled && k + 1 == self.columns.len();
            c.run(y, if last { self.scale } else { T::one() }, nanos, cancel)?;
        }
        Ok(())
    }
}

impl<T: FftNum> FftColumns<T> {
    fn run(&self, y: SharedPtr, scale: T, nanos: f64, cancel: &AtomicBool) -> Res<()> {
        // two cache lines of each row
        let wide = 128 / size_of::<Complex<T>>();
        let (n, inner, blocks) = (self.n, self.inner, self.inner.div_ceil(wide));
        threads::try_ranges(self.outer * blocks, nanos, cancel, &|r: Range<usize>| {
            let length = self.plan.get_inplace_scratch_len();
            let own = working::<T>(wide * n + length)?;
            for unit in r {
                let (first, width) = (unit % blocks * wide, wide.min(inner - unit % blocks * wide));
                // SAFETY: the block is this piece's own, and holds `wide` columns and the plan's scratch.
                let (columns, scratch): (&mut [Complex<T>], &mut [Complex<T>]) = unsafe {
                    let own = SharedPtr(own.ptr());
                    (slice_mut(own, 0, width * n), slice_mut(own, wide * n, length))
                };
                // SAFETY: `width` numbers of each of n rows, which belong to this unit alone.
                let line =
                    |j: usize| unsafe { slice_mut::<Complex<T>>(y, (unit / blocks * n + j) * inner + first, width) };
                for j in 0..n {
                    for (w, z) in line(j).iter().enumerate() {
                        columns[w * n + j] = *z;
                    }
                }
                self.plan.process_with_scratch(columns, scratch);
                for j in 0..n {
                    for (w, z) in line(j).iter_mut().enumerate() {
                        *z = columns[w * n + j] * scale;
                    }
                }
            }
            Ok(())
        })
    }
}
