//! `Cumulative`: running combinations along an axis, in sequence or in the blocks of [`ferrax_kernel::order::running`], several lines or columns at a time.
//!
//! Totals of blocks are combined as they become known ([`Totals`]), so that one pass suffices.
mod columns;

use super::{CompiledRoutine, Run};
use crate::kernels::block::{BlockFn, BlockLoop, pick};
use crate::kernels::lane::{Float, round_bf16, round_f16};
use crate::kernels::moves::{EBF16, EF16, EI8, EI16, EU8, EU16, Element};
use crate::kernels::{Bases, moves, scalar};
use crate::threads::{self, Cost, SharedPtr};
use crate::tier::Tier;
use crate::tuning::Target;
use columns::ColumnFunctions;
use ferrax_kernel::order::{RUN, RUN_LEVELS};
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
/// A level of totals: those of its block so far, and of all blocks before.
#[derive(Clone, Copy)]
struct TotalsLevel<L> {
    count: usize,
    acc: L,
    before: Option<L>,
}
/// The running combination of the totals of blocks, which arrive one after the other: level by level, as [`ferrax_kernel::order::running`] does it.
struct Totals<L>([TotalsLevel<L>; RUN_LEVELS]);
impl<L: Copy> Totals<L> {
    fn new(unused: L) -> Self {
        Totals([TotalsLevel { count: 0, acc: unused, before: None }; RUN_LEVELS])
    }
    /// Takes the total of the next block; the combination of all blocks up to it.
    fn push(&mut self, total: L, f: impl Fn(L, L) -> L + Copy) -> L {
        push(&mut self.0, total, f)
    }
}
fn push<L: Copy>(levels: &mut [TotalsLevel<L>], total: L, f: impl Fn(L, L) -> L + Copy) -> L {
    let Some((level, above)) = levels.split_first_mut() else { return total };
    if level.count == RUN {
        level.before = Some(push(above, level.acc, f));
        level.count = 0;
    }
    level.acc = if level.count == 0 { total } else { f(level.acc, total) };
    level.count += 1;
    level.before.map_or(level.acc, |before| f(before, level.acc))
}

/// As [`running`], in blocks: of one line several blocks side by side, of several lines one block each.
///
/// # Safety
/// As [`running`].
#[inline(always)]
unsafe fn in_blocks<E: Element, const R: usize>(
    [out, x]: [*mut u8; 2],
    n: usize,
    step: isize,
    row: usize,
    f: impl Fn(E::L, E::L) -> E::L + Copy,
    round: impl Fn(E::L) -> E::L + Copy,
) {
    // SAFETY: by the contract.
    unsafe {
        match (n <= RUN, R, step) {
            (true, ..) => running::<E, R>([out, x], n, step, row, f, round),
            (_, 1, 1) => along_line::<E>([out, x], n, 1, f, round),
            (_, 1, -1) => along_line::<E>([out, x], n, -1, f, round),
            (_, 1, _) => along_line::<E>([out, x], n, step, f, round),
            _ => beside_lines::<E, R>([out, x], n, step, row, f, round),
        }
    }
}
/// The running combinations of C blocks of a line, side by side.
///
/// # Safety
/// `x` points at C blocks of `len` elements each, at distance `step`.
#[inline(always)]
unsafe fn scan<E: Element, const C: usize>(
    x: *const E::S,
    len: usize,
    step: isize,
    local: &mut [[E::L; RUN]; ABREAST],
    f: impl Fn(E::L, E::L) -> E::L + Copy,
) {
    // SAFETY: by the contract.
    let at = |r: usize, i: usize| unsafe { E::load(*x.offset((r * RUN + i) as isize * step)) };
    let mut acc: [E::L; C] = std::array::from_fn(|r| at(r, 0));
    for (line, acc) in local.iter_mut().zip(acc) {
        line[0] = acc;
    }
    for i in 1..len {
        for (r, acc) in acc.iter_mut().enumerate() {
            *acc = f(*acc, at(r, i));
            local[r][i] = *acc;
        }
    }
}
/// # Safety
/// As [`running`], for one row.
#[inline(always)]
unsafe fn along_line<E: Element>(
    [out, x]: [*mut u8; 2],
    n: usize,
    step: isize,
    f: impl Fn(E::L, E::L) -> E::L + Copy,
    round: impl Fn(E::L) -> E::L + Copy,
) {
    let at = |p: *mut u8, i: usize| p.cast::<E::S>().wrapping_offset(i as isize * step);
    // SAFETY: n elements, at least one.
    let mut local = [[unsafe { E::load(*at(x, 0)) }; RUN]; ABREAST];
    let mut totals = Totals::new(local[0][0]);
    let (mut before, mut first) = (None, 0);
    while first < n {
        let (count, len) = if n - first >= ABREAST * RUN { (ABREAST, RUN) } else { (1, RUN.min(n - first)) };
        // SAFETY: `count` blocks of `len` elements.
        unsafe {
            match count {
                ABREAST => scan::<E, ABREAST>(at(x, first), len, step, &mut local, f),
                _ => scan::<E, 1>(at(x, first), len, step, &mut local, f),
            }
        }
        for (r, block) in local[..count].iter().enumerate() {
            let to = at(out, first + r * RUN);
            let write = |i: usize, v: E::L| {
                // SAFETY: element i of the block.
                unsafe { *to.wrapping_offset(i as isize * step) = E::store(round(v)) }
            };
            match before {
                None => block[..len].iter().enumerate().for_each(|(i, v)| write(i, *v)),
                Some(p) => block[..len].iter().enumerate().for_each(|(i, v)| write(i, f(p, *v))),
            }
            before = Some(totals.push(block[len - 1], f));
        }
        first += count * len;
    }
}
/// # Safety
/// As [`running`].
#[inline(always)]
unsafe fn beside_lines<E: Element, const R: usize>(
    [out, x]: [*mut u8; 2],
    n: usize,
    step: isize,
    row: usize,
    f: impl Fn(E::L, E::L) -> E::L + Copy,
    round: impl Fn(E::L) -> E::L + Copy,
) {
    let at = |p: *mut u8, r: usize, i: usize| p.wrapping_add(r * row).cast::<E::S>().wrapping_offset(i as isize * step);
    // SAFETY: R rows of n elements, at least one.
    let mut before: [E::L; R] = std::array::from_fn(|r| unsafe { E::load(*at(x, r, 0)) });
    let mut totals: [Totals<E::L>; R] = std::array::from_fn(|r| Totals::new(before[r]));
    for first in (0..n).step_by(RUN) {
        let mut acc = before;
        for i in first..n.min(first + RUN) {
            for ((r, acc), before) in acc.iter_mut().enumerate().zip(before) {
                // SAFETY: element i of row r.
                unsafe {
                    let v = E::load(*at(x, r, i));
                    *acc = if i == first { v } else { f(*acc, v) };
                    *at(out, r, i) = E::store(round(if first == 0 { *acc } else { f(before, *acc) }));
                }
            }
        }
        for ((before, totals), acc) in before.iter_mut().zip(&mut totals).zip(acc) {
            *before = totals.push(acc, f);
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
    ($($Kind:ident $by:ident $($D:ident: $E:ty $(as $round:ident)?)|+, |$a:ident, $b:ident| $e:expr;)*) => {
        /// For one row, and for rows side by side.
        fn along(kind: CumulativeKind, d: DType) -> Option<[RunningFn; 2]> {
            Some(match (kind, d) {
                $($((CumulativeKind::$Kind, DType::$D) => {
                    unsafe fn rows<const R: usize>(out: *mut u8, x: *const u8, n: usize, step: isize, row: usize) {
                        // SAFETY: the same contract.
                        unsafe { $by::<$E, R>([out, x.cast_mut()], n, step, row, |$a, $b| $e, |x| rows!(@ x $($round)?)) }
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
    Sum in_blocks F32: Same<f32> | F64: Same<f64> | F16: EF16 as round_f16 | BF16: EBF16 as round_bf16, |a, b| a + b;
    Sum in_blocks I8: EI8 | U8: EU8 | I16: EI16 | U16: EU16 | I32: Same<i32> | U32: Same<u32> | I64: Same<i64> | U64: Same<u64>, |a, b| a.wrapping_add(b);
    Prod running F32: Same<f32> | F64: Same<f64> | F16: EF16 as round_f16 | BF16: EBF16 as round_bf16, |a, b| a * b;
    Prod running I8: EI8 | U8: EU8 | I16: EI16 | U16: EU16 | I32: Same<i32> | U32: Same<u32> | I64: Same<i64> | U64: Same<u64>, |a, b| a.wrapping_mul(b);
    Max running F32: Same<f32> | F64: Same<f64> | F16: EF16 | BF16: EBF16, |a, b| Float::maximum(a, b);
    Max running I8: EI8 | U8: EU8 | I16: EI16 | U16: EU16 | I32: Same<i32> | U32: Same<u32> | I64: Same<i64> | U64: Same<u64>, |a, b| a.max(b);
    Min running F32: Same<f32> | F64: Same<f64> | F16: EF16 | BF16: EBF16, |a, b| Float::minimum(a, b);
    Min running I8: EI8 | U8: EU8 | I16: EI16 | U16: EU16 | I32: Same<i32> | U32: Same<u32> | I64: Same<i64> | U64: Same<u64>, |a, b| a.min(b);
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
                threads::for_ranges(lines, cost, bases.cancel, &|r| self.in_registers(*f, operands, r));
                Ok(())
            }
            CumulativeStrategy::Columns(f) => {
                let groups = if self.inner == 1 { 1 } else { self.outer };
                threads::try_ranges(groups * self.chunks(), cost, bases.cancel, &|r| self.by_columns(f, operands, r))
            }
        }
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
        _ => CumulativeStrategy::Columns(ColumnFunctions {
            load,
            combine,
            canonical,
            store,
            in_blocks: kind.in_blocks(),
        }),
    };
    let lines = if inner == 1 { outer } else { inner };
    let (abreast, nanos) = match strategy {
        CumulativeStrategy::Registers(_) if lines >= ABREAST => (ABREAST, 0.4),
        CumulativeStrategy::Registers(_) if kind.in_blocks() && n > ABREAST * RUN => (1, 0.5),
        _ => (1, 1.0),
    };
    let cost = Cost::of((outer * n * inner) as f64 * nanos);
    Ok(Box::new(Cumulative { strategy, outer, n, inner, reverse, abreast, size: d.size(), cost }))
}
