//! Cholesky factors of large real matrices by blocks, on the products of [`panel`].
//!
//! ```text
//! for each 128 columns:   their square is factored, 32 columns at a time;   the rows below are solved;   a product is subtracted on the right
//! ```
//!
//! A strip of rows is solved in vectors, a row in each lane. The solved strip, transposed and negated, is the right operand of the product.
//!
//! INVARIANT: each element is a sum of products by increasing column, fused, with a root or a reciprocal at the end: bits depend neither on
//! which rows are grouped nor on the width of vectors.
#![allow(unsafe_code)]
use ferrax_host::Tier;
use ferrax_host::panel::{self, Divisible, Matrices, Rows};

/// Columns of a block, and those that are solved together.
pub const BLOCK: usize = 128;
const STRIP: usize = 32;
/// Rows that are solved together: two vectors of the widest.
const MAX_ROWS: usize = 32;

/// Elements of a float type.
pub trait FactorElement: Copy + Default + PartialOrd {
    const MIN_NORMAL: f64;
    fn wide(self) -> f64;
    fn root(self) -> Self;
    fn reciprocal(self) -> Self;
    fn times(self, x: Self) -> Self;
    fn negated(self) -> Self;
    fn fused(self, a: Self, b: Self) -> Self;
}
macro_rules! float {
    ($($T:ident)*) => {$(
        impl FactorElement for $T {
            const MIN_NORMAL: f64 = $T::MIN_POSITIVE as f64 * 4.0;
            #[inline(always)]
            fn wide(self) -> f64 { self as f64 }
            #[inline(always)]
            fn root(self) -> $T { self.sqrt() }
            #[inline(always)]
            fn reciprocal(self) -> $T { 1.0 / self }
            #[inline(always)]
            fn times(self, x: $T) -> $T { self * x }
            #[inline(always)]
            fn negated(self) -> $T { -self }
            #[inline(always)]
            fn fused(self, a: $T, b: $T) -> $T { a.mul_add(b, self) }
        }
    )*};
}
float! { f32 f64 }

/// One block: `BLOCK` columns of a factor from column `k` on, computed in the place of the matrix, of `n` rows of `n`.
#[derive(Clone, Copy)]
pub struct Stage {
    pub a: *mut u8,
    pub n: usize,
    pub k: usize,
    /// Columns of the block.
    pub width: usize,
    /// Its factor, transposed and negated, in rows of [`BLOCK`]; then the reciprocals of its
    /// diagonal.
    pub square: *mut u8,
    /// The solved rows below, transposed and negated: `width` rows of `n`.
    pub transposed: *mut u8,
    /// [`memory`] bytes of this thread's own.
    pub scratch: *mut u8,
    pub product: Rows,
}
/// The number of elements of `Stage::square`, and of `Stage::transposed`.
pub fn elements(n: usize) -> [usize; 2] {
    [(BLOCK + 1) * BLOCK, BLOCK * n]
}
/// Bytes of `Stage::scratch`.
pub fn memory(size: usize) -> usize {
    panel::MEMORY + STRIP * MAX_ROWS * size
}

/// The steps of a block: factors the square, and reports whether there is a factor; solves the rows
/// `from..to` below it; subtracts the block's product from the rows `from..to`.
#[derive(Clone, Copy)]
pub struct Steps {
    pub square: unsafe fn(&Stage) -> bool,
    pub below: unsafe fn(&Stage, usize, usize),
    pub update: unsafe fn(&Stage, usize, usize),
}

/// The steps for elements of `size` bytes, if the machine has fused multiply-add.
pub fn pick(size: usize, tier: Tier) -> Option<(Steps, Rows)> {
    let product = panel::pick_float(size, tier)?;
    #[cfg(target_arch = "x86_64")]
    {
        use x86::*;
        let steps = match (tier, size) {
            (Tier::Avx512, 4) => wide_f32(),
            (Tier::Avx512, _) => wide_f64(),
            (_, 4) => narrow_f32(),
            (_, _) => narrow_f64(),
        };
        Some((steps, product))
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = product;
        None
    }
}

/// `c += a b` for `rows` of the block and the strips' columns `s..s + w`: `a` holds the solved
/// columns of the rows, `b` those of the square.
///
/// # Safety
/// There are `rows` rows at `row`, and `s + w` columns.
#[inline(always)]
unsafe fn take_off<T>(x: &Stage, row: *mut T, rows: usize, s: usize, w: usize) {
    if s == 0 || rows == 0 {
        return;
    }
    // SAFETY: disjoint columns of the same rows; the square's first s rows are written.
    unsafe {
        (x.product)(&Matrices {
            a: row.cast_const().cast(),
            b: x.square.cast::<T>().add(s).cast_const().cast(),
            c: row.add(s).cast(),
            m: rows,
            n: w,
            k: s,
            a_strides: [x.n as isize, 1],
            b_strides: [BLOCK as isize, 1],
            c_row: x.n,
            adds: true,
            scratch: x.scratch,
            blocks: std::ptr::null_mut(),
        })
    }
}

/// # Safety
/// As of [`Stage`].
#[inline(always)]
unsafe fn square<V: Divisible<Element: FactorElement>>(x: &Stage) -> bool {
    // SAFETY: the block's rows and columns lie inside the matrix, its factor in the square.
    unsafe {
        let (a, l) = (x.a.cast::<V::Element>().add(x.k * x.n + x.k), x.square.cast::<V::Element>());
        let inverse = l.add(BLOCK * BLOCK);
        for s in (0..x.width).step_by(STRIP) {
            let w = STRIP.min(x.width - s);
            let rows = x.width - s;
            take_off(x, a.add(s * x.n), rows, s, w);
            // its own square, column by column in lanes of rows
            let mut c = [[V::Element::default(); STRIP]; STRIP];
            for i in 0..w {
                for j in 0..=i {
                    c[j][i] = *a.add((s + i) * x.n + s + j);
                }
            }
            for j in 0..w {
                for k in 0..j {
                    let by = c[k][j].negated();
                    for i in 0..STRIP {
                        c[j][i] = c[j][i].fused(c[k][i], by);
                    }
                }
                let d = c[j][j];
                if !(d.wide() >= V::Element::MIN_NORMAL && d.wide() < f64::INFINITY) {
                    return false;
                }
                let root = d.root();
                let by = root.reciprocal();
                if !(root.wide() >= V::Element::MIN_NORMAL && by.wide() >= V::Element::MIN_NORMAL) {
                    return false;
                }
                *inverse.add(s + j) = by;
                for i in j + 1..STRIP {
                    c[j][i] = c[j][i].times(by);
                }
                c[j][j] = root;
                for i in j..w {
                    *a.add((s + i) * x.n + s + j) = c[j][i];
                    *l.add((s + j) * BLOCK + s + i) = c[j][i].negated();
                }
            }
            // then the rows of the block below it
            let to = l.add(s * BLOCK + s + w);
            solve::<V>(x, a.add((s + w) * x.n + s), x.width - s - w, s, w, to, BLOCK);
        }
        true
    }
}

/// `rows` rows of `w` columns from `from` on, times the inverse of the strip's factor; also stores
/// them transposed and negated, at distance `row`, to `to`.
///
/// # Safety
/// As for [`Stage`].
#[inline(always)]
unsafe fn solve<V: Divisible<Element: FactorElement>>(
    x: &Stage,
    from: *mut V::Element,
    rows: usize,
    s: usize,
    w: usize,
    to: *mut V::Element,
    row: usize,
) {
    const BATCH: usize = 4;
    let lanes = 2 * V::LANES;
    // SAFETY: the strip's factor is written; the rows are this thread's, as is the scratch memory.
    unsafe {
        let l = x.square.cast::<V::Element>().add(s * BLOCK + s);
        let inverse = x.square.cast::<V::Element>().add(BLOCK * BLOCK + s);
        let b = x.scratch.add(panel::MEMORY).cast::<V::Element>();
        for i0 in (0..rows).step_by(lanes) {
            let count = lanes.min(rows - i0);
            let from = from.add(i0 * x.n);
            for i in 0..count {
                for j in 0..w {
                    *b.add(j * lanes + i) = *from.add(i * x.n + j);
                }
            }
            for i in count..lanes {
                for j in 0..w {
                    *b.add(j * lanes + i) = V::Element::default();
                }
            }
            let mut j = 0;
            while j < w {
                let each = if w - j >= BATCH { BATCH } else { 1 };
                if each == BATCH {
                    columns::<V, BATCH>(b, l, inverse, j);
                } else {
                    columns::<V, 1>(b, l, inverse, j);
                }
                j += each;
            }
            for i in 0..count {
                for j in 0..w {
                    *from.add(i * x.n + j) = *b.add(j * lanes + i);
                }
            }
            for j in 0..w {
                let (to, b) = (to.add(j * row + i0), b.add(j * lanes));
                for i in 0..count {
                    *to.add(i) = (*b.add(i)).negated();
                }
            }
        }
    }
}
/// Columns `j..j + C` of a strip, two vectors of rows each.
///
/// # Safety
/// The columns before are done; the factor and the reciprocals of its diagonal are there.
#[inline(always)]
unsafe fn columns<V: Divisible<Element: FactorElement>, const C: usize>(
    b: *mut V::Element,
    l: *const V::Element,
    inverse: *const V::Element,
    j: usize,
) {
    let lanes = 2 * V::LANES;
    // SAFETY: by the contract.
    unsafe {
        let mut sum = [[V::zero(); 2]; C];
        for c in 0..C {
            sum[c] = [V::load(b.add((j + c) * lanes)), V::load(b.add((j + c) * lanes + V::LANES))];
        }
        for k in 0..j {
            let x = [V::load(b.add(k * lanes)), V::load(b.add(k * lanes + V::LANES))];
            for c in 0..C {
                let by = V::splat(*l.add(k * BLOCK + j + c));
                sum[c] = [sum[c][0].fused(x[0], by), sum[c][1].fused(x[1], by)];
            }
        }
        for c in 0..C {
            for k in 0..c {
                let by = V::splat(*l.add((j + k) * BLOCK + j + c));
                sum[c] = [sum[c][0].fused(sum[k][0], by), sum[c][1].fused(sum[k][1], by)];
            }
            let by = V::splat(*inverse.add(j + c));
            sum[c] = [V::zero().fused(sum[c][0], by), V::zero().fused(sum[c][1], by)];
            sum[c][0].store(b.add((j + c) * lanes));
            sum[c][1].store(b.add((j + c) * lanes + V::LANES));
        }
    }
}

/// # Safety
/// As of [`Stage`]; the rows are this thread's.
#[inline(always)]
unsafe fn below<V: Divisible<Element: FactorElement>>(x: &Stage, from: usize, to: usize) {
    // SAFETY: rows below the block, and columns of the transposed rows.
    unsafe {
        let row = x.a.cast::<V::Element>().add(from * x.n + x.k);
        for s in (0..x.width).step_by(STRIP) {
            let w = STRIP.min(x.width - s);
            take_off(x, row, to - from, s, w);
            let transposed = x.transposed.cast::<V::Element>().add(s * x.n + from);
            solve::<V>(x, row.add(s), to - from, s, w, transposed, x.n);
        }
    }
}
/// # Safety
/// As of [`Stage`]; the rows are this thread's.
#[inline(always)]
unsafe fn update<V: Divisible<Element: FactorElement>>(x: &Stage, from: usize, to: usize) {
    let end = x.k + x.width;
    // SAFETY: rows up to their own diagonal, right of the block; the block's columns are not written meanwhile.
    unsafe {
        let a = x.a.cast::<V::Element>();
        (x.product)(&Matrices {
            a: a.add(from * x.n + x.k).cast_const().cast(),
            b: x.transposed.cast::<V::Element>().add(end).cast_const().cast(),
            c: a.add(from * x.n + end).cast(),
            m: to - from,
            n: to - end,
            k: x.width,
            a_strides: [x.n as isize, 1],
            b_strides: [x.n as isize, 1],
            c_row: x.n,
            adds: true,
            scratch: x.scratch,
            blocks: std::ptr::null_mut(),
        })
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;
    macro_rules! steps {
        ($features:literal $($name:ident $V:ident;)*) => {$(
            pub fn $name() -> Steps {
                #[target_feature(enable = $features)]
                unsafe fn square(x: &Stage) -> bool {
                    // SAFETY: the same contract, and these are the features; so below.
                    unsafe { super::square::<$V>(x) }
                }
                #[target_feature(enable = $features)]
                unsafe fn below(x: &Stage, from: usize, to: usize) {
                    // SAFETY: see above.
                    unsafe { super::below::<$V>(x, from, to) }
                }
                #[target_feature(enable = $features)]
                unsafe fn update(x: &Stage, from: usize, to: usize) {
                    // SAFETY: see above.
                    unsafe { super::update::<$V>(x, from, to) }
                }
                Steps { square, below, update }
            }
        )*};
    }
    steps! { "avx512f,avx512bw,avx512dq,avx512vl" wide_f32 __m512; wide_f64 __m512d; }
    steps! { "avx2,fma" narrow_f32 __m256; narrow_f64 __m256d; }
}
