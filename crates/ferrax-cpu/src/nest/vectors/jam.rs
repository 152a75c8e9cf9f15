//! Unrolls a free loop around reductions and joins the reductions of its iterations to one loop (unroll and jam).
//!
//! ```text
//!     free loop i { s = fold loop p { s += a[i * n + p] * x[p] }; store y[i] <- s }
//!     ->   loop i by 2 { s, t = fold loop p { s += a[i * n + p] * x[p]; t += a[(i + 1) * n + p] * x[p] }; store y[i] <- s; store y[i + 1] <- t }
//! ```
//! One sum waits for its own last addition; several do not wait for each other, and operands that they share are loaded once.
//!
//! INVARIANT: the iterations of a free loop are independent, and each sum has its own carry, so that the order of additions in a sum stays.
use super::{VECTOR_SUMS, counter_of};
use crate::nest::{FOLD_SCRATCH, LoopKind, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt};
use ferrax_kernel::{Bin, DType, order};
use rustc_hash::{FxHashMap, FxHashSet};

/// The loop over groups of iterations, and the loop over those that are left over, each with its number of iterations. None where the body has no
/// reduction, or where the sums of two iterations do not fit into registers.
pub fn jammed(nest: &mut Nest, l: &NestLoop, n: usize) -> Option<Vec<(NestLoop, usize)>> {
    let counter = counter_of(nest, l)?;
    if !matches!(l.kind, LoopKind::Free | LoopKind::Independent) || l.carries.len() != 1 {
        return None;
    }
    let mut copies = None;
    for s in &l.body {
        match s {
            Stmt::Loop(fold) if is_plain(nest, fold) => {
                let most = copies_of(nest, fold);
                copies = Some(copies.map_or(most, |c: usize| c.min(most)));
            }
            Stmt::ExitUnless(_) | Stmt::CallRow(_) => return None,
            _ => (),
        }
    }
    let copies = copies?.min(n);
    if copies < 2 {
        return None;
    }
    let rest = n % copies;
    let slot = nest.add(NestOp::Carry, DType::I64, &[]);
    let varying = [counter.slot].into_iter().collect();
    let mut jam = Jam { nest, renamed: vec![FxHashMap::default(); copies], varying, body: vec![] };
    for k in 0..copies {
        let by = jam.nest.constant(k as i64);
        let at = if k == 0 { slot } else { jam.push(NestOp::Bin(Bin::Add), DType::I64, &[slot, by]) };
        jam.renamed[k].insert(counter.slot, at);
    }
    l.body.iter().for_each(|s| jam.statement(s));
    let by = jam.nest.constant(copies as i64);
    let next = jam.push(NestOp::Bin(Bin::Add), DType::I64, &[slot, by]);
    let (body, kind) = (jam.body, LoopKind::Sequential);
    let (init, after) = (nest.constant(0), nest.add(NestOp::After, DType::I64, &[]));
    let carries = vec![NestCarry { init, slot, next, after }];
    let mut loops = vec![(NestLoop { kind, trip: NestTrip::Static(n / copies), carries, body }, n / copies)];
    if rest > 0 {
        let carries = vec![NestCarry { init: nest.constant((n - rest) as i64), ..counter }];
        loops.push((NestLoop { kind, trip: NestTrip::Static(rest), carries, body: l.body.clone() }, rest));
    }
    Some(loops)
}
/// Whether a loop is a reduction without calls and stores.
fn is_plain(nest: &Nest, l: &NestLoop) -> bool {
    let is_value = |s: &Stmt| matches!(s, Stmt::Let(v) if !matches!(nest.def(*v).op, NestOp::Call(..)));
    l.kind == LoopKind::Fold && counter_of(nest, l).is_some() && l.body.iter().all(is_value)
}
/// How many iterations' sums fit into registers, and into working memory.
fn copies_of(nest: &Nest, fold: &NestLoop) -> usize {
    let folds = &fold.carries[..fold.carries.len() - 1];
    let vectors = |c: &NestCarry| (order::LANES * nest.dtype(c.next).size()).div_ceil(super::VECTOR);
    let all: usize = folds.iter().map(vectors).sum();
    (VECTOR_SUMS / all.max(1)).min(FOLD_SCRATCH / (order::LANES * 8) / folds.len().max(1))
}

struct Jam<'a> {
    nest: &'a mut Nest,
    /// The values of each copy. All are new, as the loop over the remaining iterations defines the old ones.
    renamed: Vec<FxHashMap<NestValue, NestValue>>,
    /// Values that differ from copy to copy; the copies share the others.
    varying: FxHashSet<NestValue>,
    body: Vec<Stmt>,
}
impl Jam<'_> {
    fn push(&mut self, op: NestOp, dtype: DType, args: &[NestValue]) -> NestValue {
        let v = self.nest.add(op, dtype, args);
        self.body.push(Stmt::Let(v));
        v
    }
    fn of(&self, copy: usize, v: NestValue) -> NestValue {
        self.renamed[copy].get(&v).copied().unwrap_or(v)
    }
    /// One value of all copies.
    fn shared(&mut self, v: NestValue) -> NestValue {
        let new = self.value(0, v);
        for r in &mut self.renamed {
            r.insert(v, new);
        }
        new
    }
    /// The value of one copy.
    fn value(&mut self, copy: usize, v: NestValue) -> NestValue {
        let new = self.nest.again(v, |a| self.renamed[copy].get(&a).copied().unwrap_or(a));
        self.renamed[copy].insert(v, new);
        new
    }
    fn statement(&mut self, s: &Stmt) {
        match s {
            Stmt::Let(v) => {
                if self.nest.def(*v).args().iter().any(|a| self.varying.contains(a)) {
                    self.varying.insert(*v);
                    for copy in 0..self.renamed.len() {
                        let new = self.value(copy, *v);
                        self.body.push(Stmt::Let(new));
                    }
                } else {
                    let new = self.shared(*v);
                    self.body.push(Stmt::Let(new));
                }
            }
            Stmt::Loop(l) if is_plain(self.nest, l) => self.joined(l),
            s => {
                // its values are those of a copy, even where they are equal
                for copy in 0..self.renamed.len() {
                    let s = self.copied(copy, s);
                    self.body.push(s);
                }
            }
        }
    }
    /// The reductions of all copies as one.
    fn joined(&mut self, l: &NestLoop) {
        let Some((counter, folds)) = l.carries.split_last() else { return };
        for v in folds.iter().flat_map(|c| [c.slot, c.after]) {
            self.varying.insert(v);
            for copy in 0..self.renamed.len() {
                self.value(copy, v);
            }
        }
        self.shared(counter.slot);
        self.shared(counter.after);
        let outer = std::mem::take(&mut self.body);
        l.body.iter().for_each(|s| self.statement(s));
        let mut carries = vec![];
        for copy in 0..self.renamed.len() {
            carries.extend(folds.iter().map(|c| self.carry(copy, c)));
        }
        carries.push(self.carry(0, counter));
        let body = std::mem::replace(&mut self.body, outer);
        self.body.push(Stmt::Loop(Box::new(NestLoop { kind: l.kind, trip: l.trip, carries, body })));
    }
    fn carry(&self, copy: usize, c: &NestCarry) -> NestCarry {
        let [init, slot, next, after] = [c.init, c.slot, c.next, c.after].map(|v| self.of(copy, v));
        NestCarry { init, slot, next, after }
    }
    /// A statement of one copy, whose values are its own.
    fn copied(&mut self, copy: usize, s: &Stmt) -> Stmt {
        match s {
            Stmt::Let(v) => {
                self.varying.insert(*v);
                Stmt::Let(self.value(copy, *v))
            }
            Stmt::Store { array, index, offset, value, dtype, stride } => {
                let (index, value) = (self.of(copy, *index), self.of(copy, *value));
                Stmt::Store { array: *array, index, offset: *offset, value, dtype: *dtype, stride: *stride }
            }
            Stmt::Loop(l) => {
                for v in l.carries.iter().flat_map(|c| [c.slot, c.after]) {
                    self.varying.insert(v);
                    self.value(copy, v);
                }
                let body = l.body.iter().map(|s| self.copied(copy, s)).collect();
                let carries = l.carries.iter().map(|c| self.carry(copy, c)).collect();
                let trip = match l.trip {
                    NestTrip::Dyn(v) => NestTrip::Dyn(self.of(copy, v)),
                    trip => trip,
                };
                Stmt::Loop(Box::new(NestLoop { kind: l.kind, trip, carries, body }))
            }
            Stmt::ExitUnless(v) => Stmt::ExitUnless(self.of(copy, *v)),
            Stmt::CallRow(_) => s.clone(),
        }
    }
}
