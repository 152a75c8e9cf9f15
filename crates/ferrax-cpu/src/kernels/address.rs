//! Where the windows of gathers and scatters begin, and the loops over windows of one element.
//!
//! ```text
//!     a[i, j] of f32[700, 700]:   components (stride 2800, last 699), (stride 4, last 699)   ->   at[p] = 2800 i[p] + 4 j[p]
//! ```
//!
//! Addresses are computed some hundred at a time, one component after the other, so that clamping and multiplying are vector loops.
//!
//! INVARIANT: an address is the offset in bytes of a window that lies inside the operand, or `OUTSIDE`.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // over two arrays at once
use super::block::{F2, tiers};
use crate::tier::Tier;
use ferrax_kernel::DType;
use std::marker::PhantomData;

/// How a component of an index vector moves the window: operand stride in bytes, and the last start that lies inside.
pub struct Component {
    pub stride: isize,
    pub last: i64,
}

/// Addresses that are computed at once.
pub const AT_ONCE: usize = 512;
/// What stands for a window that is dropped.
pub const OUTSIDE: i64 = -1;

type AddressFn = unsafe fn(ix: *const u8, n: usize, parts: &[Component], drop: bool, at: *mut i64);
pub trait Address {
    /// # Safety
    /// `ix` points at `n * parts.len()` indices; `at` holds n addresses.
    unsafe fn run(ix: *const u8, n: usize, parts: &[Component], drop: bool, at: *mut i64);
}
tiers!(pick_address, Address, fn(ix: *const u8, n: usize, parts: &[Component], drop: bool, at: *mut i64));

trait WideIndex: Copy {
    /// What no i64 holds counts as far outside.
    fn wide(self) -> i64;
}
macro_rules! index {
    ($($T:ty)*) => {$(
        impl WideIndex for $T {
            #[inline(always)]
            fn wide(self) -> i64 { self as i64 }
        }
    )*};
}
index!(i8 i16 i32 i64 u8 u16 u32);
impl WideIndex for u64 {
    #[inline(always)]
    fn wide(self) -> i64 {
        self.min(i64::MAX as u64) as i64
    }
}
struct ElementOf<T>(PhantomData<T>);
impl<T: WideIndex> Address for ElementOf<T> {
    #[inline(always)]
    unsafe fn run(ix: *const u8, n: usize, parts: &[Component], drop: bool, at: *mut i64) {
        // SAFETY: at holds n.
        unsafe { std::slice::from_raw_parts_mut(at, n) }.fill(0);
        for (j, c) in parts.iter().enumerate() {
            let ix = ix.cast::<T>().wrapping_add(j);
            let part = |every: usize| {
                for p in 0..n {
                    // SAFETY: p < n, and each position has an index for each part.
                    unsafe {
                        let (x, old) = ((*ix.add(p * every)).wide(), *at.add(p));
                        let inside = x.max(0).min(c.last);
                        let new = old + inside * c.stride as i64;
                        *at.add(p) = if (old < 0) | (drop & (inside != x)) { OUTSIDE } else { new };
                    }
                }
            };
            match parts.len() {
                1 => part(1),
                2 => part(2),
                every => part(every),
            }
        }
    }
}

/// The windows of a routine.
pub struct Addresses {
    parts: Vec<Component>,
    f: AddressFn,
    index_bytes: usize,
    /// Windows that reach outside are dropped; else they are moved inside.
    drop: bool,
}
impl Addresses {
    /// INVARIANT: every component's last start is 0 at least.
    pub fn new(parts: Vec<Component>, index: DType, drop: bool, t: Tier) -> Addresses {
        let f = match index {
            DType::I8 => pick_address::<ElementOf<i8>>(t),
            DType::I16 => pick_address::<ElementOf<i16>>(t),
            DType::I32 => pick_address::<ElementOf<i32>>(t),
            DType::I64 => pick_address::<ElementOf<i64>>(t),
            DType::U8 | DType::Bool => pick_address::<ElementOf<u8>>(t),
            DType::U16 => pick_address::<ElementOf<u16>>(t),
            DType::U32 => pick_address::<ElementOf<u32>>(t),
            _ => pick_address::<ElementOf<u64>>(t),
        };
        Addresses { parts, f, index_bytes: index.size(), drop }
    }
    /// Of the windows at positions `from .. from + n`.
    ///
    /// # Safety
    /// `ix` points at the routine's indices, which have these positions; `n` is at most `AT_ONCE`.
    #[inline]
    pub unsafe fn of(&self, ix: *const u8, from: usize, n: usize, at: &mut [i64; AT_ONCE]) {
        debug_assert!(n <= AT_ONCE);
        // SAFETY: each position has an index vector as long as there are parts.
        unsafe {
            (self.f)(
                ix.wrapping_add(from * self.parts.len() * self.index_bytes),
                n,
                &self.parts,
                self.drop,
                at.as_mut_ptr(),
            )
        }
    }
}

/// `out[p]` is the element at `at[p]`, or `fill`; the results lie one after the other.
pub type TakeFn = unsafe fn(out: *mut u8, from: *const u8, at: *const i64, n: usize, fill: u64);
pub trait Take {
    /// # Safety
    /// Addresses are those of elements in `from`; `out` holds n elements.
    unsafe fn run(out: *mut u8, from: *const u8, at: *const i64, n: usize, fill: u64);
}
tiers!(pick_take, Take, fn(out: *mut u8, from: *const u8, at: *const i64, n: usize, fill: u64));
impl<T: OfBits> Take for ElementOf<T> {
    #[inline(always)]
    unsafe fn run(out: *mut u8, from: *const u8, at: *const i64, n: usize, fill: u64) {
        let (out, fill) = (out.cast::<T>(), T::of_bits(fill));
        for p in 0..n {
            // SAFETY: p < n; an address that is not OUTSIDE is an element's.
            unsafe {
                let a = *at.add(p);
                *out.add(p) = if a < 0 { fill } else { *from.offset(a as isize).cast::<T>() };
            }
        }
    }
}
trait OfBits: Copy {
    fn of_bits(x: u64) -> Self;
}
macro_rules! of_bits {
    ($($T:ty)*) => {$(
        impl OfBits for $T {
            #[inline(always)]
            fn of_bits(x: u64) -> $T { x as $T }
        }
    )*};
}
of_bits!(u8 u16 u32 u64);
pub fn take(bytes: usize, t: Tier) -> TakeFn {
    match bytes {
        1 => pick_take::<ElementOf<u8>>(t),
        2 => pick_take::<ElementOf<u16>>(t),
        4 => pick_take::<ElementOf<u32>>(t),
        _ => pick_take::<ElementOf<u64>>(t),
    }
}

/// The element at `at[p]` takes `new[p]`, in order, `every` bytes from one to the next.
pub type PutFn = unsafe fn(out: *mut u8, at: *const i64, new: *const u8, every: isize, n: usize);
pub trait PutAll {
    /// # Safety
    /// Addresses are those of elements in `out`; `new` has an element for each.
    unsafe fn run(out: *mut u8, at: *const i64, new: *const u8, every: isize, n: usize);
}
tiers!(pick_put, PutAll, fn(out: *mut u8, at: *const i64, new: *const u8, every: isize, n: usize));
/// `old = f(old, new)`.
pub struct Combined<F>(PhantomData<F>);
impl<F: F2<R = <F as F2>::A>> PutAll for Combined<F> {
    #[inline(always)]
    unsafe fn run(out: *mut u8, at: *const i64, new: *const u8, every: isize, n: usize) {
        for p in 0..n {
            // SAFETY: p < n; an address that is not OUTSIDE is an element's.
            unsafe {
                let a = *at.add(p);
                if a >= 0 {
                    let old = out.offset(a as isize).cast::<F::A>();
                    *old = F::f(*old, *new.offset(p as isize * every).cast::<F::A>());
                }
            }
        }
    }
}
/// Of `n` positions `of`, each with a window of `run` elements that lie together: those at `at[p]` take those at `new`, `every` bytes from one position
/// to the next.
pub type PutRowsFn =
    unsafe fn(out: *mut u8, at: *const i64, of: *const u16, n: usize, new: *const u8, every: isize, run: usize);
pub trait PutRows {
    /// # Safety
    /// Addresses of these positions are those of windows in `out`; `new` has one for each, apart from `out`.
    unsafe fn run(out: *mut u8, at: *const i64, of: *const u16, n: usize, new: *const u8, every: isize, run: usize);
}
tiers!(
    pick_put_rows,
    PutRows,
    fn(out: *mut u8, at: *const i64, of: *const u16, n: usize, new: *const u8, every: isize, run: usize)
);
impl<F: F2<R = <F as F2>::A>> PutRows for Combined<F> {
    #[inline(always)]
    unsafe fn run(out: *mut u8, at: *const i64, of: *const u16, n: usize, new: *const u8, every: isize, run: usize) {
        /// Elements that are read before the first of them is written: what writes over an operand is no vector loop otherwise.
        const TOGETHER: usize = 16;
        for k in 0..n {
            // SAFETY: by the contract; elements j.. of a window are below `run`.
            unsafe {
                let p = *of.add(k) as usize;
                let (to, from) =
                    (out.offset(*at.add(p) as isize).cast::<F::A>(), new.offset(p as isize * every).cast::<F::A>());
                let mut j = 0;
                while j + TOGETHER <= run {
                    let mut old = to.add(j).cast::<[F::A; TOGETHER]>().read();
                    let new = from.add(j).cast::<[F::A; TOGETHER]>().read();
                    for l in 0..TOGETHER {
                        old[l] = F::f(old[l], new[l]);
                    }
                    to.add(j).cast::<[F::A; TOGETHER]>().write(old);
                    j += TOGETHER;
                }
                for j in j..run {
                    *to.add(j) = F::f(*to.add(j), *from.add(j));
                }
            }
        }
    }
}
/// Both, of one function.
#[derive(Clone, Copy)]
pub struct PutFns {
    pub one: PutFn,
    pub rows: PutRowsFn,
}
impl PutFns {
    pub fn of<F: F2<R = <F as F2>::A>>(t: Tier) -> PutFns {
        PutFns { one: pick_put::<Combined<F>>(t), rows: pick_put_rows::<Combined<F>>(t) }
    }
}
/// `old = new`.
impl<T: OfBits> PutAll for ElementOf<T> {
    #[inline(always)]
    unsafe fn run(out: *mut u8, at: *const i64, new: *const u8, every: isize, n: usize) {
        for p in 0..n {
            // SAFETY: as above.
            unsafe {
                let a = *at.add(p);
                if a >= 0 {
                    *out.offset(a as isize).cast::<T>() = *new.offset(p as isize * every).cast::<T>();
                }
            }
        }
    }
}
pub fn set(bytes: usize, t: Tier) -> PutFn {
    match bytes {
        1 => pick_put::<ElementOf<u8>>(t),
        2 => pick_put::<ElementOf<u16>>(t),
        4 => pick_put::<ElementOf<u32>>(t),
        _ => pick_put::<ElementOf<u64>>(t),
    }
}
