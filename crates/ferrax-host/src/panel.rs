//! Matrix products: tiles of the result stay in registers during the loop over k.
//!
//! The right operand is processed in panels of two vectors' width, packed if its rows are not contiguous. The left one is read
//! element by element, in any layout. So there is no preparation that only a large product would repay. A large product goes block by block:
//! a block of the right operand is packed as panels, which stay in the outer cache, and a block of the left one is copied next to it.
//!
//! INVARIANT: each element is `a[0] b[0]`, to which the further products are added by fused multiply-add in increasing k, starting from
//! zero. Bits depend on nothing else: not on layout, tile, threads or vector width. This module is not used on a machine without fused
//! multiply-add.
#![allow(unsafe_code)]
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::tier::Tier;
use ferrax_kernel::DType;

/// `c[m, n] = sum_k a[m, k] b[k, n]` for one batch element or a part of it, strided operands, dense rows.
#[derive(Clone, Copy)]
pub struct Matrices {
    pub a: *const u8,
    pub b: *const u8,
    pub c: *mut u8,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a_strides: [isize; 2],
    pub b_strides: [isize; 2],
    /// From row to row of c.
    pub c_row: usize,
    /// Whether the product is added to what c holds: it goes on where another ended.
    pub adds: bool,
    /// For panels: [`MEMORY`] bytes, 64-byte aligned, that nothing else uses.
    pub scratch: *mut u8,
    /// Of a large product: [`BLOCKS`] bytes like these; else null.
    pub blocks: *mut u8,
}
/// `rows` of `x.c` from `from` on.
pub type Rows = unsafe fn(x: &Matrices);
/// The same for a right operand whose row k begins `table[k]` elements behind `x.b`: rows may overlap. `x.b_strides` and `x.adds` are ignored.
pub type RowsByTable = unsafe fn(x: &Matrices, table: &[i32]);
/// Elements behind each row of the right operand of [`RowsByTable`] that are read and multiplied, but not used.
pub const SLACK: usize = 32;

/// Terms that a panel holds; longer sums continue from the content of the result.
pub const DEPTH: usize = 512;

/// Bytes that `Matrices::scratch` has: a tile and a panel of the widest vectors.
pub const MEMORY: usize = (8 + DEPTH) * 32 * 4;

/// Terms, rows and panels of a block.
const BLOCK_DEPTH: usize = 256;
const BLOCK_ROWS: usize = 128;
const BLOCK_PANELS: usize = 16;
/// Bytes that `Matrices::blocks` has: panels of the widest vectors, and rows of the largest elements.
pub const BLOCKS: usize =
    BLOCK_PANELS * (BLOCK_DEPTH * 128 + PANEL_PADDING) + (BLOCK_DEPTH + PADDING) * (BLOCK_ROWS + PADDING) * 8;
/// Elements between the lines of a block, and bytes between its panels.
const PADDING: usize = 8;
const PANEL_PADDING: usize = 128;
/// Bytes of a right operand from which panels prefetch the next panel's rows: hardware prefetchers do not detect the pattern.
const MIN_PREFETCHED_BYTES: usize = 512 << 10;
/// Whether a product is done block by block: operands are used often enough to be packed, and leave the nearest cache.
pub fn is_large(m: usize, n: usize, k: usize) -> bool {
    m >= 64 && n >= 128 && k >= 64 && m.saturating_mul(n).saturating_mul(k) >= 1 << 23
}

/// How a large product is cut for some threads: whether by rows, and how many rows or columns a part has. Each part packs its blocks anew,
/// which pays only for enough of the other operand; columns of the right operand that are contiguous are slow to pack, so each is packed once.
pub fn part_of_large(m: usize, n: usize, is_by_columns: bool, threads: usize) -> (bool, usize) {
    /// Parts for each thread, so that no thread waits long for another.
    const PARTS: usize = 2;
    let part = |all: usize, least: usize| all.div_ceil(PARTS * threads).max(least).next_multiple_of(32);
    let by_rows = 2 * m >= n && !is_by_columns;
    (by_rows, if by_rows { part(m, BLOCK_ROWS) } else { part(n, 128) })
}

/// The function for sums of a dtype, if products are done here on this machine.
pub fn pick(sums: DType, tier: Tier) -> Option<Rows> {
    #[cfg(target_arch = "x86_64")]
    {
        use self::x86::*;
        // Tiers share the fused operation, or they would not share bits.
        if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
            return None;
        }
        Some(match (tier, sums) {
            (Tier::Avx512, DType::F32) => wide_f32,
            (Tier::Avx512, DType::F64) => wide_f64,
            (Tier::Avx512, DType::I32 | DType::U32) => wide_i32,
            (_, DType::F32) => narrow_f32,
            (_, DType::F64) => narrow_f64,
            (_, DType::I32 | DType::U32) => narrow_i32,
            _ => return None,
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (sums, tier);
        None
    }
}

/// The function for 32-bit sums of products of 16-bit integers, if products are done here on this machine: a term is two of them, side by side.
pub fn pick_pairs(tier: Tier) -> Option<Rows> {
    pick(DType::I32, tier)?;
    #[cfg(target_arch = "x86_64")]
    return Some(if tier == Tier::Avx512 { x86::wide_pairs } else { x86::narrow_pairs });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// The function for floats whose right operand has its rows at places that a table gives, if products are done here on this machine.
pub fn pick_by_table(sums: DType, tier: Tier) -> Option<RowsByTable> {
    #[cfg(target_arch = "x86_64")]
    {
        use self::x86::*;
        pick(sums, tier)?;
        Some(match (tier, sums) {
            (Tier::Avx512, DType::F32) => wide_f32_by_table,
            (Tier::Avx512, DType::F64) => wide_f64_by_table,
            (_, DType::F32) => narrow_f32_by_table,
            (_, DType::F64) => narrow_f64_by_table,
            _ => return None,
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (sums, tier);
        None
    }
}

/// The function for floats of `size` bytes.
pub fn pick_float(size: usize, tier: Tier) -> Option<Rows> {
    pick(if size == 4 { DType::F32 } else { DType::F64 }, tier)
}

/// A vector of elements.
pub trait Vector: Copy {
    type Element: Copy + Default;
    const LANES: usize;
    /// # Safety
    /// The machine has these vectors.
    unsafe fn zero() -> Self;
    /// # Safety
    /// As `zero`; `LANES` elements at `p`.
    unsafe fn load(p: *const Self::Element) -> Self;
    /// # Safety
    /// As `load`.
    unsafe fn store(self, p: *mut Self::Element);
    /// # Safety
    /// As `zero`.
    unsafe fn splat(x: Self::Element) -> Self;
    /// `N` elements, repeated; N is a power of two, more than one and at most `LANES`.
    ///
    /// # Safety
    /// As `zero`; `N` elements at `p`.
    unsafe fn repeated<const N: usize>(p: *const Self::Element) -> Self;
    /// `self + a * b`, rounded once; of integers, wrapped.
    ///
    /// # Safety
    /// As `zero`.
    unsafe fn fused(self, a: Self, b: Self) -> Self;
}
/// A vector of numbers that can be subtracted and divided.
pub trait Divisible: Vector {
    /// `self - o`.
    ///
    /// # Safety
    /// As `zero`.
    unsafe fn less(self, o: Self) -> Self;
    /// `self / o`.
    ///
    /// # Safety
    /// As `zero`.
    unsafe fn over(self, o: Self) -> Self;
}

/// An `M` by `W * LANES` tile of the result, from zero or from what it holds so far.
///
/// # Safety
/// `a` has rows `0..M` and columns `0..k` at its strides; `W` vectors of row p of b, of k, lie at `row(p)`; `c` holds the tile.
#[inline(always)]
unsafe fn tile<V: Vector, const M: usize, const W: usize>(
    a: *const V::Element,
    a_strides: [isize; 2],
    row: impl Fn(usize) -> *const V::Element,
    k: usize,
    c: *mut V::Element,
    c_row: usize,
    goes_on: bool,
) {
    // SAFETY: by the contract.
    unsafe {
        let mut sum = [[V::zero(); W]; M];
        if goes_on {
            for i in 0..M {
                for w in 0..W {
                    sum[i][w] = V::load(c.add(i * c_row + w * V::LANES));
                }
            }
        }
        let mut a = a;
        for p in 0..k {
            let (from, mut y) = (row(p), [V::zero(); W]);
            for w in 0..W {
                y[w] = V::load(from.add(w * V::LANES));
            }
            for i in 0..M {
                let x = V::splat(*a.offset(i as isize * a_strides[0]));
                for w in 0..W {
                    sum[i][w] = sum[i][w].fused(x, y[w]);
                }
            }
            a = a.wrapping_offset(a_strides[1]);
        }
        for i in 0..M {
            for w in 0..W {
                sum[i][w].store(c.add(i * c_row + w * V::LANES));
            }
        }
    }
}

/// All of `x`.
///
/// # Safety
/// Operands and result are as `x` states, and the machine has these vectors.
#[inline(always)]
unsafe fn product<V: Vector, const M: usize>(x: &Matrices) {
    let most = 2 * V::LANES;
    let edge = M * most * size_of::<V::Element>();
    const {
        let row = 2 * V::LANES * size_of::<V::Element>();
        assert!(row.is_multiple_of(64) && (M + DEPTH) * row <= MEMORY);
    }
    if !x.blocks.is_null() {
        // SAFETY: by the contract.
        return unsafe { blocks::<V, M>(x) };
    }
    // SAFETY: the scratch memory has a tile and a panel, as was asserted.
    let (part, packed) = unsafe { (x.scratch.cast::<V::Element>(), x.scratch.add(edge).cast::<V::Element>()) };
    for from in (0..x.k.max(1)).step_by(DEPTH) {
        for j in (0..x.n).step_by(most) {
            // SAFETY: by the contract; depths and columns lie inside.
            unsafe { panel::<V, M>(x, from, j, part, packed) };
        }
    }
}

/// All of `x`, whose right operand has its rows at places that a table gives.
///
/// # Safety
/// As `product`; row k of b has [`SLACK`] elements behind the last column.
#[inline(always)]
unsafe fn product_by_table<V: Vector, const M: usize>(x: &Matrices, table: &[i32]) {
    let (a, b, c) = (x.a.cast::<V::Element>(), x.b.cast::<V::Element>(), x.c.cast::<V::Element>());
    let part = x.scratch.cast::<V::Element>();
    const { assert!(2 * V::LANES <= SLACK) };
    for j in (0..x.n).step_by(2 * V::LANES) {
        let columns = (2 * V::LANES).min(x.n - j);
        let one = columns <= V::LANES;
        let width = if one { V::LANES } else { 2 * V::LANES };
        let whole = columns == width;
        let row = |p: usize| b.wrapping_offset(table[p] as isize + j as isize);
        let mut i = 0;
        while i < x.m {
            let rows = together::<M>(x.m - i);
            // SAFETY: by the contract: rows and columns lie inside, and what is read behind them too; `part` holds a tile.
            unsafe {
                let a = a.offset(i as isize * x.a_strides[0]);
                let to = c.add(i * x.c_row + j);
                let (out, out_row) = if whole { (to, x.c_row) } else { (part, width) };
                macro_rules! run {
                    ($m:expr) => {
                        if one {
                            tile::<V, { $m }, 1>(a, x.a_strides, row, table.len(), out, out_row, false)
                        } else {
                            tile::<V, { $m }, 2>(a, x.a_strides, row, table.len(), out, out_row, false)
                        }
                    };
                }
                match rows {
                    4 => run!(4),
                    3 => run!(3),
                    2 => run!(2),
                    1 => run!(1),
                    _ => run!(M),
                }
                if !whole {
                    for r in 0..rows {
                        to.add(r * x.c_row).copy_from_nonoverlapping(part.add(r * width), columns);
                    }
                }
            }
            i += rows;
        }
    }
}

/// All of `x`, block by block.
///
/// # Safety
/// As `product`, with memory for blocks.
#[inline(always)]
unsafe fn blocks<V: Vector, const M: usize>(x: &Matrices) {
    let width = 2 * V::LANES;
    let size = size_of::<V::Element>();
    const { assert!(2 * V::LANES * size_of::<V::Element>() <= 128) };
    let (part, panels) = (x.scratch.cast::<V::Element>(), x.blocks.cast::<V::Element>());
    let (a, b, c) = (x.a.cast::<V::Element>(), x.b.cast::<V::Element>(), x.c.cast::<V::Element>());
    // SAFETY: depths, rows and columns lie inside the operands; blocks hold BLOCK_PANELS panels of BLOCK_DEPTH rows, then BLOCK_ROWS rows of as
    // many elements, with the gaps between them; `part` a tile.
    unsafe {
        let rows = panels.add(BLOCK_PANELS * (BLOCK_DEPTH * width + PANEL_PADDING / size));
        debug_assert!(BLOCK_PANELS * width * size <= BLOCK_PANELS * 128);
        for j0 in (0..x.n).step_by(BLOCK_PANELS * width) {
            let n = (x.n - j0).min(BLOCK_PANELS * width);
            for from in (0..x.k.max(1)).step_by(BLOCK_DEPTH) {
                let (k, goes_on) = (BLOCK_DEPTH.min(x.k - from), x.adds || from > 0);
                let b = b.offset(from as isize * x.b_strides[0] + j0 as isize * x.b_strides[1]);
                let from_panel = BLOCK_DEPTH * width + PANEL_PADDING / size;
                pack_panels(panels, b, x.b_strides, k, n, width, from_panel);
                for i0 in (0..x.m).step_by(BLOCK_ROWS) {
                    let m = (x.m - i0).min(BLOCK_ROWS);
                    let a = a.offset(i0 as isize * x.a_strides[0] + from as isize * x.a_strides[1]);
                    let a_strides = pack_rows(rows, a, x.a_strides, m, k);
                    for j in (0..n).step_by(width) {
                        let columns = width.min(n - j);
                        let b = panels.add(j / width * from_panel).cast_const();
                        let mut i = 0;
                        while i < m {
                            let together = together::<M>(m - i);
                            let a = rows.offset(i as isize * a_strides[0]).cast_const();
                            let to = c.add((i0 + i) * x.c_row + j0 + j);
                            let whole = columns == width;
                            let (out, out_row) = if whole { (to, x.c_row) } else { (part, width) };
                            if !whole && goes_on {
                                for r in 0..together {
                                    part.add(r * width).copy_from_nonoverlapping(to.add(r * x.c_row), columns);
                                }
                            }
                            macro_rules! run {
                                ($m:expr) => {
                                    tile::<V, { $m }, 2>(
                                        a,
                                        a_strides,
                                        |p| b.wrapping_add(p * width),
                                        k,
                                        out,
                                        out_row,
                                        goes_on,
                                    )
                                };
                            }
                            match together {
                                4 => run!(4),
                                3 => run!(3),
                                2 => run!(2),
                                1 => run!(1),
                                _ => run!(M),
                            }
                            if !whole {
                                for r in 0..together {
                                    to.add(r * x.c_row).copy_from_nonoverlapping(part.add(r * width), columns);
                                }
                            }
                            i += together;
                        }
                    }
                }
            }
        }
    }
}
/// Rows of a tile, if so many are left.
#[inline(always)]
fn together<const M: usize>(left: usize) -> usize {
    match left {
        r if r >= M => M,
        4.. => 4,
        3 => 3,
        2 => 2,
        _ => 1,
    }
}
/// Copies rows of the left operand close together, row by row or column by column, at distances that do not conflict in the cache. Returns the strides.
///
/// # Safety
/// `m` rows of `k` terms at the strides, at most a block; `to` holds one, with [`PADDING`].
#[inline(always)]
unsafe fn pack_rows<T: Copy>(to: *mut T, from: *const T, strides: [isize; 2], m: usize, k: usize) -> [isize; 2] {
    let by_columns = strides[0].unsigned_abs() < strides[1].unsigned_abs();
    let ([along, across], step, count, length) = match by_columns {
        true => (strides, BLOCK_ROWS + PADDING, k, m),
        false => ([strides[1], strides[0]], BLOCK_DEPTH + PADDING, m, k),
    };
    for line in 0..count {
        // SAFETY: by the contract.
        unsafe {
            let (to, from) = (to.add(line * step), from.offset(line as isize * across));
            if along == 1 {
                to.copy_from_nonoverlapping(from, length);
            } else {
                for e in 0..length {
                    *to.add(e) = *from.offset(e as isize * along);
                }
            }
        }
    }
    if by_columns { [1, step as isize] } else { [step as isize, 1] }
}

/// Asks for the line of the cache at `p`, which need not be memory.
#[inline(always)]
fn prefetch<V: Vector>(p: *const V::Element) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which every machine of this kind knows and whose address is not read.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast())
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Adds the terms from `from` on to the columns from `j` on.
///
/// # Safety
/// As `product`; `part` holds a tile, `packed` a panel.
#[inline(always)]
unsafe fn panel<V: Vector, const M: usize>(
    x: &Matrices,
    from: usize,
    j: usize,
    part: *mut V::Element,
    packed: *mut V::Element,
) {
    let (a, b, c) = (x.a.cast::<V::Element>(), x.b.cast::<V::Element>(), x.c.cast::<V::Element>());
    let (k, goes_on) = (DEPTH.min(x.k - from), x.adds || from > 0);
    let columns = (2 * V::LANES).min(x.n - j);
    let one = columns <= V::LANES;
    let width = if one { V::LANES } else { 2 * V::LANES };
    // Rows that are far apart conflict in the cache.
    let near = x.m <= 2 * M || x.b_strides[0].unsigned_abs() * size_of::<V::Element>() <= 1024;
    // SAFETY: by the contract.
    unsafe {
        let a = a.offset(from as isize * x.a_strides[1]);
        let b = b.offset(from as isize * x.b_strides[0] + j as isize * x.b_strides[1]);
        let (b, b_row) = if columns == width && x.b_strides[1] == 1 && near {
            (b, x.b_strides[0])
        } else {
            pack(packed, b, x.b_strides, k, columns, width);
            (packed.cast_const(), width as isize)
        };
        let in_place = b_row != width as isize;
        let is_large = x.k * x.b_strides[0].unsigned_abs() * size_of::<V::Element>() > MIN_PREFETCHED_BYTES;
        let mut i = 0;
        while i < x.m {
            // PERF: the next panel reads the part of a row behind this panel's, which hardware prefetchers do not predict.
            let ahead = in_place && is_large && i == 0 && x.n - j > width;
            let row = |p: usize| {
                let from = b.wrapping_offset(p as isize * b_row);
                if ahead {
                    prefetch::<V>(from.wrapping_add(width));
                    prefetch::<V>(from.wrapping_add(width + V::LANES));
                }
                from
            };
            let a = a.offset(i as isize * x.a_strides[0]);
            let to = c.add(i * x.c_row + j);
            let rows = together::<M>(x.m - i);
            let whole = columns == width;
            let (out, out_row) = if whole { (to, x.c_row) } else { (part, width) };
            if !whole && goes_on {
                for r in 0..rows {
                    part.add(r * width).copy_from_nonoverlapping(to.add(r * x.c_row), columns);
                }
            }
            macro_rules! run {
                ($m:expr) => {
                    if one {
                        tile::<V, { $m }, 1>(a, x.a_strides, row, k, out, out_row, goes_on)
                    } else {
                        tile::<V, { $m }, 2>(a, x.a_strides, row, k, out, out_row, goes_on)
                    }
                };
            }
            match rows {
                4 => run!(4),
                3 => run!(3),
                2 => run!(2),
                1 => run!(1),
                _ => run!(M),
            }
            if !whole {
                for r in 0..rows {
                    to.add(r * x.c_row).copy_from_nonoverlapping(part.add(r * width), columns);
                }
            }
            i += rows;
        }
    }
}

/// `n` columns as panels: row by row if rows are contiguous, since they are read fastest in order.
///
/// # Safety
/// `k` rows of `n` at the strides; `to` holds the panels.
#[inline(always)]
unsafe fn pack_panels<T: Copy + Default>(
    to: *mut T,
    from: *const T,
    strides: [isize; 2],
    k: usize,
    n: usize,
    width: usize,
    from_panel: usize,
) {
    let whole = if strides[1] == 1 { n / width } else { 0 };
    // SAFETY: by the contract.
    unsafe {
        for p in 0..if whole > 0 { k } else { 0 } {
            let from = from.offset(p as isize * strides[0]);
            for j in 0..whole {
                to.add(j * from_panel + p * width).copy_from_nonoverlapping(from.add(j * width), width);
            }
        }
        for j in whole..n.div_ceil(width) {
            let from = from.offset((j * width) as isize * strides[1]);
            pack(to.add(j * from_panel), from, strides, k, width.min(n - j * width), width);
        }
    }
}

/// A panel, row after row, filled up with zeros.
///
/// # Safety
/// `k` rows and `columns` columns at the strides; `to` holds `k * width`.
#[inline(always)]
unsafe fn pack<T: Copy + Default>(
    to: *mut T,
    from: *const T,
    strides: [isize; 2],
    k: usize,
    columns: usize,
    width: usize,
) {
    // SAFETY: by the contract.
    unsafe {
        if strides[1] == 1 {
            for p in 0..k {
                let (to, from) = (to.add(p * width), from.offset(p as isize * strides[0]));
                for j in 0..columns {
                    *to.add(j) = *from.add(j);
                }
                for j in columns..width {
                    *to.add(j) = T::default();
                }
            }
            return;
        }
        // Eight columns at a time, so that writes to a row are contiguous.
        for p in 0..k {
            for j in columns..width {
                *to.add(p * width + j) = T::default();
            }
        }
        let mut j = 0;
        while j + 8 <= columns {
            for p in 0..k {
                let from = from.offset(p as isize * strides[0] + j as isize * strides[1]);
                let mut eight = [T::default(); 8];
                for (l, e) in eight.iter_mut().enumerate() {
                    *e = *from.offset(l as isize * strides[1]);
                }
                to.add(p * width + j).cast::<[T; 8]>().write_unaligned(eight);
            }
            j += 8;
        }
        for j in j..columns {
            for p in 0..k {
                *to.add(p * width + j) = *from.offset(p as isize * strides[0] + j as isize * strides[1]);
            }
        }
    }
}
