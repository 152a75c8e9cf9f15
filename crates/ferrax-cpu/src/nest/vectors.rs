//! Vectorizes loops whose iterations are independent.
//!
//! ```text
//!     free loop n { store a[i] <- load b[i] * x }    ->    v = splat x; loop n / 8, i by 8 { store8 a[i] <- load8 b[i] * v }; free loop n % 8 { .. }
//! ```
//! A reduction has the sixteen sums of the documented order in two or four vectors. Remaining elements are added to them one by one, in working memory.
//!
//! INVARIANT: each lane computes what an iteration computes, and a reduction adds the same elements to the same sums.
mod calls;
mod columns;
mod folds;
mod functions;
mod jam;
mod rewrite;
mod values;

use super::facts::lane;
use super::{Def, LoopKind, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt};
use crate::tier::Tier;
use crate::tuning::Target;
use ferrax_kernel::{Bin, DType};
pub use functions::inline_functions;
use rustc_hash::{FxHashMap, FxHashSet};
use values::{Stride, folded};

/// Bytes of a vector, and of a long one.
const VECTOR: usize = 32;
const LONG_VECTOR: usize = 64;
/// The most vectors of an iteration.
const MAX_WIDTH: usize = 4;
/// The number of column sums that stay in registers; others are needed for the terms.
const VECTOR_SUMS: usize = 8;

/// Makes vectors of the innermost loops that say they may be. None where one cannot be, or has more than the target allows.
pub fn vectorize(nest: &mut Nest, target: &Target) -> Option<()> {
    let body = std::mem::take(&mut nest.body);
    nest.body = statements(nest, body, target, 1)?;
    Some(())
}
/// `times`: how many iterations the free loops around have.
fn statements(nest: &mut Nest, body: Vec<Stmt>, target: &Target, times: usize) -> Option<Vec<Stmt>> {
    let mut out = vec![];
    for s in body {
        let Stmt::Loop(mut l) = s else {
            out.push(s);
            continue;
        };
        let is_innermost = !l.body.iter().any(|s| matches!(s, Stmt::Loop(_)));
        let columns = match l.trip {
            NestTrip::Static(n) if !is_innermost => columns::in_columns(nest, &l, n, target),
            _ => None,
        };
        if let Some(all) = columns {
            out.extend(all);
            continue;
        }
        if l.kind == LoopKind::Independent && is_innermost {
            match l.trip {
                NestTrip::Static(n) if let Some(all) = in_vectors(nest, &l, n, target) => out.extend(all),
                _ => out.push(Stmt::Loop(l)),
            }
            continue;
        }
        let groups = match l.trip {
            NestTrip::Static(n) if !is_innermost => jam::jammed(nest, &l, n),
            _ => None,
        };
        if let Some(loops) = groups {
            for (mut l, n) in loops {
                l.body = statements(nest, l.body, target, times.saturating_mul(n))?;
                out.push(Stmt::Loop(Box::new(l)));
            }
            continue;
        }
        if matches!(l.kind, LoopKind::Sequential | LoopKind::Independent) || !is_innermost {
            let times = match (l.kind, l.trip) {
                (LoopKind::Free, NestTrip::Static(n)) => times.saturating_mul(n),
                _ => 1,
            };
            l.body = statements(nest, std::mem::take(&mut l.body), target, times)?;
            out.push(Stmt::Loop(l));
            continue;
        }
        let NestTrip::Static(n) = l.trip else { return None };
        if let Some(before) = calls::by_rows(nest, &l, n, target) {
            for s in before {
                match s {
                    Stmt::Loop(operands) => innermost(nest, operands, n, target, times, &mut out)?,
                    call => out.push(call),
                }
            }
        } else if (called_bytes(nest, &l.body) * n).saturating_mul(times) > target.tuning.scalars.max_called_bytes {
            return None;
        }
        innermost(nest, l, n, target, times, &mut out)?;
    }
    Some(out)
}
fn innermost(
    nest: &mut Nest,
    l: Box<NestLoop>,
    n: usize,
    target: &Target,
    times: usize,
    out: &mut Vec<Stmt>,
) -> Option<()> {
    match in_vectors(nest, &l, n, target) {
        Some(all) => out.extend(all),
        None if l.kind == LoopKind::Free && is_little(&l, n, target, times) => out.push(Stmt::Loop(l)),
        None => return None,
    }
    Some(())
}
/// Whether a loop whose iterations run one by one still costs less than a step of its own.
fn is_little(l: &NestLoop, n: usize, target: &Target, times: usize) -> bool {
    let t = &target.tuning.scalars;
    n <= t.max_scalar_row || n.saturating_mul(times).saturating_mul(l.body.len()) <= t.max_scalar_operations
}

/// A loop that is being rewritten.
struct Vectorizer<'a> {
    nest: &'a mut Nest,
    inside: FxHashSet<NestValue>,
    /// How much a value grows from one iteration to the next; none where it is no index.
    strides: FxHashMap<NestValue, Option<Stride>>,
    lanes: usize,
    /// Whether the elements have 8 bytes, not 4.
    wide: bool,
    /// Statements before the loop, and in it.
    before: Vec<Stmt>,
    body: Vec<Stmt>,
    splats: FxHashMap<NestValue, NestValue>,
    scalars: FxHashMap<NestValue, NestValue>,
    vectors: FxHashMap<(NestValue, usize), NestValue>,
    target: &'a Target,
    /// How many lanes have elements, where these are fewer than there are lanes.
    last_lanes: Option<usize>,
}

/// The counter of a loop that is free or a fold: the last carry, which loops of these kinds are written with.
fn counter_of(nest: &Nest, l: &NestLoop) -> Option<NestCarry> {
    let counts = |c: &&NestCarry| {
        let (slot, next) = (nest.def(c.slot), nest.def(c.next));
        let grows = next.op == NestOp::Bin(Bin::Add) && next.args[0] == c.slot && nest.known(next.args[1]) == Some(1);
        slot.dtype == DType::I64 && nest.known(c.init) == Some(0) && grows
    };
    l.carries.last().filter(counts).cloned()
}
fn in_vectors(nest: &mut Nest, l: &NestLoop, n: usize, target: &Target) -> Option<Vec<Stmt>> {
    let counter = counter_of(nest, l)?;
    let folds: Vec<NestCarry> = l.carries.iter().filter(|c| c.slot != counter.slot).cloned().collect();
    if (l.kind == LoopKind::Fold) == folds.is_empty() {
        return None;
    }
    let mut v = Vectorizer::new(nest, (l, n), &counter, &folds, target)?;
    if n < v.lanes && folds.is_empty() {
        return None;
    }
    let slot = v.nest.add(NestOp::Carry, DType::I64, &[]);
    v.scalars.insert(counter.slot, slot);
    if folds.is_empty() { v.free(l, n, &counter, slot, 1) } else { v.fold(l, n, &counter, slot, &folds) }
}

impl<'a> Vectorizer<'a> {
    /// For n iterations. `l` may have counters of other loops among its carries, whose bodies it contains: these stay
    /// unchanged.
    fn new(
        nest: &'a mut Nest,
        (l, n): (&NestLoop, usize),
        counter: &NestCarry,
        folds: &[NestCarry],
        target: &'a Target,
    ) -> Option<Vectorizer<'a>> {
        let mut inside: FxHashSet<NestValue> = l.carries.iter().flat_map(|c| [c.slot, c.after]).collect();
        let others = l.carries.iter().filter(|c| folds.iter().all(|f| f.slot != c.slot));
        let mut strides: FxHashMap<NestValue, Option<Stride>> =
            others.map(|c| (c.slot, Some(Stride::exact(0)))).collect();
        strides.insert(counter.slot, Some(Stride::exact(1)));
        inside.extend(l.body.iter().filter_map(|s| if let Stmt::Let(v) = s { Some(*v) } else { None }));
        let mut v = Vectorizer {
            nest,
            inside,
            strides,
            lanes: 0,
            wide: false,
            before: vec![],
            body: vec![],
            splats: FxHashMap::default(),
            scalars: FxHashMap::default(),
            vectors: FxHashMap::default(),
            target,
            last_lanes: None,
        };
        // from the last to the first: values that are used as data
        let mut data: FxHashSet<NestValue> = FxHashSet::default();
        for c in folds {
            let next = *v.nest.def(c.next);
            let is_fold = functions::recorded(next.op, next.dtype, next.dtype).is_some() && next.args[0] == c.slot;
            if !is_fold || next.args[1] == c.slot || !folded(lane(next.dtype)) {
                return None;
            }
            data.insert(next.args[1]);
        }
        let nexts: Vec<NestValue> = l.carries.iter().map(|c| c.next).collect();
        let mut size = None;
        for s in l.body.iter().rev() {
            match s {
                Stmt::Store { value, dtype, index, .. } => {
                    v.stride(*index)?;
                    let (value, dtype) = v.narrowed(*value).map_or((*value, *dtype), |of| (of, v.nest.dtype(of)));
                    v.sized(&mut size, dtype)?;
                    data.insert(value);
                }
                Stmt::Let(x) if data.contains(x) => {
                    let def = *v.nest.def(*x);
                    v.sized(&mut size, def.dtype)?;
                    if nexts.contains(x) {
                        return None;
                    }
                    if v.stride(*x).is_some() || v.widened(&def).is_some() {
                        continue;
                    }
                    v.is_vector_op(&def)?;
                    if !matches!(def.op, NestOp::Load(..)) {
                        data.extend(def.args());
                    }
                }
                Stmt::Let(_) => (),
                _ => return None,
            }
        }
        for x in &data {
            v.sized(&mut size, v.nest.dtype(*x))?;
        }
        let size = size?;
        let is_long =
            target.tier == Tier::Avx512 && n.saturating_mul(size) >= target.tuning.kernels.min_long_vector_bytes;
        let bytes = if is_long { LONG_VECTOR } else { VECTOR };
        (v.lanes, v.wide) = (bytes / size, size == 8);
        Some(v)
    }
}
/// Bytes of the results of calls in an iteration.
fn called_bytes(nest: &Nest, body: &[Stmt]) -> usize {
    let called = |s: &Stmt| match s {
        Stmt::Let(v) if functions::is_called(nest, *v) => nest.dtype(*v).size(),
        _ => 0,
    };
    body.iter().map(called).sum()
}
