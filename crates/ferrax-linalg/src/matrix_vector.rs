//! Products of matrices with vectors, for reductions by reflections: rows of floats, in groups of 64 bytes.
//!
//! A row starts and ends with a whole group. Its padding is zero, so no loop handles single elements.
//!
//! INVARIANT: a sum along a row has as many partial sums as a group has elements, which are added by halves at the end; a sum over rows goes from the
//! first to the last. All operations are fused. So bits depend neither on the width of vectors, nor on the number of rows processed together.
#![allow(unsafe_code)]
use ferrax_host::Tier;
use ferrax_host::panel::{self, Rows, Vector};

/// Elements of the matrices here: scalars are computed in double precision.
pub trait RowElement: Copy + Default + PartialOrd + Send + Sync + 'static {
    /// Elements of 64 bytes.
    const GROUP: usize = 64 / size_of::<Self>();
    /// Half of a unit in the last place of 1.
    const ROUNDING: f64;
    /// Below it digits are lost, and so are those of its square's root.
    const MIN_NORMAL: f64;
    fn wide(self) -> f64;
    fn narrow(x: f64) -> Self;
    fn plus(self, o: Self) -> Self;
    fn size(self) -> Self;
    /// The functions of this machine, where it has fused multiply-add.
    fn operations(tier: Tier) -> Option<RowOperations<Self>>;
}

/// `count` rows of `n` elements, whole groups, at distance `lead`.
#[derive(Clone, Copy)]
pub struct RowBlock<T> {
    pub a: *const T,
    pub lead: usize,
    pub count: usize,
    pub n: usize,
}

/// Groups of a strip.
pub const STRIP: usize = 4;
/// [`STRIP`] groups of columns of a matrix, which lie together.
#[derive(Clone, Copy)]
pub struct Strip<T> {
    pub a: *const T,
    pub rows: usize,
    /// An element for each row.
    pub v: *const T,
    pub minus: T,
    /// A row of the strip's columns, the first `skip` of which become zero.
    pub to: *mut T,
    pub skip: usize,
    /// A group for each row.
    pub sums: *mut T,
}

/// All are unsafe for the same reasons: arguments hold as many elements as [`RowBlock`] says,
/// results do not overlap them, and the machine has the vectors.
#[derive(Clone, Copy)]
pub struct RowOperations<T> {
    /// `out[i] = sum_j a[i, j] x[j]`.
    pub dots: unsafe fn(RowBlock<T>, x: *const T, out: *mut T),
    /// `y[j] += sum_i by[i] a[i, j]`.
    pub combine: unsafe fn(RowBlock<T>, by: *const T, y: *mut T),
    /// Both products; `y[i]` belongs to the rows' own part of `x`: the contribution of a part of
    /// the lower triangle of a symmetric matrix.
    pub both: unsafe fn(RowBlock<T>, x: *const T, by: *const T, out: *mut T, y: *mut T),
    /// `to[j] += minus sum_i v[i] a[i, j]`, then to each row's group the products of its elements with `to` are added.
    pub strip: unsafe fn(Strip<T>),
    pub product: Rows,
}

/// A group of elements in vectors.
#[derive(Clone, Copy)]
struct Group<V, const P: usize>([V; P]);
impl<V: Vector, const P: usize> Group<V, P> {
    /// # Safety
    /// As of [`Vector`]: a group at `p`. So below.
    #[inline(always)]
    unsafe fn load(p: *const V::Element) -> Self {
        // SAFETY: by the contract, here and below.
        unsafe {
            let mut g = [V::zero(); P];
            for (i, v) in g.iter_mut().enumerate() {
                *v = V::load(p.add(i * V::LANES));
            }
            Group(g)
        }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut V::Element) {
        // SAFETY: see above.
        unsafe {
            for (i, v) in self.0.into_iter().enumerate() {
                v.store(p.add(i * V::LANES));
            }
        }
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        Group([unsafe { V::zero() }; P])
    }
    #[inline(always)]
    unsafe fn fused(self, a: Self, b: Self) -> Self {
        let mut g = self.0;
        for (i, v) in g.iter_mut().enumerate() {
            // SAFETY: see above.
            *v = unsafe { v.fused(a.0[i], b.0[i]) };
        }
        Group(g)
    }
    #[inline(always)]
    unsafe fn fused_by(self, a: V, b: Self) -> Self {
        let mut g = self.0;
        for (i, v) in g.iter_mut().enumerate() {
            // SAFETY: see above.
            *v = unsafe { v.fused(a, b.0[i]) };
        }
        Group(g)
    }
    /// The parts' sum, by halves.
    #[inline(always)]
    unsafe fn sum(self) -> V::Element
    where
        V::Element: RowElement,
    {
        let mut parts = [V::Element::default(); 16];
        // SAFETY: a group has at most 16 elements.
        unsafe { self.store(parts.as_mut_ptr()) };
        let mut n = V::Element::GROUP;
        while n > 1 {
            n /= 2;
            for i in 0..n {
                parts[i] = parts[i].plus(parts[i + n]);
            }
        }
        parts[0]
    }
}

/// # Safety
/// As of [`RowOperations`]; so below.
#[inline(always)]
unsafe fn dots<V: Vector<Element: RowElement>, const P: usize>(
    b: RowBlock<V::Element>,
    x: *const V::Element,
    out: *mut V::Element,
) {
    let mut i = 0;
    // SAFETY: rows and groups lie inside.
    unsafe {
        while i < b.count {
            let each = if b.count - i >= 8 { 8 } else { 1 };
            let a = b.a.add(i * b.lead);
            match each {
                8 => some_dots::<V, P, 8>(a, b.lead, b.n, x, out.add(i)),
                _ => some_dots::<V, P, 1>(a, b.lead, b.n, x, out.add(i)),
            }
            i += each;
        }
    }
}
#[inline(always)]
unsafe fn some_dots<V: Vector<Element: RowElement>, const P: usize, const R: usize>(
    a: *const V::Element,
    lead: usize,
    n: usize,
    x: *const V::Element,
    out: *mut V::Element,
) {
    // SAFETY: as of `dots`.
    unsafe {
        let mut sum = [Group::<V, P>::zero(); R];
        for j in (0..n).step_by(V::Element::GROUP) {
            let x = Group::<V, P>::load(x.add(j));
            for (r, sum) in sum.iter_mut().enumerate() {
                *sum = sum.fused(Group::load(a.add(r * lead + j)), x);
            }
        }
        for (r, sum) in sum.into_iter().enumerate() {
            *out.add(r) = sum.sum();
        }
    }
}
#[inline(always)]
unsafe fn combine<V: Vector<Element: RowElement>, const P: usize>(
    b: RowBlock<V::Element>,
    by: *const V::Element,
    y: *mut V::Element,
) {
    let mut i = 0;
    // SAFETY: rows and groups lie inside.
    unsafe {
        while i < b.count {
            let each = if b.count - i >= 8 { 8 } else { 1 };
            let a = b.a.add(i * b.lead);
            match each {
                8 => combine_some::<V, P, 8>(a, b.lead, b.n, by.add(i), y),
                _ => combine_some::<V, P, 1>(a, b.lead, b.n, by.add(i), y),
            }
            i += each;
        }
    }
}
#[inline(always)]
unsafe fn combine_some<V: Vector<Element: RowElement>, const P: usize, const R: usize>(
    a: *const V::Element,
    lead: usize,
    n: usize,
    by: *const V::Element,
    y: *mut V::Element,
) {
    // SAFETY: as of `combine`.
    unsafe {
        let mut w = [V::zero(); R];
        for (r, w) in w.iter_mut().enumerate() {
            *w = V::splat(*by.add(r));
        }
        for j in (0..n).step_by(V::Element::GROUP) {
            let mut sum = Group::<V, P>::load(y.add(j));
            for (r, w) in w.iter().enumerate() {
                sum = sum.fused_by(*w, Group::load(a.add(r * lead + j)));
            }
            sum.store(y.add(j));
        }
    }
}
#[inline(always)]
unsafe fn both<V: Vector<Element: RowElement>, const P: usize>(
    b: RowBlock<V::Element>,
    x: *const V::Element,
    by: *const V::Element,
    out: *mut V::Element,
    y: *mut V::Element,
) {
    const BATCH: usize = 8;
    debug_assert!(b.count.is_multiple_of(BATCH));
    // SAFETY: rows and groups lie inside.
    unsafe {
        for i in (0..b.count).step_by(BATCH) {
            let a = b.a.add(i * b.lead);
            let mut sum = [Group::<V, P>::zero(); BATCH];
            let mut w = [V::zero(); BATCH];
            for (r, w) in w.iter_mut().enumerate() {
                *w = V::splat(*by.add(i + r));
            }
            for j in (0..b.n).step_by(V::Element::GROUP) {
                let x = Group::<V, P>::load(x.add(j));
                let mut to = Group::<V, P>::load(y.add(j));
                for r in 0..BATCH {
                    let a = Group::load(a.add(r * b.lead + j));
                    sum[r] = sum[r].fused(a, x);
                    to = to.fused_by(w[r], a);
                }
                to.store(y.add(j));
            }
            for (r, sum) in sum.into_iter().enumerate() {
                *out.add(i + r) = sum.sum();
            }
        }
    }
}

#[inline(always)]
unsafe fn strip<V: Vector<Element: RowElement>, const P: usize>(x: Strip<V::Element>) {
    let group = V::Element::GROUP;
    let row = STRIP * group;
    // SAFETY: rows and groups lie inside.
    unsafe {
        // rows in turn, so that no addition waits for the one before
        let mut sums = [[Group::<V, P>::zero(); STRIP]; 2];
        let mut i = 0;
        while i < x.rows {
            for (r, sums) in sums.iter_mut().enumerate().take(x.rows - i) {
                let by = V::splat(*x.v.add(i + r));
                for (g, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.fused_by(by, Group::load(x.a.add((i + r) * row + g * group)));
                }
            }
            i += 2;
        }
        let (one, minus) = (V::splat(V::Element::narrow(1.0)), V::splat(x.minus));
        for g in 0..STRIP {
            let to = x.to.add(g * group);
            let sum = sums[0][g].fused_by(one, sums[1][g]);
            Group::<V, P>::load(to).fused_by(minus, sum).store(to);
        }
        for j in 0..x.skip {
            *x.to.add(j) = V::Element::default();
        }
        let mut to = [Group::<V, P>::zero(); STRIP];
        for (g, to) in to.iter_mut().enumerate() {
            *to = Group::load(x.to.add(g * group));
        }
        for i in 0..x.rows {
            let mut sum = Group::<V, P>::load(x.sums.add(i * group));
            for (g, to) in to.iter().enumerate() {
                sum = sum.fused(Group::load(x.a.add(i * row + g * group)), *to);
            }
            sum.store(x.sums.add(i * group));
        }
    }
}

macro_rules! float {
    ($($T:ident $wide:ident $narrow:ident;)*) => {$(
        impl RowElement for $T {
            const ROUNDING: f64 = $T::EPSILON as f64 / 2.0;
            const MIN_NORMAL: f64 = $T::MIN_POSITIVE as f64 / $T::EPSILON as f64;
            #[inline(always)]
            fn wide(self) -> f64 { self as f64 }
            #[inline(always)]
            fn narrow(x: f64) -> $T { x as $T }
            #[inline(always)]
            fn plus(self, o: $T) -> $T { self + o }
            #[inline(always)]
            fn size(self) -> $T { self.abs() }
            fn operations(tier: Tier) -> Option<RowOperations<$T>> {
                let product = panel::pick_float(size_of::<$T>(), tier)?;
                #[cfg(target_arch = "x86_64")]
                {
                    Some(if tier == Tier::Avx512 { x86::$wide(product) } else { x86::$narrow(product) })
                }
                #[cfg(not(target_arch = "x86_64"))]
                {
                    let _ = product;
                    None
                }
            }
        }
    )*};
}
float! { f32 wide_f32 narrow_f32; f64 wide_f64 narrow_f64; }

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;
    macro_rules! operations {
        ($features:literal $parts:literal $($name:ident $T:ident $V:ident;)*) => {$(
            pub fn $name(product: Rows) -> RowOperations<$T> {
                #[target_feature(enable = $features)]
                unsafe fn dots(b: RowBlock<$T>, x: *const $T, out: *mut $T) {
                    // SAFETY: the same contract, and these are the features; so below.
                    unsafe { super::dots::<$V, $parts>(b, x, out) }
                }
                #[target_feature(enable = $features)]
                unsafe fn combine(b: RowBlock<$T>, by: *const $T, y: *mut $T) {
                    // SAFETY: see above.
                    unsafe { super::combine::<$V, $parts>(b, by, y) }
                }
                #[target_feature(enable = $features)]
                unsafe fn both(b: RowBlock<$T>, x: *const $T, by: *const $T, out: *mut $T, y: *mut $T) {
                    // SAFETY: see above.
                    unsafe { super::both::<$V, $parts>(b, x, by, out, y) }
                }
                #[target_feature(enable = $features)]
                unsafe fn strip(x: Strip<$T>) {
                    // SAFETY: see above.
                    unsafe { super::strip::<$V, $parts>(x) }
                }
                RowOperations { dots, combine, both, strip, product }
            }
        )*};
    }
    operations! { "avx512f,avx512bw,avx512dq,avx512vl" 1 wide_f32 f32 __m512; wide_f64 f64 __m512d; }
    operations! { "avx2,fma" 2 narrow_f32 f32 __m256; narrow_f64 f64 __m256d; }
}
