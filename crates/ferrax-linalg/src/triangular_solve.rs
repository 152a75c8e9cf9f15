//! Triangular systems of real matrices with many right-hand sides, on the products of [`panel`].
//!
//! ```text
//! 64 right-hand sides at a time, as rows of 64:   for each 32 unknowns:   subtract the known part by a product;   then one after the other
//! ```
//!
//! INVARIANT: each unknown is its right-hand side minus the sum of products in the order in which unknowns are solved, fused, divided by its own
//! coefficient; no right-hand side depends on its neighbours, nor on the width of vectors.
#![allow(unsafe_code)]
use ferrax_host::Tier;
use ferrax_host::panel::{self, Divisible, Matrices, Rows};

/// Sides of a piece.
pub const SIDES: usize = 64;
const STRIP: usize = 32;

/// `op(a) x = b`: `n` equations, lower or upper, with strides of coefficients and of right-hand sides, which the unknowns replace.
#[derive(Clone, Copy)]
pub struct System {
    pub a: *const u8,
    pub a_strides: [isize; 2],
    pub n: usize,
    pub lower: bool,
    pub unit: bool,
    pub x: *mut u8,
    /// From unknown to unknown, and from side to side.
    pub x_strides: [isize; 2],
    pub sides: usize,
    /// [`memory`] bytes, 64-byte aligned, of this thread's own.
    pub scratch: *mut u8,
    pub product: Rows,
}
/// Bytes of `System::scratch`, of elements of `size` bytes.
pub fn memory(n: usize, size: usize) -> usize {
    panel::MEMORY + (n + STRIP) * SIDES * size
}
/// Solves up to [`SIDES`] sides.
pub type Solve = unsafe fn(&System);

/// The solver of systems of elements of `size` bytes, on machines with fused multiply-add.
pub fn pick(size: usize, tier: Tier) -> Option<(Solve, Rows)> {
    let product = panel::pick_float(size, tier)?;
    #[cfg(target_arch = "x86_64")]
    {
        let solve: Solve = match (tier, size) {
            (Tier::Avx512, 4) => x86::wide_f32,
            (Tier::Avx512, _) => x86::wide_f64,
            (_, 4) => x86::narrow_f32,
            (_, _) => x86::narrow_f64,
        };
        Some((solve, product))
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = product;
        None
    }
}

/// # Safety
/// As of [`System`], for up to `SIDES` sides, and the machine has these vectors.
#[inline(always)]
unsafe fn solve<V: Divisible>(x: &System) {
    let [unknown, side] = x.x_strides;
    let n = x.n;
    // those that are computed: whole vectors of them
    let sides = x.sides.next_multiple_of(2 * V::LANES);
    // SAFETY: elements at their strides; the scratch memory holds all sides, and a strip of sums.
    unsafe {
        let a = x.a.cast::<V::Element>();
        let (from, packed) = (x.x.cast::<V::Element>(), x.scratch.add(panel::MEMORY).cast::<V::Element>());
        let sums = packed.add(n * SIDES);
        for i in 0..n {
            let (to, from) = (packed.add(i * SIDES), from.offset(i as isize * unknown));
            for j in 0..x.sides {
                *to.add(j) = *from.offset(j as isize * side);
            }
            for j in x.sides..sides {
                *to.add(j) = V::Element::default();
            }
        }
        for step in (0..n).step_by(STRIP) {
            let w = STRIP.min(n - step);
            // the strip's first equation, and the unknowns that are solved
            let (s, known) = if x.lower { (step, 0) } else { (n - step - w, n - step) };
            let rows = a.offset(s as isize * x.a_strides[0]);
            (x.product)(&Matrices {
                a: rows.offset(known as isize * x.a_strides[1]).cast(),
                b: packed.add(known * SIDES).cast_const().cast(),
                c: sums.cast(),
                m: w,
                n: sides,
                k: step,
                a_strides: x.a_strides,
                b_strides: [SIDES as isize, 1],
                c_row: SIDES,
                adds: false,
                scratch: x.scratch,
                blocks: std::ptr::null_mut(),
            });
            let own = rows.offset(s as isize * x.a_strides[1]);
            let mut j = 0;
            while j < sides {
                strip::<V>(x, own, w, packed.add(s * SIDES + j), sums.add(j));
                j += 2 * V::LANES;
            }
        }
        for i in 0..n {
            let (to, from) = (from.offset(i as isize * unknown), packed.add(i * SIDES));
            for j in 0..x.sides {
                *to.offset(j as isize * side) = *from.add(j);
            }
        }
    }
}
/// The unknowns of one strip, for two vectors of sides.
///
/// # Safety
/// `w` rows of `SIDES` at `at` and `sums`; `a` their own coefficients.
#[inline(always)]
unsafe fn strip<V: Divisible>(
    x: &System,
    a: *const V::Element,
    w: usize,
    at: *mut V::Element,
    sums: *const V::Element,
) {
    let [down, across] = x.a_strides;
    // SAFETY: by the contract.
    unsafe {
        for step in 0..w {
            let i = if x.lower { step } else { w - 1 - step };
            let known = if x.lower { 0..i } else { i + 1..w };
            let (at_i, sums) = (at.add(i * SIDES), sums.add(i * SIDES));
            let mut sum = [V::load(sums), V::load(sums.add(V::LANES))];
            let row = a.offset(i as isize * down);
            for k in known {
                let by = V::splat(*row.offset(k as isize * across));
                let k = at.add(k * SIDES);
                sum = [sum[0].fused(by, V::load(k)), sum[1].fused(by, V::load(k.add(V::LANES)))];
            }
            for (v, sum) in sum.into_iter().enumerate() {
                let to = at_i.add(v * V::LANES);
                let left = V::load(to).less(sum);
                let done = if x.unit { left } else { left.over(V::splat(*row.offset(i as isize * across))) };
                done.store(to);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;
    macro_rules! solves {
        ($features:literal $($name:ident $V:ident;)*) => {$(
            /// # Safety
            /// As `solve`.
            #[target_feature(enable = $features)]
            pub unsafe fn $name(x: &System) {
                // SAFETY: the same contract, and these are the features.
                unsafe { solve::<$V>(x) }
            }
        )*};
    }
    solves! { "avx512f,avx512bw,avx512dq,avx512vl" wide_f32 __m512; wide_f64 __m512d; }
    solves! { "avx2,fma" narrow_f32 __m256; narrow_f64 __m256d; }
}
