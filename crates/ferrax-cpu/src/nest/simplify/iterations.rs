//! Known properties of a loop's iterations as a whole: other counters are functions of one counter, and iterations that touch different elements are
//! independent.
//!
//! ```text
//!     loop 9, i: i32 by 1 { store y[i] <- f(load x[i + 1]) }     ->     independent loop 9, c: i64 by 1 { i = convert c; store y[i] <- f(load x[i + 1]) }
//! ```
//!
//! INVARIANT: the elements that an iteration of an independent loop stores are accessed by no other one.
use super::Rewriter;
use crate::nest::facts::{Linear, Range, integer};
use crate::nest::{ArrayId, LoopKind, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt, loads, stored};
use ferrax_kernel::{Bin, DType};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// A counter with its first value and its step, which the loop's own counter gives.
pub struct Counted<'l> {
    pub carry: &'l NestCarry,
    first: i128,
    step: i128,
    trips: i128,
}
/// The place of an access: its term of the counter, those of values from outside the loop, and the range of the others.
#[derive(Clone)]
struct AccessReach {
    step: i64,
    outside: SmallVec<[(NestValue, i64); 3]>,
    rest: Range,
}

impl Rewriter<'_> {
    /// The counters among these carries of a loop of known length, but the last carry, which counts iterations.
    pub(super) fn counted<'l>(&self, moving: &[&'l NestCarry], trips: Option<i128>) -> Vec<Counted<'l>> {
        let (Some(trips), Some((last, others))) = (trips, moving.split_last()) else { return vec![] };
        let find = |c: &&'l NestCarry| {
            let (step, dtype) = (self.step(c)?, self.raw.dtype(c.slot));
            let init = self.range(self.mapped(c.init))?.is_one()?;
            let fits = Range::of(dtype)?.contains(Range::one(init).union(Range::one(init + step.checked_mul(trips)?)));
            fits.then_some(Counted { carry: c, first: init, step, trips })
        };
        if self.is_counter(last) { others.iter().filter_map(find).collect() } else { vec![] }
    }
    /// Whether a carry counts the iterations before this one.
    pub(super) fn is_counter(&self, c: &NestCarry) -> bool {
        self.raw.dtype(c.slot) == DType::I64 && self.raw.known(c.init) == Some(0) && self.step(c) == Some(1)
    }
    /// The value of such a counter in the loop.
    pub(super) fn count(&mut self, c: &Counted, counter: NestValue) -> NestValue {
        let (step, first) = (self.integer(DType::I64, c.step), self.integer(DType::I64, c.first));
        let grown = self.emit(NestOp::Bin(Bin::Mul), DType::I64, &[counter, step]);
        let wide = self.emit(NestOp::Bin(Bin::Add), DType::I64, &[grown, first]);
        self.emit(NestOp::Convert(DType::I64), self.raw.dtype(c.carry.slot), &[wide])
    }
    /// Its value after the loop.
    pub(super) fn counted_to(&mut self, c: &Counted) -> NestValue {
        self.integer(self.raw.dtype(c.carry.slot), c.first + c.step * c.trips)
    }
    /// The kind of a loop that is one after the other as it was written.
    pub(super) fn kind_of(&self, l: &NestLoop, carries: &[NestCarry], body: &[Stmt], inner: u16) -> LoopKind {
        let is_plain = l.kind == LoopKind::Sequential && matches!(l.trip, NestTrip::Static(_));
        match carries {
            [counter] if is_plain && self.is_independent(counter.slot, body, inner) => LoopKind::Independent,
            _ => l.kind,
        }
    }
    fn is_independent(&self, counter: NestValue, body: &[Stmt], inner: u16) -> bool {
        let mut arrays = SmallVec::new();
        stored(body, &mut arrays);
        let mut reaches: SmallVec<[(ArrayId, AccessReach); 4]> = SmallVec::new();
        let mut loaded = FxHashSet::default();
        loads(&self.out, body, &mut loaded);
        let is_touched = |a: &ArrayId| loaded.contains(a) || arrays.contains(a);
        let is_alone = |a: ArrayId| self.raw.meeting.iter().all(|(x, y)| *x != a || !is_touched(y));
        !arrays.is_empty()
            && arrays.iter().all(|a| is_alone(*a))
            && self.gather(counter, body, inner, &arrays, &mut reaches).is_some()
            && arrays.iter().all(|a| is_apart(reaches.iter().filter(|r| r.0 == *a).map(|r| &r.1)))
    }
    /// The places of all accesses to these arrays; none where one is unknown, or the loop may end early.
    fn gather(
        &self,
        counter: NestValue,
        body: &[Stmt],
        inner: u16,
        of: &[ArrayId],
        to: &mut SmallVec<[(ArrayId, AccessReach); 4]>,
    ) -> Option<()> {
        for s in body {
            let (array, index, offset) = match s {
                Stmt::Let(v) => match self.out.def(*v) {
                    def if let NestOp::Load(array, offset) = def.op => (array, def.args[0], offset),
                    _ => continue,
                },
                Stmt::Store { array, index, offset, .. } => (*array, *index, *offset),
                Stmt::Loop(l) => {
                    self.gather(counter, &l.body, inner, of, to)?;
                    continue;
                }
                Stmt::ExitUnless(_) | Stmt::CallRow(_) => return None,
            };
            if of.contains(&array) {
                let at = self.sum(index).plus(&Linear::constant(offset as i64), 1)?;
                to.push((array, self.reach(counter, &at, inner)?));
            }
        }
        Some(())
    }
    fn reach(&self, counter: NestValue, at: &Linear, inner: u16) -> Option<AccessReach> {
        let mut reach = AccessReach { step: 0, outside: SmallVec::new(), rest: Range::one(at.constant as i128) };
        for (v, by) in &at.terms {
            let is_counter = *v == counter;
            if is_counter {
                reach.step = *by;
            } else if self.levels[*v as usize] < inner {
                match self.out.known(*v) {
                    Some(bits) => {
                        let x = integer(self.out.dtype(*v), bits) * *by as i128;
                        reach.rest = reach.rest.plus(Range::one(x));
                    }
                    None => reach.outside.push((*v, *by)),
                }
            } else {
                reach.rest = reach.rest.plus(self.range(*v)?.times(Range::one(*by as i128)));
            }
        }
        Some(reach)
    }
}
/// Whether accesses at these places meet in one iteration only.
fn is_apart<'r>(mut reaches: impl Iterator<Item = &'r AccessReach>) -> bool {
    let Some(first) = reaches.next().cloned() else { return false };
    let mut rest = first.rest;
    let alike = reaches.all(|r| {
        rest = rest.union(r.rest);
        r.step == first.step && r.outside == first.outside
    });
    alike && rest.hi.saturating_sub(rest.lo) < i128::from(first.step).abs()
}
