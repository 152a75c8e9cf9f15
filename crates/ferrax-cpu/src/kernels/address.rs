//! Addresses of gathers and scatters, and the loops over windows of one element.
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
use smallvec::SmallVec;
use std::marker::PhantomData;

/// How a component of an index vector moves the window: the operand's stride in bytes, and the last
/// start in bounds.
pub struct Component {
    pub stride: isize,
    pub last: i64,
}

/// Addresses that are computed at once.
pub const AT_ONCE: usize = 512;
/// The address of a window that is dropped.
pub const OUTSIDE: i64 = -1;

/// Index vectors: of each component where the first index is, and from one to the next.
#[derive(Clone)]
pub struct IndexArrays {
    pub components: SmallVec<[*const u8; 4]>,
    pub every: usize,
}
// SAFETY: readers prove that nothing writes to the memory behind the pointers meanwhile.
unsafe impl Sync for IndexArrays {}

type AddressFn = unsafe fn(ix: &IndexArrays, from: usize, n: usize, parts: &[Component], drop: bool, at: *mut i64);
pub trait Address {
    /// # Safety
    /// `ix` has `from + n` indices for each of `parts`; `at` holds n addresses.
    unsafe fn run(ix: &IndexArrays, from: usize, n: usize, parts: &[Component], drop: bool, at: *mut i64);
}
tiers!(
    pick_address,
    Address,
    fn(ix: &IndexArrays, from: usize, n: usize, parts: &[Component], drop: bool, at: *mut i64)
);

trait WideIndex: Copy {
    /// As an i64; a value out of its range counts as far out of bounds.
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
    unsafe fn run(ix: &IndexArrays, from: usize, n: usize, parts: &[Component], drop: bool, at: *mut i64) {
        if parts.is_empty() {
            // SAFETY: at holds n.
            unsafe { std::slice::from_raw_parts_mut(at, n) }.fill(0);
        }
        for (j, (c, first)) in parts.iter().zip(&ix.components).enumerate() {
            let own = first.cast::<T>().wrapping_add(from * ix.every);
            // SAFETY: each position has an index for each part.
            let one = |every: usize, adds: bool, drops: bool| unsafe { component(own, every, n, c, [adds, drops], at) };
            // loops of their own where these are known
            match (ix.every, j > 0, drop) {
                (1, false, false) => one(1, false, false),
                (1, false, true) => one(1, false, true),
                (1, true, false) => one(1, true, false),
                (1, true, true) => one(1, true, true),
                (2, adds, drops) => one(2, adds, drops),
                (every, adds, drops) => one(every, adds, drops),
            }
        }
    }
}
/// The contribution of one component to addresses: added to those in `at`, or stored there.
///
/// # Safety
/// As for [`Address`].
#[inline(always)]
unsafe fn component<T: WideIndex>(
    ix: *const T,
    every: usize,
    n: usize,
    c: &Component,
    [adds, drops]: [bool; 2],
    at: *mut i64,
) {
    // local copies: the compiler must assume that stores to `at` could change the component
    let (last, stride) = (c.last, c.stride as i64);
    for p in 0..n {
        // SAFETY: p < n.
        unsafe {
            let x = (*ix.add(p * every)).wide();
            let inside = x.max(0).min(last);
            let old = if adds { *at.add(p) } else { 0 };
            let new = old + inside * stride;
            *at.add(p) = if drops & ((old < 0) | (inside != x)) { OUTSIDE } else { new };
        }
    }
}

/// Address `p` moves by `start + p step`, unless it is OUTSIDE.
pub type ShiftFn = unsafe fn(at: *mut i64, n: usize, start: i64, step: i64);
pub trait Shift {
    /// # Safety
    /// `at` holds n addresses.
    unsafe fn run(at: *mut i64, n: usize, start: i64, step: i64);
}
tiers!(pick_shift, Shift, fn(at: *mut i64, n: usize, start: i64, step: i64));
struct Evenly;
impl Shift for Evenly {
    #[inline(always)]
    unsafe fn run(at: *mut i64, n: usize, start: i64, step: i64) {
        // SAFETY: by the contract.
        for (x, p) in unsafe { std::slice::from_raw_parts_mut(at, n) }.iter_mut().zip(0..) {
            let moved = *x + start + p * step;
            *x = if *x < 0 { *x } else { moved };
        }
    }
}

/// The windows of a routine.
pub struct Addresses {
    parts: Vec<Component>,
    f: AddressFn,
    /// For positions that move windows by themselves.
    pub shift: ShiftFn,
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
        Addresses { parts, f, shift: pick_shift::<Evenly>(t), index_bytes: index.size(), drop }
    }
    /// The addresses of the windows at positions `from .. from + n`.
    ///
    /// # Safety
    /// `ix` points at the routine's indices, which have these positions; `n` is at most `AT_ONCE`.
    #[inline]
    pub unsafe fn of(&self, ix: &IndexArrays, from: usize, n: usize, at: &mut [i64; AT_ONCE]) {
        debug_assert!(n <= AT_ONCE);
        // SAFETY: each position has an index vector as long as there are parts.
        unsafe { (self.f)(ix, from, n, &self.parts, self.drop, at.as_mut_ptr()) }
    }
    /// The address of the first window.
    ///
    /// # Safety
    /// As `of`: there is a position.
    #[inline]
    pub unsafe fn first(&self, ix: &IndexArrays) -> i64 {
        let mut at = OUTSIDE;
        // SAFETY: by the contract.
        unsafe { (self.f)(ix, 0, 1, &self.parts, self.drop, &mut at) };
        at
    }
    /// For contiguous indices, vector after vector.
    pub fn together(&self, ix: *const u8) -> IndexArrays {
        let components = (0..self.parts.len()).map(|j| ix.wrapping_add(j * self.index_bytes)).collect();
        IndexArrays { components, every: self.parts.len() }
    }
    /// For components in separate arrays: `of` gives the first element of each.
    pub fn apart(&self, of: impl Fn(usize) -> *const u8) -> IndexArrays {
        IndexArrays { components: (0..self.parts.len()).map(of).collect(), every: 1 }
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
/// Addresses none of which is OUTSIDE.
struct Inside<T>(PhantomData<T>);
impl<T: Copy> Take for Inside<T> {
    #[inline(always)]
    unsafe fn run(out: *mut u8, from: *const u8, at: *const i64, n: usize, _: u64) {
        for p in 0..n {
            // SAFETY: p < n; an address is an element's.
            unsafe {
                out.cast::<T>().add(p).write_unaligned(from.offset(*at.add(p) as isize).cast::<T>().read_unaligned())
            };
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
/// Whether addresses are `inside`: none is OUTSIDE.
pub fn take(bytes: usize, inside: bool, t: Tier) -> TakeFn {
    match (bytes, inside) {
        (1, false) => pick_take::<ElementOf<u8>>(t),
        (2, false) => pick_take::<ElementOf<u16>>(t),
        (4, false) => pick_take::<ElementOf<u32>>(t),
        (_, false) => pick_take::<ElementOf<u64>>(t),
        (1, true) => pick_take::<Inside<u8>>(t),
        (2, true) => pick_take::<Inside<u16>>(t),
        (4, true) => pick_take::<Inside<u32>>(t),
        (_, true) => pick_take::<Inside<u64>>(t),
    }
}

/// The loop that copies contiguous windows of so many bytes at addresses in bounds, if this size
/// has one.
pub fn take_rows(bytes: usize, t: Tier) -> Option<TakeFn> {
    Some(match bytes {
        8 => pick_take::<Inside<[u8; 8]>>(t),
        12 => pick_take::<Inside<[u8; 12]>>(t),
        16 => pick_take::<Inside<[u8; 16]>>(t),
        24 => pick_take::<Inside<[u8; 24]>>(t),
        32 => pick_take::<Inside<[u8; 32]>>(t),
        64 => pick_take::<Inside<[u8; 64]>>(t),
        128 => pick_take::<Inside<[u8; 128]>>(t),
        _ => return None,
    })
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
    /// Addresses of these positions are those of windows in `out`; `new` has one element for each
    /// and does not overlap `out`.
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
        for k in 0..n {
            // SAFETY: by the contract; elements j.. of a window are below `run`.
            unsafe {
                let p = *of.add(k) as usize;
                let (to, from) =
                    (out.offset(*at.add(p) as isize).cast::<F::A>(), new.offset(p as isize * every).cast::<F::A>());
                let mut j = 0;
                // PERF: each group of elements is read before the first of them is written. A loop
                // that overwrites its own operand is not vectorized otherwise.
                macro_rules! together {
                    ($N:literal) => {
                        while run - j >= $N {
                            let mut old = to.add(j).cast::<[F::A; $N]>().read();
                            let new = from.add(j).cast::<[F::A; $N]>().read();
                            for l in 0..$N {
                                old[l] = F::f(old[l], new[l]);
                            }
                            to.add(j).cast::<[F::A; $N]>().write(old);
                            j += $N;
                        }
                    };
                }
                together!(16);
                together!(8);
                together!(4);
                together!(2);
                together!(1);
            }
        }
    }
}
/// Both, of one function; elements narrower than lanes have no loop over rows.
#[derive(Clone, Copy)]
pub struct PutFns {
    pub one: PutFn,
    pub rows: Option<PutRowsFn>,
}
impl PutFns {
    pub fn of<F: F2<R = <F as F2>::A>>(t: Tier) -> PutFns {
        PutFns { one: pick_put::<Combined<F>>(t), rows: Some(pick_put_rows::<Combined<F>>(t)) }
    }
    /// For elements one by one. It is not vectorized, so one tier serves all machines.
    pub fn of_elements<F: F2<R = <F as F2>::A>>() -> PutFns {
        PutFns { one: <Combined<F> as PutAll>::run, rows: None }
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
