//! Products of many small groups: a vector holds columns of as many groups as fit.
//!
//! ```text
//! sums[row, o * P + p] += x[row + term + p] * y[term, o * P + p]        p one of P groups, o a column of it
//! ```
//!
//! For a row and a term, P contiguous elements of x are read, one of each group, and repeated over the vector as a single element
//! is in [`panel`], whose invariant holds here too.
#![allow(unsafe_code)]
use crate::kernels::lane::Lane;
use crate::tier::Tier;
use ferrax_host::panel::{self, Vector};

pub struct GroupedRows<'a> {
    pub x: *const u8,
    /// Elements of x at which a row begins, and behind that a term.
    pub rows: &'a [i32],
    pub terms: &'a [i32],
    pub y: *const u8,
    /// Elements from term to term of y.
    pub y_row: usize,
    /// A vector for each row, one behind the other.
    pub sums: *mut u8,
    /// Whether the products are added to what the sums hold.
    pub adds: bool,
}
pub type Grouped = unsafe fn(x: &GroupedRows);

/// Lanes of the vectors, and the function for `groups` side by side: a power of two above one, at most the lanes.
pub fn pick(lane: Lane, groups: usize, tier: Tier) -> Option<Grouped> {
    #[cfg(target_arch = "x86_64")]
    {
        use self::x86::*;
        panel::pick(lane.dtype(), tier)?;
        Some(match (tier, lane, groups) {
            (Tier::Avx512, Lane::F32, 2) => grouped_wide_f32::<2>,
            (Tier::Avx512, Lane::F32, 4) => grouped_wide_f32::<4>,
            (Tier::Avx512, Lane::F32, 8) => grouped_wide_f32::<8>,
            (Tier::Avx512, Lane::F32, 16) => grouped_wide_f32::<16>,
            (Tier::Avx512, Lane::F64, 2) => grouped_wide_f64::<2>,
            (Tier::Avx512, Lane::F64, 4) => grouped_wide_f64::<4>,
            (Tier::Avx512, Lane::F64, 8) => grouped_wide_f64::<8>,
            (Tier::Avx2 | Tier::Portable, Lane::F32, 2) => grouped_narrow_f32::<2>,
            (Tier::Avx2 | Tier::Portable, Lane::F32, 4) => grouped_narrow_f32::<4>,
            (Tier::Avx2 | Tier::Portable, Lane::F32, 8) => grouped_narrow_f32::<8>,
            (Tier::Avx2 | Tier::Portable, Lane::F64, 2) => grouped_narrow_f64::<2>,
            (Tier::Avx2 | Tier::Portable, Lane::F64, 4) => grouped_narrow_f64::<4>,
            _ => return None,
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (lane, groups, tier);
        None
    }
}
/// Elements of the vectors that [`pick`]'s functions take.
pub fn lanes(lane: Lane, tier: Tier) -> usize {
    if tier == Tier::Avx512 { 64 / lane.size() } else { 32 / lane.size() }
}

/// All rows.
///
/// # Safety
/// The machine has these vectors; `P` elements of x lie at each row and term, a vector of y at each term, and one of the sums at each row.
#[inline(always)]
pub unsafe fn grouped<V: Vector, const P: usize>(x: &GroupedRows) {
    let mut from = 0;
    while from < x.rows.len() {
        let left = x.rows.len() - from;
        macro_rules! run {
            ($m:literal) => {{
                // SAFETY: by the contract; so many rows are left.
                unsafe { tile::<V, $m, P>(x, from) }
                from += $m;
            }};
        }
        match left {
            9.. => run!(9),
            6.. => run!(6),
            4.. => run!(4),
            2.. => run!(2),
            _ => run!(1),
        }
    }
}

/// # Safety
/// As [`grouped`]; rows `from..from + M` are some.
#[inline(always)]
unsafe fn tile<V: Vector, const M: usize, const P: usize>(x: &GroupedRows, from: usize) {
    // SAFETY: by the contract.
    unsafe {
        let sums = x.sums.cast::<V::Element>().add(from * V::LANES);
        let rows: [*const V::Element; M] =
            std::array::from_fn(|i| x.x.cast::<V::Element>().offset(x.rows[from + i] as isize));
        let mut sum = [V::zero(); M];
        if x.adds {
            for (i, s) in sum.iter_mut().enumerate() {
                *s = V::load(sums.add(i * V::LANES));
            }
        }
        let mut y = x.y.cast::<V::Element>();
        for t in x.terms {
            let columns = V::load(y);
            for i in 0..M {
                sum[i] = sum[i].fused(V::repeated::<P>(rows[i].offset(*t as isize)), columns);
            }
            y = y.wrapping_add(x.y_row);
        }
        for (i, s) in sum.into_iter().enumerate() {
            s.store(sums.add(i * V::LANES));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{GroupedRows, grouped};
    use std::arch::x86_64::*;

    macro_rules! products_of_groups {
        ($features:literal $($name:ident $V:ident;)*) => {$(
            /// # Safety
            /// As `grouped`.
            #[target_feature(enable = $features)]
            pub unsafe fn $name<const P: usize>(x: &GroupedRows) {
                // SAFETY: the same contract, and these are the features.
                unsafe { grouped::<$V, P>(x) }
            }
        )*};
    }
    products_of_groups! { "avx512f,avx512bw,avx512dq,avx512vl" grouped_wide_f32 __m512; grouped_wide_f64 __m512d; }
    products_of_groups! { "avx2,fma" grouped_narrow_f32 __m256; grouped_narrow_f64 __m256d; }
}
