//! Loops: the ranges of their carries, and counters that are functions of one.
//!
//! INVARIANT: the range of a carry holds at the beginning of each iteration, in its body, and after the loop.
use super::{NONE, Rewriter};
use crate::nest::facts::Range;
use crate::nest::{NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt, stored};
use ferrax_kernel::DType;
use smallvec::SmallVec;

impl Rewriter<'_> {
    /// How much a carry grows in an iteration, where that is a constant.
    pub(super) fn step(&self, c: &NestCarry) -> Option<i128> {
        self.raw.step(c.slot, c.next)
    }
    /// The greatest value of the carry for which the loop continues.
    pub(super) fn bound(&self, l: &NestLoop, slot: NestValue) -> Option<i128> {
        let exit = l.body.iter().find_map(|s| if let Stmt::ExitUnless(p) = s { Some(*p) } else { None })?;
        let (of, strict) = self.raw.limit(exit, slot)?;
        let range = match self.raw.known_integer(of) {
            Some(x) => Range::one(x),
            None if self.mapped(of) != NONE => self.range(self.mapped(of))?,
            None => Range::of(self.raw.dtype(of))?,
        };
        Some(range.hi - strict)
    }
    /// The ranges of a carry at the beginning of an iteration, in its body, and after the loop.
    pub(super) fn carried(&self, l: &NestLoop, c: &NestCarry, trips: Option<i128>) -> Option<[Range; 3]> {
        let all = Range::of(self.raw.dtype(c.slot))?;
        let init = self.range(self.mapped(c.init))?;
        let step = self.step(c)?;
        let fits = |r: Range| all.contains(r).then_some(r);
        if let Some(n) = trips {
            let reach = |n: i128| fits(init.union(init.plus(Range::one(step.checked_mul(n)?))));
            let body = reach((n - 1).max(0))?;
            return Some([body, body, reach(n)?]);
        }
        let hi = self.bound(l, c.slot)?;
        let top = fits(Range { lo: init.lo, hi: init.hi.max(hi + step) })?;
        (step > 0).then_some([top, Range { lo: init.lo, hi: hi.max(init.lo) }, top])
    }
    pub(super) fn nested(&mut self, l: &NestLoop) {
        let (outer, inner) = (self.level(), self.blocks.len() as u16);
        let (trip, trips) = match l.trip {
            NestTrip::Static(n) => (l.trip, Some(n as i128)),
            NestTrip::Dyn(n) => {
                let n = self.mapped(n);
                (NestTrip::Dyn(n), self.range(n).map(|r| r.hi.max(0)))
            }
            NestTrip::Forever => (l.trip, None),
        };
        if trips == Some(0) {
            // nothing of its body may run: a load would be of an array that may have no element
            l.carries.iter().for_each(|c| self.map[c.after as usize] = self.mapped(c.init));
            return;
        }
        let mut arrays = SmallVec::new();
        stored(&l.body, &mut arrays);
        arrays.iter().for_each(|a| self.changed(*a, inner));
        // A carry whose next value is its own slot does not change.
        let (same, moving): (Vec<&NestCarry>, Vec<&NestCarry>) = l.carries.iter().partition(|c| c.next == c.slot);
        for c in same {
            let init = self.mapped(c.init);
            (self.map[c.slot as usize], self.map[c.after as usize]) = (init, init);
        }
        let counted = self.counted(&moving, trips.filter(|_| matches!(l.trip, NestTrip::Static(_))));
        let is_counted = |c: &&NestCarry| counted.iter().any(|other| std::ptr::eq(other.carry, *c));
        let moving: Vec<&NestCarry> = moving.into_iter().filter(|c| !is_counted(c)).collect();
        let mut carries: Vec<NestCarry> = vec![];
        let mut bodies = vec![];
        for c in &moving {
            let dtype = self.raw.dtype(c.slot);
            let ranges = self.carried(l, c, trips);
            let slot = self.fresh(NestOp::Carry, dtype, &[], inner);
            let after = self.fresh(NestOp::After, dtype, &[], outer);
            if let Some([top, body, end]) = ranges {
                (self.ranges[slot as usize], self.ranges[after as usize]) = (Some(top), Some(end));
                bodies.push((slot, body));
            }
            let init = self.mapped(c.init);
            self.map[c.slot as usize] = slot;
            carries.push(NestCarry { init, slot, next: NONE, after });
        }
        self.blocks.push(vec![]);
        self.keys.push(vec![]);
        for c in &counted {
            let counter = carries.last().expect("the last carry counts").slot;
            self.map[c.carry.slot as usize] = self.count(c, counter);
        }
        let exit = l.body.iter().position(|s| matches!(s, Stmt::ExitUnless(_))).map_or(0, |k| k + 1);
        self.statements(&l.body[..exit]);
        bodies.iter().for_each(|(slot, range)| self.ranges[*slot as usize] = Some(*range));
        self.statements(&l.body[exit..]);
        for (c, to) in moving.iter().zip(&mut carries) {
            to.next = self.mapped(c.next);
        }
        let body = self.blocks.pop().unwrap_or_default();
        for key in self.keys.pop().unwrap_or_default() {
            self.seen.remove(&key);
        }
        for (c, to) in moving.iter().zip(&carries) {
            self.map[c.after as usize] = to.after;
        }
        for c in &counted {
            self.map[c.carry.after as usize] = self.counted_to(c);
        }
        if let (NestTrip::Static(n), Some(last)) = (l.trip, moving.last())
            && self.is_counter(last)
        {
            self.map[last.after as usize] = self.integer(DType::I64, n as i128);
        }
        arrays.iter().for_each(|a| self.changed(*a, outer));
        let kind = self.kind_of(l, &carries, &body, inner);
        self.blocks.last_mut().expect("a block").push(Stmt::Loop(Box::new(NestLoop { kind, trip, carries, body })));
    }
}
