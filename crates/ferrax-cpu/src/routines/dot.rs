//! Batched matrix products.
//!
//! Sizes, dtypes and the machine alone decide which [`DotStrategy`] runs. The library's GEMM is called in one layout (operands of another layout are
//! packed first). So layout and threads change no bits.
/// The GEMM library, used where the machine has no panel products; without it loops multiply.
#[cfg(feature = "gemm")]
mod library;

use super::{CompiledRoutine, Run, vector};
use crate::kernels::block::tiers;
use crate::kernels::lane::Lane;
use crate::kernels::{Bases, Scratch};
use crate::lowering::CompiledKernel;
use crate::memory::Block;
use crate::threads::{self, Cost};
use crate::tier::Tier;
use crate::tuning::{DotTuning, Target};
use ferrax_host::panel::{self, Matrices};
use ferrax_kernel::kernel::{Access, Guard};
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Affine, Bin, DType, Kernel, Node, ReduceKind, Res, Scalar};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// The time of one multiplication in a large product.
pub const NANOS: f64 = 0.016;
/// Columns that stay together: a multiple of every panel's.
const COLUMNS: usize = 64;

/// The implementation of the product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DotStrategy {
    /// A matrix by a vector: [`super::vector`].
    MatrixVector,
    /// A reduction kernel, in the waist's order: two vectors, integers, or a vector whose dtype is not the sums'.
    Reduction,
    /// Batches of dense matrices of up to 4 x 4, each in registers.
    Registers,
    /// Loops over blocks of the result that stay in registers, summing in sequence.
    Loops,
    /// [`panel`], a panel of the right operand at a time.
    Panels,
    /// [`panel`], block by block of both operands.
    BlockedPanels,
    /// The library's GEMM.
    Library,
}
/// The strategy for a product on a tier.
pub fn pick(d: &Dot, tier: Tier, t: &DotTuning) -> DotStrategy {
    let acc = accumulator(d);
    let (lane, work) = (Lane::of(acc), d.m * d.n * d.k);
    if (d.m == 1 || d.n == 1) && work > t.max_loop_work && lane != Lane::Bool {
        let plain = acc.is_float() && d.dtype == acc && d.out == acc && d.m * d.n > 1;
        return if plain { DotStrategy::MatrixVector } else { DotStrategy::Reduction };
    }
    let panels = panel::pick(lane.dtype(), tier).is_some();
    match panels {
        _ if is_small(work, lane, tier, t) || !panels && !acc.is_float() => {
            let exact = d.dtype == acc && exact(d, lane, tier).is_some();
            if exact { DotStrategy::Registers } else { DotStrategy::Loops }
        }
        true if panel::is_large(d.m, d.n, d.k) => DotStrategy::BlockedPanels,
        true => DotStrategy::Panels,
        false if cfg!(feature = "gemm") => DotStrategy::Library,
        false => DotStrategy::Loops,
    }
}
/// Whether a product of so many multiplications is done by loops, which sum in sequence.
pub fn is_small(work: usize, lane: Lane, tier: Tier, t: &DotTuning) -> bool {
    let panels = panel::pick(lane.dtype(), tier).is_some();
    work <= if panels { t.max_loop_work } else { t.max_loop_work_without_panels }
}

pub trait Product {
    /// # Safety
    /// The strides stay inside the operands, `c` holds m rows of n, and `scratch` is as stated.
    unsafe fn run(x: &Matrices);
}
tiers!(pick_product, Product, fn(x: &Matrices));

/// The function that multiplies: of panels where the machine has them and the product is not small, else of loops.
pub fn rows_function(lane: Lane, small: bool, tier: Tier) -> panel::Rows {
    let panels = if small { None } else { panel::pick(lane.dtype(), tier) };
    panels.unwrap_or_else(|| match lane {
        Lane::F32 => pick_product::<Loops<f32>>(tier),
        Lane::F64 => pick_product::<Loops<f64>>(tier),
        Lane::I32 | Lane::U32 => pick_product::<Loops<u32>>(tier),
        Lane::I64 | Lane::U64 => pick_product::<Loops<u64>>(tier),
        Lane::Bool => pick_product::<Loops<u8>>(tier),
    })
}

pub trait Ring: Copy {
    const ZERO: Self;
    fn add_product(self, x: Self, y: Self) -> Self;
}
macro_rules! ring {
    ($($T:ty: $zero:expr, |$s:ident, $x:ident, $y:ident| $e:expr;)*) => {$(
        impl Ring for $T {
            const ZERO: $T = $zero;
            #[inline(always)]
            fn add_product(self, $x: $T, $y: $T) -> $T { let $s = self; $e }
        }
    )*};
}
ring! {
    f32: 0.0, |s, x, y| s + x * y;
    f64: 0.0, |s, x, y| s + x * y;
    u32: 0, |s, x, y| s.wrapping_add(x.wrapping_mul(y));
    u64: 0, |s, x, y| s.wrapping_add(x.wrapping_mul(y));
    u8: 0, |s, x, y| s | (x & y);
}
pub struct Loops<T>(std::marker::PhantomData<T>);
impl<T: Ring> Product for Loops<T> {
    /// Each element sums in increasing k.
    #[inline(always)]
    unsafe fn run(x: &Matrices) {
        if x.m.max(x.n).max(x.k) <= TINY {
            // SAFETY: the same contract.
            return unsafe { tiny::<T>(x) };
        }
        let mut j = 0;
        // SAFETY: by the contract; columns and rows lie inside.
        unsafe {
            // As many columns at a time as stay in registers with four rows.
            while size_of::<T>() < 8 && j + 16 <= x.n {
                columns::<T, 16>(x, j);
                j += 16;
            }
            while j + 8 <= x.n {
                columns::<T, 8>(x, j);
                j += 8;
            }
            while j + 4 <= x.n {
                columns::<T, 4>(x, j);
                j += 4;
            }
            while j < x.n {
                columns::<T, 1>(x, j);
                j += 1;
            }
        }
    }
}
/// Sides of matrices that fit into registers.
const TINY: usize = 4;
/// # Safety
/// As `Product::run`; no side is longer than [`TINY`].
#[inline(always)]
unsafe fn tiny<T: Ring>(x: &Matrices) {
    let (mut a, mut b, mut c) = ([[T::ZERO; TINY]; TINY], [[T::ZERO; TINY]; TINY], [[T::ZERO; TINY]; TINY]);
    // SAFETY: by the contract.
    unsafe {
        for p in 0..x.k {
            for i in 0..x.m {
                a[p][i] = *x.a.cast::<T>().offset(i as isize * x.a_strides[0] + p as isize * x.a_strides[1]);
            }
            for j in 0..x.n {
                b[p][j] = *x.b.cast::<T>().offset(p as isize * x.b_strides[0] + j as isize * x.b_strides[1]);
            }
        }
        for i in 0..if x.adds { x.m } else { 0 } {
            c[i][..x.n].copy_from_slice(std::slice::from_raw_parts(x.c.cast::<T>().add(i * x.c_row), x.n));
        }
        for (a, b) in a.iter().zip(&b).take(x.k) {
            for i in 0..TINY {
                for j in 0..TINY {
                    c[i][j] = c[i][j].add_product(a[i], b[j]);
                }
            }
        }
        for i in 0..x.m {
            x.c.cast::<T>().add(i * x.c_row).copy_from_nonoverlapping(c[i].as_ptr(), x.n);
        }
    }
}
/// Products of `count` pairs of dense matrices that lie one after the other.
type BatchesFn = unsafe fn(a: *const u8, b: *const u8, c: *mut u8, count: usize);
pub trait Batches {
    /// # Safety
    /// All three hold `count` matrices.
    unsafe fn run(a: *const u8, b: *const u8, c: *mut u8, count: usize);
}
tiers!(pick_batches, Batches, fn(a: *const u8, b: *const u8, c: *mut u8, count: usize));
/// The product of matrices `M` by `K` and `K` by `N`, each in registers.
struct Exact<T, const M: usize, const K: usize, const N: usize>(std::marker::PhantomData<T>);
impl<T: Ring, const M: usize, const K: usize, const N: usize> Batches for Exact<T, M, K, N> {
    #[inline(always)]
    unsafe fn run(a: *const u8, b: *const u8, c: *mut u8, count: usize) {
        let (a, b, c) = (a.cast::<[[T; K]; M]>(), b.cast::<[[T; N]; K]>(), c.cast::<[[T; N]; M]>());
        for at in 0..count {
            // SAFETY: by the contract.
            let (a, b) = unsafe { (a.add(at).read(), b.add(at).read()) };
            let mut sums = [[T::ZERO; N]; M];
            for p in 0..K {
                for i in 0..M {
                    for j in 0..N {
                        sums[i][j] = sums[i][j].add_product(a[i][p], b[p][j]);
                    }
                }
            }
            // SAFETY: by the contract.
            unsafe { c.add(at).write(sums) }
        }
    }
}
/// The function for batches of small dense matrices of these sizes, if there is one.
fn exact(d: &Dot, lane: Lane, tier: Tier) -> Option<BatchesFn> {
    let dense = |n: [usize; 3], s: [i64; 3]| {
        let want = [(n[1] * n[2]) as i64, n[2] as i64, 1];
        (0..3).all(|k| n[k] == 1 || s[k] == want[k])
    };
    if !dense([d.b, d.m, d.k], d.lhs) || !dense([d.b, d.k, d.n], d.rhs) {
        return None;
    }
    fn of<T: Ring>(size: [usize; 3], t: Tier) -> Option<BatchesFn> {
        Some(match size {
            [2, 2, 2] => pick_batches::<Exact<T, 2, 2, 2>>(t),
            [3, 3, 3] => pick_batches::<Exact<T, 3, 3, 3>>(t),
            [4, 4, 4] => pick_batches::<Exact<T, 4, 4, 4>>(t),
            [2, 2, 1] => pick_batches::<Exact<T, 2, 2, 1>>(t),
            [3, 3, 1] => pick_batches::<Exact<T, 3, 3, 1>>(t),
            [4, 4, 1] => pick_batches::<Exact<T, 4, 4, 1>>(t),
            _ => return None,
        })
    }
    match lane {
        Lane::F32 => of::<f32>([d.m, d.k, d.n], tier),
        Lane::F64 => of::<f64>([d.m, d.k, d.n], tier),
        _ => None,
    }
}
/// `W` columns from the `j`-th on.
///
/// # Safety
/// As `Product::run`; the columns lie inside.
#[inline(always)]
unsafe fn columns<T: Ring, const W: usize>(x: &Matrices, j: usize) {
    let mut i = 0;
    // SAFETY: by the contract.
    unsafe {
        while i + 4 <= x.m {
            square::<T, 4, W>(x, i, j);
            i += 4;
        }
        while i < x.m {
            square::<T, 1, W>(x, i, j);
            i += 1;
        }
    }
}
/// # Safety
/// As `Product::run`; rows and columns lie inside.
#[inline(always)]
unsafe fn square<T: Ring, const R: usize, const W: usize>(x: &Matrices, i: usize, j: usize) {
    // SAFETY: by the contract.
    unsafe {
        let a = x.a.cast::<T>().offset(i as isize * x.a_strides[0]);
        let b = x.b.cast::<T>().offset(j as isize * x.b_strides[1]);
        let c = x.c.cast::<T>().add(i * x.c_row + j);
        let mut s = [[T::ZERO; W]; R];
        if x.adds {
            for r in 0..R {
                s[r] = c.add(r * x.c_row).cast::<[T; W]>().read();
            }
        }
        for p in 0..x.k as isize {
            let from = b.offset(p * x.b_strides[0]);
            let mut y = [T::ZERO; W];
            if x.b_strides[1] == 1 {
                y = from.cast::<[T; W]>().read();
            } else {
                for (w, y) in y.iter_mut().enumerate() {
                    *y = *from.offset(w as isize * x.b_strides[1]);
                }
            }
            for r in 0..R {
                let l = *a.offset(r as isize * x.a_strides[0] + p * x.a_strides[1]);
                for w in 0..W {
                    s[r][w] = s[r][w].add_product(l, y[w]);
                }
            }
        }
        for r in 0..R {
            c.add(r * x.c_row).cast::<[T; W]>().write(s[r]);
        }
    }
}

/// The dtype sums are taken in.
fn accumulator(d: &Dot) -> DType {
    let wide = d.dtype == DType::F64 || d.out == DType::F64;
    match (d.dtype.is_float() || d.out.is_float(), d.out.lane()) {
        (true, _) if wide => DType::F64,
        (true, _) => DType::F32,
        (_, _) if d.out == DType::Bool => DType::Bool,
        (_, lane) => lane,
    }
}

/// The function for products of integers of 16 bits at most: those of two terms fit a sum, and wrapping sums take any order.
fn of_pairs(d: &Dot, sums: Lane, strategy: DotStrategy, tier: Tier) -> Option<panel::Rows> {
    let fits = matches!(d.dtype, DType::I8 | DType::U8 | DType::I16) && matches!(sums, Lane::I32 | Lane::U32);
    let panels = matches!(strategy, DotStrategy::Panels | DotStrategy::BlockedPanels);
    if fits && panels { panel::pick_pairs(tier) } else { None }
}

/// A kernel that reads an operand by strides and gives it dense, at another dtype; with two neighbours along `paired` side by side, of which the
/// last one's is zero if it has none.
fn packing(dims: [usize; 3], strides: [i64; 3], from: DType, to: DType, paired: Option<usize>) -> Kernel {
    let n: usize = dims.iter().product();
    let span = if n == 0 {
        0
    } else {
        1 + dims.iter().zip(strides).map(|(n, s)| (n - 1) * s.unsigned_abs() as usize).sum::<usize>()
    };
    let (mut grid, mut at, mut guards) = (dims.to_vec(), strides.to_vec(), SmallVec::new());
    if let Some(axis) = paired {
        grid[axis] = dims[axis].div_ceil(2);
        at[axis] *= 2;
        grid.push(2);
        at.push(strides[axis]);
        if dims[axis] % 2 == 1 {
            let index = [0, 1, 2, 3].map(|k| if k == axis { 2 } else { (k == 3) as i64 });
            guards.push(Guard { at: Affine::new(0, index), lo: 0, hi: dims[axis] as i64 });
        }
    }
    let load = Node::Load(Box::new(Access { input: 0, at: Affine::new(0, at), guards, fill: Scalar::zero(from) }));
    Kernel {
        grid: grid[..].into(),
        inputs: vec![(from, span)],
        nodes: vec![(from, load), (to, Node::Convert(0))],
        outputs: vec![1],
        ..Kernel::default()
    }
}

/// A batch of products `[m, k] x [k, n]`.
struct MatrixProduct {
    d: Dot,
    strategy: DotStrategy,
    /// Bytes of a sum.
    size: usize,
    /// Functions of loops or panels, and of batches in registers.
    rows: panel::Rows,
    exact: Option<BatchesFn>,
    /// Kernels that copy the operands first, where that is needed, and the kernel that converts the
    /// sums.
    pack: [Option<CompiledKernel>; 2],
    unpack: Option<CompiledKernel>,
    /// The strides of the operands as they are multiplied, and the number of terms.
    strides: [[isize; 3]; 2],
    terms: usize,
    cost: Cost,
}

pub fn compile(d: &Dot, target: &Target) -> Res<Run> {
    let (tier, tuning, acc, d) = (target.tier, &target.tuning.dot, accumulator(d), d.clone());
    let (lane, strategy) = (Lane::of(acc), pick(&d, tier, tuning));
    match strategy {
        DotStrategy::MatrixVector => return vector::compile(&d, lane.size(), tier),
        DotStrategy::Reduction => return reduction(&d, acc, tier),
        _ => (),
    }
    let (lhs, rhs) = ([d.b, d.m, d.k], [d.b, d.k, d.n]);
    // For matrices that are long enough both ways, the library computes the same sums from either layout; others must be passed in one.
    let either = d.m >= tuning.min_library_side && d.n >= tuning.min_library_side && d.k > 2;
    // The stride of a size-1 axis is irrelevant.
    let dense = |n: [usize; 3], s: [i64; 3]| {
        let rows = s[2] == 1 && s[1] >= n[2] as i64;
        let columns = s[1] == 1 && s[2] >= n[1] as i64;
        n[1] > 1 && n[2] > 1 && (rows || either && columns)
    };
    let pairs = of_pairs(&d, lane, strategy, tier);
    let pack = |n: [usize; 3], s: [i64; 3], terms: usize| -> Res<Option<CompiledKernel>> {
        let as_is = d.dtype == acc && (strategy != DotStrategy::Library || dense(n, s));
        let (to, paired) = if pairs.is_some() { (DType::I16, Some(terms)) } else { (acc, None) };
        if as_is { Ok(None) } else { CompiledKernel::new(&packing(n, s, d.dtype, to, paired), false, tier).map(Some) }
    };
    let pack = [pack(lhs, d.lhs, 2)?, pack(rhs, d.rhs, 1)?];
    let sums = packing([d.b, d.m, d.n], [(d.m * d.n) as i64, d.n as i64, 1], acc, d.out, None);
    let unpack = if acc == d.out { None } else { Some(CompiledKernel::new(&sums, false, tier)?) };
    let loops = matches!(strategy, DotStrategy::Loops | DotStrategy::Registers);
    let each = match strategy {
        DotStrategy::Library => 0.03,
        DotStrategy::Loops | DotStrategy::Registers => 0.2,
        _ => NANOS * pairs.map_or(1.0, |_| 0.3),
    };
    let strides = |packed: bool, n: [usize; 3], s: [i64; 3]| {
        if packed { [(n[1] * n[2]) as isize, n[2] as isize, 1] } else { s.map(|x| x as isize) }
    };
    let terms = if pairs.is_some() { d.k.div_ceil(2) } else { d.k };
    let (lhs, rhs) = ([d.b, d.m, terms], [d.b, terms, d.n]);
    let work = d.b.saturating_mul(d.m).saturating_mul(d.n).saturating_mul(d.k);
    Ok(Box::new(MatrixProduct {
        strategy,
        size: lane.size(),
        rows: pairs.unwrap_or_else(|| rows_function(lane, loops, tier)),
        terms,
        exact: match strategy {
            DotStrategy::Registers => exact(&d, lane, tier),
            _ => None,
        },
        strides: [strides(pack[0].is_some(), lhs, d.lhs), strides(pack[1].is_some(), rhs, d.rhs)],
        pack,
        unpack,
        cost: Cost::of(work as f64 * each),
        d,
    }))
}
impl CompiledRoutine for MatrixProduct {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        let d = &self.d;
        if d.b * d.m * d.n == 0 {
            return Ok(());
        }
        let (_l, a) = self.packed(0, d.b * d.m * self.terms, bases, parallel)?;
        let (_r, b) = self.packed(1, d.b * self.terms * d.n, bases, parallel)?;
        let sums = self.unpack.as_ref().map(|_| Block::new(d.b * d.m * d.n * self.size)).transpose()?;
        let c = sums.as_ref().map_or(bases.output(0), |s| s.ptr());
        let (one, cost) = (DotPtrs { a, b, c }, parallel.then_some(&self.cost));
        match (self.strategy, self.exact) {
            (_, Some(f)) => self.run_in_registers(f, &one, cost, bases.cancel),
            #[cfg(feature = "gemm")]
            (DotStrategy::Library, _) => self.run_library(&one, cost, bases.cancel),
            _ => self.run_parts(&one, cost, bases.cancel)?,
        }
        if let (Some(u), Some(s)) = (&self.unpack, &sums) {
            // SAFETY: `sums` has b * m * n elements of the accumulator's size, and the result as
            // many (verify, sizes), as `packing` states.
            unsafe { u.run(Bases { ptrs: &[s.ptr(), bases.output(0)], ins: &[0], outs: &[1], ..bases }, parallel) }?;
        }
        Ok(())
    }
    fn text(&self) -> String {
        let strategy = match self.strategy {
            DotStrategy::MatrixVector | DotStrategy::Reduction => unreachable!("these are other routines"),
            DotStrategy::Registers => "registers",
            DotStrategy::Loops if self.d.m.max(self.d.n).max(self.d.k) <= TINY => "loops of=tiny",
            DotStrategy::Loops => "loops",
            DotStrategy::Panels => "panels",
            DotStrategy::BlockedPanels => "blocked_panels",
            DotStrategy::Library => "library",
        };
        let names = [(&self.pack[0], " packs=lhs"), (&self.pack[1], " packs=rhs"), (&self.unpack, " converts=sums")];
        let steps: String = names.iter().filter(|(k, _)| k.is_some()).map(|(_, name)| *name).collect();
        let of = if self.terms < self.d.k { " of=pairs" } else { "" };
        format!("dot strategy={strategy}{of}{steps}")
    }
}
impl MatrixProduct {
    /// The operand `which` in the product's layout: a copy of so many elements, or the operand in
    /// place.
    fn packed(&self, which: u32, n: usize, bases: Bases, parallel: bool) -> Res<(Option<Block>, *const u8)> {
        let src = bases.input(which);
        let Some(p) = &self.pack[which as usize] else { return Ok((None, src)) };
        let b = Block::new(n * self.size)?;
        // SAFETY: `Routine::verify`: the operand reaches as far as its strides say, which is the
        // length that `packing` states; the block has an element for each of `n`.
        unsafe { p.run(Bases { ptrs: &[src, b.ptr()], ins: &[0], outs: &[1], ..bases }, parallel) }?;
        let ptr = b.ptr().cast_const();
        Ok((Some(b), ptr))
    }
    fn run_in_registers(&self, f: BatchesFn, one: &DotPtrs, cost: Option<&Cost>, cancel: &AtomicBool) {
        let (d, size) = (&self.d, self.size);
        let from = |p: *const u8, at: usize, elements: usize| p.wrapping_add(at * elements * size);
        threads::for_ranges(d.b, cost, cancel, &|r| {
            let (a, b) = (from(one.a(), r.start, d.m * d.k), from(one.b(), r.start, d.k * d.n));
            let c = one.c().wrapping_add(r.start * d.m * d.n * size);
            // SAFETY: operands that are dense, and a dense result, of which these matrices are this thread's.
            unsafe { f(a, b, c, r.len()) }
        });
    }
    /// Operands and result of one of the batch.
    fn matrices(&self, one: &DotPtrs, batch: usize) -> Matrices {
        let (d, size, [l, r]) = (&self.d, self.size, self.strides);
        let at = |stride: isize| batch as isize * stride * size as isize;
        Matrices {
            a: one.a().wrapping_offset(at(l[0])),
            b: one.b().wrapping_offset(at(r[0])),
            c: one.c().wrapping_add(batch * d.m * d.n * size),
            m: d.m,
            n: d.n,
            k: self.terms,
            a_strides: [l[1], l[2]],
            b_strides: [r[1], r[2]],
            c_row: d.n,
            adds: false,
            scratch: std::ptr::null_mut(),
            blocks: std::ptr::null_mut(),
        }
    }
    /// Rows of the whole batch, shared by threads; or columns where they are more, so that each is packed once.
    fn run_parts(&self, one: &DotPtrs, cost: Option<&Cost>, cancel: &AtomicBool) -> Res<()> {
        let (d, size, [l, r]) = (&self.d, self.size, self.strides);
        let (by_rows, step) = match self.strategy {
            DotStrategy::BlockedPanels => panel::part_of_large(d.m, d.n, r[2] != 1, threads::num_threads()),
            DotStrategy::Panels if d.m < d.n => (false, COLUMNS),
            _ => (true, 1),
        };
        let along = if by_rows { d.m } else { d.n };
        let units = along.div_ceil(step);
        let memory = match self.strategy {
            DotStrategy::BlockedPanels => panel::MEMORY + panel::BLOCKS,
            DotStrategy::Panels => panel::MEMORY,
            _ => 0,
        };
        let multiply = |range: Range<usize>, scratch: *mut u8| {
            let mut at = range.start;
            while at < range.end {
                let (batch, unit) = (at / units, at % units);
                let count = (units - unit).min(range.end - at);
                let from = unit * step;
                let part = (count * step).min(along - from);
                let (i, m, j, n) = if by_rows { (from, part, 0, d.n) } else { (0, d.m, from, part) };
                let offset = |n: usize, stride: isize| n as isize * stride * size as isize;
                let x = self.matrices(one, batch);
                let x = Matrices {
                    a: x.a.wrapping_offset(offset(i, l[1])),
                    b: x.b.wrapping_offset(offset(j, r[2])),
                    c: x.c.wrapping_add((i * d.n + j) * size),
                    m,
                    n,
                    scratch,
                    blocks: match self.strategy {
                        DotStrategy::BlockedPanels => scratch.wrapping_add(panel::MEMORY),
                        _ => std::ptr::null_mut(),
                    },
                    ..x
                };
                // SAFETY: i + m and j + n stay within d.m and d.n, and `Routine::verify` found the greatest positions of those inside the
                // operands (packed ones are dense); the result is dense, and these rows or columns of it are this thread's.
                unsafe { (self.rows)(&x) };
                at += count;
            }
        };
        threads::try_ranges(d.b * units, cost, cancel, &|r| Scratch.with(memory, |scratch| multiply(r, scratch)))
    }
    #[cfg(feature = "gemm")]
    fn run_library(&self, one: &DotPtrs, cost: Option<&Cost>, cancel: &AtomicBool) {
        // SAFETY: as in `run_parts`, for whole elements of the batch.
        unsafe { library::products(self.d.b, self.size, cost, cancel, &|batch| self.matrices(one, batch)) };
    }
}

/// Pointers that threads share; each writes its own part of c: units of `for_ranges` are rows or columns that no other unit has.
struct DotPtrs {
    a: *const u8,
    b: *const u8,
    c: *mut u8,
}
// SAFETY: see above.
unsafe impl Sync for DotPtrs {}
impl DotPtrs {
    fn a(&self) -> *const u8 {
        self.a
    }
    fn b(&self) -> *const u8 {
        self.b
    }
    fn c(&self) -> *mut u8 {
        self.c
    }
}

/// A matrix times a vector, as a reduction.
fn reduction(d: &Dot, acc: DType, tier: Tier) -> Res<Run> {
    let operands = ferrax_kernel::Routine::Dot(d.clone()).operands();
    let load = |input: u32, strides: [i64; 4]| {
        (
            d.dtype,
            Node::Load(Box::new(Access {
                input,
                at: Affine::new(0, strides),
                guards: SmallVec::new(),
                fill: Scalar::zero(d.dtype),
            })),
        )
    };
    let nodes = vec![
        load(0, [d.lhs[0], d.lhs[1], 0, d.lhs[2]]),
        load(1, [d.rhs[0], 0, d.rhs[2], d.rhs[1]]),
        (acc, Node::Convert(0)),
        (acc, Node::Convert(1)),
        (acc, Node::Bin(Bin::Mul, 2, 3)),
        (acc, Node::Reduce { kind: ReduceKind::Sum, of: 4 }),
        (d.out, Node::Convert(5)),
    ];
    let k = Kernel { grid: [d.b, d.m, d.n].into(), rdims: [d.k].into(), inputs: operands, nodes, outputs: vec![6] };
    Ok(Box::new(VectorReduction(CompiledKernel::new(&k, false, tier)?)))
}
struct VectorReduction(CompiledKernel);
impl CompiledRoutine for VectorReduction {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        // SAFETY: the kernel's inputs are `Routine::operands`, its grid is the result's; so verify,
        // sizes and disjoint, apply to it as well.
        unsafe { self.0.run(bases, parallel) }
    }
    fn text(&self) -> String {
        "dot strategy=reduction".into()
    }
}
