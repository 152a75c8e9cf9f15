//! `Cumulative`: running combinations, strictly in sequence along an axis, several columns at a time.
use super::strided::{SharedPtr, copy};
use super::{CompiledRoutine, Run};
use crate::kernels::block::{BlockFn, BlockLoop, pick};
use crate::kernels::lane::{Float, round_bf16, round_f16};
use crate::kernels::moves::{EBF16, EF16, EI8, EI16, EU8, EU16, Element, LoadFn};
use crate::kernels::{Bases, moves, scalar};
use crate::threads::{self, Cost};
use crate::tier::Tier;
use crate::tuning::Target;
use ferrax_kernel::routine::CumulativeKind;
use ferrax_kernel::{Bin, DType, Error, Res, math};
use std::marker::PhantomData;
use std::ops::Range;

/// `log(exp a + exp b)`; where `a - b` is nan (equal infinities, or a nan) it is `a + b`.
struct LogAddExp<T>(PhantomData<T>);
macro_rules! log_add_exp {
    ($T:ident) => {
        impl BlockLoop for LogAddExp<$T> {
            #[inline(always)]
            unsafe fn run(d: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
                for i in 0..n {
                    // SAFETY: n lanes each.
                    unsafe {
                        let (x, y) = (*a.cast::<$T>().add(i), *b.cast::<$T>().add(i));
                        let difference = x - y;
                        let sum = Float::maximum(x, y) + math::log1p(math::exp(-difference.abs()));
                        *d.cast::<$T>().add(i) = if difference != difference { x + y } else { sum };
                    }
                }
            }
        }
    };
}
log_add_exp!(f32);
log_add_exp!(f64);

/// Accumulates rows of n elements, `row` bytes apart, each along itself, with so many elements from one to the next.
type RunningFn = unsafe fn(out: *mut u8, x: *const u8, n: usize, step: isize, row: usize);
/// Rows that go side by side, since each waits for its last result.
const ABREAST: usize = 4;

/// The accumulators of `R` rows in registers, as lanes; `round` brings one to a value of the dtype.
///
/// # Safety
/// `x` and `out` hold R rows of n elements each, at distance `step`.
#[inline(always)]
unsafe fn running<E: Element, const R: usize>(
    [out, x]: [*mut u8; 2],
    n: usize,
    step: isize,
    row: usize,
    f: impl Fn(E::L, E::L) -> E::L,
    round: impl Fn(E::L) -> E::L,
) {
    // SAFETY: by the contract.
    unsafe {
        let mut acc: [E::L; R] = std::array::from_fn(|r| E::load(x.add(r * row).cast::<E::S>().read()));
        for i in 0..n as isize {
            for (r, acc) in acc.iter_mut().enumerate() {
                let at = |p: *mut u8| p.add(r * row).cast::<E::S>().offset(i * step);
                if i > 0 {
                    *acc = f(*acc, E::load(*at(x)));
                }
                *at(out) = E::store(round(*acc));
            }
        }
    }
}
/// Elements that are lanes.
struct Same<T>(PhantomData<T>);
impl<T: Copy> Element for Same<T> {
    type S = T;
    type L = T;
    #[inline(always)]
    fn load(x: T) -> T {
        x
    }
    #[inline(always)]
    fn store(x: T) -> T {
        x
    }
}
macro_rules! rows {
    ($($Kind:ident $($D:ident: $E:ty $(as $round:ident)?)|+, |$a:ident, $b:ident| $e:expr;)*) => {
        /// For one row, and for rows side by side.
        fn along(kind: CumulativeKind, d: DType) -> Option<[RunningFn; 2]> {
            Some(match (kind, d) {
                $($((CumulativeKind::$Kind, DType::$D) => {
                    unsafe fn rows<const R: usize>(out: *mut u8, x: *const u8, n: usize, step: isize, row: usize) {
                        // SAFETY: the same contract.
                        unsafe { running::<$E, R>([out, x.cast_mut()], n, step, row, |$a, $b| $e, |x| rows!(@ x $($round)?)) }
                    }
                    [rows::<1>, rows::<ABREAST>]
                })+)*
                _ => return None,
            })
        }
    };
    (@ $x:ident) => { $x };
    (@ $x:ident $round:ident) => { $round($x) };
}
rows! {
    Sum F32: Same<f32> | F64: Same<f64> | F16: EF16 as round_f16 | BF16: EBF16 as round_bf16, |a, b| a + b;
    Sum I8: EI8 | U8: EU8 | I16: EI16 | U16: EU16 | I32: Same<i32> | U32: Same<u32> | I64: Same<i64> | U64: Same<u64>, |a, b| a.wrapping_add(b);
    Prod F32: Same<f32> | F64: Same<f64> | F16: EF16 as round_f16 | BF16: EBF16 as round_bf16, |a, b| a * b;
    Prod I8: EI8 | U8: EU8 | I16: EI16 | U16: EU16 | I32: Same<i32> | U32: Same<u32> | I64: Same<i64> | U64: Same<u64>, |a, b| a.wrapping_mul(b);
    Max F32: Same<f32> | F64: Same<f64> | F16: EF16 | BF16: EBF16, |a, b| Float::maximum(a, b);
    Max I8: EI8 | U8: EU8 | I16: EI16 | U16: EU16 | I32: Same<i32> | U32: Same<u32> | I64: Same<i64> | U64: Same<u64>, |a, b| a.max(b);
    Min F32: Same<f32> | F64: Same<f64> | F16: EF16 | BF16: EBF16, |a, b| Float::minimum(a, b);
    Min I8: EI8 | U8: EU8 | I16: EI16 | U16: EU16 | I32: Same<i32> | U32: Same<u32> | I64: Same<i64> | U64: Same<u64>, |a, b| a.min(b);
}

fn combining(kind: CumulativeKind, lane: DType, tier: Tier) -> Option<BlockFn> {
    let bin = |f| scalar::bin(f, lane, tier);
    match kind {
        CumulativeKind::Sum => bin(Bin::Add),
        CumulativeKind::Prod => bin(Bin::Mul),
        CumulativeKind::Max => bin(Bin::Max),
        CumulativeKind::Min => bin(Bin::Min),
        CumulativeKind::LogSumExp => match lane {
            DType::F32 => Some(pick::<LogAddExp<f32>>(tier)),
            DType::F64 => Some(pick::<LogAddExp<f64>>(tier)),
            _ => None,
        },
    }
}

/// How running combinations are taken.
enum CumulativeStrategy {
    /// Rows, or a few columns, their accumulators in registers: of one, and of several side by side.
    Registers([RunningFn; 2]),
    /// Columns side by side by block functions.
    Columns(ColumnFunctions),
}
/// Block functions of a combination, whose accumulator has the lane's dtype.
struct ColumnFunctions {
    load: LoadFn,
    combine: BlockFn,
    canonical: Option<BlockFn>,
    store: BlockFn,
}
/// Columns that go side by side.
const COLUMNS: usize = 256;

/// Running combinations along the middle of `[outer, n, inner]`.
struct Cumulative {
    strategy: CumulativeStrategy,
    outer: usize,
    n: usize,
    inner: usize,
    /// From the last element to the first.
    reverse: bool,
    /// Lines that are accumulated side by side.
    abreast: usize,
    /// Bytes of an element.
    size: usize,
    cost: Cost,
}
impl Cumulative {
    /// `lines` of the `outer * inner` that run along the axis.
    fn in_registers(&self, [one, abreast]: [RunningFn; 2], [x, out]: [SharedPtr; 2], lines: Range<usize>) {
        let (n, inner, size, mut at) = (self.n, self.inner, self.size, lines.start);
        let last = if self.reverse { (n - 1) * inner } else { 0 };
        let step = if self.reverse { -(inner as isize) } else { inner as isize };
        while at < lines.end {
            let (group, c) = (at / inner, at % inner);
            let (alike, apart) = if inner == 1 { (lines.end - at, n) } else { ((inner - c).min(lines.end - at), 1) };
            let (run, count) = if alike >= ABREAST { (abreast, ABREAST) } else { (one, 1) };
            let first = (group * n * inner + c + last) * size;
            let (to, from) = (out.get().wrapping_add(first), x.get().wrapping_add(first));
            // SAFETY: verify, sizes: operand and result have outer * n * inner elements; these `count` lines are among them. Each is one thread's.
            unsafe { run(to, from, n, step, apart * size) };
            at += count;
        }
    }
    /// The chunks of columns; with one column in a row, rows side by side are loaded as columns.
    fn chunks(&self) -> usize {
        if self.inner == 1 { self.outer.div_ceil(COLUMNS) } else { self.inner.div_ceil(COLUMNS) }
    }
    fn by_columns(&self, f: &ColumnFunctions, [x, out]: [SharedPtr; 2], units: Range<usize>) {
        let (n, size, chunks) = (self.n, self.size, self.chunks());
        let (columns, columns_apart, row_step) =
            if self.inner == 1 { (self.outer, n, 1) } else { (self.inner, 1, self.inner) };
        let mut memory = [0u64; 4 * COLUMNS];
        let p = memory.as_mut_ptr().cast::<u8>();
        let [mut acc, next, mut sum, rounded] = [0, 1, 2, 3].map(|k| p.wrapping_add(k * COLUMNS * 8));
        for unit in units {
            let (group, c) = (unit / chunks, unit % chunks * COLUMNS);
            let w = COLUMNS.min(columns - c);
            for k in 0..n {
                let row = if self.reverse { n - 1 - k } else { k };
                let at = (group * n * self.inner + row * row_step + c * columns_apart) * size;
                // SAFETY: verify, sizes: operand and result have outer * n * inner elements; row
                // `k` of column `c + w - 1` is one of them, and w is at most COLUMNS, for which
                // each of the four pieces of memory has room, 8 bytes each. Columns of a unit
                // belong to one thread.
                unsafe {
                    let to = if k == 0 { acc } else { next };
                    (f.load)(to, x.get().wrapping_add(at), 1, 0, w, columns_apart as isize);
                    if k > 0 {
                        (f.combine)(sum, acc, next, next, w);
                        std::mem::swap(&mut acc, &mut sum);
                    }
                    let value = match f.canonical {
                        Some(g) => {
                            g(rounded, acc, acc, acc, w);
                            rounded
                        }
                        None => acc,
                    };
                    let to = out.get().wrapping_add(at);
                    if columns_apart == 1 {
                        (f.store)(to, value, value, value, w);
                    } else {
                        (f.store)(next, value, value, value, w);
                        (copy(size).run)(to, next, w, (columns_apart * size) as isize, size as isize);
                    }
                }
            }
        }
    }
}
impl CompiledRoutine for Cumulative {
    fn run(&self, bases: Bases, parallel: bool) -> Res<()> {
        if self.outer * self.n * self.inner == 0 {
            return Ok(());
        }
        let cost = parallel.then_some(&self.cost);
        let operands = [bases.input(0), bases.output(0)].map(SharedPtr);
        match &self.strategy {
            CumulativeStrategy::Registers(f) => {
                let lines = self.outer * self.inner;
                threads::for_ranges(lines, cost, bases.cancel, &|r| self.in_registers(*f, operands, r))
            }
            CumulativeStrategy::Columns(f) => {
                let groups = if self.inner == 1 { 1 } else { self.outer };
                threads::for_ranges(groups * self.chunks(), cost, bases.cancel, &|r| self.by_columns(f, operands, r))
            }
        }
        Ok(())
    }
    fn text(&self) -> String {
        match self.strategy {
            CumulativeStrategy::Registers(_) => {
                let of = if self.inner == 1 { "rows" } else { "columns" };
                format!("cumulative strategy=registers {of}={}", self.abreast)
            }
            CumulativeStrategy::Columns(_) if self.inner == 1 => "cumulative strategy=columns of=rows".into(),
            CumulativeStrategy::Columns(_) => "cumulative strategy=columns".into(),
        }
    }
}

pub fn compile(
    kind: CumulativeKind,
    [outer, n, inner]: [usize; 3],
    reverse: bool,
    d: DType,
    target: &Target,
) -> Res<Run> {
    let (tier, tuning) = (target.tier, &target.tuning.cumulative);
    let wide = if d == DType::Bool { d } else { d.lane() };
    let combine = combining(kind, wide, tier);
    let combine = combine.ok_or_else(|| Error::Invalid(format!("{kind:?} is not defined for {d}")))?;
    let (load, canonical, store) = (moves::load(d, tier), scalar::canonical(d, tier), moves::store(d, tier));
    let strategy = match along(kind, d) {
        Some(f) if inner <= tuning.max_columns_in_registers => CumulativeStrategy::Registers(f),
        _ => CumulativeStrategy::Columns(ColumnFunctions { load, combine, canonical, store }),
    };
    let lines = if inner == 1 { outer } else { inner };
    let (abreast, nanos) = match strategy {
        CumulativeStrategy::Registers(_) if lines >= ABREAST => (ABREAST, 0.4),
        _ => (1, 1.0),
    };
    let cost = Cost::of((outer * n * inner) as f64 * nanos);
    Ok(Box::new(Cumulative { strategy, outer, n, inner, reverse, abreast, size: d.size(), cost }))
}
