//! Calls of functions, once for a row: a loop stores the operands of a function in working memory, the function is called for the row, and the loop
//! reads its results.
//!
//! ```text
//!     free loop n { store a[i] <- tanh(load b[i] * x) }    ->    free loop n { store w[i] <- load b[i] * x }; v[..n] = tanh(w[..n]); free loop n { store a[i] <- load v[i] }
//! ```
//!
//! INVARIANT: a function gets the operands that the iterations gave it, in their order.
use super::super::{FOLD_SCRATCH, LoopKind, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, RowCall, Stmt};
use super::functions;
use crate::tuning::Target;
use ferrax_kernel::{Bin, DType};
use rustc_hash::{FxHashMap, FxHashSet};

/// Working memory begins at a multiple of so many bytes.
const ALIGN: usize = 64;

/// Statements before the loop that compute the results of its functions for a row; the loop then
/// loads them. None if it stays unchanged.
pub fn by_rows(nest: &mut Nest, l: &NestLoop, n: usize, target: &Target) -> Option<Vec<Stmt>> {
    let (scratch, bytes) = nest.scratch?;
    let (counter, folds) = l.carries.split_last()?;
    let inside: FxHashSet<NestValue> =
        l.body.iter().filter_map(|s| if let Stmt::Let(v) = s { Some(*v) } else { None }).collect();
    let calls: Vec<NestValue> = l
        .body
        .iter()
        .filter_map(|s| if let Stmt::Let(v) = s { Some(*v) } else { None })
        .filter(|v| functions::is_called(nest, *v))
        .collect();
    let row = (n * 8).next_multiple_of(ALIGN);
    let end = FOLD_SCRATCH + (calls.len() + 2) * row;
    if calls.is_empty() || n < target.tuning.scalars.min_called_row || end > target.tuning.scalars.max_row_bytes {
        return None;
    }
    let mut slices = vec![];
    for v in &calls {
        let def = nest.def(*v);
        let size = def.dtype.size();
        if def.args().len() > 2
            || !is_lane(def.dtype)
            || !def.args().iter().all(|a| is_lane(nest.dtype(*a)) && nest.dtype(*a).size() == size)
        {
            return None;
        }
        let (mut slice, mut work) = (FxHashSet::default(), def.args().to_vec());
        while let Some(a) = work.pop() {
            if folds.iter().any(|c| c.slot == a) {
                return None;
            }
            // results of the calls before are in working memory
            if inside.contains(&a) && slice.insert(a) && !calls.contains(&a) {
                work.extend(nest.def(a).args());
            }
        }
        if reads_after_stores(nest, l, &slice) {
            return None;
        }
        slices.push(slice);
    }
    let mut out = vec![];
    for (j, (v, slice)) in calls.iter().zip(slices).enumerate() {
        let def = *nest.def(*v);
        let NestOp::Call(callee, operands) = def.op else { return None };
        // PERF: a block function is vectorised only if its result does not overlap its operands
        let to = FOLD_SCRATCH + (j + 2) * row;
        let places = [FOLD_SCRATCH, FOLD_SCRATCH + row];
        out.push(operands_of(nest, l, n, &slice, &def.args()[..operands as usize], places, scratch));
        out.push(Stmt::CallRow(RowCall {
            callee,
            to: to as i32,
            from: places.map(|p| p as i32),
            operands,
            elements: n as u32,
        }));
        let op = NestOp::Load(scratch, (to / def.dtype.size()) as i32);
        nest.defs[*v as usize] = super::Def { op, args: [counter.slot, 0, 0], ..def };
    }
    nest.scratch = Some((scratch, bytes.max(end)));
    Some(out)
}
/// The loop that computes a function's operands.
fn operands_of(
    nest: &mut Nest,
    l: &NestLoop,
    n: usize,
    slice: &FxHashSet<NestValue>,
    args: &[NestValue],
    places: [usize; 2],
    scratch: u32,
) -> Stmt {
    let [slot, after] = [NestOp::Carry, NestOp::After].map(|op| nest.add(op, DType::I64, &[]));
    let [zero, one] = [0, 1].map(|x| nest.constant(x));
    let mut anew: FxHashMap<NestValue, NestValue> = l.carries.last().map(|c| (c.slot, slot)).into_iter().collect();
    let mut body = vec![];
    for s in &l.body {
        if let Stmt::Let(v) = s
            && slice.contains(v)
        {
            let new = nest.again(*v, |a| anew.get(&a).copied().unwrap_or(a));
            anew.insert(*v, new);
            body.push(Stmt::Let(new));
        }
    }
    for (a, place) in args.iter().zip(places) {
        let value = anew.get(a).copied().unwrap_or(*a);
        let dtype = nest.dtype(value);
        let offset = (place / dtype.size()) as i32;
        body.push(Stmt::Store { array: scratch, index: slot, offset, value, dtype, stride: 1 });
    }
    let next = nest.add(NestOp::Bin(Bin::Add), DType::I64, &[slot, one]);
    body.push(Stmt::Let(next));
    let carries = vec![NestCarry { init: zero, slot, next, after }];
    Stmt::Loop(Box::new(NestLoop { kind: LoopKind::Free, trip: NestTrip::Static(n), carries, body }))
}
/// Whether an iteration stores to an array before it reads it for one of these values.
fn reads_after_stores(nest: &Nest, l: &NestLoop, slice: &FxHashSet<NestValue>) -> bool {
    let mut stored = vec![];
    l.body.iter().any(|s| match s {
        Stmt::Store { array, .. } => {
            stored.push(*array);
            stored.extend(nest.meeting.iter().filter(|m| m.0 == *array).map(|m| m.1));
            false
        }
        Stmt::Let(v) if slice.contains(v) => match nest.def(*v).op {
            NestOp::Load(array, _) | NestOp::LoadApart(array, ..) => stored.contains(&array),
            _ => false,
        },
        _ => false,
    })
}
/// Whether numbers of this dtype have the same representation in memory and in registers.
fn is_lane(d: DType) -> bool {
    matches!(d, DType::F32 | DType::F64 | DType::I32 | DType::U32 | DType::I64 | DType::U64)
}
