//! Proves that a nest touches nothing but elements of its arrays, and reads nothing that is not set.
//!
//! ```text
//!     loop 9 { v = load a[i + 1] }      needs 10 elements: a of 9 is refused, "array 0 of 36 bytes: bytes 4 to 40"
//! ```
//! The proof is made anew from the statements alone: intervals of integers, and integers as sums of others, where they do not wrap. Carries are
//! counters, or may be any number of their dtype.
//!
//! INVARIANT: a nest that is accepted stays in bounds for all numbers that it gets; a nest of which that cannot be proved is refused.
use super::facts::{Linear, Range, integer, lane};
use super::{ArrayId, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt};
use ferrax_kernel::{Bin, DType};

/// Bytes of an element of a row that a function is called for, at most.
const ROW_ELEMENT: i128 = 8;
/// An array, an index, and how far behind it an access begins.
type AccessSite = (ArrayId, NestValue, i32);

pub fn verify(nest: &Nest) -> Result<(), String> {
    let n = nest.defs.len();
    let mut p = Prover { nest, is_set: vec![false; n], ranges: vec![None; n], sums: vec![None; n] };
    for (v, def) in nest.defs.iter().enumerate() {
        if let NestOp::Const(_) = def.op {
            p.define(v as NestValue)?;
        }
    }
    p.statements(&nest.body)?;
    nest.outs.iter().try_for_each(|v| p.is_read(*v))
}

struct Prover<'a> {
    nest: &'a Nest,
    /// Whether a value is set where the proof has come to.
    is_set: Vec<bool>,
    ranges: Vec<Option<Range>>,
    sums: Vec<Option<Linear>>,
}
impl Prover<'_> {
    fn is_read(&self, v: NestValue) -> Result<(), String> {
        let is_set = self.is_set.get(v as usize) == Some(&true);
        is_set.then_some(()).ok_or_else(|| format!("value {v} is read where it is not set"))
    }
    fn sum(&self, v: NestValue) -> Linear {
        self.sums[v as usize].clone().unwrap_or_else(|| Linear::of(v))
    }
    /// The values of an integer, by the facts known at this point of the proof.
    fn range(&self, v: NestValue) -> Option<Range> {
        let own = self.ranges[v as usize]?;
        let term = |t: NestValue| self.ranges[t as usize].unwrap_or(own);
        Some(self.sums[v as usize].as_ref().map_or(own, |sum| sum.range(term).meet(own)))
    }
    fn statements(&mut self, all: &[Stmt]) -> Result<(), String> {
        for s in all {
            match s {
                Stmt::Let(v) => self.define(*v)?,
                Stmt::Store { array, index, offset, value, dtype, stride } => {
                    self.is_read(*value)?;
                    let lanes = self.nest.def(*value).lanes;
                    if !is_stored(self.nest.dtype(*value), *dtype) {
                        return Err(format!("a {:?} is stored as {dtype:?}", self.nest.dtype(*value)));
                    }
                    self.access((*array, *index, *offset), *dtype, *stride, lanes)?;
                }
                Stmt::ExitUnless(p) => self.is_read(*p)?,
                Stmt::CallRow(c) => {
                    let bytes = self.nest.scratch.map_or(0, |s| s.1) as i128;
                    let row = ROW_ELEMENT * c.elements as i128;
                    let mut places = [c.to].into_iter().chain(c.from[..c.operands as usize].iter().copied());
                    if !places.all(|at| at >= 0 && at as i128 + row <= bytes) {
                        return Err(format!("a row of {} elements outside of working memory", c.elements));
                    }
                }
                Stmt::Loop(l) => self.repeated(l)?,
            }
        }
        Ok(())
    }
    fn repeated(&mut self, l: &NestLoop) -> Result<(), String> {
        let trips = match l.trip {
            NestTrip::Static(n) => Some(n as i128),
            NestTrip::Dyn(n) => {
                self.is_read(n)?;
                self.range(n).map(|r| r.hi.max(0))
            }
            NestTrip::Forever => None,
        };
        let outside = self.is_set.clone();
        let exit = l.body.iter().position(|s| matches!(s, Stmt::ExitUnless(_)));
        let mut later = vec![];
        let mut after = vec![];
        for c in &l.carries {
            self.is_read(c.init)?;
            let all = Range::of(self.nest.dtype(c.slot));
            let known = self.carried(l, c, trips, exit);
            let [begin, body, end] = known.map_or([all; 3], |known| known.map(Some));
            self.set(c.slot, begin, None);
            later.push((c.slot, body));
            after.push((c.after, end));
        }
        if trips != Some(0) {
            let exit = exit.map_or(0, |k| k + 1);
            self.statements(&l.body[..exit])?;
            later.into_iter().for_each(|(slot, range)| self.ranges[slot as usize] = range);
            self.statements(&l.body[exit..])?;
            l.carries.iter().try_for_each(|c| self.is_read(c.next))?;
        }
        self.is_set = outside;
        after.into_iter().for_each(|(v, range)| self.set(v, range, None));
        Ok(())
    }
    /// The values of a counter at the beginning of an iteration, in its body, and after the loop.
    fn carried(&self, l: &NestLoop, c: &NestCarry, trips: Option<i128>, exit: Option<usize>) -> Option<[Range; 3]> {
        let all = Range::of(self.nest.dtype(c.slot))?;
        let fits = |r: Range| all.contains(r).then_some(r);
        let init = self.range(c.init)?;
        let next = self.nest.def(c.next);
        if c.next == c.slot {
            return Some([init; 3]);
        }
        let (sum, most) = match next.op {
            NestOp::Bin(Bin::Min) => (next.args[0], Some(self.nest.known_integer(next.args[1])?)),
            _ => (c.next, None),
        };
        let step = self.beyond(c.slot, sum, None).filter(|s| *s > 0 || most.is_none())?;
        let steps = |values: Range| self.beyond(c.slot, sum, Some(values)).map(|_| values);
        if let Some(n) = trips {
            let reach = |n: i128| {
                let far = init.plus(Range::one(step.checked_mul(n.max(0))?));
                // no further than the number that it stops at, once it is an iteration's
                let far = most.map_or(far, |most| Range { lo: far.lo.min(most), hi: far.hi.min(most) });
                fits(init.union(far))
            };
            fits(init.plus(Range::one(step.checked_mul(n.max(0))?)))?;
            let begin = steps(reach(n - 1)?)?;
            return Some([begin, begin, reach(n)?]);
        }
        let hi = self.bound(&l.body[exit?], c.slot)?;
        let top = fits(Range { lo: init.lo, hi: init.hi.max(hi + step) })?;
        let body = steps(Range { lo: init.lo, hi: hi.max(init.lo) })?;
        (step > 0 && most.is_none()).then_some([top, body, top])
    }
    /// How much greater than a carry a value of its loop is, if that is a constant and no intermediate number wraps for these values of the carry.
    fn beyond(&self, slot: NestValue, v: NestValue, values: Option<Range>) -> Option<i128> {
        let def = self.nest.def(v);
        let [a, b, _] = def.args;
        let by = match def.op {
            _ if v == slot => 0,
            NestOp::Convert(_) | NestOp::Wrap => self.beyond(slot, a, values)?,
            _ => {
                let of = if self.nest.known(a).is_some() { b } else { a };
                self.nest.step(of, v)? + self.beyond(slot, of, values)?
            }
        };
        let all = Range::of(def.dtype)?;
        values.is_none_or(|r| all.contains(r.plus(Range::one(by)))).then_some(by)
    }
    /// The greatest value of a carry with which an iteration goes beyond its test.
    fn bound(&self, test: &Stmt, slot: NestValue) -> Option<i128> {
        let Stmt::ExitUnless(p) = test else { return None };
        let (of, less) = self.nest.limit(*p, slot)?;
        // a value that is set by an iteration may be any number of its dtype
        let range = if self.is_set[of as usize] { self.range(of)? } else { Range::of(self.nest.dtype(of))? };
        Some(range.hi - less)
    }
    fn set(&mut self, v: NestValue, range: Option<Range>, sum: Option<Linear>) {
        let v = v as usize;
        (self.is_set[v], self.ranges[v], self.sums[v]) = (true, range, sum);
    }
    fn define(&mut self, v: NestValue) -> Result<(), String> {
        let def = *self.nest.def(v);
        def.args().iter().try_for_each(|a| self.is_read(*a))?;
        let [index, ..] = def.args;
        match def.op {
            NestOp::Carry | NestOp::After => return Err(format!("value {v} is a loop's")),
            NestOp::Load(array, offset) => self.access((array, index, offset), def.dtype, 1, def.lanes)?,
            NestOp::LoadApart(array, offset, by, n) => self.access((array, index, offset), def.dtype, by, n)?,
            NestOp::LoadWide(array, offset, from) => self.access((array, index, offset), from, 1, def.lanes)?,
            NestOp::Bin(f) if self.nest.dtype(def.args[0]) != self.nest.dtype(def.args[1]) => {
                let of = [def.args[0], def.args[1]].map(|a| lane(self.nest.dtype(a)));
                if of[0] != of[1] {
                    return Err(format!("{f:?} of {of:?}"));
                }
            }
            _ => (),
        }
        let all = Range::of(def.dtype);
        let (range, sum) = if def.lanes == 1 { self.facts(v) } else { (None, None) };
        let fits = range.is_some_and(|r| all.is_some_and(|all| all.contains(r)));
        let (range, sum) = if fits { (range, sum) } else { (all, None) };
        self.set(v, range, sum);
        Ok(())
    }
    /// The values of a result before it wraps, and the sum that it is if it does not.
    fn facts(&self, v: NestValue) -> (Option<Range>, Option<Linear>) {
        let def = self.nest.def(v);
        let [a, b, c] = def.args;
        match def.op {
            NestOp::Const(bits) if Range::of(def.dtype).is_some() => {
                let x = integer(def.dtype, bits);
                (Some(Range::one(x)), i64::try_from(x).ok().map(Linear::constant))
            }
            NestOp::Convert(_) if Range::of(def.dtype).is_some() && def.dtype != DType::Bool => {
                (self.range(a), Some(self.sum(a)))
            }
            NestOp::Wrap => (self.range(a), Some(self.sum(a))),
            NestOp::Select => (self.range(b).zip(self.range(c)).map(|(x, y)| x.union(y)), None),
            NestOp::Bin(f) if !f.is_comparison() => {
                let Some((x, y)) = self.range(a).zip(self.range(b)) else { return (None, None) };
                let shift = Range::shift(f, y, def.dtype.bits());
                let range = Range::bin_or_shift(f, x, y, shift);
                let sum = Linear::bin(f, [&self.sum(a), &self.sum(b)], [x, y], shift);
                let by_terms = sum.as_ref().map(|s| s.range(|t| self.ranges[t as usize].unwrap_or(x.union(y))));
                (range.zip(by_terms).map(|(r, t)| t.meet(r)).or(range), sum)
            }
            _ => (None, None),
        }
    }
    /// Elements that are so far apart, from this index on, lie in their array.
    fn access(&self, (array, index, offset): AccessSite, d: DType, stride: i32, lanes: u8) -> Result<(), String> {
        self.is_read(index)?;
        let bytes = match self.nest.scratch {
            Some((scratch, bytes)) if scratch == array => bytes,
            _ => self.nest.lengths.get(array as usize).copied().unwrap_or(0),
        };
        let of = Range::of(DType::I64).expect("an integer");
        let first = self.range(index).unwrap_or(of).plus(Range::one(offset as i128));
        let last = first.plus(Range::one(stride as i128 * (lanes as i128 - 1)));
        let all = first.union(last);
        let (from, to) = (all.lo * d.size() as i128, (all.hi + 1) * d.size() as i128);
        if from < 0 || to > bytes as i128 {
            return Err(format!("array {array} of {bytes} bytes: bytes {from} to {to}"));
        }
        Ok(())
    }
}
/// Whether a value of one dtype may be stored as another: as itself, from its lane, or with half the width.
fn is_stored(value: DType, to: DType) -> bool {
    use DType::*;
    lane(value) == lane(to) || matches!((value, to), (I64 | U64, I32 | U32) | (F64, F32))
}
