//! `Sort`: stable, by one key or lexicographically by several.
//!
//! Every key is mapped to an unsigned integer of the same order (nans last and equal, -0 equal to 0). The sort operates on
//! words of 32 bits of a key with, below them, the element's position, or the element itself if it is the only operand: stably, by the keys
//! from the last to the first, the lower half of a long key before its higher one.
use super::{CompiledRoutine, Run};
use crate::kernels::Bases;
use crate::threads::{self, Cost, SharedPtr};
use crate::tuning::SortTuning;
use ferrax_kernel::error::{filled, room};
use ferrax_kernel::{DType, Error, Res};
use std::sync::atomic::AtomicBool;

/// A key of `width` bits as an unsigned integer of the same order.
#[inline(always)]
fn ordered(kind: Kind, width: u32, bits: u64) -> u64 {
    let sign = 1u64 << (width - 1);
    match kind {
        Kind::Unsigned => bits,
        Kind::Signed => bits ^ sign,
        // without branches: signs are as good as drawn by lot
        Kind::Float { infinity } => {
            let (magnitude, negative) = (bits & (sign - 1), (bits >> (width - 1) & 1).wrapping_neg());
            let key = sign.wrapping_add((magnitude ^ negative).wrapping_sub(negative));
            if magnitude > infinity { u64::MAX >> (64 - width) } else { key }
        }
    }
}
#[derive(Clone, Copy)]
enum Kind {
    Unsigned,
    Signed,
    Float { infinity: u64 },
}
fn kind(d: DType) -> Kind {
    match d {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Kind::Signed,
        DType::F16 => Kind::Float { infinity: 0x7c00 },
        DType::BF16 => Kind::Float { infinity: 0x7f80 },
        DType::F32 => Kind::Float { infinity: 0x7f80_0000 },
        DType::F64 => Kind::Float { infinity: 0x7ff0_0000_0000_0000 },
        _ => Kind::Unsigned,
    }
}
#[inline(always)]
unsafe fn read<const BYTES: usize>(p: *const u8, i: usize) -> u64 {
    // SAFETY: the caller's element i exists.
    unsafe {
        match BYTES {
            1 => *p.add(i) as u64,
            2 => *p.cast::<u16>().add(i) as u64,
            4 => *p.cast::<u32>().add(i) as u64,
            _ => *p.cast::<u64>().add(i),
        }
    }
}
#[inline(always)]
unsafe fn write<const BYTES: usize>(p: *mut u8, i: usize, x: u64) {
    // SAFETY: the caller's element i exists.
    unsafe {
        match BYTES {
            1 => *p.add(i) = x as u8,
            2 => *p.cast::<u16>().add(i) = x as u16,
            4 => *p.cast::<u32>().add(i) = x as u32,
            _ => *p.cast::<u64>().add(i) = x,
        }
    }
}
/// `$f::<bytes of the dtype>(..)`
macro_rules! by_size {
    ($dtype:expr, $f:ident($($arg:expr),*)) => {
        match $dtype.size() {
            1 => $f::<1>($($arg),*),
            2 => $f::<2>($($arg),*),
            4 => $f::<4>($($arg),*),
            _ => $f::<8>($($arg),*),
        }
    };
}

const LOW: u64 = 0xffff_ffff;
/// A row: its first element, and from element to element.
#[derive(Clone, Copy)]
struct Row {
    base: usize,
    step: usize,
}
impl Row {
    #[inline(always)]
    fn at(self, w: u64) -> usize {
        self.base + (w & LOW) as usize * self.step
    }
}
/// Puts 32 bits of the key of each word's element above its position, or, where it is `alone`, above the element itself.
///
/// # Safety
/// The elements exist; nothing writes to them.
unsafe fn keyed<const BYTES: usize>(words: &mut [u64], p: SharedPtr, d: DType, row: Row, shift: u32, alone: bool) {
    #[inline(always)]
    unsafe fn pass<const BYTES: usize>(
        words: &mut [u64],
        p: SharedPtr,
        row: Row,
        alone: bool,
        key: impl Fn(u64) -> u64,
    ) {
        for w in words {
            // SAFETY: by the contract.
            let bits = unsafe { read::<BYTES>(p.get(), row.at(*w)) };
            *w = key(bits) << 32 | if alone { bits } else { *w & LOW };
        }
    }
    let width = 8 * BYTES as u32;
    // SAFETY: by the contract.
    unsafe {
        match kind(d) {
            Kind::Unsigned => pass::<BYTES>(words, p, row, alone, |b| ordered(Kind::Unsigned, width, b) >> shift),
            Kind::Signed => pass::<BYTES>(words, p, row, alone, |b| ordered(Kind::Signed, width, b) >> shift),
            float => pass::<BYTES>(words, p, row, alone, |b| ordered(float, width, b) >> shift),
        }
    }
}
/// The elements at the words' positions, in their order.
///
/// # Safety
/// They exist on both sides; nothing else touches those of the result, or writes to the others.
unsafe fn gathered<const BYTES: usize>(words: &[u64], from: SharedPtr, to: SharedPtr, row: Row) {
    for (i, w) in words.iter().enumerate() {
        // SAFETY: by the contract.
        unsafe { write::<BYTES>(to.get(), row.at(i as u64), read::<BYTES>(from.get(), row.at(*w))) };
    }
}
/// The words' low halves.
///
/// # Safety
/// The elements exist, and nothing else touches them.
unsafe fn written<const BYTES: usize>(words: &[u64], to: SharedPtr, row: Row) {
    for (i, w) in words.iter().enumerate() {
        // SAFETY: by the contract.
        unsafe { write::<BYTES>(to.get(), row.at(i as u64), w & LOW) };
    }
}

/// How the words of a row are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SortStrategy {
    /// The standard library's stable sort.
    Comparison,
    /// Digit by digit from the lowest.
    Radix { bits: u32 },
}
/// The strategy for rows of n elements.
pub fn pick(n: usize, t: &SortTuning) -> SortStrategy {
    match n {
        _ if n < t.radix_from => SortStrategy::Comparison,
        _ if (t.wide_digits_from..t.wide_digits_below).contains(&n) => SortStrategy::Radix { bits: 11 },
        _ => SortStrategy::Radix { bits: 8 },
    }
}

/// The cost and the cancel flag of threads that share a row.
type Shared<'a> = Option<(&'a Cost, &'a AtomicBool)>;

/// Sorts by the high half, stably: digit by digit from the lowest, without digits in which all
/// words agree. The words of a digit are moved, in their order, to its section; the words of each
/// part of a row follow those of the parts before.
fn radix<const DIGITS: usize>(v: &mut Vec<u64>, spare: &mut Vec<u64>, shared: Shared) -> Res<()> {
    let n = v.len();
    if spare.capacity() < n {
        *spare = room(n)?;
    }
    spare.resize(n, 0);
    let parts = if shared.is_some() { threads::num_threads() } else { 1 };
    let part = n.div_ceil(parts);
    let never = AtomicBool::new(false);
    let (cost, cancel) = shared.map_or((None, &never), |(cost, cancel)| (Some(cost), cancel));
    let mut counts = filled(parts, [0u32; DIGITS])?;
    for shift in (32..64).step_by(DIGITS.ilog2() as usize) {
        let digit = |w: u64| (w >> shift) as usize & (DIGITS - 1);
        let (from, to) = (SharedPtr(v.as_mut_ptr().cast()), SharedPtr(spare.as_mut_ptr().cast()));
        let of_parts = SharedPtr(counts.as_mut_ptr().cast());
        // SAFETY: the words of a part, which nothing writes in this pass, and its own counts.
        let own = |p: usize| unsafe {
            let first = (p * part).min(n);
            let words = std::slice::from_raw_parts(from.get().cast::<u64>().add(first), part.min(n - first));
            (words, &mut *of_parts.get().cast::<[u32; DIGITS]>().add(p))
        };
        threads::for_ranges(parts, cost, cancel, &|r| {
            for p in r {
                let (words, counts) = own(p);
                counts.fill(0);
                words.iter().for_each(|w| counts[digit(*w)] += 1);
            }
        });
        let (mut sum, mut most) = (0, 0);
        for d in 0..DIGITS {
            let before = sum;
            for counts in counts.iter_mut() {
                (counts[d], sum) = (sum, sum + counts[d]);
            }
            most = most.max(sum - before);
        }
        if sum as usize != n {
            return Ok(()); // cancelled: not every part was counted
        }
        if most as usize == n {
            continue;
        }
        threads::for_ranges(parts, cost, cancel, &|r| {
            for p in r {
                let (words, counts) = own(p);
                for w in words {
                    let d = digit(*w);
                    // SAFETY: the counts add up to n, and each word of each part has a place of its own among them.
                    unsafe { to.get().cast::<u64>().add(counts[d] as usize).write(*w) };
                    counts[d] += 1;
                }
            }
        });
        std::mem::swap(v, spare);
    }
    Ok(())
}
/// Sorts words by their high half, stably.
fn sort_words(strategy: SortStrategy, v: &mut Vec<u64>, spare: &mut Vec<u64>, shared: Shared) -> Res<()> {
    match strategy {
        SortStrategy::Comparison => v.sort_by_key(|x| x >> 32),
        SortStrategy::Radix { bits: 11 } => radix::<2048>(v, spare, shared)?,
        SortStrategy::Radix { .. } => radix::<256>(v, spare, shared)?,
    }
    Ok(())
}

/// Rows of n elements, at distance `inner`.
struct Sort {
    strategy: SortStrategy,
    rows: usize,
    n: usize,
    inner: usize,
    dtypes: Vec<DType>,
    /// Operands and shifts of the 32-bit halves of keys, the least significant first.
    rounds: Vec<(usize, u32)>,
    /// One operand of at most 32 bits: words hold elements in place of positions.
    alone: bool,
    /// Whether threads may share a row.
    long: bool,
    cost: Cost,
    pass: Cost,
}
impl Sort {
    /// Sorts some rows.
    fn rows(&self, [ins, outs]: [&[SharedPtr]; 2], rows: std::ops::Range<usize>, shared: Shared) -> Res<()> {
        let (n, inner) = (self.n, self.inner);
        let (mut words, mut spare) = (room::<u64>(n)?, vec![]);
        for k in rows {
            let row = Row { base: k / inner * n * inner + k % inner, step: inner };
            words.clear();
            words.extend(0..n as u64);
            // SAFETY: elements 0 to n of the row, of every operand and result; each row belongs to
            // one thread, and no result overlaps an operand.
            unsafe {
                for (k, shift) in &self.rounds {
                    let d = self.dtypes[*k];
                    by_size!(d, keyed(&mut words, ins[*k], d, row, *shift, self.alone));
                    sort_words(self.strategy, &mut words, &mut spare, shared)?;
                }
                if self.alone {
                    by_size!(self.dtypes[0], written(&words, outs[0], row));
                    continue;
                }
                for (k, d) in self.dtypes.iter().enumerate() {
                    by_size!(d, gathered(&words, ins[k], outs[k], row));
                }
            }
        }
        Ok(())
    }
}
impl CompiledRoutine for Sort {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        let ins: Vec<SharedPtr> = (0..self.dtypes.len()).map(|k| SharedPtr(bases.input(k as u32))).collect();
        let outs: Vec<SharedPtr> = (0..self.dtypes.len()).map(|k| SharedPtr(bases.output(k as u32))).collect();
        if parallel && self.long && self.rows < threads::num_threads() {
            return self.rows([&ins, &outs], 0..self.rows, Some((&self.pass, bases.cancel)));
        }
        threads::try_ranges(self.rows, parallel.then_some(&self.cost), bases.cancel, &|r| {
            self.rows([&ins, &outs], r, None)
        })
    }
    fn text(&self) -> String {
        let strategy = match self.strategy {
            SortStrategy::Comparison => "comparison".to_string(),
            SortStrategy::Radix { bits } => format!("radix digits={bits}"),
        };
        let words = if self.alone { "elements" } else { "positions" };
        let shared = if self.long { " rows_shared_by_threads" } else { "" };
        format!("sort strategy={strategy} passes={} words={words}{shared}", self.rounds.len())
    }
}

pub fn compile(outer: usize, n: usize, inner: usize, dtypes: &[DType], num_keys: usize, t: &SortTuning) -> Res<Run> {
    if n >= u32::MAX as usize || num_keys > dtypes.len() {
        return Err(Error::Unsupported(format!("sorting {n} elements by {num_keys} keys")));
    }
    let halves = |k: usize| if dtypes[k].size() == 8 { vec![(k, 0), (k, 32)] } else { vec![(k, 0)] };
    let rounds: Vec<(usize, u32)> = (0..num_keys).rev().flat_map(halves).collect();
    let rows = outer * inner;
    let each = 5.0 * rounds.len() as f64 + 2.0 * dtypes.len() as f64;
    Ok(Box::new(Sort {
        strategy: pick(n, t),
        rows,
        n,
        inner,
        dtypes: dtypes.to_vec(),
        rounds,
        alone: dtypes.len() == 1 && num_keys == 1 && dtypes[0].size() <= 4,
        long: n > t.shared_above,
        cost: Cost::of((rows * n) as f64 * each),
        pass: Cost::of(n as f64),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrax_kernel::Scalar;

    #[test]
    fn keys_compare_as_values_do() {
        let key = |d: DType, bits| ordered(kind(d), 8 * d.size() as u32, bits);
        for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let values = [f64::NEG_INFINITY, -3.0, -1e-7, 0.0, 1e-7, 2.0, f64::INFINITY, f64::NAN]
                .map(|x| key(d, Scalar::from_f64(d, x).bits));
            assert!(values.windows(2).all(|w| w[0] < w[1]), "{d}");
            assert_eq!(key(d, Scalar::from_f64(d, -0.0).bits), values[3]);
            assert_eq!(key(d, Scalar::from_f64(d, -f64::NAN).bits), values[7]);
        }
        for d in [DType::I8, DType::I64] {
            assert!(key(d, Scalar::from_i64(d, -1).bits) < key(d, Scalar::from_i64(d, 0).bits));
        }
    }
    #[test]
    fn length_picks_the_strategy() {
        let of = |n| pick(n, &SortTuning::DEFAULT);
        let (narrow, wide) = (SortStrategy::Radix { bits: 8 }, SortStrategy::Radix { bits: 11 });
        assert_eq!(
            [of(0), of(255), of(256), of(4095)],
            [SortStrategy::Comparison, SortStrategy::Comparison, narrow, narrow]
        );
        assert_eq!([of(4096), of((1 << 20) - 1), of(1 << 20)], [wide, wide, narrow]);
    }
    #[test]
    fn radix_is_a_stable_sort() {
        let (cost, cancel) = (Cost::of(1e9), AtomicBool::new(false));
        for (n, keys, shared) in [
            (300, 32, false),
            (5000, 24, false),
            (5000, 3, false),
            (1 << 20, 32, false),
            (70001, 32, true),
            (300, 1, true),
        ] {
            let mut x = 7u64;
            let mut v: Vec<u64> = (0..n)
                .map(|i| {
                    x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (x >> (64 - keys)) << 32 | i
                })
                .collect();
            let mut want = v.clone();
            want.sort_by_key(|x| x >> 32);
            let shared = shared.then_some((&cost, &cancel));
            let mut narrow = v.clone();
            radix::<2048>(&mut v, &mut vec![], shared).unwrap();
            radix::<256>(&mut narrow, &mut vec![], shared).unwrap();
            assert!(v == want && narrow == want, "{n} words of {keys} bits");
        }
    }
}
