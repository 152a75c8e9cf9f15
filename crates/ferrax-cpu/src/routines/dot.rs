//! Batched matrix products.
//!
//! Which algorithm runs is decided by sizes, dtypes and the machine alone: a vector on either side is [`super::vector`]'s, two of them, or
//! one of another dtype than the sums', are a reduction in the waist's order, small products and those of wide integers are loops that sum in sequence, the rest runs in [`super::panel`]. Machines without what
//! that needs have the library's GEMM, called in one layout (operands of another layout are packed first). So layout and threads
//! change no bits.
/// What multiplies where panels have no code for the machine; without it loops do.
#[cfg(feature = "gemm")]
mod library;

use super::panel::Matrices;
use super::{Run, panel, vector};
use crate::kernels::block::tiers;
use crate::kernels::lane::Lane;
use crate::kernels::{Bases, CompiledKernel, Scratch};
use crate::memory::Block;
use crate::threads::{self, Cost};
use crate::tier::Tier;
use ferrax_kernel::kernel::Access;
use ferrax_kernel::routine::Dot;
use ferrax_kernel::{Affine, Bin, DType, Kernel, Node, ReduceKind, Res, Scalar};
use smallvec::SmallVec;

/// What a multiplication takes where there are many.
pub const NANOS: f64 = 0.016;
/// Products up to this many multiplications are done by a plain loop where there are no panels.
const SMALL: usize = 8192;
/// Columns that stay together: a multiple of every panel's.
const COLUMNS: usize = 64;
/// Up to this many they are wherever; a matrix times a vector, too.
pub const SHORT: usize = 512;
/// Whether a product of so many multiplications is done by a plain loop, which sums in sequence.
pub fn is_small(work: usize, lane: Lane, tier: Tier) -> bool {
    work <= if panel::pick(lane, tier).is_some() { SHORT } else { SMALL }
}

pub trait Product {
    /// # Safety
    /// The strides stay inside the operands, `c` holds m rows of n, and `scratch` is as stated.
    unsafe fn run(x: &Matrices);
}
tiers!(pick_product, Product, fn(x: &Matrices));

/// What multiplies: panels where they are worth it, else plain loops.
pub fn pick(lane: Lane, small: bool, tier: Tier) -> panel::Rows {
    let panels = if small { None } else { panel::pick(lane, tier) };
    panels.unwrap_or_else(|| match lane {
        Lane::F32 => pick_product::<Loops<f32>>(tier),
        Lane::F64 => pick_product::<Loops<f64>>(tier),
        Lane::I32 | Lane::U32 => pick_product::<Loops<u32>>(tier),
        Lane::I64 | Lane::U64 => pick_product::<Loops<u64>>(tier),
        Lane::Bool => pick_product::<Loops<u8>>(tier),
    })
}

/// Rows and columns from which the library's sums do not depend on an operand's layout.
const LONG: usize = 32;

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
/// Of `M` by `K` and `K` by `N`, each in registers.
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

/// A kernel that reads an operand by strides and gives it dense, at another dtype.
fn packing(dims: [usize; 3], strides: [i64; 3], from: DType, to: DType) -> Kernel {
    let n: usize = dims.iter().product();
    let span = if n == 0 {
        0
    } else {
        1 + dims.iter().zip(strides).map(|(n, s)| (n - 1) * s.unsigned_abs() as usize).sum::<usize>()
    };
    let load = Node::Load(Box::new(Access {
        input: 0,
        at: Affine::new(0, strides),
        guards: SmallVec::new(),
        fill: Scalar::zero(from),
    }));
    Kernel {
        grid: dims.into(),
        inputs: vec![(from, span)],
        nodes: vec![(from, load), (to, Node::Convert(0))],
        outputs: vec![1],
        ..Kernel::default()
    }
}

pub fn compile(d: &Dot, tier: Tier) -> Res<Run> {
    let acc = accumulator(d);
    let d = d.clone();
    // Size-1 axes have no stride to speak of.
    let (lhs, rhs) = ([d.b, d.m, d.k], [d.b, d.k, d.n]);
    if (d.m == 1 || d.n == 1) && d.m * d.n * d.k > SHORT && acc.is_float() {
        let plain = d.dtype == acc && d.out == acc && d.m * d.n > 1;
        return if plain { vector::compile(&d, Lane::of(acc).size(), tier) } else { reduction(&d, acc, tier) };
    }
    let work = d.b.saturating_mul(d.m).saturating_mul(d.n).saturating_mul(d.k);
    let lane = Lane::of(acc);
    let size = lane.size();
    let short = is_small(d.m * d.n * d.k, lane, tier);
    let panels = if short { None } else { panel::pick(lane, tier) };
    let small = short || panels.is_none() && !acc.is_float();
    let rows_apart = small || panels.is_some() || cfg!(not(feature = "gemm"));
    // Of matrices that are long enough both ways, the library takes either layout to the same sums; others it must get in one.
    let either = d.m >= LONG && d.n >= LONG && d.k > 2;
    let dense = |n: [usize; 3], s: [i64; 3]| {
        let rows = s[2] == 1 && s[1] >= n[2] as i64;
        let columns = s[1] == 1 && s[2] >= n[1] as i64;
        n[1] > 1 && n[2] > 1 && (rows || either && columns)
    };
    let pack = |n: [usize; 3], s: [i64; 3]| -> Res<Option<CompiledKernel>> {
        let as_is = d.dtype == acc && (rows_apart || dense(n, s));
        if as_is { Ok(None) } else { CompiledKernel::new(&packing(n, s, d.dtype, acc), false, tier).map(Some) }
    };
    let (pack_l, pack_r) = (pack(lhs, d.lhs)?, pack(rhs, d.rhs)?);
    let unpack = if acc == d.out {
        None
    } else {
        Some(CompiledKernel::new(
            &packing([d.b, d.m, d.n], [(d.m * d.n) as i64, d.n as i64, 1], acc, d.out),
            false,
            tier,
        )?)
    };
    let product = pick(lane, small, tier);
    let exact = if small && d.dtype == acc { exact(&d, lane, tier) } else { None };
    let each = match rows_apart {
        true if small => 0.2,
        true => NANOS,
        false => 0.03,
    };
    let cost = Cost::of(work as f64 * each);
    let strides = |packed: bool, n: [usize; 3], s: [i64; 3]| {
        if packed { [(n[1] * n[2]) as isize, n[2] as isize, 1] } else { s.map(|x| x as isize) }
    };
    let (ls, rs) = (strides(pack_l.is_some(), lhs, d.lhs), strides(pack_r.is_some(), rhs, d.rhs));
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        if d.b * d.m * d.n == 0 {
            return Ok(());
        }
        let packed = |p: &Option<CompiledKernel>, n: [usize; 3], which: u32| -> Res<(Option<Block>, *const u8)> {
            let src = bases.input(which);
            let Some(p) = p else { return Ok((None, src)) };
            let b = Block::new(n.iter().product::<usize>() * size)?;
            // SAFETY: `Routine::verify`: the operand reaches as far as its strides, which is what `packing` states as its length; the block has
            // an element for each of `n`.
            unsafe { p.run(Bases { ptrs: &[src, b.ptr()], ins: &[0], outs: &[1], ..bases }, parallel) }?;
            let ptr = b.ptr().cast_const();
            Ok((Some(b), ptr))
        };
        let (_l, a) = packed(&pack_l, lhs, 0)?;
        let (_r, b) = packed(&pack_r, rhs, 1)?;
        let sums = unpack.as_ref().map(|_| Block::new(d.b * d.m * d.n * size)).transpose()?;
        let c = sums.as_ref().map_or(bases.output(0), |s| s.ptr());
        let one = DotPtrs { a, b, c };
        if let Some(f) = exact {
            let from = |p: *const u8, at: usize, elements: usize| p.wrapping_add(at * elements * size);
            threads::for_ranges(d.b, parallel.then_some(&cost), bases.cancel, &|r| {
                let (a, b) = (from(one.a(), r.start, d.m * d.k), from(one.b(), r.start, d.k * d.n));
                let c = one.c().wrapping_add(r.start * d.m * d.n * size);
                // SAFETY: operands that are dense, and a dense result, of which these matrices are this thread's.
                unsafe { f(a, b, c, r.len()) }
            });
        } else if rows_apart {
            // Rows of all batch elements in parallel; or columns where they are more, so that each is packed once.
            let large = panels.is_some() && panel::is_large(d.m, d.n, d.k);
            let by_rows = small || d.m >= d.n;
            let (by_rows, step) = match large {
                true => panel::part_of_large(d.m, d.n, rs[2] != 1, threads::num_threads()),
                false => (by_rows, if by_rows { 1 } else { COLUMNS }),
            };
            let along = if by_rows { d.m } else { d.n };
            let units = along.div_ceil(step);
            let memory = match panels {
                Some(_) if large => panel::MEMORY + panel::BLOCKS,
                Some(_) => panel::MEMORY,
                None => 0,
            };
            let multiply = |r: std::ops::Range<usize>, scratch: *mut u8| {
                let mut at = r.start;
                while at < r.end {
                    let (batch, unit) = (at / units, at % units);
                    let count = (units - unit).min(r.end - at);
                    let from = unit * step;
                    let part = (count * step).min(along - from);
                    let (i, m, j, n) = if by_rows { (from, part, 0, d.n) } else { (0, d.m, from, part) };
                    let to = |strides: [isize; 3], row: usize, column: usize| {
                        (batch as isize * strides[0] + row as isize * strides[1] + column as isize * strides[2])
                            * size as isize
                    };
                    let x = Matrices {
                        a: one.a().wrapping_offset(to(ls, i, 0)),
                        b: one.b().wrapping_offset(to(rs, 0, j)),
                        c: one.c().wrapping_add(((batch * d.m + i) * d.n + j) * size),
                        m,
                        n,
                        k: d.k,
                        a_strides: [ls[1], ls[2]],
                        b_strides: [rs[1], rs[2]],
                        c_row: d.n,
                        adds: false,
                        scratch,
                        blocks: if large { scratch.wrapping_add(panel::MEMORY) } else { std::ptr::null_mut() },
                    };
                    // SAFETY: i + m and j + n stay within d.m and d.n, and `Routine::verify` found the greatest positions of those inside the
                    // operands (packed ones are dense); the result is dense, and these rows or columns of it are this thread's.
                    unsafe { product(&x) };
                    at += count;
                }
            };
            threads::try_ranges(d.b * units, parallel.then_some(&cost), bases.cancel, &|r| {
                Scratch.with(memory, |scratch| multiply(r, scratch))
            })?;
        }
        #[cfg(feature = "gemm")]
        if !rows_apart {
            let matrices = |batch: usize| {
                let at = |s: [isize; 3]| batch as isize * s[0] * size as isize;
                Matrices {
                    a: one.a().wrapping_offset(at(ls)),
                    b: one.b().wrapping_offset(at(rs)),
                    c: one.c().wrapping_add(batch * d.m * d.n * size),
                    m: d.m,
                    n: d.n,
                    k: d.k,
                    a_strides: [ls[1], ls[2]],
                    b_strides: [rs[1], rs[2]],
                    c_row: d.n,
                    adds: false,
                    scratch: std::ptr::null_mut(),
                    blocks: std::ptr::null_mut(),
                }
            };
            // SAFETY: as above, for whole batch elements.
            unsafe { library::products(d.b, size, parallel.then_some(&cost), bases.cancel, &matrices) };
        }
        if let (Some(u), Some(s)) = (&unpack, &sums) {
            // SAFETY: `sums` has b * m * n elements of the accumulator's size, and the result as many (verify, sizes): what `packing` states.
            unsafe { u.run(Bases { ptrs: &[s.ptr(), bases.output(0)], ins: &[0], outs: &[1], ..bases }, parallel) }?;
        }
        Ok(())
    }))
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
    let k = CompiledKernel::new(&k, false, tier)?;
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        // SAFETY: the kernel's inputs are `Routine::operands`, its grid is the result's; so verify, sizes and apart, holds for it as well.
        unsafe { k.run(bases, parallel) }
    }))
}
