//! Large matrices by blocks, in the precision of their elements: factors here, eigenvalues and singular values in [`spectral`].
//!
//! ```text
//! lu: for each 64 columns:  factored by themselves;  then 128 others at a time:  rows exchanged, solved, a product subtracted
//! ```
//!
//! Rare cases fall back to the reference implementation in `ferrax_kernel::linalg`: pivots that are zero or without a reciprocal, linearly dependent
//! columns, elements that are not finite, iterations that do not converge. So operands are not modified until the result is complete.
//!
//! INVARIANT: block sizes depend on matrix sizes alone, and each block is one thread's: bits depend on neither threads nor batch. Products use fused
//! multiply-add where the machine has it, whatever the tier of the device.
#![allow(unsafe_code)]
mod lu;
mod qr;
mod spectral;
mod svd;
mod symmetric_eigen;

use crate::householder::Workers;
use crate::tuning::LinalgTuning;
use crate::{cholesky, triangular_solve};
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::lu::partial_pivoting::factor as faer_lu;
use faer::linalg::matmul::matmul;
use faer::linalg::qr::no_pivoting::factor as faer_qr;
use faer::linalg::svd::{ComputeSvdVectors, svd_scratch};
use faer::linalg::triangular_solve as triangular;
use faer::traits::ComplexField;
use faer::{Accum, Conj, MatMut, MatRef, Par, c32, c64};
use ferrax_host::Tier;
use ferrax_host::memory::Block;
use ferrax_host::panel;
use ferrax_host::scratch::Scratch;
use ferrax_host::threads::SharedPtr;
use ferrax_kernel::linalg::{Decomposition, Linalg, Triangle};
use ferrax_kernel::{DType, Res};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Columns that are factored by themselves: of lu, and of cholesky.
const PANEL: usize = 64;
const BLOCK: usize = 128;
/// Columns, or rows, that one piece of an update has.
const WIDE: usize = 128;
const NARROW: usize = 64;
/// Nanoseconds of a multiplication in a product.
const NANOS: f64 = 0.03;

/// An element of a matrix.
pub trait Number: ComplexField + Copy {
    /// Below it there is no reciprocal.
    const MIN_NORMAL: f64;
    const SINGLE: bool;
    fn parts(self) -> (f64, f64);
    fn conjugated(self) -> Self;
    fn scaled(self, by: f64) -> Self;
    fn of(x: f64) -> Self;
    /// Its real part, as a result has it.
    unsafe fn put_real(self, to: *mut u8, i: usize);
    fn usable(self) -> bool {
        let (re, im) = self.parts();
        let size = re.abs().max(im.abs());
        size.is_finite() && size >= Self::MIN_NORMAL
    }
}
macro_rules! number {
    ($($T:ty, $R:ty: |$x:ident| $parts:expr, $conj:expr, |$by:ident| $scaled:expr, $of:expr;)*) => {$(
        impl Number for $T {
            const MIN_NORMAL: f64 = <$R>::MIN_POSITIVE as f64 * 4.0;
            const SINGLE: bool = size_of::<$R>() == 4;
            #[inline(always)]
            fn parts(self) -> (f64, f64) { let $x = self; $parts }
            #[inline(always)]
            fn conjugated(self) -> Self { let $x = self; $conj }
            #[inline(always)]
            fn scaled(self, by: f64) -> Self { let ($x, $by) = (self, by as $R); $scaled }
            fn of(x: f64) -> Self { let $by = x as $R; $of }
            unsafe fn put_real(self, to: *mut u8, i: usize) {
                // SAFETY: by the contract, element i exists.
                unsafe { *to.cast::<$R>().add(i) = self.parts().0 as $R }
            }
        }
    )*};
}
number! {
    f32, f32: |x| (x as f64, 0.0), x, |by| x * by, by;
    f64, f64: |x| (x, 0.0), x, |by| x * by, by;
    c32, f32: |x| (x.re as f64, x.im as f64), c32::new(x.re, -x.im), |by| c32::new(x.re * by, x.im * by), c32::new(by, 0.0);
    c64, f64: |x| (x.re, x.im), c64::new(x.re, -x.im), |by| c64::new(x.re * by, x.im * by), c64::new(by, 0.0);
}

/// A decomposition of a large matrix: its `run` writes the results, or returns false.
pub struct BlockedDecomposition {
    bytes: usize,
    tier: Tier,
    run: fn(&Task) -> Res<bool>,
}
/// One matrix.
struct Task<'a> {
    of: &'a Linalg,
    ins: &'a [*const u8],
    outs: &'a [*mut u8],
    memory: *mut u8,
    bytes: usize,
    tier: Tier,
    parallel: bool,
    cancel: &'a AtomicBool,
}

/// Whether matrices of this kind and size are decomposed by blocks.
pub fn takes(l: &Linalg, t: &LinalgTuning) -> bool {
    let least = l.m.min(l.n);
    match l.kind {
        Decomposition::Cholesky if !l.complex => least >= t.min_blocked_cholesky,
        Decomposition::Cholesky | Decomposition::Lu => least >= t.min_blocked,
        Decomposition::Eigh { .. } | Decomposition::Svd { .. } => least >= t.min_blocked_spectral,
        // of complex columns LAPACK's reflections leave other phases
        Decomposition::Qr { pivoting: false, .. } | Decomposition::Geqrf => !l.complex && least >= t.min_blocked,
        Decomposition::Solve(s) => {
            let (n, sides) = if s.left { (l.m, l.n) } else { (l.n, l.m) };
            n >= t.min_blocked || !l.complex && n >= t.min_blocked_system && sides >= t.min_blocked_system / 2
        }
        _ => false,
    }
}
/// The decomposition of matrices of this kind and size.
pub fn of(l: &Linalg, tier: Tier) -> Option<BlockedDecomposition> {
    Some(match (l.dtype, l.complex) {
        (DType::F32, false) => compiled::<f32>(l, tier),
        (DType::F32, true) => compiled::<c32>(l, tier),
        (_, false) => compiled::<f64>(l, tier),
        (_, true) => compiled::<c64>(l, tier),
    })
}
fn compiled<T: Number>(l: &Linalg, tier: Tier) -> BlockedDecomposition {
    let (m, n) = (l.m, l.n);
    let (least, most) = (m.min(n), m.max(n));
    let (elements, stack) = match l.kind {
        Decomposition::Lu => {
            let index = StackReq::new::<u32>(8 * most);
            let own = faer_lu::lu_in_place_scratch::<u32, T>(m, PANEL.min(n), Par::Seq, Default::default());
            let ours = match (l.complex, T::SINGLE) {
                (true, _) => 0,
                (_, true) => lu::elements::<f32>(l),
                (_, false) => lu::elements::<f64>(l),
            };
            ((n * lead::<T>(m)).max(ours), index.and(own))
        }
        Decomposition::Qr { .. } | Decomposition::Geqrf => {
            let width = reflections(least);
            let own = faer_qr::qr_in_place_scratch::<T>(m, width, width, Par::Seq, Default::default());
            let inner = match l.kind {
                Decomposition::Qr { full: true, .. } => m,
                Decomposition::Qr { .. } => least,
                _ => 0,
            };
            let ours = match (l.complex, T::SINGLE) {
                (true, _) => 0,
                (_, true) => qr::elements::<f32>(l),
                (_, false) => qr::elements::<f64>(l),
            };
            (((n + inner) * lead::<T>(m) + width * least).max(ours), own)
        }
        Decomposition::Eigh { .. } => {
            // of the whole there is more than of its parts: their arrays are taken here
            let own =
                evd::self_adjoint_evd_scratch::<T>(n, ComputeEigenvectors::Yes, Par::Seq, spectral::eigen_params());
            let ours = match (spectral::is_in_rows(l), T::SINGLE) {
                (false, _) => 0,
                (_, true) => symmetric_eigen::elements::<f32>(n),
                (_, false) => symmetric_eigen::elements::<f64>(n),
            };
            ((2 * n * lead::<T>(n) + (reflections(n) + 3) * n).max(ours), own)
        }
        Decomposition::Svd { full, vectors } => {
            let wanted = match (vectors, full) {
                (false, _) => ComputeSvdVectors::No,
                (_, false) => ComputeSvdVectors::Thin,
                _ => ComputeSvdVectors::Full,
            };
            let own = svd_scratch::<T>(m, n, wanted, wanted, Par::Seq, spectral::singular_params());
            let elements = (n + if full { m } else { least }) * lead::<T>(m) + least;
            let ours = match (spectral::is_in_rows(l), T::SINGLE) {
                (false, _) => 0,
                (_, true) => svd::elements::<f32>(l, full),
                (_, false) => svd::elements::<f64>(l, full),
            };
            let elements = elements.max(ours);
            if spectral::is_long(l) {
                let width = reflections(least);
                let first = faer_qr::qr_in_place_scratch::<T>(most, width, width, Par::Seq, Default::default());
                let long = (least + if full { most } else { least }) * lead::<T>(most);
                let long = long + 2 * least * lead::<T>(least) + (width + 1) * least;
                (long.max(elements), own.or(first))
            } else {
                (elements, own)
            }
        }
        Decomposition::Cholesky if !l.complex => {
            let own = llt::cholesky_in_place_scratch::<T>(BLOCK, Par::Seq, Default::default());
            (cholesky::elements(n).iter().sum(), own)
        }
        _ => (0, llt::cholesky_in_place_scratch::<T>(BLOCK, Par::Seq, Default::default())),
    };
    let bytes = elements.saturating_mul(size_of::<T>()).saturating_add(stack.unaligned_bytes_required());
    BlockedDecomposition { bytes: bytes.saturating_add(4096), tier, run: run::<T> }
}
/// Columns whose reflections are applied together.
fn reflections(least: usize) -> usize {
    match least {
        ..160 => 16,
        160..600 => 32,
        _ => 48,
    }
}
/// The distance of columns: not a multiple of a page, at which columns conflict in the cache.
fn lead<T>(m: usize) -> usize {
    m + if (m * size_of::<T>()).is_multiple_of(1024) { 64 / size_of::<T>().min(64) } else { 0 }
}

impl BlockedDecomposition {
    /// Working memory of one matrix.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether the decomposition was done; the results are then written.
    ///
    /// # Safety
    /// Operands and results hold one matrix each as `l` states, aligned; results overlap nothing.
    pub unsafe fn run(
        &self,
        l: &Linalg,
        memory: &Block,
        ins: &[*const u8],
        outs: &[*mut u8],
        parallel: bool,
        cancel: &AtomicBool,
    ) -> Res<bool> {
        (self.run)(&Task {
            of: l,
            ins,
            outs,
            memory: memory.ptr(),
            bytes: memory.size(),
            tier: self.tier,
            parallel,
            cancel,
        })
    }
}
fn run<T: Number>(t: &Task) -> Res<bool> {
    match t.of.kind {
        Decomposition::Cholesky => t.cholesky::<T>(),
        Decomposition::Lu => t.lu::<T>(),
        Decomposition::Qr { full, .. } => t.qr::<T>(full),
        Decomposition::Geqrf => t.geqrf::<T>(),
        Decomposition::Solve(triangle) => t.solve::<T>(triangle),
        Decomposition::Eigh { lower } => t.eigh::<T>(lower),
        Decomposition::Svd { full, vectors } => t.svd::<T>(full, vectors),
        _ => Ok(false),
    }
}

/// Blocks of `rows` by `columns` of memory that stays where it is.
#[derive(Clone, Copy)]
struct At<T> {
    p: SharedPtr,
    row: usize,
    column: usize,
    element: std::marker::PhantomData<T>,
}
impl<T: Number> At<T> {
    fn new(p: *mut T, row: usize, column: usize) -> At<T> {
        At { p: SharedPtr(p.cast()), row, column, element: std::marker::PhantomData }
    }
    fn ptr(&self, i: usize, j: usize) -> *mut T {
        self.p.get().cast::<T>().wrapping_add(i * self.row + j * self.column)
    }
    /// # Safety
    /// The block lies inside, and nothing else writes or reads it during its lifetime.
    unsafe fn block<'a>(&self, rows: Range<usize>, columns: Range<usize>) -> MatMut<'a, T> {
        let p = self.ptr(rows.start, columns.start);
        // SAFETY: by the contract.
        unsafe { MatMut::from_raw_parts_mut(p, rows.len(), columns.len(), self.row as isize, self.column as isize) }
    }
    /// # Safety
    /// The block lies inside, and nothing writes it during its lifetime.
    unsafe fn read<'a>(&self, rows: Range<usize>, columns: Range<usize>) -> MatRef<'a, T> {
        let p = self.ptr(rows.start, columns.start);
        // SAFETY: by the contract.
        unsafe { MatRef::from_raw_parts(p, rows.len(), columns.len(), self.row as isize, self.column as isize) }
    }
}
// SAFETY: as its pointer: who makes a block of it proves that it is alone.
unsafe impl<T> Sync for At<T> {}

/// Working memory, part after part.
struct Portions {
    at: *mut u8,
    left: usize,
}
impl Portions {
    /// `n` elements, to be written before they are read.
    fn take<T>(&mut self, n: usize) -> *mut T {
        let bytes = (n * size_of::<T>()).next_multiple_of(64);
        assert!(bytes <= self.left, "working memory of a decomposition was estimated too small");
        let p = self.at.cast::<T>();
        self.at = self.at.wrapping_add(bytes);
        self.left -= bytes;
        p
    }
    fn stack<'a>(self) -> &'a mut MemStack {
        // SAFETY: the remainder of the block, which belongs to one task.
        MemStack::new(unsafe { std::slice::from_raw_parts_mut(self.at.cast::<MaybeUninit<u8>>(), self.left) })
    }
}

/// `to[j, i] = from[i, j]`, by small squares.
///
/// # Safety
/// `from` has `m` rows of `n`, at distance `row`; `to` has as many columns, at distance `column`.
unsafe fn transpose<T: Copy>(
    from: *const T,
    row: usize,
    [m, n]: [usize; 2],
    to: *mut T,
    column: usize,
    f: impl Fn(T) -> T,
) {
    const SIDE: usize = 8;
    for i0 in (0..m).step_by(SIDE) {
        for j0 in (0..n).step_by(SIDE) {
            for j in j0..(j0 + SIDE).min(n) {
                for i in i0..(i0 + SIDE).min(m) {
                    // SAFETY: by the contract.
                    unsafe { *to.add(j * column + i) = f(*from.add(i * row + j)) };
                }
            }
        }
    }
}

impl Task<'_> {
    fn workers(&self) -> Workers<'_> {
        Workers { parallel: self.parallel, cancel: self.cancel }
    }
    fn parts(&self) -> Portions {
        Portions { at: self.memory, left: self.bytes }
    }
    fn input<T>(&self, k: usize) -> *const T {
        self.ins[k].cast()
    }
    fn output<T>(&self, k: usize) -> *mut T {
        self.outs[k].cast()
    }
    /// A power of two that scales the largest magnitude of the elements that are read to between 1
    /// and 2, if all are finite. Squares of other sizes may overflow or underflow, and tolerances
    /// assume matrices near 1. The results for a scaled matrix are those of the matrix, times that
    /// power. `read` gives the columns of a row that are read.
    fn scale<T: Number>(&self, [m, n]: [usize; 2], read: impl Fn(usize) -> Range<usize>) -> Option<f64> {
        const LANES: usize = 8;
        // of several elements at a time, so that no chain of maxima is waited for
        let (mut most, mut nothing) = ([0.0f64; LANES], [0.0f64; LANES]);
        let mut take = |x: &[T], counts: f64| {
            let (chunks, rest) = x.as_chunks::<LANES>();
            let mut one = |l: usize, x: T| {
                let (re, im) = x.parts();
                let size = re.abs().max(im.abs()) * counts;
                most[l] = if size > most[l] { size } else { most[l] };
                // no number but for finite ones
                nothing[l] += re * 0.0 + im * 0.0;
            };
            chunks.iter().for_each(|c| (0..LANES).for_each(|l| one(l, c[l])));
            rest.iter().for_each(|x| one(0, *x));
        };
        for i in 0..m {
            let (r, row) = (read(i), self.input::<T>(0).wrapping_add(i * n));
            // SAFETY: a row of the operand.
            let row = unsafe { std::slice::from_raw_parts(row, n) };
            take(&row[..r.start], 0.0);
            take(&row[r.clone()], 1.0);
            take(&row[r.end..], 0.0);
        }
        let most = most.into_iter().fold(0.0, f64::max);
        // as far as this power and its reciprocal are numbers of the type
        let limit = if T::SINGLE { 126 } else { 1000 };
        let scale = if most == 0.0 { 1.0 } else { 2f64.powi(-(most.log2().floor() as i32).clamp(-limit, limit)) };
        nothing.iter().all(|x| *x == 0.0).then_some(scale)
    }
    /// `work` on `0..n`, [`WIDE`] at a time, in parallel where its multiplications are worth it; each part may have scratch memory.
    fn wide(&self, n: usize, products: usize, bytes: usize, work: &(dyn Fn(Range<usize>, *mut u8) + Sync)) -> Res<()> {
        self.pieces(n, WIDE, products, bytes, work)
    }
    fn pieces(
        &self,
        n: usize,
        each: usize,
        products: usize,
        bytes: usize,
        work: &(dyn Fn(Range<usize>, *mut u8) + Sync),
    ) -> Res<()> {
        self.workers().pieces(n, each, products as f64 * NANOS, bytes, work)
    }

    /// Works in place in the result, row by row; elements above the diagonal are cleared
    /// afterwards.
    fn cholesky<T: Number>(&self) -> Res<bool> {
        let n = self.of.n;
        let out = self.output::<T>(0);
        let (a, from) = (At::new(out, n, 1), SharedPtr(self.ins[0].cast_mut()));
        let zero = |i: usize, columns: Range<usize>| {
            // SAFETY: elements of a row of the result, which belongs to this piece.
            unsafe { std::slice::from_raw_parts_mut(a.ptr(i, columns.start), columns.len()).fill(T::of(0.0)) }
        };
        self.wide(n, n * n * 8, 0, &|r, _| {
            for i in r {
                // SAFETY: a row of the operand and one of the result, which do not overlap.
                unsafe { a.ptr(i, 0).copy_from_nonoverlapping(from.get().cast::<T>().add(i * n), i + 1) };
                zero(i, i + 1..n);
            }
        })?;
        let done = match cholesky::pick(size_of::<T>(), self.tier).filter(|_| !self.of.complex) {
            Some((steps, product)) => self.factor::<T>(steps, product)?,
            None => self.factor_by_library(a)?,
        };
        if done {
            // so far a piece goes beyond its diagonal
            (0..n).for_each(|i| zero(i, i + 1..n.min(i + WIDE.max(BLOCK))));
        }
        Ok(done)
    }
    /// The lower triangle of the result, on our own products.
    fn factor<T: Number>(&self, steps: cholesky::Steps, product: panel::Rows) -> Res<bool> {
        let n = self.of.n;
        let mut parts = self.parts();
        let [square, transposed] = cholesky::elements(n).map(|n| parts.take::<T>(n));
        let (a, square, transposed) = (SharedPtr(self.outs[0]), SharedPtr(square.cast()), SharedPtr(transposed.cast()));
        let bytes = cholesky::memory(size_of::<T>());
        for k in (0..n).step_by(cholesky::BLOCK) {
            let width = cholesky::BLOCK.min(n - k);
            let (end, rest) = (k + width, n - k - width);
            let stage = |scratch| cholesky::Stage {
                a: a.get(),
                n,
                k,
                width,
                square: square.get(),
                transposed: transposed.get(),
                scratch,
                product,
            };
            // SAFETY: the result, and this task's memory; each piece has its rows of both.
            unsafe {
                if !Scratch.with(bytes, |scratch| (steps.square)(&stage(scratch)))? {
                    return Ok(false);
                }
                self.pieces(rest, NARROW, rest * width * width, bytes, &|r, scratch| {
                    (steps.below)(&stage(scratch), end + r.start, end + r.end)
                })?;
                // the longest rows first, so that threads end together
                self.pieces(rest, NARROW, rest * rest * width / 2, bytes, &|r, scratch| {
                    (steps.update)(&stage(scratch), n - r.end, n - r.start)
                })?;
            }
        }
        Ok(true)
    }
    /// The lower triangle of the result, `a`, on the library's products.
    fn factor_by_library<T: Number>(&self, a: At<T>) -> Res<bool> {
        let n = self.of.n;
        for k in (0..n).step_by(BLOCK) {
            let end = (k + BLOCK).min(n);
            // SAFETY: a block of the result, which belongs to this task.
            let square = unsafe { a.block(k..end, k..end) };
            let done =
                llt::cholesky_in_place(square, Default::default(), Par::Seq, self.parts().stack(), Default::default());
            let good = |i: usize| {
                // SAFETY: an element of the result.
                let x = unsafe { *a.ptr(i, i) };
                x.usable() && x.parts().0 > 0.0
            };
            if done.is_err() || !(k..end).all(good) {
                return Ok(false);
            }
            let rest = n - end;
            self.wide(rest, rest * (end - k) * (end - k), 0, &|r, _| {
                // SAFETY: rows of this piece, and the square that nothing writes.
                let (square, rows) = unsafe { (a.read(k..end, k..end), a.block(end + r.start..end + r.end, k..end)) };
                triangular::solve_lower_triangular_in_place_with_conj(
                    square,
                    Conj::Yes,
                    rows.transpose_mut(),
                    Par::Seq,
                );
            })?;
            self.wide(rest, rest * rest * (end - k) / 2, 0, &|r, _| {
                let (from, to) = (end + r.start, end + r.end);
                // SAFETY: rows of this piece up to its own diagonal; the columns k..end are not written meanwhile.
                let (rows, others, own) =
                    unsafe { (a.block(from..to, end..to), a.read(end..to, k..end), a.read(from..to, k..end)) };
                matmul(rows, Accum::Add, own, others.adjoint(), -T::of(1.0), Par::Seq);
            })?;
        }
        Ok(true)
    }

    fn solve<T: Number>(&self, t: Triangle) -> Res<bool> {
        let (m, k) = (self.of.m, self.of.n);
        let n = if t.left { m } else { k };
        let a = At::new(self.input::<T>(0).cast_mut(), n, 1);
        // SAFETY: an element of the operand.
        if !t.unit && !(0..n).all(|i| unsafe { *a.ptr(i, i) }.usable()) {
            return Ok(false);
        }
        let out = self.output::<T>(0);
        // SAFETY: m * k elements each, which do not overlap.
        unsafe { out.copy_from_nonoverlapping(self.input::<T>(1), m * k) };
        if let Some((solve, product)) = triangular_solve::pick(size_of::<T>(), self.tier).filter(|_| !self.of.complex) {
            self.substitute::<T>(t, solve, product)?;
            return Ok(true);
        }
        // from the right, everything is transposed
        let transposed = t.transpose == t.left;
        let x = if t.left { At::new(out, k, 1) } else { At::new(out, 1, k) };
        let sides = if t.left { k } else { m };
        let conj = if t.conjugate { Conj::Yes } else { Conj::No };
        self.wide(sides, n * n * sides / 2, 0, &|r, _| {
            // SAFETY: columns of this piece; the triangle is an operand, which nothing writes.
            let (a, x) = unsafe { (a.read(0..n, 0..n), x.block(0..n, r)) };
            let a = if transposed { a.transpose() } else { a };
            match (t.lower != transposed, t.unit) {
                (true, false) => triangular::solve_lower_triangular_in_place_with_conj(a, conj, x, Par::Seq),
                (true, true) => triangular::solve_unit_lower_triangular_in_place_with_conj(a, conj, x, Par::Seq),
                (false, false) => triangular::solve_upper_triangular_in_place_with_conj(a, conj, x, Par::Seq),
                (false, true) => triangular::solve_unit_upper_triangular_in_place_with_conj(a, conj, x, Par::Seq),
            }
        })?;
        Ok(true)
    }

    /// The solution in place of the sides, on our own products.
    fn substitute<T: Number>(&self, t: Triangle, solve: triangular_solve::Solve, product: panel::Rows) -> Res<()> {
        let (m, k) = (self.of.m, self.of.n);
        let (n, sides) = if t.left { (m, k) } else { (k, m) };
        let transposed = t.transpose == t.left;
        let side = if t.left { 1 } else { k };
        let (a, x) = (SharedPtr(self.ins[0].cast_mut()), SharedPtr(self.outs[0]));
        let bytes = triangular_solve::memory(n, size_of::<T>());
        self.pieces(sides, triangular_solve::SIDES, n * n * sides / 2, bytes, &|r, scratch| {
            // SAFETY: sides of this piece; the triangle is an operand, which nothing writes.
            unsafe {
                solve(&triangular_solve::System {
                    a: a.get(),
                    a_strides: if transposed { [1, n as isize] } else { [n as isize, 1] },
                    n,
                    lower: t.lower != transposed,
                    unit: t.unit,
                    x: x.get().cast::<T>().add(r.start * side).cast(),
                    x_strides: if t.left { [k as isize, 1] } else { [1, k as isize] },
                    sides: r.len(),
                    scratch,
                    product,
                })
            }
        })
    }
}
