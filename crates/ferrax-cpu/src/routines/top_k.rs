//! `TopK`: elements above the k-th best so far are collected, and the collection is cut to the best k whenever it is full.
//!
//! ```text
//! k = 2: 5 1 4 9 3 6 ..    5 1 4 -> 5 4;    of the others, only those above 4 are candidates: 9 6 -> 9 6;    then above 6
//! ```
//! INVARIANT: candidates, keys with their positions, are all different, so the result is unique. A later element that equals the k-th best is not better.
#![allow(unsafe_code)]
use super::{CompiledRoutine, Run};
use crate::kernels::Bases;
use crate::kernels::block::tiers;
use crate::threads::{self, Cost, SharedPtr};
use crate::tier::Tier;
use crate::tuning::TopKTuning;
use ferrax_kernel::error::room;
use ferrax_kernel::{DType, Res};

/// Elements that are compared with the bound together.
const BATCH: usize = 32;

/// An element's key, complemented, and its position: the best candidate is the least.
type Candidate = (i64, u32);

/// An element as stored in memory.
trait Ranked: Copy {
    type Key: Copy + PartialOrd + From<i8> + Into<i64>;
    fn key(self) -> Self::Key;
    /// Keys that fit come back.
    fn narrow(key: i64) -> Self::Key;
}
#[derive(Clone, Copy)]
struct FloatBits<T>(T);
macro_rules! ranked {
    ($($T:ty, $K:ty: |$x:ident| $key:expr;)*) => {$(
        impl Ranked for $T {
            type Key = $K;
            #[inline(always)]
            fn key(self) -> $K { let $x = self; $key }
            #[inline(always)]
            fn narrow(key: i64) -> $K { key as $K }
        }
    )*};
}
// floats by sign and magnitude
ranked! {
    u8, i32: |x| x as i32;
    i8, i32: |x| x as i32;
    u16, i32: |x| x as i32;
    i16, i32: |x| x as i32;
    u32, i32: |x| (x ^ 1 << 31) as i32;
    i32, i32: |x| x;
    u64, i64: |x| (x ^ 1 << 63) as i64;
    i64, i64: |x| x;
    FloatBits<i16>, i32: |x| (x.0 ^ (x.0 >> 15 & i16::MAX)) as i32;
    FloatBits<i32>, i32: |x| x.0 ^ (x.0 >> 31 & i32::MAX);
    FloatBits<i64>, i64: |x| x.0 ^ (x.0 >> 63 & i64::MAX);
}

/// Part of a row: where it continues, and where candidates are stored.
pub struct Scan {
    x: *const u8,
    from: usize,
    n: usize,
    /// The bound that a candidate's key must exceed, if there is one.
    above: Option<i64>,
    to: *mut Candidate,
    room: usize,
    found: usize,
}
pub trait Scanner {
    /// Goes on until the row ends or there may be no room for more.
    ///
    /// # Safety
    /// `x` holds `n` elements, `to` has room for `room`.
    unsafe fn run(s: *mut Scan);
}
tiers!(pick_scanner, Scanner, fn(s: *mut Scan));
struct Scanning<T>(std::marker::PhantomData<T>);
impl<T: Ranked> Scanner for Scanning<T> {
    #[inline(always)]
    unsafe fn run(s: *mut Scan) {
        // SAFETY: by the contract: from .. from + count lies in the row, and found + count is at
        // most `room`.
        unsafe {
            let s = &mut *s;
            let x = s.x.cast::<T>();
            let bound = s.above.map(T::narrow);
            while s.from < s.n {
                let count = BATCH.min(s.n - s.from);
                let here = x.add(s.from);
                if let Some(bound) = bound
                    && count == BATCH
                {
                    let mut any = false;
                    for i in 0..BATCH {
                        any |= (*here.add(i)).key() > bound;
                    }
                    if !any {
                        s.from += BATCH;
                        continue;
                    }
                }
                if s.found + count > s.room {
                    return;
                }
                for i in 0..count {
                    let key = (*here.add(i)).key();
                    if bound.is_none_or(|bound| key > bound) {
                        s.to.add(s.found).write((!key.into(), (s.from + i) as u32));
                        s.found += 1;
                    }
                }
                s.from += count;
            }
        }
    }
}

fn scanner(d: DType, tier: Tier) -> unsafe fn(*mut Scan) {
    match (d.is_float(), d.size()) {
        (true, 2) => pick_scanner::<Scanning<FloatBits<i16>>>(tier),
        (true, 4) => pick_scanner::<Scanning<FloatBits<i32>>>(tier),
        (true, _) => pick_scanner::<Scanning<FloatBits<i64>>>(tier),
        _ => match d {
            DType::I8 => pick_scanner::<Scanning<i8>>(tier),
            DType::I16 => pick_scanner::<Scanning<i16>>(tier),
            DType::U16 => pick_scanner::<Scanning<u16>>(tier),
            DType::I32 => pick_scanner::<Scanning<i32>>(tier),
            DType::U32 => pick_scanner::<Scanning<u32>>(tier),
            DType::I64 => pick_scanner::<Scanning<i64>>(tier),
            DType::U64 => pick_scanner::<Scanning<u64>>(tier),
            _ => pick_scanner::<Scanning<u8>>(tier),
        },
    }
}

/// The best k elements of a row, in order.
///
/// # Safety
/// `x` holds `n` elements of the type that `scan` reads; k is neither 0 nor above n.
unsafe fn best(scan: unsafe fn(*mut Scan), x: *const u8, n: usize, k: usize, found: &mut Vec<Candidate>) {
    found.clear();
    let room = found.capacity();
    let mut s = Scan { x, from: 0, n, above: None, to: found.as_mut_ptr(), room, found: 0 };
    loop {
        // SAFETY: by the contract; the capacity is that of `room`.
        unsafe {
            scan(&mut s);
            found.set_len(s.found);
        }
        if found.len() > k {
            found.select_nth_unstable(k - 1);
            found.truncate(k);
        }
        if s.from == n {
            break;
        }
        // the collection was full, so it had k and more
        s.above = Some(!found[k - 1].0);
        (s.to, s.found) = (found.as_mut_ptr(), found.len());
    }
    found.sort_unstable();
}

/// Rows of n elements, at distance `inner`.
struct TopK {
    scan: unsafe fn(*mut Scan),
    /// Bytes of an element.
    size: usize,
    rows: usize,
    n: usize,
    inner: usize,
    k: usize,
    /// Candidates that a collection has room for.
    room: usize,
    cost: Cost,
}
impl TopK {
    fn rows(&self, [x, values, positions]: [SharedPtr; 3], rows: std::ops::Range<usize>) -> Res<()> {
        let (n, k, inner, size) = (self.n, self.k, self.inner, self.size);
        let mut found: Vec<Candidate> = room(self.room)?;
        let mut row: Vec<u64> = room(if inner == 1 { 0 } else { (n * size).div_ceil(8) })?;
        for at in rows {
            let (first, to) = (at / inner * n * inner + at % inner, at / inner * k * inner + at % inner);
            // SAFETY: n elements of the operand, and k of each result, at distance `inner`, belong
            // to this row; the copy of a row has room for its bytes, and k and n are verified.
            unsafe {
                let mut from = x.get().cast_const().add(first * size);
                if inner > 1 {
                    let copy = row.as_mut_ptr().cast::<u8>();
                    for j in 0..n {
                        copy.add(j * size).copy_from_nonoverlapping(from.add(j * inner * size), size);
                    }
                    from = copy;
                }
                best(self.scan, from, n, k, &mut found);
                for (j, (_, i)) in found.iter().enumerate() {
                    let to = to + j * inner;
                    values.get().add(to * size).copy_from_nonoverlapping(from.add(*i as usize * size), size);
                    *positions.get().cast::<i32>().add(to) = *i as i32;
                }
            }
        }
        Ok(())
    }
}
impl CompiledRoutine for TopK {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        if self.rows * self.k == 0 {
            return Ok(());
        }
        let operands = [bases.input(0), bases.output(0), bases.output(1)].map(SharedPtr);
        threads::try_ranges(self.rows, parallel.then_some(&self.cost), bases.cancel, &|r| self.rows(operands, r))
    }
    fn text(&self) -> String {
        let copied = if self.inner == 1 { "" } else { " rows=copied" };
        format!("top_k strategy=bounded_collection room={}{copied}", self.room)
    }
}

pub fn compile([outer, n, inner]: [usize; 3], k: usize, d: DType, tier: Tier, t: &TopKTuning) -> Res<Run> {
    let rows = outer * inner;
    let room = k.saturating_add(k.max(t.min_spare) + BATCH).min(n + BATCH);
    let cost = Cost::of(rows as f64 * (0.3 * n as f64 + 20.0 * k as f64));
    Ok(Box::new(TopK { scan: scanner(d, tier), size: d.size(), rows, n, inner, k, room, cost }))
}
