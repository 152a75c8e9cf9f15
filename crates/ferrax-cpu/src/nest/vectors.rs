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
mod jam;

use super::facts::lane;
use super::{ArrayId, Def, FOLD_SCRATCH, LoopKind, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt};
use crate::tuning::ScalarTuning;
use ferrax_kernel::{Bin, DType, Un, order};
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of a vector.
const VECTOR: usize = 32;
/// The most vectors of an iteration.
const MAX_WIDTH: usize = 4;
/// The number of column sums that stay in registers; others are needed for the terms.
const VECTOR_SUMS: usize = 8;

/// Limits of a loop: scalar iterations, and operations of all scalar iterations; bytes of results of functions that are called for a vector;
/// operations of reductions whose sixteen elements are unrolled; iterations from which functions are called for a whole row; and bytes of
/// working memory for that.
#[derive(Clone, Copy)]
pub struct VectorLimits {
    pub scalar_iterations: usize,
    pub scalar_operations: usize,
    pub called_bytes: usize,
    pub column_operations: usize,
    pub called_row: usize,
    pub row_bytes: usize,
}

impl VectorLimits {
    pub fn of(t: &ScalarTuning) -> VectorLimits {
        VectorLimits {
            scalar_iterations: t.max_scalar_row,
            scalar_operations: t.max_scalar_operations,
            called_bytes: t.max_called_bytes,
            column_operations: t.max_column_operations,
            called_row: t.min_called_row,
            row_bytes: t.max_row_bytes,
        }
    }
}

/// Makes vectors of the innermost loops that say they may be. None where one cannot be, or has more than the limits allow.
pub fn vectorize(nest: &mut Nest, limits: VectorLimits) -> Option<()> {
    let body = std::mem::take(&mut nest.body);
    nest.body = statements(nest, body, limits, 1)?;
    Some(())
}
/// `times`: how many iterations the free loops around have.
fn statements(nest: &mut Nest, body: Vec<Stmt>, limits: VectorLimits, times: usize) -> Option<Vec<Stmt>> {
    let mut out = vec![];
    for s in body {
        let Stmt::Loop(mut l) = s else {
            out.push(s);
            continue;
        };
        let is_innermost = !l.body.iter().any(|s| matches!(s, Stmt::Loop(_)));
        let columns = match l.trip {
            NestTrip::Static(n) if !is_innermost => columns::in_columns(nest, &l, n, limits),
            _ => None,
        };
        if let Some(all) = columns {
            out.extend(all);
            continue;
        }
        if l.kind == LoopKind::Independent && is_innermost {
            match l.trip {
                NestTrip::Static(n) if let Some(all) = in_vectors(nest, &l, n, limits) => out.extend(all),
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
                l.body = statements(nest, l.body, limits, times.saturating_mul(n))?;
                out.push(Stmt::Loop(Box::new(l)));
            }
            continue;
        }
        if matches!(l.kind, LoopKind::Sequential | LoopKind::Independent) || !is_innermost {
            let times = match (l.kind, l.trip) {
                (LoopKind::Free, NestTrip::Static(n)) => times.saturating_mul(n),
                _ => 1,
            };
            l.body = statements(nest, std::mem::take(&mut l.body), limits, times)?;
            out.push(Stmt::Loop(l));
            continue;
        }
        let NestTrip::Static(n) = l.trip else { return None };
        if let Some(before) = calls::by_rows(nest, &l, n, limits) {
            for s in before {
                match s {
                    Stmt::Loop(operands) => innermost(nest, operands, n, limits, times, &mut out)?,
                    call => out.push(call),
                }
            }
        } else if (called_bytes(nest, &l.body) * n).saturating_mul(times) > limits.called_bytes {
            return None;
        }
        innermost(nest, l, n, limits, times, &mut out)?;
    }
    Some(out)
}
fn innermost(
    nest: &mut Nest,
    l: Box<NestLoop>,
    n: usize,
    limits: VectorLimits,
    times: usize,
    out: &mut Vec<Stmt>,
) -> Option<()> {
    match in_vectors(nest, &l, n, limits) {
        Some(all) => out.extend(all),
        None if l.kind == LoopKind::Free && is_little(&l, n, limits, times) => out.push(Stmt::Loop(l)),
        None => return None,
    }
    Some(())
}
/// Whether a loop whose iterations run one by one still costs less than a step of its own.
fn is_little(l: &NestLoop, n: usize, limits: VectorLimits, times: usize) -> bool {
    n <= limits.scalar_iterations || n.saturating_mul(times).saturating_mul(l.body.len()) <= limits.scalar_operations
}

/// A loop that is being rewritten.
struct Vectorizer<'a> {
    nest: &'a mut Nest,
    inside: FxHashSet<NestValue>,
    /// How much a value grows from one iteration to the next; none where it is no index.
    strides: FxHashMap<NestValue, Option<Stride>>,
    lanes: usize,
    /// Statements before the loop, and in it.
    before: Vec<Stmt>,
    body: Vec<Stmt>,
    splats: FxHashMap<NestValue, NestValue>,
    scalars: FxHashMap<NestValue, NestValue>,
    vectors: FxHashMap<(NestValue, usize), NestValue>,
    limits: VectorLimits,
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
fn in_vectors(nest: &mut Nest, l: &NestLoop, n: usize, limits: VectorLimits) -> Option<Vec<Stmt>> {
    let counter = counter_of(nest, l)?;
    let folds: Vec<NestCarry> = l.carries.iter().filter(|c| c.slot != counter.slot).cloned().collect();
    if (l.kind == LoopKind::Fold) == folds.is_empty() {
        return None;
    }
    let mut v = Vectorizer::new(nest, l, &counter, &folds, limits)?;
    if n < v.lanes && folds.is_empty() {
        return None;
    }
    let slot = v.nest.add(NestOp::Carry, DType::I64, &[]);
    v.scalars.insert(counter.slot, slot);
    if folds.is_empty() { v.free(l, n, &counter, slot, 1) } else { v.fold(l, n, &counter, slot, &folds) }
}

impl<'a> Vectorizer<'a> {
    /// `l` may have counters of other loops among its carries, whose bodies it contains: these stay
    /// unchanged.
    fn new(
        nest: &'a mut Nest,
        l: &NestLoop,
        counter: &NestCarry,
        folds: &[NestCarry],
        limits: VectorLimits,
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
            before: vec![],
            body: vec![],
            splats: FxHashMap::default(),
            scalars: FxHashMap::default(),
            vectors: FxHashMap::default(),
            limits,
            last_lanes: None,
        };
        // from the last to the first: values that are used as data
        let mut data: FxHashSet<NestValue> = FxHashSet::default();
        for c in folds {
            let next = *v.nest.def(c.next);
            let is_fold = matches!(next.op, NestOp::Bin(f) if has_instruction(f, next.dtype)) && next.args[0] == c.slot;
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
        v.lanes = VECTOR / size?;
        Some(v)
    }
    /// Notes how wide the numbers are: all alike.
    fn sized(&self, size: &mut Option<usize>, d: DType) -> Option<()> {
        if d == DType::Bool {
            return Some(());
        }
        let n = d.size();
        ((n == 4 || n == 8) && size.is_none_or(|s| s == n)).then(|| *size = Some(n))
    }
    /// How much an index grows from one iteration to the next.
    fn stride(&mut self, v: NestValue) -> Option<i64> {
        self.growth(v).map(|s| s.by)
    }
    fn growth(&mut self, v: NestValue) -> Option<Stride> {
        if !self.inside.contains(&v) {
            return Some(Stride::exact(0));
        }
        if let Some(known) = self.strides.get(&v) {
            return *known;
        }
        let mut grown: [Option<Stride>; 3] = [None; 3];
        let def = *self.nest.def(v);
        if lane(def.dtype).is_int() {
            def.args().iter().zip(&mut grown).for_each(|(a, g)| *g = self.growth(*a));
        }
        let stride = stride_of(self.nest, v, &mut |x| grown[usize::from(x != def.args[0])]);
        self.strides.insert(v, stride);
        stride
    }
    /// What a number is made of that is stored with half its width.
    fn narrowed(&self, v: NestValue) -> Option<NestValue> {
        use DType::*;
        let def = self.nest.def(v);
        let NestOp::Convert(from) = def.op else { return None };
        let is_half = matches!((from, def.dtype), (I64 | U64, I32 | U32) | (F64, F32));
        (is_half && self.inside.contains(&v)).then_some(def.args[0])
    }
    /// The load of a number that has twice its width from there on: the array, the offset, the index and by how much that grows.
    fn widened(&mut self, def: &Def) -> Option<(ArrayId, i32, NestValue, i64)> {
        use DType::*;
        let NestOp::Convert(from) = def.op else { return None };
        let NestOp::Load(array, offset) = self.nest.def(def.args[0]).op else { return None };
        let is_double = matches!((from, def.dtype), (I32, I64 | U64 | F64) | (U32, I64 | U64) | (F32, F64));
        // a lane of 32 bits may be an element of 8 or 16
        let is_stored = self.nest.dtype(def.args[0]) == from;
        if !is_double || !is_stored || !self.inside.contains(&def.args[0]) {
            return None;
        }
        let index = self.nest.def(def.args[0]).args[0];
        let stride = self.stride(index)?;
        (matches!(stride, 0 | 1) && is_near(offset as i64, stride)).then_some((array, offset, index, stride))
    }
    /// Whether there is an instruction, or a call, for vectors.
    fn is_vector_op(&mut self, def: &Def) -> Option<()> {
        let of = def.args().first().map_or(def.dtype, |a| self.nest.dtype(*a));
        let is_supported = match def.op {
            NestOp::Load(_, offset) => {
                let stride = self.stride(def.args[0])?;
                is_near(offset as i64, stride) && (def.dtype != DType::Bool || matches!(stride, 0 | 1))
            }
            NestOp::Un(Un::Not) => def.dtype == DType::Bool,
            NestOp::Un(Un::IsFinite) => of.is_float(),
            NestOp::Un(Un::Neg | Un::Abs | Un::Floor | Un::Ceil | Un::RoundEven | Un::Trunc | Un::Sqrt | Un::Rsqrt) => {
                def.is_float()
            }
            NestOp::Bin(f) if f.is_comparison() => of != DType::Bool,
            NestOp::Bin(f) => has_instruction(f, def.dtype),
            NestOp::Select | NestOp::Settle => true,
            NestOp::Bits(from) => from.size() == def.dtype.size() && from != DType::Bool,
            NestOp::Convert(from) => match (from, def.dtype) {
                (DType::Bool, to) => to != DType::Bool,
                (DType::I32, to) => matches!(to, DType::F32 | DType::U32 | DType::Bool),
                (a, DType::Bool) => a.size() >= 4,
                (a, b) => a.is_int() && b.is_int() && a.size() == b.size() && a.size() >= 4,
            },
            NestOp::Call(_, _) => def.args().iter().all(|a| self.nest.dtype(*a).size() == def.dtype.size()),
            _ => false,
        };
        is_supported.then_some(())
    }

    // ---- the loop anew ----

    fn push(&mut self, op: NestOp, dtype: DType, args: &[NestValue], lanes: usize) -> NestValue {
        let v = self.nest.add(op, dtype, args);
        self.nest.defs[v as usize].lanes = lanes as u8;
        self.body.push(Stmt::Let(v));
        v
    }
    fn constant(&mut self, x: i64) -> NestValue {
        self.nest.add(NestOp::Const(x as u64), DType::I64, &[])
    }
    /// The number of the first lane.
    fn scalar(&mut self, v: NestValue) -> NestValue {
        if !self.inside.contains(&v) {
            return v;
        }
        if let Some(known) = self.scalars.get(&v) {
            return *known;
        }
        let def = *self.nest.def(v);
        let args: Vec<NestValue> = def.args().iter().map(|a| self.scalar(*a)).collect();
        let new = self.push(def.op, def.dtype, &args, 1);
        self.scalars.insert(v, new);
        new
    }
    fn splat(&mut self, v: NestValue) -> NestValue {
        if let Some(known) = self.splats.get(&v) {
            return *known;
        }
        let new = self.nest.add(NestOp::Splat, self.nest.dtype(v), &[v]);
        self.nest.defs[new as usize].lanes = self.lanes as u8;
        self.before.push(Stmt::Let(new));
        self.splats.insert(v, new);
        new
    }
    /// A number in the first lane, and so much more from lane to lane.
    fn grown(&mut self, first: NestValue, dtype: DType, stride: i64) -> Option<NestValue> {
        let reach = stride.checked_mul(self.lanes as i64).and_then(|r| i8::try_from(r).ok());
        match (stride, reach) {
            (0, _) => Some(self.push(NestOp::Splat, dtype, &[first], self.lanes)),
            (_, Some(_)) => Some(self.push(NestOp::Ramp(stride as i8), dtype, &[first], self.lanes)),
            _ => None,
        }
    }
    /// The value of the lanes that come so many vectors behind the counter.
    fn vector(&mut self, v: NestValue, behind: usize) -> Option<NestValue> {
        if !self.inside.contains(&v) {
            return Some(self.splat(v));
        }
        if let Some(known) = self.vectors.get(&(v, behind)) {
            return Some(*known);
        }
        let (def, lanes) = (*self.nest.def(v), self.lanes);
        if def.op == NestOp::Carry && lane(def.dtype) != DType::I64 {
            return None;
        }
        let far = (behind * lanes) as i64;
        let new = if let Some(stride) = self.stride(v) {
            let mut first = self.scalar(v);
            if far * stride != 0 {
                let more = self.nest.add(NestOp::Const((far * stride) as u64), def.dtype, &[]);
                first = self.push(NestOp::Bin(Bin::Add), def.dtype, &[first, more], 1);
            }
            self.grown(first, def.dtype, stride)?
        } else if let Some((array, offset, index, stride)) = self.widened(&def) {
            let (index, NestOp::Convert(from)) = (self.scalar(index), def.op) else { return None };
            if stride == 0 {
                let one = self.scalar(v);
                self.push(NestOp::Splat, def.dtype, &[one], lanes)
            } else if self.last_lanes.is_some() {
                return None;
            } else {
                let offset = i32::try_from(offset as i64 + far).ok()?;
                self.push(NestOp::LoadWide(array, offset, from), def.dtype, &[index], lanes)
            }
        } else if let NestOp::Load(array, offset) = def.op {
            let (stride, index) = (self.stride(def.args[0])?, self.scalar(def.args[0]));
            let offset = i32::try_from(offset as i64 + far * stride).ok()?;
            match stride {
                0 => {
                    let one = self.push(NestOp::Load(array, offset), def.dtype, &[index], 1);
                    self.push(NestOp::Splat, def.dtype, &[one], lanes)
                }
                1 if self.last_lanes.is_none() => self.push(NestOp::Load(array, offset), def.dtype, &[index], lanes),
                // truth values are bytes in memory, of which no few are loaded
                _ if def.dtype == DType::Bool => return None,
                s => {
                    let elements = self.last_lanes.unwrap_or(lanes) as u8;
                    self.push(NestOp::LoadApart(array, offset, s as i32, elements), def.dtype, &[index], lanes)
                }
            }
        } else {
            let args: Vec<NestValue> = def.args().iter().map(|a| self.vector(*a, behind)).collect::<Option<_>>()?;
            self.push(def.op, def.dtype, &args, lanes)
        };
        self.vectors.insert((v, behind), new);
        Some(new)
    }
    /// The statements of the iterations of `width` vectors, in their order.
    fn iteration(&mut self, l: &NestLoop, width: usize) -> Option<()> {
        let mut wanted: FxHashSet<NestValue> = FxHashSet::default();
        for s in l.body.iter().rev() {
            match s {
                Stmt::Store { value, .. } => {
                    wanted.insert(self.narrowed(*value).unwrap_or(*value));
                }
                Stmt::Let(v) if wanted.contains(v) && self.widened(&self.nest.def(*v).clone()).is_some() => (),
                Stmt::Let(v) if wanted.contains(v) && !matches!(self.nest.def(*v).op, NestOp::Load(..)) => {
                    wanted.extend(self.nest.def(*v).args());
                }
                _ => (),
            }
        }
        for s in &l.body {
            if let Stmt::Loop(fold) = s {
                self.column(fold, width)?;
                continue;
            }
            for behind in 0..width {
                match s {
                    Stmt::Let(v) if wanted.contains(v) => {
                        self.vector(*v, behind)?;
                    }
                    Stmt::Store { array, index, offset, value, dtype, .. } => {
                        let stride = self.stride(*index)?;
                        let half = self.narrowed(*value);
                        let (index, value) = (self.scalar(*index), self.vector(half.unwrap_or(*value), behind)?);
                        if half.is_some() && stride != 1 {
                            return None;
                        }
                        if stride == 0 || stride != 1 && *dtype == DType::Bool || !is_near(*offset as i64, stride) {
                            return None;
                        }
                        let far = (behind * self.lanes) as i64 * stride;
                        let offset = i32::try_from(*offset as i64 + far).ok()?;
                        let (array, dtype, stride) = (*array, *dtype, stride as i32);
                        self.body.push(Stmt::Store { array, index, offset, value, dtype, stride });
                    }
                    _ => (),
                }
            }
        }
        Some(())
    }
    /// A free loop, in each iteration of which are `width` vectors.
    fn free(mut self, l: &NestLoop, n: usize, counter: &NestCarry, slot: NestValue, width: usize) -> Option<Vec<Stmt>> {
        self.iteration(l, width)?;
        let step = self.lanes * width;
        let (whole, rest) = (n / step, n % step);
        let by = self.constant(step as i64);
        let mut next = self.push(NestOp::Bin(Bin::Add), DType::I64, &[slot, by], 1);
        // if no load reads an element that a store wrote, the last vector may overlap the previous
        // one
        let again = rest > 0 && !reads_what_it_writes(self.nest, &l.body);
        if again {
            let last = self.constant((n - step) as i64);
            next = self.push(NestOp::Bin(Bin::Min), DType::I64, &[next, last], 1);
        }
        let (init, after) = (self.constant(0), self.nest.add(NestOp::After, DType::I64, &[]));
        let carries = vec![NestCarry { init, slot, next, after }];
        let trip = NestTrip::Static(whole + again as usize);
        let mut out = self.before;
        out.push(Stmt::Loop(Box::new(NestLoop { kind: LoopKind::Sequential, trip, carries, body: self.body })));
        if rest > 0 && !again {
            let init = self.nest.add(NestOp::Const((n - rest) as u64), DType::I64, &[]);
            let carries = vec![NestCarry { init, ..counter.clone() }];
            let (trip, body) = (NestTrip::Static(rest), statements(self.nest, l.body.clone(), self.limits, 1)?);
            out.push(Stmt::Loop(Box::new(NestLoop { kind: LoopKind::Sequential, trip, carries, body })));
        }
        Some(out)
    }
    fn fold(
        mut self,
        l: &NestLoop,
        n: usize,
        counter: &NestCarry,
        slot: NestValue,
        folds: &[NestCarry],
    ) -> Option<Vec<Stmt>> {
        let (groups, whole, rest) = (order::LANES / self.lanes, n / order::LANES, n % order::LANES);
        if folds.len() * order::LANES * 8 > FOLD_SCRATCH {
            return None;
        }
        let inits: Vec<NestValue> = folds.iter().map(|c| self.splat(c.init)).collect();
        let mut sums: Vec<NestValue> = inits.iter().flat_map(|init| vec![*init; groups]).collect();
        let mut out = vec![];
        if whole > 0 {
            let mut carries = vec![];
            for (k, c) in folds.iter().enumerate() {
                let next = *self.nest.def(c.next);
                for g in 0..groups {
                    let of = self.vector(next.args[1], g)?;
                    let [slot, after] = [NestOp::Carry, NestOp::After].map(|op| {
                        let v = self.nest.add(op, next.dtype, &[]);
                        self.nest.defs[v as usize].lanes = self.lanes as u8;
                        v
                    });
                    let next = self.push(next.op, next.dtype, &[slot, of], self.lanes);
                    carries.push(NestCarry { init: inits[k], slot, next, after });
                }
            }
            sums = carries.iter().map(|c| c.after).collect();
            let by = self.constant(order::LANES as i64);
            let next = self.push(NestOp::Bin(Bin::Add), DType::I64, &[slot, by], 1);
            let (init, after) = (self.constant(0), self.nest.add(NestOp::After, DType::I64, &[]));
            carries.push(NestCarry { init, slot, next, after });
            let body = std::mem::take(&mut self.body);
            out.append(&mut self.before);
            let (kind, trip) = (LoopKind::Sequential, NestTrip::Static(whole));
            out.push(Stmt::Loop(Box::new(NestLoop { kind, trip, carries, body })));
        }
        if rest > 0 {
            match self.last_elements(n - rest, rest, counter, folds, &sums) {
                Some(all) => sums = all,
                None => {
                    self.body.clear();
                    out.append(&mut self.before);
                    self.through_memory(l, n, counter, folds, &mut sums, &mut out)?;
                }
            }
        }
        for (k, c) in folds.iter().enumerate() {
            let next = *self.nest.def(c.next);
            let parts = sums[k * groups..(k + 1) * groups].to_vec();
            let sum = self.folded(next.op, next.dtype, parts);
            // later statements refer to it by the carry's number
            self.nest.defs[c.after as usize] =
                Def { op: NestOp::First, dtype: next.dtype, args: [sum, 0, 0], lanes: 1, is_exact: false };
            self.body.push(Stmt::Let(c.after));
        }
        out.append(&mut self.before);
        out.append(&mut self.body);
        Some(out)
    }
    /// The last elements, fewer than there are sums: whole vectors of them, and one of which only the first lanes count.
    fn last_elements(
        &mut self,
        first: usize,
        rest: usize,
        counter: &NestCarry,
        folds: &[NestCarry],
        sums: &[NestValue],
    ) -> Option<Vec<NestValue>> {
        let groups = order::LANES / self.lanes;
        let first = self.constant(first as i64);
        self.scalars = [(counter.slot, first)].into_iter().collect();
        self.vectors.clear();
        let mut sums = sums.to_vec();
        for g in 0..rest.div_ceil(self.lanes) {
            let lanes = self.lanes.min(rest - g * self.lanes);
            self.last_lanes = (lanes < self.lanes).then_some(lanes);
            for (k, c) in folds.iter().enumerate() {
                let next = *self.nest.def(c.next);
                let of = self.vector(next.args[1], g)?;
                let sum = &mut sums[k * groups + g];
                let new = self.push(next.op, next.dtype, &[*sum, of], self.lanes);
                *sum = match self.last_lanes {
                    Some(lanes) => self.push(NestOp::Blend(lanes as u8), next.dtype, &[new, *sum], self.lanes),
                    None => new,
                };
            }
        }
        Some(sums)
    }
    /// The same where a vector cannot have fewer lanes: in working memory, where the last elements are added to the sums one by one.
    fn through_memory(
        &mut self,
        l: &NestLoop,
        n: usize,
        counter: &NestCarry,
        folds: &[NestCarry],
        sums: &mut [NestValue],
        out: &mut Vec<Stmt>,
    ) -> Option<()> {
        let (scratch, _) = self.nest.scratch?;
        let (groups, first) = (order::LANES / self.lanes, self.constant(0));
        let place = |k: usize| (k / groups * order::LANES + k % groups * self.lanes) as i32;
        for (k, value) in sums.iter().enumerate() {
            let (offset, dtype) = (place(k), self.nest.dtype(*value));
            out.push(Stmt::Store { array: scratch, index: first, offset, value: *value, dtype, stride: 1 });
        }
        let places: Vec<i32> = (0..sums.len()).map(place).collect();
        out.push(self.left_over(l, n, counter, folds));
        for (sum, place) in sums.iter_mut().zip(places) {
            *sum = self.push(NestOp::Load(scratch, place), self.nest.dtype(*sum), &[first], self.lanes);
        }
        Some(())
    }
    /// One vector whose first lane is the fold of all: by halves, as the written order has it.
    fn folded(&mut self, op: NestOp, dtype: DType, mut parts: Vec<NestValue>) -> NestValue {
        while parts.len() > 1 {
            let half = parts.len() / 2;
            parts = (0..half).map(|g| self.push(op, dtype, &[parts[g], parts[g + half]], self.lanes)).collect();
        }
        let (mut sum, mut by) = (parts[0], self.lanes / 2);
        while by > 0 {
            let down = self.push(NestOp::Down(by as u8), dtype, &[sum], self.lanes);
            sum = self.push(op, dtype, &[sum, down], self.lanes);
            by /= 2;
        }
        sum
    }
    /// The last elements, each added to its sum.
    fn left_over(&mut self, l: &NestLoop, n: usize, counter: &NestCarry, folds: &[NestCarry]) -> Stmt {
        let (rest, scratch) = (n % order::LANES, self.nest.scratch.map_or(0, |s| s.0));
        let nexts: Vec<NestValue> = folds.iter().map(|c| c.next).collect();
        let is_sum = |s: &Stmt| matches!(s, Stmt::Let(v) if nexts.contains(v));
        let mut body: Vec<Stmt> = l.body.iter().filter(|s| !is_sum(s)).cloned().collect();
        for (k, c) in folds.iter().enumerate() {
            let next = *self.nest.def(c.next);
            let offset = (k * order::LANES) as i32 - (n - rest) as i32;
            let old = self.nest.add(NestOp::Load(scratch, offset), next.dtype, &[counter.slot]);
            let value = self.nest.add(next.op, next.dtype, &[old, next.args[1]]);
            body.extend([Stmt::Let(old), Stmt::Let(value)]);
            body.push(Stmt::Store { array: scratch, index: counter.slot, offset, value, dtype: next.dtype, stride: 1 });
        }
        let init = self.nest.add(NestOp::Const((n - rest) as u64), DType::I64, &[]);
        let carries = vec![NestCarry { init, ..counter.clone() }];
        let trip = NestTrip::Static(rest);
        Stmt::Loop(Box::new(NestLoop { kind: LoopKind::Sequential, trip, carries, body }))
    }
}
/// Bytes of the results of calls in an iteration.
fn called_bytes(nest: &Nest, body: &[Stmt]) -> usize {
    let called = |s: &Stmt| match s {
        Stmt::Let(v) if matches!(nest.def(*v).op, NestOp::Call(..)) => nest.dtype(*v).size(),
        _ => 0,
    };
    body.iter().map(called).sum()
}
/// Whether sums of this dtype are kept in vectors.
fn folded(d: DType) -> bool {
    matches!(d, DType::F32 | DType::F64 | DType::I32 | DType::U32 | DType::I64 | DType::U64)
}
fn has_instruction(f: Bin, d: DType) -> bool {
    match d {
        DType::F32 | DType::F64 => matches!(f, Bin::Add | Bin::Sub | Bin::Mul | Bin::Div | Bin::Max | Bin::Min),
        DType::Bool => matches!(f, Bin::And | Bin::Or | Bin::Xor | Bin::Add | Bin::Mul | Bin::Max | Bin::Min),
        _ => match f {
            Bin::Add | Bin::Sub | Bin::And | Bin::Or | Bin::Xor | Bin::Mul | Bin::Max | Bin::Min => d.size() >= 4,
            Bin::Shl | Bin::ShrLogical => d.size() >= 4,
            Bin::ShrArithmetic => d.size() == 4,
            _ => false,
        },
    }
}
fn reads_what_it_writes(nest: &Nest, body: &[Stmt]) -> bool {
    let mut written = smallvec::SmallVec::new();
    super::stored(body, &mut written);
    for (a, b) in &nest.meeting {
        if written.contains(a) {
            written.push(*b);
        }
    }
    reads(nest, body, &written)
}
fn reads(nest: &Nest, body: &[Stmt], of: &[ArrayId]) -> bool {
    body.iter().any(|s| match s {
        Stmt::Let(v) => matches!(nest.def(*v).op, NestOp::Load(array, _) if of.contains(&array)),
        Stmt::Loop(l) => reads(nest, &l.body, of),
        _ => false,
    })
}
/// How much an integer grows from one iteration of a loop to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stride {
    /// Modulo the numbers of its dtype.
    by: i64,
    /// Whether it does so without wrapping, so that a wider integer grows by as much.
    is_exact: bool,
}
impl Stride {
    fn exact(by: i64) -> Stride {
        Stride { by, is_exact: true }
    }
}
/// How much an integer grows from one iteration of a loop to the next, by how much its operands do.
fn stride_of(nest: &Nest, v: NestValue, of: &mut dyn FnMut(NestValue) -> Option<Stride>) -> Option<Stride> {
    let def = *nest.def(v);
    let (by, is_exact) = match def.op {
        _ if !lane(def.dtype).is_int() => return None,
        NestOp::Bin(f @ (Bin::Add | Bin::Sub)) => {
            let (a, b) = (of(def.args[0])?, of(def.args[1])?);
            let by = if f == Bin::Add { a.by.checked_add(b.by)? } else { a.by.checked_sub(b.by)? };
            (by, a.is_exact && b.is_exact)
        }
        NestOp::Bin(Bin::Mul) => {
            let by = i64::try_from(super::facts::integer(def.dtype, nest.known(def.args[1])?)).ok()?;
            let a = of(def.args[0])?;
            (a.by.checked_mul(by)?, a.is_exact)
        }
        NestOp::Convert(from) if lane(from).is_int() && from.size() >= 4 && def.dtype.size() >= 4 => {
            let a = of(def.args[0])?;
            if from.size() < def.dtype.size() && !a.is_exact {
                return None;
            }
            (a.by, a.is_exact)
        }
        _ => return None,
    };
    Some(Stride { by, is_exact: by == 0 || is_exact && def.is_exact })
}
/// Whether the places of all lanes of the vectors of an iteration, of up to 8 bytes an element, are 32-bit displacements.
fn is_near(offset: i64, stride: i64) -> bool {
    let reach = stride.unsigned_abs().saturating_mul((MAX_WIDTH * VECTOR / 4) as u64);
    offset.unsigned_abs().saturating_add(reach) < 1 << 28
}
