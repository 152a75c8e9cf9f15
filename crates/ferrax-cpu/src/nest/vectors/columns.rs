//! Vectorizes free loops around reductions along the free loop: sums over columns, products of matrices and vectors along columns.
//!
//! ```text
//!     free loop j { s = fold loop p { s += a[p * n + j] * x[p] }; store y[j] <- s }
//!     ->   loop j by 4 { loop p by 16 { s0 += load4 a[p * n + j] * splat x[p]; s1 += load4 a[(p + 1) * n + j] * splat x[p + 1]; .. }; store4 y[j] <- fold s0, s1, .. }
//! ```
//! Eight of the sixteen sums at a time are in registers. A row of a matrix contributes to one sum only, so no row is read twice.
//!
//! INVARIANT: as in `vectors.rs`: the lanes of a vector are iterations of the free loop, and each adds the same elements to the same sums.
use super::rewrite::reads_what_it_writes;
use super::values::{Stride, is_near, stride_of};
use super::{MAX_WIDTH, VECTOR_SUMS, Vectorizer, counter_of};
use crate::nest::{LoopKind, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt};
use crate::tuning::Target;
use ferrax_kernel::{DType, order};
use rustc_hash::{FxHashMap, FxHashSet};

/// A reduction within a free loop.
struct InnerFold<'l> {
    counter: NestCarry,
    folds: Vec<&'l NestCarry>,
    n: usize,
    inside: FxHashSet<NestValue>,
    /// How much an index grows from one of its iterations to the next.
    strides: FxHashMap<NestValue, Option<Stride>>,
    /// The values of terms, by how many elements and vectors behind the counters.
    terms: FxHashMap<(NestValue, usize, usize), NestValue>,
}

/// The free loop in vectors of its iterations, where elements that its reductions take lie side by side from one iteration to the next.
pub fn in_columns(nest: &mut Nest, l: &NestLoop, n: usize, target: &Target) -> Option<Vec<Stmt>> {
    let counter = counter_of(nest, l)?;
    if !matches!(l.kind, LoopKind::Free | LoopKind::Independent) || l.carries.len() != 1 {
        return None;
    }
    let flat = flattened(nest, l, target.tuning.scalars.max_column_operations)?;
    let folds: Vec<NestCarry> = flat.carries[1..].iter().filter(|c| is_sum(nest, c)).cloned().collect();
    let mut v = Vectorizer::new(nest, (&flat, n), &counter, &folds, target)?;
    if n < v.lanes || !v.has_columns(l) {
        return None;
    }
    let slot = v.nest.add(NestOp::Carry, DType::I64, &[]);
    v.scalars.insert(counter.slot, slot);
    let width = v.width(l, n, folds.len());
    v.free(l, n, &counter, slot, width)
}
/// Whether a carry is one that elements are added to; else it is a counter.
fn is_sum(nest: &Nest, c: &NestCarry) -> bool {
    !matches!(nest.def(nest.def(c.next).args[1]).op, NestOp::Const(_))
}
/// The statements of a free loop and of the reductions in it as those of one loop. None where there are others in it, or too many.
fn flattened(nest: &Nest, l: &NestLoop, most: usize) -> Option<NestLoop> {
    let mut flat = NestLoop { body: vec![], ..l.clone() };
    let (mut has_stored, mut operations) = (false, 0);
    for s in &l.body {
        match s {
            Stmt::Loop(fold) => {
                let is_plain = fold.body.iter().all(|s| matches!(s, Stmt::Let(_)));
                let counter = counter_of(nest, fold)?;
                let folds = fold.carries.iter().filter(|c| c.slot != counter.slot);
                if has_stored || fold.kind != LoopKind::Fold || !is_plain || !folds.clone().all(|c| is_sum(nest, c)) {
                    return None;
                }
                operations += fold.body.len();
                flat.body.extend(fold.body.iter().cloned());
                flat.carries.extend(fold.carries.iter().cloned());
            }
            s => {
                has_stored |= matches!(s, Stmt::Store { .. });
                flat.body.push(s.clone());
            }
        }
    }
    let calls = |s: &Stmt| matches!(s, Stmt::Let(v) if matches!(nest.def(*v).op, NestOp::Call(..)));
    (operations <= most && !flat.body.iter().any(calls)).then_some(flat)
}

impl InnerFold<'_> {
    /// How much an index grows from one element of the reduction to the next.
    fn stride(&mut self, nest: &Nest, v: NestValue) -> Option<i64> {
        self.growth(nest, v).map(|s| s.by)
    }
    fn growth(&mut self, nest: &Nest, v: NestValue) -> Option<Stride> {
        if !self.inside.contains(&v) {
            return Some(Stride::exact(0));
        }
        if let Some(known) = self.strides.get(&v) {
            return *known;
        }
        let stride = stride_of(nest, v, &mut |a| self.growth(nest, a));
        self.strides.insert(v, stride);
        stride
    }
}

impl Vectorizer<'_> {
    /// Whether some array's elements are contiguous from one iteration to the next, and no array's
    /// are strided: otherwise vectors go along rows.
    fn has_columns(&mut self, l: &NestLoop) -> bool {
        let (mut beside, mut apart) = (false, false);
        for s in &l.body {
            let Stmt::Loop(fold) = s else { continue };
            for s in &fold.body {
                let Stmt::Let(x) = s else { continue };
                if let NestOp::Load(..) = self.nest.def(*x).op {
                    match self.stride(self.nest.def(*x).args[0]) {
                        Some(0) => (),
                        Some(1) => beside = true,
                        _ => apart = true,
                    }
                }
            }
        }
        beside && !apart
    }
    /// How many vectors of columns are read at once: so many that whole cache lines are read, unless the last ones would mostly repeat others.
    fn width(&self, l: &NestLoop, n: usize, folds: usize) -> usize {
        let (vectors, is_repeated) = (n.div_ceil(self.lanes), !reads_what_it_writes(self.nest, &l.body));
        let fits = |w: &usize| {
            let whole = n / (w * self.lanes);
            let all = n.div_ceil(w * self.lanes) * w;
            w * folds <= MAX_WIDTH && whole > 0 && (all == vectors || is_repeated && all * 4 <= vectors * 5)
        };
        [MAX_WIDTH, MAX_WIDTH / 2].into_iter().find(fits).unwrap_or(1)
    }
    /// The sums of a reduction for the lanes of `width` vectors.
    pub fn column(&mut self, l: &NestLoop, width: usize) -> Option<()> {
        let NestTrip::Static(n) = l.trip else { return None };
        let counter = counter_of(self.nest, l)?;
        let folds: Vec<&NestCarry> = l.carries.iter().filter(|c| c.slot != counter.slot).collect();
        let mut inside: FxHashSet<NestValue> = l.carries.iter().map(|c| c.slot).collect();
        inside.extend(l.body.iter().filter_map(|s| if let Stmt::Let(v) = s { Some(*v) } else { None }));
        let strides = [(counter.slot, Some(Stride::exact(1)))].into_iter().collect();
        let mut r = InnerFold { counter, folds, n, inside, strides, terms: FxHashMap::default() };
        for c in r.folds.clone() {
            for w in 0..width {
                self.prepare(&r, self.nest.def(c.next).args[1], true, w)?;
            }
        }
        let half = order::LANES / 2;
        let at_once = (VECTOR_SUMS / 2 / (r.folds.len() * width).max(1)).clamp(1, half);
        // by fold and vector
        let mut sums: Vec<Vec<NestValue>> = vec![vec![]; r.folds.len() * width];
        for from in (0..half).step_by(at_once) {
            let below = from..half.min(from + at_once);
            let count = below.len();
            let places: Vec<usize> = below.clone().chain(below.map(|l| l + half)).collect();
            let parts = self.partial_sums(&mut r, &places, width)?;
            for (k, (all, parts)) in sums.iter_mut().zip(parts).enumerate() {
                let f = *self.nest.def(r.folds[k / width].next);
                for l in 0..count {
                    all.push(self.applied(&f, &[parts[l], parts[l + count]]));
                }
            }
        }
        for (k, mut parts) in sums.into_iter().enumerate() {
            let c = r.folds[k / width];
            let f = *self.nest.def(c.next);
            while parts.len() > 1 {
                let half = parts.len() / 2;
                parts = (0..half).map(|g| self.applied(&f, &[parts[g], parts[g + half]])).collect();
            }
            self.vectors.insert((c.after, k % width), parts[0]);
        }
        Some(())
    }
    /// The partial sums at these positions among a reduction's sixteen, by fold and vector.
    fn partial_sums(&mut self, r: &mut InnerFold, places: &[usize], width: usize) -> Option<Vec<Vec<NestValue>>> {
        let (whole, rest) = (r.n / order::LANES, r.n % order::LANES);
        let mut sums: Vec<Vec<NestValue>> = vec![];
        for c in &r.folds {
            let init = self.splat(c.init);
            sums.extend(vec![vec![init; places.len()]; width]);
        }
        if whole > 0 {
            let outer = std::mem::take(&mut self.body);
            let slot = self.nest.add(NestOp::Carry, DType::I64, &[]);
            self.scalars.insert(r.counter.slot, slot);
            let mut carries = vec![];
            for (i, place) in places.iter().enumerate() {
                for k in 0..sums.len() {
                    let f = *self.nest.def(r.folds[k / width].next);
                    let term = self.term(r, f.args[1], *place, k % width)?;
                    let [slot, after] = [NestOp::Carry, NestOp::After].map(|op| {
                        let v = self.nest.add(op, f.dtype, &[]);
                        self.in_lanes(v)
                    });
                    let next = self.applied(&f, &[slot, term]);
                    carries.push(NestCarry { init: sums[k][i], slot, next, after });
                    sums[k][i] = after;
                }
            }
            let by = self.nest.constant(order::LANES as i64);
            let next = self.push(NestOp::Bin(ferrax_kernel::Bin::Add), DType::I64, &[slot, by], 1);
            let (init, after) = (self.nest.constant(0), self.nest.add(NestOp::After, DType::I64, &[]));
            carries.push(NestCarry { init, slot, next, after });
            let body = std::mem::replace(&mut self.body, outer);
            let (kind, trip) = (LoopKind::Sequential, NestTrip::Static(whole));
            self.body.push(Stmt::Loop(Box::new(NestLoop { kind, trip, carries, body })));
            self.forget(r);
        }
        let first = self.nest.constant((r.n - rest) as i64);
        self.scalars.insert(r.counter.slot, first);
        for (i, place) in places.iter().enumerate().filter(|p| *p.1 < rest) {
            for k in 0..sums.len() {
                let f = *self.nest.def(r.folds[k / width].next);
                let term = self.term(r, f.args[1], *place, k % width)?;
                sums[k][i] = self.applied(&f, &[sums[k][i], term]);
            }
        }
        self.forget(r);
        Some(sums)
    }
    /// Discards values that were computed for one value of the counter.
    fn forget(&mut self, r: &mut InnerFold) {
        r.terms.clear();
        self.scalars.retain(|v, _| !r.inside.contains(v));
    }
    /// Computes the values that a term reads from outside its loop.
    fn prepare(&mut self, r: &InnerFold, v: NestValue, is_data: bool, w: usize) -> Option<()> {
        let def = *self.nest.def(v);
        if !r.inside.contains(&v) {
            if is_data && self.stride(v) != Some(0) {
                self.vector(v, w)?;
            } else {
                self.scalar(v);
            }
            return Some(());
        }
        let is_data = is_data && !matches!(def.op, NestOp::Load(..)) && self.stride(v).is_none();
        def.args().iter().try_for_each(|a| self.prepare(r, *a, is_data, w))
    }
    /// The value of the lanes of a vector at so many elements behind the reduction's counter.
    fn term(&mut self, r: &mut InnerFold, v: NestValue, behind: usize, w: usize) -> Option<NestValue> {
        if !r.inside.contains(&v) {
            return self.vector(v, w);
        }
        if let Some(known) = r.terms.get(&(v, behind, w)) {
            return Some(*known);
        }
        let (def, lanes, far) = (*self.nest.def(v), self.lanes, behind as i64);
        let beside = (w * lanes) as i64;
        if self.widened(&def).is_some() {
            return None;
        }
        let new = if let NestOp::Load(array, offset) = def.op {
            let index = def.args[0];
            let (across, along) = (self.stride(index)?, r.stride(self.nest, index)?);
            let index = self.scalar(index);
            if across == 0 && w > 0 {
                return self.term(r, v, behind, 0);
            }
            let far = along.checked_mul(far)?.checked_add(across.checked_mul(beside)?)?;
            let offset = i32::try_from(far.checked_add(offset as i64)?).ok()?;
            if !is_near(offset as i64, across) {
                return None;
            }
            match across {
                0 => {
                    let one = self.push(NestOp::Load(array, offset), def.dtype, &[index], 1);
                    self.push(NestOp::Splat, def.dtype, &[one], lanes)
                }
                1 => self.push(NestOp::Load(array, offset), def.dtype, &[index], lanes),
                _ => return None,
            }
        } else if let Some(across) = self.stride(v) {
            let (along, mut first) = (r.stride(self.nest, v)?, self.scalar(v));
            let far = far * along + beside * across;
            if far != 0 {
                let more = self.nest.add(NestOp::Const(far as u64), def.dtype, &[]);
                first = self.push(NestOp::Bin(ferrax_kernel::Bin::Add), def.dtype, &[first, more], 1);
            }
            self.grown(first, def.dtype, across)?
        } else {
            self.is_vector_op(&def)?;
            let args: Vec<NestValue> = def.args().iter().map(|a| self.term(r, *a, behind, w)).collect::<Option<_>>()?;
            self.applied(&def, &args)
        };
        r.terms.insert((v, behind, w), new);
        Some(new)
    }
}
