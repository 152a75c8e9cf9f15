//! Simplifies a nest with facts about its integers.
//!
//! One pass over the statements rebuilds each value in the outermost block in which its operands are available, once for all equal values. Ranges
//! decide comparisons, clamps and wraps, and indices become sums whose constant goes into the address.
//!
//! INVARIANT: a value is computed from the same operands by the same functions as before; no facts about floats are used.
mod iterations;

use super::facts::{Linear, Range, integer, lane, lane_of};
use super::{ArrayId, Def, Nest, NestCarry, NestLoop, NestOp, NestTrip, NestValue, Stmt, stored};
use ferrax_kernel::{Bin, DType, Un};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

#[derive(PartialEq, Eq, Hash, Clone)]
enum Key {
    Def(Def),
    /// Of an array between two stores.
    Load(Def, u32),
    Sum(DType, Linear),
}
const NONE: NestValue = NestValue::MAX;

struct Rewriter<'a> {
    raw: &'a Nest,
    map: Vec<NestValue>,
    out: Nest,
    /// For each new value: the number of enclosing loops, and the known facts.
    levels: Vec<u16>,
    ranges: Vec<Option<Range>>,
    sums: Vec<Option<Linear>>,
    blocks: Vec<Vec<Stmt>>,
    seen: FxHashMap<Key, NestValue>,
    /// The keys that end with each block.
    keys: Vec<Vec<Key>>,
    /// Of each array: how often it may have changed, and within how many loops it last did.
    versions: Vec<(u32, u16)>,
}

pub fn simplify(raw: &Nest) -> Nest {
    let mut r = Rewriter {
        raw,
        map: vec![NONE; raw.defs.len()],
        out: Nest {
            inputs: raw.inputs.clone(),
            arrays: raw.arrays,
            lengths: raw.lengths.clone(),
            scratch: raw.scratch,
            meeting: raw.meeting.clone(),
            ..Nest::default()
        },
        levels: vec![],
        ranges: vec![],
        sums: vec![],
        blocks: vec![vec![]],
        seen: FxHashMap::default(),
        keys: vec![vec![]],
        versions: vec![(0, 0); raw.arrays as usize],
    };
    r.statements(&raw.body);
    r.out.outs = raw.outs.iter().map(|v| r.map[*v as usize]).collect();
    r.out.body = r.blocks.pop().unwrap_or_default();
    live::prune(&mut r.out);
    r.out
}

impl Rewriter<'_> {
    fn level(&self) -> u16 {
        self.blocks.len() as u16 - 1
    }
    fn fresh(&mut self, op: NestOp, dtype: DType, args: &[NestValue], level: u16) -> NestValue {
        let v = self.out.add(op, dtype, args);
        self.levels.push(level);
        self.ranges.push(Range::of(dtype));
        self.sums.push(None);
        v
    }
    fn range(&self, v: NestValue) -> Option<Range> {
        self.ranges[v as usize]
    }
    fn sum(&self, v: NestValue) -> Linear {
        self.sums[v as usize].clone().unwrap_or_else(|| Linear::of(v))
    }
    fn constant(&mut self, dtype: DType, bits: u64) -> NestValue {
        let def = Def { op: NestOp::Const(bits), dtype, args: [0; 3], lanes: 1, is_exact: false };
        if let Some(v) = self.seen.get(&Key::Def(def)) {
            return *v;
        }
        let v = self.fresh(def.op, dtype, &[], 0);
        if let Some(all) = Range::of(dtype) {
            let x = integer(dtype, bits);
            self.ranges[v as usize] = Some(Range::one(x).meet(all));
            self.sums[v as usize] = i64::try_from(x).ok().map(Linear::constant);
        }
        self.blocks[0].push(Stmt::Let(v));
        self.seen.insert(Key::Def(def), v);
        v
    }
    fn integer(&mut self, dtype: DType, x: i128) -> NestValue {
        self.constant(dtype, lane_of(dtype, x))
    }
    /// The range of `a - b`, by their terms.
    fn difference(&self, a: NestValue, b: NestValue) -> Option<Range> {
        let (x, y) = (self.range(a)?, self.range(b)?);
        let plain = x.minus(y);
        let terms = self.sum(a).plus(&self.sum(b), -1).map(|d| self.range_of(&d));
        Some(terms.map_or(plain, |t| t.meet(plain)))
    }
    fn range_of(&self, sum: &Linear) -> Range {
        sum.range(|v| self.range(v).unwrap_or(Range { lo: i64::MIN as i128, hi: i64::MAX as i128 }))
    }
    /// A value with these facts, as an equal one that is there, or a new one.
    fn place(&mut self, def: Def, range: Option<Range>, sum: Option<Linear>) -> NestValue {
        let mut range = range;
        if let (Some(sum), Some(r)) = (&sum, range) {
            range = Some(r.meet(self.range_of(sum)));
        }
        if let Some(x) = range.and_then(Range::is_one) {
            return self.integer(def.dtype, x);
        }
        if let Some(Linear { constant: 0, terms }) = &sum
            && let [(v, 1)] = terms[..]
            && lane(self.out.dtype(v)) == lane(def.dtype)
        {
            return v;
        }
        let key = match (&sum, def.op) {
            (Some(sum), _) => Key::Sum(def.dtype, sum.clone()),
            (None, NestOp::Load(array, _)) => Key::Load(def, self.versions[array as usize].0),
            _ => Key::Def(def),
        };
        if let Some(v) = self.seen.get(&key) {
            return *v;
        }
        let mut level = def.args().iter().map(|a| self.levels[*a as usize]).max().unwrap_or(0);
        if let NestOp::Load(array, _) = def.op {
            level = level.max(self.versions[array as usize].1);
        }
        let v = self.fresh(def.op, def.dtype, def.args(), level);
        self.ranges[v as usize] = range;
        self.out.defs[v as usize].is_exact = sum.is_some();
        self.sums[v as usize] = sum;
        self.blocks[level as usize].push(Stmt::Let(v));
        self.seen.insert(key.clone(), v);
        self.keys[level as usize].push(key);
        v
    }
    fn emit(&mut self, op: NestOp, dtype: DType, args: &[NestValue]) -> NestValue {
        let mut all = [0; 3];
        all[..args.len()].copy_from_slice(args);
        let def = Def { op, dtype, args: all, lanes: 1, is_exact: false };
        let full = Range::of(dtype);
        match op {
            NestOp::Const(bits) => self.constant(dtype, bits),
            NestOp::Bin(f) => self.bin(f, def),
            NestOp::Un(Un::Not) if dtype == DType::Bool => match self.range(args[0]).and_then(Range::is_one) {
                Some(x) => self.integer(DType::Bool, 1 - x),
                None => self.place(def, full, None),
            },
            NestOp::Select => self.select(def),
            NestOp::Convert(from) if from == dtype => args[0],
            NestOp::Convert(_) if full.is_some() && self.range(args[0]).is_some() && dtype != DType::Bool => {
                let range = self.range(args[0]).filter(|r| full.is_some_and(|all| all.contains(*r)));
                let sum = range.map(|_| self.sum(args[0]));
                self.place(def, range.or(full), sum)
            }
            NestOp::Convert(_) if dtype == DType::Bool && self.out.dtype(args[0]) == DType::Bool => args[0],
            NestOp::Wrap => match (self.range(args[0]), full) {
                (Some(r), Some(all)) if all.contains(r) => args[0],
                _ => self.place(def, full, None),
            },
            _ => self.place(def, full, None),
        }
    }
    fn select(&mut self, def: Def) -> NestValue {
        let [p, t, f] = def.args;
        if t == f {
            return t;
        }
        if let Some(x) = self.range(p).and_then(Range::is_one) {
            return if x != 0 { t } else { f };
        }
        let range = self.range(t).zip(self.range(f)).map(|(a, b)| a.union(b));
        self.place(def, range, None)
    }
    fn bin(&mut self, f: Bin, mut def: Def) -> NestValue {
        let [a, b, _] = def.args;
        let of = self.out.dtype(a);
        let Some((x, y)) = self.range(a).zip(self.range(b)) else {
            return self.place(def, Range::of(def.dtype), None);
        };
        if f.is_comparison() {
            let decided = self.difference(a, b).and_then(|d| Range::decides(f, d));
            return match decided {
                Some(holds) => self.integer(DType::Bool, holds as i128),
                None => self.place(def, Range::of(DType::Bool), None),
            };
        }
        if of == DType::Bool {
            return self.logic(f, def, x, y);
        }
        if let (Bin::Max | Bin::Min, Some(d)) = (f, self.difference(a, b)) {
            if d.lo >= 0 {
                return if f == Bin::Max { a } else { b };
            }
            if d.hi <= 0 {
                return if f == Bin::Max { b } else { a };
            }
        }
        match (f, y.is_one()) {
            (Bin::And, Some(mask)) if x.lo >= 0 && mask >= 0 && (mask + 1) & mask == 0 && x.hi <= mask => return a,
            (Bin::Div, Some(1)) => return a,
            (Bin::Div, Some(by)) if x.lo >= 0 && by > 0 && by & (by - 1) == 0 => {
                let shift = self.integer(of, by.trailing_zeros() as i128);
                return self.emit(NestOp::Bin(Bin::ShrLogical), def.dtype, &[a, shift]);
            }
            (Bin::Rem, Some(by)) if x.lo >= 0 && by > 0 && by & (by - 1) == 0 => {
                let mask = self.integer(of, by - 1);
                return self.emit(NestOp::Bin(Bin::And), def.dtype, &[a, mask]);
            }
            (Bin::Rem, Some(by)) if x.lo >= 0 && x.hi < by => return a,
            (Bin::Xor | Bin::Or | Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic, Some(0)) => return a,
            _ => (),
        }
        let all = Range::of(def.dtype);
        let bits = i128::from(def.dtype.bits());
        let is_plain = match f {
            Bin::Div | Bin::Rem => y.lo > 0 || y.hi < -1,
            Bin::Shl | Bin::ShrLogical | Bin::ShrArithmetic => y.lo >= 0 && y.hi < bits,
            _ => true,
        };
        if !is_plain && let Some(callee) = self.raw.callees.get(&(f, def.dtype)).copied() {
            // for a divisor of 0 or -1, or a shift by the width or more, the machine's instruction
            // gives another result
            def.op = NestOp::Call(callee, 2);
            return self.place(def, all, None);
        }
        let shift = y.is_one().filter(|n| f == Bin::Shl && (0..i128::from(def.dtype.bits())).contains(n));
        let exact = match shift {
            Some(n) => Some(x.times(Range::one(1 << n))),
            None => Range::bin(f, x, y),
        };
        let exact = exact.filter(|r| all.is_some_and(|all| all.contains(*r)));
        let sum = exact.and_then(|_| {
            let (p, q) = (self.sum(a), self.sum(b));
            match f {
                Bin::Add => p.plus(&q, 1),
                Bin::Sub => p.plus(&q, -1),
                Bin::Mul => match (y.is_one(), x.is_one()) {
                    (Some(by), _) => p.times(i64::try_from(by).ok()?),
                    (_, Some(by)) => q.times(i64::try_from(by).ok()?),
                    _ => None,
                },
                Bin::Shl => p.times(1 << shift?),
                _ => None,
            }
        });
        if matches!(f, Bin::Add | Bin::Mul | Bin::And | Bin::Or | Bin::Xor) && x.is_one().is_some() {
            // constants last, where an instruction takes them
            def.args = [b, a, 0];
        }
        self.place(def, exact.or(all), sum)
    }
    fn logic(&mut self, f: Bin, def: Def, x: Range, y: Range) -> NestValue {
        let [a, b, _] = def.args;
        match (f, x.is_one(), y.is_one()) {
            (Bin::And | Bin::Mul | Bin::Min, Some(0), _) | (Bin::Or | Bin::Add | Bin::Max, Some(1), _) => a,
            (Bin::And | Bin::Mul | Bin::Min, _, Some(0)) | (Bin::Or | Bin::Add | Bin::Max, _, Some(1)) => b,
            (Bin::And | Bin::Mul | Bin::Min, Some(1), _) | (Bin::Or | Bin::Add | Bin::Max, Some(0), _) => b,
            (Bin::And | Bin::Mul | Bin::Min, _, Some(1)) | (Bin::Or | Bin::Add | Bin::Max, _, Some(0)) => a,
            _ => self.place(def, Range::of(DType::Bool), None),
        }
    }

    // ---- addresses ----

    /// An index as a value and a constant behind it.
    fn address(&mut self, index: NestValue) -> (NestValue, i64) {
        let sum = self.sum(index);
        let (constant, mut terms) = (sum.constant, sum.terms.clone());
        if i32::try_from(constant.saturating_mul(8)).is_err() || terms.is_empty() {
            let at = terms.is_empty().then_some(constant).filter(|c| i32::try_from(c.saturating_mul(8)).is_ok());
            return match at {
                Some(c) => (self.integer(DType::I64, 0), c),
                None => (index, 0),
            };
        }
        terms.sort_by_key(|t| (self.levels[t.0 as usize], t.0));
        let mut total = None;
        for (v, by) in terms {
            let wide = self.wide(v);
            let factor = self.integer(DType::I64, by as i128);
            let term = self.emit(NestOp::Bin(Bin::Mul), DType::I64, &[wide, factor]);
            total = Some(match total {
                None => term,
                Some(t) => self.emit(NestOp::Bin(Bin::Add), DType::I64, &[t, term]),
            });
        }
        (total.unwrap_or(index), constant)
    }
    fn wide(&mut self, v: NestValue) -> NestValue {
        let from = self.out.dtype(v);
        if from.size() == 8 { v } else { self.emit(NestOp::Convert(from), DType::I64, &[v]) }
    }

    // ---- statements ----

    fn mapped(&self, v: NestValue) -> NestValue {
        self.map[v as usize]
    }
    fn statements(&mut self, all: &[Stmt]) {
        for s in all {
            match s {
                Stmt::Let(v) => {
                    let def = *self.raw.def(*v);
                    let args: SmallVec<[NestValue; 3]> = def.args().iter().map(|a| self.mapped(*a)).collect();
                    self.map[*v as usize] = match def.op {
                        NestOp::Load(array, offset) => {
                            let (index, more) = self.address(args[0]);
                            let op = NestOp::Load(array, offset + more as i32);
                            self.emit(op, def.dtype, &[index])
                        }
                        op => self.emit(op, def.dtype, &args),
                    };
                }
                Stmt::Store { array, index, offset, value, dtype, .. } => {
                    let index = self.mapped(*index);
                    let (index, more) = self.address(index);
                    let (value, offset) = (self.mapped(*value), offset + more as i32);
                    let block = self.blocks.last_mut().expect("a block");
                    block.push(Stmt::Store { array: *array, index, offset, value, dtype: *dtype, stride: 1 });
                    self.changed(*array, self.level());
                    if dtype.size() >= 4 || *dtype == DType::Bool {
                        // a load of an element that was just stored gives the stored value
                        let (op, args) = (NestOp::Load(*array, offset), [index, 0, 0]);
                        let def = Def { op, dtype: *dtype, args, lanes: 1, is_exact: false };
                        let key = Key::Load(def, self.versions[*array as usize].0);
                        self.seen.insert(key.clone(), value);
                        self.keys[self.blocks.len() - 1].push(key);
                    }
                }
                Stmt::ExitUnless(p) => {
                    let p = self.mapped(*p);
                    self.blocks.last_mut().expect("a block").push(Stmt::ExitUnless(p));
                }
                Stmt::Loop(l) => self.nested(l),
                Stmt::CallRow(_) => unreachable!("rows are called where loops are vectors"),
            }
        }
    }
    fn changed(&mut self, array: ArrayId, level: u16) {
        let version = &mut self.versions[array as usize];
        *version = (version.0 + 1, level);
    }
    /// How much a carry grows in an iteration, where that is a constant.
    fn step(&self, c: &NestCarry) -> Option<i128> {
        let def = self.raw.def(c.next);
        let known = |v: NestValue| Some(integer(self.raw.dtype(v), self.raw.known(v)?));
        match def.op {
            NestOp::Bin(Bin::Add) if def.args[0] == c.slot => known(def.args[1]),
            NestOp::Bin(Bin::Add) if def.args[1] == c.slot => known(def.args[0]),
            NestOp::Bin(Bin::Sub) if def.args[0] == c.slot => Some(-known(def.args[1])?),
            _ => None,
        }
    }
    /// The greatest value of the carry for which the loop continues.
    fn bound(&self, l: &NestLoop, slot: NestValue) -> Option<i128> {
        let exit = l.body.iter().find_map(|s| if let Stmt::ExitUnless(p) = s { Some(*p) } else { None })?;
        let def = self.raw.def(exit);
        let (of, strict) = match def.op {
            NestOp::Bin(Bin::Lt) if def.args[0] == slot => (def.args[1], 1),
            NestOp::Bin(Bin::Le) if def.args[0] == slot => (def.args[1], 0),
            NestOp::Bin(Bin::Gt) if def.args[1] == slot => (def.args[0], 1),
            NestOp::Bin(Bin::Ge) if def.args[1] == slot => (def.args[0], 0),
            _ => return None,
        };
        let range = match self.raw.known(of) {
            Some(bits) => Range::one(integer(self.raw.dtype(of), bits)),
            None if self.mapped(of) != NONE => self.range(self.mapped(of))?,
            None => Range::of(self.raw.dtype(of))?,
        };
        Some(range.hi - strict)
    }
    /// The ranges of a carry at the beginning of an iteration, in its body, and after the loop.
    fn carried(&self, l: &NestLoop, c: &NestCarry, trips: Option<i128>) -> Option<[Range; 3]> {
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
    fn nested(&mut self, l: &NestLoop) {
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

/// Removes unused values.
pub(super) fn prune(nest: &mut Nest) {
    live::prune(nest);
}
mod live {
    //! Removal of unused values.
    use super::super::{Nest, NestOp, NestTrip, NestValue, Stmt};

    pub fn prune(nest: &mut Nest) {
        let mut live = vec![false; nest.defs.len()];
        let mut work: Vec<NestValue> = nest.outs.clone();
        // for each carry: slot, value after the loop, and the values that it depends on
        let mut carried = vec![None; nest.defs.len()];
        roots(&nest.body, &mut work, &mut carried);
        while let Some(v) = work.pop() {
            if std::mem::replace(&mut live[v as usize], true) {
                continue;
            }
            work.extend_from_slice(nest.defs[v as usize].args());
            if let Some(of) = carried[v as usize] {
                work.extend::<[NestValue; 3]>(of);
            }
        }
        keep(&mut nest.body, &live, &nest.defs.iter().map(|d| matches!(d.op, NestOp::Const(_))).collect::<Vec<_>>());
    }
    fn roots(body: &[Stmt], work: &mut Vec<NestValue>, carried: &mut [Option<[NestValue; 3]>]) {
        for s in body {
            match s {
                Stmt::Let(_) | Stmt::CallRow(_) => (),
                Stmt::Store { index, value, .. } => work.extend([*index, *value]),
                Stmt::ExitUnless(p) => work.push(*p),
                Stmt::Loop(l) => {
                    if let NestTrip::Dyn(n) = l.trip {
                        work.push(n);
                    }
                    for c in &l.carries {
                        carried[c.slot as usize] = Some([c.init, c.next, c.slot]);
                        carried[c.after as usize] = Some([c.init, c.next, c.slot]);
                    }
                    roots(&l.body, work, carried);
                }
            }
        }
    }
    fn keep(body: &mut Vec<Stmt>, live: &[bool], constant: &[bool]) {
        body.retain_mut(|s| match s {
            Stmt::Let(v) => live[*v as usize] && !constant[*v as usize],
            Stmt::Loop(l) => {
                l.carries.retain(|c| live[c.slot as usize]);
                keep(&mut l.body, live, constant);
                true
            }
            _ => true,
        });
    }
}
