//! `Cumulative`: running combinations, strictly in sequence along an axis, several columns at a time.
use super::Run;
use super::walk::SharedPtr;
use crate::kernels::block::{BlockFn, BlockLoop, pick};
use crate::kernels::lane::Float;
use crate::kernels::{Bases, moves, scalar};
use crate::threads::{self, Cost};
use crate::tier::Tier;
use ferrax_kernel::routine::CumulativeKind;
use ferrax_kernel::{Bin, DType, Error, Res, math};
use std::marker::PhantomData;

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

/// Rows of n elements, `row` bytes apart, each along itself, from the first element on or backwards.
type RunningFn = unsafe fn(out: *mut u8, x: *const u8, n: usize, step: isize, row: usize);
/// Rows that go side by side, since each waits for its last result.
const ABREAST: usize = 4;

/// The accumulators of `R` rows in registers.
///
/// # Safety
/// `x` and `out` hold R rows of n elements each, `step` (1 or -1) apart.
#[inline(always)]
unsafe fn running<T: Copy, const R: usize>(
    [out, x]: [*mut u8; 2],
    n: usize,
    step: isize,
    row: usize,
    f: impl Fn(T, T) -> T,
) {
    // SAFETY: by the contract.
    unsafe {
        let mut acc: [T; R] = std::array::from_fn(|r| x.add(r * row).cast::<T>().read());
        for i in 0..n as isize {
            for (r, acc) in acc.iter_mut().enumerate() {
                let at = |p: *mut u8| p.add(r * row).cast::<T>().offset(i * step);
                if i > 0 {
                    *acc = f(*acc, *at(x));
                }
                *at(out) = *acc;
            }
        }
    }
}
macro_rules! rows {
    ($($Kind:ident $($D:ident)|+: $T:ty, |$a:ident, $b:ident| $e:expr;)*) => {
        /// For one row, and for rows side by side.
        fn along(kind: CumulativeKind, d: DType) -> Option<[RunningFn; 2]> {
            Some(match (kind, d) {
                $((CumulativeKind::$Kind, $(DType::$D)|+) => {
                    unsafe fn rows<const R: usize>(out: *mut u8, x: *const u8, n: usize, step: isize, row: usize) {
                        // SAFETY: the same contract.
                        unsafe { running::<$T, R>([out, x.cast_mut()], n, step, row, |$a, $b| $e) }
                    }
                    [rows::<1>, rows::<ABREAST>]
                })*
                _ => return None,
            })
        }
    };
}
rows! {
    Sum F32: f32, |a, b| a + b;
    Sum F64: f64, |a, b| a + b;
    Sum I32 | U32: i32, |a, b| a.wrapping_add(b);
    Sum I64 | U64: i64, |a, b| a.wrapping_add(b);
    Prod F32: f32, |a, b| a * b;
    Prod F64: f64, |a, b| a * b;
    Prod I32 | U32: i32, |a, b| a.wrapping_mul(b);
    Prod I64 | U64: i64, |a, b| a.wrapping_mul(b);
    Max F32: f32, |a, b| Float::maximum(a, b);
    Max F64: f64, |a, b| Float::maximum(a, b);
    Max I32: i32, |a, b| a.max(b);
    Min F32: f32, |a, b| Float::minimum(a, b);
    Min F64: f64, |a, b| Float::minimum(a, b);
    Min I32: i32, |a, b| a.min(b);
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

pub fn compile(kind: CumulativeKind, [outer, n, inner]: [usize; 3], reverse: bool, d: DType, tier: Tier) -> Res<Run> {
    // The accumulator has the lane's dtype.
    let wide = if d == DType::Bool { d } else { d.lane() };
    let f = combining(kind, wide, tier).ok_or_else(|| Error::Invalid(format!("{kind:?} is not defined for {d}")))?;
    let (load, canonical, store) = (moves::load(d, tier), scalar::canonical(d, tier), moves::store(d, tier));
    let size = d.size();
    const COLUMNS: usize = 256;
    let rows = if inner == 1 { along(kind, d) } else { None };
    // With one column, rows side by side are loaded as columns.
    let (columns, lanes_apart, row_step) = if inner == 1 { (outer, n, 1) } else { (inner, 1, inner) };
    let groups = if inner == 1 { 1 } else { outer };
    let chunks = columns.div_ceil(COLUMNS);
    let cost = Cost::of((outer * n * inner) as f64 * if rows.is_some() && outer >= ABREAST { 0.4 } else { 1.0 });
    Ok(Box::new(move |bases: Bases, parallel: bool| {
        let cost = parallel.then_some(&cost);
        let (x, out) = (SharedPtr(bases.input(0)), SharedPtr(bases.output(0)));
        if outer * n * inner == 0 {
            return Ok(());
        }
        if let Some([one, abreast]) = rows {
            threads::for_ranges(outer, cost, bases.cancel, &|r| {
                let mut at = r.start;
                while at < r.end {
                    let (run, count) = if r.end - at >= ABREAST { (abreast, ABREAST) } else { (one, 1) };
                    let first = (at * n + if reverse { n - 1 } else { 0 }) * size;
                    let (to, from) = (out.get().wrapping_add(first), x.get().wrapping_add(first));
                    // SAFETY: verify, sizes: operand and result have outer * n elements; at + count <= outer. Each row is one thread's.
                    unsafe { run(to, from, n, if reverse { -1 } else { 1 }, n * size) };
                    at += count;
                }
            });
            return Ok(());
        }
        threads::for_ranges(groups * chunks, cost, bases.cancel, &|r| {
            let mut memory = [0u64; 4 * COLUMNS];
            let p = memory.as_mut_ptr().cast::<u8>();
            let [mut acc, next, mut sum, rounded] = [0, 1, 2, 3].map(|k| p.wrapping_add(k * COLUMNS * 8));
            for unit in r {
                let (group, c) = (unit / chunks, unit % chunks * COLUMNS);
                let w = COLUMNS.min(columns - c);
                for k in 0..n {
                    let row = if reverse { n - 1 - k } else { k };
                    let at = (group * n * inner + row * row_step + c * lanes_apart) * size;
                    // SAFETY: verify, sizes: operand and result have outer * n * inner elements; row `k` of column `c + w - 1` is one of them, and w is
                    // at most COLUMNS, which the four pieces of memory have room for, 8 bytes each. Columns of a unit are one thread's.
                    unsafe {
                        let to = if k == 0 { acc } else { next };
                        load(to, x.get().wrapping_add(at), 1, 0, w, lanes_apart as isize);
                        if k > 0 {
                            f(sum, acc, next, next, w);
                            std::mem::swap(&mut acc, &mut sum);
                        }
                        let value = match canonical {
                            Some(g) => {
                                g(rounded, acc, acc, acc, w);
                                rounded
                            }
                            None => acc,
                        };
                        if lanes_apart == 1 {
                            store(out.get().wrapping_add(at), value, value, value, w);
                        } else {
                            store(next, value, value, value, w);
                            super::walk::copy(size)(
                                out.get().wrapping_add(at),
                                next,
                                w,
                                (lanes_apart * size) as isize,
                                size as isize,
                            );
                        }
                    }
                }
            }
        });
        Ok(())
    }))
}
